"""Phases that are run together on one sample of the records or clients, drawn anew for each run (theorems: `plan.units`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.document.mechanisms import MechanismKind
from pyaccount.plan.mechanisms.base import FRESH
from pyaccount.plan.reduction import Analysis, Reduction
from pyaccount.plan.replaced import LOWER_END, TRADE_OFF, replaced_in_sample
from pyaccount.plan.rounds import combine
from pyaccount.plan.units import SHOWN, sampled, sampling_assumptions, sampling_refusals, sampling_source
from pyaccount.rounding import shortest

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.rounds import DirectedBounds


@dataclass(frozen=True, slots=True)
class OnOneSample:
    """The analysis of phases that are run together.

    `inner` has the analysis of each phase. If the output may show whether a unit was drawn, `removal` has that of each phase
    for a record that is removed or added, and is empty where this is not known.
    """

    inner: tuple[Analysis, ...]
    removal: tuple[Analysis, ...] = ()

    def analysis(self) -> Analysis:
        """Return the analysis of all phases and of their sample."""
        return Analysis(self.words, self.bounds, refusals=self.refusals)

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorems of the phases, and that of the sample, as one."""
        parts = [one.words(document, part) for one, part in zip(self.inner, body.inner, strict=True)]
        unit = "client" if body.draws_groups else "record"
        texts = dict.fromkeys(text for part in parts for text in part.assumptions)
        lower_end = "the two data sets of each phase" if any(part.lower_end for part in parts) else None
        if self.removal and not self._gaussian():
            lower_end = LOWER_END
        replaced = document.privacy.adjacency == "replace-one" and not body.draws_groups
        source, pairs = sampling_source(document, body), pairs_of_run(self.inner, parts)
        if self.removal:
            asked = document.protecting("add-remove", 1)
            removed = [one.words(asked, part) for one, part in zip(self.removal, body.inner, strict=True)]
            of_one = "if the record is removed, and the other way round for the one in its place"
            source, pairs = TRADE_OFF, f"{pairs_of_run(self.removal, removed)}, {of_one}"
        return Reduction(
            path=body.path,
            subject=f"phases on a Poisson sample of the {unit}s: {', then '.join(part.subject for part in parts)}",
            theorem="composition of the phases of a run, sampled",
            source="; ".join(dict.fromkeys([*(part.source for part in parts), source])),
            pair=f"{pairs}; all of them with probability {shortest(body.sampling_probability())}",
            rounds=str(body.count),
            tight=all(part.tight for part in parts) and lower_end is None,
            remark=SHOWN if replaced and not self.removal else None,
            assumptions=(*texts, FRESH, *sampling_assumptions(document, body, removal=bool(self.removal))),
            lower_end=lower_end,
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return `count` rounds of the sampled composition."""
        rate = body.sampling_probability()
        if not self.removal or rate >= 1.0:
            return sampled(one_run(self.inner, document, body), document, body)
        run = one_run(self.removal, document.protecting("add-remove", 1), body)
        return replaced_in_sample(run, rate, body.count, gaussian=self._gaussian())

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the phases or their sample refuse, and phases that are analysed by drawing samples."""
        removal = bool(self.removal)
        return [
            *sampling_refusals(document, body, removal=removal),
            *_sizes_of_samples(document, body),
            *inner_refusals(self.inner, document, body),
        ]

    def _gaussian(self) -> bool:
        return all(one.gaussian for one in self.removal)


def _sizes_of_samples(document: Document, body: Body) -> list[Problem]:
    """Refuse samplers inside of a sample of records for which the number of records matters; a client has all of its records.

    A sample has a random number of records, and bounds for batches of a fixed size, or of truncated ones, are for data sets of a
    public size. Nor is a record that was not drawn like one that is set to zero: that one takes the place of another record in a
    batch, and the output may show it.
    """
    problems: list[Problem] = []
    if body.draws_groups:
        return problems
    for one in body.within():
        truncated = getattr(one.sampler, "truncate_to", None) is not None
        if one.sampler.fixed_draws or truncated:
            what = "truncated batches" if truncated else "batches of a fixed size"
            message = (
                f"no bound is implemented for {what} of a sample: it has a random number of records, and those that were not "
                "drawn leave their places in a batch to others"
            )
            path = one.at("sampler", "truncate_to" if truncated else "kind")
            problems.append(document.problem("no-valid-bound", path, message, allowed="poisson, or no sampler"))
    return problems


def pairs_of_run(inner: tuple[Analysis, ...], parts: list[Reduction]) -> str:
    """Return the pairs of one run of all phases in words; rounds that are one Gaussian mechanism have one pair."""
    return ", and ".join(
        part.pair if one.gaussian else f"{part.rounds} × {part.pair}" for one, part in zip(inner, parts, strict=True)
    )


def one_run(inner: tuple[Analysis, ...], document: Document, body: Body) -> DirectedBounds:
    """Return the rounds of one run of all phases that are inside of a body."""
    parts = []
    for one, part in zip(inner, body.inner, strict=True):
        assert one.bounds is not None
        parts.append(one.bounds(document, part))
    return combine(parts, merge_gaussians=True)


def inner_refusals(inner: tuple[Analysis, ...], document: Document, body: Body) -> list[Problem]:
    """Refuse what the phases inside of a body refuse, and those that are analysed by drawing samples."""
    problems = []
    for one, part in zip(inner, body.inner, strict=True):
        found = [] if one.refusals is None else one.refusals(document, part)
        if one.refusals is not None and isinstance(part.noise, MechanismKind) and body.sampler.kind == "poisson":
            # What a mechanism reveals of a record that is not drawn matters as if the sampler were its own.
            drawn = replace(part, sampler=body.sampler, draws_groups=body.draws_groups)
            own = part.at("sampler", "kind")
            found = [*found, *(problem for problem in one.refusals(document, drawn) if problem.path == own)]
        problems += found
        if one.bounds is None:
            message = (
                f"{part.sampler.kind} sampling is analysed by drawing samples, which is implemented for phases of the "
                "document, not for phases inside of another one"
            )
            path = part.at("sampler", "kind")
            problems.append(document.problem("no-valid-bound", path, message, allowed="a sampler whose rounds compose"))
    return problems
