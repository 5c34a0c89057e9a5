"""Opacus: the accountant "pyaccount" in its registry, for its own `PrivacyEngine`.

    import pyaccount.integrations.opacus_accountant  # registers it

    engine = PrivacyEngine(accountant="pyaccount")

The import adds it to Opacus's registry. `make_private_with_epsilon`, `get_noise_multiplier`, `get_epsilon` and checkpoints
then use it as they use Opacus's own accountants. Batches and noise stay those of Opacus: with `PrivacyEngine` of
`pyaccount.integrations.opacus` they are those of a certified run.

The ε is that of the certificate of the history's document (`pyaccount.adapters.opacus`): Poisson sampling, and neighbours with
the same public number of records (zero-out), because Opacus divides by a number that follows from it. It needs opacus and torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pyaccount.adapters.opacus import from_history
from pyaccount.errors import RunError, importing
from pyaccount.integrations.answers import epsilon_at

with importing("torch", "opacus", by=__name__):
    from opacus.accountants import IAccountant, register_accountant
    from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer

#: The name in Opacus's registry.
MECHANISM = "pyaccount"

HistoryEntry = tuple[float, float, int]


class OpacusAccountant(IAccountant):  # type: ignore[misc, unused-ignore]
    """The history of a training with Opacus, whose ε is certified."""

    #: (noise multiplier, sample rate, steps), equal neighbours as one entry.
    history: list[HistoryEntry]

    def __init__(self) -> None:
        super().__init__()

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step of the optimizer."""
        steps = 1
        if self.history and tuple(self.history[-1][:2]) == (noise_multiplier, sample_rate):
            steps += self.history.pop()[2]
        self.history.append((noise_multiplier, sample_rate, steps))

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Return an upper bound on ε of the steps so far; 0 before the first, infinity if a step had no noise.

        Other arguments, which `make_private_with_epsilon` passes on from its own, have no effect. Raises the errors of
        `pyaccount.certify`, and `DocumentError` for a history that has no guarantee.
        """
        if not self.history:
            return 0.0
        if any(entry[0] == 0 for entry in self.history):
            return math.inf
        return _epsilon(tuple((noise, rate, steps) for noise, rate, steps in self.history), delta)

    def __len__(self) -> int:
        return sum(entry[2] for entry in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name in Opacus's registry."""
        return MECHANISM

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[DPOptimizer], None]:
        """Return what Opacus's optimizer calls before each step, which counts it.

        It raises `RunError` for steps of which a history would state too little: those that accumulate the gradients of several
        batches, in which a record may be several times, and adaptive clipping, which divides a count by a secret number.
        """

        def counted(optimizer: DPOptimizer) -> None:
            if isinstance(optimizer, AdaClipDPOptimizer):
                raise RunError(
                    "adaptive clipping divides the count of unclipped gradients by the number of records that were drawn, which "
                    "no noise hides: use clipping='flat'"
                )
            if (batches := optimizer.accumulated_iterations) != 1:
                raise RunError(
                    f"the gradients of {batches} batches were accumulated for one step. A record may be in several of them, and "
                    "Opacus's history does not state that: use BatchMemoryManager, which splits a batch, or step after each batch"
                )
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate)

        return counted


@lru_cache(maxsize=64)
def _epsilon(history: tuple[HistoryEntry, ...], delta: float) -> float:
    # The δ of the document is that of no question: `answers` puts another one in its place.
    return epsilon_at(from_history(history, delta=0.5), delta)


# Whoever imports this module a second time, after it was removed from `sys.modules`, gets the newer class.
register_accountant(MECHANISM, OpacusAccountant, force=True)
