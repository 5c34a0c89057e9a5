"""The verdict on certificates, as data and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyaccount.attestation.statement import Subject
from pyaccount.errors import CertificateError, quoted
from pyaccount.pages.page import Badge, Block, Fact, FactList, Page, PageSection, PageTable, Paragraph
from pyaccount.pages.readable import ReadableData
from pyaccount.rounding import shortest, up

#: The value of a limit or a certificate: a number, a word, or several.
Value = float | int | bool | str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One requirement on a certificate: the limit, the value of the certificate, and whether it meets the limit."""

    rule: str
    #: Who requires it: `always`, `command line`, or the name of the policy.
    origin: str
    limit: Value
    value: Value
    passes: bool
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """The (ε, δ) of a certificate that was compared with the limits, and what kind of statement it is."""

    source: Literal["guarantee", "profile", "composed bound"]
    epsilon: float
    delta: float
    kind: Literal["deterministic", "verified", "confidence"]
    failure_probability: float


@dataclass(frozen=True, slots=True)
class SignedBy:
    """A trusted key that signed: where it is trusted, its file, and its name in the envelope."""

    origin: str
    key: str
    key_id: str


@dataclass(frozen=True, slots=True)
class Attested:
    """An attestation that trusted keys signed: the keys, and the files that it is about."""

    signed_by: tuple[SignedBy, ...]
    subjects: tuple[Subject, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file is not a certificate. `slug` is a word that never changes; the reference of errors lists all of them."""

    slug: str
    message: str
    path: str
    line: int | None
    column: int | None

    @classmethod
    def of(cls, error: CertificateError) -> tuple[Unreadable, ...]:
        """Return everything that an error reports."""
        if not error.problems:
            return (cls(error.slug, str(error), "", None, None),)
        return tuple(cls(one.slug, one.message, one.path_text, one.line, one.column) for one in error.problems)


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one certificate. If the file is not a certificate, `error` states why, and nothing else is known about
    it.
    """

    file: str
    passes: bool
    #: The hash of the file's bytes.
    sha256: str | None = None
    name: str | None = None
    error: str | None = None
    #: The same as data: each thing that is wrong with the file, with its place.
    problems: tuple[Unreadable, ...] = ()
    #: The compared (ε, δ), one for each set of limits that limits both.
    used: tuple[Used, ...] = ()
    rules: tuple[Rule, ...] = ()
    #: The attestation that contained the certificate. If no trusted key signed it, it is `None` and nothing in it was
    #: read.
    attestation: Attested | None = None


@dataclass(frozen=True, slots=True)
class PolicyUsed:
    """A policy with which the certificates were compared."""

    name: str
    file: str | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Verdict(ReadableData):
    """The verdict on all certificates. `recomputed` is always false: `pyaccount verify` recomputes."""

    pyaccount: Literal[1]
    kind: Literal["verdict"]
    passes: bool
    recomputed: Literal[False]
    policy: PolicyUsed | None
    certificates: tuple[Judged, ...]

    def __bool__(self) -> bool:
        """Return whether every certificate passes, so that `if not pyaccount.check(…)` works as a gate."""
        return self.passes

    @property
    def readable(self) -> bool:
        """Whether every file contained a certificate."""
        return all(judged.error is None for judged in self.certificates)

    def page(self, *, only_wrong: bool = False) -> Page:
        """Return the verdict as a page: each rule with the certificate's value and the limit.

        With `only_wrong` the certificates and rules that pass are left out.
        """
        shown_here = [one for one in self.certificates if not (only_wrong and one.passes)]
        sections = [_section(judged, place, only_wrong=only_wrong) for place, judged in enumerate(shown_here, start=1)]
        readable = any(judged.error is None for judged in self.certificates)
        if readable and not only_wrong:
            worth = Paragraph(("Nothing was recomputed: `pyaccount verify` does that.",))
            sections.append(PageSection("worth", "What this verdict is worth", (worth,)))
        number = len(self.certificates)
        return Page(
            "Check",
            f"{number} certificate{'' if number == 1 else 's'}",
            tuple(sections),
            badges=(Badge("passes" if self.passes else "fails", good=self.passes),),
        )


def _section(judged: Judged, place: int, *, only_wrong: bool) -> PageSection:
    """Return the section of one certificate: its rules and their remarks."""
    word = "cannot be read" if judged.error is not None else "passes" if judged.passes else "FAILS"
    title = f"{judged.file}: {word}"
    rules = [one for one in judged.rules if not (only_wrong and one.passes)]
    blocks: list[Block] = [] if judged.error is None else [Paragraph((judged.error,))]
    if rules:
        rows = tuple(
            tuple(
                (cell,)
                for cell in (
                    "ok" if one.passes else "FAILS",
                    one.rule,
                    _text(one, one.value, limit=False),
                    _text(one, one.limit, limit=True),
                    one.origin,
                )
            )
            for one in rules
        )
        headings = ("", "rule", "certificate", "limit", "asked for by")
        failing = frozenset(index for index, one in enumerate(rules) if not one.passes)
        blocks.append(PageTable((), headings, rows, words=headings, failing=failing))
    remarks = [
        Fact(one.rule, (part,)) for one in rules if one.remark is not None for part in one.remark.split("\n") if part
    ]
    if remarks:
        blocks.append(FactList(tuple(remarks)))
    return PageSection(f"certificate-{place}", title, tuple(blocks))


def _text(rule: Rule, value: Value, *, limit: bool) -> str:
    """Return a value for people; text from a file is escaped, so that it cannot look like another line."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, tuple):
        return " or ".join(one if one.isprintable() else quoted(one) for one in value)
    if isinstance(value, str):
        return value if value.isprintable() and len(value) <= 64 else quoted(value)
    if rule.rule == "max_age":
        return f"{'at most ' if limit else ''}{_days(float(value))}"
    if limit:
        return f"{'at least' if rule.rule == 'group_size' else 'at most'} {shortest(float(value))}"
    return shortest(float(value)) if isinstance(value, int) else up(value)


def _days(seconds: float) -> str:
    size, unit = next(((s, u) for s, u in ((86400, "d"), (3600, "h"), (60, "min")) if abs(seconds) >= s), (1, "s"))
    return f"{seconds / size:.3g} {unit}"
