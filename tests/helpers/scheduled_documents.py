"""Documents with schedules, and the same documents with a phase for each kind of rounds."""

from typing import Any

from plain_documents import sectioned

DELTA = 1e-5
#: A sampler and its rate, by the name of a test.
SAMPLED: dict[str, dict[str, Any]] = {
    "poisson": {"sampler": {"kind": "poisson"}, "training": {"sampling_probability": 0.05}},
    "several draws": sectioned(sampler="poisson", draws_per_iteration=3, sampling_probability=0.02),
    "fixed-size": sectioned(sampler="fixed-size", dataset_size=200, expected_batch_size=10),
    "with-replacement": sectioned(sampler="with-replacement", dataset_size=200, expected_batch_size=10),
    "none": {"sampler": {"kind": "none"}, "training": {}},
}


def head(**privacy: Any) -> dict[str, Any]:
    """Return the head of a document that asks for ε."""
    target = {"adjacency": "zero-out", "epsilon": "solve", "delta": DELTA} | privacy
    return {"pyaccount": 1, "name": "schedule", "privacy": target}


def body(sampler: dict[str, Any], rounds: int, noise: Any, **training: Any) -> dict[str, Any]:
    """Return the sections of a body: a sampler with its rate, a number of rounds and a noise multiplier."""
    return sectioned(
        training={**sampler["training"], "iterations": rounds, **training}, sampler=sampler["sampler"], multiplier=noise
    )


def document(name: str, noises: Any, rounds: int, *, scale: Any = None, **training: Any) -> dict[str, Any]:
    """Return a document whose rounds have these noise multipliers."""
    multiplier = {"schedule": noises} | ({} if scale is None else {"scale": scale})
    return {**head(), **body(SAMPLED[name], rounds, multiplier, **training)}


def in_phases(name: str, rounds: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Return a document with a phase of one round for each noise multiplier and what else its training states."""
    return {**head(), "phases": [body(SAMPLED[name], 1, noise, **training) for noise, training in rounds]}
