"""A plan that can be run."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.arguments import threads_of
from pyaccount.pages.readable import Readable
from pyaccount.plan.compiled import CompiledDocument
from pyaccount.plan.compiling import compile_as

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from distributed import Client

    from pyaccount.certificate import Certificate
    from pyaccount.certificate.matrix_description import MatrixDescription
    from pyaccount.cluster import Cluster
    from pyaccount.document.document import Document
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.progress import Report
    from pyaccount.execute.sampling.jobs import Runner
    from pyaccount.pages.page import Page
    from pyaccount.store import KeptRun, Store, Strictness

#: Seconds of planning that a time limit does not count.
UNCOUNTED = 0.75


@dataclass(frozen=True, slots=True, repr=False)
class Plan(CompiledDocument, Readable):
    """A document with its theorems. `run` executes it; no ε, δ or blank has been computed before."""

    def __repr__(self) -> str:
        parts = ", ".join(dict.fromkeys(one.subject for one in self.reductions))
        name = json.dumps(self.document.name)
        return f"<Plan {name}: {parts}; {self.engine}; {self.question}; nothing is computed yet>"

    def page(self) -> Page:
        """The plan as a page: nothing is computed yet."""
        from pyaccount.certificate.report.planned import plan_page

        return plan_page(self)

    def run(  # noqa: PLR0913 - what is run, and how
        self,
        *,
        threads: int = 0,
        time_limit: float | None = None,
        report: Report | None = None,
        seed: int | None = None,
        limited_by: str = "time_limit=",
        store: Store | str | os.PathLike[str] | None = None,
        store_errors: Strictness = "stop",
        cluster: Cluster | Client | str | None = None,
        since: float | None = None,
    ) -> Certificate:
        """Execute the plan, on this machine or a cluster, and certify the result.

        `threads` 0 means one for each core; it never changes the answer. `seed` is for repeating a recorded run of a document
        that states no seed; to try seeds until a test accepts would void the guarantee. Raises `DocumentError` for a target
        that nothing reaches, `LimitError` at the time limit, `KeyboardInterrupt` on Ctrl-C; there is no partial certificate.
        `limited_by` is what that error calls the option which set `time_limit`; a limit counts from now on, or `since` then, of
        `time.monotonic`.

        With a `store`, or the file of one, a run that was finished before gives its certificate again, and one that was
        interrupted goes on: it keeps its seed, and the certificate is that of an uninterrupted run. `StoreError` where the store
        fails, unless `store_errors` is `continue`: then a warning, and the run goes on without it.

        A `cluster` is a `distributed.Client`, the address of a scheduler, or `local:4`. Its workers draw the samples of
        tests and profiles; a plan that is not sampled is run by one of them. `ClusterError` where that fails.
        """
        # Planning needs nothing that runs.
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
            # Few runs are kept, and few on a cluster.
            there: Cluster | None = None
            if cluster is not None:
                from pyaccount.cluster import open_cluster

                there = stack.enter_context(open_cluster(cluster))
            kept: KeptRun | None = None
            if store is not None:
                from pyaccount.store import kept_in

                kept = stack.enter_context(kept_in(store, self.asked or self.document, seed, store_errors))
            certificate = None if kept is None else kept.finished()
            if certificate is None:
                certificate = self._issued(options, kept, there)
                if kept is not None:
                    kept.finish(certificate)
            return certificate

    def _issued(self, options: RunOptions, kept: KeptRun | None, cluster: Cluster | None) -> Certificate:
        """Run the plan with these options, and certify the result."""
        if kept is not None:
            options = replace(options, seed=kept.seed)
        if cluster is not None and not self.sampled:
            return cluster.call(_run_there, self, options.seed, options.time_limit, options.limited_by)
        # Planning needs neither room, and is often all that is wanted.
        from pyaccount.certificate.issue import issue
        from pyaccount.execute import run

        runner: Runner | None = None
        if self.sampled and (cluster is not None or kept is not None):
            from pyaccount.execute.sampling.jobs import Local  # and what it needs

            runner = Local(options.threads)
            runner = runner if cluster is None else cluster.runner(runner)
            runner = runner if kept is None else kept.runner(runner)
        plan, evidence = run(self, replace(options, runner=runner))
        return issue(plan, evidence)

    def matrix(self, *, threads: int = 0, report: Report | None = None) -> MatrixDescription:
        """The strategy matrices to train with; choices are made, and a matrix is found, where the document asks for that.

        Nothing is certified. Raises `DocumentError` also where the number of iterations is the blank, and as `run` does.
        """
        from pyaccount.certificate.matrix_description import matrix_description
        from pyaccount.execute import RunOptions, settle
        from pyaccount.execute.progress import silent

        options = RunOptions(threads=threads_of(threads), report=report or silent)
        return matrix_description(settle(self, options))


def _run_there(plan: Plan, seed: int | None, time_limit: float | None, limited_by: str) -> Certificate:
    """Run a plan on the threads of the worker that this is."""
    from pyaccount.cluster.tasks import threads  # only workers have it

    return plan.run(threads=threads(), seed=seed, time_limit=time_limit, limited_by=limited_by)


def compile_within(
    document: Document, compiled: Callable[[Document], Plan], *, time_limit: float | None = None, since: float
) -> tuple[Plan, float]:
    """Plan a document that is to be run at once, by `compiled`, within the time limit of the run, which counts `since` then.

    Gives the plan, and since when the limit counts for `run`. Most of planning is reading modules, which takes a process its
    time once, however short the limit is: up to `UNCOUNTED` seconds do not count. Raises as `run`.
    """
    from pyaccount.execute.progress import Stage, limit_of, limited  # as in `Plan`

    stage = Stage(None)
    stage("planning", 0, None)
    with limited(limit_of(document, time_limit, "time_limit="), stage, since + UNCOUNTED):
        plan = compiled(document)
    return plan, min(since + UNCOUNTED, time.monotonic())


def compile_document(document: Document) -> Plan:
    """Choose the reduction for each body of the document. Raises `DocumentError` for what no theorem covers.

    A document with `choose:` lists is planned as the first of its candidates; `Plan.candidates` holds them all.
    """
    return compile_as(document, Plan)
