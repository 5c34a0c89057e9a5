"""Random changes of the structure of JSON: keys are dropped, added, renamed or swapped, and values get another size or type."""

from __future__ import annotations

import copy
import difflib
import random
from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]
#: A container, the key of a value in it, and the last name on the way there.
Place = tuple[Any, Any, str]

#: By what a number is multiplied, and what takes its place.
FACTORS = (0, 0.1, 0.5, 0.9, 0.99, 1.01, 1.1, 2, 10, 100, 1e-6, -1, 1e-300, 1e300)
NUMBERS = (0, 1, -1, 2, 0.5, 1e-300, 1e300, 1e-12, 1e12, 10**30, 2**63, 0.1, 1e-9, 1 - 2**-53)
#: What takes the place of a value of another type.
OTHERS: tuple[Any, ...] = (
    None, True, False, "", "solve", "NaN", "1e-5", "none", "50_000", [], {}, [1], {"kind": "none"}, {"max": 0.001},
    {"schedule": [1]}, {"choose": [1, 2]}, {"strata": {"a": 0.001}},
)  # fmt: skip


def places(tree: Any, name: str = "") -> list[Place]:
    """Return every place in a tree."""
    found: list[Place] = []
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            here = key if isinstance(key, str) else name
            found += [(tree, key, here), *places(tree[key], here)]
    return found


