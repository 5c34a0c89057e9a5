"""b-min-sep sampling of users: sampled on the whole run, or public participations if users may share records."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.document.samplers import UserBMinSep
from pyaccount.plan.recipe import Recipe
from pyaccount.plan.samplers import shared_records
from pyaccount.plan.samplers.renewal import START, Renewal
from pyaccount.plan.samplers.shared_records import unit_refusals, users_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount import _core
    from pyaccount.errors import Problem
    from pyaccount.plan.samplers.base import Differentiable
    from pyaccount.plan.theorem import Theorem


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

    def sampling(self) -> str:
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
        return [self.asked.problem("no-valid-bound", path, message, allowed="no truncation")]
