"""A replay of a training loop in a forked child: it has a copy of everything, and what it does ends with it.

A run that is opened in a replay has a folder and a key of the replay, and no ledger and no mark. Its batches are drawn from a
key that all replays have. What it releases is the same in all replays, whatever the sums are: fixed numbers of a realistic size,
which are no function of the data. So whatever differs between two replays differs because of the data, beside the release.

The record that is probed is the last one, so that the records before it keep their places in a batch without it. It is exchanged
with another record of a batch such that it takes part in every other round. `CHANGED` says what is done with it.
"""

from __future__ import annotations

import builtins
import hashlib
import io
import logging
import os
import pickle
import random
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from pyaccount.errors import LimitError, RunError
from pyaccount.training.batches.base import Batch
from pyaccount.training.key import KEY_BYTES, RunKey
from pyaccount.training.sums import Array
from pyaccount.training.watching import Seen, Variable, array_of, data_of, here, raised_at, state

#: What replays do with the record; besides, `none` changes nothing, in `removed` it is in no batch, and in `alone` and `nobody`
#: all other records are in no batch, or all records. Data are changed in place, in the child's copy. `shortened` removes it too,
#: and counts one record fewer wherever the user's code asks for the `len` of the data.
CHANGED = ("replaced", "zeroed", "scaled", "reversed")
#: How much a record is scaled; a gradient of a bounded slope is clipped then.
FACTORS = {"zeroed": 0.0, "scaled": 1e3, "reversed": -1e3}
#: Modules with threads that a process needs and a forked one lacks.
THREADED = {"jax", "ray", "grpc"}
#: Seconds between two looks at a child.
LOOKING = 0.02


@dataclass
class ReplayedRound:
    """A release of a replay: its line, how often its batch has the record, and its sums with their clip norms."""

    line: str
    #: None if nobody asked for the batch.
    times: int | None
    sums: list[dict[str, Array]]
    norms: list[float]
    #: A hash of the states of all generators.
    random: str


@dataclass
class Trace:
    """What a replay did."""

    opened: str = ""
    records: Any = None
    normaliser: float | None = None
    #: The number of records of the data; whether it is protected too, as under add-remove; and whether all batches are as large
    #: as a batch can be, so that their size is public.
    size: int = 0
    secret_size: bool = False
    fixed: bool = False
    releases: list[ReplayedRound] = field(default_factory=list)
    #: The variables of the user's code before the first round, and after each one.
    states: list[dict[Variable, Seen]] = field(default_factory=list)
    #: What was printed or logged: the stream, its line, the round, and the text.
    outputs: list[tuple[str, str, int, str]] = field(default_factory=list)
    #: How many arrays with a row for each record were changed.
    changed: int = 0
    end: str = ""
    end_line: str = ""
    end_error: str = ""

    @property
    def removable(self) -> bool:
        """Whether a record can be removed from the batches."""
        return self.secret_size or not self.fixed


