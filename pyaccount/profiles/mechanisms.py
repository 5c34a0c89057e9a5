"""Profiles of mechanisms: numbers and vectors with noise, selections with a bounded range of losses, and stated guarantees.

Pairs of finite laws are among them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from pyaccount import _core
from pyaccount.profiles.base import Graded, ProfileKind, Rounds, counted


@dataclass(frozen=True, slots=True)
class GaussianProfile(ProfileKind):
    """N(s, σ²) against N(0, σ²)."""

    closed: ClassVar[bool] = True

    sensitivity: float
    noise_multiplier: float

    def graded(self) -> Graded:
        """Return the sensitivity and the noise; every record takes part."""
        return Graded(self.sensitivity, 1.0, self.noise_multiplier)

    def regraded(self, rate: float, noise: float) -> GaussianProfile:
        """Return the profile with other noise."""
        return GaussianProfile(self.sensitivity, noise)


@dataclass(frozen=True, slots=True)
class LaplaceProfile(ProfileKind):
    """Lap(s, b) against Lap(0, b)."""

    called: ClassVar[str | None] = "Laplace noise"

    sensitivity: float
    scale: float


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceProfile(ProfileKind):
    """The law proportional to e^(−|x|/b) on the integers, moved by a number of steps."""

    called: ClassVar[str | None] = "discrete Laplace noise"

    shift: int
    scale: float


@dataclass(frozen=True, slots=True)
class DiscreteGaussianProfile(ProfileKind):
    """The law proportional to e^(−x²/2σ²) on the integers, moved by a number of steps."""

    called: ClassVar[str | None] = "discrete Gaussian noise"

    shift: int
    sigma: float


@dataclass(frozen=True, slots=True)
class SkellamProfile(ProfileKind):
    """The law of the difference of two Poisson variables, each with half the variance as its mean, moved by a number of steps."""

    called: ClassVar[str | None] = "Skellam noise"

    shift: int
    variance: float


@dataclass(frozen=True, slots=True)
class PartiesProfile(ProfileKind):
    """The law of the sum of several discrete Gaussians with the same parameter, moved by a number of steps."""

    called: ClassVar[str | None] = "discrete Gaussian noise of several parties"

    shift: int
    sigma: float
    parties: int


@dataclass(frozen=True, slots=True)
class MixtureProfile(ProfileKind):
    """Σ_j p_j N(s_j, σ²) against N(0, σ²); `reverse` is the direction add."""

    called: ClassVar[str | None] = "a random contribution with Gaussian noise"

    probabilities: tuple[float, ...]
    sensitivities: tuple[float, ...]
    sigma: float
    reverse: bool


def multiplier_of(rounds: tuple[Rounds, ...]) -> Fraction:
    """Return σ/s, exactly, of rounds that are one Gaussian mechanism."""
    (only,) = rounds
    assert isinstance(only.profile, GaussianProfile)
    assert only.count == 1
    return Fraction(only.profile.noise_multiplier) / Fraction(only.profile.sensitivity)


def merged(rounds: tuple[Rounds, ...], *, rounding: float) -> tuple[Rounds, ...]:
    """Return the rounds with all Gaussian ones as one, rounded up (`rounding` is 1) or down (−1).

    The composition of Gaussian mechanisms with sensitivities s_i and noise σ_i is exactly the Gaussian mechanism with (s/σ)² =
    Σ (s_i/σ_i)² (Dong, Roth & Su 2022, Corollary 3.3).
    """
    gaussians = [(item.profile, item.count) for item in rounds if isinstance(item.profile, GaussianProfile)]
    if not gaussians:
        return rounds
    squares = math.fsum(count * (one.sensitivity / one.noise_multiplier) ** 2 for one, count in gaussians)
    # Quotient, square, product, sum, root and the last product err by less than 5 units of rounding; the ratio is moved by 8
    # to the safe side.
    ratio = math.sqrt(squares) * (1.0 + rounding * 4.0 * sys.float_info.epsilon)
    rest = tuple(item for item in rounds if not isinstance(item.profile, GaussianProfile))
    return (Rounds(GaussianProfile(ratio, 1.0), 1), *rest)


@dataclass(frozen=True, slots=True)
class GuaranteesProfile(ProfileKind):
    """The pair that attains the lower convex hull of points (ε, δ); for one point that of Kairouz, Oh & Viswanath."""

    called: ClassVar[str | None] = "a mechanism of which only (ε, δ) is known"
    without_divergence: ClassVar[str] = ": with a δ above 0 its divergences may be infinite"

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class RenyiProfile(ProfileKind):
    """The profile that follows from bounds on Rényi divergences of some orders, in nats."""

    called: ClassVar[str | None] = "a mechanism of which only Rényi divergences are known"
    without_divergence: ClassVar[str] = ": no divergence of this order or a larger one is stated"
    has_losses: ClassVar[bool] = False

    orders: tuple[float, ...]
    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ZcdpProfile(ProfileKind):
    """The profile that follows from the bound aρ on the Rényi divergence of every order a."""

    called: ClassVar[str | None] = "a mechanism of which only ρ is known"
    has_losses: ClassVar[bool] = False

    rho: float


@dataclass(frozen=True, slots=True)
class FiniteProfile(ProfileKind):
    """The law p against q, on the same outcomes, with a relative error of each probability."""

    called: ClassVar[str | None] = "a mechanism with finitely many outcomes"

    p: tuple[float, ...]
    q: tuple[float, ...]
    relative_error: float = 0.0
    reverse: bool = False


def added(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with one profile for all that are known by their Rényi divergences.

    The divergence of a composition, adaptive or not, is at most the sum of those of its rounds (Bun & Steinke 2016, Lemma
    2.2; Mironov 2017). If only divergences of some orders are known for a round, the sum is known for the orders that all
    have; rounds without a common order stay separate.
    """
    concentrated = [(item.profile.rho, item.count) for item in rounds if isinstance(item.profile, ZcdpProfile)]
    listed = [(item.profile, item.count) for item in rounds if isinstance(item.profile, RenyiProfile)]
    kinds = len(concentrated) + len(listed)
    if kinds == 0 or (kinds == 1 and sum(count for _, count in (*concentrated, *listed)) == 1):
        return rounds
    rho = math.fsum(count * one for one, count in concentrated)
    tables = [dict(zip(one.orders, one.bounds, strict=True)) for one, _ in listed]
    orders = sorted(set.intersection(*map(set, tables))) if tables else []
    if listed and not orders:
        return rounds
    # The sums err by less than two units of rounding.
    up = 1.0 + 2.0 * sys.float_info.epsilon
    together: ProfileKind = ZcdpProfile(rho * up)
    if listed:
        totals = [
            (rho * a + math.fsum(count * table[a] for (_, count), table in zip(listed, tables, strict=True))) * up * up
            for a in orders
        ]
        together = RenyiProfile(tuple(orders), tuple(totals))
    rest = (item for item in rounds if not isinstance(item.profile, ZcdpProfile | RenyiProfile))
    return counted([*rest, Rounds(together, 1)])


