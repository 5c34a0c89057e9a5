"""How a page shows the phases of a certificate that are no training runs, and what it says about stated guarantees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyaccount.pages.page import Content, Entry, Fact, Literally, Quantity, chosen_value, exact
from pyaccount.records.certificate import CertificateModel, PhaseRecord

#: The keys of phases that are inside of a phase.
_INNER = ("phases", "parallel")
#: How many entries of a list are shown.
_MOST_ENTRIES = 20


def mechanism_phase(phase: PhaseRecord, index: int) -> Entry:
    """Return the phase of a mechanism: its keys as in the document, and how often it is run on which records."""
    mechanism = phase.mechanism
    assert mechanism is not None
    rows = [Fact("mechanism", (mechanism.kind,), ("in place of training, sampler, matrix and noise",))]
    rows += _facts(mechanism.stated)
    rows.append(Fact("runs", (chosen_value(phase.count, "runs"),)))
    if phase.sampling_probability is not None:
        drawn = exact(phase.sampling_probability, "probability", "document")
        rows.append(Fact("sampling probability", (drawn,), ("for each record in each run",)))
    rows += probability_facts(phase)
    drawn_by = "" if phase.sampling_probability is None and phase.probabilities is None else phase.sampler
    return Entry(phase.name or f"Phase {index + 1}", drawn_by, tuple(rows))


def probability_facts(phase: PhaseRecord) -> list[Fact]:
    """Return the largest probability of a record, and that of each stratum, if records have different ones."""
    stated = phase.probabilities
    if stated is None:
        return []
    largest = exact(stated.largest, "probability", "document")
    rows = [Fact("largest probability", (largest,), ("of a record to be drawn: records have different ones",))]
    for name, probability in (stated.strata or {}).items():
        rows.append(
            Fact("stratum", (name, ": ", exact(probability, "probability", "document")), ("for each of its records",))
        )
    return rows


def _facts(stated: Mapping[str, Any], of: str = "") -> Iterator[Fact]:
    """Yield a line for each key, and lines for the keys of each phase that is inside of this one."""
    for key, value in stated.items():
        if key in _INNER:
            for number, inner in enumerate(value, start=1):
                name = inner.get("name") or f"phase {number}"
                yield from _facts({word: held for word, held in inner.items() if word != "name"}, f"{of}{name}: ")
        else:
            yield Fact(of + key.replace("_", " "), tuple(_parts(value)))


def _parts(value: Any) -> Iterator[str | Quantity | Literally]:
    """Yield a value of a document in words: its kind, then each key with its value."""
    if isinstance(value, Mapping):
        for position, (key, held) in enumerate(sorted(value.items(), key=lambda item: item[0] != "kind")):
            yield ", " if position else ""
            if key != "kind":
                yield f"{key.replace('_', ' ')} "
            yield from _parts(held)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        between = "; " if value and isinstance(value[0], Mapping) else ", "
        for position, held in enumerate(value[:_MOST_ENTRIES]):
            yield between if position else ""
            yield from _parts(held)
        if len(value) > _MOST_ENTRIES:
            yield f"{between}… all of them in the certificate's JSON"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield chosen_value(value, "as stated")
    else:
        yield Literally(value if isinstance(value, str) else json.dumps(value))


def note_on_stated(data: CertificateModel) -> Content | None:
    """Return what the lower ends of a certificate with stated guarantees are of; None if it has no such phase."""
    names = [
        phase.name or f"phase {index + 1}"
        for index, phase in enumerate(data.phases)
        if phase.mechanism is not None and _is_stated(phase.mechanism.kind, phase.mechanism.stated)
    ]
    if not names:
        return None
    return (
        "Of ",
        Literally(", ".join(names)),
        " only a guarantee is known. Lower ends are those of mechanisms that have such a guarantee and no better one: "
        "what was run may be more private.",
    )


def _is_stated(kind: str, keys: Mapping[str, Any]) -> bool:
    """Return whether a mechanism, or one of the phases inside of it, has a stated guarantee."""
    inner = [one for key in _INNER for one in keys.get(key, ())]
    return kind == "stated" or any(_is_stated(one.get("mechanism", {}).get("kind", ""), one) for one in inner)
