"""Documents of kind amplification, and comparisons: the published tables, closed forms, and what bad input gets."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import pytest
from jsonschema import Draft202012Validator
from places import EXAMPLES
from plain_documents import doc
from scipy.stats import norm
from snapshots import Snapshot

import pyaccount
from pyaccount import cli, schemas
from pyaccount._core import Inspection, RoundProfile
from pyaccount.certificate.amplification import amplify
from pyaccount.certificate.report.amplified import aligned_profile
from pyaccount.document.loading import load_any
from pyaccount.pages.figure import figure

EPSILONS = [0.05, 0.5, 1.0, 2.0, 3.0, 4.5]


def document(base: dict[str, Any], sampler: dict[str, Any], **sampling: Any) -> dict[str, Any]:
    sampling = sampling or {"dataset_size": 1000, "expected_batch_size": 400}
    return {
        "pyaccount": 1,
        "kind": "amplification",
        "name": "draw",
        "base": base,
        "sampler": sampler,
        "sampling": sampling,
    }


def laplace(theta: float) -> dict[str, Any]:
    return {"kind": "laplace", "multiplier": 1 / theta, "epsilon": EPSILONS}


def gaussian(theta: float) -> dict[str, Any]:
    return {"kind": "gaussian", "multiplier": 1 / theta, "epsilon": EPSILONS}


WOR, WR = {"kind": "fixed-size"}, {"kind": "with-replacement"}
OW, WW = ({"kind": kind, "subset_size": 500} for kind in ("must-ow", "must-ww"))
#: arXiv:2312.13389, Table 3: ε′ for each sampler (N = 1000, b = 500, m = 400), and δ′ to the digits printed. The last row is
#: recomputed: the published one repeats that of the Laplace mechanism.
AMPLIFIED = {
    "fixed-size": [0.020, 0.231, 0.523, 1.269, 2.156, 3.600],
    "with-replacement": [0.017, 0.194, 0.449, 1.134, 1.987, 3.413],
    "must-ow": [0.014, 0.164, 0.388, 1.015, 1.834, 3.240],
    "must-ww": [0.012, 0.145, 0.346, 0.932, 1.722, 3.111],
}
TABLE_3 = [
    (laplace(0.25), WOR, [0.038, 0, 0]),
    (laplace(0.25), WR, [0.039, 0.001]),
    (laplace(0.25), OW, [0.039, 0.003]),
    (laplace(0.25), WW, [0.039, 0.006]),
    (gaussian(0.25), WOR, [0.031, 0.001]),
    (gaussian(0.25), WR, [0.033, 0.005, 0.001]),
    (gaussian(0.25), OW, [0.034, 0.008, 0.002]),
    (gaussian(0.25), WW, [0.034, 0.011, 0.004]),
    (laplace(1.0), WOR, [0.151, 0.088, 0, 0, 0, 0]),
    (laplace(1.0), WR, [0.141, 0.093, 0.026, 0.003]),
    (laplace(1.0), OW, [0.132, 0.095, 0.044, 0.010, 0.002]),
    (laplace(1.0), WW, [0.123, 0.094, 0.052, 0.018, 0.006, 0.001]),
    (gaussian(1.0), WOR, [0.147, 0.095, 0.051, 0.008]),
    (gaussian(1.0), WR, [0.142, 0.103, 0.068, 0.029, 0.015, 0.006]),
    (gaussian(1.0), OW, [0.136, 0.106, 0.079, 0.045, 0.028, 0.015]),
    (gaussian(1.0), WW, [0.129, 0.105, 0.083, 0.053, 0.037, 0.023]),
]


@pytest.mark.parametrize(("base", "sampler", "deltas"), TABLE_3)
def test_the_published_table(base: dict[str, Any], sampler: dict[str, Any], deltas: list[float]) -> None:
    effects = pyaccount.amplify(document(base, sampler)).effects
    assert [effect.amplified_epsilon for effect in effects] == pytest.approx(AMPLIFIED[sampler["kind"]], abs=6e-4)
    assert [effect.amplified_delta for effect in effects[: len(deltas)]] == pytest.approx(deltas, abs=6e-4)


def test_the_probability_of_being_drawn() -> None:
    for sampler, eta in ((WOR, 0.4), (WR, 0.3298), (OW, 0.2755), (WW, 0.2409)):
        assert pyaccount.amplify(document(laplace(1.0), sampler)).eta == pytest.approx(eta, abs=5e-5)


def test_the_bootstrap_table() -> None:
    """Table 4: ε′ = 0.1 a query, the base calibrated by σ = √(2 ln(1.25/δ))/ε at δ = 1/300; N = 300, m = 30."""
    published = {
        "must-ow": [0.0064, 0.0022, 0.0011, 0.0005, 0.0002],
        "must-ww": [0.0065, 0.0024, 0.0013, 0.0007, 0.0003],
    }
    for kind, deltas in published.items():
        for b, delta in zip((10, 20, 30, 50, 100), deltas, strict=True):
            sampler, sizes = {"kind": kind, "subset_size": b}, {"dataset_size": 300, "expected_batch_size": 30}
            eta = pyaccount.amplify(document(laplace(1.0), sampler, **sizes)).eta
            epsilon = math.log(1 + math.expm1(0.1) / eta)
            sigma = math.sqrt(2 * math.log(1.25 * 300)) / epsilon
            base = {"kind": "gaussian", "multiplier": sigma, "epsilon": epsilon}
            (effect,) = pyaccount.amplify(document(base, sampler, **sizes)).effects
            assert effect.amplified_epsilon == pytest.approx(0.1, rel=1e-12)
            assert effect.amplified_delta == pytest.approx(delta, abs=5.5e-5)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.3, 0.999, 1.0, 1.7, 12.0, 300.0])
@pytest.mark.parametrize("share", [1, 250, 999])
def test_amplified_epsilon_is_rounded_up_and_no_farther(share: int, epsilon: float) -> None:
    """ε′ = ln(1 + η(e^ε − 1)), to a few units in the last place of ε."""
    base = {"kind": "gaussian", "multiplier": 1.0, "epsilon": epsilon}
    sampling = {"dataset_size": 1000, "expected_batch_size": share}
    found = pyaccount.amplify(document(base, WOR, **sampling))
    (effect,) = found.effects
    with mp.workdps(60):
        assert mp.mpf(share) / 1000 <= found.eta <= mp.mpf(share) / 1000 * (1 + mp.mpf(10) ** -12)
        truth = mp.log1p(mp.mpf(found.eta) * mp.expm1(mp.mpf(epsilon)))
        assert truth <= effect.amplified_epsilon <= truth * (1 + mp.mpf(2) ** -48) + epsilon * mp.mpf(2) ** -48


def test_closed_forms_in_high_precision() -> None:
    """With replacement: η = 1 − (1 − 1/N)^m, δ′ = Σ_j Bin(j) G_j; all rounded up."""
    with mp.workdps(40):
        n, m, theta = 50, 7, mp.mpf("0.8")
        effects = pyaccount.amplify(document(gaussian(0.8), WR, dataset_size=50, expected_batch_size=7)).effects
        eta = 1 - (1 - mp.mpf(1) / n) ** m
        for effect in effects:
            e = mp.mpf(effect.epsilon)
            expected = mp.log(1 + eta * (mp.exp(e) - 1))
            delta = mp.fsum(
                mp.binomial(m, j)
                * mp.mpf(1)
                / n**j
                * (1 - mp.mpf(1) / n) ** (m - j)
                * (mp.ncdf(j * theta / 2 - e / (j * theta)) - mp.exp(e) * mp.ncdf(-j * theta / 2 - e / (j * theta)))
                for j in range(1, m + 1)
            )
            assert expected <= effect.amplified_epsilon <= expected * (1 + mp.mpf("1e-12"))
            # The multiplier 1/0.8 is rounded; that moves δ by about as much.
            assert delta * (1 - mp.mpf("1e-13")) <= effect.amplified_delta <= delta * (1 + mp.mpf("1e-12"))


def test_poisson_and_without_replacement_scale_delta() -> None:
    for sampler, sizes in (
        ({"kind": "poisson"}, {"sampling_probability": 0.4}),
        ({"kind": "poisson"}, {"dataset_size": 1000, "expected_batch_size": 400}),
        (WOR, {"dataset_size": 1000, "expected_batch_size": 400}),
    ):
        for effect in pyaccount.amplify(document(gaussian(1.0), sampler, **sizes)).effects:
            e = effect.epsilon
            exact = norm.cdf(0.5 - e) - math.exp(e) * norm.cdf(-0.5 - e)
            assert effect.delta == pytest.approx(exact, rel=1e-9)
            assert effect.amplified_delta == pytest.approx(0.4 * exact, rel=1e-9)
            assert effect.effect == "strong amplification"


@pytest.mark.parametrize("sampler", [OW, WW])
def test_it_is_the_profile_that_composes(sampler: dict[str, Any]) -> None:
    """With Gaussian noise (ε′, δ′) lies on the curve of one training round, where replacing a record moves the sum by 2."""
    profile = RoundProfile.displaced("replaced", sampler["kind"], 1, 1000, 400, 500, 2.0, reverse=False)
    for effect in pyaccount.amplify(document(gaussian(1.0), sampler)).effects:
        assert effect.amplified_delta == pytest.approx(
            Inspection.profile(profile, effect.amplified_epsilon)[0], rel=1e-10
        )


def test_stated_guarantees() -> None:
    base = {"kind": "stated", "epsilon": 1.0, "group_deltas": [1e-6, 1e-3]}
    (effect,) = pyaccount.amplify(document(base, WR, dataset_size=10, expected_batch_size=3)).effects
    p = [math.comb(3, j) * 0.1**j * 0.9 ** (3 - j) for j in range(4)]
    assert effect.delta == 1e-6
    assert effect.amplified_delta == pytest.approx(p[1] * 1e-6 + p[2] * 1e-3 + p[3], rel=1e-12)
    assert effect.effect == "weak amplification, type I"


def test_sampling_everything_changes_nothing() -> None:
    for effect in pyaccount.amplify(document(laplace(1.0), WOR, dataset_size=5, expected_batch_size=5)).effects:
        assert effect.amplified_epsilon == effect.epsilon
        assert effect.amplified_delta == pytest.approx(effect.delta, rel=1e-12)
        assert effect.effect == "dilution"


WRONG: list[Any] = [
    document(laplace(1.0), {"kind": "b-min-sep"}),
    document(laplace(1.0), {"kind": "shuffle"}),
    document(laplace(1.0), WR, expected_batch_size=4),
    document(laplace(1.0), WR, dataset_size=4, expected_batch_size=4, iterations=5),
    document({"kind": "laplace", "multiplier": 1}, WR),
    document({"kind": "laplace", "multiplier": 0, "epsilon": 1}, WR),
    document({"kind": "stated", "epsilon": 1, "group_deltas": [2]}, WR),
    document({"kind": "stated", "epsilon": 1, "group_deltas": []}, WR),
    document({"kind": "laplace", "multiplier": 1, "epsilon": [1, "x"]}, WR),
    document(laplace(1.0), OW | {"rounds_per_subset": 3}),
    document(laplace(1.0), {"kind": "must-wo", "subset_size": 3}),
    document(laplace(1.0), WOR, dataset_size=4, expected_batch_size=5),
    document(laplace(1.0), WR) | {"kind": "amplificaton"},
    document(laplace(1.0), WR) | {"training": {}},
]


@pytest.mark.parametrize("raw", WRONG)
def test_what_is_wrong_is_located(raw: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.amplify, raw)


def test_each_kind_has_its_own_door(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.matrix(document(laplace(1.0), WR)))
    mechanism = EXAMPLES / "cifar10-dp-sgd.yaml"
    snapshot.raised(pyaccount.amplify, mechanism)


def written(tmp_path: Path, raw: dict[str, Any], name: str = "draw.yaml") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, document(laplace(1.0), OW))
    assert cli.run(["validate", str(path)]) == 0
    assert cli.run(["plan", str(path)]) == 0
    assert cli.run(["certify", str(path)]) == 0
    out = capsys.readouterr().out
    assert "weak amplification, type I" in out
    picture, saved = tmp_path / "a.svg", tmp_path / "a.json"
    assert cli.run(["certify", str(path), "--format", "json", "--plot", str(picture), "-o", str(saved)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads(saved.read_text(encoding="utf-8"))
    Draft202012Validator(schemas.SCHEMAS["amplification-certificate"]()).validate(data)
    Draft202012Validator(schemas.SCHEMAS["amplification"]()).validate(data["document"])
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.count("<path") > len(EPSILONS)
    assert cli.run(["certify", str(path), "--quiet", "--plot", str(picture)]) == 0
    assert picture.read_text(encoding="utf-8") == drawn
    assert cli.run(["certify", str(path), "--quiet", "--plot", str(tmp_path / "a.xyz")]) == 2
    assert not (tmp_path / "a.xyz").exists()
    assert cli.run(["certify", str(path), "--set", "sampler.subset_size=2000"]) == 2
    mechanism = EXAMPLES / "full-batch.yaml"
    assert cli.run(["certify", str(mechanism), "--plot", str(picture)]) == 2


def test_pictures_say_what_to_install(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    loaded = load_any(document(laplace(1.0), OW))
    assert not isinstance(loaded, pyaccount.Document)
    snapshot.raised(lambda: figure(aligned_profile(amplify(loaded))))


def mechanism(sampler: dict[str, Any], name: str, **privacy: Any) -> dict[str, Any]:
    return doc(
        "dataset_size=1000 expected_batch_size=100 iterations=10 multiplier=40.0",
        name=name,
        privacy=privacy,
        sampler=sampler,
    )


def test_comparisons() -> None:
    """Expected distinct records as in arXiv:2312.13389, Table 9, experiment 2: 100, 100, 95, 95, 79 (its mean, 65, lies below the
    minimum printed beside it), 76."""
    samplers = [
        {"kind": "poisson"},
        WOR,
        WR,
        {"kind": "must-wo", "subset_size": 200},
        {"kind": "must-ow", "subset_size": 200},
        {"kind": "must-ww", "subset_size": 200},
    ]
    rows = pyaccount.compare([mechanism(sampler, sampler["kind"]) for sampler in samplers]).rows
    n, m, b = 1000, 100, 200
    fractions = [b * (1 - (1 - 1 / b) ** m), 0.0]
    fractions[1] = n * sum(
        math.comb(b, i) * (1 / n) ** i * (1 - 1 / n) ** (b - i) * (1 - (1 - i / b) ** m) for i in range(1, b + 1)
    )
    expected = [100, 100, *[n * (1 - (1 - 1 / n) ** m)] * 2, *fractions]
    assert [row.distinct_records for row in rows] == pytest.approx(expected, rel=1e-12)
    assert [row.sampler for row in rows] == [sampler["kind"] for sampler in samplers]
    assert rows[0].epsilon < rows[1].epsilon < rows[2].epsilon == rows[3].epsilon < rows[4].epsilon < rows[5].epsilon


def test_users_and_records_do_not_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = mechanism(
        {"kind": "user-b-min-sep", "records_per_user": 2, "attribution": "shared", "min_separation": 5}, "u"
    )
    users["training"] = {"sampling_probability": 0.01, "iterations": 50}
    paths = [written(tmp_path, raw, f"{raw['name']}.yaml") for raw in (users, mechanism({"kind": "poisson"}, "p"))]
    assert cli.run(["compare", *map(str, paths)]) == 0
    assert "cannot be compared" in capsys.readouterr().out


def test_remarks_say_what_keeps_rows_from_being_compared() -> None:
    same = [mechanism({"kind": "poisson"}, "p"), mechanism({"kind": "poisson"}, "q")]
    table = pyaccount.compare(same).to_markdown()
    assert "cannot be compared" not in table
    assert "protects" not in table
    differ = "The δ differ"
    larger = mechanism({"kind": "poisson"}, "q", delta=1e-4)
    assert differ in pyaccount.compare([same[0], larger]).to_markdown()
    # One ε at which the δ are what was asked for is a comparison.
    solved = [mechanism({"kind": kind}, kind, epsilon=1, delta="solve") for kind in ("poisson", "none")]
    solved[1]["training"] = {"iterations": 50}
    assert differ not in pyaccount.compare(solved).to_markdown()
    groups = pyaccount.compare([same[0], mechanism({"kind": "poisson"}, "g", group_size=2)])
    told = groups.to_text()
    for words in ("zero-out, 1 record ", "zero-out, 2 records", "cannot be compared"):
        assert words in told


@pytest.mark.usefixtures("remembered")
def test_the_compare_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = written(tmp_path, mechanism(WR, "a | b"), "a.yaml")
    second = written(tmp_path, mechanism(WOR, "c", adjacency="replace-one"), "c.yaml")
    assert cli.run(["compare", str(first), str(second)]) == 0
    assert "cannot be compared" in capsys.readouterr().out
    assert cli.run(["compare", str(first), str(second), "--format", "markdown"]) == 0
    out = capsys.readouterr().out
    for line in (
        "| name | sampler | matrix | σ |",
        "| a \\| b | with-replacement |",
        "| name | protects | SHA-256 |",
        "| a \\| b | zero-out, 1 record |",
        "| c | replace-one, 1 record |",
    ):
        assert f"\n{line}" in out
    assert "The documents protect against different changes: their ε cannot be compared." in out
    saved = tmp_path / "compared.json"
    assert cli.run(["compare", str(first), str(second), "--format", "json", "-o", str(saved)]) == 0
    data = json.loads(capsys.readouterr().out)
    Draft202012Validator(schemas.SCHEMAS["comparison"]()).validate(data)
    assert len(json.loads(saved.read_text(encoding="utf-8"))["rows"]) == 2
    wrong = written(tmp_path, mechanism({"kind": "shuffle"}, "w"), "w.yaml")
    assert cli.run(["compare", str(first), str(wrong)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "w.yaml" in captured.err
    claim = written(tmp_path, mechanism(WR, "claim", epsilon=0.01), "claim.yaml")
    assert cli.run(["compare", str(first), str(claim)]) == 1
    assert "does not hold" in capsys.readouterr().out
