"""Settings and fixtures for all tests. Examples of properties have no deadline, because machines may be busy."""

import atexit
import os
import shutil
import tempfile

# Tests start hundreds of Pythons. Where no bytecode may be written beside the sources, each of them would compile all that it
# imports, which takes longer than most commands. Their bytecode is kept in a folder of this run, which workers inherit.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="bytecode-")
    atexit.register(shutil.rmtree, os.environ["PYTHONPYCACHEPREFIX"], ignore_errors=True)

# This must be set before NumPy is imported. Each worker has a core, and matrices of some twenty rows gain nothing from a second
# thread. `helpers/processors.py` compares the results of other numbers of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Short computations of the engine do not gain from threads that compete with those of other workers for two cores; they took a
# twentieth of the suite's time. Tests about threads set their number.
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import gc
import random
import secrets
import sys
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import snapshots
from drawn_once import Drawn
from hypothesis import settings
from nightly import NIGHTLY

from pyaccount import cli
from pyaccount.certificate import Certificate
from pyaccount.execute import Answer, Engine, Question, composed
from pyaccount.execute.sampling import evidence
from pyaccount.gate import recomputation
from pyaccount.plan.rounds import DirectedBounds
from pyaccount.running import Plan


def _address_is_valid(term: str, value: str) -> bool:
    """Say whether a text has the form of an international address, with the grammars of the package that is meant."""
    sys.modules.pop("rfc3987_syntax", None)
    from rfc3987_syntax import is_valid_syntax  # it is installed with the validator of bills of materials

    return bool(is_valid_syntax(term, value))


# jsonschema imports this package, which compiles 39 grammars in two processor seconds. Few workers check an address.
if find_spec("rfc3987_syntax") is not None:
    sys.modules["rfc3987_syntax"] = ModuleType("rfc3987_syntax")
    sys.modules["rfc3987_syntax"].is_valid_syntax = _address_is_valid  # type: ignore[attr-defined]

# A deadline would assert timings, and examples that differ between runs would find errors that cannot be reproduced.
settings.register_profile("patient", deadline=None, derandomize=True)
settings.load_profile("patient")

# Results must not depend on the width of the terminal in which tests are started.
os.environ.pop("COLUMNS", None)


#: Other seeds than the usual ones, to check that no test passes by luck: PYACCOUNT_TEST_SEED=7 pytest.
OTHER = os.environ.get("PYACCOUNT_TEST_SEED", "")

#: The source of seeds that documents leave to the operating system. It is the same in every run, unless a test is marked
#: `entropy`.
_drawn, _source = secrets.randbits, {"bits": random.Random(0).getrandbits}


def _bits(count: int) -> int:
    return _source["bits"](count)


secrets.randbits = _bits


def drawn_by(item: pytest.Item) -> str:
    """Return the text that seeds a test: its module and its name, independent of the folder of the checkout."""
    name = item.nodeid.partition("::")[2].replace(str(item.config.rootpath), "")
    return f"{item.path.name}::{name}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are cores, unless it is set, because some tests wait for other processes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") or cores + 1)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(obj: object) -> Generator[None, Any, Any]:
    """Take `nightly` from those parameters of a test that run with every change: `nightly(but=[…])` has their names."""
    made = yield
    marks = [mark for mark in getattr(obj, "pytestmark", ()) if mark.name == "nightly" and "but" in mark.kwargs]
    if marks and isinstance(made, list):
        (mark,) = marks
        kept = [item for item in made if item.callspec.id in mark.kwargs["but"]]
        assert len(kept) == len(mark.kwargs["but"]), f"{made[0].nodeid} has other parameters than {mark.kwargs['but']}"
        for item in kept:
            item.own_markers.remove(mark)
    return made


