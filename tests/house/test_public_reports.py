"""Questions from the public trackers of privacy libraries: each is a document, and its result is compared with an oracle."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import public_oracles
import pytest
import yaml
from places import ROOT

import pyaccount
from pyaccount import cli
from pyaccount.certificate import Certificate
from pyaccount.document.document import Document

# The parser in Python takes ten times as long, in every worker.
ROWS: list[dict[str, Any]] = yaml.load(
    (ROOT / "tests" / "golden" / "public_reports.yaml").read_text(encoding="utf-8"),
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)
#: The relative tolerance for closed forms, which are computed with more digits than a double has.
EXACT = 1e-12


def truth(expression: str, **known: float) -> Any:
    """Return the value of an expression with the oracles."""
    return eval(expression, {"__builtins__": {}, **vars(public_oracles)}, known)


def document(row: dict[str, Any], folder: Path) -> Document:
    """Return the document of a row, after writing the files that it names to a folder."""
    for name, matrix in row.get("files", {}).items():
        np.save(folder / name, truth(matrix))
    given = {"pyaccount": 1, "name": row["id"], "accounting": {"profile": []}, **row["document"]}
    # YAML 1.1, which the loader of the tests follows, reads 1e-5 as a text; the package accepts that.
    return pyaccount.load(given, folders=[folder])


def ends(row: dict[str, Any], certificate: Certificate) -> tuple[float, float]:
    """Return the interval for the question: the certified bounds on ε or δ, or the solved value and the one that fails."""
    guarantee = certificate.data.guarantee
    if row["of"] == "delta":
        return guarantee.delta_lower or 0.0, guarantee.delta
    if row["of"] == "epsilon":
        return guarantee.epsilon_lower or 0.0, guarantee.epsilon
    solved = certificate.data.solved
    assert solved is not None
    found, fails = float(solved.value), solved.fails_at
    assert fails is not None
    return min(found, float(fails)), max(found, float(fails))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_answer_is_right(row: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "refused" in row:
        check_refusal(row, tmp_path)
        return
    certificate = pyaccount.certify(document(row, tmp_path), threads=1)
    if "command" in row:
        file = tmp_path / "row.cert.json"
        certificate.save(file)
        assert cli.run([str(file) if word == "CERTIFICATE" else word for word in row["command"]]) == row["exit"]
        told = capsys.readouterr()
        for word in row["words"]:
            assert word in told.out + told.err
        return
    if "holds" in row:
        assert certificate.holds is row["holds"]
    if row.get("of") == "achieved":
        check_achieved(row, certificate)
    elif "of" in row:
        check_interval(row, *ends(row, certificate))
    else:
        check_ends(row, certificate)


def check_refusal(row: dict[str, Any], folder: Path) -> None:
    """Check the slug, the place, the words and the suggestion of a refusal."""
    refused = row["refused"]
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.compile(document(row, folder))
    found = {(one.slug, one.path_text): one for one in caught.value.problems}
    assert (refused["slug"], refused["path"]) in found, found
    problem = found[refused["slug"], refused["path"]]
    for word in refused["words"]:
        assert word in problem.message, problem.message
    if "suggestion" in refused:
        assert problem.suggestion == refused["suggestion"]


def check_interval(row: dict[str, Any], low: float, high: float) -> None:
    """Check that an interval contains the true value, and is not wider than allowed."""
    value, error, width = float(truth(row["truth"])), float(row.get("error", EXACT)), float(row["width"])
    assert low <= value * (1.0 + error), (low, value)
    assert value * (1.0 - error) <= high, (value, high)
    assert high - low <= width * max(value, 1e-3 * width), (low, high)


def check_achieved(row: dict[str, Any], certificate: Certificate) -> None:
    """Check by the oracle that a solved value meets the target, and does not exceed it by much."""
    solved, target = certificate.data.solved, row["document"]["privacy"]["epsilon"]
    assert solved is not None
    value = truth(row["truth"], solved=float(solved.value))
    assert target * (1.0 - float(row["width"])) <= value <= target * (1.0 + float(row["error"])), value


def check_ends(row: dict[str, Any], certificate: Certificate) -> None:
    """Check that bounds are on the right side of values that others have proven."""
    guarantee, privacy = certificate.data.guarantee, row["document"]["privacy"]
    of_delta = privacy.get("delta") == "solve"
    low, high = (guarantee.delta_lower, guarantee.delta) if of_delta else (guarantee.epsilon_lower, guarantee.epsilon)
    if "at_most" in row:
        assert high <= truth(row["at_most"]) * (1.0 + EXACT)
    if "at_least" in row:
        assert (low or 0.0) >= truth(row["at_least"]) * (1.0 - EXACT)
    if "same_as" in row:
        other = pyaccount.certify({**certificate.data.document, "sampler": row["same_as"]}, threads=1).data.guarantee
        assert (other.epsilon_lower, other.epsilon) == (low, high)
    if "finite" in row:
        assert math.isfinite(high)
    if "truth" in row and "holds" in row:
        assert truth(row["truth"]) > privacy["risk"]["true_positive_rate"]


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_wrong_answer_fails(factor: float, tmp_path: Path) -> None:
    """A result that is wrong by one percent is detected."""
    for name in ("group-size", "mnist", "fixed-size-batches"):
        (row,) = (row for row in ROWS if row["id"] == name)
        low, high = ends(row, pyaccount.certify(document(row, tmp_path), threads=1))
        check_interval(row, low, high)
        with pytest.raises(AssertionError):
            check_interval(row, low * factor, high * factor)


def test_the_table_is_a_table() -> None:
    """Every row says where the question was asked and where the right answer is from; there are at least forty rows."""
    ids = [row["id"] for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert len(ids) >= 40
    for row in ROWS:
        assert row["where"]
        assert row["asked"]
        assert row["source"]
        assert any(key in row for key in ("of", "at_most", "at_least", "holds", "refused", "same_as", "command"))
