"""The compiled arithmetic core. Internal: `pyaccount` is the public interface."""

import os
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__version__: str

class RoundProfile:
    """The privacy profile δ(ε) of one direction of one round; σ and shifts are in units of the clip norm.

    Whatever makes one raises `NumericsError` for a profile that lacks what every profile has (`rust/core/src/pair/check.rs`).
    """

    #: Whether both directions of the pair have this profile.
    symmetric: bool

    @staticmethod
    def gaussian(sensitivity: float, noise_multiplier: float) -> RoundProfile:
        """N(sensitivity, σ²) against N(0, σ²)."""

    @staticmethod
    def poisson(
        group_size: int, sampling_probability: float, noise_multiplier: float, *, two_sided: bool, reverse: bool
    ) -> RoundProfile:
        """Σ_j Bin(j; k, p) N(j, σ²) against N(0, σ²), or `two_sided` against Σ_j Bin(j; k, p) N(−j, σ²)."""

    @staticmethod
    def copies(  # the parameters of a sampler
        sampler: str,
        group_size: int,
        dataset_size: int,
        batch_size: int,
        subset_size: int,
        shift: float,
        noise_multiplier: float,
        *,
        reverse: bool,
    ) -> RoundProfile:
        """Σ_j p_j N(shift·j, σ²) against N(0, σ²), p the law of how often a group of records is drawn; see `copies`."""

    @staticmethod
    def mixture(
        probabilities: Sequence[float], sensitivities: Sequence[float], sigma: float, *, reverse: bool
    ) -> RoundProfile:
        """Σ_j w_j N(s_j, σ²) against N(0, σ²), where w_j is a probability divided by the sum of all, and every s_j ≥ 0.

        `reverse` is the direction add.
        """

    @staticmethod
    def displaced(
        change: str,
        sampler: str,
        group_size: int,
        dataset_size: int,
        batch_size: int,
        subset_size: int,
        noise_multiplier: float,
        *,
        reverse: bool,
    ) -> RoundProfile:
        """The tightest bound on a batch of a fixed number of draws whose sensitive records are `replaced` or `zeroed`."""

    @staticmethod
    def opposed(dataset_size: int, batch_size: int, noise_multiplier: float) -> RoundProfile:
        """A lower bound: one record of a fixed-size batch set to zero while all others oppose it, two concrete data sets.

        The pair P = (1−q)N(0, σ²) + qN(2, σ²), Q = (1−q)N(0, σ²) + qN(1, σ²), q = batch/dataset.
        """

    @staticmethod
    def fixed_size_run(curve: FixedSizeCurve, *, add: bool) -> RoundProfile:
        """All rounds of fixed-size batches as one profile. From above it may be composed with other rounds; from below it bounds
        these rounds by themselves.
        """

    @staticmethod
    def public_participation(
        norm_bounds: Sequence[float], min_separation: int, record_probability: float, records: int, *, warm: bool
    ) -> RoundProfile:
        """b-min-sep sampling of users whose participations are public: Σ_s Pr[S = s] G_{√s}.

        S = Σ_i x_i² max_{j ≥ i} norm_bounds_j, x_i the number of records drawn in round i; the bounds are in units of σ².
        """

    @staticmethod
    def summed_outputs(
        shifts: Sequence[Sequence[float]],
        min_separation: int,
        record_probability: float,
        records: int,
        *,
        warm: bool,
        reverse: bool,
    ) -> RoundProfile:
        """A lower bound: b-min-sep sampling of one user alone, seen by the sums of the first m outputs, for several m.

        max_m of Σ_x w_x N(S_m(x), 1) against N(0, 1), S_m = Σ_{i ≤ m} x_i a_i, x_i the number of records drawn in round i;
        `shifts` are the a_i for each m: what a record in round i adds to the sum, over the sum's standard deviation.
        """

    @staticmethod
    def truncated_poisson(
        dataset_size: int, limit: int, sampling_probability: float, noise_multiplier: float, *, reverse: bool
    ) -> RoundProfile:
        """Poisson sampling with batches truncated to `limit` records, the number of other records in the round released."""

    @staticmethod
    def allocation(
        squares: Sequence[float],
        counts: Sequence[int],
        spacing: float,
        negligible: float,
        *,
        reverse: bool,
        below: bool,
    ) -> RoundProfile:
        """One of several rounds, chosen at random and in secret: (1/T) Σ_t N(m_t, σ²I) against N(0, σ²I), m_t orthogonal.

        `squares` are ‖m_t‖²/σ², each with how many rounds have it. A bound from above, or from `below`, with a relative gap
        of about the square of `spacing`; masses below `negligible` are not resolved.
        """

    @staticmethod
    def several_of(
        square: float, count: int, participations: int, spacing: float, negligible: float, *, reverse: bool
    ) -> RoundProfile:
        """A lower bound: so many of `count` rounds, chosen at random and in secret, with orthogonal m_t, ‖m_t‖²/σ² = `square`.

        Σ_A N(Σ_{t ∈ A} m_t, σ²I)/C(T, k) over the sets A of k rounds against N(0, σ²I); the rest as of `allocation`.
        What is seen is in which cell Σ_t e^(y_t/σ²) lies, or the sum of all projections: the larger profile.
        """

    @staticmethod
    def laplace(sensitivity: float, scale: float) -> RoundProfile:
        """Lap(0, scale) against Lap(sensitivity, scale)."""

    @staticmethod
    def selection(
        inner_remove: RoundProfile, inner_add: RoundProfile, law: str, parameters: Sequence[float], *, reverse: bool
    ) -> RoundProfile:
        """An upper bound on the best of a random number K of runs, by any fixed order of outcomes; K is not released.

        `inner_remove` and `inner_add` are upper bounds on one run. The law of K is negative-binomial (η > −1, γ; K ≥ 1),
        geometric (γ), logarithmic (γ), poisson (mean) or binomial (n, p); K = 0 releases a fixed symbol.
        """

    @staticmethod
    def guarantees(points: Sequence[tuple[float, float]]) -> RoundProfile:
        """The largest profile of both directions with δ(ε) ≤ δ at each (ε, δ), ε ≥ 0: a hull in e^ε, from both directions.

        One point gives the pair of Kairouz, Oh & Viswanath. Raises DomainError for no points, ε < 0 and δ outside [0, 1].
        """

    @staticmethod
    def tabulated(points: Sequence[tuple[float, float]]) -> RoundProfile:
        """The largest profile with δ(ε) ≤ δ at each (ε, δ), for any ε: the lower convex hull in e^ε of (0, 1) and the points.

        It is constant right of the last point. Raises DomainError for no points, and for a δ outside [0, 1] or below 1 − e^ε.
        """

    @staticmethod
    def finite(p: Sequence[float], q: Sequence[float], *, reverse: bool, relative_error: float = 0.0) -> RoundProfile:
        """Σ_i (p_i − e^ε q_i)₊, or `reverse` Σ_i (q_i − e^ε p_i)₊, where each probability is within 1 ± `relative_error`.

        Each list sums to 1 up to that error and 1e-12, and is normalised. `relative_error` is between 0 and 1e-3.
        """

    @staticmethod
    def exponential(range: float) -> RoundProfile:
        """Every mechanism of bounded range r, in both directions: (e^(r/2) − e^(ε/2))²/(e^r − 1) for |ε| ≤ r."""

    @staticmethod
    def exponential_runs(range: float, runs: int) -> RoundProfile:
        """An upper bound for `runs` mechanisms of bounded range r in a row, chosen adaptively, in both directions.

        h_k(α) = sup_t [p_t·h_{k−1}(αe^(−t)) + (1 − p_t)·h_{k−1}(αe^(r−t))], at most `most_exponential_runs(range)` runs. It is
        an upper bound in any order with other rounds. The last results are kept. Raises `LimitError` at the deadline that was
        entered.
        """

    @staticmethod
    def discrete_laplace(shift: int, scale: float) -> RoundProfile:
        """The law ∝ e^(−|x|/scale) on the integers against itself moved by `shift` ≥ 1, in both directions."""

    @staticmethod
    def discrete_gaussian(shift: int, sigma: float) -> RoundProfile:
        """The law ∝ e^(−x²/2σ²) on the integers against itself moved by `shift`, in both directions.

        The shift is from 1 to 10⁶, and σ from 0.01 to 10⁵.
        """

    @staticmethod
    def skellam(shift: int, variance: float) -> RoundProfile:
        """The difference of two Poisson variables of mean variance/2 against itself moved by `shift`, in both directions.

        The shift is from 1 to 10⁶, and the variance from 1e-9 to 1e8.
        """

    @staticmethod
    def parties(shift: int, sigma: float, parties: int) -> RoundProfile:
        """The sum of several variables with the law ∝ e^(−x²/2σ²) on the integers, against itself moved by `shift`.

        The shift and the number of parties are from 1 to 10⁶, σ is at least 0.1, and σ·√parties at most 10⁴, or for
        σ below 1.5 at most 1000. Both directions have this profile.
        """

    @staticmethod
    def subsampled(inner: RoundProfile, probability: float, *, reverse: bool) -> RoundProfile:
        """Poisson sampling with probability q of a mechanism with the profile `inner` h in the same direction.

        q·h(1 + (α − 1)/q) for remove, (1 − α(1−q))·h(αq/(1 − α(1−q))) for add (`reverse`), α = e^ε. Bounds on h give bounds
        from the same side.
        """

    @staticmethod
    def sometimes(inner: RoundProfile, probability: float) -> RoundProfile:
        """A mechanism that is run with probability q, where the output may show whether it was: q·h(α) + (1 − q)(1 − α)₊."""

    @staticmethod
    def shown(inner: RoundProfile, probability: float, *, reverse: bool) -> RoundProfile:
        """A pair beside an outcome that shows the record with probability r, from its profile h in the same direction.

        r + (1 − r)·h(α/(1 − r)) for remove, h(α(1 − r)) for add (`reverse`), α = e^ε.
        """

    @staticmethod
    def worst(profiles: Sequence[RoundProfile]) -> RoundProfile:
        """The largest of several profiles at each ε, for data sets of which it is not known which of the pairs they have."""

    @staticmethod
    def renyi(orders: Sequence[float], bounds: Sequence[float]) -> RoundProfile:
        """The profile of both directions that follows from Rényi divergences D_a ≤ bound in nats, at orders a > 1.

        min_a e^((a−1)(bound − ε)) (a−1)^(a−1)/a^a, up to 1e-6 of it above δ = 1e-30, and its reflection. Bounds may be inf.
        """

    @staticmethod
    def zcdp(rho: float) -> RoundProfile:
        """The profile of both directions that follows from ρ-zCDP, D_a ≤ aρ for every a > 1: as `renyi`, with the best a."""

    @staticmethod
    def composed(rounds: Sequence[tuple[RoundProfile, int]], *, below: bool) -> RoundProfile:
        """An upper bound on the profile of a composition of rounds, or a lower bound if `below`, at every ε.

        Both differ by about 1e-4 of δ for some tens of rounds. Ctrl-C and time limits stop it.
        """

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Lower and upper bounds on δ at any finite ε, for one round."""

    def largest_loss(self) -> tuple[Fraction, Fraction] | None:
        """Lower and upper bounds on the largest loss, in nats; None if it is infinite or unknown.

        They are equal where the loss follows from the numbers of the profile, read as decimals, without a logarithm.
        """

    def divergence(self, order: float) -> Fraction | None:
        """An upper bound on the Rényi divergence D_a(P‖Q), in nats; None if none is known.

        It is a bound on that of every pair that the profile bounds, in its direction. The order a is greater than 1 and taken as
        its decimal. Raises `DomainError` for another order, and as every interruptible call.
        """

    def concentration(self) -> Fraction | None:
        """A ρ such that D_a(P‖Q) ≤ aρ for every order a > 1; None if none is known."""

    def gaussian_square(self) -> Fraction | None:
        """μ² for a μ such that N(μ, 1) against N(0, 1) dominates the pair; None if none is known."""

    def mass_at_infinity(self) -> float:
        """A lower bound on the probability of an infinite loss, the limit of δ(ε) for large ε."""

    def reversed(self) -> RoundProfile | None:
        """The profile of the pair with both laws exchanged; None if it is not known."""

class ProvenInterval:
    """A proven interval with its error budget (in units of δ at the upper end)."""

    lower: float
    upper: float
    within_tolerance: bool
    spacing: float
    nodes: int
    transform_length: int
    tilt: float
    work: int
    """The work that it took, in cells: entries of transforms, and pairs of atoms."""

    coarser: bool
    """Whether it is wider than asked for because no more work was allowed."""

    budget: dict[str, float]

    @staticmethod
    def proven(lower: float, upper: float) -> ProvenInterval:
        """An interval that was proven without composing anything: no source of error is in it."""

    def at_most(self, upper: float) -> ProvenInterval:
        """The same interval, whose upper end is proven to be at most `upper` in another way."""

def copies(
    sampler: str, group_size: int, dataset_size: int, batch_size: int, subset_size: int
) -> tuple[list[int], list[float], float]:
    """How often a group of records is drawn: counts, log probabilities, and a relative error for every probability.

    `sampler` is fixed-size, with-replacement, must-ow or must-ww; the subset's size matters to the last two only.
    """

def most_exponential_runs(range: float) -> int:
    """The largest number of runs that `RoundProfile.exponential_runs` takes for this range: at least 1, at most 512."""

def binomial_upper_tail(trials: int, probability: float, count: int) -> float:
    """An upper bound on Pr[Bin(trials, probability) ≥ count]: above it by at most 1e-9 relatively, and 2e-280."""

def gram(entries: NDArray[np.float64], rows: int) -> bytes:
    """The Gram matrix of `rows` vectors of one length, from and to doubles one after the other: the same on every processor.

    Each entry is off by at most (m + 1)·2⁻⁵³ of Σ |a_k·b_k|, m the length of a vector.
    """

def worst_rounds(
    gram: NDArray[np.float64], rounds: int, min_separation: int, participations: int, work: int
) -> tuple[float, float, list[int]]:
    """The largest Σ G_ij over at most `participations` rounds, at least `min_separation` apart, by their Gram matrix G ≥ 0.

    Gives it from above, from below, and the rounds of the latter. `work` is how many entries the search for the maximum itself
    may look at; where it ends both bounds are the same.
    """

def series_quotient(series: NDArray[np.float64], divisor: NDArray[np.float64]) -> bytes:
    """The coefficients of a(x)/c(x), as many as a has, as doubles one after the other: the same on every processor.

    Where a ≥ 0, c_0 > 0 and no other c_j is positive, the i-th is off by at most about 3(i + 1)(b + 1)·2⁻⁵³ of itself.
    """

def amplify(
    epsilons: Sequence[float],
    *,
    base: str,
    noise_multiplier: float = 0.0,
    deltas: Sequence[float] = (),
    probability: float | None = None,
    draw: tuple[str, int, int, int] | None = None,
) -> list[tuple[float, float, float, float]]:
    """What one draw does to a base mechanism, for each ε: (δ₁, η, ε′, δ′), all upper bounds.

    `base` is laplace or gaussian with its noise relative to the sensitivity to one substitution, or stated with δ for groups of
    1, 2, …; the draw is a `probability` (Poisson) or (sampler, data set, batch, subset).
    """

def answer_all(
    questions: Sequence[tuple[Sequence[tuple[RoundProfile, int]], float | None, float | None, float]],
    *,
    threads: int = 0,
    time_limit: float | None = None,
    most_work: int | None = None,
) -> list[ProvenInterval]:
    """Compose and answer: each question is (rounds with counts, epsilon, delta, relative tolerance), one of ε and δ None.

    With `most_work` each may take about this many cells, and is wider if these do not suffice.
    """

def curve_all(
    questions: Sequence[tuple[Sequence[tuple[RoundProfile, int]], Sequence[float], float, float]],
    *,
    threads: int = 0,
    time_limit: float | None = None,
    most_work: int | None = None,
) -> list[tuple[list[tuple[float, float]], int, int, bool]]:
    """δ at many ε: each question is (rounds with counts, ascending values of ε ≥ 0, relative tolerance, δ below which
    the tolerance does not count).

    Gives for each the (lower, upper) bounds, how often the rounds were composed, how many cells of work that took, and whether
    bounds are wider because only about `most_work` cells were allowed.
    """

class FixedSizeCurve:
    """The largest δ(ε) of fixed-size batches over adaptive gradients, records replaced or set to zero: bounds from one side.

    Each phase is (sampler, group, dataset size, batch size, subset, noise multiplier, rounds), in the order of time. The curve is
    accurate around `delta`, or around `epsilon`: one of them is given. From above, chords in e^ε between the points (ε, δ) are
    upper bounds. From below, a point bounds δ at its own ε and at every smaller one: an attacker has two pairs of data sets, and
    chooses one in each round by what was released.
    """

    def __new__(
        cls,
        phases: Sequence[tuple[str, int, int, int, int, float, int]],
        *,
        zeroed: bool,
        below: bool,
        delta: float | None = None,
        epsilon: float | None = None,
        threads: int = 0,
        time_limit: float | None = None,
    ) -> FixedSizeCurve: ...
    @property
    def points(self) -> list[list[tuple[float, float]]]:
        """(ε, δ) at increasing ε: of a record set to zero, then of the other direction; of a replaced record once for both."""

    @property
    def lattice(self) -> tuple[float, float, int, int]:
        """The spacing, the tilt, the length of transforms, and the largest number of laws of a round."""

    def errors(self, epsilon: float) -> list[float]:
        """The parts of the error at ε, in units of δ: transforms, window, infinite losses, rounding of masses."""

class ComposedCurve:
    """D(x) = H_{e^x}(P₀‖Q₀) of what is composed with a sampled mechanism, as a table; see the core's `montecarlo::value`."""

    tail_mass: float
    """What D has beyond the last node: it is taken out of the table and to be added to what samples estimate."""

    gap: float
    """The largest distance between the tables at a node, relative to the upper one."""

    def __init__(
        self, first: float, spacing: float, upper: Sequence[float], lower: Sequence[tuple[float, float]]
    ) -> None:
        """Nodes at `first`, `first + spacing`, …: upper bounds on D, and (lower, upper) bounds for a pair that D dominates."""

