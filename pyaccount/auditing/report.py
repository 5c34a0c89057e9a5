"""The verdict of an audit, as data and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyaccount.pages.page import (
    Badge,
    Block,
    Checklist,
    Content,
    Fact,
    FactList,
    Page,
    PageSection,
    PageTable,
    Paragraph,
    Quantity,
    at_least,
    at_most,
    directed,
    every_digit,
    filled,
)
from pyaccount.pages.readable import ReadableData
from pyaccount.rounding import rounded_nearest, shortest

#: The note on scores that are lower for included canaries, and the largest p-value of a rank test at which it is made.
REVERSED = (
    "The scores look reversed: canaries that were included have the lower ones, which is as telling as the higher ones would be. "
    "This audit expects higher scores of included canaries, so it cannot see it. The direction must be fixed before anybody "
    "looks at who was included: change the sign of the score, and audit canaries that were not looked at yet."
)
LEVEL_OF_REVERSED = 1e-3

#: The origins of the numbers of an audit.
ORIGINS = {"audit": "Computed from the scores of the canaries.", "certificate": "Read from the certificate."}

#: The note on what no audit can show.
NOT_SHOWN = (
    "Consistent is not proven: an audit finds only what its attack sees, so a run with a larger ε, a weaker attack or too few "
    "canaries look the same; the guarantee rests on the certificate and its assumptions alone."
)


@dataclass(frozen=True, slots=True)
class OneRunTest:
    """One choice of how many canaries are guessed, and how many guesses are right."""

    #: Canaries guessed to be included (those with the highest scores) and to be excluded (those with the lowest).
    guessed_included: int
    guessed_excluded: int
    right: int
    #: Upper bound on the probability of at least this many right guesses if the certificate is true, for this choice
    #: alone.
    probability: float
    #: Lower bound on ε at the certificate's δ; it exceeds the true ε with probability at most (1 − confidence)/choices.
    epsilon_lower: float


@dataclass(frozen=True, slots=True)
class ManyRunsTest:
    """A threshold on the score, and the error rates that are proven for it."""

    threshold: float
    #: Whether a random half of the runs chose it; that half is then left out.
    chosen_by_half: bool
    #: How many runs with the canary, and how many without it, give the rates.
    included: int
    excluded: int
    false_positives: int
    false_negatives: int
    #: Upper bounds on both rates, which hold together at the confidence of the audit.
    false_positive_rate: float
    false_negative_rate: float
    epsilon_lower: float


@dataclass(frozen=True, slots=True)
class Audit(ReadableData):
    """Whether the scores of canaries are consistent with a certificate; true if they are."""

    pyaccount: Literal[1]
    kind: Literal["audit"]
    #: The certificate's file; None if it was in memory.
    file: str | None
    name: str
    document_sha256: str
    verdict: Literal["consistent", "refuted"]
    #: 1 − confidence bounds the probability that a true certificate is refuted, and that `epsilon_lower` exceeds the
    #: true ε.
    confidence: float
    #: The failure probability of the certificate itself, which may also be the cause of a refutation.
    failure_probability: float
    runs: Literal["one", "many"]
    canaries: int
    included: int
    #: The certificate's upper bound on ε at `delta`.
    epsilon: float
    delta: float
    #: The audit's lower bound on ε at `delta`, the largest over all choices.
    epsilon_lower: float
    #: Upper bound on the probability of such a result if the certificate is true, over all choices; None for many runs.
    probability: float | None
    one_run: tuple[OneRunTest, ...]
    many_runs: ManyRunsTest | None
    #: The seed of random orders: of equal scores, and of halves.
    seed: int
    #: What must be true of the canaries.
    assumptions: tuple[str, ...]
    #: What the verdict does not show.
    not_shown: str
    #: What looks wrong with the scores. It is no part of the verdict.
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the scores are consistent with the certificate at this confidence."""
        return self.verdict == "consistent"

    def page(self) -> Page:
        """Return the verdict as a page."""
        below, above = at_least(self.epsilon_lower, "nats", "audit"), at_most(self.epsilon, "nats", "certificate")
        bounds = filled("{} by the audit, {} certified", directed(below), directed(above))
        facts = [Fact("ε", bounds, ("nats, at δ = ", every_digit(self.delta, "probability", "certificate")))]
        if self.probability is not None:
            chance = directed(at_most(self.probability, "probability", "audit", 3))
            facts.append(Fact("probability", chance, ("of such a result, if the certificate is true",)))
        if self.failure_probability:
            chance = directed(at_most(self.failure_probability, "probability", "certificate", 3))
            facts.append(Fact("certificate fails with", chance, ("probability that its own samples misled it",)))
        how = "all in one run" if self.runs == "one" else "each in a run of its own"
        facts.append(
            Fact("canaries", (_count(self.canaries), ", ", _count(self.included), " of them included"), (how,))
        )
        notes = [Paragraph((note,)) for note in self.notes]
        blocks: list[Block] = [FactList(tuple(facts)), *notes, *self._choices(), *self._threshold()]
        return Page(
            "Audit",
            self.name,
            (
                PageSection("audit", "What the canaries show", tuple(blocks)),
                PageSection("assumptions", "What must be true of the canaries", (Checklist(self.assumptions),)),
                PageSection("worth", "What an audit does not show", (Paragraph((self.not_shown,)),)),
            ),
            badges=(Badge("consistent" if self else "refuted", good=bool(self)),),
            statement=f"The scores {'are consistent with' if self else 'refute'} the certificate, at confidence "
            f"{shortest(self.confidence)}.",
            origins=ORIGINS,
        )

    def _choices(self) -> list[Block]:
        """Return the table of the choices of how many canaries are guessed."""
        if not self.one_run:
            return []
        rows: tuple[tuple[Content, ...], ...] = tuple(
            (
                (_count(one.guessed_included),),
                (_count(one.guessed_excluded),),
                (_count(one.right),),
                (at_most(one.probability, "probability", "audit", 3),),
                (at_least(one.epsilon_lower, "nats", "audit", 4),),
            )
            for one in self.one_run
        )
        level = rounded_nearest(1.0 - self.confidence, 3)
        caption = (
            f"{len(self.one_run)} choices, each at a level of {level}/{len(self.one_run)}; each probability is of that choice "
            f"alone."
            if len(self.one_run) > 1
            else "The choice that was fixed beforehand."
        )
        headings = ("guessed in", "guessed out", "right", "probability at most", "ε at least")
        return [PageTable((caption,), headings, rows)]

    def _threshold(self) -> list[Block]:
        """Return the rows of the threshold on the score and its error rates."""
        test = self.many_runs
        if test is None:
            return []
        how = "chosen by the other half of the runs" if test.chosen_by_half else "fixed beforehand"
        facts = [Fact("threshold", (every_digit(test.threshold, "score", "audit"),), (how,))]
        for label, wrong, runs, rate in (
            ("false positives", test.false_positives, test.excluded, test.false_positive_rate),
            ("false negatives", test.false_negatives, test.included, test.false_negative_rate),
        ):
            content = (_count(wrong), " of ", _count(runs), ": rate ", *directed(at_most(rate, "rate", "audit", 4)))
            facts.append(Fact(label, content))
        return [FactList(tuple(facts))]


def _count(number: int) -> Quantity:
    return Quantity(f"{number:_}", "counted", "exact", "audit")
