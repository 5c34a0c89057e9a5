"""What each way of betting buys: the samples that tests are expected to take with all of them, and without one of them.

For claims at several distances of σ above the pilot's root: the expected samples of both directions, in those of plain sampling,
and the factor by which they grow without mixtures, without one mean that bounds δ, and without second moments, tested or
computed. The choice measures a few samples, so that factors below 1.15 say nothing.
"""

from __future__ import annotations

import argparse
import math
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from pyaccount.directions import Direction
from pyaccount.document.loading import load
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice
from pyaccount.execute.sampling.betting_choice import Claim, choose_betting
from pyaccount.execute.sampling.calibrate import noise_search
from pyaccount.execute.sampling.estimates import Estimate
from pyaccount.execute.sampling.session import Session, open_session
from pyaccount.plan.compiling import compile_document

DISTANCES = (0.1, 0.03, 0.01)


def b_min_sep(separation: int, **more: Any) -> dict[str, Any]:
    return {"kind": "b-min-sep", "min_separation": separation, "start": "warm", **more}


#: ε, δ, training, sampler and the bands of the matrix.
SETTINGS: dict[str, tuple[float, float, dict[str, Any], dict[str, Any], int]] = {
    "b8": (1.0, 1e-5, {"participation_rate": 0.01, "iterations": 500}, b_min_sep(8), 8),
    "b16": (1.0, 1e-3, {"participation_rate": 0.01, "iterations": 500}, b_min_sep(16), 16),
    "b64": (8.0, 1e-5, {"participation_rate": 0.01, "iterations": 2000}, b_min_sep(64), 64),
    "rare": (8.0, 1e-8, {"participation_rate": 0.002, "iterations": 500}, b_min_sep(32), 32),
    "truncated": (
        *(2.0, 1e-5, {"dataset_size": 24_000, "expected_batch_size": 240, "iterations": 100}),
        *(b_min_sep(8, truncate_to=320), 8),
    ),
    "overlapping": (4.0, 1e-5, {"iterations": 160}, {"kind": "balls-in-bins", "bins": 16}, 24),
}
_BOUND = betting_choice.added_bound
WITHOUT: dict[str, dict[str, Any]] = {
    "mixtures": {"_mixed_betting": lambda *_: None},
    "mean": {"_mean_betting": lambda *_: None},
    "tested square": {"_square_betting": lambda *_: None},
    "computed square": {
        "added_bound": lambda core, epsilon, what: None if what == "square" else _BOUND(core, epsilon, what)
    },
}


def opened(name: str) -> Session:
    epsilon, delta, training, sampler, bands = SETTINGS[name]
    document: dict[str, Any] = {
        **{"pyaccount": 1, "name": name, "privacy": {"adjacency": "zero-out", "epsilon": epsilon, "delta": delta}},
        **{"training": training, "sampler": sampler, "matrix": {"kind": "banded-square-root", "bands": bands}},
        "noise": {"multiplier": "solve"},
    }
    return open_session(compile_document(load(document)), RunOptions(threads=0, seed=1))


def expected(session: Session, claim: Claim, estimates: dict[Direction, Estimate], changes: dict[str, Any]) -> float:
    """Return the samples of the tests that are chosen, in plain ones, with something of the choice replaced."""
    with ExitStack() as patched:
        for attribute, value in changes.items():
            patched.enter_context(patch.object(betting_choice, attribute, value))
        found = [choose_betting(session.sampler, claim, side, one) for side, one in estimates.items()]
    return sum(math.inf if one is None else one.expected_plain_samples for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", default=list(SETTINGS), metavar="setting")
    options = parser.parse_args()
    heads = ("σ above", "with all", *WITHOUT)
    print(f"{'':14}" + "".join(f"{head:>17}" for head in heads))
    for name in options.settings:
        session = opened(name)
        search = noise_search(session)
        for distance in DISTANCES:
            filled, epsilon, acceptance = search.claim(search.pilot_value * (1.0 + distance))
            mechanism = session.mechanism(filled)
            claim = Claim(mechanism, session.noise(filled), epsilon, acceptance.delta, acceptance.log_target)
            estimates = session.estimate(mechanism, epsilon)
            usual = expected(session, claim, estimates, {})
            factors = [
                expected(session, claim, estimates, changes) / usual if usual else 1.0 for changes in WITHOUT.values()
            ]
            print(f"{name:14}{distance:17}{usual:17.3g}" + "".join(f"{factor:17.2f}" for factor in factors), flush=True)


if __name__ == "__main__":
    main()
