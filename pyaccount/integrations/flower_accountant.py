"""Flower: a `PrivacyAccountant` for its strategies with fixed clipping, whose ε is certified.

    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 0.1, 50, accountant=FlowerAccountant(config))

Flower's strategies take any object of this protocol. They check the weights and the number of clients, count each release, and
stop at `max_epsilon`. What was released is described by the document that `pyaccount.adapters.flower` reads from the state. For
the sampling `no-amplification` its neighbours are zero-out, since Flower's relation is not true of draws of a fixed size; the
head of that module explains why. It needs flwr.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyaccount.adapters.flower import LAYOUT, from_accountant
from pyaccount.errors import StateError, importing
from pyaccount.integrations.answers import delta_at, epsilon_at

with importing("flwr", by=__name__):
    from flwr.serverapp import GaussianPrivacyEvent, PrivacyConfig, PrivacySpent

#: The name of the method, in states and in what was spent.
METHOD = "pyaccount"

CountedEvent = tuple[GaussianPrivacyEvent, int]


class FlowerAccountant:
    """The releases of a strategy, whose ε is certified."""

    def __init__(self, config: PrivacyConfig, *, adjacency: str | None = None) -> None:
        """Take Flower's configuration, and the adjacency of the document, by default that of `from_accountant`."""
        self.config, self.adjacency = config, adjacency
        self._releases: list[CountedEvent] = []

    @property
    def num_releases(self) -> int:
        """Return the number of releases."""
        return sum(count for _, count in self._releases)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Count an event `count` times. Raises `DocumentError` for an event that no document describes; then none is counted."""
        releases = self._with(event, count)
        from_accountant(_state_of(self.config, releases), adjacency=self.adjacency)
        self._releases = releases

    def get_epsilon(self, delta: float) -> float:
        """Return an upper bound on ε of all releases at `delta`. Raises the errors of `pyaccount.certify`."""
        return self._epsilon(self._releases, delta)

    def get_delta(self, epsilon: float) -> float:
        """Return an upper bound on δ of all releases at `epsilon`. Raises the errors of `pyaccount.certify`."""
        return delta_at(self.document(), epsilon) if self._releases else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return an upper bound on ε at `delta`, by default that of the configuration, in Flower's form."""
        at = self.config.target_delta if delta is None else delta
        return PrivacySpent(self.get_epsilon(at), at, self.num_releases, METHOD)

    def would_exceed(self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Return true unless ε is certified to be at most `max_epsilon` with an event more; by default the configuration's."""
        limit = self.config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon: give it here or in PrivacyConfig")
        return self._epsilon(self._with(event, count), self.config.target_delta) > limit

    def document(self) -> dict[str, Any]:
        """Return the mechanism document of the releases, with ε as the blank. Raises `DocumentError` if there are none."""
        return from_accountant(self, adjacency=self.adjacency)

    def state_dict(self) -> dict[str, object]:
        """Return the state as plain data, in the layout of Flower's own accountant."""
        return _state_of(self.config, self._releases)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the releases of a state, or of one of Flower's `RdpAccountant`. Raises `StateError` for another configuration."""
        if (asked := _state_of(self.config, [])["config"]) != state.get("config"):
            raise StateError(f"the state has the configuration {state.get('config')!r}, and this accountant {asked!r}")
        if state.get("compositions"):
            from_accountant(state, adjacency=self.adjacency)
        entries = state.get("compositions", ())
        self._releases = [(GaussianPrivacyEvent(**entry["event"]), entry["count"]) for entry in entries]

    def _with(self, event: GaussianPrivacyEvent, count: int) -> list[CountedEvent]:
        """Return the releases and an event more; equal neighbours are one entry."""
        if self._releases and self._releases[-1][0] == event:
            return [*self._releases[:-1], (event, self._releases[-1][1] + count)]
        return [*self._releases, (event, count)]

    def _epsilon(self, releases: Sequence[CountedEvent], delta: float) -> float:
        return _epsilon_of(self.config, tuple(releases), self.adjacency, delta) if releases else 0.0


def _state_of(config: PrivacyConfig, releases: Sequence[CountedEvent]) -> dict[str, object]:
    return {
        "schema_version": LAYOUT,
        "backend": METHOD,
        "config": {name: getattr(value, "value", value) for name, value in vars(config).items()},
        "compositions": [{"event": dict(vars(event)), "count": count} for event, count in releases],
    }


#: A strategy asks for the same ε several times in a round.
@lru_cache(maxsize=64)
def _epsilon_of(
    config: PrivacyConfig, releases: tuple[CountedEvent, ...], adjacency: str | None, delta: float
) -> float:
    return epsilon_at(from_accountant(_state_of(config, releases), adjacency=adjacency), delta)
