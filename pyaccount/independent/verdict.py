"""The verdict on a certificate: what was proven of its guarantee without the program that made it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from .correlated import prove
from .derived import RepeatedRound
from .documents import Reader
from .kinds import LaplaceRound
from .normals import source
from .proof import SLACK, ProvenBounds
from .sampled import Findings, check_sampled, rests_on_samples
from .samples import ClaimUnderTest
from .shapes import NotCheckableError, exactly, refused


def parsed(text: str) -> dict[str, Any]:
    """Return a certificate with its numbers as the decimal fractions that are written. Raises `ValueError` if it is none."""
    try:
        data = json.loads(text, parse_float=_decimal, parse_constant=_decimal, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("this is not a certificate: it is nested too deeply") from error
    if not isinstance(data, dict) or not isinstance(data.get("document"), dict):
        raise ValueError("this is not a certificate: it has no document")
    return data


def _decimal(text: str) -> Fraction:
    if not math.isfinite(float(text)) or len(text) > 1000 or abs(int(text.lower().partition("e")[2] or 0)) > 400:
        raise ValueError(f"this number is too large, too small or none: {text[:40]}")
    return Fraction(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(
            f"a key is given twice, and readers differ in which one they take: {sorted(key for key, _ in pairs)}"
        )
    return found


def check(
    certificate: Mapping[str, Any],
    seconds: float = 100.0,
    log: Callable[[str], None] = lambda line: None,
    *,
    seed: int | None = None,
) -> dict[str, Any]:
    """Return the verdict on the guarantee of a certificate, as data (schemas/independent-verdict.v1.schema.json).

    *proven*: δ(ε) ≤ (1 + looser_by)·δ for the ε and δ of the guarantee, looser_by ≤ 0.001. If this rests on samples that the
    checker drew, a false guarantee is proven with a probability of at most `failure_probability`. *refuted*: δ(ε) > δ is
    proven, for the worst case that the document allows, or the record of the certificate's own tests contradicts it.
    *consistent*: neither. *not checkable*: no bound is implemented for the document. A seed makes the samples repeatable,
    and voids what they prove.
    """
    began = time.process_time()
    verdict = not_checkable(certificate, None)
    try:
        guarantee = certificate.get("guarantee")
        if not isinstance(guarantee, Mapping):
            raise refused("certificates without a guarantee of a run")
        epsilon, delta = exactly(guarantee.get("epsilon")), exactly(guarantee.get("delta"))
        verdict["claimed"] = {"epsilon": float(epsilon), "delta": float(delta)}
        if not (0 <= epsilon <= 10_000 and 0 <= delta < 1):
            raise refused("an ε above 10,000 or a δ that is not in [0, 1)")
        if 0 < delta < Fraction(1, 10**300):
            raise refused("a δ below 1e-300")
        sampled = rests_on_samples(certificate)
        if sampled and delta == 0:
            raise refused("samples at δ = 0")
        kinds = None if sampled else Reader(certificate, max(delta, Fraction(1, 10**300)) / 10_000).kinds()
        if kinds is None:
            _told(verdict, check_sampled(certificate, ClaimUnderTest(epsilon, delta, source(seed), seconds, log)))
        elif delta == 0:
            largest = max(_largest(parts) for parts in kinds)
            attained = all(isinstance(part, LaplaceRound) and part.attained for parts in kinds for part, _ in parts)
            verdict["verdict"] = "proven" if largest <= epsilon else "refuted" if attained else "consistent"
            verdict["proven"] = {"epsilon": _above(largest), "delta": 0.0}
            verdict["looser_by"] = verdict["failure_probability"] = 0.0 if largest <= epsilon else None
        else:
            found = [prove(parts, epsilon, delta, seconds / len(kinds), log) for parts in kinds]
            _judge(verdict, found, delta)
    except NotCheckableError as error:
        verdict |= not_checkable(certificate, str(error)) | {"claimed": verdict["claimed"]}
    except Exception as error:
        # Whatever is in the file, it ends with a verdict.
        why = "it cannot be read, or no bound is implemented for numbers of this size"
        why = f"{why}: {type(error).__name__}: {error}"
        verdict |= not_checkable(certificate, why) | {"claimed": verdict["claimed"]}
    return verdict | {"seconds": round(time.process_time() - began, 3)}


def not_checkable(certificate: Mapping[str, Any], reason: str | None, seconds: float = 0.0) -> dict[str, Any]:
    """Return the verdict that nothing was checked, with its reason."""
    return {
        "pyaccount": 1, "kind": "independent-verdict", "name": shown(str(certificate.get("name")), 200),
        "verdict": "not checkable", "reason": None if reason is None else shown(reason, 1000), "claimed": None,
        "proven": None, "looser_by": None, "delta_lower": None, "spacing": None, "failure_probability": None,
        "checked": [], "not_checked": [], "seconds": seconds,
    }  # fmt: skip


def shown(text: str, most: int) -> str:
    """Return a text from a file in a form that is safe to print: without control characters, and not too long."""
    text = text if len(text) <= most else text[:most] + "…"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _told(verdict: dict[str, Any], found: Findings) -> None:
    texts = {key: [shown(each, 1000) for each in getattr(found, key)] for key in ("checked", "not_checked")}
    verdict |= found._asdict() | texts | {"reason": found.reason and shown(found.reason, 1000)}
    if found.verdict == "proven":
        verdict |= {"proven": dict(verdict["claimed"]), "looser_by": 0.0}


def _judge(verdict: dict[str, Any], found: list[ProvenBounds], delta: Fraction) -> None:
    most = max(bounds.delta for bounds in found)
    epsilons = [bounds.epsilon for bounds in found if bounds.epsilon is not None]
    lowers = [bounds.lower for bounds in found if bounds.lower is not None]
    if len(epsilons) == len(found):
        verdict["proven"] = {"epsilon": _above(max(epsilons)), "delta": float(delta)}
    verdict["spacing"] = max(bounds.spacing for bounds in found)
    verdict["delta_lower"] = _below(max(lowers)) if lowers else None
    if most <= delta * (1 + SLACK):
        verdict["failure_probability"] = 0.0
        verdict["verdict"], verdict["looser_by"] = "proven", _above(max(Fraction(0), most / delta - 1))
    elif lowers and max(lowers) > delta:
        verdict["verdict"], verdict["reason"] = "refuted", "a lower bound of δ at this ε is above the δ that is claimed"
    else:
        verdict["verdict"] = "consistent"
        verdict["reason"] = f"at this ε, δ is proven to be at most {_above(most / delta)!r} times what is claimed"


def _largest(parts: list[RepeatedRound]) -> Fraction:
    """Return the sum of the largest losses, which is attained."""
    losses = [part.theta * count for part, count in parts if isinstance(part, LaplaceRound)]
    if len(losses) < len(parts):
        raise refused("δ = 0 with anything but Laplace noise")
    return sum(losses, Fraction(0))


def _above(number: Fraction) -> float:
    """Return a double that is at least a number, and equal to it if the number is one."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def _below(number: Fraction) -> float:
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, -math.inf)


def sentence(verdict: Mapping[str, Any]) -> str:
    """Return the verdict in words."""
    claimed, proven = verdict["claimed"], verdict["proven"]
    words = [f"{verdict['name']}: {verdict['verdict']}"]
    if claimed:
        words.append(f"claimed ({claimed['epsilon']!r}, {claimed['delta']!r})")
    if proven:
        words.append(f"proven here ({proven['epsilon']!r}, {proven['delta']!r})")
    if verdict["looser_by"]:
        words.append(f"at the claimed ε, δ is proven up to a factor of 1 + {verdict['looser_by']:.2g}")
    if verdict["failure_probability"]:
        words.append(
            f"by samples; a false guarantee is proven with probability at most {verdict['failure_probability']!r}"
        )
    if verdict["reason"]:
        words.append(verdict["reason"])
    return "; ".join(words)
