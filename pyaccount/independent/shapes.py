"""What a document may say: the keys of every section by its kind, and which values they may have.

A key that is not known might change what is meant, and so might a key that belongs to another kind, or a word in place of a
number. Whatever is not listed here is refused, with its name.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

JsonObject = Mapping[str, Any]


class NotCheckableError(Exception):
    """The document contains something that this checker has no bound for."""


def refused(what: str) -> NotCheckableError:
    """Return the error for what has no bound here."""
    return NotCheckableError(f"no bound is implemented for {what}")


def exactly(value: Any) -> Fraction:
    """Return a number as a fraction; raise if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise refused(f"the value {value!r} in place of a number")
    return Fraction(value)


def at_least_one(section: JsonObject, key: str, otherwise: int) -> int:
    """Return a whole number, or what counts if the section does not have it."""
    number = exactly(section.get(key, otherwise))
    if number < 1 or number.denominator != 1:
        raise refused(f"{key} {float(number)!r}")
    return int(number)


#: The keys of a body (a document or an entry of phases), by the first of these that it has; what it may have besides.
BODIES = {
    "select": "phases",
    "parallel": "",
    "phases": "sampler",
    "mechanism": "sampler",
    "training": "sampler matrix workload noise",
}
#: The keys of a section, by its kind: the first line's is what counts if none is given.
SECTIONS = {
    place: {line.split(":")[0].strip(): set(line.split(":")[1].split()) for line in lines.strip().splitlines()}
    for place, lines in {
        "privacy": "None: adjacency group_size epsilon delta risk",
        "training": "None: sampling_probability participation_rate dataset_size expected_batch_size iterations epochs",
        "noise": "gaussian: multiplier also\nlaplace: multiplier",
        "matrix": """
            identity:
            banded-square-root: bands normalize
            optimal-toeplitz: bands optimize_for normalize
            toeplitz: coefficients normalize
            banded-inverse: bands inverse_coefficients normalize
            blt: buffers scales decays optimize_for normalize
            dense: file normalize
            tree: restart_every estimation normalize""",
        "sampler": """
            poisson: truncate_to draws_per_iteration
            fixed-size:
            with-replacement:
            must-ow: subset_size
            must-wo: subset_size
            must-ww: subset_size
            b-min-sep: min_separation start truncate_to
            user-b-min-sep: records_per_user attribution min_separation start waits_after
            random-allocation: iterations_per_allocation participations
            balls-in-bins: bins
            cyclic-poisson: partitions phase
            none: max_participations min_separation""",
        "sample": "poisson: sampling_probability draws",
        "select": """
            geometric: stopping_probability
            logarithmic: stopping_probability
            negative-binomial: stopping_probability shape
            poisson: mean
            binomial: trials probability""",
        "mechanism": """
            stated: epsilon delta rho xi mu guarantees renyi
            gaussian: sigma sensitivity
            mixture-of-gaussians: sigma sensitivities probabilities
            laplace: scale sensitivity moved
            discrete-gaussian: step sensitivity moved sigma
            discrete-laplace: step sensitivity moved scale
            randomized-response: values truth_probability answers empty_record
            exponential: epsilon utility_sensitivity scale monotone
            permute-and-flip: epsilon utility_sensitivity scale monotone
            report-noisy-max: epsilon utility_sensitivity scale monotone noise""",
    }.items()
}
#: The values of keys that are words.
WORDS: dict[str, tuple[Any, ...]] = {
    "adjacency": ("add-remove", "zero-out", "replace-one"),
    "normalize": (True, False),
    "monotone": (True, False),
    "noise": ("gumbel", "exponential", "laplace"),
    "phase": ("fixed", "random"),
    "attribution": ("shared", "single"),
    "start": ("warm", "cold"),
    "waits_after": ("draw",),
    "draws": ("records", "clients"),
    "answers": ("each-record", "once"),
    "empty_record": ("one-of-the-values", "uniform"),
    "optimize_for": ("column-norm", "usual-participations", "sampling"),
    "estimation": ("honest", "efficient"),
}
#: What only a whole document has; the keys whose values are whole numbers from 1 on; and those that are probabilities.
WHOLE_DOCUMENT, WHOLE, PROBABILITIES = (
    set(keys.split())
    for keys in (
        "pyaccount privacy accounting composed_from",
        "pyaccount group_size count dataset_size iterations truncate_to draws_per_iteration subset_size records_per_user "
        "min_separation max_participations iterations_per_allocation participations bins partitions bands restart_every "
        "buffers moved values every trials",
        "sampling_probability participation_rate truth_probability max strata delta stopping_probability probability",
    )
)
#: What does not matter to the privacy of a run.
BESIDE = ("accounting", "composed_from", "workload")


