"""Batches of a fixed size, one record replaced or set to zero: all rounds in one recursion, exact for adaptive gradients.

The theorem of `plan.samplers.fixed_size` takes the worst two data sets at each α in every round and composes that. No gradients
attain all of these, so its ε is larger than needed. With V_0(α) = (1 − α)_+ and

    V_t(α) = sup E_{y~P}[V_{t−1}(α·dQ/dP(y))]

over all pairs P = (1−q)N(u, σ²) + qN(x, σ²), Q = (1−q)N(u, σ²) + qN(x′, σ²) of u, x, x′ in the unit ball, δ(ε) of T rounds is at
most V_T(e^ε), and gradients that depend on what was released attain it. Of a record that is set to zero x′ = 0, and the direction
add, in which P and Q are exchanged, has a V of its own. The proof, its hypotheses and the errors of both ends are
at the heads of the files in `rust/core/src/adaptive/`.

- **From above** V_T is the profile of a mechanism: it composes with other phases, and the least of both bounds counts at each ε.
- **From below** the gradients are chosen for one ε. So this end is used only if such rounds are all of the document: a
  composition with other rounds, a sample, or the best of several runs would need other gradients for each ε.

Rounds with the same batches and the same noise are one recursion, wherever they stand. Others have one each, and their
profiles are composed, so that nothing is assumed of the order of phases, which may be runs that take turns. A recursion in the
order of the document would not do: with 100 rounds of σ = 1 and 100 of σ = 2 (1 of 100, δ = 1e-5) it gives 6.5291 if the first
come first, and an attack on the other order has 6.5302.

*Proof.* Let s rounds of one kind and t of another remain, and let W_{s,t}(α) = E[V^A_s(αe^{−L})], L the loss of the pair that
dominates t rounds of B; by the symmetry of composition this is E[V^B_t(αe^{−L})] with the loss of A. If a round of A is next,
with a pair (P, Q) of its class, then E_P[W_{s−1,t}(α·dQ/dP)] = E_L E_P[V^A_{s−1}(αe^{−L}·dQ/dP)] ≤ E_L[V^A_s(αe^{−L})] =
W_{s,t}(α); the same for B. From below all rounds are one recursion in the order of the document and of its schedules, in which
they may run.

How long it takes is known beforehand: rounds × laws. Beyond `MOST_ROUNDS`, or with hardly any noise, the composed bound
remains; so it does for a single round, where it is exact, and for schedules with many stretches of equal rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyaccount.directions import DIRECTIONS
from pyaccount.document.tree import TrainingNode
from pyaccount.plan.common import number, rounds, value_or_symbol
from pyaccount.plan.protection import RunCase, of_run
from pyaccount.plan.rounds import Bounds, best_of, combine, compositions, either_of, tight
from pyaccount.plan.scheduled_rounds import at_round, stretches
from pyaccount.plan.theorem import Around
from pyaccount.profiles import FixedSizeRunProfile, Rounds
from pyaccount.risk.budgets import budget_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyaccount.document.document import Document
    from pyaccount.document.sections import Privacy
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.plan.theorem import Reduction, Theorem

#: The largest number of rounds, which take about two minutes of two cores; the largest one where it is solved for, so that
#: many numbers are tried; and the largest number of stretches of equal rounds.
MOST_ROUNDS, MOST_SOLVED, MOST_STRETCHES = 20_000, 3_000, 16
#: The least noise multiplier: the losses of a round reach further with less noise, and ε is about 30 there.
LEAST_NOISE = 0.25
#: Blanks that may be solved for.
BLANKS = ("epsilon", "delta", "multiplier", "scale", "expected_batch_size", "iterations")

SOURCE = (
    "a recursion over the rounds, as Dong, Durfee & Rogers 2019 (arXiv:1909.13830) have for another mechanism; see also Lebeda, "
    "Regehr, Kamath & Steinke 2024 (arXiv:2405.20769); proof in rust/core/src/adaptive"
)
ATTACKS = {
    "replace-one": (
        "two data sets whose gradients adapt over all rounds: while the loss so far is below ε, the record contributes 1, and "
        "its replacement and all other records −1; otherwise the record and all others −1, and the replacement 1."
    ),
    "zero-out": (
        "two data sets whose gradients adapt over all rounds: in each round either the record contributes 1 and all others −1, "
        "or all contribute 1; the number of the round and the loss so far decide which of the two."
    ),
}
#: The sources of error of a recursion, as the core gives them. What the lattice and the cover of all triangles of gradients add
#: is in the laws themselves, and at most the distance between both ends.
SOURCES_OF_ERROR = (
    "recursion: Fourier transforms",
    "recursion: states beyond its window",
    "recursion: infinite losses",
    "recursion: rounding of masses, weights and profiles",
)
#: What certificates say of the bound that was known before.
COMPOSED = (
    "the worst two data sets at each α in every round, composed without a recursion: the independent checker proves it"
)


class Stretch(NamedTuple):
    """Rounds that are alike and follow one another."""

    dataset: int
    batch: int
    noise: float
    rounds: int


@dataclass(frozen=True, repr=False)
class RecursionTheorem(RunCase, Around):
    """The theorem about one phase of such rounds, around that of its composed bound."""

    node: TrainingNode
    #: Whether such rounds are all of the document, so that the end from below is attained.
    alone: bool

    def stretches(self) -> tuple[Stretch, ...]:
        """Return the rounds in their order, over all runs of the phase."""
        runs = [(self.node, number(self.node.training.iterations))]
        if self.node.schedules():
            runs = [(at_round(self, start), count) for start, count in stretches(self, MOST_STRETCHES) or ()]
        dataset = self.node.training.dataset_size
        assert dataset is not None  # the sampler's rules require it
        once = [Stretch(dataset, int(run.batch_size()), number(run.noise.multiplier), count) for run, count in runs]
        alike = len(once) == 1
        return (once[0]._replace(rounds=rounds(self.node)),) if alike else tuple(once * self.node.count)

    def words(self) -> Reduction:
        """Return the theorem in words. What is assumed is what the composed bound assumes."""
        inner, training = self.inner.words(), self.node.training
        size = training.expected_batch_size
        batch = self.node.batch_size() if isinstance(size, int) else "m"
        sigma, zeroed = value_or_symbol(self.node.noise.multiplier, "σ"), self.asked.privacy.adjacency == "zero-out"
        replacement, points = ("0", "u, x") if zeroed else ("x′", "u, x, x′")
        pair = (
            f"V_t(α) = sup E_P[V_(t−1)(α·dQ/dP)] over P = (1−q)N(u) + qN(x), Q = (1−q)N(u) + qN({replacement}), {points} in the "
            f"unit ball; q = {batch}/{training.dataset_size}, σ = {sigma}"
        )
        changed = replace(inner, theorem="the exact worst case over adaptive gradients", source=SOURCE, pair=pair)
        attack = ATTACKS[self.asked.privacy.adjacency]
        return replace(changed, remark=None, lower_end=attack) if self.alone else changed


def with_recursion(document: Document, theorems: tuple[Theorem, ...]) -> tuple[Theorem, ...]:
    """Return the theorems of the phases: around those of fixed-size batches the recursion, where it is used."""
    blank = document.blank
    asked = document.accounting.method == "auto" and budget_of(document) is None
    if (
        not asked
        or (blank is not None and blank[-1] not in BLANKS)
        or any(one.sampled or one.of_kinds for one in theorems)
    ):
        return theorems
    lengths = [one.fixed_rounds() for one in theorems]
    known = [MOST_SOLVED if length == "solve" else length for length in lengths if length is not None]
    number_of_stretches = 0
    for one, length in zip(theorems, lengths, strict=True):
        if length is not None:
            found = _number_of_stretches(of_run(one), length)
            if found is None:
                return theorems
            number_of_stretches += found
    if not 0 < number_of_stretches <= MOST_STRETCHES or not 1 < sum(known) <= MOST_ROUNDS:
        return theorems
    alone = len(known) == len(lengths)
    return tuple(
        one if length is None else RecursionTheorem(one.asked, of_run(one).node, one, alone)
        for one, length in zip(theorems, lengths, strict=True)
    )


def _number_of_stretches(run: RunCase, length: int | Literal["solve"]) -> int | None:
    """Return how many stretches of equal rounds a phase has; None if it is not known, or more than are analysed."""
    if not run.node.schedules():
        return 1
    found = None if length == "solve" else stretches(run, MOST_STRETCHES)
    return None if found is None else len(found) * run.node.count


def _refused(stretch: Stretch) -> bool:
    """Return whether rounds are not analysed: hardly any noise, or everybody in every batch."""
    return stretch.noise < LEAST_NOISE or stretch.batch >= stretch.dataset


def recursion_bounds(
    privacy: Privacy, theorems: tuple[Theorem, ...], composed: DirectedBounds, *, merge_gaussians: bool
) -> DirectedBounds | None:
    """Return the rounds of a document whose fixed-size batches are analysed by the recursion; None if none are.

    `composed` are the rounds without the recursion. From above the least of both counts. From below, if such rounds are all of
    the document, the best of the attack and of two concrete data sets.
    """
    ours = [one for one in theorems if isinstance(one, RecursionTheorem)]
    in_order = tuple(stretch for one in ours for stretch in one.stretches())
    total = sum(one.rounds for one in in_order)
    if not ours or privacy.delta == 0.0 or any(map(_refused, in_order)) or total > MOST_ROUNDS:
        return None
    delta = None if privacy.delta == "solve" else number(privacy.delta)
    epsilon = number(privacy.epsilon) if delta is None else None
    zeroed = privacy.adjacency == "zero-out"

    def both(phases: tuple[Stretch, ...], *, below: bool) -> tuple[FixedSizeRunProfile, FixedSizeRunProfile]:
        remove = FixedSizeRunProfile(phases, delta, epsilon, below, zeroed)
        return remove, replace(remove, add=zeroed)

    lengths: dict[Stretch, int] = {}
    for stretch in in_order:
        kind = stretch._replace(rounds=0)
        lengths[kind] = lengths.get(kind, 0) + stretch.rounds
    parts = [one.bounds() for one in theorems if not isinstance(one, RecursionTheorem)]
    parts += [tight(*both((kind._replace(rounds=count),), below=False), 1) for kind, count in lengths.items()]
    sharper = combine(parts, merge_gaussians=merge_gaussians)
    bounds: DirectedBounds = {}
    for side, attack in zip(DIRECTIONS, both(in_order, below=True), strict=True):
        above = either_of([sharper[side].upper, composed[side].upper])
        below = composed[side].lower
        if ours[0].alone:
            below = best_of([(Rounds(attack, 1),), below])
        bounds[side] = Bounds(above, below, below if ours[0].alone else None)
    return bounds


def recursion_errors(upper: tuple[Rounds, ...], epsilon: float) -> Iterator[tuple[str, float]]:
    """Yield what each source of error of a recursion adds to δ at ε, in words and numbers; nothing for other rounds."""
    for item in (item for composition in compositions(upper) for item in composition):
        if isinstance(item.profile, FixedSizeRunProfile):
            yield from zip(SOURCES_OF_ERROR, item.profile.curve().errors(epsilon), strict=True)
