"""Mistakes that newcomers make: each message says where, and what to write instead."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from places import EXAMPLES, ROOT

import pyaccount
from pyaccount import cli
from pyaccount.document.loading import load_written
from pyaccount.reading import reader
from pyaccount.reading.numerals import meant, parse_number
from pyaccount.reading.spelling import FOREIGN_KEYS

VALID = """\
pyaccount: 1
name: training
privacy:
  adjacency: add-remove
  epsilon: 8
  delta: 1e-5
training:
  dataset_size: 50_000
  expected_batch_size: 500
  iterations: 2000
sampler:
  kind: poisson
noise:
  multiplier: solve
"""
BATCH = "  dataset_size: 50_000\n  expected_batch_size: 500\n"

#: What is written instead of what; where the problem stands; words of the message that name the fix.
MISTAKES: dict[str, tuple[list[tuple[str, str]], str, list[str]]] = {
    # Names of other libraries.
    "sample_rate": ([("expected_batch_size: 500", "sample_rate: 0.01")], "9:3", ["did you mean sampling_probability?"]),
    "steps": ([("iterations", "steps")], "10:3", ["did you mean iterations?"]),
    "sigma": ([("  multiplier", "  sigma")], "14:3", ["divided by that", "did you mean multiplier: sigma/clip_norm?"]),
    "noise_multiplier on top": ([("noise:\n  multiplier:", "noise_multiplier:")], "13:1", ["did you mean noise.multiplier?"]),
    "batch_size": ([("expected_batch_size", "batch_size")], "9:3", ["did you mean expected_batch_size?"]),
    "target_epsilon": ([("epsilon", "target_epsilon")], "5:3", ["did you mean epsilon?"]),
    "num_epochs": ([("iterations: 2000", "num_epochs: 20")], "10:3", ["did you mean epochs?"]),
    "max_grad_norm": ([("multiplier: solve", "multiplier: solve\n  max_grad_norm: 1")], "15:3", ["leave it out", "clip norm"]),
    "learning rate": ([("noise:", "lr: 0.1\nnoise:")], "13:1", ["leave it out"]),
    "Rényi orders": ([("noise:", "alphas: [2, 3]\nnoise:")], "13:1", ["leave it out"]),
    "rdp": ([("noise:", "accounting:\n  method: rdp\nnoise:")], "14:11", ["did you mean auto?"]),
    "version": ([("pyaccount: 1", "version: 1")], "1:1", ["did you mean pyaccount?"]),
    "shuffle: true": ([("poisson", "poisson\n  shuffle: true")], "13:3", ["`kind: none`", "max_participations", "zero-out"]),
    "ranks": (
        [("expected_batch_size: 500", "batch_size: 64\n  world_size: 4")],
        "9:3", ["records of all ranks", "if 64 is the batch of one of 4 ranks, write 256 (64 × 4)", "expected_batch_size: 256?"],
    ),
    "ranks beside an expected batch": (
        [("expected_batch_size: 500", "expected_batch_size: 64\n  num_gpus: 4")],
        "10:3", ["if 64 is the batch of one of 4 ranks, write 256 (64 × 4)"],
    ),
    "ranks and micro-batches": (
        [("expected_batch_size: 500", "per_device_train_batch_size: 64\n  gradient_accumulation_steps: 8"),
         ("name: training", "name: training\nworld_size: 4")],
        "11:3", ["one of 4 ranks and 8 micro-batches, write 2_048 (64 × 4 × 8)"],
    ),
    "a batch of what is not said": ([("expected_batch_size", "batch_size")], "9:3", ["records of all ranks", "_size?"]),
    "class weights": ([("poisson", "poisson\n  class_weights: [1, 9]")], "13:3", ["the largest of these prob"]),
    "a weighted sampler": (
        [("poisson", "WeightedRandomSampler")],
        "12:9", ["depends only on this record", "a fixed number of draws with weights", "`kind: poisson`"],
    ),
    "a tree by another name": ([("noise:", "matrix:\n  kind: dp-ftrl\nnoise:")], "14:9", ["did you mean tree?"]),
    "discrete noise": (
        [("  multiplier", "  kind: discrete-gaussian\n  multiplier")], "14:9",
        ["a phase with `mechanism: {kind: discrete-gaussian}`"],
    ),
    "kind: mechanism": ([("name:", "kind: mechanism\nname:")], "2:1", ["leave it out"]),
    "unbounded": ([("add-remove", "unbounded")], "4:14", ["did you mean add-remove?"]),
    "shuffle": ([("poisson", "shuffle")], "12:9", ["balls-in-bins", "fixed-size"]),
    # Numbers as they are written elsewhere.
    "percent": ([("expected_batch_size: 500", "sampling_probability: 1%")], "9:25", ["did you mean 0.01?"]),
    "a batch in percent": ([("size: 500", "size: 1%")], "9:24", ["did you mean 500?"]),
    "a batch as a fraction": ([("size: 500", "size: 1/100")], "9:24", ["did you mean 500?"]),
    "a batch in percent of nothing known": (
        [("size: 500", "size: 1%"), ("  dataset_size: 50_000\n", "")], "8:24", ["did you mean sampling_probability: 0.01?"],
    ),
    "a batch in percent where records wait": (
        [("size: 500", "size: 1%"), ("  dataset_size: 50_000\n", ""), ("poisson", "b-min-sep\n  min_separation: 4")],
        "8:24", ["did you mean participation_rate: 0.01?"],
    ),
    "commas": ([("50_000", "50,000")], "8:17", ["did you mean 50_000?"]),
    "k": ([("50_000", "50k")], "8:17", ["did you mean 50_000?"]),
    "one over n": ([("1e-5", "1/50000")], "6:10", ["did you mean 2e-5?"]),
    "power": ([("1e-5", "10^-5")], "6:10", ["did you mean 1e-5?"]),
    "a comment too near": ([("1e-5", "1e-5# small")], "6:10", ["did you mean 1e-5 # small?"]),
    "epsilon in words": ([("epsilon: 8", "epsilon: eight")], "5:12", ["a number at least 0", "or solve"]),
    "a probability in percent": ([("expected_batch_size: 500", "sampling_probability: 1.5")], "9:25", ["at most 1"]),
    "δ = 0": ([("1e-5", "0")], "6:10", ["at least 1e-280 and less than 1"]),
    # Blanks.
    "auto": ([("solve", "auto")], "14:15", ["did you mean solve?"]),
    "a question mark": ([("solve", "?")], "14:15", ["written `solve`"]),
    "nothing": ([("epsilon: 8", "epsilon:")], "5:11", ["give a number", "or solve"]),
    "two blanks": ([("epsilon: 8", "epsilon: solve")], "14:15", ["at most one blank", "a number for every other"]),
    "neither blank nor claim": ([("  epsilon: 8\n", ""), ("solve", "1")], "4:3", ["epsilon is required", "or solve"]),
    "a blank that is none": ([("50_000", "solve"), ("multiplier: solve", "multiplier: 1")], "8:17", ["allowed at noise.mult"]),
    # Sections and sizes.
    "a sampler's bare name": ([("sampler:\n  kind: poisson", "sampler: poisson")], "11:10", ["did you mean {kind: poisson}?"]),
    "bare noise": (
        [("noise:\n  multiplier: solve", "noise: 1.1")],
        "13:8",
        ["A number alone does not say its unit; multiplier is the standard deviation"],
    ),
    "no adjacency": ([("  adjacency: add-remove\n", "")], "4:3", ["adjacency is required", "zero-out"]),
    "a small data set": ([("50_000", "100")], "9:24", ["100 records", "at most 100"]),
    "half a record": ([("500\n", "500.5\n"), ("poisson", "fixed-size")], "9:24", ["500 or 501"]),
    "an uneven epoch": ([("poisson", "balls-in-bins"), ("500\n", "499\n")], "9:24", ["bins: 100 (an expected batch of 500)"]),
    "a matrix with Poisson": (
        [("noise:", "matrix:\n  kind: banded-square-root\n  bands: 8\nnoise:")], "12:9", ["b-min-sep, balls-in-bins"],
    ),
    "iterations of a matrix": (
        [("poisson", "none\nmatrix:\n  kind: banded-square-root\n  bands: 2"), (BATCH, ""), ("2000", "solve"),
         ("multiplier: solve", "multiplier: 1")],
        "8:15", ["a number here, and `solve` at noise.multiplier"],
    ),
    "random parts with a BLT": (
        [("kind: poisson", "kind: cyclic-poisson\n  partitions: 10\n  phase: random\nmatrix:\n  kind: blt\n  buffers: 2")],
        "16:9", ["a banded matrix"],
    ),
    # YAML.
    "a tab": ([("  kind", "\tkind")], "12:1", ["spaces only"]),
    "no space after the colon": ([("epsilon: 8", "epsilon:8")], "5:3", ["colon and a space: `epsilon: 8`"]),
    "an equals sign": ([("epsilon: 8", "epsilon = 8")], "5:3", ["`epsilon: 8`"]),
    "indentation": ([("  epsilon", " epsilon")], "5:2", ["same column"]),
    "a colon in a name": ([("name: training", "name: a: b")], "2:8", ['`name: "a: b"`']),
    "one space too many": ([("  delta", "   delta")], "6:4", ["by 3 spaces", "line 5 above it by 2", "same column"]),
    "one space too few": ([("  adjacency", " adjacency")], "5:3", ["by 2 spaces", "line 4 above it by 1"]),
    "a section with a space": ([("training:\n", " training:\n")], "7:2", ["by 1 space, and line 6"]),
    "a tab in front": ([("  delta", "\tdelta")], "6:1", ["a tab in the indentation", "spaces only"]),
    "a no-break space for a space": (
        [("delta: ", "delta:\u00a0")], "6:9", ["a no-break space (U+00A0) is here", "write an ordinary space"],
    ),
    "a no-break space in front": ([("  delta", "\u00a0 delta")], "6:1", ["a no-break space (U+00A0)", "write an ordinary space"]),
    "a no-break space behind": ([("1e-5", "1e-5\u00a0")], "6:10", ["a no-break space (U+00A0)", "did you mean 1e-5?"]),
    "a zero-width space": ([("delta:", "delta\u200b:")], "6:3", ["a zero-width space (U+200B): delete it", "mean delta?"]),
    "a byte order mark inside": ([("  delta", "\ufeff  delta")], "6:1", ["a byte order mark (U+FEFF)", "delete it"]),
    "a quote without an end": ([("poisson", '"poisson')], "12:9", ["not closed", 'another "']),
    "a quote that ends at another one": (
        [("poisson", '"poisson'), ("solve", '"solve"')], "12:9", ["not closed", 'another "'],
    ),
    "a single quote": ([("poisson", "'poisson")], "12:9", ["not closed", "another '"]),
    "an at sign": ([("poisson", "@me")], "12:9", ["cannot start with @", '"@me"']),
    "a backtick": ([("poisson", "`poisson`")], "12:9", ["cannot start with `", '"poisson"']),
    "a percent sign": ([("poisson", "%poisson")], "12:9", ["cannot start with %", '"%poisson"']),
    "an asterisk": ([("poisson", "*poisson")], "12:9", ["* refers to a value", "in quotes"]),
    "a backslash": ([("poisson", '"poi\\son\\q"')], "12:13", ["a backslash starts an escape", "single quotes"]),
    "a bar": ([("poisson", "| poisson")], "12:9", ["several lines", "leave | out"]),
    "an open brace": ([("poisson", "{poisson")], "12:9", ["{ opens here and is not closed", "write }"]),
    "an open bracket": ([("poisson", "[poisson")], "12:9", ["[ opens here and is not closed", "write ]"]),
    "a closing brace": ([("poisson", "poisson\n}")], "13:1", ["} has no opening bracket"]),
    "a dash before a key": ([("  epsilon", "  - epsilon")], "5:3", ["starts with a dash", "leave the dash out"]),
    "a dash before a value": ([("poisson", "- poisson")], "12:9", ["a dash starts an entry of a list", "`poisson`"]),
    "a section without its colon": ([("sampler:", "sampler")], "11:1", ["a key ends with a colon: `sampler:`"]),
    "a full-width colon": ([("delta:", "delta：")], "6:8", ["a full-width colon ： (U+FF1A)", "write :"]),
    "no space after the only colon": ([("kind: poisson", "kind:poisson")], "12:3", ["needs a space after it: `kind: poisson`"]),
    "typographic quotes": (
        [("poisson", "“poisson”")], "12:9", ["a typographic quotation mark “ (U+201C)", "straight quotes", "mean poisson?"],
    ),
    # Numbers as they are written elsewhere, or as word processors leave them.
    "a decimal comma": ([("epsilon: 8", "epsilon: 8,0")], "5:12", ["decimals follow a point", "did you mean 8.0?"]),
    "a decimal comma of thousandths": ([("solve", "1,125")], "14:15", ["decimals follow a point", "did you mean 1.125?"]),
    "a small decimal comma": ([("1e-5", "0,001")], "6:10", ["did you mean 0.001?"]),
    "a typographic minus": ([("1e-5", "1e−5")], "6:10", ["a typographic minus − (U+2212): write -", "did you mean 1e-5?"]),
    "a typographic minus without an e": ([("1e-5", "1−5")], "6:10", ["a typographic minus", "did you mean 1e-5?"]),
    "a raised exponent": ([("1e-5", "10⁻⁵")], "6:10", ["did you mean 1e-5?"]),
    "full-width digits": ([("2000", "２０００")], "10:15", ["a full-width digit", "did you mean 2000?"]),
    "thousands behind a point": ([("50_000", "60.000")], "8:17", ["decimals, which is 60, or thousands, which is 60_000"]),
    "thousands of rounds": ([("2000", "2.000")], "10:15", ["decimals, which is 2, or thousands, which is 2_000"]),
    "a mean batch in thousands": ([("size: 500", "size: 6.000")], "9:24", ["which is 6, or thousands, which is 6_000"]),
    "epochs in thousands": ([("iterations: 2000", "epochs: 1.000")], "10:11", ["which is 1, or thousands, which is 1_000"]),
    "thousands in quotes": ([("50_000", "'60.000'")], "8:17", ["decimals, which is 60, or thousands, which is 60_000"]),
    "millions behind points": ([("50_000", "1.000.000")], "8:17", ["did you mean 1_000_000?"]),
    "a comma at the end": ([("2000", "2000,")], "10:15", ["did you mean 2000?"]),
    # Sweeps.
    "varies": ([("noise:", "varies: {privacy.epsilon: [1, 2]}\nnoise:")], "13:1", ["`vary:`", "pyaccount sweep"]),
    "twice": ([("  epsilon: 8", "  epsilon: 8\n  epsilon: 4")], "6:3", ["already given at line 5"]),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_name_the_place_and_the_fix(mistake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edits, place, words = MISTAKES[mistake]
    text = VALID
    for before, after in edits:
        assert before in text
        text = text.replace(before, after, 1)
    file = tmp_path / "document.yaml"
    file.write_text(text, encoding="utf-8")
    assert cli.run(["validate", str(file)]) == 2
    told = capsys.readouterr().err
    assert f"{file}:{place}:" in told
    for word in words:
        assert word in told, told
    # One mistake is told once; what follows from it is not.
    assert told.count("\n    did you mean") + told.count("[missing-key]") <= max(1, len(edits))


#: What the parser says, in words that nobody knows who writes a document.
JARGON = (
    "token",
    "scalar",
    "block",
    "flow",
    "context",
    "mapping values",
    "scanning",
    "parsing",
    "stream",
    "simple key",
    "expected",
)


@pytest.mark.parametrize(
    "loader", [loader for name in ("CSafeLoader", "SafeLoader") if (loader := getattr(yaml, name, None))]
)
def test_whatever_breaks_a_document_is_told_without_the_parsers_words(
    loader: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign or a space more, or a character less, at every place of a document."""
    monkeypatch.setattr(reader, "LOADER", loader)
    # The parser in Python takes ten times as long.
    places = range(0, len(VALID), 2 if loader.__name__ == "CSafeLoader" else 9)
    texts = {VALID[:place] + sign + VALID[place:] for place in places for sign in "@:\"'{]-|&*!%\t `?,#\\"}
    texts |= {VALID[:place] + VALID[place + 1 :] for place in places}
    broken = 0
    for text in sorted(texts):
        try:
            reader.read_tree(text)
        except pyaccount.DocumentError as error:
            problem = error.problems[-1]
            assert not any(word in problem.message.replace("expected_batch_size", "") for word in JARGON), (
                text,
                problem.message,
            )
            assert problem.line is not None
            assert 1 <= problem.line <= text.count("\n") + 1
            broken += problem.slug == "syntax-error"
    assert broken > len(texts) // 10


