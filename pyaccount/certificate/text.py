"""The certificate for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from pyaccount.certificate.layout import Facts, Figures
from pyaccount.certificate.legible import legible
from pyaccount.certificate.meaning import meaning, point_failure_probability
from pyaccount.certificate.text_evidence import contradicted, evidence, items, told
from pyaccount.certificate.words import (
    PRIVACY_BLANKS,
    RISKS,
    SOLVED_DIGITS,
    counted,
    drawn,
    enough,
    failing,
    risk_note,
    smallest,
    stated,
    symbol,
    too_little,
)
from pyaccount.document.epochs import counted as epochs_text
from pyaccount.document.ranges import SMALLEST_DELTA, spelled
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.model import CertificateModel, Contrast, MatrixRecord, PhaseRecord, ProfilePoint
Record = TypeVar("Record")

#: Of the phases of a long schedule, and their reductions, so many are shown at the beginning and at the end.
ENDS = 20


def print_certificate(console: Console, data: CertificateModel, inconsistencies: Sequence[str] = ()) -> None:
    """Print the certificate; `inconsistencies` are what in it contradicts the rest of it."""
    console.print(render(data, inconsistencies))


def render(data: CertificateModel, inconsistencies: Sequence[str] = ()) -> RenderableType:
    """The certificate as a rich renderable. Upper bounds are rounded up, lower bounds down."""
    data = legible(data)
    verdict = [("  ", ""), ("HOLDS", "bold green") if data.holds else ("DOES NOT HOLD", "bold red")]
    # Whether it holds is said by figures of which not all can be true.
    verdict = contradicted(inconsistencies) or verdict
    head = Text.assemble(("Privacy certificate", "bold"), "  ", (data.name, "bold cyan"), *verdict)
    parts: list[RenderableType] = [
        head,
        *told(inconsistencies),
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
            _left_out(len(data.reductions), "reduction")
            if r is None
            else f"{r.subject} ({r.path}), {r.rounds} {'round' if r.rounds == '1' else 'rounds'}: {r.theorem}; "
            f"{'tight' if r.tight else 'not tight'}. {r.source}.\n{r.pair}"
            + (f"\n{r.remark}" if r.remark else "")
            + (f"\nLower end: {r.lower_end}" if r.lower_end else "")
            for r in _ends_of(data.reductions)
        ),
        Text(),
        *evidence(data),
    ]
    return Panel(Group(*parts), border_style="green" if data.holds and not inconsistencies else "red", padding=(1, 2))


def _numbers(data: CertificateModel) -> Facts:
    guarantee = data.guarantee
    facts = Facts()
    epsilon, delta = guarantee.epsilon, guarantee.delta
    # A lower end at one ε or δ is one at every smaller: each is said at its own coordinate, rounded down as it is.
    facts.add("ε", f"at most {up(epsilon)}", f"at least {down(guarantee.epsilon_lower)}, at δ = {down(delta)}")
    facts.add("δ", f"at most {up(delta)}", f"at least {down(guarantee.delta_lower)}, at ε = {down(epsilon)}")
    _kind(facts, data)
    directions = data.directions
    if data.evidence.sampling is None:
        ends = f"remove ε ≤ {up(directions.remove.epsilon)}, add ε ≤ {up(directions.add.epsilon)}"
        facts.add("directions", ends, "the larger counts")
    _risk(facts, data)
    unit = data.privacy
    facts.add("protects", counted(unit.group_size, unit.unit), unit.adjacency)
    _solved(facts, data)
    for phase in _ends_of(data.phases):
        if phase is None:
            facts.add("", _left_out(len(data.phases), "phase"))
        else:
            _phase(facts, phase)
    if data.utility is not None:
        facts.add("prefix sums", f"noise MSE {data.utility.prefix_sum_mse:.6g}", "in units of the clip norm squared")
        if any(phase.matrix.kind != "identity" for phase in data.phases):
            errors = f"RMSE {data.utility.prefix_sum_rmse:.6g}, max error {data.utility.max_error:.6g}"
            facts.add("", errors, "in units of the clip norm")
        if (found := data.utility.workload) is not None:
            facts.add("workload", f"noise MSE {found.mse:.6g}", f"of {found.what}")
            facts.add("", f"RMSE {found.rmse:.6g}, max error {found.max_error:.6g}", "in units of the clip norm")
    _contrast(facts, data, "unamplified", data.unamplified)
    if data.group_lemma is not None:
        _contrast(facts, data, "group lemma", data.group_lemma)
    if data.not_computed:
        missing = ", ".join(data.not_computed)
        facts.add("not computed", missing, "the time limit was reached after the guarantee was known")
    return facts


def _ends_of(records: Sequence[Record]) -> list[Record | None]:
    """The records; of a long schedule's the first and the last, and None for those between."""
    if len(records) <= 2 * ENDS:
        return list(records)
    return [*records[:ENDS], None, *records[-ENDS:]]


