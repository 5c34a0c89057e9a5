"""Checks certificates against a policy, or against single limits: the gate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyaccount.attestation.statement import Attestation, Envelope, envelope_of
from pyaccount.certificate.reading import Read, given_certificate
from pyaccount.document.policy import Policy, load_policy
from pyaccount.document.words import VERSION
from pyaccount.errors import CertificateError, DomainError
from pyaccount.gate.required_signatures import RequiredSignatures, required_signatures_of, too_easy, without_limit
from pyaccount.gate.rules import About, AskedBudget, judge
from pyaccount.gate.verdict import Attested, Judged, PolicyUsed, Rule, Unreadable, Verdict
from pyaccount.reading.nodes import Place, Table, from_value

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.document.document import Document
    from pyaccount.gate.independent import AskedProof
    from pyaccount.ledger import Ledger
    from pyaccount.reading.sources import Handed, Source

FilePath = str | os.PathLike[str]


def check(  # noqa: PLR0913 - what is judged, and by what
    *certificates: str | os.PathLike[str] | Certificate,
    policy: Source | None = None,
    document: Source | Document | Sequence[Source | Document] | None = None,
    attestation: str | os.PathLike[str] | Attestation | Sequence[str | os.PathLike[str] | Attestation] = (),
    trusted_keys: str | os.PathLike[str] | None = None,
    subjects: Sequence[str | os.PathLike[str]] = (),
    no_limits: bool = False,
    any_subject: bool = False,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    data_set: str | None = None,
    **limits: object,
) -> Verdict:
    """Compare certificates with a policy, or with limits such as `max_epsilon=8, max_delta=1e-5`. Nothing is recomputed.

    Args:
        certificates: JSON files, or certificates in memory.
        policy: The file or the mapping of a policy.
        document: A document, or a list of them: each certificate must be about one of them.
        attestation: A signed certificate, or a list of them. A certificate that is not signed does not pass in addition.
        trusted_keys: A folder of public keys, for attestations: one of them must have signed each.
        subjects: Files, for attestations: each must be about all of them.
        no_limits: Allow that ε and δ are not limited; the verdict shows them. Limits that are given still apply.
        any_subject: Accept attestations about any files, instead of `subjects`.
        ledger: A ledger, its file or its address: each certificate must be entered there, or fit into the budget.
        data_set: The data set of the ledger; by default the only one.
        limits: Limits by the names of a policy's fields. They apply in addition to the policy.

    The policy and the limits together must limit both ε and δ, or an attack (`max_advantage`, or `max_true_positive_rate` with
    `at_false_positive_rate`), unless `no_limits` is set or a ledger is asked.

    Returns the verdict, which is true if every certificate passes, as in `if not check(…): raise SystemExit(1)`. A file that
    is not a certificate fails. Raises `DocumentError` if the policy, a document or a limit is wrong, `DomainError` if keys or
    subjects cannot be read, or if a limit or the subjects are missing, and `CertificateError` if no certificate is given.

    ```python
    import pyaccount

    verdict = pyaccount.check("training.cert.json", max_epsilon=8, max_delta=1e-5)
    if not verdict:
        print(verdict.to_text())
    ```
    """
    documents: Any = [document] if not isinstance(document, list | tuple) else document
    attestations: Any = [attestation] if not isinstance(attestation, list | tuple) else attestation
    return verdict_on(
        certificates,
        policy=policy,
        documents=None if document is None else documents,
        limits=limits,
        attestations=attestations,
        trusted_keys=trusted_keys,
        subjects=subjects,
        no_limits=no_limits,
        any_subject=any_subject,
        ledger=ledger,
        data_set=data_set,
    )


def verdict_on(  # noqa: PLR0913 - everything that a verdict depends on
    sources: Sequence[FilePath | Certificate],
    *,
    policy: FilePath | Handed | Mapping[str, Any] | Policy | None = None,
    documents: Sequence[FilePath | Handed | Mapping[str, Any] | Document] | None = None,
    limits: Mapping[str, object] | None = None,
    places: Mapping[str, str] | None = None,
    attestations: Sequence[FilePath | Attestation] = (),
    trusted_keys: FilePath | None = None,
    subjects: Sequence[FilePath] = (),
    no_limits: bool = False,
    any_subject: bool = False,
    ledger: FilePath | Ledger | None = None,
    data_set: str | None = None,
) -> Verdict:
    """Return the verdict of `check`. `places` are the origins of limits, for messages of the command.

    Attestations must be signed by a key in the folder `trusted_keys`, and by one in the folder of the policy. Neither `no_limits`
    nor `any_subject` turns off what a policy requires. Raises as `check` does, and `TypeError` for a source of another type; a
    file pattern without a match does not pass, since at least one certificate must be given.
    """
    if not sources and not attestations:
        raise CertificateError("no certificate was given, so there is nothing that could pass")
    for source in (*sources, *attestations):
        if not isinstance(source, str | os.PathLike) and not hasattr(source, "to_json"):
            several = (
                ": give each as an argument, as in check(*paths)" if isinstance(source, list | tuple | set) else ""
            )
            kind = type(source).__name__
            raise TypeError(f"a certificate is the path of a JSON file or a Certificate, not {kind}{several}")
    asked, used, loaded = [], None, None
    if policy is not None:
        loaded = load_policy(policy)
        asked.append((loaded.name, loaded.limits))
        used = PolicyUsed(loaded.name, loaded.file, loaded.sha256)
    caller = "command line" if places is not None else "caller"
    if limits:
        asked.append((caller, _given(limits, places or {}).limits))
    budgets = _budgets(loaded, ledger, data_set, caller)
    unlimited = without_limit([one for _, one in asked])
    if unlimited and not (no_limits or budgets):
        raise DomainError(too_easy(unlimited))
    about = None if documents is None else _about(documents, caller)
    required = required_signatures_of(loaded, trusted_keys, subjects, caller)
    if attestations:
        required.check_subjects(any_subject=any_subject)
    elif any_subject:
        raise DomainError(
            "`any_subject` is only for attestations: leave it out, since a certificate alone is about no file"
        )
    requirements = [*budgets, *_proofs(loaded)]
    more: Any = {"about": about, "shown_only": [(caller, name) for name in unlimited], "requirements": requirements}
    judged = []
    for source in sources:
        file = os.fsdecode(source) if isinstance(source, str | os.PathLike) else "certificate"
        try:
            certificate = given_certificate(source)
            judged.append(_with(tuple(required.unsigned()), judge(certificate, asked, **more)))
        except CertificateError as error:
            judged.append(Judged(file=file, passes=False, error=str(error), problems=Unreadable.of(error)))
    for attestation in attestations:
        file = os.fsdecode(attestation) if isinstance(attestation, str | os.PathLike) else "attestation"
        try:
            envelope = envelope_of(attestation)
            judged.append(_attested(envelope, required, lambda certificate: judge(certificate, asked, **more)))
        except CertificateError as error:
            judged.append(Judged(file=file, passes=False, error=str(error), problems=Unreadable.of(error)))
    passes = all(one.passes for one in judged)
    return Verdict(1, "verdict", passes, recomputed=False, policy=used, certificates=tuple(judged))


def _attested(envelope: Envelope, required: RequiredSignatures, judged_by: Callable[[Read], Judged]) -> Judged:
    """Return the verdict on the certificate in an attestation. Nothing in it is read unless a trusted key signed it."""
    rules, signers = required.signatures(envelope)
    if not all(rule.passes for rule in rules):
        return Judged(file=envelope.file, passes=False, sha256=envelope.sha256, rules=tuple(rules))
    statement = envelope.statement()
    judged = judged_by(statement.certificate)
    judged = replace(judged, attestation=Attested(tuple(signers), statement.subjects))
    return _with((*rules, *required.subjects(statement.subjects)), judged)


def _with(rules: tuple[Rule, ...], judged: Judged) -> Judged:
    """Return a verdict with further rules before its own."""
    return replace(judged, passes=judged.passes and all(rule.passes for rule in rules), rules=(*rules, *judged.rules))


def _proofs(policy: Policy | None) -> list[AskedProof]:
    """Return the requirement of a policy that guarantees are proven independently; empty if it has none."""
    if policy is None or not policy.independent_required:
        return []
    from pyaccount.gate.independent import SECONDS, AskedProof  # few gates ask for it

    return [AskedProof(policy.name, SECONDS)]


def _budgets(
    policy: Policy | None, ledger: FilePath | Ledger | None, data_set: str | None, caller: str
) -> list[AskedBudget]:
    """Return the ledgers that are asked. Raises `DomainError` for a data set without a ledger."""
    if ledger is None and data_set is not None:
        raise DomainError("`data_set` is a data set of a ledger: give `ledger` too")
    places: list[tuple[str, FilePath | Ledger, str | None]] = []
    if policy is not None and policy.budget is not None:
        places.append((policy.name, *policy.budget))
    if ledger is not None:
        places.append((caller, ledger, data_set))
    if not places:
        return []
    from pyaccount.ledger import Ledger  # few gates ask a ledger

    return [
        AskedBudget(origin, Ledger(place) if isinstance(place, str | os.PathLike) else place, name)
        for origin, place, name in places
    ]


def _about(documents: Sequence[FilePath | Handed | Mapping[str, Any] | Document], origin: str) -> About:
    """Return the documents that certificates must be about, with their hashes. Raises `DocumentError`."""
    if not documents:
        raise DomainError("document is an empty list, so no certificate could pass: give at least one document")
    from pyaccount.document.loading import load  # the models of documents are needed only if a document is given

    loaded = [load(document) for document in documents]
    return About(origin, tuple((document.file or document.name, document.sha256) for document in loaded))


def _given(limits: Mapping[str, object], places: Mapping[str, str]) -> Policy:
    """Return single limits as a policy; errors are located at the option that gave the limit."""
    root, problems = from_value({"pyaccount": VERSION, "kind": "policy", "name": "limits", "limits": limits}, Place())
    assert isinstance(root, Table)
    top, table = root.entries["limits"]
    assert isinstance(table, Table)
    entries = dict(table.entries)
    for name, place in places.items():
        if name in entries:
            node, _ = from_value(limits[name], Place(place))
            entries[name] = (Place(place), node)
    inner = Table(entries, table.place, table.torn)
    return Policy(Table({**root.entries, "limits": (top, inner)}, root.place, root.torn), None, problems)
