"""Turn a budget of risk into one claim: an (ε, δ) that keeps the budget, and that is tested instead of it.

A true-positive rate of at most T at the false-positive rate α follows from any (ε, δ) with e^ε α + δ ≤ T, an advantage
of at most A from (0, A): see `Budget.claim` for the proof. The choice of ε affects the noise but not validity: it is
placed by estimates where e^ε α + δ(ε) is least, and the claim is then tested by its own samples, as in any document.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.execute.sampling.calibrate import pilot_noise
from pyaccount.execute.sampling.error_probability import STARTS, of_claim
from pyaccount.execute.sampling.estimates import Effort
from pyaccount.plan.common import number
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.compiled import Instance
    from pyaccount.risk.budget import Budget

#: How often ε is placed, and the step, as a share of the range of ε, below which it is not placed any further.
ROUNDS, CLOSE = 4, 0.04
#: The number of ε at which δ is estimated to place ε, and the shards of each estimate.
PLACES, SHARDS = 17, 16
#: The relative precision of σ while ε is placed.
PRECISION = 1e-2


def take_claim(session: Session) -> None:
    """Let a session work on a claim that keeps its document's budget of risk. Does nothing if there is no budget."""
    document = session.plan.document
    budget = budget_of(document)
    if budget is None:
        return
    session.report_delta = number(document.privacy.delta)
    # Placing ε may consider any of these, for which the budget leaves a positive δ.
    last = max((epsilon for epsilon in budget.places() if budget.claim(epsilon) is not None), default=0.0)
    epsilon = 0.5 * last
    for _ in range(ROUNDS):
        _claim(session, document, budget, epsilon)
        if last == 0.0:
            return
        better = _placed(session, budget, _instance(session), last)
        if abs(better - epsilon) <= CLOSE * last:
            return
        epsilon = better
    _claim(session, document, budget, epsilon)


def _claim(session: Session, document: Document, budget: Budget, epsilon: float) -> None:
    """Set the claim at this ε, and drop what the session kept for another claim."""
    delta = budget.claim(epsilon)
    assert delta is not None
    session.plan = replace(session.plan, document=document.claiming(epsilon, delta))
    session.end, session.stream = None, None
    session.composed.clear()


def _instance(session: Session) -> Instance:
    """Return the mechanism for which ε is placed: with about the noise that the current claim needs, or as stated."""
    plan = session.plan
    if plan.blank is None:
        return plan.at()
    claim = of_claim(plan.document, STARTS).delta
    return plan.at(pilot_noise(session, claim, precision=PRECISION, shards=SHARDS)[0])


def _placed(session: Session, budget: Budget, instance: Instance, last: float) -> float:
    """Return the ε at which the claim is easiest: where the larger δ̂(ε) is farthest below what the budget leaves."""
    mechanism = session.mechanism(instance)
    epsilons = [last * (k + 0.5) / PLACES for k in range(PLACES)]
    found = [
        session.estimator.curve(mechanism, direction, epsilons, Effort(SHARDS)) for direction in mechanism.directions
    ]
    # This is limit − e^ε α − δ̂.
    room = [
        (budget.claim(epsilon) or 0.0) - max(one.value for one in ends)
        for epsilon, ends in zip(epsilons, zip(*found, strict=True), strict=True)
    ]
    best = max(range(PLACES), key=room.__getitem__)
    if not 0 < best < PLACES - 1:
        return epsilons[best]
    # Take the vertex of the parabola through the best point and its neighbours.
    left, middle, right = room[best - 1 : best + 2]
    bend = left - 2.0 * middle + right
    shift = 0.0 if bend >= 0.0 else 0.5 * (left - right) / bend
    return epsilons[best] + min(max(shift, -0.5), 0.5) * last / PLACES
