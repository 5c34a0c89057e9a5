"""Claims that are proven without a sample: by a moment of the likelihood ratio, and by the weight bound of a proposal.

Let f = dP/dQ be the likelihood ratio of the whole run. If a record is removed, an integer m ≥ 2 and Z_m ≥ E_Q f^m give

    δ_remove(ε) ≤ W_m(ε) = Z_m c_m e^{−(m−1)ε},   c_m = (m−1)^{m−1}/m^m

(the head of `rust/core/src/replicas/mod.rs` has the proof, and how Z_m is computed). ln W_m is convex in m, since ln Z_m and
ln c_m are: orders are tried from 2 on, until the bound grows. If a record is added, every weight bound of a proposal bounds
δ_add(ε), since δ_add(ε) is the mean of values that it bounds (the head of `rust/core/src/montecarlo/proposal.rs`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.execute.engine import Engine
    from pyaccount.plan.sampled import SampledMechanism

#: The largest chain that is computed: its tables take 16 bytes for each state. And the most states in all rounds together, a
#: minute of one core.
MOST_STATES, MOST_WORK = 4_000_000, 2e10
#: The largest order that is tried.
MOST_ORDER = 64
#: Orders whose moments are known before those of larger orders are predicted.
KNOWN = 3


@dataclass(frozen=True, slots=True)
class MomentProof:
    """What proves a claim (ε, δ) without samples: upper bounds on δ(ε) in both directions, and what they follow from."""

    #: Upper bounds on ln Z_m for m = 2, 3, … up to the order that proves the claim, and the states of its largest chain.
    log_moments: tuple[float, ...]
    states: int
    remove: float
    add: float

    @property
    def order(self) -> int:
        """The order m of the moment that proves the claim."""
        return len(self.log_moments) + 1

    @property
    def delta(self) -> float:
        """The larger of both directions."""
        return max(self.remove, self.add)

    def bounded(self, mechanism: SampledMechanism, direction: Direction, epsilon: float) -> float:
        """Return an upper bound on δ at any ε in one direction of the mechanism that this is about, from all moments known."""

        def removed(place: float) -> float:
            return min(chernoff(order, log, place) for order, log in enumerate(self.log_moments, start=2))

        bound = removed(epsilon) if direction == "remove" else mechanism.bounded(direction, epsilon)
        return min(1.0, bound + mechanism.beyond(direction, epsilon, removed))


def moment_proof(engine: Engine, mechanism: SampledMechanism, epsilon: float, delta: float) -> MomentProof | None:
    """Return a proof that δ(ε) is at most `delta`, or None if moments do not give one at a moderate price.

    Only mechanisms with a chain of replicas have one, without phases that are composed beside them. Raises `LimitError` at the
    engine's time limit.
    """
    core = mechanism.core
    if mechanism.curves or "replace" in mechanism.directions or core.replicas(2) is None:
        return None
    add = mechanism.bounded("add", epsilon) + mechanism.beyond("add", epsilon)
    logs = [0.0]
    least = math.inf
    for order in range(2, MOST_ORDER + 1):
        replicas = core.replicas(order)
        affordable = replicas is not None and replicas[0] <= MOST_STATES and replicas[1] <= MOST_WORK
        if add > delta or not affordable or (order > KNOWN and _predicted(logs, epsilon) > delta):
            return None
        assert replicas is not None
        logs.append(engine.log_moment(core, order))
        bound = partial(chernoff, order, logs[-1])
        remove = bound(epsilon)
        if remove <= delta:
            remove += mechanism.beyond("remove", epsilon, bound)
            if remove <= delta:
                return MomentProof(tuple(logs[1:]), replicas[0], remove, add)
        if remove >= least:
            return None
        least = remove
    return None


def chernoff(order: int, log_moment: float, epsilon: float) -> float:
    """Return W_m(ε), an upper bound on δ_remove(ε), from an upper bound on ln Z_m, rounded up."""
    terms = (log_moment, (order - 1) * math.log(order - 1), -order * math.log(order), -(order - 1) * epsilon)
    # Logarithms, products and the sum are rounded by a few units of 1.1e-16 of their terms, the exponential by one more.
    exponent = math.fsum(terms) + 1e-15 * (4.0 + sum(abs(term) for term in terms))
    return 1.0 if exponent >= 0.0 else min(1.0, math.nextafter(math.exp(exponent), 1.0))


def _predicted(logs: list[float], epsilon: float) -> float:
    """The least W_m over all larger m if second differences of ln Z_m stay as they are; decides only whether to go on."""
    last, order = logs[-1], len(logs)
    slope, bend = logs[-1] - logs[-2], logs[-1] - 2.0 * logs[-2] + logs[-3]
    moments = [last + more * slope + 0.5 * more * (more + 1) * bend for more in range(MOST_ORDER - order + 1)]
    return min(chernoff(order + more, moment, epsilon) for more, moment in enumerate(moments))
