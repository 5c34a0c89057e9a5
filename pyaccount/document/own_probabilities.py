"""Probabilities of single records in place of one probability for all of them: the largest one, or one for each stratum.

A stratum is a set of records with the same probability, such as those of a class that is drawn more often. This module
reads the probabilities, and `own_probability_rules` has the rules about them. `pyaccount.plan.own_probabilities` proves
that the largest one bounds them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import Field, field_serializer
from pydantic_core import PydanticCustomError

from pyaccount.document import ranges
from pyaccount.document.schedules import NumberOrMapping
from pyaccount.reading.fields import NUMBER_TEXT, FieldReader, JsonSchema, Number, Text, read_each, refuse, wrong_type
from pyaccount.reading.kinds import Section
from pyaccount.reading.spelling import nearest_value


class Stratum(NamedTuple):
    """A named set of records, and the probability with which each of them is drawn."""

    name: str
    probability: float


@dataclass(frozen=True)
class StratumProbabilities(FieldReader):
    """Reads a mapping of names to probabilities as a tuple of strata, those with the largest probabilities first.

    The order of a document's keys has no meaning, so equal documents have equal tuples.
    """

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        return f"a mapping with {ranges.STRATA.describe()}, each a name with a number {ranges.PROBABILITY.describe()}"

    def _read(self, value: object) -> object:
        if not isinstance(value, dict):
            raise wrong_type(value, self.allowed)
        if len(value) not in ranges.STRATA:
            raise refuse("out-of-range", f"must be {self.allowed}, not {len(value)}", self.allowed)
        for name in value:
            # A name that cannot be one is an error of the whole mapping.
            try:
                Text(ranges.NAME_LENGTH).read(name)
            except PydanticCustomError as error:
                message = f"the name of a stratum must be {Text(ranges.NAME_LENGTH).allowed}"
                raise refuse("out-of-range", message, self.allowed) from error
        strata = tuple(map(Stratum, value, read_each("strata", Number(ranges.PROBABILITY), value.items())))
        if not all(isinstance(stratum.probability, float) for stratum in strata):
            # What was reported is neither more nor less than a number.
            return strata
        return tuple(sorted(strata, key=lambda stratum: (-stratum.probability, stratum.name)))

    def _json_schema(self) -> JsonSchema:
        number = {"anyOf": [{"type": "number", **ranges.PROBABILITY.json_schema()}, NUMBER_TEXT]}
        return {
            "type": "object",
            "additionalProperties": number,
            "propertyNames": Text(ranges.NAME_LENGTH)._json_schema(),
            "minProperties": int(ranges.STRATA.minimum),
            "maxProperties": int(ranges.STRATA.maximum),
        }


class OwnProbabilities(Section):
    """The probabilities of records that are not all drawn with the same one. It has either `max` or `strata`."""

    max: Annotated[float | None, Number(ranges.PROBABILITY)] = Field(
        default=None, description="The largest probability with which a record may be drawn."
    )
    strata: Annotated[tuple[Stratum, ...] | None, StratumProbabilities()] = Field(
        default=None,
        description="The probability of the records of each stratum, by the name of the stratum. A stratum is a set of "
        "records to which a record belongs or not by what it is itself, whatever other records there are.",
    )

    @field_serializer("strata")
    def _as_written(self, strata: tuple[Stratum, ...] | None) -> dict[str, float] | None:
        """Return the strata as documents write them."""
        return None if strata is None else dict(strata)

    @property
    def key(self) -> str:
        """The key that states the probabilities."""
        return "max" if self.strata is None else "strata"

    def named(self) -> tuple[Stratum, ...]:
        """Return the strata; empty if only the largest probability is stated, or if they were reported as wrong."""
        return self.strata if isinstance(self.strata, tuple) else ()

    def largest(self) -> float | None:
        """Return the largest probability; None if no probability could be read."""
        stated = [self.max, *(stratum.probability for stratum in self.named())]
        return max((value for value in stated if isinstance(value, float)), default=None)


#: Other words for the largest probability.
_MAX = dict.fromkeys(
    ("maximum", "largest", "highest", "most", "upper", "upper-bound", "at-most", "bound", "limit"), "max"
)


@dataclass(frozen=True)
class ProbabilityOrMapping(NumberOrMapping):
    """Reads a probability, or a mapping with probabilities of single records."""

    def _read(self, value: object) -> object:
        if isinstance(value, dict) and value and all(_is_probability(item) for item in value.values()):
            names = [str(name) for name in value]
            if not set(names) & self.keys:
                strata = "probabilities of strata as `{strata: {name: probability, …}}`"
                if len(names) > 1:
                    message = f"has the keys {', '.join(names[:3])}{', …' if len(names) > 3 else ''}: write {strata}"
                    raise refuse("wrong-type", message, self.allowed)
                message = (
                    f"has the key {names[0]}: write the largest probability as `{{max: probability}}`, or {strata}"
                )
                misspelt = nearest_value(names[0], ("max",), _MAX) is not None
                suggestion = f"{{max: {next(iter(value.values()))}}}" if misspelt else None
                raise refuse("wrong-type", message, self.allowed, suggestion)
        return super()._read(value)


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value in ranges.PROBABILITY
