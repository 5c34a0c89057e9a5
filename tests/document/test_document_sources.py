"""Documents from mappings, overrides and other documents, and what they give back."""

import copy
import enum
import hashlib
import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from document_samples import BASE, PHASED, edited, load_text, problems_of, written
from plain_documents import doc
from snapshots import Snapshot

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.matrices import Identity
from pyaccount.document.sections import Accounting
from pyaccount.errors import DocumentError, Problem
from pyaccount.reading.fields import SOLVE

MAPPING: dict[str, Any] = doc(
    "name=cifar10 epsilon=8 dataset_size=50_000 expected_batch_size=500 iterations=2000 sampler=poisson multiplier=solve"
)


class Config(Mapping[str, Any]):
    """A mapping that is no dict, and hands out such mappings, as OmegaConf's does."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content

    def __getitem__(self, key: str) -> Any:
        value = self._content[key]
        return Config(value) if isinstance(value, dict) else Row(value) if isinstance(value, list) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


class Row(Sequence[Any]):
    """A sequence that is no list."""

    def __init__(self, content: list[Any]) -> None:
        self._content = content

    def __getitem__(self, index: Any) -> Any:
        return self._content[index]

    def __len__(self) -> int:
        return len(self._content)


class Cell:
    """A scalar as numpy's and torch's are."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def item(self) -> Any:
        return self._content


class Kind(enum.StrEnum):
    POISSON = "poisson"


class Size(enum.IntEnum):
    LARGE = 2000


def changed(path: str, value: Any) -> dict[str, Any]:
    mapping = copy.deepcopy(MAPPING)
    *above, last = path.split(".")
    section = mapping
    for part in above:
        section = section.setdefault(part, {})
    section[last] = value
    return mapping


def test_a_mapping_is_the_same_document(tmp_path: Path) -> None:
    document = load(MAPPING)
    assert document == load_text(tmp_path, BASE)
    assert hash(document) == hash(load(Config(MAPPING)))
    assert document.file is None
    assert repr(document) == "<Document 'cifar10'>"
    phased = load_text(tmp_path, PHASED)
    assert load(Config(phased.to_mapping())) == phased
    assert document != phased
    assert document != MAPPING


EQUIVALENT = [
    ("training.iterations", "2_000"),
    ("training.iterations", 2000.0),
    ("training.iterations", "2e3"),
    ("training.iterations", Cell(2000)),
    ("training.iterations", Size.LARGE),
    ("privacy.delta", "1e-5"),
    ("privacy.delta", Cell(1e-5)),
    ("privacy.epsilon", 8.0),
    ("sampler.kind", Kind.POISSON),
    ("pyaccount", "1"),
]


@pytest.mark.parametrize(("path", "value"), EQUIVALENT)
def test_equivalent_values(path: str, value: Any) -> None:
    assert load(changed(path, value)) == load(MAPPING)
    assert load(changed(path, value)).sha256 == load(MAPPING).sha256


def test_numpy_values() -> None:
    numpy = pytest.importorskip("numpy")
    mapping = changed("training.iterations", numpy.int32(2000))
    mapping["privacy"]["epsilon"] = numpy.float64(8)
    mapping["accounting"] = {"profile": numpy.array([1.0, 2.5])}
    document = load(mapping)
    assert document.accounting.profile == (1.0, 2.5)
    assert type(document.privacy.epsilon) is float
    assert [it.slug for it in problems_of(changed("privacy.epsilon", numpy.bool_(True)))] == ["wrong-type"]
    assert [it.slug for it in problems_of(changed("privacy.epsilon", numpy.zeros(2)))] == ["wrong-type"]


cycle: dict[str, Any] = {}
cycle["noise"] = cycle


WRONG_VALUES = [
    ("privacy.epsilon", True),
    ("privacy.epsilon", None),
    ("privacy.epsilon", float("nan")),
    ("privacy.epsilon", 10**5000),
    ("privacy.epsilon", 1j),
    ("privacy.epsilon", b"8"),
    ("privacy.epsilon", {8}),
    ("privacy.epsilon", object()),
    ("privacy.epsilon", int),
    ("training.iterations", "2 000"),
    ("training.iterations", " 2000"),
    ("sampler", "poisson"),
    ("sampler.kind", ["poisson"]),
    ("accounting.profile", (1, 2, "x")),
    ("accounting.profile", {1, 2}),
    ("accounting", {1: 2}),
    ("accounting", {"sead": 2}),
    ("noise", cycle),
]


