"""What is asked of the rows of C⁻¹Z of a kind of matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyaccount.plan.matrices import Strategy


@dataclass(frozen=True, slots=True)
class Row:
    """z_t = Σ_k weight_k·w_{round_k} + Σ_j coefficients_j·m_j, for rows w of Z of unit variance and what is kept, m.

    `fresh` are pairs (round, weight).
    """

    fresh: list[tuple[int, float]]
    coefficients: list[float]


class InverseRows(ABC):
    """C⁻¹Z row by row. What is kept between rounds: `kept` rows of C⁻¹Z, or running sums of them with these `decays`.

    All of it is for Z with entries of unit variance.
    """

    #: Whether every row can be drawn without the rows before.
    from_key_alone: ClassVar[bool] = False
    #: How many of the last rows are kept, m_j = z_{t−j}.
    kept: int = 0
    #: Instead of rows: the decays θ of running sums, m_j ← θ_j·m_j + z_t after round t.
    decays: tuple[float, ...] | None = None

    @abstractmethod
    def __init__(self, built: Strategy) -> None:
        """Of a built matrix."""

    @abstractmethod
    def row(self, number: int) -> Row:
        """How row `number`, counted from 0, is summed."""

    @property
    @abstractmethod
    def growth(self) -> float:
        """The largest norm of a row of C⁻¹: how much larger than Z's the standard deviation of its numbers gets.

        In double precision. It is finite: a matrix is refused before if the error of its sums is not.
        """

    @property
    @abstractmethod
    def smallest_new(self) -> float:
        """The smallest entry on the diagonal of C⁻¹: the standard deviation of a row, given all rows before."""

    @property
    @abstractmethod
    def memory(self) -> str:
        """What a stream keeps between rounds, and what a round costs, in words."""
