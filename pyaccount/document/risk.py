"""The rules about budgets of risk, which replace ε and δ, and the δ at which ε is reported with a budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyaccount.document.sections import Privacy, Risk
from pyaccount.document.shape import reader_of
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Problem
from pyaccount.reading.fields import SOLVE
from pyaccount.reading.kinds import Section
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.tree import TrainingNode
    from pyaccount.document.views import Mechanism

#: The fields that state a budget, and the pair of rates: the true-positive rate is limited at the false-positive rate.
MEASURES = ("advantage", "true_positive_rate", "gaussian_mu")
AT_A_RATE = ("true_positive_rate", "false_positive_rate")


def usual_delta(records: int | None) -> str:
    """Return the largest power of ten below 1/records, as text. A δ of 1/records would allow publishing one record."""
    return f"1e-{len(str(records or 10**6 - 1))}"


def target(privacy: Privacy, runs: Iterable[TrainingNode]) -> Privacy:
    """Return the section for the later rooms: with a budget of risk, ε is the blank at the δ of the report."""
    if not isinstance(privacy.risk, Risk):
        return privacy
    delta = number_or_none(privacy.risk.report_delta)
    if delta is None:
        sizes = [number_or_none(run.training.dataset_size) for run in runs]
        delta = float(usual_delta(max((int(size) for size in sizes if size is not None), default=None)))
    return privacy.model_copy(update={"epsilon": SOLVE, "delta": delta})


def one_target(document: Mechanism) -> Iterator[Problem]:
    """Report a document that does not state exactly one of a target (ε, δ) and a budget of risk."""
    privacy = document.stated_privacy
    for name in ("epsilon", "delta"):
        path, value = ("privacy", name), getattr(privacy, name)
        if privacy.risk is None and value is None:
            message = f"privacy.{name} is required, or privacy.risk instead of ε and δ"
            yield document.problem("missing-key", path, message, allowed=_allowed(Privacy, name))
        elif isinstance(privacy.risk, Risk) and (number_or_none(value) is not None or value == SOLVE):
            message = (
                "privacy.risk replaces ε and δ: leave this out, or leave risk out; risk.report_delta is the δ at which ε is "
                "reported"
            )
            yield document.problem("contradiction", path, message)


def one_budget(document: Mechanism) -> Iterator[Problem]:
    """Report missing, incomplete or several budgets of risk, and budgets that every mechanism or none keeps."""
    risk, path = document.stated_privacy.risk, ("privacy", "risk")
    if not isinstance(risk, Risk):
        return
    stated = [name for name in MEASURES if number_or_none(getattr(risk, name)) is not None]
    for name in stated[1:]:
        message = f"a document has one budget, and {stated[0]} is given too: leave one of the two out"
        yield document.problem("contradiction", (*path, name), message)
    if all(getattr(risk, name) is None for name in (*MEASURES, *AT_A_RATE)):
        message = (
            "privacy.risk states no budget: give advantage, true_positive_rate with false_positive_rate, or gaussian_mu"
        )
        yield document.problem("missing-key", path, message, allowed=", ".join(MEASURES))
    for name, other in (AT_A_RATE, AT_A_RATE[::-1]):
        if getattr(risk, name) is None and getattr(risk, other) is not None:
            message = f"privacy.risk.{name} is required: {other} is given, and a budget of rates has both"
            yield document.problem("missing-key", (*path, name), message, allowed=_allowed(Risk, name))
    yield from _rates(document, number_or_none(risk.true_positive_rate), number_or_none(risk.false_positive_rate))
    yield from _gaussian(document, number_or_none(risk.gaussian_mu))


def _allowed(section: type[Section], name: str) -> str | None:
    reader = reader_of(section.model_fields[name])
    return None if reader is None else reader.allowed


def _rates(document: Mechanism, rate: float | None, at: float | None) -> Iterator[Problem]:
    """Report rates that guessing attains (TPR ≤ FPR), and rates with TPR + FPR > 1, which have a mirror image."""
    if rate is None or at is None:
        return
    path = ("privacy", "risk", "true_positive_rate")
    if rate <= at:
        message = (
            f"it must be above false_positive_rate, {shortest(at)}: an attack that guesses has equal rates, "
            "whatever the noise"
        )
        yield document.problem(
            "contradiction", path, message, allowed=f"a number greater than {shortest(at)} and less than 1"
        )
    elif rate + at > 1.0:
        message = (
            f"the sum with false_positive_rate = {shortest(at)} is more than 1; the same budget, with presence and absence "
            f"exchanged, is a true_positive_rate of {1.0 - at:.10g} at a false_positive_rate of {1.0 - rate:.10g}: write that"
        )
        yield document.problem("contradiction", path, message, allowed=f"a number of at most {1.0 - at:.10g}")


def _gaussian(document: Mechanism, mu: float | None) -> Iterator[Problem]:
    """Report a μ whose own profile never exceeds the δ down to which the budget applies."""
    delta = number_or_none(document.privacy.delta)
    if mu is None or delta is None:
        return
    largest = math.erf(mu / math.sqrt(8.0))
    if largest <= delta:
        message = (
            f"the δ of N({shortest(mu)}, 1) against N(0, 1) is at most {largest:.3g}, but the budget applies only down to "
            f"δ = {shortest(delta)}, so it limits nothing: give a smaller report_delta, or a larger gaussian_mu"
        )
        yield document.problem("contradiction", ("privacy", "risk", "gaussian_mu"), message)
