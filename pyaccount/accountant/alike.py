"""Rounds that are nearly alike, bounded by one of them: ledgers have no limit, and a document has only so many phases.

Each step toward fewer kinds of rounds gives a mechanism that is no more private: less noise, and larger rates, as is proven at
the head of `pyaccount.plan.alike`. There rounds are composed as others with the document as it is; here the document itself is
made shorter, since one has only so many phases, and so numbers are rounded as a document writes them.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pyaccount.document.phases import RawPhase, lasting, without_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: So many kinds of rounds are left, at most, where there would be too many phases for a document.
KINDS = 2000
#: Significant bits that numbers are rounded to: the most of these that leave few enough kinds.
BITS = range(30, 1, -1)
#: Rates of Poisson sampling that may be rounded up, and what is the largest of each.
RATES: dict[str, Callable[[RawPhase], float]] = {
    "sampling_probability": lambda _: 1.0,
    "participation_rate": lambda _: 1.0,
    "expected_batch_size": lambda training: training.get("dataset_size", math.inf),
}


def fewer_kinds(phases: Sequence[RawPhase]) -> tuple[list[dict[str, Any]], float]:
    """Phases of at most `KINDS` kinds whose guarantee holds for these too, and the largest relative change of a number.

    Where even the coarsest numbers leave more kinds, as many as these leave: then rounds differ in something else.
    """
    found, change = _together(phases), 0.0
    for bits in BITS:
        if len(found) <= KINDS:
            break
        found, change = _together([_rounded(phase, bits) for phase in phases]), math.ldexp(1.0, 1 - bits)
    return found, change


def _together(phases: Sequence[RawPhase]) -> list[dict[str, Any]]:
    """Equal rounds in one phase, in the order in which they came first."""
    kinds: dict[str, tuple[dict[str, Any], int]] = {}
    for phase in phases:
        body = without_length(phase)
        key = json.dumps(body, sort_keys=True)
        kinds[key] = (body, kinds.get(key, (body, 0))[1] + phase["training"]["iterations"])
    return [lasting(body, rounds) for body, rounds in kinds.values()]


def _rounded(phase: RawPhase, bits: int) -> dict[str, Any]:
    """The phase with less noise and a larger rate, of so many bits."""
    noise, training, sampler = phase["noise"], phase["training"], phase["sampler"]
    rounded = dict(phase) | {"noise": noise | {"multiplier": _of(noise["multiplier"], bits, math.floor)}}
    if sampler["kind"] != "poisson" or "truncate_to" in sampler:
        return rounded
    rates = {
        field: min(_of(training[field], bits, math.ceil), max(training[field], most(training)))
        for field, most in RATES.items()
        if field in training
    }
    return rounded | {"training": training | rates}


def _of(number: float, bits: int, rounding: Callable[[float], int]) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(rounding(math.ldexp(mantissa, bits)), exponent - bits)
