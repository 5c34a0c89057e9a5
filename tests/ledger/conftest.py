"""Ledgers in a file and on a server: tests that ask for `place` run on both."""

from pathlib import Path

import pytest
from postgres import UnavailableError, new_database


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new ledger can be made."""
    if request.param == "file":
        return str(tmp_path / "budgets.db")
    try:
        return new_database()
    except UnavailableError as error:
        pytest.skip(str(error))