def _left_out(records: int, what: str) -> str:
    """What stands for the records that are not shown."""
    return f"… {counted(records - 2 * ENDS, f'more {what}')}, listed in the certificate's JSON …"


def _risk(facts: Facts, data: CertificateModel) -> None:
    """The budget of risk, what is certified of it, and ε at the δ told."""
    risk = data.risk
    if risk is None:
        return
    where = risk_note(risk)
    facts.add("risk budget", f"{RISKS[risk.measure]} {plain(risk.budget)}", where)
    value = "no bound found" if risk.value is None else f"at most {up(risk.value)}"
    facts.add("certified", value, f"at least {down(risk.value_lower)}")
    if data.evidence.sampling is not None:
        told = "none found" if risk.epsilon is None else f"at most {up(risk.epsilon)}"
        ends = f"at least {down(risk.epsilon_lower)}, each with the confidence of the lower ends"
        facts.add(f"ε at δ = {plain(risk.delta)}", told, ends)


def _solved(facts: Facts, data: CertificateModel) -> None:
    """The blank, and what filled it."""
    solved = data.solved
    if solved is None:
        return
    if solved.path in PRIVACY_BLANKS:
        facts.add("solved", f"{solved.path} = {up(solved.value)}", smallest(data))
        return
    before, after = failing(data)
    beyond = "" if solved.fails_at is None else f"{before}{too_little(solved.path, solved.fails_at)}{after}"
    facts.add("solved", f"{solved.path} = {enough(solved.path, solved.value)}", beyond)


def _phase(facts: Facts, phase: PhaseRecord) -> None:
    """One body: its noise, its sampler and its matrix."""
    runs = f"{phase.count} × " if phase.count > 1 else ""
    # Rounded up, whether it was given or found: more noise is no worse.
    noise = f"{symbol(phase)} = {up(phase.noise_multiplier, SOLVED_DIGITS)}"
    epochs = "" if phase.epochs is None else f" ({epochs_text(phase.epochs)}{' each' if phase.count > 1 else ''})"
    facts.add(
        phase.name or "training",
        f"{noise}, {runs}{counted(phase.iterations, 'iteration')}{epochs}, {phase.sampler}{_rate(phase)}",
        f"{symbol(phase)} in units of the clip norm",
    )
    for release in phase.also or ():
        facts.add(
            "", f"also {release.what}: multiplier {plain(release.noise_multiplier)}", "in units of its own clip norm"
        )
    if phase.effective_noise_multiplier is not None:
        together = down(phase.effective_noise_multiplier, SOLVED_DIGITS)
        facts.add("", f"all releases of a batch together: multiplier {together}", "(Σ σ_i⁻²)^(−1/2), rounded down")
    if phase.matrix.kind != "identity":
        norm, inside = f"largest column norm {phase.matrix.column_norm:.6g}", stated(phase.matrix)
        facts.add("matrix", f"{phase.matrix.kind}, {_width(phase.matrix)}", norm)
        if inside is not None or phase.matrix.sha256 is not None:
            held = "the hash of its file" if inside is None else f"its {inside[0]} {inside[1]}"
            facts.add("", held, "to train with: in the JSON form")


def _contrast(facts: Facts, data: CertificateModel, label: str, contrast: Contrast) -> None:
    """The same run analysed another way; at its own δ, where that is not the guarantee's."""
    elsewhere = "" if contrast.delta == data.guarantee.delta else f" at δ = {plain(contrast.delta)}"
    facts.add(label, f"ε ≤ {_bound(contrast.epsilon)}{elsewhere}", contrast.description)


def _width(matrix: MatrixRecord) -> str:
    if matrix.inverse_bands is not None:
        return f"{matrix.inverse_bands} bands of the inverse"
    return f"{matrix.bands} bands" if matrix.buffers is None else f"{len(matrix.buffers.scales)} buffers"


def _kind(facts: Facts, data: CertificateModel) -> None:
    """What kind of guarantee sampling gave, and what that means; lower ends have a probability of their own."""
    guarantee, sampling = data.guarantee, data.evidence.sampling
    if guarantee.kind == "verified":
        inside = "" if sampling is None else f", {up(sampling.total_probability, 2)},"
        facts.add("guarantee", "verified by a randomised test", f"its failure{inside} is part of δ")
    elif guarantee.kind == "confidence":
        chance = f"confidence 1 − {up(guarantee.failure_probability, 2)}"
        facts.add("guarantee", chance, "over the accountant's own randomness, for a mechanism given beforehand")
    elif sampling is not None:
        how = "no test improved on it" if sampling.moment is None else f"by the moment of order {sampling.moment.order}"
        facts.add("guarantee", "proven, without samples", how)
    if sampling is not None:
        chance = f"each with confidence 1 − {up(sampling.pointwise_failure_probability, 2)}"
        facts.add("lower ends", chance, "from samples, over the accountant's own randomness")


