"""Evidence in, certificate out: the statement, its assumptions and its proof of work."""

from __future__ import annotations

import math
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from pyaccount import _core
from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.model import (
    BudgetLine,
    CertificateModel,
    Composition,
    Contrast,
    DirectionResult,
    Directions,
    EvidenceRecord,
    Guarantee,
    Phase,
    PrivacyUnit,
    ProfilePoint,
    ReductionRecord,
    Solved,
    Utility,
)
from pyaccount.certificate.rounding import plain
from pyaccount.certificate.statement import statement
from pyaccount.document import sampling_rate
from pyaccount.errors import path_text
from pyaccount.execute.engine import Answer
from pyaccount.plan.common import number, whole
from pyaccount.plan.plan import compile_document
from pyaccount.plan.reduction import DIRECTIONS, Direction

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.execute import Claim, Evidence
    from pyaccount.plan.plan import Plan

NOISE_CONVENTION = (
    "σ is the standard deviation of the noise added to each released sum, in units of the clip norm of one record."
)

#: The lines of the error budget, in the order of the computation.
SOURCES = {
    "truncation": "loss beyond the last lattice point of a round, counted as infinite",
    "window": "composed loss above the transform's window",
    "aliasing": "mass wrapped around the window (lower end)",
    "transform_rounding": "rounding of the Fourier transforms and powers",
    "mass_rounding": "rounding of masses, tilt and scale",
    "profile_relative_error": "largest relative error of a profile evaluation (relative, inside the discretised bounds)",
}


