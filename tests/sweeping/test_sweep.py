"""Sweeps: every cell is the certificate of its document, what fails stands beside the others, and nothing is done twice."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from gate_tools import interrupted
from jsonschema import Draft202012Validator
from places import EXAMPLES
from plain_documents import document, one_step, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.errors import DocumentError, DomainError, MissingExtraError, NumericsError
from pyaccount.running import Plan
from pyaccount.schemas import SCHEMAS
from pyaccount.sweeping.run import SweepOptions, certified_cells
from pyaccount.sweeping.table import Sweep

VARY = {"noise.multiplier": [1, 2, 4], "privacy.epsilon": [0.5, 1]}


def gaussians(**changes: Any) -> dict[str, Any]:
    """δ of a Gaussian mechanism, for three σ and two ε."""
    return {**one_step(1.0), "vary": VARY, **changes}


def sampled(**changes: Any) -> dict[str, Any]:
    base = sectioned(
        "adjacency=zero-out epsilon=1.5 delta=1e-3 dataset_size=1000 expected_batch_size=20 iterations=24",
        "sampler=b-min-sep min_separation=4 matrix=banded-square-root bands=4 multiplier=0.9 tolerance=0.2",
        "seed=3 profile=[]",
    )
    return document(**{**base, **changes})


def test_cells_are_the_certificates_of_their_documents(tmp_path: Path) -> None:
    found = pyaccount.sweep(gaussians(), certificates=tmp_path / "cells")
    assert found.holds
    assert found.varied == ["noise.multiplier", "privacy.epsilon"]
    assert [row.settings["noise.multiplier"] for row in found.rows] == [1, 1, 2, 2, 4, 4]
    for row in found.rows:
        said = [f"{path}={value}" for path, value in row.settings.items()]
        certificate = pyaccount.certify(one_step(1.0), overrides=said)
        assert (row.epsilon, row.delta) == (certificate.epsilon, certificate.delta)
        assert (row.solved, row.value) == ("privacy.delta", certificate.delta)
        written = pyaccount.Certificate.load(tmp_path / "cells" / f"cell-{row.place:04d}.cert.json")
        assert written.data.document_sha256 == certificate.data.document_sha256 == row.document_sha256


def test_answers_do_not_depend_on_threads_or_company() -> None:
    both = {"pyaccount": 1, "kind": "sweep", "documents": [gaussians(name="gaussian"), sampled(name="sampled")]}
    both["documents"][1]["accounting"]["method"] = "monte-carlo"  # type: ignore[index]
    for one in both["documents"]:  # type: ignore[attr-defined]
        one.pop("vary", None)
    both["vary"] = {"noise.multiplier": [0.9, 1]}
    runs = [pyaccount.sweep(both, threads=threads) for threads in (1, 2)]
    kept = [[row.model_dump(exclude={"seconds"}) for row in run.rows] for run in runs]
    assert kept[0] == kept[1]
    assert [row["kind"] for row in kept[0]] == ["deterministic"] * 2 + ["verified"] * 2
    alone = pyaccount.certify(both["documents"][1], overrides=["noise.multiplier=1"])  # type: ignore[index]
    assert (kept[0][3]["epsilon"], kept[0][3]["epsilon_lower"]) == (alone.epsilon, alone.data.guarantee.epsilon_lower)


def test_failures_stand_beside_results(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Plan.run

    def sometimes(plan: Plan, **options: Any) -> Any:
        sigma = plan.document.run.noise.multiplier
        if sigma == 2:
            raise NumericsError("no bound")
        if sigma == 4:
            raise MemoryError
        return run(plan, **options)

    monkeypatch.setattr(Plan, "run", sometimes)
    found = pyaccount.sweep(gaussians(vary={"noise.multiplier": [1, 2, 4, 0, 8]}))
    assert [row.place for row in found.rows] == [0, 4]
    assert [(one.place, one.why) for one in found.failures] == [(1, "stopped"), (2, "stopped"), (3, "wrong")]
    assert [one.settings["noise.multiplier"] for one in found.failures] == [2, 4, 0]
    assert found.failures[0].message == "no bound"
    assert "memory" in found.failures[1].message
    assert "noise.multiplier = 0" in found.failures[2].message
    assert not found.holds
    assert [one.place for one in found.entries()] == [0, 1, 2, 3, 4]
    text, markdown = found.to_markdown(), found._repr_html_()
    assert "no bound" in text
    assert "no bound" in markdown


def test_a_time_limit_is_each_cells_own() -> None:
    found = pyaccount.sweep([sampled(name="long", accounting__time_limit=1e-6), one_step(1.0)])
    assert [one.why for one in found.failures] == ["stopped"]
    assert "time limit" in found.failures[0].message
    assert len(found.rows) == 1


def test_finished_cells_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "runs.db"
    source = {"pyaccount": 1, "kind": "sweep", "documents": [one_step(1.0), sampled()]}
    first = pyaccount.sweep({**source, "vary": {"noise.multiplier": [0.9, 1]}}, store=store)
    assert not any(row.finished for row in first.rows)
    ran: list[object] = []
    issued = Plan._issued

    def counted(plan: Plan, *arguments: Any) -> Any:
        ran.append(plan.document.run.noise.multiplier)
        return issued(plan, *arguments)

    monkeypatch.setattr(Plan, "_issued", counted)
    more = pyaccount.sweep({**source, "vary": {"noise.multiplier": [0.9, 1, 5]}}, store=store)
    assert ran == [5, 5]
    assert [row.finished for row in more.rows] == [True, True, False] * 2
    same = [row.model_dump(exclude={"seconds", "finished", "place"}) for row in more.rows if row.finished]
    assert same == [row.model_dump(exclude={"seconds", "finished", "place"}) for row in first.rows]
    assert "4 of them before" in more.summary


def test_a_store_that_fails_stops_the_sweep_or_not(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "runs.db").write_text("this is no database, whatever its name says" * 50, encoding="utf-8")
    snapshot.raised(lambda: pyaccount.sweep(gaussians(), store=tmp_path / "runs.db"))
    with pytest.warns(UserWarning, match="goes on without it"):
        found = pyaccount.sweep(gaussians(), store=tmp_path / "runs.db", store_errors="continue")
    assert len(found.rows) == 6


def test_large_sweeps_are_asked_about(snapshot: Snapshot) -> None:
    span = {"start": 1, "stop": 1000, "count": 1000}
    large = gaussians(vary={"noise.multiplier": span, "training.iterations": span})
    snapshot.raised(pyaccount.sweep, large)
    assert len(pyaccount.sweep(gaussians(), most=6).rows) == 6
    snapshot.raised(lambda: pyaccount.sweep(gaussians(), most=5))


def test_what_stops_one_thread_stops_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C does, which only the main thread sees: cells under way end, and no other begins."""
    begun: list[int] = []
    ended = threading.Event()

    def endless(plan: Plan, **_: Any) -> Any:
        from pyaccount import _core

        begun.append(1)
        for _ in range(2000):
            _core.Cancellation.check()
            ended.wait(0.01)
        raise AssertionError("nobody stopped this")

    monkeypatch.setattr(Plan, "run", endless)

    class ImpatientError(RuntimeError):
        pass

    def report(stage: str, done: int, total: int | None) -> None:
        raise ImpatientError

    from pyaccount.document.sweeps import load_grid

    wrong_first = load_grid(gaussians(vary={"noise.multiplier": [0, 1, 2, 4, 8, 16]}))
    with pytest.raises(ImpatientError):
        certified_cells(wrong_first, SweepOptions(threads=2, report=report))
    assert len(begun) <= 2