class Changes:
    """Changes whose keys and values come from donors: other trees of the same language."""

    def __init__(self, donors: Iterable[Any], names: Iterable[str] = ()) -> None:
        """Take trees with values of keys, and further names of keys."""
        self._values: dict[str, list[Any]] = {}
        self._sections: list[Json] = []
        for donor in donors:
            for container, key, name in places(donor):
                known = self._values.setdefault(name, [])
                if container[key] not in known and len(known) < 60:
                    known.append(container[key])
                if isinstance(container[key], dict) and container[key] not in self._sections[-40:]:
                    self._sections.append(container[key])
        self._names = sorted({*self._values, *names})
        self._all: tuple[Callable[[Json, random.Random], str | None], ...] = (
            self._dropped, self._added, self._added, self._renamed, self._swapped, self._swapped, self._scaled,
            self._scaled, self._scaled, self._set, self._retyped, self._given, self._given, self._given, self._repeated,
            self._nested, self._merged,
        )  # fmt: skip

    def changed(self, tree: Json, rng: random.Random) -> tuple[Json, list[str]]:
        """Return a copy with one to three changes, and what they are."""
        tree, made = copy.deepcopy(tree), list[str]()
        for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])):
            for _ in range(20 if places(tree) else 0):
                what = rng.choice(self._all)(tree, rng)
                if what is not None:
                    made.append(what)
                    break
        return tree, made

    def _dropped(self, tree: Json, rng: random.Random) -> str | None:
        container, key, name = rng.choice(places(tree))
        del container[key]
        return f"dropped {name}"

    def _added(self, tree: Json, rng: random.Random) -> str | None:
        sections = [one for one in (tree, *(c[k] for c, k, _ in places(tree))) if isinstance(one, dict)]
        section, donor = rng.choice(sections), rng.choice(self._sections)
        if rng.random() < 0.5 and set(donor) - set(section):
            name = rng.choice(sorted(set(donor) - set(section)))
            value = donor[name]
        else:
            name = rng.choice(sorted(self._values))
            value = rng.choice(self._values[name])
        if name in section:
            return None
        section[name] = copy.deepcopy(value)
        return f"added {name}"

    def _renamed(self, tree: Json, rng: random.Random) -> str | None:
        container, key, _ = rng.choice(places(tree))
        if not isinstance(container, dict):
            return None
        near = difflib.get_close_matches(key, self._names, 5, 0.4)
        name = rng.choice(near) if rng.random() < 0.7 and near else rng.choice(self._names)
        if name in container:
            return None
        container[name] = container.pop(key)
        return f"renamed {key} to {name}"

    def _swapped(self, tree: Json, rng: random.Random) -> str | None:
        every = places(tree)
        (one, key, name), (other, other_key, other_name) = rng.choice(every), rng.choice(every)
        a, b = one[key], other[other_key]
        alike = isinstance(a, int | float) == isinstance(b, int | float) and not isinstance(a, dict | list)
        if a == b or not alike or isinstance(b, dict | list):
            return None
        one[key], other[other_key] = b, a
        return f"swapped {name} and {other_name}"

    def _scaled(self, tree: Json, rng: random.Random) -> str | None:
        numbers = [
            one
            for one in places(tree)
            if isinstance(one[0][one[1]], int | float) and not isinstance(one[0][one[1]], bool)
        ]
        if not numbers:
            return None
        container, key, name = rng.choice(numbers)
        factor = rng.choice(FACTORS) if rng.random() < 0.6 else round(rng.uniform(0.2, 3.0), 3)
        try:
            moved = container[key] * factor
        except OverflowError:
            return None
        whole = isinstance(container[key], int) and rng.random() < 0.8 and abs(moved) < 1e300
        container[key] = round(moved) if whole else moved
        if container[key] in (float("inf"), float("-inf")):
            container[key] = 1e300
        return f"scaled {name} by {factor}"

    def _set(self, tree: Json, rng: random.Random) -> str | None:
        container, key, name = rng.choice(places(tree))
        if isinstance(container[key], dict | list):
            return None
        container[key] = rng.choice(NUMBERS)
        return f"set {name}"

    def _retyped(self, tree: Json, rng: random.Random) -> str | None:
        container, key, name = rng.choice(places(tree))
        value = container[key]
        near = [
            str(value),
            [value],
            {"max": value},
            {"schedule": [value]},
            {"choose": [value]},
            {"schedule": {"start": value, "decay": 1.0}},
        ]
        container[key] = copy.deepcopy(rng.choice(near) if rng.random() < 0.5 else rng.choice(OTHERS))
        return f"another type of {name}"

    def _given(self, tree: Json, rng: random.Random) -> str | None:
        """Give a key a value that it has elsewhere: another kind, word, section or number."""
        container, key, name = rng.choice(places(tree))
        known = [one for one in self._values.get(name, ()) if one != container[key]]
        if not known:
            return None
        container[key] = copy.deepcopy(rng.choice(known))
        return f"{name} of another"

    def _repeated(self, tree: Json, rng: random.Random) -> str | None:
        lists = [
            container[key] for container, key, _ in places(tree) if isinstance(container[key], list) and container[key]
        ]
        if not lists:
            return None
        chosen = rng.choice(lists)
        at = rng.randrange(len(chosen))
        if rng.random() < 0.3 and len(chosen) > 1:
            del chosen[at]
            return "an entry dropped"
        chosen.insert(rng.randrange(len(chosen) + 1), copy.deepcopy(chosen[at]))
        return "an entry repeated"

    def _nested(self, tree: Json, rng: random.Random) -> str | None:
        """Put an entry of a list into a list of its own, or the entries of an inner list into the outer one."""
        holders = [
            (container[key], name) for container, key, name in places(tree)
            if isinstance(container[key], list) and any(isinstance(each, dict) for each in container[key])
        ]  # fmt: skip
        if not holders:
            return None
        entries, name = rng.choice(holders)
        at = rng.randrange(len(entries))
        inner = (
            next((v for v in entries[at].values() if isinstance(v, list)), None)
            if isinstance(entries[at], dict)
            else None
        )
        if inner is not None and rng.random() < 0.5:
            entries[at : at + 1] = inner
            return f"{name} of an entry beside it"
        wrapper = rng.choice(
            [{name: [entries[at]]}, {"phases": [entries[at]]}, {"parallel": [entries[at], copy.deepcopy(entries[at])]}]
        )
        extra = rng.choice([{}, {"count": 2}])
        entries[at] = {**wrapper, **extra}
        return f"an entry of {name} nested"

    def _merged(self, tree: Json, rng: random.Random) -> str | None:
        """Add the keys of a donor's section to a section with some of the same keys."""
        sections = [container[key] for container, key, _ in places(tree) if isinstance(container[key], dict)]
        if not sections:
            return None
        section = rng.choice(sections)
        alike = [one for one in self._sections if set(one) & set(section) and set(one) - set(section)]
        if not alike:
            return None
        donor = rng.choice(alike)
        section |= {key: copy.deepcopy(value) for key, value in donor.items() if key not in section}
        return "merged with another section"
