"""Oracles that are exact: closed forms and quadrature in high precision, and every way that a record can take part."""

from __future__ import annotations

import math
from typing import Any

from validating.checks import ROOT, Check, Range, document, near, poisson

#: Relative errors that oracles of tests/helpers promise of themselves: mpmath's, and of quadrature.
PRECISE, INTEGRATED = 1e-12, 3e-5


def closed_forms() -> list[Check]:
    """Mechanisms of which δ(ε) has a formula, or one integral."""
    import oracle  # with mpmath

    def gaussian(sigma: float, rounds: int, delta: float) -> Check:
        return Check(
            "Gaussian noise without sampling",
            f"σ = {sigma:g}, n = {rounds}",
            document(
                {"training": {"iterations": rounds}, "sampler": {"kind": "none"}}, sigma, epsilon="solve", delta=delta
            ),
            "closed form (Balle & Wang 2018), 50 digits",
            lambda: near(float(oracle.gaussian_epsilon(math.sqrt(rounds) / sigma, delta)), PRECISE),
        )

    def laplace(scale: float, epsilon: float) -> Check:
        asked = document(
            {"training": {"iterations": 1}, "sampler": {"kind": "none"}}, scale, epsilon=epsilon, delta="solve"
        )
        asked["noise"]["kind"] = "laplace"
        return Check(
            "Laplace noise without sampling",
            f"scale {scale:g}, n = 1",
            asked,
            "closed form: 1 − e^((ε − 1/scale)/2)",
            lambda: near(-math.expm1((epsilon - 1.0 / scale) / 2), PRECISE),
        )

    def one_round(
        name: str, setting: str, mechanism: dict[str, Any], drawn: tuple[float, float], sigma: float
    ) -> Check:
        """The record is drawn with a probability, and then shifts the sum by so much."""
        epsilon, (rate, shift) = 1.0, drawn

        def answer() -> Range:
            mp = oracle.mp
            weights = [(1 - mp.mpf(rate), mp.mpf(0)), (mp.mpf(rate), mp.mpf(shift) / mp.mpf(sigma))]
            nothing = [(mp.mpf(1), mp.mpf(0))]
            with mp.workdps(oracle.DIGITS):
                remove = oracle.mixture_delta(weights, nothing, mp.mpf(epsilon))
                add = oracle.mixture_delta(nothing, weights, mp.mpf(epsilon), increasing=False)
            return near(float(max(remove, add)), PRECISE)

        asked = document(mechanism, sigma, epsilon=epsilon, delta="solve")
        return Check(name, setting, asked, "the integral, 50 digits", answer)

    fixed = {
        "training": {"dataset_size": 100, "expected_batch_size": 10, "iterations": 1},
        "sampler": {"kind": "fixed-size"},
    }
    return [
        gaussian(2.0, 10, 1e-5),
        gaussian(2.0, 10, 1e-100),
        gaussian(30.0, 1_000_000, 1e-9),
        laplace(0.5, 1.0),
        laplace(0.5, 0.0),
        one_round("Poisson sampling", "p = 0.1, σ = 1, n = 1", poisson(0.1, 1), (0.1, 1.0), 1.0),
        one_round("Poisson sampling", "p = 1e-7, σ = 0.5, n = 1", poisson(1e-7, 1), (1e-7, 1.0), 0.5),
        one_round("Batches of a fixed size", "10 of 100, σ = 2, n = 1", fixed, (0.1, 2.0), 2.0),
    ]


