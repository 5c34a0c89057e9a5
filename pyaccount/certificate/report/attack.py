"""The sections of a page on attacks and on the privacy profile from which their bounds follow."""

from __future__ import annotations

from functools import partial

from pyaccount.certificate.meaning import Meaning, failure_probability, point_failure_probability
from pyaccount.certificate.report import curves
from pyaccount.certificate.report.mechanisms import note_on_stated
from pyaccount.certificate.report.parts import FieldRow, shown, table
from pyaccount.certificate.words import HYPOTHESES, compared
from pyaccount.directions import Direction
from pyaccount.pages.page import (
    Block,
    Content,
    Fact,
    FactList,
    PageSection,
    PageTable,
    Paragraph,
    Quantity,
    at_least,
    at_most,
    chosen_value,
    directed,
    estimate,
    every_digit,
    filled,
)
from pyaccount.records.certificate import CertificateModel, ProfilePoint

#: With fewer points than this, or none at a small ε, the page notes that the bounds are loose.
ENOUGH_POINTS = 6


def attack_section(data: CertificateModel, meaning: Meaning) -> PageSection:
    """Return the section with bounds on every attack, and their pictures."""
    presence, absence = HYPOTHESES[data.privacy.adjacency]
    opening = filled(
        "An attacker sees everything the run releases, knows all other data, and wants to distinguish {} from {} of {}. Whatever "
        "the method and the means, these are upper bounds on success.",
        *(presence, absence, group_of(data)),
    )
    blocks: list[Block] = [
        Paragraph(opening),
        *_notes(data, meaning),
        FactList(_summary(data, meaning)),
        _rates(meaning, presence, absence),
        curves.attacks(meaning, presence, absence),
        curves.trade_off(meaning, presence, absence),
    ]
    return PageSection("meaning", "What it means", tuple(blocks))


def group_of(data: CertificateModel) -> Content:
    """Return in words who is protected together: one record, or up to so many records or users."""
    unit = data.privacy
    if unit.group_size == 1:
        return (f"one {unit.unit}",)
    return ("up to ", chosen_value(unit.group_size, f"{unit.unit}s"), f" {unit.unit}s")


def _summary(data: CertificateModel, meaning: Meaning) -> tuple[Fact, ...]:
    comparison = meaning.gaussian
    advantage = at_most(meaning.advantage, "difference of rates", "attack", 4)
    accuracy = at_most(meaning.balanced_accuracy, "probability", "attack", 4)
    rows = [
        Fact("advantage", directed(advantage), ("largest TPR − FPR of any attack",)),
        Fact("balanced accuracy", directed(accuracy), ("share of right answers when both cases are equally likely",)),
    ]
    mu, across = comparison.mu_within_range, _range(comparison.first_epsilon, comparison.last_epsilon)
    above = ("no upper bound was found",) if mu is None else directed(at_most(mu, "μ", "gaussian", 4))
    note = filled(
        "δ(ε) is at most that of N(μ, 1) against N(0, 1), {}; outside nothing is claimed. For {}, the run is not μ-GDP for any μ "
        "below the lower end",
        *(across, group_of(data)),
    )
    below = directed(at_least(comparison.mu_lower, "μ", "gaussian", 4))
    rows.append(Fact("Gaussian μ", (*above, ", ", *below), note))
    return tuple(rows)


def _range(first: float, last: float) -> Content:
    if first == last:
        return ("at ε = ", every_digit(first, "nats", "grid"), " nats")
    return ("for ε from ", every_digit(first, "nats", "grid"), " to ", every_digit(last, "nats", "grid"), " nats")


def _rates(meaning: Meaning, presence: str, absence: str) -> PageTable:
    unit, symmetric = "rate", meaning.trade_off.symmetric
    headings = ["false-positive rate", "true-positive rate at most" + ("" if symmetric else f", detecting {presence}")]
    if not symmetric:
        headings.append(f"true-positive rate at most, detecting {absence}")
    rows = []
    for rate in meaning.rates:
        cells: list[Content] = [
            (chosen_value(rate.false_positive_rate, unit, "rates"),),
            (at_most(rate.presence, unit, "attack", 4),),
        ]
        if not symmetric:
            cells.append((at_most(rate.absence, unit, "attack", 4),))
        rows.append(tuple(cells))
    return PageTable(("Attacks with a small false-positive rate.",), tuple(headings), tuple(rows))


