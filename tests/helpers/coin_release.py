"""A leaf that pyaccount does not have: the release of one bit that a biased coin may turn, as a kind of mechanism.

What somebody writes who adds one: its fields, and its theorem with its law, its words and what it refuses. `register` adds them
to the tables of this process.
"""

from typing import Annotated, Literal, get_args

from pydantic import Field

from pyaccount.document.mechanisms import AnyMechanism
from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan import mechanisms
from pyaccount.plan.mechanisms.base import MechanismPlan, MechanismWords, Released
from pyaccount.profiles import FiniteProfile
from pyaccount.reading.fields import Number
from pyaccount.reading.numerals import Range


class Coin(MechanismKind):
    """A bit that is released as it is with probability `heads`, and turned otherwise."""

    kind: Literal["coin"] = Field(description="A bit that a coin may turn.")
    heads: Annotated[float, Number(Range(0.5, 0.999))] = Field(description="The probability of the bit as it is.")


class CoinTheorem(MechanismPlan[Coin]):
    """(p, 1 − p) against (1 − p, p), if a record is replaced."""

    def released(self, mechanism: Coin, group: int) -> Released:
        """Return the two laws."""
        p = mechanism.heads
        profile = FiniteProfile((p, 1.0 - p), (1.0 - p, p))
        return Released(profile, profile)

    def described(self, mechanism: Coin) -> MechanismWords:
        """Return the theorem in words."""
        p = mechanism.heads
        return MechanismWords(
            "a bit that a coin may turn",
            "a biased coin",
            "two outcomes; attained",
            f"({p}, 1 − {p}) against (1 − {p}, {p})",
            (Assumed("The coin is biased as stated.", "The coin is biased as stated."),),
        )

    def own_refusals(self, mechanism: Coin) -> list[Problem]:
        """Refuse records that are added or removed: then there may be no bit."""
        if self.asked.privacy.adjacency == "replace-one":
            return []
        message = "without a record there is no bit: use replace-one"
        return [self.asked.problem("no-valid-bound", ("privacy", "adjacency"), message, allowed="replace-one")]


def register() -> None:
    """Add the kind to the document language, and its theorem to the plan."""
    get_args(AnyMechanism)[1].by_kind["coin"] = Coin
    mechanisms.PLANS[Coin] = CoinTheorem
