"""The drawn rows are those of C⁻¹Z, for every kind of matrix, with the coefficients that the certificate is about."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import KEY, NONCES, ROUNDS, SECTIONS, expected, noise, rows
from scipy import linalg  # type: ignore[import-untyped]

from pyaccount import _core
from pyaccount.document.matrices import MATRICES
from pyaccount.plan.matrices import PLANS
from pyaccount.training.noise.inverses import INVERSES

#: The numbers in a row; there are more than rounds, so that the rows of Z are linearly independent.
SIZE = 4 * ROUNDS


def response(name: str, folder: Path, **changes: Any) -> Any:
    """Return the matrix M with C⁻¹Z = M·Z, solved from both."""
    z = rows(noise("identity", folder), SIZE)
    found, *_ = np.linalg.lstsq(z.T, rows(noise(name, folder, **changes), SIZE).T, rcond=None)
    return found.T


@pytest.mark.parametrize("name", SECTIONS)
def test_the_response_is_the_inverse(name: str, tmp_path: Path) -> None:
    inverse = linalg.solve_triangular(expected(name), np.eye(ROUNDS), lower=True)
    found = response(name, tmp_path)
    assert np.abs(found - inverse).max() <= 1e-12
    assert np.abs(expected(name) @ found - np.eye(ROUNDS)).max() <= 1e-12
    drawn = noise(name, tmp_path)
    assert drawn.growth == pytest.approx(np.linalg.norm(inverse, axis=1).max(), rel=1e-12)
    assert drawn.inverse.smallest_new == pytest.approx(inverse.diagonal().min(), rel=1e-12)


def test_another_matrix_is_seen(tmp_path: Path) -> None:
    """A coefficient that is wrong by 1e-11 is detected."""
    inverse = linalg.solve_triangular(expected("toeplitz"), np.eye(ROUNDS), lower=True)
    changed = {"coefficients": [2.0, 1.0, 0.5 + 1e-11, 0.0, 0.25]}
    assert np.abs(response("toeplitz", tmp_path, matrix=changed) - inverse).max() > 1e-12


@pytest.mark.parametrize("name", SECTIONS)
def test_what_is_given_out_in_float32_is_the_inverse_of_z(name: str, tmp_path: Path) -> None:
    """C times the given rows is Z except for the roundings of single rows; C⁻¹ does not propagate them."""
    c, z = expected(name), rows(noise("identity", tmp_path), 500)
    found = rows(noise(name, tmp_path), 500, dtype=np.float32)
    assert found.dtype == np.float32
    assert (np.abs(c @ found - z) <= 2.0**-24 * (c @ np.abs(found)) + 1e-12).all()


def test_long_runs_do_not_drift(tmp_path: Path) -> None:
    """After 2000 rounds in float32, with an inverse that does not decay (1/(1 + x)), C times the rows is still Z."""
    long = {"training__iterations": 2000}
    drawn = noise("toeplitz", tmp_path, matrix={"coefficients": [1.0, 1.0]}, **long)
    assert drawn.growth == pytest.approx(np.sqrt(2000), rel=1e-12)
    z = rows(noise("identity", tmp_path, **long), 64)
    found = rows(drawn, 64, dtype=np.float32).astype(np.float64)
    found[1:] += found[:-1].copy()
    # The tolerance is two roundings of numbers of at most five standard deviations of the last row.
    assert np.abs(found - z).max() <= 2 * 2.0**-24 * 5 * np.sqrt(2000)


def test_every_kind_of_matrix_is_drawn() -> None:
    assert set(INVERSES) == set(PLANS) == {matrix.model_fields["kind"].annotation.__args__[0] for matrix in MATRICES}
    assert {section["kind"] for section in SECTIONS.values()} == set(INVERSES)


def test_numbers_are_those_of_their_place(tmp_path: Path) -> None:
    """Row t of a parameter is the generator's row t under the key of (phase, name, t, nonce), multiplied by σ·clip norm."""
    drawn = noise("identity", tmp_path, phase=3, clip_norm=0.5, noise={"multiplier": 1.5})
    stream = drawn.stream({"layer": (7, 5)}, dtype=np.float64)
    stream.seek(4, NONCES)
    found = stream.next(NONCES[4])["layer"]
    key = KEY.derive("noise", 3, "layer", 4, NONCES[4].hex()).reveal()
    for name in _core.Inspection.INSTRUCTION_SETS:
        numbers = _core.Inspection.normals(key, 4, 0, 3, name)
        assert numbers is not None
        assert np.array_equal(found.ravel(), drawn.standard_deviation * np.array(numbers[:35]))
    assert _core.Inspection.normals(key, 4, 0, 3, "abacus") is None
