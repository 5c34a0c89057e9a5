"""The page of a plan: the theorem for each part of a document, the engine, the cost, and labelled estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.evidence import candidates_table
from pyaccount.certificate.report.parts import ORIGINS, THEOREM, facts
from pyaccount.errors import path_text
from pyaccount.execute.certified import considered
from pyaccount.pages.page import (
    Block,
    Checklist,
    Content,
    Entry,
    Fact,
    FactList,
    Page,
    PageSection,
    estimate,
    exact,
    filled,
)
from pyaccount.plan.common import length_text
from pyaccount.plan.cost import composing_cost, sampling_cost
from pyaccount.records.certificate import ReductionRecord

if TYPE_CHECKING:
    from pyaccount.execute import Estimated
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan.amplification import AmplificationPlan
    from pyaccount.plan.compiled import CompiledDocument


def plan_page(plan: CompiledDocument, estimated: Estimated | None = None) -> Page:
    """Return the page of a plan, with the pilot's estimates if they are given."""
    lines = [Fact("question", (plan.question,))]
    if len(plan.candidates) > 1 or (plan.asked is not None and plan.asked.choices):
        lines.append(Fact("choice", (f"{len(plan.candidates)} candidates are compared; this plan is of the first",)))
    if plan.document.searched:
        how = "the matrix is optimised for sampling first; this plan has the matrix of least error for its column norm"
        lines.append(Fact("search", (how,)))
    lines.append(Fact("engine", (plan.engine,)))
    if plan.mixed:
        how = "phases without sampling are composed into one curve δ(ε); every sample of the others is weighed with that curve"
        lines.append(Fact("phases", (how,)))
    lines += [Fact("cost", (line,)) for line in (sampling_cost(plan) if plan.sampled else [_composing(plan)])]
    sections = [
        PageSection("plan", "How it will be computed", (FactList(tuple(lines)),)),
        PageSection("theorems", "Theorems that will be used", tuple(_theorems(plan))),
    ]
    if estimated is not None:
        sections.append(PageSection("estimates", "Estimates: none is a guarantee", tuple(_estimates(estimated))))
    how = "by drawing samples" if plan.sampled else "by composition"
    answer = f"Every part has a theorem, so that `pyaccount certify` can answer, {how}."
    return Page("Plan", plan.document.name, tuple(sections), statement=answer, origins=ORIGINS)


def amplification_plan_page(plan: AmplificationPlan) -> Page:
    """Return the page of the plan of an amplification, which is computed in closed form."""
    lines = (
        Fact("sampling", (plan.subject,)),
        Fact("theorem", (plan.theorem,)),
        Fact("law of draws", (f"p_j = {plan.law}, η = 1 − p_0",)),
        Fact("source", (plan.source,)),
    )
    sections = (
        PageSection("theorems", "Amplification by sampling, in closed form", (FactList(lines),)),
        PageSection(
            "assumptions", "What must be true of the draw", (Checklist(tuple(one.text for one in plan.assumed)),)
        ),
    )
    return Page("Plan", plan.document.name, sections, origins=ORIGINS)


def _composing(plan: CompiledDocument) -> str:
    cost = composing_cost(plan)
    size = (
        f", profiles evaluated at about {cost.evaluations} points, transforms of about {cost.transform_length}"
        if cost.transform_length
        else ""
    )
    return f"about {cost.compositions} compositions{size}"


def _theorems(plan: CompiledDocument) -> list[Entry]:
    lengths = {run.path: length_text(run) for run in plan.document.runs()}
    entries = []
    for reduction in plan.reductions:
        rows = facts(ReductionRecord(**reduction.stated()), THEOREM)
        if length := lengths.get(reduction.path):
            rows.append(Fact("epochs", (length.text,)))
        title = f"{path_text(reduction.path) or 'document'}: {reduction.subject}"
        entries.append(Entry(title, "tight" if reduction.tight else "not tight", tuple(rows)))
    return entries


def _estimates(estimated: Estimated) -> list[Block]:
    plan, forecast = estimated
    blocks: list[Block] = [candidates_table(considered(plan))] if plan.considered else []
    lines = [Fact("samples", ("none: rounds are composed",))] if forecast is None else _forecast(plan, forecast)
    return [*blocks, FactList(tuple(lines))]


def _forecast(plan: CompiledDocument, forecast: Forecast) -> list[Fact]:
    # needed only for estimates
    from pyaccount.execute.sampling.forecast import cheaper

    lines = []
    blank = plan.document.blank
    name = "" if blank is None else {"multiplier": "σ", "epsilon": "ε", "delta": "δ"}[str(blank[-1])]
    if forecast.pilot_value is not None:
        value = estimate(forecast.pilot_value, "as the blank's", "pilot", 5)
        lines.append(Fact("estimate", (f"{name} near ", value), ("not a guarantee",)))
    for direction, one in forecast.estimates.items():
        at, drawn = exact(forecast.epsilon, "nats", "pilot"), exact(one.samples, "samples", "pilot")
        where = filled("at ε = {}, from {} samples; not a guarantee", at, drawn)
        seen: Content = ("the samples contain too few losses for an estimate of δ",)
        if one.known:
            error = estimate(one.standard_error, "probability", "pilot", 2)
            seen = ("δ near ", estimate(one.value, "probability", "pilot"), " ± ", error, " (standard error)")
        lines.append(Fact(f"estimate, {direction}", seen, where))
    if forecast.pilot_value is not None and forecast.trade:
        offers = "; ".join(f"{name} = {one.value:.4g} with {one.samples:.2g} samples" for one in forecast.trade)
        lines.append(Fact("trade", (offers,), ("accounting.tolerance says how far the tests go",)))
    lines += [Fact("samples", (line,)) for line in forecast.draws]
    if plan.document.accounting.method == "renyi":
        lines.append(Fact("tests", ("none: moments prove what is asked",)))
    elif not forecast.draws and forecast.ends_at is None:
        lines.append(Fact("tests", ("none: what holds without samples is enough, or the claim looks false",)))
    lines += [Fact("cheaper", (line,)) for line in cheaper(plan, forecast)]
    return lines
