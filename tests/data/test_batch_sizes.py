"""Expected batches of users against enumeration and stationary laws, and simulated ones against both."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest

from pyaccount.data.attribution import AttributionTable
from pyaccount.data.batches import BatchLaw, simulated
from pyaccount.data.bounding import neighbour_count
from pyaccount.data.reading import attribution_of

SHARED = [("a", "x"), ("b", "x"), ("b", "y"), ("c", "y"), ("d", "z")]
SINGLE = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "y"), ("e", "z"), ("f", "z")]


def law_of(table: AttributionTable, separation: int, *, shared: bool) -> BatchLaw:
    everyone = np.ones(len(table.record_names), dtype=np.bool_)
    return BatchLaw.of(table.degrees(everyone), neighbour_count(table, everyone), separation, shared=shared)


def enumerated(pairs: list[tuple[str, str]], separation: int, p: float) -> float:
    """The mean batch of round b under Algorithm 3, over every pattern of draws of rounds 1 to b."""
    owners = defaultdict(set)
    for record, user in pairs:
        owners[record].add(user)
    records = sorted(owners)
    mean = 0.0
    for bits in product((False, True), repeat=separation * len(records)):
        draws = [
            {r for r, bit in zip(records, bits[i:], strict=False) if bit} for i in range(0, len(bits), len(records))
        ]
        excluded = {e for drawn in draws[:-1] for one in drawn for e in records if owners[one] & owners[e]}
        probability = float(np.prod([p if bit else 1.0 - p for bit in bits]))
        mean += probability * len(draws[-1] - excluded)
    return mean


@pytest.mark.parametrize(("separation", "p"), [(1, 0.3), (2, 0.3), (3, 0.2), (4, 0.05), (3, 1.0)])
def test_batches_of_shared_records_by_enumeration(separation: int, p: float) -> None:
    law = law_of(attribution_of(SHARED), separation, shared=True)
    assert law.expected(p) == pytest.approx(enumerated(SHARED, separation, p), rel=1e-12, abs=1e-15)


def stationary(records: int, separation: int, p: float) -> float:
    """The long-run batch of one user, from the stationary law of a Markov chain: the rounds that are still to be sat out."""
    drawn = 1.0 - (1.0 - p) ** records
    chain = np.zeros((separation, separation))
    chain[0, 0] = 1.0 - drawn
    chain[0, separation - 1] += drawn
    for rest in range(1, separation):
        chain[rest, rest - 1] += 1.0
    matrix = np.vstack([chain.T - np.eye(separation), np.ones(separation)])
    law = np.linalg.lstsq(matrix, np.array([0.0] * separation + [1.0]), rcond=None)[0]
    return float(law[0] * records * p)


@pytest.mark.parametrize(("separation", "p"), [(1, 0.3), (2, 0.3), (5, 0.2), (8, 0.7), (1, 1.0), (3, 1.0)])
def test_batches_of_users_alone_by_their_stationary_law(separation: int, p: float) -> None:
    law = law_of(attribution_of(SINGLE), separation, shared=False)
    expected = sum(stationary(k, separation, p) for k in (3, 1, 2))
    assert law.expected(p) == pytest.approx(expected, rel=1e-10)


def tables() -> dict[str, tuple[AttributionTable, bool]]:
    chance = np.random.default_rng(7)
    single = [(f"r{k}", f"u{chance.integers(40)}") for k in range(120)]
    shared = [*single, *((f"r{k}", f"u{chance.integers(40)}") for k in range(0, 120, 4))]
    return {"single": (attribution_of(single), False), "shared": (attribution_of(shared), True)}


@pytest.mark.parametrize("name", ["single", "shared"])
@pytest.mark.parametrize(("separation", "p"), [(1, 0.1), (6, 0.02), (6, 0.2)])
def test_simulated_batches_have_the_expected_mean(name: str, separation: int, p: float) -> None:
    table, shared = tables()[name]
    found = simulated(table, p, separation, 5, shared=shared)
    right, wrong = (law_of(table, separation, shared=law).expected(p) for law in (shared, not shared))
    assert abs(found.mean - right) <= 4.5 * found.standard_error
    if (separation, p) == (6, 0.2):
        # The simulation tells the laws apart.
        assert abs(found.mean - wrong) > 20.0 * found.standard_error
    assert found.largest >= found.mean
    assert found == simulated(table, p, separation, 5, shared=shared)


def test_the_standard_error_is_that_of_the_mean() -> None:
    """Of 40 simulations with other seeds, the means vary by as much as each says."""
    table, shared = tables()["shared"]
    runs = [simulated(table, 0.05, 4, seed, shared=shared) for seed in range(40)]
    spread = float(np.std([run.mean for run in runs], ddof=1))
    said = float(np.sqrt(np.mean([run.standard_error**2 for run in runs])))
    # The spread of 40 is known to 11 %, the errors together to 3 %.
    assert 0.6 < spread / said < 1.6


@pytest.mark.parametrize("name", ["single", "shared"])
@pytest.mark.parametrize("separation", [1, 3, 10])
def test_the_least_probability_is_found(name: str, separation: int) -> None:
    table, shared = tables()[name]
    law = law_of(table, separation, shared=shared)
    most, _ = law.largest()
    for batch in (0.01 * most, 0.3 * most, 0.99 * most):
        p = law.probability(batch)
        assert p is not None
        assert law.expected(p) == pytest.approx(batch, rel=1e-5)
        assert all(law.expected(q) < batch for q in np.linspace(p / 100, p * 0.99999, 300))
    assert law.probability(1.05 * max(law.expected(q) for q in np.linspace(1e-6, 1.0, 10_000))) is None
    assert law.probability(1e9) is None
