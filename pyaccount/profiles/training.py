"""Profiles of rounds of training: Gaussian noise on the sum of a batch that is drawn.

The samplers' modules in `pyaccount.plan.samplers` have the theorems, and the core's modules the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from pyaccount import _core
from pyaccount.profiles.base import Graded, ProfileKind


@dataclass(frozen=True, slots=True)
class PoissonProfile(ProfileKind):
    """Σ_j Bin(k, p)(j) N(j, σ²) against N(0, σ²), or, if it is two-sided, against its mirror image."""

    group_size: int
    sampling_probability: float
    noise_multiplier: float
    two_sided: bool
    reverse: bool

    def graded(self) -> Graded:
        """Return the group size, the sampling probability and the noise multiplier."""
        return Graded(self.group_size, self.sampling_probability, self.noise_multiplier)

    def regraded(self, rate: float, noise: float) -> PoissonProfile:
        """Return the profile with another sampling probability and noise multiplier."""
        return replace(self, sampling_probability=rate, noise_multiplier=noise)


@dataclass(frozen=True, slots=True)
class TruncatedPoissonProfile(ProfileKind):
    """A Poisson sample that is truncated to `limit` records."""

    dataset_size: int
    limit: int
    sampling_probability: float
    noise_multiplier: float
    reverse: bool


@dataclass(frozen=True, slots=True)
class CopiesProfile(ProfileKind):
    """A batch with a fixed number of draws: a group of records that is drawn together as often as the law of copies says."""

    sampler: str
    group_size: int
    dataset_size: int
    batch_size: int
    subset_size: int
    shift: float
    noise_multiplier: float
    reverse: bool


@dataclass(frozen=True, slots=True)
class DisplacedProfile(ProfileKind):
    """The same for records that are replaced, or set to zero, and so change the contributions of the others' places."""

    change: str
    sampler: str
    group_size: int
    dataset_size: int
    batch_size: int
    subset_size: int
    noise_multiplier: float
    reverse: bool


@dataclass(frozen=True, slots=True)
class OpposedProfile(ProfileKind):
    """A bound from below for a batch of a fixed size whose other records contribute the opposite."""

    dataset_size: int
    batch_size: int
    noise_multiplier: float


@dataclass(frozen=True, slots=True)
class FixedSizeRunProfile(ProfileKind):
    """All rounds of batches of a fixed size, records replaced or `zeroed`: bounds on the largest δ of adaptive gradients.

    Each phase is (sampler, group, dataset size, batch size, subset, noise multiplier, rounds), in the order of time; the bounds
    are accurate around `delta`, or around `epsilon` if that is None. From above the profile may be composed with other rounds.
    From below it bounds these rounds by themselves: for each ε the gradients are chosen for this ε.
    """

    phases: tuple[tuple[str, int, int, int, int, float, int], ...]
    delta: float | None
    epsilon: float | None
    below: bool
    zeroed: bool = False
    #: The direction, which makes no difference for a replaced record.
    add: bool = False

    def _made(self) -> _core.RoundProfile:
        return _core.RoundProfile.fixed_size_run(self.curve(), add=self.add)

    def curve(self) -> _core.FixedSizeCurve:
        """Return the curve of both directions, with its errors. The last few are kept, since each takes seconds."""
        return _fixed_size_curve(replace(self, add=False))


@lru_cache(maxsize=16)
def _fixed_size_curve(run: FixedSizeRunProfile) -> _core.FixedSizeCurve:
    return _core.FixedSizeCurve(run.phases, zeroed=run.zeroed, below=run.below, delta=run.delta, epsilon=run.epsilon)


@dataclass(frozen=True, slots=True)
class PublicParticipationProfile(ProfileKind):
    """A user whose participations are known to the attacker, with an upper bound on the norm of each round."""

    norm_bounds: tuple[float, ...]
    min_separation: int
    record_probability: float
    records: int
    warm: bool


@dataclass(frozen=True, slots=True)
class SummedOutputsProfile(ProfileKind):
    """A bound from below for such a user: sums of the first outputs, with secret participations."""

    shifts: tuple[tuple[float, ...], ...]
    min_separation: int
    record_probability: float
    records: int
    reverse: bool
    warm: bool


@dataclass(frozen=True, slots=True)
class AllocationProfile(ProfileKind):
    """One random round among several, bounded from above, or from below: squared norms over σ², and their numbers of rounds."""

    squares: tuple[float, ...]
    counts: tuple[int, ...]
    spacing: float
    negligible: float
    reverse: bool
    below: bool


@dataclass(frozen=True, slots=True)
class SeveralOfProfile(ProfileKind):
    """A bound from below for several random rounds among many of the same norm."""

    square: float
    count: int
    participations: int
    spacing: float
    negligible: float
    reverse: bool
