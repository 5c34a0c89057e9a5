"""Documents with a tree: the guarantee by enumeration of all patterns, what is refused, and the first rounds."""

import itertools
import math
from typing import Any

import numpy as np
import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import changed, doc
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant
from pyaccount.errors import CertificateError

DELTA, SIGMA = 1e-6, 3.0
BASE: dict[str, Any] = doc(
    "name='a tree' adjacency=add-remove iterations=13 sampler=none max_participations=3 min_separation=4",
    "matrix=tree normalize=False profile=[]",
    delta=DELTA,
    multiplier=SIGMA,
)


def document(**sections: dict[str, Any]) -> dict[str, Any]:
    return changed(BASE, None, sections)


def nodes(rounds: int, restart: int) -> list[range]:
    return [
        range(start + first, start + first + size)
        for start in range(0, rounds, restart)
        for size in (1 << h for h in range(restart.bit_length()))
        for first in range(0, restart - size + 1, size)
        if start + first + size <= rounds
    ]


def moved(rounds: int, restart: int, apart: int, most: int) -> float:
    """The root of the largest sum of squared counts of the nodes, over all patterns."""
    return math.sqrt(
        max(
            sum(sum(t in node for t in pattern) ** 2 for node in nodes(rounds, restart))
            for size in range(1, most + 1)
            for pattern in itertools.combinations(range(rounds), size)
            if all(later - earlier >= apart for earlier, later in itertools.pairwise(pattern))
        )
    )


@pytest.mark.parametrize(
    ("privacy", "factor"), [({}, 1), ({"adjacency": "replace-one"}, 2), ({"adjacency": "zero-out", "group_size": 3}, 3)]
)
@pytest.mark.parametrize("restart", [13, 5])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_guarantee_is_that_of_all_noisy_nodes(
    privacy: dict[str, Any], factor: int, restart: int, normalize: bool
) -> None:
    matrix = {"restart_every": restart, "normalize": normalize}
    data = pyaccount.certify(document(privacy=privacy, matrix=matrix)).data
    norm = moved(13, restart, 4, 3) / (math.sqrt(restart.bit_length()) if normalize else 1.0)
    exact = float(oracle.gaussian_epsilon(factor * norm / SIGMA, DELTA))
    assert data.guarantee.epsilon_lower <= exact <= data.guarantee.epsilon
    assert data.guarantee.epsilon == pytest.approx(exact, rel=2e-4)
    assert data.reductions[0].tight
    assert any("noisy sums may be released" in text for text in data.assumptions)
    assert not any("C⁻¹Z" in text for text in data.assumptions)
    assert not inconsistencies(data)


