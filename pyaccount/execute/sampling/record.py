"""Fill the evidence of a certificate with what was sampled: tests, and the errors that they may have made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.execute.certified import budget_lines, considered, searched
from pyaccount.records.evidence import (
    BudgetLine,
    ComposedCurveRecord,
    EvidenceRecord,
    MomentRecord,
    SamplingRecord,
    TestRecord,
)

if TYPE_CHECKING:
    from pyaccount.document.policy import GuaranteeKind
    from pyaccount.execute.engine import Answer
    from pyaccount.execute.sampling.error_probability import Acceptance
    from pyaccount.execute.sampling.fixed_sequence import SequenceResult
    from pyaccount.execute.sampling.moments import MomentProof
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.compiled import Instance

#: The engine of a guarantee that is proven by moments.
MOMENTS = (
    "moments of the likelihood ratio, by an exact chain over replicas of a record's participations, which prove the claim "
    "without samples; lower ends and the profile are from samples"
)

#: What samples of a replaced record lack.
BELOW_FLOOR = "outcomes below the floor of the samples, by a bound on δ of an added record"


@dataclass(frozen=True, slots=True)
class Result:
    """A result: what was certified, for which mechanism and how. The rest of the evidence is computed for it."""

    instance: Instance
    acceptance: Acceptance
    sequence: SequenceResult
    kind: GuaranteeKind
    epsilon: float
    delta: float
    holds: bool = True
    solved: float | None = None
    within: bool = True
    #: The proof, if moments prove the result.
    proof: MomentProof | None = None
    #: How many of the first tests were of a refused claim: their error is not part of the result's probability.
    refused: int = 0


def evidence_record(session: Session, result: Result, fallback: Answer) -> EvidenceRecord:
    """Return how a result was computed. `fallback` is the bound that holds if no test accepts."""
    plan, acceptance, tests = session.plan, result.acceptance, result.sequence.tests
    composed, q = session.composed_profile(result.instance), acceptance.probability
    total = acceptance.starts * q
    accepted = [test for test in tests if test.accepted]
    last = {test.direction: test for test in accepted}
    budget: list[BudgetLine] = []
    engine = plan.engine
    tried = "moment" if plan.document.accounting.method == "renyi" else "test"
    if result.kind == "deterministic":
        last = {}
        if result.proof is not None:
            engine = MOMENTS
            budget += _moment_lines(result.proof)
        elif composed is None:
            # The bound is that of the unamplified Gaussian mechanism, whose directions are equal.
            engine = f"closed form (one Gaussian mechanism, not amplified), which no {tried} improved on; {engine}"
            budget += budget_lines(fallback.directions["remove"], "both")
        else:
            engine = (
                "composition with public participations in the sampled phases, as bad as they can be, which no test "
                f"improved on; {engine}"
            )
            for side in DIRECTIONS:
                budget += budget_lines(fallback.directions[side], side)
    for direction, test in last.items():
        lines = {
            "failure of the tests: part of δ, or stated beside the guarantee": total,
            "the generator: finite tail and grid of its normal numbers, rounding of its waiting times and of its counts": (
                test.limits.generator
            ),
            "rounding of the recursion, as a shift of each log density in nats (inside the samples)": test.limits.rounding,
        }
        if composed is not None:
            lines |= {
                "loss of the composed phases beyond their curve, added to what samples estimate": test.limits.tail_mass,
                "largest relative distance of the composed curve's bounds (relative, inside the samples)": (
                    composed.relative_gap
                ),
            }
        if test.limits.clipped > 0.0:
            why = "clipping samples whose second moment is bounded" if test.proposal.floor is None else BELOW_FLOOR
            lines[f"{why}, taken from the claim that is tested"] = test.limits.clipped
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
    deterministic = result.kind == "deterministic"
    return EvidenceRecord(
        engine=engine,
        tolerance=plan.tolerance,
        within_tolerance=result.within,
        compositions=[],
        sampling=SamplingRecord(
            verification="fixed-sample" if acceptance.fixed is not None else "betting",
            seed=session.sampler.seed,
            seed_source="system" if result.instance.document.accounting.seed is None else "document",
            samples=session.sampler.samples,
            shard_size=_core.SHARD_SIZE,
            test_probability=q,
            total_probability=total,
            pointwise_failure_probability=q,
            # A tested guarantee bounds the profile too: see `proven`.
            profile_failure_probability=None if deterministic else min(1.0, math.nextafter(q + total, 1.0)),
            tests=[TestRecord.model_validate(test) for test in tests],
            composed_curve=None if composed is None else ComposedCurveRecord.model_validate(composed),
            moment=None if result.proof is None else MomentRecord.model_validate(result.proof),
        ),
        considered=considered(plan),
        searched=searched(plan),
        alike=None,
        error_budget=budget,
    )


def _moment_lines(proof: MomentProof) -> list[BudgetLine]:
    """Return the budget lines of a proof by moments. All of δ counts, since its distance to the truth is unknown."""
    how = "a moment" if proof.polynomial is None else "moments together"
    return [
        BudgetLine(source=f"bound by {how}, rounded up (all of δ)", direction="remove", contribution=proof.remove),
        BudgetLine(source="bound by the weights of a proposal (all of δ)", direction="add", contribution=proof.add),
    ]
