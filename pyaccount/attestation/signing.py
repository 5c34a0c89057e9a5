"""Signs certificates for files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyaccount.attestation.keys import LARGEST_KEY, check_private, library, trusted_key
from pyaccount.attestation.statement import MOST_SUBJECTS, PAYLOAD_TYPE, Attestation, statement_bytes, subjects_of
from pyaccount.certificate import Certificate
from pyaccount.certificate.consistency import inconsistencies
from pyaccount.certificate.reading import given_certificate
from pyaccount.certificate.strict import bytes_of
from pyaccount.errors import AttestationError, CertificateError, DomainError, printable

#: Returns the secret with a given name: the passphrase of a file or the PIN of a token.
Secret = Callable[[str], str]


def attest(
    certificate: str | os.PathLike[str] | Certificate,
    subjects: Iterable[str | os.PathLike[str]],
    key: str | os.PathLike[str],
    *,
    public_key: str | os.PathLike[str] | None = None,
    secret: Secret | None = None,
) -> Attestation:
    """Sign a certificate for the given files: an in-toto Statement in a DSSE envelope, by securesystemslib.

    Args:
        certificate: A JSON file, or a certificate in memory.
        subjects: The files that the certificate is about. Their contents are hashed.
        key: A file with one private key (PKCS #8 in PEM) that others may neither read nor write, or a URI of
            securesystemslib (`awskms:…`, `gcpkms:…`, `azurekms:…`, `hsm:…` and others).
        public_key: The file of the public key, if `key` is a URI.
        secret: Called for the passphrase or the PIN of the key.

    `docs/publishing.md` explains what a signature means. Raises `CertificateError` if this is not a certificate,
    `AttestationError` if its claim does not hold, if it contradicts itself, or if signing failed, `DomainError` and
    `MissingExtraError`.

    ```python
    import pyaccount

    attestation = pyaccount.attest("training.cert.json", ["model.safetensors"], "release.key")
    attestation.save("training.intoto.json")
    ```
    """
    if isinstance(subjects, str | os.PathLike):
        raise TypeError("subjects is a list of files, not one: attest(certificate, [file], key)")
    read = given_certificate(certificate)
    data = read.certificate()
    if contradictory := inconsistencies(data):
        contradictions = "\n".join(f"{printable(read.file)}: {one.path}: {one.message}" for one in contradictory)
        raise AttestationError(
            f"{printable(read.file)}: the certificate contradicts itself, so it is not signed:\n{contradictions}"
        )
    if not data.holds:
        raise AttestationError(
            f"{printable(read.file)}: its document's claim was not certified, so there is nothing to attest"
        )
    about = subjects_of(subjects)
    if not 0 < len(about) <= MOST_SUBJECTS:
        raise DomainError(f"`subjects` is at least one file that the certificate is about, and at most {MOST_SUBJECTS}")
    signer = _signer(os.fsdecode(key), public_key, secret)
    envelope = library().Envelope(statement_bytes(about, read.raw), PAYLOAD_TYPE, {})
    try:
        envelope.sign(signer)
        # Check that the service signed with the given public key; otherwise only the gate would detect it.
        envelope.verify([signer.public_key], 1)
    except Exception as error:  # According to its documentation, a signer of the library may raise any exception.
        raise AttestationError(f"key {printable(os.fsdecode(key))}: nothing was signed: {error}") from error
    text = json.dumps(envelope.to_dict(), indent=2) + "\n"
    return Attestation(text, about, signer.public_key.keyid)


def _signer(key: str, public_key: str | os.PathLike[str] | None, secret: Secret | None) -> Any:
    """Return the signer for a key. Raises `DomainError`."""
    used = library()
    scheme, colon, _ = key.partition(":")
    if not colon or scheme not in used.signer.SIGNER_FOR_URI_SCHEME:
        if public_key is not None:
            raise DomainError(
                "public_key is only for keys that are not files: leave it out, since "
                "the file of a private key contains it"
            )
        return _of_file(key, secret)
    if public_key is None:
        raise DomainError(
            f"key {printable(key)}: public_key is missing: give the file of the public key that belongs to this key"
        )
    if scheme == used.signer.CryptoSigner.SCHEME:
        # The library reads the file itself, relative to the folder in this variable.
        check_private(Path(os.environ.get(used.signer.CryptoSigner.PREFIX_ENV_VAR, ""), urlsplit(key).path))
    public = trusted_key(Path(public_key)).key
    try:
        return used.signer.Signer.from_priv_key_uri(key, public, secret)
    except Exception as error:  # Any exception is possible, as above.
        raise AttestationError(f"key {printable(key)}: cannot be used: {error}") from error


def _of_file(key: str, secret: Secret | None) -> Any:
    used = library()
    try:
        data = bytes_of(key, "a private key", LARGEST_KEY)
    except CertificateError as error:
        raise DomainError(f"key {error}") from error
    keys = data.count(b"PRIVATE KEY-----") // 2
    if keys:
        check_private(Path(key))
    if keys > 1:
        raise DomainError(
            f"key {printable(key)}: this file contains {keys} private keys, and only the first would sign: "
            "give a file with one key"
        )
    passphrase = None
    if b"ENCRYPTED" in data:
        if secret is None:
            raise DomainError(f"key {printable(key)}: is encrypted, and no passphrase was given")
        passphrase = secret("passphrase").encode()
    try:
        return used.signer.CryptoSigner(used.serialization.load_pem_private_key(data, passphrase))
    except used.unusable as error:
        message = f"key {printable(key)}: not a private key in PEM (PKCS #8) that can be used: {error}"
        raise DomainError(message) from error
