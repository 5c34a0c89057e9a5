"""A run in PyTorch, if it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import HELPERS
from plain_documents import changed, doc, sectioned
from training_runs import as_one_process, failing, fixed_draws

from pyaccount.errors import RunError
from pyaccount.training import TrainingRun

try:
    import torch
except ModuleNotFoundError:
    # The report of every test run ends with the reasons of skips.
    pytest.skip("PyTorch is not installed: the run in PyTorch is NOT tested here", allow_module_level=True)

from torch_ranks import DOCUMENT

from pyaccount.training.torch import PrivateOptimizer, RunBatchSampler, clipped_sum, collate

RECORDS, WIDTH = 60, 4
BASE: dict[str, Any] = doc(
    "name=torch epsilon=200.0 expected_batch_size=6 iterations=8 sampler=poisson multiplier=0.5", dataset_size=RECORDS
)


class Data(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(RECORDS, WIDTH, generator=generator)
        self.targets = (self.inputs.sum(1) > 0).long()

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs[index], self.targets[index]


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))


def by_hand(net: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor, norm: float) -> dict[str, torch.Tensor]:
    """Return the clipped sum with one backward pass for each example."""
    total = {name: torch.zeros_like(parameter) for name, parameter in net.named_parameters()}
    for one, target in zip(inputs, targets, strict=True):
        net.zero_grad()
        torch.nn.functional.cross_entropy(net(one[None]), target[None]).backward()
        gradients = {name: parameter.grad.clone() for name, parameter in net.named_parameters()}
        size = torch.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
        for name, gradient in gradients.items():
            total[name] += gradient * min(1.0, norm / float(size))
    net.zero_grad()
    return total


def test_a_clipped_sum_is_that_of_one_backward_pass_for_each_example() -> None:
    net, data = model(), Data()
    for norm in (0.1, 0.5, 100.0):
        expected = by_hand(net, data.inputs[:7], data.targets[:7], norm)
        found = clipped_sum(net, torch.nn.functional.cross_entropy, data.inputs[:7], data.targets[:7], clip_norm=norm)
        for name in expected:
            torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-6)
    expected = by_hand(net, data.inputs[[0, 1, 3]], data.targets[[0, 1, 3]], 0.1)
    # The mask may also be an array, as from micro-batches.
    for mask in (
        torch.tensor([True, True, False, True]),
        np.array([True, True, False, True]),
        [True, True, False, True],
    ):
        kept = clipped_sum(
            net, torch.nn.functional.cross_entropy, data.inputs[:4], data.targets[:4], clip_norm=0.1, mask=mask
        )
        for name in expected:
            torch.testing.assert_close(kept[name], expected[name], rtol=1e-5, atol=1e-6)


def test_an_empty_batch_has_a_sum_of_zeros() -> None:
    net, data = model(), Data()
    inputs, targets = collate(data)([])
    assert inputs.shape == (0, WIDTH)
    assert targets.dtype == torch.int64
    found = clipped_sum(net, torch.nn.functional.cross_entropy, inputs, targets, clip_norm=1.0)
    assert all(not tensor.any() for tensor in found.values())
    assert collate([{"a": 1.0}])([])["a"].shape == (0,)


def test_batch_normalisation_is_refused() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(WIDTH, 3), torch.nn.BatchNorm1d(3))
    with pytest.raises(RunError, match="batch normalisation"):
        clipped_sum(net, torch.nn.functional.mse_loss, torch.zeros(2, WIDTH), torch.zeros(2, 3), clip_norm=1.0)


@pytest.mark.parametrize("correlated", [False, True])
def test_a_plain_loop_is_the_run(tmp_path: Path, correlated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are the same as those of a loop by hand in numpy, with micro-batches or without."""
    changes = sectioned(sampler="b-min-sep", min_separation=2, matrix="banded-square-root", bands=2)
    document = changed(BASE, changes if correlated else {}, {})
    data, ended = Data(), []
    key = None
    for parts in (1, 2):
        net = model()
        run = TrainingRun(document, tmp_path / str(parts), records=RECORDS, clip_norm=0.7, uncertified=True)
        if key is None:
            key = run._root
        run._root = run._noise._root = key
        fixed_draws(monkeypatch)
        optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
        loader = torch.utils.data.DataLoader(data, batch_sampler=RunBatchSampler(run), collate_fn=collate(data))
        assert len(loader) == 8
        for inputs, targets in loader:
            for part in range(parts):
                sums = clipped_sum(
                    net,
                    torch.nn.functional.cross_entropy,
                    inputs[part::parts],
                    targets[part::parts],
                    clip_norm=run.clip_norm,
                )
                optimizer.add(sums)
            optimizer.step()
        assert run.released == 8
        run.close()
        ended.append({name: parameter.detach().numpy().copy() for name, parameter in net.named_parameters()})
    net = model()
    with TrainingRun(document, tmp_path / "hand", records=RECORDS, clip_norm=0.7, uncertified=True) as run:
        run._root = run._noise._root = key
        fixed_draws(monkeypatch)
        while run.round < run.rounds:
            with run.step() as step:
                batch = torch.from_numpy(step.batch.indices)
                sums = by_hand(net, data.inputs[batch], data.targets[batch], 0.7)
                means = step.release({name: tensor.numpy() for name, tensor in sums.items()})
            with torch.no_grad():
                for name, parameter in net.named_parameters():
                    parameter.sub_(0.1 * torch.from_numpy(means[name]))
    for found in ended:
        for name, parameter in net.named_parameters():
            np.testing.assert_allclose(found[name], parameter.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_would_get_no_noise_is_refused(tmp_path: Path) -> None:
    net = model()
    run = TrainingRun(BASE, tmp_path, records=RECORDS, uncertified=True)
    with pytest.raises(RunError, match="would have no noise"):
        PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, list(net.named_parameters())[:1])
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
    with pytest.raises(RunError, match="no sum was added"):
        optimizer.step()
    with pytest.raises(RunError, match=r"there is no sum for 0\.bias, 0\.weight"):
        optimizer.add({"other": torch.zeros(1)})
    with pytest.raises(RunError, match="there is a sum for other, which was not trainable"):
        optimizer.add({"other": torch.zeros(1), **dict(net.named_parameters())})
    sums = {name: torch.zeros_like(parameter) for name, parameter in net.named_parameters()}
    sums["0.bias"] = torch.full_like(sums["0.bias"], torch.nan)
    optimizer.add(sums)
    with pytest.raises(RunError, match="not all entries are finite"):
        optimizer.step()
    assert run.released == 0
    with pytest.raises(RunError, match=r"a step failed, and its sum was not released: call step\(\) once more"):
        optimizer.add(sums)
    with pytest.raises(RunError, match="not all entries are finite"):
        optimizer.step()


