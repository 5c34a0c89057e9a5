"""Mechanisms of which only a guarantee is known.

- (ε, δ) pairs: for α = e^ε, H_α ≤ δ in both directions, and H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P) bounds it at 1/α by
  1 − 1/α + δ/α. H is convex in α, and 1 at α = 0; so the lower convex hull of these points is a bound, which is the
  profile of a pair of finite laws, the same in both directions. For one (ε, δ) it is that of Kairouz, Oh & Viswanath
  2015 (arXiv:1311.0776).
- μ-GDP: N(μ, 1) against N(0, 1), by definition (Dong, Roth & Su 2022).
- Rényi divergences, and zCDP, which bounds that of order a by aρ: for each order a, H_α ≤ e^{(a−1)ρ(a)}
  (a − 1)^{a−1} a^{−a} α^{−(a−1)} (Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Proposition 12); the least of them,
  and its reflection for α < 1. Divergences of several runs add before they are converted (`plan.rounds.combine`). The
  Gaussian mechanism with μ² = min 2ρ(a)/a satisfies the same bounds, and gives the lower end.

A group of k records is k steps between neighbours: it satisfies (kε, δ(e^{kε} − 1)/(e^ε − 1)), kμ and k²ρ (Bun &
Steinke 2016, arXiv:1605.02065, Proposition 27). Divergences of single orders have no such rule here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pyaccount.document.mechanisms import Stated
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.plan.common import GROUP_LEMMA
from pyaccount.plan.mechanisms.base import MechanismPlan, MechanismWords, Released
from pyaccount.plan.rounds import Part, gaussian
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem

#: The orders at which a divergence ξ + aρ is used: 16 for each doubling of a − 1.
ORDERS = tuple(1.0 + 2.0 ** (k / 16.0) for k in range(-16 * 8, 16 * 16 + 1))
#: A relative margin for the few roundings of numbers that follow from stated ones.
_MARGIN = 1e-14
KNOWN = (
    "The mechanism has the stated guarantee, for one record under this adjacency, and nothing else of it is released."
)
SELF_CONTAINED = (
    "The stated guarantee holds whatever was released before and whatever the rest of the data is, so that it composes."
)


class StatedPlan(MechanismPlan[Stated]):
    """A stated guarantee, as the profile that follows from it."""

    def released(self, mechanism: Stated, group: int) -> Released:
        """Return the profile of the guarantee, and that of a mechanism that attains it (or of a Gaussian one)."""
        way = mechanism.way()
        if way == "mu":
            assert mechanism.mu is not None
            part = gaussian(_times(group, mechanism.mu), 1.0)
            return Released(part, part)
        if way == "rho":
            assert mechanism.rho is not None
            rho = group * group * mechanism.rho * (1.0 if group == 1 else 1.0 + _MARGIN)
            if mechanism.xi:
                divergences = tuple((mechanism.xi + order * rho) * (1.0 + _MARGIN) for order in ORDERS)
                return Released(
                    Part("renyi", (ORDERS, divergences)), gaussian(math.sqrt(2.0 * rho) * (1.0 - _MARGIN), 1.0)
                )
            return Released(Part("zcdp", (rho,)), gaussian(math.sqrt(2.0 * rho) * (1.0 - _MARGIN), 1.0))
        if way == "renyi":
            orders = sorted((entry.order, entry.epsilon) for entry in mechanism.renyi)
            upper = Part("renyi", (tuple(order for order, _ in orders), tuple(bound for _, bound in orders)))
            least = min(math.sqrt(2.0 * bound / order) for order, bound in orders) * (1.0 - _MARGIN)
            return Released(upper, gaussian(least, 1.0) if least > 0.0 else Part("guarantees", (((0.0, 0.0),),)))
        part = Part("guarantees", (tuple(_of_group(point, group) for point in _points(mechanism)),))
        return Released(part, part)

    def described(self, mechanism: Stated) -> MechanismWords:
        """Return which guarantee is stated, and the pair that stands for it."""
        way, assumptions = mechanism.way(), (KNOWN, SELF_CONTAINED)
        if way == "mu":
            mu = shortest(mechanism.mu or 0.0)
            return MechanismWords(
                f"a mechanism with μ = {mu}",
                "Gaussian differential privacy",
                "Dong, Roth & Su 2022; attained by the Gaussian mechanism",
                f"N({mu}, 1) against N(0, 1)",
                assumptions,
            )
        if way in ("rho", "renyi"):
            what = (
                f"ρ = {shortest(mechanism.rho or 0.0)}{f' and ξ = {shortest(mechanism.xi)}' if mechanism.xi else ''}"
                if way == "rho"
                else f"Rényi divergences of {len(mechanism.renyi)} order{'' if len(mechanism.renyi) == 1 else 's'}"
            )
            return MechanismWords(
                f"a mechanism with {what}",
                "Rényi divergences, added over all runs and converted to a profile",
                "Canonne, Kamath & Steinke 2020 (arXiv:2004.00010), Proposition 12; the lower convex hull in e^ε",
                "the least bound of all orders",
                assumptions,
                lower_end="the Gaussian mechanism with the largest μ that satisfies the stated bounds",
            )
        points = _points(mechanism)
        named = " and ".join(f"({shortest(epsilon)}, {shortest(delta)})" for epsilon, delta in points[:3])
        more = "" if len(points) <= 3 else f" and {len(points) - 3} more"
        return MechanismWords(
            f"a mechanism that is {named}{more}-differentially private",
            "the worst mechanism with a stated guarantee",
            "Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776)"
            + ("" if len(points) == 1 else "; several guarantees by the lower convex hull in e^ε"),
            "a finite pair whose profile is the convex hull of the stated points",
            assumptions,
            remark="The bound is attained by the worst mechanism with this guarantee; the one that is run may be more private.",
        )

    def own_refusals(self, document: Document, body: Body, mechanism: Stated) -> list[Problem]:
        """Refuse groups for which the stated guarantee has no rule."""
        if document.privacy.group_size == 1 or not (mechanism.way() == "renyi" or mechanism.xi):
            return []
        message = (
            f"Rényi divergences of single orders, and ξ, say nothing about groups of records; state rho, mu or epsilon instead: "
            f"{GROUP_LEMMA}"
        )
        return [document.problem("no-valid-bound", ("privacy", "group_size"), message, allowed="1")]


def _points(mechanism: Stated) -> list[tuple[float, float]]:
    """Return the stated (ε, δ), in ascending order of ε."""
    if mechanism.epsilon is not None:
        return [(mechanism.epsilon, mechanism.delta or 0.0)]
    return sorted((point.epsilon, point.delta) for point in mechanism.guarantees)


def _of_group(point: tuple[float, float], group: int) -> tuple[float, float]:
    """Return the guarantee for a group of records, (kε, δ(e^{kε} − 1)/(e^ε − 1)), where δ is rounded up and at most 1."""
    epsilon, delta = point
    if group == 1:
        return point
    if delta == 0.0:
        return _times(group, epsilon), 0.0
    log = math.log(group) if epsilon == 0.0 else _log_expm1(group * epsilon) - _log_expm1(epsilon)
    exponent = math.log(delta) + log
    return _times(group, epsilon), 1.0 if exponent >= 0.0 else min(1.0, math.exp(exponent) * (1.0 + 1e-10))


def _times(group: int, stated: float) -> float:
    """Return the product of a stated number, taken as its decimal, and the size of a group, rounded up."""
    return rounded_up(group * Fraction(repr(stated)))


def _log_expm1(x: float) -> float:
    """Return ln(e^x − 1) for x > 0."""
    return x + math.log(-math.expm1(-x))


PLAN = StatedPlan()
