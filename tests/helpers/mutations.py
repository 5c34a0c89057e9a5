"""Seeded, structured damage to JSON-like data and to its text, as by editors, merges, disks and attackers."""

import copy
import json
import random
from typing import Any

EXTREMES: list[Any] = [
    0, -1, 1, 2, 10**400, -(10**400), 2**63, 2**64, 2**64 - 1, 1e308, -1e308, 5e-324, 0.1, 1 - 2**-53, float("nan"), float("inf"),
    float("-inf"), True, False, None, "", " ", "solve", "1e-5", "50_000", "nan", "10 min", "\ud800", "\u0000", "a\nb",
    "\u202e\u0007", "💥" * 50, "ﬁ", "x" * 5000, [], {}, [[]], [None], {"": None}, {"kind": "none"}, {"choose": [1, 2]},
    "certificate", "policy", "replace-one", "user", "verified", "2026-02-11T00:00:00", "9999-12-31T23:59:59+14:00",
]  # fmt: skip
NAMES = [
    "",
    "é",
    "epsilon",
    "delta",
    "kind",
    "pyaccount",
    "phases",
    "document",
    "holds",
    "<<",
    "0",
    "max_epsilon",
    "solved",
]


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in the data: its container and its key."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            found += [(value, key), *spots(value[key])]
    return found


def damaged(data: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy with one to four places dropped, renamed, duplicated, swapped, nested or replaced."""
    data = copy.deepcopy(data)
    nested = False
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        places = spots(data)
        if not places:
            break
        container, key = rng.choice(places)
        action = rng.randrange(8)
        if action == 0:
            del container[key]
        elif action == 1 and isinstance(container, dict):
            container[rng.choice(NAMES)] = container.pop(key)
        elif action == 2 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        elif action == 3:
            other, other_key = rng.choice(places)
            container[key] = copy.deepcopy(other[other_key])
        elif action == 4 and type(container[key]) in (int, float) and abs(container[key]) < 1e300:
            container[key] *= rng.choice([-1, 0.5, 1.0000001, 2, 1e9, 1e-9])
        elif action == 5:
            # This is deeper than what is read, but not so deep that copying it would overflow.
            for _ in range(rng.choice([3, 70]) if nested else rng.choice([3, 70, 150])):
                container[key] = rng.choice([[container[key]], {"a": container[key]}])
            nested = True
        else:
            container[key] = copy.deepcopy(rng.choice(EXTREMES))
    return data


def text_of(data: Any) -> bytes:
    """Return the data as JSON text, also with numbers that JSON does not have, and with escaped halves of surrogate pairs."""
    return json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace")


def torn(text: bytes, rng: random.Random) -> bytes:
    """Return the text cut off, with flipped bytes, with a piece repeated or removed, or with a duplicate key."""
    at, other = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    action = rng.randrange(5)
    if action == 0:
        return text[:at]
    if action == 1:
        return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    if action == 2:
        return text[:at] + text[other:]
    if action == 3:
        return text[:other] + text[at:]
    return text.replace(b'"kind"', b'"name": "twice", "kind"', 1)
