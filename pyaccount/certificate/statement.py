"""The guarantee in one sentence that can be quoted alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyaccount.document.words import ADJACENCIES
from pyaccount.rounding import down, shortest, up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyaccount.document.document import Document
    from pyaccount.records.certificate import Guarantee, PhaseRecord, PrivacyUnit, RiskRecord
    from pyaccount.records.evidence import SamplingRecord


def unit_of(document: Document) -> Literal["record", "user"]:
    """Return what is protected: users if a sampler of the document knows users, otherwise records."""
    return "user" if any(phase.protects_users for phase in document.phases) else "record"


def only_training(phases: Iterable[PhaseRecord]) -> bool:
    """Return whether every phase is a training run, with no mechanism in its place."""
    return all(phase.mechanism is None for phase in phases)


def hidden_change(privacy: PrivacyUnit) -> str:
    """Return the change of the data that a guarantee hides, in words: how neighbouring data sets differ."""
    group = f"one {privacy.unit}" if privacy.group_size == 1 else f"up to {privacy.group_size} {privacy.unit}s"
    replacement = "an arbitrary other one" if privacy.group_size == 1 else "arbitrary others"
    return ADJACENCIES[privacy.adjacency].change.format(group=group, replacement=replacement)


def statement(  # noqa: PLR0913 - everything that the sentence depends on
    name: str,
    privacy: PrivacyUnit,
    guarantee: Guarantee,
    *,
    holds: bool,
    claim: tuple[float, float] | None,
    sampling: SamplingRecord | None,
    risk: RiskRecord | None = None,
    training: bool = True,
    digits: int = 6,
) -> str:
    """Return the guarantee as one English sentence, in which every number is rounded so that the sentence stays true.

    `claim` is the (ε, δ) of a document that has no blank in them. If there is a `sampling`, the lower bounds, which
    refute a claim, come from samples, even if the guarantee is proven. `training` says whether every phase is a training run. The
    sentence depends only on fields of the certificate, so that it can be derived from them to check it. Its words are part of the
    certificate format and must not change; certificates have 6 digits.
    """
    subject = f"The training run “{name}”" if training else f"What “{name}” releases"
    proven = (
        f"({up(guarantee.epsilon, digits)}, {up(guarantee.delta, digits)})-differentially private with respect to "
        f"{hidden_change(privacy)}, "
        "provided that the run satisfies the assumptions listed"
    )
    if guarantee.kind == "confidence":
        proven += (
            f" (with probability at least 1 − {up(guarantee.failure_probability)} over the accountant's own randomness)"
        )
    chance = ""
    if sampling is not None:
        failure = up(sampling.pointwise_failure_probability)
        chance = f" (with probability at least 1 − {failure} over the accountant's own randomness)"
    if risk is not None:
        if holds:
            return f"{subject} is {proven}; then {_kept(risk)}."
        return f"{subject} {_exceeded(risk, chance)}; it is {proven}, and then {_kept(risk)}."
    if holds or claim is None:
        return f"{subject} is {proven}."
    epsilon, delta = claim
    claimed = f"({shortest(epsilon)}, {shortest(delta)})-differentially private"
    # ε(δ) and δ(ε) are decreasing: what is refuted at one δ is refuted at every smaller δ, and likewise for ε.
    if guarantee.epsilon_lower > epsilon and guarantee.delta >= delta:
        refuted = f"no ε below {down(guarantee.epsilon_lower, digits)} holds at δ = {shortest(guarantee.delta)}"
        verdict = f"is not {claimed}: {refuted}{chance}"
    elif guarantee.delta_lower > delta and guarantee.epsilon >= epsilon:
        refuted = f"no δ below {down(guarantee.delta_lower, digits)} holds at ε = {shortest(guarantee.epsilon)}"
        verdict = f"is not {claimed}: {refuted}{chance}"
    else:
        verdict = f"could not be certified as {claimed}"
    return f"{subject} {verdict}; it is {proven}."


def _risk_words(risk: RiskRecord, value: str) -> str:
    """Return a value of the measure as words for a sentence, such as `a membership advantage of at most 0.1`."""
    if risk.measure == "gaussian_mu":
        return f"no larger δ than N({value}, 1) against N(0, 1) at any ε from 0 to {shortest(risk.last_epsilon or 0.0)}"
    if risk.measure == "advantage":
        return f"a membership advantage of at most {value}"
    return f"a true-positive rate of at most {value} at a false-positive rate of {shortest(risk.false_positive_rate or 0.0)}"


def _kept(risk: RiskRecord) -> str:
    """Return what is certified, as the end of a sentence about the run."""
    value = "no certified value" if risk.value is None else up(risk.value)
    if risk.measure == "gaussian_mu":
        return f"it has {_risk_words(risk, value)}"
    return f"every attack on it has {_risk_words(risk, value)}"


def _exceeded(risk: RiskRecord, chance: str) -> str:
    """Return why a budget is not kept, as the continuation of a sentence about the run."""
    allowed = _risk_words(risk, shortest(risk.budget))
    if risk.value_lower > risk.budget:
        return f"does not keep {allowed}: it is at least {down(risk.value_lower)}{chance}"
    return f"could not be certified to keep {allowed}"