@pytest.mark.parametrize(("path", "value"), WRONG_VALUES, ids=range(len(WRONG_VALUES)))
def test_wrong_values_in_a_mapping(path: str, value: Any, snapshot: Snapshot) -> None:
    snapshot(problems_of(changed(path, value)))


def test_an_empty_mapping(snapshot: Snapshot) -> None:
    snapshot(problems_of({}))


OVERRIDES = [
    (["privacy.epsilon=4"], "privacy", "epsilon", 4.0),
    (["privacy.epsilon=4", "privacy.epsilon=5"], "privacy", "epsilon", 5.0),
    (["privacy.delta=1e-6"], "privacy", "delta", 1e-6),
    ([("privacy.delta", 1e-6)], "privacy", "delta", 1e-6),
    (["privacy.group_size=8"], "privacy", "group_size", 8),
    (["accounting.seed=7"], "accounting", "seed", 7),
    (["accounting.profile=[1, 2]", "accounting.profile[1]=3"], "accounting", "profile", (1.0, 3.0)),
    (["accounting.time_limit=10 min"], "accounting", "time_limit", 600.0),
    (["accounting={seed: 3, tolerance: 1e-3}"], "accounting", "tolerance", 1e-3),
    ("privacy.epsilon=4", "privacy", "epsilon", 4.0),
]


@pytest.mark.parametrize(("overrides", "section", "field", "value"), OVERRIDES)
def test_overrides(overrides: Any, section: str, field: str, value: Any, tmp_path: Path) -> None:
    document = load_text(tmp_path, BASE, overrides)
    assert getattr(getattr(document, section), field) == value
    assert load(document.to_mapping()) == document == load(load(MAPPING), overrides=overrides)


@pytest.mark.parametrize("path", ["phases.0.noise.multiplier", "phases[0].noise.multiplier"])
def test_overrides_in_phases(path: str, tmp_path: Path) -> None:
    document = load_text(tmp_path, PHASED, [f"{path}=1.25"])
    assert [body.noise.multiplier for body in document.runs()] == [1.25, 2.0]
    assert load_text(tmp_path, PHASED, ["phases.1.name=second"]).phases[1].name == "second"


def test_overrides_fill_empty_sections_and_the_blank(tmp_path: Path) -> None:
    document = load_text(tmp_path, edited({15: "accounting:"}), ["accounting.seed=1", "noise.multiplier=2"])
    assert document.accounting.seed == 1
    assert document.blank is None


WRONG_OVERRIDES = [
    "privacy.epsilon=-4",
    "privacy.epsilon=",
    "privacy.epslon=4",
    "privcy.epsilon=4",
    "noise_multiplier=4",
    "sampler.kind=poison",
    "noise.multiplier.x=4",
    "privacy.epsilon",
    "=4",
    "privacy..epsilon=4",
    "privacy.epsilon=[4",
    "privacy.epsilon='4",
    "privacy.epsilon=!!int 4",
    "privacy.epsilon=*a",
    "privacy={epsilon: 4, epsilon: 5, adjacency: zero-out, delta: 0.1}",
]


@pytest.mark.parametrize("override", WRONG_OVERRIDES)
def test_wrong_overrides(override: str, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, BASE), [override]))


def test_overrides_of_a_phase_that_does_not_exist(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, PHASED), ["phases.2.count=4"]))
    snapshot(problems_of(written(tmp_path, BASE), ["phases.0.count=4"]))
    *_, problem = problems_of(written(tmp_path, edited({15: "phases:"})), ["phases.0.count=4"])
    assert "phases has no entries" in problem.message


def test_problems_of_overrides_come_after_those_of_the_file(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, edited({6: "  delta: 2"})), ["privacy.epsilon=-1", "foo"]))


