"""Records that are drawn with different probabilities: the bound for the largest one holds for all of them.

In each round every record x is drawn by a coin of its own with probability q(x) ≤ q, independently of all other records,
and q(x) is a function of this record alone. Let A be the same run in which every record is drawn with probability q.

**Theorem.** Whatever guarantee the theorem of A gives, for every adjacency and every group size, holds for this run.

*Proof*, for sums of clipped contributions. Draw x with probability q, and then keep it with probability q(x)/q, by a
second coin. This has the law of the run, in which x is drawn with probability q(x). So the run is A in which x
contributes g·c in place of g to each round for which it is drawn, where c is 1 if it is kept in this round, and 0 if not.
Fix the second coins of all rounds, those of the records of both neighbours included. Then the contributions are still
functions of the record, the round and what was released before, with a norm of at most 1, which is all that the theorem
of A assumes of them: so it bounds the run with these coins. The second coins have the same law under both neighbours,
since q(x) of a record that both of them have is the same in both. The run is the mixture over them, and the
hockey-stick divergence is jointly convex: the bound of A holds for the mixture too. (For a record that is replaced, or a
group, the coins of the records that only one of the neighbours has are drawn for both and ignored in the other.)

Several draws in a round have a second coin for each draw. Sums that are released beside the main one, and matrices that
correlate the noise of different rounds, change nothing: contributions of 0 are allowed there too.

*Proof*, for a mechanism M on a sample (`pyaccount.plan.units`). The run is A with the mechanism M′ that first drops each
drawn record (or client) with probability 1 − q(x)/q, and then runs M on those that are left. With the same coins for both
neighbours, M′ either runs M on neighbours or, if the record in which they differ is dropped, on equal data. So the
profile of M′ is at most r·h + (1 − r)(1 − α)₊ ≤ h, where h is the profile of M and r the probability of being kept, and the
theorem of A bounds the run. A record that is not drawn is to M′ like an absent one if it is to M. Under replace-one the record
and the one in its place have different coins: M′ has a mixture of the laws with and without the record. This is covered if
both are bounded (by what a removal reveals, or for any two data sets: `pyaccount.plan.replaced`), since profiles against the law
without the record are convex. Otherwise it is refused, for the probability of the record may show. If clients are drawn, and
one of their records is protected, the probability of a client must not depend on that record: whether a client takes part
shows in the output.

**What the proof excludes.** Truncated batches: a record that is drawn and dropped by its second coin would count towards the
limit. Samplers in which a record that was drawn is not available for some rounds: a dropped record would be unavailable
too. A fixed number of draws with weights, and weights by the number of similar records: q(x) of a record that both
neighbours have would differ between them.

The bound is tight where that of A is: a record with the largest probability attains it. A record with the probability q(x)
has the guarantee of a run in which all records are drawn with q(x): apply the theorem of A to the neighbours that differ in
this record, given which other records are drawn. (Under replace-one, if it is replaced by one with the same probability.)

**Several phases.** A record may be of any stratum in each phase, also of strata with different names, and may have the largest
probability in all of them: that is what the guarantee bounds, from both sides.
"""

from __future__ import annotations

from dataclasses import replace

from pyaccount.document.own_probabilities import OwnProbabilities
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import NORMALISATION
from pyaccount.plan.protection import RunCase
from pyaccount.plan.theorem import Around, Reduction
from pyaccount.rounding import shortest

_RECORDS = Assumed(
    "The stated probability of {largest} is the largest one. The probability of a record depends on this record alone: not on "
    "which other records there are, nor on how many are like it (as weights by the sizes of classes do).",
    "A record's probability depends on it alone; the largest is {largest}.",
)
_CLIENTS = Assumed(
    "The stated probability of {largest} is the largest one. The probability of a client depends neither on its records nor on "
    "other clients, nor on how many are like it.",
    "A client's probability depends on no records or clients; at most {largest}.",
)
#: The assumption in place of that about the expected batch size, which depends on how many records have which probability.
_CONSTANT = Assumed(
    "Sums are normalised by a constant that is fixed before the run, never by the size of the batch drawn, nor by one that "
    "follows from how many records have which probability.",
    "Sums are divided by a constant fixed before the run, not by sizes drawn.",
)
#: The number of strata that are listed in words.
_LISTED = 5


class LargestBounds(Around):
    """The theorem for records with different probabilities: that of records with the largest one, under a further assumption."""

    def words(self) -> Reduction:
        """Return the theorem for the largest probability, and what is assumed of the others."""
        usual, own = self.inner.words(), self.node.own_probabilities
        assert own is not None
        unit = "records" if self.node.draw is None else self.node.draw.units
        assumption = (_CLIENTS if unit == "clients" else _RECORDS).filled(largest=shortest(own.largest() or 0.0))
        return replace(
            usual,
            subject=f"{usual.subject}, {unit} with different probabilities",
            source=f"{usual.source}; smaller probabilities by joint convexity",
            remark=" ".join(filter(None, (usual.remark, _remark(own, unit)))),
            assumed=(*(_CONSTANT if text == NORMALISATION else text for text in usual.assumed), assumption),
        )


def own_probability_refusals(case: RunCase) -> list[Problem]:
    """Refuse different probabilities where the proof does not apply: with other samplers, and with truncated batches."""
    if case.node.own_probabilities is None:
        return []
    problems, path = [], case.node.at_probability()
    if reason := case.node.sampler.one_probability:
        message = f"{case.node.sampler.kind} sampling needs one probability for all records: {reason}"
        return [case.asked.refusal(path, message, allowed="one number; or kind: poisson")]
    if case.node.truncation() is not None:
        message = (
            "truncated batches are analysed with one probability for all records, because which records are kept depends on how "
            "many are drawn: leave truncate_to out, or write one probability"
        )
        path = case.node.at("sampler", "truncate_to")
        problems.append(case.asked.refusal(path, message, allowed="no truncation"))
    return problems


def _remark(own: OwnProbabilities, unit: str) -> str:
    """Return which probabilities there are, in words."""
    strata = own.named()
    if not strata:
        return f"The {unit} may be drawn with different probabilities; the pair is that of the largest one, which bounds all."
    listed = [f"{one.name} {shortest(one.probability)}" for one in strata[:_LISTED]]
    more = f", and {len(strata) - _LISTED} more" if len(strata) > _LISTED else ""
    return (
        f"The {unit} of each stratum are drawn with its probability ({', '.join(listed)}{more}); the pair is that of the largest "
        "one, which bounds all."
    )
