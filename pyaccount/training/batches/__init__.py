"""The batches of a run, drawn by exactly the law that its certificate is about.

The room takes a document without a blank, one of its bodies and a secret key for it, and gives the records of each round. A
sampler is a module with a class; `SAMPLERS` has one for each kind that documents may name. What is drawn is a function of the key
and the round: in whatever order rounds are asked for, on however many ranks, before and after a crash. Probabilities are the
doubles that the plan analysed, and integers are compared with integers (`rust/core/src/batches`), so that no law is rounded.

Where a paper's algorithm and the analysis differ, the analysis is followed: the certificate is about that. The room must not know
what is done with a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import DocumentError, RunError
from pyaccount.training.batches import (
    b_min_sep,
    balls_in_bins,
    cyclic_poisson,
    deterministic,
    fixed_size,
    must,
    poisson,
    random_allocation,
    user_b_min_sep,
    with_replacement,
)
from pyaccount.training.batches.attribution import attributed
from pyaccount.training.batches.base import Batches, Drawing
from pyaccount.training.batches.batch import Batch
from pyaccount.training.batches.repeated import Repeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.document import Body, Document
    from pyaccount.training.batches.attribution import Attributed
    from pyaccount.training.key import RunKey

__all__ = ["SAMPLERS", "Batch", "Batches", "batches_of"]

SAMPLERS: dict[str, Callable[[Drawing], Batches]] = {
    "poisson": poisson.PoissonBatches,
    "fixed-size": fixed_size.FixedSizeBatches,
    "with-replacement": with_replacement.WithReplacementBatches,
    "must-ow": must.SubsetBatches,
    "must-wo": must.SubsetOfDrawsBatches,
    "must-ww": must.DrawsOfDrawsBatches,
    "b-min-sep": b_min_sep.BMinSepBatches,
    "user-b-min-sep": user_b_min_sep.user_batches,
    "random-allocation": random_allocation.RandomAllocationBatches,
    "balls-in-bins": balls_in_bins.BallsInBinsBatches,
    "cyclic-poisson": cyclic_poisson.CyclicPoissonBatches,
    "none": deterministic.InOrder,
}


def batches_of(
    document: Document,
    body: Body,
    key: RunKey,
    *,
    records: int | None = None,
    attribution: Attributed | None = None,
) -> Batches:
    """The batches of one body of a document, all of its runs where it is repeated.

    `key` is derived for this body and used for nothing else: `RunKey.derive("batches", phase)`. `records` is how many there are,
    for a document that states a rate alone. `attribution` says whose they are, for samplers of users and for no others: the user
    of each record, or two rows of equal length, of records and of users, with a column for each time that a record belongs to a
    user; or the `attribution` of what was prepared.

    Raises `DocumentError` for what cannot be drawn, at its place: a blank, an unknown size of the data set, a deterministic order
    without the size of its batches, what no analysis covers. Raises `RunError` for data that does not fit.
    """
    unknown = [path for path in (document.blank, *document.choices) if path is not None]
    if unknown:
        message = "batches are drawn from a document without blanks: certify it first, and take what was found"
        raise DocumentError([document.problem("unfilled-blank", path, message, allowed="a value") for path in unknown])
    if attribution is not None and not body.sampler.protects_users:
        raise RunError(f"{body.sampler.kind} samples records, whosever they are: leave the attribution out")
    if attribution is None and body.sampler.protects_users:
        raise RunError(f"{body.sampler.kind} samples users: give the attribution, whose each record is")
    stated = body.training.dataset_size
    if None not in (records, stated) and records != stated:
        raise RunError(f"records: {records:_} are given, and the document's dataset_size is {stated:_}")
    whose = None if attribution is None else attributed(attribution)
    drawn = SAMPLERS[body.sampler.kind]
    if body.count == 1:
        return drawn(Drawing(document, body, key, records, whose))
    return Repeated(lambda run: drawn(Drawing(document, body, key.derive("run", run), records, whose)), body.count)
