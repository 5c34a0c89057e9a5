"""Arguments of the wrong kind: the message names the argument and what is allowed, whoever is called."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from gate_tools import RUNS
from places import EXAMPLES
from snapshots import Snapshot

import pyaccount

EXAMPLE = EXAMPLES / "check-a-claim.yaml"
CERTIFICATE = RUNS["deterministic"]


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return pyaccount.Certificate.load(CERTIFICATE)


@pytest.mark.parametrize("source", [None, 3, {}, [CERTIFICATE], (CERTIFICATE,), b"x.json"])
def test_what_can_be_no_certificate(source: Any, snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.check, source, max_epsilon=8, no_limits=True)
    snapshot.raised(pyaccount.verify, source)
    snapshot.raised(pyaccount.Accountant.from_certificate, source)


def test_a_list_of_certificates_is_not_one(snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.check, [CERTIFICATE], max_epsilon=8, no_limits=True)  # type: ignore[arg-type]
    snapshot.raised(lambda: pyaccount.Accountant.from_certificate(str(CERTIFICATE)))  # type: ignore[arg-type]


@pytest.mark.parametrize("sources", [str(EXAMPLE), EXAMPLE, {"pyaccount": 1}, None, pyaccount.load(EXAMPLE)])
def test_one_document_is_no_list_of_them(sources: Any, snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.compare, sources)


def test_nothing_is_not_compared(snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.compare, [])


@pytest.mark.parametrize("threads", [-1, 1025, "2", 1.0, None, True])
def test_threads(threads: Any, certificate: pyaccount.Certificate, snapshot: Snapshot) -> None:
    for call in (
        lambda: pyaccount.certify(EXAMPLE, threads=threads),
        lambda: pyaccount.compile(EXAMPLE).run(threads=threads),
        lambda: pyaccount.compare([EXAMPLE], threads=threads),
        lambda: pyaccount.verify(certificate, threads=threads),
        lambda: pyaccount.Accountant(EXAMPLE, threads=threads),
    ):
        snapshot.raised(call)
    assert pyaccount.certify(EXAMPLE, threads=np.int64(1)).holds  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["soon", "", "-3", 0, -1.0, float("nan"), float("inf"), "1 w", True, [3]])
def test_time_limits(limit: Any, certificate: pyaccount.Certificate, snapshot: Snapshot) -> None:
    for call in (
        lambda: pyaccount.certify(EXAMPLE, time_limit=limit),
        lambda: pyaccount.verify(certificate, time_limit=limit),
    ):
        snapshot.raised(call)


@pytest.mark.parametrize("limit", ["10 min", "600", "1 h 30 min", 600, np.float64(600.0)])
def test_time_limits_are_spelled_as_in_documents(limit: Any, certificate: pyaccount.Certificate) -> None:
    assert pyaccount.certify(EXAMPLE, time_limit=limit).holds
    assert pyaccount.verify(certificate, time_limit=limit)


@pytest.mark.parametrize("value", [None, "4", "0.5", True, [0.5], 1j, -0.5, float("nan"), 10**400])
def test_numbers(value: Any, certificate: pyaccount.Certificate, snapshot: Snapshot) -> None:
    profile, trade_off = certificate.profile, certificate.trade_off
    for call in (
        lambda: profile.delta(value),
        lambda: profile.epsilon(value),
        lambda: trade_off.true_positive_rate(value),
        lambda: trade_off.false_negative_rate(value),
        lambda: profile.delta(1.0, tolerance=value),
    ):
        snapshot.raised(call)


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), Decimal("0.5"), 0.5])
def test_whatever_is_a_number_does(value: Any, certificate: pyaccount.Certificate) -> None:
    assert certificate.profile.delta(value) == certificate.profile.delta(0.5)
    assert certificate.trade_off.true_positive_rate(value) == certificate.trade_off.true_positive_rate(0.5)


def test_an_amplification_in_memory_is_verified() -> None:
    found = pyaccount.amplify(EXAMPLES / "one-draw.yaml")
    assert pyaccount.verify(found)
