"""`probed`: replays a training loop on neighbouring data, and reports what depends on the data beside the release.

A certificate assumes that a record changes the sum of a round by at most the clip norm, and that nothing else that anybody sees
is a function of the data. Here the loop is replayed with the same batches, the same seeds and the same releases, and one record
is removed, replaced, zeroed or scaled. Then

* the sum of a round with m copies of the record is at most m clip norms from the sum without it, and other sums are the same. If
  all batches have one public size, so that no record can be removed, two sums are at most 2m clip norms apart;
* everything else is the same: the rounds, the steps that variables take, what is printed and logged.

Whatever is not is a finding. A replay shows that code does something wrong, never that it does not: it sees one record, a few
rounds, and the branches that these take. The method is that of Re:cord-play (Cebere, Erb, Desfontaines, Bellet and Fitzsimons,
2026, arXiv:2602.17454), which runs instrumented algorithms on neighbouring data with identical randomness, and compares internal
inputs with a declared sensitivity; here the certificate declares it.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from pyaccount.arguments import seconds_of
from pyaccount.errors import DomainError, RunError
from pyaccount.pages.page import Badge, Block, Entry, Fact, Page, PageSection, Paragraph
from pyaccount.pages.readable import Readable
from pyaccount.training.replay import CHANGED, FACTORS, Loop, ReplayedRound, Trace, shorter
from pyaccount.training.watching import GENERATOR, Seen, Variable, line_of, way_out

#: Sums may be farther apart than clip norms allow by this relative amount, for roundings.
SLACK = 1e-4
#: Steps of a variable are proportional up to this.
PROPORTIONAL = 1e-4
#: The most rounds that a probe replays.
MOST_ROUNDS = 1000

FindingKind = Literal["sensitivity", "mixing", "state", "step-size", "output", "control-flow", "batch"]

#: What to do about each kind of finding.
ADVICE: dict[FindingKind, str] = {
    "sensitivity": "Clip the contribution of each record to the clip norm, over all parameters together, and add it up once",
    "mixing": "Let no record see the rest of its batch: no batch normalisation, no mean or rank over a batch before clipping, no "
    "factor from it",
    "state": "Compute what the loop keeps from released means alone, or keep nothing",
    "step-size": "Take learning rates, normalisers and weights from constants or released means, such as run.normaliser()",
    "output": "Print, log and save only what was released, or keep this to yourself as you keep the data",
    "control-flow": "Decide by constants and released means alone, and release every batch, whatever is in it",
    "batch": "Take the records of each round from step.batch or run.batch(round)",
}

WHAT: dict[str, str] = {
    "none": "is replayed as it is",
    "removed": "is removed",
    "shortened": "is removed, also where the script asks for len() of the data",
    "replaced": "is replaced by another one",
    "zeroed": "is zeroed",
    "scaled": "is multiplied by 1000",
    "reversed": "is multiplied by −1000",
}

NOT_SHOWN = (
    "A probe proves nothing. It follows one record through a few rounds and sees variables of the script, sums, text files and "
    "what is printed or logged. It does not see what was computed from the data before the run was opened, what a library keeps "
    "to itself, sizes other than len(), or what is sent elsewhere, such as to a tracker of experiments."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a training loop that depends on the data beside the release."""

    kind: FindingKind
    #: The file and the line, as far as they are known.
    line: str
    #: The round, counted from 0, and what was done with the record.
    round: int
    change: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.line}: {self.message}. {self.advice}."


