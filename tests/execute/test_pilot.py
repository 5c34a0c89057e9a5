"""The pilot's root in few estimates: the model against closed forms, and the search on functions with a known root."""

import math
from types import SimpleNamespace
from typing import Any, cast

import mpmath
import pytest

from pyaccount.execute.sampling.estimates import ESTIMATE, SCOUT
from pyaccount.execute.sampling.pilot import Crossing, crossing_root, epsilon_model, log_gaussian, mu_at, noise_model
from pyaccount.execute.sampling.session import Session


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 8.0, 50.0])
@pytest.mark.parametrize("mu", [0.1, 0.5, 2.0, 6.0])
def test_the_model_is_the_gaussian_mechanism(mu: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        exact = mpmath.ncdf(-epsilon / mpmath.mpf(mu) + mpmath.mpf(mu) / 2)
        exact -= mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mpmath.mpf(mu) - mpmath.mpf(mu) / 2)
        log = float(mpmath.log(exact))
    assert log_gaussian(mu, epsilon) == pytest.approx(log, abs=0.02, rel=1e-3)
    assert mu_at(log, epsilon) == pytest.approx(mu, rel=5e-3)


def gaussian(sigma: float, epsilon: float) -> float:
    return math.exp(log_gaussian(1.0 / sigma, epsilon))


class Looked:
    """A stand-in for a session: δ of two directions is known, and every estimate is counted."""

    def __init__(self, deltas: Any, noise: float = 0.0) -> None:
        self.deltas, self.noise = deltas, noise
        self.stream, self.latest = 1, cast("dict[str, Any]", {})
        self.plan = SimpleNamespace(tolerance=0.01)
        self.looks: list[tuple[float, int, tuple[str, ...] | None]] = []

    def estimate(self, mechanism: Any, epsilon: float, *, shards: int, stream: int, directions: Any) -> dict[str, Any]:
        self.looks.append((mechanism, shards, directions))
        found = {
            side: SimpleNamespace(value=self.deltas[side](mechanism, epsilon), standard_error=self.noise)
            for side in directions or self.deltas
        }
        if directions is None:
            self.latest = found
        return found


def searched(session: Looked, epsilon: float, claim: float, start: float) -> float:
    crossing = Crossing(lambda sigma: (cast("Any", sigma), epsilon), claim, noise_model(epsilon, claim), 1e-3, 1e3)
    return crossing_root(cast("Session", session), crossing, start)


def test_one_coarse_look_and_one_full_one_find_a_gaussian_root() -> None:
    session = Looked({"remove": gaussian, "add": lambda sigma, epsilon: 0.1 * gaussian(sigma, epsilon)})
    claim = gaussian(1.7, 2.0)
    assert searched(session, 2.0, claim, 3.0) == pytest.approx(1.7, rel=1e-6)
    assert [(shards, directions) for _, shards, directions in session.looks] == [
        (SCOUT, None),
        (ESTIMATE, ("remove",)),
        (SCOUT, ("add",)),
    ]
    assert set(session.latest) == {"remove", "add"}


@pytest.mark.parametrize("power", [0.5, 1.4, 2.5])
@pytest.mark.parametrize("start", [0.3, 1.0, 9.0])
def test_roots_of_other_laws_are_found_too(power: float, start: float) -> None:
    """The μ of these runs falls with another power of σ than its inverse."""

    def delta(sigma: float, epsilon: float) -> float:
        return gaussian(sigma**power, epsilon)

    session = Looked({"remove": delta, "add": delta})
    root = searched(session, 1.0, delta(1.3, 1.0), start)
    assert root == pytest.approx(1.3, rel=1e-3)
    assert len(session.looks) <= 12


def test_a_direction_that_overtakes_the_other_one_is_seen_at_the_root() -> None:
    """δ of added records is far below at the start, and above at the root."""
    session = Looked({"remove": gaussian, "add": lambda sigma, epsilon: gaussian(sigma**0.8 * 0.9, epsilon)})
    claim = gaussian(0.5, 1.0)
    sigma = searched(session, 1.0, claim, 20.0)
    assert max(session.deltas[side](sigma, 1.0) for side in ("remove", "add")) == pytest.approx(claim, rel=0.02)


def test_a_look_that_sees_no_loss_leads_nowhere() -> None:
    """Few samples of a tiny δ see a loss up to some σ, and none beyond. The root is there, or where the model predicts it
    from a loss that was seen, but not where it predicts it from 0."""

    def seen(sigma: float, epsilon: float) -> float:
        return gaussian(sigma, epsilon) if sigma < 2.8 else 0.0

    claim = gaussian(2.9, 2.0)
    for start in (0.5, 1.0, 1.7, 2.0, 2.5, 2.75, 4.0):
        root = searched(Looked({"remove": seen, "add": seen}), 2.0, claim, start)
        assert 2.79 < root < 2.91


def test_ends_of_the_range_are_told_where_nothing_crosses() -> None:
    high = Looked({"remove": lambda *_: 0.5, "add": lambda *_: 0.4})
    assert searched(high, 1.0, 0.1, 1.0) == 1e3
    low = Looked({"remove": lambda *_: 1e-9, "add": lambda *_: 1e-9})
    assert searched(low, 1.0, 0.1, 1.0) == 1e-3


def test_the_model_of_epsilon_is_exact_for_a_gaussian_mechanism() -> None:
    model = epsilon_model(1e-5)
    root = model(1.0, math.log(gaussian(1.5, 1.0)))
    assert gaussian(1.5, root) == pytest.approx(1e-5, rel=1e-6)
