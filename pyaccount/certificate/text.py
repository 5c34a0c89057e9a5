"""The certificate for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyaccount.certificate.meaning import meaning
from pyaccount.certificate.text_evidence import contradicted, evidence, items, number_columns, row, told
from pyaccount.certificate.words import (
    PRIVACY_BLANKS,
    SOLVED_DIGITS,
    drawn,
    enough,
    failing,
    smallest,
    symbol,
    too_little,
)
from pyaccount.document.ranges import SMALLEST_DELTA, spelled
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.certificate import Certificate
    from pyaccount.certificate.model import CertificateModel, Contrast, MatrixRecord, Phase, ProfilePoint


def print_certificate(console: Console, certificate: Certificate, flaws: Sequence[str] = ()) -> None:
    """Print the certificate; `flaws` are what in it contradicts the rest of it."""
    console.print(render(certificate.data, flaws))


def render(data: CertificateModel, flaws: Sequence[str] = ()) -> RenderableType:
    """The certificate as a rich renderable. Upper bounds are rounded up, lower bounds down."""
    verdict = [("  ", ""), ("HOLDS", "bold green") if data.holds else ("DOES NOT HOLD", "bold red")]
    # Whether it holds is said by figures of which not all can be true.
    verdict = contradicted(flaws) or verdict
    head = Text.assemble(("Privacy certificate", "bold"), "  ", (data.name, "bold cyan"), *verdict)
    parts: list[RenderableType] = [
        head,
        *told(flaws),
        Text(data.statement),
        Text(),
        _numbers(data),
        Text(),
        _profile(data),
        Text(),
        _meaning(data),
        Text(),
        Text("Assumptions: what must be true of the training run", style="bold"),
        *items(data.assumptions),
        Text(),
        Text("Reductions: the theorems used", style="bold"),
        *items(
            f"{r.subject} ({r.path}), {r.rounds} rounds: {r.theorem}; {'tight' if r.tight else 'not tight'}. {r.source}.\n"
            f"{r.pair}" + (f"\n{r.remark}" if r.remark else "")
            for r in data.reductions
        ),
        Text(),
        *evidence(data),
    ]
    return Panel(Group(*parts), border_style="green" if data.holds and not flaws else "red", padding=(1, 2))


def _numbers(data: CertificateModel) -> Table:
    guarantee = data.guarantee
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    epsilon, delta = guarantee.epsilon, guarantee.delta
    # A lower end at one ε or δ is one at every smaller: each is said at its own coordinate, rounded down as it is.
    row(table, "ε", f"at most {up(epsilon)}", f"at least {down(guarantee.epsilon_lower)}, at δ = {down(delta)}")
    row(table, "δ", f"at most {up(delta)}", f"at least {down(guarantee.delta_lower)}, at ε = {down(epsilon)}")
    _kind(table, data)
    directions = data.directions
    if data.evidence.sampling is None:
        ends = f"remove ε ≤ {up(directions.remove.epsilon)}, add ε ≤ {up(directions.add.epsilon)}"
        row(table, "directions", ends, "the larger counts")
    unit = data.privacy
    row(table, "protects", f"{unit.group_size} {unit.unit}{'s' if unit.group_size > 1 else ''}", unit.adjacency)
    _solved(table, data)
    for phase in data.phases:
        _phase(table, phase)
    if data.utility is not None:
        row(table, "prefix sums", f"noise MSE {data.utility.prefix_sum_mse:.6g}", "in units of the clip norm squared")
        if any(phase.matrix.kind != "identity" for phase in data.phases):
            errors = f"RMSE {data.utility.prefix_sum_rmse:.6g}, max error {data.utility.max_error:.6g}"
            row(table, "", errors, "in units of the clip norm")
    _contrast(table, data, "unamplified", data.unamplified)
    if data.group_lemma is not None:
        _contrast(table, data, "group lemma", data.group_lemma)
    return table


def _solved(table: Table, data: CertificateModel) -> None:
    """The blank, and what filled it."""
    solved = data.solved
    if solved is None:
        return
    if solved.path in PRIVACY_BLANKS:
        row(table, "solved", f"{solved.path} = {up(solved.value)}", smallest(data))
        return
    before, after = failing(data)
    beyond = "" if solved.fails_at is None else f"{before}{too_little(solved.path, solved.fails_at)}{after}"
    row(table, "solved", f"{solved.path} = {enough(solved.path, solved.value)}", beyond)


def _phase(table: Table, phase: Phase) -> None:
    """One body: its noise, its sampler and its matrix."""
    runs = f"{phase.count} × " if phase.count > 1 else ""
    # Rounded up, whether it was given or found: more noise is no worse.
    noise = f"{symbol(phase)} = {up(phase.noise_multiplier, SOLVED_DIGITS)}"
    row(
        table,
        phase.name or "training",
        f"{noise}, {runs}{phase.iterations} iterations, {phase.sampler}{_rate(phase)}",
        f"{symbol(phase)} in units of the clip norm",
    )
    if phase.matrix.kind != "identity":
        norm = f"largest column norm {phase.matrix.column_norm:.6g}"
        row(table, "matrix", f"{phase.matrix.kind}, {_width(phase.matrix)}", norm)


def _contrast(table: Table, data: CertificateModel, label: str, contrast: Contrast) -> None:
    """The same run analysed another way; at its own δ, where that is not the guarantee's."""
    elsewhere = "" if contrast.delta == data.guarantee.delta else f" at δ = {plain(contrast.delta)}"
    row(table, label, f"ε ≤ {_bound(contrast.epsilon)}{elsewhere}", contrast.description)


