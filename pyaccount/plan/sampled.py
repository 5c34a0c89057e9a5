"""Samplers whose rounds are not independent, with a matrix: a dominating pair on the whole run, judged by sampling.

One record takes part in a random pattern x of rounds, so the run is dominated by P = Σ_x w_x N(Cx, σ²I) against N(0,
σ²I), or against Σ_x w_x N(−Cx, σ²I) under replacement. The likelihood ratio of a sample is a recursion of n steps
(b-min-sep) or a sum over bins (balls in bins).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import SampledDirection, sampled_directions
from pyaccount.document import (
    BLT,
    UNBANDED,
    BallsInBins,
    BandedInverse,
    BMinSep,
    CyclicPoisson,
    Dense,
    Identity,
    Poisson,
    UserBMinSep,
    bins,
    participation_rate,
    sampling_probability,
    separation,
    truncation,
)
from pyaccount.plan.common import (
    NORMALISATION,
    OTHER_BLANKS,
    SECRET,
    basic_assumptions,
    number,
    rounds_text,
    shown,
    whole,
)
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.strategy import strategy
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem
    from pyaccount.plan.strategy import Strategy

#: Nanoseconds for a sample and a step on one core, and for a pair of bins: what the kernel takes on a machine of 2024.
STEP_COST, BINS_COST = 6.0, 0.3
#: And for each further record of a user.
USER_COST = 1.0
#: And where columns meet: for each buffer and product of a BLT, for the transforms of a full column, for each entry.
BUFFER_COST, TRANSFORM_COST, ENTRY_COST = 0.5, 20.0, 0.15
#: For the number of other records in a round or a bin.
COUNT_COST = 16.0
#: What a sample takes however few bins there are.
LEAST_COST = 200.0


@dataclass(frozen=True, slots=True)
class SampledMechanism:
    """A mechanism to be sampled: the core's handle, the hockey sticks that matter, and what a sample costs."""

    core: _core.Sampled
    directions: tuple[SampledDirection, ...]
    #: Rounds of the recursion, or bins.
    steps: int
    #: Rough nanoseconds for one sample on one core.
    cost: float
    #: What the proposal's parameter is: the probability of the recursion, or the exponent of the bins' weights (0: equal).
    plain_parameter: float
    #: What lower ends are sampled from where the pair above is not attained; None where it is.
    lower: SampledMechanism | None = None
    #: Whether its losses are enclosed rather than exact: then those of `lower` are never larger than the true ones.
    enclosed: bool = False
    #: How much δ of a mechanism that stands for lower ends may exceed the true one (remove; add: e^ε times that).
    overstated: float = 0.0
    #: Those of further mechanisms that are sampled together with the first.
    others: tuple[float, ...] = ()
    #: What is composed with the sampled mechanisms, as samples of each direction see it; empty if nothing is.
    curves: Mapping[SampledDirection, _core.ComposedCurve] = field(default_factory=dict)

    @property
    def plain_parameters(self) -> tuple[float, ...]:
        """The parameters of plain sampling, one for each mechanism."""
        return (self.plain_parameter, *self.others)

    def floor(self, direction: SampledDirection) -> float:
        """What the curve leaves to be added to the mean of samples, a constant."""
        return self.curves[direction].floor if direction in self.curves else 0.0


def words(document: Document, body: Body) -> Reduction:
    """The pair on the whole run; see the head of this file."""
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
            f"Every record is put in one of {bins(body)} bins uniformly at random, independently of the others, "
            f"{'once' if body.count == 1 else 'anew for each run'}; iteration i uses the records of bin i mod {bins(body)}."
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
        start, at_first = START[getattr(body.sampler, "start", "cold")]
        law = (
            f"x = a renewal process: while available, joins with probability {p!r}, then sits out {b - 1} rounds; "
            f"{start} at first"
        )
        source = "Dong & Ganesh 2026 (arXiv:2602.09338), Sections 4 and 5; attained by gradients 1"
        sampling = (
            f"Every record joins each iteration in which it is available with probability {p!r}, independently of the "
            f"others, and is unavailable for the next {b - 1} iterations after joining; {at_first}."
        )
    remark = None if in_bins or not isinstance(body.matrix, UNBANDED) else _enclosed(document, body)
    return Reduction(
        path=body.path,
        subject=f"{_subject(body)}, {matrix_text(body)}",
        theorem="dominating pair on the whole run: mixtures over participation patterns",
        source=source if remark is None else f"{source}; the enclosure of the likelihood ratio: its Appendix B",
        pair=f"{pair}; {law}",
        rounds=rounds_text(body),
        tight=remark is None,
        remark=remark,
        assumptions=(
            *basic_assumptions(privacy, body),
            sampling,
            *(() if body.count == 1 else (RUNS,)),
            SECRET,
            NORMALISATION,
        ),
        components=1,
    )


