"""Batches that are seldom truncated: how seldom, and when the run without truncation replaces the run with it.

The theorem is in `plan.rare_truncation`. The choice depends on the document alone, so that a certificate is recomputed
in the same way. Sampling the truncated law needs plain samples and loses nothing; sampling the run without truncation
is as cheap as usual, and loses what truncation may add to δ.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from pyaccount import _core
from pyaccount.document.tree import TrainingNode
from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.plan.rare_truncation import RareTruncation
from pyaccount.plan.samplers import truncated
from pyaccount.rounding import up

SOURCE = "what rare truncation adds: proven beside the code, in pyaccount.plan.rare_truncation"

#: The share of δ that may be lost: little if plain samples are cheap, more if they are not.
LITTLE, MUCH = 1.0 / 16.0, 0.5
#: The total number of rounds of all plain samples from which on they are not cheap: minutes of one core.
DEAR = 2e10
#: Blanks of the guarantee and of the noise, which do not affect how often a batch is truncated.
BLANKS = ("multiplier", "epsilon", "delta")
#: For larger expected batches the tail is not computed; Chernoff's bound is used.
TABULATED = 1e9
#: The bits to which rates are rounded up, so that few differ; and their relative error for each round of the recursion.
BITS, ROUNDING = 17, 1e-15
#: The maximum number of rates whose tails are computed.
MOST_RATES = 1000


def known(asked: Protection) -> bool:
    """Whether the document determines how often a batch is truncated: rates and rounds are given."""
    return asked.blank is None or asked.blank[-1] in BLANKS


def preferred(case: RunCase, rare: RareTruncation) -> bool:
    """Whether the run without truncation is sampled: what truncation may add is a small enough share of δ.

    If δ is the blank, its share is not known. The answer is then the one for the δ of which the addition is `LITTLE`:
    at a larger δ the share is smaller, and at a smaller δ plain samples take even longer.
    """
    privacy, rounds = case.asked.privacy, number(case.node.training.iterations)
    # What may be lost is divided among the phases.
    added = len(case.asked.phases) * case.node.count * rare.most
    if privacy.delta == "solve":
        return added <= LITTLE and _dear(max(added, 1e-300) / LITTLE, rounds)
    return added <= (MUCH if _dear(privacy.delta, rounds) else LITTLE) * privacy.delta


def _dear(delta: float, rounds: int) -> bool:
    """Whether plain samples for a test that accepts δ take long, even if the true δ is half of it (see `plan.cost`)."""
    return rounds * 7.0 * math.log(100.0 / delta) / delta > DEAR


def upper_tail(records: int, rate: float, count: int) -> float:
    """Return an upper bound on Pr[Bin(records, rate) ≥ count]: the tail rounded up, or Chernoff's for huge batches."""
    if records * rate > TABULATED:
        return truncated.chernoff_tail(records, rate, count)
    return _core.binomial_upper_tail(records, min(1.0, rate), count)


def cold_rates(probability: float, separation: int, rounds: int) -> Iterator[float]:
    """Yield an upper bound on Pr[x_i = 1] for each round, if all records are available at first.

    It is p·a_i, with a_i the probability to be available: a_1 = 1 and a_{i+1} = (1 − p)a_i + p·a_{i+1−b}, for records
    that were available and not drawn, and for those that are available again (b rounds after they were drawn). No term
    is negative, so each round adds a few units of relative rounding.
    """
    margin = probability * (1.0 + rounds * ROUNDING)
    available: list[float] = []
    for i in range(rounds):
        back = available[i - separation] if i >= separation else 0.0
        available.append((1.0 - probability) * available[-1] + probability * back if available else 1.0)
        yield min(1.0, margin * available[-1])


def counted_rates(rates: Iterable[float]) -> list[tuple[float, int]]:
    """Return ascending rates with their numbers of rounds: rounded up so that few differ, and merged if too many do."""
    met: Counter[float] = Counter()
    for rate in rates:
        mantissa, exponent = math.frexp(rate)
        met[math.ldexp(math.ceil(math.ldexp(mantissa, BITS)), exponent - BITS)] += 1
    rising = sorted(met.items())
    size = math.ceil(len(rising) / MOST_RATES)
    groups = (rising[k : k + size] for k in range(0, len(rising), size))
    return [(group[-1][0], sum(count for _, count in group)) for group in groups]


def of_renewal(hit: float, full: float, probability: float, separation: int) -> RareTruncation:
    """Return both terms from E e and Σ_i Pr[r_i ≥ B]: E z is the latter times π = ρ/(1 + ρ), ρ = p(1 − p)^{−b}."""
    share = 1.0
    if probability < 1.0:
        joins, stays = math.log(probability), separation * math.log1p(-probability)
        # 1/(1 + 1/ρ); the difference is off by a few units of rounding of its terms.
        ratio = joins - stays + truncated.ROUNDING * (1.0 - joins - stays)
        share = 1.0 / (1.0 + math.exp(-ratio))
    more = 1.0 + truncated.ROUNDING
    return RareTruncation(min(1.0, hit * more), min(1.0, full * share * more))


def truncation_note(run: TrainingNode, rare: RareTruncation) -> str:
    """State how seldom batches are truncated, and how much that adds to δ at most."""
    runs = "" if run.count == 1 else " for each run"
    return (
        "The expected batch size is that of the records drawn, before truncation. A record is ever in a batch that is truncated "
        f"with probability at most {up(rare.hit, 2)}; truncation adds no more than twice that to δ where a record is removed, "
        f"and no more than {up(rare.missed, 2)} where it is added{runs}."
    )
