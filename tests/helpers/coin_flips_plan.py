"""The plan room's half of `coin_flips`: its theorem, and what a record can do at worst.

`extended` copies this file to where a sampler's module belongs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.plan.common import rounds
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.samplers import poisson
from pyaccount.plan.samplers.base import EVERY_ROUND, SamplerPlan, Worst

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body


def words(document: Document, body: Body) -> Reduction:
    """Return the theorem of Poisson sampling with the name of this sampler."""
    return replace(poisson.words(document, body), subject="coin flips")


class CoinFlipsPlan(SamplerPlan):
    """The analysis of coin flips, whose rounds compose."""

    round_by_round = True

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis of Poisson sampling, since the batches have the same law."""
        return Analysis(words, poisson.bounds)

    def worst(self, document: Document, body: Body) -> Worst:
        """Return the worst case without sampling: the record is in every round."""
        return Worst(EVERY_ROUND, lambda: 1.0, rounds(body))


PLAN = CoinFlipsPlan()
