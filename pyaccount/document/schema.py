"""The JSON Schemas of documents, built from the models; `pyaccount.schemas` adds their names and the draft.

Editors parse YAML 1.2, in which `50_000` is text. So numeric fields also accept text that spells a number. Rules that
need arithmetic between fields are not in the schema; `load` checks them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pyaccount.document.amplification import AmplificationModel
from pyaccount.document.data_set import DataSetModel
from pyaccount.document.models import (
    BODY_KEYS,
    PHASED_KEYS,
    REPLACED,
    SHAPES,
    MechanismDocument,
    PhasedDocument,
    SingleDocument,
)
from pyaccount.document.policy import PolicyModel
from pyaccount.document.sweeps import VARIES, SweepModel
from pyaccount.document.words import VERSION
from pyaccount.reading.fields import DURATION_TEXT, NUMBER_TEXT
from pyaccount.reading.kinds import Section

_TEXTS = {"NumberText": NUMBER_TEXT, "DurationText": DURATION_TEXT}


class _Generator(GenerateJsonSchema):
    """Generates schemas without titles, which repeat the keys, and without `null` defaults, which no field accepts."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        return {key: value for key, value in described.items() if (key, value) != ("default", None)}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def _mechanism_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of mechanism documents."""
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    samplers: dict[type[Section], Any] = {}
    noises: dict[type[Section], Any] = {}
    for shape in SHAPES.members:
        schema = shape.model_json_schema(schema_generator=_Generator)
        definitions |= schema.pop("$defs")
        properties |= schema["properties"]
        if sampler := schema["properties"].get("sampler"):
            samplers[shape] = {key: value for key, value in sampler.items() if key != "description"}
        if noise := schema["properties"].get("noise"):
            noises[shape] = {key: value for key, value in noise.items() if key != "description"}
    # Beside a mechanism, fewer samplers draw its records.
    properties["sampler"] = {
        "anyOf": list(samplers.values()),
        "description": SingleDocument.model_fields["sampler"].description,
    }
    # Beside phases, `noise` is a factor of the noise of all of them.
    properties["noise"] = {
        "anyOf": list(noises.values()),
        "description": SingleDocument.model_fields["noise"].description,
    }
    for definition in definitions.values():
        definition.pop("title", None)
    heads = [
        name for name in PhasedDocument.model_fields if name in SingleDocument.model_fields and name not in BODY_KEYS
    ]
    schema = {
        "title": f"pyaccount mechanism document, version {VERSION}",
        "description": "A mechanism for which pyaccount computes a certificate: what is protected, how it is trained, one blank.",
        "type": "object",
        "properties": {name: properties[name] for name in (*heads, *BODY_KEYS, *PHASED_KEYS)},
        "required": _required(PhasedDocument, heads),
        "additionalProperties": False,
        "oneOf": [
            {
                "required": _required(SingleDocument, BODY_KEYS),
                "properties": {
                    **dict.fromkeys((*PHASED_KEYS, "mechanism"), False),
                    "sampler": samplers[SingleDocument],
                    "noise": noises[SingleDocument],
                },
            },
            {
                "required": ["mechanism"],
                "properties": {
                    **dict.fromkeys((*REPLACED, *PHASED_KEYS), False),
                    "sampler": samplers[MechanismDocument],
                },
            },
            {
                "required": ["phases"],
                "properties": {**dict.fromkeys(BODY_KEYS, False), "noise": noises[PhasedDocument]},
            },
        ],
        "$defs": dict(sorted(definitions.items())),
    }
    tidied: dict[str, Any] = _tidied(schema)
    tidied["$defs"] |= {name: dict(text) for name, text in _TEXTS.items()}
    return tidied


#: The documents that state their kind: the model, the title and the description of each.
_KINDS: dict[str, tuple[type[Section], str, str]] = {
    "amplification": (
        AmplificationModel,
        "amplification document",
        "A mechanism that is run once on a drawn batch, to compute how the draw changes its privacy.",
    ),
    "policy": (PolicyModel, "policy", "Limits that a certificate must meet, for `pyaccount check --policy`."),
    "data-set": (DataSetModel, "data-set", "The privacy budget of a data set, which `pyaccount ledger` keeps."),
}


def document_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of documents of a kind: mechanism, sweep, or one of those that state it."""
    if name in _KINDS:
        return _of_kind(*_KINDS[name])
    return _sweep_schema() if name == "sweep" else _mechanism_schema()


def _sweep_schema() -> dict[str, Any]:
    """Return the schema of sweeps: a mechanism document with `vary`, or a list of documents.

    Values that vary need not be stated elsewhere in the document, so only `vary` is required.
    """
    base, listing = _mechanism_schema(), _of_kind(SweepModel, "sweep", "Documents that are certified one by one.")
    definitions = {name: _open(part) for name, part in base.pop("$defs").items()} | listing.pop("$defs")
    varies = {**listing["properties"]["vary"], "description": VARIES}
    varied = {**_open(base), "properties": {**base["properties"], "vary": varies}, "required": ["vary"]}
    for part in (varied, listing):
        part.pop("title")
    return {
        "title": f"pyaccount sweep, version {VERSION}",
        "description": "Documents that `pyaccount sweep` certifies cell by cell.",
        "anyOf": [varied, listing],
        "$defs": dict(sorted(definitions.items())),
    }


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a section that requires nothing except its kind, which identifies it."""
    opened = {
        key: value
        for key, value in schema.items()
        if not (key in ("anyOf", "oneOf") and all("required" in one for one in value))
    }
    kind = [name for name in opened.pop("required", []) if name == "kind"]
    return opened | ({"required": kind} if kind else {})


def _of_kind(model: type[Section], title: str, description: str) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=_Generator)
    definitions = schema.pop("$defs", {})
    for definition in definitions.values():
        definition.pop("title", None)
    tidied: dict[str, Any] = _tidied(
        {
            **schema,
            "title": f"pyaccount {title}, version {VERSION}",
            "description": description,
            "$defs": dict(sorted(definitions.items())),
        }
    )
    used = repr(tidied)
    tidied["$defs"] |= {name: dict(text) for name, text in _TEXTS.items() if f"#/$defs/{name}'" in used}
    return tidied


def _tidied(schema: Any) -> Any:
    """Return the schema with references to shared text patterns, in the same form for every version of pydantic."""
    for name, text in _TEXTS.items():
        if schema == text:
            return {"$ref": f"#/$defs/{name}"}
    if isinstance(schema, list):
        return [_tidied(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {key: _tidied(value) for key, value in schema.items()}
    if len(tidied.get("allOf", ())) == 1:
        tidied = tidied.pop("allOf")[0] | tidied
    if "const" in tidied:
        tidied.pop("enum", None)
    return tidied


def _required(shape: type[Section], names: Iterable[str]) -> list[str]:
    fields = shape.model_fields
    return [name for name in names if name in fields and fields[name].is_required()]
