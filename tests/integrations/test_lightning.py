"""Training with Lightning, if it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trained_elsewhere import CORRELATED, by_hand, starting, trained, with_batches, with_key

from pyaccount import TrainingRun, certify
from pyaccount.errors import PlanExceededError, RunError
from pyaccount.training.check_record import hold_record

WHY = "the integration of Lightning is NOT tested here"
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
lightning = pytest.importorskip("lightning", reason=f"lightning is not installed: {WHY}")

from lightning.fabric.utilities.exceptions import MisconfigurationException  # noqa: E402 - after the skips
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint  # noqa: E402

from pyaccount.integrations.lightning import PrivateModule, PrivateRun, run_loader  # noqa: E402

# Lightning advises about workers and loggers.
pytestmark = [pytest.mark.filterwarnings("ignore")]

RECORDS, ROUNDS, WIDTH = 60, 8, 4
DOCUMENT = trained("lightning", RECORDS, ROUNDS)
SPARSE = with_batches(DOCUMENT, 0.4)
started = starting(DOCUMENT)


class Model(PrivateModule):  # type: ignore[misc]
    """A small network with dropout, momentum and a schedule."""

    def __init__(self, dropout: float = 0.2, rate: float = 0.1) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 3), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(3, 2)
        )
        self.rate = rate

    def example_loss(self, batch: Any) -> Any:
        inputs, targets = batch
        return torch.nn.functional.cross_entropy(self.net(inputs), targets)

    def configure_optimizers(self) -> Any:
        sgd = torch.optim.SGD(self.parameters(), lr=self.rate, momentum=0.5)
        schedule = torch.optim.lr_scheduler.LinearLR(sgd, 1.0, 0.1, ROUNDS)
        return {"optimizer": sgd, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def data(count: int = RECORDS) -> Any:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, WIDTH, generator=generator)
    return torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 0).long())


def trainer(folder: Path, run: TrainingRun, *more: Any, **options: Any) -> Any:
    usual = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False, "enable_model_summary": False}
    give_up = options.pop("give_up", False)
    return lightning.Trainer(
        default_root_dir=folder,
        callbacks=[PrivateRun(run, every=2, give_up=give_up), *more],
        **{"enable_checkpointing": bool(more), **usual, **options},
    )


def weights(model: Any) -> dict[str, Any]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("changes", [{}, CORRELATED, SPARSE], ids=["poisson", "correlated", "sparse"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_the_weights_are_those_of_a_loop_by_hand(
    tmp_path: Path, changes: dict[str, Any], one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, key = [], []
    inputs, targets = data().tensors
    for place in ("lightning", "hand"):
        model = Model(dropout=0.0)
        model.one_by_one = one_by_one
        with with_key(started(tmp_path / place, changes), key, monkeypatch) as run:
            if place == "hand":
                config = model.configure_optimizers()
                steps = [config["optimizer"], config["lr_scheduler"]["scheduler"]]
                by_hand(run, model, lambda net, index: net.example_loss((inputs[[index]], targets[[index]])), steps)
            else:
                trainer(tmp_path, run).fit(model, run_loader(run, data(), physical=4))
            assert run.released == ROUNDS
        ended.append(weights(model))
    torch.testing.assert_close(*ended, rtol=1e-4, atol=1e-5)


class Stops(lightning.pytorch.Callback):  # type: ignore[misc]
    """Ends the process after a round, as a crash does."""

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if trainer.callbacks[0].run.round == 5:
            raise InterruptedError


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["poisson", "correlated"])
@pytest.mark.parametrize("saved", [True, False])
def test_a_resumed_training_is_the_uninterrupted_one(
    tmp_path: Path, changes: dict[str, Any], saved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, momentum and a schedule, bit for bit."""
    key: list[Any] = []
    with with_key(started(tmp_path / "whole", changes), key, monkeypatch) as run:
        whole = Model()
        trainer(tmp_path, run).fit(whole, run_loader(run, data(), physical=4))
    saves = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=3, filename="{step}", save_top_k=-1)
    with with_key(started(tmp_path / "again", changes), key, monkeypatch) as run:
        with pytest.raises(InterruptedError):
            trainer(tmp_path, run, saves, Stops()).fit(Model(), run_loader(run, data(), physical=4))
        assert run.released == 5
    (path,) = (tmp_path / "saved").iterdir()
    with with_key(started(tmp_path / "again", changes), key) as run:
        model = Model()
        fitted = trainer(tmp_path, run)
        fitted.fit(model, run_loader(run, data(), physical=4), ckpt_path=path if saved else None, weights_only=False)
        assert run.released == run.round == ROUNDS
        assert fitted.global_step == ROUNDS
    torch.testing.assert_close(weights(whole), weights(model), rtol=0, atol=0)


