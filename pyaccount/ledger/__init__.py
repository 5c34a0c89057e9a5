"""Ledgers: the privacy budget of a data set, shared by many people and many runs, which cannot be overspent.

This room takes data sets (documents of kind data-set), and entries: planned documents, certificates, and the records of runs.
It gives decisions (what may be reserved), and what is spent and left. It keeps them in a file or a database, and must not know
who asks: commands, policies (`gate`) and runs (`training`) use it, and it knows none of them.

**What is promised.** Let everything that is released about a block of the data be released by entries of the ledger, each begun
before its first release, run as its document says, and with its own randomness. Then all of these releases together, as one
interactive mechanism whose users may look at everything before they choose the next entry, keep the budget of the data set, for
two data sets that differ in the records of this block. No record is in two blocks, so what holds for each block holds for the
data set.

**Proof.** Fix a block B and two data sets that are neighbours and differ in B alone. An entry is *fixed* on B if it was
reserved before any entry of B began; every other one is *adaptive* on B.

1. *What is fixed does not depend on B's data.* Before the first entry of B begins, everything that was released came from
   entries that do not use B: an entry uses its blocks only, and begins on all of them at once. Its law is the same on both data
   sets. So the list of fixed entries is chosen by something that has the same law on both. Given this list, the fixed entries
   are a non-interactive composition, whatever happens later. That an entry which begins on B may name other blocks as well
   changes nothing: it is fixed on those of its blocks where nothing has begun, and adaptive on the others, and each block has
   its own proof.
2. *A filter bounds all of its entries by its whole budget*, whatever is chosen adaptively, and whatever is learned elsewhere
   between two of its entries (`pyaccount.filters` proves this for each kind). Filters and their budgets are fixed when the data
   set is created.
3. *Both compose.* The fixed entries and the filters are interactive mechanisms whose parameters are known, and concurrent
   composition holds for them (Vadhan & Zhang 2023, arXiv:2207.08335): all releases are bounded by the composition of the fixed
   phases with the phase of each filter. This is the document whose ε, or risk, is the *total* of B (`totals`). It must be the
   whole budget of a filter, since how much of it is spent at the end may depend on what was released.
4. The ledger admits a fixed entry only if the total keeps the budget, and an adaptive one only if a filter admits it. By 3 the
   budget holds at every time, and after the last entry. ∎

With μ or ρ as the budget, all entries count in one filter of the whole budget, and 2 alone is the proof.

**Refunds.** An entry that was reserved and not begun has released nothing. Before anything on B has begun it leaves the list of
fixed entries, as if it had never been there: by 1, this choice has the same law on both data sets. In a filter it leaves the
sum at any time, since a filter bounds what ran, in whatever order, as long as the sum of the costs of what ran and of what is
still reserved keeps the budget. Later a fixed entry keeps its price: whether it runs may have been decided by looking at
releases. (If it does not run, the promise holds all the more: its output can be ignored.)

**Unused rounds.** In a filter whose costs add up over rounds (μ, ρ, Rényi), a run whose rounds are independent of one another,
given the data, is a sequence of entries with one round each, which the filter would have admitted one by one. The decision to
stop may depend on everything before. So only the rounds that were released count, and the rest is credited when the record of
the run is committed: only if the run began the entry itself, which then belongs to it alone, and after it was abandoned, so that
it releases nothing more. A filter in (ε, δ) terms counts the run as one mechanism, and a fixed entry is a plan: neither is
credited.

**Changed budgets.** Raising a budget is a decision of its owner. What is proven is that the releases keep the budget that was
in force when they were reserved; who raises it because of what was released has to read the promise with the largest budget
that this person could have chosen.

**What it keeps.** A table of events with a chain of SHA-256 hashes, and tables of the state that follows from them, in one
transaction for each command (`database`, `sqlite`, `server`). `state` has the rules by which an event changes the state.
"""

from __future__ import annotations

from pyaccount.ledger.ledger import Ledger
from pyaccount.ledger.state import EntryPlace, LedgerEntry

__all__ = ["EntryPlace", "Ledger", "LedgerEntry"]
