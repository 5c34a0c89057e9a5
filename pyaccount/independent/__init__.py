"""Checks certificates without the program that made them.

Takes the ε, the δ and the normal form of a certificate; gives a verdict: whether they are proven by integers and rational
numbers alone. It must not know the rest of pyaccount, nor anything that is compiled from it, nor documents: it imports the
standard library and itself, by relative names, so that a copy of this folder runs alone (`python -m independent CERT`). It was
written from the mathematics, not from the core. What it cannot check it says. docs/independent.md tells how to believe it.

Reading order: form (the grammar) and meaning (its rounds), enclosures (numbers with proven errors), lattice (laws of losses and
their composition), laws (what one round reveals) with draws and columns, composition, combinators (samples, the best run),
moments (correlated noise), beside (matrices in files), verdict, apart (the process that finds it). `choices`
and `search` choose in doubles, and prove nothing. `refuting` has lower bounds, on which nothing that is proven depends, and
`samples` a fresh test, for what nothing else proves.
"""
