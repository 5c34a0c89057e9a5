"""Records with different probabilities: exact enumerations of data sets against the bound, and what it does not cover."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.plan.compiling import compile_document

LN2 = math.nextafter(math.log(2.0), 1.0)
STRATA = {"rare": 0.3, "usual": 0.12, "common": 0.05}
#: Probabilities as the enumerations use them: no double is far from these.
EXACT = {"rare": Fraction(3, 10), "usual": Fraction(12, 100), "common": Fraction(5, 100)}


def document(probability: object, **sections: Any) -> dict[str, Any]:
    """Return a training run with Poisson sampling, with other sections in place of its own."""
    return (
        doc(
            "name=own-probabilities adjacency=add-remove epsilon=1 delta=solve iterations=1 sampler=poisson multiplier=0.7",
            sampling_probability=probability,
        )
        | sections
    )


def released(probability: object, count: int = 1, **privacy: Any) -> dict[str, Any]:
    """Return a document in which a mechanism with ε = ln 2 is run on a sample."""
    target = {"adjacency": "add-remove", "epsilon": 0.1, "delta": "solve"} | privacy
    sampler = {"kind": "poisson", "sampling_probability": probability}
    mechanism = {"kind": "stated", "epsilon": LN2}
    head = {"pyaccount": 1, "name": "own-probabilities", "privacy": target}
    return head | {"mechanism": mechanism, "sampler": sampler, "count": count}


# ---- a mechanism with finitely many outcomes, sampled by coins


def noisy(total: int, most: int) -> list[Fraction]:
    """Return the law of a count with geometric noise, clamped to 0…most: with one record more, ratios are at most 2."""
    weights = [Fraction(1, 2 ** abs(total - shown)) for shown in range(1, most)]
    # Everything beyond an end is shown as the end: Σ_{k ≥ d} 2^{−k} = 2·2^{−d}.
    ends = [Fraction(2, 2**total), Fraction(2, 2 ** (most - total))]
    law = [ends[0], *weights, ends[1]]
    norm = sum(law, Fraction(0))
    return [weight / norm for weight in law]


def count_law(probabilities: Sequence[Fraction], most: int) -> list[Fraction]:
    """Return the law of the noisy count of a sample in which every record has a coin of its own, over all samples."""
    law = [Fraction(0)] * (most + 1)
    for drawn in itertools.product((0, 1), repeat=len(probabilities)):
        chance = math.prod(
            (q if coin else 1 - q for coin, q in zip(drawn, probabilities, strict=True)), start=Fraction(1)
        )
        for shown, weight in enumerate(noisy(sum(drawn), most)):
            law[shown] += chance * weight
    return law


def times(law: Sequence[Fraction], runs: int) -> list[Fraction]:
    """Return the law of independent runs."""
    return [math.prod(outcome, start=Fraction(1)) for outcome in itertools.product(law, repeat=runs)]


def divergence(above: Sequence[Fraction], below: Sequence[Fraction], epsilon: float) -> float:
    """Return Σ (p − e^ε q)₊ of exact laws, with e^ε as a double."""
    alpha = Fraction(math.exp(epsilon))
    return float(sum((max(p - alpha * q, Fraction(0)) for p, q in zip(above, below, strict=True)), Fraction(0)))


def data_sets() -> Iterator[tuple[list[str], str]]:
    """Yield data sets of at most three other records, with the stratum of the record that is added or removed."""
    for size in range(4):
        for rest in itertools.combinations_with_replacement(sorted(STRATA), size):
            for own in STRATA:
                yield list(rest), own


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.2])
def test_no_data_set_exceeds_the_bound_of_the_largest_probability(epsilon: float, runs: int) -> None:
    """Nor does a record exceed the bound of its own stratum, whatever the probabilities of the other records."""
    strata = {name: pyaccount.certify(released(q, runs, epsilon=epsilon)).delta for name, q in STRATA.items()}
    bound = pyaccount.certify(released({"strata": STRATA}, runs, epsilon=epsilon)).delta
    assert bound == max(strata.values())
    worst = 0.0
    for rest, own in data_sets():
        without = [EXACT[name] for name in rest]
        laws = (times(count_law([*without, EXACT[own]], 4), runs), times(count_law(without, 4), runs))
        found = max(divergence(*laws, epsilon), divergence(*reversed(laws), epsilon))
        assert found <= strata[own] * (1.0 + 1e-12)
        worst = max(worst, found)
    # A record alone attains the bound: this mechanism has the two outcomes of the worst one with its ε.
    assert worst >= 0.999 * bound


def test_a_record_that_is_set_to_zero() -> None:
    """A record set to zero is drawn too, and counts as 0: the law is that without it."""
    bound = pyaccount.certify(released({"max": 0.3}, adjacency="zero-out")).delta
    for rest, own in data_sets():
        others = [EXACT[name] for name in rest]
        laws = (count_law([*others, EXACT[own]], 4), count_law(others, 4))
        assert max(divergence(*laws, 0.1), divergence(*reversed(laws), 0.1)) <= bound * (1.0 + 1e-12)


# ---- sums with Gaussian noise

SIGMA = 0.7
POINTS = np.arange(-14.0, 14.0, 1e-3)
Weights = dict[float, float]


def sums(members: Sequence[tuple[float, float]]) -> Weights:
    """Return the law of the sum of contributions, each of which is drawn with its own probability: (contribution, p)."""
    law = {0.0: 1.0}
    for contribution, p in members:
        following: Weights = {}
        for total, weight in law.items():
            for value, chance in ((total, 1.0 - p), (total + contribution, p)):
                following[value] = following.get(value, 0.0) + weight * chance
        law = following
    return law


def density(law: Weights, sigma: float) -> Any:
    """Return the density of the noisy sum at the points."""
    terms = (weight * np.exp(-0.5 * ((POINTS - total) / sigma) ** 2) for total, weight in law.items())
    return sum(terms) / (sigma * math.sqrt(2.0 * math.pi))


def between(above: Weights, below: Weights, epsilon: float, sigma: float = SIGMA) -> float:
    """Return the hockey-stick divergence of two noisy sums, by the trapezoidal rule."""
    difference = density(above, sigma) - math.exp(epsilon) * density(below, sigma)
    return float(np.trapezoid(np.maximum(difference, 0.0), POINTS))


def members(random_: random.Random, count: int, least: float = -1.0) -> list[tuple[float, float]]:
    """Return records with contributions of norm at most 1, often 1, and probabilities of some stratum."""
    values = (least, 1.0, random_.uniform(least, 1.0))
    return [(random_.choice(values), random_.choice(list(STRATA.values()))) for _ in range(count)]


@pytest.mark.nightly(
    but=[f"{adjacency}-{of}" for adjacency in ("add-remove", "zero-out", "replace-one") for of in ("1-1", "2-1")]
    + ["add-remove-3-1", "zero-out-1-2", "replace-one-1-2"]
)
@pytest.mark.parametrize(("group", "draws"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_groups_with_different_probabilities(adjacency: str, group: int, draws: int) -> None:
    """Every record of a group has its own probability, and a record may replace one with another probability."""
    epsilon, worst, random_ = 0.8, 0.0, random.Random(f"{adjacency} {group} {draws}")
    certificate = pyaccount.certify(
        document(
            {"strata": STRATA},
            privacy={"adjacency": adjacency, "group_size": group, "epsilon": epsilon, "delta": "solve"},
            sampler={"kind": "poisson", "draws_per_iteration": draws},
        )
    )
    strongest = [(1.0, max(STRATA.values()))] * group
    for trial in range(60):
        if trial == 0:
            rest, own, other = [], strongest, [(-value, p) for value, p in strongest]
        else:
            rest, own, other = (members(random_, count) for count in (random_.randrange(3), group, group))
        # Each draw of a record is a coin of its own.
        first, second = (draws * (rest + kept) for kept in (own, other if adjacency == "replace-one" else []))
        laws = (sums(first), sums(second))
        worst = max(worst, between(*laws, epsilon), between(*reversed(laws), epsilon))
    assert certificate.delta is not None
    assert 0.999 * certificate.delta <= worst <= certificate.delta * (1.0 + 1e-6)


def test_a_run_of_rounds_with_other_probabilities_each() -> None:
    """Two phases, in which a record has different probabilities: the composition of the largest is a bound, by enumeration."""
    phases = [
        {"mechanism": {"kind": "stated", "epsilon": LN2}, "sampler": {"kind": "poisson", "sampling_probability": one}}
        for one in ({"strata": {"a": 0.3, "b": 0.05}}, {"strata": {"a": 0.05, "b": 0.12}})
    ]
    target = {"adjacency": "add-remove", "epsilon": 0.1, "delta": "solve"}
    bound = pyaccount.certify({"pyaccount": 1, "name": "two", "privacy": target, "phases": phases}).delta
    for name in ("a", "b"):
        laws = []
        for present in (True, False):
            each = []
            for phase in phases:
                strata = {
                    key: Fraction(str(p)) for key, p in phase["sampler"]["sampling_probability"]["strata"].items()
                }
                rest = [strata["a"], strata["b"]]
                each.append(count_law([*rest, strata[name]] if present else rest, 3))
            laws.append([p * q for p, q in itertools.product(*each)])
        assert max(divergence(*laws, 0.1), divergence(*reversed(laws), 0.1)) <= bound * (1.0 + 1e-12)


# ---- what the bound does not cover


def test_one_draw_with_weights_exceeds_the_bound() -> None:
    """One draw among records with weights, of which the sensitive one has a chance of at most 0.01 (σ = 0.5, ε = 1)."""
    sigma, epsilon, q = 0.5, 1.0, 0.01
    bound = pyaccount.certify(document({"max": q}, noise={"multiplier": sigma})).delta
    # The other records contribute −1. Where the record is not drawn, one of them is.
    found = between({-1.0: 1.0 - q, 1.0: q}, {-1.0: 1.0}, epsilon, sigma)
    assert bound == pytest.approx(2.7e-4, rel=0.02)
    assert found == pytest.approx(6.7e-3, rel=0.02)


def test_weights_by_the_number_of_similar_records_exceed_the_bound() -> None:
    """If each of m records of a class has the probability 1/m, a record that is added takes the place of the others."""
    sigma, epsilon, size = 1.0, 0.02, 10
    privacy = {"adjacency": "add-remove", "epsilon": epsilon, "delta": "solve"}
    bound = pyaccount.certify(document({"max": 1 / size}, noise={"multiplier": sigma}, privacy=privacy)).delta
    laws = (sums([(-1.0, 1 / size)] * size), sums([(-1.0, 1 / (size + 1))] * size + [(1.0, 1 / (size + 1))]))
    assert bound is not None
    assert between(*laws, epsilon, sigma) > 1.2 * bound


# ---- the same bounds as with the largest probability, bit for bit

MIXED = {"strata": {"rare": 0.02, "common": 0.001}}
POISSON: dict[str, Any] = {"kind": "poisson", "sampling_probability": MIXED}
TRAINING = {"sampling_probability": MIXED, "iterations": 40}
NOISE = {"multiplier": 1.5}
BANDED = {"kind": "toeplitz", "coefficients": [1, 0.5]}

CASES: dict[str, dict[str, Any]] = {
    "poisson": {"training": TRAINING, "sampler": {"kind": "poisson"}, "noise": NOISE},
    "several draws": sectioned(training=TRAINING, sampler="poisson", draws_per_iteration=3, noise=NOISE),
    "several releases": sectioned(
        training=TRAINING, sampler="poisson", noise={**NOISE, "also": [{"what": "a count", "multiplier": 8}]}
    ),
    "a schedule of noise": sectioned(
        training=TRAINING, sampler="poisson", multiplier={"schedule": {"start": 2, "decay": 0.8, "every": 10}}
    ),
    "a limit that no batch reaches": sectioned(
        training={**TRAINING, "dataset_size": 100}, sampler="poisson", truncate_to=100, noise=NOISE
    ),
    "fixed parts": {
        "training": TRAINING,
        "sampler": {"kind": "cyclic-poisson", "partitions": 4},
        "noise": {**NOISE, "also": [{"what": "a count", "multiplier": 8}]},
        "matrix": BANDED,
    },
    "a mechanism": {"mechanism": {"kind": "laplace", "scale": 2}, "sampler": POISSON, "count": 3},
    "clients": {"mechanism": {"kind": "laplace", "scale": 2}, "sampler": {**POISSON, "draws": "clients"}},
}
PHASES: dict[str, dict[str, Any]] = {
    "phases on a sample": {
        "sampler": POISSON,
        "phases": [{"training": {"iterations": 3}, "sampler": {"kind": "none"}, "noise": NOISE}],
    },
    "inside of a sample": {"sampler": {"kind": "poisson", "sampling_probability": 0.5}, "phases": [CASES["poisson"]]},
    "the best run": {"select": {"kind": "geometric", "stopping_probability": 0.2}, "phases": [CASES["poisson"]]},
}


def with_the_largest(value: Any) -> Any:
    """Return the sections with the largest probability as a number."""
    if value == MIXED:
        return 0.02
    if isinstance(value, dict):
        return {key: with_the_largest(item) for key, item in value.items()}
    return [with_the_largest(item) for item in value] if isinstance(value, list) else value


def whole(name: str, **privacy: Any) -> dict[str, Any]:
    """Return the document of a case."""
    head = doc(name="own", adjacency="add-remove", epsilon=1, delta="solve", privacy=privacy)
    return head | (CASES[name] if name in CASES else {"phases": [PHASES[name]]})


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("name", [*CASES, *PHASES])
def test_bounds_are_those_of_the_largest_probability(name: str, adjacency: str) -> None:
    if adjacency == "replace-one" and name == "a mechanism":
        pytest.skip("different probabilities are refused for a mechanism on a sample if a record is replaced")
    if name == "a limit that no batch reaches" and adjacency != "zero-out":
        pytest.skip("a limit is refused for other adjacencies, whether or not a batch reaches it")
    mixed = whole(name, adjacency=adjacency)
    assert (
        compile_document(pyaccount.load(mixed)).at().parts()
        == compile_document(pyaccount.load(with_the_largest(mixed))).at().parts()
    )


@pytest.mark.parametrize(
    "sections",
    [
        {"sampler": {"kind": "poisson"}, "accounting": {"method": "monte-carlo"}},
        {"sampler": {"kind": "cyclic-poisson", "partitions": 4, "phase": "random"}, "matrix": BANDED},
    ],
    ids=["poisson", "random parts"],
)
def test_sampled_mechanisms_are_those_of_the_largest_probability(sections: dict[str, Any]) -> None:
    mixed = document(MIXED, **sections)
    mixed["training"] = TRAINING
    first, second = (compile_document(pyaccount.load(one)).at().mechanism() for one in (mixed, with_the_largest(mixed)))
    assert first == second


@pytest.mark.parametrize("blank", ["noise", "iterations"])
def test_blanks_are_solved_at_the_largest_probability(blank: str) -> None:
    mixed = document(MIXED, privacy={"adjacency": "zero-out", "epsilon": 1, "delta": 1e-5}, noise={"multiplier": 3})
    mixed["training"] = {**TRAINING, "iterations": 500 if blank == "noise" else "solve"}
    if blank == "noise":
        mixed["noise"] = {"multiplier": "solve"}
    first, second = (pyaccount.certify(one).data.solved for one in (mixed, with_the_largest(mixed)))
    assert first is not None
    assert second is not None
    assert first.value == second.value


# ---- refusals


@pytest.mark.parametrize(
    ("sampler", "training"),
    [
        ({"kind": "fixed-size"}, {"dataset_size": 100}),
        ({"kind": "b-min-sep", "min_separation": 2}, {}),
        ({"kind": "balls-in-bins", "bins": 4}, {}),
        ({"kind": "random-allocation", "iterations_per_allocation": 4}, {}),
        ({"kind": "none"}, {}),
    ],
    ids=lambda value: value.get("kind", "") if isinstance(value, dict) else "",
)
def test_samplers_that_need_one_probability(
    sampler: dict[str, Any], training: dict[str, Any], snapshot: Snapshot
) -> None:
    stated = document({"max": 0.05}, sampler=sampler)
    stated["training"] = {"sampling_probability": {"max": 0.05}, "iterations": 8} | training
    snapshot.raised(lambda: compile_document(pyaccount.load(stated)))


def test_truncated_batches_are_refused(snapshot: Snapshot) -> None:
    stated = document({"max": 0.05}, sampler={"kind": "poisson", "truncate_to": 5})
    stated["privacy"]["adjacency"] = "zero-out"
    stated["training"] |= {"dataset_size": 100}
    snapshot.raised(lambda: compile_document(pyaccount.load(stated)))


# ---- what is said


def test_the_certificate_states_the_probabilities_and_what_they_depend_on(snapshot: Snapshot) -> None:
    certificate = pyaccount.certify(document({"strata": STRATA}))
    (phase,) = certificate.data.phases
    assert (phase.sampling_probability, phase.participation_rate, phase.expected_batch_size) == (None, None, None)
    assert phase.probabilities is not None
    assert (phase.probabilities.largest, phase.probabilities.strata) == (0.3, STRATA)
    snapshot(certificate.data.assumptions, certificate.data.reductions[0].remark)
    (phase,) = pyaccount.certify(document({"max": 0.3})).data.phases
    assert phase.probabilities is not None
    assert (phase.probabilities.largest, phase.probabilities.strata) == (0.3, None)


def test_several_draws_of_strata_have_no_expected_batch_size(snapshot: Snapshot) -> None:
    several = {"kind": "poisson", "draws_per_iteration": 3}
    snapshot(pyaccount.certify(document({"strata": STRATA}, sampler=several)).data.assumptions)
    snapshot(pyaccount.certify(document(0.3, sampler=several)).data.assumptions)


def test_the_guarantee_of_each_stratum_is_that_of_its_probability() -> None:
    """Also if phases have other strata: a phase that does not name a stratum counts with its largest probability."""
    first, second = {"strata": {"a": 0.3, "b": 0.05}}, {"strata": {"b": 0.2, "c": 0.1}}
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}

    def certified(*probabilities: object) -> pyaccount.Certificate:
        phases = [
            {"training": {"sampling_probability": one, "iterations": 4}, "sampler": {"kind": "poisson"}, "noise": NOISE}
            for one in probabilities
        ]
        return pyaccount.certify({"pyaccount": 1, "name": "two", "privacy": target, "phases": phases})

    told = certified(first, second).data.records
    assert told is not None
    assert [one.name for one in told] == ["a", "b", "c"]
    for one, probabilities in zip(told, [(0.3, 0.2), (0.05, 0.2), (0.3, 0.1)], strict=True):
        own = certified(*probabilities).data.guarantee
        assert max(one.epsilon_lower, own.epsilon_lower) <= min(one.epsilon, own.epsilon)
        assert one.epsilon == pytest.approx(own.epsilon, rel=1e-3)


def test_strata_are_told_with_the_blank_filled_and_in_the_words_of_the_adjacency() -> None:
    privacy = {"adjacency": "replace-one", "epsilon": 3, "delta": 1e-5, "group_size": 2}
    mixed = document(MIXED, privacy=privacy, noise={"multiplier": "solve"})
    certificate = pyaccount.certify(mixed)
    told = certificate.data.records
    assert told is not None
    names = ["2 records of rare, replaced within the stratum", "2 records of common, replaced within the stratum"]
    assert [one.name for one in told] == names
    assert told[0].epsilon == certificate.epsilon > told[1].epsilon
    assert "The guarantee for each kind of record" in certificate.to_markdown()


def test_a_stratum_alone_is_no_kind_of_its_own() -> None:
    for probability in ({"max": 0.3}, {"strata": {"all": 0.3}}):
        assert pyaccount.certify(document(probability)).data.records is None


def test_strata_in_a_part() -> None:
    """A record is in one part and in one stratum; a part without the stratum is as it is."""
    parts = [
        sectioned(name=name, sampling_probability=p, iterations=4, sampler="poisson", noise=NOISE)
        for name, p in (("north", 0.1), ("south", MIXED))
    ]
    certificate = pyaccount.certify(doc(name="parts", adjacency="add-remove", phases=[{"parallel": parts}]))
    told = {one.name: one.epsilon for one in certificate.data.records or ()}
    assert list(told) == ["rare, and north", "rare, and south", "common, and north", "common, and south"]
    assert told["rare, and north"] == told["common, and north"] == certificate.epsilon
    assert told["common, and south"] < told["rare, and south"] < told["rare, and north"]


def test_a_certificate_is_verified() -> None:
    certificate = pyaccount.certify(document({"strata": STRATA}))
    assert certificate.data.document["training"]["sampling_probability"] == {"strata": STRATA}
    assert pyaccount.verify(certificate)


def test_clients_are_drawn_whatever_their_records() -> None:
    """Whether a client takes part shows in the output, so its probability must not depend on its records."""
    certificate = pyaccount.certify(whole("clients"))
    assert any(
        "a client depends neither on its records nor on other clients" in text for text in certificate.data.assumptions
    )
