"""The run store: keeps certificates in one SQLite file, so that a finished run is not computed again.

This room takes documents and the certificates that were issued for them. It returns certificates by the inputs that they
were computed from. A run that was interrupted left nothing, and begins anew.

The room must not know its caller: it uses no terminal and no command line.
"""

from pyaccount.store.database import Run, Store
from pyaccount.store.running import KeptRun, Strictness, kept_in

__all__ = ["KeptRun", "Run", "Store", "Strictness", "kept_in"]
