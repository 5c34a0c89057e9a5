"""Random allocation: in every stretch of t rounds a record takes part in k, chosen at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyaccount.document.samplers import RandomAllocation
from pyaccount.plan.common import (
    NORMALISATION,
    OTHER_BLANKS,
    SECRET,
    basic_assumptions,
    group_refusals,
    number,
    shown,
    whole,
)
from pyaccount.plan.reduction import Analysis, Bounds, DirectedBounds, Reduction, combine, gaussian, tight
from pyaccount.plan.samplers.allocation import RATIO, ROUNDING, allocation, several
from pyaccount.plan.samplers.base import SamplerPlan, Worst

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem

ONE_OF_MANY = (
    "Choquette-Choo et al. 2025 (arXiv:2410.06266) and Feldman & Shenfeld 2025 (arXiv:2502.08202); attained by gradients 1. "
    f"{RATIO}"
)
BLOCKS = (
    "Feldman & Shenfeld 2025 (arXiv:2502.08202): the t rounds are split into k blocks at random and one round is taken from "
    "each, which is the uniform law, so that by joint convexity the composition of the blocks dominates"
)

GIVEN_UP = "Which rounds are a block counts as known; the sampler keeps it secret."
LOWER_END = (
    "two data sets: the record contributes 1, or 0, and nobody else contributes. All rounds, in secret; of an allocation's "
    "outputs y is seen in which narrow cell Σ e^(y/σ²) lies, or Σ y, whichever is better at an ε (with hardly any noise, "
    "or k > 16, Σ y only)."
)


def _sampler(body: Body) -> RandomAllocation:
    assert isinstance(body.sampler, RandomAllocation)
    return body.sampler


def words(document: Document, body: Body) -> Reduction:
    """(1/t) Σ_i N(e_i, σ²I) against N(0, σ²I) for each allocation, or for each of k blocks of one."""
    t, k, sigma = (
        _sampler(body).iterations_per_allocation,
        _sampler(body).participations,
        shown(body.noise.multiplier, "σ"),
    )
    exact = k in (1, t)
    length = f"{t}" if exact else f"{t // k}" if t % k == 0 else f"{t // k} or {t // k + 1}"
    return Reduction(
        path=body.path,
        subject=f"random allocation of {k} of {t} rounds",
        theorem="mixture over the rounds of an allocation"
        if exact
        else "composition of allocations to blocks of rounds",
        source=ONE_OF_MANY if exact else BLOCKS,
        pair=f"(1/T) Σ_i N(e_i, {sigma}²I) against N(0, {sigma}²I), T = {length}",
        rounds=_composed(body, k),
        tight=exact,
        remark=None if exact else GIVEN_UP,
        assumptions=(
            *basic_assumptions(document.privacy),
            f"In every {t} consecutive rounds, from the first on, every record takes part in {k} of them, chosen uniformly at "
            "random, independently of the other records and of other allocations; batches have no fixed size.",
            SECRET,
            NORMALISATION,
        ),
        components=1,
        lower_end=None if exact else LOWER_END,
    )


def _composed(body: Body, each: int) -> str:
    """How many rounds, or blocks of rounds, compose: so many of every allocation."""
    t, n = _sampler(body).iterations_per_allocation, body.training.iterations
    if n != "solve":
        return str(body.count * n // t * each)
    times = body.count if each == t else body.count * each
    return ("" if times == 1 else f"{times} × ") + ("n" if each == t else f"n/{t}")


def bounds(document: Document, body: Body) -> DirectedBounds:
    """Blocks of one round each; from below, where there are several, two data sets."""
    t, k, sigma = _sampler(body).iterations_per_allocation, _sampler(body).participations, number(body.noise.multiplier)
    count = body.count * whole(body.training.iterations) // t
    if k == t:
        # In every round.
        part = gaussian(1.0, sigma)
        return tight(part, part, count * t)
    square = 1.0 / (sigma * sigma)
    sizes = [(t // k, k - t % k), (t // k + 1, t % k)]
    found = combine(
        [allocation(document, ((square, size),), count * blocks) for size, blocks in sizes if blocks],
        merge_gaussians=False,
    )
    if k == 1:
        return found
    # Of two data sets; where there is no law of theirs, of all t rounds together: N(k, tσ²) against N(0, tσ²).
    below = several(document, square, t, k) or 2 * (gaussian(k * (1.0 - ROUNDING), sigma * t**0.5),)
    seen = tight(*below, count)
    return {side: Bounds(found[side].upper, seen[side].lower, found[side].inner) for side in found}


def refusals(document: Document, body: Body) -> list[Problem]:
    """What these pairs do not cover."""
    problems = group_refusals(document, body)
    if document.privacy.adjacency == "replace-one":
        message = (
            "no bound is implemented for a record that is replaced by another: both are allocated, and their rounds differ; "
            "(ε, δ) under add-remove is (2ε, (1 + e^ε)·δ) here, since to replace is to remove one and to add another"
        )
        path = ("privacy", "adjacency")
        problems.append(document.problem("no-valid-bound", path, message, allowed="add-remove or zero-out"))
    if document.accounting.method == "monte-carlo":
        message = "allocations are composed, not sampled"
        problems.append(document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld"))
    batch = body.at("training", "expected_batch_size")
    if document.blank == batch:
        message = "an expected batch follows from the allocation, k rounds of t: it is no blank"
        allowed = f"{OTHER_BLANKS}, or at training.iterations"
        problems.append(document.problem("no-valid-bound", batch, message, allowed=allowed))
    return problems


ANALYSIS = Analysis(words, bounds, refusals=refusals)


class RandomAllocationPlan(SamplerPlan):
    """Allocations that compose."""

    round_by_round: ClassVar[bool] = True
    states_probability: ClassVar[bool] = False

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Without samples, for any k."""
        return ANALYSIS

    def worst(self, document: Document, body: Body) -> Worst:
        """The rounds known."""
        t, k = _sampler(body).iterations_per_allocation, _sampler(body).participations
        taken = body.count * whole(body.training.iterations) // t * k
        words = f"the rounds known: each record in {k} of every {t} rounds"
        return Worst(words, lambda: 1.0, taken)

    def rounds_at_a_time(self, body: Body) -> int:
        """Whole allocations: of one that has begun, all of it counts."""
        return _sampler(body).iterations_per_allocation


PLAN = RandomAllocationPlan()
