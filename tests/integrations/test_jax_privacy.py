"""Execution plans of jax_privacy, and JAX alone, with the batches, the noise and the record of a run, if they are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import sectioned
from trained_elsewhere import CORRELATED, starting, trained, with_batches, with_key

from pyaccount import TrainingRun, certify
from pyaccount.errors import PlanExceededError, RunError
from pyaccount.training.check_record import hold_record

WHY = "the integration of jax_privacy is NOT tested here"
jax = pytest.importorskip("jax", reason=f"JAX is not installed: {WHY}")
pytest.importorskip("jax_privacy", reason=f"jax_privacy is not installed: {WHY}")

import dp_accounting  # noqa: E402 - after the skips
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402
from jax_privacy.batch_selection import split_and_pad_global_batch  # noqa: E402
from jax_privacy.experimental.execution_plan import DPExecutionPlan  # noqa: E402

from pyaccount.integrations.jax_privacy import execution_plan  # noqa: E402
from pyaccount.training.jax import clipped_sum, release  # noqa: E402

# jax_privacy uses a name that optax deprecates.
pytestmark = [pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")]

RECORDS, ROUNDS, WIDTH = 60, 8, 4
DOCUMENT = trained("jax", RECORDS, ROUNDS)
SPARSE = with_batches(DOCUMENT, 0.4)
started = starting(DOCUMENT)
CYCLIC = sectioned(sampler="cyclic-poisson", partitions=2, matrix="toeplitz", coefficients=[1.0, 0.5], normalize=True)


def begun() -> Any:
    generator = np.random.default_rng(3)
    return {
        "hidden": [jnp.asarray(generator.normal(size=(WIDTH, 3)), jnp.float32), jnp.zeros(3)],
        "out": jnp.asarray(generator.normal(size=(3, 2)), jnp.float32),
    }


def data() -> tuple[np.ndarray, np.ndarray]:
    inputs = np.random.default_rng(1).normal(size=(RECORDS, WIDTH)).astype(np.float32)
    return inputs, (inputs.sum(1) > 0).astype(np.int32)


def example_loss(parameters: Any, features: Any, label: Any) -> Any:
    weights, offset = parameters["hidden"]
    outputs = jnp.tanh(features @ weights + offset) @ parameters["out"]
    return optax.softmax_cross_entropy_with_integer_labels(outputs, label)


def loss(parameters: Any, features: Any, labels: Any) -> Any:
    """The mean over a batch, as users of jax_privacy write it."""
    return example_loss(parameters, features, labels).mean()


def by_hand(run: TrainingRun) -> Any:
    """Train with the gradient of one record after the other, in double precision."""
    inputs, labels = data()
    parameters = begun()
    while run.round < run.rounds:
        with run.step() as step:
            leaves, structure = jax.tree.flatten(parameters)
            total = [np.zeros(leaf.shape) for leaf in leaves]
            for index in step.batch.indices:
                gradients = jax.tree.leaves(jax.grad(example_loss)(parameters, inputs[index], labels[index]))
                gradients = [np.asarray(gradient, np.float64) for gradient in gradients]
                norm = np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
                total = [t + g * min(1.0, run.clip_norm / norm) for t, g in zip(total, gradients, strict=True)]
            names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(parameters)]
            means = step.release({n: t.astype(np.float32) for n, t in zip(names, total, strict=True)})
        assert isinstance(means, dict)
        leaves = [leaf - 0.1 * means[name] for name, leaf in zip(names, leaves, strict=True)]
        parameters = jax.tree.unflatten(structure, leaves)
    return parameters


def by_plan(run: TrainingRun, rows: int = 4) -> Any:
    """Train with the plan, in physical batches of one size."""
    inputs, labels = data()
    plan = execution_plan(run)
    assert isinstance(plan, DPExecutionPlan)
    clipped = jax.jit(plan.clipped_grad(loss, batch_argnums=(1, 2)))
    optimizer = optax.chain(plan.noise_addition_transform, optax.sgd(0.1))
    parameters = begun()
    state = optimizer.init(parameters)
    for indices in plan.batch_selection_strategy.batch_iterator(RECORDS):
        sums = jax.tree.map(jnp.zeros_like, parameters)
        for part in split_and_pad_global_batch(indices, rows):
            more = clipped(parameters, inputs[part], labels[part], is_padding_example=part < 0)
            sums = jax.tree.map(jnp.add, sums, more)
        updates, state = optimizer.update(sums, state)
        parameters = optax.apply_updates(parameters, updates)
    return parameters


def by_functions(run: TrainingRun, rows: int | None) -> Any:
    """Train with JAX alone."""
    inputs, labels = data()
    parameters, clipped = begun(), clipped_sum(example_loss, run)
    while run.round < run.rounds:
        with run.step() as step:
            if rows is None:
                indices = step.batch.indices
                sums = clipped(parameters, inputs[indices], labels[indices])
            else:
                parts = step.batch.micro_batches(rows)
                each = [clipped(parameters, inputs[i], labels[i], mask=mask) for i, mask in parts]
                sums = jax.tree.map(lambda *leaves: sum(leaves), *each)
            means = release(step, sums)
        parameters = jax.tree.map(lambda leaf, mean: leaf - 0.1 * mean, parameters, means)
    return parameters


WAYS = {
    "plan": by_plan,
    "functions": lambda run: by_functions(run, None),
    "micro-batches": lambda run: by_functions(run, 4),
}


@pytest.mark.parametrize(
    "changes", [{}, CORRELATED, CYCLIC, SPARSE], ids=["poisson", "b-min-sep", "cyclic with a matrix", "sparse"]
)
@pytest.mark.parametrize("way", WAYS)
def test_the_weights_are_those_of_a_loop_by_hand(
    tmp_path: Path, changes: dict[str, Any], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, key = [], []
    for place, made in ((way, WAYS[way]), ("hand", by_hand)):
        with with_key(started(tmp_path / place, changes), key, monkeypatch) as run:
            ended.append(made(run))
            assert run.released == ROUNDS
    for one, other in zip(*map(jax.tree.leaves, ended), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_checkpoint_is_continued_and_the_record_is_complete(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path, records=RECORDS) as run:
        plan = execution_plan(run)
        assert plan.logged()["epsilon_so_far_upper"] == 0.0
        state, transform = plan.noise_addition_transform.init(None), plan.noise_addition_transform
        batches = plan.batch_selection_strategy.batch_iterator(RECORDS)
        saved = (run.state_dict(), state)
        first, state = (next(batches), *transform.update(jnp.ones(3), state))[1:]
        assert 0.0 < plan.logged()["epsilon_so_far_upper"] < certificate.epsilon
        run.load_state_dict(saved[0])
        with pytest.raises(RunError, match="the state is at round 1, and the run at round 0"):
            transform.update(jnp.ones(3), state)
        again, state = transform.update(jnp.ones(3), saved[1])
        assert np.array_equal(first, again)
        for _ in plan.batch_selection_strategy.batch_iterator(RECORDS):
            _, state = transform.update(jnp.ones(3), state)
        assert plan.logged()["epsilon_so_far_upper"] == certificate.epsilon
        with pytest.raises(PlanExceededError):
            transform.update(jnp.ones(3), state)
        assert not list(plan.batch_selection_strategy.batch_iterator(RECORDS))
    assert hold_record(tmp_path / "record.jsonl", certificate).released == ROUNDS


def test_the_event_is_that_of_the_certificate_or_none_that_is_accepted(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path / "poisson", records=RECORDS) as run:
        event = execution_plan(run).dp_event
    theirs = dp_accounting.pld.PLDAccountant().compose(event).get_epsilon(certificate.delta)
    assert theirs == pytest.approx(certificate.epsilon, rel=1e-3)
    replaced = {"privacy": {**DOCUMENT["privacy"], "adjacency": "replace-one", "epsilon": 1000.0}}
    for name, run in {
        "matrix": started(tmp_path / "matrix", CYCLIC, uncertified=False),
        "replaced": started(tmp_path / "replaced", replaced, uncertified=False),
        "uncertified": started(tmp_path / "uncertified"),
    }.items():
        with run:
            assert isinstance(execution_plan(run).dp_event, dp_accounting.UnsupportedDpEvent), name
    with pytest.raises(dp_accounting.UnsupportedEventError):
        dp_accounting.pld.PLDAccountant().compose(dp_accounting.UnsupportedDpEvent())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2_clip_norm": 1.0}, "l2_clip_norm = 1.0: leave this out, since gradients are clipped to the clip norm"),
        ({"rescale_to_unit_norm": True}, "rescale_to_unit_norm = True: leave this out, since the noise"),
        ({"normalize_by": 6.0}, "normalize_by = 6.0: leave this out, since the run divides"),
        ({"nan_safe": False}, "nan_safe = False: leave this out"),
        ({"dtype": jnp.bfloat16}, "dtype = bfloat16: sums are float32 or float64"),
    ],
)
def test_sums_that_are_not_those_of_the_run_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with started(tmp_path) as run, pytest.raises(RunError, match=message):
        execution_plan(run).clipped_grad(loss, **options)


def test_batches_that_are_not_those_of_the_run_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        plan = execution_plan(run)
        with pytest.raises(RunError, match="num_examples = 59, and the run has 60 records"):
            plan.batch_selection_strategy.batch_iterator(59)
        with pytest.raises(RunError, match="rng: the batches of a run are drawn from its secret key"):
            plan.batch_selection_strategy.batch_iterator(RECORDS, 0)
        batches = plan.batch_selection_strategy.batch_iterator(RECORDS)
        next(batches)
        with pytest.raises(RunError, match="the batch of round 1 is asked for, and round 0 is not released"):
            next(batches)
        batches = execution_plan(run, ahead=3).batch_selection_strategy.batch_iterator(RECORDS)
        assert [len(next(batches)) for _ in range(3)] == [len(run.batch(number)) for number in range(3)]
        with pytest.raises(RunError, match="the batch of round 3 is asked for"):
            next(batches)
        with pytest.raises(RunError, match="ahead = 0"):
            execution_plan(run, ahead=0)
        assert run.released == 0
    with started(tmp_path / "ranks", world=2) as run, pytest.raises(RunError, match="the run has 2 ranks"):
        execution_plan(run)
    also = {"noise": {"multiplier": 0.5, "also": [{"what": "counts", "multiplier": 2.0}]}}
    run = started(tmp_path / "also", also, also_clip_norms={"counts": 1.0})
    with run, pytest.raises(RunError, match="other sums of each batch"):
        execution_plan(run)


def test_sums_of_other_batches_than_that_of_the_round_are_not_released(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        plan = execution_plan(run)
        transform, strategy = plan.noise_addition_transform, plan.batch_selection_strategy
        state = transform.init(None)
        with pytest.raises(RunError, match="the batch of round 0 was not taken from batch_selection_strategy"):
            transform.update(jnp.ones(3), state)
        next(strategy.batch_iterator(RECORDS))  # a look at a batch, before a loop over others
        with pytest.raises(RunError, match="the batch of round 0 was not taken from batch_selection_strategy"):
            transform.update(jnp.ones(3), state)
        batches = strategy.batch_iterator(RECORDS)
        next(batches)
        _, state = transform.update(jnp.ones(3), state)
        with pytest.raises(RunError, match="the batch of round 1 was not taken from batch_selection_strategy"):
            transform.update(jnp.ones(3), state)
        assert run.released == 1
        ahead = execution_plan(run, ahead=2)
        batches = ahead.batch_selection_strategy.batch_iterator(RECORDS)
        next(batches), next(batches)
        _, state = ahead.noise_addition_transform.update(jnp.ones(3), state)
        next(batches)
        with pytest.raises(RunError, match="the batch of round 4 is asked for, and round 2 is not released"):
            next(batches)  # a loop that adds up two batches


@pytest.mark.parametrize("options", [{}, {"microbatch_size": 4}, {"return_values": True, "return_grad_norms": True}])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_sums_of_an_empty_batch_are_zeros(tmp_path: Path, options: dict[str, Any], compiled: bool) -> None:
    inputs, labels = data()
    with started(tmp_path) as run:
        clipped = execution_plan(run).clipped_grad(loss, batch_argnums=(1, 2), **options)
        assert clipped.sensitivity() == run.clip_norm
        found = (jax.jit(clipped) if compiled else clipped)(begun(), inputs[:0], labels[:0])
        if "return_values" in options:
            found, more = found
            assert more.values.shape == more.grad_norms.shape == (0,)
        for one, parameter in zip(jax.tree.leaves(found), jax.tree.leaves(begun()), strict=True):
            assert one.shape == parameter.shape
            assert not np.any(one)


def test_nothing_is_released_in_what_jax_compiles(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        plan = execution_plan(run)
        state = plan.noise_addition_transform.init(None)
        with pytest.raises(RunError, match="inside of a function that JAX compiles"):
            jax.jit(plan.noise_addition_transform.update)(jnp.ones(3), state)
        with pytest.raises(RunError, match="inside of a function that JAX compiles"):
            jax.jit(lambda sums: plan.noise_addition_transform.update(sums, state)[0])(jnp.ones(3))

        def traced(sums: Any) -> Any:
            with run.step() as step:
                return release(step, sums)

        with pytest.raises(RunError, match="inside of a function that JAX compiles"):
            jax.jit(traced)(jnp.ones(3))
        assert (run.round, run.released) == (0, 0)
        batches = plan.batch_selection_strategy.batch_iterator(RECORDS)
        next(batches)
        plan.noise_addition_transform.update(jnp.ones(3), state)
        assert run.released == 1


def test_gradients_that_are_not_finite_contribute_nothing(tmp_path: Path) -> None:
    """Nor do masked examples, and half precision is widened before it is clipped."""

    def steep(parameters: Any, slope: Any) -> Any:
        return parameters * slope

    with started(tmp_path) as run:
        clipped = clipped_sum(steep, run)
        slopes = jnp.array([0.25, jnp.inf, 100.0, jnp.nan, 3.0])
        total = clipped(jnp.float32(1.0), slopes, mask=[True, True, True, True, False])
        assert float(total) == pytest.approx(0.25 + run.clip_norm)
        half = clipped(jnp.bfloat16(1.0), jnp.full(257, 1.0, jnp.bfloat16))
        assert half.dtype == jnp.float32
        assert float(half) == pytest.approx(257 * run.clip_norm, rel=1e-6)
        empty = clipped({"a": jnp.ones((2, 3), jnp.bfloat16)}, jnp.zeros(0))
        assert empty["a"].dtype == jnp.float32
        with run.step() as step:
            means = release(step, empty)
        assert means["a"].shape == (2, 3)
        theirs = execution_plan(run).clipped_grad(lambda p, x: steep(p, x).sum())
        assert float(theirs(jnp.float32(1.0), slopes[:4])) == pytest.approx(0.25 + run.clip_norm)
