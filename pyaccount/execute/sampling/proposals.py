"""Where samples may be drawn from: scaled means with likelier participations, and the names for plain sampling."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.execute.sampling.jobs import Component, Proposal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.directions import Direction
    from pyaccount.execute.sampling.jobs import Replicas
    from pyaccount.plan.sampled import SampledMechanism

#: How far means are scaled in a first look, and what the odds of taking part are multiplied by. Small likelihood
#: ratios come from many rounds that each say a little: where the record is added, joining often is worth a try.
EXCESSES = (0.4, 0.8, 1.4, 2.4, 4.0)
#: And in a second look, where the first did not cover what counts: participations that say little each, far in the tail.
FAR_EXCESSES = (6.0, 8.5, 12.0, 17.0, 24.0)
ODDS = (1.0, 3.0, 9.0)
ODDS_ADDED = (1.0, 3.0, 9.0, 60.0)
#: Plain sampling, as a component.
PLAIN = Component(1, (), 0.0)


def scaled(mechanism: SampledMechanism, direction: Direction, excess: float, odds: float) -> Proposal:
    """The proposal whose means are scaled by so much beyond plain sampling, and with the odds of taking part multiplied."""
    mean_scale = -excess if direction == "add" else 1.0 + excess
    return proposed([_likelier(p, odds) for p in mechanism.plain_parameters], mean_scale)


def proposed(parameters: Sequence[float], mean_scale: float) -> Proposal:
    """The proposal with one parameter for each mechanism."""
    first, *further = parameters
    return Proposal(first, mean_scale, tuple(further))


def plain(mechanism: SampledMechanism, direction: Direction) -> Proposal:
    """Plain sampling."""
    return proposed(mechanism.plain_parameters, 0.0 if direction == "add" else 1.0)


def powered(mechanism: SampledMechanism, replicas: Replicas) -> Proposal:
    """Samples of a power of the likelihood ratio of a removed record."""
    return replace(proposed(mechanism.plain_parameters, float(replicas.order)), replicas=replicas)


def mixed(
    mechanism: SampledMechanism,
    direction: Direction,
    anchor: Proposal,
    further: Sequence[Component],
    share: int,
) -> tuple[Component, ...] | None:
    """A mixture with `share` units of a proposal and the rest of what else `further` has; None where that is nothing.

    Plain sampling comes first, with a unit where it is not the proposal itself.
    """
    usual = plain(mechanism, direction)
    own = Component(share, anchor.parameters, anchor.mean_scale)
    bounded_by_plain = anchor.single == usual
    rest = [
        one
        for one in further
        if one.parameters != own.parameters or one.number != own.number
        if one.parameters != usual.parameters or one.number != usual.mean_scale
        if one.parameters or one.number != 0.0
    ]
    spare = _core.SHARD_UNITS - share - (0 if bounded_by_plain else 1)
    rest = sorted(rest, key=lambda one: -one.share)[:spare]
    if not rest:
        return None
    head = [replace(PLAIN, share=share)] if bounded_by_plain else [PLAIN, own]
    units = shared([one.share for one in rest], spare)
    return (*head, *(replace(one, share=unit) for one, unit in zip(rest, units, strict=True)))


def shared(weights: Sequence[float], units: int) -> list[int]:
    """Whole units in proportion to weights, at least one each."""
    spare, total = units - len(weights), sum(weights)
    wanted = [spare * weight / total for weight in weights]
    found = [math.floor(one) for one in wanted]
    # What rounding left over goes where most was cut off.
    order = sorted(range(len(found)), key=lambda k: found[k] - wanted[k])
    for k in order[: spare - sum(found)]:
        found[k] += 1
    return [1 + one for one in found]


def library(
    mechanism: SampledMechanism, direction: Direction, *, far: bool = False, most: float = math.inf
) -> list[Proposal]:
    """Return proposals for a first look, and with `far` some whose means are scaled further, for a second one.

    A further law of a removed record is left out if its mean loss is about `most` or more.
    """
    odds = (ODDS_ADDED if direction == "add" else ODDS) if _has_odds(mechanism) else (1.0,)
    facts = mechanism.core.tilt(0.0) if direction == "remove" else None

    def beyond(excess: float, factor: float) -> bool:
        # With means κCx the loss is about (κ − ½)‖Cx‖², and there are so many times the participations.
        return facts is not None and excess > EXCESSES[-1] and (2.0 * excess + 1.0) * facts[1] * factor > most

    excesses = (*EXCESSES, *FAR_EXCESSES) if far else EXCESSES
    pairs = [(excess, factor) for excess in excesses for factor in odds if not beyond(excess, factor)]
    return list(dict.fromkeys(scaled(mechanism, direction, *pair) for pair in pairs))


def between(plain_parameter: float, balanced: float, share: float) -> float:
    """A parameter between two: of probabilities on the scale of log odds, of exponents linearly."""
    if plain_parameter <= 0.0 or balanced >= 1.0 or plain_parameter >= 1.0:
        return plain_parameter + share * (balanced - plain_parameter)
    low, high = (math.log(p / (1.0 - p)) for p in (plain_parameter, balanced))
    return 1.0 / (1.0 + math.exp(-(low + share * (high - low))))


def _likelier(p: float, odds: float) -> float:
    """The probability with the odds multiplied; the exponent 0 of bins, which are all equally likely, stays."""
    if p <= 0.0:
        return 0.0
    likely = odds * p / (1.0 - p + odds * p)
    # A proposal that always joins would leave out patterns, unless the sampler itself always joins.
    return likely if p >= 1.0 else max(p, min(likely, _core.MOST_LIKELY))


def _has_odds(mechanism: SampledMechanism) -> bool:
    """Whether taking part is a matter of odds for any of the mechanisms."""
    return any(p > 0.0 for p in mechanism.plain_parameters)
