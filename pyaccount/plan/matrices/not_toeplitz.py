"""Matrices that are not Toeplitz: dense ones from files, and binary trees of partial sums.

Of a tree the release of all nodes is analysed; running sums are functions of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar

from pyaccount.document.matrices import Dense, Tree
from pyaccount.document.words import Assumed
from pyaccount.errors import DocumentError, Problem
from pyaccount.files import InsideFile
from pyaccount.plan.common import given, number
from pyaccount.plan.matrices.base import MatrixPlan, cut_noise, normalised, rounds_of
from pyaccount.plan.matrices.built import Strategy, scaled_by
from pyaccount.plan.matrices.sensitivity import disjoint

#: The noise of a matrix with more rows than columns and what may be released, as an assumption.
ROWS_RELEASED = Assumed(
    "C, the matrix stated, has more rows than columns, and Z has independent Gaussian rows of standard deviation σ times the "
    "clip norm, drawn from a generator that cannot be predicted. Either the noise of the iterations is C⁺Z, C⁺ = (CᵀC)⁻¹Cᵀ, "
    "or the rows of CG + Z are released, G the clipped sums, each row once its last iteration is over. Z is released in no "
    "other way.",
    "Released: sums with noise C⁺Z, or the rows of CG + Z; Z is unpredictable.",
)

#: Nanoseconds that each entry of a column takes, for a sample and a step.
ENTRY_COST = 0.15


class DensePlan(MatrixPlan[Dense]):
    """A matrix from a file, with a column for each round of the run, and as many rows or more."""

    may_fail: ClassVar[bool] = True
    from_file: ClassVar[bool] = True

    def text(self) -> str:
        """Name the matrix and where it comes from."""
        return "dense matrix from a file"

    def build(self) -> Strategy:
        """Read the matrix: once for a pinned document, otherwise again whenever the file has changed.

        Raises `DocumentError` for a file that holds no matrix.
        """
        key = (self.matrix.file, rounds_of(self.node), self.matrix.normalize)
        if self.asked.read is None:
            return self._read()
        if key not in self.asked.read:
            self.asked.read[key] = self._read()
        built: Strategy = self.asked.read[key]
        return built

    def _read(self) -> Strategy:
        from pyaccount.strategies.dense import MatrixFileError

        file = self.asked.file(self.node.at("matrix", "file"), self.matrix.file)
        try:
            # The file's identity is part of the cache key: its content may change.
            status = file.path.stat() if file.path.is_file() else None
            stamp = None if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            return _dense(file, rounds_of(self.node), self.matrix.normalize, stamp)
        except MatrixFileError as error:
            raise DocumentError(
                [self.asked.problem("matrix-file", self.node.at("matrix", "file"), str(error))]
            ) from error

    def noise(self) -> Assumed:
        """Return the assumption about the noise; with more rows than columns, that of the pseudo-inverse and of the rows."""
        return super().noise() if self.build().square else ROWS_RELEASED

    def refusals(self) -> list[Problem]:
        """Refuse a matrix with more rows than columns if records are sampled: other kernels take square ones."""
        if self.node.sampler.kind == "none" or self.node.training.iterations == "solve":
            return []
        try:
            built = self.build()
        except ValueError:
            # What is wrong with the file is reported later, after what is wrong with the sampler.
            return []
        if built.square:
            return []
        message = (
            f"the matrix has {built.rows} rows for {built.iterations} iterations, and an encoder with more rows than columns is "
            f"analysed without sampling only, not with {self.node.sampler.kind} sampling: write `kind: none` with the "
            "participations that the order allows, or take a square matrix"
        )
        return [self.asked.refusal(self.node.at("sampler", "kind"), message, allowed="none")]

    def disjoint_modes(self, bins: int) -> bool:
        """Whether all entries between different bins are 0."""
        dense = self.build().dense
        return disjoint(given(dense), bins)

    def product_cost(self) -> float:
        """Return the cost of products of whole columns."""
        return ENTRY_COST * rounds_of(self.node)

    def generation(self, built: Strategy) -> str:
        """Describe the noise as a forward substitution, or by the pseudo-inverse if there are more rows than columns."""
        if not built.square:
            return (
                "z_t = Σ_r (C⁺)_tr·w_r over all rows r, C⁺ = (CᵀC)⁻¹Cᵀ, C the file's entries times the `normalization`; all rows "
                "w are needed from the first round on, and `TrainingRun` does not draw it"
            )
        return "z_t = (w_t − Σ_s C_ts·z_s) / C_tt, s < t, C the file's entries times the `normalization`; all rows z are kept"

    def leading_block(self, built: Strategy, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """Raise `AssertionError`: no file has the leading block."""
        raise AssertionError("a dense matrix is never cut")

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return the hash of the entries of the file."""
        return {"kind": "dense", "normalised": normalised(self.node), "sha256": str(built.fingerprint)}