def issue(plan: Plan, evidence: Evidence) -> Certificate:
    """Word a certificate. `plan` is the plan as compiled; the evidence holds the document with its blank filled."""
    document, claim = evidence.document, evidence.claim
    filled = compile_document(document)
    guarantee = Guarantee(
        kind="deterministic",
        epsilon=claim.epsilon,
        epsilon_lower=min(claim.at_delta.lower, claim.epsilon),
        delta=min(claim.delta, 1.0),
        delta_lower=min(claim.at_epsilon.lower, claim.delta, 1.0),
        failure_probability=0.0,
    )
    noises = {number(body.noise.multiplier) for body in document.bodies}
    privacy = PrivacyUnit(
        adjacency=document.privacy.adjacency, group_size=whole(document.privacy.group_size), unit="record"
    )
    reductions = [
        ReductionRecord(
            path=path_text(reduction.path) or "document",
            subject=reduction.subject,
            theorem=reduction.theorem,
            source=reduction.source,
            pair=reduction.pair,
            rounds=reduction.rounds,
            tight=reduction.tight,
            remark=reduction.remark,
        )
        for reduction in filled.reductions
    ]
    # One list for the whole run, each assumption once, in the order of the phases.
    assumptions = list(dict.fromkeys(text for reduction in filled.reductions for text in reduction.assumptions))
    return Certificate(
        CertificateModel(
            pyaccount=1,
            kind="certificate",
            name=document.name,
            statement=statement(document, guarantee, holds=evidence.holds),
            holds=evidence.holds,
            guarantee=guarantee,
            solved=_solved(plan, evidence),
            privacy=privacy,
            noise_multiplier=noises.pop() if len(noises) == 1 else None,
            noise_convention=NOISE_CONVENTION,
            phases=[_phase(body) for body in document.bodies],
            directions=Directions(**{d: _direction(evidence, d) for d in DIRECTIONS}),
            profile=[_point(answer) for answer in evidence.profile],
            utility=_utility(document),
            assumptions=assumptions,
            reductions=reductions,
            evidence=_evidence(filled, claim),
            unamplified=Contrast(
                description="every record in every round",
                epsilon=evidence.unamplified.upper,
                delta=evidence.unamplified.question.delta or 0.0,
            ),
            group_lemma=None
            if evidence.group_lemma is None
            else Contrast(
                description="the black-box lemma for groups applied to the guarantee for one record",
                epsilon=evidence.group_lemma.epsilon,
                delta=evidence.group_lemma.delta,
            ),
            document=plan.document.to_mapping(),
            document_sha256=plan.document.sha256,
            versions={
                "pyaccount": version("pyaccount"),
                "core": _core.__version__,
                "python": platform.python_version(),
            },
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    )


def _solved(plan: Plan, evidence: Evidence) -> Solved | None:
    blank = plan.document.blank
    if blank is None:
        return None
    if evidence.solution is not None:
        return Solved(path=path_text(blank), value=evidence.solution.value, fails_at=evidence.solution.fails_at)
    claim = evidence.claim
    value, below = (
        (claim.epsilon, claim.at_delta.lower) if blank[-1] == "epsilon" else (claim.delta, claim.at_epsilon.lower)
    )
    return Solved(path=path_text(blank), value=value, fails_at=below if below > 0.0 else None)


def _phase(body: Body) -> Phase:
    sampled = body.sampler.kind != "none"
    rate = sampling_rate(body) if sampled else None
    size = body.training.expected_batch_size
    if size is None and rate is not None and body.training.dataset_size is not None:
        size = rate * body.training.dataset_size
    return Phase(
        name=body.name,
        sampler=body.sampler.kind,
        iterations=whole(body.training.iterations),
        count=body.count,
        noise_multiplier=number(body.noise.multiplier),
        sampling_probability=rate,
        expected_batch_size=None if size is None else number(size),
    )


def _point(answer: Answer, direction: Direction | None = None) -> ProfilePoint:
    source = answer if direction is None else answer.directions[direction]
    assert answer.question.epsilon is not None
    return ProfilePoint(
        epsilon=answer.question.epsilon, delta=min(source.upper, 1.0), delta_lower=min(source.lower, 1.0)
    )


def _direction(evidence: Evidence, direction: Direction) -> DirectionResult:
    at_delta = evidence.claim.at_delta.directions[direction]
    at_epsilon = evidence.claim.at_epsilon.directions[direction]
    return DirectionResult(
        epsilon=at_delta.upper,
        epsilon_lower=at_delta.lower,
        delta=min(at_epsilon.upper, 1.0),
        delta_lower=min(at_epsilon.lower, 1.0),
        profile=[_point(answer, direction) for answer in evidence.profile],
    )


def _utility(document: Document) -> Utility | None:
    """Identity matrix: the noise of a prefix sum over i rounds has variance iσ²; its mean over n rounds is σ²(n + 1)/2."""
    if len(document.bodies) != 1 or document.bodies[0].count != 1:
        return None
    body = document.bodies[0]
    sigma, n = number(body.noise.multiplier), whole(body.training.iterations)
    mse = sigma**2 * (n + 1) / 2
    return Utility(prefix_sum_mse=mse, prefix_sum_rmse=math.sqrt(mse), max_error=sigma * math.sqrt(n))


def _evidence(plan: Plan, claim: Claim) -> EvidenceRecord:
    anchor = claim.at_delta if claim.anchor == "delta" else claim.at_epsilon
    question = (
        f"ε at δ = {plain(anchor.question.delta)}"
        if anchor.question.delta is not None
        else f"δ at ε = {plain(anchor.question.epsilon or 0.0)}"
    )
    bounds = plan.bounds()
    compositions: list[Composition] = []
    budget: list[BudgetLine] = []
    # Directions that are one and the same composition are listed once.
    shared = bounds["remove"] == bounds["add"]
    for direction in DIRECTIONS[:1] if shared else DIRECTIONS:
        label: Literal["remove", "add", "both"] = "both" if shared else direction
        answer = anchor.directions[direction]
        attained = all(reduction.tight for reduction in plan.reductions)
        accounts = [("mechanism" if attained else "upper", answer.upper_account)]
        if bounds[direction].lower != bounds[direction].upper and not attained:
            accounts.append(("concrete-pair", answer.lower_account))
        for bound, account in accounts:
            compositions.append(
                Composition(
                    direction=label,
                    bound=bound,  # type: ignore[arg-type]
                    question=question,
                    lower=account.lower,
                    upper=account.upper,
                    spacing=account.spacing,
                    profile_evaluations=account.nodes,
                    transform_length=account.transform_length,
                    tilt=account.tilt,
                )
            )
        budget += [
            BudgetLine(source=text, direction=label, contribution=max(0.0, answer.upper_account.budget[key]))
            for key, text in SOURCES.items()
        ]
    return EvidenceRecord(
        engine=plan.engine,
        tolerance=plan.document.accounting.tolerance,
        within_tolerance=anchor.within_tolerance,
        compositions=compositions,
        error_budget=budget,
    )
