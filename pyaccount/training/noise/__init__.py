"""The noise of a run: the rows of C⁻¹Z at the certificate's σ, drawn from the run's key.

The room takes one body of a document, a run's key and a clip norm, and gives a `Noise`: for named parameters a stream of rows,
numpy arrays, each a function of the key, of the round's nonce and of its place. `inverses` has a module for each kind of matrix,
`noise` draws the rows, `nonces` says what a nonce is for. The room does not know what the noise is added to, nor whether a round
may be drawn once more with its nonce: that is for whoever counts.
"""

from pyaccount.training.noise.noise import Noise, NoiseState, NoiseStream, noise_of
from pyaccount.training.noise.nonces import new_nonce

__all__ = ["Noise", "NoiseState", "NoiseStream", "new_nonce", "noise_of"]
