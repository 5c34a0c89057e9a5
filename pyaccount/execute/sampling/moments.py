"""Prove claims without samples: by a moment of the likelihood ratio, and by the weight bound of a proposal.

Let f = dP/dQ be the likelihood ratio of the whole run. If a record is removed, an integer m ≥ 2 and Z_m ≥ E_Q f^m give

    δ_remove(ε) ≤ W_m(ε) = Z_m c_m e^{−(m−1)ε},   c_m = (m−1)^{m−1}/m^m

(the head of `rust/core/src/replicas/mod.rs` has the proof, and how Z_m is computed). ln W_m is convex in m, since ln
Z_m and ln c_m are: orders are tried from 2 on, until the bound grows. Several moments together give less than the best
of them (`risk.polynomials`), if there are four or more whose chains are small. Moments of large orders are computed
with few busy replicas, and Z_m includes a bound on what that leaves out (`rust/core/src/replicas/left_out.rs`). If a
record is added, every weight bound of a proposal bounds δ_add(ε), since δ_add(ε) is the mean of values that it bounds
(the head of `weight_bounds.rs` in `rust/core/src/montecarlo`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyaccount.directions import Direction
from pyaccount.errors import NumericsError
from pyaccount.execute.engine import Engine
from pyaccount.execute.sampling.all_moments import FEWEST, MOST, best_polynomial
from pyaccount.execute.sampling.jobs import Replicas
from pyaccount.plan.common import given
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.risk.polynomials import MomentPolynomial

#: The largest chain that is computed, whose tables take 16 bytes for each state; and the most states in all rounds
#: together, a minute of one core. The second line is for documents that ask for moments.
MOST_STATES, MOST_WORK = 4_000_000, 2e10
ASKED_STATES, ASKED_WORK = 16_000_000, 2e11
#: The largest order that is tried.
MOST_ORDER = 64
#: The number of moments that are computed before those of larger orders are predicted. In a search for an order, chains
#: with at most `CHEAP_WORK` states in all rounds together are all computed, and the best order is predicted this often.
KNOWN, CHEAP_WORK, PREDICTIONS = 3, 2e7, 3
#: If not all replicas may be busy at once: the least number that may, how many more are tried at most in one step, and
#: the most states in all rounds of such a chain. Its time is that of three passes: the chain, and twice for what is
#: left out.
LEAST_BUSY, BUSIER, FEW_WORK, FEW_PASSES = 3, 4, 1e8, 3.0
#: What a moment may leave out, in its logarithm. If more is left out, all replicas are allowed to be busy, if their
#: chain has at most `WHOLE_WORK` states in all rounds.
LITTLE, WHOLE_WORK = 1e-5, 2e9
#: For the proof of a claim, the orders with few busy replicas that are tried are 1/SPREAD of the order apart.
SPREAD = 8
#: A value that is this near to the least, relatively, is considered as good: a smaller order has a smaller chain.
NEARLY = 3e-3
#: The most states in all rounds of all chains whose moments are used together, which take seconds of one core; how
#: precisely ln Z_m is computed then, since terms nearly cancel; and the factor by which all moments together may
#: improve the best bound.
TOGETHER_WORK, TOGETHER_GAP, HOPED = 5e8, 1e-10, 5.0


@dataclass(frozen=True, slots=True)
class MomentProof:
    """A proof of a claim (ε, δ) without samples: upper bounds on δ(ε) in both directions, and where they come from."""

    #: Upper bounds on ln Z_m by the order m, the replicas whose order proves the claim, and the states of their chain.
    log_moments: Mapping[int, float]
    replicas: Replicas
    states: int
    remove: float
    add: float
    #: Bounds on the moments that bound δ together, if any, and the polynomial, if one moment did not prove the claim.
    together: tuple[tuple[float, float], ...] = ()
    polynomial: MomentPolynomial | None = None

    @property
    def delta(self) -> float:
        """The upper bound on δ(ε), the larger of both directions."""
        return max(self.remove, self.add)

    @property
    def order(self) -> int:
        """The order that proves the claim."""
        return self.replicas.order

    @property
    def most_busy(self) -> int | None:
        """The most replicas that may be busy at once, if not all may be."""
        return self.replicas.arguments["most_busy"]

    @property
    def log_moment(self) -> float:
        """The upper bound on ln Z_m of the order that proves the claim."""
        return self.log_moments[self.order]

    def bounded(self, mechanism: SampledMechanism, direction: Direction, epsilon: float) -> float:
        """Return an upper bound on δ at any ε in one direction of this proof's mechanism, from all known moments."""

        def removed(place: float) -> float:
            found = [chernoff(order, log, place) for order, log in self.log_moments.items()]
            return min([*found, *([self.polynomial.bound(place)] if self.polynomial else [])])

        if direction == "remove":
            own = best_polynomial(self.together, epsilon) if self.together else None
            bound = min([removed(epsilon), *([own.bound(epsilon)] if own else [])])
        else:
            bound = mechanism.bounded(direction, epsilon)
        return min(1.0, bound + mechanism.beyond(direction, epsilon, removed))


