"""Reading what people wrote: YAML, JSON and mappings become trees of values with places, and typed sections.

This room takes text, files or mappings (`sources`, which limits which files are read, and how much of them), and gives nodes that
know their line and column (`reader`, `nodes`), fields and kinds that read one value each (`fields`, `kinds`), and advice on
mistakes: misspelt keys, words of other libraries, numbers as people write them (`mistakes`, `spelling`, `numerals`,
`unknown_kinds`). The room must not know what a document means: which sections there are, and what is private, is `document`'s.
"""