def test_counts_that_a_program_writes_are_no_thousands(tmp_path: Path) -> None:
    """A number such as 60.0 has one reading, and so has one that is not counted."""
    for text in (
        VALID.replace("2000", "2000.0"),
        VALID.replace("epsilon: 8", "epsilon: 8.000"),
        VALID.replace("500\n", "500.5\n"),
    ):
        file = tmp_path / "document.yaml"
        file.write_text(text, encoding="utf-8")
        assert load_written(file).name == "training"
    document = yaml.safe_load(VALID)
    document["training"]["dataset_size"] = 60_000.0
    assert pyaccount.load(document).name == "training"


def test_what_varies_under_another_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(VALID + "varies: {privacy.epsilon: [1, 2]}\n", encoding="utf-8")
    assert cli.run(["sweep", str(file)]) == 2
    assert "did you mean vary?" in capsys.readouterr().err


def test_the_document_without_mistakes_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID, encoding="utf-8")
    assert cli.run(["validate", str(file)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("suggested", "edits"),
    [
        ("{kind: poisson}", ("sampler:\n  kind: poisson", "sampler: {}")),
        ("{multiplier: 1.1}", ("noise:\n  multiplier: solve", "noise: {}")),
    ],
)
def test_suggested_mappings_are_what_belongs_there(suggested: str, edits: tuple[str, str]) -> None:
    text = VALID.replace(edits[0], edits[1].format(suggested))
    assert pyaccount.load(yaml.safe_load(text)).name == "training"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1%", 0.01), ("0.5 %", 0.005), ("50,000", 50_000), ("1,234,567", 1_234_567), ("50 000", 50_000), ("2.5k", 2500),
        ("1.2M", 1_200_000), ("1/50000", 2e-5), ("500/50_000", 0.01), ("10^-5", 1e-5), ("10**-6", 1e-6), ("3*10^-4", 3e-4),
        ("2.5 x 10^3", 2500), ("8,0", 8.0), ("50,00", 50.0), ("0,001", 0.001), ("1,5e3", 1500), ("1e−5", 1e-5), ("1−5", 1e-5),
        ("10⁻⁵", 1e-5), ("10−5", 1e-5), ("3·10⁻⁴", 3e-4), ("1.000.000", 1_000_000), ("60\u202f000", 60_000), ("100;", 100),
        ("１００", 100), ("“8”", 8.0), ("1e-5\u00a0", 1e-5),
    ],
)  # fmt: skip
def test_numbers_are_suggested_as_they_were_meant(text: str, number: float) -> None:
    spelled = meant(text)
    assert spelled is not None
    assert parse_number(spelled) == pytest.approx(number, rel=1e-11)
    # None of them is a number of the language already, which the suggestion would then misread.
    assert parse_number(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%",
        "1/0",
        "10^",
        "a",
        "1k2",
        "x" * 10_000,
        "1.2.3",
        "10^99999999999",
        "1.2.3*10^4",
        "1e999k",
        "1e300/1e-300",
    ],
)
def test_no_number_is_suggested_where_none_was_meant(text: str) -> None:
    assert meant(text) is None


