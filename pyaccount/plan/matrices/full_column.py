"""What matrices with a full first column have in common: what becomes of the noise when a run of theirs is cut short."""

from __future__ import annotations

#: What a few roundings of σ·‖c‖ may have added; the noise of a cut BLT or banded inverse is moved by this to the safe side.
ROUNDING = 1e-15


def cut_noise(sigma: float, first: float) -> float:
    """σ of a leading block that is not normalised, where normalising divided the whole run's matrix by ‖c‖ = 1/first.

    (C/‖c‖)⁻¹σZ = C⁻¹(σ‖c‖)Z.
    """
    return sigma if first == 1.0 else sigma / first * (1.0 - ROUNDING)
