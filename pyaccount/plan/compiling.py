"""Turn a document into a plan: choose the theorem of each node of the mechanism, and refuse what no theorem covers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pyaccount.document.document import Document
from pyaccount.document.noise import Gaussian, Laplace
from pyaccount.document.tree import Best, MechanismRelease, Node, Parts, Sample, Sequence, TrainingNode
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.plan import mechanisms
from pyaccount.plan.combinators.best import BestTheorem
from pyaccount.plan.combinators.parts import ONE_EACH, PartsTheorem, SequenceTheorem
from pyaccount.plan.combinators.sample import SampleTheorem, on_sample_refusals
from pyaccount.plan.common import given
from pyaccount.plan.compiled import CompiledDocument, worded
from pyaccount.plan.disjoint import crossing_refusals, kinds_refusals
from pyaccount.plan.laplace import LaplaceTheorem
from pyaccount.plan.matrices import matrix_plan, strategy, workload_error
from pyaccount.plan.own_probabilities import LargestBounds, own_probability_refusals
from pyaccount.plan.protection import Case, Protection, RunCase, of_run
from pyaccount.plan.recursion import with_recursion
from pyaccount.plan.replaced import states_removal
from pyaccount.plan.samplers import PLANS, sampler_plan, truncated
from pyaccount.plan.scheduled import ScheduledRounds, schedule_refusals
from pyaccount.plan.several import SeveralReleases
from pyaccount.plan.steps import OfSteps, steps_of
from pyaccount.plan.theorem import Theorem
from pyaccount.plan.units import draw_may_show
from pyaccount.risk.budgets import budget_of


def _theorem_of(case: Case) -> Theorem:
    """Return the theorem of a node. Raises `DocumentError` for what is not covered whatever the numbers are."""
    theorem = THEOREMS[type(case.node)](case)
    if case.node.own_probabilities is not None:
        theorem = LargestBounds(case.asked, case.node, theorem)
    return ScheduledRounds(case.asked, case.node, theorem) if case.node.schedules() else theorem


def inside(case: Case) -> tuple[Theorem, ...]:
    """Return the theorems of the nodes inside of one."""
    return tuple(_theorem_of(Case(case.asked, one)) for one in case.node.inner)


def _of_run(case: Case) -> Theorem:
    """Return the theorem of a training run, by its noise and its sampler."""
    run = of_run(case)
    return NOISES[type(run.node.noise)](run)


def _gaussian(case: RunCase) -> Theorem:
    """Return the sampler's theorem; if a batch has several releases, that of all of them together."""
    plan = sampler_plan(case)
    if getattr(case.node.sampler, "truncate_to", None) is not None:
        problems = truncated.refusals(case.asked, plan.truncation_refusals())
        if problems:
            raise DocumentError(problems)
    theorem = plan.theorem()
    return SeveralReleases(case.asked, case.node, theorem, plan.stacks()) if case.node.noise.also else theorem


def _of_release(case: Case) -> Theorem:
    assert isinstance(case.node, MechanismRelease)
    return mechanisms.PLANS[type(case.node.mechanism)](case.asked, case.node)


def _of_parts(case: Case) -> Theorem:
    assert isinstance(case.node, Parts)
    if problems := crossing_refusals(case):
        raise DocumentError(problems)
    crossing: tuple[Theorem, ...] = ()
    if case.asked.privacy.adjacency == "replace-one":
        crossing = inside(Case(case.asked.protecting("add-remove", 1), case.node))
    return PartsTheorem(case.asked, case.node, inside(case), crossing)


def _of_sample(case: Case) -> Theorem:
    assert isinstance(case.node, Sample)
    return SampleTheorem(case.asked, case.node, inside(case), _of_removal(case))


