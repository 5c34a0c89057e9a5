"""The page on ledgers is run from top to bottom, and its outputs are compared; so are the platform's examples."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from ledger_samples import Clock, gaussian, stated
from places import EXAMPLES, ROOT

import pyaccount
from pyaccount import cli
from pyaccount.document.data_set import load_data_set

PAGE = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")


def test_a_reader_who_follows_the_page_sees_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = iter(("customers.yaml", "training.yaml", "events.yaml", "policy.yaml"))
    (tmp_path / "count.yaml").write_text(yaml.safe_dump(gaussian(0.1, "count")))
    steps = gaussian(0.1, "steps", rounds=3)
    steps["training"] = {"iterations": 3, "expected_batch_size": 1000}
    pyaccount.certify(steps).save("steps.cert.json")
    namespace: dict[str, Any] = {"sum_of_clipped_gradients": lambda batch: np.zeros(4)}
    printed = from_python = ""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE):
        if language == "yaml":
            (tmp_path / next(files)).write_text(text)
        elif language == "sh":
            printed = ""
            for line in text.splitlines():
                expected = re.search(r"# exit code (\d+)$", line)
                if "amend-clock" in line:
                    # The event of the future that the page speaks of.
                    pyaccount.Ledger("budgets.db", clock=Clock("2099-01-01T00:00:00+00:00")).add_block("new")
                assert cli.run(shlex.split(line, comments=True)[1:]) == (int(expected[1]) if expected else 0)
                printed += capsys.readouterr().out
        elif language == "python":
            exec(compile(text, "ledger.md", "exec"), namespace)
            printed = from_python = capsys.readouterr().out
        else:
            lines = [line.rstrip() for line in printed.splitlines()]
            assert [line for line in text.rstrip().splitlines() if line.rstrip() not in lines] == []
    assert from_python == "committed\n"
    assert "was set back from 2099-01-01" in printed
    assert list(files) == []
    assert load_data_set("events.yaml").periods is not None
    ledger = pyaccount.Ledger("budgets.db")
    assert ledger.verify(recompute=True).intact
    assert pyaccount.check("training.cert.json", policy="policy.yaml")
    assert not pyaccount.check(pyaccount.certify(stated("x", epsilon=5)), policy="policy.yaml")


def test_the_job_runs_these_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the example, with its variables, volumes and data set in a folder."""
    monkeypatch.chdir(tmp_path)
    config, job, metrics = yaml.safe_load_all((EXAMPLES / "ledger" / "kubernetes.yaml").read_text(encoding="utf-8"))
    assert config["data"]["LEDGER"].startswith("postgresql://pyaccount@")
    pod = job["spec"]["template"]["spec"]
    assert job["spec"]["backoffLimit"] == 0
    privacy = {"adjacency": "add-remove", "mu": 1}
    periods = {"every": "month", "since": "2026-01"}
    mapping = {"pyaccount": 1, "kind": "data-set", "name": "customers", "privacy": privacy, "periods": periods}
    pyaccount.Ledger("ledger.db").create(mapping)
    (tmp_path / "certificates").mkdir()
    document = gaussian(0.1, rounds=2)
    document["training"] = {"iterations": 2, "expected_batch_size": 20}
    certificate = pyaccount.certify(document)
    certificate.save("certificates/training.json")
    names = {"LEDGER": "ledger.db", "JOB": job["metadata"]["name"]}

    def filled(word: str) -> str:
        for name, value in names.items():
            word = word.replace(f"$({name})", value).replace(f'"${name}"', value).replace(f"${name}", value)
        return re.sub(r"^\"?/(certificates|runs)/", r"\1/", word).strip('"')

    reserve, train = pod["initContainers"]
    (commit,) = pod["containers"]
    for step in (reserve, train, commit, *metrics["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]):
        variables = {one["name"]: one["valueFrom"] for one in step["env"]}
        assert variables["PGPASSWORD"] == {"secretKeyRef": {"name": "ledger-database", "key": "password"}}
        assert "LEDGER" in variables
    for _ in range(2):
        assert cli.run([*reserve["command"][1:], *map(filled, reserve["args"])]) == 0
    begin, _, training = train["command"][2].partition(" && exec ")
    assert cli.run([filled(word) for word in shlex.split(begin)[1:]]) == 0
    assert "--run" in training
    with pyaccount.TrainingRun(certificate, f"runs/{names['JOB']}", records=20) as run:
        for _ in range(2):
            with run.step() as step:
                step.release(np.zeros(2))
    assert cli.run([*commit["command"][1:], *map(filled, commit["args"])]) == 0
    assert pyaccount.Ledger("ledger.db").entry(names["JOB"]).released_rounds == 2
    capsys.readouterr()
