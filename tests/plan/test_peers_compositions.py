"""A small share of `benchmarks/random_compositions.py`: never looser than dp_accounting."""

import pytest
from random_compositions import SAME, TOLERANCE, compared, drawn

#: The seeds of compositions that take both accountants a few seconds at most, of every kind.
SEEDS = (3, 4, 6, 10, 14, 19, 29, 31, 32, 37, 43, 56)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_compositions_are_never_looser(seed: int) -> None:
    """dp_accounting's ε is above our lower end; ours is at most theirs, at a smaller tolerance where their grid is that fine."""
    found = compared(drawn(seed))
    assert found.lower <= found.theirs * (1.0 + SAME), found.composition.label
    assert found.upper <= found.theirs * (1.0 + TOLERANCE)
    assert found.upper - found.lower <= 1e-2 * found.upper
    assert found.tolerance is not None, found.composition.label


def test_every_kind_is_drawn() -> None:
    kinds = {phase.kind for seed in SEEDS for phase in drawn(seed).phases}
    assert kinds == {
        "gaussian", "laplace", "randomized response", "discrete laplace", "discrete gaussian", "(ε, δ)",
        "sampled gaussian", "sampled laplace",
    }  # fmt: skip
