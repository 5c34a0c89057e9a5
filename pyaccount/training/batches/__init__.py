"""The batches of a run, drawn from exactly the distribution that its certificate assumes.

The room takes a document without a blank, one of its bodies and a secret key for that body, and gives the records of each round.
Each sampler is a class, and `SAMPLERS` has it for each kind that documents may name. A batch is a function
of the key and the round, so it does not depend on the order in which rounds are drawn, on the number of ranks, or on crashes.
Probabilities are the doubles that the plan analysed, and integers are compared with integers (`rust/core/src/batches`), so the
distributions are exact, without rounding.

Where a paper's algorithm differs from the analysis, this room follows the analysis, because the certificate is about that. The
room must not know what is done with a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import DocumentError, RunError
from pyaccount.plan.scheduled import schedule_refusals
from pyaccount.training.batches import b_min_sep, fresh, in_turn
from pyaccount.training.batches.base import Batch, Batches, Drawing, Repeated, attributed, refuse_own_probabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.plan.protection import RunCase
    from pyaccount.training.batches.base import Attributed
    from pyaccount.training.key import RunKey

__all__ = ["SAMPLERS", "Batch", "Batches", "batches_of"]

SAMPLERS: dict[str, Callable[[Drawing], Batches]] = {
    "poisson": fresh.PoissonBatches,
    "fixed-size": fresh.FixedSizeBatches,
    "with-replacement": fresh.WithReplacementBatches,
    "must-ow": fresh.SubsetBatches,
    "must-wo": fresh.SubsetOfDrawsBatches,
    "must-ww": fresh.DrawsOfDrawsBatches,
    "b-min-sep": b_min_sep.BMinSepBatches,
    "user-b-min-sep": b_min_sep.user_batches,
    "random-allocation": in_turn.RandomAllocationBatches,
    "balls-in-bins": in_turn.BallsInBinsBatches,
    "cyclic-poisson": in_turn.CyclicPoissonBatches,
    "none": in_turn.InOrder,
}


def batches_of(
    case: RunCase,
    key: RunKey,
    *,
    records: int | None = None,
    attribution: Attributed | None = None,
) -> Batches:
    """Return the batches of one phase of a document, over all of its runs if it is repeated.

    `key` must be derived for this phase and used for nothing else: `RunKey.derive("batches", phase)`. `records` is the number of
    records, for a document that does not state it. `attribution` says to which users the records belong; it is needed for
    samplers of users, and refused for others. It is either the user of each record; or two rows of equal length, of records and
    of users, with a column for each pair of a record and one of its users; or the `attribution` that `pyaccount.prepare` made.

    Raises `DocumentError` with the place if batches cannot be drawn (a blank, an unknown size of the data set, a deterministic
    order without a batch size, or a case that no analysis covers), and `RunError` for data that does not fit the document.
    """
    body = case.node
    if refused := schedule_refusals(case):
        raise DocumentError(refused)
    refuse_own_probabilities(case)
    unknown = [path for path in (case.asked.blank, *case.asked.choices) if path is not None]
    if unknown:
        message = "batches can only be drawn from a document without blanks: certify it first, and use the certificate"
        raise DocumentError(
            [case.asked.problem("unfilled-blank", path, message, allowed="a value") for path in unknown]
        )
    if attribution is not None and not body.sampler.protects_users:
        raise RunError(f"{body.sampler.kind} samples records, not users: leave the attribution out")
    if attribution is None and body.sampler.protects_users:
        raise RunError(
            f"{body.sampler.kind} samples users: give the attribution, which says to whom each record belongs"
        )
    stated = body.training.dataset_size
    if None not in (records, stated) and records != stated:
        raise RunError(f"records: {records:_} are given, and the document's dataset_size is {stated:_}")
    pairs = None if attribution is None else attributed(attribution)
    make = SAMPLERS[body.sampler.kind]
    if body.count == 1:
        return make(Drawing(case, key, records, pairs))
    return Repeated(lambda run: make(Drawing(case, key.derive("run", run), records, pairs)), body.count)
