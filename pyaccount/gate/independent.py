"""The verdict of the independent checker, as data with a schema and as a page.

The checker itself is the room `independent`, which knows nothing of the others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pyaccount.certificate.reading import Read
from pyaccount.errors import CertificateError, printable
from pyaccount.gate.verdict import Rule
from pyaccount.independent.apart import check_apart
from pyaccount.pages.page import Badge, Fact, FactList, Page, PageSection
from pyaccount.pages.readable import ReadableData

#: The default of the time after which the proof is ended.
SECONDS = 100.0

#: Why the guarantee of a certificate with a composed bound is not proven although that is.
BY_RECURSION = (
    "the guarantee follows from a recursion over rounds, which the checker does not have; the composed bound is proven"
)

IndependentAnswer = Literal["proven", "consistent", "not checkable", "refuted"]

#: What each answer states.
_MEANING: dict[IndependentAnswer, str] = {
    "proven": "the guarantee is proven by integers and rational numbers, without the program that made the certificate",
    "consistent": "the guarantee is neither proven nor refuted",
    "not checkable": "nothing is stated about the guarantee, because no bound is implemented for the document",
    "refuted": "the guarantee is false for two data sets that the document allows, or the record of its tests contradicts it",
}


@dataclass(frozen=True, slots=True)
class ProvenPoint:
    """An ε and a δ."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class IndependentVerdict(ReadableData):
    """What the independent checker proved of the guarantee of a certificate."""

    pyaccount: Literal[1]
    kind: Literal["independent-verdict"]
    name: str
    verdict: IndependentAnswer
    #: Why the guarantee is not proven; None if it is.
    reason: str | None
    #: The guarantee of the certificate.
    claimed: ProvenPoint | None
    #: Which statement of the certificate is proven; None if none is.
    proves: Literal["guarantee", "composed bound"] | None
    #: What the checker proves at the same δ: an upper bound of ε. None if it proves none.
    proven: ProvenPoint | None
    #: At the claimed ε, δ is proven up to the factor 1 + looser_by; 0 if it is proven as it stands. None if it is not proven.
    looser_by: float | None
    #: A lower bound of δ at the claimed ε, if one was computed.
    delta_lower: float | None
    #: The spacing of the lattice of losses, in nats; 0 if none was needed.
    spacing: float | None
    #: An upper bound on the probability that a false guarantee is proven: 0 if the proof does not rest on samples that the
    #: checker drew. None if the guarantee is not proven.
    failure_probability: float | None
    #: The statements that were checked about a certificate that rests on samples, and those that were not.
    checked: list[str]
    not_checked: list[str]
    #: Processor time, in seconds.
    seconds: float
    file: str

    def __bool__(self) -> bool:
        """Return whether the guarantee is proven, so that `if not …` works as a gate."""
        return self.verdict == "proven"

    def page(self) -> Page:
        """Return the verdict as a page."""
        facts = [Fact("verdict", (_MEANING[self.verdict],))]
        if self.reason is not None:
            facts.append(Fact("reason", (printable(self.reason),)))
        if self.claimed is not None:
            facts.append(Fact("claimed", (f"ε = {self.claimed.epsilon!r}, δ = {self.claimed.delta!r}",)))
        if self.proven is not None:
            text = f"ε is at most {self.proven.epsilon!r} at δ = {self.proven.delta!r}"
            facts.append(Fact("proven here", (text,), ("an upper bound",)))
        if self.looser_by:
            facts.append(Fact("looser", (f"at the claimed ε, δ is proven up to the factor 1 + {self.looser_by!r}",)))
        if self.delta_lower is not None:
            facts.append(
                Fact("at least", (f"δ is at least {self.delta_lower!r} at the claimed ε",), ("a lower bound",))
            )
        if self.failure_probability:
            words = f"a false guarantee is proven with probability at most {self.failure_probability!r}"
            facts.append(Fact("samples", (words,), ("over the checker's own randomness",)))
        sections = [PageSection("independent", "What was proven independently", (FactList(tuple(facts)),))]
        for key, title, lines in (
            ("checked", "What was checked", self.checked),
            ("not-checked", "What was not checked", self.not_checked),
        ):
            if lines:
                sections.append(PageSection(key, title, (FactList(tuple(map(_fact, lines))),)))
        badge = Badge(self.verdict, good=self.verdict == "proven")
        return Page("Independent check", self.file, tuple(sections), badges=(badge,))


def _fact(statement: str) -> Fact:
    """Return a statement under what it is about."""
    about, _, rest = statement.partition(": ")
    return Fact(about, (rest,)) if rest else Fact("record", (statement,))


class AskedProof(NamedTuple):
    """The requirement that the independent checker proves a guarantee, and who requires it."""

    origin: str
    #: The time after which the proof is ended.
    seconds: float

    @property
    def proves(self) -> bool:
        """Whether limits are for what is proven independently."""
        return True

    def rule(self, read: Read) -> Rule:
        """Return whether the guarantee of a certificate is proven independently, or its composed bound beside that."""
        bound = read.certificate().composed_bound
        claim = read.raw if bound is None or bound.epsilon is None else _with_composed_bound(read.raw)
        found = check_apart(json.dumps(claim), self.seconds, folder=Path(read.file).parent)
        remark = (
            found["reason"]
            if claim is read.raw
            else found["reason"] or "the composed bound, for which the limits are judged"
        )
        return Rule("independent", self.origin, "proven", found["verdict"], found["verdict"] == "proven", remark)


def _with_composed_bound(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate whose guarantee is its composed bound."""
    bound = raw["composed_bound"]
    return {**raw, "guarantee": {**raw["guarantee"], "epsilon": bound["epsilon"], "delta": bound["delta"]}}


def verify_independently(path: str, seconds: float) -> IndependentVerdict:
    """Return the verdict of the independent checker on a certificate file.

    If a certificate states a composed bound beside its guarantee, that is what is checked, since the checker has no recursion:
    the guarantee is then at best consistent, and `proves` says what is proven. `seconds` is the time after which the proof is
    ended. Raises `CertificateError` if the file is not a certificate.
    """
    proves = None
    try:
        text = Path(path).read_text(encoding="utf-8")
        raw = json.loads(text)
        bound = raw.get("composed_bound") if isinstance(raw, dict) else None
        composed = isinstance(bound, dict) and bound.get("epsilon") is not None
        asked = json.dumps(_with_composed_bound(raw)) if composed else text
        found: dict[str, Any] = check_apart(asked, seconds, folder=Path(path).parent)
        if found["verdict"] == "proven":
            proves = "composed bound" if composed else "guarantee"
        if composed:
            own = {key: raw["guarantee"][key] for key in ("epsilon", "delta")}
            changed = {"verdict": "consistent", "reason": BY_RECURSION, "looser_by": None, "failure_probability": None}
            found = {**found, "claimed": own, **({**changed, "proven": found["claimed"]} if proves else {})}
    except (OSError, ValueError, RecursionError, KeyError) as error:
        message = (
            f"{path} cannot be checked: {error}. The independent checker reads the normal form in a certificate: give a "
            "certificate in JSON."
        )
        raise CertificateError(message) from error
    points = {key: None if found[key] is None else ProvenPoint(**found[key]) for key in ("claimed", "proven")}
    return IndependentVerdict(**{**found, **points, "proves": proves, "file": path})
