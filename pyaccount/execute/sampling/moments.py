"""Claims that are proven without a sample: by a moment of the likelihood ratio, and by the weight bound of a proposal.

Let f = dP/dQ be the likelihood ratio of the whole run. If a record is removed, an integer m ≥ 2 and Z_m ≥ E_Q f^m give

    δ_remove(ε) ≤ W_m(ε) = Z_m c_m e^{−(m−1)ε},   c_m = (m−1)^{m−1}/m^m

(the head of `rust/core/src/replicas/mod.rs` has the proof, and how Z_m is computed). ln W_m is convex in m, since ln Z_m and
ln c_m are: orders are tried from 2 on, until the bound grows. Several moments together give less than the best of them
(`risk.polynomials`), where there are four or more whose chains are small. Moments of large orders are computed with few busy
replicas, and what that leaves out is inside of Z_m (`rust/core/src/replicas/left_out.rs`). If a record is added, every weight
bound of a proposal bounds δ_add(ε), since δ_add(ε) is the mean of values that it bounds (the head of `proposal.rs` in
`rust/core/src/montecarlo/proposals`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyaccount.errors import NumericsError
from pyaccount.execute.sampling.all_moments import FEWEST, MOST, best_polynomial
from pyaccount.execute.sampling.jobs import Replicas
from pyaccount.plan.drawing import DrawingRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyaccount.directions import Direction
    from pyaccount.execute.engine import Engine
    from pyaccount.plan.sampled import SampledMechanism
    from pyaccount.risk.polynomials import MomentPolynomial

#: The largest chain that is computed: its tables take 16 bytes for each state. And the most states in all rounds together, a
#: minute of one core. Where a document asks for moments they are followed further.
MOST_STATES, MOST_WORK = 4_000_000, 2e10
ASKED_STATES, ASKED_WORK = 16_000_000, 2e11
#: The largest order that is tried.
MOST_ORDER = 64
#: Orders whose moments are known before those of larger orders are predicted; where an order is looked for, all whose chains have
#: so many states in all rounds together, and how often it is predicted.
KNOWN, CHEAP_WORK, PREDICTIONS = 3, 2e7, 3
#: Where not all replicas may be busy at once: the least that may, how many more at most are tried at a time, and the most states
#: in all rounds of such a chain. It is computed, and twice for what is left out.
LEAST_BUSY, BUSIER, FEW_WORK, FEW_PASSES = 3, 4, 1e8, 3.0
#: What a moment may have left out of its logarithm, or else all replicas are busy where their chain has so many states in all
#: rounds at most.
LITTLE, WHOLE_WORK = 1e-5, 2e9
#: Where a claim is looked at, orders of few busy replicas are apart by such a part of them.
SPREAD = 8
#: A value so near to the least, relatively, is as good: a smaller order has a smaller chain.
NEARLY = 3e-3
#: The most states in all rounds of all chains whose moments are taken together, seconds of one core; how closely ln Z_m is
#: computed then, since they nearly cancel; and how far below the best single bound that by all of them is hoped to be at most.
TOGETHER_WORK, TOGETHER_GAP, HOPED = 5e8, 1e-10, 5.0


@dataclass(frozen=True, slots=True)
class MomentProof:
    """What proves a claim (ε, δ) without samples: upper bounds on δ(ε) in both directions, and what they follow from."""

    #: Upper bounds on ln Z_m by the order m, the replicas whose order proves the claim, and the states of their chain.
    log_moments: Mapping[int, float]
    replicas: Replicas
    states: int
    remove: float
    add: float
    #: The moments that bound δ together, where there are some, and the polynomial of the claim, where one moment was not enough.
    together: tuple[tuple[float, float], ...] = ()
    polynomial: MomentPolynomial | None = None

    @property
    def delta(self) -> float:
        """The larger of both directions."""
        return max(self.remove, self.add)

    @property
    def order(self) -> int:
        """The order that proves the claim."""
        return self.replicas.order

    @property
    def log_moment(self) -> float:
        """The upper bound on ln Z_m of the order that proves the claim."""
        return self.log_moments[self.order]

    def bounded(self, mechanism: SampledMechanism, direction: Direction, epsilon: float) -> float:
        """Return an upper bound on δ at any ε in one direction of the mechanism that this is about, from all moments known."""

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
    """The moments of one mechanism, each computed when it is asked for first."""

    def __init__(self, engine: Engine, mechanism: SampledMechanism, rule: DrawingRule) -> None:
        self.mechanism = mechanism
        self._engine = engine
        self._logs: dict[int, float] = {}
        #: The replicas that each of these was computed with.
        self._replicas: dict[int, Replicas] = {}
        #: Bounds on ln Z_0, ln Z_1, … that are close to each other, and whether they are looked at.
        self._close: list[tuple[float, float]] = [(0.0, 0.0), (0.0, 0.0)]
        #: The busy replicas that a look begins with.
        self._busy = LEAST_BUSY
        self._allowed, self._few = rule.includes(DrawingRule.SPARING), rule.includes(DrawingRule.FEW_BUSY)

    def affordable(self, order: int, states: float = ASKED_STATES, work: float = ASKED_WORK) -> bool:
        """Whether there is a chain of so many replicas, and it is no larger than this."""
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
        """Whether the moment of an order, which was asked for, was computed with few busy replicas."""
        return self._replicas[order].most_busy > 0

    def _most_busy(self, order: int) -> int:
        """The most replicas of so many that may be busy at once in a small chain; 0 where all may, or in none."""
        whole = Replicas(order).price(self.mechanism)
        if not self._few or (whole is not None and whole[1] <= FEW_WORK):
            return 0
        most = 0
        for busy in range(LEAST_BUSY, order):
            price = Replicas(order, most_busy=busy).price(self.mechanism)
            if price is None or price[1] > FEW_WORK:
                break
            most = busy
        return most

    def _computed(self, order: int) -> tuple[float, Replicas]:
        """An upper bound on ln Z_m, by as few busy replicas as leave little out, if there are such."""
        core, most = self.mechanism.core, self._most_busy(order)
        known: dict[int, float] = {}

        def left_out(busy: int) -> float:
            _, known[busy], left = self._engine.log_moment(core, order, most_busy=busy)
            return left

        busy = enough_busy(left_out, LITTLE, most, min(self._busy, most)) if most else None
        if busy is not None:
            # Other orders need about as many.
            self._busy = max(busy - 1, LEAST_BUSY)
            return known[busy], Replicas(order, most_busy=busy)
        whole = Replicas(order).price(self.mechanism)
        # A chain that leaves much out may be far above the moment, and is still a bound.
        if most and not (whole is not None and whole[1] <= WHOLE_WORK):
            if most not in known:
                left_out(most)
            return known[most], Replicas(order, most_busy=most)
        return self._engine.log_moment(core, order)[1], Replicas(order)

    def together(self, order: int) -> tuple[tuple[float, float], ...]:
        """Return bounds on ln Z_0, …, ln Z_m, m the order or less, for all moments at once; none where too few chains are small.

        Raises `LimitError` at the engine's time limit.
        """
        most, work = 1, 0.0
        for one in range(2, min(order, MOST) + 1):
            price = Replicas(one).price(self.mechanism)
            work += math.inf if price is None else price[1]
            if work > TOGETHER_WORK:
                break
            most = one
        # Of other samplers nothing is known from below.
        if not self._allowed or most < FEWEST or not self.mechanism.core.of_single_records:
            return ()
        for one in range(len(self._close), most + 1):
            lower, upper, _ = self._engine.log_moment(self.mechanism.core, one, gap=TOGETHER_GAP)
            self._close.append((lower, upper))
        return tuple(self._close[: most + 1])

    def polynomial(self, order: int, epsilon: float) -> MomentPolynomial | None:
        """Return the polynomial of all moments up to the order that bounds δ(ε) best; None where there are too few."""
        return best_polynomial(self.together(order), epsilon)

    def least(self, value: Callable[[int, float], float], work: float = ASKED_WORK) -> int:
        """Return about the smallest order at which a function of the order m and of ln Z_m, convex in m, is nearly least.

        Of chains with no more states in all rounds than this. They grow fast with the order: those of small orders show how ln
        Z_m goes on, and it is computed where the function is predicted to be least, and once more where it is then. Raises
        `NumericsError` where there is no chain at all.
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
        """Return the order, of those whose moments were asked for, that bounds δ(ε) best."""
        return min(self._logs, key=lambda order: chernoff(order, self._logs[order], epsilon))

    def proof(self, order: int, epsilon: float, claim: float = 0.0) -> MomentProof:
        """Return what the moment of this order, and what is known of added records, say of δ(ε).

        Where that is more than the claim, all moments up to the order together, if that is less.
        """
        bound, mechanism = partial(chernoff, order, self.log(order)), self.mechanism
        price, polynomial = self._replicas[order].price(mechanism), None
        assert price is not None
        single = bound(epsilon) + mechanism.beyond("remove", epsilon, bound)
        if single > claim:
            polynomial = self.polynomial(order, epsilon)
        if polynomial is not None:
            several = polynomial.bound(epsilon) + mechanism.beyond("remove", epsilon, polynomial.bound)
            single, polynomial = (several, polynomial) if several < single else (single, None)
        return MomentProof(
            dict(sorted(self._logs.items())),
            self._replicas[order],
            price[0],
            single,
            mechanism.bounded("add", epsilon) + mechanism.beyond("add", epsilon),
            self.together(order),
            polynomial,
        )