SHARD_SIZE: int
"""Samples in a shard."""

SHARD_UNITS: int
"""What the shares of proposals in a shard add up to."""

MOST_WORK: float
"""The most additions that the law of public participations may take: iterations × values of S × records."""

MOST_PARTICIPATIONS: int
"""The most participations of `several_of`."""

MOST_LIKELY: float
"""The largest probability with which a proposal joins a round, unless the sampler itself always does."""

class Columns:
    """A lower-triangular non-negative matrix with long columns, and its Gram off-diagonals `min_separation` or more apart."""

    @staticmethod
    def toeplitz(coefficients: Sequence[float], min_separation: int) -> Columns:
        """By all n entries of the first column."""

    @staticmethod
    def buffers(
        first: float, scales: Sequence[float], decays: Sequence[float], iterations: int, min_separation: int
    ) -> Columns:
        """A BLT: c_0 = `first`, c_i = `first`·Σ_j ω_j θ_j^{i−1}."""

    @staticmethod
    def dense(entries: Sequence[float], iterations: int, min_separation: int) -> Columns:
        """By its columns from the diagonal down, one after another."""

    @property
    def gap(self) -> float:
        """max over patterns of ½ Σ Γ_i: how far ln f↑ may be above ln f↓, times σ²."""

    @property
    def norm_bounds(self) -> list[float]:
        """‖c_i‖² + Γ_i for each column, Γ_i the most it shares with others of a pattern."""

