"""Pages: what people read, as data, and the formats in which it is printed.

A `Page` has a heading, badges, a statement and sections of facts, tables, paragraphs and pictures. Its numbers are
quantities with a unit, a direction and an origin. Four printers show the same page: `terminal`, `markdown`, `html` and
`notebook`. This room knows nothing about privacy; the rooms of the objects decide what their pages say.
"""