def _of_removal(case: Case) -> tuple[Theorem, ...]:
    """Return the theorem of each phase on a sample for a record that is removed; empty if it is not known, or not needed."""
    if not draw_may_show(case) or not states_removal(case.node):
        return ()
    try:
        theorems = inside(Case(case.asked.protecting("add-remove", 1), case.node))
    except DocumentError:
        return ()
    return () if on_sample_refusals(theorems, given(case.node.draw)) else theorems


#: The theorem of a training run, by the class of its noise.
NOISES: dict[type, Callable[[RunCase], Theorem]] = {
    Gaussian: _gaussian,
    Laplace: lambda case: LaplaceTheorem(case.asked, case.node),
}

#: The theorem of a node, by its class.
THEOREMS: dict[type[Node], Callable[[Case], Theorem]] = {
    TrainingNode: _of_run,
    MechanismRelease: _of_release,
    Sequence: lambda case: SequenceTheorem(case.asked, case.node, inside(case)),
    Sample: _of_sample,
    Parts: _of_parts,
    Best: lambda case: BestTheorem(case.asked, case.node, inside(case)),
}

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
    asked = Protection.of(document)
    cases = asked.runs()
    for refusals in (
        schedule_refusals,
        own_probability_refusals,
        lambda case: matrix_plan(case).refusals(),
        _dependent_rounds,
        _search_refusals,
    ):
        _refuse([problem for case in cases for problem in refusals(case)])
    _refuse(kinds_refusals(asked))
    theorems = tuple(_theorem(case) for case in asked.cases())
    _refuse(_sampled_beside_parts(theorems))
    theorems = with_recursion(document, theorems)
    plan = kind(document, theorems, worded(theorems))
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
    _refuse([problem for case in cases for problem in _workload_refusals(case)])
    for case in cases:
        if matrix_plan(case).may_fail and case.node.training.iterations != "solve":
            # Refusals that depend on a file or on an inverse are raised here, too.
            strategy(case)
    return plan


def _sampled_beside_parts(theorems: tuple[Theorem, ...]) -> list[Problem]:
    """Refuse phases that are analysed by drawing samples in a document whose records are of several kinds."""
    if not any(one.of_kinds for one in theorems):
        return []
    return [
        one.asked.refusal(
            one.node.at("sampler", "kind"),
            f"{one.node.sampler_kind} sampling is analysed by drawing samples, which is not implemented beside disjoint parts: "
            f"{ONE_EACH}",
            allowed="a sampler whose rounds compose",
        )
        for one in theorems
        if one.sampled
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
        plan.document.problem("no-valid-bound", node.at("mechanism"), message, allowed="a proven guarantee")
        for node in plan.document.every_node()
        if isinstance(node, MechanismRelease) and node.mechanism.uncertain
    ]


def _moment_refusals(plan: CompiledDocument) -> list[Problem]:
    """Explain why moments of the likelihood ratio cannot answer this document; empty if they can, or need not."""
    document, message = plan.document, ""
    if document.accounting.method != "renyi":
        return []
    phases = plan.theorems
    if not plan.sampled:
        message = (
            "the rounds of this document compose by privacy loss distributions, which are more precise than moments"
        )
    elif len(phases) > 1 or phases[0].node.count > 1 or not sampler_plan(plan.only_run).has_moments():
        message = "moments are implemented only for one phase of b-min-sep sampling, with a banded Toeplitz matrix or no matrix"
    elif document.privacy.adjacency == "replace-one":
        message = "moments are not implemented for replaced records"
    elif document.accounting.verification != "betting":
        message = "a bound by moments is proven without a test: leave verification out"
    path = ("accounting", "method")
    allowed = "auto or monte-carlo" if plan.sampled else "auto or pld"
    return [document.problem("no-valid-bound", path, message, allowed=allowed)] if message else []


