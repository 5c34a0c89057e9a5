"""Run plans and return their certificates.

This package is above the packages that execute plans and issue certificates.

`plan` defines a plan that can be run, and `executor` draws its samples in other processes or on other machines;
`compare` runs several plans and sets their certificates side by side.
"""

from pyaccount.running.plan import Plan, compile_document, compile_within

__all__ = ["Plan", "compile_document", "compile_within"]
