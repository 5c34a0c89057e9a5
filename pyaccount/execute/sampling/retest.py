"""A sampled certificate's own statement, retested: no search, no grid, more samples than it was made with.

The test is the one of the statement's kind, with its wealth and its claim, so that what it accepts is certified as if
this had been the only value of a grid. A true claim may fail a test, for want of samples or by the pilot's doubt, so a rejected
claim is retested: a false one is accepted by one of `ATTEMPTS` tests with probability at most that many times one test's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyaccount.execute.sampling.confidence import FAR_DELTA_DISTANCES
from pyaccount.execute.sampling.error_probability import FAILURE_SHARE, STARTS, Acceptance, beside, folded, of_claim
from pyaccount.execute.sampling.estimates import Effort
from pyaccount.execute.sampling.evidence import (
    ESTIMATE_SHARDS,
    Result,
    SampledEvidence,
    evidence_of,
    profile_shards,
)
from pyaccount.execute.sampling.fixed_sequence import SequenceResult
from pyaccount.execute.sampling.profile import curve, larger
from pyaccount.execute.sampling.renyi import prove_claim, prove_delta, prove_epsilon
from pyaccount.execute.sampling.session import Session, open_session

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.document.policy import GuaranteeKind
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.sampling.moments import MomentProof
    from pyaccount.execute.sampling.proven import SampledPoint
    from pyaccount.execute.sampling.tests_of_claims import Test
    from pyaccount.plan.compiled import CompiledDocument


#: How often a claim is tested before it counts as not accepted.
ATTEMPTS = 3
#: Lower ends and curves get so many times the samples they were made with: their standard errors are half as large.
MORE = 4
#: q as a share of the δ solved for, which is a value of the grid above the estimate that q follows from.
PROBABILITY_SHARES = (FAILURE_SHARE / (1.0 + max(FAR_DELTA_DISTANCES)), FAILURE_SHARE)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a sampled certificate states, and where the blank of its document was."""

    kind: GuaranteeKind
    epsilon: float
    delta: float
    #: q: of certifying something false.
    total_probability: float
    holds: bool
    blank: Literal["multiplier", "epsilon", "delta"] | None
    value: float | None
    #: The samples of its accepted tests.
    samples: int
    #: Where it tells ε beside a budget of risk.
    told_at: float | None = None


@dataclass(frozen=True, slots=True)
class Retest:
    """What retesting gave; the evidence is for the statement as it stands, whether it was `accepted` or not."""

    evidence: SampledEvidence
    accepted: bool
    #: Of the last test in each direction; empty where nothing had to be sampled.
    tests: tuple[Test, ...]
    session: Session
    #: Drawn for each lower end and each curve.
    shards: int

    def point(self, epsilon: float, direction: Direction | None = None) -> SampledPoint:
        """δ at any ε from the new samples, in one direction or the larger of both."""
        session, found = self.session, self.evidence.histograms
        share = self.evidence.pointwise_probability / len(found)
        sides = self._directions(direction)
        points = [curve(session.sampler, found[side], (epsilon,), share)[0] for side in sides]
        beside = self.evidence.proven
        if self.accepted and beside is not None:
            points = [beside.capped(one, side) for one, side in zip(points, sides, strict=True)]
        return larger(points)

    def estimate(
        self, epsilon: float, direction: Direction | None = None, *, below: bool = False, times: int = 1
    ) -> tuple[float, float]:
        """An estimate of δ at ε and its standard error, from so many times the usual samples.

        `below`: of what lower ends are of, where the pair is not attained.
        """
        session = self.session
        mechanism = session.mechanism(self.evidence.instance)
        judged = (mechanism.lower or mechanism) if below else mechanism
        least, most = (times * shards for shards in ESTIMATE_SHARDS)
        effort = Effort(least, most, purpose="estimate")
        found = [session.estimator.curve(judged, side, (epsilon,), effort)[0] for side in self._directions(direction)]
        if below:
            # Lower ends are of what is sampled, without what truncation may add.
            beyond = [session.sampler.beyond(judged, side, epsilon) for side in self._directions(direction)]
            found = [replace(one, value=one.value - more) for one, more in zip(found, beyond, strict=True)]
        largest = max(found, key=lambda one: one.value)
        return largest.value, largest.standard_error

    def _directions(self, direction: Direction | None) -> list[Direction]:
        return [side for side in self.evidence.histograms if direction is None or side in (direction, "replace")]


