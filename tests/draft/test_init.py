"""`pyaccount init`: whatever it can write is a valid document that says what was answered, and it destroys nothing."""

import os
import pty
import re
import select
import subprocess
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_documents import sectioned
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli, schemas
from pyaccount.document.document import Document
from pyaccount.draft.interview import completed, default, drafted, offered
from pyaccount.draft.questions import QUESTIONS, DraftQuestion, meanings
from pyaccount.draft.writing import OPTIONAL, draft_text
from pyaccount.files import write_atomically

#: Facts that suit every sampler and matrix.
FACTS = {
    "name": "a run", "group_size": "1", "dataset_size": "10_000", "batch_size": "100", "sampling_probability": "0.01",
    "iterations": "200", "subset_size": "500", "bins": "100", "partitions": "10", "max_participations": "10",
    "min_separation": "10", "bands": "5", "buffers": "2", "records_per_user": "3", "attribution": "single",
    "iterations_per_allocation": "100",
    "epsilon": "4", "delta": "1e-6", "noise_multiplier": "1.5",
    "also": "nothing",
}  # fmt: skip
BASIC = ["--dataset-size", "50_000", "--batch-size", "500", "--iterations", "2000", "--epsilon", "8"]
TUNING = ["--tuning-score", "noisy", "--tuning-score-scale", "9", "--tuning-stopping-probability", "0.5"]


def loaded(text: str, folder: Path) -> Document:
    """The document of a text, read from a file as everybody else reads it."""
    file = folder / "drafted.yaml"
    file.write_text(text, encoding="utf-8")
    return pyaccount.load(file)


@cache
def choices(sampler: str) -> list[dict[str, str]]:
    """Every combination of choices that is offered with a sampler."""
    found = [{"sampler": sampler}]
    if sampler == "user-b-min-sep":
        found = [{**answers, "attribution": word} for answers in found for word in ("single", "shared")]
    for name in ("adjacency", "solve", "matrix"):
        found = [{**answers, name: word} for answers in found for word in offered(name, answers)]
    return found


@pytest.mark.parametrize("sampler", meanings(QUESTIONS["sampler"]))
def test_every_combination_that_is_offered_validates_and_compiles(sampler: str, tmp_path: Path) -> None:
    combinations = choices(sampler)
    # Each blank and adjacency is offered with some sampler, or the test would be about nothing.
    assert len(combinations) >= 8
    for answers in combinations:
        complete = completed(answers, lambda question, _: FACTS[question.name])
        document = loaded(drafted({**complete, "name": "a run"}), tmp_path)
        said = document.to_mapping()
        assert said["sampler"]["kind"] == sampler
        assert said["privacy"]["adjacency"] == answers["adjacency"]
        assert said.get("matrix", {"kind": "identity"})["kind"] == answers["matrix"]
        blank = "nothing" if document.blank is None else document.blank[-1]
        assert {"multiplier": "noise_multiplier", "expected_batch_size": "batch_size"}.get(
            str(blank), blank
        ) == answers["solve"].replace("-", "_")


def test_every_choice_of_the_language_is_offered_somewhere() -> None:
    """But for matrices given entry by entry."""
    combinations = [answers for sampler in meanings(QUESTIONS["sampler"]) for answers in choices(sampler)]
    for name in ("adjacency", "solve", "matrix"):
        assert {answers[name] for answers in combinations} == set(meanings(QUESTIONS[name]))


records = st.integers(2_000, 10**9)


@settings(max_examples=60)
@given(
    sampler=st.sampled_from(
        ["poisson", "fixed-size", "with-replacement", "b-min-sep", "balls-in-bins", "cyclic-poisson"]
    ),
    solve=st.sampled_from(["noise-multiplier", "epsilon", "nothing"]),
    dataset=records,
    batch=st.integers(1, 50),
    iterations=st.integers(40, 10_000),
    apart=st.integers(1, 40),
    epsilon=st.floats(0.01, 50.0),
    data=st.data(),
)
def test_facts_are_said_as_they_were_given(
    *,
    sampler: str,
    solve: str,
    dataset: int,
    batch: int,
    iterations: int,
    apart: int,
    epsilon: float,
    data: st.DataObject,
) -> None:
    spelled = data.draw(st.sampled_from([str(dataset), f"{dataset:_}", f"{dataset}.0"]))
    facts = {
        "sampler": sampler, "solve": solve, "dataset_size": spelled, "batch_size": str(batch),
        "iterations": f"{iterations:_}", "epsilon": repr(epsilon), "noise_multiplier": "2",
        "min_separation": str(apart), "bins": str(apart), "partitions": str(apart),
    }  # fmt: skip

    def ask(question: DraftQuestion, answers: Any) -> str:
        usual = default(question, answers)
        return facts[question.name] if question.name in facts else str(usual)

    text = drafted({**completed({"sampler": sampler, "solve": solve}, ask), "name": "x"})
    said = pyaccount.load(yaml.safe_load(text)).to_mapping()
    assert said["training"]["iterations"] == iterations
    if sampler != "balls-in-bins":
        assert said["training"]["dataset_size"] == dataset
        assert said["training"]["expected_batch_size"] == batch
        # The largest power of ten with which nobody's record may be published.
        delta = Fraction(str(said["privacy"]["delta"]))
        assert delta * dataset < 1 <= 10 * delta * dataset
    assert said["privacy"]["epsilon"] == ("solve" if solve == "epsilon" else epsilon)
    assert said["noise"]["multiplier"] == ("solve" if solve == "noise-multiplier" else 2)


