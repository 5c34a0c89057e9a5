"""The plan for a terminal, with the pilot's estimates where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.errors import path_text
from pyaccount.plan.common import length_text

if TYPE_CHECKING:
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan import Plan


def print_plan(console: Console, plan: Plan, forecast: Forecast | None = None) -> None:
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
        if forecast is not None:
            _print_forecast(console, forecast)
        return
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


def _print_forecast(console: Console, forecast: Forecast) -> None:
    """Estimates, labelled as such in every line."""
    if forecast.noise_multiplier is not None:
        console.print(f"estimate   σ near {forecast.noise_multiplier:.5g}; not a guarantee", highlight=False)
    for direction, one in forecast.estimates.items():
        console.print(
            f"estimate   {direction}: δ near {one.value:.4g} ± {one.standard_error:.2g} (standard error) at ε = "
            f"{forecast.epsilon:.6g}, from {one.samples} samples; not a guarantee",
            highlight=False,
        )
    for line in forecast.costs:
        console.print(f"estimate   {line}", highlight=False)
