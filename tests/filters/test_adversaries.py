"""No adversary beats what a filter promises: exact values of the worst strategies, by dynamic programming."""

import math
import random
from collections import defaultdict
from collections.abc import Callable

import mpmath as mp
import oracle
import pytest
from adaptive_adversaries import Choice, Spent, excess, randomized_response, worst
from filter_samples import gaussian, mechanism

from pyaccount import DocumentError
from pyaccount.filters import BasicFilter, ConcentratedFilter, Filter, GaussianFilter, RenyiFilter
from pyaccount.filters.choosing import filter_for
from pyaccount.filters.mixture import MixtureFilter
from pyaccount.filters.odometer import Odometer

#: A budget that no four entries of the menus use up with every choice, so that the filter decides.
ORDERS = (1.5, 2.0, 4.0, 8.0)
ODOMETER = Odometer((2.0, 3.0, 5.0, 9.0), (0.5, 0.25, 0.125, 0.125))


def menu(rule: Filter | Odometer, *, swapped: bool = False) -> list[Choice]:
    """Return small mechanisms with their costs; `swapped` compares in the other direction."""
    choices = []
    for epsilon in (0.2, 0.5, 1.1):
        p, q = randomized_response(epsilon)
        choices.append(Choice(p, q, rule.cost(mechanism(kind="stated", epsilon=epsilon))))
    # Three values, of which the record's own one is reported with probability 0.6.
    document = mechanism(kind="randomized-response", values=3, truth_probability=0.6, adjacency="replace-one")
    kept, other = 0.6, 0.2
    choices.append(Choice((kept, other, other), (other, kept, other), rule.cost(document)))
    if swapped:
        return [Choice(choice.q, choice.p, choice.cost) for choice in choices]
    return choices


def of_loss(end: Callable[[float], float]) -> Callable[[Spent, float], float]:
    return lambda _, loss: end(loss)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("mu", [0.6, 1.0, 1.7])
def test_no_strategy_of_depth_four_beats_the_gaussian_filter(mu: float, swapped: bool) -> None:
    rule = GaussianFilter(mu)
    choices = menu(rule, swapped=swapped)
    reached = 0.0
    for epsilon in (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0):
        delta = worst(rule, choices, 4, of_loss(excess(epsilon)), rule.admits)
        promised = float(oracle.gaussian_delta(mp.mpf(mu), mp.mpf(epsilon)))
        assert delta <= promised * (1.0 + 1e-9)
        reached = max(reached, delta / promised)
    assert reached > 0.3  # the adversary does something


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("scale", [0.05, 0.2, 0.6])
def test_no_strategy_of_depth_four_beats_the_renyi_filter(scale: float, swapped: bool) -> None:
    """The divergence of every order of the list, and of zCDP at many orders, over all strategies."""
    rule = RenyiFilter(ORDERS, tuple(scale * order for order in ORDERS))
    choices = menu(rule, swapped=swapped)
    for order, budget in zip(rule.orders, rule.budgets, strict=True):
        moment = worst(rule, choices, 4, lambda _, loss, a=order: math.exp((a - 1.0) * loss), rule.admits)
        assert math.log(moment) / (order - 1.0) <= budget * (1.0 + 1e-9)
    concentrated = ConcentratedFilter(scale)
    choices = menu(concentrated, swapped=swapped)
    for order in (1.01, 1.5, 2.0, 5.0, 20.0, 100.0):
        moment = worst(
            concentrated, choices, 4, lambda _, loss, a=order: math.exp((a - 1.0) * loss), concentrated.admits
        )
        assert math.log(moment) / (order - 1.0) <= order * scale * (1.0 + 1e-9)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (1.0, 0.05), (2.2, 0.02)])