@lru_cache(maxsize=4)
def _dense(file: InsideFile, iterations: int, normalize: bool, stamp: tuple[int, ...] | None) -> Strategy:
    import hashlib

    import numpy as np

    from pyaccount.strategies.dense import column_norms, dense_error, load_dense, normalized_columns_max

    matrix = load_dense(file, iterations)
    fingerprint = hashlib.sha256(matrix.tobytes()).hexdigest()
    # The entry at which the scale is read off; with more rows than columns the first one may be 0.
    place = (0, 0) if len(matrix) == iterations else np.unravel_index(int(matrix.argmax()), matrix.shape)
    first = float(matrix[place])
    if normalize:
        matrix = normalized_columns_max(matrix)
    norm, factor = float(column_norms(matrix).max()), scaled_by(float(matrix[place]), first)
    return Strategy(iterations, None, matrix, dense_error(matrix), norm, fingerprint, normalization=factor)


#: The noise of the blocks and what may be released, as an assumption.
RELEASED = Assumed(
    "Every complete block of the tree has the sum of its rounds with Gaussian noise of standard deviation σ/ν times the clip "
    "norm, ν the `normalization` of the matrix, independent of all other blocks and drawn from a generator that cannot be "
    "predicted. These noisy sums may be released, each once its last round is over; everything else is computed from them alone.",
    "Every block gets noise of its own; all else is computed from these sums.",
)


class TreePlan(MatrixPlan[Tree]):
    """The binary tree of DP-FTRL, analysed without sampling."""

    def text(self) -> str:
        """Name the matrix, with the rounds after which it begins again, if it does."""
        every = self.matrix.restart_every
        return "binary tree of partial sums" + ("" if every is None else f", restarted every {every} rounds")

    def noise(self) -> Assumed:
        """Return the assumption that every block has noise of its own, and that nothing but blocks is released."""
        return RELEASED

    def refusals(self) -> list[Problem]:
        """Refuse all samplers: a block mixes the rounds in which a record might be drawn."""
        if self.node.sampler.kind == "none":
            return []
        message = (
            f"a tree is analysed without sampling, not with {self.node.sampler.kind} sampling: its blocks add up rounds in which "
            "a record may or may not have been drawn, and no bound is implemented for that. Write `kind: none` with the "
            "participations that the order allows, or take banded-square-root or blt, which are analysed with sampling"
        )
        return [self.asked.refusal(self.node.at("sampler", "kind"), message, allowed="none")]

    def build(self) -> Strategy:
        """Build the matrix; with `normalize` a leaf that is in L nodes has entries 1/√L."""
        matrix, n = self.matrix, rounds_of(self.node)
        every = min(matrix.restart_every or n, n)
        return _tree(n, every, matrix.estimation == "efficient", normalize=matrix.normalize)

    def generation(self, built: Strategy) -> str:
        """Describe the noise of a round by the blocks that end in it and before it."""
        assert built.tree is not None
        every = built.tree.restart_every
        start = f"p = t mod {every} + 1 and 2^a the largest power of two that divides p"
        if not built.tree.efficient:
            return (
                f"z_t = (w_t − Σ_j w_{{t−2^j}})/ν, j = 0 … a − 1, with {start}, ν the `normalization`; rows w are kept, or "
                "drawn again"
            )
        return (
            f"z_t = (e_a(t) − Σ_j e_j(t−2^j))/ν, j = 0 … a − 1, with {start}, ν the `normalization`, and e_a(t) = "
            "√((2^{a+1} + 1)/(3(2^{a+1} − 1)))·w_t + Σ_j (2^{j+1} − 1)/(2^{a+1} − 1)·e_j(t−2^j); one e of each j is kept"
        )

    def leading_block(self, built: Strategy, noise: dict[str, Any], rounds: int) -> dict[str, Any]:
        """Keep the tree, whose nodes within the first rounds are those of the shorter run, and scale the noise instead."""
        assert built.tree is not None
        section: dict[str, Any] = {"kind": "tree", "estimation": self.matrix.estimation, "normalize": False}
        if built.tree.restart_every < rounds:
            section["restart_every"] = built.tree.restart_every
        sigma = cut_noise(number(self.node.noise.multiplier), built.tree.scale)
        return {"matrix": section, "noise": {**noise, "multiplier": sigma}}

    def normal_form(self, built: Strategy) -> dict[str, Any]:
        """Return after how many rounds the tree begins again: at most those of the run."""
        every = self.matrix.restart_every or built.iterations
        return {"kind": "tree", "every": str(every), "normalised": normalised(self.node)}


@lru_cache(maxsize=16)
def _tree(iterations: int, every: int, efficient: bool, *, normalize: bool) -> Strategy:
    from pyaccount.strategies.tree import BlockTree, tree_error  # numpy

    root = math.sqrt(every.bit_length())
    tree = BlockTree(iterations, every, efficient, 1.0 / root if normalize else 1.0)
    return Strategy(iterations, None, None, tree_error(tree), tree.scale * root, normalization=tree.scale, tree=tree)
