"""The certificate and the plan for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.certificate.meaning import meaning
from pyaccount.certificate.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.certificate import Certificate
    from pyaccount.certificate.model import CertificateModel, MatrixRecord, Phase


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
        _meaning(data),
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
    if guarantee.kind != "deterministic":
        table.add_row("guarantee", *_kind(data))
    directions = data.directions
    if data.evidence.sampling is None:
        table.add_row(
            "directions",
            f"remove ε ≤ {up(directions.remove.epsilon)}, add ε ≤ {up(directions.add.epsilon)}",
            "the larger counts",
        )
    unit = data.privacy
    table.add_row("protects", f"{unit.group_size} {unit.unit}{'s' if unit.group_size > 1 else ''}", unit.adjacency)
    if data.solved is not None:
        if data.solved.path in ("privacy.epsilon", "privacy.delta"):
            table.add_row("solved", f"{data.solved.path} = {up(data.solved.value)}", _smallest(data))
        else:
            beyond = "" if data.solved.fails_at is None else f"{_value(data.solved.fails_at)} fails"
            table.add_row("solved", f"{data.solved.path} = {_value(data.solved.value)}", beyond)
    for phase in data.phases:
        runs = f"{phase.count} × " if phase.count > 1 else ""
        symbol = "σ" if phase.noise == "gaussian" else "Laplace scale b"
        table.add_row(
            phase.name or "training",
            f"{symbol} = {_value(phase.noise_multiplier)}, {runs}{phase.iterations} iterations, {phase.sampler}{_rate(phase)}",
            f"{symbol} in units of the clip norm",
        )
        if phase.matrix.kind != "identity":
            table.add_row(
                "matrix",
                f"{phase.matrix.kind}, {_width(phase.matrix)}",
                f"largest column norm {phase.matrix.column_norm:.6g}",
            )
    if data.utility is not None:
        table.add_row(
            "prefix sums", f"noise MSE {data.utility.prefix_sum_mse:.6g}", "in units of the clip norm squared"
        )
        if data.phases[0].matrix.kind != "identity":
            table.add_row(
                "",
                f"RMSE {data.utility.prefix_sum_rmse:.6g}, max error {data.utility.max_error:.6g}",
                "in units of the clip norm",
            )
    table.add_row("unamplified", f"ε ≤ {_bound(data.unamplified.epsilon)}", data.unamplified.description)
    if data.group_lemma is not None:
        table.add_row("group lemma", f"ε ≤ {_bound(data.group_lemma.epsilon)}", data.group_lemma.description)
    return table


def _width(matrix: MatrixRecord) -> str:
    return f"{matrix.bands} bands" if matrix.buffers is None else f"{len(matrix.buffers.scales)} buffers"


def _smallest(data: CertificateModel) -> str:
    return "the smallest, rounded up" if data.evidence.sampling is None else "the smallest that was certified"


def _kind(data: CertificateModel) -> tuple[str, str]:
    """What kind of guarantee sampling gave, and what that means."""
    sampling = data.evidence.sampling
    assert sampling is not None
    if data.guarantee.kind == "verified":
        return "verified by a randomised test", f"its failure, {up(sampling.total_probability, 2)}, is part of δ"
    return (
        f"confidence 1 − {up(data.guarantee.failure_probability, 2)}",
        "over the accountant's own randomness, for a mechanism given beforehand",
    )


def _rate(phase: Phase) -> str:
    """How often a record takes part, in the sampler's own terms and in the common one."""
    p, rate = phase.sampling_probability, phase.participation_rate
    if rate is None:
        return "" if p is None else f", sampling probability {plain(p)} for each record of an available user"
    if p == rate:
        return f", sampling probability {plain(p)}"
    batch = "" if phase.expected_batch_size is None else f", expected batch {phase.expected_batch_size:.6g}"
    if phase.distinct_records is not None and phase.distinct_records != phase.expected_batch_size:
        return (
            f", {phase.expected_batch_size:.6g} draws a round, {phase.distinct_records:.6g} distinct records expected"
        )
    given = {"b-min-sep": " when available", "cyclic-poisson": " within its part"}.get(phase.sampler, "")
    drawn = "" if p is None else f", sampling probability {p:.6g}{given}"
    return f", participation rate {rate:.6g}{drawn}{batch}"


def _bound(value: float | None) -> str:
    return "∞ (needs a δ below 1e-280 for one record)" if value is None else up(value)


def _value(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.8g}"


