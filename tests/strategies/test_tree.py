"""Trees of partial sums: their nodes, estimates and errors, against explicit encoders and least squares.

The oracle builds the nodes by their definition: blocks of 2^h rounds that begin at a multiple of 2^h in their tree. The estimate
from all completed nodes is the minimiser of least squares, solved for every round from these rows; the honest estimate adds up
the blocks of the binary digits of the rounds so far.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from snapshots import Snapshot

from pyaccount.strategies import tree_patterns
from pyaccount.strategies.dense import dense_error
from pyaccount.strategies.measure import Workload
from pyaccount.strategies.tree import BlockTree, block_response, training_matrix, tree_encoder, tree_error, variance
from pyaccount.strategies.tree_patterns import pattern_value, worst_square

Array = NDArray[np.float64]
SHAPES = [(1, 1), (2, 2), (3, 3), (7, 7), (8, 8), (13, 5), (16, 16), (24, 24), (33, 7), (40, 16)]


def blocks(rounds: int, restart: int) -> list[tuple[int, int]]:
    """The nodes, as first round and the round after the last one."""
    return [
        (start + first, start + first + size)
        for start in range(0, rounds, restart)
        for size in (1 << h for h in range(restart.bit_length()))
        for first in range(0, restart, size)
        if first + size <= restart and start + first + size <= rounds
    ]


def encoder(rounds: int, restart: int) -> Array:
    return np.array([[float(first <= t < end) for t in range(rounds)] for first, end in blocks(rounds, restart)])


def counted(rounds: int, restart: int, pattern: tuple[int, ...]) -> int:
    """Σ_v count_v², node by node."""
    return sum(sum(first <= t < end for t in pattern) ** 2 for first, end in blocks(rounds, restart))


def worst(rounds: int, restart: int, apart: int, most: int) -> int:
    return max(
        counted(rounds, restart, pattern)
        for size in range(1, most + 1)
        for pattern in itertools.combinations(range(rounds), size)
        if all(later - earlier >= apart for earlier, later in itertools.pairwise(pattern))
    )


@pytest.mark.parametrize(("rounds", "restart"), SHAPES)
def test_the_encoder_has_the_complete_blocks_of_every_tree(rounds: int, restart: int) -> None:
    tree = BlockTree(rounds, restart, efficient=False, scale=0.5)
    built = tree_encoder(tree)
    assert built.shape == (tree.nodes, rounds)
    assert Counter(map(tuple, (2.0 * built).tolist())) == Counter(map(tuple, encoder(rounds, restart).tolist()))
    # The rows are in the order of their last rounds, so each can be released once it is complete.
    last = [int(np.flatnonzero(row)[-1]) for row in built]
    assert last == sorted(last)
    assert tree.levels == int(encoder(rounds, restart).sum(axis=0).max())


def test_a_leaf_is_in_as_many_nodes_as_dp_accounting_counts() -> None:
    """⌊log₂ n⌋ + 1 = ⌈log₂(n + 1)⌉ for every n; the padded tree's ⌈log₂ n⌉ + 1 is one more unless n is a power of two."""
    for n in range(1, 2000):
        levels = BlockTree(n, n, efficient=False).levels
        assert levels == math.ceil(math.log2(n + 1))
        padded = (n - 1).bit_length() + 1
        assert padded - levels == (0 if n & (n - 1) == 0 else 1)


