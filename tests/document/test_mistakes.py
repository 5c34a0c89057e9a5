"""Mistakes that newcomers make: each message says where, and what to write instead."""

import json
import re
from pathlib import Path

import pytest
import yaml
from places import EXAMPLES, ROOT
from snapshots import Run, Snapshot

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

#: What is written instead of what.
MISTAKES: dict[str, list[tuple[str, str]]] = {
    # Names of other libraries.
    "sample_rate": [("expected_batch_size: 500", "sample_rate: 0.01")],
    "steps": [("iterations", "steps")],
    "sigma": [("  multiplier", "  sigma")],
    "noise_multiplier on top": [("noise:\n  multiplier:", "noise_multiplier:")],
    "batch_size": [("expected_batch_size", "batch_size")],
    "target_epsilon": [("epsilon", "target_epsilon")],
    "num_epochs": [("iterations: 2000", "num_epochs: 20")],
    "max_grad_norm": [("multiplier: solve", "multiplier: solve\n  max_grad_norm: 1")],
    "learning rate": [("noise:", "lr: 0.1\nnoise:")],
    "Rényi orders": [("noise:", "alphas: [2, 3]\nnoise:")],
    "rdp": [("noise:", "accounting:\n  method: rdp\nnoise:")],
    "version": [("pyaccount: 1", "version: 1")],
    "shuffle: true": [("poisson", "poisson\n  shuffle: true")],
    "ranks": [("expected_batch_size: 500", "batch_size: 64\n  world_size: 4")],
    "ranks beside an expected batch": [("expected_batch_size: 500", "expected_batch_size: 64\n  num_gpus: 4")],
    "ranks and micro-batches": [
        ("expected_batch_size: 500", "per_device_train_batch_size: 64\n  gradient_accumulation_steps: 8"),
        ("name: training", "name: training\nworld_size: 4"),
    ],
    "class weights": [("poisson", "poisson\n  class_weights: [1, 9]")],
    "a weighted sampler": [("poisson", "WeightedRandomSampler")],
    "a tree by another name": [("noise:", "matrix:\n  kind: dp-ftrl\nnoise:")],
    "discrete noise": [("  multiplier", "  kind: discrete-gaussian\n  multiplier")],
    "kind: mechanism": [("name:", "kind: mechanism\nname:")],
    "unbounded": [("add-remove", "unbounded")],
    "shuffle": [("poisson", "shuffle")],
    # Numbers as they are written elsewhere.
    "percent": [("expected_batch_size: 500", "sampling_probability: 1%")],
    "a batch in percent": [("size: 500", "size: 1%")],
    "a batch as a fraction": [("size: 500", "size: 1/100")],
    "a batch in percent of nothing known": [("size: 500", "size: 1%"), ("  dataset_size: 50_000\n", "")],
    "a batch in percent where records wait": [
        ("size: 500", "size: 1%"),
        ("  dataset_size: 50_000\n", ""),
        ("poisson", "b-min-sep\n  min_separation: 4"),
    ],
    "commas": [("50_000", "50,000")],
    "k": [("50_000", "50k")],
    "one over n": [("1e-5", "1/50000")],
    "power": [("1e-5", "10^-5")],
    "a comment too near": [("1e-5", "1e-5# small")],
    "epsilon in words": [("epsilon: 8", "epsilon: eight")],
    "a probability in percent": [("expected_batch_size: 500", "sampling_probability: 1.5")],
    "δ = 0": [("1e-5", "0")],
    # Blanks.
    "auto": [("solve", "auto")],
    "a question mark": [("solve", "?")],
    "nothing": [("epsilon: 8", "epsilon:")],
    "two blanks": [("epsilon: 8", "epsilon: solve")],
    "neither blank nor claim": [("  epsilon: 8\n", ""), ("solve", "1")],
    "a blank that is none": [("50_000", "solve"), ("multiplier: solve", "multiplier: 1")],
    # Sections and sizes.
    "a sampler's bare name": [("sampler:\n  kind: poisson", "sampler: poisson")],
    "bare noise": [("noise:\n  multiplier: solve", "noise: 1.1")],
    "no adjacency": [("  adjacency: add-remove\n", "")],
    "a small data set": [("50_000", "100")],
    "half a record": [("500\n", "500.5\n"), ("poisson", "fixed-size")],
    "an uneven epoch": [("poisson", "balls-in-bins"), ("500\n", "499\n")],
    "a matrix with replacement": [
        ("poisson", "with-replacement"),
        ("noise:", "matrix:\n  kind: banded-square-root\n  bands: 8\nnoise:"),
    ],
    "iterations of a matrix": [
        ("poisson", "none\nmatrix:\n  kind: banded-square-root\n  bands: 2"),
        (BATCH, ""),
        ("2000", "solve"),
        ("multiplier: solve", "multiplier: 1"),
    ],
    "random parts with a BLT": [
        ("kind: poisson", "kind: cyclic-poisson\n  partitions: 10\n  phase: random\nmatrix:\n  kind: blt\n  buffers: 2")
    ],
    # YAML.
    "a tab": [("  kind", "\tkind")],
    "no space after the colon": [("epsilon: 8", "epsilon:8")],
    "an equals sign": [("epsilon: 8", "epsilon = 8")],
    "indentation": [("  epsilon", " epsilon")],
    "a colon in a name": [("name: training", "name: a: b")],
    "one space too many": [("  delta", "   delta")],
    "one space too few": [("  adjacency", " adjacency")],
    "a section with a space": [("training:\n", " training:\n")],
    "a tab in front": [("  delta", "\tdelta")],
    "a no-break space for a space": [("delta: ", "delta:\u00a0")],
    "a no-break space in front": [("  delta", "\u00a0 delta")],
    "a no-break space behind": [("1e-5", "1e-5\u00a0")],
    "a zero-width space": [("delta:", "delta\u200b:")],
    "a byte order mark inside": [("  delta", "\ufeff  delta")],
    "a quote without an end": [("poisson", '"poisson')],
    "a quote that ends at another one": [("poisson", '"poisson'), ("solve", '"solve"')],
    "a single quote": [("poisson", "'poisson")],
    "an at sign": [("poisson", "@me")],
    "a backtick": [("poisson", "`poisson`")],
    "a percent sign": [("poisson", "%poisson")],
    "an asterisk": [("poisson", "*poisson")],
    "a backslash": [("poisson", '"poi\\son\\q"')],
    "a bar": [("poisson", "| poisson")],
    "an open brace": [("poisson", "{poisson")],
    "an open bracket": [("poisson", "[poisson")],
    "a closing brace": [("poisson", "poisson\n}")],
    "a dash before a key": [("  epsilon", "  - epsilon")],
    "a dash before a value": [("poisson", "- poisson")],
    "a section without its colon": [("sampler:", "sampler")],
    "a full-width colon": [("delta:", "delta：")],
    "no space after the only colon": [("kind: poisson", "kind:poisson")],
    "typographic quotes": [("poisson", "“poisson”")],
    # Numbers as they are written elsewhere, or as word processors leave them.
    "a decimal comma": [("epsilon: 8", "epsilon: 8,0")],
    "a decimal comma of thousandths": [("solve", "1,125")],
    "a small decimal comma": [("1e-5", "0,001")],
    "a typographic minus": [("1e-5", "1e−5")],
    "a typographic minus without an e": [("1e-5", "1−5")],
    "a raised exponent": [("1e-5", "10⁻⁵")],
    "full-width digits": [("2000", "２０００")],
    "thousands behind a point": [("50_000", "60.000")],
    "thousands of rounds": [("2000", "2.000")],
    "a mean batch in thousands": [("size: 500", "size: 6.000")],
    "epochs in thousands": [("iterations: 2000", "epochs: 1.000")],
    "thousands in quotes": [("50_000", "'60.000'")],
    "millions behind points": [("50_000", "1.000.000")],
    "a comma at the end": [("2000", "2000,")],
    # Sweeps.
    "varies": [("noise:", "varies: {privacy.epsilon: [1, 2]}\nnoise:")],
    "twice": [("  epsilon: 8", "  epsilon: 8\n  epsilon: 4")],
    # What is noted of valid documents, and what is not: many iterations may be micro-batches.
    "75,000 iterations": [("2000", "75_000")],
    "one iteration more than records": [("2000", "50_001")],
    "as many iterations as records": [("2000", "50_000")],
    "750 epochs": [("iterations: 2000", "epochs: 750")],
    "many rounds of large batches": [("size: 500\n", "size: 5_000\n"), ("2000", "100_000")],
    "a hundredth of a record": [("size: 500", "size: 0.01")],
    "nearly a record": [("size: 500", "size: 0.99")],
    "one record": [("size: 500", "size: 1")],
    # No number is suggested that would be refused too.
    "a data set in percent": [("50_000", "1%")],
    "a third of an iteration": [("2000", "1/3")],
    "a data set of less than a record": [("50_000", "10^-5")],
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_messages_name_the_place_and_the_fix(mistake: str, tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    text = VALID
    for before, after in MISTAKES[mistake]:
        assert before in text
        text = text.replace(before, after, 1)
    file = tmp_path / "document.yaml"
    file.write_text(text, encoding="utf-8")
    done = run("validate", file)
    snapshot(done)
    # One mistake is told once; what follows from it is not.
    assert done.err.count("\n    did you mean") + done.err.count("[missing-key]") <= max(1, len(MISTAKES[mistake]))


#: What the parser says, in words that nobody knows who writes a document.
JARGON = (
    *("token", "scalar", "block", "flow", "context", "mapping values", "scanning", "parsing", "stream", "simple key"),
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


def test_what_varies_under_another_key(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(VALID + "varies: {privacy.epsilon: [1, 2]}\n", encoding="utf-8")
    snapshot(run("sweep", file))


def test_the_document_without_mistakes_is_valid(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID, encoding="utf-8")
    snapshot(run("validate", file))


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
        *["%", "1/0", "10^", "a", "1k2", "1.2.3", "10^99999999999", "1.2.3*10^4", "1e999k", "1e300/1e-300"],
        "x" * 10_000,
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
    "line",
    [
        "certify training.json",
        "validate training.json",
        "compare training.yaml report.html",
        "report training.yaml",
        "check training.yaml --no-limits",
        "verify training.yaml",
        "verify report.html",
        "report policy.yaml",
        "certify policy.yaml",
        "check training.json --policy training.yaml",
        "training.yaml",
        "training.json",
        "help",
        "certfy training.yaml",
        "certify training.yaml --plot x.svg",
        "plan training.yaml --plot x.svg",
        "certify trainig.yaml",
        "certify .",
        "report .",
        "verify .",
        "certify training.yaml --epsilon 4",
        "plan training.yaml --sigma 4",
        "certify training.yaml --set epsilon=4",
        "certify training.yaml --set privacy.epsilon:4",
        "certify training.yaml --set sampler=poisson",
        "check training.json --max-epsilon eight",
        "check training.json --adjacency add_remove",
    ],
)
def test_one_file_for_another_and_options_for_keys(
    line: str, files: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    monkeypatch.chdir(files)
    snapshot(run(*line.split()))


@pytest.mark.parametrize("delta", ["0.1", "2e-5", "1.9e-5", "1e-5"])
def test_a_delta_that_publishes_a_record_is_noted(delta: str, tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    file = tmp_path / "document.yaml"
    file.write_text(VALID.replace("1e-5", delta), encoding="utf-8")
    assert load_written(file).name == "training"
    for command in ("validate", "plan", "certify", "compare"):
        code, _, err = run(command, file)
        snapshot(command, err)
        assert code == 0
    snapshot(run("certify", file, "--quiet"))


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
    "sampler": "user-poisson adaptive-poisson weighted poisson-binomial fixed-size-with-replacement shuffled-poisson",
    "noise": "discrete-gaussian gaussian-discrete d-gaussian bounded-laplace geometric skellam truncated-gaussian",
    "matrix": "sparse-toeplitz toeplitz-inverse identity-inverse",
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


@pytest.mark.parametrize(
    ("section", "kind"), [(section, kind) for section, kinds in OTHERS.items() for kind in kinds.split()]
)
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


def test_a_special_record_is_none_of_the_data(snapshot: Snapshot) -> None:
    """dp_accounting's REPLACE_SPECIAL: the other record contributes nothing."""
    document = yaml.safe_load(VALID)
    document["privacy"]["adjacency"] = "replace-special"
    snapshot.raised(pyaccount.load, document)


def phases(*noises: object, epsilon: object = 1) -> dict[str, object]:
    document = yaml.safe_load(VALID)
    body = {key: document.pop(key) for key in ("training", "sampler", "noise")}
    document["privacy"]["epsilon"] = epsilon
    return document | {"phases": [body | {"noise": {"multiplier": noise}} for noise in noises]}


def test_one_noise_for_several_phases_says_what_can_be_done(snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.load, phases("solve", "solve", 1))
    # Blanks of two kinds ask for nothing in common.
    snapshot.raised(pyaccount.load, phases("solve", 1, epsilon="solve"))


@pytest.mark.parametrize("blank", ["multiplier", "iterations"])
def test_phases_that_miss_the_target_by_themselves_say_their_cost(blank: str, snapshot: Snapshot) -> None:
    document = phases(1, 0.7)
    others: dict[str, object] = phases(0.7, epsilon="solve")
    section = "noise" if blank == "multiplier" else "training"
    document["phases"][0][section] = {**document["phases"][0][section], blank: "solve"}  # type: ignore[index]
    with snapshot.raises(pyaccount.DocumentError) as caught:
        pyaccount.certify(document)
    (problem,) = caught.value.problems
    found = re.search(r"without this phase ε is at least ([\d.]+) and at most ([\d.]+) at δ = 1e-5", problem.message)
    assert found is not None, problem.message
    # What the other phase costs in a document of its own lies between.
    alone = pyaccount.certify(others)
    assert float(found[1]) <= alone.epsilon
    assert float(found[2]) >= alone.epsilon_lower
    assert float(found[1]) > 1.0


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "-", "--yes", "--dataset-size", "50,000"],
        ["init", "-", "--yes", "--dataset-size", "50k"],
        ["init", "-", "--yes", "--delta", "1%"],
        ["init", "-", "--yes", "--iterations", "2k"],
        ["check", "c.json", "--max-age", "1w"],
    ],
)
def test_messages_of_options_name_the_fix(arguments: list[str], run: Run, snapshot: Snapshot) -> None:
    snapshot(run(*arguments))


def test_standard_input_is_for_the_commands(snapshot: Snapshot) -> None:
    for name in ("-", "/dev/stdin"):
        snapshot.raised(pyaccount.certify, name)


def test_a_text_is_no_path(snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.certify, VALID)


def test_a_file_that_cannot_be_read_is_told_once(tmp_path: Path, run: Run, snapshot: Snapshot) -> None:
    absent = str(tmp_path / "nosuch.json")
    snapshot(run("check", absent, "--max-epsilon", "8", "--max-delta", "1e-5"))
