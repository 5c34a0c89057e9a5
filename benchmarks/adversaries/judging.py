"""What pyaccount says of a case beside what adversaries attain: profiles, guarantees, ends at δ = 0, the prices of filters."""

from __future__ import annotations

import math
import random
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import log_ndtr

import pyaccount
from adversaries.cases import Case
from adversaries.kinds import OPTIONS, SAMPLED
from adversaries.laws import Law
from pyaccount.errors import DocumentError, LimitError, NumericsError, PyaccountError
from pyaccount.execute.engine import Engine, Question
from pyaccount.filters import BasicFilter, ConcentratedFilter, GaussianFilter
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.renyi import divergences_of
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.largest_loss import losses_bounded
from pyaccount.plan.rounds import DirectedBounds

ORDERS = (1.01, 1.3, 1.5, 2.0, 2.5, 3.0, 5.0, 8.0, 16.0, 33.0, 128.0)
#: Orders at which sup D_a/a is looked for.
CONCENTRATED = tuple(1.0 + 2.0 ** (k / 3.0) for k in range(-21, 25))
#: Relative margins for the rounding of comparisons.
SAME, ROUGH = 1e-10, 1e-6
#: Values of δ near which profiles are asked.
LEVELS = (0.5, 1e-1, 1e-2, 1e-4, 1e-7, 1e-11)
#: Largest losses below this are asked for.
_BOUNDED = 200.0
#: A δ that only losses without a bound leave room for.
_LEAST = 1e-30
#: The relative width of what is asked of the engine directly, and at how many ε.
COARSE, FEW = 0.2, 3


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


