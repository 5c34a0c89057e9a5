"""The result of recomputing a certificate, as data and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyaccount.certificate.consistency import Inconsistency
from pyaccount.errors import quoted
from pyaccount.gate.agreement import Difference, Mode
from pyaccount.gate.verdict import Attested
from pyaccount.pages.page import Badge, Block, Fact, FactList, Page, PageSection, Paragraph
from pyaccount.pages.readable import ReadableData

#: The most differences that a page shows; the JSON form has all of them.
MOST_SHOWN = 40

_COMPARED: dict[Mode, str] = {
    "equal": "with its recomputation: composed bounds may be looser by the stated tolerance, sampled numbers have equal bits",
    "proven": "with a new proof of its claim, at its own values: stated bounds may be looser, but not stronger",
}


@dataclass(frozen=True, slots=True)
class Verification(ReadableData):
    """The result of recomputing a certificate from its document: whether it agrees, and every field that differs."""

    pyaccount: Literal[1]
    kind: Literal["verification"]
    file: str
    #: The hash of the file's bytes.
    sha256: str
    certificate_kind: str
    name: str
    agrees: bool
    #: Whether no field that the certificate states differs.
    identical: bool
    compared: Mode
    #: The seed of the samples that it was compared with, if it is not the recorded one.
    seed: int | None
    #: The relative tolerance by which the ends of intervals may be looser.
    tolerance: float
    made_by: dict[str, str]
    recomputed_by: dict[str, str]
    #: What contradicts the rest of the certificate, before anything is recomputed.
    inconsistencies: tuple[Inconsistency, ...]
    #: All fields that differ; `agrees` says whether this is allowed.
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    #: The attestation that contained the certificate: who signed it, and for which files. The signature was checked
    #: first.
    attestation: Attested | None = None

    def __bool__(self) -> bool:
        """Return whether the certificate agrees, so that `if not pyaccount.verify(…)` works as a gate."""
        return self.agrees

    def page(self, *, only_wrong: bool = False) -> Page:
        """Return the verification as a page; with `only_wrong` the differences that are allowed are left out."""
        facts = [Fact("compared", (_COMPARED[self.compared],))]
        if self.identical:
            facts.append(Fact("numbers", ("no number differs",)))
        if self.attestation is not None:
            keys = ", ".join(one.key for one in self.attestation.signed_by)
            files = ", ".join(one.name or one.sha256 for one in self.attestation.subjects)
            facts.append(Fact("signed by", (quoted(keys),), (f"about {quoted(files)}",)))
        facts += [Fact("note", (note,)) for note in self.notes]
        sections = [PageSection("verification", "How it was recomputed", (FactList(tuple(facts)),))]
        if self.inconsistencies:
            wrong = tuple(Fact(one.path, (one.message,)) for one in self.inconsistencies)
            sections.append(PageSection("contradictions", "Contradictions in the certificate", (FactList(wrong),)))
        # Differences that are not allowed come first.
        shown_here = [one for one in self.differences if not (only_wrong and one.agrees)]
        ordered = sorted(shown_here, key=lambda one: one.agrees)
        if ordered:
            blocks: list[Block] = [FactList(tuple(map(_difference, ordered[:MOST_SHOWN])))]
            if len(ordered) > MOST_SHOWN:
                more = f"There are {len(ordered) - MOST_SHOWN} more differences, all of which the JSON form has."
                blocks.append(Paragraph((more,)))
            sections.append(PageSection("differences", "Differences", tuple(blocks)))
        return Page(
            "Verification",
            self.file,
            tuple(sections),
            badges=(Badge("agrees" if self.agrees else "does not agree", good=self.agrees),),
        )


def _difference(one: Difference) -> Fact:
    stated, fresh = ("nothing" if value is None else quoted(value) for value in (one.certificate, one.recomputed))
    return Fact(one.path, (f"{'agrees' if one.agrees else 'DIFFERS'}: {stated}, recomputed {fresh}",), (one.reason,))
