"""Fine-tuning with Hugging Face transformers, if it is installed: on models made here, offline."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from plain_documents import changed
from trained_elsewhere import CORRELATED, by_hand, starting, trained, with_batches, with_key

from pyaccount import Certificate, TrainingRun, certify
from pyaccount.errors import PlanExceededError, RunError
from pyaccount.integrations.model_card import check_card, read_card
from pyaccount.training.check_record import hold_record
from pyaccount.training.record import Recorded

WHY = "the fine-tuning with transformers is NOT tested here"
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
transformers = pytest.importorskip("transformers", reason=f"transformers is not installed: {WHY}")
pytest.importorskip("accelerate", reason=f"accelerate is not installed: {WHY}")

from pyaccount.integrations.transformers import CERTIFICATE, STATE, PrivateTrainer  # noqa: E402 - after the skips

# The libraries warn about each other.
pytestmark = [
    pytest.mark.usefixtures("ways_in_order"),
    *(pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning")),
]

RECORDS, ROUNDS, WORDS, LENGTH = 40, 6, 20, 7
DOCUMENT = trained("fine-tuned", RECORDS, ROUNDS)


def model(attention: str = "eager", dropout: float = 0.1) -> Any:
    transformers.set_seed(3)
    config = transformers.GPT2Config(
        vocab_size=WORDS,
        n_positions=16,
        n_embd=8,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        attn_pdrop=dropout,
        embd_pdrop=dropout,
        resid_pdrop=dropout,
        attn_implementation=attention,
    )
    return transformers.GPT2LMHeadModel(config)


def data(lengths: tuple[int, ...] = (LENGTH,), count: int = RECORDS) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(1)
    found = []
    for number in range(count):
        ids = torch.randint(WORDS, (lengths[number % len(lengths)],), generator=generator)
        found.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids})
    return found


def arguments(folder: Path, **changes: Any) -> Any:
    usual = {
        "per_device_train_batch_size": 4,
        "learning_rate": 0.1,
        "optim": "sgd",
        "logging_steps": 2,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
    }
    return transformers.TrainingArguments(str(folder / "model"), **{**usual, **changes})


def started(folder: Path, changes: dict[str, Any] | None = None, **options: Any) -> TrainingRun:
    return starting(DOCUMENT, "run")(folder, changes, **{"uncertified": changes is not None, **options})


def weights(net: Any) -> dict[str, Any]:
    return {name: parameter.detach().clone() for name, parameter in net.named_parameters()}


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("lengths", [(LENGTH,), (3, 5, 4)])
@pytest.mark.parametrize("clipping", ["vectorized", "one-by-one"])
def test_a_training_is_that_of_a_loop_by_hand(
    tmp_path: Path, correlated: bool, lengths: tuple[int, ...], clipping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, key, examples, ended = CORRELATED if correlated else None, [], data(lengths), []
    for place in ("trainer", "hand"):
        net = model(dropout=0.0)
        before = weights(net)
        with with_key(started(tmp_path / place, changes), key, monkeypatch) as run:
            if place == "hand":
                by_hand(run, net, lambda net, index: net(**{n: t[None] for n, t in examples[index].items()}).loss)
            else:
                args = arguments(tmp_path, lr_scheduler_type="constant", weight_decay=0.0)
                trainer = PrivateTrainer(net, args, train_dataset=examples, run=run, clipping=clipping)
                assert trainer.train().global_step == ROUNDS
            assert run.released == ROUNDS
        ended.append(weights(net))
        assert not same(before, ended[-1])
    torch.testing.assert_close(*ended, rtol=1e-4, atol=1e-5)


class Stops(transformers.TrainerCallback):  # type: ignore[misc]
    """Ends the process after a step, as a crash does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            raise InterruptedError


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("saved", [True, False])
def test_a_resumed_training_is_the_uninterrupted_one(
    tmp_path: Path, correlated: bool, saved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout and a schedule, bit for bit: from a checkpoint after two steps, or from the beginning without one."""
    changes, key = CORRELATED if correlated else None, []
    whole, again = tmp_path / "whole", tmp_path / "again"
    options = {"save_strategy": "steps", "save_steps": 2 if saved else 100, "optim": "adamw_torch"}

    def trainer(place: Path, run: TrainingRun, **more: Any) -> Any:
        return PrivateTrainer(model(), arguments(place, **options), train_dataset=data(), run=run, **more)

    with with_key(started(whole, changes), key, monkeypatch) as run:
        expected = trainer(whole, run)
        expected.train()
    with with_key(started(again, changes), key, monkeypatch) as run, pytest.raises(InterruptedError):
        trainer(again, run, callbacks=[Stops(3)]).train()
    with with_key(started(again, changes), key) as run:
        assert run.released == 3
        found = trainer(again, run)
        found.train(resume_from_checkpoint=saved)
        assert run.released == ROUNDS
    assert same(weights(expected.model), weights(found.model))
    assert found.state.global_step == ROUNDS
    if not correlated:
        assert hold_record(again / "run" / "record.jsonl", Certificate.load(again / "run" / "certificate.json"))


def test_other_sums_are_refused_unless_rounds_are_given_up(tmp_path: Path) -> None:
    with started(tmp_path) as run, pytest.raises(InterruptedError):
        PrivateTrainer(model(), arguments(tmp_path), train_dataset=data(), run=run, callbacks=[Stops(2)]).train()
    with started(tmp_path) as run:
        other = model()
        with torch.no_grad():
            next(other.parameters()).add_(0.01)
        with pytest.raises(RunError, match="another sum"):
            PrivateTrainer(other, arguments(tmp_path), train_dataset=data(), run=run).train()
    with started(tmp_path) as run:
        trainer = PrivateTrainer(other, arguments(tmp_path), train_dataset=data(), run=run, give_up=True)
        assert trainer.train().global_step == ROUNDS - 2
        assert run.released == ROUNDS
        with pytest.raises(PlanExceededError, match="all 6 rounds"):
            trainer.train()


@pytest.mark.parametrize("clipping", ["vectorized", "one-by-one", "ghost"])
def test_random_numbers_follow_the_key_and_not_the_seed(
    tmp_path: Path, clipping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of dropout, and those of a collator that masks words."""
    if clipping == "ghost":
        pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")
    key, ended = [], []

    def collate(examples: list[Any]) -> dict[str, Any]:
        batch = transformers.default_data_collator(examples)
        batch["input_ids"] = torch.where(torch.rand(batch["input_ids"].shape) < 0.3, 0, batch["input_ids"])
        ids = batch["input_ids"]
        return {**batch, "position_ids": torch.arange(ids.shape[1]).expand(ids.shape)}

    for seed in (42, 7):
        net = model()
        net.lm_head.weight = torch.nn.Parameter(net.lm_head.weight.detach().clone())
        net.config.tie_word_embeddings = False
        with with_key(started(tmp_path / str(seed)), key, monkeypatch) as run:
            args = arguments(tmp_path / str(seed), seed=seed)
            PrivateTrainer(net, args, train_dataset=data(), run=run, clipping=clipping, data_collator=collate).train()
        ended.append(weights(net))
    assert same(*ended)


def test_logs_have_upper_bounds_and_nothing_without_noise(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path / "run", records=RECORDS) as run:
        trainer = PrivateTrainer(
            model(), arguments(tmp_path, save_strategy="steps", save_steps=4), train_dataset=data(), run=run
        )
        done = trainer.train()
    logged = [entry for entry in trainer.state.log_history if "epsilon_so_far_upper" in entry]
    assert [entry["step"] for entry in logged] == [2, 4, 6, 6]
    bounds = [entry["epsilon_so_far_upper"] for entry in logged]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[1] < bounds[2] == certificate.epsilon
    # The first rounds are a run of their own, of that length.
    first = certify(
        changed(DOCUMENT, {"privacy": {**DOCUMENT["privacy"], "epsilon": "solve"}}, {"training": {"iterations": 2}})
    )
    assert first.epsilon_lower <= bounds[0] <= first.epsilon * (1 + 1e-3)
    assert {entry["delta_upper"] for entry in logged} == {1e-5}
    assert {entry["epsilon_upper"] for entry in logged} == {certificate.epsilon}
    state = json.loads((tmp_path / "model" / "checkpoint-4" / "trainer_state.json").read_text())
    for entry in (*trainer.state.log_history, *state["log_history"], done.metrics):
        assert not {"loss", "train_loss", "total_flos"} & set(entry)
    assert state["total_flos"] == 0
    assert done.training_loss != done.training_loss


def test_the_loss_is_logged_if_asked_for(tmp_path: Path) -> None:
    examples = data()
    with started(tmp_path, {"sampler": {"kind": "none"}, **with_batches(DOCUMENT, RECORDS)}) as run:
        net = model(dropout=0.0)
        with torch.no_grad():
            expected = sum(float(net(**{n: t[None] for n, t in one.items()}).loss) for one in examples) / RECORDS
        args = arguments(tmp_path, logging_steps=1, max_steps=1)
        trainer = PrivateTrainer(net, args, train_dataset=examples, run=run, unprotected_loss=True)
        trainer.train()
        assert run.released == 1
    assert trainer.state.log_history[0]["loss"] == pytest.approx(expected, rel=1e-5)
    assert "epsilon_upper" not in trainer.state.log_history[0]  # the run has no certificate


def test_only_adapters_are_released(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason=f"peft is not installed: {WHY}")
    net = peft.get_peft_model(
        model(), peft.LoraConfig(r=2, target_modules=["c_attn"], lora_dropout=0.1, fan_in_fan_out=True)
    )
    before = weights(net)
    with started(tmp_path) as run:
        trainer = PrivateTrainer(net, arguments(tmp_path), train_dataset=data(), run=run)
        trainer.train()
        trainer.save_model()
        layout = run._folder.recorded.layouts[0][0]
    moved = {name for name, tensor in weights(net).items() if not torch.equal(tensor, before[name])}
    assert moved
    assert moved == set(layout) == {name for name, parameter in net.named_parameters() if parameter.requires_grad}
    assert all("lora" in name for name in moved)
    check_card(tmp_path / "model" / CERTIFICATE, tmp_path / "model" / "README.md")
    assert (tmp_path / "model" / "adapter_model.safetensors").exists()


def test_a_saved_model_has_its_certificate_its_state_and_a_card(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path / "run", records=RECORDS) as run:
        trainer = PrivateTrainer(model(), arguments(tmp_path), train_dataset=data(), run=run)
        trainer.train()
        trainer.save_model()
        trainer.create_model_card()
        state = run.state_dict()
    folder = tmp_path / "model"
    assert Certificate.load(folder / CERTIFICATE) == certificate
    assert json.loads((folder / STATE).read_text()) == state
    check_card(folder / CERTIFICATE, folder / "README.md")
    assert read_card(folder / "README.md")["epsilon_upper"] == certificate.epsilon
    secret = (tmp_path / "run" / "run.key").read_bytes()
    assert all(secret not in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_empty_batches_are_rounds(tmp_path: Path) -> None:
    with started(tmp_path, with_batches(DOCUMENT, 0.3)) as run:
        empty = [number for number in range(ROUNDS) if not len(run.batch(number).indices)]
        PrivateTrainer(model(), arguments(tmp_path), train_dataset=data(), run=run).train()
        assert run.released == ROUNDS
    assert empty


def test_a_model_that_decides_by_values_gets_eager_attention(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        net = model("sdpa")
        PrivateTrainer(net, arguments(tmp_path), train_dataset=data(), run=run).train()
        assert run.released == ROUNDS
        assert net.config._attn_implementation == "eager"
        (trainer,) = Recorded.read(tmp_path / "run" / "record.jsonl").trainers.values()
        assert trainer is not None
        assert trainer.clipping == "vectorized with eager attention"


def test_a_model_that_cannot_be_switched_has_a_backward_pass_for_each_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers.GPT2LMHeadModel, "set_attn_implementation", None)
    with started(tmp_path) as run:
        trainer = PrivateTrainer(model("sdpa"), arguments(tmp_path), train_dataset=data(), run=run)
        with pytest.warns(UserWarning, match="cannot be computed at once"):
            trainer.train()
        assert run.released == ROUNDS


class OwnLoss(PrivateTrainer):  # type: ignore[misc]
    """Twice the loss of the model."""

    def compute_loss(self, model: Any, inputs: Any, **_: Any) -> Any:
        return 2.0 * model(**inputs).loss


def test_a_loss_of_ones_own_is_used(tmp_path: Path) -> None:
    with started(tmp_path, clip_norm=1e6) as run:
        found = []
        for kind in (PrivateTrainer, OwnLoss):
            trainer = kind(
                model(dropout=0.0), arguments(tmp_path), train_dataset=data(), run=run, clipping="vectorized"
            )
            trainer.get_train_dataloader()
            (part,) = list(trainer.parts(data()[:4]))
            found.append(trainer._clipped(trainer.model, part))
    doubled = {name: 2.0 * one for name, one in found[0].items()}
    torch.testing.assert_close(doubled, dict(found[1]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps = 2"),
        ({"train_sampling_strategy": "group_by_length"}, "train_sampling_strategy"),
        ({"max_grad_norm": 0.3}, "max_grad_norm = 0.3"),
        ({"auto_find_batch_size": True}, "auto_find_batch_size"),
        ({"ignore_data_skip": True}, "ignore_data_skip"),
        ({"include_num_input_tokens_seen": "all"}, "include_num_input_tokens_seen"),
        ({"optim": "adalomo"}, "optim = adalomo"),
        ({"max_steps": ROUNDS + 1}, "max_steps = 7"),
        ({"num_train_epochs": 2}, "num_train_epochs = 2, with 6 rounds in an epoch, and the certified run has 6"),
        ({"load_best_model_at_end": True, "eval_strategy": "steps", "save_strategy": "steps"}, "metric_for_best_model"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_would_break_the_guarantee_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with started(tmp_path) as run:
        with pytest.raises(RunError, match=f"TrainingArguments.{says}"):
            PrivateTrainer(model(), arguments(tmp_path, **changes), train_dataset=data(), run=run)
        assert run.released == 0


def test_models_and_data_that_cannot_be_trained_are_refused(tmp_path: Path) -> None:
    frozen, examples = model(), data()
    frozen.requires_grad_(False)
    with started(tmp_path) as run:
        for net, given, says in (
            (frozen, {}, "no parameter of the model is trained"),
            (torch.compile(model(), backend="eager"), {}, "the model is compiled"),
            (
                model(),
                {"eval_dataset": {"other": data(count=3), "train": examples}},
                "eval_dataset is the training data",
            ),
        ):
            with pytest.raises(RunError, match=says):
                PrivateTrainer(net, arguments(tmp_path), train_dataset=examples, run=run, **given)
        assert run.released == 0


#: Batches of half of the data: an epoch has two rounds.
HALVES = with_batches(DOCUMENT, RECORDS // 2)


def test_an_epoch_has_as_many_rounds_as_it_takes_to_draw_all_records(tmp_path: Path) -> None:
    """What a trainer does after each epoch is done after each."""
    every = {"eval_strategy": "epoch", "save_strategy": "epoch", "logging_strategy": "epoch"}
    with started(tmp_path, HALVES) as run:
        trainer = PrivateTrainer(
            model(), arguments(tmp_path, **every), train_dataset=data(), eval_dataset=data(count=3), run=run
        )
        trainer.train()
        with pytest.raises(RunError, match="this trainer has trained already"):
            trainer.train()
        assert run.released == ROUNDS
    assert [entry["epoch"] for entry in trainer.state.log_history if "eval_loss" in entry] == [1.0, 2.0, 3.0]
    assert {path.name for path in (tmp_path / "model").glob("checkpoint-*")} == {f"checkpoint-{n}" for n in (2, 4, 6)}


@pytest.mark.parametrize("step", [2, 3])
def test_a_training_of_several_epochs_is_resumed_where_it_was(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of an epoch and inside of one; the first try was of one epoch, or was stopped."""
    ended, key = [], []
    for place in ("whole", "parts"):
        net = model()
        (folder := tmp_path / place).mkdir()
        with with_key(started(folder, HALVES), key, monkeypatch) as run:
            every = {"save_strategy": "steps", "save_steps": step, "lr_scheduler_type": "constant"}
            if place == "parts":
                short = {"num_train_epochs": 1} if step == 2 else {"max_steps": 3}
                trainer = PrivateTrainer(net, arguments(folder, **every, **short), train_dataset=data(), run=run)
                assert trainer.train().global_step == run.released == step
            trainer = PrivateTrainer(net, arguments(folder, **every), train_dataset=data(), run=run)
            done = trainer.train(resume_from_checkpoint=place == "parts")
            assert done.global_step == run.released == ROUNDS
        ended.append(weights(net))
    assert same(*ended)


class OwnLoader(PrivateTrainer):  # type: ignore[misc]
    """Loads batches of its own, or those of the run in another order."""

    skipped: int | None = None

    def get_train_dataloader(self) -> Any:
        given = super().get_train_dataloader()
        if self.skipped is None:
            return torch.utils.data.DataLoader(self.train_dataset, batch_size=2, collate_fn=list)
        batches = [one for number, one in enumerate(given.batch_sampler) if number != self.skipped]
        return torch.utils.data.DataLoader(given.dataset, batch_sampler=batches, collate_fn=given.collate_fn)


@pytest.mark.parametrize(
    ("skipped", "says"), [(None, "are in no batch of the run, and round 0"), (2, "are those of round 3, and round 2")]
)
def test_other_batches_than_those_of_the_round_are_refused(tmp_path: Path, skipped: int | None, says: str) -> None:
    with started(tmp_path) as run:
        trainer = OwnLoader(model(), arguments(tmp_path), train_dataset=data(), run=run)
        trainer.skipped = skipped
        with pytest.raises(RunError, match=says):
            trainer.train()
        assert run.released == (skipped or 0)


def test_all_refusals_are_told_at_once(tmp_path: Path) -> None:
    several = arguments(tmp_path, max_grad_norm=0.3, gradient_accumulation_steps=3)
    several.fp16 = True
    with started(tmp_path) as run, pytest.raises(RunError, match=r"accumulation.*max_grad_norm.*fp16"):
        PrivateTrainer(model(), several, train_dataset=data(), run=run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsdp", "full_shard"),
        ("fsdp", {"fsdp_version": 2}),
        ("deepspeed", {"zero_optimization": {"stage": 2}}),
        ("torch_compile", True),
        ("parallelism_config", object()),
    ],
)
def test_sharded_and_compiled_models_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    args = arguments(tmp_path)
    setattr(args, name, value)  # as their packages would leave it; they need not be installed
    with started(tmp_path) as run:
        with pytest.raises(
            RunError, match=f"TrainingArguments.{name}: the gradients of single records are not implemented"
        ):
            PrivateTrainer(model(), args, train_dataset=data(), run=run)
        assert run.released == 0


def test_torch_compile_is_refused_as_it_is_asked_for(tmp_path: Path) -> None:
    with started(tmp_path) as run, pytest.raises(RunError, match=r"TrainingArguments\.torch_compile"):
        PrivateTrainer(model(), arguments(tmp_path, torch_compile_backend="eager"), train_dataset=data(), run=run)


@pytest.mark.parametrize("clipping", ["vectorized", "one-by-one"])
def test_bf16_is_that_of_autocast_and_contributions_keep_their_norm(tmp_path: Path, clipping: str) -> None:
    """Layers compute in half precision; gradients of parameters, their norms and their sums are float32."""
    with started(tmp_path, clip_norm=0.05) as run:
        net = model(dropout=0.0)
        trainer = PrivateTrainer(net, arguments(tmp_path, bf16=True), train_dataset=data(), run=run, clipping=clipping)
        found = []
        clipped = trainer._clipped
        trainer._clipped = lambda *given: found.append(clipped(*given)) or found[-1]
        before = weights(net)
        assert trainer.train().global_step == run.released == ROUNDS
        one = data()[0]
        batch = {name: tensor[None] for name, tensor in one.items()}
        plain = model(dropout=0.0)
        with torch.no_grad():
            exact = float(plain(**batch).loss)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                half = float(plain(**batch).loss)
        net.load_state_dict(before, strict=False)
        (part,) = trainer.parts([one])
        alone = clipped(net, part)
    assert float(alone.losses) == pytest.approx(half, rel=1e-6)
    assert half != exact
    assert float(torch.cat([tensor.flatten() for tensor in alone.values()]).norm()) == pytest.approx(0.05, rel=1e-4)
    assert all(one.dtype == torch.float32 for sums in found for one in sums.values())


def test_a_public_evaluation_may_choose_the_model(tmp_path: Path) -> None:
    steps = {"eval_strategy": "steps", "save_strategy": "steps", "save_steps": 2, "eval_steps": 2}
    args, given = arguments(tmp_path, load_best_model_at_end=True, **steps), {"eval_dataset": data(count=5)}
    with started(tmp_path) as run:
        trainer = PrivateTrainer(model(), args, train_dataset=data(), run=run, public_evaluation=True, **given)
        trainer.train()
    assert trainer.state.best_model_checkpoint is not None


def test_other_data_and_places_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        with pytest.raises(RunError, match="train_dataset has 39 records, and the run has 40"):
            PrivateTrainer(model(), arguments(tmp_path), train_dataset=data(count=39), run=run)
        examples = data()
        with pytest.raises(RunError, match="eval_dataset is the training data"):
            PrivateTrainer(model(), arguments(tmp_path), train_dataset=examples, eval_dataset=examples, run=run)
        with pytest.raises(RunError, match=r"contains .*run\.key"):
            PrivateTrainer(model(), transformers.TrainingArguments(str(tmp_path)), train_dataset=examples, run=run)
        with pytest.raises(RunError, match="none of auto"):
            PrivateTrainer(model(), arguments(tmp_path), train_dataset=examples, run=run, clipping="layers")
        trainer = PrivateTrainer(model(), arguments(tmp_path), train_dataset=examples, run=run)
        with pytest.raises(RunError, match="hyperparameter_search"):
            trainer.hyperparameter_search()
        with pytest.raises(RunError, match="no checkpoint"):
            trainer.train(resume_from_checkpoint=True)
        with pytest.raises(RunError, match="not a checkpoint of a private training"):
            trainer.train(resume_from_checkpoint=str(tmp_path))
        assert run.released == 0


def test_a_collator_that_joins_records_is_refused(tmp_path: Path) -> None:
    joined = lambda examples: {"input_ids": torch.cat([one["input_ids"] for one in examples])}  # noqa: E731
    with started(tmp_path) as run:
        trainer = PrivateTrainer(model(), arguments(tmp_path), data_collator=joined, train_dataset=data(), run=run)
        with pytest.raises(RunError, match="input_ids: the collator makes a tensor of shape"):
            trainer.train()
        assert run.released == 0


def test_a_data_set_of_datasets_and_a_classifier(tmp_path: Path) -> None:
    """Columns that the model does not take are left out; dropout, label smoothing and weight decay are as usual."""
    datasets = pytest.importorskip("datasets", reason=f"datasets is not installed: {WHY}")
    rows = [
        {
            "input_ids": one["input_ids"].tolist(),
            "attention_mask": [1] * LENGTH,
            "labels": index % 2,
            "name": str(index),
        }
        for index, one in enumerate(data())
    ]
    transformers.set_seed(3)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    net = transformers.BertForSequenceClassification(config)
    before = weights(net)
    options = {"label_smoothing_factor": 0.1, "weight_decay": 0.01, "dataloader_num_workers": 1}
    with started(tmp_path) as run:
        given, args = datasets.Dataset.from_list(rows), arguments(tmp_path, **options)
        PrivateTrainer(net, args, train_dataset=given, run=run, clipping="one-by-one").train()
        assert run.released == ROUNDS
    assert not same(before, weights(net))
