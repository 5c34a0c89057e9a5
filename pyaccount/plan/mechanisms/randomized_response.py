"""Randomized response.

If a value changes, the output has the probabilities (p, q, …, q) before and (q, p, q, …, q) after, q = (1 − p)/(k − 1). All
outcomes but two have the loss 0. The pair is (p, q, 1 − p − q) against (q, p, 1 − p − q), and attained. A record that is set
to zero and then answers uniformly has the pair (p, 1 − p) against (1/k, 1 − 1/k), whose directions differ.

If one value is released of a sample, and the output may show whether the unit was drawn, the bound on any two values applies to
the value without the unit, too (`plan.replaced`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyaccount.document.mechanisms import RandomizedResponse
from pyaccount.plan.mechanisms.base import MechanismPlan, MechanismWords, Released
from pyaccount.plan.rounds import DirectedBounds, enclosed
from pyaccount.plan.units import draw_may_show
from pyaccount.profiles import FiniteProfile, SubsampledProfile
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.errors import Problem
    from pyaccount.plan.theorem import Reduction

#: The relative error of the probabilities that are computed, in units of rounding: at most 4 of them.
ROUNDING = 1e-15
EACH = "Every record answers for itself, and its answer depends on no other record; the true values are not released."
UNIFORM = "A record that is set to zero answers each value with the same probability."
#: The two data sets of the lower end, if one value is released of a sample.
ANY_VALUES = "the sample without the unit has the value that it has with the unit of the other data set"
ONCE = "One value is computed from all records of a run, and only its randomised form is released."


class RandomizedResponsePlan(MechanismPlan[RandomizedResponse]):
    """Three outcomes: the old value, the new one, and any other."""

    def released(self, mechanism: RandomizedResponse, group: int) -> Released:
        """Return the pair for each record of the group that answers; a value that is released once has one pair."""
        p, k = mechanism.truth_probability, mechanism.values
        if mechanism.answers == "each-record" and mechanism.empty_record == "uniform":
            pair: tuple[tuple[float, ...], tuple[float, ...]] = ((p, 1.0 - p), (1.0 / k, 1.0 - 1.0 / k))
        else:
            q = (1.0 - p) / (k - 1)
            pair = ((p, q, max(0.0, 1.0 - p - q)), (q, p, max(0.0, 1.0 - p - q)))
        count = group if mechanism.answers == "each-record" else 1
        remove, add = (FiniteProfile(*pair, ROUNDING, reverse) for reverse in (False, True))
        return Released(remove, remove, count, Released(add, add, count))

    def bounds(self) -> DirectedBounds:
        """Return the rounds of all runs; one value of a sample is bounded for any two values."""
        if not self._of_any_values():
            return super().bounds()
        assert self.node.draw is not None
        mechanism, rate = self._of(), self.node.draw.probability
        p = mechanism.truth_probability
        other = (1.0 - p) / (mechanism.values - 1)
        least, most = min(p, other), max(p, other)
        drawn = (1.0 - rate) * least + rate * most
        rest = max(0.0, 1.0 - drawn - least)
        profile = FiniteProfile((drawn, least, rest), (least, drawn, rest), ROUNDING)
        run = self.released(mechanism, 1)
        below = [SubsampledProfile(one.upper, rate, reverse) for one, reverse in ((run, False), (run.add or run, True))]
        return enclosed((profile, profile), (below[0], below[1]), self.node.count)

    def words(self) -> Reduction:
        """Return the theorem, with sampling and the number of runs."""
        usual = super().words()
        if not self._of_any_values():
            return usual
        text = self.described(self._of())
        source = f"{text.source}; on a sample: Balle, Barthe & Gaboardi 2018 (arXiv:1807.01647), Theorem 2"
        return replace(usual, source=source, remark=None, tight=False, lower_end=ANY_VALUES)

    def _of_any_values(self) -> bool:
        return self.node.draw is not None and draw_may_show(self) and self._of().for_any_data()

    def described(self, mechanism: RandomizedResponse) -> MechanismWords:
        """Return the pair in words."""
        p, k = shortest(mechanism.truth_probability), mechanism.values
        uniform = mechanism.answers == "each-record" and mechanism.empty_record == "uniform"
        return MechanismWords(
            f"randomized response with {k} values",
            "randomized response",
            "Warner 1965; Kairouz, Oh & Viswanath 2015 (arXiv:1311.0776); attained",
            f"(p, 1 − p) against (1/k, 1 − 1/k), p = {p}, k = {k}"
            if uniform
            else f"(p, q, 1 − p − q) against (q, p, 1 − p − q), p = {p}, q = (1 − p)/{k - 1}",
            (ONCE,) if mechanism.answers == "once" else (EACH, UNIFORM) if uniform else (EACH,),
        )

    def own_refusals(self, mechanism: RandomizedResponse) -> list[Problem]:
        """Refuse records that are added or removed if every record answers, and samples of them."""
        problems = []
        if mechanism.empty_record == "uniform" and (
            mechanism.answers == "once" or self.asked.privacy.adjacency != "zero-out"
        ):
            message = (
                "empty_record says how a record answers that is set to zero, which matters only under zero-out and if every "
                "record answers: leave it out"
            )
            path = self.node.at("mechanism", "empty_record")
            problems.append(self.asked.problem("contradiction", path, message, allowed="one-of-the-values"))
        if mechanism.answers == "once":
            return problems
        if self.asked.privacy.adjacency == "add-remove":
            message = (
                "if every record answers, the number of answers reveals whether a record is present, so no ε holds under "
                "add-remove: use replace-one, or zero-out if an empty record answers too"
            )
            problems.append(
                self.asked.problem(
                    "no-valid-bound", ("privacy", "adjacency"), message, allowed="replace-one or zero-out"
                )
            )
        if self.node.draw is not None and not self.node.draw.clients:
            message = (
                "if every record answers, the answers reveal which records were drawn, so sampling does not hide a record: "
                "leave sampler out, or write answers: once if one value is computed from the sample"
            )
            problems.append(
                self.asked.problem("no-valid-bound", self.node.at("sampler", "kind"), message, allowed="no sampler")
            )
        return problems
