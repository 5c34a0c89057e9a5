"""No command writes its result over a document, a certificate or another input, whatever form is asked for."""

import shutil
from pathlib import Path

import click
import pytest
import yaml
from plain_documents import document
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli

#: For every command with `--output`: the command without it, and its inputs.
COMMANDS = {
    "certify": ("certify none.yaml", "none.yaml"),
    "matrix": ("matrix none.yaml", "none.yaml"),
    "compare": ("compare none.yaml other.yaml", "none.yaml other.yaml"),
    "compose": ("compose one.json other.yaml", "one.json other.yaml"),
    "sweep": ("sweep none.yaml other.yaml", "none.yaml other.yaml"),
    "prepare": ("prepare users.csv --records-per-user 1 --document users.yaml", "users.csv users.yaml"),
    "report": ("report one.json", "one.json"),
    "export": ("export one.json --to registry", "one.json"),
    "status": ("ledger status budget.db", "budget.db"),
    "attest": ("attest one.json --subject subject.txt --key key.pem", "one.json subject.txt key.pem"),
}
#: Commands that write documents, and commands without `--format`.
OF_DOCUMENTS, OF_ONE_FORM = {"prepare"}, {"export", "attest"}
CASES = [
    (name, form)
    for name in COMMANDS
    for form in ("", "--format json", "--format text")
    if not (form and name in OF_ONE_FORM)
]


def commands(group: click.Group, context: click.Context) -> set[str]:
    """The commands with the option `--output`."""
    having = set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            having |= commands(command, context)
        elif any("--output" in option.opts for option in command.params):
            having.add(name)
    return having


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run = document(
        privacy__epsilon="solve", privacy__adjacency="zero-out", training={"iterations": 4}, sampler={"kind": "none"}
    )
    for name in ("none", "other", "users"):
        Path(f"{name}.yaml").write_text(yaml.safe_dump(run | {"name": name}), encoding="utf-8")
    pyaccount.certify("none.yaml").save("one.json")
    Path("users.csv").write_text("record,user\n1,2\n", encoding="utf-8")
    budget = {"pyaccount": 1, "kind": "data-set", "name": "data"}
    budget["privacy"] = {"adjacency": "add-remove", "epsilon": 8, "delta": 1e-6}
    pyaccount.Ledger("budget.db").create(budget)
    for name in ("subject.txt", "key.pem"):
        Path(name).write_text("a text\n", encoding="utf-8")
    return tmp_path


def test_every_command_with_an_output_is_tried() -> None:
    assert commands(cli.commands, click.Context(cli.commands)) == set(COMMANDS)


@pytest.mark.parametrize(("name", "form"), CASES)
def test_no_input_is_overwritten(name: str, form: str, folder: Path, run: Run, snapshot: Snapshot) -> None:
    command, inputs = COMMANDS[name]
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for written in inputs.split():
        snapshot(run(*command.split(), *form.split(), "-o", written))
        assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_no_input_is_overwritten_by_way_of_a_link(folder: Path, run: Run, snapshot: Snapshot) -> None:
    Path("link").symlink_to("none.yaml")
    Path("hard").hardlink_to("none.yaml")
    before = Path("none.yaml").read_bytes()
    for source, written in (("none.yaml", "link"), ("link", "hard")):
        snapshot(run("certify", source, "-o", written))
    assert Path("none.yaml").read_bytes() == before
    assert Path("link").is_symlink()


# A draft for a registry is YAML itself.
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - OF_DOCUMENTS - {"export"}))
def test_no_result_has_the_name_of_a_document(name: str, folder: Path, run: Run, snapshot: Snapshot) -> None:
    # A document that is no input of the command, and one that does not exist yet.
    shutil.copy("none.yaml", "third.yaml")
    before = Path("third.yaml").read_bytes()
    for written in ("third.yaml", "new.yml"):
        snapshot(run(*COMMANDS[name][0].split(), "-o", written))
    assert Path("third.yaml").read_bytes() == before
    assert not Path("new.yml").exists()


def test_no_certificate_is_saved_as_a_document(folder: Path, snapshot: Snapshot) -> None:
    certificate = pyaccount.Certificate.load("one.json")
    for form in (None, "json"):
        snapshot.raised(certificate.save, "none.yaml", form=form)


def test_a_document_is_no_store(folder: Path, run: Run, snapshot: Snapshot) -> None:
    before = Path("none.yaml").read_bytes()
    snapshot(run("certify", "other.yaml", "--store", "none.yaml"))
    assert Path("none.yaml").read_bytes() == before
