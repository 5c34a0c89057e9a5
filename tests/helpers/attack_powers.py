"""Makes statistical tests use powers, blocks, floors, clipped samples, means and directions tested once wherever possible.

Documents of a few rounds rarely use blocks of rounds or clipped samples, because other samples are cheaper or the claim follows
without samples. A test is equally valid with an expensive choice. So this module replaces the decisions that depend only on
cost, and only in the process of a benchmark or of a test.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from pyaccount.errors import NumericsError
from pyaccount.execute.sampling import betting_choice, fixed_sequence, tests_of_claims
from pyaccount.execute.sampling.betting_choice import FIRST, Betting, Claim
from pyaccount.execute.sampling.fixed_sequence import once_on
from pyaccount.execute.sampling.jobs import Replicas
from pyaccount.execute.sampling.proposals import powered
from pyaccount.execute.sampling.session import Session
from pyaccount.execute.sampling.shards import Sampler

#: The largest power that is tried, and the lengths of blocks in rounds (0: round by round).
LARGEST, BLOCKS = 16, (0, 2, 3)
#: A power is not used if its weight bound is more than this many times the claim, nor a test that would need more samples.
LOOSE, MOST_SAMPLES = 300.0, 2e5
#: How often the bound on δ of an added record that needs no samples is ignored, so that clipped samples are used.
UNPROVEN = 0.7
#: How often clipped samples are not used, and then how often the mean that bounds δ is not, so that a second moment is tested.
UNCLIPPED, UNTESTED = 0.4, 0.5
#: A direction is tested only once if its δ is at most this share of the claim.
FAR = 0.999


@contextmanager
def wherever_possible(seed: int) -> Iterator[Counter[str]]:
    """Replace the decisions by cost inside of the context, and return a counter of the tests of each sort."""
    rng, counts = np.random.default_rng([seed, 17]), Counter[str]()
    bet, added, clip = tests_of_claims._bet, betting_choice.added_bound, betting_choice._clipped_betting
    tested = betting_choice._mean_betting

    def replicas(sampler: Sampler, claim: Claim, gap: float, most: float) -> tuple[Replicas, tuple[int, float]] | None:
        """Return any replicas whose bound is useful and that leave out less than the claim."""
        orders = range(FIRST, LARGEST + 1)
        wanted = [Replicas(order, block) for block in BLOCKS for order in orders]
        wanted += [Replicas(order, most_busy=busy) for order in orders for busy in range(2, order)]
        priced = [(one, one.price(claim.mechanism)) for one in wanted]
        possible = [(one, price) for one, price in priced if price is not None]

        def sort(one: Replicas) -> int:
            return -1 if one.most_busy else one.block

        # Each sort comes first equally often.
        first = int(rng.choice(sorted({sort(one) for one, _ in possible})))
        for k in sorted(rng.permutation(len(possible)), key=lambda k: sort(possible[k][0]) != first):
            try:
                limits = sampler.limits(
                    claim.mechanism, "remove", powered(claim.mechanism, possible[k][0]), claim.epsilon
                )
            except NumericsError:
                continue
            if claim.delta < limits.weight_bound < LOOSE * claim.delta and limits.left_out < 0.5 * claim.delta:
                return possible[k]
        return None

    def short(choose: Callable[..., Betting | None]) -> Callable[..., Betting | None]:
        def chosen(*arguments: Any) -> Betting | None:
            found = choose(*arguments)
            return found if found is not None and found.expected_samples <= MOST_SAMPLES else None

        return chosen

    def clipped(*arguments: Any) -> Betting | None:
        """Often return None, so that the mean that bounds δ is tested."""
        return None if rng.random() < UNCLIPPED else clip(*arguments)

    def mean(*arguments: Any) -> Betting | None:
        return None if rng.random() < UNTESTED else tested(*arguments)

    def bound(core: Any, epsilon: float, what: Any) -> tuple[float, float] | None:
        found = added(core, epsilon, what)
        # A δ of 1 is above any claim, so this bound is never sufficient.
        return (1.0, found[1]) if what == "delta" and found is not None and rng.random() < UNPROVEN else found

    def counted(sampler: Sampler, claim: Claim, direction: Any, betting: Betting) -> Any:
        counts[sort_of(betting)] += 1
        return bet(sampler, claim, direction, betting)

    def decided(*arguments: Any) -> Any:
        found = once_on(*arguments)
        counts["grids with a direction tested once"] += found is not None
        return found

    def unproven(*_: Any) -> None:
        return None

    with (
        patch.object(betting_choice, "FEW_PLAIN", 2.0),
        patch.object(betting_choice, "_times", lambda betting: 1e-12),
        patch.object(betting_choice, "SLOWER", 1e-12),
        patch.object(betting_choice, "_sampled_replicas", replicas),
        patch.object(betting_choice, "_powered_betting", short(betting_choice._powered_betting)),
        patch.object(betting_choice, "_clipped_betting", short(clipped)),
        patch.object(betting_choice, "_mean_betting", short(mean)),
        patch.object(betting_choice, "_square_betting", short(betting_choice._square_betting)),
        patch.object(betting_choice, "_price", lambda betting: 1e-12 * betting.expected_samples),
        patch.object(betting_choice, "MEAN_FROM", 0.0),
        patch.object(betting_choice, "added_bound", bound),
        patch.object(tests_of_claims, "_bet", counted),
        patch.object(fixed_sequence, "FAR", FAR),
        patch.object(fixed_sequence, "WORTH_LOWER", float("inf")),
        patch.object(fixed_sequence, "once_on", decided),
        patch.object(Session, "moment_proof", unproven),
    ):
        yield counts


def sort_of(betting: Betting) -> str:
    """Return a word for the samples that a test draws."""
    if betting.proven or not betting.fractions:
        return "without samples"
    if betting.square is not None or betting.clipped > 0.0:
        return "clipped" if betting.square is None else "clipped after a second moment"
    if betting.proposal.log_sobolev is not None:
        return "a mean that bounds δ"
    power = betting.proposal.replicas
    if betting.proposal.floor is not None:
        return "power with a floor"
    if power is not None:
        rounds = f"blocks of {power.block}" if power.block else "round by round"
        return "power, few busy replicas" if power.most_busy else f"power, {rounds}"
    return "mixture" if betting.proposal.components else "plain or scaled"
