"""A record held against a certificate: whether it is whole, and about just this one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.errors import RunError, printable
from pyaccount.training.assumptions import Assumption, held
from pyaccount.training.certified import Certified, certified
from pyaccount.training.facts import matrix_hash
from pyaccount.training.record import Recorded

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate

#: Standard deviations are recorded as they were drawn, rounded up: by no more than this, relatively, above σ times the clip norm.
ROUNDED_UP = 1e-12


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """What a record says of the run of a certificate."""

    file: str
    #: The hash of the file's bytes.
    sha256: str
    #: Whether the record is one of this certificate's run, as far as that went.
    agrees: bool
    released: int
    rounds: int
    #: How often an earlier checkpoint was taken up and rounds given up; these are among the released ones.
    rewinds: int
    key_commitment: str | None
    #: What is not as it should be.
    problems: tuple[str, ...]
    assumptions: tuple[Assumption, ...]

    def __bool__(self) -> bool:
        """Whether the record agrees."""
        return self.agrees

    def to_mapping(self) -> dict[str, Any]:
        """The verdict as data."""
        return asdict(self)

    def to_text(self) -> str:
        """The verdict for people."""
        lines = [f"{self.file}: {'agrees' if self.agrees else 'DOES NOT AGREE'}"]
        if self.agrees:
            whole = "the whole run" if self.released == self.rounds else "the run so far"
            lines.append(
                f"  {self.released} of {self.rounds} rounds were released: {whole}, one after the other, each with its noise"
            )
        if self.rewinds:
            times = "once" if self.rewinds == 1 else f"{self.rewinds} times"
            lines.append(f"  an earlier checkpoint was taken up {times}; the rounds given up are counted")
        lines += [f"  {problem}" for problem in self.problems]
        if self.agrees:
            lines.append("  assumptions:")
            lines += [f"    {one.held}: {one.text} [{one.how}]" for one in self.assumptions]
        return "".join(f"{printable(line)}\n" for line in lines)


def hold_record(path: str | os.PathLike[str], certificate: Certificate) -> RecordVerdict:
    """Whether a record is whole and about this certificate's run. Raises `OSError` for a file that cannot be read.

    It tells a record that was cut at its end from a shorter run by nothing but the rounds that are missing, and one that somebody
    wrote anew not at all: keep the hash of the last line, or sign the file.
    """
    name = os.fsdecode(path)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    run = certified(certificate)
    texts = certificate.data.assumptions
    try:
        recorded = Recorded.read(path)
    except RunError as error:
        assumptions = tuple(held(text) for text in texts)
        return RecordVerdict(name, digest, False, 0, run.rounds, 0, None, (str(error),), assumptions)
    assumptions = tuple(held(text, str(recorded.header.get("noise_source"))) for text in texts)
    problems = tuple(_problems(recorded, run))
    commitment = recorded.header.get("key_commitment")
    return RecordVerdict(
        file=name,
        sha256=digest,
        agrees=not problems,
        released=recorded.rounds,
        rounds=run.rounds,
        rewinds=recorded.rewinds,
        key_commitment=commitment if isinstance(commitment, str) else None,
        problems=problems,
        assumptions=assumptions,
    )


def _problems(recorded: Recorded, run: Certified) -> list[str]:
    header = recorded.header
    expected = {
        "certificate_sha256": run.certificate_sha256,
        "document_sha256": run.document.sha256,
        "matrices": [matrix_hash(run.document, body) for body in run.document.bodies],
        "rounds": run.rounds,
        "records": [body.training.dataset_size for body in run.document.bodies],
    }
    found = [
        f"{name}: the record is of another run: {header.get(name)!r}, and the certificate's is {value!r}"
        for name, value in expected.items()
        if header.get(name) != value
    ]
    if found:
        return found
    if recorded.rounds > run.rounds:
        found.append(f"{recorded.rounds} rounds were released, and {run.rounds} are certified")
    norms = header.get("clip_norms")
    if not isinstance(norms, dict) or not all(type(norm) is float and norm > 0.0 for norm in norms.values()):
        return [*found, "clip_norms: no norms are recorded"]
    for release in recorded.releases[: run.rounds]:
        noise = run.body_run(release.round).body.noise
        try:
            scales = [
                (noise.multiplier, norms["sum"]),
                *((one.multiplier, norms[f"also: {one.what}"]) for one in noise.also),
            ]
        except KeyError as error:
            return [*found, f"clip_norms: none is recorded of {error}"]
        least = [sigma * norm for sigma, norm in scales]
        if len(least) != len(release.standard_deviations) or any(
            not low <= drawn <= low * (1.0 + ROUNDED_UP)
            for low, drawn in zip(least, release.standard_deviations, strict=True)
        ):
            found.append(
                f"round {release.round}: noise of standard deviation {list(release.standard_deviations)}, where the certificate "
                f"has {least}"
            )
            break
    return found
