"""The plan for a terminal, with the pilot's estimates where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.certificate.layout import Figures
from pyaccount.errors import path_text
from pyaccount.plan.common import length_text
from pyaccount.plan.cost import composing_cost, duration, sampling_cost
from pyaccount.plan.workload import has_workload

if TYPE_CHECKING:
    from pyaccount.execute.forecast import Price
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan import CompiledDocument


#: The width of the labels, and of what frames a title.
_LABEL, _FRAME = 11, 6


def _labelled(label: str, text: str) -> RenderableType:
    """A line with a label; what goes on stands below its beginning."""
    table = Table.grid()
    table.add_column(width=_LABEL)
    table.add_column(overflow="fold")
    table.add_row(label, Text(text))
    return table


def print_plan(console: Console, plan: CompiledDocument, price: Price | None = None) -> None:
    """Print the plan."""
    console.print(Text.assemble(("Plan", "bold"), "  ", (plan.document.name, "bold cyan")))
    console.print(_labelled("question", plan.question))
    if len(plan.candidates) > 1 or (plan.asked is not None and plan.asked.choices):
        console.print(_labelled("choice", f"{len(plan.candidates)} candidates are compared; below is the first"))
    if plan.document.searched:
        words = (
            "the matrix is optimised for sampling first; below it stands with that of least error for its column norm"
        )
        console.print(_labelled("search", words))
    lengths = {body.path: length_text(body) for body in plan.document.bodies}
    for reduction in plan.reductions:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        grid.add_row("theorem", Text(reduction.theorem))
        grid.add_row("source", Text(reduction.source))
        grid.add_row("pair", Text(reduction.pair))
        grid.add_row("rounds", Text(reduction.rounds))
        if (length := lengths[reduction.path]) is not None:
            grid.add_row("epochs", Text(length))
        grid.add_row("tight", Text("yes" if reduction.tight else "no"))
        if reduction.remark:
            grid.add_row("remark", Text(reduction.remark))
        if reduction.lower_end:
            grid.add_row("lower end", Text(reduction.lower_end))
        title = Text(f"{path_text(reduction.path) or 'document'}: {reduction.subject}")
        # A title that the frame has no room for would be cut.
        fits = cell_len(title.plain) <= console.width - _FRAME
        console.print(Panel(grid, title=title, title_align="left") if fits else Panel(Group(title, grid)))
    console.print(_labelled("engine", plan.engine))
    if plan.mixed:
        words = (
            "those that are not sampled are composed into one curve δ(ε); every sample of the others' privacy loss is weighed "
            "with it"
        )
        console.print(_labelled("phases", words))
    if plan.sampled:
        for line in sampling_cost(plan):
            console.print(_labelled("cost", line))
    else:
        _print_cost(console, plan)
    if price is not None:
        _print_price(console, price)


def _print_cost(console: Console, plan: CompiledDocument) -> None:
    estimate = composing_cost(plan)
    size = (
        f", profiles evaluated at about {estimate.evaluations} points, transforms of about {estimate.transform_length}"
        if estimate.transform_length
        else ""
    )
    words = f"about {estimate.compositions} compositions{size}: roughly {estimate.seconds:.2g} s on two cores"
    console.print(_labelled("cost", words))


def _print_price(console: Console, price: Price) -> None:
    """Estimates, labelled as such in every line."""
    if price.plan.considered:
        title = "Candidates, by estimates; none is a guarantee"
        stated = has_workload(price.plan.document)
        relative = any(one.chosen for one in price.plan.considered)
        headings = (
            *("matrix", "bands", "σ near", "prefix-sum MSE near"),
            *(["workload's error near"] if stated else []),
            *(["error relative to the batch near"] if relative else []),
            "tests take about",
        )
        table = Figures(title, headings, words=("matrix", "tests take about"))
        for one in price.plan.considered:
            takes = "" if one.seconds is None else duration(one.seconds)
            errors = [
                one.prefix_sum_mse,
                *([one.squared_error] if stated else []),
                *([one.compared] if relative else []),
            ]
            figures = [f"{value:.4g}" for value in (one.noise_multiplier, *errors)]
            name = ", ".join([one.matrix, *(f"{key} {value}" for key, value in one.chosen)])
            table.add(name, str(one.bands), *figures, takes)
        console.print(table)
    stages = ", ".join(f"{name} {duration(seconds)}" for name, seconds in price.stages.items())
    console.print(_labelled("price", f"about {duration(price.seconds)} on this machine: {stages}"))
    if price.sampled is not None:
        _print_forecast(console, price.plan, price.sampled)


def _print_forecast(console: Console, plan: CompiledDocument, forecast: Forecast) -> None:
    from pyaccount.execute.sampling.forecast import cheaper  # noqa: PLC0415 - what was estimated is told only if it was

    blank = plan.document.blank
    name = "" if blank is None else {"multiplier": "σ", "epsilon": "ε", "delta": "δ"}[str(blank[-1])]
    if forecast.pilot_value is not None:
        console.print(_labelled("estimate", f"{name} near {forecast.pilot_value:.5g}; not a guarantee"))
    for direction, one in forecast.estimates.items():
        where = f"at ε = {forecast.epsilon:.6g}, from {one.samples} samples; not a guarantee"
        seen = (
            f"δ near {one.value:.4g} ± {one.standard_error:.2g} (standard error) {where}"
            if one.known
            else f"too few losses seen for an estimate of δ {where}"
        )
        console.print(_labelled("estimate", f"{direction}: {seen}"))
    if forecast.pilot_value is not None and forecast.trade:
        offers = "; ".join(f"{name} = {one.value:.4g} in {duration(one.seconds)}" for one in forecast.trade)
        console.print(_labelled("trade", f"{offers} (tests alone; accounting.tolerance says how far they go)"))
    for line in forecast.draws:
        console.print(_labelled("samples", line))
    if "moments" in forecast.stages:
        console.print(_labelled("tests", "none: moments prove what is asked"))
    elif "tests" not in forecast.stages and forecast.ends_at is None:
        console.print(_labelled("tests", "none: what holds without samples is enough, or the claim looks false"))
    for line in cheaper(plan, forecast):
        console.print(_labelled("cheaper", line))
