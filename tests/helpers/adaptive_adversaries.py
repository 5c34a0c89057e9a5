"""Adversaries that choose each mechanism by looking at all results before it, exactly: every strategy is searched.

An entry is a pair of finite laws (p, q) with what it costs. A state is what was spent, and the loss so far, ln P/Q. The
value of a state is the most that any strategy reaches from there, under P: a maximum over the entries that the filter
admits, and over stopping, of means of the values after each outcome. So it is a maximum over all strategies, deterministic
and randomised ones. Nothing of the package is used, except what is tested: costs and `admits`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

Spent = tuple[float, ...]


class Rule(Protocol):
    """What a filter or an odometer decides."""

    @property
    def nothing(self) -> Spent: ...

    def after(self, spent: Spent, cost: Spent) -> Spent: ...


class Choice(NamedTuple):
    """A mechanism that may be chosen: the laws of its outcomes on two neighbouring data sets, and its cost."""

    p: tuple[float, ...]
    q: tuple[float, ...]
    cost: Spent

    def losses(self) -> list[tuple[float, float]]:
        """Return each outcome's probability under P, and its loss."""
        pairs = zip(self.p, self.q, strict=True)
        return [(p, math.inf if q == 0.0 else math.log(p / q)) for p, q in pairs if p > 0.0]


def randomized_response(epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the pair of pure ε-DP."""
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    return (likely, 1.0 - likely), (1.0 - likely, likely)


def excess(epsilon: float) -> Callable[[float], float]:
    """Return (1 − e^{ε−L})_+, whose mean under P is δ(ε)."""
    return lambda loss: 1.0 if loss == math.inf else max(0.0, -math.expm1(epsilon - loss))


def worst(
    rule: Rule,
    menu: Sequence[Choice],
    depth: int,
    end: Callable[[Spent, float], float],
    admits: Callable[[Spent, Spent], bool],
) -> float:
    """Return the largest mean of `end(spent, loss)` over all strategies with at most `depth` entries."""
    known: dict[Any, float] = {}

    def value(left: int, spent: Spent, loss: float) -> float:
        key = (left, tuple(round(one, 9) for one in spent), round(loss, 9) if loss < math.inf else loss)
        if key not in known:
            best = end(spent, loss)
            for choice in menu if left else ():
                if admits(spent, choice.cost):
                    after = rule.after(spent, choice.cost)
                    best = max(best, math.fsum(p * value(left - 1, after, loss + more) for p, more in choice.losses()))
            known[key] = best
        return known[key]

    return value(depth, rule.nothing, 0.0)
