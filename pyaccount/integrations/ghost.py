"""Ghost clipping: clipped sums without the gradient of any single record, by Opacus's hooks, for the trainers of this room.

A first backward pass of the sum of the records' losses gives the norm of each record's gradient: a linear layer with inputs a_t
and gradients b_t of its outputs, at positions t, has ‖Σ_t b_t a_tᵀ‖² = Σ_{s,t} ⟨a_s, a_t⟩⟨b_s, b_t⟩ (Li et al. 2021,
arXiv:2110.05679). Layers for which Opacus has no such formula have their gradients made one layer at a time. A second pass of
Σ_i f_i·loss_i, f_i = min(1, clip norm/norm_i), gives the clipped sum.

The norms are those of the gradients only if no parameter is used twice, each layer's input has a row for each record, and
records do not meet. Opacus notices some of what breaks this. So two records are tried first: their losses, their norms and their
gradients are compared with backward passes of each record alone, without dropout, and what differs is refused.

This module releases nothing. It needs torch and opacus.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pyaccount.errors import RunError, importing
from pyaccount.training import TrainingRun

with importing("torch", by=__name__):
    import torch
    from torch import Tensor, nn

from pyaccount.integrations.ghost_norms import ExactNorms, bounded_norms, factors, plain_norms
from pyaccount.integrations.records import Tensors
from pyaccount.training.clipping import ClippedSums, clipped_together, wide
from pyaccount.training.dropout import drawn_by_key
from pyaccount.training.precision import full_products
from pyaccount.training.unchanged import check_layers, unchanged

#: How far a norm, a loss or a sum may be from that of a record alone, relatively: roundings of float32 are far below.
TOLERANCE = 1e-3

#: Returns the loss of a batch: of each record if `GhostClipping` asks for it.
Loss = Callable[[nn.Module, Tensors], Tensor]


class GhostClipping:
    """The clipped sums of a model by ghost clipping. Its hooks are on the model until `close`."""

    def __init__(
        self,
        model: nn.Module,
        losses_of: Loss,
        *,
        run: TrainingRun,
        also: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Put hooks on the model. `losses_of(model, batch)` returns the loss of each record of a batch, in which no records meet.

        Raises `RunError` for a model in half precision, one that keeps something of records, or one without Opacus's hooks.
        """
        check_layers(model)
        #: The most records of a pass.
        self._most: int | None = None
        self._model, self._losses_of = model, losses_of
        self._trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        self._groups, self._run = clipped_together(self._trained, run, None, also or {}), run
        half = sorted({str(one.dtype) for one in model.parameters() if wide(one) is not one})
        if half:
            raise RunError(
                f"clipping = 'ghost': the model has parameters of {', '.join(half)}, in which norms would be rounded so far that "
                "contributions may be longer than the clip norm: use float32, or another clipping"
            )
        try:
            self._hooks = ExactNorms(model, loss_reduction="sum", use_ghost_clipping=True)
        except (NotImplementedError, ValueError, RuntimeError) as error:
            raise _impossible(error) from error

    def close(self) -> None:
        """Take the hooks off the model."""
        self._hooks.remove_hooks()
        self._forget()

    def sums(self, batch: Tensors) -> ClippedSums:
        """Return Σ_i g_i·min(1, clip norm/‖g_i‖₂) by parameter, as `clipped_sums_of` does; zeros for a batch without records.

        A record without a finite gradient contributes zeros, and the others are computed without it.
        """
        self._check_trained()
        zeros = {name: torch.zeros_like(one, requires_grad=False) for name, one in self._trained.items()}
        count = len(next(iter(batch.values()))) if batch else 0
        if count == 0:
            return ClippedSums(zeros, self._groups, next(iter(zeros.values())).new_zeros(0))
        most = count if self._most is None else self._most
        total: dict[str, Tensor] = {}
        losses = []
        with full_products(zeros.values()), drawn_by_key(self._run):
            for start in range(0, count, most):
                part = self._sums({name: tensor[start : start + most] for name, tensor in batch.items()}, zeros)
                total = {name: total[name] + one if total else one for name, one in part.items()}
                losses.append(part.losses)
        return ClippedSums(total, self._groups, torch.cat([one for one in losses if one is not None]))

    def _sums(self, batch: Tensors, zeros: dict[str, Tensor]) -> ClippedSums:
        losses, squares = self._norms(batch, bounded_norms)
        every = torch.stack([one.sum(dim=0) for one in squares]).isfinite().all(dim=0)
        if not bool(every.all()):
            if not bool(every.any()):
                return ClippedSums(zeros, self._groups, losses.detach())
            kept = self._sums({name: tensor[every] for name, tensor in batch.items()}, zeros)
            return ClippedSums(kept, self._groups, losses.detach())
        sums: dict[str, Tensor] = {}
        for (names, norm), found in zip(self._groups, squares, strict=True):
            sums |= self._gradients((factors(found, norm).to(losses) * losses).sum(), names)
        return ClippedSums({name: sums[name] for name in zeros}, self._groups, losses.detach())

    def _check_trained(self) -> None:
        changed = sorted(
            name for name, one in self._model.named_parameters() if one.requires_grad != (name in self._trained)
        )
        if changed:
            raise RunError(
                f"clipping = 'ghost': {', '.join(changed)} was frozen or unfrozen after the training had begun. The hooks and "
                "the sums of the run are those of the parameters that were trained at its beginning: freeze before train(), and "
                "begin another run for other parameters"
            )

    def check(self, records: Tensors, alone: Loss) -> None:
        """Compare losses, norms and gradients of one or two records with those of each alone. `alone(model, record)` is its loss.

        Raises `RunError` if they differ, if a record has no finite gradient, or if ghost clipping is not possible for this model.
        """
        if not self._compared(records, alone):
            raise RunError(
                "clipping = 'ghost': a record tried has a loss or a gradient that is not finite, so nothing was compared. Try "
                "records without missing values, or use clipping='vectorized' or 'one-by-one'"
            )

    def attempt(self, tried: Iterable[Tensors], alone: Loss) -> None:
        """Check the first of these that is comparable: two records of one shape, or one.

        If only single records are, each record is clipped in a pass of its own from now on, so that records cannot meet. Raises
        the errors of `check`.
        """
        for records in tried:
            if self._compared(records, alone):
                self._most = 1 if len(next(iter(records.values()))) == 1 else None
                return
        raise RunError(
            "clipping = 'ghost': none of the records tried has a finite loss and gradient, so nothing could be compared. Check "
            "the first records of the data, or use clipping='vectorized' or 'one-by-one'"
        )

    def _compared(self, records: Tensors, alone: Loss) -> bool:
        """Do what `check` says; return false if a record has no finite gradient."""
        with _without_dropout(self._model), full_products(self._trained.values()):
            try:
                losses, squares = self._norms(records, plain_norms)
                together = [self._gradients(loss, list(self._trained)) for loss in losses]
            except RunError:
                self._forget()
                raise
            except (NotImplementedError, RuntimeError, ValueError, TypeError, AttributeError, KeyError) as error:
                self._forget()
                raise _impossible(error) from error
            single = []
            for index in range(len(losses)):
                with self._unhooked(), _hooks_that_fire():
                    loss = alone(self._model, {name: tensor[index : index + 1] for name, tensor in records.items()})
                single.append((loss.detach().reshape(()), self._gradients(loss, list(self._trained))))
        norms = [found.sum(dim=0).sqrt() for found in squares]
        every = [{name: float(one.double().norm()) for name, one in gradients.items()} for _, gradients in single]
        # A record that is not finite may make those of the other one so too, by products with zero.
        if not all(math.isfinite(sum(sizes.values())) for sizes in every) or not all(
            bool(loss.isfinite()) for loss, _ in single
        ):
            return False
        for index, ((loss, gradients), sizes) in enumerate(zip(single, every, strict=True)):
            largest = max(sizes.values())
            _compare("loss", losses[index].detach(), loss, TOLERANCE * abs(float(loss)) + TOLERANCE**2)
            for (names, _), found in zip(self._groups, norms, strict=True):
                norm = math.hypot(*(sizes[name] for name in names))
                _compare(
                    "norm of the gradient", found[index], torch.tensor(norm), TOLERANCE * max(norm, TOLERANCE * largest)
                )
            for name, one in gradients.items():
                _compare(f"gradient of {name}", together[index][name], one, TOLERANCE * largest)
        return True

    def _norms(self, batch: Tensors, norms_of: Callable[[Tensor], Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Return the loss of each record, whose graph is kept, and the squared norms of its gradient by groups and parameters."""
        count = len(next(iter(batch.values())))
        with _hooks_that_fire(), unchanged(self._model):
            losses = self._losses_of(self._model, batch)
        if losses.shape != (count,):
            self._forget()
            raise RunError(
                f"clipping = 'ghost': the loss of {count} records has shape {tuple(losses.shape)}, and the loss of each is "
                "needed. The model or the trainer adds them up in a way of its own: override example_losses(model, records) of "
                "the trainer, which returns a loss for each record, or use another clipping"
            )
        with _hooks_that_fire():
            torch.autograd.backward(losses.sum(), retain_graph=True)
        squares = [
            torch.stack([self._norm(name, count, norms_of).square().to(losses.device) for name in names])
            for names, _ in self._groups
        ]
        self._forget()
        return losses, squares

    def _norm(self, name: str, count: int, norms_of: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the norms of the gradients of one parameter, which are zero if no record has used it."""
        parameter = self._trained[name]
        found = getattr(parameter, "_norm_sample", None)
        if found is None:
            if parameter.grad is None:
                return torch.zeros(count, dtype=torch.float64, device=parameter.device)
            raise RunError(
                f"clipping = 'ghost': Opacus has no norm for {name}, which is not a parameter of a layer of its own: use another "
                "clipping, or freeze it"
            )
        if found.shape != (count,):
            raise RunError(
                f"clipping = 'ghost': {name} has norms of {len(found)} records, and there are {count}. Its layer's input has no "
                "row for each record, as positions that a model makes itself: give position_ids in the data, or freeze it"
            )
        return norms_of(parameter).detach()

    def _gradients(self, loss: Tensor, names: list[str]) -> dict[str, Tensor]:
        """Return the gradients of a loss without the hooks, whose graph is kept."""
        parameters = [self._trained[name] for name in names]
        with self._unhooked(), _hooks_that_fire():
            found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
        return dict(zip(names, found, strict=True))

    @contextlib.contextmanager
    def _unhooked(self) -> Iterator[None]:
        self._hooks.disable_hooks()
        try:
            yield
        finally:
            self._hooks.enable_hooks()

    def _forget(self) -> None:
        """Remove what a pass has left on parameters and layers."""
        for parameter in self._trained.values():
            parameter.grad = None
            parameter.grad_sample = None  # type: ignore[attr-defined, unused-ignore]
            parameter._forward_counter = 0  # type: ignore[attr-defined, unused-ignore]
            for left in ("_norm_sample", "_norm_margin", "_current_grad_sample"):
                if hasattr(parameter, left):
                    delattr(parameter, left)
        for module in self._model.modules():
            for left in ("activations", "max_batch_len"):
                # Not by `hasattr`: wrappers of peft answer for the layer inside.
                if left in vars(module):
                    delattr(module, left)


@contextlib.contextmanager
def _hooks_that_fire() -> Iterator[None]:
    """Do not warn of layers whose inputs have no gradients, such as embeddings: the hooks need those of the outputs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        yield


@contextlib.contextmanager
def separate_losses(model: nn.Module, count: int) -> Iterator[None]:
    """Let the models of transformers below `model` return the loss of each of `count` records.

    These models compute their loss with `loss_function(logits, labels, …)`. It is called for each record, with the rows of it.
    """
    able = [module for module in model.modules() if hasattr(type(module), "loss_function")]
    # Models inside of others compute no loss, and would warn that they are asked for one.
    whole = [one for number, one in enumerate(able) if not number or getattr(one, "loss_type", None) is not None]
    before = [module.__dict__.get("_loss_function") for module in whole]
    for module in whole:
        module.loss_function = _of_each(module.loss_function, count)
    try:
        yield
    finally:
        for module, function in zip(whole, before, strict=True):
            if function is None:
                del module._loss_function
            else:
                module.loss_function = function


def _of_each(function: Callable[..., Tensor], count: int) -> Callable[..., Tensor]:
    def rows(value: Any, index: int) -> Any:
        return value[index : index + 1] if isinstance(value, Tensor) and value.dim() and len(value) == count else value

    def losses(*given: Any, **named: Any) -> Tensor:
        return torch.stack(
            [
                function(
                    *(rows(value, index) for value in given),
                    **{name: rows(value, index) for name, value in named.items()},
                ).reshape(())
                for index in range(count)
            ]
        )

    return losses


@contextlib.contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    """Let only layers with trained parameters of their own be in training, for which the hooks look."""
    before = {module: module.training for module in model.modules()}
    model.eval()
    for module in before:
        module.training = any(one.requires_grad for one in module.parameters(recurse=False))
    try:
        yield
    finally:
        for module, training in before.items():
            module.training = training


def _impossible(error: Exception) -> RunError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:300]
    tied = " Models that use their embedding as output layer have tied parameters (tie_word_embeddings=False separates them)."
    return RunError(
        f"clipping = 'ghost' is not possible for this model: {reason}.{tied if 'tying' in reason else ''} Freeze what is not "
        "supported, as adapters of peft do, or use clipping='vectorized' or 'one-by-one'"
    )


def _compare(what: str, found: Tensor, expected: Tensor, most: float) -> None:
    """Raise `RunError` if an entry differs by more than `most`, or is not finite."""
    if not bool((found.double() - expected.double().to(found.device)).norm() <= most):
        raise RunError(
            f"clipping = 'ghost': the {what} of a record tried is {_shown(found)}, and {_shown(expected)} if it is computed "
            "alone: ghost clipping is not exact for this model, so records would not be clipped to the clip norm. Use "
            "clipping='vectorized' or 'one-by-one'"
        )


def _shown(values: Tensor) -> str:
    return ", ".join(f"{float(one):.6g}" for one in values.flatten()[:2])
