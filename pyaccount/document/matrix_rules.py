"""The rules about matrices: how they are described, and what of the training run they must fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.matrices import BLT, BandedInverse, Toeplitz
from pyaccount.document.ranges import BANDS
from pyaccount.document.rates import bands, number, separation
from pyaccount.document.samplers import BMinSep, CyclicPoisson, UserBMinSep
from pyaccount.document.views import Body
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.document import Document


def bands_fit(document: Document, body: Body) -> Iterator[Problem]:
    """A matrix has no more diagonals than rounds, and none but the last may be without a first coefficient."""
    matrix = body.matrix
    rounds, width = number(body.training.iterations), bands(body)
    field = "coefficients" if isinstance(matrix, Toeplitz) else "bands"
    if rounds is not None and width is not None and width > rounds:
        message = f"the matrix has {width} bands, but there are only {rounds:_} iterations"
        yield document.problem("contradiction", body.at("matrix", field), message, allowed=f"at most {rounds}")
    if isinstance(matrix, Toeplitz) and isinstance(matrix.coefficients, tuple):
        first = matrix.coefficients[0]
        if isinstance(first, int | float) and first == 0.0:
            message = (
                "the first coefficient stands on the diagonal and must be greater than 0, or the matrix has no inverse"
            )
            yield document.problem("out-of-range", (*body.at("matrix", "coefficients"), 0), message)


def separation_covers_bands(document: Document, body: Body) -> Iterator[Problem]:
    """Participations of a record must not meet in the matrix: at least `bands` rounds lie between them."""
    b, width = separation(body), bands(body)
    if not isinstance(body.sampler, BMinSep | UserBMinSep | CyclicPoisson) or b is None or width is None or width <= b:
        return
    field = "partitions" if isinstance(body.sampler, CyclicPoisson) else "min_separation"
    message = (
        f"the matrix has {width} bands, so that a record's participations must be at least {width} rounds apart, but this "
        f"allows {b}: take at most {b} bands, or {field} of at least {width}"
    )
    yield document.problem("contradiction", body.at("sampler", field), message, allowed=f"at least {width}")


def matrix_is_given(document: Document, body: Body) -> Iterator[Problem]:
    """A banded inverse and a BLT are each described in one of two ways."""
    matrix = body.matrix
    ways: tuple[tuple[str, ...], tuple[str, ...]]
    if isinstance(matrix, BandedInverse):
        ways = (("bands",), ("inverse_coefficients",))
    elif isinstance(matrix, BLT):
        ways = (("buffers",), ("scales", "decays"))
    else:
        return
    given = [way for way in ways if any(getattr(matrix, field) is not None for field in way)]
    described = f"{ways[0][0]}, or {' and '.join(ways[1])}"
    if not given:
        message = f"a {matrix.kind} matrix needs {described}"
        yield document.problem("missing-key", body.at("matrix", ways[0][0]), message)
        return
    if len(given) == 2:
        field = next(field for field in ways[1] if getattr(matrix, field) is not None)
        yield document.problem("contradiction", body.at("matrix", field), f"give {described}, not both")
        return
    missing = [field for field in given[0] if getattr(matrix, field) is None]
    for field in missing:
        yield document.problem("missing-key", body.at("matrix", field), f"a {matrix.kind} matrix needs {described}")
    lengths = [
        len(listed)
        for listed in (getattr(matrix, "scales", None), getattr(matrix, "decays", None))
        if isinstance(listed, tuple)
    ]
    if len(set(lengths)) == 2:
        message = f"there are {lengths[0]} scales and {lengths[1]} decays: one of each for every buffer"
        yield document.problem("contradiction", body.at("matrix", "decays"), message)
    rounds, width = number(body.training.iterations), number(getattr(matrix, "bands", None))
    if rounds is not None and rounds not in BANDS:
        message = f"a {matrix.kind} matrix has a full first column, so its iterations must be {BANDS.describe()}"
        yield document.problem("out-of-range", body.at("training", "iterations"), message, allowed=BANDS.describe())
    if rounds is not None and width is not None and width > rounds:
        message = f"the inverse has {width} bands, but there are only {rounds:_} iterations"
        yield document.problem("contradiction", body.at("matrix", "bands"), message, allowed=f"at most {rounds}")
