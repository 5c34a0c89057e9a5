"""Jobs: what is drawn, as data. They are run in waves of shards, here or in another process.

A job is a function of its coordinates and of nothing else: every run of a wave of it gives the same sums, bit for bit,
with any number of threads and on any machine with the same core. So a wave may be run by another process. A `Runner`
decides that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypedDict

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.profiles.base import Recipe

SHARD: int = _core.SHARD_SIZE
#: Shards in a wave, after which the wealth is checked: usually, and for samples of a power of the likelihood ratio, of
#: which few are needed. They are fixed, so that results do not depend on the machine.
WAVE, FEW = 32, 8
#: The shards of each of the first two waves of a test.
FIRST_WAVES = 4

#: The width of a histogram's bins in nats; there are 4096 bins.
BIN_WIDTH = 1.0 / 32.0

#: Returns the seconds that are left, or None without a time limit. Raises `LimitError` if none are left.
Remaining = Callable[[], float | None]


@dataclass(frozen=True, slots=True)
class Component:
    """A proposal's share of a mixture: a law and its mean scale, or, without parameters, a tilt."""

    #: The units of a shard that it gets.
    units: int
    parameters: tuple[float, ...]
    number: float

    @property
    def share(self) -> float:
        """The share of the samples."""
        return self.units / _core.SHARD_UNITS

    @property
    def tilt(self) -> float | None:
        """The tilt, if it is one."""
        return None if self.parameters else self.number

    @property
    def mean_scale(self) -> float | None:
        """The mean scale of a law."""
        return self.number if self.parameters else None


@dataclass(frozen=True, slots=True)
class LogSobolev:
    """Samples of D, whose mean bounds δ of an added record: d is `size` times the mean participation, λ the exponent.

    With `moment` 2 the mean bounds E V² of samples of N(−d, I) instead.
    """

    size: float
    exponent: float
    moment: int = 1


class PowerArguments(TypedDict):
    """The core's arguments for samples of a power of the likelihood ratio."""

    order: int | None
    block: int | None
    most_busy: int | None


NO_POWER: PowerArguments = {"order": None, "block": None, "most_busy": None}


@dataclass(frozen=True, slots=True)
class Replicas:
    """How samples of the power f^m of the likelihood ratio of a removed record are drawn: by a chain of m replicas."""

    #: The power m.
    order: int
    #: The rounds of a block, if replicas are drawn by blocks; 0 if they are drawn round by round.
    block: int = 0
    #: The most replicas that may be busy at once, if not all may be; what this leaves out is bounded. 0 means no limit.
    most_busy: int = 0

    @property
    def arguments(self) -> PowerArguments:
        """The arguments for the core."""
        return {"order": self.order, "block": self.block or None, "most_busy": self.most_busy or None}

    def price(self, mechanism: SampledMechanism) -> tuple[int, float] | None:
        """Return the states of the chain, and those computed in all its steps together; None if there is no chain."""
        return mechanism.chain(self.order, self.block or None, self.most_busy or None)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The law from which samples are drawn; see the core's `proposal`."""

    parameter: float
    mean_scale: float
    #: The parameters of further mechanisms that are sampled together with the first.
    further: tuple[float, ...] = ()
    #: The components of a mixture of this law, which bounds the samples, with further ones; see the core's `defensive`.
    components: tuple[Component, ...] = ()
    #: The replicas, if samples are of a power of the likelihood ratio of a removed record; see the core's `replicated`.
    replicas: Replicas | None = None
    #: If set, samples of this kind are drawn instead of samples of δ; see the core's `added_mean`.
    log_sobolev: LogSobolev | None = None
    #: The floor of samples of a power for a replaced record: below this loss against nobody, no weight grows.
    floor: float | None = None

    def __post_init__(self) -> None:
        # In a mixture, what a power leaves out would be lost.
        assert self.replicas is None or not self.components, "samples of a power are not mixed with others"
        assert self.floor is None or self.replicas is not None, "only samples of a power have a floor"

    @property
    def mixture(self) -> tuple[Component, ...]:
        """The components, as certificates call them."""
        return self.components

    @property
    def order(self) -> int | None:
        """The power of the likelihood ratio, if samples are of one."""
        return None if self.replicas is None else self.replicas.order

    @property
    def block(self) -> int | None:
        """The rounds of a block, if replicas are drawn by blocks."""
        return None if self.replicas is None else self.replicas.arguments["block"]

    @property
    def most_busy(self) -> int | None:
        """The most replicas that may be busy at once, if not all may be."""
        return None if self.replicas is None else self.replicas.arguments["most_busy"]

    @property
    def wave(self) -> int:
        """The shards of a wave, after which the wealth is checked."""
        return WAVE if self.replicas is None else FEW

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters of all mechanisms, one for each."""
        return (self.parameter, *self.further)

    @property
    def single(self) -> Proposal:
        """The law and mean scale alone, without the mixture."""
        return replace(self, components=()) if self.components else self


@dataclass(frozen=True, slots=True)
class Bet:
    """A bet against "δ(ε) ≥ threshold" (fraction > 0) or "δ(ε) ≤ threshold" (fraction < 0)."""

    threshold: float
    fraction: float


@dataclass(frozen=True, slots=True)
class BetTable:
    """Bets at one ε; `weight_bound` is an upper bound on a sample's contribution there."""

    epsilon: float
    weight_bound: float
    bets: tuple[Bet, ...] = ()


@dataclass(frozen=True, slots=True)
class Sums:
    """The result of a shard for one table: ln of each bet's wealth, and Σ V, Σ V² for estimates."""

    log_wealth: tuple[float, ...]
    value: float
    square: float


class Wave(NamedTuple):
    """The result of consecutive shards: each one's sums for each table, and a histogram of all if one is asked for."""

    sums: list[list[Sums]]
    histogram: _core.LossHistogram | None


