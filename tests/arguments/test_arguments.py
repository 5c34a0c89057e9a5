"""Arguments of the wrong kind: the message names the argument and what is allowed, whoever is called."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from gate_tools import RUNS
from places import EXAMPLES

import pyaccount

EXAMPLE = EXAMPLES / "check-a-claim.yaml"
CERTIFICATE = RUNS["deterministic"]


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return pyaccount.Certificate.load(CERTIFICATE)


@pytest.mark.parametrize("source", [None, 3, {}, [CERTIFICATE], (CERTIFICATE,), b"x.json"])
def test_what_can_be_no_certificate(source: Any) -> None:
    kind = type(source).__name__
    with pytest.raises(TypeError, match=f"a certificate is the path of a JSON file or a Certificate, not {kind}"):
        pyaccount.check(source, max_epsilon=8, no_limits=True)
    with pytest.raises(TypeError, match=f"certificate is the path of a JSON file or a Certificate, not {kind}"):
        pyaccount.verify(source)
    with pytest.raises(TypeError, match=rf"certificate is a Certificate, not {kind}; pyaccount\.Certificate\.load"):
        pyaccount.Accountant.from_certificate(source)


def test_a_list_of_certificates_is_not_one() -> None:
    with pytest.raises(TypeError, match=r"give each as an argument, as in check\(\*paths\)"):
        pyaccount.check([CERTIFICATE], max_epsilon=8, no_limits=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not str"):
        pyaccount.Accountant.from_certificate(str(CERTIFICATE))  # type: ignore[arg-type]


@pytest.mark.parametrize("sources", [str(EXAMPLE), EXAMPLE, {"pyaccount": 1}, None, pyaccount.load(EXAMPLE)])
def test_one_document_is_no_list_of_them(sources: Any) -> None:
    with pytest.raises(TypeError, match="sources is a list of documents, not one"):
        pyaccount.compare(sources)


def test_nothing_is_not_compared() -> None:
    with pytest.raises(pyaccount.DomainError, match="sources is a list of documents, of at least one"):
        pyaccount.compare([])


@pytest.mark.parametrize("threads", [-1, 1025, "2", 1.0, None, True])
def test_threads(threads: Any, certificate: pyaccount.Certificate) -> None:
    words = r"^threads = .* is outside its domain: a whole number from 0, which is one for each core, to 1024$"
    for call in (
        lambda: pyaccount.certify(EXAMPLE, threads=threads),
        lambda: pyaccount.compile(EXAMPLE).run(threads=threads),
        lambda: pyaccount.compare([EXAMPLE], threads=threads),
        lambda: pyaccount.verify(certificate, threads=threads),
        lambda: pyaccount.Accountant(EXAMPLE, threads=threads),
    ):
        with pytest.raises(pyaccount.DomainError, match=words):
            call()
    assert pyaccount.certify(EXAMPLE, threads=np.int64(1)).holds  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["soon", "", "-3", 0, -1.0, float("nan"), float("inf"), "1 w", True, [3]])
def test_time_limits(limit: Any, certificate: pyaccount.Certificate) -> None:
    for call in (
        lambda: pyaccount.certify(EXAMPLE, time_limit=limit),
        lambda: pyaccount.verify(certificate, time_limit=limit),
    ):
        with pytest.raises(
            pyaccount.DomainError, match=r"^time_limit = .* seconds, or a time such as 30 s, 10 min or 2 h"
        ):
            call()


@pytest.mark.parametrize("limit", ["10 min", "600", "1 h 30 min", 600, np.float64(600.0)])
def test_time_limits_are_spelled_as_in_documents(limit: Any, certificate: pyaccount.Certificate) -> None:
    assert pyaccount.certify(EXAMPLE, time_limit=limit).holds
    assert pyaccount.verify(certificate, time_limit=limit)


@pytest.mark.parametrize("value", [None, "4", "0.5", True, [0.5], 1j, -0.5, float("nan"), 10**400])
def test_numbers(value: Any, certificate: pyaccount.Certificate) -> None:
    profile, trade_off = certificate.profile, certificate.trade_off
    for name, call in (
        ("epsilon", lambda: profile.delta(value)),
        ("delta", lambda: profile.epsilon(value)),
        ("alpha", lambda: trade_off.true_positive_rate(value)),
        ("alpha", lambda: trade_off.false_negative_rate(value)),
        ("tolerance", lambda: profile.delta(1.0, tolerance=value)),
    ):
        with pytest.raises(pyaccount.DomainError, match=f"^{name} = .* is outside its domain: "):
            call()


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), Decimal("0.5"), 0.5])
def test_whatever_is_a_number_does(value: Any, certificate: pyaccount.Certificate) -> None:
    assert certificate.profile.delta(value) == certificate.profile.delta(0.5)
    assert certificate.trade_off.true_positive_rate(value) == certificate.trade_off.true_positive_rate(0.5)


def test_an_amplification_in_memory_is_verified() -> None:
    found = pyaccount.amplify(EXAMPLES / "one-draw.yaml")
    assert pyaccount.verify(found)
