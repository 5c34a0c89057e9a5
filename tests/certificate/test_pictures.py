"""Every axis of every picture can be read: three ticks at least, whose labels stand apart, on a narrow screen too."""

from __future__ import annotations

import math
import random
import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from places import EXAMPLES
from plain_documents import doc

import pyaccount
from pyaccount.pages.html import html
from pyaccount.pages.page import Page, PageSection, PageTable
from pyaccount.pages.plot import Axis, BarGroup, Bars, Plot, Series
from pyaccount.pages.svg import svg
from pyaccount.pages.ticks import FEWEST, MOST, round_ticks

SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
#: The letters of a picture of 640 units on a wide page, and on one of at most 640 pixels (the style sheet has both).
SIZES = (13, 17)


def number(label: str) -> float:
    """What a label says: 2.5·10⁻³."""
    mantissa, times, power = label.partition("·10")
    if times:
        return float(f"{mantissa}e{power.translate(SUPERSCRIPTS)}")
    if re.fullmatch("10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", label):
        return float(f"1e{label[2:].translate(SUPERSCRIPTS)}")
    return float(label)


def width(label: str, size: float) -> float:
    """How wide a label is at most, in usual sans-serif letters: digits of 0.64 em, superscripts of 0.45."""
    return size * sum(0.45 if letter in "⁻⁰¹²³⁴⁵⁶⁷⁸⁹" else 0.3 if letter in ".·" else 0.64 for letter in label)


# ---- ticks


@pytest.mark.parametrize("log", [False, True], ids=["linear", "logarithmic"])
@pytest.mark.parametrize("most", [6, MOST])
def test_ticks_are_few_inside_and_say_what_they_are(log: bool, most: int) -> None:
    rng = random.Random(4)
    for _ in range(1000):
        size = 10.0 ** rng.uniform(-40 if log else -6, 6)
        low = size * rng.choice([1.0, rng.uniform(0.1, 10.0)]) * (1.0 if log else rng.choice([-1.0, 0.0, 1.0]))
        high = low * (1.0 + 10.0 ** rng.uniform(-4, 2)) if low > 0.0 else low + size * 10.0 ** rng.uniform(-3, 3)
        high = high if not log or rng.random() < 0.5 else low * 10.0 ** rng.uniform(0.1, 60.0)
        ticks = round_ticks(low, high, log=log, most=most)
        assert FEWEST <= len(ticks) <= most, (low, high)
        values = sorted(value for value, _ in ticks)
        assert all(a < b for a, b in pairwise(values))
        slack = 1e-6 * (high - low)
        assert low - slack <= values[0]
        assert values[-1] <= high + slack
        for value, label in ticks:
            assert number(label) == pytest.approx(value, rel=1e-9, abs=1e-9 * (high - low)), (low, high)


# ---- pictures of reports, as SVG


def svgs(page: str) -> list[str]:
    return re.findall(r'<svg class="plot".*?</svg>', page, flags=re.DOTALL)


def tick_labels(picture: str) -> dict[tuple[str, str], list[tuple[float, str]]]:
    """The labels of each axis, with where they stand along it: those below an axis share their height, those beside it an end."""
    axes: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for x, y, anchor, label in re.findall(
        r'class="tick" x="([^"]+)" y="([^"]+)" text-anchor="(\w+)">([^<]+)<', picture
    ):
        across = anchor == "middle"
        axes["below" if across else "beside", y if across else x].append((float(x if across else y), label))
    return axes


def assert_readable(picture: str) -> None:
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    assert found is not None
    axes = tick_labels(picture)
    assert axes
    for (side, _), labels in axes.items():
        assert len(labels) >= FEWEST, labels
        ends = (0.0, float(found[1] if side == "below" else found[2]))
        assert all(ends[0] <= place <= ends[1] for place, _ in labels)
        for size in SIZES:
            spans = sorted(
                (place - half, place + half)
                for place, label in labels
                for half in [0.5 * (width(label, size) if side == "below" else size)]
            )
            assert all(a[1] <= b[0] for a, b in pairwise(spans)), (size, labels)
            if side == "beside":
                # What stands beside the axis leaves the axis' own label its column.
                assert all(width(label, size) <= 96 - 8 - 24 for _, label in labels), labels