def retest(plan: CompiledDocument, stated: Statement, options: RunOptions) -> Retest:
    """Retest a statement. The plan's noise is filled in; ε or δ may be its blank, and is then taken from the statement.

    A verified statement is about the document's own ε and δ, a statement of confidence about the document's δ (or its ε, where
    δ is the blank): what it says of these beside the document is for the caller to compare. A deterministic
    statement is recomputed. Raises as `execute_sampled`.
    """
    session = open_session(plan, options)
    session.told_at = stated.told_at
    instance, privacy = plan.at(), plan.document.privacy
    epsilon = stated.epsilon if privacy.epsilon == "solve" or not stated.holds else privacy.epsilon
    delta = stated.delta if privacy.delta == "solve" else privacy.delta
    tests: tuple[Test, ...] = ()
    proof: MomentProof | None = None
    if stated.kind == "deterministic":
        epsilon, delta, acceptance, accepted, proof = _without_samples(session, stated, epsilon, delta)
    else:
        acceptance, accepted = _acceptance(session, stated, delta), False
        for _ in range(ATTEMPTS):
            tests = session.test(instance, epsilon, acceptance)
            accepted = all(test.accepted for test in tests)
            if accepted:
                break
    shards = MORE * profile_shards(stated.samples)
    value = {"epsilon": epsilon, "delta": delta, "multiplier": stated.value, None: None}[stated.blank]
    sequence = SequenceResult(None if stated.kind == "deterministic" else value, tests)
    result = Result(
        instance, acceptance, sequence, stated.kind, epsilon, delta, holds=stated.holds, solved=value, proof=proof
    )
    evidence = evidence_of(session, result, shards=shards)
    return Retest(evidence, accepted, tests, session, shards)


def _acceptance(session: Session, stated: Statement, delta: float) -> Acceptance:
    """What is tested, and what certifies it, as for a result of the same kind."""
    if stated.kind == "confidence":
        # Where δ was the blank the probability follows from an estimate: then the statement's own is what is tested.
        return _beside(stated.total_probability if stated.blank == "delta" else FAILURE_SHARE * delta, delta)
    return of_claim(session.plan.document, STARTS if stated.blank == "multiplier" else 1)


def _beside(q: float, delta: float) -> Acceptance:
    """A failure probability that is stated beside the guarantee."""
    # A statement may say anything; no wealth reaches 1/0.
    return beside(delta, max(q, 1e-300))


def _without_samples(
    session: Session, stated: Statement, epsilon: float, delta: float
) -> tuple[float, float, Acceptance, bool, MomentProof | None]:
    """Return what certifies without a test: (ε, δ), as whose result it counts, whether the claim follows, and by which moment."""
    plan, blank = session.plan, stated.blank
    instance = plan.at()
    if plan.document.accounting.method == "renyi" and (blank in {"epsilon", "delta"} or not stated.holds):
        if blank == "delta":
            found, proof = prove_delta(session, instance, epsilon)
            return epsilon, found, folded(found, 1), True, proof
        found, proof = prove_epsilon(session, instance, delta)
        return found, delta, folded(delta, 1), True, proof
    if blank == "delta":
        found = min(1.0, session.unsampled(instance, epsilon=epsilon).upper)
        return epsilon, found, _beside(stated.total_probability, delta), True, None
    if blank == "epsilon" or not stated.holds:
        found = session.unsampled(instance, delta=delta).upper
        return found, delta, _beside(FAILURE_SHARE * delta, delta), True, None
    asked = plan.document.accounting.method == "renyi"
    acceptance = of_claim(plan.document, STARTS) if blank == "multiplier" and not asked else folded(delta, 1)
    if session.unsampled(instance, epsilon=epsilon).upper <= delta:
        return epsilon, delta, acceptance, True, None
    find = prove_claim if asked else Session.moment_proof
    proof = find(session, instance, epsilon, delta)
    return epsilon, delta, acceptance, proof is not None, proof