class Sampled:
    """A mechanism whose privacy loss can be sampled: a mixture P = Σ_x w_x N(Cx, σ²I) against N(0, σ²I) or its mirror image.

    Everything is in units of σ. A proposal is given by a parameter (renewal: its sampling probability; bins: the exponent of the
    weights' tilt) and the mean scale κ. `direction` is remove, add or replace.
    """

    @staticmethod
    def renewal(
        coefficients: Sequence[float], iterations: int, min_separation: int, sampling_probability: float, warm: bool
    ) -> Sampled:
        """b-min-sep sampling with the banded Toeplitz matrix of these coefficients (divided by σ)."""

    @staticmethod
    def users(
        coefficients: Sequence[float],
        iterations: int,
        min_separation: int,
        record_probability: float,
        records: int,
        warm: bool,
    ) -> Sampled:
        """b-min-sep sampling of users with so many records each, every one drawn with the probability given while the user is
        available; `parameter` is then the probability that a user joins.
        """

    @staticmethod
    def phases(coefficients: Sequence[float], iterations: int, phases: int, sampling_probability: float) -> Sampled:
        """Cyclic Poisson sampling with a random phase and the banded Toeplitz matrix of these coefficients (divided by σ)."""

    @staticmethod
    def overlapping(
        columns: Columns, noise_multiplier: float, record_probability: float, records: int, warm: bool, below: bool
    ) -> Sampled:
        """b-min-sep sampling with columns that overlap: the loss judged from above (f↑ or f↓, whichever makes it larger), or from
        below.
        """

    @staticmethod
    def bins(gram: Sequence[float], inner: int) -> Sampled:
        """Balls in bins, from the Gram matrix of the modes (divided by σ²), row by row; `inner` is the modes' length."""

    @staticmethod
    def allocation(rounds: int, taken: int, unit: float) -> Sampled:
        """Random allocation of `taken` out of all rounds, fewer than there are, without a matrix; `unit` is 1/σ."""

    @staticmethod
    def windows(coefficients: Sequence[float], iterations: int, sampling_probability: float, records: int) -> Sampled:
        """Poisson sampling of a group of records with the banded Toeplitz matrix of these coefficients (divided by σ)."""

    @staticmethod
    def group(
        coefficients: Sequence[float],
        iterations: int,
        min_separation: int,
        sampling_probability: float,
        warm: bool,
        records: int,
    ) -> Sampled:
        """b-min-sep sampling of a group of records, each on its own, with the matrix of these coefficients (divided by σ)."""

    @staticmethod
    def allocated(coefficients: Sequence[float], iterations: int, length: int, taken: int) -> Sampled:
        """Random allocation of `taken` out of every `length` rounds, with the matrix of these coefficients (divided by σ)."""

    @staticmethod
    def together(parts: Sequence[tuple[Sampled, int]]) -> Sampled:
        """Mechanisms that are sampled beside one another, each so many times, independently; one parameter for each."""

    def truncated(self, dataset_size: int, limit: int) -> Sampled:
        """The same sampler of one record (renewal or bins) with batches truncated to `limit` of `dataset_size` records.

        It is compared with an empty record's Q in place of N(0, I): directions remove and add.
        """

    @property
    def of_single_records(self) -> bool:
        """Whether all mechanisms are of single records under b-min-sep sampling, whose columns do not overlap."""

    @property
    def plain_parameter(self) -> float:
        """The parameter of plain sampling: the probability to join, or the exponent 0."""

    @property
    def plain_parameters(self) -> list[float]:
        """The parameters of plain sampling, one for each mechanism."""

    def balanced_parameters(self, mean_scale: float) -> list[float]:
        """The parameters that keep the weight bound smallest at this mean scale, one for each mechanism."""

    def bounds(
        self,
        direction: str,
        parameter: float | Sequence[float],
        mean_scale: float,
        epsilon: float,
        curve: ComposedCurve | None = None,
        *,
        order: int | None = None,
        block: int | None = None,
        most_busy: int | None = None,
        floor: float | None = None,
        threads: int = 1,
        time_limit: float | None = None,
    ) -> tuple[float, float, float]:
        """The weight bound of V, a bound on |E V − δ| from the generator, and a bound on each log density's rounding.

        With a curve, V and δ are without its tail mass. With an `order` samples are of that power of the likelihood ratio of a
        removed record, whatever the proposal is (see the core's `montecarlo::proposals::replicated`), drawn by blocks of `block`
        rounds if these are given, or where no more than `most_busy` replicas are busy at once (see `left_out`): its chain of
        replicas is computed, and kept until another one is asked for, in up to 24 bytes for each state and 256 MiB. With a
        `floor` they are of a replaced record, and bounded at it as those of a removed record. Raises
        `NumericsError` where a mechanism has no chain or one that leaves the range of numbers, `LimitError`.
        """

    def left_out(
        self,
        order: int,
        most_busy: int,
        epsilon: float,
        curve: ComposedCurve | None = None,
        *,
        threads: int,
        time_limit: float | None,
    ) -> float:
        """By how much E V falls short of δ(ε) at most, of samples of a power with no more than `most_busy` busy replicas.

        See the core's `replicas::left_out` for the proof. Infinite where nothing is known. Takes 32 bytes more for each state.
        """

    def simulate(
        self,
        direction: str,
        parameter: float | Sequence[float],
        mean_scale: float,
        tables: Sequence[tuple[float, float, Sequence[tuple[float, float]]]],
        *,
        edges: tuple[float, float] | None,
        key: tuple[int, int, int, int],
        first: int,
        count: int,
        threads: int,
        time_limit: float | None,
        curve: ComposedCurve | None = None,
        order: int | None = None,
        block: int | None = None,
        most_busy: int | None = None,
        floor: float | None = None,
    ) -> tuple[list[list[tuple[list[float], float, float]]], LossHistogram | None]:
        """Run `count` shards from `first` with the streams of `key` = (seed, purpose, candidate, direction).

        A table is (ε, weight bound, [(threshold, betting fraction), …]). Returns for each shard and table (log wealths, Σ V,
        Σ V²), and the histogram with bins (lowest edge, width) if asked for. The rest is as in `bounds`.
        """

    def balanced(
        self,
        direction: str,
        components: Sequence[tuple[int, Sequence[float], float]],
        epsilons: Sequence[float],
        *,
        key: tuple[int, int, int, int],
        first: int,
        count: int,
        threads: int,
        time_limit: float | None,
        curve: ComposedCurve | None = None,
    ) -> tuple[
        list[int],
        list[tuple[float, float]],
        list[list[tuple[float, float]]],
        list[list[tuple[float, float]]],
        list[float],
    ]:
        """Estimates of δ at each ε from several proposals by the balance heuristic; see the core's `proposals::balanced`.

        A component is (share, parameters, mean scale), or (share, [], θ) for the mechanism tilted along its mean participation;
        the first is plain sampling (θ = 0), and the shares add up to `SHARD_UNITS`. Gives for each component how many samples
        were drawn from it and their Σ L and Σ L², for each ε the Σ V and Σ V² of these, and over all samples Σ V·α dM_k/dM and
        Σ V²·dM/dM_k; at last the largest V for each ε.
        """

    def defensive_bounds(
        self,
        direction: str,
        components: Sequence[tuple[int, Sequence[float], float]],
        epsilon: float,
        curve: ComposedCurve | None = None,
    ) -> tuple[float, float, float]:
        """As `bounds`, for samples from a mixture with the components of `balanced`; see the core's `claims::defensive`."""

    def defensive(
        self,
        direction: str,
        components: Sequence[tuple[int, Sequence[float], float]],
        tables: Sequence[tuple[float, float, Sequence[tuple[float, float]]]],
        *,
        key: tuple[int, int, int, int],
        first: int,
        count: int,
        threads: int,
        time_limit: float | None,
        curve: ComposedCurve | None = None,
    ) -> list[list[tuple[list[float], float, float]]]:
        """As `simulate`, with samples from a mixture; wealths mean something after whole shards only."""

    def gradient(
        self,
        direction: str,
        components: Sequence[tuple[int, Sequence[float], float]],
        epsilon: float,
        *,
        origin: Sampled | None,
        key: tuple[int, int, int, int],
        first: int,
        count: int,
        threads: int,
        time_limit: float | None,
    ) -> DeltaGradient:
        """Estimates of δ(ε) and of its derivatives in the matrix and in σ, of `renewal`, `users`, `phases` or `bins`.

        Samples come from the proposals (the components of `balanced`) of `origin`, a mechanism of the same kind with another
        matrix on as many rounds (bins), or of this one (None). While origin, components, key, `first` and `count` stay the same,
        the estimate of δ is a continuous function of the matrix, and the derivatives are those of this function, wherever no
        sample's loss is exactly ε. See the core's `montecarlo::gradients`. `direction` is remove or add.
        """

    def replicas(self, order: int, block: int | None = None, most_busy: int | None = None) -> tuple[int, float] | None:
        """The states of the largest chain of so many replicas, and how many are computed of all chains in all steps at most.

        A step is a round, or a block of so many; no more than `most_busy` replicas are busy at once, if this is given, at least 2
        and fewer than all. None where a mechanism has no chain, one that is too large, or no such blocks.
        """

    def tuple_price(self, order: int) -> float:
        """About how many nanoseconds the replicas of one sample take where they are not drawn by ages."""

    def log_moment(
        self,
        order: int,
        *,
        block: int | None = None,
        most_busy: int | None = None,
        gap: float = 1e-3,
        threads: int,
        time_limit: float | None,
    ) -> tuple[float, float, float]:
        """Bounds on ln E f^order of all mechanisms and runs together, f = dP/dR and the mean under R; the upper may be infinite.

        The third number is how much of the upper one is for what few busy replicas leave out.

        It may be too high by `gap` for not computing every step, or where that needs more steps than a few times the separation,
        by what these cost. By blocks the lower bound is 0. Where few replicas may be busy the upper bound has what is left out.
        Takes 16 bytes for each state of a chain, 32 more for what is left out. Raises `NumericsError` where a mechanism has no
        chain.
        """

    def added_bounds(self, tilt: float, epsilons: list[float]) -> list[tuple[float, float]] | None:
        """For each ε, ln of upper bounds on E V² of samples of R tilted by `tilt` < 0 and on δ(ε), where a record is added.

        They may be infinite. None where nothing is known of the mechanism; see the core's `montecarlo::claims::linear`.
        """

    def tilt(self, theta: float) -> tuple[float, float, float] | None:
        """‖m̄‖², E‖Cx‖²/2 (both in units of σ²) and ln Z(θ); None where nothing can be tilted."""

