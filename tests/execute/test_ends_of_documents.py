"""Documents at the limits of what may be written: closed forms at any size, and refusals that name the place."""

import math
from pathlib import Path

import numpy as np
import pytest
from plain_documents import document
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.curve import MOST, CurvePoint, points_between


def test_the_gaussian_mechanism_of_a_long_run_with_hardly_any_noise_is_certified() -> None:
    mechanism = document(
        privacy={"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        training={"iterations": 10**9},
        sampler={"kind": "none"},
        noise={"multiplier": 1e-6},
    )
    guarantee = pyaccount.certify(mechanism).data.guarantee
    # ε = μ²/2 + μ·Φ⁻¹(1 − δ) up to a smaller term, with μ² = n/σ².
    mu = math.sqrt(1e9) / 1e-6
    exact = 0.5 * mu * mu + mu * 4.264890793922825
    assert guarantee.epsilon_lower <= exact * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= guarantee.epsilon <= exact * (1 + 1e-5)


def test_points_of_a_picture_are_few_wherever_a_profile_falls() -> None:
    points = [CurvePoint(0.0, 1.0), CurvePoint(4.4e20, 1.0), CurvePoint(5e20, 0.5), CurvePoint(5.000000001e20, 1e-5)]
    assert len(points_between([*points, CurvePoint(5.6e20, 1e-300)], 1e-300)) <= 4 * MOST


@pytest.mark.parametrize(("noise_multiplier", "least"), [(0.6, 16.733), (0.605, 16.534)])
def test_users_that_share_records_are_certified_in_numbers(noise_multiplier: float, least: float) -> None:
    mechanism = document(
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        training={"sampling_probability": 0.51, "iterations": 2},
        sampler={
            "kind": "user-b-min-sep",
            "records_per_user": 2,
            "attribution": "shared",
            "min_separation": 2,
            "start": "cold",
        },
        noise={"multiplier": noise_multiplier},
    )
    data = pyaccount.certify(mechanism).data
    # ε is never larger than with two records in a round for certain.
    assert data.unamplified.epsilon is not None
    assert least <= data.guarantee.epsilon_lower <= data.guarantee.epsilon <= data.unamplified.epsilon
    assert all(math.isfinite(one.upper) for one in data.evidence.compositions)


@pytest.mark.parametrize("entries", [[1e-310], [5e-324, 5e-324]])
def test_a_matrix_too_small_to_be_scaled_is_refused_at_its_place(entries: list[float], snapshot: Snapshot) -> None:
    mechanism = document(
        training={"iterations": 20},
        sampler={"kind": "none"},
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        matrix={"kind": "toeplitz", "coefficients": entries},
    )
    snapshot.raised(pyaccount.certify, mechanism)
    # This is the same matrix at a size that can be scaled.
    certified = pyaccount.certify(
        {**mechanism, "matrix": {"kind": "toeplitz", "coefficients": [e * 1e300 for e in entries]}}
    )
    assert certified.data.guarantee.epsilon > 0.0


@pytest.mark.usefixtures("in_tmp_path")
def test_a_dense_matrix_too_small_to_be_scaled_is_refused_at_its_place(tmp_path: Path, snapshot: Snapshot) -> None:
    np.save(tmp_path / "small.npy", np.tril(np.full((4, 4), 1e-310)))
    mechanism = document(
        training={"iterations": 4},
        sampler={"kind": "none"},
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5},
        matrix={"kind": "dense", "file": str(tmp_path / "small.npy")},
    )
    snapshot.raised(pyaccount.certify, mechanism)
