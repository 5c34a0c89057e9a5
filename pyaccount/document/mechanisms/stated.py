"""A mechanism of which only a guarantee is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.ranges import BASE_DELTA, EPSILON, MECHANISM_MU, RENYI_ORDER, RHO, STATED_POINTS
from pyaccount.document.stated import Placed
from pyaccount.document.words import Adjacency
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choice, Flag, Items, Number
from pyaccount.reading.kinds import Section
from pyaccount.rounding import positional


class StatedGuarantee(Section):
    """One of several guarantees of the same mechanism."""

    epsilon: Annotated[float, Number(EPSILON)] = Field(description="ε of the guarantee, in nats.")
    delta: Annotated[float, Number(BASE_DELTA)] = Field(description="δ of the guarantee.")


class StatedDivergence(Section):
    """A bound on the Rényi divergence of one order, in both directions."""

    order: Annotated[float, Number(RENYI_ORDER)] = Field(description="The order of the divergence.")
    epsilon: Annotated[float, Number(EPSILON)] = Field(description="An upper bound on the divergence, in nats.")


#: The ways to state a guarantee, each with the fields that it may have.
WAYS: dict[str, tuple[str, ...]] = {
    "epsilon": ("epsilon", "delta"),
    "rho": ("rho", "xi", "delta"),
    "mu": ("mu",),
    "guarantees": ("guarantees",),
    "renyi": ("renyi", "delta"),
}
#: What to do with a part of a guarantee beside another one. No part may be left out: ε would be too small.
_ADVICE = {
    "delta": "if μ holds except with probability delta, state two mechanisms in phases, this one without delta and another one "
    "with epsilon: 0 and this delta; in guarantees, every epsilon has a delta of its own",
    "xi": "state rho and xi, which are one guarantee, or the guarantee that follows from them",
}


class Stated(MechanismKind):
    """A mechanism of which only a guarantee is known, such as that of a vendor, a paper or another accountant. The
    guarantee is for one record under the adjacency of the document.
    """

    aliases = "guarantee black-box vendor known approximate-dp pure-dp zcdp"

    kind: Literal["stated"] = Field(description="A mechanism of which only a guarantee is known.")
    epsilon: Annotated[float | None, Number(EPSILON)] = Field(
        default=None, description="ε of (ε, δ)-differential privacy, in nats."
    )
    delta: Annotated[float | None, Number(BASE_DELTA)] = Field(
        default=None,
        description="δ that belongs to epsilon; beside rho or renyi the probability with which their bounds may fail "
        "(approximate zCDP). Default: 0.",
    )
    rho: Annotated[float | None, Number(RHO)] = Field(
        default=None, description="ρ of zero-concentrated differential privacy (zCDP), in nats."
    )
    xi: Annotated[float | None, Number(EPSILON)] = Field(
        default=None,
        description="ξ of (ξ, ρ)-zCDP, which bounds the Rényi divergence of order a by ξ + aρ. Only with rho. Default: 0.",
    )
    mu: Annotated[float | None, Number(MECHANISM_MU)] = Field(
        default=None, description="μ of Gaussian differential privacy."
    )
    guarantees: Annotated[tuple[StatedGuarantee, ...], Items(STATED_POINTS)] = Field(
        default=(), description="Several pairs of ε and δ that all hold: points of a privacy profile."
    )
    renyi: Annotated[tuple[StatedDivergence, ...], Items(STATED_POINTS)] = Field(
        default=(), description="Bounds on Rényi divergences of several orders."
    )
    adjacency: Annotated[Adjacency | None, Choice(get_args(Adjacency))] = Field(
        default=None,
        description="The adjacency of the stated guarantee, if it is not that of the document. Only under replace-one: a "
        "replacement is two steps of each other adjacency. Default: that of the document.",
    )
    failure_probability: Annotated[float, Number(BASE_DELTA)] = Field(
        default=0.0,
        description="The probability that the stated guarantee is false, over the random numbers by which it was computed, for a "
        "guarantee from samples. The certificate then holds with the rest of the probability. Default: 0, a proven guarantee.",
    )
    verified: Annotated[bool, Flag()] = Field(
        default=False,
        description="Whether a randomised test accepted the stated guarantee, so that δ includes the probability that it "
        "accepts a false one, and the mechanism is run only because the test accepted. The certificate is then a verified one.",
    )

    @property
    def bounded_loss(self) -> bool:
        """Whether some ε is stated for δ = 0."""
        pure = self.epsilon is not None and not self.delta
        return pure or any(getattr(point, "delta", None) == 0.0 for point in self.guarantees)

    @property
    def uncertain(self) -> bool:
        """Whether the stated guarantee comes from samples."""
        return self.verified or self.failure_probability > 0.0

    @property
    def exception(self) -> float:
        """The probability except for which bounds on Rényi divergences hold; 0 for other guarantees."""
        return (self.delta or 0.0) if self.way() in ("rho", "renyi") else 0.0

    def steps(self, adjacency: Adjacency) -> int:
        """Return how many steps of the stated adjacency lead to a neighbour under that of a document: 1, or 2 if it differs.

        Removing a record and adding another is two steps under add-remove, and so are replacing the contribution of a record
        by zero and zero by that of another record under zero-out.
        """
        return 1 if self.adjacency in (None, adjacency) else 2

    def way(self) -> str:
        """Return the field that states the guarantee: a key of `WAYS`."""
        return next(way for way in WAYS if self._given(way))

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report no guarantee, a δ without its ε, and several ways to state a guarantee."""
        given = [way for way in WAYS if self._given(way)]
        if not given and self.delta is not None:
            message = "delta is only half of a guarantee: give the epsilon that holds at this delta too"
            yield problem("missing-key", node.at("mechanism", "epsilon"), message)
        elif not given:
            message = (
                "a stated mechanism needs its guarantee: give epsilon (with delta unless it is 0), rho, mu, guarantees "
                "or renyi"
            )
            yield problem("missing-key", node.at("mechanism", "epsilon"), message)
        for way in given[1:]:
            message = (
                f"one guarantee of a mechanism is used, and {given[0]} states one already: leave {way} out, or "
                f"{given[0]}; several pairs of ε and δ are written as guarantees"
            )
            yield problem("contradiction", node.at("mechanism", way), message)
        for more, advice in _ADVICE.items():
            if given and more not in WAYS[given[0]] and getattr(self, more) is not None:
                ways = " or ".join(way for way, fields in WAYS.items() if more in fields)
                message = f"{more} belongs to {ways}, and not to {given[0]}: {advice}"
                yield problem("contradiction", node.at("mechanism", more), message)

    def _given(self, way: str) -> bool:
        return getattr(self, way) not in (None, ())

    def normal_form(self, adjacency: Adjacency) -> dict[str, Any] | None:
        """Return the guarantee, and how many of its steps a record is away; None for Rényi divergences of several steps."""
        way, steps = self.way(), str(self.steps(adjacency))
        if way == "mu":
            return {"kind": "gdp", "mu": positional(self.mu or 0.0), "steps": steps}
        exception = positional(self.exception)
        if way == "rho":
            rho, xi = positional(self.rho or 0.0), positional(self.xi or 0.0)
            return {"kind": "zcdp", "exception": exception, "rho": rho, "steps": steps, "xi": xi}
        if way == "renyi":
            divergences = sorted((each.order, each.epsilon) for each in self.renyi)
            points = [[positional(order), positional(bound)] for order, bound in divergences]
            return {"kind": "renyi", "exception": exception, "points": points} if steps == "1" else None
        stated = [(each.epsilon, each.delta) for each in self.guarantees] or [(self.epsilon or 0.0, self.delta or 0.0)]
        return {
            "kind": "guarantees",
            "points": [[positional(e), positional(d)] for e, d in sorted(stated)],
            "steps": steps,
        }
