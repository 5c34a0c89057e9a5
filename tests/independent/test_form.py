"""The normal form has one spelling: whatever is written otherwise, or says anything that is not known, is refused."""

import json
import random
from typing import Any

import pytest
from normal_forms import form, gaussian, judged, poisson, rounds, spaced
from places import ROOT

from pyaccount.independent.form import GRAMMAR, digest, parsed, parts_of, printed
from pyaccount.independent.lattice import NotCheckableError

TEXT = form(poisson())


def test_a_form_is_read_and_printed_again() -> None:
    found = parsed(TEXT)
    assert found["adjacency"] == "add-remove"
    assert [node["kind"] for node in parts_of(found)] == ["repeat", "round", "poisson"]
    assert printed(json.loads(TEXT)) == TEXT
    assert len(digest(TEXT)) == 64


@pytest.mark.parametrize(
    "text",
    [
        TEXT + " ", " " + TEXT, TEXT.replace(":", ": ", 1), TEXT.replace('"group":"1"', '"group":1'), "null", "", "[]", "3",
        TEXT.replace('"group":"1"', '"group":"01"'), TEXT.replace('"group":"1"', '"group":"1.0"'),
        TEXT.replace('"group":"1"', '"group":"1e0"'), TEXT.replace('"group":"1"', '"group":"+1"'),
        TEXT.replace('"group":"1"', '"group":"0"'), TEXT.replace('"group":"1"', '"group":"1.5"'),
        TEXT.replace('"group":"1"', '"group":"1","group":"2"'), TEXT.replace('"0.02"', '"0.020"'),
        TEXT.replace('"0.02"', '".02"'), TEXT.replace('"0.02"', '"-0.02"'), TEXT.replace('"0.02"', '"2"'),
        TEXT.replace('"0.02"', '"0.02\\u0000"'), TEXT.replace('"0.02"', '"NaN"'), TEXT.replace('"0.02"', "true"),
        TEXT.replace('"0.02"', "null"), TEXT.replace('"0.02"', '["0.02"]'), TEXT.replace('"0.02"', '"\\u0030.02"'),
        TEXT.replace("add-remove", "swap"), TEXT.replace('"draws":"1",', ""), TEXT.replace('"draws":"1"', '"count":"1"'),
        TEXT.replace('"count":"40"', '"count":"1"'), TEXT.replace("poisson", "Poisson"), "[" * 100_000,
        TEXT.replace('"noise":["1"]', '"noise":[]'), TEXT.replace('"noise":["1"]', '"noise":["0"]'),
        TEXT.replace('"noise":["1"]', '"noise":["1",["2"]]'), TEXT[:-1], TEXT + "}", TEXT.replace("kind", "k\\u0069nd"),
        "x" * (4 * 2**20 + 1),
    ],
)  # fmt: skip
def test_any_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(NotCheckableError):
        parsed(text)


STRUCTURES: dict[str, dict[str, Any]] = {
    "one in a sequence": {"kind": "sequence", "of": [gaussian()]},
    "equal neighbours": {"kind": "sequence", "of": [gaussian(), gaussian()]},
    "equal neighbours, counted": {
        "kind": "sequence",
        "of": [gaussian(), {"count": "2", "kind": "repeat", "of": gaussian()}],
    },
    "a sequence inside": {
        "kind": "sequence",
        "of": [gaussian(), {"kind": "sequence", "of": [gaussian("5"), gaussian()]}],
    },
    "a repeat inside": {"count": "2", "kind": "repeat", "of": {"count": "2", "kind": "repeat", "of": gaussian()}},
    "one part": {"kind": "parts", "of": [gaussian()]},
    "a key more": gaussian() | {"moved": "1"},
    "a word that is none": gaussian() | {"kind": "gauss"},
    "strata that are none": poisson({"kind": "strata", "of": {}}),
    "strata with a wrong probability": poisson({"kind": "strata", "of": {"a": "1.1"}}),
    "a hash that is none": spaced(4, 2, "0.1", {"kind": "dense", "normalised": "yes", "sha256": "0" * 63}, "1"),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_there_is_one_way_to_say_each_thing(name: str) -> None:
    with pytest.raises(NotCheckableError):
        parsed(form(STRUCTURES[name]))
    assert judged(form(STRUCTURES[name]), 100, 0.5)["verdict"] == "not checkable"


def test_nesting_and_size_are_limited() -> None:
    node: dict[str, Any] = gaussian()
    for _ in range(40):
        node = {"kind": "parts", "of": [node, gaussian("5")]}
    with pytest.raises(NotCheckableError, match="levels"):
        parsed(form(node))


def test_every_kind_is_documented() -> None:
    page = (ROOT / "docs" / "independent.md").read_text(encoding="utf-8")
    for key in GRAMMAR:
        assert f"`{key.partition('/')[2]}`" in page, key


def test_damaged_forms_are_never_an_error() -> None:
    drawn = random.Random(5)
    texts = [
        TEXT,
        form(rounds({"kind": "fixed-size", "records": "100", "size": "10"}, 3, "2"), "replace-one"),
        form(spaced(6, 2, "0.1", {"kind": "identity"}, "2"), "zero-out"),
    ]
    for _ in range(400):
        text = list(drawn.choice(texts))
        for _ in range(drawn.randint(1, 3)):
            at = drawn.randrange(len(text))
            text[at] = drawn.choice(['"', "{", "}", "[", "]", ",", ":", "0", "9", ".", "-", "a", "", "\u2028"])
        try:
            parsed("".join(text))
        except NotCheckableError:
            continue
