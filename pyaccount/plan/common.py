"""Words and rules that the reductions share.

They are the texts of assumptions, the refusal of groups, the text of parameters that may be blank, and the default ε
values of a profile.

Combinators share how the nodes inside of one are described, as one run, and what is refused of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pyaccount.document.rates import epochs_of, epochs_text
from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.document.words import ADJACENCIES, Assumed
from pyaccount.errors import Problem
from pyaccount.plan.rounds import DirectedBounds, combine
from pyaccount.reading.fields import Solve

if TYPE_CHECKING:
    from pyaccount.document.sections import Privacy
    from pyaccount.document.tree import TrainingNode
    from pyaccount.plan.protection import Protection, RunCase
    from pyaccount.plan.theorem import Reduction, Theorem

N = TypeVar("N", bound=float)
Value = TypeVar("Value")

#: Why the number of iterations cannot be the blank, and what can be written instead.
NO_ITERATIONS = "with a matrix the number of iterations cannot be the blank, because the matrix depends on it"

OTHER_BLANKS = "a number here, and `solve` at noise.multiplier, privacy.epsilon or privacy.delta"

#: What can be written where a matrix must be banded.
BANDED = "identity, banded-square-root, optimal-toeplitz or toeplitz"

SECRET = Assumed(
    "The sampled batches are secret: nothing but the noisy sums is released, and no log, timing or order reveals them.",
    "Batches are secret: no log, timing or order reveals them.",
)

CLIPPING = Assumed(
    "Each record's contribution to a batch is clipped to norm 1 in units of the clip norm before it is summed.",
    "Each record's contribution is clipped to the clip norm before it is summed.",
)

NOISE = Assumed(
    "Fresh Gaussian noise with standard deviation σ times the clip norm is added to every released sum, drawn from a "
    "generator that cannot be predicted.",
    "Every sum gets fresh Gaussian noise, σ × clip norm, that nobody can predict.",
)

MATRIX_NOISE = Assumed(
    "The noise of the iterations is C⁻¹Z, C the matrix stated and Z with independent Gaussian rows of standard deviation σ times "
    "the clip norm, drawn from a generator that cannot be predicted; Z is released in no other way.",
    "The noise is C⁻¹Z, Z Gaussian of deviation σ × clip norm, unpredictable.",
)

NORMALISATION = Assumed(
    "Sums are normalised by the expected batch size, a constant, never by the size of the batch drawn.",
    "Sums are divided by the expected batch size, never by the size drawn.",
)


def value_or_symbol(value: float | Solve | ScheduledMultiplier | None, symbol: str) -> str:
    """Return a parameter as text for people: its symbol while it is the blank, or if each round has its own."""
    if isinstance(value, ScheduledMultiplier):
        return symbol
    return symbol if value == "solve" else f"{value:g}" if isinstance(value, float) else str(value)


def number(value: N | Solve | ScheduledMultiplier | None) -> N:
    """Return a parameter that is known to be one number. Raises `AssertionError` for a blank, a schedule, or none."""
    if isinstance(value, ScheduledMultiplier):
        raise AssertionError("a schedule reached the arithmetic of one round")
    if value == "solve" or value is None:
        raise AssertionError("a blank reached the arithmetic")
    return value


def given(value: Value | None) -> Value:
    """Return what is known to be there. Raises `AssertionError` for None."""
    assert value is not None
    return value


def moves(asked: Protection) -> int:
    """Return how far one record moves the sum of a round, in clip norms: 2 if it is replaced by another one, else 1."""
    return 2 if asked.privacy.adjacency == "replace-one" else 1


#: The guarantee for a group of k under every mechanism: k steps between neighbours, each of which multiplies the δ of those
#: before it by e^ε.
GROUP_LEMMA = "by the group lemma, (ε, δ) for one implies (kε, δ·(e^{kε} − 1)/(e^ε − 1)) for k"


def refused_groups(asked: Protection, message: str) -> list[Problem]:
    """Refuse groups of records; empty for single records."""
    return [] if asked.privacy.group_size == 1 else [asked.refusal(("privacy", "group_size"), message, allowed="1")]


def refused_samples(asked: Protection, message: str) -> list[Problem]:
    """Refuse samples of what is composed; empty if the document does not ask for them."""
    asks = asked.accounting.method == "monte-carlo"
    return [asked.refusal(("accounting", "method"), message, allowed="auto or pld")] if asks else []


def refused_blanks(asked: Protection, known: tuple[str, ...], message: str) -> list[Problem]:
    """Refuse blanks other than those that are known; empty for these, and without a blank."""
    blank = asked.blank
    return [] if blank is None or blank[-1] in known else [asked.refusal(blank, message, allowed=OTHER_BLANKS)]


def sampled_blanks(asked: Protection, *further: str) -> list[Problem]:
    """Refuse blanks for which an analysis by samples cannot solve: all but the noise, ε, δ and `further` ones."""
    message = "a sampled analysis can solve only for noise.multiplier, privacy.epsilon or privacy.delta"
    return refused_blanks(asked, ("multiplier", "epsilon", "delta", *further), message)


def group_refusals(case: RunCase) -> list[Problem]:
    """Refuse groups of records, for a sampler that draws each record independently."""
    return refused_groups(
        case.asked,
        f"no bound is implemented for groups of records under {case.node.sampler.kind} sampling, which samples each record "
        f"independently, so that their participations interleave; {GROUP_LEMMA}; for users with several records use "
        "user-b-min-sep, whose unit is the user",
    )


def unknown_group(case: RunCase) -> list[Problem]:
    """Refuse a group whose size is the blank, for a sampled analysis that covers groups of a given size."""
    if case.asked.privacy.group_size != "solve":
        return []
    message = "a sampled analysis cannot solve for privacy.group_size: give the size of the group"
    return [case.asked.refusal(("privacy", "group_size"), message, allowed="a number")]


def rounds_text(run: TrainingNode) -> str:
    """Return how many rounds a run runs, as text for people."""
    iterations = value_or_symbol(run.training.iterations, "n")
    return iterations if run.count == 1 else f"{run.count} × {iterations}"


def rounds(run: TrainingNode) -> int:
    """Return how many rounds a run runs, over all of its runs."""
    return run.count * number(run.training.iterations)


def length_text(run: TrainingNode) -> Assumed | None:
    """Explain how the rounds of a run follow from the epochs that the document asks for; None if it asks for none."""
    length = None if run.epochs is None else run.epoch()
    if length is None or run.epochs is None or run.training.iterations == "solve":
        return None
    done = number(run.training.iterations)
    exactly = epochs_text(epochs_of(done, length))
    asked = f"{epochs_text(run.epochs)} of {float(length):.10g} rounds each"
    if exactly == epochs_text(run.epochs):
        return Assumed(f"A run has {done} rounds: {asked}.", f"A run has {done} rounds: {epochs_text(run.epochs)}.")
    return Assumed(
        f"A run has {done} rounds, {exactly}: {asked}, rounded up to a whole round.",
        f"A run has {done} rounds: {epochs_text(run.epochs)}, rounded up to a whole round.",
    )


def basic_assumptions(privacy: Privacy, run: TrainingNode | None = None) -> tuple[Assumed, ...]:
    """Return the assumptions about the run that every reduction makes; those of a matrix or of users need `run`."""
    noise = NOISE if run is None or run.matrix.kind == "identity" else MATRIX_NOISE
    users = run is not None and run.sampler.protects_users
    return (ADJACENCIES[privacy.adjacency].users if users else neighbours_assumption(privacy), CLIPPING, noise)


def neighbours_assumption(privacy: Privacy) -> Assumed:
    """Return the assumption that says which data sets are neighbours; the group's size is k while it is the blank."""
    if privacy.group_size == 1:
        words = {"up_to": "one record", "contributions": "contribution is", "replacement": "an arbitrary other one"}
    else:
        size = "k" if privacy.group_size == "solve" else str(privacy.group_size)
        words = {
            "up_to": f"up to {size} records",
            "contributions": "contributions are",
            "replacement": "arbitrary others",
        }
    return ADJACENCIES[privacy.adjacency].records.filled(**words)


