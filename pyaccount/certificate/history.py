"""When optional fields were introduced: a certificate that lacks one may be older than the field.

Every other optional field has been written since the first certificate, so a certificate without it was changed. If you
add an optional field to the model, add a line here with the first version that writes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from pyaccount.certificate.consistency import created_at
from pyaccount.plan.drawing import DrawingRule


class Beginning(NamedTuple):
    """The first version that writes a field; `since`, if set, is the time when that version began to."""

    version: tuple[int, ...]
    since: datetime | None = None


def _on(day: int, hour: int, minute: int) -> Beginning:
    return Beginning((0, 1, 0), datetime(2026, 11, day, hour, minute, tzinfo=UTC))


#: The beginning of each field, by a pattern of its path.
_BEGINNINGS: tuple[tuple[re.Pattern[str], Beginning], ...] = (
    (re.compile(r"directions\.\w+\.curve"), _on(22, 10, 6)),
    (
        re.compile(r"phases\[\d+\]\.matrix\.(normalization|coefficients|inverse_coefficients|entries|size)"),
        _on(22, 10, 12),
    ),
    (re.compile(r"not_computed"), _on(22, 10, 54)),
    (re.compile(r"reductions\[\d+\]\.lower_end"), _on(23, 2, 58)),
    (re.compile(r"evidence\.sampling\.(profile_failure_probability|moment)"), _on(25, 17, 30)),
    (re.compile(r"evidence\.sampling\.tests\[\d+\]\.proposal\.order"), _on(25, 20, 0)),
    (re.compile(r"evidence\.sampling\.tests\[\d+\]\.proposal\.block"), _on(27, 0, 30)),
    (re.compile(r"evidence\.sampling\.tests\[\d+\]\.proposal\.most_busy"), _on(27, 10, 0)),
    (re.compile(r"evidence\.sampling\.tests\[\d+\]\.proposal\.log_sobolev"), _on(27, 0, 30)),
    (re.compile(r"evidence\.sampling\.moment\.polynomial"), _on(27, 0, 30)),
    (re.compile(r"evidence\.sampling\.moment\.most_busy"), _on(27, 10, 0)),
    (re.compile(r"evidence\.sampling\.tests\[\d+\]\.second_moment"), _on(27, 4, 5)),
    (re.compile(r"content_sha256"), _on(27, 22, 5)),
    (re.compile(r"phases\[\d+\]\.schedules"), _on(28, 4, 0)),
    (re.compile(r"phases\[\d+\]\.probabilities"), _on(28, 12, 0)),
    # Those of disjoint parts are as old as disjoint parts; those of strata are younger than strata.
    (re.compile(r"records"), _on(28, 13, 30)),
    (re.compile(r"composed_from"), _on(28, 16, 0)),
    (re.compile(r"evidence\.profile_work"), _on(29, 12, 0)),
)


def is_older(path: str, made_by: Mapping[str, str], created: str) -> bool:
    """Return whether a certificate, by the version and date it states, was made before the field at a path existed."""
    for pattern, beginning in _BEGINNINGS:
        if pattern.fullmatch(path):
            return _before(beginning, made_by, created)
    return False


def drawing_of(made_by: Mapping[str, str], created: str) -> DrawingRule:
    """Return the last drawing rule that was in use when a certificate was made, by the version and date it states."""
    latest = DrawingRule.BEFORE_POWERS
    for rule in DrawingRule:
        version, since = rule.value
        if not _before(Beginning(version, created_at(since or "")), made_by, created):
            latest = rule
    return latest


def _before(beginning: Beginning, made_by: Mapping[str, str], created: str) -> bool:
    """Return whether a certificate was made before a given beginning."""
    version, made = _version(made_by.get("pyaccount", "")), created_at(created)
    earlier = beginning.since is not None and made is not None and made < beginning.since
    # If the version is not stated, only the date can tell.
    return earlier if version is None or version == beginning.version else version < beginning.version


def _version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a version; None if the text does not begin with three of them."""
    match = re.match(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?!\d)", text)
    return None if match is None else tuple(map(int, match.groups()))
