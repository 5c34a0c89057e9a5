"""A record held against a certificate: whether it is whole, and about just this one."""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pyaccount.errors import DomainError, RunError, shown
from pyaccount.plan.common import number
from pyaccount.training.assumptions import held
from pyaccount.training.certified import Certified, certified
from pyaccount.training.facts import ALSO, matrix_hash
from pyaccount.training.folder import SIZES
from pyaccount.training.record import STREAMS, Recorded, contains
from pyaccount.training.reporting import RecordVerdict
from pyaccount.training.source import FROM_KEY
from pyaccount.training.sums import ALONE

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate

#: Standard deviations are recorded as they were drawn, rounded up: by no more than this, relatively, above σ times the clip norm.
ROUNDED_UP = 1e-12

_HASH = re.compile("[0-9a-fA-F]{64}")


def hold_record(
    path: str | os.PathLike[str], certificate: Certificate, *, expected_head: str | None = None
) -> RecordVerdict:
    """Return whether a record is whole and about this certificate's run. Raises `OSError` for a file that cannot be read.

    A record that was cut at its end ends without a closing line, or at an earlier one; one that somebody wrote anew is not told
    from the first one at all. `expected_head` is the hash of a line that was noted elsewhere, such as `TrainingRun.head` at the
    end of the run: a record that does not contain that line does not agree. Raises `DomainError` if it is not a hash.
    """
    name = os.fsdecode(path)
    if expected_head is not None and not _is_hash(expected_head):
        raise DomainError(
            f"expected_head = {shown(expected_head)}: the 64 hexadecimal digits of a line's hash are expected"
        )
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    run = certified(certificate)
    texts = certificate.data.assumptions
    try:
        recorded = Recorded.read(path)
    except RunError as error:
        assumptions = tuple(held(text) for text in texts)
        return RecordVerdict(name, digest, False, 0, run.rounds, 0, None, (str(error),), assumptions)
    assumptions = tuple(held(text, str(recorded.header.get("noise_source"))) for text in texts)
    problems = _problems(recorded, run)
    if expected_head is not None and not contains(path, expected_head.lower()):
        problems.append(
            f"the line {expected_head} is not in the record: the file lost its end, was put back to an earlier state, or is "
            "another one"
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
        version=recorded.version,
    )


def _problems(recorded: Recorded, run: Certified) -> list[str]:
    header = recorded.header
    expected = {
        "name": run.document.name,
        "document_sha256": run.document.sha256,
        "matrices": [matrix_hash(run.document, body) for body in run.document.bodies],
        "rounds": run.rounds,
        "records": [body.training.dataset_size for body in run.document.bodies],
        "noise_multipliers": [number(part.body.noise.multiplier) for part in run.body_runs],
    }
    # A document may have been run without a certificate: then the record is of its run all the same. So it is where the same
    # claim was certified more than once, at different times.
    if header.get("certificate_sha256") is not None:
        expected |= {"statement": run.statement, "guarantee": run.guarantee}
    found = [
        f"{name}: the record is of another run: {header.get(name)!r}, and the certificate's is {value!r}"
        for name, value in expected.items()
        if header.get(name) != value
    ]
    if found:
        return found
    if recorded.rounds > run.rounds:
        found.append(f"{recorded.rounds} rounds were released, and {run.rounds} are certified")
    for problems in (_header_problems, _layout_problems, _contradictions, _noise_problems):
        found += problems(recorded, run)
    return found


