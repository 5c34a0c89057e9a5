"""Poisson sampling of the units on which a mechanism, or several phases together, are run.

Let h be the profile of one run in a direction, q the probability that a unit is drawn, and (P, Q) a pair whose profile is h.

- **The protected records (or users) are drawn**, each with all of its data. In the direction remove, P is the law with the
  record, and the pair of a run is ((1 − q)Q + qP, Q): h′(α) = q·h(1 + (α − 1)/q) for α ≥ 1 − q. In the direction add, P is the
  law without it, and the pair is (P, (1 − q)P + qQ): h′(α) = (1 − α(1 − q))·h(αq/(1 − α(1 − q))) for α ≤ 1/(1 − q). Elsewhere h′
  is (1 − α)₊ (Zhu, Dong & Wang 2022, arXiv:2106.08567, Theorem 11). A record that is not drawn must be to the mechanism like one
  that is absent, or set to zero, and draws of different records must be independent.
- **Clients are drawn**, and one record of a client is protected. A client that is drawn takes part with or without the record,
  and one that is not drawn takes no part in either case: the laws are qP + (1 − q)R and qQ + (1 − q)R for the same R. By joint
  convexity their profile is at most q·h(α) + (1 − q)(1 − α)₊, for every adjacency. It is attained if the output shows who was
  drawn. The maps above do not hold: for randomized response at ε = 1 and q = 0.1, δ(0.3) is 0.0368, and they would give 0.
- **A drawn record is replaced by another one**: `plan.replaced` has the theorems. The bound is that of clients, unless it is
  known what is revealed if the record is removed.

If a run has several rounds, h is their composed profile, which the core bounds from above and from below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import SECRET, given, refused_groups
from pyaccount.plan.rounds import Bounds, DirectedBounds, one_round
from pyaccount.profiles import Rounds, SometimesProfile, SubsampledProfile

if TYPE_CHECKING:
    from pyaccount.plan.protection import Case

_RECORDS = Assumed(
    "For every run each record (with all of its data) is drawn independently with the stated probability (Poisson sampling), and "
    "a record that is not drawn is treated like one that is {absent}.",
    "Each run draws every record independently; one not drawn is as if {absent}.",
)
_REPLACED = Assumed(
    "For every run each record (with all of its data) is drawn independently (Poisson sampling), with the stated probability, "
    "which is the same for every record, also for one that replaces another; a record that is not drawn takes no part in the "
    "run.",
    "Each run draws every record independently, all with the same probability.",
)
_CLIENTS = Assumed(
    "For every run each client is drawn independently with the stated probability (Poisson sampling); a record belongs to one "
    "client, and takes part in a run only if its client is drawn.",
    "Each run draws every client independently; a record belongs to one client.",
)
#: What is assumed of a client's record that is replaced: with a record of another client more would change.
_SAME_CLIENT = Assumed(
    "A record is replaced only by a record of the same client.",
    "A record is replaced only by a record of the same client.",
)
_SOURCE = "Poisson sampling of a pair: Zhu, Dong & Wang 2022 (arXiv:2106.08567), Theorem 11"
#: What a reader should know of a bound that allows the output to show which records were drawn.
SHOWN = (
    "Under replace-one it is not stated what is revealed if a record is missing, so the output may show whether the record was "
    "drawn: sampling makes large losses rarer, not smaller. Under add-remove and zero-out it makes them smaller, too."
)


def draw_may_show(case: Case) -> bool:
    """Return whether the output may show that a unit was drawn: a client, or a record that is then replaced."""
    return (case.node.draw is not None and case.node.draw.clients) or case.asked.privacy.adjacency == "replace-one"


def sampled(run: DirectedBounds, case: Case) -> DirectedBounds:
    """Return `count` runs of a body, each on a sample, from the rounds of one run on all units."""
    rate = given(case.node.draw).probability
    bounds: DirectedBounds = {}
    for direction in DIRECTIONS:
        upper, lower = (
            SometimesProfile(one_round(rounds, below=below), rate)
            if draw_may_show(case)
            else SubsampledProfile(one_round(rounds, below=below), rate, reverse=direction == "add")
            for rounds, below in ((run[direction].upper, False), (run[direction].lower, True))
        )
        bounds[direction] = Bounds((Rounds(upper, case.node.count),), (Rounds(lower, case.node.count),))
    return bounds


def sampling_assumptions(case: Case, *, removal: bool = False) -> tuple[Assumed, ...]:
    """Return what must be true of the sample of a run; `removal` says whether it is known what a removed record reveals."""
    if given(case.node.draw).clients:
        same = (_SAME_CLIENT,) if case.asked.privacy.adjacency == "replace-one" else ()
        return (_CLIENTS, *same, SECRET)
    if case.asked.privacy.adjacency == "replace-one" and not removal:
        return (_REPLACED, SECRET)
    absent = "set to zero" if case.asked.privacy.adjacency == "zero-out" else "absent"
    return (_RECORDS.filled(absent=absent), SECRET)


def sampling_source(case: Case) -> str:
    """Return the source of the theorem about the sample."""
    return "joint convexity of the hockey-stick divergence" if draw_may_show(case) else _SOURCE


def sampling_refusals(case: Case, *, removal: bool = False) -> list[Problem]:
    """Refuse groups of records, each of which is drawn independently, and what shows the probability of a record.

    With `removal` it is known what is revealed if a record is removed, so records with smaller probabilities reveal less
    (`plan.own_probabilities`). Without it, a record that is replaced by one with another probability shows how often it is drawn.
    """
    problems = refused_groups(
        case.asked,
        "no bound is implemented for groups of records and runs on a sample, because every record of a group is drawn "
        "independently of the others: leave sampler out, which gives the bound without sampling",
    )
    if (
        case.asked.privacy.adjacency == "replace-one"
        and case.node.draw is not None
        and case.node.draw.own is not None
        and not (case.node.draw.clients or removal)
    ):
        message = (
            "under replace-one a record may be replaced by one with another probability, and the output of a run on a sample may "
            "show which records were drawn: write one probability for all records, or use add-remove or zero-out"
        )
        path = case.node.at("sampler", "sampling_probability")
        problems.append(case.asked.refusal(path, message, allowed="one number; or another adjacency"))
    return problems
