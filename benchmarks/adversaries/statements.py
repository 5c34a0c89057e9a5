"""Statements beside what data sets attain: each comparison is counted, and what is refuted, refused or failed is kept."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import log_ndtr

import pyaccount
from adversaries.cases import Case
from adversaries.laws import Law
from pyaccount.errors import DocumentError, LimitError, NumericsError, PyaccountError

#: Relative margins for the rounding of comparisons.
SAME, ROUGH = 1e-10, 1e-6


@dataclass(frozen=True)
class Violation:
    """A statement that a pair of data sets refutes."""

    case: Case
    document: dict[str, Any]
    what: str
    stated: float
    truth: float

    @property
    def line(self) -> str:
        return f"{self.what}: stated {self.stated:.12g}, truth {self.truth:.12g}"


@dataclass
class Result:
    """The violations of a case, how many statements were compared, and what was refused and why."""

    violations: list[Violation] = field(default_factory=list)
    compared: int = 0
    #: The largest share of an upper bound on δ, between 1e-9 and 0.9, that some data sets attain: how sharp the adversary is.
    closest: float = 0.0
    refused: list[str] = field(default_factory=list)
    failed: list[tuple[dict[str, Any], str]] = field(default_factory=list)


class Statements:
    """Comparisons of statements about a case with its laws."""

    def __init__(self, case: Case, time_limit: float = 10.0) -> None:
        self.case, self.limit = case, time_limit
        self.result = Result()
        # Directions are those of a record that is removed, and added; a replacement has only one.
        self.remove = case.laws
        self.add = tuple(law.reversed() for law in case.laws)
        self.both = (*self.remove, *self.add)

    @staticmethod
    def read(document: dict[str, Any]) -> pyaccount.Document:
        """Return a document, whose matrix may lie among temporary files."""
        return pyaccount.load(document, folders=[tempfile.gettempdir()])

    @contextmanager
    def refusing(self, document: dict[str, Any], what: str) -> Iterator[None]:
        """Note what is refused, what took too long, and what failed."""
        try:
            yield
        except DocumentError as error:
            self.result.refused.append(f"{what}: {error.problems[0].slug}: {error.problems[0].message}"[:160])
        except (LimitError, TimeoutError):
            self.result.refused.append(f"{what}: no answer in time")
        except NumericsError as error:
            if "too small to estimate" not in str(error):
                self.result.failed.append((document, f"{what}: {error}"[:400]))
            self.result.refused.append(f"{what}: a δ too small to estimate")
        except (PyaccountError, ArithmeticError, AssertionError, ValueError, TypeError) as error:
            self.result.failed.append((document, f"{what}: {type(error).__name__}: {error}".replace("\n", " ")[:400]))

    def near(self, level: float) -> float:
        """Return an ε at which the largest δ is about a level."""
        low, high = 0.0, 2.0
        while self.least(self.both, high) > level and high < 1e4:
            low, high = high, 2.0 * high
        for _ in range(10):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.least(self.both, middle) > level else (low, middle)
        return low

    @staticmethod
    def least(laws: tuple[Law, ...], epsilon: float) -> float:
        return max(law.least(epsilon) for law in laws)

    def most(self, epsilon: float) -> float | None:
        """Return an upper bound on the largest δ of all data sets; None if none is known."""
        if not self.case.worst:
            return None
        values = [law.most(epsilon) for law in self.both]
        return None if any(value is None for value in values) else max(value for value in values if value is not None)

    def bound(self, document: dict[str, Any], what: str, laws: tuple[Law, ...], epsilon: float, delta: float) -> None:
        truth = self.least(laws, epsilon) * (1.0 - SAME)
        if 1e-9 < delta < 0.9:
            self.result.closest = max(self.result.closest, truth / delta)
        self.compare(document, f"{what}: δ({epsilon!r})", delta, truth, upper=True)

    def attained(self, document: dict[str, Any], what: str, epsilon: float, delta: float) -> None:
        # Laws leave out outcomes whose mass under Q is below 1e-290; under P they have e^ε times that, or more.
        if delta <= max(1e-250, math.exp(min(epsilon, 700.0)) * 1e-275) or (epsilon <= 0.0 and "lower ε" in what):
            return
        most = self.most(epsilon)
        if most is not None:
            self.compare(document, f"{what}: δ({epsilon!r}) ≥", delta, most * (1.0 + ROUGH) + 1e-300, upper=False)

    def compare(self, document: dict[str, Any], what: str, stated: float, truth: float, *, upper: bool) -> None:
        self.result.compared += 1
        if (truth > stated + 1e-300) if upper else (truth < stated):
            self.result.violations.append(Violation(self.case, document, what, stated, truth))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ of N(μ, 1) against N(0, 1)."""
    if mu <= 0.0:
        return 0.0
    one = float(np.exp(log_ndtr(-epsilon / mu + mu / 2.0)))
    return max(0.0, one - float(np.exp(min(0.0, epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))))))
