"""Strategy matrices: which C correlates the noise, and the error that training has with it.

This room takes plain numbers, arrays and the path of a file. It gives lower-triangular matrices with non-negative
entries (Toeplitz ones as their coefficients, dense ones as arrays), their column norms, and their errors under a
workload for noise of unit scale. It must not know documents, mechanisms, samplers or privacy: any matrix from here is a
valid strategy, and how it was found affects only its accuracy. numpy and scipy are loaded with the first name that
needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.strategies.dense import (
        LARGEST,
        MatrixFileError,
        bands_of,
        column_norms,
        dense_error,
        load_dense,
        normalized_columns_max,
    )
    from pyaccount.strategies.inverse import banded_inverse, blt, inverse_square_root, optimal_blt
    from pyaccount.strategies.measure import PREFIX_SUMS, Workload, WorkloadError
    from pyaccount.strategies.spaced import SpacedOptimum, optimal_spaced
    from pyaccount.strategies.toeplitz import banded_square_root, normalized, optimal_toeplitz, toeplitz_error

#: The module of each name; numpy and scipy are imported with the first name that needs them.
_HOMES = {
    "LARGEST": "dense",
    "MatrixFileError": "dense",
    "PREFIX_SUMS": "measure",
    "SpacedOptimum": "spaced",
    "Workload": "measure",
    "WorkloadError": "measure",
    "banded_inverse": "inverse",
    "banded_square_root": "toeplitz",
    "bands_of": "dense",
    "blt": "inverse",
    "column_norms": "dense",
    "dense_error": "dense",
    "inverse_square_root": "inverse",
    "load_dense": "dense",
    "normalized": "toeplitz",
    "normalized_columns_max": "dense",
    "optimal_blt": "inverse",
    "optimal_spaced": "spaced",
    "optimal_toeplitz": "toeplitz",
    "toeplitz_error": "toeplitz",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "LARGEST",
    "PREFIX_SUMS",
    "MatrixFileError",
    "SpacedOptimum",
    "Workload",
    "WorkloadError",
    "banded_inverse",
    "banded_square_root",
    "bands_of",
    "blt",
    "column_norms",
    "dense_error",
    "inverse_square_root",
    "load_dense",
    "normalized",
    "normalized_columns_max",
    "optimal_blt",
    "optimal_spaced",
    "optimal_toeplitz",
    "toeplitz_error",
]
