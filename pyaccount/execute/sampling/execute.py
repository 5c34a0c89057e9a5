"""Execute a plan with a sampled reduction: its document's blank decides how."""

from __future__ import annotations

from pyaccount.execute.certified import CertifiedNumbers
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import knowing
from pyaccount.execute.sampling.calibrate import calibrate, take_claim
from pyaccount.execute.sampling.confidence import solve_delta, solve_epsilon
from pyaccount.execute.sampling.evidence import SampledResult, evidence_of
from pyaccount.execute.sampling.fixed_sequence import Result, SequenceResult
from pyaccount.execute.sampling.renyi import execute_renyi
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.execute.sampling.tests_of_claims import folded, of_claim
from pyaccount.plan.common import number
from pyaccount.plan.compiled import CompiledDocument


def execute_sampled(plan: CompiledDocument, options: RunOptions) -> CertifiedNumbers:
    """Run a plan whose mechanism is sampled. Raises as `execute` does."""
    session = open_session(plan, options)
    options.report("bounds without samples", 0, None)
    with knowing(lambda: session.known):
        take_claim(session)
        return _execute(session).certified


def _execute(session: Session) -> SampledResult:
    if session.plan.document.accounting.method == "renyi":
        return execute_renyi(session)
    blank = session.plan.document.blank
    if blank is None:
        return _check(session)
    solvers = {"multiplier": calibrate, "epsilon": solve_epsilon, "delta": solve_delta}
    return solvers[str(blank[-1])](session)


def _check(session: Session) -> SampledResult:
    """Test the claim; if it is not accepted, find the ε that can be certified at its δ."""
    instance, privacy = session.plan.at(), session.plan.document.privacy
    epsilon, delta = number(privacy.epsilon), number(privacy.delta)
    bound = session.unsampled(instance, epsilon=epsilon)
    if bound.upper <= delta:
        # The claim holds even without amplification by sampling.
        sequence = SequenceResult(None, ())
        return evidence_of(session, Result(instance, folded(delta, 1), sequence, "deterministic", epsilon, delta))
    proof = session.moment_proof(instance, epsilon, delta)
    if proof is not None:
        sequence = SequenceResult(None, ())
        result = Result(instance, folded(delta, 1), sequence, "deterministic", epsilon, delta, proof=proof)
        return evidence_of(session, result)
    acceptance = of_claim(instance.document, 1)
    tests = session.test(instance, epsilon, acceptance)
    if all(test.accepted for test in tests):
        sequence = SequenceResult(epsilon, tests)
        return evidence_of(session, Result(instance, acceptance, sequence, "verified", epsilon, delta))
    return solve_epsilon(session, SequenceResult(None, tests))
