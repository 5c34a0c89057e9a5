"""Whatever is changed about an attestation, by whoever has no trusted key: it is not accepted, and nothing breaks.

`PYACCOUNT_FUZZ=10000` damages so many envelopes; without it 600.
"""

import base64
import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from attestation_tools import PREDICATE, STATEMENT, Signing, envelope, public_pem, signing
from gate_tools import changed, golden, leaves
from mutations import damaged, text_of, torn
from securesystemslib.signer import CryptoSigner
from snapshots import Snapshot

import pyaccount
from pyaccount.gate import verify as verifying

COUNT = int(os.environ.get("PYACCOUNT_FUZZ", "600"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Signing:
    return signing(tmp_path_factory.mktemp("tampering"))


def payload_of(statement: Any) -> bytes:
    return json.dumps(statement, ensure_ascii=False).encode()


def refused(project: Signing, made: Any, **options: Any) -> Any:
    """That an envelope is not accepted, by either command, and the verdict on it."""
    verdict = project.verdict(made, **options)
    assert not verdict.passes
    with pytest.raises((pyaccount.AttestationError, pyaccount.CertificateError)):
        pyaccount.verify(
            attestation=project.folder / "other.att.json",
            **{"trusted_keys": project.trusted, "subjects": [project.model], **options},
        )
    return verdict.certificates[0]


def test_every_field_of_what_was_signed(project: Signing) -> None:
    """Each leaf of the statement replaced in turn: the signature is of other bytes."""
    rng, count = random.Random(1), 0
    for path in rng.sample(list(leaves(project.statement)), 120):
        statement = copy.deepcopy(project.statement)
        place = statement
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = "x" if place[path[-1]] != "x" else "y"
        made = {**project.envelope, "payload": base64.b64encode(payload_of(statement)).decode()}
        judged = project.verdict(made).certificates[0]
        assert not judged.passes
        # Nothing of it was looked at.
        assert [rule.rule for rule in judged.rules] == ["trusted_keys"]
        assert (judged.name, judged.attestation, judged.used) == (None, None, ())
        count += 1
    assert count == 120


def test_the_same_words_in_other_bytes(project: Signing) -> None:
    """Spaces, a byte order mark or another encoding of what was signed: other bytes, that nobody signed."""
    text = base64.b64decode(project.envelope["payload"]).decode()
    same = [text + " ", json.dumps(json.loads(text), indent=1), "\ufeff" + text, text.replace("\u03b5", "\\u03b5")]
    for payload in (*(one.encode() for one in same), text.encode("utf-16"), text.encode("utf-16-le")):
        assert payload != text.encode()
        judged = refused(project, {**project.envelope, "payload": base64.b64encode(payload).decode()})
        assert judged.rules[0].rule == "trusted_keys"


@pytest.mark.parametrize(
    "payload",
    [
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"\xff\xfe\x00",
        b"",
        b"null",
        b"[]",
        b'{"_type": 1}',
        b"[" * 100_000,
        b'{"a": ' * 70 + b"1" + b"}" * 70,
        b'{"_type": NaN}',
        b'{"_type": 1e999}',
        b'{"_type": "\\ud800"}',
        b"9" * 100_000,
    ],
    ids=range(13),
)
def test_odd_payloads_that_a_trusted_key_signed(payload: bytes, project: Signing) -> None:
    """Even a trusted signer's mistakes are refused with a reason."""
    judged = refused(project, envelope(payload, project.signer))
    assert "attestation" in judged.error


def test_keys_given_twice(project: Signing, snapshot: Snapshot) -> None:
    """Of which one reader takes the first and another the last."""

    def doubled(text: str, name: str, value: Any) -> bytes:
        return f"{text[:-1]}, {json.dumps(name)}: {json.dumps(value)}}}".encode()

    payload = payload_of(project.statement).decode()
    said = [refused(project, doubled(json.dumps(project.envelope), *one)).error for one in project.envelope.items()]
    inner = [
        doubled(payload, name, project.statement[name]) for name in ("subject", "predicate", "predicateType", "_type")
    ]
    inner.append(payload.replace('"holds": true', '"holds": true, "holds": true').encode())
    snapshot([*said, *(refused(project, envelope(one, project.signer)).error for one in inner)])


@pytest.mark.parametrize(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"_type": None},
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"predicateType": PREDICATE + "0"},
        {"subject": []},
        {"subject": [{"name": "model.safetensors"}]},
        {"subject": [{"name": "model.safetensors", "digest": {"sha1": "0" * 40}}]},
        {"subject": [{"digest": {"sha256": "A" * 64}}]},
        {"predicate": []},
        {"predicate": {}},
        {"predicate": {"pyaccount": 1, "kind": "policy"}},
        {"predicate": {**golden("deterministic"), "holds": "yes"}},
    ],
)
def test_other_statements_that_a_trusted_key_signed(
    change: dict[str, Any], project: Signing, snapshot: Snapshot
) -> None:
    snapshot(refused(project, envelope(payload_of({**project.statement, **change}), project.signer)).error)


