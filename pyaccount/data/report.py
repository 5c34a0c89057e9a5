"""The report on prepared data, as data and as a page. Counts are exact; results of simulations are estimates, and are
labelled as such.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from pyaccount.data.batches import Simulated
from pyaccount.errors import quoted
from pyaccount.pages.page import (
    Content,
    Fact,
    FactList,
    Inline,
    Page,
    PageSection,
    PageTable,
    Paragraph,
    Quantity,
    estimate,
)
from pyaccount.pages.readable import Readable
from pyaccount.rounding import rounded_nearest, shortest

#: The origins of the numbers in the report.
ORIGINS = {
    "counted": "Counted in the table of records and users: exact.",
    "computed": "Computed from these counts, up to rounding.",
    "simulated": "From simulated batches: an estimate.",
}

#: The statement in every report that it is not private.
PUBLIC = (
    "Not private: these numbers, the records kept, and what the document says of them follow from the table of records and users "
    "without noise. A guarantee is about the records' contents; who has which record must be public, or stay secret with this "
    "report."
)


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of a table, in exact numbers."""

    records: int
    users: int
    #: The number of different pairs of a record and a user.
    pairs: int
    #: The maximum number of records of one user.
    most_records: int
    #: The maximum number of users of one record.
    most_users: int
    #: The number of records with more than one user.
    shared_records: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """The numbers of records that were not kept, each counted once, and of users without any record that was kept. All exact."""

    #: Dropped because they have several users, and `drop_shared` keeps only records of one user.
    shared: int
    #: Dropped because they share users with too many records.
    neighbours: int
    #: Dropped because one of their users has the maximum number of records without them.
    records_per_user: int
    users: int

    @property
    def records(self) -> int:
        """The number of all dropped records."""
        return self.shared + self.neighbours + self.records_per_user


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The size of batches of the kept records, at the sampling probability."""

    #: The long-run mean by a formula, up to rounding.
    expected: float
    #: Estimates from simulated batches; None if the batches of the sampler need no simulation.
    simulated: Simulated | None


@dataclass(frozen=True, slots=True)
class Preparation(Readable):
    """What was done with a table, and what a document states about the records that were kept."""

    pyaccount: Literal[1]
    kind: Literal["preparation"]
    #: The file of the table; None if it was in memory.
    table: str | None
    #: The number of rows of the table, including rows that repeat a pair.
    rows: int
    seed: int
    #: k, the maximum number of kept records of a user.
    records_per_user: int
    #: "single" if each kept record has one user, otherwise "shared".
    attribution: Literal["single", "shared"]
    #: k_e, the maximum number of records that may share a user with a kept one, itself included; None without a limit.
    neighbour_limit: int | None
    #: The maximum number of kept records that share a user with one of them; None if it was not counted.
    most_neighbours: int | None
    min_separation: int | None
    sampling_probability: float | None
    before: Counts
    kept: Counts
    dropped: Dropped
    batch: BatchReport | None
    #: The values that were set in the document, or that belong there, by path.
    document: dict[str, int | float | str]
    document_sha256: str | None
    #: Always false: the numbers here are exact functions of the table.
    private: Literal[False]

    def to_json(self) -> str:
        """Return the report as JSON text."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace").decode() + "\n"

    def page(self) -> Page:
        """Return the report as a page."""
        name = "the table" if self.table is None else self.table if self.table.isprintable() else quoted(self.table)
        sections = [
            PageSection("counts", "Records and users", (self._counts(), FactList(tuple(self._facts())))),
            PageSection(
                "document",
                "Values for the document" if self.document_sha256 is None else "Values in the document",
                (FactList(tuple(Fact(path, (_value(value),)) for path, value in self.document.items())),),
            ),
            PageSection("privacy", "This report is not private", (Paragraph((PUBLIC,)),)),
        ]
        return Page(
            "Prepared",
            name,
            tuple(sections),
            statement=f"Of each user at most {self.records_per_user} records are kept; seed {self.seed}.",
            origins=ORIGINS,
        )

    def _counts(self) -> PageTable:
        before, kept = self.before, self.kept
        rows: list[tuple[Content, ...]] = [
            ((label,), (_count(old),), (_count(new),))
            for label, old, new in (
                ("records", before.records, kept.records),
                ("users", before.users, kept.users),
                ("pairs of record and user", before.pairs, kept.pairs),
                ("shared records", before.shared_records, kept.shared_records),
                ("most records of a user", before.most_records, kept.most_records),
                ("most users of a record", before.most_users, kept.most_users),
            )
        ]
        return PageTable((), ("", "before", "kept"), tuple(rows), words=("",))

    def _facts(self) -> Iterator[Fact]:
        dropped = self.dropped
        reasons = [
            f"{count:_} {reason}"
            for count, reason in (
                (dropped.shared, "with several users"),
                (dropped.neighbours, f"with more than {self.neighbour_limit} neighbours"),
                (dropped.records_per_user, "of users with enough without them"),
            )
            if count
        ]
        yield Fact("dropped", (_count(dropped.records), " records"), (", ".join(reasons),) if reasons else ())
        if dropped.users:
            yield Fact("users left out", (_count(dropped.users),), ("no record of theirs is kept",))
        repeated = self.rows - self.before.pairs
        if repeated:
            yield Fact("repeated rows", (_count(repeated),), ("they repeat others and count once",))
        users = "some records kept have several users" if self.kept.shared_records else "every record kept has one user"
        yield Fact("attribution", (self.attribution,), (users,))
        if self.most_neighbours is not None:
            most = Quantity(f"{self.most_neighbours:_}", "records", "exact", "counted")
            yield Fact("neighbours", ("at most ", most), ("records share a user with one, itself included",))
        if self.sampling_probability is not None:
            rate = Quantity(shortest(self.sampling_probability), "probability", "exact", "computed")
            yield Fact("sampling probability", (rate,), ("of each record; records that are still waiting are skipped",))
        if self.batch is not None:
            expected = Quantity(rounded_nearest(self.batch.expected), "records per batch", "exact", "computed")
            yield Fact("expected batch", (expected, " records"), ("computed for the stationary state",))
            yield from self._simulated(self.batch.simulated)

    @staticmethod
    def _simulated(found: Simulated | None) -> Iterator[Fact]:
        if found is None:
            return
        mean = estimate(found.mean, "records per batch", "simulated", 5)
        error = estimate(found.standard_error, "records per batch", "simulated", 2)
        spread = estimate(found.standard_deviation, "records per batch", "simulated", 3)
        yield Fact(
            "simulated batch",
            (mean, " ± ", error, " records"),
            ("estimate and its standard error, from ", _count(found.rounds), " simulated rounds"),
        )
        largest = Quantity(f"{found.largest:_}", "records", "exact", "simulated")
        yield Fact("simulated sizes", ("standard deviation ", spread, ", largest ", largest), ("of these rounds",))


def _count(number: int) -> Quantity:
    return Quantity(f"{number:_}", "counted", "exact", "counted")


def _value(value: float | str) -> Inline:
    return (
        Quantity(shortest(value), "as the document has it", "exact", "computed")
        if isinstance(value, float)
        else str(value)
    )