@dataclass(frozen=True, slots=True)
class ExponentialProfile(ProfileKind):
    """The worst pair of laws whose losses lie in an interval of this length."""

    called: ClassVar[str | None] = "a selection of bounded range"

    range: float


@dataclass(frozen=True, slots=True)
class ExponentialRunsProfile(ProfileKind):
    """The worst of several such runs, each of which may depend on the earlier ones."""

    called: ClassVar[str | None] = "selections of bounded range"

    range: float
    runs: int


def in_blocks(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with mechanisms of one bounded range in blocks of as many runs as the core bounds together.

    The profile of a block of k runs is the supremum over all choices of the two-point losses of each run, which may depend on
    what was released before. Composed with all other rounds, blocks of the same and of other ranges among them, it bounds the
    runs in any order with them; the proof is at the head of `rust/core/src/pair/exponential_runs.rs`. The composition of k
    single runs bounds them too, but loosely, because no choice is the worst for every ε at once.
    """
    runs: dict[float, int] = {}
    rest = []
    for item in rounds:
        match item.profile:
            case ExponentialProfile(bound):
                runs[bound] = runs.get(bound, 0) + item.count
            case ExponentialRunsProfile(bound, each):
                runs[bound] = runs.get(bound, 0) + each * item.count
            case _:
                rest.append(item)
    if not any(count > 1 for count in runs.values()):
        return rounds
    for bound, count in runs.items():
        most = _core.most_exponential_runs(bound)
        whole, left = divmod(count, most)
        rest += [
            Rounds(ExponentialProfile(bound) if each == 1 else ExponentialRunsProfile(bound, each), number)
            for each, number in ((most, whole), (left, 1))
            if number * each
        ]
    return counted(rest)