def _width(matrix: MatrixRecord) -> str:
    if matrix.inverse_bands is not None:
        return f"{matrix.inverse_bands} bands of the inverse"
    return f"{matrix.bands} bands" if matrix.buffers is None else f"{len(matrix.buffers.scales)} buffers"


def _kind(table: Table, data: CertificateModel) -> None:
    """What kind of guarantee sampling gave, and what that means; lower ends have a probability of their own."""
    guarantee, sampling = data.guarantee, data.evidence.sampling
    if guarantee.kind == "verified":
        inside = "" if sampling is None else f", {up(sampling.total_probability, 2)},"
        row(table, "guarantee", "verified by a randomised test", f"its failure{inside} is part of δ")
    elif guarantee.kind == "confidence":
        chance = f"confidence 1 − {up(guarantee.failure_probability, 2)}"
        row(table, "guarantee", chance, "over the accountant's own randomness, for a mechanism given beforehand")
    elif sampling is not None:
        row(table, "guarantee", "proven, without samples", "no test improved on it")
    if sampling is not None:
        chance = f"each with confidence 1 − {up(sampling.pointwise_failure_probability, 2)}"
        row(table, "lower ends", chance, "from samples, over the accountant's own randomness")


def _rate(phase: Phase) -> str:
    """How often a record takes part, in the sampler's own terms and in the common one."""
    p, rate = phase.sampling_probability, phase.participation_rate
    if rate is None:
        return "" if p is None else f", sampling probability {plain(p)} {drawn(phase.sampler)}"
    if p == rate:
        return f", sampling probability {plain(p)}"
    batch = "" if phase.expected_batch_size is None else f", expected batch {phase.expected_batch_size:.6g}"
    if phase.distinct_records is not None and phase.distinct_records != phase.expected_batch_size:
        return (
            f", {phase.expected_batch_size:.6g} draws a round, {phase.distinct_records:.6g} distinct records expected"
        )
    share = "" if p is None else f", sampling probability {p:.6g} {drawn(phase.sampler)}"
    return f", participation rate {rate:.6g}{share}{batch}"


def _bound(value: float | None) -> str:
    return f"∞ (needs a δ below {spelled(SMALLEST_DELTA)} for one record)" if value is None else up(value)


def _profile(data: CertificateModel) -> Table:
    table = Table(title="Privacy profile", title_justify="left", title_style="bold", box=None, padding=(0, 2))
    if data.evidence.sampling is not None:
        return _sampled_profile(data, table)
    number_columns(table, "ε", "δ at most", "δ at least", "remove: δ at most", "add: δ at most")
    for point, sides in _points(data):
        ends = ("none" if side is None else up(side.delta, 4) for side in sides)
        table.add_row(plain(point.epsilon), up(point.delta, 4), down(point.delta_lower, 4), *ends)
    return table


def _points(data: CertificateModel) -> Iterator[tuple[ProfilePoint, tuple[ProfilePoint | None, ...]]]:
    """Each point of the profile with those of both directions at its ε, as far as the certificate has them."""
    profiles = (data.directions.remove.profile, data.directions.add.profile)
    sides = [{point.epsilon: point for point in profile} for profile in profiles]
    for point in data.profile:
        yield point, tuple(side.get(point.epsilon) for side in sides)


def _sampled_profile(data: CertificateModel, table: Table) -> Table:
    """The profile of a sampled mechanism: bounds that hold with their own probability each, and estimates as such."""
    sampling = data.evidence.sampling
    assert sampling is not None
    table.title = f"Privacy profile: each bound with confidence 1 − {up(sampling.pointwise_failure_probability, 2)}"
    number_columns(table, "ε", "δ at most", "δ at least", "estimate", "± s.e.", "remove: estimate", "add: estimate")
    for point, sides in _points(data):
        beside = (None if side is None else side.delta_estimate for side in sides)
        estimates = (point.delta_estimate, point.standard_error, *beside)
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
    needed = "none found" if mu is None else f"at most {up(mu, 4)} at the profile's points"
    table.add_row("Gaussian μ", needed, f"no μ below {down(found.gaussian.mu_lower, 4)} suffices")
    if found.failure_probability > 0.0:
        table.add_row("these together", f"confidence 1 − {up(found.failure_probability, 2)}", "the profile was sampled")
    return table
