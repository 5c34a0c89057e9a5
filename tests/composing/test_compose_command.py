"""`pyaccount compose`: its output, its exit codes, and what it says on stderr."""

import json
import re
from pathlib import Path

import pytest
import yaml
from places import EXAMPLES, ROOT
from snapshots import Run, Snapshot

import pyaccount

GOLDEN = ROOT / "tests" / "golden" / "certificates" / "v1"
FIRST, SECOND = str(GOLDEN / "deterministic.json"), str(GOLDEN / "smallest-delta.json")
SAMPLED = str(GOLDEN / "verified.json")


def test_the_certificate_is_that_of_python(tmp_path: Path, run: Run) -> None:
    """The command writes the certificate that Python returns, and shows it as a page with what was composed."""
    file = tmp_path / "joint.json"
    code, out, err = run("compose", FIRST, SECOND, "--delta", "1e-6", "-o", file)
    assert (code, err) == (0, "")
    made = pyaccount.compose([FIRST, SECOND], delta=1e-6)
    written = pyaccount.Certificate.load(file)
    assert written.data.guarantee == made.data.guarantee
    assert written.data.document_sha256 == made.data.document_sha256
    assert out.startswith("Privacy certificate  golden and golden (2) together")
    assert "Composed from" in run("compose", FIRST, SECOND, "--delta", "1e-6", "--full").out
    assert "fixed before the first release" in " ".join(out.split())


def test_forms_and_claims(run: Run, snapshot: Snapshot) -> None:
    """Results are on stdout in every form; a claim that does not hold has exit code 1."""
    code, out, _ = run("compose", FIRST, SECOND, "--delta", "1e-6", "--format", "json")
    assert (code, json.loads(out)["kind"]) == (0, "certificate")
    snapshot(run("compose", FIRST, SECOND, "--delta", "1e-6", "--epsilon", "2", "--brief"))
    code, out, _ = run("compose", FIRST, SECOND, "--delta", "1e-6", "--epsilon", "2", "--quiet")
    assert (code, out) == (1, "")
    code, out, _ = run("compose", "--part", f"a={FIRST}", "--part", f"b={SECOND}", "--delta", "1e-6", "--brief")
    assert code == 0


def test_the_document_alone(tmp_path: Path, run: Run) -> None:
    """The joint document is printed as YAML that can be certified, and nothing is computed."""
    code, out, _ = run("compose", FIRST, SECOND, "--delta", "1e-6", "--document-only", "--name", "budget")
    assert code == 0
    (tmp_path / "joint.yaml").write_text(out, encoding="utf-8")
    document = pyaccount.load(tmp_path / "joint.yaml")
    assert document.name == "budget"
    assert document.sha256 == pyaccount.compose([FIRST, SECOND], delta=1e-6, name="budget").data.document_sha256


def test_rules_are_told(run: Run, snapshot: Snapshot) -> None:
    """What is not composed exactly is told on stderr, unless --quiet is given."""
    snapshot(run("compose", SAMPLED, "--brief"))
    code, _, err = run("compose", SAMPLED, "--brief", "--quiet", "--points", "guarantee")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (FIRST, FIRST),
        (FIRST, SECOND),
        (FIRST, SAMPLED, "--delta", "1e-6"),
        (str(GOLDEN / "claim-fails.json"),),
        (str(GOLDEN / "amplification.json"),),
        ("--part", "north"),
        ("--part", f"north={FIRST}"),
        ("no-such-file.json",),
        (FIRST, "--brief", "--format", "json"),
        ("-", "-"),
        (FIRST, "--delta", "2"),
        (SAMPLED, "--points", "guarantee", "--delta", "0.005"),
        (FIRST, "--adjacency", "swap"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], run: Run, snapshot: Snapshot) -> None:
    """A mistake has exit code 2, and its message is on stderr."""
    snapshot(run("compose", *arguments))


def test_errors_are_data(run: Run) -> None:
    """With --format json, errors are data with a slug and the file."""
    code, out, _ = run("compose", FIRST, FIRST, "--format", "json")
    (error,) = json.loads(out)["errors"]
    assert (code, error["slug"], error["file"]) == (2, "composed-twice", FIRST)


def test_a_time_limit(run: Run, snapshot: Snapshot) -> None:
    """At the time limit there is no certificate, and the exit code is 3."""
    snapshot(run("compose", FIRST, SECOND, "--delta", "1e-6", "--time-limit", "1e-6"))


# ---- The page on composing: its Python runs, and its figures are those of its examples


#: The page up to the filters, whose code tests/house/test_readme.py runs.
PAGE = (ROOT / "docs" / "composing.md").read_text(encoding="utf-8").partition("\n## Adaptive composition\n")[0]


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The snippet prints the sentence of a joint guarantee."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    exec(compile(code, "composing.md", "exec"), {})
    assert "“count and training together, all fixed beforehand”" in capsys.readouterr().out


def test_the_figures_of_the_page() -> None:
    """The two examples have the joint ε that the page states."""
    sources = [pyaccount.certify(EXAMPLES / name) for name in ("cifar10-dp-sgd.yaml", "count-and-train.yaml")]
    (stated,) = re.findall(r"ε is (\d\.\d\d) at δ = 1e-5", PAGE)
    made = pyaccount.compose(sources, delta=1e-5)
    assert f"{made.epsilon:.2f}" == stated
    assert sum(source.epsilon for source in sources) == pytest.approx(12, rel=1e-4)
    assert sum(source.delta for source in sources) == pytest.approx(1.1e-5)


def test_the_document_of_the_page() -> None:
    """Stated guarantees from samples make the certificate one by confidence, with their failure probability."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    loaded = yaml.safe_load(text.replace("1e-", "1.0e-"))
    guarantee = pyaccount.certify(loaded).data.guarantee
    assert (guarantee.kind, guarantee.failure_probability) == ("confidence", 1e-7)
    del loaded["phases"][0]["mechanism"]["failure_probability"]
    guarantee = pyaccount.certify(loaded).data.guarantee
    assert (guarantee.kind, guarantee.failure_probability) == ("verified", 0.0)
