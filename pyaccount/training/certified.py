"""`Certified`, the run that a certificate is about: its document without blanks, and the part to which each round belongs."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyaccount.accountant.planned import planned
from pyaccount.certificate import Certificate
from pyaccount.certificate.claimed import claimed_document
from pyaccount.certificate.compared import is_certificate
from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.tree import Parts, TrainingNode
from pyaccount.errors import DocumentError, PlanExceededError
from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection
from pyaccount.training.batches.base import refuse_own_probabilities

if TYPE_CHECKING:
    from pyaccount.plan.protection import RunCase

RunSource = str | os.PathLike[str] | Mapping[str, Any] | Document | Certificate


@dataclass(frozen=True, slots=True)
class BodyRun:
    """One run of one body of the document: the rounds from `start` up to, but without, `start + rounds`.

    `index` counts these parts over the whole run, from 0. The body has the number `place` in the document and is run `body.count`
    times; the first of these runs begins with round `first`.
    """

    index: int
    start: int
    rounds: int
    case: RunCase
    place: int
    first: int

    @property
    def body(self) -> TrainingNode:
        """The phase."""
        return self.case.node


@dataclass(frozen=True, slots=True)
class Certified:
    """A run as it was certified, or as a document without a certificate describes it."""

    document: Document
    body_runs: tuple[BodyRun, ...]
    #: The hash of the certificate's JSON; None if there is no certificate.
    certificate_sha256: str | None
    #: The certified statement, one sentence, and the kind of the guarantee; None if there is no certificate.
    statement: str | None
    guarantee: str | None
    #: The certificate's JSON if it was made from the document when the run was opened.
    certificate: str | None = None
    #: The certificate itself; None if there is none.
    known: Certificate | None = None

    @property
    def rounds(self) -> int:
        """The number of rounds of the whole run."""
        last = self.body_runs[-1]
        return last.start + last.rounds

    def body_run(self, number: int) -> BodyRun:
        """Return the part to which a round belongs. Raises `PlanExceededError` for a round after the last one."""
        if not 0 <= number < self.rounds:
            raise PlanExceededError(
                f"round {number} is not one of the {self.rounds} rounds of the certified run, which are counted from 0: for a "
                "longer run, certify a document with more iterations"
            )
        return self.body_runs[bisect_right([part.start for part in self.body_runs], number) - 1]


def certified(source: RunSource, asked: Document | None = None) -> Certified:
    """Return the run that a certificate (an object or its JSON file) or a document without a blank describes.

    A certificate is not recomputed; `pyaccount verify` does that. `asked` is the document from which the certificate was made, if
    the caller has it. Raises `CertificateError` for a certificate whose claim does not hold or that contradicts itself, and
    `DocumentError` for a document with a blank or without a bound.
    """
    if isinstance(source, str | os.PathLike) and is_certificate(source):
        source = Certificate.load(source)
    if isinstance(source, Certificate):
        data = source.data
        digest = hashlib.sha256(source.to_json().encode()).hexdigest()
        run = _certified(claimed_document(source, "run", asked), digest, data.statement, data.guarantee.kind)
        return replace(run, known=source)
    document = load(source)
    if document.blank is not None:
        message = "a run cannot have blanks: certify the document first, and give the certificate"
        raise DocumentError([document.problem("unfilled-blank", document.blank, message, allowed="a value")])
    return _certified(document, None, None, None)


_OF_ANOTHER = (
    "a run draws the batches and the noise of training phases, and this phase is another mechanism, which its own library "
    "releases: certify the whole document, and give the run a document with its training phases alone, with the multipliers of "
    "the certificate"
)
_OF_PARTS = (
    "a run draws the batches and the noise of training phases on one data set, and this phase has disjoint parts: certify the "
    "whole document, and give the run of each part a document with the training phases of this part alone, with the multipliers "
    "of the certificate"
)


def _refuse_mechanisms(document: Document) -> None:
    """Raise `DocumentError` for a document with a phase that is no training run: no batch and no noise of it is drawn here."""
    for phase in document.phases:
        if not isinstance(phase, TrainingNode):
            message = _OF_PARTS if isinstance(phase, Parts) else _OF_ANOTHER
            raise DocumentError(
                [document.problem("not-drawn", phase.at(phase.key), message, allowed="training, sampler and noise")]
            )


def _certified(document: Document, digest: str | None, statement: str | None, guarantee: str | None) -> Certified:
    # This call refuses documents that cannot be run because no accountant could count their rounds, such as a risk without an ε.
    # It also reads the document's files once, so that they cannot change during the run.
    document = document.pinned()
    planned(document)
    _refuse_mechanisms(document)
    for case in Protection.of(document).runs():
        refuse_own_probabilities(case)
    body_runs: list[BodyRun] = []
    start = 0
    for place, case in enumerate(Protection.of(document).runs()):
        body = case.node
        rounds, first = number(body.training.iterations), start
        for _ in range(body.count):
            body_runs.append(BodyRun(len(body_runs), start, rounds, case, place, first))
            start += rounds
    return Certified(document, tuple(body_runs), digest, statement, guarantee)
