"""What recomputing a certificate gave, as data and in text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pyaccount.certificate.inconsistency import Inconsistency
from pyaccount.errors import printable, shown
from pyaccount.gate.agreement import Difference, Mode
from pyaccount.gate.verdict import Attested

#: How many differences the text tells; the JSON form has all.
MOST_SHOWN = 40

_COMPARED: dict[Mode, str] = {
    "digits": "composed: ends of intervals may be looser by the engine's stated tolerance, and promise no more",
    "bits": "sampled with the recorded seed: every bit is compared",
    "bounds": "sampled, and retested with other samples; bounds are held against those",
}


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate agrees with what its document gives when recomputed, and every field that does not."""

    pyaccount: Literal[1]
    kind: Literal["verification"]
    file: str
    #: The hash of the file's bytes.
    sha256: str
    certificate_kind: str
    name: str
    agrees: bool
    #: Whether no field differs that the certificate states.
    identical: bool
    compared: Mode
    #: Of the samples it was held against, if they are not those recorded.
    seed: int | None
    #: How much looser, relatively, the ends of intervals may be.
    tolerance: float
    made_by: dict[str, str]
    recomputed_by: dict[str, str]
    #: What contradicts the rest of the certificate, before anything is recomputed.
    flaws: tuple[Inconsistency, ...]
    #: All fields that differ; `agrees` says which may.
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    #: Where the certificate stood in an attestation: whose, and about what. Its signature was checked first.
    attestation: Attested | None = None

    def __bool__(self) -> bool:
        """Whether the certificate agrees: `if not pyaccount.verify(…)` must not let through what does not."""
        return self.agrees

    def to_json(self) -> str:
        """The verification as JSON text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_text(self, *, only_wrong: bool = False) -> str:
        """The verification for people; with `only_wrong` the differences that may be are left out."""
        word = "agrees" if self.agrees else "DOES NOT AGREE"
        same = "; no number differs" if self.identical else ""
        lines = [f"{self.file}: {word}{same}", f"  {_COMPARED[self.compared]}"]
        if self.attestation is not None:
            keys = ", ".join(one.key for one in self.attestation.signed_by)
            files = ", ".join(one.name or one.sha256 for one in self.attestation.subjects)
            lines.append(f"  signed by {shown(keys)}, about {shown(files)}")
        lines += [f"  {note}" for note in self.notes]
        lines += [
            f"  {inconsistency.path}: contradicts the certificate: {inconsistency.message}"
            for inconsistency in self.flaws
        ]
        # What does not agree comes first.
        told = [one for one in self.differences if not (only_wrong and one.agrees)]
        ordered = sorted(told, key=lambda one: one.agrees)
        lines += [f"  {_line(one)}" for one in ordered[:MOST_SHOWN]]
        if len(ordered) > MOST_SHOWN:
            lines.append(f"  and {len(ordered) - MOST_SHOWN} more differences, all of which its JSON has")
        return "".join(f"{printable(line)}\n" for line in lines)


def _line(one: Difference) -> str:
    verdict = "agrees" if one.agrees else "DIFFERS"
    return f"{one.path}: {verdict}: {_said(one.certificate)}, recomputed {_said(one.recomputed)} ({one.reason})"


def _said(value: Any) -> str:
    return "nothing" if value is None else shown(value)
