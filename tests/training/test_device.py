"""Noise from a device's own generator has the same rows and refusals as that of the key, and the record names the generator.

These tests use the CPU's generator, whose short seed is refused elsewhere; the other code is the same for all devices.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from noise_samples import KEY, NONCES, ROUNDS, SECTIONS, expected, noise
from plain_documents import changed, doc, sectioned
from scipy import linalg, special  # type: ignore[import-untyped]
from training_runs import go as released
from training_runs import same

import pyaccount
from pyaccount import cli
from pyaccount.errors import DomainError, PlanExceededError, RunError
from pyaccount.training import TrainingRun
from pyaccount.training.check_record import hold_record
from pyaccount.training.noise import Noise

try:
    import torch
except ModuleNotFoundError:
    # The report of every test run ends with the reasons of skips.
    pytest.skip("PyTorch is not installed: noise of a device's generator is NOT tested", allow_module_level=True)

from pyaccount.training import device
from pyaccount.training.device import DeviceNoise

BASE: dict[str, Any] = doc(
    "name=device epsilon=300.0 dataset_size=40 expected_batch_size=8 iterations=8 sampler=poisson multiplier=0.5"
)
CORRELATED = sectioned(sampler="b-min-sep", min_separation=3, matrix="banded-square-root", bands=3)
KINDS = pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["identity", "correlated"])


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> DeviceNoise:
    """Return the CPU's generator, as if its seed were long enough."""
    monkeypatch.setattr(device, "SEEDED", ("cpu",))
    return DeviceNoise("cpu")


def rows(drawn: Noise, source: DeviceNoise, size: int) -> Any:
    stream = source.stream(drawn, {"w": (size,), "b": (3, 1)}, KEY)
    found = [stream.next(NONCES[number]) for number in range(drawn.rounds)]
    with pytest.raises(PlanExceededError):
        stream.next(NONCES[drawn.rounds])
    assert all(row["b"].shape == (3, 1) for row in found)
    return np.array([row["w"] for row in found])


def started(folder: Path, source: DeviceNoise | None, changes: Any = None, **options: Any) -> TrainingRun:
    return TrainingRun(changed(BASE, changes, {}), folder, records=40, device_noise=source, uncertified=True, **options)


def go(run: TrainingRun, rounds: int) -> list[Any]:
    return released(run, rounds, lambda round: {"w": np.full(50, round / 10.0), "b": np.zeros((2, 2), np.float32)})


def test_the_generator_of_processors_is_refused() -> None:
    """A seed of 32 bits is too short, because an attacker can try all of them."""
    with pytest.raises(DomainError, match="not drawn by the generator of cpu: it takes a seed of 32 bits"):
        DeviceNoise("cpu")
    first, second = (torch.Generator().manual_seed(seed) for seed in (7, 7 + 2**32))
    assert torch.equal(torch.randn(20, generator=first), torch.randn(20, generator=second))


@pytest.mark.parametrize("name", SECTIONS)
def test_the_response_is_the_inverse(name: str, tmp_path: Path, processor: DeviceNoise) -> None:
    """The matrix M with C⁻¹Z = M·Z, solved from the rows for a seed and the rows of Z for the same seed, is C⁻¹."""
    z = rows(noise("identity", tmp_path), processor, 4 * ROUNDS)
    found, *_ = np.linalg.lstsq(z.T, rows(noise(name, tmp_path), processor, 4 * ROUNDS).T, rcond=None)
    inverse = linalg.solve_triangular(expected(name), np.eye(ROUNDS), lower=True)
    assert np.abs(found.T - inverse).max() <= 1e-12


def test_rows_are_normal_at_the_certified_scale(tmp_path: Path, processor: DeviceNoise) -> None:
    """√n times the Kolmogorov-Smirnov distance exceeds 2.5 with probability 8e-6; with half the noise it is far larger."""

    def distance(sigma: float) -> float:
        drawn = noise("identity", tmp_path, clip_norm=0.5, noise={"multiplier": sigma})
        law = special.ndtr(np.sort(rows(drawn, processor, 5000).ravel()) / 0.75)
        steps = np.arange(len(law) + 1) / len(law)
        return float(np.sqrt(len(law)) * max((steps[1:] - law).max(), (law - steps[:-1]).max()))

    assert distance(1.5) < 2.5
    assert distance(0.75) > 50.0


@pytest.mark.parametrize("name", ["identity", "banded-square-root", "banded-inverse", "blt", "dense"])
def test_every_round_is_sought(name: str, tmp_path: Path, processor: DeviceNoise) -> None:
    drawn = noise(name, tmp_path)
    whole = rows(drawn, processor, 20)
    stream = processor.stream(drawn, {"w": (20,), "b": (3, 1)}, KEY)
    for number in (5, 0, ROUNDS - 1, 1):
        stream.seek(number, NONCES)
        assert stream.round == number
        assert np.array_equal(stream.next(NONCES[number])["w"], whole[number])
    with pytest.raises(DomainError, match="there is no round 25"):
        stream.seek(ROUNDS + 1, NONCES)


