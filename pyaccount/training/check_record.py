"""Checks whether a record is complete and belongs to the run of a given certificate."""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.errors import DomainError, RunError, quoted
from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection
from pyaccount.plan.schedule_values import at_round
from pyaccount.training.certified import Certified, certified
from pyaccount.training.drawing import FROM_KEY
from pyaccount.training.facts import ALSO, matrix_hash, noise_multipliers_of, schedules_of
from pyaccount.training.folder import SIZES
from pyaccount.training.record import STREAMS, Recorded, contains
from pyaccount.training.reporting import RecordVerdict, held
from pyaccount.training.sums import ALONE

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate

#: Recorded standard deviations are those that were used, which are rounded up: at most this much, relatively, above σ times the
#: clip norm.
ROUNDED_UP = 1e-12

_HASH = re.compile("[0-9a-fA-F]{64}")


def hold_record(
    path: str | os.PathLike[str], certificate: Certificate, *, expected_head: str | None = None
) -> RecordVerdict:
    """Return a verdict: whether a record is complete and about this certificate's run, and what it says about that run.

    A record whose end was cut off ends without a closing line, or with an earlier one. A record that somebody wrote anew cannot
    be distinguished from the original. `expected_head` is the hash of a line that was noted elsewhere, such as `TrainingRun.head`
    at the end of the run; a record that does not contain that line does not agree.

    Raises `OSError` if the file cannot be read, and `DomainError` if `expected_head` is not a hash.
    """
    name = os.fsdecode(path)
    if expected_head is not None and not _is_hash(expected_head):
        raise DomainError(
            f"expected_head = {quoted(expected_head)}: the 64 hexadecimal digits of a line's hash are expected"
        )
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    run = certified(certificate)
    texts = certificate.data.assumptions
    try:
        recorded = Recorded.read(path)
    except RunError as error:
        assumptions = tuple(held(text) for text in texts)
        return RecordVerdict(name, digest, False, 0, run.rounds, 0, None, (str(error),), assumptions)
    trainers = {*recorded.trainers.values()}
    trainer = trainers.pop() if len(trainers) == 1 else None
    assumptions = tuple(held(text, str(recorded.header.get("noise_source")), trainer) for text in texts)
    problems = _problems(recorded, run)
    if expected_head is not None and not contains(path, expected_head.lower()):
        problems.append(
            f"the record does not contain the line {expected_head}: the file lost its end, was put back to an earlier state, or "
            "is another record"
        )
    commitment = recorded.header.get("key_commitment")
    return RecordVerdict(
        file=name,
        sha256=digest,
        agrees=not problems,
        released=recorded.rounds,
        rounds=run.rounds,
        rewinds=recorded.rewinds,
        key_commitment=commitment if isinstance(commitment, str) else None,
        problems=tuple(problems),
        assumptions=assumptions,
        ending=recorded.ending,
        head=recorded.last,
        uncertified=recorded.header.get("certificate_sha256") is None or recorded.header.get("uncertified") is True,
    )


def _problems(recorded: Recorded, run: Certified) -> list[str]:
    """Return a message for everything in which the record contradicts itself or the certified run."""
    header = recorded.header
    expected = {
        "name": run.document.name,
        "document_sha256": run.document.sha256,
        "matrices": [matrix_hash(case) for case in Protection.of(run.document).runs()],
        "rounds": run.rounds,
        "records": [phase.training.dataset_size for phase in run.document.runs()],
        "noise_multipliers": noise_multipliers_of(run),
    }
    if (scheduled := schedules_of(run.document)) is not None:
        expected["schedules"] = scheduled
    # The hash of the certificate is not compared: the record also belongs to this run if the document was run without a
    # certificate, or if the same claim was certified several times.
    if header.get("certificate_sha256") is not None:
        expected |= {"statement": run.statement, "guarantee": run.guarantee}
    messages = [
        f"{name}: the record is that of another run: it has {header.get(name)!r}, and the certificate has {value!r}"
        for name, value in expected.items()
        if header.get(name) != value
    ]
    if messages:
        return messages
    if recorded.rounds > run.rounds:
        messages.append(f"{recorded.rounds} rounds were released, and only {run.rounds} are certified")
    for problems in (_header_problems, _layout_problems, _contradictions, _noise_problems):
        messages += problems(recorded, run)
    return messages


