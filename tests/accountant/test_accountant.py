"""The accountant object: counting, asking, saving."""

import math
from typing import Any

import numpy as np
import oracle
import pytest
from accountant_samples import POISSON, ROUND, changed
from hypothesis import given
from hypothesis import strategies as st
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant
from pyaccount.accountant import accountant as module
from pyaccount.accountant.horizon import Horizon
from pyaccount.certificate.consistency import content_sha256
from pyaccount.errors import (
    CertificateError,
    DocumentError,
)


def certified(rounds: int, **privacy: Any) -> pyaccount.Certificate:
    """The certificate of as many rounds, straight from a document."""
    stated = {**POISSON["privacy"], "epsilon": "solve", **privacy}
    return pyaccount.certify(changed(privacy=stated, training={"sampling_probability": 0.01, "iterations": rounds}))


@pytest.fixture
def ledger() -> Accountant:
    return Accountant(adjacency="add-remove", delta=1e-5, epsilon=3)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The documents that are certified meanwhile."""
    seen: list[Any] = []
    plain = Accountant._certify

    def certify(self: Accountant, document: Any) -> Any:
        seen.append(document)
        return plain(self, document)

    monkeypatch.setattr(module.Accountant, "_certify", certify)
    return seen


def test_what_is_spent_is_what_a_document_of_the_rounds_certifies(ledger: Accountant) -> None:
    plan = Accountant(POISSON)
    assert plan.epsilon_spent() == ledger.epsilon_spent() == 0.0
    for count in (1, 9, 90):
        plan.step(count)
        ledger.step(count, **ROUND)
        expected = certified(plan.steps)
        assert plan.epsilon_spent() == ledger.epsilon_spent() == expected.epsilon
        assert plan.epsilon_spent(1e-7) == certified(plan.steps, delta=1e-7).epsilon
        assert plan.certificate().epsilon == expected.epsilon
        assert len(plan.certificate().profile) == 14
        released = plan.document()
        assert released["training"] == {"sampling_probability": 0.01, "iterations": plan.steps}
        assert released["privacy"]["epsilon"] == "solve"
        assert released["name"] == f"run, first {plan.steps} of 1000 rounds, fixed beforehand"


def test_the_whole_run_is_the_document_itself() -> None:
    plan = Accountant(POISSON)
    plan.step(1000)
    assert plan.document() == changed(privacy={**POISSON["privacy"], "epsilon": "solve"})


def test_a_loop_stops_at_the_last_round_within_the_budget(ledger: Accountant, counted: list[Any]) -> None:
    plan = Accountant(POISSON)
    while not plan.would_exceed():
        plan.step()
    while not ledger.would_exceed(**ROUND):
        ledger.step(**ROUND)
    # One certificate for each round would be 895 for each of the two.
    assert len(counted) < 60
    assert plan.steps == ledger.steps
    assert certified(plan.steps).epsilon <= 3 < certified(plan.steps + 1).epsilon_lower
    assert plan.remaining_steps() == ledger.remaining_steps() == 0
    assert ledger.would_exceed()
    # A larger budget is another question.
    assert not plan.would_exceed(epsilon=3.1)
    assert not ledger.would_exceed(epsilon=3.1)
    assert plan.would_exceed(epsilon=3.1, delta=1e-8)
    assert not Accountant(POISSON).would_exceed(plan.steps)
    assert Accountant(POISSON).would_exceed(plan.steps + 1)
    assert Accountant(POISSON).remaining_steps() == plan.steps
    assert Accountant(adjacency="add-remove", delta=1e-5, epsilon=3).remaining_steps(**ROUND) == plan.steps


def test_a_plan_that_keeps_the_budget_takes_one_certificate(counted: list[Any]) -> None:
    plan = Accountant(changed(privacy={**POISSON["privacy"], "epsilon": 4}))
    for _ in range(1000):
        assert not plan.would_exceed()
        plan.step()
    assert len(counted) == 1
    assert plan.would_exceed()
    assert plan.remaining_steps() == 0


def test_no_round_beyond_the_plan_is_counted(snapshot: Snapshot) -> None:
    plan = Accountant(POISSON)
    plan.step(999)
    snapshot.raised(plan.step, 2)
    assert plan.steps == 999
    assert plan.would_exceed(2, epsilon=1000)
    assert not plan.would_exceed(1, epsilon=1000)


@pytest.mark.parametrize("count", [0, -1, 1.0, "1", None, True, math.nan, np.float64(2)])
def test_a_count_is_a_whole_number(count: Any, ledger: Accountant, snapshot: Snapshot) -> None:
    for one in (Accountant(POISSON), ledger):
        round = {} if one.planned_steps else ROUND
        snapshot.raised(one.step, count, **round)
        snapshot.raised(one.would_exceed, count, **round)
        assert one.steps == 0


def test_numbers_of_numpy_count() -> None:
    plan = Accountant(POISSON)
    plan.step(np.int32(7))
    assert plan.steps == 7
    assert type(plan.state_dict()["steps"]) is int


@pytest.mark.parametrize(
    ("field", "value"),
    [("delta", 0.0), ("delta", 1.0), ("delta", math.nan), ("delta", "x"), ("epsilon", -1.0), ("epsilon", math.inf)],
)
def test_arguments_have_domains(field: str, value: Any, snapshot: Snapshot) -> None:
    plan = Accountant(POISSON)
    plan.step()
    snapshot.raised(plan.would_exceed, **{field: value})
    if field == "delta":
        snapshot.raised(plan.epsilon_spent, value)


def test_nothing_is_no_document(ledger: Accountant, snapshot: Snapshot) -> None:
    for one in (Accountant(POISSON), ledger):
        for ask in (one.document, one.certificate):
            snapshot.raised(ask)
    snapshot.raised(ledger.would_exceed)


def test_without_a_budget_there_is_nothing_to_exceed(snapshot: Snapshot) -> None:
    for one in (
        Accountant(changed(privacy={**POISSON["privacy"], "epsilon": "solve"})),
        Accountant(adjacency="add-remove", delta=1e-5),
    ):
        one.step(**({} if one.planned_steps else ROUND))
        assert one.epsilon_spent() > 0
        snapshot.raised(one.would_exceed)
        assert one.would_exceed(epsilon=0.1)
        assert not one.would_exceed(epsilon=4)


@pytest.mark.parametrize(
    ("path", "value"), [("noise.multiplier", "solve"), ("privacy.delta", "solve"), ("training.iterations", "solve")]
)
def test_blanks_but_epsilon_are_refused(path: str, value: str, snapshot: Snapshot) -> None:
    section, field = path.split(".")
    snapshot.raised(lambda: Accountant(changed(**{section: {**POISSON[section], field: value}})))


def test_choices_are_refused() -> None:
    matrix = {"kind": "banded-square-root", "bands": {"choose": [2, 4]}}
    chosen = changed(sampler={"kind": "b-min-sep", "min_separation": 8}, matrix=matrix, noise={"multiplier": "solve"})
    with pytest.raises(DocumentError) as caught:
        Accountant(chosen)
    unfilled = [p.path_text for p in caught.value.problems if p.slug == "unfilled-blank"]
    assert sorted(unfilled) == ["matrix.bands", "noise.multiplier"]


def test_a_solved_certificate_is_a_plan(counted: list[Any]) -> None:
    certificate = pyaccount.certify(changed(noise={"multiplier": "solve"}))
    plan = Accountant.from_certificate(certificate)
    assert not plan.would_exceed(1000)
    assert counted == []
    plan.step(1000)
    assert plan.epsilon_spent() <= 3
    assert plan.document()["noise"]["multiplier"] == certificate.noise_multiplier
    # The budget of a certificate of ε is what it found.
    found = Accountant.from_certificate(certified(1000))
    assert not found.would_exceed(1000)
    assert found.would_exceed(1000, epsilon=3)
    smallest = pyaccount.certify(changed(privacy={**POISSON["privacy"], "delta": "solve"}))
    assert not Accountant.from_certificate(smallest).would_exceed(1000)


def test_a_claim_that_does_not_hold_is_no_plan(snapshot: Snapshot) -> None:
    with snapshot.raises(CertificateError):
        Accountant.from_certificate(pyaccount.certify(changed(privacy={**POISSON["privacy"], "epsilon": 1})))


def test_a_certificate_that_contradicts_itself_is_no_plan(snapshot: Snapshot) -> None:
    text = certified(1000).to_json().replace('"iterations": 1000', '"iterations": 100', 1)
    snapshot.raised(lambda: Accountant.from_certificate(pyaccount.Certificate.from_json(text)))


@pytest.mark.parametrize("blank", ["privacy.epsilon", "noise.multiplier"])
def test_a_certificate_without_the_value_of_its_blank_is_no_plan(blank: str, snapshot: Snapshot) -> None:
    asked = {"noise": {"multiplier": "solve"}} if blank == "noise.multiplier" else {}
    privacy = {**POISSON["privacy"], "epsilon": "solve"} if blank == "privacy.epsilon" else POISSON["privacy"]
    data = pyaccount.certify(changed(privacy=privacy, **asked)).data
    unfilled = data.model_copy(update={"solved": None})
    unfilled = unfilled.model_copy(update={"content_sha256": content_sha256(unfilled)})
    snapshot.raised(lambda: Accountant.from_certificate(pyaccount.Certificate(unfilled)))


# The ledger.


def test_equal_neighbours_are_one_phase(ledger: Accountant) -> None:
    for sigma in (1.0, np.float64(1.0), 1, "1.0", 2.0, 1.0):
        ledger.step(2, noise_multiplier=sigma, sampling_probability=0.02)
    phases = ledger.document()["phases"]
    assert [(p["noise"]["multiplier"], p["training"]["iterations"]) for p in phases] == [(1, 8), (2, 2), (1, 2)]


def test_a_ledger_composes_in_closed_form(ledger: Accountant) -> None:
    ledger.step(3, noise_multiplier=4)
    ledger.step(5, noise_multiplier=6, sampling_probability=1)
    ledger.step(2, noise_multiplier=7, sampler={"kind": "none"})
    assert len(ledger.document()["phases"]) == 3
    exact = float(oracle.gaussian_epsilon(math.sqrt(3 / 16 + 5 / 36 + 2 / 49), 1e-5))
    assert exact <= ledger.epsilon_spent() <= exact * (1 + 3e-4)


def test_other_samplers_and_laplace_noise(ledger: Accountant) -> None:
    ledger.step(4, noise_multiplier=2, sampler="fixed-size", expected_batch_size=10, dataset_size=1000)
    ledger.step(noise_multiplier=5, noise="laplace")
    document = ledger.document()
    assert document["phases"][0]["sampler"] == {"kind": "fixed-size"}
    assert document["phases"][1]["noise"] == {"kind": "laplace", "multiplier": 5}
    assert ledger.epsilon_spent() == pyaccount.certify(document).epsilon


@pytest.mark.parametrize(
    "round",
    [
        {"noise_multiplier": 0},
        {"noise_multiplier": None},
        {"noise_multiplier": True},
        {"noise_multiplier": np.array([1.0, 2.0])},
        {"noise_multiplier": "solve"},
        {"noise_multiplier": 1, "sampling_probability": 1.5},
        {"noise_multiplier": 1, "sampler": "posson", "sampling_probability": 0.1},
        {"noise_multiplier": 1, "sampler": "shuffle"},
        {"noise_multiplier": 1, "sampler": "b-min-sep", "sampling_probability": 0.1},
        {"noise_multiplier": 1, "sampler": {"kind": "balls-in-bins", "bins": 1}},
        {"noise_multiplier": 1, "sampler": {"kind": "none", "max_participations": 1}},
        {"noise_multiplier": 1, "noise": "laplace", "sampling_probability": 0.1},
        {"noise_multiplier": 1, "sampler": "fixed-size", "expected_batch_size": 10},
    ],
)  # fmt: skip
def test_rounds_without_a_document_are_refused_and_not_counted(
    ledger: Accountant, round: dict[str, Any], snapshot: Snapshot
) -> None:
    ledger.step(noise_multiplier=1)
    snapshot.raised(ledger.step, **round)
    assert ledger.steps == 1
    assert ledger.document()["training"]["iterations"] == 1


def test_the_arguments_are_read_when_they_are_given(ledger: Accountant) -> None:
    sampler: dict[str, Any] = {"kind": "fixed-size"}
    round = {"noise_multiplier": 2, "sampler": sampler, "expected_batch_size": 10, "dataset_size": 1000}
    ledger.step(**round)
    sampler["kind"] = "with-replacement"
    ledger.step(**round)
    assert [p["sampler"]["kind"] for p in ledger.document()["phases"]] == ["fixed-size", "with-replacement"]


class Printed:
    """A number of another library, that prints fewer digits than it has."""

    def __init__(self, value: float) -> None:
        self.value = value

    def tolist(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"tensor({self.value:.4f})"


@pytest.mark.parametrize("number", [np.array, np.ma.array, np.float32, Printed])
def test_rates_that_print_alike_are_not_the_same(ledger: Accountant, number: Any) -> None:
    with np.printoptions(precision=4, suppress=True):
        for rate in (6e-5, 1.4e-4, 1.4e-4):
            ledger.step(10, noise_multiplier=0.8, sampling_probability=number(rate))
    told = [(p["training"]["sampling_probability"], p["training"]["iterations"]) for p in ledger.document()["phases"]]
    exact = np.float32 if number is np.float32 else float
    assert told == [(float(exact(6e-5)), 10), (float(exact(1.4e-4)), 20)]


def test_what_is_no_plain_data_is_read_each_time(ledger: Accountant, snapshot: Snapshot) -> None:
    class Chain(tuple[str, ...]):
        """Reads as nothing a document knows, and prints as a number that was read."""

        def __repr__(self) -> str:
            return "0.8"

    ledger.step(noise_multiplier=0.8)
    for wrong in (np.longdouble(0.8), Chain(), object()):
        snapshot.raised(ledger.step, noise_multiplier=wrong)
    assert ledger.steps == 1


def test_words_that_are_no_arguments(ledger: Accountant, snapshot: Snapshot) -> None:
    snapshot.raised(ledger.step, noise_multiplier=1, sample_rate=0.1)
    snapshot.raised(ledger.step)
    snapshot.raised(lambda: Accountant(POISSON).step(noise_multiplier=1))
    snapshot.raised(lambda: Accountant(POISSON).would_exceed(noise_multiplier=1))
    snapshot.raised(Accountant, adjacency="add-remove")
    snapshot.raised(Accountant, POISSON, delta=1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        {"adjacency": "add-remov", "delta": 1e-5},
        {"adjacency": "add-remove", "delta": 1},
        {"adjacency": "add-remove", "delta": "solve"},
        {"adjacency": "add-remove", "delta": 1e-5, "epsilon": -1},
        {"adjacency": "add-remove", "delta": 1e-5, "group_size": 0},
        {"adjacency": "add-remove", "delta": 1e-5, "name": ""},
    ],
)
def test_a_wrong_budget_is_located(arguments: dict[str, Any], snapshot: Snapshot) -> None:
    snapshot.raised(Accountant, **arguments)


def test_groups(ledger: Accountant) -> None:
    pairs = Accountant(adjacency="add-remove", delta=1e-5, group_size=2)
    pairs.step(4, noise_multiplier=8)
    ledger.step(4, noise_multiplier=4)
    assert pairs.epsilon_spent() == pytest.approx(ledger.epsilon_spent(), rel=1e-3)


# Where samples are drawn.

SAMPLED: dict[str, Any] = doc(
    "name=sampled epsilon=1 delta=0.05 sampling_probability=0.2 iterations=12 sampler=b-min-sep",
    "min_separation=3 matrix=banded-square-root bands=3 multiplier=2",
)


def test_a_sampled_plan_is_tested_once(counted: list[Any]) -> None:
    plan = Accountant(SAMPLED)
    assert not plan.would_exceed()
    plan.step(6)
    assert not plan.would_exceed(6)
    assert plan.remaining_steps() == 6
    (document,) = counted
    # The seed follows from the document: asking in another process draws the same samples, and no luck can be tried.
    assert document.accounting.seed == Accountant(SAMPLED)._planned.document.accounting.seed
    assert document.accounting.seed != Accountant({**SAMPLED, "name": "x"})._planned.document.accounting.seed
    # A budget that the whole run misses is not tried at shorter lengths.
    assert plan.would_exceed(epsilon=0.01)
    assert plan.would_exceed(1, epsilon=0.01)
    assert plan.remaining_steps(epsilon=0.01) == 0
    assert len(counted) == 2


def test_a_sampled_certificate_is_its_own_test(counted: list[Any]) -> None:
    asked = {"profile": [], "seed": 5, "method": "monte-carlo"}
    certificate = pyaccount.certify({**SAMPLED, "accounting": asked})
    assert certificate.data.guarantee.kind == "verified"
    plan = Accountant.from_certificate(certificate)
    assert not plan.would_exceed(12)
    assert counted == []
    # The document's seed is the user's, for the claim that the document makes.
    assert Accountant({**SAMPLED, "accounting": {"seed": 5}}).would_exceed(12) is False
    assert [document.accounting.seed for document in counted] == [5]


@pytest.mark.parametrize("accounting", [{}, {"seed": 5}])
def test_samples_that_found_an_epsilon_do_not_test_it(accounting: dict[str, Any], counted: list[Any]) -> None:
    blank = {
        **SAMPLED,
        "privacy": {**SAMPLED["privacy"], "epsilon": "solve"},
        "accounting": {"profile": [], **accounting},
    }
    found = pyaccount.certify(blank)
    assert found.data.guarantee.kind == "confidence"
    assert found.data.evidence.sampling is not None
    told = Accountant.from_certificate(found)
    assert told.state_dict()["document"]["privacy"]["epsilon"] == found.epsilon
    told.would_exceed(12)
    told.would_exceed(12, epsilon=found.epsilon * 1.25)
    told.would_exceed(12, epsilon=found.epsilon * 1.25, delta=0.06)
    # Nor does the seed with which a plan tells what is spent.
    told = Accountant(blank)
    told.step(11)
    told.would_exceed(epsilon=found.epsilon * 1.5)
    claims = [(document.privacy.epsilon, document.privacy.delta) for document in counted]
    assert claims == [
        (found.epsilon, 0.05),
        (found.epsilon * 1.25, 0.05),
        (found.epsilon * 1.25, 0.06),
        (found.epsilon * 1.5, 0.05),
    ]
    seeds = [document.accounting.seed for document in counted]
    known = {5, found.data.evidence.sampling.seed, told.state_dict()["document"]["accounting"]["seed"]}
    assert len(set(seeds)) == len(claims)
    assert known.isdisjoint(seeds)
    # Asking again in another process draws the same samples.
    again = Accountant.from_certificate(found)
    again.would_exceed(12, epsilon=found.epsilon * 1.25)
    assert counted[-1].accounting.seed == seeds[1]


def test_the_seed_that_solved_for_the_noise_does_not_test_it() -> None:
    solved = pyaccount.certify({**SAMPLED, "noise": {"multiplier": "solve"}, "accounting": {"profile": [], "seed": 5}})
    document = Accountant.from_certificate(solved).state_dict()["document"]
    assert document["noise"]["multiplier"] == solved.noise_multiplier
    assert document["accounting"]["seed"] != 5


def test_what_a_sampled_prefix_has_spent(counted: list[Any]) -> None:
    plan = Accountant(SAMPLED)
    plan.step(6)
    spent = plan.epsilon_spent()
    assert plan.epsilon_spent() == plan.certificate().epsilon == spent
    assert len(counted) == 1
    # Without sampling every record takes part in rounds 1 and 4: an upper end of what sampling leaves.
    column = np.array([1, 0.5, 0.375]) / np.linalg.norm([1, 0.5, 0.375])
    assert 0 < spent < float(oracle.gaussian_epsilon(math.sqrt(2 * float(column @ column)) / 2, 0.05))


def test_the_first_round_of_a_sampled_plan_is_one_mixture() -> None:
    """A warm start draws a record in round 1 at the participation rate r: (1−r)N(0) + rN(c₀) against N(0)."""
    delta, rate, first = 0.01, 1 / (2 + 1 / 0.2), 1 / np.linalg.norm([1, 0.5, 0.375])
    plan = Accountant({**SAMPLED, "privacy": {**SAMPLED["privacy"], "delta": delta}})
    plan.step()
    guarantee = plan.certificate().data.guarantee
    assert guarantee.kind == "confidence"
    exact = math.log1p(rate * math.expm1(float(oracle.gaussian_epsilon(first / 2, delta / rate))))
    assert guarantee.epsilon_lower <= exact <= guarantee.epsilon <= 1.1 * exact


# The horizon.


@given(st.integers(0, 300), st.integers(1, 300), st.lists(st.integers(1, 300), max_size=5))
def test_the_horizon_finds_the_last_length(last: int, most: int, asked: list[int]) -> None:
    horizon, tried = Horizon(beyond=most + 1), []

    def certified(length: int) -> bool:
        tried.append(length)
        assert 1 <= length <= most
        return length <= last

    for length in asked:
        horizon.ask(length, certified)
    assert horizon.find(certified) == min(last, most)
    assert len(tried) == len(set(tried)) <= 2 * math.log2(most + 1) + len(asked) + 2
    assert horizon.known
