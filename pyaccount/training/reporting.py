"""What a record says about the run of a certificate, as data and as pages: how far it got, and how each assumption is met.

Some assumptions a recorded run fulfils itself, and others are left to the people who train.

* **enforced**: the run makes the assumption true, by how it draws batches and noise and by counting rounds before they are used.
* **checked**: the run refuses violations that it can detect.
* **yours**: the run cannot know whether the assumption is true, so you have to check it.

An assumption that this module does not know is yours.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pyaccount.pages.page import (
    Badge,
    Content,
    Fact,
    FactList,
    Literally,
    Page,
    PageSection,
    PageTable,
    Paragraph,
    exact,
)
from pyaccount.pages.readable import Readable
from pyaccount.training.drawing import FROM_KEY

if TYPE_CHECKING:
    from pyaccount.training.record import Ending, RecordedTrainer

Held = Literal["enforced", "checked", "yours"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption, whether it is enforced, checked or yours, and how."""

    text: str
    held: Held
    how: str


_BATCHES = "batches are drawn so from the run's key; that the sum is of this batch, and of nothing else, is yours"

_NOISE = (
    "drawn so from the run's key by ChaCha20 in double precision, and added before a sum is given out, rounded to a grid: up to "
    "what floating-point numbers leave (docs/training.md)"
)

_OTHER_NOISE = (
    "drawn by {source}, as it was asked for, and not from the run's key; scaled, correlated and added by the run. Whether "
    "nobody can guess what it draws is yours to judge (docs/training.md)"
)

_ROUNDS = "the run ends after its last round, and every round is recorded before its sum is given out"

_SIZE = "the data must have the document's number of records; that it may be known is yours"

_SCHEDULED = (
    "each round's noise, and its batch where rates are scheduled, are drawn with the values of the certified schedule"
)

_BEFOREHAND = "the run keeps to the certified schedule; that nobody chose it by looking at the data is yours"

_RELEASED = "each of these sums gets its own noise, and is released with its batch or not at all"

_WHO = "it says whom the guarantee is about; the run refuses data of another size, which is so known to whoever sees it run"

_CLIPPING = "the run sees sums, not contributions: clip each to the run's clip norm before it is added"

_CLIPPED = (
    "clipped in the integration of {trainer} ({clipping}); that what is clipped depends on no other record is yours"
)

_SECRET = "keep the batches, their sizes, the unnoised sums and the key away from logs and releases"

_FIXED = "the order must not follow from the data, nor from who is in it"

_NOTHING_ELSE = "whatever else is computed from a batch and leaves the training run is yours"

#: For each assumption, by the words with which it begins, whether it is enforced, checked or yours, and how.
BEGINNINGS: dict[str, tuple[Held, str]] = {
    "Neighbouring data sets differ": ("yours", _WHO),
    "Each record's contribution to a batch is clipped": ("yours", _CLIPPING),
    "Each release is a single number": ("yours", _CLIPPING),
    "The sampled batches are secret": ("yours", _SECRET),
    "Fresh Gaussian noise": ("enforced", _NOISE),
    "The noise of the iterations is C⁻¹Z": ("enforced", _NOISE),
    "Every complete block of the tree has": ("enforced", _NOISE),
    "Sums are normalised by": ("enforced", "sums are divided by a constant that is fixed when the run begins"),
    "A run has ": ("enforced", _ROUNDS),
    "Every record enters every batch": ("enforced", _BATCHES),
    "Every record joins each iteration": ("enforced", _BATCHES),
    "Every record is put in one of": ("enforced", _BATCHES),
    "Every batch is": ("enforced", _BATCHES),
    "For each iteration a fresh": ("enforced", _BATCHES),
    "For every iteration": ("enforced", _BATCHES),
    "In every ": ("enforced", _BATCHES),
    "Iteration i draws from": ("enforced", _BATCHES),
    "Of a batch with more than": ("enforced", _BATCHES),
    "The contributions of all": ("enforced", _BATCHES),
    "The data set is cut into": ("enforced", "the parts go by the records' numbers, or are drawn from the run's key"),
    "No user has more than": ("checked", f"an attribution with more is refused; {_BATCHES}"),
    "No record takes part in more than": ("enforced", _ROUNDS),
    "The dataset size is": ("checked", _SIZE),
    "The data set's size is": ("checked", _SIZE),
    "The expected batch size is": ("checked", "it follows from the document, whose rates the batches are drawn with"),
    "Each round has the": ("enforced", _SCHEDULED),
    "The schedule is fixed before the run": ("yours", _BEFOREHAND),
    "Each round also releases": ("enforced", _RELEASED),
    "Nothing else is released of a batch": ("yours", _NOTHING_ELSE),
    "Which records take part in which round": ("yours", _FIXED),
}


def held(assumption: str, noise_source: str = FROM_KEY, trainer: RecordedTrainer | None = None) -> Assumption:
    """Return whether an assumption is enforced, checked or yours in a recorded run.

    Its noise came from `noise_source`, and `trainer` is the integration that clipped in all of its rounds, if it was one.
    """
    for beginning, (status, how) in BEGINNINGS.items():
        if assumption.startswith(beginning):
            if how == _CLIPPING and trainer is not None and assumption.startswith("Each record"):
                library = f"{trainer.name} {trainer.version}"
                return Assumption(assumption, "checked", _CLIPPED.format(trainer=library, clipping=trainer.clipping))
            if how == _NOISE and noise_source != FROM_KEY:
                return Assumption(assumption, "yours", _OTHER_NOISE.format(source=noise_source))
            return Assumption(assumption, status, how)
    return Assumption(assumption, "yours", "nothing in the run knows of it")


#: The origin of numbers that are read from a record.
ORIGIN = "training"

