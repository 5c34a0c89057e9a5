"""Batches of a fixed number of draws: without replacement, with replacement, and in two stages.

A drawn record displaces another one, so the rest of the sum depends on how often the sensitive record was drawn. The pair
`Σ p_j N(j)` against `Σ p_j N(−j)` ignores that and is not an upper bound (two concrete data sets beat it); the bounds here
account for it. p_j is the probability that the group is drawn j times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.document import FIXED_DRAWS, batch_size, expected_batch_size
from pyaccount.errors import DocumentError
from pyaccount.plan.common import SECRET, basic_assumptions, number, rounds, rounds_text, shown, whole
from pyaccount.plan.reduction import Analysis, DirectedBounds, Part, Reduction, enclosed, tight

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem

REVERSED, FORWARD = (("reverse", True),), (("reverse", False),)

DISPLACEMENT = (
    "A drawn record displaces another, so the sum can move by 2 for each time it is drawn; figures in circulation that move it "
    "by 1 each way are not upper bounds."
)
CONCRETE = "The lower end of the interval comes from two concrete data sets."
SOURCE = (
    "Balle, Barthe & Gaboardi 2018, Theorem 2 (advanced joint convexity), with a coupling of the two batches that differ in "
    "j slots, each moving the sum by at most 2"
)


@dataclass(frozen=True, slots=True)
class Law:
    """How a sampler draws its batches: its name in the core and in certificates, and its law of j in symbols."""

    core: str
    subject: str
    law: str
    drawn: str
    #: Whether what else is drawn does not depend on how often the group is, given that number.
    exchangeable: bool


LAWS = {
    "fixed-size": Law(
        "fixed-size",
        "fixed-size batches without replacement",
        "Hyp(j; {k} of {n}, {m} drawn)",
        "Every batch is a uniformly random subset of exactly the stated size, drawn afresh and independently for each "
        "iteration; going through a shuffled data set in order does not satisfy this.",
        exchangeable=True,
    ),
    "with-replacement": Law(
        "with-replacement",
        "batches drawn with replacement",
        "Bin(j; {m}, {k}/{n})",
        "Every batch is {m} independent, uniformly random draws from the whole data set; a record drawn j times counts j times.",
        exchangeable=True,
    ),
    "must-wo": Law(
        "with-replacement",
        "two-stage batches, with and then without replacement: the same as with replacement",
        "Bin(j; {m}, {k}/{n})",
        "For each iteration a fresh subset of {b} independent uniform draws is made, and {m} of these {b} draws, without "
        "replacement, are the batch; a record drawn j times counts j times.",
        exchangeable=True,
    ),
    "must-ow": Law(
        "must-ow",
        "two-stage batches, without and then with replacement",
        "({b}/{n})·Bin(j; {m}, 1/{b}) for j ≥ 1",
        "For each iteration a fresh, uniformly random subset of {b} distinct records is drawn, and the batch is {m} independent "
        "uniform draws from it; a record drawn j times counts j times.",
        exchangeable=False,
    ),
    "must-ww": Law(
        "must-ww",
        "two-stage batches, with replacement both times",
        "Σ_i Bin(i; {b}, 1/{n})·Bin(j; {m}, i/{b})",
        "For each iteration a fresh subset of {b} independent uniform draws is made, and the batch is {m} independent uniform "
        "draws from these; a record drawn j times counts j times.",
        exchangeable=False,
    ),
}


def words(document: Document, body: Body) -> Reduction:
    """The reduction for the document's adjacency."""
    law = LAWS[body.sampler.kind]
    if _exact(document, body):
        return _tight(document, body, law)
    return _added(document, body, law) if document.privacy.adjacency == "add-remove" else _changed(document, body, law)


