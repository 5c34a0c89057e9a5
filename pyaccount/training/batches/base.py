"""What the batches of every sampler are asked, and what their modules have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyaccount import _core
from pyaccount.data.attribution import Attribution
from pyaccount.document.ranges import DATASET_SIZE
from pyaccount.errors import DocumentError, RunError
from pyaccount.plan.common import whole
from pyaccount.plan.samplers import sampler_plan
from pyaccount.training.batches.batch import Batch

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Path
    from pyaccount.training.key import RunKey

#: Indices of records.
Records = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What batches are made of: a body of a document, a key of one run of it, how many records there are, and whose they are."""

    document: Document
    body: Body
    key: RunKey
    #: Where the document does not say it.
    records: int | None = None
    attribution: Attribution | None = field(default=None, repr=False)

    def refused(self, slug: str, path: Path, message: str, allowed: str | None = None) -> DocumentError:
        """What cannot be drawn, at its place."""
        return DocumentError([self.document.problem(slug, path, message, allowed=allowed)])

    def dataset_size(self) -> int:
        """How many records there are to draw from: what the document says, or what the run was given."""
        stated = self.body.training.dataset_size
        found = self.records if stated is None else stated
        if found is None:
            message = (
                "batches are drawn from a known number of records, and the document says none: state it or give records"
            )
            raise self.refused("missing-key", self.body.at("training", "dataset_size"), message)
        return found


class Batches(ABC):
    """The batches of `rounds` rounds, which are counted from 0, of `dataset_size` records.

    The key is shown nowhere, and batches are not pickled.
    """

    rounds: int
    dataset_size: int
    #: The largest number of contributions to a batch, a record counted as often as it is drawn: a public number, whatever is
    #: drawn. Where the document does not state the size of the data set, that may be secret, and this is the most that any
    #: states.
    most: int

    @abstractmethod
    def batch(self, round: int) -> Batch:
        """The batch of a round. Raises `RunError` for a round that there is not."""

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("batches are not pickled, since they hold their key: make them from the run's key")


class RunBatches(Batches):
    """Those of one run of a body: what its sampler draws, and of that what is kept where batches are truncated.

    What takes time or memory is made when the first batch is asked for, so that what is refused is refused at no cost.
    """

    def __init__(self, drawing: Drawing) -> None:
        """Those of a body. Raises `DocumentError` where they cannot be drawn."""
        body = drawing.body
        self.rounds = whole(body.training.iterations)
        self.dataset_size = self._records(drawing)
        stated = body.training.dataset_size
        self.most = round(DATASET_SIZE.maximum) if stated is None else stated
        self._limit = body.truncation()
        if self._limit is not None:
            problems = sampler_plan(body).truncation_refusals(drawing.document, body)
            if problems:
                raise DocumentError(problems)
            self.most = min(self.most, self._limit)
        self._streams = _core.BatchStreams(drawing.key.reveal())

    def batch(self, round: int) -> Batch:
        """The same for the same key and round, in whatever order rounds are asked for."""
        if not 0 <= round < self.rounds:
            raise RunError(f"there is no round {round}: the run has {self.rounds}, counted from 0")
        drawn = self._drawn(round)
        if self._limit is not None and len(drawn) > self._limit:
            drawn = drawn[indices(self._streams.kept(self._kept_by(round), len(drawn), self._limit))]
        return Batch(drawn, self._limit)

    def _records(self, drawing: Drawing) -> int:
        """How many records there are: as many as the document says."""
        return drawing.dataset_size()

    @abstractmethod
    def _drawn(self, round: int) -> Records:
        """Who is drawn for a round, ascending."""

    def _kept_by(self, round: int) -> int:
        """What the records that are kept of a large batch are drawn by: every round by itself."""
        return round


def indices(drawn: bytes) -> Records:
    """What the core has drawn."""
    # A copy, which may be written to: frameworks make tensors of it.
    return np.frombuffer(drawn, dtype=np.int64).copy()


def listable(count: int, kind: str) -> None:
    """Refuse more records than can be kept in lists."""
    if count > _core.MOST_LISTED:
        raise RunError(
            f"{kind} keeps a list of {count:_} records, and {_core.MOST_LISTED:_} are the most: draw from fewer at a time"
        )
