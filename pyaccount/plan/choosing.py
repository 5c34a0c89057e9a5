"""Choose the theorem of each node of the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document.noise import Gaussian, Laplace
from pyaccount.document.tree import Best, MechanismRelease, Node, Parts, Sample, Sequence, TrainingNode
from pyaccount.errors import DocumentError
from pyaccount.plan import mechanisms
from pyaccount.plan.combinators.best import BestTheorem
from pyaccount.plan.combinators.parts import PartsTheorem, SequenceTheorem
from pyaccount.plan.combinators.sample import SampleTheorem, on_sample_refusals
from pyaccount.plan.disjoint import crossing_refusals
from pyaccount.plan.laplace import LaplaceTheorem
from pyaccount.plan.own_probabilities import LargestBounds
from pyaccount.plan.protection import Case, RunCase, of_run
from pyaccount.plan.replaced import states_removal
from pyaccount.plan.samplers import sampler_plan, truncated
from pyaccount.plan.scheduled import ScheduledRounds
from pyaccount.plan.several import SeveralReleases
from pyaccount.plan.units import draw_may_show

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.plan.theorem import Theorem


def theorem_of(case: Case) -> Theorem:
    """Return the theorem of a node. Raises `DocumentError` for what is not covered whatever the numbers are."""
    theorem = THEOREMS[type(case.node)](case)
    if case.node.own_probabilities is not None:
        theorem = LargestBounds(case.asked, case.node, theorem)
    return ScheduledRounds(case.asked, case.node, theorem) if case.node.schedules() else theorem


def inside(case: Case) -> tuple[Theorem, ...]:
    """Return the theorems of the nodes inside of one."""
    return tuple(theorem_of(Case(case.asked, one)) for one in case.node.inner)


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
    assert case.node.draw is not None
    return () if on_sample_refusals(theorems, case.node.draw) else theorems


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
