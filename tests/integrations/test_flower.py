"""Federated averaging with Flower, if it is installed: its own messages and strategy, with clients in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import doc
from trained_elsewhere import CORRELATED, starting, with_batches, with_key

from pyaccount import TrainingRun, certify
from pyaccount.errors import PlanExceededError, RunError
from pyaccount.training.check_record import hold_record

flwr = pytest.importorskip("flwr", reason="flwr is not installed: the integration of Flower is NOT tested here")

from flower_grid import OneProcess  # noqa: E402
from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict  # noqa: E402 - after the skip
from flwr.supercore.task_identity import TaskIdentity  # noqa: E402

from pyaccount.integrations.flower import PrivateFedAvg  # noqa: E402

CLIENTS, ROUNDS = 12, 8


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the process of a ServerApp, which Flower's messages name as their sender."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


DOCUMENT: dict[str, Any] = doc(
    "name=federated adjacency=add-remove epsilon=300.0 expected_batch_size=4 sampler=poisson multiplier=0.5",
    dataset_size=CLIENTS,
    iterations=ROUNDS,
)
started = starting(DOCUMENT)
SPARSE = with_batches(DOCUMENT, 0.4)
#: Every client takes part in every round.
ALL = {"sampler": {"kind": "none"}, **with_batches(DOCUMENT, CLIENTS)}
#: Node ids, in an order of their own.
NODES = [int(node) for node in np.random.default_rng(5).permutation(CLIENTS) * 7919 + 13]
SCALE = {node: 0.3 * (1 + place) for place, node in enumerate(sorted(NODES))}

Client = Callable[[int, Message], "Message | None"]


def model() -> Any:
    return ArrayRecord(
        {"weight": Array(np.ones((2, 3), dtype=np.float32)), "count": Array(np.array([7], dtype=np.int64))}
    )


def update(node: int, weight: Any) -> Any:
    """Return what a client makes of the model: a step towards a point of its own."""
    return (weight + SCALE[node] * np.cos(np.arange(6.0).reshape(2, 3) + SCALE[node] + weight)).astype(np.float32)


def honest(node: int, message: Any) -> Any:
    arrays = message.content.array_records["arrays"]
    after = {"weight": Array(update(node, arrays["weight"].numpy())), "count": Array(np.array([9], dtype=np.int64))}
    content = RecordDict(
        {"arrays": ArrayRecord(after), "metrics": MetricRecord({"num-examples": 5, "loss": SCALE[node]})}
    )
    return Message(content, reply_to=message)


class HereGrid(OneProcess):
    """Runs the clients in this process."""

    def __init__(self, answer: Client = honest) -> None:
        super().__init__(NODES, answer)


def clipped(nodes: list[int], weight: Any, norm: float = 0.7) -> Any:
    """Return the sum of the clipped changes of these clients."""
    total = np.zeros((2, 3))
    for node in nodes:
        change = update(node, weight).astype(np.float64) - weight
        total += change * min(1.0, norm / np.linalg.norm(change))
    return total


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list of the sums that are released."""
    sums: list[Any] = []
    release = TrainingRun._release
    monkeypatch.setattr(
        TrainingRun,
        "_release",
        lambda self, number, given, also: sums.append(given) or release(self, number, given, also),
    )
    return sums


def by_hand(run: TrainingRun, order: list[int], rate: float) -> tuple[Any, list[list[int]]]:
    weight, asked = np.ones((2, 3), dtype=np.float32), []
    while run.round < run.rounds:
        with run.step() as step:
            nodes = sorted(order[index] for index in step.batch.indices)
            asked.append(nodes)
            mean = step.release({"weight": clipped(nodes, weight)})["weight"]
        weight = (weight + rate * mean).astype(np.float32)
    return weight, asked