def test_certificates_of_two_sweeps_are_not_mixed(tmp_path: Path, snapshot: Snapshot) -> None:
    pyaccount.sweep(gaussians(), certificates=tmp_path / "cells")
    snapshot.raised(lambda: pyaccount.sweep(gaussians(), certificates=tmp_path / "cells"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    snapshot.raised(lambda: pyaccount.sweep(gaussians(), certificates=tmp_path / "file"))


def test_forms(tmp_path: Path, snapshot: Snapshot) -> None:
    found = pyaccount.sweep(gaussians())
    assert Sweep.model_validate_json(found.to_json()) == found
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["noise.multiplier"]) for row in rows] == [1, 1, 2, 2, 4, 4]
    assert [float(row["delta"]) for row in rows] == [row.delta for row in found.rows]
    assert {row["failure"] for row in rows} == {""}
    assert len(re.findall(r"^\| [124] \|", found.to_markdown(), flags=re.MULTILINE)) == 6
    for frame, package in ((found.to_pandas, "pandas"), (found.to_polars, "polars"), (found.to_parquet, "pyarrow")):
        if find_spec(package) is None:
            snapshot.raised(frame)
        else:
            made = frame()
            assert isinstance(made, bytes) or len(made) == 6


def test_mappings_as_values_fit_a_table() -> None:
    vary = {"sampler": [{"kind": "none", "max_participations": 1}, {"kind": "poisson"}]}
    source = {**one_step(1.0, training={"dataset_size": 100, "expected_batch_size": 10, "iterations": 3}), "vary": vary}
    found = pyaccount.sweep(source)
    assert len(found.rows) == 2
    assert json.loads(next(csv.DictReader(io.StringIO(found.to_csv())))["sampler"])["kind"] == "none"


