"""What a document may say: one table of shapes, and one of values.

A key that is not known might change what is meant, and so might a key beside others that it does not belong to, or a word in
place of a number. There is one rule: whatever the tables do not list is refused, with its name. So a document with a blank is
read in one way or not at all, and every number is one for which the bounds were derived.
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
    """Return a whole number, or what counts if the section does not have it: a batch of a fixed size is one."""
    number = exactly(section.get(key, otherwise))
    if number < 1 or number.denominator != 1:
        raise refused(f"{key} {float(number)!r}")
    return int(number)


def agreed(rates: list[Fraction]) -> Fraction:
    """Return the largest of several statements of one number; raise if they differ by more than the rounding of decimals."""
    if max(rates) - min(rates) > max(rates) / 10**9 * (1 + Fraction(1, 10**6)):
        raise refused("statements of one rate that contradict each other")
    return max(rates)


def _table(text: str) -> dict[str, str]:
    """Return what stands after the colon, for each of the words before it; a slash joins the two words of a place."""
    lines = (line.partition(":") for line in text.strip().splitlines())
    return {name.replace("/", " "): rest.strip() for names, _, rest in lines for name in names.split()}


#: The keys of a section that may stand together: alternatives, each with keys that it needs, and with some that it may have (?).
#: A section with kinds has a line for each, *place kind*; training has one for each sampler, and a sampler without training is
#: a *sample*.
SHAPES = _table(
    """
    document/run: pyaccount name privacy accounting? training sampler matrix? workload? noise count?
    document/release: pyaccount name privacy accounting? mechanism sampler? count?
    document/phased: pyaccount name privacy accounting? composed_from? noise? phases
    body/run: name? training sampler matrix? workload? noise count?
    body/release: name? mechanism sampler? count?
    body/sampled: name? sampler phases count?
    body/selected: name? select phases count?
    body/parallel: name? parallel count?
    body/part: name? phases count?
    privacy: adjacency group_size? epsilon delta | adjacency group_size? risk
    risk: advantage report_delta? | true_positive_rate false_positive_rate report_delta? | gaussian_mu report_delta?
    training/poisson training/b-min-sep training/cyclic-poisson: (length) dataset_size? (rates) sampling_probability?
    training/user-b-min-sep: iterations sampling_probability dataset_size?
    training/random-allocation training/balls-in-bins: (length) dataset_size? (rates)
    training/none: (length) dataset_size? expected_batch_size?
    training/fixed-size training/with-replacement training/must-ow: (length) dataset_size expected_batch_size
    training/must-wo training/must-ww: (length) dataset_size expected_batch_size
    sampler/poisson: kind truncate_to? draws_per_iteration?
    sampler/fixed-size sampler/with-replacement matrix/identity: kind
    sampler/must-ow sampler/must-wo sampler/must-ww: kind subset_size
    sampler/b-min-sep: kind min_separation? start? truncate_to?
    sampler/user-b-min-sep: kind records_per_user attribution min_separation? start? waits_after?
    sampler/random-allocation: kind iterations_per_allocation participations?
    sampler/balls-in-bins: kind bins?
    sampler/cyclic-poisson: kind partitions? phase?
    sampler/none: kind max_participations? min_separation?
    sample/poisson: kind sampling_probability draws?
    noise/gaussian: kind? multiplier also?
    noise/laplace: kind multiplier
    noise/shared: scale
    also: multiplier what
    schedule/multiplier: schedule scale?
    schedule/sampling_probability: schedule | max | strata
    schedule/expected_batch_size: schedule
    decaying: start decay every? least?
    matrix/banded-square-root: kind bands normalize?
    matrix/optimal-toeplitz: kind bands optimize_for? normalize?
    matrix/toeplitz: kind coefficients normalize?
    matrix/banded-inverse: kind bands normalize? | kind inverse_coefficients normalize?
    matrix/blt: kind buffers optimize_for? normalize? | kind scales decays normalize?
    matrix/dense: kind file normalize?
    matrix/tree: kind restart_every? estimation? normalize?
    select/geometric select/logarithmic: kind stopping_probability
    select/negative-binomial: kind stopping_probability shape
    select/poisson: kind mean
    select/binomial: kind trials probability
    mechanism/stated: kind epsilon delta? | kind rho xi? | kind mu | kind guarantees | kind renyi
    mechanism/gaussian: kind sigma sensitivity?
    mechanism/mixture-of-gaussians: kind sigma sensitivities probabilities
    mechanism/laplace: kind scale sensitivity? moved?
    mechanism/discrete-gaussian: kind sigma step? sensitivity? moved?
    mechanism/discrete-laplace: kind scale step? sensitivity? moved?
    mechanism/randomized-response: kind values truth_probability answers? empty_record?
    mechanism/exponential mechanism/permute-and-flip: kind epsilon | kind utility_sensitivity scale monotone?
    mechanism/report-noisy-max: kind epsilon noise | kind utility_sensitivity scale monotone? noise
    guarantees: epsilon delta
    renyi: order epsilon
