"""Truncated batches: of a batch with more than B records, B are kept at random.

Where a batch is truncated the sensitive record takes another one's place, so the others' sum moves with it. The numbers r of
other records that were drawn do not depend on it; they are released, and given them the pair is (1 | 0) in a round with r < B,
and (2 | −1), with the probability B/(r + 1) to survive, in one with r ≥ B. Rounds of Poisson sampling compose then; for
b-min-sep sampling and balls in bins the pair on the whole run is sampled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.document import (
    UNBANDED,
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    UserBMinSep,
    sampling_probability,
    truncation,
)
from pyaccount.plan import poisson, sampled
from pyaccount.plan.common import SECRET, number, rounds
from pyaccount.plan.reduction import Analysis, DirectedBounds, Part, Reduction, enclosed
from pyaccount.rounding import up

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem

NORMALISATION = (
    "Sums are normalised by a constant, the expected batch size or B, never by the number of records drawn or kept."
)
COUNTS = (
    "The data set's size is public. The bound would hold even if the numbers of other records drawn were known; the sizes of the "
    "batches as drawn, which the sensitive record is part of, are not released."
)
SOURCE = (
    "Dong & Ganesh 2026 (arXiv:2602.09338), Appendix D; Ganesh 2025 (arXiv:2508.15089); ±1 by their Lemma D.1, and joint "
    "convexity over the other records' draws"
)

#: More than the few roundings of a product and a quotient.
ROUNDING = 1e-12


def refusals(document: Document, body: Body) -> list[Problem]:
    """Truncated batches that no analysis covers."""
    if getattr(body.sampler, "truncate_to", None) is None:
        return []
    path, problems = body.at("sampler", "truncate_to"), []
    if isinstance(body.sampler, UserBMinSep):
        message = (
            "truncation is analysed for single records, not for users: several of a user's records may be in one batch, and each "
            "may survive or not; b-min-sep samples single records"
        )
        problems.append(document.problem("no-valid-bound", path, message, allowed="no truncation"))
    elif isinstance(body.sampler, CyclicPoisson):
        message = (
            "how often a part's batches are truncated depends on the sizes of the parts, which the document does not give; "
            "b-min-sep sampling with the same separation is analysed with truncated batches"
        )
        problems.append(
            document.problem("no-valid-bound", path, message, allowed="b-min-sep, balls-in-bins or poisson")
        )
    if isinstance(body.sampler, BMinSep) and isinstance(body.matrix, UNBANDED):
        message = (
            "with truncated batches the recursion needs a banded Toeplitz matrix, whose columns do not meet; balls in bins "
            "is analysed with any matrix"
        )
        allowed = "a banded matrix, or the sampler balls-in-bins"
        problems.append(document.problem("no-valid-bound", body.at("matrix", "kind"), message, allowed=allowed))
    if document.privacy.adjacency != "zero-out":
        message = (
            "whether a batch is truncated depends on how many records there are, and where one is it displaces another; "
            "truncated batches are analysed for a record whose contribution is set to zero (zero-out)"
        )
        problems.append(document.problem("no-valid-bound", ("privacy", "adjacency"), message, allowed="zero-out"))
    if document.privacy.group_size != 1:
        message = "with truncated batches no bound is known for groups of records, which displace others and each other"
        problems.append(document.problem("no-valid-bound", ("privacy", "group_size"), message, allowed="1"))
    return problems


def words(document: Document, body: Body) -> Reduction:
    """The pair on the whole run, given the other records' counts."""
    usual = sampled.words(document, body)
    limit = truncation(body)
    law = usual.pair.split("; ", 1)[1]
    return replace(
        usual,
        subject=f"{usual.subject}, batches truncated to {limit}",
        theorem="dominating pair on the whole run given the other records' counts: mixtures over patterns and survivals",
        source=SOURCE,
        pair=(
            f"given r, Σ_x w_x N(Cu) against Σ_x w_x N(Cv): where x takes part u = 1, v = 0 if r < {limit}, else with "
            f"probability {limit}/(r + 1) u = 2, v = −1; {law}"
        ),
        tight=False,
        remark=_remark(body),
        assumptions=_assumptions(body, usual.assumptions),
    )


