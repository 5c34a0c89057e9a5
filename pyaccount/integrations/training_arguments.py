"""Which of `transformers.TrainingArguments` a private training refuses, and why. This module does not import transformers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.errors import RunError

if TYPE_CHECKING:
    from pyaccount.training import TrainingRun

#: The values of `max_grad_norm` and `num_train_epochs` that say nothing, because they are the defaults.
DEFAULT_NORM, DEFAULT_EPOCHS = 1.0, 3.0


def check_arguments(args: Any, *, public_evaluation: bool, ghost: bool = False) -> None:
    """Raise `RunError` with every argument that would break the guarantee or has no meaning here, each with its reason.

    `ghost` says that gradients are clipped by ghost clipping, which allows less.
    """
    problems = [*_problems(args, public_evaluation=public_evaluation), *(_problems_of_ghosts(args) if ghost else ())]
    refused = [f"TrainingArguments.{problem}" for problem in problems]
    if refused:
        raise RunError("; ".join(refused))


def allows_ghosts(args: Any) -> bool:
    """Return whether gradients can be clipped by ghost clipping with these arguments."""
    return next(_problems_of_ghosts(args), None) is None


def check_place(run: TrainingRun, output_dir: str) -> None:
    """Raise `RunError` if the key of a run is in the folder of the model, which `push_to_hub` uploads as a whole."""
    folder = Path(output_dir).resolve()
    if folder in run.key_file.resolve().parents:
        raise RunError(
            f"TrainingArguments.output_dir = {output_dir!r} contains {run.key_file}, and this folder is published with the "
            "model: whoever has the key can subtract the noise. Give the run a folder outside of it"
        )


def steps_of(args: Any, run: TrainingRun) -> int:
    """Return how many steps are asked for. Raises `RunError` if they are more than were certified."""
    steps, asked = run.rounds, ""
    if args.max_steps > 0:
        steps, asked = args.max_steps, f"max_steps = {args.max_steps}"
    elif args.num_train_epochs != DEFAULT_EPOCHS:
        epoch = run.rounds_per_epoch
        steps = math.ceil(args.num_train_epochs * epoch)
        asked = f"num_train_epochs = {args.num_train_epochs:g}, with {epoch} rounds in an epoch"
    if steps > run.rounds:
        raise RunError(
            f"TrainingArguments.{asked}, and the certified run has {run.rounds} rounds: leave {asked.partition(' ')[0]} out, or "
            "certify a document with more iterations"
        )
    return steps


def _problems(args: Any, *, public_evaluation: bool) -> Iterator[str]:
    """Yield what is wrong with the arguments. Those that a version of transformers does not have are not asked for."""

    def value(name: str) -> Any:
        return getattr(args, name, None)

    if value("gradient_accumulation_steps") not in (None, 1):
        yield (
            f"gradient_accumulation_steps = {value('gradient_accumulation_steps')} would make one step of several rounds: leave "
            "it out. The batch of a round is cut into parts of per_device_train_batch_size, whose sums are added up"
        )
    if value("train_sampling_strategy") not in (None, "random") or value("group_by_length"):
        yield (
            "train_sampling_strategy orders records in a way that no certificate covers, by their lengths or places: leave it "
            "out. The run draws the batches"
        )
    if value("max_grad_norm") not in (None, 0.0, DEFAULT_NORM):
        yield (
            f"max_grad_norm = {value('max_grad_norm')!r} is not the norm to which each record is clipped: give the run "
            "clip_norm=, and leave max_grad_norm out"
        )
    if value("auto_find_batch_size"):
        yield (
            "auto_find_batch_size begins again after an error, and the rounds released before stay counted: leave it out, and "
            "choose a per_device_train_batch_size whose gradients of single records fit into memory"
        )
    if value("ignore_data_skip"):
        yield (
            "ignore_data_skip trains resumed steps with the lists that stand for the steps before, which have no records: leave "
            "it out. Skipping them loads nothing"
        )
    if value("fp16"):
        yield (
            "fp16 scales losses and skips steps by what it sees in the gradients, before and beside the clipping: use bf16 or "
            "float32"
        )
    if value("include_num_input_tokens_seen") not in (None, "no", False):
        yield (
            "include_num_input_tokens_seen logs how many tokens the drawn records have, which is not released with noise: leave "
            "it out"
        )
    optimizer = str(getattr(value("optim"), "value", value("optim")))
    if any(word in optimizer for word in ("lomo", "layerwise")):
        yield (
            f"optim = {optimizer} changes parameters while gradients are computed, before they are clipped and have noise: "
            "use another optimizer, such as adamw_torch"
        )
    for name in ("deepspeed", "fsdp", "parallelism_config", "torch_compile"):
        if value(name):
            yield f"{name}: the gradients of single records are not implemented with it: leave it out"
    if (value("n_gpu") or 0) > 1:
        yield (
            f"n_gpu = {value('n_gpu')}: several GPUs in one process are not implemented: start one process for each with "
            "`torchrun` or `accelerate launch`, or make one visible"
        )
    if value("metric_for_best_model") is not None and not public_evaluation:
        yield (
            f"metric_for_best_model = {value('metric_for_best_model')!r} chooses a model, a learning rate or the end of the "
            "training by a metric without noise, so what is chosen reveals records of the evaluation data, which no certificate "
            "covers: leave it out, with load_best_model_at_end and schedules that follow a metric; or state with "
            "public_evaluation=True that the evaluation data need no protection and have no record of the training data"
        )


def _problems_of_ghosts(args: Any) -> Iterator[str]:
    """Yield what is wrong with the arguments for ghost clipping."""
    if getattr(args, "bf16", False):
        yield (
            "bf16 rounds the numbers from which ghost clipping computes norms, so contributions may be longer than the clip "
            "norm: use float32, or another clipping"
        )
    if getattr(args, "gradient_checkpointing", False):
        yield (
            "gradient_checkpointing runs layers twice, which ghost clipping would take for parameters that are used twice: set "
            "gradient_checkpointing=False (SFTConfig of trl has True by default)"
        )
    if getattr(args, "label_smoothing_factor", 0.0):
        yield (
            f"label_smoothing_factor = {args.label_smoothing_factor}: the trainer smooths the labels of a batch together, and "
            "ghost clipping needs the loss of each record: leave it out, or use another clipping"
        )