class DeltaGradient:
    """Estimates of δ(ε) and its derivatives from `samples` samples: pairs are (estimate, standard error). None is a bound.

    Rounds: derivatives are ∂δ/∂ĉ_j, one for each coefficient in units of σ, ĉ = c/σ. Bins: ∂δ/∂Γ_st, Γ the Gram matrix of the
    modes in units of σ², row by row and symmetric, so that dδ = Σ_st (∂δ/∂Γ_st) dΓ_st; their errors are infinite where only one
    shard was run.
    """

    samples: int
    effective_samples: float
    """(Σ V)²/Σ V²: equal samples that would tell δ as well."""
    delta: tuple[float, float]
    log_noise: tuple[float, float]
    """σ·∂δ/∂σ."""
    derivatives: list[float]
    standard_errors: list[float]
    covariances: list[float]
    """Of each estimated derivative with the estimated σ·∂δ/∂σ."""

    def __init__(
        self,
        samples: int,
        effective_samples: float,
        delta: tuple[float, float],
        log_noise: tuple[float, float],
        derivatives: Sequence[float],
        standard_errors: Sequence[float],
        covariances: Sequence[float],
    ) -> None:
        """The same again, from its attributes."""

class AddedMean:
    """Samples of D, whose mean bounds δ where a record is added; see the core's `montecarlo::claims::added_mean`."""

    @staticmethod
    def of(mechanism: Sampled, size: float) -> AddedMean | None:
        """Samples of R shifted by −size times the mean participation. None for mechanisms that the theorem is not about.

        Raises `ValueError` for a size that is not positive and below 1e6.
        """

    def limits(self, exponent: float, moment: int, epsilon: float) -> tuple[float, float, float]:
        """For λ: ln of the factor by which e^{E D} bounds δ_add(ε) (moment 1) or E V² around the shift (moment 2), an upper
        bound on D, and on the error of the mean.

        Raises `ValueError` for other moments.
        """

    def simulate(
        self,
        tables: list[tuple[float, float, list[tuple[float, float]]]],
        moment: int,
        *,
        key: tuple[int, int, int, int],
        first: int,
        count: int,
        threads: int,
        time_limit: float | None,
    ) -> list[list[tuple[list[float], float, float]]]:
        """For each shard and table (λ, the largest D, [(threshold, fraction), …]): ln of each bet's wealth, Σ D and Σ D²."""

