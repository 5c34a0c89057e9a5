"""Reads trusted public keys, checks the permissions of key files, and imports the library for keys.

Only POSIX systems report who may read a private key or write to the folder of trusted keys. On other systems a warning
says that this is not checked.
"""

from __future__ import annotations

import os
import stat
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from pyaccount.certificate.consistency import created_at
from pyaccount.certificate.strict import bytes_of, object_of
from pyaccount.errors import CertificateError, DomainError, MissingExtraError, printable, quoted
from pyaccount.files import HAS_MODES, warn_without_modes


def library() -> Any:
    """Return what is used of securesystemslib and of cryptography. Raises `MissingExtraError`."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from securesystemslib import signer
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import UnverifiedSignatureError
    except ImportError as error:
        raise MissingExtraError.of("securesystemslib", "attestations need it") from error
    return SimpleNamespace(
        Envelope=Envelope,
        signer=signer,
        serialization=serialization,
        Unverified=UnverifiedSignatureError,
        #: The exceptions for a key that cannot be read or used.
        unusable=(ValueError, TypeError, KeyError, AttributeError, UnsupportedAlgorithm),
    )


#: The endings of the files that are read as keys.
PEM, JSON = (".pem", ".pub"), ".json"
#: The most bytes of a key file.
LARGEST_KEY = 1 << 16
#: The most keys that are read.
MOST_KEYS = 1000


class TrustedKey(NamedTuple):
    """A trusted public key, and the name of its file."""

    name: str
    key_id: str
    #: The key as an object of securesystemslib.
    key: Any
    #: When trust in the key ends; `None`: it is trusted as long as the file exists.
    expires: datetime | None = None

    def expired(self, now: datetime) -> bool:
        """Return whether the key is not trusted any more."""
        return self.expires is not None and now >= self.expires


class TrustedKeys(NamedTuple):
    """The keys of one folder, one of which must have signed, and who requires this."""

    origin: str
    keys: tuple[TrustedKey, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files of the keys."""
        return tuple(key.name for key in self.keys)


def trusted_keys(folder: str | os.PathLike[str], origin: str) -> TrustedKeys:
    """Return the public keys in a folder: PEM in files that end in .pem or .pub, securesystemslib's format in .json.

    A JSON file is `{"keyid", "keytype", "scheme", "keyval": {"public"}}`, for schemes and names that PEM cannot
    express; `expires` is an optional time after which the key is no longer trusted. Other files are ignored. Raises
    `DomainError` if a key cannot be read (it is not skipped), if the folder contains no key, and if everybody may write
    to it, since anybody could then add a key.
    """
    place = os.fsdecode(folder)
    if not place:
        # An empty path, such as that of an unset variable, would mean the working folder.
        raise DomainError("trusted_keys is empty: give the folder of the public keys that are trusted")
    try:
        entries = sorted(Path(place).iterdir())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DomainError(
            f"trusted_keys = {printable(place)}: the folder of public keys cannot be read: {reason}"
        ) from error
    files = [path for path in entries if path.suffix in (*PEM, JSON)]
    if not files:
        raise DomainError(
            f"trusted_keys = {printable(place)}: this folder contains no public key: no .pem, .pub or .json file"
        )
    if len(files) > MOST_KEYS:
        raise DomainError(
            f"trusted_keys = {printable(place)}: there are {len(files)} keys, but at most {MOST_KEYS} are read"
        )
    for path in (Path(place), *files):
        _check_trusted(path)
    return TrustedKeys(origin, tuple(trusted_key(path) for path in files))


def trusted_key(path: Path) -> TrustedKey:
    """Return the public key in a file. Raises `DomainError`."""
    try:
        data = bytes_of(str(path), "a public key", LARGEST_KEY)
        if path.suffix == JSON:
            return _in_json(path, object_of(data, str(path), "a public key"))
    except CertificateError as error:
        raise DomainError(str(error)) from error
    return _in_pem(path, data)


def _in_pem(path: Path, data: bytes) -> TrustedKey:
    if b"PRIVATE KEY" in data:
        raise DomainError(
            f"{printable(str(path))}: this is a private key, which only the signer may have: give the "
            "public key, which `openssl pkey -pubout` makes"
        )
    _one_key(path, data.decode(errors="replace"))
    used = library()
    try:
        key = used.signer.SSlibKey.from_crypto(used.serialization.load_pem_public_key(data))
    except used.unusable as error:
        raise DomainError(f"{printable(str(path))}: not a public key in PEM that can be used: {error}") from error
    return TrustedKey(path.name, key.keyid, key)


def _one_key(path: Path, text: str) -> None:
    """Reject a file with several keys, since only the first would be read. Raises `DomainError`."""
    keys = text.count("-----BEGIN ")
    if keys > 1:
        raise DomainError(
            f"{printable(str(path))}: this file contains {keys} keys, and only the first would be trusted: "
            "give each key a file of its own"
        )


def _in_json(path: Path, raw: dict[str, Any]) -> TrustedKey:
    used, expires = library(), raw.pop("expires", None)
    until = created_at(expires) if isinstance(expires, str) else None
    if expires is not None and until is None:
        raise DomainError(
            f"{printable(str(path))}: expires = {quoted(expires)} is not a time such as 2027-01-31T00:00:00+00:00"
        )
    value = raw.get("keyval")
    if isinstance(value, dict):
        _one_key(path, str(value.get("public", "")))
    name = raw.pop("keyid", None)
    if not isinstance(name, str) or not name:
        raise DomainError(
            f"{printable(str(path))}: keyid is missing: a key in JSON has keyid, keytype, scheme and keyval"
        )
    try:
        key = used.signer.Key.from_dict(name, raw)
    except used.unusable as error:
        raise DomainError(f"{printable(str(path))}: not a public key that can be used: {error}") from error
    return TrustedKey(path.name, name, key, until)


_ALL, _GROUP, _WRITE_BY_ALL = 0o007, 0o070, 0o002


def check_private(path: Path) -> None:
    """Reject a private key that others may read or replace, as ssh does. Raises `DomainError`.

    If the key belongs to another user (for example because a service mounts it), its group may have access: this
    process may be in it.
    """
    status = _status(path)
    if status is None:
        return
    mode = stat.S_IMODE(status.st_mode)
    own = status.st_uid == os.geteuid()
    if mode & (_ALL | (_GROUP if own else 0)):
        raise DomainError(
            f"key {printable(str(path))}: others may use this key (its permissions are {mode:04o}) and sign in its holder's "
            "name: run chmod 600 on it, and make a new key if anybody may have read it"
        )


def _check_trusted(path: Path) -> None:
    """Reject a folder or file of trusted keys that everybody may write and so change. Raises `DomainError`."""
    status = _status(path)
    if status is not None and status.st_mode & _WRITE_BY_ALL:
        mode, what = stat.S_IMODE(status.st_mode), "folder" if stat.S_ISDIR(status.st_mode) else "file"
        raise DomainError(
            f"trusted_keys: everybody may write to the {what} {printable(str(path))} (its permissions are {mode:04o}), and so "
            "decide which keys are trusted: run chmod o-w on it"
        )


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file; None if the system has no permissions, or if the file cannot be read."""
    if not HAS_MODES:
        warn_without_modes()
        return None
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
