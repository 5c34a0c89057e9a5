"""Sections, sections that come in kinds, and what a kind's fields state beside their values.

A union of kinds has one class per kind, identified by its `kind`; a new kind is a new member. There are no placeholders
for kinds that are not implemented: they are unknown kinds. The list of members exists only once; reading, writing, the
JSON Schema, the questions of `pyaccount init` and the reference all use it.

Two annotations of fields read nothing: the question that asks for a value, and its names in other libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Union, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from pyaccount.forks import cached_property
from pyaccount.reading.fields import SOLVE, JsonSchema, listed, refuse, wrong_type
from pyaccount.reading.nodes import REPORTED
from pyaccount.reading.spelling import nearest_value
from pyaccount.reading.unknown_kinds import ALIASES


class Section(BaseModel):
    """A section of a document: an immutable mapping that accepts no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    #: In the shapes of a document about a mechanism, the keys that describe one body of it.
    body_keys: ClassVar[tuple[str, ...]] = ()


class Kind(Section):
    """A section that is one of several kinds, identified by its field `kind: Literal[…]`.

    Values that all sections of a kind share are class attributes without annotations: pydantic evaluates the
    annotations of a class and of all its bases whenever it builds a class, and that would take most of the time.
    """

    model_config = ConfigDict(ignored_types=(str, bool))

    #: Other words for the kind, separated by spaces: names in other libraries, and words that people try.
    aliases = ""


def word_of(kind: type[Section]) -> str:
    """Return the word by which documents name a kind, that is, the value of its field `kind`."""
    return str(get_args(kind.model_fields["kind"].annotation)[0])


