"""The content of the files that a document names: a name does not identify it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document.schedules import ScheduleFile
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.schedule_values import values_of

if TYPE_CHECKING:
    from pyaccount.errors import Path
    from pyaccount.plan.protection import RunCase


def contents_of(case: RunCase) -> dict[Path, str]:
    """Return the SHA-256 of what each file that a run names holds, by the file's document path.

    A matrix is hashed by its entries, row by row, and a schedule by its values, round by round; both as doubles. Raises
    `DocumentError` for files without a matrix or a schedule.
    """
    found: dict[Path, str] = {}
    if matrix_plan(case).from_file:
        found[case.node.at("matrix", "file")] = strategy(case).fingerprint or ""
    for path, scheduled in case.node.schedules().items():
        if isinstance(scheduled.schedule, ScheduleFile):
            found[*path, "schedule", "file"] = values_of(case, path).sha256
    return found
