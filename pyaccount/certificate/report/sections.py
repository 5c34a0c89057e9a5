"""The page of a certificate: what is claimed, for whom, with which noise, under which assumptions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeVar

from pyaccount.certificate.meaning import meaning
from pyaccount.certificate.report.attack import attack_section, group_of, profile_section
from pyaccount.certificate.report.evidence import (
    budget_section,
    evidence_section,
    lower_origin_of,
    origin_of,
    provenance_section,
)
from pyaccount.certificate.report.mechanisms import mechanism_phase, probability_facts
from pyaccount.certificate.report.parts import AS_STATED, MADE_FROM, ORIGINS, THEOREM, FieldRow, facts, table, yaml_text
from pyaccount.certificate.statement import only_training
from pyaccount.certificate.words import (
    CONTRADICTED,
    CONTRADICTS,
    PRIVACY_BLANKS,
    RISKS,
    SOLVED_DIGITS,
    compared,
    count_words,
    enough,
    failing,
    is_noise,
    noise_name,
    probability_words,
    smallest,
    stated,
    symbol,
    too_little,
)
from pyaccount.document.ranges import SMALLEST_DELTA
from pyaccount.document.words import ADJACENCIES
from pyaccount.pages.page import (
    Alert,
    Badge,
    Block,
    Checklist,
    Code,
    Content,
    Entry,
    Fact,
    FactList,
    Literally,
    Page,
    PageSection,
    Paragraph,
    Quantity,
    already_rounded,
    at_least,
    at_most,
    chosen_value,
    directed,
    every_digit,
    exact,
    filled,
)
from pyaccount.reading.numerals import spelled_bound
from pyaccount.records.certificate import CertificateModel, Contrast, MatrixRecord, PhaseRecord, ScheduleRecord, Solved
from pyaccount.rounding import down

Record = TypeVar("Record")

#: The counts in the description of a contrast; digits in names of phases do not match.
_COUNTS = re.compile(r"(?<= )(\d{1,10})(?= (?:rounds?|times|or more apart|records of a user))", re.ASCII)
#: What the kinds of guarantee mean.
KINDS = {
    "deterministic": "deterministic: proven, with every rounding error included in the bounds",
    "verified": "verified: a randomised test accepted the claim. The probability that it accepts a false claim is included in "
    "δ. Start the run only after this test has accepted (it did)",
    "confidence": "confidence: true with the probability stated, over the accountant's own randomness",
}
#: How many phases of a long schedule, and of their reductions, are shown at the beginning and at the end.
ENDS = 20
#: The most noise multipliers that are listed one by one.
MOST_PHASES = 40


#: The most lines of a normal form that are shown.
MOST_LINES = 200


def _analysed(form: str | None, sha256: str | None) -> tuple[Block, ...]:
    """Return the normal form, one key on each line, and its hash."""
    if form is None:
        return (Paragraph(("This mechanism has no normal form, so that the independent checker cannot check it.",)),)
    try:
        lines = json.dumps(json.loads(form), indent=1, sort_keys=True).splitlines()
    except (ValueError, RecursionError):
        # The text of somebody else need not be a form.
        lines = [json.dumps(form)]
    text = "\n".join(
        lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"… {len(lines) - MOST_LINES} more lines"]
    )
    words = (
        "The normal form of the mechanism, in which all numbers and defaults are written out: compare it with the document. The "
        "independent checker reads nothing else.",
    )
    return (
        Paragraph(words),
        Code(text, "json"),
        FactList((Fact("normal form", (Literally(str(sha256)),), ("SHA-256",)),)),
    )


def certificate_page(data: CertificateModel, contradictions: Sequence[str] = ()) -> Page:
    """Return the page of a privacy certificate. `contradictions` are those found in it, with paths."""
    consequences = meaning(data)
    return Page(
        title="Privacy certificate",
        name=data.name,
        badges=badges(contradictions, holds=data.holds),
        alert=alert(contradictions),
        statement=data.statement,
        headline=_headline(data),
        sections=(
            PageSection(
                "guarantee", "The guarantee", (FactList(_guarantee_facts(data)), *_by_kind(data), *_composed(data))
            ),
            attack_section(data, consequences),
            profile_section(data),
            PageSection("mechanism", "The mechanism", _mechanism(data)),
            PageSection("assumptions", f"What must be true of {what_is_run(data)[0]}", _assumptions(data)),
            PageSection("contrast", "The same run without sampling", (FactList(_contrasts(data)),)),
            PageSection("theorems", "Theorems used", _theorems(data)),
            evidence_section(data),
            budget_section(data),
            PageSection("document", "The document", (Code(yaml_text(data.document), "yaml"),)),
            PageSection("analysed", "What exactly was analysed", _analysed(data.mechanism, data.mechanism_sha256)),
            provenance_section(
                data, None if data.evidence.sampling is None else data.evidence.sampling.seed, _composed_hashes(data)
            ),
        ),
        origins=ORIGINS,
        stated=AS_STATED,
        made_from=MADE_FROM,
    )


def badges(contradictions: Sequence[str], *, holds: bool | None) -> tuple[Badge, ...]:
    """Return the badge of a certificate. If it contradicts itself, no badge says that it holds."""
    if contradictions:
        return (Badge(CONTRADICTED, good=False),)
    return () if holds is None else (Badge("holds" if holds else "does not hold", good=holds),)


def alert(contradictions: Sequence[str]) -> Alert | None:
    """Return the alert of a certificate that contradicts itself; None for others."""
    return Alert(CONTRADICTS, tuple(contradictions)) if contradictions else None


def profile_page(data: CertificateModel) -> Page:
    """Return the page of a certificate's privacy profile alone."""
    return Page("Privacy profile", data.name, (profile_section(data),), origins=ORIGINS)