def _notes(data: CertificateModel, meaning: Meaning) -> list[Block]:
    notes: list[Block] = []
    if (about := note_on_stated(data)) is not None:
        notes.append(Paragraph(about))
    if meaning.failure_probability > 0.0:
        sampled = data.evidence.sampling is not None
        failure = at_most(meaning.failure_probability, "probability", "histogram" if sampled else "document", 2)
        opening = "The profile was sampled" if sampled else "The document states guarantees that come from samples"
        text = f"{opening}: all bounds of this section hold together, except with a probability of "
        notes.append(Paragraph((text, *directed(failure), " over the accountant's own randomness.")))
    coarse = [rate for rate in meaning.rates if rate.coarse]
    if coarse:
        opening = (
            "The true-positive rates below are computed from few points, and more values in accounting.profile may lower them. "
            "If the points of this profile are exact, no such value moves the larger rate of a row below "
        )
        parts: list[str | Quantity] = [opening]
        for k, rate in enumerate(coarse):
            finer, at = estimate(rate.finer or 0.0, "rate", "attack", 4), rate.false_positive_rate
            parts += [", "] if k > 0 else []
            parts += [finer, " at a false-positive rate of ", chosen_value(at, "rate", "rates")]
        notes.append(Paragraph((*parts, ".")))
    if meaning.points < ENOUGH_POINTS or meaning.gaussian.first_epsilon > 0.1 * data.guarantee.epsilon:
        text = (
            "The profile of this certificate has few points, or none at small ε, so the bounds here are valid but loose: "
            "name more values in accounting.profile, zero among them, for sharper ones."
        )
        notes.append(Paragraph((text,)))
    return notes


def profile_section(data: CertificateModel) -> PageSection:
    """Return the section of the privacy profile: δ over ε, as a picture and a table."""
    if not data.profile:
        only = Paragraph(("The document asks for no profile beyond the guarantee itself.",))
        return PageSection("profile", "Privacy profile", (only, curves.profile(data)))
    return PageSection("profile", "Privacy profile", (curves.profile(data), _profile(data)))


#: The columns of the profile in one direction and in both, and those of samples.
SIDES: tuple[Direction, ...] = ("remove", "add")
BOUND, GUESS = (
    FieldRow("δ at most", "delta", digits=4),
    FieldRow("estimate", "delta_estimate", origin="samples", absent="none"),
)
ERROR = FieldRow("standard error", "standard_error", origin="samples", sense="estimate", digits=2, absent="none")


def _profile(data: CertificateModel) -> PageTable:
    sampling = data.evidence.sampling
    origin = "composition" if sampling is None else "histogram"
    columns = [FieldRow("ε (nats)", "epsilon", origin="grid"), BOUND._replace(origin=origin)]
    columns.append(FieldRow("δ at least", "delta_lower", origin=origin, digits=4))
    own = BOUND._replace(origin=origin)
    words = "; ".join(f"{side}: {said}" for side, said in compared(data.privacy.adjacency).items())
    caption: Content = (f"δ is a probability, the larger one of both directions. {words[0].upper()}{words[1:]}.",)
    if sampling is not None:
        columns += [GUESS, ERROR]
        # A profile that was not asked for has one estimate. Each direction's bounds fail with half of the probability.
        own = GUESS if sum(point.delta_estimate is not None for point in data.profile) > 1 else own
        failure = at_most(point_failure_probability(sampling), "probability", "test", 2)
        together = at_most(failure_probability(data), "probability", "histogram", 2)
        caption = filled(
            "δ is a probability; each bound fails with probability {}. The lines of the picture hold if all bounds and the "
            "guarantee do, which fails with probability {}. There is no estimate where too little was seen, where few samples "
            "decide, or at points beside the guarantee that accounting.profile does not list.",
            *(directed(failure), directed(together)),
        )
    for side in SIDES:
        points = {one.epsilon: one for one in getattr(data.directions, side).profile}
        columns.append(FieldRow(f"{side}: {own.label}", partial(_at_point, points, own)))
    return table(caption, data.profile, columns)


def _at_point(points: dict[float, ProfilePoint], row: FieldRow, point: ProfilePoint) -> Content:
    """Return what is shown of a direction at a point of the profile."""
    return ("none",) if point.epsilon not in points else shown(points[point.epsilon], row) or ()
