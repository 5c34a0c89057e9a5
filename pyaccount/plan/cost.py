"""Count what computing a plan will take, within a factor of a few, from how the engines scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.document.tree import Node, TrainingNode
from pyaccount.plan.common import PROFILE_SHARES
from pyaccount.plan.protection import RunCase
from pyaccount.plan.schedule_values import kinds_of
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from pyaccount.plan.compiled import CompiledDocument
    from pyaccount.plan.sampled import SampledMechanism
    from pyaccount.plan.theorem import Theorem

#: The typical number of compositions for solving a blank: a bracket, a few secant steps, the two bounds.
SEARCH_STEPS = 16
#: How much longer transforms are if batches are truncated.
REACH = 4.0
#: The number of groups of nearly alike rounds, times the tolerance, for a schedule along which σ doubles.
GROUPS = 1.3


@dataclass(frozen=True, slots=True)
class Cost:
    """The predicted cost of composing: numbers of compositions and evaluations, and the length of a transform."""

    compositions: int
    evaluations: int
    transform_length: int


#: The orders of moments whose cost is shown.
SHOWN_ORDERS = (2, 4, 8, 16)


def composing_cost(plan: CompiledDocument) -> Cost:
    """Predict the cost of composing: evaluations scale with tolerance^(−1/2), transforms with √(rounds/tolerance).

    A record that is seldom drawn loses about its rate in most rounds, and the lattice must resolve that. With truncated
    batches it loses far more in a few rounds, and the same lattice must reach that far. Lower bounds from other rounds
    are composed separately; then one composition serves several points of the profile.
    """
    document = plan.document
    profile = document.accounting.profile
    profile_questions = 2 * len(PROFILE_SHARES if profile is None else profile)
    questions = 2 + (2 * SEARCH_STEPS if plan.blank else 0)
    separate = any(reduction.lower_end is not None for reduction in plan.reductions)
    questions = (2 * questions if separate else questions) + profile_questions
    if plan.closed_form:
        return Cost(questions, questions, 0)
    tolerance = plan.tolerance
    # The groups of a long schedule are composed twice: for the upper and for the lower bound.
    different = sum(_kinds(one) for one in plan.theorems)
    kinds = min(different, 2.0 * GROUPS / tolerance) if plan.long else different
    evaluations = kinds * 1500 * math.sqrt(1e-4 / tolerance)
    iterations = sum(phase.count * _rounds(phase) for phase in document.phases)
    points = max(15 * math.sqrt(iterations / tolerance), *(50 / _rate(phase) for phase in document.phases))
    if any(run.truncation() is not None for run in document.runs_among_phases()):
        points *= REACH
    length = 2 ** min(22, max(6, round(math.log2(points))))
    return Cost(questions, round(evaluations), length)


def sampling_cost(plan: CompiledDocument) -> list[str]:
    """Predict what a test of the claim takes with plain samples, as lines of text, without drawing any."""
    # The claim that keeps a budget of risk is chosen by estimates later; its δ has the magnitude of that at ε = 0.
    budget = budget_of(plan.document)
    delta = plan.document.privacy.delta if budget is None else budget.claim(0.0) or "solve"
    mechanism = plan.at(1.0 if plan.blank else None).mechanism()
    if plan.document.accounting.method == "renyi":
        return _moments_cost(mechanism)
    lines = []
    if delta != "solve":
        log = math.log(100.0 / delta)
        easy, hard = 7.0 * log / delta, 51.0 * log / delta
        lines.append(
            f"if the true δ is half the target, a test with plain samples needs about {easy:.2g} samples; if it is 80 %, "
            f"{hard:.2g}"
        )
    lines.append(
        "with truncated batches other samples bound δ only if plain ones are mixed with them: `pyaccount plan --estimate` "
        "estimates how many are needed"
        if mechanism.plain_only
        else "fewer samples are needed if they are drawn where losses are large: `pyaccount plan --estimate` estimates "
        "how many"
    )
    return lines


def _moments_cost(mechanism: SampledMechanism) -> list[str]:
    """Predict the cost of chains for a few orders; the order that proves the claim follows from σ, ε and δ."""
    lines = []
    for order in SHOWN_ORDERS:
        replicas = mechanism.chain(order)
        if replicas is None:
            break
        states, work = replicas
        lines.append(
            f"a moment of order {order}: a chain of {states} states, {16e-6 * states:.2g} MB, {work:.2g} states in all its steps"
        )
    return [*lines, "the order that proves the claim follows from σ, ε and δ"]


def _kinds(theorem: Theorem) -> int:
    """Return the number of kinds of rounds of a phase: one, unless it is a run with a schedule of a known length."""
    run = theorem.node
    if not isinstance(run, TrainingNode) or not run.schedules() or run.training.iterations == "solve":
        return 1
    return len(kinds_of(RunCase(theorem.asked, run)))


def _rounds(node: Node) -> int:
    """Return the number of rounds of one run of a node, roughly while it is the blank."""
    return 1000 if node.rounds == "solve" else node.rounds


def _rate(node: Node) -> float:
    """Return roughly how often a record takes part; 1 if the rate is the blank or if there is no single rate."""
    if not isinstance(node, TrainingNode):
        return 1.0 if node.draw is None else node.draw.probability
    try:
        return node.participation_rate()
    except ValueError:
        return 1.0
