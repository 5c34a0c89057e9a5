"""Data sets and documents that tests of ledgers enter."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from plain_documents import doc


def data_set(name: str = "customers", *, filters: Any = (), **more: Any) -> dict[str, Any]:
    """A data set; `privacy` replaces its budget of ε = 3 at δ = 1e-6."""
    privacy = {"adjacency": "add-remove"} | more.pop("privacy", {"epsilon": 3, "delta": 1e-6})
    stated = {"filters": list(filters)} if filters else {}
    return {"pyaccount": 1, "kind": "data-set", "name": name, "privacy": privacy, **stated, **more}


def gaussian(mu: float = 0.1, name: str = "mean", *, rounds: int = 1, **privacy: Any) -> dict[str, Any]:
    """A document of `rounds` Gaussian rounds, each with this μ."""
    return doc(
        "adjacency=add-remove delta=1e-6 sampler=none",
        name=name,
        privacy=privacy,
        iterations=rounds,
        multiplier=1.0 / mu,
    )


def sampled(
    name: str = "training", *, rounds: int = 100, multiplier: float = 1.0, rate: float = 0.01
) -> dict[str, Any]:
    """A document of rounds with Poisson sampling."""
    return doc(
        "adjacency=add-remove delta=1e-6 sampler=poisson",
        name=name,
        sampling_probability=rate,
        iterations=rounds,
        multiplier=multiplier,
    )


def stated(name: str = "vendor", **guarantee: Any) -> dict[str, Any]:
    """A document of a mechanism of which a guarantee is known."""
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": guarantee.get("delta", 1e-6)}
    mechanism: Mapping[str, Any] = {"kind": "stated"} | guarantee
    return {"pyaccount": 1, "name": name, "privacy": privacy, "mechanism": mechanism}


class Clock:
    """A clock that goes on by a second at each look, unless it is set."""

    def __init__(self, start: str = "2026-03-15T12:00:00+00:00") -> None:
        self.time = datetime.fromisoformat(start)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time.astimezone(UTC)
