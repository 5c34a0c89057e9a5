"""Opacus: an accountant's history as a document, or as an `Accountant` that goes on counting.

Opacus's accountants write down (noise multiplier, sample rate, steps); which of them (rdp, prv, gdp) did so says how ε was
computed, not what was run, and is not asked. What the history means is Poisson sampling, so it is true of a run only if
`poisson_sampling` was on. A step is a step of the optimizer. Where gradients of several batches were
accumulated for one step (other than by Opacus's `BatchMemoryManager`, which splits one batch), a record could enter a step
several times; Opacus writes the product of rate and batches, as if they were one batch, which is too little: such a run is
described by hand, with the rate of one batch and `sampler.draws_per_iteration`.

Which data sets are neighbours is not in a history. `make_private` divides every noisy sum by int(len(dataset) · sample_rate), and
its sample rate and its steps follow from len(dataset) too. With one record more or less, these may be others, which no noise
hides: such a run is not what add-remove accounting describes (Opacus's issues 571 and 819). Where the size of the data set is
public and a record is replaced by one that contributes nothing (zero-out), they are constants, and the rounds have the same
dominating pair: that is what a history is read as. Add-remove is for runs that divide by a constant of their own, with a rate and
a number of steps that were fixed without looking at the data, which nothing in a history shows: the caller says so.

The sample rate is 1/len(DataLoader): 1/⌈N/B⌉ for batches of B out of N records (1/⌊N/B⌋ where the last is dropped), not B/N.
An epoch has ⌈N/B⌉ steps, so that steps are epochs over the rate; `get_noise_multiplier(epochs=…)` cuts that quotient off, and
may calibrate for one step fewer than the loader makes. What counts here is the steps that a history has.

Not for adaptive clipping (`clipping="adaptive"`, `AdaClipDPOptimizer`): each step then also releases how many gradients were not
clipped, and the history has a noise multiplier σ′ = (σ⁻² − (2σ_b)⁻²)^(−1/2) > σ, that of the gradients alone. Both releases
together are one with the σ that was asked for (Andrew et al. 2021, Theorem 1): put that in by hand, as [(σ, rate, steps)], or
say what was released, in a document with σ′ as `noise.multiplier` and the count, multiplier 2σ_b, in `noise.also`. Either is
true of a run that divides the count by a constant. Opacus's optimizer divides it by the number of records drawn, which no noise
hides, so that it is not read of itself. A history cannot tell σ′ from σ, so only the optimizer itself is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyaccount.adapters.reading import document, no_equivalent, real, whole, wrong_type
from pyaccount.document.ranges import ITERATIONS, NOISE_MULTIPLIER, PROBABILITY
from pyaccount.errors import shown

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant


def from_history(  # noqa: PLR0913 - a document's head, and what a history leaves open
    source: object,
    *,
    delta: float | str,
    epsilon: float | str = "solve",
    name: str = "opacus",
    adjacency: str = "zero-out",
    constant_normaliser: bool = False,
) -> dict[str, Any]:
    """Return the document of a history, of an accountant that has one, or of its `state_dict()`: Poisson sampling.

    Args:
        source: The history: a list of (noise multiplier, sample rate, steps), or an object or a state that has one.
        delta: δ of the document.
        epsilon: ε of the document, which is solved for unless it is given.
        name: What the document calls the mechanism.
        adjacency: Which data sets are neighbours. `zero-out` and `replace-one` take the size of the data set as public, as
            Opacus does when it divides by int(len(dataset) · sample_rate).
        constant_normaliser: Whether the run divided its noisy sums by a constant instead, with a sample rate and a number of
            steps that do not depend on the data either. `add-remove` is true of no other run.

    Raises:
        DocumentError: For what is no history, with the place in it, for an empty one, and for `add-remove` without
            `constant_normaliser`.
    """
    _check_neighbours(adjacency, constant=constant_normaliser)
    bodies = [
        {
            "training": {"sampling_probability": rate, "iterations": steps},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": noise},
        }
        for noise, rate, steps in _history(source)
    ]
    if not bodies:
        no_equivalent(("history",), "nothing was released yet: there is no document of no steps", value=[])
    return document(bodies, name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=1)


def accountant(  # noqa: PLR0913 - as above
    source: object,
    *,
    delta: float | str,
    epsilon: float | str | None = None,
    name: str = "opacus",
    adjacency: str = "zero-out",
    constant_normaliser: bool = False,
) -> Accountant:
    """Return an open ledger that has counted the steps of a history; `epsilon` is the budget.

    `adjacency` and `constant_normaliser` are those of `from_history`, and so are the errors raised.
    """
    from pyaccount.accountant import Accountant  # the adapter of documents needs none

    _check_neighbours(adjacency, constant=constant_normaliser)
    ledger = Accountant(adjacency=adjacency, delta=delta, epsilon=epsilon, name=name)
    for noise, rate, steps in _history(source):
        ledger.step(steps, noise_multiplier=noise, sampling_probability=rate)
    return ledger


def _check_neighbours(adjacency: str, *, constant: bool) -> None:
    """Refuse add-remove for a run of which nobody said that it divides by a constant."""
    if adjacency == "add-remove" and not constant:
        no_equivalent(
            ("adjacency",),
            "Opacus divides each noisy sum by int(len(dataset) · sample_rate), which one record more or less may change: take "
            "zero-out, where the size of the data set is public, or say constant_normaliser=True if this run divided by a "
            "constant",
            value=adjacency,
            allowed="zero-out, replace-one, or add-remove with constant_normaliser=True",
        )


def _history(source: object) -> list[tuple[float, float, int]]:
    """The entries of a history, checked."""
    if any("AdaClip" in kind.__name__ for kind in type(source).__mro__):
        no_equivalent(
            (),
            "under adaptive clipping each step also releases a count, and the noise multiplier σ′ of the gradients alone is too "
            "large: give [(σ, sample rate, steps)] with the σ that was asked for",
            value=type(source).__name__,
        )
    if isinstance(source, Mapping):
        if "history" not in source:
            no_equivalent((), "this state has no history", value=", ".join(map(str, source)), allowed="a key history")
        found = source["history"]
    else:
        found = getattr(source, "history", source)
    what = "a list of (noise multiplier, sample rate, steps)"
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        wrong_type(("history",), f"must be {what}, not {shown(found)}", found, what)
    entries = []
    for index, entry in enumerate(found):
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            wrong_type(("history", index), f"an entry of {what} is expected, not {shown(entry)}", entry, what)
        noise, rate, steps = entry
        entries.append(
            (
                real(noise, NOISE_MULTIPLIER, ("history", index, 0)),
                real(rate, PROBABILITY, ("history", index, 1)),
                whole(steps, ITERATIONS, ("history", index, 2)),
            )
        )
    return entries
