"""dp_accounting: a `PrivacyAccountant` whose answers are certified.

    accountant = EventAccountant().compose(event, 1000)
    accountant.get_epsilon(1e-5)

It takes the place of `RdpAccountant` and `PLDAccountant`, also in `calibrate_dp_mechanism`. The events are those that
`pyaccount.adapters.dp_accounting` reads, and each answer is the upper end of a certificate's interval. It needs dp_accounting.
"""

from __future__ import annotations

import math
from typing import Any

from pyaccount.adapters.dp_accounting import bodies_of
from pyaccount.adapters.reading import BodyMapping, document
from pyaccount.document.loading import load
from pyaccount.errors import DocumentError, importing
from pyaccount.integrations.answers import delta_at, epsilon_at
from pyaccount.running import compile_document

with importing("dp_accounting", by=__name__, package="dp-accounting"):
    from dp_accounting import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        ComposedDpEvent,
        DpEvent,
        NeighboringRelation,
        NonPrivateDpEvent,
        PrivacyAccountant,
        SelfComposedDpEvent,
    )

#: The adjacency of each relation of dp_accounting.
ADJACENCIES = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: "add-remove",
    NeighboringRelation.REPLACE_ONE: "replace-one",
    NeighboringRelation.REPLACE_SPECIAL: "zero-out",
}


class EventAccountant(PrivacyAccountant):  # type: ignore[misc, unused-ignore]
    """The events that were composed, as phases of a document."""

    def __init__(self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        super().__init__(neighboring_relation)
        self._phases: list[BodyMapping] = []
        self._non_private = False

    def get_epsilon(self, target_delta: float) -> float:
        """Return an upper bound on ε of all events at `target_delta`; infinity if no ε holds there.

        Raises `ValueError` for a δ that is no probability, and the errors of `pyaccount.certify`.
        """
        if self._non_private:
            return math.inf
        return epsilon_at(self.document(), target_delta) if self._phases else 0.0

    def get_delta(self, target_epsilon: float) -> float:
        """Return an upper bound on δ of all events at `target_epsilon`, which may be infinite.

        Raises `ValueError` for an ε that is no number of at least 0, and the errors of `pyaccount.certify`.
        """
        if self._non_private:
            return 1.0
        return delta_at(self.document(), target_epsilon) if self._phases else 0.0

    def document(self) -> dict[str, Any]:
        """Return the mechanism document of all events, with ε as the blank. Raises `DocumentError` if nothing was released."""
        return self._described(self._phases)

    def _described(self, phases: list[BodyMapping]) -> dict[str, Any]:
        # The δ of the document is that of no question: `answers` puts another one in its place.
        adjacency = ADJACENCIES[self.neighboring_relation]
        return document(phases, name="events", adjacency=adjacency, delta=0.5, epsilon="solve", group_size=1)

    def _maybe_compose(self, event: DpEvent, count: int, do_compose: bool) -> Any:
        """Compose an event `count` times, if asked to; return which part of it has no bound, and why, or None.

        With a count of 0, an event is only examined.
        """
        if isinstance(event, SelfComposedDpEvent):
            return self._maybe_compose(event.event, event.count * count, do_compose)
        if isinstance(event, ComposedDpEvent):
            tried = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((refused for refused in tried if refused is not None), None)
        if _without_noise(event):
            self._non_private |= do_compose and count > 0
            return None
        try:
            phases = bodies_of(SelfComposedDpEvent(event, max(count, 1)), ADJACENCIES[self.neighboring_relation])
            if phases and not do_compose:
                compile_document(load(self._described(phases)))
        except DocumentError as error:
            return self.CompositionErrorDetails(event, str(error))
        if do_compose and count > 0:
            self._phases += phases
        return None


def _without_noise(event: DpEvent) -> bool:
    """Return whether an event, or the one that it draws records for, is stated to have no guarantee, or has noise 0."""
    if isinstance(event, NonPrivateDpEvent) or getattr(event, "noise_multiplier", None) == 0:
        return True
    inner = getattr(event, "event", None)
    return inner is not None and getattr(event, "sampling_probability", None) != 0 and _without_noise(inner)
