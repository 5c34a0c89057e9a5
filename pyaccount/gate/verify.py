"""A certificate recomputed from the document inside it, with the recorded seed where it was sampled."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.amplification import amplify
from pyaccount.certificate.certificate import Certificate, resolved
from pyaccount.certificate.provenance import versions
from pyaccount.document import Amplification, Document
from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Place, Table
from pyaccount.errors import CertificateError, DocumentError, path_text
from pyaccount.execute.progress import left
from pyaccount.gate.agreement import Difference, Mode, Terms, differences
from pyaccount.gate.consistency import Flaw, created_flaws, flaws, hash_flaws
from pyaccount.gate.reading import AMPLIFICATION, Read, parse, read
from pyaccount.gate.verification import Verification
from pyaccount.plan import compile_document

if TYPE_CHECKING:
    from pyaccount.certificate.model import CertificateModel
    from pyaccount.execute.progress import Report
    from pyaccount.plan import Plan

#: The versions that digits depend on.
_COMPUTED_BY = ("pyaccount", "core")
#: Blanks that are a bound of the guarantee itself: they are recomputed, not put in.
_BOUNDS = ("epsilon", "delta")


def verify(
    source: str | os.PathLike[str] | Certificate,
    *,
    threads: int = 0,
    time_limit: float | None = None,
    report: Report | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Verification:
    """Recompute a certificate and compare every field. `time_limit` is in seconds and overrides the document's.

    Files that the document names lie in `folder`, or beside the certificate.

    Raises `CertificateError` for what is no certificate, `DocumentError` if a file that its document names is missing,
    `LimitError`; Ctrl-C raises `KeyboardInterrupt`.
    """
    found = parse(source.to_json().encode(), "certificate") if isinstance(source, Certificate) else read(source)
    if found.kind == AMPLIFICATION:
        return _amplification(found)
    data = found.certificate()
    seen = _Seen(found, data.name, flaws(data), dict(data.versions))
    if folder is not None:
        seen.beside = str(Path(folder) / Path(found.file).name)
    if not data.holds:
        seen.notes.append("the certificate says that its document's claim does not hold")
    document = seen.document()
    if not isinstance(document, Document):
        return seen.verdict(None, Terms("digits", 0.0, seen.same_version), [])
    recomputation = _Recomputation(seen, data, document, threads, time_limit, report)
    try:
        return recomputation.verdict()
    except DocumentError as error:
        if any(problem.slug == "matrix-file" for problem in error.problems):
            raise
        return seen.verdict(None, Terms("digits", 0.0, seen.same_version), _problems(error))


@dataclass(slots=True)
class _Seen:
    """What a look at the certificate itself gave."""

    read: Read
    name: str
    flaws: list[Flaw]
    made_by: dict[str, str]
    notes: list[str] = field(default_factory=list)
    #: The file that relative names in the document refer to; by default the certificate's.
    beside: str | None = None

    @property
    def same_version(self) -> bool:
        """Whether this version made the certificate."""
        here = versions()
        return all(self.made_by.get(name) == here[name] for name in _COMPUTED_BY)

    def document(self) -> Document | Amplification | None:
        """The document inside, with files that it names beside the certificate; `None`, with a flaw, if it was broken.

        A document that never was one belongs to no certificate: `CertificateError`.
        """
        root, problems = from_value(self.read.raw["document"], Place(self.read.file))
        assert isinstance(root, Table)
        shape = Amplification if self.read.kind == AMPLIFICATION else Document
        try:
            return shape(root, self.beside or self.read.file, problems)
        except DocumentError as error:
            if all(flaw.path != "document_sha256" for flaw in self.flaws):
                message = f"not a certificate: the document inside cannot be read:\n{error}"
                raise CertificateError(f"{self.read.file}: {message}") from error
            self.flaws += [Flaw(path_text(("document", *problem.path)), problem.message) for problem in error.problems]
            return None

    def verdict(self, fresh: dict[str, Any] | None, terms: Terms, more: list[Difference]) -> Verification:
        """The verdict, given the recomputed certificate; without one it does not agree."""
        found = [*more, *([] if fresh is None else differences(self.read.raw, fresh, terms))]
        notes = []
        if not self.same_version:
            made = ", ".join(f"{name} {self.made_by.get(name, 'unknown')}" for name in _COMPUTED_BY)
            here = ", ".join(f"{name} {versions()[name]}" for name in _COMPUTED_BY)
            promise = {
                "digits": "digits may move within the stated precision",
                "bits": "",
                "bounds": "bits are not promised, so the statement was tested anew and the bounds held against each other",
            }
            notes.append(f"made by {made}; recomputed by {here}: {promise[terms.mode]}")
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
            agrees=fresh is not None and not self.flaws and all(one.agrees for one in found),
            identical=fresh is not None and not self.flaws and not found,
            compared=terms.mode,
            tolerance=terms.tolerance,
            made_by=self.made_by,
            recomputed_by=versions(),
            flaws=tuple(self.flaws),
            differences=tuple(found),
            notes=tuple(notes),
        )


@dataclass(slots=True)
class _Recomputation:
    seen: _Seen
    data: CertificateModel
    document: Document
    threads: int
    time_limit: float | None
    report: Report | None

    def verdict(self) -> Verification:
        plan = compile_document(self.document)
        limit = self.document.accounting.time_limit if self.time_limit is None else self.time_limit
        deadline = None if limit is None else time.monotonic() + limit
        mode: Mode = "digits" if not plan.sampled else "bits" if self.seen.same_version else "bounds"
        terms = Terms(mode, plan.tolerance, self.seen.same_version, self._given())
        filled = self._filled() if mode == "bounds" else None
        if filled is not None:
            return self._with_own_value(filled, None, terms, deadline)
        first = self._run(plan, deadline)
        terms = replace(terms, tolerance=max(terms.tolerance, _width(first)))
        if mode == "digits" and self._moved(first, terms) and (filled := self._filled()) is not None:
            return self._with_own_value(filled, first, terms, deadline)
        more = _seed(self.seen.read.raw, first) if mode == "bits" else []
        return self.seen.verdict(first, terms, more)

    def _run(self, plan: Plan, deadline: float | None) -> dict[str, Any]:
        sampling = self.data.evidence.sampling
        certificate = plan.run(
            threads=self.threads,
            time_limit=left(deadline),
            report=self.report,
            seed=None if sampling is None else sampling.seed,
        )
        fresh: dict[str, Any] = json.loads(certificate.to_json())
        return fresh

    def _with_own_value(
        self, filled: Document, first: dict[str, Any] | None, terms: Terms, deadline: float | None
    ) -> Verification:
        """Judge the claim at the certificate's own value of the blank; what was searched for is compared with `first`."""
        second = self._run(compile_document(filled), deadline)
        stated, more = self.seen.read.raw, []
        if not second["holds"]:
            value = stated["solved"]["value"]
            more.append(Difference("solved.value", value, None, False, "the claim could not be certified with it"))
        for key in ("document", "document_sha256", "solved"):
            second[key] = (stated if first is None else first)[key]
        return self.seen.verdict(second, replace(terms, filled=True), more)

    def _given(self) -> frozenset[str]:
        privacy = self.document.privacy
        pairs = {"delta": privacy.delta, "epsilon": privacy.epsilon}
        # ε is given where δ is the blank; otherwise what is certified is the smallest ε at the δ given.
        given = "epsilon" if pairs["delta"] == "solve" else "delta"
        return frozenset({f"guarantee.{given}"}) if pairs["epsilon"] != 0.0 else frozenset()

    def _filled(self) -> Document | None:
        """The document with the certificate's choices and value of the blank, unless that is ε or δ itself."""
        blank = self.document.blank
        whole = not any(flaw.path.startswith(("solved", "phases")) for flaw in self.seen.flaws)
        if not whole or self.data.solved is None or blank is None or blank[-1] in _BOUNDS:
            return None
        return resolved(self.data, self.document)

    def _moved(self, first: dict[str, Any], terms: Terms) -> bool:
        """Whether the search found another value of the blank, near enough to be the same search."""
        if self.data.solved is None or first["solved"] is None:
            return False
        stated, fresh = self.data.solved.value, float(first["solved"]["value"])
        near = max(2.0 * terms.tolerance * fresh, 1.0 if isinstance(stated, int) else 0.0)
        return 0.0 < abs(stated - fresh) <= near