class Judge:
    """All comparisons of one case."""

    def __init__(self, case: Case, prices: bool = True, time_limit: float = 10.0) -> None:
        self.case, self.prices, self.limit = case, prices, time_limit
        self.result = Result()
        self.quick = case.kind not in SAMPLED | OPTIONS and (len(case.phases) > 1 or case.seed % 6 != 0)
        # Directions are those of a record that is removed, and added; a replacement has only one.
        self.remove = case.laws
        self.add = tuple(law.reversed() for law in case.laws)
        self.both = (*self.remove, *self.add)
        self.document: dict[str, Any] = {}

    def run(self) -> Result:
        """Judge a certificate of the case, and all prices."""
        largest, points, levels = self._asked_at(LEVELS, 0.0, 0.9, 0.999)
        self._certify({"epsilon": "solve", "delta": levels[self.case.seed % len(levels)]}, points)
        if self.case.seed % 3 == 0:
            at = points[self.case.seed // 3 % len(points)]
            self._certify({"epsilon": at, "delta": "solve"}, points[:1])
        if largest < _BOUNDED and levels[-1] == _LEAST:
            self._certify({"epsilon": "solve", "delta": 0}, points[:1])
        if self.prices and self.document:
            self._filters(self.document)
        return self.result

    def briefly(self, *, certified: bool) -> Result:
        """Judge what certificates are made of: ε at a δ, δ at a few ε, the largest loss, and the price of one filter.

        The document is compiled once, and the engine is asked with a coarse tolerance. A certificate asks the same engine; one
        is judged, too, if `certified`.
        """
        rng = random.Random(self.case.seed)
        _, points, levels = self._asked_at(rng.sample(LEVELS, FEW - 1), rng.choice([0.0, 0.9, 0.999]))
        level = rng.choice(levels)
        document = self.case.document(privacy={"epsilon": "solve", "delta": level})
        with self.refusing(document, "compiled"):
            read = self.read(document)
            bounds = compile_document(read).at().bounds()
            asked = [Question(None, level, COARSE)]
            asked += [Question(epsilon, None, COARSE) for epsilon in points]
            if losses_bounded(bounds):
                asked.append(Question(None, 0.0, COARSE))
            for question in asked:
                with self.refusing(document, "engine"):
                    self._engine(document, bounds, question)
            if certified:
                self._certify({"epsilon": "solve", "delta": level}, [])
            if self.prices:
                self._price(document, read, rng.choice(list(self.prices_by_name())), most=1)
        return self.result

    @staticmethod
    def read(document: dict[str, Any]) -> pyaccount.Document:
        """Return a document, whose matrix may lie among temporary files."""
        return pyaccount.load(document, folders=[tempfile.gettempdir()])

    def _asked_at(self, near: Sequence[float] = LEVELS, *shares: float) -> tuple[float, list[float], list[float]]:
        """Return the largest loss of all laws, values of ε (near such δ, and shares of that loss), and values of δ."""
        largest = max(law.largest_loss() for law in self.both)
        points = {_rounded(self._at(level)) for level in near}
        if math.isfinite(largest) and largest < _BOUNDED:
            points |= {_rounded(largest * share) for share in shares}
        else:
            points.add(0.0)
        # Below what no finite ε undercuts there is nothing to solve for.
        never = self.least(self.both, 1e3)
        levels = [one for one in (*LEVELS, _LEAST) if one > 1.1 * never] or [0.5 + 0.5 * never]
        return largest, sorted(one for one in points if 0.0 <= one < 1e3), levels

    def _at(self, level: float) -> float:
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

    def _most(self, epsilon: float) -> float | None:
        """Return an upper bound on the largest δ of all data sets; None if none is known."""
        if not self.case.worst:
            return None
        values = [law.most(epsilon) for law in self.both]
        return None if any(value is None for value in values) else max(value for value in values if value is not None)

    def _certify(self, privacy: dict[str, Any], points: list[float]) -> None:
        # A profile of a certificate is computed together with a curve, which takes most of the time: most cases ask the engine.
        asked = [] if self.quick else points
        document = self.case.document(privacy=privacy, accounting={"profile": asked})
        with self.refusing(document, "certificate"):
            self._judged(
                document, pyaccount.certify(self.read(document), threads=1, time_limit=self.limit).data, points
            )

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

    def _judged(self, document: dict[str, Any], data: Any, points: list[float]) -> None:
        self.document = self.document or document
        guarantee = data.guarantee
        self.bound(document, "guarantee", self.both, guarantee.epsilon, guarantee.delta)
        if guarantee.delta == 0.0:
            loss = max(law.largest_loss() for law in self.both)
            self.compare(document, "ε at δ = 0", guarantee.epsilon, loss * (1.0 - SAME), upper=True)
        else:
            self.attained(document, "guarantee, lower ε", guarantee.epsilon_lower * (1.0 - 1e-9), guarantee.delta)
        self.attained(document, "guarantee, lower δ", guarantee.epsilon, guarantee.delta_lower)
        for point in data.profile:
            self.bound(document, f"profile δ({point.epsilon})", self.both, point.epsilon, point.delta)
            self.attained(document, f"profile, lower δ({point.epsilon})", point.epsilon, point.delta_lower)
        if self.case.adjacency != "replace-one":
            for name, laws in (("remove", self.remove), ("add", self.add)):
                side = getattr(data.directions, name)
                self.bound(document, f"direction {name}", laws, side.epsilon, guarantee.delta)
                self.bound(document, f"direction {name}", laws, guarantee.epsilon, side.delta)
                for point in side.profile:
                    self.bound(document, f"direction {name}, δ({point.epsilon})", laws, point.epsilon, point.delta)
        self._records(document, data)
        if self.quick:
            self._asked(document, points)

    def _asked(self, document: dict[str, Any], points: list[float]) -> None:
        """Compare the engine's δ at these ε, with which claims and filters are decided."""
        bounds = compile_document(self.read(document)).at().bounds()
        for epsilon in points:
            with self.refusing(document, "engine"):
                self._engine(document, bounds, Question(epsilon, None, 0.05))

    def _engine(self, document: dict[str, Any], bounds: DirectedBounds, question: Question) -> None:
        answer = Engine(threads=1, time_limit=self.limit).ask(bounds, question)
        sides = {"engine": (self.both, answer.upper, answer.lower)}
        if self.case.adjacency != "replace-one":
            for name, laws in (("remove", self.remove), ("add", self.add)):
                side = answer.directions[name]
                sides[f"engine, {name}"] = (laws, side.upper, side.lower)
        for what, (laws, upper, lower) in sides.items():
            if question.epsilon is not None:
                self.bound(document, what, laws, question.epsilon, upper)
            elif question.delta == 0.0:
                loss = max(law.largest_loss() for law in laws)
                self.compare(document, f"{what}: ε at δ = 0", upper, loss * (1.0 - SAME), upper=True)
            elif question.delta is not None and math.isfinite(upper):
                self.bound(document, what, laws, upper, question.delta)
            if what == "engine" and question.epsilon is not None:
                self.attained(document, "engine, lower", question.epsilon, lower)
            elif what == "engine" and question.delta:
                self.attained(document, "engine, lower ε", lower * (1.0 - 1e-9), question.delta)

    def _records(self, document: dict[str, Any], data: Any) -> None:
        """Compare what is said of records of a kind, where the document has one phase, which names them."""
        if len(self.case.phases) != 1:
            return
        named = self.case.phases[0].records
        for record in data.records or ():
            for name, laws in named.items():
                if getattr(record, "name", None) == name or name in str(getattr(record, "records", "")):
                    both = (*laws, *(law.reversed() for law in laws))
                    self.bound(document, f"records of {name}", both, record.epsilon, data.guarantee.delta)

    def bound(self, document: dict[str, Any], what: str, laws: tuple[Law, ...], epsilon: float, delta: float) -> None:
        truth = self.least(laws, epsilon) * (1.0 - SAME)
        if 1e-9 < delta < 0.9:
            self.result.closest = max(self.result.closest, truth / delta)
        self.compare(document, f"{what}: δ({epsilon!r})", delta, truth, upper=True)

    def attained(self, document: dict[str, Any], what: str, epsilon: float, delta: float) -> None:
        if delta <= 1e-250 or (epsilon <= 0.0 and "lower ε" in what):
            return
        most = self._most(epsilon)
        if most is not None:
            self.compare(document, f"{what}: δ({epsilon!r}) ≥", delta, most * (1.0 + ROUGH) + 1e-300, upper=False)

    def compare(self, document: dict[str, Any], what: str, stated: float, truth: float, *, upper: bool) -> None:
        self.result.compared += 1
        if (truth > stated + 1e-300) if upper else (truth < stated):
            self.result.violations.append(Violation(self.case, document, what, stated, truth))

    def _filters(self, document: dict[str, Any]) -> None:
        read = self.read(document)
        for name in self.prices_by_name():
            self._price(document, read, name)

    def prices_by_name(self) -> dict[str, Callable[[dict[str, Any], Any, int], None]]:
        return {
            "renyi": self._renyi, "zcdp": self._zcdp, "gaussian": self._gaussian, "basic": self._basic, "cut": self._cut,
        }  # fmt: skip

    def _price(self, document: dict[str, Any], read: Any, name: str, most: int = 4) -> None:
        with self.refusing(document, f"price {name}"), _alarm(self.limit):
            self.prices_by_name()[name](document, read, most)

    def _renyi(self, document: dict[str, Any], read: Any, most: int) -> None:
        for order in random.Random(self.case.seed).sample(ORDERS, most):
            try:
                (price,) = divergences_of(read, (order,))
            except DocumentError as error:
                self.result.refused.append(f"price renyi: {error.problems[0].slug}")
                continue
            truth = max(law.divergence(order) for law in self.both)
            self.compare(document, f"Rényi divergence of order {order}", price, truth * (1.0 - SAME), upper=True)

    def _zcdp(self, document: dict[str, Any], read: Any, _: int) -> None:
        (price,) = ConcentratedFilter(1.0).cost(read)
        truth = max(law.divergence(order) / order for law in self.both for order in CONCENTRATED)
        truth = max(truth, *(law.kullback_leibler() for law in self.both))
        self.compare(document, "ρ of the filter for zCDP", price, truth * (1.0 - SAME), upper=True)

    def _gaussian(self, document: dict[str, Any], read: Any, _: int) -> None:
        (square,) = GaussianFilter(1.0).cost(read)
        mu = math.sqrt(square)
        for level in (0.9, *LEVELS, 1e-20):
            epsilon = self._at(level)
            delta = gaussian_delta(mu, epsilon)
            what = f"μ = {mu:.6g} of the Gaussian filter: δ({epsilon:.6g})"
            self.compare(document, what, delta, self.least(self.both, epsilon) * (1.0 - 1e-9), upper=True)

    def _basic(self, document: dict[str, Any], read: Any, _: int) -> None:
        epsilon, delta = BasicFilter(1.0, 0.5).cost(read)
        self.bound(document, "price of the filter in (ε, δ) terms", self.both, epsilon, delta)

    def _cut(self, document: dict[str, Any], read: Any, most: int) -> None:
        """A cut pays for larger losses with δ: (1 − e^{ε−L})_+ is at most κ e^{(a−1)(L−ε)} for the others."""
        rng = random.Random(self.case.seed)
        orders, cut = tuple(sorted(rng.sample((2.0, 4.0, 16.0), min(most, 3)))), (0.3, 1.0, 3.0)[self.case.seed % 3]
        *left, large = cut_costs(read, orders, cut)
        for epsilon in (0.0, 0.5 * cut, cut, 2.0 * cut):
            for order, price in zip(orders, left, strict=True):
                log = (order - 1.0) * (price - epsilon) + (order - 1.0) * math.log1p(-1.0 / order) - math.log(order)
                bound = large + math.exp(min(log, 5.0))
                what = f"cut at {cut}, order {order}: δ({epsilon})"
                self.compare(document, what, bound, self.least(self.both, epsilon) * (1.0 - 1e-9), upper=True)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after that long; prices have no limit of their own."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ of N(μ, 1) against N(0, 1)."""
    if mu <= 0.0:
        return 0.0
    one = float(np.exp(log_ndtr(-epsilon / mu + mu / 2.0)))
    return max(0.0, one - float(np.exp(min(0.0, epsilon + float(log_ndtr(-epsilon / mu - mu / 2.0))))))


def _rounded(epsilon: float) -> float:
    return float(f"{epsilon:.4g}")