def test_a_step_that_failed_is_made_once_more_with_the_same_sum(tmp_path: Path) -> None:
    calls = []

    def keep(text: str | None = None) -> str | None:
        calls.append(text)
        if text is not None and len([one for one in calls if one is not None]) == 2:
            raise ConnectionError("away")
        return None

    net = model()
    run = TrainingRun(BASE, tmp_path, records=RECORDS, uncertified=True, mark=keep)
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
    optimizer.add({name: torch.zeros_like(parameter) for name, parameter in net.named_parameters()})
    with pytest.raises(ConnectionError):
        optimizer.step()
    optimizer.step()
    assert (run.round, run.released) == (1, 1)


def test_a_step_that_failed_after_its_release_is_made_once_more_in_the_same_round(tmp_path: Path) -> None:
    net = model()
    run = TrainingRun(BASE, tmp_path, records=RECORDS, uncertified=True)
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
    optimizer.add({name: torch.ones_like(parameter) / 10 for name, parameter in net.named_parameters()})
    with failing(torch, "from_numpy", MemoryError()):
        optimizer.step()
    assert (run.round, run.released) == (1, 1)
    optimizer.step()
    assert (run.round, run.released) == (1, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_clipped_summed_and_released_in_float32(tmp_path: Path, dtype: torch.dtype) -> None:
    net, data = model().to(dtype), Data()
    run = TrainingRun(BASE, tmp_path, records=RECORDS, clip_norm=0.01, uncertified=True)
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
    loss = torch.nn.functional.cross_entropy
    alone = [
        clipped_sum(net, loss, data.inputs[i : i + 1].to(dtype), data.targets[i : i + 1], run=run) for i in range(5)
    ]
    for sums in alone:
        assert {tensor.dtype for tensor in sums.values()} == {torch.float32}
        # The norm is the clip norm up to float32 rounding; half precision would be wrong by thousandths.
        assert float(torch.sqrt(sum(tensor.square().sum() for tensor in sums.values()))) <= 0.01 * (1 + 1e-6)
    optimizer.add(alone[0])
    optimizer.step()
    assert {parameter.dtype for parameter in net.parameters()} == {dtype}


def test_sums_that_were_clipped_otherwise_are_refused(tmp_path: Path) -> None:
    """If only the optimizer had a group, and not the sum, the group would be clipped to another norm than the certified one."""
    document = changed(BASE, {"noise": {"multiplier": 0.5, "also": [{"what": "head", "multiplier": 3.0}]}}, {})
    net, data, loss = model(), Data(), torch.nn.functional.cross_entropy
    run = TrainingRun(document, tmp_path, records=RECORDS, also_clip_norms={"head": 0.1}, uncertified=True)
    names = [name for name, _ in net.named_parameters()]
    also = {"head": names[-2:]}
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters(), also=also)
    inputs, targets = data.inputs[:7], data.targets[:7]
    wrong: list[dict[str, Any]] = [{"run": run}, {"run": run, "also": {"head": names[-1:]}}, {"clip_norm": 1.0}]
    for options in wrong:
        with pytest.raises(RunError, match="clipped to other norms, or in other groups of parameters"):
            optimizer.add(clipped_sum(net, loss, inputs, targets, **options))
    optimizer.add(clipped_sum(net, loss, inputs, targets, run=run, also=also))
    with pytest.raises(RunError, match="the document releases 'head' in addition to the gradients"):
        PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())