def _width(certificate: dict[str, Any]) -> float:
    """The relative width of the interval for ε where the engine could not meet its tolerance."""
    guarantee, evidence = certificate["guarantee"], certificate["evidence"]
    if evidence["within_tolerance"] or guarantee["epsilon"] <= 0.0:
        return 0.0
    return float((guarantee["epsilon"] - guarantee["epsilon_lower"]) / guarantee["epsilon"])


def _seed(stated: dict[str, Any], fresh: dict[str, Any]) -> list[Difference]:
    """A seed that gives none of the samples stated: it is an input, so that recomputing cannot give another one."""

    def figures(certificate: dict[str, Any]) -> set[float]:
        tests = (certificate["evidence"]["sampling"] or {}).get("tests", [])
        found = [test["mean"] for test in tests] + [point["delta_estimate"] for point in certificate["profile"]]
        # An estimate of 0 comes from any seed.
        return {figure for figure in found if figure}

    one, other = figures(stated), figures(fresh)
    if not one or one & other:
        return []
    reason = "no sample stated comes from this seed"
    return [
        Difference("evidence.sampling.seed", (stated["evidence"]["sampling"] or {}).get("seed"), None, False, reason)
    ]


def _problems(error: DocumentError) -> list[Difference]:
    """What made recomputing impossible, as differences from a certificate that says it was possible."""
    return [
        Difference(path_text(("document", *problem.path)), None, None, False, problem.message)
        for problem in error.problems
    ]


def _amplification(found: Read) -> Verification:
    data = found.amplification()
    noted = [*hash_flaws(data.document, data.document_sha256), *created_flaws(data.created)]
    seen = _Seen(found, data.name, noted, dict(data.versions))
    terms = Terms("digits", 0.0, seen.same_version)
    document = seen.document()
    if not isinstance(document, Amplification):
        return seen.verdict(None, terms, [])
    try:
        fresh = amplify(document)
    except DocumentError as error:
        return seen.verdict(None, terms, _problems(error))
    return seen.verdict(json.loads(fresh.to_json()), terms, [])
