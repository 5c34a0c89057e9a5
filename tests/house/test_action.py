"""The action of this repository: its shell steps are run as a runner does, and no input reaches a shell except as a variable."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from attestation_tools import private_file, public_pem
from gate_tools import RUNS
from places import EXAMPLES, ROOT
from securesystemslib.signer import CryptoSigner

import pyaccount

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, CHECK = ACTION["runs"]["steps"]
#: A text that would run a command in every shell that sees it unquoted, or as part of a command.
HOSTILE = '$(touch owned) `touch owned` "; touch owned; #'

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed: the action is NOT run")


class Ran(NamedTuple):
    """What a step did, as later steps and people see it."""

    code: int
    out: str
    err: str
    outputs: dict[str, str]
    summary: str


def evaluated(text: str, inputs: dict[str, str], folder: Path) -> str:
    """Return a text with its expressions evaluated, as the runner does before a step."""
    known = {f"inputs.{name}": one["default"] for name, one in ACTION["inputs"].items()}
    known |= {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {"github.action_path": str(ROOT), "steps.install.outputs.programs": str(folder / "programs")}
    return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", lambda found: known[found[1]], text)


def ran(step: dict[str, Any], folder: Path, **inputs: str) -> Ran:
    """Run a step in bash with the options of a runner, and with its files for outputs and the summary."""
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    files = {name: folder.parent / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("", encoding="utf-8")
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", evaluated(step["run"], given, folder.parent)],
        cwd=folder / evaluated(step["working-directory"], given, folder.parent),
        env={
            **os.environ,
            **{name: str(file) for name, file in files.items()},
            "RUNNER_TEMP": str(temporary),
            **{name: evaluated(value, given, folder.parent) for name, value in step["env"].items()},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines())
    return Ran(
        done.returncode, done.stdout, done.stderr, outputs, files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a checkout with certificates and a policy, beside the programs that the first step would have installed."""
    folder = tmp_path / "checkout"
    (folder / "certificates").mkdir(parents=True)
    for name in ("deterministic", "group-of-phases"):
        shutil.copy(RUNS[name], folder / "certificates")
    policy = (EXAMPLES / "policy.yaml").read_text(encoding="utf-8")
    # The golden certificates grow old.
    (folder / "policy.yaml").write_text(re.sub("^  max_age: .*\n", "", policy, flags=re.MULTILINE), encoding="utf-8")
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "python").symlink_to(sys.executable)
    # A virtual environment is found by this file beside or above its programs.
    settings = Path(sys.prefix) / "pyvenv.cfg"
    if settings.exists():
        shutil.copy(settings, tmp_path / "pyvenv.cfg")
    program = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
    (tmp_path / "programs" / "python").unlink()
    (tmp_path / "programs" / "python").write_text(program, encoding="utf-8")
    (tmp_path / "programs" / "python").chmod(0o755)
    return folder


def recorder(project: Path) -> str:
    """Return a program that notes its arguments, makes the folder of an environment, and is the Python in it."""
    path = project.parent / "recorder"
    path.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{project.parent}/log'\n"
        'if [ "$2 $3" = "-m venv" ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; fi\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


# ---- the file


def test_no_expression_is_inserted_in_a_command() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        # Every variable in a command is in quotes, or assigned.
        bare = re.sub(r'"[^"]*"', "", re.sub(r"^\s*#.*$", "", step["run"], flags=re.MULTILINE))
        assert "$" not in bare, bare


def test_every_input_and_output_is_used_and_described() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(ACTION["inputs"])
    for one in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert one["description"].strip()
    script = (ROOT / ".ci" / "action" / "check.py").read_text(encoding="utf-8")
    read = {f"PYACCOUNT_{name}" for name in re.findall(r'(?:lines|files)\("([A-Z_]+)"\)', script)}
    read |= {f"PYACCOUNT_{name}" for name in re.findall(r'": "([A-Z]+)"', script)}
    assert read == {name for name in CHECK["env"] if name.startswith("PYACCOUNT_")}