class MixtureSampled(NamedTuple):
    """Sums over samples from a mixture; see the core's `balanced`."""

    drawn: list[int]
    losses: list[tuple[float, float]]
    #: For each ε and component, over its own samples: Σ V and Σ V².
    values: list[list[tuple[float, float]]]
    #: For each ε and component, over all samples: Σ V·α dM_k/dM and Σ V²·dM/dM_k.
    merits: list[list[tuple[float, float]]]
    #: For each ε, the largest V of all samples.
    largest: list[float]


@dataclass(frozen=True)
class Job:
    """Shards of one mechanism from one proposal, with bets, and with a histogram if `edges` is set."""

    recipe: Recipe[_core.Sampled]
    curve: Recipe[_core.ComposedCurve] | None
    direction: Direction
    proposal: Proposal
    tables: tuple[BetTable, ...]
    #: The streams' seed, purpose, candidate and direction.
    key: tuple[int, int, int, int]
    #: The lowest edge of the histogram and the width of its bins.
    edges: tuple[float, float] | None = None
    #: The shards of each of the first two waves, if these are smaller than the rest; they do not change the samples.
    first_waves: int | None = None

    def run(self, first: int, count: int, threads: int, time_limit: float | None) -> Wave:
        """Run `count` shards from `first` on. Raises `LimitError`."""
        core, curve = self.recipe.core, None if self.curve is None else self.curve.core
        bets = [(t.epsilon, t.weight_bound, [(bet.threshold, bet.fraction) for bet in t.bets]) for t in self.tables]
        histogram: _core.LossHistogram | None = None
        if self.proposal.log_sobolev is not None:
            mean = _core.AddedMean.of(core, self.proposal.log_sobolev.size)
            assert mean is not None, "the test was planned for this mechanism"
            shards = mean.simulate(
                [(self.proposal.log_sobolev.exponent, most, placed) for _, most, placed in bets],
                self.proposal.log_sobolev.moment,
                key=self.key,
                first=first,
                count=count,
                threads=threads,
                time_limit=time_limit,
            )
        elif self.proposal.components:
            assert self.edges is None, "a histogram has samples of one proposal"
            shards = core.defensive(
                self.direction,
                for_core(self.proposal.components),
                bets,
                key=self.key,
                first=first,
                count=count,
                threads=threads,
                time_limit=time_limit,
                curve=curve,
            )
        else:
            power = self.proposal.replicas
            shards, histogram = core.simulate(
                self.direction,
                self.proposal.parameters,
                self.proposal.mean_scale,
                bets,
                edges=self.edges,
                key=self.key,
                first=first,
                count=count,
                threads=threads,
                time_limit=time_limit,
                curve=curve,
                floor=self.proposal.floor,
                **(NO_POWER if power is None else power.arguments),
            )
        return Wave([[Sums(tuple(log), value, square) for log, value, square in shard] for shard in shards], histogram)


@dataclass(frozen=True)
class MixtureSampledJob:
    """Shards from a mixture of proposals, for estimates at several ε."""

    recipe: Recipe[_core.Sampled]
    curve: Recipe[_core.ComposedCurve] | None
    direction: Direction
    components: tuple[Component, ...]
    epsilons: tuple[float, ...]
    key: tuple[int, int, int, int]

    def run(self, count: int, threads: int, time_limit: float | None) -> MixtureSampled:
        """Run this many shards. Raises `LimitError`."""
        found = self.recipe.core.balanced(
            self.direction,
            for_core(self.components),
            list(self.epsilons),
            key=self.key,
            first=0,
            count=count,
            threads=threads,
            time_limit=time_limit,
            curve=None if self.curve is None else self.curve.core,
        )
        return MixtureSampled(*found)


class Runner(Protocol):
    """Runs jobs. Results do not depend on which runner it is."""

    def waves(self, job: Job, count: int, remaining: Remaining) -> Generator[Wave, None, None]:
        """Yield the waves of shards 0, …, `count` − 1 in order.

        Each has the shards of a wave of its proposal, except the last. A caller that needs no more closes the iterator,
        which ends the work in progress.
        """

    def balanced(self, job: MixtureSampledJob, count: int, remaining: Remaining) -> MixtureSampled:
        """Return the sums of `count` shards."""


@dataclass(frozen=True, slots=True)
class Local:
    """Runs jobs on the threads of this process; 0 means one for each core."""

    threads: int = 0

    def waves(self, job: Job, count: int, remaining: Remaining) -> Generator[Wave, None, None]:
        """Yield the waves, each of which is run when it is asked for."""
        for start, some in pieces(job, count):
            yield job.run(start, some, self.threads, remaining())

    def balanced(self, job: MixtureSampledJob, count: int, remaining: Remaining) -> MixtureSampled:
        """Run the shards."""
        return job.run(count, self.threads, remaining())


def edges_around(epsilon: float) -> tuple[float, float]:
    """Return the first edge and the bin width of a histogram: half of its bins on each side of ε, wider if ε is large."""
    width = max(BIN_WIDTH, epsilon / 1024.0)
    return epsilon - 2048.0 * width, width


def pieces(job: Job, count: int) -> Iterator[tuple[int, int]]:
    """Yield the first shard of each wave of a job, and its number of shards."""
    start = 0
    while start < count:
        few = job.first_waves is not None and start < 2 * job.first_waves
        wave = job.first_waves if few and job.first_waves else job.proposal.wave
        yield start, min(wave, count - start)
        start += wave


def for_core(components: Sequence[Component]) -> list[tuple[int, tuple[float, ...], float]]:
    """Return components in the form that the core takes."""
    return [(one.units, one.parameters, one.number) for one in components]