def test_the_resolved_view(tmp_path: Path) -> None:
    document = load_text(tmp_path, PHASED)
    assert document.name == "two phases"
    assert (document.privacy.adjacency, document.privacy.group_size) == ("add-remove", 1)
    assert (document.privacy.epsilon, document.privacy.delta) == (SOLVE, 1e-6)
    assert document.accounting == Accounting(tolerance=0.01, profile=(1.0, 2.5), time_limit=600, seed=7, method="pld")
    assert [body.path for body in document.runs()] == [("phases", 0), ("phases", 1)]
    assert [body.name for body in document.runs()] == ["pretraining", None]
    assert [body.count for body in document.runs()] == [1, 3]
    assert [body.matrix for body in document.runs()] == [Identity(kind="identity")] * 2
    assert list(document.runs())[1].at("noise", "multiplier") == ("phases", 1, "noise", "multiplier")
    assert [body.path for body in load(MAPPING).runs()] == [()]
    assert load(MAPPING).accounting == Accounting()


def test_to_mapping_is_what_was_written(tmp_path: Path) -> None:
    assert load(MAPPING).to_mapping() == MAPPING
    assert load_text(tmp_path, BASE, ["accounting.time_limit=10 min"]).to_mapping() == {
        **MAPPING,
        "accounting": {"time_limit": 600},
    }
    explicit = changed("noise.kind", "gaussian")
    assert load(explicit).to_mapping() == explicit
    for source in (BASE, PHASED):
        document = load_text(tmp_path, source)
        assert load(json.loads(json.dumps(document.to_mapping()))) == document


def test_the_hash_is_pinned() -> None:
    """The canonical text, spelled out: changing it would orphan every certificate."""
    text = (
        '{"name":"cifar10","noise":{"multiplier":"solve"},"privacy":{"adjacency":"zero-out","delta":1e-05,"epsilon":8},'
        '"pyaccount":1,"sampler":{"kind":"poisson"},'
        '"training":{"dataset_size":50000,"expected_batch_size":500,"iterations":2000}}'
    )
    assert load(MAPPING).sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_with_value(tmp_path: Path, snapshot: Snapshot) -> None:
    document = load_text(tmp_path, BASE)
    assert document.blank is not None
    filled = document.with_value(document.blank, 1.25)
    assert isinstance(filled, Document)
    assert (filled.run.noise.multiplier, filled.blank, filled.file) == (1.25, None, document.file)
    assert document.run.noise.multiplier == SOLVE
    assert filled.with_value(document.blank, SOLVE) == document
    assert document.with_value(("accounting", "seed"), 3).accounting.seed == 3
    snapshot.raised(document.with_value, document.blank, -1)
    with pytest.raises(KeyError):
        document.with_value(("phases", 0, "count"), 1)


def test_located_problems(tmp_path: Path) -> None:
    document = load_text(tmp_path, BASE)
    problem = document.problem("contradiction", ("privacy", "adjacency"), "no", allowed="a", suggestion="b")
    assert problem == Problem(
        "contradiction", "no", ("privacy", "adjacency"), document.file, 4, 14, "zero-out", "a", "b"
    )
    absent = document.problem("missing-key", ("accounting", "seed"), "no")
    assert (absent.line, absent.column, absent.value) == (1, 1, None)


def test_problems_as_json(tmp_path: Path, snapshot: Snapshot) -> None:
    text = edited({5: "  epsilon: .nan", 6: "  delta: 1e300", 8: "  dataset_size: {a: 1}"})
    with snapshot.raises(DocumentError) as caught:
        load_text(tmp_path, text)
    error = caught.value
    listed = json.loads(json.dumps(error.to_json(), allow_nan=False))
    assert [it["value"] for it in listed] == ["nan", "1e+300", "{'a': 1}"]
    assert [it["path"] for it in listed] == ["privacy.epsilon", "privacy.delta", "training.dataset_size"]
    assert set(listed[0]) == {
        "slug", "message", "path", "file", "line", "column", "value", "allowed", "suggestion",
    }  # fmt: skip
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(pickle.loads(pickle.dumps(load(MAPPING))).sha256) == load(MAPPING).sha256


def test_sections_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(MAPPING).privacy.epsilon = 3
