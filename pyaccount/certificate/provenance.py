"""The versions that computed a certificate, and the time."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from pyaccount import _core
from pyaccount.errors import DISTRIBUTION


def versions() -> dict[str, str]:
    """Return the versions of pyaccount, its core and Python."""
    return {"pyaccount": _installed(), "core": _core.__version__, "python": platform.python_version()}


@cache
def _installed() -> str:
    """Return the version of this package, which is read from the file with its metadata."""
    return version(DISTRIBUTION)


def now() -> str:
    """Return the current time in UTC, to the second, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
