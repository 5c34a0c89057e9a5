"""Bills of materials are valid for the readers of their formats, and state the certificate."""

import hashlib
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from certificate_samples import MORE, fresh
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from gate_tools import RUNS, golden
from snapshots import Snapshot
from spdx_python_model import v3_0_1 as model_of_spdx

from pyaccount import __version__
from pyaccount.integrations.cyclonedx import PREFIX, cyclonedx
from pyaccount.integrations.facts import DescribedModel
from pyaccount.integrations.spdx import missing, spdx

CERTIFICATE = RUNS["deterministic"]
THEN = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)
FULL = DescribedModel("tiny", "1.0", "Example Ltd", "https://example.org/tiny", "Apache-2.0", "2027-01-31")
HOLDING = sorted(RUNS.keys() - {"claim-fails"})


@pytest.fixture
def weights(tmp_path: Path) -> list[Path]:
    """Return two files of a model, one of them with a name that is unusual in a URL."""
    paths = [tmp_path / "model.safetensors", tmp_path / "tokens #1.json"]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def check_cyclonedx(text: str) -> dict[str, Any]:
    """Check a bill with the official JSON schema, without further fields."""
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found: dict[str, Any] = json.loads(text)
    return found


def read_spdx(text: str) -> Any:
    """Read a bill with the classes that SPDX makes from its model.

    Reading checks types and words, and writing checks how many values a property has.
    """
    objects = model_of_spdx.SHACLObjectSet()
    model_of_spdx.JSONLDDeserializer().read(io.BytesIO(text.encode()), objects)
    assert objects.missing_ids == set()
    written = io.BytesIO()
    model_of_spdx.JSONLDSerializer().write(objects, written)
    assert json.loads(written.getvalue())["@context"] == json.loads(text)["@context"]
    return objects


# ---- CycloneDX


@pytest.mark.parametrize("name", HOLDING)
def test_cyclonedx_is_valid_and_states_every_bound(name: str, weights: list[Path]) -> None:
    bill = check_cyclonedx(cyclonedx(RUNS[name], subjects=weights, model=FULL, created=THEN))
    data = golden(name)
    component = bill["metadata"]["component"]
    assert component["type"] == "machine-learning-model"
    properties = [(one["name"].removeprefix(PREFIX), one["value"]) for one in component["modelCard"]["properties"]]
    known = dict(properties)
    guarantee = data["guarantee"]
    for bound, field in {
        "epsilon_upper": "epsilon",
        "epsilon_lower": "epsilon_lower",
        "delta_upper": "delta",
        "delta_lower": "delta_lower",
        "failure_probability_upper": "failure_probability",
    }.items():
        assert float(known[bound]) == guarantee[field]
    assert known["guarantee"] == guarantee["kind"]
    assert (known["adjacency"], known["unit"]) == (data["privacy"]["adjacency"], data["privacy"]["unit"])
    assert [value for key, value in properties if key == "assumption"] == data["assumptions"]
    certificate, distribution = component["externalReferences"]
    digest = hashlib.sha256(RUNS[name].read_bytes()).hexdigest()
    assert certificate["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert certificate["url"] == RUNS[name].name
    assert distribution["url"] == FULL.download_location
    files = {one["name"]: one["hashes"][0]["content"] for one in component["components"]}
    assert files == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in weights}


@pytest.mark.parametrize("name", MORE)
def test_cyclonedx_of_every_kind_of_certificate(name: str) -> None:
    bill = check_cyclonedx(cyclonedx(fresh(name)))
    assert bill["metadata"]["component"]["name"] == "varied"
    assert bill["metadata"]["tools"]["components"][0]["version"] == __version__


def test_the_schema_of_cyclonedx_refuses_what_is_wrong() -> None:
    bill = json.loads(cyclonedx(CERTIFICATE))
    bill["metadata"]["component"]["epsilon"] = 2
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is not None


# ---- SPDX


def _expand(word: str) -> str:
    return f"https://spdx.org/rdf/3.0.1/terms/Core/{word}"


