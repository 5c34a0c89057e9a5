"""The matrices in the plan room: how each is built, described in words, and cut for a shorter run.

Each kind is a module with a class. `PLANS` has one object for each kind that documents may name; other code asks these
objects. `built` defines the built matrix, `sensitivity` the largest norm of participation patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from pyaccount.errors import DocumentError
from pyaccount.plan.compiled import Proposed
from pyaccount.plan.matrices import banded_inverse, blt, dense, identity, toeplitz, tree
from pyaccount.plan.matrices.base import MatrixPlan
from pyaccount.plan.matrices.built import Strategy
from pyaccount.plan.recipe import Recipe
from pyaccount.plan.workload import workload_of

if TYPE_CHECKING:
    from pyaccount import _core
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.strategies.measure import WorkloadError

__all__ = [
    "PLANS",
    "MatrixPlan",
    "Strategy",
    "columns",
    "disjoint_modes",
    "matrix_plan",
    "proposed",
    "strategy",
    "workload_error",
]

PLANS: dict[str, MatrixPlan] = {
    "identity": identity.PLAN,
    "banded-square-root": toeplitz.SQUARE_ROOT,
    "optimal-toeplitz": toeplitz.OPTIMAL,
    "toeplitz": toeplitz.TOEPLITZ,
    "banded-inverse": banded_inverse.PLAN,
    "blt": blt.PLAN,
    "tree": tree.PLAN,
    "dense": dense.PLAN,
}


def matrix_plan(body: Body) -> MatrixPlan:
    """Return the plan object for the matrix of a body."""
    return PLANS[str(body.matrix.kind)]


def strategy(document: Document, body: Body) -> Strategy:
    """Build the matrix of a body. Raises `DocumentError` for a file without a matrix and an inverse that gives none."""
    with _located(document, body):
        return matrix_plan(body).build(document, body)


def workload_error(document: Document, body: Body) -> WorkloadError:
    """Return the error of a body's matrix under its workload, at σ = 1.

    Raises as `strategy` does, and for an error that exceeds the range of doubles.
    """
    built = strategy(document, body)
    with _located(document, body):
        return built.error_under(workload_of(body))


def disjoint_modes(document: Document, body: Body, bins: int) -> bool:
    """Whether no two bins of a body move the same coordinate; see `MatrixPlan`. Raises as `strategy` does."""
    with _located(document, body):
        return matrix_plan(body).disjoint_modes(document, body, bins)


def proposed(document: Document, sigma: float) -> Proposed:
    """Return the errors of the document's only matrix at an estimated σ; they are estimates too.

    Raises as `workload_error` does.
    """
    body = document.bodies[0]
    mse = sigma * sigma * strategy(document, body).error.mean_square
    return Proposed(sigma, mse, sigma * sigma * workload_of(body).chosen(workload_error(document, body)))


@contextmanager
def _located(document: Document, body: Body) -> Iterator[None]:
    try:
        yield
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError([document.problem("no-valid-bound", body.at("matrix"), str(error))]) from error


def columns(document: Document, body: Body, min_separation: int) -> Recipe[_core.Columns]:
    """Return the recipe of the core's columns of the matrix, with the products of columns that overlap."""
    return _meeting(strategy(document, body), min_separation)


@lru_cache(maxsize=4)
def _meeting(built: Strategy, min_separation: int) -> Recipe[_core.Columns]:
    if built.buffers is not None and built.coefficients is not None:
        scales, decays = (tuple(values) for values in built.buffers)
        return Recipe("Columns.buffers", (built.coefficients[0], scales, decays, built.iterations, min_separation))
    if built.coefficients is not None:
        rest = built.iterations - len(built.coefficients)
        return Recipe("Columns.toeplitz", ((*built.coefficients, *([0.0] * rest)), min_separation))
    assert built.dense is not None
    entries = tuple(entry for i in range(built.iterations) for entry in built.dense[i:, i].tolist())
    return Recipe("Columns.dense", (entries, built.iterations, min_separation))
