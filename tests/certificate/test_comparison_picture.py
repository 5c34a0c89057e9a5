"""The picture of a comparison: what is drawn, what is not, and where it is written."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.pages.plot import Axis, Plot, Series
from pyaccount.pages.svg import svg
from pyaccount.rounding import up

MATRICES = {"identity": {"kind": "identity"}, "bands": {"kind": "banded-square-root", "bands": 4}}


def document(name: str, epsilon: float, **changes: Any) -> dict[str, Any]:
    return doc(
        "iterations=16 sampler=none min_separation=4 multiplier=solve",
        changes,
        name=f"{name}-{epsilon:g}",
        epsilon=epsilon,
        matrix=MATRICES[name],
    )


EPSILONS = (4.0, 1.0)


@pytest.fixture(scope="module")
def comparison() -> pyaccount.Comparison:
    return pyaccount.compare([document(matrix, epsilon) for matrix in MATRICES for epsilon in EPSILONS])


def test_each_sampler_with_its_matrix_is_a_line(comparison: pyaccount.Comparison) -> None:
    (axes,) = comparison.plot().axes
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert list(lines) == ["none", "none, banded-square-root"]
    for drawn, rows in zip(lines.values(), (comparison.rows[:2], comparison.rows[2:]), strict=True):
        expected = sorted((row.epsilon, math.sqrt(row.prefix_sum_mse or 0.0)) for row in rows)
        assert [tuple(point) for point in drawn.tolist()] == expected
    labels = [text.get_text() for text in axes.texts]
    assert len(labels) == 4
    for row in comparison.rows:
        # σ is told rounded up.
        shown = [float(label.removeprefix("σ ")) for label in labels]
        assert any(0.0 <= one - (row.noise_multiplier or 0.0) <= 0.01 * one for one in shown)
    assert axes.get_ylabel() == "root mean square error (clip norms)"
    assert "prefix sums" in axes.get_title()


def test_who_is_protected_and_optimised_is_told_apart() -> None:
    found = pyaccount.compare(
        [
            document("bands", 1.0, matrix={"kind": "optimal-toeplitz", "bands": 6, "optimize_for": "sampling"}),
            document("bands", 1.0, privacy={"adjacency": "replace-one", "epsilon": 2, "delta": 1e-5}),
        ]
    )
    labels = [line.get_label() for line in found.plot().axes[0].get_lines()]
    assert labels == [
        "none, optimal-toeplitz for its sampling, zero-out, 1 record",
        "none, banded-square-root, replace-one, 1 record",
    ]


def test_the_error_is_the_workloads_where_all_have_it() -> None:
    workload = {"momentum": 0.9}
    found = pyaccount.compare([document("bands", epsilon, workload=workload) for epsilon in EPSILONS])
    (axes,) = found.plot().axes
    assert "iterates under momentum 0.9" in axes.get_title()
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == sorted((math.sqrt(row.workload_mse or 0.0) for row in found.rows), reverse=True)


def test_what_has_no_error_or_does_not_hold_is_left_out(comparison: pyaccount.Comparison, snapshot: Snapshot) -> None:
    claim = document("bands", 1.0, noise={"multiplier": 0.1})
    (row,) = pyaccount.compare([claim]).rows
    assert not row.holds
    mixed = comparison.model_copy(update={"rows": [*comparison.rows, row]})
    assert sum(len(line.get_xdata()) for line in mixed.plot().axes[0].get_lines()) == 4
    snapshot.raised(lambda: comparison.model_copy(update={"rows": [row]}).plot())


def test_the_page_draws_the_same(comparison: pyaccount.Comparison) -> None:
    page = comparison.to_html()
    (picture,) = re.findall(r'<svg class="plot".*?</svg>', page, flags=re.DOTALL)
    lines = re.findall(r'<polyline class="line (\w+)" points="([^"]+)"', picture)
    assert [style for style, _ in lines] == ["first", "second"]
    (drawn,) = comparison.plot().axes
    scales = []
    for (_, places), line in zip(lines, drawn.get_lines(), strict=True):
        # Both axes are logarithmic: steps on the page are those of the logarithms, by one factor for each axis.
        found = np.array([[float(one) for one in place.split(",")] for place in places.split()])
        steps, expected = np.diff(found, axis=0)[0], np.diff(np.log(line.get_xydata()), axis=0)[0]
        scales.append((steps / expected).tolist())
    assert scales[0][0] > 0.0 > scales[0][1]
    assert scales[0] == pytest.approx(scales[1], rel=1e-2)
    for row in comparison.rows:
        assert up(row.epsilon) in page
        assert f"σ {up(row.noise_multiplier or 0.0, 3)}" in picture
    for label in ("none", "none, banded-square-root"):
        assert f">{label}</text>" in picture


def test_a_page_without_a_picture_says_why() -> None:
    (row,) = pyaccount.compare([document("bands", 1.0, noise={"multiplier": 0.1})]).rows
    page = pyaccount.Comparison(pyaccount=1, kind="comparison", rows=[row]).to_html()
    assert "<svg" not in page
    assert "Nothing to draw" in page
    assert "Of 1 certificate, 0 hold." in page
    assert "(does not hold)" in page


def test_many_points_in_one_place_have_words_that_do_not_overlap() -> None:
    points = tuple((1.0 + 1e-3 * k, 1.0) for k in range(9))
    axis = Axis("", 0.5, 2.0, log=True)
    picture = svg(Plot("", "", axis, axis, (Series("", points, "first", markers=True, labels=("σ 1",) * 9),)), "p")
    assert picture.count("<circle") == 9
    assert picture.count(">σ 1</text>") == 2


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for epsilon in EPSILONS:
        files.append(str(tmp_path / f"{epsilon}.yaml"))
        Path(files[-1]).write_text(yaml.safe_dump(document("bands", epsilon)), encoding="utf-8")
    picture = tmp_path / "errors.svg"
    assert cli.run(["compare", *files, "--plot", str(picture)]) == 0
    assert "bands-4" in capsys.readouterr().out
    drawn = picture.read_bytes()
    assert b"<svg" in drawn
    assert cli.run(["compare", *files, "--plot", str(picture)]) == 0
    assert picture.read_bytes() == drawn
    for wrong in (tmp_path / "errors.xyz", Path(files[0]), tmp_path / "none" / "errors.svg"):
        assert cli.run(["compare", *files, "--plot", str(wrong)]) == 2
    assert cli.run(["compare", *files, "--plot", str(picture), "-o", str(picture)]) == 2
