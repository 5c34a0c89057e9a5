"""The plan for a terminal, with the pilot's estimates where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.errors import path_text
from pyaccount.plan.common import length_text
from pyaccount.plan.plan import duration

if TYPE_CHECKING:
    from pyaccount.execute.forecast import Price
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan import Plan


def print_plan(console: Console, plan: Plan, price: Price | None = None) -> None:
    """Print the plan."""
    console.print(Text.assemble(("Plan", "bold"), "  ", (plan.document.name, "bold cyan")))
    console.print(f"question   {plan.question}", highlight=False)
    if plan.candidates:
        console.print(f"choice     {len(plan.candidates)} candidates are compared; below is the first", highlight=False)
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
        title = f"{path_text(reduction.path) or 'document'}: {reduction.subject}"
        console.print(Panel(grid, title=title, title_align="left"))
    console.print(f"engine     {plan.engine}", highlight=False)
    if plan.mixed:
        console.print(
            "phases     those that are not sampled are composed into one curve δ(ε); every sample of the others' privacy loss is "
            "weighed with it",
            highlight=False,
        )
    if plan.sampled:
        for line in plan.sampling_cost():
            console.print(f"cost       {line}", highlight=False)
    else:
        _print_cost(console, plan)
    if price is not None:
        _print_price(console, plan, price)


def _print_cost(console: Console, plan: Plan) -> None:
    estimate = plan.estimate()
    size = (
        f", profiles evaluated at about {estimate.evaluations} points, transforms of about {estimate.transform_length}"
        if estimate.transform_length
        else ""
    )
    console.print(
        f"cost       about {estimate.compositions} compositions{size}: roughly {estimate.seconds:.2g} s on two cores",
        highlight=False,
    )


def _print_price(console: Console, plan: Plan, price: Price) -> None:
    """Estimates, labelled as such in every line."""
    if price.plan.considered:
        table = Table(
            title="Candidates, by estimates; none is a guarantee", title_justify="left", box=None, padding=(0, 2)
        )
        for heading in ("matrix", "bands", "σ near", "prefix-sum MSE near", "tests take about"):
            table.add_column(heading, justify="left" if heading == "matrix" else "right")
        for one in price.plan.considered:
            takes = "" if one.seconds is None else duration(one.seconds)
            table.add_row(one.matrix, str(one.bands), f"{one.noise_multiplier:.4g}", f"{one.prefix_sum_mse:.4g}", takes)
        console.print(table)
    stages = ", ".join(f"{name} {duration(seconds)}" for name, seconds in price.stages.items())
    console.print(f"price      about {duration(price.seconds)} on this machine: {stages}", highlight=False)
    if price.sampled is not None:
        _print_forecast(console, price.plan, price.sampled)


def _print_forecast(console: Console, plan: Plan, forecast: Forecast) -> None:
    from pyaccount.execute.sampling.forecast import cheaper  # noqa: PLC0415 - what was estimated is told only if it was

    blank = plan.document.blank
    name = "" if blank is None else {"multiplier": "σ", "epsilon": "ε", "delta": "δ"}[str(blank[-1])]
    if forecast.foot is not None:
        console.print(f"estimate   {name} near {forecast.foot:.5g}; not a guarantee", highlight=False)
    for direction, one in forecast.estimates.items():
        where = f"at ε = {forecast.epsilon:.6g}, from {one.samples} samples; not a guarantee"
        seen = (
            f"δ near {one.value:.4g} ± {one.standard_error:.2g} (standard error) {where}"
            if one.known
            else f"too few losses seen for an estimate of δ {where}"
        )
        console.print(f"estimate   {direction}: {seen}", highlight=False)
    if forecast.foot is not None and forecast.trade:
        offers = "; ".join(f"{name} = {one.value:.4g} in {duration(one.seconds)}" for one in forecast.trade)
        console.print(f"trade      {offers} (tests alone; accounting.tolerance says how far they go)", highlight=False)
    if "tests" not in forecast.stages and forecast.ends_at is None:
        console.print(
            "tests      none: what holds without samples is enough, or the claim looks false", highlight=False
        )
    for line in cheaper(plan, forecast):
        console.print(f"cheaper    {line}", highlight=False)
