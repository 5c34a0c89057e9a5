"""The identity: plain DP-SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyaccount.plan.matrices.base import MatrixPlan, rounds_of
from pyaccount.plan.matrices.built import Strategy, toeplitz_strategy

if TYPE_CHECKING:
    from pyaccount.document import Body, Document


class IdentityPlan(MatrixPlan):
    """Independent noise."""

    def text(self, body: Body) -> str:
        """What that means."""
        return "independent noise"

    def build(self, document: Document, body: Body) -> Strategy:
        """One coefficient."""
        return toeplitz_strategy((1.0,), rounds_of(body), normalize=False)

    def generation(self, built: Strategy) -> str:
        """As it is."""
        return "z_t = w_t; no row is kept"

    def leading_block(self, built: Strategy, body: Body, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """A document without a matrix says it already."""
        return {}


PLAN = IdentityPlan()
