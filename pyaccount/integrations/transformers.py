"""Hugging Face transformers: a `Trainer` that trains exactly the run of a certificate.

    run = pyaccount.TrainingRun("training.cert.json", "runs/first", records=len(data), clip_norm=1.0)
    trainer = PrivateTrainer(model=model, args=TrainingArguments("model", …), train_dataset=data, run=run)
    trainer.train()
    trainer.save_model()

The batch of a step is that of a round of the run, drawn as accounted; it may be empty. The gradient of each record is clipped.
The clipped gradients are added up in parts of `per_device_train_batch_size` records. The run adds noise to the sum and records
it before the optimizer steps with it. Only parameters that are trained are released, such as those of adapters of peft. This
module accounts for nothing itself. It needs transformers, torch and accelerate.
"""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyaccount.errors import MissingExtraError, RunError, importing
from pyaccount.files import write_atomically
from pyaccount.integrations.facts import Progress, check_rounds_left, check_size, rounds_of_epoch
from pyaccount.integrations.model_card import write_card
from pyaccount.integrations.training_arguments import (
    DEFAULT_NORM,
    allows_ghosts,
    check_arguments,
    check_place,
    steps_of,
)
from pyaccount.training import TrainingRun

with importing("torch", "transformers", by=__name__):
    import torch
    from torch import Tensor, nn
    from torch.utils.data import DataLoader, Dataset, Sampler
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_utils import TrainOutput, get_last_checkpoint

from pyaccount.integrations.choosing import RECORDS, Way, attend, attention_of, fastest, made_up
from pyaccount.integrations.records import Tensors, parts_of, tried_of
from pyaccount.training.torch import PrivateOptimizer, clipped_sums_of, drawn_by_key

if TYPE_CHECKING:
    from pyaccount.integrations.ghost import GhostClipping

#: The files that a model's folder gets: the state of the run in checkpoints, and its certificate.
STATE, CERTIFICATE = "pyaccount_run.json", "training.cert.json"
#: How the gradients of single records are computed.
CLIPPING = ("auto", "vectorized", "one-by-one", "ghost")
#: How many records are read for two that can be compared by the trial of ghost clipping.
TRIED = 64
#: What logs say about the training data without noise.
UNPROTECTED = ("loss", "train_loss", "total_flos")

#: What a trainer may ask for that needs a backward pass for each record.
_CHECKPOINTING = "gradient_checkpointing=True is a reason (TRL has it by default): set it to False. "

_LOG = logging.getLogger(__name__)

Examples = list[Any]


class EpochsOfRounds(Sampler[list[int]]):  # type: ignore[misc, unused-ignore]
    """The rounds that are left of an epoch, and the records of this rank in each. `RecordsOfRounds` reads these lists.

    In the first epoch of a resumed training, lists for the `seen` steps that the trainer skips come before.
    """

    def __init__(self, run: TrainingRun, seen: int) -> None:
        self._run, self._seen = run, seen % run.rounds_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        run, seen, self._seen = self._run, self._seen, 0
        yield from ([-1] for _ in range(seen))
        for number in rounds_of_epoch(run):
            yield [number, *run.batch(number).shard(run.rank, run.world).indices.tolist()]

    def __len__(self) -> int:
        return self._run.rounds_per_epoch


class OfRound(list[Any]):
    """Records, and the round in whose batch they are."""

    round = -1


