"""What the reductions share: words of assumptions, the refusal of groups, how parameters that may be blank are written, and the
ε values of a profile that the document leaves open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document.epochs import counted, epochs_of

if TYPE_CHECKING:
    from pyaccount.document import Body, Document, Privacy, Solve
    from pyaccount.errors import Problem

#: Why a blank cannot be the number of iterations, and what to write instead.
NO_ITERATIONS = "the matrix depends on the number of iterations, so that with one they cannot be solved for"
OTHER_BLANKS = "a number here, and `solve` at noise.multiplier, privacy.epsilon or privacy.delta"
#: What can be written where a matrix must be banded.
BANDED = "identity, banded-square-root, optimal-toeplitz or toeplitz"

SECRET = (
    "The sampled batches are secret: nothing but the noisy sums is released, and no log, timing or order reveals them."
)
CLIPPING = "Each record's contribution to a batch is clipped to norm 1 in units of the clip norm before it is summed."
NOISE = (
    "Fresh Gaussian noise with standard deviation σ times the clip norm is added to every released sum, drawn from a "
    "generator that cannot be predicted."
)
MATRIX_NOISE = (
    "The noise of the iterations is C⁻¹Z, C the matrix stated and Z with independent Gaussian rows of standard deviation σ times "
    "the clip norm, drawn from a generator that cannot be predicted; Z is released in no other way."
)
ADJACENCY = {
    "add-remove": "Neighbouring data sets differ in {up_to} added, or {up_to} removed.",
    "zero-out": "Neighbouring data sets differ in {up_to} whose {contributions} replaced by zero; the dataset size is public.",
    "replace-one": "Neighbouring data sets differ in {up_to} replaced by {others}.",
}
USERS = {
    "add-remove": "Neighbouring data sets differ in one user, all of whose records are added, or all removed.",
    "zero-out": "Neighbouring data sets differ in one user, all of whose records' contributions are replaced by zero.",
    "replace-one": "Neighbouring data sets differ in one user, who is replaced by another with other records.",
}
NORMALISATION = "Sums are normalised by the expected batch size, a constant, never by the size of the batch drawn."


def shown(value: float | Solve, symbol: str) -> str:
    """A parameter for people: its symbol while it is the blank."""
    return symbol if value == "solve" else f"{value:g}" if isinstance(value, float) else str(value)


def number(value: float | Solve) -> float:
    """A parameter that has been filled in."""
    if value == "solve":
        raise AssertionError("a blank reached the arithmetic")
    return value


def whole(value: int | Solve) -> int:
    """A whole-number parameter that has been filled in."""
    if value == "solve":
        raise AssertionError("a blank reached the arithmetic")
    return value


def moves(document: Document) -> int:
    """By how much one record moves the sum of a round, in clip norms: 2 where it is replaced by another."""
    return 2 if document.privacy.adjacency == "replace-one" else 1


#: What holds for groups whatever the mechanism: k steps from neighbour to neighbour, each with δ grown by e^ε of those before.
GROUP_LEMMA = "(ε, δ) for one is (kε, δ·(e^{kε} − 1)/(e^ε − 1)) for k by the group lemma"


def group_refusals(document: Document, body: Body) -> list[Problem]:
    """Groups of records, for a sampler that draws each of them for itself."""
    if document.privacy.group_size == 1:
        return []
    message = (
        f"{body.sampler.kind} samples each record for itself: no bound is implemented for groups of records, whose "
        f"participations interleave; {GROUP_LEMMA}; for users with several records the sampler is user-b-min-sep, with the "
        "user as the unit"
    )
    return [document.problem("no-valid-bound", ("privacy", "group_size"), message, allowed="1")]


def rounds_text(body: Body) -> str:
    """How many rounds a body runs, for people."""
    iterations = shown(body.training.iterations, "n")
    return iterations if body.count == 1 else f"{body.count} × {iterations}"


def rounds(body: Body) -> int:
    """How many rounds a body runs."""
    return body.count * whole(body.training.iterations)


def length_text(body: Body) -> str | None:
    """What the rounds of a run have to do with the epochs that its document asks for; None where it asks for none."""
    length = None if body.epochs is None else body.epoch()
    if length is None or body.epochs is None or body.training.iterations == "solve":
        return None
    done = whole(body.training.iterations)
    exactly = counted(epochs_of(done, length))
    asked = f"{counted(body.epochs)} of {float(length):.10g} rounds each"
    if exactly == counted(body.epochs):
        return f"A run has {done} rounds: {asked}."
    return f"A run has {done} rounds, {exactly}: {asked}, rounded up to a whole round."


def basic_assumptions(privacy: Privacy, body: Body | None = None) -> tuple[str, ...]:
    """What every reduction here assumes of the run; with a matrix, of the body that has it."""
    noise = NOISE if body is None or body.matrix.kind == "identity" else MATRIX_NOISE
    users = body is not None and body.sampler.protects_users
    return (USERS[privacy.adjacency] if users else neighbours(privacy), CLIPPING, noise)


def neighbours(privacy: Privacy) -> str:
    """Which data sets are neighbours, as an assumption; k while the group's size is the blank."""
    if privacy.group_size == 1:
        words = {"up_to": "one record", "contributions": "contribution is", "others": "an arbitrary other one"}
    else:
        size = "k" if privacy.group_size == "solve" else str(privacy.group_size)
        words = {"up_to": f"up to {size} records", "contributions": "contributions are", "others": "arbitrary others"}
    return ADJACENCY[privacy.adjacency].format(**words)


#: Where a profile is told, as shares of the certified ε. What an attacker can do follows from these points alone: small ε, and 0
#: itself, limit attacks that may often be wrong, large ε those that may not.
PROFILE_SHARES = (0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.375, 1.5)


def default_profile(epsilon: float) -> tuple[float, ...]:
    """The ε values of a profile that the document leaves open: 0 and around the certified one, two digits each."""
    if epsilon <= 0.0:
        return (0.0,)
    return tuple(float(f"{share * epsilon:.2g}") for share in PROFILE_SHARES)
