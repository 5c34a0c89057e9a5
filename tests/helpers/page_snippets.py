"""The Python of the pages, and the frameworks that it needs, which the environment of most tests does not have."""

import importlib.util
import re
from pathlib import Path

import pytest


def python_snippets(page: Path) -> list[str]:
    """Return the blocks of Python of a page."""
    text = page.read_text(encoding="utf-8")
    found: list[str] = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return found


def frameworks(snippet: str) -> list[str]:
    """Return the frameworks that a snippet imports."""
    return sorted(set(re.findall(r"^(?:from|import) (torch|opacus|flwr)\b", snippet, flags=re.MULTILINE)))


def needs(*modules: str) -> pytest.MarkDecorator:
    """Return the mark of a test that is skipped without these modules."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"not installed: {', '.join(missing)}: what is done with it is NOT tested"
    )
