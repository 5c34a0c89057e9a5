"""Which run a certificate is about: its document without blanks, and what each of its rounds belongs to."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyaccount.accountant.planned import planned
from pyaccount.certificate import Certificate
from pyaccount.certificate.claimed import claimed_document
from pyaccount.certificate.compared import is_certificate
from pyaccount.document import Document, load
from pyaccount.errors import DocumentError, PlanExceededError
from pyaccount.plan.common import whole

if TYPE_CHECKING:
    from pyaccount.document import Body

RunSource = str | os.PathLike[str] | Mapping[str, Any] | Document | Certificate


@dataclass(frozen=True, slots=True)
class BodyRun:
    """One run of one body: rounds `start` to `start + rounds`, the `index`-th such run of the whole.

    It is one of `body.count` runs of the body, whose place in the document is `place`; the first of them begins at `first`.
    """

    index: int
    start: int
    rounds: int
    body: Body
    place: int
    first: int


@dataclass(frozen=True, slots=True)
class Certified:
    """What is to be run."""

    document: Document
    body_runs: tuple[BodyRun, ...]
    #: Of the certificate's JSON; None for a document that nothing was certified of.
    certificate_sha256: str | None
    #: What is certified, in a sentence, and what kind of guarantee it is.
    statement: str | None
    guarantee: str | None
    #: The certificate's JSON where it was made of the document when the run was opened.
    certificate: str | None = None

    @property
    def rounds(self) -> int:
        """The rounds of the whole run."""
        last = self.body_runs[-1]
        return last.start + last.rounds

    def body_run(self, number: int) -> BodyRun:
        """Which part a round belongs to. Raises `PlanExceededError` beyond the end."""
        if not 0 <= number < self.rounds:
            raise PlanExceededError(
                f"the certified run has {self.rounds} rounds, numbered from 0, and round {number} is none of them: a longer run "
                "is another document, with more iterations"
            )
        return self.body_runs[bisect_right([one.start for one in self.body_runs], number) - 1]


def certified(source: RunSource, asked: Document | None = None) -> Certified:
    """The run that a certificate (an object or its JSON file), or a document without a blank, is about.

    The certificate is taken at its word; `pyaccount verify` recomputes one. `asked` is the document that it was made of, where
    that is at hand. Raises `CertificateError` for one whose claim does not hold or that contradicts itself, `DocumentError` for a
    document that leaves something open or has no bound.
    """
    if isinstance(source, str | os.PathLike) and is_certificate(source):
        source = Certificate.load(source)
    if isinstance(source, Certificate):
        data = source.data
        digest = hashlib.sha256(source.to_json().encode()).hexdigest()
        return _certified(claimed_document(source, "run", asked), digest, data.statement, data.guarantee.kind)
    document = load(source)
    if document.blank is not None:
        message = "a run has no blanks: certify the document first, and give the certificate"
        raise DocumentError([document.problem("unfilled-blank", document.blank, message, allowed="a value")])
    return _certified(document, None, None, None)


def _certified(document: Document, digest: str | None, statement: str | None, guarantee: str | None) -> Certified:
    # What no accountant could count, such as a budget of risk without an ε, is no run either.
    planned(document)
    body_runs: list[BodyRun] = []
    start = 0
    for place, body in enumerate(document.bodies):
        rounds, first = whole(body.training.iterations), start
        for _ in range(body.count):
            body_runs.append(BodyRun(len(body_runs), start, rounds, body, place, first))
            start += rounds
    return Certified(document, tuple(body_runs), digest, statement, guarantee)
