"""Words that the text form and the reports share, each in one place, so that the forms agree."""

from __future__ import annotations

import re

from pyaccount.records.certificate import CertificateModel, MatrixRecord, PhaseRecord
from pyaccount.records.evidence import ConsideredRecord, SearchedRecord
from pyaccount.rounding import down, shortest, up

#: The alert of a certificate that contradicts itself, and the badge that replaces "holds".
CONTRADICTS = "This certificate contradicts itself: do not rely on its figures."
CONTRADICTED = "contradicts itself"

#: The two hypotheses of an attacker, by adjacency: the first and the second data set.
HYPOTHESES = {
    "add-remove": ("presence", "absence"),
    "zero-out": ("presence", "absence"),
    "replace-one": ("the original", "the substitute"),
}

#: The blanks whose values are bounds themselves.
PRIVACY_BLANKS = ("privacy.epsilon", "privacy.delta")

#: The measure that a risk budget limits, in words.
RISKS = {"advantage": "membership advantage", "true_positive_rate": "true-positive rate", "gaussian_mu": "Gaussian μ"}

#: The significant digits of a value that was solved for.
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
    """Return the name of a phase's noise multiplier."""
    return "σ" if phase.noise == "gaussian" else "Laplace scale b"


def noise_name(data: CertificateModel, path: str) -> str:
    """Return what a noise blank is called before its value, with "= "; empty for others, and where its key says it."""
    key = path.rpartition(".")[2]
    if not is_noise(path) or key in ("scale", "variance"):
        return ""
    if key == "sigma":
        return "σ = "
    index = re.match(r"phases\[(\d{1,5})\]", path)
    phases = [phase for phase in data.phases if phase.noise is not None]
    if index is not None and int(index[1]) < len(data.phases):
        phases = [data.phases[int(index[1])]]
    return f"{symbol(phases[0])} = " if phases else ""


def probability_words(sampler: str) -> str:
    """Return in words for whom, and when, the sampling probability of a sampler applies."""
    # This import is lazy because pages are also built without reading a document.
    from pyaccount.document.samplers import BY_WORD, SamplerKind

    return BY_WORD.get(sampler, SamplerKind).drawn


def smallest(data: CertificateModel) -> str:
    """Return the note on an ε or δ that was solved for. Unless the bound is the run's own curve, less may hold."""
    if data.evidence.sampling is not None:
        return "the smallest that was certified"
    return "the smallest, rounded up" if _own(data) else "the smallest that the bound gives, rounded up"


def enough(path: str, value: float, digits: int = SOLVED_DIGITS) -> str:
    """Return the value that fills a blank as a number with which the claim still holds.

    More noise is never worse, so σ is rounded up; the other blanks are whole numbers and are shown with every digit.
    """
    return up(value, digits) if is_noise(path) else _whole(value)


def too_little(path: str, value: float, digits: int = SOLVED_DIGITS) -> str:
    """Return a value with which the bound misses the target, rounded to a number with which it also does."""
    return down(value, digits) if is_noise(path) else _whole(value)


def failing(data: CertificateModel) -> tuple[str, str]:
    """Return the words before and after a value, next to the one solved for, that does not meet the target.

    If the bound is the run's own curve, the run itself misses the target; otherwise (and for a matrix, whose sensitivity
    is rounded) the bound.
    """
    return ("", " does not meet the target") if _own(data) else ("the bound does not meet the target at ", "")


def candidate_name(one: ConsideredRecord) -> str:
    """Return the kind of a candidate's matrix, with the values that were chosen for its sampler."""
    return ", ".join([one.matrix, *(f"{name} {value}" for name, value in (one.sampler or {}).items())])


def log_of_error(found: SearchedRecord) -> str:
    """Return the name of the function that a search minimised, and of which it took gradients."""
    return "ln(MSE)" if found.workload_error_estimate is None else "the error's logarithm"


def count_words(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def stated(record: MatrixRecord) -> tuple[int, str] | None:
    """Return what a certificate states about a matrix besides its kind, as a count and a noun; None if nothing."""
    if record.buffers is not None and record.normalization is not None:
        return len(record.buffers.scales), "scales and decays"
    if record.coefficients is not None:
        return len(record.coefficients), "coefficients"
    if record.inverse_coefficients is not None:
        return len(record.inverse_coefficients), "coefficients of the inverse"
    return None if record.entries is None else (sum(map(len, record.entries)), "entries")


def _own(data: CertificateModel) -> bool:
    """Return whether the bound is the privacy curve of the run itself."""
    return all(one.tight for one in data.reductions) and all(phase.matrix.kind == "identity" for phase in data.phases)


def is_noise(path: str) -> bool:
    """Return whether this blank is the noise of a phase, or a factor of noise: more of it is more noise."""
    keys = {"noise": ("multiplier", "multiplier.scale", "scale"), "mechanism": ("sigma", "scale", "variance")}
    return path.endswith(tuple(f"{section}.{key}" for section, some in keys.items() for key in some))


def _whole(value: float) -> str:
    return str(value) if isinstance(value, int) else shortest(value)
