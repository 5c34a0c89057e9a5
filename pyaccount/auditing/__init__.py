"""Audits training runs: compares a lower bound on ε, from scores of canaries, with a certificate.

This room takes a certificate and scores. The verdict is that they are consistent, or that the certificate is refuted,
with proven confidence. The room must not know how a certificate was computed. It is not called `audit` because that is
the public function.
"""
