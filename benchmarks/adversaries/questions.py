"""What documents ask beside ε and δ: one draw before a mechanism, limits on attacks; and what odometers say at any time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache

import numpy as np

import pyaccount
from adversaries import mechanisms, selections, stated
from adversaries.cases import Case, composed
from adversaries.cells import Sums, gaussian, laplace
from adversaries.component import Component, Impossible, Setting
from adversaries.judging import Judge
from adversaries.kinds import ADJACENCIES
from adversaries.laws import Law, merged
from adversaries.statements import SAME, Result, gaussian_delta
from adversaries.training import binomial, fixed, fraction, sums
from pyaccount.filters.odometer import Odometer

Question = Callable[[int], Result | None]


def amplification(base: str) -> Question:
    """Return what judges one draw before noise on a sum of numbers in [0, 1], of which one record's is 1 or 0."""

    def judged(seed: int) -> Result | None:
        rng = random.Random(f"{seed} amplification {base}")
        at = Setting(rng, rng.choice(["zero-out", "add-remove"]))
        multiplier = at.number(0.3, 5.0)
        epsilons = sorted({at.number(0.02, 6.0) for _ in range(rng.randint(1, 4))})
        kind = "poisson" if at.adjacency == "add-remove" else rng.choice(_DRAWS)
        try:
            sampler, sampling, counts, draws = _drawn(at, kind)
        except Impossible:
            return None
        noise = laplace if base == "laplace" or (base == "stated" and rng.random() < 0.5) else gaussian
        given: dict[str, object] = {"kind": base, "multiplier": multiplier, "epsilon": epsilons}
        if base == "stated":
            del epsilons[1:]
            given = {"kind": base, "epsilon": epsilons[0]}
            groups = range(1, rng.randint(1, max(draws, 1)) + 1)
            given["group_deltas"] = [_rounded_up(_delta(noise is laplace, j / multiplier, epsilons[0])) for j in groups]
        document = {"pyaccount": 1, "kind": "amplification", "name": f"case {seed}", "base": given}
        document |= {"sampler": sampler, "sampling": sampling}
        # Others contribute 0 or 1, so that a record displaces nothing, or as much as it contributes itself.
        laws = tuple(
            noise(sums(counts, 1.0, rest), sums(counts, 0.0, rest), multiplier)
            for rest in (_rest(draws, 0.0), _rest(draws, 1.0), _rest(draws, 0.5))
        )
        judge = Judge(Case(seed, f"amplification {base}", at.adjacency, 1, (), laws, False))
        with judge.refusing(document, "amplification"):
            for effect in pyaccount.amplify(document).effects:
                alone = _delta(noise is laplace, 1.0 / multiplier, effect.epsilon)
                judge.compare(document, f"δ({effect.epsilon})", effect.delta, alone * (1.0 - SAME), upper=True)
                what = f"after one draw, from ε = {effect.epsilon}"
                judge.bound(document, what, judge.both, effect.amplified_epsilon, effect.amplified_delta)
        return judge.result

    return judged


_DRAWS = ("poisson", "fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww")


def _drawn(at: Setting, kind: str) -> tuple[dict[str, object], dict[str, object], Sums | dict, int]:  # type: ignore[type-arg]
    if kind == "poisson":
        p = at.probability()
        return {"kind": kind}, {"sampling_probability": p}, binomial(1, fraction(p)), 0
    sampler, training, law, draws = fixed(at, kind)
    return sampler, training, law(1), draws


def _rest(draws: int, other: float) -> Callable[[int], float]:
    return lambda j: max(draws - j, 0) * other


def _delta(numbers: bool, move: float, epsilon: float) -> float:
    """Return δ of Laplace or Gaussian noise with standard scale, if the answer moves."""
    return max(0.0, -math.expm1((epsilon - move) / 2.0)) if numbers else gaussian_delta(move, epsilon)


def _rounded_up(delta: float) -> float:
    return min(1.0, delta * (1.0 + 1e-9))


def risk(measure: str) -> Question:
    """Return what judges a limit on attacks, with attacks that look at the likelihood ratio of data sets that were built."""

    def judged(seed: int) -> Result | None:
        rng = random.Random(f"{seed} risk {measure}")
        case = composed(seed)
        given: dict[str, float] = {measure: round(rng.uniform(0.1, 0.9), 3), "report_delta": 1e-6}
        if measure == "true_positive_rate":
            given["false_positive_rate"] = float(f"{given[measure] * rng.choice([0.5, 0.1, 1e-3]):.3g}")
        document = case.document(privacy={"risk": given}, accounting={"profile": []})
        judge = Judge(case, time_limit=5.0)
        with judge.refusing(document, "certificate"):
            data = pyaccount.certify(judge.read(document), threads=1, time_limit=5.0).data
            found = data.risk
            assert found is not None
            if measure == "advantage":
                judge.bound(document, "advantage", judge.both, 0.0, found.value)
                judge.attained(document, "advantage, lower", 0.0, found.value_lower)
            elif measure == "true_positive_rate":
                most = max(_power(law, given["false_positive_rate"]) for law in judge.both)
                judge.compare(document, "true-positive rate", found.value, most * (1.0 - SAME), upper=True)
            elif found.value is not None:
                for epsilon in np.linspace(0.0, found.last_epsilon or 0.0, 7):
                    least = judge.least(judge.both, float(epsilon)) * (1.0 - 1e-9)
                    delta = gaussian_delta(found.value, float(epsilon))
                    judge.compare(document, f"μ = {found.value}: δ({epsilon})", delta, least, upper=True)
            judge.bound(document, "ε at the report's δ", judge.both, found.epsilon, found.delta)
        return judge.result

    return judged