class LossHistogram:
    """Samples by privacy loss, with the sums of their weights and squared weights."""

    samples: int

    def __init__(self, edges: tuple[float, float], samples: int, bins: Sequence[tuple[int, int, float, float]]) -> None:
        """The histogram of a `state`."""

    def state(self) -> tuple[tuple[float, float], int, list[tuple[int, int, float, float]]]:
        """(lowest edge, width of a bin), the samples, and (bin, count, Σ w, Σ w²) for each bin that has any."""

    def merged(self, other: LossHistogram) -> LossHistogram:
        """Both together; they must be of the same mechanism, direction, proposal and bins."""

    def moments(self, epsilon: float, curve: ComposedCurve | None = None) -> tuple[float, float, float]:
        """The sample mean of V at ε from below and from above, and the mean of V² from above."""

class Cancellation:
    """While it is entered, calls of this thread end with `KeyboardInterrupt` within 0.1 s of another thread's `cancel`."""

    cancelled: bool

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """End the calls of the threads that have entered it."""

    @staticmethod
    def check() -> None:
        """Raise `KeyboardInterrupt` if one that this thread has entered was cancelled: for work that is no call of the core.

        Raises `LimitError` after the `Deadline` that it has entered.
        """

    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...

class Deadline:
    """While it is entered, what this thread does ends so many seconds after it was made, at the latest: calls of the core that
    have no time limit of their own, and loops that call `Cancellation.check`. Of several the innermost counts; None is no limit.
    """

    def __init__(self, seconds: float | None) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...

