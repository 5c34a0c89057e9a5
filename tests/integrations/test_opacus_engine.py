"""Opacus's objects with the batches, the noise and the record of a run, if it is installed."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from plain_documents import sectioned
from trained_elsewhere import CORRELATED, by_hand, starting, trained, with_batches, with_key

from pyaccount import TrainingRun, certify
from pyaccount.errors import RunError
from pyaccount.training.check_record import hold_record
from pyaccount.training.run import Step

WHY = "the integration of Opacus is NOT tested here"
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")

from opacus.schedulers import ExponentialGradClip, ExponentialNoise  # noqa: E402 - after the skips
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402

from pyaccount.integrations.opacus import PrivacyEngine  # noqa: E402

# Opacus registers hooks in a way that PyTorch warns about.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning", "UserWarning")
]

RECORDS, ROUNDS, WIDTH = 60, 8, 4
DOCUMENT = trained("opacus", RECORDS, ROUNDS)
SPARSE = with_batches(DOCUMENT, 0.4)
started = starting(DOCUMENT)


def net() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))


def data(count: int = RECORDS) -> Any:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, WIDTH, generator=generator)
    return torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 0).long())


def loader(count: int = RECORDS, **options: Any) -> Any:
    return torch.utils.data.DataLoader(data(count), **{"batch_size": 20, **options})


def made(run: TrainingRun, model: Any, given: Any = None, **options: Any) -> Any:
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    given = loader() if given is None else given
    return PrivacyEngine(run).make_private(module=model, optimizer=sgd, data_loader=given, **options)


def in_mode(run: TrainingRun, model: Any, mode: str, given: Any = None) -> Any:
    """Return the model, the optimizer, the loader and the loss of a way to compute gradients."""
    criterion = torch.nn.CrossEntropyLoss()
    options = {"criterion": criterion} if mode == "ghost" else {}
    private, optimizer, *more, batches = made(run, model, given, grad_sample_mode=mode, **options)
    return private, optimizer, batches, more[0] if more else criterion


def epoch(private: Any, optimizer: Any, batches: Any, criterion: Any = torch.nn.functional.cross_entropy) -> None:
    for inputs, targets in batches:
        optimizer.zero_grad()
        criterion(private(inputs), targets).backward()
        optimizer.step()


def trained_in(run: TrainingRun, way: str) -> Any:
    """Train with Opacus in one of its ways, with loops over epochs as its users have them."""
    model, (mode, _, physical) = net(), way.partition("-")
    mode, physical = ("hooks", "physical") if mode == "physical" else (mode, physical)
    private, optimizer, batches, criterion = in_mode(run, model, mode)
    while run.round < run.rounds:
        before = run.round
        if physical:
            with BatchMemoryManager(data_loader=batches, max_physical_batch_size=2, optimizer=optimizer) as parts:
                epoch(private, optimizer, parts, criterion)
        else:
            epoch(private, optimizer, batches, criterion)
        assert run.round == min(before + 3, run.rounds)  # the given loader has three batches
    assert not list(batches)
    return model


@pytest.mark.parametrize("changes", [{}, CORRELATED, SPARSE], ids=["poisson", "correlated", "sparse"])
@pytest.mark.parametrize("way", ["hooks", "functorch", "ew", "ghost", "physical", "ew-physical", "ghost-physical"])
def test_the_weights_are_those_of_a_loop_by_hand(
    tmp_path: Path, changes: dict[str, Any], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, key = [], []
    (inputs, targets), loss = data().tensors, torch.nn.CrossEntropyLoss()
    for place in ("opacus", "hand"):
        with with_key(started(tmp_path / place, changes), key, monkeypatch) as run:
            if place == "opacus":
                model = trained_in(run, way)
            else:
                model = net()
                by_hand(run, model, lambda model, index: loss(model(inputs[[index]]), targets[[index]]))
            assert run.released == ROUNDS
        ended.append(dict(model.named_parameters()))
    torch.testing.assert_close(*ended, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_dropout_follows_the_key_and_not_the_seed(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program goes on with its own numbers, also after a pass that fails."""
    ended, key = [], []
    for seed in (1, 2):
        model = torch.nn.Sequential(net(), torch.nn.Dropout(0.5), torch.nn.Linear(2, 2))
        with with_key(started(tmp_path / str(seed)), key, monkeypatch) as run:
            private, optimizer, batches, criterion = in_mode(run, model, mode)
            torch.manual_seed(seed)
            for inputs, targets in batches:
                optimizer.zero_grad()
                before = torch.get_rng_state()
                criterion(private(inputs), targets).backward()
                optimizer.step()
                assert torch.equal(torch.get_rng_state(), before)
            with pytest.raises(RuntimeError, match="shapes"):
                private(torch.ones(2, WIDTH + 1))
            assert torch.equal(torch.get_rng_state(), before)
        ended.append([parameter.detach().clone() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*ended, strict=True))


