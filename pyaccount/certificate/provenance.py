"""What made a certificate, and when."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

from pyaccount import _core


def versions() -> dict[str, str]:
    """The versions of what computed the numbers."""
    return {"pyaccount": _installed(), "core": _core.__version__, "python": platform.python_version()}


@cache
def _installed() -> str:
    """This package's version; a file with all of its metadata is read for it."""
    return version("pyaccount")


def now() -> str:
    """The time, to the second, with its zone."""
    return datetime.now(UTC).isoformat(timespec="seconds")
