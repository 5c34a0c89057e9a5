"""jax_privacy: converts batch-selection strategies and Toeplitz coefficients to sections of a document, and configurations of
execution plans to documents.

A strategy object says how batches are formed. Noise, clip norm and ε are elsewhere in jax_privacy, so a strategy gives only the
sections `training` and `sampler`, to which you add `privacy` and `noise`. A `BandMFExecutionPlanConfig` has all of it.
"""

from __future__ import annotations

from typing import Any

from pyaccount.adapters.reading import document, no_equivalent, real, whole_in, wrong_type_error
from pyaccount.document.ranges import (
    BINS,
    COEFFICIENT,
    COEFFICIENTS,
    DATASET_SIZE,
    DRAWS,
    ITERATIONS,
    LARGEST_BATCH,
    NOISE_MULTIPLIER,
    PARTITIONS,
    PROBABILITY,
    SEPARATION,
)
from pyaccount.errors import quoted

#: The adjacency of documents for each neighbouring relation of dp_accounting.
ADJACENCIES = {"ADD_OR_REMOVE_ONE": "add-remove", "REPLACE_ONE": "replace-one", "REPLACE_SPECIAL": "zero-out"}

_READ = "CyclicPoissonSampling, BallsInBinsSampling, FixedBatchSampling, BMinSepSampling"


