"""The mechanism document: reads what a person wrote and turns it into typed sections.

This room takes what `reading` read, a YAML file, a mapping and overrides, and returns a `Document`, which is validated, typed and
hashed, and knows the line and column of each value. All errors of a document are reported at once, as located problems. The
room must not know how a mechanism is analysed, nor that there is a compiled core: the plan decides which theorem
applies, and which mechanisms have no valid bound.

`ranges` defines the range of every number. `sections`, `samplers/` and `matrices/` define the sections and their rules.
`validation` writes the messages about errors.
"""