def test_keys_of_other_libraries_are_no_keys_here() -> None:
    schema = json.loads((ROOT / "schemas" / "mechanism.v1.schema.json").read_text(encoding="utf-8"))
    known = {key for part in [schema, *schema["$defs"].values()] for key in part.get("properties", {})}
    # A mechanism has a sensitivity, in the unit of what it releases; a training run has a clip norm, and needs none.
    assert known & set(FOREIGN_KEYS) == {"sensitivity"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A document, its certificate, a report and a policy."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "training.yaml").write_text(
        VALID.replace("solve", "1").replace("epsilon: 8", "epsilon: 9"), encoding="utf-8"
    )
    assert cli.run(["certify", str(folder / "training.yaml"), "-o", str(folder / "training.json"), "--quiet"]) == 0
    assert cli.run(["report", str(folder / "training.json"), "-o", str(folder / "report.html")]) == 0
    (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["certify", "training.json"], ["it is a certificate", "pyaccount report", "under `document`"]),
        (["validate", "training.json"], ["it is a certificate"]),
        (["compare", "training.yaml", "report.html"], ["report.html"]),
        (["report", "training.yaml"], ["pyaccount certify", "training.yaml -o CERT"]),
        (["check", "training.yaml", "--no-limits"], ["pyaccount certify"]),
        (["verify", "training.yaml"], ["pyaccount certify"]),
        (["verify", "report.html"], ["a report", "`pyaccount certify -o`"]),
        (["report", "policy.yaml"], ["a policy", "--policy"]),
        (["certify", "policy.yaml"], ["a policy", "--policy"]),
        (["check", "training.json", "--policy", "training.yaml"], ["kind: policy", "limits"]),
        (["training.yaml"], ["pyaccount certify training.yaml"]),
        (["training.json"], ["pyaccount report training.json"]),
        (["help"], ["pyaccount --help"]),
        (["certfy", "training.yaml"], ["there is no command certfy", "did you mean certify?"]),
        (["certify", "training.yaml", "--plot", "x.svg"], ["pyaccount report CERT", "pyaccount compare --plot"]),
        (["plan", "training.yaml", "--plot", "x.svg"], ["plan does not have it", "certify, compare, sweep"]),
        (["certify", "trainig.yaml"], ["no such file", "did you mean", "training.yaml?"]),
        (["certify", "."], ["a folder", "the YAML file in it"]),
        (["report", "."], ["a folder", "the JSON file of a certificate"]),
        (["verify", "."], ["a folder", "the JSON file of a certificate"]),
        (["certify", "training.yaml", "--epsilon", "4"], ["--set privacy.epsilon=VALUE"]),
        (["plan", "training.yaml", "--sigma", "4"], ["--set noise.multiplier=VALUE"]),
        (["certify", "training.yaml", "--set", "epsilon=4"], ["did you mean privacy.epsilon?"]),
        (["certify", "training.yaml", "--set", "privacy.epsilon:4"], ["written path=value"]),
        (["certify", "training.yaml", "--set", "sampler=poisson"], ["did you mean {kind: poisson}?"]),
        (["check", "training.json", "--max-epsilon", "eight"], ["--max-epsilon eight", "a number"]),
        (["check", "training.json", "--adjacency", "add_remove"], ["did you mean add-remove?"]),
    ],
)
def test_one_file_for_another_and_options_for_keys(
    command: list[str],
    words: list[str],
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(files)
    assert cli.run(command) == 2
    told = capsys.readouterr().err
    for word in words:
        assert word in told, told
    assert "Traceback" not in told


@pytest.mark.parametrize(("delta", "noted"), [("0.1", True), ("2e-5", True), ("1.9e-5", False), ("1e-5", False)])
def test_a_delta_that_publishes_a_record_is_noted(
    delta: str, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID.replace("1e-5", delta), encoding="utf-8")
    assert load_written(file).name == "training"
    for command in ("validate", "plan", "certify", "compare"):
        assert cli.run([command, str(file)]) == 0
        told = capsys.readouterr().err
        assert (f"{file}:6:10: note: privacy.delta" in told) is noted
        assert ("1/50_000" in told) is noted
    assert cli.run(["certify", str(file), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["drafted.yaml", "-"])
def test_a_drafted_document_has_its_notes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answers = ["--dataset-size", "1000", "--batch-size", "10", "--iterations", "20", "--epsilon", "8", "--delta", "0.1"]
    assert cli.run(["init", name, "--yes", *answers]) == 0
    told = capsys.readouterr().err
    assert "note: privacy.delta = 0.1: δ is not below 1/1_000" in told
    assert told.startswith(f"{name}:" if name != "-" else tuple("123456789"))


#: Words for mechanisms that are no slips of one that is implemented, and slips that are.
OTHERS = {
    "sampler": [
        "user-poisson",
        "adaptive-poisson",
        "weighted",
        "poisson-binomial",
        "fixed-size-with-replacement",
        "shuffled-poisson",
    ],
    "noise": [
        "discrete-gaussian",
        "gaussian-discrete",
        "d-gaussian",
        "bounded-laplace",
        "geometric",
        "skellam",
        "truncated-gaussian",
    ],
    "matrix": ["sparse-toeplitz", "toeplitz-inverse", "identity-inverse"],
}
SLIPS = {
    "sampler": {"poison": "poisson", "Poisson": "poisson", "bernoulli": "poisson", "cyclicpoisson": "cyclic-poisson",
                "fixed-sized": "fixed-size", "fixed_size": "fixed-size", "balls-bins": "balls-in-bins"},
    "noise": {"gausian": "gaussian", "Gaussian": "gaussian", "normal": "gaussian", "laplacian": "laplace"},
    "matrix": {"toeplits": "toeplitz", "bsr": "banded-square-root", "banded_square_root": "banded-square-root",
               "binary-tree": "tree"},
}  # fmt: skip


def told_of(section: str, kind: str) -> pyaccount.Problem:
    document = yaml.safe_load(VALID)
    document[section] = {**document.get(section, {}), "kind": kind}
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.load(document)
    return next(problem for problem in caught.value.problems if problem.path == (section, "kind"))


@pytest.mark.parametrize(("section", "kind"), [(section, kind) for section, kinds in OTHERS.items() for kind in kinds])
def test_no_other_mechanism_is_suggested(section: str, kind: str) -> None:
    problem = told_of(section, kind)
    assert problem.suggestion is None
    assert problem.slug == "unknown-kind"


@pytest.mark.parametrize(
    ("section", "kind", "meant"),
    [(section, kind, meant) for section, kinds in SLIPS.items() for kind, meant in kinds.items()],
)
def test_a_slip_of_a_kind_is_corrected(section: str, kind: str, meant: str) -> None:
    assert told_of(section, kind).suggestion == meant


def test_a_special_record_is_none_of_the_data() -> None:
    """dp_accounting's REPLACE_SPECIAL: the other record contributes nothing."""
    document = yaml.safe_load(VALID)
    document["privacy"]["adjacency"] = "replace-special"
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.load(document)
    assert [problem.suggestion for problem in caught.value.problems] == ["zero-out"]


@pytest.mark.parametrize(
    ("length", "noted"),
    [
        ("iterations: 75_000", True),  # 750 epochs of 100 rounds
        ("iterations: 50_001", True),
        ("iterations: 50_000", False),
        ("epochs: 750", False),
    ],
)
def test_iterations_that_may_be_micro_batches_are_noted(
    length: str, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID.replace("iterations: 2000", length), encoding="utf-8")
    assert cli.run(["validate", str(file)]) == 0
    told = capsys.readouterr().err
    assert ("note: training.iterations" in told) is noted
    assert ("gradient accumulation" in told) is noted
    if length == "iterations: 75_000":
        assert "this is 750 epochs of 100 rounds" in told


def test_many_rounds_of_large_batches_are_usual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID.replace("size: 500\n", "size: 5_000\n").replace("2000", "100_000"), encoding="utf-8")
    assert cli.run(["validate", str(file)]) == 0
    assert capsys.readouterr().err == ""


def phases(*noises: object, epsilon: object = 1) -> dict[str, object]:
    document = yaml.safe_load(VALID)
    body = {key: document.pop(key) for key in ("training", "sampler", "noise")}
    document["privacy"]["epsilon"] = epsilon
    return document | {"phases": [body | {"noise": {"multiplier": noise}} for noise in noises]}


def test_one_noise_for_several_phases_says_what_can_be_done() -> None:
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.load(phases("solve", "solve", 1))
    (problem,) = caught.value.problems
    assert problem.slug == "several-blanks"
    for words in (
        "phases[0].noise.multiplier is solve too",
        "a number for every other",
        "`count`",
        "`pyaccount sweep`",
    ):
        assert words in problem.message
    # Blanks of two kinds ask for nothing in common.
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.load(phases("solve", 1, epsilon="solve"))
    assert "of several phases" not in str(caught.value)
    assert "a number for every other" in str(caught.value)


@pytest.mark.parametrize("blank", ["multiplier", "iterations"])
def test_phases_that_miss_the_target_by_themselves_say_their_cost(blank: str) -> None:
    document = phases(1, 0.7)
    others: dict[str, object] = phases(0.7, epsilon="solve")
    section = "noise" if blank == "multiplier" else "training"
    document["phases"][0][section] = {**document["phases"][0][section], blank: "solve"}  # type: ignore[index]
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.certify(document)
    (problem,) = caught.value.problems
    assert problem.slug == "target-infeasible"
    found = re.search(r"without this phase ε is at least ([\d.]+) and at most ([\d.]+) at δ = 1e-5", problem.message)
    assert found is not None, problem.message
    # What the other phase costs in a document of its own lies between.
    alone = pyaccount.certify(others)
    assert float(found[1]) <= alone.epsilon
    assert float(found[2]) >= alone.epsilon_lower
    assert float(found[1]) > 1.0


@pytest.mark.parametrize(("batch", "noted"), [("0.01", True), ("0.99", True), ("1", False), ("500", False)])
def test_a_batch_of_less_than_a_record_is_noted(
    batch: str, noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID.replace("size: 500", f"size: {batch}"), encoding="utf-8")
    assert cli.run(["validate", str(file)]) == 0
    told = capsys.readouterr().err
    assert (f"{file}:9:24: note: training.expected_batch_size = {batch}: this is less than one record" in told) is noted


@pytest.mark.parametrize("edit", [("50_000", "1%"), ("2000", "1/3"), ("50_000", "10^-5")])
def test_no_number_is_suggested_that_would_be_refused_too(edit: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID.replace(*edit), encoding="utf-8")
    with pytest.raises(pyaccount.DocumentError) as caught:
        load_written(file)
    assert [problem.suggestion for problem in caught.value.problems] == [None]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "-", "--yes", "--dataset-size", "50,000"], "--dataset-size 50,000: must be a whole number"),
        (["init", "-", "--yes", "--dataset-size", "50k"], "did you mean 50_000?"),
        (["init", "-", "--yes", "--delta", "1%"], "did you mean 0.01?"),
        (["init", "-", "--yes", "--iterations", "2k"], "did you mean 2_000?"),
        (["check", "c.json", "--max-age", "1w"], "a time such as 12 h or 90 d"),
    ],
)
def test_messages_of_options_name_the_fix(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 2
    assert words in capsys.readouterr().err


def test_standard_input_is_for_the_commands() -> None:
    for name in ("-", "/dev/stdin"):
        with pytest.raises(pyaccount.DocumentError, match="only the commands read standard input"):
            pyaccount.certify(name)


def test_a_text_is_no_path() -> None:
    with pytest.raises(pyaccount.DocumentError, match="this looks like YAML text"):
        pyaccount.certify(VALID)


def test_a_file_that_cannot_be_read_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent = str(tmp_path / "nosuch.json")
    assert cli.run(["check", absent, "--max-epsilon", "8", "--max-delta", "1e-5"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{absent}: cannot be read: No such file or directory\n")
