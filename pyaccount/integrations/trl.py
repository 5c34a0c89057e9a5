"""TRL: fine-tuning, preferences and reward models that train exactly the run of a certificate, with the trainers of trl.

    args = SFTConfig("model", gradient_checkpointing=False, …)
    trainer = PrivateSFTTrainer(model=model, args=args, train_dataset=data, run=run)

`private_trainer(DPOTrainer)` returns the private one of a class of trl, or of your subclass of it, and refuses those whose loss
joins records. A record is a row of the data: a text, or a pair of a chosen and a rejected completion with their prompt. Data
sets, templates and adapters are prepared by trl, and everything else is that of `PrivateTraining`. What trl computes of the
training data beside the loss has no noise, and is not logged. This module needs trl, transformers and torch.
"""

from __future__ import annotations

from typing import Any

from pyaccount.errors import RunError, importing
from pyaccount.integrations.transformers import PrivateTraining
from pyaccount.training import TrainingRun

with importing("trl", "torch", "transformers", by=__name__):
    from torch import Tensor, nn
    from transformers import Trainer
    from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

from pyaccount.integrations.records import Tensors

#: The loss that a causal language model computes itself.
LOSS = "nll"

#: The trainers whose loss for a record needs other records, or for which it is not known what a record is.
REFUSED = {
    "GRPOTrainer": "its record would be a prompt with its group of completions. But these are drawn for several prompts in one "
    "pass, with random numbers in the order of the batch; reward functions see them together, the loss is divided by the tokens "
    "of all of them, and one generation is used in several steps",
    "RLOOTrainer": "its record would be a prompt with its group of completions. But these are drawn for several prompts in one "
    "pass, with random numbers in the order of the batch, reward functions see them together, and advantages may be normalised "
    "over the batch",
    "KTOTrainer": "its loss of a record has a baseline of completions of other records, which its data set pairs with each "
    "prompt",
}


class PrivateTexts(PrivateTraining):
    """What makes an `SFTTrainer` private: a record is a text."""

    def __init__(self, model: Any = None, args: Any = None, *more: Any, run: TrainingRun, **named: Any) -> None:
        """Raises `RunError` for arguments that join records, in addition to those of `PrivateTraining`."""
        args = SFTConfig("tmp_trainer") if args is None else args
        _check_unjoined(args)
        if getattr(args, "loss_type", None) not in (None, LOSS, "chunked_nll"):
            raise RunError(
                f"SFTConfig.loss_type = {args.loss_type!r} is computed by trl for several records together: leave it out"
            )
        super().__init__(model, args, *more, run=run, **named)

    def example_loss(self, model: nn.Module, example: Tensors) -> Tensor:
        """Return the loss of the model for one record, without the metrics that trl computes beside it."""
        loss: Tensor = Trainer.compute_loss(self, model, dict(example))
        return loss


class PrivatePairs(PrivateTraining):
    """What makes a `DPOTrainer` or a `RewardTrainer` private: a record is a pair of completions.

    trl collates a pair into two rows, and its loss gets those of one pair, so that no other pair is in it. It also computes
    metrics, which leave the graph of the loss, so there is a backward pass for each pair.
    """

    def __init__(self, model: Any = None, *more: Any, args: Any = None, run: TrainingRun, **named: Any) -> None:
        """Raises `RunError` for arguments that join records, in addition to those of `PrivateTraining`."""
        if args is None:
            args = (RewardConfig if isinstance(self, RewardTrainer) else DPOConfig)("tmp_trainer")
        _check_unjoined(args)
        name = type(args).__name__
        losses = getattr(args, "loss_type", None) or []
        sorting = [loss for loss in ([losses] if isinstance(losses, str) else losses) if loss.startswith("aot")]
        if sorting:
            raise RunError(
                f"{name}.loss_type = {sorting[0]!r} sorts the log probabilities of all pairs of a batch, so that the loss of one "
                "depends on others: use another loss, such as 'sigmoid'"
            )
        if getattr(args, "precompute_ref_log_probs", False) and args.precompute_ref_batch_size != 1:
            raise RunError(
                f"{name}.precompute_ref_log_probs pads pairs to the longest one of their batch, so that the last digits of one "
                "depend on others: set precompute_ref_batch_size=1, or leave it out"
            )
        if named.setdefault("clipping", "one-by-one") != "one-by-one":
            raise RunError(
                f"clipping = {named['clipping']!r}: trl computes metrics in the loss of a pair, which need a backward pass for "
                "each: leave it out, or give 'one-by-one'"
            )
        if run.world > 1:
            raise RunError(
                f"the run has {run.world} ranks, and this trainer gathers metrics from all processes in the loss of each record, "
                "of which they have different numbers: use one process"
            )
        if more:
            raise RunError("give the arguments after the model by their names, such as ref_model= and args=")
        super().__init__(model, args, run=run, **named)

    def get_train_dataloader(self) -> Any:
        """Return a loader of the records of each round. A pair becomes one row of tensors, whose own rows are its completions."""
        loader, collate = super().get_train_dataloader(), self._collator
        assert collate is not None

        def collated(examples: list[Any]) -> dict[str, Any]:
            # One pair is collated at a time.
            return {name: one[None] if isinstance(one, Tensor) else one for name, one in collate(examples).items()}

        self._collator = collated
        return loader

    def example_loss(self, model: nn.Module, example: Tensors) -> Tensor:
        """Return the loss of trl for one pair alone."""
        return super().example_loss(model, {name: tensor[0] for name, tensor in example.items()})

    def training_step(self, model: nn.Module, inputs: list[Any], *more: Any) -> Tensor:
        """Release a round, as `PrivateTraining` does, and forget the metrics that trl computed of the pairs."""
        trainer: Any = self
        try:
            return super().training_step(model, inputs, *more)
        finally:
            trainer._metrics["train"].clear()
            trainer._total_train_tokens = 0


