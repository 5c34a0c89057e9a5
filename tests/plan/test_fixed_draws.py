"""Documents with batches of a fixed number of draws, and with Laplace noise: known numbers, and what is refused."""

import math
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import pytest
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.execute.engine import Engine, Question
from pyaccount.plan.compiling import compile_document


def document(sampler: dict[str, Any], adjacency: str = "replace-one", **changes: Any) -> dict[str, Any]:
    """500 rounds at σ = 1 and δ = 1e-5 of 10 draws from 1000 records, unless changed."""
    return (
        doc(
            "name=draws dataset_size=1000 expected_batch_size=10 iterations=500 multiplier=1.0",
            adjacency=adjacency,
            sampler=sampler,
        )
        | changes
    )


#: Where the number of rounds does not matter.
FEW = {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 30}


def interval(raw: dict[str, Any]) -> tuple[float, float]:
    guarantee = pyaccount.certify(raw | {"accounting": {"profile": []}}).data.guarantee
    return guarantee.epsilon_lower, guarantee.epsilon


def test_the_known_numbers() -> None:
    """Recomputed from the formulas; the pair in circulation says 1.96 and 1.98, and two concrete data sets have 10.28."""
    fixed = document({"kind": "fixed-size"})
    composed = Engine().ask(compile_document(pyaccount.load(fixed)).at().composed(), Question(None, 1e-5, 1e-4))
    assert round(composed.lower, 2) == 10.28
    assert composed.upper == pytest.approx(11.05, abs=0.005)
    low, high = interval(fixed)
    assert (round(low, 2), round(high, 2)) == (10.34, 10.35)
    low, high = interval(document({"kind": "with-replacement"}))
    assert round(low, 2) == 13.58
    assert high == pytest.approx(14.2, abs=0.05)


def test_two_stages_with_and_then_without_replacement_is_with_replacement() -> None:
    for adjacency in ("add-remove", "zero-out", "replace-one"):
        plain = interval(document({"kind": "with-replacement"}, adjacency, training=FEW))
        assert interval(document({"kind": "must-wo", "subset_size": 40}, adjacency, training=FEW)) == plain


def test_a_subset_of_everything_is_sampling_with_replacement() -> None:
    """MUST.OW with b = N has the law of sampling with replacement, and its three bounds; with b = N − 1 it has one of them."""
    for adjacency in ("zero-out", "replace-one"):
        hull, whole, but_one = (
            interval(document(sampler, adjacency, training=FEW))[1]
            for sampler in (
                {"kind": "with-replacement"},
                {"kind": "must-ow", "subset_size": 1000},
                {"kind": "must-ow", "subset_size": 999},
            )
        )
        assert hull == whole < but_one


@pytest.mark.parametrize("kind", ["with-replacement", "must-ow", "must-ww"])
def test_one_draw_is_a_batch_of_one(kind: str) -> None:
    sampler = {"kind": kind} | ({"subset_size": 50} if kind.startswith("must") else {})
    training = {"dataset_size": 1000, "expected_batch_size": 1, "iterations": 100}
    for adjacency in ("zero-out", "replace-one"):
        drawn = interval(document(sampler, adjacency, training=training))
        assert drawn == pytest.approx(
            interval(document({"kind": "fixed-size"}, adjacency, training=training)), rel=2e-4
        )


def test_adding_a_record_is_attained_with_replacement_and_bounded_in_two_stages() -> None:
    certificate = pyaccount.certify(document({"kind": "with-replacement"}, "add-remove")).data
    assert certificate.reductions[0].tight
    assert certificate.guarantee.epsilon_lower > 0.999 * certificate.guarantee.epsilon
    for kind in ("must-ow", "must-ww"):
        data = pyaccount.certify(document({"kind": kind, "subset_size": 500}, "add-remove")).data
        assert not data.reductions[0].tight
        assert data.guarantee.epsilon_lower < data.guarantee.epsilon


