"""`pyaccount.audit` and the command: true certificates are refuted as seldom as promised, false ones are found."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from places import CERTIFICATES, EXAMPLES
from plain_documents import doc
from scipy.stats import binom, norm
from snapshots import Snapshot

import pyaccount
from pyaccount import cli, schemas
from pyaccount.auditing.report import NOT_SHOWN, REVERSED

SIGMA, DELTA = 1.0, 1e-3
CANARIES = EXAMPLES / "canaries.csv"


def certified(sigma: float = SIGMA, **privacy: object) -> pyaccount.Certificate:
    """One release of a sum: N(1, σ²) against N(0, σ²) for each record."""
    return pyaccount.certify(
        doc(
            "name='one release' adjacency=add-remove iterations=1 sampler=none",
            delta=DELTA,
            privacy=privacy,
            multiplier=sigma,
        )
    )


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return certified()


def canaries(count: int, sigma: float, seed: int) -> tuple[Any, Any]:
    """Orthogonal canaries, each seen in noise of its own, which is what one release of a long vector shows of them."""
    random = np.random.default_rng(seed)
    coins = random.random(count) < 0.5
    return coins + sigma * random.standard_normal(count), coins


def true_epsilon(sigma: float, delta: float) -> float:
    """Of N(1, σ²) against N(0, σ²), by bisection of the closed form."""
    mu, low, high = 1.0 / sigma, 0.0, 100.0
    for _ in range(100):
        e = 0.5 * (low + high)
        value = norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)
        low, high = (e, high) if value > delta else (low, e)
    return high


def test_true_certificates_are_refuted_as_seldom_as_promised(certificate: pyaccount.Certificate) -> None:
    """60 audits at confidence 0.8: at most as many false refutations, and lower bounds above the truth, as chance allows."""
    truth = true_epsilon(SIGMA, DELTA)
    allowed = binom.isf(1e-4, 60, 0.2)
    for runs in ("one", "many"):
        found = [pyaccount.audit(certificate, *canaries(40, SIGMA, k), runs=runs, confidence=0.8) for k in range(60)]
        assert sum(not one for one in found) <= allowed
        assert sum(one.epsilon_lower > truth for one in found) <= allowed
        assert any(one.epsilon_lower > 0.2 for one in found)


@pytest.mark.parametrize("runs", ["one", "many"])
def test_half_of_the_noise_is_found(runs: Any, certificate: pyaccount.Certificate) -> None:
    honest = pyaccount.audit(certificate, *canaries(3000, SIGMA, 3), runs=runs)
    cheated = pyaccount.audit(certificate, *canaries(3000, SIGMA / 2, 3), runs=runs)
    assert (honest.verdict, cheated.verdict) == ("consistent", "refuted")
    assert honest
    assert not cheated
    assert honest.epsilon_lower < certificate.epsilon
    # And what is said of the run with half of the noise is true of it.
    assert cheated.epsilon_lower < true_epsilon(SIGMA / 2, DELTA)


def test_the_curve_refutes_before_one_point_does(certificate: pyaccount.Certificate) -> None:
    found = pyaccount.audit(certificate, *canaries(2000, SIGMA / 2, 3))
    assert found.epsilon_lower < certificate.epsilon
    assert found.probability is not None
    assert found.probability <= 0.05


def test_directions_count_each_for_itself() -> None:
    """Poisson sampling's two directions differ: guesses of absence alone are held against the smaller one."""
    sampled = pyaccount.certify(
        doc(
            "name=sampled adjacency=add-remove delta=1e-3 sampling_probability=0.05 iterations=20 sampler=poisson",
            "multiplier=0.5",
        )
    )
    coins = [True] * 40 + [False] * 40
    scores = [1.0] * 40 + [0.0] * 40
    present, absent = (
        pyaccount.audit(sampled, scores, coins, guesses=guesses).probability for guesses in ((9, 0), (0, 9))
    )
    assert present is not None
    assert absent is not None
    assert absent < 0.5 * present


