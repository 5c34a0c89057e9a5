"""Cyclic Poisson sampling from a fixed partition: rounds of one part have orthogonal columns, so they compose.

A record of part φ takes part in rounds φ, φ + b, φ + 2b, …, in each with probability p = b·p₀. With at most b bands the
columns of these rounds do not meet: the run is a composition of Poisson-subsampled Gaussian mechanisms with shifts
‖c_i‖. For a Toeplitz matrix the first part has the most rounds and the longest columns, so it dominates the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyaccount.directions import DIRECTIONS
from pyaccount.document import UNBANDED, sampling_probability, separation
from pyaccount.plan.common import (
    BANDED,
    NO_ITERATIONS,
    NORMALISATION,
    OTHER_BLANKS,
    SECRET,
    basic_assumptions,
    number,
    shown,
    whole,
)
from pyaccount.plan.reduction import Analysis, Bounds, DirectedBounds, Part, Reduction, Rounds, gaussian
from pyaccount.plan.sampled import group_refusals, matrix_text
from pyaccount.plan.strategy import strategy

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem


def words(document: Document, body: Body) -> Reduction:
    """The composition for a record of the first part."""
    two_sided = document.privacy.adjacency == "replace-one"
    blank = body.training.expected_batch_size == "solve"
    b = separation(body) or 1
    p = "p" if blank else repr(sampling_probability(body))
    sigma = shown(body.noise.multiplier, "σ")
    turns = "⌈n/b⌉" if body.training.iterations == "solve" else str(-(-body.training.iterations // b))
    runs = "" if body.count == 1 else f"{body.count} × "
    other = f"(1−{p})N(0) + {p}·N(−‖c_i‖)" if two_sided else "N(0)"
    return Reduction(
        path=body.path,
        subject=f"cyclic Poisson sampling from {b} fixed parts, {matrix_text(body)}",
        theorem="composition over the rounds of the first part, whose columns do not meet",
        source="Choquette-Choo et al. 2023 (arXiv:2306.08153), Theorem 4; attained by gradients of the same sign",
        pair=f"(1−{p})N(0) + {p}·N(‖c_i‖) against {other}, σ = {sigma}, ‖c_i‖ the norm of the column of round i",
        rounds=f"{runs}{turns}",
        tight=True,
        remark=None,
        assumptions=(
            *basic_assumptions(document.privacy, body),
            f"The data set is cut into {b} parts beforehand, by a rule under which a record's part does not depend on the other "
            "records or on contents; the parts need not be secret.",
            f"Iteration i draws from part i mod {b}, every record of it independently with probability {p}.",
            SECRET,
            NORMALISATION,
        ),
        components=2,
    )


def refusals(document: Document, body: Body) -> list[Problem]:
    """What is not covered."""
    problems = group_refusals(document, "cyclic-poisson")
    if isinstance(body.matrix, UNBANDED):
        problems.append(
            document.problem(
                "no-valid-bound",
                body.at("matrix", "kind"),
                "cyclic Poisson sampling is analysed with a banded Toeplitz matrix; with any other, balls-in-bins is",
                allowed=BANDED,
            )
        )
    if body.training.iterations == "solve" and body.matrix.kind != "identity":
        problems.append(
            document.problem("no-valid-bound", body.at("training", "iterations"), NO_ITERATIONS, allowed=OTHER_BLANKS)
        )
    return problems


def bounds(document: Document, body: Body) -> DirectedBounds:
    """The rounds of the first part: all columns but the last are whole."""
    n, b = whole(body.training.iterations), separation(body) or 1
    p, sigma = sampling_probability(body), number(body.noise.multiplier)
    two_sided = document.privacy.adjacency == "replace-one"
    built = strategy(document, body)
    assert built.coefficients is not None
    turns = -(-n // b)
    # Only the last column can be cut off by the end of the run.
    last = (turns - 1) * b
    reach = min(len(built.coefficients), n - last)
    full = math.sqrt(math.fsum(c * c for c in built.coefficients))
    cut = math.sqrt(math.fsum(c * c for c in built.coefficients[:reach]))
    norms = {full: turns} if reach == len(built.coefficients) else {full: turns - 1, cut: 1}
    # The norm of a single coefficient of 1 is no sum; others are known to the strategy's slack.
    slack = 0.0 if built.coefficients == (1.0,) else built.slack
    directed: DirectedBounds = {}
    for direction in DIRECTIONS:
        reverse = direction == "add" and not two_sided
        upper, lower = (
            tuple(
                Rounds(
                    _part(p, sigma / (norm * (1.0 + side)), two_sided=two_sided, reverse=reverse), body.count * count
                )
                for norm, count in norms.items()
                if count > 0
            )
            for side in (slack, -slack)
        )
        directed[direction] = Bounds(upper, lower)
    return directed


def _part(p: float, sigma: float, *, two_sided: bool, reverse: bool) -> Part:
    if p >= 1.0:
        return gaussian(2.0 if two_sided else 1.0, sigma)
    return Part("poisson", (1, p, sigma), (("two_sided", two_sided), ("reverse", reverse)))


ANALYSIS = Analysis(words, bounds, refusals=refusals)
