"""Sampling without replacement: batches of a fixed size."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.document.samplers import FixedSize
from pyaccount.document.words import Assumed
from pyaccount.plan.common import number, rounds
from pyaccount.plan.samplers.base import Worst
from pyaccount.plan.samplers.fixed_draws import FixedDrawsPlan
from pyaccount.plan.theorem import EVERY_ROUND

if TYPE_CHECKING:
    from pyaccount.errors import Path


class FixedSizePlan(FixedDrawsPlan[FixedSize]):
    """Batches that are uniform subsets of the data set, of a fixed size."""

    core: ClassVar[str] = "fixed-size"
    scheduled_rates: ClassVar[tuple[str, ...]] = ("expected_batch_size",)
    called: ClassVar[str] = "fixed-size batches without replacement"
    symbols: ClassVar[str] = "Hyp(j; {k} of {n}, {m} drawn)"
    drawn: ClassVar[Assumed] = Assumed(
        "Every batch is a uniformly random subset of exactly the stated size, drawn afresh and independently for each "
        "iteration; going through a shuffled data set in order does not satisfy this.",
        "Every batch is a new random subset of the stated size, never by shuffling.",
    )
    once: ClassVar[bool] = True
    tight_source: ClassVar[str] = (
        "Ganesh 2024 (arXiv:2401.10294), Theorem 3.3; attained by gradients +1 and −1 (its Section 3.3)"
    )

    def worst(self) -> Worst:
        """Return that a record is in every round."""
        return Worst(EVERY_ROUND, lambda: 1.0, rounds(self.node))

    def distinct_drawn(self) -> tuple[int, Path]:
        """Return the size of the batch, whose records are all distinct, and its field."""
        return self.node.batch_size(), self.node.at("training", "expected_batch_size")

    def largest_batch(self) -> int:
        """Return the size of the data set; under add-remove that of the smaller of two neighbours."""
        records, privacy = super(FixedDrawsPlan, self).largest_batch(), self.asked.privacy
        if privacy.adjacency != "add-remove":
            return records
        return records - number(privacy.group_size)
