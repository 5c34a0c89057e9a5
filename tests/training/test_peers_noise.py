"""Compares the rows of C⁻¹Z with those of jax_privacy's streaming matrices, if it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import ROUNDS, expected, noise, rows

jax = pytest.importorskip("jax", reason="jax is not installed: noise is NOT compared with jax_privacy's")
factorization = pytest.importorskip(
    "jax_privacy.matrix_factorization", reason="jax_privacy is not installed: noise is NOT compared with its own"
)


def streamed(name: str, z: Any) -> Any:
    """Return C⁻¹z as computed by jax_privacy, row by row in double precision."""
    from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz

    column = expected(name)[:, 0]
    if name.startswith("blt"):
        # Their BLT has c_0 = 1, and ours may be scaled.
        blt = buffered_toeplitz.BufferedToeplitz.build(
            buf_decay={"blt": [0.9, 0.5, 1.0], "blt-plain": [0.7]}[name],
            output_scale={"blt": [0.3, 0.2, 0.05], "blt-plain": [0.3]}[name],
        )
        streaming, scale = blt.inverse_as_streaming_matrix(), column[0]
    else:
        bands = np.flatnonzero(column)[-1] + 1
        streaming, scale = toeplitz.inverse_as_streaming_matrix(jax.numpy.asarray(column[:bands])), 1.0
    state = streaming.init_multiply(jax.ShapeDtypeStruct(z.shape[1:], z.dtype))
    found = []
    for row in z:
        drawn, state = streaming.multiply_next(jax.numpy.asarray(row), state)
        found.append(np.asarray(drawn) / scale)
    return np.array(found)


@pytest.mark.parametrize(
    "name", ["banded-square-root", "optimal-toeplitz", "toeplitz", "toeplitz-normalized", "blt", "blt-plain"]
)
def test_rows_are_those_of_the_streaming_inverse(name: str, tmp_path: Path) -> None:
    z = rows(noise("identity", tmp_path), 50)
    with jax.enable_x64(True):
        theirs = streamed(name, z)
    assert theirs.dtype == np.float64
    assert theirs.shape == (ROUNDS, 50)
    assert np.abs(rows(noise(name, tmp_path), 50) - theirs).max() <= 1e-12
    # Shifting by one row gives another matrix, which is detected.
    assert np.abs(rows(noise(name, tmp_path), 50)[1:] - theirs[:-1]).max() > 0.1
