"""Which assumptions of a certificate a recorded run fulfils itself, and which are left to the people who train.

* **enforced**: the run makes the assumption true, by how it draws batches and noise and by counting rounds before they are used.
* **checked**: the run refuses violations that it can detect.
* **yours**: the run cannot know whether the assumption is true, so you have to check it.

An assumption that this module does not know is yours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyaccount.training.drawing import FROM_KEY

Held = Literal["enforced", "checked", "yours"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """An assumption, whether it is enforced, checked or yours, and how."""

    text: str
    held: Held
    how: str


_BATCHES = "batches are drawn so from the run's key; that the sum is of this batch, and of nothing else, is yours"
_NOISE = (
    "drawn so from the run's key by ChaCha20 in double precision, and added before a sum is given out, rounded to a grid: up to "
    "what floating-point numbers leave (docs/noise.md)"
)
_OTHER_NOISE = (
    "drawn by {source}, as it was asked for, and not from the run's key; scaled, correlated and added by the run. Whether "
    "nobody can guess what it draws is yours to judge (docs/noise.md)"
)
_ROUNDS = "the run ends after its last round, and every round is recorded before its sum is given out"
_SIZE = "the data must have the document's number of records; that it may be known is yours"
_SCHEDULED = (
    "each round's noise, and its batch where rates are scheduled, are drawn with the values of the certified schedule"
)
_BEFOREHAND = "the run keeps to the certified schedule; that nobody chose it by looking at the data is yours"
_RELEASED = "each of these sums gets its own noise, and is released with its batch or not at all"
_WHO = "it says whom the guarantee is about; the run refuses data of another size, which is so known to whoever sees it run"
_CLIPPING = "the run sees sums, not contributions: clip each to the run's clip norm before it is added"
_SECRET = "keep the batches, their sizes, the unnoised sums and the key away from logs and releases"
_FIXED = "the order must not follow from the data, nor from who is in it"
_NOTHING_ELSE = "whatever else is computed from a batch and leaves the training run is yours"

#: For each assumption, by the words with which it begins, whether it is enforced, checked or yours, and how.
BEGINNINGS: dict[str, tuple[Held, str]] = {
    "Neighbouring data sets differ": ("yours", _WHO),
    "Each record's contribution to a batch is clipped": ("yours", _CLIPPING),
    "Each release is a single number": ("yours", _CLIPPING),
    "The sampled batches are secret": ("yours", _SECRET),
    "Fresh Gaussian noise": ("enforced", _NOISE),
    "The noise of the iterations is C⁻¹Z": ("enforced", _NOISE),
    "Every complete block of the tree has": ("enforced", _NOISE),
    "Sums are normalised by": ("enforced", "sums are divided by a constant that is fixed when the run begins"),
    "A run has ": ("enforced", _ROUNDS),
    "Every record enters every batch": ("enforced", _BATCHES),
    "Every record joins each iteration": ("enforced", _BATCHES),
    "Every record is put in one of": ("enforced", _BATCHES),
    "Every batch is": ("enforced", _BATCHES),
    "For each iteration a fresh": ("enforced", _BATCHES),
    "For every iteration": ("enforced", _BATCHES),
    "In every ": ("enforced", _BATCHES),
    "Iteration i draws from": ("enforced", _BATCHES),
    "Of a batch with more than": ("enforced", _BATCHES),
    "The contributions of all": ("enforced", _BATCHES),
    "The data set is cut into": ("enforced", "the parts go by the records' numbers, or are drawn from the run's key"),
    "No user has more than": ("checked", f"an attribution with more is refused; {_BATCHES}"),
    "No record takes part in more than": ("enforced", _ROUNDS),
    "The dataset size is": ("checked", _SIZE),
    "The data set's size is": ("checked", _SIZE),
    "The expected batch size is": ("checked", "it follows from the document, whose rates the batches are drawn with"),
    "Each round has the": ("enforced", _SCHEDULED),
    "The schedule is fixed before the run": ("yours", _BEFOREHAND),
    "Each round also releases": ("enforced", _RELEASED),
    "Nothing else is released of a batch": ("yours", _NOTHING_ELSE),
    "Which records take part in which round": ("yours", _FIXED),
}


def held(assumption: str, noise_source: str = FROM_KEY) -> Assumption:
    """Return whether an assumption is enforced, checked or yours in a recorded run whose noise came from `noise_source`."""
    for beginning, (status, how) in BEGINNINGS.items():
        if assumption.startswith(beginning):
            if how == _NOISE and noise_source != FROM_KEY:
                return Assumption(assumption, "yours", _OTHER_NOISE.format(source=noise_source))
            return Assumption(assumption, status, how)
    return Assumption(assumption, "yours", "nothing in the run knows of it")
