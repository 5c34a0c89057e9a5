"""The status of a ledger as data, and as OpenMetrics text, which Prometheus and others read.

Every number is an upper bound, a lower bound or an estimate, as its description says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from pyaccount.ledger.events import moment_of
from pyaccount.records.fields import NonNegative, OutputRecord, Record


class TermRecord(Record):
    """One number of a filter's budget."""

    term: str = Field(description="ε, δ, ρ, μ, or D_a for the Rényi divergence of order a.")
    limit: NonNegative = Field(description="The budget in this term.")
    spent: NonNegative = Field(description="What is spent, an upper bound. For μ: √Σμ².")
    left: NonNegative = Field(description="What is left, a lower bound. For μ: the largest μ of one more entry.")


class TypicalRecord(Record):
    """What an entry has cost so far. It is an estimate of the next one."""

    share: NonNegative = Field(description="The median of the shares of the budget that entries took.")
    fitting: int | None = Field(
        description="How many entries of this share would fit into what is left of a filter. Null for fixed entries, whose "
        "shares do not add up."
    )


class FilterRecord(Record):
    """A filter of a block."""

    name: str = Field(description="The name of the filter; `budget` if all entries count in it.")
    entries: int = Field(description="The number of entries that count in it.")
    share: NonNegative = Field(
        description="The share of its budget that is spent, an upper bound. It adds up over entries."
    )
    terms: list[TermRecord] = Field(description="Its budget, number by number.")
    typical: TypicalRecord | None = Field(description="The typical entry of this filter; null without entries.")


class TotalRecord(Record):
    """The guarantee of a block: its fixed entries together with the whole budgets of its filters."""

    value: NonNegative = Field(
        description="Upper bound in the measure of the budget: ε at its δ, or the limited measure."
    )
    limit: NonNegative = Field(description="The budget in this measure.")
    epsilon: NonNegative = Field(description="Upper bound on ε at delta, in nats.")
    delta: NonNegative = Field(description="The δ of epsilon.")
    fixed: int = Field(description="The number of fixed entries that count.")
    typical: TypicalRecord | None = Field(description="The typical fixed entry; null without one.")


class BlockRecord(Record):
    """A block of a data set."""

    name: str = Field(description="The name of the block; `all` if the data set is not divided.")
    open: bool = Field(description="Whether it takes entries.")
    begun: bool = Field(description="Whether an entry has begun, so that further entries are adaptive.")
    share: NonNegative = Field(description="The share of the budget that is spent or set aside, an upper bound.")
    total: TotalRecord | None = Field(
        description="The guarantee; null if all entries count in one filter, which is it."
    )
    filters: list[FilterRecord] = Field(description="The filters.")


class SpenderRecord(Record):
    """What one person has entered."""

    who: str = Field(description="Who.")
    reserved: int = Field(description="Entries that are reserved.")
    begun: int = Field(description="Entries that have begun.")
    committed: int = Field(description="Entries that are committed.")
    released: int = Field(description="Entries that were given back.")
    fixed_share: NonNegative = Field(
        description="The sum of the shares of the budget that their fixed entries took, on the block where it is largest; an "
        "estimate: by how much the total grew."
    )
    filter_share: NonNegative = Field(
        description="The sum of the shares of a filter's budget that their entries took, in the filter and on the block where it "
        "is largest. It is rounded to the nearest."
    )


class OpenRecord(Record):
    """An entry that is reserved or has begun."""

    id: str = Field(description="Its identifier.")
    name: str = Field(description="The name of its document.")
    who: str = Field(description="Who reserved it.")
    purpose: str = Field(description="What for.")
    state: Literal["reserved", "begun"] = Field(description="Its state.")
    since: str = Field(description="The time since which it has this state.")
    blocks: dict[str, str | None] = Field(
        description="Its blocks, each with the filter it counts in; null if it is fixed there."
    )


