"""Proposals from which samples may be drawn: scaled means with likelier participations, and plain sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.execute.sampling.jobs import Component, Proposal, Replicas
from pyaccount.plan.sampled import SampledMechanism

#: The mean scales (beyond plain sampling) and the factors of the odds of taking part that are tried first. Small
#: likelihood ratios come from many rounds that each say a little, so for an added record large odds are tried too.
EXCESSES = (0.4, 0.8, 1.4, 2.4, 4.0)
#: Mean scales for a second try, if the first did not cover what matters: many participations that each say
#: little, far in the tail.
FAR_EXCESSES = (6.0, 8.5, 12.0, 17.0, 24.0)
ODDS = (1.0, 3.0, 9.0)
ODDS_ADDED = (1.0, 3.0, 9.0, 60.0)
#: Plain sampling, as a component.
PLAIN = Component(1, (), 0.0)


def scaled(mechanism: SampledMechanism, direction: Direction, excess: float, odds: float) -> Proposal:
    """Return the proposal with means scaled by `excess` beyond plain sampling and multiplied odds of taking part."""
    mean_scale = -excess if direction == "add" else 1.0 + excess
    return with_parameters([_likelier(p, odds) for p in mechanism.plain_parameters], mean_scale)


def with_parameters(parameters: Sequence[float], mean_scale: float) -> Proposal:
    """Return the proposal with one parameter for each mechanism."""
    first, *further = parameters
    return Proposal(first, mean_scale, tuple(further))


def plain_proposal(mechanism: SampledMechanism, direction: Direction) -> Proposal:
    """Return the proposal of plain sampling."""
    return with_parameters(mechanism.plain_parameters, 0.0 if direction == "add" else 1.0)


def powered(mechanism: SampledMechanism, replicas: Replicas) -> Proposal:
    """Return samples of a power of the likelihood ratio of a removed record, as a proposal."""
    return replace(with_parameters(mechanism.plain_parameters, float(replicas.order)), replicas=replicas)


def mixed(
    mechanism: SampledMechanism,
    direction: Direction,
    anchor: Proposal,
    further: Sequence[Component],
    share: int,
) -> tuple[Component, ...] | None:
    """Return a mixture with `share` units of `anchor` and the rest of other laws in `further`; None if there are none.

    Plain sampling comes first, with one unit if it is not `anchor` itself.
    """
    usual = plain_proposal(mechanism, direction)
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
    rest = sorted(rest, key=lambda one: -one.units)[:spare]
    if not rest:
        return None
    head = [replace(PLAIN, units=share)] if bounded_by_plain else [PLAIN, own]
    units = whole_units([one.units for one in rest], spare)
    return (*head, *(replace(one, units=unit) for one, unit in zip(rest, units, strict=True)))


def whole_units(weights: Sequence[float], units: int) -> list[int]:
    """Return whole units in proportion to weights, at least one each."""
    spare, total = units - len(weights), sum(weights)
    wanted = [spare * weight / total for weight in weights]
    found = [math.floor(one) for one in wanted]
    # The units lost by rounding go to those that lost most.
    order = sorted(range(len(found)), key=lambda k: found[k] - wanted[k])
    for k in order[: spare - sum(found)]:
        found[k] += 1
    return [1 + one for one in found]


def scaled_proposals(
    mechanism: SampledMechanism, direction: Direction, *, far: bool = False, most: float = math.inf
) -> list[Proposal]:
    """Return proposals for a first try, and with `far` some whose means are scaled further, for a second one.

    A law of the second try for a removed record is left out if its mean loss is about `most` or more.
    """
    odds = (ODDS_ADDED if direction == "add" else ODDS) if _has_odds(mechanism) else (1.0,)
    facts = mechanism.core.tilt(0.0) if direction == "remove" else None

    def beyond(excess: float, factor: float) -> bool:
        # With means κCx the loss is about (κ − ½)‖Cx‖², and participations are multiplied by `factor`.
        return facts is not None and excess > EXCESSES[-1] and (2.0 * excess + 1.0) * facts[1] * factor > most

    excesses = (*EXCESSES, *FAR_EXCESSES) if far else EXCESSES
    pairs = [(excess, factor) for excess in excesses for factor in odds if not beyond(excess, factor)]
    return list(dict.fromkeys(scaled(mechanism, direction, *pair) for pair in pairs))


def between_parameters(plain_parameter: float, balanced: float, share: float) -> float:
    """Return a parameter between two: probabilities are interpolated on the scale of log odds, exponents linearly."""
    if plain_parameter <= 0.0 or balanced >= 1.0 or plain_parameter >= 1.0:
        return plain_parameter + share * (balanced - plain_parameter)
    low, high = (math.log(p / (1.0 - p)) for p in (plain_parameter, balanced))
    return 1.0 / (1.0 + math.exp(-(low + share * (high - low))))


def _likelier(p: float, odds: float) -> float:
    """Return the probability with its odds multiplied; the exponent 0 of bins, which are equally likely, stays 0."""
    if p <= 0.0:
        return 0.0
    likely = odds * p / (1.0 - p + odds * p)
    # A proposal that always joins would leave out patterns, unless the sampler itself always joins.
    return likely if p >= 1.0 else max(p, min(likely, _core.MOST_LIKELY))


def _has_odds(mechanism: SampledMechanism) -> bool:
    """Return whether participation in any of the mechanisms has odds."""
    return any(p > 0.0 for p in mechanism.plain_parameters)
