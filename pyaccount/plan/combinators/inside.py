"""What the combinators share: the nodes inside of one, as one run, in words, and what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.plan.rounds import combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyaccount.errors import Problem
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.plan.theorem import Reduction, Theorem


#: Why a phase inside of another one is not sampled.
OF_DOCUMENT = "implemented for phases of the document, not for phases inside of another one"


def joined(texts: Sequence[str]) -> str:
    """Return texts, each once, with semicolons."""
    return "; ".join(dict.fromkeys(texts))


def pairs_of_run(inner: tuple[Theorem, ...], parts: list[Reduction]) -> str:
    """Return the pairs of one run of all phases in words; rounds that are one Gaussian mechanism have one pair."""
    return ", and ".join(
        part.pair if one.gaussian else f"{part.rounds} × {part.pair}" for one, part in zip(inner, parts, strict=True)
    )


def one_run(inner: tuple[Theorem, ...]) -> DirectedBounds:
    """Return the rounds of one run of all phases."""
    return combine([one.bounds() for one in inner], merge_gaussians=True)


def inner_refusals(inner: tuple[Theorem, ...], where: str) -> list[Problem]:
    """Refuse what the phases inside refuse, and those that are analysed by drawing samples; `where` ends the sentence."""
    problems = []
    for one in inner:
        problems += one.refusals()
        if one.sampled:
            message = f"{one.node.sampler_kind} sampling is analysed by drawing samples, which is {where}"
            path = one.node.at("sampler", "kind")
            problems.append(
                one.asked.problem("no-valid-bound", path, message, allowed="a sampler whose rounds compose")
            )
    return problems
