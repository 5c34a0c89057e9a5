"""Draw shards of samples by the core: each use has its own stream of random numbers, whatever the number of threads."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Literal

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.errors import TIME_IS_UP, LimitError, abbreviated
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.jobs import (
    FIRST_WAVES,
    SHARD,
    BetTable,
    Component,
    Job,
    Local,
    MixtureSampled,
    MixtureSampledJob,
    Proposal,
    Replicas,
    Sums,
    Wave,
    for_core,
)
from pyaccount.plan.common import given
from pyaccount.plan.sampled import SampledMechanism

#: The uses of samples. No two uses share a stream, so that no choice in one use depends on another's samples.
PURPOSES: dict[str, int] = {"pilot": 1, "verification": 2, "confidence": 3, "profile": 4, "estimate": 5, "matrix": 6}
Purpose = Literal["pilot", "verification", "confidence", "profile", "estimate", "matrix"]


@dataclass(frozen=True, slots=True)
class Stream:
    """Random numbers of one use: the shards 0, …, `count` − 1 of one candidate, drawn for one purpose."""

    purpose: Purpose
    count: int
    candidate: int


@dataclass(frozen=True, slots=True)
class SampleLimits:
    """The weight bound of V at one ε, the generator's part of the error of its mean, and a log density's rounding.

    If phases are composed, V is without the tail mass of their curve.
    """

    weight_bound: float
    generator: float
    rounding: float
    #: What the composed profile adds to the mean of V, a constant.
    tail_mass: float = 0.0
    #: How far δ of a run with rare truncation may be above the mean of V, and how far below it.
    beyond: float = 0.0
    below: float = 0.0
    #: The part of the mean that is lost if samples are clipped at `weight_bound`, or have a floor, at most.
    clipped: float = 0.0
    #: The part of the mean that is left out if not all replicas may be busy at once, at most.
    left_out: float = 0.0

    @property
    def added(self) -> float:
        """The part of δ beyond the mean of V, at most, whatever is drawn."""
        return self.tail_mass + self.beyond


class Sampler:
    """The core's sampler with a seed, a number of threads and a deadline."""

    def __init__(self, options: RunOptions) -> None:
        self.seed = given(options.seed)
        self.samples = 0
        self.report = options.report
        self._threads, self._runner = options.threads, options.runner or Local(options.threads)
        remaining = options.remaining
        self._deadline = None if remaining is None else time.monotonic() + remaining
        self._began = time.monotonic()
        self._stage = ""
        self._stage_began = self._began
        self._candidate = 0
        self._beyond: dict[tuple[object, ...], float] = {}
        #: The power of the likelihood ratio that was chosen for an earlier claim, and its chain's price; it is reused
        #: for similar claims.
        self.replicas: tuple[Replicas, tuple[int, float]] | None = None
        #: What is proven about powers, of the last mechanism and ε that was asked about.
        self.powers: tuple[object, dict[Replicas, SampleLimits | None]] = (None, {})
        #: The nanoseconds by which the chains were limited among which it was chosen.
        self.looked = 0.0

    def fresh(self) -> int:
        """Return a candidate number that no stream has used."""
        self._candidate += 1
        return self._candidate

    def stream(self, purpose: Purpose, count: int, candidate: int | None = None) -> Stream:
        """Return the stream of a candidate, or of one that no other stream has."""
        return Stream(purpose, count, self.fresh() if candidate is None else candidate)

    def stage(self, stage: str) -> None:
        """Name the current stage."""
        if stage != self._stage:
            self._stage, self._stage_began = stage, time.monotonic()

    def progress(self, done: float) -> None:
        """Report the share of the stage that is done, how fast samples are drawn, and when the stage will end."""
        now = time.monotonic()
        rate = self.samples / max(now - self._began, 1e-3)
        spent = now - self._stage_began
        left = f", about {spent * (1.0 - done) / done:.0f} s left" if 0.02 < done < 1.0 and spent > 1.0 else ""
        words = f"{self._stage}: {abbreviated(self.samples)} samples, {abbreviated(rate)}/s{left}"
        self.report(words, int(1000 * min(done, 1.0)), 1000)

    def limits(
        self,
        mechanism: SampledMechanism,
        direction: Direction,
        proposal: Proposal,
        epsilon: float,
        *,
        upper: bool = True,
    ) -> SampleLimits:
        """Return what is proven about samples from a proposal; what they lack of δ only for an upper bound on it."""
        curve, left_out, clipped = mechanism.curve(direction), 0.0, 0.0
        if proposal.components:
            found = mechanism.core.defensive_bounds(direction, for_core(proposal.components), epsilon, curve)
        elif proposal.replicas is None:
            found = mechanism.core.bounds(direction, proposal.parameters, proposal.mean_scale, epsilon, curve)
        else:
            found, left_out = self._of_a_power(mechanism, direction, proposal, epsilon, upper=upper)
        if upper and proposal.floor is not None:
            clipped = self.below_floor(mechanism, epsilon, proposal.floor)
        weight_bound, generator, rounding = found
        if mechanism.overstated > 0.0:
            generator += mechanism.overstated * (math.exp(min(epsilon, 700.0)) if direction == "add" else 1.0)
        return SampleLimits(
            weight_bound,
            generator,
            rounding,
            mechanism.tail_mass(direction),
            self.beyond(mechanism, direction, epsilon),
            mechanism.below(direction, epsilon),
            clipped,
            left_out,
        )

    def _of_a_power(
        self, mechanism: SampledMechanism, direction: Direction, proposal: Proposal, epsilon: float, *, upper: bool
    ) -> tuple[tuple[float, float, float], float]:
        """Return the core's bounds on samples of a power, and, for an upper bound on δ, on what they leave out."""
        replicas, curve = proposal.replicas, mechanism.curve(direction)
        assert replicas is not None
        with self._limited():
            found = mechanism.core.bounds(
                direction,
                proposal.parameters,
                proposal.mean_scale,
                epsilon,
                curve,
                floor=proposal.floor,
                **replicas.arguments,
                threads=self._threads,
                time_limit=self._remaining(),
            )
            if not upper or not replicas.most_busy or (direction != "remove" and proposal.floor is None):
                return found, 0.0
            left_out = mechanism.core.left_out(
                replicas.order,
                replicas.most_busy,
                epsilon if proposal.floor is None else proposal.floor,
                curve,
                threads=self._threads,
                time_limit=self._remaining(),
            )
        return found, left_out

    def below_floor(self, mechanism: SampledMechanism, epsilon: float, floor: float) -> float:
        """Return e^a δ_add(ε − a) at most, a the floor: what samples of a power lack of δ(ε) of a replaced record.

        The core's `proposals::replicated` proves it. The bound on δ_add needs no samples; each is computed once.
        """
        key = (mechanism.core, "floor", epsilon, floor)
        if key not in self._beyond:
            self._beyond[key] = math.exp(floor) * mechanism.bounded("add", epsilon - floor) * (1.0 + 1e-12)
        return self._beyond[key]

    def beyond(self, mechanism: SampledMechanism, direction: Direction, epsilon: float) -> float:
        """Return what rare truncation may add to δ(ε); it is computed once, since every proposal needs it."""
        rare, curve = mechanism.rare_truncation, mechanism.curves.get("remove")
        if rare is None:
            return 0.0
        key = (mechanism.core, rare, curve, direction, epsilon)
        if key not in self._beyond:
            self._beyond[key] = mechanism.beyond(direction, epsilon)
        return self._beyond[key]

    def added(self, mechanism: SampledMechanism, direction: Direction, epsilon: float) -> float:
        """Return the part of δ(ε) beyond the mean of samples, at most, whatever is drawn."""
        return mechanism.tail_mass(direction) + self.beyond(mechanism, direction, epsilon)

    def waves(  # noqa: PLR0913, PLR0917 - the samples to draw, and what is computed from them
        self,
        mechanism: SampledMechanism,
        direction: Direction,
        proposal: Proposal,
        tables: Sequence[BetTable],
        stream: Stream,
        edges: tuple[float, float] | None = None,
    ) -> Generator[Wave, None, None]:
        """Yield the sums of the stream's shards for each table, wave by wave. Few more waves are drawn than are used.

        With `edges`, the first edge and the width of bins, each wave has a histogram of its losses too. Raises `LimitError`.
        """
        curve, key = mechanism.curves.get(direction), self._key(stream, direction)
        # Most tests end within a few shards.
        first = FIRST_WAVES if stream.purpose == "verification" else None
        job = Job(mechanism.recipe, curve, direction, proposal, tuple(tables), key, edges, first)
        with self._limited(), closing(self._runner.waves(job, stream.count, self._remaining)) as waves:
            for wave in waves:
                self.samples += len(wave.sums) * SHARD
                yield wave

    def run(
        self,
        mechanism: SampledMechanism,
        direction: Direction,
        proposal: Proposal,
        tables: Sequence[BetTable],
        stream: Stream,
    ) -> list[list[Sums]]:
        """Return the sums of each of the stream's shards for each table. Raises `LimitError`."""
        waves = self.waves(mechanism, direction, proposal, tables, stream)
        return [shard for wave in waves for shard in wave.sums]

    def balanced(
        self,
        mechanism: SampledMechanism,
        direction: Direction,
        components: Sequence[Component],
        epsilons: Sequence[float],
        stream: Stream,
    ) -> MixtureSampled:
        """Return the sums of the stream's shards from a mixture of proposals. Raises `LimitError`."""
        curve, key = mechanism.curves.get(direction), self._key(stream, direction)
        job = MixtureSampledJob(mechanism.recipe, curve, direction, tuple(components), tuple(epsilons), key)
        with self._limited():
            found = self._runner.balanced(job, stream.count, self._remaining)
        self.samples += stream.count * SHARD
        return found

    def gradient(  # noqa: PLR0913 - two mechanisms, and the samples of one of them
        self,
        core: _core.Sampled,
        direction: Direction,
        components: Sequence[Component],
        epsilon: float,
        *,
        origin: _core.Sampled,
        stream: Stream,
    ) -> _core.DeltaGradient:
        """Return δ(ε) of a mechanism and its derivatives in the matrix, estimated from samples of another mechanism.

        `components` is a mixture for that mechanism, `origin`. The samples depend on neither ε nor the first mechanism.
        Raises `LimitError`.
        """
        with self._limited():
            found = core.gradient(
                direction,
                for_core(components),
                epsilon,
                origin=origin,
                key=self._key(stream, direction),
                first=0,
                count=stream.count,
                threads=self._threads,
                time_limit=self._remaining(),
            )
        self.samples += stream.count * SHARD
        return found

    def added_mean(
        self,
        mean: _core.AddedMean,
        tables: list[tuple[float, float, list[tuple[float, float]]]],
        stream: Stream,
        moment: int = 1,
    ) -> list[list[tuple[list[float], float, float]]]:
        """Return the sums of D of each of the stream's shards for each λ of the tables. Raises `LimitError`."""
        with self._limited():
            found = mean.simulate(
                tables,
                moment,
                key=self._key(stream, "add"),
                first=0,
                count=stream.count,
                threads=self._threads,
                time_limit=self._remaining(),
            )
        self.samples += stream.count * SHARD
        return found

    def _key(self, stream: Stream, direction: Direction) -> tuple[int, int, int, int]:
        return (self.seed, PURPOSES[stream.purpose], stream.candidate, 1 if direction == "add" else 0)

    def _remaining(self) -> float | None:
        """Return the seconds left, or None without a deadline. Raises `LimitError` if none are left."""
        remaining = None if self._deadline is None else self._deadline - time.monotonic()
        if remaining is not None and remaining <= 0.0:
            raise LimitError(TIME_IS_UP)
        return remaining

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Record the stage, the samples drawn and the seed in a `LimitError`."""
        try:
            yield
        except LimitError as error:
            error.stage, error.samples, error.seed = self._stage, self.samples, self.seed
            raise