def created(path: str | os.PathLike[str]) -> int | None:
    """When a file was made, in nanoseconds since 1970; None where the file system does not keep it, or nothing is there."""

class NoiseRows:
    """Rows of C⁻¹Z for the elements `first` … `first + length − 1` of a parameter.

    Element i of row t of Z is standard normal (Box–Muller in double precision, from 128 bits of ChaCha20 for two numbers) and a
    function of (the row's key, t, i) alone. `single`: rows are float32, else float64; each number is rounded to it once.
    """

    def __init__(
        self,
        first: int,
        length: int,
        *,
        single: bool,
        kept: int = 0,
        decays: Sequence[float] | None = None,
    ) -> None:
        """The memory m is that of the last `kept` rows, the newest first; or, with `decays`, of running sums of all rows before,
        m_j ← decays_j·m_j + z after each row z.
        """

    def next(
        self,
        fresh: Sequence[tuple[bytes, int, float]],
        coefficients: Sequence[float],
        out: NDArray[np.generic] | None = None,
    ) -> None:
        """Draw z = Σ weight·w_round + Σ_j coefficients_j·m_j for the (key, round, weight) in `fresh`, and write it into `out`.

        w_round is the row of Z that is drawn from the key of 32 bytes, in the stream of the round.

        The memory then goes on by this row. After an error it has not, unless that is a KeyboardInterrupt: then it may have.
        """

    def add(self, start: int, length: int, sums: NDArray[np.generic], step: float, divisor: float) -> None:
        """Replace `length` sums of float32 or float64, from element `start` on, by sum + newest row, for rows of doubles.

        It is added in double precision, rounded to a multiple of `step`, then to the type of the sums, and divided in that type.
        """

    def clear(self) -> None:
        """Set the memory to zero, as before the first row."""

    def kept(self, place: int, out: NDArray[np.generic]) -> None:
        """Write m_place into `out`: an array of the rows' type, or of doubles for running sums."""

    def restore(self, place: int, values: NDArray[np.generic]) -> None:
        """Put back what `kept` wrote."""

