"""The training room's part of `coin_flips`: its batches.

`extended` copies this file to where the module of a sampler's batches belongs.
"""

from pyaccount.training.batches.base import Drawing, Records, RunBatches, indices


class CoinFlipsBatches(RunBatches):
    """Each record joins a round if all flips of its coin show heads."""

    def __init__(self, drawing: Drawing) -> None:
        super().__init__(drawing)
        self._probability = drawing.body.sampling_probability()

    def _drawn(self, round: int) -> Records:
        return indices(self._streams.poisson(round, self.dataset_size, self._probability, 1))
