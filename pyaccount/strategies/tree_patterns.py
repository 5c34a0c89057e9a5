"""How far one record moves the nodes of a tree: max over patterns of Σ_v count_v², exact where that is affordable.

A pattern is a set of at most k rounds, at least b apart; count_v is the number of them among the leaves of node v. The
square of the norm of what moves is ν²·Σ_v count_v², and other sums of the same batches may add a constant for every
round of the pattern. All counts are integers, so nothing here is rounded but the last product. Bounds, the cheapest
first:

* **by level**: a node of 2^h leaves has a count of at most m = ⌈2^h/b⌉, and the counts of a level sum to at most k, so
  the squares of a level sum to at most ⌊k/m⌋·m² + (k mod m)², or m² for each of its nodes if these are fewer (a convex
  function is largest at an extreme point). Attained by evenly spaced rounds if b is a power of two, and by one round.
* **by counts**: f_h(c) = c² + max f_{h−1}(c') + f_{h−1}(c − c'), with counts of at most ⌈2^h/b⌉ in a block of 2^h
  leaves. These are necessary conditions on the counts of all levels together, so the maximum is an upper bound.
* **by gaps**: the same recursion with the places of a block's first and last round, which is all that its neighbours
  need to know: R_h(c, v, l) is the longest gap after the last of c rounds that attain at least v, with at least l leaves
  before the first. Two blocks that follow one another may be joined if r' + l' + 1 ≥ b for the gaps between them, so
  R(c + c', v + v', l) is the largest R'(c', v', b − 1 − R_h(c, v, l)): nothing is lost by the longest gap, because R'
  does not increase in its last argument. Larger values are never worth less, so this is the maximum itself. There are
  few values of which none reaches as far as a larger one.

A lower bound is the value of a pattern. With restarts, the trees follow one another like blocks without a node above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pyaccount import _core

if TYPE_CHECKING:
    from pyaccount.strategies.tree import BlockTree


NodeCounts = NDArray[np.int64]
Gaps = NDArray[np.int32]


#: The most sums that the bound by counts, and the maximum by gaps, may take: about a second, and some seconds.
COUNTING_WORK = 300_000_000
GAP_WORK = 500_000_000
#: What a short array operation takes, in sums, and the least length of a row that counts as long.
OVERHEAD = 3_000
LONG_ROW = 128
#: The most rounds of a pattern, and the longest distance, for which the maximum is looked for.
MOST_BY_GAPS = 1000
LONGEST_GAP = 100_000
#: Below every value: no such pattern. Sums of two do not overflow.
_NONE = -(2**60)

T = TypeVar("T")


class SquareBounds(NamedTuple):
    """Bounds on max ν²·Σ_v count_v² + t·(number of rounds); equal if the maximum is known."""

    upper: float
    lower: float


def worst_square(tree: BlockTree, apart: int, most: int, each_round: float = 0.0) -> SquareBounds:
    """Return bounds on the largest ν²·Σ_v count_v² + t·(rounds of the pattern), t = `each_round` ≥ 0.

    The maximum is over the patterns of at most k = `most` rounds at least b = `apart` apart. Both bounds are rounded to
    nearest, with a relative error of at most 4 units of rounding. Time O(k log n) if the level bound is attained, and
    at most a few seconds otherwise.
    """
    most = min(most, -(-tree.rounds // apart))
    square = tree.scale * tree.scale
    lower = max(
        square * pattern_value(tree, pattern) + each_round * len(pattern) for pattern in _candidates(tree, apart, most)
    )
    upper = square * _by_level(tree, apart, most) + each_round * most
    if upper > lower and _work(tree, apart, most) <= COUNTING_WORK:
        upper = min(upper, square * int(_by_counts(tree, apart, most).max()) + each_round * most)
    by_count = _by_gaps(tree, apart, most) if upper > lower and most <= MOST_BY_GAPS and apart <= LONGEST_GAP else None
    if by_count is not None:
        upper = lower = max(square * value + each_round * rounds for rounds, value in enumerate(by_count))
    return SquareBounds(upper, lower)


def pattern_value(tree: BlockTree, rounds: NodeCounts) -> int:
    """Return Σ_v count_v² for these rounds, each counted from 0 and at most once."""
    trees, places = np.divmod(np.asarray(rounds, dtype=np.int64), tree.restart_every)
    sizes = np.minimum(tree.restart_every, tree.rounds - trees * tree.restart_every)
    value = 0
    for height in range(tree.levels):
        blocks = places >> height
        complete = (blocks + 1) << height <= sizes
        nodes = trees[complete] * tree.restart_every + blocks[complete]
        value += int(np.square(np.unique(nodes, return_counts=True)[1]).sum())
    return value


def _candidates(tree: BlockTree, apart: int, most: int) -> list[NodeCounts]:
    """Return evenly spaced patterns: at the smallest distance, at the next power of two, and one round in each tree."""
    further = {apart, 1 << (apart - 1).bit_length(), max(apart, tree.restart_every)}
    # The earliest rounds are in the most nodes. One round fits always.
    patterns = [np.arange(0, tree.rounds, distance, dtype=np.int64)[:most] for distance in sorted(further)]
    return [pattern for pattern in patterns if len(pattern) > 0]


def _by_level(tree: BlockTree, apart: int, most: int) -> int:
    trees, rest = divmod(tree.rounds, tree.restart_every)
    bound = 0
    for height in range(tree.levels):
        nodes = trees * (tree.restart_every >> height) + (rest >> height)
        count = min(most, -(-(1 << height) // apart))
        turns, left = divmod(most, count)
        bound += nodes * count**2 if turns >= nodes else turns * count**2 + left**2
    return bound


def _folded(tree: BlockTree, leaf: T, join: Callable[[T, T, bool], T]) -> T:
    """Return the whole run, joined from its leaves in their order; `join` is told whether a node is above the two."""
    blocks = [leaf]
    for _ in range(1, tree.levels):
        blocks.append(join(blocks[-1], blocks[-1], True))

    def begun(rounds: int) -> T:
        parts = [blocks[height] for height in reversed(range(rounds.bit_length())) if rounds >> height & 1]
        joined = parts[0]
        for part in parts[1:]:
            joined = join(joined, part, False)
        return joined

    trees, rest = divmod(tree.rounds, tree.restart_every)
    # Equal trees are doubled: which of them are joined first does not matter.
    power, joined = begun(tree.restart_every), None
    while trees:
        if trees & 1:
            joined = power if joined is None else join(joined, power, False)
        trees >>= 1
        if trees:
            power = join(power, power, False)
    assert joined is not None  # there is at least one whole tree
    return join(joined, begun(rest), False) if rest else joined


def _work(tree: BlockTree, apart: int, most: int) -> int:
    """Return the number of pairs of counts that a recursion over counts joins."""
    work = 0

    def join(left: int, right: int, _node: bool) -> int:
        nonlocal work
        work += (1 + min(most, -(-left // apart))) * (1 + min(most, -(-right // apart)))
        return left + right

    _folded(tree, 1, join)
    return work


@dataclass(frozen=True)
class _Counted:
    """The largest values of a stretch of rounds, by the number of rounds of the pattern in it."""

    size: int
    values: NodeCounts


# Cached, because solving for σ asks again with another weight of the rounds.
@lru_cache(maxsize=8)
def _by_counts(tree: BlockTree, apart: int, most: int) -> NodeCounts:
    def join(left: _Counted, right: _Counted, node: bool) -> _Counted:
        size = left.size + right.size
        values = np.full(1 + min(most, -(-size // apart)), _NONE)
        for count, value in enumerate(left.values):
            reach = min(len(right.values), len(values) - count)
            if reach > 0:
                joined = values[count : count + reach]
                np.maximum(joined, value + right.values[:reach], out=joined)
        if node:
            values += np.square(np.arange(len(values)))
        return _Counted(size, values)

    return _folded(tree, _Counted(1, np.array([0, 1])), join).values


@dataclass(frozen=True)
class _Reaching:
    """What the patterns in a stretch of rounds can attain, by the number of rounds of the pattern.

    `attained[c − 1]` has values in descending order, and for each of them and each l < b the longest gap, at most b − 1,
    after the last of c rounds that attain at least this value, with at least l leaves before the first; −1 if there are no
    such rounds. A gap of b − 1 allows any first round of what follows.
    """

    size: int
    attained: list[tuple[NodeCounts, Gaps]]


class _TooMuchError(Exception):
    """The maximum takes more work than is allowed."""


class _Best:
    """Collects values with how far they reach, and keeps of each value the longest gaps."""

    def __init__(self, apart: int) -> None:
        #: Long rows are compared as they come; many short ones are collected first, which takes fewer operations.
        self._long = apart >= LONG_ROW
        self._rows: dict[int, Gaps] = {}
        self._parts: list[tuple[NodeCounts, Gaps]] = []

    def offer(self, values: NodeCounts, reach: Gaps) -> None:
        """Add values with a row of gaps each."""
        if not self._long:
            self._parts.append((values, reach))
            return
        for value, row in zip(values.tolist(), reach, strict=True):
            if value in self._rows:
                np.maximum(self._rows[value], row, out=self._rows[value])
            else:
                self._rows[value] = row.copy()

    def undominated(self) -> tuple[NodeCounts, Gaps]:
        """Return the values in descending order; those that reach no further than a larger one are left out."""
        if self._long:
            values = np.array(sorted(self._rows, reverse=True))
            reach = np.array([self._rows[value] for value in values.tolist()])
        else:
            values = np.concatenate([part for part, _ in self._parts])
            order = np.argsort(-values, kind="stable")
            values = values[order]
            first = np.flatnonzero(np.diff(values, prepend=values[0] + 1))
            reach = np.maximum.reduceat(np.concatenate([part for _, part in self._parts])[order], first, axis=0)
            values = values[first]
        reach = np.maximum.accumulate(reach, axis=0)
        further = np.concatenate([reach[:1].max(axis=1) >= 0, (reach[1:] > reach[:-1]).any(axis=1)])
        return values[further], reach[further]


# Cached, as above.
@lru_cache(maxsize=8)
def _by_gaps(tree: BlockTree, apart: int, most: int) -> list[int] | None:
    """Return the largest value for each number of rounds from 0 on; None if that takes too much work.

    A number of rounds that does not fit has a negative value.
    """
    work = 0

    def join(left: _Reaching, right: _Reaching, node: bool) -> _Reaching:
        nonlocal work
        size = left.size + right.size
        found = [_Best(apart) for _ in range(min(most, -(-size // apart)))]
        # All rounds are in one of the two: the gap on the other side is longer by the size of the other.
        for best, (values, reach) in zip(found, left.attained, strict=False):
            best.offer(values, np.where(reach < 0, -1, np.minimum(reach + right.size, apart - 1)))
        sooner = np.maximum(np.arange(apart) - left.size, 0)
        for best, (values, reach) in zip(found, right.attained, strict=False):
            best.offer(values, reach[:, sooner])
        for before, (values, reach) in enumerate(left.attained):
            for after, (following, longest) in enumerate(right.attained[: max(0, len(found) - before - 1)]):
                _core.Cancellation.check()
                work += len(values) * (len(following) * apart + OVERHEAD)
                if work > GAP_WORK:
                    raise _TooMuchError
                # After a gap r the first round of the other needs b − 1 − r leaves before it; without a pattern, none fits.
                none = np.concatenate([longest, np.full((len(following), 1), -1, dtype=np.int32)], axis=1)
                for value, row in zip(values.tolist(), reach, strict=True):
                    found[before + after + 1].offer(value + following, none[:, apart - 1 - row])
        attained = [best.undominated() for best in found]
        if node:
            attained = [(values + (count + 1) ** 2, reach) for count, (values, reach) in enumerate(attained)]
        return _Reaching(size, attained)

    leaf = np.full((1, apart), -1, dtype=np.int32)
    leaf[0, 0] = 0
    try:
        joined = _folded(tree, _Reaching(1, [(np.array([1]), leaf)]), join)
    except _TooMuchError:
        return None
    return [0, *(int(values[reach[:, 0] >= 0].max(initial=_NONE)) for values, reach in joined.attained)]