def _header_problems(recorded: Recorded, run: Certified) -> list[str]:
    """What a first line cannot have."""
    header, found = recorded.header, []
    if header.get("streams") != STREAMS[recorded.version]:
        found.append(
            f"streams: {shown(header.get('streams'))}, where version {recorded.version} has {STREAMS[recorded.version]}"
        )
    if recorded.version > 1 and header.get("uncertified") is not (header.get("certificate_sha256") is None):
        found.append(f"uncertified: {shown(header.get('uncertified'))}, and certificate_sha256 says otherwise")
    if not _is_hash(header.get("key_commitment")):
        found.append(
            f"key_commitment: {shown(header.get('key_commitment'))}, where the 64 hexadecimal digits of a hash are expected"
        )
    world = header.get("world")
    if type(world) is not int or world < 1:
        found.append(f"world: {shown(world)}, where a number of ranks is expected")
    unstated = any(body.training.dataset_size is None for body in run.document.bodies)
    if (SIZES in header) is not unstated or (unstated and not _is_hash(header[SIZES])):
        found.append(
            f"{SIZES}: a tag of the data's size is there if the document does not state the size, and only then"
        )
    return found


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _layout_problems(recorded: Recorded, run: Certified) -> list[str]:
    """Where what was summed, and what it was divided by, is not said or said twice."""
    found = []
    for body, layout in recorded.layouts.items():
        if not 0 <= body < len(run.document.bodies):
            found.append(f"layout of body {body}: the document has {len(run.document.bodies)}")
            continue
        releases = 1 + len(run.document.bodies[body].noise.also)
        if recorded.version > 1 and len(layout) != releases:
            found.append(f"layout of body {body}: {len(layout)} releases, where a batch has {releases}")
    for release in recorded.releases[: run.rounds]:
        after = recorded.layout_after.get(run.body_run(release.round).place)
        if after is None or after > release.round:
            found.append(f"round {release.round}: no layout before it says what was summed")
            break
    normalisers = recorded.header.get("normalisers")
    if not isinstance(normalisers, list) or len(normalisers) != len(run.body_runs):
        found.append(f"normalisers: {shown(normalisers)}, where {len(run.body_runs)} are expected")
    else:
        for part in run.body_runs:
            stated = recorded.normalisers.get(part.place)
            if stated is not None and normalisers[part.index] != stated:
                found.append(
                    f"normalisers: {normalisers[part.index]!r} in the first line, and {stated!r} where the sums of body "
                    f"{part.place} begin"
                )
    return found


def _contradictions(recorded: Recorded, run: Certified) -> list[str]:
    """Where lines contradict one another: whoever changes one of them and makes the chain anew has to change all."""
    header, found = recorded.header, []
    from_key = header.get("noise_source") == FROM_KEY
    for release in recorded.releases:
        if from_key is not (release.noise is None):
            source = "has a tag of its noise" if from_key else "has no tag of its noise"
            found.append(f"round {release.round} {source}, and noise_source is {shown(header.get('noise_source'))}")
            break
    tags: list[tuple[str, list[bytes | str | None]]] = [
        ("tag of their sums", [release.sum for release in recorded.releases]),
        ("tag of their noise", [release.noise for release in recorded.releases if release.noise is not None]),
        ("nonce", [release.nonce for release in recorded.releases if recorded.version > 1]),
    ]
    for what, values in tags:
        wrong = next((value for value in values if isinstance(value, str) and not _is_hash(value)), None)
        if wrong is not None:
            found.append(f"{what}: {shown(wrong)}, where the 64 hexadecimal digits of a hash are expected")
        if len(set(values)) < len(values):
            first = next(place for place, value in enumerate(values) if value in values[:place])
            found.append(f"rounds {values.index(values[first])} and {first} have one {what}")
    for rounds in recorded.rewound:
        given_up = [
            number for number in rounds if number < run.rounds and run.body_run(number).body.matrix.kind != "identity"
        ]
        if given_up:
            found.append(
                f"round {given_up[0]} was given up, and a matrix correlates its noise with that of later rounds"
            )
            break
    return found


def _noise_problems(recorded: Recorded, run: Certified) -> list[str]:
    """Where a record's noise is not the certificate's."""
    norms = recorded.header.get("clip_norms")
    if not isinstance(norms, dict) or not all(type(norm) is float and 0.0 < norm < math.inf for norm in norms.values()):
        return ["clip_norms: no norms are recorded"]
    names = {ALONE, *(f"{ALSO}{one.what}" for body in run.document.bodies for one in body.noise.also)}
    if set(norms) != names:
        return [f"clip_norms: {', '.join(sorted(norms)) or 'none'}, where the sums are {', '.join(sorted(names))}"]
    for release in recorded.releases[: run.rounds]:
        noise = run.body_run(release.round).body.noise
        scales = [
            (noise.multiplier, norms[ALONE]),
            *((one.multiplier, norms[f"{ALSO}{one.what}"]) for one in noise.also),
        ]
        least = [sigma * norm for sigma, norm in scales]
        if len(least) != len(release.standard_deviations) or any(
            not low <= drawn <= low * (1.0 + ROUNDED_UP)
            for low, drawn in zip(least, release.standard_deviations, strict=True)
        ):
            return [
                f"round {release.round}: noise of standard deviation {list(release.standard_deviations)}, where the certificate "
                f"has {least}"
            ]
    return []
