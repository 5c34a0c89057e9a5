"""The matrices in the plan room: how each is built, described in words, and cut for a shorter run.

Each kind is a class, and `PLANS` has it for each kind that documents may name. `built` defines the built matrix,
`sensitivity` the largest norm of participation patterns.
"""

# mypy: implicit-reexport

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from pyaccount import _core
from pyaccount.errors import DocumentError
from pyaccount.plan.common import given
from pyaccount.plan.compiled import Proposed
from pyaccount.plan.matrices import full_column, not_toeplitz, toeplitz
from pyaccount.plan.matrices.base import MatrixPlan, workload_of
from pyaccount.plan.matrices.built import Strategy
from pyaccount.plan.protection import RunCase
from pyaccount.profiles.base import Recipe
from pyaccount.strategies.measure import WorkloadError

PLANS: dict[str, type[MatrixPlan[Any]]] = {
    "identity": toeplitz.IdentityPlan,
    "banded-square-root": toeplitz.BandedSquareRootPlan,
    "optimal-toeplitz": toeplitz.OptimalToeplitzPlan,
    "toeplitz": toeplitz.ToeplitzPlan,
    "banded-inverse": full_column.BandedInversePlan,
    "blt": full_column.BLTPlan,
    "tree": not_toeplitz.TreePlan,
    "dense": not_toeplitz.DensePlan,
}


def matrix_plan(case: RunCase) -> MatrixPlan[Any]:
    """Return what follows from the matrix of a training run."""
    return PLANS[str(case.node.matrix.kind)](case.asked, case.node)


def strategy(case: RunCase) -> Strategy:
    """Build the matrix of a run. Raises `DocumentError` for a file without a matrix and an inverse that gives none."""
    with _located(case):
        return matrix_plan(case).build()


def workload_error(case: RunCase) -> WorkloadError:
    """Return the error of a run's matrix under its workload, at σ = 1.

    Raises as `strategy` does, and for an error that exceeds the range of doubles.
    """
    built = strategy(case)
    with _located(case):
        return built.error_under(workload_of(case.node))


def disjoint_modes(case: RunCase, bins: int) -> bool:
    """Whether no two bins of a run move the same coordinate; see `MatrixPlan`. Raises as `strategy` does."""
    with _located(case):
        return matrix_plan(case).disjoint_modes(bins)


def proposed(case: RunCase, sigma: float) -> Proposed:
    """Return the errors of the matrix of a document's only phase at an estimated σ; they are estimates too.

    Raises as `workload_error` does.
    """
    mse = sigma * sigma * strategy(case).error.mean_square
    return Proposed(sigma, mse, sigma * sigma * workload_of(case.node).chosen(workload_error(case)))


@contextmanager
def _located(case: RunCase) -> Iterator[None]:
    try:
        yield
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError([case.asked.refusal(case.node.at("matrix"), str(error))]) from error


def columns(case: RunCase, min_separation: int) -> Recipe[_core.Columns]:
    """Return the recipe of the core's columns of the matrix, with the products of columns that overlap."""
    return _meeting(strategy(case), min_separation)


@lru_cache(maxsize=4)
def _meeting(built: Strategy, min_separation: int) -> Recipe[_core.Columns]:
    if built.buffers is not None and built.coefficients is not None:
        scales, decays = (tuple(values) for values in built.buffers)
        return Recipe("Columns.buffers", (built.coefficients[0], scales, decays, built.iterations, min_separation))
    if built.coefficients is not None:
        rest = built.iterations - len(built.coefficients)
        return Recipe("Columns.toeplitz", ((*built.coefficients, *([0.0] * rest)), min_separation))
    entries = tuple(entry for i in range(built.iterations) for entry in given(built.dense)[i:, i].tolist())
    return Recipe("Columns.dense", (entries, built.iterations, min_separation))