def _header_problems(recorded: Recorded, run: Certified) -> list[str]:
    """Return a message for every value that the first line of a record of this run cannot have."""
    header, messages = recorded.header, []
    if header.get("streams") != STREAMS:
        messages.append(f"streams: {quoted(header.get('streams'))}, but this version has {STREAMS}")
    if header.get("uncertified") is not (header.get("certificate_sha256") is None):
        messages.append(f"uncertified: {quoted(header.get('uncertified'))}, but certificate_sha256 says the opposite")
    if not _is_hash(header.get("key_commitment")):
        messages.append(
            f"key_commitment: the 64 hexadecimal digits of a hash are expected, not {quoted(header.get('key_commitment'))}"
        )
    world = header.get("world")
    if type(world) is not int or world < 1:
        messages.append(f"world: a number of ranks is expected, not {quoted(world)}")
    unstated = any(phase.training.dataset_size is None for phase in run.document.runs())
    if (SIZES in header) is not unstated or (unstated and not _is_hash(header[SIZES])):
        messages.append(
            f"{SIZES}: a record has a tag of the data's size exactly if the document does not state the size"
        )
    return messages


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _layout_problems(recorded: Recorded, run: Certified) -> list[str]:
    """Return messages about layouts and normalisers that are missing or contradict one another or the document."""
    messages = []
    phases = list(run.document.runs())
    for body, layout in recorded.layouts.items():
        if not 0 <= body < len(phases):
            messages.append(f"layout of body {body}: the document has only {len(phases)} bodies")
            continue
        releases = 1 + len(phases[body].noise.also)
        if len(layout) != releases:
            messages.append(f"layout of body {body}: it has {len(layout)} releases, but a batch has {releases}")
    for release in recorded.releases[: run.rounds]:
        after = recorded.layout_after.get(run.body_run(release.round).place)
        if after is None or after > release.round:
            messages.append(f"round {release.round}: no layout before it says what was summed")
            break
    normalisers = recorded.header.get("normalisers")
    if not isinstance(normalisers, list) or len(normalisers) != len(run.body_runs):
        messages.append(f"normalisers: {len(run.body_runs)} are expected, not {quoted(normalisers)}")
    else:
        for part in run.body_runs:
            stated = recorded.normalisers.get(part.place)
            if stated is not None and normalisers[part.index] != stated:
                messages.append(
                    f"normalisers: the first line has {normalisers[part.index]!r}, but the layout of body {part.place} has "
                    f"{stated!r}"
                )
    return messages


def _contradictions(recorded: Recorded, run: Certified) -> list[str]:
    """Return messages about lines that contradict one another.

    A forger who changes one line and recomputes the chain of hashes would have to change all the lines that are compared here.
    """
    header, messages = recorded.header, []
    from_key = header.get("noise_source") == FROM_KEY
    for release in recorded.releases:
        if from_key is not (release.noise is None):
            source = "has a tag of its noise" if from_key else "has no tag of its noise"
            messages.append(f"round {release.round} {source}, but noise_source is {quoted(header.get('noise_source'))}")
            break
    tags: list[tuple[str, list[bytes | str | None]]] = [
        ("tag of their sums", [release.sum for release in recorded.releases]),
        ("tag of their noise", [release.noise for release in recorded.releases if release.noise is not None]),
        ("nonce", [release.nonce for release in recorded.releases]),
    ]
    for what, values in tags:
        wrong = next((value for value in values if isinstance(value, str) and not _is_hash(value)), None)
        if wrong is not None:
            messages.append(f"{what}: the 64 hexadecimal digits of a hash are expected, not {quoted(wrong)}")
        if len(set(values)) < len(values):
            repeated = next(index for index, value in enumerate(values) if value in values[:index])
            messages.append(f"rounds {values.index(values[repeated])} and {repeated} have the same {what}")
    for rounds in recorded.rewound:
        given_up = [
            number for number in rounds if number < run.rounds and run.body_run(number).body.matrix.kind != "identity"
        ]
        if given_up:
            messages.append(
                f"round {given_up[0]} was given up, but a matrix correlates its noise with that of later rounds"
            )
            break
    return messages


def _noise_problems(recorded: Recorded, run: Certified) -> list[str]:
    """Return a message if the clip norms or the standard deviations of the noise are not those of the certified run."""
    norms = recorded.header.get("clip_norms")
    if not isinstance(norms, dict) or not all(type(norm) is float and 0.0 < norm < math.inf for norm in norms.values()):
        return ["clip_norms: a positive number is expected for each sum"]
    names = {ALONE, *(f"{ALSO}{one.what}" for phase in run.document.runs() for one in phase.noise.also)}
    if set(norms) != names:
        return [
            f"clip_norms: norms of {', '.join(sorted(names))} are expected, not of {', '.join(sorted(norms)) or 'none'}"
        ]
    for release in recorded.releases[: run.rounds]:
        part = run.body_run(release.round)
        noise = at_round(part.case, release.round - part.start).noise
        scales = [
            (number(noise.multiplier), norms[ALONE]),
            *((one.multiplier, norms[f"{ALSO}{one.what}"]) for one in noise.also),
        ]
        least = [sigma * norm for sigma, norm in scales]
        if len(least) != len(release.standard_deviations) or any(
            not low <= drawn <= low * (1.0 + ROUNDED_UP)
            for low, drawn in zip(least, release.standard_deviations, strict=True)
        ):
            return [
                f"round {release.round}: the noise has standard deviation {list(release.standard_deviations)}, but the "
                f"certificate has {least}"
            ]
    return []
