"""The accountant of a training loop: it counts rounds, and builds documents that describe the released rounds.

This package takes the mechanism document of a planned run, or rounds one by one. It returns mechanism documents of the
rounds released so far, and of longer runs that are asked about. Every number that it returns is read from a certificate of
such a document, so nothing is accounted here a second time. This package makes one argument, in `planned`: the first rounds
of a run are its mechanism cut short (the kind of a matrix or of a sampler defines how it is cut). Every theorem belongs to
the plan, and this package must not import the compiled core. `planned` cuts a planned run short, `ledger` records rounds
without a plan, `horizon` stores which lengths are certified to fit a budget, and `state` defines the saved state and checks
which states may be loaded. `adaptive` records rounds that were chosen by looking at results, which the room `filters`
admits or refuses; it is imported only for them, since filters need the core.
"""

from __future__ import annotations

from pyaccount.accountant.accountant import Accountant

__all__ = ["Accountant"]