class Inspection:
    """What only tests ask of the core: single evaluations, and what is drawn on the way."""

    INSTRUCTION_SETS: list[str]
    """The instruction sets that sampling can use on this processor, the one that is used first."""

    @staticmethod
    def normals(key: bytes, round: int, group: int, count: int, instruction_set: str) -> list[float] | None:
        """The numbers of so many groups of sixteen of one row of Z, from group `group` on, by one copy of the generator.

        None where this processor cannot execute it.
        """

    @staticmethod
    def discrete(outcomes: Sequence[tuple[float, float]]) -> RoundProfile:
        """A finite pair, given as (P, Q) probabilities of each outcome: answers to compositions of it have closed forms."""

    @staticmethod
    def profile(profile: RoundProfile, epsilon: float) -> tuple[float, float, float, float]:
        """δ(ε), a bound on its error, −dδ/dε, a bound on its error."""

    @staticmethod
    def curve(curve: ComposedCurve, x: float) -> tuple[float, float]:
        """(at most max(D(x) − tail mass, 0), at least D(x) − tail mass)."""

    @staticmethod
    def bins(histogram: LossHistogram) -> tuple[list[int], list[float]]:
        """How many samples each bin has, and the sums of their weights."""

    @staticmethod
    def log_densities(
        sampled: Sampled,
        outcomes: Sequence[Sequence[float]],
        direction: str = "replace",
        batch_sizes: Sequence[Sequence[int]] = (),
    ) -> list[tuple[float, float]]:
        """ln dP/dR and ln dP⁻/dR, R = N(0, I), at outcomes y/σ (bins: at the inner products ⟨m_t, y⟩/σ²).

        Where they are only enclosed: the ends that make the loss of this direction larger (from below: smaller). With truncated
        batches ln dQ/dR stands second, and `batch_sizes` has the numbers of other records for every outcome.
        """

    @staticmethod
    def batch_sizes(sampled: Sampled, *, key: tuple[int, int, int, int], shard: int) -> list[list[int]]:
        """The other records' numbers in each batch, of a shard's first eight samples; none without truncation."""

    @staticmethod
    def probe(
        sampled: Sampled,
        direction: str,
        parameter: float | Sequence[float],
        mean_scale: float,
        *,
        key: tuple[int, int, int, int],
        shard: int,
        instruction_set: str,
    ) -> tuple[list[float], list[float], list[float]] | None:
        """ln dP/dR, ln dP⁻/dR and ln dM/dR of a shard's first eight samples; None where the processor lacks the instructions."""

