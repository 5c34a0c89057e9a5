"""The identity matrix: the noise of the rounds is independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.training.noise.inverses.base import InverseRows, Row

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


class IdentityRows(InverseRows):
    """Rows z_t = w_t."""

    from_key_alone: ClassVar[bool] = True

    def __init__(self, built: Strategy) -> None:
        """Ignore the matrix, which has no parameters."""

    def row(self, number: int) -> Row:
        """Return the row of Z of this round."""
        return Row([(number, 1.0)], [])

    @property
    def growth(self) -> float:
        """The norm of a row of the identity, 1."""
        return 1.0

    @property
    def smallest_new(self) -> float:
        """The diagonal of the identity, 1, because the whole row is new."""
        return 1.0

    @property
    def memory(self) -> str:
        """A text: nothing is kept."""
        return "nothing is kept; a round is drawn once"
