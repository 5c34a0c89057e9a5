"""Binary trees of partial sums. What is analysed is the release of all nodes; running sums are functions of them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyaccount.document.matrices import Tree
from pyaccount.plan.common import number
from pyaccount.plan.matrices.base import MatrixPlan, cut_noise, normalised, rounds_of
from pyaccount.plan.matrices.built import Strategy

if TYPE_CHECKING:
    from pyaccount.errors import Problem

#: The noise of the blocks and what may be released, as an assumption.
RELEASED = (
    "Every complete block of the tree has the sum of its rounds with Gaussian noise of standard deviation σ/ν times the clip "
    "norm, ν the `normalization` of the matrix, independent of all other blocks and drawn from a generator that cannot be "
    "predicted. These noisy sums may be released, each once its last round is over; everything else is computed from them alone."
)


class TreePlan(MatrixPlan[Tree]):
    """The binary tree of DP-FTRL, analysed without sampling."""

    def text(self) -> str:
        """Name the matrix, with the rounds after which it begins again, if it does."""
        every = self.matrix.restart_every
        return "binary tree of partial sums" + ("" if every is None else f", restarted every {every} rounds")

    def noise(self) -> str:
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
        return [self.asked.problem("no-valid-bound", self.node.at("sampler", "kind"), message, allowed="none")]

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