def brief_facts(data: CertificateModel) -> tuple[Fact, ...]:
    """Return the short answer: the statement, what was solved for, σ, ε and δ, each as one content without a note."""
    facts = {fact.label: fact for fact in _guarantee_facts(data)}
    solved: Content = (
        f"nothing, since the document has no blank: its claim {'holds' if data.holds else 'does not hold'}",
    )
    if data.solved is not None:
        beyond = _beyond(data, data.solved)
        solved = (*facts["solved"].content, *((" (", *beyond, ")") if beyond else ()))
    guarantee, origin = data.guarantee, origin_of(data)
    at_delta = every_digit(guarantee.delta, "probability", origin)
    at_epsilon = every_digit(guarantee.epsilon, "nats", origin)
    noisy = any(phase.noise is not None for phase in data.phases)
    return (
        Fact("statement", (data.statement,)),
        Fact("solved", solved),
        *((Fact("σ", _noise_content(data)),) if noisy else ()),
        Fact("ε", (*facts["ε"].content, ", at δ = ", at_delta)),
        Fact("δ", (*facts["δ"].content, ", at ε = ", at_epsilon)),
    )


def _headline(data: CertificateModel) -> tuple[Fact, ...]:
    guarantee, origin = data.guarantee, origin_of(data)
    rows = [
        Fact("ε at most", (at_most(guarantee.epsilon, "nats", origin),), ("nats",)),
        Fact("δ at most", (at_most(guarantee.delta, "probability", origin),), ("probability",)),
    ]
    if data.noise_multiplier is not None:
        rows.append(Fact("σ", (_noise(data, data.noise_multiplier),), ("clip norms",)))
    unit = data.privacy
    size = chosen_value(unit.group_size, f"{unit.unit}s")
    rows.append(Fact("protects", (size, f" {unit.unit}{'s' if unit.group_size > 1 else ''}"), (unit.adjacency,)))
    return tuple(rows)


