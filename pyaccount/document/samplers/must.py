"""MUST: sampling in two stages, each of which is with or without replacement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import ROUNDS_PER_SUBSET, SUBSET_SIZE
from pyaccount.document.samplers.fixed_draws import Repeating
from pyaccount.document.stated import StatedBody, number_or_none
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Number
from pyaccount.reading.kinds import AlsoCalled, Asked


class TwoStages(Repeating):
    """Each round first draws a subset, and then draws its batch from this subset."""

    subset_size: Annotated[
        int,
        Number(SUBSET_SIZE, whole=True),
        Asked("Number of records or draws in the subset of a round", trial="1000", metavar="B"),
        AlsoCalled("subset stage_one_size"),
    ] = Field(description="The number b of records (or draws) in the subset of a round, from which the batch is drawn.")
    rounds_per_subset: Annotated[int, Number(ROUNDS_PER_SUBSET, whole=True)] = Field(
        default=1,
        description="The number of rounds that draw from the same subset. Only 1 can be analysed: each round draws a "
        "new subset.",
    )

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return the sizes of the data set, of its subset and of a batch; None if rounds share a subset."""
        usual = super().one_round(body, probability)
        return None if usual is None or self.rounds_per_subset != 1 else usual | {"subset": str(self.subset_size)}


class MustOW(TwoStages):
    """MUST.OW: each round draws a uniformly random subset of distinct records, and then draws from it with replacement.

    The number of draws is `training.expected_batch_size`.
    """

    aliases = "must.ow ow"

    kind: Literal["must-ow"] = Field(
        description="A subset is drawn without replacement, then a batch from it with replacement."
    )

    def batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also a subset that is larger than the data set: its records are distinct."""
        yield from super().batch_problems(body)
        subset, records = number_or_none(self.subset_size), number_or_none(body.training.dataset_size)
        if subset is not None and records is not None and subset > records:
            message = (
                f"the records of the subset are distinct, so it has at most the {records:_} records of the data set"
            )
            path = body.at("sampler", "subset_size")
            yield problem("contradiction", path, message, allowed=f"at most {records}")


class MustWO(TwoStages):
    """MUST.WO: each round draws a subset with replacement, and then draws from these draws without replacement.

    This is the same as sampling with replacement, whatever the size of the subset.
    """

    aliases = "must.wo wo"

    kind: Literal["must-wo"] = Field(
        description="A subset is drawn with replacement, then a batch from it without replacement."
    )

    def batch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also a batch that is larger than the subset, from which it is drawn without replacement."""
        yield from super().batch_problems(body)
        subset, batch = number_or_none(self.subset_size), number_or_none(body.training.expected_batch_size)
        if subset is not None and batch is not None and subset < batch:
            message = f"a batch of {batch:g} cannot be drawn without replacement from a subset of {subset}"
            path = body.at("sampler", "subset_size")
            yield problem("contradiction", path, message, allowed=f"at least {batch:g}")


class MustWW(TwoStages):
    """MUST.WW: each round draws a subset with replacement, and then draws from it with replacement.

    The number of draws is `training.expected_batch_size`.
    """

    aliases = "must.ww ww"

    kind: Literal["must-ww"] = Field(
        description="A subset is drawn with replacement, then a batch from it with replacement."
    )
