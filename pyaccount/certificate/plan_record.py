"""A plan as data: what `pyaccount plan --format json` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.certificate.model import NonNegative, Record, ReductionRecord
from pyaccount.certificate.provenance import versions
from pyaccount.errors import path_text
from pyaccount.plan.cost import composing_cost, sampling_cost
from pyaccount.plan.workload import has_workload

if TYPE_CHECKING:
    from pyaccount.execute.forecast import Price
    from pyaccount.plan import CompiledDocument
    from pyaccount.plan.amplification import AmplificationPlan


class PlannedReduction(ReductionRecord):
    """One theorem that will be used, and what it assumes."""

    assumptions: list[str] = Field(description="What must be true of the training run.")


class CostRecord(Record):
    """What composing will cost, roughly."""

    compositions: int = Field(description="Compositions.")
    evaluations: int = Field(description="Points at which a round's profile is evaluated.")
    transform_length: int = Field(description="Length of the Fourier transforms; 0 where none is needed.")
    seconds: NonNegative = Field(description="On two cores.")


class EstimatedDirection(Record):
    """The pilot's estimate in one direction. No bound."""

    direction: str = Field(description="Remove, add or replace.")
    delta_estimate: NonNegative | None = Field(
        description="δ at the forecast's ε; null where too little was seen for one."
    )
    standard_error: NonNegative | None = Field(description="The estimate's standard error.")
    samples: int = Field(description="How many samples it is from.")


class OfferRecord(Record):
    """A value of the blank, and what its tests are expected to take on this machine."""

    value: NonNegative = Field(description="Of the blank.")
    distance: NonNegative = Field(description="How far it is above the pilot's value, relatively.")
    samples_estimate: NonNegative = Field(description="Samples that its tests are expected to take.")
    seconds_estimate: NonNegative = Field(description="Seconds for them on this machine.")


class CandidateRecord(Record):
    """A candidate of a choice, by estimates."""

    matrix: str = Field(description="The kind of matrix.")
    bands: int = Field(description="Its bands.")
    sampler: dict[str, int] = Field(
        description="Its values of the sampler's keys that are `choose:` lists; empty without."
    )
    relative_error_estimate: NonNegative | None = Field(
        description="The squared error over the square of the share of the records that a batch has, which is compared where "
        "keys of the sampler are chosen; null elsewhere."
    )
    noise_multiplier_estimate: NonNegative = Field(description="σ it would need.")
    prefix_sum_mse_estimate: NonNegative = Field(description="The error it would have.")
    workload_error_estimate: NonNegative | None = Field(
        description="The squared error under the document's workload, which is compared; null without one."
    )
    seconds_estimate: NonNegative | None = Field(
        description="What testing it would take; null where no test would accept."
    )


class ForecastRecord(Record):
    """What the certificate is estimated to take and to say. Nothing of it is a guarantee."""

    seconds_estimate: NonNegative = Field(description="The whole certificate on this machine.")
    stages: dict[str, NonNegative] = Field(description="The same by stage, in seconds.")
    epsilon: NonNegative | None = Field(description="Where δ is estimated; null where nothing is sampled.")
    blank_estimate: NonNegative | None = Field(
        description="The blank's value; null for a claim, and where nothing is sampled."
    )
    directions: list[EstimatedDirection] = Field(description="Each direction of what is sampled.")
    trade: list[OfferRecord] = Field(description="Width for time: values of the blank, the cheapest first.")
    draws: list[str] = Field(
        description="Where the tests draw their samples from, for people; empty where nothing is tested."
    )
    candidates: list[CandidateRecord] = Field(description="Those of a choice; empty without any.")
    cheaper: list[str] = Field(description="Routes that take less, for people.")


