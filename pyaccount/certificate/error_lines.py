"""The error against ε of what is compared: which certificates that picture shows, and in which lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.certificate.compared import alike
from pyaccount.errors import DomainError
from pyaccount.rounding import plain, up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyaccount.certificate.compared import ComparedRecord


#: ε that differ by less are one target: blanks are solved to a tolerance.
AGREEMENT = 0.02


@dataclass(frozen=True, slots=True)
class Bar:
    """A certificate among others at the same ε: what it is called, the certified σ, and the root mean square error."""

    label: str
    noise_multiplier: float | None
    error: float


@dataclass(frozen=True, slots=True)
class Point:
    """A certificate: ε at most, the root mean square error, and the certified σ, where it has one."""

    #: What the document calls the mechanism.
    name: str
    epsilon: float
    error: float
    noise_multiplier: float | None

    @property
    def noise(self) -> str:
        """The certified σ in words, rounded up."""
        return "" if self.noise_multiplier is None else f"σ {up(self.noise_multiplier, 3)}"


@dataclass(frozen=True, slots=True)
class ErrorLines:
    """Lines of points by rising ε, by what they are called: the sampler with its matrix."""

    lines: Mapping[str, tuple[Point, ...]]
    #: The points in the order of what was compared, each with what its line is called.
    in_order: tuple[tuple[str, Point], ...]
    #: What the error is of: prefix sums, or a workload in words.
    error_of: str
    #: The δ at which ε is certified, in words.
    deltas: str

    @property
    def one_epsilon(self) -> float | None:
        """The largest ε, where all agree to `AGREEMENT`: then there is no curve over ε to draw, and bars compare the errors."""
        found = [point.epsilon for points in self.lines.values() for point in points]
        return max(found) if max(found) <= (1.0 + AGREEMENT) * min(found) else None

    def bars(self) -> tuple[Bar, ...]:
        """A bar for each certificate, by its sampler with its matrix; where several have the same, also by its name."""
        return tuple(
            Bar(label if len(self.lines[label]) == 1 else f"{label}: {point.name}", point.noise_multiplier, point.error)
            for label, point in self.in_order
        )

    @classmethod
    def of(cls, compared: Sequence[ComparedRecord]) -> ErrorLines:
        """The error is that of prefix sums or, where all have the same workload, of that.

        What does not hold, has no finite ε or no one error is left out. Raises `DomainError` where nothing is left.
        """
        rows = [
            row
            for row in compared
            # Neither an ε nor an error of 0 has a place on a logarithmic axis.
            if (row.prefix_sum_mse or 0.0) > 0.0 and row.holds and 0.0 < row.epsilon < math.inf
        ]
        workloads = {row.workload for row in rows}
        workload = workloads.pop() if len(workloads) == 1 else None
        same = alike(compared)
        lines: dict[str, list[Point]] = {}
        in_order = []
        for row in rows:
            error = row.prefix_sum_mse if workload is None else row.workload_mse
            if not error:
                continue
            point = Point(row.name, row.epsilon, math.sqrt(error), row.noise_multiplier)
            lines.setdefault(row.series(alike=same), []).append(point)
            in_order.append((row.series(alike=same), point))
        if not lines:
            raise DomainError("nothing to draw: no certificate that holds has a finite ε and one error")
        return cls(
            {label: tuple(sorted(points, key=lambda one: (one.epsilon, one.error))) for label, points in lines.items()},
            tuple(in_order),
            workload or "prefix sums",
            ", ".join(plain(delta) for delta in sorted({row.delta for row in rows})),
        )
