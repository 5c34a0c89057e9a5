"""The committed JSON Schemas agree with the models, and the examples and certificates satisfy them."""

import json
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from places import EXAMPLES, ROOT

import pyaccount
from pyaccount import schemas
from pyaccount.document.amplification import Amplification
from pyaccount.document.document import Document
from pyaccount.document.loading import load_written
from pyaccount.document.policy import Policy

DOCUMENTS = sorted(EXAMPLES.glob("*.yaml"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all schemas, as `make schemas` writes them."""
    folder = tmp_path_factory.mktemp("schemas")
    schemas.write(folder)
    return folder


@pytest.mark.parametrize("name", sorted(schemas.SCHEMAS))
def test_committed_schemas_are_current(name: str, written: Path) -> None:
    file = f"{name}.v1.schema.json"
    committed = (ROOT / "schemas" / file).read_text(encoding="utf-8")
    assert committed == (written / file).read_text(encoding="utf-8"), "run `make schemas`"
    schema = json.loads(committed)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == f"urn:pyaccount:schema:{name}:v1"


def test_nothing_else_lies_among_the_schemas() -> None:
    assert {path.name for path in (ROOT / "schemas").iterdir()} == {
        f"{name}.v1.schema.json" for name in schemas.SCHEMAS
    }


@cache
def validator_of(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schemas.SCHEMAS[kind]())


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_examples_point_editors_to_the_schema_and_satisfy_it(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    document = load_written(path)
    kinds = {Document: "mechanism", Amplification: "amplification", Policy: "policy"}
    kind = kinds[type(document)]
    assert first == f"# yaml-language-server: $schema=../schemas/{kind}.v1.schema.json"
    assert list(validator_of(kind).iter_errors(document.to_mapping())) == []


def test_certificates_satisfy_their_schema() -> None:
    validator = Draft202012Validator(schemas.schema("certificate"))
    for path in (EXAMPLES / "check-a-claim.yaml", EXAMPLES / "pretrain-and-finetune.yaml"):
        certificate = pyaccount.certify(path)
        assert list(validator.iter_errors(json.loads(certificate.to_json()))) == []