def test_comments_are_the_models_own_words(tmp_path: Path) -> None:
    answers = completed({"sampler": "b-min-sep"}, lambda q, a: default(q, a) or FACTS[q.name])
    text = drafted({**answers, "name": "x"})
    comments = " ".join(re.findall(r"^ *# (.*)$", text, flags=re.MULTILINE))
    definitions = schemas.schema("mechanism")["$defs"]
    for section, key in [
        ("Privacy", "adjacency"), ("Privacy", "delta"), ("Training", "iterations"), ("BMinSep", "kind"),
        ("BMinSep", "min_separation"), ("BandedSquareRoot", "bands"), ("Gaussian", "multiplier"),
    ]:  # fmt: skip
        assert definitions[section]["properties"][key]["description"] in comments
    assert all(len(line) <= 130 for line in text.splitlines())


def test_the_optional_part_is_valid_once_it_is_no_comment(tmp_path: Path) -> None:
    complete = completed({"sampler": "poisson"}, lambda q, a: default(q, a) or FACTS[q.name])
    before, accounting = draft_text({**complete, "name": "x"}).split("# accounting:\n")
    lines = [line.removeprefix("# ") for line in accounting.splitlines()]
    document = loaded(f"{before}accounting:\n" + "\n".join(lines), tmp_path)
    assert set(document.to_mapping()["accounting"]) == set(OPTIONAL)


def test_a_name_that_yaml_would_read_as_something_else_is_quoted(tmp_path: Path) -> None:
    complete = completed({"sampler": "poisson"}, lambda q, a: default(q, a) or FACTS[q.name])
    for name in (
        "true",
        "1e5",
        "a: b",
        "# no",
        'it\'s "quoted"',
        "naïve – run",
        "- x",
        "~",
        "ends with:",
        "a #b",
        "[x]",
    ):
        assert loaded(drafted({**complete, "name": name}), tmp_path).name == name