@dataclass(frozen=True, slots=True)
class Probe(Readable):
    """What a probe of a training loop found; true if it found nothing, which proves nothing."""

    pyaccount: Literal[1]
    kind: Literal["probe"]
    #: The rounds of each replay, and what was done with the record in the replays.
    rounds: int
    changes: tuple[str, ...]
    findings: tuple[Finding, ...]
    #: What could not be tried, or was not compared, and why.
    notes: tuple[str, ...]
    not_shown: str

    def __bool__(self) -> bool:
        return not self.findings

    @property
    def statement(self) -> str:
        """One sentence that says what was found."""
        steps = f"{self.rounds} step{'' if self.rounds == 1 else 's'}"
        count = len(self.findings)
        return f"nothing found in {steps}" if self else f"{count} finding{'' if count == 1 else 's'} in {steps}"

    def to_json(self) -> str:
        """Return the result as JSON text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    def page(self) -> Page:
        """Return the result as a page."""
        found: tuple[Block, ...] = tuple(
            Entry(
                one.kind,
                one.line,
                (Fact("seen", (f"{one.message}.",)), Fact("to do", (f"{one.advice}.",))),
            )
            for one in self.findings
        )
        sections = [PageSection("findings", "What depends on the data", found)] if found else []
        if self.notes:
            notes = tuple(Paragraph((note,)) for note in self.notes)
            sections.append(PageSection("notes", "What was not tried or compared", notes))
        sections.append(PageSection("worth", "What a probe does not show", (Paragraph((self.not_shown,)),)))
        tried = ", ".join(self.changes)
        return Page(
            "Probe",
            "",
            tuple(sections),
            badges=(Badge("nothing found" if self else "findings", good=bool(self)),),
            statement=f"{self.statement[0].upper()}{self.statement[1:]}. One record was {tried}.",
        )


def probed(body: Callable[[str, int], object], what: str, *, rounds: int, time_limit: float | str | None) -> Probe:
    """Replay a training loop and compare. `body` gets the change of the replay and the size of the data, and runs the loop.

    `what` names the loop in errors. Raises `RunError` if the loop cannot be replayed, and `LimitError` at the time limit.
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise DomainError(f"rounds = {rounds} is outside its domain: from 1 to {MOST_ROUNDS}")
    seconds = seconds_of(time_limit)
    with Loop(body, rounds, float("inf") if seconds is None else time.monotonic() + seconds) as loop:
        base = loop.replay("none")
        _check_base(base, what)
        compared = _Compared(base, loop.replay("none"))
        changes = [*(["removed"] if base.removable else []), *CHANGED, *(["shortened"] if base.secret_size else [])]
        tried = [change for change in changes if compared.add(change, loop.replay(change, base))]
        found = compared.found()
        if any(one.kind == "sensitivity" for one in found):
            found = _told_apart(found, loop.replay("alone"), loop.replay("nobody"))
    return Probe(1, "probe", len(base.releases), tuple(tried), tuple(found), tuple(compared.notes), NOT_SHOWN)


def probed_step(
    body: Callable[[], object], step: Callable[..., object], *, rounds: int, time_limit: float | str | None
) -> Probe:
    """Probe `body`, which runs rounds of a function `step`."""

    def replayed_step(change: str, size: int) -> None:
        if change == "shortened":
            getattr(step, "__globals__", {})["len"] = shorter(size)
        body()

    return probed(replayed_step, "the step", rounds=rounds, time_limit=time_limit)


def probed_script(
    script: str, arguments: Sequence[str] = (), *, rounds: int = 10, time_limit: float | str | None = None
) -> Probe:
    """Probe a script, which is run with these arguments until so many rounds are done. Raises the errors of `probed`."""

    def run(change: str, size: int) -> None:
        sys.argv, sys.path[:0] = [script, *arguments], [str(Path(script).parent)]
        runpy.run_path(script, {"len": shorter(size)} if change == "shortened" else {}, "__main__")

    return probed(run, script, rounds=rounds, time_limit=time_limit)


def _check_base(base: Trace, what: str) -> None:
    """Raise `RunError` for a loop that does not run as it is."""
    if base.end == "error" or base.end_error:
        raise RunError(f"{base.end_line or what}: the loop cannot be probed, it ended with {base.end_error}")
    if not base.opened and not base.size:
        raise RunError(f"{base.end_line or what}: it opened no pyaccount.TrainingRun, so there is nothing to probe")
    if not base.releases:
        raise RunError(f"{base.end_line or what}: nothing was released, so there is nothing to probe")