#: Of a body that is run several times.
RUNS = "The runs of a phase draw their batches and their noise independently of one another."

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


def mechanism(document: Document, body: Body) -> SampledMechanism:
    """What is sampled: the likelihood ratio of one run."""
    built, limit = _untruncated(document, body), truncation(body)
    if limit is None:
        return built
    assert body.training.dataset_size is not None
    core = built.core.truncated(body.training.dataset_size, limit)
    # The pair that releases the others' counts is not attained: lower ends are those of records that nothing displaces.
    lower = replace(built, overstated=_displaced(body, limit))
    return replace(built, core=core, cost=built.cost + COUNT_COST * built.steps, lower=lower)


def _displaced(body: Body, limit: int) -> float:
    """An upper bound on the probability that the sensitive record is ever in a batch with `limit` or more others.

    The others' counts do not depend on its own draws: the expected number of these times the largest probability of such a count.
    Whoever else contributes nothing, the run differs from one without truncation by no more in total variation.
    """
    assert body.training.dataset_size is not None
    rate, others = largest_rate(body), body.training.dataset_size - 1
    if isinstance(body.sampler, BallsInBins):
        return upper_tail(others, rate, limit)
    n, b = whole(body.training.iterations), separation(body) or 1
    return min(1.0, min(n * rate, math.ceil(n / b)) * upper_tail(others, rate, limit) * (1.0 + 1e-12))


def largest_rate(body: Body) -> float:
    """The largest probability, over the rounds, that a record is in the batch: with a cold start that of the first round."""
    cold = isinstance(body.sampler, BMinSep) and body.sampler.start == "cold"
    return sampling_probability(body) if cold else participation_rate(body)


def upper_tail(records: int, rate: float, count: int) -> float:
    """An upper bound on Pr[Bin(records, rate) ≥ count]: Chernoff's, e^{−n·KL(count/n‖rate)} above the mean."""
    if count > records:
        return 0.0
    share = count / records
    if share <= rate:
        return 1.0
    divergence = share * math.log(share / rate)
    if share < 1.0:
        divergence += (1.0 - share) * (math.log1p(-share) - math.log1p(-rate))
    # The two terms nearly cancel where the share is close to the rate: a margin for their rounding.
    slack = 1e-15 * share * (1.0 + abs(math.log(rate)))
    return min(1.0, math.exp(-records * max(0.0, divergence - slack)))


def _untruncated(document: Document, body: Body) -> SampledMechanism:
    sigma = number(body.noise.multiplier)
    built = strategy(document, body)
    directions = sampled_directions(document.privacy.adjacency)
    if isinstance(body.sampler, BallsInBins):
        count = bins(body)
        gram, _ = built.bin_gram(count)
        core = _core.Sampled.bins([entry / (sigma * sigma) for entry in gram], built.iterations)
        return SampledMechanism(core, directions, count, max(LEAST_COST, BINS_COST * count * count), 0.0)
    p = sampling_probability(body)
    if isinstance(body.matrix, UNBANDED):
        return _overlapping(document, body, sigma, directions)
    assert built.coefficients is not None
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


def _overlapping(
    document: Document, body: Body, sigma: float, directions: tuple[SampledDirection, ...]
) -> SampledMechanism:
    """b-min-sep sampling with columns that may be longer than the separation."""
    assert isinstance(body.sampler, BMinSep | UserBMinSep)
    matrix_columns, steps = columns(document, body), whole(body.training.iterations)
    k_u = body.sampler.records_per_user if isinstance(body.sampler, UserBMinSep) else 1
    warm = body.sampler.start == "warm"
    above, below = (
        _core.Sampled.overlapping(matrix_columns, sigma, sampling_probability(body), k_u, warm, side)
        for side in (False, True)
    )
    matrix = body.matrix
    if isinstance(matrix, Dense):
        product = ENTRY_COST * steps
    elif isinstance(matrix, BLT):
        product = 2.0 * BUFFER_COST * ((matrix.buffers or 0) if matrix.scales is None else len(matrix.scales))
    else:
        product = TRANSFORM_COST
    cost = (STEP_COST + USER_COST * (k_u - 1) + product) * steps
    lower = SampledMechanism(below, directions, steps, cost, below.plain_parameter, enclosed=True)
    return SampledMechanism(above, directions, steps, cost, above.plain_parameter, lower, enclosed=True)


