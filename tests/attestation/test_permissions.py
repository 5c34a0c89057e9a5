"""Keys that others may use, folders that others may fill, and files with several keys: none is signed with or trusted."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from attestation_tools import Signing, private_file, public_pem, signing
from securesystemslib.signer import CryptoSigner
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import files
from pyaccount.attestation import keys
from pyaccount.training import key as run_keys
from pyaccount.training.key import RunKey

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX says who may read a file")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Signing]:
    made = signing(tmp_path / "project")
    yield made
    made.trusted.chmod(0o700)


def signed(project: Signing, key: Path | str, **options: object) -> pyaccount.Attestation:
    return pyaccount.attest(project.folder / "training.cert.json", [project.model], key, **options)  # type: ignore[arg-type]


def passes(project: Signing) -> bool:
    return bool(project.verdict(project.envelope))


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o640, 0o620, 0o602, 0o660, 0o666, 0o601, 0o777])
def test_a_key_that_others_may_use_signs_nothing(mode: int, project: Signing, snapshot: Snapshot) -> None:
    """The rule of ssh: its own file, and no permission for the group or for others."""
    key = project.folder / "signing.pem"
    for private in (0o600, 0o400, 0o700):
        key.chmod(private)
        assert signed(project, key)
    key.chmod(mode)
    for spelled, options in ((str(key), {}), (f"file2:{key}", {"public_key": project.trusted / "release.pem"})):
        snapshot.raised(signed, project, spelled, **options)


def test_the_prefix_of_the_library_is_followed(
    project: Signing, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setenv("CRYPTO_SIGNER_PATH_PREFIX", str(project.folder))
    public = project.trusted / "release.pem"
    assert signed(project, "file2:signing.pem", public_key=public)
    (project.folder / "signing.pem").chmod(0o644)
    snapshot.raised(signed, project, "file2:signing.pem", public_key=public)


def test_a_key_of_another_owner_may_be_read_by_the_group_alone(
    project: Signing, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """As where a secret is mounted for a group: its owner is not the process."""
    key = project.folder / "signing.pem"
    monkeypatch.setattr(os, "geteuid", lambda: key.stat().st_uid + 1)
    key.chmod(0o640)
    assert signed(project, key)
    key.chmod(0o644)
    snapshot.raised(signed, project, key)


def test_what_is_no_key_is_told_as_such(project: Signing, snapshot: Snapshot) -> None:
    other = project.folder / "notes.txt"
    other.write_text("no key", encoding="utf-8")
    other.chmod(0o644)
    snapshot.raised(signed, project, other)


def test_the_command_names_the_key(project: Signing, run: Run, snapshot: Snapshot) -> None:
    key, target = project.folder / "signing.pem", project.folder / "made.json"
    key.chmod(0o644)
    arguments = [str(project.folder / "training.cert.json"), "--subject", str(project.model), "--key", str(key)]
    snapshot(run("attest", *arguments, "-o", target))
    assert not target.exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_everybody_may_fill_trusts_nobody(mode: int, project: Signing, snapshot: Snapshot) -> None:
    assert passes(project)
    project.trusted.chmod(mode)
    snapshot.raised(passes, project)
    project.trusted.chmod(0o775)
    assert passes(project)


def test_a_key_that_everybody_may_replace_is_not_trusted(project: Signing, snapshot: Snapshot) -> None:
    for mode, fine in ((0o666, False), (0o602, False), (0o664, True), (0o444, True)):
        (project.trusted / "release.pem").chmod(mode)
        if fine:
            assert passes(project)
        else:
            snapshot.raised(passes, project)


def test_the_folder_of_a_policy_is_looked_at_too(project: Signing, snapshot: Snapshot) -> None:
    policy = project.folder / "policy.yaml"
    limits = "limits: {max_epsilon: 8, max_delta: 1e-5}\n"
    policy.write_text(f"pyaccount: 1\nkind: policy\nname: p\n{limits}trusted_keys: trusted\n", encoding="utf-8")
    project.trusted.chmod(0o777)
    snapshot.raised(pyaccount.check, attestation=project.attestation, policy=policy, subjects=[project.model])


def test_two_keys_in_one_file_are_refused(project: Signing, snapshot: Snapshot) -> None:
    """Only the first would be read: whoever added the second would think it is trusted, or signs."""
    other = CryptoSigner.generate_ed25519()
    trusted = project.trusted / "release.pem"
    trusted.write_bytes(public_pem(project.signer) + public_pem(other))
    snapshot.raised(passes, project)
    trusted.write_bytes(b"# the key of the release\n" + public_pem(project.signer))
    assert passes(project)
    for pems, fine in (((project.signer,), True), ((project.signer, other), False)):
        text = "".join(public_pem(one).decode() for one in pems)
        public = project.signer.public_key
        key = {"keyid": public.keyid, "keytype": public.keytype, "scheme": public.scheme, "keyval": {"public": text}}
        trusted.unlink(missing_ok=True)
        (project.trusted / "release.json").write_text(json.dumps(key), encoding="utf-8")
        if fine:
            # securesystemslib reads an Ed25519 key in hexadecimal; what is looked at here is that PEM is counted.
            continue
        snapshot.raised(passes, project)
    key_file = private_file(project.folder / "both.pem", project.signer.private_bytes + other.private_bytes)
    snapshot.raised(signed, project, key_file)


def test_parameters_before_a_key_are_no_second_key(project: Signing) -> None:
    """`openssl ecparam -genkey` writes the curve before the key."""
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    signer = CryptoSigner.generate_ecdsa()
    key = private_file(project.folder / "ec.pem", parameters + signer.private_bytes)
    assert signed(project, key).key_id == signer.public_key.keyid


def test_a_system_without_modes_is_said_to_check_nothing_once(
    project: Signing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    RunKey.create(tmp_path / "run.key")
    (tmp_path / "run.key").chmod(0o644)
    monkeypatch.setattr(keys, "HAS_MODES", False)
    monkeypatch.setattr(run_keys, "HAS_MODES", False)
    files.warn_without_modes.cache_clear()
    (project.folder / "signing.pem").chmod(0o644)
    with pytest.warns(RuntimeWarning, match="who else may read or write the files of keys is not checked"):
        assert signed(project, project.folder / "signing.pem")
    # Warnings are errors in these tests.
    assert passes(project)
    RunKey.read(tmp_path / "run.key")
