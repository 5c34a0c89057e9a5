"""A sampler is added by its module and its place in the list: everything else in the document room follows from them."""

import json
from typing import Any

import pytest
from extended import MODULE, extended, run_in
from places import ROOT

DOCUMENT = """\
pyaccount: 1
name: flipped
privacy: {adjacency: add-remove, epsilon: 8, delta: 1e-5}
training: {dataset_size: 50_000, epochs: 3}
sampler:
  kind: coin-flips
  flips: 7
noise: {multiplier: solve}
"""

PROGRAM = """\
import json, sys
import click
sys.path.append(sys.argv.pop(1))
import reference
from pyaccount import schemas
from pyaccount.cli.init import init
from pyaccount.cli.completion import overridable
from pyaccount.document.loading import load
from pyaccount.document.samplers import SAMPLERS
from pyaccount.document.shape import union_of
from pyaccount.document.models import SingleDocument
from pyaccount.draft.interview import needed
from pyaccount.draft.questions import QUESTIONS, meanings
from pyaccount.draft.writing import draft_text
from pyaccount.errors import DocumentError

def told(path):
    try:
        document = load(path)
    except DocumentError as error:
        return [[it.slug, f"{it.line}:{it.column}", it.path_text, it.suggestion] for it in error.problems]
    body = document.run
    again = load(document.to_mapping())
    return {
        "sampler": document.to_mapping()["sampler"],
        "iterations": body.training.iterations,
        "rate": body.participation_rate(),
        "probability": body.sampling_probability(),
        "again": again == document,
    }

answers = {"name": "x", "sampler": "coin-flips", "flips": "5", "iterations": "10", "matrix": "identity", "epsilon": "1"}
answers |= {"adjacency": "zero-out", "solve": "noise-multiplier", "delta": "1e-6"}
try:
    asked = QUESTIONS["sampler"].read("coins", {})
except ValueError as error:
    asked = str(error)
schema = schemas.schema("mechanism")
print(json.dumps({
    "documents": [told(path) for path in sys.argv[1:]],
    "members": [member.__name__ for member in union_of(SingleDocument.model_fields["sampler"]).members],
    "listed": [member.__name__ for member in SAMPLERS],
    "schema": schema["$defs"]["CoinFlips"],
    "refs": [member["$ref"] for member in schema["oneOf"][0]["properties"]["sampler"]["oneOf"]],
    "reference": reference.pages()["documents.md"],
    "offered": meanings(QUESTIONS["sampler"]),
    "question": QUESTIONS["flips"].ask,
    "options": {param.opts[0]: getattr(param, "help", None) for param in init.get_params(click.Context(init))},
    "asked": asked,
    "needed": [question.name for question in needed(answers)],
    "drafted": draft_text(answers),
    "overridable": [text for text, _, _ in overridable()],
}))
"""

#: What is written instead of what, and the problem that is told of it: slug, place, path and suggestion.
WRONG = {
    "a field out of its range": ("flips: 7", "flips: 0", ["out-of-range", "7:10", "sampler.flips", None]),
    "a field that is missing": ("\n  flips: 7", "", ["missing-key", "6:3", "sampler.flips", None]),
    "a slip": ("flips: 7", "flops: 7", ["unknown-key", "7:3", "sampler.flops", "flips"]),
    "another library's name": ("flips: 7", "tosses: 7", ["unknown-key", "7:3", "sampler.tosses", "flips"]),
    "another sampler's field": ("flips: 7", "flips: 7\n  bins: 4", ["unknown-key", "8:3", "sampler.bins", None]),
    "another word for the kind": ("coin-flips", "coins", ["unknown-kind", "6:9", "sampler.kind", "coin-flips"]),
    "a rule of its own": ("flips: 7", "flips: 20", ["contradiction", "7:10", "sampler.flips", None]),
    "what it has no use for": (
        "epochs: 3",
        "epochs: 3, participation_rate: 0.1",
        ["contradiction", "4:65", "training.participation_rate", None],
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("extended")
    texts = [DOCUMENT, *(DOCUMENT.replace(old, new) for old, new, _ in WRONG.values())]
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.yaml")
        paths[-1].write_text(text, encoding="utf-8")
    found: dict[str, Any] = json.loads(run_in(extended(folder), PROGRAM, str(ROOT / ".ci" / "site"), *map(str, paths)))
    return found


def test_a_document_with_it_loads(found: dict[str, Any]) -> None:
    assert found["documents"][0] == {
        "sampler": {"kind": "coin-flips", "flips": 7},
        "iterations": 3 * 128,
        "rate": 1 / 128,
        "probability": 1 / 128,
        "again": True,
    }


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_it_is_told_at_its_place(case: str, found: dict[str, Any]) -> None:
    *_, problem = WRONG[case]
    assert found["documents"][1 + list(WRONG).index(case)] == [problem]


def test_it_is_in_every_list(found: dict[str, Any]) -> None:
    assert found["members"] == found["listed"]
    assert found["listed"][-2:] == ["CoinFlips", "Deterministic"]
    assert found["refs"] == [f"#/$defs/{name}" for name in found["listed"]]
    assert found["schema"]["properties"]["kind"]["const"] == "coin-flips"
    assert found["schema"]["required"] == ["kind", "flips"]
    assert "#### `kind: coin-flips`" in found["reference"]
    assert "| `flips` | whole number | flips |" in found["reference"]
    assert "sampler.flips" in found["overridable"]


def test_init_asks_what_it_needs(found: dict[str, Any]) -> None:
    assert found["offered"]["coin-flips"] == "A record joins if all flips of its coin show heads."
    assert found["question"] == "Flips of a record's coin"
    assert found["options"]["--flips"] == "Flips of a record's coin, for coin-flips."
    assert "did you mean coin-flips?" in found["asked"]
    assert "flips" in found["needed"]
    assert not {"dataset_size", "batch_size", "sampling_probability"} & set(found["needed"])
    assert "  kind: coin-flips\n" in found["drafted"]
    assert "  # How often a coin is flipped.\n  flips: 5\n" in found["drafted"]


def test_the_guide_shows_it() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = guide.partition("```python\n")[2].partition("```")[0]
    lines = [line.partition("  #")[0] for line in shown.rstrip().splitlines()]
    assert lines[0] == "class CoinFlips(SamplerKind):"
    assert "\n".join(lines) in MODULE.read_text(encoding="utf-8")
