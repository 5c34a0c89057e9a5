"""What Flower has, as documents: the state of its accountant, strategies, and the local mod, against closed forms and its ε."""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from typing import Any

import dp_accounting as dp  # type: ignore[import-untyped]
import numpy as np
import pytest
from adapter_samples import DELTA, only_problem
from dp_accounting.pld import PLDAccountant  # type: ignore[import-untyped]
from scipy.stats import norm
from snapshots import Snapshot

import pyaccount
from pyaccount.adapters import flower

WITH_FLOWER = pytest.mark.skipif(
    importlib.util.find_spec("flwr") is None, reason="flwr is not installed: its own objects are NOT read here"
)


def state(sampling: str = "poisson", *entries: tuple[float, int, int], **changes: Any) -> dict[str, Any]:
    """Return a state as `RdpAccountant.state_dict()` of Flower 1.42 makes it, of 100 clients."""
    relation = "replace-one" if sampling == "without-replacement" else "add-or-remove-one"
    config = {
        "target_delta": DELTA,
        "population_size": 100,
        "neighboring_relation": relation,
        "sampling_method": sampling,
        "max_epsilon": None,
    }
    compositions = [
        {"event": {"noise_multiplier": noise, "sample_size": drawn, "population_size": 100}, "count": count}
        for noise, drawn, count in entries
    ]
    return {
        "schema_version": 1,
        "backend": "rdp",
        "config": config,
        "orders": [2.0],
        "compositions": compositions,
    } | changes


def test_poisson_states_have_the_epsilon_of_another_accountant() -> None:
    document = flower.from_accountant(state("poisson", (1.1, 7, 30), (0.9, 10, 20)))
    assert document["privacy"] == {"adjacency": "add-remove", "epsilon": "solve", "delta": DELTA}
    other = PLDAccountant()
    for noise, rate, count in ((1.1, 0.07, 30), (0.9, 0.1, 20)):
        other.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(noise)), count)
    certificate = pyaccount.certify(document)
    # The other accountant is pessimistic, in steps of 1e-4 for each of 50 rounds.
    assert certificate.epsilon_lower <= other.get_epsilon(DELTA) <= certificate.epsilon + 0.01


@pytest.mark.parametrize("drawn", [1, 3, 7, 29, 99])
def test_a_rate_is_rounded_up(drawn: int) -> None:
    rate = flower.from_accountant(state("poisson", (1.0, drawn, 1)))["training"]["sampling_probability"]
    assert Fraction(drawn, 100) <= Fraction(rate) < Fraction(drawn, 100) + Fraction(1, 10**15)


def test_fixed_batches_are_read_as_such() -> None:
    document = flower.from_accountant(state("without-replacement", (1.5, 10, 4)), delta=1e-6, epsilon=3)
    assert document["privacy"] == {"adjacency": "replace-one", "epsilon": 3, "delta": 1e-6}
    assert document["training"] == {"dataset_size": 100, "expected_batch_size": 10, "iterations": 4}
    assert document["sampler"] == {"kind": "fixed-size"}
    assert document["noise"] == {"multiplier": 1.5}


def gaussian_delta(epsilon: float, shift: float) -> float:
    return float(norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift))


@pytest.mark.parametrize(("adjacency", "moved"), [(None, 1.0), ("zero-out", 1.0), ("replace-one", 2.0)])
def test_without_amplification_the_bound_is_that_of_one_gaussian(adjacency: str | None, moved: float) -> None:
    """Rounds without sampling are one Gaussian mechanism with the sum of the squared shifts."""
    document = flower.from_accountant(state("no-amplification", (1.1, 10, 4), (2.0, 20, 1)), adjacency=adjacency)
    assert document["privacy"]["adjacency"] == (adjacency or "zero-out")
    certificate = pyaccount.certify(document)
    shift = moved * math.sqrt(4 / 1.1**2 + 1 / 2.0**2)
    assert gaussian_delta(certificate.epsilon, shift) <= DELTA <= gaussian_delta(certificate.epsilon_lower, shift)


