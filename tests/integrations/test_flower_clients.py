"""Clients of Flower that train with certified runs of their own, beside the server's run, if Flower is installed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_documents import doc, sectioned
from scipy.stats import binom, norm
from trained_elsewhere import starting, with_key

from pyaccount import TrainingRun, certify
from pyaccount.errors import RunError
from pyaccount.training.check_record import hold_record

flwr = pytest.importorskip("flwr", reason="flwr is not installed: clients of Flower are NOT tested here")

from flower_grid import OneProcess  # noqa: E402 - after the skip
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict  # noqa: E402
from flwr.supercore.task_identity import TaskIdentity  # noqa: E402

from pyaccount.integrations.flower import PrivateFedAvg  # noqa: E402
from pyaccount.integrations.flower_clients import FAILED, answer  # noqa: E402

CLIENTS, ROUNDS, STEPS, ANSWERS, RECORDS = 6, 8, 2, 3, 30
NODES = [100 + number for number in range(CLIENTS)]


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the process of a ServerApp, which Flower's messages name as their sender."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def document(name: str, size: int, batch: float, rounds: int, noise: float = 1.0) -> dict[str, Any]:
    return doc(
        name=name, dataset_size=size, expected_batch_size=batch, iterations=rounds, sampler="poisson", multiplier=noise
    )


LOCAL = document("client", RECORDS, 5, STEPS * ANSWERS)
opened = starting({**LOCAL, "privacy": {**LOCAL["privacy"], "epsilon": 300.0}}, "run")


def data(node: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(node)
    inputs = generator.normal(size=(RECORDS, 2))
    return inputs, inputs @ [1.0, -1.0]


def local_training(run: TrainingRun, node: int, steps: int = STEPS) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a client's training: steps of the run on a linear model."""
    inputs, targets = data(node)

    def train(arrays: dict[str, Any]) -> dict[str, Any]:
        weight = arrays["w"]
        for _ in range(steps):
            with run.step() as step:
                drawn = step.batch.indices
                slopes = inputs[drawn] * (inputs[drawn] @ weight - targets[drawn])[:, None]
                norms = np.linalg.norm(slopes, axis=1, keepdims=True)
                total = (slopes * np.minimum(1.0, run.clip_norm / np.maximum(norms, 1e-12))).sum(axis=0)
                weight = weight - 0.3 * step.release(total)
        return {"w": weight}

    return train


def question(number: int, weight: Any = (0.0, 0.0)) -> Any:
    content = RecordDict(
        {
            "arrays": ArrayRecord({"w": Array(np.array(weight))}),
            "config": ConfigRecord({"server-round": number}),
        }
    )
    return Message(content, message_type="train", dst_node_id=NODES[0])


def model_of(message: Any) -> Any:
    return message.content.array_records["arrays"]["w"].numpy()


def failed(message: Any) -> bool:
    """Return whether an answer only says that the client's training has failed."""
    return message.has_error() and message.error.reason == FAILED


def test_errors_of_a_training_stay_with_the_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def train(arrays: dict[str, Any]) -> dict[str, Any]:
        local_training(run, 1, steps=1)(arrays)
        raise ValueError("record 17 has no value")

    with opened(tmp_path) as run:
        assert failed(answer(run, question(1), steps=STEPS, train=train, kept=tmp_path))
        assert "record 17" in caplog.text
        assert run.released == 1
        answer(run, question(1), steps=STEPS, train=local_training(run, 1), kept=tmp_path)
        assert run.released == STEPS  # the same round once more


@pytest.mark.parametrize("names", [("file", "w"), ("w.npy", "w"), ("self", "args")])
def test_arrays_may_have_any_name(tmp_path: Path, names: tuple[str, ...]) -> None:
    record = ArrayRecord({name: Array(np.full(2, float(number))) for number, name in enumerate(names)})
    content = RecordDict({"arrays": record, "config": ConfigRecord({"server-round": 1})})
    asked = Message(content, message_type="train", dst_node_id=NODES[0])

    def train(arrays: dict[str, Any]) -> dict[str, Any]:
        local_training(run, 1)({"w": np.zeros(2)})
        return {name: array + 5.0 for name, array in arrays.items()}

    with opened(tmp_path) as run:
        for _ in range(2):
            found = answer(run, asked, steps=STEPS, train=train, kept=tmp_path).content.array_records["arrays"]
            assert {name: found[name].numpy()[0] for name in names} == {name: 5.0 + i for i, name in enumerate(names)}
        assert run.released == STEPS


