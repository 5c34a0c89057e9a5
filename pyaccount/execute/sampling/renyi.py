"""Guarantees by moments alone (`accounting.method: renyi`): σ, ε or δ without a test or a failure probability.

With upper bounds on the moments of the likelihood ratio, W_m(ε) bounds δ(ε) of a removed record (see `moments`), and
all moments up to m together bound it better. For an added record δ(ε) is bounded without samples. The value of the
blank is the smallest at which both bounds meet the target. ln W_m is convex in m and decreases smoothly in σ: the order
is the best one, and σ is a root for it, and then for all moments. The proof of the result is computed at the result
itself, whatever the search found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyaccount import _core
from pyaccount.document.ranges import SMALLEST_DELTA
from pyaccount.errors import DocumentError, NumericsError
from pyaccount.execute.engine import NOISE_RANGE
from pyaccount.execute.sampling.calibrate import composed_noise
from pyaccount.execute.sampling.evidence import SampledResult, evidence_of
from pyaccount.execute.sampling.fixed_sequence import Result, SequenceResult
from pyaccount.execute.sampling.moments import (
    ASKED_WORK,
    CHEAP_WORK,
    MOST_ORDER,
    MomentProof,
    Moments,
    chernoff,
    has_moments,
    inverse,
)
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.tests_of_claims import folded
from pyaccount.plan.common import number
from pyaccount.plan.compiled import Instance

#: How far below the claim a bound may be, relatively; and the most steps.
MARGIN, STEPS = 5e-4, 30
#: A search for σ begins with orders whose chains have few states in all rounds together, with a coarse precision.
LEVELS = ((CHEAP_WORK, 0.1), (10.0 * CHEAP_WORK, 0.02), (ASKED_WORK, 0.02))
#: How often at most the order is looked for where it proves the claim, and the precision of σ until it stays the same.
FURTHER_LOOKS, COARSE = 4, 0.02
#: The longest step in ln σ; and the share of the claim that W_m must be below for Z_m = 1.
STRIDE, ROOM = 0.3, 0.5
#: An estimate of the slope of ln of a bound in ln σ, before it is known.
SLOPE = -10.0
#: A bound is taken to jump if two σ this near, relatively, enclose the jump.
JUMP = 1e-6
#: The relative precision of an ε or σ that is decided by added records, or by bounds without amplification.
CLOSE = 1e-4
#: The factor of ε for each step if all moments together give a smaller one, and the least share of ε that is tried.
SHRUNK, NEGLIGIBLE = 0.9, 1e-6
#: σ is raised by this, relatively, and by twice as much each time, until both directions hold; and how often at most.
RAISED, RAISES = 1e-4, 16


def execute_renyi(session: Session) -> SampledResult:
    """Run a plan by moments. Raises as `execute_sampled`."""
    blank = session.plan.document.blank
    solvers = {None: _claim, "multiplier": _noise, "epsilon": _epsilon, "delta": _delta}
    return solvers[None if blank is None else str(blank[-1])](session)


def prove_claim(session: Session, instance: Instance, epsilon: float, delta: float) -> MomentProof | None:
    """Return a proof by moments that δ(ε) is at most `delta`, or None if they give none."""
    moments = moments_of(session, instance)
    moments.least(lambda order, log: chernoff(order, log, epsilon))
    proof = moments.proof(moments.best(epsilon), epsilon, delta)
    return proof if proof.delta <= delta else None


def prove_epsilon(session: Session, instance: Instance, delta: float) -> tuple[float, MomentProof | None]:
    """Return the smallest ε that is proven at δ, and its proof by moments; None if it holds without amplification."""
    moments, known = moments_of(session, instance), session.unsampled(instance, delta=delta).upper
    order = moments.least(lambda order, log: inverse(order, log, delta))
    # Start slightly above the root, since the bound is rounded up.
    low, high = 0.0, inverse(order, moments.log(order), delta) * (1.0 + 1e-12) + 1e-15
    if high >= known:
        return known, None
    proof = moments.proof(order, high)
    while proof.delta > delta and high < known:
        # The bound on added records, or on truncation, is the larger one here.
        low, high = high, min(2.0 * high, known)
        proof = moments.proof(order, high)
    if proof.delta > delta:
        return known, None
    if low == 0.0 and proof.together:
        # All moments together may give a smaller ε.
        low = high
        while low > NEGLIGIBLE * high and (found := moments.proof(order, low)).delta <= delta:
            high, proof, low = low, found, SHRUNK * low
    while low > 0.0 and high - low > CLOSE * high:
        middle = 0.5 * (low + high)
        found = moments.proof(order, middle)
        if found.delta <= delta:
            high, proof = middle, found
        else:
            low = middle
    return high, proof


def prove_delta(session: Session, instance: Instance, epsilon: float) -> tuple[float, MomentProof | None]:
    """Return the smallest δ that is proven at ε, and its proof by moments; None if it holds without amplification."""
    moments, known = moments_of(session, instance), min(1.0, session.unsampled(instance, epsilon=epsilon).upper)
    proof = moments.proof(moments.least(lambda order, log: chernoff(order, log, epsilon)), epsilon)
    return (known, None) if known <= proof.delta else (proof.delta, proof)


def moments_of(session: Session, instance: Instance) -> Moments:
    """Return the moments of a plan. Raises `DocumentError` if there is no chain for the numbers of the document."""
    mechanism, document = session.mechanism(instance), instance.document
    if not has_moments(mechanism):
        message = (
            "moments are known only if batches are seldom truncated, but here they are often truncated; "
            "truncate to more records"
        )
        path = ("accounting", "method")
        raise DocumentError([document.problem("no-valid-bound", path, message, allowed="auto or monte-carlo")])
    session.sampler.stage("moments, without samples")
    return Moments(session.engine, mechanism)


def _claim(session: Session) -> SampledResult:
    """Certify the claim, or the smallest ε at its δ if moments do not prove it."""
    instance, privacy = session.plan.at(), session.plan.document.privacy
    epsilon, delta = number(privacy.epsilon), number(privacy.delta)
    proof = prove_claim(session, instance, epsilon, delta)
    if proof is not None:
        return evidence_of(session, _result(instance, (epsilon, delta), proof))
    found, proof = prove_epsilon(session, instance, delta)
    return evidence_of(session, replace(_result(instance, (found, delta), proof), holds=False))


def _epsilon(session: Session) -> SampledResult:
    instance, delta = session.plan.at(), number(session.plan.document.privacy.delta)
    found, proof = prove_epsilon(session, instance, delta)
    return evidence_of(session, _result(instance, (found, delta), proof, solved=found))


def _delta(session: Session) -> SampledResult:
    instance, epsilon = session.plan.at(), number(session.plan.document.privacy.epsilon)
    found, proof = prove_delta(session, instance, epsilon)
    return evidence_of(session, _result(instance, (epsilon, found), proof, solved=found))


def _noise(session: Session) -> SampledResult:
    """Certify the smallest σ at which moments prove the claim."""
    plan, privacy = session.plan, session.plan.document.privacy
    epsilon, delta = number(privacy.epsilon), number(privacy.delta)
    known: dict[float, Moments] = {}

    def at(sigma: float) -> Moments:
        if sigma not in known:
            known[sigma] = moments_of(session, plan.at(sigma))
        return known[sigma]

    def excess(order: int, sigma: float) -> float:
        session.sampler.stage(f"moment of order {order}, σ = {sigma:.5g}")
        return math.log(max(chernoff(order, at(sigma).log(order), epsilon), SMALLEST_DELTA) / delta)

    def together(order: int, sigma: float) -> float:
        session.sampler.stage(f"all moments up to order {order}, σ = {sigma:.5g}")
        bound, found = chernoff(order, at(sigma).log(order), epsilon), at(sigma).polynomial(order, epsilon)
        return math.log(max(min([bound, *([found.bound(epsilon)] if found else [])]), SMALLEST_DELTA) / delta)

    # Since Z_m ≥ 1, no smaller order gives this δ, at any σ.
    enough = [one for one in range(2, MOST_ORDER + 1) if chernoff(one, 0.0, epsilon) <= ROOM * delta]
    if not enough:
        raise NumericsError(
            f"no moment of an order up to {MOST_ORDER} proves ({epsilon:g}, {delta:g}) at any σ; try accounting.method: "
            "monte-carlo"
        )
    smallest = enough[0]
    sigma, slope, order = composed_noise(session) or 1.0, SLOPE, 0
    for work, margin in LEVELS:
        best = at(sigma).least(lambda one, log: chernoff(one, log, epsilon), work)
        before, order = order, max(best, smallest)
        if not at(sigma).affordable(order):
            raise NumericsError(
                f"only moments of order {smallest} and above can prove this claim, and their chains of replicas are too "
                "large; try accounting.method: monte-carlo"
            )
        if order != before:
            sigma, slope = _crossing(partial(excess, order), sigma, slope, margin)
    for _ in range(FURTHER_LOOKS):
        # With much more noise another order may be the best one.
        best = max(at(sigma).least(lambda one, log: chernoff(one, log, epsilon)), smallest)
        if best == order:
            break
        order = best
        sigma, slope = _crossing(partial(excess, order), sigma, slope, COARSE)
    sigma, slope = _crossing(partial(excess, order), sigma, slope, MARGIN)
    session.known[:] = [f"σ is near {sigma:.5g}, by the moment of order {order}"]
    if at(sigma).together(order):
        session.known[:] = [f"σ is near {sigma:.5g}, by moments"]
        sigma, _ = _crossing(partial(together, order), sigma, slope, MARGIN)
    sigma = _added(session, sigma, epsilon, delta)
    for step in range(RAISES):
        proof = prove_claim(session, plan.at(sigma), epsilon, delta)
        if proof is not None:
            break
        # More noise may be needed because of truncation, or because the order was chosen at another σ.
        sigma *= 1.0 + RAISED * 2.0**step
    else:
        raise NumericsError(
            "no σ near the one that the moments ask for meets the target; try accounting.method: monte-carlo"
        )
    instance = plan.at(sigma)
    if session.unsampled(instance, epsilon=epsilon).upper <= delta:
        # Then less noise may suffice without amplification.
        sigma = _least(
            lambda one: session.unsampled(plan.at(one), epsilon=epsilon).upper <= delta, NOISE_RANGE[0], sigma
        )
        return evidence_of(session, _result(plan.at(sigma), (epsilon, delta), None, solved=sigma))
    return evidence_of(session, _result(instance, (epsilon, delta), proof, solved=sigma))


def _added(session: Session, sigma: float, epsilon: float, delta: float) -> float:
    """Return about the smallest σ from this one on at which δ(ε) of added records is low enough without samples."""

    def holds(sigma: float) -> bool:
        _core.Cancellation.check()
        session.sampler.stage(f"added records, σ = {sigma:.5g}")
        mechanism = session.mechanism(session.plan.at(sigma))
        return mechanism.bounded("add", epsilon) + mechanism.beyond("add", epsilon) <= delta

    low, high = sigma, sigma
    while not holds(high) and high < NOISE_RANGE[1]:
        low, high = high, high * math.exp(STRIDE)
    return _least(holds, low, high)


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return about the smallest value that holds, between one that does not hold and one that does."""
    while high > low * (1.0 + CLOSE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _crossing(excess: Callable[[float], float], start: float, slope: float, margin: float) -> tuple[float, float]:
    """Return a σ at which ln of a bound over the claim is in [−margin, 0], by secants, and the slope in ln σ there.

    A bound of few busy replicas is infinite up to some σ, and may be far below the claim there: then that σ is found,
    with a relative precision of `JUMP`. Raises `NumericsError` if the secants do not settle.
    """
    low, high, sigma = NOISE_RANGE[0], NOISE_RANGE[1], start
    before: tuple[float, float] | None = None
    for _ in range(STEPS):
        value = excess(sigma)
        if -margin <= value <= 0.0:
            return sigma, slope
        low, high = (sigma, high) if value > 0.0 else (low, sigma)
        if high < low * (1.0 + JUMP):
            return high, slope
        if before is not None and value != before[1]:
            slope = (value - before[1]) / math.log(sigma / before[0])
        before = (sigma, value)
        # Step slightly beyond the crossing, but stay inside the bracket.
        away = -(value + 0.5 * margin) / slope if slope < 0.0 else math.inf
        step = sigma * math.exp(min(max(away, -STRIDE), STRIDE))
        sigma = step if low < step < high else math.sqrt(low * high)
    raise NumericsError("the search for σ did not converge; try another epsilon or delta")


def _result(
    instance: Instance, claim: tuple[float, float], proof: MomentProof | None, solved: float | None = None
) -> Result:
    """Return the result for a claim (ε, δ) that holds without samples."""
    (epsilon, delta), sequence = claim, SequenceResult(None, ())
    acceptance = folded(delta, 1)
    return Result(instance, acceptance, sequence, "deterministic", epsilon, delta, solved=solved, proof=proof)
