"""Clipped sums for models whose batch is a mapping, if PyTorch is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_documents import doc

from pyaccount.errors import RunError
from pyaccount.training import TrainingRun

torch = pytest.importorskip("torch", reason="PyTorch is not installed: clipped sums of mappings are NOT tested here")

from torch import nn  # noqa: E402 - after the skip

from pyaccount.training import clipping  # noqa: E402
from pyaccount.training.torch import PrivateOptimizer, clipped_sum, clipped_sums_of  # noqa: E402

WIDTH = 4


def net() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(WIDTH, 3), nn.Tanh(), nn.Linear(3, 2))


def batch(count: int = 7) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, WIDTH, generator=generator)
    return {"x": inputs, "y": (inputs.sum(1) > 0).long()}


def loss_of(model: Any, example: Any) -> Any:
    return nn.functional.cross_entropy(model(example["x"]), example["y"])


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("norm", [0.1, 0.5, 100.0])
def test_the_sum_is_that_of_tensors_and_losses_are_those_of_the_examples(one_by_one: bool, norm: float) -> None:
    model, given = net(), batch()
    expected = clipped_sum(model, nn.functional.cross_entropy, given["x"], given["y"], clip_norm=norm)
    found = clipped_sums_of(model, loss_of, given, clip_norm=norm, one_by_one=one_by_one)
    assert list(found) == list(expected)
    assert found.clipped == expected.clipped
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-6)
        assert not found[name].requires_grad
    losses = nn.functional.cross_entropy(model(given["x"]), given["y"], reduction="none")
    torch.testing.assert_close(found.losses, losses.detach())


@pytest.mark.parametrize("together", [1, 60, 10**6])
def test_the_sum_is_that_of_single_gradients_however_many_are_in_memory(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has 23 parameters. The oracle is a backward pass for each example, in double precision."""
    monkeypatch.setattr(clipping, "TOGETHER", together)
    model, given = net(), batch()
    mask = torch.arange(7) != 3
    expected = {name: torch.zeros_like(parameter, dtype=torch.float64) for name, parameter in model.named_parameters()}
    for index in torch.arange(7)[mask]:
        loss = nn.functional.cross_entropy(model(given["x"][index][None]), given["y"][index][None])
        gradients = [one.double() for one in torch.autograd.grad(loss, list(model.parameters()))]
        norm = float(torch.sqrt(sum((one**2).sum() for one in gradients)))
        for name, one in zip(expected, gradients, strict=True):
            expected[name] += one * min(1.0, 0.5 / norm)
    found = clipped_sum(model, nn.functional.cross_entropy, given["x"], given["y"], clip_norm=0.5, mask=mask)
    kept = {name: tensor[mask] for name, tensor in given.items()}
    alike = clipped_sums_of(model, loss_of, kept, clip_norm=0.5)
    assert len(alike.losses) == 6
    for name, total in expected.items():
        torch.testing.assert_close(found[name].double(), total, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(alike[name].double(), total, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["tensors", "together", "one by one"])
def test_sums_are_exact_where_a_training_computes_in_half_precision(way: str) -> None:
    """The gradient of every example is (5, 0), clipped to (1, 0): the sum of n of them is n, and bfloat16 has no 259."""
    model = nn.Linear(2, 2, bias=False)
    nn.init.zeros_(model.weight)

    def first(output: Any, _: Any = None) -> Any:
        return output.float()[:, 0].mean()

    before = torch.get_float32_matmul_precision()
    for count in (258, 259, 301):
        inputs = torch.tensor([5.0, 0.0]).repeat(count, 1)
        try:
            torch.set_float32_matmul_precision("medium")
            with torch.autocast("cpu", dtype=torch.bfloat16):
                if way == "tensors":
                    found = clipped_sum(model, first, inputs, torch.zeros(count), clip_norm=1.0)
                else:
                    found = clipped_sums_of(
                        model,
                        lambda model, example: first(model(example["x"])),
                        {"x": inputs},
                        clip_norm=1.0,
                        one_by_one=way == "one by one",
                    )
            assert torch.get_float32_matmul_precision() == "medium"
        finally:
            torch.set_float32_matmul_precision(before)
        assert found["weight"].dtype == torch.float32
        assert found["weight"][0].tolist() == [count, 0.0]


def test_a_sum_in_another_type_than_float32_or_float64_is_refused() -> None:
    model = nn.Module()
    model.turn = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    model.forward = lambda inputs: (inputs * model.turn).abs()
    with pytest.raises(RunError, match=r"turn: its sum of clipped gradients has the type torch\.complex64"):
        clipped_sum(model, lambda output, _: output.sum(), torch.ones(3, 2), torch.ones(3), clip_norm=1.0)


def test_norms_are_over_parameters_of_every_shape() -> None:
    class Shaped(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.scalar = nn.Parameter(torch.tensor(2.0))
            self.deep = nn.Parameter(torch.ones(2, 1, 2))

        def forward(self, inputs: Any) -> Any:
            return self.scalar * inputs + self.deep.sum()

    found = clipped_sum(Shaped(), lambda output, target: output.sum(), torch.ones(1, 1), torch.ones(1), clip_norm=1.0)
    # The gradient is five ones.
    assert float(found["scalar"]) == pytest.approx(5**-0.5)
    torch.testing.assert_close(found["deep"], torch.full((2, 1, 2), 5**-0.5))


@pytest.mark.parametrize("one_by_one", [False, True])
def test_an_example_without_a_finite_gradient_contributes_nothing(one_by_one: bool) -> None:
    model, given = net(), batch(5)
    given["weight"] = torch.tensor([1.0, float("nan"), 1.0, float("inf"), 1.0])

    def weighted(model: Any, example: Any) -> Any:
        return (
            example["weight"] * nn.functional.cross_entropy(model(example["x"]), example["y"], reduction="none")
        ).sum()

    found = clipped_sums_of(model, weighted, given, clip_norm=0.5, one_by_one=one_by_one)
    kept = {name: tensor[[0, 2, 4]] for name, tensor in given.items()}
    expected = clipped_sums_of(model, weighted, kept, clip_norm=0.5, one_by_one=one_by_one)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-6, atol=1e-7)
        assert expected[name].abs().sum() > 0


@pytest.mark.parametrize("one_by_one", [False, True])
def test_frozen_and_unused_parameters(one_by_one: bool) -> None:
    """A frozen parameter is not in the sum; one that the loss does not use has a sum of zeros."""
    model = net()
    model.register_parameter("unused", nn.Parameter(torch.ones(3)))
    model[0].weight.requires_grad_(False)
    found = clipped_sums_of(model, loss_of, batch(), clip_norm=0.5, one_by_one=one_by_one)
    assert set(found) == {"unused", "0.bias", "2.weight", "2.bias"}
    assert not found["unused"].any()
    # All contributions are clipped to one norm over the trained parameters.
    alone = clipped_sums_of(model, loss_of, batch(1), clip_norm=0.01, one_by_one=one_by_one)
    assert float(torch.sqrt(sum((tensor**2).sum() for tensor in alone.values()))) == pytest.approx(0.01, rel=1e-5)


def test_an_empty_batch_has_a_sum_of_zeros_and_unequal_tensors_are_refused() -> None:
    for empty in ({}, batch(0)):
        found = clipped_sums_of(net(), loss_of, empty, clip_norm=0.5)
        assert all(not tensor.any() for tensor in found.values())
        assert found.losses is not None
        assert len(found.losses) == 0
    with pytest.raises(RunError, match=r"different numbers of examples: \{'x': 7, 'y': 6\}"):
        clipped_sums_of(net(), loss_of, batch() | {"y": batch()["y"][:6]}, clip_norm=0.5)
    normalised = nn.Sequential(nn.Linear(WIDTH, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    with pytest.raises(RunError, match="1: batch normalisation"):
        clipped_sums_of(normalised, loss_of, batch(), clip_norm=0.5)


class Keeping(nn.Module):  # type: ignore[misc]
    """A model that keeps something of its inputs in its forward pass, in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.layer = way, nn.Linear(WIDTH, 2)
        self.register_buffer("kept", torch.zeros(WIDTH), persistent=False)

    def forward(self, inputs: Any) -> Any:
        seen = inputs.detach().mean(0)
        if self.way == "written":
            self.kept.add_(seen)
        elif self.way == "written as data":
            self.kept.data.add_(seen)
        elif self.way == "replaced":
            self.kept = self.kept + seen
        elif self.way == "new":
            self.register_buffer("new", seen)
        elif self.way == "parameter":
            with torch.no_grad():
                self.layer.bias[0] += seen[0]
        return self.layer(inputs)


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("way", ["written", "written as data", "replaced", "new", "parameter"])
def test_models_that_keep_something_of_records_are_refused(way: str, one_by_one: bool) -> None:
    # torch.func itself refuses some of these writes.
    refused = (RunError,) if one_by_one else (RunError, RuntimeError)
    with pytest.raises(refused, match=r"the forward pass of the model changes this|mutate|broadcast"):
        clipped_sums_of(Keeping(way), loss_of, batch(), clip_norm=0.5, one_by_one=one_by_one)


def test_models_that_keep_something_of_records_are_refused_for_tensors_too() -> None:
    given = batch()
    with pytest.raises(RunError, match="new: the forward pass of the model changes this"):
        clipped_sum(Keeping("new"), nn.functional.cross_entropy, given["x"], given["y"], clip_norm=0.5)


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        (nn.Embedding(5, 3, max_norm=1.0), "max_norm = 1.0 rescales"),
        (nn.EmbeddingBag(5, 3, max_norm=0.5), "max_norm = 0.5 rescales"),
        (nn.InstanceNorm1d(3, track_running_stats=True), "InstanceNorm1d with track_running_stats=True"),
        (nn.BatchNorm2d(3), "batch normalisation"),
    ],
    ids=["embedding", "bag", "instance", "batch"],
)
def test_layers_that_keep_something_of_records_are_refused(layer: Any, says: str) -> None:
    with pytest.raises(RunError, match=f"1: .*{says}"):
        clipped_sums_of(nn.Sequential(nn.Linear(WIDTH, 3), layer), loss_of, batch(), clip_norm=0.5)


@pytest.mark.parametrize("normed", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_the_vectors_of_spectral_normalisation_may_change(normed: Any) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(normed(nn.Linear(WIDTH, 3)), nn.Tanh(), nn.Linear(3, 2))
    vectors = [name for name, _ in model.named_buffers() if name.endswith(("_u", "_v"))]
    for name in vectors:  # far from where they converge
        model.get_buffer(name).copy_(torch.eye(len(model.get_buffer(name)))[0])
    before = {name: model.get_buffer(name).clone() for name in vectors}
    assert clipped_sums_of(model, loss_of, batch(), clip_norm=0.5, one_by_one=True)
    assert any(not torch.equal(before[name], model.get_buffer(name)) for name in vectors)


def test_a_release_without_a_step_leaves_the_noisy_mean_as_the_gradient(tmp_path: Path) -> None:
    document = doc(
        "name=released epsilon=200.0 dataset_size=7 expected_batch_size=7 iterations=2 sampler=none multiplier=0.5"
    )
    model = net()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    with TrainingRun(document, tmp_path, records=7, uncertified=True) as run:
        assert (run.records, run.folder, run.key_file) == ((7,), tmp_path, tmp_path / "run.key")
        assert run.certificate is None
        optimizer = PrivateOptimizer(sgd, run, model.named_parameters())
        optimizer.add(clipped_sums_of(model, loss_of, batch(), run=run))
        optimizer.release()
        assert run.released == 1
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, before[name])
            assert parameter.grad is not None
        expected = {name: before[name] - 0.1 * parameter.grad for name, parameter in model.named_parameters()}
        sgd.step()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.detach(), expected[name])
        optimizer.zero_grad()
        with pytest.raises(RunError, match="no sum was added"):
            optimizer.release()
