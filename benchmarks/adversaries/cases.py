"""Random cases: a document of one to five phases, and the laws that adversaries can make of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from adversaries.component import Component, Impossible, Setting
from adversaries.kinds import ADJACENCIES, BUILDERS, OPTIONS, SAMPLED, SIMPLE, WRAPPERS
from adversaries.laws import Law, adaptive, products

#: How many pairs of data sets of a composition are drawn at random, beside those that are chosen.
DRAWN = 2


@dataclass(frozen=True)
class Case:
    """A document without its target, and pairs of data sets that it allows."""

    seed: int
    kind: str
    adjacency: str
    group: int
    phases: tuple[Component, ...]
    laws: tuple[Law, ...]
    #: Whether the laws contain a worst one for every ε.
    worst: bool

    def document(self, **more: Any) -> dict[str, Any]:
        privacy = {"adjacency": self.adjacency, **({"group_size": self.group} if self.group > 1 else {})}
        return {
            "pyaccount": 1,
            "name": f"case {self.seed} of {self.kind}",
            "privacy": privacy | more["privacy"],
            "phases": [one.body for one in self.phases],
            "accounting": {"tolerance": 0.05, **more.get("accounting", {})},
        }


def drawn(seed: int, kind: str) -> Case | None:
    """Return the case of a seed and a kind; None if the kind has none for what was drawn."""
    rng = random.Random(f"{seed} {kind}")
    at = Setting(rng, rng.choice(ADJACENCIES), rng.choice([1, 1, 1, 1, 2, 3]))
    try:
        phases = [BUILDERS[kind](at)]
    except Impossible:
        return None
    alone = kind in SAMPLED or kind in OPTIONS or rng.random() < 0.5
    others = list(SIMPLE)
    for _ in range(0 if alone else rng.choice([1, 1, 1, 2, 2, 3, 4])):
        try:
            phases.append(BUILDERS[rng.choice(others)](at))
        except Impossible:
            continue
    if len(phases) == 1 and kind in SIMPLE and not SIMPLE[kind].__name__.startswith("ordered") and rng.random() < 0.4:
        try:
            phases = [phases[0].repeated(rng.choice([2, 3, 10]))] if "count" not in phases[0].body else phases
        except Impossible:
            return None
    return Case(seed, kind, at.adjacency, at.group, tuple(phases), *_laws(rng, at, phases))


def composed(seed: int) -> Case:
    """Return a composition of two to five kinds, which follow from the seed as the parameters do."""
    rng = random.Random(f"{seed} composed")
    at = Setting(rng, rng.choice(ADJACENCIES), rng.choice([1, 1, 1, 1, 2, 3]))
    alone = [name for name in SIMPLE if not name.startswith("matrix ")]
    matrices = [name for name in SIMPLE if name.startswith("matrix ")]
    selections = [name for name in WRAPPERS if name.startswith("select ")]
    wanted, phases = rng.choice([2, 2, 3, 3, 4, 5]), list[Component]()
    while len(phases) < wanted:
        try:
            # Matrices and selections are one kind each: runs with a matrix are alike, and selections take long.
            kind = rng.choice([*alone, "phases", "parallel", rng.choice(matrices), rng.choice(selections)])
            phases.append(BUILDERS[kind](at))
        except Impossible:
            continue
    return Case(seed, "composition", at.adjacency, at.group, tuple(phases), *_laws(rng, at, phases))


def _laws(rng: random.Random, at: Setting, phases: list[Component]) -> tuple[tuple[Law, ...], bool]:
    if len(phases) == 1:
        return phases[0].pairs, phases[0].worst
    tight = [one.tight for one in phases]
    usual = [one.tight or one.pairs[0] for one in phases]
    largest = [max(one.pairs, key=lambda law: law.largest_loss()) for one in phases]
    least = [max(one.pairs, key=lambda law: law.reversed().largest_loss()) for one in phases]
    combinations = [usual, largest, least, *([rng.choice(one.pairs) for one in phases] for _ in range(DRAWN))]
    if at.replaced:
        # Both records of a replacement may be either one, for each phase.
        combinations[3:] = [[law.reversed() if rng.random() < 0.5 else law for law in one] for one in combinations[3:]]
    distinct = {tuple(map(id, one)): one for one in combinations}
    made = [products(one) for one in distinct.values()]
    several = [one for one in phases if len(one.turned or one.pairs) > 1]
    if several:
        last = several[-1]
        first = products([one.tight or one.pairs[0] for one in phases if one is not last])
        made.append(adaptive(first, last.turned or last.pairs, rng.uniform(0.0, 4.0)))
    return tuple(made), all(law is not None for law in tight)
