"""opake: converts processes to documents.

A process, or its `state_dict()`, says what was run, but not which data sets are neighbours. Without a matrix, noise multipliers
mean the same in both. With a matrix, opake's multiplier is the raw standard deviation, and a document's is relative to the
largest column norm of the matrix, so the adapter divides by that norm.

`KOutOfT` with `allocation="block"` places a record once in each of k neighbouring blocks, so every block is an allocation of its
own; with "total" a record takes part in k of t rounds. opake's `BallsInBins` and `CyclicPoisson` describe whole runs.

`EpsDelta` is the worst mechanism with a stated (ε, δ) in both. It is the only process of opake that is no training run: opake has
no other mechanisms, no selection, and no sampler for an `EpsDelta`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pyaccount.adapters.reading import BodyMapping, document, no_equivalent, real, whole_in
from pyaccount.document.ranges import (
    BASE_DELTA,
    BINS,
    COUNT,
    DATASET_SIZE,
    DRAWS_PER_ITERATION,
    EPSILON,
    ITERATIONS,
    LARGEST_BATCH,
    NOISE_MULTIPLIER,
    RELEASES,
)
from pyaccount.errors import Path
from pyaccount.reading.nodes import DEEPEST
from pyaccount.reading.numerals import Range

_RATE, _SPREAD = Range(0, 1), Range(1e-12, 1e12)

#: Processes that no document describes, each with the reason.
_REFUSED = {
    "NonPrivate": "a release without noise has no guarantee; leave it out only if nothing was released",
}
#: The reason why a stated guarantee is refused below a sampler.
_NOT_SAMPLED = (
    "opake samples no mechanism of which only (ε, δ) is known; write a phase with `mechanism: {kind: stated}` and a sampler "
    "yourself"
)


def from_process(  # noqa: PLR0913 - the head of the document, which a process does not have
    process: object,
    *,
    adjacency: str,
    delta: float | str,
    epsilon: float | str = "solve",
    group_size: int = 1,
    name: str = "opake",
) -> dict[str, Any]:
    """Return the document of a process of opake (0.16), or of its `state_dict()`, with a phase for each part in order.

    The adapter reads `Gaussian`, `AdaClip`, `Poisson`, `ParallelPoisson` and `KOutOfT` of opake-dpsgd; `MfGaussian`,
    `CyclicPoisson`, `BMinSep` and `BallsInBins` of opake-dpftrl with `IdentityStrategy`, `BandMfStrategy` or `BsrStrategy` (those
    with a matrix only as objects, because a state does not contain the coefficients); and `EpsDelta`, `Composed`, `Repeated`,
    `CachedProcess` and `Identity`.

    Raises `DocumentError` with the path in the process, such as `inner.noise_multiplier`, if no document describes a part.
    """
    bodies = _bodies(process, ())
    if not bodies:
        no_equivalent((), "the process releases nothing: a document needs at least one round", value=_kind(process, ()))
    return document(bodies, name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=group_size)


def _bodies(process: object, path: Path) -> list[BodyMapping]:
    """Return the bodies of a process in order.

    Compositions are traversed in a loop and not by recursion, because opake nests them one level deeper with every step.
    """
    bodies: list[BodyMapping] = []
    pending: list[tuple[object, Path, int]] = [(process, path, 1)]
    while pending:
        node, place, count = pending.pop()
        kind = _kind(node, place)
        if kind == "Composed":
            pending += [(_field(node, side, place), (*place[:DEEPEST], side), count) for side in ("right", "left")]
        elif kind == "Repeated":
            runs = count * whole_in(_field(node, "count", place), COUNT, (*place, "count"))
            pending.append((_field(node, "inner", place), (*place[:DEEPEST], "inner"), runs))
        elif kind == "CachedProcess":
            pending.append((_field(node, "inner", place), (*place[:DEEPEST], "inner"), count))
        elif kind != "Identity":
            if count not in COUNT:
                message = f"{count} runs are more than a document can describe"
                no_equivalent(place, message, value=kind, allowed=COUNT.describe())
            bodies += [_repeated(body, count) for body in _leaf(node, kind, place)]
    return bodies


def _repeated(body: BodyMapping, count: int) -> BodyMapping:
    """Return a body for `count` runs of a body: with more rounds if rounds are drawn independently, else with a `count`."""
    if count == 1:
        return body
    if "mechanism" in body:
        return body | {"count": count}
    rounds = body["training"]["iterations"] * count
    if body["sampler"]["kind"] in ("poisson", "random-allocation") and rounds in ITERATIONS:
        return body | {"training": body["training"] | {"iterations": rounds}}
    if body["sampler"]["kind"] == "none" and "matrix" not in body:
        return body | {"training": body["training"] | {"iterations": rounds}}
    return body | {"count": count}


def _leaf(node: object, kind: str, path: Path) -> list[BodyMapping]:
    reader = _READERS.get(kind)
    if reader is None:
        reason = _REFUSED.get(kind, f"no document describes this process; the adapter reads {', '.join(_READERS)}")
        no_equivalent(path, reason, value=kind)
    return reader(node, path)


def _gaussian(node: object, path: Path) -> list[BodyMapping]:
    return [{"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": _noise(node, path)}]


def _guarantee(node: object, path: Path) -> list[BodyMapping]:
    """Return the body of an (ε, δ), which is none for (0, 0): this releases nothing."""
    epsilon = real(_field(node, "epsilon", path), EPSILON, (*path, "epsilon"))
    delta = real(_field(node, "delta", path), BASE_DELTA, (*path, "delta"))
    if delta == 1.0:
        no_equivalent((*path, "delta"), "δ = 1 is no guarantee; leave it out only if nothing was released", value=delta)
    if epsilon == delta == 0.0:
        return []
    return [{"mechanism": {"kind": "stated", "epsilon": epsilon} | ({"delta": delta} if delta else {})}]


def _poisson(node: object, path: Path) -> list[BodyMapping]:
    training: BodyMapping = {"iterations": 1, "sampling_probability": _rate(node, path)}
    return [_truncated(node, path, training, _noise(_field(node, "inner", path), (*path, "inner")))]


def _truncated(node: object, path: Path, training: BodyMapping, noise: BodyMapping) -> BodyMapping:
    """Return a body with Poisson sampling, whose batches are truncated if the process says so."""
    sampler: BodyMapping = {"kind": "poisson"}
    limit = _field(node, "truncated_batch_size", path)
    if limit is not None:
        records = _field(node, "dataset_size", path)
        training["dataset_size"] = whole_in(records, DATASET_SIZE, (*path, "dataset_size"))
        sampler["truncate_to"] = whole_in(limit, LARGEST_BATCH, (*path, "truncated_batch_size"))
    return {"training": training, "sampler": sampler, "noise": noise}


def _parallel_poisson(node: object, path: Path) -> list[BodyMapping]:
    """Return the body for several workers that draw independently, with noise that is added once: several draws in a round."""
    workers = whole_in(_field(node, "num_workers", path), DRAWS_PER_ITERATION, (*path, "num_workers"))
    (body,) = _poisson(_field(node, "inner", path), (*path, "inner"))
    return [body | {"sampler": body["sampler"] | ({"draws_per_iteration": workers} if workers > 1 else {})}]


def _k_out_of_t(node: object, path: Path) -> list[BodyMapping]:
    taken = whole_in(_field(node, "k", path), ITERATIONS, (*path, "k"))
    rounds = whole_in(_field(node, "n_steps", path), ITERATIONS, (*path, "n_steps"))
    noise = _noise(_field(node, "inner", path), (*path, "inner"))

    def allocated(count: int, length: int, k: int) -> BodyMapping:
        sampler = {"kind": "random-allocation", "iterations_per_allocation": length}
        return {
            "training": {"iterations": count * length},
            "sampler": sampler | ({"participations": k} if k > 1 else {}),
            "noise": noise,
        }

    if _field(node, "allocation", path) == "total":
        return [allocated(1, rounds, taken)]
    length, longer = divmod(rounds, taken)
    blocks = ((taken - longer, length), (longer, length + 1))
    return [allocated(count, size, 1) for count, size in blocks if count]


def _mf_gaussian(node: object, path: Path) -> list[BodyMapping]:
    """Return the body of a run without sampling, in which the rounds of a record may be known."""
    rounds = _field(node, "n_steps", path)
    if rounds is None:
        message = "without n_steps this is only a recipe for a sampled run, not a release: give the process of the sampled run"
        no_equivalent((*path, "n_steps"), message, value="None", allowed="a number of rounds")
    iterations = whole_in(rounds, ITERATIONS, (*path, "n_steps"))
    apart = whole_in(_field(node, "min_sep", path), ITERATIONS, (*path, "min_sep"))
    most = _field(node, "max_participations", path)
    sampler: BodyMapping = {"kind": "none"}
    if apart > 1:
        sampler["min_separation"] = min(apart, iterations)
    if most is not None:
        sampler["max_participations"] = min(
            whole_in(most, ITERATIONS, (*path, "max_participations")), -(-iterations // apart)
        )
    return [_with_matrix(node, path, sampler=sampler, training={"iterations": iterations}, pattern=(apart, most))]


def _cyclic_poisson(node: object, path: Path) -> list[BodyMapping]:
    iterations, rate = _iterations(node, path), _rate(node, path)
    inner, place = _field(node, "inner", path), (*path, "inner")
    strategy = _field(inner, "strategy", place)
    training: BodyMapping = {"iterations": iterations, "sampling_probability": rate}
    if _kind(strategy, (*place, "strategy")) == "IdentityStrategy":
        return [_truncated(node, path, training, _noise(inner, place))]
    sampler = {"kind": "cyclic-poisson", "partitions": _bands(strategy, (*place, "strategy"))}
    return [_with_matrix(inner, place, sampler=sampler, training=training, pattern=(iterations, 1))]


def _b_min_sep(node: object, path: Path) -> list[BodyMapping]:
    iterations = _iterations(node, path)
    inner, place = _field(node, "inner", path), (*path, "inner")
    apart = _bands(_field(inner, "strategy", place), (*place, "strategy"))
    training = {"iterations": iterations, "participation_rate": real(_field(node, "p0", path), _RATE, (*path, "p0"))}
    sampler = {"kind": "b-min-sep", "min_separation": apart}
    return [_with_matrix(inner, place, sampler=sampler, training=training, pattern=(iterations, 1))]


def _balls_in_bins(node: object, path: Path) -> list[BodyMapping]:
    iterations = _iterations(node, path)
    count = whole_in(_field(node, "num_bins", path), BINS, (*path, "num_bins"))
    sampler, place = {"kind": "balls-in-bins", "bins": count}, (*path, "inner")
    pattern = (count, -(-iterations // count))
    inner = _field(node, "inner", path)
    return [_with_matrix(inner, place, sampler=sampler, training={"iterations": iterations}, pattern=pattern)]


def _with_matrix(
    inner: object, path: Path, *, sampler: BodyMapping, training: BodyMapping, pattern: tuple[int, Any]
) -> BodyMapping:
    """Return the body of a run with an MfGaussian's strategy.

    `pattern` is (minimum separation, largest number of participations); opake computes the coefficients for it and for the number
    of iterations in `training`.
    """
    strategy, place, iterations = _field(inner, "strategy", path), (*path, "strategy"), training["iterations"]
    kind, noise = _kind(strategy, place), _noise(inner, path)
    if kind == "IdentityStrategy":
        return {"training": training, "sampler": sampler, "noise": noise}
    compute = getattr(strategy, "coefficients", None)
    if kind not in ("BandMfStrategy", "BsrStrategy") or not callable(compute):
        message = (
            "a state does not contain the coefficients, which opake optimises: give the process itself, not its state"
            if kind in ("BandMfStrategy", "BsrStrategy")
            else "this strategy is not read: describe its coefficients by a matrix of kind toeplitz, or its buffers by kind blt"
        )
        no_equivalent(place, message, value=kind, allowed="IdentityStrategy, BandMfStrategy or BsrStrategy")
    column = compute(n_steps=iterations, min_sep=pattern[0], max_participations=pattern[1])
    coefficients = [float(value) for value in column]
    while len(coefficients) > 1 and coefficients[-1] == 0.0:
        coefficients.pop()
    norm = math.hypot(*coefficients[:iterations])
    return {
        "training": training,
        "sampler": sampler,
        "matrix": {"kind": "toeplitz", "coefficients": coefficients},
        "noise": {"multiplier": noise["multiplier"] / norm},
    }


_READERS: dict[str, Callable[[object, Path], list[BodyMapping]]] = {
    "Gaussian": _gaussian,
    "AdaClip": _gaussian,
    "EpsDelta": _guarantee,
    "Poisson": _poisson,
    "ParallelPoisson": _parallel_poisson,
    "KOutOfT": _k_out_of_t,
    "MfGaussian": _mf_gaussian,
    "CyclicPoisson": _cyclic_poisson,
    "BMinSep": _b_min_sep,
    "BallsInBins": _balls_in_bins,
}


def _noise(node: object, path: Path) -> BodyMapping:
    """Return the section `noise` of an inner mechanism.

    Adaptive clipping also releases counts of clipped gradients. A record changes each count by ½, so in units of that
    sensitivity the multiplier of a count is twice the standard deviation of its noise.
    """
    kind = _kind(node, path)
    if kind == "AdaClip":
        noise = _noise(_field(node, "inner", path), (*path, "inner"))
        deviation = real(_field(node, "fraction_noise_std", path), _SPREAD, (*path, "fraction_noise_std"))
        batch = real(_field(node, "expected_batch_size", path), _SPREAD, (*path, "expected_batch_size"))
        groups = whole_in(_field(node, "num_groups", path), RELEASES, (*path, "num_groups"))
        counts = [{"what": "clipped counts", "multiplier": 2.0 * deviation * batch}] * groups
        if groups > 1:
            counts = [{**count, "what": f"clipped counts of group {group}"} for group, count in enumerate(counts, 1)]
        return noise | {"also": counts}
    if kind not in ("Gaussian", "MfGaussian"):
        reason = (
            _NOT_SAMPLED
            if kind == "EpsDelta"
            else _REFUSED.get(kind, "only Gaussian noise is described below a sampler")
        )
        no_equivalent(path, reason, value=kind, allowed="Gaussian")
    multiplier = real(_field(node, "noise_multiplier", path), NOISE_MULTIPLIER, (*path, "noise_multiplier"))
    return {"multiplier": multiplier}


def _bands(strategy: object, path: Path) -> int:
    if _kind(strategy, path) != "BandMfStrategy":
        message = "only a banded strategy keeps participations apart"
        no_equivalent(path, message, value=_kind(strategy, path), allowed="BandMfStrategy")
    return whole_in(_field(strategy, "bands", path), ITERATIONS, (*path, "bands"))


def _iterations(node: object, path: Path) -> int:
    return whole_in(_field(node, "n_steps", path), ITERATIONS, (*path, "n_steps"))


def _rate(node: object, path: Path) -> float:
    return real(_field(node, "sample_rate", path), _RATE, (*path, "sample_rate"))


def _kind(node: object, path: Path) -> str:
    """Return the name of a process's class, which a state has under `type`."""
    if isinstance(node, Mapping):
        kind = node.get("type")
        if not isinstance(kind, str):
            no_equivalent(path, "this state does not say its type", value=None, allowed="a state_dict of opake")
        return kind
    return type(node).__name__


def _field(node: object, name: str, path: Path) -> Any:
    try:
        return node[name] if isinstance(node, Mapping) else getattr(node, name)
    except (AttributeError, KeyError):
        no_equivalent(path, f"this {_kind(node, path)} has no field {name}", value=_kind(node, path))
