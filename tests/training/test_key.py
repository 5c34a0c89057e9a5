"""The secret key of a run: where it is stored, who may read it, and that nothing shows it."""

import hashlib
import os
import pickle
import stat
from pathlib import Path

import pytest
from snapshots import Snapshot

from pyaccount.errors import RunError
from pyaccount.training.key import RunKey

BITS = bytes(range(32))


def test_a_key_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.key"
    key = RunKey.create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert RunKey.read(path) == key
    assert RunKey.create(tmp_path / "another.key") != key


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.key"
    key = RunKey.create(path)
    with pytest.raises(FileExistsError):
        RunKey.create(path)
    assert RunKey.read(path) == key


@pytest.mark.skipif(os.name != "posix", reason="other systems keep permissions elsewhere")
@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604, 0o620])
def test_a_key_with_open_permissions_is_refused(tmp_path: Path, mode: int, snapshot: Snapshot) -> None:
    path = tmp_path / "run.key"
    RunKey.create(path)
    path.chmod(mode)
    snapshot.raised(RunKey.read, path)


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, "\u00e9" * 32, "00" * 32 + "\n\n" + "11" * 32])
def test_what_is_no_key_is_refused_and_not_repeated(tmp_path: Path, text: str, snapshot: Snapshot) -> None:
    path = tmp_path / "run.key"
    path.write_text(text)
    path.chmod(0o600)
    with snapshot.raises(RunError) as caught:
        RunKey.read(path)
    assert text[:8] not in str(caught.value) or not text
    snapshot.raised(lambda: RunKey(BITS[:31]))


def test_nothing_shows_a_key(snapshot: Snapshot) -> None:
    key = RunKey(BITS)
    for text in (repr(key), str(key), f"{key}", key.commitment):
        assert BITS.hex()[:16] not in text
    snapshot.raised(pickle.dumps, key)


def test_uses_are_told_apart() -> None:
    key = RunKey(BITS)
    uses = [("noise", 1), ("noise", 11), ("noise", "1"), ("noise", 1, 1), ("noise",), ("noise1",), ("batches", 1), ()]
    found = [key.derive(*use) for use in uses]
    assert len(set(found)) == len(uses)
    assert all(len(one.reveal()) == 32 for one in found)
    assert RunKey(bytes(32)).derive("noise", 1) != found[0]


def test_what_is_derived_is_pinned() -> None:
    # The message is "noise" and 1, each with its type and its length as eight little-endian bytes.
    message = b"t" + bytes([5, 0, 0, 0, 0, 0, 0, 0]) + b"noise" + b"n" + bytes([1, 0, 0, 0, 0, 0, 0, 0]) + b"1"
    expected = hashlib.blake2b(message, digest_size=32, key=BITS, person=b"pyaccount run v1").digest()
    assert RunKey(BITS).derive("noise", 1).reveal() == expected