def _rate(phase: PhaseRecord) -> str:
    """How often a record takes part, in the sampler's own terms and in the common one."""
    p, rate = phase.sampling_probability, phase.participation_rate
    if phase.draws_per_iteration is not None:
        return _several_draws(phase, phase.draws_per_iteration)
    if rate is None:
        return "" if p is None else f", sampling probability {plain(p)} {drawn(phase.sampler)}"
    if p == rate:
        return f", sampling probability {plain(p)}"
    size, distinct = phase.expected_batch_size, phase.distinct_records
    batch = "" if size is None else f", expected batch {size:.6g}"
    if size is not None and distinct is not None and distinct != size:
        return f", {size:.6g} draws a round, {distinct:.6g} distinct records expected"
    share = "" if p is None else f", sampling probability {p:.6g} {drawn(phase.sampler)}"
    return f", participation rate {rate:.6g}{share}{batch}"


def _several_draws(phase: PhaseRecord, draws: int) -> str:
    """The draws of an iteration, and what they are together."""
    p, batch, distinct = phase.sampling_probability, phase.expected_batch_size, phase.distinct_records
    share = "" if p is None else f" with probability {plain(p)} each"
    size = "" if batch is None else f", expected batch {batch:.6g} for all of them"
    records = "" if distinct is None else f", {distinct:.6g} of them distinct records"
    return f", {draws} draws an iteration{share}{size}{records}"


def _bound(value: float | None) -> str:
    return f"∞ (needs a δ below {spelled(SMALLEST_DELTA)} for one record)" if value is None else up(value)


def _profile(data: CertificateModel) -> Figures:
    if data.evidence.sampling is not None:
        return _sampled_profile(data)
    table = Figures("Privacy profile", ("ε", "δ at most", "δ at least", "remove: δ at most", "add: δ at most"))
    for point, sides in _points(data):
        ends = ("none" if side is None else up(side.delta, 4) for side in sides)
        table.add(plain(point.epsilon), up(point.delta, 4), down(point.delta_lower, 4), *ends)
    return table


def _points(data: CertificateModel) -> Iterator[tuple[ProfilePoint, tuple[ProfilePoint | None, ...]]]:
    """Each point of the profile with those of both directions at its ε, as far as the certificate has them."""
    profiles = (data.directions.remove.profile, data.directions.add.profile)
    sides = [{point.epsilon: point for point in profile} for profile in profiles]
    for point in data.profile:
        yield point, tuple(side.get(point.epsilon) for side in sides)


def _sampled_profile(data: CertificateModel) -> Figures:
    """The profile of a sampled mechanism: bounds that hold with their own probability each, and estimates as such."""
    sampling = data.evidence.sampling
    assert sampling is not None
    missing = any(point.delta_estimate is None for point in data.profile)
    table = Figures(
        f"Privacy profile: each bound with confidence 1 − {up(point_failure_probability(sampling), 2)}"
        + ("; no estimate where samples tell too little" if missing else ""),
        ("ε", "δ at most", "δ at least", "estimate", "± s.e.", "remove: estimate", "add: estimate"),
    )
    for point, sides in _points(data):
        beside = (None if side is None else side.delta_estimate for side in sides)
        estimates = (point.delta_estimate, point.standard_error, *beside)
        table.add(
            plain(point.epsilon),
            up(point.delta, 3),
            down(point.delta_lower, 3),
            *(
                "none" if value is None else f"{value:.{digits}g}"
                for value, digits in zip(estimates, (4, 2, 4, 4), strict=True)
            ),
        )
    return table


def _meaning(data: CertificateModel) -> Facts:
    """What the profile means for an attacker, in a few lines."""
    found = meaning(data)
    rate = next(one for one in found.rates if one.false_positive_rate == 1e-3)
    mu = found.gaussian.mu_at_points
    facts = Facts("What it means")
    facts.add("membership advantage", f"at most {up(found.advantage, 4)}", "true- minus false-positive rate")
    worst = max(rate.presence, rate.absence)
    where = "at a false-positive rate of 0.001"
    if rate.coarse:
        where += f"; more values in accounting.profile may lower it, not below {down(rate.finer or 0.0, 4)}"
    facts.add("true-positive rate", f"at most {up(worst, 4)}", where)
    needed = "none found" if mu is None else f"at most {up(mu, 4)} at the profile's points"
    facts.add("Gaussian μ", needed, f"no μ below {down(found.gaussian.mu_lower, 4)} suffices")
    if found.failure_probability > 0.0:
        facts.add("these together", f"confidence 1 − {up(found.failure_probability, 2)}", "the profile was sampled")
    return facts