def test_every_run_has_its_certificate_and_stops_at_its_end(tmp_path: Path) -> None:
    """The server trains all rounds of its run, and each client answers as often as its own run has rounds for."""
    whole, own = certify(document("server", CLIENTS, 4, ROUNDS)), certify(LOCAL)
    refused = Counter[int]()

    def client(node: int, message: Any) -> Any:
        folder = tmp_path / str(node)
        with TrainingRun(own, folder / "run", records=RECORDS, clip_norm=1.0) as run:
            found = answer(run, message, steps=STEPS, train=local_training(run, node), kept=folder / "answers")
        if found.has_error():
            assert "has 0 of 6 rounds left, and an answer needs 2" in found.error.reason
            refused[node] += 1
        else:
            assert dict(found.content.metric_records["metrics"]) == {"num-examples": 1}
        return found

    grid = OneProcess(NODES, client)
    with TrainingRun(whole, tmp_path / "server", records=CLIENTS, clip_norm=0.5) as run:
        PrivateFedAvg(run, clients=NODES).start(grid, ArrayRecord({"w": Array(np.zeros(2))}))
    verdict = hold_record(tmp_path / "server" / "record.jsonl", whole)
    assert verdict
    assert verdict.released == ROUNDS
    asked = Counter(node for nodes in grid.asked for node in nodes)
    for node in NODES:
        assert refused[node] == max(0, asked[node] - ANSWERS)
        if asked[node]:
            verdict = hold_record(tmp_path / str(node) / "run" / "record.jsonl", own)
            assert verdict
            assert verdict.released == STEPS * min(asked[node], ANSWERS)
    assert refused  # with 8 rounds and a probability of 2/3, all six are drawn at most 3 times in one of 2·10⁶ runs


