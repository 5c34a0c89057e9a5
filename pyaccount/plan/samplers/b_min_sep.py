"""b-min-sep sampling on the whole run; with a separation of 1 and no matrix it is Poisson sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document.samplers import BMinSep
from pyaccount.plan.matrices import strategy
from pyaccount.plan.samplers import poisson
from pyaccount.plan.samplers.renewal import Renewal

if TYPE_CHECKING:
    from pyaccount.errors import Problem
    from pyaccount.plan.protection import RunCase
    from pyaccount.plan.theorem import Theorem


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
        """Whether moments are computed: only if columns do not overlap."""
        return self.node.matrix.banded

    def truncation_refusals(self) -> list[Problem]:
        """Refuse matrices whose columns overlap, which the recursion for truncated batches does not cover."""
        if self.node.matrix.banded:
            return []
        message = (
            "with truncated batches the recursion needs a banded Toeplitz matrix, whose columns do not overlap; balls in bins "
            "is analysed with any matrix"
        )
        allowed = "a banded matrix, or the sampler balls-in-bins"
        return [self.asked.problem("no-valid-bound", self.node.at("matrix", "kind"), message, allowed=allowed)]

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


def _independent(case: RunCase) -> bool:
    """Whether the matrix is the identity, by its kind or because its only band is 1."""
    if case.node.matrix.kind == "identity":
        return True
    if case.node.training.iterations == "solve" or getattr(case.node.matrix, "bands", None) != 1:
        return False
    return strategy(case).coefficients == (1.0,)
