"""Opacus: `make_private` with the batches, the noise and the record of a certified run.

    run = pyaccount.TrainingRun("training.cert.json", "runs/first", records=len(data), clip_norm=1.0)
    model, optimizer, loader = PrivacyEngine(run).make_private(module=model, optimizer=optimizer, data_loader=loader)

The training loop stays as it is. Opacus computes the gradients of single records, clips them and adds them up. The batches, the
noise, which is correlated if the document has a matrix, and the normaliser are those of the run. This module accounts for nothing
itself. It needs opacus and torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyaccount.errors import RunError, importing
from pyaccount.integrations.facts import Progress, check_size
from pyaccount.training import TrainingRun

with importing("torch", "opacus", by=__name__):
    import torch
    from opacus.grad_sample import (
        AbstractGradSampleModule,
        GradSampleModule,
        GradSampleModuleExpandedWeights,
    )
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
    from opacus.validators import ModuleValidator
    from torch import nn
    from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from pyaccount.integrations.opacus_ghost import GhostModule, TriedLoss
from pyaccount.training.clipping import LEAST_NORM, wide
from pyaccount.training.dropout import draw_by_key_in
from pyaccount.training.precision import weighted_sums, without_autocast
from pyaccount.training.torch import RunBatchSampler, collate
from pyaccount.training.unchanged import check_layers, watch

#: Opacus's ways to compute the gradients of single records that clip them to one norm over all parameters.
MODES, GHOST = ("hooks", "functorch", "ew", "ghost"), "ghost"
#: Its other ways, and why they are refused.
REFUSED = {
    "no_op": "it computes no gradients of single records, so nothing can be clipped",
    "ghost_fsdp": "it shards the model over several processes, which is not implemented here",
}


class ExpandedWeights(GradSampleModuleExpandedWeights):  # type: ignore[misc, unused-ignore]
    """Opacus's module for PyTorch's expanded weights, which also takes an empty batch: its gradients have no rows."""

    def forward(self, inputs: Any, *more: Any, **named: Any) -> Any:
        """Run the module; an empty batch without expanded weights, which have none."""
        if len(inputs):
            return super().forward(inputs, *more, **named)
        for parameter in self._module.parameters():
            if parameter.requires_grad:
                parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))  # type: ignore[attr-defined, unused-ignore]
        return self._module(inputs, *more, **named)


class _EmptyBatches:
    """What Opacus's modules with hooks get: an empty batch, which their formulas for layers do not take, has no gradients."""

    hooks_enabled: bool

    def capture_backprops_hook(
        self, module: nn.Module, inputs: Any, outputs: Any, loss_reduction: str, batch_first: bool
    ) -> None:
        """Compute the gradients of single records for a layer; without records they are tensors without rows."""
        if not self.hooks_enabled or outputs[0].shape[0 if batch_first else 1]:
            usual: Callable[..., None] = super().capture_backprops_hook  # type: ignore[misc]
            return usual(module, inputs, outputs, loss_reduction=loss_reduction, batch_first=batch_first)
        layer: Any = module
        layer.activations.pop()
        parameter: Any
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter._forward_counter -= 1
                self.without_rows(parameter)
        return None

    def without_rows(self, parameter: Any) -> None:
        """Say that a parameter has the gradients of no records."""
        parameter.grad_sample = parameter.new_zeros((0, *parameter.shape))


class HooksModule(_EmptyBatches, GradSampleModule):  # type: ignore[misc, unused-ignore]
    """Opacus's module with hooks, which also takes an empty batch."""


class GhostClippingModule(_EmptyBatches, GhostModule):
    """Opacus's module for ghost clipping, with exact norms and a trial, which also takes an empty batch."""

    def without_rows(self, parameter: Any) -> None:
        """Say that a parameter has the norms of no records."""
        parameter._norm_sample = parameter._norm_margin = parameter.new_zeros(0)


def _module_class(mode: str) -> Any:
    """Return the class of Opacus's modules for one of `MODES`."""
    return {"ew": ExpandedWeights, GHOST: GhostClippingModule}.get(mode, HooksModule)