def _noise_content(data: CertificateModel) -> Content:
    """Return the noise multipliers: one if all phases have the same, otherwise one for each phase, or their range."""
    values = [(phase.noise, phase.noise_multiplier) for phase in data.phases]
    if len(set(values)) == 1 and (len(values) == 1 or data.phases[0].noise_multiplier is not None):
        return _named_noise(data, data.phases[0])
    if len(values) > MOST_PHASES:
        noisy = [phase for phase in data.phases if phase.noise is not None]
        least = min(noisy, key=lambda phase: extremes(phase)[0])
        most = max(noisy, key=lambda phase: extremes(phase)[1])
        ends = (*_sigma(data, least, extremes(least)[0]), " to ", *_sigma(data, most, extremes(most)[1]))
        return ("from ", *ends, f", in {len(values)} phases")
    content: list[str | Quantity | Literally] = []
    for place, phase in enumerate(data.phases, start=1):
        if phase.noise is None:
            continue
        content += [", "] if content else []
        content += [*_named_noise(data, phase), f" ({phase.name or f'phase {place}'})"]
    return tuple(content)


def _named_noise(data: CertificateModel, phase: PhaseRecord) -> Content:
    least, most = extremes(phase)
    if phase.noise_multiplier is not None:
        return _sigma(data, phase, least)
    return ("from ", *_sigma(data, phase, least), " to ", *_sigma(data, phase, most), ", by its schedule")


def _sigma(data: CertificateModel, phase: PhaseRecord, value: float) -> Content:
    # The ends of a schedule are products, whose last digits nobody chose.
    number = _noise(data, value) if phase.noise_multiplier is not None else _end(data, value)
    return ("" if phase.noise == "gaussian" else "Laplace b = ", number)


def _end(data: CertificateModel, value: float) -> Quantity:
    solved = data.solved is not None and data.solved.path.endswith("scale")
    return _noise(data, value) if solved else exact(value, "clip norms", "document")


def extremes(phase: PhaseRecord) -> tuple[float, float]:
    """Return the smallest and the largest noise multiplier of the rounds of a phase."""
    if phase.noise_multiplier is not None:
        return phase.noise_multiplier, phase.noise_multiplier
    scheduled = [one for one in phase.schedules or () if one.of == "noise.multiplier"]
    return (scheduled[0].least, scheduled[0].most) if scheduled else (0.0, 0.0)


def _guarantee_facts(data: CertificateModel) -> tuple[Fact, ...]:
    """Return what is guaranteed, for whom, with which probability, and what was solved for."""
    guarantee, origin = data.guarantee, origin_of(data)
    epsilon, delta, lower = guarantee.epsilon, guarantee.delta, lower_origin_of(data)
    # Lower bounds hold at the other coordinate itself, not at a rounded one, so it is shown with every digit.
    at_delta, at_epsilon = every_digit(delta, "probability", origin), every_digit(epsilon, "nats", origin)
    rows = [
        Fact("ε", _interval(guarantee.epsilon_lower, epsilon, "nats", origin, lower), ("nats, at δ = ", at_delta)),
        Fact(
            "δ",
            _interval(guarantee.delta_lower, delta, "probability", origin, lower),
            ("probability, at ε = ", at_epsilon),
        ),
        Fact("kind", (KINDS[guarantee.kind],)),
    ]
    sampling = data.evidence.sampling
    if guarantee.kind == "confidence":
        source = "document" if sampling is None else "test"
        failure = at_most(guarantee.failure_probability, "probability", source, 2)
        rows.append(Fact("fails with", directed(failure), ("probability that the statement is false",)))
    elif guarantee.kind == "verified" and sampling is not None:
        inside = at_most(sampling.total_probability, "probability", "test", 2)
        rows.append(Fact("test fails with", directed(inside), ("probability, part of δ",)))
    if sampling is not None:
        if guarantee.kind == "deterministic":
            how = "no test improved on it" if sampling.moment is None else "by moments of the likelihood ratio"
            rows.append(Fact("proven", ("without samples",), (how,)))
        pointwise = at_most(sampling.pointwise_failure_probability, "probability", "bets", 2)
        note = (
            "probability that the lower bound on ε is wrong, and likewise that on δ. Lower bounds come from samples for every "
            "kind of guarantee"
        )
        rows.append(Fact("lower bounds fail with", directed(pointwise), (note,)))
    else:
        for direction, words in compared(data.privacy.adjacency).items():
            result = getattr(data.directions, direction)
            interval = _interval(result.epsilon_lower, result.epsilon, "nats", origin, lower)
            note_on = ("nats, at δ = ", at_delta, f"; {words}")
            rows.append(Fact(f"{direction}: ε", interval, note_on))
    before, _, after = ADJACENCIES[data.privacy.adjacency].change.partition("{group}")
    if "{replacement}" in after:
        after = after.format(
            replacement="an arbitrary other one" if data.privacy.group_size == 1 else "arbitrary others"
        )
    rows.append(Fact("protects against", (before, *group_of(data), after), (f"adjacency {data.privacy.adjacency}",)))
    rows += _risk(data)
    if data.solved is not None:
        rows.append(_solved(data, data.solved))
    return tuple(rows)


