"""The verdict of an audit, as data and in text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from pyaccount.errors import printable
from pyaccount.rounding import down, nearest, plain, up

#: What no audit can tell.
NOT_SHOWN = (
    "Consistent is not proven: an audit finds only what its attack sees, so a run with a larger ε, a weaker attack or too few "
    "canaries look the same; the guarantee rests on the certificate and its assumptions alone."
)


@dataclass(frozen=True, slots=True)
class OneRunTest:
    """One choice of how many canaries are guessed, and how well that went."""

    #: Canaries guessed to be included, those with the highest scores, and to be excluded, those with the lowest.
    guessed_included: int
    guessed_excluded: int
    right: int
    #: Pr[so many right or more] at most if the certificate is true, for this choice alone.
    probability: float
    #: ε at least, at the certificate's δ; false with probability at most (1 − confidence)/choices, and what is larger too.
    epsilon_lower: float


@dataclass(frozen=True, slots=True)
class ManyRunsTest:
    """A threshold on the score, and the error rates that are proven of it."""

    threshold: float
    #: Whether it was chosen by a random half of the runs, which then was left out.
    chosen_by_half: bool
    #: Runs that the rates are of, with the canary and without it.
    included: int
    excluded: int
    false_positives: int
    false_negatives: int
    #: Both at most, at the confidence of the audit together.
    false_positive_rate: float
    false_negative_rate: float
    epsilon_lower: float


@dataclass(frozen=True, slots=True)
class Audit:
    """Whether scores of canaries are consistent with a certificate. True if they are."""

    pyaccount: Literal[1]
    kind: Literal["audit"]
    #: The certificate's file; None for one in memory.
    file: str | None
    name: str
    document_sha256: str
    verdict: Literal["consistent", "refuted"]
    #: A true certificate is refuted, and `epsilon_lower` exceeds the true ε, with probability at most 1 − confidence each.
    confidence: float
    #: That of the certificate's own randomness, which a refutation may be due to as well.
    failure_probability: float
    runs: Literal["one", "many"]
    canaries: int
    included: int
    #: ε at most, by the certificate, at `delta`.
    epsilon: float
    delta: float
    #: ε at least, by the audit, at `delta`, whichever choice gave it.
    epsilon_lower: float
    #: Pr[a result like this] at most if the certificate is true, all choices paid for; None for many runs.
    probability: float | None
    one_run: tuple[OneRunTest, ...]
    many_runs: ManyRunsTest | None
    #: Of random orders: of equal scores, and of halves.
    seed: int
    #: What must be true of the canaries.
    assumptions: tuple[str, ...]
    #: What the verdict does not show.
    not_shown: str

    def __bool__(self) -> bool:
        """Whether nothing speaks against the certificate at this confidence."""
        return self.verdict == "consistent"

    def to_json(self) -> str:
        """The verdict as JSON text."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace").decode() + "\n"

    def to_text(self) -> str:
        """The verdict for people."""
        return "".join(f"{printable(line)}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        word = "consistent with the certificate" if self else "REFUTES the certificate"
        yield f"Audit of {json.dumps(self.name, ensure_ascii=False)}: {word}, at confidence {plain(self.confidence)}"
        yield ""
        bounds = f"at least {down(self.epsilon_lower)} by the audit   at most {up(self.epsilon)} certified"
        yield f"ε at δ = {plain(self.delta)}   {bounds}"
        if self.probability is not None:
            yield f"probability    at most {up(self.probability, 3)} of such a result, if the certificate is true"
        if self.failure_probability:
            yield f"               and at most {up(self.failure_probability, 3)} that the certificate's own samples misled it"
        what = "in one run" if self.runs == "one" else "each in a run of its own"
        yield f"canaries       {self.canaries:_} {what}, {self.included:_} of them included"
        if self.one_run:
            yield ""
            yield "  guessed in   guessed out   right   probability at most   ε at least"
            for one in self.one_run:
                yield (
                    f"  {one.guessed_included:>10_}{one.guessed_excluded:>14_}{one.right:>8_}{up(one.probability, 3):>22}"
                    f"{down(one.epsilon_lower, 4):>13}"
                )
            if len(self.one_run) > 1:
                level = nearest(1.0 - self.confidence, 3)
                choices = len(self.one_run)
                yield f"  {choices} choices, each at a level of {level}/{choices}; “at most” is of one by itself"
        if self.many_runs is not None:
            found = self.many_runs
            how = ", chosen by the other half of the runs" if found.chosen_by_half else ""
            yield f"threshold      {found.threshold!r}{how}"
            yield (
                f"errors         false positives {found.false_positives:_} of {found.excluded:_}: at most "
                f"{up(found.false_positive_rate, 4)}; false negatives {found.false_negatives:_} of {found.included:_}: at most "
                f"{up(found.false_negative_rate, 4)}"
            )
        yield ""
        yield "This holds if:"
        yield from (f"  - {assumption}" for assumption in self.assumptions)
        yield ""
        yield self.not_shown
