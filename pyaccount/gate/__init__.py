"""Checks finished certificates against limits, and recomputes them; the results are verdicts.

`check` looks only at a certificate and the limits of a policy. It computes no privacy and loads no numerics, so that a
gate is fast. `verify` recomputes everything and compares. This room issues no certificate and changes none.
"""
