"""opake's extension module, loaded by itself: its Python layer does not import under every interpreter."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from types import ModuleType


def native() -> ModuleType:
    """Load opake's extension module. Raises `ImportError` where opake-accounting is not installed."""
    files = importlib.metadata.files("opake-accounting") or []
    (path,) = (file.locate() for file in files if file.name.startswith("opake_accounting.") and file.suffix == ".so")
    spec = importlib.util.spec_from_file_location("opake_accounting", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
