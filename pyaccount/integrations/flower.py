"""Flower: federated averaging that trains exactly the run of a certificate, whose records are clients.

    run = pyaccount.TrainingRun("training.cert.json", "runs/first", records=len(clients), clip_norm=1.0)
    strategy = PrivateFedAvg(run, clients=clients)
    result = strategy.start(grid, initial_arrays)

The clients of a round are those of the run's batch. The change of the model by each client is clipped to the run's clip norm and
added up; the run adds noise and records the round before the model changes. So the guarantee is about all the data of a client,
as seen by anybody but the server, which sees the changes themselves. This module accounts for nothing itself. It needs flwr.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import PlanExceededError, RunError, importing
from pyaccount.files import write_atomically
from pyaccount.integrations.facts import Progress
from pyaccount.training import TrainingRun

with importing("flwr", by=__name__):
    from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Result, Strategy

#: The keys of messages, as Flower's own strategies name them.
ARRAYS, CONFIG = "arrays", "config"
#: How long is waited for all clients, and how long until it is looked again, in seconds.
PATIENCE, LOOKING = 600.0, 1.0
#: The entries of a checkpoint that are no arrays of the model: the state of the run, and the node ids of its clients, as JSON.
STATE, NODES = "pyaccount_run", "pyaccount_clients"

Arrays = dict[str, NDArray[Any]]


class PrivateFedAvg(Strategy):  # type: ignore[misc, unused-ignore]
    """Federated averaging of clients for the run of a certificate.

    A client that does not answer in time, answers with an error, with arrays of other names or shapes, or with numbers that are
    not finite contributes zeros: that is decided for each client alone. Arrays of the model that are not floating-point numbers
    stay as they are. Metrics of clients are not collected, because they have no noise; neither are evaluations by clients. A
    central evaluation (`evaluate_fn`) on public data is as usual.
    """

    def __init__(  # noqa: PLR0913 - the run, who its records are, and what differs from averaging
        self,
        run: TrainingRun,
        *,
        clients: Sequence[int] | None = None,
        rate: float = 1.0,
        checkpoint: str | os.PathLike[str] | None = None,
        give_up: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        """Take an open run, and:

        * `clients`: Flower's node ids of the run's records, in their order, which must stay the same as long as the run goes on.
          By default a new run takes all nodes, sorted, as soon as there are as many as records.
        * `rate`: the server's learning rate, by which the noisy mean of the changes is multiplied.
        * `checkpoint`: a file that gets the model and the state of the run after every round, and from which `start` goes on.
        * `give_up`: does not repeat rounds that were released after the checkpoint, as `TrainingRun.load_state_dict` says.
        * `patience`: how many seconds are waited in the first round: for one of `clients`, or for all if they are not given.

        Raises `RunError` if there are not as many clients as records, or the run has ranks or other sums.
        """
        self.run, self.progress, self.rate = run, Progress(run), rate
        if run.world > 1 or run.also_clip_norms:
            raise RunError(
                "the run has several ranks or releases other sums (noise.also), which is not implemented with Flower"
            )
        if len(set(run.records)) != 1:
            raise RunError("the phases of the run have different data sets, which is not implemented with Flower")
        self._clients = None if clients is None else self._checked(clients)
        self._checkpoint = None if checkpoint is None else Path(checkpoint)
        self._give_up, self._patience = give_up, patience
        self._model: Arrays = {}
        self._drawn: Counter[int] = Counter()
        #: Whether a client is known to be connected, whether an answer was used so far, and why the last one was not.
        self._met, self._answered, self._why = False, False, "no client answered"

    def start(  # noqa: PLR0913, PLR0917 - Flower's own arguments
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Train the run from the checkpoint if there is one, to its end or until `num_rounds` rounds in all are done.

        Without a checkpoint the training begins with round 0 and `initial_arrays`. Rounds that were released already are
        repeated, which the clients must do bit for bit; otherwise nothing is released, and `give_up=True` leaves them out.

        Raises `PlanExceededError` if more rounds are asked for than were certified, or none is left.
        """
        if not isinstance(initial_arrays, ArrayRecord):
            raise RunError(
                f"initial_arrays is a {type(initial_arrays).__name__}: give an ArrayRecord, such as "
                "ArrayRecord(model.state_dict()) or ArrayRecord([array, …])"
            )
        run, arrays = self.run, initial_arrays
        state: Any = {**run.state_dict(), "rounds": 0}
        if self._checkpoint is not None and self._checkpoint.exists():
            arrays, state, clients = _read(self._checkpoint)
            if self._clients not in (None, clients):
                raise RunError(
                    f"clients: {self._checkpoint} was written with other node ids, or in another order, and which client each "
                    "record is must stay the same: leave clients out"
                )
            self._clients = clients
        run.load_state_dict(state, give_up=self._give_up)
        whole = run.rounds if num_rounds is None else num_rounds
        if whole > run.rounds or whole <= run.round:
            raise PlanExceededError(
                f"{whole} rounds in all are asked for, {run.round} are done, and {run.rounds} were certified: a longer training "
                "is another document, with more iterations, and a run of its own, whose guarantee adds to that of this one"
            )
        found: Result = super().start(
            grid,
            arrays,
            whole - run.round,
            timeout,
            train_config,
            evaluate_config,
            evaluate_fn,
        )
        return found

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return a message for each client of this round; there may be none."""
        run = self.run
        clients = self._known(grid)
        self._model = {name: array.numpy() for name, array in arrays.items()}
        # A sampler with replacement may draw a client several times; then its change counts as often.
        self._drawn = Counter(clients[index] for index in run.batch(run.round).indices.tolist())
        config["server-round"] = run.round + 1
        content = RecordDict({ARRAYS: arrays, CONFIG: config})
        return [
            Message(content=content, message_type=MessageType.TRAIN, dst_node_id=client)
            for client in sorted(self._drawn)
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Release the clipped sum of the changes, and return the model with the noisy mean, and ε and δ of the rounds so far."""
        run, model = self.run, self._model
        trained = {name: array for name, array in model.items() if np.issubdtype(array.dtype, np.floating)}
        sums = {name: np.zeros(array.shape) for name, array in trained.items()}
        changes: dict[int, Arrays] = {}
        for reply in replies:
            client = reply.metadata.src_node_id
            # The first answer of a client that was asked is its contribution, and there is no second one.
            if reply.has_error():
                self._why = f"an error, {reply.error.reason}"
            elif client in self._drawn and client not in changes:
                change = self._change(reply.content, trained)
                if change is not None:
                    changes[client] = change
        self._warn(used=bool(changes))
        # Sums are added up in one order, so that repeated rounds have the same bits.
        for client in sorted(changes):
            for name, array in changes[client].items():
                sums[name] += self._drawn[client] * array
        run.trained_with("flwr", "changes of clients")
        with run.step() as step:
            means = step.release(sums)
        assert isinstance(means, dict)
        changed = dict(model)
        for name, array in trained.items():
            changed[name] = (array + self.rate * means[name]).astype(array.dtype)
        arrays = ArrayRecord({name: Array(np.asarray(array)) for name, array in changed.items()})
        if self._checkpoint is not None:
            assert self._clients is not None
            _write(self._checkpoint, changed, run.state_dict(), self._clients)
        return arrays, MetricRecord(dict(self.progress.logged()))

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return no message: what clients measure on their data would have no noise."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return nothing, as no client was asked."""
        return None

    def summary(self) -> None:
        """Log the guarantee."""
        from logging import INFO

        from flwr.common.logger import log

        log(INFO, "\t├──> %s of %s rounds are released", self.run.released, self.run.rounds)
        log(INFO, "\t└──> %s", self.run.guarantee or "the run has no certificate")

    def _change(self, content: RecordDict, trained: Arrays) -> Arrays | None:
        """Return the clipped change of the model by a client; None if its answer is not a model with finite numbers."""
        record = next(iter(content.array_records.values()), None)
        if record is None or set(record) != set(self._model):
            self._why = "an answer without a model of the same names"
            return None
        change: Arrays = {}
        for name, before in trained.items():
            after = record[name].numpy()
            if after.shape != before.shape or not np.issubdtype(after.dtype, np.floating):
                self._why = "a model of other shapes or types"
                return None
            change[name] = after.astype(np.float64) - before.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            norm = float(np.sqrt(sum(float(np.sum(array * array)) for array in change.values())))
        if not np.isfinite(norm):
            self._why = "a model with numbers that are not finite"
            return None
        factor = 1.0 if norm <= self.run.clip_norm else self.run.clip_norm / norm
        return {name: factor * array for name, array in change.items()}

    def _warn(self, *, used: bool) -> None:
        """Warn if no answer was used since the beginning: the model is noise alone. Who was drawn is not logged."""
        from logging import WARNING

        from flwr.common.logger import log

        self._answered = self._answered or used
        if self._drawn and not self._answered:
            log(
                WARNING,
                "No answer of a client was used so far, so the model is noise alone. The last one was: %s",
                self._why,
            )

    def _known(self, grid: Grid) -> list[int]:
        """Return the clients in the order of the run's records."""
        if self._clients is not None:
            if not self._met:
                self._meet(grid, set(self._clients))
            return self._clients
        if self.run.released:
            raise RunError(
                "clients: the run goes on, and which client each of its records is must stay the same: give clients= the node "
                "ids of its beginning, in their order"
            )
        deadline, expected = time.monotonic() + self._patience, self.run.records[0]
        while len(nodes := sorted(grid.get_node_ids())) < expected and time.monotonic() < deadline:
            time.sleep(LOOKING)
        self._clients = self._checked(nodes)
        return self._clients

    def _meet(self, grid: Grid, clients: set[int]) -> None:
        """Wait until one of the clients is connected."""
        deadline = time.monotonic() + self._patience
        while clients.isdisjoint(nodes := list(grid.get_node_ids())):
            if len(nodes) >= len(clients) or time.monotonic() >= deadline:
                raise RunError(
                    f"clients: none of the {len(clients)} is connected ({len(nodes)} others are): clients are Flower's node ids, "
                    "as grid.get_node_ids() returns them, and not numbers of partitions"
                )
            time.sleep(LOOKING)
        self._met = True

    def _checked(self, clients: Sequence[int]) -> list[int]:
        expected, found = self.run.records[0], list(clients)
        if len(found) != expected or len(set(found)) != expected:
            raise RunError(
                f"clients: there are {len(set(found))}, and the run has {expected} records, which are clients: name each client "
                "of the document once, also those that are not connected now"
            )
        return found


def _write(path: Path, arrays: Arrays, state: dict[str, Any], clients: list[int]) -> None:
    stream, saved = io.BytesIO(), dict[str, Any]()
    saved |= {f"model/{name}": array for name, array in arrays.items()}
    saved[STATE], saved[NODES] = np.array(json.dumps(state)), np.array(json.dumps(clients))
    np.savez(stream, **saved)
    write_atomically(path, stream.getvalue())


def _read(path: Path) -> tuple[ArrayRecord, Any, list[int]]:
    try:
        with np.load(path, allow_pickle=False) as saved:
            state, clients = (json.loads(str(saved[name])) for name in (STATE, NODES))
            arrays = {name.removeprefix("model/"): saved[name] for name in saved.files if name not in (STATE, NODES)}
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path}: this is not a checkpoint of PrivateFedAvg: {error}") from error
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()}), state, clients
