"""Small training runs, for tests of what they release, count and store."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import NONCES
from plain_documents import changed, doc, sectioned

from pyaccount.training import TrainingRun
from pyaccount.training import folder as folder_module
from pyaccount.training import record as record_module
from pyaccount.training.record import NOTHING_BEFORE, event_line, hash_of

#: The number of rows of a weight.
SIZE = 5
BASE: dict[str, Any] = doc(
    name="run", epsilon=60.0, dataset_size=40, expected_batch_size=8, iterations=12, sampler="poisson", multiplier=0.5
)
CORRELATED = sectioned(sampler="b-min-sep", min_separation=3, matrix="banded-square-root", bands=3)


def document(changes: dict[str, Any] | None = None, **sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, changes, sections)


def started(folder: Path, changes: dict[str, Any] | None = None, **options: Any) -> TrainingRun:
    return TrainingRun(document(changes), folder, **{"records": 40, "uncertified": True, **options})


def sums(number: int) -> dict[str, Any]:
    """Return sums for a round that depend only on its number."""
    generator = np.random.default_rng(number)
    return {"bias": generator.normal(size=2), "weight": generator.normal(size=(SIZE, 2)).astype(np.float32)}


def go(run: TrainingRun, rounds: int, of: Callable[[int], Any] = sums) -> list[Any]:
    """Release the sums `of` the next rounds, and return the means."""
    found = []
    for _ in range(rounds):
        with run.step() as step:
            found.append(step.release(of(step.round)))
    return found


@contextmanager
def failing(owner: Any, name: str, error: BaseException) -> Iterator[None]:
    """Let a function of `owner` raise an error, which the block must pass on."""

    def fails(*_: Any, **__: Any) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, fails)
        with pytest.raises(type(error)) as caught:
            yield
    assert caught.value is error


def same(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> bool:
    return len(one) == len(two) and all(
        a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)
        for a, b in zip(one, two, strict=True)
    )


def fixed_draws(patch: pytest.MonkeyPatch) -> None:
    """Make rounds use fixed nonces that do not depend on the record, so that runs can be compared."""
    patch.setattr(folder_module, "new_nonce", map(NONCES.__getitem__, count()).__next__)
    for module in (folder_module, record_module):
        patch.setattr(module, "seed_of", lambda previous, nonce: nonce)


def as_one_process(several: Path, one: Path) -> None:
    """Begin a run of one process in a folder, with the key and the first line of a run that had several."""
    one.mkdir(parents=True)
    header = json.loads((several / "record.jsonl").read_text().splitlines()[0]) | {"world": 1}
    record = one / "record.jsonl"
    record.touch()
    record.write_bytes(event_line(header | {"file": [record.stat().st_ino, None]}))
    (one / "run.key").write_bytes((several / "run.key").read_bytes())
    (one / "run.key").chmod(0o600)


def chained(path: Path, events: list[dict[str, Any]]) -> Path:
    """Write a record with these lines and a recomputed chain of hashes, as a forger can."""
    previous, whole = NOTHING_BEFORE, b""
    for event in events:
        line = event_line({**event, "previous": previous})
        previous, whole = hash_of(line), whole + line
    path.write_bytes(whole)
    return path
