"""How a certificate's numbers are rounded: as everybody's, see `pyaccount.rounding`."""

from pyaccount.rounding import down, nearest, plain, up

__all__ = ["down", "nearest", "plain", "up"]