@pytest.mark.parametrize("name", HOLDING)
def test_spdx_is_read_and_states_every_bound(name: str, weights: list[Path]) -> None:
    objects = read_spdx(spdx(RUNS[name], subjects=weights, model=FULL, created=THEN))
    data = golden(name)
    (package,) = objects.foreach_type("ai_AIPackage")
    metrics = {one.key.removeprefix("differential privacy: "): one.value for one in package.ai_metric}
    assert float(metrics["epsilon_upper"]) == data["guarantee"]["epsilon"]
    assert float(metrics["epsilon_lower"]) == data["guarantee"]["epsilon_lower"]
    assert float(metrics["delta_upper"]) == data["guarantee"]["delta"]
    assert float(metrics["delta_lower"]) == data["guarantee"]["delta_lower"]
    assert float(metrics["failure_probability_upper"]) == data["guarantee"]["failure_probability"]
    assert package.ai_informationAboutTraining == data["statement"]
    assert all(assumption in package.ai_limitation for assumption in data["assumptions"])
    assert package.suppliedBy.name == "Example Ltd"
    assert package.releaseTime == datetime(2027, 1, 31, tzinfo=UTC)
    digests = {one.name: one.verifiedUsing[0].hashValue for one in objects.foreach_type("software_File")}
    files = [RUNS[name], *weights]
    assert digests == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    relations = {one.relationshipType.rpartition("/")[2]: one for one in objects.foreach_type("Relationship")}
    # What the AI profile requires beside the fields of a package: exactly one relationship for each kind of licence.
    assert set(relations) == {"hasEvidence", "contains", "hasDeclaredLicense", "hasConcludedLicense"}
    assert all(one.from_ is package for one in relations.values())
    assert relations["hasDeclaredLicense"].to[0].simplelicensing_licenseExpression == "Apache-2.0"
    assert len(relations["contains"].to) == 2
    (document,) = objects.foreach_type("SpdxDocument")
    assert document.rootElement[0] is package
    assert _expand("ProfileIdentifierType/ai") in document.profileConformance


@pytest.mark.parametrize("name", MORE)
def test_spdx_of_every_kind_of_certificate(name: str) -> None:
    objects = read_spdx(spdx(fresh(name)))
    (document,) = objects.foreach_type("SpdxDocument")
    # Nothing is known of what the AI profile requires.
    assert _expand("ProfileIdentifierType/ai") not in document.profileConformance
    assert missing(DescribedModel()) == ["version", "supplier", "download_location", "release_time"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"sha256"', '"sha257"'),
        ('"privacyAssessment"', '"privacy"'),
        ('"key"', '"keys"'),
        ('"created": "2027-01-31T12:00:00Z"', '"created": "today"'),
        ('"hasEvidence",', '"hasProof",'),
        ('"hashValue"', '"comment"'),
    ],
)
def test_the_model_of_spdx_refuses_what_is_wrong(old: str, new: str) -> None:
    text = spdx(CERTIFICATE, created=THEN)
    assert old in text
    with pytest.raises((ValueError, KeyError, AttributeError, TypeError)):
        read_spdx(text.replace(old, new))


# ---- both


@pytest.mark.parametrize("write", [cyclonedx, spdx])
def test_the_same_time_gives_the_same_text(
    write: Any, weights: list[Path], monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    text = write(CERTIFICATE, subjects=weights, created=THEN)
    assert text == write(CERTIFICATE, subjects=weights, created=THEN)
    assert text != write(CERTIFICATE, subjects=weights[:1], created=THEN)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(THEN.timestamp())))
    assert text == write(CERTIFICATE, subjects=weights)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    snapshot.raised(write, CERTIFICATE)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    (now,) = set(re.findall(r'"(?:timestamp|created)": "([^"]+)"', write(CERTIFICATE)))
    assert abs((datetime.now(UTC) - datetime.fromisoformat(now)).total_seconds()) < 3600


@pytest.mark.parametrize("write", [cyclonedx, spdx])
def test_what_is_not_described_is_left_out(write: Any) -> None:
    text = write(CERTIFICATE)
    for word in ("supplier", "suppliedBy", "version:", "distribution", "downloadLocation", "releaseTime", "Apache"):
        assert word not in text


@pytest.mark.parametrize("write", [cyclonedx, spdx])
def test_wrong_arguments_are_errors(write: Any, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: write(RUNS["claim-fails"]))
    snapshot.raised(lambda: write(CERTIFICATE, model=DescribedModel(release_time="soon")))
    snapshot.raised(lambda: write(CERTIFICATE, subjects=[tmp_path / "absent"]))
    with pytest.raises(TypeError, match="a list of files"):
        write(CERTIFICATE, subjects=str(tmp_path))
