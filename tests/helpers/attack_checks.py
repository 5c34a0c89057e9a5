"""Compares the bounds, estimates and standard errors of a document's certificate and forecast with its exact δ(ε)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exact_documents import Truth

import pyaccount
from pyaccount.errors import PyaccountError
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.forecast import forecast

#: A bound on the error of the exact value itself, and of rounding to the digits of a document.
SLACK = 1e-6
#: The number of standard errors beyond which an estimate counts as wrong.
FAR = 3.0
#: The error of enclosures, which are integrated less precisely.
ROUGH = 1e-3
#: The noise of a root's estimate, relative to δ, that is accepted if δ is only known to be in an interval.
NOISE = 0.02
#: The number of points of a profile that are checked if each exact value takes long.
FEW = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """A wrong number, and where it is from."""

    document: str
    where: str
    text: str


@dataclass(slots=True)
class Outcome:
    """The results of the checks of one document or of several."""

    documents: int = 0
    refused: list[Finding] = field(default_factory=list)
    bounds: int = 0
    beaten: list[Finding] = field(default_factory=list)
    #: The total probability with which the checked bounds may be wrong.
    allowed: float = 0.0
    intervals: int = 0
    outside: list[Finding] = field(default_factory=list)
    #: (estimate − truth)/standard error, of profiles and forecasts, and of the means of tests, each with its place.
    scores: list[tuple[float, Finding]] = field(default_factory=list)
    tests: list[tuple[float, Finding]] = field(default_factory=list)
    #: Estimates with a standard error of 0 that are not exact.
    sure: list[Finding] = field(default_factory=list)
    #: ln of the forecast's σ over the exact one, and the same in units of the error that the forecast states, if it states one.
    roots: list[tuple[float, float | None, Finding]] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Add the results of another document."""
        self.documents += other.documents
        self.bounds += other.bounds
        self.allowed += other.allowed
        self.intervals += other.intervals
        for name in ("refused", "beaten", "outside", "scores", "tests", "sure", "roots"):
            getattr(self, name).extend(getattr(other, name))


