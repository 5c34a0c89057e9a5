"""The banded Toeplitz matrix of least error under the sampler of a document, at its ε and δ.

`parametrisation` has the matrices that are searched, `objective` the error of one at the σ that it needs, with its gradient, from
samples that stay the same, `judge` the same by the pilot, from other samples, `improvement` the rounds, and `search` where they
begin and what is made of them; `unsampled` finds the matrix where that takes no samples. A matrix is
proposed here and nothing is proven about it: the certificate is of its coefficients, by samples that this room has not seen.
"""

from pyaccount.execute.optimal.search import optimise

__all__ = ["optimise"]
