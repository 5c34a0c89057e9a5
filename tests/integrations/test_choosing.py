"""The way to clip that a trainer of transformers chooses before round 0, names in the record, and keeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from trained_elsewhere import starting, trained

from pyaccount import TrainingRun
from pyaccount.errors import RunError
from pyaccount.training.record import Recorded

WHY = "the choice of a way to clip is NOT tested here"
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
transformers = pytest.importorskip("transformers", reason=f"transformers is not installed: {WHY}")
pytest.importorskip("accelerate", reason=f"accelerate is not installed: {WHY}")
pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")

from pyaccount.integrations import choosing  # noqa: E402 - after the skips
from pyaccount.integrations.choosing import EAGER, Way, fastest, made_up  # noqa: E402
from pyaccount.integrations.transformers import PrivateTrainer  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning")]

RECORDS, ROUNDS, WORDS = 12, 4, 20
started = starting(trained("chosen", RECORDS, ROUNDS), "run")


def llama(attention: str = "sdpa") -> Any:
    transformers.set_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16,
        attn_implementation=attention,
    )
    return transformers.LlamaForCausalLM(config)


def data() -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(1)
    rows = [torch.randint(WORDS, (7,), generator=generator) for _ in range(RECORDS)]
    return [{"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row} for row in rows]


def trainer(folder: Path, run: TrainingRun, net: Any, **options: Any) -> Any:
    args = transformers.TrainingArguments(
        str(folder / "model"),
        per_device_train_batch_size=4,
        optim="sgd",
        learning_rate=0.1,
        save_steps=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    return PrivateTrainer(net, args, train_dataset=data(), run=run, **options)


def preferring(monkeypatch: pytest.MonkeyPatch, order: list[Way]) -> list[Way]:
    """Let these ways be the faster the earlier they stand, and return a list of those that are tried."""
    tried: list[Way] = []
    usual = choosing.fastest

    def of(ways: Any, clip: Any) -> Any:
        def noted(way: Way) -> Any:
            tried.append(way)
            return clip(way)

        return usual(ways, noted)

    def seconds(clip: Any) -> float:
        clip()
        return 2.0 ** order.index(tried[-1])

    monkeypatch.setattr(choosing, "seconds_of", seconds)
    monkeypatch.setattr("pyaccount.integrations.transformers.fastest", of)
    return tried


WAYS = [Way("ghost"), Way("vectorized", eager=True), Way("one-by-one")]


@pytest.mark.parametrize("first", range(3))
def test_the_fastest_way_is_taken_recorded_and_kept(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = preferring(monkeypatch, [*WAYS[first:], *WAYS[:first], Way("vectorized")])
    with started(tmp_path) as run:
        net = llama()
        before = {name: one.clone() for name, one in net.named_parameters()}
        one = trainer(tmp_path, run, net)
        random = torch.get_rng_state()
        one._choose()
        assert torch.equal(torch.get_rng_state(), random)
        assert all(torch.equal(one, before[name]) for name, one in net.named_parameters())
        assert run.released == 0
        assert {*tried} == {Way("vectorized"), *WAYS}
        one._close_ghosts()
        # What was chosen stays.
        monkeypatch.setattr(choosing, "seconds_of", lambda clip: pytest.fail("a way was chosen"))
        one.train()
    chosen = WAYS[first]
    (recorded,) = Recorded.read(tmp_path / "run" / "record.jsonl").trainers.values()
    assert recorded is not None
    assert recorded.clipping == chosen.recorded
    assert Way.named(recorded.clipping) == chosen
    assert net.config._attn_implementation == ("eager" if chosen.eager else "sdpa")
    weights = {name: one.clone() for name, one in net.named_parameters()}
    # Another preference does not matter for a run that goes on: rounds are repeated bit for bit.
    monkeypatch.setattr(choosing, "seconds_of", lambda clip: pytest.fail("a run that goes on is not tried"))
    with started(tmp_path) as run:
        net = llama()
        trainer(tmp_path, run, net).train(resume_from_checkpoint=str(tmp_path / "model" / "checkpoint-2"))
        assert run.released == ROUNDS
    assert all(torch.equal(one, weights[name]) for name, one in net.named_parameters())


def test_another_way_is_refused_before_a_run_goes_on(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        trainer(tmp_path, run, llama(), clipping="one-by-one").train()
    size = (tmp_path / "run" / "record.jsonl").stat().st_size
    with started(tmp_path) as run:
        again = trainer(tmp_path, run, llama(), clipping="ghost")
        with pytest.raises(
            RunError, match=r"clipped by transformers \(one-by-one\), and these would be by .* \(ghost\)"
        ):
            again.train(resume_from_checkpoint=str(tmp_path / "model" / "checkpoint-2"))
        assert run.released == ROUNDS
    assert (tmp_path / "run" / "record.jsonl").stat().st_size == size


def test_records_of_the_trial_have_nothing_of_the_data() -> None:
    one = {
        "input_ids": torch.tensor([[5, 6, 7]]),
        "labels": torch.tensor([4]),
        "pixels": torch.full((1, 3, 2), 9.0),
        "mask": torch.tensor([[True, False, True]]),
    }
    other = {
        "input_ids": torch.tensor([[1, 2]]),
        "labels": torch.tensor([0]),
        "pixels": torch.zeros(1, 3, 2),
        "mask": torch.tensor([[False, False]]),
    }
    found = []
    for record in (one, other):
        torch.manual_seed(1)
        found.append(made_up(record, 5, llama()))
    assert {name: tuple(tensor.shape) for name, tensor in found[0].items()} == {
        "input_ids": (5, 16),
        "labels": (5,),
        "pixels": (5, 3, 2),
        "mask": (5, 16),
    }
    assert all(torch.equal(found[0][name], found[1][name]) for name in one)
    assert all(found[0][name].dtype == one[name].dtype for name in one)


def test_an_earlier_way_stays_if_a_later_one_is_hardly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = [Way("vectorized"), Way("ghost"), Way("one-by-one")]
    times = {"vectorized": 1.0, "ghost": 0.9, "one-by-one": 3.0}
    current: list[Way] = []

    def clip(way: Way) -> Any:
        current[:] = [way]
        if times[way.clipping] < 0:
            raise RuntimeError("vmap does not know this\nand more")
        return {"w": torch.zeros(1)}

    def seconds(clip: Any) -> float:
        clip()
        return times[current[0].clipping]

    monkeypatch.setattr(choosing, "seconds_of", seconds)
    assert fastest(ways, clip)[0][0] == Way("vectorized")
    times["ghost"] = 0.5
    assert fastest(ways, clip)[0] == [Way("ghost"), Way("vectorized"), Way("one-by-one")]
    times["vectorized"] = -1.0
    possible, reasons = fastest(ways, clip)
    assert possible == [Way("ghost"), Way("one-by-one")]
    assert reasons == {Way("vectorized"): "vmap does not know this"}


def test_names_in_records_are_those_of_ways() -> None:
    for clipping in ("vectorized", "one-by-one", "ghost"):
        for eager in (False, True):
            way = Way(clipping, eager)
            assert way.recorded == clipping + (EAGER if eager else "")
            assert Way.named(way.recorded) == way
