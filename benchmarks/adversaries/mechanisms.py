"""Noise that is added to numbers, and randomized response."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product as every

from adversaries.cells import discrete_gaussian, discrete_laplace, gaussian, laplace, several_gaussians, skellam
from adversaries.component import Component, Impossible, Setting, attained, mechanism
from adversaries.laws import Law, finite, power, product


def normal(at: Setting) -> Component:
    sensitivity = at.rng.choice([1.0, at.number(0.1, 5.0)])
    sigma = at.number(0.3, 6.0) * sensitivity
    body = mechanism("gaussian", sigma=sigma, **({} if sensitivity == 1.0 else {"sensitivity": sensitivity}))
    law = gaussian({(at.group * sensitivity,): 1.0}, {(0.0,): 1.0}, sigma)
    part = at.rng.uniform(0.1, 0.9)
    turned = gaussian({(sensitivity * part, sensitivity * (1.0 - part**2) ** 0.5): 1.0}, {(0.0, 0.0): 1.0}, sigma)
    return attained(body, law, turned)


def mixture(at: Setting) -> Component:
    if at.replaced:
        raise Impossible
    count = at.rng.randint(1, 4)
    sizes = sorted({at.rng.choice([0.0, 1.0, 2.0, at.number(0.1, 4.0)]) for _ in range(count)})
    weights = [at.rng.randint(1, 20) for _ in sizes]
    tenths = [round(weight / sum(weights), 2) for weight in weights]
    tenths[-1] = round(1.0 - sum(tenths[:-1]), 2)
    if min(tenths) <= 0.0:
        raise Impossible
    sigma = at.number(0.4, 5.0)
    body = mechanism("mixture-of-gaussians", sigma=sigma, sensitivities=sizes, probabilities=tenths)
    one = dict(zip(sizes, tenths, strict=True))
    if at.group == 1:
        return attained(body, gaussian({(size,): weight for size, weight in one.items()}, {(0.0,): 1.0}, sigma))
    # Each record of a group contributes a random amount of its own.
    moves = {0.0: 1.0}
    for _ in range(at.group):
        more: dict[float, float] = {}
        for (move, weight), (size, share) in every(moves.items(), one.items()):
            more[move + size] = more.get(move + size, 0.0) + weight * share
        moves = more
    return Component(body, (gaussian({(move,): weight for move, weight in moves.items()}, {(0.0,): 1.0}, sigma),))


def lap(at: Setting) -> Component:
    sensitivity, moved = at.rng.choice([1.0, at.number(0.1, 5.0)]), at.rng.choice([1, 1, 1, 2, 3])
    scale = at.number(0.3, 6.0) * sensitivity
    body = mechanism("laplace", scale=scale, sensitivity=sensitivity, **({"moved": moved} if moved > 1 else {}))

    def one(shift: float) -> Law:
        return laplace({(shift,): 1.0}, {(0.0,): 1.0}, scale)

    worst = power(one(at.group * sensitivity), moved)
    others = [power(one(sensitivity), moved * at.group)] if at.group > 1 else []
    if moved == 1:
        # A total change that is bounded may be spread over several numbers.
        part = at.rng.uniform(0.05, 0.95)
        others.append(product(one(part * sensitivity), one((1.0 - part) * sensitivity)))
    return attained(body, worst, *others)


def _lattice(at: Setting) -> tuple[dict[str, float], int, float, int]:
    step, shift = at.rng.choice([1.0, 0.5, 0.1, 2.0]), at.rng.randint(1, 3)
    given: dict[str, float] = {}
    if step != 1.0:
        given["step"] = step
    sensitivity = float(Fraction(repr(step)) * shift)
    if shift > 1 or step != 1.0:
        given["sensitivity"] = sensitivity
    moved = at.rng.choice([1, 1, 2])
    if moved > 1:
        given["moved"] = moved
    return given, shift, step, moved


def integers(at: Setting) -> Component:
    given, shift, step, moved = _lattice(at)
    sigma = at.number(0.25, 6.0) * shift * step
    body = mechanism("discrete-gaussian", sigma=sigma, **given)
    steps = float(Fraction(repr(sigma)) / Fraction(repr(step)))
    return _shifted(at, body, lambda one: discrete_gaussian(one, steps), shift, moved)


def geometric(at: Setting) -> Component:
    given, shift, step, moved = _lattice(at)
    scale = at.number(0.3, 6.0) * shift * step
    body = mechanism("discrete-laplace", scale=scale, **given)
    steps = float(Fraction(repr(scale)) / Fraction(repr(step)))
    return _shifted(at, body, lambda one: discrete_laplace(one, steps), shift, moved)


def poissons(at: Setting) -> Component:
    """Return integers with Skellam noise, from hardly any to much, of one or several parties."""
    given, shift, step, moved = _lattice(at)
    parties = at.rng.choice([1, 1, 2, 7])
    if parties > 1:
        given["parties"] = parties
    size = at.rng.choice([at.number(0.2, 6.0), at.number(0.3, 6.0), at.number(0.001, 0.05)])
    if size < 0.05 and shift * moved * at.group > 2:
        raise Impossible  # no mass of several runs would be a double
    variance = (size * shift * step) ** 2 / parties
    body = mechanism("skellam", variance=variance, **given)
    steps = float(parties * Fraction(repr(variance)) / Fraction(repr(step)) ** 2)
    return _shifted(at, body, lambda one: skellam(one, steps), shift, moved)


def several(at: Setting) -> Component:
    """Return integers with the discrete Gaussian noise of several parties, which may be far from a discrete Gaussian."""
    given, shift, step, moved = _lattice(at)
    parties = at.rng.choice([1, 2, 3, 5, 10, 40])
    sigma = at.rng.choice([at.number(0.1, 0.5), at.number(0.5, 3.0)]) * step
    body = mechanism("distributed-discrete-gaussian", sigma=sigma, parties=parties, **given)
    steps = float(Fraction(repr(sigma)) / Fraction(repr(step)))
    if steps < 0.1:
        raise Impossible
    return _shifted(at, body, lambda one: several_gaussians(one, steps, parties), shift, moved)


def _shifted(at: Setting, body: dict[str, object], law: Callable[[int], Law], shift: int, moved: int) -> Component:
    """Return numbers with noise whose law, moved by some steps, is known: the worst pair, and others."""
    others = [power(law(one), moved) for one in range(1, shift)]
    if at.group > 1:
        others.append(power(law(shift), moved * at.group))
    return attained(body, power(law(at.group * shift), moved), *others)


def response(at: Setting) -> Component:
    """Return randomized response: every probability is a fraction, and rounded once."""
    values = at.rng.choice([2, 2, 3, 4, 7, 10, 100])
    truth = at.rng.choice([0.9, 0.5, 0.99, round(at.rng.uniform(0.05, 0.95), 3), 0.05])
    ways = ["once"]
    if at.adjacency != "add-remove":
        ways += ["each-record", "each-record"]
    if at.adjacency == "zero-out":
        ways += ["uniform", "uniform"]
    way = at.rng.choice(ways)
    p = Fraction(repr(truth))
    other = (1 - p) / (values - 1)
    given = {"values": values, "truth_probability": truth}
    if way == "uniform":
        # All outcomes but the true value are alike, so that they may be merged.
        law = finite([float(p), float(1 - p)], [float(Fraction(1, values)), float(1 - Fraction(1, values))])
        return attained(mechanism("randomized-response", empty_record="uniform", **given), power(law, at.group))
    rest = float((values - 2) * other)
    law = finite([float(p), float(other), rest], [float(other), float(p), rest])
    if way == "once":
        return attained(mechanism("randomized-response", answers="once", **given), law)
    return attained(mechanism("randomized-response", **given), power(law, at.group))
