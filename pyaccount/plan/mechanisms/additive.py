"""Noise that is added to released numbers or a vector: Laplace, Gaussian, discrete, Skellam, and a mixture of Gaussians.

For each number the pair is the law of the noise against its shift by the sensitivity Δ (k·Δ for a group of k). Smaller shifts
are dominated: a test of the shift Δ by a threshold has, at the smaller shift, the same first and a larger second error.
Several numbers that one record changes have independent noise, and compose, whether or not their changes depend on one
another. Numbers with Laplace noise whose changes are bounded in total are dominated by one number (`plan.mechanisms.base`).

**Groups.** If c_i ≤ k records of a group change number i, the pair is that of the shift c_i·Δ, and Σ c_i ≤ k·m for m numbers
of each record. Two numbers with the shifts a and b are dominated by one with a + b: they are two steps between neighbours, of
which thresholds attain the group function (Dong, Roth & Su 2022, Theorem 2.14). So numbers are taken together while two of
them have a sum of at most k; `numbers_of_group` counts what may be left, each with the shift k·Δ. It is also a bound to take
all numbers together, to one with the shift k·m·Δ. Its largest loss is smaller, so it is used for few runs of noise whose
losses are bounded (`_as_one`). For k ≤ 2 and for m = 1 these are m numbers, which a group attains that changes the same ones.

More noise of these laws is never less private, so that the least noise can be searched for: it is the sum of less noise and of
something independent. For Gaussian noise this is Gaussian. For Laplace noise of scales b < c it is 0 with probability b²/c², and
Laplace noise of scale c otherwise: (1 + b²t²)/(1 + c²t²) = b²/c² + (1 − b²/c²)/(1 + c²t²). For discrete Laplace noise with
u = e^(−1/b) < v = e^(−1/c) its law is a mixture of 0 and of the law ∝ v^|x|, since (1 − 2u·cos t + u²)/(1 − 2v·cos t + v²) is
u/v + (1 − u/v)(1 − uv)/(1 − 2v·cos t + v²). For Skellam noise it is Skellam noise. For discrete Gaussian noise nothing like
this is proven, except that more parties with one σ add more of it.

**Several parties** whose integers are summed add noise each. What is seen is the sum of all integers and all noises, or its
remainder modulo some number, which is a function of it. The law of the noise is log-concave as that of one party's noise is, so
a likelihood ratio rises with the outcome, thresholds are the best tests, and the argument about smaller shifts holds. Noise of
further parties is something independent that is added: too small a number of parties is still a bound, and a party whose noise is
known is one party fewer. A party of which a record is removed must add its noise all the same: otherwise it is not bounded what
the record changes.

**Mixture of Gaussians**: Gaussian noise on a vector to which a record contributes a random amount. The vector has a
contribution of norm s_j or less with probability p_j, which is drawn anew in every run and independent of everything else. The
pair is Σ_j p_j N(s_j, σ²) against N(0, σ²), the vector with the record against the vector without it, whatever the rest of the
vector is (Choquette-Choo et al. 2023, arXiv:2310.15526, Lemma 4.6, and joint convexity). Contributions of norm s_j in one
direction attain it. Samplers whose records enter a batch several times are of this form, with binomial or hypergeometric
probabilities; a document that describes the sampler states more of what was done.

More noise is never less private: it is the sum of less noise and of independent Gaussian noise.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pyaccount.document.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    DistributedDiscreteGaussian,
    GaussianMechanism,
    LaplaceMechanism,
    MixtureOfGaussians,
    Skellam,
)
from pyaccount.document.mechanisms.additive import OnLattice
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.document.ranges import SHIFT
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import number, refused_groups
from pyaccount.plan.mechanisms.base import Mechanism, MechanismPlan, MechanismWords, Released
from pyaccount.profiles import (
    DiscreteGaussianProfile,
    DiscreteLaplaceProfile,
    GaussianProfile,
    LaplaceProfile,
    MixtureProfile,
    PartiesProfile,
    SkellamProfile,
)
from pyaccount.reading.fields import Solve
from pyaccount.rounding import shortest

#: The scales of discrete Laplace noise for which the core has a profile, in steps.
LAPLACE_STEPS = (1e-2, 1e6)
#: The variances of Skellam noise for which the core has a profile, in squared steps; the σ of one party's discrete Gaussian
#: noise; the σ from which on the noise of many parties is as easy as that of one, and the largest σ√n below it.
SKELLAM_VARIANCES = (1e-9, 1e8)
PARTIES_STEPS = (0.1, 1e4)
WIDE_STEPS, MOST_SPREAD = 1.5, 1000.0
#: Losses near the end of what the core computes of many parties' narrow noise, and the probability of outcomes it may leave out.
LARGE_LOSSES = (700.0, 700.1)
UNRESOLVED = 1e-60
#: The relative width of a δ that is known well enough.
NARROW = 1e-3


def _changes(sensitivity: float, moved: int) -> Assumed:
    one = (
        f"One record changes at most {moved} of the released numbers, "
        if moved > 1
        else "One record changes the released numbers "
    )
    return Assumed(
        f"{one}{'each ' if moved > 1 else ''}by at most {shortest(sensitivity)}, in its own unit, and nothing else of them.",
        f"{one}{'each ' if moved > 1 else ''}by at most {shortest(sensitivity)}.",
    )


def _size(size: float | Solve, symbol: str) -> str:
    """Return a scale as text for people: its symbol while it is the blank."""
    return symbol if size == "solve" else shortest(size)


def _drawn(law: str, resolution: str) -> Assumed:
    return Assumed(
        f"The noise of every number is {law}, drawn {resolution}, from a generator that cannot be predicted.",
        f"Noise: {law}, unpredictable.",
    )


def numbers_of_group(moved: int, group: int) -> int:
    """Return how many numbers, each changed by all of a group, bound what its records change, at most `moved` numbers each.

    If no two of n counts 1 ≤ c_i ≤ k have a sum of at most k, all but one are at least h = ⌊k/2⌋ + 1. With Σ c_i ≤ k·m this
    gives n·h ≤ k·m for odd k, and n·h − 1 ≤ k·m for even k, where the smallest count may be k/2.
    """
    return (group * moved + (group % 2 == 0)) // (group // 2 + 1)


def _as_one(plan: MechanismPlan[Any], moved: int, count: int) -> bool:
    """Return whether all numbers of a group are taken together, because that is probably the smaller bound; both are bounds.

    n runs have the largest loss n·k·m·Δ/b as one number each, and about 4.7·√(n·count)·k·Δ/b at δ = 1e-6 as several.
    """
    return count > moved and (plan.asked.privacy.delta == 0.0 or plan.node.count * moved**2 <= 4.7**2 * count)


def _of_group(words: MechanismWords, moved: int, group: int | Solve) -> MechanismWords:
    """Return the words of a bound that is attained, unless three or more records may change different numbers."""
    if moved == 1 or (group != "solve" and number(group) < 3):
        return replace(words, source=f"{words.source}; attained")
    return replace(
        words,
        remark="Records of the group may change different numbers, so the bound counts more numbers than one record changes.",
        lower_end="all records of the group change the same numbers",
    )


def _by_parties(parties: int) -> tuple[Assumed, ...]:
    who = "party adds" if parties == 1 else "parties add"
    return (
        Assumed(
            f"At least {parties} {who} this noise, each its own and independent of that of the others, whether the protected "
            "records are there or not: a party whose records are removed still adds its noise. A party that drops out, or lets "
            "those who see the sum know its noise, does not count.",
            f"{parties} {who} it, with or without the record; dropouts do not count.",
        ),
        Assumed(
            "Of what the parties send, nothing but the sum is seen, or its remainder modulo some number, as with secure "
            "aggregation.",
            "Nothing but the parties' sum is seen, as with secure aggregation.",
        ),
    )


class LaplaceMechanismPlan(MechanismPlan[LaplaceMechanism]):
    """Lap(0, b) against Lap(Δ, b) for each number that changes."""

    def released(self, mechanism: LaplaceMechanism, group: int) -> Released:
        """Return the pair of one number, for all numbers that change."""
        alone, scale = Fraction(repr(mechanism.sensitivity)), number(mechanism.scale)
        part = LaplaceProfile(rounded_up(group * alone), scale)
        count = numbers_of_group(mechanism.moved, group)
        if _as_one(self, mechanism.moved, count):
            one = LaplaceProfile(rounded_up(group * mechanism.moved * alone), scale)
            return Released(one, part, attained=mechanism.moved)
        return Released(part, part, count, attained=mechanism.moved)

    def described(self, mechanism: LaplaceMechanism) -> MechanismWords:
        """Return the theorem of the Laplace mechanism."""
        shift, scale = shortest(mechanism.sensitivity), _size(mechanism.scale, "b")
        words = MechanismWords(
            "numbers with Laplace noise",
            "the Laplace mechanism",
            "Dwork, McSherry, Nissim & Smith 2006",
            f"Lap({shift}, {scale}) against Lap(0, {scale})",
            (
                _changes(mechanism.sensitivity, mechanism.moved),
                _drawn(
                    f"Laplace noise of scale {scale}", "at a resolution that does not reveal the number's last digits"
                ),
            ),
        )
        return _of_group(words, mechanism.moved, self.asked.privacy.group_size)


class GaussianMechanismPlan(MechanismPlan[GaussianMechanism]):
    """N(Δ, σ²) against N(0, σ²) for a vector that changes by Δ in norm."""

    def released(self, mechanism: GaussianMechanism, group: int) -> Released:
        """Return the pair of the vector, along the direction of its change."""
        part = GaussianProfile(rounded_up(group * Fraction(repr(mechanism.sensitivity))), number(mechanism.sigma))
        return Released(part, part)

    def described(self, mechanism: GaussianMechanism) -> MechanismWords:
        """Return the theorem of the Gaussian mechanism."""
        shift, sigma = shortest(mechanism.sensitivity), _size(mechanism.sigma, "σ")
        return MechanismWords(
            "numbers with Gaussian noise",
            "the Gaussian mechanism",
            "Balle & Wang 2018; attained",
            f"N({shift}, {sigma}²) against N(0, {sigma}²)",
            (
                Assumed(
                    f"One record changes the released vector by at most {shift} in Euclidean norm.",
                    f"One record moves the released vector by at most {shift}, in norm.",
                ),
                _drawn(
                    f"Gaussian noise of standard deviation {sigma}",
                    "at a resolution that does not reveal the last digits",
                ),
            ),
        )


class OnLatticePlan(MechanismPlan[Mechanism]):
    """What discrete noises share: their words, and refusals of changes with too many steps and of scales out of range."""

    def lattice_refusals(
        self, steps: int, field: str, in_steps: tuple[float, tuple[float, float]], unit: str = "steps"
    ) -> list[Problem]:
        """Return the problems; `in_steps` is the scale in steps, or in another unit, and the range in which it is implemented."""
        problems = []
        group = self.asked.privacy.group_size
        if group != "solve" and number(group) * steps not in SHIFT:
            message = (
                f"a group of {group} records changes a number by {number(group) * steps:_} steps; at most {int(SHIFT.maximum):_} "
                "are implemented"
            )
            problems.append(self.asked.refusal(("privacy", "group_size"), message, allowed="a smaller group"))
        size, (least, most) = in_steps
        if not least <= size <= most:
            message = (
                f"{field} is {size:.6g} {unit}; discrete noise is implemented from {least:g} to {most:g} {unit}. "
                + (
                    "Continuous noise of the same scale has practically the same privacy"
                    if size > most
                    else "Give more noise"
                )
            )
            problems.append(self.asked.refusal(self.node.at("mechanism", field), message))
        return problems

    def lattice_words(
        self, mechanism: OnLattice, theorem: str, source: str, noise: tuple[str, ...], parties: int | None = None
    ) -> MechanismWords:
        """Return the words of a theorem; `noise` is its name, both sizes (in steps first), and how it is drawn.

        `parties` is how many of them add this noise each, if there are several.
        """
        name, in_steps, size, *how = noise
        several = "" if parties is None else f"the sum of {parties} times "
        multiples = "integers" if mechanism.step == 1.0 else "multiples of a step"
        words = MechanismWords(
            f"{multiples} with {name}",
            theorem,
            source,
            f"{several}{name} {in_steps} at {mechanism.shift()} and at 0, in steps",
            (
                _changes(mechanism.sensitivity, mechanism.moved),
                Assumed(
                    f"The released numbers and their noise are multiples of {shortest(mechanism.step)}.",
                    f"Numbers and noise are multiples of {shortest(mechanism.step)}.",
                ),
                _drawn(f"{name} {size}", *(how or ["exactly, not by rounding"])),
                *(() if parties is None else _by_parties(parties)),
            ),
        )
        return _of_group(words, mechanism.moved, self.asked.privacy.group_size)


class DiscreteLaplacePlan(OnLatticePlan[DiscreteLaplace]):
    """Discrete Laplace noise against its shift by a whole number of steps; d + 1 losses (d − 2j)/b."""

    def released(self, mechanism: DiscreteLaplace, group: int) -> Released:
        """Return the pair of one number, for all numbers that change."""
        shift, scale = group * mechanism.shift(), mechanism.in_steps(number(mechanism.scale))
        part, moved = DiscreteLaplaceProfile(shift, scale), mechanism.moved
        count = numbers_of_group(moved, group)
        if _as_one(self, moved, count) and moved * shift in SHIFT:
            return Released(DiscreteLaplaceProfile(moved * shift, scale), part, attained=moved)
        return Released(part, part, count, attained=moved)

    def described(self, mechanism: DiscreteLaplace) -> MechanismWords:
        """Return the theorem of the geometric mechanism."""
        scale = mechanism.scale
        b = "b" if scale == "solve" else shortest(mechanism.in_steps(scale))
        return self.lattice_words(
            mechanism,
            "the geometric mechanism",
            "Ghosh, Roughgarden & Sundararajan 2009",
            ("discrete Laplace noise", f"of scale {b}", f"of scale {_size(scale, 'b')}"),
        )

    def own_refusals(self, mechanism: DiscreteLaplace) -> list[Problem]:
        """Refuse scales and groups out of the range of the core."""
        # A scale that is searched for is one of the range.
        size = LAPLACE_STEPS[0] if mechanism.scale == "solve" else mechanism.in_steps(mechanism.scale)
        return self.lattice_refusals(mechanism.shift(), "scale", (size, LAPLACE_STEPS))


class DiscreteGaussianPlan(OnLatticePlan[DiscreteGaussian]):
    """Discrete Gaussian noise against its shift by a whole number of steps."""

    def released(self, mechanism: DiscreteGaussian, group: int) -> Released:
        """Return the pair of one number, for all numbers that change."""
        part = DiscreteGaussianProfile(group * mechanism.shift(), mechanism.in_steps(mechanism.sigma))
        return Released(part, part, numbers_of_group(mechanism.moved, group), attained=mechanism.moved)

    def described(self, mechanism: DiscreteGaussian) -> MechanismWords:
        """Return the theorem of the discrete Gaussian mechanism."""
        size = (f"of parameter {shortest(sigma)}" for sigma in (mechanism.in_steps(mechanism.sigma), mechanism.sigma))
        return self.lattice_words(
            mechanism,
            "the discrete Gaussian mechanism",
            "Canonne, Kamath & Steinke 2020 (arXiv:2004.00010)",
            ("discrete Gaussian noise", *size),
        )

    def own_refusals(self, mechanism: DiscreteGaussian) -> list[Problem]:
        """Refuse scales and groups out of the range of the core."""
        size = mechanism.in_steps(mechanism.sigma)
        return self.lattice_refusals(mechanism.shift(), "sigma", (size, (1e-2, 1e5)))


class SkellamPlan(OnLatticePlan[Skellam]):
    """Skellam noise, of one or several parties, against its shift by a whole number of steps."""

    def released(self, mechanism: Skellam, group: int) -> Released:
        """Return the pair of one number, for all numbers that change."""
        part = SkellamProfile(group * mechanism.shift(), mechanism.total(number(mechanism.variance)))
        return Released(part, part, numbers_of_group(mechanism.moved, group), attained=mechanism.moved)

    def described(self, mechanism: Skellam) -> MechanismWords:
        """Return the theorem of the Skellam mechanism."""
        variance, several = mechanism.variance, mechanism.parties > 1
        total = "v" if variance == "solve" else shortest(mechanism.total(variance))
        own = f"of variance {_size(variance, 'v')}{' of each party' if several else ''}"
        words = self.lattice_words(
            mechanism,
            "the Skellam mechanism",
            "Agarwal, Kairouz & Liu 2021 (arXiv:2110.04995)",
            ("Skellam noise", f"of variance {total}", own, "as the difference of two Poisson variables, exactly"),
        )
        return replace(words, assumed=(*words.assumed, *_by_parties(mechanism.parties))) if several else words

    def own_refusals(self, mechanism: Skellam) -> list[Problem]:
        """Refuse variances and groups out of the range of the core."""
        size = 1.0 if mechanism.variance == "solve" else mechanism.total(mechanism.variance)
        return self.lattice_refusals(mechanism.shift(), "variance", (size, SKELLAM_VARIANCES), "squared steps in all")


class DistributedDiscreteGaussianPlan(OnLatticePlan[DistributedDiscreteGaussian]):
    """The sum of several parties' discrete Gaussian noise against its shift by a whole number of steps."""

    def released(self, mechanism: DistributedDiscreteGaussian, group: int) -> Released:
        """Return the pair of one number, for all numbers that change."""
        part = PartiesProfile(group * mechanism.shift(), mechanism.in_steps(mechanism.sigma), mechanism.parties)
        return Released(part, part, numbers_of_group(mechanism.moved, group), attained=mechanism.moved)

    def described(self, mechanism: DistributedDiscreteGaussian) -> MechanismWords:
        """Return the theorem of the distributed discrete Gaussian mechanism."""
        size = (f"of parameter {shortest(sigma)}" for sigma in (mechanism.in_steps(mechanism.sigma), mechanism.sigma))
        return self.lattice_words(
            mechanism,
            "the distributed discrete Gaussian mechanism",
            "Kairouz, Liu & Steinke 2021 (arXiv:2102.06387)",
            ("discrete Gaussian noise", *size),
            mechanism.parties,
        )

    def own_refusals(self, mechanism: DistributedDiscreteGaussian) -> list[Problem]:
        """Refuse scales, groups and numbers of parties out of the range of the core."""
        size, parties = mechanism.in_steps(mechanism.sigma), mechanism.parties
        if problems := self.lattice_refusals(mechanism.shift(), "sigma", (size, PARTIES_STEPS)):
            return problems
        spread = size * math.sqrt(parties)
        path, allowed = self.node.at("mechanism", "parties"), "fewer parties"
        if size < WIDE_STEPS and spread > MOST_SPREAD:
            most = int((MOST_SPREAD / size) ** 2)
            message = (
                f"for σ below {WIDE_STEPS} steps, no bound is implemented for more than {most:_} parties with σ = {size:.6g}: "
                f"write {most:_}, which is a bound for more of them too, since their noise comes in addition"
            )
            allowed = f"at most {most:_}"
        elif spread > PARTIES_STEPS[1]:
            message = (
                f"the noise of {parties:_} parties has σ = {spread:.6g} steps together; at most {PARTIES_STEPS[1]:g} are "
                "implemented. Fewer parties are a bound for more of them too"
            )
        elif not self._resolved(mechanism):
            message = (
                "a record changes a number by so many steps that noise this narrow makes up for them with a probability below "
                "1e-60, which is not computed: there is no privacy to speak of. Give more noise"
            )
            return [self.asked.refusal(self.node.at("mechanism", "sigma"), message)]
        else:
            return []
        return [self.asked.refusal(path, message, allowed=allowed)]

    def _resolved(self, mechanism: DistributedDiscreteGaussian) -> bool:
        """Return whether both ends of a profile are near each other where losses are large, for one of two of them."""
        group = self.asked.privacy.group_size
        profile = self.released(mechanism, 1 if group == "solve" else number(group)).upper.build()
        return any(most - least <= UNRESOLVED + NARROW * most for least, most in map(profile.delta, LARGE_LOSSES))


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
                Assumed(
                    f"One record contributes to the released vector at most, in Euclidean norm: {', '.join(amounts)}.",
                    "A record contributes at most the stated norms, with their probabilities.",
                ),
                Assumed(
                    "How much a record contributes is drawn anew in every run, independent of all else, and is kept secret.",
                    "How much it contributes is drawn anew in every run, and kept secret.",
                ),
                _drawn(
                    f"Gaussian noise of standard deviation {sigma}",
                    "at a resolution that does not reveal the last digits",
                ),
            ),
        )

    def own_refusals(self, mechanism: MixtureOfGaussians) -> list[Problem]:
        """Refuse groups and replaced records."""
        problems = refused_groups(
            self.asked,
            "no bound is implemented for groups of records with random contributions, because the probabilities are those of "
            "one record: describe the sampler that draws them, which says how records are drawn together",
        )
        if self.asked.privacy.adjacency == "replace-one":
            message = (
                "no bound is implemented for a record with random contributions that is replaced by another one: use add-remove "
                "or zero-out, or describe the sampler that draws them"
            )
            problems.append(self.asked.refusal(("privacy", "adjacency"), message, allowed="add-remove or zero-out"))
        return problems
