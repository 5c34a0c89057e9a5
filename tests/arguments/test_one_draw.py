"""Python takes a document of kind amplification wherever the command does, and says what does not."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import ROOT
from snapshots import Snapshot

import pyaccount
from pyaccount import cli
from pyaccount.errors import DocumentError

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
