"""Samplers whose rounds are not independent, with a matrix: a dominating pair on the whole run, judged by sampling.

One record takes part in a random pattern x of rounds, so the run is dominated by P = Σ_x w_x N(Cx, σ²I) against N(0,
σ²I), or against Σ_x w_x N(−Cx, σ²I) under replacement. The likelihood ratio of a sample is a recursion of n steps
(b-min-sep) or a sum over bins (balls in bins).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyaccount import _core
from pyaccount.document import (
    BLT,
    UNBANDED,
    BallsInBins,
    BandedInverse,
    CyclicPoisson,
    Dense,
    Identity,
    UserBMinSep,
    bins,
    sampling_probability,
    separation,
    truncation,
)
from pyaccount.errors import DocumentError
from pyaccount.plan.common import NORMALISATION, SECRET, basic_assumptions, number, shown
from pyaccount.plan.reduction import DirectedBounds, Reduction
from pyaccount.plan.strategy import strategy

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem

Direction = Literal["remove", "add", "replace"]

#: Nanoseconds for a sample and a step on one core, and for a pair of bins: what the kernel takes on a machine of 2024.
STEP_COST, BINS_COST = 6.0, 0.3
#: And for each further record of a user.
USER_COST = 1.0
#: For the number of other records in a round or a bin.
COUNT_COST = 16.0
#: What a sample takes however few bins there are.
LEAST_COST = 200.0


@dataclass(frozen=True, slots=True)
class SampledMechanism:
    """A mechanism to be sampled: the core's handle, the hockey sticks that matter, and what a sample costs."""

    core: _core.Sampled
    directions: tuple[Direction, ...]
    #: Rounds of the recursion, or bins.
    steps: int
    #: Rough nanoseconds for one sample on one core.
    cost: float
    #: What the proposal's parameter is: the probability of the recursion, or the exponent of the bins' weights (0: equal).
    plain_parameter: float


def reduce(document: Document, body: Body) -> Reduction:
    """The pair on the whole run; see the head of this file."""
    _refuse(document, body)
    privacy = document.privacy
    sigma = shown(body.noise.multiplier, "σ")
    two_sided = privacy.adjacency == "replace-one"
    other = f"Σ_x w_x N(−Cx, {sigma}²)" if two_sided else f"N(0, {sigma}²)"
    pair = f"Σ_x w_x N(Cx, {sigma}²) against {other}"
    in_bins = isinstance(body.sampler, BallsInBins)
    if in_bins:
        law = f"x = the rounds of one of {bins(body)} bins, each with probability 1/{bins(body)}"
        source = "Choquette-Choo, Ganesh, Haque, Steinke & Thakurta 2025 (arXiv:2410.06266), Section 4; attained by gradients 1"
        sampling = (
            f"Every record is put in one of {bins(body)} bins uniformly at random, independently of the others, once; "
            f"iteration i uses the records of bin i mod {bins(body)}."
        )
    elif isinstance(body.sampler, CyclicPoisson):
        b, p = separation(body) or 1, sampling_probability(body)
        law = f"x = a phase φ of {b}, each with probability 1/{b}, and of the rounds φ, φ + {b}, … each with probability {p!r}"
        source = (
            "the mixture over patterns, as for b-min-sep sampling (Dong & Ganesh 2026, arXiv:2602.09338, Section 4); attained by "
            "gradients 1"
        )
        sampling = (
            f"Every record is put in one of {b} parts uniformly at random, independently of the others, before the run; the "
            "parts are secret and not used for another run. "
            f"Iteration i draws from part i mod {b}, every record of it independently with probability {p!r}. Parts of equal "
            "size do not satisfy this: their records are not independent."
        )
    elif isinstance(body.sampler, UserBMinSep):
        b, p, k_u = separation(body) or 1, sampling_probability(body), body.sampler.records_per_user
        law = (
            f"x = a renewal process: while available, Bin({k_u}, {p!r}) records join, then all sit out {b - 1} rounds; "
            f"{START[body.sampler.start][0]} at first"
        )
        source = (
            "Dong & Ganesh 2026 (arXiv:2602.09338), Section 6, for users that share no records; attained by gradients 1"
        )
        sampling = users_text(body)
    else:
        b, p = separation(body) or 1, sampling_probability(body)
        start = "stationary" if getattr(body.sampler, "start", "cold") == "warm" else "available at once"
        law = (
            f"x = a renewal process: while available, joins with probability {p!r}, then sits out {b - 1} rounds; "
            f"{start} at first"
        )
        source = "Dong & Ganesh 2026 (arXiv:2602.09338), Sections 4 and 5; attained by gradients 1"
        sampling = (
            f"Every record joins each iteration in which it is available with probability {p!r}, independently of the "
            f"others, and is unavailable for the next {b - 1} iterations after joining; "
            + (
                "at the start each is unavailable for a random number of iterations, drawn from the stationary law."
                if start == "stationary"
                else "at the start all are available."
            )
        )
    return Reduction(
        path=body.path,
        subject=f"{_subject(body)}, {matrix_text(body)}",
        theorem="dominating pair on the whole run: mixtures over participation patterns",
        source=source,
        pair=f"{pair}; {law}",
        rounds=str(body.training.iterations),
        tight=True,
        remark=None,
        assumptions=(
            *basic_assumptions(privacy, body),
            sampling,
            SECRET,
            NORMALISATION,
        ),
        components=1,
        bounds=_unbounded,
        sampled=lambda: _mechanism(document, body),
    )


