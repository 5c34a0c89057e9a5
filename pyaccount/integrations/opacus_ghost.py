"""Ghost clipping in Opacus's own loop: the module and the loss that `make_private` returns, with exact norms and a trial.

The trial is made on the first batches, until one has two records with finite gradients: the norm of each, from the hooks, is
compared with the norm of the gradient of its loss. They differ if a weight is used outside of its layer, if a layer changes its
input before it is multiplied, or if records meet. This module needs torch and opacus.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pyaccount.errors import RunError, importing

with importing("torch", "opacus", by="pyaccount.integrations.opacus"):
    import torch
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping
    from torch import Tensor, nn

from pyaccount.integrations.ghost_norms import ExactNorms, bounded_norms, factors
from pyaccount.training.precision import full_products

#: How far a norm may be from that of the gradient of a record's loss, relatively: roundings of float32 are far below.
TOLERANCE = 1e-3


class GhostModule(ExactNorms):
    """Opacus's module for ghost clipping, which tells the optimizer how many records it has clipped."""

    #: The optimizer of `make_private`, whose `clipped` counts records.
    optimizer: Any
    #: Whether two records were tried.
    tried = False
    _second: contextlib.ExitStack | None = None

    def get_clipping_coef(self) -> Tensor:
        """Return the factor of each record."""
        squares = [bounded_norms(parameter).square() for parameter in self.trainable_parameters]
        found = factors([one.to(squares[0].device) for one in squares], self.max_grad_norm)
        self.optimizer.clipped += len(found)
        return found.float()

    def disable_hooks(self) -> None:
        """Disable the hooks for the second pass, whose products are computed in float32 until hooks are enabled."""
        super().disable_hooks()
        if self._second is None:
            self._second = contextlib.ExitStack()
            self._second.enter_context(full_products(self.parameters()))

    def enable_hooks(self) -> None:
        """Enable the hooks, and restore the precision of products."""
        if self._second is not None:
            self._second.close()
            self._second = None
        super().enable_hooks()

    def attempt(self, losses: Tensor) -> None:
        """Compare the norms of up to two records of a batch with those of the gradients of their losses, which have a graph.

        Raises `RunError` if they differ. What the passes leave on the model is removed.
        """
        if not len(losses):
            return
        reduced = losses.mean() if self.loss_reduction == "mean" else losses.sum()
        with _restored(self, self.trainable_parameters):
            torch.autograd.backward(reduced, retain_graph=True)
            missing = [
                name
                for name, one in self._module.named_parameters()
                if one.requires_grad and not hasattr(one, "_norm_sample")
            ]
            if missing:
                raise _different(f"Opacus has no norm for {missing[0]}")
            every = [parameter._norm_sample.double() for parameter in self.trainable_parameters]  # type: ignore[attr-defined, unused-ignore]
        if any(one.shape != losses.shape for one in every):
            raise _different(
                f"layers have norms of {sorted({len(one) for one in every})} records, and {len(losses)} have losses"
            )
        norms = torch.stack([one.square().to(losses.device) for one in every]).sum(dim=0).sqrt()
        compared = 0
        for loss, norm in zip(losses, norms, strict=True):
            self.disable_hooks()
            gradients = torch.autograd.grad(loss, self.trainable_parameters, retain_graph=True, allow_unused=True)
            self.enable_hooks()
            true = torch.stack([one.double().norm().to(norm.device) for one in gradients if one is not None]).norm()
            if not bool(true.isfinite()):
                continue
            if not bool((norm - true).abs() <= TOLERANCE * true):
                raise _different(
                    f"the norm of a record's gradient is {float(norm):.6g}, and that of its loss alone {float(true):.6g}"
                )
            compared += 1
            if compared == 2:
                self.tried = True
                return


class TriedLoss(DPLossFastGradientClipping):  # type: ignore[misc, unused-ignore]
    """Opacus's loss of each record, with the trial."""

    module: GhostModule

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return the losses of records, whose `backward` clips, after trying the first batches."""
        found = super().__call__(*given, **named)
        if (
            torch.is_grad_enabled()
            and self.module.training
            and not self.module.tried
            and found.loss_per_sample.requires_grad
        ):
            self.module.attempt(found.loss_per_sample)
        return found


@contextlib.contextmanager
def _restored(module: nn.Module, parameters: list[nn.Parameter]) -> Iterator[None]:
    """Let a backward pass with hooks leave nothing behind, so that the same graph can be used by another one."""
    layers = [(one, list(one.activations)) for one in module.modules() if hasattr(one, "activations")]
    before = [(one, one.grad, one._forward_counter) for one in parameters]  # type: ignore[attr-defined, unused-ignore]
    for one in parameters:
        one.grad = None
    try:
        yield
    finally:
        for layer, activations in layers:
            layer.activations = activations
        for parameter, gradient, counter in before:
            parameter.grad, parameter._forward_counter = gradient, counter  # type: ignore[attr-defined, unused-ignore]
            for left in ("_norm_sample", "_norm_margin", "_current_grad_sample"):
                if hasattr(parameter, left):
                    delattr(parameter, left)


def _different(what: str) -> RunError:
    return RunError(
        f"grad_sample_mode = 'ghost': {what}. Ghost clipping is not exact for this model, so records would not be clipped to the "
        "clip norm: a weight is used outside of its layer, a layer changes its input, or records meet. Use another "
        "grad_sample_mode, or pyaccount.training.torch"
    )