def test_clip_norms_are_the_runs(tmp_path: Path) -> None:
    net, data = model(), Data()
    loss = torch.nn.functional.cross_entropy
    run = TrainingRun(BASE, tmp_path, records=RECORDS, clip_norm=0.7, uncertified=True)
    expected = by_hand(net, data.inputs[:7], data.targets[:7], 0.7)
    for options in ({}, {"clip_norm": 0.7}):
        found = clipped_sum(net, loss, data.inputs[:7], data.targets[:7], run=run, **options)
        assert all(torch.allclose(found[name], expected[name], atol=1e-6) for name in expected)
    with pytest.raises(RunError, match=r"clip_norm = 1\.0 is given, and the run's clip norm is 0\.7: leave it out"):
        clipped_sum(net, loss, data.inputs[:7], data.targets[:7], run=run, clip_norm=1.0)
    for wrong in ({}, {"clip_norm": 1.0, "also": {"head": ["0.bias"]}}):
        with pytest.raises(RunError, match="takes clip norms from the run"):
            clipped_sum(net, loss, data.inputs[:7], data.targets[:7], **wrong)


def test_groups_of_parameters_are_clipped_noised_and_stepped_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = changed(BASE, {"noise": {"multiplier": 0.5, "also": [{"what": "head", "multiplier": 3.0}]}}, {})
    net, data, loss = model(), Data(), torch.nn.functional.cross_entropy
    run = TrainingRun(
        document, tmp_path, records=RECORDS, clip_norm=0.7, also_clip_norms={"head": 0.1}, uncertified=True
    )
    names = [name for name, _ in net.named_parameters()]
    also = {"head": names[-2:]}
    sums = clipped_sum(net, loss, data.inputs[:7], data.targets[:7], run=run, also=also)
    assert list(sums) == names
    # By hand, each group's part of every gradient is clipped separately.
    expected = {name: torch.zeros_like(sums[name]) for name in names}
    for one, target in zip(data.inputs[:7], data.targets[:7], strict=True):
        net.zero_grad()
        loss(net(one[None]), target[None]).backward()
        for group, norm in ((names[:-2], 0.7), (names[-2:], 0.1)):
            gradients = {name: net.get_parameter(name).grad for name in group}
            length = torch.sqrt(sum(gradient.square().sum() for gradient in gradients.values()))
            for name, gradient in gradients.items():
                expected[name] += gradient * min(1.0, norm / float(length))
    assert all(torch.allclose(sums[name], expected[name], atol=1e-6) for name in names)

    given: dict[str, Any] = {}
    usual = TrainingRun._release

    def noted(self: TrainingRun, number: int, main: Any, others: Any) -> Any:
        given.update(main=set(main), others={what: set(arrays) for what, arrays in others.items()})
        given["released"] = usual(self, number, main, others)
        return given["released"]

    monkeypatch.setattr(TrainingRun, "_release", noted)
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters(), also=also)
    optimizer.add(sums)
    optimizer.step()
    assert (given["main"], given["others"]) == (set(names[:-2]), {"head": set(names[-2:])})
    means, others = given["released"]
    for name, parameter in net.named_parameters():
        step = means[name] if name in means else others["head"][name] / run.normaliser(0)
        assert np.allclose((before[name] - parameter).detach().numpy(), 0.1 * step, atol=1e-5)

    def refused(groups: dict[str, list[str]], message: str) -> None:
        for build in (
            lambda: PrivateOptimizer(
                torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters(), also=groups
            ),
            lambda: clipped_sum(net, loss, data.inputs[:7], data.targets[:7], run=run, also=groups),
        ):
            with pytest.raises(RunError, match=message):
                build()

    refused({"tail": names[-2:]}, "'tail' is not in noise.also")
    refused({"head": []}, "'head' has no parameters")
    refused({"head": "0.bias"}, "'head' has the text '0.bias': give a list")  # type: ignore[dict-item]
    refused({"head": ["other"]}, "in several groups: other")
    refused({"head": [names[0], names[0]]}, f"in several groups: {names[0]}")
    refused({"head": names}, "no parameter is left for the main sum")


