"""Documents that enter filters."""

from typing import Any

import pyaccount
from pyaccount.document.document import Document


def entry(*, adjacency: str = "add-remove", **body: Any) -> Document:
    """Return a document with one body."""
    privacy = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-5}
    return pyaccount.load({"pyaccount": 1, "name": "entry", "privacy": privacy, **body})


def mechanism(**stated: Any) -> Document:
    """Return a document about a mechanism in place of training; `adjacency` may be among its keys."""
    adjacency = stated.pop("adjacency", "add-remove")
    return entry(adjacency=adjacency, mechanism=stated)


def gaussian(noise_multiplier: float, rounds: int = 1) -> Document:
    """Return rounds of Gaussian noise without sampling."""
    return entry(training={"iterations": rounds}, sampler={"kind": "none"}, noise={"multiplier": noise_multiplier})


def poisson(noise_multiplier: float, probability: float, rounds: int = 1, **privacy: Any) -> Document:
    """Return rounds of Poisson sampling."""
    return entry(
        training={"iterations": rounds, "sampling_probability": probability},
        sampler={"kind": "poisson"},
        noise={"multiplier": noise_multiplier},
        **privacy,
    )
