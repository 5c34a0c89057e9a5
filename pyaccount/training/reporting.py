"""What a report says of the run of its certificate: how far it got, and who sees to each assumption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.certificate.report.page import (
    Content,
    Fact,
    FactList,
    Literally,
    PageSection,
    PageTable,
    Paragraph,
    RunPart,
    exact,
)
from pyaccount.training.holding import WITHOUT_NONCES

if TYPE_CHECKING:
    from pyaccount.training.holding import RecordVerdict

#: The note on numbers from a record.
ORIGIN = "training"
#: What a report says first, so that nobody reads more into a record than there is in it.
WORTH = (
    "The record is whole, and about this certificate. It shows whether lines were changed, lost or moved, not whether it was "
    "put back to an earlier state, or written anew from its beginning: compare its head with one that was noted elsewhere."
)
UNCERTIFIED = "This run began UNCERTIFIED, from the document alone: this certificate was made without it, or later."
LEFT = "Check each point that is yours against the training code; the rest the run itself sees to, or refuses."


def run_part(verdict: RecordVerdict) -> RunPart:
    """The parts of a report about a record that was held against its certificate."""
    done = exact(verdict.released, "rounds", ORIGIN, 20)
    certified = exact(verdict.rounds, "rounds", ORIGIN, 20)
    agrees = verdict.agrees
    least = "at least " if verdict.at_least else ""
    progress: Content = (least, done, " of ", certified, " rounds") if agrees else ("its record DOES NOT AGREE",)
    rows = [
        Fact("record", (Literally(verdict.file),), ("agrees" if agrees else "does not agree",)),
        Fact("its SHA-256", (Literally(verdict.sha256),)),
    ]
    if agrees:
        rows.append(Fact("released", progress, (f"{verdict.how_far}; rounds that were given up are counted",)))
        rewinds = exact(verdict.rewinds, "times", ORIGIN, 20)
        rows.append(Fact("rewound", (rewinds, " times"), ("an earlier checkpoint was taken up, and rounds given up",)))
    if verdict.key_commitment is not None:
        rows.append(Fact("key", (Literally(verdict.key_commitment),), ("a commitment, which tells runs apart",)))
    if verdict.head is not None:
        rows.append(Fact("head", (Literally(verdict.head),), ("the hash of the record's last line",)))
    if verdict.version == 1:
        rows.append(Fact("version", ("1",), (WITHOUT_NONCES,)))
    rows += [Fact("problem", (problem,)) for problem in verdict.problems]
    facts = FactList(tuple(rows))
    first = (Paragraph((UNCERTIFIED,)),) if verdict.uncertified else ()
    section = PageSection(
        "run", "The training run", (*first, Paragraph((WORTH,)), facts) if agrees else (*first, facts)
    )
    released = "released by a run that began UNCERTIFIED" if verdict.uncertified else "released"
    headline = Fact("run", progress, (released if agrees else "see The training run",))
    warning = "its run began UNCERTIFIED" if verdict.uncertified else None
    return RunPart(headline, section, _assumptions(verdict) if agrees else None, warning)


def _assumptions(verdict: RecordVerdict) -> PageSection:
    """Each assumption with who sees to it, those first that are left to people."""
    order = ("yours", "checked", "enforced")
    held = sorted(verdict.assumptions, key=lambda one: order.index(one.held))
    rows: tuple[tuple[Content, ...], ...] = tuple(((one.held,), (one.text,), (one.how,)) for one in held)
    table = PageTable(("Who sees to each assumption",), ("held", "assumption", "how"), rows, words=3)
    return PageSection("assumptions", "What must be true of the training run", (Paragraph((LEFT,)), table))
