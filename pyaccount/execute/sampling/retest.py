"""Retest the statement of a sampled certificate, without a search or a grid, and with more samples than it had.

The test is that of the statement's kind, with its wealth and its claim, so that an accepted claim is certified as if it
had been the only value of a grid. A true claim may fail a test, for want of samples or because the pilot considers it
false, so a rejected claim is retested. A false one is accepted by one of `ATTEMPTS` tests with probability at most that
many times one test's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyaccount.directions import Direction
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling.beside import profile_shards
from pyaccount.execute.sampling.confidence import FAR_DELTA_DISTANCES
from pyaccount.execute.sampling.estimates import Effort
from pyaccount.execute.sampling.evidence import SampledResult, evidence_of
from pyaccount.execute.sampling.fixed_sequence import Result, SequenceResult
from pyaccount.execute.sampling.moments import MomentProof
from pyaccount.execute.sampling.profile import curve, larger
from pyaccount.execute.sampling.renyi import prove_claim, prove_delta, prove_epsilon
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.execute.sampling.tests_of_claims import (
    FAILURE_SHARE,
    STARTS,
    Acceptance,
    Test,
    folded,
    of_claim,
    stated_separately,
)
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.records.certificate import CertificateModel, ProfilePoint

#: How often a claim is tested before it counts as not accepted.
ATTEMPTS = 3
#: The shards of an estimate that judges an end, and the most if there are too few samples.
ESTIMATE_SHARDS = (64, 256)
#: Lower ends and curves get this many times their original samples, so that their standard errors are half as large.
MORE = 4
#: The range of q as a share of the δ solved for: δ is a value of a grid above the estimate from which q follows.
PROBABILITY_SHARES = (FAILURE_SHARE / (1.0 + max(FAR_DELTA_DISTANCES)), FAILURE_SHARE)


@dataclass(frozen=True, slots=True)
class Retest:
    """The result of a retest. What was `sampled` is for the unchanged statement, whether it was `accepted` or not."""

    sampled: SampledResult
    accepted: bool
    #: The last test in each direction; empty if nothing had to be sampled.
    tests: tuple[Test, ...]
    session: Session
    #: The error probability of each bound of a point, over all directions.
    probability: float

    def point(self, epsilon: float, direction: Direction | None = None) -> ProfilePoint:
        """Return bounds on δ at any ε from the new samples, in one direction or the larger of both."""
        session, found = self.session, self.sampled.histograms
        share = self.probability / len(found)
        sides = self._directions(direction)
        points = [curve(session.sampler, found[side], (epsilon,), share)[0] for side in sides]
        beside = self.sampled.beside
        if self.accepted and beside is not None:
            points = [beside.capped(one, side) for one, side in zip(points, sides, strict=True)]
        return larger(points)

    def estimate(
        self, epsilon: float, direction: Direction | None = None, *, below: bool = False, times: int = 1
    ) -> tuple[float, float]:
        """Return an estimate of δ at ε and its standard error, from `times` the usual samples.

        With `below` it is of the pair for lower ends, if the bounding pair is not attained.
        """
        session = self.session
        mechanism = session.mechanism(self.sampled.certified.instance)
        judged = (mechanism.lower or mechanism) if below else mechanism
        least, most = (times * shards for shards in ESTIMATE_SHARDS)
        effort = Effort(least, most, purpose="estimate")
        found = [session.estimator.curve(judged, side, (epsilon,), effort)[0] for side in self._directions(direction)]
        if below:
            # Lower ends do not include what truncation may add.
            beyond = [session.sampler.beyond(judged, side, epsilon) for side in self._directions(direction)]
            found = [replace(one, value=one.value - more) for one, more in zip(found, beyond, strict=True)]
        largest = max(found, key=lambda one: one.value)
        return largest.value, largest.standard_error

    @property
    def refusal(self) -> str:
        """Why the statement was not accepted."""
        if not self.tests:
            return "retested: it does not hold without samples"
        last = self.tests[-1]
        # What samples leave out is missing in their mean.
        missing = last.limits.clipped + last.limits.left_out
        more = f", or up to {missing:.2g} more," if missing > 0.0 else ""
        estimate = (
            f"no sample saw a loss above ε = {last.epsilon:.6g}"
            if last.standard_error is None
            else f"δ({last.epsilon:.6g}) is estimated to be {last.mean:.4g} ± {last.standard_error:.2g}{more}"
        )
        return f"retested, and not accepted: {estimate}, but the claim is {last.threshold:.6g}"

    def _directions(self, direction: Direction | None) -> list[Direction]:
        return [side for side in self.sampled.histograms if direction is None or side in (direction, "replace")]


def retest(plan: CompiledDocument, stated: CertificateModel, options: RunOptions) -> Retest:
    """Retest the statement of a certificate. The plan has the certificate's noise; ε or δ may be its blank.

    A verified statement is about the document's own ε and δ, a statement of confidence about the document's δ (or its
    ε, if δ is the blank). If the statement contradicts the document, the caller must find that. A deterministic
    statement is recomputed. Raises as `execute_sampled`.
    """
    session = open_session(plan, options)
    session.report_delta = None if stated.risk is None else stated.risk.delta
    instance, privacy, guarantee = plan.at(), plan.document.privacy, stated.guarantee
    blank = None if session.asked.blank is None else str(session.asked.blank[-1])
    epsilon = guarantee.epsilon if privacy.epsilon == "solve" or not stated.holds else privacy.epsilon
    delta = guarantee.delta if privacy.delta == "solve" else privacy.delta
    tests: tuple[Test, ...] = ()
    proof: MomentProof | None = None
    if guarantee.kind == "deterministic":
        epsilon, delta, acceptance, accepted, proof = _without_samples(session, stated, blank, (epsilon, delta))
    else:
        acceptance, accepted = _acceptance(session, stated, blank, delta), False
        for _ in range(ATTEMPTS):
            tests = session.test(instance, epsilon, acceptance)
            accepted = all(test.accepted for test in tests)
            if accepted:
                break
    own = () if stated.evidence.sampling is None else stated.evidence.sampling.tests
    shards = MORE * profile_shards(sum(test.samples for test in own if test.accepted))
    filled = None if stated.solved is None else float(stated.solved.value)
    value = {"epsilon": epsilon, "delta": delta, "multiplier": filled}.get(blank or "")
    sequence = SequenceResult(None if guarantee.kind == "deterministic" else value, tests)
    result = Result(
        instance, acceptance, sequence, guarantee.kind, epsilon, delta, holds=stated.holds, solved=value, proof=proof
    )
    return Retest(evidence_of(session, result, shards=shards), accepted, tests, session, acceptance.probability)


def _total(stated: CertificateModel) -> float:
    """Return the stated probability of certifying something false."""
    sampling = stated.evidence.sampling
    return stated.guarantee.failure_probability if sampling is None else sampling.total_probability


def _acceptance(session: Session, stated: CertificateModel, blank: str | None, delta: float) -> Acceptance:
    """Return the claim that is tested and its wealth, as for a result of the same kind."""
    if stated.guarantee.kind == "confidence":
        # If δ was the blank, the probability follows from an estimate, so the statement's own is used.
        return _stated_beside(_total(stated) if blank == "delta" else FAILURE_SHARE * delta, delta)
    return of_claim(session.plan.document, STARTS if blank == "multiplier" else 1)


def _stated_beside(q: float, delta: float) -> Acceptance:
    """Return the test for an error probability that is stated beside the guarantee."""
    # A statement may contain any number; no wealth reaches 1/0.
    return stated_separately(delta, max(q, 1e-300))


def _without_samples(
    session: Session, stated: CertificateModel, blank: str | None, claim: tuple[float, float]
) -> tuple[float, float, Acceptance, bool, MomentProof | None]:
    """Return what is certified without a test: ε, δ, the test it counts as, whether the claim follows, and a proof."""
    plan, (epsilon, delta) = session.plan, claim
    instance = plan.at()
    if plan.document.accounting.method == "renyi" and (blank in {"epsilon", "delta"} or not stated.holds):
        if blank == "delta":
            found, proof = prove_delta(session, instance, epsilon)
            return epsilon, found, folded(found, 1), True, proof
        found, proof = prove_epsilon(session, instance, delta)
        return found, delta, folded(delta, 1), True, proof
    if blank == "delta":
        found = min(1.0, session.unsampled(instance, epsilon=epsilon).upper)
        return epsilon, found, _stated_beside(_total(stated), delta), True, None
    if blank == "epsilon" or not stated.holds:
        found = session.unsampled(instance, delta=delta).upper
        return found, delta, _stated_beside(FAILURE_SHARE * delta, delta), True, None
    asked = plan.document.accounting.method == "renyi"
    acceptance = of_claim(plan.document, STARTS) if blank == "multiplier" and not asked else folded(delta, 1)
    if session.unsampled(instance, epsilon=epsilon).upper <= delta:
        return epsilon, delta, acceptance, True, None
    find = prove_claim if asked else Session.moment_proof
    proof = find(session, instance, epsilon, delta)
    return epsilon, delta, acceptance, proof is not None, proof
