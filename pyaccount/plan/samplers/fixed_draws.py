"""Batches of a fixed number of draws: without replacement, with replacement, and in two stages.

A drawn record displaces another one, so the rest of the sum depends on how often the sensitive record was drawn. The pair
`Σ p_j N(j)` against `Σ p_j N(−j)` ignores that and is not an upper bound: two concrete data sets exceed it. The bounds here
account for the displacement. p_j is the probability that the group is drawn j times.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, Self, TypeVar

from pyaccount import _core
from pyaccount.document.ranges import DRAWS
from pyaccount.document.samplers import MustOW, MustWO, MustWW, WithReplacement
from pyaccount.document.words import Assumed
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.plan.common import (
    SECRET,
    basic_assumptions,
    number,
    refused_groups,
    rounds,
    rounds_text,
    value_or_symbol,
)
from pyaccount.plan.rounds import DirectedBounds, enclosed, tight
from pyaccount.plan.samplers.base import Sampler, SamplerPlan, Worst
from pyaccount.plan.theorem import Reduction
from pyaccount.profiles import CopiesProfile, DisplacedProfile, OpposedProfile, ProfileKind

DISPLACEMENT = (
    "A drawn record displaces another, so the sum can move by 2 for each time it is drawn; figures in circulation that move it "
    "by 1 each way are not upper bounds."
)

CONCRETE = "The lower end of the interval comes from two concrete data sets."

SOURCE = (
    "Balle, Barthe & Gaboardi 2018, Theorem 2 (advanced joint convexity), with a coupling of the two batches that differ in "
    "j slots, each moving the sum by at most 2"
)

EXACT_SIZE = Assumed("The dataset size is public and exact.", "The dataset size is public and exact.")

LEAST_SIZE = Assumed(
    "The dataset size is a public lower bound on the number of records in the larger of two neighbouring data sets.",
    "The data set has at least the stated size, which is public.",
)


class FixedDrawsPlan(SamplerPlan[Sampler]):
    """A sampler that is analysed by the law of how often a record is drawn; by default draws with replacement."""

    round_by_round: ClassVar[bool] = True
    independent_rounds: ClassVar[bool] = True
    scheduled_noise: ClassVar[bool] = True
    #: The law's name in the core, its name in words, and the law in symbols.
    core: ClassVar[str] = "with-replacement"
    called: ClassVar[str]
    symbols: ClassVar[str]
    #: How batches are drawn, as an assumption.
    drawn: ClassVar[Assumed]
    #: Whether a record is drawn at most once in a round.
    once: ClassVar[bool] = False
    #: Who proved the pair for added records, and for which gradients it is attained.
    tight_source: ClassVar[str] = (
        "Choquette-Choo et al. 2023, Lemma 4.6, given the other draws, which are independent of j; attained by gradients +1 "
        "and −1"
    )

    # ---- how it draws

    def fixed_draws(self) -> Self:
        """Return this plan."""
        return self

    def subset(self) -> int:
        """Return the size of the first stage's draw; 0 for samplers with one stage."""
        return 0

    def draws(self) -> tuple[str, int, int, int]:
        """Return how a run draws, for the core: (sampler, data set, batch, subset)."""
        # The document's rules require the size for these samplers.
        return self.core, number(self.node.training.dataset_size), self.node.batch_size(), self.subset()

    def exchangeable(self) -> bool:
        """Whether the other draws are independent of how often the group is drawn, given that number."""
        return True

    def same_as(self) -> str | None:
        """Explain why these batches are draws with replacement; None if they are not, or are called that anyway."""
        return None

    def drawn_once(self) -> bool:
        """Return whether the sampler draws no record twice; a batch of one record is the same whichever way it is drawn."""
        return self.once or self.node.training.expected_batch_size == 1

    def fixed_rounds(self) -> int | Literal["solve"] | None:
        """Return the number of rounds, if records are replaced or set to zero."""
        training = self.node.training
        if self.asked.privacy.adjacency == "add-remove" or training.expected_batch_size == training.dataset_size:
            return None
        return "solve" if training.iterations == "solve" else rounds(self.node)

    def distinct_drawn(self) -> tuple[int, Path]:
        """Return how many distinct records a round must draw, and the document's field that determines it."""
        return 1, self.node.at("training", "dataset_size")

    def distinct_records(self) -> float | None:
        """Return N(1 − p_0), the expected number of distinct records in a batch."""
        sampler, dataset, batch, subset = self.draws()
        counts, logs, _ = _core.copies(sampler, 1, dataset, batch, subset)
        return dataset * math.fsum(math.exp(log) for count, log in zip(counts, logs, strict=True) if count > 0)

    def largest_batch(self) -> int:
        """Return the maximum number of draws, which may exceed the data set: records may be drawn repeatedly."""
        return int(DRAWS.maximum)

    def worst(self) -> Worst:
        """Return that a record is in every round; it is counted once, even if it is drawn several times."""
        return Worst("every record once in every round", lambda: 1.0, rounds(self.node))

    # ---- the theorem

    def exact(self) -> bool:
        """Whether the pair is attained: for added records, if the other draws are independent of them."""
        return self.asked.privacy.adjacency == "add-remove" and self.exchangeable()

    def words(self) -> Reduction:
        """Return the theorem for added records, or for changed ones."""
        if self.exact():
            return self._tight()
        return self._added() if self.asked.privacy.adjacency == "add-remove" else self._changed()

    def bounds(self) -> DirectedBounds:
        """Return the rounds of that theorem, and those of two concrete data sets.

        Raises `DocumentError` for sizes of group, data set and batch that do not fit.
        """
        privacy = self.asked.privacy
        group, noise = number(privacy.group_size), number(self.node.noise.multiplier)
        below = {"add-remove": 2.0, "replace-one": 2.0, "zero-out": 1.0}[privacy.adjacency]
        sampler, dataset, batch, subset = self.draws()
        self._check_sizes(group)
        remove, add = (
            CopiesProfile(sampler, group, dataset, batch, subset, below, noise, reverse) for reverse in (False, True)
        )
        if self.exact():
            return tight(remove, add, rounds(self.node))
        change = "zeroed" if privacy.adjacency == "zero-out" else "replaced"
        above = tuple(
            DisplacedProfile(change, sampler, group, dataset, batch, subset, noise, reverse)
            for reverse in (False, change == "zeroed")
        )
        # Under add-remove the data set with the record is the larger one; otherwise the two data sets can be exchanged.
        lower: tuple[ProfileKind, ProfileKind] = (
            (remove, add) if privacy.adjacency == "add-remove" else (remove, remove)
        )
        if self._opposed():
            # All other records contribute −1. In the direction add the record contributes −1 too, which attains the bound; in the
            # direction remove it contributes 1.
            lower = (OpposedProfile(dataset, batch, noise), remove)
        return enclosed((above[0], above[1]), lower, rounds(self.node))

    def refusals(self) -> list[Problem]:
        """Refuse groups if several records of one subset are drawn dependently."""
        if self.exchangeable():
            return []
        return refused_groups(
            self.asked,
            f"{self.node.sampler.kind} is analysed for single records: how often several of them are drawn from one subset is "
            "not covered; with-replacement covers groups",
        )

    # ---- its parts

    def _sizes(self) -> dict[str, object]:
        blank = self.node.training.expected_batch_size == "solve"
        return {
            "k": value_or_symbol(self.asked.privacy.group_size, "k"),
            "n": self.node.training.dataset_size,
            "m": "m" if blank else self.node.batch_size(),
            "b": self.subset(),
        }

    def _reduction(self, theorem: str, source: str, pair: str, size: Assumed) -> Reduction:
        exact = self.exact()
        drawn = self.drawn.filled(**self._sizes())
        return Reduction(
            path=self.node.path,
            subject=self.called,
            theorem=theorem,
            source=source,
            pair=pair,
            rounds=rounds_text(self.node),
            tight=exact,
            remark=" ".join(filter(None, (DISPLACEMENT, None if exact else CONCRETE, self.same_as()))),
            assumed=(*basic_assumptions(self.asked.privacy), drawn, size, SECRET),
            lower_end=None if exact else self._lower_end(),
        )

    def _opposed(self) -> bool:
        """Whether a single record is set to zero and drawn at most once: then all other records can oppose it."""
        privacy = self.asked.privacy
        return privacy.adjacency == "zero-out" and privacy.group_size == 1 and self.drawn_once()

    def _lower_end(self) -> str:
        """Describe the two data sets of the lower bound in `bounds`."""
        if self.asked.privacy.adjacency == "zero-out":
            rest = "−1" if self._opposed() else "0"
            sets = f"remove: the record contributes 1, or 0, and all others {rest}; add: the record −1, or 0, and all others −1"
        else:
            sets = "the record contributes 1, and all others −1, also whatever replaces it or is drawn in its place"
        several = "" if self.asked.privacy.group_size == 1 else ", each record of the group like the first"
        return f"two data sets: {sets}{several}. All rounds."

    def _tight(self) -> Reduction:
        sigma, p = value_or_symbol(self.node.noise.multiplier, "σ"), self.symbols.format(**self._sizes())
        theorem = "dominating pair of Gaussian mixtures with doubled shifts"
        pair = f"Σ_j {p}·N(2j, {sigma}²) against N(0, {sigma}²)"
        return self._reduction(theorem, self.tight_source, pair, LEAST_SIZE)

    def _added(self) -> Reduction:
        """Return the theorem for added records: without one its slot draws another record, as if it were replaced."""
        sigma, p = value_or_symbol(self.node.noise.multiplier, "σ"), self.symbols.format(**self._sizes())
        theorem = "advanced joint convexity with a coupling of the two batches"
        pair = (
            f"h(α′) = Σ_{{j≥1}} p_j·G_{{2j}}(1 + (α′−1)/η), p_j = {p}, η = 1 − p_0, σ = {sigma}, reflected below α′ = 1"
        )
        return self._reduction(theorem, SOURCE, pair, LEAST_SIZE)

    def _changed(self) -> Reduction:
        privacy = self.asked.privacy
        sigma, p = value_or_symbol(self.node.noise.multiplier, "σ"), self.symbols.format(**self._sizes())
        zeroed = privacy.adjacency == "zero-out"
        several = self.exchangeable() and (not self.once or privacy.group_size != 1)
        joint = (
            "remove: Σ_{j≥1} (p_j/η)·H((1−η)N(0)+ηN(2j) ‖ (1−η)N(0)+ηN(j)); add: Σ_{j≥1} p_j·G_j(1 + (α′−1)/η)"
            if zeroed
            else "Σ_{j≥1} p_j·G_{2j}(1 + (α′−1)/η)"
        )
        pair = f"Σ p_j N(2j) against Σ p_j N(−{'' if zeroed else '2'}j)"
        theorem = "advanced joint convexity with a coupling of the two batches"
        if several:
            theorem = "lower convex hull of three bounds: joint convexity, a blend with the pair for an added record, and a pair"
        elif zeroed and self.once:
            theorem = "the exact supremum at each α when one record is set to zero"
        formula = f"{joint}; p_j = {p}, η = 1 − p_0, σ = {sigma}, reflected below α′ = 1" + (
            f"; or {pair}; or a blend" if several else ""
        )
        return self._reduction(theorem, SOURCE, formula, EXACT_SIZE)

    def _check_sizes(self, group: int) -> None:
        """Check that both neighbouring data sets are large enough to draw from. Raises `DocumentError` otherwise."""
        dataset = self.draws()[1]
        problems = []
        if group > dataset:
            message = f"the group of {group} has more records than the data set ({dataset})"
            path: Path = ("privacy", "group_size")
            problems.append(self.asked.refusal(path, message, allowed=f"at most {dataset}"))
        elif self.asked.privacy.adjacency == "add-remove":
            rest = dataset - group
            distinct, path = self.distinct_drawn()
            if distinct > rest:
                message = (
                    f"under add-remove the smaller of two neighbouring data sets has {rest} records, fewer than the {distinct} "
                    "distinct ones that a round draws: such a draw is impossible there; draw fewer, or use zero-out or "
                    "replace-one, under which both data sets have the same size"
                )
                problems.append(self.asked.refusal(path, message, allowed=f"at most {max(rest, 0)}"))
        if problems:
            raise DocumentError(problems)