def test_other_sums_are_refused_unless_rounds_are_given_up(tmp_path: Path) -> None:
    with started(tmp_path) as run, pytest.raises(InterruptedError):
        trainer(tmp_path, run, Stops(), enable_checkpointing=False).fit(Model(), run_loader(run, data(), physical=4))
    with started(tmp_path) as run:
        other = Model()
        torch.nn.init.ones_(other.net[0].weight)
        with pytest.raises(RunError, match="another sum"):
            trainer(tmp_path, run).fit(other, run_loader(run, data(), physical=4))
    with started(tmp_path) as run:
        trainer(tmp_path, run, give_up=True).fit(Model(), run_loader(run, data(), physical=4))
        assert run.released == ROUNDS
        with pytest.raises(PlanExceededError, match="all 8 rounds"):
            trainer(tmp_path, run, give_up=True).fit(Model(), run_loader(run, data(), physical=4))


def test_epsilon_in_the_logs_is_that_of_the_certificate(tmp_path: Path) -> None:
    certificate, seen = certify(DOCUMENT), []

    class Reads(lightning.pytorch.Callback):  # type: ignore[misc]
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            seen.append({name: float(value) for name, value in trainer.callback_metrics.items()})

    with TrainingRun(certificate, tmp_path / "run", records=RECORDS) as run:
        trainer(tmp_path, run, Reads(), enable_checkpointing=False).fit(Model(), run_loader(run, data(), physical=4))
    bounds = [entry["epsilon_so_far_upper"] for entry in seen if "epsilon_so_far_upper" in entry]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] == pytest.approx(certificate.epsilon, rel=1e-6)  # Lightning keeps metrics in float32
    assert hold_record(tmp_path / "run" / "record.jsonl", certificate).released == ROUNDS


class Plain(lightning.LightningModule):  # type: ignore[misc]
    """A module that trains as usual."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Linear(WIDTH, 2)

    def training_step(self, batch: Any, index: int) -> Any:
        return self.net(batch[0]).sum()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Logs(Model):
    """Logs its loss, which has no noise."""

    together = False

    def example_loss(self, batch: Any) -> Any:
        loss = super().example_loss(batch)
        if self.together:
            self.log_dict({"train_loss": loss})
        else:
            self.log("train_loss", loss)
        return loss


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_a_loss_of_records_is_not_logged(tmp_path: Path, one_by_one: bool, together: bool) -> None:
    with started(tmp_path, with_batches(DOCUMENT, 50)) as run:
        model = Logs()
        model.one_by_one, model.together = one_by_one, together
        with pytest.raises(RunError, match="'train_loss' is logged in example_loss"):
            trainer(tmp_path, run).fit(model, run_loader(run, data(), physical=4))
        assert run.released == 0
        assert not model._in_loss


class OwnStep(Model):
    """Has a step of its own, which is not private."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.example_loss(batch)


def test_a_rehearsal_trains_without_a_release(tmp_path: Path) -> None:
    with started(tmp_path / "run") as run:
        for options in ({"fast_dev_run": True}, {}):
            with run.rehearse() as rehearsal:
                trainer(tmp_path, rehearsal, **options).fit(Model(), run_loader(rehearsal, data(), physical=4))
                assert rehearsal.released == (1 if options else ROUNDS)
        assert run.released == run.round == 0


