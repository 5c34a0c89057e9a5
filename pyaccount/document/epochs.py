"""Epochs as iterations, and iterations as epochs.

An epoch is as many rounds as a record needs to take part once, in the long run: 1/p₀, with p₀ the participation rate. That is
N/B for an expected batch of B out of N records, T for balls in bins, t/k where a record takes part in k of t rounds, 1/p for
Poisson sampling (1/(m·p) where every round has m draws), b − 1 + 1/p for b-min-sep and b/p for cyclic Poisson sampling. Without
sampling the records are dealt into batches, of which the last may be smaller, so an epoch has ⌈N/B⌉ rounds.

Arithmetic alone, on the digits as they were written: 7 epochs at a probability of 0.07 are 100 rounds, not 101. A gate reads
certificates with it, so that nothing here knows the models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from pyaccount.document.ranges import RATE_AGREEMENT

#: The most by which a product may miss a whole number and still be it, whatever its size.
_WHOLE = Fraction(1, 1000)


def epoch_of(  # noqa: PLR0913 - what samplers are described by
    sampler: str,
    training: Mapping[str, float | None],
    *,
    bins: int | None = None,
    separation: int | None = None,
    draws: int = 1,
    allocation: tuple[int, int] | None = None,
) -> Fraction | None:
    """The rounds of an epoch, exactly; `None` where what is stated does not say it.

    `training` has what the section states of `dataset_size`, `expected_batch_size`, `sampling_probability` and
    `participation_rate`; of several statements, which agree to rounding, the first of these counts. `draws` is how many batches
    are drawn for a round, with the sampling probability each. `allocation` is among how many rounds a record's are chosen, and
    how many of them it takes part in.
    """
    if sampler == "user-b-min-sep":
        return None
    if sampler == "random-allocation":
        return None if allocation is None else Fraction(*allocation)
    if sampler == "balls-in-bins" and bins is not None:
        return Fraction(bins)
    records, batch = training.get("dataset_size"), training.get("expected_batch_size")
    probability, rate = training.get("sampling_probability"), training.get("participation_rate")
    if records is not None and batch is not None:
        length = _written(records) / _written(batch)
    elif rate is not None and sampler != "none":
        length = 1 / _written(rate)
    else:
        return (
            None if probability is None else _between_chances(sampler, 1 / (draws * _written(probability)), separation)
        )
    if sampler == "none":
        return Fraction(math.ceil(length))
    return Fraction(max(1, round(length))) if sampler == "balls-in-bins" else length


def _between_chances(sampler: str, draws: Fraction, separation: int | None) -> Fraction | None:
    """The rounds that go by until a record is drawn which has `draws` chances in the mean, so far apart as the sampler says."""
    if sampler in ("none", "balls-in-bins"):
        return None
    if sampler in ("b-min-sep", "cyclic-poisson"):
        if separation is None:
            return None
        return separation * draws if sampler == "cyclic-poisson" else separation - 1 + draws
    return draws


def iterations_of(epochs: float, epoch: Fraction) -> int:
    """The iterations that so many epochs of so many rounds are: rounded up, but for what rounding a rate may have added."""
    rounds = _written(epochs) * epoch
    nearest = max(1, round(rounds))
    if abs(rounds - nearest) <= min(_WHOLE, rounds * _written(RATE_AGREEMENT)):
        return nearest
    return math.ceil(rounds)


def epochs_of(iterations: int, epoch: Fraction) -> float:
    """How many epochs of so many rounds the iterations are."""
    return float(iterations / epoch)


def counted(epochs: float) -> str:
    """Epochs for people, to as many digits as anybody counts: `1 epoch`, `10.00448 epochs`."""
    return f"{epochs:.10g} epoch{'' if epochs == 1.0 else 's'}"


def _written(number: float) -> Fraction:
    """The number as its shortest decimal digits say it."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
