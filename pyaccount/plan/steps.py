"""Several records, from what is proven of one: the group operation on the profile of a whole phase.

A theorem about one record holds for every pair of neighbouring data sets, whatever was released before. Data sets that differ
in k records are the ends of a chain of k neighbours, so that the outputs of the phase on them have at least the trade-off
function of k steps (Dong, Roth & Su 2022, Theorem 2.14), of which each has the profile of one record, in both directions. A
record that is replaced is two steps under zero-out: from the first record to an empty place, and from there to the second.

The rounds of one record are composed, and bounded from above at some ε. These points are guarantees (ε, δ), from which
`groups_of_stated` proves the profile of the steps. If there is a bound for public participations of the whole group, points of it
are added. The lower convex hull of all points is used: the profile is convex, and below each of them. This is done where no
theorem about several records is implemented: it is looser than one would be, since the records of a group share the noise. The
lower end is that of one record, whose data sets are among those that are protected.

**Hypotheses**, each of which `steps_of` checks.

* The guarantee of one record holds on every data set of the chain. If batches have a fixed number of draws, it depends on the
  number of records, which under add-remove changes from step to step: such groups are refused.
* Two steps are a replacement if contributions are those of a training run, which are clipped whatever they are compared with.
  Sensitivities of mechanisms are stated under the adjacency of the document, and say nothing about another one.
* A user who is replaced has other records, so that the batches of users that share records with it change: refused.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Self

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.document.tree import Node, TrainingNode
from pyaccount.document.words import Adjacency
from pyaccount.plan.common import neighbours_assumption
from pyaccount.plan.mechanisms.groups_of_stated import profile_of_steps
from pyaccount.plan.protection import Case, Protection, RunCase
from pyaccount.plan.rounds import Bounds, DirectedBounds, chosen, compositions, largest_loss
from pyaccount.plan.theorem import Around, Reduction
from pyaccount.profiles import ProfileKind, Rounds

#: The number of points at which one record's profile is computed, the tolerance there, and the δ beyond which it is not resolved.
POINTS, TOLERANCE, FAR = 512, 1e-3, 1e-60
#: Powers of 2 that are tried for the largest ε: seldom more than the first of them.
REACHES = ((-10, 8), (8, 12), (12, 16))
REMARK = (
    "A group of {group} is {steps} steps between neighbours; what is known of one step is combined by the group operation, as if "
    "the noise were worst for each step anew. The profile of one step is computed from above at about {points} points, with a "
    "tolerance of {tolerance:g}, and not resolved below δ = {far:g}."
)
LOWER_END = "one record of the group: "


def steps_of(case: Case) -> dict[Adjacency, int]:
    """Return the adjacencies of the steps that may be taken for a phase, with how many each record is; empty for single steps."""
    privacy, runs = case.asked.privacy, list(case.node.runs())
    if privacy.group_size == "solve" or any(run.protects_users for run in runs):
        return {}
    found: dict[Adjacency, int] = {}
    drawn = any(run.sampler.fixed_draws for run in runs)
    if privacy.group_size > 1 and not (drawn and privacy.adjacency == "add-remove"):
        found[privacy.adjacency] = 1
    if privacy.adjacency == "replace-one" and isinstance(case.node, TrainingNode):
        found["zero-out"] = 2
    return found


def _drawn_several_times(case: RunCase) -> bool:
    """Whether one round may contain a record more than once."""
    return case.node.sampler.fixed_draws or getattr(case.node.sampler, "draws_per_iteration", 1) != 1


@dataclass(frozen=True, slots=True)
class StepsProfile(ProfileKind):
    """The profile of several steps, each with the profile of both compositions; it is symmetric."""

    constructor: ClassVar[str] = "steps"
    called: ClassVar[str | None] = "a mechanism of which only the profile of one record is known"
    without_divergence: ClassVar[str] = ": beyond the points of one record's profile its divergences are not known"

    remove: tuple[Rounds, ...]
    add: tuple[Rounds, ...]
    steps: int
    #: Rounds that bound the whole group, in both directions; empty if none are known.
    whole: tuple[tuple[Rounds, ...], ...] = ()

    def _made(self) -> _core.RoundProfile:
        points = dict(profile_of_steps(_points(self.remove, self.add), self.steps).above)
        for epsilon, delta in _points(*self.whole) if self.whole else ():
            points[epsilon] = min(delta, points.get(epsilon, 1.0))
        return _core.RoundProfile.guarantees(tuple(sorted(points.items())))

    def order(self) -> tuple[object, ...]:
        """Return the key by which profiles are sorted."""
        sides = (self.remove, self.add, *self.whole)
        return (
            self.constructor,
            self.steps,
            *([(item.profile.order(), item.count) for item in side] for side in sides),
        )


@lru_cache(maxsize=64)
def _points(remove: tuple[Rounds, ...], add: tuple[Rounds, ...]) -> tuple[tuple[float, float], ...]:
    """Return upper bounds on the larger δ of two compositions, at increasing ε."""

    def of_side(rounds: tuple[Rounds, ...], epsilons: list[float]) -> list[float]:
        choose = chosen(rounds)
        return [choose(each) for each in zip(*(_bounds(one, epsilons) for one in compositions(rounds)), strict=True)]

    def above(epsilons: list[float]) -> list[float]:
        both = [of_side(rounds, epsilons) for rounds in dict.fromkeys((remove, add))]
        return [max(bounds) for bounds in zip(*both, strict=True)]

    for least, most in REACHES:
        doubled = [2.0**k for k in range(least, most)]
        last = next(
            (epsilon for epsilon, delta in zip(doubled, above(doubled), strict=True) if delta <= 10.0 * FAR), 0.0
        )
        if last > 0.0:
            break
    last = last or doubled[-1]
    # Half of the points have equal distances in ε, but for small ones; the others have equal ratios of δ, about.
    coarse = [last * (k / (POINTS // 2)) ** 1.5 for k in range(POINTS // 2 + 1)]
    falls = [-math.log(max(delta, FAR)) for delta in above(coarse)]
    steepest = max(falls)
    fine = {_between(falls, coarse, steepest * k / (POINTS // 2)) for k in range(POINTS // 2)}
    epsilons = sorted({*coarse, *fine})
    points = dict(zip(epsilons, above(epsilons), strict=True))
    bounded = [loss.at_most for rounds in (remove, add) if (loss := largest_loss(rounds)) is not None]
    if len(bounded) == len(DIRECTIONS):
        # From the largest loss on δ is 0.
        points[max(bounded)] = 0.0
    return tuple(sorted(points.items()))


def _bounds(rounds: tuple[Rounds, ...], epsilons: list[float]) -> list[float]:
    """Return upper bounds on δ at increasing ε. Raises `LimitError` at the deadline that was entered."""
    built = [(item.profile.build(), item.count) for item in rounds]
    ((points, *_),) = _core.curve_all([(built, epsilons, TOLERANCE, FAR)], threads=1)
    return [min(1.0, upper) for _, upper in points]


def _between(falls: list[float], epsilons: list[float], fall: float) -> float:
    """Return an ε at about this fall of ln δ, by interpolation; any ε would do."""
    right = min(max(1, bisect_left(falls, fall)), len(falls) - 1)
    share = (fall - falls[right - 1]) / max(falls[right] - falls[right - 1], 1e-300)
    return epsilons[right - 1] + min(max(share, 0.0), 1.0) * (epsilons[right] - epsilons[right - 1])


@dataclass(frozen=True, repr=False)
class OfSteps(Around):
    """The theorem of a phase for a group, or for a replaced record, that follows from one about one record."""

    #: The adjacency of a step, and how many steps each record of the group is.
    adjacency: Adjacency
    each: int

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.each * int(self.asked.privacy.group_size)

    @property
    def alike(self) -> bool:  # type: ignore[override]
        """Whether rounds may be grouped: a phase is one round here."""
        return False

    @property
    def gaussian(self) -> bool:
        """Whether the rounds are Gaussian mechanisms, which is not used here."""
        return False

    def on(self, node: Node, asked: Protection | None = None) -> Self:
        """Return both theorems for another node; the inner one is still about one record."""
        one = None if asked is None else asked.protecting(self.adjacency, 1)
        return replace(self, asked=asked or self.asked, node=node, inner=self.inner.on(node, one))

    def words(self) -> Reduction:
        """Return the theorem about one record, with the steps."""
        usual, privacy = self.inner.words(), self.asked.privacy
        group = "one record" if privacy.group_size == 1 else f"{privacy.group_size} records"
        remark = REMARK.format(
            group=group, steps=f"{self.steps} {self.adjacency}", points=POINTS, tolerance=TOLERANCE, far=FAR
        )
        one, whole = neighbours_assumption(self.inner.asked.privacy), neighbours_assumption(privacy)
        return replace(
            usual,
            theorem=f"{usual.theorem}; {self.steps} steps",
            source=f"{usual.source}; Dong, Roth & Su 2022, Theorem 2.14",
            tight=False,
            remark=remark if usual.remark is None else f"{usual.remark} {remark}",
            lower_end=f"{LOWER_END}{usual.lower_end or 'the two data sets that attain the bound on it, over all rounds.'}",
            assumed=tuple(whole if assumed == one else assumed for assumed in usual.assumed),
        )

    def bounds(self) -> DirectedBounds:
        """Return one round for the whole phase."""
        return self._in_steps(self.inner.bounds(), self._known())

    def public(self) -> DirectedBounds:
        """Return the public rounds for the group; of a mechanism that has none for groups, steps of those of one record."""
        if isinstance(self.node, TrainingNode):
            return self.inner.on(self.node, self.asked).public()
        return self._in_steps(self.inner.public(), None)

    def _known(self) -> DirectedBounds | None:
        """Return rounds that bound the whole group if its participations are public; None if they are not known.

        A record that may be drawn several times in a round is counted once by `public`, which is no bound then.
        """
        if not isinstance(self.node, TrainingNode) or _drawn_several_times(RunCase(self.asked, self.node)):
            return None
        return self.inner.on(self.node, self.asked).public()

    def _in_steps(self, one: DirectedBounds, known: DirectedBounds | None) -> DirectedBounds:
        pairs = [(side["remove"].upper, side["add"].upper) for side in (one, known) if side is not None]
        upper = (Rounds(StepsProfile(*pairs[0], self.steps, *pairs[1:]), 1),)
        return {direction: Bounds(upper, one[direction].lower) for direction in DIRECTIONS}
