"""The noise is normal far into the tails, and correlated by C⁻¹. Keys are fixed, and each test also detects a planted error."""

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import ROUNDS, expected, noise, nonces, rows
from scipy import linalg, special  # type: ignore[import-untyped]

#: The number of samples for counts of the tails; PYACCOUNT_NOISE=1e9 takes a minute of processor time.
NUMBERS = int(float(os.environ.get("PYACCOUNT_NOISE", "1.6e7")))
CHUNK = 2_000_000

#: The deviation in standard errors that fixed keys may show by chance.
STANDARD_ERRORS = 5.0


def distance(numbers: Any) -> float:
    """Return √n times the largest distance of the empirical distribution from the normal one (Kolmogorov and Smirnov)."""
    law = special.ndtr(np.sort(numbers))
    steps = np.arange(len(law) + 1) / len(law)
    return float(np.sqrt(len(law)) * max((steps[1:] - law).max(), (law - steps[:-1]).max()))


def deviations(counts: Any, probabilities: Any, total: int) -> Any:
    """Return by how many standard errors binomial counts differ from their expectation."""
    mean = total * probabilities
    return np.abs(counts - mean) / np.sqrt(mean * (1.0 - probabilities))


def test_numbers_are_normal(tmp_path: Path) -> None:
    """The distance exceeds 2.5 with probability 8e-6; for half the noise it is about a hundred."""
    size = 1_000_000
    numbers = rows(noise("identity", tmp_path), size, rounds=1)[0]
    assert distance(numbers) < 2.5
    single = rows(noise("identity", tmp_path), size, rounds=1, dtype=np.float32)[0]
    assert np.array_equal(single, numbers.astype(np.float32))
    halved = rows(noise("identity", tmp_path, noise={"multiplier": 0.5}), size, rounds=1)[0]
    assert distance(halved) > 100.0
    variance = np.mean(np.square(numbers)) - 1.0
    assert abs(variance) < STANDARD_ERRORS * np.sqrt(2.0 / size)


def test_tails_are_normal(tmp_path: Path) -> None:
    """The counts beyond 1σ … 5σ on either side, and in each cell of an even grid between, are as expected."""
    edges = np.linspace(-5.0, 5.0, 21)
    counts, seen, largest = np.zeros(len(edges) + 1), 0, 0.0
    for run in range(-(-NUMBERS // (CHUNK * ROUNDS))):
        stream = noise("identity", tmp_path).stream({"w": (CHUNK,)}, dtype=np.float64)
        for nonce in nonces(f"tails {run}", ROUNDS):
            if seen >= NUMBERS:
                break
            numbers = stream.next(nonce)["w"]
            counts += np.histogram(numbers, bins=[-np.inf, *edges, np.inf])[0]
            largest = max(largest, float(np.abs(numbers).max()))
            seen += CHUNK
    below = special.ndtr(edges)
    probabilities = np.array([below[0], *(b - a for a, b in pairwise(below)), special.ndtr(-edges[-1])])
    found = deviations(counts, probabilities, seen)
    print(
        f"{seen:.4g} numbers, largest {largest:.3f}, beyond 5: {counts[[0, -1]]} where {seen * below[0]:.1f} are expected"
    )
    print(f"largest deviation {found.max():.2f} standard errors")
    assert found.max() < STANDARD_ERRORS
    # Noise that is too small by 0.5 % would be detected.
    scaled = special.ndtr(edges / 0.995)
    planted = np.array([scaled[0], *(b - a for a, b in pairwise(scaled)), special.ndtr(-edges[-1] / 0.995)])
    assert deviations(seen * planted, probabilities, seen).max() > STANDARD_ERRORS


def correlations(vectors: list[Any]) -> Any:
    """Return √n times the correlations of all pairs of vectors."""
    found = np.corrcoef(np.array(vectors))
    return np.sqrt(len(vectors[0])) * found[np.triu_indices(len(vectors), 1)]


def several(folder: Path, size: int) -> list[Any]:
    """Return rows of different rounds, parameters and phases, and of one round with different nonces."""
    read = noise("identity", folder)
    vectors = list(rows(read, size, rounds=4))
    vectors += [rows(read, size, rounds=1, name=name)[0] for name in ("v", "W", "ww")]
    vectors += [rows(noise("identity", folder, phase=phase), size, rounds=1)[0] for phase in (1, 2)]
    vectors += [rows(read, size, rounds=1, by=nonces(other))[0] for other in ("other", "another")]
    return vectors


def test_rounds_parameters_phases_and_nonces_share_nothing(tmp_path: Path) -> None:
    vectors = several(tmp_path, 100_000)
    assert np.abs(correlations(vectors)).max() < STANDARD_ERRORS
    assert np.abs(correlations([np.square(vector) for vector in vectors])).max() < STANDARD_ERRORS
    # Two ranks that draw from one stream, fully or in part, are detected.
    assert np.abs(correlations([*vectors, vectors[0]])).max() > 100.0
    mixed = 0.05 * vectors[0] + np.sqrt(1.0 - 0.05**2) * vectors[1]
    assert np.abs(correlations([vectors[0], mixed])).max() > 2 * STANDARD_ERRORS


def test_places_of_a_row_share_nothing(tmp_path: Path) -> None:
    """Numbers from the same words, which are 8 places apart, are not correlated, and neither are their squares."""
    row = rows(noise("identity", tmp_path), 200_000, rounds=1)[0]
    for values in (row, np.square(row) - 1.0, np.abs(row) - np.sqrt(2.0 / np.pi)):
        scale = np.sqrt(len(values)) * np.mean(np.square(values))
        found = [np.sum(values[lag:] * values[:-lag]) / scale for lag in range(1, 65)]
        assert np.abs(found).max() < STANDARD_ERRORS
    # A pair that shares its radius but not its angle has correlated squares.
    planted = np.square(row[8:]) + np.square(row[:-8]) - 2.0
    assert abs(np.sum(planted[8:] * planted[:-8]) / (np.sqrt(len(planted)) * np.mean(np.square(planted)))) > 50.0


@pytest.mark.parametrize("name", ["banded-square-root", "banded-inverse", "blt", "dense"])
def test_the_covariance_of_rounds_is_that_of_the_inverse(name: str, tmp_path: Path) -> None:
    size, clip, sigma = 20_000, 0.25, 1.5
    inverse = linalg.solve_triangular(expected(name), np.eye(ROUNDS), lower=True)
    covariance = (sigma * clip) ** 2 * inverse @ inverse.T
    variances = np.outer(covariance.diagonal(), covariance.diagonal()) + np.square(covariance)

    def seen(multiplier: float) -> float:
        drawn = rows(noise(name, tmp_path, clip_norm=clip, noise={"multiplier": multiplier}), size, dtype=np.float32)
        found = drawn.astype(np.float64) @ drawn.T.astype(np.float64) / size
        return float((np.abs(found - covariance) / np.sqrt(variances / size)).max())

    assert seen(sigma) < STANDARD_ERRORS
    assert seen(sigma / 2) > 50.0
