"""Random numbers of a model are secret: dropout in PyTorch, if it is installed."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest
from plain_documents import doc
from training_runs import fixed_draws

from pyaccount.training import TrainingRun

try:
    import torch
except ModuleNotFoundError:
    pytest.skip("PyTorch is not installed: the random numbers of dropout are NOT tested here", allow_module_level=True)

from pyaccount.training.dropout import drawn_by_key, mersenne_state
from pyaccount.training.torch import PrivateOptimizer, clipped_sum, clipped_sums_of

RECORDS, WIDTH = 30, 6
DOCUMENT: dict[str, Any] = doc(
    "name=dropout epsilon=200.0 expected_batch_size=6 iterations=4 sampler=poisson multiplier=0.5", dataset_size=RECORDS
)


def started(folder: Path) -> TrainingRun:
    return TrainingRun(DOCUMENT, folder, records=RECORDS, uncertified=True)


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 40), torch.nn.Dropout(0.5), torch.nn.Linear(40, 2))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(RECORDS, WIDTH, generator=generator)
    return inputs, (inputs.sum(1) > 0).long()


def total(net: torch.nn.Module, rows: slice, run: TrainingRun | None) -> torch.Tensor:
    inputs, targets = data()
    norm = 1.0 if run is None else None
    found = clipped_sum(net, torch.nn.functional.cross_entropy, inputs[rows], targets[rows], run=run, clip_norm=norm)
    return torch.cat([sum.flatten() for sum in found.values()])


def test_without_the_key_one_record_moves_the_sum_by_several_clip_norms(tmp_path: Path) -> None:
    """This is why: with a known seed, the numbers of all records after the removed one are those of others."""
    net = model()
    torch.manual_seed(42)
    every = total(net, slice(None), None)
    torch.manual_seed(42)
    assert float((every - total(net, slice(1, None), None)).norm()) > 3.0
    with started(tmp_path / "one") as one, started(tmp_path / "two") as other:
        # The seed decides nothing, and the key everything.
        sums = []
        for run, seed in ((one, 42), (one, 7), (other, 42)):
            optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
            optimizer.zero_grad()
            torch.manual_seed(seed)
            sums.append(total(net, slice(None), run))
    assert torch.equal(sums[0], sums[1])
    assert float((sums[0] - sums[2]).norm()) > 3.0


def test_numbers_are_those_of_the_round_and_go_on_within_it(tmp_path: Path) -> None:
    def drawn(run: TrainingRun) -> list[float]:
        with drawn_by_key(run):
            return torch.rand(3).tolist()

    torch.manual_seed(42)
    before = torch.get_rng_state()
    with started(tmp_path / "run") as run:
        first, second = drawn(run), drawn(run)
        with drawn_by_key(run):
            # A context inside of one changes nothing.
            nested = [*drawn(run), *torch.rand(3).tolist()]
        with run.step() as step:
            step.release(torch.zeros(3).numpy())
        later = drawn(run)
        state = run.state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert len({*first, *second, *nested, *later}) == 15
    with started(tmp_path / "run") as run:
        run.load_state_dict({**state, "rounds": 0})
        assert [drawn(run), drawn(run)] == [first, second]
    with drawn_by_key(None):
        torch.rand(3)
    assert not torch.equal(torch.get_rng_state(), before)


def test_the_state_of_a_processor_has_as_many_secret_words_as_the_generator() -> None:
    """The numbers are those of Python's own MT19937 with the same words."""
    generator = torch.Generator()
    generator.set_state(mersenne_state(b"secret"))
    found = torch.rand(2000, generator=generator).tolist()
    digest = hashlib.shake_256(b"secret").digest(4 * 624)
    words = [int.from_bytes(digest[4 * place : 4 * place + 4], "little") for place in range(624)]
    other = random.Random()
    other.setstate((3, (*words, 624), None))
    assert found == [(other.getrandbits(32) % 2**24) / 2**24 for _ in range(2000)]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_training_does_not_depend_on_the_seed(
    tmp_path: Path, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, targets = data()

    def loss(net: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(net(batch["inputs"]), batch["targets"])

    ended, key = [], None
    for seed in (1, 2):
        fixed_draws(monkeypatch)
        net = model()
        torch.manual_seed(seed)
        with started(tmp_path / str(seed)) as run:
            key = key or run._root
            run._root = run._noise._root = key
            optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
            while run.round < run.rounds:
                rows = run.batch(run.round).indices
                optimizer.zero_grad()
                for part in (rows[:2], rows[2:]):
                    batch = {"inputs": inputs[part], "targets": targets[part]}
                    optimizer.add(clipped_sums_of(net, loss, batch, run=run, one_by_one=one_by_one))
                optimizer.step()
        ended.append([parameter.detach().clone() for parameter in net.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*ended, strict=True))