#: The most records, users or rounds that a list has.
MOST_LISTED: int

class BatchStreams:
    """Where the batches of one run are drawn from: 32 secret bytes, which are shown nowhere.

    Records are numbered from 0 and given as the bytes of 64-bit integers in the machine's order, ascending, each as often as it
    was drawn. All laws are exact (`rust/core/src/batches`), and what is drawn is a function of the key and the arguments.
    """

    def __init__(self, key: bytes) -> None: ...
    def poisson(self, round: int, records: int, probability: float, draws: int, *, before_first: bool = False) -> bytes:
        """Each of `records` joins each of `draws` with a probability in (0, 1]; with streams `before_first`, if asked."""

    def without_replacement(self, round: int, records: int, count: int) -> bytes:
        """A uniformly random set of `count` records."""

    def with_replacement(self, round: int, records: int, count: int) -> bytes:
        """`count` independent, uniform records."""

    def two_stages(self, round: int, records: int, subset: int, count: int, *, different: bool) -> bytes:
        """`count` independent, uniform draws from `subset` uniform draws, which are of different records or independent."""

    def kept(self, round: int, drawn: int, limit: int) -> bytes:
        """Places of 0 … drawn − 1 that are kept: all, or a uniformly random set of `limit`."""

    def calendar(
        self, records: int, rounds: int, min_separation: int, probability: float, *, warm: bool
    ) -> BatchCalendar:
        """b-min-sep sampling of records."""

    def users_calendar(  # the records, and the sampler
        self,
        starts: NDArray[np.uint32],
        records: NDArray[np.uint32],
        rounds: int,
        min_separation: int,
        probability: float,
        *,
        warm: bool,
    ) -> BatchCalendar:
        """b-min-sep sampling of users who share no records: `records[starts[i]:starts[i + 1]]` are those of user i."""

    def dealt(self, deal: int, records: int, slots: int, taken: int) -> DealtRecords:
        """Each record in `taken` of the slots, a uniformly random set of them, by the stream of a deal."""

class BatchCalendar:
    """The rounds of b-min-sep sampling; it goes forward in O(batch), and backward by beginning once more."""

    def batch(self, round: int) -> bytes:
        """The records of a round."""

class DealtRecords:
    """Records that were dealt into slots."""

    def slot(self, slot: int) -> bytes:
        """Those of a slot."""

    def sampled(self, streams: BatchStreams, round: int, slot: int, probability: float) -> bytes:
        """Those of a slot that join a round, each with a probability in (0, 1]."""
