"""The annotations of the models' fields, which read their raw values.

Each annotation is the validator, the message and the JSON Schema at once, derived from a range or a list of words.
pydantic's own coercions are not used: a boolean is never a number, and text is a number only if it spells one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from pyaccount.reading import numerals
from pyaccount.reading.nodes import REPORTED
from pyaccount.reading.numerals import Range
from pyaccount.reading.spelling import nearest_value

Solve = Literal["solve"]
SOLVE: Solve = "solve"
JsonSchema = dict[str, Any]

#: The JSON Schemas of a number and of a duration that are written as text.
NUMBER_TEXT: JsonSchema = {"type": "string", "pattern": numerals.NUMBER_PATTERN}
DURATION_TEXT: JsonSchema = {"type": "string", "pattern": numerals.DURATION_PATTERN}

#: The paths at which `solve` is allowed, in every body of the document; `noise.scale` only beside phases.
BLANKS: tuple[tuple[str, ...], ...] = (
    ("noise", "multiplier"),
    ("noise", "multiplier", "scale"),
    ("noise", "scale"),
    ("privacy", "epsilon"),
    ("privacy", "delta"),
    ("training", "iterations"),
    ("privacy", "group_size"),
    ("training", "expected_batch_size"),
    ("mechanism", "sigma"),
    ("mechanism", "scale"),
    ("mechanism", "variance"),
    ("mechanism", "threshold"),
)
#: The last keys of the blanks of which a larger value is more private: more noise, or a threshold that fewer counts pass.
NOISE_BLANKS = ("multiplier", "scale", "sigma", "variance", "threshold")
#: The blanks whose value is a whole number.
WHOLE_BLANKS = ("iterations", "group_size")
#: The measures that count something, but need not be whole: an average, or a part of the data set.
_COUNTED = ("records", "epochs")
#: The words that people write for `solve` when they do not know it.
_SOLVED = ("solve", "solved", "auto", "calibrate", "compute", "find", "unknown", "blank", "x", "tbd")
_BLANKS_TEXT = ", ".join(".".join(path) for path in BLANKS[:-1]) + " and " + ".".join(BLANKS[-1])


def refuse(slug: str, message: str, allowed: str, suggestion: str | None = None) -> PydanticCustomError:
    """Return the error of one value, which `validation` turns into a located problem."""
    return PydanticCustomError(slug, "{message}", {"message": message, "allowed": allowed, "suggestion": suggestion})


class FieldReader:
    """An annotation that reads the raw value of a field. Subclasses define how, and what an editor should accept."""

    def _read(self, value: object) -> object:
        """Return the typed value. Raises the error that `refuse` returns."""
        raise NotImplementedError

    def _json_schema(self) -> JsonSchema:
        """Return the JSON Schema of the values that an editor accepts, after its YAML 1.2 parser has read the text."""
        raise NotImplementedError

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        raise NotImplementedError

    @property
    def words_allowed(self) -> tuple[str, ...]:
        """The accepted words; empty if only numbers are accepted, or any text."""
        return ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return self._json_schema()

    def member(self, value: object) -> type[Any] | None:
        """Return the section that reads this raw value; None if the field is not read by a section."""
        return None

    def read(self, value: object) -> object:
        """Return the typed value; `REPORTED` is returned unchanged. Raises the error that `refuse` returns."""
        return value if value is REPORTED else self._read(value)


class Choose(BaseModel):
    """A list of alternatives under `choose:`; the best one is used."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    choose: tuple[int | float | str, ...]


def _chosen(value: object, reader: Number | ChoiceOfKinds) -> Choose:
    """Return the alternatives of a mapping `choose:` with a list, each read by a reader. Raises the error of `refuse`."""
    alternatives = value.get("choose") if isinstance(value, dict) and set(value) == {"choose"} else None
    if not isinstance(alternatives, list | tuple) or not alternatives:
        raise wrong_type(value, reader.allowed)
    read: tuple[Any, ...] = tuple(map(reader._read_one, alternatives))
    if len(set(read)) < len(read):
        raise refuse("contradiction", "an alternative is listed twice", reader.allowed)
    return Choose(choose=read)