# ---- checking


def test_certificates_that_pass(project: Path) -> None:
    done = ran(CHECK, project, certificates="certificates/*.json\n", policy="policy.yaml", limits="unit=record\n")
    assert done.code == 0, done.err
    verdict = json.loads(Path(done.outputs.pop("verdict")).read_text(encoding="utf-8"))
    assert done.outputs == {"passes": "true", "exit-code": "0"}
    assert [one["passes"] for one in verdict["certificates"]] == [True, True]
    assert done.summary.startswith("# Check: 2 certificates — ")
    assert "| ok | max\\_epsilon |" in done.summary
    assert "group-of-phases.json" in done.out


def test_a_certificate_that_fails_ends_the_job_with_1(project: Path) -> None:
    limits = "max-epsilon=1\nmax-delta=1e-5"
    done = ran(CHECK, project, certificates="certificates/deterministic.json", limits=limits)
    assert done.code == 1
    assert done.outputs["passes"] == "false"
    assert done.outputs["exit-code"] == "1"
    assert "fails" in done.summary


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"certificates": "absent/*.json", "policy": "policy.yaml"}, "absent/*.json: cannot be read"),
        ({"certificates": "certificates/*.json"}, "limit"),
        ({"policy": "policy.yaml"}, "Missing argument"),
        ({"certificates": "policy.yaml", "policy": "policy.yaml"}, "a policy, not a certificate"),
    ],
)
def test_what_cannot_be_checked_ends_with_2_and_the_reason(inputs: dict[str, str], said: str, project: Path) -> None:
    done = ran(CHECK, project, **inputs)
    assert (done.code, done.outputs["passes"], done.outputs["exit-code"]) == (2, "false", "2")
    assert said in " ".join(done.out.split())
    assert re.search(rf"^    .*{re.escape(said.split(maxsplit=1)[0])}", done.summary, flags=re.MULTILINE)


@pytest.mark.parametrize("limits", ["max-epsilon", "no-limits", "help=", "format=json", "any-subject=x", HOSTILE])
def test_what_is_no_limit_is_refused(limits: str, project: Path) -> None:
    done = ran(CHECK, project, certificates="certificates/*.json", policy="policy.yaml", limits=limits)
    assert done.code == 2
    assert "is not name=value" in done.err


def test_attestations_are_checked_with_their_files(project: Path) -> None:
    signer = CryptoSigner.generate_ed25519()
    private_file(project.parent / "signing.pem", signer.private_bytes)
    (project / "trusted").mkdir()
    (project / "trusted" / "release.pem").write_bytes(public_pem(signer))
    model = project / "model.safetensors"
    model.write_bytes(b"weights")
    signed = pyaccount.attest(project / "certificates" / "deterministic.json", [model], project.parent / "signing.pem")
    signed.save(project / "training.att.json")
    inputs = {
        "attestations": "*.att.json",
        "trusted_keys": "trusted",
        "subjects": "*.safetensors",
        "policy": "policy.yaml",
    }
    assert ran(CHECK, project, **inputs).code == 0
    model.write_bytes(b"other weights")
    done = ran(CHECK, project, **inputs)
    assert (done.code, done.outputs["passes"]) == (1, "false")


def test_documents_must_be_those_of_the_certificates(project: Path) -> None:
    shutil.copy(EXAMPLES / "cifar10-dp-sgd.yaml", project)
    inputs = {"certificates": "certificates/deterministic.json", "policy": "policy.yaml"}
    assert ran(CHECK, project, **inputs, documents="cifar10-*.yaml").code == 1


