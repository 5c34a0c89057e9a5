"""Write `jax_privacy.json`: privacy losses of given outcomes by jax_privacy, compared with ours in tests/core/test_losses.py.

python tests/golden/make_jax_privacy.py   (in an environment with jax-privacy==2.0.0)
"""

from __future__ import annotations

import inspect
import itertools
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jax_privacy import batch_selection
from jax_privacy.experimental.monte_carlo import sample_generation

HERE = Path(__file__).parent
#: Released 2.0.0 has two defects, later corrected upstream (commit 09c2208): the same corrections, by function.
CORRECTIONS = {
    "_compute_b_min_sep_privacy_loss_no_truncation": (
        "squared_norms[-c_col.size + 1 :] = np.cumsum(c_col**2)[:-1]",
        "squared_norms[-1 : -c_col.size : -1] = np.cumsum(c_col**2)[:-1]",
    ),
    "_compute_balls_in_bins_privacy_loss": (
        "elementary_vector = np.zeros(epoch_length, dtype=np.float32)",
        "elementary_vector = np.zeros(epoch_length, dtype=np.float64)",
    ),
}
#: Patterns are enumerated up to so many rounds.
ENUMERATED = 12

PROVENANCE = {
    "source": "jax_privacy, experimental.monte_carlo.sample_generation: y by generate_sample, losses by compute_privacy_loss; "
    "made by tests/golden/make_jax_privacy.py",
    "conventions": "loss = ln P(y)/N(0, σ²I)(y), y = Cx + σz not divided by σ; C is Toeplitz, its first column `coefficients` as "
    "listed (not normalised again); each case has y from P and from N(0, σ²I), as `draws` says.",
    "loss": "the release's own source with two corrections that upstream has made since (commit 09c2208), put in at run time.",
    "loss_as_shipped": "the release as it is, for the record. It differs for b-min-sep with 3 or more bands, where the release "
    "assigns the squared norms of the last, truncated columns in reversed order (losses off by up to 0.16 here; enumeration of "
    "patterns confirms the corrected order), and for balls in bins, where it rounds the first coefficient to single precision ("
    "off by up to 5e-8).",
    "checked": "cases with brute_force_checked agree with an enumeration of all participation patterns to 1e-11.",
}


def corrected_library() -> dict[str, Any]:
    """The library's module with the corrections."""
    source = inspect.getsource(sample_generation)
    for name, (wrong, right) in CORRECTIONS.items():
        function = inspect.getsource(getattr(sample_generation, name))
        assert function.count(wrong) == 1, name
        source = source.replace(function, function.replace(wrong, right))
    names: dict[str, Any] = {"__name__": "sample_generation_corrected"}
    exec(compile(source, "sample_generation_corrected", "exec"), names)
    return names


def square_root(bands: int, *, normalised: bool = True) -> np.ndarray:
    """The banded square root's coefficients."""
    column = [1.0]
    for j in range(1, bands):
        column.append(column[-1] * (2 * j - 1) / (2 * j))
    coefficients = np.array(column)
    return coefficients / np.linalg.norm(coefficients) if normalised else coefficients


def toeplitz(coefficients: np.ndarray, size: int) -> np.ndarray:
    """The lower-triangular matrix with this first column."""
    matrix = np.zeros((size, size))
    for lag, c in enumerate(coefficients[:size]):
        matrix += c * np.eye(size, k=-lag)
    return matrix


def separated(sampler: tuple[int, int, float, str], coefficients: np.ndarray, sigma: float) -> dict[str, Any]:
    """A case of b-min-sep sampling with (n, b, p, start)."""
    n, b, p, start = sampler
    return {
        "sampler": "b_min_sep",
        "iterations": n,
        "min_separation": b,
        "sampling_probability": p,
        "start": start,
        "coefficients": coefficients,
        "noise_multiplier": sigma,
    }


def binned(n: int, bins: int, coefficients: np.ndarray, sigma: float) -> dict[str, Any]:
    """A case of balls in bins."""
    return {
        "sampler": "balls_in_bins",
        "iterations": n,
        "bins": bins,
        "coefficients": coefficients,
        "noise_multiplier": sigma,
    }


