"""Documents of kind policy: the limits that a certificate must meet before training, publication or deployment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field

from pyaccount.document import ranges
from pyaccount.document.validation import validate
from pyaccount.document.words import VERSION, Adjacency
from pyaccount.errors import DocumentError, Problem
from pyaccount.files import file_inside
from pyaccount.reading.fields import (
    Choice,
    Duration,
    FieldReader,
    JsonSchema,
    Number,
    Text,
    Version,
    listed,
    refuse,
    wrong_type,
)
from pyaccount.reading.kinds import Section
from pyaccount.reading.nodes import Table
from pyaccount.reading.sources import Handed, of_kind
from pyaccount.reading.spelling import nearest_value
from pyaccount.reading.written import Written

Unit = Literal["record", "user"]
#: The kinds of guarantee, the strongest first.
GuaranteeKind = Literal["deterministic", "verified", "confidence"]

_SHA256 = "[0-9a-f]{64}"


@dataclass(frozen=True)
class Accepted(FieldReader):
    """Reads one word or a list of words as a tuple. Each word must be in `words`, or match the pattern `form`."""

    what: str
    words: tuple[str, ...] = ()
    form: str = ""

    def _read(self, value: object) -> object:
        entries = value if isinstance(value, list | tuple) else (value,)
        if not entries or len(entries) > ranges.SWEEP_LENGTH.maximum:
            raise wrong_type(value, self.allowed)
        for entry in entries:
            if not isinstance(entry, str):
                raise wrong_type(entry, self.allowed)
            if self.words and entry not in self.words:
                raise refuse("unknown-value", f"must be {self.allowed}", self.allowed, nearest_value(entry, self.words))
            if self.form and not re.fullmatch(self.form, entry):
                raise refuse("unknown-value", f"must be {self.allowed}", self.allowed)
        if len(set(entries)) < len(entries):
            raise refuse("contradiction", "a value is listed twice", self.allowed)
        return tuple(entries)

    @property
    def allowed(self) -> str:
        """The accepted values, in words."""
        one = listed(self.words) if self.words else self.what
        return f"{one}, or a list of what is accepted"

    @property
    def words_allowed(self) -> tuple[str, ...]:
        """The words of the choice; empty if a pattern is given instead."""
        return self.words

    def _json_schema(self) -> JsonSchema:
        one: JsonSchema = {"enum": list(self.words)} if self.words else {"type": "string", "pattern": f"^{self.form}$"}
        most = int(ranges.SWEEP_LENGTH.maximum)
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": most, "uniqueItems": True}]}


class Limits(Section):
    """The limits that a certificate must meet. All limits that are given must be met."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    max_epsilon: Annotated[float | None, Number(ranges.EPSILON)] = Field(
        default=None,
        description="The maximum ε. Together with max_delta: the guarantee, or one point of the profile, must be "
        "within both limits. Alone: it applies to the guarantee, whatever δ that has.",
    )
    max_delta: Annotated[float | None, Number(ranges.DELTA_OR_ZERO)] = Field(
        default=None, description="The maximum δ. 0 requires pure differential privacy."
    )
    max_advantage: Annotated[float | None, Number(ranges.ADVANTAGE)] = Field(
        default=None,
        description="The maximum membership advantage of every attack: its true-positive rate minus its "
        "false-positive rate. It applies to every certificate; the bound comes from the budget of risk or from "
        "the profile.",
    )
    max_true_positive_rate: Annotated[float | None, Number(ranges.RATE)] = Field(
        default=None,
        description="The maximum true-positive rate of every attack whose false-positive rate is "
        "at_false_positive_rate. It applies to every certificate, as max_advantage does.",
    )
    at_false_positive_rate: Annotated[float | None, Number(ranges.RATE)] = Field(
        default=None, description="The false-positive rate to which max_true_positive_rate applies."
    )
    adjacency: Annotated[tuple[Adjacency, ...] | None, Accepted("adjacency", words=get_args(Adjacency))] = Field(
        default=None, description="The accepted adjacency, or a list of accepted ones. No adjacency implies another."
    )
    unit: Annotated[Unit | None, Choice(get_args(Unit))] = Field(
        default=None, description="What must be protected: records or users. Neither implies the other."
    )
    group_size: Annotated[int | None, Number(ranges.GROUP_SIZE, whole=True)] = Field(
        default=None, description="The minimum number of records (or users) that are protected together."
    )
    guarantee: Annotated[tuple[GuaranteeKind, ...] | None, Accepted("guarantee", words=get_args(GuaranteeKind))] = (
        Field(
            default=None,
            description="The weakest accepted kind of guarantee: deterministic, verified (deterministic is accepted "
            "too) or confidence (any kind is accepted). In a list, the weakest counts.",
        )
    )
    max_failure_probability: Annotated[float | None, Number(ranges.FAILURE_PROBABILITY)] = Field(
        default=None, description="The maximum probability that the guarantee is false."
    )
    max_age: Annotated[float | None, Duration(ranges.AGE)] = Field(
        default=None, description="The maximum age of the certificate: `90 d`, `12 h`, or a number of seconds."
    )
    document_sha256: Annotated[tuple[str, ...] | None, Accepted("a SHA-256 in hexadecimal", form=_SHA256)] = Field(
        default=None, description="The hash of the accepted document, or a list of hashes."
    )


