"""The noise that a target needs: the pilot's root, then a ladder of σ that is tested from the top down."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.document import UNBANDED, BMinSep, load, participation_rate, separation
from pyaccount.errors import DocumentError, NumericsError
from pyaccount.execute.engine import NOISE_RANGE, Question
from pyaccount.execute.sampling.estimates import ESTIMATE
from pyaccount.execute.sampling.evidence import evidence_of
from pyaccount.execute.sampling.session import FINENESS
from pyaccount.execute.sampling.verify import plan_fixed_sample
from pyaccount.execute.sampling.walk import ROOT, STARTS, Descent, ladders, root, walk
from pyaccount.plan.plan import compile_document

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.document import Document
    from pyaccount.execute.sampling.evidence import Kind, SampledEvidence
    from pyaccount.execute.sampling.session import Session

#: How near the least σ that holds without samples is looked for where it is composed.
COARSENESS = 5e-3


def calibrate(session: Session, document: Document) -> SampledEvidence:
    """Algorithm 5 of Dong & Ganesh (2026): a ladder of σ from just above the pilot's root, the unamplified Gaussian on top."""
    privacy, path = document.privacy, document.blank
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    assert path is not None
    descent = noise_descent(session, document)
    walked = walk(descent, lambda sigma, budget: session.test(*descent.claim(sigma), budget))
    sigma = descent.fallback if walked.value is None else walked.value
    if not math.isfinite(sigma):
        raise NumericsError(
            "no σ on the ladder was accepted, and none is certified without samples; try a larger tolerance"
        )
    kind: Kind = "deterministic" if walked.value is None else "verified"
    filled = document.with_value(path, sigma)
    within = walked.value is not None and descent.within(sigma, session.plan.tolerance)
    epsilon, delta = privacy.epsilon, privacy.delta
    return evidence_of(session, filled, walked, kind, epsilon, delta, holds=True, solved=sigma, within=within)


def noise_descent(session: Session, document: Document, *, shards: int = ESTIMATE) -> Descent:
    """The ladder of σ above the pilot's root, with the test's probability and claim fixed in the session."""
    privacy, path = document.privacy, document.blank
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    assert path is not None
    epsilon, delta = privacy.epsilon, privacy.delta
    if document.accounting.verification == "fixed-sample":
        # The bar is half of δ, so that is what the pilot looks for. One ladder: its q is part of the plan.
        session.fix(plan_fixed_sample(delta))
    else:
        session.allow(delta, STARTS)
    foot, fallback = pilot_noise(session, document, shards=shards)
    session.known[:] = [f"σ is near {foot:.4g}, by the pilot's estimate"]
    claim = session.claim
    return Descent(
        foot,
        fallback,
        ladders(session.plan.tolerance, starts=session.starts),
        lambda sigma: (document.with_value(path, sigma), epsilon, claim),
        session.mechanism(document.with_value(path, foot)).cost,
    )


def pilot_noise(
    session: Session, document: Document, *, precision: float = ROOT, shards: int = ESTIMATE
) -> tuple[float, float]:
    """The pilot's estimate of the σ at which δ(ε) is the claim, and a σ certified without sampling.

    The latter is infinite where another phase that is sampled, with its participations revealed, misses the target whatever σ is.
    """
    path, privacy = document.blank, document.privacy
    assert path is not None
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    epsilon, delta = privacy.epsilon, privacy.delta

    def gaussian(sigma: float) -> float:
        return session.unsampled(document.with_value(path, sigma), epsilon=epsilon).upper

    low, high = _bracket(lambda sigma: gaussian(sigma) <= delta) if session.plan.mixed else NOISE_RANGE
    missed = f"no σ reaches the target ε = {epsilon:g} at δ = {delta:g}: it is missed even at σ = {NOISE_RANGE[1]:g}"
    infeasible = document.problem("target-infeasible", path, f"{missed}; try a larger epsilon or delta")
    covered = gaussian(high) <= delta
    if not covered and len(document.bodies) == 1:
        raise DocumentError([infeasible])
    if gaussian(low) <= delta:
        message = f"the target ε = {epsilon:g} at δ = {delta:g} holds with hardly any noise (already at σ = {low:g})"
        raise DocumentError([document.problem("target-infeasible", path, f"{message}; try a smaller epsilon or delta")])
    while covered and high / low > 1.0 + (COARSENESS if session.plan.mixed else FINENESS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian(middle) <= delta else (middle, high)
    session.sampler.stage("pilot")

    def excess(sigma: float) -> tuple[float, float]:
        session.sampler.stage(f"pilot, σ = {sigma:.4g}")
        session.sampler.progress(0.0)
        mechanism = session.mechanism(document.with_value(path, sigma))
        found = session.excess(mechanism, epsilon, session.claim, shards=shards)
        near = session.claim * math.exp(found[0])
        session.known[:] = [f"δ({epsilon:g}) is near {near:.2g} at σ = {sigma:.4g}, by the pilot's estimate"]
        return found

    if covered:
        start = min(high, cyclic_noise(session, document) or 0.6 * high)
        return root(excess, start, NOISE_RANGE[0], high, precision=precision), high
    foot = root(excess, 1.0, NOISE_RANGE[0], high, precision=precision)
    if foot >= high:
        raise DocumentError([infeasible])
    return foot, math.inf


def _bracket(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Noise multipliers around the least one that holds, from the middle outwards; an end of the range if that is beyond it.

    At the ends of the range the losses of composed phases are enormous, and slow to compose.
    """
    high = 1.0
    while high < NOISE_RANGE[1] and not holds(high):
        high = min(4.0 * high, NOISE_RANGE[1])
    low = 0.25 * high
    while low > NOISE_RANGE[0] and holds(low):
        low = max(0.25 * low, NOISE_RANGE[0])
    return low, high


def cyclic_noise(session: Session, document: Document) -> float | None:
    """The σ that cyclic Poisson sampling with the same separation would need, roughly: where the pilot starts to look.

    It composes in a moment and is never far from b-min-sep sampling; nothing depends on how near it is.
    """
    body, path, privacy = document.bodies[0], document.blank, document.privacy
    assert path is not None
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    if len(document.bodies) > 1 or body.count > 1:
        return None
    if not isinstance(body.sampler, BMinSep) or isinstance(body.matrix, UNBANDED):
        return None
    raw = document.to_mapping()
    raw["sampler"] = {"kind": "cyclic-poisson", "partitions": separation(body)}
    raw["training"] = {"participation_rate": participation_rate(body), "iterations": body.training.iterations}
    raw["accounting"] = {}
    cyclic = load(raw)
    low, high = NOISE_RANGE
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        bounds = compile_document(cyclic.with_value(path, middle)).bounds()
        answer = session.engine.ask(bounds, Question(privacy.epsilon, None, 0.2))
        low, high = (low, middle) if answer.upper <= privacy.delta else (middle, high)
    return high
