"""Tests that the README, the docs and the examples show the actual results."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from attestation_tools import private_file
from page_snippets import frameworks, python_snippets
from places import CERTIFICATES, EXAMPLES, ROOT
from securesystemslib.signer import CryptoSigner

import pyaccount
from pyaccount import cli
from pyaccount.document.document import Document
from pyaccount.plan import compiling
from pyaccount.plan.compiled import CompiledDocument

README = (ROOT / "README.md").read_text(encoding="utf-8")
#: A policy is not a mechanism document; tests/gate/test_gate.py tests it.
DOCUMENTS = sorted(path for path in EXAMPLES.glob("*.yaml") if path.stem != "policy")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_the_document_shown_is_the_example() -> None:
    assert blocks("yaml") == [(EXAMPLES / "cifar10-dp-sgd.yaml").read_text(encoding="utf-8")]


def test_the_certificate_shown_is_the_one_it_yields(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.run(["certify", "examples/cifar10-dp-sgd.yaml"]) == 0
    printed = capsys.readouterr().out.splitlines()
    shown = blocks("text")[0].splitlines()
    start = printed.index(shown[0])
    assert printed[start : start + len(shown)] == shown


@pytest.mark.parametrize("snippet", blocks("python"), ids=lambda text: text.splitlines()[2][:30])
def test_python_snippets_run(snippet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(snippet, "README.md", "exec"), {})  # the README's own code


PAGES = [
    pytest.param(snippet, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").glob("*.md"))
    # The commands of these pages need what earlier commands make; tests/attestation, tests/ledger and test_publishing_page run
    # them from top to bottom.
    if page.stem not in ("publishing", "ledger")
    for number, snippet in enumerate(python_snippets(page))
]


@pytest.mark.parametrize("snippet", PAGES)
def test_python_snippets_of_the_pages_run(snippet: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for framework in frameworks(snippet):
        pytest.importorskip(framework, reason=f"{framework} is not installed: this snippet is NOT run")
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(EXAMPLES)
    # The snippets of the page about gates need a certificate and a policy.
    for folder in ("certificates", "privacy"):
        (tmp_path / folder).mkdir()
    shutil.copy(CERTIFICATES / "v1" / "deterministic.json", "certificates/training.json")
    policy = {"pyaccount": 1, "kind": "policy", "name": "p", "limits": {"max_epsilon": 8}}
    Path("privacy/policy.yaml").write_text(json.dumps(policy), encoding="utf-8")
    exec(compile(snippet, "docs", "exec"), {})  # the pages' own code


#: Changes of examples whose certificates take seconds or more: shorter runs, or easier targets, such as a larger δ, for which
#: samples are cheap, or wider bounds. The kind of run and the blank stay the same.
QUICKER = {
    "attack-budget": ("accounting.tolerance=1e-2",),
    "cifar10-bandmf": ("privacy.delta=1e-2", "training.iterations=32", "sampler.min_separation=8", "matrix.bands=8"),
    "fixed-size-replace-one": ("training.iterations=20", "accounting.tolerance=0.1"),
    "largest-batch": ("training.iterations=10", "accounting.tolerance=0.1"),
    "optimal-for-sampling": ("privacy.delta=1e-2", "training.iterations=30"),
    "pretrain-finetune-and-count": ("privacy.delta=1e-2",),
    **dict.fromkeys(
        ("production-b-min-sep", "production-truncated"),
        (
            *("privacy.delta=1e-2", "privacy.epsilon=4", "training.iterations=64"),
            *("sampler.min_separation=16", "matrix.bands=16", "noise.multiplier=2"),
        ),
    ),
    "random-allocation": ("accounting.tolerance=0.02",),
    "truncated-batches": ("training.iterations=8", "sampler.min_separation=4", "matrix.bands=4"),
    "two-stage-sampling": ("accounting.tolerance=0.05",),
    "users": ("privacy.delta=1e-2", "training.iterations=64"),
    "what-epsilon-had-it": ("privacy.delta=1e-2", "training.iterations=60"),
    "with-replacement": ("accounting.tolerance=0.05",),
}


#: Examples whose certificates take seconds although they are made quicker, and which others resemble. They are certified at
#: night; one of them also in tests/certificate/test_mechanism_pages.py.
LATE = ("buffers-for-sampling", "pretrain-finetune-and-count", "truncated-batches", "tune-train-publish")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.nightly] if path.stem in LATE else []) for path in DOCUMENTS],
    ids=lambda path: path.stem,
)
def test_every_example_certifies(
    path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.run(["plan", str(path)]) == 0
    assert "heorem" in capsys.readouterr().out
    if "kind: amplification" in path.read_text(encoding="utf-8"):
        assert cli.run(["certify", str(path)]) == 0
        assert "amplification" in capsys.readouterr().out
        return
    changes = ("accounting.profile=[1]", *QUICKER.get(path.stem, ()))
    target = str(tmp_path / "certificate.json")
    parts = [part for change in changes for part in ("--set", change)]
    compiled: Counter[str] = Counter()
    compile_one = compiling._compile_one

    def counted(document: Document, kind: type[CompiledDocument]) -> CompiledDocument:
        compiled[document.sha256] += 1
        return compile_one(document, kind)

    monkeypatch.setattr(compiling, "_compile_one", counted)
    assert cli.run(["certify", str(path), *parts, "-o", target]) == 0
    assert "HOLDS" in capsys.readouterr().out
    # No document is compiled twice, however many values of a blank, candidates and phases are tried.
    assert max(compiled.values()) == 1
    # The certificate holds, and does not contradict itself.
    assert cli.run(["check", target, "--no-limits"]) == 0


def test_the_figures_script_runs() -> None:
    command = [sys.executable, str(EXAMPLES / "group_level_figures.py"), "--noise", "4", "--groups", "1", "8"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("4 ")]
    assert [row[1] for row in rows] == ["1", "8", "1", "8"]
    for row in rows:
        certified, lemma, linear = map(float, row[2:])
        assert linear * (1 - 1e-3) <= certified <= lemma * (1 + 1e-3)


def test_the_table_script_runs() -> None:
    script = str(EXAMPLES / "cifar10_table.py")
    command = [sys.executable, script, "--epsilon", "8", "--rows", "poisson", "cyclic-poisson"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stderr.splitlines()]
    assert [row[0] for row in rows] == ["poisson", "cyclic-poisson"]
    for row in rows:
        assert row[3] == "deterministic"
        # The error is at most the paper's to four digits, because the paper rounds the last, shortened column up to a full one.
        assert 0.99 < float(row[2]) / float(row[8]) < 1.0005


# ---- Every public function has an example in its docstring, and every such example runs


FUNCTIONS = [name for name in pyaccount.__all__ if inspect.isfunction(getattr(pyaccount, name))]


def examples(text: str | None) -> list[str]:
    """Return the blocks of Python in a docstring."""
    return re.findall(r"^```python\n(.*?)^```$", inspect.cleandoc(text or ""), flags=re.MULTILINE | re.DOTALL)


def test_every_public_function_has_an_example() -> None:
    assert [name for name in FUNCTIONS if not examples(getattr(pyaccount, name).__doc__)] == []


@pytest.mark.parametrize("name", ["", *FUNCTIONS])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    claim = pyaccount.dp_sgd(noise_multiplier=2, delta=1e-5, sampling_probability=0.01, iterations=100)
    claim.save("training.cert.json")
    Path("model.safetensors").write_bytes(b"weights")
    private_file(tmp_path / "release.key", CryptoSigner.generate_ed25519().private_bytes)
    for code in examples(pyaccount.__doc__ if not name else getattr(pyaccount, name).__doc__):
        exec(compile(code, f"the example of {name or 'pyaccount'}", "exec"), {})
