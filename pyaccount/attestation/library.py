"""The library that signs and verifies, loaded when that is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyaccount.errors import MissingExtraError


def library() -> Any:
    """What is used of securesystemslib and of the package that reads its keys. Raises `MissingExtraError`."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from securesystemslib import signer
        from securesystemslib.dsse import Envelope
        from securesystemslib.exceptions import UnverifiedSignatureError
    except ImportError as error:
        raise MissingExtraError.of("securesystemslib[crypto]", "attestations need it") from error
    return SimpleNamespace(
        Envelope=Envelope,
        signer=signer,
        serialization=serialization,
        Unverified=UnverifiedSignatureError,
        #: What a key that cannot be read or used raises.
        unusable=(ValueError, TypeError, KeyError, AttributeError, UnsupportedAlgorithm),
    )