def test_one_parameter_may_be_a_tensor_and_gradients_are_forgotten(tmp_path: Path) -> None:
    single = torch.nn.Linear(WIDTH, 1, bias=False)
    run = TrainingRun(BASE, tmp_path / "one", records=RECORDS, uncertified=True)
    optimizer = PrivateOptimizer(torch.optim.SGD(single.parameters(), lr=0.1), run, single.named_parameters())
    optimizer.add(torch.ones(1, WIDTH))
    optimizer.zero_grad()
    with pytest.raises(RunError, match="no sum was added"):
        optimizer.step()
    with pytest.raises(RunError, match=r"weight: the sum has shape \(4,\), and the parameter has shape \(1, 4\)"):
        optimizer.add(torch.ones(WIDTH))
    optimizer.add(torch.ones(1, WIDTH))
    optimizer.step()
    assert run.released == 1
    net = model()
    run = TrainingRun(BASE, tmp_path / "several", records=RECORDS, uncertified=True)
    optimizer = PrivateOptimizer(torch.optim.SGD(net.parameters(), lr=0.1), run, net.named_parameters())
    with pytest.raises(RunError, match=r"a single tensor is given, and \d parameters are trained: give a mapping"):
        optimizer.add(torch.zeros(3))


def ranks(folder: Path, *claimed: int) -> list[Any]:
    """Return what each process printed; `claimed` are the ranks that the processes say they have."""
    world = str(len(claimed))
    started = [
        subprocess.Popen(
            [sys.executable, HELPERS / "torch_ranks.py", str(rank), world, folder, str(says)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, says in enumerate(claimed)
    ]
    found = []
    for process in started:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        found.append(json.loads(out.splitlines()[-1]))
    return found


def test_ranks_train_as_one_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank has its shard of the batches, and all get the weights of a single process with the same key."""
    both = ranks(tmp_path / "two", 0, 1)
    assert both[0][1] == both[1][1]
    assert min(seen for seen, _ in both) > 0
    as_one_process(tmp_path / "two", tmp_path / "one")
    # The mark is elsewhere, because the mark of the first run would refuse this one.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ((seen, weights),) = ranks(tmp_path / "one", 0)
    assert seen == sum(part for part, _ in both)
    np.testing.assert_allclose(both[0][1], weights, rtol=1e-4, atol=1e-5)


def test_two_processes_with_one_rank_are_refused(tmp_path: Path) -> None:
    """The shard of that rank would be added twice, and that of the other rank not at all."""
    with TrainingRun(DOCUMENT, tmp_path / "run", records=40, world=2, clip_norm=0.5, uncertified=True):
        pass
    found = ranks(tmp_path / "run", 1, 1)
    assert all("the ranks of the processes are 1, 1: every process needs a rank of its own" in text for text in found)