def test_no_strategy_of_depth_four_beats_the_basic_filter(epsilon: float, delta: float, swapped: bool) -> None:
    """With entries that have a δ: the worst pair that is (ε, δ)-DP."""
    rule = BasicFilter(epsilon, delta)
    choices = [Choice(*randomized_response(one), (one, 0.0)) for one in (0.2, 0.5, 1.1)]
    for one, failing in ((0.0, 0.01), (0.4, 0.02)):
        (likely, other), _ = randomized_response(one)
        rest = 1.0 - failing
        choices.append(
            Choice(
                (failing, rest * likely, rest * other, 0.0), (0.0, rest * other, rest * likely, failing), (one, failing)
            )
        )
    if swapped:
        choices = [Choice(choice.q, choice.p, choice.cost) for choice in choices]
    reached = worst(rule, choices, 4, of_loss(excess(epsilon)), rule.admits)
    assert reached <= delta + 1e-12
    assert reached >= 0.45 * delta


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.3), (0.6, 0.2), (1.0, 0.1)])
def test_no_strategy_of_depth_four_beats_the_mean_over_orders(epsilon: float, delta: float, swapped: bool) -> None:
    rule = MixtureFilter(epsilon, delta, ODOMETER)
    choices = menu(rule, swapped=swapped)
    reached = worst(rule, choices, 4, of_loss(excess(epsilon)), rule.admits)
    assert 0.0 < reached <= delta


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05])
def test_no_strategy_of_depth_four_beats_the_odometer(delta: float, swapped: bool) -> None:
    """With ε of the time of stopping, and with the ε that the loss exceeds at no time; there is no limit."""
    choices = menu(ODOMETER, swapped=swapped)

    def stopped(spent: Spent, loss: float) -> float:
        return excess(ODOMETER.stopped(spent, delta))(loss)

    def exceeded(spent: Spent, loss: float) -> float:
        """Stopping as soon as the loss exceeds the bound is the best strategy to exceed it at some time."""
        return float(loss > ODOMETER.always(spent, delta))

    for end in (stopped, exceeded):
        assert worst(ODOMETER, choices, 4, end, lambda spent, cost: True) <= delta
    assert worst(ODOMETER, choices, 4, stopped, lambda spent, cost: True) > 0.0


#: Losses are multiples of this, so that the losses of fifty rounds are few numbers.
UNIT = 0.1


def strategies_of_depth_fifty(rule: Filter, epsilon: float) -> tuple[float, float]:
    """Return δ(ε) of a randomised strategy with a fixed seed, and of the best strategy, with two mechanisms to choose from.

    A state is how often each was used, and the loss. Both are exact, by forward and by backward induction.
    """
    kinds = {
        1: rule.cost(mechanism(kind="stated", epsilon=UNIT)),
        3: rule.cost(mechanism(kind="stated", epsilon=3 * UNIT)),
    }
    drawn = random.Random(20260211)

    spent = {(0, 0): rule.nothing}
    for few in range(50):
        if few:
            spent[few, 0] = rule.after(spent[few - 1, 0], kinds[1])
        for many in range(1, 50 - few):
            spent[few, many] = rule.after(spent[few, many - 1], kinds[3])
    open_to = {
        used: [step for step, cost in kinds.items() if rule.admits(total, cost)] for used, total in spent.items()
    }
    end = excess(epsilon)
    masses: dict[tuple[int, int, int], float] = {(0, 0, 0): 1.0}
    random_delta = 0.0
    for _ in range(50):
        following: dict[tuple[int, int, int], float] = defaultdict(float)
        for (few, many, level), mass in masses.items():
            choices = open_to[few, many]
            if not choices or drawn.random() < 0.01:
                random_delta += mass * end(level * UNIT)
                continue
            step = drawn.choice(choices)
            likely = 1.0 / (1.0 + math.exp(-step * UNIT))
            more = (few + (step == 1), many + (step == 3))
            following[*more, level + step] += mass * likely
            following[*more, level - step] += mass * (1.0 - likely)
        masses = following
    random_delta += math.fsum(mass * end(level * UNIT) for (_, _, level), mass in masses.items())

    best: dict[tuple[int, int, int], float] = {}
    for rounds in range(50, -1, -1):
        for few in range(rounds + 1):
            many = rounds - few
            for level in range(-few - 3 * many, few + 3 * many + 1):
                value = end(level * UNIT)
                for step in open_to.get((few, many), []):
                    likely = 1.0 / (1.0 + math.exp(-step * UNIT))
                    more = (few + (step == 1), many + (step == 3))
                    value = max(value, likely * best[*more, level + step] + (1.0 - likely) * best[*more, level - step])
                best[few, many, level] = value
    return random_delta, best[0, 0, 0]


