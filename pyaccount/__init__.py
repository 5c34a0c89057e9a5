"""pyaccount: a differential-privacy accountant.

`load` reads a mechanism document, `compile` plans its analysis, `certify` does both and runs the plan; a `Certificate` comes
out. See the README for the document language.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from distributed import Client

    from pyaccount.accountant import Accountant
    from pyaccount.attestation.opening import Attestation
    from pyaccount.auditing.report import Audit
    from pyaccount.certificate import Certificate, Interval, Profile
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.comparison import Comparison
    from pyaccount.certificate.matrix_description import MatrixDescription
    from pyaccount.data.prepare import Prepared
    from pyaccount.document.amplification import Amplification
    from pyaccount.document.document import Document
    from pyaccount.document.overrides import Overrides
    from pyaccount.errors import (
        AttestationError,
        CertificateError,
        ClusterError,
        DocumentError,
        DomainError,
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
    "Certificate",
    "CertificateError",
    "ClusterError",
    "Comparison",
    "Document",
    "DocumentError",
    "DomainError",
    "Interval",
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
    **{name: "pyaccount.errors" for name in __all__ if name == "Problem" or name.endswith("Error")},
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        # A file with all of the package's metadata is read for it.
        from importlib.metadata import version

        return version("pyaccount")
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
    source: Source | Document,
    *,
    overrides: Overrides = (),
    folder: str | os.PathLike[str] | None = None,
) -> Document:
    """Read and validate a mechanism document from a file or a mapping.

    `overrides` are a mapping of paths to values, as `{"privacy.epsilon": 4}`, or a list of `path=value` strings and (path, value)
    pairs. For a document from somebody who is not trusted,
    `folder` is where files lie that it names, and no other file is read for it; otherwise they are looked for beside its file,
    or in the working folder. Raises `DocumentError` with every problem.
    """
    from pyaccount.document.loading import load as load_document

    return load_document(source, overrides=overrides, folder=folder)


def compile(source: Source | Document) -> Plan:
    """Plan the analysis of a document: which theorem applies to each part.

    Matrices and sensitivities are computed; ε, δ and the blank are not.
    Raises `DocumentError` for what no theorem covers.
    """
    from pyaccount.running import compile_document

    return compile_document(load(source))


def certify(  # noqa: PLR0913 - what is certified, and how
    source: Source | Document,
    *,
    overrides: Overrides = (),
    threads: int = 0,
    time_limit: float | str | None = None,
    progress: bool = False,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    cluster: Client | str | None = None,
) -> Certificate:
    """Certify a document: load, compile, run.

    `threads` 0 means one for each core and never changes the answer; `time_limit` is in seconds, or spelled as in a document
    (`10 min`), and overrides the document's; `progress` shows a bar on standard error when that is a terminal. Raises
    `DocumentError`, `DomainError`, `LimitError`, `NumericsError`; Ctrl-C raises `KeyboardInterrupt`; there is no partial
    certificate.

    With a `store` (`docs/runs.md`) what was certified before is not computed again, and an interrupted run goes on. Where it
    fails: `StoreError`, or with `store_errors="continue"` a warning, and the run goes on without it. With a `cluster`, which is a
    `distributed.Client`, the address of a scheduler or `local:4`, its workers do the work (`ClusterError`); the
    certificate is the same.
    """
    from pyaccount.arguments import seconds_of, threads_of
    from pyaccount.running import compile_within

    since, threads, time_limit = time.monotonic(), threads_of(threads), seconds_of(time_limit)
    plan, since = compile_within(load(source, overrides=overrides), compile, time_limit=time_limit, since=since)
    with _reported(progress) as report:
        return plan.run(
            threads=threads,
            time_limit=time_limit,
            report=report,
            store=store,
            store_errors=store_errors,
            cluster=cluster,
            since=since,
        )


async def certify_async(  # noqa: PLR0913 - as certify
    source: Source | Document,
    *,
    overrides: Overrides = (),
    threads: int = 0,
    time_limit: float | str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    store_errors: Literal["stop", "continue"] = "stop",
    cluster: Client | str | None = None,
) -> Certificate:
    """As `certify`, for asyncio: other tasks go on meanwhile, and others certify at the same time.

    All calls share the core's threads: 32 at once take as long as one after another, and no more threads. A task that is
    cancelled ends its own computation within moments, and no other. `docs/runs.md` has an example.
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
        cluster=cluster,
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
    cluster: Client | str | None = None,
) -> Sweep:
    """Certify every cell of a document with `vary:`, or each of several documents; a table comes out (`docs/runs.md`).

    A cell that fails or is stopped is among its `failures`, and the others are certified all the same. `overrides` are laid over
    every document; certificates are written to the folder `certificates`. With a `store`, cells that are finished are not run
    again; with a `cluster`, its workers compute. `threads` never changes the answer.

    Raises before any work `DocumentError` for a grid that is wrong, or of which no cell is a document, `DomainError` for one of
    more than `most` cells, `StoreError`, `ClusterError`; Ctrl-C raises `KeyboardInterrupt`.
    """
    from contextlib import ExitStack
    from pathlib import Path

    from pyaccount.arguments import threads_of
    from pyaccount.document.sweeps import load_grid
    from pyaccount.sweeping.run import SweepOptions, checked_size
    from pyaccount.sweeping.run import sweep as compute

    threads, grid = threads_of(threads), load_grid(source, overrides=overrides)
    checked_size(grid, most, "most=")
    with ExitStack() as stack:
        report = stack.enter_context(_reported(progress))
        there = None
        if cluster is not None:
            from pyaccount.cluster import open_cluster

            there = stack.enter_context(open_cluster(cluster))
        how = SweepOptions(
            threads=threads,
            report=report,
            store=None if store is None else Path(store),
            store_errors=store_errors,
            cluster=there,
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
    """The strategy matrices of a document, to train with: `matrices` has them as arrays, one for each phase.

    Where the document leaves the matrix open (`choose:`, `optimize_for: sampling`) it is chosen and found first, as `certify`
    does with the same seed; nothing is certified. Raises `DocumentError`, also where iterations are the blank, `DomainError`,
    `LimitError`, `NumericsError`.
    """
    from pyaccount.arguments import threads_of

    plan, threads = compile(load(source, overrides=overrides)), threads_of(threads)
    with _reported(progress) as report:
        return plan.matrix(threads=threads, report=report)


def amplify(source: Source | Amplification, *, overrides: Overrides = ()) -> AmplificationCertificate:
    """What one draw by a sampler does to a mechanism that is run once: a document of kind amplification.

    Raises `DocumentError`, also for documents of another kind.
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
    """Certify several documents and lay the results side by side, with finished certificates among them.

    A certificate, or the JSON file of one, is compared as it is: nothing is recomputed, and `overrides` do not change it.
    A document that fails or is stopped is among the `failures` of the comparison, and the others are certified all the same.

    Raises `TypeError` for one document where a list of them belongs, and before the work `DocumentError` for documents that
    are wrong and `CertificateError` for a file that should be a certificate; Ctrl-C raises `KeyboardInterrupt`.
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
    folder: str | os.PathLike[str] | None = None,
    same_version: bool = False,
    seed: int | Literal["new"] | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a certificate (a file, or one in memory) from the document inside it, and compare every field.

    What it gives is true if the certificate agrees.

    `folder` is where files lie that the document names, if not beside the certificate. With `same_version` a certificate that
    names another version does not agree. With a `seed`, or `new` for one drawn now, a sampled certificate is held against samples
    that it was not made from. Of an `attestation`, in a certificate's place, it is first looked whether one of the public keys
    in the folder `trusted_keys` signed it, and whether it is about the files `subjects`: `AttestationError` if not. Without
    `subjects` an attestation is refused, unless `any_subject` says that it may be about any file. Raises `CertificateError` for
    what is none, `DomainError` for arguments that do not belong together, and otherwise as `certify`.
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
        how = How(options, folder=folder, same_version=same_version, seed=seed)
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
    **limits: object,
) -> Verdict:
    """Hold certificates against a policy, or against limits such as `max_epsilon=8, max_delta=1e-5`. Nothing is recomputed.

    With a `document`, or a list of them, each certificate must be about it, or about one of them. The verdict is true if
    every certificate passes, as in `if not check(…): raise SystemExit(1)`.

    The policy and the limits together must limit both ε and δ, or an attack (`max_advantage`, or `max_true_positive_rate` with
    `at_false_positive_rate`). With `no_limits=True` they need not, and the verdict shows ε and δ; limits that are given all the
    same still apply.

    An `attestation`, or a list of them, holds a certificate that is judged only if a key in the folder `trusted_keys` signed it;
    then no certificate passes by itself. Each of the files `subjects` must be among those that it is about; without any, it is
    refused unless `any_subject=True` says that it may be about any file.

    Raises `DocumentError` if the policy, a document or a limit is wrong, `DomainError` if keys or subjects cannot be read or a
    limit or the subjects are missing, `CertificateError` if there are no certificates; a file that is none is part of the
    verdict.
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
    )


def attest(
    certificate: str | os.PathLike[str] | Certificate,
    subjects: Sequence[str | os.PathLike[str]],
    key: str | os.PathLike[str],
    *,
    public_key: str | os.PathLike[str] | None = None,
    secret: Callable[[str], str] | None = None,
) -> Attestation:
    """Sign a certificate as being about the files `subjects`: an in-toto Statement in a DSSE envelope, by securesystemslib.

    `key` is a file with a private key in PEM, or a URI by which securesystemslib knows one, with the file of its `public_key`;
    `secret` is asked for its passphrase or PIN. `docs/attestations.md` says what a signature says, and what it does not. Raises
    `CertificateError`, `AttestationError` for a certificate that fails, `DomainError`, `MissingExtraError`.
    """
    from pyaccount.attestation.signing import attest as sign

    return sign(certificate, subjects, key, public_key=public_key, secret=secret)


def prepare(  # noqa: PLR0913 - a table, and what is wanted of it
    table: Any,
    *,
    records_per_user: int,
    document: Source | Document | None = None,
    overrides: Overrides = (),
    expected_batch_size: float | None = None,
    sampling_probability: float | None = None,
    min_separation: int | None = None,
    neighbour_limit: int | Literal["rule"] | None = None,
    drop_shared: bool = False,
    seed: int = 0,
    columns: tuple[str, str] = ("record", "user"),
) -> Prepared:
    """Keep at most so many records of each user, and say what a document says of the records kept.

    `table` is a CSV or Parquet file with a row for each pair of a record and a user, something with these two columns (a mapping,
    a data frame), or pairs. `document` is filled in, with `overrides` before that; `docs/users.md` has the rest. What comes
    out is no private statistic. Raises `TableError`, `DomainError`, `DocumentError`, `MissingExtraError`.
    """
    from pyaccount.data.prepare import prepare as compute

    return compute(
        table,
        records_per_user=records_per_user,
        document=None if document is None else load(document, overrides=overrides),
        expected_batch_size=expected_batch_size,
        sampling_probability=sampling_probability,
        min_separation=min_separation,
        neighbour_limit=neighbour_limit,
        drop_shared=drop_shared,
        seed=seed,
        columns=columns,
    )


def audit(  # noqa: PLR0913 - what is audited, how the canaries were drawn, and how they are judged
    certificate: str | os.PathLike[str] | Certificate,
    scores: Any,
    included: Any = None,
    *,
    runs: Literal["one", "many"] = "one",
    confidence: float = 0.95,
    guesses: tuple[int, int] | None = None,
    threshold: float | None = None,
    seed: int = 0,
) -> Audit:
    """Hold scores of canaries against a certificate: ε at least, at its δ, and whether they refute its curve.

    `scores` is a file (CSV, Parquet, npz) with the columns `score` and `included`, a mapping with these, or the scores themselves
    with `included` beside. `docs/auditing.md` says how canaries are drawn for one run and for many. The verdict is true if the
    scores are consistent with the certificate, which proves nothing. Raises `CertificateError`, `TableError`, `DomainError`.
    """
    from pyaccount.auditing.audit import audit as hold

    return hold(
        certificate,
        scores,
        included,
        runs=runs,
        confidence=confidence,
        guesses=guesses,
        threshold=threshold,
        seed=seed,
    )
