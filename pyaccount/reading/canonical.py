"""The canonical form of the content of a document, and its hash.

This module suffices to check whether the hash in a certificate is that of its document.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha256_of(mapping: dict[str, Any]) -> str:
    """Return the SHA-256 of a document's content, given as `Written.to_mapping` or a certificate has it."""
    text = json.dumps(integral(mapping), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def integral(value: object) -> object:
    """Return the value with integral floats as integers, so that `2e3` and `2000` have the same hash."""
    if isinstance(value, dict):
        return {key: integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [integral(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
