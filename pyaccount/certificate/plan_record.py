"""A plan as data, which `pyaccount plan --format json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.certificate.provenance import versions
from pyaccount.errors import path_text
from pyaccount.execute.certified import considered
from pyaccount.plan.cost import composing_cost, sampling_cost
from pyaccount.records.certificate import ReductionRecord
from pyaccount.records.evidence import ConsideredRecord
from pyaccount.records.fields import NonNegative, OutputRecord, Record

if TYPE_CHECKING:
    from pyaccount.execute import Estimated
    from pyaccount.plan.amplification import AmplificationPlan
    from pyaccount.plan.compiled import CompiledDocument


class PlannedReduction(ReductionRecord):
    """One theorem that will be used, and what it assumes."""

    assumptions: list[str] = Field(description="What must be true of the training run.")


class CostRecord(Record):
    """The approximate cost of composing."""

    compositions: int = Field(description="Compositions.")
    evaluations: int = Field(description="The number of points at which the profile of a round is evaluated.")
    transform_length: int = Field(description="The length of the Fourier transforms; 0 if none is needed.")


class EstimatedDirection(Record):
    """The estimate of the pilot in one direction. It is not a bound."""

    direction: str = Field(description="The direction: remove, add or replace.")
    delta_estimate: NonNegative | None = Field(
        description="δ at the epsilon of the forecast; null if the samples show too little for an estimate."
    )
    standard_error: NonNegative | None = Field(description="The standard error of the estimate.")
    samples: int = Field(description="The number of samples from which it is estimated.")


class OfferRecord(Record):
    """A possible value of the blank, and the expected cost of its tests."""

    value: NonNegative = Field(description="The value of the blank.")
    distance: NonNegative = Field(
        description="How far it is above the value that the pilot estimated, as a relative distance."
    )
    samples_estimate: NonNegative = Field(description="The number of samples that its tests are expected to take.")


class ForecastRecord(Record):
    """What the certificate is expected to cost and to state. None of this is a guarantee."""

    epsilon: NonNegative | None = Field(description="The ε at which δ is estimated; null if nothing is sampled.")
    blank_estimate: NonNegative | None = Field(
        description="The value of the blank; null for a claim, and if nothing is sampled."
    )
    directions: list[EstimatedDirection] = Field(description="The estimates for each direction that is sampled.")
    trade: list[OfferRecord] = Field(
        description="Values of the blank that trade width for samples, the cheapest first."
    )
    draws: list[str] = Field(
        description="Where the tests draw their samples from, in words; empty if nothing is tested."
    )
    candidates: list[ConsideredRecord] = Field(description="The candidates of a choice; empty if there is no choice.")
    cheaper: list[str] = Field(description="Ways to compute the certificate that take fewer samples, in words.")


class PlanRecord(OutputRecord):
    """How a document would be analysed. ε, δ and the blank have not been computed."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["plan"] = Field(description="The kind of this JSON: a plan.")
    name: str = Field(description="The name of the document.")
    question: str = Field(description="What will be computed, in words.")
    blank: str | None = Field(description="The path of `solve` in the document; null for a claim.")
    candidates: int = Field(
        description="The number of documents that the `choose:` lists describe; the reductions are those of the "
        "first. 1 if there are no such lists."
    )
    engine: str = Field(description="The engine that will compute it.")
    sampled: bool = Field(description="Whether privacy losses are sampled.")
    tolerance: NonNegative = Field(description="The relative width of the interval that is asked for.")
    reductions: list[PlannedReduction] = Field(description="Each theorem that will be used.")
    cost: CostRecord | None = Field(
        description="The approximate cost of composing; null if privacy losses are sampled."
    )
    sampling_cost: list[str] = Field(description="The cost of sampling, in words; empty if nothing is sampled.")
    forecast: ForecastRecord | None = Field(
        description="The estimates and the expected samples; null without `pyaccount plan --estimate`."
    )
    document: dict[str, Any] = Field(description="The document as data.")
    document_sha256: str = Field(description="The hash of the document.")
    versions: dict[str, str] = Field(
        description="The versions that made the plan: of pyaccount, of its core, of Python."
    )


class AmplificationPlanRecord(OutputRecord):
    """How a document of kind amplification would be analysed."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["amplification-plan"] = Field(description="The kind of this JSON: a plan of an amplification.")
    name: str = Field(description="The name of the document.")
    subject: str = Field(description="The sampler in words.")
    law: str = Field(description="The distribution of the number of times that a record is drawn.")
    theorem: str = Field(description="The theorem that will be used.")
    source: str = Field(description="Where the theorem is proven.")
    assumptions: list[str] = Field(description="What must be true of the run.")
    document: dict[str, Any] = Field(description="The document as data.")
    document_sha256: str = Field(description="The hash of the document.")
    versions: dict[str, str] = Field(
        description="The versions that made the plan: of pyaccount, of its core, of Python."
    )


def plan_record(plan: CompiledDocument, estimated: Estimated | None = None) -> PlanRecord:
    """Return a plan as data, with the pilot's estimates if they are given."""
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
        reductions=[PlannedReduction(**one.stated(), assumptions=list(one.assumptions)) for one in plan.reductions],
        cost=None if estimate is None else CostRecord(**asdict(estimate)),
        sampling_cost=sampling_cost(plan) if plan.sampled else [],
        forecast=None if estimated is None else _forecast(estimated),
        document=asked.to_mapping(),
        document_sha256=asked.sha256,
        versions=versions(),
    )


def _forecast(estimated: Estimated) -> ForecastRecord:
    from pyaccount.execute.sampling.forecast import cheaper  # needed only for estimates

    plan, pilot = estimated
    return ForecastRecord(
        epsilon=None if pilot is None else pilot.epsilon,
        blank_estimate=None if pilot is None else pilot.pilot_value,
        directions=[]
        if pilot is None
        else [
            EstimatedDirection(
                direction=direction,
                delta_estimate=one.value if one.known else None,
                standard_error=one.standard_error if one.known else None,
                samples=one.samples,
            )
            for direction, one in pilot.estimates.items()
        ],
        trade=[]
        if pilot is None or pilot.pilot_value is None
        else [OfferRecord(value=one.value, distance=one.distance, samples_estimate=one.samples) for one in pilot.trade],
        candidates=considered(plan),
        draws=[] if pilot is None else list(pilot.draws),
        cheaper=[] if pilot is None else list(cheaper(plan, pilot)),
    )


def amplification_plan_record(plan: AmplificationPlan) -> AmplificationPlanRecord:
    """Return the plan of an amplification as data."""
    document = plan.document
    return AmplificationPlanRecord(
        pyaccount=1,
        kind="amplification-plan",
        name=document.name,
        subject=plan.subject,
        law=plan.law,
        theorem=plan.theorem,
        source=plan.source,
        assumptions=[one.text for one in plan.assumed],
        document=document.to_mapping(),
        document_sha256=document.sha256,
        versions=versions(),
    )
