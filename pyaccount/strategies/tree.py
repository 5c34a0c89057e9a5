"""Binary trees of partial sums: their nodes, the estimates that are made of them, and the error of these.

The rounds are the leaves of a binary tree, and a node is the sum of the gradients of its leaves plus independent noise.
Only **complete blocks** are nodes: the blocks of 2^h rounds that begin at a multiple of 2^h and end within the run. With
`restart_every` = N a new tree begins every N rounds. So a leaf is in at most ⌊log₂ N⌋ + 1 nodes, and the first leaf of
a whole tree is in so many. (A tree that is padded to a power of two has ⌈log₂ N⌉ + 1 levels, since its root is released
too; libraries that count ⌈log₂(N + 1)⌉ count the ⌊log₂ N⌋ + 1 levels of complete blocks: the two are equal for every N.)

The encoder T has a row for each node, ν times the indicator of its leaves. Let p be the number of rounds of the current
tree after a round, 2^a the largest power of two that divides p, and u the block of the last 2^a rounds. Before this
round the estimate of the running sum was made of the same blocks before u, and of the blocks l_{a−1}, …, l_0 inside u,
where l_j has 2^j rounds and ends 2^j rounds before the end of u. An estimate of the running sum adds up estimates of
the blocks. With e the error of a block's estimate, at noise of unit scale and ν = 1,

    e_u = γ_a·w + Σ_{j<a} β_j·e_{l_j},   w standard normal noise that is new in this round.

* **honest**: the estimate of a block is its own node (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011): β =
  0, γ = 1, and Var e_u = 1.
* **efficient**: the estimate of a block is the weighted mean of its own node and of the sum of the estimates of its two
  halves, with weights inverse to their variances (Honaker 2015, from below). By the theorem of Gauss and Markov this is
  the linear unbiased estimate of least variance from all nodes completed by then: the block's nodes are the only ones
  that share a leaf with it, since blocks are nested or disjoint and no larger complete block has ended. With v_h
  the variance for 2^h rounds, v_0 = 1 and 1/v_h = 1 + 1/(2v_{h−1}), so v_h = 2^h/(2^{h+1} − 1), which is also the weight
  of the node. In u the halves that end with u, of heights i = 0, …, a, are all completed in this round; unrolled,

      β_j = Π_{i=j+1…a} (1 − v_i) = (2^{j+1} − 1)/(2^{a+1} − 1),
      γ_a² = Σ_{i≤a} v_i²·Π_{m=i+1…a} (1 − v_m)² = (2^{a+1} + 1)/(3(2^{a+1} − 1)).

So the noise of the running sums is A·C⁻¹w, where A is the lower triangle of ones and C is square: its row for this
round is ν/γ_a in the column of the round, and ν(1 − β_j)/γ_a in the columns of l_j. Training adds C⁻¹w to the sums of the
rounds; the results are functions of the noisy nodes (T and C have the same estimates of running sums, with the same
law of noise). C is what training needs. Privacy is that of the whole tree T, of which everything else is a function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pyaccount.strategies.dense import LARGEST, dense_error
from pyaccount.strategies.measure import PREFIX_SUMS, Workload, WorkloadError
from pyaccount.strategies.sums import Entries, total
from pyaccount.strategies.toeplitz import in_range

LARGEST_WORKLOAD = LARGEST
"""The most rounds of a tree whose error under a workload other than prefix sums is computed: it takes an n×n matrix."""


@dataclass(frozen=True, slots=True)
class BlockTree:
    """A tree over `rounds` rounds that begins again every `restart_every` rounds, 1 ≤ restart_every ≤ rounds.

    Every node is `scale` (ν) times the sum of its leaves, plus noise. With `efficient` the running sums are estimated
    from all completed nodes, otherwise from as few as possible.
    """

    rounds: int
    restart_every: int
    efficient: bool
    scale: float = 1.0

    @property
    def levels(self) -> int:
        """The most nodes that a leaf is in: ⌊log₂ N⌋ + 1, which the first leaf of a tree over N rounds attains."""
        return self.restart_every.bit_length()

    @property
    def nodes(self) -> int:
        """The number of nodes: N rounds have N − (number of ones of N in binary) nodes above their N leaves."""
        trees, rest = divmod(self.rounds, self.restart_every)
        return trees * _nodes_over(self.restart_every) + _nodes_over(rest)


def newest(tree: BlockTree, number: int) -> int:
    """Return a: the block that is added to the estimate after round `number`, counted from 0, has 2^a rounds."""
    place = number % tree.restart_every + 1
    return (place & -place).bit_length() - 1


def new_weight(tree: BlockTree, height: int) -> float:
    """Return γ_a for a block of 2^a rounds, a = `height`, at ν = 1: the standard deviation of what is new in its error.

    Accurate to 3 units of rounding. Source: see the module.
    """
    if not tree.efficient:
        return 1.0
    size = math.ldexp(1.0, height + 1)
    return math.sqrt((size + 1.0) / (3.0 * (size - 1.0)))


def dropped_weight(tree: BlockTree, height: int, part: int) -> float:
    """Return 1 − β_j for a block of 2^a rounds, a = `height`, and its part l_j, j = `part` < a.

    The error of l_j enters the error of the block with the weight β_j. Accurate to 2 units of rounding.
    """
    if not tree.efficient:
        return 1.0
    return (math.ldexp(1.0, height + 1) - math.ldexp(1.0, part + 1)) / (math.ldexp(1.0, height + 1) - 1.0)


def variance(tree: BlockTree, height: int) -> float:
    """Return the variance of the estimate of a block of 2^h rounds at ν = 1: 1, or with all nodes 2^h/(2^{h+1} − 1)."""
    return math.ldexp(1.0, height) / (math.ldexp(1.0, height + 1) - 1.0) if tree.efficient else 1.0


@lru_cache(maxsize=64)
def block_response(tree: BlockTree, height: int) -> tuple[float, ...]:
    """Return the weights of w_s in the error of a block of 2^h rounds, h = `height`, at ν = 1, its rounds in order.

    These are (β_{h−1}·r_{h−1}, …, β_0·r_0, γ_h), where r_j are the weights of a block of 2^j rounds.
    """
    parts = [
        (1.0 - dropped_weight(tree, height, j)) * weight
        for j in reversed(range(height))
        for weight in block_response(tree, j)
    ]
    return (*parts, new_weight(tree, height))


def tree_encoder(tree: BlockTree) -> Entries:
    """Return T, an array with a row for each node, in the order in which they are completed (the smaller block first).

    Takes at most `LARGEST` rounds, for memory. Every entry is 0 or ν.
    """
    _few(tree.rounds)
    rows = []
    for number in range(tree.rounds):
        for height in range(newest(tree, number) + 1):
            row = np.zeros(tree.rounds)
            row[number + 1 - (1 << height) : number + 1] = tree.scale
            rows.append(row)
    return np.array(rows)


def training_matrix(tree: BlockTree) -> Entries:
    """Return C as an n×n array: lower triangular, non-negative, with C⁻¹w the noise that training adds.

    Takes at most `LARGEST` rounds. Each entry is accurate to 6 units of rounding.
    """
    _few(tree.rounds)
    built = np.zeros((tree.rounds, tree.rounds))
    for number, row in enumerate(built):
        height = newest(tree, number)
        factor = tree.scale / new_weight(tree, height)
        row[number] = factor
        for j in range(height):
            end = number + 1 - (1 << j)
            row[end - (1 << j) : end] = factor * dropped_weight(tree, height, j)
    return built


def tree_error(tree: BlockTree, workload: Workload = PREFIX_SUMS) -> WorkloadError:
    """Return the error of the estimates at σ = 1, for prefix sums or another workload.

    The variance of the estimated running sum after p rounds of the (r + 1)-th tree is (r·V(N) + V(p))/ν², where V(p)
    sums the variances of the blocks of p's binary digits. `mean_square` is the mean over the rounds, `max_square` the
    largest. For another workload the errors are those of C, by `dense_error`, for at most `LARGEST_WORKLOAD` rounds.

    Time O(n log n) for prefix sums, exact but for rounding. Raises ValueError for more rounds under a workload, and if
    an error is outside the range of a double.
    """
    if workload != PREFIX_SUMS:
        if tree.rounds > LARGEST_WORKLOAD:
            raise ValueError(
                f"the error of a tree under a workload takes a matrix with a row for each of the {tree.rounds:_} rounds, and "
                f"{LARGEST_WORKLOAD:_} rows are the most: leave the workload out"
            )
        return dense_error(training_matrix(tree), workload)
    places = np.arange(1, tree.restart_every + 1)
    variances = np.zeros(len(places))
    for height in range(tree.levels):
        variances += ((places >> height) & 1) * variance(tree, height)
    trees, rest = divmod(tree.rounds, tree.restart_every)
    one, last = total(variances), float(variances[-1])
    whole_trees = trees * one + last * tree.restart_every * (trees * (trees - 1) // 2)
    begun = rest * trees * last + total(variances[:rest])
    largest = (trees - 1) * last + float(variances.max())
    if rest:
        largest = max(largest, trees * last + float(variances[:rest].max()))
    return in_range((whole_trees + begun) / tree.rounds, largest, tree.scale)


def _nodes_over(rounds: int) -> int:
    """Return Σ_h ⌊rounds/2^h⌋ = 2·rounds − (number of ones of `rounds` in binary)."""
    return 2 * rounds - rounds.bit_count()


def _few(rounds: int) -> None:
    if rounds > LARGEST:
        raise ValueError(f"a tree over {rounds:_} rounds is not built as an array: {LARGEST:_} rounds are the most")
