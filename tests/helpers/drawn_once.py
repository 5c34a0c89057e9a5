"""Draws equal samples only once, for tests of what is computed from them; this is right because jobs are deterministic.

Tests of this determinism, of threads or of time limits must not use it, because they would compare samples with themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pyaccount.execute.sampling.jobs import Job, MixtureSampled, MixtureSampledJob, Wave


class Drawn:
    """The samples that were drawn so far, by jobs, with every bit of their numbers, and their shards."""

    def __init__(self) -> None:
        self._waves: dict[tuple[str, int, int], Wave] = {}
        self._balanced: dict[tuple[str, int], MixtureSampled] = {}

    @contextmanager
    def used(self) -> Iterator[None]:
        """Replace the drawing of shards inside of the context, so that each shard is drawn only once."""
        waves, balanced = self._waves, self._balanced
        run_wave, run_balanced = Job.run, MixtureSampledJob.run

        def wave_once(self: Job, first: int, count: int, threads: int, time_limit: float | None) -> Wave:
            key = (repr(self), first, count)
            if key not in waves:
                waves[key] = run_wave(self, first, count, threads, time_limit)
            return waves[key]

        def balanced_once(
            self: MixtureSampledJob, count: int, threads: int, time_limit: float | None
        ) -> MixtureSampled:
            key = (repr(self), count)
            if key not in balanced:
                balanced[key] = run_balanced(self, count, threads, time_limit)
            return balanced[key]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Job, "run", wave_once)
            patch.setattr(MixtureSampledJob, "run", balanced_once)
            yield
