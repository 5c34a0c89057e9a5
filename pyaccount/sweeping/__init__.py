"""Sweeps: runs the cells of a grid and collects the results in a table.

This room takes a `SweepGrid` and returns a `Sweep`, which has a row for every cell that was certified, and the reason
for every cell that was not. It decides which cells run at the same time, and must not know how a certificate is
computed.
"""

from pyaccount.sweeping.table import Sweep

__all__ = ["Sweep"]
