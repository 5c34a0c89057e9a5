"""Examines a certificate before anything is recomputed, and words the verdict at the end."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyaccount.certificate.consistency import Inconsistency, inconsistencies
from pyaccount.certificate.provenance import versions
from pyaccount.certificate.reading import AMPLIFICATION, Read
from pyaccount.document.amplification import Amplification
from pyaccount.document.document import Document
from pyaccount.errors import CertificateError, DocumentError, path_text
from pyaccount.gate.agreement import Difference, Terms, differences
from pyaccount.gate.verification import Verification
from pyaccount.reading.nodes import Place, Table, from_value

if TYPE_CHECKING:
    from pyaccount.reading.sources import Folders
    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel
    from pyaccount.records.fields import Record

#: The versions on which digits depend.
_COMPUTED_BY = ("pyaccount", "core")


@dataclass(slots=True)
class Examination:
    """The findings of an examination of the certificate itself, and the notes for its verdict."""

    read: Read
    data: CertificateModel | AmplificationData
    inconsistencies: list[Inconsistency]
    made_by: dict[str, str]
    notes: list[str] = field(default_factory=list)
    #: Where files that the document names may lie, besides the folder of the certificate.
    folders: Folders = ()

    @classmethod
    def of(cls, read: Read, data: CertificateModel | AmplificationData) -> Examination:
        """Examine a certificate as it was read: find contradictions."""
        return cls(read, data, inconsistencies(data), dict(data.versions))

    @property
    def same_version(self) -> bool:
        """Whether this version of pyaccount and of its core made the certificate."""
        here = versions()
        return all(self.made_by.get(name) == here[name] for name in _COMPUTED_BY)

    def document(self) -> Document | Amplification | None:
        """Return the document inside, with its files; `None`, with an inconsistency, if it was damaged.

        Its files are looked for beside the certificate, and in `folders`: the author of the certificate chose their names, and
        must not be able to choose which files are read here. Raises `CertificateError` if the document is invalid although its
        hash is right, and `DocumentError` if it names a file elsewhere.
        """
        root, problems = from_value(self.read.raw["document"], Place(self.read.file))
        assert isinstance(root, Table)
        file = self.read.file
        try:
            if self.read.kind == AMPLIFICATION:
                return Amplification(root, file, problems)
            return Document(root, file, problems, [*map(os.fsdecode, self.folders)])
        except DocumentError as error:
            if any(problem.slug == "outside-folder" for problem in error.problems):
                raise
            if all(inconsistency.path != "document_sha256" for inconsistency in self.inconsistencies):
                message = f"not a certificate: the document inside cannot be read:\n{error}"
                raise CertificateError(f"{self.read.file}: {message}") from error
            self.inconsistencies += [
                Inconsistency(path_text(("document", *problem.path)), problem.message) for problem in error.problems
            ]
            return None

    def another_version(self) -> Verification:
        """Return the verdict for a certificate of another version if only those of this version are accepted."""
        reason = "made by another version, and only this version is accepted: nothing was recomputed"
        here = versions()
        differing = [
            Difference(f"versions.{name}", self.made_by.get(name), here[name], False, reason)
            for name in _COMPUTED_BY
            if self.made_by.get(name) != here[name]
        ]
        return self.verdict(None, Terms(same_version=False), differing)

    def verdict(self, fresh: Record | None, terms: Terms, more: list[Difference]) -> Verification:
        """Return the verdict, given the recomputed certificate; without one (`None`) the certificate does not agree."""
        differing = [*more, *([] if fresh is None else differences(self.data, fresh, terms))]
        # An allowed difference is left out if its field is inconsistent, because it would be shown as agreeing.
        wrong = {inconsistency.path for inconsistency in self.inconsistencies}
        differing = [one for one in differing if not (one.agrees and one.path in wrong)]
        notes = []
        if not self.same_version:
            made = ", ".join(f"{name} {self.made_by.get(name, 'unknown')}" for name in _COMPUTED_BY)
            here = ", ".join(f"{name} {versions()[name]}" for name in _COMPUTED_BY)
            done = "digits may differ within the stated precision"
            if terms.sampled:
                done = "equal bits are not promised, so the statement was retested"
            done = done if fresh is not None else "nothing was compared"
            # The file itself states which version made it; with --same-version only this one is accepted.
            notes.append(f"made by {made}, as the certificate says; recomputed by {here}: {done}")
        if terms.seed is not None:
            notes.append(f"compared with samples of the seed {terms.seed}, not of the recorded one")
        notes += self.notes
        return Verification(
            pyaccount=1,
            kind="verification",
            file=self.read.file,
            sha256=self.read.sha256,
            certificate_kind=self.read.kind,
            name=self.data.name,
            agrees=fresh is not None and not self.inconsistencies and all(one.agrees for one in differing),
            identical=fresh is not None and not self.inconsistencies and not differing,
            compared=terms.mode,
            seed=terms.seed,
            tolerance=terms.tolerance,
            made_by=self.made_by,
            recomputed_by=versions(),
            inconsistencies=tuple(self.inconsistencies),
            differences=tuple(differing),
            notes=tuple(notes),
        )