def test_privacy_does_not_depend_on_the_estimation_but_the_error_does() -> None:
    honest, efficient = (
        pyaccount.certify(document(matrix={"estimation": word, "restart_every": 5})).data
        for word in ("honest", "efficient")
    )
    assert honest.guarantee == efficient.guarantee
    assert honest.utility is not None
    assert efficient.utility is not None
    # 13 rounds in trees of 5: 5 = 101 in binary, so each whole tree leaves two blocks.
    blocks = [1, 1, 2, 1, 2, 3, 3, 4, 3, 4, 5, 5, 6]
    assert honest.utility.prefix_sum_mse == pytest.approx(SIGMA**2 * sum(blocks) / 13, rel=1e-12)
    # With all nodes, blocks of 1, 2 and 4 rounds have variances of 1, 2/3 and 4/7.
    less = [1, 2 / 3, 5 / 3, 4 / 7, 11 / 7]
    sums = [t // 5 * 11 / 7 + less[t % 5] for t in range(13)]
    assert efficient.utility.prefix_sum_mse == pytest.approx(SIGMA**2 * sum(sums) / 13, rel=1e-12)


def test_a_matrix_of_every_tree_is_stated(snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document(matrix={"estimation": "efficient", "restart_every": 5, "normalize": True}))
    record = certificate.data.phases[0].matrix
    assert (record.kind, record.bands, record.estimation, record.restart_every) == ("tree", None, "efficient", 5)
    matrix = certificate.matrix
    assert matrix is not None
    encoder = matrix.encoder()
    expected = np.array([[float(t in node) for t in range(13)] for node in nodes(13, 5)])
    assert sorted(map(tuple, encoder)) == sorted(map(tuple, (expected * matrix.normalization)))
    assert np.linalg.norm(encoder, axis=0).max() == pytest.approx(matrix.column_norm, rel=1e-15)
    # What is trained with shorter: the leading block of both.
    assert np.array_equal(matrix.dense(7), matrix.dense()[:7, :7])
    assert np.array_equal(matrix.encoder(7), encoder[: len(nodes(7, 5)), :7])
    with snapshot.raises(CertificateError):
        matrix.coefficients  # noqa: B018 - the property raises
    text = certificate.to_markdown()
    assert "efficient estimation" in text


@pytest.mark.parametrize(
    ("sampler", "training"),
    [
        ({"kind": "poisson"}, {"sampling_probability": 0.1}),
        ({"kind": "b-min-sep", "min_separation": 3}, {"sampling_probability": 0.1}),
        ({"kind": "balls-in-bins", "bins": 4}, {}),
        ({"kind": "cyclic-poisson", "partitions": 4}, {"sampling_probability": 0.1}),
    ],
)
def test_sampling_is_refused_with_the_reason(
    sampler: dict[str, Any], training: dict[str, Any], snapshot: Snapshot
) -> None:
    raw = document(training=training) | {"sampler": sampler}
    snapshot.raised(pyaccount.compile, raw)


@pytest.mark.parametrize(
    ("matrix", "iterations"),
    [
        ({"restart_every": 14}, 13),
        ({"restart_every": 0}, 13),
        ({"restart_every": "epoch"}, 13),
        ({"estimation": "best"}, 13),
        ({}, 1_000_001),
        ({"bands": 3}, 13),
    ],
)
def test_what_no_tree_can_be(matrix: dict[str, Any], iterations: int, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.load(document(matrix=matrix, training={"iterations": iterations})))


def test_other_blanks_and_workloads(snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.compile, document(training={"iterations": "solve"}, privacy={"epsilon": 4.0}))
    long = {"training": {"iterations": 5000}, "workload": {"momentum": 0.9}}
    snapshot.raised(pyaccount.compile, changed(BASE, None, long))
    data = pyaccount.certify(changed(BASE, None, {"workload": {"momentum": 0.9}})).data
    assert data.utility is not None
    assert data.utility.workload is not None
    # The honest estimates by their nodes, and momentum as the recursion of their increments.
    used = np.zeros((13, len(nodes(13, 13))))
    for t in range(13):
        left = t + 1
        while left:
            best = max((n for n in nodes(13, 13) if n.stop == left), key=len)
            used[t, nodes(13, 13).index(best)], left = 1.0, best.start
    increments = np.diff(used, axis=0, prepend=0.0)
    steps = np.zeros_like(increments)
    for t in range(13):
        steps[t] = increments[t] + (0.9 * steps[t - 1] if t else 0.0)
    variances = np.square(np.cumsum(steps, axis=0)).sum(axis=1)
    assert data.utility.workload.mse == pytest.approx(SIGMA**2 * variances.mean(), rel=1e-11)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("steps", "restart"), [(1, 13), (4, 13), (7, 5), (11, 5), (13, 5)])
def test_the_first_rounds_have_the_nodes_that_are_complete(steps: int, restart: int, normalize: bool) -> None:
    matrix = {"restart_every": restart, "normalize": normalize, "estimation": "efficient"}
    accountant = Accountant(document(matrix=matrix, privacy={"epsilon": 20.0}))
    accountant.step(steps)
    norm = moved(steps, min(restart, steps), 4, 3) / (math.sqrt(restart.bit_length()) if normalize else 1.0)
    exact = float(oracle.gaussian_epsilon(norm / SIGMA, DELTA))
    guarantee = accountant.certificate().data.guarantee
    assert guarantee.epsilon_lower <= exact * (1 + 1e-9)
    assert exact <= guarantee.epsilon <= exact * (1 + 3e-4)


def test_long_runs_are_exact_or_enclosed() -> None:
    """A record once in each of ten epochs: with restarts the epochs compose, and without them the root of 151 to 153."""
    sampler = {"max_participations": 10, "min_separation": 200}
    data = pyaccount.certify(
        document(training={"iterations": 2000}, sampler=sampler, matrix={"restart_every": 200})
    ).data
    exact = float(oracle.gaussian_epsilon(math.sqrt(10 * 8) / SIGMA, DELTA))
    assert data.guarantee.epsilon_lower <= exact <= data.guarantee.epsilon
    assert data.reductions[0].tight
    very = document(training={"iterations": 10**6}, sampler={"max_participations": 9, "min_separation": 100_001})
    data = pyaccount.certify(very).data
    assert not data.reductions[0].tight
    assert "lower end" in (data.reductions[0].remark or "")
    assert 0.0 < data.guarantee.epsilon_lower < data.guarantee.epsilon < 1.05 * data.guarantee.epsilon_lower
