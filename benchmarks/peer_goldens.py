"""Reference values from dp_accounting for the tests: writes tests/golden/peers.json.

Each case has the peer's pessimistic (upper) ε and, where it is informative, its optimistic (lower) one. The ranges are
those where the peer is right: δ far above the rounding of an untilted FFT, losses that its grid resolves.

Left out for that reason: p = 1e-4, σ = 0.5, n = 50 000 at δ = 1e-7 and below. There the peer's "upper" bound falls below a
proven lower bound, and further below on a finer grid (at δ = 1e-9: by 1.4e-3 on grid 1e-4, by 3.4e-3 on grid 3e-5).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from scipy import stats

TARGET = Path(__file__).resolve().parent.parent / "tests" / "golden" / "peers.json"
#: The optimistic estimate loses up to a grid step for each round: an interval wider than this says nothing.
WIDEST_INTERVAL = 0.05
#: Beyond so many rounds it never is narrower.
MOST_ROUNDS_OPTIMISTIC = 200

HOW = (
    "from_gaussian_mechanism (poisson, gaussian) or from_mixture_gaussian_mechanism with Binomial(k, p) weights (mixture), "
    "self_compose(count), get_epsilon_for_delta(delta); both directions of add-remove, the larger is kept. "
    "epsilon_upper_pessimistic: connect-the-dots, pessimistic_estimate=True. epsilon_optimistic: privacy buckets, "
    "pessimistic_estimate=False, null where the two are further apart than 5 % or it was not computed. "
    "log_mass_truncation_bound=-50. Compare with a relative slack of 1e-6: the peer does not count its rounding."
)


@dataclass(frozen=True)
class Case:
    """Rounds of one kind; `sampling_probability` 1 is a plain Gaussian mechanism."""

    kind: str
    sampling_probability: float
    noise_multiplier: float
    count: int
    delta: float
    grid: float
    group_size: int = 1


def cases() -> Iterator[Case]:
    """About 25 cases over the parameters."""
    for probability, noise, count, delta in [
        (0.01, 1.0, 2_000, 1e-6),
        (0.01, 0.5, 2_000, 1e-6),
        (0.001, 0.8, 100_000, 1e-6),
        (0.01, 1.0, 1, 1e-5),
        (0.01, 1.0, 10, 1e-6),
        (0.1, 1.0, 20, 1e-7),
        (0.1, 2.0, 100, 1e-8),
        (0.5, 3.0, 50, 1e-6),
        (0.9, 5.0, 10, 1e-5),
        (0.02, 0.7, 500, 1e-9),
        (0.004, 0.6, 5_000, 1e-5),
        (0.05, 4.0, 10_000, 1e-7),
        (0.0001, 0.5, 50_000, 1e-5),
        (0.25, 1.5, 200, 1e-9),
    ]:
        yield Case("poisson", probability, noise, count, delta, 1e-4)
    for noise, count, delta in [(1.0, 1, 1e-5), (5.0, 20, 1e-6), (50.0, 1_000, 1e-9), (2.0, 3, 1e-7)]:
        yield Case("gaussian", 1.0, noise, count, delta, 1e-4)
    for group, probability, noise, count, delta in [
        (2, 0.01, 1.0, 2_000, 1e-6),
        (8, 0.01, 1.0, 2_000, 1e-6),
        (32, 0.01, 1.0, 2_000, 1e-6),
        (2, 0.001, 0.8, 10_000, 1e-7),
        (3, 0.1, 3.0, 100, 1e-5),
        (4, 0.02, 2.0, 500, 1e-8),
        (6, 0.3, 8.0, 20, 1e-9),
        (16, 0.005, 4.0, 1_000, 1e-6),
    ]:
        yield Case("mixture", probability, noise, count, delta, 1e-3, group)


def epsilon(case: Case, *, pessimistic: bool) -> float:
    """The peer's ε for a case, from above or from below."""
    options = {
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
        "value_discretization_interval": case.grid,
    }
    if case.kind == "mixture":
        records = np.arange(case.group_size + 1)
        single = privacy_loss_distribution.from_mixture_gaussian_mechanism(
            case.noise_multiplier,
            sensitivities=records.tolist(),
            sampling_probs=stats.binom.pmf(records, case.group_size, case.sampling_probability).tolist(),
            **options,
        )
    else:
        single = privacy_loss_distribution.from_gaussian_mechanism(
            case.noise_multiplier, sampling_prob=case.sampling_probability, **options
        )
    return float(single.self_compose(case.count).get_epsilon_for_delta(case.delta))


def record(case: Case) -> dict[str, Any]:
    """One case of the file."""
    upper = epsilon(case, pessimistic=True)
    lower = None
    # The peer builds the optimistic law of a mixture by one bisection for each grid point: too slow.
    if case.kind != "mixture" and case.count <= MOST_ROUNDS_OPTIMISTIC:
        candidate = epsilon(case, pessimistic=False)
        lower = candidate if upper - candidate <= WIDEST_INTERVAL * upper else None
    parameters: dict[str, Any] = {"noise_multiplier": case.noise_multiplier}
    if case.kind != "gaussian":
        parameters = {"sampling_probability": case.sampling_probability, **parameters}
    if case.kind == "mixture":
        parameters = {"group_size": case.group_size, **parameters}
    return {
        "kind": case.kind,
        **parameters,
        "count": case.count,
        "delta": case.delta,
        "epsilon_upper_pessimistic": upper,
        "epsilon_optimistic": lower,
        "grid": case.grid,
    }


def main() -> None:
    """Compute every case and write the file."""
    records = []
    for case in cases():
        print(case, file=sys.stderr, flush=True)
        records.append(record(case))
    provenance = {
        "source": "dp_accounting, privacy loss distributions; made by benchmarks/peer_goldens.py",
        "version": version("dp-accounting"),
        "how": HOW,
    }
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps({"provenance": provenance, "cases": records}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
