"""The run store: what was computed before, in one SQLite file, so that an interrupted run goes on where it ended.

Takes documents, the certificates that were issued for them, and a `Runner` whose waves it keeps. Gives back certificates by
what they were computed from, and waves by the jobs that they are of. A run that goes on gives the certificate that an
uninterrupted one would have given, bit for bit (dates aside): waves are functions of their job's coordinates, and the seed of a
run is kept with it.

It must not know who asks: no terminal, no command line.
"""

from pyaccount.store.database import Run, Store
from pyaccount.store.kept import Strictness
from pyaccount.store.running import KeptRun, kept_in

__all__ = ["KeptRun", "Run", "Store", "Strictness", "kept_in"]
