"""Lightning: a module and a callback that train exactly the run of a certificate.

    class Model(PrivateModule):
        def example_loss(self, batch): ...       # of a batch with one record
        def configure_optimizers(self): ...      # as usual

    run = pyaccount.TrainingRun("training.cert.json", "runs/first", records=len(data), clip_norm=1.0)
    trainer = lightning.Trainer(callbacks=[PrivateRun(run)])
    trainer.fit(Model(), run_loader(run, data, physical=32), ckpt_path=…)

Every step of the training is a round of the run: a batch as accounted, the clipped gradients of single records, and noise that is
recorded before the optimizer steps. The state of the run is in Lightning's checkpoints. This module accounts for nothing itself.
It needs lightning and torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pyaccount.errors import RunError, importing
from pyaccount.integrations.facts import Progress, check_rounds_left, check_size, rounds_of_epoch
from pyaccount.training import TrainingRun
from pyaccount.training.run import Rehearsal

with importing("torch", "lightning", by=__name__):
    import torch
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities import rank_zero_warn
    from torch import Tensor, nn
    from torch.optim.lr_scheduler import ReduceLROnPlateau
    from torch.utils.data import DataLoader, Sampler, default_collate

from pyaccount.integrations.records import Tensors, parts_of
from pyaccount.training.torch import PrivateOptimizer, clipped_sums_of


class EpochOfRounds(Sampler[list[int]]):  # type: ignore[misc, unused-ignore]
    """The batches of a run that are left of an epoch. Its length is that of a whole epoch, since Lightning counts from there."""

    def __init__(self, run: TrainingRun) -> None:
        self.run = run

    def __iter__(self) -> Iterator[list[int]]:
        for number in rounds_of_epoch(self.run):
            yield self.run.batch(number).indices.tolist()

    def __len__(self) -> int:
        return self.run.rounds_per_epoch


def run_loader(
    run: TrainingRun,
    data: Any,
    *,
    physical: int,
    collate: Callable[[list[Any]], Any] = default_collate,
    **options: Any,
) -> DataLoader[Any]:
    """Return a loader of the rounds of a run, for `trainer.fit`.

    * `physical`: how many records have their gradients in memory at once; the batch of a round is cut into such parts.
    * `collate`: what makes a batch of records: tensors by name, or a tuple of them. It is called for each record alone.
    * `options`: others of `DataLoader`, such as `num_workers`.

    Raises `RunError` for data of another size than the run's.
    """
    check_size("data", data, run)
    together = partial(_in_parts, collate=collate, most=physical)
    return DataLoader(data, batch_sampler=EpochOfRounds(run), collate_fn=together, **options)


class PrivateModule(LightningModule):  # type: ignore[misc, unused-ignore]
    """A `LightningModule` for the run of a certificate: define `example_loss` in place of `training_step`.

    Optimizers, schedulers, validation and everything else are defined as usual. There is one optimizer. Schedulers step after
    every round, or after every epoch, which has `run.rounds_per_epoch` rounds.
    """

    #: Groups of parameters that the document releases as other sums, as for `PrivateOptimizer`.
    also: Mapping[str, Iterable[str]] | None = None
    #: A backward pass for each record, for models whose gradients cannot be computed at once by `torch.func`.
    one_by_one = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.automatic_optimization = False
        self._run: TrainingRun | None = None
        self._private: PrivateOptimizer | None = None
        self._in_loss = False

    def log(self, name: str, *more: Any, **named: Any) -> None:
        """Log a value, as `LightningModule.log` does. Raises `RunError` in `example_loss`."""
        self._check_log(repr(name))
        super().log(name, *more, **named)

    def log_dict(self, dictionary: Any, *more: Any, **named: Any) -> None:
        """Log several values, as `LightningModule.log_dict` does. Raises `RunError` in `example_loss`."""
        self._check_log(", ".join(map(repr, dictionary)))
        super().log_dict(dictionary, *more, **named)

    def _check_log(self, names: str) -> None:
        if self._in_loss:
            raise RunError(
                f"{names} is logged in example_loss: what is computed there from single records has no noise, and no certificate "
                "covers it: log metrics of public data in validation_step"
            )

    def example_loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch with one record, as the loader's collate function makes it; to be defined.

        It may not log anything: what it computes has no noise. `log` and `log_dict` raise `RunError` there.
        """
        raise NotImplementedError(f"{type(self).__name__}.example_loss is not defined")

    def begin(self, run: TrainingRun) -> None:
        """Take the run; `PrivateRun` calls this."""
        self._run, self._private = run, None

    def training_step(self, batch: list[Any], batch_idx: int) -> None:
        """Release the clipped sum of the gradients of this round, and step the optimizer with the noisy mean."""
        run, optimizer = self._run, self.optimizers()
        if run is None:
            raise RunError("the module has no run: give the trainer callbacks=[PrivateRun(run)]")
        if isinstance(optimizer, list):
            raise RunError(
                f"configure_optimizers returns {len(optimizer)} optimizers, and a round has one step: return one optimizer with "
                "several groups of parameters"
            )
        if self._private is None:
            self._private = PrivateOptimizer(optimizer.optimizer, run, self.named_parameters(), also=self.also)
        self._private.zero_grad()
        for part, names in [*batch, ({}, None)]:  # the last part makes zeros for a batch without records
            loss = partial(_loss_of, names=names)
            self._private.add(clipped_sums_of(self, loss, part, run=run, also=self.also, one_by_one=self.one_by_one))
        run.trained_with("lightning", "gradients of single records")
        self._private.release()
        optimizer.step()
        optimizer.zero_grad()
        self._schedule("step")

    def on_train_epoch_end(self) -> None:
        """Step the schedulers of epochs."""
        self._schedule("epoch")

    def _schedule(self, interval: str) -> None:
        for config in self.trainer.lr_scheduler_configs:
            if config.interval == interval:
                config.scheduler.step()