class WithReplacementPlan(FixedDrawsPlan[WithReplacement]):
    """Batches of independent uniform draws."""

    states_probability: ClassVar[bool] = False
    scheduled_rates: ClassVar[tuple[str, ...]] = ("expected_batch_size",)
    called: ClassVar[str] = "batches drawn with replacement"
    symbols: ClassVar[str] = "Bin(j; {m}, {k}/{n})"
    drawn: ClassVar[Assumed] = Assumed(
        "Every batch is {m} independent, uniformly random draws from the whole data set; a record drawn j times counts j times.",
        "A batch is {m} independent uniform draws; records may repeat.",
    )


Stages = TypeVar("Stages", MustOW, MustWO, MustWW)


class TwoStagesPlan(FixedDrawsPlan[Stages]):
    """Two-stage sampling with a fresh subset for each round."""

    states_probability: ClassVar[bool] = False

    def subset(self) -> int:
        """Return b, the size of the subset."""
        return self.sampler.subset_size

    def same_as(self) -> str | None:
        """Explain that one draw from a subset is a uniform draw from the data set: no stage prefers a record."""
        if self.node.training.expected_batch_size != "solve" and self.node.batch_size() == 1:
            return "One draw from a uniformly random subset is one uniform draw from the data set: sampling with replacement."
        return None

    def exchangeable(self) -> bool:
        """Return False, since records from one subset are dependent, unless the draws equal draws with replacement."""
        return self.same_as() is not None

    def draws(self) -> tuple[str, int, int, int]:
        """Return the law for the core; draws equal to those with replacement use that law and have its bounds."""
        name, dataset, batch, subset = super().draws()
        return (name, dataset, batch, subset) if self.same_as() is None else (FixedDrawsPlan.core, dataset, batch, 0)

    def refusals(self) -> list[Problem]:
        """Refuse a subset that serves several rounds, in addition to the usual refusals."""
        if self.sampler.rounds_per_subset == 1:
            return super().refusals()
        message = (
            "rounds that draw from one subset depend on one another: a record outside it is in none of them, one inside "
            "may be in all; no bound on their composition is implemented, so each round must draw a fresh subset"
        )
        path = self.node.at("sampler", "rounds_per_subset")
        return [
            self.asked.refusal(path, message, allowed="1"),
            *super().refusals(),
        ]


