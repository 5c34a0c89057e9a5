"""Phases on a sample, the best of a random number of runs, and disjoint parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from mpmath import mp, mpf

from adversaries.cells import gaussian, laplace
from adversaries.component import Body, Builder, Component, Impossible, Setting, mechanism
from adversaries.laws import Law, finite, merged, power, products, sampled
from adversaries.training import binomial, fraction, sums

#: How many outcomes of a run are told apart in a selection.
_OUTCOMES = 60


def _some(at: Setting, builders: dict[str, Builder], most: int) -> list[Component]:
    names = list(builders)
    made: list[Component] = []
    wanted = at.rng.randint(1, most)
    for _ in range(20):
        if len(made) == wanted:
            return made
        try:
            made.append(builders[at.rng.choice(names)](at))
        except Impossible:
            continue
    raise Impossible


def _choices(at: Setting, phases: list[Component], number: int) -> list[Law]:
    """Return laws of all phases: of their first pairs, and of pairs at random."""
    first = products([one.tight or one.pairs[0] for one in phases], 1500)
    return [first, *(products([at.rng.choice(one.pairs) for one in phases], 1500) for _ in range(number - 1))]


def on_sample(builders: dict[str, Builder]) -> Builder:
    """Return the builder of phases on one sample, or of a mechanism on a sample of its own."""

    def build(at: Setting) -> Component:
        if at.group > 1:
            return _group_on_sample(at)
        clients = at.rng.random() < 0.4
        single = at.rng.random() < 0.5
        names = {name: one for name, one in builders.items() if not single or name.startswith("mechanism ")}
        phases = _some(at, names, 1 if single else 3)
        rate, count = at.probability(), at.rng.choice([1, 1, 2, 5])
        rates: Any = rate
        sampler: Body = {"kind": "poisson", **({"draws": "clients"} if clients else {})}
        strata: dict[str, float] = {}
        if at.rng.random() < 0.25:
            strata = {"often": rate, "seldom": float(f"{rate * at.number(0.05, 0.9):.3g}")}
            rates = {"strata": strata} if at.rng.random() < 0.7 else {"max": rate}
        sampler["sampling_probability"] = rates
        body: Body = phases[0].body | {"sampler": sampler} if single else {"sampler": sampler}
        if not single:
            body["phases"] = [one.body for one in phases]
        if count > 1:
            body["count"] = count
        # A replaced record is missing from a run in which it is not drawn. A mechanism may show that, as other records of a
        # client do; a training run may not, and a record that is replaced by one that contributes nothing is one that is missing.
        shows = clients or (at.replaced and all("mechanism" in one.body for one in phases))
        answers = any(one.body.get("mechanism", {}).get("kind") == "randomized-response" for one in phases)
        # If nothing but randomised values of all records are released, they are values also of a run without the client.
        once = all(one.body.get("mechanism", {}).get("answers") == "once" for one in phases)
        if (clients and once) or (at.replaced and not clients and (answers or not shows)):
            return _of_values(at, body, phases, rate, count)

        def law(inner: Law, chance: float) -> Law:
            return power(sampled(inner, chance, shows=shows), count)

        inner = _choices(at, phases, 4)
        pairs = tuple(law(one, rate) for one in inner)
        known = all(one.tight is not None for one in phases)
        kinds = {name: tuple(law(one, chance) for one in inner) for name, chance in strata.items()}
        if at.replaced or "strata" not in (rates if isinstance(rates, dict) else {}):
            kinds = {}
        return Component(body, pairs, known and not at.replaced, pairs[0] if known and not at.replaced else None, kinds)

    return build


def _group_on_sample(at: Setting) -> Component:
    """Return a number with noise, of a sample that draws each record of a group by itself."""
    rate, count, scale = at.probability(), at.rng.choice([1, 1, 2, 5]), at.number(0.5, 5.0)
    kind, noisy = at.rng.choice([("gaussian", gaussian), ("laplace", laplace)])
    body = mechanism(kind, **{"sigma" if kind == "gaussian" else "scale": scale})
    body |= {"sampler": {"kind": "poisson", "sampling_probability": rate}, "count": count}
    counts = binomial(at.group, fraction(rate))
    # A replaced record changes the number by its sensitivity.
    move = 0.5 if at.replaced else 1.0
    law = noisy(sums(counts, move), sums(counts, -move) if at.replaced else {(0.0,): 1.0}, scale)
    return Component(body, (power(law, count),))


def _of_values(at: Setting, body: Body, phases: list[Component], rate: float, count: int) -> Component:
    """Return the pairs of a replaced record of training runs and of answers, or of a client where only answers are released.

    A run without the record has the sums of the other records. One value of all records may be that with either of the two.
    """
    if any(
        one.body.get("mechanism", {}).get("kind") != "randomized-response" for one in phases if "mechanism" in one.body
    ):
        raise Impossible
    pairs = []
    for with_first in (False, True):
        filled = [_with_base(one, with_first) for one in phases]
        for law in _choices(at, filled, 2):
            pairs.append(power(sampled(law, rate, shows=False, base=law.base), count))
    return Component(body, tuple(pairs))


def _with_base(one: Component, with_first: bool) -> Component:
    """Return the component with the law of a run without the record, which answers have as with one of the two records."""
    if "mechanism" in one.body:
        laws = tuple(replace(law, base=law.p if with_first else law.q) for law in one.pairs)
        return Component(one.body, laws)
    laws = tuple(law for law in one.pairs if law.base is not None)
    if not laws:
        raise Impossible
    return Component(one.body, laws)


Generating = Callable[[mpf], mpf]


def _geometric(at: Setting) -> tuple[Body, Generating]:
    stop = at.number(0.02, 0.9)
    g = mpf(repr(stop))
    return {"kind": "geometric", "stopping_probability": stop}, lambda x: g * x / (1 - (1 - g) * x)


def _logarithmic(at: Setting) -> tuple[Body, Generating]:
    stop = at.number(0.02, 0.9)
    g = mpf(repr(stop))
    return {"kind": "logarithmic", "stopping_probability": stop}, lambda x: mp.log(1 - (1 - g) * x) / mp.log(g)


def _negative_binomial(at: Setting) -> tuple[Body, Generating]:
    stop, shape = at.number(0.02, 0.9), at.rng.choice([-0.5, 0.5, 1.0, 2.0, 5.0, 1e-3, -0.9])
    g, eta = mpf(repr(stop)), mpf(repr(shape))
    body = {"kind": "negative-binomial", "stopping_probability": stop, "shape": shape}
    return body, lambda x: ((1 - (1 - g) * x) ** -eta - 1) / (g**-eta - 1)


def _poisson(at: Setting) -> tuple[Body, Generating]:
    mean = at.number(0.1, 20.0)
    return {"kind": "poisson", "mean": mean}, lambda x: mp.exp(mpf(repr(mean)) * (x - 1))


def _binomial(at: Setting) -> tuple[Body, Generating]:
    trials, chance = at.rng.randint(1, 20), at.number(0.05, 0.95)
    p = mpf(repr(chance))
    return {"kind": "binomial", "trials": trials, "probability": chance}, lambda x: (1 - p + p * x) ** trials


LAWS = {
    "geometric": _geometric,
    "logarithmic": _logarithmic,
    "negative-binomial": _negative_binomial,
    "poisson": _poisson,
    "binomial": _binomial,
}


def best(law: Law, generating: Generating, order: np.ndarray) -> Law:
    """Return the law of the best of K runs, whose outcomes are in a fixed order, the best first.

    With b the mass of better outcomes, outcome y has f(1 − b) − f(1 − b − m) if its mass is m, and no outcome has f(0).
    """
    least = min(float(np.min(masses[masses > 0.0])) for masses in (law.p, law.q))
    # A mass is taken off what is left of 1: none may be lost in its rounding.
    with mp.workdps(50 + math.ceil(-math.log10(least))):

        def of(masses: np.ndarray) -> list[float]:
            exact = [mpf(float(x)) for x in masses[order]]
            total, left, out = mp.fsum(exact), mpf(1), []
            for mass in exact:
                following = left - mass / total
                out.append(float(generating(left) - generating(max(following, mpf(0)))))
                left = max(following, mpf(0))
            out.append(float(generating(mpf(0))))
            return [max(x, 0.0) for x in out]

        p, q = of(law.p), of(law.q)
    # f′ at 1 − b moves by errors of b, and f′ may be steep: the elasticity of all laws here is below 100 · 20.
    return finite(p, q, law.error * 2000.0 + 1e-11)


def select(builders: dict[str, Builder], name: str) -> Builder:
    def build(at: Setting) -> Component:
        if at.group > 1 and at.rng.random() < 0.7:
            at = replace(at, group=1)
            raise Impossible
        phases = _some(at, builders, 2)
        described, generating = LAWS[name](at)
        body = {"select": described, "phases": [one.body for one in phases]}
        count = at.rng.choice([1, 1, 1, 2])
        if count > 1:
            body["count"] = count
        pairs = []
        for law in _choices(at, phases, 2):
            few = merged(law, _OUTCOMES)
            few = Law(few.p, few.q, few.error)
            losses = np.where(np.isnan(few.losses), 0.0, few.losses)
            up = np.argsort(losses, kind="stable")
            for order in (up, up[::-1]):
                pairs.append(power(best(few, generating, order), count))
            # Alone, an outcome against all others: the largest loss first, then the rest as one.
            pairs.append(power(best(merged(few, 6), generating, np.argsort(merged(few, 6).losses)), count))
        return Component(body, tuple(pairs))

    return build


def parallel(builders: dict[str, Builder]) -> Builder:
    def build(at: Setting) -> Component:
        if at.replaced:
            return _replaced_across(at, builders)
        parts = []
        for index in range(at.rng.randint(2, 3)):
            shares = [replace(at, group=k) for k in range(1, at.group + 1)]
            state = at.rng.getstate()
            made = []
            for share in shares:
                at.rng.setstate(state)
                made.append(_some(share, builders, 2))
            if any([one.body for one in made[0]] != [one.body for one in more] for more in made):
                raise Impossible
            parts.append((f"part {index}", made))
        body = {"parallel": [_part(name, made[0]) for name, made in parts]}
        records: dict[str, tuple[Law, ...]] = {}
        pairs: list[Law] = []
        for name, made in parts:
            laws = tuple(_choices(at, made[at.group - 1], 3))
            records[name] = laws
            pairs.extend(laws)
        if at.group == 2:
            pairs.append(products([_choices(at, made[0], 1)[0] for _, made in parts[:2]]))
        worst = at.group == 1 and all(one.tight is not None for _, made in parts for one in made[0])
        # Which part a record is in follows from the record alone, so that nobody can choose another one after looking.
        turned = next(iter(records.values()))
        return Component(body, tuple(pairs), worst, None, records if at.group == 1 else {}, turned)

    return build


def _part(name: str, phases: list[Component]) -> Body:
    return (
        {"name": name, "phases": [one.body for one in phases]} if len(phases) > 1 else {"name": name, **phases[0].body}
    )


def _replaced_across(at: Setting, builders: dict[str, Builder]) -> Component:
    """Return parts of training runs: a record is replaced within a part, or by one of another part."""
    if at.group > 1:
        raise Impossible
    training = {name: one for name, one in builders.items() if name in ("sampler poisson", "sampler none")}
    parts = []
    for index in range(2):
        state = at.rng.getstate()
        inside = _some(at, training, 1)
        at.rng.setstate(state)
        moved = _some(replace(at, adjacency="add-remove"), training, 1)
        if [one.body for one in inside] != [one.body for one in moved]:
            raise Impossible
        parts.append((f"part {index}", inside, moved))
    body = {"parallel": [_part(name, inside) for name, inside, _ in parts]}
    pairs = [inside[0].pairs[0] for _, inside, _ in parts]
    pairs.append(products([parts[0][2][0].pairs[0], parts[1][2][0].pairs[0].reversed()]))
    return Component(body, tuple(pairs), all(one[1][0].tight is not None for one in parts), turned=tuple(pairs[:1]))
