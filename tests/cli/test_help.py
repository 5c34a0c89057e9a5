"""What `--help` shows is true: every example runs, every command has one; shells complete what may stand where."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from attestation_tools import private_file, public_pem
from ledger_samples import Clock
from places import EXAMPLES
from securesystemslib.signer import CryptoSigner
from warm_commands import COMMAND, COMMANDS_READ, warm

import pyaccount
from pyaccount import cli
from pyaccount.document.samplers import REFUSED
from pyaccount.training import TrainingRun

COMMANDS = cli.all_commands()


def examples(command: click.Command) -> list[str]:
    """The command lines below `Examples:`, with continued lines joined, as the help shows them."""
    text = command.get_help(click.Context(command, info_name=command.name)).replace("\\\n", "")
    block = re.search(r"Examples:\n((?: +\S.*\n)+)", text)
    assert block, command.name
    return [re.sub(r"\s+", " ", line).strip() for line in block[1].splitlines()]


def shell(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """In bash, with the installed command on the path, and no terminal to ask questions on."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "HOME": str(folder), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


#: A script that trains what the certificate of the project says.
TRAINS = """
import numpy as np
import pyaccount

data = np.random.default_rng(0).normal(size=(50_000, 2))
with pyaccount.TrainingRun("training.cert.json", "runs/probed", records=len(data), clip_norm=1.0) as run:
    for _ in range(run.rounds):
        with run.step() as step:
            rows = data[step.batch.indices]
            step.release((rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))).sum(axis=0))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name: documents, a policy, certificates."""
    folder = tmp_path_factory.mktemp("project")
    for name, example in {
        "training": "cifar10-dp-sgd",
        "poisson": "check-a-claim",
        "fixed-size": "fixed-size-replace-one",
        "bandmf": "cifar10-bandmf",
        "policy": "policy",
        "users-sharing-records": "users-sharing-records",
    }.items():
        shutil.copy(EXAMPLES / f"{example}.yaml", folder / f"{name}.yaml")
    for table in ("authors.csv", "canaries.csv"):
        shutil.copy(EXAMPLES / table, folder)
    text = (folder / "fixed-size.yaml").read_text(encoding="utf-8")
    (folder / "fixed-size.yaml").write_text(text.replace("replace-one", "zero-out"), encoding="utf-8")
    # What examples certify, compare and verify has wide bounds and a short profile.
    for name in ("training", "poisson", "fixed-size"):
        with (folder / f"{name}.yaml").open("a", encoding="utf-8") as document:
            document.write("accounting: {tolerance: 0.1, profile: [1]}\n")
    # A short run, whose estimate takes no time.
    text = (folder / "bandmf.yaml").read_text(encoding="utf-8")
    short = text.replace("iterations: 2000", "iterations: 96").replace("multiplier: solve", "multiplier: 4")
    short = short.replace("min_separation: 64", "min_separation: 16").replace("bands: 64", "bands: 16")
    (folder / "bandmf.yaml").write_text(short, encoding="utf-8")
    for place in ("certificates", ".local/share/bash-completion/completions", ".config/fish/completions"):
        (folder / place).mkdir(parents=True)
    done = shell("pyaccount certify training.yaml -o training.cert.json --quiet", folder)
    assert done.returncode == 0, done.stderr
    shutil.copy(folder / "training.cert.json", folder / "certificates" / "training.json")
    # Small runs, of all data and of two parts of it.
    for sigma, name in enumerate(("count", "north", "south"), 10):
        mechanism = {"kind": "gaussian", "sensitivity": 1, "sigma": sigma}
        privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
        certificate = pyaccount.certify({"pyaccount": 1, "name": name, "privacy": privacy, "mechanism": mechanism})
        certificate.save(folder / f"{name}.cert.json")
    # What two σ come to, and a store with a run.
    swept = {
        **yaml.safe_load((folder / "training.yaml").read_text(encoding="utf-8")),
        "vary": {"privacy.epsilon": [4, 8]},
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump(swept), encoding="utf-8")
    pyaccount.certify(folder / "training.yaml", store=folder / "runs.db")
    # A key, and a certificate that it signed.
    signer = CryptoSigner.generate_ed25519()
    private_file(folder / "signing.pem", signer.private_bytes)
    (folder / "trusted").mkdir()
    (folder / "trusted" / "release.pem").write_bytes(public_pem(signer))
    (folder / "model.safetensors").write_bytes(b"weights")
    signed = pyaccount.attest(folder / "training.cert.json", [folder / "model.safetensors"], folder / "signing.pem")
    signed.save(folder / "training.att.json")
    # A card that states the certificate.
    (folder / "README.md").write_text("# A model\n", encoding="utf-8")
    # A loop that trains, and takes an option.
    (folder / "train.py").write_text(TRAINS, encoding="utf-8")
    # A run that was begun, and a ledger in which it is reserved.
    TrainingRun(folder / "training.cert.json", folder / "runs" / "first", records=50_000).close()
    shutil.copy(EXAMPLES / "ledger" / "customers.yaml", folder)
    ledger = pyaccount.Ledger(folder / "budgets.db")
    ledger.create(folder / "customers.yaml")
    ledger.reserve(folder / "training.cert.json", who="ann", purpose="spam filter", id="e2")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_the_help_runs(
    name: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = examples(COMMANDS[name])
    assert found
    folder = tmp_path / "project"
    shutil.copytree(project, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    if name == "init":
        for document in folder.glob("*.yaml"):
            document.unlink()
        # Without a terminal nothing can be asked, and facts have no defaults.
        assert found.pop(0) == "pyaccount init"
        assert shell("pyaccount init", folder).returncode == 2
    if name in ("ledger", "ledger create"):
        (folder / "budgets.db").unlink()
    if name == "ledger commit":
        pyaccount.Ledger("budgets.db").begin("e2")
    if name == "ledger amend-clock":
        # An event of the future stops everybody else.
        pyaccount.Ledger("budgets.db", clock=Clock("2099-01-01T00:00:00+00:00")).begin("e2")
    for number, line in enumerate(found):
        assert line.startswith(f"pyaccount {name}")
        # A shell reads the first, all that say something to it, and those of a probe, which forks; the others are read here,
        # without a new process for each.
        if number == 0 or name == "probe" or re.search(r"[|<>;&$`*?#(){}~]", line):
            done = shell(line, folder)
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code = cli.run(shlex.split(line)[1:])
            out, err = capsys.readouterr()
        assert code == 0, (line, out, err)
        assert "Traceback" not in err


def test_the_overview_shows_every_command_whole_and_starts_with_the_first() -> None:
    text = cli.commands.get_help(click.Context(cli.commands, info_name="pyaccount"))
    listed = text.split("Commands:")[1]
    assert re.findall(r"^  (\w+)", listed, flags=re.MULTILINE) == [name for name in COMMANDS if " " not in name]
    assert "..." not in listed
    shown = examples(cli.commands)
    assert [line.split()[1] for line in shown] == ["init", "certify", "COMMAND"]
    for line in shown[:2]:
        command, *arguments = re.split(r" {2,}", line)[0].split()[1:]
        # Two spaces separate an example from what it does; here they are squeezed to one.
        known = [word for word in arguments if word.startswith("-") or "." in word]
        assert COMMANDS[command].make_context(command, known)


def complete(
    shell_name: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """The completions of the last word, asked for as the shells' scripts do."""
    monkeypatch.setenv("_PYACCOUNT_COMPLETE", f"{shell_name}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1) if shell_name != "fish" else words[-1])
    with pytest.raises(SystemExit) as stopped:
        cli.run([])
    assert stopped.value.code == 0
    return capsys.readouterr().out.splitlines()


def values(shell_name: str, lines: list[str]) -> list[str]:
    """The completions themselves: zsh gets type, value and help in a line each, the others type and value in one."""
    if shell_name == "zsh":
        return lines[1::3]
    return [line.split(",", 1)[1].split("\t")[0] for line in lines]


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pyaccount", "ce"], ["certify"]),
        (["pyaccount", "certify", "x.yaml", "--format", "m"], ["markdown"]),
        (["pyaccount", "certify", "--plo"], ["--plot"]),
        (["pyaccount", "plan", "x.yaml", "--set", "privacy.ep"], ["privacy.epsilon="]),
        (["pyaccount", "init", "--sampler", "must"], ["must-ow", "must-wo", "must-ww"]),
        (["pyaccount", "init", "--solve", "i"], ["iterations"]),
        (["pyaccount", "check", "x.json", "--guarantee", "v"], ["verified"]),
        (["pyaccount", "check", "x.json", "--unit", "u"], ["user"]),
        (["pyaccount", "schema", "amp"], ["amplification", "amplification-certificate", "amplification-plan"]),
        (["pyaccount", "completion", "b"], ["bash"]),
    ],
)
def test_shells_complete_commands_options_choices_and_paths(
    shell_name: str,
    words: list[str],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert values(shell_name, complete(shell_name, words, monkeypatch, capsys)) == expected


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("words", [["certify"], ["report"], ["check", "--policy"], ["certify", "-o"], ["init"]])
def test_files_are_left_to_the_shell(
    shell_name: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = complete(shell_name, ["pyaccount", *words, "tra"], monkeypatch, capsys)
    assert (lines[0] if shell_name == "zsh" else lines[0].split(",")[0]) == "file"


def test_every_path_of_the_language_is_completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every path that an example's document has, and the blanks' word where a blank may stand."""
    offered = set(values("zsh", complete("zsh", ["pyaccount", "plan", "--set", ""], monkeypatch, capsys)))
    for name in ("cifar10-bandmf", "users", "two-stage-sampling", "full-batch", "cifar10-dp-sgd"):
        mapping = pyaccount.load(EXAMPLES / f"{name}.yaml").to_mapping()
        for section, content in mapping.items():
            for path in [f"{section}.{key}" for key in content] if isinstance(content, dict) else [section]:
                assert f"{path}=" in offered
    for path in ("privacy.epsilon", "noise.multiplier", "training.iterations"):
        assert values("zsh", complete("zsh", ["pyaccount", "plan", "--set", f"{path}=s"], monkeypatch, capsys)) == [
            f"{path}=solve"
        ]
    kinds = values("zsh", complete("zsh", ["pyaccount", "plan", "--set", "sampler.kind="], monkeypatch, capsys))
    assert {"sampler.kind=poisson", "sampler.kind=none", "sampler.kind=user-b-min-sep"} <= set(kinds)
    assert not any(f"sampler.kind={word}" in kinds for word in REFUSED)


BASH = """
source <(pyaccount completion bash)
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
compopt() {{ echo "compopt $1 $2"; }}
_pyaccount_completion pyaccount
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def started() -> Iterator[Path]:
    """A command that need not start anew: every word that bash completes asks it twice."""
    with warm(COMMAND, *COMMANDS_READ) as client:
        yield client


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pyaccount ver", ["verify"]),
        ("pyaccount plan x.yaml --set privacy.adj", ["compopt -o nospace", "privacy.adjacency="]),
        # bash takes `=` for a word of its own and completes what follows it.
        ("pyaccount plan x.yaml --set privacy.adjacency = z", ["zero-out"]),
        ("pyaccount plan x.yaml --set privacy.epsilon =", ["solve"]),
        ("pyaccount plan --set privacy.epsilon = 4 --set noise.multiplier = s", ["solve"]),
        ("pyaccount certify x.yaml --format = ht", ["html"]),
        # What cannot be completed is no error either.
        ("pyaccount training.yaml ce", ["certify"]),
        ("pyaccount help ce", ["certify"]),
        ("pyaccount certify tra", ["compopt -o default", ""]),
        ("pyaccount verify x.json --folder s", ["compopt -o dirnames", ""]),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_with_the_script_sourced(words: str, expected: list[str], started: Path, tmp_path: Path) -> None:
    # The first is completed by the installed command.
    command = Path(sys.executable) if expected == ["verify"] else started
    done = shell(BASH.format(words=words), tmp_path, PATH=f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_scripts_of_other_shells_parse(name: str, tmp_path: Path) -> None:
    script = shell(f"pyaccount completion {name}", tmp_path)
    assert script.returncode == 0
    assert f"_PYACCOUNT_COMPLETE={name}_complete" in script.stdout
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    file = tmp_path / "script"
    file.write_text(script.stdout, encoding="utf-8")
    assert shell(f"{name} -n {file}", tmp_path).returncode == 0
