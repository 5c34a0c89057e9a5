"""The allowed shape of a document: the sections and fields that its models have at a path.

The fields at a path depend on the document too, because a section that comes in kinds has the keys of its kind. In this
module `raw` is the document's plain value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from pyaccount.errors import Path
from pyaccount.reading.fields import FieldReader
from pyaccount.reading.kinds import KeyedShapes, Kinds, Section


def value_at(raw: Any, path: Path) -> Any:
    """Return the raw value at a path, or `None` if there is none."""
    for part in path:
        if isinstance(raw, dict):
            raw = raw.get(part)
        elif isinstance(raw, list) and isinstance(part, int):
            raw = raw[part]
        else:
            return None
    return raw


def keys_at(shape: type[Section], path: Path, raw: Any) -> list[str]:
    """Return the keys that the mapping at a path may have; for an unknown kind, the keys of all kinds."""
    section = member_at(shape, path, raw)
    if section is not None:
        return list(section.model_fields)
    field = field_at(shape, path, raw) if path else None
    union = union_of(field) if field else None
    return union.keys if union else []


def union_of(field: FieldInfo) -> Kinds | None:
    """Return the `Kinds` annotation of a field that holds a union of kinds, or `None` for other fields."""
    return next((annotation for annotation in field.metadata if isinstance(annotation, Kinds)), None)


def _shapes_of(field: FieldInfo) -> KeyedShapes | None:
    """Return the `KeyedShapes` annotation of the entries of a list, or `None` for other fields."""
    for entry in get_args(field.annotation):
        for annotation in getattr(entry, "__metadata__", ()):
            if isinstance(annotation, KeyedShapes):
                return annotation
    return None


def shapes_at(shape: type[Section], path: Path, raw: Any) -> KeyedShapes | None:
    """Return the shapes that the entry of a list at a path may have, or `None` if it has only one, or is no such entry."""
    field = field_at(shape, path[:-1], raw) if path and isinstance(path[-1], int) else None
    return None if field is None else _shapes_of(field)


def section_of(field: FieldInfo) -> type[Section] | None:
    """Return the section that a field holds (for a list, the section of its entries; the usual one), or `None`."""
    if shapes := _shapes_of(field):
        return shapes.usual
    for candidate in (field.annotation, *get_args(field.annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate
    return None


def field_at(shape: type[Section], path: Path, raw: Any) -> FieldInfo | None:
    """Return the field at a path, or `None` if the models have none there."""
    *above, key = path
    section = member_at(shape, tuple(above), raw)
    return section.model_fields.get(str(key)) if section else None


def member_at(shape: type[Section], path: Path, raw: Any) -> type[Section] | None:
    """Return the section at a path, of the kind that the document states, or `None` if there is none."""
    section: type[Section] | None = shape
    shapes: KeyedShapes | None = None
    for index, part in enumerate(path):
        if isinstance(part, int):
            section = shapes.member(value_at(raw, path[: index + 1])) if shapes else section
            continue
        field = section.model_fields.get(part) if section else None
        if field is None:
            return None
        union, shapes = union_of(field), _shapes_of(field)
        inside, reader = value_at(raw, path[: index + 1]), reader_of(field)
        if union is not None:
            section = union.member(inside)
        elif reader is not None:
            section = reader.member(inside)
        else:
            section = section_of(field)
    return section


def reader_of(field: FieldInfo) -> FieldReader | None:
    """Return the annotation that reads a field, or `None` if the field holds no single value."""
    return next((annotation for annotation in field.metadata if isinstance(annotation, FieldReader)), None)


def leaves(shape: type[Section], above: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Yield all fields that hold values, with their paths. A path is yielded for each kind of section that has it.

    A field that holds a value or a section is yielded as a value, without what is in the section.
    """
    for key, field in shape.model_fields.items():
        union, section = union_of(field), section_of(field)
        members = union.members if union else (section,) if section and reader_of(field) is None else ()
        for member in members:
            yield from leaves(member, (*above, key))
        if not members:
            yield (*above, key), field


def accepted_words(field: FieldInfo) -> tuple[str, ...]:
    """Return the words that a field accepts: those of a choice, the kind of a section, `solve`, true and false."""
    if field.annotation is not None and get_origin(field.annotation) is Literal:
        return tuple(str(word) for word in get_args(field.annotation))
    reader = reader_of(field)
    return reader.words_allowed if reader else ()
