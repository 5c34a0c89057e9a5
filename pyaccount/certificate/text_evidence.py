"""The proof of work for a terminal: compositions, tests, the error budget, and what made the certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pyaccount.certificate.layout import NARROW, Figures
from pyaccount.certificate.words import (
    CONTRADICTED,
    CONTRADICTS,
    candidate_name,
    counted,
    error_titles,
    log_of_error,
    met,
    seed_source,
)
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.model import CertificateModel, MomentRecord, SearchedRecord, TestRecord

#: Beside tests, one of which is of a harder claim than the guarantee's.
HARDER = "A direction was tested once, at less noise than the guarantee's: more noise is post-processing, so it holds there too."


def row(table: Table, *cells: str) -> None:
    """A row that shows each text as it is: a certificate's words are no markup."""
    table.add_row(*(Text(cell) for cell in cells))


def items(texts: Iterable[str]) -> list[RenderableType]:
    """A list with a bullet before each text."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column()
    for text in texts:
        row(grid, "•", text)
    return [grid]


def contradicted(inconsistencies: Sequence[str]) -> list[tuple[str, str]]:
    """The verdict on a certificate that contradicts itself, for its head: it stands for any other."""
    return [("  ", ""), (CONTRADICTED.upper(), "bold red")] if inconsistencies else []


def told(inconsistencies: Sequence[str]) -> list[RenderableType]:
    """What in a certificate contradicts the rest of it, before anything else that it says."""
    return [Text(CONTRADICTS, style="bold red"), *items(inconsistencies), Text()] if inconsistencies else []


def _drawn(test: TestRecord) -> str:
    """The mean scale and further proposals of a mixture, the power of the likelihood ratio, or the mean that is tested."""
    proposal = test.proposal
    if test.second_moment is not None:
        return f"E V², λ = {test.second_moment.exponent:.3g}"
    if proposal.order is not None:
        few = f", {proposal.most_busy} busy" if proposal.most_busy is not None else ""
        return f"f^{proposal.order}" + (f", {proposal.block} rounds" if proposal.block is not None else few)
    if proposal.log_sobolev is not None:
        return f"E D, λ = {proposal.log_sobolev.exponent:.3g}"
    return f"{proposal.stretch:.3g}{' +' + str(len(proposal.mixture) - 1) if proposal.mixture else ''}"


def _harder(data: CertificateModel) -> bool:
    """Whether some accepted test is of less noise than what was solved for."""
    sampling, solved = data.evidence.sampling, data.solved
    if sampling is None or solved is None or not solved.path.endswith("noise.multiplier"):
        return False
    return any(test.accepted and test.noise_multiplier < solved.value for test in sampling.tests)


def _few_busy(moment: MomentRecord) -> str:
    """How many replicas may be busy at once, where not all may."""
    return (
        "" if moment.most_busy is None else f" with at most {moment.most_busy} busy replicas and what that leaves out"
    )


def _together(moment: MomentRecord) -> str:
    """How many moments prove the claim, where one is not enough."""
    if moment.polynomial is None:
        return ""
    return f", and all moments up to {len(moment.polynomial.coefficients) - 1} together, by a polynomial"


def _tests(data: CertificateModel) -> list[RenderableType]:
    """The tests that were run."""
    sampling = data.evidence.sampling
    if sampling is None:
        return []
    headings = ("direction", "σ", "δ(ε) below", "at ε", "samples", "log wealth", "of", "weight bound", "mean scale", "")
    table = Figures("Tests", headings, padding=NARROW)
    for test in sampling.tests:
        # More noise, a larger ε and a larger threshold claim less: an accepted test stands for the numbers rounded up.
        table.add(
            test.direction,
            up(test.noise_multiplier),
            up(test.threshold, 4),
            up(test.epsilon),
            f"{test.all_samples}",
            f"{test.log_capital:.2f}",
            f"{test.log_target:.2f}",
            up(test.cap, 3),
            _drawn(test),
            "accepted" if test.accepted else "rejected",
        )
    parts: list[RenderableType] = [
        Text(
            f"{sampling.verification}, {sampling.samples} samples in all; seed {sampling.seed}, {seed_source(sampling)}."
        ),
        *([table] if sampling.tests else []),
        *([Text(HARDER)] if _harder(data) else []),
    ]
    curve = sampling.composed_curve
    if curve is not None:
        parts.insert(
            0,
            Text(
                f"The composed profile of the other phases: δ at {curve.nodes} values of ε out to ±{curve.reach:.4g}, "
                f"from {curve.compositions} compositions; bounds within {up(curve.relative_gap, 2)} of each other, "
                f"{up(curve.floor, 2)} beyond."
            ),
        )
    moment = sampling.moment
    if moment is not None:
        parts.insert(
            0,
            Text(
                f"E f^{moment.order} ≤ exp({up(moment.log_moment)}), f the likelihood ratio of the run, by a chain of "
                f"{moment.states} states{_few_busy(moment)}{_together(moment)}: δ ≤ {up(moment.remove, 4)} (remove); by the "
                f"weights of a proposal δ ≤ {up(moment.add, 4)} (add)."
            ),
        )
    if data.evidence.considered:
        further = error_titles(data.evidence.considered)
        choice = Figures("Considered, by estimates", ("matrix", "bands", "σ", "prefix-sum MSE", *further))
        for one in data.evidence.considered:
            errors = [one.prefix_sum_mse_estimate, one.workload_error_estimate, one.relative_error_estimate]
            estimates = (
                f"{one.noise_multiplier_estimate:.5g}",
                *(f"{each:.6g}" for each in errors if each is not None),
            )
            choice.add(candidate_name(one), str(one.bands), *estimates)
        parts.append(choice)
    if data.evidence.searched is not None:
        parts.append(Text(search_text(data.evidence.searched)))
    return parts


def search_text(found: SearchedRecord) -> str:
    """How the matrix was found, in words."""
    ended = "" if found.note is None else f" Note: {found.note}."
    compared = ""
    if found.workload_error_estimate is not None and found.start_workload_error_estimate is not None:
        compared = (
            f"squared error under the workload {found.workload_error_estimate:.6g}, where the search began "
            f"{found.start_workload_error_estimate:.6g}; "
        )
    error = f", standard error {found.gradient_error_estimate:.2g}" if found.by_samples else ""
    return (
        f"The matrix was optimised for {'sampling' if found.by_samples else 'the rounds that a record may take part in'} in "
        f"{counted(found.rounds, 'round')}. By estimates: {compared}prefix-sum MSE "
        f"{found.prefix_sum_mse_estimate:.6g} at σ = {found.noise_multiplier_estimate:.5g}, where the search began "
        f"{found.start_prefix_sum_mse_estimate:.6g} at σ = {found.start_noise_multiplier_estimate:.5g}; gradient norm of "
        f"{log_of_error(found)} {found.gradient_norm_estimate:.2g}{error}.{ended}"
    )


def evidence(data: CertificateModel) -> list[RenderableType]:
    """How the numbers were reached."""
    found = data.evidence
    labels = list(dict.fromkeys(line.direction for line in found.error_budget))
    table = Figures("Error budget of the upper end, in units of δ", ("source", *labels), words=("source",))
    for source in dict.fromkeys(line.source for line in found.error_budget):
        lines = {line.direction: line.contribution for line in found.error_budget if line.source == source}
        table.add(source, *(up(lines[label], 2) if label in lines else "none" for label in labels))
    versions = ", ".join(f"{name} {number}" for name, number in data.versions.items())
    return [
        Text(f"Evidence: {found.engine}; relative tolerance {plain(found.tolerance)} {met(found)}.", style="bold"),
        *items(
            f"{c.direction}, {c.bound}: {c.question} is in [{down(c.lower)}, {up(c.upper)}]"
            + (
                f"; lattice {c.spacing:.3g}, transform {c.transform_length}, tilt {c.tilt:.4g}"
                if c.transform_length
                else ""
            )
            for c in found.compositions
        ),
        *_tests(data),
        table,
        Text(),
        Text(f"document sha256 {data.document_sha256}", style="dim"),
        Text(f"{versions}; created {data.created}", style="dim"),
    ]
