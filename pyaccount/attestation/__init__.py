"""Attestations: that the holder of a key says a certificate, and about which files.

An attestation is an in-toto Statement (v1), whose subjects are files by their SHA-256 and whose predicate is the certificate, in
a DSSE envelope. `signing` makes one; `opening` tells whose signatures an envelope has, and what was signed, in this order.
Cryptography is that of securesystemslib, which only `library` imports. This room judges no certificate; the gate does.
"""