def _power(law: Law, false_positive_rate: float) -> float:
    """Return a lower bound on the true-positive rate of the best test; one outcome is decided at random."""
    order = np.argsort(-np.where(np.isnan(law.losses), -np.inf, law.losses))
    q = np.cumsum(law.q[order]) * (1.0 + law.error) * (1.0 + len(order) * 2.0**-52)
    inside = int(np.searchsorted(q, false_positive_rate, side="right"))
    rate = float(np.sum(law.p[order][:inside]))
    if inside < len(order):
        before = float(q[inside - 1]) if inside else 0.0
        rate += float(law.p[order][inside]) * (false_positive_rate - before) / (float(q[inside]) - before)
    return rate * (1.0 - law.error) * (1.0 - len(order) * 2.0**-52)


#: How many outcomes an entry of an odometer has, at most, and how many entries there are.
_OUTCOMES, _ENTRIES = 5, 3


def odometer(seed: int) -> Result | None:
    """Judge an odometer: who chooses entries, and when to stop, looks at the loss so far.

    The value of every choice is enumerated: what the odometer says holds for all of them if it holds for the best one.
    """
    rng = random.Random(f"{seed} odometer")
    at = Setting(rng, rng.choice(ADJACENCIES))
    builders = (mechanisms.response, mechanisms.lap, mechanisms.normal, stated.stated, selections.exponential)
    entries: list[Component] = []
    while len(entries) < rng.randint(2, 3):
        try:
            entries.append(rng.choice(builders)(at))
        except Impossible:
            continue
    orders = tuple(sorted({1.0 + at.number(0.05, 60.0) for _ in range(rng.randint(1, 4))}))
    meter = Odometer(orders, (1.0 / (len(orders) + 1),) * len(orders))
    delta = at.number(1e-5, 0.3)
    pairs = [[merged(_plain(rng.choice(one.pairs)), _OUTCOMES) for one in entries]]
    pairs.append([law.reversed() for law in pairs[0]])
    case = Case(seed, "odometer", at.adjacency, 1, tuple(entries), (), False)
    document = case.document(privacy={"epsilon": "solve", "delta": delta})
    judge = Judge(case)
    with judge.refusing(document, "odometer"):
        # Each entry alone is a document, whose divergences are charged.
        alone = [
            judge.read(
                Case(seed, "entry", at.adjacency, 1, (one,), one.pairs, False).document(
                    privacy={"epsilon": "solve", "delta": 0.5}
                )
            )
            for one in entries
        ]
        costs = [meter.cost(one) for one in alone]
        for laws in pairs:
            stopped, exceeded = _best(meter, costs, laws, delta)
            judge.result.closest = max(judge.result.closest, stopped / delta, exceeded / delta)
            judge.compare(document, f"what is above ε when it stops, orders {orders}", delta, stopped, upper=True)
            judge.compare(document, f"probability to exceed ε ever, orders {orders}", delta, exceeded, upper=True)
    return judge.result


def _plain(law: Law) -> Law:
    return Law(law.p, law.q, law.error)


def _best(meter: Odometer, costs: list[tuple[float, ...]], laws: list[Law], delta: float) -> tuple[float, float]:
    """Return the most that E(1 − e^{ε − L})_+ at the end, and the probability that L ever exceeds ε, can be."""
    steps = [[(float(p), float(loss)) for p, loss in zip(law.p, law.losses, strict=True) if p > 0.0] for law in laws]
    error = (max(law.error for law in laws) + 1e-12) * _ENTRIES

    @cache
    def said(counts: tuple[int, ...]) -> tuple[float, float]:
        spent = meter.nothing
        for cost, count in zip(costs, counts, strict=True):
            for _ in range(count):
                spent = meter.after(spent, cost)
        return meter.stopped(spent, delta), meter.always(spent, delta)

    def value(loss: float, counts: tuple[int, ...], ever: bool) -> float:
        at_end = said(counts)[ever]
        if loss == math.inf:
            # An infinite loss has infinite divergences, of which an odometer says ∞.
            return 0.0 if at_end == math.inf else 1.0
        now = float(loss > at_end + 1e-9) if ever else max(0.0, -math.expm1(min(at_end - loss, 0.0)))
        if sum(counts) == _ENTRIES or now == 1.0:
            return now
        return max(
            now,
            *(
                math.fsum(p * value(loss + more, _plus(counts, index), ever) for p, more in step)
                for index, step in enumerate(steps)
            ),
        )

    nothing = (0,) * len(laws)
    least = [value(0.0, nothing, ever) * (1.0 - error) - 1e-15 for ever in (False, True)]
    return least[0], least[1]


def _plus(counts: tuple[int, ...], index: int) -> tuple[int, ...]:
    return tuple(count + (at == index) for at, count in enumerate(counts))


#: What is judged by functions of its own, by the names of `kinds.expected`.
QUESTIONS: dict[str, Question] = {
    **{f"amplification {base}": amplification(base) for base in ("laplace", "gaussian", "stated")},
    **{f"risk {measure}": risk(measure) for measure in ("advantage", "true_positive_rate", "gaussian_mu")},
    "odometer": odometer,
}
