"""Arguments of the wrong kind: the message names the argument and what is allowed, whoever is called."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from gate_tools import RUNS
from places import EXAMPLES, ROOT
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.errors import DocumentError

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


# ---- Python takes a document of kind amplification wherever the command does, and says what does not


FILE = ROOT / "examples" / "one-draw.yaml"
SOURCES: dict[str, Callable[[], Any]] = {
    "path": lambda: FILE,
    "text": lambda: str(FILE),
    "mapping": lambda: yaml.safe_load(FILE.read_text(encoding="utf-8")),
    "document": lambda: pyaccount.load(FILE),
}


def content(certificate: Any) -> dict[str, Any]:
    return {key: value for key, value in certificate.model_dump().items() if key not in ("created", "content_sha256")}


@pytest.mark.parametrize("source", SOURCES)
def test_every_call_gives_the_certificate_of_amplify(source: str) -> None:
    handed = SOURCES[source]()
    expected = content(pyaccount.amplify(FILE))
    certificates = [
        pyaccount.certify(handed),
        pyaccount.compile(handed).run(),
        asyncio.run(pyaccount.certify_async(handed)),
    ]
    for certificate in certificates:
        assert isinstance(certificate, pyaccount.AmplificationCertificate)
        assert content(certificate) == expected


def test_the_command_gives_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["certify", str(FILE), "-o", str(tmp_path / "one.json"), "--quiet"]) == 0
    capsys.readouterr()
    written = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    made = json.loads(pyaccount.certify(FILE).to_json())
    for varies in ("created", "content_sha256"):
        assert written.pop(varies)
        assert made.pop(varies)
    assert written == made


def test_a_plan_of_one_draw_is_a_page() -> None:
    plan = pyaccount.compile(FILE)
    assert plan.reduction.subject in plan.to_markdown()
    assert "nothing is computed yet" in repr(plan)


def test_overrides_and_documents_that_were_read() -> None:
    document = pyaccount.load(FILE)
    assert pyaccount.load(document) is document
    assert pyaccount.certify(document, overrides={"name": "another"}).name == "another"


def test_what_takes_no_document_of_this_kind(snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.certify(FILE, executor=ThreadPoolExecutor(1)))
    snapshot.raised(pyaccount.matrix, FILE)
    snapshot.raised(lambda: pyaccount.certify(ROOT / "examples" / "policy.yaml"))
    with snapshot.raises(DocumentError):
        pyaccount.compile(
            {**SOURCES["mapping"](), "sampler": {"kind": "must-wo", "subset_size": 500, "rounds_per_subset": 2}}
        )
