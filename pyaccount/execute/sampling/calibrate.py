"""Find the noise that a target needs: a grid of σ above the pilot's root is tested in sequence, the largest first.

**A budget of risk** becomes one claim: an (ε, δ) that keeps the budget, and that is tested instead of it. A true-positive rate of
at most T at the false-positive rate α follows from any (ε, δ) with e^ε α + δ ≤ T, an advantage of at most A from (0, A): see
`Budget.claim` for the proof. The choice of ε affects the noise but not validity: it is placed by estimates where e^ε α + δ(ε) is
least, and the claim is then tested by its own samples, as in any document.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.policy import GuaranteeKind
from pyaccount.errors import DocumentError, NumericsError
from pyaccount.execute.engine import NOISE_RANGE, Question
from pyaccount.execute.sampling.estimates import ESTIMATE, Effort
from pyaccount.execute.sampling.evidence import SampledResult, evidence_of
from pyaccount.execute.sampling.fixed_sequence import (
    CHEAP,
    CHEAP_POWERS,
    ROOT,
    GridSearch,
    Result,
    grids,
    tested_in_sequence,
)
from pyaccount.execute.sampling.pilot import Crossing, crossing_root, noise_model
from pyaccount.execute.sampling.session import FINENESS, Session
from pyaccount.execute.sampling.tests_of_claims import STARTS, of_claim
from pyaccount.execute.solve import rest_alone, unreachable
from pyaccount.plan.common import given, number
from pyaccount.plan.compiled import Instance
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers import sampler_plan
from pyaccount.risk.budget import Budget
from pyaccount.risk.budgets import budget_of

#: How precisely the least σ that holds without samples is found if there are composed phases.
COARSENESS = 5e-3


def calibrate(session: Session) -> SampledResult:
    """Certify a σ by Algorithm 5 of Dong & Ganesh (2026): a grid from above the pilot's root to the unamplified σ."""
    privacy = session.plan.document.privacy
    epsilon, delta = number(privacy.epsilon), number(privacy.delta)
    search = noise_search(session)
    sequence = tested_in_sequence(session, search)
    sigma = search.fallback if sequence.value is None else sequence.value
    if not math.isfinite(sigma):
        raise NumericsError(
            "no σ of the grid was accepted, and none is certified without samples; try a larger tolerance"
        )
    kind: GuaranteeKind = "deterministic" if sequence.value is None else "verified"
    within = sequence.value is not None and search.within(sigma, session.plan.tolerance)
    filled, acceptance = session.plan.at(sigma), search.claim(sigma)[2]
    return evidence_of(
        session,
        Result(filled, acceptance, sequence, kind, epsilon, delta, solved=sigma, within=within),
    )


def noise_search(session: Session) -> GridSearch:
    """Return the grid of σ above the pilot's root."""
    plan, epsilon = session.plan, number(session.plan.document.privacy.epsilon)
    # For a fixed sample the threshold of the test is half of δ, so the pilot looks for that.
    acceptance = of_claim(plan.document, STARTS)
    pilot_value, fallback = pilot_noise(session, acceptance.delta)
    session.known[:] = [f"σ is near {pilot_value:.4g}, by the pilot's estimate"]
    mechanism = session.mechanism(plan.at(pilot_value))
    powers = mechanism.chain(2) is not None
    return GridSearch(
        pilot_value,
        fallback,
        grids(plan.tolerance, starts=acceptance.starts),
        lambda sigma: (plan.at(sigma), epsilon, acceptance),
        mechanism.cost,
        CHEAP_POWERS if powers else CHEAP,
    )


def pilot_noise(
    session: Session, claim: float, *, precision: float = ROOT, shards: int = ESTIMATE
) -> tuple[float, float]:
    """Return the pilot's estimate of the σ at which δ(ε) is the claim, and a σ that is certified without sampling.

    The latter is infinite if the unsampled analysis misses the target at every σ, because of another phase or release.
    """
    plan, document = session.plan, session.plan.document
    path, privacy = document.blank, document.privacy
    assert path is not None
    epsilon, delta = number(privacy.epsilon), number(privacy.delta)

    def gaussian(sigma: float) -> float:
        return session.unsampled(plan.at(sigma), epsilon=epsilon).upper

    low, high = _bracket(lambda sigma: gaussian(sigma) <= delta) if session.plan.mixed else NOISE_RANGE

    def infeasible() -> DocumentError:
        rest = rest_alone(plan.at(NOISE_RANGE[1]), path, session.engine)
        reason, remedy = unreachable(document, NOISE_RANGE[1], rest=rest)
        return DocumentError([document.problem("target-infeasible", path, f"{reason}; try {remedy}")])

    covered = gaussian(high) <= delta
    # Other phases, and other releases of a batch, may need the amplification that the unsampled analysis ignores.
    if not covered and len(document.phases) == 1 and not document.run.noise.also:
        raise infeasible()
    if gaussian(low) <= delta:
        message = f"the target ε = {epsilon:g} at δ = {delta:g} holds with hardly any noise (already at σ = {low:g})"
        raise DocumentError([document.problem("target-infeasible", path, f"{message}; try a smaller epsilon or delta")])
    while covered and high / low > 1.0 + (COARSENESS if session.plan.mixed else FINENESS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian(middle) <= delta else (middle, high)
    session.sampler.stage("pilot")

    def search(start: float) -> float:
        def at(sigma: float) -> tuple[SampledMechanism, float]:
            session.sampler.stage(f"pilot, σ = {sigma:.4g}")
            session.sampler.progress(0.0)
            return session.mechanism(plan.at(sigma)), epsilon

        def report(sigma: float, near: float) -> None:
            session.known[:] = [f"δ({epsilon:g}) is near {near:.2g} at σ = {sigma:.4g}, by the pilot's estimate"]

        crossing = Crossing(at, claim, noise_model(epsilon, claim), NOISE_RANGE[0], high, report)
        return crossing_root(session, crossing, start, precision=precision, shards=shards)

    if covered:
        return search(min(high, composed_noise(session) or 0.6 * high)), high
    pilot_value = search(1.0)
    if pilot_value >= high:
        raise infeasible()
    return pilot_value, math.inf


def _bracket(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return two noise multipliers around the least one that holds, from the middle outwards, or an end of the range.

    At the ends of the range the losses of composed phases are enormous, and slow to compose.
    """
    high = 1.0
    while high < NOISE_RANGE[1] and not holds(high):
        high = min(4.0 * high, NOISE_RANGE[1])
    low = 0.25 * high
    while low > NOISE_RANGE[0] and holds(low):
        low = max(0.25 * low, NOISE_RANGE[0])
    return low, high


def composed_noise(session: Session) -> float | None:
    """Return roughly the σ of a similar document whose rounds compose, from which the pilot starts; None if none is known."""
    document = session.plan.document
    epsilon, delta = number(document.privacy.epsilon), number(document.privacy.delta)
    if len(document.phases) > 1 or document.phases[0].count > 1:
        return None
    neighbour = sampler_plan(session.plan.only_run).composed_neighbour()
    if neighbour is None:
        return None
    composed = compile_document(load(document.to_mapping() | neighbour))
    low, high = NOISE_RANGE
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        answer = session.engine.ask(composed.at(middle).bounds(), Question(epsilon, None, 0.2))
        low, high = (low, middle) if answer.upper <= delta else (middle, high)
    return high


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
    session.plan = replace(session.plan, document=document.claiming(epsilon, given(delta)))
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
