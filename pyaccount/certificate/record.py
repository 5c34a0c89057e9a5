"""The base classes of all parts of a certificate: immutable data with ranges, in which unknown fields are errors.

Annotations are not strings in this module, because compiling them would cost every command that reads a certificate
milliseconds.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Record(BaseModel):
    """Base of all parts of a certificate: immutable, and unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class OutputRecord(Record):
    """The result of a command as JSON."""

    def to_json(self) -> str:
        """Return the result as JSON."""
        return self.model_dump_json(indent=2) + "\n"
