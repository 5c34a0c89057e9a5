"""Attestations: a signature that states that the holder of a key issues a certificate for certain files.

An attestation is an in-toto Statement (v1) in a DSSE envelope. The subjects of the Statement are files by their
SHA-256, and its predicate is the certificate. `signing` makes one; `statement` first finds out who signed an
envelope, and only then reads what was signed. The cryptography is that of securesystemslib, which only `library` imports. This
room judges no certificate; the gate does.
"""
