"""What the numbers of a certificate mean for an attacker: upper bounds on attacks, and the Gaussian mechanism to compare with.

Pure functions of the certificate: no mechanism is reanalysed. What they rest on is the certificate's points, δ at most and
at least at some ε, in each direction; `tradeoff` and `gaussian` prove what follows from such points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.risk.gaussian import needed_at_points, needed_within_range, smallest_possible
from pyaccount.risk.rate import with_more_points
from pyaccount.risk.tradeoff import Bound, TradeOff

if TYPE_CHECKING:
    from pyaccount.certificate.evidence import SamplingRecord
    from pyaccount.certificate.model import CertificateModel
    from pyaccount.directions import Direction

#: False-positive rates at which attacks are reported.
FALSE_POSITIVE_RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: A rate is said to be a matter of the points chosen where others could give less than this share of it.
COARSE = 0.9


@dataclass(frozen=True, slots=True)
class AttackRate:
    """The largest true-positive rates at a false-positive rate: upper bounds, proven and rounded up."""

    false_positive_rate: float
    #: Of a test for "the sensitive records took part".
    presence: float
    #: Of a test for "they were absent".
    absence: float
    #: What more points in the profile could lower the larger of the two to, and no further; None where it has a curve of many
    #: points. No bound on attacks.
    finer: float | None = None

    @property
    def coarse(self) -> bool:
        """Whether more points in the profile could make a difference that counts."""
        return self.finer is not None and self.finer < COARSE * max(self.presence, self.absence)


@dataclass(frozen=True, slots=True)
class GaussianComparison:
    """The μ of Gaussian differential privacy, as far as points of a profile tell."""

    #: δ(ε) ≤ δ_μ(ε) for this μ in each direction, at each ε of its profile and of the guarantee: at most. None if no μ was found.
    #: It claims nothing between these points.
    mu_at_points: float | None
    #: δ(ε) ≤ δ_μ(ε) for this μ and every ε from `first_epsilon` to `last_epsilon`: at most. None if no μ was found. It claims
    #: nothing outside that range, so it is no statement of μ-GDP.
    mu_within_range: float | None
    #: For the group protected, the run is not μ-GDP for any μ below this one: at least.
    mu_lower: float
    first_epsilon: float
    last_epsilon: float


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the certified numbers mean. Every bound follows from the certificate's points alone."""

    trade_off: TradeOff
    rates: tuple[AttackRate, ...]
    #: True-positive rate minus false-positive rate, at most, whichever error the attacker chooses.
    advantage: float
    #: The share of right answers of an attacker who must tell presence from absence, each with probability 1/2: at most.
    balanced_accuracy: float
    gaussian: GaussianComparison
    #: With which at least one bound here may be wrong; 0 for a certificate without samples.
    failure_probability: float
    #: How many points the bounds rest on in each direction, at least: of its profile, its curve and the guarantee.
    points: int


def trade_off(data: CertificateModel) -> TradeOff:
    """The certified trade-off function: an upper bound on every attack. See `tradeoff` for the proof."""
    return TradeOff(upper_points(data, "remove"), upper_points(data, "add"))


def meaning(data: CertificateModel) -> Meaning:
    """What the numbers of a certificate mean. See the fields for what each claims."""
    curve = trade_off(data)
    advantage = curve.advantage()
    dense = any(getattr(data.directions, side).curve is not None for side in DIRECTIONS)
    rates = tuple(
        AttackRate(
            rate,
            curve.true_positive_rate(rate),
            curve.swapped.true_positive_rate(rate),
            None if dense else max(with_more_points(one, rate) for one in (curve, curve.swapped)),
        )
        for rate in FALSE_POSITIVE_RATES
    )
    sides = tuple(stated_points(data, direction) for direction in DIRECTIONS)
    ranges = [(points[0].epsilon, points[-1].epsilon) for points in sides]
    return Meaning(
        trade_off=curve,
        rates=rates,
        advantage=advantage,
        # The sum may have been rounded down.
        balanced_accuracy=min(1.0, math.nextafter(0.5 * (1.0 + advantage), math.inf)),
        gaussian=GaussianComparison(
            mu_at_points=_larger([needed_at_points(points) for points in sides]),
            mu_within_range=_larger([needed_within_range(points) for points in (curve.remove, curve.add)]),
            mu_lower=smallest_possible(lower_points(data)),
            first_epsilon=max(first for first, _ in ranges),
            last_epsilon=min(last for _, last in ranges),
        ),
        failure_probability=failure_probability(data),
        points=min(len(points) for points in (curve.remove, curve.add)),
    )


def upper_points(data: CertificateModel, direction: Direction) -> tuple[Bound, ...]:
    """Every (ε, δ) at most that the certificate states in one direction: those of `stated_points`, and its curve."""
    curve = getattr(data.directions, direction).curve
    more = () if curve is None else map(Bound, curve.epsilon, curve.delta)
    return tuple(sorted({*stated_points(data, direction), *more}))


def stated_points(data: CertificateModel, direction: Direction) -> tuple[Bound, ...]:
    """The (ε, δ) at most of one direction's profile, and of the guarantee from both sides."""
    guarantee, result = data.guarantee, getattr(data.directions, direction)
    points = [Bound(point.epsilon, point.delta) for point in result.profile]
    points.append(Bound(guarantee.epsilon, guarantee.delta))
    if data.evidence.sampling is None:
        points.append(Bound(guarantee.epsilon, result.delta))
        points.append(Bound(result.epsilon, guarantee.delta))
    return tuple(sorted(set(points)))


def lower_points(data: CertificateModel) -> tuple[Bound, ...]:
    """Every (ε, δ) at least that the certificate states for the larger direction, which is what the guarantee is."""
    guarantee = data.guarantee
    points = [Bound(point.epsilon, point.delta_lower) for point in data.profile]
    points.append(Bound(guarantee.epsilon, guarantee.delta_lower))
    if guarantee.epsilon_lower > 0.0:
        # No ε below it holds at δ, and δ(ε) is continuous: at that ε, it is δ or more.
        points.append(Bound(guarantee.epsilon_lower, guarantee.delta))
    return tuple(sorted(set(points)))


def failure_probability(data: CertificateModel) -> float:
    """With which at least one of the bounds may be wrong, over the accountant's own randomness: a union bound.

    q for the tests behind the guarantee, and the pointwise probability once for each upper and each lower end: two for each point
    of the profile, which covers both directions, and two for the guarantee's lower ends. 0 without samples. A verified
    guarantee has its q inside δ; here it is counted again, for the points that no test stands behind. Where the guarantee bounds
    points of the profile they are wrong if it is, which is the same event for all of them.
    """
    sampling = data.evidence.sampling
    if sampling is None:
        return 0.0
    ends = 2 * len(data.profile) + 2
    return min(1.0, sampling.total_probability + ends * sampling.pointwise_failure_probability)


def point_failure_probability(sampling: SamplingRecord) -> float:
    """With which a bound of one point of a sampled profile may be wrong."""
    stated = sampling.profile_failure_probability
    return sampling.pointwise_failure_probability if stated is None else stated


def _larger(mus: list[float | None]) -> float | None:
    """The larger of two bounds, where None is no bound at all."""
    found = [mu for mu in mus if mu is not None]
    return max(found) if len(found) == len(mus) else None