#: The default points of a profile, as shares of the certified ε. Bounds on attacks follow from these points alone: small ε, and 0
#: itself, limit attacks that may often be wrong; large ε limit attacks that must seldom be wrong.
PROFILE_SHARES = (0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.375, 1.5)


def default_profile(epsilon: float) -> tuple[float, ...]:
    """Return the default ε values of a profile: 0 and values around the certified ε, with two digits each."""
    if epsilon <= 0.0:
        return (0.0,)
    return tuple(float(f"{share * epsilon:.2g}") for share in PROFILE_SHARES)


def sampled_profile(epsilon: float) -> tuple[float, ...]:
    """Return the default ε values of a sampled profile: those of any other, with the certified ε itself among them."""
    return tuple(
        epsilon if share == 1.0 else value
        for share, value in zip(PROFILE_SHARES, default_profile(epsilon), strict=False)
    )


#: Why a phase inside of another one is not sampled.
OF_DOCUMENT = "implemented for phases of the document, not for phases inside of another one"


def joined(texts: Sequence[str]) -> str:
    """Return texts, each once, with semicolons."""
    return "; ".join(dict.fromkeys(texts))


def pairs_of_run(inner: tuple[Theorem, ...], parts: list[Reduction]) -> str:
    """Return the pairs of one run of all phases in words; rounds that are one Gaussian mechanism have one pair."""
    return ", and ".join(
        part.pair if one.gaussian else f"{part.rounds} × {part.pair}" for one, part in zip(inner, parts, strict=True)
    )


def one_run(inner: tuple[Theorem, ...]) -> DirectedBounds:
    """Return the rounds of one run of all phases."""
    return combine([one.bounds() for one in inner], merge_gaussians=True)


def inner_refusals(inner: tuple[Theorem, ...], where: str) -> list[Problem]:
    """Refuse what the phases inside refuse, and those that are analysed by drawing samples; `where` ends the sentence."""
    problems = []
    for one in inner:
        problems += one.refusals()
        if one.sampled:
            message = f"{one.node.sampler_kind} sampling is analysed by drawing samples, which is {where}"
            path = one.node.at("sampler", "kind")
            problems.append(one.asked.refusal(path, message, allowed="a sampler whose rounds compose"))
    return problems
