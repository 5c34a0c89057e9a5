"""A mechanism is a tree: what is asked about a node is one object, and a kind is asked itself, instead of being recognised."""

import ast
from collections.abc import Iterator

from places import ROOT

PACKAGE = ROOT / "pyaccount"
#: The modules of the base classes of kinds, whose subclasses are kinds.
KINDS = ("document/samplers", "document/matrices", "document/mechanisms")
#: What states a node as its document has it, and notes at places of the document.
AS_WRITTEN = {
    "certificate/phases.py:phase_record",
    "certificate/phases.py:_mechanism",
    "document/notes.py:_on_length",
}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def classes_of_kinds() -> set[str]:
    classes: dict[str, set[str]] = {"tree": set(), "kinds": set()}
    for name, tree in trees():
        of_kinds = name.startswith(KINDS) or name in ("document/noise.py", "document/selection.py")
        if of_kinds or name == "document/tree.py":
            classes["kinds" if of_kinds else "tree"] |= {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    return classes["kinds"] - classes["tree"] - {"SharedNoise"}


def together(tree: ast.AST) -> Iterator[str]:
    """Yield the functions that take a document beside one of its nodes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
            if "document" in names and names & {"body", "node", "run"}:
                yield node.name


def recognised(tree: ast.AST, kinds: set[str]) -> Iterator[int]:
    """Yield the lines that recognise a kind by its class."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    for call in calls:
        if call.func.id in ("isinstance", "issubclass"):  # type: ignore[attr-defined]
            named = {one.id for one in ast.walk(call.args[1]) if isinstance(one, ast.Name)}
            yield from [call.lineno] if named & kinds else []


def test_no_function_takes_a_document_and_a_node() -> None:
    """Rules yield problems whose places are filled in later, and theorems get what is asked; records state what was written."""
    assert {f"{name}:{one}" for name, tree in trees() for one in together(tree)} == AS_WRITTEN


def test_kinds_are_asked() -> None:
    # A question may assert that an answer is of some kind, and not ask which.
    kinds = classes_of_kinds() - {"SamplerKind"} | {"FIXED_DRAWS", "UNBANDED", "SAMPLERS", "MATRICES"}
    assert {"Poisson", "Dense", "Stated", "Gaussian", "MechanismKind"} <= kinds
    found = [
        f"{name}:{line}"
        for name, tree in trees()
        if not name.startswith((*KINDS, "document/noise.py", "document/selection.py"))
        for line in recognised(tree, kinds)
    ]
    assert not found


def test_what_is_wrong_is_seen() -> None:
    assert list(together(ast.parse("def f(document, body): ...\ndef g(self, document, *, node): ..."))) == ["f", "g"]
    program = "isinstance(a, B | Poisson)\nisinstance(a, int)\nissubclass(a, UNBANDED)"
    assert list(recognised(ast.parse(program), {"Poisson", "UNBANDED"})) == [1, 3]
