"""Seeded changes of valid certificates by their JSON Schema: values inside and just outside of it, missing fields, and lists of
other lengths. A careless or hostile author may write such certificates, and random damage to the text hardly ever makes them.
"""

import copy
import json
import math
import random
from typing import Any

from mutations import EXTREMES, damaged

Schema = dict[str, Any]
Path = tuple[str | int, ...]

#: Texts for a field: of the wrong kind, of another field, and with control characters.
TEXTS = [
    "", "x", "solve", "none", "poisson", "identity", "1e-5", "a\nb", "\u001b[31m\u202e", "ü" * 300, "privacy.epsilon", "9" * 64,
]  # fmt: skip
#: Numbers at which arithmetic may fail.
NUMBERS = [
    0.0, -0.0, 5e-324, 1e-310, 1e-300, 1e-17, 1e-8, 0.5, 1.0, 1.0 + 2**-52, 1.0 - 2**-53, 2.0, 709.0, 1e3, 1e9, 1e17, 1e154,
    1e300, 1.7976931348623157e308, -5e-324, -1e-8, -1.0, -1e308,
]  # fmt: skip
WHOLE = [
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    1000,
    10**6,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**18,
    10**30,
    10**308,
    10**400,
    -(10**30),
]
#: The probability of a change that ignores the schema.
ANYTHING = 0.08


def resolved(schema: Schema, root: Schema) -> Schema:
    """Return a schema with the reference at its top resolved."""
    while "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def alternatives(schema: Schema, root: Schema) -> list[Schema]:
    """Return the alternatives for a value: the schema itself, or those of `anyOf`."""
    schema = resolved(schema, root)
    listed = schema.get("anyOf") or schema.get("oneOf")
    return [one for part in listed for one in alternatives(part, root)] if listed else [schema]


def places(value: Any, schema: Schema, root: Schema, path: Path = ()) -> list[tuple[Path, list[Schema]]]:
    """Return every place below a value: its path, and the schemas that are allowed there."""
    found: list[tuple[Path, list[Schema]]] = []
    for one in alternatives(schema, root):
        if isinstance(value, dict) and (one.get("type") == "object" or "properties" in one):
            fields, more = one.get("properties", {}), one.get("additionalProperties")
            below = {key: fields.get(key, more if isinstance(more, dict) else {}) for key in value}
        elif isinstance(value, list) and one.get("type") == "array":
            below = dict.fromkeys(range(len(value)), one.get("items", {}))
        else:
            continue
        for key, inner in below.items():
            found.append(((*path, key), alternatives(inner, root)))
            found += places(value[key], inner, root, (*path, key))
    return found


class Varied:
    """A certificate whose copies are changed. Every field is equally likely, regardless of how many entries its list has."""

    def __init__(self, certificate: dict[str, Any], schema: Schema) -> None:
        self.text = json.dumps(certificate)
        self.shapes: dict[Path, list[tuple[Path, list[Schema]]]] = {}
        for path, schemas in places(certificate, schema, schema):
            shape = tuple("*" if isinstance(part, int) else part for part in path)
            self.shapes.setdefault(shape, []).append((path, schemas))
        self.keys = list(self.shapes)

    def copy(self, rng: random.Random) -> dict[str, Any]:
        """Return a copy with a few fields changed or removed, and sometimes with a damaged document."""
        data: dict[str, Any] = json.loads(self.text)
        if rng.random() < 0.2 and "document" in data:
            data["document"] = damaged(data["document"], rng)
        for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
            (*above, key), schemas = rng.choice(self.shapes[rng.choice(self.keys)])
            try:
                container = data
                for part in above:
                    container = container[part]
                if isinstance(container, dict) and rng.random() < 0.15:
                    del container[key]
                else:
                    container[key] = other(container[key], schemas, rng)
            except (KeyError, IndexError, TypeError):
                # An earlier change removed this place.
                continue
        return data


def other(value: Any, schemas: list[Schema], rng: random.Random) -> Any:  # noqa: PLR0911 - one for each sort of value
    """Return another value for a place, inside or just outside of what its schemas allow."""
    if rng.random() < ANYTHING:
        return copy.deepcopy(rng.choice(EXTREMES))
    schema = rng.choice(schemas)
    if "const" in schema:
        return rng.choice([schema["const"], "", 0, 2])
    if "enum" in schema:
        return rng.choice([*schema["enum"], "", "other"])
    kind = schema.get("type")
    if kind in ("number", "integer"):
        return _number(value, schema, rng, whole=kind == "integer")
    if kind == "boolean":
        return rng.choice([True, False])
    if kind == "string":
        return rng.choice(TEXTS)
    if kind == "array":
        return _list(value if isinstance(value, list) else [], rng)
    if kind == "null":
        return None
    if kind == "object" or isinstance(value, dict):
        mapping = dict(value) if isinstance(value, dict) else {}
        if mapping and rng.random() < 0.7:
            del mapping[rng.choice(list(mapping))]
        return mapping
    return copy.deepcopy(rng.choice(EXTREMES))


def _number(value: Any, schema: Schema, rng: random.Random, *, whole: bool) -> float | int:
    ends = [schema[name] for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if name in schema]
    if whole:
        near = [end + step for end in ends for step in (-1, 0, 1)]
        near += [value + step for step in (-1, 1)] if isinstance(value, int) else []
        return rng.choice([*near, *WHOLE, *WHOLE, 1.0, 0.5])
    inside = rng.random() < 0.75
    near = [found for end in ends for found in (math.nextafter(end, -math.inf), end, math.nextafter(end, math.inf))]
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        near += [
            -value,
            math.nextafter(value, math.inf),
            *(value * factor for factor in (2.0, 0.5, 1.0 + 1e-9, 1e-9, 1e9)),
        ]
    listed = [*near, *near, *NUMBERS]
    allowed = [one for one in listed if schema.get("minimum", -math.inf) <= one <= schema.get("maximum", math.inf)]
    return rng.choice(allowed if inside and allowed else [*listed, *WHOLE[:9]])


def _list(value: list[Any], rng: random.Random) -> list[Any]:
    action = rng.randrange(6)
    if action == 0 or not value:
        return []
    if action == 1:
        return copy.deepcopy(value[: rng.randrange(len(value))])
    if action == 2:
        return copy.deepcopy(value + value[: rng.randrange(1, len(value) + 1)])
    if action == 3:
        return copy.deepcopy(value[::-1])
    if action == 4:
        return copy.deepcopy(rng.sample(value, len(value)))
    return copy.deepcopy([value[rng.randrange(len(value))]] * rng.choice([1, 2, 3, 50]))