def test_epsilon_is_that_of_the_certificate_and_the_record_is_complete(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path, records=RECORDS) as run:
        engine = PrivacyEngine(run)
        assert engine.get_epsilon() == 0.0
        model = net()
        private, optimizer, batches = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader()
        )
        epoch(private, optimizer, batches)
        assert 0.0 < engine.get_epsilon() < certificate.epsilon
        state, weights = engine.state_dict(), {name: one.clone() for name, one in model.state_dict().items()}
        for again in range(2):  # back to the checkpoint: the same rounds, and the same weights
            epoch(private, optimizer, batches)
            if not again:
                after = {name: one.clone() for name, one in model.state_dict().items()}
                engine.load_state_dict(state)
                model.load_state_dict(weights)
        assert all(torch.equal(after[name], one) for name, one in model.state_dict().items())
        assert run.released == 6
        epoch(private, optimizer, batches)
        assert engine.get_epsilon() == certificate.epsilon
        assert engine.get_epsilon(1e-3) < certificate.epsilon
    assert hold_record(tmp_path / "record.jsonl", certificate).released == ROUNDS


@pytest.mark.parametrize("mode", ["hooks", "functorch"])
def test_sums_are_exact_inside_of_autocast(tmp_path: Path, mode: str) -> None:
    """The gradient of every record is (5, 0), clipped to (1, 0): the sum of 259 is 259, which bfloat16 does not have."""
    records, model = 259, torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.zeros_(model.weight)
    every = sectioned(dataset_size=records, expected_batch_size=records, iterations=1, sampler="none")
    inputs = torch.tensor([5.0, 0.0]).repeat(records, 1)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs), batch_size=records)
    whole = {**DOCUMENT, **every}
    with TrainingRun(whole, tmp_path, records=records, clip_norm=1.0, uncertified=True) as run:
        private, optimizer, given = made(run, model, batches, grad_sample_mode=mode)
        ((rows,),) = given
        with torch.autocast("cpu", dtype=torch.bfloat16):
            private(rows).float()[:, 0].mean().backward()
            optimizer.clip_and_accumulate()
    assert model.weight.summed_grad.dtype == torch.float32
    assert model.weight.summed_grad[0].tolist() == [records, 0.0]


class Keeping(torch.nn.Module):  # type: ignore[misc]
    """Writes its inputs into a parameter that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 2)
        self.kept = torch.nn.Parameter(torch.zeros(WIDTH), requires_grad=False)

    def forward(self, inputs: Any) -> Any:
        self.kept.data.add_(inputs.detach().sum(0))
        return self.layer(inputs)


def test_models_that_keep_something_of_records_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        for layer, says in (
            (torch.nn.Embedding(5, 3, max_norm=1.0), "max_norm = 1.0 rescales"),
            (torch.nn.InstanceNorm1d(3, affine=True, track_running_stats=True), "track_running_stats=True keeps"),
        ):
            with pytest.raises(RunError, match=f"1: .*{says}"):
                made(run, torch.nn.Sequential(torch.nn.Linear(WIDTH, 3), layer))
        private, _, batches = made(run, Keeping())
        inputs, _ = next(iter(batches))
        with pytest.raises(RunError, match="kept: the forward pass of the model changes this"):
            private(torch.cat([inputs, torch.ones(1, WIDTH)]))
        assert run.released == 0


class Outside(torch.nn.Module):  # type: ignore[misc]
    """Uses the weight of a layer outside of the layer too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, inputs: Any) -> Any:
        return torch.nn.functional.linear(self.layer(inputs), self.layer.weight)


class Circular(torch.nn.Module):  # type: ignore[misc]
    """Changes its input before it is multiplied, which Opacus does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Conv1d(1, 2, 3, padding=2, padding_mode="circular", bias=False)

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs[:, None]).sum(2)


class Meeting(torch.nn.Module):  # type: ignore[misc]
    """Looks at all records of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 2)

    def forward(self, inputs: Any) -> Any:
        hidden = self.layer(inputs)
        return hidden - 0.5 * hidden.mean(0)


