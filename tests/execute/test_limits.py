"""Errors at a limit say which stage was reached, what was known by then, and what set the limit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from plain_documents import doc
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import _core, cli
from pyaccount.errors import TIME_IS_UP, TimeLimit
from pyaccount.execute import engine as engine_module
from pyaccount.execute.sampling import calibrate
from pyaccount.execute.sampling.jobs import SHARD
from pyaccount.execute.sampling.shards import Sampler
from pyaccount.rounding import down, up

SOLVED = EXAMPLES / "cifar10-dp-sgd.yaml"
CLAIM = EXAMPLES / "check-a-claim.yaml"
SAMPLED = doc(
    "name=short epsilon=1 delta=1e-3 sampling_probability=0.1 iterations=16 sampler=b-min-sep",
    "min_separation=4 matrix=banded-square-root bands=4 multiplier=solve seed=1",
)


class Questions:
    """A core that is out of time after a number of calls."""

    def __init__(self, calls: int) -> None:
        self.left, self.answered = calls, 0

    def answer_all(self, items: list[Any], **options: Any) -> Any:
        self._count()
        self.answered += len(items)
        return _core.answer_all(items, **options)

    def curve_all(self, items: list[Any], **options: Any) -> Any:
        self._count()
        return _core.curve_all(items, **options)

    def _count(self) -> None:
        if self.left == 0:
            raise pyaccount.LimitError(TIME_IS_UP)
        self.left -= 1


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Questions]:
    """Let the core's time be over after a number of calls, whatever the clock says."""

    def end_after(calls: int) -> Questions:
        core = Questions(calls)

        class Core:
            Profile, answer_all, curve_all = _core.RoundProfile, core.answer_all, core.curve_all

        monkeypatch.setattr(engine_module, "_core", Core)
        return core

    return end_after


def stopped(source: Any, **options: Any) -> pyaccount.LimitError:
    with pytest.raises(pyaccount.LimitError) as caught:
        pyaccount.certify(source, **options)
    return caught.value


def test_the_core_says_that_time_is_up_in_these_words() -> None:
    profile = _core.RoundProfile.poisson(1, 0.01, 1.0, two_sided=False, reverse=False)
    with pytest.raises(pyaccount.LimitError) as caught:
        _core.answer_all([([(profile, 1000)], None, 1e-6, 1e-9)], threads=1, time_limit=1e-9)
    assert caught.value.message == TIME_IS_UP


@pytest.mark.parametrize("calls", [0, 3, 5])
def test_a_search_says_its_bracket_and_how_much_was_composed(calls: int, ending: Callable[[int], Questions]) -> None:
    core = ending(calls)
    error = stopped(SOLVED, time_limit=600)
    assert error.stage.startswith("solving noise.multiplier: trying ")
    assert error.compositions == core.answered
    assert error.limit == TimeLimit(600.0, "time_limit=")
    if calls == 0:
        assert error.known == ()
        assert "nothing was found by then" in str(error)
    else:
        # The certified value lies between the ends that were reported.
        (known,) = error.known
        words = known.removeprefix("noise.multiplier: the ").split(", the ")
        ends = {word.split()[1]: float(word.split()[-1]) for word in words}
        assert ends.get("fails", 0.0) < 0.64334685 < ends.get("holds", 1e9)
        assert f"after {core.answered} compositions; {known}" in str(error)


def test_a_claim_says_the_interval_it_is_known_to(
    ending: Callable[[int], Questions], monkeypatch: pytest.MonkeyPatch
) -> None:
    ending(1)
    error = stopped(CLAIM, overrides=["accounting.time_limit=1 h"])
    assert error.limit == TimeLimit(3600.0, "overrides: accounting.time_limit=1 h")
    assert error.stage == "composing"
    monkeypatch.undo()
    certificate = pyaccount.certify(CLAIM)
    assert error.known == (
        f"ε is at least {down(certificate.epsilon_lower)} and at most {up(certificate.epsilon)} at δ = 1e-6",
    )


def test_after_the_claim_its_interval_is_told_with_the_blank(ending: Callable[[int], Questions]) -> None:
    # Calls for the claim's other coordinate and for the profile come last, so stop at the first call after the search.
    calls = 1
    while True:
        ending(calls)
        error = stopped(SOLVED, time_limit=600)
        if not error.stage.startswith("solving"):
            break
        calls += 1
    assert error.stage == "composing"
    assert error.known[0].startswith("ε is at least 7.99")
    assert error.known[1] == "noise.multiplier: the target is met at 0.643347, the bound does not meet it at 0.643301"