def test_the_same_question_gets_the_same_answer_and_no_release(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        given: dict[str, Any] = {"steps": STEPS, "train": local_training(run, 1), "kept": tmp_path / "kept"}
        first = answer(run, question(1), **given)
        assert run.released == STEPS
        second = answer(run, question(1), **given)
        assert run.released == STEPS
        assert np.array_equal(model_of(first), model_of(second))
        # Another round, or another model in the same round, is another question.
        third = answer(run, question(2), **given)
        assert run.released == 2 * STEPS
        assert not np.array_equal(model_of(first), model_of(third))
        answer(run, question(1, (0.5, 0.0)), **given)
        assert run.released == 3 * STEPS
        assert answer(run, question(3), **given).has_error()
        assert np.array_equal(model_of(first), model_of(answer(run, question(1), **given)))
        assert run.released == run.rounds


def test_an_answer_that_was_interrupted_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key: list[Any] = []
    with with_key(opened(tmp_path / "whole"), key, monkeypatch) as run:
        expected = answer(run, question(1), steps=STEPS, train=local_training(run, 1), kept=tmp_path / "whole")

    def interrupted(run: TrainingRun) -> Any:
        def train(arrays: dict[str, Any]) -> dict[str, Any]:
            local_training(run, 1, steps=1)(arrays)
            raise KeyboardInterrupt

        return train

    with with_key(opened(tmp_path / "again"), key, monkeypatch) as run, pytest.raises(KeyboardInterrupt):
        answer(run, question(1), steps=STEPS, train=interrupted(run), kept=tmp_path / "again")
    with with_key(opened(tmp_path / "again"), key) as run:
        assert run.released == 1
        found = answer(run, question(1), steps=STEPS, train=local_training(run, 1), kept=tmp_path / "again")
        assert run.released == STEPS
        assert np.array_equal(model_of(expected), model_of(found))
        with pytest.raises(KeyboardInterrupt):
            answer(run, question(2), steps=STEPS, train=interrupted(run), kept=tmp_path / "again")
        # The server has gone on: the round stays counted, and the answer has rounds of its own.
        answer(run, question(3), steps=STEPS, train=local_training(run, 1), kept=tmp_path / "again")
        assert run.released == 2 * STEPS + 1
        reply = answer(run, question(4), steps=STEPS, train=local_training(run, 1), kept=tmp_path / "again")
        assert "1 of 6 rounds left" in reply.error.reason


def test_rounds_of_an_interrupted_answer_can_be_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    generator = np.random.default_rng(3)

    def other_sums(run: TrainingRun, steps: int) -> Any:
        def train(arrays: dict[str, Any]) -> dict[str, Any]:
            for _ in range(steps):
                with run.step() as step:
                    step.release(0.1 * generator.normal(size=2))
            if steps < STEPS:
                raise KeyboardInterrupt
            return arrays

        return train

    with opened(tmp_path) as run:
        with pytest.raises(KeyboardInterrupt):
            answer(run, question(1), steps=STEPS, train=other_sums(run, 1), kept=tmp_path)
        assert failed(answer(run, question(1), steps=STEPS, train=other_sums(run, STEPS), kept=tmp_path))
        assert "another sum" in caplog.text
    with opened(tmp_path) as run:
        answer(run, question(1), steps=STEPS, train=other_sums(run, STEPS), kept=tmp_path, give_up=True)
        assert run.released == 1 + STEPS


def test_what_is_no_answer_is_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(tmp_path) as run:
        train = local_training(run, 1)
        with pytest.raises(RunError, match="steps = 0: an answer needs"):
            answer(run, question(1), steps=0, train=train, kept=tmp_path)
        empty = Message(RecordDict({"config": ConfigRecord()}), message_type="train", dst_node_id=NODES[0])
        assert "no model" in answer(run, empty, steps=STEPS, train=train, kept=tmp_path).error.reason
        assert run.released == 0
        assert failed(answer(run, question(1), steps=3, train=train, kept=tmp_path))
        assert "released 2 rounds, and steps = 3" in caplog.text
        found = answer(run, question(2), steps=STEPS, train=lambda arrays: {"v": train(arrays)["w"]}, kept=tmp_path)
        assert failed(found)
        assert "other names or shapes" in caplog.text
        (tmp_path / "begun.json").write_text("[]")
        with pytest.raises(RunError, match=r"begun\.json: this is not the state"):
            answer(run, question(3), steps=STEPS, train=train, kept=tmp_path)
    assert not list(tmp_path.glob("*.npz"))


@pytest.mark.parametrize(("rate", "rounds", "noise"), [(0.25, 12, 2.0), (0.6, 5, 1.0)])
def test_draws_of_clients_have_the_mean_of_the_profiles(rate: float, rounds: int, noise: float) -> None:
    """Statement 2 at the head of the module, where an answer is two Gaussian steps without sampling: δ(ε) = E[δ_A(ε)]."""

    def delta_of(epsilon: float, parts: int) -> float:
        shift = math.sqrt(STEPS * parts) / noise
        if not parts:
            return 0.0
        return float(norm.cdf(shift / 2 - epsilon / shift) - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift))

    def mean(epsilon: float, most: int) -> float:
        chances = binom.pmf(np.arange(rounds + 1), rounds, rate)
        return float(sum(p * delta_of(epsilon, min(a, most)) for a, p in enumerate(chances)))

    phase = {
        "sampler": {"kind": "poisson", "sampling_probability": rate, "draws": "clients"},
        "phases": [sectioned(iterations=STEPS, sampler="none", multiplier=noise)],
        "count": rounds,
    }
    privacy = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-5}
    certificate = certify({"pyaccount": 1, "name": "record", "privacy": privacy, "phases": [phase]})
    assert mean(certificate.epsilon, rounds) <= 1e-5 <= mean(certificate.epsilon_lower, rounds)
    # A client that stops earlier has a smaller δ.
    bounds = [mean(certificate.epsilon, most) for most in range(rounds + 1)]
    assert bounds == sorted(bounds)


def test_a_client_may_train_with_opacus(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: a client with Opacus is NOT tested here")
    pytest.importorskip("opacus", reason="Opacus is not installed: a client with it is NOT tested here")
    from pyaccount.integrations.opacus import PrivacyEngine

    inputs, targets = (torch.tensor(array, dtype=torch.float32) for array in data(1))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets[:, None]), batch_size=15)
    own = certify(LOCAL)
    with TrainingRun(own, tmp_path / "run", records=RECORDS, clip_norm=1.0) as run:

        def train(arrays: dict[str, Any]) -> dict[str, Any]:
            net = torch.nn.Linear(2, 1, bias=False)
            net.load_state_dict({"weight": torch.tensor(arrays["w"], dtype=torch.float32)[None]})
            model, optimizer, batches = PrivacyEngine(run).make_private(
                module=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.1), data_loader=loader
            )
            for features, values in batches:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(features), values).backward()
                optimizer.step()
            return {"w": net.weight.detach().numpy()[0].astype(np.float64)}

        for number in range(ANSWERS):
            reply = answer(run, question(number), steps=len(loader), train=train, kept=tmp_path / "kept")
            assert not np.array_equal(model_of(reply), [0.0, 0.0])
    assert hold_record(tmp_path / "run" / "record.jsonl", own).released == STEPS * ANSWERS


# Opacus registers hooks in a way that PyTorch warns about.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning", "UserWarning")
]