def document(name: str, epsilon: object, sigma: object = "solve", bands: int = 1, **changes: Any) -> dict[str, Any]:
    matrix = {"kind": "identity"} if bands == 1 else {"kind": "banded-square-root", "bands": bands}
    return doc(
        "iterations=64 sampler=none min_separation=16",
        changes,
        name=name,
        epsilon=epsilon,
        matrix=matrix,
        multiplier=sigma,
    )


COMPARED: dict[str, list[dict[str, Any]]] = {
    "one": [document("alone", 8)],
    "two at one ε": [document("dp-sgd", 8), document("banded", 8, bands=4)],
    "five at one ε": [document(f"of {bands} bands", 8, bands=bands) for bands in (1, 2, 4, 8, 16)],
    "two of one σ": [document("dp-sgd", "solve", 3.0), document("banded", "solve", 2.0)],
    "ε nearly alike": [document("one", 1.0), document("other", 1.05)],
    "lines": [document(f"{bands}", epsilon, bands=bands) for bands in (1, 4) for epsilon in (0.1, 1, 10)],
}


@pytest.fixture(scope="module", params=COMPARED)
def comparison(request: pytest.FixtureRequest) -> pyaccount.Comparison:
    return pyaccount.compare(COMPARED[request.param])


def test_comparisons_on_pages(comparison: pyaccount.Comparison) -> None:
    (picture,) = svgs(comparison.to_html())
    assert_readable(picture)


def test_one_epsilon_is_bars() -> None:
    found = pyaccount.compare(COMPARED["five at one ε"])
    (picture,) = svgs(found.to_html())
    lengths = [float(one) for one in re.findall(r'class="bar"[^>]* width="([\d.]+)"', picture)]
    said = [float(one) for one in re.findall(r'class="value"[^>]*>([^<]+)<', picture)]
    noises, errors = lengths[:5], lengths[5:]
    for row, bar, error, upper, printed in zip(found.rows, noises, errors, said[:5], said[5:], strict=True):
        assert row.noise_multiplier is not None
        assert row.prefix_sum_mse is not None
        # Bars begin at 0: as long as what they show, up to rounding of places.
        assert bar / noises[0] == pytest.approx(row.noise_multiplier / (found.rows[0].noise_multiplier or 1), rel=2e-3)
        first = math.sqrt(found.rows[0].prefix_sum_mse or 1)
        assert error / errors[0] == pytest.approx(math.sqrt(row.prefix_sum_mse) / first, rel=2e-3)
        assert 0.0 <= upper - row.noise_multiplier <= 0.01 * upper
        assert printed == pytest.approx(math.sqrt(row.prefix_sum_mse), rel=1e-3)
    for bands in (1, 2, 4, 8, 16):
        name = "none" if bands == 1 else f"none, banded-square-root: of {bands} bands"
        assert picture.count(f">{name}</text>") == 2
    assert '<polyline class="line' not in picture


def test_bars_of_a_whole_end_with_it() -> None:
    """The bar of 100 % has the whole width, the last tick is 100, and values are inside of the picture."""
    group = BarGroup("% of the budget", (("a", 100.0, "100 %"), ("b", 25.0, "about 25 %")), 100.0)
    picture = svg(Bars("shares", "Shares.", (group,)), "shares")
    first, second = (float(one) for one in re.findall(r'class="bar"[^>]* width="([\d.]+)"', picture))
    assert second == pytest.approx(first / 4, rel=1e-3)
    assert re.findall(r'class="tick"[^>]*>([^<]+)<', picture)[-1] == "100"
    assert re.findall(r'class="value"[^>]* text-anchor="end">([^<]+)<', picture) == ["100 %", "about 25 %"]
    assert re.search(r'class="tick" x="([\d.]+)"[^>]*>100<', picture)[1] == f"{22 + first:.1f}"  # type: ignore[index]