class DataSetRecord(Record):
    """A data set of the ledger."""

    name: str = Field(description="The name of the data set.")
    adjacency: str = Field(description="Which two data sets are neighbours.")
    group_size: int = Field(description="The number of records (or users) that are protected together.")
    unit: str = Field(description="What is protected: record or user.")
    budget: str = Field(description="The budget in words.")
    measure: Literal["epsilon", "rho", "mu", "advantage", "true_positive_rate", "gaussian_mu"] = Field(
        description="What the budget limits."
    )
    blocks: list[BlockRecord] = Field(description="Its blocks, in the order of their names.")
    spenders: list[SpenderRecord] = Field(description="Who has entered something, the largest share first.")
    open: list[OpenRecord] = Field(description="Entries that are reserved or have begun, in order.")


class AmendmentRecord(Record):
    """An event that set the clock of the ledger back."""

    sequence: int = Field(description="The number of the event.")
    time: str = Field(description="The time to which the clock was set back.")
    amended_from: str = Field(description="The time of the event before, which a clock that was wrong had written.")
    reason: str = Field(description="Why.")


class StatusRecord(OutputRecord):
    """What is spent of the budgets of a ledger, by whom, and what is left."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["ledger-status"] = Field(description="The kind of this JSON: the status of a ledger.")
    ledger: str = Field(description="The file or the address of the ledger.")
    time: str = Field(description="The time of this status, by the clock of this machine.")
    events: int = Field(description="The number of events of the ledger.")
    head: str = Field(description="The hash of the last event, which confirms all earlier ones.")
    last: str | None = Field(description="The time of the last event; null if there is none.")
    amendments: list[AmendmentRecord] = Field(
        description="The events that set the clock back. No charge depends on a time, so they change none."
    )
    data_sets: list[DataSetRecord] = Field(description="The data sets.")


#: The families of metrics: name, type, unit (or none) and help.
FAMILIES = (
    ("pyaccount_ledger_events", "counter", "", "Events of the ledger."),
    ("pyaccount_ledger_last_event_timestamp_seconds", "gauge", "seconds", "Time of the last event."),
    (
        "pyaccount_budget_spent_ratio",
        "gauge",
        "ratio",
        "Share of the budget of a block that is spent or set aside (upper bound).",
    ),
    ("pyaccount_budget_limit", "gauge", "", "Budget of a block, in its measure."),
    ("pyaccount_budget_spent", "gauge", "", "Guarantee of a block in the measure of its budget (upper bound)."),
    ("pyaccount_filter_limit", "gauge", "", "Budget of a filter, by term."),
    ("pyaccount_filter_spent", "gauge", "", "What is spent in a filter, by term (upper bound)."),
    ("pyaccount_entries", "gauge", "", "Entries by who reserved them and by state."),
)


def openmetrics(status: StatusRecord) -> str:
    """Return the text, in version 1.0 of OpenMetrics."""
    samples: dict[str, list[str]] = {name: [] for name, *_ in FAMILIES}
    samples["pyaccount_ledger_events"].append(f"pyaccount_ledger_events_total {status.events}")
    if status.last is not None:
        name = "pyaccount_ledger_last_event_timestamp_seconds"
        samples[name].append(f"{name} {moment_of(status.last).timestamp()}")
    for name, labels, value in _samples(status):
        spelled = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        samples[name].append(f"{name}{{{spelled}}} {value!r}")
    lines = []
    for name, kind, unit, about in FAMILIES:
        if samples[name]:
            lines += [f"# TYPE {name} {kind}", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {about}"]
            lines += samples[name]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _samples(status: StatusRecord) -> Iterator[tuple[str, dict[str, str], float]]:
    for data_set in status.data_sets:
        for block in data_set.blocks:
            labels = {"data_set": data_set.name, "block": block.name}
            yield "pyaccount_budget_spent_ratio", labels, block.share
            if block.total is not None:
                of = labels | {"measure": data_set.measure}
                yield "pyaccount_budget_limit", of, block.total.limit
                yield "pyaccount_budget_spent", of, block.total.value
            for filter_ in block.filters:
                for term in filter_.terms:
                    of = labels | {"filter": filter_.name, "term": term.term}
                    yield "pyaccount_filter_limit", of, term.limit
                    yield "pyaccount_filter_spent", of, term.spent
        for spender in data_set.spenders:
            for state in ("reserved", "begun", "committed", "released"):
                of = {"data_set": data_set.name, "who": spender.who, "state": state}
                yield "pyaccount_entries", of, getattr(spender, state)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