class PlanRecord(Record):
    """How a document would be analysed. No ε, δ or blank has been computed."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["plan"] = Field(description="What this is.")
    name: str = Field(description="The document's name.")
    question: str = Field(description="What will be computed, for people.")
    blank: str | None = Field(description="Where the document says `solve`; null for a claim.")
    candidates: int = Field(
        description="How many documents the `choose:` lists leave; the reductions are of the first. 1 without such lists."
    )
    engine: str = Field(description="What computes it.")
    sampled: bool = Field(description="Whether privacy losses are sampled.")
    tolerance: NonNegative = Field(description="The relative width asked for.")
    reductions: list[PlannedReduction] = Field(description="Each theorem that will be used.")
    cost: CostRecord | None = Field(description="What composing will cost, roughly; null where losses are sampled.")
    sampling_cost: list[str] = Field(description="What sampling will cost, for people; empty where nothing is sampled.")
    forecast: ForecastRecord | None = Field(
        description="Price and estimates, where `pyaccount plan --estimate` asks for them."
    )
    document: dict[str, Any] = Field(description="The document as data.")
    document_sha256: str = Field(description="The hash of the document.")
    versions: dict[str, str] = Field(description="What planned it: pyaccount, its core, Python.")

    def to_json(self) -> str:
        """The plan as JSON text."""
        return self.model_dump_json(indent=2) + "\n"


class AmplificationPlanRecord(Record):
    """How a document of kind amplification would be analysed."""

    pyaccount: Literal[1] = Field(description="Format version.")
    kind: Literal["amplification-plan"] = Field(description="What this is.")
    name: str = Field(description="The document's name.")
    subject: str = Field(description="The sampler in words.")
    law: str = Field(description="The law of how often a record is drawn.")
    theorem: str = Field(description="What will be used.")
    source: str = Field(description="Where it is proven.")
    assumptions: list[str] = Field(description="What must be true of the run.")
    document: dict[str, Any] = Field(description="The document as data.")
    document_sha256: str = Field(description="The hash of the document.")
    versions: dict[str, str] = Field(description="What planned it: pyaccount, its core, Python.")

    def to_json(self) -> str:
        """The plan as JSON text."""
        return self.model_dump_json(indent=2) + "\n"


def plan_record(plan: CompiledDocument, price: Price | None = None) -> PlanRecord:
    """A plan as data, with its price and the pilot's estimates where they were asked for."""
    asked = plan.asked or plan.document
    estimate = None if plan.sampled else composing_cost(plan)
    return PlanRecord(
        pyaccount=1,
        kind="plan",
        name=asked.name,
        question=plan.question,
        blank=None if asked.blank is None else path_text(asked.blank),
        candidates=max(1, len(plan.candidates)),
        engine=plan.engine,
        sampled=plan.sampled,
        tolerance=plan.tolerance,
        reductions=[
            PlannedReduction(
                path=path_text(one.path) or "document",
                subject=one.subject,
                theorem=one.theorem,
                source=one.source,
                pair=one.pair,
                rounds=one.rounds,
                tight=one.tight,
                remark=one.remark,
                lower_end=one.lower_end,
                assumptions=list(one.assumptions),
            )
            for one in plan.reductions
        ],
        cost=None
        if estimate is None
        else CostRecord(
            compositions=estimate.compositions,
            evaluations=estimate.evaluations,
            transform_length=estimate.transform_length,
            seconds=estimate.seconds,
        ),
        sampling_cost=sampling_cost(plan) if plan.sampled else [],
        forecast=None if price is None else _forecast(price),
        document=asked.to_mapping(),
        document_sha256=asked.sha256,
        versions=versions(),
    )


def _forecast(price: Price) -> ForecastRecord:
    from pyaccount.execute.sampling.forecast import cheaper  # what was estimated is told only if it was

    found = price.sampled
    return ForecastRecord(
        seconds_estimate=price.seconds,
        stages=price.stages,
        epsilon=None if found is None else found.epsilon,
        blank_estimate=None if found is None else found.pilot_value,
        directions=[]
        if found is None
        else [
            EstimatedDirection(
                direction=direction,
                delta_estimate=one.value if one.known else None,
                standard_error=one.standard_error if one.known else None,
                samples=one.samples,
            )
            for direction, one in found.estimates.items()
        ],
        trade=[]
        if found is None or found.pilot_value is None
        else [
            OfferRecord(
                value=one.value, distance=one.distance, samples_estimate=one.samples, seconds_estimate=one.seconds
            )
            for one in found.trade
        ],
        candidates=[
            CandidateRecord(
                matrix=one.matrix,
                bands=one.bands,
                sampler=dict(one.chosen),
                relative_error_estimate=one.relative_error,
                noise_multiplier_estimate=one.noise_multiplier,
                prefix_sum_mse_estimate=one.prefix_sum_mse,
                workload_error_estimate=one.squared_error if has_workload(price.plan.document) else None,
                seconds_estimate=one.seconds if one.seconds is not None and math.isfinite(one.seconds) else None,
            )
            for one in price.plan.considered
        ],
        draws=[] if found is None else list(found.draws),
        cheaper=[] if found is None else list(cheaper(price.plan, found)),
    )


def amplification_plan_record(plan: AmplificationPlan) -> AmplificationPlanRecord:
    """The plan of an amplification as data."""
    document = plan.document
    return AmplificationPlanRecord(
        pyaccount=1,
        kind="amplification-plan",
        name=document.name,
        subject=plan.subject,
        law=plan.law,
        theorem=plan.theorem,
        source=plan.source,
        assumptions=list(plan.assumptions),
        document=document.to_mapping(),
        document_sha256=document.sha256,
        versions=versions(),
    )
