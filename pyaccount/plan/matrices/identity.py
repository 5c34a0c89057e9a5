"""The identity: plain DP-SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyaccount.plan.matrices.base import MatrixPlan, rounds_of
from pyaccount.plan.matrices.built import Strategy, toeplitz_strategy

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body


class IdentityPlan(MatrixPlan):
    """The identity: the noise of the rounds is independent."""

    def text(self, body: Body) -> str:
        """Name what the matrix means for the noise."""
        return "independent noise"

    def build(self, document: Document, body: Body) -> Strategy:
        """Build the matrix, which has a single coefficient of 1."""
        return toeplitz_strategy((1.0,), rounds_of(body), normalize=False)

    def generation(self, built: Strategy) -> str:
        """Describe the noise, which is used as drawn."""
        return "z_t = w_t; no row is kept"

    def normal_form(self, body: Body, built: Strategy) -> dict[str, Any]:
        """Return that it is the identity."""
        return {"kind": "identity"}


PLAN = IdentityPlan()
