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

if TYPE_CHECKING:
    from pyaccount.training.holding import RecordVerdict

#: The note on numbers from a record.
ORIGIN = "training"
#: What a report says first, so that nobody reads more into a record than there is in it.
WORTH = (
    "The record is whole, and about this certificate. It shows whether lines were changed, lost or moved, not whether it was cut "
    "at its end, or written anew from its beginning."
)
LEFT = "Check each point that is yours against the training code; the rest the run itself sees to, or refuses."


def run_part(verdict: RecordVerdict) -> RunPart:
    """The parts of a report about a record that was held against its certificate."""
    done = exact(verdict.released, "rounds", ORIGIN, 20)
    certified = exact(verdict.rounds, "rounds", ORIGIN, 20)
    agrees = verdict.agrees
    progress: Content = (done, " of ", certified, " rounds") if agrees else ("its record DOES NOT AGREE",)
    ended = "the whole run" if verdict.released == verdict.rounds else "the run so far"
    rows = [
        Fact("record", (Literally(verdict.file),), ("agrees" if agrees else "does not agree",)),
        Fact("its SHA-256", (Literally(verdict.sha256),)),
    ]
    if agrees:
        note = f"{ended}, one after the other, each with its noise; rounds that were given up are among them"
        rows.append(Fact("released", progress, (note,)))
        rewinds = exact(verdict.rewinds, "times", ORIGIN, 20)
        rows.append(Fact("rewound", (rewinds, " times"), ("an earlier checkpoint was taken up, and rounds given up",)))
    if verdict.key_commitment is not None:
        rows.append(Fact("key", (Literally(verdict.key_commitment),), ("a commitment, which tells runs apart",)))
    rows += [Fact("problem", (problem,)) for problem in verdict.problems]
    facts = FactList(tuple(rows))
    section = PageSection("run", "The training run", (Paragraph((WORTH,)), facts) if agrees else (facts,))
    headline = Fact("run", progress, ("released" if agrees else "see The training run",))
    return RunPart(headline, section, _assumptions(verdict) if agrees else None)


def _assumptions(verdict: RecordVerdict) -> PageSection:
    """Each assumption with who sees to it, those first that are left to people."""
    order = ("yours", "checked", "enforced")
    held = sorted(verdict.assumptions, key=lambda one: order.index(one.held))
    rows: tuple[tuple[Content, ...], ...] = tuple(((one.held,), (one.text,), (one.how,)) for one in held)
    table = PageTable(("Who sees to each assumption",), ("held", "assumption", "how"), rows, words=3)
    return PageSection("assumptions", "What must be true of the training run", (Paragraph((LEFT,)), table))
