"""Tests of the page of limits: its table is right, files elsewhere are not read, and hostile input needs little memory."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confined_files import OUTSIDE, named, two_folders
from gate_tools import golden, save
from places import EXAMPLES, ROOT
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.reading.written import sha256_of

PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| ([\d_]+) \| `([\w.]+)` \|$", PAGE, flags=re.MULTILINE)
COUNT = int(os.environ.get("PYACCOUNT_FUZZ", "60"))


def test_the_table_has_the_limits() -> None:
    assert len(ROWS) == len(re.findall(r"`pyaccount[\w.]+` \|$", PAGE, flags=re.MULTILINE))
    for what, stated, constant in ROWS:
        module, _, name = constant.rpartition(".")
        assert getattr(importlib.import_module(module), name) == int(stated), what


def test_every_limit_on_files_is_in_the_table() -> None:
    """Every constant named LARGEST_FILE, LARGEST_KEY or DEEPEST is a row of the table."""
    named = {constant for _, _, constant in ROWS}
    for path in (ROOT / "pyaccount").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in re.findall(
            r"^(LARGEST_FILE|LARGEST_KEY|LARGEST_TEXT|DEEPEST|MOST_NODES)\b.* = ",
            path.read_text(encoding="utf-8"),
            re.M,
        ):
            if module != "pyaccount.plan.samplers.allocation":
                assert f"{module}.{name}" in named


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a matrix, next to a folder with another matrix."""
    return two_folders(tmp_path)


@pytest.mark.parametrize("file", OUTSIDE)
def test_a_certificate_has_no_file_read_elsewhere(
    file: str, folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    """The author of a certificate also writes its hash. Therefore only `verify` opens files, and none of these."""
    monkeypatch.chdir(folder)
    certificate = json.loads(pyaccount.certify(named(str(folder / "matrix.csv"))).to_json())
    certificate["document"]["matrix"]["file"] = file
    certificate["document_sha256"] = sha256_of(certificate["document"])
    path = save(folder, certificate)
    for more in ((), ("--folder", str(folder))):
        snapshot(run("verify", path, *more))
    # The command neither names nor opens files.
    assert cli.run(["check", str(path), "--no-limits"]) in (0, 1)


def test_a_certificate_has_the_file_beside_it_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    path = folder / "c.json"
    pyaccount.certify(named("matrix.csv")).save(path)
    assert pyaccount.verify(path)
    assert pyaccount.verify(path, folders=[folder])


HOSTILE = """
import json, os, random, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import yaml
from mutations import damaged, text_of, torn
from pyaccount import cli
from pyaccount.reading.written import sha256_of
examples, certificates, folder, count = Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5])
# Those that are planned in no time, damaged or not.
names = ("cifar10-dp-sgd", "one-draw", "full-batch", "fixed-size-replace-one", "pretrain-and-finetune", "attack-budget")
documents = [yaml.safe_load((examples / f"{name}.yaml").read_text()) for name in names]
finished = [json.loads(path.read_text()) for path in sorted(certificates.glob("*.json"))]
attestation = json.loads((folder / "training.att.json").read_text())
rng, codes = random.Random(5), []
opened = ["--no-limits", "--any-subject"]
def write(name, data):
    path = folder / name
    text = text_of(damaged(data, rng))
    path.write_bytes(torn(text, rng) if rng.random() < 0.3 else text)
    return str(path)
for _ in range(count):
    document = write("document.yaml", rng.choice(documents))
    codes.append(cli.run(["validate", document]))
    if codes[-1] == 0:
        codes.append(cli.run(["plan", document]))
    codes.append(cli.run(["check", write("certificate.json", rng.choice(finished)), "--policy", str(examples / "policy.yaml")]))
    signed = ["--attestation", write("a.json", attestation), "--trusted-keys", str(folder / "trusted")]
    codes.append(cli.run(["check", *signed, *opened]))
# What is as large as it may be, and what would be larger if it were expanded.
bombs = {
    "bomb.yaml": "a: &a [x,x,x,x,x,x,x,x]\\n"
    + "".join(f"{chr(98+k)}: &{chr(98+k)} [{','.join(['*'+chr(97+k)]*8)}]\\n" for k in range(12)),
    "deep.yaml": "[" * 500_000,
    "long.yaml": "x: " + "y" * 1_000_000,
    "many.yaml": "[" + "1," * 300_000 + "]",
    "huge.yaml": " " * 2_000_000,
}
for name, text in bombs.items():
    (folder / name).write_text(text)
    codes.append(cli.run(["validate", str(folder / name)]))
    assert codes[-1] == 2, name
large = {"deep.json": "[" * 5_000_000, "long.json": '{"a": "' + "x" * 10_000_000 + '"}', "digits.json": "9" * 1_000_000}
for name, text in large.items():
    (folder / name).write_text(text)
    codes.append(cli.run(["check", str(folder / name), "--no-limits"]))
    assert codes[-1] == 2, name
# More than there is memory for: told, and not a bug.
(folder / "large.json").write_text('{"a": [' + "1.5," * 12_000_000 + "1]}")
codes.append(cli.run(["check", str(folder / "large.json"), "--no-limits"]))
assert codes[-1] in (2, 3)
assert set(codes) <= {0, 1, 2, 3}, set(codes)
print(len(codes), file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits on the address space are Linux's")
def test_hostile_input_runs_in_little_memory(tmp_path: Path) -> None:
    """The interpreter, the packages and damaged files, one after the other, need at most 256 MB of address space."""
    from attestation_tools import signing

    signing(tmp_path / "p")
    arguments = [
        ROOT / "tests" / "helpers",
        EXAMPLES,
        ROOT / "tests" / "golden" / "certificates" / "v1",
        tmp_path / "p",
        COUNT,
    ]
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, *map(str, arguments)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert int(done.stderr.splitlines()[-1]) >= 3 * COUNT


def test_memory_that_is_used_up_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def none(*given: object, **more: object) -> None:
        raise MemoryError

    monkeypatch.setattr("pyaccount.gate.check.verdict_on", none)
    path = save(tmp_path, golden("deterministic"))
    assert cli.run(["check", str(path), "--no-limits", "--format", "json"]) == 3
    captured = capsys.readouterr()
    assert captured.err == "there is not enough memory: nothing was certified\n"
    assert json.loads(captured.out)["errors"][0]["slug"] == "limit"
