"""What a certificate states about the schedules of a phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyaccount.certificate.model import ScheduleRecord
from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.plan.schedule_values import scale_of, values_of

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Path

_Called = Literal["noise.multiplier", "training.sampling_probability", "training.expected_batch_size"]
_CALLED: dict[str, _Called] = {
    "multiplier": "noise.multiplier",
    "sampling_probability": "training.sampling_probability",
    "expected_batch_size": "training.expected_batch_size",
}


def called(body: Body, path: Path) -> _Called:
    """Return the key that has a schedule, given its document path, as the certificate names it: inside of its phase."""
    return _CALLED[str(path[-1])]


def schedule_records(document: Document, body: Body) -> list[ScheduleRecord] | None:
    """Return what is stated about each schedule of a body whose blank is filled; None if it has none."""
    records = []
    for path, scheduled in body.schedules().items():
        found, scale = values_of(document, body, path), scale_of(scheduled)
        records.append(
            ScheduleRecord(
                of=called(body, path),
                least=scale * found.least,
                most=scale * found.most,
                distinct=found.distinct,
                scale=scale if isinstance(scheduled, ScheduledMultiplier) else None,
                sha256=found.sha256,
            )
        )
    return records or None