def _by_kind(data: CertificateModel) -> tuple[Block, ...]:
    """Return the table of the guarantee for each kind of record; empty if all records are of one kind."""
    if data.records is None:
        return ()
    origin, lower = origin_of(data), lower_origin_of(data)
    caption = filled(
        "The guarantee for each kind of record at δ = {}, about everything in which such a record takes part. The guarantee of "
        "the certificate holds for all kinds.",
        every_digit(data.guarantee.delta, "probability", origin),
    )
    columns = (
        FieldRow("kind of record", "name", literal=True),
        FieldRow("ε at most", "epsilon", origin=origin),
        FieldRow("ε at least", "epsilon_lower", origin=lower),
    )
    return (table(caption, data.records, columns, ("kind of record",)),)


def _composed(data: CertificateModel) -> tuple[Block, ...]:
    """Return the table of the documents that a joint document was made from; empty for other documents."""
    if data.composed_from is None:
        return ()
    caption: Content = (
        "Composed from: the guarantee is that of all of these together. What each of them states is the sentence of its own "
        "certificate.",
    )
    columns = (
        FieldRow("document", "name", literal=True),
        FieldRow("its certificate states", "statement", absent="it has no certificate"),
    )
    return (table(caption, data.composed_from, columns, ("document", "its certificate states")),)


def _composed_hashes(data: CertificateModel) -> tuple[Fact, ...]:
    """Return the rows of the hashes of what was composed."""
    rows = []
    for one in data.composed_from or ():
        rows.append(
            Fact("composed", (Literally(one.document_sha256),), ("SHA-256 of the document ", Literally(one.name)))
        )
        if one.sha256 is not None:
            rows.append(Fact("composed", (Literally(one.sha256),), ("SHA-256 of the content of its certificate",)))
    return tuple(rows)


def _risk(data: CertificateModel) -> list[Fact]:
    """Return the rows of the risk budget: the budget, the certified risk, and ε at the document's δ if sampled."""
    risk = data.risk
    if risk is None:
        return []
    unit = {"true_positive_rate": "probability", "advantage": "difference of rates"}.get(
        risk.measure, "standard deviations"
    )
    origin, lower = ("measure", "measure") if data.evidence.sampling is None else (origin_of(data), "bets")
    where: Content = ("true- minus false-positive rate",)
    if risk.false_positive_rate is not None:
        where = ("at a false-positive rate of ", chosen_value(risk.false_positive_rate, "probability"))
    elif risk.last_epsilon is not None and risk.least_rate is not None:
        reach = every_digit(risk.last_epsilon, "nats", "grid")
        least = at_most(risk.least_rate, "probability", "gaussian", 3)
        where = ("for every ε from 0 to ", reach, " nats; of attacks whose error rates both are at least ", least)
    budget = (f"{RISKS[risk.measure]}: ", chosen_value(risk.budget, unit))
    value: Content = ("no bound was found",)
    if risk.value is not None:
        value = _interval(risk.value_lower, risk.value, unit, origin, lower)
    rows = [
        Fact("risk budget", budget, where),
        Fact("risk", value, ("whether the attacker tests for presence or absence",)),
    ]
    if data.evidence.sampling is not None:
        content: Content = ("none was found",)
        if risk.epsilon is not None:
            content = _interval(risk.epsilon_lower, risk.epsilon, "nats", "bets", "bets")
        delta = every_digit(risk.delta, "probability", "document")
        note = filled("nats, at δ = {}; each end with the lower ends' probability", delta)
        rows.append(Fact("ε at the document's δ", content, note))
    return rows


