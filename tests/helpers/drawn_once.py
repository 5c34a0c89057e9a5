"""Samples that are drawn once, where tests look at what is made of them: a job is a function of its coordinates.

Not for tests of just that, of threads or of limits of time: they would compare samples with themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pyaccount.execute.sampling.jobs import Balanced, BalancedJob, Job, Wave


class Drawn:
    """What was drawn so far, by the jobs' fingerprints and their shards."""

    def __init__(self) -> None:
        self._waves: dict[tuple[str, int, int], Wave] = {}
        self._balanced: dict[tuple[str, int], Balanced] = {}

    @contextmanager
    def used(self) -> Iterator[None]:
        """Until the end, shards that were drawn before are not drawn again, whoever asks for them."""
        waves, balanced = self._waves, self._balanced
        run_wave, run_balanced = Job.run, BalancedJob.run

        def wave_once(self: Job, first: int, count: int, threads: int, time_limit: float | None) -> Wave:
            key = (self.fingerprint, first, count)
            if key not in waves:
                waves[key] = run_wave(self, first, count, threads, time_limit)
            return waves[key]

        def balanced_once(self: BalancedJob, count: int, threads: int, time_limit: float | None) -> Balanced:
            key = (self.fingerprint, count)
            if key not in balanced:
                balanced[key] = run_balanced(self, count, threads, time_limit)
            return balanced[key]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Job, "run", wave_once)
            patch.setattr(BalancedJob, "run", balanced_once)
            yield