def test_init_writes_a_document_that_certifies(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("init", "first-run.yaml", "--yes", *BASIC)
    assert (code, out) == (0, "")
    # It ends with the commands to go on with, and they run.
    following = re.findall(r"^  pyaccount (\w+) (\S+)", err, flags=re.MULTILINE)
    assert following == [("plan", "first-run.yaml"), ("certify", "first-run.yaml"), ("schema", ">")]
    assert "pyaccount schema > mechanism.v1.schema.json" in err
    first = Path("first-run.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=mechanism.v1.schema.json"
    following = following[:2]
    for command in following:
        assert cli.run(list(command)) == 0
    assert "first-run" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first-run.yaml"]


def test_nothing_is_overwritten_without_force(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    target = tmp_path / "training.yaml"
    target.write_text("precious", encoding="utf-8")
    snapshot(run("init", target, "--yes", *BASIC))
    assert target.read_text(encoding="utf-8") == "precious"
    assert run("init", target, "--yes", "--force", *BASIC)[0] == 0
    assert pyaccount.load(target).name == "training"
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "nowhere.yaml")
    assert run("init", link, "--yes", *BASIC)[0] == 2


@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_a_file_that_appears_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no links")))
    target = tmp_path / "training.yaml"
    write_atomically(target, "first", overwrite=False)
    with pytest.raises(FileExistsError):
        write_atomically(target, "second", overwrite=False)
    assert target.read_text(encoding="utf-8") == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["training.yaml"]


def test_a_dash_is_stdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run("init", "-", "--yes", *BASIC)
    assert (code, err) == (0, "")
    assert loaded(out, tmp_path).blank == ("noise", "multiplier")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--sampler", "b-min-sep", *BASIC],
        ["--sampler", "user-b-min-sep"],
        ["--sampler", "posson"],
        ["--bins", "7", *BASIC],
        ["--bands", "8", *BASIC],
        ["--sampler", "b-min-sep", "--min-separation", "8", "--buffers", "2", *BASIC],
        ["--subset-size", "8", *BASIC],
        ["--matrix", "blt", *BASIC],
        ["--matrix", "blt", "--sampler", "balls-in-bins", "--bins", "9", *BASIC],
        [*BASIC, "--delta", "2"],
        [*BASIC, "--epsilon", "eight"],
        [*BASIC, "--iterations", "2.5"],
        [*BASIC, "--epsilon", "solve"],
        [*BASIC, "--solve", "epsilon"],
        [*BASIC, "--batch-size", "60_000"],
        ["--sampler", "b-min-sep", "--min-separation", "200", *BASIC],
        ["--name", "", *BASIC],
        ["--also", "cuonts", *BASIC],
        ["--also", "counts,counts", *BASIC],
        ["--also", "nothing,counts", *BASIC],
        ["--counts-scale", "3", *BASIC],
        ["--also", "counts", "--counts-noise", "laplace", "--counts-sigma", "3", *BASIC],
        ["--also", "tuning", "--tuning-score", "public", "--tuning-score-scale", "3", *BASIC],
        ["--also", "tuning,stated", "--tuning-stopping-probability", "1", *BASIC],
        ["--also", "selection, counts, stated, tuning", *BASIC],
        ["--also", "tuning", "--tuning-score", "public", "--tuning-stopping-probability", "0.5"],
        ["--sampler", "b-min-sep", "--min-separation", "8", "--also", "tuning", *BASIC, *TUNING],
        ["--also", "tuning", *BASIC, "--batch-size", "60_000", *TUNING],
    ],
)
def test_what_is_missing_or_wrong_is_told_by_its_option(
    tmp_path: Path, arguments: list[str], run: Run, snapshot: Snapshot
) -> None:
    snapshot(run("init", tmp_path / "new.yaml", "--yes", *arguments))
    assert list(tmp_path.iterdir()) == []


def test_nowhere_to_write_is_told_before_anything_is_asked(tmp_path: Path, run: Run) -> None:
    for place, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "x.yaml", "does not exist")):
        code, _, err = run("init", place, "--yes")
        assert code == 2
        assert words in err