def test_certificates_that_do_not_hold_or_contradict_themselves(project: Signing) -> None:
    """A signature does not make them better."""
    for predicate, rule in (
        (golden("claim-fails"), "holds"),
        (changed(golden("deterministic"), guarantee__epsilon=0.5), "intact"),
    ):
        made = envelope(payload_of({**project.statement, "predicate": predicate}), project.signer)
        judged = project.verdict(made).certificates[0]
        assert [one.rule for one in judged.rules if not one.passes] == [rule]
    # Its figures are recomputed, once the signature is known to be good.
    assert not pyaccount.verify(attestation=project.written(made), trusted_keys=project.trusted, any_subject=True)


def test_another_artifact(project: Signing, tmp_path: Path) -> None:
    other = tmp_path / "model.safetensors"
    other.write_bytes(project.model.read_bytes()[:-1])
    judged = refused(project, project.envelope, subjects=[other])
    assert [rule.rule for rule in judged.rules if not rule.passes] == ["subjects"]
    # One that is right does not make up for one that is not.
    refused(project, project.envelope, subjects=[project.model, other])


def test_the_envelope_stripped_and_filled(project: Signing) -> None:
    for name in project.envelope:
        kept = {key: value for key, value in project.envelope.items() if key != name}
        assert name in refused(project, kept).error
    assert "extra" in refused(project, {**project.envelope, "extra": 1}).error
    assert "an unsigned certificate" in refused(project, project.statement["predicate"]).error
    assert "attestation" in refused(project, project.statement).error
    (signature,) = project.envelope["signatures"]
    for signatures in (
        [],
        [{}],
        {},
        None,
        [None],
        [{"sig": signature["sig"]}],
        [{**signature, "keyid": ""}],
        [{**signature, "keyid": None}],
        [{**signature, "sig": None}],
        [{**signature, "cert": "x"}],
        [signature, signature],
        [{**signature, "keyid": str(number)} for number in range(17)],
    ):
        assert "signatures" in refused(project, {**project.envelope, "signatures": signatures}).error
    for signatures in (
        [{**signature, "keyid": "release.pem"}],
        [{**signature, "keyid": signature["keyid"].upper()}],
        [{**signature, "sig": ""}],
    ):
        assert refused(project, {**project.envelope, "signatures": signatures}).rules[0].rule == "trusted_keys"


def test_base64_has_one_spelling(project: Signing) -> None:
    """What other decoders let pass: spaces, missing or further padding, bits that belong to no byte."""
    (signature,) = project.envelope["signatures"]
    sig = signature["sig"]
    assert sig.endswith("==")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    loose = last[last.index(sig[-3]) ^ 1]
    spellings = (sig[:-1], sig[:-2], sig + "=", sig + "====", " " + sig, sig + "\n", sig[:-3] + loose + "==", sig + "A")
    for spelled in spellings:
        made = {**project.envelope, "signatures": [{**signature, "sig": spelled}]}
        assert "not base64 in its standard spelling" in refused(project, made).error
    for spelled in ("\u00e9", project.envelope["payload"] + "\n", "*"):
        assert "not base64 in its standard spelling" in refused(project, {**project.envelope, "payload": spelled}).error
    # DSSE leaves the alphabet open; it is the same bytes.
    urlsafe = base64.urlsafe_b64encode(base64.b64decode(sig)).decode()
    assert project.verdict({**project.envelope, "signatures": [{**signature, "sig": urlsafe}]})


