"""Sweeps: the cells of a grid run, and laid in a table.

Takes a `SweepGrid`; gives a `Sweep`, which has a row for every cell that was certified and the reason for every one that was not.
It decides what runs at the same time, and knows nothing of how a certificate is computed.
"""

from pyaccount.sweeping.table import Sweep

__all__ = ["Sweep"]
