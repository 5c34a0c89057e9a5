"""The accountant of a training loop: counts rounds, and builds documents of what was released.

The room takes a mechanism document of a planned run, or rounds one by one, and gives mechanism documents: of the rounds
released so far, and of those that would be. Every number it tells is read from a certificate of such a document, so nothing
is accounted here a second time. One argument is made here, in `planned`: the first rounds of a run are its mechanism cut short
(what becomes of a matrix and of a sampler then, its kind says). Every theorem is the plan's, and the room must not know the
compiled core. `planned` cuts a planned run short, `ledger` writes down rounds nobody planned, `horizon` remembers what was
certified to fit a budget, `state` is what is saved, `resuming` what may be taken up again.
"""

from __future__ import annotations

from pyaccount.accountant.accountant import Accountant

__all__ = ["Accountant"]
