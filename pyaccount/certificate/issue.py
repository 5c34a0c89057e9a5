"""Makes a certificate from a plan and its evidence: statement, assumptions, and how the numbers were computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.consistency import CONTENT, content_sha256, form_sha256
from pyaccount.certificate.phases import phase_record, utility_record
from pyaccount.certificate.provenance import now, versions
from pyaccount.certificate.statement import only_training, statement, unit_of
from pyaccount.document.tree import Parts
from pyaccount.document.words import Assumed
from pyaccount.errors import path_text
from pyaccount.plan.common import number
from pyaccount.plan.conventions import conventions
from pyaccount.plan.normal_form import normal_form
from pyaccount.records.certificate import CertificateModel, ComposedRecord, PrivacyUnit, ReductionRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.document.document import Document
    from pyaccount.execute.certified import CertifiedNumbers
    from pyaccount.plan.compiled import CompiledDocument
    from pyaccount.plan.theorem import Reduction

#: The fields that were computed; the others follow from the document and its plan.
FILLED = (
    *("holds", "guarantee", "solved", "directions", "profile", "evidence", "unamplified", "not_computed"),
    *("risk", "records", "composed_bound", "group_lemma"),
)
#: An assumption of every guarantee that comes from a test.
RELEASE = Assumed(
    "The run takes place only because this test accepted it. The test is not repeated with other seeds until it accepts: "
    "that would void the guarantee.",
    "The run takes place only because this test accepted it, with the first seed.",
)


def issue(plan: CompiledDocument, certified: CertifiedNumbers) -> Certificate:
    """Return the certificate. `plan` is the plan that was run; `certified` has the document with its blank filled."""
    document, asked, instance = certified.document, plan.asked or plan.document, certified.instance
    theorems, worded, sampling = instance.theorems, instance.reductions, certified.evidence.sampling
    phases = [
        phase_record(one.node, document, phase, one.asked) for one, phase in zip(theorems, asked.phases, strict=True)
    ]
    noises = {phase.noise_multiplier for phase in phases}
    assumed = [*_joint_assumptions(document), *_assumptions(document, worded)]
    if certified.guarantee.kind == "verified" and sampling is not None:
        assumed.append(RELEASE)
    unit = PrivacyUnit(
        adjacency=document.privacy.adjacency, group_size=number(document.privacy.group_size), unit=unit_of(document)
    )
    form = normal_form(instance)
    made = CertificateModel(
        pyaccount=1,
        kind="certificate",
        name=document.name,
        statement=statement(
            document.name,
            unit,
            certified.guarantee,
            holds=certified.holds,
            claim=_claim(asked),
            sampling=sampling,
            risk=certified.risk,
            training=only_training(phases),
        ),
        **{name: getattr(certified, name) for name in FILLED},
        composed_from=[ComposedRecord.model_validate(one.model_dump()) for one in document.composed_from] or None,
        privacy=unit,
        noise_multiplier=noises.pop() if len(noises) == 1 else None,
        noise_convention=conventions(theorems[0].asked),
        phases=phases,
        utility=utility_record(document, theorems[0].asked),
        assumptions=[one.text for one in assumed],
        assumptions_in_short=[one.short for one in assumed],
        reductions=[ReductionRecord(**reduction.stated()) for reduction in worded],
        document=asked.to_mapping(),
        document_sha256=asked.sha256,
        mechanism=form,
        mechanism_sha256=form_sha256(form),
        versions=versions(),
        created=now(),
        content_sha256="",
    )
    return Certificate(made.model_copy(update={CONTENT: content_sha256(made)}))


def _claim(document: Document) -> tuple[float, float] | None:
    """Return the (ε, δ) that a document claims; None if one of them is its blank."""
    epsilon, delta = document.privacy.epsilon, document.privacy.delta
    return None if epsilon == "solve" or delta == "solve" else (epsilon, delta)


def _assumptions(document: Document, reductions: Sequence[Reduction]) -> list[Assumed]:
    """Return each assumption of the run once; one that not all phases share begins with the names of its phases."""
    names = {phase.path: phase.name or path_text(phase.path) for phase in document.phases}
    holders: dict[Assumed, dict[str, None]] = {}
    for reduction in reductions:
        for assumed in reduction.assumed:
            holders.setdefault(assumed, {})[names[reduction.path]] = None
    every = len(set(names.values()))
    return [assumed if len(named) == every else assumed.of(named) for assumed, named in holders.items()]


#: The assumptions of every joint guarantee. The composition theorem is for mechanisms that are given beforehand; what one of them
#: released may be an input of another (adaptive composition), but may not choose its privacy parameters.
FIXED = Assumed(
    "All documents that are composed were fixed before the first release of any of them: no noise, rate, length or other number "
    "in them, and no decision which of them are run, follows from what was released. A run may use what others released.",
    "All documents were fixed before the first release, no number chosen by one.",
)
SAME_DATA = Assumed(
    "All of them are about the same data set{part}, whose records are counted in the same way: what is one record for one of "
    "them is one record for all.",
    "All are about the same data set, with the same records.",
)
PART = ", or about the part of it under whose name the document has them"
AS_CERTIFIED = Assumed(
    "Each of them describes one run, which satisfies the assumptions of its own certificate too; every run on this data set that "
    "the guarantee is to cover is among them.",
    "Each is one run, as its certificate assumes; no run on the data is missing.",
)


def _joint_assumptions(document: Document) -> list[Assumed]:
    """Return what is assumed of the documents that a joint document was made from; empty for other documents."""
    if not document.composed_from:
        return []
    part = PART if any(isinstance(phase, Parts) for phase in document.phases) else ""
    return [FIXED, SAME_DATA.filled(part=part), AS_CERTIFIED]
