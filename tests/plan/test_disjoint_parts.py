"""Disjoint parts of the data, against enumerations of every pair of small data sets, closed forms and quadrature."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.consistency import content_sha256
from pyaccount.document.loading import load
from pyaccount.execute.engine import Engine, Question
from pyaccount.plan.disjoint import bounds_by_kind
from pyaccount.plan.protection import Protection
from pyaccount.plan.rounds import combine, enclosed, tight, worst_of
from pyaccount.profiles import FiniteProfile, GaussianProfile, ProfileKind, Rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyaccount.plan.rounds import DirectedBounds

Law = dict[tuple[int, ...], Fraction]


def document(*phases: dict[str, Any], adjacency: str = "zero-out", **privacy: Any) -> dict[str, Any]:
    """Return a document of these phases."""
    target = {"adjacency": adjacency, "epsilon": 0.5, "delta": "solve"} | privacy
    return {"pyaccount": 1, "name": "parts", "privacy": target, "phases": list(phases)}


def interval(*phases: dict[str, Any], **privacy: Any) -> tuple[float, float]:
    """Return the interval for δ of a document at its ε, by default 0.5."""
    guarantee = pyaccount.certify(document(*phases, **privacy)).data.guarantee
    return guarantee.delta_lower, guarantee.delta


def answers(truth: Fraction) -> dict[str, Any]:
    """Return randomized response on two values, where an empty record answers at random."""
    return {
        "mechanism": {
            "kind": "randomized-response",
            "values": 2,
            "truth_probability": float(truth),
            "empty_record": "uniform",
        }
    }


def answer(value: int | None, truth: Fraction) -> Law:
    """Return the law of one answer; None is an empty record."""
    if value is None:
        return {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    return {(value,): truth, (1 - value,): 1 - truth}


def together(laws: Iterable[Law]) -> Law:
    """Return the law of independent outputs."""
    joined: Law = {(): Fraction(1)}
    for law in laws:
        joined = {(*a, *b): p * q for (a, p), (b, q) in itertools.product(joined.items(), law.items())}
    return joined


def divergence(first: Law, second: Law, alpha: Fraction) -> Fraction:
    """Return Σ (p − αq)₊."""
    return sum((max(Fraction(0), p - alpha * second.get(key, Fraction(0))) for key, p in first.items()), Fraction(0))


ALPHA = Fraction(math.exp(0.5))


def worst(
    release: Callable[[tuple[int, ...], tuple[int | None, ...]], Law], parts: int, records: int, changed: int
) -> float:
    """Return the largest δ over all data sets, partitions and groups of up to `changed` records that are set to zero."""
    found = Fraction(0)
    for places in itertools.product(range(parts), repeat=records):
        for values in itertools.product((0, 1), repeat=records):
            base = release(places, values)
            for group in itertools.combinations(range(records), changed):
                zeroed = tuple(None if index in group else value for index, value in enumerate(values))
                other = release(places, zeroed)
                found = max(found, divergence(base, other, ALPHA), divergence(other, base, ALPHA))
    return float(found)


TRUTHS = (Fraction(7, 10), Fraction(4, 5), Fraction(3, 5))
COMMON = Fraction(13, 20)


def release(places: tuple[int, ...], values: tuple[int | None, ...], repeats: Sequence[int] = (1, 1, 1)) -> Law:
    """Return the law of all outputs: the answers in the parts, and one answer of every record to all."""
    return together(
        [
            *(
                answer(value, TRUTHS[part])
                for part, value in zip(places, values, strict=True)
                for _ in range(repeats[part])
            ),
            *(answer(value, COMMON) for value in values),
        ]
    )


@pytest.mark.parametrize("parts", [2, 3])
def test_one_record_is_in_one_part(parts: int) -> None:
    """Every pair of data sets with two records: the bound is the largest δ, and its lower end too."""
    phase = {"parallel": [answers(truth) for truth in TRUTHS[:parts]]}
    low, high = interval(phase, answers(COMMON))
    true = worst(release, parts, records=2, changed=1)
    assert low <= true * (1 + 1e-9)
    assert true <= high * (1 + 1e-9)
    assert high - low < 1e-6


def test_a_group_may_be_spread() -> None:
    """Every pair of data sets with two records, of which both change."""
    phase = {"parallel": [answers(truth) | {"count": n} for truth, n in zip(TRUTHS[:2], (2, 1), strict=True)]}

    def run(places: tuple[int, ...], values: tuple[int | None, ...]) -> Law:
        return release(places, values, (2, 1))

    low, high = interval(phase, answers(COMMON), group_size=2)
    true = worst(run, 2, records=2, changed=2)
    assert low <= true * (1 + 1e-9)
    assert true <= high * (1 + 1e-9)
    assert high - low < 1e-6
    names = [one.name for one in pyaccount.certify(document(phase, group_size=2)).data.records or ()]
    assert names == ["2 in part 1", "1 in part 1, 1 in part 2", "2 in part 2"]


def test_counts_that_look_at_one_another_are_bounded() -> None:
    """Truncated geometric counts of the parts, the second with a sign that depends on the first, and a count of all."""
    scale, most = Fraction(3, 5), 2

    def counted(true: int) -> Law:
        weights = {(out,): scale ** abs(out - true) for out in range(most + 1)}
        return {out: weight / sum(weights.values()) for out, weight in weights.items()}

    def run(places: tuple[int, ...], values: tuple[int | None, ...]) -> Law:
        sums = [sum(value or 0 for part, value in zip(places, values, strict=True) if part == j) for j in range(2)]
        law: Law = {}
        for out, p in counted(sums[0]).items():
            for (second,), q in counted(sums[1]).items():
                seen = most - second if out == (0,) else second
                for (last,), r in counted(sum(sums)).items():
                    law[*out, seen, last] = law.get((*out, seen, last), Fraction(0)) + p * q * r
        return law

    # The ratio of two laws of one count is at most 1/scale² (that of weights, and that of their sums).
    stated = {"mechanism": {"kind": "stated", "epsilon": 2 * math.log(1 / float(scale)) + 1e-12}}
    low, high = interval({"parallel": [stated, stated | {"name": "other"}]}, stated)
    true = worst(run, 2, records=2, changed=1)
    assert true <= high
    assert low <= high


def test_the_maximum_is_taken_last() -> None:
    """Ten runs in a part of one kind or in another one; the larger profile of each run, composed, would say much more."""
    pure, rare = (0.5, 0.0), (0.01, 0.02)

    def pair(epsilon: float, delta: float) -> list[tuple[float, float]]:
        e = math.exp(epsilon)
        inside = [(1 - delta) * e / (1 + e), (1 - delta) / (1 + e)]
        return [(delta, 0.0), (inside[0], inside[1]), (inside[1], inside[0]), (0.0, delta)]

    def profile(outcomes: list[tuple[float, float]], alpha: float) -> float:
        return math.fsum(max(0.0, p - alpha * q) for p, q in outcomes)

    def losses(outcomes: list[tuple[float, float]], count: int) -> float:
        """Return δ(2) of `count` runs, from the law of the sum of losses on the lattice of multiples of 0.01."""
        law = {0: 1.0}
        infinite = 1.0
        step = {round(100 * math.log(p / q)): 0.0 for p, q in outcomes if p > 0 and q > 0}
        for p, q in outcomes:
            if p > 0 and q > 0:
                step[round(100 * math.log(p / q))] += p
        finite = math.fsum(step.values())
        for _ in range(count):
            infinite *= finite
            new: dict[int, float] = {}
            for a, p in law.items():
                for b, q in step.items():
                    new[a + b] = new.get(a + b, 0.0) + p * q
            law = new
        return 1 - infinite + math.fsum(p * max(0.0, 1 - math.exp(2 - 0.01 * a)) for a, p in law.items())

    last = max(losses(pair(*pure), 10), losses(pair(*rare), 10))
    # The larger of both profiles is a profile: chords between its values at e^(k/100) are those of a finite pair.
    nodes = [math.exp(0.01 * k) for k in range(-200, 201)]
    values = [max(profile(pair(*one), node) for one in (pure, rare)) for node in nodes]
    slopes = [-1.0] + [(b - a) / (y - x) for (x, a), (y, b) in itertools.pairwise(zip(nodes, values, strict=True))]
    masses = [after - before for before, after in itertools.pairwise([*slopes, 0.0])]
    first = losses([(node * q, q) for node, q in zip(nodes, masses, strict=True)] + [(values[-1], 0.0)], 10)
    stated = [{"mechanism": {"kind": "stated", "epsilon": e} | ({"delta": d} if d else {})} for e, d in (pure, rare)]
    made = pyaccount.compile(document({"parallel": stated, "count": 10}, adjacency="add-remove", epsilon=2)).at()
    found = Engine().ask(made.bounds(), Question(2.0, None, 1e-4))
    assert found.lower * (1 - 1e-4) <= last <= found.upper * (1 + 1e-4)
    assert found.upper < 0.19
    assert first > 0.25


TRAINING = {"training": {"iterations": 30}, "sampler": {"kind": "none"}}


def gaussian(*multipliers: float, group: int = 1) -> float:
    """Return ε of Gaussian releases at δ = 1e-6, from the guarantee of one with the same μ."""
    mu = math.sqrt(sum(group**2 / m**2 for m in multipliers))
    stated = {"mechanism": {"kind": "stated", "mu": mu}}
    return pyaccount.certify(document(stated, epsilon="solve", delta=1e-6)).epsilon


def test_a_replaced_record_may_change_its_part() -> None:
    """Without sampling each part is Gaussian: 2/σ in the part that the record stays in, 1/σ each in two parts."""
    parts = [TRAINING | {"name": name, "noise": {"multiplier": m}} for name, m in (("north", 20.0), ("south", 25.0))]
    rest = TRAINING | {"noise": {"multiplier": 40.0}}
    target = {"adjacency": "replace-one", "epsilon": "solve", "delta": 1e-6}
    certificate = pyaccount.certify(document({"parallel": parts}, rest, **target))
    found = {one.name: one.epsilon for one in certificate.data.records or ()}
    root = math.sqrt(30)
    expected = {
        "north": gaussian(10 / root, 20 / root),
        "south": gaussian(12.5 / root, 20 / root),
        "north, replaced by one of south": gaussian(20 / root, 25 / root, 20 / root),
    }
    assert found == pytest.approx(expected, rel=1e-6)
    assert certificate.epsilon == pytest.approx(found["north"], rel=1e-12)


def test_a_record_that_moves_between_sampled_parts() -> None:
    """One round of Poisson sampling in each of two parts: the plane of both outputs, by quadrature."""
    rates, sigma, epsilon = (0.3, 0.05), (0.8, 0.6), 0.2
    parts = [
        sectioned(name=name, iterations=1, sampling_probability=rate, sampler="poisson", multiplier=s)
        for name, rate, s in zip("ab", rates, sigma, strict=True)
    ]
    made = pyaccount.compile(document({"parallel": parts}, adjacency="replace-one", epsilon=epsilon)).at()
    crossing = next(one for one in made.alternatives() if "replaced" in one.name)
    found = Engine().ask(crossing.bounds, Question(epsilon, None, 1e-4))

    def normal(x: Any, mean: float, s: float) -> Any:
        return np.exp(-0.5 * ((x - mean) / s) ** 2) / (s * math.sqrt(2 * math.pi))

    grid = np.linspace(-8, 9, 4001)
    laws = []
    for rate, s in zip(rates, sigma, strict=True):
        without = normal(grid, 0.0, s)
        laws.append(((1 - rate) * without + rate * normal(grid, 1.0, s), without))
    cell = (grid[1] - grid[0]) ** 2
    first, second = np.outer(laws[0][0], laws[1][1]), np.outer(laws[0][1], laws[1][0])
    for side, (p, q) in (("remove", (first, second)), ("add", (second, first))):
        true = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * cell)
        assert found.directions[side].upper == pytest.approx(true, rel=1e-3)  # type: ignore[index]
        assert found.directions[side].lower == pytest.approx(true, rel=1e-3)  # type: ignore[index]


#: The laws of a part's output for each sum of its values: that the sign is seen, or that the record is.
SEEN_SIGN = {0: (2, 4, 2), 1: (1, 2, 5), -1: (5, 2, 1)}
SEEN_PRESENCE = {0: (6, 1, 1), 1: (1, 3, 4), -1: (1, 4, 3)}


def channel(rows: dict[int, tuple[int, ...]], total: int) -> tuple[Fraction, ...]:
    """Return the law of an output."""
    return tuple(Fraction(entry, 8) for entry in rows[total])


def finite(first: tuple[Fraction, ...], second: tuple[Fraction, ...]) -> tuple[ProfileKind, ProfileKind]:
    """Return the pair of two laws for both directions."""
    pair = (tuple(map(float, first)), tuple(map(float, second)))
    return FiniteProfile(*pair, reverse=False), FiniteProfile(*pair, reverse=True)


@pytest.mark.parametrize(
    ("rows", "crosses"), [(SEEN_SIGN, False), (SEEN_PRESENCE, True)], ids=["stays is worse", "crosses is worse"]
)
def test_replaced_records_by_brute_force(rows: dict[int, tuple[int, ...]], crosses: bool) -> None:
    """Data sets with one record, in one of two parts with a value ±1, and any other record in its place."""
    written = document({"parallel": [TRAINING | {"noise": {"multiplier": m}} for m in (1, 2)]}, adjacency="replace-one")
    read = load(written)
    repeats = (1, 2)

    def of_part(part: int, asked: Protection, crossing: bool) -> DirectedBounds:
        assert asked.privacy.adjacency == ("add-remove" if crossing else "replace-one")
        remove, add = finite(channel(rows, 1), channel(rows, 0 if crossing else -1))
        return tight(remove, add, repeats[part])

    common = tight(*finite(channel(SEEN_SIGN, 1), channel(SEEN_SIGN, -1)), 1)
    kinds = bounds_by_kind(Protection.of(read).cases()[0], of_part)
    whole = [combine([one.bounds, common], merge_gaussians=True) for one in kinds]
    question = Question(0.5, None, 1e-5)
    found, *single = Engine().ask_all([(one, question) for one in (worst_of(whole), *whole)])
    assert found.upper == max(one.upper for one in single)
    worst_kind = kinds[max(range(len(kinds)), key=lambda index: single[index].upper)]
    assert ("replaced" in worst_kind.name) == crosses

    def law(part: int, value: int) -> Law:
        outputs = [channel(rows, value if part == j else 0) for j in range(2) for _ in range(repeats[j])]
        return together([{(k,): p for k, p in enumerate(row)} for row in (*outputs, channel(SEEN_SIGN, value))])

    records = list(itertools.product((0, 1), (-1, 1)))
    true = float(max(divergence(law(*a), law(*b), ALPHA) for a in records for b in records))
    assert found.lower <= true * (1 + 1e-9)
    assert true <= found.upper * (1 + 1e-9)
    assert found.upper - found.lower < 2e-5


NORTH = sectioned(sampling_probability=0.02, iterations=200, sampler="poisson", multiplier=1.0)
SOUTH = NORTH | {"noise": {"multiplier": 0.9}}
COUNT = {"mechanism": {"kind": "discrete-gaussian", "sigma": 10}}


def numbers(*phases: dict[str, Any], **privacy: Any) -> tuple[Any, ...]:
    """Return the guarantee of a document, its directions and its profile."""
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6} | privacy
    data = pyaccount.certify(document(*phases, **target)).data
    return data.guarantee, data.directions, data.profile, data.unamplified.epsilon


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_equal_parts_are_one(adjacency: str) -> None:
    """Bit for bit, also with a group that is not spread, and whatever the parts are called."""
    parts = [NORTH | {"name": name} for name in "abcde"]
    assert numbers({"parallel": parts}, COUNT, adjacency=adjacency) == numbers(NORTH, COUNT, adjacency=adjacency)
    twice = [{"name": name, "phases": [NORTH, COUNT]} for name in "ab"]
    assert numbers({"parallel": twice, "count": 3}) == numbers(NORTH | {"count": 3}, COUNT | {"count": 3})


def test_the_worst_part_is_the_guarantee_and_order_does_not_matter() -> None:
    alone = [numbers(part, COUNT) for part in (NORTH, SOUTH)]
    found = numbers({"parallel": [NORTH, SOUTH]}, COUNT)
    assert found[0] == max((one[0] for one in alone), key=lambda guarantee: guarantee.epsilon)
    assert numbers(COUNT, {"parallel": [SOUTH, NORTH]}) == found


def test_what_is_known_by_divergences_is_added_before_the_maximum_is_taken() -> None:
    """ρ of everything else is added to that of each part."""
    known = [{"mechanism": {"kind": "stated", "rho": rho}} for rho in (0.1, 0.2, 0.25)]
    sums = [numbers({"mechanism": {"kind": "stated", "rho": rho}})[0].epsilon for rho in (0.35, 0.45)]
    certificate = pyaccount.certify(
        document({"parallel": known[:2]}, known[2], adjacency="add-remove", epsilon="solve", delta=1e-6)
    )
    assert [one.epsilon for one in certificate.data.records or ()] == pytest.approx(sums, rel=1e-6)
    assert certificate.epsilon == pytest.approx(sums[1], rel=1e-6)


def test_several_partitions_are_combined() -> None:
    """Two phases with parts: a record is in one part of each, and every combination counts."""
    phases = [
        {"parallel": [NORTH | {"name": "north"}, SOUTH | {"name": "south"}]},
        {"parallel": [COUNT | {"name": "old"}, COUNT | {"name": "new", "count": 5}]},
    ]
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    certificate = pyaccount.certify(document(*phases, **target))
    found = {one.name: (one.epsilon_lower, one.epsilon) for one in certificate.data.records or ()}
    for (first, one), (second, other) in itertools.product(
        (("north", NORTH), ("south", SOUTH)), (("old", COUNT), ("new", COUNT | {"count": 5}))
    ):
        alone = pyaccount.certify(document(one, other, **target)).data.guarantee
        assert found[f"{first}, and {second}"] == (alone.epsilon_lower, alone.epsilon)
    assert certificate.epsilon == max(high for _, high in found.values())


def test_pure_guarantees_have_the_largest_loss_of_a_part() -> None:
    parts = [{"mechanism": {"kind": "laplace", "scale": scale}} for scale in (10, 4)]
    rest = {"mechanism": {"kind": "stated", "epsilon": 0.25}}
    guarantee, *_ = numbers({"parallel": parts, "count": 2}, rest, delta=0)
    assert (guarantee.epsilon_lower, guarantee.epsilon) == (0.75, 0.75)


@pytest.mark.nightly(but=["risk0-advantage"])
@pytest.mark.usefixtures("without_profiles")
@pytest.mark.parametrize(
    ("risk", "measure"),
    [({"advantage": 0.3}, "advantage"), ({"gaussian_mu": 1.2, "report_delta": 1e-4}, "gaussian_mu")],
)
def test_risk_is_that_of_the_worst_part(risk: dict[str, float], measure: str) -> None:
    """An attack is about one record, which is in one part."""
    found = []
    for phases in ([{"parallel": [NORTH, SOUTH]}, COUNT], [NORTH, COUNT], [SOUTH, COUNT]):
        stated = document(*phases) | {"privacy": {"adjacency": "add-remove", "risk": risk}}
        data = pyaccount.certify(stated).data.risk
        assert data is not None
        assert data.measure == measure
        found.append((data.value, data.value_lower))
    assert found[0][0] == max(found[1][0], found[2][0])  # type: ignore[type-var]
    assert found[0][1] == max(found[1][1], found[2][1])


def test_blanks_of_one_part_and_of_all() -> None:
    target = {"adjacency": "add-remove", "epsilon": 2.5, "delta": 1e-6}
    open_south = SOUTH | {"noise": {"multiplier": "solve"}}
    one = pyaccount.certify(document({"parallel": [NORTH, open_south]}, COUNT, **target)).data
    alone = pyaccount.certify(document(open_south, COUNT, **target)).data
    assert one.solved is not None
    assert alone.solved is not None
    assert one.solved.path == "phases[0].parallel[1].noise.multiplier"
    assert one.solved.value == pytest.approx(float(alone.solved.value), rel=1e-3)
    scaled = document({"parallel": [NORTH, SOUTH]}, COUNT, **target) | {"noise": {"scale": "solve"}}
    both = pyaccount.certify(scaled).data.solved
    worse = document(SOUTH, COUNT, **target) | {"noise": {"scale": "solve"}}
    single = pyaccount.certify(worse).data.solved
    assert both is not None
    assert single is not None
    assert both.value == pytest.approx(float(single.value), rel=1e-3)


def test_iterations_inside_of_another_phase_can_be_the_blank() -> None:
    target = {"adjacency": "add-remove", "epsilon": 2.0, "delta": 1e-6}
    open_north = NORTH | {"training": NORTH["training"] | {"iterations": "solve"}, "noise": {"multiplier": 2.0}}
    alone = pyaccount.certify(document(open_north, **target)).data.solved
    for described, path in (
        ({"parallel": [COUNT, open_north]}, "phases[0].parallel[1]"),
        ({"parallel": [COUNT, {"phases": [open_north]}]}, "phases[0].parallel[1].phases[0]"),
    ):
        solved = pyaccount.certify(document(described, **target)).data.solved
        assert solved is not None
        assert alone is not None
        assert (solved.path, solved.value) == (f"{path}.training.iterations", alone.value)


def test_a_blank_that_cannot_help_says_what_the_other_parts_cost(snapshot: Snapshot) -> None:
    target = {"adjacency": "add-remove", "epsilon": 0.5, "delta": 1e-6}
    parts = [NORTH | {"noise": {"multiplier": "solve"}}, SOUTH]
    snapshot.raised(lambda: pyaccount.certify(document({"parallel": parts}, **target)))


def test_the_size_of_a_group_can_be_the_blank() -> None:
    parts = [COUNT | {"mechanism": {"kind": "discrete-gaussian", "sigma": s}} for s in (10, 14)]
    target = {"adjacency": "add-remove", "epsilon": 2.0, "delta": 1e-6, "group_size": "solve"}
    solved = pyaccount.certify(document({"parallel": parts}, **target)).data.solved
    alone = pyaccount.certify(document(parts[0], **target)).data.solved
    assert solved is not None
    assert alone is not None
    assert solved.value == alone.value


def test_a_certificate_with_parts_is_recomputed() -> None:
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    certificate = pyaccount.certify(document({"parallel": [NORTH, SOUTH]}, COUNT, **target))
    assert pyaccount.verify(certificate).agrees
    data = certificate.data
    assert data.records is not None
    # An interval that promises more than the part has is refuted, a looser one is not.
    for shift, agrees in ((-1e-3, False), (1e-6, True)):
        changed = [data.records[0].model_copy(update={"epsilon": data.records[0].epsilon + shift}), *data.records[1:]]
        stated = data.model_copy(update={"records": changed})
        stated = stated.model_copy(update={"content_sha256": content_sha256(stated)})
        assert pyaccount.verify(pyaccount.Certificate(stated)).agrees == agrees
    without = data.model_copy(update={"records": None})
    without = without.model_copy(update={"content_sha256": content_sha256(without)})
    assert not pyaccount.verify(pyaccount.Certificate(without)).agrees


def test_laws_around_a_likelihood_ratio_stay_on_their_sides() -> None:
    """If a part is enclosed by laws, the worst of several parts keeps what encloses it."""
    above, below = GaussianProfile(1.0, 0.9), GaussianProfile(1.0, 1.1)
    wide = enclosed((above, above), (below, below), 2)
    narrow = tight(GaussianProfile(1.0, 1.0), GaussianProfile(1.0, 1.0), 1)
    both = combine([worst_of([wide, narrow]), narrow], merge_gaussians=False)
    single = [combine([one, narrow], merge_gaussians=False) for one in (wide, narrow)]
    question = Question(1.0, None, 1e-6)
    answers = [Engine().ask(one, question) for one in (both, *single)]
    assert answers[0].upper == max(answers[1].upper, answers[2].upper)
    assert answers[0].lower == max(answers[1].lower, answers[2].lower)
    assert Rounds(above, 2) in single[0]["remove"].upper
