"""The rule about δ = 0, pure differential privacy: an ε holds there only where the privacy loss is bounded.

No ε holds at δ = 0 for Gaussian noise, with sampling or without: for every ε there are outcomes with a larger loss, if rare ones.
A failure probability, as samples leave one, is part of δ as well; sampled mechanisms have Gaussian noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.ranges import DELTA
from pyaccount.document.stated import number
from pyaccount.errors import Problem, path_text

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism

PATH = ("privacy", "delta")


def losses_are_bounded(document: Mechanism) -> Iterator[Problem]:
    """Where δ is 0 every phase has noise with a bounded loss."""
    if number(document.stated_privacy.delta) != 0.0:
        return
    for body in document.bodies:
        # Noise that was reported already has no kind.
        if not getattr(body.noise, "bounded_loss", True):
            message = (
                f"no ε holds at δ = 0: {path_text(body.at('noise'))} is Gaussian, whose privacy loss has no bound. Give a delta "
                "greater than 0; δ = 0 is for documents where all noise is Laplace noise"
            )
            yield document.problem("out-of-range", PATH, message, allowed=f"a number {DELTA.describe()}")
            return
