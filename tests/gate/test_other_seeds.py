"""`pyaccount verify --seed`: a sampled certificate against samples that nobody could choose it by."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn_once import Drawn
from gate_tools import ASKED, agreeing, at_most, changed, golden, refused, restated, save
from snapshots import Snapshot

import pyaccount
from pyaccount import cli

VERIFIED, CONFIDENCE = golden("verified"), golden("confidence")
A_CHOICE = changed(golden("verified-choice")["document"], training__iterations=8)


@pytest.fixture(scope="module")
def verified() -> dict[str, Any]:
    """A certificate of few rounds, which is soon held against other samples."""
    certificate: dict[str, Any] = json.loads(pyaccount.compile(ASKED["noise"]).run(seed=1).to_json())
    return certificate


@pytest.fixture
def drawn_once(drawn: Drawn) -> Iterator[None]:
    """Most forgeries here differ in what they say of the same samples."""
    with drawn.used():
        yield


@pytest.mark.nightly(but=["a claim that holds", "noise", "delta", "replacement"])
@pytest.mark.parametrize("document", [*ASKED.values(), A_CHOICE], ids=[*ASKED, "a choice"])
def test_honest_certificates_hold_against_other_samples(document: dict[str, Any], tmp_path: Path) -> None:
    certificate = json.loads(pyaccount.certify(document).to_json())
    found = pyaccount.verify(save(tmp_path, certificate), seed=20261122)
    assert found.agrees, found.to_text()
    assert (found.compared, found.seed) == ("proven", 20261122)
    assert "compared with samples of the seed 20261122" in found.to_text()
    # The samples are others indeed, and nothing else is.
    assert "profile[0].delta_estimate" in agreeing(found)
    assert not [path for path in agreeing(found) if path.startswith(("assumptions", "reductions", "phases", "utility"))]


@pytest.mark.parametrize(
    ("forged", "place"),
    [
        (at_most(VERIFIED, 1.9), "guarantee.epsilon"),
        (at_most(CONFIDENCE, CONFIDENCE["guarantee"]["epsilon_lower"] * 1.0001), "guarantee.epsilon"),
        (changed(CONFIDENCE, evidence__sampling__seed=8), "evidence.sampling.seed"),
        (changed(CONFIDENCE, reductions__0__theorem="a better one"), "reductions[0].theorem"),
        (changed(CONFIDENCE, assumptions=[]), "assumptions"),
    ],
)
@pytest.mark.usefixtures("drawn_once")
def test_forgeries_do_not(forged: dict[str, Any], place: str, tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, restated(tmp_path, forged)), seed=3)
    assert not found.agrees
    assert place in refused(found)


@pytest.mark.entropy
def test_a_new_seed_is_another_one_each_time_and_can_be_repeated(verified: dict[str, Any], tmp_path: Path) -> None:
    path = save(tmp_path, verified)
    first, second = (pyaccount.verify(path, seed="new") for _ in range(2))
    assert first.seed is not None
    assert first.seed != second.seed
    assert pyaccount.verify(path, seed=first.seed) == first


@pytest.mark.usefixtures("drawn_once")
def test_the_recorded_seed_gives_the_recorded_samples(tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, VERIFIED), seed=VERIFIED["evidence"]["sampling"]["seed"])
    assert (found.compared, found.seed, found.identical) == ("equal", None, True)


@pytest.mark.parametrize("name", ["deterministic", "amplification"])
def test_what_was_not_sampled_needs_no_seed(name: str, tmp_path: Path) -> None:
    found = pyaccount.verify(save(tmp_path, golden(name)), seed="new")
    assert found.agrees
    assert (found.compared, found.seed) == ("equal", None)


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.0, True, "old"])
def test_what_is_no_seed_is_refused(seed: Any, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.verify(save(tmp_path, golden("deterministic")), seed=seed))


def test_the_command_takes_a_seed(verified: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save(tmp_path, verified))
    assert cli.run(["verify", path, "--seed", "17", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == 17
    # An honest certificate may be refused for want of luck.
    assert cli.run(["verify", path, "--seed", "new"]) in (0, 1)
    assert "compared with samples of the seed" in capsys.readouterr().out
    assert cli.run(["verify", path, "--seed", "old"]) == 2
    assert "--seed" in capsys.readouterr().err
