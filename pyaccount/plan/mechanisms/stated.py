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

**Except with probability θ** (δ beside ρ or Rényi divergences: approximate zCDP, Bun & Steinke 2016, Definition 8.1): each law
has an event of probability 1 − θ at least, and given these events the divergences are bounded in both directions. So P is
(1 − θ)P′ + θP″ and Q is (1 − θ)Q′ + θQ″, and P − αQ is at most θP″ + (1 − θ)(P′ − αQ′): H_α ≤ θ + (1 − θ)h(α), with h the bound
from the divergences, and the same in the other direction. This is the profile of the composition of h with the pair of (0, θ),
which has θ at the loss ∞ and at −∞, and no loss otherwise; that is what is composed. The Gaussian mechanism that shows the
record with probability θ is one of these mechanisms, and the lower end.

A group of k records is k steps between neighbours. What (ε, δ) say about k steps is one profile, which is attained
(`plan.mechanisms.groups_of_stated`); for one (ε, δ) it has at most δ(e^{kε} − 1)/(e^ε − 1) above
the loss kε. For μ and ρ the steps make kμ, which a sum with Gaussian noise attains, and k²ρ (Bun & Steinke 2016,
arXiv:1605.02065, Proposition 27). Divergences of single orders have no such rule here.

**Another adjacency.** A guarantee under add-remove or zero-out implies one under replace-one, and nothing else is implied. If
x is replaced by y, then D ∪ {x}, D, D ∪ {y} are neighbours under add-remove, one after the other: a replacement is two steps,
as in a group of two, with the bounds above for 2k steps. Under zero-out the contribution of x is replaced by zero, and zero by
that of y. The lower end is that of 2k steps as well: let the mechanism count the records that are x, less those that are y, and
release the law of so many steps from the middle of 2k. Every step of the stated adjacency moves it by one law, and k records that
are x and become y move it through all of them.

**Guarantees from samples.** A guarantee that is false with probability q over the random numbers by which it was computed is
composed as if it were true; the certificate then fails with probability q at most (`document.resting`). A verified guarantee
includes q in δ: the accountant's random numbers are independent of the data, so what is run only because the test accepted is
(ε, δ)-differentially private as a whole, and composes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from pyaccount.document.mechanisms import Stated
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.document.words import TWO_STEPS, Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import GROUP_LEMMA, given, number, refused_groups
from pyaccount.plan.mechanisms.base import MechanismPlan, MechanismWords, Released
from pyaccount.plan.mechanisms.groups_of_stated import profile_of_steps
from pyaccount.plan.protection import Case
from pyaccount.plan.theorem import Reduction
from pyaccount.profiles import GaussianProfile, GuaranteesProfile, ProfileKind, RenyiProfile, ZcdpProfile
from pyaccount.rounding import shortest, up

#: The orders at which a divergence ξ + aρ is used: 16 for each doubling of a − 1.
ORDERS = tuple(1.0 + 2.0 ** (k / 16.0) for k in range(-16 * 8, 16 * 16 + 1))
#: A relative margin for the few roundings of numbers that follow from stated ones.
_MARGIN = 1e-14
KNOWN = Assumed(
    "The mechanism has the stated guarantee, for one record under this adjacency, and nothing else of it is released.",
    "The mechanism has the stated guarantee; nothing else of it is released.",
)
KNOWN_UNDER = Assumed(
    "The mechanism has the stated guarantee, for one record under {adjacency}, and nothing else of it is released.",
    "It has the stated guarantee, under {adjacency}; nothing else is released.",
)
FAILS = Assumed(
    "The stated guarantee holds with probability at least 1 − {failure} over the random numbers by which it was computed. They "
    "are not drawn again with other seeds until the guarantee is as wished.",
    "Its guarantee fails with probability {failure}; no seed was tried again.",
)
VERIFIED = Assumed(
    "The mechanism is run only because a randomised test accepted the stated guarantee, whose δ includes the probability that "
    "the test accepts a false one. The test is not repeated with other seeds until it accepts.",
    "It is run only because a test accepted it, with the first seed tried.",
)
EXCEPT = Assumed(
    "For every pair of neighbouring data sets the output of each has an event of probability 1 − {probability} at least, given "
    "which the stated divergences hold in both directions (approximate zCDP).",
    "The divergences hold but for a probability of {probability} (approximate zCDP).",
)
_ATTAINED = (
    "The bound is attained by the worst mechanism with this guarantee, which moves along a chain by one step for each record "
    "that changes; the one that is run may be more private."
)
SELF_CONTAINED = Assumed(
    "The stated guarantee holds whatever was released before and whatever the rest of the data is, so that it composes.",
    "It holds whatever was released before, and whatever the other data is.",
)