def test_words_of_headings_are_not_broken() -> None:
    """Browsers break words at hyphens; those of headings are kept whole."""
    table = PageTable(("Rates.",), ("false-positive rate", "<b>"), ((("1",), ("2",)),))
    page = html(Page("a page", "a page", (PageSection("one", "One", (table,)),), origins={}))
    assert '<span class="unbroken">false-positive</span> rate</th>' in page
    assert "&lt;b&gt;</th>" in page


PROFILES = {"many decades": [0.5 * k for k in range(40)], "a narrow one": [2.0, 2.01]}


@pytest.mark.parametrize("name", PROFILES)
def test_reports_and_profiles(name: str) -> None:
    certificate = pyaccount.certify(document(name, "solve", 1.0, accounting={"profile": PROFILES[name]}))
    for picture in svgs(certificate.to_html()):
        assert_readable(picture)
    assert_readable_figure(pytest.importorskip("matplotlib") and certificate.profile.plot())


def test_labels_of_a_log_axis_stand_apart() -> None:
    for low, high in ((1e-3, 40.0), (0.9, 11.0), (7.9, 8.1), (1e-45, 1e-2), (2e4, 9e5)):
        axis = Axis("label", low, high, log=True)
        assert_readable(svg(Plot("", "", axis, axis, (Series("", ((low, low),), "first"),)), "p"))


def test_the_picture_of_one_draw() -> None:
    page = pyaccount.amplify(EXAMPLES / "one-draw.yaml").to_html()
    for picture in svgs(page):
        assert_readable(picture)


# ---- pictures of matplotlib


def assert_readable_figure(figure: Any) -> None:
    figure.set_dpi(400 / figure.get_size_inches()[0])
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            labels = [
                tick.label1 if tick.label1.get_visible() else tick.label2
                for tick in axis.get_major_ticks()
                if min(low, high) <= tick.get_loc() <= max(low, high)
            ]
            labels = [label for label in labels if label.get_text()]
            if not labels and axis is axes.yaxis and axes.patches:
                # Words stand at the bars instead.
                continue
            if axes.get_label() == "<colorbar>" and axis is axes.xaxis:
                continue
            assert len(labels) >= FEWEST, [label.get_text() for label in labels]
            boxes = [label.get_window_extent() for label in labels]
            assert not any(a.overlaps(b) for place, a in enumerate(boxes) for b in boxes[:place])
            # 7 pixels are the least height at which digits can be told apart.
            assert all(box.height >= 7.0 for box in boxes)
        texts = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for place, a in enumerate(texts) for b in texts[:place])


def test_comparisons_by_matplotlib(comparison: pyaccount.Comparison) -> None:
    pytest.importorskip("matplotlib")
    assert_readable_figure(comparison.plot())


@pytest.mark.parametrize("values", [[1.0, 1.01], [float(k) for k in range(1, 21)]], ids=["2 cells", "20 cells"])
@pytest.mark.parametrize("axis", ["noise.multiplier", "privacy.epsilon"])
def test_sweeps(values: list[float], axis: str) -> None:
    pytest.importorskip("matplotlib")
    base = document("swept", "solve", 1.0) if axis == "noise.multiplier" else document("swept", 1.0)
    assert_readable_figure(pyaccount.sweep({**base, "vary": {axis: values}}).plot())


def test_heat_maps() -> None:
    pytest.importorskip("matplotlib")
    vary = {"noise.multiplier": [0.8 + 0.1 * k for k in range(13)], "training.iterations": [16, 1600, 160_000]}
    found = pyaccount.sweep({**document("swept", "solve", 1.0), "vary": vary})
    assert_readable_figure(found.plot())
