"""Runs each example of an integration as its page says, with the packages that it is for."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationToMissingValueError
from places import EXAMPLES
from warm_commands import warm

import pyaccount
from pyaccount import Accountant, Certificate

FOLDER = EXAMPLES / "integrations"
DOCUMENT = EXAMPLES / "cifar10-dp-sgd.yaml"


Done = subprocess.CompletedProcess[str]


def run(*command: str, folder: Path, **environment: str) -> Done:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    surroundings = {**os.environ, "PATH": path, **environment}
    return subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)


# Hydra and OmegaConf.


SCRIPT = str(FOLDER / "hydra" / "train.py")


def train(folder: Path, *overrides: str, command: tuple[str, ...] = (sys.executable, SCRIPT)) -> Done:
    return run(*command, "hydra.run.dir=out", *overrides, folder=folder)


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[str, ...]]:
    """Return the script as a forked command that need not import Hydra each time. Training, and a wrong override, start Python
    as the page says.
    """
    modules = (
        "numpy",
        "pyaccount",
        "pyaccount.certificate.certificate",
        "pyaccount.plan.compiling",
        "hydra",
        "omegaconf",
    )
    with warm(SCRIPT, *modules) as client:
        yield (str(client),)


@pytest.mark.nightly(but=["overrides2-5-2.0"])
@pytest.mark.parametrize(
    ("overrides", "steps", "epsilon"),
    [
        ((), 60, 2.0),
        (("mechanism.privacy.epsilon=4", "trainer.steps=30"), 30, 4.0),
        (("mechanism=full-batch", "trainer.steps=5", "mechanism.privacy.delta=1e-9"), 5, 2.0),
    ],
)
def test_a_run_of_hydra_is_certified_and_counted(
    overrides: tuple[str, ...], steps: int, epsilon: float, tmp_path: Path
) -> None:
    done = train(tmp_path, *overrides)
    assert done.returncode == 0, done.stderr
    certificate = Certificate.load(tmp_path / "out" / "training.cert.json")
    assert certificate.holds
    assert certificate.epsilon <= epsilon
    assert certificate.data.phases[0].iterations == steps
    assert pyaccount.check(tmp_path / "out" / "training.cert.json", max_epsilon=epsilon, max_delta=1e-6).passes
    accountant = Accountant.load(tmp_path / "out" / "accountant.json")
    assert accountant.steps == accountant.planned_steps == steps
    assert accountant.epsilon_spent() <= epsilon
    assert done.stdout.startswith(certificate.statement)
    assert "<html" in (tmp_path / "out" / "training.html").read_text(encoding="utf-8")


def test_a_wrong_override_is_located(tmp_path: Path) -> None:
    done = train(tmp_path, "mechanism.noise.multiplier=0")
    assert done.returncode == 1
    assert "noise.multiplier = 0 [out-of-range]" in done.stderr
    assert not (tmp_path / "out" / "training.cert.json").exists()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("mechanism.sampler.kind=fixed-size",), "it knows no fixed-size sampling"),
        (("+mechanism.sampler.truncate_to=120",), "it knows no truncate_to of a sampler"),
        (("mechanism=full-batch", "+mechanism.sampler.max_participations=2"), "no max_participations of a sampler"),
        (("mechanism=full-batch", "+mechanism.noise.kind=laplace"), "it knows no laplace noise"),
        (("+mechanism.count=2",), "it knows no count of 2 runs"),
    ],
)
def test_the_loop_refuses_what_it_does_not_do(
    overrides: tuple[str, ...], message: str, started: tuple[str, ...], tmp_path: Path
) -> None:
    # The loop refuses every certificate here, so wide bounds are sufficient.
    wide = "+mechanism.accounting={profile: [1], tolerance: 0.1}"
    done = train(tmp_path, "trainer.steps=4", wide, *overrides, command=started)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "out" / "accountant.json").exists()


def test_configurations_of_omegaconf_are_documents() -> None:
    config = OmegaConf.load(DOCUMENT)
    assert pyaccount.load(config) == pyaccount.load(DOCUMENT)
    config.steps = 12
    config.training.iterations = "${steps}"
    steps = config.pop("steps")
    nested = OmegaConf.create({"steps": steps, "mechanism": config})
    assert pyaccount.load(nested.mechanism).run.training.iterations == 12
    nested.steps = "???"
    with pytest.raises(InterpolationToMissingValueError):
        OmegaConf.to_container(nested.mechanism, resolve=True, throw_on_missing=True)


# Kubernetes.


@pytest.fixture
def manifest() -> dict[str, Any]:
    parts = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8"))
    return {part["kind"]: part for part in parts}


def mounted(manifest: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Return the volumes of the Job, laid out as on a node: the files of a ConfigMap are links to links."""
    spec = manifest["Job"]["spec"]["template"]["spec"]
    places = {}
    for volume in spec["volumes"]:
        place = folder / volume["name"]
        place.mkdir()
        places[volume["name"]] = place
        if "configMap" in volume:
            assert volume["configMap"]["name"] == manifest["ConfigMap"]["metadata"]["name"]
            (place / "..2026_01_01").mkdir()
            (place / "..data").symlink_to("..2026_01_01")
            for name, text in manifest["ConfigMap"]["data"].items():
                (place / "..2026_01_01" / name).write_text(text, encoding="utf-8")
                (place / name).symlink_to(Path("..data") / name)
    return places


