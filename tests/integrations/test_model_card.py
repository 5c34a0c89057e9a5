"""Model cards: their front matter is written without touching anything else, read back, and compared with the certificate."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from certificate_samples import MORE, fresh
from gate_tools import RUNS, golden
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import Snapshot

import pyaccount
from pyaccount import CardError, CardMismatchError, Certificate
from pyaccount.integrations.model_card import check_card, read_card, write_card

CERTIFICATE = RUNS["deterministic"]
CARD = """\
---
# The card of a model; comments and order stay.
license: apache-2.0   # of the weights
language:
- en
tags: [text-generation, "differential privacy"]
model-index:
  - name: tiny
    results: []
notes: |
  lines

  of text
---

# Tiny

privacy: this line is not front matter.
"""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_bytes(CARD.encode())
    return path


def front(path: Path) -> dict[str, Any]:
    """Return the front matter with a reader of its own: what is between the first two lines of three hyphens."""
    _, text, _ = path.read_text(encoding="utf-8").split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_the_key_states_the_certificate_and_nothing_else_changes(card: Path) -> None:
    assert write_card(CERTIFICATE, card)
    text, data = card.read_text(encoding="utf-8"), golden("deterministic")
    start = text.index("privacy:\n")
    end = text.index("---\n\n# Tiny")
    assert text[:start] + text[end:] == CARD
    found = front(card)
    assert {name: value for name, value in found.items() if name != "privacy"} == yaml.safe_load(CARD.split("---\n")[1])
    assert found["privacy"] == {
        "pyaccount": 1,
        "statement": data["statement"],
        "guarantee": "deterministic",
        "epsilon_upper": data["guarantee"]["epsilon"],
        "delta_upper": data["guarantee"]["delta"],
        "failure_probability_upper": 0.0,
        "unit": "record",
        "group_size": 1,
        "adjacency": "add-remove",
        "mechanisms": ["training with gaussian noise"],
        "samplers": ["poisson"],
        "certificate": "deterministic.json",
        "certificate_sha256": hashlib.sha256(CERTIFICATE.read_bytes()).hexdigest(),
        "document_sha256": data["document_sha256"],
    }
    # In YAML 1.1, 1e-06 would be text.
    assert isinstance(found["privacy"]["delta_upper"], float)
    assert read_card(card) == found["privacy"]
    check_card(CERTIFICATE, card)
    assert not write_card(CERTIFICATE, card)


def test_the_hub_reads_the_card(card: Path) -> None:
    hub = pytest.importorskip(
        "huggingface_hub", reason="huggingface_hub is not installed: the card is NOT read with the hub's own reader"
    )
    write_card(CERTIFICATE, card)
    loaded = hub.ModelCard.load(card)
    assert loaded.data.license == "apache-2.0"
    assert loaded.data.to_dict()["privacy"] == read_card(card)
    assert loaded.text.strip().startswith("# Tiny")
    # The hub writes the front matter anew; the key is read from that too.
    loaded.save(card)
    check_card(CERTIFICATE, card)


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"claim-fails"}))
def test_every_certificate_is_stated_and_read_back(name: str, card: Path) -> None:
    write_card(RUNS[name], card)
    check_card(RUNS[name], card)
    found, data = front(card)["privacy"], golden(name)
    assert (found["epsilon_upper"], found["delta_upper"]) == (data["guarantee"]["epsilon"], data["guarantee"]["delta"])
    assert found["samplers"] == [phase["sampler"] for phase in data["phases"]]
    for other in RUNS.keys() - {name, "claim-fails"}:
        with pytest.raises(CardMismatchError):
            check_card(RUNS[other], card)


@pytest.mark.parametrize("name", MORE)
def test_certificates_in_memory_have_the_digest_of_their_file(name: str, card: Path, tmp_path: Path) -> None:
    certificate = fresh(name)
    write_card(certificate, card)
    certificate.save(tmp_path / "certificate.json")
    check_card(tmp_path / "certificate.json", card)
    digest = hashlib.sha256((tmp_path / "certificate.json").read_bytes()).hexdigest()
    assert read_card(card)["certificate_sha256"] == digest


def test_a_card_is_written_again_in_its_place(card: Path) -> None:
    text = card.read_text(encoding="utf-8").replace(
        "license:", "privacy:\n  pyaccount: 1\n  # old\n\n  epsilon_upper: 3\n\n# next\nlicense:"
    )
    card.write_text(text, encoding="utf-8")
    write_card(CERTIFICATE, card)
    found = card.read_text(encoding="utf-8")
    assert list(front(card)) == ["privacy", "license", "language", "tags", "model-index", "notes"]
    assert "# old" not in found
    assert "\n\n# next\nlicense: apache-2.0   # of the weights\n" in found
    check_card(CERTIFICATE, card)


@pytest.mark.parametrize(
    ("before", "opening", "closing"),
    [
        ("", "---\nprivacy:\n", "\n---\n"),
        ("# A model\n", "---\nprivacy:\n", "\n---\n\n# A model\n"),
        ("\ufeff# A model\n", "\ufeff---\nprivacy:\n", "\n---\n\n# A model\n"),
        ("# A model\r\n", "---\r\nprivacy:\r\n", "\r\n---\r\n\r\n# A model\r\n"),
        ("---\n---\n# A model\n", "---\nprivacy:\n", "\n---\n# A model\n"),
        ("---\n# nothing yet\n---\n", "---\n# nothing yet\nprivacy:\n", "\n---\n"),
        ("---\r\nlicense: mit\r\n---\r\n# A\r\n", "---\r\nlicense: mit\r\nprivacy:\r\n", "\r\n---\r\n# A\r\n"),
        ("---\nlicense: mit\n---", "---\nlicense: mit\nprivacy:\n", "\n---"),
        ("---\nkept: |+\n  text\n\n---\n", "---\nkept: |+\n  text\n\nprivacy:\n", "\n---\n"),
    ],
)
def test_cards_of_every_shape(before: str, opening: str, closing: str, card: Path) -> None:
    card.write_bytes(before.encode())
    write_card(CERTIFICATE, card)
    found = card.read_bytes().decode()
    assert found.startswith(opening)
    assert found.endswith(closing)
    assert ("\r\n" in before) == ("\r\n" in found)
    assert "\r\n" not in before or "\n" not in found.replace("\r\n", "")
    check_card(CERTIFICATE, card)


@pytest.mark.parametrize(
    "text",
    [
        "---\nlicense: [mit\n---\n",
        "---\na: 1\n  b: 2\n---\n",
        "---\n- a\n---\n",
        "---\n{license: mit}\n---\n",
        "---\nprivacy: DP\n---\n",
        "---\nlicense: mit\nprivacy:\n  epsilon: 3\n---\n",
        "---\nprivacy: {pyaccount: 1}\nprivacy: {pyaccount: 1}\n---\n",
        "---\nprivacy: &a {pyaccount: 1}\nother: *a\n---\n",
    ],
)
def test_cards_that_cannot_be_edited_are_refused_with_the_line(text: str, card: Path, snapshot: Snapshot) -> None:
    card.write_text(text, encoding="utf-8")
    snapshot.raised(write_card, CERTIFICATE, card)
    assert card.read_text(encoding="utf-8") == text


def test_files_that_are_no_cards(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: write_card(CERTIFICATE, tmp_path / "absent.md"))
    (tmp_path / "weights.md").write_bytes(b"\xff\xfe")
    snapshot.raised(lambda: write_card(CERTIFICATE, tmp_path / "weights.md"))
    (tmp_path / "large.md").write_bytes(b" " * ((1 << 24) + 1))
    snapshot.raised(lambda: write_card(CERTIFICATE, tmp_path / "large.md"))


def test_many_aliases_take_no_longer_than_their_text(card: Path, snapshot: Snapshot) -> None:
    levels = "".join(f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]\n" for k in range(1, 60))
    card.write_text(f"---\na0: &a0 x\n{levels}privacy:\n  pyaccount: 1\n  samplers: *a59\n---\n", encoding="utf-8")
    snapshot.raised(check_card, CERTIFICATE, card)


def test_certificates_that_cannot_be_stated(card: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: write_card(RUNS["claim-fails"], card))
    forged = golden("deterministic")
    forged["guarantee"]["epsilon"] = 1.0
    (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    snapshot.raised(lambda: write_card(tmp_path / "forged.json", card))
    snapshot.raised(lambda: write_card(RUNS["deterministic"].with_name("amplification.json"), card))
    assert card.read_text(encoding="utf-8") == CARD


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("epsilon_upper: 1.9999505354834883", "epsilon_upper: 1.5", "epsilon_upper"),
        ("delta_upper: 1.0e-06", "delta_upper: 1e-06", "delta_upper"),
        ("unit: record", "unit: user", "unit"),
        ("group_size: 1", "group_size: true", "group_size"),
        ("adjacency: add-remove", "adjacency: zero-out", "adjacency"),
        ("  - poisson", "  - shuffled", "samplers"),
        ("guarantee: deterministic", "guarantee: best", "guarantee"),
        ("  unit: record\n", "", "unit"),
        ("  unit: record\n", "  unit: record\n  epsilon: 1\n", "epsilon"),
    ],
)
def test_what_differs_is_located(old: str, new: str, name: str, card: Path, snapshot: Snapshot) -> None:
    write_card(CERTIFICATE, card)
    text = card.read_text(encoding="utf-8")
    assert text.count(old) == 1
    changed = text.replace(old, new)
    card.write_text(changed, encoding="utf-8")
    with snapshot.raises(CardMismatchError) as caught:
        check_card(CERTIFICATE, card)
    (problem,) = caught.value.problems
    lines = changed.splitlines()
    assert problem.line is not None
    there = f"  {name}:" if f"  {name}:" in changed else "privacy:"
    expected = 1 + next(k for k, line in enumerate(lines) if line.startswith(there))
    # A list begins on the line after its key.
    assert problem.line == expected + (name == "samplers")


def test_the_name_of_the_file_is_for_people(card: Path, tmp_path: Path, snapshot: Snapshot) -> None:
    write_card(CERTIFICATE, card)
    shutil.copy(CERTIFICATE, tmp_path / "renamed.json")
    check_card(tmp_path / "renamed.json", card)
    other = Certificate.load(CERTIFICATE).to_json().replace('"name": "', '"name":  "', 1)
    (tmp_path / "renamed.json").write_text(other, encoding="utf-8")
    snapshot.raised(lambda: check_card(tmp_path / "renamed.json", card))


@pytest.mark.parametrize(
    "text",
    [
        "# no front matter\n",
        "---\nlicense: mit\n---\n",
        "---\nprivacy: DP\n---\n",
        "---\nprivacy: {pyaccount: 2}\n---\n",
        "---\nprivacy: {pyaccount: true}\n---\n",
        "---\nprivacy: !!python/name:os.system {pyaccount: 1}\n---\n",
    ],
)
def test_cards_without_the_key_are_errors(text: str, card: Path, snapshot: Snapshot) -> None:
    card.write_text(text, encoding="utf-8")
    snapshot.raised(check_card, CERTIFICATE, card)


_WORDS = st.text("abc xyz:#'\"-|>é\u2028", min_size=1, max_size=12)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_WORDS.filter(lambda key: key != "privacy"), _VALUES, max_size=5), st.booleans(), st.booleans())
def test_any_front_matter_keeps_its_meaning(
    tmp_path_factory: Any, values: dict[str, Any], unicode: bool, late: bool
) -> None:
    path = tmp_path_factory.mktemp("cards") / "README.md"
    text = yaml.safe_dump(values, allow_unicode=unicode, sort_keys=False) if values else ""
    before = f"---\n{text}---\nbody\n"
    path.write_bytes(before.encode())
    write_card(CERTIFICATE, path)
    if late:
        write_card(fresh("bins"), path)
    found = path.read_bytes().decode()
    matter = found.split("\n---\n", 1)[0].removeprefix("---\n")
    read = yaml.safe_load(matter)
    assert list(read.items())[:-1] == list(values.items())
    assert found.startswith(before.removesuffix("---\nbody\n"))
    assert found.endswith("---\nbody\n")
    check_card(fresh("bins") if late else CERTIFICATE, path)


def test_the_errors_are_public() -> None:
    assert issubclass(pyaccount.CardError, pyaccount.PyaccountError)
    assert (CardError.exit_code, CardMismatchError.exit_code) == (2, 1)