class HandedOut(RunBatchSampler):
    """The batches of a run, each of which is drawn only after the rounds before it were released."""

    #: How many batches the workers of a loader draw in advance.
    ahead = 0
    #: The round of the last batch that was drawn, and of the one that `RunLoader` has handed out; -1 if there is none.
    drawn, handed = -1, -1
    #: The iterations that draw and hand out. One that was given up may end later than the next one begins.
    drawing: object = None
    handing: object = None

    def __iter__(self) -> Iterator[list[int]]:
        self.drawing = iteration = object()
        self.handed = -1
        try:
            for number, indices in enumerate(super().__iter__(), self._run.round):
                self.check(number, self.ahead)
                self.drawn = number
                yield indices
        finally:
            # What an iteration has drawn that was given up is not trained with. With workers the drawing ends earlier.
            if self.drawing is iteration and not self.ahead:
                self.drawn = -1

    def hand_out(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield the batches that a loader makes of this sampler, each after the rounds before it were released."""
        self.handing = iteration = object()
        try:
            for number, batch in enumerate(batches, self._run.round):
                self.check(number, 0)
                self.handed = number
                yield batch
        finally:
            if self.handing is iteration:
                self.handed = self.drawn = -1

    def check(self, number: int, ahead: int) -> None:
        """Raise `RunError` if the rounds before a batch were not released, except for those drawn in advance."""
        run = self._run
        if not run.round <= number <= run.round + ahead:
            raise RunError(
                f"the loader is asked for the batch of round {number}, and the next round to release is {run.round}: call "
                "zero_grad(), backward() and step() once for each batch of the loader, also for an empty one. After this error "
                "continue from a checkpoint with load_state_dict, and iterate over the loader anew"
            )

    def hands_out(self, number: int) -> bool:
        """Return whether the batch in the hands of the training loop is that of a round.

        `BatchMemoryManager` reads this sampler with a loader of its own. With workers it may be any that was drawn in advance.
        """
        return self.handed == number if self.handed >= 0 else number <= self.drawn <= number + self.ahead


class RunLoader(DataLoader[Any]):  # type: ignore[misc, unused-ignore]
    """A loader of the batches of a run, which knows the round of the batch that it has handed out."""

    def __iter__(self) -> Any:
        """Yield the batches. Raises `RunError` if a batch is asked for before the rounds of the earlier ones were released."""
        batches: Any = super().__iter__()
        return self.batch_sampler.hand_out(batches)  # type: ignore[union-attr, unused-ignore]


class _Released:
    """What both optimizers of Opacus get: their noise is the release of a round."""

    run: TrainingRun
    params: list[nn.Parameter]
    max_grad_norm: float
    names: Mapping[int, str]
    handed: HandedOut
    #: How Opacus computes the gradients of single records.
    mode: str
    #: How many records were clipped for the sums of this round.
    clipped = 0

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier of the run, for those who look: nothing is computed from it."""
        return self.run.noise_multiplier()

    @noise_multiplier.setter
    def noise_multiplier(self, value: float) -> None:
        # Opacus's optimizer sets what it was made with; later only schedulers do.
        if hasattr(self, "run") and value != self.run.noise_multiplier():
            raise RunError(
                f"noise_multiplier = {value!r}: the noise is that of the certificate, so leave schedulers of the noise out. "
                "Noise that changes is a schedule of the document: `noise: {multiplier: …, schedule: …}`"
            )

    @property
    def _step_supports_amp_scaling(self) -> bool:
        # This is the first thing that `GradScaler.step` asks an optimizer.
        raise RunError(
            "a GradScaler scales the loss, and so the gradients of single records before they are clipped: call "
            "loss.backward() and optimizer.step() without it. bfloat16 needs no scaler"
        )

    def add_noise(self) -> None:
        """Release the sums of this round, and make the noisy mean the gradient.

        Raises the errors of `Step.release`, and `RunError` if a scheduler has changed the clip norm, or if the records that were
        clipped are not as many as the batch of the round has.
        """
        self.check_norm()
        self.check_batch()
        run = self.run
        sums = {}
        for parameter in self.params:
            # A layer that no record of the batch has used has no sum.
            total = getattr(parameter, "summed_grad", None)
            tensor = torch.zeros_like(parameter) if total is None else total.view_as(parameter)
            sums[self.names[id(parameter)]] = tensor.detach().float().cpu().numpy()
        run.trained_with("opacus", self.mode)
        with run.step() as step:
            means = step.release(sums)
        assert isinstance(means, dict)
        for parameter in self.params:
            parameter.grad = torch.from_numpy(means[self.names[id(parameter)]]).to(parameter)
        self.clipped = 0

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Forget the gradients, and the sums too unless this is a part of a batch."""
        if not self._is_last_step_skipped:  # type: ignore[attr-defined]
            self.clipped = 0
        super().zero_grad(set_to_none)  # type: ignore[misc]

    def scale_grad(self) -> None:
        """Leave the gradient as it is: the run has divided the sum by its normaliser."""

    def check_batch(self) -> None:
        """Raise `RunError` if the sums cannot be those of the batch of this round."""
        run = self.run
        if not self.handed.hands_out(run.round):
            raise RunError(
                f"the batch of round {run.round} was not taken from the loader that make_private returned: train with that "
                "loader, which draws the records as they were accounted for, and not with your own. Call step() inside of the "
                "loop over it, or keep its iterator: a batch of an iterator that was given up is not trained with"
            )
        if self.clipped != len(run.batch(run.round).indices):
            raise RunError(
                f"the gradients for round {run.round} are not those of its batch, which has another number of records: call "
                "zero_grad(), backward() and step() once for each batch of the loader, also for an empty one, and accumulate no "
                "gradients (BatchMemoryManager makes smaller parts). After this error continue from a checkpoint with "
                "load_state_dict, and iterate over the loader anew"
            )

    def check_norm(self) -> None:
        """Raise `RunError` if gradients were clipped to another norm than that of the run."""
        if self.max_grad_norm != self.run.clip_norm:
            raise RunError(
                f"max_grad_norm = {self.max_grad_norm!r}, and the clip norm of the run is {self.run.clip_norm!r}: the "
                "certificate is about one clip norm, so leave schedulers of max_grad_norm out"
            )


class RunOptimizer(_Released, DPOptimizer):  # type: ignore[misc, unused-ignore]
    """Opacus's optimizer, whose noise and normaliser are those of a run."""

    def clip_and_accumulate(self) -> None:
        """Clip the gradients of single records and add them up, in float32 where Opacus may round more; count the records."""
        samples = [wide(one).detach() for one in self.grad_samples]
        count = len(samples[0])
        self.clipped += count
        with without_autocast(samples):
            norms = [
                torch.linalg.vector_norm(one.flatten(1) if one.dim() > 1 else one[:, None], dim=1) for one in samples
            ]
            norm = torch.linalg.vector_norm(torch.stack([one.to(samples[0].device) for one in norms]), dim=0)
            factors = (self.max_grad_norm / norm.clamp_min(LEAST_NORM)).clamp_max(1.0)
        names = [self.names[id(parameter)] for parameter in self.params]
        sums = weighted_sums(factors, dict(zip(names, samples, strict=True)))
        for name, parameter in zip(names, self.params, strict=True):
            _check_processed_flag(parameter.grad_sample)
            total = sums[name]
            parameter.summed_grad = total if parameter.summed_grad is None else parameter.summed_grad + total
            _mark_as_processed(parameter.grad_sample)


class GhostRunOptimizer(_Released, DPOptimizerFastGradientClipping):  # type: ignore[misc, unused-ignore]
    """The same for ghost clipping."""


class PrivacyEngine:
    """What stands in for `opacus.PrivacyEngine`: it has the run of a certificate, and no accountant of its own."""

    def __init__(self, run: TrainingRun = None, **other: Any) -> None:  # type: ignore[assignment, unused-ignore]
        """Take an open run. Raises `RunError` for a run of several processes, which is not implemented with Opacus."""
        self.run, self.progress = run, Progress(run)
        if other:
            raise RunError(
                f"{', '.join(sorted(other))}: leave this out. The run has the accounting, so there is nothing to choose here"
            )
        if run.world > 1:
            raise RunError(
                f"the run has {run.world} ranks, and Opacus's distributed optimizers are not implemented here: use "
                "pyaccount.training.torch.PrivateOptimizer, which adds up the sums of all ranks"
            )
        if run.also_clip_norms:
            raise RunError(
                "the document releases other sums of each batch (noise.also), and Opacus makes one sum: use "
                "pyaccount.training.torch.PrivateOptimizer with also="
            )

    def make_private(  # noqa: PLR0913 - the objects of a training, as Opacus names them
        self,
        *,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        data_loader: DataLoader[Any],
        criterion: Any = None,
        batch_first: bool = True,
        loss_reduction: str = "mean",
        grad_sample_mode: str = "hooks",
        **other: Any,
    ) -> Any:
        """Return the model, the optimizer and the loader for the run, as `opacus.PrivacyEngine.make_private` does.

        * `module` gets the gradients of single records; `loss_reduction` says how the loss adds up records, as in Opacus.
        * An iteration over the loader has as many rounds as `data_loader` has batches, so loops over epochs stay as they are. It
          has none after the last certified round. Some batches may be empty, and are rounds like any other: `optimizer.step()`
          belongs to every batch of the loader. `BatchMemoryManager` works.
        * With `grad_sample_mode="ghost"`, give `criterion`, and get it back in the third place, as in Opacus.

        Raises `RunError` for data of another size than the run's, for a parameter that the optimizer changes and the module
        does not have, and for arguments that contradict the run: noise, sampling rate and clip norm are those of the run.
        """
        if other:
            raise RunError(
                f"{', '.join(sorted(other))}: leave this out. The noise, the batches and the clip norm are those of the run, and "
                "the gradient of each record is clipped over all parameters"
            )
        if grad_sample_mode not in MODES:
            why = REFUSED.get(grad_sample_mode, "it is no way in which Opacus clips over all parameters")
            raise RunError(f"grad_sample_mode = {grad_sample_mode!r} is none of {', '.join(MODES)}: {why}")
        if grad_sample_mode == "ew" and not batch_first:
            raise RunError(
                "batch_first = False: PyTorch's expanded weights (grad_sample_mode='ew') count records by the first dimension: "
                "use 'hooks'"
            )
        if (grad_sample_mode == GHOST) != (criterion is not None):
            raise RunError("criterion and grad_sample_mode='ghost' belong together: give both or none of them")
        loader = self._loader(data_loader)
        inner = module._module if isinstance(module, AbstractGradSampleModule) else module
        check_layers(inner)
        ModuleValidator.validate(inner, strict=True)
        # The module gets its hooks last: after an error above it is as it was.
        kind = GhostRunOptimizer if grad_sample_mode == GHOST else RunOptimizer
        stepped = self._optimizer(optimizer, inner, kind, loss_reduction)
        stepped.handed, stepped.mode = loader.batch_sampler, grad_sample_mode
        private: Any = self._model(module, batch_first, loss_reduction, grad_sample_mode)
        if grad_sample_mode == GHOST:
            private.optimizer = stepped
            return private, stepped, TriedLoss(private, stepped, criterion, loss_reduction), loader
        return private, stepped, loader

    def make_private_with_epsilon(self, **_: Any) -> Any:
        """Refuse to choose the noise, which is that of the certificate."""
        raise RunError(
            "make_private_with_epsilon chooses the noise, and here the certificate has chosen it: certify a document with this "
            "epsilon and `noise: {multiplier: solve}`, open its run, and call make_private"
        )

    @property
    def accountant(self) -> Any:
        """Refuse: the accounting is that of the run."""
        raise RunError("accountant: the run has the accounting: run.accountant(), or get_epsilon() of this engine")

    def save_checkpoint(self, *_: Any, **__: Any) -> None:
        """Refuse, and name what a checkpoint of a run contains."""
        raise RunError(
            "save_checkpoint knows no run: save model.state_dict(), optimizer.state_dict() and engine.state_dict() yourself"
        )

    def load_checkpoint(self, *_: Any, **__: Any) -> None:
        """Refuse, and name what a checkpoint of a run contains."""
        raise RunError(
            "load_checkpoint knows no run: load the states of the model and the optimizer, and engine.load_state_dict(state)"
        )

    def get_epsilon(self, delta: float | None = None) -> float:
        """Return an upper bound on ε of the rounds that were released, at `delta` (by default that of the document).

        For a training that stops because somebody looked at its releases, the guarantee is that of the whole run:
        `run.certificate`.
        """
        found = self.progress.epsilon() if delta is None else None
        return self.run.accountant().epsilon_spent(delta) if found is None else found

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint contains beside the states of the model and of the optimizer: that of the run."""
        return self.run.state_dict()

    def load_state_dict(self, state: Mapping[str, Any], *, give_up: bool = False) -> None:
        """Continue from a checkpoint, as `TrainingRun.load_state_dict` does. Iterate over the loader anew after that."""
        self.run.load_state_dict(state, give_up=give_up)

    def _model(self, module: nn.Module, batch_first: bool, loss_reduction: str, mode: str) -> nn.Module:
        if isinstance(module, AbstractGradSampleModule):
            if (
                module.batch_first != batch_first
                or module.loss_reduction != loss_reduction
                or type(module) not in (_module_class(mode), None if mode == "ew" else GradSampleModule)
                or mode == GHOST
            ):
                raise RunError("module has been made private already, in another way: give the module inside of it")
            return module
        options: dict[str, Any] = {"batch_first": batch_first, "loss_reduction": loss_reduction}
        if mode == GHOST:
            options["max_grad_norm"] = self.run.clip_norm
        if mode == "functorch":
            options["force_functorch"] = True
        wrapped: nn.Module = _module_class(mode)(module, **options)
        watch(wrapped)
        draw_by_key_in(wrapped, self.run)
        return wrapped

    def _optimizer(
        self, optimizer: torch.optim.Optimizer, module: nn.Module, kind: type[Any], loss_reduction: str
    ) -> Any:
        plain = optimizer.original_optimizer if isinstance(optimizer, DPOptimizer) else optimizer
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        trained = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
        changed = {id(p) for group in plain.param_groups for p in group["params"] if p.requires_grad}
        if changed - set(names):
            raise RunError(
                "the optimizer has parameters that are not those of the module, and their gradients would have no noise: make "
                "it of module.parameters()"
            )
        if trained - changed:
            missing = sorted(names[one] for one in trained - changed)
            raise RunError(
                f"{', '.join(missing)}: trained, and not in the optimizer, so Opacus would not clip with it: add it to the "
                "optimizer, or call requires_grad_(False)"
            )
        made = kind(
            plain,
            noise_multiplier=self.run.noise_multiplier(),
            max_grad_norm=self.run.clip_norm,
            expected_batch_size=self.run.normaliser(),  # not used: the run divides
            loss_reduction=loss_reduction,
        )
        made.run, made.names = self.run, names
        return made

    def _loader(self, given: DataLoader[Any]) -> DataLoader[Any]:
        """Return a loader of the run's batches that reads the same data in the same way."""
        data: Any = given.dataset
        if isinstance(data, IterableDataset):
            raise RunError(
                "data_loader reads an IterableDataset: the run draws records by their numbers, so give a data set with a length "
                "and rows by number"
            )
        check_size("data_loader", data, self.run)
        _check_sampler(given)
        batches = HandedOut(self.run, len(given))
        batches.ahead = given.num_workers * (given.prefetch_factor or 0)
        return RunLoader(
            data,
            batch_sampler=batches,
            collate_fn=collate(data, given.collate_fn),
            num_workers=given.num_workers,
            pin_memory=given.pin_memory,
            timeout=given.timeout,
            worker_init_fn=given.worker_init_fn,
            multiprocessing_context=given.multiprocessing_context,
            prefetch_factor=given.prefetch_factor,
            persistent_workers=given.persistent_workers,
        )


def _check_sampler(given: DataLoader[Any]) -> None:
    """Raise `RunError` if a loader draws otherwise than in turn or at random among all records: the run would ignore that."""
    batches, sampler = given.batch_sampler, given.sampler
    if isinstance(batches, HandedOut):
        return
    if type(batches) is not BatchSampler:
        what = "reads single records" if batches is None else f"has the batches of a {type(batches).__name__}"
        raise RunError(
            f"data_loader {what}, and the batches are those of the run: give a loader with batch_size and shuffle"
        )
    if type(sampler) is SequentialSampler or (type(sampler) is RandomSampler and not sampler.replacement):
        return
    raise RunError(
        f"data_loader draws with {type(sampler).__name__}, and the run draws among all {len(given.dataset)} records as its "  # type: ignore[arg-type, unused-ignore]
        "certificate says: to leave records out, give torch.utils.data.Subset(data, indices) and a certificate for its size; "
        "probabilities that differ are strata of the document"
    )
