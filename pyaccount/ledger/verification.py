"""Checks a ledger: its chain of hashes, the rules that every event must keep, and that its tables follow from its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pyaccount.errors import LedgerError, Problem, PyaccountError
from pyaccount.ledger.events import Event, Head, canonical, disorder
from pyaccount.ledger.state import BrokenRuleError, State
from pyaccount.ledger.totals import total_of
from pyaccount.pages.page import Badge, Block, Fact, FactList, Literally, Page, PageSection, PageTable, exact
from pyaccount.pages.readable import Readable
from pyaccount.records.fields import OutputRecord, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyaccount.ledger.rows import LedgerRows

    Found = tuple[int | None, str]

#: By how much a total may differ, relatively, if another version of pyaccount computes it again.
AGREEMENT = 1e-3


class DamageRecord(Record):
    """Something that is wrong with a ledger."""

    sequence: int | None = Field(description="The number of the event; null if it is not about one.")
    message: str = Field(description="What is wrong.")


class LedgerVerification(OutputRecord, Readable):
    """The result of checking a ledger."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["ledger-verification"] = Field(description="The kind of this JSON: the verification of a ledger.")
    ledger: str = Field(description="The file or the address of the ledger.")
    intact: bool = Field(description="Whether nothing is wrong.")
    events: int = Field(description="The number of events that were checked.")
    head: str = Field(
        description="The hash of the last event. Note it elsewhere to detect a ledger whose end was cut off."
    )
    recomputed: int | None = Field(
        description="The number of totals that were computed again; null if none was asked for."
    )
    damage: list[DamageRecord] = Field(description="Everything that is wrong.")

    def page(self) -> Page:
        """Return the verification as a page."""
        facts = [
            Fact("events", (exact(self.events, "events", "ledger"),)),
            Fact("last hash", (Literally(self.head),), ("note it elsewhere to detect a ledger whose end was cut off",)),
        ]
        if self.recomputed is not None:
            facts.append(Fact("totals computed again", (exact(self.recomputed, "totals", "ledger"),)))
        blocks: list[Block] = [FactList(tuple(facts))]
        if self.damage:
            rows = tuple((("" if one.sequence is None else str(one.sequence),), (one.message,)) for one in self.damage)
            headings = ("event", "what is wrong")
            blocks.append(PageTable((), headings, rows, words=headings, failing=frozenset(range(len(rows)))))
        badge = Badge("INTACT" if self.intact else "DAMAGED", self.intact)
        origins = {"ledger": "Counted in the ledger."}
        section = PageSection("verification", "Verification", tuple(blocks))
        return Page("Verification of a ledger", self.ledger, (section,), (badge,), origins=origins)


def verification_of(
    place: str, rows: LedgerRows, *, recompute: bool = False, expected_head: str | None = None
) -> LedgerVerification:
    """Return what is wrong with a ledger, from its first event that is wrong on."""
    state, events, hashes = State(), list[Event](), [Head()]
    found: list[Found] = [(None, message) for message in rows.connection.additions()]
    try:
        events = rows.events()
        hashes, wrong = _chained(events, state)
        found += wrong
        for message in () if wrong else _differences(state, rows, hashes[-1]):
            found.append((None, message))
    except LedgerError as error:
        found += [(_number(problem), problem.render()) for problem in error.problems]
    if expected_head is not None and not any(head.hash.startswith(expected_head) for head in hashes):
        found.append(
            (None, f"no event has the hash {expected_head}: the end of the ledger was cut off, or it is another ledger")
        )
    recomputed = None
    if recompute and not found:
        recomputed, other = _recomputed(state, rows)
        found += [(None, message) for message in other]
    return LedgerVerification(
        pyaccount=1,
        kind="ledger-verification",
        ledger=place,
        intact=not found,
        events=len(events),
        head=hashes[-1].hash,
        recomputed=recomputed,
        damage=[DamageRecord(sequence=sequence, message=message) for sequence, message in found],
    )


def _number(problem: Problem) -> int | None:
    """Return the number of the event that cannot be read; None for another row."""
    match problem.path:
        case ("events", int() as number):
            return number
    return None


def _chained(events: Sequence[Event], state: State) -> tuple[list[Head], list[Found]]:
    """Apply events to a state. Return the ends of the chain after each of them, and what is wrong with the first wrong one."""
    heads = [Head()]
    for event in events:
        head, wrong = heads[-1], None
        if event.sequence != head.sequence + 1:
            wrong = f"the event {head.sequence + 1} is missing"
        elif event.previous != head.hash or not event.intact:
            wrong = "its hash is not that of its content and of the event before: it was changed"
        elif (wrong := disorder(head, event.time, event.kind, event.content)) is None:
            try:
                state.apply(event)
            except BrokenRuleError as error:
                wrong = f"it breaks a rule: {error}"
        if wrong is not None:
            return heads, [(event.sequence, wrong)]
        heads.append(Head.of(event))
    return heads, []


def _differences(state: State, rows: LedgerRows, head: Head) -> Iterator[str]:
    """Yield in which rows the tables differ from what follows from the events, the last of which is `head`.

    Raises `LedgerError` at a row that cannot be read.
    """
    if head != rows.head:
        stated = f"{rows.head.sequence} ({rows.head.hash[:12]})"
        yield f"the end of the chain is stated as {stated}, and the last event is {head.sequence}"
    names = rows.data_sets()
    if sorted(state.data_sets) != names:
        stated = ", ".join(names) or "none"
        yield f"the table of data sets has {stated}, and the events {', '.join(sorted(state.data_sets))}"
    entries = state.entries.values()
    columns = {(one.id, one.data_set, one.document_sha256, one.certificate, one.record) for one in entries}
    if columns != rows.keys():
        yield "the columns by which entries are looked up do not follow from the events"
    places = {
        (one.id, one.data_set, place.block, place.filter, int(place.counts)) for one in entries for place in one.places
    }
    if places != rows.places():
        yield "the columns by which the fixed entries of a block are found do not follow from the events"
    blocks, unseen = dict(state.blocks), dict(state.entries)
    for name in names:
        if rows.data_set(name) != state.data_sets.get(name):
            yield f"the row of the data set {name} does not follow from the events"
        for block in rows.blocks(name):
            if blocks.pop((name, block.name), None) != block:
                yield f"the row of the block {block.name} of {name} does not follow from the events"
        for entry in rows.entries(name):
            if unseen.pop(entry.id, None) != entry:
                yield f"the row of the entry {entry.id} does not follow from the events"
    yield from (f"the row of the block {block} of {name} is missing" for name, block in blocks)
    yield from (f"the row of the entry {entry} is missing" for entry in unseen)
    if rows.phases() != state.entries.keys():
        yield "the phases of some entries are missing"


def _recomputed(state: State, rows: LedgerRows) -> tuple[int, list[str]]:
    """Return how many totals were computed again, and which differ from what the ledger says."""
    computed: dict[str, float] = {}
    count, wrong = 0, []
    for (name, block), found in state.blocks.items():
        if found.total is None:
            continue
        kept = state.data_sets[name]
        fixed = list(rows.fixed(name, block).values())
        key = canonical([kept.text, fixed])
        if key not in computed:
            try:
                total = total_of(kept, fixed)
            except PyaccountError as error:
                wrong.append(f"the total of the block {block} of {name} cannot be computed here: {error}")
                continue
            assert total is not None
            computed[key] = total.value
        count += 1
        if computed[key] > found.total.value * (1.0 + AGREEMENT):
            wrong.append(
                f"the total of the block {block} of {name} is {computed[key]!r}, and the ledger says {found.total.value!r}"
            )
    return count, wrong