class MustWOPlan(TwoStagesPlan[MustWO]):
    """A subset with replacement and a batch without: the law of sampling with replacement for every subset size."""

    called: ClassVar[str] = "two-stage batches, with and then without replacement: the same as with replacement"
    symbols: ClassVar[str] = "Bin(j; {m}, {k}/{n})"
    drawn: ClassVar[Assumed] = Assumed(
        "For each iteration a fresh subset of {b} independent uniform draws is made, and {m} of these {b} draws, without "
        "replacement, are the batch; a record drawn j times counts j times.",
        "A batch is {m} of {b} fresh uniform draws; records may repeat.",
    )

    def exchangeable(self) -> bool:
        """Return True: the slots are independent draws, whichever of them are kept."""
        return True

    def largest_batch(self) -> int:
        """Return the size of the subset: a batch may contain all of its draws."""
        return self.subset()


class MustOWPlan(TwoStagesPlan[MustOW]):
    """A subset of distinct records, and a batch with replacement, in which some of them occur several times."""

    core: ClassVar[str] = "must-ow"
    called: ClassVar[str] = "two-stage batches, without and then with replacement"
    symbols: ClassVar[str] = "({b}/{n})·Bin(j; {m}, 1/{b}) for j ≥ 1"
    drawn: ClassVar[Assumed] = Assumed(
        "For each iteration a fresh, uniformly random subset of {b} distinct records is drawn, and the batch is {m} independent "
        "uniform draws from it; a record drawn j times counts j times.",
        "A batch is {m} draws from {b} fresh records; records may repeat.",
    )

    def same_as(self) -> str | None:
        """Explain that the draws are those with replacement, also if the subset is the whole data set."""
        if self.subset() == self.node.training.dataset_size:
            return (
                "The subset is the data set, so that its draws are independent and uniform: sampling with replacement."
            )
        return super().same_as()

    def distinct_drawn(self) -> tuple[int, Path]:
        """Return the size of the subset, whose records are distinct, and its field."""
        return self.subset(), self.node.at("sampler", "subset_size")


class MustWWPlan(TwoStagesPlan[MustWW]):
    """A subset with replacement, and a batch with replacement from it."""

    core: ClassVar[str] = "must-ww"
    called: ClassVar[str] = "two-stage batches, with replacement both times"
    symbols: ClassVar[str] = "Σ_i Bin(i; {b}, 1/{n})·Bin(j; {m}, i/{b})"
    drawn: ClassVar[Assumed] = Assumed(
        "For each iteration a fresh subset of {b} independent uniform draws is made, and the batch is {m} independent uniform "
        "draws from these; a record drawn j times counts j times.",
        "A batch is {m} draws from {b} fresh uniform draws; records may repeat.",
    )
