"""Bound rounds that are nearly alike by one of them.

Ledgers have no limit, but a document has a maximum number of phases. Each step toward fewer kinds of rounds gives a
mechanism that is no more private: it has less noise and larger rates. The head of `pyaccount.plan.alike` proves this.
That module replaces rounds and leaves the document unchanged; this module shortens the document, because it has a
maximum number of phases, and therefore rounds numbers to values that a document can contain.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pyaccount.document.phases import RawPhase, lasting, without_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The maximum number of kinds of rounds that are kept if a document would have too many phases.
KINDS = 2000
#: Significant bits to which numbers are rounded; the largest value that leaves few enough kinds is used.
BITS = range(30, 1, -1)
#: The rates of Poisson sampling that may be rounded up, and the largest value of each.
RATES: dict[str, Callable[[RawPhase], float]] = {
    "sampling_probability": lambda _: 1.0,
    "participation_rate": lambda _: 1.0,
    "expected_batch_size": lambda training: training.get("dataset_size", math.inf),
}


def fewer_kinds(phases: Sequence[RawPhase]) -> tuple[list[dict[str, Any]], float]:
    """Return phases of at most `KINDS` kinds, and the largest relative change of a number.

    Their guarantee holds for the given phases too. If even the coarsest numbers leave more kinds, all of these are
    returned: then the rounds differ in something else.
    """
    found, change = _together(phases), 0.0
    for bits in BITS:
        if len(found) <= KINDS:
            break
        found, change = _together([_rounded(phase, bits) for phase in phases]), math.ldexp(1.0, 1 - bits)
    return found, change


def _together(phases: Sequence[RawPhase]) -> list[dict[str, Any]]:
    """Return the phases with equal rounds merged into one, in the order of their first rounds."""
    kinds: dict[str, tuple[dict[str, Any], int]] = {}
    for phase in phases:
        body = without_length(phase)
        key = json.dumps(body, sort_keys=True)
        kinds[key] = (body, kinds.get(key, (body, 0))[1] + phase["training"]["iterations"])
    return [lasting(body, rounds) for body, rounds in kinds.values()]


def _rounded(phase: RawPhase, bits: int) -> dict[str, Any]:
    """Return the phase with less noise and a larger rate, each rounded to `bits` significant bits."""
    noise, training, sampler = phase["noise"], phase["training"], phase["sampler"]
    rounded = dict(phase) | {"noise": noise | {"multiplier": _of(noise["multiplier"], bits, math.floor)}}
    if sampler["kind"] != "poisson" or "truncate_to" in sampler:
        return rounded
    rates = {
        field: min(_of(training[field], bits, math.ceil), max(training[field], most(training)))
        for field, most in RATES.items()
        if isinstance(training.get(field), int | float)
    }
    return rounded | {"training": training | rates}


def _of(number: float, bits: int, rounding: Callable[[float], int]) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(rounding(math.ldexp(mantissa, bits)), exponent - bits)
