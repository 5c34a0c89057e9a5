"""The plan room's half of `coin_flips`: its theorem, and what a record can do at worst.

`extended` copies this file to where a sampler's module belongs.
"""

from dataclasses import replace

from pyaccount.document.samplers import SamplerKind
from pyaccount.plan.common import rounds
from pyaccount.plan.rounds import DirectedBounds
from pyaccount.plan.samplers import poisson
from pyaccount.plan.samplers.base import SamplerPlan, Worst
from pyaccount.plan.theorem import EVERY_ROUND, Reduction


class CoinFlipsPlan(SamplerPlan[SamplerKind]):
    """The theorem of coin flips, whose rounds compose: that of Poisson sampling, since the batches have the same law."""

    round_by_round = True

    def words(self) -> Reduction:
        """Return the theorem of Poisson sampling with the name of this sampler."""
        return replace(poisson.words(self), subject="coin flips")

    def bounds(self) -> DirectedBounds:
        """Return the rounds of Poisson sampling."""
        return poisson.bounds(self)

    def worst(self) -> Worst:
        """Return the worst case without sampling: the record is in every round."""
        return Worst(EVERY_ROUND, lambda: 1.0, rounds(self.node))