def test_flowers_relation_is_not_true_of_its_strategies(snapshot: Snapshot) -> None:
    """Two sets of clients of which one has a client more have a larger δ than Flower accounts for, as the head says.

    All clients but one change the model by −1, and one, which may be missing, by +1. With it, the sum of 50 drawn ones is larger
    by 2 with probability 50/100, and otherwise the same.
    """
    snapshot(only_problem(flower.from_accountant, state("no-amplification", (1.0, 50, 1)), adjacency="add-remove"))
    counted = pyaccount.certify(flower.from_accountant(state("no-amplification", (1.0, 50, 1))))
    assert counted.epsilon == pytest.approx(4.377, abs=1e-3)
    points, width = np.linspace(-12, 14, 400_001, retstep=True)
    present = 0.5 * norm.pdf(points) + 0.5 * norm.pdf(points, loc=2.0)
    missing = norm.pdf(points)
    true_delta = float(np.sum(np.maximum(present - math.exp(counted.epsilon) * missing, 0.0)) * width)
    assert true_delta > 1000 * DELTA
    document = flower.from_strategy(
        Fixed(1.0, 50, FedAvg(0.5)), rounds=1, clients=100, delta=DELTA, adjacency="add-remove", plain_mean=True
    )
    certificate = pyaccount.certify(document)
    assert certificate.epsilon == pytest.approx(8.981, abs=1e-3)
    at_bound = float(np.sum(np.maximum(present - math.exp(certificate.epsilon) * missing, 0.0)) * width)
    assert at_bound == pytest.approx(DELTA, rel=1e-3)


@pytest.mark.parametrize(
    "source",
    [
        {"history": []},
        state(schema_version=2),
        state(),
        state("poisson", (0.0, 5, 1)),
        state("poisson", (1.0, 101, 1)),
        state("poisson", (1.0, 5, 0)),
        state(compositions=[3]),
        state(config=None),
        object(),
    ],
)
def test_other_states_are_refused_at_their_place(source: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(flower.from_accountant, source))


def test_a_relation_that_flower_does_not_have_is_refused() -> None:
    wrong = state("poisson", (1.0, 5, 1))
    wrong["config"]["neighboring_relation"] = "replace-one"
    assert only_problem(flower.from_accountant, wrong).path == ("config", "sampling_method")
    assert only_problem(
        flower.from_accountant, state("without-replacement", (1.0, 5, 1)), adjacency="add-remove"
    ).path == ("adjacency",)


class FedAvg:
    """Stands for Flower's, as far as the adapter looks at it."""

    def __init__(self, share: float = 0.1, least: int = 2) -> None:
        self.fraction_train, self.min_train_nodes = share, least

    def aggregate_train(self) -> None: ...

    def configure_train(self) -> None: ...


class OwnDraws(FedAvg):
    """Draws other clients."""

    def configure_train(self) -> None: ...


class FedAdam(FedAvg):
    """Does more than the mean."""

    def aggregate_train(self) -> None: ...


class DifferentialPrivacyServerSideFixedClipping:
    """Stands for Flower's, as far as the adapter looks at it."""

    def __init__(self, noise: float, drawn: int, strategy: Any, accountant: Any = None) -> None:
        self.noise_multiplier, self.num_sampled_clients, self.strategy = noise, drawn, strategy
        self.clipping_norm, self.accountant = 1.0, accountant


class DifferentialPrivacyServerSideAdaptiveClipping(DifferentialPrivacyServerSideFixedClipping):
    """Stands for Flower's, as far as the adapter looks at it."""


