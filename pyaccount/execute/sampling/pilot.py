"""Find the pilot's root: the σ, or the ε, at which estimates cross the claim, from few and mostly coarse estimates.

The privacy loss of a run of many rounds is about that of one Gaussian mechanism: its δ(ε) at σ is that of a μ = c/σ,
where c hardly depends on σ (the central limit of composition: Dong, Roth & Su 2022). So one estimate anywhere predicts
the root, often to less than one per cent. A coarse one suffices to get near it; estimates with full effort and secants
find it, in a bracket. If the model is poor, the secants take longer. A direction that is far below the other one is
estimated only at the first value and at the root.

No guarantee depends on the root: claims are tested with their own samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from pyaccount.directions import Direction
from pyaccount.errors import NumericsError
from pyaccount.execute.sampling.estimates import ESTIMATE, SCOUT
from pyaccount.execute.sampling.fixed_sequence import FAR, ROOT
from pyaccount.execute.sampling.session import Session
from pyaccount.plan.sampled import SampledMechanism

#: The value used for ln(δ̂/claim) if no sample had a loss above ε.
NOTHING = -50.0
#: The most that ln x changes in one step; after a longer step the next estimate is coarse.
LONGEST = 0.7
#: The range of slopes of ln(model's root/x) in ln x for secants, and the slope if the model is right.
SLOPES, MODEL_SLOPE = (-3.0, -0.3), -1.0
#: The most estimates; and the number with full effort after which a value within its standard error is near enough.
LOOKS, ENOUGH = 40, 3
#: Estimates this far apart in ln x show how ln δ changes; the least slope that is assumed; the share of the tolerance
#: to which a root is found; and the factor by which the number of samples may grow for that.
APART, FLATTEST, CLOSE, MOST_TIMES = 1e-3, 0.1, 0.2, 16.0
#: The range of μ, and the number of halvings of its logarithm that find one.
MU_RANGE, HALVINGS = (1e-8, 1e4), 60


@dataclass(frozen=True, slots=True)
class Crossing:
    """The crossing to be found: the mechanism and ε at x, the claimed δ, and the predicted root of a Gaussian model."""

    at: Callable[[float], tuple[SampledMechanism, float]]
    claim: float
    #: Predicts the root from x and ln of the δ estimated there.
    model: Callable[[float, float], float]
    #: The range of x.
    low: float
    high: float
    #: Called with x and the estimate of δ each time.
    report: Callable[[float, float], None] = lambda _x, _delta: None


def noise_model(epsilon: float, claim: float) -> Callable[[float, float], float]:
    """Return a function that predicts the σ at which a Gaussian mechanism's δ(ε) is the claim, from a σ and ln δ(ε)."""
    wanted = mu_at(math.log(claim), epsilon)
    return lambda sigma, log_delta: sigma * mu_at(log_delta, epsilon) / wanted


def epsilon_model(claim: float) -> Callable[[float, float], float]:
    """Return a function that predicts the ε at which a Gaussian mechanism's δ(ε) is the claim, from an ε and ln δ(ε)."""
    wanted = math.log(claim)

    def root(epsilon: float, log_delta: float) -> float:
        mu = mu_at(log_delta, epsilon)
        low, high = 0.0, mu * mu + 40.0 * mu
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if log_gaussian(mu, middle) > wanted else (low, middle)
        return high

    return root


def crossing_root(
    session: Session, crossing: Crossing, start: float, *, precision: float = ROOT, shards: int = ESTIMATE
) -> float:
    """Return the x in [low, high] at which the largest direction's δ crosses the claim; an end if it does not cross.

    Afterwards the session's latest estimates are of all directions near the root. Raises `LimitError`, `NumericsError`.
    """
    if session.stream is None:
        session.stream = session.sampler.fresh()
    looks = _Looks(session, crossing)
    while True:
        x = looks.root(start, precision, shards)
        if not looks.rest or looks.all_at(x, shards):
            return x
        # A direction that was left out is the larger one there.
        start = x