def columns(document: Document, body: Body) -> _core.Columns:
    """The matrix for the core, with what its columns share."""
    return _meeting(strategy(document, body), separation(body) or 1)


@lru_cache(maxsize=4)
def _meeting(built: Strategy, min_separation: int) -> _core.Columns:
    if built.buffers is not None and built.coefficients is not None:
        return _core.Columns.buffers(built.coefficients[0], *built.buffers, built.iterations, min_separation)
    if built.coefficients is not None:
        rest = built.iterations - len(built.coefficients)
        return _core.Columns.toeplitz((*built.coefficients, *([0.0] * rest)), min_separation)
    assert built.dense is not None
    entries = [entry for i in range(built.iterations) for entry in built.dense[i:, i].tolist()]
    return _core.Columns.dense(entries, built.iterations, min_separation)


def _enclosed(document: Document, body: Body) -> str | None:
    """What is given up where columns meet; None where they do not."""
    b = separation(body) or 1
    if body.training.iterations == "solve" or body.training.iterations <= b:
        return None
    gap = columns(document, body).gap
    if gap == 0.0:
        return None
    sigma = body.noise.multiplier
    most = f"{up(gap, 4)}/σ²" + ("" if sigma == "solve" else f" = {up(gap / (sigma * sigma), 4)}")
    return (
        f"columns are longer than the separation {b}, so the likelihood ratio is enclosed between two recursions and the loss is "
        f"the one that is never too small; none is overstated by more than {most} (½ Σ Γ_i of the worst pattern), those of "
        "likely patterns by much less"
    )


def together(parts: Sequence[tuple[SampledMechanism, int]]) -> SampledMechanism:
    """Mechanisms that are run so many times each, independently: the likelihood ratio of all is the product of theirs."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    core = _core.Sampled.together([(part.core, runs) for part, runs in parts])
    first, *others = core.plain_parameters
    return SampledMechanism(
        core,
        # Adjacency is the document's, so all parts have the same directions.
        parts[0][0].directions,
        sum(part.steps * runs for part, runs in parts),
        sum(part.cost * runs for part, runs in parts),
        first,
        lower=None
        if all(part.lower is None for part, _ in parts)
        else together([(part.lower or part, runs) for part, runs in parts]),
        enclosed=any(part.enclosed for part, _ in parts),
        overstated=sum(part.overstated * runs for part, runs in parts),
        others=tuple(others),
    )


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


def mixed_units(document: Document) -> list[Problem]:
    """Phases that protect single records beside ones that protect users."""
    return [
        document.problem(
            "no-valid-bound",
            other.at("sampler", "kind"),
            "another phase protects users, and this one protects single records: of one user it may draw several, "
            "which its analysis does not count",
            allowed="user-b-min-sep in every phase",
        )
        for other in document.bodies
        if not isinstance(other.sampler, UserBMinSep)
    ]


def refusals(document: Document, body: Body) -> list[Problem]:
    """What this analysis does not cover."""
    problems = group_refusals(document, body.sampler.kind)
    if isinstance(body.sampler, UserBMinSep):
        problems += mixed_units(document)
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
    if isinstance(body.sampler, CyclicPoisson | Poisson) and isinstance(body.matrix, UNBANDED):
        problems.append(
            document.problem(
                "no-valid-bound",
                body.at("matrix", "kind"),
                f"the analysis of {body.sampler.kind} sampling needs a banded Toeplitz matrix; with any other, b-min-sep and "
                "balls-in-bins are analysed",
                allowed="a banded matrix, or the sampler b-min-sep or balls-in-bins",
            )
        )
    parts, rounds = separation(body) or 1, body.training.iterations
    if isinstance(body.sampler, CyclicPoisson) and rounds != "solve" and parts > rounds:
        message = f"there are {parts} random parts, but only {rounds} iterations: some parts never have a turn"
        field = "partitions" if body.sampler.partitions is not None else "kind"
        problems.append(
            document.problem("contradiction", body.at("sampler", field), message, allowed=f"at most {rounds} parts")
        )
    blank = document.blank
    if blank is not None and blank[-1] not in ("multiplier", "epsilon", "delta", "group_size"):
        problems.append(
            document.problem(
                "no-valid-bound",
                blank,
                "with a sampled analysis the blank is noise.multiplier, privacy.epsilon or privacy.delta",
                allowed=OTHER_BLANKS,
            )
        )
    return problems


ANALYSIS = Analysis(words, mechanism=mechanism, refusals=refusals)
