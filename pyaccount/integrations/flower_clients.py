"""Flower: a client whose answers come from a certified run of its own, which protects its records from the server too.

    @app.train()
    def fit(message, context):
        with pyaccount.TrainingRun("client.cert.json", folder / "run", records=len(data), clip_norm=1.0) as run:
            return answer(run, message, steps=5, train=local_training, kept=folder / "answers")

All rounds that the client ever trains for the server are rounds of one run. When too few are left, it answers with an error.

**Who is protected.** Let x be a record of client c.

1. *By the client's run, whoever looks and whatever the others do.* The run has T rounds in all. The gradients of a round depend
   on x, on earlier releases of the run, and on the models that the server sent. Those are functions of earlier answers of c and
   of data and randomness that do not depend on x. So the run is the mechanism of its certificate with adaptively chosen
   gradients, and the answers are functions of its releases. Whether c answers depends on the number of rounds that are left,
   which the data do not change. Hence the certificate of c holds for x against the server, other clients, and all that is made
   of their messages.
2. *Not more by the server's draws of clients.* If the server draws c with probability q in each of R rounds, other records of c
   show whether c was drawn, so the amplification of Poisson sampling is false for x (docs/mechanisms.md has a counterexample).
   If the draws do not depend on the data, they have the same law with and without x, and given the draws the answers are the
   composition of as many parts of the run as there were answers. So by joint convexity
   δ(ε) ≤ E[δ_A(ε)], A ~ Binomial(R, q), δ_a the profile of a parts that compose. It is the document with a phase of the sampler
   `{kind: poisson, sampling_probability: q, draws: clients}`, whose pair has the loss of a part with probability q and otherwise
   none, for all R rounds. A client that stops after K answers has min(A, K) parts, and δ_a increases with a, so the bound remains
   true. It needs a server that draws as it says; 1 does not. Parts compose if nothing ties their rounds together: no matrix, and
   a sampler of the client that draws each answer independently of the others, as `poisson`, `fixed-size` and `none` do. A sampler
   with a memory (`b-min-sep`, `cyclic-poisson`, `balls-in-bins`, …) goes on from one answer to the next, so whether a record was
   in one answer is not independent of whether it is in another, and no bound is implemented for it here.
3. *By the server's run, as one of the records of a client.* The certificate of the server is about all the data of c, hence also
   about x, and holds for those who see the models and not the messages. The server's clipping and noise do not ask how c computed
   its change. Nor does it matter that c stops answering after some rounds, if clients are drawn independently in each round:
   given the draws of all other clients and what was released, c is drawn with probability q, whatever it was drawn for before,
   and for each of its pasts its change has at most the clip norm. By joint convexity over its pasts the round has the pair of
   Poisson sampling.

Each statement holds alone, so the smaller ε is true for those to whom both apply. No bound is implemented for 1 and 3 together
that is smaller than both.

This module accounts for nothing itself. It needs flwr.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import RunError, importing
from pyaccount.files import write_atomically
from pyaccount.training import TrainingRun

with importing("flwr", by=__name__):
    from flwr.app import Array, ArrayRecord, Error, Message, MetricRecord, RecordDict

#: The keys of an answer, as Flower's own strategies name them.
ARRAYS, METRICS, WEIGHT = "arrays", "metrics", "num-examples"
#: Flower's code of an error that says nothing else.
UNKNOWN = 0
#: What the server gets in place of an error of the client's training, whose words may be about its data.
FAILED = "the client's training has failed: its own log says why"
#: The file about an answer that was begun, with the state of the run before it.
BEGUN = "begun.json"

ClientArrays = dict[str, NDArray[Any]]

_LOG = logging.getLogger(__name__)


def answer(  # noqa: PLR0913 - the run, the question, and how it is answered
    run: TrainingRun,
    message: Message,
    *,
    steps: int,
    train: Callable[[ClientArrays], Mapping[str, Any]],
    kept: str | os.PathLike[str],
    give_up: bool = False,
) -> Message:
    """Return the answer to a server that asks for a round of training, from the next `steps` rounds of the client's own run.

    * `train(arrays)` gets the server's model as numpy arrays by name, releases `steps` rounds of the run, and returns the model
      that it made of them, with the same names. What it returns may depend on the data only through the releases.
    * `kept` is a folder for answers. If the server asks the same again, with the same model in the same round, as after it went
      back to its checkpoint, it gets the same answer, and nothing is released.
    * If an answer was begun and the process ended, the same question repeats its rounds, which must have the same sums bit for
      bit. `give_up=True` leaves them out; they stay counted.

    If fewer rounds are left than `steps`, the answer is an error that says so, and nothing is released. Every answer has the same
    weight, `num-examples` = 1, since the number of records is not released; it has no other metrics.

    Flower sends the words of an exception to the server, and those of `train` may be about the data. So an error of `train` is
    logged here, with its traceback, and the answer is an error that only says that there was one (`FAILED`). The same if `train`
    releases another number of rounds, or returns arrays of other names or shapes. That a training fails should not depend on the
    data: the server sees it. Its rounds are repeated if the same is asked again.

    Raises `RunError` if `steps` is below 1, or if the state in `kept` cannot be read.
    """
    if steps < 1:
        raise RunError(f"steps = {steps}: an answer needs at least one round of the client's run")
    folder = Path(kept)
    folder.mkdir(parents=True, exist_ok=True)
    record = next(iter(message.content.array_records.values()), None)
    if record is None:
        return _error(message, "the message has no model (an ArrayRecord)")
    given: ClientArrays = {name: array.numpy() for name, array in record.items()}
    digest = _digest(message, given)
    file = folder / f"{digest}.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as saved:
            return _reply(message, {name: saved[key] for key, name in _keys(given)})
    _go_back(run, folder / BEGUN, digest, give_up=give_up)
    left = run.rounds - run.round
    if left < steps:
        return _error(
            message,
            f"the client's certified run has {left} of {run.rounds} rounds left, and an answer needs {steps}: the client stops",
        )
    write_atomically(folder / BEGUN, json.dumps({"question": digest, "state": run.state_dict()}))
    try:
        found = _trained(run, given, steps, train)
    except Exception:
        _LOG.exception("an answer to the server has failed in round %d of the client's run", run.round)
        return _error(message, FAILED)
    stream = io.BytesIO()
    np.savez(stream, **{key: found[name] for key, name in _keys(given)})  # type: ignore[arg-type]
    write_atomically(file, stream.getvalue())
    return _reply(message, {name: found[name] for name in given})


def _keys(given: ClientArrays) -> list[tuple[str, str]]:
    """Return a key for the file of an answer, and the name, of each array. Names would meet those of numpy's own arguments."""
    return [(f"model/{number}", name) for number, name in enumerate(sorted(given))]