@dataclass(frozen=True)
class Number(FieldReader):
    """Reads a number in a range. `whole` requires an integer; `blank` accepts `solve`, and `choose` a list, too."""

    range: Range
    whole: bool = False
    blank: bool = False
    choose: bool = False
    #: The message about `solve` where it is not accepted; the default lists the blanks.
    unsolved: str | None = None

    def _read(self, value: object) -> object:
        return _chosen(value, self) if self.choose and isinstance(value, dict) else self._read_one(value)

    def _read_one(self, value: object) -> object:
        if value == SOLVE and isinstance(value, str):
            if self.blank:
                return SOLVE
            message = self.unsolved or f"solve is not allowed here; blanks are allowed at {_BLANKS_TEXT}"
            raise refuse("wrong-type", message, self.allowed)
        number = numerals.parse_number(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise wrong_type(value, self.allowed, self._meant(value))
        text = numerals.with_separators(value)
        if text is not None and (self.whole or self.range.measure in _COUNTED):
            # The two readings of a count such as `60.000` differ by a factor of a thousand.
            raise refuse("wrong-type", numerals.two_readings(text), self.allowed)
        if self.whole and isinstance(number, float) and math.isfinite(number) and not number.is_integer():
            raise refuse("wrong-type", f"must be a whole number, {self.range.describe()}", self.allowed)
        # The range refuses NaN, and integers that are too large for a float.
        if number not in self.range:
            raise _out_of_range(self.range)
        return int(number) if self.whole else float(number)

    def _meant(self, value: object) -> str | None:
        """Return the suggestion for a text that is not a number here, or `None`."""
        if not isinstance(value, str):
            return None
        if self.blank and value.strip().lower() in _SOLVED:
            return SOLVE
        counted = self.whole or self.range.measure in _COUNTED
        suggested = numerals.meant(value)
        if not counted and (decimal := numerals.with_a_comma(value)) is not None:
            # In a measured quantity a comma separates decimals; in a count it separates thousands.
            suggested = decimal
        if not counted and numerals.has_two_meanings(value, small=self.range.maximum <= 1.0):
            return None
        # Suggest nothing that would be refused too, such as a share where a number of records is needed.
        number = None if suggested is None else numerals.parse_number(suggested.partition(" #")[0])
        fits = number is not None and number in self.range and not (self.whole and not float(number).is_integer())
        return suggested if fits else None

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        kind = "a whole number" if self.whole else "a number"
        chosen = ", or choose: with a list of them" if self.choose else ""
        return f"{kind} {self.range.describe()}{', or solve' if self.blank else ''}{chosen}"

    @property
    def words_allowed(self) -> tuple[str, ...]:
        """`solve`, if the field may be the blank."""
        return (SOLVE,) if self.blank else ()

    def _json_schema(self) -> JsonSchema:
        """Return the schema: a number in the range, or one that a YAML 1.2 parser reads as text, such as `50_000`."""
        number = {"type": "integer" if self.whole else "number", **self.range.json_schema()}
        accepted: list[JsonSchema] = [number, NUMBER_TEXT]
        if self.blank:
            accepted.append({"const": SOLVE})
        if self.choose:
            accepted.append(_choose_schema({"anyOf": accepted[:2]}))
        return {"anyOf": accepted}


def _choose_schema(items: JsonSchema) -> JsonSchema:
    """Return the schema of alternatives under `choose:`, each of which has the schema `items`."""
    alternatives = {"type": "array", "items": items, "minItems": 1, "uniqueItems": True}
    return {
        "type": "object",
        "properties": {"choose": alternatives},
        "required": ["choose"],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Duration(FieldReader):
    """Reads a time such as `10 min`, or a number of seconds, as seconds."""

    range: Range

    def _read(self, value: object) -> object:
        seconds = value
        if isinstance(value, str):
            parsed = numerals.parse_duration(value)
            seconds = numerals.parse_number(value) if parsed is None else parsed
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise wrong_type(value, self.allowed)
        if seconds not in self.range:
            raise _out_of_range(self.range)
        return float(seconds)

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        examples = "30 s, 10 min or 2 h" if self.range.maximum <= 1e7 else "12 h or 90 d"
        return f"a time such as {examples}, {self.range.describe()}"

    def _json_schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "number", **self.range.json_schema()}, DURATION_TEXT, NUMBER_TEXT]}


@dataclass(frozen=True)
class Text(FieldReader):
    """Reads one line of text whose length is in a range."""

    length: Range

    def _read(self, value: object) -> object:
        if not isinstance(value, str):
            raise wrong_type(value, self.allowed)
        if len(value.strip()) not in self.length or len(value) not in self.length or not value.isprintable():
            raise refuse("out-of-range", f"must be {self.allowed}", self.allowed)
        return value

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return f"text of {self.length.minimum} to {self.length.maximum} printable characters on one line"

    def _json_schema(self) -> JsonSchema:
        return {
            "type": "string",
            "minLength": self.length.minimum,
            "maxLength": self.length.maximum,
            "pattern": r"^[^\u0000-\u001f]*[^\u0000-\u0020][^\u0000-\u001f]*$",
        }


@dataclass(frozen=True)
class Digest(FieldReader):
    """Reads a SHA-256."""

    allowed = "a SHA-256: 64 hexadecimal digits in lower case"

    def _read(self, value: object) -> object:
        if not isinstance(value, str):
            raise wrong_type(value, self.allowed)
        if len(value) != 64 or not set(value) <= set("0123456789abcdef"):
            raise refuse("out-of-range", f"must be {self.allowed}", self.allowed)
        return value

    def _json_schema(self) -> JsonSchema:
        return {"type": "string", "pattern": "^[0-9a-f]{64}$"}