#: How a start is worded: in the law, and as an assumption.
START = {
    "warm": (
        "stationary",
        "at the start each is unavailable for a random number of iterations, drawn from the stationary law",
    ),
    "cold": ("available at once", "at the start all are available"),
}


def users_text(body: Body) -> str:
    """How users' records are sampled, as an assumption."""
    assert isinstance(body.sampler, UserBMinSep)
    b, p = separation(body) or 1, sampling_probability(body)
    single = body.sampler.attribution == "single"
    return (
        f"No user has more than {body.sampler.records_per_user} records"
        + (", and no record belongs to two users" if single else "; a record may belong to several users")
        + f". In each iteration every record whose {'user is' if single else 'users are all'} available is drawn with "
        f"probability {p!r}, independently of the others; a user with a record in the batch is unavailable for the next {b - 1} "
        f"iterations; {START[body.sampler.start][1]}."
    )


def _subject(body: Body) -> str:
    if isinstance(body.sampler, CyclicPoisson):
        return "cyclic Poisson sampling from random secret parts"
    return "balls in bins" if isinstance(body.sampler, BallsInBins) else f"{body.sampler.kind} sampling"


def _unbounded() -> DirectedBounds:
    raise AssertionError("a sampled mechanism has no rounds to compose")


def _mechanism(document: Document, body: Body) -> SampledMechanism:
    built, limit = _untruncated(document, body), truncation(body)
    if limit is None:
        return built
    assert body.training.dataset_size is not None
    core = built.core.truncated(body.training.dataset_size, limit)
    return replace(built, core=core, cost=built.cost + COUNT_COST * built.steps)


