"""The independent checker on thousands of changed certificates, each judged by other means: a table in Markdown.

Run: python benchmarks/changed_certificates.py [--changes 10000] [--seed 1] [--seconds 0.5]

Small documents are certified, and each certificate is changed at random: its ε or δ, the solved value, σ, a probability, the
number of rounds, a coefficient of a matrix, the adjacency, a key that is deleted or one that no document has. δ of what the
changed document describes is then computed at the changed ε:

- without sampling, and for one round, by the closed form of the profile in mpmath, with 100 bits;
- for several rounds of Poisson sampling by the connect-the-dots estimate of dp_accounting with h = 2e-4, whose error is below
  1e-4 of δ here (h = 1e-4 changes δ by less than 1e-5 of it).

A claim is *false* if that δ is above 1.001 times the claimed one (0.1 % is the slack that the checker states), *true* if it is at
most the claimed one, *slack* if it is between, *undecided* if δ is not known well enough, and *no document* if the change leaves
nothing that a document may say. The exit code is 1 if a false claim or no document is proven, if a true claim is refuted, or if
the checker fails with an exception.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import sys
import time
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
from dp_accounting.pld import privacy_loss_distribution

import pyaccount
from pyaccount.independent.verdict import check, parsed

mpmath.mp.prec = 100
Json = dict[str, Any]
POISSON = {"sampler": {"kind": "poisson"}}
NONE = {"kind": "none"}


class NoDocumentError(Exception):
    """The certificate's document does not say anything."""


def _privacy(adjacency: str = "zero-out", group: int = 1, delta: float = 1e-6, epsilon: float | str = "solve") -> Json:
    grouped = {"group_size": group} if group > 1 else {}
    return {"privacy": {"adjacency": adjacency, "epsilon": epsilon, "delta": delta, **grouped}}


#: Documents, and how often each of them is changed, relative to the others.
DOCUMENTS: dict[str, tuple[int, Json]] = {
    "unsampled": (5, {**_privacy(), "training": {"iterations": 30}, "sampler": NONE, "noise": {"multiplier": 5}}),
    "unsampled, group": (
        5,
        {
            **_privacy("replace-one", 3, 1e-9),
            "training": {"iterations": 40},
            "sampler": {"kind": "none", "max_participations": 4, "min_separation": 8},
            "noise": {"multiplier": 12, "also": [{"multiplier": 30, "what": "a count"}]},
        },
    ),
    "unsampled, σ solved": (
        5,
        {
            **_privacy("add-remove", 1, 1e-5, 3.0),
            "training": {"iterations": 12},
            "sampler": NONE,
            "noise": {"multiplier": "solve"},
        },
    ),
    "matrix": (
        5,
        {
            **_privacy(),
            "training": {"iterations": 64},
            "sampler": {"kind": "none", "min_separation": 16},
            "matrix": {"kind": "toeplitz", "coefficients": [1.0, 0.5, 0.375, 0.3125], "normalize": False},
            "noise": {"multiplier": 6},
        },
    ),
    "phases": (
        5,
        {
            **_privacy("add-remove", 1, 1e-7),
            "phases": [
                {"training": {"iterations": 5}, "sampler": NONE, "noise": {"multiplier": 4}},
                {"mechanism": {"kind": "gaussian", "sigma": 3, "sensitivity": 2}, "count": 2},
            ],
        },
    ),
    "Laplace": (
        2,
        {
            **_privacy("replace-one", 1, 1e-3),
            "training": {"iterations": 1},
            "sampler": NONE,
            "noise": {"kind": "laplace", "multiplier": 3},
        },
    ),
    "Poisson, 1 round": (
        3,
        {
            **_privacy("add-remove", 1, 1e-5),
            **POISSON,
            "training": {"sampling_probability": 0.1, "iterations": 1},
            "noise": {"multiplier": 1},
        },
    ),
    "Poisson, 1 round, group": (
        1,
        {
            **_privacy("replace-one", 2, 1e-5),
            **POISSON,
            "training": {"sampling_probability": 0.1, "iterations": 1},
            "noise": {"multiplier": 2},
        },
    ),
    "Poisson, 4 rounds": (
        2,
        {
            **_privacy("add-remove", 1, 1e-4),
            **POISSON,
            "training": {"sampling_probability": 0.2, "iterations": 4},
            "noise": {"multiplier": 1.5},
        },
    ),
    "Poisson, 40 rounds": (
        1,
        {
            **_privacy("zero-out", 1, 1e-4),
            **POISSON,
            "training": {"sampling_probability": 0.02, "iterations": 40},
            "noise": {"multiplier": 1},
        },
    ),
}

