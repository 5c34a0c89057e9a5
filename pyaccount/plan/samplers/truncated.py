"""Truncated batches: of a batch with more than B records, B are kept at random.

In a truncated batch the sensitive record takes the place of another one, so the sum of the rest moves with it. The numbers r of
other records that were drawn do not depend on it. The analysis releases them; given r, the pair is (1 | 0) in a round with r < B,
and (2 | −1), with probability B/(r + 1) of surviving, in a round with r ≥ B. Rounds of Poisson sampling then compose; for
b-min-sep sampling and balls in bins the pair on the whole run is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import GROUP_LEMMA, SECRET, number, refused_groups
from pyaccount.plan.protection import Protection
from pyaccount.rounding import up

NORMALISATION = Assumed(
    "Sums are normalised by a constant, the expected batch size or B, never by the number of records drawn or kept.",
    "Sums are divided by a constant, never by the number drawn or kept.",
)
COUNTS = Assumed(
    "The data set's size is public. The bound would hold even if the numbers of other records drawn were known; the sizes of the "
    "batches as drawn, which the sensitive record is part of, are not released.",
    "The data set's size is public; the sizes of drawn batches are not released.",
)
SOURCE = (
    "Dong & Ganesh 2026 (arXiv:2602.09338), Appendix D; Ganesh 2025 (arXiv:2508.15089); ±1 by their Lemma D.1, and joint "
    "convexity over the other records' draws"
)

#: A bound on the relative rounding error of a product and a quotient.
ROUNDING = 1e-12


def refusals(asked: Protection, own: list[Problem]) -> list[Problem]:
    """Return the sampler's `own` refusals of truncation, and those that apply to every sampler."""
    problems = list(own)
    if asked.privacy.adjacency != "zero-out":
        message = (
            "whether a batch is truncated depends on the number of records, and in a truncated batch a record displaces "
            "another one; truncated batches are analysed only for a record whose contribution is set to zero (zero-out)"
        )
        problems.append(asked.refusal(("privacy", "adjacency"), message, allowed="zero-out"))
    groups = "with truncated batches no bound is implemented for groups of records, which displace other records and each other"
    return [*problems, *refused_groups(asked, f"{groups}; {GROUP_LEMMA}")]


def assumptions(run: TrainingNode, usual: tuple[Assumed, ...], kept: str) -> tuple[Assumed, ...]:
    """Return the assumptions for truncated batches; `kept` says what happens to records that are left out."""
    limit = run.truncation()
    cut = Assumed(
        f"Of a batch with more than {limit} records {limit} are kept, chosen uniformly at random each time; "
        f"smaller batches may be padded with empty records. {kept}",
        f"Of a larger batch {limit} records are kept, drawn anew each time.",
    )
    return sized(usual, cut)


def sized(usual: tuple[Assumed, ...], cut: Assumed) -> tuple[Assumed, ...]:
    """Return the assumptions with `cut`, how batches are truncated, and what may then be known of their sizes."""
    *rest, secret, _ = usual
    assert secret == SECRET
    return (*rest, cut, secret, COUNTS, NORMALISATION)


def truncation_note(run: TrainingNode, largest_rate: Callable[[], float]) -> str:
    """State an upper bound on the probability that a batch is truncated.

    Each record is in a batch with at most the largest rate, independently of the other records.
    """
    if run.training.expected_batch_size == "solve":
        return "The expected batch size is that of the records drawn, before truncation."
    limit, records = number(run.truncation()), number(run.training.dataset_size)
    return (
        "The expected batch size is that of the records drawn, before truncation; a batch is truncated with probability at most "
        f"{up(chernoff_tail(records, largest_rate(), limit + 1), 2)} (Chernoff)."
    )


def lower_end(displaced: float | None) -> str:
    """Describe the data sets of the lower bound.

    `displaced` bounds the probability that the record is ever in a truncated batch; None while it is unknown.
    """
    most = "" if displaced is None else f", {up(displaced, 2)} at most"
    return (
        "two data sets: the record contributes 1, or 0, and nobody else contributes. All rounds, sampled as if no batch were "
        f"truncated; the probability that the record is ever in a truncated batch{most}, is taken off (add: times e^ε)."
    )


def chernoff_tail(records: int, rate: float, count: int) -> float:
    """Return Chernoff's upper bound on Pr[Bin(records, rate) ≥ count]: e^{−n·KL(count/n‖rate)} above the mean."""
    if count > records:
        return 0.0
    share = count / records
    if share <= rate:
        return 1.0
    divergence = share * math.log(share / rate)
    if share < 1.0:
        divergence += (1.0 - share) * (math.log1p(-share) - math.log1p(-rate))
    # The two terms nearly cancel if the share is close to the rate, so a margin covers their rounding.
    slack = 1e-15 * share * (1.0 + abs(math.log(rate)))
    return min(1.0, math.exp(-records * max(0.0, divergence - slack)))
