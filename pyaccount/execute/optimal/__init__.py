"""Search for the banded Toeplitz matrix of least error under the sampler of a document, at its ε and δ.

`search` starts the search and returns its result. `parametrisation` has the families of matrices that are searched,
`objective` the error of a matrix at the σ that it needs, with its gradient, from fixed samples, and `improvement` does the
rounds. Nothing is proven here about the matrix proposed: its coefficients are certified with samples not
used here.
"""

from pyaccount.execute.optimal.search import optimise

__all__ = ["optimise"]