def _interval(lower: float, upper: float, unit: str, origin: str, lower_origin: str) -> Content:
    return (*directed(at_most(upper, unit, origin)), ", ", *directed(at_least(lower, unit, lower_origin)))


def _solved(data: CertificateModel, solved: Solved) -> Fact:
    """Return the row of the blank and its value."""
    unit = _unit(solved.path)
    if solved.path in PRIVACY_BLANKS:
        value = directed(at_most(solved.value, unit, origin_of(data)))
    else:
        value = (already_rounded(enough(solved.path, solved.value), unit, "solved"),)
    beyond = _beyond(data, solved)
    return Fact("solved", (Literally(solved.path), " = ", *value), (unit, "; ", *beyond) if beyond else (unit,))


def _beyond(data: CertificateModel, solved: Solved) -> Content:
    """Return the note on smaller values than the one solved for, or on a value that does not meet the target."""
    if solved.path in PRIVACY_BLANKS:
        return (smallest(data),)
    if solved.fails_at is None:
        return ()
    before, after = failing(data)
    value = already_rounded(too_little(solved.path, solved.fails_at), _unit(solved.path), "solved")
    return (before, noise_name(data, solved.path), value, after)


def _unit(path: str) -> str:
    if path.endswith(("mechanism.sigma", "mechanism.scale")):
        return "unit of the release"
    if path.endswith("mechanism.variance"):
        return "squared unit of the release"
    units = {
        "epsilon": "nats",
        "delta": "probability",
        "multiplier": "clip norms",
        "scale": "factor",
        "iterations": "iterations",
        "group_size": "records",
    }
    return units.get(path.rpartition(".")[2], "records in a batch")


def _noise(data: CertificateModel, value: float) -> Quantity:
    """Return σ, as a chosen number unless it was the blank."""
    solved = data.solved
    # A scale that was solved for multiplies σ, so that σ has as many digits as the scale.
    if solved is not None and is_noise(solved.path) and (solved.value == value or solved.path.endswith("scale")):
        return already_rounded(enough(solved.path, value), "clip norms", "solved")
    return chosen_value(value, "clip norms")


def _mechanism(data: CertificateModel) -> tuple[Block, ...]:
    entries: list[Block] = [
        _left_out(len(data.phases), "phase") if one is None else _phase(data, one[1], one[0])
        for one in _ends_of(list(enumerate(data.phases)))
    ]
    return (Paragraph((data.noise_convention,)), *entries, *_utility(data))


def _ends_of(records: Sequence[Record]) -> list[Record | None]:
    """Return the records; for a long schedule, the first and the last ones with a None for those between."""
    if len(records) <= 2 * ENDS:
        return list(records)
    return [*records[:ENDS], None, *records[-ENDS:]]


def _left_out(records: int, what: str) -> Paragraph:
    """Return the paragraph that replaces the records that are not shown."""
    return Paragraph((f"… {count_words(records - 2 * ENDS, f'more {what}')}, listed in the certificate's JSON …",))


#: What is said of the rounds of a phase.
EPOCHS = FieldRow("epochs", "epochs", "the iterations of one run, in epochs")
RUNS = FieldRow("runs", "count", sense="chosen")
DRAWS = FieldRow(
    "draws", "draws_per_iteration", "in an iteration, each by itself; noise is added once, to their sum", sense="chosen"
)
SAMPLED = FieldRow("sampling probability", "sampling_probability")
BATCHES = (
    FieldRow("participation rate", "participation_rate", "long-run participations of a record per iteration"),
    FieldRow("expected batch", "expected_batch_size", "records, or draws where a record may be drawn several times"),
    FieldRow("distinct records", "distinct_records", "expected in a batch"),
)
#: What is said of the noise of running sums; the note on its errors is their unit.
ERRORS = (
    FieldRow("mean squared error", "mse", "clip norm squared, mean over the iterations", "matrix"),
    FieldRow("its root", "rmse", "clip norms", "matrix"),
    FieldRow("largest error", "max_error", "clip norms, one iteration", "matrix"),
)