def test_the_price_of_choosing_is_paid(certificate: pyaccount.Certificate) -> None:
    scores, coins = canaries(800, SIGMA, 5)
    several = pyaccount.audit(certificate, scores, coins)
    assert [(one.guessed_included, one.guessed_excluded) for one in several.one_run] == [
        (k, k) for k in (400, 200, 100, 50, 25, 12, 6)
    ]
    best = max(several.one_run, key=lambda one: one.epsilon_lower)
    fixed = pyaccount.audit(certificate, scores, coins, guesses=(best.guessed_included, best.guessed_excluded))
    (alone,) = fixed.one_run
    assert alone.epsilon_lower > best.epsilon_lower == several.epsilon_lower
    assert several.probability == min(1.0, 7 * min(one.probability for one in several.one_run))
    seventh = pyaccount.audit(certificate, scores, coins, guesses=(best.guessed_included,) * 2, confidence=1 - 0.05 / 7)
    assert seventh.epsilon_lower == pytest.approx(best.epsilon_lower, rel=1e-3)


@pytest.mark.parametrize("runs", ["one", "many"])
def test_reversed_scores_get_a_note_and_no_other_verdict(runs: Any, certificate: pyaccount.Certificate) -> None:
    scores, coins = canaries(1000, SIGMA, 5)
    right, wrong = (pyaccount.audit(certificate, sign * scores, coins, runs=runs) for sign in (1, -1))
    assert right.notes == ()
    assert wrong.notes == (REVERSED,)
    assert "look reversed" in wrong.to_text()
    assert wrong.epsilon_lower == 0.0
    # Scores that say nothing look reversed in one of a thousand audits.
    nothing = np.random.default_rng(6)
    noted = sum(
        bool(pyaccount.audit(certificate, nothing.random(50), np.arange(50) % 2 == 0).notes) for _ in range(100)
    )
    assert noted <= 2


def test_a_sorted_file_of_equal_scores_refutes_nothing(certificate: pyaccount.Certificate) -> None:
    coins = [False] * 100 + [True] * 100
    for seed in range(5):
        found = pyaccount.audit(certificate, [0.0] * 200, coins, seed=seed)
        assert found
        assert found.epsilon_lower < 0.5


def test_files_of_all_kinds_say_the_same(certificate: pyaccount.Certificate, tmp_path: Path) -> None:
    scores, coins = canaries(50, SIGMA, 1)
    plain = pyaccount.audit(certificate, scores, coins)
    np.savez(tmp_path / "s.npz", score=scores, included=coins)
    words = {True: "yes", False: "No"}
    for name, spelled in (("a.csv", int), ("b.csv", lambda c: words[bool(c)])):
        rows = "".join(f"{float(score)!r},{spelled(coin)}\n" for score, coin in zip(scores, coins, strict=True))
        (tmp_path / name).write_text("score,included\n" + rows, encoding="utf-8")
    for table in (tmp_path / "s.npz", tmp_path / "a.csv", str(tmp_path / "b.csv")):
        assert pyaccount.audit(certificate, table) == plain
    assert pyaccount.audit(certificate, {"score": list(scores), "included": coins.astype(int)}) == plain


