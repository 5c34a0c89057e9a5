"""The identity: plain DP-SGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyaccount.document.matrices import Identity
from pyaccount.plan.matrices.base import MatrixPlan, rounds_of
from pyaccount.plan.matrices.built import Strategy, toeplitz_strategy

if TYPE_CHECKING:
    pass


#: How independent noise is drawn.
INDEPENDENT = "z_t = w_t; no row is kept"


class IdentityPlan(MatrixPlan[Identity]):
    """The identity: the noise of the rounds is independent."""

    def text(self) -> str:
        """Name what the matrix means for the noise."""
        return "independent noise"

    def build(self) -> Strategy:
        """Build the matrix, which has a single coefficient of 1."""
        return toeplitz_strategy((1.0,), rounds_of(self.node), normalize=False)

    def generation(self, built: Strategy) -> str:
        """Describe the noise, which is used as drawn."""
        return INDEPENDENT

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return that it is the identity."""
        return {"kind": "identity"}