def test_pictures(tmp_path: Path, snapshot: Snapshot) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pictures of sweeps are NOT drawn")
    found = pyaccount.sweep(gaussians(vary={"noise.multiplier": [1, 2, 4], "privacy.epsilon": [0.5, 1, 2]}))
    by_place = {(row.settings["privacy.epsilon"], row.settings["noise.multiplier"]): row.delta for row in found.rows}
    lines = found.plot(tmp_path / "lines.png", x="noise.multiplier", y="delta").axes[0]
    assert len(lines.lines) == 3
    assert lines.get_xscale() == "log"  # the values double
    default = found.plot().axes[0]
    assert [sorted(line.get_ydata()) for line in default.lines] == [sorted(line.get_ydata()) for line in lines.lines]
    assert sorted(lines.lines[0].get_ydata()) == sorted(by_place[0.5, sigma] for sigma in (1, 2, 4))
    assert (lines.get_xlabel(), lines.get_ylabel()) == ("noise.multiplier", "δ at most")
    for axis in ("nonsense", "workload-error"):
        snapshot.raised(found.plot, y=axis)
    snapshot.raised(lambda: found.plot(tmp_path / "heat.jpeg"))


def test_pictures_of_many_values(tmp_path: Path) -> None:
    """Two numbers with more values than styles of lines are a heat map, and each cell has its value."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pictures of sweeps are NOT drawn")
    sigmas, epsilons = [1, 2, 3, 4, 5, 6, 7], [0.5, 1, 1.5, 2, 2.5, 3, 3.5]
    found = pyaccount.sweep(gaussians(vary={"noise.multiplier": sigmas, "privacy.epsilon": epsilons}))
    heat = found.plot(tmp_path / "heat.svg")
    image = heat.axes[0].images[0].get_array()
    by_place = {(row.settings["privacy.epsilon"], row.settings["noise.multiplier"]): row.delta for row in found.rows}
    assert image is not None
    assert image.tolist() == [[by_place[epsilon, sigma] for sigma in sigmas] for epsilon in epsilons]
    written = {text.get_position(): float(text.get_text()) for text in heat.axes[0].texts}
    assert len(written) == 49
    for place, delta in (((0, 0), by_place[0.5, 1]), ((6, 0), by_place[0.5, 7])):
        assert delta <= written[place] <= 1.01 * delta
    assert (tmp_path / "heat.svg").stat().st_size > 1000


# ---- the command


def command(*words: str) -> Any:
    return CliRunner().invoke(cli.commands, ["sweep", *words], standalone_mode=False)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep.yaml").write_text(yaml.safe_dump(gaussians()), encoding="utf-8")
    done = command("sweep.yaml", "-o", "found.csv", "--store", "runs.db", "--certificates", "cells")
    assert done.return_value == 0
    assert "6 of 6 cells certified" in done.stdout
    assert len(Path("found.csv").read_text(encoding="utf-8").splitlines()) == 7
    assert len(list(Path("cells").iterdir())) == 6
    again = command("sweep.yaml", "--store", "runs.db", "--format", "json")
    assert all(row["finished"] for row in json.loads(again.stdout)["rows"])
    Path("claims.yaml").write_text(
        yaml.safe_dump({**one_step(1.0, privacy__delta=1e-3), "vary": {"noise.multiplier": [1, 100]}}), encoding="utf-8"
    )
    fails = command("claims.yaml", "--quiet")
    assert (fails.return_value, fails.stdout) == (1, "")
    wrong = command("sweep.yaml", "--set", "vary=3")
    assert isinstance(wrong.exception, DocumentError)
    Path("large.yaml").write_text(
        yaml.safe_dump(gaussians(vary={"noise.multiplier": {"start": 1, "stop": 2, "count": 10_001}})), encoding="utf-8"
    )
    large = command("large.yaml")
    assert isinstance(large.exception, DomainError)
    assert "--yes allows more" in str(large.exception)
    before = Path("runs.db").read_bytes()
    for words in (
        ("-o", "found.html"),
        ("-o", "sweep.yaml"),
        ("-o", "runs.db", "--format", "json", "--store", "runs.db"),
        ("--plot", "found.gif"),
        ("--plot", "nowhere/found.svg"),
        ("--plot", "found.svg", "--plot-y", "nonsense"),
        ("--plot-x", "epsilon"),
    ):
        assert type(command("sweep.yaml", *words).exception).__name__ == "UsageError", words
    assert Path("runs.db").read_bytes() == before
    if find_spec("pyarrow") is None:
        assert isinstance(command("sweep.yaml", "-o", "found.parquet").exception, MissingExtraError)


def test_ctrl_c_stops_a_sweep_and_says_where_its_cells_are(tmp_path: Path) -> None:
    """Two cells that compose are kept; the third is an hour of samples, and is stopped."""
    hard = {"bands": 16, "kind": "banded-square-root"}
    (tmp_path / "sweep.yaml").write_text(
        yaml.safe_dump(
            {
                "pyaccount": 1,
                "kind": "sweep",
                "documents": [
                    one_step(1.0),
                    one_step(2.0),
                    sampled(
                        privacy={"adjacency": "zero-out", "epsilon": 1.0, "delta": 1e-9},
                        training={"dataset_size": 10_000, "expected_batch_size": 100, "iterations": 2000},
                        sampler={"kind": "b-min-sep", "min_separation": 16},
                        matrix=hard,
                        noise={"multiplier": "solve"},
                    ),
                ],
            }
        ),
        encoding="utf-8",
    )
    program = [sys.executable, "-m", "pyaccount", "sweep", "sweep.yaml", "--store", "runs.db", "--quiet"]
    _, errors, code = interrupted(program, tmp_path, lambda: begun(tmp_path / "runs.db"))
    assert code == 130, errors
    assert "finished cells are stored in runs.db" in errors
    assert "Traceback" not in errors


def begun(path: Path) -> bool:
    """Whether a store has the two runs that are finished before the one that is interrupted."""
    if not path.exists():
        return False
    with pyaccount.Store(path) as store:
        return len(store.runs()) == 2


def test_the_example_is_a_sweep() -> None:
    found = pyaccount.sweep(
        str(EXAMPLES / "sweeps" / "epsilon-and-batch.yaml"), overrides=["accounting.tolerance=0.01"]
    )
    assert found.holds
    by_batch = {row.settings["training.expected_batch_size"]: row.noise_multiplier for row in found.rows[::5]}
    # At equal privacy more records in a batch need more noise; less than in proportion.
    assert list(by_batch) == [250, 500, 1000]
    sigmas = [value or 0.0 for value in by_batch.values()]
    assert sigmas[0] < sigmas[1] < 2 * sigmas[0] < 2 * sigmas[1]


def test_schemas_take_what_is_read_and_written() -> None:
    sweeps, tables = (Draft202012Validator(SCHEMAS[name]()) for name in ("sweep", "sweep-table"))
    listing = {
        "pyaccount": 1,
        "kind": "sweep",
        "documents": ["one.yaml", document()],
        "vary": [{"noise.multiplier": [1]}],
    }
    span = {"noise.multiplier": {"start": 1, "stop": 4, "count": 4}}
    open_document = {key: value for key, value in gaussians(vary=span).items() if key != "noise"}
    for good in (gaussians(), gaussians(vary=span), open_document, listing):
        assert sweeps.is_valid(good)
    for bad in (
        document(),
        gaussians(vary={}),
        gaussians(vary={"a": 3}),
        gaussians(sampler={"kind": "x"}),
        {**listing, "x": 1},
    ):
        assert not sweeps.is_valid(bad)
    assert tables.is_valid(json.loads(pyaccount.sweep(gaussians()).to_json()))
