"""The page of a plan: the theorem for each part of a document, the engine, the cost, and labelled estimates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.origins import ORIGINS
from pyaccount.errors import path_text
from pyaccount.pages.page import (
    Block,
    Checklist,
    Content,
    Entry,
    Fact,
    FactList,
    Page,
    PageSection,
    PageTable,
    estimate,
    exact,
)
from pyaccount.plan.common import length_text
from pyaccount.plan.cost import composing_cost, sampling_cost
from pyaccount.plan.matrices.base import has_workload

if TYPE_CHECKING:
    from pyaccount.execute import Estimated
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan.amplification import AmplificationPlan
    from pyaccount.plan.compiled import CompiledDocument


def plan_page(plan: CompiledDocument, estimated: Estimated | None = None) -> Page:
    """Return the page of a plan, with the pilot's estimates if they are given."""
    facts = [Fact("question", (plan.question,))]
    if len(plan.candidates) > 1 or (plan.asked is not None and plan.asked.choices):
        facts.append(Fact("choice", (f"{len(plan.candidates)} candidates are compared; this plan is of the first",)))
    if plan.document.searched:
        how = "the matrix is optimised for sampling first; this plan has the matrix of least error for its column norm"
        facts.append(Fact("search", (how,)))
    facts.append(Fact("engine", (plan.engine,)))
    if plan.mixed:
        how = "phases without sampling are composed into one curve δ(ε); every sample of the others is weighed with that curve"
        facts.append(Fact("phases", (how,)))
    facts += [Fact("cost", (line,)) for line in (sampling_cost(plan) if plan.sampled else [_composing(plan)])]
    sections = [
        PageSection("plan", "How it will be computed", (FactList(tuple(facts)),)),
        PageSection("theorems", "Theorems that will be used", tuple(_theorems(plan))),
    ]
    if estimated is not None:
        sections.append(PageSection("estimates", "Estimates: none is a guarantee", tuple(_estimates(estimated))))
    return Page("Plan", plan.document.name, tuple(sections), origins=ORIGINS)


def amplification_plan_page(plan: AmplificationPlan) -> Page:
    """Return the page of the plan of an amplification, which is computed in closed form."""
    facts = (
        Fact("sampling", (plan.subject,)),
        Fact("theorem", (plan.theorem,)),
        Fact("law of draws", (f"p_j = {plan.law}, η = 1 − p_0",)),
        Fact("source", (plan.source,)),
    )
    sections = (
        PageSection("theorems", "Amplification by sampling, in closed form", (FactList(facts),)),
        PageSection("assumptions", "What must be true of the draw", (Checklist(tuple(plan.assumptions)),)),
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
        rows = [
            ("theorem", reduction.theorem),
            ("source", reduction.source),
            ("pair", reduction.pair),
            ("rounds", reduction.rounds),
            ("epochs", lengths.get(reduction.path)),
            ("remark", reduction.remark),
            ("lower end", reduction.lower_end),
        ]
        facts = tuple(Fact(label, (text,)) for label, text in rows if text)
        title = f"{path_text(reduction.path) or 'document'}: {reduction.subject}"
        entries.append(Entry(title, "tight" if reduction.tight else "not tight", facts))
    return entries


def _estimates(estimated: Estimated) -> list[Block]:
    plan, forecast = estimated
    blocks: list[Block] = [_candidates(plan)] if plan.considered else []
    facts = [Fact("samples", ("none: rounds are composed",))] if forecast is None else _forecast(plan, forecast)
    return [*blocks, FactList(tuple(facts))]


def _candidates(plan: CompiledDocument) -> PageTable:
    considered = plan.considered
    workload = has_workload(plan.document)
    relative = any(one.chosen for one in considered)
    headings = (
        *("matrix", "bands", "σ near", "prefix-sum MSE near"),
        *(["workload's error near"] if workload else []),
        *(["error relative to the batch near"] if relative else []),
    )
    rows: list[tuple[Content, ...]] = []
    for one in considered:
        errors = [one.prefix_sum_mse, *([one.squared_error] if workload else []), *([one.compared] if relative else [])]
        name = ", ".join([one.matrix, *(f"{key} {value}" for key, value in one.chosen)])
        rows.append(
            (
                (name,),
                (exact(one.bands, "bands", "document"),),
                (estimate(one.noise_multiplier, "clip norms", "pilot"),),
                *((estimate(error, "squared clip norms", "pilot"),) for error in errors),
            )
        )
    return PageTable(("Candidates, by estimates.",), headings, tuple(rows), words=("matrix",))


def _forecast(plan: CompiledDocument, forecast: Forecast) -> list[Fact]:
    # needed only for estimates
    from pyaccount.execute.sampling.forecast import cheaper

    facts = []
    blank = plan.document.blank
    name = "" if blank is None else {"multiplier": "σ", "epsilon": "ε", "delta": "δ"}[str(blank[-1])]
    if forecast.pilot_value is not None:
        value = estimate(forecast.pilot_value, "as the blank's", "pilot", 5)
        facts.append(Fact("estimate", (f"{name} near ", value), ("not a guarantee",)))
    for direction, one in forecast.estimates.items():
        where: Content = (
            "at ε = ",
            exact(forecast.epsilon, "nats", "pilot"),
            ", from ",
            exact(one.samples, "samples", "pilot"),
            " samples; not a guarantee",
        )
        seen: Content = ("the samples contain too few losses for an estimate of δ",)
        if one.known:
            error = estimate(one.standard_error, "probability", "pilot", 2)
            seen = ("δ near ", estimate(one.value, "probability", "pilot"), " ± ", error, " (standard error)")
        facts.append(Fact(f"estimate, {direction}", seen, where))
    if forecast.pilot_value is not None and forecast.trade:
        offers = "; ".join(f"{name} = {one.value:.4g} with {one.samples:.2g} samples" for one in forecast.trade)
        facts.append(Fact("trade", (offers,), ("accounting.tolerance says how far the tests go",)))
    facts += [Fact("samples", (line,)) for line in forecast.draws]
    if plan.document.accounting.method == "renyi":
        facts.append(Fact("tests", ("none: moments prove what is asked",)))
    elif not forecast.draws and forecast.ends_at is None:
        facts.append(Fact("tests", ("none: what holds without samples is enough, or the claim looks false",)))
    facts += [Fact("cheaper", (line,)) for line in cheaper(plan, forecast)]
    return facts
