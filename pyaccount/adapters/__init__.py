"""What people already have, as documents: one module for each library.

An adapter takes another library's objects and gives a mechanism document (or sections of one), and the other way round
where that is possible. It maps only what means exactly the same; everything else is refused, with the place and the nearest
thing that can be described. Objects are read by their names and fields, so no library need be installed to read them.
The room knows documents; it must not know how they are analysed, and no other room knows it.
"""
