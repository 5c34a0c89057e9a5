"""What a gate must be asked before it may open: limits on ε and δ, and the files that an attestation is about.

A certificate without a limit on its δ passes at δ = 0.5, and an attestation without its files passes for any model. Whoever wants
that says so by name. What a policy asks for is never lifted by this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.document import Limits

#: What messages call an argument: `--max-delta` on the command line, `max_delta` in Python.
Spelled = Callable[[str], str]

_SYMBOLS = {"epsilon": "ε", "delta": "δ"}


def as_option(name: str) -> str:
    """The option of the command that gives an argument."""
    return f"--{name.replace('_', '-')}"


def as_keyword(name: str) -> str:
    """The keyword argument of `pyaccount.check` and `pyaccount.verify`."""
    return name


def without_limit(asked: Iterable[Limits]) -> tuple[str, ...]:
    """Which of `epsilon` and `delta` no set of limits restricts.

    Neither is missing where attacks are limited: an advantage of at most A is (0, A)-differential privacy, and a limit on the
    true-positive rate at a false-positive rate is one on the trade-off curve, whatever ε and δ are.
    """
    sets = list(asked)
    if any(one.max_advantage is not None or one.max_true_positive_rate is not None for one in sets):
        return ()
    return tuple(name for name in _SYMBOLS if all(getattr(one, f"max_{name}") is None for one in sets))


def too_easy(unlimited: Iterable[str], spelled: Spelled) -> str:
    """The message for a gate that leaves ε, δ or both without a limit."""
    names = list(unlimited)
    symbols = " and ".join(_SYMBOLS[name] for name in names)
    missing = " and ".join(spelled(f"max_{name}") for name in names)
    stated = " and ".join(f"max_{name}" for name in names)
    opened = "--no-limits" if spelled is as_option else "no_limits=True"
    return (
        f"no limit on {symbols} is given, so a certificate would pass with any {symbols}: add {missing}, or {spelled('policy')} "
        f"with {stated} among its limits, or a limit on attacks such as {spelled('max_advantage')}; {opened} passes any {symbols}"
    )


def no_subject(spelled: Spelled) -> str:
    """The message for an attestation without a file that it must be about."""
    one = "--subject FILE" if spelled is as_option else "subjects=[file]"
    opened = "--any-subject" if spelled is as_option else "any_subject=True"
    return (
        "no subject is given, so an attestation about any other file would pass: add the files that it must be about, "
        f"{one}; {opened} passes an attestation about whatever it is about"
    )