def poisson_words(document: Document, body: Body) -> Reduction:
    """Rounds of Poisson sampling that release r and the sum, composed."""
    usual, limit = poisson.words(document, body), truncation(body)
    return replace(
        usual,
        subject=f"{usual.subject}, batches truncated to {limit}",
        theorem="composition of rounds that release the other records' count",
        source=SOURCE,
        pair=(
            f"r other records: {usual.pair} if r < {limit}; else, with q = {limit}/(r + 1) times the probability, "
            "(1 − q)N(0) + qN(2) against (1 − q)N(0) + qN(−1)"
        ),
        tight=False,
        remark=_remark(body),
        assumptions=_assumptions(body, usual.assumptions),
        components=64,
    )


def poisson_bounds(document: Document, body: Body) -> DirectedBounds:
    """The rounds given r. The lower end is that of others without contributions."""
    assert document.privacy.adjacency == "zero-out"
    p, sigma, limit = sampling_probability(body), number(body.noise.multiplier), truncation(body)
    assert body.training.dataset_size is not None
    assert limit is not None
    upper = [
        Part("truncated_poisson", (body.training.dataset_size, limit, p, sigma), (("reverse", reverse),))
        for reverse in (False, True)
    ]
    # A record that is drawn survives for certain if r < B, and else with probability B/(r + 1) ≥ B/N.
    records = body.training.dataset_size
    least = p * max(1.0 - sampled.upper_tail(records - 1, p, limit), limit / records) * (1.0 - ROUNDING)
    lower = [
        Part("poisson", (1, least, sigma), (("two_sided", False), ("reverse", reverse))) for reverse in (False, True)
    ]
    return enclosed((upper[0], upper[1]), (lower[0], lower[1]), rounds(body))


#: On the whole run, and of rounds of Poisson sampling.
ANALYSIS = Analysis(words, mechanism=sampled.mechanism, refusals=sampled.refusals)
ROUNDS = Analysis(poisson_words, poisson_bounds)


def _assumptions(body: Body, usual: tuple[str, ...]) -> tuple[str, ...]:
    limit = truncation(body)
    if isinstance(body.sampler, BallsInBins):
        kept = (
            f"Of a bin with more than {limit} records {limit} are kept, chosen uniformly at random once, the same ones whenever "
            "its turn comes; smaller batches may be padded with empty records."
        )
    else:
        kept = f"Of a batch with more than {limit} records {limit} are kept, chosen uniformly at random each time; "
        kept += "smaller batches may be padded with empty records. "
        kept += (
            "A record that is not kept counts as drawn: it sits out the same iterations as one that is."
            if isinstance(body.sampler, BMinSep)
            else "Later iterations draw from all records again."
        )
    *others, secret, _ = usual
    assert secret == SECRET
    return (*others, kept, secret, COUNTS, NORMALISATION)


def _truncation_probability(body: Body) -> float:
    """An upper bound on the probability that a given batch has more than B records.

    Each of N records is in it with the participation rate, independently of the others; with a cold start the first rounds have
    more, but a record joins none with more than the sampling probability.
    """
    limit, records = truncation(body), body.training.dataset_size
    assert limit is not None
    assert records is not None
    return sampled.upper_tail(records, sampled.largest_rate(body), limit + 1)


def _remark(body: Body) -> str | None:
    if body.training.expected_batch_size == "solve":
        return "The expected batch size is that of the records drawn, before truncation."
    return (
        "The expected batch size is that of the records drawn, before truncation; a batch is truncated with probability at most "
        f"{up(_truncation_probability(body), 2)} (Chernoff)."
    )
