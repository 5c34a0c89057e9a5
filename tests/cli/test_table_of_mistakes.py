"""What people type by mistake, each with the answer that leads on."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from plain_documents import document
from snapshots import Snapshot

import pyaccount
from pyaccount import cli

LAPLACE = {"kind": "laplace", "scale": 20}


def without_noise() -> dict[str, Any]:
    return {key: value for key, value in document().items() if key != "noise"}


def mechanism(kind: str) -> dict[str, Any]:
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}
    return {"pyaccount": 1, "name": "one", "privacy": privacy, "mechanism": {"kind": kind}}


DOCUMENTS = [
    document(noise=LAPLACE, sampler={"kind": "none"}),
    document(noise=LAPLACE, sampler={"kind": "none"}),
    document(noise={"std": 20}),
    document(privacy__epsilon="8 nats"),
    without_noise(),
    document(privacy__unit="user"),
    document(privacy__unit="user"),
    document(privacy__delta=0),
    mechanism("thresholding"),
    mechanism("partition-selection"),
]


@pytest.mark.parametrize("source", DOCUMENTS)
def test_a_document_with_a_mistake(source: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.certify, source)


COMMANDS = [
    ("certify run.yaml --json", "Write --format json"),
    ("sweep run.yaml --vary noise.multiplier", "List the values under `vary:`"),
    ("export cert.json", "Choose from: cyclonedx, spdx, registry"),
    ("report cert.json --record nothing.jsonl", "--record nothing.jsonl: there is no such file"),
    ("verify cert.json --record nothing.jsonl", "--record nothing.jsonl: there is no such file"),
    ("card README.md cert.json", "are the arguments swapped? pyaccount card cert.json README.md"),
    ("check cert.json --policy policy.yaml", "did you mean limits.max_epsilon?"),
]


@pytest.mark.parametrize(("command", "answer"), COMMANDS)
def test_a_command_with_a_mistake(
    command: str,
    answer: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    source = document(privacy__epsilon="solve")
    Path("run.yaml").write_text(yaml.safe_dump(source))
    pyaccount.certify(source).save("cert.json")
    Path("README.md").write_text("# A model\n")
    Path("policy.yaml").write_text(json.dumps({"pyaccount": 1, "kind": "policy", "name": "p", "max_epsilon": 8}))
    assert cli.run(command.split()) == 2
    said = capsys.readouterr()
    assert answer in " ".join(said.err.split())
    assert "\t" not in said.err
    assert said.out == ""


def test_an_accountant_says_which_call_to_use(snapshot: Snapshot) -> None:
    accountant = pyaccount.Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)
    snapshot.raised(lambda: accountant.get_epsilon(1e-5))
    with snapshot.raises(TypeError):
        pyaccount.Accountant(adjacency="add-remove", delta=1e-5, epsilon=3, adaptive=True).step(
            mechanism={"kind": "laplace", "scale": 1}
        )
    with snapshot.raises(AttributeError):
        _ = accountant.epsilons
