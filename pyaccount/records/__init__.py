"""The record of an answer: what a certificate states, as immutable data with ranges, units and roles.

`execute` fills it, `certificate` gives it words and pages, `gate` compares it. This room takes nothing, and gives models; it
knows ranges of the document, but no document, no plan and no core.
"""
