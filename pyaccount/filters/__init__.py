"""Privacy filters and odometers: what may be released if parameters are chosen by looking at earlier results.

This room takes the budget of a filter, and documents or certificates as entries. It gives what an entry costs in the
filter's terms (an upper bound), whether it may still be released, what is left, and the phase that stands for the whole
budget in a document. An odometer gives ε at any time instead of a limit. Everything is a pure function or a frozen value.
This room must not know who spends a budget or where this is recorded: it reads and writes no files, keeps no state and has
no commands.

**Why a filter.** A certificate composes rounds that were fixed before the first release. If noise, rates or the number of
rounds depend on results, the composition of what happened to be released is no bound: a choice between two mechanisms whose
profiles cross can make δ larger than with either of them. This is so even if the composition of every path keeps the budget
(arXiv:2602.06756, the natural f-DP filter). What is valid needs an argument of its own, which stands at the head of each
module: `gaussian` (Σ μ_i² ≤ μ²), `renyi` (Σ ρ_i(a) ≤ B(a) for every order a of a list, and Σ ρ_i ≤ ρ for zCDP), `basic` (Σ
ε_i ≤ ε and Σ δ_i ≤ δ) and `mixture` (a weighted mean over Rényi orders that keeps one (ε, δ)).

**What is promised.** Let a filter admit entries one after the other: before each entry its cost is computed, and the entry
is released only if `admits` says so. Costs, and the decision to stop, may depend on everything that was released before.
Then what is released is, as one interactive mechanism, as private as the pair of `phase()`: for every adversary that chooses
the entries, and in both directions. Every entry must be a mechanism on the same data, under the same adjacency and group
size, with fresh randomness; this room cannot check that.

**Entries that overlap.** An entry may be a whole training run, and another entry may be admitted while the first one is
still releasing. The promise holds if every entry is charged before its first release. Proof: an entry with many releases is
an interactive mechanism, and an adversary that sees it is one that sees an outcome of the entry's dominating pair, drawn
when the entry starts, and answers every message by randomised functions of it (Vadhan & Zhang 2023, cited below). So nothing
is lost if that outcome is released as a whole at the start; then entries come one after the other, and each cost depends on
what was released before.

**The total of a data set.** Rounds that were fixed beforehand and the whole budgets of filters compose: the document whose
phases are these rounds and the `phase()` of each filter bounds everything. Proof: a filter is an interactive mechanism, and
what it promises holds against every adversary, whatever this adversary learns elsewhere between two messages and puts into
its next one. Interactive mechanisms that are f_1-DP, …, f_k-DP are (f_1 ⊗ … ⊗ f_k)-DP together, even if an adversary
interleaves their messages (concurrent composition: Vadhan & Zhang 2023, arXiv:2207.08335, for finitely many messages). The
trade-off functions are those of the pairs of the phases, and f_1 ⊗ … ⊗ f_k is that of the product of the pairs, which a
document composes. Rounds that were fixed are mechanisms without messages, so they are a special case. Two filters whose
parameters are known beforehand compose in the same way. It must be the *whole* budget: how much of it is spent when
everything ends may depend on the results. (Haney et al. 2023, arXiv:2309.05901, prove the same for filters of filters in (ε,
δ), Rényi and zCDP terms.)
"""

from __future__ import annotations

from pyaccount.filters.base import Entry, Filter
from pyaccount.filters.basic import BasicFilter
from pyaccount.filters.gaussian import GaussianFilter
from pyaccount.filters.reading import filter_of
from pyaccount.filters.renyi import ConcentratedFilter, RenyiFilter

__all__ = ["BasicFilter", "ConcentratedFilter", "Entry", "Filter", "GaussianFilter", "RenyiFilter", "filter_of"]