def _trained(
    run: TrainingRun, given: ClientArrays, steps: int, train: Callable[[ClientArrays], Mapping[str, Any]]
) -> ClientArrays:
    """Return the model of a training. Raises `RunError` for another number of rounds, or arrays of other names or shapes."""
    before = run.round
    made = train({name: array.copy() for name, array in given.items()})
    found = {name: np.asarray(array) for name, array in made.items()}
    if run.round - before != steps:
        raise RunError(
            f"train released {run.round - before} rounds, and steps = {steps}: an answer has a fixed number of rounds, of which "
            "empty batches are some"
        )
    if {name: array.shape for name, array in found.items()} != {name: array.shape for name, array in given.items()}:
        raise RunError("train returned arrays of other names or shapes than the server's model: return the whole model")
    return found


def _go_back(run: TrainingRun, begun: Path, digest: str, *, give_up: bool) -> None:
    """Go back to the beginning of an answer that was begun and not finished, if the same is asked for again."""
    if not begun.exists():
        return
    try:
        said = json.loads(begun.read_text(encoding="utf-8"))
        question, state = said["question"], said["state"]
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{begun}: this is not the state of an answer: {error}") from error
    if question == digest:
        run.load_state_dict(state, give_up=give_up)


def _digest(message: Message, arrays: ClientArrays) -> str:
    """Return a name for a question: the server's round and its model."""
    config = next(iter(message.content.config_records.values()), None)
    digest = hashlib.sha256(repr(None if config is None else config.get("server-round")).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _reply(message: Message, arrays: ClientArrays) -> Message:
    model = ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})
    return Message(RecordDict({ARRAYS: model, METRICS: MetricRecord({WEIGHT: 1})}), reply_to=message)


def _error(message: Message, reason: str) -> Message:
    return Message(Error(UNKNOWN, reason), reply_to=message)
