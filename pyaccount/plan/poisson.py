"""Poisson sampling: mixtures of Gaussians, tight for every adjacency and group size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document import sampling_probability
from pyaccount.plan.common import NORMALISATION, SECRET, basic_assumptions, number, rounds, rounds_text, shown, whole
from pyaccount.plan.reduction import Analysis, DirectedBounds, Part, Reduction, gaussian, tight

if TYPE_CHECKING:
    from pyaccount.document import Body, Document


def words(document: Document, body: Body) -> Reduction:
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
        subject="Poisson sampling"
        if body.sampler.kind == "poisson"
        else f"{body.sampler.kind} sampling with separation 1, which is Poisson sampling",
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


ANALYSIS = Analysis(words, bounds)