def _untruncated(document: Document, body: Body) -> SampledMechanism:
    sigma = number(body.noise.multiplier)
    built = strategy(document, body)
    directions: tuple[Direction, ...] = (
        ("replace",) if document.privacy.adjacency == "replace-one" else ("remove", "add")
    )
    if isinstance(body.sampler, BallsInBins):
        count = bins(body)
        gram, _ = built.bin_gram(count)
        core = _core.Sampled.bins([entry / (sigma * sigma) for entry in gram], built.iterations)
        return SampledMechanism(core, directions, count, max(LEAST_COST, BINS_COST * count * count), 0.0)
    assert built.coefficients is not None  # `_refuse` has seen to it
    p = sampling_probability(body)
    # Rounded up: with larger coefficients the mechanism is no more private.
    coefficients = [math.nextafter(c / sigma, math.inf) for c in built.coefficients]
    n, b = built.iterations, separation(body) or 1
    if isinstance(body.sampler, UserBMinSep):
        k_u = body.sampler.records_per_user
        core = _core.Sampled.users(coefficients, n, b, p, k_u, body.sampler.start == "warm")
        cost = (STEP_COST + USER_COST * (k_u - 1)) * n
        return SampledMechanism(core, directions, n, cost, core.plain_parameter)
    if isinstance(body.sampler, CyclicPoisson):
        core = _core.Sampled.phases(coefficients, n, b, p)
    else:
        core = _core.Sampled.renewal(coefficients, n, b, p, getattr(body.sampler, "start", "cold") == "warm")
    return SampledMechanism(core, directions, built.iterations, STEP_COST * built.iterations, p)


def matrix_text(body: Body) -> str:
    """The matrix in a few words."""
    matrix = body.matrix
    if isinstance(matrix, Identity):
        return "independent noise"
    if isinstance(matrix, Dense):
        return "dense matrix from a file"
    if isinstance(matrix, BLT):
        return f"BLT matrix of {matrix.buffers if matrix.scales is None else len(matrix.scales)} buffers"
    width = getattr(matrix, "bands", None)
    if isinstance(matrix, BandedInverse):
        return "matrix with a banded inverse" + ("" if width is None else f" ({width} bands)")
    return f"{matrix.kind} matrix" + (f" of {width} bands" if isinstance(width, int) else "")


def group_refusals(document: Document, what: str) -> list[Problem]:
    """Groups of records are not covered."""
    if document.privacy.group_size == 1:
        return []
    message = (
        "a user with all records is protected, and no bound is known for groups of users, whose participations interleave"
        if what == "user-b-min-sep"
        else f"{what} samples each record for itself: no bound is known for groups of records, whose participations "
        "interleave; for users with several records the sampler is user-b-min-sep, with the user as the unit"
    )
    return [document.problem("no-valid-bound", ("privacy", "group_size"), message, allowed="1")]


def refusals(document: Document, body: Body, what: str) -> list[Problem]:
    """What no analysis of a sampler with a matrix covers: groups, repetition, other phases, blanks that change the matrix."""
    problems = group_refusals(document, what)
    if len(document.bodies) > 1 or body.count > 1:
        path = (*body.path, "sampler", "kind") if len(document.bodies) > 1 else (*body.path, "count")
        problems.append(
            document.problem(
                "no-valid-bound",
                path,
                f"{what} is analysed as one run; its composition with other runs is not covered",
                allowed="a single phase with count: 1",
            )
        )
    return problems


def _refuse(document: Document, body: Body) -> None:
    """Raise `DocumentError` for what this analysis does not cover."""
    problems = refusals(document, body, body.sampler.kind)
    method = document.accounting.method
    if method == "pld":
        problems.append(
            document.problem(
                "no-valid-bound",
                ("accounting", "method"),
                f"{body.sampler.kind} has no privacy loss distribution to compose: its rounds depend on one another",
                allowed="auto or monte-carlo",
            )
        )
    if not isinstance(body.sampler, BallsInBins) and isinstance(body.matrix, UNBANDED):
        problems.append(
            document.problem(
                "no-valid-bound",
                body.at("matrix", "kind"),
                f"the recursion for {body.sampler.kind} sampling needs a banded Toeplitz matrix; with any other, "
                "balls-in-bins is analysed",
            )
        )
    blank = document.blank
    if blank is not None and blank[-1] not in ("multiplier", "epsilon", "delta", "group_size"):
        problems.append(
            document.problem(
                "no-valid-bound",
                blank,
                "with a sampled analysis the blank is noise.multiplier, privacy.epsilon or privacy.delta",
            )
        )
    if problems:
        raise DocumentError(problems)
