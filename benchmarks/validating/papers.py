"""What papers print: certified at the noise that a table's error follows from, and in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from validating.checks import Check, Range, document, near

#: A table's error has two decimals, so its σ is known to 2e-5 or better, and ε to a few times that.
PRINTED = 1e-4
#: Half a unit of the last digit of the tables of ε′ and δ′, and what rounding that twice may add.
DIGITS = 6e-4

CIFAR = "arXiv:2602.09338, the CIFAR-10 table"
MUST = "arXiv:2312.13389, Table 3"


def papers() -> list[Check]:
    """Tables that say enough to be asked the same question."""
    return [*cifar(), *must()]


def cifar() -> list[Check]:
    """n = 2000, p = 0.01, δ = 1e-5, zero-out: σ is that of the error that the table prints, and ε what it is said to give."""
    training = {"iterations": 2000, "participation_rate": 0.01}
    poisson = {"training": training, "sampler": {"kind": "poisson"}}

    def cyclic(bands: int) -> dict[str, Any]:
        sampler = {"kind": "cyclic-poisson", "partitions": bands}
        return {"training": training, "sampler": sampler, "matrix": {"kind": "optimal-toeplitz", "bands": bands}}

    renewal = {
        "training": training,
        "sampler": {"kind": "b-min-sep", "min_separation": 64, "start": "warm"},
        "matrix": {"kind": "banded-square-root", "bands": 64},
        "accounting": {"profile": [], "seed": 20261123, "tolerance": 0.05},
    }
    rows: list[tuple[str, str, dict[str, Any], float, float]] = [
        *(
            ("Poisson sampling", "CIFAR-10, DP-SGD", poisson, epsilon, error)
            for epsilon, error in ((0.5, 10625.72), (1.0, 3397.66), (2.0, 1321.63), (4.0, 676.88), (8.0, 414.09))
        ),
        *(
            ("Cyclic Poisson with a matrix", f"CIFAR-10, {bands} bands of least error", cyclic(bands), epsilon, error)
            for epsilon, bands, error in ((1.0, 4, 3113.98), (2.0, 8, 983.42), (4.0, 16, 337.71), (8.0, 32, 126.57))
        ),
        ("b-min-sep with a matrix", "CIFAR-10, 64 bands of the square root", renewal, 8.0, 84.85),
    ]
    cut = (
        "2000 rounds end within a part's last turn of 32 rounds, where its column of C is cut off; the table counts 63 whole "
        "ones (so does pyaccount with 2016 rounds, where ε is 8.0002 at this σ)"
    )
    return [replace(check(*row), why=cut if "32 bands" in row[1] else "") for row in rows]


def check(name: str, setting: str, mechanism: dict[str, Any], epsilon: float, error: float) -> Check:
    """ε at the σ that makes the error of prefix sums what the table says."""
    unit = document(mechanism, 1.0, epsilon="solve", delta=1e-5, adjacency="zero-out")
    sigma = math.sqrt(error / squares(unit))
    asked = document(mechanism, sigma, epsilon="solve", delta=1e-5, adjacency="zero-out")
    words = f"{setting}, ε = {epsilon:g}: error {error:.2f}, so σ = {sigma:.5g}"
    return Check(name, words, asked, CIFAR, lambda: near(epsilon, PRINTED))


def squares(asked: dict[str, Any]) -> float:
    """The mean squared error of prefix sums at σ = 1, by numpy from the coefficients of C alone."""
    import numpy as np  # the page is written without them

    import pyaccount

    n = asked["training"]["iterations"]
    if "matrix" not in asked:
        return (n + 1) / 2
    coefficients = np.zeros(n)
    found = np.array(pyaccount.matrix(asked).phases[0].matrix.coefficients)
    coefficients[: len(found)] = found
    # Column 0 of C⁻¹ and, summed, of AC⁻¹, by forward substitution.
    inverse = np.zeros(n)
    inverse[0] = 1.0 / coefficients[0]
    for i in range(1, n):
        inverse[i] = -np.dot(coefficients[1 : i + 1], inverse[i - 1 :: -1][:i]) / coefficients[0]
    return float(np.mean(np.cumsum(np.cumsum(inverse) ** 2)))


def must() -> list[Check]:
    """One draw in two stages, of 400 from 500 of 1000 records: ε′ and δ′ of a Gaussian mechanism with μ = 1 at ε = 1."""
    printed = {
        "fixed-size": ("without replacement", 0.523, 0.051),
        "with-replacement": ("with replacement", 0.449, 0.068),
        "must-ow": ("two stages, without and with", 0.388, 0.079),
        "must-ww": ("two stages, with and with", 0.346, 0.052),
    }
    why = (
        "the table's last row repeats one of the Laplace mechanism; δ′ by the paper's own Theorem 5 is 0.083, which "
        "`tests/certificate` has from 40 digits"
    )
    found = []
    for kind, (words, epsilon, delta) in printed.items():
        sampler = {"kind": kind} | ({"subset_size": 500} if kind.startswith("must") else {})
        asked = {
            "pyaccount": 1,
            "kind": "amplification",
            "name": "validation",
            "sampling": {"dataset_size": 1000, "expected_batch_size": 400},
            "sampler": sampler,
            "base": {"kind": "gaussian", "multiplier": 1.0, "epsilon": [1.0]},
        }
        for quantity, value in (("amplified_epsilon", epsilon), ("amplified_delta", delta)):
            reason = why if (kind, quantity) == ("must-ww", "amplified_delta") else ""
            found.append(
                Check(
                    "One draw, amplified",
                    f"400 of 1000, {words}, σ = 1",
                    asked,
                    MUST,
                    lambda value=value: (round(value - DIGITS, 4), round(value + DIGITS, 4)),
                    reason,
                    partial(effect, quantity),
                    {"amplified_epsilon": "ε′ at ε = 1", "amplified_delta": "δ′ at ε = 1"}[quantity],
                )
            )
    return found


def effect(quantity: str, asked: dict[str, Any]) -> tuple[Range, float]:
    """ε′ or δ′, which are closed forms rounded up by a few units in the last place."""
    import pyaccount

    value = float(getattr(pyaccount.amplify(asked).effects[0], quantity))
    return (value * (1.0 - 1e-12), value), 0.0