#: How a number is changed: factors that make most claims stronger, in a few cases weaker.
FACTORS = ((0.7, 0.998), (0.7, 0.998), (0.99, 0.998), (0.3, 0.7), (1.002, 1.1))
WHOLE = ("iterations", "count", "group_size", "max_participations", "min_separation")


def numbers(place: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of the numbers."""
    if isinstance(place, dict | list):
        items = place.items() if isinstance(place, dict) else enumerate(place)
        return [found for key, value in items for found in numbers(value, (*path, key))]
    return [path] if isinstance(place, int | Fraction) and path[-1] != "pyaccount" else []


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def changed(certificate: Json, drawn: random.Random) -> Json:
    """Return a copy of a certificate with one change."""
    data = copy.deepcopy(certificate)
    # A certificate whose words differ from its document is not checkable; here the document is changed.
    data.pop("privacy", None)
    document = data["document"]
    places = numbers(document, ("document",))
    places += [("guarantee", "epsilon"), ("guarantee", "delta")] * 2
    solved = data.get("solved") or {}
    places += [("solved", "value")] * 2 if solved.get("path") == "noise.multiplier" else []
    coefficients = ((data.get("phases") or [{}])[0].get("matrix") or {}).get("coefficients")
    places += [("phases", 0, "matrix", "coefficients", i) for i in range(len(coefficients or ()))]
    what = drawn.random()
    if what < 0.9:
        path = drawn.choice(places)
        place, key = _at(data, path[:-1]), path[-1]
        low, high = drawn.choice(FACTORS)
        factor = Fraction(drawn.uniform(low, high))
        if key in WHOLE:
            place[key] = max(0, place[key] + drawn.choice((-1, 1, 1, 1, 2, 5)))
        else:
            # A larger probability or coefficient is the stronger claim, as a smaller number is elsewhere.
            stronger = path[0] == "phases" or key in ("sampling_probability", "sensitivity")
            place[key] = place[key] / factor if stronger else place[key] * factor
    elif what < 0.94:
        adjacencies = {"add-remove", "zero-out", "replace-one", "replace"} - {document["privacy"]["adjacency"]}
        document["privacy"]["adjacency"] = drawn.choice(sorted(adjacencies))
    elif what < 0.97:
        path = drawn.choice(places)
        del _at(data, path[:-1])[path[-1]]
    else:
        path = drawn.choice(places)
        place, key = _at(data, path[:-1]), path[-1]
        place[key] = drawn.choice((-place[key], 0, "none", [place[key]]))
    return data


# ---- what the changed document says, read and computed by other means


def positive(value: Any, *, whole: bool = False) -> Fraction:
    """Return a number that must be positive."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | Fraction)
        or value <= 0
        or (whole and value != int(value))
    ):
        raise NoDocumentError
    return Fraction(value)


def gaussian(epsilon: Any, s: Any) -> Any:
    """Return δ of N(s, 1) against N(0, 1)."""
    middle = epsilon / s
    return mpmath.ncdf(s / 2 - middle) - mpmath.exp(epsilon) * mpmath.ncdf(-s / 2 - middle)