Fixed, Adaptive = DifferentialPrivacyServerSideFixedClipping, DifferentialPrivacyServerSideAdaptiveClipping


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one", "add-remove"])
def test_a_strategy_is_a_document_of_batches_of_a_fixed_size(adjacency: str) -> None:
    for strategy, stated in ((Fixed(1.2, 10, FedAvg()), True), (Fixed(1.2, 10, FedAvg(), object()), False)):
        document = flower.from_strategy(
            strategy, rounds=30, clients=100, delta=DELTA, adjacency=adjacency, plain_mean=stated
        )
        assert document["privacy"]["adjacency"] == adjacency
        assert document["training"] == {"dataset_size": 100, "expected_batch_size": 10, "iterations": 30}
        assert document["sampler"] == {"kind": "fixed-size"}
        assert document["noise"] == {"multiplier": 1.2}


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        (Adaptive(1.2, 10, FedAvg()), {}),
        (FedAvg(), {}),
        (Fixed(1.2, 10, FedAdam()), {}),
        (Fixed(1.2, 10, OwnDraws()), {}),
        (Fixed(1.2, 10, FedAvg()), {"plain_mean": False}),
        (Fixed(1.2, 9, FedAvg()), {}),
        (Fixed(1.2, 10, FedAvg(least=20)), {}),
        (Fixed(0.0, 10, FedAvg()), {}),
        (Fixed(1.2, 10, FedAvg()), {"rounds": 0}),
    ],
)
def test_other_strategies_are_refused(strategy: Any, options: dict[str, Any], snapshot: Snapshot) -> None:
    given = {"rounds": 3, "clients": 100, "delta": DELTA, "plain_mean": True} | options
    snapshot(only_problem(flower.from_strategy, strategy, **given))


class LocalDpMod:
    """Stands for Flower's, as far as the adapter looks at it."""

    def __init__(self, clipping_norm: float, sensitivity: float, epsilon: float, delta: float) -> None:
        self.clipping_norm, self.sensitivity, self.epsilon, self.delta = clipping_norm, sensitivity, epsilon, delta


@pytest.mark.parametrize(("adjacency", "moved"), [("replace-one", 2.0), ("zero-out", 1.0)])
def test_the_noise_of_the_local_mod_has_the_epsilon_of_its_gaussian(adjacency: str, moved: float) -> None:
    mod = LocalDpMod(0.5, 0.5, 4.0, DELTA)
    document = flower.from_mod(mod, answers=3, delta=DELTA, adjacency=adjacency)
    certificate = pyaccount.certify(document)
    shift = moved * math.sqrt(3) * 4.0 / math.sqrt(2 * math.log(1.25 / DELTA))
    assert gaussian_delta(certificate.epsilon * (1 + 1e-9), shift) <= DELTA
    assert gaussian_delta(certificate.epsilon_lower * (1 - 1e-9), shift) >= DELTA
    # The mod's own ε is above 1, where its formula is no theorem, and is for one answer.
    assert certificate.epsilon > 4.0


def test_other_mods_are_refused() -> None:
    given: dict[str, Any] = {"answers": 3, "delta": DELTA}
    assert "only Flower's LocalDpMod" in only_problem(flower.from_mod, object(), **given).message
    mod = LocalDpMod(0.5, 0.5, 4.0, DELTA)
    assert only_problem(flower.from_mod, mod, adjacency="add-remove", **given).path == ("adjacency",)
    assert only_problem(flower.from_mod, LocalDpMod(0.5, 0.0, 4.0, DELTA), **given).path == ("sensitivity",)
    assert only_problem(flower.from_mod, LocalDpMod(0.5, 0.5, 0.0, DELTA), **given).path == ("epsilon",)


