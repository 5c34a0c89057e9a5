"""A question for pyaccount and for an oracle, and whether the answers have something in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

Range = tuple[float, float]


def guarantee(document: dict[str, Any]) -> tuple[Range, float]:
    """What is certified of the document's blank, and with which probability that fails."""
    import pyaccount  # the page is written without it

    found = pyaccount.certify(document).data.guarantee
    solved = document["privacy"]["epsilon"] == "solve"
    low, high = (found.epsilon_lower, found.epsilon) if solved else (found.delta_lower, found.delta)
    return (low or 0.0, high), found.failure_probability


@dataclass(frozen=True)
class Check:
    """A question for pyaccount and an oracle. The document has the blank; the oracle gives the range that it vouches for."""

    mechanism: str
    setting: str
    document: dict[str, Any]
    oracle: str
    answer: Callable[[], Range]
    #: Why the oracle is known to disagree.
    why: str = ""
    ours: Callable[[dict[str, Any]], tuple[Range, float]] = guarantee
    #: The quantity, where it is not the document's blank.
    quantity: str = ""

    @property
    def asked(self) -> str:
        """The quantity."""
        if self.quantity:
            return self.quantity
        privacy = self.document["privacy"]
        if privacy["epsilon"] == "solve":
            return f"ε at δ = {privacy['delta']:g}"
        return f"δ at ε = {privacy['epsilon']:g}"


@dataclass(frozen=True)
class Seen:
    """The outcome of a check, as it is kept."""

    mechanism: str
    setting: str
    asked: str
    lower: float
    upper: float
    #: The probability that the bounds fail.
    failure: float
    oracle: str
    oracle_lower: float
    oracle_upper: float | None
    agrees: bool
    why: str


def seen(check: Check) -> Seen:
    """Ask both."""
    (lower, upper), failure = check.ours(check.document)
    low, high = check.answer()
    return Seen(
        check.mechanism,
        check.setting,
        check.asked,
        lower,
        upper,
        failure,
        check.oracle,
        low,
        None if math.isinf(high) else high,
        # Two ranges of one number have something in common.
        low <= upper and lower <= high,
        check.why,
    )


def document(mechanism: dict[str, Any], sigma: float | None, **privacy: Any) -> dict[str, Any]:
    """With the privacy that is asked for; add-remove unless told otherwise. Phases have their own σ."""
    return {
        "pyaccount": 1,
        "name": "validation",
        "privacy": {"adjacency": "add-remove", **privacy},
        **({} if sigma is None else {"noise": {"multiplier": sigma}}),
        "accounting": {"profile": [], "seed": 20261123},
        **mechanism,
    }


def near(value: float, error: float) -> Range:
    """What an oracle with this relative error vouches for."""
    return value * (1.0 - error), value * (1.0 + error)


def at_most(value: float) -> Range:
    """An upper bound vouches for nothing below it."""
    return 0.0, value


def poisson(rate: float, rounds: int, **sampler: Any) -> dict[str, Any]:
    """Poisson sampling."""
    training = {"sampling_probability": rate, "iterations": rounds}
    return {"training": training, "sampler": {"kind": "poisson", **sampler}}
