"""The rounds of bodies whose noise or rate differs from round to round: their kinds, and the values of each round.

Rounds with equal noise and equal rates are one *kind*. `pyaccount.plan.scheduled` proves what their composition bounds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.document.mechanisms import MechanismKind
from pyaccount.plan.common import number
from pyaccount.plan.rounds import combine
from pyaccount.plan.schedule_values import RoundValues, scale_of, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.plan.rounds import DirectedBounds


class KindOfRounds(NamedTuple):
    """Rounds that are alike: what is scheduled, by its key and without the scale, and how many rounds there are."""

    values: tuple[tuple[str, float], ...]
    rounds: int


def kinds_of(document: Document, body: Body) -> tuple[KindOfRounds, ...]:
    """Return the kinds of rounds of one run of a body with schedules, in a fixed order.

    Without sampling, these are the rounds with the least noise, as many as a record takes part in. The number of
    iterations must be known. Raises `DocumentError` as `values_of` does.
    """
    listed = tuple((str(path[-1]), values_of(document, body, path)) for path in body.schedules())
    return _counted(listed, body.participations())


@lru_cache(maxsize=8)
def _counted(listed: tuple[tuple[str, RoundValues], ...], most: int) -> tuple[KindOfRounds, ...]:
    import numpy as np  # only documents with schedules need it

    keys = [key for key, _ in listed]
    columns = [found.values for _, found in listed]
    if most < len(columns[0]):
        # `refusals` let only the noise of a fixed order come here.
        (noise,) = columns
        columns = [np.sort(noise)[:most]]
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        found, places = np.unique(column, return_inverse=True)
        code = np.unique(code * len(found) + places, return_inverse=True)[1]
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    return tuple(
        KindOfRounds(tuple(zip(keys, row, strict=True)), int(count))
        for row, count in zip(rows, counts.tolist(), strict=True)
    )


def bodies_of_kinds(document: Document, body: Body) -> Iterator[Body]:
    """Yield a body for each kind of rounds, in which all rounds are alike. Its length is the number of these rounds."""
    scale = next((scale_of(one) for path, one in body.schedules().items() if path[-1] == "multiplier"), 1.0)
    sampler = body.sampler.without_limits()
    for kind in kinds_of(document, body):
        values = dict(kind.values)
        noise = body.noise
        if "multiplier" in values:
            noise = noise.model_copy(update={"multiplier": scale * values.pop("multiplier")})
        training = body.training.model_copy(update={**values, "iterations": kind.rounds})
        yield replace(body, training=training, sampler=sampler, noise=noise)


def composed(document: Document, body: Body, one: Callable[[Document, Body], DirectedBounds]) -> DirectedBounds:
    """Return the rounds of all kinds together; `one` returns those of a body without schedules."""
    return combine([one(document, kind) for kind in bodies_of_kinds(document, body)], merge_gaussians=False)


def multipliers_of(document: Document, body: Body) -> NDArray[np.float64] | None:
    """Return σ of each round of one run of a body, in order; None if all rounds have the same."""
    found = _scaled(document, body, "multiplier")
    return None if found is None else found[0] * found[1]


def rates_of(document: Document, body: Body, key: str) -> NDArray[np.float64] | None:
    """Return the scheduled `sampling_probability` or `expected_batch_size` of each round; None if it is not scheduled."""
    found = _scaled(document, body, key)
    return None if found is None else found[1]


def multipliers_of_blank(document: Document) -> tuple[float, float]:
    """Return the smallest and the largest σ that a document whose blank is a scale has at scale 1."""
    assert document.blank is not None
    own = document.blank[:-3]
    least, most = [], []
    filled = document.filled(1.0)
    for body in filled.every_body():
        if isinstance(body.noise, MechanismKind):
            continue
        if document.blank == ("noise", "scale") or body.path == own:
            found = multipliers_of(filled, body)
            least.append(number(body.noise.multiplier) if found is None else float(found.min()))
            most.append(number(body.noise.multiplier) if found is None else float(found.max()))
    return min(least), max(most)


def _scaled(document: Document, body: Body, key: str) -> tuple[float, NDArray[np.float64]] | None:
    for path, scheduled in body.schedules().items():
        if path[-1] == key:
            return scale_of(scheduled), values_of(document, body, path).values
    return None


def at_round(document: Document, body: Body, round: int) -> Body:
    """Return the body with the noise and the rate of one round of a run, counted from 0."""
    noise, training = body.noise, {}
    for path, scheduled in body.schedules().items():
        value = scale_of(scheduled) * float(values_of(document, body, path).values[round])
        if path[-1] == "multiplier":
            noise = noise.model_copy(update={"multiplier": value})
        else:
            training[str(path[-1])] = value
    return replace(body, noise=noise, training=body.training.model_copy(update=training))


def constant_multiplier(document: Document, body: Body) -> float | None:
    """Return σ of every round of a body; None if it differs from round to round, and for a mechanism."""
    if isinstance(body.noise, MechanismKind):
        return None
    found = multipliers_of(document, body)
    if found is None:
        return number(body.noise.multiplier)
    return float(found[0]) if bool((found == found[0]).all()) else None
