"""Batches of a fixed size, one record replaced or set to zero: all rounds in one recursion, exact for adaptive gradients.

The theorem of `plan.samplers.fixed_draws` takes the worst two data sets at each α in every round and composes that. No gradients
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
remains; so it does for a single round, where it is exact, and for schedules with many segments of equal rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.document.document import Document
from pyaccount.document.sections import Privacy
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import NumericsError
from pyaccount.plan.common import number, rounds, value_or_symbol
from pyaccount.plan.protection import RunCase, of_run
from pyaccount.plan.rounds import Bounds, DirectedBounds, best_of, combine, compositions, either_of, tight
from pyaccount.plan.schedule_values import at_round, segments
from pyaccount.plan.theorem import Around, Reduction, Theorem
from pyaccount.profiles import FixedSizeRunProfile, Rounds
from pyaccount.risk.budgets import budget_of

#: The largest number of rounds, which take about two minutes of two cores; the largest one where it is solved for, so that
#: many numbers are tried; and the largest number of segments of equal rounds.
MOST_ROUNDS, MOST_SOLVED, MOST_SEGMENTS = 20_000, 3_000, 16
#: The least noise multiplier: the losses of a round reach further with less noise, and ε is about 30 there.
LEAST_NOISE = 0.25
#: The largest expected number of draws of the records in question in one round, and the least ln of the chance of none.
MOST_DRAWN, LEAST_LOG_UNDRAWN = 1.0, -25.0
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
        "two data sets whose gradients adapt over all rounds: in each round, or block of rounds of a long run, either the record "
        "contributes 1 and all others −1, or all contribute 1; the number of the round and the loss so far decide."
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


class Segment(NamedTuple):
    """Rounds that are alike and follow one another: how they draw, for the core, their noise multiplier and their number."""

    sampler: str
    group: int
    dataset: int
    batch: int
    subset: int
    noise: float
    rounds: int


@dataclass(frozen=True, repr=False)
class RecursionTheorem(RunCase, Around):
    """The theorem about one phase of such rounds, around that of its composed bound."""

    node: TrainingNode
    #: Whether such rounds are all of the document, so that the end from below is attained.
    alone: bool
    #: The largest number of rounds that are analysed.
    most: int

    def segments(self) -> tuple[Segment, ...]:
        """Return the rounds in their order, over all runs of the phase."""
        runs = [(self.node, number(self.node.training.iterations))]
        if self.node.schedules():
            runs = [(at_round(self, start), count) for start, count in segments(self, MOST_SEGMENTS) or ()]
        once, group = [], number(self.asked.privacy.group_size)
        for run, count in runs:
            sampler, dataset, batch, subset = self.inner.fixed_draws().on(run).draws()
            once.append(Segment(sampler, group, dataset, int(batch), subset, number(run.noise.multiplier), count))
        return (once[0]._replace(rounds=rounds(self.node)),) if len(once) == 1 else tuple(once * self.node.count)

    def used(self) -> bool:
        """Return whether these rounds are analysed; while a blank is open, whether they may be."""
        blank = self.asked.blank
        if blank is not None and blank[-1] not in ("epsilon", "delta"):
            return True
        return rounds(self.node) <= self.most and not any(map(_refused, self.segments()))

    def words(self) -> Reduction:
        """Return the theorem in words. What is assumed is what the composed bound assumes."""
        inner, training = self.inner.words(), self.node.training
        if not self.used():
            return inner
        sigma, zeroed = value_or_symbol(self.node.noise.multiplier, "σ"), self.asked.privacy.adjacency == "zero-out"
        replacement, points = ("0", "u, x") if zeroed else ("x′", "u, x, x′")
        attack = ATTACKS[self.asked.privacy.adjacency]
        if not self.once:
            grouped = (
                f"{attack} Each record of a group like the first." if self.asked.privacy.group_size != 1 else attack
            )
            return replace(inner, lower_end=grouped)
        size = training.expected_batch_size
        batch = self.node.batch_size() if isinstance(size, int) else "m"
        pair = (
            f"V_t(α) = sup E_P[V_(t−1)(α·dQ/dP)] over P = (1−q)N(u) + qN(x), Q = (1−q)N(u) + qN({replacement}), {points} in the "
            f"unit ball; q = {batch}/{training.dataset_size}, σ = {sigma}"
        )
        theorem = "the exact worst case over adaptive gradients"
        changed = replace(inner, theorem=theorem, source=SOURCE, pair=pair)
        return replace(changed, remark=None, lower_end=attack) if self.alone else changed

    @property
    def once(self) -> bool:
        """Whether one record is drawn at most once in a round. Otherwise only the attack is known, and no bound from above."""
        once: bool = self.inner.fixed_draws().drawn_once()
        return once and self.asked.privacy.group_size == 1


def with_recursion(document: Document, theorems: tuple[Theorem, ...]) -> tuple[Theorem, ...]:
    """Return the theorems of the phases: around those of fixed-size batches the recursion, where it is used."""
    blank, plans = document.blank, [one.fixed_draws() for one in theorems]
    lengths = [None if plan is None else plan.fixed_rounds() for plan in plans]
    open_, alone = "solve" in lengths, None not in lengths
    if (
        document.accounting.method != "auto"
        or budget_of(document) is not None
        or (blank is not None and blank[-1] not in BLANKS)
        or any(one.sampled or one.of_kinds for one in theorems)
        or (open_ and len(lengths) > 1)
        or not 1 < sum(MOST_SOLVED if length == "solve" else length or 0 for length in lengths) <= MOST_ROUNDS
    ):
        return theorems
    pairs = list(zip(theorems, lengths, strict=True))
    if sum(_number_of_segments(of_run(one), length) for one, length in pairs if length is not None) > MOST_SEGMENTS:
        return theorems
    most = MOST_SOLVED if open_ else MOST_ROUNDS
    wrapped = [
        one if length is None else RecursionTheorem(one.asked, of_run(one).node, one, alone, most)
        for one, length in pairs
    ]
    return tuple(one.inner if isinstance(one, RecursionTheorem) and not (alone or one.once) else one for one in wrapped)


def _number_of_segments(run: RunCase, length: int | Literal["solve"]) -> int:
    """Return how many segments of equal rounds a phase has; more than are analysed if it is not known."""
    if not run.node.schedules():
        return 1
    found = None if length == "solve" else segments(run, MOST_SEGMENTS)
    return MOST_SEGMENTS + 1 if found is None else len(found) * run.node.count


def _refused(segment: Segment) -> bool:
    """Return whether rounds are not analysed: hardly any noise, records that are often drawn, or no round without them."""
    if segment.noise < LEAST_NOISE or segment.batch * segment.group > MOST_DRAWN * segment.dataset:
        return True
    counts, logs, _ = _core.copies(*segment[:5])
    return len(counts) < 2 or counts[0] != 0 or logs[0] < LEAST_LOG_UNDRAWN


def _found(directions: tuple[FixedSizeRunProfile, ...]) -> bool:
    """Return whether a recursion could be computed: not far beyond all losses, and not if several draws make them very large."""
    try:
        for run in directions:
            run.build()
    except NumericsError:
        return False
    return True


class _Computed(NamedTuple):
    """The runs that are bounded from above, of both directions for each kind of rounds, and the attack; None for no attack."""

    runs: tuple[tuple[FixedSizeRunProfile, FixedSizeRunProfile], ...]
    attacks: tuple[FixedSizeRunProfile, FixedSizeRunProfile] | None


def _computed(privacy: Privacy, theorems: tuple[Theorem, ...]) -> _Computed | None:
    """Return what the recursion gives for these numbers; None if it gives nothing."""
    ours = [one for one in theorems if isinstance(one, RecursionTheorem)]
    if not ours or privacy.delta == 0.0 or not all(one.used() for one in ours):
        return None
    delta = None if privacy.delta == "solve" else number(privacy.delta)
    epsilon = number(privacy.epsilon) if delta is None else None
    zeroed = privacy.adjacency == "zero-out"

    def both(phases: tuple[Segment, ...], *, below: bool) -> tuple[FixedSizeRunProfile, FixedSizeRunProfile]:
        remove = FixedSizeRunProfile(phases, delta, epsilon, below, zeroed)
        return remove, replace(remove, add=zeroed)

    lengths: dict[Segment, int] = {}
    for segment in (segment for one in ours if one.once for segment in one.segments()):
        kind = segment._replace(rounds=0)
        lengths[kind] = lengths.get(kind, 0) + segment.rounds
    runs = tuple(both((kind._replace(rounds=count),), below=False) for kind, count in lengths.items())
    if not all(map(_found, runs)):
        return None
    attacks = both(tuple(segment for one in ours for segment in one.segments()), below=True) if ours[0].alone else None
    if attacks is not None and not _found(attacks):
        attacks = None
    return _Computed(runs, attacks) if runs or attacks else None


def in_effect(privacy: Privacy, theorems: tuple[Theorem, ...]) -> tuple[Theorem, ...]:
    """Return the theorems that bound these numbers: without the recursion where it gave nothing, or no attack."""
    computed = _computed(privacy, theorems)

    def of(one: Theorem) -> Theorem:
        if not isinstance(one, RecursionTheorem):
            return one
        if computed is None or not (one.once or computed.attacks):
            return one.inner
        return replace(one, alone=computed.attacks is not None)

    return tuple(map(of, theorems))


def recursion_bounds(
    privacy: Privacy, theorems: tuple[Theorem, ...], composed: DirectedBounds, *, merge_gaussians: bool
) -> DirectedBounds | None:
    """Return the rounds of a document whose fixed-size batches are analysed by the recursion; None if none are.

    `composed` are the rounds without the recursion. From above the least of both counts. From below, if such rounds are all of
    the document, the best of the attack and of two concrete data sets.
    """
    computed = _computed(privacy, theorems)
    if computed is None:
        return None
    sharper = composed
    if computed.runs:
        parts = [one.bounds() for one in theorems if not (isinstance(one, RecursionTheorem) and one.once)]
        sharper = combine([*parts, *(tight(*run, 1) for run in computed.runs)], merge_gaussians=merge_gaussians)
    exact = all(one.once for one in theorems if isinstance(one, RecursionTheorem))
    bounds: DirectedBounds = {}
    for place, side in enumerate(DIRECTIONS):
        above, below, inner = composed[side].upper, composed[side].lower, composed[side].inner
        if computed.runs:
            above, inner = either_of([sharper[side].upper, above]), None
        if computed.attacks is not None:
            below = best_of([(Rounds(computed.attacks[place], 1),), below])
            inner = below if exact else inner
        bounds[side] = Bounds(above, below, inner)
    return bounds


def recursion_errors(upper: tuple[Rounds, ...], epsilon: float) -> Iterator[tuple[str, float]]:
    """Yield what each source of error of a recursion adds to δ at ε, in words and numbers; nothing for other rounds."""
    for item in (item for composition in compositions(upper) for item in composition):
        if isinstance(item.profile, FixedSizeRunProfile):
            yield from zip(SOURCES_OF_ERROR, item.profile.curve().errors(epsilon), strict=True)
