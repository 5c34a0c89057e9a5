"""Reads what is entered in a ledger: a planned document, or a certificate, as phases that can be composed with others."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyaccount.certificate import Certificate
from pyaccount.certificate.claimed import claimed_document
from pyaccount.certificate.compared import is_certificate
from pyaccount.certificate.statement import unit_of
from pyaccount.composing import joint_document
from pyaccount.document.data_set import DataSet
from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.resting import rests_on
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import DocumentError, LedgerError, Problem
from pyaccount.ledger.events import hash_of
from pyaccount.plan.common import number
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.protection import Protection
from pyaccount.plan.samplers import sampler_plan
from pyaccount.reading.sources import Handed

#: The δ of a joint document of which only the phases are used.
ANY_DELTA = 1e-6

EntrySource = str | os.PathLike[str] | Handed | Mapping[str, Any] | Document | Certificate


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """What is entered: a document without blanks."""

    #: What a filter computes a cost from: the document, or a certificate from samples.
    source: Document | Certificate
    #: The document with what was certified in place of blanks.
    document: Document
    #: The hash of the document that was certified, with its blanks.
    document_sha256: str
    #: What a block composes with the phases of other entries.
    phases: tuple[dict[str, Any], ...]
    #: The number of rounds, if all phases are training runs.
    rounds: int | None
    certificate_sha256: str | None = None

    @property
    def name(self) -> str:
        """The name of the document."""
        return self.document.name

    @property
    def phases_sha256(self) -> str:
        """The hash of the phases, by which two entries are compared that were planned in the same way."""
        return hash_of(self.phases)


def planned(source: EntrySource) -> PlannedEntry:
    """Return what is to be entered. Raises `DocumentError`, `CertificateError`, and `TypeError` for another type."""
    if isinstance(source, str | os.PathLike) and is_certificate(source):
        source = Certificate.load(source)
    if isinstance(source, Certificate):
        return of_certificate(source)
    document = load(source)
    unknown = [path for path in (document.blank, *document.choices) if path not in (None, ("privacy", "epsilon"))]
    if unknown or document.searched:
        path = unknown[0] if unknown else document.phases[0].at("matrix")
        assert path is not None
        message = (
            "a ledger counts what is known before a run, and this value is still to be found: certify the document first, and "
            "reserve with its certificate"
        )
        raise DocumentError([document.problem("unfilled-blank", path, message, allowed="a value")])
    if compile_document(document).sampled:
        message = (
            "the bound for this document is found by samples, and a ledger draws none: certify the document first, and reserve "
            "with its certificate"
        )
        raise DocumentError([document.problem("uncertified", ("accounting",), message)])
    return _planned(document, document, document.sha256)


def of_certificate(certificate: Certificate) -> PlannedEntry:
    """Return what a certificate is about. Raises `CertificateError` if it does not hold or contradicts itself."""
    document = claimed_document(certificate, "entry in a ledger")
    digest = hashlib.sha256(certificate.to_json().encode()).hexdigest()
    # Whatever can be computed is computed from the document; only what samples have shown is taken from the certificate.
    sampled = certificate.data.evidence.sampling is not None
    return _planned(certificate if sampled else document, document, certificate.data.document_sha256, digest)


def _planned(source: Document | Certificate, document: Document, asked: str, digest: str | None = None) -> PlannedEntry:
    for node in document.every_node():
        for path, name in node.files().items():
            message = (
                f"names the file {name}, and a ledger keeps no files, so that nobody could compute its total later: write the "
                "values into the document"
            )
            raise DocumentError([document.problem("no-valid-bound", path, message)])
    # A certificate from samples is composed by its guarantee, and every other one by its document, which is resolved already.
    sampled = isinstance(source, Certificate) and source.data.evidence.sampling is not None
    joint = joint_document(
        [source if sampled else document], epsilon="solve", delta=ANY_DELTA, points="guarantee"
    ).to_mapping()
    if (failure := rests_on(joint).failure_probability) > 0.0:
        message = (
            f"what is known of it is false with probability {failure:g} over random numbers of an accountant, and a budget is a "
            "promise without such an exception: certify the claim with the numbers that it states, which gives a verified "
            "guarantee"
        )
        raise DocumentError([document.problem("no-valid-bound", ("privacy",), message)])
    phases = tuple(joint["phases"])
    runs = list(document.runs_among_phases())
    training = len(runs) == len(document.phases)
    rounds = sum(run.count * number(run.training.iterations) for run in runs) if training else None
    return PlannedEntry(source, document, asked, phases, rounds, digest)


def check_protected(found: PlannedEntry, data_set: DataSet, place: str) -> None:
    """Raise `LedgerError` unless a document protects what the data set protects."""
    privacy = found.document.privacy
    stated = {"adjacency": privacy.adjacency, "group_size": privacy.group_size, "unit": unit_of(found.document)}
    problems = []
    for name, value in stated.items():
        asked = getattr(data_set.privacy, name)
        if value != asked:
            message = (
                f"{found.name} is for {name} {value}, and the budget of {data_set.name} is for {name} {asked}: neither bounds "
                f"the other. Certify the document with {name} {asked}"
            )
            path = ("data_sets", data_set.name, "privacy", name)
            problems.append(Problem("other-data", message, path, place, value=value, allowed=str(asked)))
    if problems:
        raise LedgerError(problems)


def first_rounds(found: PlannedEntry, rounds: int) -> Document | None:
    """Return the document of the first rounds of a run, for a run whose rounds are independent of one another.

    Then each round is a mechanism of its own, which a filter that adds the costs of rounds counts by itself. None for every
    other document, and for none or all of the rounds.
    """
    cases = Protection.of(found.document).runs()
    if not independent(found) or found.rounds is None or not 0 < rounds < found.rounds:
        return None
    mapping = found.document.to_mapping()
    body = mapping["phases"][0] if "phases" in mapping else mapping
    training = {key: value for key, value in body["training"].items() if key != "epochs"}
    body["training"] = training | {"iterations": rounds}
    body["sampler"] |= sampler_plan(cases[0]).cut(rounds)
    try:
        return load(mapping)
    except DocumentError:
        # Some values of the whole run do not fit a shorter one; then nothing is credited.
        return None


def independent(found: PlannedEntry) -> bool:
    """Return whether the document is one run whose rounds are independent of one another."""
    if len(found.document.phases) != 1 or not isinstance(found.document.phases[0], TrainingNode):
        return False
    (case,) = Protection.of(found.document).runs()
    return (
        case.node.count == 1
        and case.node.matrix.kind == "identity"
        and not case.node.schedules()
        and sampler_plan(case).independent_rounds
    )
