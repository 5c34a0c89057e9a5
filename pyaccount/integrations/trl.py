"""TRL: supervised fine-tuning that trains exactly the run of a certificate, with the `SFTTrainer` of trl.

    args = SFTConfig("model", gradient_checkpointing=False, …)
    trainer = PrivateSFTTrainer(model=model, args=args, train_dataset=data, run=run)

Data sets, templates and adapters are prepared by trl, and everything else is that of `PrivateTraining`. Packing would join
records, so it is refused; so are losses that trl computes in a way of its own. This module needs trl, transformers and torch.
"""

from __future__ import annotations

from typing import Any

from pyaccount.errors import MissingExtraError, RunError
from pyaccount.integrations.transformers import PrivateTraining
from pyaccount.training import TrainingRun

try:
    from torch import Tensor, nn
    from transformers import Trainer
    from trl import SFTConfig, SFTTrainer
except ModuleNotFoundError as error:
    if error.name not in ("trl", "torch", "transformers"):
        raise
    raise MissingExtraError.of(str(error.name), "pyaccount.integrations.trl needs it") from error

from pyaccount.integrations.records import Tensors

#: The loss that a causal language model computes itself.
LOSS = "nll"


class PrivateSFTTrainer(PrivateTraining, SFTTrainer):  # type: ignore[misc, unused-ignore]
    """A `trl.SFTTrainer` for the run of a certificate; it takes the arguments of both.

    The loss of a record is that of the model, averaged over its own tokens. Other metrics of trl on the training data are not
    computed, since they have no noise.
    """

    def __init__(self, model: Any = None, args: Any = None, *more: Any, run: TrainingRun, **named: Any) -> None:
        """Raises `RunError` for arguments that join records, in addition to those of `PrivateTraining`."""
        args = SFTConfig("tmp_trainer") if args is None else args
        for name in ("packing", "padding_free"):
            if getattr(args, name, False):
                raise RunError(
                    f"SFTConfig.{name} joins several records, so that the gradient of one cannot be clipped: leave it out"
                )
        if getattr(args, "loss_type", None) not in (None, LOSS, "chunked_nll"):
            raise RunError(
                f"SFTConfig.loss_type = {args.loss_type!r} is computed by trl for several records together: leave it out"
            )
        super().__init__(model, args, *more, run=run, **named)

    def example_loss(self, model: nn.Module, example: Tensors) -> Tensor:
        """Return the loss of the model for one record, without the metrics that trl computes beside it."""
        loss: Tensor = Trainer.compute_loss(self, model, dict(example))
        return loss
