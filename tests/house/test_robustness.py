"""Damaged documents, policies and certificates give a located error or a right result, never a traceback or a partial file.

`PYACCOUNT_FUZZ=10000` damages 10,000 files of each sort; by default it is 120.
"""

import copy
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from certificate_oracle import inconsistencies
from gate_tools import RUNS, golden
from jsonschema import Draft202012Validator
from mutations import damaged, text_of, torn
from places import CERTIFICATES, EXAMPLES

import pyaccount
from pyaccount import cli, schemas
from pyaccount.document.document import Document
from pyaccount.document.loading import load, load_any
from pyaccount.plan.compiling import compile_document
from pyaccount.reading.written import sha256_of
from pyaccount.records.certificate import CertificateModel
from pyaccount.running import Plan

COUNT = int(os.environ.get("PYACCOUNT_FUZZ", "120"))
SEEDS = range(8)
DOCUMENTS = sorted(EXAMPLES.glob("*.yaml"))
POLICY = EXAMPLES / "policy.yaml"


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command and check that it ends with a documented exit code and, if that is not 0 or 1, a message."""
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    assert code in (0, 1, 2, 3), arguments
    assert code < 2 or captured.err.strip(), arguments
    assert "Traceback" not in captured.err
    (captured.out + captured.err).encode()
    return code, captured.out, captured.err


def plan_of(document: Document) -> tuple[object, ...]:
    """Return everything that a plan says about the analysis of a document."""
    plan = compile_document(document)
    return plan.question, plan.engine, plan.tolerance, tuple(
        (one.path, one.subject, one.theorem, one.source, one.pair, one.rounds, one.tight, one.remark, one.assumed)
        for one in plan.reductions
    )  # fmt: skip


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path != POLICY], ids=lambda path: path.stem)
def test_documents_pass_through_their_certificates(path: Path) -> None:
    """The document inside a certificate, as JSON text, compiles to the plan that made the certificate."""
    document = load_any(path)
    text = json.dumps(document.to_mapping(), ensure_ascii=False)
    again = load_any(json.loads(text))
    assert again == document
    assert sha256_of(json.loads(text)) == document.sha256
    assert again.to_mapping() == document.to_mapping()
    if isinstance(document, Document):
        assert isinstance(again, Document)
        assert plan_of(again) == plan_of(document)


@pytest.mark.parametrize("name", sorted(RUNS))
def test_embedded_documents_compile_to_the_same_plan(name: str) -> None:
    certificate = pyaccount.Certificate.load(RUNS[name])
    document = load(certificate.data.document)
    assert document.sha256 == certificate.data.document_sha256
    reductions = compile_document(
        pyaccount.certificate.certificate.resolved(certificate.data, document)  # type: ignore[attr-defined]
    ).reductions
    assert [one.theorem for one in reductions] == [one.theorem for one in certificate.data.reductions]
    assert [one.pair for one in reductions] == [one.pair for one in certificate.data.reductions]


def test_random_documents_pass_through_their_certificates() -> None:
    """Certificates of small documents of many shapes are intact, satisfy their schema, and contain the document."""
    rng = random.Random(11)
    validator = Draft202012Validator(schemas.schema("certificate"))
    for _ in range(max(12, COUNT // 20)):
        sampler = rng.choice(["poisson", "fixed-size", "with-replacement", "none"])
        adjacency = rng.choice(["add-remove", "zero-out", "replace-one"])
        blank = rng.choice(["epsilon", "delta", "multiplier", None])
        document: dict[str, Any] = {
            "pyaccount": 1,
            "name": rng.choice(["a", "ünï “x”", "x" * 200]),
            "privacy": {
                "adjacency": adjacency,
                "epsilon": "solve" if blank == "epsilon" else rng.choice([0.5, 2, 7.25]),
                "delta": "solve" if blank == "delta" else rng.choice([1e-3, "1e-5", 1e-9]),
            },
            "training": {"dataset_size": 1000, "expected_batch_size": 10, "iterations": rng.choice([1, 30, "1e2"])},
            "sampler": {"kind": sampler},
            "noise": {"multiplier": "solve" if blank == "multiplier" else rng.choice([0.9, 2, "4.5"])},
            # Where δ is 1e-70, a point takes half a minute and does not help this test.
            "accounting": {"profile": [0.1], "tolerance": 0.2},
        }
        if sampler == "none":
            document["training"] = {"iterations": 30}
            document["sampler"] |= {"max_participations": 3, "min_separation": 5}
        if sampler == "poisson" and rng.random() < 0.5:
            document["privacy"]["group_size"] = rng.choice([1, 3])
        try:
            certificate = pyaccount.certify(document)
        except pyaccount.PyaccountError:
            # Some of these documents have no result.
            continue
        written = json.loads(certificate.to_json())
        assert list(validator.iter_errors(written)) == []
        assert inconsistencies(pyaccount.Certificate.from_json(certificate.to_json()).data) == []
        asked, embedded = load(document), load(written["document"])
        assert embedded == asked
        assert embedded.sha256 == written["document_sha256"]
        assert plan_of(embedded) == plan_of(asked)


def documents() -> list[dict[str, Any]]:
    """Return the documents that are damaged: every example, with its matrix files."""
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in DOCUMENTS]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_documents(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(seed)
    originals = documents()
    path = tmp_path / "document.yaml"
    for number in range(COUNT // len(SEEDS)):
        text = text_of(damaged(rng.choice(originals), rng))
        path.write_bytes(torn(text, rng) if rng.random() < 0.3 else text)
        code, out, err = command(capsys, "validate", str(path))
        assert code in (0, 2)
        # If there is a text, the problem has a position in it or names the file.
        assert str(path) in (err if code == 2 else out)
        if number % 25 == 0 and code == 0:
            target = tmp_path / "out.json"
            more = ("--set", "accounting.time_limit=0.5") if b'"amplification"' not in path.read_bytes() else ()
            code, _, _ = command(capsys, "certify", str(path), *more, "-o", str(target), "--quiet")
            assert target.exists() == (code < 2)
            if target.exists():
                assert command(capsys, "check", str(target), "--no-limits")[0] in (0, 1, 2)
                target.unlink()
        assert sorted(item.name for item in tmp_path.iterdir()) == ["document.yaml"]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_policies(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(seed)
    original = yaml.safe_load(POLICY.read_text(encoding="utf-8"))
    validator = Draft202012Validator(schemas.schema("verdict"))
    path = tmp_path / "policy.yaml"
    for _ in range(COUNT // len(SEEDS)):
        text = text_of(damaged(original, rng))
        path.write_bytes(torn(text, rng) if rng.random() < 0.3 else text)
        asked = ("--policy", str(path), "--format", "json", "--no-limits")
        code, out, err = command(capsys, "check", str(RUNS["deterministic"]), *asked)
        found = json.loads(out)
        if code == 2:
            assert str(path) in err
            assert list(Draft202012Validator(schemas.schema("errors")).iter_errors(found)) == []
            assert {error["file"] for error in found["errors"]} == {str(path)}
        else:
            assert list(validator.iter_errors(found)) == []
            assert found["passes"] == (code == 0)


def originals() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CERTIFICATES.glob("v1/*.json"))]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_certificates(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(seed)
    sources = originals()
    path = tmp_path / "c.json"
    for _ in range(COUNT // len(SEEDS)):
        text = text_of(damaged(rng.choice(sources), rng))
        path.write_bytes(torn(text, rng) if rng.random() < 0.2 else text)
        code, out, err = command(capsys, "check", str(path), "--policy", str(POLICY))
        assert code in (0, 1, 2)
        assert str(path) in (err if code == 2 else out)
        assert [item.name for item in tmp_path.iterdir()] == ["c.json"]


#: Values of every shape, which replace parts of a document.
OTHERS: tuple[Any, ...] = ("x", 7, -1.5, True, None, [], ["x"], {}, {"x": 1})


def places_in(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*above, key)
        yield from places_in(one, (*above, key))


@pytest.mark.parametrize("path", RUNS.values(), ids=RUNS)
def test_whatever_stands_in_the_document_is_found_out(path: Path) -> None:
    """The document of a certificate may be any mapping; each part is replaced by a value of every other shape."""
    data = CertificateModel.model_validate_json(path.read_bytes())
    for place in places_in(data.document):
        for other in OTHERS:
            document = copy.deepcopy(data.document)
            parent: Any = document
            for key in place[:-1]:
                parent = parent[key]
            before, parent[place[-1]] = parent[place[-1]], other
            if (type(before), before) != (type(other), other):
                assert inconsistencies(data.model_copy(update={"document": document})), (place, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_certificates_recomputed(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged certificate that agrees states the same as the original, to the stated precision; every other one is detected."""
    rng = random.Random(seed)
    names = ["deterministic", "claim-fails", "smallest-delta", "group-of-phases"]
    validator = Draft202012Validator(schemas.schema("verification"))
    kept: dict[str, Any] = {}
    compute = Plan.run

    def run_once(self: Plan, **options: Any) -> Any:
        key = (self.asked or self.document).sha256
        if key not in kept:
            kept[key] = compute(self, **options)
        return kept[key]

    monkeypatch.setattr(Plan, "run", run_once)
    path = tmp_path / "c.json"
    for _ in range(COUNT // len(SEEDS)):
        original = golden(rng.choice(names))
        forged = damaged(original, rng)
        path.write_bytes(text_of(forged))
        code, out, err = command(capsys, "verify", str(path), "--time-limit", "1 s", "--format", "json")
        if code > 1:
            assert str(path) in err or "limit" in err or code == 3
            continue
        found = json.loads(out)
        assert list(validator.iter_errors(found)) == []
        if code == 0:
            for key in ("name", "holds", "assumptions", "privacy", "document_sha256"):
                assert forged[key] == original[key]
            for bound in ("epsilon", "delta"):
                # A relative error of 1/50 is larger than any precision that these state.
                assert forged["guarantee"][bound] == pytest.approx(original["guarantee"][bound], rel=0.02)


WRITER = """
import sys
from pathlib import Path
from pyaccount.files import write_atomically
target, texts = Path(sys.argv[1]), [Path(name).read_text(encoding="utf-8") for name in sys.argv[2:]]
while True:
    for text in texts:
        write_atomically(target, text)
        print("written", flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    rng = random.Random(3)
    names = [str(RUNS["deterministic"]), str(RUNS["group-of-phases"])]
    texts = [Path(name).read_bytes() for name in names]
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "c.json"
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(target), *names], stdout=subprocess.PIPE)
        assert process.stdout is not None
        # The process is killed while it writes, some time after this many.
        for _ in range(rng.randint(1, 20)):
            assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert process.returncode == -signal.SIGKILL
        assert target.read_bytes() in texts
        # A killed writer may leave other files, but they are hidden and do not have the name of a certificate.
        assert all(item.name.startswith(".c.json.") for item in folder.iterdir() if item != target)