class Follows(Model):
    """Lowers its rate when a metric no longer falls."""

    def configure_optimizers(self) -> Any:
        sgd = torch.optim.SGD(self.parameters(), lr=self.rate)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd)
        return {"optimizer": sgd, "lr_scheduler": {"scheduler": plateau, "monitor": "val_loss"}}


class Steps(Model):
    """Halves its rate after every epoch."""

    def configure_optimizers(self) -> Any:
        sgd = torch.optim.SGD(self.parameters(), lr=self.rate)
        return [sgd], [torch.optim.lr_scheduler.StepLR(sgd, 1, 0.5)]


def test_an_epoch_has_as_many_rounds_as_it_takes_to_draw_all_records(tmp_path: Path) -> None:
    per_epoch, seen = 3, []

    class Counts(lightning.pytorch.Callback):  # type: ignore[misc]
        def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
            seen.append((trainer.current_epoch, run.round, trainer.optimizers[0].param_groups[0]["lr"]))

    with started(tmp_path / "all", with_batches(DOCUMENT, RECORDS / per_epoch)) as run:
        trainer(tmp_path, run, Counts(), enable_checkpointing=False).fit(Steps(), run_loader(run, data(), physical=4))
    assert seen == [(0, 3, 0.1), (1, 6, 0.05), (2, ROUNDS, 0.025)]
    with started(tmp_path / "one", with_batches(DOCUMENT, RECORDS / per_epoch)) as run:
        with pytest.warns(UserWarning, match="max_epochs = 1 ends the training after 3 of the 8 certified rounds"):
            trainer(tmp_path, run, max_epochs=1).fit(Model(), run_loader(run, data(), physical=4))
        assert run.released == 3


def test_what_would_break_the_guarantee_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        batches = run_loader(run, data(), physical=4)
        with pytest.raises(RunError, match="data has 59 records, and the run has 60"):
            run_loader(run, data(59), physical=4)
        with pytest.raises(RunError, match="Plain is not a PrivateModule"):
            trainer(tmp_path, run).fit(Plain(), batches)
        with pytest.raises(RunError, match="not loaded as accounted"):
            trainer(tmp_path, run).fit(Model(), torch.utils.data.DataLoader(data(), batch_size=4, shuffle=True))
        with pytest.raises(RunError, match=r"OwnStep\.training_step is defined.*example_loss"):
            trainer(tmp_path, run).fit(OwnStep(), batches)
        with started(tmp_path / "other") as other, pytest.raises(RunError, match="the loader is that of another run"):
            trainer(tmp_path, run).fit(Model(), run_loader(other, data(), physical=4))
        with pytest.raises(RunError, match="run is a str, and an open run is needed"):
            PrivateRun("training.cert.json")
        with pytest.raises(RunError, match="overfit_batches"):
            trainer(tmp_path, run, overfit_batches=2).fit(Model(), batches)
        with pytest.raises(RunError, match="fast_dev_run would release rounds"):
            trainer(tmp_path, run, fast_dev_run=True).fit(Model(), batches)
        for option in ("gradient_clip_val", "accumulate_grad_batches"):
            with pytest.raises(MisconfigurationException, match=option):
                trainer(tmp_path, run, **{option: 2}).fit(Model(), batches)
        for callback in (EarlyStopping("val_loss"), ModelCheckpoint(tmp_path, monitor="val_loss")):
            with pytest.raises(RunError, match=r"monitor='val_loss'\) chooses a model.*public_evaluation=True"):
                trainer(tmp_path, run, callback, enable_checkpointing=True).fit(Model(), batches)
        with pytest.raises(RunError, match="ReduceLROnPlateau follows a metric"):
            trainer(tmp_path, run).fit(Follows(), batches)
        plain = lightning.Trainer(callbacks=[], default_root_dir=tmp_path, accelerator="cpu", logger=False)
        with pytest.raises(RunError, match="no run: give the trainer"):
            plain.fit(Model(), batches)
        assert run.released == 0