def test_samples_say_their_stage_their_number_and_the_pilots_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_time(*_: object) -> None:
        raise pyaccount.LimitError(TIME_IS_UP)

    error = stopped({**SAMPLED, "accounting": {"seed": 1, "time_limit": 1e-3}})
    assert error.stage == "bounds without samples"
    assert error.limit == TimeLimit(1e-3, "accounting.time_limit")
    monkeypatch.setattr(calibrate, "tested_in_sequence", out_of_time)
    error = stopped(SAMPLED, time_limit="10 min")
    assert error.limit == TimeLimit(600.0, "time_limit=")
    (known,) = error.known
    assert known.startswith("σ is near ")
    assert known.endswith("by the pilot's estimate")


def test_the_sampler_counts_what_it_drew(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counted(draw: Callable[..., Any]) -> Callable[..., Any]:
        def twice(self: Sampler, *arguments: Any) -> Any:
            if len(counts) == 2:
                self._deadline = 0.0
            found = draw(self, *arguments)
            counts.append(arguments[-1].count)
            return found

        return twice

    monkeypatch.setattr(Sampler, "run", counted(Sampler.run))
    monkeypatch.setattr(Sampler, "balanced", counted(Sampler.balanced))
    error = stopped(SAMPLED, time_limit=600)
    assert error.samples == SHARD * sum(counts)
    assert error.seed == 1
    assert error.stage.startswith("pilot, σ = ")
    assert error.progress.startswith(f"{error.stage}, after ")


def test_the_documents_limit_is_named_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "doc.yaml"
    text = CLAIM.read_text(encoding="utf-8")
    source.write_text(text + "\naccounting:\n  time_limit: 1e-3\n", encoding="utf-8")
    line = source.read_text(encoding="utf-8").splitlines().index("  time_limit: 1e-3") + 1
    assert cli.run(["certify", str(source)]) == cli.STOPPED
    err = capsys.readouterr().err
    assert f"the time limit was reached: 0.001 s, set by accounting.time_limit ({source}:{line}:15)" in err
    assert cli.run(["certify", str(source), "--set", "accounting.time_limit=2e-3"]) == cli.STOPPED
    assert "0.002 s, set by --set accounting.time_limit=2e-3 (" in capsys.readouterr().err


def test_the_option_of_verify_is_named(
    tmp_path: Path, ending: Callable[[int], Questions], run: Run, snapshot: Snapshot
) -> None:
    target = tmp_path / "cert.json"
    pyaccount.certify(CLAIM).save(target)
    ending(0)
    snapshot(run("verify", target, "--time-limit", "20 min"))
    with pytest.raises(pyaccount.LimitError) as caught:
        pyaccount.verify(target, time_limit=30)
    assert caught.value.limit == TimeLimit(30.0, "time_limit=")


def test_another_limit_than_time_is_not_blamed_on_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pyaccount.LimitError("the machine refused to start the worker threads: no memory")

    monkeypatch.setattr(engine_module.Engine, "ask_all", refuse)
    error = stopped(CLAIM, time_limit=5)
    assert error.limit is None
    assert error.stage == "checking the claim"
    assert "set by" not in str(error)


def test_progress_is_told_as_before_to_whoever_asked() -> None:
    told: list[str] = []
    plan = pyaccount.compile(CLAIM)
    plan.run(report=lambda stage, done, total: told.append(stage))
    assert told[0] == "checking the claim"
    assert "profile" in told


def test_the_error_is_data() -> None:
    error = pyaccount.LimitError(TIME_IS_UP, stage="pilot", samples=12_000_000, seed=7)
    error.limit = TimeLimit(60.0, "--time-limit")
    error.known = ("σ is near 1, by the pilot's estimate",)
    assert str(error) == (
        "the time limit was reached: 60 s, set by --time-limit (pilot, after 12M samples; σ is near 1, by the pilot's "
        "estimate; seed 7)"
    )
    assert json.loads(json.dumps(error.to_json())) == {
        "stage": "pilot",
        "compositions": None,
        "samples": 12_000_000,
        "seed": 7,
        "known": ["σ is near 1, by the pilot's estimate"],
        "limit": {"seconds": 60.0, "set_by": "--time-limit"},
    }
