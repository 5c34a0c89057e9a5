"""The numbers of a certificate from samples: tested claims, confidence bounds and estimates, in separate fields."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.certificate.numbers import CertificateNumbers, budget_lines, considered, ordered, searched
from pyaccount.directions import DIRECTIONS
from pyaccount.errors import path_text
from pyaccount.records.certificate import DirectionResult, Directions, Guarantee, ProfilePoint, Solved
from pyaccount.records.evidence import (
    BudgetLine,
    ComponentRecord,
    ComposedCurveRecord,
    EvidenceRecord,
    LogSobolevRecord,
    MomentPolynomialRecord,
    MomentRecord,
    ProposalRecord,
    SamplingRecord,
    SecondMomentRecord,
    TestRecord,
)

if TYPE_CHECKING:
    from pyaccount.errors import Path
    from pyaccount.execute.sampling import SampledEvidence
    from pyaccount.execute.sampling.bounds_without_samples import SampledPoint
    from pyaccount.execute.sampling.composed_profile import ComposedProfile
    from pyaccount.execute.sampling.evidence import DirectionNumbers
    from pyaccount.execute.sampling.jobs import Component, Proposal
    from pyaccount.execute.sampling.moments import MomentProof
    from pyaccount.execute.sampling.tests_of_claims import SquareTest, Test
    from pyaccount.plan.compiled import CompiledDocument
    from pyaccount.risk.polynomials import MomentPolynomial

#: The engine of a guarantee that is proven by moments.
MOMENTS = (
    "moments of the likelihood ratio, by an exact chain over replicas of a record's participations, which prove the claim "
    "without samples; lower ends and the profile are from samples"
)


def sampled(plan: CompiledDocument, evidence: SampledEvidence, blank: Path | None) -> CertificateNumbers:
    """Return the numbers of a certificate; `blank` is the path at which the document says `solve`."""
    solved = None
    if blank is not None and evidence.solved is not None:
        solved = Solved(path=path_text(blank), value=evidence.solved, fails_at=None)
    return CertificateNumbers(
        guarantee=Guarantee(
            kind=evidence.kind,
            epsilon=evidence.epsilon,
            epsilon_lower=ordered(evidence.epsilon_lower, evidence.epsilon, "ε"),
            delta=evidence.delta,
            delta_lower=ordered(evidence.delta_lower, evidence.delta, "δ"),
            failure_probability=evidence.failure_probability,
        ),
        solved=solved,
        directions=Directions(
            remove=_direction(evidence.directions["remove"]), add=_direction(evidence.directions["add"])
        ),
        profile=[_point(point) for point in evidence.profile],
        evidence=_evidence(plan, evidence),
    )


def _point(point: SampledPoint) -> ProfilePoint:
    return ProfilePoint(
        epsilon=point.epsilon,
        delta=point.upper,
        delta_lower=min(point.lower, point.upper),
        delta_estimate=point.estimate,
        standard_error=point.standard_error,
    )


def _direction(numbers: DirectionNumbers) -> DirectionResult:
    return DirectionResult(
        epsilon=numbers.epsilon,
        epsilon_lower=numbers.epsilon_lower,
        delta=numbers.delta,
        delta_lower=numbers.delta_lower,
        profile=[_point(point) for point in numbers.profile],
        curve=None,
    )


def _evidence(plan: CompiledDocument, evidence: SampledEvidence) -> EvidenceRecord:
    accepted = [test for test in evidence.tests if test.accepted]
    last = {test.direction: test for test in accepted}
    budget: list[BudgetLine] = []
    engine = plan.engine
    tried = "moment" if plan.document.accounting.method == "renyi" else "test"
    if evidence.kind == "deterministic":
        last = {}
        if evidence.proof is not None:
            engine = MOMENTS
            budget += _moment_lines(evidence.proof)
        elif evidence.composed_profile is None:
            # The bound is that of the unamplified Gaussian mechanism, whose directions are equal.
            engine = f"closed form (one Gaussian mechanism, not amplified), which no {tried} improved on; {engine}"
            budget += budget_lines(evidence.fallback.directions["remove"], "both")
        else:
            engine = (
                "composition with public participations in the sampled phases, as bad as they can be, which no test "
                f"improved on; {engine}"
            )
            for side in DIRECTIONS:
                budget += budget_lines(evidence.fallback.directions[side], side)
    for direction, test in last.items():
        lines = {
            "failure of the tests: part of δ, or stated beside the guarantee": evidence.total_probability,
            "the generator: finite tail and grid of its normal numbers, rounding of its waiting times and of its counts": (
                test.limits.generator
            ),
            "rounding of the recursion, as a shift of each log density in nats (inside the samples)": test.limits.rounding,
        }
        if evidence.composed_profile is not None:
            lines |= {
                "loss of the composed phases beyond their curve, added to what samples estimate": test.limits.tail_mass,
                "largest relative distance of the composed curve's bounds (relative, inside the samples)": (
                    evidence.composed_profile.gap
                ),
            }
        if test.limits.clipped > 0.0:
            lines["clipping samples whose second moment is bounded, taken from the claim that is tested"] = (
                test.limits.clipped
            )
        if test.limits.left_out > 0.0:
            lines["samples that draw few busy replicas: what they leave out, taken from the claim that is tested"] = (
                test.limits.left_out
            )
        if test.limits.beyond > 0.0:
            lines["batches that are truncated, added to δ of the run without truncation"] = test.limits.beyond
        budget += [
            BudgetLine(source=source, direction=direction, contribution=contribution)
            for source, contribution in lines.items()
        ]
    return EvidenceRecord(
        engine=engine,
        tolerance=plan.tolerance,
        within_tolerance=evidence.within_tolerance,
        compositions=[],
        sampling=SamplingRecord(
            verification="fixed-sample" if evidence.fixed_sample is not None else "betting",
            seed=evidence.seed,
            seed_source="system" if evidence.document.accounting.seed is None else "document",
            samples=evidence.samples,
            shard_size=_core.SHARD_SIZE,
            test_probability=evidence.test_probability,
            total_probability=evidence.total_probability,
            pointwise_failure_probability=evidence.pointwise_probability,
            profile_failure_probability=_beside_the_tests(evidence),
            tests=[_test(test) for test in evidence.tests],
            composed_curve=None if evidence.composed_profile is None else _curve(evidence.composed_profile),
            moment=None if evidence.proof is None else _moment(evidence.proof),
        ),
        considered=considered(plan),
        searched=searched(plan),
        alike=None,
        error_budget=budget,
    )


def _beside_the_tests(evidence: SampledEvidence) -> float | None:
    """Return the probability that an upper bound of the profile is wrong if a tested guarantee bounds it: `proven`."""
    if evidence.kind == "deterministic":
        return None
    return min(1.0, math.nextafter(evidence.pointwise_probability + evidence.total_probability, 1.0))


def _moment_lines(proof: MomentProof) -> list[BudgetLine]:
    """Return the budget lines of a proof by moments. All of δ counts, since its distance to the truth is unknown."""
    how = "a moment" if proof.polynomial is None else "moments together"
    return [
        BudgetLine(source=f"bound by {how}, rounded up (all of δ)", direction="remove", contribution=proof.remove),
        BudgetLine(source="bound by the weights of a proposal (all of δ)", direction="add", contribution=proof.add),
    ]


def _moment(proof: MomentProof) -> MomentRecord:
    return MomentRecord(
        order=proof.order,
        log_moment=proof.log_moment,
        states=proof.states,
        most_busy=proof.replicas.most_busy or None,
        remove=proof.remove,
        add=proof.add,
        polynomial=None if proof.polynomial is None else _polynomial(proof.polynomial),
    )


def _polynomial(found: MomentPolynomial) -> MomentPolynomialRecord:
    lower, upper = zip(*found.log_moments, strict=True)
    return MomentPolynomialRecord(
        coefficients=list(found.coefficients), log_moments_lower=list(lower), log_moments_upper=list(upper)
    )


def _curve(composed: ComposedProfile) -> ComposedCurveRecord:
    return ComposedCurveRecord(
        nodes=composed.nodes,
        spacing=composed.spacing,
        reach=composed.reach,
        compositions=composed.compositions,
        tail_mass=composed.tail_mass,
        relative_gap=composed.gap,
    )


def _proposal(proposal: Proposal) -> ProposalRecord:
    power = proposal.replicas
    return ProposalRecord(
        parameter=proposal.parameter,
        mean_scale=proposal.mean_scale,
        further=list(proposal.further),
        order=None if power is None else power.order,
        block=None if power is None else power.block or None,
        most_busy=None if power is None else power.most_busy or None,
        log_sobolev=None
        if proposal.log_sobolev is None
        else LogSobolevRecord(size=proposal.log_sobolev.size, exponent=proposal.log_sobolev.exponent),
        mixture=[_component(one) for one in proposal.components],
    )


def _component(component: Component) -> ComponentRecord:
    share = component.share / _core.SHARD_UNITS
    tilted = not component.parameters
    return ComponentRecord(
        share=share,
        tilt=component.number if tilted else None,
        parameters=list(component.parameters),
        mean_scale=None if tilted else component.number,
    )


def _test(test: Test) -> TestRecord:
    return TestRecord(
        direction=test.direction,
        noise_multiplier=test.noise_multiplier,
        epsilon=test.epsilon,
        threshold=test.threshold,
        proposal=_proposal(test.proposal),
        weight_bound=test.limits.weight_bound,
        betting_fractions=list(test.fractions),
        samples=test.samples,
        log_wealth=test.log_wealth,
        log_target=test.log_target,
        mean=test.mean,
        standard_error=test.standard_error,
        accepted=test.accepted,
        second_moment=None if test.square is None else _second_moment(test.square),
    )


def _second_moment(test: SquareTest) -> SecondMomentRecord:
    return SecondMomentRecord(
        bound=test.bound,
        size=test.proposal.size,
        exponent=test.proposal.exponent,
        weight_bound=test.most,
        betting_fractions=list(test.fractions),
        samples=test.samples,
        log_wealth=test.log_wealth,
    )