#: A duration in seconds: what frameworks print of the clock differs between equal replays, but not always between two of them.
_DURATION = re.compile(r"\b\d+\.\d+ ?s\b")


def _lines(trace: Trace) -> dict[tuple[str, str], list[tuple[int, str]]]:
    """Return what was printed by each line of each stream, with the rounds, and with a mark for each duration in seconds."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for stream, line, round, text in trace.outputs:
        found.setdefault((stream, line), []).append((round, _DURATION.sub("…s", text)))
    return found


def _differing(base: Trace, other: Trace) -> Iterator[tuple[int, Variable]]:
    """Yield each variable that the loop changes and that differs, with the number of rounds after which it does first."""
    start, begun = base.states[0], other.states[0]
    known = set[Variable]()
    for done, (one, two) in enumerate(zip(base.states, other.states, strict=False)):
        for variable in one.keys() & two.keys() & start.keys() & begun.keys() - known:
            ours, theirs, first = one[variable], two[variable], start[variable]
            if ours.digest == theirs.digest or first.digest != begun[variable].digest:
                continue
            if first.numbers is not None and first.numbers.ndim and first.numbers.shape[0] == base.size:
                # The name of the data, which the loop uses for a batch.
                continue
            known.add(variable)
            yield done, variable


def _distance(one: ReplayedRound, two: ReplayedRound, release: int) -> float:
    """Return the ℓ₂ distance of two sums; infinity if they have other arrays."""
    a, b = one.sums[release], two.sums[release]
    if a.keys() != b.keys() or any(a[name].shape != b[name].shape for name in a):
        return float("inf")
    return float(np.sqrt(sum(np.sum((a[name].astype(np.float64) - b[name]) ** 2) for name in a)))


class _Compared:
    """The findings of replays that are compared with the first one."""

    def __init__(self, base: Trace, repeated: Trace) -> None:
        """Take the loop as it is, and once more: what differs between these two is no finding. Raises `RunError` for sums."""
        for number, (one, two) in enumerate(zip(base.releases, repeated.releases, strict=False)):
            if any(_distance(one, two, release) > SLACK * norm for release, norm in enumerate(one.norms)):
                raise RunError(
                    f"{one.line}: two replays of the same loop release other sums in round {number}: seed what it draws, so that "
                    "it can be compared"
                )
        if len(base.releases) != len(repeated.releases):
            raise RunError(
                f"{repeated.end_line}: two replays of the same loop have other numbers of rounds, so it cannot be probed"
            )
        ours, theirs = _lines(base), _lines(repeated)
        self._varying = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
        self._changing = {variable for _, variable in _differing(base, repeated)}
        self._base = base
        #: The rounds without the record, until variables differ; None if they cannot be compared.
        self._without: list[ReplayedRound] | None = None
        self.notes: list[str] = []
        if self._varying or self._changing:
            lines = sorted({line for _, line in self._varying} | {line_of(v) or v.file for v in self._changing})
            self.notes.append(f"Not compared, since it differs between equal replays: {', '.join(lines)}")
        self._found: dict[tuple[str, str, str], Finding] = {}
        if not base.fixed:
            for number, release in enumerate(base.releases):
                if release.times is None:
                    self._add("batch", release.line, number, "none", "it is released, and nobody asked for its batch")

    def found(self) -> list[Finding]:
        """Return the findings, by their rounds."""
        return sorted(self._found.values(), key=lambda one: (one.round, one.line, one.kind))

    def add(self, change: str, trace: Trace) -> bool:
        """Compare a replay; return whether something was changed in it."""
        base = self._base
        if change in FACTORS and not trace.changed:
            if change == "zeroed":
                self.notes.append(
                    f"Nothing was zeroed or scaled: no array, tensor or list with a row for each of {base.size:_} records was "
                    "found among the variables of the script"
                )
            return False
        diverged = len(base.releases) + 1
        if trace.normaliser != base.normaliser:
            message = f"normaliser = {base.normaliser:g} is {trace.normaliser:g}"
            self._add("step-size", base.opened, 0, change, message)
        for done, variable in _differing(base, trace):
            if variable in self._changing or base.states[done][variable].shown == GENERATOR:
                continue
            diverged = min(diverged, done)
            self._kept(trace, done, variable, change)
        self._printed(change, trace, diverged)
        rounds = min(len(base.releases), len(trace.releases))
        if (trace.end, trace.end_error, len(trace.releases)) != (base.end, base.end_error, len(base.releases)):
            how = trace.end_error or {"returned": "the loop ends", "closed": "the run is closed"}.get(
                trace.end, trace.end
            )
            at = trace.end_line or base.opened
            if rounds < len(base.releases) and trace.end != "error":
                at = way_out(at.rpartition(":")[0]) or base.releases[rounds].line
            message = (
                f"{how} after {len(trace.releases)} rounds, and it has {len(base.releases)} with the record as it was"
            )
            self._add("control-flow", at, rounds, change, message)
        for number, (one, two) in enumerate(zip(base.releases, trace.releases, strict=False)):
            if one.line != two.line:
                self._add("control-flow", two.line, number, change, f"it releases here, and otherwise in {one.line}")
        if change == "removed":
            self._remove(trace, min(rounds, diverged))
        elif change != "shortened":
            self._moved(change, trace, min(rounds, diverged))
        return True

    def _remove(self, trace: Trace, rounds: int) -> None:
        """Compare the sums without the record, and keep them for comparing more."""
        drawn = any(
            self._base.states[done][variable].shown == GENERATOR for done, variable in _differing(self._base, trace)
        )
        if drawn or any(a.random != b.random for a, b in zip(self._base.releases, trace.releases, strict=False)):
            self.notes.append(
                "Random numbers follow the number of records of a batch, so sums with and without the record are not compared; "
                "those with another record in its place are, and may be two clip norms apart"
            )
            return
        self._moved("removed", trace, rounds)
        self._without = trace.releases[:rounds]

    def _moved(self, change: str, trace: Trace, rounds: int) -> None:
        """Compare the sums of the rounds before variables differ: with those without the record, if there are any."""
        reference = self._base.releases if self._without is None else self._without
        each = 1.0 if change == "removed" or self._without is not None else 2.0
        for number, (one, two) in enumerate(zip(reference[:rounds], trace.releases, strict=False)):
            times = self._base.releases[number].times
            times = 1 if times is None else times
            for release, norm in enumerate(one.norms):
                distance = _distance(one, two, release)
                if not distance > each * times * norm * (1.0 + SLACK) + (0.0 if times else SLACK * norm):
                    continue
                if times == 0:
                    message = (
                        f"the sum moves by {distance / norm:.4g} clip norms in a round in whose batch the record is not"
                    )
                    self._add("state", one.line, number, change, message)
                    continue
                allowed = f"{each * times:g} clip norm{'' if each * times == 1 else 's'}"
                compared = "" if self._without is None else ", beside the sum without it"
                moves = f"moves by {distance / norm:.4g} clip norms" if np.isfinite(distance) else "is no longer finite"
                message = f"the sum {moves}{compared}, and the certificate allows {allowed}"
                self._add("sensitivity", one.line, number, change, message)

    def _kept(self, trace: Trace, done: int, variable: Variable, change: str) -> None:
        """Add the finding for a variable that differs though the releases are the same."""
        base = self._base
        line = line_of(variable) or base.releases[max(done - 1, 0)].line
        ours, theirs = base.states[done][variable], trace.states[done][variable]
        factor = _factor(base.states[done - 1].get(variable), ours, theirs) if done else None
        if factor is not None:
            message = f"the step of `{variable.name}` is {factor:.6g} times as long, with the same release"
            self._add("step-size", line, max(done - 1, 0), change, message, variable.name)
        elif variable.name.endswith("['lr']"):
            message = (
                f"the learning rate `{variable.name}` is {theirs.shown}, and {ours.shown} where the record is as it was"
            )
            self._add("step-size", line, max(done - 1, 0), change, message, variable.name)
        else:
            shown = (
                ""
                if ours.shown == theirs.shown
                else f": {theirs.shown}, and {ours.shown} where the record is as it was"
            )
            message = f"`{variable.name}` keeps something of records that was not released{shown}"
            self._add("state", line, max(done - 1, 0), change, message, variable.name)

    def _printed(self, change: str, trace: Trace, diverged: int) -> None:
        """Add findings for what is printed otherwise in the rounds before variables differ."""
        ours, theirs = _lines(self._base), _lines(trace)
        for key in sorted(ours.keys() | theirs.keys()):
            one, two = ours.get(key, []), theirs.get(key, [])
            if one == two or key in self._varying:
                continue
            place = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
            number = (one[place:] or two[place:])[0][0]
            if number >= diverged:
                continue
            texts = [f"{text[0][1].strip():.60}" if text else "nothing" for text in (two[place:], one[place:])]
            if texts[0] == texts[1]:
                texts = ["another text", "this one"]
            self._add(
                "output",
                key[1],
                number,
                change,
                f"{key[0]}: {texts[0]!r}, and {texts[1]!r} where the record is as it was",
            )

    def _add(  # noqa: PLR0913, PLR0917 - the fields of a finding
        self, kind: FindingKind, line: str, number: int, change: str, message: str, what: str = ""
    ) -> None:
        """Add a finding, unless an earlier replay has shown the same."""
        if (kind, line, what) not in self._found:
            when = "" if change == "none" else f"If a record {WHAT[change]}: "
            text = f"round {number}: {when[:1].lower()}{when[1:]}{message}"
            self._found[kind, line, what] = Finding(kind, line, number, change, text, ADVICE[kind])


def _factor(before: Seen | None, ours: Seen, theirs: Seen) -> float | None:
    """Return the factor between the steps of an array in two replays; None if they are not proportional."""
    if before is None or any(one.numbers is None or one.numbers.size < 2 for one in (before, ours, theirs)):
        return None
    assert before.numbers is not None
    assert ours.numbers is not None
    assert theirs.numbers is not None
    if not before.numbers.shape == ours.numbers.shape == theirs.numbers.shape:
        return None
    one, two = (ours.numbers - before.numbers).reshape(-1), (theirs.numbers - before.numbers).reshape(-1)
    length = float(one @ one)
    if not length > 0.0:
        return None
    factor = float(one @ two) / length
    near = float(np.linalg.norm(two - factor * one)) <= PROPORTIONAL * float(np.linalg.norm(two))
    return factor if near and factor != 0.0 else None


def _told_apart(found: list[Finding], alone: Trace, nobody: Trace) -> list[Finding]:
    """Call it mixing where the record alone in its batch moves the sum by no more than the clip norm."""
    changed = []
    for one in found:
        if one.kind == "sensitivity" and one.round < min(len(alone.releases), len(nobody.releases)):
            with_it, without_it = alone.releases[one.round], nobody.releases[one.round]
            times = with_it.times or 1
            if all(
                _distance(with_it, without_it, release) <= times * norm * (1.0 + SLACK)
                for release, norm in enumerate(with_it.norms)
            ):
                message = (
                    f"{one.message}. Alone in its batch it moves the sum by less, so other records contribute otherwise"
                )
                one = Finding("mixing", one.line, one.round, one.change, message, ADVICE["mixing"])  # noqa: PLW2901
        changed.append(one)
    return changed
