"""Batches of a shuffled data set: what can be certified of a run that had them, in words.

Whatever the permutation, a record takes part in one round of each epoch. Under zero-out nobody else moves when its contribution
is replaced by zero, so that for every fixed permutation E epochs are one Gaussian mechanism of sensitivity √E (without a
matrix), and a permutation that does not depend on the data is a mixture of such, which joint convexity bounds by the worst of
them. That is sampler `none` with E participations. Adding or removing a record would move the others to other batches.

Nothing below that is claimed: the bounds of Poisson sampling do not hold for shuffled batches (Chua et al. 2024,
arXiv:2403.17673), and the first upper bound that does (van Dijk & Ertan 2026, arXiv:2605.06259) asks for σ ≥ √(3/ln M) with M
batches in an epoch and is not implemented.
"""

from __future__ import annotations

import math

from pyaccount.document.numerals import parse_number
from pyaccount.document.spelling import meant_kind
from pyaccount.document.unknown_kinds import NOT_AMPLIFIED, SHUFFLE


def means_shuffling(word: object) -> bool:
    """Whether a kind of sampler is a name of shuffled batches."""
    return isinstance(word, str) and (word == SHUFFLE or meant_kind(word, (SHUFFLE,)) is not None)


def shuffled_as_yaml(training: object) -> str:
    """How a document says of a run with shuffled batches what holds for it; `training` is its section as it was read."""
    epochs = _epochs(training if isinstance(training, dict) else {})
    most = "EPOCHS" if epochs is None else f"{epochs:_}"
    return (
        ". A run that was shuffled is certified without amplification, each record in one batch of each epoch: write "
        f"`sampler: {{kind: none, max_participations: {most}}}`, and `adjacency: zero-out` under privacy"
    )


def shuffled_as_options(answers: object) -> str:
    """The same in words of the options of `pyaccount init`."""
    said = answers if isinstance(answers, dict) else {}
    epochs = _epochs(
        {
            "epochs": said.get("epochs"),
            "iterations": said.get("iterations"),
            "dataset_size": said.get("dataset_size"),
            "expected_batch_size": said.get("batch_size"),
            "sampling_probability": said.get("sampling_probability"),
        }
    )
    most = "EPOCHS" if epochs is None else f"{epochs:_}"
    return (
        f"{NOT_AMPLIFIED}. A run that was shuffled is certified without amplification, each record in one batch of each epoch: "
        f"--sampler none --max-participations {most} --adjacency zero-out"
    )


def _epochs(training: dict[str, object]) -> int | None:
    """How many epochs a run begins, by what is said of its length; None where that does not say it."""
    asked = _positive(training.get("epochs"))
    if asked is not None:
        return math.ceil(asked)
    rounds = _positive(training.get("iterations"))
    records, batch = _positive(training.get("dataset_size")), _positive(training.get("expected_batch_size"))
    probability = _positive(training.get("sampling_probability"))
    if rounds is None or (records is None or batch is None) is (probability is None):
        return None
    if records is None or batch is None:
        return math.ceil(rounds / round(1.0 / probability)) if probability is not None and probability <= 1.0 else None
    if batch > records:
        return None
    # A loader keeps the last, smaller batch or drops it; where it is not plain that it kept it, more epochs are begun.
    kept, dropped = math.ceil(records / batch), math.floor(records / batch)
    return math.ceil(rounds / (kept if rounds % kept == 0.0 else dropped))


def _positive(value: object) -> float | None:
    number = parse_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 < number < 1e15:
        return None
    return float(number)