def run_container(container: dict[str, Any], places: dict[str, Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of a container, with its paths replaced by those of the volumes here."""
    arguments = list(container["args"])
    for mount in container["volumeMounts"]:
        arguments = [re.sub(rf"^{mount['mountPath']}(?=/)", str(places[mount["name"]]), one) for one in arguments]
    assert not any(one.startswith(mount["mountPath"]) for one in arguments for mount in container["volumeMounts"])
    return run(*container["command"], *arguments, folder=folder)


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest["Job"]["spec"]["template"]["spec"]
    return [*spec["initContainers"], *spec["containers"]]


def test_the_job_certifies_and_passes(manifest: dict[str, Any], tmp_path: Path) -> None:
    places = mounted(manifest, tmp_path)
    for container in containers(manifest):
        done = run_container(container, places, tmp_path)
        assert done.returncode == 0, done.stderr
    assert Certificate.load(places["certificates"] / "training.json").epsilon <= 8


def test_the_job_fails_where_the_policy_is_not_kept(manifest: dict[str, Any], tmp_path: Path) -> None:
    data = manifest["ConfigMap"]["data"]
    data["training.yaml"] = data["training.yaml"].replace("epsilon: 8", "epsilon: 9")
    places = mounted(manifest, tmp_path)
    codes = [run_container(container, places, tmp_path).returncode for container in containers(manifest)]
    assert codes == [0, 1]


def test_the_job_fails_where_the_document_is_wrong(manifest: dict[str, Any], tmp_path: Path) -> None:
    data = manifest["ConfigMap"]["data"]
    data["training.yaml"] = data["training.yaml"].replace("kind: poisson", "kind: posson")
    done = run_container(containers(manifest)[0], mounted(manifest, tmp_path), tmp_path)
    assert done.returncode == 2
    assert "sampler.kind" in done.stderr


# MLflow.


def test_a_certificate_in_mlflow(tmp_path: Path) -> None:
    script = str(FOLDER / "mlflow_log.py")
    store = {"MLFLOW_TRACKING_URI": (tmp_path / "runs").as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"}
    done = run(sys.executable, script, str(DOCUMENT), folder=tmp_path, **store)
    assert done.returncode == 0, done.stderr
    # The results are read with the library in a process of its own, because it leaves much behind.
    reader = (
        "import json, mlflow\n"
        "client = mlflow.MlflowClient()\n"
        "(run,) = client.search_runs(['0'])\n"
        "steps = client.get_metric_history(run.info.run_id, 'privacy.epsilon_so_far_upper')\n"
        "files = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path='privacy')\n"
        "history = [(one.step, one.value) for one in steps]\n"
        "print(json.dumps([run.info.run_name, run.data.params, run.data.metrics, run.data.tags, history, files]))\n"
    )
    read = run(sys.executable, "-c", reader, folder=tmp_path, **store)
    assert read.returncode == 0, read.stderr
    name, parameters, metrics, tags, history, files = json.loads(read.stdout.splitlines()[-1])
    certificate = Certificate.load(Path(files) / "certificate.json")
    assert name == certificate.data.name
    assert tags["privacy.statement"] == certificate.statement
    assert parameters["privacy.adjacency"] == "add-remove"
    assert parameters["privacy.document_sha256"] == pyaccount.load(DOCUMENT).sha256
    assert metrics["privacy.epsilon_upper"] == certificate.epsilon
    assert metrics["privacy.epsilon_lower"] == certificate.epsilon_lower
    # The name of every bound says which bound it is.
    assert all(metric.endswith(("_upper", "_lower")) for metric in metrics)
    assert [step for step, _ in history] == [500, 1000, 1500, 2000]
    assert [value for _, value in history] == sorted(value for _, value in history)
    assert "<html" in (Path(files) / "report.html").read_text(encoding="utf-8")
    assert Accountant.load(Path(files) / "accountant.json").steps == 2000


@pytest.mark.parametrize(("rounds", "told"), [(1, [1]), (3, [1, 2, 3]), (7, [2, 4, 6, 7])])
def test_short_runs_in_mlflow_are_counted_to_their_end(
    rounds: int, told: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script is run without MLflow, whose start takes seconds; the test checks only the calls to it."""
    seen: list[tuple[str, int]] = []
    states: list[dict[str, Any]] = []
    library = MagicMock()
    client = library.MlflowClient.return_value

    def log_metric(run: str, name: str, value: float, step: int | None = None) -> None:
        if step is not None:
            seen.append((name, step))

    def log_text(run: str, text: str, file: str) -> None:
        if file.endswith("accountant.json"):
            states[:] = [json.loads(text)]

    client.log_metric, client.log_text = log_metric, log_text
    monkeypatch.setitem(sys.modules, "mlflow", library)
    document = pyaccount.load(DOCUMENT).with_value(("training", "iterations"), rounds).to_mapping()
    (tmp_path / "short.json").write_text(json.dumps(document), encoding="utf-8")
    runpy.run_path(str(FOLDER / "mlflow_log.py"))["main"](str(tmp_path / "short.json"))
    assert seen == [("privacy.epsilon_so_far_upper", step) for step in told]
    assert [state["steps"] for state in states] == [rounds]
