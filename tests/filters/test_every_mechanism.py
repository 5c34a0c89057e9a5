"""Whatever composes has a price: ε from its divergences is never below what data sets attain, by composition."""

import math
from typing import Any

import pytest
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.engine import Engine, Question
from pyaccount.filters.cut import cut_costs
from pyaccount.filters.renyi import divergences_of
from pyaccount.plan.compiling import compile_document

DELTA, ORDERS = 1e-5, (1.5, 2.0, 3.0, 8.0, 16.0)
POISSON = {"kind": "poisson", "sampling_probability": 0.1}


def training(kind: str, noise: float, rates: dict[str, Any], **sampler: Any) -> dict[str, Any]:
    return sectioned(iterations=12, training=rates, sampler={"kind": kind, **sampler}, multiplier=noise)


FIXED = {"dataset_size": 100, "expected_batch_size": 5}
BODIES: dict[str, dict[str, Any]] = {
    "poisson": training("poisson", 2.0, {"sampling_probability": 0.05}),
    "several draws": training("poisson", 4.0, {"sampling_probability": 0.05}, draws_per_iteration=3),
    "fixed size": training("fixed-size", 4.0, FIXED),
    "with replacement": training("with-replacement", 10.0, FIXED),
    "two stages": training("must-ow", 10.0, FIXED, subset_size=20),
    "truncated": training("poisson", 4.0, {"dataset_size": 1000, "sampling_probability": 0.05}, truncate_to=60),
    "cyclic": training("cyclic-poisson", 2.0, {"sampling_probability": 0.05}, partitions=4),
    "allocation": training("random-allocation", 2.0, {}, iterations_per_allocation=12, participations=1),
    "all records": training("none", 10.0, {}),
    "sampled Laplace noise": {"sampler": POISSON, "mechanism": {"kind": "laplace", "sensitivity": 1, "scale": 1}},
    "permute and flip": {"mechanism": {"kind": "permute-and-flip", "epsilon": 1.0}},
    "discrete Gaussian noise": {"mechanism": {"kind": "discrete-gaussian", "sensitivity": 1, "sigma": 2}},
    "Skellam noise": {"mechanism": {"kind": "skellam", "sensitivity": 1, "variance": 4}},
    "noise of parties": {"mechanism": {"kind": "distributed-discrete-gaussian", "sigma": 1, "parties": 4}},
    "randomized response": {"mechanism": {"kind": "randomized-response", "values": 5, "truth_probability": 0.7}},
}


def converted(divergences: tuple[float, ...], delta: float) -> float:
    """ε at δ by the best order (Canonne, Kamath & Steinke 2020)."""
    return min(
        rho + max(0.0, (a - 1.0) * math.log(a - 1.0) - a * math.log(a) - math.log(delta)) / (a - 1.0)
        for rho, a in zip(divergences, ORDERS, strict=True)
    )


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_a_price_is_above_what_is_attained(name: str, adjacency: str, snapshot: Snapshot) -> None:
    refused = {("truncated", "replace-one"), ("allocation", "replace-one")}
    mapping = doc(BODIES[name], name=name, adjacency=adjacency, delta=DELTA)  # fmt: skip
    document = pyaccount.load(mapping)
    if (name, adjacency) in refused:
        snapshot.raised(divergences_of, document, ORDERS)
        return
    attained = Engine().ask(compile_document(document).at().bounds(), Question(None, DELTA, 1e-3)).lower
    divergences = divergences_of(document, ORDERS)
    assert attained <= converted(divergences, DELTA) < math.inf
    # Divergences do not decrease with the order.
    assert list(divergences) == sorted(divergences)
    *left, large = cut_costs(document, ORDERS, 1.0)
    assert all(one <= whole * (1.0 + 1e-2) for one, whole in zip(left, divergences, strict=True))
    if large < DELTA:
        assert attained <= converted(tuple(left), DELTA - large)
