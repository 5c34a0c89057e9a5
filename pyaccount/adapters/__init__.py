"""Adapters, which convert objects of other libraries to documents: one module for each library.

An adapter takes another library's objects and gives a mechanism document, or sections of one; some also convert documents and
certificates to objects. It maps only objects that mean exactly the same. All others are refused, with the place in the object and
the nearest thing that can be described. Objects are read by the names of their classes and fields, so the library need not be
installed. The room knows documents; it must not know how they are analysed, and no other room knows it.
"""
