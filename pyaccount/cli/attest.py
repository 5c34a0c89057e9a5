"""The command that signs certificates, and the options of the commands that read signed certificates."""

from __future__ import annotations

import os
import sys

import click

from pyaccount.cli.common import HOLDS, check_output, tell
from pyaccount.cli.completion import certificate_argument
from pyaccount.cli.options import options, stdout_or_file_option

#: The environment variable with the passphrase. Without it the command asks for the passphrase.
PASSPHRASE = "PYACCOUNT_KEY_PASSPHRASE"

#: The options of the commands that read signed certificates.
attested_options = options("""
    --trusted-keys DIR | The folder with the trusted public keys. One of them must have signed the attestation.
    --subject FILE* as subjects | A file that the attestation must be about; repeat for several files.
    --any-subject | Accept an attestation about any files, without --subject.
""")


@click.command(short_help="Sign a certificate for the files of a model.")
@certificate_argument
@options("""
    --subject FILE*! as subjects | A file that CERT is about, such as the model's weights; repeat for several files.
    --key KEY! | The private key: a PEM file, or a URI of securesystemslib (awskms:…, gcpkms:…, azurekms:…, hsm:…).
    --public-key FILE | The public key, if KEY is a URI.
""")
@stdout_or_file_option("attestation")
def attest(certificate: str, subjects: tuple[str, ...], key: str, public_key: str | None, output: str | None) -> int:
    """Sign CERT, a certificate in JSON, together with the digests of the files that it is about. The result is an in-toto
    Statement in a DSSE envelope.

    Nothing is recomputed: the signature only states who vouches for CERT and which files it is about. A certificate that
    contradicts itself, or whose claim does not hold, is not signed.

    \b
    Examples:
      pyaccount attest training.cert.json --subject model.safetensors --key signing.pem -o training.att.json

    The passphrase of an encrypted key is read from PYACCOUNT_KEY_PASSPHRASE, or asked for on a terminal.
    """
    from pyaccount.attestation.signing import attest as sign
    from pyaccount.cli.outputs import save

    check_output(output, [certificate, key, *subjects])
    signed = sign(certificate, subjects, key, public_key=public_key, secret=_secret)
    code = save("attestation", output, signed.to_json())
    if output is not None and code == HOLDS:
        tell(f"{output}: signed by the key {signed.key_id}, about {', '.join(one.name for one in signed.subjects)}")
    return code


def _secret(name: str) -> str:
    """Return the passphrase or PIN of a key, from the environment or asked for on the terminal."""
    secret = os.environ.get(PASSPHRASE)
    if secret is not None:
        return secret
    if not sys.stdin.isatty():
        raise click.UsageError(f"--key needs a {name}: set {PASSPHRASE}, or start the command on a terminal")
    return str(click.prompt(f"{name} of the key", hide_input=True, err=True))
