"""Opens a run with its certificate, and continues it from the state in a checkpoint.

Only certified runs are opened. A given certificate is not recomputed. A document without a blank makes a claim. If certifying it
needs no samples, that is done when the run begins; the certificate is then stored in the run's folder, where it is read when the
run is continued. If it needs samples, the document must be certified first. `uncertified=True` runs a document without a
certificate; then the first line of the record says so, and every report of it does too.

A checkpoint has the state of a run and its position, and all ranks must agree on them. This module does not communicate between
processes: the training loop has a way to do that, and gathers the state of each rank.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.accountant.planned import planned
from pyaccount.certificate import Certificate
from pyaccount.errors import DocumentError, DomainError, RunError, quoted
from pyaccount.training.certified import Certified, certified
from pyaccount.training.folder import CERTIFICATE, LOOKING, PATIENCE, RECORD
from pyaccount.training.record import begun, contains

if TYPE_CHECKING:
    from pyaccount.document.document import Document

#: The time limit for certifying a document when a run is opened; a document that needs longer must be certified first.
MOST_SECONDS = 60.0


def opened(run: Certified, folder: Path, *, uncertified: bool, rank: int) -> Certified:
    """Return the run with its certificate: the one given, the one in the folder, or a new one for the document.

    Raises `CertificateError` if the claim does not hold, `DocumentError` if certifying the document needs samples, `LimitError`
    if it takes too long, and `RunError` if the folder has a certificate of another document.
    """
    document = run.document
    if run.certificate_sha256 is not None:
        if uncertified:
            raise DomainError("uncertified=True is for documents, and a certificate is given: leave it out")
        return run
    if uncertified:
        return run
    kept = _kept(folder, wait=rank > 0)
    if kept is None:
        kept = _certificate(document)
    if kept.data.document != document.to_mapping():
        raise RunError(
            f"{folder / CERTIFICATE}: the run in this folder is that of another document: use a folder of its own for this one"
        )
    return replace(certified(kept, document), certificate=kept.to_json())


def _kept(folder: Path, *, wait: bool) -> Certificate | None:
    """Return the certificate in the folder, or None if there is none.

    With `wait`, wait until the first rank has made it or has begun the record. Raises `RunError` if that takes too long.
    """
    path, deadline = folder / CERTIFICATE, time.monotonic() + PATIENCE
    # A run that began with a certificate has none in its folder.
    while wait and not path.exists() and not begun(folder / RECORD):
        if time.monotonic() > deadline:
            raise RunError(f"{path}: the first rank did not certify the document within {PATIENCE:g} s")
        time.sleep(LOOKING)
    return Certificate.load(path) if path.exists() else None


def _certificate(document: Document) -> Certificate:
    """Certify a document. Raises `DocumentError` if that needs samples, and `LimitError` if it takes too long."""
    if planned(document).sampled:
        message = (
            "certifying this document needs samples, which takes too long for opening a run: give its certificate, made by "
            "`pyaccount certify`, or uncertified=True"
        )
        raise DocumentError([document.problem("uncertified", ("sampler",), message, allowed="a certificate")])
    from pyaccount.execute.progress import silent  # not needed for most runs, which have a certificate
    from pyaccount.running import compile_document

    limit = "TrainingRun's own limit: certify the document first, and give its certificate"
    return compile_document(document).run(report=silent, time_limit=MOST_SECONDS, limited_by=limit)


#: The kind and the version of a state.
KIND, VERSION = "pyaccount-training-run", 1

#: The keys of the record's first line that identify the run of a state.
WHICH = ("document_sha256", "certificate_sha256", "key_commitment")


def run_state(header: Mapping[str, Any], done: int, head: str) -> dict[str, Any]:
    """Return the state of a run, given the record's first line, the number of rounds in the model, and the last line's hash."""
    return {"kind": KIND, "version": VERSION, "rounds": done, "head": head, **{name: header[name] for name in WHICH}}


def position_of(state: Mapping[str, Any], header: Mapping[str, Any], released: int, record: Path) -> int:
    """Return the number of rounds in a state, after comparing it with the record, which has `released` rounds.

    Raises `RunError` if the state is that of another run, or has rounds that the record does not have.
    """
    if not isinstance(state, Mapping) or state.get("kind") != KIND:
        raise RunError(f"this is not the state of a training run: {quoted(state)}")
    if state.get("version") != VERSION:
        raise RunError(f"the state has version {quoted(state.get('version'))}, which this pyaccount cannot read")
    for name in WHICH:
        if state.get(name) != header[name]:
            raise RunError(
                f"{name}: this is the state of another run: {quoted(state.get(name))}, and not {quoted(header[name])}. A "
                "checkpoint continues the run in the folder that it was trained with: open that folder, or begin without a "
                "checkpoint, and count the rounds of both runs"
            )
    done = state.get("rounds")
    if type(done) is not int or done < 0:
        raise RunError(f"rounds: a whole number is expected, not {quoted(done)}")
    if done > released:
        raise RunError(
            f"rounds: the state has {done} rounds, and the record only {released}: it lacks rounds that were released. Find the "
            "record that belongs to this state; without it the run cannot continue as accounted"
        )
    head = state.get("head")
    if not (isinstance(head, str) and contains(record, head)):
        raise RunError(
            f"head: the record does not contain the line {quoted(head)}, which was its last one when the state was written: the "
            "record was put back to an earlier state and has continued from there. Find the record that contains the line"
        )
    return done


def check_given_up(run: Certified, target: int, released: int) -> None:
    """Raise `RunError` if a matrix correlates the noise of the rounds that are to be given up with that of later ones."""
    for number in range(target, released):
        part = run.body_run(number)
        if part.body.matrix.kind != "identity":
            raise RunError(
                f"rounds {target} to {released - 1} cannot be given up: the noise of later rounds cancels part of "
                "theirs, so the run needs them. Repeat them with exactly the same sums, load the checkpoint of round "
                f"{released}, or begin another run, whose guarantee adds to that of this one"
            )


#: The state of a rank: its number, the next round, how many rounds were released, and a part of the seed of the last one, which
#: distinguishes the branches of a run whose folder was put back. Nothing of it is secret.
RankState = tuple[int, int, int, int]


def check_ranks(gathered: Iterable[Sequence[int]], world: int) -> None:
    """Raise `RunError` unless every rank occurs exactly once and all are at the same round of the same branch.

    Otherwise they would add up shards of different batches. `gathered` contains the `RankState` of each process.
    """
    states = [tuple(int(number) for number in state) for state in gathered]
    if sorted(rank for rank, *_ in states) != list(range(world)):
        ranks = ", ".join(str(rank) for rank, *_ in states)
        raise RunError(
            f"the ranks of the processes are {ranks}: every process needs a rank of its own, from 0 to {world - 1}"
        )
    if len({tuple(rest) for _, *rest in states}) > 1:
        raise RunError("the ranks are at different rounds: load the same checkpoint in all of them")
