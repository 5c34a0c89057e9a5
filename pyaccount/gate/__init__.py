"""Finished certificates in, verdicts out: checking them against limits, recomputing them.

`check` looks at a certificate itself and at the limits of a policy; it computes no privacy and loads no numerics, so that a
gate costs next to nothing. `verify` recomputes everything and compares. This room issues no certificate and changes none.
"""
