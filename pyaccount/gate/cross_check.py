"""Cross-checks ends of intervals that promise more than the recomputed ones.

For a composed end, the engine computes an ever finer interval until it decides whether the end holds. A sampled end is
compared with new samples. Both return whether the end holds, and the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyaccount.execute import RESOLVED, Answer, Engine, Question, asked_at
from pyaccount.execute.solve import CandidateVerdict, decide
from pyaccount.execute.target import ClaimTarget, RiskTarget, bound_at_least, risk_attained, risk_of_bound
from pyaccount.gate.agreement import FieldPlace, Outcome
from pyaccount.plan.alike import composed_alike
from pyaccount.records.fields import NATS, PROBABILITY, Role
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.retest import Retest
    from pyaccount.plan.compiled import CompiledDocument, Instance
    from pyaccount.records.certificate import CertificateModel

#: The relative width of intervals at the start, which refutes most false values at little cost.
COARSEST = 1e-2
#: A bound from other samples must be this many standard errors beyond an estimate from the new ones. A valid bound is
#: about five of its own beyond the truth, and those are about twice the new ones: the check fails for it with
#: probability 1e-3 or less.
STANDARD_ERRORS = 4.0
#: The multiples of the usual number of samples with which a lower end is compared, until it differs significantly from
#: the estimate: the distribution that it was drawn from may have a much smaller variance.
LOOKS = (1, 4, 16)
#: The least ratio of an upper bound to what the new samples prove. If hardly any sample is informative about δ,
#: estimates say nothing, and bounds fall only with the number of samples, of which the certificate has a fourth.
UNSEEN = 0.5


def _direction(place: FieldPlace) -> Direction | None:
    """Return the direction that a field belongs to; `None` for the guarantee, which is the larger of both."""
    return place.path[1] if place.path[0] == "directions" else None  # type: ignore[return-value]


@dataclass(slots=True)
class ComposedCrossCheck:
    """Cross-checks composed ends. `instance` is the plan with the blank filled as the certificate says."""

    stated: CertificateModel
    plan: CompiledDocument
    instance: Instance
    engine: Engine
    tolerance: float
    _known: dict[tuple[Question, int | None], Answer] = field(default_factory=dict)

    def __call__(self, place: FieldPlace, stated: float) -> Outcome:
        """Return whether an end of an interval holds, and the reason."""
        if place.role is Role.SOLVED:
            return Outcome(self.claim(stated).fails, "cross-checked: whether the claim fails with it")
        lower, width = place.role is Role.LOWER, COARSEST
        known = self._outside(place, stated, lower)
        if known is not None:
            return known
        finest = ClaimTarget.finest if place.unit else RiskTarget.finest
        while True:
            held, beyond, finer = self._ends(place, width, lower) if place.unit else self._risk(width, lower)
            if held >= stated if lower else held <= stated:
                return Outcome(True, f"cross-checked: at {'least' if lower else 'most'} {held!r}")
            if lower and beyond < stated:
                return Outcome(False, f"refuted: no lower bound above {beyond!r} can be proven")
            if not lower and beyond > stated:
                return Outcome(False, f"refuted: the bound is at least {beyond!r}")
            if width <= finest or not finer:
                return Outcome(False, f"could not be confirmed: recomputed {held!r}, and no finer result is possible")
            width = max(finest, 0.1 * width)

    def _outside(self, place: FieldPlace, stated: float, lower: bool) -> Outcome | None:
        """Return whether an ε holds at a δ outside the range that the core resolves; `None` inside it.

        At the nearest δ in that range an upper end would be too small, or a lower one too large. No better bounds are
        known than the guarantee's ε and 0.
        """
        guarantee, reason = self.stated.guarantee, "no better bound is known at this δ"
        if place.unit != NATS:
            return None
        if lower:
            return Outcome(stated == 0.0, reason) if guarantee.delta > RESOLVED[1] else None
        if guarantee.delta >= RESOLVED[0] or asked_at(self.instance.bounds(), guarantee.delta) == guarantee.delta:
            return None
        return Outcome(stated >= guarantee.epsilon, reason)

    def _risk(self, width: float, lower: bool) -> tuple[float, float, bool]:
        """Return what `_ends` does, for the risk measure of the document."""
        budget = budget_of(self.plan.document)
        assert budget is not None  # a certificate with a risk is compared with one
        if lower:
            return risk_attained(self.engine, self.instance.bounds(), budget, width), math.inf, True
        risk = risk_of_bound(self.engine, self.instance.bounds(), budget, width)
        return risk.upper, risk.lower, True

    def _ends(self, place: FieldPlace, width: float, lower: bool) -> tuple[float, float, bool]:
        """Return the end that holds, the value beyond which nothing can be proven, and whether a finer result is possible."""
        # At a narrower interval, fewer rounds of a long schedule are grouped as nearly alike.
        kind = int(place.path[1]) if place.path[0] == "records" else None
        groups = None if width <= ClaimTarget.finest else 0.5 * width
        bounds = self.instance.bounds(groups) if kind is None else self.instance.alternatives()[kind].bounds
        guarantee, epsilon = self.stated.guarantee, place.epsilon
        if epsilon is None and place.unit == PROBABILITY:
            epsilon = guarantee.epsilon
        question = Question(epsilon, None if epsilon is not None else asked_at(bounds, guarantee.delta), width)
        if (question, kind) not in self._known:
            self._known[question, kind] = self.engine.ask(bounds, question)
        answer = self._known[question, kind]
        sides = [side for side in answer.directions if _direction(place) in (None, side)]
        ends = [(bounds[side], answer.directions[side]) for side in sides]
        finer = answer.within_tolerance or composed_alike(bounds)
        if lower:
            limits = [one.lower_account.upper if own.kinds is None else one.upper for own, one in ends]
            return max(one.lower for _, one in ends), max(limits), finer
        most = 1.0 if place.unit == PROBABILITY else math.inf
        return min(most, max(one.upper for _, one in ends)), max(bound_at_least(*one) for one in ends), finer

    def claim(self, value: float) -> CandidateVerdict:
        """Decide the document's claim with a value in its blank. Raises `DocumentError` for an invalid value."""
        document = self.plan.document
        assert document.blank is not None
        # The value comes from the certificate, so it is validated here.
        document.with_value(document.blank, value)
        return decide(self.plan.at(value), self.engine, self.tolerance)


