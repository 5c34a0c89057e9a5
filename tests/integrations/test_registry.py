"""The drafts for the registry of deployments fit its schema, once a person has filled in the rest."""

import json
import re
from typing import Any

import pytest
import yaml
from certificate_samples import MORE, fresh
from gate_tools import RUNS, golden
from jsonschema import Draft202012Validator
from places import GOLDEN
from snapshots import Snapshot

from pyaccount.integrations.registry import SECTIONS, TO_FILL_IN, registry

SCHEMA: dict[str, Any] = json.loads((GOLDEN / "deployments_registry.json").read_text(encoding="utf-8"))["schema"]
FIELDS = {name: set(one["properties"]) for name, one in SCHEMA["properties"]["deployment"]["properties"].items()}
#: What a person might write.
FILLED = {
    "name": "Tiny",
    "data_curators": ["Example Ltd"],
    "description": "A model.",
    "intended_use": "Examples.",
    "data_product_type": "Machine learning model",
    "data_product_region": "Nowhere",
    "publication_date": "2027-01-31",
    "registry_authors": ["A person"],
}


def filled(text: str) -> dict[str, Any]:
    """Return a draft in which a person has replaced comments by values, and removed the empty sections."""
    for name, value in FILLED.items():
        assert f"# {name}: fill in: " in text
        text = re.sub(rf"# {name}: fill in: .*", f"{name}: {json.dumps(value)}", text)
    found: dict[str, Any] = yaml.safe_load(text)
    found["deployment"] = {name: section for name, section in found["deployment"].items() if section is not None}
    return found


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"claim-fails"}))
def test_a_completed_draft_fits_the_schema(name: str) -> None:
    draft = filled(registry(RUNS[name]))
    Draft202012Validator(SCHEMA).validate(draft)
    loss, guarantee = draft["deployment"]["privacy_loss"], golden(name)["guarantee"]
    assert loss["privacy_parameters"] == {"epsilon": guarantee["epsilon"], "delta": guarantee["delta"]}
    assert "upper bounds" in loss["privacy_parameters_details"]
    assert guarantee["kind"] in loss["privacy_parameters_details"]
    chance = "do not hold with probability at most" in loss["privacy_parameters_details"]
    assert chance == (guarantee["failure_probability"] > 0)
    assert golden(name)["statement"] in draft["deployment"]["administrative"]["notes"]


@pytest.mark.parametrize("name", MORE)
def test_drafts_of_every_kind_of_certificate(name: str) -> None:
    Draft202012Validator(SCHEMA).validate(filled(registry(fresh(name))))


def test_a_draft_alone_is_not_complete() -> None:
    found = yaml.safe_load(registry(RUNS["deterministic"]))
    assert list(found["deployment"]) == list(SECTIONS)
    assert not Draft202012Validator(SCHEMA).is_valid(found)


def test_the_names_are_those_of_the_registry() -> None:
    known = yaml.safe_load(registry(RUNS["deterministic"]))["deployment"]
    for section, fields in FIELDS.items():
        asked = set(TO_FILL_IN.get(section, {}))
        written = set(known[section] or {})
        assert asked | written <= fields
        assert not asked & written
        # Nothing of the registry is forgotten, except for further details of what is asked for.
        assert all(name.endswith("_details") for name in fields - asked - written)
    required = {
        name
        for section in SCHEMA["properties"]["deployment"]["properties"].values()
        for name in section.get("required", ())
    }
    assert required <= FILLED.keys()
    words = SCHEMA["properties"]["deployment"]["properties"]["basic"]["properties"]["data_product_sector"]["enum"]
    assert all(word in TO_FILL_IN["basic"]["data_product_sector"] for word in words)


def test_a_group_is_the_unit() -> None:
    loss = yaml.safe_load(registry(RUNS["group-of-phases"]))["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "group of 4 records"
    assert "the contribution of up to 4 records by zero" in loss["privacy_unit_details"]


def test_a_failed_claim_is_not_registered(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: registry(RUNS["claim-fails"]))
