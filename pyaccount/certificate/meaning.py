"""What a certificate means for an attacker: upper bounds on attacks, and the Gaussian mechanism that it compares with.

These are pure functions of the certificate: no mechanism is analysed a second time. They use only the certificate's
points, that is, upper and lower bounds on δ at some ε in each direction. `tradeoff` and `gaussian` prove what follows
from such points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.records.certificate import CertificateModel
from pyaccount.records.evidence import SamplingRecord
from pyaccount.risk.gaussian import needed_at_points, needed_within_range, smallest_possible
from pyaccount.risk.rate import with_more_points
from pyaccount.risk.tradeoff import Bound, TradeOff

#: The false-positive rates for which attacks are reported.
FALSE_POSITIVE_RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: A bound counts as coarse if more points in the profile could lower it below this share of itself.
COARSE = 0.9


@dataclass(frozen=True, slots=True)
class AttackRate:
    """The largest true-positive rates at one false-positive rate: proven upper bounds, rounded up."""

    false_positive_rate: float
    #: The bound for a test that decides "the sensitive records took part".
    presence: float
    #: The bound for a test that decides "the sensitive records were absent".
    absence: float
    #: The value below which more points in the profile cannot lower the larger of the two; not a bound on attacks. None
    #: if the certificate has a curve of many points.
    finer: float | None = None

    @property
    def coarse(self) -> bool:
        """Whether more points in the profile could lower the bound noticeably."""
        return self.finer is not None and self.finer < COARSE * max(self.presence, self.absence)


@dataclass(frozen=True, slots=True)
class GaussianComparison:
    """The μ of Gaussian differential privacy, as far as the points of a profile determine it."""

    #: An upper bound: δ(ε) ≤ δ_μ(ε) for this μ in each direction, at each ε of its profile and of the guarantee. It
    #: claims nothing between these points. None if no μ was found.
    mu_at_points: float | None
    #: An upper bound: δ(ε) ≤ δ_μ(ε) for this μ and every ε from `first_epsilon` to `last_epsilon`. It claims nothing
    #: outside that range, so it is not a statement of μ-GDP. None if no μ was found.
    mu_within_range: float | None
    #: A lower bound: for the protected group, the run is not μ-GDP for any smaller μ.
    mu_lower: float
    first_epsilon: float
    last_epsilon: float


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the certified numbers mean. Every bound follows from the certificate's points alone."""

    trade_off: TradeOff
    rates: tuple[AttackRate, ...]
    #: Upper bound on true-positive rate minus false-positive rate, whichever error the attacker chooses.
    advantage: float
    #: Upper bound on the share of right answers of an attacker who must decide between presence and absence, if both
    #: have probability 1/2.
    balanced_accuracy: float
    gaussian: GaussianComparison
    #: The probability that at least one bound here is wrong; 0 for a certificate without samples.
    failure_probability: float
    #: The smaller number of points, of both directions, on which the bounds rest: of profile, curve and guarantee.
    points: int


def trade_off(data: CertificateModel) -> TradeOff:
    """Return the certified trade-off function: an upper bound on every attack. See `tradeoff` for the proof."""
    return TradeOff(upper_points(data, "remove"), upper_points(data, "add"))


def meaning(data: CertificateModel) -> Meaning:
    """Return what the numbers of a certificate mean. The fields of `Meaning` say what each of them claims."""
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
        # `nextafter`, because the sum may have been rounded down.
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
    """Return every upper bound (ε, δ) that a certificate states in one direction: `stated_points`, and the curve."""
    curve = getattr(data.directions, direction).curve
    more = () if curve is None else map(Bound, curve.epsilon, curve.delta)
    return tuple(sorted({*stated_points(data, direction), *more}))


def stated_points(data: CertificateModel, direction: Direction) -> tuple[Bound, ...]:
    """Return the upper bounds (ε, δ) of one direction's profile, and both of the guarantee."""
    guarantee, result = data.guarantee, getattr(data.directions, direction)
    points = [Bound(point.epsilon, point.delta) for point in result.profile]
    points.append(Bound(guarantee.epsilon, guarantee.delta))
    if data.evidence.sampling is None:
        points.append(Bound(guarantee.epsilon, result.delta))
        points.append(Bound(result.epsilon, guarantee.delta))
    return tuple(sorted(set(points)))


def lower_points(data: CertificateModel) -> tuple[Bound, ...]:
    """Return every lower bound (ε, δ) that a certificate states for the larger direction, which is the guarantee."""
    guarantee = data.guarantee
    points = [Bound(point.epsilon, point.delta_lower) for point in data.profile]
    points.append(Bound(guarantee.epsilon, guarantee.delta_lower))
    if guarantee.epsilon_lower > 0.0:
        # No smaller ε holds at this δ, and δ(ε) is continuous: at this ε it is at least δ.
        points.append(Bound(guarantee.epsilon_lower, guarantee.delta))
    return tuple(sorted(set(points)))


def failure_probability(data: CertificateModel) -> float:
    """Return a union bound on the probability that some bound is wrong, over the accountant's randomness.

    It adds q for the tests of the guarantee and the pointwise probability for each upper and each lower end: two for
    each point of the profile (they cover both directions), and two for the lower ends of the guarantee. A verified
    guarantee includes its q in δ; q is counted here all the same, for the points that no test supports. If the guarantee
    bounds points of the profile, these are wrong if the guarantee is, which is one event for all of them. Without samples
    it is the probability of the guarantee, which is 0 unless the document states guarantees from samples.
    """
    sampling = data.evidence.sampling
    if sampling is None:
        # This covers all bounds: they are proven if the stated guarantees of the document hold.
        return data.guarantee.failure_probability
    ends = 2 * len(data.profile) + 2
    return min(1.0, sampling.total_probability + ends * sampling.pointwise_failure_probability)


def point_failure_probability(sampling: SamplingRecord) -> float:
    """Return the probability that a bound of one point of a sampled profile is wrong."""
    stated = sampling.profile_failure_probability
    return sampling.pointwise_failure_probability if stated is None else stated


def _larger(mus: list[float | None]) -> float | None:
    """Return the largest of several bounds; None if one of them is None, that is, unbounded."""
    bounds = [mu for mu in mus if mu is not None]
    return max(bounds) if len(bounds) == len(mus) else None
