"""Auditing what ran: scores of canaries in, an empirical lower bound on ε out, held against a certificate's curve.

This room takes a certificate and scores, and gives a verdict: consistent with what is certified, or refuted at a confidence
that is proven. It must not know how a certificate was computed. It is not called `audit`, since the package's function is.
"""