def typed(folder: Path, arguments: list[str], answers: list[str]) -> tuple[int, str]:
    """Run the command on a terminal of its own, answer each question when it is asked, and give what was seen."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "pyaccount", "init", *arguments]
    process = subprocess.Popen(
        command,
        env={**os.environ, "COLUMNS": "80"},
        stdin=child,
        stdout=child,
        stderr=child,
        cwd=folder,
        close_fds=True,
    )
    os.close(child)
    seen, waiting = b"", list(answers)
    # Nothing follows a prompt until it is answered: what stays silent for a minute has asked for more than was expected.
    while select.select([parent], [], [], 60.0)[0]:
        try:
            got = os.read(parent, 4096)
        except OSError:
            break
        if not got:
            break
        seen += got
        if waiting and seen.endswith(b": "):
            os.write(parent, waiting.pop(0).encode())
    else:
        process.kill()
    os.close(parent)
    return process.wait(), seen.decode()


def test_on_a_terminal_it_asks_what_it_was_not_told(tmp_path: Path) -> None:
    answers = [
        "7\n",  # b-min-sep, the seventh sampler
        "zero-out\n",
        "\n",  # the noise multiplier is the blank
        "fifty\n", "50_000\n",  # a slip, and the answer
        "500\n",
        "64\n",
        "\n",  # the usual matrix
        "\n",  # as many bands as rounds between participations
        "8\n",
        "\n",  # δ
        "\n",  # nothing else is released
    ]  # fmt: skip
    code, seen = typed(tmp_path, ["bandmf.yaml", "--iterations", "2000"], answers)
    assert code == 0, seen
    assert "Iterations" not in seen
    assert "must be a whole number" in seen
    assert "user-b-min-sep" in seen
    said = pyaccount.load(tmp_path / "bandmf.yaml").to_mapping()
    assert said["privacy"] == {"adjacency": "zero-out", "group_size": 1, "epsilon": 8, "delta": 1e-5}
    assert said["training"] == {"dataset_size": 50_000, "expected_batch_size": 500, "iterations": 2000}
    assert said["sampler"] == {"kind": "b-min-sep", "min_separation": 64}
    assert said["matrix"] == {"kind": "banded-square-root", "bands": 64}
    assert said["noise"] == {"multiplier": "solve"}


@pytest.mark.parametrize("spelling", ["Poisson", "POISSON", "B min sep", "b_min_sep", "Zero-Out"])
def test_words_are_taken_however_they_are_spelled(spelling: str) -> None:
    question = QUESTIONS["adjacency" if spelling == "Zero-Out" else "sampler"]
    assert question.read(spelling, {}) == spelling.lower().replace(" ", "-").replace("_", "-")


def test_on_a_terminal_there_is_a_way_back(tmp_path: Path) -> None:
    answers = [
        "back\n",  # nothing is before the first question
        "b-min-sep\n", "back\n", "Poisson\n",  # another sampler, and the questions that follow from it
        "zero-out\n", "epsilon\n", "50_000\n", "500\n", "Back\n", "Back\n", "40_000\n", "400\n",
        "1e-5\n", "2\n", "\n",
    ]  # fmt: skip
    code, seen = typed(tmp_path, ["x.yaml", "--iterations", "10"], answers)
    assert code == 0, seen
    assert "This is the first question." in seen
    assert max(map(len, seen.splitlines())) <= 80
    said = pyaccount.load(tmp_path / "x.yaml").to_mapping()
    assert said["sampler"] == {"kind": "poisson"}
    assert said["training"] == {"dataset_size": 40_000, "expected_batch_size": 400, "iterations": 10}


def test_on_a_terminal_what_does_not_fit_is_asked_again(tmp_path: Path) -> None:
    arguments = ["--sampler", "poisson", "--adjacency", "add-remove", "--solve", "epsilon", "--iterations", "10"]
    answers = ["100\n", "1000\n", "1e-5\n", "2\n", "\n", "50\n"]
    code, seen = typed(tmp_path, [*arguments, "small.yaml"], answers)
    assert code == 0, seen
    assert "larger than the data set" in seen
    assert pyaccount.load(tmp_path / "small.yaml").to_mapping()["training"]["expected_batch_size"] == 50


def test_on_a_terminal_a_blank_answer_is_told_to_be_needed(tmp_path: Path) -> None:
    arguments = ["--sampler", "poisson", "--adjacency", "add-remove", "--solve", "epsilon", "--iterations", "10"]
    code, seen = typed(tmp_path, [*arguments, "small.yaml"], ["\n", "1000\n", "50\n", "1e-5\n", "2\n", "\n"])
    assert code == 0, seen
    assert seen.count("needed: there is no default") == 1
    assert pyaccount.load(tmp_path / "small.yaml").to_mapping()["training"]["dataset_size"] == 1000


def test_leaving_the_questions_writes_nothing(tmp_path: Path) -> None:
    code, seen = typed(tmp_path, ["x.yaml"], ["poisson\n", "\x04"])
    assert code == 130
    assert "nothing was written" in seen
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "risk"),
    [
        (("--advantage", "0.1"), {"advantage": 0.1}),
        (
            ("--true-positive-rate", "0.01", "--false-positive-rate", "1e-3"),
            {"true_positive_rate": 0.01, "false_positive_rate": 0.001},
        ),
        (("--gaussian-mu", "1"), {"gaussian_mu": 1}),
    ],
)
def test_a_budget_of_risk_stands_instead_of_epsilon_and_delta(
    options: tuple[str, ...], risk: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["init", "-", "--yes", "--sampling-probability", "0.01", "--iterations", "100", *options]) == 0
    text = capsys.readouterr().out
    read = pyaccount.load(yaml.safe_load(text))
    assert read.to_mapping()["privacy"] == {"adjacency": "add-remove", "group_size": 1, "risk": risk}
    assert read.blank == ("noise", "multiplier")
    assert "solve  # to be computed: the smallest σ that stays within the budget of risk" in text


def test_half_a_budget_of_rates_is_missing_the_other_half(run: Run, snapshot: Snapshot) -> None:
    half = ["--sampling-probability", "0.01", "--iterations", "100", "--true-positive-rate", "0.1"]
    snapshot(run("init", "-", "--yes", *half))


#: Answers about everything else that may be released.
RELEASED = {
    "also": "selection, tuning, counts, stated", "selection_kind": "exponential", "selection_epsilon": "0.01",
    "selection_count": "50", "tuning_stopping_probability": "0.1", "tuning_score": "noisy", "tuning_score_scale": "40",
    "counts_noise": "discrete-gaussian", "counts_sigma": "30", "counts_scale": "20", "counts_moved": "3",
    "counts_change": "2", "stated_epsilon": "0.2", "stated_delta": "1e-8",
}  # fmt: skip


def test_other_releases_are_phases(tmp_path: Path) -> None:
    ask = lambda question, answers: (FACTS | RELEASED | {"sampler": "poisson"}).get(  # noqa: E731
        question.name, default(question, answers)
    )
    said = loaded(drafted({**completed({}, ask), "name": "all of it"}), tmp_path).to_mapping()
    training = sectioned(
        "name=training dataset_size=10_000 expected_batch_size=100 iterations=200 sampler=poisson multiplier=solve"
    )
    assert said["phases"] == [
        {"name": "selection", "mechanism": {"kind": "exponential", "epsilon": 0.01}, "count": 50},
        {
            "name": "tuning",
            "select": {"kind": "geometric", "stopping_probability": 0.1},
            "phases": [training, {"name": "score", "mechanism": {"kind": "laplace", "scale": 40}}],
        },
        {"name": "counts", "mechanism": {"kind": "discrete-gaussian", "sigma": 30, "moved": 3}},
        {"name": "stated", "mechanism": {"kind": "stated", "epsilon": 0.2, "delta": 1e-8}},
    ]


@pytest.mark.parametrize("sampler", meanings(QUESTIONS["sampler"]))
def test_every_other_release_that_is_offered_compiles(sampler: str, tmp_path: Path) -> None:
    run = completed({"sampler": sampler, "also": "nothing"}, lambda question, _: (FACTS | {
        "adjacency": "zero-out", "solve": "noise-multiplier", "matrix": "identity", "attribution": "single",
    })[question.name])  # fmt: skip
    del run["also"]
    words = offered("also", run)
    # A guarantee composes with every run but those that protect users, and a selection is of runs whose rounds compose.
    assert ({"counts", "stated", "selection"} <= set(words)) is (sampler != "user-b-min-sep")
    assert ("tuning" in words) is (sampler not in ("b-min-sep", "user-b-min-sep"))
    for word in words:
        answers = completed({**run, "also": word}, lambda question, _: RELEASED[question.name])
        document = loaded(drafted({**answers, "name": "x"}), tmp_path)
        assert document.blank is not None
        assert document.blank[-2:] == ("noise", "multiplier")
        assert (word != "nothing") == ("phases" in document.to_mapping())


def test_each_noise_of_counts_is_asked_for_what_it_has(tmp_path: Path) -> None:
    keys = {
        "laplace": {"scale", "moved"}, "discrete-laplace": {"scale", "moved"},
        "discrete-gaussian": {"sigma", "moved"}, "gaussian": {"sigma", "sensitivity"},
    }  # fmt: skip
    assert set(meanings(QUESTIONS["counts_noise"])) == set(keys)
    for noise, expected in keys.items():
        answers = completed(
            {"sampler": "poisson", "also": "counts", "counts_noise": noise, "name": "x"},
            lambda question, answers: default(question, answers) or (FACTS | RELEASED)[question.name],
        )
        counts = loaded(drafted(answers), tmp_path).to_mapping()["phases"][1]["mechanism"]
        assert set(counts) == {"kind", *expected}


def test_on_a_terminal_other_releases_are_asked_for_and_checked(tmp_path: Path) -> None:
    arguments = ["--sampler", "poisson", "--adjacency", "add-remove", "--solve", "epsilon", "--iterations", "10"]
    answers = [
        "1000\n", "50\n", "1e-5\n", "2\n",
        "6\n", "counts and more\n", "4, counts\n",  # slips
        "4, stated\n", "back\n", "4,5\n",  # the fourth and the fifth word of the list
        "1\n",  # Laplace noise
        "none\n", "10\n", "2\n", "0.5\n", "2\n", "0\n",
    ]  # fmt: skip
    code, seen = typed(tmp_path, [*arguments, "x.yaml"], answers)
    assert code == 0, seen
    for words in ("must be nothing, selection,", "given twice", "must be a number", "at most 1"):
        assert words in " ".join(seen.split()), seen
    phases = pyaccount.load(tmp_path / "x.yaml").to_mapping()["phases"]
    assert [phase["name"] for phase in phases] == ["training", "counts", "stated"]
    assert phases[1]["mechanism"] == {"kind": "laplace", "scale": 10, "moved": 2}
    assert phases[2]["mechanism"] == {"kind": "stated", "epsilon": 0.5, "delta": 0}
