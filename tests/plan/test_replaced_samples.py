"""Samples in which a drawn record is replaced: against enumerations of small data sets with fractions, and closed forms."""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount import _core
from pyaccount.errors import DocumentError
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.replaced import replaced_in_sample
from pyaccount.plan.rounds import Bounds, DirectedBounds
from pyaccount.profiles import FiniteProfile, ProfileKind, Rounds

Law = tuple[Fraction, ...]


def stick(p: Law, q: Law, alpha: Fraction) -> Fraction:
    """Return Σ (p − αq)₊."""
    return sum((max(Fraction(0), a - alpha * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def mixture(weights: Iterator[Fraction] | list[Fraction], laws: list[Law]) -> Law:
    """Return a mixture of laws."""
    return tuple(
        sum((w * x for w, x in zip(weights, column, strict=True)), Fraction(0)) for column in zip(*laws, strict=True)
    )


def law_of_sample(run: Callable[[frozenset[str]], Law], records: list[str], q: Fraction) -> Law:
    """Return the law of a run on a Poisson sample of some records, by all samples."""
    samples = [frozenset(kept) for size in range(len(records) + 1) for kept in itertools.combinations(records, size)]
    weights = [q ** len(sample) * (1 - q) ** (len(records) - len(sample)) for sample in samples]
    return mixture(weights, [run(sample) for sample in samples])


def written(*phases: dict[str, Any], adjacency: str = "replace-one", **privacy: Any) -> dict[str, Any]:
    """Return a document of phases, under replace-one unless another adjacency is given."""
    target = {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-6} | privacy
    return {"pyaccount": 1, "name": "replaced", "privacy": target, "phases": list(phases)}


def profile(document: dict[str, Any], direction: str = "remove") -> Callable[[float], tuple[float, float]]:
    """Return the bounds on δ of one run of a document, from below by its lower rounds and from above by the upper ones."""
    bounds = compile_document(pyaccount.load(document)).at().composed_bounds()[direction]  # type: ignore[index]
    ((upper,), (lower,)) = (bounds.upper, bounds.lower)
    above, below = upper.profile.build(), lower.profile.build()
    return lambda epsilon: (below.delta(epsilon)[0], above.delta(epsilon)[1])


def sample(q: float | dict[str, Any] = 0.25, **fields: Any) -> dict[str, Any]:
    return {"kind": "poisson", "sampling_probability": q, **fields}


ALPHAS = [Fraction(n, 16) for n in (1, 4, 8, 12, 14, 15, 16, 17, 18, 20, 24, 28, 32, 40, 48, 64, 128)]
RESPONSE = {"kind": "randomized-response", "values": 3, "truth_probability": 0.75, "answers": "once"}


# ---- one value of all records


def test_one_randomised_value_of_a_sample_is_bounded_for_any_values_and_attained() -> None:
    """All functions of the samples of a record and another one to three values, which are released by randomized response."""
    q, p = Fraction(1, 4), Fraction(3, 4)
    values = [tuple(p if i == j else (1 - p) / 2 for j in range(3)) for i in range(3)]
    bound = {way: profile(written({"mechanism": RESPONSE, "sampler": sample()}), way) for way in ("remove", "add")}
    worst = dict.fromkeys(ALPHAS, Fraction(0))
    samples = [frozenset(kept) for kept in ((), ("z",), ("x",), ("x", "z"), ("y",), ("y", "z"))]
    for choice in itertools.product(range(3), repeat=len(samples)):
        of = dict(zip(samples, (values[i] for i in choice), strict=True))
        first, second = (law_of_sample(of.__getitem__, [who, "z"], q) for who in "xy")
        for alpha in ALPHAS:
            worst[alpha] = max(worst[alpha], stick(first, second, alpha))
    for alpha, exact in worst.items():
        for one in bound.values():
            below, above = one(math.log(alpha))
            assert below <= exact + 1e-12
            # At each α some function attains the bound.
            assert exact <= above <= exact + 1e-12
        if alpha >= 1:
            assert bound["remove"](math.log(alpha))[0] >= exact - Fraction(1, 10**12)


def test_one_value_is_bounded_alike_if_clients_are_drawn() -> None:
    """A client has any value: the bound is that of any two values, and no value of others shows who was drawn."""
    records, clients = (
        written({"mechanism": RESPONSE, "sampler": sample(draws=draws), "count": 5}) for draws in ("records", "clients")
    )
    assert [compile_document(pyaccount.load(one)).at().composed_bounds()["remove"] for one in (records, clients)] == [
        compile_document(pyaccount.load(records)).at().composed_bounds()["remove"]
    ] * 2
    certificate = pyaccount.certify(clients).data
    assert not certificate.reductions[0].tight
    assert "value that it has with the unit of the other" in (certificate.reductions[0].lower_end or "")


def test_a_value_below_chance_is_bounded_by_its_opposite() -> None:
    """With p < 1/k the true value is the least likely one."""
    q, p = Fraction(1, 4), Fraction(1, 8)
    values = [tuple(p if i == j else (1 - p) / 2 for j in range(3)) for i in range(3)]
    rare = RESPONSE | {"truth_probability": 0.125}
    bound = profile(written({"mechanism": rare, "sampler": sample()}))
    for a, b, c in itertools.product(range(3), repeat=3):
        first, second = (mixture([1 - q, q], [values[c], values[drawn]]) for drawn in (a, b))
        for alpha in ALPHAS:
            assert stick(first, second, alpha) <= bound(math.log(alpha))[1]


# ---- mechanisms of which only a replacement is known


def pure(rng: random.Random, bound: int) -> tuple[Law, Law]:
    """Return two laws on three outcomes whose ratios are at most `bound`."""
    while True:
        first, second = ([rng.randint(1, 40) for _ in range(3)] for _ in range(2))
        p, q = (tuple(Fraction(n, sum(laws)) for n in laws) for laws in (first, second))
        if all(a <= bound * b and b <= bound * a for a, b in zip(p, q, strict=True)):
            return p, q


def test_a_stated_guarantee_on_a_sample_bounds_every_mechanism_with_it() -> None:
    """Whatever the law without the record is, related to the others or not."""
    rng, q = random.Random(3), Fraction(1, 4)
    bound = profile(written({"mechanism": {"kind": "stated", "epsilon": math.log(2)}, "sampler": sample()}))
    for _ in range(300):
        first, second = pure(rng, 2)
        without = pure(rng, 100)[0]
        for alpha in ALPHAS:
            sampled = [mixture([1 - q, q], [without, drawn]) for drawn in (first, second)]
            assert stick(sampled[0], sampled[1], alpha) <= bound(math.log(alpha))[1]


def test_it_is_attained_if_the_output_shows_who_was_drawn() -> None:
    """Two records, one of which answers if it is drawn: who was drawn is released, which a replacement does not change."""
    q = Fraction(1, 4)
    answers = {"x": (Fraction(2, 3), Fraction(1, 3)), "y": (Fraction(1, 3), Fraction(2, 3))}

    def run(drawn: frozenset[str]) -> Law:
        cells = [[Fraction(0), Fraction(0)] for _ in range(4)]
        own = next((who for who in "xy" if who in drawn), None)
        cells[2 * ("z" in drawn) + (own is not None)] = list(answers[own]) if own else [Fraction(1), Fraction(0)]
        return tuple(itertools.chain.from_iterable(cells))

    bound = profile(written({"mechanism": {"kind": "stated", "epsilon": math.log(2)}, "sampler": sample()}))
    first, second = (law_of_sample(run, [who, "z"], q) for who in "xy")
    for alpha in ALPHAS:
        below, above = bound(math.log(alpha))
        assert float(stick(first, second, alpha)) == pytest.approx(above, abs=1e-12) == pytest.approx(below, abs=1e-12)
    # The maps for records that are added or removed would be false here.
    assert stick(first, second, Fraction(3, 2)) > 0.04
    alone = {"mechanism": {"kind": "stated", "epsilon": math.log(2)}, "sampler": sample()}
    assert profile(written(alone, adjacency="add-remove"))(math.log(1.5))[1] < 1e-12


# ---- phases of which a removal is known


@dataclass(frozen=True, slots=True)
class Tabulated(ProfileKind):
    """A profile that is known at some losses."""

    constructor: ClassVar[str] = "tabulated"

    points: tuple[tuple[float, float], ...]

    def _made(self) -> _core.RoundProfile:
        return _core.RoundProfile.tabulated(self.points)


def of_laws(first: Law, without: Law, second: Law) -> tuple[DirectedBounds, Callable[[Fraction], Fraction], list[Law]]:
    """Return what is known of three laws under add-remove, as rounds, and the exact bound that follows from it.

    The bound is the maximum over the corners of U and L, by the order of likelihood ratios: no hull, and no rounding.
    """
    rounds = {
        way: (
            Rounds(FiniteProfile(tuple(map(float, p)), tuple(map(float, r)), relative_error=1e-15, reverse=False), 1),
        )
        for way, p, r in (("remove", first, without), ("add", without, second))
    }

    def power(p: Law, r: Law) -> list[tuple[Fraction, Fraction]]:
        """Return the corners of the largest probability under p given that under r."""
        order = sorted(range(len(p)), key=lambda i: -p[i] / r[i])
        return [
            (sum((r[i] for i in order[:n]), Fraction(0)), sum((p[i] for i in order[:n]), Fraction(0)))
            for n in range(len(order) + 1)
        ]

    def at(corners: list[tuple[Fraction, Fraction]], t: Fraction) -> Fraction:
        for (a, u), (b, v) in itertools.pairwise(corners):
            if a <= t <= b and b > a:
                return u + (v - u) * (t - a) / (b - a)
        raise AssertionError(t)

    most = power(first, without)
    least = [(1 - t, 1 - u) for t, u in reversed(power(second, without))]
    knots = sorted({t for t, _ in (*most, *least)})

    def bound(alpha: Fraction, q: Fraction = Fraction(1, 4)) -> Fraction:
        return max((1 - q) * (1 - alpha) * t + q * (at(most, t) - alpha * at(least, t)) for t in knots)

    return {way: Bounds(one, one) for way, one in rounds.items()}, bound, [first, without, second]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_from_a_removal_holds_and_is_the_best_one_from_it(seed: int) -> None:
    rng, q = random.Random(seed), Fraction(1, 4)
    laws = [
        tuple(Fraction(n, sum(numbers)) for n in numbers)
        for numbers in ([rng.randint(1, 30) for _ in range(4)] for _ in range(3))
    ]
    run, exact, (first, without, second) = of_laws(laws[0], laws[1], laws[2])
    made = replaced_in_sample(run, 0.25, 1, gaussian=False)
    above = made["remove"].upper[0].profile.build()
    for alpha in ALPHAS:
        sampled = [mixture([1 - q, q], [without, drawn]) for drawn in (first, second)]
        truth, most = stick(sampled[0], sampled[1], alpha), above.delta(math.log(alpha))[1]
        assert truth <= exact(alpha) <= most + 1e-13
        # These profiles have corners, which lie between the losses at which they are evaluated.
        assert most <= exact(alpha) + 1e-2


def test_it_is_attained_by_shifts_of_one_law() -> None:
    """Geometric noise at 1, 0 and −1: all three laws have monotone likelihood ratios, so nothing is lost."""
    weights = [Fraction(1, 2 ** abs(i)) for i in range(-6, 7)]
    around = [Fraction(0)] * 2

    def moved(shift: int) -> Law:
        cells = [Fraction(0)] * 17
        for i, weight in enumerate(weights):
            cells[2 + i + shift] += weight / sum(weights)
        # The tails beyond both ends of all three laws are merged, so no outcome shows a law.
        return (sum(cells[:4], around[0]), *cells[4:13], sum(cells[13:], around[1]))

    first, without, second = (moved(shift) for shift in (1, 0, -1))
    run, exact, _ = of_laws(first, without, second)
    above = replaced_in_sample(run, 0.25, 1, gaussian=False)["add"].upper[0].profile.build()
    sampled = [mixture([Fraction(3, 4), Fraction(1, 4)], [without, drawn]) for drawn in (first, second)]
    for alpha in ALPHAS:
        truth = stick(sampled[0], sampled[1], alpha)
        assert truth == exact(alpha)
        assert truth <= above.delta(math.log(alpha))[1] <= truth + Fraction(1, 200)


def test_random_data_sets_of_three_records_are_bounded() -> None:
    """Runs on every subset of three records, one of which is replaced: with the profiles of all removals as what is known."""
    rng, q = random.Random(11), Fraction(1, 4)
    for _ in range(4):
        records = ["x", "z", "w"]
        subsets = [frozenset(kept) for size in range(4) for kept in itertools.combinations([*records, "y"], size)]
        laws = {}
        for subset in subsets:
            numbers = [rng.randint(8, 16) for _ in range(3)]
            laws[subset] = tuple(Fraction(n, sum(numbers)) for n in numbers)
        pairs = [(laws[one], laws[one - {who}]) for one in subsets for who in one & {"x", "y"}]
        grid = [Fraction(n, 64) for n in range(33, 160)]
        stated = {
            way: tuple((math.log(a), float(max(stick(*pair, a) for pair in ordered)) * (1 + 1e-12)) for a in grid)
            for way, ordered in (("remove", pairs), ("add", [(q_, p_) for p_, q_ in pairs]))
        }
        rounds = {way: (Rounds(Tabulated(points), 1),) for way, points in stated.items()}
        run = {way: Bounds(one, one) for way, one in rounds.items()}
        above = replaced_in_sample(run, 0.25, 1, gaussian=False)["remove"].upper[0].profile.build()  # type: ignore[arg-type]
        first, second = (law_of_sample(laws.__getitem__, [who, "z", "w"], q) for who in "xy")
        for alpha in ALPHAS:
            assert stick(first, second, alpha) <= above.delta(math.log(alpha))[1] + 1e-13
            assert stick(second, first, alpha) <= above.delta(math.log(alpha))[1] + 1e-13


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def laplace(x: float) -> float:
    return 0.5 * math.exp(x) if x < 0.0 else 1.0 - 0.5 * math.exp(-x)


def three(cumulative: Callable[[float], float], shift: float, q: float, epsilon: float) -> float:
    """Return δ of (1 − q)F(0) + qF(shift) against (1 − q)F(0) + qF(−shift), the maximum over half-lines."""

    def difference(threshold: float) -> float:
        zero, up, down = (1.0 - cumulative(threshold - centre) for centre in (0.0, shift, -shift))
        return (1 - q) * zero + q * up - math.exp(epsilon) * ((1 - q) * zero + q * down)

    best = max((i / 200 for i in range(-2000, 4001)), key=difference)
    return max(difference(best + i / 1e5) for i in range(-1000, 1001))


STEPS = {"training": {"iterations": 3}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}}
NUMBER = {"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": {"kind": "laplace", "multiplier": 2}}


def test_gaussian_steps_on_a_sample_are_three_gaussians() -> None:
    bound = profile(written({"sampler": sample(), "phases": [STEPS]}))
    for epsilon in (0.0, 0.1, 0.3, 0.6, 1.0):
        exact = three(normal, math.sqrt(3) / 2, 0.25, epsilon)
        below, above = bound(epsilon)
        assert below <= exact * (1 + 1e-9) + 1e-12
        assert above == pytest.approx(exact, rel=1e-6, abs=1e-12)
        assert below == pytest.approx(above, rel=1e-9, abs=1e-15)
    reduction = pyaccount.certify(written({"sampler": sample(), "phases": [STEPS], "count": 10})).data.reductions[0]
    assert reduction.tight
    assert reduction.lower_end is None


def test_a_number_with_laplace_noise_on_a_sample_is_three_of_them() -> None:
    bound = profile(written({"sampler": sample(), "phases": [NUMBER]}))
    for epsilon in (0.0, 0.05, 0.1, 0.2):
        exact = three(laplace, 0.5, 0.25, epsilon)
        below, above = bound(epsilon)
        assert below <= exact + 1e-12
        assert exact - 1e-9 <= above <= exact * (1 + 1e-4)
    reduction = pyaccount.certify(written({"sampler": sample(), "phases": [NUMBER]})).data.reductions[0]
    assert not reduction.tight
    assert "contributes nothing" in (reduction.lower_end or "")


def test_bounded_losses_stay_bounded() -> None:
    """At δ = 0: the largest ratio is that of the outcomes above all three centres, e^θ to e^(−θ) where it was drawn."""
    certificate = pyaccount.certify(written({"sampler": sample(), "phases": [NUMBER, NUMBER]}, delta=0))
    theta = 1.0
    ratio = (0.75 + 0.25 * math.exp(theta)) / (0.75 + 0.25 * math.exp(-theta))
    assert certificate.epsilon == pytest.approx(math.log(ratio), rel=1e-9)
    assert certificate.data.guarantee.epsilon_lower == pytest.approx(math.log(0.75 + 0.25 * math.exp(theta)), rel=1e-9)


@pytest.mark.parametrize("phase", [STEPS, NUMBER])
def test_records_that_are_always_drawn_are_not_sampled(phase: dict[str, Any]) -> None:
    always, never = (
        pyaccount.certify(written(one, delta=1e-3)).epsilon
        for one in ({"sampler": sample(1), "phases": [phase]}, phase)
    )
    assert always == pytest.approx(never, rel=1e-4)


def test_parts_may_have_samples_of_phases() -> None:
    """A record of a part is replaced by one of the same part, or of the other one."""
    parts = {"parallel": [{"name": "sampled", "sampler": sample(), "phases": [STEPS]}, {"name": "whole", **STEPS}]}
    found = {one.name: one.epsilon for one in pyaccount.certify(written(parts)).data.records or ()}
    assert found["sampled"] == pytest.approx(pyaccount.certify(written(parts["parallel"][0])).epsilon, rel=1e-3)
    assert found["whole"] == pytest.approx(pyaccount.certify(written(STEPS)).epsilon, rel=1e-3)
    assert found["sampled"] < found["sampled, replaced by one of whole"] < found["whole"]


def test_phases_with_a_mechanism_are_bounded_as_if_the_draw_showed() -> None:
    """What a mechanism states under replace-one says nothing about a record that is missing."""
    release = {"mechanism": {"kind": "gaussian", "sigma": 4, "sensitivity": 2}}
    both = written({"sampler": sample(), "phases": [STEPS, release]})
    bound = profile(both)
    norm = math.sqrt(3 * 1.0**2 + 0.5**2)
    for epsilon in (0.1, 1.0, 2.0):
        whole = normal(norm / 2 - epsilon / norm) - math.exp(epsilon) * normal(-norm / 2 - epsilon / norm)
        assert bound(epsilon)[1] == pytest.approx(0.25 * whole, rel=1e-6)
    reduction = pyaccount.certify(both).data.reductions[0]
    assert "may show whether the record was drawn" in (reduction.remark or "")
    assert any("one that replaces another" in text for text in pyaccount.certify(both).data.assumptions)


def test_sampling_inside_of_a_sample_helps_too() -> None:
    """The rounds of a client that is drawn may draw records of their own: both draws hide a record that is replaced."""
    inner = sectioned(iterations=5, sampling_probability=0.1, sampler="poisson", multiplier=1)
    phase = {"sampler": sample(0.1), "phases": [inner], "count": 5}
    one = pyaccount.certify(written(phase, adjacency="add-remove")).epsilon
    replaced = pyaccount.certify(written(phase)).epsilon
    assert one < replaced < 1.2 * one


FIXED = sectioned(iterations=2, dataset_size=100, expected_batch_size=10, sampler="fixed-size", multiplier=4)


# ---- refusals


@pytest.mark.parametrize(
    ("adjacency", "inside"),
    [(one, "fixed size") for one in ("add-remove", "zero-out", "replace-one")] + [("zero-out", "truncated")],
)
def test_batches_whose_bounds_are_for_a_public_size_are_refused_in_a_sample(
    adjacency: str, inside: str, snapshot: Snapshot
) -> None:
    """A sample has a random size, and a record that was not drawn leaves its place in a batch to another one."""
    truncated = FIXED | {"sampler": {"kind": "poisson", "truncate_to": 12}}
    phases = [STEPS, truncated if inside == "truncated" else FIXED]
    document = written({"sampler": sample(), "phases": phases}, adjacency=adjacency)
    with snapshot.raises(DocumentError) as error:
        pyaccount.compile(document)
    key = "truncate_to" if inside == "truncated" else "kind"
    assert [problem.path_text for problem in error.value.problems] == [f"phases[0].phases[1].sampler.{key}"]


def test_a_client_may_draw_batches_of_a_fixed_size_from_its_own_records() -> None:
    reduction = pyaccount.certify(written({"sampler": sample(draws="clients"), "phases": [FIXED]})).data.reductions[0]
    assert not reduction.tight


@pytest.mark.parametrize(
    ("phase", "refused"),
    [
        ({"mechanism": {"kind": "laplace", "scale": 2}, "sampler": sample({"max": 0.25})}, True),
        ({"sampler": sample({"max": 0.25}), "phases": [STEPS, {"mechanism": {"kind": "laplace", "scale": 2}}]}, True),
        ({"mechanism": RESPONSE, "sampler": sample({"max": 0.25})}, False),
        ({"sampler": sample({"max": 0.25}), "phases": [STEPS]}, False),
        ({"mechanism": {"kind": "laplace", "scale": 2}, "sampler": sample({"max": 0.25}, draws="clients")}, False),
    ],
)
def test_a_record_with_another_probability_must_not_show(
    phase: dict[str, Any], refused: bool, snapshot: Snapshot
) -> None:
    """A mechanism that shows who was drawn, and nothing else, reveals whether a record is drawn with 0.25 or with 0.01."""
    if not refused:
        pyaccount.certify(written(phase))
        return
    snapshot.raised(lambda: pyaccount.compile(written(phase)))
