"""What a certificate states about the schedules of a phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.plan.schedule_values import scale_of, values_of
from pyaccount.records.certificate import ScheduleRecord

if TYPE_CHECKING:
    from pyaccount.errors import Path
    from pyaccount.plan.protection import RunCase

_Called = Literal["noise.multiplier", "training.sampling_probability", "training.expected_batch_size"]
_CALLED: dict[str, _Called] = {
    "multiplier": "noise.multiplier",
    "sampling_probability": "training.sampling_probability",
    "expected_batch_size": "training.expected_batch_size",
}


def called(path: Path) -> _Called:
    """Return the key that has a schedule, given its document path, as the certificate names it: inside of its phase."""
    return _CALLED[str(path[-1])]


def schedule_records(case: RunCase) -> list[ScheduleRecord] | None:
    """Return what is stated about each schedule of a phase whose blank is filled; None if it has none."""
    records = []
    for path, scheduled in case.node.schedules().items():
        found, scale = values_of(case, path), scale_of(scheduled)
        records.append(
            ScheduleRecord(
                of=called(path),
                least=scale * found.least,
                most=scale * found.most,
                distinct=found.distinct,
                scale=scale if isinstance(scheduled, ScheduledMultiplier) else None,
                sha256=found.sha256,
            )
        )
    return records or None
