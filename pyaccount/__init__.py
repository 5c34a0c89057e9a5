"""pyaccount: a differential-privacy accountant.

`load` reads a mechanism document, `compile` plans its analysis, `certify` does both and runs the plan; a `Certificate` comes
out. See the README for the document language.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from pyaccount.accountant import Accountant
    from pyaccount.attestation.opening import Attestation
    from pyaccount.attestation.signing import attest
    from pyaccount.auditing.audit import audit
    from pyaccount.auditing.report import Audit
    from pyaccount.certificate import Certificate, Interval, Profile
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.comparison import Comparison
    from pyaccount.certificate.matrix_description import MatrixDescription
    from pyaccount.data.prepare import Prepared, prepare
    from pyaccount.document.amplification import Amplification
    from pyaccount.document.document import Document
    from pyaccount.document.overrides import Overrides
    from pyaccount.errors import (
        AttestationError,
        BudgetError,
        CardError,
        CardMismatchError,
        CertificateError,
        ClusterError,
        DocumentError,
        DomainError,
        LedgerError,
        LedgerStorageError,
        LimitError,
        MissingExtraError,
        NumericsError,
        PlanExceededError,
        Problem,
        PyaccountError,
        RunError,
        StateError,
        StoreError,
        TableError,
    )
    from pyaccount.execute.progress import Report
    from pyaccount.gate.verdict import Verdict
    from pyaccount.gate.verification import Verification
    from pyaccount.ledger import Ledger
    from pyaccount.running import Plan
    from pyaccount.store import Store
    from pyaccount.sweeping import Sweep
    from pyaccount.training import TrainingRun

__all__ = [
    "Accountant",
    "AmplificationCertificate",
    "Attestation",
    "AttestationError",
    "Audit",
    "BudgetError",
    "CardError",
    "CardMismatchError",
    "Certificate",
    "CertificateError",
    "ClusterError",
    "Comparison",
    "Document",
    "DocumentError",
    "DomainError",
    "Interval",
    "Ledger",
    "LedgerError",
    "LedgerStorageError",
    "LimitError",
    "MatrixDescription",
    "MissingExtraError",
    "NumericsError",
    "Plan",
    "PlanExceededError",
    "Prepared",
    "Problem",
    "Profile",
    "PyaccountError",
    "RunError",
    "StateError",
    "Store",
    "StoreError",
    "Sweep",
    "TableError",
    "TrainingRun",
    "Verdict",
    "Verification",
    "amplify",
    "attest",
    "audit",
    "certify",
    "certify_async",
    "check",
    "compare",
    "compile",
    "compose",
    "load",
    "matrix",
    "prepare",
    "sweep",
    "verify",
]

# Before any thread can be in the middle of an import.
import_module("pyaccount.forks")

Source = str | os.PathLike[str] | Mapping[str, Any]

#: Where each public name lives; modules load when a name is first used, so that importing pyaccount costs nothing.
_HOMES = {
    "Accountant": "pyaccount.accountant",
    "AmplificationCertificate": "pyaccount.certificate.amplification",
    "Attestation": "pyaccount.attestation.signing",
    "Audit": "pyaccount.auditing.report",
    "Certificate": "pyaccount.certificate",
    "Comparison": "pyaccount.certificate.comparison",
    "Interval": "pyaccount.certificate",
    "Ledger": "pyaccount.ledger",
    "MatrixDescription": "pyaccount.certificate.matrix_description",
    "Profile": "pyaccount.certificate",
    "Document": "pyaccount.document.document",
    "Plan": "pyaccount.running",
    "Store": "pyaccount.store",
    "Sweep": "pyaccount.sweeping",
    "TrainingRun": "pyaccount.training",
    "Prepared": "pyaccount.data.prepare",
    "Verdict": "pyaccount.gate.verdict",
    "Verification": "pyaccount.gate.verification",
    "attest": "pyaccount.attestation.signing",
    "audit": "pyaccount.auditing.audit",
    "prepare": "pyaccount.data.prepare",
    **{name: "pyaccount.errors" for name in __all__ if name == "Problem" or name.endswith("Error")},
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        # A file with all of the package's metadata is read for it.
        from importlib.metadata import version

        from pyaccount.errors import DISTRIBUTION

        return version(DISTRIBUTION)
    raise AttributeError(f"module 'pyaccount' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__")), "__version__"])


def _reported(progress: bool) -> AbstractContextManager[Report | None]:
    """Return a progress bar on standard error, or nothing."""
    if progress:
        from pyaccount.execute.progress import progress_bar

        return progress_bar()
    from contextlib import nullcontext

    return nullcontext()


def load(
    source: Source | Document | Amplification,
    *,
    overrides: Overrides = (),
    folders: Sequence[str | os.PathLike[str]] = (),
) -> Document | Any:
    """Read and validate a document to certify, or apply overrides to one that was read.

    Args:
        source: The path of a YAML file, a mapping with the same contents, or a document.
        overrides: Values to replace: a mapping of paths to values, as `{"privacy.epsilon": 4}`, or a list of `path=value`
            strings, as after `--set`, and (path, value) pairs.
        folders: Folders in which the files that the document names may lie, besides the document's own folder. That of a
            mapping is the working folder. No file elsewhere is read, whether its path is absolute, leads upwards, or is a link.

    Returns a `Document`; of a document of kind amplification an `Amplification`, which type checkers see as `Any`, because only
    the content of the source says which it is. Raises `DocumentError`, with every problem and its line and column, and
    `TypeError` if the source has another type.
    """
    from pyaccount.document.loading import load_any

    return load_any(source, overrides=overrides, folders=folders)


def compile(source: Source | Document | Amplification) -> Plan | Any:
    """Plan the analysis of a document: choose the theorem for each of its parts.

    Matrices and sensitivities are computed; ε, δ and the blank are not. Returns a `Plan`; of a document of kind amplification a
    plan that has `page` and `run` too. Raises `DocumentError` for a document that no theorem covers.
    """
    from pyaccount.document.document import Document
    from pyaccount.document.loading import load_any

    document = load_any(source)
    if isinstance(document, Document):
        from pyaccount.running import compile_document

        return compile_document(document)
    from pyaccount.running.one_draw import compile_one_draw  # few documents are of this kind

    return compile_one_draw(document)


def certify(  # noqa: PLR0913 - what is certified, and how
    source: Source | Document | Amplification,
    *,
    overrides: Overrides = (),
    threads: int = 0,
    time_limit: float | str | None = None,
    progress: bool = False,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    executor: Executor | None = None,
) -> Certificate | Any:
    """Load a document, plan it and run the plan: compute its blank, check its claim, or compute the effect of one draw.

    Args:
        source: As for `load`.
        overrides: As for `load`.
        threads: The number of threads; 0 means one for each core. It never changes the answer.
        time_limit: Seconds, or a text as in a document (`10 min`); it replaces the limit of the document.
        progress: Show a progress bar on standard error, if that is a terminal.
        store: A run store, or its file (`docs/runs.md`). A run that is finished there is not computed again.
        store_errors: If the store fails, `stop` with `StoreError`, or `continue` without it, with a warning.
        executor: A `concurrent.futures.Executor`, such as a `ProcessPoolExecutor` or Dask's `client.get_executor()`. Its
            workers draw the samples; the certificate is the same (`docs/runs.md`). Raises `ClusterError`.

    Returns the `Certificate`; of a document of kind amplification an `AmplificationCertificate`, which is computed at once on
    this machine, and which type checkers see as `Any`. There is no partial certificate: at the time limit `LimitError` is
    raised. Raises `DocumentError` also for a target that nothing reaches, `DomainError` for a wrong argument, `NumericsError`;
    Ctrl-C raises `KeyboardInterrupt`.
    """
    from pyaccount.arguments import seconds_of, threads_of
    from pyaccount.document.document import Document
    from pyaccount.document.loading import load_any
    from pyaccount.running import compile_document, compile_within

    since, threads, time_limit = time.monotonic(), threads_of(threads), seconds_of(time_limit)
    document = load_any(source, overrides=overrides)
    if not isinstance(document, Document):
        if cluster is not None:
            from pyaccount.errors import DomainError

            raise DomainError("cluster: an amplification is computed at once on this machine; leave it out")
        return compile(document).run()
    plan, since = compile_within(document, compile_document, time_limit=time_limit, since=since)
    with _reported(progress) as report:
        return plan.run(
            threads=threads,
            time_limit=time_limit,
            report=report,
            store=store,
            store_errors=store_errors,
            executor=executor,
            since=since,
        )


async def certify_async(  # noqa: PLR0913 - as certify
    source: Source | Document | Amplification,
    *,
    overrides: Overrides = (),
    threads: int = 0,
    time_limit: float | str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    executor: Executor | None = None,
) -> Certificate | Any:
    """Certify a document in asyncio, with the arguments of `certify`; other tasks run in the meantime.

    All calls share the threads of the core, so 32 calls at once take as long as one after another. If a task is cancelled, its
    computation ends within moments, and no other one does. `docs/runs.md` has an example.
    """
    import os
    from functools import partial

    from pyaccount.running.asynchronous import in_thread

    work = partial(
        certify,
        source,
        overrides=overrides,
        threads=threads,
        time_limit=time_limit,
        # A connection to SQLite stays in its thread.
        store=None if store is None else os.fspath(store),
        store_errors=store_errors,
        executor=executor,
    )
    return await in_thread(work)


def sweep(  # noqa: PLR0913 - what is swept, and how
    source: Source | Document | Sequence[Source | Document],
    *,
    overrides: Overrides = (),
    threads: int = 0,
    progress: bool = False,
    most: int = 10_000,
    certificates: str | os.PathLike[str] | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    executor: Executor | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
) -> Sweep:
    """Certify a document for every combination of the values under `vary:`, or each of several documents (`docs/runs.md`).

    Args:
        source: A document with `vary:`, or a list of documents.
        overrides: As for `load`; they apply to every document.
        threads: As for `certify`.
        progress: As for `certify`.
        most: The maximum number of cells; more raise `DomainError`.
        certificates: A folder in which to write the certificates.
        store: As for `certify`; cells that are finished there are not computed again.
        store_errors: As for `certify`.
        executor: As for `certify`.
        folders: As for `load`; the documents that a sweep lists may lie there too.

    Returns a table of the cells. A cell that fails or is stopped is among its `failures`, and the others are certified all the
    same. Before any work, raises `DocumentError` for a wrong sweep, or if no cell is a valid document, `DomainError`
    and `StoreError`; Ctrl-C raises `KeyboardInterrupt`.
    """
    from pathlib import Path

    from pyaccount.arguments import threads_of
    from pyaccount.document.sweeps import load_grid
    from pyaccount.sweeping.run import SweepOptions, checked_size
    from pyaccount.sweeping.run import sweep as compute

    threads, grid = threads_of(threads), load_grid(source, overrides=overrides, folders=folders)
    checked_size(grid, most, "most=")
    with _reported(progress) as report:
        how = SweepOptions(
            threads=threads,
            report=report,
            store=None if store is None else Path(store),
            store_errors=store_errors,
            executor=executor,
            certificates=None if certificates is None else Path(certificates),
        )
        return compute(grid, how)


def matrix(
    source: Source | Document,
    *,
    overrides: Overrides = (),
    threads: int = 0,
    progress: bool = False,
) -> MatrixDescription:
    """Return the strategy matrices to train with, as arrays in `matrices`, one for each phase.

    The arguments are those of `certify`. If the document leaves the matrix open (`choose:`, `optimize_for: sampling`), it is
    chosen and searched for first, as `certify` does with the same seed. Nothing is certified. Raises `DocumentError`, also if
    the number of iterations is the blank, `DomainError`, `LimitError` and `NumericsError`.
    """
    from pyaccount.arguments import threads_of
    from pyaccount.document.loading import load
    from pyaccount.running import compile_document

    plan, threads = compile_document(load(source, overrides=overrides)), threads_of(threads)
    with _reported(progress) as report:
        return plan.matrix(threads=threads, report=report)


def compose(  # noqa: PLR0913 - what is composed, and how
    sources: Sequence[Source | Document | Certificate],
    *,
    parts: Mapping[str, Source | Document | Certificate | Sequence[Source | Document | Certificate]] | None = None,
    names: Sequence[str] | None = None,
    name: str | None = None,
    epsilon: float | str | None = None,
    delta: float | str | None = None,
    adjacency: str | None = None,
    repeat: bool = False,
    points: Literal["profile", "guarantee"] = "profile",
    threads: int = 0,
    time_limit: float | str | None = None,
    progress: bool = False,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    executor: Executor | None = None,
) -> Certificate:
    """Return the joint guarantee of several certificates on the same data, as a certificate (`docs/composing.md`).

    It holds if all of them were fixed before the first release. A certificate whose rounds compose is composed exactly, by the
    phases of its document; one from samples by the proven points of its profile, and the joint certificate then fails with the
    sum of their failure probabilities. Rules that this needs are in the assumptions and theorems of the joint certificate.

    Args:
        sources: A list of certificates, JSON files of certificates, and documents whose only blank may be ε or δ, all of runs
            on the whole data set.
        parts: For runs on disjoint parts of the data: the name of each part, and its source, or a list of them.
        names: Names for the sources, in their order. Default: the names of their documents.
        name: The name of the joint document. Default: made from the names of the sources.
        epsilon: The claim, in nats. Default: it is computed, the least ε that is certified at `delta`.
        delta: The δ of the joint guarantee. Default: that of the sources, if all have the same; with `epsilon`: it is computed.
            With both, the claim is checked.
        adjacency: The adjacency of the joint guarantee. Default: the common one, or replace-one if a source has it, which
            add-remove and zero-out imply by two steps.
        repeat: Whether a document that is given several times was run as often.
        points: For certificates from samples: use the points of the `profile` too, or the `guarantee` alone. The guarantee
            alone gives a larger ε; if it was verified or proven, the joint certificate has no failure probability.
        threads: As for `certify`.
        time_limit: As for `certify`.
        progress: As for `certify`.
        store: As for `certify`.
        store_errors: As for `certify`.
        executor: As for `certify`.

    Returns the certificate of the joint document. Raises `CertificateError` for a certificate whose claim does not hold, that
    contradicts itself, or that is about one draw; `DocumentError` for a wrong document, for the same document twice, and where no
    bound is implemented; `DomainError` for a wrong argument, and if the sources have different δ and none is given; and the
    errors of `certify`.
    """
    from pyaccount.composing import joint_document

    document = joint_document(
        sources,
        parts=parts,
        names=names,
        name=name,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        repeat=repeat,
        points=points,
    )
    return certify(
        document,
        threads=threads,
        time_limit=time_limit,
        progress=progress,
        store=store,
        store_errors=store_errors,
        executor=executor,
    )


def amplify(source: Source | Amplification, *, overrides: Overrides = ()) -> AmplificationCertificate:
    """Compute how one draw by a sampler changes the guarantee of a mechanism that is run once.

    The document is of kind amplification; for other kinds `DocumentError` is raised. `overrides` are as for `load`.
    """
    from pyaccount.certificate.amplification import amplify as compute
    from pyaccount.document.document import Document
    from pyaccount.document.loading import load_any

    document = load_any(source, overrides=overrides)
    if isinstance(document, Document):
        message = "this describes a mechanism; amplify reads documents of kind amplification"
        from pyaccount.errors import DocumentError

        raise DocumentError([document.problem("unknown-kind", ("kind",), message)])
    return compute(document)


def compare(
    sources: Sequence[Source | Document | Certificate],
    *,
    overrides: Overrides = (),
    threads: int = 0,
    progress: bool = False,
) -> Comparison:
    """Certify several documents and return the results side by side.

    Args:
        sources: A list of documents, certificates and JSON files of certificates. A certificate is not recomputed.
        overrides: As for `load`; they apply to every document, but not to certificates.
        threads: As for `certify`.
        progress: As for `certify`.

    A document that fails or is stopped is among the `failures` of the comparison, and the others are certified all the same.
    Before any work, raises `TypeError` for one document instead of a list, `DocumentError` for wrong documents and
    `CertificateError` for a file that should be a certificate; Ctrl-C raises `KeyboardInterrupt`.
    """
    from pyaccount.arguments import threads_of
    from pyaccount.document.overrides import listed_overrides
    from pyaccount.errors import DomainError
    from pyaccount.running.compare import comparable
    from pyaccount.running.compare import compare as compute

    if isinstance(sources, str | bytes | os.PathLike | Mapping) or not isinstance(sources, Iterable):
        raise TypeError(f"sources is a list of documents, not one {type(sources).__name__}: compare([document, …])")
    sources, threads, overrides = list(sources), threads_of(threads), listed_overrides(overrides)
    if not sources:
        raise DomainError("sources is a list of documents, of at least one: there is nothing to compare")
    plans = [comparable(source, overrides) for source in sources]
    with _reported(progress) as report:
        return compute(plans, threads=threads, report=report)


def verify(  # noqa: PLR0913 - what is verified, and with what
    certificate: str | os.PathLike[str] | Certificate | None = None,
    *,
    attestation: str | os.PathLike[str] | Attestation | None = None,
    trusted_keys: str | os.PathLike[str] | None = None,
    subjects: Sequence[str | os.PathLike[str]] = (),
    any_subject: bool = False,
    threads: int = 0,
    time_limit: float | str | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    same_version: bool = False,
    seed: int | Literal["new"] | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a certificate from the document in it, and compare every field.

    Args:
        certificate: A JSON file, or a certificate in memory.
        attestation: A signed certificate, instead of `certificate`. Before anything is recomputed, the signature is checked.
        trusted_keys: A folder of public keys, for an attestation: one of them must have signed it.
        subjects: Files, for an attestation: it must be about each of them.
        any_subject: Accept an attestation about any files, instead of `subjects`.
        threads: As for `certify`.
        time_limit: As for `certify`.
        folders: Where the files that the document names may lie, besides the folder of the certificate.
        same_version: Accept only a certificate that names this version of pyaccount.
        seed: Compare a sampled certificate with samples of another seed: a number, or `new` for one that is drawn now.
        progress: As for `certify`.

    Returns the result, which is true if the certificate agrees. Raises `AttestationError` if the signature or the subjects do
    not match, `CertificateError` if the source is not a certificate, `DomainError` for arguments that do not belong together,
    and otherwise as `certify`.
    """
    from pyaccount.arguments import seconds_of, threads_of
    from pyaccount.errors import DomainError
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.progress import silent
    from pyaccount.gate.verify import How, verify_attestation
    from pyaccount.gate.verify import verify as recompute

    if certificate is not None and attestation is not None:
        raise DomainError("certificate or attestation is what is verified: not both")
    if attestation is None and (trusted_keys is not None or subjects or any_subject):
        message = "trusted_keys, subjects and any_subject are for an attestation: nobody signed a certificate by itself"
        raise DomainError(message)
    threads, time_limit = threads_of(threads), seconds_of(time_limit)
    with _reported(progress) as report:
        options = RunOptions(threads=threads, time_limit=time_limit, report=report or silent)
        how = How(options, folders=folders, same_version=same_version, seed=seed)
        if attestation is not None:
            return verify_attestation(
                attestation, how, trusted_keys=trusted_keys, subjects=subjects, any_subject=any_subject
            )
        return recompute(certificate, how)  # type: ignore[arg-type] # it says what None is not


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
    """
    from pyaccount.gate.check import check as judge

    documents: Any = [document] if not isinstance(document, list | tuple) else document
    attestations: Any = [attestation] if not isinstance(attestation, list | tuple) else attestation
    return judge(
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
