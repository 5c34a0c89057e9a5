"""Batches that are seldom truncated: how seldom, and when the run without truncation stands for the run with it.

`plan.rare_truncation` has the theorem. Which way is taken is a rule of the document alone, so that a certificate is recomputed
the same way: sampling the truncated law takes plain samples and gives up nothing; the run without truncation is sampled as
cheaply as ever, and gives up what truncation may add to δ.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.plan.common import whole
from pyaccount.plan.rare_truncation import RareTruncation
from pyaccount.plan.samplers import truncated
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyaccount.document import Body, Document

SOURCE = "what rare truncation adds: proven beside the code, in pyaccount.plan.rare_truncation"

#: The share of δ that may be given up: little where plain samples are cheap, more where they are not.
LITTLE, MUCH = 1.0 / 16.0, 0.5
#: Rounds of plain samples, of all together, from which on they are not: minutes of one core.
DEAR = 2e10
#: Blanks of the guarantee and of the noise: whatever they are, a batch is truncated as often.
BLANKS = ("multiplier", "epsilon", "delta")
#: Larger batches are not tabulated: Chernoff's bound is used.
TABULATED = 1e9
#: Rates are rounded up to so many bits, so that few differ; and what their computation may be off by, for each round.
BITS, ROUNDING = 17, 1e-15
#: The most rates whose tails are computed.
MOST_RATES = 1000


def known(document: Document) -> bool:
    """Whether it is known how often a batch is truncated: rates and rounds are given. Other blanks are refused."""
    return document.blank is None or document.blank[-1] in BLANKS


def preferred(document: Document, body: Body, found: RareTruncation) -> bool:
    """Whether the run without truncation is sampled: what truncation may add is a small enough share of δ.

    Where δ is the blank a share of it is not known. Then this is done where the same would be done at a δ of which it is little:
    at a larger one it is less, and at a smaller one plain samples take even longer.
    """
    privacy, rounds = document.privacy, whole(body.training.iterations)
    # The phases share out what may be given up.
    added = len(document.bodies) * body.count * found.most
    if privacy.delta == "solve":
        return added <= LITTLE and _dear(max(added, 1e-300) / LITTLE, rounds)
    return added <= (MUCH if _dear(privacy.delta, rounds) else LITTLE) * privacy.delta


def _dear(delta: float, rounds: int) -> bool:
    """Whether the plain samples of a test that accepts δ take long, even if the truth is half of it (see `plan.cost`)."""
    return rounds * 7.0 * math.log(100.0 / delta) / delta > DEAR


def upper_tail(records: int, rate: float, count: int) -> float:
    """An upper bound on Pr[Bin(records, rate) ≥ count]: the tail itself, rounded up."""
    if records * rate > TABULATED:
        return truncated.upper_tail(records, rate, count)
    return _core.binomial_upper_tail(records, min(1.0, rate), count)


def cold_rates(probability: float, separation: int, rounds: int) -> Iterator[float]:
    """Pr[x_i = 1] for each round, where all are available at first, from above.

    It is p·a_i, a_i the probability to be available: a_1 = 1, and a_{i+1} = (1 − p)a_i + p·a_{i+1−b}, those who were available
    and not drawn, and those who are back (b rounds after they were drawn). No term is negative, so each round adds a few units of
    rounding, relatively.
    """
    margin = probability * (1.0 + rounds * ROUNDING)
    available: list[float] = []
    for i in range(rounds):
        back = available[i - separation] if i >= separation else 0.0
        available.append((1.0 - probability) * available[-1] + probability * back if available else 1.0)
        yield min(1.0, margin * available[-1])


def counted(rates: Iterable[float]) -> list[tuple[float, int]]:
    """Rates, rising, and how often they are met: rounded up so that few differ, and neighbours taken for one if many still do."""
    met: Counter[float] = Counter()
    for rate in rates:
        mantissa, exponent = math.frexp(rate)
        met[math.ldexp(math.ceil(math.ldexp(mantissa, BITS)), exponent - BITS)] += 1
    found = sorted(met.items())
    size = math.ceil(len(found) / MOST_RATES)
    groups = (found[k : k + size] for k in range(0, len(found), size))
    return [(group[-1][0], sum(count for _, count in group)) for group in groups]


def of_renewal(hit: float, full: float, probability: float, separation: int) -> RareTruncation:
    """From E e and Σ_i Pr[r_i ≥ B]: E z is the latter times π = ρ/(1 + ρ), ρ = p(1 − p)^{−b}."""
    share = 1.0
    if probability < 1.0:
        joins, stays = math.log(probability), separation * math.log1p(-probability)
        # 1/(1 + 1/ρ); the difference is off by a few units of rounding of its terms.
        ratio = joins - stays + truncated.ROUNDING * (1.0 - joins - stays)
        share = 1.0 / (1.0 + math.exp(-ratio))
    more = 1.0 + truncated.ROUNDING
    return RareTruncation(min(1.0, hit * more), min(1.0, full * share * more))


def remark(body: Body, found: RareTruncation) -> str:
    """How seldom, and what it costs at most."""
    runs = "" if body.count == 1 else " for each run"
    return (
        "The expected batch size is that of the records drawn, before truncation. A record is ever in a batch that is truncated "
        f"with probability at most {up(found.hit, 2)}; truncation adds no more than twice that to δ where a record is removed, "
        f"and no more than {up(found.missed, 2)} where it is added{runs}."
    )
