"""The verdict on a certificate: what was proven of its ε and δ for the normal form that it states."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from .beside import with_columns
from .form import digest, parsed, refused, unique
from .lattice import NotCheckableError
from .laws import Round
from .meaning import FormRounds
from .moments import SecretRound
from .search import SLACK, Log, ProvenBounds, prove

#: The failure probability of a proof by samples of the checker.
FAILURE = 1e-10
#: The share of the time for proofs without samples, where samples may follow.
SHARE = 0.4


class CheckedClaim(NamedTuple):
    """All that is taken from a certificate."""

    name: str
    epsilon: Fraction | None
    delta: Fraction | None
    form: Any
    sha256: Any = None


class ProofLimits(NamedTuple):
    """The processor time of a proof, who is told of its progress, and a seed, with which samples prove nothing."""

    seconds: float = 100.0
    log: Log = lambda line: None
    seed: int | None = None


def claim_of(text: str) -> CheckedClaim:
    """Return the claim of a certificate. Raises `ValueError` if the text is none."""
    try:
        data = json.loads(text, parse_float=_decimal, parse_constant=_decimal, object_pairs_hook=unique)
    except RecursionError as error:
        raise ValueError("this is not a certificate: it is nested too deeply") from error
    if not isinstance(data, dict) or not {"mechanism", "document"} & data.keys():
        raise ValueError("this is not a certificate: it states no mechanism")
    guarantee = data.get("guarantee")
    epsilon, delta = ((guarantee.get(key) if isinstance(guarantee, Mapping) else None) for key in ("epsilon", "delta"))
    form, sha256 = data.get("mechanism"), data.get("mechanism_sha256")
    return CheckedClaim(str(data.get("name")), _exact(epsilon), _exact(delta), form, sha256)


def _decimal(text: str) -> Fraction:
    if not math.isfinite(float(text)) or len(text) > 1000 or abs(int(text.lower().partition("e")[2] or 0)) > 400:
        raise ValueError(f"this number is too large, too small or none: {text[:40]}")
    return Fraction(text)


def _exact(value: Any) -> Fraction | None:
    return Fraction(value) if isinstance(value, int | Fraction) and not isinstance(value, bool) else None


def check(claim: CheckedClaim, limits: ProofLimits = ProofLimits(), folder: Path | None = None) -> dict[str, Any]:  # noqa: B008
    """Return the verdict on a claim, as data (schemas/independent-verdict.v1.schema.json).

    *proven*: δ(ε) ≤ (1 + looser_by)·δ, looser_by ≤ 0.001. If this rests on samples that the checker drew, a false claim is
    proven with a probability of at most `failure_probability`. *refuted*: δ(ε) > δ is proven, for two data sets. *consistent*:
    neither. *not checkable*: no bound is implemented. A seed makes samples repeatable, and voids what they prove.
    Files beside the form are looked for in the folder.
    """
    began, verdict = time.process_time(), not_checkable(claim.name, None)
    try:
        if claim.epsilon is None or claim.delta is None:
            raise refused("certificates without a guarantee of a run")
        epsilon, delta = claim.epsilon, claim.delta
        verdict["claimed"] = {"epsilon": float(epsilon), "delta": float(delta)}
        if not (0 <= epsilon <= 10_000 and 0 <= delta < 1) or 0 < delta < Fraction(1, 10**300):
            raise refused("an ε above 10,000, or a δ that is neither 0 nor in [1e-300, 1)")
        if claim.form is None:
            raise refused("certificates that state no normal form of their mechanism")
        form = parsed(claim.form)
        if claim.sha256 is not None and claim.sha256 != digest(claim.form):
            raise refused("a normal form whose SHA-256 is another one")
        kinds = FormRounds(with_columns(form, folder), max(delta, Fraction(1, 10**300)) / 10_000).kinds()
        if delta == 0:
            _pure(verdict, kinds, epsilon)
        else:
            _judge(verdict, claim, kinds, limits)
    except NotCheckableError as error:
        verdict |= not_checkable(claim.name, str(error)) | {"claimed": verdict["claimed"]}
    except Exception as error:
        # Whatever is in the file, it ends with a verdict.
        why = f"no bound is implemented for numbers of this size: {type(error).__name__}: {error}"
        verdict |= not_checkable(claim.name, why) | {"claimed": verdict["claimed"]}
    return verdict | {"seconds": round(time.process_time() - began, 3)}


def not_checkable(name: str, reason: str | None, seconds: float = 0.0) -> dict[str, Any]:
    """Return the verdict that nothing was checked, with its reason."""
    return {
        "pyaccount": 1, "kind": "independent-verdict", "name": shown(name, 200),
        "verdict": "not checkable", "reason": None if reason is None else shown(reason, 1000), "claimed": None,
        "proven": None, "looser_by": None, "delta_lower": None, "spacing": None, "failure_probability": None,
        "checked": [], "not_checked": [], "seconds": seconds,
    }  # fmt: skip


def shown(text: str, most: int) -> str:
    """Return a text from a file in a form that is safe to print: without control characters, and not too long."""
    text = text if len(text) <= most else text[:most] + "…"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _pure(verdict: dict[str, Any], kinds: list[list[tuple[Round, int]]], epsilon: Fraction) -> None:
    """Judge a claim of δ = 0 by the sum of the largest losses, which is attained if those of all rounds are."""
    most = max(sum(part.largest * count for part, count in rounds) for rounds in kinds)
    if most == math.inf:
        raise refused("δ = 0 with these mechanisms")
    proven = most <= epsilon
    attained = all(part.attained for rounds in kinds for part, _ in rounds)
    verdict |= {
        "verdict": "proven" if proven else "refuted" if attained else "consistent",
        "proven": {"epsilon": _above(Fraction(most)), "delta": 0.0},
    }
    verdict["looser_by"] = verdict["failure_probability"] = 0.0 if proven else None


def _judge(
    verdict: dict[str, Any], claim: CheckedClaim, kinds: list[list[tuple[Round, int]]], limits: ProofLimits
) -> None:
    epsilon, delta, seconds, began = claim.epsilon, claim.delta, limits.seconds, time.process_time()
    assert epsilon is not None
    assert delta is not None
    alone = kinds[0][0][0] if len(kinds) == 1 and len(kinds[0]) == 1 and kinds[0][0][1] == 1 else None
    run = alone.sampled if isinstance(alone, SecretRound) else None
    found = [
        prove(rounds, epsilon, delta, seconds / len(kinds) * (SHARE if run else 1.0), limits.log) for rounds in kinds
    ]
    if run and max(bounds.delta for bounds in found) > delta * (1 + SLACK):
        from .samples import tested  # the proofs above do not need it

        left = limits._replace(seconds=seconds - (time.process_time() - began))
        tests = tested(run, epsilon, delta, left)
        proven = len(tests) == 2 and all(each.proven for each in tests)
        for each in tests:
            count = f", {each.samples} samples" if each.samples else ""
            text = f"{each.direction}, by this checker: {each.words}{count}"
            verdict["checked" if each.proven else "not_checked"].append(shown(text, 1000))
        if proven:
            drawn = any(each.samples for each in tests)
            verdict |= {"verdict": "proven", "proven": dict(verdict["claimed"]), "looser_by": 0.0}
            verdict["failure_probability"] = FAILURE if drawn else 0.0
            return
    _compared(verdict, found, delta)


def _compared(verdict: dict[str, Any], found: list[ProvenBounds], delta: Fraction) -> None:
    most = max(bounds.delta for bounds in found)
    epsilons = [bounds.epsilon for bounds in found if bounds.epsilon is not None]
    lowers = [bounds.lower for bounds in found if bounds.lower is not None]
    if len(epsilons) == len(found):
        verdict["proven"] = {"epsilon": _above(max(epsilons)), "delta": float(delta)}
    verdict["spacing"] = max(bounds.spacing for bounds in found)
    verdict["delta_lower"] = -_above(-max(lowers)) if lowers else None
    if most <= delta * (1 + SLACK):
        verdict |= {
            "verdict": "proven",
            "failure_probability": 0.0,
            "looser_by": _above(max(Fraction(0), most / delta - 1)),
        }
    elif lowers and max(lowers) > delta:
        verdict |= {"verdict": "refuted", "reason": "a lower bound of δ at this ε is above the δ that is claimed"}
    else:
        reason = f"at this ε, δ is proven to be at most {_above(most / delta)!r} times what is claimed"
        verdict |= {"verdict": "consistent", "reason": reason}


def _above(number: Fraction) -> float:
    """Return a double that is at least a number, and equal to it if the number is one."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


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