class PrivateSFTTrainer(PrivateTexts, SFTTrainer):  # type: ignore[misc, unused-ignore]
    """A `trl.SFTTrainer` for the run of a certificate; it takes the arguments of both.

    The loss of a record is that of the model, averaged over its own tokens. Other metrics of trl on the training data are not
    computed, since they have no noise.
    """


class PrivateDPOTrainer(PrivatePairs, DPOTrainer):  # type: ignore[misc, unused-ignore]
    """A `trl.DPOTrainer` for the run of a certificate; it takes the arguments of both, by their names.

    A record is a preference: a prompt, a chosen and a rejected completion. The reference model must not have seen the records, or
    have a guarantee of its own.
    """


class PrivateRewardTrainer(PrivatePairs, RewardTrainer):  # type: ignore[misc, unused-ignore]
    """A `trl.RewardTrainer` for the run of a certificate; it takes the arguments of both, by their names.

    A record is a pair of a chosen and a rejected text.
    """


def private_trainer(trainer: type[Any]) -> type[Any]:
    """Return the private trainer of `SFTTrainer`, `DPOTrainer`, `RewardTrainer`, or of a subclass of one of these.

    A subclass of the trainers of pairs may compute its loss in another way: it gets one pair. Raises `RunError` for other
    trainers, with the reason.
    """
    if issubclass(trainer, PrivateTraining):
        return trainer
    for private in (PrivateSFTTrainer, PrivateDPOTrainer, PrivateRewardTrainer):
        mixin, base = private.__bases__
        if trainer is base:
            return private
        if issubclass(trainer, base):
            if mixin is PrivateTexts and trainer.compute_loss is not base.compute_loss:
                raise RunError(
                    f"{trainer.__name__}.compute_loss is not called, since that of SFTTrainer computes metrics of several "
                    "records: derive a class from PrivateSFTTrainer, and override example_loss(model, example)"
                )
            return type(f"Private{trainer.__name__}", (mixin, trainer), {"__doc__": private.__doc__})
    for one in trainer.__mro__:
        if one.__name__ in REFUSED:
            raise RunError(f"{trainer.__name__}: {REFUSED[one.__name__]}. This is not implemented for a record alone")
    raise RunError(
        f"{trainer.__name__}: it is not known what a record is in this trainer, and whether its loss joins records. SFTTrainer, "
        "DPOTrainer, RewardTrainer and their subclasses are supported; for one that computes the loss of a batch with one record "
        "from this record alone, derive a class from PrivateTraining and the trainer"
    )


def _check_unjoined(args: Any) -> None:
    """Raise `RunError` for arguments that join records, or that a private step leaves out."""
    name = type(args).__name__
    for option in ("packing", "padding_free"):
        if getattr(args, option, False):
            raise RunError(
                f"{name}.{option} joins several records, so that the gradient of one cannot be clipped: leave it out"
            )
    if getattr(args, "activation_offloading", False):
        raise RunError(
            f"{name}.activation_offloading is done by trl around a step of its own, which is not used: leave it out"
        )
