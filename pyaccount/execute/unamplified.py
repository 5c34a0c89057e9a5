"""Bounds without amplification: the same run with public participations, and what holds for a run without samples."""

from __future__ import annotations

import math
from dataclasses import replace

from pyaccount import _core
from pyaccount.directions import DIRECTIONS
from pyaccount.errors import LimitError
from pyaccount.execute.engine import Answer, DirectedAnswer, Engine, Question
from pyaccount.plan.common import given
from pyaccount.plan.compiled import Instance
from pyaccount.plan.rounds import Bounds, DirectedBounds, combine, largest_loss
from pyaccount.profiles import Rounds

#: The relative width of a contrast that is composed; one Gaussian mechanism has a closed form.
COMPOSED_CONTRAST = 1e-3


def unamplified_bounds(instance: Instance) -> DirectedBounds:
    """Return the rounds of the run with public participations in the worst pattern: Gaussian in one, and Laplace.

    The sensitivity is k (2k under replace-one) times the largest ‖Cx‖ over the patterns x that the sampler allows (see
    `plan.conventions`). A mixture is dominated by its worst component (joint quasi-convexity of the hockey stick), so this
    bounds the sampled run too, except for a sampler with a fixed number of draws. There a record takes another one's
    place, or is drawn several times in a round, and the contrast is the run on whole batches that it stands for.
    """
    return combine([one.public() for one in instance.theorems], merge_gaussians=True)


def contrast(instance: Instance, engine: Engine, question: Question) -> Answer:
    """Return the answer for `unamplified_bounds`, at a δ; a wider one if the engine's time is up before it is known.

    One Gaussian mechanism has a closed form, so that it takes no time worth limiting. Other releases are composed, with it
    if there is one. If time is up, a sum is used instead (`_summed`).
    """
    bounds = unamplified_bounds(instance)
    closed = all(len(side.upper) == 1 and side.upper[0].profile.closed for side in bounds.values())
    if not closed:
        question = replace(question, tolerance=max(question.tolerance, COMPOSED_CONTRAST))
    try:
        return (Engine() if closed else engine).ask(bounds, question)
    except LimitError:
        return Answer(question, {side: _summed(bounds[side].upper, question) for side in bounds})


def _summed(rounds: tuple[Rounds, ...], question: Question) -> DirectedAnswer:
    """Return an upper bound on ε that needs no composition.

    If L₂ is at most S, then (1 − e^{ε + S − L₁ − L₂})_+ is at most (1 − e^{ε − L₁})_+; so what holds for the rounds
    without a largest loss at ε holds for all of them at ε + S. These take equal shares of δ, and their ε add up (Dwork,
    Rothblum & Vadhan 2010); a Gaussian mechanism alone takes all of it.
    """
    bounded = tuple(one for one in rounds if largest_loss((one,)) is not None)
    rest = tuple(one for one in rounds if one not in bounded)
    largest = largest_loss(bounded)
    upper, assumed = given(largest).at_most, question.delta or 0.0
    for one in rest:
        share = replace(question, delta=assumed / (len(rest) * one.count))
        single = (Rounds(one.profile, 1),)
        found = Engine().ask(dict.fromkeys(DIRECTIONS, Bounds(single, single)), share).upper
        upper = math.nextafter(upper + one.count * found * (1.0 + 1e-15), math.inf)
    account = _core.ProvenInterval.proven(0.0, upper)
    return DirectedAnswer(0.0, upper, account, account)


def unsampled_bounds(instance: Instance) -> DirectedBounds:
    """Return bounds that hold without samples: sampled phases with public participations, the rest as analysed."""
    return combine([one.public() if one.sampled else one.bounds() for one in instance.theorems], merge_gaussians=True)
