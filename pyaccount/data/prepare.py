"""Prepares a table of records and users for training with privacy for users."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal, NamedTuple

import numpy as np
import yaml

from pyaccount.arguments import number_of, whole_of
from pyaccount.data.attribution import AttributionTable, Integers
from pyaccount.data.batches import BatchLaw, simulated
from pyaccount.data.bounding import kept_candidates, neighbour_count, rule, within_neighbourhoods
from pyaccount.data.reading import COLUMNS, attribution_of
from pyaccount.data.report import BatchReport, Counts, Dropped, Preparation
from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.ranges import RECORDS_PER_USER, SEED, SEPARATION
from pyaccount.errors import DocumentError, DomainError, Path, Problem, path_text
from pyaccount.files import write_atomically
from pyaccount.plan.compiling import compile_document
from pyaccount.reading.nodes import Table, from_value, place_of
from pyaccount.reading.overrides import Overrides, set_at

#: The value of `neighbour_limit` for the rule of thumb b·p·k_e < 1.
RULE = "rule"
#: The maximum `neighbour_limit`; a larger one would have no effect.
MOST_NEIGHBOURS = 10**15


@dataclass(frozen=True, slots=True)
class Prepared:
    """The records that were kept, the report, and the document about them."""

    #: The attribution of the kept records to users, with names.
    attribution: AttributionTable
    #: The report on what was done.
    report: Preparation
    #: The document with the values filled in; None if no document was given.
    document: Document | None
    #: The names of the columns of the table.
    columns: tuple[str, str]

    @property
    def records(self) -> list[str]:
        """The names of the kept records, in the order of their first appearance in the table."""
        return list(self.attribution.record_names)

    def pairs(self) -> tuple[Integers, Integers]:
        """Return all kept pairs: indices of the records in `records`, and of the users in `attribution.user_names`."""
        numbers = np.arange(self.attribution.records, dtype=np.int64)
        return np.repeat(numbers, self.attribution.sizes), self.attribution.owners

    def to_csv(self) -> str:
        """Return the kept pairs as CSV text with a header, ordered by record."""
        records, users = self.attribution.record_names, self.attribution.user_names
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows((records[r], users[u]) for r, u in zip(*(side.tolist() for side in self.pairs()), strict=True))
        return stream.getvalue()

    def save_records(self, path: str | os.PathLike[str]) -> None:
        """Write the kept pairs as a CSV file, either completely or not at all."""
        write_atomically(FilePath(path), self.to_csv().encode(errors="surrogatepass"))

    def to_yaml(self) -> str:
        """Return the document as YAML text; without a document, only the sections about these records."""
        report = self.report
        comments = [
            f"Prepared for users with at most {report.records_per_user} records each: {report.kept.records} of "
            f"{report.before.records} records kept, seed {report.seed}.",
            *([] if report.batch is None else [f"Expected batch: {report.batch.expected:.6g} records."]),
            "These numbers follow from the table of records and users without noise: they are not private.",
        ]
        if self.document is not None:
            return yaml_text(self.document.to_mapping(), comments)
        sections: dict[str, dict[str, object]] = {}
        for path, value in report.document.items():
            section, key = path.split(".")
            sections.setdefault(section, {})[key] = value
        return yaml_text(sections, comments)

    def save_document(self, path: str | os.PathLike[str]) -> None:
        """Write `to_yaml()` to a file, either completely or not at all."""
        write_atomically(FilePath(path), self.to_yaml())


def prepare(  # noqa: PLR0913 - a table and options
    table: Any,
    *,
    records_per_user: int,
    document: str | os.PathLike[str] | Mapping[str, Any] | Document | None = None,
    overrides: Overrides = (),
    expected_batch_size: float | None = None,
    sampling_probability: float | None = None,
    min_separation: int | None = None,
    neighbour_limit: int | Literal["rule"] | None = None,
    drop_shared: bool = False,
    seed: int = 0,
    columns: tuple[str, str] = COLUMNS,
) -> Prepared:
    """Keep at most a number of records of each user, and compute what a document needs to know about the records kept.

    Args:
        table: A CSV or Parquet file with a row for each pair of a record and a user, an object with these two columns (a
            mapping, a data frame), or pairs.
        records_per_user: The maximum number of records of a user.
        document: A document to fill in; `overrides` apply to it first.
        overrides: As for `load`.
        expected_batch_size: The expected number of records in a batch. The smallest sampling probability with this batch is
            computed by an exact formula; the report adds a simulation, as an estimate with its standard error.
        sampling_probability: Instead of the batch size: the probability to draw a record.
        min_separation: The rounds b between two participations of a user, if no document states them.
        neighbour_limit: The maximum number k_e of records with which a record may share users, or `rule` for the largest k_e
            with b·p·k_e < 1 at the p that the batch would need if no user waited.
        drop_shared: Drop records of several users.
        seed: The seed of the choices among records: they are kept in the order of their number of users, then of a hash of
            the seed and their name.
        columns: The names of the two columns.

    `docs/samplers.md` explains the arguments. The result is not a private statistic. Raises `TableError` for wrong rows,
    `DomainError` for wrong arguments, `DocumentError` if the document with these values is refused, and `MissingExtraError`.

    ```python
    import pyaccount

    prepared = pyaccount.prepare("examples/authors.csv", records_per_user=2)
    print(prepared.to_yaml())
    ```
    """
    loaded = None if document is None else load(document, overrides=overrides)
    limit = whole_of("records_per_user", records_per_user, RECORDS_PER_USER)
    seed = whole_of("seed", seed, SEED)
    asked = _asked(loaded, expected_batch_size, sampling_probability, min_separation, neighbour_limit)
    before = attribution_of(table, columns)
    candidates = before.sizes == 1 if drop_shared else np.ones(before.records, dtype=np.bool_)
    if not candidates.any():
        raise DomainError(
            "every record has several users, so drop_shared, which keeps only records of one user, leaves none"
        )
    kept = kept_candidates(before, limit, seed, candidates)
    removed = np.zeros_like(kept)
    most = _neighbour_limit(asked, int(kept.sum()))
    if most is not None:
        kept, removed = within_neighbourhoods(before, limit, seed, candidates, most)
        if not kept.any():
            raise DomainError(f"neighbour_limit = {most} leaves no record: every record shares users with more")
    after = before.only(np.flatnonzero(kept))
    shared = after.shared > 0
    law, widest = _law(after, asked, shared=shared, count=most is not None)
    p = _probability(asked, law)
    changes = _changes(asked, after.records, limit, p, shared=shared)
    full = None if loaded is None else filled(loaded, changes)
    left_out, wide = int((~candidates).sum()), int(removed.sum())
    report = Preparation(
        pyaccount=1,
        kind="preparation",
        table=os.fsdecode(table) if isinstance(table, str | os.PathLike) else None,
        rows=before.rows,
        seed=seed,
        records_per_user=limit,
        attribution="shared" if shared else "single",
        neighbour_limit=most,
        most_neighbours=widest,
        min_separation=asked.separation,
        sampling_probability=p,
        before=_counts(before),
        kept=_counts(after),
        dropped=Dropped(
            shared=left_out,
            neighbours=wide,
            records_per_user=before.records - after.records - left_out - wide,
            users=before.users - after.users,
        ),
        batch=_batch(after, law, p, full, seed),
        document={path_text(path): value for path, value in changes.items()},
        document_sha256=None if full is None else full.sha256,
        private=False,
    )
    return Prepared(after, report, full, columns)


class _Sampling(NamedTuple):
    """The checked arguments about sampling."""

    document: Document | None
    batch: float | None
    probability: float | None
    separation: int | None
    neighbours: int | Literal["rule"] | None
    #: Whether the sampler protects users, all of whose records wait together.
    users: bool


def _asked(
    document: Document | None,
    batch: float | None,
    probability: float | None,
    separation_asked: int | None,
    most: int | Literal["rule"] | None,
) -> _Sampling:
    """Check the arguments about sampling, and add those of the document. Raises `DomainError`, `DocumentError`."""
    if batch is not None:
        batch = number_of("expected_batch_size", batch, "greater than 0 and finite", 5e-324, float("inf"))
    if probability is not None:
        allowed = "greater than 0 and at most 1"
        probability = number_of("sampling_probability", probability, allowed, 5e-324, float(np.nextafter(1.0, 2.0)))
    if batch is not None and probability is not None:
        raise DomainError(
            "give only one of expected_batch_size and sampling_probability: the other one follows from it"
        )
    apart = None if separation_asked is None else whole_of("min_separation", separation_asked, SEPARATION)
    users = True
    if document is not None:
        _one_body(document)
        body = document.run
        if apart is not None:
            raise DomainError("min_separation is stated by the document: leave it out, or change it there")
        users, apart = body.sampler.protects_users, body.separation()
        if users and apart is None:
            raise DomainError("the bands of the document are still to be chosen: give sampler.min_separation there")
        if users and batch is None and probability is None:
            probability = body.sampler.sampling_probability(body)
    elif apart is None and (batch is not None or probability is not None):
        raise DomainError("give min_separation too: the rounds between two participations of a user; 1 means no wait")
    if most is not None and most != RULE:
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or not 1 <= most <= MOST_NEIGHBOURS:
            raise DomainError(f"neighbour_limit = {most!r} is outside its domain: a whole number from 1, or {RULE}")
        most = int(most)
    if most == RULE and not (users and (batch is not None or probability is not None)):
        raise DomainError(
            "neighbour_limit: the rule needs a sampler of users, whose b and p it is about: give min_separation and "
            "expected_batch_size, or a number"
        )
    return _Sampling(document, batch, probability, apart, most, users)


def _neighbour_limit(asked: _Sampling, records: int) -> int | None:
    """Return k_e, as given, or by the rule at the p that the batch would need if no user waited."""
    if not isinstance(asked.neighbours, str):
        return asked.neighbours
    p = asked.probability if asked.batch is None else min(1.0, asked.batch / records)
    assert asked.separation is not None
    assert p is not None
    return rule(asked.separation, p)


def _law(table: AttributionTable, asked: _Sampling, *, shared: bool, count: bool) -> tuple[BatchLaw | None, int | None]:
    """Return the law of the batch, if users are sampled, and the largest neighbourhood, if it is needed."""
    everyone = np.ones(table.records, dtype=np.bool_)
    sampled = asked.users and (asked.batch is not None or asked.probability is not None)
    if not (sampled or count):
        return None, None
    around = neighbour_count(table, everyone)
    if not sampled:
        return None, int(around.max())
    assert asked.separation is not None
    return BatchLaw.of(table.degrees(everyone), around, asked.separation, shared=shared), int(around.max())


def _probability(asked: _Sampling, law: BatchLaw | None) -> float | None:
    """Return p as given, or the smallest p with the expected batch. Raises `DomainError` if there is none."""
    if law is None or asked.batch is None:
        return asked.probability
    p = law.probability(asked.batch)
    if p is None:
        most, best = law.largest()
        raise DomainError(
            f"expected_batch_size = {asked.batch:g} cannot be reached with the records kept: at most about {most:.4g}, at "
            f"p = {best:g}; ask for less, for a smaller min_separation or neighbour_limit, or keep more records of each user"
        )
    return p


def _changes(
    asked: _Sampling, records: int, limit: int, p: float | None, *, shared: bool
) -> dict[Path, int | float | str]:
    """Return the values for a document about the kept records, by path."""
    values: dict[Path, Any] = {("training", "dataset_size"): records}
    if asked.users and p is not None:
        values["training", "sampling_probability"] = p
    elif asked.batch is not None:
        values["training", "expected_batch_size"] = asked.batch
    elif asked.probability is not None:
        values["training", "sampling_probability"] = asked.probability
    if asked.document is not None:
        return values | asked.document.run.sampler.for_users(limit, shared=shared)
    from pyaccount.document.samplers import UserBMinSep  # the default sampler if there is no document

    sampler = UserBMinSep(kind="user-b-min-sep", records_per_user=limit, attribution="shared" if shared else "single")
    apart = {} if asked.separation is None else {("sampler", "min_separation"): asked.separation}
    return values | {("sampler", "kind"): sampler.kind} | sampler.for_users(limit, shared=shared) | apart


def _counts(table: AttributionTable) -> Counts:
    return Counts(
        records=table.records,
        users=table.users,
        pairs=table.pairs,
        most_records=int(table.degrees().max()),
        most_users=int(table.sizes.max()),
        shared_records=table.shared,
    )


def _batch(
    table: AttributionTable, law: BatchLaw | None, p: float | None, document: Document | None, seed: int
) -> BatchReport | None:
    """Return the expected batch and, if users are sampled, a simulation."""
    if law is not None and p is not None:
        drawn = simulated(table, p, law.separation, seed, shared=law.shared)
        return BatchReport(law.expected(p), drawn)
    expected = None if document is None else document.run.expected_batch_size()
    return None if expected is None else BatchReport(expected, None)


def filled(document: Document, changes: Mapping[Path, object]) -> Document:
    """Return the document with all of these values; errors keep the places of the previous values.

    Raises `DocumentError` if the document is invalid, or the plan has no valid bound for it.
    """
    root = document.root
    problems: list[Problem] = []
    for path, value in changes.items():
        node, found = from_value(value, place_of(root, path))
        changed = set_at(root, path, node)
        assert isinstance(changed, Table), "sections of a valid document are mappings"
        root, problems = changed, [*problems, *found]
    changed_document = document.made(root, problems)
    compile_document(changed_document)
    return changed_document


def _one_body(document: Document) -> None:
    """Raise `DocumentError` for documents with phases: it would be unclear which phase uses the records."""
    if len(document.phases) != 1 or document.phases[0].path:
        message = "prepare only fills in documents without phases: prepare one for each phase, and combine them"
        raise DocumentError([document.problem("contradiction", ("phases",), message)])


def yaml_text(mapping: Mapping[str, object], comments: list[str]) -> str:
    """Return a document, or a part of one, as YAML text below comment lines."""
    return "".join(f"# {line}\n" for line in comments) + yaml.safe_dump(
        dict(mapping), sort_keys=False, allow_unicode=True
    )
