"""Poisson sampling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pyaccount.document.samplers.base import Truncatable

if TYPE_CHECKING:
    from fractions import Fraction

    from pyaccount.document.views import Body


class Poisson(Truncatable):
    """Poisson sampling: every record joins every round independently, with the sampling probability.

    The rate is given under `training`; for Poisson sampling the participation rate is the sampling probability.
    """

    aliases = "bernoulli poisson-sampling poisson-subsampling iid"
    single_draw = True

    kind: Literal["poisson"] = Field(description="Every record joins every round independently.")

    @property
    def called(self) -> str:
        """A name."""
        return "Poisson"

    def separation(self, body: Body) -> int | None:
        """A record has a chance in every round."""
        return 1

    def on_epochs(self, body: Body, epoch: Fraction, iterations: int) -> str | None:
        """A loader that draws so often has whole batches, and another probability."""
        told = super().on_epochs(body, epoch, iterations)
        if told is None or epoch.denominator == 1:
            return told
        batches = math.ceil(epoch)
        return (
            f"{told}. A loader of {batches:_} batches an epoch (as Opacus's, which then draws with probability 1/{batches:_}) "
            f"makes {math.ceil((body.epochs or 0.0) * batches):_} steps: give these as iterations, with its sampling_probability"
        )