class RecordsOfRounds(Dataset[Any]):  # type: ignore[misc, unused-ignore]
    """The data of a trainer, for the lists of `EpochsOfRounds`: a batch knows its round, whichever worker loads it."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return self.data[index]

    def __getitems__(self, numbers: list[int]) -> OfRound:
        """Return the records of a batch; its round is the first number."""
        indices = numbers[1:]
        together = getattr(self.data, "__getitems__", None) if indices else None
        records = OfRound(together(indices) if together else map(self.data.__getitem__, indices))
        records.round = numbers[0]
        return records


class PrivateTraining:
    """What makes a `Trainer` private: a mixin, to be named before the trainer's class. `PrivateTrainer` is the usual one."""

    def __init__(  # noqa: PLR0913 - the run, and what differs from a usual training
        self,
        model: Any = None,
        args: Any = None,
        *more: Any,
        run: TrainingRun,
        also: Mapping[str, Iterable[str]] | None = None,
        clipping: str = "auto",
        unprotected_loss: bool = False,
        public_evaluation: bool = False,
        give_up: bool = False,
        **named: Any,
    ) -> None:
        """Take the arguments of the trainer, and these:

        * `run`: the run to train. With several processes, each opens it with its rank.
        * `also`: groups of parameters that the document releases as other sums, as for `PrivateOptimizer`.
        * `clipping`: `vectorized` computes the gradients of all records of a part at once with `torch.func`, `one-by-one` has a
          backward pass for each record, and `ghost` has no gradient of a single record in memory, and needs Opacus; see
          `pyaccount.integrations.ghost` for what it refuses. `auto` takes the fastest of those that are possible, by a trial
          before the first round, with eager attention if `vectorized` needs it; the record names the way, and a resumed run
          keeps it.
        * `unprotected_loss`: logs the loss on the training data. It has no noise and no certificate covers it, so it must stay
          with those who may see the data, and so must checkpoints, whose `trainer_state.json` has the logs.
        * `public_evaluation`: states that the evaluation data need no protection, so a model may be chosen by them.
        * `give_up`: does not repeat rounds that were released after the checkpoint, as `TrainingRun.load_state_dict` says.

        Raises `RunError` for arguments that would break the guarantee, and for data of another size than the run's.
        """
        self.run, self.progress = run, Progress(run)
        args = TrainingArguments("tmp_trainer") if args is None else args
        if clipping not in CLIPPING:
            raise RunError(f"clipping = {clipping!r} is none of {', '.join(CLIPPING)}")
        if clipping == "ghost":
            import pyaccount.integrations.ghost  # noqa: F401 - Opacus is missed before the training

        check_arguments(args, public_evaluation=public_evaluation, ghost=clipping == "ghost")
        check_place(run, args.output_dir)
        # The arguments of the caller stay as they are.
        args = copy.copy(args)
        args.max_steps = steps_of(args, run)
        if args.max_grad_norm == DEFAULT_NORM:
            args.max_grad_norm = 0.0
        self._also, self._clipping, self._shown = also, clipping, unprotected_loss
        #: How the rounds are clipped; None before it is chosen.
        self._way = None if clipping == "auto" else Way(clipping)
        self._give_up = give_up
        self._seen = 0
        self._private: PrivateOptimizer | None = None
        self._collator: Callable[[Examples], Mapping[str, Any]] | None = None
        self._ghost: GhostClipping | None = None
        trainer: Any = super()
        if more:
            trainer.__init__(model, args, *more, **named)
        else:
            # Not every trainer takes its arguments in the second place.
            trainer.__init__(model, args=args, **named)
        self._check_data()
        trainer.add_callback(_StopAtTheEnd(run))

    def _check_data(self) -> None:
        trainer: Any = self
        data, run = trainer.train_dataset, self.run
        if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
            raise RunError(
                f"train_dataset is {'None' if data is None else type(data).__name__}, which has no length or no rows by number: "
                "the run draws records by their numbers, so give a data set that has both"
            )
        check_size("train_dataset", data, run, ", with one row for each record (no packing)")
        given = trainer.eval_dataset
        if any(one is data for one in (given.values() if isinstance(given, Mapping) else [given])):
            raise RunError(
                "eval_dataset is the training data: its metrics have no noise, and no certificate covers them: give other data"
            )
        if not any(parameter.requires_grad for parameter in trainer.model.parameters()):
            raise RunError("no parameter of the model is trained: call requires_grad_() for those that are to be")
        if hasattr(trainer.model, "_orig_mod"):
            raise RunError(
                "the model is compiled, and the gradients of single records are not implemented with torch.compile: give the "
                "model inside of it"
            )
        if run.world != trainer.args.world_size or run.rank != trainer.args.process_index:
            raise RunError(
                f"the run was opened with rank {run.rank} of {run.world}, and this is process {trainer.args.process_index} of "
                f"{trainer.args.world_size}: open it with rank=args.process_index, world=args.world_size"
            )

    # What the trainer asks for.

    def train(self, resume_from_checkpoint: str | bool | None = None, *more: Any, **named: Any) -> TrainOutput:
        """Train the rounds of the run, or those after a checkpoint.

        Without a checkpoint the training begins with round 0. Rounds that were released already are repeated: their sums must be
        the same bit for bit, so model and seeds must be those of the first try. Otherwise nothing is released; `give_up=True`
        leaves these rounds out.
        """
        trainer: Any = self
        run, args = self.run, trainer.args
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(args.output_dir)
            if folder is None:
                raise RunError(f"{args.output_dir} has no checkpoint to resume from: train() begins with round 0")
        self._seen = 0
        state = {**run.state_dict(), "rounds": 0}
        if folder:
            state, self._seen = _state_of(Path(folder))
        run.load_state_dict(state, give_up=self._give_up)
        check_rounds_left(run)
        if trainer.state.global_step and not folder:
            raise RunError(
                "this trainer has trained already, and its model is not as it was before round 0: train() repeats rounds. To "
                "continue, give resume_from_checkpoint=True; for more rounds, certify a document with more iterations"
            )
        self._private = None
        try:
            self._choose()
            found = super().train(folder or None, *more, **named)  # type: ignore[misc]
        finally:
            self._close_ghosts()
        if self._shown:
            return found
        return TrainOutput(found.global_step, float("nan"), _without(found.metrics, UNPROTECTED))

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return a loader of the records of each round. They are collated later, one by one."""
        trainer: Any = self
        data, self._collator = trainer.train_dataset, trainer.data_collator
        if hasattr(data, "column_names"):
            data = trainer._remove_unused_columns(data, description="training")
        else:
            self._collator = trainer._get_collator_with_removed_columns(self._collator, description="training")
        workers = trainer.args.dataloader_num_workers
        return DataLoader(
            RecordsOfRounds(data),
            batch_sampler=EpochsOfRounds(self.run, self._seen),
            collate_fn=_as_they_are,
            num_workers=workers,
            prefetch_factor=trainer.args.dataloader_prefetch_factor if workers else None,
        )

    def training_step(self, model: nn.Module, inputs: Examples, *_: Any) -> Tensor:
        """Release the clipped sum of the gradients of these records, and make the noisy mean the gradient."""
        trainer: Any = self
        number = getattr(inputs, "round", None)
        if number != self.run.round:
            drawn = "in no batch of the run" if number in (None, -1) else f"those of round {number}"
            raise RunError(
                f"the records of this step are {drawn}, and round {self.run.round} is to be released: train with the loader of "
                "PrivateTraining.get_train_dataloader, and release each of its batches once, in their order"
            )
        model.train()
        inner = trainer.accelerator.unwrap_model(model)
        if self._private is None:
            self._private = PrivateOptimizer(trainer.optimizer, self.run, inner.named_parameters(), also=self._also)
        self._private.zero_grad()
        losses = []
        # Collators may draw random numbers too.
        with drawn_by_key(self.run):
            for part in [*self.parts(inputs), {}]:  # the last part makes zeros for a batch without records
                found = self._clipped(inner, trainer._prepare_inputs(part) if part else part)
                self._private.add(found)
                losses.append(found.losses)
        assert self._way is not None
        self.run.trained_with("transformers", self._way.recorded)
        self._private.release()
        if not self._shown:
            return torch.zeros((), device=trainer.args.device)
        every = torch.cat([loss.to(trainer.args.device).float() for loss in losses if loss is not None])
        return every.mean() if len(every) else every.sum()

    def example_loss(self, model: nn.Module, example: Tensors) -> Tensor:
        """Return the loss of a batch with one record: that of `compute_loss`, which sees no other record."""
        loss: Tensor = self.compute_loss(model, dict(example))  # type: ignore[attr-defined]
        return loss

    def example_losses(self, model: nn.Module, examples: Tensors) -> Tensor:
        """Return the loss of each record of a batch, for ghost clipping: that of `example_loss` for each record.

        Override it for a model that computes its loss in a way of its own. Records must not meet in it.
        """
        from pyaccount.integrations.ghost import separate_losses

        with separate_losses(model, len(next(iter(examples.values())))):
            return self.example_loss(model, examples)

    def parts(self, examples: Sequence[Any]) -> Iterator[Tensors]:
        """Yield the records in parts of one shape, of at most `per_device_train_batch_size` records.

        Each record is collated alone. So neither padding nor anything else of its tensors depends on other records.
        """
        assert self._collator is not None
        most: int = self.args.per_device_train_batch_size  # type: ignore[attr-defined]
        return parts_of(examples, self._collator, most)

    def _clipped(self, model: nn.Module, part: Tensors) -> Any:
        if self._way is None:
            self._choose()
        assert self._way is not None
        if self._way.clipping == "ghost":
            return self._ghosts(model).sums(part)
        return self._by_records(model, part, one_by_one=self._way.clipping == "one-by-one")

    def _by_records(self, model: nn.Module, part: Tensors, *, one_by_one: bool) -> Any:
        return clipped_sums_of(model, self.example_loss, part, run=self.run, also=self._also, one_by_one=one_by_one)

    def _choose(self) -> None:
        """Choose how the rounds are clipped: as those before, or by a trial. Raises `RunError` if it is not as those before."""
        trainer: Any = self
        model = trainer.accelerator.unwrap_model(trainer.model)
        known = self.run.recorded_trainer
        if self._way is None and known is not None:
            self._way = Way.named(known.clipping)
        elif self._way is None:
            training = model.training
            model.train()
            try:
                self._way = self._timed(model)
            finally:
                model.train(training)
            _LOG.info("clipping: %s, as the record says from round 0 on", self._way.recorded)
        if self._way.eager:
            attend(model, "eager")
        self.run.trained_with("transformers", self._way.recorded)

    def _timed(self, model: nn.Module) -> Way:
        """Return the fastest way with records that are made up; warn if gradients of several cannot be computed at once."""
        trainer: Any = self
        data = trainer.get_train_dataloader().dataset
        one = trainer._prepare_inputs(next(self.parts([data[0]])))
        with torch.random.fork_rng():
            records = made_up(one, min(RECORDS, trainer.args.per_device_train_batch_size), model)
        before = attend(model, attention_of(model))
        ways = [Way("vectorized"), Way("one-by-one")]
        if allows_ghosts(trainer.args):
            ways.insert(1, Way("ghost"))
        if before not in (None, "eager"):
            ways.insert(1, Way("vectorized", eager=True))
        # All processes must come to the same choice, and times differ.
        possible, reasons = (
            ([], {}) if self.run.world > 1 else fastest(ways, lambda way: self._tried(model, way, records, before))
        )
        for way in possible:
            if way.clipping != "ghost" or self._exact_ghosts(model):
                together = any(other.clipping == "vectorized" for other in possible)
                if way == Way("one-by-one") and not together and Way("vectorized") in reasons:
                    self._warn(reasons[Way("vectorized")])
                return way
        # No way is possible with the made-up records: the first of the data decides as far as it can.
        return Way("vectorized" if self._can_vectorize(model, one) else "one-by-one")

    def _exact_ghosts(self, model: nn.Module) -> bool:
        """Return whether ghost clipping is exact for the first records of the data."""
        try:
            self._ghosts(model)
        except RunError:
            self._close_ghosts()
            return False
        return True

    def _tried(self, model: nn.Module, way: Way, records: Tensors, usual: str | None) -> Any:
        """Clip the records of the trial in a way, and leave the model as it was."""
        if way.eager:
            attend(model, "eager")
        try:
            if way.clipping != "ghost":
                return self._by_records(model, records, one_by_one=way.clipping == "one-by-one")
            from pyaccount.integrations.ghost import GhostClipping

            ghost = GhostClipping(model, self.example_losses, run=self.run, also=self._also)
            try:
                ghost.attempt([{name: tensor[:2] for name, tensor in records.items()}], self.example_loss)
                return ghost.sums(records)
            finally:
                ghost.close()
        except MissingExtraError as error:
            raise RunError(str(error)) from error
        finally:
            if way.eager:
                attend(model, usual)

    def _ghosts(self, model: nn.Module) -> GhostClipping:
        """Return the ghost clipping of the model, after trying it with the first records of the data, whichever are drawn."""
        if self._ghost is None:
            from pyaccount.integrations.ghost import GhostClipping

            trainer: Any = self
            data = trainer.get_train_dataloader().dataset
            self._ghost = GhostClipping(model, self.example_losses, run=self.run, also=self._also)
            with torch.random.fork_rng():
                tried = tried_of(next(self.parts([data[number]])) for number in range(min(TRIED, len(data))))
                self._ghost.attempt((trainer._prepare_inputs(some) for some in tried), self.example_loss)
        return self._ghost

    def _close_ghosts(self) -> None:
        if self._ghost is not None:
            self._ghost.close()
            self._ghost = None

    def _can_vectorize(self, model: nn.Module, part: Tensors) -> bool:
        """Try one record, and leave the random numbers of the training as they are."""
        one = {name: tensor[:1] for name, tensor in part.items()}
        with torch.random.fork_rng():
            try:
                clipped_sums_of(model, self.example_loss, one, run=self.run, also=self._also)
            except RuntimeError as error:
                if isinstance(error, RunError):
                    raise
                self._warn(str(error).splitlines()[0][:200])
                return False
        return True

    def _warn(self, reason: str) -> None:
        checkpointing = getattr(self.args, "gradient_checkpointing", False)  # type: ignore[attr-defined]
        warnings.warn(
            "the gradients of several records cannot be computed at once for this model, so there is a backward pass for "
            f"each record. {_CHECKPOINTING if checkpointing else ''}attn_implementation='eager' often helps; "
            f"clipping='one-by-one' says that this is expected. The reason is: {reason}",
            stacklevel=3,
        )

    def floating_point_ops(self, inputs: Any) -> int:
        """Return 0: the number of operations tells how many records were drawn, which is not released."""
        return 0

    def log(self, logs: dict[str, float], *more: Any, **named: Any) -> None:
        """Log ε and δ with what is logged about the training, and leave out what has no noise."""
        if any(name in logs for name in UNPROTECTED):
            logs = {**(logs if self._shown else _without(logs, UNPROTECTED)), **self.progress.logged()}
        super().log(logs, *more, **named)  # type: ignore[misc]

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model with its certificate, the state of the run, and the key `privacy` of its model card."""
        trainer: Any = self
        folder = Path(output_dir or trainer.args.output_dir)
        if trainer.args.should_save:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / STATE, json.dumps(self.run.state_dict(), indent=2) + "\n")
        super().save_model(output_dir, _internal_call)  # type: ignore[misc]
        self._write_card(folder)

    def create_model_card(self, *more: Any, **named: Any) -> None:
        """Write the trainer's model card, with the key `privacy` in its front matter."""
        super().create_model_card(*more, **named)  # type: ignore[misc]
        self._write_card(Path(self.args.output_dir))  # type: ignore[attr-defined]

    def hyperparameter_search(self, *_: Any, **__: Any) -> Any:
        """Refuse the search: each of its trainings would be a release of its own."""
        raise RunError(
            "hyperparameter_search trains several models on the same records, and each is a release: give every trial a run of "
            "its own, and certify them together (docs/mechanisms.md)"
        )

    def _write_card(self, folder: Path) -> None:
        trainer: Any = self
        if self.run.certificate is None or not trainer.args.should_save:
            return
        # Some trainers write a card into the model's folder before they save a model there.
        folder.mkdir(parents=True, exist_ok=True)
        self.run.certificate.save(folder / CERTIFICATE)
        card = folder / "README.md"
        if not card.exists():
            card.write_text(f"# {folder.resolve().name}\n", encoding="utf-8")
        write_card(folder / CERTIFICATE, card)


