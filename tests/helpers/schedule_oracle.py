"""What a certificate must say about schedules, derived from its document as plain data, without the package's models.

Schedules in files are not known here: of these only the order of their numbers is checked.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.consistency import Inconsistency, at, is_number

if TYPE_CHECKING:
    from pyaccount.records.certificate import CertificateModel, PhaseRecord

KEYS = (("noise", "multiplier"), ("training", "sampling_probability"), ("training", "expected_batch_size"))


def factor_of_phases(data: CertificateModel) -> float | None:
    """Return the factor of the noise of all phases, with what was solved for in place of the blank; 1 if there is none."""
    stated = at(data.document, "noise", "scale") if isinstance(data.document.get("phases"), list) else None
    if stated == "solve":
        return None if data.solved is None else float(data.solved.value)
    return float(stated) if is_number(stated) else 1.0


def listed(written: Any, rounds: int) -> list[float] | None:
    """Return the values that a schedule lists; None for one in a file, and for one that is no schedule."""
    schedule = at(written, "schedule")
    if isinstance(schedule, list):
        return [float(value) for value in schedule] if all(map(is_number, schedule)) else None
    start, decay = at(schedule, "start"), at(schedule, "decay")
    if not (is_number(start) and is_number(decay)):
        return None
    every, least, values, value = at(schedule, "every", default=1), at(schedule, "least", default=0.0), [], float(start)
    while len(values) < rounds:
        values += [max(value, least)] * every
        value *= decay
    return values[:rounds]


def schedule_inconsistencies(
    path: str, data: CertificateModel, phase: PhaseRecord, body: object
) -> Iterator[Inconsistency]:
    """Yield what is wrong with the schedules of a phase, and with the noise multiplier beside a schedule of noise."""
    stated = {str(one.of): one for one in phase.schedules or ()}
    written = {f"{section}.{key}": at(body, section, key) for section, key in KEYS}
    written = {name: value for name, value in written.items() if isinstance(value, dict)}
    if set(stated) != set(written):
        yield Inconsistency(f"{path}.schedules", f"of {sorted(stated)}, where the document has {sorted(written)}")
        return
    for name, value in written.items():
        scale = _scale(data, value) if name.startswith("noise") else None
        values = listed(value, phase.iterations)
        if stated[name].least > stated[name].most or stated[name].scale != scale:
            yield Inconsistency(f"{path}.schedules.scale", f"{stated[name]!r}, where the document says {scale!r}")
        elif values is not None:
            found = _described(values, 1.0 if scale is None else scale)
            record = stated[name]
            if (record.least, record.most, record.distinct, record.sha256) != found:
                yield Inconsistency(f"{path}.schedules", f"{record!r}, where the document makes {found!r}")
            expected = found[0] if found[0] == found[1] else None
            if name.startswith("noise") and phase.noise_multiplier != expected:
                yield Inconsistency(f"{path}.noise_multiplier", f"{phase.noise_multiplier!r}, and not {expected!r}")


def _scale(data: CertificateModel, written: Any) -> float | None:
    """Return the factor of a schedule of noise, with what was solved for in place of the blank."""
    own, factor = at(written, "scale", default=1.0), factor_of_phases(data)
    if own == "solve":
        own = None if data.solved is None else data.solved.value
    return None if own is None or factor is None else float(own) * factor


def _described(values: list[float], scale: float) -> tuple[float, float, int, str]:
    digest = hashlib.sha256(struct.pack(f"<{len(values)}d", *values)).hexdigest()
    return scale * min(values), scale * max(values), len(set(values)), digest
