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

from pyaccount.adapters.reading import BodyMapping, Part, document, no_equivalent
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


class OpakeProcess(Part):
    """A process of opake, or its state, whose class is under `type`."""

    @property
    def kind(self) -> str:
        """The name of the class."""
        if not isinstance(self.source, Mapping):
            return super().kind
        kind = self.source.get("type")
        if not isinstance(kind, str):
            no_equivalent(self.path, "this state does not say its type", value=None, allowed="a state_dict of opake")
        return kind

    def get(self, name: str) -> Any:
        """Return a field. Raises `DocumentError` if there is none of that name."""
        if not isinstance(self.source, Mapping):
            return super().get(name)
        if name not in self.source:
            no_equivalent(self.path, f"this {self.kind} has no field {name}", value=self.kind)
        return self.source[name]


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
    whole = OpakeProcess(process, ())
    bodies = _bodies(whole)
    if not bodies:
        no_equivalent((), "the process releases nothing: a document needs at least one round", value=whole.kind)
    return document(bodies, name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=group_size)


def _bodies(process: OpakeProcess) -> list[BodyMapping]:
    """Return the bodies of a process in order.

    Compositions are traversed in a loop and not by recursion, because opake nests them one level deeper with every step.
    """
    bodies: list[BodyMapping] = []
    pending: list[tuple[OpakeProcess, int]] = [(process, 1)]
    while pending:
        node, count = pending.pop()
        shown = node.path[:DEEPEST]
        if node.kind == "Composed":
            pending += [(OpakeProcess(node.get(side), (*shown, side)), count) for side in ("right", "left")]
        elif node.kind in ("Repeated", "CachedProcess"):
            runs = count * (node.whole("count", COUNT) if node.kind == "Repeated" else 1)
            pending.append((OpakeProcess(node.get("inner"), (*shown, "inner")), runs))
        elif node.kind != "Identity":
            if count not in COUNT:
                message = f"{count} runs are more than a document can describe"
                no_equivalent(node.path, message, value=node.kind, allowed=COUNT.describe())
            bodies += [_repeated(body, count) for body in _leaf(node)]
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


def _leaf(node: OpakeProcess) -> list[BodyMapping]:
    reader = _READERS.get(node.kind)
    if reader is None:
        reason = _REFUSED.get(node.kind, f"no document describes this process; the adapter reads {', '.join(_READERS)}")
        no_equivalent(node.path, reason, value=node.kind)
    return reader(node)


def _gaussian(node: OpakeProcess) -> list[BodyMapping]:
    return [{"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": _noise(node)}]


def _guarantee(node: OpakeProcess) -> list[BodyMapping]:
    """Return the body of an (ε, δ), which is none for (0, 0): this releases nothing."""
    epsilon, delta = node.real("epsilon", EPSILON), node.real("delta", BASE_DELTA)
    if delta == 1.0:
        no_equivalent(
            (*node.path, "delta"), "δ = 1 is no guarantee; leave it out only if nothing was released", value=delta
        )
    if epsilon == delta == 0.0:
        return []
    return [{"mechanism": {"kind": "stated", "epsilon": epsilon} | ({"delta": delta} if delta else {})}]


def _poisson(node: OpakeProcess) -> list[BodyMapping]:
    training: BodyMapping = {"iterations": 1, "sampling_probability": node.real("sample_rate", _RATE)}
    return [_truncated(node, training, _noise(node.at("inner")))]


def _truncated(node: OpakeProcess, training: BodyMapping, noise: BodyMapping) -> BodyMapping:
    """Return a body with Poisson sampling, whose batches are truncated if the process says so."""
    sampler: BodyMapping = {"kind": "poisson"}
    if node.get("truncated_batch_size") is not None:
        training["dataset_size"] = node.whole("dataset_size", DATASET_SIZE)
        sampler["truncate_to"] = node.whole("truncated_batch_size", LARGEST_BATCH)
    return {"training": training, "sampler": sampler, "noise": noise}


def _parallel_poisson(node: OpakeProcess) -> list[BodyMapping]:
    """Return the body for several workers that draw independently, with noise that is added once: several draws in a round."""
    workers = node.whole("num_workers", DRAWS_PER_ITERATION)
    (body,) = _poisson(node.at("inner"))
    return [body | {"sampler": body["sampler"] | ({"draws_per_iteration": workers} if workers > 1 else {})}]


def _k_out_of_t(node: OpakeProcess) -> list[BodyMapping]:
    taken, rounds = node.whole("k", ITERATIONS), node.whole("n_steps", ITERATIONS)
    noise = _noise(node.at("inner"))

    def allocated(count: int, length: int, k: int) -> BodyMapping:
        sampler = {"kind": "random-allocation", "iterations_per_allocation": length}
        return {
            "training": {"iterations": count * length},
            "sampler": sampler | ({"participations": k} if k > 1 else {}),
            "noise": noise,
        }

    if node.get("allocation") == "total":
        return [allocated(1, rounds, taken)]
    length, longer = divmod(rounds, taken)
    blocks = ((taken - longer, length), (longer, length + 1))
    return [allocated(count, size, 1) for count, size in blocks if count]


