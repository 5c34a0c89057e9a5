"""The plan for a terminal, with the pilot's estimates where they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.errors import path_text

if TYPE_CHECKING:
    from pyaccount.execute.sampling.forecast import Forecast
    from pyaccount.plan import Plan


#: The width of the labels, and of what frames a title.
_LABEL, _FRAME = 11, 6


def _labelled(label: str, text: str) -> RenderableType:
    """A line with a label; what goes on stands below its beginning."""
    table = Table.grid()
    table.add_column(width=_LABEL)
    table.add_column(overflow="fold")
    table.add_row(label, Text(text))
    return table


def print_plan(console: Console, plan: Plan, forecast: Forecast | None = None) -> None:
    """Print the plan."""
    console.print(Text.assemble(("Plan", "bold"), "  ", (plan.document.name, "bold cyan")))
    console.print(_labelled("question", plan.question))
    if plan.candidates:
        console.print(_labelled("choice", f"{len(plan.candidates)} candidates are compared; below is the first"))
    for reduction in plan.reductions:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        grid.add_row("theorem", Text(reduction.theorem))
        grid.add_row("source", Text(reduction.source))
        grid.add_row("pair", Text(reduction.pair))
        grid.add_row("rounds", Text(reduction.rounds))
        grid.add_row("tight", Text("yes" if reduction.tight else "no"))
        if reduction.remark:
            grid.add_row("remark", Text(reduction.remark))
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
        for line in plan.sampling_cost():
            console.print(_labelled("cost", line))
        if forecast is not None:
            _print_forecast(console, forecast)
        return
    estimate = plan.estimate()
    size = (
        f", profiles evaluated at about {estimate.evaluations} points, transforms of about {estimate.transform_length}"
        if estimate.transform_length
        else ""
    )
    words = f"about {estimate.compositions} compositions{size}: roughly {estimate.seconds:.2g} s on two cores"
    console.print(_labelled("cost", words))


def _print_forecast(console: Console, forecast: Forecast) -> None:
    """Estimates, labelled as such in every line."""
    if forecast.noise_multiplier is not None:
        console.print(_labelled("estimate", f"σ near {forecast.noise_multiplier:.5g}; not a guarantee"))
    for direction, one in forecast.estimates.items():
        words = (
            f"{direction}: δ near {one.value:.4g} ± {one.standard_error:.2g} (standard error) at ε = {forecast.epsilon:.6g}, "
            f"from {one.samples} samples; not a guarantee"
        )
        console.print(_labelled("estimate", words))
    for line in forecast.costs:
        console.print(_labelled("estimate", line))
