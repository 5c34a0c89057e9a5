"""ε or δ of a given mechanism: the lowest on a ladder that is certified, stated with the probability that the tests err."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.errors import NumericsError
from pyaccount.execute.sampling.evidence import evidence_of
from pyaccount.execute.sampling.session import FAILURE_SHARE
from pyaccount.execute.sampling.walk import SECOND, STARTS, Walked, ladder, root, walk

if TYPE_CHECKING:
    from pyaccount.document import Document
    from pyaccount.execute.sampling.evidence import Kind, SampledEvidence
    from pyaccount.execute.sampling.session import Session
    from pyaccount.execute.sampling.verify import Test

#: The ladder for δ: relative distances above the pilot's estimate.
DELTA_DISTANCES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
#: And for the second one.
FAR_DELTA_DISTANCES = (9.0, 3.0)
#: How wide an interval for δ is by default.
DELTA_TOLERANCE = 0.12


def solve_epsilon(session: Session, document: Document, refused: Walked | None) -> SampledEvidence:
    """A confidence statement: the lowest ε on a ladder that is certified at δ."""
    delta = document.privacy.delta
    assert delta != "solve"
    session.fixed = None
    q = FAILURE_SHARE * delta
    session.starts, session.log_target, session.claim = STARTS, math.log(STARTS / q), delta
    mechanism = session.mechanism(document)
    worst = session.unsampled(document, delta=delta).upper
    if not math.isfinite(worst):
        raise NumericsError("the unamplified mechanism has no finite ε at this δ to start from")
    session.sampler.stage("pilot")
    foot = 0.0
    if worst > 0.0 and session.excess(mechanism, 0.0, delta)[0] > 0.0:
        foot = root(lambda epsilon: session.excess(mechanism, epsilon, delta), 0.5 * worst, 1e-3, worst)
    session.known.append(f"ε is near {foot:.4g}, by the pilot's estimate")

    def test(epsilon: float) -> tuple[Test, ...]:
        return session.test(document, epsilon, delta)

    if foot == 0.0:
        tests = test(0.0)
        walked = Walked(0.0 if all(t.accepted for t in tests) else None, tests)
    else:
        rungs = [
            [d for d in distances if foot * (1.0 + d) < worst] for distances in (ladder(session.plan.tolerance), SECOND)
        ]
        walked = walk(foot, rungs, test)
    epsilon = worst if walked.value is None else walked.value
    kind: Kind = "deterministic" if walked.value is None else "confidence"
    within = walked.value is not None and epsilon <= foot * (1.0 + session.plan.tolerance) * (1.0 + 1e-12)
    if refused is not None:
        walked = Walked(walked.value, refused.tests + walked.tests)
    return evidence_of(
        session,
        document,
        walked,
        kind,
        epsilon,
        delta,
        holds=refused is None,
        solved=None if refused is not None else epsilon,
        within=within,
    )


def solve_delta(session: Session, document: Document) -> SampledEvidence:
    """A confidence statement: the lowest δ on a ladder that is certified at ε."""
    epsilon = document.privacy.epsilon
    assert epsilon != "solve"
    mechanism = session.mechanism(document)
    session.sampler.stage("pilot")
    estimates = session.estimate(mechanism, epsilon, shards=64)
    foot = max(estimate.value for estimate in estimates.values())
    session.known.append(f"δ is near {foot:.3g}, by the pilot's estimate")
    worst = min(1.0, session.unsampled(document, epsilon=epsilon).upper)
    if foot <= 0.0:
        raise NumericsError("the pilot found no loss above this ε: δ is too small to estimate; ask at a smaller ε")
    q = FAILURE_SHARE * foot
    session.starts, session.log_target = STARTS, math.log(STARTS / q)
    stated = document.accounting.tolerance
    tolerance = DELTA_TOLERANCE if stated is None else stated
    rungs = ladder(tolerance, DELTA_DISTANCES)

    def test(delta: float) -> tuple[Test, ...]:
        return session.test(document, epsilon, delta)

    walked = walk(
        foot,
        [[d for d in rungs if foot * (1.0 + d) < worst], [d for d in FAR_DELTA_DISTANCES if foot * (1.0 + d) < worst]],
        test,
    )
    delta = worst if walked.value is None else walked.value
    kind: Kind = "deterministic" if walked.value is None else "confidence"
    within = walked.value is not None and delta <= foot * (1.0 + tolerance) * (1.0 + 1e-12)
    return evidence_of(session, document, walked, kind, epsilon, delta, holds=True, solved=delta, within=within)