def _mf_gaussian(node: OpakeProcess) -> list[BodyMapping]:
    """Return the body of a run without sampling, in which the rounds of a record may be known."""
    if node.get("n_steps") is None:
        message = "without n_steps this is only a recipe for a sampled run, not a release: give the process of the sampled run"
        no_equivalent((*node.path, "n_steps"), message, value="None", allowed="a number of rounds")
    iterations, apart = node.whole("n_steps", ITERATIONS), node.whole("min_sep", ITERATIONS)
    most = node.get("max_participations")
    sampler: BodyMapping = {"kind": "none"}
    if apart > 1:
        sampler["min_separation"] = min(apart, iterations)
    if most is not None:
        sampler["max_participations"] = min(node.whole("max_participations", ITERATIONS), -(-iterations // apart))
    return [_with_matrix(node, sampler=sampler, training={"iterations": iterations}, pattern=(apart, most))]


def _cyclic_poisson(node: OpakeProcess) -> list[BodyMapping]:
    iterations, rate = node.whole("n_steps", ITERATIONS), node.real("sample_rate", _RATE)
    inner, strategy = node.at("inner"), node.at("inner", "strategy")
    training: BodyMapping = {"iterations": iterations, "sampling_probability": rate}
    if strategy.kind == "IdentityStrategy":
        return [_truncated(node, training, _noise(inner))]
    sampler = {"kind": "cyclic-poisson", "partitions": _bands(strategy)}
    return [_with_matrix(inner, sampler=sampler, training=training, pattern=(iterations, 1))]


def _b_min_sep(node: OpakeProcess) -> list[BodyMapping]:
    iterations = node.whole("n_steps", ITERATIONS)
    sampler = {"kind": "b-min-sep", "min_separation": _bands(node.at("inner", "strategy"))}
    training = {"iterations": iterations, "participation_rate": node.real("p0", _RATE)}
    return [_with_matrix(node.at("inner"), sampler=sampler, training=training, pattern=(iterations, 1))]


def _balls_in_bins(node: OpakeProcess) -> list[BodyMapping]:
    iterations, count = node.whole("n_steps", ITERATIONS), node.whole("num_bins", BINS)
    sampler, pattern = {"kind": "balls-in-bins", "bins": count}, (count, -(-iterations // count))
    return [_with_matrix(node.at("inner"), sampler=sampler, training={"iterations": iterations}, pattern=pattern)]


def _with_matrix(
    inner: OpakeProcess, *, sampler: BodyMapping, training: BodyMapping, pattern: tuple[int, Any]
) -> BodyMapping:
    """Return the body of a run with an MfGaussian's strategy.

    `pattern` is (minimum separation, largest number of participations); opake computes the coefficients for it and for the number
    of iterations in `training`.
    """
    strategy, iterations = inner.at("strategy"), training["iterations"]
    kind, noise = strategy.kind, _noise(inner)
    if kind == "IdentityStrategy":
        return {"training": training, "sampler": sampler, "noise": noise}
    compute = getattr(strategy.source, "coefficients", None)
    if kind not in ("BandMfStrategy", "BsrStrategy") or not callable(compute):
        message = (
            "a state does not contain the coefficients, which opake optimises: give the process itself, not its state"
            if kind in ("BandMfStrategy", "BsrStrategy")
            else "this strategy is not read: describe its coefficients by a matrix of kind toeplitz, or its buffers by kind blt"
        )
        no_equivalent(strategy.path, message, value=kind, allowed="IdentityStrategy, BandMfStrategy or BsrStrategy")
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


_READERS: dict[str, Callable[[OpakeProcess], list[BodyMapping]]] = {
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


def _noise(node: OpakeProcess) -> BodyMapping:
    """Return the section `noise` of an inner mechanism.

    Adaptive clipping also releases counts of clipped gradients. A record changes each count by ½, so in units of that
    sensitivity the multiplier of a count is twice the standard deviation of its noise.
    """
    kind = node.kind
    if kind == "AdaClip":
        noise = _noise(node.at("inner"))
        deviation, batch = node.real("fraction_noise_std", _SPREAD), node.real("expected_batch_size", _SPREAD)
        groups = node.whole("num_groups", RELEASES)
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
        no_equivalent(node.path, reason, value=kind, allowed="Gaussian")
    return {"multiplier": node.real("noise_multiplier", NOISE_MULTIPLIER)}


def _bands(strategy: OpakeProcess) -> int:
    if strategy.kind != "BandMfStrategy":
        message = "only a banded strategy keeps participations apart"
        no_equivalent(strategy.path, message, value=strategy.kind, allowed="BandMfStrategy")
    return strategy.whole("bands", ITERATIONS)
