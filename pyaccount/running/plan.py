"""A plan that can be run, and that of a document of kind amplification.

Documents and finished certificates are also set side by side; each document is run, and no failure stops the others.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyaccount.arguments import threads_of
from pyaccount.certificate import Certificate
from pyaccount.certificate.compared import FailedRecord, Why, is_certificate, row_of
from pyaccount.certificate.comparison import Comparison
from pyaccount.document.document import Document
from pyaccount.errors import DocumentError, DomainError, PyaccountError
from pyaccount.pages.page import Page
from pyaccount.pages.readable import Readable
from pyaccount.plan.amplification import AmplificationPlan, compile_amplification
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.compiling import compile_as
from pyaccount.reading.overrides import Overrides
from pyaccount.reading.sources import Folders, Handed

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.matrix_description import MatrixDescription
    from pyaccount.document.amplification import Amplification
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.progress import Report
    from pyaccount.store import KeptRun, Store, Strictness

#: The maximum time of planning, in seconds, that a time limit does not count.
UNCOUNTED = 0.75


@dataclass(frozen=True, slots=True, repr=False)
class Plan(CompiledDocument, Readable):
    """A document with its theorems. `run` executes it; no ε, δ or blank is computed before that."""

    def __repr__(self) -> str:
        parts = ", ".join(dict.fromkeys(one.subject for one in self.reductions))
        name = json.dumps(self.document.name)
        return f"<Plan {name}: {parts}; {self.engine}; {self.question}; nothing is computed yet>"

    def page(self) -> Page:
        """Return the plan as a page; nothing is computed yet."""
        from pyaccount.certificate.report.planned import plan_page

        return plan_page(self)

    def run(  # noqa: PLR0913 - the options of a run
        self,
        *,
        threads: int = 0,
        time_limit: float | None = None,
        report: Report | None = None,
        seed: int | None = None,
        limited_by: str = "time_limit=",
        store: Store | str | os.PathLike[str] | None = None,
        store_errors: Strictness = "stop",
        executor: Executor | None = None,
        since: float | None = None,
    ) -> Certificate:
        """Execute the plan, and return the certificate of the result.

        `threads` is the number of threads, 0 for one per core; it never changes the answer. `seed` is for repeating a
        recorded run of a document that states no seed; trying seeds until a test accepts would void the guarantee.
        Raises `DocumentError` for a target that cannot be reached, `LimitError` at the time limit, `KeyboardInterrupt`
        on Ctrl-C; there is no partial certificate. `limited_by` is the name, in that error, of the option that set
        `time_limit`. The limit counts from now on, or from `since`, a time of `time.monotonic`.

        With a `store`, or the file of one, a run that was finished before returns its certificate again. `StoreError`
        is raised if the store fails, unless `store_errors` is `continue`: then a warning is issued, and the run
        continues without the store.

        The workers of an `executor` draw the samples of tests and profiles; a plan that is not sampled runs in this
        process. `ClusterError` is raised if the executor fails.
        """
        # Planning needs no module that runs plans.
        from pyaccount.execute.options import RunOptions
        from pyaccount.execute.progress import silent

        options = RunOptions(
            threads=threads_of(threads),
            time_limit=time_limit,
            limited_by=limited_by,
            since=since,
            report=report or silent,
            seed=seed,
        )
        with ExitStack() as stack:
            kept: KeptRun | None = None
            if store is not None:
                from pyaccount.store import kept_in  # few runs use a store

                kept = stack.enter_context(kept_in(store, self.asked or self.document, seed, store_errors))
            if kept is not None and kept.finished is not None:
                return kept.finished
            certificate = self._issued(options, executor)
            if kept is not None:
                kept.finish(certificate)
            return certificate

    def _issued(self, options: RunOptions, executor: Executor | None) -> Certificate:
        """Run the plan with these options, and return the certificate of the result."""
        # Planning needs neither package, and often only planning is wanted.
        from pyaccount.certificate.issue import issue
        from pyaccount.execute import run

        if executor is not None:
            from pyaccount.execute.sampling.jobs import Local  # few runs have an executor
            from pyaccount.running.executor import OnExecutor

            options = replace(options, runner=OnExecutor(executor, Local(options.threads)))
        return issue(*run(self, options))

    def matrix(self, *, threads: int = 0, report: Report | None = None) -> MatrixDescription:
        """Return the strategy matrices to train with.

        Choices are made, and a matrix is found, if the document asks for that. Nothing is certified. Raises
        `DocumentError` also if the number of iterations is the blank, and the errors of `run`.
        """
        from pyaccount.certificate.matrix_description import matrix_description
        from pyaccount.execute import RunOptions, settle
        from pyaccount.execute.progress import silent

        options = RunOptions(threads=threads_of(threads), report=report or silent)
        return matrix_description(settle(self, options))


def compile_within(
    document: Document, compiled: Callable[[Document], Plan], *, time_limit: float | None = None, since: float
) -> tuple[Plan, float]:
    """Plan a document that is run immediately, by `compiled`, within the run's time limit, which counts from `since`.

    Return the plan, and the time from which the limit counts for `run`. Most of the planning time is spent importing
    modules, once per process, however short the limit is: up to `UNCOUNTED` seconds are not counted. Raises the errors
    of `run`.
    """
    from pyaccount.execute.progress import Stage, limit_of, limited  # as in `Plan`

    stage = Stage(None)
    stage("planning", 0, None)
    with limited(limit_of(document, time_limit, "time_limit="), stage, since + UNCOUNTED):
        plan = compiled(document)
    return plan, min(since + UNCOUNTED, time.monotonic())


def compile_document(document: Document) -> Plan:
    """Return the plan of a document, with the reduction chosen for each body.

    Raises `DocumentError` if no theorem covers it.

    A document with `choose:` lists is planned as the first of its candidates; `Plan.candidates` contains all of them.
    """
    return compile_as(document, Plan)


@dataclass(frozen=True, slots=True, repr=False)
class OneDrawPlan(Readable):
    """A document of kind amplification with its theorem, in `reduction`. `run` computes the effects of the draw."""

    reduction: AmplificationPlan

    def __repr__(self) -> str:
        return f"<OneDrawPlan {json.dumps(self.document.name)}: {self.reduction.subject}; nothing is computed yet>"

    @property
    def document(self) -> Amplification:
        """The document."""
        return self.reduction.document

    def page(self) -> Page:
        """Return the plan as a page; nothing is computed yet."""
        from pyaccount.certificate.report.planned import amplification_plan_page

        return amplification_plan_page(self.reduction)

    def run(self) -> AmplificationCertificate:
        """Compute how the draw changes the guarantee, at once and on this machine, and return the certificate."""
        from pyaccount.certificate.amplification import amplify

        return amplify(self.document)


def compile_one_draw(document: Amplification) -> OneDrawPlan:
    """Return the plan of a document of kind amplification. Raises `DocumentError` for what no theorem covers."""
    return OneDrawPlan(compile_amplification(document))


def comparable(
    source: str | os.PathLike[str] | Handed | Mapping[str, Any] | Document | Certificate,
    overrides: Overrides = (),
    folders: Folders = (),
) -> Plan | Certificate:
    """Return the item to compare: the plan of a document, or a finished certificate, to which overrides do not apply.

    Raises `DocumentError`, and `CertificateError` for the certificate of an amplification or one that cannot be read.
    """
    if isinstance(source, Certificate):
        return source
    if isinstance(source, str | os.PathLike) and is_certificate(source):
        return Certificate.load(source)
    if isinstance(source, Handed) and is_certificate(source):
        from pyaccount.certificate.reading import parse_certificate  # this is seldom needed

        return Certificate(parse_certificate(source.data, source.name).certificate())
    from pyaccount.document.loading import load

    return compile_document(load(source, overrides=overrides, folders=folders))


def compare(plans: Sequence[Plan | Certificate], *, threads: int = 0, report: Report | None = None) -> Comparison:
    """Run each plan, and return its certificate beside those that are finished.

    A plan that cannot be certified, or a certificate that contradicts itself, is recorded among the failures; the other
    plans are still certified. Ctrl-C raises `KeyboardInterrupt`.
    """
    rows, failures = [], []
    for place, plan in enumerate(plans):
        if isinstance(plan, Certificate):
            failed = _contradiction(place, plan)
            if failed is None:
                rows.append(row_of(plan.data, 0.0, finished=True))
            else:
                failures.append(failed)
            continue
        began = time.monotonic()
        try:
            certificate = plan.run(threads=threads, report=report)
        except PyaccountError as error:
            document = plan.asked or plan.document
            failures.append(
                FailedRecord(
                    place=place,
                    name=document.name,
                    file=document.file,
                    why=why(error),
                    message=str(error),
                    seconds=time.monotonic() - began,
                )
            )
        else:
            rows.append(row_of(certificate.data, time.monotonic() - began))
    return Comparison(pyaccount=1, kind="comparison", rows=rows, failures=failures)


def why(error: BaseException) -> Why:
    """Return the kind of failure of an error: of the document, or of the machine."""
    return "wrong" if isinstance(error, DocumentError | DomainError) else "stopped"


def _contradiction(place: int, certificate: Certificate) -> FailedRecord | None:
    """Return the record of a certificate that contradicts itself, or `None` if it does not."""
    from pyaccount.certificate.saving import contradictions

    found = contradictions(certificate.data)
    if not found:
        return None
    return FailedRecord(
        place=place,
        name=certificate.data.name,
        file=None,
        why="contradictory",
        message="\n".join(("the certificate contradicts itself:", *found)),
        seconds=0.0,
    )