def _phase(data: CertificateModel, phase: PhaseRecord, index: int) -> Entry:
    if phase.mechanism is not None:
        return mechanism_phase(phase, index)
    rows = [Fact(symbol(phase), _phase_noise(data, phase), ("in units of the clip norm of one record",))]
    rows += [_schedule(one) for one in phase.schedules or ()]
    for release in phase.also or ():
        number = chosen_value(release.noise_multiplier, "clip norms")
        rows.append(Fact("also released", (release.what, ": multiplier ", number), ("in units of its own clip norm",)))
    if phase.effective_noise_multiplier is not None:
        together = already_rounded(down(phase.effective_noise_multiplier, SOLVED_DIGITS), "clip norms", "document")
        note = "of one release that is as private as all of a batch together, (Σ σ_i⁻²)^(−1/2), rounded down"
        rows.append(Fact("effective multiplier", (together,), (note,)))
    rows.append(Fact("iterations", (_whole(data, phase.iterations, "iterations"),), ("of one run",)))
    of = probability_words(phase.sampler) if phase.draws_per_iteration is None else "for each record in each draw"
    rows += facts(phase, (EPOCHS, *((RUNS,) if phase.count != 1 else ()), DRAWS, SAMPLED._replace(note=of)))
    rows += probability_facts(phase)
    rows += facts(phase, BATCHES)
    matrix = phase.matrix
    content: Content = ("identity: the noise of the iterations is independent",)
    if matrix.kind != "identity":
        norm = exact(matrix.column_norm, "clip norms per clip norm", "matrix")
        content = (matrix.kind, *_width(matrix), ", largest column norm ", norm)
    rows.append(Fact("matrix", content))
    inside = stated(matrix)
    if inside is not None:
        where = (", in the field ", Literally(f"phases[{index}].matrix"), " of the certificate")
        rows.append(Fact("to train with", (exact(inside[0], inside[1], "matrix"), f" {inside[1]}", *where)))
    if matrix.sha256 is not None:
        rows.append(Fact("matrix hash", (Literally(matrix.sha256),), ("SHA-256 of its entries",)))
    title = phase.name or ("Training" if len(data.phases) == 1 else f"Phase {index + 1}")
    return Entry(title, phase.sampler, tuple(rows))


def _phase_noise(data: CertificateModel, phase: PhaseRecord) -> Content:
    least, most = extremes(phase)
    return (_noise(data, least),) if least == most else ("from ", _end(data, least), " to ", _end(data, most))


#: How a scheduled key is called, and its unit.
_SCHEDULED = {
    "noise.multiplier": ("noise multipliers", "clip norms"),
    "training.sampling_probability": ("sampling probabilities", "probability"),
    "training.expected_batch_size": ("expected batches", "records per batch"),
}


def _schedule(schedule: ScheduleRecord) -> Fact:
    called, unit = _SCHEDULED[schedule.of]
    ends = (exact(value, unit, "document") for value in (schedule.least, schedule.most))
    distinct = exact(schedule.distinct, "values", "document")
    content: list[str | Quantity | Literally] = [Literally(schedule.of), ": ", distinct, " values, from "]
    content += [next(ends), " to ", next(ends)]
    if schedule.scale is not None:
        content += [", with the scale ", exact(schedule.scale, "factor", "document")]
    return Fact(
        "schedule", (*content, "; SHA-256 ", Literally(schedule.sha256)), (f"{called}, one for each iteration",)
    )