def _profile(data: CertificateModel) -> Table:
    table = Table(title="Privacy profile", title_justify="left", title_style="bold", box=None, padding=(0, 2))
    if data.evidence.sampling is not None:
        return _sampled_profile(data, table)
    for heading in ("ε", "δ at most", "δ at least", "remove: δ at most", "add: δ at most"):
        table.add_column(heading, justify="right")
    for point, remove, add in zip(
        data.profile, data.directions.remove.profile, data.directions.add.profile, strict=True
    ):
        table.add_row(
            plain(point.epsilon), up(point.delta, 4), down(point.delta_lower, 4), up(remove.delta, 4), up(add.delta, 4)
        )
    return table


def _sampled_profile(data: CertificateModel, table: Table) -> Table:
    """The profile of a sampled mechanism: bounds that hold with their own probability each, and estimates as such."""
    sampling = data.evidence.sampling
    assert sampling is not None
    table.title = f"Privacy profile: each bound with confidence 1 − {up(sampling.pointwise_failure_probability, 2)}"
    for heading in ("ε", "δ at most", "δ at least", "estimate", "± s.e.", "remove: estimate", "add: estimate"):
        table.add_column(heading, justify="right")
    for point, remove, add in zip(
        data.profile, data.directions.remove.profile, data.directions.add.profile, strict=True
    ):
        estimates = (point.delta_estimate, point.standard_error, remove.delta_estimate, add.delta_estimate)
        table.add_row(
            plain(point.epsilon),
            up(point.delta, 3),
            down(point.delta_lower, 3),
            *(
                "" if value is None else f"{value:.{digits}g}"
                for value, digits in zip(estimates, (4, 2, 4, 4), strict=True)
            ),
        )
    return table


def _meaning(data: CertificateModel) -> Table:
    """What the profile means for an attacker, in a few lines."""
    found = meaning(data)
    rate = next(one for one in found.rates if one.false_positive_rate == 1e-3)
    mu = found.gaussian.mu_at_points
    table = Table(title="What it means", title_justify="left", title_style="bold", box=None, padding=(0, 2))
    table.show_header = False
    table.add_row("membership advantage", f"at most {up(found.advantage, 4)}", "true- minus false-positive rate")
    worst = max(rate.presence, rate.absence)
    table.add_row("true-positive rate", f"at most {up(worst, 4)}", "at a false-positive rate of 0.001")
    needed = "none suffices" if mu is None else f"at most {up(mu, 4)} at the profile's points"
    table.add_row("Gaussian μ", needed, f"no μ below {down(found.gaussian.mu_lower, 4)} suffices")
    if found.failure_probability > 0.0:
        table.add_row("these together", f"confidence 1 − {up(found.failure_probability, 2)}", "the profile was sampled")
    return table


def _tests(data: CertificateModel) -> list[RenderableType]:
    """The tests that were run."""
    sampling = data.evidence.sampling
    if sampling is None:
        return []
    table = Table(title="Tests", title_justify="left", title_style="bold", box=None, padding=(0, 2))
    for heading in ("direction", "σ", "δ(ε) below", "at ε", "samples", "log capital", "of", "cap", "stretch", ""):
        table.add_column(heading, justify="right")
    for test in sampling.tests:
        table.add_row(
            test.direction,
            f"{test.noise_multiplier:.6g}",
            f"{test.threshold:.4g}",
            f"{test.epsilon:.6g}",
            f"{test.samples}",
            f"{test.log_capital:.2f}",
            f"{test.log_target:.2f}",
            f"{test.cap:.3g}",
            f"{test.proposal.stretch:.3g}",
            "accepted" if test.accepted else "rejected",
        )
    origin = (
        "fixed in the document, before any result was seen"
        if sampling.seed_source == "document"
        else "from the operating system"
    )
    parts: list[RenderableType] = [
        Text(f"{sampling.verification}, {sampling.samples} samples in all; seed {sampling.seed}, {origin}."),
        *([table] if sampling.tests else []),
    ]
    curve = sampling.composed_curve
    if curve is not None:
        parts.insert(
            0,
            Text(
                f"The other phases' curve: δ at {curve.nodes} values of ε out to ±{curve.reach:.4g}, from {curve.compositions} "
                f"compositions; bounds within {up(curve.relative_gap, 2)} of each other, {up(curve.floor, 2)} beyond."
            ),
        )
    if data.evidence.considered:
        choice = Table(
            title="Considered, by estimates", title_justify="left", title_style="bold", box=None, padding=(0, 2)
        )
        for heading in ("matrix", "bands", "σ", "prefix-sum MSE"):
            choice.add_column(heading, justify="right")
        for one in data.evidence.considered:
            choice.add_row(
                one.matrix, str(one.bands), f"{one.noise_multiplier_estimate:.5g}", f"{one.prefix_sum_mse_estimate:.6g}"
            )
        parts.append(choice)
    return parts


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
        *_tests(data),
        table,
        Text(),
        Text(f"document sha256 {data.document_sha256}", style="dim"),
        Text(f"{versions}; created {data.created}", style="dim"),
    ]