def one_round(epsilon: Any, p: dict[int, Any], q: dict[int, Any], s: Any) -> Any:
    """Return the larger δ of Σ p_j N(js) against Σ q_j N(js) and of the reverse; the ratio of densities increases."""

    def side(above: dict[int, Any], below: dict[int, Any], sign: int) -> Any:
        def gain(t: Any) -> Any:
            return sum(
                weight * w * mpmath.exp(sign * j * s * t - (j * s) ** 2 / 2)
                for weight, law in ((1, above), (-mpmath.exp(epsilon), below))
                for j, w in law.items()
            )

        low, high = mpmath.mpf(-200), mpmath.mpf(200)
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (low, middle) if gain(middle) > 0 else (middle, high)
        tails = [sum(w * mpmath.ncdf(sign * j * s - high) for j, w in law.items()) for law in (above, below)]
        return max(mpmath.mpf(0), tails[0] - mpmath.exp(epsilon) * tails[1])

    return max(side(p, q, 1), side(q, p, -1))


def poisson(epsilon: Any, body: Json, adjacency: str, group: int) -> tuple[Any, Any]:
    """Return bounds of δ of rounds of Poisson sampling."""
    training, sigma = body["training"], positive(body["noise"]["multiplier"])
    q, n = positive(training["sampling_probability"]), int(positive(training["iterations"], whole=True))
    if q > 1:
        raise NoDocumentError
    if n == 1:
        chance, s = mpmath.mpf(q.numerator) / q.denominator, mpmath.mpf(sigma.denominator) / sigma.numerator
        law = {j: math.comb(group, j) * chance**j * (1 - chance) ** (group - j) for j in range(group + 1)}
        other = {-j: w for j, w in law.items()} if adjacency == "replace-one" else {0: mpmath.mpf(1)}
        return (one_round(epsilon, law, other, s),) * 2
    if adjacency == "replace-one" or group > 1:
        return mpmath.mpf(0), mpmath.inf
    losses = privacy_loss_distribution.from_gaussian_mechanism(
        float(sigma), sampling_prob=float(q), value_discretization_interval=2e-4
    )
    delta = losses.self_compose(n).get_delta_for_epsilon(float(epsilon))
    return delta * (1 - 1e-4), delta * (1 + 1e-6)