def _width(matrix: MatrixRecord) -> Content:
    """Return the width of a matrix, in the parameter by which its kind is given."""
    if matrix.inverse_bands is not None:
        return ", ", exact(matrix.inverse_bands, "bands", "document"), " bands of the inverse"
    if matrix.buffers is not None:
        return ", ", exact(len(matrix.buffers.scales), "buffers", "document"), " buffers"
    if matrix.estimation is not None:
        restarted = (
            () if matrix.restart_every is None else (", restarted every ", chosen_value(matrix.restart_every, "rounds"))
        )
        return f", {matrix.estimation} estimation", *restarted
    if matrix.rows is not None:
        return ", ", exact(matrix.rows, "rows", "document"), " rows"
    if matrix.bands is None:
        return ()
    return ", ", exact(matrix.bands, "bands", "document" if matrix.sha256 is None else "matrix"), " bands"


def _whole(data: CertificateModel, value: int, unit: str) -> Quantity:
    solved = data.solved is not None and data.solved.path.endswith(unit) and data.solved.value == value
    return exact(value, unit, "solved") if solved else chosen_value(value, unit)


def _utility(data: CertificateModel) -> tuple[Block, ...]:
    utility = data.utility
    if utility is None:
        return ()
    sums = tuple(facts(utility, (row._replace(path=f"prefix_sum_{row.path}") for row in ERRORS[:2])))
    sums += tuple(facts(utility, ERRORS[2:]))
    entries = [Entry("Noise of the released running sums", "prefix sums, per coordinate", sums)]
    if (found := utility.workload) is not None:
        entries.append(Entry(f"Noise of the workload: {found.what}", "per coordinate", tuple(facts(found, ERRORS))))
    return tuple(entries)


def _assumptions(data: CertificateModel) -> tuple[Block, ...]:
    opening = (
        f"The guarantee holds only if all of this is true of your run. Check each point against {what_is_run(data)[1]}."
    )
    return Paragraph((opening,)), Checklist(tuple(data.assumptions))


def what_is_run(data: CertificateModel) -> tuple[str, str]:
    """Return what a certificate is about in words, and the code of it."""
    if only_training(data.phases):
        return "the training run", "the training code"
    return "everything that is released", "the code of each phase, or against what its vendor states"


def _contrasts(data: CertificateModel) -> tuple[Fact, ...]:
    rows = [_contrast("not amplified: ε", data.unamplified, "contrast")]
    if data.group_lemma is not None:
        rows.append(_contrast("group lemma: ε", data.group_lemma, "lemma"))
    if data.not_computed:
        missing = ", ".join(data.not_computed)
        rows.append(Fact("not computed", (missing,), ("the time limit was reached after the guarantee was known",)))
    return tuple(rows)


def _contrast(label: str, contrast: Contrast, origin: str) -> Fact:
    at_delta = every_digit(contrast.delta, "probability", origin)
    note: Content = ("nats, at δ = ", at_delta, "; ", *_described(contrast.description))
    if contrast.epsilon is None:
        if origin == "contrast":
            return Fact(label, ("∞: no finite ε is proven at this δ",), note)
        least = already_rounded(spelled_bound(SMALLEST_DELTA), "probability", origin)
        needs = ("∞: no ε makes the δ for one record small enough, or it would have to be below ", least)
        return Fact(label, needs, note)
    return Fact(label, directed(at_most(contrast.epsilon, "nats", origin)), note)


def _described(words: str) -> Content:
    """Return a contrast's description, with its counts as numbers of the page."""
    parts = _COUNTS.split(words)
    return tuple(exact(int(part), "counted", "document") if k % 2 else part for k, part in enumerate(parts) if part)


def _theorems(data: CertificateModel) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for one in _ends_of(data.reductions):
        if one is None:
            blocks.append(_left_out(len(data.reductions), "reduction"))
            continue
        tag = "tight" if one.tight else "not tight"
        blocks.append(Entry(f"{one.subject} ({one.path})", tag, tuple(facts(one, THEOREM))))
    return tuple(blocks)
