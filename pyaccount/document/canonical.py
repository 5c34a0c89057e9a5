"""The canonical form of what a document says, and its hash.

Nothing else is needed to see whether a certificate has the hash of its document.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha256_of(mapping: dict[str, Any]) -> str:
    """The hash of what a document says, given as `Written.to_mapping` gives it: also of the one inside a certificate."""
    text = json.dumps(integral(mapping), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def integral(value: object) -> object:
    """The value with integral floats as integers, so that `2e3` and `2000` are one number."""
    if isinstance(value, dict):
        return {key: integral(item) for key, item in value.items()}
    if isinstance(value, list):
        return [integral(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