@pytest.mark.parametrize("changes", [{}, CORRELATED, SPARSE], ids=["poisson", "correlated", "sparse"])
@pytest.mark.parametrize("named", [True, False])
def test_the_model_is_that_of_a_loop_by_hand(
    tmp_path: Path, changes: dict[str, Any], named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key: list[Any] = []
    with with_key(started(tmp_path / "flower", changes), key, monkeypatch) as run:
        grid = HereGrid()
        result = PrivateFedAvg(run, clients=NODES if named else None, rate=0.5).start(grid, model())
        assert run.released == ROUNDS
    with with_key(started(tmp_path / "hand", changes), key, monkeypatch) as run:
        weight, asked = by_hand(run, NODES if named else sorted(NODES), 0.5)
    assert grid.asked[::2] == asked
    assert not any(grid.asked[1::2])  # nobody is asked to evaluate
    assert (changes is not SPARSE) == all(asked)
    np.testing.assert_allclose(result.arrays["weight"].numpy(), weight, rtol=1e-6)
    assert result.arrays["weight"].numpy().dtype == np.float32
    assert result.arrays["count"].numpy().tolist() == [7]  # not a floating-point number: never released


def test_what_is_measured_by_clients_is_not_collected(tmp_path: Path) -> None:
    certificate = certify(DOCUMENT)
    with TrainingRun(certificate, tmp_path, records=CLIENTS) as run:
        seen: list[int] = []
        result = PrivateFedAvg(run, clients=NODES).start(
            HereGrid(), model(), evaluate_fn=lambda number, arrays: seen.append(number)
        )
    found = [dict(result.train_metrics_clientapp[number]) for number in range(1, ROUNDS + 1)]
    assert all(set(metrics) == {"epsilon_so_far_upper", "epsilon_upper", "delta_upper"} for metrics in found)
    bounds = [metrics["epsilon_so_far_upper"] for metrics in found]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] == certificate.epsilon
    assert not result.evaluate_metrics_clientapp
    assert seen == list(range(ROUNDS + 1))
    assert hold_record(tmp_path / "record.jsonl", certificate).released == ROUNDS


def broken(way: str) -> Client:
    """Return clients of which one in two answers in a wrong way."""

    def answer(node: int, message: Any) -> Any:
        if sorted(NODES).index(node) % 2:
            return honest(node, message)
        reply = honest(node, message)
        weight = {
            "infinite": np.full((2, 3), np.inf, dtype=np.float32),
            "large": np.full((2, 3), 1e200),
            "shape": np.ones((3, 3), dtype=np.float32),
            "integers": np.ones((2, 3), dtype=np.int64),
        }
        if way == "silent":
            return None
        if way == "error":
            return Message(Error(1, "out of memory"), reply_to=message)
        if way == "names":
            return Message(RecordDict({"arrays": ArrayRecord({"other": Array(np.ones(2))})}), reply_to=message)
        if way == "none":
            return Message(RecordDict({}), reply_to=message)
        reply.content.array_records["arrays"]["weight"] = Array(weight[way])
        return reply

    return answer


@pytest.mark.parametrize("way", ["silent", "error", "names", "none", "infinite", "large", "shape", "integers"])
def test_a_client_without_a_sound_answer_contributes_nothing(tmp_path: Path, way: str, released: list[Any]) -> None:
    with started(tmp_path, ALL) as run:
        PrivateFedAvg(run, clients=NODES).start(HereGrid(broken(way)), model(), num_rounds=1)
    expected = clipped(sorted(NODES)[1::2], np.ones((2, 3), dtype=np.float32))
    np.testing.assert_allclose(released[0]["weight"], expected, rtol=1e-12)
    assert set(released[0]) == {"weight"}