class _Looks:
    """Estimates at one x after another."""

    def __init__(self, session: Session, crossing: Crossing) -> None:
        self.session, self.crossing = session, crossing
        #: The directions that are estimated, once that is decided, and those left out.
        self.directions: tuple[Direction, ...] | None = None
        self.rest: tuple[Direction, ...] = ()
        #: Whether no direction may be left out any more.
        self.everything = False

    def excess(self, x: float, shards: int) -> tuple[float, float]:
        """Return ln(δ̂/claim) at x of the largest direction estimated, and how precisely it is worth knowing."""
        session, claim = self.session, self.crossing.claim
        mechanism, epsilon = self.crossing.at(x)
        found = session.estimate(mechanism, epsilon, shards=shards, stream=session.stream, directions=self.directions)
        worst = max(found.values(), key=lambda one: one.value)
        if self.directions is None and worst.value > 0.0 and not self.everything:
            self.rest = tuple(side for side, one in found.items() if one.value <= FAR * worst.value)
            self.directions = tuple(side for side in found if side not in self.rest)
        elif self.directions is not None:
            session.latest = session.latest | found
        self.crossing.report(x, worst.value)
        if worst.value <= 0.0:
            return NOTHING, 0.0
        # With the same random numbers a root is found more precisely than its own standard error.
        return math.log(worst.value / claim), 0.25 * worst.standard_error / worst.value

    def all_at(self, x: float, shards: int) -> bool:
        """Estimate the directions left out; return whether they may be. If not, all are estimated from now on."""
        session = self.session
        mechanism, epsilon = self.crossing.at(x)
        found = session.estimate(
            mechanism, epsilon, shards=min(SCOUT, shards), stream=session.stream, directions=self.rest
        )
        session.latest = session.latest | found
        right = all(one.value < self.crossing.claim for one in found.values())
        if not right:
            self.directions, self.rest = None, ()
            self.everything = True
        return right

    def root(self, start: float, precision: float, shards: int) -> float:
        """Return the root for the directions that are estimated."""
        low, high = self.crossing.low, self.crossing.high
        x, effort = min(max(start, low), high), min(SCOUT, shards)
        known: list[tuple[float, float]] = []
        values: list[tuple[float, float]] = []
        bracket = [-math.inf, math.inf]
        full = 0
        for _ in range(LOOKS):
            value, noise = self.excess(x, effort)
            if math.isnan(value):
                raise NumericsError("the pilot's samples give no estimate of δ for this mechanism")
            if (value > 0.0 and x >= high) or (value <= 0.0 and x <= low):
                return x
            log = math.log(x)
            away = math.log(max(self.crossing.model(x, value + math.log(self.crossing.claim)), 1e-300)) - log
            known.append((log, away))
            bracket[0 if value > 0.0 else 1] = log
            # A last estimate is so near the one before it that the slope between them says nothing.
            step = -away / (_slope(known) if effort <= shards else MODEL_SLOPE)
            full += effort >= shards
            # If more samples had to be drawn, random numbers differ between estimates: none is nearer than its error.
            near = max((4.0 if full >= ENOUGH else 2.0) * noise, 1e-3)
            settled = (
                effort > shards or abs(value) < near or abs(step) < precision or bracket[1] - bracket[0] < precision
            )
            values.append((log, value))
            if effort >= shards and settled:
                if value == NOTHING:
                    # No loss was seen here, so the step from this value means nothing and would lead far out of the bracket.
                    step = 0.0
                # The root may lie beyond the bracket's end, which comes from estimates too.
                root = math.exp(min(max(log + step, math.log(low)), math.log(high)))
                factor = _more(values, noise, self.session.plan.tolerance)
                if effort > shards or factor == 1:
                    return root
                # If δ hardly changes with x, a root that is good enough takes more samples: one more estimate.
                effort, x = factor * shards, root
                continue
            effort = shards if abs(step) <= LONGEST else min(SCOUT, shards)
            x = math.exp(_inside(log + min(max(step, -LONGEST), LONGEST), bracket))
            x = min(max(x, low), high)
        raise NumericsError("the pilot's estimates of δ did not converge")


def _slope(known: list[tuple[float, float]]) -> float:
    """Return the slope through the last two estimates, if they are apart, or else that of the model."""
    if len(known) < 2:
        return MODEL_SLOPE
    (one, other), (last, value) = known[-2:]
    if abs(last - one) < 1e-6:
        return MODEL_SLOPE
    return min(max((value - other) / (last - one), SLOPES[0]), SLOPES[1])


def _more(values: list[tuple[float, float]], noise: float, tolerance: float) -> int:
    """Return the factor by which samples must grow for the root to be known to a share of the tolerance; 1 if they suffice."""
    changes = [(abs(y - v), abs(x - u)) for (u, v), (x, y) in pairwise(values) if abs(x - u) > APART]
    slope = changes[-1][0] / changes[-1][1] if changes else 1.0
    error = 4.0 * noise / max(slope, FLATTEST)
    wanted = (error / (CLOSE * tolerance)) ** 2
    return int(min(max(wanted, 1.0), MOST_TIMES))


def _inside(log: float, bracket: list[float]) -> float:
    """Return `log` if it is between the ends of a bracket, or else a point somewhat inside the end it lies beyond."""
    low, high = bracket
    if low < log < high or low >= high:
        return log
    edge = 0.1 * (high - low)
    return low + edge if log <= low else high - edge


def mu_at(log_delta: float, epsilon: float) -> float:
    """Return the μ of a Gaussian mechanism whose δ(ε) has this logarithm; an end of the range if there is none."""
    low, high = (math.log(end) for end in MU_RANGE)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_gaussian(math.exp(middle), epsilon) < log_delta else (low, middle)
    return math.exp(high)


def log_gaussian(mu: float, epsilon: float) -> float:
    """Return ln δ(ε) of N(μ, 1) against N(0, 1), roughly: values far below 1e-16 e^ε may be wrong by rounding."""
    near, far = (epsilon / mu - 0.5 * mu) / math.sqrt(2.0), (epsilon / mu + 0.5 * mu) / math.sqrt(2.0)
    if near > 25.0:
        # Here the terms would underflow: use Mills' ratio to the first order.
        t = near * math.sqrt(2.0)
        return -near * near - 0.5 * math.log(2.0 * math.pi) + math.log(mu / (t * (t + mu)))
    first, second = 0.5 * math.erfc(near), 0.5 * math.erfc(far)
    found = first - (math.exp(epsilon + math.log(second)) if second > 0.0 else 0.0)
    return math.log(found) if found > 0.0 else -1e6