CASES = [
    separated((6, 1, 0.3, "cold"), square_root(1), 1.0),
    separated((12, 3, 0.2, "cold"), square_root(3), 0.5),
    separated((12, 3, 0.2, "warm"), square_root(3), 0.5),
    separated((6, 8, 0.25, "warm"), square_root(3), 0.75),
    separated((24, 4, 0.02, "warm"), square_root(2), 1.0),
    separated((40, 4, 0.7, "cold"), square_root(1), 1.5),
    separated((30, 8, 0.1, "warm"), square_root(8), 0.8),
    separated((60, 10, 0.05, "cold"), square_root(8), 3.0),
    separated((60, 12, 1.0 / 3.0, "warm"), square_root(8), 1.0),
    separated((12, 4, 1.0, "warm"), square_root(3), 1.0),
    separated((16, 4, 0.15, "cold"), square_root(3, normalised=False), 2.0),
    binned(12, 4, square_root(3, normalised=False), 1.0),
    binned(30, 5, square_root(8), 2.0),
    binned(60, 12, square_root(8), 0.5),
    binned(10, 4, 0.5 ** np.arange(10), 0.7),
]


def strategy(case: dict[str, Any]) -> Any:
    """The library's object for a case."""
    if case["sampler"] == "b_min_sep":
        return batch_selection.BMinSepSampling(
            sampling_prob=case["sampling_probability"],
            iterations=case["iterations"],
            min_sep=case["min_separation"],
            warm_start=case["start"] == "warm",
        )
    return batch_selection.BallsInBinsSampling(iterations=case["iterations"], cycle_length=case["bins"])


def patterns(case: dict[str, Any]) -> list[tuple[np.ndarray, float]] | None:
    """All participation patterns with their probabilities; None when there are too many."""
    n = case["iterations"]
    if case["sampler"] == "balls_in_bins":
        bins = case["bins"]
        return [((np.arange(n) % bins == t).astype(float), 1.0 / bins) for t in range(bins)]
    if n > ENUMERATED:
        return None
    b, p = case["min_separation"], case["sampling_probability"]
    norm = 1 + (b - 1) * p
    starts = [(i, (p if i else 1.0) / norm) for i in range(b)] if case["start"] == "warm" else [(0, 1.0)]
    found = []
    for x in itertools.product([0, 1], repeat=n):
        total = 0.0
        for start, weight in starts:
            available, chance = start, weight
            for i in range(n):
                if i < available:
                    chance *= 1 - x[i]
                elif x[i]:
                    chance *= p
                    available = i + b
                else:
                    chance *= 1 - p
            total += chance
        if total:
            found.append((np.array(x, dtype=float), total))
    return found


def enumerated_loss(case: dict[str, Any], y: np.ndarray) -> float | None:
    """The loss by enumeration."""
    found = patterns(case)
    if found is None:
        return None
    matrix = toeplitz(case["coefficients"], case["iterations"])
    terms = []
    for x, weight in found:
        mean = matrix @ x
        terms.append(np.log(weight) + (2 * mean @ y - mean @ mean) / (2 * case["noise_multiplier"] ** 2))
    return float(np.logaddexp.reduce(terms))


def record(case: dict[str, Any], seed: int, corrected: dict[str, Any]) -> dict[str, Any]:
    """One case of the file: three outcomes from P, two from N(0, σ²I)."""
    library, sigma, coefficients = strategy(case), case["noise_multiplier"], case["coefficients"]
    rng = np.random.default_rng(seed)
    likely = sample_generation.generate_sample(library, sigma, coefficients, rng, True, 3)
    noise = sample_generation.generate_sample(library, sigma, coefficients, rng, False, 2)
    outcomes = np.ascontiguousarray(np.concatenate([likely, noise], axis=1).T)
    loss, shipped = [], []
    for y in outcomes:
        with np.errstate(all="ignore"):  # ln(1 − p) of p = 1
            loss.append(float(corrected["compute_privacy_loss"](library, y, sigma, coefficients)))
            shipped.append(float(sample_generation.compute_privacy_loss(library, y, sigma, coefficients)))
        expected = enumerated_loss(case, y)
        assert expected is None or abs(loss[-1] - expected) < 1e-11, (case, loss[-1], expected)
    return {
        **case,
        "coefficients": coefficients.tolist(),
        "seed": seed,
        "draws": ["P"] * 3 + ["N(0, σ²I)"] * 2,
        "y": outcomes.tolist(),
        "loss": loss,
        "loss_as_shipped": shipped,
        "brute_force_checked": patterns(case) is not None,
    }


def main() -> None:
    """Compute every case and write the file."""
    corrected = corrected_library()
    cases = [record(case, 20260 + index, corrected) for index, case in enumerate(CASES)]
    provenance = {"version": f"jax-privacy {version('jax-privacy')}", **PROVENANCE}
    text = json.dumps({"provenance": provenance, "cases": cases}, indent=1, ensure_ascii=False)
    (HERE / "jax_privacy.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
