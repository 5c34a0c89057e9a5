"""The certificate and the plan for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.certificate.rounding import down, plain, up
from pyaccount.errors import path_text

if TYPE_CHECKING:
    from pyaccount.certificate.certificate import Certificate
    from pyaccount.certificate.model import CertificateModel
    from pyaccount.plan import Plan


def print_certificate(console: Console, certificate: Certificate) -> None:
    """Print the certificate."""
    console.print(render(certificate.data))


def render(data: CertificateModel) -> RenderableType:
    """The certificate as a rich renderable. Upper bounds are rounded up, lower bounds down."""
    verdict = Text("HOLDS", style="bold green") if data.holds else Text("DOES NOT HOLD", style="bold red")
    head = Text.assemble(("Privacy certificate", "bold"), "  ", (data.name, "bold cyan"), "  ", verdict)
    parts: list[RenderableType] = [
        head,
        Text(data.statement),
        Text(),
        _numbers(data),
        Text(),
        _profile(data),
        Text(),
        Text("Assumptions: what must be true of the training run", style="bold"),
        *_items(data.assumptions),
        Text(),
        Text("Reductions: the theorems used", style="bold"),
        *_items(
            f"{r.subject} ({r.path}), {r.rounds} rounds: {r.theorem}; {'tight' if r.tight else 'not tight'}. {r.source}.\n"
            f"{r.pair}" + (f"\n{r.remark}" if r.remark else "")
            for r in data.reductions
        ),
        Text(),
        *_evidence(data),
    ]
    return Panel(Group(*parts), border_style="green" if data.holds else "red", padding=(1, 2))


def _items(texts: object) -> list[RenderableType]:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column()
    for text in texts:  # type: ignore[attr-defined]
        grid.add_row("•", Text(str(text)))
    return [grid]


def _numbers(data: CertificateModel) -> Table:
    guarantee = data.guarantee
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    table.add_column(style="dim")
    table.add_row("ε", f"at most {up(guarantee.epsilon)}", f"at least {down(guarantee.epsilon_lower)}, at this δ")
    table.add_row("δ", f"at most {up(guarantee.delta)}", f"at least {down(guarantee.delta_lower)}, at this ε")
    directions = data.directions
    table.add_row(
        "directions",
        f"remove ε ≤ {up(directions.remove.epsilon)}, add ε ≤ {up(directions.add.epsilon)}",
        "the larger counts",
    )
    unit = data.privacy
    table.add_row("protects", f"{unit.group_size} {unit.unit}{'s' if unit.group_size > 1 else ''}", unit.adjacency)
    if data.solved is not None:
        if data.solved.path in ("privacy.epsilon", "privacy.delta"):
            table.add_row("solved", f"{data.solved.path} = {up(data.solved.value)}", "the smallest, rounded up")
        else:
            beyond = "" if data.solved.fails_at is None else f"{_value(data.solved.fails_at)} fails"
            table.add_row("solved", f"{data.solved.path} = {_value(data.solved.value)}", beyond)
    for phase in data.phases:
        runs = f"{phase.count} × " if phase.count > 1 else ""
        rate = (
            "" if phase.sampling_probability is None else f", sampling probability {plain(phase.sampling_probability)}"
        )
        table.add_row(
            phase.name or "training",
            f"σ = {_value(phase.noise_multiplier)}, {runs}{phase.iterations} iterations, {phase.sampler}{rate}",
            "σ in units of the clip norm",
        )
    if data.utility is not None:
        table.add_row(
            "prefix sums", f"noise MSE {data.utility.prefix_sum_mse:.6g}", "in units of the clip norm squared"
        )
    table.add_row("unamplified", f"ε ≤ {_bound(data.unamplified.epsilon)}", data.unamplified.description)
    if data.group_lemma is not None:
        table.add_row("group lemma", f"ε ≤ {_bound(data.group_lemma.epsilon)}", data.group_lemma.description)
    return table


def _bound(value: float | None) -> str:
    return "∞ (needs a δ below 1e-280 for one record)" if value is None else up(value)


def _value(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.8g}"


def _profile(data: CertificateModel) -> Table:
    table = Table(title="Privacy profile", title_justify="left", title_style="bold", box=None, padding=(0, 2))
    for heading in ("ε", "δ at most", "δ at least", "remove: δ at most", "add: δ at most"):
        table.add_column(heading, justify="right")
    for point, remove, add in zip(
        data.profile, data.directions.remove.profile, data.directions.add.profile, strict=True
    ):
        table.add_row(
            plain(point.epsilon), up(point.delta, 4), down(point.delta_lower, 4), up(remove.delta, 4), up(add.delta, 4)
        )
    return table


def _evidence(data: CertificateModel) -> list[RenderableType]:
    evidence = data.evidence
    met = "met" if evidence.within_tolerance else "not met: the interval is proven all the same"
    table = Table(
        title="Error budget of the upper end, in units of δ",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2),
    )
    table.add_column("source")
    labels = list(dict.fromkeys(line.direction for line in evidence.error_budget))
    for label in labels:
        table.add_column(label, justify="right")
    for source in dict.fromkeys(line.source for line in evidence.error_budget):
        found = {line.direction: line.contribution for line in evidence.error_budget if line.source == source}
        table.add_row(source, *(up(found[label], 2) for label in labels))
    versions = ", ".join(f"{name} {number}" for name, number in data.versions.items())
    return [
        Text(f"Evidence: {evidence.engine}; relative tolerance {plain(evidence.tolerance)} {met}.", style="bold"),
        *_items(
            f"{c.direction}, {c.bound}: {c.question} is in [{down(c.lower)}, {up(c.upper)}]"
            + (
                f"; lattice {c.spacing:.3g}, transform {c.transform_length}, tilt {c.tilt:.4g}"
                if c.transform_length
                else ""
            )
            for c in evidence.compositions
        ),
        table,
        Text(),
        Text(f"document sha256 {data.document_sha256}", style="dim"),
        Text(f"{versions}; created {data.created}", style="dim"),
    ]


def print_plan(console: Console, plan: Plan) -> None:
    """Print the plan."""
    estimate = plan.estimate()
    console.print(Text.assemble(("Plan", "bold"), "  ", (plan.document.name, "bold cyan")))
    console.print(f"question   {plan.question}", highlight=False)
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
        title = f"{path_text(reduction.path) or 'document'}: {reduction.subject}"
        console.print(Panel(grid, title=title, title_align="left"))
    console.print(f"engine     {plan.engine}", highlight=False)
    size = (
        f", profiles evaluated at about {estimate.evaluations} points, transforms of about {estimate.transform_length}"
        if estimate.transform_length
        else ""
    )
    console.print(
        f"cost       about {estimate.compositions} compositions{size}: roughly {estimate.seconds:.2g} s on two cores",
        highlight=False,
    )
