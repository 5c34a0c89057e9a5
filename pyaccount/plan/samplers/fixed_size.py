"""Sampling without replacement: batches of a fixed size."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.plan.common import rounds
from pyaccount.plan.samplers.base import EVERY_ROUND, Worst
from pyaccount.plan.samplers.fixed_draws import FixedDrawsPlan

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Path


class FixedSizePlan(FixedDrawsPlan):
    """A uniform subset of the data set."""

    core: ClassVar[str] = "fixed-size"
    called: ClassVar[str] = "fixed-size batches without replacement"
    symbols: ClassVar[str] = "Hyp(j; {k} of {n}, {m} drawn)"
    drawn: ClassVar[str] = (
        "Every batch is a uniformly random subset of exactly the stated size, drawn afresh and independently for each "
        "iteration; going through a shuffled data set in order does not satisfy this."
    )
    once: ClassVar[bool] = True
    tight_source: ClassVar[str] = (
        "Ganesh 2024 (arXiv:2401.10294), Theorem 3.3; attained by gradients +1 and −1 (its Section 3.3)"
    )

    def worst(self, document: Document, body: Body) -> Worst:
        """In every round."""
        return Worst(EVERY_ROUND, lambda: 1.0, rounds(body))

    def distinct_drawn(self, body: Body) -> tuple[int, Path]:
        """All of the batch."""
        return body.batch_size(), body.at("training", "expected_batch_size")

    def largest_batch(self, document: Document, body: Body) -> int:
        """The data set; under add-remove the smaller of two."""
        records, privacy = super(FixedDrawsPlan, self).largest_batch(document, body), document.privacy
        if privacy.adjacency != "add-remove":
            return records
        assert privacy.group_size != "solve"  # one thing is solved for
        return records - privacy.group_size

    def components(self, document: Document) -> int:
        """As many as the group has records, and none."""
        group = document.privacy.group_size
        return 1 + (1 if group == "solve" else group)


PLAN = FixedSizePlan()