@KINDS
def test_resumed_it_is_the_same_run(tmp_path: Path, changes: Any, processor: DeviceNoise) -> None:
    """Rounds after a checkpoint are repeated with the same noise, and later rounds have the noise of an uninterrupted run."""
    with started(tmp_path, processor, changes) as run:
        state = run.state_dict()
        first = go(run, 5)
        assert not same(first[:1], first[1:2])
    with started(tmp_path, processor, changes) as run:
        assert run.round == 5
        run.load_state_dict(state)
        assert same(go(run, 5), first)
        rest = go(run, 3)
        assert run.released == 8
        run.load_state_dict(state)
        assert same(go(run, 8), [*first, *rest])


@KINDS
@pytest.mark.parametrize("back", [True, False])
def test_a_device_that_draws_otherwise_does_not_go_on(
    tmp_path: Path, changes: Any, back: bool, processor: DeviceNoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(tmp_path, processor, changes) as run:
        state = run.state_dict()
        go(run, 4)
    usual = torch.randn

    def otherwise(*arguments: Any, **options: Any) -> Any:
        return usual(*arguments, **options) * (1 + 2.0**-50)

    monkeypatch.setattr(torch, "randn", otherwise)
    with started(tmp_path, processor, changes) as run:
        if back:
            run.load_state_dict(state)
        message = "round 0 was released with another sum or noise" if back else "round 3 was released with other noise"
        with pytest.raises(RunError, match=message):
            go(run, 1)
        assert run.released == 4


def test_the_source_of_noise_is_that_of_the_run(
    tmp_path: Path, processor: DeviceNoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(tmp_path / "key", None).close()
    with pytest.raises(RunError, match='another source of noise: "the run\'s key"'):
        started(tmp_path / "key", processor)
    started(tmp_path / "device", processor).close()
    with pytest.raises(RunError, match="another source of noise"):
        started(tmp_path / "device", None)
    monkeypatch.setattr(torch, "__version__", "0.1")
    with pytest.raises(RunError, match="another source of noise"):
        started(tmp_path / "device", processor)


def test_ranks_draw_the_same_noise(tmp_path: Path, processor: DeviceNoise) -> None:
    runs = [started(tmp_path, processor, CORRELATED, rank=rank, world=2) for rank in range(2)]
    for _ in range(3):
        first, second = (go(run, 1) for run in runs)
        assert same(first, second)


def test_other_sums_and_phases_have_noise_of_their_own(tmp_path: Path, processor: DeviceNoise) -> None:
    noise = {"multiplier": 0.5, "also": [{"what": "a count", "multiplier": 30.0}]}
    body = {name: BASE[name] for name in ("training", "sampler")} | {"noise": noise}
    document = {name: BASE[name] for name in ("pyaccount", "name", "privacy")} | {
        "phases": [{"name": name, **body} for name in ("one", "two")]
    }
    document["privacy"] = {"adjacency": "zero-out", "epsilon": 900.0, "delta": 1e-5}
    with TrainingRun(
        document, tmp_path, records=40, also_clip_norms={"a count": 1.0}, device_noise=processor, uncertified=True
    ) as run:
        main, counts = [], []
        for _ in range(run.rounds):
            with run.step() as step:
                main.append(float(step.release(np.zeros(1), also={"a count": np.zeros(1)})[0]))
                counts.append(float(step.also["a count"][0]))
    assert len({*main, *counts}) == 32
    assert np.abs(counts).max() > 20.0 > 8.0 * np.abs(main).max()


def test_the_record_and_what_verifies_it_say_so(
    tmp_path: Path, processor: DeviceNoise, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = pyaccount.certify(changed(BASE, {}, {}))
    certificate.save(tmp_path / "run.cert.json")
    with TrainingRun(certificate, tmp_path / "run", records=40, device_noise=processor) as run:
        released(run, 3, lambda _: np.zeros(4))
    record = tmp_path / "run" / "record.jsonl"
    header, _, *releases, _ = (json.loads(line) for line in record.read_text().splitlines())
    assert header["noise_source"] == f"PyTorch's generator on cpu, torch {torch.__version__}, a seed of 64 bits"
    # Equal sums and equal noise would not be visible in the tags either, because each round has a key of its own.
    assert len({line["noise"] for line in releases}) == 3
    assert hold_record(record, certificate)
    assert cli.run(["verify", str(tmp_path / "run.cert.json"), "--record", str(record)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "yours Fresh Gaussian noise" in printed
    assert "drawn by PyTorch's generator on cpu" in printed
    assert "enforced Fresh Gaussian noise" not in printed
