"""The sections of a page on how the numbers were computed: compositions, tests, the error budget, and provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.parts import FieldRow, facts, table
from pyaccount.certificate.words import candidate_name, is_noise, log_of_error
from pyaccount.pages.page import (
    Block,
    Content,
    Fact,
    FactList,
    Literally,
    PageSection,
    PageTable,
    Paragraph,
    at_most,
    chosen_value,
    directed,
    estimate,
    every_digit,
    exact,
    filled,
)
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel
    from pyaccount.records.evidence import (
        ComposedCurveRecord,
        Composition,
        ConsideredRecord,
        ProfileWorkRecord,
        SamplingRecord,
        SearchedRecord,
        TestRecord,
    )


#: The note below the tests if one of them is of a stronger claim than the guarantee.
HARDER = "One direction was tested with less noise than the guarantee has; more noise is post-processing, so it holds there too."


def origin_of(data: CertificateModel) -> str:
    """Return the origin of the guarantee: the key of the note that explains it."""
    if data.evidence.sampling is None:
        return "composition"
    if data.evidence.sampling.moment is not None:
        return "moment"
    # No test improved on the bound for the run without sampling.
    return "contrast" if data.guarantee.kind == "deterministic" else "test"


def lower_origin_of(data: CertificateModel) -> str:
    """Return the origin of the guarantee's lower bounds."""
    return "composition" if data.evidence.sampling is None else "bets"


def evidence_section(data: CertificateModel) -> PageSection:
    """Return the section on how the numbers were computed."""
    evidence = data.evidence
    met = "met" if evidence.within_tolerance else "not met: the interval is proven all the same"
    rows = [
        Fact("engine", (evidence.engine,)),
        Fact("relative tolerance", (chosen_value(evidence.tolerance, "relative width"),), (met,)),
    ]
    composed = data.composed_bound
    if composed is not None and composed.epsilon is not None:
        at = filled("nats, at δ = {}; {}", every_digit(composed.delta, "probability", "composed"), composed.description)
        rows.append(Fact("composed bound: ε", directed(at_most(composed.epsilon, "nats", "composed")), at))
    if evidence.profile_work is not None:
        rows.append(_profile_work(evidence.profile_work))
    blocks: list[Block] = [FactList(tuple(rows))]
    if evidence.compositions:
        blocks.append(_compositions(evidence.compositions))
    if evidence.sampling is not None:
        blocks += _sampling(evidence.sampling)
        if _harder(data):
            blocks.append(Paragraph((HARDER,)))
    if evidence.considered:
        blocks.append(candidates_table(evidence.considered))
    if evidence.searched is not None:
        blocks.append(searched_facts(evidence.searched))
    return PageSection("evidence", "Evidence", tuple(blocks))


def _profile_work(work: ProfileWorkRecord) -> Fact:
    note = filled(
        "the bounds are proven, and some are wider than usual: the profile and its curve may take {} cells of work, and took {}; "
        "the guarantee took {}",
        *(exact(cells, "cells", "record") for cells in (work.allowed, work.taken, work.guarantee)),
    )
    return Fact("profile", ("coarser than usual",), note)


#: The columns of the table of compositions, but for the answers.
COMPOSED = (
    FieldRow("direction", "direction"),
    FieldRow("bound", "bound"),
    FieldRow("question", "question", literal=True),
)
WORK = (
    FieldRow("lattice (nats)", "spacing", origin="record", digits=3, absent="none"),
    FieldRow("transform", "transform_length", origin="record", absent="none"),
)
TILT = FieldRow("tilt", "tilt", origin="record", digits=4)


def _compositions(compositions: list[Composition]) -> PageTable:
    unit = "nats" if compositions[0].question.startswith("ε") else "probability"
    answers = (
        FieldRow("at least", "lower", origin="composition", unit=unit, sense="at least"),
        FieldRow("at most", "upper", origin="composition", unit=unit, sense="at most"),
    )
    caption = ("Compositions: each answer in the unit of its question.",)
    return table(caption, compositions, (*COMPOSED, *answers, *WORK, TILT), ("direction", "bound", "question"))


