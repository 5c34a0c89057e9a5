"""The laws of the number of runs of which the best one is released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import MEAN_RUNS, PROBABILITY_BELOW_ONE, RUN_SHAPE, TRIALS
from pyaccount.reading.fields import Number
from pyaccount.reading.kinds import Kind, Kinds
from pyaccount.rounding import positional


class RunsKind(Kind):
    """How many times phases are run, of which only the best run is released."""

    if TYPE_CHECKING:
        # This is a field of each law.

        @property
        def kind(self) -> str:
            """The word by which documents name the law."""

    def parameters(self) -> tuple[float, ...]:
        """Return the parameters of the law, in the order of `plan.combinators.best.LAWS`."""
        return tuple(float(getattr(self, name)) for name in type(self).model_fields if name != "kind")

    def normal_form(self) -> dict[str, Any]:
        """Return the law with its parameters."""
        return {
            "kind": self.kind,
            **{name: positional(getattr(self, name)) for name in type(self).model_fields if name != "kind"},
        }


class GeometricRuns(RunsKind):
    """After every run the search stops with a fixed probability γ: 1/γ runs on average, at least one."""

    kind: Literal["geometric"] = Field(description="A geometric number of runs, at least one.")
    stopping_probability: Annotated[float, Number(PROBABILITY_BELOW_ONE)] = Field(
        description="The probability γ to stop after a run. The expected number of runs is 1/γ."
    )


class LogarithmicRuns(RunsKind):
    """A logarithmic number of runs, at least one: Pr[K = k] ∝ (1 − γ)^k/k."""

    kind: Literal["logarithmic"] = Field(description="A logarithmic number of runs, at least one.")
    stopping_probability: Annotated[float, Number(PROBABILITY_BELOW_ONE)] = Field(
        description="γ. The expected number of runs is (1/γ − 1)/ln(1/γ)."
    )


class NegativeBinomialRuns(RunsKind):
    """A negative binomial number of runs, truncated to at least one (Papernot & Steinke 2022)."""

    aliases = "truncated-negative-binomial tnb"

    kind: Literal["negative-binomial"] = Field(description="A truncated negative binomial number of runs.")
    shape: Annotated[float, Number(RUN_SHAPE)] = Field(
        description="η: 1 is the geometric law; towards 0 it is the logarithmic law, and below 0 it has heavier tails."
    )
    stopping_probability: Annotated[float, Number(PROBABILITY_BELOW_ONE)] = Field(
        description="γ. The expected number of runs is η(1 − γ)/(γ(1 − γ^η))."
    )


class PoissonRuns(RunsKind):
    """A Poisson number of runs, which may be 0: then a fixed symbol is released."""

    kind: Literal["poisson"] = Field(description="A Poisson number of runs, which may be 0.")
    mean: Annotated[float, Number(MEAN_RUNS)] = Field(description="The expected number of runs.")


class BinomialRuns(RunsKind):
    """A binomial number of runs, which may be 0: then a fixed symbol is released."""

    kind: Literal["binomial"] = Field(description="A binomial number of runs, which may be 0.")
    trials: Annotated[int, Number(TRIALS, whole=True)] = Field(description="The largest number of runs.")
    probability: Annotated[float, Number(PROBABILITY_BELOW_ONE)] = Field(
        description="The probability of each of them to take place."
    )


_FIXED = (
    "a fixed number of runs is their composition, since the best of k runs can reveal as much as all of them: leave select out, "
    "and give the number as count; or draw the number of runs at random"
)
REFUSED = {"fixed": _FIXED, "constant": _FIXED, "all": _FIXED}

RUNS: tuple[type[RunsKind], ...] = (GeometricRuns, LogarithmicRuns, NegativeBinomialRuns, PoissonRuns, BinomialRuns)

#: The type of the law in a document.
AnyRuns = Annotated[RunsKind, Kinds("number of runs", RUNS, refused=REFUSED)]
