"""Prepares data for privacy of users: bounds the number of records per user, and finds the sampling probability.

This room takes a table of records and their users. It returns the records that are kept, what was dropped and why, and
the values for a mechanism document about such data: the maximum number of records per user, the size of the data set
and the sampling probability. It must not know how a mechanism is analysed. Its results are not private, and every
report says so.
"""