#: In `make test-frameworks` everything is installed, and a test that misses something fails instead of being skipped.
COMPLETE = bool(os.environ.get("PYACCOUNT_FRAMEWORKS"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail modules that would be skipped because something is not installed, if everything should be."""
    return _complete((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail tests that would be skipped because something is not installed, if everything should be."""
    return _complete((yield))


def _complete(report: Any) -> Any:
    if COMPLETE and report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2])
        if "not installed" in reason or "could not import" in reason:
            report.outcome, report.longrepr = "failed", reason
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes snapshots anew."""
    parser.addoption("--snapshot-update", action="store_true", help="write the snapshots anew that the tests compare")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that run only at night; each of them has a sibling that takes less time."""
    snapshots.collected(config, items)
    late = [] if NIGHTLY else [item for item in items if item.get_closest_marker("nightly") is not None]
    if late:
        config.hook.pytest_deselected(items=late)
        left_out = set(late)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Exclude everything that exists after collection from garbage collection, which took a twentieth of the suite's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Restart the seeds for each test, so that they do not depend on the tests before it."""
    real = item.get_closest_marker("entropy") is not None
    _source["bits"] = _drawn if real else random.Random(OTHER + drawn_by(item)).getrandbits


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the marks of runs in a temporary folder, separate from the user's own and from other runs of the tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _garbage() -> Iterator[None]:
    """Collect garbage at the end, so that errors of leaked objects are reported; at a worker's exit they would not be."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    """Return the samples that the tests of a module have drawn."""
    return Drawn()


@pytest.fixture
def drawn_once(drawn: Drawn) -> Iterator[None]:
    """Draw samples of equal jobs only once in a module, for tests of what is computed from them."""
    with drawn.used():
        yield


@pytest.fixture
def without_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute no profile for documents that state none, for tests of guarantees; at night profiles are computed too.

    A profile often takes longer than the guarantee, and these tests do not look at it.
    """
    if not NIGHTLY:
        for module in (composed, recomputation):
            monkeypatch.setattr(module, "default_profile", lambda epsilon: ())
        for module in (evidence, recomputation):
            monkeypatch.setattr(module, "sampled_profile", lambda epsilon: ())


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute certificates of equal documents and seeds only once in a test, for tests of comparisons."""
    _remember(monkeypatch)


@pytest.fixture(scope="module")
def remembered_throughout() -> Iterator[None]:
    """Do the same as `remembered` for a whole module whose tests compare the same certificates."""
    with pytest.MonkeyPatch.context() as patch:
        _remember(patch)
        yield


def _remember(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, object], Certificate] = {}
    original = Plan.run

    def run_once(self: Plan, *, seed: int | None = None, **options: Any) -> Certificate:
        key = ((self.asked or self.document).sha256, seed)
        if key not in kept:
            kept[key] = original(self, seed=seed, **options)
        return kept[key]

    monkeypatch.setattr(Plan, "run", run_once)
    asked: dict[object, Answer] = {}
    ask = Engine.ask

    def ask_once(self: Engine, bounds: DirectedBounds, question: Question) -> Answer:
        key = (tuple(bounds.items()), question)
        if key not in asked:
            asked[key] = ask(self, bounds, question)
        return asked[key]

    monkeypatch.setattr(Engine, "ask", ask_once)


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[snapshots.Snapshot]:
    """Compare what a test shows with the section of its name; see `helpers/snapshots.py`."""
    yield from snapshots.of(request, tmp_path_factory.getbasetemp())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> snapshots.Run:
    """Return a function that runs a command in this process and returns its exit code and what it wrote."""

    def command(*arguments: object) -> snapshots.Done:
        code = cli.run([str(argument) for argument in arguments])
        return snapshots.Done(code, *capsys.readouterr())

    return command


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `tmp_path` the working folder, in which the files lie that a document in memory names."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ways_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trials of ways to clip take the first one that is possible, however long it takes: times differ between runs."""
    from pyaccount.integrations import choosing  # it needs PyTorch

    def once(clip: Any) -> float:
        clip()
        return 1.0

    monkeypatch.setattr(choosing, "seconds_of", once)
