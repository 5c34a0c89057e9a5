"""Private selection as rounds: what is built, and its lower end."""

import math

import pytest

import pyaccount
from pyaccount._core import answer_all
from pyaccount.directions import DIRECTIONS, Direction
from pyaccount.plan.combinators.best import LAWS, RunLaw, selected
from pyaccount.plan.rounds import DirectedBounds, tight
from pyaccount.profiles import ExponentialProfile, GaussianProfile, PoissonProfile, SelectionProfile

STATED = [
    RunLaw("geometric", (0.2,)),
    RunLaw("logarithmic", (0.05,)),
    RunLaw("negative-binomial", (-0.4, 0.02)),
    RunLaw("negative-binomial", (2.5, 0.3)),
    RunLaw("poisson", (1.5,)),
    RunLaw("binomial", (6.0, 0.3)),
]


def probabilities(law: RunLaw) -> list[float]:
    """Return P(K = k), from the recursion of the law: P(K = k + 1)/P(K = k) is (a + b·k)/(k + 1)."""
    name, parameters = law
    if name == "poisson":
        first, start, ratio = math.exp(-parameters[0]), 0, lambda k: parameters[0] / (k + 1)
    elif name == "binomial":
        trials, p = parameters
        first, start, ratio = (1.0 - p) ** trials, 0, lambda k: max(0.0, trials - k) / (k + 1) * p / (1.0 - p)
    else:
        shape, stopping = {"geometric": (1.0, *parameters), "logarithmic": (0.0, *parameters)}.get(name, parameters)
        start, ratio = 1, lambda k: (k + shape) / (k + 1) * (1.0 - stopping)
        first = 1.0  # normalised below
    masses = [0.0] * start + [first]
    while len(masses) < 4000:
        masses.append(masses[-1] * ratio(len(masses) - 1))
    return [mass / sum(masses) for mass in masses]


@pytest.mark.parametrize("law", STATED, ids=str)
def test_the_moments_of_a_law_are_those_of_its_probabilities(law: RunLaw) -> None:
    assert law.name in LAWS
    assert len(law.parameters) == len(LAWS[law.name])
    masses = probabilities(law)
    assert law.none() == pytest.approx(masses[0], abs=1e-15)
    assert law.mean() == pytest.approx(sum(k * mass for k, mass in enumerate(masses)), rel=1e-9)


def composed(run: DirectedBounds, direction: Direction) -> float:
    """Return δ(0) of one run."""
    rounds = [(item.profile.build(), item.count) for item in run[direction].upper]
    (answer,) = answer_all([(rounds, 0.0, None, 1e-4)])
    return answer.lower


@pytest.mark.parametrize("law", STATED, ids=str)
def test_the_lower_end_is_below_the_upper_one(law: RunLaw) -> None:
    run = tight(GaussianProfile(1.0, 2.0), GaussianProfile(1.0, 2.0), 3)
    bounds = selected(run, law, 4)
    for direction in DIRECTIONS:
        ((upper, count),) = [(rounds.profile.build(), rounds.count) for rounds in bounds[direction].upper]
        assert count == 4
        lower = [(rounds.profile.build(), rounds.count) for rounds in bounds[direction].lower]
        if law.none() == 0.0:
            assert [count for _, count in lower] == [12]
            continue
        ((below, count),) = lower
        assert count == 4
        # With a symbol that may be a run without the record, losses in the direction add end at −ln P(K = 0).
        for epsilon in (0.0, 0.5, 2.0, 4.0):
            assert below.delta(epsilon)[1] <= upper.delta(epsilon)[1] < 1.0
        assert below.delta(0.0)[1] > 0.5 * (1.0 - law.none()) * composed(run, direction)


@pytest.mark.parametrize("law", STATED, ids=str)
def test_the_best_of_pure_runs_is_as_pure_as_its_worst_order_of_outcomes(law: RunLaw) -> None:
    """The best outcomes have the loss −1, and the next ones, of which a few are released as one, the loss 1."""
    masses = probabilities(law)
    best, few = 1 / (1 + math.e), 1e-4

    def released(above: float, own: float) -> float:
        return math.fsum(mass * ((1 - above) ** k - (1 - above - own) ** k) for k, mass in enumerate(masses))

    worst = math.log(released(best, few) / released(best * math.e, few / math.e))
    keys = [{"stopping": "stopping_probability"}.get(name, name) for name in LAWS[law.name]]
    numbers = [int(value) if key == "trials" else value for key, value in zip(keys, law.parameters, strict=True)]
    select = {"kind": law.name, **dict(zip(keys, numbers, strict=True))}
    phase = {"select": select, "phases": [{"mechanism": {"kind": "stated", "epsilon": 1}}]}
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 0}
    epsilon = pyaccount.certify({"pyaccount": 1, "name": "pure", "privacy": privacy, "phases": [phase]}).epsilon
    assert worst <= epsilon <= worst * (1 + 2e-3)


def test_directions_keep_their_profiles() -> None:
    """The direction remove of one run is the first profile of both directions of the selection."""
    run = tight(
        PoissonProfile(1, 0.3, 1.0, two_sided=False, reverse=False),
        PoissonProfile(1, 0.3, 1.0, two_sided=False, reverse=True),
        1,
    )
    bounds = selected(run, RunLaw("geometric", (0.5,)))
    above, below = (bounds[direction].upper[0].profile for direction in DIRECTIONS)
    one, other = (run[direction].upper[0].profile for direction in DIRECTIONS)
    assert above == SelectionProfile(one, other, "geometric", (0.5,), reverse=False)
    assert below == SelectionProfile(one, other, "geometric", (0.5,), reverse=True)
    remove, add = above.build(), below.build()
    # The losses of a sampled record are bounded in the direction add alone.
    assert remove.delta(8.0)[1] > 100.0 * add.delta(8.0)[1]


def test_a_law_near_its_largest_loss_is_not_refused_for_the_rounding_of_losses() -> None:
    """There δ falls to 0, so that the rounding of a loss is a large share of it."""
    one = ExponentialProfile(4.76)
    best = SelectionProfile(one, one, "geometric", (0.0958,), reverse=False).build()
    largest = best.largest_loss()
    assert largest is not None
    (answer,) = answer_all([([(best, 2)], None, 1e-7, 1e-6)])
    assert (1.0 - 1e-6) * answer.upper <= answer.lower <= answer.upper <= 2.0 * float(largest[1])
