"""The public functions that run plans, by the names under which `pyaccount` offers them.

They check arguments, load documents and open what a run needs. What few callers need is imported where it is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pyaccount.arguments import seconds_of, threads_of
from pyaccount.certificate import Certificate
from pyaccount.certificate.comparison import Comparison
from pyaccount.document.amplification import Amplification
from pyaccount.document.document import Document
from pyaccount.document.loading import load as load_mechanism
from pyaccount.document.loading import load_any
from pyaccount.errors import DomainError
from pyaccount.reading.overrides import Overrides
from pyaccount.reading.sources import Source
from pyaccount.running.plan import Plan, compile_document, compile_within

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.matrix_description import MatrixDescription
    from pyaccount.store import Store


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

    ```python
    import pyaccount

    document = pyaccount.load("examples/cifar10-dp-sgd.yaml", overrides={"privacy.epsilon": 4})
    print(document.name, document.privacy.epsilon)
    ```
    """
    return load_any(source, overrides=overrides, folders=folders)


def compile(source: Source | Document | Amplification) -> Plan | Any:
    """Plan the analysis of a document: choose the theorem for each of its parts.

    Matrices and sensitivities are computed; ε, δ and the blank are not. Returns a `Plan`; of a document of kind amplification a
    plan that has `page` and `run` too. Raises `DocumentError` for a document that no theorem covers.

    ```python
    import pyaccount

    plan = pyaccount.compile("examples/cifar10-dp-sgd.yaml")
    print(plan.to_text())
    certificate = plan.run()
    ```
    """
    document = load_any(source)
    if isinstance(document, Document):
        return compile_document(document)
    from pyaccount.running.plan import compile_one_draw  # few documents are of this kind

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

    ```python
    import pyaccount

    certificate = pyaccount.certify(
        {
            "pyaccount": 1,
            "name": "my training run",
            "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
            "training": {"dataset_size": 50_000, "expected_batch_size": 500, "iterations": 2000},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": 1.0},
        }
    )
    print(certificate.epsilon, certificate.statement)
    certificate.save("training.cert.json")
    ```
    """
    from pyaccount.execute.progress import reported  # planning needs no module that runs plans

    since, threads, time_limit = time.monotonic(), threads_of(threads), seconds_of(time_limit)
    document = load_any(source, overrides=overrides)
    if not isinstance(document, Document):
        if executor is not None:
            raise DomainError("executor: an amplification is computed at once on this machine; leave it out")
        return compile(document).run()
    plan, since = compile_within(document, compile_document, time_limit=time_limit, since=since)
    with reported(progress) as report:
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

    ```python
    import asyncio

    import pyaccount

    certificate = asyncio.run(pyaccount.certify_async("examples/cifar10-dp-sgd.yaml"))
    ```
    """
    from pyaccount.running.executor import in_thread

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

    ```python
    import pyaccount

    described = pyaccount.matrix("examples/unamplified-matrix.yaml")
    print(described.matrices[0].coefficients[:3])
    ```
    """
    from pyaccount.execute.progress import reported  # as in `certify`

    plan, threads = compile_document(load_mechanism(source, overrides=overrides)), threads_of(threads)
    with reported(progress) as report:
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

    ```python
    import pyaccount

    joint = pyaccount.compose(["training.cert.json", "examples/check-a-claim.yaml"], name="both", delta=1e-5)
    print(joint.epsilon, joint.delta)
    ```
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

    ```python
    import pyaccount

    print(pyaccount.amplify("examples/one-draw.yaml").to_text())
    ```
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

    ```python
    import pyaccount

    print(pyaccount.compare(["examples/cifar10-dp-sgd.yaml", "examples/adaptive-clipping.yaml"]).to_text())
    ```
    """
    from pyaccount.execute.progress import reported
    from pyaccount.reading.overrides import listed_overrides
    from pyaccount.running.plan import comparable
    from pyaccount.running.plan import compare as compute

    if isinstance(sources, str | bytes | os.PathLike | Mapping) or not isinstance(sources, Iterable):
        raise TypeError(f"sources is a list of documents, not one {type(sources).__name__}: compare([document, …])")
    sources, threads, overrides = list(sources), threads_of(threads), listed_overrides(overrides)
    if not sources:
        raise DomainError("sources is a list of documents, of at least one: there is nothing to compare")
    plans = [comparable(source, overrides) for source in sources]
    with reported(progress) as report:
        return compute(plans, threads=threads, report=report)
