"""b-min-sep sampling of records and of users, sampled on the whole run.

With a separation of 1 and no matrix it is Poisson sampling. If users may share records, participations are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.document.samplers import BMinSep, UserBMinSep
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import GROUP_LEMMA, group_refusals, unknown_group
from pyaccount.plan.matrices import strategy
from pyaccount.plan.protection import RunCase
from pyaccount.plan.samplers import poisson, shared_records
from pyaccount.plan.samplers.base import Differentiable
from pyaccount.plan.samplers.renewal import START, STEP_COST, Renewal
from pyaccount.plan.samplers.shared_records import unit_refusals, users_text
from pyaccount.plan.samplers.whole_run import PATTERNS
from pyaccount.plan.theorem import Theorem
from pyaccount.profiles.base import Recipe


class BMinSepPlan(Renewal[BMinSep]):
    """b-min-sep sampling of single records."""

    has_derivatives: ClassVar[bool] = True

    def start(self) -> str:
        """Return the start that the document gives."""
        return self.sampler.start

    def theorem(self) -> Theorem:
        """Return the theorem of the whole run, or that of Poisson sampling if the rounds are independent."""
        samples = self.asked.accounting.method == "monte-carlo" or self.node.truncation() is not None
        if not samples and self.node.separation() == 1 and _independent(self):
            return poisson.SameAsPoisson(self.asked, self.node, self)
        return super().theorem()

    def has_moments(self) -> bool:
        """Whether moments are computed: only for single records, if columns do not overlap."""
        return self.node.matrix.banded and self.group() == 1

    def group(self) -> int:
        """Return how many records are protected together; 1 while that is the blank."""
        group = self.asked.privacy.group_size
        return group if isinstance(group, int) else 1

    def unit_refusals(self) -> list[Problem]:
        """Refuse groups that no automaton is made for: of many records, or whose own columns overlap."""
        group, b = self.group(), self.node.separation() or 1
        if group > 1 and not self.node.matrix.banded:
            return group_refusals(self)
        if group > 1 and (ways(b, group) > MOST_WAYS or not poisson.countable(self, group)):
            message = (
                f"the rounds that {group} records wait, of up to {b}, have too many combinations; smaller groups are covered, "
                f"and {GROUP_LEMMA}"
            )
            return [self.asked.refusal(("privacy", "group_size"), message, allowed="a smaller group")]
        return unknown_group(self)

    def law(self) -> str:
        """Return the law of one record, or of the sum of several."""
        single = super().law()
        return single if self.group() == 1 else f"{single}; x is the sum of {self.group()} such patterns"

    def source(self) -> str:
        """Return the paper that analyses the sampler; for groups, the proof for any law of patterns."""
        return super().source() if self.group() == 1 else PATTERNS

    def recursion(self, coefficients: Sequence[float], iterations: int) -> Recipe[_core.Sampled]:
        """Return the recipe of the core's mechanism; for groups, an automaton of the ages of all records."""
        if self.group() == 1:
            return super().recursion(coefficients, iterations)
        b, p, warm = self.node.separation() or 1, self.node.sampling_probability(), self.start() == "warm"
        return Recipe("Sampled.group", (tuple(coefficients), iterations, b, p, warm, self.group()))

    def step_cost(self) -> float:
        """Return the nanoseconds of a step: for groups, of each way from one state to the next."""
        if self.group() == 1:
            return super().step_cost()
        return STEP_COST + poisson.WAY_COST * ways(self.node.separation() or 1, self.group())

    def differentiable(self) -> Differentiable | None:
        """Return the derivatives for single records, else None."""
        return super().differentiable() if self.group() == 1 else None

    def truncation_refusals(self) -> list[Problem]:
        """Refuse matrices whose columns overlap, which the recursion for truncated batches does not cover."""
        if self.node.matrix.banded:
            return []
        message = (
            "with truncated batches the recursion needs a banded Toeplitz matrix, whose columns do not overlap; balls in bins "
            "is analysed with any matrix"
        )
        allowed = "a banded matrix, or the sampler balls-in-bins"
        return [self.asked.refusal(self.node.at("matrix", "kind"), message, allowed=allowed)]

    def composed_neighbour(self) -> dict[str, Any] | None:
        """Return cyclic Poisson sampling of the same separation, if columns do not overlap."""
        if not self.node.matrix.banded:
            return None
        return {
            "sampler": {"kind": "cyclic-poisson", "partitions": self.node.separation()},
            "training": {
                "participation_rate": self.node.participation_rate(),
                "iterations": self.node.training.iterations,
            },
            "accounting": {},
        }

    def largest_rate(self) -> float:
        """Return the largest rate of a round; with a cold start that is the rate of the first round."""
        return self.node.sampling_probability() if self.start() == "cold" else super().largest_rate()


