"""Certificates in trackers of experiments, with the real packages: MLflow's store of files, and Weights & Biases offline."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gate_tools import RUNS, golden
from places import EXAMPLES
from snapshots import Snapshot

import pyaccount
from pyaccount import Certificate, DomainError
from pyaccount.integrations import mlflow as in_mlflow
from pyaccount.integrations import wandb as in_wandb
from pyaccount.integrations.facts import tracked

CERTIFICATE = RUNS["deterministic"]
HAS_WANDB = importlib.util.find_spec("wandb") is not None


def python(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, because trackers leave threads and settings behind."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- what is logged


def test_every_number_says_which_bound_it_is() -> None:
    known = tracked(CERTIFICATE)
    guarantee = golden("deterministic")["guarantee"]
    assert known.metrics == {
        "epsilon_upper": guarantee["epsilon"],
        "epsilon_lower": guarantee["epsilon_lower"],
        "delta_upper": guarantee["delta"],
        "delta_lower": guarantee["delta_lower"],
        "failure_probability_upper": guarantee["failure_probability"],
    }
    assert known.parameters["certificate_sha256"] == hashlib.sha256(CERTIFICATE.read_bytes()).hexdigest()
    assert known.files["certificate.json"].encode() == CERTIFICATE.read_bytes()
    assert "<html" in known.files["report.html"]


def test_a_certificate_in_memory_is_logged_with_the_digest_of_what_is_logged() -> None:
    known = tracked(Certificate.load(CERTIFICATE))
    digest = hashlib.sha256(known.files["certificate.json"].encode()).hexdigest()
    assert known.parameters["certificate_sha256"] == digest


def test_a_claim_that_fails_is_logged_as_such() -> None:
    known = tracked(RUNS["claim-fails"])
    assert known.parameters["holds"] is False
    assert known.metrics["epsilon_upper"] == golden("claim-fails")["guarantee"]["epsilon"]


@pytest.mark.parametrize(("module", "package"), [(in_mlflow, "mlflow"), (in_wandb, "wandb")])
def test_a_missing_package_is_named(
    module: Any, package: str, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    snapshot.raised(module.log_certificate, CERTIFICATE)


# ---- MLflow

_IN_MLFLOW = """
import json, sys
import mlflow
import pyaccount
from pyaccount.integrations.mlflow import log_certificate, log_spent

try:
    log_certificate(sys.argv[1] if len(sys.argv) > 1 else CERTIFICATE)
except pyaccount.DomainError as error:
    print(error)
client = mlflow.MlflowClient()
run = client.create_run("0").info.run_id
log_certificate(CERTIFICATE, run_id=run, folder="proof")
accountant = pyaccount.Accountant.from_certificate(pyaccount.Certificate.load(CERTIFICATE))
accountant.step(3)
epsilon = log_spent(accountant, run_id=run)
data = client.get_run(run).data
files = mlflow.artifacts.download_artifacts(run_id=run)
print(json.dumps([data.params, data.metrics, data.tags, files, epsilon]))
"""


def test_a_certificate_in_a_run_of_mlflow(tmp_path: Path) -> None:
    store = {"MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    done = python(f"CERTIFICATE = {str(CERTIFICATE)!r}\n{_IN_MLFLOW}", tmp_path, **store)
    assert done.returncode == 0, done.stderr
    said, last = done.stdout.splitlines()[-2:]
    assert "no run is active: begin one with mlflow.start_run()" in said
    parameters, metrics, tags, files, epsilon = json.loads(last)
    known = tracked(CERTIFICATE)
    assert parameters == {f"privacy.{name}": str(value) for name, value in known.parameters.items()}
    so_far = metrics.pop("privacy.epsilon_so_far_upper")
    assert metrics == {f"privacy.{name}": value for name, value in known.metrics.items()}
    assert 0 < so_far == epsilon < known.metrics["epsilon_upper"]
    assert tags["privacy.statement"] == golden("deterministic")["statement"]
    assert (Path(files) / "proof" / "certificate.json").read_bytes() == CERTIFICATE.read_bytes()
    assert pyaccount.Accountant.load(Path(files) / "privacy" / "accountant.json").steps == 3


# ---- Weights & Biases

#: Prints the records of an offline run. Its file has a header of 7 bytes, and then records in blocks, as logs of LevelDB have:
#: a checksum, a length, and whether the record is whole (1) or its first (2), a middle (3) or its last (4) part.
_READ_WANDB = """
import glob, json, struct
from pathlib import Path
from wandb.proto import wandb_internal_pb2

def records(data):
    place, whole = 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, part = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if part in (1, 4):
            yield whole
            whole = b""

(file,) = glob.glob("wandb/offline-run-*/run-*.wandb")
config, summary, history, artifacts = {}, {}, [], []
for data in records(Path(file).read_bytes()):
    record = wandb_internal_pb2.Record()
    record.ParseFromString(data)
    for one in (*record.config.update, *record.run.config.update):
        config[one.key or "/".join(one.nested_key)] = json.loads(one.value_json)
    for one in record.summary.update:
        summary[one.key or "/".join(one.nested_key)] = json.loads(one.value_json)
    if record.history.item:
        history.append({one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in record.history.item})
    artifact = record.artifact if record.HasField("artifact") else record.request.log_artifact.artifact
    if artifact.name:
        files = {one.path: one.local_path for one in artifact.manifest.contents}
        artifacts.append([artifact.name, artifact.type, files])
print(json.dumps([config, summary, history, artifacts]))
"""


@pytest.mark.skipif(not HAS_WANDB, reason="wandb is not installed: certificates are NOT logged to Weights & Biases")
def test_a_certificate_in_a_run_of_wandb(tmp_path: Path) -> None:
    offline = {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        **{f"WANDB_{name}_DIR": str(tmp_path / name.lower()) for name in ("DATA", "CACHE", "CONFIG", "ARTIFACT")},
    }
    script, document = EXAMPLES / "integrations" / "wandb_log.py", EXAMPLES / "cifar10-dp-sgd.yaml"
    program = (
        f"import runpy, sys; sys.argv[1:] = [{str(document)!r}]; runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    done, read = python(program, tmp_path, **offline), python(_READ_WANDB, tmp_path, **offline)
    assert (done.returncode, read.returncode) == (0, 0), done.stderr + read.stderr
    config, summary, history, ((name, kind, files),) = json.loads(read.stdout.splitlines()[-1])
    certificate = Certificate.load(files["certificate.json"])
    known = tracked(files["certificate.json"])
    assert kind == "privacy-certificate"
    assert name.startswith("certificate-" + certificate.data.document_sha256[:40])
    assert {f"privacy/{key}": value for key, value in known.metrics.items()}.items() <= summary.items()
    parameters = {**known.parameters, "statement": certificate.statement}
    assert {f"privacy/{key}": value for key, value in parameters.items()}.items() <= config.items()
    assert [row["privacy/rounds"] for row in history] == [500, 1000, 1500, 2000]
    spent = [row["privacy/epsilon_so_far_upper"] for row in history]
    assert spent == sorted(spent)
    assert "<html" in Path(files["report.html"]).read_text(encoding="utf-8")


@pytest.mark.skipif(not HAS_WANDB, reason="wandb is not installed: a missing run is NOT tried")
def test_a_run_of_wandb_must_have_begun() -> None:
    with pytest.raises(DomainError, match=r"begin one with wandb\.init"):
        in_wandb.log_certificate(CERTIFICATE)
