"""Rényi filters: entries are admitted while Σ_i ρ_i(a) ≤ B(a) for every order a of a list that is fixed beforehand.

**Proof** (Feldman & Zrnic 2021, arXiv:2008.11193, for one order; Whitehouse, Ramdas, Rogers & Wu 2023, arXiv:2203.05481).
Let L_t be the loss of the first t entries, P against Q, and ρ_i(a) a bound on the divergence D_a of the i-th entry given the
past. It is chosen before the entry is released, so E_P[exp((a−1)(L_t − L_{t−1})) | past] ≤ exp((a−1)ρ_t(a)), and N_t =
exp((a−1)(L_t − Σ_{i≤t} ρ_i(a))) is a supermartingale under P with N_0 = 1. The filter keeps Σ ρ_i(a) ≤ B(a) whatever is
released, so E_P exp((a−1)L_T) ≤ exp((a−1)B(a))·E_P N_T ≤ exp((a−1)B(a)) at the end T: D_a ≤ B(a). This holds at every order
of the list at once, as the filter stops for the first that is used up, and with P and Q exchanged, as ρ_i bounds both
directions. ∎ An order that is not in the list is not bounded, except by the orders in the list: choosing the best order
after looking needs a mean over orders (`mixture`).

For zCDP the list has all orders, and Σ ρ_i ≤ ρ suffices: ρ_i(a) ≤ aρ_i. What ρ_i(a) and ρ_i are, the profiles of the core
say, in their direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.errors import DomainError
from pyaccount.filters.base import AdditiveFilter, PricedPhase, RoundsOfKind, released, words_of
from pyaccount.profiles import ProfileKind
from pyaccount.rounding import shortest

#: What can be done with an entry without a bound on its divergences.
INSTEAD = (
    "Use a filter in (ε, δ) terms for such entries, with their certificates: the whole budgets of two filters compose"
)


def divergences_of(entry: Document | Certificate, orders: Sequence[float]) -> tuple[float, ...]:
    """Return upper bounds on the Rényi divergences of an entry at some orders, the larger of both directions, in nats.

    Raises as `Filter.cost`.
    """
    phases = tuple(released(entry, INSTEAD))
    return tuple(rounded_up(sum((_worst(phase, order) for phase in phases), Fraction(0))) for order in orders)


def _worst(phase: PricedPhase, order: float) -> Fraction:
    """Return the divergence of a phase, that of the worst kind of record and direction."""

    def reason(part: ProfileKind) -> str:
        what = words_of(part, phase.node)
        return f"the Rényi divergence of order {shortest(order)} of {what}{part.without_divergence}. {INSTEAD}"

    return phase.worst(lambda part, _: divergence(part, order), reason)


@lru_cache(maxsize=4096)
def divergence(part: ProfileKind, order: float) -> Fraction | None:
    """Return an upper bound on the Rényi divergence of a profile at an order, in nats; None if none is known.

    The profile has a direction, and so has the divergence. Orders are greater than 1, and taken as their decimals.
    """
    return part.build().divergence(order)


@dataclass(frozen=True, slots=True)
class RenyiFilter(AdditiveFilter):
    """Admit entries while the sum of their divergences keeps the budget at every order. What is spent is one sum for each."""

    orders: tuple[float, ...]
    budgets: tuple[float, ...]
    called: ClassVar[str] = "the Rényi filter"

    def __post_init__(self) -> None:
        if not self.orders or len(self.orders) != len(self.budgets):
            raise DomainError(
                f"a Rényi filter has one budget for each of its orders, at least one: {len(self.orders)} orders and "
                f"{len(self.budgets)} budgets were given"
            )

    @property
    def terms(self) -> tuple[str, ...]:
        """Return the orders, in words."""
        return tuple(f"ε of order {shortest(order)}" for order in self.orders)

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """Return the budgets, as their decimals."""
        return tuple(Fraction(repr(budget)) for budget in self.budgets)

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return upper bounds on the divergences of an entry, in nats. Raises as `Filter.cost`."""
        return divergences_of(entry, self.orders)

    def phase(self) -> dict[str, Any]:
        """Return a mechanism with these divergences."""
        table = [{"order": a, "epsilon": budget} for a, budget in zip(self.orders, self.budgets, strict=True)]
        return {"mechanism": {"kind": "stated", "renyi": table}}


@dataclass(frozen=True, slots=True)
class ConcentratedFilter(AdditiveFilter):
    """Admit entries that are ρ_i-zCDP while Σ ρ_i ≤ ρ."""

    rho: float
    called: ClassVar[str] = "the filter for zCDP"

    @property
    def terms(self) -> tuple[str, ...]:
        """Return that ρ is what is spent."""
        return ("ρ",)

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """Return ρ, as its decimal."""
        return (Fraction(repr(self.rho)),)

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return an upper bound on ρ of an entry, in nats. Raises as `Filter.cost`."""
        phases = released(entry, INSTEAD)
        return (
            rounded_up(
                sum((phase.worst(_concentrated, partial(self._reason, phase)) for phase in phases), Fraction(0))
            ),
        )

    def _reason(self, phase: PricedPhase, part: ProfileKind) -> str:
        return (
            f"{words_of(part, phase.node)} in {self.called}, which needs D_a ≤ aρ for every order a. Use a Rényi filter, which "
            f"needs it for a list of orders. {INSTEAD}"
        )

    def phase(self) -> dict[str, Any]:
        """Return a mechanism that is ρ-zCDP."""
        return {"mechanism": {"kind": "stated", "rho": self.rho}}


def _concentrated(part: ProfileKind, kind: RoundsOfKind) -> Fraction | None:
    """Return ρ of a profile; None if none is known."""
    known = part.build().concentration()
    if known is None and (pure := kind.pure(part)) is not None:
        known = pure.build().concentration()
    return known
