"""What notebooks and programs get: HTML that is escaped and says which way a bound goes, columns, copies, equality."""

from __future__ import annotations

import copy
import importlib.util
import json
import pickle
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from gate_tools import changed, golden, save
from places import CERTIFICATES, EXAMPLES
from snapshots import Snapshot

import pyaccount

NAMES = ("deterministic", "verified", "confidence")


def loaded(name: str) -> pyaccount.Certificate:
    return pyaccount.Certificate.load(CERTIFICATES / "v1" / f"{name}.json")


class Cells(HTMLParser):
    """The cells of tables, and every tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        assert not attrs
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1] and self.tags[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("name", NAMES)
def test_a_certificate_shows_its_bounds_on_the_safe_side(name: str) -> None:
    certificate = loaded(name)
    text = certificate._repr_html_()
    assert "HOLDS" in text
    guarantee = certificate.data.guarantee
    rows = {row[0]: row[1:] for row in Cells(text).rows}
    assert float(rows["ε at most"][0]) >= guarantee.epsilon
    assert float(rows["δ at most"][0]) >= guarantee.delta
    for label, upper, lower in (
        ("ε", guarantee.epsilon, guarantee.epsilon_lower),
        ("δ", guarantee.delta, guarantee.delta_lower),
    ):
        above, below = re.findall(r"at (?:most|least) (\S+?)(?:,|$)", rows[label][0])
        assert float(above) >= upper
        assert float(below) <= lower


def test_what_does_not_hold_or_contradicts_itself_does_not_say_that_it_holds(tmp_path: Path) -> None:
    assert "DOES NOT HOLD" in loaded("claim-fails")._repr_html_()
    forged = save(tmp_path, changed(golden("deterministic"), guarantee__epsilon=1.0))
    text = pyaccount.Certificate.load(forged)._repr_html_()
    assert "contradicts itself" in text
    assert "HOLDS" not in text


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_shows_its_points_on_the_safe_side(name: str) -> None:
    profile = loaded(name).profile
    (titles, *rows) = Cells(profile._repr_html_()).rows
    assert titles[:3] == ["ε (nats)", "δ at most", "δ at least"]
    for point, (_, upper, lower, *_) in zip(profile, rows, strict=True):
        assert float(upper) >= point.delta
        assert float(lower) <= point.delta_lower


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_the_points(name: str) -> None:
    certificate = loaded(name)
    columns = certificate.profile.to_dict()
    expected = ["epsilon", "delta", "delta_lower"]
    if name != "deterministic":
        expected += ["delta_estimate", "standard_error"]
    assert list(columns) == expected
    for key, values in columns.items():
        assert values == [point[key] for point in golden(name)["profile"]]
    assert certificate.to_dict() == json.loads(certificate.to_json())


def comparison() -> pyaccount.Comparison:
    return pyaccount.compare([loaded(name) for name in NAMES])


def test_a_comparison_is_columns_and_a_table() -> None:
    found = comparison()
    columns = found.to_dict()
    assert columns["epsilon"] == [golden(name)["guarantee"]["epsilon"] for name in NAMES]
    assert {len(values) for values in columns.values()} == {3}
    (titles, *rows) = Cells(found._repr_html_()).rows
    for row, name in zip(rows[:3], NAMES, strict=True):
        assert float(row[titles.index("ε at most")]) >= golden(name)["guarantee"]["epsilon"]


def test_a_plan_shows_its_theorems() -> None:
    plan = pyaccount.compile(EXAMPLES / "cifar10-dp-sgd.yaml")
    rows = Cells(plan._repr_html_()).rows
    assert [row[1] for row in rows if row[0] == "theorem"] == [one.theorem for one in plan.reductions]


def test_names_are_shown_and_not_run(tmp_path: Path) -> None:
    """A document's author chooses its name, and whoever opens the notebook may be another person."""
    name = "<script>alert(1)</script>"
    certificate = changed(golden("deterministic"), name=name)
    shown = pyaccount.Certificate.load(save(tmp_path, certificate))
    document = json.loads(json.dumps(golden("deterministic")["document"])) | {"name": name}
    for one in (shown, shown.profile, pyaccount.compare([shown]), pyaccount.compile(document)):
        text = one._repr_html_()
        assert "&lt;script&gt;" in text
        assert "script" not in Cells(text).tags


@pytest.mark.parametrize("name", NAMES)
def test_copies_are_equal_and_others_are_not(name: str) -> None:
    certificate = loaded(name)
    for one in (certificate, certificate.profile, pyaccount.compare([certificate])):
        for made in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert made == one
            assert type(made) is type(one)
    assert certificate == loaded(name)
    assert hash(certificate) == hash(loaded(name))
    assert len({certificate, loaded(name), *map(loaded, NAMES)}) == 3
    assert certificate.profile == loaded(name).profile
    assert hash(certificate.profile) == hash(loaded(name).profile)
    for other in (loaded("group-of-phases"), certificate.profile, certificate.data, None):
        assert certificate != other
    changed_at = pyaccount.Certificate.from_json(json.dumps({**golden(name), "created": "2020-01-01T00:00:00+00:00"}))
    assert certificate != changed_at


def test_a_picture_shows_both_bounds() -> None:
    pytest.importorskip("matplotlib")
    certificate = loaded("deterministic")
    (axes,) = certificate.profile.plot().axes
    upper, lower = axes.lines
    assert (upper.get_label(), lower.get_label()) == ("δ at most", "δ at least")
    assert list(upper.get_ydata()) == [point.delta for point in certificate.profile]
    assert list(lower.get_ydata()) == [point.delta_lower for point in certificate.profile]
    assert axes.get_yscale() == "log"


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_data_frames() -> None:
    certificate = loaded("confidence")
    frame = certificate.profile.to_pandas()
    assert {name: list(frame[name]) for name in frame} == certificate.profile.to_dict()
    assert list(comparison().to_pandas()["name"]) == [golden(name)["name"] for name in NAMES]


def test_without_the_extras_they_are_named(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    profile = loaded("deterministic").profile
    monkeypatch.setitem(sys.modules, "pandas", None)
    snapshot.raised(profile.to_pandas)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    snapshot.raised(profile.plot)