@pytest.mark.parametrize(("rounds", "restart"), SHAPES)
def test_honest_estimates_add_up_the_digits_of_the_rounds(rounds: int, restart: int) -> None:
    """The variance of a running sum is the number of blocks: the ones in binary, and those of the earlier trees."""
    digits = [sum(map(int, f"{t % restart + 1:b}")) + t // restart * f"{restart:b}".count("1") for t in range(rounds)]
    found = tree_error(BlockTree(rounds, restart, efficient=False))
    assert found.mean_square == pytest.approx(sum(digits) / rounds, rel=1e-14)
    assert found.max_square == max(digits)


@pytest.mark.parametrize(("rounds", "restart"), SHAPES)
def test_efficient_estimates_are_least_squares_on_what_is_complete(rounds: int, restart: int) -> None:
    """For each running sum s = 1ᵀg the least variance is 1ᵀ(TᵀT)⁻¹1, T the nodes that are complete by then."""
    nodes, whole = blocks(rounds, restart), encoder(rounds, restart)
    least = []
    for t in range(rounds):
        done = whole[[end <= t + 1 for _, end in nodes], : t + 1]
        least.append(np.ones(t + 1) @ np.linalg.solve(done.T @ done, np.ones(t + 1)))
    found = tree_error(BlockTree(rounds, restart, efficient=True))
    assert found.mean_square == pytest.approx(np.mean(least), rel=1e-11)
    assert found.max_square == pytest.approx(max(least), rel=1e-11)


@pytest.mark.parametrize("efficient", [False, True])
@pytest.mark.parametrize(("rounds", "restart"), SHAPES)
def test_training_gives_estimates_with_the_same_noise(rounds: int, restart: int, efficient: bool) -> None:
    """C is lower triangular and ≥ 0, A C⁻¹w has the variances of the estimates, and C tells no more than the nodes do."""
    tree = BlockTree(rounds, restart, efficient, scale=0.8)
    c, t = training_matrix(tree), tree_encoder(tree)
    assert (c >= 0.0).all()
    assert (np.triu(c, 1) == 0.0).all()
    variances = np.square(np.tril(np.ones((rounds, rounds))) @ np.linalg.inv(c)).sum(axis=1)
    assert tree_error(tree).mean_square == pytest.approx(variances.mean(), rel=1e-12)
    assert tree_error(tree).max_square == pytest.approx(variances.max(), rel=1e-12)
    assert np.linalg.eigvalsh(t.T @ t - c.T @ c).min() > -1e-12
    workload = Workload(momentum=0.9, learning_rates=tuple(np.linspace(1.0, 0.1, rounds).tolist()))
    assert tree_error(tree, workload) == dense_error(c, workload)


@pytest.mark.parametrize("efficient", [False, True])
def test_the_response_of_a_block_is_that_of_the_matrix(efficient: bool) -> None:
    """The error of a whole block is the sum of C⁻¹w over its rounds; its variance follows from exact fractions."""
    exact = Fraction(1)
    for height in range(6):
        rounds = 1 << height
        tree = BlockTree(rounds, rounds, efficient)
        sums = np.linalg.inv(training_matrix(tree)).sum(axis=0)
        assert np.abs(np.array(block_response(tree, height)) - sums).max() < 1e-13
        assert variance(tree, height) == pytest.approx(float(exact), rel=1e-15)
        assert np.square(sums).sum() == pytest.approx(float(exact), rel=1e-13)
        # A node and the sum of two estimates of half its rounds, weighted by their precision.
        exact = 1 / (1 + 1 / (2 * exact)) if efficient else exact


def test_the_worst_pattern_is_that_of_all_patterns() -> None:
    """Enumeration; evenly spaced rounds are not always the worst, so this is no identity."""
    beaten = 0
    for rounds in range(1, 15):
        for restart in sorted({rounds, -(-rounds // 2), max(1, rounds // 3)}):
            tree = BlockTree(rounds, restart, efficient=False)
            for apart, most in itertools.product((1, 2, 3, 5), (1, 2, 3, 4)):
                if (most - 1) * apart >= rounds:
                    continue
                truth = worst(rounds, restart, apart, most)
                assert worst_square(tree, apart, most) == (truth, truth)
                spaced = np.arange(0, rounds, apart)[:most]
                assert pattern_value(tree, spaced) == counted(rounds, restart, tuple(spaced.tolist()))
                beaten += pattern_value(tree, spaced) < truth
    assert beaten > 20


def test_each_bound_holds_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the maximum by gaps is too much work the bounds by counts and by level remain, and enclose the truth."""
    cases = [(7, 2, 3, 3), (10, 5, 3, 4), (13, 4, 3, 5), (16, 16, 3, 6), (12, 5, 2, 4)]
    truths = [worst(*case) for case in cases]
    loose = {}
    for limit in ("GAP_WORK", "COUNTING_WORK"):
        monkeypatch.setattr(tree_patterns, limit, 0)
        tree_patterns._by_gaps.cache_clear()
        found = [worst_square(BlockTree(n, restart, efficient=False), b, k) for n, restart, b, k in cases]
        assert all(one.lower <= truth <= one.upper for one, truth in zip(found, truths, strict=True))
        loose[limit] = sum(one.upper for one in found)
    tree_patterns._by_gaps.cache_clear()
    assert sum(truths) < loose["GAP_WORK"] < loose["COUNTING_WORK"]


def test_long_rows_are_compared_in_another_way_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(14, 14, 4, 3), (13, 13, 4, 3), (14, 7, 3, 4), (11, 11, 5, 3), (12, 5, 2, 4), (9, 3, 4, 3), (16, 16, 3, 5)]
    truths = [worst(*case) for case in cases]
    monkeypatch.setattr(tree_patterns, "LONG_ROW", 1)
    tree_patterns._by_gaps.cache_clear()
    found = [tree_patterns._by_gaps(BlockTree(n, restart, efficient=False), b, k) for n, restart, b, k in cases]
    tree_patterns._by_gaps.cache_clear()
    assert [max(one or []) for one in found] == truths


def test_other_releases_count_every_round() -> None:
    """ν²·Σ_v count_v² + t·(rounds), by enumeration: with a large t, more rounds are worth more than shared nodes."""
    tree = BlockTree(11, 11, efficient=False, scale=0.5)
    for extra in (0.1, 3.0):
        truth = max(
            0.25 * counted(11, 11, pattern) + extra * len(pattern)
            for size in range(1, 5)
            for pattern in itertools.combinations(range(11), size)
            if all(later - earlier >= 3 for earlier, later in itertools.pairwise(pattern))
        )
        assert worst_square(tree, 3, 4, extra) == pytest.approx((truth, truth), rel=1e-14)


def test_long_trees_are_known_by_formulas() -> None:
    """One round in each of many trees, and every round of one: all nodes of 2^h leaves have a count of 2^h."""
    assert worst_square(BlockTree(10**6, 1000, efficient=True), 1000, 1000) == (10_000, 10_000)
    assert worst_square(BlockTree(2**17, 2**17, efficient=False), 1, 2**17).upper == sum(
        2**17 * 2**h for h in range(18)
    )
    assert worst_square(BlockTree(10**6, 10**6, efficient=False), 1, 1) == (20, 20)


def test_what_is_too_large_for_an_array_is_refused(snapshot: Snapshot) -> None:
    tree = BlockTree(5000, 5000, efficient=True)
    snapshot.raised(tree_encoder, tree)
    snapshot.raised(lambda: tree_error(tree, Workload(momentum=0.5)))
    assert tree_error(tree).mean_square > 1.0