#: The largest number of ways from the states of a group to the next ones for which an automaton is made.
MOST_WAYS = 1 << 15


def ways(separation: int, records: int) -> int:
    """Return how many ways lead out of all states of a group: one more than how many records are free.

    The others have one of b − 1 ages each, in C(busy + b − 2, busy) combinations.
    """
    if separation == 1:
        return records + 1
    return sum((records - busy + 1) * math.comb(busy + separation - 2, busy) for busy in range(records + 1))


def _independent(case: RunCase) -> bool:
    """Whether the matrix is the identity, by its kind or because its only band is 1."""
    if case.node.matrix.kind == "identity":
        return True
    if case.node.training.iterations == "solve" or getattr(case.node.matrix, "bands", None) != 1:
        return False
    return strategy(case).coefficients == (1.0,)


class UserBMinSepPlan(Renewal[UserBMinSep]):
    """b-min-sep sampling of users with several records."""

    has_derivatives: ClassVar[bool] = True

    def start(self) -> str:
        """Return the start that the document gives."""
        return self.sampler.start

    def records(self) -> int:
        """Return the maximum number of records of a user."""
        return self.sampler.records_per_user

    def theorem(self) -> Theorem:
        """Return the theorem of the whole run, or the one for shared records."""
        if self.sampler.attribution == "single":
            return super().theorem()
        return shared_records.SharedRecords(self.asked, self.node, self)

    def differentiable(self) -> Differentiable | None:
        """Return the derivatives if users share no records, else None."""
        return super().differentiable() if self.sampler.attribution == "single" else None

    def law(self) -> str:
        """Return the law: while the user is available, Bin(k, p) of its records join."""
        b, p = self.node.separation() or 1, self.node.sampling_probability()
        return (
            f"x = a renewal process: while available, Bin({self.records()}, {p!r}) records join, then all sit out {b - 1} "
            f"rounds; {START[self.start()][0]} at first"
        )

    def source(self) -> str:
        """Return the section of the paper on users."""
        return (
            "Dong & Ganesh 2026 (arXiv:2602.09338), Section 6, for users that share no records; attained by gradients 1"
        )

    def sampling(self) -> Assumed:
        """Return the assumption that all records of a user sit out together."""
        return users_text(self.node, self.sampler)

    def recursion(self, coefficients: Sequence[float], iterations: int) -> Recipe[_core.Sampled]:
        """Return the recipe of the core's mechanism in which several records may join at once."""
        b, p, warm = self.node.separation() or 1, self.node.sampling_probability(), self.start() == "warm"
        return Recipe("Sampled.users", (tuple(coefficients), iterations, b, p, self.records(), warm))

    def unit_refusals(self) -> list[Problem]:
        """Refuse groups of users, and phases that protect single records."""
        return unit_refusals(self.asked)

    def truncation_refusals(self) -> list[Problem]:
        """Refuse truncation, since a batch may contain several records of a user."""
        message = (
            "truncation is analysed for single records, not for users: several of a user's records may be in one batch, and each "
            "may survive or not; b-min-sep samples single records"
        )
        path = self.node.at("sampler", "truncate_to")
        return [self.asked.refusal(path, message, allowed="no truncation")]