class Moments:
    """The moments of one mechanism, each computed when it is first needed."""

    def __init__(self, engine: Engine, mechanism: SampledMechanism) -> None:
        self.mechanism = mechanism
        self._engine = engine
        self._logs: dict[int, float] = {}
        #: The replicas with which each of these was computed.
        self._replicas: dict[int, Replicas] = {}
        #: (lower, upper) bounds on ln Z_0, ln Z_1, … that are close to each other.
        self._close: list[tuple[float, float]] = [(0.0, 0.0), (0.0, 0.0)]
        #: The number of busy replicas that is tried first.
        self._busy = LEAST_BUSY

    def affordable(self, order: int, states: float = ASKED_STATES, work: float = ASKED_WORK) -> bool:
        """Return whether there is a chain of this many replicas, and it is no larger than this."""
        if order > MOST_ORDER:
            return False
        price, few = Replicas(order).price(self.mechanism), self._most_busy(order)
        return (price is not None and price[0] <= states and price[1] <= work) or (
            few > 0 and work >= FEW_PASSES * FEW_WORK
        )

    def log(self, order: int) -> float:
        """Return an upper bound on ln Z_m. Raises `LimitError` at the engine's time limit."""
        if order not in self._logs:
            self._logs[order], self._replicas[order] = self._computed(order)
        return self._logs[order]

    def few_busy(self, order: int) -> bool:
        """Return whether the moment of an order, which must be known, was computed with few busy replicas."""
        return self._replicas[order].most_busy > 0

    def _most_busy(self, order: int) -> int:
        """Return the most replicas that may be busy at once in a small chain; 0 if all may be, or no chain is small."""
        whole = Replicas(order).price(self.mechanism)
        if whole is not None and whole[1] <= FEW_WORK:
            return 0
        most = 0
        for busy in range(LEAST_BUSY, order):
            price = Replicas(order, most_busy=busy).price(self.mechanism)
            if price is None or price[1] > FEW_WORK:
                break
            most = busy
        return most

    def _computed(self, order: int) -> tuple[float, Replicas]:
        """Return an upper bound on ln Z_m, and its replicas: the fewest busy ones that leave out little, if any."""
        core, most = self.mechanism.core, self._most_busy(order)
        known: dict[int, float] = {}

        def left_out(busy: int) -> float:
            _, known[busy], left = self._engine.log_moment(core, order, most_busy=busy)
            return left

        busy = enough_busy(left_out, LITTLE, most, min(self._busy, most)) if most else None
        if busy is not None:
            # Other orders need about as many busy replicas.
            self._busy = max(busy - 1, LEAST_BUSY)
            return known[busy], Replicas(order, most_busy=busy)
        whole = Replicas(order).price(self.mechanism)
        # A chain that leaves much out still gives a bound, though it may be far above the moment.
        if most and not (whole is not None and whole[1] <= WHOLE_WORK):
            if most not in known:
                left_out(most)
            return known[most], Replicas(order, most_busy=most)
        return self._engine.log_moment(core, order)[1], Replicas(order)

    def together(self, order: int) -> tuple[tuple[float, float], ...]:
        """Return close bounds on ln Z_0, …, ln Z_m, with m at most the order; none if too few chains are small.

        Raises `LimitError` at the engine's time limit.
        """
        most, work = 1, 0.0
        for one in range(2, min(order, MOST) + 1):
            price = Replicas(one).price(self.mechanism)
            work += math.inf if price is None else price[1]
            if work > TOGETHER_WORK:
                break
            most = one
        # For other samplers there are no lower bounds.
        if most < FEWEST or not self.mechanism.core.of_single_records:
            return ()
        for one in range(len(self._close), most + 1):
            lower, upper, _ = self._engine.log_moment(self.mechanism.core, one, gap=TOGETHER_GAP)
            self._close.append((lower, upper))
        return tuple(self._close[: most + 1])

    def polynomial(self, order: int, epsilon: float) -> MomentPolynomial | None:
        """Return the polynomial of all moments up to the order that bounds δ(ε) best; None if there are too few."""
        return best_polynomial(self.together(order), epsilon)

    def least(self, value: Callable[[int, float], float], work: float = ASKED_WORK) -> int:
        """Return about the smallest order m at which a function of m and ln Z_m, convex in m, is nearly least.

        `work` limits the states of a chain in all rounds. Chains grow fast with the order, so those of small orders are
        computed first and ln Z_m is extrapolated. It is then computed at the predicted minimum, and the prediction is
        repeated. Raises `NumericsError` if there is no chain at all, `LimitError` at the engine's time limit.
        """
        if not self.affordable(2):
            raise NumericsError("no chain of replicas is small enough: its states do not fit in the memory allowed")
        order, best = 2, value(2, self.log(2))
        while order <= KNOWN or self.affordable(order + 1, work=CHEAP_WORK):
            if not self.affordable(order + 1, work=work):
                return order
            found = value(order + 1, self.log(order + 1))
            if found >= best:
                return order
            order, best = order + 1, found
        last, slope = self.log(order), self.log(order) - self.log(order - 1)
        bend = slope - self.log(order - 1) + self.log(order - 2)
        further = [one for one in range(order, MOST_ORDER + 1) if self.affordable(one, work=work)]
        for _ in range(PREDICTIONS):
            predicted = {one: value(one, _extrapolated(last, slope, bend, one - order)) for one in further}
            top = _smallest(predicted)
            if top in self._logs:
                break
            more = top - order
            bend = 2.0 * (self.log(top) - last - more * slope) / (more * (more + 1))
        return _smallest({one: value(one, log) for one, log in self._logs.items()})

    def best(self, epsilon: float) -> int:
        """Return the order, of those whose moments are known, that bounds δ(ε) best."""
        return min(self._logs, key=lambda order: chernoff(order, self._logs[order], epsilon))

    def proof(self, order: int, epsilon: float, claim: float = 0.0) -> MomentProof:
        """Return what the moment of this order, and the bounds for added records, prove about δ(ε).

        If that is more than the claim, all moments up to the order are used together, if they give less.
        """
        bound, mechanism = partial(chernoff, order, self.log(order)), self.mechanism
        price, polynomial = self._replicas[order].price(mechanism), None
        single = bound(epsilon) + mechanism.beyond("remove", epsilon, bound)
        if single > claim:
            polynomial = self.polynomial(order, epsilon)
        if polynomial is not None:
            several = polynomial.bound(epsilon) + mechanism.beyond("remove", epsilon, polynomial.bound)
            single, polynomial = (several, polynomial) if several < single else (single, None)
        return MomentProof(
            dict(sorted(self._logs.items())),
            self._replicas[order],
            given(price)[0],
            single,
            mechanism.bounded("add", epsilon) + mechanism.beyond("add", epsilon),
            self.together(order),
            polynomial,
        )


