"""Turn a document into a plan: choose the theorem for each body, and refuse what no theorem covers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pyaccount.document.mechanisms import MechanismKind
from pyaccount.errors import DocumentError
from pyaccount.plan.compiled import CompiledDocument, worded
from pyaccount.plan.disjoint import kinds_refusals
from pyaccount.plan.matrices import matrix_plan, strategy, workload_error
from pyaccount.plan.noises import analysis_of, noise_plan
from pyaccount.plan.noises.parts import ONE_EACH
from pyaccount.plan.own_probabilities import own_probability_refusals
from pyaccount.plan.samplers import PLANS, sampler_plan
from pyaccount.plan.scheduled import ScheduledRounds, schedule_refusals
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Path, Problem
    from pyaccount.plan.reduction import Analysis

Compiled = TypeVar("Compiled", bound=CompiledDocument)


def round_by_round() -> tuple[str, ...]:
    """Return the samplers whose rounds are analysed one by one; under a matrix they would depend on one another."""
    return tuple(word for word, plan in PLANS.items() if plan.round_by_round)


def compile_document(document: Document) -> CompiledDocument:
    """Choose the theorem for each body of the document, as `compile_as` does."""
    return compile_as(document, CompiledDocument)


def compile_as(document: Document, kind: type[Compiled]) -> Compiled:
    """Return a plan of the class `kind`. Raises `DocumentError` for what no theorem covers.

    A document with `choose:` lists is planned as the first of its candidates; `candidates` holds all of them. A
    document whose matrix is searched for is its own candidate, and is planned with the matrix of least error for its
    column norm.
    """
    document = document.pinned()
    candidates = document.candidates()
    first = _compile_one(candidates[0], kind)
    if not document.choices and not document.searched:
        return first
    return replace(first, candidates=tuple(candidates), asked=document)


def _compile_one(document: Document, kind: type[Compiled]) -> Compiled:
    _refuse([problem for body in document.every_body() for problem in schedule_refusals(document, body)])
    _refuse([problem for body in document.every_body() for problem in own_probability_refusals(document, body)])
    _refuse([problem for body in document.every_body() for problem in matrix_plan(body).refusals(document, body)])
    _refuse(_dependent_rounds(document))
    _refuse(
        [
            problem
            for body in document.every_body()
            if body.matrix.searched
            for problem in _search_refusals(document, body)
        ]
    )
    _refuse(kinds_refusals(document))
    analyses = tuple(_analysis(document, body) for body in document.bodies)
    _refuse(_sampled_beside_parts(document, analyses))
    plan = kind(document, analyses, worded(document, analyses))
    if document.accounting.method == "monte-carlo" and not plan.sampled:
        message = (
            "only b-min-sep, balls-in-bins, Poisson, random-allocation and random cyclic-poisson sampling of one record, and "
            "user-b-min-sep sampling of users that share no records, are analysed by sampling"
        )
        _refuse([document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld")])
    _refuse(_uncertain_beside_samples(plan))
    _refuse(_moment_refusals(plan))
    budget = budget_of(document)
    if plan.sampled and budget is not None and not budget.one_point:
        message = (
            f"a {budget.words} is a statement about a whole profile, but for this sampler samples prove only single points of "
            "it; give an advantage, or a true_positive_rate at a false_positive_rate, which a single point proves"
        )
        path = ("privacy", "risk", budget.measure)
        _refuse([document.problem("no-valid-bound", path, message, allowed="advantage, or true_positive_rate")])
    if plan.blank is None:
        # Refusals that depend on numbers are raised here, before anything runs.
        plan.at().composed_bounds()
    _refuse([problem for body in document.every_body() for problem in _workload_refusals(document, body)])
    for body in document.every_body():
        if matrix_plan(body).may_fail and body.training.iterations != "solve":
            # Refusals that depend on a file or on an inverse are raised here, too.
            strategy(document, body)
    return plan


def _sampled_beside_parts(document: Document, analyses: tuple[Analysis, ...]) -> list[Problem]:
    """Refuse phases that are analysed by drawing samples in a document whose records are of several kinds."""
    if all(analysis.alternatives is None for analysis in analyses):
        return []
    return [
        document.problem(
            "no-valid-bound",
            body.at("sampler", "kind"),
            f"{body.sampler.kind} sampling is analysed by drawing samples, which is not implemented beside disjoint parts: "
            f"{ONE_EACH}",
            allowed="a sampler whose rounds compose",
        )
        for analysis, body in zip(analyses, document.bodies, strict=True)
        if analysis.mechanism is not None
    ]


def _uncertain_beside_samples(plan: CompiledDocument) -> list[Problem]:
    """Refuse stated guarantees from samples beside a phase that is analysed by drawing samples."""
    if not plan.sampled:
        return []
    message = (
        "no bound is implemented for a stated guarantee from samples beside a phase that is analysed by drawing samples; certify "
        "that phase alone, and compose the two certificates"
    )
    return [
        plan.document.problem("no-valid-bound", body.at("mechanism"), message, allowed="a proven guarantee")
        for body in plan.document.every_body()
        if isinstance(body.noise, MechanismKind) and body.noise.uncertain
    ]


def _moment_refusals(plan: CompiledDocument) -> list[Problem]:
    """Explain why moments of the likelihood ratio cannot answer this document; empty if they can, or need not."""
    document, message = plan.document, ""
    if document.accounting.method != "renyi":
        return []
    bodies = document.bodies
    if not plan.sampled:
        message = (
            "the rounds of this document compose by privacy loss distributions, which are more precise than moments"
        )
    elif len(bodies) > 1 or bodies[0].count > 1 or not sampler_plan(bodies[0]).has_moments(bodies[0]):
        message = "moments are implemented only for one phase of b-min-sep sampling, with a banded Toeplitz matrix or no matrix"
    elif document.privacy.adjacency == "replace-one":
        message = "moments are not implemented for replaced records"
    elif document.accounting.verification != "betting":
        message = "a bound by moments is proven without a test: leave verification out"
    path = ("accounting", "method")
    allowed = "auto or monte-carlo" if plan.sampled else "auto or pld"
    return [document.problem("no-valid-bound", path, message, allowed=allowed)] if message else []


def _workload_refusals(document: Document, body: Body) -> list[Problem]:
    """Refuse a workload on noise that has no error of sums; empty if there is none.

    Raises `DocumentError` if the error under the workload exceeds the range of doubles.
    """
    if body.workload is None:
        return []
    if not noise_plan(body).sums_have_error:
        message = "a workload describes an optimizer on noisy sums, but this noise is added to single numbers: leave workload out"
        return [document.problem("contradiction", body.at("workload"), message)]
    if body.training.iterations != "solve":
        workload_error(document, body)
    return []


def _dependent_rounds(document: Document) -> list[Problem]:
    """Refuse a matrix with a sampler that is analysed round by round: under it the rounds depend on one another."""
    problems = []
    for body in document.every_body():
        plan = sampler_plan(body)
        if body.matrix.kind != "identity" and plan.round_by_round:
            message = (
                f"with a matrix the rounds depend on one another, and no bound is implemented for {body.sampler.kind} "
                f"sampling{plan.known_with_matrix}; use b-min-sep, balls-in-bins or cyclic-poisson, which keep a record's "
                "participations apart"
            )
            allowed = "b-min-sep, balls-in-bins, cyclic-poisson or none"
            problems.append(document.problem("no-valid-bound", body.at("sampler", "kind"), message, allowed=allowed))
            problems += plan.matrix_refusals(document, body)
    return problems


def _search_refusals(document: Document, body: Body) -> list[Problem]:
    """Explain why no matrix can be optimised for the sampling of a body; empty if one can."""

    def refused(path: Path, message: str, allowed: str) -> Problem:
        remedy = f"{message}; {allowed}, or leave optimize_for out"
        return document.problem("no-optimum", path, remedy, allowed=allowed)

    if sampler_plan(body).spaced_pattern(body) is not None:
        if body.noise.also:
            message = "a matrix is not optimised if several sums of a batch are released"
            return [refused(body.at("noise", "also"), message, "leave also out")]
        if body.matrix.banded:
            return []
        message = "without sampling, buffers are optimised for the participations that the order allows by default"
        return [refused(body.at("matrix", "optimize_for"), message, "leave it to its default")]
    if sampler_plan(body).differentiable(document, body) is None:
        known = ", ".join(word for word, plan in PLANS.items() if plan.has_derivatives)
        message, allowed = (
            sampler_plan(body).unsteered(body),
            f"use {known} (users that share no records)",
        )
        return [refused(body.at("sampler", "kind"), message, allowed)]
    problems = []
    if document.privacy.adjacency == "replace-one":
        message = "derivatives of δ are implemented for one record added or removed, not for one that is replaced"
        problems.append(refused(("privacy", "adjacency"), message, "use add-remove or zero-out"))
    if body.truncation() is not None:
        message = "a matrix is not optimised for truncated batches"
        problems.append(refused(body.at("sampler", "truncate_to"), message, "leave truncate_to out"))
    if body.count > 1:
        message = "a matrix is not optimised for a body that is run several times"
        problems.append(refused(body.at("count"), message, "leave count out"))
    if body.noise.also:
        message = "a matrix is not optimised if several sums of a batch are released"
        problems.append(refused(body.at("noise", "also"), message, "leave also out"))
    return problems


def _analysis(document: Document, body: Body) -> Analysis:
    """Return the analysis of a body. Raises `DocumentError` for what it does not cover."""
    analysis = analysis_of(document, body)
    if body.schedules():
        analysis = ScheduledRounds(analysis).analysis()
    if analysis.refusals is not None:
        _refuse(analysis.refusals(document, body))
    return analysis


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise DocumentError(problems)
