"""Schedules: a value for each round, in place of one value for all rounds of a body.

A schedule is a list with one value per round, a file with such a list, or a value that decays in steps. This module
reads schedules. `schedule_rules` has the rules about them, and the plan reads their files and makes the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from pyaccount.document import ranges
from pyaccount.reading.fields import (
    NUMBER_TEXT,
    FieldReader,
    JsonSchema,
    Number,
    Solve,
    Text,
    listed,
    read_each,
    refuse,
    wrong_type,
)
from pyaccount.reading.kinds import Section
from pyaccount.reading.nodes import REPORTED
from pyaccount.reading.numerals import Range
from pyaccount.reading.spelling import nearest


@dataclass(frozen=True)
class Column(FieldReader):
    """Reads the name of a column, or its number, counted from 0."""

    allowed = "the name of a column, or its number, counted from 0"

    def _read(self, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return Number(ranges.COLUMN, whole=True).read(value)
        if not isinstance(value, str):
            raise wrong_type(value, self.allowed)
        return Text(ranges.NAME_LENGTH).read(value)

    def _json_schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "integer", **ranges.COLUMN.json_schema()}, {"type": "string"}]}


class ScheduleFile(Section):
    """A schedule in a file, with one value per round."""

    file: Annotated[str, Text(ranges.FILE_LENGTH)] = Field(
        description="A .npy, .csv or .txt file, relative to the folder of the document. A text file has one round per "
        "line; its first line may name the columns, which are separated by commas or white space."
    )
    column: Annotated[str | int | None, Column()] = Field(
        default=None,
        description="The name of the column with the values, or its number, counted from 0. Required if the file has "
        "several columns.",
    )
    rounds: Annotated[int | None, Number(ranges.SCHEDULED, whole=True)] = Field(
        default=None, description="Use only this many values from the beginning of the file. Default: all of them."
    )


class Decaying(Section):
    """A schedule that decays in steps: round t, counted from 0, has the value start·decay^⌊t/every⌋.

    The value is multiplied step by step, each product rounded to the nearest double.
    """

    start: Annotated[float, Number(ranges.SCHEDULE_VALUE)] = Field(description="The value of the first rounds.")
    decay: Annotated[float, Number(ranges.SCHEDULE_DECAY)] = Field(
        description="The factor of each step. A factor above 1 lets the value grow."
    )
    every: Annotated[int, Number(ranges.ITERATIONS, whole=True)] = Field(
        default=1, description="The number of rounds from one step to the next."
    )
    least: Annotated[float | None, Number(ranges.SCHEDULE_VALUE)] = Field(
        default=None, description="The least value: a smaller one is replaced by it. Default: no limit."
    )


Schedule = tuple[float, ...] | ScheduleFile | Decaying


@dataclass(frozen=True)
class ScheduleValues(FieldReader):
    """Reads a schedule whose values are in a range."""

    range: Range

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return (
            f"a list of numbers {self.range.describe()}, one for each round; or {{file: …}}; or "
            "{start: …, decay: …, every: …}"
        )

    def member(self, value: object) -> type[Section] | None:
        """Return the section that reads a mapping; None for other values."""
        if not isinstance(value, dict):
            return None
        return Decaying if {"start", "decay", "every", "least"} & set(value) else ScheduleFile

    def _read(self, value: object) -> object:
        section = self.member(value)
        if section is not None:
            schedule = section.model_validate(value)
            ends = ((name, getattr(schedule, name, None)) for name in ("start", "least"))
            read_each(
                "schedule", Number(self.range), ((name, end) for name, end in ends if isinstance(end, int | float))
            )
            return schedule
        if not isinstance(value, list | tuple) or not value:
            raise wrong_type(value, self.allowed)
        return tuple(read_each("schedule", Number(self.range), enumerate(value)))

    def _json_schema(self) -> JsonSchema:
        number = {"anyOf": [{"type": "number", **self.range.json_schema()}, NUMBER_TEXT]}
        sections = [_section_schema(section) for section in (ScheduleFile, Decaying)]
        return {"anyOf": [{"type": "array", "items": number, "minItems": 1}, *sections]}


_SCHEDULE = (
    "One value for each round: a list, a file (`{file: …}`), or a value that decays in steps (`{start: …, decay: …, "
    "every: …}`)."
)


class ScheduledMultiplier(Section):
    """The noise multiplier of each round: σ_t = scale·schedule[t], rounded to the nearest double."""

    schedule: Annotated[Schedule, ScheduleValues(ranges.NOISE_MULTIPLIER)] = Field(description=_SCHEDULE)
    scale: Annotated[float | Solve, Number(ranges.NOISE_SCALE, blank=True)] = Field(
        default=1.0, description="The factor of all values of the schedule."
    )


class ScheduledProbability(Section):
    """The sampling probability of each round."""

    schedule: Annotated[Schedule, ScheduleValues(ranges.PROBABILITY)] = Field(description=_SCHEDULE)


class ScheduledBatch(Section):
    """The expected batch size of each round."""

    schedule: Annotated[Schedule, ScheduleValues(ranges.EXPECTED_BATCH_SIZE)] = Field(description=_SCHEDULE)


Scheduled = ScheduledMultiplier | ScheduledProbability | ScheduledBatch


@dataclass(frozen=True)
class NumberOrMapping(Number):
    """Reads a number as `Number` does, or a mapping in one of several shapes, which have no key in common."""

    #: The shapes, each by the words for what such a mapping has; a mapping with none of their keys is of the first shape.
    shapes: Mapping[str, type[Section]] = field(default_factory=dict)

    @property
    def sections(self) -> tuple[type[Section], ...]:
        """The shapes, each once."""
        return tuple(dict.fromkeys(self.shapes.values()))

    @property
    def keys(self) -> set[str]:
        """The keys of all shapes."""
        return {key for section in self.sections for key in section.model_fields}

    def _read(self, value: object) -> object:
        if not isinstance(value, dict) or "choose" in value:
            return super()._read(value)
        if len(mixed := self._shapes_of(value)) > 1:
            keys = [next(key for key in section.model_fields if key in value) for section in mixed]
            message = f"{' and '.join(keys)} cannot be combined: leave all but one of them out"
            raise refuse("contradiction", message, self.allowed)
        section = self.member(value)
        assert section is not None
        return section.model_validate(value)

    def member(self, value: object) -> type[Section] | None:
        """Return the section that reads a mapping, or that its only key misspells; the first one for other values."""
        if isinstance(value, dict) and len(value) == 1 and (key := nearest(str(*value), self.keys)) is not None:
            value = {key: None}
        return next(iter(self._shapes_of(value)), self.sections[0])

    def _shapes_of(self, value: object) -> list[type[Section]]:
        """Return the shapes of which a mapping has keys."""
        keys = set(value) if isinstance(value, dict) else set()
        return [section for section in self.sections if keys & set(section.model_fields)]

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return f"{super().allowed}, or a mapping with {listed(self.shapes)}"

    def _json_schema(self) -> JsonSchema:
        described = super()._json_schema()
        return {"anyOf": [*described["anyOf"], *map(_section_schema, self.sections)]}


def _section_schema(section: type[Section]) -> JsonSchema:
    """Return the JSON Schema of a section whose fields are all read by a `FieldReader`."""
    properties: dict[str, Any] = {}
    for name, described in section.model_fields.items():
        reader = next(annotation for annotation in described.metadata if isinstance(annotation, FieldReader))
        default = {} if described.is_required() or described.default is None else {"default": described.default}
        properties[name] = {"description": described.description, **reader._json_schema(), **default}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, field in section.model_fields.items() if field.is_required()],
        "additionalProperties": False,
    }


def readable(value: object) -> Schedule | None:
    """Return the schedule of a scheduled value; None for other values, and for one that was reported as wrong."""
    schedule = getattr(value, "schedule", None)
    if schedule is None or schedule is REPORTED or (isinstance(schedule, tuple) and REPORTED in schedule):
        return None
    kept: Schedule = schedule
    return kept
