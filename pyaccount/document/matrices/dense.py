"""A matrix from a file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.matrices.base import NORMALIZE, MatrixKind, Normalize
from pyaccount.document.ranges import FILE_LENGTH
from pyaccount.reading.fields import Text


class Dense(MatrixKind):
    """Any lower-triangular matrix without negative entries, or one with more rows than iterations, read from a file.

    With more rows, each row is a sum of rounds that has noise of its own. It is analysed without sampling.
    """

    banded = False
    files: ClassVar[tuple[str, ...]] = ("file",)

    kind: Literal["dense"] = Field(
        description="A matrix without negative entries from a file: lower triangular, or with more rows than rounds."
    )
    file: Annotated[str, Text(FILE_LENGTH)] = Field(
        description="A .npy, .csv or .txt file, relative to the folder of the document."
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)
