"""The data of the picture "error against ε" of a comparison: which certificates it shows, and in which lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyaccount.certificate.compared import ComparedRecord, alike
from pyaccount.errors import DomainError
from pyaccount.rounding import shortest, up

#: Values of ε that differ by less count as one target, because blanks are solved to a tolerance.
AGREEMENT = 0.02


@dataclass(frozen=True, slots=True)
class Bar:
    """One certificate of several at the same ε: its label, the certified σ, and the root mean square error."""

    label: str
    noise_multiplier: float | None
    error: float


@dataclass(frozen=True, slots=True)
class Point:
    """One certificate: upper bound on ε, root mean square error, and the certified σ if there is a single one."""

    #: The name of the mechanism in the document.
    name: str
    epsilon: float
    error: float
    noise_multiplier: float | None

    @property
    def noise(self) -> str:
        """The certified σ in words, rounded up; empty if there is no single σ."""
        return "" if self.noise_multiplier is None else f"σ {up(self.noise_multiplier, 3)}"


@dataclass(frozen=True, slots=True)
class ErrorLines:
    """The lines of the picture by their labels (the sampler with its matrix), each with its points by rising ε."""

    lines: Mapping[str, tuple[Point, ...]]
    #: The points in the order of the comparison, each with the label of its line.
    in_order: tuple[tuple[str, Point], ...]
    #: The quantity whose error is shown: prefix sums, or a workload in words.
    error_of: str
    #: The values of δ at which ε is certified, in words.
    deltas: str

    @property
    def one_epsilon(self) -> float | None:
        """The largest ε if all agree to `AGREEMENT`, so that bars replace the curve over ε; otherwise None."""
        epsilons = [point.epsilon for points in self.lines.values() for point in points]
        return max(epsilons) if max(epsilons) <= (1.0 + AGREEMENT) * min(epsilons) else None

    def bars(self) -> tuple[Bar, ...]:
        """Return a bar for each certificate, labelled by sampler and matrix, and by name if several have the same."""
        return tuple(
            Bar(label if len(self.lines[label]) == 1 else f"{label}: {point.name}", point.noise_multiplier, point.error)
            for label, point in self.in_order
        )

    @classmethod
    def of(cls, compared: Sequence[ComparedRecord]) -> ErrorLines:
        """Collect the lines. The error is that of prefix sums, or that of the workload if all have the same one.

        Rows that do not hold, or that have no finite ε or no single error, are left out. Raises `DomainError` if no row
        remains.
        """
        rows = [
            row
            for row in compared
            # An ε or an error of 0 cannot be shown on a logarithmic axis.
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
            raise DomainError("nothing to draw: no certificate that holds has a finite ε and a single error")
        return cls(
            {label: tuple(sorted(points, key=lambda one: (one.epsilon, one.error))) for label, points in lines.items()},
            tuple(in_order),
            workload or "prefix sums",
            ", ".join(shortest(delta) for delta in sorted({row.delta for row in rows})),
        )
