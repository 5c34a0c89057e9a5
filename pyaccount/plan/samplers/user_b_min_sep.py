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
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Analysis
    from pyaccount.plan.samplers.base import Differentiable


class UserBMinSepPlan(Renewal):
    """b-min-sep sampling of users with several records."""

    has_derivatives: ClassVar[bool] = True

    def start(self, body: Body) -> str:
        """Return the start that the document gives."""
        return _sampler(body).start

    def records(self, body: Body) -> int:
        """Return the maximum number of records of a user."""
        return _sampler(body).records_per_user

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis of the whole run, or the one for shared records."""
        return super().analysis(document, body) if _sampler(body).attribution == "single" else shared_records.ANALYSIS

    def differentiable(self, document: Document, body: Body) -> Differentiable | None:
        """Return the derivatives if users share no records, else None."""
        return super().differentiable(document, body) if _sampler(body).attribution == "single" else None

    def law(self, body: Body) -> str:
        """Return the law: while the user is available, Bin(k, p) of its records join."""
        b, p = body.separation() or 1, body.sampling_probability()
        return (
            f"x = a renewal process: while available, Bin({self.records(body)}, {p!r}) records join, then all sit out {b - 1} "
            f"rounds; {START[self.start(body)][0]} at first"
        )

    def source(self, body: Body) -> str:
        """Return the section of the paper on users."""
        return (
            "Dong & Ganesh 2026 (arXiv:2602.09338), Section 6, for users that share no records; attained by gradients 1"
        )

    def sampling(self, body: Body) -> str:
        """Return the assumption that all records of a user sit out together."""
        return users_text(body)

    def recursion(self, body: Body, coefficients: Sequence[float], iterations: int) -> Recipe[_core.Sampled]:
        """Return the recipe of the core's mechanism in which several records may join at once."""
        b, p, warm = body.separation() or 1, body.sampling_probability(), self.start(body) == "warm"
        return Recipe("Sampled.users", (tuple(coefficients), iterations, b, p, self.records(body), warm))

    def unit_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse groups of users, and phases that protect single records."""
        return unit_refusals(document)

    def truncation_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse truncation, since a batch may contain several records of a user."""
        message = (
            "truncation is analysed for single records, not for users: several of a user's records may be in one batch, and each "
            "may survive or not; b-min-sep samples single records"
        )
        path = body.at("sampler", "truncate_to")
        return [document.problem("no-valid-bound", path, message, allowed="no truncation")]


def _sampler(body: Body) -> UserBMinSep:
    assert isinstance(body.sampler, UserBMinSep)
    return body.sampler


PLAN = UserBMinSepPlan()