class Replay:
    """The child's side: what a run asks while it is replayed."""

    def __init__(self, change: str, rounds: int, folder: Path, base: Trace | None, pipes: tuple[int, int]) -> None:
        """Take what changes, how many rounds, a folder, the first replay if it is over, and pipes from and to the parent."""
        self.change, self.rounds, self._folder, self._base, self._pipes = change, rounds, folder, base, pipes
        self.trace = Trace()
        self._runs = self._seeded = self._most = 0
        self._instead: int | None = None
        self._times: dict[int, int] = {}
        self._data: dict[int, Any] = {}
        self._made: dict[str, str] = {}

    # ---- what a run asks

    def opening(self, records: Any, normaliser: float | None, world: int) -> tuple[str, Any]:
        """Return the folder of a run that is being opened, and the number of its records."""
        if world > 1:
            raise RunError(f"the run has {world} ranks, and a probe has one process: probe it with world=1")
        self._runs += 1
        if self._runs == 1:
            self.trace.opened, self.trace.records, self.trace.normaliser = here(), records, normaliser
            if self.change == "shortened" and self._base is not None:
                records = self._base.records
            else:
                self._fork()
        return str(self._folder / f"run-{os.getpid()}-{self._runs}"), records

    def _fork(self) -> None:
        """Fork for each replay that the parent asks for, and return in the forked process.

        What needs threads that a forked process lacks goes on as it is, and the parent begins another child for the next replay.
        """
        torch: Any = sys.modules.get("torch")
        if THREADED & sys.modules.keys() or (torch is not None and torch.cuda.is_initialized()):
            return
        asked, answer = self._pipes
        while self.change:
            child = os.fork()
            if child == 0:
                return
            os.waitpid(child, 0)
            os.write(answer, b".")
            self.change = os.read(asked, 100).decode().strip()
        os._exit(0)

    def opened(self, size: int, rounds: int, most: int, *, secret_size: bool) -> Replay | None:
        """Return this replay for the run that it probes, which is the first one."""
        if self._runs > 1:
            return None
        self.rounds = min(self.rounds, rounds)
        self.trace.size, self.trace.secret_size, self._most = size, secret_size, most
        self._change_data()
        return self

    @staticmethod
    def root() -> RunKey:
        """Return the key from which the batches of all replays are drawn."""
        return RunKey(bytes(KEY_BYTES))

    def looked(self) -> None:
        """Note the state of the user's variables once before each round; after the last round end the replay."""
        trace = self.trace
        done = len(trace.releases)
        if not trace.states:
            self._change_data()
        if len(trace.states) <= done:
            trace.states.append(state())
        if done >= self.rounds:
            self.end("rounds")
        if self._seeded <= done:
            _seed(done)
            self._seeded = done + 1

    def batch(self, number: int, batch: Batch, draw: Callable[[int], Batch]) -> Batch:
        """Return the batch of a round as this replay has it."""
        self.looked()
        if self._instead is None:
            self._look_ahead(draw)
        indices = self._exchanged(number, batch.indices)
        probed = indices == self.trace.size - 1
        self._times[number] = int(probed.sum())
        if self.change in ("removed", "shortened"):
            indices = indices[~probed]
        elif self.change == "replaced":
            # In the same place, so that the other records of the batch meet the same random numbers.
            indices = np.where(probed, self._instead, indices)
        elif self.change == "alone":
            indices = indices[probed]
        elif self.change == "nobody":
            indices = indices[:0]
        return Batch(indices, batch.padded_to)

    def released(
        self, number: int, releases: Sequence[Mapping[str, Array]], norms: Sequence[float]
    ) -> list[dict[str, Array]]:
        """Note the sums of a round, and return what all replays release: arrays of their shapes, as long as the clip norm."""
        sums = [dict(arrays) for arrays in releases]
        self.trace.releases.append(ReplayedRound(here(), self._times.get(number), sums, list(norms), _random_state()))
        generator = np.random.Generator(np.random.PCG64(number))
        found = []
        for arrays, norm in zip(sums, norms, strict=True):
            scale = norm / sum(array.size for array in arrays.values()) ** 0.5
            found.append(
                {name: (scale * generator.normal(size=one.shape)).astype(one.dtype) for name, one in arrays.items()}
            )
        return found

    def closed(self) -> None:
        """End the replay with its run, unless an error closes it."""
        if sys.exc_info()[1] is None and self.trace.releases:
            self.looked()
            self.end("closed")

    # ---- the child

    def perform(self, body: Callable[[], object]) -> NoReturn:
        """Run the loop, and end this process with it."""
        global _active  # noqa: PLW0603 - runs ask for it
        _active = self
        tempfile.tempdir = str(self._folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        sys.stdout, sys.stderr = _NotedStream("stdout", self), _NotedStream("stderr", self)
        logging.Logger.handle = _noting(self)  # type: ignore[method-assign, assignment]
        warnings.showwarning = lambda *_, **__: None
        sys.dont_write_bytecode = True
        os.environ["OMP_NUM_THREADS"] = "1"
        generator = np.random.default_rng
        np.random.default_rng = lambda seed=None: generator(0 if seed is None else seed)
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            # No thread of the parent is here.
            torch.set_num_threads(1)
        sys.addaudithook(self._guard)
        _seed(0)
        try:
            body()
        except SystemExit as error:
            self.end("exit", raised_at(error.__traceback__), f"exit code {error.code}" if error.code else "")
        except BaseException as error:
            self.end("error", raised_at(error.__traceback__), f"{type(error).__name__}: {error}")
        self.end("returned")

    def end(self, how: str, line: str = "", error: str = "") -> NoReturn:
        """Hand over what this replay saw, and end the process at once: nothing of the script runs any more."""
        self.trace.end, self.trace.end_line, self.trace.end_error = how, line or here(), error
        for path, made in reversed(self._made.items()):
            with suppress(OSError, UnicodeDecodeError):
                if Path(path).is_dir():
                    Path(path).rmdir()
                else:
                    self.note(Path(path).name, Path(path).read_text(encoding="utf-8"), made)
            with suppress(OSError):
                Path(path).unlink()
        place = self._folder / "trace"
        place.with_suffix(".part").write_bytes(pickle.dumps(self.trace))
        place.with_suffix(".part").rename(place)
        os._exit(0)

    def _look_ahead(self, draw: Callable[[int], Batch]) -> None:
        """See whether batches have one public size, and which record can stand in for the one that is probed."""
        batches = [draw(number).indices for number in range(self.rounds)]
        if not any(map(len, batches)):
            raise RunError(f"the batches of the first {self.rounds} rounds are empty: probe more rounds")
        self.trace.fixed = all(len(batch) == self._most for batch in batches)
        drawn = set(np.concatenate(batches).tolist())
        self._instead = next((one for one in range(self.trace.size - 1) if one not in drawn), 0)

    def _exchanged(self, number: int, indices: Any) -> Any:
        """Return a batch in which the probed record is if the round is even, and is not if it is odd, as far as that can be."""
        last = self.trace.size - 1
        if len(indices) == 0 or (last in indices) == (number % 2 == 0):
            return indices
        absent = [one for one in range(min(len(indices) + 1, last)) if one not in indices]
        other = int(indices.max()) if number % 2 == 0 else next(iter(absent), last)
        return np.sort(np.where(indices == other, last, np.where(indices == last, other, indices)))

    def _change_data(self) -> None:
        """Scale the record in all data that are known by now."""
        factor = FACTORS.get(self.change)
        if factor is None:
            return
        rows = list(data_of(self.trace.size, self._data))
        # Several may be views of the same numbers, so all are read before one is written.
        values = [array_of(row) for row in rows]
        for row, value in zip(rows, values, strict=True):
            if value is not None and (factor == 0.0 or value.dtype.kind == "f"):
                with suppress(ValueError, RuntimeError):
                    _write(row, factor * value)
                    self.trace.changed += 1

    def note(self, stream: str, text: str, line: str | None = None) -> None:
        """Note what goes out in this round."""
        self.trace.outputs.append((stream, here() if line is None else line, max(len(self.trace.states) - 1, 0), text))

    def _guard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Let nobody write over what was there before the replay; note what is new, which `end` removes."""
        if event == "open":
            path, _, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        elif event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "sqlite3.connect", "shutil.rmtree"):
            path, writes = arguments[0], True
        else:
            return
        if not writes or not isinstance(path, str | os.PathLike) or path == ":memory:":
            return
        name = os.path.realpath(path)
        if (
            name.startswith(("/dev/", "/proc/", str(self._folder / "run-"), str(self._folder / "trace")))
            or "/." in name
            or name in self._made
        ):
            return
        if os.path.lexists(name) and event != "os.mkdir" and not name.startswith(str(self._folder)):
            raise RunError(
                f"{here() or 'the script'} would change {name}, and a probe changes nothing: let the script write "
                "somewhere else, or run it in a copy of the folder"
            )
        if event in ("open", "os.mkdir") and not os.path.lexists(name):
            self._made[name] = here()


_active: Replay | None = None


def replaying() -> Replay | None:
    """Return the replay of this process, or None, as in all processes but those of a probe."""
    return _active


class Loop:
    """A training loop in a forked child. Where it opens its run, the child forks once more for each replay, if it can."""

    def __init__(self, body: Callable[[str, int], object], rounds: int, until: float) -> None:
        """Take the loop, which gets what changes and the size of the data; and the time at which replays are given up."""
        if not hasattr(os, "fork"):
            raise RunError("a probe replays the loop in forked processes, which this system does not have")
        self._body, self._rounds, self._until = body, rounds, until
        self._temporary = tempfile.TemporaryDirectory(prefix="probe-")
        self._folder = Path(os.path.realpath(self._temporary.name))
        self._child: tuple[int, int, int] | None = None

    def replay(self, change: str, base: Trace | None = None) -> Trace:
        """Return what the loop does with a change, whose data `base` knows.

        Raises `LimitError` at the time limit, and `RunError` if the child was killed.
        """
        if change == "shortened":
            self.end()
        if self._child is None:
            self._begin(change, base)
        else:
            os.write(self._child[1], f"{change}\n".encode())
        assert self._child is not None
        child, _, answers = self._child
        ended = (0, 0)
        while not ended[0] and not select.select([answers], [], [], LOOKING)[0]:
            if time.monotonic() > self._until:
                raise LimitError("the time limit was reached", stage=f"the replay {change!r}")
            ended = os.waitpid(child, os.WNOHANG)
        if ended[0] or not os.read(answers, 1):
            self.end(waited=bool(ended[0]))
        trace = self._folder / "trace"
        if not trace.exists():
            raise RunError(f"the replay {change!r} was killed, or it ended its process by itself")
        found: Trace = pickle.loads(trace.read_bytes())
        trace.unlink()
        return found

    def _begin(self, change: str, base: Trace | None) -> None:
        asked, ask = os.pipe()
        answers, answer = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        child = os.fork()
        if child == 0:
            try:
                os.setpgid(0, 0)
                os.close(ask)
                replay = Replay(change, self._rounds, self._folder, base, (asked, answer))
                replay.perform(lambda: self._body(change, 0 if base is None else base.size))
            finally:
                os._exit(1)
        os.close(asked)
        os.close(answer)
        self._child = child, ask, answers

    def end(self, *, waited: bool = False) -> None:
        """End the child, and what it has started."""
        if self._child is None:
            return
        child, *pipes = self._child
        self._child = None
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        if not waited:
            os.waitpid(child, 0)
        for pipe in pipes:
            os.close(pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._temporary.cleanup()


def shorter(size: int) -> Callable[[Any], int]:
    """Return a `len` for the user's code that counts one record fewer in data of this size."""

    def counted(value: Any) -> int:
        count = builtins.len(value)
        return count - 1 if count == size else count

    return counted


class _NotedStream(io.StringIO):
    """Standard output or error of a replay: notes what the user's code prints, and its line."""

    def __init__(self, name: str, replay: Replay) -> None:
        super().__init__()
        self._name, self._replay, self._rest = name, replay, ""

    def write(self, text: str) -> int:
        """Note each line when it is whole, with the line of code that wrote its end."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            self._replay.note(self._name, line)
        return len(text)


def _noting(replay: Replay) -> Callable[[logging.Logger, logging.LogRecord], None]:
    """Return what loggers do with a record."""
    return lambda _, record: replay.note("log", record.getMessage())


def _seed(round: int) -> None:
    """Seed every generator of a process for a round."""
    random.seed(round)
    np.random.seed(round)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(round)


def _random_state() -> str:
    torch: Any = sys.modules.get("torch")
    drawn = b"" if torch is None else torch.get_rng_state().numpy().tobytes()
    numbers = np.random.get_state(legacy=False)
    return hashlib.sha256(repr((random.getstate(), numbers, drawn)).encode()).hexdigest()


def _write(row: Any, value: Any) -> None:
    if isinstance(row, np.ndarray):
        row[...] = value
        return
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        row.copy_(torch.as_tensor(value))
