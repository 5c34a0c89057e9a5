"""jax_privacy: an execution plan with the batches, the noise and the record of a certified run.

    run = pyaccount.TrainingRun("training.cert.json", "runs/first", records=len(data), clip_norm=1.0)
    plan = execution_plan(run)

The plan is a `jax_privacy.experimental.execution_plan.DPExecutionPlan`, so a loop that is written for these stays as it is.
jax_privacy computes the gradients of single records, clips them and adds them up. The batches, the noise, which is correlated if
the document has a matrix, and the normaliser are those of the run. This module accounts for nothing itself. It needs jax_privacy.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyaccount.adapters.dp_accounting import to_event
from pyaccount.errors import DocumentError, RunError, importing, quoted
from pyaccount.integrations.facts import Progress
from pyaccount.training import TrainingRun
from pyaccount.training.jax import check_untraced, release

with importing("jax", "jax_privacy", "optax", "dp_accounting", by=__name__, package="jax-privacy"):
    import dp_accounting  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import jax
    import jax.numpy as jnp
    import optax
    from jax_privacy import clipping
    from jax_privacy.batch_selection import BatchSelectionStrategy
    from jax_privacy.experimental.execution_plan import DPExecutionPlan

#: Arguments of `clipped_grad` that would scale the sums, and why each is refused.
SCALED = {
    "l2_clip_norm": "gradients are clipped to the clip norm of the run",
    "rescale_to_unit_norm": "the noise of the run is in units of its clip norm, and a sum divided by it would get too much noise",
    "normalize_by": "the run divides the noisy sum by its normaliser, and a sum divided before would get too much noise",
}


@dataclass
class _Drawn:
    """Which batch a loop has drawn last."""

    #: The round of the batch; -1 if there is none.
    round: int = -1
    #: The iteration that has drawn it. One that was given up may end later than the next one begins.
    by: object = None


@dataclass(frozen=True)
class PlanBatches(BatchSelectionStrategy):  # type: ignore[misc, unused-ignore]
    """The batches of a run, as a strategy of jax_privacy.

    At most `ahead` batches are drawn whose rounds were not released yet. A loop that skips an empty batch would give later
    batches the rounds of earlier ones; this is how it is noticed. Give a larger number to a loop that loads data in advance.
    A loop that adds up batches is then noticed only when it asks for a batch too many, after its first rounds.
    """

    run: TrainingRun
    ahead: int = 1
    drawn: _Drawn = field(default_factory=_Drawn, repr=False, compare=False)

    def batch_iterator(self, num_examples: int, rng: object = None) -> Iterator[NDArray[np.int64]]:
        """Yield the indices of the records of each round, from the next round to the last one. Some batches may be empty.

        Raises `RunError` if `num_examples` is not the number of records of the run, for an `rng`, since batches are drawn from
        the key of the run, and if a batch is asked for before the rounds of the earlier ones were released.
        """
        run = self.run
        if num_examples != run.records[0]:
            raise RunError(
                f"num_examples = {quoted(num_examples)}, and the run has {run.records[0]} records: give the data of the run"
            )
        if rng is not None:
            raise RunError(
                "rng: the batches of a run are drawn from its secret key, so that nobody can guess them and a run that goes on "
                "has the same ones: leave it out"
            )
        return self._batches()

    def _batches(self) -> Iterator[NDArray[np.int64]]:
        run, drawn, iteration = self.run, self.drawn, object()
        try:
            for number in range(run.round, run.rounds):
                if number >= run.round + self.ahead:
                    raise RunError(
                        f"the batch of round {number} is asked for, and round {run.round} is not released: release the sum of "
                        "every batch, zeros for an empty one. If your loop loads batches in advance, give their number: "
                        "execution_plan(…, ahead=…)"
                    )
                drawn.round, drawn.by = number, iteration
                yield run.batch(number).indices
        finally:
            # What an iteration that was given up has drawn is not trained with. A loop that loads in advance ends it earlier.
            if drawn.by is iteration and self.ahead == 1:
                drawn.round = -1

    def check_drawn(self) -> None:
        """Raise `RunError` if the batch of the next round was not drawn here, or if too many were drawn after it."""
        run = self.run
        if not run.round <= self.drawn.round < run.round + self.ahead:
            raise RunError(
                f"the batch of round {run.round} was not taken from batch_selection_strategy.batch_iterator: train with the "
                "batches of the plan, which are drawn as they were accounted for, and not with your own. After "
                "run.load_state_dict begin a new iteration; update in the loop over it, or keep its iterator"
            )


class RunNoiseState(NamedTuple):
    """What the noise of a run keeps in the state of an optimizer: the next round. The run itself has everything else."""

    round: NDArray[np.int64]


@dataclass(frozen=True)
class RunExecutionPlan(DPExecutionPlan):  # type: ignore[misc, unused-ignore]
    """An execution plan whose batches, noise and record are those of a run."""

    run: TrainingRun
    progress: Progress

    def logged(self) -> dict[str, float]:
        """Return upper bounds for logs: `epsilon_so_far_upper`, `epsilon_upper` and `delta_upper`; nothing without certificate.

        The bound for the rounds so far holds if the length of the training was fixed beforehand.
        """
        return self.progress.logged()


def execution_plan(run: TrainingRun, *, ahead: int = 1) -> RunExecutionPlan:
    """Return the execution plan of a run.

    * `clipped_grad(loss, …)` is that of jax_privacy: Σ_i g_i·min(1, clip norm/‖g_i‖₂), with the clip norm of the run, in float32.
    * `batch_selection_strategy.batch_iterator(n)` yields the batches of the run from its next round on.
    * `noise_addition_transform.update(sums, state)` releases the sums and returns the noisy *mean*: sums plus noise, divided by
      the normaliser of the run. It is recorded on the disk first, so it is called outside of compiled functions. `init` returns
      the state; after `run.load_state_dict` a new one is needed, unless it comes from the same checkpoint.
    * `dp_event` describes the certified document in units of its clip norm. It is an `UnsupportedDpEvent` where dp_accounting has
      no such event (matrices, b-min-sep, balls in bins, …), under replace-one, whose events have another unit, and for a run
      without a certificate. The guarantee is `run.certificate`.

    `ahead` is the number of batches that may be drawn before their rounds are released, for loops that load data in advance.
    With 1 every release is checked to follow exactly one batch; with more, at most `ahead` - 1 batches may be added up unnoticed.

    Raises `RunError` for runs of several processes, for other sums (`noise.also`), for phases with different data, and for an
    `ahead` below 1.
    """
    if run.world > 1:
        raise RunError(
            f"the run has {run.world} ranks, and a plan has no place where their sums are added up: use run.step() and "
            "pyaccount.training.jax, and compare run.rank_state of all ranks first"
        )
    if run.also_clip_norms:
        raise RunError(
            "the document releases other sums of each batch (noise.also), and a plan makes one sum: use run.step() and "
            "step.release(…, also=…)"
        )
    if len(set(run.records)) != 1:
        raise RunError(
            "the phases of the run have different data sets, and a plan draws from one: use run.step() and run.batch()"
        )
    if ahead < 1:
        raise RunError(f"ahead = {quoted(ahead)}: at least 1 batch is drawn before its round is released")
    batches = PlanBatches(run, ahead)
    return RunExecutionPlan(
        clipped_grad=_clipped_grad(run),
        batch_selection_strategy=batches,
        noise_addition_transform=_noise(run, batches),
        dp_event=_event(run),
        run=run,
        progress=Progress(run),
    )


def _clipped_grad(run: TrainingRun) -> Callable[..., Any]:
    """Return jax_privacy's `clipped_grad` for the clip norm of the run."""

    @functools.wraps(clipping.clipped_grad)
    def clipped_grad(*functions: Any, **options: Any) -> Any:
        for name, why in SCALED.items():
            if name in options:
                raise RunError(f"{name} = {quoted(options[name])}: leave this out, since {why}")
        if options.get("nan_safe", True) is not True:
            raise RunError(
                f"nan_safe = {quoted(options['nan_safe'])}: leave this out, since a gradient that is not finite would not be "
                "clipped"
            )
        kind = options.setdefault("dtype", jnp.float32)
        if jnp.dtype(kind) not in (jnp.float32, jnp.float64):
            raise RunError(
                f"dtype = {jnp.dtype(kind).name}: sums are float32 or float64, since roundings to fewer digits could make "
                "contributions longer than the clip norm"
            )
        options["l2_clip_norm"] = run.clip_norm
        arguments = inspect.signature(clipping.clipped_grad).bind(*functions, **options)
        arguments.apply_defaults()
        return _with_empty_batches(clipping.clipped_grad(*functions, **options), arguments.arguments)

    return clipped_grad