@pytest.mark.parametrize(
    ("rule", "epsilon", "promised"),
    [
        (GaussianFilter(0.9), 1.0, float(oracle.gaussian_delta(mp.mpf(0.9), mp.mpf(1.0)))),
        (MixtureFilter(1.5, 0.01, ODOMETER), 1.5, 0.01),
    ],
    ids=["gaussian", "mixture"],
)
def test_no_strategy_of_depth_fifty_beats_the_promise(rule: Filter, epsilon: float, promised: float) -> None:
    at_random, best = strategies_of_depth_fifty(rule, epsilon)
    assert at_random <= best <= promised * (1.0 + 1e-9)
    assert best > promised / 10.0  # the adversary does something


def test_what_the_natural_filter_lets_pass_is_refused() -> None:
    """The natural f-DP filter of arXiv:2602.06756 composes what was released, and stops where that exceeds the budget.

    First randomized response; then, if its outcome was the more likely one with the record, randomized response again, and
    Gaussian noise otherwise. Both paths keep (ε, δ) as compositions that are fixed beforehand. The strategy does not: large
    losses of the second response matter after a positive loss only, and those of the Gaussian matter after a negative loss too.
    """
    epsilon, first, second = 1.0, 0.5, 1.2
    likely = 1.0 / (1.0 + math.exp(-first))

    def response(at: float) -> float:
        """δ of the second response, a closed form."""
        return max(0.0, (math.exp(second) - math.exp(at)) / (1.0 + math.exp(second))) if at < second else 0.0

    def noise(mu: float, at: float) -> float:
        return float(oracle.gaussian_delta(mp.mpf(mu), mp.mpf(at)))

    def composed(after_likely: float, after_unlikely: float) -> float:
        return likely * after_likely + (1.0 - likely) * after_unlikely

    delta = composed(response(epsilon - first), response(epsilon + first))
    low, high = 0.1, 3.0
    for _ in range(60):
        mu = (low + high) / 2.0
        low, high = (
            (mu, high) if composed(noise(mu, epsilon - first), noise(mu, epsilon + first)) <= delta else (low, mu)
        )
    mu = round(low - 5e-7, 6)
    # Both fixed compositions keep the budget, so that the natural filter lets both second mechanisms pass.
    assert composed(response(epsilon - first), response(epsilon + first)) <= delta
    assert composed(noise(mu, epsilon - first), noise(mu, epsilon + first)) <= delta
    # The strategy exceeds it by a tenth.
    assert composed(response(epsilon - first), noise(mu, epsilon + first)) > 1.1 * delta

    entries = [mechanism(kind="stated", epsilon=one) for one in (first, second)]
    seconds = [entries[1], mechanism(kind="stated", mu=mu)]
    for rule in (
        filter_for(entries[0], epsilon, delta),
        filter_for(gaussian(1.0), epsilon, delta),
        BasicFilter(epsilon, delta),
    ):
        spent = rule.after(rule.nothing, rule.cost(entries[0]))
        assert rule.admits(rule.nothing, rule.cost(entries[0]))
        admitted = []
        for entry in seconds:
            try:
                admitted.append(rule.admits(spent, rule.cost(entry)))
            except DocumentError:
                admitted.append(False)
        assert not all(admitted)
