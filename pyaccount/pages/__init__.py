"""Pages: what people read, as data, and the forms in which it is printed.

A `Page` has a heading, badges, a statement and sections of facts, tables, paragraphs and pictures. Its numbers are quantities
that know their unit, their direction and their origin. Four printers show the same page: `terminal`, `markdown`, `html` and
`notebook`. The room knows nothing of privacy: what a page says is decided beside the object that the page is about.
"""