def _sampling(sampling: SamplingRecord) -> list[Block]:
    stated = sampling.seed_source == "document"
    seed = "fixed in the document, before any result was seen" if stated else "from the operating system's entropy"
    lines = [
        Fact("verification", (sampling.verification,)),
        *facts(sampling, (FieldRow("samples", "samples", "in all, the pilot's included", "record"),)),
        Fact("seed", (Literally(str(sampling.seed)),), (seed,)),
        Fact(
            "failure, all tests",
            directed(at_most(sampling.total_probability, "probability", "test", 2)),
            ("probability of certifying something false",),
        ),
    ]
    moment = sampling.moment
    if moment is not None:
        removed, added = (
            at_most(side, "probability", "moment", k) for side, k in ((moment.remove, 4), (moment.add, 2))
        )
        bounds = filled("remove: δ {}, add: δ {}", removed, added)
        few = (
            ""
            if moment.most_busy is None
            else f" with at most {moment.most_busy} busy replicas and what that leaves out"
        )
        how = f"E f^{moment.order} by a chain of {moment.states} states{few}; ln E f^{moment.order} ≤ {up(moment.log_moment)}"
        if moment.polynomial is not None:
            how += f"; all moments up to {len(moment.polynomial.coefficients) - 1} together, by a polynomial"
        lines.insert(0, Fact("proven by moments", bounds, (how,)))
    curve = sampling.composed_curve
    if curve is not None:
        lines.insert(0, _composed_curve(curve))
    return [FactList(tuple(lines)), *([_tests(sampling.tests)] if sampling.tests else [])]


def _composed_curve(curve: ComposedCurveRecord) -> Fact:
    """Return a row on the composed profile of the phases that are not sampled."""
    nodes, compositions = exact(curve.nodes, "points", "record"), exact(curve.compositions, "compositions", "record")
    reach, gap = exact(curve.reach, "nats", "record", 4), at_most(curve.relative_gap, "relative width", "record", 2)
    tail = at_most(curve.tail_mass, "probability", "record", 2)
    return Fact(
        "profile of the other phases",
        filled("δ at {} values of ε from {} compositions, as far as ±{}", nodes, compositions, reach),
        filled("bounds within a relative gap of {}; beyond them δ is at most {}", gap, tail),
    )


def _harder(data: CertificateModel) -> bool:
    """Return whether some accepted test used less noise than the σ that was solved for."""
    sampling, solved = data.evidence.sampling, data.solved
    if sampling is None or solved is None or not is_noise(solved.path):
        return False
    return any(test.accepted and test.noise_multiplier < solved.value for test in sampling.tests)


def _proposal(test: TestRecord) -> Content:
    """Return what samples were drawn from: mean scale and further proposals, the power of the ratio, or a mean."""
    if test.second_moment is not None:
        return ("after their second moment, λ = ", exact(test.second_moment.exponent, "factor", "record", 3))
    if test.proposal.order is not None:
        power: Content = ("power ", exact(test.proposal.order, "factor", "record"))
        if test.proposal.floor is not None:
            power = (*power, " from a loss of ", exact(test.proposal.floor, "nats", "record", 3))
        if test.proposal.most_busy is not None:
            return (*power, " with ", exact(test.proposal.most_busy, "replicas", "record"), " busy at most")
        if test.proposal.block is None:
            return power
        return (*power, " by blocks of ", exact(test.proposal.block, "rounds", "record"))
    if test.proposal.log_sobolev is not None:
        return ("a mean that bounds δ, λ = ", exact(test.proposal.log_sobolev.exponent, "factor", "record", 3))
    mean_scale, further = exact(test.proposal.mean_scale, "factor", "record", 3), len(test.proposal.mixture) - 1
    return (
        (mean_scale, " in a mixture with ", exact(further, "proposals", "record"), " others")
        if further > 0
        else (mean_scale,)
    )


#: The columns of the table of tests. More noise, a larger ε or a larger threshold is a weaker claim, so a test also proves its
#: numbers rounded up.
TESTS = (
    FieldRow("direction", "direction"),
    FieldRow("result", "result"),
    FieldRow("σ", "noise_multiplier", origin="test", enough=True),
    FieldRow("δ below", "threshold", origin="test", enough=True, digits=4),
    FieldRow("at ε", "epsilon", origin="test", enough=True),
    FieldRow("samples", "all_samples", origin="record", unit="samples"),
    FieldRow("log wealth", "log_wealth", origin="record", digits=4),
    FieldRow("needed", "log_target", origin="record", digits=4),
    FieldRow("weight bound", "weight_bound", origin="record", enough=True, digits=3),
    FieldRow("mean scale", _proposal),
)


def _tests(tests: list[TestRecord]) -> PageTable:
    caption = (
        "Tests of claims that δ(ε) lies below a threshold: σ in clip norms, ε in nats, wealth as a natural logarithm. "
        "A claim at less noise, a smaller ε or a lower threshold implies those above it in its direction."
    )
    return table((caption,), tests, TESTS, words=("direction", "result", "mean scale"))