def test_signatures_swapped(project: Signing, tmp_path: Path) -> None:
    """Between two attestations by one key, and between two keys of one attestation."""
    other = copy.deepcopy(project.statement)
    other["subject"][0]["digest"]["sha256"] = "0" * 64
    made = envelope(payload_of(other), project.signer)
    refused(project, {**made, "signatures": project.envelope["signatures"]})
    refused(project, {**project.envelope, "signatures": made["signatures"]})
    second = CryptoSigner.generate_ed25519()
    for name, signer in (("a.pem", project.signer), ("b.pem", second)):
        (tmp_path / name).write_bytes(public_pem(signer))
    payload = base64.b64decode(project.envelope["payload"])
    both = [*project.envelope["signatures"], *envelope(payload, second)["signatures"]]
    assert project.verdict({**project.envelope, "signatures": both}, trusted_keys=tmp_path)
    swapped = [{**both[0], "sig": both[1]["sig"]}, {**both[1], "sig": both[0]["sig"]}]
    refused(project, {**project.envelope, "signatures": swapped}, trusted_keys=tmp_path)


def test_another_key(project: Signing) -> None:
    """Under its own name, and under that of the trusted one."""
    other = CryptoSigner.generate_ed25519()
    payload = base64.b64decode(project.envelope["payload"])
    for key_id in (None, project.signer.public_key.keyid):
        judged = refused(project, envelope(payload, other, key_id=key_id))
        assert judged.rules[0].remark == "no trusted key signed this, so nothing in it was read"


def test_the_type_is_signed_with_the_payload(project: Signing) -> None:
    """A trusted key's signature of the same bytes as something else is none of an attestation."""
    payload = base64.b64decode(project.envelope["payload"])
    made = envelope(payload, project.signer, kind="text/plain")
    assert "payloadType" in refused(project, made).error
    made["payloadType"] = project.envelope["payloadType"]
    assert refused(project, made).rules[0].rule == "trusted_keys"
    # Without the encoding that DSSE puts around it.
    bare = bytes.fromhex(project.signer.sign(payload).signature)
    signature = {"keyid": project.signer.public_key.keyid, "sig": base64.b64encode(bare).decode()}
    assert refused(project, {**project.envelope, "signatures": [signature]}).rules[0].rule == "trusted_keys"


def test_key_confusion(project: Signing, tmp_path: Path) -> None:
    """A key is used for the scheme that its file says and no other, whatever an envelope says and whoever shares its name."""
    payload = payload_of(project.statement)
    rsa, ecdsa = CryptoSigner.generate_rsa(size=2048), CryptoSigner.generate_ecdsa()
    for signer, files in (
        # The same RSA key, for another padding; an elliptic curve's key said to be RSA's, and the other way round.
        (
            rsa,
            [
                {"keytype": "rsa", "scheme": "rsa-pkcs1v15-sha256"},
                {"keytype": "ecdsa", "scheme": "ecdsa-sha2-nistp256"},
            ],
        ),
        (
            ecdsa,
            [{"keytype": "rsa", "scheme": "rsassa-pss-sha256"}, {"keytype": "ecdsa", "scheme": "ecdsa-sha2-nistp384"}],
        ),
        (project.signer, [{"keytype": "rsa", "scheme": "rsassa-pss-sha256"}]),
    ):
        made = envelope(payload, signer)
        keyval = signer.public_key.to_dict()["keyval"]
        for number, kind in enumerate(files):
            folder = tmp_path / f"{signer.public_key.scheme}-{number}"
            folder.mkdir()
            key = {"keyid": signer.public_key.keyid, **kind, "keyval": keyval}
            (folder / "key.json").write_text(json.dumps(key), encoding="utf-8")
            assert refused(project, made, trusted_keys=folder).rules[0].rule == "trusted_keys"
        right = tmp_path / signer.public_key.scheme
        right.mkdir()
        key = {"keyid": signer.public_key.keyid, **signer.public_key.to_dict()}
        (right / "key.json").write_text(json.dumps(key), encoding="utf-8")
        assert project.verdict(made, trusted_keys=right)
        # A key that takes another one's name does not speak for it.
        other = CryptoSigner.generate_ed25519()
        taken = tmp_path / f"{signer.public_key.scheme}-taken"
        taken.mkdir()
        key = {"keyid": signer.public_key.keyid, **other.public_key.to_dict()}
        (taken / "key.json").write_text(json.dumps(key), encoding="utf-8")
        refused(project, made, trusted_keys=taken)


