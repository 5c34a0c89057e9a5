"""Choices: the exponential mechanism, permute-and-flip, report noisy max, and randomized response.

Of a selection only the selected candidate is released. Let r be the range of the loss for one record: 2Δ/s for utilities of
sensitivity Δ and scale s, Δ/s if they are monotone; for a group of k it is k·r.

- **Exponential mechanism** (and Gumbel noise): the losses of all candidates lie in an interval of length r. So the
  profile is at most that of the worst pair of losses t and t − r, h(α) = (e^{r/2} − √α)²/(e^r − 1) for |ln α| ≤ r (Dong,
  Durfee & Rogers 2020, arXiv:1909.13830). h is convex, and bounds every pair, so its composition bounds adaptive ones.
  Several runs are bounded together, by the supremum over all choices of t that depend on what was released before
  (`pyaccount.profiles.in_blocks`). *From below*: two candidates whose utilities differ by g before and by g − r after (in units
  of s) have probabilities with the odds e^g and e^{g−r}, so their losses differ by r, and the larger one is t = ln((1 +
  e^{r−g})/(1 + e^{−g})), which takes every value between 0 and r. So every α is attained by some t, and the profile of one run is
  exact. Several runs have the largest lower bound of some t; beside other phases it is that of t = r/2, where the utilities are
  exchanged.
- **Exponential noise** (and permute-and-flip, which has the same output: Ding et al. 2021, arXiv:2105.07260) **and
  Laplace noise**: the pair of Laplace noise of scale 1 at the distance r. The lemma of paths in `plan.mechanisms.base`
  applies: let a set S of candidates be given, and A and B the largest noisy utilities in S and outside, in units of s.
  The change of the data lowers A − B by at most r, and S wins with probability at least φ(τ) = Pr[A − B > τ] for a τ
  between 0 and r. Both noises have a hazard rate of at most 1: Pr[N > y + t] ≥ e^{−t} Pr[N > y]; so do A and B, as the
  first candidate whose noisy utility exceeds a number exceeds it by another t with probability e^{−t}. Hence
  φ(τ + t) ≥ e^{−t} φ(τ), given B, and 1 − φ(τ + t) ≤ e^t (1 − φ(τ)), given A.
  *From below*, two candidates of which one is ahead by a before, and behind by r − a after. With exponential noise, for 0 ≤ a ≤
  r, it wins with probability 1 − e^{−a}/2 before and e^{−(r−a)}/2 after. 1 − e^{−a}/2 − αe^{−(r−a)}/2 is largest at e^{2a} =
  e^r/α, where it is 1 − √α·e^{−r/2}: some a attains the bound at each |ln α| ≤ r, and the profile of one run is exact. With
  Laplace noise it is behind by x with probability q(x) = e^{−x}(2 + x)/4, x ≥ 0, of winning, the probability that the difference
  of two Laplace noises of scale 1 exceeds x, and ahead by x with 1 − q(x). Several runs, and those with Laplace noise, have the
  largest lower bound of some a; beside other phases it is that of a = 0, for two candidates of equal utility before.

**Randomized response**: if a value changes, the output has the probabilities (p, q, …, q) before and (q, p, q, …, q) after, q =
(1 − p)/(k − 1). All outcomes but two have the loss 0. The pair is (p, q, 1 − p − q) against (q, p, 1 − p − q), and attained. A
record that is set to zero and then answers uniformly has the pair (p, 1 − p) against (1/k, 1 − 1/k), whose directions differ.

If one value is released of a sample, and the output may show whether the unit was drawn, the bound on any two values applies to
the value without the unit, too (`plan.replaced`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, cast

from pyaccount.document.mechanisms import Exponential, PermuteAndFlip, RandomizedResponse, ReportNoisyMax
from pyaccount.document.mechanisms.base import Selection, rounded_up
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import given
from pyaccount.plan.mechanisms.base import Mechanism, MechanismPlan, MechanismWords, Released
from pyaccount.plan.rounds import DirectedBounds, enclosed
from pyaccount.plan.theorem import Reduction
from pyaccount.plan.units import draw_may_show
from pyaccount.profiles import ExponentialProfile, FiniteProfile, GuaranteesProfile, LaplaceProfile, SubsampledProfile
from pyaccount.rounding import shortest, up

ONLY_WHICH = Assumed(
    "Only the selected candidate is released: neither its utility nor that of another candidate.",
    "Only the selected candidate is released, no utility.",
)

SEVERAL = "Several runs are bounded together: the worst t of each run may depend on what was released before."

CANDIDATES = Assumed(
    "The set of candidates is public and does not depend on the data.",
    "The set of candidates is public and does not depend on the data.",
)


def loss_range(mechanism: Selection, group: int) -> float:
    """Return the range of the loss for a group of records, rounded up."""
    return rounded_up(group * Fraction(mechanism.loss_range()))


#: The relative error of the probabilities that are computed, in units of rounding: at most 8 of them.
ROUNDING = 1e-15

#: The larger losses t of several runs of bounded range, in units of r, beside r/2: few runs at small δ have larger ones.
_LARGER_LOSSES = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

#: By how much a candidate is ahead before the change, in units of r; and in units of the scale, with Laplace noise.
_LEADS = (0.0, 0.1, 0.25, 0.5)
_LAPLACE_LEADS = (-0.5, -1.0, -2.0, -4.0, -8.0)


def _two_losses(t: float, r: float) -> FiniteProfile:
    """Return the pair with the losses t and t − r, for 0 < t < r."""
    total = -math.expm1(-r)
    p, q = -math.expm1(t - r) / total, -math.expm1(-t) / total
    return FiniteProfile((p, q * math.exp(t - r)), (p * math.exp(-t), q), ROUNDING)


def _two_candidates(
    chances: Callable[[float], tuple[float, float]], leads: Sequence[float], r: float
) -> list[FiniteProfile]:
    """Return for each lead of a candidate the pair of its chances before and after it has lost r of its lead, or hardly less."""
    return [FiniteProfile(chances(lead), chances((lead - r) * (1.0 - ROUNDING)), ROUNDING) for lead in leads]


def _ahead(lead: float) -> tuple[float, float]:
    """Return the probabilities that a candidate wins and that it loses which is ahead by this much, with exponential noise."""
    loses = 0.5 * math.exp(-abs(lead))
    return (1.0 - loses, loses) if lead >= 0.0 else (loses, 1.0 - loses)


def _ahead_by_laplace(lead: float) -> tuple[float, float]:
    """Return the probabilities that a candidate wins and that it loses which is ahead by this much, with Laplace noise."""
    loses = 0.25 * math.exp(-abs(lead)) * (2.0 + abs(lead))
    return (1.0 - loses, loses) if lead >= 0.0 else (loses, 1.0 - loses)


class SelectionPlan(MechanismPlan[Mechanism]):
    """The largest of noisy utilities: what selections assume, and what they reveal by the law of the noise."""

    called: ClassVar[str] = "report noisy max"
    #: The noise with which the largest noisy utility has the same output; None if the document names it.
    same_as: ClassVar[str | None] = None

    def released(self, mechanism: Mechanism, group: int) -> Released:
        """Return the profile of the law of the noise, and the pairs of two candidates."""
        r, noise = loss_range(cast("Selection", mechanism), group), self._noise(mechanism)
        if noise == "gumbel":
            profile, lower = ExponentialProfile(r), GuaranteesProfile(((0.5 * r * (1.0 - 1e-15), 0.0),))
            pairs = tuple(_two_losses(share * r, r) for share in _LARGER_LOSSES)
            return Released(profile, lower, further_pairs=pairs, supremum=profile)
        if noise == "exponential":
            return flipped(r)
        leads = [*(share * r for share in _LEADS), *_LAPLACE_LEADS]
        equal, *ahead = _two_candidates(_ahead_by_laplace, leads, r)
        return Released(LaplaceProfile(r, 1.0), equal, further_pairs=tuple(ahead))

    def described(self, mechanism: Mechanism) -> MechanismWords:
        """Return the theorem of bounded range, or that of noise of bounded hazard rate."""
        selection = cast("Selection", mechanism)
        r, noise, assumptions = loss_range(selection, 1), self._noise(mechanism), self._assumptions(selection)
        subject = f"a selection by {self.called}" + ("" if self.same_as else f" with {noise.capitalize()} noise")
        if noise == "gumbel":
            return MechanismWords(
                subject,
                "losses of bounded range",
                "Dong, Durfee & Rogers 2020 (arXiv:1909.13830)",
                f"two-point losses t and t − {up(r)}, the worst t for each ε",
                assumptions,
                lower_end="two candidates whose utilities the record exchanges, which has the losses ±r/2",
                lower_end_alone="two candidates at the distance that is worst for this ε",
                several=SEVERAL,
            )
        changed = "of which the record changes one, or both in opposite directions"
        return MechanismWords(
            subject,
            "the largest of noisy utilities, dominated by one number with Laplace noise",
            "the lemma of paths (docs/mechanisms.md); McKenna & Sheldon 2020 (arXiv:2010.12603); Ding et al. 2021 "
            "(arXiv:2105.07260)",
            f"Lap({up(r)}, 1) against Lap(0, 1)",
            assumptions,
            lower_end=f"two candidates of equal utility, {changed}",
            lower_end_alone=f"two candidates at the distance that is worst for this ε, {changed}",
        )

    def own_refusals(self, mechanism: Mechanism) -> list[Problem]:
        """Refuse monotone utilities if a record is replaced, which removes one and adds another."""
        if not cast("Selection", mechanism).monotone or self.asked.privacy.adjacency != "replace-one":
            return []
        message = (
            "utilities are not monotone if a record is replaced: the one that leaves may decrease a utility and the new one "
            "increase another: leave monotone out"
        )
        return [self.asked.refusal(self.node.at("mechanism", "monotone"), message, allowed="false")]

    def _noise(self, mechanism: Mechanism) -> str:
        return self.same_as or cast("ReportNoisyMax", mechanism).noise

    def _assumptions(self, mechanism: Selection) -> tuple[Assumed, ...]:
        """Return what must be true of the utilities and of the release."""
        if mechanism.epsilon is not None:
            sensitivity = Assumed(
                f"The mechanism is calibrated to ε = {shortest(mechanism.epsilon)} for one record under this adjacency.",
                f"It is calibrated to ε = {shortest(mechanism.epsilon)} for one record.",
            )
        else:
            change = shortest(mechanism.utility_sensitivity or 0.0)
            kind = " An added record never decreases a utility, or never increases one." if mechanism.monotone else ""
            scale = shortest(mechanism.scale or 0.0)
            sensitivity = Assumed(
                f"One record changes no utility by more than {change}; the scale of the noise is {scale} in the same unit.{kind}",
                f"A utility changes by {change} at most{', one way' if mechanism.monotone else ''}; noise scale {scale}.",
            )
        return (sensitivity, CANDIDATES, ONLY_WHICH)


def flipped(r: float) -> Released:
    """Return what permute-and-flip reveals at the range r."""
    profile = LaplaceProfile(r, 1.0)
    equal, *ahead = _two_candidates(_ahead, [share * r for share in _LEADS], r)
    return Released(profile, equal, further_pairs=tuple(ahead), supremum=profile)


class ExponentialPlan(SelectionPlan[Exponential]):
    """A loss of bounded range."""

    called: ClassVar[str] = "the exponential mechanism"
    same_as: ClassVar[str | None] = "gumbel"


class PermuteAndFlipPlan(SelectionPlan[PermuteAndFlip]):
    """The largest utility with exponential noise."""

    called: ClassVar[str] = "permute-and-flip"
    same_as: ClassVar[str | None] = "exponential"


EACH = Assumed(
    "Every record answers for itself, and its answer depends on no other record; the true values are not released.",
    "Every record answers for itself; true values are not released.",
)

UNIFORM = Assumed(
    "A record that is set to zero answers each value with the same probability.",
    "A record set to zero answers each value with the same probability.",
)

#: The two data sets of the lower end, if one value is released of a sample.
ANY_VALUES = "the sample without the unit has the value that it has with the unit of the other data set"

ONCE = Assumed(
    "One value is computed from all records of a run, and only its randomised form is released.",
    "One value is computed from all records; only its random form is released.",
)


class RandomizedResponsePlan(MechanismPlan[RandomizedResponse]):
    """Three outcomes: the old value, the new one, and any other."""

    def released(self, mechanism: RandomizedResponse, group: int) -> Released:
        """Return the pair for each record of the group that answers; a value that is released once has one pair."""
        p, k = mechanism.truth_probability, mechanism.values
        if mechanism.answers == "each-record" and mechanism.empty_record == "uniform":
            pair: tuple[tuple[float, ...], tuple[float, ...]] = ((p, 1.0 - p), (1.0 / k, 1.0 - 1.0 / k))
        else:
            q = (1.0 - p) / (k - 1)
            pair = ((p, q, max(0.0, 1.0 - p - q)), (q, p, max(0.0, 1.0 - p - q)))
        count = group if mechanism.answers == "each-record" else 1
        remove, add = (FiniteProfile(*pair, ROUNDING, reverse) for reverse in (False, True))
        return Released(remove, remove, count, Released(add, add, count))

    def bounds(self) -> DirectedBounds:
        """Return the rounds of all runs; one value of a sample is bounded for any two values."""
        if not self._of_any_values():
            return super().bounds()
        mechanism, rate = self._of(), given(self.node.draw).probability
        p = mechanism.truth_probability
        other = (1.0 - p) / (mechanism.values - 1)
        least, most = min(p, other), max(p, other)
        drawn = (1.0 - rate) * least + rate * most
        rest = max(0.0, 1.0 - drawn - least)
        profile = FiniteProfile((drawn, least, rest), (least, drawn, rest), ROUNDING)
        run = self.released(mechanism, 1)
        below = [SubsampledProfile(one.upper, rate, reverse) for one, reverse in ((run, False), (run.add or run, True))]
        return enclosed((profile, profile), (below[0], below[1]), self.node.count)

    def words(self) -> Reduction:
        """Return the theorem, with sampling and the number of runs."""
        usual = super().words()
        if not self._of_any_values():
            return usual
        text = self.described(self._of())
        source = f"{text.source}; on a sample: Balle, Barthe & Gaboardi 2018 (arXiv:1807.01647), Theorem 2"
        return replace(usual, source=source, remark=None, tight=False, lower_end=ANY_VALUES)

    def _of_any_values(self) -> bool:
        return self.node.draw is not None and draw_may_show(self) and self._of().for_any_data()

    def described(self, mechanism: RandomizedResponse) -> MechanismWords:
        """Return the pair in words."""
        p, k = shortest(mechanism.truth_probability), mechanism.values
        uniform = mechanism.answers == "each-record" and mechanism.empty_record == "uniform"
        return MechanismWords(
            f"randomized response with {k} values",
            "randomized response",
            "Warner 1965; Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776); attained",
            f"(p, 1 − p) against (1/k, 1 − 1/k), p = {p}, k = {k}"
            if uniform
            else f"(p, q, 1 − p − q) against (q, p, 1 − p − q), p = {p}, q = (1 − p)/{k - 1}",
            (ONCE,) if mechanism.answers == "once" else (EACH, UNIFORM) if uniform else (EACH,),
        )

    def own_refusals(self, mechanism: RandomizedResponse) -> list[Problem]:
        """Refuse records that are added or removed if every record answers, and samples of them."""
        problems = []
        if mechanism.empty_record == "uniform" and (
            mechanism.answers == "once" or self.asked.privacy.adjacency != "zero-out"
        ):
            message = (
                "empty_record says how a record answers that is set to zero, which matters only under zero-out and if every "
                "record answers: leave it out"
            )
            path = self.node.at("mechanism", "empty_record")
            problems.append(self.asked.problem("contradiction", path, message, allowed="one-of-the-values"))
        if mechanism.answers == "once":
            return problems
        if self.asked.privacy.adjacency == "add-remove":
            message = (
                "if every record answers, the number of answers reveals whether a record is present, so no ε holds under "
                "add-remove: use replace-one, or zero-out if an empty record answers too"
            )
            problems.append(self.asked.refusal(("privacy", "adjacency"), message, allowed="replace-one or zero-out"))
        if self.node.draw is not None and not self.node.draw.clients:
            message = (
                "if every record answers, the answers reveal which records were drawn, so sampling does not hide a record: "
                "leave sampler out, or write answers: once if one value is computed from the sample"
            )
            problems.append(self.asked.refusal(self.node.at("sampler", "kind"), message, allowed="no sampler"))
        return problems
