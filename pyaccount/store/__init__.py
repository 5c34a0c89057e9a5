"""The run store: keeps computed results in one SQLite file, so that an interrupted run can continue where it stopped.

This room takes documents, the certificates that were issued for them, and a `Runner` whose waves it keeps. It returns
certificates by the inputs that they were computed from, and waves by their jobs. A run that continues produces the same
certificate as an uninterrupted one, bit for bit (except for dates): waves are functions of the coordinates of their
job, and the seed of a run is stored with it.

The room must not know its caller: it uses no terminal and no command line.
"""

from pyaccount.store.database import Run, Store
from pyaccount.store.kept import Strictness
from pyaccount.store.running import KeptRun, kept_in

__all__ = ["KeptRun", "Run", "Store", "Strictness", "kept_in"]
