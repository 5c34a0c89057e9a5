"""b-min-sep sampling: on the whole run; with a separation of 1 and no matrix, the Poisson sampling that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.document import BMinSep
from pyaccount.plan.matrices import strategy
from pyaccount.plan.samplers import poisson
from pyaccount.plan.samplers.renewal import Renewal

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Analysis


class BMinSepPlan(Renewal):
    """Single records."""

    has_derivatives: ClassVar[bool] = True

    def start(self, body: Body) -> str:
        """As the document says."""
        assert isinstance(body.sampler, BMinSep)
        return body.sampler.start

    def analysis(self, document: Document, body: Body) -> Analysis:
        """On the whole run, unless its rounds are independent."""
        samples = document.accounting.method == "monte-carlo" or body.truncation() is not None
        if not samples and body.separation() == 1 and _independent(document, body):
            return poisson.ANOTHER
        return super().analysis(document, body)

    def has_moments(self, body: Body) -> bool:
        """Where columns do not overlap."""
        return body.matrix.banded

    def truncation_refusals(self, document: Document, body: Body) -> list[Problem]:
        """The recursion is for columns that do not overlap."""
        if body.matrix.banded:
            return []
        message = (
            "with truncated batches the recursion needs a banded Toeplitz matrix, whose columns do not overlap; balls in bins "
            "is analysed with any matrix"
        )
        allowed = "a banded matrix, or the sampler balls-in-bins"
        return [document.problem("no-valid-bound", body.at("matrix", "kind"), message, allowed=allowed)]

    def largest_rate(self, body: Body) -> float:
        """With a cold start that of the first round."""
        return body.sampling_probability() if self.start(body) == "cold" else super().largest_rate(body)


def _independent(document: Document, body: Body) -> bool:
    """Whether the matrix is the identity, by its kind or as one that has a single band."""
    if body.matrix.kind == "identity":
        return True
    if body.training.iterations == "solve" or getattr(body.matrix, "bands", None) != 1:
        return False
    return strategy(document, body).coefficients == (1.0,)


PLAN = BMinSepPlan()