@pytest.mark.parametrize("kind", [Outside, Circular, Meeting])
def test_models_for_which_ghost_clipping_is_not_exact_are_refused(tmp_path: Path, kind: Any) -> None:
    torch.manual_seed(3)
    with started(tmp_path) as run:
        private, _, _, tried = in_mode(run, kind(), "ghost")
        inputs, targets = data().tensors
        with pytest.raises(RunError, match=r"the norm of a record's gradient is .* not exact for this model"):
            tried(private(inputs[:3]), targets[:3])


def test_ghost_clipping_in_half_precision_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        private, _, _, tried = in_mode(run, net(), "ghost")
        inputs, targets = data().tensors
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = private(inputs)
        with pytest.raises(RunError, match=r"a layer of type Linear computes in torch\.bfloat16"):
            tried(outputs.float(), targets)


def test_the_trial_leaves_nothing_behind(tmp_path: Path) -> None:
    """Sums after a trial are those of a model that was tried before, and a single record ends no trial."""
    found = []
    for tried_before in (False, True):
        with started(tmp_path / str(tried_before)) as run:
            private, optimizer, _, tried = in_mode(run, net(), "ghost")
            private.tried = tried_before
            inputs, targets = data().tensors
            tried(private(inputs), targets).backward()
            optimizer.accumulate()
            assert private.tried
            assert optimizer.clipped == RECORDS
            found.append([parameter.summed_grad for parameter in private.parameters()])
            private.tried = False
            tried(private(inputs[:1]), targets[:1]).backward()
            assert not private.tried
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_what_contradicts_the_run_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        model, other = net(), net()
        with pytest.raises(RunError, match="noise_multiplier: leave this out"):
            made(run, model, noise_multiplier=1.0)
        for mode, why in (
            ("no_op", "nothing can be clipped"),
            ("ghost_fsdp", "shards the model"),
            ("other", "no way in"),
        ):
            with pytest.raises(RunError, match=f"grad_sample_mode = '{mode}' is none of hooks, .*: .*{why}"):
                made(run, model, grad_sample_mode=mode)
        with pytest.raises(RunError, match="batch_first = False"):
            made(run, model, grad_sample_mode="ew", batch_first=False)
        with pytest.raises(RunError, match="belong together"):
            made(run, model, grad_sample_mode="ghost")
        engine, sgd = PrivacyEngine(run), torch.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(RunError, match="data_loader has 59 records, and the run has 60"):
            engine.make_private(module=model, optimizer=sgd, data_loader=loader(59))
        with pytest.raises(RunError, match="not those of the module"):
            engine.make_private(module=other, optimizer=sgd, data_loader=loader())
        part = torch.optim.SGD(model[0].parameters(), lr=0.1)
        with pytest.raises(RunError, match=r"2\.bias, 2\.weight: trained"):
            engine.make_private(module=model, optimizer=part, data_loader=loader())
        private, optimizer, batches = made(run, model)
        with pytest.raises(RunError, match="made private already"):
            made(run, private, loss_reduction="sum")
        scheduler = ExponentialGradClip(optimizer, gamma=0.5)
        for inputs, targets in batches:
            torch.nn.functional.cross_entropy(private(inputs), targets).backward()
            scheduler.step()
            with pytest.raises(RunError, match=r"max_grad_norm = 0\.35"):
                optimizer.step()
            break
        assert run.released == 0
    with started(tmp_path / "ranks", world=2) as run, pytest.raises(RunError, match="2 ranks"):
        PrivacyEngine(run)


#: Loops that train with other batches than those of the round, and what the error says.
WRONG_LOOPS = {
    "own loader": "round 0 was not taken from the loader",
    "own loader after a look": "round 0 was not taken from the loader",
    "accumulated": "asked for the batch of round 1, and the next round to release is 0",
    "without empty batches": "asked for the batch of round .*, and the next round to release is",
    "without the second batch": "asked for the batch of round 2, and the next round to release is 1",
    "twice": "are not those of its batch",
}


def with_an_empty_batch(folder: Path) -> TrainingRun:
    """Return a run with an empty batch before one that is not: nearly every key draws such batches."""
    for number in range(100):
        run = started(folder / str(number), with_batches(DOCUMENT, 0.7))
        drawn = [len(run.batch(number).indices) > 0 for number in range(ROUNDS)]
        if drawn != sorted(drawn, reverse=True):
            return run
        run.close()
    raise AssertionError("no key draws an empty batch before another one")


