"""Certificates whose guarantee rests on samples: their record, and a fresh test."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from .process import Process
from .reading import process
from .recorded import RecordFindings, claim_of, judge
from .samples import ClaimUnderTest, Tables, fresh, tables_of
from .shapes import NotCheckableError

#: Tables for the record alone are built if they have at most this many numbers for each second that there is.
_NUMBERS_PER_SECOND = 100_000


class Findings(NamedTuple):
    """What was found out: a verdict and its reason, what was checked and what was not, and the failure probability."""

    verdict: str
    reason: str | None
    checked: list[str]
    not_checked: list[str]
    failure_probability: float | None


def rests_on_samples(certificate: Mapping[str, Any]) -> bool:
    """Return whether a certificate says that its guarantee was tested by samples of its own."""
    guarantee, evidence = certificate.get("guarantee"), certificate.get("evidence")
    tested = isinstance(guarantee, Mapping) and guarantee.get("kind") in ("verified", "confidence")
    return tested and isinstance(evidence, Mapping) and isinstance(evidence.get("sampling"), Mapping)


def recorded(certificate: Mapping[str, Any], question: ClaimUnderTest, tables: Tables) -> RecordFindings:
    """Return what the arithmetic of the record shows."""

    def moment(here: Process, order: int) -> Fraction | None:
        small = here.size(order) <= _NUMBERS_PER_SECOND * question.seconds
        tuples = tables_of(here, order, tables) if small else None
        return None if tuples is None else tuples.log_moment()

    claim = claim_of(certificate, question.epsilon, question.delta)
    try:
        known: Process | None = process(certificate)
    except NotCheckableError:
        known = None
    return judge(certificate, claim, known, moment)


def check_sampled(certificate: Mapping[str, Any], question: ClaimUnderTest) -> Findings:
    """Return the findings on a certificate that rests on samples.

    A record that contradicts itself, or its claim, refutes the certificate. If it does not, only a fresh test proves anything.
    """
    tables: Tables = {}
    began = time.process_time()
    record = recorded(certificate, question, tables)
    checked, open_ = list(record.checked), list(record.not_checked)
    open_.append(
        "the sums that the certificate records of its own samples (pyaccount verify draws these samples again)"
    )
    if record.contradiction is not None:
        return Findings(
            "refuted", f"the record of the tests contradicts the claim: {record.contradiction}", checked, open_, None
        )
    try:
        left = question._replace(seconds=question.seconds - (time.process_time() - began))
        tests = fresh(process(certificate), left, tables)
    except NotCheckableError as error:
        return Findings("consistent", f"{error}; the record of the tests agrees with the claim", checked, open_, None)
    for each in tests:
        text = f"{each.direction}, by this checker: {each.words}" + (
            f", {each.samples} samples" if each.samples else ""
        )
        (checked if each.proven else open_).append(text)
    if len(tests) == 2 and all(each.proven for each in tests):
        sampled = any(each.samples for each in tests)
        return Findings("proven", None, checked, open_, float(question.failure) if sampled else 0.0)
    last = tests[-1]
    return Findings("consistent", f"the direction {last.direction} is not proven: {last.words}", checked, open_, None)
