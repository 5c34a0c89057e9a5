"""Where a profile is told that the document leaves open."""

from __future__ import annotations

#: Where a profile is told, as shares of the certified ε. What an attacker can do follows from these points alone: small ε, and 0
#: itself, limit attacks that may often be wrong, large ε those that may not.
PROFILE_SHARES = (0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.375, 1.5)


def default_profile(epsilon: float) -> tuple[float, ...]:
    """The ε values of a profile that the document leaves open: 0 and around the certified one, two digits each."""
    if epsilon <= 0.0:
        return (0.0,)
    return tuple(float(f"{share * epsilon:.2g}") for share in PROFILE_SHARES)
