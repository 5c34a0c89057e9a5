"""The JSON Schema: up to date, and of one mind with the validator about single fields."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml
from document_samples import BASE, CHOOSING, PHASED, edited, load_text
from jsonschema import Draft202012Validator
from places import ROOT
from snapshots import Snapshot
from wrong_fields import FIELDS, KEYS, MISSING

#: As it is committed; tests/house/test_reference.py compares it with the models.
SCHEMA = json.loads((ROOT / "schemas" / "mechanism.v1.schema.json").read_text(encoding="utf-8"))


class CoreLoader(yaml.SafeLoader):
    """YAML as editors read it, by the core schema of YAML 1.2: no underscores, no `on`, but `1e-5`."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML gives it no annotation either


for tag, pattern in {
    "null": r"^(?:null|Null|NULL|~|)$",
    "bool": r"^(?:true|True|TRUE|false|False|FALSE)$",
    "int": r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$",
    "float": r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN))$",
}.items():
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), None)


def construct_integer(loader: CoreLoader, node: yaml.ScalarNode) -> int:
    return int(node.value, 8 if node.value.startswith("0o") else 16 if node.value.startswith("0x") else 10)


def construct_float(loader: CoreLoader, node: yaml.ScalarNode) -> float:
    return float(node.value.replace(".inf", "inf").replace(".nan", "nan"))


CoreLoader.add_constructor("tag:yaml.org,2002:int", construct_integer)
CoreLoader.add_constructor("tag:yaml.org,2002:float", construct_float)


def as_an_editor(text: str) -> list[str]:
    """What an editor complains about."""
    value = yaml.load(text, CoreLoader)
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(value)]


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_field_is_described() -> None:
    sections = [SCHEMA, *(it for it in SCHEMA["$defs"].values() if it["type"] == "object")]
    for section in sections:
        for name, field in section["properties"].items():
            described = field if "$ref" not in field else {**SCHEMA["$defs"][field["$ref"].split("/")[-1]], **field}
            assert described["description"].endswith("."), name
            assert "default" not in field or field["default"] is not None


VALID = [
    BASE,
    PHASED,
    CHOOSING,
    edited({6: "  delta: 1.0e-5", 8: "  dataset_size: 5e4", 10: "  iterations: '2_000'"}),
    edited({5: "  epsilon: .5", 6: "  delta: 1E-5", 8: "  dataset_size: 0050000", 10: "  iterations: 0x7d0"}),
    edited({5: "  epsilon: 1_000.5", 9: "  expected_batch_size: 5e2", 14: "  multiplier: 1_0.5e-1"}),
    edited({5: "  epsilon: solve", 14: "  kind: gaussian\n  multiplier: 1"}),
    edited({6: "  delta: solve\n  group_size: 4", 14: "  multiplier: 1\ncount: 1_000\nmatrix: {kind: identity}"}),
    edited({10: "  iterations: solve", 14: "  multiplier: 1\naccounting: {profile: []}"}),
    edited({10: "  epochs: 1_0.5"}),
    edited({10: "  iterations: 2000\n  epochs: 20"}),
    edited({12: "  kind: none\n  max_participations: 3\n  min_separation: 10"}),
    edited({12: "  kind: fixed-size", 14: "  multiplier: 1\naccounting: {time_limit: 90, seed: 18446744073709551615}"}),
    edited({14: "  multiplier: 1\naccounting: {time_limit: 1 h 30 min, method: auto, tolerance: 1e-8}"}),
    edited({14: "  multiplier: 1\naccounting: {time_limit: '90', profile: [0, '1_0', 1e6]}"}),
    edited({14: "  multiplier: 1\naccounting: {method: monte-carlo, verification: betting, seed: 0}"}),
    edited({14: "  multiplier: 1\naccounting: {verification: fixed-sample, tolerance: 0.5}"}),
    *(edited({12: f"  kind: {kind}"}) for kind in ("b-min-sep", "balls-in-bins", "cyclic-poisson")),
    edited({12: "  kind: b-min-sep\n  min_separation: 1_00\n  start: cold"}),
    edited({12: "  kind: balls-in-bins\n  bins: 1e2"}),
    edited({12: "  kind: cyclic-poisson\n  partitions: '100'"}),
    edited({15: "matrix: {kind: banded-square-root, bands: 2_000, normalize: false}"}),
    edited({15: "matrix: {kind: optimal-toeplitz, bands: 1}"}),
    edited({15: "matrix: {kind: toeplitz, coefficients: [1e-9, 0, .5, '1e9', 0], normalize: true}"}),
    edited({15: "matrix: {kind: dense, file: ./folder/a matrix.npy}"}),
    edited({15: "matrix: {kind: optimal-toeplitz, bands: {choose: [16_384, 8, '0x4']}}", 10: "  iterations: 20_000"}),
    edited({15: "matrix: {kind: {choose: [banded-square-root, optimal-toeplitz]}, bands: 4, normalize: false}"}),
    edited({15: "matrix: {kind: {choose: [optimal-toeplitz]}, bands: {choose: [4]}}"}),
]


@pytest.mark.parametrize("text", VALID)
def test_valid_documents(text: str, tmp_path: Path) -> None:
    load_text(tmp_path, text)
    assert as_an_editor(text) == []


# Text that spells a number out of range, and NaN, which JSON does not have, pass an editor by.
BEYOND_SCHEMAS = (
    "1000 days",
    ".nan",
    "nan",
    "infinity",
    "'10.5'",
    "1e999",
    "-.inf",
    ".inf",
    "50_000.5",
    "10_001",
    "\\e",
    "9" * 99,
)
SINGLE_ERRORS = (
    [{line: text} for line, text, *_ in FIELDS if not any(it in text for it in BEYOND_SCHEMAS)]
    + [changes for changes, *_ in KEYS]
    + [changes for changes, *_ in MISSING]
    + [{15: "phases: 3"}, {15: "phases: []"}, {15: "phases: {}"}]
)


@pytest.mark.parametrize("changes", SINGLE_ERRORS, ids=range(len(SINGLE_ERRORS)))
def test_single_errors(changes: dict[int, str | None], tmp_path: Path, snapshot: Snapshot) -> None:
    text = edited(changes)
    snapshot.raised(load_text, tmp_path, text)
    assert as_an_editor(text) != []


def test_neither_or_both_shapes() -> None:
    editor = Draft202012Validator(SCHEMA)
    phased = yaml.load(PHASED, CoreLoader)
    single = yaml.load(BASE, CoreLoader)
    assert editor.is_valid(phased)
    for name in ("training", "sampler", "noise"):
        both = copy.deepcopy(phased) | {name: single[name]}
        assert not editor.is_valid(both)
        assert not editor.is_valid({key: value for key, value in single.items() if key != name})


def test_the_schema_is_plain_json() -> None:
    assert json.loads(json.dumps(SCHEMA, allow_nan=False)) == SCHEMA