class StatedPlan(MechanismPlan[Stated]):
    """A stated guarantee, as the profile that follows from it."""

    def released(self, mechanism: Stated, group: int) -> Released:
        """Return the profile of the guarantee, and that of a mechanism that attains it (or of a Gaussian one)."""
        way, exception = mechanism.way(), mechanism.exception
        beside = (GuaranteesProfile(((0.0, exception),)),) if exception > 0.0 else ()
        if way == "mu":
            part = GaussianProfile(_times(group, given(mechanism.mu)), 1.0)
            return Released(part, part)
        if way == "rho":
            rho = group * group * given(mechanism.rho) * (1.0 if group == 1 else 1.0 + _MARGIN)
            if mechanism.xi:
                divergences = tuple((mechanism.xi + order * rho) * (1.0 + _MARGIN) for order in ORDERS)
                upper: ProfileKind = RenyiProfile(ORDERS, divergences)
            else:
                upper = ZcdpProfile(rho)
            return Released(upper, GaussianProfile(math.sqrt(2.0 * rho) * (1.0 - _MARGIN), 1.0), beside=beside)
        if way == "renyi":
            orders = sorted((entry.order, entry.epsilon) for entry in mechanism.renyi)
            upper = RenyiProfile(tuple(order for order, _ in orders), tuple(bound for _, bound in orders))
            smallest = min(math.sqrt(2.0 * bound / order) for order, bound in orders) * (1.0 - _MARGIN)
            lower: ProfileKind = GuaranteesProfile(((0.0, 0.0),))
            if smallest > 0.0:
                lower = GaussianProfile(smallest, 1.0)
            return Released(upper, lower, beside=beside)
        points = tuple(_points(mechanism))
        if group == 1:
            stated = GuaranteesProfile(points)
            return Released(stated, stated)
        profile = profile_of_steps(points, group)
        return Released(GuaranteesProfile(profile.above), GuaranteesProfile(profile.below))

    def one_run(self) -> Released:
        """Return the profile of the guarantee; if it is for another adjacency, that of as many steps as a neighbour is away."""
        mechanism, group = self._of(), number(self.asked.privacy.group_size)
        return self.released(mechanism, mechanism.steps(self.asked.privacy.adjacency) * group)

    def words(self) -> Reduction:
        """Return the theorem, with those about groups, and from another adjacency, if they are used."""
        reduction, mechanism = super().words(), self._of()
        steps, group = mechanism.steps(self.asked.privacy.adjacency), self.asked.privacy.group_size
        if steps == 1 and group == 1:
            return reduction
        if mechanism.way() in ("epsilon", "guarantees"):
            whole = group == "solve" or profile_of_steps(tuple(_points(mechanism)), steps * group).whole
            reduction = replace(
                reduction,
                source=f"{reduction.source}; Dong, Roth & Su 2022, Theorem 2.14, for several steps",
                pair="the laws at both ends of a chain of mechanisms, of which neighbours have the stated guarantee",
                tight=whole,
                remark=_ATTAINED,
                lower_end=None if whole else "the laws at both ends of the chain, by some of their tests",
            )
        if steps == 1:
            return reduction
        rule = TWO_STEPS[given(mechanism.adjacency)]
        return replace(
            reduction,
            theorem=f"{reduction.theorem}; two steps for each replaced record",
            remark=rule if reduction.remark is None else f"{rule} {reduction.remark}",
        )

    def described(self, mechanism: Stated) -> MechanismWords:
        """Return which guarantee is stated, and the pair that stands for it."""
        way, assumptions = mechanism.way(), _assumptions(mechanism)
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
            rarely = f" except with probability {shortest(mechanism.exception)}" if mechanism.exception else ""
            return MechanismWords(
                f"a mechanism with {what}{rarely}",
                "Rényi divergences, added over all runs and converted to a profile",
                "Canonne, Kamath & Steinke 2020 (arXiv:2004.00010), Proposition 12; the lower convex hull in e^ε"
                + ("; approximate zCDP: Bun & Steinke 2016 (arXiv:1605.02065), Definition 8.1" if rarely else ""),
                f"the least bound of all orders{', and a pair that differs with that probability' if rarely else ''}",
                (*assumptions, EXCEPT.filled(probability=up(mechanism.exception))) if rarely else assumptions,
                lower_end="the Gaussian mechanism with the largest μ that satisfies the stated bounds"
                + (", and shows the record with that probability" if rarely else ""),
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

    def own_refusals(self, mechanism: Stated) -> list[Problem]:
        """Refuse groups, and other adjacencies, for which the stated guarantee has no rule."""
        if (problem := _adjacency_refusal(self, mechanism)) is not None:
            return [problem]
        if not _of_single_steps(mechanism):
            return []
        return refused_groups(
            self.asked,
            "Rényi divergences of single orders, ξ, and a δ beside ρ say nothing about groups of records; state rho, mu or "
            f"epsilon instead: {GROUP_LEMMA}",
        )


def _of_single_steps(mechanism: Stated) -> bool:
    """Return whether the guarantee has no rule for several steps here."""
    return mechanism.way() == "renyi" or bool(mechanism.xi) or mechanism.exception > 0.0


def _assumptions(mechanism: Stated) -> tuple[Assumed, ...]:
    """Return what must be true of the stated guarantee."""
    known = KNOWN if mechanism.adjacency is None else KNOWN_UNDER.filled(adjacency=mechanism.adjacency)
    fails = (FAILS.filled(failure=up(mechanism.failure_probability)),) if mechanism.failure_probability > 0.0 else ()
    return (known, SELF_CONTAINED, *fails, *((VERIFIED,) if mechanism.verified else ()))


def _adjacency_refusal(case: Case, mechanism: Stated) -> Problem | None:
    """Refuse a guarantee for another adjacency for which there is no rule; None if there is one, or none is needed."""
    wanted = case.asked.privacy.adjacency
    if mechanism.steps(wanted) == 1:
        return None
    if wanted != "replace-one":
        message = (
            f"no bound is implemented for {wanted} from a guarantee under {mechanism.adjacency}: neither implies the other; "
            f"state a guarantee under {wanted}, or protect records under replace-one, which is two steps of the stated guarantee"
        )
    elif _of_single_steps(mechanism):
        message = (
            f"no bound is implemented for replaced records from Rényi divergences of single orders, ξ, or a δ beside ρ, under "
            f"{mechanism.adjacency}: two steps have no rule for them; state rho, mu, epsilon or guarantees instead"
        )
    elif case.node.draw is not None or len(case.node.path) > 2:
        message = (
            f"no bound is implemented for replaced records from a guarantee under {mechanism.adjacency} on a sample, or inside "
            "of other phases; state a guarantee under replace-one"
        )
    else:
        return None
    return case.asked.refusal(case.node.at("mechanism", "adjacency"), message, allowed=wanted)


def _points(mechanism: Stated) -> list[tuple[float, float]]:
    """Return the stated (ε, δ), in ascending order of ε."""
    if mechanism.epsilon is not None:
        return [(mechanism.epsilon, mechanism.delta or 0.0)]
    return sorted((point.epsilon, point.delta) for point in mechanism.guarantees)


def _times(group: int, stated: float) -> float:
    """Return the product of a stated number, taken as its decimal, and the size of a group, rounded up."""
    return rounded_up(group * Fraction(repr(stated)))