def filled_in(certificate: JsonObject) -> dict[str, Any]:
    """Return the document with the value of its blank, and with what was chosen from its lists, which are a part of the claim.

    Raises `NotCheckableError` if it says anything that is not known.
    """
    document: dict[str, Any] = copy.deepcopy(dict(certificate["document"]))
    solved = certificate.get("solved")
    if solved:
        keys = [int(key) if key.isdigit() else key for key in re.findall(r"[^.\[\]]+", solved["path"])]
        place: Any = document
        for key in keys[:-1]:
            place = place[key]
        if place[keys[-1]] != "solve":
            raise refused(f"a value at {solved['path']}, which is not the blank")
        place[keys[-1]] = solved["value"]
    for body, claim in zip(document.get("phases", [document]), certificate.get("phases") or (), strict=False):
        _choose(body.get("matrix") or {}, claim.get("matrix") or {})
        _choose(body.get("sampler") or {}, claim.get("chosen") or {})
    _understood(document)
    privacy = document["privacy"]
    stated = {"group_size": 1} | dict(privacy) | dict(certificate.get("privacy") or {})
    if (stated["adjacency"], stated["group_size"]) != (privacy["adjacency"], privacy.get("group_size", 1)):
        raise refused("a certificate that protects others than its document")
    return document


def _choose(section: dict[str, Any], chosen: JsonObject) -> None:
    for key, value in section.items():
        if isinstance(value, Mapping) and set(value) == {"choose"}:
            if not any(chosen.get(key) == each and type(chosen.get(key)) is type(each) for each in value["choose"]):
                raise refused(f"{key} {chosen.get(key)!r}, which is not one of those to choose from")
            section[key] = chosen[key]


def _understood(document: JsonObject) -> None:
    """Raise `NotCheckableError` if a document says anything that is not known, or that no document may say."""
    _body(document, WHOLE_DOCUMENT)
    _values({key: value for key, value in document.items() if key not in BESIDE}, "")


def _known(section: JsonObject, allowed: set[str], place: str) -> None:
    unknown = set(section) - allowed
    if unknown:
        raise refused(f"the key {sorted(unknown)[0]} in {place}")


def _body(body: JsonObject, more: set[str]) -> None:
    """Check the keys of a body and of its sections; `more` are those that only a whole document has."""
    shape = next((key for key in BODIES if key in body), None)
    if shape is None:
        raise refused("a body without training, mechanism, phases or parallel")
    allowed = {"name", shape, *BODIES[shape].split(), *more}
    scaled = bool(more) and shape == "phases"
    allowed = allowed - {"sampler"} | {"noise"} if scaled else allowed | {"count"}
    if more and shape not in ("phases", "mechanism", "training"):
        raise refused(f"the key {shape} beside {', '.join(sorted(more))}")
    _known(body, allowed, f"a body with {shape}")
    if scaled and "noise" in body:
        _known(body["noise"], {"scale"}, "noise beside phases")
    for place in SECTIONS.keys() & body.keys() - ({"noise"} if scaled else set()):
        kinds = SECTIONS["sample" if place == "sampler" and shape != "training" else place]
        kind = str(body[place].get("kind", next(iter(kinds))))
        if kind not in kinds:
            raise refused(f"{place} of the kind {kind} in a body with {shape}")
        _known(body[place], kinds[kind] | {"kind"}, f"{place} of the kind {kind}")
    for each in body.get("noise", {}).get("also", ()):
        _known(each, {"multiplier", "what"}, "noise.also")
    for place, second in (("guarantees", "delta"), ("renyi", "order")):
        for each in body.get("mechanism", {}).get(place, ()):
            _known(each, {"epsilon", second}, place)
    for each in (*body.get("phases", ()), *body.get("parallel", ())):
        _body(each, set())


def _values(place: Any, key: str) -> None:
    """Check numbers and words: most numbers are squared, so that a sign would not matter. Those of an inverse may be negative."""
    if key in WORDS and not (key == "noise" and isinstance(place, Mapping)):
        if not any(place == word and type(place) is type(word) for word in WORDS[key]):
            raise refused(f"{key} {place!r}")
    elif isinstance(place, Mapping):
        if "schedule" in place:
            _known(place, {"schedule", "scale"}, key)
            if isinstance(place["schedule"], Mapping):
                _known(place["schedule"], {"start", "decay", "every", "least"}, "schedule")
        elif key == "sampling_probability":
            _known(place, {"max"} if "max" in place else {"strata"}, key)
        for name, value in place.items():
            # A schedule starts with a number, a sampler with a word.
            number = "max" if key == "strata" else "decay" if (key, name) == ("schedule", "start") else None
            _values(value, number or name)
    elif isinstance(place, list):
        for each in place:
            _values(each, key)
    elif isinstance(place, int | Fraction) and not isinstance(place, bool):
        possible = key not in WHOLE or (place >= 1 and Fraction(place).denominator == 1)
        possible = (
            possible
            and (key not in PROBABILITIES or place <= 1)
            and (place >= 0 or key == "inverse_coefficients" or (key == "shape" and place > -1))
        )
        if not possible or (place == 0 and key in PROBABILITIES - {"delta"}):
            raise refused(f"{key} {float(place)!r}")