def test_parquet_says_the_same(certificate: pyaccount.Certificate, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: audits of Parquet are NOT tested")
    parquet = pytest.importorskip("pyarrow.parquet")
    scores, coins = canaries(50, SIGMA, 1)
    for included in (coins.astype(bool), coins.astype(int)):
        parquet.write_table(arrow.table({"score": scores, "included": included}), tmp_path / "s.parquet")
        assert pyaccount.audit(certificate, tmp_path / "s.parquet") == pyaccount.audit(certificate, scores, coins)
    parquet.write_table(arrow.table({"score": [1.0, None], "included": [1, 0]}), tmp_path / "s.parquet")
    with pytest.raises(pyaccount.TableError, match="row 2"):
        pyaccount.audit(certificate, tmp_path / "s.parquet")


@pytest.mark.parametrize(
    "text",
    [
        "score,included\n1,1\nnan,0\n",
        "score,included\n1,1\n,0\n",
        "score,included\n1,1\n2,2\n",
        "score,included\n1,maybe\n",
        "score,in\n1,1\n",
        "score,included\n",
        "score,included\n1\n",
    ],
)
def test_wrong_scores_have_a_place(
    text: str, tmp_path: Path, certificate: pyaccount.Certificate, snapshot: Snapshot
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    snapshot.raised(pyaccount.audit, certificate, path)


def test_wrong_archives_are_said(tmp_path: Path, certificate: pyaccount.Certificate, snapshot: Snapshot) -> None:
    path = tmp_path / "s.npz"
    np.savez(path, score=[1.0])
    snapshot.raised(pyaccount.audit, certificate, path)
    np.savez(path, score=[1.0, math.inf], included=[0, 1])
    snapshot.raised(pyaccount.audit, certificate, path)
    path.write_bytes(b"no archive")
    snapshot.raised(pyaccount.audit, certificate, path)


WRONG: list[Any] = [
    {"confidence": 0.0},
    {"confidence": 1.0},
    {"seed": 0.5},
    {"runs": "two"},
    {"guesses": (60, 60)},
    {"guesses": (0, 0)},
    {"guesses": (-1, 5)},
    {"guesses": 5},
    {"guesses": (1.5, 2)},
    {"threshold": 1.0},
    {"runs": "many", "guesses": (3, 3)},
    {"runs": "many", "threshold": math.inf},
]


@pytest.mark.parametrize("asked", WRONG)
def test_what_cannot_be_asked_is_said(
    asked: dict[str, Any], certificate: pyaccount.Certificate, snapshot: Snapshot
) -> None:
    snapshot.raised(lambda: pyaccount.audit(certificate, *canaries(100, SIGMA, 0), **asked))


def test_other_designs_are_refused(certificate: pyaccount.Certificate, snapshot: Snapshot) -> None:
    scores = np.linspace(0.0, 1.0, 100)
    snapshot.raised(pyaccount.audit, certificate, scores, scores > 0.1)
    snapshot.raised(pyaccount.audit, certificate, scores, scores > 2.0, runs="many")
    for wrong in ([1.0, 2.0], 7):
        snapshot.raised(pyaccount.audit, certificate, wrong)
    snapshot.raised(pyaccount.audit, certificate, [1.0, 2.0], [True])


def test_one_canary_is_enough_to_be_asked(certificate: pyaccount.Certificate) -> None:
    found = pyaccount.audit(certificate, [1.0], [True])
    assert (found.verdict, found.epsilon_lower, found.canaries) == ("consistent", 0.0, 1)


def test_what_is_protected_is_said() -> None:
    scores = canaries(20, SIGMA, 0)
    for privacy, words in (
        ({"adjacency": "zero-out"}, "an empty record, which contributes zero"),
        ({"adjacency": "replace-one"}, "another record, fixed beforehand"),
        ({"group_size": 3}, "a group of up to 3 that is included as one"),
    ):
        assert words in pyaccount.audit(certified(**privacy), *scores).to_text()
    for runs, words in (("one", "by a fair coin of its own"), ("many", "a run of its own, with its own randomness")):
        assert words in pyaccount.audit(certified(), *scores, runs=runs).to_text()  # type: ignore[arg-type]


def test_a_certificate_that_was_sampled_may_have_misled() -> None:
    found = pyaccount.audit(CERTIFICATES / "v1" / "confidence.json", *canaries(50, 2.0, 0))
    assert found.failure_probability > 0.0
    assert "probability that its own samples misled it" in found.to_text()
    assert pyaccount.audit(certified(), *canaries(50, SIGMA, 0)).failure_probability == 0.0


# ---- the command


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, certificate: pyaccount.Certificate) -> str:
    path = tmp_path_factory.mktemp("certificate") / "c.json"
    certificate.save(path)
    return str(path)


def test_the_command_and_its_exit_codes(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    validator = Draft202012Validator(schemas.schema("audit"))
    for sigma, code in ((SIGMA, 0), (SIGMA / 3, 1)):
        scores, coins = canaries(600, sigma, 2)
        np.savez(tmp_path / "s.npz", score=scores, included=coins)
        for options in ([], ["--runs", "many"], ["--guesses", "50", "40", "--confidence", "0.9"]):
            assert cli.run(["audit", file, str(tmp_path / "s.npz"), *options, "--format", "json"]) == code
            said = json.loads(capsys.readouterr().out)
            assert list(validator.iter_errors(said)) == []
            assert said["verdict"] == ("consistent", "refuted")[code]
            assert cli.run(["audit", file, str(tmp_path / "s.npz"), *options]) == code
            text = capsys.readouterr().out
            assert text.startswith(f"Audit  one release  {('CONSISTENT', 'REFUTED')[code]}\n")
            assert " ".join(text.split()).endswith(NOT_SHOWN)
    assert cli.run(["audit", file, str(tmp_path / "absent.csv"), "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["errors"][0]["slug"] == "table"
    assert cli.run(["audit", str(tmp_path / "s.npz"), str(CANARIES)]) == 2
    assert cli.run(["audit", file, str(CANARIES), "--confidence", "2"]) == 2


def test_the_example_is_consistent(file: str) -> None:
    assert cli.run(["audit", file, str(CANARIES)]) == 0
