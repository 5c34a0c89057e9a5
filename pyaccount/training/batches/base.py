"""`Batch`, the records that take part in a round, `Batches`, the interface of those of every sampler, and what these share.

A body that is run several times has batches of its own in each run (`Repeated`). Batches that a run cannot draw although they
have a certificate are refused here: a run knows records by their numbers, not by their probabilities. The users to whom records
belong are read from arrays, or from the result of `pyaccount.prepare`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyaccount import _core
from pyaccount.data.attribution import Attribution
from pyaccount.document.ranges import DATASET_SIZE
from pyaccount.errors import DocumentError, RunError
from pyaccount.plan.common import number
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.schedule_values import at_round

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.document.tree import TrainingNode
    from pyaccount.errors import Path
    from pyaccount.plan.protection import RunCase
    from pyaccount.training.key import RunKey


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Batch:
    """The records of a round. The repr shows neither the records nor their number, because both are secret.

    `indices` are 64-bit integers in ascending order. A record that was drawn several times occurs that many times, and its
    clipped contribution must be added that many times. `padded_to` is the size to which batches may be padded so that all look
    alike, if larger batches are truncated to it; otherwise None.
    """

    indices: NDArray[np.int64]
    padded_to: int | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return "Batch(…)"

    def micro_batches(self, size: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Yield the batch in micro-batches of exactly `size` entries: their indices, and a mask that is true for records.

        An entry that is masked out has index 0, so that it can be looked up, but its contribution must not be added. There is
        always at least one micro-batch: for an empty batch it has no records, and its sum of zeros gets noise like any other.
        """
        if size < 1:
            raise RunError(f"size = {size}: a micro-batch has at least one entry")
        parts = max(1, -(-max(len(self), self.padded_to or 0) // size))
        padded = np.zeros(parts * size, dtype=np.int64)
        padded[: len(self)] = self.indices
        mask = np.arange(parts * size) < len(self)
        yield from zip(padded.reshape(parts, size), mask.reshape(parts, size), strict=True)

    def shard(self, rank: int, world: int) -> Batch:
        """Return the shard of one of `world` ranks; together the shards contain every entry of the batch exactly once.

        All shards have the same `padded_to`, so that all ranks have the same number of micro-batches.
        """
        if not 0 <= rank < world:
            raise RunError(f"there is no rank {rank} among {world} ranks, which are numbered from 0")
        each = -(-max(len(self), self.padded_to or 0) // world)
        return Batch(self.indices[rank::world], each)


#: Indices of records.
Records = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The input of `Batches`: a body of a document, the key for one run of it, the number of records, and their users."""

    case: RunCase
    key: RunKey
    #: The number of records, if the document does not state it.
    records: int | None = None
    attribution: Attribution | None = field(default=None, repr=False)

    @property
    def body(self) -> TrainingNode:
        """The phase."""
        return self.case.node

    def refused(self, slug: str, path: Path, message: str, allowed: str | None = None) -> DocumentError:
        """Return the error for a value of the document from which batches cannot be drawn, with its place."""
        return DocumentError([self.case.asked.problem(slug, path, message, allowed=allowed)])

    def dataset_size(self) -> int:
        """Return the number of records to draw from: that of the document, or else the one that the run was given."""
        stated = self.body.training.dataset_size
        size = self.records if stated is None else stated
        if size is None:
            message = (
                "batches need a known number of records, and the document does not state it: state it or give records"
            )
            raise self.refused("missing-key", self.body.at("training", "dataset_size"), message)
        return size


class Batches(ABC):
    """The batches of `rounds` rounds, counted from 0, drawn from `dataset_size` records.

    The object holds a secret key, so it cannot be pickled, and its repr does not show the key.
    """

    rounds: int
    dataset_size: int
    #: An upper bound on the number of contributions to a batch, where a record counts as often as it is drawn. It is public and
    #: does not depend on what is drawn. If the document does not state the size of the data set, that size may be secret, and
    #: this is the largest size that a document can state.
    most: int

    @abstractmethod
    def batch(self, round: int) -> Batch:
        """Return the batch of a round, counted from 0. Raises `RunError` if there is no such round."""

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("batches are not pickled, since they hold their key: make them from the run's key")


class RunBatches(Batches):
    """The batches of one run of a body: the records that its sampler draws, truncated if the document asks for that.

    Structures that take time or memory are made when the first batch is drawn, so that errors are raised before, at no cost.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Prepare the batches of a body. Raises `DocumentError` if they cannot be drawn."""
        body = drawing.body
        self.rounds = number(body.training.iterations)
        self.dataset_size = self._records(drawing)
        stated = body.training.dataset_size
        self.most = round(DATASET_SIZE.maximum) if stated is None else stated
        self._limit = body.truncation()
        if self._limit is not None:
            problems = sampler_plan(drawing.case).truncation_refusals()
            if problems:
                raise DocumentError(problems)
            self.most = min(self.most, self._limit)
        self._streams = _core.BatchStreams(drawing.key.reveal())
        # A file of a schedule is read once, so that it cannot change while batches are drawn.
        self._case, self._stated = drawing.case.on(body, drawing.case.asked.pinned()), body
        if body.schedules():
            at_round(self._case, 0)

    def batch(self, round: int) -> Batch:
        """Return the batch of a round; it depends only on the key and the round, not on the order of calls."""
        if not 0 <= round < self.rounds:
            raise RunError(f"there is no round {round}: the run has {self.rounds}, counted from 0")
        drawn = self._drawn(round)
        if self._limit is not None and len(drawn) > self._limit:
            drawn = drawn[indices(self._streams.kept(self._kept_by(round), len(drawn), self._limit))]
        return Batch(drawn, self._limit)

    def _body(self, round: int) -> TrainingNode:
        """Return the body with the rate of a round."""
        return at_round(self._case, round) if self._stated.rates_scheduled else self._stated

    def _records(self, drawing: Drawing) -> int:
        """Return the number of records; samplers of users take it from the attribution."""
        return drawing.dataset_size()

    @abstractmethod
    def _drawn(self, round: int) -> Records:
        """Return the records that are drawn for a round, in ascending order."""

    def _kept_by(self, round: int) -> int:
        """Return the number with which the kept records of a large batch are drawn; by default every round draws anew."""
        return round


def indices(drawn: bytes) -> Records:
    """Return the records in bytes that the core returned, as an array that can be written to."""
    # Frameworks make tensors from the array, and need one that can be written to.
    return np.frombuffer(drawn, dtype=np.int64).copy()


def listable(count: int, kind: str) -> None:
    """Raise `RunError` for more records than the core can keep in a list."""
    if count > _core.MOST_LISTED:
        raise RunError(
            f"{kind} keeps a list of {count:_} records, and at most {_core.MOST_LISTED:_} are possible: draw from fewer records"
        )


class Repeated(Batches):
    """The batches of `count` runs of a body, one run after the other. Each run has a key of its own."""

    def __init__(self, make: Callable[[int], Batches], count: int) -> None:
        """Take the number of runs, and `make`, which returns the batches of a run, given its number from 0."""
        self._make = make
        self._run, self._batches = 0, make(0)
        self._each = self._batches.rounds
        self.rounds = count * self._each
        self.dataset_size, self.most = self._batches.dataset_size, self._batches.most

    def batch(self, round: int) -> Batch:
        """Return the batch of a round, counted from 0 over all runs. Going to another run makes its batches anew."""
        if not 0 <= round < self.rounds:
            raise RunError(f"there is no round {round}: all runs together have {self.rounds} rounds, counted from 0")
        run, inside = divmod(round, self._each)
        if run != self._run:
            self._run, self._batches = run, self._make(run)
        return self._batches.batch(inside)


def refuse_own_probabilities(case: RunCase) -> None:
    """Raise `DocumentError` for a body whose records have different probabilities: a run knows records only by their numbers."""
    body = case.node
    if body.own_probabilities is not None:
        message = (
            "a run draws records by their numbers and does not know the stratum of a record, so it cannot draw each with its own "
            "probability: write one probability, or draw each record by a coin of its own with a secret generator, and use the "
            "certificate without a run"
        )
        path = body.at("training", "sampling_probability")
        raise DocumentError([case.asked.problem("not-drawn", path, message, allowed="one number")])


#: The user of each record; or two rows, of records and of users, with a column for each pair of a record and one of its users;
#: or the attribution of what `pyaccount.prepare` returned.
Attributed = ArrayLike | Sequence[ArrayLike] | Attribution


def attributed(given: Attributed) -> Attribution:
    """Return the pairs of a record and a user, each once; users are numbered in the order of their names.

    Raises `RunError` if `given` has another form, and for records without a user.
    """
    if isinstance(given, Attribution):
        return given
    records, users = _pairs(given)
    if len(records) == 0:
        raise RunError("the attribution is empty: it must name a user for each record")
    if records.min() < 0:
        raise RunError("the attribution's first row has a negative record: records are counted from 0")
    count = int(records.max()) + 1
    missing = count - len(np.unique(records))
    if missing:
        raise RunError(
            f"{missing:_} of {count:_} records have no user in the attribution: leave them out of the data set, or give each a "
            "user of its own"
        )
    names, numbers = np.unique(users, return_inverse=True)
    return Attribution.of_pairs(records, numbers.reshape(-1).astype(np.int64), (count, len(names)))


def _pairs(given: Any) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return two arrays of equal length, the records and their users."""
    try:
        table = np.asarray(given)
    except ValueError:
        table = np.empty(())
    if table.ndim == 1:
        return np.arange(len(table), dtype=np.int64), table
    if table.ndim != 2 or len(table) != 2:
        raise RunError(
            "the attribution has another form than expected: give the user of each record, or two rows of equal length, of "
            "records and of users"
        )
    records, users = np.asarray(given[0]), np.asarray(given[1])
    if not np.issubdtype(records.dtype, np.integer):
        raise RunError(
            "the attribution's first row must contain the numbers of records, counted from 0, and its second row their users"
        )
    return records.astype(np.int64), users
