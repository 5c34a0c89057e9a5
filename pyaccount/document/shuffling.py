"""Messages about batches of a shuffled data set: what can be certified for a run that used them.

Whatever the permutation, a record takes part in one round of each epoch. Under zero-out the other records stay in their
batches when the contribution of a record is replaced by zero. So for every fixed permutation E epochs are one Gaussian
mechanism of sensitivity √E (without a matrix). A random permutation that does not depend on the data is a mixture of
such mechanisms, and by joint convexity the worst of them bounds the mixture. This is sampler `none` with E
participations. Adding or removing a record, in contrast, would move other records to other batches.

No smaller ε is claimed: the bounds of Poisson sampling do not hold for shuffled batches (Chua et al. 2024,
arXiv:2403.17673), and the first upper bound for them (van Dijk & Ertan 2026, arXiv:2605.06259) requires σ ≥ √(3/ln M)
for M batches in an epoch and is not implemented.
"""

from __future__ import annotations

import math

from pyaccount.reading.numerals import parse_number
from pyaccount.reading.spelling import nearest_value
from pyaccount.reading.unknown_kinds import NOT_AMPLIFIED, SHUFFLE


def means_shuffling(word: object) -> bool:
    """Whether a word for a kind of sampler means shuffled batches."""
    return isinstance(word, str) and (word == SHUFFLE or nearest_value(word, (SHUFFLE,)) is not None)


def shuffled_as_yaml(training: object) -> str:
    """Return advice on how to write a run with shuffled batches as a document; `training` is its raw section."""
    epochs = _epochs(training if isinstance(training, dict) else {})
    most = "EPOCHS" if epochs is None else f"{epochs:_}"
    return (
        ". A run that was shuffled is certified without amplification, each record in one batch of each epoch: write "
        f"`sampler: {{kind: none, max_participations: {most}}}`, and `adjacency: zero-out` under privacy"
    )


def shuffled_as_options(answers: object) -> str:
    """Return the same advice as options of `pyaccount init`."""
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
    """Return how many epochs a run begins, or `None` if its section does not state that."""
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
    # A loader keeps the last, smaller batch or drops it. Unless it clearly kept it, assume that it dropped it: then the
    # run begins more epochs.
    kept, dropped = math.ceil(records / batch), math.floor(records / batch)
    return math.ceil(rounds / (kept if rounds % kept == 0.0 else dropped))


def _positive(value: object) -> float | None:
    number = parse_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 < number < 1e15:
        return None
    return float(number)
