"""Private selection: some phases are run a random number of times, and the best run is released.

The number of runs K has a law of `LAWS`, which is not told what the data are. Runs are independent, each on fresh randomness;
what a run releases has a score that is part of it, or is computed from it and from public data. The run with the best score is
released, ties are broken by the releases alone, and neither K nor anything else of the other runs is. If K = 0, a fixed symbol is
released.

- **From above**: the core bounds the profile of the best run by the profiles of one run in both directions, for every such order
  (`RoundProfile.selection`; the proof is at the head of its module). The bound is for one selection, and composes.
- **From below**: a score that is drawn at random is one of these scores, and then the best run is an ordinary one. With K ≥ 1
  its profile is that of one run. With P(K = 0) = r, the symbol shows whether there was a run: with probability r nothing is
  released, and otherwise a run.

A *fixed* number of runs is that many runs, composed: the best of k runs can reveal as much as all of them. So is a sweep that
publishes every run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.tree import Best
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import OF_DOCUMENT, inner_refusals, joined, one_run, pairs_of_run
from pyaccount.plan.mechanisms.base import FRESH
from pyaccount.plan.rounds import Bounds, DirectedBounds, combine, one_round
from pyaccount.plan.theorem import CombinedTheorem, Reduction
from pyaccount.profiles import Rounds, SelectionProfile, SometimesProfile
from pyaccount.rounding import shortest

#: The laws of the number of runs, and what their parameters are called.
LAWS: dict[str, tuple[str, ...]] = {
    "negative-binomial": ("shape", "stopping"),
    "geometric": ("stopping",),
    "logarithmic": ("stopping",),
    "poisson": ("mean",),
    "binomial": ("trials", "probability"),
}


class RunLaw(NamedTuple):
    """A law of the number of runs: its name in `LAWS`, and its parameters in that order."""

    name: str
    parameters: tuple[float, ...]

    def none(self) -> float:
        """Return the probability that nothing is run: 0 for the laws that are truncated at one run."""
        if self.name == "poisson":
            return math.exp(-self.parameters[0])
        if self.name == "binomial":
            trials, probability = self.parameters
            return math.exp(trials * math.log1p(-probability))
        return 0.0

    def mean(self) -> float:
        """Return the expected number of runs.

        (1 − γ)/γ · η/(1 − γ^η) for the truncated negative binomial law, (1 − γ)/(γ ln(1/γ)) for η = 0: Papernot & Steinke 2022
        (arXiv:2110.03620), Definition 1.
        """
        if self.name == "poisson":
            return self.parameters[0]
        if self.name == "binomial":
            return self.parameters[0] * self.parameters[1]
        shape, stopping = {"geometric": (1.0, *self.parameters), "logarithmic": (0.0, *self.parameters)}.get(
            self.name, self.parameters
        )
        exponent = shape * math.log(stopping)
        share = -shape / math.expm1(exponent) if exponent else -1.0 / math.log(stopping)
        return (1.0 - stopping) / stopping * share


def selected(run: DirectedBounds, law: RunLaw, count: int = 1) -> DirectedBounds:
    """Return `count` selections, each of the best of a random number of runs, from the rounds of one run.

    Raises:
        DomainError: When a profile is built: the law is unknown, or a parameter is outside its range; infinite means and fixed
            numbers of runs are among these.
    """
    remove, add = (one_round(run[direction].upper, below=False) for direction in DIRECTIONS)
    bounds: DirectedBounds = {}
    for direction in DIRECTIONS:
        best = SelectionProfile(remove, add, law.name, law.parameters, reverse=direction == "add")
        bounds[direction] = Bounds((Rounds(best, count),), _from_below(run, direction, law, count))
    return bounds


def _from_below(run: DirectedBounds, direction: Direction, law: RunLaw, count: int) -> tuple[Rounds, ...]:
    lower = run[direction].lower
    none = law.none()
    if none == 0.0:
        return tuple(Rounds(item.profile, count * item.count) for item in lower)
    # The probability of a run is rounded down.
    return (Rounds(SometimesProfile(one_round(lower, below=True), (1.0 - none) * (1.0 - 1e-12)), count),)


SECRET_RUNS = Assumed(
    "How many runs there were, and everything but the best of them, is secret; the number of runs is drawn by the stated law, "
    "and depends on nothing else.",
    "The number of runs, drawn by the stated law, and all but the best is secret.",
)

SCORE = Assumed(
    "The score by which the best run is chosen is part of what a run releases, or computed from it and from public data; ties "
    "are decided by what the runs release, or at random. If there is no run, a fixed symbol is released.",
    "Runs are scored by what they release and by public data, nothing else.",
)


class BestTheorem(CombinedTheorem):
    """The best of several runs of phases."""

    node: Best

    def law(self) -> RunLaw:
        """Return the law of the number of runs."""
        assert self.node.law is not None
        return RunLaw(self.node.law.kind, self.node.law.parameters())

    def words(self) -> Reduction:
        """Return the theorems of the phases, and that of the selection, as one."""
        parts, law = [one.words() for one in self.inner], self.law()
        texts = dict.fromkeys(text for part in parts for text in part.assumed)
        return Reduction(
            path=self.node.path,
            subject=f"the best of a {law.name} number of runs, {shortest(float(f'{law.mean():.4g}'))} on average, of: "
            f"{', then '.join(part.subject for part in parts)}",
            theorem="private selection from the profile of one run",
            source=joined(
                [
                    *(part.source for part in parts),
                    "Koskela, Redberg & Wang 2024 (arXiv:2402.06701) and Papernot & Steinke 2022 (arXiv:2110.03620), "
                    "sharpened in docs/mechanisms.md",
                ]
            ),
            pair=f"one run: {pairs_of_run(self.inner, parts)}",
            rounds=str(self.node.count),
            tight=False,
            remark=None,
            assumed=(*texts, FRESH, SECRET_RUNS, SCORE),
            lower_end="a score that is drawn at random, so that the best run is one run, on the two data sets of each phase",
        )

    def bounds(self) -> DirectedBounds:
        """Return `count` selections."""
        return selected(one_run(self.inner), self.law(), self.node.count)

    def refusals(self) -> list[Problem]:
        """Refuse what the phases refuse, and phases that are analysed by drawing samples."""
        return inner_refusals(self.inner, OF_DOCUMENT)

    def public(self) -> DirectedBounds:
        """Return the selections from runs with public participations."""
        run = combine([one.public() for one in self.inner], merge_gaussians=True)
        return selected(run, self.law(), self.node.count)
