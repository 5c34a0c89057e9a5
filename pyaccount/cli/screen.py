"""A certificate on one screen: the sentence, what was solved, σ, ε and δ, what must be true of the run, and what to do next.

Numbers have five digits. Upper ends and σ are rounded up and lower ends down, with the coordinates at which they hold, so that
nothing here is stronger than the certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate import words
from pyaccount.certificate.consistency import at, derived_statement, is_number
from pyaccount.certificate.meaning import failure_probability, trade_off
from pyaccount.certificate.report.amplified import brief_effects
from pyaccount.certificate.report.evidence import lower_origin_of, origin_of
from pyaccount.certificate.report.parts import ORIGINS
from pyaccount.certificate.report.sections import MOST_PHASES, badges, extremes, what_is_run
from pyaccount.pages.page import (
    Checklist,
    Content,
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
    filled,
)
from pyaccount.rounding import down, up

if TYPE_CHECKING:
    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel, PhaseRecord, Solved

#: The significant digits of numbers on a screen.
DIGITS = 5
#: The false-positive rate of the line on attacks.
FALSE_POSITIVES = 1e-3


def screen_page(data: CertificateModel | AmplificationData, saved: str | None = None) -> Page:
    """Return the short page of a certificate that was just computed; `saved` is the name of its file, if it has one."""
    if data.kind != "certificate":
        return _draw_page(data, saved)
    run, _ = what_is_run(data)
    return Page(
        title="Privacy certificate",
        name=data.name,
        badges=badges((), holds=data.holds),
        statement=derived_statement(data, DIGITS),
        sections=(
            PageSection("guarantee", "", (FactList(tuple(_answer(data))),)),
            PageSection("assumptions", f"What must be true of {run}", (Checklist(tuple(data.assumptions_in_short)),)),
            PageSection(
                "next", "", (*(() if data.holds else (Paragraph((_instead(data),)),)), Paragraph((_keep(saved),)))
            ),
        ),
        origins=ORIGINS,
    )


def _draw_page(data: AmplificationData, saved: str | None) -> Page:
    """Return the short page of an amplification: ε′ and δ′ for each ε of the document."""
    _, *effects = brief_effects(data)
    return Page(
        title="Amplification by sampling",
        name=data.name,
        statement=data.statement,
        sections=(
            PageSection("effects", "", (FactList(tuple(effects)),)),
            PageSection("assumptions", "What must be true", (Checklist(tuple(data.assumptions_in_short)),)),
            PageSection("next", "", (Paragraph((_keep(saved),)),)),
        ),
        origins=ORIGINS,
    )


def _answer(data: CertificateModel) -> list[Fact]:
    guarantee, origin, lower = data.guarantee, origin_of(data), lower_origin_of(data)
    noises, solved = _noises(data), data.solved
    rows = []
    if solved is not None and len(data.phases) == 1 and solved.path == "noise.multiplier":
        rows.append(Fact("σ", (*noises, ", solved for", *_beyond(data, solved))))
        noises = ()
    elif solved is not None:
        rows.append(Fact("solved", _solved(data, solved)))
    if noises:
        rows.append(Fact("σ", noises))
    ends = ((guarantee.epsilon, guarantee.epsilon_lower), (guarantee.delta, guarantee.delta_lower))
    for (symbol, unit, other), (above, below), coordinate in zip(
        (("ε", "nats", "δ"), ("δ", "probability", "ε")), ends, (guarantee.delta, guarantee.epsilon), strict=True
    ):
        upper, least = at_most(above, unit, origin, DIGITS), at_least(below, unit, lower, DIGITS)
        # ε(δ) and δ(ε) decrease: an upper end holds at every larger coordinate, a lower end at every smaller one.
        right, left = up(coordinate, DIGITS), down(coordinate, DIGITS)
        there, here = f" at {other} = {right}", f" at {other} = {left}"
        said = "at most {}, at least {},{}" if right == left else f"at most {{}}{there}, at least {{}}{{}}"
        rows.append(Fact(symbol, filled(said, upper, least, here)))
    if data.records is not None:
        kinds: list[str | Quantity] = []
        for one in data.records:
            kinds += [f"{', ' if kinds else ''}{one.name} at most ", at_most(one.epsilon, "nats", origin, DIGITS)]
        rows.append(Fact("ε by kind", tuple(kinds)))
    if data.evidence.sampling is not None:
        wrong = at_most(failure_probability(data), "probability", "histogram", 2)
        rows.append(Fact("samples", ("some bound here is wrong with probability ", wrong, " at most")))
    if data.risk is None:
        # The sentence of a budget of risk says more than this.
        curve = trade_off(data)
        worst = max(one.true_positive_rate(FALSE_POSITIVES) for one in (curve, curve.swapped))
        rate, limit = chosen_value(FALSE_POSITIVES, "rate", "rates"), at_most(worst, "rate", "attack", 4)
        rows.append(Fact("attacks", ("true-positive rate at most ", limit, " at false-positive rate ", rate)))
    return rows


def _noises(data: CertificateModel) -> Content:
    """Return the noise multipliers of all phases, rounded up: with more noise the guarantee holds too."""
    noisy = [
        (phase.name or f"phase {k}", phase) for k, phase in enumerate(data.phases, start=1) if phase.noise is not None
    ]
    ends = [end for _, phase in noisy for end in extremes(phase)]
    if len(noisy) > MOST_PHASES:
        return ("from ", _sigma(min(ends)), " to ", _sigma(max(ends)), f", in {len(noisy)} phases")
    if noisy and len(noisy) == len(data.phases) and len({(phase.noise, extremes(phase)) for _, phase in noisy}) == 1:
        return _noise(noisy[0][1])
    parts = [(", " if k else "", *_noise(phase), f" ({name})") for k, (name, phase) in enumerate(noisy)]
    return tuple(one for part in parts for one in part)


def _noise(phase: PhaseRecord) -> Content:
    name = "" if phase.noise == "gaussian" else "Laplace b = "
    least, most = map(_sigma, extremes(phase))
    return (name, least) if least == most else (name, "from ", least, " to ", most, ", by its schedule")


def _sigma(value: float) -> Quantity:
    return already_rounded(up(value, DIGITS), "clip norms", "solved")


def _solved(data: CertificateModel, solved: Solved) -> Content:
    if solved.path in words.PRIVACY_BLANKS:
        return (Literally(solved.path), f": {words.smallest(data)}")
    value = already_rounded(words.enough(solved.path, solved.value, DIGITS), "", "solved")
    return (Literally(solved.path), " = ", value, *_beyond(data, solved))


def _beyond(data: CertificateModel, solved: Solved) -> Content:
    """Return the note on the value beside the one that was solved for."""
    if solved.fails_at is None:
        return ()
    before, after = words.failing(data)
    number = already_rounded(words.too_little(solved.path, solved.fails_at, DIGITS), "", "solved")
    return (f"; {before}{words.noise_name(data, solved.path)}", number, after)


def _instead(data: CertificateModel) -> str:
    """Return how to find what would hold in place of a claim that does not."""
    if is_number(at(data.document, "noise", "multiplier")):
        return "What would hold: --set noise.multiplier=solve finds the noise for this claim."
    return "What would hold: write `solve` in place of one number, and certify computes it."


def _keep(saved: str | None) -> str:
    """Return what to do with a certificate; `saved` is the name of its file, if it has one."""
    if saved is None:
        return "Next: -o FILE saves it, `report FILE -o page.html` draws it, --full has all."
    if saved.endswith(tuple(f".{form}" for form in ("html", "md", "txt"))):
        return f"Saved in {saved}. --full prints all of it."
    return f"Saved. `pyaccount report {saved} -o page.html` draws it, --full prints all."