class PrivateTrainer(PrivateTraining, Trainer):  # type: ignore[misc, unused-ignore]
    """A `transformers.Trainer` for the run of a certificate.

    It takes the arguments of `Trainer` and those of `PrivateTraining`. Steps are rounds, and there are as many as certified
    unless `max_steps` or `num_train_epochs` asks for fewer; an epoch has `run.rounds_per_epoch` of them. A training that stops
    early has the guarantee of the whole run.
    """


class _StopAtTheEnd(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Ends the training after the last certified round."""

    def __init__(self, run: TrainingRun) -> None:
        self._run = run

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self._run.round >= self._run.rounds:
            control.should_training_stop = True
        return control


def _state_of(checkpoint: Path) -> tuple[dict[str, Any], int]:
    """Return the state of the run in a checkpoint, and the steps that the trainer made before it."""
    try:
        state = json.loads((checkpoint / STATE).read_text(encoding="utf-8"))
        seen = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["global_step"]
    except (OSError, ValueError, KeyError) as error:
        raise RunError(
            f"{checkpoint}: this is not a checkpoint of a private training: {STATE} and trainer_state.json cannot be read "
            f"({os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error})"
        ) from error
    return state, int(seen)


def _as_they_are(records: OfRound) -> OfRound:
    return records


def _without(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}