def test_larger_data_sets_are_more_private() -> None:
    for sampler in ({"kind": "with-replacement"}, {"kind": "must-ow", "subset_size": 100}):
        larger, smaller = (interval(document(sampler, training={**FEW, "dataset_size": n}))[1] for n in (2000, 1000))
        assert larger < smaller


def test_batches_may_be_larger_than_the_data_set() -> None:
    training = {"dataset_size": 5, "expected_batch_size": 8, "iterations": 2}
    for sampler in ({"kind": "with-replacement"}, {"kind": "must-ww", "subset_size": 30}):
        data = pyaccount.certify(document(sampler, training=training, noise={"multiplier": 20.0})).data
        assert data.phases[0].expected_batch_size == 8
        assert (data.phases[0].distinct_records or 9) < 5


def test_certificates_say_why() -> None:
    data = pyaccount.certify(document({"kind": "with-replacement"})).data
    assert "not upper bounds" in (data.reductions[0].remark or "")
    assert data.phases[0].sampling_probability is None
    assert data.phases[0].distinct_records == pytest.approx(1000 * (1 - 0.999**10), rel=1e-12)
    assert any("draws from the whole data set" in text for text in data.assumptions)


def test_the_largest_batch_is_solved() -> None:
    training = {"dataset_size": 1000, "expected_batch_size": "solve", "iterations": 100}
    privacy = {"adjacency": "replace-one", "epsilon": 3.0, "delta": 1e-5}
    raw = document({"kind": "with-replacement"}, training=training, privacy=privacy, noise={"multiplier": 2.0})
    certificate = pyaccount.certify(raw)
    assert certificate.data.solved is not None
    value = certificate.data.solved.value
    assert isinstance(value, int)
    larger = training | {"expected_batch_size": value + 1}
    assert not pyaccount.certify(raw | {"training": larger}).holds


TRAINING = {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 500}
REFUSED: list[Any] = [
    ({"kind": "must-wo", "subset_size": 9}, "zero-out", {}),
    ({"kind": "must-ow", "subset_size": 1001}, "zero-out", {}),
    ({"kind": "must-ow", "subset_size": 1000}, "add-remove", {}),
    ({"kind": "fixed-size"}, "add-remove", {"training": TRAINING | {"expected_batch_size": 1000}}),
    ({"kind": "must-ow", "subset_size": 50, "rounds_per_subset": 5}, "zero-out", {}),
    ({"kind": "with-replacement"}, "add-remove", {"training": {"expected_batch_size": 10, "iterations": 5}}),
    ({"kind": "with-replacement"}, "zero-out", {"training": TRAINING | {"participation_rate": 0.01}}),
    ({"kind": "with-replacement"}, "zero-out", {"training": TRAINING | {"expected_batch_size": 2e6}}),
    ({"kind": "with-replacement"}, "zero-out", {"training": TRAINING | {"expected_batch_size": 2.5}}),
    ({"kind": "shuffle"}, "zero-out", {}),
    ({"kind": "shuffled"}, "zero-out", {}),
    ({"kind": "must-ow"}, "zero-out", {}),
    (
        {"kind": "must-ww", "subset_size": 50},
        "add-remove",
        {"privacy": {"adjacency": "add-remove", "group_size": 2, "epsilon": "solve", "delta": 1e-5}},
    ),
    ({"kind": "poisson"}, "zero-out", {"noise": {"kind": "laplace", "multiplier": 1}}),
    (
        {"kind": "none"},
        "zero-out",
        sectioned(noise={"kind": "laplace", "multiplier": 1}, iterations=5, matrix="banded-square-root", bands=2),
    ),
]


@pytest.mark.parametrize(("sampler", "adjacency", "changes"), REFUSED)
def test_what_is_not_covered_is_refused(
    sampler: dict[str, Any], adjacency: str, changes: dict[str, Any], snapshot: Snapshot
) -> None:
    snapshot.raised(lambda: pyaccount.compile(document(sampler, adjacency, **changes)))


