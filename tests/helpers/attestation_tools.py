"""Tools for tests of attestations: keys, signed envelopes made by hand, and a project with an attestation that passes."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from gate_tools import golden
from securesystemslib.signer import CryptoSigner

import pyaccount

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:pyaccount:certificate:v1"


def pae(kind: str, payload: bytes) -> bytes:
    """Return the bytes that DSSE signs, written from its specification."""
    return b" ".join([b"DSSEv1", str(len(kind)).encode(), kind.encode(), str(len(payload)).encode(), payload])


def envelope(
    payload: bytes, signer: CryptoSigner, *, kind: str = PAYLOAD_TYPE, key_id: str | None = None
) -> dict[str, Any]:
    """Return an envelope with any payload, signed by a key; `key_id` is the key that the signature names."""
    signature = bytes.fromhex(signer.sign(pae(kind, payload)).signature)
    named = signer.public_key.keyid if key_id is None else key_id
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": kind,
        "signatures": [{"keyid": named, "sig": base64.b64encode(signature).decode()}],
    }


def public_pem(signer: CryptoSigner) -> bytes:
    """Return the public key in the format that OpenSSL writes."""
    private: Any = serialization.load_pem_private_key(signer.private_bytes, None)
    pem: bytes = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def private_file(path: Path, data: bytes) -> Path:
    """Write a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


@dataclass
class Signing:
    """A folder with a certificate, its subject file, keys, and an attestation that passes."""

    folder: Path
    signer: CryptoSigner
    #: The payload that was signed.
    statement: dict[str, Any]
    #: The envelope as data.
    envelope: dict[str, Any]

    @property
    def model(self) -> Path:
        return self.folder / "model.safetensors"

    @property
    def trusted(self) -> Path:
        return self.folder / "trusted"

    @property
    def attestation(self) -> Path:
        return self.folder / "training.att.json"

    def written(self, envelope: Any) -> Path:
        """Write another envelope to a file."""
        path = self.folder / "other.att.json"
        path.write_bytes(envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode())
        return path

    def verdict(self, envelope: Any, **options: Any) -> Any:
        """Return the verdict on another envelope."""
        options = {"trusted_keys": self.trusted, "subjects": [self.model], "no_limits": True, **options}
        return pyaccount.check(attestation=self.written(envelope), **options)


def signing(folder: Path, signer: CryptoSigner | None = None) -> Signing:
    """Return a project whose attestation is signed with a key, by default Ed25519."""
    signer = signer or CryptoSigner.generate_ed25519()
    (folder / "trusted").mkdir(parents=True)
    private_file(folder / "signing.pem", signer.private_bytes)
    (folder / "trusted" / "release.pem").write_bytes(public_pem(signer))
    (folder / "training.cert.json").write_text(
        json.dumps(golden("deterministic"), ensure_ascii=False), encoding="utf-8"
    )
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 5000)
    attestation = pyaccount.attest(
        folder / "training.cert.json", [folder / "model.safetensors"], folder / "signing.pem"
    )
    attestation.save(folder / "training.att.json")
    made = json.loads(attestation.to_json())
    return Signing(folder, signer, json.loads(base64.b64decode(made["payload"])), made)
