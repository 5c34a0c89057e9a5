"""What the adversary builds and how it judges, for `benchmarks/adversary.py`.

Every kind of mechanism that documents may name is built here from its definition in docs/mechanisms.md and docs/samplers.md, on
concrete neighbouring data sets. Nothing here asks pyaccount for a pair or a profile: what is asked of pyaccount are the kinds
that exist, and the statements that are judged.
"""
