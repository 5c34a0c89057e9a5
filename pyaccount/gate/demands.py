"""What a gate must be asked before it may open: limits on ε and δ, and the files that an attestation is about.

A certificate without a limit on its δ passes at δ = 0.5, and an attestation without its files passes for any model. Whoever wants
that says so by name. What a policy asks for is never lifted by this.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.document import Limits

_SYMBOLS = {"epsilon": "ε", "delta": "δ"}


def without_limit(asked: Iterable[Limits]) -> tuple[str, ...]:
    """Which of `epsilon` and `delta` no set of limits restricts.

    Neither is missing where attacks are limited: an advantage of at most A is (0, A)-differential privacy, and a limit on the
    true-positive rate at a false-positive rate is one on the trade-off curve, whatever ε and δ are.
    """
    sets = list(asked)
    if any(one.max_advantage is not None or one.max_true_positive_rate is not None for one in sets):
        return ()
    return tuple(name for name in _SYMBOLS if all(getattr(one, f"max_{name}") is None for one in sets))


def too_easy(unlimited: Iterable[str]) -> str:
    """The message for a gate that leaves ε, δ or both without a limit."""
    names = list(unlimited)
    symbols = " and ".join(_SYMBOLS[name] for name in names)
    missing = " and ".join(f"`max_{name}`" for name in names)
    stated = " and ".join(f"limits.max_{name}" for name in names)
    return (
        f"no limit on {symbols} is given, so a certificate would pass with any {symbols}: add {missing}, or a `policy` with "
        f"{stated}, or a limit on attacks such as `max_advantage`; `no_limits` passes any {symbols}"
    )


#: The message for an attestation without a file that it must be about.
NO_SUBJECT = (
    "no subject is given, so an attestation about any other file would pass: name the files that it must be about with "
    "`subjects`; `any_subject` passes an attestation whatever it is about"
)
