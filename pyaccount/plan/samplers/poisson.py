"""Poisson sampling: mixtures of Gaussians, tight for every adjacency and group size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount.document import sampling_probability, truncation
from pyaccount.plan.common import NORMALISATION, SECRET, basic_assumptions, number, rounds, rounds_text, shown, whole
from pyaccount.plan.reduction import Analysis, DirectedBounds, Part, Reduction, enclosed, gaussian, tight
from pyaccount.plan.samplers import truncated
from pyaccount.plan.samplers.base import EVERY_ROUND, Worst
from pyaccount.plan.samplers.renewal import Renewal
from pyaccount.plan.samplers.truncated import upper_tail

if TYPE_CHECKING:
    from pyaccount.document import Body, Document


def words(document: Document, body: Body, subject: str = "Poisson sampling") -> Reduction:
    """Σ_j Bin(j; k, p) N(j, σ²) against N(0, σ²), or against Σ_j Bin(j; k, p) N(−j, σ²) under replace-one."""
    privacy = document.privacy
    two_sided = privacy.adjacency == "replace-one"
    blank_rate = body.training.expected_batch_size == "solve"
    k = shown(privacy.group_size, "k")
    p = "p" if blank_rate else repr(sampling_probability(body))
    sigma = shown(body.noise.multiplier, "σ")
    mixture = f"Σ_j Bin(j; {k}, {p})·N({{sign}}j, {sigma}²)"
    other = mixture.format(sign="−") if two_sided else f"N(0, {sigma}²)"
    return Reduction(
        path=body.path,
        subject=subject,
        theorem=(
            "dominating pair of Gaussian mixtures for groups under replacement"
            if two_sided
            else "dominating pair of Gaussian mixtures for groups"
        ),
        source=(
            "Choquette-Choo et al. 2023, Lemma 4.6, applied to both mixtures; attained by gradients +1 and −1"
            if two_sided
            else "Ganesh 2024 (arXiv:2401.10294), Theorem 3.1; attained by gradients 0 and −1 (its Section 3.3)"
        ),
        pair=f"{mixture.format(sign='')} against {other}",
        rounds=rounds_text(body),
        tight=True,
        remark=None,
        assumptions=(
            *basic_assumptions(privacy),
            "Every record enters every batch independently with the stated probability (Poisson sampling); a shuffled or "
            "fixed-size loader does not satisfy this.",
            SECRET,
            NORMALISATION,
        ),
        components=1 + (1 if privacy.group_size == "solve" else privacy.group_size),
    )


def bounds(document: Document, body: Body) -> DirectedBounds:
    """The pair of every round."""
    privacy = document.privacy
    two_sided = privacy.adjacency == "replace-one"
    group, rate, noise = whole(privacy.group_size), sampling_probability(body), number(body.noise.multiplier)
    if rate >= 1.0:
        # Every record is in every batch: a Gaussian mechanism.
        part = gaussian(2.0 * group if two_sided else float(group), noise)
        return tight(part, part, rounds(body))
    # Under replace-one the two mixtures are mirror images: both directions are one profile.
    remove, add = (
        Part("poisson", (group, rate, noise), (("two_sided", two_sided), ("reverse", reverse and not two_sided)))
        for reverse in (False, True)
    )
    return tight(remove, add, rounds(body))


def another_words(document: Document, body: Body) -> Reduction:
    """Of a sampler that is Poisson sampling by another name."""
    return words(document, body, f"{body.sampler.kind} sampling with separation 1, which is Poisson sampling")


def truncated_words(document: Document, body: Body) -> Reduction:
    """Rounds that release r, the other records' count, and the sum, composed."""
    usual, limit = words(document, body), truncation(body)
    return replace(
        usual,
        subject=f"{usual.subject}, batches truncated to {limit}",
        theorem="composition of rounds that release the other records' count",
        source=truncated.SOURCE,
        pair=(
            f"r other records: {usual.pair} if r < {limit}; else, with q = {limit}/(r + 1) times the probability, "
            "(1 − q)N(0) + qN(2) against (1 − q)N(0) + qN(−1)"
        ),
        tight=False,
        remark=truncated.remark(body, sampling_probability),
        assumptions=truncated.assumptions(body, usual.assumptions, KEPT),
        components=64,
    )


def truncated_bounds(document: Document, body: Body) -> DirectedBounds:
    """The rounds given r. The lower end is that of others without contributions."""
    assert document.privacy.adjacency == "zero-out"
    p, sigma, limit = sampling_probability(body), number(body.noise.multiplier), truncation(body)
    records = body.training.dataset_size
    assert records is not None
    assert limit is not None
    upper = [
        Part("truncated_poisson", (records, limit, p, sigma), (("reverse", reverse),)) for reverse in (False, True)
    ]
    # A record that is drawn survives for certain if r < B, and else with probability B/(r + 1) ≥ B/N.
    least = p * max(1.0 - upper_tail(records - 1, p, limit), limit / records) * (1.0 - truncated.ROUNDING)
    lower = [
        Part("poisson", (1, least, sigma), (("two_sided", False), ("reverse", reverse))) for reverse in (False, True)
    ]
    return enclosed((upper[0], upper[1]), (lower[0], lower[1]), rounds(body))


#: What becomes of those that are left out of a truncated batch.
KEPT = "Later iterations draw from all records again."

ANALYSIS, TRUNCATED = Analysis(words, bounds), Analysis(truncated_words, truncated_bounds)
#: Of a sampler that is Poisson sampling by another name.
ANOTHER = Analysis(another_words, bounds)


class PoissonPlan(Renewal):
    """Rounds that compose; and, where samples are asked for, the run of a renewal process without a separation."""

    round_by_round: ClassVar[bool] = True
    kept: ClassVar[str] = KEPT

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Of its rounds, unless samples are asked for."""
        if document.accounting.method == "monte-carlo":
            return super().analysis(document, body)
        return ANALYSIS if truncation(body) is None else TRUNCATED

    def cut(self, body: Body, rounds: int) -> dict[str, Any]:
        """There is nothing that follows from the length."""
        return {}

    def worst(self, document: Document, body: Body) -> Worst:
        """In every round."""
        return Worst(EVERY_ROUND, lambda: 1.0, rounds(body))


PLAN = PoissonPlan()