#: Each backward pass of ghost clipping forgets the one before, so a second one for the same batch does no harm.
HARMLESS = [("twice", "ghost")]


@pytest.mark.parametrize(
    ("way", "mode"), [one for one in product(WRONG_LOOPS, ("hooks", "functorch", "ew", "ghost")) if one not in HARMLESS]
)
def test_other_batches_than_those_of_the_round_are_refused(tmp_path: Path, way: str, mode: str) -> None:
    # Batches of a fixed size, so that sizes show nothing.
    sized = {"sampler": {"kind": "fixed-size"}}
    with with_an_empty_batch(tmp_path) if way == "without empty batches" else started(tmp_path, sized) as run:
        private, optimizer, batches, criterion = in_mode(run, net(), mode, loader(batch_size=RECORDS // ROUNDS))
        if way == "own loader after a look":
            next(iter(batches))

        def train() -> None:
            size = int(run.normaliser())
            own = loader(batch_size=size) if way.startswith("own loader") else batches
            for number, (inputs, targets) in enumerate(own):
                if way == "without empty batches" and not len(inputs):
                    continue
                if way == "without the second batch" and number == 1:
                    continue
                if way != "accumulated" or number % 2 == 0:
                    optimizer.zero_grad()
                for _ in range(2 if way == "twice" else 1):
                    criterion(private(inputs), targets).backward()
                if way != "accumulated" or number % 2:
                    optimizer.step()

        # PyTorch itself refuses to accumulate expanded weights.
        refused = RuntimeError if (way, mode) == ("twice", "ew") else RunError
        says = "accumulates the gradients" if refused is RuntimeError else WRONG_LOOPS[way]
        with pytest.raises(refused, match=says):
            train()
        assert run.released < ROUNDS


@pytest.mark.parametrize("skipped", [1, 6])
def test_a_batch_that_is_skipped_is_noticed_with_workers_too(tmp_path: Path, skipped: int) -> None:
    """Workers draw batches in advance, so the end of an iteration has nothing left to draw."""
    with started(tmp_path, {"sampler": {"kind": "fixed-size"}}) as run:
        private, optimizer, batches = made(run, net(), loader(batch_size=RECORDS // ROUNDS, num_workers=2))
        sound = []

        def train() -> None:
            for number, (inputs, targets) in enumerate(batches):
                if number == skipped:
                    continue
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(private(inputs), targets).backward()
                sound.append(torch.equal(inputs, data().tensors[0][run.batch(run.round).indices]))
                optimizer.step()

        with pytest.raises(RunError, match=rf"asked for the batch of round \d+, and the next .* is {skipped}:"):
            train()
        assert sound == [True] * skipped


class Circular(torch.nn.Module):
    """A layer for which Opacus has formulas, and one for which it has none without records."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = torch.nn.Embedding(9, 4)
        self.convolution = torch.nn.Conv1d(4, 2, 3, padding=1, padding_mode="circular")

    def forward(self, tokens: Any) -> Any:
        return self.convolution(self.embedding(tokens).transpose(1, 2)).mean(2)


@pytest.mark.parametrize("mode", ["hooks", "functorch", "ew", "ghost"])
def test_the_sums_of_an_empty_batch_are_zeros_for_every_layer(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    release = Step.release
    monkeypatch.setattr(Step, "release", lambda self, sums, **more: seen.append(sums) or release(self, sums, **more))
    tokens = torch.randint(0, 9, (RECORDS, 5), generator=torch.Generator().manual_seed(2))
    records = torch.utils.data.TensorDataset(tokens, tokens[:, 0] % 2)
    with with_an_empty_batch(tmp_path) as run:
        model = Circular()
        if mode in ("ew", "ghost"):
            model.convolution = torch.nn.Conv1d(4, 2, 3)  # circular padding has no expanded weights, and no norms
        given = torch.utils.data.DataLoader(records, batch_size=RECORDS // ROUNDS)
        private, optimizer, batches, criterion = in_mode(run, model, mode, given)
        for inputs, targets in batches:
            optimizer.zero_grad()
            criterion(private(inputs), targets).backward()
            optimizer.step()
            assert all(bool((one == 0).all()) for one in seen[-1].values()) == (len(inputs) == 0)
        assert len(seen) == ROUNDS


def test_what_chooses_the_noise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"run is a str, and an open run is needed: give pyaccount\.TrainingRun\(certificate"
    ):
        PrivacyEngine("training.cert.json")
    with pytest.raises(RunError, match="an open run is needed"):
        PrivacyEngine()
    with started(tmp_path) as run, pytest.raises(RunError, match="accountant: leave this out"):
        PrivacyEngine(run, accountant="rdp")
    with started(tmp_path) as run:
        engine = PrivacyEngine(run)
        with pytest.raises(RunError, match="the certificate has chosen it"):
            engine.make_private_with_epsilon(target_epsilon=3)
        with pytest.raises(RunError, match=r"run\.accountant\(\)"):
            engine.accountant.get_epsilon(1e-5)
        with pytest.raises(RunError, match=r"engine\.state_dict\(\)"):
            engine.save_checkpoint(path="x", module=net())
        with pytest.raises(RunError, match=r"engine\.load_state_dict\(state\)"):
            engine.load_checkpoint(path="x", module=net())


def test_schedulers_of_the_noise_and_scaled_losses_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        private, optimizer, batches = made(run, net())
        with pytest.raises(RunError, match=r"noise_multiplier = .*leave schedulers of the noise out"):
            ExponentialNoise(optimizer, gamma=0.9).step()
        assert optimizer.noise_multiplier == run.noise_multiplier()
        scaler = torch.amp.GradScaler("cpu")
        for inputs, targets in batches:
            scaler.scale(torch.nn.functional.cross_entropy(private(inputs), targets)).backward()
            with pytest.raises(RunError, match="a GradScaler scales the loss"):
                scaler.step(optimizer)
            break
        assert run.released == 0


def test_the_record_says_what_clipped_and_a_run_goes_on_in_the_same_way(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path / "run", records=RECORDS, clip_norm=0.7) as run:
        trained_in(run, "functorch")
    verdict = hold_record(tmp_path / "run" / "record.jsonl", certificate)
    (clipped,) = [one for one in verdict.assumptions if "is clipped" in one.text]
    assert clipped.held == "checked"
    assert re.match(r"clipped in the integration of opacus [\d.]+ \(functorch\)", clipped.how)
    with started(tmp_path / "other") as run:
        private, optimizer, batches = made(run, net())
        for inputs, targets in batches:
            torch.nn.functional.cross_entropy(private(inputs), targets).backward()
            optimizer.step()
            break
        sums = {name: one.detach().numpy() * 0.0 for name, one in net().named_parameters()}
        with (
            pytest.raises(RunError, match="in the integration of opacus, and round 1 is released without it"),
            run.step() as step,
        ):
            step.release(sums)
        private, optimizer, batches = made(run, net(), grad_sample_mode="ew")
        for inputs, targets in batches:
            torch.nn.functional.cross_entropy(private(inputs), targets).backward()
            with pytest.raises(RunError, match=r"clipped by opacus \(hooks\), and these would be by opacus \(ew\)"):
                optimizer.step()
            break
        assert run.released == 1


def others() -> dict[str, Any]:
    """Samplers that draw otherwise than a loader does with `shuffle` or without."""
    from torch.utils import data as loading

    return {
        "SubsetRandomSampler": {"sampler": loading.SubsetRandomSampler(range(45))},
        "WeightedRandomSampler": {"sampler": loading.WeightedRandomSampler([1.0] * RECORDS, RECORDS)},
        "RandomSampler": {"sampler": loading.RandomSampler(range(RECORDS), replacement=True)},
        "BatchSampler": {"batch_sampler": [[0, 1], [2, 3]], "batch_size": 1},
    }


@pytest.mark.parametrize("kind", ["SubsetRandomSampler", "WeightedRandomSampler", "RandomSampler", "BatchSampler"])
def test_loaders_that_draw_otherwise_are_refused(tmp_path: Path, kind: str) -> None:
    """A part of the records that a sampler leaves out, as for validation, would be trained with."""
    with started(tmp_path) as run, pytest.raises(RunError, match=r"data_loader (draws with|has the batches of)"):
        made(run, net(), loader(**others()[kind]))


def test_a_loader_that_shuffles_and_one_that_was_made_before_are_taken(tmp_path: Path) -> None:
    model = net()
    with started(tmp_path) as run:
        engine, sgd = PrivacyEngine(run), torch.optim.SGD(model.parameters(), lr=0.1)
        private, optimizer, batches = engine.make_private(module=model, optimizer=sgd, data_loader=loader(shuffle=True))
        again = engine.make_private(module=private, optimizer=optimizer, data_loader=batches)[2]
        assert len(again) == len(batches) == 3
