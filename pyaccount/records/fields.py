"""The base classes of all parts of a certificate, and the types of their fields.

A field's type says in which role the field stands: whether it is a bound, and from which side; or an estimate; or part of how
the numbers were computed. `pyaccount verify` compares each field by its role, and pages print it by its role and unit.

Annotations are not strings in this module, because compiling them would cost every command that reads a certificate
milliseconds.
"""

from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field

Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Role(Enum):
    """What a field states. A role also holds for the fields of the records below, unless these have their own."""

    #: What follows from the document without samples. It must be recomputed as it is; numbers, up to rounding.
    FOLLOWS = auto()
    #: The upper and the lower end of an interval that is guaranteed: the only fields that promise anything.
    UPPER = auto()
    LOWER = auto()
    #: The ε at which the other fields of the same record are: a chosen point of a profile, or those of a curve.
    POINT = auto()
    #: A number that the document gives.
    GIVEN = auto()
    #: The value of the blank, and a value next to it.
    SOLVED = auto()
    #: An end of an interval that a guarantee is based on, as precise as the tolerance.
    INTERVAL = auto()
    #: What was done to compute the guarantee, and the errors made.
    EFFORT = auto()
    #: Another bound, which is stated for contrast.
    CONTRAST = auto()
    #: The same, if a separate search computes it.
    LEMMA = auto()
    #: Numbers of a matrix, as precise as the largest of them, because a search may have found it.
    COLUMN = auto()
    #: What the linear algebra of the machine computes. No guarantee contains it.
    MACHINE = auto()
    #: Text that another version may word differently; and the sentence that states the certificate's own numbers.
    WORDS = auto()
    SENTENCE = auto()
    #: A mean of samples. It is not a bound.
    ESTIMATE = auto()
    #: What differs between samples and bounds nothing; everything below such a field too, whatever its own role.
    DRAWN = auto()
    #: The candidates of a choice, of which no guarantee depends; everything below such a field too.
    CHOICE = auto()
    #: When, by which version and with how much time the certificate was made.
    STAMP = auto()


#: The roles that the fields below cannot change.
WHOLE = frozenset({Role.DRAWN, Role.CHOICE})


class FieldUnit(str):
    """The unit of a field, as pages say it."""


class LeftOut(str):
    """The part of a certificate that a field is, as `not_computed` names it if time did not suffice."""


NATS, PROBABILITY = FieldUnit("nats"), FieldUnit("probability")
CLIP_NORMS, SQUARED_NORMS = FieldUnit("clip norms"), FieldUnit("squared clip norms")

#: The ends of an interval for ε, in nats, and for δ.
EpsilonUpper = Annotated[NonNegative, Role.UPPER, NATS]
EpsilonLower = Annotated[NonNegative, Role.LOWER, NATS]
DeltaUpper = Annotated[Probability, Role.UPPER, PROBABILITY]
DeltaLower = Annotated[Probability, Role.LOWER, PROBABILITY]
#: Ends of an interval for another measure.
Upper = Annotated[NonNegative, Role.UPPER]
Lower = Annotated[NonNegative, Role.LOWER]
#: The ε of a point.
ProfileEpsilon = Annotated[NonNegative, Role.POINT, NATS]
#: Text that another version may word differently.
Words = Annotated[str, Role.WORDS]


class FieldMark(NamedTuple):
    """What the type of a field says of it. The role is None if that of the record above holds."""

    role: Role | None
    unit: str
    part: str | None


class Record(BaseModel):
    """Base of all parts of a certificate: immutable, and unknown fields are errors.

    `model_validate` also takes an object with attributes of the same names, such as a test with what its samples need.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, from_attributes=True)


@cache
def marks_of(model: type[BaseModel]) -> dict[str, FieldMark]:
    """Return what the types of a record's fields say of them."""
    return {name: _mark([*field.metadata, *_inside(field.annotation)]) for name, field in model.model_fields.items()}


def _inside(annotation: Any) -> list[Any]:
    """Return the marks of the members of a union, such as those of a bound that may be null."""
    return [mark for member in get_args(annotation) for mark in getattr(member, "__metadata__", ())]


def _mark(found: list[Any]) -> FieldMark:
    roles = [one for one in found if isinstance(one, Role)]
    units = [one for one in found if isinstance(one, FieldUnit)]
    parts = [one for one in found if isinstance(one, LeftOut)]
    return FieldMark(roles[0] if roles else None, units[0] if units else "", parts[0] if parts else None)


class OutputRecord(Record):
    """The result of a command as JSON."""

    def to_json(self) -> str:
        """Return the result as JSON."""
        return self.model_dump_json(indent=2) + "\n"
