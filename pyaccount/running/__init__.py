"""Plans in, certificates out: running a plan and issuing its certificate, above the rooms that do either.

`plan` is a plan that can be run; `compare` runs several and lays their certificates side by side.
"""

from pyaccount.running.plan import Plan, compile_document, compile_within

__all__ = ["Plan", "compile_document", "compile_within"]
