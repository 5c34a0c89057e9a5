"""What a look at a certificate itself gives, before anything is recomputed, and the verdict's words in the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.consistency import CONTENT, Inconsistency, inconsistencies
from pyaccount.certificate.history import is_older
from pyaccount.certificate.provenance import versions
from pyaccount.certificate.reading import AMPLIFICATION, Read
from pyaccount.document.amplification import Amplification
from pyaccount.document.confinement import confined
from pyaccount.document.document import Document
from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Place, Table
from pyaccount.errors import CertificateError, DocumentError, path_text
from pyaccount.gate.agreement import LEFT_OUT, UNSTATED, Difference, Terms, differences
from pyaccount.gate.verification import Verification

if TYPE_CHECKING:
    from pyaccount.certificate.amplification_data import AmplificationData
    from pyaccount.certificate.model import CertificateModel

#: The versions that digits depend on.
_COMPUTED_BY = ("pyaccount", "core")


@dataclass(slots=True)
class Examination:
    """What a look at the certificate itself gave."""

    read: Read
    name: str
    inconsistencies: list[Inconsistency]
    made_by: dict[str, str]
    notes: list[str] = field(default_factory=list)
    #: The file that relative names in the document refer to; by default the certificate's.
    beside: str | None = None

    @classmethod
    def of(cls, read: Read, data: CertificateModel | AmplificationData) -> Examination:
        """The examination of a certificate as it was read, with what contradicts the rest of it or was left out."""
        found = inconsistencies(data)
        if data.content_sha256 is None and not is_older(CONTENT, data.versions, data.created):
            found.append(Inconsistency(CONTENT, LEFT_OUT))
        return cls(read, data.name, found, dict(data.versions))

    @property
    def same_version(self) -> bool:
        """Whether this version made the certificate."""
        here = versions()
        return all(self.made_by.get(name) == here[name] for name in _COMPUTED_BY)

    def document(self) -> Document | Amplification | None:
        """The document inside, with files that it names beside the certificate; `None`, with an inconsistency, if it was broken.

        A document that never was one belongs to no certificate: `CertificateError`. One that names
        a file elsewhere: `DocumentError`.
        """
        root, problems = from_value(self.read.raw["document"], Place(self.read.file))
        assert isinstance(root, Table)
        file = self.beside or self.read.file
        try:
            if self.read.kind == AMPLIFICATION:
                return Amplification(root, file, problems)
            document = Document(root, file, problems)
        except DocumentError as error:
            if all(inconsistency.path != "document_sha256" for inconsistency in self.inconsistencies):
                message = f"not a certificate: the document inside cannot be read:\n{error}"
                raise CertificateError(f"{self.read.file}: {message}") from error
            self.inconsistencies += [
                Inconsistency(path_text(("document", *problem.path)), problem.message) for problem in error.problems
            ]
            return None
        # Whoever wrote the certificate chose the names of files, and shall not choose what is read here.
        return confined(document, Path(file).parent)

    def _older(self, place: str) -> bool:
        """Whether the certificate is, by its own word, older than the field at a path."""
        return is_older(place, self.made_by, str(self.read.raw["created"]))

    def another_version(self) -> Verification:
        """The verdict where only this version's certificates are accepted."""
        reason = "another version, where only the recomputing one is accepted: nothing was recomputed"
        here = versions()
        found = [
            Difference(f"versions.{name}", self.made_by.get(name), here[name], False, reason)
            for name in _COMPUTED_BY
            if self.made_by.get(name) != here[name]
        ]
        return self.verdict(None, Terms("digits", 0.0, same_version=False), found)

    def verdict(self, fresh: dict[str, Any] | None, terms: Terms, more: list[Difference]) -> Verification:
        """The verdict, given the recomputed certificate; without one it does not agree."""
        if fresh is not None:
            fresh = _as_far(fresh, self.read.raw)
            terms = replace(terms, older=self._older)
        found = [*more, *([] if fresh is None else differences(self.read.raw, fresh, terms))]
        # A difference that may be is not told where the same field is among the inconsistencies: it would be said to agree.
        wrong = {inconsistency.path for inconsistency in self.inconsistencies}
        found = [one for one in found if not (one.agrees and one.path in wrong)]
        notes = []
        if not self.same_version:
            made = ", ".join(f"{name} {self.made_by.get(name, 'unknown')}" for name in _COMPUTED_BY)
            here = ", ".join(f"{name} {versions()[name]}" for name in _COMPUTED_BY)
            promise = {
                "digits": "digits may move within the stated precision",
                "bits": "",
                "bounds": "bits are not promised, so the statement was retested",
            }
            done = promise[terms.mode] if fresh is not None else "nothing was compared"
            # Which of them made it is the file's own word; --same-version accepts none but this one.
            notes.append(f"made, it says, by {made}; recomputed by {here}: {done}")
        if terms.seed is not None:
            notes.append(f"held against samples of the seed {terms.seed}, not of the recorded one")
        if terms.filled:
            notes.append(
                "the certificate's own value of the blank was put into the document, and the claim judged with it"
            )
        notes += self.notes
        return Verification(
            pyaccount=1,
            kind="verification",
            file=self.read.file,
            sha256=self.read.sha256,
            certificate_kind=self.read.kind,
            name=self.name,
            agrees=fresh is not None and not self.inconsistencies and all(one.agrees for one in found),
            identical=fresh is not None and not self.inconsistencies and all(one.reason == UNSTATED for one in found),
            compared=terms.mode,
            seed=terms.seed,
            tolerance=terms.tolerance,
            made_by=self.made_by,
            recomputed_by=versions(),
            flaws=tuple(self.inconsistencies),
            differences=tuple(found),
            notes=tuple(notes),
        )


def _as_far(fresh: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    """The recomputed certificate as far as the other was computed: what a time limit left out states nothing."""
    missing = stated.get("not_computed") or []
    if not missing:
        return fresh
    cut = {**fresh, "not_computed": missing}
    nothing: dict[str, Any] = {"profile": [], "curve": None}
    left = {key: value for key, value in nothing.items() if key in missing}
    cut["directions"] = {side: {**numbers, **left} for side, numbers in fresh["directions"].items()}
    if "profile" in missing:
        cut["profile"] = []
    wider, found = stated["unamplified"]["epsilon"], fresh["unamplified"]["epsilon"]
    if wider is not None and found is not None and wider > found:
        # Nor is the contrast composed without the time for it: what stands there then holds, and says less.
        cut["unamplified"] = {**fresh["unamplified"], "epsilon": wider}
    if "group lemma" in missing:
        cut["group_lemma"] = None
    return cut
