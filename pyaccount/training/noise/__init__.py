"""The noise of a run: the rows of C⁻¹Z at the certificate's σ, drawn from the run's key.

The room takes one body of a document, a run's key and a clip norm, and gives a `Noise`. Its streams give rows for named
parameters, numpy arrays, each of which is a function of the key, the round's nonce and its position. `inverses` has a class for
each kind of matrix, and `noise` draws the rows; `training.key` explains what a nonce is for. The room does not know what the
noise is added to. Nor does it decide whether a round may be drawn once more with its nonce; that is up to the code that counts
rounds.
"""

from pyaccount.training.key import new_nonce
from pyaccount.training.noise.noise import Noise, NoiseState, NoiseStream, noise_of

__all__ = ["Noise", "NoiseState", "NoiseStream", "new_nonce", "noise_of"]
