"""Finds the database of a ledger from its place: a file, or the address of a server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyaccount.ledger.sqlite import SqliteFile

if TYPE_CHECKING:
    from pyaccount.ledger.database import Database


def open_database(place: str | os.PathLike[str]) -> Database:
    """Return the database of a ledger: a file, or the address of a PostgreSQL server. Nothing is opened yet."""
    if isinstance(place, str) and place.split(":", 1)[0].split("+", 1)[0] in ("postgresql", "postgres"):
        from pyaccount.ledger.server import Server  # an extra

        return Server(place)
    return SqliteFile(place)
