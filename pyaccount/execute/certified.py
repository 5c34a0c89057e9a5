"""What the engines fill of a certificate's record, and the parts that composed and sampled numbers share."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Literal

from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.document.document import Document
from pyaccount.errors import NumericsError
from pyaccount.execute.engine import Answer, DirectedAnswer
from pyaccount.execute.progress import NotComputed
from pyaccount.plan.compiled import CompiledDocument, Instance
from pyaccount.plan.conventions import contrast_words
from pyaccount.plan.matrices.base import has_workload
from pyaccount.records.certificate import (
    Contrast,
    Directions,
    Guarantee,
    KindOfRecord,
    ProfilePoint,
    RiskRecord,
    Solved,
)
from pyaccount.records.evidence import BudgetLine, ConsideredRecord, EvidenceRecord, SearchedRecord
from pyaccount.risk.budget import Budget, Enclosure, Points, attained_at_least

#: The source of the error budget that is not a contribution to δ.
RELATIVE = "profile_relative_error"
#: Sources that exist only for rounds composed without a lattice, and for a bound by a single large loss.
CELLS, SEVERAL = "cells", "other_losses"

#: The text of each source of the error budget, in the order of the computation.
SOURCES = {
    "truncation": "loss beyond the last lattice point of a round, counted as infinite",
    SEVERAL: "losses that sum up to ε otherwise than by one large loss of one round",
    "window": "composed loss above the transform's window",
    "aliasing": "mass wrapped around the window (lower end)",
    "transform_rounding": "rounding of the Fourier transforms and powers",
    "mass_rounding": "rounding of masses, tilt and scale",
    CELLS: "cells of losses composed without a lattice, and the rounds' meshes (inside the bounds; no more than their distance)",
    RELATIVE: "largest relative error of a profile evaluation (relative, inside the discretised bounds)",
}


@dataclass(frozen=True, slots=True)
class CertifiedNumbers:
    """What a run certified: the fields of the certificate's record that are computed. `instance` is the plan that was run.

    Its blank is filled, unless the blank is ε or δ.
    """

    instance: Instance
    holds: bool
    guarantee: Guarantee
    solved: Solved | None
    directions: Directions
    profile: list[ProfilePoint]
    evidence: EvidenceRecord
    unamplified: Contrast
    #: What was left out because of a time limit, after the guarantee was known.
    not_computed: list[NotComputed]
    risk: RiskRecord | None = None
    #: The guarantee for each kind of record, if records are of several kinds.
    records: list[KindOfRecord] | None = None
    #: The composed bound beside that of a recursion.
    composed_bound: Contrast | None = None
    group_lemma: Contrast | None = None

    @property
    def document(self) -> Document:
        """The document that was run."""
        return self.instance.document


def contrast_record(description: str, epsilon: float, delta: float) -> Contrast:
    """Return a bound that is stated for contrast; an infinite ε is not stated."""
    return Contrast(description=description, epsilon=_known(epsilon), delta=delta)


def unamplified_record(instance: Instance, answer: Answer) -> Contrast:
    """Return the bound for public participations as it is stated for contrast."""
    return contrast_record(contrast_words(instance.theorems), answer.upper, answer.question.delta or 0.0)


def risk_record(budget: Budget, value: tuple[float, float], told: tuple[float, float, float]) -> RiskRecord:
    """Return what is certified of a budget: `value` bounds the measure, `told` is ε, its lower bound, and their δ."""
    return RiskRecord(
        measure=budget.measure,  # type: ignore[arg-type]
        budget=budget.limit,
        **{"false_positive_rate": None, "last_epsilon": None, "least_rate": None, **budget.details()},
        value=_known(value[0]),
        value_lower=value[1],
        epsilon=_known(told[0]),
        epsilon_lower=told[1],
        delta=told[2],
    )


def from_guarantee(budget: Budget, guarantee: Guarantee, directions: Directions) -> tuple[float, float]:
    """Return (upper, lower) bounds on the measure by the guarantee alone, in both directions: see `Budget.claim`."""
    points: Points = {
        # δ falls with ε, so a lower bound on δ here is also one at ε = 0.
        side: [
            *([Enclosure(0.0, ends.delta_lower, 1.0)] if guarantee.epsilon > 0.0 else []),
            Enclosure(guarantee.epsilon, ends.delta_lower, guarantee.delta),
        ]
        for side, ends in zip(DIRECTIONS, (directions.remove, directions.add), strict=True)
    }
    most = budget.at_most(points)
    return most, min(most, attained_at_least(budget, points))


def _known(bound: float) -> float | None:
    """Return a bound; None if it is infinite."""
    return bound if math.isfinite(bound) else None


def ordered(lower: float, upper: float, what: str) -> float:
    """Return the lower bound; raises `NumericsError` if it is above the upper one, so that no certificate states it."""
    if lower > upper:
        raise NumericsError(f"the bounds on {what} cross: at least {lower!r}, at most {upper!r}; this is a defect")
    return lower


def considered(plan: CompiledDocument) -> list[ConsideredRecord]:
    """Return the candidates of the plan's choices."""
    return [
        ConsideredRecord(
            matrix=one.matrix,
            bands=one.bands,
            noise_multiplier_estimate=one.noise_multiplier,
            prefix_sum_mse_estimate=one.prefix_sum_mse,
            workload_error_estimate=one.squared_error if has_workload(plan.document) else None,
            sampler=dict(one.chosen) or None,
            relative_error_estimate=one.relative_error,
        )
        for one in plan.considered
    ]


def searched(plan: CompiledDocument) -> SearchedRecord | None:
    """Return how the plan's matrix was found; None if it was not searched for."""
    search = plan.searched
    if search is None:
        return None
    stated = has_workload(plan.document)
    return SearchedRecord(
        optimized_for="sampling",
        start_noise_multiplier_estimate=search.start.noise_multiplier,
        start_prefix_sum_mse_estimate=search.start.prefix_sum_mse,
        noise_multiplier_estimate=search.found.noise_multiplier,
        prefix_sum_mse_estimate=search.found.prefix_sum_mse,
        start_workload_error_estimate=search.start.squared_error if stated else None,
        workload_error_estimate=search.found.squared_error if stated else None,
        gradient_norm_estimate=search.gradient_norm,
        gradient_error_estimate=search.gradient_error,
        rounds=search.rounds,
        note=search.note,
    )


def budget_lines(answer: DirectedAnswer, label: Direction | Literal["both"]) -> list[BudgetLine]:
    """Return the error budget of a composition in one direction, with words for each of the core's sources."""
    budget = answer.upper_account.budget
    return [
        BudgetLine(source=SOURCES[key], direction=label, contribution=_finite(key, budget[key]))
        for key in sorted(budget, key=list(SOURCES).index)
        if key not in {CELLS, SEVERAL} or budget[key] > 0.0
    ]


def _finite(key: str, contribution: float) -> float:
    """Limit a contribution: to 1 if it is one to δ, to the largest double if it is a relative error."""
    return max(0.0, min(contribution, sys.float_info.max if key == RELATIVE else 1.0))