ORIGINS = {ORIGIN: "Read from the record of the training run."}

#: What an agreeing record shows and what it does not show; the page says this first.
WORTH = (
    "The record is complete, and is about this certificate. This shows whether lines were changed, lost or moved. It does not "
    "show whether the record was put back to an earlier state or written anew: for that, compare its head with one that was "
    "noted elsewhere."
)

UNCERTIFIED = "its run began UNCERTIFIED"

BEGAN_UNCERTIFIED = (
    "This run began UNCERTIFIED, from the document alone: this certificate was not used for it, or was made later."
)

LEFT = "Check each assumption that is yours against the training code; the run enforces or checks the others."


@dataclass(frozen=True, slots=True)
class RecordVerdict(Readable):
    """The result of comparing a record with a certificate, and what the record says about the run."""

    file: str
    #: The hash of the file's bytes.
    sha256: str
    #: Whether the record is that of the certificate's run, as far as the run got.
    agrees: bool
    #: How many rounds the file has. The run may have released more, unless the ending excludes that.
    released: int
    #: How many rounds are certified.
    rounds: int
    #: How often rounds were given up to continue from an earlier checkpoint; these rounds count as released.
    rewinds: int
    key_commitment: str | None
    #: Messages about everything in which the record contradicts itself or the certificate.
    problems: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    #: How the record ends; None if it cannot be read.
    ending: Ending | None = None
    #: The hash of the last line; None if the record cannot be read.
    head: str | None = None
    #: Whether the run began without a certificate.
    uncertified: bool = False

    def __bool__(self) -> bool:
        """Return whether the record agrees with the certificate."""
        return self.agrees

    @property
    def at_least(self) -> bool:
        """Whether the run may have released more rounds than the file has."""
        return self.ending == "open"

    @property
    def ended(self) -> str:
        """How the record ends, in words."""
        match self.ending:
            case "exhausted":
                return "the whole run"
            case "closed":
                return "then the run was closed"
            case "abandoned":
                return "then the run was abandoned"
        return "as far as this file goes: it has no closing line, so the run is open or was killed, or the file was cut"

    def to_mapping(self) -> dict[str, Any]:
        """Return the verdict as data."""
        return asdict(self) | {"at_least": self.at_least}

    def page(self) -> Page:
        """Return a page about the record, without the certificate."""
        badges = [Badge("agrees" if self.agrees else "does not agree", good=self.agrees)]
        badges += [Badge(UNCERTIFIED, good=False)] if self.uncertified else []
        sections = [_run_section(self), *([_assumptions(self)] if self.agrees else [])]
        return Page("Run record", self.file, tuple(sections), badges=tuple(badges), origins=ORIGINS)


def with_run(page: Page, verdict: RecordVerdict) -> Page:
    """Return the page of a certificate with a section about its run inserted before the assumptions."""
    headline = Fact("run", _progress(verdict), ("released" if verdict.agrees else "see The training run",))
    page = replace(page, headline=(*page.headline, headline), origins={**page.origins, **ORIGINS})
    page = page.with_section(_run_section(verdict), before="assumptions")
    if verdict.agrees:
        page = page.with_replaced(_assumptions(verdict))
    badges = [*page.badges, *([Badge("its record does not agree", good=False)] if not verdict.agrees else [])]
    badges += [Badge(UNCERTIFIED, good=False)] if verdict.uncertified else []
    return replace(page, badges=tuple(badges))


def _run_section(verdict: RecordVerdict) -> PageSection:
    """Return the section of a page about the training run, from a record that was compared with its certificate."""
    agrees = verdict.agrees
    rows = [
        Fact("record", (Literally(verdict.file),), ("agrees" if agrees else "DOES NOT AGREE",)),
        Fact("SHA-256", (Literally(verdict.sha256),), ("of the record's file",)),
    ]
    if agrees:
        rows.append(Fact("released", _progress(verdict), (verdict.ended,)))
        rewinds = exact(verdict.rewinds, "times", ORIGIN, 20)
        note = "an earlier checkpoint was restored; the rounds after it are counted among those released"
        rows.append(Fact("rewound", (rewinds, " times"), (note,)))
    if verdict.key_commitment is not None:
        rows.append(Fact("key", (Literally(verdict.key_commitment),), ("a commitment, which differs between runs",)))
    if verdict.head is not None:
        rows.append(Fact("head", (Literally(verdict.head),), ("the hash of the record's last line",)))
    rows += [Fact("problem", (problem,)) for problem in verdict.problems]
    first = (Paragraph((BEGAN_UNCERTIFIED,)),) if verdict.uncertified else ()
    worth = (Paragraph((WORTH,)),) if agrees else ()
    return PageSection("run", "The training run", (*first, *worth, FactList(tuple(rows))))


def _progress(verdict: RecordVerdict) -> Content:
    if not verdict.agrees:
        return ("its record DOES NOT AGREE",)
    least = "at least " if verdict.at_least else ""
    done, certified = exact(verdict.released, "rounds", ORIGIN, 20), exact(verdict.rounds, "rounds", ORIGIN, 20)
    return (least, done, " of ", certified, " rounds")


def _assumptions(verdict: RecordVerdict) -> PageSection:
    """Return a table of the assumptions, which begins with those that people have to check."""
    order = ("yours", "checked", "enforced")
    held = sorted(verdict.assumptions, key=lambda assumption: order.index(assumption.held))
    rows: tuple[tuple[Content, ...], ...] = tuple(((row.held,), (row.text,), (row.how,)) for row in held)
    headings = ("held", "assumption", "how")
    table = PageTable(("Who sees to each assumption",), headings, rows, words=headings)
    return PageSection("assumptions", "What must be true of the training run", (Paragraph((LEFT,)), table))
