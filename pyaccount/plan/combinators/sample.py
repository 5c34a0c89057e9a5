"""Phases that are run together on one sample of the records or clients, drawn anew for each run (theorems: `plan.units`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from pyaccount.document.tree import Draw, Node, Sample
from pyaccount.errors import Problem
from pyaccount.plan.common import OF_DOCUMENT, given, inner_refusals, joined, one_run, pairs_of_run
from pyaccount.plan.mechanisms.base import FRESH
from pyaccount.plan.protection import Case, Protection
from pyaccount.plan.replaced import LOWER_END, TRADE_OFF, replaced_in_sample
from pyaccount.plan.rounds import DirectedBounds, combine, repeated
from pyaccount.plan.theorem import CombinedTheorem, Reduction, Theorem, matched
from pyaccount.plan.units import SHOWN, sampled, sampling_assumptions, sampling_refusals, sampling_source
from pyaccount.rounding import shortest


@dataclass(frozen=True, repr=False)
class SampleTheorem(CombinedTheorem):
    """Phases that are run together on a sample.

    If the output may show whether a unit was drawn, `removal` has the theorem of each phase for a record that is removed or
    added, and is empty where this is not known.
    """

    node: Sample

    removal: tuple[Theorem, ...] = ()

    def on(self, node: Node, asked: Protection | None = None) -> Self:
        """Return the theorem for another node of the same shape."""
        usual, of_removal = super().on(node, asked), self._of_removal(asked)
        return replace(usual, removal=matched(self.removal, node, of_removal))

    def words(self) -> Reduction:
        """Return the theorems of the phases, and that of the sample, as one."""
        parts, draw = [one.words() for one in self.inner], self.node.draw
        assert draw is not None
        texts = dict.fromkeys(text for part in parts for text in part.assumed)
        lower_end = "the two data sets of each phase" if any(part.lower_end for part in parts) else None
        if self.removal and not self._gaussian():
            lower_end = LOWER_END
        replaced = self.asked.privacy.adjacency == "replace-one" and not draw.clients
        source, pairs = sampling_source(self), pairs_of_run(self.inner, parts)
        if self.removal:
            removed = [one.words() for one in self.removal]
            of_one = "if the record is removed, and the other way round for the one in its place"
            source, pairs = TRADE_OFF, f"{pairs_of_run(self.removal, removed)}, {of_one}"
        return Reduction(
            path=self.node.path,
            subject=f"phases on a Poisson sample of the {draw.units}: {', then '.join(part.subject for part in parts)}",
            theorem="composition of the phases of a run, sampled",
            source=joined([*(part.source for part in parts), source]),
            pair=f"{pairs}; all of them with probability {shortest(draw.probability)}",
            rounds=str(self.node.count),
            tight=all(part.tight for part in parts) and lower_end is None,
            remark=SHOWN if replaced and not self.removal else None,
            assumed=(*texts, FRESH, *sampling_assumptions(self, removal=bool(self.removal))),
            lower_end=lower_end,
        )

    def bounds(self) -> DirectedBounds:
        """Return `count` rounds of the sampled composition."""
        rate = given(self.node.draw).probability
        if not self.removal or rate >= 1.0:
            return sampled(one_run(self.inner), self)
        return replaced_in_sample(one_run(self.removal), rate, self.node.count, gaussian=self._gaussian())

    def refusals(self) -> list[Problem]:
        """Refuse what the phases or their sample refuse, and phases that are analysed by drawing samples."""
        return [
            *sampling_refusals(self, removal=bool(self.removal)),
            *_sizes_of_samples(self),
            *on_sample_refusals(self.inner, given(self.node.draw)),
        ]

    def public(self) -> DirectedBounds:
        """Return the rounds of runs on all records."""
        return repeated(combine([one.public() for one in self.inner], merge_gaussians=True), self.node.count)

    def _of_removal(self, asked: Protection | None) -> Protection | None:
        return None if asked is None else asked.protecting("add-remove", 1)

    def _gaussian(self) -> bool:
        return all(one.gaussian for one in self.removal)


def _sizes_of_samples(case: Case) -> list[Problem]:
    """Refuse samplers inside of a sample of records for which the number of records matters; a client has all of its records.

    A sample has a random number of records, and bounds for batches of a fixed size, or of truncated ones, are for data sets of a
    public size. Nor is a record that was not drawn like one that is set to zero: that one takes the place of another record in a
    batch, and the output may show it.
    """
    problems: list[Problem] = []
    if case.node.draw is None or case.node.draw.clients:
        return problems
    for one in case.node.runs():
        truncated = getattr(one.sampler, "truncate_to", None) is not None
        if one.sampler.fixed_draws or truncated:
            what = "truncated batches" if truncated else "batches of a fixed size"
            message = (
                f"no bound is implemented for {what} of a sample: it has a random number of records, and those that were not "
                "drawn leave their places in a batch to others"
            )
            path = one.at("sampler", "truncate_to" if truncated else "kind")
            problems.append(case.asked.refusal(path, message, allowed="poisson, or no sampler"))
    return problems


def on_sample_refusals(inner: tuple[Theorem, ...], draw: Draw) -> list[Problem]:
    """Refuse what the phases refuse, alone and on a sample."""
    return [problem for one in inner for problem in (*inner_refusals((one,), OF_DOCUMENT), *one.sample_refusals(draw))]
