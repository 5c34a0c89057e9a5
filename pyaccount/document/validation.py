"""Turns a tree into typed sections, and reports every problem of every section.

If pydantic finds errors, the wrong values are replaced by `REPORTED`, which every field accepts, and the tree is
validated again. So the rules that check several fields always receive a complete document, and ignore the values that
were reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from pyaccount.document.shape import (
    field_at,
    keys_at,
    leaves,
    member_at,
    reader_of,
    section_of,
    shapes_at,
    union_of,
    value_at,
)
from pyaccount.document.shuffling import means_shuffling, shuffled_as_yaml
from pyaccount.errors import Path, Problem, path_text, shortened
from pyaccount.reading import numerals
from pyaccount.reading.fields import listed
from pyaccount.reading.kinds import AlsoCalled, Section
from pyaccount.reading.nodes import REPORTED, Table, TreeNode, find, located, plain_value
from pyaccount.reading.spelling import (
    ABSOLUTE_NOISES,
    BATCHES,
    MICRO_BATCHES,
    OF_ONE_RANK,
    OF_ONE_SECTION,
    RANKS,
    advice_on,
    alias_of,
    as_key,
    misspelt,
    nearest,
    whole_batch,
)
from pyaccount.reading.typography import odd_characters_note

#: What to do about parts at the top level of a document, and inside of another phase.
AT_THE_TOP = "disjoint parts are a phase: write `phases: [{parallel: [ … ]}]`"

INSIDE = (
    "disjoint parts are implemented for the phases of a document, not inside of another phase: write every part as an entry of "
    "one list `parallel` in an entry of the document's phases"
)


_Error = tuple[Path, str, dict[str, Any]]

# In documents without mechanisms, a key whose similarity to a valid key is above this may mean it.
_LIKE = 0.6

# Guessing takes time, and a text with more unknown keys than this is not a document with a few misspellings.
_MOST_GUESSES = 1000


_Shape = TypeVar("_Shape", bound=Section)


def validate(root: Table, shape: type[_Shape]) -> tuple[_Shape, list[Problem]]:
    """Return the typed document of this shape and its problems."""
    raw = cast(dict[str, Any], plain_value(root))
    problems: list[Problem] = []
    first = True
    while True:
        try:
            return shape.model_validate(raw), problems
        except ValidationError as invalid:
            errors = [
                (error["loc"], error["type"], error.get("ctx", {}))
                for error in invalid.errors(include_url=False, include_input=False)
            ]
        if first:
            review = _Review(root, raw, shape)
            problems = review.problems(errors)
            review.excuse()
            first = False
        # The loop terminates: every pass removes a key, or replaces a value by one that is accepted.
        for path, kind, _ in errors:
            _mend(shape, raw, path, kind)


class _Review:
    """Turns the errors of pydantic into problems, without those that merely follow from another one."""

    def __init__(self, root: Table, raw: dict[str, Any], shape: type[Section]) -> None:
        self.root = root
        self.raw = raw
        self.shape = shape
        #: The fields that unknown keys probably meant, and the sections that contain them. No rule reports them as
        #: missing.
        self.meant: set[Path] = set()
        self.guesses = 0

    def problems(self, errors: Iterable[_Error]) -> list[Problem]:
        absent = []
        problems = []
        for path, kind, context in errors:
            if kind == "missing":
                absent.append(path)
            elif kind == "extra_forbidden":
                if not self.is_beside_phases(path):
                    problems.append(self.unknown_key(path))
                elif ("noise", "scale") not in self.meant:
                    # One problem stands for all keys of a section that is in the wrong place.
                    problems.append(self.noise_beside_phases())
            elif value_at(self.raw, path) is not REPORTED:
                problems.append(self.wrong_value(path, kind, context))
        return problems + self.missing_keys(absent)

    def wrong_value(self, path: Path, kind: str, context: dict[str, Any]) -> Problem:
        if kind != "model_type":
            allowed, suggestion = context["allowed"], context["suggestion"]
            if path[-1] == "expected_batch_size" and suggestion is not None:
                suggestion = self.batch(path, suggestion)
            message = context["message"]
            if path[-2:] == ("sampler", "kind") and self.shape.body_keys and means_shuffling(value_at(self.raw, path)):
                message += shuffled_as_yaml(value_at(self.raw, (*path[:-2], "training")))
            message += _written(value_at(self.raw, path), keyed=message.startswith("must be a mapping"))
            problem = Problem(kind, message, path, allowed=allowed, suggestion=suggestion)
            return located(self.root, problem)
        keys = ", ".join(keys_at(self.shape, path, self.raw))
        empty = value_at(self.raw, path) is None
        message = "has no value; give a mapping" if empty else "must be a mapping"
        message += _written(value_at(self.raw, path), keyed=True)
        return located(self.root, Problem("wrong-type", message, path, allowed=f"a mapping with the keys {keys}"))

    def batch(self, path: Path, suggestion: str) -> str:
        """Return what to write for a batch size that was given as a share: 1 % of the data set is not 0.01 records."""
        share = numerals.parse_number(suggestion)
        if share is None or share >= 1.0:
            return suggestion
        records = value_at(self.raw, (*path[:-1], "dataset_size"))
        records = numerals.parse_number(records) if isinstance(records, str) else records
        if isinstance(records, int | float) and not isinstance(records, bool) and 1.0 <= share * records < 1e15:
            return numerals.spelled_number(share * records)
        from pyaccount.document.models import SingleDocument  # for documents about mechanisms only

        sampler = member_at(SingleDocument, ("sampler",), {"sampler": value_at(self.raw, (*path[:-2], "sampler"))})
        return f"{getattr(sampler, 'share_field', 'sampling_probability')}: {suggestion}"

    def unknown_key(self, path: Path) -> Problem:
        *above, key = path
        parent = tuple(above)
        if not parent and key in self.shape.body_keys and "phases" in self.shape.model_fields:
            message = "a document with phases cannot have this key at the top level: move it into a phase"
            return located(self.root, Problem("contradiction", message, path), key=True)
        if self.shape.body_keys and key == "parallel" and (not parent or isinstance(parent[-1], int)):
            expected = ("phases",) if not parent else ("training", "sampler", "noise", "mechanism")
            self.meant.update((*parent, name) for name in expected)
            return located(self.root, Problem("contradiction", INSIDE if parent else AT_THE_TOP, path), key=True)
        fields = keys_at(self.shape, parent, self.raw)
        if self.shape.body_keys and (replaced := _in_its_place(str(key), fields)) is not None:
            return located(self.root, Problem("contradiction", replaced, path), key=True)
        if self.shape.body_keys and not parent:
            fields += [name for name in ("mechanism", "phases") if name not in fields]
        shapes = shapes_at(self.shape, parent, self.raw)
        fields += [name for name in (shapes.by_key if shapes else ()) if name not in fields]
        self.guesses += 1
        mechanism = bool(self.shape.body_keys)
        if mechanism and (advice := self.advice(str(key), parent)) is not None:
            message = f"{path_text(parent) or 'a document'} has no such key; {advice}"
            if as_key(str(key)) in RANKS | MICRO_BATCHES:
                message += f"; {whole_batch(self.stated(parent))[0]}"
            return located(self.root, Problem("unknown-key", message, path), key=True)
        target = _meant_field(str(key), parent, fields, mechanism) if self.guesses <= _MOST_GUESSES else None
        if target is None and not mechanism and not parent:
            # It may be a key of a section that is written on top.
            target = next(((name, key) for name in fields if key in keys_at(self.shape, (name,), self.raw)), None)
        # If the key belongs to another kind of this section, there is no better path to suggest.
        if target is None or target == path:
            suggestion = None
        else:
            self.meant.update(target[:length] for length in range(1, len(target) + 1))
            if shapes is not None and target[:-1] == parent and target[-1] in shapes.by_key:
                # What the usual shape has is not missing.
                self.meant.update((*parent, name) for name in shapes.usual.model_fields)
            suggestion = str(target[-1]) if target[:-1] == parent else path_text(target)
        place = path_text(parent) or "a document"
        allowed = ", ".join(fields)
        message = f"{place} has no such key; its keys are {allowed}{odd_characters_note(str(key))}"
        if target is not None and suggestion is not None:
            about, suggestion = self.converted(as_key(str(key)), parent, target, suggestion)
            message += about
        problem = Problem("unknown-key", message, path, allowed=allowed, suggestion=suggestion)
        return located(self.root, problem, key=True)

    def converted(self, key: str, parent: Path, target: Path, suggestion: str) -> tuple[str, str | None]:
        """Return what a message adds about a key whose number is not that of the field it stands for, and what to write.

        Nothing is suggested if the number of the field does not follow from what the document states.
        """
        if target[-2:] == ("training", "expected_batch_size") and key in BATCHES:
            about, whole = whole_batch(self.stated(parent))
            if whole is not None:
                suggestion = f"{suggestion}: {whole}"
            return f"; {about}", None if whole is None and key in OF_ONE_RANK else suggestion
        if target[-2:] == ("noise", "multiplier") and key in ABSOLUTE_NOISES:
            about = "multiplier is in units of the clip norm, so a scale or a standard deviation is divided by that"
            return f"; {about}", f"{suggestion}: {key}/clip_norm"
        return "", suggestion

    def is_beside_phases(self, path: Path) -> bool:
        """Return whether an unknown key is one of the noise of a body that is written beside phases."""
        return path[:-1] == ("noise",) and "phases" in self.shape.model_fields and bool(self.shape.body_keys)

    def noise_beside_phases(self) -> Problem:
        """Return the problem of the noise of a body that is written beside phases."""
        self.meant.add(("noise", "scale"))
        message = (
            "a document with phases has only a factor of the noise of all phases here, `noise: {scale: …}`: move the other keys "
            "into the phases"
        )
        return located(self.root, Problem("contradiction", message, ("noise",)), key=True)

    def stated(self, parent: Path) -> dict[str, object]:
        """Return the values of all sections of the body around a key, with keys in lower case and with underscores."""
        body = value_at(self.raw, _body_around(parent))
        body = body if isinstance(body, dict) else {}
        sections = [section for section in body.values() if isinstance(section, dict)]
        return {as_key(str(key)): value for section in (body, *sections) for key, value in section.items()}

    def advice(self, key: str, parent: Path) -> str | None:
        """Return what to do about a key that does not stand for another one, or `None`."""
        if not parent and key == "kind":
            return "leave it out: a document about a mechanism has no kind; other documents do (amplification, policy)"
        return advice_on(key)

    def missing_keys(self, absent: list[Path]) -> list[Problem]:
        problems = []
        keys = self.shape.body_keys
        if keys and not any(key in self.raw for key in (*keys, "phases")):
            body = [path for path in absent if path[0] in keys]
            absent = [path for path in absent if path not in body]
            if not any(self.excused((key,)) for key in (*keys, "phases")):
                message = (
                    "the document describes no mechanism: give training, sampler and noise, or mechanism, or phases"
                )
                problems.append(located(self.root, Problem("missing-key", message)))
            elif not self.excused(("phases",)):
                absent += body
        for path in absent:
            if not self.excused(path):
                problem = Problem("missing-key", f"{path_text(path)} is required", path, allowed=self.wanted(path))
                problems.append(located(self.root, problem))
        return problems

    def wanted(self, path: Path) -> str | None:
        """Return what is accepted at a path where the value is missing, in words."""
        field = field_at(self.shape, path, self.raw)
        if field is None:
            return None
        if union := union_of(field):
            shortest = ", or {multiplier: solve}" if path[-1] == "noise" else ""
            return f"a mapping with a kind: {listed(union.by_kind)}{shortest}"
        if reader := reader_of(field):
            return reader.allowed
        keys = keys_at(self.shape, path, self.raw)
        return f"a mapping with the keys {', '.join(keys)}" if keys else None

    def excused(self, path: Path) -> bool:
        """Return whether a key is missing only because of something that was reported already."""
        parent: TreeNode | None = find(self.root, path[:-1])
        return path in self.meant or (isinstance(parent, Table) and parent.torn)

    def excuse(self) -> None:
        """Treat the fields that unknown keys meant as given, so that no rule asks for them."""
        for *above, key in self.meant:
            parent = value_at(self.raw, tuple(above))
            if isinstance(parent, dict):
                parent.setdefault(key, REPORTED)


def _in_its_place(key: str, fields: Collection[str]) -> str | None:
    """Return what to do about a key of a training run beside a mechanism, or `None` for others."""
    from pyaccount.document.models import REPLACED  # for documents about mechanisms only

    if "mechanism" not in fields or key not in REPLACED:
        return None
    return (
        f"`mechanism` takes the place of {', '.join(REPLACED)}: leave {key} out, or write two phases, one with the mechanism "
        "and one with the training run"
    )


def _mend(shape: type[Section], raw: dict[str, Any], path: Path, kind: str) -> None:
    """Remove or replace the value of an error, so that the next validation accepts it."""
    parent = value_at(raw, path[:-1])
    if kind == "extra_forbidden":
        del parent[path[-1]]
    elif kind == "model_type":
        parent[path[-1]] = dict.fromkeys(keys_at(shape, path, raw), REPORTED)
    else:
        parent[path[-1]] = REPORTED


def _written(value: object, *, keyed: bool) -> str:
    """Return a remark on the spelling of a wrong value; `keyed` if a mapping is expected. Empty if there is none."""
    if not isinstance(value, str):
        return ""
    if keyed and (found := re.fullmatch(r"([\w-]+):(\S.*)", value)):
        return f"; the colon needs a space after it: `{shortened(f'{found[1]}: {found[2]}')}`"
    if re.fullmatch(r"[-+]?[0-9]+(?:,[0-9]+)+", value):
        return "; decimals follow a point, and thousands may be separated by _"
    return odd_characters_note(value)


@cache
def _homes() -> dict[str, Path]:
    """Return the path of each field of a document with one body, by its key."""
    from pyaccount.document.models import SingleDocument  # for documents about mechanisms only

    homes: dict[str, Path] = {}
    for name, field in SingleDocument.model_fields.items():
        homes[name] = (name,)
        union, section = union_of(field), section_of(field)
        for key in union.keys if union else section.model_fields if section else ():
            homes.setdefault(key, (name, key))
    return homes


@cache
def _also_called() -> dict[str, Path]:
    """Return the paths of the fields of kinds, by their names in other libraries."""
    from pyaccount.document.models import MechanismDocument, SingleDocument  # for documents about mechanisms only

    names: dict[str, Path] = {}
    for path, field in (*leaves(MechanismDocument), *leaves(SingleDocument)):
        for annotation in field.metadata:
            if isinstance(annotation, AlsoCalled):
                names |= dict.fromkeys(annotation.names.split(), path)
    return names


def home_of(word: str) -> Path | None:
    """Return the path of the field (in a document with one body) that a word means, here or in other libraries."""
    key = word.strip().lower().replace("-", "_")
    return alias_of(key) or alias_of(key, _also_called()) or _homes().get(key)


def _meant_field(key: str, parent: Path, fields: list[str], mechanism: bool) -> Path | None:
    """Return the path of the field that an unknown key in the mapping at `parent` probably means, or `None`."""
    if slip := misspelt(key, fields):
        return (*parent, slip)
    if not mechanism:
        # This document does not have the sections of mechanism documents.
        like = nearest(key, fields, cutoff=_LIKE)
        return (*parent, like) if like else None
    body = _body_around(parent)
    alias = alias_of(key) or alias_of(key, _also_called()) or _homes().get(key)
    # A mechanism takes the place of a training run, so none of its words stand for fields of that.
    alone = parent[-1:] == ("mechanism",)
    if alias is not None and alias[-1] in fields:
        return (*parent, alias[-1])
    beside = (body, (*body, alias[0]), (*body, "sampler")) if alias is not None else ()
    if alias is not None and not alone and (as_key(key) not in OF_ONE_SECTION or parent in beside):
        return _absolute(alias, body)
    elsewhere = None if alone or alias is not None else misspelt(key, _homes())
    return _absolute(_homes()[elsewhere], body) if elsewhere else None


def _body_around(path: Path) -> Path:
    """Return the path of the phase, or of the phase inside of a phase, that contains a path; () for a single body."""
    end = 0
    while path[end : end + 1] in (("phases",), ("parallel",)) and isinstance((*path, None, None)[end + 1], int):
        end += 2
    return path[:end]


def _absolute(home: Path, body: Path) -> Path:
    from pyaccount.document.models import BODY_KEYS  # for documents about mechanisms only

    return (*body, *home) if home[0] in BODY_KEYS else home
