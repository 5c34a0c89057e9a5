"""A runner that keeps what it is asked to draw."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from pyaccount.execute.sampling.jobs import Job, Local, MixtureSampled, MixtureSampledJob, Remaining, Wave


@dataclass(slots=True)
class Recording:
    """Runs jobs in this process, and keeps them."""

    jobs: list[Job | MixtureSampledJob] = field(default_factory=list)
    local: Local = field(default_factory=lambda: Local(1))

    def waves(self, job: Job, count: int, remaining: Remaining) -> Generator[Wave, None, None]:
        self.jobs.append(job)
        yield from self.local.waves(job, count, remaining)

    def balanced(self, job: MixtureSampledJob, count: int, remaining: Remaining) -> MixtureSampled:
        self.jobs.append(job)
        return self.local.balanced(job, count, remaining)
