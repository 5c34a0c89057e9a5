"""Checks certificates without the program that made them.

Takes the JSON of a certificate; gives a verdict: whether its ε and δ are proven by integers and rational numbers alone. It must
not know the rest of pyaccount, nor anything that is compiled from it: it imports the standard library and itself, by relative
names, so that a copy of this folder runs alone (`python -m independent CERT`). It was written from the mathematics, not from the
core. What it cannot check it says. docs/independent.md tells how to believe it.

Reading order: enclosures (numbers with proven errors), lattice (laws of losses and their composition), rounds, draws, kinds and
selection (what one round reveals), replicas and correlated (runs whose rounds do not compose), shapes (what a document may say),
documents and derived (which rounds it has), proof (how fine the lattice is), verdict, apart (the process that finds it). For
guarantees that rest on samples: recorded (the arithmetic of the record), process, normals and bets (exact laws, and what is bet
on), spaced with tuples and ratio, and bins (two samplers), reading (which one a document has), means (added records), samples
(the fresh test), sampled.
"""
