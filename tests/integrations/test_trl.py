"""Fine-tuning, preferences and reward models with trl, if it is installed: with a tokenizer and models made here, offline."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from snapshots import Snapshot
from trained_elsewhere import by_hand, starting, trained, with_key

from pyaccount import Certificate, TrainingRun, certify
from pyaccount.errors import RunError
from pyaccount.integrations.model_card import check_card
from pyaccount.training.record import Recorded

WHY = "the fine-tuning with trl is NOT tested here"
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
transformers = pytest.importorskip("transformers", reason=f"transformers is not installed: {WHY}")
trl = pytest.importorskip("trl", reason=f"trl is not installed: {WHY}")
datasets = pytest.importorskip("datasets", reason=f"datasets is not installed: {WHY}")

from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402 - after the skips

from pyaccount.integrations.transformers import CERTIFICATE  # noqa: E402
from pyaccount.integrations.trl import (  # noqa: E402
    PrivateDPOTrainer,
    PrivateRewardTrainer,
    PrivateSFTTrainer,
    private_trainer,
)

# The libraries warn about each other.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("ways_in_order")]

RECORDS, ROUNDS = 40, 6
DOCUMENT = trained("sft", RECORDS, ROUNDS)
started = starting(DOCUMENT, "run")
WORDS = ["<pad>", "<eos>", *["the", "a", "cat", "dog", "sees", "likes", "hears", "bird", "fish", "."]]


def tokenizer() -> Any:
    inner = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<pad>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>")


def ids_of(text: str) -> list[int]:
    """Return the words of a text and its end."""
    return [*tokenizer()(text)["input_ids"], 1]


def texts() -> Any:
    """Sentences of several lengths."""
    return datasets.Dataset.from_list(
        [
            {"text": f"the {WORDS[4 + index % 2]} sees a {WORDS[9 + index % 2]}" + " ." * (index % 3)}
            for index in range(RECORDS)
        ]
    )


def model() -> Any:
    transformers.set_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        attn_implementation="eager",
    )
    return transformers.LlamaForCausalLM(config)


def arguments(folder: Path, config: Any = trl.SFTConfig, **changes: Any) -> Any:
    usual = {
        "per_device_train_batch_size": 4,
        "learning_rate": 0.1,
        "optim": "sgd",
        "lr_scheduler_type": "constant",
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
    }
    return config(str(folder / "model"), **{**usual, **changes})


def text_loss(net: Any, index: int) -> Any:
    """Return the loss of a text, with the end of the text as trl adds it."""
    ids = torch.tensor([ids_of(texts()[index]["text"])])
    return net(input_ids=ids, labels=ids).loss


@pytest.mark.parametrize("clipping", ["vectorized", "one-by-one", "ghost"])
def test_a_training_is_that_of_a_loop_by_hand(tmp_path: Path, clipping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if clipping == "ghost":
        pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")
    ended, key = [], []
    for place in ("trl", "hand"):
        net = model()
        with with_key(started(tmp_path / place), key, monkeypatch) as run:
            if place == "hand":
                by_hand(run, net, text_loss)
            else:
                # Checkpointed activations need a backward pass of their own.
                args = arguments(tmp_path, gradient_checkpointing=clipping == "one-by-one")
                common = {"processing_class": tokenizer(), "run": run, "clipping": clipping}
                trainer = PrivateSFTTrainer(net, args, train_dataset=texts(), **common)
                trainer.train()
                unprotected = {"loss", "entropy", "mean_token_accuracy"}
                assert not any(unprotected & set(one) for one in trainer.state.log_history)
            assert run.released == ROUNDS
        ended.append({name: parameter.detach().clone() for name, parameter in net.named_parameters()})
    torch.testing.assert_close(*ended, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("option", ["packing", "padding_free", "loss_type"])
def test_what_joins_records_is_refused(tmp_path: Path, option: str) -> None:
    args = arguments(tmp_path)
    setattr(args, option, "dft" if option == "loss_type" else True)
    with started(tmp_path) as run:
        with pytest.raises(RunError, match=f"SFTConfig.{option}"):
            PrivateSFTTrainer(model(), args, train_dataset=texts(), processing_class=tokenizer(), run=run)
        assert run.released == 0


def test_the_folder_of_a_model_has_its_certificate_and_card_by_default(tmp_path: Path) -> None:
    """TRL writes a card into it when it saves a checkpoint, before any model is saved there."""
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path / "run", records=RECORDS, clip_norm=0.7) as run:
        args = arguments(tmp_path, save_strategy="steps")
        PrivateSFTTrainer(
            model(), args, train_dataset=texts(), processing_class=tokenizer(), run=run, clipping="one-by-one"
        ).train()
        assert run.released == ROUNDS
    for folder in (tmp_path / "model", tmp_path / "model" / f"checkpoint-{ROUNDS}"):
        assert Certificate.load(folder / CERTIFICATE) == certificate
        check_card(folder / CERTIFICATE, folder / "README.md")


def pairs(prompt: bool = True) -> Any:
    """Preferences of several lengths, with the prompt apart or in both texts."""
    rows = [
        {
            "prompt": "the " + WORDS[4 + index % 2],
            "chosen": " sees a " + " ".join([WORDS[9 + index % 2]] * (1 + index % 3)),
            "rejected": " hears" + " ." * (1 + index % 2),
        }
        for index in range(RECORDS)
    ]
    if not prompt:
        rows = [{name: row["prompt"] + row[name] for name in ("chosen", "rejected")} for row in rows]
    return datasets.Dataset.from_list(rows)


def log_probability(net: Any, prompt: str, completion: str) -> Any:
    """Return the log probability of a completion after its prompt, word by word."""
    before, ids = len(tokenizer()(prompt)["input_ids"]), ids_of(prompt + completion)
    logs = torch.log_softmax(net(input_ids=torch.tensor([ids])).logits[0], dim=-1)
    return sum(logs[place - 1, ids[place]] for place in range(before, len(ids)))


def preference_loss(reference: Any) -> Callable[[Any, int], Any]:
    """Return -log sigmoid(0.1·(log ratio of the chosen completion - that of the rejected one)) (Rafailov et al. 2023)."""

    def loss_of(net: Any, index: int) -> Any:
        row = pairs()[index]
        ratios = [
            log_probability(net, row["prompt"], row[name])
            - log_probability(reference, row["prompt"], row[name]).detach()
            for name in ("chosen", "rejected")
        ]
        return torch.log1p(torch.exp(-0.1 * (ratios[0] - ratios[1])))

    return loss_of


def reward_loss(net: Any, index: int) -> Any:
    """Return -log sigmoid(reward of the chosen text - that of the rejected one)."""
    row = pairs(prompt=False)[index]
    rewards = [net(input_ids=torch.tensor([ids_of(row[name])])).logits[0, 0] for name in ("chosen", "rejected")]
    return torch.log1p(torch.exp(rewards[1] - rewards[0]))


def rewarding() -> Any:
    """A model with one number for each text."""
    transformers.set_seed(3)
    config = transformers.LlamaConfig(**{**model().config.to_dict(), "num_labels": 1, "attn_implementation": "eager"})
    return transformers.LlamaForSequenceClassification(config)


@pytest.mark.parametrize("kind", ["preferences", "rewards"])
def test_a_training_with_pairs_is_that_of_a_loop_by_hand(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record is a pair: both completions are clipped together, and no metric of the pairs is logged."""
    ended, key = [], []
    for place in ("trl", "hand"):
        net = model() if kind == "preferences" else rewarding()
        reference = copy.deepcopy(net)
        with with_key(started(tmp_path / place), key, monkeypatch) as run:
            if place == "hand":
                by_hand(run, net, preference_loss(reference) if kind == "preferences" else reward_loss)
            else:
                common = {"processing_class": tokenizer(), "run": run}
                config = trl.DPOConfig if kind == "preferences" else trl.RewardConfig
                args = arguments(tmp_path, config, logging_steps=1, eval_strategy="steps", eval_steps=3)
                data = pairs(prompt=kind == "preferences")
                common |= {"args": args, "train_dataset": data, "eval_dataset": data.select(range(4))}
                trainer: Any
                if kind == "preferences":
                    trainer = PrivateDPOTrainer(net, ref_model=reference, **common)
                else:
                    trainer = PrivateRewardTrainer(net, **common)
                trainer.train()
                logged = {name for one in trainer.state.log_history for name in one}
                assert {name for name in logged if not name.startswith("eval_")} == {
                    *("step", "epoch", "learning_rate", "grad_norm"),
                    *("train_runtime", "train_samples_per_second", "train_steps_per_second"),
                }
                # Evaluations say how many tokens the training has seen, unless that is forgotten.
                assert all(not one.get("eval_num_tokens") for one in trainer.state.log_history)
            assert run.released == ROUNDS
        ended.append({name: parameter.detach().clone() for name, parameter in net.named_parameters()})
    moved = [float((ended[1][name] - parameter).norm()) for name, parameter in reference.named_parameters()]
    assert min(moved) > 0.0
    torch.testing.assert_close(*ended, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"loss_type": ["sigmoid", "aot"]}, {}),
        ({"precompute_ref_log_probs": True}, {}),
        ({"padding_free": True}, {}),
        ({"activation_offloading": True}, {}),
        ({}, {"clipping": "ghost"}),
    ],
)
def test_what_joins_pairs_is_refused(
    tmp_path: Path, options: dict[str, Any], given: dict[str, Any], snapshot: Snapshot
) -> None:
    with started(tmp_path) as run:
        common = {"train_dataset": pairs(), "processing_class": tokenizer(), "run": run}
        args = arguments(tmp_path, trl.DPOConfig, **options)
        snapshot.raised(lambda: PrivateDPOTrainer(model(), ref_model=model(), args=args, **common, **given))
        assert run.released == 0


