"""Attestations: what is signed is what the specifications say, and what a trusted key signed passes the gate."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from attestation_tools import (
    PAYLOAD_TYPE,
    PREDICATE,
    STATEMENT,
    Signing,
    envelope,
    pae,
    private_file,
    public_pem,
    signing,
)
from cryptography.hazmat.primitives import serialization
from gate_tools import changed, golden, save
from jsonschema import Draft202012Validator
from places import EXAMPLES, ROOT
from securesystemslib.signer import SIGNER_FOR_URI_SCHEME, CryptoSigner
from snapshots import Run, Snapshot

import pyaccount
from pyaccount import cli, schemas

SIGNERS = {
    "ed25519": CryptoSigner.generate_ed25519,
    "ecdsa": CryptoSigner.generate_ecdsa,
    "rsa": lambda: CryptoSigner.generate_rsa(size=2048),
    "ml-dsa": CryptoSigner.generate_mldsa,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Signing:
    return signing(tmp_path_factory.mktemp("attestation"))


def rules(judged: Any) -> dict[str, bool]:
    return {rule.rule: rule.passes for rule in judged.rules}


@pytest.mark.parametrize("kind", SIGNERS)
def test_what_a_trusted_key_signed_passes(kind: str, tmp_path: Path) -> None:
    project = signing(tmp_path, SIGNERS[kind]())
    verdict = pyaccount.check(
        attestation=project.attestation,
        trusted_keys=project.trusted,
        subjects=[project.model],
        max_epsilon=8,
        max_delta=1e-5,
    )
    assert verdict
    (judged,) = verdict.certificates
    assert rules(judged) == dict.fromkeys(
        ("trusted_keys", "subjects", "intact", "holds", "max_epsilon", "max_delta"), True
    )
    assert judged.sha256 == hashlib.sha256(project.attestation.read_bytes()).hexdigest()
    ((signed,), subjects) = judged.attestation.signed_by, judged.attestation.subjects
    assert (signed.key, signed.key_id) == ("release.pem", project.signer.public_key.keyid)
    assert [one.name for one in subjects] == ["model.safetensors"]
    found = json.loads(verdict.to_json())
    assert list(Draft202012Validator(schemas.schema("verdict")).iter_errors(found)) == []


def test_it_is_the_statement_and_the_signature_of_the_specifications(project: Signing) -> None:
    """in-toto Statement v1 and DSSE v1, written down from their texts; the signature by `cryptography` itself."""
    assert list(project.envelope) == ["payload", "payloadType", "signatures"]
    assert project.envelope["payloadType"] == PAYLOAD_TYPE
    digest = hashlib.sha256(project.model.read_bytes()).hexdigest()
    assert project.statement == {
        "_type": STATEMENT,
        "subject": [{"name": "model.safetensors", "digest": {"sha256": digest}}],
        "predicateType": PREDICATE,
        "predicate": golden("deterministic"),
    }
    key: Any = serialization.load_pem_public_key((project.trusted / "release.pem").read_bytes())
    (signature,) = project.envelope["signatures"]
    payload = base64.b64decode(project.envelope["payload"])
    key.verify(base64.b64decode(signature["sig"]), pae(PAYLOAD_TYPE, payload))


def test_the_certificate_comes_out_as_it_went_in(project: Signing, tmp_path: Path) -> None:
    """Every digit: what is signed is what was certified."""
    restored = save(tmp_path, project.statement["predicate"])
    certificates = [pyaccount.Certificate.load(path) for path in (restored, project.folder / "training.cert.json")]
    assert certificates[0].to_json() == certificates[1].to_json()


def test_an_attestation_in_memory(project: Signing) -> None:
    certificate = pyaccount.Certificate.load(project.folder / "training.cert.json")
    made = pyaccount.attest(certificate, [project.model], project.folder / "signing.pem")
    assert made.key_id == project.signer.public_key.keyid
    assert pyaccount.check(attestation=made, trusted_keys=project.trusted, subjects=[project.model], no_limits=True)
    assert pyaccount.verify(attestation=made, trusted_keys=project.trusted, subjects=[project.model])


def test_several_files_and_those_of_one_name(project: Signing, tmp_path: Path) -> None:
    files = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        files.append(tmp_path / str(number) / "weights.bin")
        files[-1].write_bytes(bytes([number]))
    made = pyaccount.attest(
        project.folder / "training.cert.json", [project.model, *files], project.folder / "signing.pem"
    )
    assert [one.name for one in made.subjects] == ["model.safetensors", *map(str, files)]
    assert len({one.sha256 for one in made.subjects}) == 4
    # Who deploys some of the files holds only these.
    for held in (files, files[1:2], [project.model, files[2]]):
        assert pyaccount.check(attestation=made, trusted_keys=project.trusted, subjects=held, no_limits=True)
    (tmp_path / "other").write_bytes(b"another")
    assert not pyaccount.check(
        attestation=made, trusted_keys=project.trusted, subjects=[*files, tmp_path / "other"], no_limits=True
    )


def test_the_policy_asks_for_keys_and_files(project: Signing) -> None:
    policy = project.folder / "policy.yaml"
    head = "pyaccount: 1\nkind: policy\nname: deploy\nlimits: {max_epsilon: 8, max_delta: 1e-5}\n"
    text = f"{head}trusted_keys: trusted\nsubjects: required\n"
    policy.write_text(text, encoding="utf-8")
    check: Any = lambda **more: pyaccount.check(attestation=project.attestation, policy=policy, **more)  # noqa: E731
    assert check(subjects=[project.model])
    (judged,) = check().certificates
    assert rules(judged)["subjects"] is False
    assert "no file was given" in judged.rules[1].remark
    # A certificate by itself keeps neither, whoever wrote it.
    (judged,) = pyaccount.check(
        project.folder / "training.cert.json", policy=policy, subjects=[project.model]
    ).certificates
    assert not judged.passes
    assert [(rule.rule, rule.passes) for rule in judged.rules[:3]] == [
        ("trusted_keys", False),
        ("subjects", False),
        ("subjects", False),
    ]
    # Both the caller's keys and the policy's must have signed.
    mine = project.folder / "mine"
    mine.mkdir(exist_ok=True)
    (mine / "other.pem").write_bytes(public_pem(CryptoSigner.generate_ed25519()))
    (judged,) = check(subjects=[project.model], trusted_keys=mine).certificates
    assert [(rule.origin, rule.passes) for rule in judged.rules] == [("deploy", True), ("caller", False)]


@pytest.mark.parametrize("named", ["../trusted", "/etc", "trusted/../../x", "link"])
def test_a_policy_names_keys_below_its_own_folder(
    named: str, project: Signing, tmp_path: Path, snapshot: Snapshot
) -> None:
    (tmp_path / "link").symlink_to(project.trusted)
    policy = tmp_path / "policy.yaml"
    head = "pyaccount: 1\nkind: policy\nname: deploy\nlimits: {max_epsilon: 8, max_delta: 1e-5}\n"
    policy.write_text(f"{head}trusted_keys: {named}\n", encoding="utf-8")
    snapshot.raised(pyaccount.check, attestation=project.attestation, policy=policy)


def test_limits_hold_against_what_was_signed(project: Signing) -> None:
    for epsilon, passes in ((2, True), (1.5, False)):
        verdict = pyaccount.check(
            attestation=project.attestation,
            trusted_keys=project.trusted,
            max_epsilon=epsilon,
            max_delta=1e-5,
            any_subject=True,
        )
        assert verdict.passes == passes
    shown = verdict.certificates[0].rules[1]
    assert (shown.rule, shown.limit, shown.passes) == ("subjects", None, True)
    assert "no file was given" in shown.remark
    # About another document than the one asked for.
    verdict = pyaccount.check(
        attestation=project.attestation,
        trusted_keys=project.trusted,
        document=EXAMPLES / "cifar10-dp-sgd.yaml",
        no_limits=True,
        any_subject=True,
    )
    assert not verdict


def test_a_key_is_trusted_until_it_expires(project: Signing, tmp_path: Path) -> None:
    key = {"keyid": project.signer.public_key.keyid, **project.signer.public_key.to_dict()}
    now = datetime.now(UTC)
    for until, passes in ((now + timedelta(days=1), True), (now - timedelta(seconds=1), False)):
        (tmp_path / "release.json").write_text(json.dumps({**key, "expires": until.isoformat()}), encoding="utf-8")
        (judged,) = pyaccount.check(
            attestation=project.attestation, trusted_keys=tmp_path, no_limits=True, any_subject=True
        ).certificates
        assert judged.passes == passes
        assert judged.rules[0].passes == passes
    assert judged.rules[0].remark == f"signed by release.json, which was trusted only until {until.isoformat()}"
    assert judged.attestation is None


def test_old_certificates_are_old_whoever_signed_them(project: Signing, tmp_path: Path) -> None:
    found = project.verdict(project.envelope, max_age="1 s")
    assert rules(found.certificates[0])["max_age"] is False


def test_a_certificate_that_fails_is_not_attested(project: Signing, tmp_path: Path, snapshot: Snapshot) -> None:
    key = project.folder / "signing.pem"
    for certificate in (golden("claim-fails"), changed(golden("deterministic"), guarantee__epsilon=0.1)):
        snapshot.raised(pyaccount.attest, save(tmp_path, certificate), [project.model], key)
    snapshot.raised(pyaccount.attest, ROOT / "tests/golden/certificates/v1/amplification.json", [project.model], key)


@pytest.mark.parametrize(
    "change",
    [
        {"subjects": []},
        {"subjects": ["missing.bin"]},
        {"subjects": [str(EXAMPLES)]},
        {"subjects": ["/dev/zero"]},
        {"subjects": "model.bin"},
        {"certificate": {}},
        {"key": "missing.pem"},
        {"key": str(EXAMPLES / "policy.yaml")},
        {"key": "awskms:abc"},
        {"public_key": "x.pem"},
    ],
)
def test_what_cannot_be_signed(change: dict[str, Any], project: Signing, snapshot: Snapshot) -> None:
    given: dict[str, Any] = {
        "certificate": project.folder / "training.cert.json",
        "subjects": [project.model],
        "key": project.folder / "signing.pem",
        **change,
    }
    snapshot.raised(pyaccount.attest, **given)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"README": b"none"},
        {"a.pem": b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"},
        {"a.pem": b""},
        {"a.pem": b"x" * 70_000},
        {"a.json": b"[]"},
        {"a.json": b'{"keytype": "ed25519"}'},
        {"a.json": b'{"keyid": "a", "keytype": ["x"], "scheme": "ed25519", "keyval": {}}'},
        {"a.json": b'{"keyid": "a", "keytype": "ed25519", "scheme": "ed25519"}'},
        {"a.json": b'{"keyid": "a", "keyid": "b"}'},
        {"a.json": b'{"keyid": "a", "expires": "soon"}'},
        {"a.json": b'{"keyid": "a", "expires": 7}'},
    ],
)
def test_keys_that_cannot_be_trusted(
    files: dict[str, bytes], project: Signing, tmp_path: Path, snapshot: Snapshot
) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    options = {"trusted_keys": tmp_path, "no_limits": True, "any_subject": True}
    snapshot.raised(pyaccount.check, attestation=project.attestation, **options)


def test_folders_that_cannot_be_trusted(project: Signing, tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "signing.pem").write_bytes(project.signer.private_bytes)
    for folder in (tmp_path / "missing", tmp_path / "file", "", tmp_path / "private"):
        snapshot.raised(
            pyaccount.check, attestation=project.attestation, trusted_keys=folder, no_limits=True, any_subject=True
        )
    snapshot.raised(pyaccount.check, attestation=project.attestation, no_limits=True, any_subject=True)


def test_a_key_of_a_service_is_used_through_the_library(project: Signing, tmp_path: Path, snapshot: Snapshot) -> None:
    """Any URI that securesystemslib knows: here the one of files, which no network needs."""
    made = pyaccount.attest(
        project.folder / "training.cert.json",
        [project.model],
        f"file2:{project.folder / 'signing.pem'}",
        public_key=project.trusted / "release.pem",
    )
    assert pyaccount.check(attestation=made, trusted_keys=project.trusted, no_limits=True, any_subject=True)
    assert {"awskms", "gcpkms", "azurekms", "hsm"} <= set(SIGNER_FOR_URI_SCHEME)
    other = tmp_path / "other.pem"
    other.write_bytes(public_pem(CryptoSigner.generate_ed25519()))
    with snapshot.raises(pyaccount.AttestationError):
        pyaccount.attest(
            project.folder / "training.cert.json",
            [project.model],
            f"file2:{project.folder / 'signing.pem'}",
            public_key=other,
        )


def test_encrypted_keys(project: Signing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    private: Any = serialization.load_pem_private_key(project.signer.private_bytes, None)
    path = private_file(
        tmp_path / "encrypted.pem",
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"an apple"),
        ),
    )
    certificate = project.folder / "training.cert.json"
    snapshot.raised(pyaccount.attest, certificate, [project.model], path)
    # Every few hundredth wrong passphrase leads to another message of the library: what it deciphers looks like a key.
    with pytest.raises(pyaccount.errors.DomainError, match="not a private key in PEM"):
        pyaccount.attest(certificate, [project.model], path, secret=lambda name: "a pear")
    made = pyaccount.attest(certificate, [project.model], path, secret=lambda name: "an apple")
    assert pyaccount.check(attestation=made, trusted_keys=project.trusted, no_limits=True, any_subject=True)
    arguments = ["attest", str(certificate), "--subject", str(project.model), "--key", str(path), "-o"]
    monkeypatch.setenv("PYACCOUNT_KEY_PASSPHRASE", "an apple")
    assert cli.run([*arguments, str(tmp_path / "a.json")]) == 0
    monkeypatch.delenv("PYACCOUNT_KEY_PASSPHRASE")
    assert cli.run([*arguments, str(tmp_path / "b.json")]) == 2
    assert not (tmp_path / "b.json").exists()


def test_the_commands(project: Signing, tmp_path: Path, run: Run) -> None:
    certificate, made = project.folder / "training.cert.json", tmp_path / "made.json"
    signed = ("--subject", project.model, "--key", project.folder / "signing.pem")
    code, out, err = run("attest", certificate, *signed, "-o", made)
    assert (code, out) == (0, "")
    assert project.signer.public_key.keyid in err
    code, out, err = run("attest", certificate, *signed)
    assert (code, err, out) == (0, "", made.read_text(encoding="utf-8"))
    held = ("--attestation", made, "--trusted-keys", project.trusted, "--subject", project.model)
    assert run("check", *held, "--max-epsilon", 8, "--max-delta", 1e-5)[0] == 0
    assert run("check", *held, "--max-epsilon", 1, "--max-delta", 1e-5)[0] == 1
    assert run("verify", *held, "--quiet")[:2] == (0, "")
    code, out, _ = run("verify", *held)
    assert code == 0
    assert re.search(r"signed by +'release.pem' +about 'model.safetensors'", out)
    # An output that is an input would be lost.
    for other in (certificate, project.model, project.folder / "signing.pem"):
        code, _, err = run("attest", certificate, *signed, "-o", other)
        assert (code, "is the input" in err) == (2, True)


#: A gate that is open on purpose, where limits and subjects are not what is tested.
OPENED = ("--no-limits", "--any-subject")


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "--attestation", "ATT", *OPENED],
        ["check", "--attestation", "ATT", "--trusted-keys", "", *OPENED],
        ["check", "--attestation", "ATT", "--trusted-keys", "KEYS", "--subject", "", "--no-limits"],
        ["check", "--attestation", "ATT", "--trusted-keys", "KEYS", "--any-subject"],
        ["check", "--attestation", "ATT", "--trusted-keys", "KEYS", "--no-limits"],
        ["check", "--attestation", "ATT", "--trusted-keys", "KEYS", "--subject", "ATT", *OPENED],
        ["check", "CERT", *OPENED],
        ["check", "ATT", "--no-limits"],
        ["check", "--attestation", "CERT", "--trusted-keys", "KEYS", *OPENED],
        ["verify"],
        ["verify", "CERT", "--attestation", "ATT"],
        ["verify", "CERT", "--trusted-keys", "KEYS"],
        ["verify", "--attestation", "ATT", "--any-subject"],
        ["verify", "--attestation", "ATT", "--trusted-keys", "KEYS"],
        ["verify", "CERT", "--any-subject"],
        ["verify", "--attestation", "ATT", "--trusted-keys", "KEYS", "--record", "r"],
    ],
)
def test_wrong_command_lines(arguments: list[str], project: Signing, run: Run, snapshot: Snapshot) -> None:
    names = {"ATT": project.attestation, "KEYS": project.trusted, "CERT": project.folder / "training.cert.json"}
    snapshot(run(*(names.get(one, one) for one in arguments)))


def test_python_says_what_is_missing(project: Signing, snapshot: Snapshot) -> None:
    certificate = project.folder / "training.cert.json"
    snapshot.raised(pyaccount.verify)
    snapshot.raised(pyaccount.verify, certificate, attestation=project.attestation, any_subject=True)
    signed: Any = {"attestation": project.attestation, "trusted_keys": project.trusted}
    snapshot.raised(pyaccount.check, **signed, no_limits=True)
    snapshot.raised(pyaccount.verify, **signed)
    snapshot.raised(pyaccount.verify, certificate, trusted_keys=project.trusted)
    snapshot.raised(
        pyaccount.check,
        attestation=project.attestation,
        trusted_keys=project.trusted,
        subjects="model.bin",
        no_limits=True,
    )


def test_without_the_extra_it_is_named(project: Signing) -> None:
    """And everything else works."""
    program = (
        "import sys; sys.modules['securesystemslib'] = None\n"
        "import pyaccount\n"
        f"assert pyaccount.check({str(project.folder / 'training.cert.json')!r}, no_limits=True)\n"
        "from pyaccount import cli\n"
        f"signed = ['--attestation', {str(project.attestation)!r}, '--trusted-keys', {str(project.trusted)!r}]\n"
        f"sys.exit(cli.run(['check', *signed, *{OPENED}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    told = 'securesystemslib is not installed, and attestations need it: pip install "pyaccount-dp[attest]"'
    assert " ".join(done.stderr.split()) == told


def test_an_envelope_that_others_signed_too_passes(project: Signing) -> None:
    """Whoever is not trusted adds nothing and takes nothing away."""
    other = envelope(base64.b64decode(project.envelope["payload"]), CryptoSigner.generate_ed25519())
    both = {**project.envelope, "signatures": [*other["signatures"], *project.envelope["signatures"]]}
    assert project.verdict(both)


def test_the_library_is_loaded_only_when_it_is_needed() -> None:
    program = "import sys, pyaccount.cli, pyaccount.gate.check; sys.exit('securesystemslib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, check=False)
    assert done.returncode == 0


# ---- The page about attestations: its commands and its Python run, in the order in which they stand


#: The first half of the page, about signatures.
PAGE = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8").partition("\n## Model cards\n")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="OpenSSL's command is not installed")
def test_the_page_runs(tmp_path: Path) -> None:
    save(tmp_path, golden("deterministic"), "training.cert.json")
    (tmp_path / "model.safetensors").write_bytes(b"weights" * 1000)
    (tmp_path / "policy.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands, elsewhere = blocks("sh")
    assert all(
        line.startswith(("#", "cosign ", "gh ", "jq ", "pyaccount check ", "    --")) or not line
        for line in elsewhere.split("\n")
    )
    for command in commands.splitlines():
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    for script in blocks("python"):
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (script, done.stderr)
    assert done.stdout == "release.pem\n"
    assert (tmp_path / "made-by-the-library.pem").stat().st_mode & 0o077 == 0
