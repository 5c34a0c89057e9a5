"""Notes on valid documents that may not mean what their author intended. No note refuses or enters a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.rates import epochs_of
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Path, path_text
from pyaccount.reading.nodes import find, place_of, plain_value
from pyaccount.rounding import shortest as number_text

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.tree import TrainingNode


#: A note is written about more epochs than `MOST_EPOCHS` if an epoch has at least `FEWEST_ROUNDS` rounds: with larger
#: batches many epochs are usual.
MOST_EPOCHS, FEWEST_ROUNDS = 500, 20


def notes(document: Document) -> Iterator[str]:
    """Yield the notes on a document, each with its place."""
    delta = number_or_none(document.privacy.delta)
    sizes = [number_or_none(run.training.dataset_size) for run in document.runs_among_phases()]
    records = min((size for size in sizes if size is not None), default=None)
    if delta is not None and records is not None and delta * records >= 1.0:
        yield _note(
            document,
            ("privacy", "delta") if document.risk is None else ("privacy", "risk", "report_delta"),
            f"δ is not below 1/{records:_}, one over the number of records: publishing a record chosen at random would satisfy "
            "such a guarantee. Usual values are much smaller",
        )

    for run in document.runs_among_phases():
        batch = number_or_none(run.training.expected_batch_size)
        if batch is not None and batch < 1.0:
            yield _note(
                document,
                run.at("training", "expected_batch_size"),
                "this is less than one record in a batch. It is a number of records; to give a share of them, use "
                "sampling_probability or participation_rate",
            )
        draws = run.draws_per_iteration()
        if batch is not None and draws > 1:
            yield _note(
                document,
                run.at("training", "expected_batch_size"),
                f"this is the expected number of records in all {draws} draws of an iteration together, "
                f"{batch / draws:.10g} in each",
            )
        yield from _on_length(document, run)


def _on_length(document: Document, run: TrainingNode) -> Iterator[str]:
    """Yield the note of the sampler on the number of epochs, or one on unusually many of them: the iterations may count
    micro-batches, to which no noise is added.
    """
    length, rounds = run.epoch(), number_or_none(run.training.iterations)
    if length is None or rounds is None:
        return
    if run.epochs is not None:
        if (message := run.sampler.on_epochs(run, length, int(rounds))) is not None:
            yield _note(document, run.at("training", "epochs"), message)
        return
    if length < FEWEST_ROUNDS or rounds <= MOST_EPOCHS * length:
        return
    epochs = epochs_of(int(rounds), length)
    yield _note(
        document,
        run.at("training", "iterations"),
        f"this is {epochs:.4g} epochs of {float(length):.10g} rounds, more than training usually has. An iteration is a step to "
        "which noise is added. If these are the micro-batches of gradient accumulation, give the steps between which noise is "
        "added, and count in expected_batch_size the records of all micro-batches and ranks of a step. If the number is "
        "right, give epochs instead",
    )


def _note(document: Document, path: Path, message: str) -> str:
    place, node = place_of(document.root, path), find(document.root, path)
    where = ":".join(str(part) for part in (place.file, place.line, place.column) if part is not None)
    value = plain_value(node) if node else ""
    written = number_text(value) if isinstance(value, float) else value
    return f"{where}: note: {path_text(path)} = {written}: {message}."