def test_several_processes_with_pairs_are_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    with TrainingRun(DOCUMENT, tmp_path / "run", records=RECORDS, world=2, uncertified=True) as run:
        args = arguments(tmp_path, trl.RewardConfig)
        common = {"train_dataset": pairs(prompt=False), "processing_class": tokenizer(), "run": run}
        snapshot.raised(lambda: PrivateRewardTrainer(rewarding(), args=args, **common))


def test_the_private_trainer_of_a_class_is_known_or_refused(snapshot: Snapshot) -> None:
    assert private_trainer(trl.SFTTrainer) is PrivateSFTTrainer
    assert private_trainer(trl.DPOTrainer) is PrivateDPOTrainer
    assert private_trainer(trl.RewardTrainer) is private_trainer(PrivateRewardTrainer) is PrivateRewardTrainer
    for other in (trl.GRPOTrainer, trl.RLOOTrainer, trl.KTOTrainer, transformers.Trainer):
        snapshot.raised(private_trainer, other)

    class Weighted(trl.SFTTrainer):  # type: ignore[misc, name-defined]
        def compute_loss(self, *given: Any, **named: Any) -> Any:
            return 2 * super().compute_loss(*given, **named)

    class Named(trl.SFTTrainer):  # type: ignore[misc, name-defined]
        pass

    snapshot.raised(private_trainer, Weighted)
    assert issubclass(private_trainer(Named), Named)