def enumerated() -> list[Check]:
    """A few rounds, every way to take part, and the mixtures of Gaussians integrated."""
    import exact_documents

    bands = {"matrix": {"kind": "banded-square-root", "bands": 2}}
    long = {"matrix": {"kind": "banded-square-root", "bands": 3}}

    def sampled(rate: float, rounds: int, **sampler: Any) -> dict[str, Any]:
        return {"training": {"sampling_probability": rate, "iterations": rounds}, "sampler": sampler}

    def truncated(mechanism: dict[str, Any], size: int) -> dict[str, Any]:
        """Two records are kept."""
        training, sampler = mechanism["training"] | {"dataset_size": size}, mechanism["sampler"] | {"truncate_to": 2}
        return {"training": training, "sampler": sampler}

    cases: list[tuple[str, str, dict[str, Any], float]] = [
        ("Poisson sampling", "p = 0.2, σ = 0.8, n = 3", poisson(0.2, 3), 0.8),
        (
            "b-min-sep with a matrix",
            "b = 2, p = 0.3, 2 bands, σ = 1, n = 4, warm",
            sampled(0.3, 4, kind="b-min-sep", min_separation=2) | bands,
            1.0,
        ),
        (
            "b-min-sep with a matrix",
            "b = 2, p = 0.3, 2 bands, σ = 1, n = 4, cold",
            sampled(0.3, 4, kind="b-min-sep", min_separation=2, start="cold") | bands,
            1.0,
        ),
        (
            "Users without shared records",
            "2 records each, b = 2, p = 0.2, 2 bands, σ = 1, n = 3",
            sampled(0.2, 3, kind="user-b-min-sep", min_separation=2, records_per_user=2, attribution="single") | bands,
            1.0,
        ),
        (
            "Balls in bins with a matrix",
            "2 bins, 3 bands, σ = 1.5, n = 4",
            {"training": {"iterations": 4}, "sampler": {"kind": "balls-in-bins", "bins": 2}} | long,
            1.5,
        ),
        (
            "Cyclic Poisson, random parts",
            "2 parts, p = 0.5, 2 bands, σ = 1, n = 4",
            sampled(0.5, 4, kind="cyclic-poisson", partitions=2, phase="random") | bands,
            1.0,
        ),
        (
            "b-min-sep, columns longer than the separation",
            "b = 2, p = 0.3, BLT with scale 0.3 and decay 0.6, σ = 1, n = 3, warm",
            sampled(0.3, 3, kind="b-min-sep", min_separation=2)
            | {"matrix": {"kind": "blt", "scales": [0.3], "decays": [0.6]}},
            1.0,
        ),
        (
            "Truncated b-min-sep batches",
            "2 of 5 records kept, b = 2, p = 0.3, 2 bands, σ = 2, n = 2, warm",
            truncated(sampled(0.3, 2, kind="b-min-sep", min_separation=2), 5) | bands,
            2.0,
        ),
        (
            "Truncated batches of balls in bins",
            "2 of 5 records kept, 2 bins, 2 bands, σ = 2, n = 3",
            truncated({"training": {"iterations": 3}, "sampler": {"kind": "balls-in-bins", "bins": 2}}, 5) | bands,
            2.0,
        ),
    ]
    parts = [
        sampled(0.3, 2, kind="b-min-sep", min_separation=2) | bands | {"noise": {"multiplier": 1.0}},
        {"training": {"iterations": 2}, "sampler": {"kind": "balls-in-bins", "bins": 2}, "noise": {"multiplier": 1.5}},
    ]

    def check(name: str, setting: str, mechanism: dict[str, Any], sigma: float | None) -> Check:
        epsilon = 1.0
        asked = document(mechanism, sigma, epsilon=epsilon, delta="solve", adjacency="zero-out")
        truth = exact_documents.Truth(asked, ROOT)
        words = "every way to take part, integrated"
        return Check(name, setting, asked, words, lambda: near(truth.largest(epsilon), INTEGRATED))

    both = "b-min-sep: b = 2, p = 0.3, 2 bands, σ = 1, n = 2; 2 bins: σ = 1.5, n = 2"
    return [*(check(*case) for case in cases), check("Two phases that are sampled", both, {"phases": parts}, None)]


def allocated() -> list[Check]:
    """One of a few rounds, by quadrature of log-normal numbers."""
    import log_normals

    def check(rounds: int, sigma: float, epsilon: float) -> Check:
        mechanism = {
            "training": {"iterations": rounds},
            "sampler": {"kind": "random-allocation", "iterations_per_allocation": rounds},
        }

        def answer() -> Range:
            squares = [sigma**-2] * rounds
            return near(
                max(log_normals.quadrature(squares, epsilon, reverse=reverse) for reverse in (False, True)), INTEGRATED
            )

        return Check(
            "Random allocation",
            f"one of {rounds} rounds, σ = {sigma:g}",
            document(mechanism, sigma, epsilon=epsilon, delta="solve"),
            "quadrature of sums of log-normal numbers",
            answer,
        )

    return [check(2, 1.0, 0.5), check(3, 0.8, 1.0)]
