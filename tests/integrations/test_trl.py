"""Supervised fine-tuning with trl, if it is installed: with a tokenizer and a model made here, offline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from plain_documents import doc
from training_runs import fixed_draws

from pyaccount import Certificate, TrainingRun, certify
from pyaccount.errors import RunError
from pyaccount.integrations.model_card import check_card

WHY = "the fine-tuning with trl is NOT tested here"
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
transformers = pytest.importorskip("transformers", reason=f"transformers is not installed: {WHY}")
trl = pytest.importorskip("trl", reason=f"trl is not installed: {WHY}")
datasets = pytest.importorskip("datasets", reason=f"datasets is not installed: {WHY}")

from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402 - after the skips

from pyaccount.integrations.transformers import CERTIFICATE  # noqa: E402
from pyaccount.integrations.trl import PrivateSFTTrainer  # noqa: E402

# The libraries warn about each other.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("ways_in_order")]

RECORDS, ROUNDS = 40, 6
DOCUMENT: dict[str, Any] = doc(
    "name=sft adjacency=add-remove epsilon=300.0 expected_batch_size=6 sampler=poisson multiplier=0.5",
    dataset_size=RECORDS,
    iterations=ROUNDS,
)
WORDS = ["<pad>", "<eos>", *["the", "a", "cat", "dog", "sees", "likes", "hears", "bird", "fish", "."]]


def tokenizer() -> Any:
    inner = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<pad>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>")


def texts() -> Any:
    """Sentences of several lengths."""
    return datasets.Dataset.from_list(
        [
            {
                "text": " ".join(
                    [*("the", WORDS[4 + index % 2], "sees", "a", WORDS[9 + index % 2]), *["."] * (index % 3)]
                )
            }
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


def arguments(folder: Path, **changes: Any) -> Any:
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
    return trl.SFTConfig(str(folder / "model"), **{**usual, **changes})


def started(folder: Path) -> TrainingRun:
    return TrainingRun(DOCUMENT, folder / "run", records=RECORDS, clip_norm=0.7, uncertified=True)


def by_hand(run: TrainingRun, net: Any) -> None:
    """Train with a backward pass for each text, with the end of the text as trl adds it."""
    words, net = tokenizer(), net.train()
    while run.round < run.rounds:
        with run.step() as step:
            total = {name: torch.zeros_like(parameter) for name, parameter in net.named_parameters()}
            for index in step.batch.indices.tolist():
                ids = torch.tensor([[*words(texts()[index]["text"])["input_ids"], 1]])
                net.zero_grad()
                net(input_ids=ids, labels=ids).loss.backward()
                gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
                norm = float(torch.sqrt(sum((gradient**2).sum() for gradient in gradients.values())))
                for name, gradient in gradients.items():
                    total[name] += gradient * min(1.0, run.clip_norm / norm)
            means = step.release({name: tensor.numpy() for name, tensor in total.items()})
        with torch.no_grad():
            for name, parameter in net.named_parameters():
                parameter.sub_(0.1 * torch.from_numpy(means[name]))


@pytest.mark.parametrize("clipping", ["vectorized", "one-by-one", "ghost"])
def test_a_training_is_that_of_a_loop_by_hand(tmp_path: Path, clipping: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if clipping == "ghost":
        pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")
    ended, key = [], None
    for place in ("trl", "hand"):
        fixed_draws(monkeypatch)
        net = model()
        with started(tmp_path / place) as run:
            key = key or run._root
            run._root = run._noise._root = key
            if place == "hand":
                by_hand(run, net)
            else:
                # Checkpointed activations need a backward pass of their own.
                options = {"gradient_checkpointing": clipping == "one-by-one"}
                trainer = PrivateSFTTrainer(
                    net,
                    arguments(tmp_path, **options),
                    train_dataset=texts(),
                    processing_class=tokenizer(),
                    run=run,
                    clipping=clipping,
                )
                trainer.train()
                assert not any(
                    {"loss", "entropy", "mean_token_accuracy"} & set(one) for one in trainer.state.log_history
                )
            assert run.released == ROUNDS
        ended.append({name: parameter.detach().clone() for name, parameter in net.named_parameters()})
    for name in ended[0]:
        torch.testing.assert_close(ended[0][name], ended[1][name], rtol=1e-4, atol=1e-5)


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
