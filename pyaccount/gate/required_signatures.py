"""Checks signatures and files of attestations, and that a gate requires enough.

A certificate without a limit on δ would pass at δ = 0.5, and an attestation without subjects would pass for any model.
Callers who want this must ask for it by name. That never turns off what a policy requires.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyaccount.attestation.keys import TrustedKeys, trusted_keys
from pyaccount.attestation.statement import Envelope, Subject, subjects_of
from pyaccount.document.policy import Limits, Policy
from pyaccount.errors import DomainError, printable
from pyaccount.gate.rules import ALWAYS
from pyaccount.gate.verdict import Rule, SignedBy

KEYS, SUBJECTS = "trusted_keys", "subjects"


class RequiredSignatures(NamedTuple):
    """Requirements on attestations: a signature by one key of each set of keys, and each file as a subject."""

    keys: tuple[TrustedKeys, ...]
    #: Who gave the files.
    origin: str
    files: tuple[Subject, ...]
    #: Who requires files, even if none is given.
    required_by: tuple[str, ...]

    def check_subjects(self, *, any_subject: bool) -> None:
        """Refuse to judge attestations without the files that they must be about, unless `any_subject`.

        If a policy requires files, the verdict reports it instead. Raises `DomainError`.
        """
        if self.files and any_subject:
            raise DomainError("`subjects` and `any_subject` contradict each other: give only one of them")
        if not (self.files or any_subject or self.required_by):
            raise DomainError(NO_SUBJECT)

    def signatures(self, envelope: Envelope) -> tuple[list[Rule], list[SignedBy]]:
        """Return a rule for each set of keys, and the keys that signed."""
        if not self.keys:
            message = "an attestation proves nothing without a trusted key: give the folder of the trusted public keys"
            raise DomainError(f"trusted_keys is missing: {message}")
        rules, signers = [], []
        for trusted in self.keys:
            signed = envelope.signed(trusted)
            by = signed.by
            rules.append(
                Rule(
                    KEYS,
                    trusted.origin,
                    trusted.names,
                    None if by is None else by.name,
                    by is not None,
                    signed.why if by is None else None,
                )
            )
            signers += [] if by is None else [SignedBy(trusted.origin, by.name, by.key_id)]
        return rules, signers

    def subjects(self, attested: Sequence[Subject]) -> list[Rule]:
        """Return rules: whether the attestation is about the given files, and whether files are given if required."""
        names = _names(attested)
        rules = []
        if self.files:
            known = {one.sha256 for one in attested}
            wrong = [one for one in self.files if one.sha256 not in known]
            remark = "\n".join(
                f"{printable(one.name)} has the SHA-256 {one.sha256}, which the attestation is not about"
                for one in wrong
            )
            rules.append(Rule(SUBJECTS, self.origin, _names(self.files), names, not wrong, remark or None))
        for origin in self.required_by:
            given = bool(self.files)
            rules.append(Rule(SUBJECTS, origin, "required", names, given, None if given else "no file was given"))
        if not rules:
            rules.append(
                Rule(SUBJECTS, ALWAYS, None, names, True, "shown only: no file was given to compare with these")
            )
        return rules

    def unsigned(self) -> Iterator[Rule]:
        """Yield the rules that a certificate without an attestation fails."""
        remark = "a certificate without an attestation: nobody signed it, and it is about no file"
        for trusted in self.keys:
            yield Rule(KEYS, trusted.origin, trusted.names, None, False, remark)
        if self.files:
            yield Rule(SUBJECTS, self.origin, _names(self.files), None, False, remark)
        for origin in self.required_by:
            yield Rule(SUBJECTS, origin, "required", None, False, remark)


def required_signatures_of(
    policy: Policy | None, keys: str | os.PathLike[str] | None, files: Iterable[str | os.PathLike[str]], origin: str
) -> RequiredSignatures:
    """Return what a policy and a caller require; `origin` names the caller in verdicts. May raise `DomainError`."""
    if isinstance(files, str | os.PathLike):
        raise TypeError("subjects is a list of files, not one")
    asked = []
    if policy is not None and policy.trusted_keys is not None:
        asked.append(trusted_keys(policy.trusted_keys, policy.name))
    if keys is not None:
        asked.append(trusted_keys(keys, origin))
    required = (policy.name,) if policy is not None and policy.subjects_required else ()
    return RequiredSignatures(tuple(asked), origin, subjects_of(files), required)


def _names(subjects: Iterable[Subject]) -> tuple[str, ...]:
    return tuple(one.name or one.sha256[:16] for one in subjects)


_SYMBOLS = {"epsilon": "ε", "delta": "δ"}


def without_limit(asked: Iterable[Limits]) -> tuple[str, ...]:
    """Return which of `epsilon` and `delta` no set of limits restricts.

    If attacks are limited, the result is empty: an advantage of at most A is (0, A)-differential privacy, and a limit
    on the true-positive rate at a false-positive rate limits the trade-off curve, whatever ε and δ are.
    """
    sets = list(asked)
    if any(one.max_advantage is not None or one.max_true_positive_rate is not None for one in sets):
        return ()
    return tuple(name for name in _SYMBOLS if all(getattr(one, f"max_{name}") is None for one in sets))


def too_easy(unlimited: Iterable[str]) -> str:
    """Return the message for a gate that leaves ε, δ or both without a limit."""
    names = list(unlimited)
    symbols = " and ".join(_SYMBOLS[name] for name in names)
    missing = " and ".join(f"`max_{name}`" for name in names)
    stated = " and ".join(f"limits.max_{name}" for name in names)
    return (
        f"no limit on {symbols} is given, so a certificate would pass with any {symbols}: add {missing}, or a `policy` with "
        f"{stated}, or a limit on attacks such as `max_advantage`; `no_limits` passes any {symbols}"
    )


#: The message for an attestation if no file is given that it must be about.
NO_SUBJECT = (
    "no subject is given, so an attestation about any other file would pass: name the files that it must be about with "
    "`subjects`; `any_subject` passes an attestation whatever it is about"
)
