"""Poisson sampling: mixtures of Gaussians, which are tight for every adjacency and group size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pyaccount import _core
from pyaccount.document.samplers import Poisson
from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import (
    NORMALISATION,
    SECRET,
    basic_assumptions,
    number,
    rounds,
    rounds_text,
    unknown_group,
    value_or_symbol,
)
from pyaccount.plan.protection import RunCase
from pyaccount.plan.rounds import DirectedBounds, enclosed, tight
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.base import InPlace, Worst, public_participation
from pyaccount.plan.samplers.renewal import STEP_COST, Renewal
from pyaccount.plan.samplers.whole_run import PATTERNS
from pyaccount.plan.theorem import EVERY_ROUND, Reduction, Theorem
from pyaccount.profiles import GaussianProfile, PoissonProfile, TruncatedPoissonProfile
from pyaccount.profiles.base import Recipe

#: How batches are drawn if a round has one draw.
DRAWN = Assumed(
    "Every record enters every batch independently with the stated probability (Poisson sampling); a shuffled or "
    "fixed-size loader does not satisfy this.",
    "Every record joins every batch independently (Poisson), never by shuffling.",
)


def _times(symbol: str, draws: int) -> str:
    """Return a symbol times the number of draws of a round."""
    return symbol if draws == 1 else f"{draws}{symbol}"


def _counted_draws(group: int | str, draws: int) -> str:
    """Explain what j counts in the pair if a round has several draws."""
    who = "a record" if group == 1 else "the records of the group"
    each = "" if group == 1 else " each"
    return f"j is how often {who} may be drawn in a round, {draws} times{each} at most: each draw is a coin of its own."


def countable(case: RunCase, records: int) -> bool:
    """Whether the probabilities of how many of several records join are numbers that doubles hold with full precision."""
    if records == 1 or case.node.training.expected_batch_size == "solve":
        return True
    p = case.node.sampling_probability()
    return records <= MOST_RECORDS and (p >= 1.0 or min(p, 1.0 - p) ** records >= LEAST_CHANCE)


def _several(run: TrainingNode, draws: int) -> tuple[Assumed, ...]:
    """Return the assumptions about the draws of a round, and about which of them make a batch."""
    expected = run.expected_batch_size()
    size = "" if expected is None else f", {expected:.10g} records in the mean, each counted as often as it is drawn"
    texts = (
        Assumed(
            f"For every iteration {draws} batches are drawn, independently of one another and of those of other iterations; "
            "every record enters each of them independently with the stated probability (Poisson sampling). A shuffled or "
            "fixed-size loader does not satisfy this, and neither do several passes over one batch that was drawn once.",
            f"A record joins each of an iteration's {draws} batches independently.",
        ),
        Assumed(
            f"The contributions of all {draws} batches of an iteration are summed, a record's as often as it was drawn and "
            "clipped each time, and noise is added once, to that sum; nothing is released of a single batch.",
            "Noise is added once, to the sum of all batches of an iteration.",
        ),
    )
    if run.own_probabilities is not None:
        # Records with different probabilities have no common expected batch size.
        return texts
    together = f"The expected batch size is that of all {draws} batches of an iteration together"
    return (*texts, Assumed(f"{together}{size}.", f"{together}."))


def words(case: RunCase, subject: str = "Poisson sampling") -> Reduction:
    """Return the theorem: Σ_j Bin(j; k, p) N(j, σ²) against N(0, σ²), or Σ_j Bin(j; k, p) N(−j, σ²) under replace-one.

    With m draws in a round, k is m times as large. What one record adds to the round's sum in its m draws is what m
    records add in one: each draw of each of them is an independent coin, and each moves the sum by at most 1. So the m
    draws of a group of k are one draw of k·m records, to which the theorems apply, and the same gradients attain the
    bound.
    """
    privacy, draws = case.asked.privacy, case.node.draws_per_iteration()
    two_sided = privacy.adjacency == "replace-one"
    blank_rate = case.node.training.expected_batch_size == "solve"
    k = value_or_symbol(
        privacy.group_size if privacy.group_size == "solve" else draws * privacy.group_size, _times("k", draws)
    )
    p = "p" if blank_rate else repr(case.node.sampling_probability())
    sigma = value_or_symbol(case.node.noise.multiplier, "σ")
    mixture = f"Σ_j Bin(j; {k}, {p})·N({{sign}}j, {sigma}²)"
    other = mixture.format(sign="−") if two_sided else f"N(0, {sigma}²)"
    return Reduction(
        path=case.node.path,
        subject=subject if draws == 1 else f"{subject}, {draws} draws in each round",
        theorem=(
            "dominating pair of Gaussian mixtures for groups under replacement"
            if two_sided
            else "dominating pair of Gaussian mixtures for groups"
        ),
        source=(
            "Choquette-Choo et al. 2023, Lemma 4.6, applied to both mixtures; attained by gradients +1 and −1"
            if two_sided
            else "Ganesh 2024 (arXiv:2401.10294), Theorem 3.1; attained by gradients 0 and −1 (its Section 3.3)"
        ),
        pair=f"{mixture.format(sign='')} against {other}",
        rounds=rounds_text(case.node),
        tight=True,
        remark=None if draws == 1 else _counted_draws(privacy.group_size, draws),
        assumed=(
            *basic_assumptions(privacy),
            *((DRAWN,) if draws == 1 else _several(case.node, draws)),
            SECRET,
            NORMALISATION,
        ),
    )


def bounds(case: RunCase) -> DirectedBounds:
    """Return the pair of every round."""
    privacy = case.asked.privacy
    two_sided = privacy.adjacency == "replace-one"
    group = number(privacy.group_size) * case.node.draws_per_iteration()
    rate, noise = case.node.sampling_probability(), number(case.node.noise.multiplier)
    if rate >= 1.0:
        # Every record is in every batch, so a round is a Gaussian mechanism.
        whole = GaussianProfile(2.0 * group if two_sided else float(group), noise)
        return tight(whole, whole, rounds(case.node))
    # Under replace-one the two mixtures are mirror images, so both directions have the same profile.
    remove, add = (
        PoissonProfile(group, rate, noise, two_sided, reverse=reverse and not two_sided) for reverse in (False, True)
    )
    return tight(remove, add, rounds(case.node))


def _kept(records: int, p: float, limit: int) -> float:
    """Return a lower bound on the probability that a record is drawn for a round and kept.

    It is p·s, s = E min(1, B/(r + 1)) with r ~ Bin(N − 1, p) other records. As C(N − 1, r)/(r + 1) = C(N, r + 1)/N, s =
    Pr[r < B] + B/(Np)·Pr[Bin(N, p) > B]; and s ≥ B/N in any case.
    """
    cut = 0.0
    if records * p <= rarely.TABULATED:
        # Tails are rounded up by less than these constants, so this is a lower bound.
        tail = max(0.0, (1.0 - TAIL_ERROR) * rarely.upper_tail(records, p, limit + 1) - LEAST_TAIL)
        cut = limit / (records * p) * tail
    kept = 1.0 - rarely.upper_tail(records - 1, p, limit) + cut
    return p * max(kept * (1.0 - TAIL_ERROR), limit / records) * (1.0 - truncated.ROUNDING)


#: The most by which a tail may have been rounded up, relatively and absolutely.
TAIL_ERROR, LEAST_TAIL = 2e-9, 2e-280
#: The largest number of windows of the rounds that a column reaches for which the likelihood ratio is computed exactly, each
#: with the next round; and the nanoseconds that a sample takes for each of them.
MOST_WINDOWS, WAY_COST = 4096, 0.4
#: The most records that are counted together, and the least probability of a count.
MOST_RECORDS, LEAST_CHANCE = 64, 1e-250
#: What happens to records that are left out of a truncated batch.
KEPT = "Later iterations draw from all records again."


class PoissonRounds(InPlace[Any]):
    """Rounds of Poisson sampling, which compose."""

    alike: ClassVar[bool] = True

    def words(self) -> Reduction:
        """Return the theorem of the rounds."""
        return words(self)

    def bounds(self) -> DirectedBounds:
        """Return the pair of every round."""
        return bounds(self)


class SameAsPoisson(PoissonRounds):
    """Rounds of a sampler of another name that equals Poisson sampling."""

    def words(self) -> Reduction:
        """Return the theorem, with the name of the sampler."""
        return words(self, f"{self.node.sampler.kind} sampling with separation 1, which is Poisson sampling")


class TruncatedPoisson(InPlace[Any]):
    """Truncated batches: rounds that release r, the count of other records, and the sum."""

    def words(self) -> Reduction:
        """Return the theorem for truncated batches: rounds that release r, the count of other records, and the sum."""
        usual, limit = words(self), self.node.truncation()
        return replace(
            usual,
            subject=f"{usual.subject}, batches truncated to {limit}",
            theorem="composition of rounds that release the other records' count",
            source=truncated.SOURCE,
            pair=(
                f"r other records: {usual.pair} if r < {limit}; else, with q = {limit}/(r + 1) times the probability, "
                "(1 − q)N(0) + qN(2) against (1 − q)N(0) + qN(−1)"
            ),
            tight=False,
            remark=truncated.truncation_note(self.node, self.node.sampling_probability),
            assumed=truncated.assumptions(self.node, usual.assumed, KEPT),
            lower_end=(
                "two data sets: the record contributes 1, or 0, and nobody else contributes. All rounds, each as one of Poisson "
                "sampling with the probability to be drawn and kept."
            ),
        )

    def bounds(self) -> DirectedBounds:
        """Return the rounds given r; the lower bound is for data sets whose other records contribute nothing."""
        assert self.asked.privacy.adjacency == "zero-out"
        p, sigma = self.node.sampling_probability(), number(self.node.noise.multiplier)
        records, limit = number(self.node.training.dataset_size), number(self.node.truncation())
        upper = [TruncatedPoissonProfile(records, limit, p, sigma, reverse) for reverse in (False, True)]
        least = _kept(records, p, limit)
        lower = [PoissonProfile(1, least, sigma, two_sided=False, reverse=reverse) for reverse in (False, True)]
        return enclosed((upper[0], upper[1]), (lower[0], lower[1]), rounds(self.node))


class PoissonPlan(Renewal[Poisson]):
    """Rounds that compose; under a matrix, or if samples are requested, the whole run is sampled.

    The records of a group, and the draws of a round, are independent coins: k records that may be drawn m times join a round
    Bin(km, p) times.
    """

    round_by_round: ClassVar[bool] = True
    independent_rounds: ClassVar[bool] = True
    scheduled_noise: ClassVar[bool] = True
    scheduled_rates: ClassVar[tuple[str, ...]] = ("sampling_probability", "expected_batch_size")
    kept: ClassVar[str] = KEPT

    def theorem(self) -> Theorem:
        """Return the analysis of single rounds; under a matrix, or if samples are requested, that of the whole run."""
        if self.asked.accounting.method == "monte-carlo" or self.node.matrix.kind != "identity":
            return super().theorem()
        return (PoissonRounds if self.node.truncation() is None else TruncatedPoisson)(self.asked, self.node, self)

    def cut(self, rounds: int) -> dict[str, Any]:
        """Return no fields: none follows from the length of the run."""
        return {}

    @property
    def covers_matrices(self) -> bool:
        """Whether a matrix is covered, by the pair on the whole run: `own_refusals` says which."""
        return True

    def records(self) -> int:
        """Return how often the group may be drawn in a round."""
        group = self.asked.privacy.group_size
        return self.node.draws_per_iteration() * (group if isinstance(group, int) else 1)

    def unit_refusals(self) -> list[Problem]:
        """Refuse a group that is still unknown."""
        return unknown_group(self)

    def source(self) -> str:
        """Return the source of the proof, which holds for every law of participations."""
        return PATTERNS

    def law(self) -> str:
        """Return the law of x: a coin for each round, and for each record and draw."""
        p, records = self.node.sampling_probability(), self.records()
        return f"x_i = 1 with probability {p!r}" if records == 1 else f"x_i ~ Bin({records}, {p!r})"

    def sampling(self) -> Assumed:
        """Return how batches must be drawn."""
        return (
            DRAWN if self.node.draws_per_iteration() == 1 else _several(self.node, self.node.draws_per_iteration())[0]
        )

    def exact(self) -> bool:
        """Whether columns do not overlap, or the participations of all rounds that a column reaches are few enough to count."""
        bands = self.node.matrix.diagonals()
        return bands is not None and (self.records() + 1) ** bands <= MOST_WINDOWS and countable(self, self.records())

    def own_refusals(self) -> list[Problem]:
        """Refuse matrices under which the participations that a column reaches are too many to count.

        Enclosing the likelihood ratio, as b-min-sep sampling does for long columns, charges each participation with all others
        that its column may meet: with 16 bands and a rate of 0.001 no ε was found in minutes.
        """
        if self.node.matrix.kind == "identity" or self.exact():
            return []
        path, bands = self.node.at("matrix", "kind"), self.node.matrix.diagonals()
        if bands is None:
            message = (
                f"the analysis of {self.node.sampler.kind} sampling with a matrix needs a banded Toeplitz matrix; for another "
                "matrix use b-min-sep or balls-in-bins"
            )
            allowed = "a banded matrix, or the sampler b-min-sep or balls-in-bins"
        else:
            message = (
                f"with {bands} bands and {self.records()} possible draws in a round, the rounds that a column reaches have too "
                "many patterns; use fewer bands, or b-min-sep or balls-in-bins, which keep a record's participations apart"
            )
            allowed = "fewer bands, or the sampler b-min-sep or balls-in-bins"
        return [self.asked.refusal(path, message, allowed=allowed)]

    def recursion(self, coefficients: Sequence[float], iterations: int) -> Recipe[_core.Sampled]:
        """Return the recipe of the core's mechanism: a recursion over who took part in the last rounds."""
        p, records = self.node.sampling_probability(), self.records()
        if len(coefficients) == 1 and records == 1:
            return super().recursion(coefficients, iterations)
        return Recipe("Sampled.windows", (tuple(coefficients), iterations, p, records))

    def step_cost(self) -> float:
        """Return the nanoseconds of a step: those of a coin, and of each way from one window to the next."""
        bands = self.node.matrix.diagonals() or 1
        if bands == 1 and self.records() == 1:
            return super().step_cost()
        return STEP_COST + WAY_COST * float((self.records() + 1) ** bands)

    def truncation_refusals(self) -> list[Problem]:
        """Refuse truncation with a matrix, and with several draws in a round, each of which may be truncated."""
        path = self.node.at("sampler", "truncate_to")
        if self.node.matrix.kind != "identity":
            message = (
                "with a matrix, truncated batches are analysed only if a record's participations are kept apart: use b-min-sep "
                "or balls-in-bins, or leave truncate_to out"
            )
            return [self.asked.refusal(path, message, allowed="no truncation")]
        if self.node.draws_per_iteration() == 1:
            return []
        message = (
            "truncation is analysed for one draw in a round: with several, a record may survive one of them and not another; "
            "leave truncate_to out, or draws_per_iteration"
        )
        return [self.asked.refusal(path, message, allowed="no truncation")]

    def worst(self) -> Worst:
        """Return that a record is in every draw of every round."""
        draws = self.node.draws_per_iteration()
        if self.node.matrix.kind != "identity":
            return public_participation(self, draws)
        words = EVERY_ROUND if draws == 1 else f"{EVERY_ROUND}, drawn {draws} times"
        return Worst(words, lambda: float(draws), rounds(self.node))

    def largest_batch(self) -> int:
        """Return the size of a batch with every record in every draw."""
        return self.node.draws_per_iteration() * super().largest_batch()

    def largest_rate(self) -> float:
        """Return the probability that a record is in at least one draw of a round."""
        draws = self.node.draws_per_iteration()
        return super().largest_rate() if draws == 1 else _at_least_once(self.node.sampling_probability(), draws)

    def distinct_records(self) -> float | None:
        """Return N(1 − (1 − p)^m), the expected number of distinct records in m draws; None without a data set size."""
        draws, records = self.node.draws_per_iteration(), self.node.training.dataset_size
        if draws == 1 or records is None or not self.node.has_one_rate:
            return super().distinct_records()
        return records * _at_least_once(self.node.sampling_probability(), draws)


def _at_least_once(probability: float, draws: int) -> float:
    """Return 1 − (1 − p)^m, the probability of at least one success in m draws."""
    return 1.0 if probability >= 1.0 else -math.expm1(draws * math.log1p(-probability))
