"""b-min-sep sampling on the whole run; with a separation of 1 and no matrix it is Poisson sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document.samplers import BMinSep
from pyaccount.plan.matrices import strategy
from pyaccount.plan.samplers import poisson
from pyaccount.plan.samplers.renewal import Renewal

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Analysis


class BMinSepPlan(Renewal):
    """b-min-sep sampling of single records."""

    has_derivatives: ClassVar[bool] = True

    def start(self, body: Body) -> str:
        """Return the start that the document gives."""
        assert isinstance(body.sampler, BMinSep)
        return body.sampler.start

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis of the whole run, or that of Poisson sampling if the rounds are independent."""
        samples = document.accounting.method == "monte-carlo" or body.truncation() is not None
        if not samples and body.separation() == 1 and _independent(document, body):
            return poisson.ANOTHER
        return super().analysis(document, body)

    def has_moments(self, body: Body) -> bool:
        """Whether moments are computed: only if columns do not overlap."""
        return body.matrix.banded

    def truncation_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse matrices whose columns overlap, which the recursion for truncated batches does not cover."""
        if body.matrix.banded:
            return []
        message = (
            "with truncated batches the recursion needs a banded Toeplitz matrix, whose columns do not overlap; balls in bins "
            "is analysed with any matrix"
        )
        allowed = "a banded matrix, or the sampler balls-in-bins"
        return [document.problem("no-valid-bound", body.at("matrix", "kind"), message, allowed=allowed)]

    def composed_neighbour(self, document: Document, body: Body) -> dict[str, Any] | None:
        """Return the document with cyclic Poisson sampling of the same separation, if columns do not overlap."""
        if not body.matrix.banded:
            return None
        return document.to_mapping() | {
            "sampler": {"kind": "cyclic-poisson", "partitions": body.separation()},
            "training": {"participation_rate": body.participation_rate(), "iterations": body.training.iterations},
            "accounting": {},
        }

    def largest_rate(self, body: Body) -> float:
        """Return the largest rate of a round; with a cold start that is the rate of the first round."""
        return body.sampling_probability() if self.start(body) == "cold" else super().largest_rate(body)


def _independent(document: Document, body: Body) -> bool:
    """Whether the matrix is the identity, by its kind or because its only band is 1."""
    if body.matrix.kind == "identity":
        return True
    if body.training.iterations == "solve" or getattr(body.matrix, "bands", None) != 1:
        return False
    return strategy(document, body).coefficients == (1.0,)


PLAN = BMinSepPlan()
