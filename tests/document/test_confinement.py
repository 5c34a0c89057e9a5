"""The files that a document names lie in its folder, or in one that its reader allows; no other is read, and none is quoted."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from confined_files import DOCUMENT, INSIDE, OUTSIDE, named, two_folders
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli, files
from pyaccount.reading.written import sha256_of

ROWS = "1,0,0\n.5,1,0\n.25,.5,1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a matrix, the working folder, and one beside it with another."""
    made = two_folders(tmp_path)
    for name in ("mine", "theirs"):
        (tmp_path / name / "sigmas.csv").write_text("4\n4\n4\n")
    monkeypatch.chdir(made)
    return made


def written(folder: Path, document: dict[str, Any], name: str = "document.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def scheduled(file: str, key: str = "noise") -> dict[str, Any]:
    """A document that names the file of a schedule: of noise multipliers, of rates or of batch sizes, or of a phase."""
    schedule = {"schedule": {"file": file}}
    plain = {name: value for name, value in DOCUMENT.items() if name != "matrix"}
    if key == "noise":
        return {**plain, "noise": {"multiplier": schedule}}
    if key == "phase":
        body = {name: plain.pop(name) for name in ("training", "sampler")} | {"noise": {"multiplier": schedule}}
        return {**plain, "phases": [body]} | {"noise": {"scale": 1}}
    sized = (
        {"expected_batch_size": schedule, "dataset_size": 100} if key == "sizes" else {"sampling_probability": schedule}
    )
    return {**plain, "training": {"iterations": 3} | sized, "sampler": {"kind": "poisson"}}


@pytest.mark.parametrize("file", INSIDE)
def test_files_in_the_folder_are_read(file: str, folder: Path) -> None:
    for name in (file, str(folder / file)):
        for source in (named(name), written(folder, named(name))):
            assert pyaccount.compile(pyaccount.load(source)).reductions


@pytest.mark.parametrize("file", OUTSIDE)
def test_no_file_elsewhere_is_read(file: str, folder: Path, snapshot: Snapshot) -> None:
    """By absolute paths, upwards, and by links: of files, of folders; without being asked to confine anything."""
    path = written(folder, named(file))
    for source in (named(file), path):
        snapshot.raised(pyaccount.load, source)


@pytest.mark.parametrize("key", ["noise", "phase", "rates", "sizes"])
def test_schedules_are_confined_as_matrices_are(key: str, folder: Path, snapshot: Snapshot) -> None:
    assert pyaccount.load(scheduled("sigmas.csv", key))
    snapshot.raised(lambda: pyaccount.load(scheduled("../theirs/sigmas.csv", key)))


def test_an_override_is_confined_too(folder: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.load(named("matrix.csv"), overrides={"matrix.file": "../theirs/matrix.csv"}))


@pytest.mark.parametrize("where", ["sampled phase", "part"])
def test_files_are_confined_however_deep_they_are(where: str, folder: Path, snapshot: Snapshot) -> None:
    def body(file: str) -> dict[str, Any]:
        run = {name: DOCUMENT[name] for name in ("training", "sampler")}
        return {**run, "noise": {"multiplier": {"schedule": {"file": file}}}}

    def document(file: str) -> dict[str, Any]:
        head = {name: DOCUMENT[name] for name in ("pyaccount", "name", "privacy")}
        if where == "sampled phase":
            return {
                **head,
                "phases": [{"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [body(file)]}],
            }
        parts = [{"name": "north", "phases": [body(file)]}, {"name": "south", "phases": [body("sigmas.csv")]}]
        return {**head, "phases": [{"parallel": parts}]}

    pyaccount.load(document("sigmas.csv"))
    snapshot.raised(lambda: pyaccount.load(document("../theirs/sigmas.csv")))


@pytest.mark.parametrize("file", [3, None, ["sigmas.csv"], {}])
def test_a_file_of_another_type_is_a_problem_of_the_document(folder: Path, file: Any, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.load(scheduled(file)))


def test_every_key_that_names_a_file_is_confined() -> None:
    """Whoever adds a key for a file finds here that the rule has to know it: the schema has no others."""
    keys: set[str] = set()

    def visit(node: Any, above: str) -> None:
        if isinstance(node, dict):
            for name, below in node.get("properties", {}).items():
                if isinstance(below, dict) and "relative to the folder" in str(below.get("description", "")):
                    keys.add(f"{above}.{name}")
            for name, below in node.items():
                visit(below, name if name not in ("properties", "anyOf", "items", "oneOf") else above)
        elif isinstance(node, list):
            for below in node:
                visit(below, above)

    for kind in ("mechanism", "sweep"):
        schema = json.loads((Path(__file__).parents[2] / "schemas" / f"{kind}.v1.schema.json").read_text())
        visit(schema, kind)
    assert {name.rpartition(".")[2] for name in keys} == {"file", "documents"}


def test_other_folders_are_allowed_by_name(folder: Path, snapshot: Snapshot) -> None:
    theirs = folder.parent / "theirs"
    for file in ("../theirs/matrix.csv", "far.csv", str(theirs / "matrix.csv")):
        loaded = pyaccount.load(named(file), folders=[folder / "below", theirs])
        # What is made of the document keeps them.
        changed = pyaccount.load(loaded, overrides={"noise.multiplier": 3}).with_value(("privacy", "delta"), 1e-7)
        assert pyaccount.compile(changed).reductions
        assert pyaccount.certify(changed).holds
    snapshot.raised(lambda: pyaccount.load(named("/etc/passwd"), folders=[theirs]))
    # A relative name is looked for beside the document first, and then in the other folders.
    (theirs / "only.csv").write_text(ROWS)
    assert pyaccount.compile(pyaccount.load(named("only.csv"), folders=[theirs])).reductions
    snapshot.raised(lambda: pyaccount.compile(named("only.csv")).run())


COMMANDS = {
    "certify": ("certify", "{doc}", "--brief"),
    "plan": ("plan", "{doc}"),
    "validate": ("validate", "{doc}"),
    "matrix": ("matrix", "{doc}"),
    "compare": ("compare", "{doc}", "{doc}"),
    "sweep": ("sweep", "{doc}", "{doc}"),
    "compose": ("compose", "{doc}", "--delta", "1e-6"),
    "check": ("check", "{cert}", "--document", "{doc}", "--no-limits"),
    "verify": ("verify", "{cert}"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_documents_has_the_option(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    theirs = folder.parent / "theirs"
    document = written(folder, named("../theirs/matrix.csv"))
    certificate = folder / "c.json"
    pyaccount.certify(pyaccount.load(document, folders=[theirs])).save(certificate)
    words = [word.format(doc=document, cert=certificate) for word in COMMANDS[command]]
    snapshot(run(*words))
    assert cli.run([*words, "--folder", str(folder / "below"), "--folder", str(theirs)]) == 0, capsys.readouterr().err
    assert cli.run([*words, "--folder", str(folder / "below")]) == 2


def test_a_sweep_lists_documents_in_its_folder(
    folder: Path, capsys: pytest.CaptureFixture[str], run: Run, snapshot: Snapshot
) -> None:
    theirs = written(folder.parent / "theirs", named("matrix.csv"))
    written(folder, named("matrix.csv"))
    listed = {"pyaccount": 1, "kind": "sweep", "documents": ["document.yaml"]}
    assert cli.run(["sweep", str(written(folder, listed, "sweep.yaml"))]) == 0
    for file in (str(theirs), "../theirs/document.yaml", "away/document.yaml"):
        sweep = written(folder, listed | {"documents": [file]}, "sweep.yaml")
        capsys.readouterr()
        snapshot(run("sweep", sweep))
        assert cli.run(["sweep", str(sweep), "--folder", str(theirs.parent)]) == 0
    snapshot.raised(lambda: pyaccount.sweep(listed | {"documents": [str(theirs)]}))
    assert len(pyaccount.sweep(listed | {"documents": [str(theirs)]}, folders=[theirs.parent]).rows) == 1


SECRETS = {
    "text.csv": b"SECRET,SECRET\n1,2\n",
    "row.csv": b"1,0,0\n0,1,SECRET\n0,0,1\n",
    "words.txt": b"SECRET SECRET SECRET\n",
    "number.csv": b"1,0,0\n0,-31337,0\n0,0,1\n",
    "numbers.csv": b"4\n-31337\n4\n",
    "nan.csv": b"1\n31337e999\n1\n",
    "bytes.csv": b"SECRET\xff\n",
    "header.npy": b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': SECRET, 31337".ljust(70),
    "names.npy": b"",
    "short.npy": b"SECRET",
}


@pytest.mark.parametrize("file", SECRETS)
def test_no_error_repeats_what_is_in_a_file(file: str, folder: Path, snapshot: Snapshot) -> None:
    (folder / file).write_bytes(SECRETS[file])
    if file == "names.npy":
        np.save(folder / file, np.zeros(3, dtype=[("SECRET", "f8")]))
    columned = {"schedule": {"file": file, "column": "sigma"}}
    for document in (
        named(file),
        scheduled(file),
        scheduled(file, "rates"),
        {**scheduled(file), "noise": {"multiplier": columned}},
    ):
        with snapshot.raises(pyaccount.DocumentError) as caught:
            pyaccount.compile(document).run()
        assert "SECRET" not in str(caught.value)
        assert "31337" not in str(caught.value)


def test_only_regular_files_are_opened(folder: Path, snapshot: Snapshot) -> None:
    """A pipe without a writer, which would wait for ever, and a device are refused also inside of a folder that is allowed."""
    os.mkfifo(folder / "pipe.csv")
    (folder / "folder.csv").mkdir()
    (folder / "null.csv").symlink_to("/dev/null")
    for file, allowed in (("pipe.csv", ()), ("folder.csv", ()), ("null.csv", ["/dev"])):
        for document in (named(file), scheduled(file)):
            with snapshot.raises(pyaccount.DocumentError):
                pyaccount.compile(pyaccount.load(document, folders=allowed)).run()


def test_a_file_that_never_ends_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some systems, as in /proc, state a size of 0; what is read is counted."""
    (folder / "long.csv").write_text("4\n" * 1000)
    with (folder / "long.csv").open("rb") as file, pytest.raises(OSError, match="more than 100 bytes"):
        list(files.lines_of(file, 100))
    (folder / "line.csv").write_text("4" * 1000)
    with (folder / "line.csv").open("rb") as file, pytest.raises(OSError, match="more than 100 bytes"):
        list(files.lines_of(file, 100))


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_that_comes_between_the_check_and_the_reading_is_not_followed(
    swapped: str, folder: Path, snapshot: Snapshot
) -> None:
    found = files.file_inside(folder, "below/matrix.csv")
    with found.open() as file:
        assert file.read()
    victim = folder / "below" / "matrix.csv" if swapped == "file" else folder / "below"
    victim.rename(folder / "moved")
    victim.symlink_to(folder.parent / "theirs" / ("matrix.csv" if swapped == "file" else "."))
    snapshot.raised(found.open)


def test_a_certificate_of_somebody_else_is_read_by_the_same_rule(
    folder: Path, tmp_path: Path, snapshot: Snapshot
) -> None:
    theirs = tmp_path / "theirs"
    certificate = json.loads(pyaccount.certify(named("matrix.csv")).to_json())
    certificate["document"]["matrix"]["file"] = str(theirs / "matrix.csv")
    certificate["document_sha256"] = sha256_of(certificate["document"])
    (folder / "c.json").write_text(json.dumps(certificate))
    for reads in (
        lambda: pyaccount.verify(folder / "c.json"),
        lambda: pyaccount.Certificate.load(folder / "c.json").document(),
    ):
        snapshot.raised(reads)
    # Its content hash is that of the file named before, so that it does not agree; but the file is read.
    assert not pyaccount.verify(folder / "c.json", folders=[theirs]).agrees
