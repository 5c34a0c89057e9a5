"""A mechanism of which only a guarantee is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from pyaccount.document.fields import Items, Number
from pyaccount.document.kinds import Section
from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.ranges import BASE_DELTA, EPSILON, MECHANISM_MU, RENYI_ORDER, RHO, STATED_POINTS
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.stated import StatedBody
    from pyaccount.document.written import Written


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
    "rho": ("rho", "xi"),
    "mu": ("mu",),
    "guarantees": ("guarantees",),
    "renyi": ("renyi",),
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
        default=None, description="δ that belongs to epsilon. Default: 0, that is, pure differential privacy."
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

    @property
    def bounded_loss(self) -> bool:
        """Whether some ε is stated for δ = 0."""
        pure = self.epsilon is not None and not self.delta
        return pure or any(getattr(point, "delta", None) == 0.0 for point in self.guarantees)

    def way(self) -> str:
        """Return the field that states the guarantee: a key of `WAYS`."""
        return next(way for way in WAYS if self._given(way))

    def problems(self, document: Written, body: StatedBody) -> Iterator[Problem]:
        """Report no guarantee, a δ without its ε, and several ways to state a guarantee."""
        given = [way for way in WAYS if self._given(way)]
        if not given and self.delta is not None:
            message = "delta is only half of a guarantee: give the epsilon that holds at this delta too"
            yield document.problem("missing-key", body.at("mechanism", "epsilon"), message)
        elif not given:
            message = (
                "a stated mechanism needs its guarantee: give epsilon (with delta unless it is 0), rho, mu, guarantees "
                "or renyi"
            )
            yield document.problem("missing-key", body.at("mechanism", "epsilon"), message)
        for way in given[1:]:
            message = (
                f"one guarantee of a mechanism is used, and {given[0]} states one already: leave {way} out, or "
                f"{given[0]}; several pairs of ε and δ are written as guarantees"
            )
            yield document.problem("contradiction", body.at("mechanism", way), message)
        for way, more in (("epsilon", "delta"), ("rho", "xi")):
            if given and given[0] != way and getattr(self, more) is not None:
                message = (
                    f"{more} belongs to {way}, which is not given: leave it out, since {given[0]} states the guarantee"
                )
                yield document.problem("contradiction", body.at("mechanism", more), message)

    def _given(self, way: str) -> bool:
        return getattr(self, way) not in (None, ())