def _workload_refusals(case: RunCase) -> list[Problem]:
    """Refuse a workload on noise that has no error of sums; empty if there is none.

    Raises `DocumentError` if the error under the workload exceeds the range of doubles.
    """
    if case.node.workload is None:
        return []
    if not case.node.noise.sums_have_error:
        message = "a workload describes an optimizer on noisy sums, but this noise is added to single numbers: leave workload out"
        return [case.asked.problem("contradiction", case.node.at("workload"), message)]
    if case.node.training.iterations != "solve":
        workload_error(case)
    return []


def _dependent_rounds(case: RunCase) -> list[Problem]:
    """Refuse a matrix with a sampler that is analysed round by round: under it the rounds depend on one another."""
    plan = sampler_plan(case)
    if case.node.matrix.kind == "identity" or plan.covers_matrices:
        return []
    message = (
        f"with a matrix the rounds depend on one another, and no bound is implemented for {case.node.sampler.kind} "
        "sampling with this one; use poisson, or b-min-sep, balls-in-bins or cyclic-poisson, which keep a record's "
        "participations apart"
    )
    path, allowed = case.node.at("sampler", "kind"), "poisson, b-min-sep, balls-in-bins, cyclic-poisson or none"
    return [case.asked.refusal(path, message, allowed=allowed)]


def _search_refusals(case: RunCase) -> list[Problem]:
    """Explain why no matrix can be optimised for the sampling of a node; empty if one can."""

    if not case.node.matrix.searched:
        return []

    def refused(path: Path, message: str, allowed: str) -> Problem:
        remedy = f"{message}; {allowed}, or leave optimize_for out"
        return case.asked.problem("no-optimum", path, remedy, allowed=allowed)

    node = case.node
    also = (
        [
            refused(
                node.at("noise", "also"),
                "a matrix is not optimised if several sums of a batch are released",
                "leave also out",
            )
        ]
        if node.noise.also
        else []
    )
    if sampler_plan(case).spaced_pattern() is not None:
        if also or node.matrix.banded:
            return also
        message = "without sampling, buffers are optimised for the participations that the order allows by default"
        return [refused(node.at("matrix", "optimize_for"), message, "leave it to its default")]
    if sampler_plan(case).differentiable() is None:
        known = ", ".join(word for word, plan in PLANS.items() if plan.has_derivatives)
        allowed = f"use {known} (users that share no records)"
        return [refused(node.at("sampler", "kind"), sampler_plan(case).unsteered(), allowed)]
    problems = []
    if case.asked.privacy.adjacency == "replace-one":
        message = "derivatives of δ are implemented for one record added or removed, not for one that is replaced"
        problems.append(refused(("privacy", "adjacency"), message, "use add-remove or zero-out"))
    if node.truncation() is not None:
        message = "a matrix is not optimised for truncated batches"
        problems.append(refused(node.at("sampler", "truncate_to"), message, "leave truncate_to out"))
    if node.count > 1:
        message = "a matrix is not optimised for a body that is run several times"
        problems.append(refused(node.at("count"), message, "leave count out"))
    return problems + also


def _theorem(case: Case) -> Theorem:
    """Return the theorem of a phase. Raises `DocumentError` for what is not covered."""
    try:
        return _refused(_theorem_of(case))
    except DocumentError as error:
        stepped = _by_steps(case) if all(one.slug == "no-valid-bound" for one in error.problems) else None
        if stepped is None:
            raise
        return stepped


def _refused(theorem: Theorem) -> Theorem:
    """Return a theorem. Raises `DocumentError` for what it does not cover."""
    _refuse(theorem.refusals())
    return theorem


def _by_steps(case: Case) -> Theorem | None:
    """Return the theorem of a phase that follows from one about one record (`plan.steps`); None if there is none."""
    for adjacency, each in steps_of(case).items():
        try:
            inner = _refused(_theorem_of(Case(case.asked.protecting(adjacency, 1), case.node)))
        except DocumentError:
            continue
        if not inner.sampled and not inner.of_kinds:
            return OfSteps(case.asked, case.node, inner, adjacency, each)
    return None


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise DocumentError(problems)
