"""A certificate, and a language model that is fine-tuned with it: record, model card and gate.

    python examples/integrations/transformers_run.py [--folder runs/transformers] [--epsilon 8] [--rounds 40]

Needs `pip install "pyaccount-dp[transformers]"`. The model is a tiny one that is made here, and the records are
lines that are made here too, so that nothing is downloaded: put a model and data of your own in their place.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments, set_seed

import pyaccount
from pyaccount.integrations.model_card import check_card
from pyaccount.integrations.transformers import PrivateTrainer

WIDTH, RECORDS = 24, 400


def lines(count: int) -> list[dict[str, torch.Tensor]]:
    """Lines of bytes, filled up to one length: what lies behind a line's end is not predicted."""
    found = []
    for _ in range(count):
        digit = int(torch.randint(10, ()))
        line = f"after {digit} comes {digit + 1}\n".encode()
        ids = torch.tensor(list(line.ljust(WIDTH, b" ")))
        found.append({"input_ids": ids, "labels": ids.masked_fill(torch.arange(WIDTH) >= len(line), -100)})
    return found


def model() -> torch.nn.Module:
    """A small GPT-2 over bytes, in whose attention two adapters are trained."""
    config = GPT2Config(
        vocab_size=128, n_positions=WIDTH, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    config._attn_implementation = "eager"  # so that the gradients of several records are computed at once
    return get_peft_model(GPT2LMHeadModel(config), LoraConfig(r=8, target_modules=["c_attn"], modules_to_save=["wte"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        fine_tune(asked.folder or Path(temporary), asked)


def fine_tune(folder: Path, asked: argparse.Namespace) -> None:
    certificate = pyaccount.certify(
        {
            "pyaccount": 1,
            "name": "fine-tuning",
            "privacy": {"adjacency": "add-remove", "epsilon": asked.epsilon, "delta": 1e-5},
            "training": {"dataset_size": RECORDS, "expected_batch_size": 80, "iterations": asked.rounds},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": "solve"},
        }
    )
    set_seed(1)
    data, held_out = lines(RECORDS), lines(40)
    arguments = TrainingArguments(
        str(folder / "model"), per_device_train_batch_size=32, learning_rate=0.02, logging_steps=10, report_to=[]
    )
    with pyaccount.TrainingRun(certificate, folder / "run", records=RECORDS, clip_norm=1.0) as run:
        trainer = PrivateTrainer(model(), arguments, train_dataset=data, eval_dataset=held_out, run=run)
        before = trainer.evaluate()["eval_loss"]
        trainer.train()
        trainer.save_model()  # with training.cert.json, the state of the run, and the key `privacy` of the model card
        after = trainer.evaluate()["eval_loss"]
    verdict = pyaccount.check(folder / "model" / "training.cert.json", max_epsilon=asked.epsilon, max_delta=1e-5)
    check_card(folder / "model" / "training.cert.json", folder / "model" / "README.md")
    print(json.dumps({"before": before, "after": after, "released": run.released, "passes": bool(verdict)}))


if __name__ == "__main__":
    main()