def moved(body: Json, factor: int) -> Fraction:
    """Return the squared ratio of sensitivity and noise of a body without sampling."""
    if "mechanism" in body:
        mechanism = body["mechanism"]
        ratio = factor * positive(mechanism.get("sensitivity", 1)) / positive(mechanism["sigma"])
        return positive(body.get("count", 1), whole=True) * ratio**2
    sampler, n = body["sampler"], int(positive(body["training"]["iterations"], whole=True))
    apart = int(positive(sampler.get("min_separation", 1), whole=True))
    most = min(n, int(positive(sampler.get("max_participations", n), whole=True)), -(-n // apart))
    squares = Fraction(1)
    if "matrix" in body:
        # The document defines the matrix, whatever coefficients the certificate has.
        coefficients = [positive(each) if each != 0 else Fraction(0) for each in body["matrix"]["coefficients"]]
        if not isinstance(body["matrix"].get("normalize", True), bool) or not any(coefficients):
            raise NoDocumentError
        columns = [[Fraction(0)] * (i * apart) + coefficients + [Fraction(0)] * n for i in range(most)]
        squares = (
            sum((sum(rows) ** 2 for rows in zip(*(each[:n] for each in columns), strict=True)), Fraction(0)) / most
        )
        squares /= sum(each**2 for each in coefficients) if body["matrix"].get("normalize", True) else 1
    noise = body["noise"]
    others = sum((1 / positive(each["multiplier"]) ** 2 for each in noise.get("also", ())), Fraction(0))
    return factor**2 * most * (squares / positive(noise["multiplier"]) ** 2 + others)


def exact(certificate: Json) -> tuple[Any, Any]:
    """Return bounds of δ of what the certificate's document describes, at the certificate's ε."""
    document, privacy = copy.deepcopy(certificate["document"]), certificate["document"]["privacy"]
    solved = certificate.get("solved") or {}
    if solved.get("path") == "noise.multiplier":
        document["noise"]["multiplier"] = solved["value"]
    claimed = certificate["guarantee"]
    if claimed["epsilon"] != 0:
        positive(claimed["epsilon"])
    if not positive(claimed["delta"]) < 1 or privacy["adjacency"] not in ("add-remove", "zero-out", "replace-one"):
        raise NoDocumentError
    epsilon = mpmath.mpf(Fraction(claimed["epsilon"]).numerator) / Fraction(claimed["epsilon"]).denominator
    group = int(positive(privacy.get("group_size", 1), whole=True))
    if (document.get("sampler") or {}).get("kind") == "poisson":
        return poisson(epsilon, document, privacy["adjacency"], group)
    factor = group * (2 if privacy["adjacency"] == "replace-one" else 1)
    if (document.get("noise") or {}).get("kind") == "laplace":
        if document["training"]["iterations"] != 1:
            positive(document["training"]["iterations"], whole=True)
            return mpmath.mpf(0), mpmath.inf
        scale = positive(document["noise"]["multiplier"])
        theta = factor * mpmath.mpf(scale.denominator) / scale.numerator
        return (max(mpmath.mpf(0), 1 - mpmath.exp((epsilon - theta) / 2)),) * 2
    bodies = document.get("phases", [document])
    if any("mechanism" in body for body in bodies) and privacy["adjacency"] == "replace-one":
        # The sensitivity of a mechanism is that of the adjacency, so only the run moves twice as far.
        square = sum((moved(body, group if "mechanism" in body else factor) for body in bodies), Fraction(0))
    else:
        square = sum((moved(body, factor) for body in bodies), Fraction(0))
    return (gaussian(epsilon, mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)),) * 2


def judged(certificate: Json) -> str:
    """Return whether a claim is false, true, within the slack, undecided, or no document."""
    try:
        low, high = exact(certificate)
        claimed = Fraction(certificate["guarantee"]["delta"])
    except (NoDocumentError, KeyError, TypeError, ValueError, AttributeError):
        return "no document"
    delta = mpmath.mpf(claimed.numerator) / claimed.denominator
    if low > delta * mpmath.mpf("1.001"):
        return "false"
    if high <= delta:
        return "true"
    return "slack" if low > delta and high <= delta * mpmath.mpf("1.001") else "undecided"


VERDICTS = {"proven", "refuted", "consistent", "not checkable"}


def wrong(judgement: str, verdict: str) -> bool:
    """Return whether a verdict is wrong: a false claim or no document proven, a true claim refuted, or an exception."""
    pairs = {("false", "proven"), ("true", "refuted"), ("no document", "proven")}
    return (judgement, verdict) in pairs or verdict not in VERDICTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="the checker's time limit for each")
    parser.add_argument("--show", action="store_true", help="print what is counted as wrong")
    options = parser.parse_args()
    drawn, whole, spent = random.Random(options.seed), Counter[tuple[str, str]](), 0.0
    weight = sum(weight for weight, _ in DOCUMENTS.values())
    judgements = ("false", "true", "slack", "undecided", "no document")
    print(f"| certificate | {' | '.join(judgements)} | seconds |\n| --- | {'--- | ' * len(judgements)}---: |")

    def line(name: str, counts: Counter[tuple[str, str]], seconds: float) -> None:
        cells = [
            ", ".join(f"{count} {verdict}" for (is_, verdict), count in sorted(counts.items()) if is_ == judgement)
            for judgement in judgements
        ]
        print(f"| {name} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)

    for name, (share, document) in DOCUMENTS.items():
        text = pyaccount.certify({"pyaccount": 1, "name": "changed", **document}).to_json()
        certificate, counts, began = parsed(text), Counter[tuple[str, str]](), spent
        for _ in range(round(options.changes * share / weight)):
            one = changed(certificate, drawn)
            judgement, start = judged(one), time.process_time()
            try:
                verdict = check(one, options.seconds)["verdict"]
            except Exception as error:  # an exception is a defect of the checker, and is counted as one
                verdict = type(error).__name__
            spent += time.process_time() - start
            counts[judgement, verdict] += 1
            if options.show and wrong(judgement, verdict):
                print(judgement, verdict, json.dumps({k: one[k] for k in ("document", "guarantee")}, default=float))
        line(name, counts, spent - began)
        whole += counts
    line("all", whole, spent)
    sys.exit(int(any(count and wrong(*each) for each, count in whole.items())))


if __name__ == "__main__":
    main()
