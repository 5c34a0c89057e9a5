"""What preparing data did, as data and in text. Counts are exact; what was simulated is an estimate, and says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from pyaccount.data.batches import Simulated
from pyaccount.errors import shown
from pyaccount.rounding import nearest, plain

#: What every report says of itself.
PUBLIC = (
    "Not private: these numbers, the records kept, and what the document says of them follow from the table of records and users "
    "without noise. A guarantee is about the records' contents; who has which record must be public, or stay secret with this "
    "report."
)


@dataclass(frozen=True, slots=True)
class Counts:
    """A table in numbers, all exact."""

    records: int
    users: int
    #: Different pairs of a record and a user.
    pairs: int
    #: Of one user.
    most_records: int
    #: Of one record.
    most_users: int
    #: Records with more than one user.
    shared_records: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records that were not kept, each counted once, and users left without a record. All exact."""

    #: Because they have several users, where only records of one are kept.
    shared: int
    #: Because they share users with too many records.
    neighbours: int
    #: Because one of their users has enough records without them.
    records_per_user: int
    users: int

    @property
    def records(self) -> int:
        """All of them."""
        return self.shared + self.neighbours + self.records_per_user


@dataclass(frozen=True, slots=True)
class BatchReport:
    """How large batches of the records kept are, at the sampling probability."""

    #: By a formula: the long-run mean, up to rounding.
    expected: float
    #: From simulated batches: estimates. None where the sampler's batches need no simulation.
    simulated: Simulated | None


@dataclass(frozen=True, slots=True)
class Preparation:
    """What was done to a table, and what a document says of the records kept."""

    pyaccount: Literal[1]
    kind: Literal["preparation"]
    #: The table's file; None for one in memory.
    table: str | None
    #: Rows of the table; those that repeat a pair count.
    rows: int
    seed: int
    #: k: the most records of a user that are kept.
    records_per_user: int
    #: Whether each record kept has one user.
    attribution: Literal["single", "shared"]
    #: k_e: the most records that may share a user with one that is kept, itself included; None without a limit.
    neighbour_limit: int | None
    #: Of the records kept, the most that share a user with one; None where it was not counted.
    most_neighbours: int | None
    min_separation: int | None
    sampling_probability: float | None
    before: Counts
    kept: Counts
    dropped: Dropped
    batch: BatchReport | None
    #: What was put into the document, by path; or what belongs there.
    document: dict[str, int | float | str]
    document_sha256: str | None
    #: Always false: the numbers here are exact functions of the table.
    private: Literal[False]

    def to_json(self) -> str:
        """The report as JSON text."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace").decode() + "\n"

    def to_text(self) -> str:
        """The report for people."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        before, kept, dropped = self.before, self.kept, self.dropped
        name = "the table" if self.table is None else self.table if self.table.isprintable() else shown(self.table)
        repeated = self.rows - before.pairs
        yield f"Prepared {name}: at most {self.records_per_user} records of a user, seed {self.seed}"
        yield ""
        yield _row("", "before", "kept")
        for said, one, two in (
            ("records", before.records, kept.records),
            ("users", before.users, kept.users),
            ("pairs of record and user", before.pairs, kept.pairs),
            ("shared records", before.shared_records, kept.shared_records),
            ("most records of a user", before.most_records, kept.most_records),
            ("most users of a record", before.most_users, kept.most_users),
        ):
            yield _row(said, f"{one:_}", f"{two:_}")
        yield ""
        reasons = [
            f"{count:_} {reason}"
            for count, reason in (
                (dropped.shared, "with several users"),
                (dropped.neighbours, f"with more than {self.neighbour_limit} neighbours"),
                (dropped.records_per_user, "of users with enough without them"),
            )
            if count
        ]
        yield f"dropped       {dropped.records:_} records{': ' if reasons else ''}{', '.join(reasons)} (exact)"
        if dropped.users:
            yield f"              {dropped.users:_} users are left without a record (exact)"
        if repeated:
            yield f"              {repeated:_} rows repeat others and count once (exact)"
        yield f"attribution   {self.attribution}: " + (
            "some records kept have several users" if kept.shared_records else "every record kept has one user"
        )
        if self.most_neighbours is not None:
            yield f"neighbours    at most {self.most_neighbours:_} records share a user with one (itself included; exact)"
        if self.sampling_probability is not None:
            yield f"sampling      p = {plain(self.sampling_probability)} for each record; whoever waits is left out"
        if self.batch is not None:
            yield f"batch         {nearest(self.batch.expected)} records expected (computed, of the stationary state)"
            yield from self._simulated(self.batch.simulated)
        yield ""
        yield f"{'document' if self.document_sha256 is not None else 'for a document'}:"
        yield from (f"  {path}: {plain(v) if isinstance(v, float) else v}" for path, v in self.document.items())
        yield ""
        yield PUBLIC

    @staticmethod
    def _simulated(found: Simulated | None) -> Iterator[str]:
        if found is not None:
            yield (
                f"              {nearest(found.mean, 5)} ± {nearest(found.standard_error, 2)} in {found.rounds:_} "
                f"simulated rounds (estimate and its standard error), of sizes that vary by "
                f"{nearest(found.standard_deviation, 3)}, {found.largest:_} at most"
            )


def _row(said: str, one: str, two: str) -> str:
    return f"  {said:26}{one:>14}{two:>14}"
