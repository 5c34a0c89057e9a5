"""A matrix from a file."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.fields import Text
from pyaccount.document.matrices.base import NORMALIZE, MatrixKind, Normalize
from pyaccount.document.ranges import FILE_LENGTH


class Dense(MatrixKind):
    """Any lower-triangular matrix without negative entries, read from a file."""

    banded = False
    files: ClassVar[tuple[str, ...]] = ("file",)

    kind: Literal["dense"] = Field(description="A lower-triangular matrix without negative entries, read from a file.")
    file: Annotated[str, Text(FILE_LENGTH)] = Field(
        description="A .npy, .csv or .txt file, relative to the folder of the document."
    )
    normalize: Normalize = Field(default=True, description=NORMALIZE)