def test_the_public_key_is_no_secret_of_anything(project: Signing) -> None:
    """As where a verifier takes a public key for the key of a code: nothing can be signed with what is public."""
    import hashlib
    import hmac

    public = (project.trusted / "release.pem").read_bytes()
    payload = base64.b64decode(project.envelope["payload"])
    code = hmac.new(public, payload, hashlib.sha256).digest()
    signature = {"keyid": project.signer.public_key.keyid, "sig": base64.b64encode(code).decode()}
    refused(project, {**project.envelope, "signatures": [signature]})


def test_verify_looks_at_the_signature_first(
    project: Signing, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """Nothing is recomputed, nor even read, of what no trusted key signed."""
    looked: list[str] = []
    monkeypatch.setattr(verifying, "_recompute", lambda found, how: looked.append(found.file))
    monkeypatch.setattr("pyaccount.attestation.statement.read_statement", lambda *given: looked.append("statement"))
    made = envelope(b"what is not even JSON", CryptoSigner.generate_ed25519())
    snapshot.raised(pyaccount.verify, attestation=project.written(made), trusted_keys=project.trusted, any_subject=True)
    assert looked == []


def test_a_forged_figure_that_a_trusted_key_signed_is_recomputed(project: Signing) -> None:
    """A signature says who, not whether it is true: that is what `verify` is for."""
    forged = json.loads(payload_of(project.statement))
    for point in (
        forged["predicate"]["profile"][-1],
        *(side["profile"][-1] for side in forged["predicate"]["directions"].values()),
    ):
        point["delta"], point["delta_lower"] = point["delta"] / 2, point["delta_lower"] / 2
    made = envelope(payload_of(forged), project.signer)
    assert project.verdict(made).certificates[0].rules[0].passes
    found = pyaccount.verify(attestation=project.written(made), trusted_keys=project.trusted, subjects=[project.model])
    assert not found
    assert {one.path for one in found.differences if not one.agrees}
    assert found.attestation is not None
    assert found.attestation.signed_by[0].key == "release.pem"


def mutated(project: Signing, other: dict[str, Any], rng: random.Random) -> bytes:
    """An envelope with damage in one of the places where some may be."""
    original = project.envelope
    action = rng.randrange(5)
    if action == 0:
        return torn(json.dumps(original).encode(), rng)
    if action == 1:
        return text_of(damaged(original, rng))
    if action == 2:
        # What was signed, as data.
        payload = text_of(damaged(project.statement, rng))
        return text_of({**original, "payload": base64.b64encode(payload).decode()})
    if action == 3:
        # What was signed or the signature, as bytes.
        made = copy.deepcopy(original)
        place, key = rng.choice([(made, "payload"), (made["signatures"][0], "sig")])
        place[key] = base64.b64encode(torn(base64.b64decode(place[key]), rng)).decode()
        return text_of(made)
    # Pieces of two.
    made = {key: rng.choice([original, other])[key] for key in original}
    made["signatures"] = [{key: rng.choice([original, other])["signatures"][0][key] for key in ("keyid", "sig")}]
    return text_of(made)


def same(data: bytes, original: dict[str, Any]) -> bool:
    """Whether damage left everything as it was."""
    try:
        return bool(json.loads(data) == original)
    except (ValueError, RecursionError):
        return False


def signed_by_more(data: bytes, original: dict[str, Any]) -> bool:
    """Whether nothing but a signature that is no trusted key's was added: the trusted one still stands, of the same bytes."""
    found = json.loads(data)
    kept = {**found, "signatures": original["signatures"]} == original
    return kept and len(found["signatures"]) > 1 and original["signatures"][0] in found["signatures"]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_envelopes_are_never_accepted(seed: int, project: Signing) -> None:
    rng, tried = random.Random(seed), 0
    statement = {
        **project.statement,
        "_type": STATEMENT,
        "subject": [{"name": "other", "digest": {"sha256": "0" * 64}}],
    }
    other = envelope(payload_of(statement), CryptoSigner.generate_ed25519())
    while tried < COUNT // 4:
        data = mutated(project, other, rng)
        if same(data, project.envelope) or same(data, other):
            continue
        tried += 1
        (judged,) = project.verdict(data).certificates
        if judged.passes:
            assert signed_by_more(data, project.envelope), data
            continue
        # Not one was looked into.
        assert judged.error is not None or [rule.rule for rule in judged.rules] == ["trusted_keys"], data
    assert project.verdict(project.envelope)
