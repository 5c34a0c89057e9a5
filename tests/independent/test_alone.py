"""The independent checker shares nothing: its imports, its size, and its folder alone."""

from __future__ import annotations

import ast
import io
import json
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from places import CERTIFICATES, ROOT

FOLDER = ROOT / "pyaccount" / "independent"
MODULES = sorted(FOLDER.glob("*.py"))


def imports(program: str) -> set[str]:
    """Return what a program imports: a dot for what lies beside it, and otherwise the module."""
    found = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." if node.level == 1 else ".." if node.level else (node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_it_imports_the_standard_library_and_itself(path: Path) -> None:
    program = path.read_text(encoding="utf-8")
    # One module starts another process, which runs this folder.
    others = {"importlib", "ctypes", "runpy"} | ({"subprocess"} if path.stem != "apart" else set())
    assert imports(program) <= {".", *sys.stdlib_module_names} - others
    assert "__import__" not in program


def test_other_imports_are_seen() -> None:
    assert imports("import pyaccount._core\nfrom pyaccount import plan\nfrom .. import x\nfrom . import y") == {
        "pyaccount",
        "..",
        ".",
    }


def lines_of_code(program: str) -> int:
    """Return the number of lines with code: without blank lines, comments and docstrings."""
    tree, docstrings = ast.parse(program), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            docstrings |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(program).readline)
    lines = {line for token in tokens if token.type not in skipped for line in range(token.start[0], token.end[0] + 1)}
    return len(lines - docstrings)


def test_it_is_small_enough_to_be_read() -> None:
    assert lines_of_code('"""Text."""\n\n# comment\nx = """a\nb"""  # another\n') == 2
    assert sum(lines_of_code(path.read_text(encoding="utf-8")) for path in MODULES) <= 4010


def test_a_copy_of_the_folder_runs_alone(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "independent", ignore=shutil.ignore_patterns("__pycache__"))
    certificate = tmp_path / "certificate.json"
    document = {
        "pyaccount": 1,
        "name": "alone",
        "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5},
        "training": {"iterations": 16},
        "sampler": {"kind": "none"},
        "noise": {"multiplier": 4},
    }
    certificate.write_text(json.dumps({"document": document, "guarantee": {"epsilon": 4.5, "delta": 1e-5}}))
    # -I hides the environment, so that nothing but the copy and the standard library is found.
    program = "import sys, runpy; sys.path.insert(0, '.'); runpy.run_module('independent', run_name='__main__')"
    command = [sys.executable, "-I", "-S", "-c", program]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("certificate.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "proven here (4.37" in done.stdout
    text = certificate.read_text().replace("4.5", "4.3")
    certificate.write_text(text)
    done = run("--json", "certificate.json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "refuted"
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
