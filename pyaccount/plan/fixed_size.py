"""Fixed-size batches drawn without replacement.

In a fixed-size batch a drawn record displaces another one, so the rest of the sum depends on whether the sensitive record
was drawn. The pair `Σ p_j N(j)` against `Σ p_j N(−j)` ignores that and is not an upper bound (two concrete data sets beat
it); the bounds here account for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document import batch_size
from pyaccount.errors import DocumentError
from pyaccount.plan.common import SECRET, basic_assumptions, number, rounds, rounds_text, shown, whole
from pyaccount.plan.reduction import DirectedBounds, Part, Reduction, enclosed, tight

if TYPE_CHECKING:
    from pyaccount.document import Body, Document

REVERSED, FORWARD = (("reverse", True),), (("reverse", False),)

DISPLACEMENT = (
    "A drawn record displaces another, so the sum can move by 2; figures in circulation that move it by 1 each way are not "
    "upper bounds."
)


def reduce(document: Document, body: Body) -> Reduction:
    """The reduction for the document's adjacency."""
    return {"add-remove": _add_remove, "replace-one": _replaced, "zero-out": _zeroed}[document.privacy.adjacency](
        document, body
    )


def _sizes(body: Body) -> tuple[int, int]:
    dataset = body.training.dataset_size
    assert dataset is not None  # the document's rules require it for this sampler
    return dataset, batch_size(body)


def _batch_text(body: Body) -> str:
    return "B" if body.training.expected_batch_size == "solve" else str(batch_size(body))


def _assumptions(document: Document, size: str) -> tuple[str, ...]:
    return (
        *basic_assumptions(document.privacy),
        "Every batch is a uniformly random subset of exactly the stated size, drawn afresh and independently for each "
        "iteration; going through a shuffled data set in order does not satisfy this.",
        size,
        SECRET,
    )


def _add_remove(document: Document, body: Body) -> Reduction:
    privacy = document.privacy
    k, sigma = shown(privacy.group_size, "k"), shown(body.noise.multiplier, "σ")

    def bounds() -> DirectedBounds:
        group, noise = whole(privacy.group_size), number(body.noise.multiplier)
        dataset, batch = _sizes(body)
        others = dataset - group
        if batch > others:
            raise DocumentError(
                [
                    document.problem(
                        "no-valid-bound",
                        (*body.path, "training", "expected_batch_size"),
                        f"under add-remove the smaller of two neighbouring data sets has {others} records, fewer than the "
                        f"batch of {batch}: no batch of that size exists there; under zero-out or replace-one, where the dataset "
                        "size is public, the question does not arise",
                        allowed=f"at most {max(others, 0)}",
                    )
                ]
            )
        remove, add = (
            Part("copies", ("fixed-size", group, dataset, batch, 0, 2.0, noise), options)
            for options in (FORWARD, REVERSED)
        )
        return tight(remove, add, rounds(body))

    return Reduction(
        path=body.path,
        subject="fixed-size batches without replacement",
        theorem="dominating pair of Gaussian mixtures with doubled shifts",
        source="Ganesh 2024 (arXiv:2401.10294), Theorem 3.3; attained by gradients +1 and −1 (its Section 3.3)",
        pair=f"Σ_j Hyp(j; {k} of {body.training.dataset_size}, {_batch_text(body)} drawn)·N(2j, {sigma}²) against N(0, {sigma}²)",
        rounds=rounds_text(body),
        tight=True,
        remark=DISPLACEMENT,
        assumptions=_assumptions(
            document,
            "The dataset size is a public lower bound on the number of records in the larger of two neighbouring data sets.",
        ),
        components=1 + (1 if privacy.group_size == "solve" else privacy.group_size),
        bounds=bounds,
    )


def _joint_convexity(document: Document, body: Body, *, shift: float) -> Reduction:
    privacy = document.privacy
    k, sigma = shown(privacy.group_size, "k"), shown(body.noise.multiplier, "σ")

    def bounds() -> DirectedBounds:
        group, noise = whole(privacy.group_size), number(body.noise.multiplier)
        dataset, batch = _sizes(body)
        if group > dataset:
            raise _group_too_large(document, dataset)
        above = Part("displaced", ("replaced", "fixed-size", group, dataset, batch, 0, noise), FORWARD)
        below = Part("copies", ("fixed-size", group, dataset, batch, 0, shift, noise), FORWARD)
        return enclosed((above, above), (below, below), rounds(body))

    return Reduction(
        path=body.path,
        subject="fixed-size batches without replacement",
        theorem="advanced joint convexity with a coupling of the two batches",
        source="Balle, Barthe & Gaboardi 2018, Theorem 2; batches that differ in j slots, each moving the sum by at most 2",
        pair=(
            f"h(α′) = Σ_{{j≥1}} Hyp(j; {k} of {body.training.dataset_size}, {_batch_text(body)} drawn)·G_{{2j}}(1 + (α′−1)/η), "
            f"σ = {sigma}, reflected below α′ = 1"
        ),
        rounds=rounds_text(body),
        tight=False,
        remark=f"{DISPLACEMENT} The lower end of the interval comes from two concrete data sets.",
        assumptions=_assumptions(document, "The dataset size is public and exact."),
        components=1 if privacy.group_size == "solve" else privacy.group_size,
        bounds=bounds,
    )


def _replaced(document: Document, body: Body) -> Reduction:
    return _joint_convexity(document, body, shift=2.0)


def _zeroed(document: Document, body: Body) -> Reduction:
    privacy = document.privacy
    if privacy.group_size != 1:
        return _joint_convexity(document, body, shift=1.0)
    sigma = shown(body.noise.multiplier, "σ")

    def bounds() -> DirectedBounds:
        noise = number(body.noise.multiplier)
        dataset, batch = _sizes(body)
        above = tuple(
            Part("displaced", ("zeroed", "fixed-size", 1, dataset, batch, 0, noise), options)
            for options in (FORWARD, REVERSED)
        )
        below = Part("copies", ("fixed-size", 1, dataset, batch, 0, 1.0, noise), FORWARD)
        return enclosed((above[0], above[1]), (below, below), rounds(body))

    q = "q" if body.training.expected_batch_size == "solve" else f"{batch_size(body) / _sizes(body)[0]:g}"
    return Reduction(
        path=body.path,
        subject="fixed-size batches without replacement",
        theorem="the exact supremum at each α when one record is set to zero",
        source="Balle, Barthe & Gaboardi 2018, Theorem 2, with the displaced record opposed (remove) or aligned (add)",
        pair=(
            f"remove: (1−{q})N(0)+{q}·N(2) against (1−{q})N(0)+{q}·N(1); add: (1−{q})N(0)+{q}·N(1) against N(0); σ = {sigma}, "
            "α ≥ 1, each reflected below 1"
        ),
        rounds=rounds_text(body),
        tight=False,
        remark=f"{DISPLACEMENT} The lower end of the interval comes from two concrete data sets.",
        assumptions=_assumptions(document, "The dataset size is public and exact."),
        components=2,
        bounds=bounds,
    )


def _group_too_large(document: Document, dataset: int) -> DocumentError:
    return DocumentError(
        [
            document.problem(
                "no-valid-bound",
                ("privacy", "group_size"),
                f"the group has more records than the data set ({dataset})",
                allowed=f"at most {dataset}",
            )
        ]
    )