def test_a_second_answer_and_those_of_others_do_not_count(tmp_path: Path, released: list[Any]) -> None:
    with started(tmp_path) as run:
        strategy = PrivateFedAvg(run, clients=NODES)
        grid = HereGrid()
        messages = list(strategy.configure_train(1, model(), flwr.app.ConfigRecord(), grid))
        others = [
            Message(messages[0].content, message_type="train", dst_node_id=node)
            for node in set(NODES) - {one.metadata.dst_node_id for one in messages}
        ]
        replies = [honest(one.metadata.dst_node_id, one) for one in (*messages, *messages, *others)]
        strategy.aggregate_train(1, replies)
    expected = clipped([one.metadata.dst_node_id for one in messages], np.ones((2, 3), dtype=np.float32))
    assert messages
    assert others
    np.testing.assert_allclose(released[0]["weight"], expected, rtol=1e-12)


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["poisson", "correlated"])
def test_a_resumed_training_is_the_uninterrupted_one(
    tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    key: list[Any] = []
    with with_key(started(tmp_path / "whole", changes), key, monkeypatch) as run:
        whole = PrivateFedAvg(run, clients=NODES).start(HereGrid(), model())
    with with_key(started(tmp_path / "again", changes), key, monkeypatch) as run:
        PrivateFedAvg(run, clients=NODES, checkpoint=tmp_path / "model.npz").start(HereGrid(), model(), num_rounds=3)
        kept = (tmp_path / "model.npz").read_bytes()
        PrivateFedAvg(run, clients=NODES, checkpoint=tmp_path / "model.npz").start(HereGrid(), model(), num_rounds=5)
    # The model of two released rounds is lost.
    (tmp_path / "model.npz").write_bytes(kept)
    with with_key(started(tmp_path / "again", changes), key) as run:
        assert run.released == 5
        for clients, path in ((None, tmp_path / "none.npz"), (NODES[::-1], tmp_path / "model.npz")):
            with pytest.raises(RunError, match="must stay the same"):
                PrivateFedAvg(run, clients=clients, checkpoint=path).start(HereGrid(), model())
        # The checkpoint knows the clients.
        again = PrivateFedAvg(run, checkpoint=tmp_path / "model.npz").start(HereGrid(), model())
        assert run.released == ROUNDS
    assert np.array_equal(whole.arrays["weight"].numpy(), again.arrays["weight"].numpy())


def test_a_training_halts_at_the_end_of_its_plan(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        strategy = PrivateFedAvg(run, clients=NODES)
        with pytest.raises(PlanExceededError, match="9 rounds in all are asked for, 0 are done, and 8 were certified"):
            strategy.start(HereGrid(), model(), num_rounds=ROUNDS + 1)
        assert run.released == 0
        strategy.start(HereGrid(), model())
    with started(tmp_path) as run:
        with pytest.raises(RunError, match="another sum"):
            PrivateFedAvg(run, clients=NODES[::-1]).start(HereGrid(), model())
        with pytest.raises(PlanExceededError, match="8 rounds in all are asked for, 8 are done, and 8 were certified"):
            PrivateFedAvg(run, clients=NODES, give_up=True).start(HereGrid(), model())


def test_other_clients_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        for wrong in (NODES[1:], [*NODES[1:], NODES[1]]):
            with pytest.raises(RunError, match="clients: there are 11, and the run has 12 records"):
                PrivateFedAvg(run, clients=wrong)
        (tmp_path / "other.npz").write_bytes(b"nothing")
        with pytest.raises(RunError, match="not a checkpoint"):
            PrivateFedAvg(run, clients=NODES, checkpoint=tmp_path / "other.npz").start(HereGrid(), model())
    with started(tmp_path / "more", {"training": {**DOCUMENT["training"], "dataset_size": 13}}, records=13) as run:
        with pytest.raises(RunError, match="there are 12, and the run has 13"):
            PrivateFedAvg(run, patience=0.0).start(HereGrid(), model())
        assert run.released == 0


def test_clients_that_are_no_nodes_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        numbers = PrivateFedAvg(run, clients=range(CLIENTS))
        with pytest.raises(RunError, match=r"none of the 12 is connected \(12 others are\).*not numbers of partitions"):
            numbers.start(HereGrid(), model())
        with pytest.raises(RunError, match="initial_arrays is a list: give an ArrayRecord"):
            PrivateFedAvg(run, clients=NODES).start(HereGrid(), [np.ones(2)])
        with pytest.raises(RunError, match="run is a str, and an open run is needed"):
            PrivateFedAvg("training.cert.json")
        assert run.released == 0


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("silent", "no client answered"),
        ("error", "an error, out of memory"),
        ("names", "without a model of the same names"),
        ("shape", "of other shapes or types"),
        ("infinite", "not finite"),
    ],
)
def test_a_training_of_noise_alone_is_logged(
    tmp_path: Path, way: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    import flwr.common.logger

    monkeypatch.setattr(
        flwr.common.logger, "log", lambda level, text, *given: level < 30 or logged.append(text % given)
    )

    def later(node: int, message: Any) -> Any:
        number = message.content.config_records["config"]["server-round"]
        return broken(way)(sorted(NODES)[0], message) if number < 3 else honest(node, message)

    with started(tmp_path, ALL) as run:
        PrivateFedAvg(run, clients=NODES).start(HereGrid(later), model(), num_rounds=4)
    assert len(logged) == 2  # the rounds before the first answer that was used
    assert all("noise alone" in text and says in text for text in logged)