def enough_busy(
    left_out: Callable[[int], float], most_left_out: float, most_busy: int, busy: int = LEAST_BUSY
) -> int | None:
    """Return about the fewest busy replicas, from `busy` on, that leave out little; None if over `most_busy` are needed.

    The part left out decreases about geometrically with each further replica. If it is infinite, no number suffices.
    """
    before: tuple[int, float] | None = None
    while busy <= most_busy:
        found = left_out(busy)
        if found <= most_left_out:
            return busy
        if not math.isfinite(found):
            return None
        excess = math.log(found / most_left_out)
        fell = 0.0 if before is None else (before[1] - excess) / (busy - before[0])
        before, busy = (busy, excess), busy + (min(max(round(excess / fell), 1), BUSIER) if fell > 0.0 else 1)
    return None


def has_moments(mechanism: SampledMechanism) -> bool:
    """Return whether moments can be computed: there is a chain of replicas, and no phases are composed."""
    return not mechanism.curves and "replace" not in mechanism.directions and Replicas(2).price(mechanism) is not None


def moment_proof(engine: Engine, mechanism: SampledMechanism, epsilon: float, delta: float) -> MomentProof | None:
    """Return a proof that δ(ε) is at most `delta`, or None if moments do not give one at a moderate cost.

    Raises `LimitError` at the engine's time limit.
    """
    if not has_moments(mechanism):
        return None
    if mechanism.bounded("add", epsilon) + mechanism.beyond("add", epsilon) > delta:
        return None
    moments, known, least, order = Moments(engine, mechanism), [(1, 0.0)], math.inf, 2
    while order <= MOST_ORDER:
        affordable = moments.affordable(order, MOST_STATES, MOST_WORK)
        if not affordable or (order > KNOWN and _predicted(known, epsilon) > HOPED * delta):
            return None
        known.append((order, moments.log(order)))
        remove = chernoff(order, known[-1][1], epsilon)
        if remove <= HOPED * delta and (proof := moments.proof(order, epsilon, delta)).delta <= delta:
            return proof
        if remove >= least:
            return None
        # Chains of few busy replicas have about the same size, and orders near each other prove much the same.
        least, order = remove, order + (max(order // SPREAD, 1) if moments.few_busy(order) else 1)
    return None


def chernoff(order: int, log_moment: float, epsilon: float) -> float:
    """Return W_m(ε), an upper bound on δ_remove(ε), from an upper bound on ln Z_m, rounded up."""
    terms = (log_moment, (order - 1) * math.log(order - 1), -order * math.log(order), -(order - 1) * epsilon)
    # Logarithms, products and the sum are rounded by a few units of 1.1e-16 of their terms, exp by one more.
    exponent = math.fsum(terms) + 1e-15 * (4.0 + sum(abs(term) for term in terms))
    return 1.0 if exponent >= 0.0 else min(1.0, math.nextafter(math.exp(exponent), 1.0))


def _smallest(values: Mapping[int, float]) -> int:
    """Return the smallest order whose value is nearly the least."""
    least = min(values.values())
    return min(order for order, value in values.items() if value <= least * (1.0 + NEARLY))


def inverse(order: int, log_moment: float, delta: float) -> float:
    """Return the ε ≥ 0 at which W_m is this δ, not rounded in any direction."""
    exponent = log_moment + (order - 1) * math.log(order - 1) - order * math.log(order) - math.log(delta)
    return max(exponent / (order - 1), 0.0)


def _predicted(known: list[tuple[int, float]], epsilon: float) -> float:
    """Predict the least W_m over larger m, for constant second differences of ln Z_m: decides only whether to go on."""
    (first, low), (middle, log), (order, last) = known[-3:]
    slope = (last - log) / (order - middle)
    bend = 2.0 * (slope - (log - low) / (middle - first)) / (order - first)
    return min(
        chernoff(order + more, _extrapolated(last, slope, bend, more, order - middle), epsilon)
        for more in range(MOST_ORDER - order + 1)
    )


def _extrapolated(last: float, slope: float, bend: float, more: int, step: int = 1) -> float:
    """Predict ln Z_m `more` orders further, for constant second differences; `slope` is that of the last step."""
    return last + more * slope + 0.5 * more * (more + step) * bend
