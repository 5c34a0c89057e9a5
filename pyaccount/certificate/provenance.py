"""What computed a certificate, and when: the versions, the time, and the identity of a machine's computations.

Another core may draw other samples. Therefore a worker of an executor compares its identity with the caller's, and a
run store keeps the identity of the machine that computed its contents.
"""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from pyaccount import _core
from pyaccount.errors import DISTRIBUTION


def versions() -> dict[str, str]:
    """Return the versions of pyaccount, its core and Python."""
    return {"pyaccount": _installed(), "core": _core.__version__, "python": platform.python_version()}


@cache
def _installed() -> str:
    """Return the version of this package, which is read from the file with its metadata."""
    return version(DISTRIBUTION)


def now() -> str:
    """Return the current time in UTC, to the second, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


#: A mechanism that takes almost no time: its first column, rounds, separation and probability.
_SMALL: tuple[object, ...] = ((1.0, 0.5, 0.375), 17, 3, 0.125, False)


@cache
def identity() -> tuple[tuple[str, str], ...]:
    """Return all versions, and fingerprints of one shard of samples and of a composition. Fast; computed once."""
    # Few commands compare machines.
    from pyaccount.execute.sampling.jobs import BetTable, Job, Proposal
    from pyaccount.profiles.base import Recipe

    made = versions() | {"numpy": version("numpy"), "scipy": version("scipy")}
    recipe: Recipe[_core.Sampled] = Recipe("Sampled.renewal", _SMALL)
    job = Job(recipe, None, "remove", Proposal(1.0, 1.0), (BetTable(0.5, 2.0),), (1, 2, 3, 0), (-10.0, 0.01))
    wave = job.run(0, 1, threads=1, time_limit=None)
    assert wave.histogram is not None
    sums = tuple((one.log_wealth, one.value, one.square) for shard in wave.sums for one in shard)
    drawn = _hash(sums, wave.histogram.state())
    profile = _core.RoundProfile.poisson(1, 0.01, 1.0, two_sided=False, reverse=False)
    (answer,) = _core.answer_all([([(profile, 50)], 1.0, None, 1e-3)], threads=1, time_limit=None)
    composed = _hash(answer.lower, answer.upper)
    return (*made.items(), ("samples", drawn), ("composition", composed))


def _hash(*values: object) -> str:
    """Return a hash of numbers in tuples and lists. Python writes floats so that different ones differ."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]
