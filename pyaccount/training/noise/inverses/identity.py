"""Independent noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class IdentityRows(InverseRows):
    """z_t = w_t."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        """Nothing is asked of it."""

    def row(self, number: int) -> Row:
        """A row of Z."""
        return Row([(number, 1.0)], [])

    @property
    def growth(self) -> float:
        """Rows of the identity."""
        return 1.0

    @property
    def smallest_new(self) -> float:
        """All of it is new."""
        return 1.0

    @property
    def memory(self) -> str:
        """Nothing."""
        return "nothing is kept; a round is drawn once"