def bounds(document: Document, body: Body) -> DirectedBounds:
    """The rounds of that theorem, and those of two concrete data sets. Raises `DocumentError` for sizes that do not fit."""
    privacy = document.privacy
    group, noise = whole(privacy.group_size), number(body.noise.multiplier)
    below = {"add-remove": 2.0, "replace-one": 2.0, "zero-out": 1.0}[privacy.adjacency]
    sampler, dataset, batch, subset = draws(body)
    _check_sizes(document, body, group)
    remove, add = (
        Part("copies", (sampler, group, dataset, batch, subset, below, noise), options)
        for options in (FORWARD, REVERSED)
    )
    if _exact(document, body):
        return tight(remove, add, rounds(body))
    change = "zeroed" if privacy.adjacency == "zero-out" else "replaced"
    above = tuple(
        Part("displaced", (change, sampler, group, dataset, batch, subset, noise), options)
        for options in (FORWARD, REVERSED if change == "zeroed" else FORWARD)
    )
    # Under add-remove the data set with the record is the one with more of them; otherwise either may be called that.
    lower = (remove, add) if privacy.adjacency == "add-remove" else (remove, remove)
    return enclosed((above[0], above[1]), lower, rounds(body))


def _exact(document: Document, body: Body) -> bool:
    """Whether the pair is attained: for records that are added, where what else is drawn does not depend on them."""
    return document.privacy.adjacency == "add-remove" and LAWS[body.sampler.kind].exchangeable


def draws(body: Body) -> tuple[str, int, int, int]:
    """How a body of this family draws, for the core: sampler, data set, batch, subset."""
    dataset = body.training.dataset_size
    assert dataset is not None  # the document's rules require it for these samplers
    return LAWS[body.sampler.kind].core, dataset, batch_size(body), _subset(body)


def distinct_records(body: Body) -> float | None:
    """The expected number of distinct records in a batch: N(1 − p_0), where the size of the data set is known."""
    if not isinstance(body.sampler, FIXED_DRAWS):
        return expected_batch_size(body)
    sampler, dataset, batch, subset = draws(body)
    counts, logs, _ = _core.copies(sampler, 1, dataset, batch, subset)
    return dataset * math.fsum(math.exp(log) for count, log in zip(counts, logs, strict=True) if count > 0)


def _subset(body: Body) -> int:
    return int(getattr(body.sampler, "subset_size", 0))


def refusals(document: Document, body: Body) -> list[Problem]:
    """What has no bound."""
    problems = []
    reused = getattr(body.sampler, "rounds_per_subset", 1)
    if reused != 1:
        problems.append(
            document.problem(
                "no-valid-bound",
                body.at("sampler", "rounds_per_subset"),
                "rounds that draw from one subset depend on one another: a record outside it is in none of them, one inside "
                "may be in all; no bound on their composition is known, so each round must draw a fresh subset",
                allowed="1",
            )
        )
    group = document.privacy.group_size
    if not LAWS[body.sampler.kind].exchangeable and group != 1:
        problems.append(
            document.problem(
                "no-valid-bound",
                ("privacy", "group_size"),
                f"{body.sampler.kind} is analysed for single records: how often several of them are drawn from one subset is not "
                "covered; with-replacement covers groups",
                allowed="1",
            )
        )
    return problems


def _text(document: Document, body: Body, template: str) -> str:
    blank = body.training.expected_batch_size == "solve"
    return template.format(
        k=shown(document.privacy.group_size, "k"),
        n=body.training.dataset_size,
        m="m" if blank else batch_size(body),
        b=_subset(body),
    )


def _assumptions(document: Document, body: Body, law: Law, size: str) -> tuple[str, ...]:
    return (*basic_assumptions(document.privacy), _text(document, body, law.drawn), size, SECRET)


def _reduction(  # noqa: PLR0913 - what differs between the theorems
    document: Document, body: Body, law: Law, *, theorem: str, source: str, pair: str, size: str
) -> Reduction:
    exact = _exact(document, body)
    return Reduction(
        path=body.path,
        subject=law.subject,
        theorem=theorem,
        source=source,
        pair=pair,
        rounds=rounds_text(body),
        tight=exact,
        remark=DISPLACEMENT if exact else f"{DISPLACEMENT} {CONCRETE}",
        assumptions=_assumptions(document, body, law, size),
        components=_components(document, body),
    )


def _components(document: Document, body: Body) -> int:
    """How many terms a profile has, roughly: groups, or the draws of a record that are likely enough to matter."""
    group = document.privacy.group_size
    return 1 + (1 if group == "solve" else group) if body.sampler.kind == "fixed-size" else 60