def from_strategy(
    strategy: object, *, adjacency: str, dataset_size: int | None = None, known_parts: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the sections `training` and `sampler` for a batch-selection strategy.

    `adjacency` is that of the document; partitions that depend on the number of records (PartitionType.EQUAL_SPLIT) are refused
    under add-remove. `dataset_size` is `num_examples` of `batch_iterator`; it is needed for fixed and truncated batches. Cyclic
    Poisson sampling from independent random parts becomes `phase: random`. With `known_parts` it is analysed as if the parts were
    known, which gives a looser bound and needs no samples.

    Raises `DocumentError` with the field if no document describes the strategy.
    """
    kind = type(strategy).__name__
    if kind == "CyclicPoissonSampling":
        return _cyclic(strategy, adjacency, dataset_size, known_parts=known_parts)
    if kind == "BMinSepSampling":
        start = "warm" if strategy.warm_start else "cold"  # type: ignore[attr-defined]
        sampler = {"kind": "b-min-sep", "min_separation": _whole(strategy, "min_sep", SEPARATION), "start": start}
        training = {**_rounds(strategy), "sampling_probability": _real(strategy, "sampling_prob", PROBABILITY)}
        return _truncated(strategy, {"training": training, "sampler": sampler}, dataset_size)
    if kind == "BallsInBinsSampling":
        sampler = {"kind": "balls-in-bins", "bins": _whole(strategy, "cycle_length", BINS)}
        return {"training": _rounds(strategy), "sampler": sampler}
    if kind == "FixedBatchSampling":
        replaced = bool(strategy.replace)  # type: ignore[attr-defined]
        training = {
            **_rounds(strategy),
            "dataset_size": _records(dataset_size, "batches of a fixed size need a known number of records"),
            "expected_batch_size": _whole(strategy, "batch_size", DRAWS if replaced else LARGEST_BATCH),
        }
        return {"training": training, "sampler": {"kind": "with-replacement" if replaced else "fixed-size"}}
    if kind == "UserSelectionStrategy":
        no_equivalent(
            ("base_strategy",),
            "this strategy draws users, and the whole contribution of a user is clipped: convert its base_strategy with the "
            "number of users as dataset_size, and read “record” as “user” in the certificate",
            value=kind,
        )
    return no_equivalent((), f"no document describes this strategy; the adapter reads {_READ}", value=kind)


def from_coefficients(coefficients: object, *, iterations: int) -> dict[str, Any]:
    """Return the section `matrix` for a Toeplitz strategy matrix C with this first column (numpy, jax or a list).

    The matrix is not normalised: the noise multiplier of the document is the standard deviation of Z divided by the clip norm,
    where training adds C⁻¹Z, as `inverse_as_streaming_matrix(coefficients)` does. With `column_normalize_for_n` every column is
    scaled separately, and the matrix is no longer Toeplitz; write such a matrix to a file, for `kind: dense`. Coefficients beyond
    the number of iterations are dropped, because they are not in the matrix.

    Raises `DocumentError` with the index unless the coefficients are a vector of numbers ≥ 0.
    """
    rounds = whole_in(iterations, ITERATIONS, ("iterations",))
    listed = coefficients.tolist() if hasattr(coefficients, "tolist") else coefficients
    if not isinstance(listed, list | tuple) or not listed:
        expected = "a vector of at least one number"
        wrong_type_error(("coefficients",), f"must be {expected}, not {quoted(listed)}", quoted(listed), expected)
    column = [real(value, COEFFICIENT, ("coefficients", index)) for index, value in enumerate(listed[:rounds])]
    whole_in(len(column), COEFFICIENTS, ("coefficients",))
    return {"kind": "toeplitz", "coefficients": column, "normalize": False}


def from_config(
    config: object,
    *,
    delta: float | str | None = None,
    dataset_size: int | None = None,
    known_parts: bool = True,
    name: str = "jax_privacy",
) -> dict[str, Any]:
    """Return the document of a `BandMFExecutionPlanConfig`, which describes the same batches, matrix and noise.

    A configuration with ε and δ gives a document in which σ is the blank; one with `noise_multiplier` gives a document in which ε
    is the blank, and needs `delta`. `dataset_size` is that of the training, if `num_examples` is not set; it may be left out.
    `known_parts` is as for `from_strategy`; True is how jax_privacy accounts, and needs no samples.

    * The adjacency is the relation of the configuration's accountant (REPLACE_SPECIAL is zero-out).
    * The noise multiplier of jax_privacy is in units of the sensitivity of the sum, which under REPLACE_ONE is twice the clip
      norm, and of a matrix with columns of norm 1. In a document it is in units of the clip norm, so it is doubled there, and the
      matrix is normalised.
    * `l2_clip_norm`, `normalize_by` and `rescale_to_unit_norm` are not part of a document: `TrainingRun` takes `clip_norm` and
      `normaliser`.

    Raises `DocumentError` with the field if no document describes the configuration.
    """
    relation = getattr(config.accountant.neighboring_relation, "name", None)  # type: ignore[attr-defined]
    adjacency = ADJACENCIES.get(str(relation))
    if adjacency is None:
        no_equivalent(
            ("accountant",), f"no adjacency is called {relation}", value=relation, allowed=", ".join(ADJACENCIES)
        )
    if config.column_normalize:  # type: ignore[attr-defined]
        no_equivalent(
            ("column_normalize",),
            "every column of the matrix is scaled by itself, so the matrix is not Toeplitz: write it to a file, for a matrix of "
            "kind dense",
            value=True,
            allowed="False",
        )
    matrix = from_coefficients(config.strategy, iterations=_whole(config, "iterations", ITERATIONS))  # type: ignore[attr-defined]
    parts = len(matrix["coefficients"])
    size = getattr(config, "num_examples", None) or dataset_size
    sections = _cyclic(_Cyclic(config, parts), adjacency, size, known_parts=known_parts)
    if size is not None:
        sections["training"]["dataset_size"] = _records(size, "")
    body: dict[str, Any] = {**sections}
    if parts > 1:
        body["matrix"] = {**matrix, "normalize": True}
    multiplier, epsilon = getattr(config, "noise_multiplier", None), getattr(config, "epsilon", None)
    if multiplier is None:
        return document(
            [{**body, "noise": {"multiplier": "solve"}}],
            name=name,
            adjacency=adjacency,
            delta=getattr(config, "delta", 0.0),
            epsilon=epsilon,  # type: ignore[arg-type]
            group_size=1,
        )
    if delta is None:
        no_equivalent(("delta",), "a configuration with noise_multiplier has no δ: give delta")
    units = 2.0 if adjacency == "replace-one" else 1.0
    noise = {"multiplier": units * real(multiplier, NOISE_MULTIPLIER, ("noise_multiplier",))}
    return document(
        [{**body, "noise": noise}], name=name, adjacency=adjacency, delta=delta, epsilon="solve", group_size=1
    )


class _Cyclic:
    """What a `BandMFExecutionPlanConfig` draws batches with, by the names of a `CyclicPoissonSampling`."""

    def __init__(self, config: Any, parts: int) -> None:
        self.sampling_prob, self.iterations, self.cycle_length = config.sampling_prob, config.iterations, parts
        self.truncated_batch_size, self.partition_type = config.truncated_batch_size, config.partition_type


def _cyclic(strategy: Any, adjacency: str, dataset_size: int | None, *, known_parts: bool) -> dict[str, dict[str, Any]]:
    """Return the sections for Poisson sampling, which is cyclic if there are several parts."""
    probability, parts = _real(strategy, "sampling_prob", PROBABILITY), _whole(strategy, "cycle_length", PARTITIONS)
    training = {**_rounds(strategy), "sampling_probability": probability}
    if parts == 1:
        return _truncated(strategy, {"training": training, "sampler": {"kind": "poisson"}}, dataset_size)
    if strategy.truncated_batch_size is not None:
        no_equivalent(
            ("truncated_batch_size",),
            "truncated batches are analysed for Poisson, b-min-sep and balls-in-bins sampling, not for cyclic Poisson sampling",
            value=strategy.truncated_batch_size,
            allowed="None",
        )
    sampler: dict[str, Any] = {"kind": "cyclic-poisson", "partitions": parts}
    partition = getattr(strategy.partition_type, "name", strategy.partition_type)
    if partition == "INDEPENDENT":
        sampler["phase"] = "fixed" if known_parts else "random"
    elif partition != "EQUAL_SPLIT":
        no_equivalent(
            ("partition_type",), "no document describes this way to split the data set into parts", value=str(partition)
        )
    elif adjacency == "add-remove":
        no_equivalent(
            ("partition_type",),
            "an equal split shuffles all records, so adding a record moves other records to other parts; under add-remove the "
            "part of a record must not depend on other records",
            value=str(partition),
            allowed="INDEPENDENT, or adjacency zero-out or replace-one",
        )
    else:
        # A record's part depends only on the number of records, which is public here, and not on their contents. So the parts may
        # be known.
        sampler["phase"] = "fixed"
    return {"training": training, "sampler": sampler}


def _truncated(strategy: Any, sections: dict[str, dict[str, Any]], records: int | None) -> dict[str, dict[str, Any]]:
    """Return the sections, with `truncate_to` and the data set's size added if the strategy truncates batches."""
    if strategy.truncated_batch_size is None:
        return sections
    known = _records(records, "how often batches are truncated depends on it")
    limit = _whole(strategy, "truncated_batch_size", LARGEST_BATCH)
    return {
        "training": {**sections["training"], "dataset_size": known},
        "sampler": {**sections["sampler"], "truncate_to": limit},
    }


def _rounds(strategy: object) -> dict[str, Any]:
    return {"iterations": _whole(strategy, "iterations", ITERATIONS)}


def _records(dataset_size: int | None, reason: str) -> int:
    if dataset_size is None:
        no_equivalent(("dataset_size",), f"the number of records is not given: {reason}. Give dataset_size")
    return whole_in(dataset_size, DATASET_SIZE, ("dataset_size",))


def _whole(strategy: object, field: str, allowed: Any) -> int:
    return whole_in(getattr(strategy, field, None), allowed, (field,))


def _real(strategy: object, field: str, allowed: Any) -> float:
    return real(getattr(strategy, field, None), allowed, (field,))