class Attack:
    """All checks of one document."""

    def __init__(self, truth: Truth, *, time_limit: float = 120.0) -> None:
        self.truth = truth
        self.name = truth.document["name"]
        self.limit = time_limit
        self.out = Outcome(documents=1)
        self.sigma: float | None = None
        self.public = False
        self.known: dict[tuple[str, float, float | None], float] = {}

    def run(self) -> Outcome:
        """Certify and forecast the document, and compare both with the exact values."""
        matrix = self.truth.document.get("matrix", {}).get("file")
        document = pyaccount.load(self.truth.document, folders=[] if matrix is None else [Path(matrix).parent])
        plan = pyaccount.compile(document)
        if not plan.sampled:
            self.out.refused.append(Finding(self.name, "plan", "is not judged by sampling"))
            return self.out
        try:
            data = plan.run(threads=1, time_limit=self.limit).data
            if document.blank is not None and document.blank[-1] == "multiplier":
                assert data.solved is not None
                self.sigma = data.solved.value
            self._certificate(data)
            self._forecast(plan)
        except (PyaccountError, ArithmeticError) as error:
            self._refused("certify", error)
        return self.out

    def _refused(self, where: str, error: Exception) -> None:
        self.out.refused.append(Finding(self.name, where, f"{type(error).__name__}: {error}".splitlines()[0]))

    def delta(self, direction: str, epsilon: float, sigma: float | None = None) -> float:
        """Return the exact δ in a direction; `larger` means the worse direction."""
        sigma = self.sigma if sigma is None else sigma
        key = (direction, epsilon, sigma)
        if key not in self.known:
            if direction == "larger":
                self.known[key] = max(self.delta(one, epsilon, sigma) for one in self.truth.directions)
            else:
                self.known[key] = self.truth.delta(direction, epsilon, sigma)
        return self.known[key]

    def _attained(self, direction: str, epsilon: float) -> float:
        """Return the δ of an actual data set: the exact δ, or if batches are truncated, that of one data set, a lower bound."""
        if not self.truth.truncated:
            return self.delta(direction, epsilon)
        sides = self.truth.directions if direction == "larger" else (direction,)
        return max(self.truth.zeros(side, epsilon, self.sigma) for side in sides)

    def _enclosure(self, direction: str, epsilon: float, sigma: float | None = None) -> tuple[float, float] | None:
        """Return an interval for δ, for `larger` that of the worse direction; None if the likelihood ratio is exact."""
        sigma = self.sigma if sigma is None else sigma
        sides = self.truth.directions if direction == "larger" else (direction,)
        found = [one for side in sides if (one := self.truth.enclosure(side, epsilon, sigma)) is not None]
        return (max(low for low, _ in found), max(high for _, high in found)) if found else None

    def _certificate(self, data: Any) -> None:
        sampling, guarantee = data.evidence.sampling, data.guarantee
        sides = ("remove", "add")
        # If batches are truncated, the sampled pair is not attained, and the bound for public participations may be below it.
        self.public = self.truth.truncated and guarantee.kind == "deterministic"
        q = max(sampling.pointwise_failure_probability, sampling.total_probability)
        self._ends("larger", guarantee, "guarantee", q)
        for side in sides:
            direction = side if side in self.truth.directions else "replace"
            numbers = getattr(data.directions, side)
            self._ends(direction, numbers, f"directions.{side}", q)
            for k, point in enumerate(self._few(numbers.profile)):
                self._point(direction, point, f"directions.{side}.profile {k}", q)
            if direction == "replace":
                break
        for k, point in enumerate(self._few(data.profile)):
            self._point("larger", point, f"profile {k}", q)
        if data.unamplified.epsilon is not None and not self.truth.truncated:
            found = self.delta("larger", data.unamplified.epsilon)
            self._bound(
                found <= data.unamplified.delta * (1.0 + SLACK), "unamplified", f"δ {found} at {data.unamplified}"
            )
        for k, test in enumerate(sampling.tests):
            self._test(test, k, 0.0 if sampling.composed_curve is None else sampling.composed_curve.relative_gap)

    def _few(self, points: list[Any]) -> list[Any]:
        """Return all points, or a selection from the whole profile if each takes long."""
        if self._quick() or len(points) <= FEW:
            return list(points)
        return [points[round(k * (len(points) - 1) / (FEW - 1))] for k in range(FEW)]

    def _quick(self) -> bool:
        rounds = sum(body["training"]["iterations"] for body in self.truth.bodies)
        return rounds <= 3

    def _bound(self, holds: bool, where: str, text: str, q: float = 0.0) -> None:
        self.out.bounds += 1
        self.out.allowed += q
        if not holds:
            self.out.beaten.append(Finding(self.name, where, text))

    def _ends(self, direction: str, numbers: Any, where: str, q: float) -> None:
        """Check the upper and lower bounds on ε and δ of a guarantee."""
        found = (self._attained if self.public else self.delta)(direction, numbers.epsilon)
        self._bound(
            found <= numbers.delta * (1.0 + SLACK), where, f"δ({numbers.epsilon}) = {found} > {numbers.delta}", q
        )
        self._below(direction, numbers.epsilon, numbers.delta_lower, f"{where}.delta_lower", q)
        if numbers.epsilon_lower > 0.0:
            self._below(direction, numbers.epsilon_lower, numbers.delta, f"{where}.epsilon_lower", q)

    def _below(self, direction: str, epsilon: float, lower: float, where: str, q: float) -> None:
        found = self._attained(direction, epsilon)
        self._bound(found >= lower * (1.0 - SLACK), where, f"δ({epsilon}) = {found} < {lower}", q)

    def _point(self, direction: str, point: Any, where: str, q: float) -> None:
        """Check the bounds and the estimate of a point of a profile."""
        found = self.delta(direction, point.epsilon)
        text = f"δ({point.epsilon}) = {found:.6g}, told [{point.delta_lower:.6g}, {point.delta:.6g}]"
        # If batches are truncated, the sampled pair is not attained, and a bound that needs no samples may be below it.
        least = min(found, self.truth.public(point.epsilon, self.sigma)) if self.truth.truncated else found
        self._bound(least <= point.delta * (1.0 + SLACK), where, text, q)
        self._below(direction, point.epsilon, point.delta_lower, where, q)
        if point.delta_estimate is not None:
            self._inside(point.delta_estimate, point.delta_lower, point.delta, where, point.epsilon)
            self._score(self.out.scores, point.delta_estimate, point.standard_error, found, where, point.epsilon)

    def _inside(self, estimate: float, lower: float, upper: float, where: str, epsilon: float) -> None:
        self.out.intervals += 1
        if not lower * (1.0 - 1e-12) <= estimate <= upper * (1.0 + 1e-12):
            text = f"estimate {estimate:.6g} of δ({epsilon}) outside of [{lower:.6g}, {upper:.6g}]"
            self.out.outside.append(Finding(self.name, where, text))

    def _score(
        self,
        scores: list[tuple[float, Finding]],
        estimate: float,
        error: float,
        truth: float,
        where: str,
        epsilon: float,
    ) -> None:
        finding = Finding(self.name, where, f"{estimate:.6g} ± {error:.2g} for δ({epsilon}) = {truth:.6g}")
        if error > 0.0:
            scores.append(((estimate - truth) / error, finding))
        elif abs(estimate - truth) > SLACK * max(estimate, truth):
            self.out.sure.append(finding)

    def _test(self, test: Any, k: int, gap: float) -> None:
        """Check the mean of a test's samples, if their expectation is δ.

        Phases that compose enter by an upper bound of their curve, which may exceed the curve by a relative `gap`.
        """
        direction, sigma = test.direction, None
        if self.sigma is not None:
            sigma = test.noise_multiplier
        found = self.delta(direction, test.epsilon, sigma)
        if test.mean > found and self._enclosure(direction, test.epsilon, sigma) is not None:
            # Here the expectation of the bounded samples is larger than δ.
            found = test.mean
        if test.proposal.log_sobolev is not None:
            # The stated value is a bound on δ.
            found = max(found, test.mean)
        if test.proposal.floor is not None:
            # What lies below the floor is missing.
            found = min(found, test.mean)
        found = min(max(found, test.mean), found * (1.0 + gap))
        if test.standard_error is not None:
            self._score(self.out.tests, test.mean, test.standard_error, found, f"test {k}, {direction}", test.epsilon)

    def _forecast(self, plan: Any) -> None:
        """Compare the estimates of `plan --estimate`, and its σ, with the exact values."""
        try:
            made = forecast(plan, RunOptions(threads=1, time_limit=self.limit))
        except PyaccountError as error:
            self._refused("forecast", error)
            return
        if made.noise_multiplier is not None:
            self._root(made)
        for direction, estimate in made.estimates.items():
            where, epsilon = f"forecast, {direction}", made.epsilon
            if not estimate.known:
                continue
            found = self.delta(direction, epsilon, made.noise_multiplier)
            self._score(self.out.scores, estimate.value, estimate.standard_error, found, where, epsilon)

    def _root(self, made: Any) -> None:
        """Compare the forecast's σ with the σ, found by secants, at which δ is the value that the tests must certify."""
        privacy, stated = self.truth.document["privacy"], made.noise_multiplier
        # A hundredth of δ is reserved for the failure probability of the tests.
        claim = math.log(privacy["delta"] * 0.99 / (1.0 - 0.01 * privacy["delta"]))

        def excess(log: float) -> float:
            return math.log(max(self.delta("larger", privacy["epsilon"], math.exp(log)), 1e-300)) - claim

        one, other = math.log(stated), math.log(stated) + 0.01
        for _ in range(8):
            first, second = excess(one), excess(other)
            if first == second:
                break
            following = other - second * (other - one) / (second - first)
            one, other = other, following
            if abs(other - one) < 1e-7:
                break
        if self.public and self.sigma is not None and abs(self.sigma / stated - 1.0) < 1e-3:
            # The certified σ comes from a bound that needs no samples, and is smaller than the σ that samples would need.
            return
        missed = math.log(stated) - other
        enclosed = self._enclosure("larger", privacy["epsilon"], stated)
        if enclosed is not None and enclosed[0] <= math.exp(claim) <= enclosed[1] * (1.0 + NOISE):
            missed = 0.0
        error = getattr(made, "noise_multiplier_error", None)
        finding = Finding(self.name, "forecast, σ", f"{stated:.6g} where {math.exp(other):.6g} is true")
        self.out.roots.append((missed, None if error is None else missed * stated / error, finding))