@dataclass(frozen=True)
class KeyedShapes:
    """The annotation of a section that comes in several shapes, which the presence of a key identifies.

    The type that it annotates is used only by type checkers.
    """

    usual: type[Section]
    #: The other shapes, by the key that only they have.
    by_key: Mapping[str, type[Section]]

    @property
    def members(self) -> tuple[type[Section], ...]:
        """All shapes, the usual one first."""
        return (self.usual, *self.by_key.values())

    def member(self, value: object) -> type[Section]:
        """Return the shape that reads a raw value."""
        if isinstance(value, dict):
            for key, shape in self.by_key.items():
                if key in value:
                    return shape
        return self.usual

    def read(self, value: object, _: object = None) -> object:
        """Return the typed section for a raw value. Raises the errors of its shape."""
        return value if value is REPORTED else self.member(value).model_validate(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # As with kinds, the union that pydantic builds never validates.
        return core_schema.no_info_wrap_validator_function(self.read, handler.generate_schema(Union[self.members]))  # noqa: UP007


@dataclass(frozen=True)
class Kinds:
    """The annotation of a union of kinds: it selects the member by its `kind` and lets the member read the mapping.

    The type that it annotates is used only by type checkers.
    """

    what: str
    members: tuple[type[Section], ...]
    default: str | None = None
    #: What to say of a number that stands alone, whose unit nobody stated.
    of_a_number: str | None = None
    #: The section that reads a mapping whose kind is itself a choice: `kind: {choose: [...]}`.
    choice: type[Section] | None = None
    #: Kinds that other software has and pyaccount does not, each with the reason.
    refused: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_kind(self) -> dict[str, type[Section]]:
        """The members, by the word of their `kind`."""
        return {word_of(member): member for member in self.members}

    @property
    def aliases(self) -> dict[str, str]:
        """The other words for the kinds, each with the kind that it means."""
        return {
            alias: word
            for word, member in self.by_kind.items()
            if issubclass(member, Kind)
            for alias in member.aliases.split()
        }

    @property
    def keys(self) -> list[str]:
        """The keys that at least one member has."""
        return list(dict.fromkeys(key for member in self.members for key in member.model_fields))

    def member(self, value: object) -> type[Section] | None:
        """Return the member that reads a raw value, or `None` if its kind is unknown."""
        kind = value.get("kind", self.default) if isinstance(value, dict) else None
        if isinstance(kind, dict):
            return self.choice
        return self.by_kind.get(kind) if isinstance(kind, str) else None

    def nearest(self, word: str) -> str | None:
        """Return the kind that a word misspells or is another word for, but not one whose name is merely similar."""
        return nearest_value(word, self.by_kind, self.aliases)

    def reason(self, word: str) -> str | None:
        """Return why a kind that exists in other software is not implemented, or `None` for other words."""
        return self.refused.get(word) or self.refused.get(nearest_value(word, self.refused, ALIASES) or "")

    def read(self, value: object, _: object = None) -> object:
        """Return the typed section for a raw value. Raises the error of the value if there is none."""
        if value is REPORTED:
            return value
        if not isinstance(value, dict):
            allowed = f"a mapping with a kind: {listed(self.by_kind)}"
            meant = self._meant(value)
            if self.of_a_number is not None and meant is None:
                allowed = f"{allowed}. {self.of_a_number}"
            raise wrong_type(value, allowed, meant)
        if value.get("kind") is REPORTED:
            return REPORTED
        member = self.member(value)
        if member is None:
            raise self._no_such_kind(value)
        return member.model_validate(value)

    def _meant(self, value: object) -> str | None:
        """Return the mapping that a single text means: a kind, or the one value of the default kind, which is then a blank."""
        if isinstance(value, str) and (kind := value if value in self.by_kind else self.nearest(value)):
            return f"{{kind: {kind}}}"
        if self.default is None or value != SOLVE:
            return None
        needed = [name for name, field in self.by_kind[self.default].model_fields.items() if field.is_required()]
        return f"{{{needed[0]}: {SOLVE}}}" if len(needed) == 1 else None

    def _no_such_kind(self, value: dict[str, object]) -> ValidationError:
        """Return the errors of a mapping of unknown kind: one at its `kind`, and one at each key that no member has."""
        allowed = listed(self.by_kind)
        kind = value.get("kind")
        error: str | PydanticCustomError
        if "kind" not in value:
            error = "missing"
        elif not isinstance(kind, str):
            error = wrong_type(kind, allowed)
        elif (reason := self.reason(kind)) is not None:
            error = refuse("unknown-kind", reason, allowed)
        else:
            message = f"no {self.what} of this kind is implemented: must be {allowed}"
            error = refuse("unknown-kind", message, allowed, self.nearest(kind))
        lines: list[InitErrorDetails] = [{"type": error, "loc": ("kind",), "input": kind}]
        for key in (key for key in value if key not in self.keys):
            lines.append({"type": "extra_forbidden", "loc": (key,), "input": value[key]})
        return ValidationError.from_exception_data(self.what, lines)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # The union that pydantic builds from the members is used for serialization and the JSON Schema, and never
        # validates.
        members = self.members if self.choice is None else (*self.members, self.choice)
        return core_schema.no_info_wrap_validator_function(self.read, handler.generate_schema(Union[members]))  # noqa: UP007

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        members = handler(schema)
        return {"oneOf": members.get("anyOf", [members])}


@dataclass(frozen=True)
class Asked:
    """The question of `pyaccount init` that asks for the value of a field; its name is the name of the field."""

    #: The text of the question.
    text: str
    #: An answer that fits a small training run; `init` uses it to find out which choices can be analysed.
    trial: str
    #: The words that are accepted as answers, each with a description; empty if the answer is a number.
    words: Mapping[str, str] = field(default_factory=dict)
    #: Whether the question is asked right after the kind, because other choices depend on the answer.
    first: bool = False
    #: The default, in words.
    usual: str = ""
    #: The placeholder for the answer in the help.
    metavar: str = "N"


@dataclass(frozen=True)
class AlsoCalled:
    """The names of a field in other libraries, separated by spaces, in lower case and with underscores."""

    names: str
