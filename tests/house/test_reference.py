"""The reference pages agree with the models and commands, and are complete."""

import json
import re
import runpy
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from jsonschema import Draft202012Validator
from places import EXAMPLES, ROOT

import pyaccount
from pyaccount import cli, errors, schemas
from pyaccount.document.amplification import Amplification
from pyaccount.document.document import Document
from pyaccount.document.loading import load_written
from pyaccount.document.policy import Policy
from pyaccount.errors import SLUGS
from pyaccount.plan import mechanisms, samplers
from pyaccount.reading.kinds import word_of

reference = SimpleNamespace(**runpy.run_path(str(ROOT / ".ci" / "site" / "reference.py")))
FOLDER = ROOT / "docs" / "reference"
#: What errors have in common, which are not raised.
BASES = ("PyaccountError", "_LocatedError")
#: What was committed, without the page of cells: making the pages takes a while, and is left to their tests.
PAGES = sorted(path.name for path in FOLDER.iterdir() if path.stem != "cells")
pages = cache(reference.pages)


@pytest.mark.parametrize("name", PAGES)
def test_committed_pages_are_current(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text == pages()[name], "run `make reference`"
    # A row of a table is a line.
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert [row for row in rows if not row.endswith("|")] == []


def test_the_page_of_cells_is_current() -> None:
    """Every cell is compiled, so that the page says what plans say."""
    cells = SimpleNamespace(**runpy.run_path(str(ROOT / ".ci" / "site" / "cells.py")))
    assert (ROOT / "docs" / "reference" / "cells.md").read_text(encoding="utf-8") == cells.page(), (
        "run `make reference`"
    )


def test_the_page_of_cells_has_every_kind() -> None:
    cells = SimpleNamespace(**runpy.run_path(str(ROOT / ".ci" / "site" / "cells.py")))
    assert {sampler["kind"] for sampler, _ in cells.SAMPLERS.values()} == set(samplers.PLANS)
    assert {one["kind"] for one in cells.MECHANISMS.values()} == {word_of(kind) for kind in mechanisms.PLANS}


def test_nothing_else_lies_among_the_pages() -> None:
    assert sorted(pages()) == PAGES


@pytest.mark.parametrize(
    ("schema", "page"),
    [
        ("mechanism", "documents.md"), ("amplification", "documents.md"), ("policy", "documents.md"),
        ("certificate", "certificates.md"), ("amplification-certificate", "certificates.md"),
    ],
)  # fmt: skip
def test_every_key_of_the_schemas_is_explained(schema: str, page: str) -> None:
    """The descriptions in the JSON Schema are on the page; this does not use the code that makes the pages."""
    text = (FOLDER / page).read_text(encoding="utf-8").replace("\\|", "|")
    described = json.loads((ROOT / "schemas" / f"{schema}.v1.schema.json").read_text(encoding="utf-8"))
    for part in [described, *described.get("$defs", {}).values()]:
        for key, value in part.get("properties", {}).items():
            rows = [line for line in text.splitlines() if line.startswith(f"| `{key}` |")]
            if key == "kind" and (set(value) & {"const", "enum"}):
                words = value.get("enum", [value.get("const")])
                assert all(f"`kind: {word}`" in text or f"`{word}`" in text for word in words)
                continue
            if "choose" in json.dumps(part.get("properties", {}).get("kind", {})):
                continue  # the alternatives of a choice have the keys of the kinds they are made of
            assert rows, f"{schema}: {key}"
            if "description" in value:
                assert any(value["description"] in row for row in rows), f"{schema}: {key}"


def test_every_field_has_a_description() -> None:
    for name in ("mechanism", "amplification", "policy", "certificate", "amplification-certificate"):
        schema = schemas.SCHEMAS[name]()
        parts = schema.get("$defs", {})
        for part in [schema, *parts.values()]:
            for key, value in part.get("properties", {}).items():
                target = parts.get(str(value.get("$ref", "")).rsplit("/", 1)[-1], {})
                assert value.get("description") or target.get("description"), f"{name}: {key}"


def test_every_command_option_and_slug_is_named() -> None:
    commands = (FOLDER / "commands.md").read_text(encoding="utf-8")
    for name, command in cli.all_commands().items():
        section = re.search(rf"^## pyaccount {name}\n(.*?)(?=^## |\Z)", commands, flags=re.DOTALL | re.MULTILINE)
        assert section
        assert "```sh\npyaccount" in section[1]
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert option in section[1]
    errors = (FOLDER / "errors.md").read_text(encoding="utf-8")
    for slug, meaning in SLUGS.items():
        assert f"| `{slug}` | {meaning} |" in errors


def test_every_exception_stands_beside_its_exit_code() -> None:
    """Exceptions are found by their names in the module, not by their base class."""
    named = {name: error for name, error in vars(errors).items() if name.endswith("Error") and name not in BASES}
    assert "StateError" in named
    page = (FOLDER / "errors.md").read_text(encoding="utf-8")
    for name, error in named.items():
        assert f"\n| `{name}` | {error.exit_code} |" in page
        assert re.search(rf"\n\| {error.exit_code} \|.*`{name}`", page)


# ---- The committed JSON Schemas agree with the models, and the examples and certificates satisfy them


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
