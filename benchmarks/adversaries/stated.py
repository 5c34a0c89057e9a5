"""Mechanisms with a stated guarantee: chains of data sets, and random small mechanisms that are scaled until they just keep it.

**Chains.** Let g(t) = min over the guarantees of (δ + e^ε t, 1 − e^{−ε}(1 − δ − t), 1), which is concave and increasing on
[0, 1]. Data sets with i of k special records release a number of [0, 1] with the distribution function g^{∘(k−i)}. It is
uniform for i = k. For neighbours i and i + 1 the ratio of M_i to M_{i+1} falls, so the worst events are intervals from 0, where
M_i[0, t] = g(M_{i+1}[0, t]) ≤ δ + e^ε M_{i+1}[0, t]; in the other order (t, 1], where 1 − s ≤ δ + e^ε(1 − g(s)), as g(s) ≤ 1
− e^{−ε}(1 − δ − s). So the mechanism has the guarantee for single records. No mechanism has a larger M_0(S) at the same M_k(S)
(M_0(S) ≤ g(M_1(S)) ≤ … ≤ g^{∘k}(M_k(S))): the pair is the worst for every ε.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from mpmath import mp, mpf

from adversaries.cells import gaussian, laplace
from adversaries.component import Body, Component, Impossible, Setting, attained, mechanism
from adversaries.laws import Law, finite

#: Orders at which all of zCDP is checked.
ORDERS = tuple(1.0 + 2.0 ** (k / 4.0) for k in range(-40, 48))
#: How much a constraint is missed by rounding.
_SLACK = 1e-9


def stated(at: Setting) -> Component:
    way = at.rng.choice(["epsilon", "epsilon", "delta", "delta", "guarantees", "mu", "rho", "rho", "xi", "renyi"])
    body, points = _guarantee(at, way)
    steps = 1
    if at.replaced and at.rng.random() < 0.35 and way not in ("renyi", "xi"):
        body["mechanism"]["adjacency"] = at.rng.choice(["add-remove", "zero-out"])
        steps = 2
    steps *= at.group
    given = body["mechanism"]
    if way in ("epsilon", "delta", "guarantees"):
        return attained(body, chain(points, steps))
    if way == "mu":
        return attained(body, gaussian({(steps * given["mu"],): 1.0}, {(0.0,): 1.0}))
    if way == "rho":
        shift = math.sqrt(2.0 * given["rho"])
        laws = [gaussian({(steps * shift,): 1.0}, {(0.0,): 1.0}), _laplace(given["rho"], steps)]
        if steps == 1:
            laws += [_scaled(at, lambda law: _concentrated(law, given["rho"], 0.0)) for _ in range(3)]
        return Component(body, tuple(laws))
    if steps > 1:
        raise Impossible
    if way == "xi":
        laws = [gaussian({(math.sqrt(2.0 * given["rho"]),): 1.0}, {(0.0,): 1.0})]
        laws += [_scaled(at, lambda law: _concentrated(law, given["rho"], given["xi"])) for _ in range(4)]
        return Component(body, tuple(laws))
    table = [(entry["order"], entry["epsilon"]) for entry in given["renyi"]]
    shift = math.sqrt(min(2.0 * bound / order for order, bound in table)) * (1.0 - 1e-12)
    laws = [gaussian({(shift,): 1.0}, {(0.0,): 1.0})]
    laws += [_scaled(at, lambda law: all(_both(law, order) <= bound for order, bound in table)) for _ in range(4)]
    return Component(body, tuple(laws))


def _guarantee(at: Setting, way: str) -> tuple[Body, list[tuple[float, float]]]:  # noqa: PLR0911 - one for each way
    epsilon = at.rng.choice([at.number(0.05, 3.0), at.number(1.0, 8.0), 0.1, 1.0])
    delta = at.rng.choice([at.number(1e-9, 1e-3), at.number(1e-3, 0.3)])
    if way == "epsilon":
        return mechanism("stated", epsilon=epsilon), [(epsilon, 0.0)]
    if way == "delta":
        epsilon = at.rng.choice([epsilon, 0.0])
        return mechanism("stated", epsilon=epsilon, delta=delta), [(epsilon, delta)]
    if way == "guarantees":
        points, left = [(epsilon, delta)], delta
        for _ in range(at.rng.randint(1, 2)):
            epsilon = round(epsilon + at.number(0.1, 2.0), 3)
            left = float(f"{left * at.number(0.01, 0.7):.3g}")
            points.append((epsilon, left))
        if at.rng.random() < 0.5:
            points.append((round(epsilon + at.number(0.1, 2.0), 3), 0.0))
        listed = [{"epsilon": one, "delta": other} for one, other in points]
        return mechanism("stated", guarantees=listed), points
    if way == "mu":
        return mechanism("stated", mu=at.number(0.05, 3.0)), []
    rho = at.number(1e-3, 2.0)
    if way == "rho":
        return mechanism("stated", rho=rho), []
    if way == "xi":
        return mechanism("stated", rho=rho, xi=at.number(1e-3, 1.0)), []
    orders = sorted({at.rng.choice([1.5, 2, 3, 4, 8, 16, 32, 1.1]) for _ in range(at.rng.randint(1, 3))})
    bound, table = at.number(0.01, 1.0), []
    for order in orders:
        table.append({"order": order, "epsilon": bound})
        bound = float(f"{bound * at.number(1.0, 3.0):.3g}")
    return mechanism("stated", renyi=table), []


def chain(points: list[tuple[float, float]], steps: int) -> Law:
    """Return the pair of the ends of the chain: P has the distribution function g^{∘steps} where Q is uniform."""
    with mp.workdps(60):
        lines = []
        for epsilon, delta in points:
            grown = mp.exp(mpf(repr(epsilon)))
            lines += [(grown, mpf(repr(delta))), (1 / grown, 1 - (1 - mpf(repr(delta))) / grown)]
        lines.append((mpf(0), mpf(1)))

        def g(t: mpf) -> mpf:
            return min(slope * t + height for slope, height in lines)

        kinks = {mpf(0), mpf(1)}
        for index, (slope, height) in enumerate(lines):
            for other, more in lines[index + 1 :]:
                if slope != other and 0 < (t := (more - height) / (slope - other)) < 1:
                    kinks.add(t)
        ts = [mpf(0), mpf(1)]
        values = [mpf(0), mpf(1)]
        for _ in range(steps):
            wanted = set(ts)
            for kink in kinks:
                for k in range(len(ts) - 1):
                    low, high = values[k], values[k + 1]
                    if low < kink < high:
                        wanted.add(ts[k] + (ts[k + 1] - ts[k]) * (kink - low) / (high - low))
            following = sorted(wanted)
            inner = [_between(ts, values, t) for t in following]
            ts, values = following, [g(v) for v in inner]
        p = [values[0], *(b - a for a, b in itertools.pairwise(values))]
        q = [mpf(0), *(b - a for a, b in itertools.pairwise(ts))]
        rows = [(float(max(a, 0)), float(max(b, 0))) for a, b in zip(p, q, strict=True) if a > 1e-50 or b > 1e-50]
    return finite([a for a, _ in rows], [b for _, b in rows])


def _between(ts: list[mpf], values: list[mpf], t: mpf) -> mpf:
    for k in range(len(ts) - 1):
        if ts[k] <= t <= ts[k + 1]:
            return values[k] + (values[k + 1] - values[k]) * (t - ts[k]) / (ts[k + 1] - ts[k])
    raise AssertionError(t)


def _both(law: Law, order: float) -> float:
    """Return the divergence of an order in the worse direction, with what `divergence` subtracts added again."""
    return max(law.divergence(order), law.reversed().divergence(order)) + _SLACK


def _concentrated(law: Law, rho: float, xi: float) -> bool:
    nearest = max(law.kullback_leibler(), law.reversed().kullback_leibler()) + 2.0 * _SLACK
    return nearest <= xi + rho and all(_both(law, order) <= xi + order * rho for order in ORDERS)


def _laplace(rho: float, steps: int) -> Law:
    """Return steps of a Laplace mechanism with sup_a D_a/a = ρ: θ − 1 + e^{−θ} is D_1, and the largest."""

    def keeps(theta: float) -> bool:
        return _concentrated(laplace({(theta,): 1.0}, {(0.0,): 1.0}, 1.0, cells=2000), rho * (1.0 - 1e-6), 0.0)

    theta = _largest(keeps, 1e-3, 40.0)
    return laplace({(steps * theta,): 1.0}, {(0.0,): 1.0}, 1.0)


def _largest(keeps: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _scaled(at: Setting, keeps: Callable[[Law], bool]) -> Law:
    """Return a random law of a few outcomes, as far apart as the guarantee allows."""
    size = at.rng.choice([2, 2, 3, 4])
    logs = np.array([at.rng.choice([0.0, -at.rng.uniform(0.0, 12.0)]) for _ in range(size)])
    p = np.exp(logs) / np.sum(np.exp(logs))
    direction = np.array([at.rng.uniform(-1.0, 1.0) for _ in range(size)])
    direction[0], direction[1] = 1.0, -1.0

    def law(t: float) -> Law:
        q = p * np.exp(-t * direction)
        return finite(list(p), list(q / np.sum(q)))

    made = law(_largest(lambda t: keeps(law(t)), 1e-6, 60.0))
    return made if at.rng.random() < 0.5 else made.reversed()