""".replace("(rates)", "expected_batch_size? participation_rate?")
)
#: The keys that each alternative needs, and those that it may have; (length) stands for one of two.
_FORMS = {
    shape: [
        ({key for key in keys if not key.endswith("?")}, {key.removesuffix("?") for key in keys})
        for form in alternatives.split("|")
        for length in (("iterations", "epochs") if "(length)" in form else ("",))
        if (keys := form.replace("(length)", length).split())
    ]
    for shape, alternatives in SHAPES.items()
}
#: Which bodies may be inside of another one.
INSIDE = {
    "document": ("run", "release", "sampled", "selected", "parallel"),
    "parallel": ("run", "release", "sampled", "selected", "part"),
    "part": ("run", "release", "sampled", "selected"),
    "selected": ("run", "release", "sampled"),
    "sampled": ("run", "release"),
}
#: Which values keys have: intervals of numbers, or one of whole numbers, or words. *place/key* comes before *key*.
VALUES = _table("""
    pyaccount: whole [1, 1]
    buffers: whole [1, 16]
    draws_per_iteration records_per_user: whole [1, 1000]
    bins: whole [1, 4096]
    group_size: whole [1, 1e4]
    bands: whole [1, 16384]
    subset_size iterations_per_allocation restart_every trials moved: whole [1, 1e6]
    iterations count every min_separation max_participations participations partitions: whole [1, 1e9]
    values: whole [2, 1e9]
    dataset_size truncate_to: whole [1, 1e15]
    epsilon xi: [0, 1e4]
    rho: [1e-12, 1e4]
    mu: [1e-6, 100]
    order: (1, 1e6]
    delta decays: [0, 1]
    privacy/delta: [0, 0] | [1e-280, 1)
    report_delta: [1e-280, 1)
    advantage truth_probability: (0, 1)
    true_positive_rate false_positive_rate stopping_probability probability: [1e-9, 1)
    gaussian_mu decay: (0, 10]
    sampling_probability participation_rate probabilities: (0, 1]
    expected_batch_size start least: (0, 1e15]
    epochs: (0, 1e9]
    multiplier: [1e-6, 1e9]
    schedule/scale noise/scale: [1e-15, 1e15]
    coefficients scales: [0, 1e9]
    inverse_coefficients: [-1e9, 1e9]
    shape: (-1, 1000]
    mean: [1e-6, 1e6]
    sigma scale sensitivity utility_sensitivity step: [1e-12, 1e12]
    sensitivities: [0, 1e12]
    adjacency: add-remove zero-out replace-one
    normalize monotone: true false
    mechanism/noise: gumbel exponential laplace
    phase: fixed random
    attribution: shared single
    sampler/start: warm cold
    waits_after: draw
    draws: records clients
    answers: each-record once
    empty_record: one-of-the-values uniform
    optimize_for: column-norm usual-participations sampling
    estimation: honest efficient
