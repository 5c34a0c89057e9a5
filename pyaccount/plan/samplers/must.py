"""Two-stage sampling: a subset of the data set, and a batch from the subset."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from pyaccount.document.samplers import MustOW, MustWO, MustWW
from pyaccount.document.words import Assumed
from pyaccount.plan.samplers.fixed_draws import FixedDrawsPlan

if TYPE_CHECKING:
    from pyaccount.errors import Path, Problem


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