def test_hostile_inputs_run_nothing(project: Path) -> None:
    names = [name.replace("-", "_") for name in ACTION["inputs"] if name not in ("working-directory", "limits")]
    assert len(names) == 9
    # Limits are refused before anything else is read, so they are tried alone, and so is the Python that does the rest.
    python = recorder(project)
    for step, inputs in (
        (CHECK, dict.fromkeys(names, HOSTILE)),
        (CHECK, {"certificates": "certificates/*.json", "limits": HOSTILE}),
        (INSTALL, {"python": HOSTILE}),
        (INSTALL, {"python": python, "wheel": HOSTILE}),
        (INSTALL, {"python": python, "requirements": HOSTILE}),
    ):
        ran(step, project, **inputs)
    assert not list(project.parent.rglob("owned"))


def test_the_hostile_text_is_one() -> None:
    """Inserted in a command, it would run one."""
    done = subprocess.run(
        ["bash", "-c", f'echo "{HOSTILE}"'.replace("touch owned", "echo owned")], capture_output=True, check=True
    )
    assert b"owned owned" in done.stdout


def test_names_of_files_give_no_commands_to_the_runner(project: Path) -> None:
    """A name with a line of its own would be a command, were it printed as it is and were commands not stopped."""
    name = "certificates/::set-output name=passes::true.json"
    shutil.copy(RUNS["claim-fails"], project / name)
    done = ran(CHECK, project, certificates=name, policy="policy.yaml")
    lines = done.out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert lines[-1] == f"::{token}::"
    assert done.outputs["passes"] == "false"


def test_files_of_the_checkout_are_not_imported(project: Path) -> None:
    for name in ("pyaccount", "json", "re", "secrets", "subprocess", "yaml"):
        (project / f"{name}.py").write_text("open('owned', 'w').close()\n", encoding="utf-8")
    assert ran(CHECK, project, certificates="certificates/*.json", policy="policy.yaml").code == 0
    assert not list(project.parent.rglob("owned"))


def test_without_a_verdict_nothing_passes(project: Path) -> None:
    """Whatever stands in for the package: an exit code alone is no verdict."""
    program = project.parent / "programs" / "python"
    for printed, code in (("", 0), ("", 1), ("{}", 0), ('{"passes": false}', 0), ('{"passes": true}', 1), ("[]", 0)):
        # The first argument after -P says whether the script or the package is run.
        fake = project.parent / "fake"
        fake.write_text(f"#!/bin/sh\nprintf '%s' '{printed}'\nexit {code}\n", encoding="utf-8")
        fake.chmod(0o755)
        script = f"import runpy, sys; sys.executable = {str(fake)!r}; sys.argv = sys.argv[1:]; "
        script += "runpy.run_path(sys.argv[0], run_name='__main__')"
        program.write_text(f'#!/bin/sh\nshift\nexec "{sys.executable}" -P -c "{script}" "$@"\n', encoding="utf-8")
        done = ran(CHECK, project, certificates="certificates/*.json", policy="policy.yaml")
        assert (done.code, done.outputs["passes"], done.outputs["exit-code"]) == (2, "false", "2"), (printed, code)


# ---- installing


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, f"-P -m pip install --quiet -- {ROOT}"),
        ({"wheel": "dist/a b.whl"}, "-P -m pip install --quiet -- dist/a b.whl"),
        ({"requirements": "r.txt"}, "-P -m pip install --quiet --require-hashes --requirement r.txt"),
    ],
)
def test_what_is_installed_is_pinned_or_given_or_this_checkout(
    inputs: dict[str, str], expected: str, project: Path
) -> None:
    done = ran(INSTALL, project, python=recorder(project), **inputs)
    assert done.code == 0, done.err
    environment = project.parent / "temporary" / "pyaccount-environment"
    assert (project.parent / "log").read_text(encoding="utf-8").splitlines() == [f"-P -m venv {environment}", expected]
    assert done.outputs == {"programs": str(environment / "bin")}


def test_both_a_wheel_and_requirements_are_an_error(project: Path) -> None:
    done = ran(INSTALL, project, python=recorder(project), wheel="a.whl", requirements="r.txt")
    assert done.code == 2
    assert "not both" in done.err
