"""What changed certificates claim, judged by other means than those of the independent checker: see `changed_certificates.py`.

`exact` reads the document of a certificate a second time, and returns bounds of δ at the certificate's ε. Each is the larger δ of
both directions, for a pair of data sets that the document allows:

- without sampling, and for one round, the closed form of the profile in mpmath, with 100 bits;
- for several rounds of Poisson sampling the connect-the-dots estimate of dp_accounting with h = 2e-4, whose error is below
  1e-4 of δ here (h = 1e-4 changes δ by less than 1e-5 of it);
- for b-min-sep sampling the quadrature of `two_rounds.py`.

Of what has no such δ, only a lower bound is known: of longer runs with b-min-sep sampling that of their first two rounds, and of
groups and of records that are replaced that of a single record that is removed or added, whose fellows contribute nothing.
"""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
from dp_accounting.pld import privacy_loss_distribution
from two_rounds import TwoRounds

mpmath.mp.prec = 100
Json = dict[str, Any]


class NoDocumentError(Exception):
    """The certificate's document does not say anything."""


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


@lru_cache(maxsize=64)
def composed(sigma: float, q: float, n: int) -> Any:
    """Return the privacy losses of rounds of Poisson sampling, estimated by dp_accounting."""
    losses = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=q, value_discretization_interval=2e-4
    )
    return losses.self_compose(n)


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
    delta = composed(float(sigma), float(q), n).get_delta_for_epsilon(float(epsilon))
    alone = adjacency != "replace-one" and group == 1
    return delta * (1 - 1e-4), delta * (1 + 1e-6) if alone else mpmath.inf


def b_min_sep(epsilon: Any, body: Json, adjacency: str, group: int) -> tuple[Any, Any]:
    """Return bounds of δ of a run with b-min-sep sampling."""
    training, sampler, matrix = body["training"], body["sampler"], body.get("matrix", {"coefficients": [1]})
    n, sigma = int(positive(training["iterations"], whole=True)), positive(body["noise"]["multiplier"])
    column = [positive(each) if each != 0 else Fraction(0) for each in matrix["coefficients"]]
    normalize = matrix.get("normalize", True)
    apart = int(positive(sampler.get("min_separation", len(column)), whole=True))
    p, rate = training.get("sampling_probability"), training.get("participation_rate")
    if not isinstance(normalize, bool) or not any(column) or (p is None) == (rate is None):
        raise NoDocumentError
    if p is None:
        free = 1 - positive(rate) * (apart - 1)
        if free <= 0:
            raise NoDocumentError
        p = positive(rate) / free
    if positive(p) > 1:
        raise NoDocumentError
    if n == 1:
        return mpmath.mpf(0), mpmath.inf
    norm = math.sqrt(sum(each**2 for each in column)) if normalize else 1.0
    entries, warm = [float(each) / norm for each in column], sampler.get("start", "warm") == "warm"
    run = TwoRounds(float(p), apart, entries, float(sigma), warm)
    delta = run.delta(float(epsilon), replaced=adjacency == "replace-one")
    alone = n == 2 and group == 1 and adjacency != "replace-one" and len(column) <= apart
    # Rounding errors matter only below 1e-12.
    return max(0.0, delta * (1 - 1e-5) - 1e-13), delta * (1 + 1e-5) + 1e-13 if alone else mpmath.inf


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
    if (document.get("sampler") or {}).get("kind") == "b-min-sep":
        return b_min_sep(epsilon, document, privacy["adjacency"], group)
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
