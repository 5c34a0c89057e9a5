"""δ of rounds that compose, from above: what is known without samples of a mechanism that is sampled for being tighter."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pyaccount import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.plan.rounds import Rounds

#: The relative width of what is composed, and the δ below which no more is resolved.
TOLERANCE, IGNORED = 1e-2, 1e-120


@lru_cache(maxsize=64)
def composed_bound(rounds: tuple[Rounds, ...], epsilon: float) -> float:
    """Return an upper bound on δ(ε) of these rounds. Raises `LimitError` at the deadline that was entered."""
    found = _core.answer_all([(_built(rounds), epsilon, None, TOLERANCE)], threads=1)
    return min(1.0, found[0].upper)


def composed_bounds(rounds: tuple[Rounds, ...], epsilons: Sequence[float]) -> list[float]:
    """Return an upper bound on δ at each of these ε ≥ 0, in any order. Raises `LimitError` at the deadline that was entered."""
    ascending = sorted(set(epsilons))
    ((points, _),) = _core.curve_all([(_built(rounds), ascending, TOLERANCE, IGNORED)], threads=1)
    bounds = {epsilon: min(1.0, upper) for epsilon, (_, upper) in zip(ascending, points, strict=True)}
    return [bounds[epsilon] for epsilon in epsilons]


def _built(rounds: tuple[Rounds, ...]) -> list[tuple[_core.RoundProfile, int]]:
    return [(one.part.build(), one.count) for one in rounds]
