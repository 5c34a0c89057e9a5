"""Checks what a run is given in addition to its certificate, and collects the facts for the first line of the record."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from pyaccount.arguments import number_of
from pyaccount.certificate.provenance import versions
from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.errors import DocumentError, DomainError, RunError, path_text, quoted
from pyaccount.plan.common import number
from pyaccount.plan.matrices import strategy
from pyaccount.plan.protection import Protection
from pyaccount.plan.schedule_values import scale_of, values_of
from pyaccount.training.sums import ALONE

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.plan.protection import RunCase
    from pyaccount.training.certified import Certified
    from pyaccount.training.key import RunKey


#: The prefix of the names of other sums (`noise.also`) among the clip norms in the record.
ALSO = "also: "

#: The facts of the first line that enter the key of all draws. With another matrix, σ, clip norm or normaliser, all draws differ.
BOUND = ("document_sha256", "matrices", "noise_multipliers", "clip_norms", "normalisers")


def sizes_of(document: Document, records: int | Sequence[int]) -> list[int]:
    """Return the number of records for each body of the document; `records` has one number, or one for each body.

    Raises `RunError` if the data has another size than the document states, or if the list has a wrong length, and `DomainError`
    for anything that is not a number of records.
    """
    given = list(records) if isinstance(records, Sequence) else [records] * len(document.phases)
    try:
        sizes = [operator.index(size) for size in given]
    except TypeError:
        raise DomainError(
            f"records = {quoted(records)}: give the number of records of the data, or a list with one number for each phase"
        ) from None
    if len(sizes) != len(document.phases):
        raise RunError(
            f"records: {len(sizes)} numbers are given for {len(document.phases)} phases: give one number, or one for each phase"
        )
    for run, size in zip(document.runs(), sizes, strict=True):
        stated = run.training.dataset_size
        if size < 1:
            raise DomainError(f"records = {size} is outside its domain: at least 1")
        if stated is not None and stated != size:
            where = ".".join(map(str, run.at("training", "dataset_size")))
            raise RunError(
                f"records: the data has {size:_} records, and {where} is {stated:_}: rates and batches follow from the size, so "
                "certify a document about this data set"
            )
    return sizes


def clip_norms_of(document: Document, clip_norm: float, rest: Mapping[str, float]) -> dict[str, float]:
    """Return the clip norm of each sum by its name in the record; the main sum has the name `ALONE`.

    Raises `DomainError` if `rest` does not name exactly the other sums, or if a norm is not positive and finite.
    """
    names = {release.what for run in document.runs() for release in run.noise.also}
    missing, unknown = sorted(names - set(rest)), sorted(set(rest) - names)
    if missing or unknown:
        parts = [*(f"{name!r} is missing" for name in missing), *(f"{name!r} is not in noise.also" for name in unknown)]
        raise DomainError(
            f"also_clip_norms needs one number for each sum in noise.also of the document: {', '.join(parts)}"
        )
    norms = {ALONE: clip_norm, **{f"{ALSO}{name}": rest[name] for name in sorted(rest)}}
    allowed = "greater than 0 and finite"
    return {
        name: number_of(f"clip norm of {name}", norm, allowed, 5e-324, float("inf")) for name, norm in norms.items()
    }


def normaliser_of(case: RunCase, given: float | None) -> float:
    """Return the constant by which the sums of a phase are divided: `given`, or else the document's expected batch size.

    It is never the size of the batch that was drawn, because that would be a second release. Raises `DocumentError` if neither is
    known, and `DomainError` if `given` is not positive and finite.
    """
    if given is not None:
        return number_of("normaliser", given, "greater than 0 and finite", 5e-324, float("inf"))
    body = case.node
    expected = body.expected_batch_size()
    if expected is None:
        message = (
            "sums are divided by the expected batch size, which has a schedule: give the run a constant normaliser"
            if body.rates_scheduled
            else "sums are divided by the expected batch size, and the document does not state it: state it, or give the run a "
            "constant normaliser"
        )
        path = body.at("training", "expected_batch_size")
        raise DocumentError([case.asked.problem("missing-key", path, message, allowed="a number of records")])
    return float(expected)


def matrix_hash(case: RunCase) -> str:
    """Return a hash of the exact coefficients of a phase's matrix, whose last digits may differ between machines if they are
    found by a search.
    """
    built = strategy(case)
    if built.fingerprint is not None:
        return built.fingerprint
    if built.tree is not None:
        tree = built.tree
        described = ["tree", tree.rounds, tree.restart_every, tree.efficient, tree.scale.hex()]
        return hashlib.sha256(json.dumps(described).encode()).hexdigest()
    assert built.coefficients is not None
    return hashlib.sha256(np.asarray(built.coefficients, dtype="<f8").tobytes()).hexdigest()


def noise_multipliers_of(run: Certified) -> list[float | None]:
    """Return σ of each part of a run; None for one whose rounds have different ones, by a schedule."""
    scheduled = ScheduledMultiplier
    return [
        None if isinstance(part.body.noise.multiplier, scheduled) else number(part.body.noise.multiplier)
        for part in run.body_runs
    ]


def schedules_of(document: Document) -> list[dict[str, dict[str, Any]]] | None:
    """Return the scale and the hash of each schedule, for each body of a document; None for one without schedules.

    They enter the key of all draws: with other values in a file, or another scale, all draws differ.
    """
    stated = [
        {
            path_text(path[len(case.node.path) :]): {
                "sha256": values_of(case, path).sha256,
                "scale": scale_of(scheduled),
            }
            for path, scheduled in case.node.schedules().items()
        }
        for case in Protection.of(document).runs()
    ]
    return stated if any(stated) else None


def facts_of(
    run: Certified, clip_norms: Mapping[str, float], normalisers: Sequence[float], world: int, noise_source: str
) -> dict[str, Any]:
    """Return the facts for the first line of the record. All of them are public or in the certificate."""
    document = run.document
    scheduled = schedules_of(document)
    return {
        "name": document.name,
        "document_sha256": document.sha256,
        "certificate_sha256": run.certificate_sha256,
        "uncertified": run.certificate_sha256 is None,
        "statement": run.statement,
        "guarantee": run.guarantee,
        "matrices": [matrix_hash(case) for case in Protection.of(document).runs()],
        "rounds": run.rounds,
        "records": [run.training.dataset_size for run in document.runs()],
        "noise_multipliers": noise_multipliers_of(run),
        **({} if scheduled is None else {"schedules": scheduled}),
        "clip_norms": dict(clip_norms),
        "normalisers": list(normalisers),
        "world": world,
        "noise_source": noise_source,
        "versions": {**versions(), "numpy": np.__version__},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def root_of(key: RunKey, header: Mapping[str, Any]) -> RunKey:
    """Return the key from which all of a run's batches and noise are drawn, derived from its folder's key and the run's facts."""
    bound = (*BOUND, "schedules") if "schedules" in header else BOUND
    return key.derive("run with nonces", *(json.dumps(header[name], sort_keys=True) for name in bound))
