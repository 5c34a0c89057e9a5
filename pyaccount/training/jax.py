"""A run in JAX: clipped sums of the gradients of single examples, and the noisy mean of a round as a tree like the sums.

    clipped = clipped_sum(loss, run)                            # loss(parameters, *example), of one example
    with run.step() as step:
        sums = clipped(parameters, features[step.batch.indices], labels[step.batch.indices])
        mean = release(step, sums)

This module needs JAX, and no other module of the room imports it. Sums are computed by JAX, also when compiled; releases are made
outside of compiled functions, since each of them is recorded on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyaccount.errors import RunError, importing
from pyaccount.training.run import Step, TrainingRun
from pyaccount.training.sums import Array

with importing("jax", by=__name__):
    import jax
    import jax.numpy as jnp

#: A tree of arrays: nested dictionaries, lists, tuples and whatever else JAX knows as one.
Tree = Any

#: A lower bound on the norms by which is divided, so that a gradient of zeros stays zero.
LEAST_NORM = 1e-30


def clipped_sum(loss: Callable[..., Any], run: TrainingRun) -> Callable[..., Tree]:
    """Return a compiled function of a batch that returns Σ_i g_i·min(1, clip norm/‖g_i‖₂) as a tree like the parameters.

    g_i is the gradient of `loss(parameters, *example)` of example i alone, whose arrays have no batch dimension, and ‖g_i‖₂ is
    over all parameters. The clip norm is that of `run`. The function takes the parameters and the arrays of the batch, whose
    first dimension counts the examples, and `mask=`: examples with a false entry, such as the padding of
    `Batch.micro_batches`, contribute nothing. An example whose gradient is not finite contributes zero, which, like clipping,
    depends on this example alone. A batch without examples gives zeros.

    It is compiled anew for every number of examples; micro-batches of one size avoid this. For half-precision parameters, sums,
    norms and contributions are float32, because roundings to half precision could make contributions longer than the clip norm.
    The memory of one gradient per example is needed.
    """
    norm = run.clip_norm

    def contribution(parameters: Tree, kept: Any, *example: Any) -> Tree:
        gradient = jax.tree.map(_wide, jax.grad(loss)(parameters, *example))
        length = jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(gradient)))
        factor = jnp.minimum(1.0, norm / jnp.maximum(length, LEAST_NORM))
        # Zero times infinity is not a number, hence not a product.
        kept = kept & jnp.isfinite(length)
        return jax.tree.map(lambda leaf: jnp.where(kept, factor.astype(leaf.dtype) * leaf, 0.0), gradient)

    def summed(parameters: Tree, mask: Any, *examples: Any) -> Tree:
        each = jax.vmap(contribution, in_axes=(None, 0, *[0] * len(examples)))(parameters, mask, *examples)
        return jax.tree.map(lambda leaf: leaf.sum(0), each)

    compiled = jax.jit(summed)

    def clipped(parameters: Tree, *examples: Any, mask: Any = None) -> Tree:
        count = jax.tree.leaves(examples)[0].shape[0]
        if count == 0:
            return jax.tree.map(lambda leaf: _wide(jnp.zeros_like(leaf)), parameters)
        return compiled(parameters, jnp.ones(count, bool) if mask is None else jnp.asarray(mask), *examples)

    return clipped


def release(step: Step, sums: Tree) -> Tree:
    """Return the noisy mean of a round as a tree of the structure of `sums`, which are the clipped sums of the round's batch.

    The arrays are released by their places in the tree, so the places must be the same in every round. Half-precision arrays are
    released as float32. Everything else is as in `Step.release`, whose errors are raised.

    Raises `RunError` inside of a function that JAX transforms or compiles: it would be recorded once, and not in every round.
    """
    check_untraced(sums)
    places, structure = jax.tree_util.tree_flatten_with_path(sums)
    arrays: dict[str, Array] = {
        jax.tree_util.keystr(place) or "parameters": np.asarray(_wide(jnp.asarray(leaf))) for place, leaf in places
    }
    means = step.release(arrays)
    assert isinstance(means, dict)
    return jax.tree_util.tree_unflatten(structure, [jnp.asarray(means[name]) for name in arrays])


def check_untraced(tree: Tree) -> None:
    """Raise `RunError` if the tree has an array of a function that JAX is transforming or compiling."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree)):
        raise RunError(
            "a round is released inside of a function that JAX compiles or transforms, and each release is recorded on the disk: "
            "compile the clipped sums and the step of the optimizer, and release between them"
        )


def _wide(leaf: Any) -> Any:
    """Return the array, converted to float32 if it has half precision."""
    return leaf.astype(jnp.float32) if leaf.dtype in (jnp.float16, jnp.bfloat16) else leaf
