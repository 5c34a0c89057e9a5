"""The independent checker shares nothing: its imports, its size, and its folder alone."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from normal_forms import claim, form, rounds
from places import CERTIFICATES, ROOT

FOLDER = ROOT / "pyaccount" / "independent"
CORE = sorted(FOLDER.glob("*.py"))
MODULES = [*CORE, *sorted((FOLDER / "samples").glob("*.py"))]
#: The modules that one must read to believe what is proven, and their lines, proofs included.
PROOF = {
    "enclosures": 117, "lattice": 197, "laws": 440, "draws": 132, "columns": 106, "composition": 120, "combinators": 174,
    "moments": 192,
}  # fmt: skip
#: Modules that the proofs do not import: they refute, search and judge.
REFUTING = "refuting"


def imports(program: str) -> set[str]:
    """Return what a program imports: a dot for what lies beside it, and otherwise the module."""
    found = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level if node.level else (node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: "-".join(path.relative_to(FOLDER).with_suffix("").parts))
def test_it_imports_the_standard_library_and_itself(path: Path) -> None:
    program = path.read_text(encoding="utf-8")
    # One module starts another process, which runs this folder.
    others = {"importlib", "ctypes", "runpy"} | ({"subprocess"} if path.stem != "apart" else set())
    beside = {"."} if path.parent == FOLDER else {".", ".."}
    assert imports(program) <= {*beside, *sys.stdlib_module_names} - others
    assert "__import__" not in program


def test_other_imports_are_seen() -> None:
    assert imports("import pyaccount._core\nfrom pyaccount import plan\nfrom .. import x\nfrom . import y") == {
        "pyaccount",
        "..",
        ".",
    }


def test_it_is_small_enough_to_be_read() -> None:
    sizes = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in CORE}
    assert {name: size for name, size in sizes.items() if size > PROOF.get(name, 300)} == {}
    assert sum(sizes[name] for name in PROOF) <= 1478
    assert sum(size for name, size in sizes.items() if name not in PROOF) <= 1300


def test_proofs_import_neither_samples_nor_lower_bounds_nor_searches() -> None:
    for path in CORE:
        nodes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
        beside = {node.module or name.name for node in nodes for name in node.names}
        assert "samples" not in beside, path
        if path.stem in PROOF:
            assert not beside & {REFUTING, "search", "verdict", "meaning"}, path


def test_a_copy_of_the_folder_runs_alone(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "independent", ignore=shutil.ignore_patterns("__pycache__"))
    certificate = tmp_path / "certificate.json"
    text = form(rounds({"kind": "all"}, 16, "4"))
    certificate.write_text(claim(text, 4.5, 1e-5))
    # -I hides the environment, so that nothing but the copy and the standard library is found.
    program = "import sys, runpy; sys.path.insert(0, '.'); runpy.run_module('independent', run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", program]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("certificate.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "proven here (4.37" in done.stdout
    certificate.write_text(claim(text, 4.3, 1e-5))
    done = run("--json", "certificate.json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "refuted"
    bare = tmp_path / "form.json"
    bare.write_text(text + "\n")
    done = run("--epsilon", "4.5", "--delta", "1e-5", "form.json")
    assert (done.returncode, "proven here (4.37" in done.stdout) == (0, True)
    assert run("--epsilon", "4.3", "--delta", "1e-5", "form.json").returncode == 1
    certificate.write_text("[]")
    done = run("certificate.json")
    assert done.returncode == 2
    assert "not a certificate" in done.stderr


def test_it_runs_as_a_module_of_the_package() -> None:
    path = CERTIFICATES / "v1" / "amplification.json"
    command = [sys.executable, "-m", "pyaccount.independent", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not checkable" in done.stdout
