"""`InverseRows`, the interface by which a kind of matrix says how the rows of C⁻¹Z are computed, and those of the identity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


@dataclass(frozen=True, slots=True)
class Row:
    """A row of C⁻¹Z as a sum: z_t = Σ_k weight_k·w_{round_k} + Σ_j coefficients_j·m_j.

    w are rows of Z with unit variance, and m is the kept memory (see `InverseRows`). `fresh` contains the pairs
    (round_k, weight_k).
    """

    fresh: list[tuple[int, float]]
    coefficients: list[float]


class InverseRows(ABC):
    """Computes C⁻¹Z row by row, for Z with entries of unit variance.

    Between rounds a stream keeps either the last `kept` rows of C⁻¹Z, or running sums of these rows with the given `decays`.
    """

    #: Whether every row can be drawn without the rows before it.
    from_key_alone: ClassVar[bool] = False
    #: How many of the last rows are kept; m_j = z_{t−j} for j = 1, …, `kept`.
    kept: int = 0
    #: If not None, running sums are kept instead of rows: m_j ← θ_j·m_j + z_t after round t, with these decays θ.
    decays: tuple[float, ...] | None = None
    #: The smallest entry on the diagonal of C⁻¹: the smallest standard deviation of a row, given all rows before it.
    smallest_new: float
    #: A text that says what a stream keeps between rounds, and what a round costs.
    memory: str

    @abstractmethod
    def __init__(self, built: Strategy) -> None:
        """Take the coefficients of a built matrix."""

    @abstractmethod
    def row(self, number: int) -> Row:
        """Return the terms of which row `number`, counted from 0, is the sum."""

    @property
    @abstractmethod
    def growth(self) -> float:
        """The largest ℓ₂ norm of a row of C⁻¹, computed in double precision.

        The standard deviation of the numbers of C⁻¹Z is at most this factor times that of Z. The factor is finite, because
        matrices with an infinite error are refused earlier.
        """


class IdentityRows(InverseRows):
    """Rows z_t = w_t."""

    from_key_alone: ClassVar[bool] = True
    growth = smallest_new = 1.0
    memory = "nothing is kept; a round is drawn once"

    def __init__(self, built: Strategy) -> None:
        """Ignore the matrix, which has no parameters."""

    def row(self, number: int) -> Row:
        """Return the row of Z of this round."""
        return Row([(number, 1.0)], [])