""")
#: Lists of numbers, and lists of sections.
LISTS = ("coefficients", "inverse_coefficients", "scales", "decays", "sensitivities", "probabilities")
SECTIONS = ("also", "guarantees", "renyi")
#: The keys of mechanisms whose values are no single numbers.
NO_NUMBERS = {"kind", "noise", "monotone", "answers", "empty_record", *LISTS, *SECTIONS}
TEXTS = ("name", "what", "file")
#: What does not matter to the privacy of a run, and is not read.
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
    _body(document, "document")
    privacy = document["privacy"]
    _target(privacy, certificate, blanks=0 if solved else 1)
    stated = {"group_size": 1} | dict(privacy) | dict(certificate.get("privacy") or {})
    if (stated["adjacency"], stated["group_size"]) != (privacy["adjacency"], privacy.get("group_size", 1)):
        raise refused("a certificate that protects others than its document")
    return document


def _target(privacy: JsonObject, certificate: JsonObject, blanks: int) -> None:
    """Raise unless the privacy of a document is a target that a document can have, and the certificate is about it."""
    risk, guarantee = privacy.get("risk", {}), certificate.get("guarantee") or {}
    if [privacy.get(key) for key in ("epsilon", "delta")].count("solve") > blanks:
        raise refused("a document with several blanks")
    if "true_positive_rate" in risk and risk["true_positive_rate"] <= risk["false_positive_rate"]:
        raise refused("a true positive rate that is not above the false positive rate")
    if privacy.get("delta") == 0 and guarantee.get("delta") != 0:
        raise refused("a δ above 0 where the document asks for δ = 0")


def _choose(section: dict[str, Any], chosen: JsonObject) -> None:
    for key, value in section.items():
        if isinstance(value, Mapping) and set(value) == {"choose"}:
            if not any(chosen.get(key) == each and type(chosen.get(key)) is type(each) for each in value["choose"]):
                raise refused(f"{key} {chosen.get(key)!r}, which is not one of those to choose from")
            section[key] = chosen[key]


def _fits(section: Any, shape: str) -> bool:
    """Return whether the keys of a section are those of one of the alternatives of a shape."""
    keys = set(section) if isinstance(section, Mapping) else {None}
    return any(need <= keys <= may for need, may in _FORMS.get(shape, ()))


def _body(body: Any, inside: str) -> None:
    """Check the keys of a body, of its sections, and of the bodies in it."""
    names = ("run", "release", "phased") if inside == "document" and "privacy" in body else INSIDE[inside]
    place = "document" if "phased" in names else "body"
    shape = next((name for name in names if _fits(body, f"{place} {name}")), None)
    if shape is None:
        raise refused(f"these keys together in a {place}: {_named(body)}")
    sampler = body["sampler"].get("kind") if shape == "run" and isinstance(body["sampler"], Mapping) else None
    for key, value in body.items():
        if key in ("phases", "parallel"):
            for each in _listed(value, key):
                _body(each, "document" if shape == "phased" else shape)
            parts = [each["name"] for each in value if "name" in each]
            if key == "parallel" and (len(value) < 2 or len(set(parts)) < len(parts)):
                raise refused("parallel with one part, or with two parts of one name")
        elif key == "training":
            _section(value, key, f"training {sampler}")
        elif key in ("sampler", "noise", "matrix", "select", "mechanism"):
            usual = "gaussian" if key == "noise" else None
            kind = "shared" if shape == "phased" else value.get("kind", usual) if isinstance(value, Mapping) else None
            _section(value, key, f"{'sample' if key == 'sampler' and shape != 'run' else key} {kind}")
        elif key == "privacy":
            _section(value, key, key)
        elif key not in BESIDE:
            allowed(value, key, place)


def _section(section: Any, place: str, shape: str) -> None:
    if not _fits(section, shape):
        raise refused(f"these keys together in {shape}: {_named(section)}")
    for key, value in section.items():
        if key == "risk":
            _section(value, key, key)
        elif key in SECTIONS:
            for each in _listed(value, key):
                _section(each, key, key)
        elif key in LISTS:
            for each in _listed(value, key):
                allowed(each, key, place)
        elif isinstance(value, Mapping):
            _mapping(value, key, place)
        elif key != "kind":
            allowed(value, key, place)


def _mapping(value: JsonObject, key: str, place: str) -> None:
    """Check a schedule, or the probabilities of different records."""
    if not _fits(value, f"schedule {key}") or (place == "sampler" and "schedule" in value):
        raise refused(f"{key} with these keys: {_named(value)}")
    for name, each in value.items():
        if name == "schedule" and isinstance(each, Mapping):
            if not _fits(each, "decaying"):
                raise refused(f"a schedule with these keys: {_named(each)}")
            for part, number in each.items():
                allowed(number, part, "schedule")
        elif name in ("schedule", "strata"):
            for number in each.values() if isinstance(each, Mapping) and each else _listed(each, name):
                allowed(number, key, place)
        else:
            allowed(each, key if name == "max" else name, "schedule")


def _listed(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise refused(f"{key} without entries")
    return value


def _named(section: Any) -> str:
    return ", ".join(map(str, sorted(section))) if isinstance(section, Mapping) else repr(section)


def allowed(value: Any, key: str, place: str) -> None:
    """Raise unless a word, text or number is among the values of a key."""
    kind = VALUES.get(f"{place} {key}", VALUES.get(key))
    if key in TEXTS:
        right = isinstance(value, str) and 0 < len(value) <= 4096
    elif kind is None:
        right = False
    elif kind.endswith(("]", ")")):
        right = (place == "privacy" and value == "solve") or any(_within(value, part) for part in kind.split("|"))
    elif kind == "true false":
        right = isinstance(value, bool)
    else:
        right = isinstance(value, str) and value in kind.split()
    if not right:
        raise refused(f"{key} {float(value) if isinstance(value, Fraction) else value!r}")


def _within(value: Any, interval: str) -> bool:
    """Return whether a value is a number in an interval of the table."""
    interval = interval.strip()
    low, high = (Fraction(bound) for bound in interval.removeprefix("whole ")[1:-1].split(","))
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return False
    if interval.startswith("whole") and Fraction(value).denominator != 1:
        return False
    above = value > low or (value == low and "[" in interval)
    return above and (value < high or (value == high and "]" in interval))
