"""Certificates that the independent checker proved although they are false, or no document: each is refused, with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import GOLDEN
from snapshots import Snapshot

import pyaccount
from pyaccount.gate import independent

FORGED = sorted((GOLDEN / "forged").glob("*.json"))
POLICY = {
    "pyaccount": 1,
    "kind": "policy",
    "name": "release",
    "limits": {"max_epsilon": 50, "max_delta": 1e-5},
    "independent": "required",
}
#: The core reads the documents of these, and refutes what they claim.
READ = ("a-shape-that-cancels", "a-tiny-sample", "fixed-size", "rho-beside-delta", "two-stages", "with-replacement")


@pytest.mark.parametrize("path", FORGED, ids=lambda path: path.stem)
def test_a_forged_certificate_passes_no_gate(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes of all of them are right, so that nothing but the proof is in the way."""
    monkeypatch.setattr(independent, "SECONDS", 3.0)
    (judged,) = pyaccount.check(str(path), policy=POLICY).certificates
    rules = {rule.rule: rule for rule in judged.rules}
    assert rules["intact"].passes or path.stem == "no-name"
    assert (rules["independent"].passes, judged.passes) == (False, False)
    assert rules["independent"].value in ("not checkable", "consistent", "refuted")
    assert rules["independent"].remark


@pytest.mark.parametrize("path", FORGED, ids=lambda path: path.stem)
def test_a_forged_certificate_does_not_verify(path: Path, snapshot: Snapshot) -> None:
    if path.stem.startswith(READ):
        verification = pyaccount.verify(str(path))
        assert not verification.agrees
        return
    snapshot.raised(lambda: pyaccount.verify(str(path)))