@dataclass(frozen=True, slots=True)
class SampledCrossCheck:
    """Cross-checks sampled ends and estimates with new samples."""

    stated: CertificateModel
    retest: Retest

    def __call__(self, place: FieldPlace, stated: float) -> Outcome:
        """Return whether a bound or an estimate from other samples is compatible with the new ones, and the reason.

        Each end is one of δ at some ε: that no smaller ε holds at a δ means that δ is at least this at that ε.
        """
        of_risk = place.path[0] == "risk"
        if of_risk and place.unit != NATS:
            return Outcome(True, "follows from the guarantee and the ends of its directions")
        if place.role is Role.UPPER and place.epsilon is None and not of_risk:
            return Outcome(False, "not what was retested")
        at = self.stated.risk if of_risk else self.stated.guarantee
        assert at is not None  # a certificate with a risk is compared with one
        epsilon = place.epsilon if place.epsilon is not None else stated if place.unit == NATS else at.epsilon
        assert epsilon is not None
        delta = at.delta if place.unit == NATS else stated
        return self._delta(place, epsilon, delta)

    def _delta(self, place: FieldPlace, epsilon: float, delta: float) -> Outcome:
        lower, direction = place.role is Role.LOWER, _direction(place)
        bounds = self.retest.point(epsilon, direction)
        for times in LOOKS if lower else LOOKS[:1]:
            estimate, error = self.retest.estimate(epsilon, direction, below=lower, times=times)
            if abs(delta - estimate) >= STANDARD_ERRORS * error:
                break
        spread = STANDARD_ERRORS * error
        reason = f"compared with new samples: δ({epsilon:.6g}) is estimated to be {estimate:.6g} ± {error:.2g}"
        if lower:
            most = max(bounds.delta_lower, estimate - spread)
            return Outcome(delta <= most, f"{reason}, and at least {bounds.delta_lower:.6g}")
        if place.role is Role.UPPER:
            least = min(max(estimate + spread, UNSEEN * bounds.delta), bounds.delta)
            return Outcome(delta >= least, f"{reason}, and at most {bounds.delta:.6g}")
        # An estimate from fewer samples has a larger variance.
        return Outcome(bounds.delta_lower - 2.0 * spread <= delta <= bounds.delta + 2.0 * spread, reason)
