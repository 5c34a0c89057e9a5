"""One phase of a document, and its real mechanism on concrete neighbouring data sets."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adversaries.laws import Law, power, product, products

Body = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What is common to the phases of a document."""

    rng: random.Random
    adjacency: str
    group: int = 1

    @property
    def replaced(self) -> bool:
        return self.adjacency == "replace-one"

    def number(self, low: float, high: float, digits: int = 3) -> float:
        """Return a number with few digits, uniform in its logarithm."""
        return float(f"{low * (high / low) ** self.rng.random():.{digits}g}")

    def probability(self, low: float = 0.01) -> float:
        return self.rng.choice([self.number(low, 0.1), round(self.rng.uniform(0.1, 0.95), 3), 0.5])


@dataclass(frozen=True)
class Component:
    """A phase, and the laws of its output on pairs of data sets.

    `pairs` are the pairs that were built; the data set with the record is first. `worst` says that they contain a worst
    pair for every ε, as a theorem has it, so that what is said to be attained can be refuted by them. `tight` is one pair that
    is the worst for every ε at once, so that compositions of it are the worst compositions.
    """

    body: Body
    pairs: tuple[Law, ...]
    worst: bool = False
    tight: Law | None = None
    #: The pairs of the records of a kind that the certificate names.
    records: dict[str, tuple[Law, ...]] = field(default_factory=dict)
    #: The pairs among which data sets may be chosen after looking at what was released before; all, if none are named.
    turned: tuple[Law, ...] = ()

    def repeated(self, count: int) -> Component:
        """Return `count` independent runs."""
        if count == 1:
            return self
        return Component(
            self.body | {"count": count},
            tuple(power(law, count) for law in self.pairs),
            self.tight is not None,
            None if self.tight is None else power(self.tight, count),
        )


Builder = Callable[[Setting], Component]


class Impossible(Exception):  # noqa: N818 - it is not an error
    """The kind has no mechanism in this setting, such as groups of what protects single records."""


def attained(body: Body, law: Law, *others: Law) -> Component:
    """Return a component whose first pair is the worst for every ε."""
    return Component(body, (law, *others), True, law)


def mechanism(kind: str, **keys: Any) -> Body:
    return {"mechanism": {"kind": kind, **keys}}


def together(components: list[Component], choose: Callable[[Component], Law]) -> Law:
    """Return the law of all phases, one pair chosen for each."""
    return products([choose(one) for one in components])


__all__ = ["Body", "Builder", "Component", "Impossible", "Setting", "attained", "mechanism", "product", "together"]
