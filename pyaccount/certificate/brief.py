"""The short answer: what is certified, what was solved for it, and at which noise, each on a line of its own.

Upper bounds are rounded up and lower bounds down, as everywhere; the certificate itself has every digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.words import (
    PRIVACY_BLANKS,
    SOLVED_DIGITS,
    enough,
    failing,
    smallest,
    too_little,
)
from pyaccount.rounding import down, plain, up

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.model import CertificateModel, PhaseRecord

_Lines = list[tuple[str, str]]

#: Noise multipliers that are listed one by one.
MOST_PHASES = 40


def brief(data: CertificateModel) -> _Lines:
    """The lines of a certificate, each with what it is called: statement, solved, σ, ε and δ."""
    guarantee = data.guarantee
    return [
        ("statement", data.statement),
        ("solved", solved(data)),
        ("σ", noise(data)),
        ("ε", _ends(guarantee.epsilon, guarantee.epsilon_lower, f"at δ = {plain(guarantee.delta)}")),
        ("δ", _ends(guarantee.delta, guarantee.delta_lower, f"at ε = {plain(guarantee.epsilon)}")),
    ]


def brief_amplification(data: AmplificationCertificate) -> _Lines:
    """The lines of an amplification: its statement, and what becomes of ε and δ, one line for each ε of the document."""
    return [
        ("statement", data.statement),
        *(
            (
                f"ε {plain(row.epsilon)}, δ {up(row.delta)}",
                f"ε′ at most {up(row.amplified_epsilon)}, δ′ at most {up(row.amplified_delta)}: {row.effect}",
            )
            for row in data.effects
        ),
    ]


def text(lines: _Lines) -> str:
    """The lines as text, with what they are called in a column of its own. No line is broken: programs take them apart."""
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:<{width}}  {value}\n" for name, value in lines)


def solved(data: CertificateModel) -> str:
    """What filled the blank, with the value beside it that fails; or that there was none, and whether the claim holds."""
    found = data.solved
    if found is None:
        return f"nothing, since the document has no blank: its claim {'holds' if data.holds else 'does not hold'}"
    if found.path in PRIVACY_BLANKS:
        return f"{found.path} = {up(found.value)}, {smallest(data)}"
    before, after = failing(data)
    beyond = "" if found.fails_at is None else f" ({before}{too_little(found.path, found.fails_at)}{after})"
    return f"{found.path} = {enough(found.path, found.value)}{beyond}"


def noise(data: CertificateModel) -> str:
    """The noise multipliers, rounded up: one, where all phases have the same; otherwise each with its phase, or their range."""
    said = [(phase.name or f"phase {place}", _noise(phase)) for place, phase in enumerate(data.phases, start=1)]
    if len({value for _, value in said}) == 1:
        return said[0][1]
    if len(said) > MOST_PHASES:
        least, most = (_noise(pick(data.phases, key=lambda phase: phase.noise_multiplier)) for pick in (min, max))
        return f"from {least} to {most}, in {len(said)} phases"
    return ", ".join(f"{value} ({name})" for name, value in said)


def _noise(phase: PhaseRecord) -> str:
    kind = "" if phase.noise == "gaussian" else "Laplace b = "
    return kind + up(phase.noise_multiplier, SOLVED_DIGITS)


def _ends(upper: float, lower: float, where: str) -> str:
    return f"at most {up(upper)}, at least {down(lower)}, {where}"