class PrivateRun(Callback):  # type: ignore[misc, unused-ignore]
    """Gives the run to the module, stops at its end, logs ε, and keeps its state in Lightning's checkpoints.

    Logs have `epsilon_so_far_upper`, `epsilon_upper` and `delta_upper`: bounds for the rounds so far, and for the whole run.
    """

    def __init__(
        self, run: TrainingRun, *, every: int = 50, public_evaluation: bool = False, give_up: bool = False
    ) -> None:
        """Take an open run.

        * `every`: after how many rounds ε is logged; it is always logged after the last one.
        * `public_evaluation`: states that the evaluation data need no protection, so a model may be chosen by them.
        * `give_up`: does not repeat rounds that were released after the checkpoint, as `TrainingRun.load_state_dict` says.
        """
        self.run, self.progress = run, Progress(run)
        self._every, self._public, self._give_up = every, public_evaluation, give_up
        self._state: dict[str, Any] | None = None
        self._random: Tensor | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the run and that of PyTorch's generator, which Lightning does not keep."""
        return {"run": self.run.state_dict(), "random": torch.get_rng_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Keep the state of a checkpoint until the training begins."""
        self._state, self._random = state["run"], state["random"]

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse what would break the guarantee. Lightning refuses clipping and accumulating by itself."""
        if stage != "fit":
            return
        if not isinstance(pl_module, PrivateModule):
            raise RunError(
                f"{type(pl_module).__name__} is not a PrivateModule: define example_loss in a subclass of it"
            )
        if type(pl_module).training_step is not PrivateModule.training_step:
            raise RunError(
                f"{type(pl_module).__name__}.training_step is defined, and it would be in the place of the private one: define "
                "example_loss, which gets a batch with one record, and no training_step"
            )
        if trainer.world_size > 1 or self.run.world > 1:
            raise RunError("several processes are not implemented with Lightning: give the trainer devices=1")
        if str(trainer.precision).startswith("16"):
            raise RunError(
                f"precision = {trainer.precision!r} scales losses and skips steps by what it sees in the gradients: use "
                "'bf16-mixed' or '32-true'"
            )
        if trainer.fast_dev_run and not isinstance(self.run, Rehearsal):
            raise RunError(
                "fast_dev_run would release rounds of the run: give run_loader and PrivateRun a rehearsal, run.rehearse()"
            )
        if trainer.overfit_batches:
            raise RunError("overfit_batches repeats batches, and the run draws them: leave it out")
        for callback in () if self._public else trainer.callbacks:
            monitor = getattr(callback, "monitor", None)
            if monitor is not None and monitor not in self.progress.logged():
                raise RunError(
                    f"{type(callback).__name__}(monitor={monitor!r}) chooses a model or the end of the training by a metric "
                    "without noise, so what is chosen reveals records, which no certificate covers: leave it out; or state with "
                    "PrivateRun(run, public_evaluation=True) that the evaluation data need no protection and have no record of "
                    "the training data"
                )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Go to the round of the checkpoint, or to round 0; rounds that were released since are repeated."""
        run = self.run
        loader = trainer.train_dataloader
        if not isinstance(getattr(loader, "batch_sampler", None), EpochOfRounds):
            raise RunError("the training data are not loaded as accounted: give fit the loader that run_loader returns")
        if loader.batch_sampler.run is not run:
            raise RunError(
                "the loader is that of another run than the callback's: give run_loader and PrivateRun the same run"
            )
        run.load_state_dict(self._state or {**run.state_dict(), "rounds": 0}, give_up=self._give_up)
        check_rounds_left(run)
        if any(isinstance(config.scheduler, ReduceLROnPlateau) for config in trainer.lr_scheduler_configs):
            raise RunError(
                "ReduceLROnPlateau follows a metric, and schedulers step here by rounds or epochs alone: use another one"
            )
        asked = (trainer.max_epochs or -1) * run.rounds_per_epoch
        if trainer.max_steps < 0 < asked < run.rounds:
            rank_zero_warn(
                f"max_epochs = {trainer.max_epochs} ends the training after {asked} of the {run.rounds} certified rounds; "
                "max_epochs=-1 trains all of them"
            )
        assert isinstance(pl_module, PrivateModule)
        pl_module.begin(run)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Go on with the random numbers of the checkpoint."""
        if self._random is not None:
            torch.set_rng_state(self._random)
            self._random = None

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log ε, and stop after the last round."""
        last = self.run.round >= self.run.rounds
        if last or self.run.round % self._every == 0:
            pl_module.log_dict(self.progress.logged(), batch_size=1)
        if last:
            trainer.should_stop = True


def _in_parts(examples: list[Any], collate: Callable[[list[Any]], Any], most: int) -> list[tuple[Tensors, Any]]:
    """Return the parts of a batch, each with what rebuilds the form that the collate function gave it."""
    if not examples:
        return []
    form = collate(examples[:1])
    names = None if isinstance(form, Mapping) else ("tuple" if isinstance(form, tuple | list) else "tensor")
    return [(part, names) for part in parts_of(examples, collate, most)]


def _loss_of(model: nn.Module, example: Tensors, names: str | None) -> Tensor:
    assert isinstance(model, PrivateModule)
    several = list(example.values())
    model._in_loss = True
    try:
        return model.example_loss(example if names is None else several if names == "tuple" else several[0])
    finally:
        model._in_loss = False
