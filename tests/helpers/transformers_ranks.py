"""One process of a fine-tuning with transformers: a program whose argument is the run's folder. It prints the weights.

The rank and the number of processes are in the environment, as `torchrun` and `accelerate launch` set them.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

from plain_documents import doc

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
import pytest
import torch
import transformers
from training_runs import fixed_draws

from pyaccount import TrainingRun
from pyaccount.integrations.transformers import PrivateTrainer

RECORDS, ROUNDS, WORDS, LENGTH = 40, 4, 20, 5
DOCUMENT = doc(
    "name=ranks epsilon=300.0 expected_batch_size=6 sampler=b-min-sep min_separation=2",
    "matrix=banded-square-root bands=2 multiplier=0.5",
    dataset_size=RECORDS,
    iterations=ROUNDS,
)


def train(folder: Path) -> tuple[list[float], int]:
    """Train to the end. Return the weights, and how many records this process had."""
    arguments = transformers.TrainingArguments(
        str(folder / "model"),
        per_device_train_batch_size=4,
        learning_rate=0.1,
        optim="sgd",
        save_strategy="steps",
        save_steps=3,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    rank, world = arguments.process_index, arguments.world_size
    transformers.set_seed(3)
    config = transformers.GPT2Config(
        vocab_size=WORDS,
        n_positions=8,
        n_embd=8,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        attn_pdrop=0.0,
        embd_pdrop=0.0,
        resid_pdrop=0.0,
        attn_implementation="eager",
    )
    model = transformers.GPT2LMHeadModel(config)
    ids = torch.randint(WORDS, (RECORDS, LENGTH), generator=torch.Generator().manual_seed(1))
    data = [{"input_ids": one, "labels": one} for one in ids]
    options = {"records": RECORDS, "clip_norm": 0.7, "uncertified": True}
    with TrainingRun(DOCUMENT, folder / "run", rank=rank, world=world, **options) as run:
        seen = sum(len(run.batch(number).shard(rank, world).indices) for number in range(ROUNDS))
        trainer = PrivateTrainer(model, arguments, train_dataset=data, run=run)
        trainer.train()
        trainer.save_model()
        assert run.released == ROUNDS
    return [float(number) for parameter in model.parameters() for number in parameter.detach().flatten()], seen


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # With fixed nonces, runs with different numbers of ranks draw the same noise.
    fixed_draws(pytest.MonkeyPatch())
    print(json.dumps(train(Path(sys.argv[1]))))
