"""A fresh test of a sampled guarantee: the checker draws its own samples, and bets on them.

It needs no trust in the samples of the certificate, nor in how they were drawn. δ(ε) is tested in both directions, at the δ
that is claimed. A false claim is proven with probability at most q: it is false in one direction, and only the test of that
direction need err. Every number is exact or rounded against the bet (`normals`, `tuples`, `ratio`, `bets`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Protocol

from ..enclosures import exp, up
from .bets import Bets
from .means import Shifted, bounded, planned
from .normals import normals
from .process import Bytes, Outcomes, Process, TupleSource
from .wide import exponential, logarithm

#: The probability with which a false claim is proven.
FAILURE = Fraction(1, 10**10)
#: How many numbers the tables of tuples may have, and how many replicas there may be.
MOST_NUMBERS, MOST_REPLICAS = 6_000_000, 16
#: Samples of an added record are not drawn if one may be more than this many times δ: one mean takes fewer.
MOST_RATIO = 3000

#: Draws a sample, rounded up, in units of 2^−bits; None stands for the largest one that there can be.
SampleFunction = Callable[[int], int | None]
#: The tables of tuples that were built, by process and number of replicas.
Tables = dict[tuple[Process, int], TupleSource]


class ClaimUnderTest(NamedTuple):
    """The claim δ(ε) < δ, the probability q with which a false one may be proven, and where random bytes come from."""

    epsilon: Fraction
    delta: Fraction
    random_bytes: Bytes
    #: Processor time that may be spent, in seconds.
    seconds: float
    log: Callable[[str], None] = lambda line: None
    failure: Fraction = FAILURE


class Tested(NamedTuple):
    """What became of the test of one direction."""

    direction: str
    proven: bool
    words: str
    samples: int = 0
    mean: float | None = None


class SampleSource(Protocol):
    """Samples V ≥ 0 of a direction, E V = δ(ε)."""

    weight_bound: Fraction
    words: str

    def sampler(self, random_bytes: Bytes) -> SampleFunction:
        """Return a function that draws V."""
        ...


class Removed:
    """Samples of δ_remove from f^m (section 10.1): V = ρ·(f − e^ε)₊/f^m, ρ ≤ Z, V ≤ Z·c_m·e^(−(m−1)ε), c_m = (m−1)^(m−1)/m^m."""

    def __init__(self, process: Process, tuples: TupleSource, epsilon: Fraction) -> None:
        """Take the tables of m replicas; Z is their total."""
        m = tuples.replicas
        self._process, self._tuples, self._epsilon = process, tuples, epsilon
        largest = Fraction((m - 1) ** (m - 1), m**m) * exponential(-(m - 1) * epsilon)
        self.weight_bound, self.words = Fraction(tuples.total, tuples.unit) * largest, f"samples of f^{m}"

    def sampler(self, random_bytes: Bytes) -> SampleFunction:
        """Return a function that draws V ≤ Z·(f₊ − e^ε)₊/f₋^m, where f₋ ≤ f ≤ f₊ for all outcomes in the cells drawn."""
        process, tuples, m, one = self._process, self._tuples, self._tuples.replicas, Fraction(1)
        outcomes, ratio = Outcomes(process.rounds, process.columns, m * process.largest()), process.ratio(one)
        least = exp((self._epsilon.numerator << ratio.bits) // self._epsilon.denominator, ratio.bits) - 2
        error = up(ratio.error, 64)

        def draw(bits: int) -> int | None:
            shifts, noise = tuples.draw(random_bytes), normals(process.rounds, random_bytes)
            f = None if shifts is None or noise is None else ratio.at(outcomes.products(noise, shifts, one))
            if f is None:
                return None
            margin = (f * error >> 64) + 2
            gain = f + margin - least
            if gain <= 0:
                return 0
            value: int = (tuples.total * gain << (m - 1) * ratio.bits + bits) // (tuples.unit * (f - margin) ** m) + 1
            return value

        return draw


class Added:
    """Samples of δ_add from Σ_x w_x N(−τCx, I): V = (1 − e^ε·f)₊/g, which Hölder's inequality bounds; τ = 0: g = 1 and V ≤ 1."""

    def __init__(self, process: Process, epsilon: Fraction, tau: Fraction, weight_bound: Fraction) -> None:
        """Take τ, a multiple of 1/16, and the bound on a sample."""
        self._process, self._epsilon, self._tau, self.weight_bound = process, epsilon, tau, weight_bound
        self.words = f"samples with means scaled by −{float(tau)}" if tau else "plain samples"

    def sampler(self, random_bytes: Bytes) -> SampleFunction:
        """Return a function that draws V ≤ (1 − e^ε·f₋)₊/g₋."""
        process, tau = self._process, self._tau
        outcomes = Outcomes(process.rounds, process.columns, max(1, math.ceil(tau)) * process.largest())
        ratio, density = process.ratio(Fraction(1)), process.ratio(-tau)
        least = exp((self._epsilon.numerator << ratio.bits) // self._epsilon.denominator, ratio.bits) - 2
        errors = up(ratio.error, 64), up(density.error, 64)

        def draw(bits: int) -> int | None:
            pattern = process.pattern(random_bytes) if tau else []
            noise = normals(process.rounds, random_bytes)
            if pattern is None or noise is None:
                return None
            products = outcomes.products(noise, pattern, -tau)
            f = ratio.at(products)
            if f is None:
                return None
            f -= (f * errors[0] >> 64) + 2
            gain = (1 << bits) - (f * least << bits >> 2 * ratio.bits)
            if gain <= 0 or not tau:
                return max(0, gain)
            g = density.at(products)
            if g is None:
                return None
            g -= (g * errors[1] >> 64) + 2
            return (gain << density.bits) // g + 1

        return draw


def _tables_of(process: Process, m: int, tables: Tables) -> TupleSource | None:
    """Return the tables of m replicas, or None if they are too large."""
    if not 2 <= m <= MOST_REPLICAS or process.size(m) > MOST_NUMBERS:
        return None
    if (process, m) not in tables:
        tables[process, m] = process.tuples(m)
    return tables[process, m]


def removed(process: Process, question: ClaimUnderTest, deadline: float, tables: Tables) -> Removed | None:
    """Return the samples with the least bound, of the orders that there is time for. Its choice cannot invalidate a test."""
    best: Removed | None = None
    took = 0.0
    for m in range(2, MOST_REPLICAS + 1):
        began = time.process_time()
        if began + took * 1.5 * process.size(m) / process.size(m - 1) > deadline:
            break
        tuples = _tables_of(process, m, tables)
        if tuples is None:
            break
        took, found = time.process_time() - began, Removed(process, tuples, question.epsilon)
        if best is not None and found.weight_bound >= best.weight_bound:
            break
        best = found
    return best


def added(process: Process, question: ClaimUnderTest) -> Tested | Added:
    """Return a proof that δ_add(ε) is at most what is claimed, or the samples with the least bound (section 10.7)."""
    never = process.never()
    if never is not None and question.epsilon >= never:
        return Tested("add", True, "δ_add = 0, since ε ≥ −ln w_∅")
    best, tau = Fraction(1), Fraction(0)
    for sixteenths in (2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256):
        scale = Fraction(sixteenths, 16)
        bound = process.hoelder(-scale, None, question.epsilon)
        if bound is None:
            break
        if bound < logarithm(question.delta):
            return Tested("add", True, f"Hölder's inequality with τ = {float(scale)} bounds δ_add")
        if bound < logarithm(best) and bound > -100:
            best, tau = exponential(bound), scale
    # Scaled samples take twice the time of plain ones.
    scaled = best < Fraction(1, 2)
    return Added(process, question.epsilon, tau if scaled else Fraction(0), best if scaled else Fraction(1))


def _won(bets: Bets, draw: Callable[[], int | None], deadline: float) -> str:
    """Draw and bet until the bets are won or the deadline has passed. Return in words what happened."""
    while not bets.won() and time.process_time() < deadline:
        for _ in range(16):
            value = draw()
            bets.add(bets.weight_bound if value is None else value)
    return "the bets " + ("are won" if bets.won() else f"reach e^{bets.log_wealth():.1f}")


def bet(direction: str, drawn: SampleSource, question: ClaimUnderTest, deadline: float) -> Tested:
    """Return what became of a test of "δ(ε) ≥ δ" that draws until it is won, or until the deadline."""
    if drawn.weight_bound <= question.delta:
        return Tested(direction, True, f"the bound on {drawn.words} is at most δ")
    draw, bets = drawn.sampler(question.random_bytes), Bets(question.delta, drawn.weight_bound, question.failure)
    words = f"{drawn.words}: {_won(bets, lambda: draw(bets.bits), deadline)}"
    return Tested(direction, bets.won(), words, len(bets.samples), sum(bets.samples) / max(1, len(bets.samples)))


def by_means(process: Process, question: ClaimUnderTest, deadline: float) -> Tested:
    """Return what became of a test of one mean, and of one of clipped samples after it, if the mean bounds their second moment.

    The mean is "E D ≥ D₀", with V = D − D₀ + 1, whose mean is at least 1 then; D is rounded up and has its margin added.
    """
    plan = planned(process, question.epsilon, question.delta, question.random_bytes, deadline)
    if plan is None:
        return Tested("add", False, "no mean that is tested bounds δ_add tightly enough")
    shifted, kind = Shifted(process, plan.size, question.random_bytes), (plan.exponent, plan.times)
    known, bound = bounded(plan, question.epsilon, shifted.squared), Fraction(plan.bound)
    top, more = shifted.most(*kind), up(shifted.margin(*kind) - bound + 1, 80)

    def mean() -> int | None:
        look = shifted.look()
        return None if look is None else -(-(shifted.value(look, *kind) + 1 + more) >> 80 - first.bits)

    first, words, count = Bets(Fraction(1), max(top - bound + 1, Fraction(2)), question.failure), "one mean", 0
    if top > bound:
        words += f": {_won(first, mean, deadline)}"
        count = len(first.samples)
    if plan.clip is None or not (top <= bound or first.won()):
        return Tested("add", (top <= bound or first.won()) and known <= logarithm(question.delta), words, count)
    clip = Fraction(plan.clip)
    lowered = question.delta - exponential(known) / (4 * clip)
    if not 0 < lowered < clip:
        return Tested("add", False, "no mean that is tested bounds δ_add tightly enough", count)
    second = Bets(lowered, clip, question.failure)
    words = f"a bound on their second moment, {words}; clipped samples"
    words += f": {_won(second, lambda: shifted.sample(question.epsilon, second.bits), deadline)}"
    return Tested("add", second.won(), words, count + len(second.samples))


def fresh(process: Process, question: ClaimUnderTest, tables: Tables) -> list[Tested]:
    """Test both directions, the second one only if the first one is proven."""
    began = time.process_time()
    adding = added(process, question)
    half = began + question.seconds / 2
    if isinstance(adding, Tested):
        first = adding
    elif adding.weight_bound > MOST_RATIO * question.delta:
        first = by_means(process, question, half)
    else:
        first = bet("add", adding, question, half)
    question.log(f"add: {first.words}, {first.samples} samples, {time.process_time() - began:.1f} s")
    if not first.proven:
        return [first]
    removing = removed(process, question, half, tables)
    if removing is None:
        return [first, Tested("remove", False, "the tables of replicas are too large")]
    question.log(f"remove: {removing.words}, W/δ = {float(removing.weight_bound / question.delta):.3g}")
    second = bet("remove", removing, question, began + question.seconds)
    question.log(f"remove: {second.words}, {second.samples} samples, {time.process_time() - began:.1f} s")
    return [first, second]