@dataclass(frozen=True)
class Choice(FieldReader):
    """Reads one of a few words."""

    words: tuple[str, ...]

    def _read(self, value: object) -> object:
        if not isinstance(value, str):
            raise wrong_type(value, self.allowed)
        if value not in self.words:
            raise refuse("unknown-value", f"must be {self.allowed}", self.allowed, nearest_value(value, self.words))
        return value

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return listed(self.words)

    @property
    def words_allowed(self) -> tuple[str, ...]:
        """The accepted words."""
        return self.words

    def _json_schema(self) -> JsonSchema:
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class ChoiceOfKinds(FieldReader):
    """Reads `choose:` with a list of kinds; `aliases` are other words for them, for suggestions."""

    words: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return f"choose: with a list of {listed(self.words)}"

    def _read(self, value: object) -> object:
        return _chosen(value, self)

    def _read_one(self, word: object) -> object:
        if word not in self.words:
            suggestion = nearest_value(word, self.words, self.aliases) if isinstance(word, str) else None
            raise refuse("unknown-kind", f"must be {self.allowed}", self.allowed, suggestion)
        return word

    def _json_schema(self) -> JsonSchema:
        return _choose_schema({"enum": list(self.words)})


@dataclass(frozen=True)
class Flag(FieldReader):
    """Reads `true` or `false`."""

    allowed = "true or false"
    words_allowed = ("true", "false")

    def _read(self, value: object) -> object:
        if not isinstance(value, bool):
            raise wrong_type(value, self.allowed)
        return value

    def _json_schema(self) -> JsonSchema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Version(FieldReader):
    """Reads the version of the document language, of which only one is accepted."""

    version: int

    def _read(self, value: object) -> object:
        number = numerals.parse_number(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise wrong_type(value, self.allowed)
        if number != self.version:
            message = f"this pyaccount reads version {self.version} of the document language"
            raise refuse("unknown-version", message, self.allowed)
        return self.version

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return str(self.version)

    def _json_schema(self) -> JsonSchema:
        return {"enum": [self.version, str(self.version)]}


@dataclass(frozen=True)
class Numbers(FieldReader):
    """Reads one number in a range, or a list of numbers whose length is in a range, as a tuple."""

    range: Range
    length: Range

    def _read(self, value: object) -> object:
        entries = value if isinstance(value, list | tuple) else [value]
        if len(entries) not in self.length:
            raise refuse(
                "out-of-range", f"must be a list of {self.length.describe()}, not {len(entries)}", self.allowed
            )
        reader = Number(self.range)
        return tuple(entry if entry is REPORTED else reader._read_one(entry) for entry in entries)

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return f"a number {self.range.describe()}, or a list of them"

    def _json_schema(self) -> JsonSchema:
        number = {"anyOf": [{"type": "number", **self.range.json_schema()}, NUMBER_TEXT]}
        bounds = {"minItems": self.length.minimum, "maxItems": self.length.maximum}
        return {"anyOf": [*number["anyOf"], {"type": "array", "items": number, **bounds}]}


@dataclass(frozen=True)
class Items:
    """Checks the length of a list. The annotated type reads the entries, each with problems of its own."""

    length: Range

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return handler(schema) | {"minItems": self.length.minimum, "maxItems": self.length.maximum}

    def _read(self, value: object, read_entries: core_schema.ValidatorFunctionWrapHandler) -> object:
        if value is REPORTED:
            return value
        allowed = f"a list of {self.length.describe()}"
        if not isinstance(value, list | tuple):
            raise wrong_type(value, allowed)
        if len(value) not in self.length:
            raise refuse("out-of-range", f"must be {allowed}, not {len(value)}", allowed)
        return read_entries(value)


def read_each(what: str, reader: FieldReader, values: Iterable[tuple[str | int, object]]) -> list[Any]:
    """Return the values, each read by a reader. Raises the errors of all that are wrong, each at its key; `what` names them."""
    read, wrong = list[Any](), list[InitErrorDetails]()
    for key, value in values:
        try:
            read.append(reader.read(value))
        except PydanticCustomError as error:
            wrong.append({"type": error, "loc": (key,), "input": value})
    if wrong:
        raise ValidationError.from_exception_data(what, wrong)
    return read


def wrong_type(value: object, allowed: str, suggestion: str | None = None) -> PydanticCustomError:
    """Return the error of a value of the wrong type; an empty value has a message of its own."""
    message = f"has no value; give {allowed}" if value is None else f"must be {allowed}"
    if isinstance(value, bool):
        message += "; true and false are not numbers" if "number" in allowed else ""
    return refuse("wrong-type", message, allowed, suggestion)


def _out_of_range(bounds: Range) -> PydanticCustomError:
    return refuse("out-of-range", f"must be {bounds.describe()}", bounds.describe())


def listed(words: Iterable[str]) -> str:
    """Return the words as a choice: `a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
