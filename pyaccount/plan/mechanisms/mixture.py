"""Gaussian noise on a vector to which a record contributes a random amount.

The vector has a contribution of norm s_j or less with probability p_j, which is drawn anew in every run and independent of
everything else. The pair is Σ_j p_j N(s_j, σ²) against N(0, σ²), the vector with the record against the vector without it,
whatever the rest of the vector is (Choquette-Choo et al. 2023, arXiv:2310.15526, Lemma 4.6, and joint convexity). Contributions
of norm s_j in one direction attain it. Samplers whose records enter a batch several times are of this form, with binomial or
hypergeometric probabilities; a document that describes the sampler states more of what was done.

More noise is never less private: it is the sum of less noise and of independent Gaussian noise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from pyaccount.document.mechanisms import MixtureOfGaussians
from pyaccount.plan.common import number
from pyaccount.plan.mechanisms.base import MechanismPlan, MechanismWords, Released
from pyaccount.profiles import MixtureProfile
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.errors import Problem

#: The number of contributions that are listed in words.
_LISTED = 4


class MixtureOfGaussiansPlan(MechanismPlan[MixtureOfGaussians]):
    """Σ_j p_j N(s_j, σ²) against N(0, σ²)."""

    def released(self, mechanism: MixtureOfGaussians, group: int) -> Released:
        """Return the pair of one record, with equal contributions together."""
        law: dict[float, Fraction] = {}
        for shift, probability in zip(mechanism.sensitivities, mechanism.probabilities, strict=True):
            law[shift] = law.get(shift, Fraction(0)) + Fraction(probability)
        # The core divides by the sum. It is scaled here too, so that no probability is above 1 by rounding.
        total = sum(law.values(), Fraction(0))
        shifts = tuple(sorted(law))
        probabilities = tuple(min(1.0, float(law[shift] / total)) for shift in shifts)
        remove, add = (
            MixtureProfile(probabilities, shifts, number(mechanism.sigma), reverse) for reverse in (False, True)
        )
        return Released(remove, remove, 1, Released(add, add))

    def described(self, mechanism: MixtureOfGaussians) -> MechanismWords:
        """Return the theorem of mixtures of Gaussians."""
        sigma = "σ" if mechanism.sigma == "solve" else shortest(mechanism.sigma)
        law = list(zip(mechanism.sensitivities, mechanism.probabilities, strict=True))
        amounts = [f"{shortest(shift)} with probability {shortest(p)}" for shift, p in law[:_LISTED]]
        if len(law) > _LISTED:
            amounts.append(f"and so on ({len(law)} in all)")
        return MechanismWords(
            "a random contribution with Gaussian noise",
            "mixtures of Gaussians",
            "Choquette-Choo et al. 2023 (arXiv:2310.15526), Lemma 4.6; attained",
            f"Σ_j p_j N(s_j, {sigma}²) against N(0, {sigma}²)",
            (
                f"One record contributes to the released vector at most, in Euclidean norm: {', '.join(amounts)}.",
                "How much a record contributes is drawn anew in every run, independent of all else, and is kept secret.",
                f"The noise of every number is Gaussian noise of standard deviation {sigma}, drawn at a resolution that does not "
                "reveal the last digits, from a generator that cannot be predicted.",
            ),
        )

    def own_refusals(self, mechanism: MixtureOfGaussians) -> list[Problem]:
        """Refuse groups and replaced records."""
        problems = []
        if self.asked.privacy.group_size != 1:
            message = (
                "no bound is implemented for groups of records with random contributions, because the probabilities are those of "
                "one record: describe the sampler that draws them, which says how records are drawn together"
            )
            problems.append(self.asked.problem("no-valid-bound", ("privacy", "group_size"), message, allowed="1"))
        if self.asked.privacy.adjacency == "replace-one":
            message = (
                "no bound is implemented for a record with random contributions that is replaced by another one: use add-remove "
                "or zero-out, or describe the sampler that draws them"
            )
            problems.append(
                self.asked.problem(
                    "no-valid-bound", ("privacy", "adjacency"), message, allowed="add-remove or zero-out"
                )
            )
        return problems