@pytest.mark.parametrize("precomputed", [False, True])
def test_a_subclass_has_its_own_loss_for_each_pair_and_adapters_their_base_as_reference(
    tmp_path: Path, precomputed: bool
) -> None:
    """The loss sees two rows, those of one pair, and only adapters are released."""
    peft = pytest.importorskip("peft", reason=f"peft is not installed: {WHY}")
    seen = []

    class Halved(trl.DPOTrainer):  # type: ignore[misc, name-defined]
        def compute_loss(self, model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
            seen.append(len(inputs["input_ids"]))
            return 0.5 * super().compute_loss(model, inputs, *more, **named)

    options = {"precompute_ref_log_probs": True, "precompute_ref_batch_size": 1} if precomputed else {}
    with started(tmp_path) as run:
        trainer = private_trainer(Halved)(
            model(),
            args=arguments(tmp_path, trl.DPOConfig, **options),
            train_dataset=pairs(),
            processing_class=tokenizer(),
            peft_config=peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"]),
            run=run,
        )
        trainer.train()
        drawn = sum(len(run.batch(number).indices) for number in range(ROUNDS))
        assert seen == [2] * drawn
        layout = Recorded.read(tmp_path / "run" / "record.jsonl").layouts[0]
        assert all("lora_" in name for sums in layout for name in sums)
