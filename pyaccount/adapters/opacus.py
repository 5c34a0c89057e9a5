"""Opacus: converts an accountant's history to a document, or to an `Accountant` that continues counting.

Opacus's accountants record (noise multiplier, sample rate, steps). The kind of accountant (rdp, prv, gdp) says how ε was
computed, not what was run, so it is ignored. A history describes Poisson sampling, so it is true of a run only if
`poisson_sampling` was on. A step is a step of the optimizer. If gradients of several batches were accumulated for one step (other
than by Opacus's `BatchMemoryManager`, which splits one batch), a record could enter a step several times. Opacus then records the
product of the rate and the number of batches, as if they were one batch, which accounts for too little privacy loss. Describe
such a run by hand, with the rate of one batch and `sampler.draws_per_iteration`.

A history does not say which data sets are neighbours. `make_private` divides every noisy sum by int(len(dataset) · sample_rate),
and its sample rate and number of steps also follow from len(dataset). One record more or less may change all three, and no noise
hides that, so add-remove accounting does not describe such a run (Opacus's issues 571 and 819). If the size of the data set is
public and a record is replaced by one that contributes nothing (zero-out), the three are constants, and the rounds have the same
dominating pair; a history is read in this way. Add-remove is only for runs that divide by a constant of their own, with a rate
and a number of steps that were fixed without looking at the data. A history does not show this, so the caller must state it.

The sample rate is 1/len(DataLoader): 1/⌈N/B⌉ for batches of B out of N records (1/⌊N/B⌋ if the last batch is dropped), not B/N.
An epoch has ⌈N/B⌉ steps, so the number of steps is epochs/rate. `get_noise_multiplier(epochs=…)` truncates that quotient to an
integer, and may calibrate for one step fewer than the loader makes. This adapter uses the number of steps in the history.

Adaptive clipping (`clipping="adaptive"`, `AdaClipDPOptimizer`) is refused. Each step then also releases how many gradients were
not clipped, and the history has the noise multiplier of the gradients alone, σ′ = (σ⁻² − (2σ_b)⁻²)^(−1/2) > σ. Both releases
together are equivalent to one with the requested σ (Andrew et al. 2021, Theorem 1). So give [(σ, rate, steps)] by hand, or
describe both releases in a document with σ′ as `noise.multiplier`, and the count with multiplier 2σ_b in `noise.also`. Both are
true only of a run that divides the count by a constant. Opacus's optimizer divides it by the number of records drawn, which no
noise hides; therefore the adapter does not read it by itself. A history does not show whether it has σ′ or σ, so only the
optimizer itself can be refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyaccount.adapters.reading import BodyMapping, document, no_equivalent, real, whole_in, wrong_type_error
from pyaccount.document.ranges import ITERATIONS, NOISE_MULTIPLIER, PROBABILITY
from pyaccount.errors import quoted

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant

#: The values and mappings that a phase of a history has in its document; a list has one for each step.
VALUES_OF_PHASE = 8


def from_history(  # noqa: PLR0913 - the head of the document, which a history does not have
    source: object,
    *,
    delta: float | str,
    epsilon: float | str = "solve",
    name: str = "opacus",
    adjacency: str = "zero-out",
    constant_normaliser: bool = False,
) -> dict[str, Any]:
    """Return the document of a history, which describes Poisson sampling with a phase for each entry.

    A history with a new entry at nearly every step, as Opacus's schedulers of noise make it, becomes one body with a schedule
    instead, which is the shorter document of the same rounds.

    Args:
        source: The history, a list of (noise multiplier, sample rate, steps); or an accountant or its `state_dict()`.
        delta: δ of the document.
        epsilon: ε of the document; by default it is solved for.
        name: The name of the document.
        adjacency: Which data sets are neighbours. `zero-out` and `replace-one` treat the size of the data set as public, as
            Opacus does when it divides by int(len(dataset) · sample_rate).
        constant_normaliser: Whether the run divided its noisy sums by a constant instead, with a sample rate and a number of
            steps that do not depend on the data either. `add-remove` is true only of such runs.

    Raises:
        DocumentError: If `source` is not a history (with the place in it) or is empty, or for `add-remove` without
            `constant_normaliser`.
    """
    _check_neighbours(adjacency, constant=constant_normaliser)
    entries = _history(source)
    if not entries:
        no_equivalent(("history",), "nothing was released yet: a document needs at least one step", value=[])
    bodies = [_body(noise, rate, steps) for noise, rate, steps in entries]
    if _shorter_as_schedule(entries):
        steps = sum(entry[2] for entry in entries)
        bodies = [_body(_by_round(entries, 0), _by_round(entries, 1), steps)]
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
    """Return an open ledger that has counted the steps of a history; `epsilon` is its budget, if there is one.

    `adjacency`, `constant_normaliser` and the errors raised are as for `from_history`.
    """
    from pyaccount.accountant import Accountant  # `from_history` does not need it

    _check_neighbours(adjacency, constant=constant_normaliser)
    ledger = Accountant(adjacency=adjacency, delta=delta, epsilon=epsilon, name=name)
    for noise, rate, steps in _history(source):
        ledger.step(steps, noise_multiplier=noise, sampling_probability=rate)
    return ledger


def _body(noise: object, rate: object, steps: int) -> BodyMapping:
    return {
        "training": {"sampling_probability": rate, "iterations": steps},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": noise},
    }


def _shorter_as_schedule(entries: list[tuple[float, float, int]]) -> bool:
    """Return whether lists with a value for each step have fewer values than the phases of these entries."""
    lists = sum(len({entry[place] for entry in entries}) > 1 for place in (0, 1))
    different = 1 + sum(one[:2] != other[:2] for one, other in pairwise(entries))
    return 0 < lists * sum(entry[2] for entry in entries) < VALUES_OF_PHASE * different


def _by_round(entries: list[tuple[float, float, int]], place: int) -> float | dict[str, list[float]]:
    """Return the noise (place 0) or the rate (1) of each step as a schedule, or as one number if all have the same."""
    values = [entry[place] for entry in entries for _ in range(entry[2])]
    return values[0] if len(set(values)) == 1 else {"schedule": values}


def _check_neighbours(adjacency: str, *, constant: bool) -> None:
    """Raise `DocumentError` for add-remove unless the caller states that the run divides by a constant."""
    if adjacency == "add-remove" and not constant:
        no_equivalent(
            ("adjacency",),
            "Opacus divides each noisy sum by int(len(dataset) · sample_rate), which one record more or less may change: use "
            "zero-out if the size of the data set is public, or give constant_normaliser=True if this run divided by a constant",
            value=adjacency,
            allowed="zero-out, replace-one, or add-remove with constant_normaliser=True",
        )


def _history(source: object) -> list[tuple[float, float, int]]:
    """Return the entries of a history after checking them."""
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
        history = source["history"]
    else:
        history = getattr(source, "history", source)
    expected = "a list of (noise multiplier, sample rate, steps)"
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
        wrong_type_error(("history",), f"must be {expected}, not {quoted(history)}", history, expected)
    entries = []
    for index, entry in enumerate(history):
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            wrong_type_error(
                ("history", index), f"an entry of {expected} is expected, not {quoted(entry)}", entry, expected
            )
        noise, rate, steps = entry
        entries.append(
            (
                real(noise, NOISE_MULTIPLIER, ("history", index, 0)),
                real(rate, PROBABILITY, ("history", index, 1)),
                whole_in(steps, ITERATIONS, ("history", index, 2)),
            )
        )
    return entries
