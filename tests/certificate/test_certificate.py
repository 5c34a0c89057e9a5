"""The certificate: directed rounding, round trips, statements, and the Python interface."""

import ast
import json
import math
import random
from decimal import Decimal
from pathlib import Path

import pytest
from places import ROOT
from plain_documents import document
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.execute.certified import CELLS, SEVERAL, SOURCES
from pyaccount.files import write_atomically
from pyaccount.rounding import down, up


def test_rounding_keeps_bounds_true() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        value = rng.choice([1, 10]) * 10 ** rng.uniform(-120, 12)
        digits = rng.randrange(1, 9)
        assert Decimal(down(value, digits)) <= Decimal(value)
        shown = Decimal(up(value, digits))
        # A number given with so few digits is shown as given; its nearest double may lie a hair above it.
        assert shown >= Decimal(value) or float(shown) == value
        assert float(shown) <= value * (1 + 10 ** (1 - digits)) * (1 + 1e-15)


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [(2.95526574, "2.95527", "2.95526"), (1e-5, "1e-5", "1e-5"), (0.0, "0", "0"), (1234567.0, "1234570", "1234560")],
)
def test_rounding_examples(value: float, above: str, below: str) -> None:
    assert (up(value), down(value)) == (above, below)
    assert up(math.inf) == "∞"


def test_json_round_trip() -> None:
    certificate = pyaccount.certify(document(privacy__epsilon="solve"))
    text = certificate.to_json()
    assert pyaccount.Certificate.from_json(text).to_json() == text
    assert json.loads(text)["document_sha256"] == pyaccount.load(document(privacy__epsilon="solve")).sha256


def test_a_certificate_knows_its_document() -> None:
    asked = document(noise__multiplier="solve")
    certificate = pyaccount.certify(asked)
    found = certificate.document()
    assert found.blank is None
    assert found.run.noise.multiplier == certificate.noise_multiplier
    assert found.to_mapping() | {"noise": asked["noise"]} == pyaccount.load(asked).to_mapping()
    certificate = pyaccount.certify(document(privacy__epsilon="solve"))
    assert certificate.document().privacy.epsilon == certificate.epsilon


def test_plain_data_is_what_json_says() -> None:
    certificate = pyaccount.certify(document(noise__multiplier="solve"))
    assert certificate.to_dict() == json.loads(certificate.to_json())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pyaccount": 2}', "not json"])
def test_other_texts_are_not_certificates(text: str, snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.Certificate.from_json, text)


def test_the_profile_answers_anywhere_also_after_reading(snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document(noise__multiplier="solve", accounting={"profile": [0.5, 1, 2]}))
    read = pyaccount.Certificate.from_json(certificate.to_json())
    for source in (certificate, read):
        profile = source.profile
        assert [point.epsilon for point in profile] == [0.5, 1, 2]
        assert len(profile) == 3
        for point in profile:
            again = profile.delta(point.epsilon)
            assert again.lower <= point.delta
            assert point.delta_lower <= again.upper
        back = profile.epsilon(profile.delta(1.3).upper)
        assert back.lower <= 1.3 <= back.upper * (1 + 1e-3)
    for bad in (-1.0, math.nan, math.inf):
        snapshot.raised(certificate.profile.delta, bad)
    for bad in (0.0, 1.0, math.nan):
        snapshot.raised(certificate.profile.epsilon, bad)


def test_statement_names_adjacency_unit_and_conditions() -> None:
    certificate = pyaccount.certify(
        document(privacy__epsilon="solve", privacy__group_size=4, privacy__adjacency="zero-out")
    )
    for words in ("up to 4 records", "by zero", "assumptions", "1e-6"):
        assert words in certificate.statement


def test_guarantee_is_the_larger_direction() -> None:
    data = pyaccount.certify(document(privacy__epsilon="solve")).data
    assert data.guarantee.epsilon == max(data.directions.remove.epsilon, data.directions.add.epsilon)
    for point, remove, add in zip(
        data.profile, data.directions.remove.profile, data.directions.add.profile, strict=True
    ):
        assert point.delta == max(remove.delta, add.delta)
        assert point.delta_lower == max(remove.delta_lower, add.delta_lower)


def test_every_error_source_has_a_line() -> None:
    evidence = pyaccount.certify(document(privacy__epsilon="solve")).data.evidence
    (interval,) = _core.answer_all([([(_core.RoundProfile.gaussian(1.0, 1.0), 10)], None, 1e-5, 1e-3)])
    assert set(SOURCES) == set(interval.budget)
    # That of cells is told only where rounds are composed without a lattice.
    told = [words for source, words in SOURCES.items() if source not in {CELLS, SEVERAL}]
    assert [line.source for line in evidence.error_budget if line.direction == "add"] == told
    assert all(line.contribution < 1e-9 for line in evidence.error_budget if "relative" not in line.source)


def test_utility_of_independent_noise() -> None:
    data = pyaccount.certify(document(noise__multiplier=2.0, privacy__epsilon="solve")).data
    assert data.utility is not None
    assert data.utility.prefix_sum_mse == pytest.approx(sum(4.0 * i for i in range(1, 401)) / 400)
    assert data.utility.max_error == pytest.approx(2.0 * math.sqrt(400))


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    target = tmp_path / "a.json"
    write_atomically(target, "one")

    def fail(self: Path, other: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    snapshot.raised(write_atomically, target, "two")
    assert target.read_text(encoding="utf-8") == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_public_names_resolve() -> None:
    for name in pyaccount.__all__:
        assert getattr(pyaccount, name) is not None
    with pytest.raises(AttributeError):
        pyaccount.nothing  # noqa: B018


def test_the_stub_matches_the_compiled_core() -> None:
    tree = ast.parse((ROOT / "pyaccount" / "_core.pyi").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            compiled = {name for name in vars(getattr(_core, node.name)) if not name.startswith("_")}
            stubbed = {
                item.name if isinstance(item, ast.FunctionDef) else item.target.id  # type: ignore[union-attr]
                for item in node.body
                if isinstance(item, ast.FunctionDef | ast.AnnAssign)
            }
            # Constructors are private to both.
            assert compiled == {name for name in stubbed if not name.startswith("_")}, node.name
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions == {
        name for name, value in vars(_core).items() if type(value).__name__ == "builtin_function_or_method"
    }
