"""The error against ε of what is compared: which certificates that picture shows, and in which lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.errors import DomainError
from pyaccount.rounding import plain, up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyaccount.certificate.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Point:
    """A certificate: ε at most, the root mean square error, and the certified σ in words, where it has one."""

    epsilon: float
    error: float
    noise: str


@dataclass(frozen=True, slots=True)
class ErrorLines:
    """Lines of points by rising ε, by what they are called: the sampler with its matrix."""

    lines: Mapping[str, tuple[Point, ...]]
    #: What the error is of: prefix sums, or a workload in words.
    error_of: str
    #: The δ at which ε is certified, in words.
    deltas: str

    @classmethod
    def of(cls, data: Comparison) -> ErrorLines:
        """The error is that of prefix sums or, where all have the same workload, of that.

        What does not hold, has no finite ε or no one error is left out. Raises `DomainError` where nothing is left.
        """
        rows = [
            row for row in data.rows if row.prefix_sum_mse is not None and row.holds and 0.0 < row.epsilon < math.inf
        ]
        if not rows:
            raise DomainError("nothing to draw: no certificate that holds has a finite ε and one error")
        workloads = {row.workload for row in rows}
        workload = workloads.pop() if len(workloads) == 1 else None
        lines: dict[str, list[Point]] = {}
        for row in rows:
            error = row.prefix_sum_mse if workload is None else row.workload_mse
            assert error is not None
            noise = "" if row.noise_multiplier is None else f"σ {up(row.noise_multiplier, 3)}"
            lines.setdefault(row.series(data), []).append(Point(row.epsilon, math.sqrt(error), noise))
        return cls(
            {label: tuple(sorted(points, key=lambda one: (one.epsilon, one.error))) for label, points in lines.items()},
            workload or "prefix sums",
            ", ".join(plain(delta) for delta in sorted({row.delta for row in rows})),
        )
