"""Private selection: a body is run a random number of times, and the best run is released.

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
from pyaccount.plan.rounds import Bounds, DirectedBounds, one_round
from pyaccount.profiles import Rounds, SelectionProfile, SometimesProfile

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