def laplace_after(theta: float, rest: Any, epsilon: mp.mpf) -> mp.mpf:
    """δ(ε) of a Laplace release, its loss law written out, before a mechanism with the profile `rest`."""
    theta = mp.mpf(theta)
    inner = mp.quad(lambda x: mp.exp((x - theta) / 2) / 4 * rest(epsilon - x), mp.linspace(-theta, theta, 9))
    return rest(epsilon - theta) / 2 + mp.exp(-theta) / 2 * rest(epsilon + theta) + inner


def laplace(theta: float) -> Any:
    theta = mp.mpf(theta)

    def delta(epsilon: mp.mpf) -> mp.mpf:
        if epsilon >= theta:
            return mp.mpf(0)
        return 1 - mp.exp(epsilon) if epsilon <= -theta else 1 - mp.exp((epsilon - theta) / 2)

    return delta


def gaussian(mu: float) -> Any:
    m = mp.mpf(mu)
    return lambda e: mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def releases(
    *noises: dict[str, Any], group: int = 1, adjacency: str = "zero-out", epsilon: float = 0.7
) -> dict[str, Any]:
    phases = [{"training": {"iterations": 1}, "sampler": {"kind": "none"}, "noise": noise} for noise in noises]
    privacy = {"adjacency": adjacency, "group_size": group, "epsilon": epsilon, "delta": "solve"}
    return {"pyaccount": 1, "name": "releases", "privacy": privacy, "phases": phases}


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (0.5, 1.0)])
def test_two_laplace_releases(first: float, second: float) -> None:
    """θ = 1/b; the exact law of the two losses, by quadrature."""
    raw = releases(*({"kind": "laplace", "multiplier": 1 / theta} for theta in (first, second)))
    guarantee = pyaccount.certify(raw | {"accounting": {"profile": []}}).data.guarantee
    exact = laplace_after(first, laplace(second), mp.mpf(0.7))
    assert guarantee.delta_lower <= exact <= guarantee.delta
    assert guarantee.delta < exact * (1 + mp.mpf("1e-3"))


def test_a_laplace_release_beside_a_gaussian_one() -> None:
    raw = releases({"kind": "laplace", "multiplier": 2.0}, {"multiplier": 1.6})
    guarantee = pyaccount.certify(raw | {"accounting": {"profile": []}}).data.guarantee
    exact = laplace_after(0.5, gaussian(1 / 1.6), mp.mpf(0.7))
    assert guarantee.delta_lower <= exact <= guarantee.delta
    assert guarantee.delta < exact * (1 + mp.mpf("1e-3"))


def test_pure_privacy_adds_up() -> None:
    """Two releases with θ = 1/2 are (1, 0)-private; for groups and replacement θ grows."""
    for group, adjacency, total in ((1, "zero-out", 1.0), (2, "zero-out", 2.0), (1, "replace-one", 2.0)):
        noise = {"kind": "laplace", "multiplier": 2.0}
        raw = releases(noise, noise, group=group, adjacency=adjacency, epsilon=total * (1 - 1e-12))
        raw["privacy"] |= {"epsilon": "solve", "delta": 1e-12}
        guarantee = pyaccount.certify(raw | {"accounting": {"profile": []}}).data.guarantee
        assert guarantee.epsilon <= total * (1 + 1e-4)
        assert guarantee.epsilon_lower == pytest.approx(total, rel=1e-3)


def test_laplace_noise_is_solved_for() -> None:
    raw = doc(
        "name=count adjacency=add-remove epsilon=1.0 delta=1e-6 iterations=1 sampler=none",
        noise={"kind": "laplace", "multiplier": "solve"},
    )
    certificate = pyaccount.certify(raw)
    scale = certificate.noise_multiplier
    assert scale is not None
    # 1 − e^{(1 − 1/b)/2} = 1e-6.
    assert scale == pytest.approx(1 / (1 - 2 * math.log1p(-1e-6)), rel=1e-4)
    assert certificate.data.utility is None
    assert certificate.data.phases[0].noise == "laplace"
    assert "Laplace" in certificate.data.noise_convention