@WITH_FLOWER
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_flowers_own_objects_are_read() -> None:
    from flwr.clientapp.mod import LocalDpMod as Local
    from flwr.server import strategy as before
    from flwr.serverapp import strategy as now

    for package, share in ((now, "fraction_train"), (before, "fraction_fit")):
        least = {"fraction_train": "min_train_nodes", "fraction_fit": "min_fit_clients"}[share]
        inner = package.FedAvg(**{share: 0.1, least: 2})
        for side in ("ServerSide", "ClientSide"):
            fixed = getattr(package, f"DifferentialPrivacy{side}FixedClipping")(inner, 1.2, 0.3, 10)
            document = flower.from_strategy(fixed, rounds=3, clients=100, delta=DELTA, plain_mean=True)
            assert document["noise"] == {"multiplier": 1.2}
            adaptive = getattr(package, f"DifferentialPrivacy{side}AdaptiveClipping")(inner, 0.5, 10)
            problem = only_problem(flower.from_strategy, adaptive, rounds=3, clients=100, delta=DELTA, plain_mean=True)
            assert "scales the noise by the next one" in problem.message
        other = package.DifferentialPrivacyServerSideFixedClipping(package.FedAdagrad(**_start(package)), 1.2, 0.3, 10)
        problem = only_problem(flower.from_strategy, other, rounds=3, clients=100, delta=DELTA, plain_mean=True)
        assert problem.path == ("strategy",)
    mod = Local(0.5, 0.5, 4.0, DELTA)
    expected = 0.5 * math.sqrt(2 * math.log(1.25 / DELTA)) / 4.0
    sigma = flower.from_mod(mod, answers=3, delta=DELTA)["mechanism"]["sigma"]
    assert sigma == pytest.approx(expected, rel=1e-13)
    assert sigma < expected


def _start(package: Any) -> dict[str, Any]:
    """Return what FedAdagrad needs in the older of Flower's interfaces."""
    if "serverapp" in package.__name__:
        return {}
    from flwr.common import ndarrays_to_parameters

    return {"initial_parameters": ndarrays_to_parameters([np.zeros(2)])}


@WITH_FLOWER
def test_the_state_of_flowers_accountant_is_read() -> None:
    accounting = pytest.importorskip("flwr.supercore.privacy_accounting")
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

    for sampling, relation, compares in (
        ("poisson", "add-or-remove-one", True),
        ("no-amplification", "add-or-remove-one", True),
        ("without-replacement", "replace-one", False),  # docs/composition.md says why dp_accounting's bound is smaller
    ):
        config = accounting.PrivacyConfig(
            DELTA, 100, accounting.NeighboringRelation(relation), accounting.SamplingMethod(sampling)
        )
        accountant = RdpAccountant(config)
        accountant.compose(accounting.GaussianPrivacyEvent(1.3, 10, 100), 20)
        accountant.compose(accounting.GaussianPrivacyEvent(1.1, 10, 100))
        expected = state(sampling, (1.3, 10, 20), (1.1, 10, 1))
        assert accountant.state_dict() | {"orders": [2.0]} == expected
        document = flower.from_accountant(accountant)
        assert document == flower.from_accountant(expected)
        if compares:
            # Rényi orders lose a little, so Flower's ε is above the certificate's.
            certificate = pyaccount.certify(document)
            assert certificate.epsilon_lower <= accountant.get_privacy_spent().epsilon <= 1.3 * certificate.epsilon


@WITH_FLOWER
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_adaptive_strategies_scale_the_noise_by_the_next_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why they are refused: the noise is not that of the norm to which was clipped."""
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideAdaptiveClipping as Wrapped
    from flwr.serverapp.strategy import FedAvg as Mean
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    np.random.seed(7)  # Flower draws from this generator
    size = 40_000
    strategy = Wrapped(Mean(), 0.5, 2, initial_clipping_norm=1.0, clip_norm_lr=4.0, clipped_count_stddev=1.0)
    strategy.current_arrays = ArrayRecord({"w": Array(np.zeros(size))})
    replies = []
    for node in (1, 2):
        asked = Message(RecordDict({"c": ConfigRecord()}), message_type="train", dst_node_id=node)
        answer = {"arrays": ArrayRecord({"w": Array(np.ones(size))}), "m": MetricRecord({"num-examples": 1})}
        replies.append(Message(RecordDict(answer), reply_to=asked))
    released, _ = strategy.aggregate_train(1, replies)
    spread = float(np.std(released["w"].numpy()))
    # Both clients were clipped, so the norm fell.
    assert strategy.clipping_norm < 0.5
    assert spread == pytest.approx(strategy.noise_multiplier * strategy.clipping_norm / 2, rel=0.02)
