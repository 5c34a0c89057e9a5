"""Matrices in documents that are not Toeplitz: a dense one from a file, and binary trees of partial sums, as in DP-FTRL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pyaccount.document.matrices.base import NORMALIZE, MatrixKind, Normalize
from pyaccount.document.ranges import FILE_LENGTH, TREE_ROUNDS
from pyaccount.document.stated import StatedBody, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choice, Number, Text


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


ESTIMATIONS = ("honest", "efficient")


class Tree(MatrixKind):
    """The binary tree of DP-FTRL: every complete block of 2^h rounds has a sum with noise of its own.

    The nodes are the blocks of 2^h rounds that begin at a multiple of 2^h rounds and end within the run.
    """

    aliases = "binary-tree tree-aggregation honaker ftrl dp-ftrl"
    banded = False

    kind: Literal["tree"] = Field(description="The binary tree of partial sums (DP-FTRL), without sampling.")
    restart_every: Annotated[int | None, Number(TREE_ROUNDS, whole=True)] = Field(
        default=None,
        description="The number of rounds after which a new tree begins, such as the rounds of an epoch. Default: one "
        "tree for the whole run.",
    )
    estimation: Annotated[Literal["honest", "efficient"], Choice(ESTIMATIONS)] = Field(
        default="honest",
        description="How running sums are estimated. honest: from as few nodes as possible. efficient: from all "
        "completed nodes, with the least variance (Honaker). Privacy is the same; only the error differs.",
    )
    normalize: Normalize = Field(
        default=True,
        description=f"{NORMALIZE} With false every node is the sum of its rounds, and the noise multiplier is that of a "
        "node, as DP-FTRL counts it.",
    )

    def problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report more rounds than a tree may have, and trees that are longer than the run."""
        rounds, every = number_or_none(body.training.iterations), number_or_none(self.restart_every)
        if rounds is None:
            return
        if rounds not in TREE_ROUNDS:
            message = f"the iterations of a run with a tree must be {TREE_ROUNDS.describe()}"
            path = body.at("training", "iterations")
            yield problem("out-of-range", path, message, allowed=TREE_ROUNDS.describe())
        elif every is not None and every > rounds:
            message = (
                f"a new tree begins every {every:_} rounds, but there are only {rounds:_} iterations: leave it out"
            )
            path = body.at("matrix", "restart_every")
            yield problem("contradiction", path, message, allowed=f"at most {rounds}")
