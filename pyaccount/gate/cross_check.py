"""Cross-checks ends of intervals that promise more than the recomputed ones.

For a composed end, the engine computes an ever finer interval until it decides whether the end holds. A sampled end is
compared with new samples. Both return whether the end holds, and the reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyaccount.execute import RESOLVED, Answer, Engine, Question, asked_at
from pyaccount.execute.measure import risk_attained, risk_of_bound
from pyaccount.execute.solve import CandidateVerdict, decide
from pyaccount.execute.target import ClaimTarget, RiskTarget, bound_at_least
from pyaccount.plan.alike import composed_alike
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.errors import Path
    from pyaccount.execute.sampling.retest import Retest
    from pyaccount.plan.compiled import CompiledDocument, Instance
    from pyaccount.plan.rounds import DirectedBounds

#: The smallest relative width of intervals.
FINEST = ClaimTarget.finest
#: The relative width at the start, which refutes most false values at little cost.
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


def _direction(path: Path) -> Direction | None:
    """Return the direction that a field belongs to; `None` for the guarantee, which is the larger of both."""
    return path[1] if path[0] == "directions" else None  # type: ignore[return-value]


@dataclass(slots=True)
class ComposedCrossCheck:
    """Cross-checks composed ends. `instance` is the plan with the blank filled as the certificate says."""

    stated: dict[str, Any]
    plan: CompiledDocument
    instance: Instance
    engine: Engine
    tolerance: float
    _known: dict[tuple[Question, int | None], Answer] = field(default_factory=dict)
    #: The rounds of the instance, not grouped.
    bounds: DirectedBounds = field(init=False)

    def __post_init__(self) -> None:
        """Compute the bounds of the rounds."""
        self.bounds = self.instance.bounds()

    def __call__(self, path: Path, stated: float) -> tuple[bool, str]:
        """Return whether an end of an interval holds, and the reason."""
        if path[0] == "risk" and str(path[-1]).startswith("value"):
            return self._risk(stated, lower=str(path[-1]).endswith("_lower"))
        return self._beyond(path, stated) or self._within(path, stated)

    def _within(self, path: Path, stated: float) -> tuple[bool, str]:
        leaf, tolerance = str(path[-1]), COARSEST
        if path[0] == "solved" and self.plan.document.blank is not None:
            return self.claim(stated).fails, "cross-checked: whether the claim fails with it"
        while True:
            # At a narrower interval, fewer rounds of a long schedule are grouped as nearly alike.
            bounds = self._bounds(path, None if tolerance <= FINEST else 0.5 * tolerance)
            answer = self._ask(path, bounds, tolerance)
            held, bound = self._ends(answer, bounds, path)
            if leaf.endswith("_lower"):
                if held >= stated:
                    return True, f"cross-checked: at least {held!r}"
                if bound < stated:
                    return False, f"refuted: no lower bound above {bound!r} can be proven"
            else:
                if held <= stated:
                    return True, f"cross-checked: at most {held!r}"
                if bound > stated:
                    return False, f"refuted: the bound is at least {bound!r}"
            if tolerance <= FINEST or not (answer.within_tolerance or composed_alike(bounds)):
                return False, f"could not be confirmed: recomputed {held!r}, and no finer result is possible"
            tolerance = max(FINEST, 0.1 * tolerance)

    def _bounds(self, path: Path, width: float | None) -> DirectedBounds:
        """Return the rounds that a field is about: those of one kind of record, or all."""
        if path[0] != "records":
            return self.instance.bounds(width)
        return self.instance.alternatives()[int(path[1])].bounds

    def _risk(self, stated: float, *, lower: bool) -> tuple[bool, str]:
        """Return whether a bound on a risk measure holds, and the reason."""
        budget, tolerance = budget_of(self.plan.document), COARSEST
        if budget is None:
            return False, "the document has no risk budget"
        while True:
            if lower:
                attained = risk_attained(self.engine, self.bounds, budget, tolerance)
                if attained >= stated:
                    return True, f"cross-checked: at least {attained!r}"
                outcome = f"recomputed {attained!r}"
            else:
                risk = risk_of_bound(self.engine, self.bounds, budget, tolerance)
                if risk.upper <= stated:
                    return True, f"cross-checked: at most {risk.upper!r}"
                if risk.lower > stated:
                    return False, f"refuted: the bound is at least {risk.lower!r}"
                outcome = f"recomputed {risk.upper!r}"
            if tolerance <= RiskTarget.finest:
                return False, f"could not be confirmed: {outcome}, and no finer result is possible"
            tolerance = max(RiskTarget.finest, 0.1 * tolerance)

    def _beyond(self, path: Path, stated: float) -> tuple[bool, str] | None:
        """Return whether an ε holds at a δ outside the range that the core resolves; `None` inside it.

        At the nearest δ in that range an upper end would be too small, or a lower one too large. No better bounds are
        known than the guarantee's ε and 0.
        """
        delta, reason = self.stated["guarantee"]["delta"], "no better bound is known at this δ"
        if "profile" in path or not str(path[-1]).startswith("epsilon"):
            return None
        if path[-1] == "epsilon" and delta < RESOLVED[0] and asked_at(self.bounds, delta) != delta:
            return stated >= self.stated["guarantee"]["epsilon"], reason
        if path[-1] == "epsilon_lower" and delta > RESOLVED[1]:
            return stated == 0.0, reason
        return None

    def _ask(self, path: Path, bounds: DirectedBounds, tolerance: float) -> Answer:
        guarantee = self.stated["guarantee"]
        epsilon, delta = None, None
        if "curve" in path:
            epsilon = self.stated["directions"][path[1]]["curve"]["epsilon"][path[-1]]
        elif "profile" in path:
            epsilon = _epsilon_beside(self.stated, path)
        elif str(path[-1]).startswith("delta"):
            epsilon = guarantee["epsilon"]
        else:
            delta = asked_at(self.bounds, guarantee["delta"])
        question = Question(epsilon, delta, tolerance)
        key = (question, int(path[1]) if path[0] == "records" else None)
        if key not in self._known:
            self._known[key] = self.engine.ask(bounds, question)
        return self._known[key]

    @staticmethod
    def _ends(answer: Answer, bounds: DirectedBounds, path: Path) -> tuple[float, float]:
        """Return the bound that holds at this end, and the value beyond which no finer computation proves anything."""
        direction = _direction(path)
        sides = [side for side in answer.directions if direction in (None, side)]
        directions = [answer.directions[side] for side in sides]
        if str(path[-1]).endswith("_lower"):
            limits = [
                one.lower_account.upper if bounds[side].kinds is None else one.upper
                for side, one in zip(sides, directions, strict=True)
            ]
            return max(one.lower for one in directions), max(limits)
        most = 1.0 if "delta" in path else math.inf
        least = max(bound_at_least(bounds[side], answer.directions[side]) for side in sides)
        return min(most, max(one.upper for one in directions)), least

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

    stated: dict[str, Any]
    retest: Retest

    def __call__(self, path: Path, stated: float) -> tuple[bool, str]:
        """Return whether a bound or an estimate from other samples is compatible with the new ones, and the reason."""
        leaf, direction, guarantee = str(path[-1]), _direction(path), self.stated["guarantee"]
        if path[0] == "risk":
            return self._risk_epsilon(leaf, stated)
        if "profile" not in path and leaf in ("epsilon", "delta"):
            return False, "not what was retested"
        epsilon = stated if leaf == "epsilon_lower" else guarantee["epsilon"]
        if "profile" in path:
            epsilon = _epsilon_beside(self.stated, path)
        if leaf.endswith("_lower") and "profile" not in path:
            # No smaller ε than this lower end holds at this δ, so δ at this ε is at least this value.
            least = guarantee["delta"] if leaf == "epsilon_lower" else stated
            estimate = error = 0.0
            for times in LOOKS:
                estimate, error = self.retest.estimate(epsilon, direction, below=True, times=times)
                if abs(least - estimate) >= STANDARD_ERRORS * error:
                    break
            return least <= estimate - STANDARD_ERRORS * error, _estimate_words(epsilon, estimate, error)
        point_bounds = self.retest.point(epsilon, direction)
        estimate, error = self.retest.estimate(epsilon, direction, below=leaf == "delta_lower")
        reason = _estimate_words(epsilon, estimate, error)
        if leaf == "delta_lower":
            most = max(point_bounds.lower, estimate - STANDARD_ERRORS * error)
            return stated <= most, f"{reason}, and at least {point_bounds.lower:.6g}"
        if leaf == "delta":
            least_shown = max(estimate + STANDARD_ERRORS * error, UNSEEN * point_bounds.upper)
            least = min(least_shown, point_bounds.upper)
            return stated >= least, f"{reason}, and at most {point_bounds.upper:.6g}"
        # An estimate from fewer samples has a larger variance.
        spread = 2.0 * STANDARD_ERRORS * error
        return point_bounds.lower - spread <= stated <= point_bounds.upper + spread, reason

    def _risk_epsilon(self, leaf: str, stated: float) -> tuple[bool, str]:
        """Check an end of the ε reported with a risk budget. The ends of the measure follow from the guarantee's."""
        if leaf not in ("epsilon", "epsilon_lower"):
            return True, "follows from the guarantee and the ends of its directions"
        delta, upper = self.stated["risk"]["delta"], leaf == "epsilon"
        found, (estimate, error) = self.retest.point(stated), self.retest.estimate(stated, below=not upper)
        reason = _estimate_words(stated, estimate, error)
        if upper:
            return delta >= min(found.upper, max(estimate + STANDARD_ERRORS * error, UNSEEN * found.upper)), reason
        return delta <= max(found.lower, estimate - STANDARD_ERRORS * error), reason


def _estimate_words(epsilon: float, estimate: float, error: float) -> str:
    return f"compared with new samples: δ({epsilon:.6g}) is estimated to be {estimate:.6g} ± {error:.2g}"


def _epsilon_beside(stated: Any, path: Path) -> float:
    """Return the ε of the point of a profile whose δ is at this path."""
    for part in path[:-1]:
        stated = stated[part]
    epsilon: float = stated["epsilon"]
    return epsilon