class BudgetSection(Section):
    """A ledger that keeps the budget of the data on which certified runs take place."""

    ledger: Annotated[str, Text(ranges.FILE_LENGTH)] = Field(
        description="The file of the ledger, relative to the folder of the policy, or the address of a PostgreSQL database "
        "(without a password)."
    )
    data_set: Annotated[str | None, Text(ranges.NAME_LENGTH)] = Field(
        default=None, description="The name of the data set. Default: the only one of the ledger."
    )


class PolicyModel(Section):
    """A document of kind policy."""

    pyaccount: Annotated[int, Version(VERSION)] = Field(description="The version of the document language.")
    kind: Literal["policy"] = Field(description="The kind of this document: limits that a certificate must meet.")
    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the policy.")
    limits: Limits = Field(description="The limits that a certificate must meet.")
    budget: BudgetSection | None = Field(
        default=None,
        description="The budget of the data set: a certificate passes only if it is entered in this ledger, or would fit.",
    )
    independent: Annotated[Literal["required"] | None, Choice(("required",))] = Field(
        default=None,
        description="With `required`, the independent checker must prove the guarantee. This takes seconds to minutes for each "
        "certificate, and some documents are not checkable.",
    )
    trusted_keys: Annotated[str | None, Text(ranges.FILE_LENGTH)] = Field(
        default=None,
        description="A folder of trusted public keys, relative to the folder of the policy. Only attestations pass, "
        "and only if one of these keys signed them.",
    )
    subjects: Annotated[Literal["required"] | None, Choice(("required",))] = Field(
        default=None,
        description="With `required`, the files that the attestation is about must be given, and must be unchanged.",
    )


class Policy(Written):
    """A document of kind policy that has no problems."""

    def __init__(self, root: Table, file: str | None = None, problems: Iterable[Problem] = ()) -> None:
        """Validate a tree, as `Document` does. Raises `DocumentError`."""
        model, invalid = validate(root, PolicyModel)
        super().__init__(root, file, model)
        self.name: str = model.name
        self.limits: Limits = model.limits
        #: The folder of trusted keys, resolved from the folder of the policy. `subjects_required`: whether the attested
        #: files must be given.
        self.trusted_keys: Path | None = None
        #: The place of the ledger, resolved in the same way, and the name of the data set.
        self.budget: tuple[str, str | None] | None = None
        self.subjects_required: bool = model.subjects is not None
        #: Whether the independent checker must prove the guarantee.
        self.independent_required: bool = model.independent is not None
        found = [*problems, *invalid]
        if not found and not model.limits.model_fields_set:
            allowed = ", ".join(Limits.model_fields)
            message = "a policy without a limit accepts everything: give at least one"
            found.append(self.problem("missing-key", ("limits",), message, allowed=allowed))
        pair = ("max_true_positive_rate", "at_false_positive_rate")
        for name, other in (pair, pair[::-1]) if not found else ():
            if getattr(model.limits, name) is None and getattr(model.limits, other) is not None:
                message = f"limits.{name} is required: {other} is given, and a limit on rates has both"
                found.append(self.problem("missing-key", ("limits", name), message, allowed=ranges.RATE.describe()))
        folder = Path(file or "").parent
        if isinstance(model.trusted_keys, str):
            try:
                self.trusted_keys = file_inside(folder, model.trusted_keys).path
            except ValueError as error:
                found.append(self.problem("outside-folder", ("trusted_keys",), str(error)))
        if isinstance(model.budget, BudgetSection) and isinstance(model.budget.ledger, str):
            place = model.budget.ledger
            try:
                self.budget = (place if "://" in place else str(file_inside(folder, place).path), model.budget.data_set)
            except ValueError as error:
                found.append(self.problem("outside-folder", ("budget", "ledger"), str(error)))
        if found:
            raise DocumentError(found)


def load_policy(source: str | os.PathLike[str] | Handed | Mapping[str, Any] | Policy) -> Policy:
    """Load a policy from a YAML file or a mapping. Raises `DocumentError` with every problem, or for other kinds."""
    message = "this is not a policy: a policy has `kind: policy`, and its limits under `limits`"
    return Policy(*of_kind(source, "policy", message, "this is not a policy: its kind must be policy"))
