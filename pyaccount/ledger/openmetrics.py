"""The status of a ledger as OpenMetrics text, which Prometheus and others read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.ledger.events import moment_of

if TYPE_CHECKING:
    from pyaccount.ledger.status_records import StatusRecord

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