def _with_empty_batches(made: Any, options: dict[str, Any]) -> Any:
    """Return a function of jax_privacy that also takes a batch without records: its sums are those of padding alone, zeros."""
    numbers = options["batch_argnums"]
    batched = {numbers} if isinstance(numbers, int) else set(numbers)
    rows = options.get("microbatch_size") or 1

    def padded(leaf: Any) -> Any:
        return jnp.zeros((rows, *leaf.shape[1:]), leaf.dtype)

    def sums(*given: Any, **named: Any) -> Any:
        leaves = [leaf for number in batched for leaf in jax.tree.leaves(given[number])]
        if not leaves or leaves[0].shape[0]:
            return made.fun(*given, **named)
        named["is_padding_example"] = jnp.ones(rows, bool)
        found = made.fun(
            *(jax.tree.map(padded, one) if number in batched else one for number, one in enumerate(given)), **named
        )
        if not made.has_aux:
            return found
        return found[0], jax.tree.map(lambda leaf: leaf[:0], found[1])

    return dataclasses.replace(made, fun=sums)


def _noise(run: TrainingRun, batches: PlanBatches) -> optax.GradientTransformation:
    """Return the transformation that releases a round."""

    def init(_: Any) -> RunNoiseState:
        return RunNoiseState(np.array(run.round))

    def update(sums: Any, state: RunNoiseState, params: Any = None) -> tuple[Any, RunNoiseState]:
        check_untraced((sums, state))
        if int(state.round) != run.round:
            raise RunError(
                f"the state is at round {int(state.round)}, and the run at round {run.round}: give run.load_state_dict what "
                "run.state_dict() returned for the same checkpoint, or make a new state with init"
            )
        if run.round < run.rounds:
            batches.check_drawn()
        with run.step() as step:
            means = release(step, sums)
        return means, RunNoiseState(np.array(run.round))

    return optax.GradientTransformation(init, update)


def _event(run: TrainingRun) -> Any:
    """Return the event of the certified document, or one that no accountant accepts."""
    unknown = dp_accounting.UnsupportedDpEvent()
    if run.certificate is None or run.certificate.data.document["privacy"]["adjacency"] == "replace-one":
        return unknown
    try:
        return to_event(run.certificate.data.document)
    except DocumentError:
        return unknown