def _tight(document: Document, body: Body, law: Law) -> Reduction:
    sigma = shown(body.noise.multiplier, "σ")
    return _reduction(
        document,
        body,
        law,
        theorem="dominating pair of Gaussian mixtures with doubled shifts",
        source=(
            "Ganesh 2024 (arXiv:2401.10294), Theorem 3.3; attained by gradients +1 and −1 (its Section 3.3)"
            if body.sampler.kind == "fixed-size"
            else "Choquette-Choo et al. 2023, Lemma 4.6, given the other draws, which are independent of j; attained by "
            "gradients +1 and −1"
        ),
        pair=f"{_text(document, body, f'Σ_j {law.law}')}·N(2j, {sigma}²) against N(0, {sigma}²)",
        size="The dataset size is a public lower bound on the number of records in the larger of two neighbouring data sets.",
    )


def _added(document: Document, body: Body, law: Law) -> Reduction:
    """The slot that draws the record draws one of the others in its place: the same bound as for a replaced record."""
    sigma = shown(body.noise.multiplier, "σ")
    return _reduction(
        document,
        body,
        law,
        theorem="advanced joint convexity with a coupling of the two batches",
        source=SOURCE,
        pair=f"h(α′) = Σ_{{j≥1}} p_j·G_{{2j}}(1 + (α′−1)/η), p_j = {_text(document, body, law.law)}, η = 1 − p_0, σ = {sigma}, "
        "reflected below α′ = 1",
        size="The dataset size is a public lower bound on the number of records in the larger of two neighbouring data sets.",
    )


def _changed(document: Document, body: Body, law: Law) -> Reduction:
    privacy = document.privacy
    sigma, p = shown(body.noise.multiplier, "σ"), _text(document, body, law.law)
    zeroed = privacy.adjacency == "zero-out"
    several = law.exchangeable and (body.sampler.kind != "fixed-size" or privacy.group_size != 1)
    joint = (
        "remove: Σ_{j≥1} (p_j/η)·H((1−η)N(0)+ηN(2j) ‖ (1−η)N(0)+ηN(j)); add: Σ_{j≥1} p_j·G_j(1 + (α′−1)/η)"
        if zeroed
        else "Σ_{j≥1} p_j·G_{2j}(1 + (α′−1)/η)"
    )
    pair = f"Σ p_j N(2j) against Σ p_j N(−{'' if zeroed else '2'}j)"
    theorem = "advanced joint convexity with a coupling of the two batches"
    if several:
        theorem = (
            "lower convex hull of three bounds: joint convexity, a blend with the pair for an added record, and a pair"
        )
    elif zeroed and body.sampler.kind == "fixed-size":
        theorem = "the exact supremum at each α when one record is set to zero"
    return _reduction(
        document,
        body,
        law,
        theorem=theorem,
        source=SOURCE,
        pair=f"{joint}; p_j = {p}, η = 1 − p_0, σ = {sigma}, reflected below α′ = 1"
        + (f"; or {pair}; or a blend" if several else ""),
        size="The dataset size is public and exact.",
    )


def _check_sizes(document: Document, body: Body, group: int) -> None:
    """Whether both of two neighbouring data sets are large enough to draw from. Raises `DocumentError`."""
    _, dataset, batch, subset = draws(body)
    problems = []
    if group > dataset:
        message = f"the group has more records than the data set ({dataset})"
        problems.append(
            document.problem("no-valid-bound", ("privacy", "group_size"), message, allowed=f"at most {dataset}")
        )
    elif document.privacy.adjacency == "add-remove":
        others = dataset - group
        distinct, path = 1, body.at("training", "dataset_size")
        if body.sampler.kind == "fixed-size":
            distinct, path = batch, body.at("training", "expected_batch_size")
        elif body.sampler.kind == "must-ow":
            distinct, path = subset, body.at("sampler", "subset_size")
        if distinct > others:
            message = (
                f"under add-remove the smaller of two neighbouring data sets has {others} records, fewer than the {distinct} "
                "distinct ones that are drawn: such a draw does not exist there; under zero-out or replace-one, where the "
                "dataset size is public, the question does not arise"
            )
            problems.append(document.problem("no-valid-bound", path, message, allowed=f"at most {max(others, 0)}"))
    if problems:
        raise DocumentError(problems)


ANALYSIS = Analysis(words, bounds, refusals=refusals)