def enough_busy(
    left_out: Callable[[int], float], most_left_out: float, most_busy: int, busy: int = LEAST_BUSY
) -> int | None:
    """Return about the fewest busy replicas, from these on, that leave little out; None where that takes more than so many.

    What is left out falls about geometrically with each more. Where it is infinite no number will do.
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
    """Whether moments of a mechanism are known: it has a chain of replicas, and no phases are composed beside it."""
    return not mechanism.curves and "replace" not in mechanism.directions and Replicas(2).price(mechanism) is not None


def moment_proof(
    engine: Engine, mechanism: SampledMechanism, epsilon: float, delta: float, rule: DrawingRule
) -> MomentProof | None:
    """Return a proof that δ(ε) is at most `delta`, or None if moments do not give one at a moderate price.

    Raises `LimitError` at the engine's time limit.
    """
    if not has_moments(mechanism):
        return None
    if mechanism.bounded("add", epsilon) + mechanism.beyond("add", epsilon) > delta:
        return None
    hoped = HOPED if rule.includes(DrawingRule.SPARING) else 1.0
    moments, known, least, order = Moments(engine, mechanism, rule), [(1, 0.0)], math.inf, 2
    while order <= MOST_ORDER:
        affordable = moments.affordable(order, MOST_STATES, MOST_WORK)
        if not affordable or (order > KNOWN and _predicted(known, epsilon) > hoped * delta):
            return None
        known.append((order, moments.log(order)))
        remove = chernoff(order, known[-1][1], epsilon)
        if remove <= hoped * delta and (proof := moments.proof(order, epsilon, delta)).delta <= delta:
            return proof
        if remove >= least:
            return None
        # Chains of few busy replicas are all of a size, and orders that are near each other prove much the same.
        least, order = remove, order + (max(order // SPREAD, 1) if moments.few_busy(order) else 1)
    return None


def chernoff(order: int, log_moment: float, epsilon: float) -> float:
    """Return W_m(ε), an upper bound on δ_remove(ε), from an upper bound on ln Z_m, rounded up."""
    terms = (log_moment, (order - 1) * math.log(order - 1), -order * math.log(order), -(order - 1) * epsilon)
    # Logarithms, products and the sum are rounded by a few units of 1.1e-16 of their terms, the exponential by one more.
    exponent = math.fsum(terms) + 1e-15 * (4.0 + sum(abs(term) for term in terms))
    return 1.0 if exponent >= 0.0 else min(1.0, math.nextafter(math.exp(exponent), 1.0))


def _smallest(values: Mapping[int, float]) -> int:
    """The smallest order whose value is nearly the least."""
    least = min(values.values())
    return min(order for order, value in values.items() if value <= least * (1.0 + NEARLY))


def inverse(order: int, log_moment: float, delta: float) -> float:
    """Return the ε ≥ 0 at which W_m is this δ, not rounded in any direction."""
    exponent = log_moment + (order - 1) * math.log(order - 1) - order * math.log(order) - math.log(delta)
    return max(exponent / (order - 1), 0.0)


def _predicted(known: list[tuple[int, float]], epsilon: float) -> float:
    """The least W_m over all larger m if second differences of ln Z_m stay as they are; decides only whether to go on."""
    (first, low), (middle, log), (order, last) = known[-3:]
    slope = (last - log) / (order - middle)
    bend = 2.0 * (slope - (log - low) / (middle - first)) / (order - first)
    return min(
        chernoff(order + more, _extrapolated(last, slope, bend, more, order - middle), epsilon)
        for more in range(MOST_ORDER - order + 1)
    )


def _extrapolated(last: float, slope: float, bend: float, more: int, step: int = 1) -> float:
    """ln Z_m so many orders further, if second differences stay as they are; the slope is that of the last step."""
    return last + more * slope + 0.5 * more * (more + step) * bend
