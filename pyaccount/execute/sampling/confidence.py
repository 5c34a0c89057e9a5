"""Certify the ε or δ of a given mechanism: the lowest accepted value of a grid, and the tests' error probability."""

from __future__ import annotations

import math
from dataclasses import replace

from pyaccount.document.document import Document
from pyaccount.document.policy import GuaranteeKind
from pyaccount.errors import NumericsError
from pyaccount.execute.sampling.evidence import SampledResult, evidence_of
from pyaccount.execute.sampling.fixed_sequence import (
    Grid,
    GridSearch,
    Result,
    SequenceResult,
    grids,
    tested_in_sequence,
)
from pyaccount.execute.sampling.pilot import Crossing, crossing_root, epsilon_model
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.tests_of_claims import FAILURE_SHARE, stated_separately
from pyaccount.plan.common import number

#: The grid for δ: relative distances above the pilot's estimate.
DELTA_DISTANCES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
#: The same for the second grid.
FAR_DELTA_DISTANCES = (9.0, 3.0)
#: The default relative width of an interval for δ.
DELTA_TOLERANCE = 0.12


def solve_epsilon(session: Session, refused: SequenceResult | None = None) -> SampledResult:
    """Certify the lowest ε of a grid that is accepted at δ. `refused` has the tests of a claim that failed before."""
    delta = number(session.plan.document.privacy.delta)
    search = epsilon_search(session)
    if search.pilot_value == 0.0:
        tests = session.test(*search.claim(0.0))
        sequence = SequenceResult(0.0 if all(t.accepted for t in tests) else None, tests)
    else:
        sequence = tested_in_sequence(session, search)
    epsilon = search.fallback if sequence.value is None else sequence.value
    kind: GuaranteeKind = "deterministic" if sequence.value is None else "confidence"
    within = sequence.value is not None and search.within(epsilon, session.plan.tolerance)
    if refused is not None:
        sequence = replace(sequence, tests=refused.tests + sequence.tests)
    instance, _, acceptance = search.claim(epsilon)
    result = Result(
        instance,
        acceptance,
        sequence,
        kind,
        epsilon,
        delta,
        holds=refused is None,
        solved=None if refused is not None else epsilon,
        within=within,
        refused=0 if refused is None else len(refused.tests),
    )
    return evidence_of(session, result)


def epsilon_search(session: Session) -> GridSearch:
    """Return the grid of ε above the pilot's root, which is 0 if δ(0) is below δ."""
    instance, delta = session.plan.at(), number(session.plan.document.privacy.delta)
    acceptance, mechanism = stated_separately(delta, FAILURE_SHARE * delta), session.mechanism(instance)
    worst = session.unsampled(instance, delta=delta).upper
    if not math.isfinite(worst):
        raise NumericsError("without amplification no finite ε holds at this δ, so the search has no upper limit")
    session.sampler.stage("pilot")
    pilot_value = 0.0
    if worst > 0.0 and session.excess(mechanism, 0.0, delta)[0] > 0.0:
        crossing = Crossing(lambda epsilon: (mechanism, epsilon), delta, epsilon_model(delta), 1e-3, worst)
        pilot_value = crossing_root(session, crossing, 0.5 * worst)
    session.known.append(f"ε is near {pilot_value:.4g}, by the pilot's estimate")
    steps = grids(session.plan.tolerance, starts=acceptance.starts) if pilot_value > 0.0 else [Grid((0.0,))]
    return GridSearch(pilot_value, worst, steps, lambda epsilon: (instance, epsilon, acceptance), mechanism.cost)


def solve_delta(session: Session) -> SampledResult:
    """Certify the lowest δ of a grid that is accepted at ε."""
    document = session.plan.document
    epsilon = number(document.privacy.epsilon)
    search = delta_search(session)
    sequence = tested_in_sequence(session, search)
    delta = search.fallback if sequence.value is None else sequence.value
    kind: GuaranteeKind = "deterministic" if sequence.value is None else "confidence"
    within = sequence.value is not None and search.within(delta, _delta_tolerance(document))
    instance, _, acceptance = search.claim(delta)
    return evidence_of(
        session, Result(instance, acceptance, sequence, kind, epsilon, delta, solved=delta, within=within)
    )


def _delta_tolerance(document: Document) -> float:
    stated = document.accounting.tolerance
    return DELTA_TOLERANCE if stated is None else stated


def delta_search(session: Session) -> GridSearch:
    """Return the grid of δ above the pilot's estimate, which also determines the tests' error probability."""
    instance, document = session.plan.at(), session.plan.document
    epsilon = number(document.privacy.epsilon)
    mechanism = session.mechanism(instance)
    session.sampler.stage("pilot")
    estimates = session.estimate(mechanism, epsilon, shards=64)
    pilot_value = max(estimate.value for estimate in estimates.values())
    session.known.append(f"δ is near {pilot_value:.3g}, by the pilot's estimate")
    worst = min(1.0, session.unsampled(instance, epsilon=epsilon).upper)
    if pilot_value <= 0.0:
        raise NumericsError("the pilot found no loss above this ε: δ is too small to estimate; try a smaller epsilon")
    tolerance = _delta_tolerance(document)
    first = next((d for d in DELTA_DISTANCES if d <= tolerance), DELTA_DISTANCES[-1])
    asked = (*(d for d in DELTA_DISTANCES if d > first), first)
    return GridSearch(
        pilot_value,
        worst,
        [Grid(asked), Grid(FAR_DELTA_DISTANCES)],
        lambda delta: (instance, epsilon, stated_separately(delta, FAILURE_SHARE * pilot_value)),
        mechanism.cost,
    )
