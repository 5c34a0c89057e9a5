"""What tests of sampled claims are expected to take from one proposal alone and from mixtures, and how fast either is drawn.

For claims at several distances of σ above the pilot's root, the tests that would be chosen with and without mixtures: expected
samples, the samples a second of each on this machine, and the ratio of the seconds.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyaccount
from pyaccount.directions import Direction
from pyaccount.document.document import Document
from pyaccount.document.loading import load_any
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import betting_choice
from pyaccount.execute.sampling.betting_choice import Betting, Claim, choose_betting
from pyaccount.execute.sampling.calibrate import noise_search
from pyaccount.execute.sampling.jobs import SHARD, Bet, BetTable, Proposal
from pyaccount.execute.sampling.session import Session, open_session

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
DOCUMENTS = [EXAMPLES / f"{name}.yaml" for name in ("cifar10-bandmf", "balls-in-bins", "truncated-batches")]
DISTANCES = (0.1, 0.05, 0.02, 0.01, 0.005)
SHARDS = 16


def chosen(session: Session, claim: Claim, direction: Direction, estimate: Any, least: float) -> Betting | None:
    """The test that is chosen if mixtures are looked for from so many samples on."""
    # Powers of the likelihood ratio would serve instead: see powers.py.
    with patch.multiple(betting_choice, MIXED_FROM=least, _special_betting=lambda *_: None):
        found = choose_betting(session.sampler, claim, direction, estimate)
    return found if found is not None and 0.0 < found.expected_samples < math.inf else None


def pace(session: Session, claim: Claim, direction: Direction, proposal: Proposal, cap: float) -> float:
    """Samples a second."""
    table = BetTable(claim.epsilon, cap, (Bet(claim.delta, 0.1 / cap),))
    began = time.monotonic()
    session.sampler.run(claim.mechanism, direction, proposal, [table], session.sampler.stream("pilot", SHARDS))
    return SHARDS * SHARD / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="*", type=Path, default=DOCUMENTS)
    options = parser.parse_args()
    heads = ("σ above", "direction", "δ below", "alone", "per s", "mixture", "per s", "times faster")
    print(f"{'document':24}" + "".join(f"{head:>13}" for head in heads))
    for path in options.documents:
        document = load_any(path)
        assert isinstance(document, Document)
        plan = pyaccount.compile(document)
        document = plan.document
        if document.blank is None or document.blank[-1] != "multiplier":
            continue
        session = open_session(plan, RunOptions(threads=0, seed=1))
        search = noise_search(session)
        for distance in DISTANCES:
            filled, epsilon, acceptance = search.claim(search.pilot_value * (1.0 + distance))
            mechanism = session.mechanism(filled)
            claim = Claim(mechanism, session.noise(filled), epsilon, acceptance.delta, acceptance.log_target)
            for direction, estimate in session.estimate(mechanism, epsilon).items():
                alone = chosen(session, claim, direction, estimate, math.inf)
                both = chosen(session, claim, direction, estimate, 0.0)
                if alone is None or both is None:
                    continue
                rates = [pace(session, claim, direction, one.proposal, one.weight_bound) for one in (alone, both)]
                ratio = alone.expected_samples / rates[0] / (both.expected_samples / rates[1])
                numbers = [alone.expected_samples, rates[0], both.expected_samples, rates[1]]
                print(
                    f"{path.stem:24}{distance:13.3f}{direction:>13}{1.0 - estimate.value / acceptance.delta:13.1%}"
                    + "".join(f"{number:13.3g}" for number in numbers)
                    + (f"{ratio:13.2f}" if both.proposal.components else f"{'–':>13}"),
                    flush=True,
                )


if __name__ == "__main__":
    main()
