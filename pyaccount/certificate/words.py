"""Words and writing that the text form and the reports share: each is said in one place, so that the forms agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.certificate.evidence import ConsideredRecord, EvidenceRecord, SamplingRecord, SearchedRecord
    from pyaccount.certificate.model import CertificateModel, MatrixRecord, PhaseRecord, RiskRecord

#: What is said first of a certificate whose parts do not fit one another, and instead of whether it holds.
CONTRADICTS = "This certificate contradicts itself: do not rely on its figures."
CONTRADICTED = "contradicts itself"

#: What an attacker tells apart, by adjacency: the first data set, the second one.
HYPOTHESES = {
    "add-remove": ("presence", "absence"),
    "zero-out": ("presence", "absence"),
    "replace-one": ("the original", "the substitute"),
}

#: The blanks that are bounds themselves.
PRIVACY_BLANKS = ("privacy.epsilon", "privacy.delta")

#: What a budget of risk limits.
RISKS = {
    "advantage": "membership advantage",
    "true_positive_rate": "true-positive rate",
    "gaussian_mu": "Gaussian μ",
}

_SEEDS = {
    "document": "fixed in the document, before any result was seen",
    "system": "from the operating system's entropy",
}

#: Significant digits of a value that was solved for.
SOLVED_DIGITS = 8


def compared(adjacency: str) -> dict[str, str]:
    """Return what each direction compares, under an adjacency."""
    if adjacency == "replace-one":
        return {
            "remove": "the run with the originals compared to the run with the substitutes",
            "add": "the run with the substitutes compared to the run with the originals",
        }
    return {
        "remove": "the run with the records compared to the run without",
        "add": "the run without the records compared to the run with them",
    }


def symbol(phase: PhaseRecord) -> str:
    """What a phase's noise multiplier is called."""
    return "σ" if phase.noise == "gaussian" else "Laplace scale b"


def drawn(sampler: str) -> str:
    """For whom, and when, a sampler's probability is the probability of being drawn."""
    # Pages are built where documents may not have been read.
    from pyaccount.document.samplers import BY_WORD, SamplerKind

    return BY_WORD.get(sampler, SamplerKind).drawn


def met(evidence: EvidenceRecord) -> str:
    """Whether the tolerance was met."""
    return "met" if evidence.within_tolerance else "not met: the interval is proven all the same"


def seed_source(sampling: SamplingRecord) -> str:
    """Where the seed comes from."""
    return _SEEDS[sampling.seed_source]


def smallest(data: CertificateModel) -> str:
    """What is said beside an ε or δ that was solved for: less may hold where the bound is not the run's own curve."""
    if data.evidence.sampling is not None:
        return "the smallest that was certified"
    return "the smallest, rounded up" if _own(data) else "the smallest that the bound gives, rounded up"


def risk_note(risk: RiskRecord) -> str:
    """What a measure of risk is, or where it is limited."""
    if risk.last_epsilon is not None:
        return f"for every ε from 0 to {plain(risk.last_epsilon)}"
    if risk.false_positive_rate is not None:
        return f"at a false-positive rate of {plain(risk.false_positive_rate)}"
    return "true- minus false-positive rate"


def enough(path: str, value: float) -> str:
    """A value that fills a blank, as a number with which the claim still holds.

    More noise is no worse, so σ is rounded up; the other blanks are whole numbers, of which every digit is said.
    """
    return up(value, SOLVED_DIGITS) if is_noise(path) else _whole(value)


def too_little(path: str, value: float) -> str:
    """A value with which the bound fails, as a number with which it fails no less."""
    return down(value, SOLVED_DIGITS) if is_noise(path) else _whole(value)


def failing(data: CertificateModel) -> tuple[str, str]:
    """What is said before and after a value next to the one solved for.

    The run itself fails with it where the bound is its own curve; the sensitivity of a matrix is a bound by its rounding.
    """
    return ("", " fails") if _own(data) else ("the bound fails with ", "")


def error_titles(considered: Sequence[ConsideredRecord]) -> tuple[str, ...]:
    """The headings of the errors that candidates were compared by, where these are not those of prefix sums."""
    further = ["squared error under the workload"] if any(one.workload_error_estimate for one in considered) else []
    return (
        *further,
        *(["error relative to the batch"] if any(one.relative_error_estimate for one in considered) else []),
    )


def candidate_name(one: ConsideredRecord) -> str:
    """The kind of a candidate's matrix, and what of its sampler was open."""
    return ", ".join([one.matrix, *(f"{name} {value}" for name, value in (one.sampler or {}).items())])


def log_of_error(found: SearchedRecord) -> str:
    """What a search made small, as it was differentiated."""
    return "ln(MSE)" if found.workload_error_estimate is None else "the error's logarithm"


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def stated(record: MatrixRecord) -> tuple[int, str] | None:
    """What of a matrix a certificate states, besides what its kind is: a number of things, and their name."""
    if record.buffers is not None and record.normalization is not None:
        return len(record.buffers.scales), "scales and decays"
    if record.coefficients is not None:
        return len(record.coefficients), "coefficients"
    if record.inverse_coefficients is not None:
        return len(record.inverse_coefficients), "coefficients of the inverse"
    return None if record.entries is None else (sum(map(len, record.entries)), "entries")


def _own(data: CertificateModel) -> bool:
    """Whether the bound is the run's own curve."""
    return all(one.tight for one in data.reductions) and all(phase.matrix.kind == "identity" for phase in data.phases)


def is_noise(path: str) -> bool:
    """Whether this blank is the noise of a phase."""
    return path.endswith("noise.multiplier")


def _whole(value: float) -> str:
    return str(value) if isinstance(value, int) else plain(value)
