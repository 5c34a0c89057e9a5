"""A plan with a sampled reduction, executed: by what its document leaves blank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.execute.progress import knowing
from pyaccount.execute.sampling.calibrate import calibrate
from pyaccount.execute.sampling.confidence import solve_delta, solve_epsilon
from pyaccount.execute.sampling.evidence import evidence_of
from pyaccount.execute.sampling.session import open_session
from pyaccount.execute.sampling.verify import plan_fixed_sample
from pyaccount.execute.sampling.walk import Walked

if TYPE_CHECKING:
    from pyaccount.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.execute.sampling.evidence import SampledEvidence
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.plan import Plan


def execute_sampled(
    plan: Plan, *, threads: int, time_limit: float | None, report: Report, seed: int
) -> SampledEvidence:
    """Run a plan whose mechanism is sampled. Raises as `execute` does."""
    session = open_session(plan, threads=threads, time_limit=time_limit, report=report, seed=seed)
    report("bounds without samples", 0, None)
    with knowing(lambda: session.known):
        return _execute(session, plan.document)


def _execute(session: Session, document: Document) -> SampledEvidence:
    blank = None if document.blank is None else document.blank[-1]
    if blank == "multiplier":
        return calibrate(session, document)
    if blank == "epsilon":
        return solve_epsilon(session, document, None)
    if blank == "delta":
        return solve_delta(session, document)
    return _check(session, document)


def _check(session: Session, document: Document) -> SampledEvidence:
    """Test the claim; if it is not accepted, say what ε can be certified at its δ."""
    privacy = document.privacy
    assert privacy.epsilon != "solve"
    assert privacy.delta != "solve"
    epsilon, delta = privacy.epsilon, privacy.delta
    bound = session.unsampled(document, epsilon=epsilon)
    if bound.upper <= delta:
        # Holds without sampling being looked at.
        session.allow(delta, 1)
        return evidence_of(
            session, document, Walked(None, ()), "deterministic", epsilon, delta, holds=True, solved=None, within=True
        )
    if document.accounting.verification == "fixed-sample":
        session.fix(plan_fixed_sample(delta))
    else:
        session.allow(delta, 1)
    tests = session.test(document, epsilon, session.claim)
    if all(test.accepted for test in tests):
        walked = Walked(epsilon, tests)
        return evidence_of(session, document, walked, "verified", epsilon, delta, holds=True, solved=None, within=True)
    session.fixed = None
    return solve_epsilon(session, document, Walked(None, tests))