def searched_facts(found: SearchedRecord) -> FactList:
    """Return how the matrix was found, as estimates."""

    def figures(noise: float, mse: float, workload: float | None) -> Content:
        sigma, error = estimate(noise, "clip norms", "search", 5), estimate(mse, "squared clip norms", "search", 6)
        if workload is None:
            return ("prefix-sum MSE ", error, " at σ = ", sigma)
        squared = estimate(workload, "squared clip norms", "search", 6)
        return ("squared error under the workload ", squared, ", prefix-sum MSE ", error, " at σ = ", sigma)

    start = figures(
        found.start_noise_multiplier_estimate, found.start_prefix_sum_mse_estimate, found.start_workload_error_estimate
    )
    end = figures(found.noise_multiplier_estimate, found.prefix_sum_mse_estimate, found.workload_error_estimate)
    spread = estimate(found.gradient_error_estimate, "norm", "search", 2)
    error: Content = (", standard error ", spread) if found.by_samples else ()
    ended = () if found.note is None else (Fact("search ended", (found.note,)),)
    return FactList(
        (
            Fact("matrix before the search", start),
            Fact(
                f"matrix optimised for {'sampling' if found.by_samples else 'the rounds that a record may take part in'}",
                end,
            ),
            Fact(
                f"gradient of {log_of_error(found)} there",
                (estimate(found.gradient_norm_estimate, "norm", "search", 2), *error),
            ),
            *ended,
        )
    )


#: The columns of the table of candidates; and the errors that are compared in place of that of prefix sums.
CANDIDATES = (
    FieldRow("matrix", lambda one: (candidate_name(one),)),
    FieldRow("bands", "bands"),
    FieldRow("σ estimate", "noise_multiplier_estimate", origin="samples", digits=5),
    FieldRow("prefix-sum MSE estimate", "prefix_sum_mse_estimate", origin="samples", digits=6),
)


COMPARED = (
    FieldRow("squared error under the workload estimate", "workload_error_estimate", origin="samples", digits=6),
    FieldRow("error relative to the batch estimate", "relative_error_estimate", origin="samples", digits=6),
)


def candidates_table(considered: Sequence[ConsideredRecord]) -> PageTable:
    """Return the table of the candidates of a choice."""
    columns = (*CANDIDATES, *(row for row in COMPARED if any(getattr(one, str(row.path)) for one in considered)))
    return table(("Considered before the choice, by estimates.",), considered, columns, ("matrix",))


def budget_section(data: CertificateModel) -> PageSection:
    """Return the section of the error budget, with a row for each source."""
    budget = data.evidence.error_budget
    labels = list(dict.fromkeys(line.direction for line in budget))
    rows = []
    for source in dict.fromkeys(line.source for line in budget):
        contributions = {line.direction: line.contribution for line in budget if line.source == source}
        cells: list[Content] = [(source,)]
        for label in labels:
            value = contributions.get(label)
            cells.append(("none",) if value is None else (at_most(value, "δ (or as the line says)", "budget", 2),))
        rows.append(tuple(cells))
    caption = (
        "What each source contributes to the upper end of the guarantee, in units of δ unless the line says otherwise."
    )
    headings = ("source", *(f"{label}: at most" for label in labels))
    opening = Paragraph(("Every source of error is already inside the bounds above, on the safe side.",))
    return PageSection(
        "budget", "Error budget", (opening, PageTable((caption,), headings, tuple(rows), words=("source",)))
    )


def provenance_section(
    data: CertificateModel | AmplificationData, seed: int | None = None, composed: tuple[Fact, ...] = ()
) -> PageSection:
    """Return the section on provenance: the hashes of document and content, the versions, the seed and the time.

    `composed` are the rows of the hashes of the documents and certificates that a joint document was made from.
    """
    rows = [
        Fact("document", (Literally(data.document_sha256),), ("SHA-256 of its canonical JSON",)),
        *composed,
        *(Fact(name, (Literally(number),), ("version",)) for name, number in data.versions.items()),
    ]
    if data.content_sha256 is not None:
        rows.append(Fact("content", (Literally(data.content_sha256),), ("SHA-256 of all other fields",)))
    if seed is not None:
        rows.append(Fact("seed", (Literally(str(seed)),), ("of all samples",)))
    rows.append(Fact("created", (Literally(data.created),), ("UTC",)))
    rows.append(Fact("format", (Literally(f"{data.kind}, version {data.pyaccount}"),)))
    return PageSection("provenance", "Provenance", (FactList(tuple(rows)),))
