"""Preparing data for users: which records are kept, so that no user has more than so many, and how to sample them.

This room takes a table of records and their users, and gives the records kept, what was dropped and why, and what a mechanism
document says of such data: the most records of a user, the data set's size, the sampling probability. It must not know how
a mechanism is analysed; nothing here is private, and every report says so.
"""
