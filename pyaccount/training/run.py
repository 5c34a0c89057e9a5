"""`TrainingRun`: exactly the run that a certificate is about."""

from __future__ import annotations

import operator
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pyaccount.accountant import Accountant
from pyaccount.errors import DomainError, RunError, quoted
from pyaccount.plan.common import number as filled
from pyaccount.plan.schedule_values import at_round
from pyaccount.training.batches import Batch, Batches, batches_of
from pyaccount.training.batches.base import Attributed, attributed
from pyaccount.training.certified import BodyRun, RunSource, certified
from pyaccount.training.drawing import FROM_KEY, NoiseSource, Rows, RunNoise, aside, noise_for, norms_of
from pyaccount.training.facts import ALSO, clip_norms_of, facts_of, normaliser_of, root_of, sizes_of
from pyaccount.training.folder import KEY, open_folder
from pyaccount.training.key import KEY_BYTES, RunKey
from pyaccount.training.mark import MarkPlace
from pyaccount.training.noise import Noise
from pyaccount.training.opening import RankState, check_given_up, check_ranks, opened, position_of, run_state
from pyaccount.training.record import RecordedRelease, RecordedTrainer
from pyaccount.training.replay import Replay, replaying
from pyaccount.training.sums import (
    ALONE,
    Array,
    RoundSums,
    also_of,
    another_sum,
    check_layout,
    check_norm,
    layout_of,
    named,
    noisy,
    tag,
)
from pyaccount.training.writing import check_process

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.ledger import Ledger, LedgerEntry
    from pyaccount.training.probing import Probe
    from pyaccount.training.spending import Spending

#: From this number of bytes on, the tag of a round's sums is computed in a thread of its own while the noise is drawn, and the
#: round is recorded in one while the noise is added. For fewer bytes, starting the threads takes longer than it saves.
LARGE = 1 << 20

#: The open runs of this process. A forked child process detaches from all of them (`TrainingRun.forked`).
_OPEN: weakref.WeakSet[TrainingRun] = weakref.WeakSet()


def _forked() -> None:
    for run in list(_OPEN):
        run.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Step:
    """The next round of a run, as a context manager. Only `release` counts the round.

    After an exception before `release`, the run has not moved: this round, with the same batch, is still the next one.
    """

    def __init__(self, run: TrainingRun) -> None:
        self._run = run
        self._open = False
        self._released = False
        #: The number of this round, counted from 0.
        self.round = run.round
        #: The other noisy sums of the batch, by their names in the document; empty before `release`.
        self.also: dict[str, dict[str, Array] | Array] = {}

    @property
    def batch(self) -> Batch:
        """The batch of this round: the records that take part in it."""
        return self._run.batch(self.round)

    def release(self, sums: RoundSums, *, also: Mapping[str, RoundSums] | None = None) -> dict[str, Array] | Array:
        """Return the noisy mean of the round: (sum of the clipped contributions + its row of C⁻¹Z) / the run's normaliser.

        `sums` is the sum of the clipped contributions of this round's batch: one array, or arrays by name. If the batch is empty,
        give zeros; an empty batch is a round like any other. `also` contains the other sums that the document releases from the
        same batch (`noise.also`), by their names there; afterwards `Step.also` contains them with noise, not divided. The round
        is recorded on the disk before this method returns.

        Raises `RunError` if a sum is not finite or differs in shape from those of earlier rounds (then nothing is counted), and
        if the round was released already.
        """
        if not self._open:
            raise RunError(f"round {self.round} is not open: `with run.step() as step:` opens it")
        if self._released:
            raise RunError(f"round {self.round} has released its sum already: each batch is released once")
        means, self.also = self._run._release(self.round, sums, also or {})
        self._released = True
        return means

    def __enter__(self) -> Step:
        self._run._begin(self)
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        self._run._step = None
        if kind is None and not self._released:
            raise RunError(
                f"round {self.round} ended without a release: every batch must be released, even if it is empty or not wanted; "
                "release zeros, which get noise like any other sum. Nothing was counted, and the round is still the next one"
            )


class TrainingRun:
    """The run of a certificate: it draws the batch of each round and the noise of its sum, and records what was released.

    `TrainingRun(certificate, folder, records=len(data))` begins a run, or continues the run in `folder`. The folder contains the
    record and the run's key, unless `key` names another place. Only the owner may read the key file, because anyone who has the
    key can subtract the noise. Each round is counted on the disk before its noisy sum can be used, so after a crash the record
    may count one round too many, but never too few.

    With several ranks, all draw the same global batch; `batch(round).shard(rank, world)` is the part of one rank. All release
    the same sum, which is over all ranks. Rank 0 writes the record, and the other ranks wait for it.

    A forked child process, such as a worker of a data loader, can call `batch`, but it cannot release anything.
    """

    def __init__(  # noqa: PLR0913 - what a run needs in addition to its certificate
        self,
        source: RunSource,
        folder: str | os.PathLike[str],
        *,
        records: int | Sequence[int],
        clip_norm: float = 1.0,
        also_clip_norms: Mapping[str, float] | None = None,
        normaliser: float | None = None,
        key: str | os.PathLike[str] | None = None,
        attribution: Attributed | None = None,
        device_noise: NoiseSource | None = None,
        rank: int = 0,
        world: int = 1,
        moved: bool = False,
        mark: MarkPlace = None,
        uncertified: bool = False,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        data_set: str | None = None,
        blocks: Sequence[str] = (),
        entry: str | None = None,
    ) -> None:
        """Begin a run, or continue the one in `folder`.

        * `records`: the number of records of the data; a list if the phases have data of their own. It must equal
          `dataset_size` of the document, if that is stated.
        * `clip_norm`: the ℓ₂ norm to which each record's contribution to the sum is clipped; `also_clip_norms`: the same for the
          other sums, by name.
        * `normaliser`: the constant by which sums are divided; by default the document's expected batch size.
        * `attribution`: the users of each record, for samplers of users: arrays, or the attribution from `pyaccount.prepare`.
        * `device_noise`: a generator that draws the noise of the sums instead of the run's key, such as `DeviceNoise` of
          `pyaccount.training.device`; the record names it. The noise of other sums (`noise.also`) is still drawn from the key.
        * `moved`: confirms that the folder was moved or restored, and that no other copy of it has continued or will continue.
        * `mark`: where to keep the hash of the record's last line outside of the folder, so that a folder that was put back to
          an earlier state is refused. Either a file, or a callable that stores a text (`mark(text)`) and returns the last one
          (`mark()`; None if there is none). By default a file in the user's state directory.
        * `uncertified`: runs a document without a certificate; the record and every report of it say so. Without it, a document
          that needs no samples is certified now, and one that does is refused.
        * `ledger`: the ledger that keeps the budget of the data, or its place. The run is reserved there now, begins before its
          first release, and is committed with its record when it is closed after its last round, or abandoned. `data_set` and
          `blocks` are as for `Ledger.reserve`; `entry` names a reservation that was made before, in their place.

        Raises `CertificateError` or `DocumentError` if the source cannot be run, `RunError` if the folder, the key or the data
        belong to another run, and `DomainError` if another argument is out of range.
        """
        try:
            rank, world = operator.index(rank), operator.index(world)
        except TypeError:
            raise DomainError(f"rank = {quoted(rank)}, world = {quoted(world)}: whole numbers are expected") from None
        if not 0 <= rank < world:
            raise DomainError(f"rank = {rank} is outside its domain: at least 0 and below world = {world}")
        self.rank, self.world = rank, world
        self._run = certified(source)
        replay = replaying()
        if replay is not None:
            folder, records = replay.opening(records, normaliser, world)
            key, mark, ledger, moved = None, Path(folder) / "mark", None, False
        # An absolute path stays right if the working directory changes.
        place = Path(folder).absolute()
        self._attribution = None if attribution is None else attributed(attribution)
        self._sizes = sizes_of(self._run.document, records)
        self._clip_norms = clip_norms_of(self._run.document, clip_norm, also_clip_norms or {})
        self._normalisers = [normaliser_of(one.case, normaliser) for one in self._run.body_runs]
        #: The largest number of contributions to a batch, by body; this number is public.
        self._most: dict[int, int] = {}
        self._noises = self._check_phases()
        self._run = opened(self._run, place, uncertified=uncertified, rank=rank)
        source_of_noise = FROM_KEY if device_noise is None else device_noise.name
        facts = facts_of(self._run, self._clip_norms, self._normalisers, world, source_of_noise)
        stated = zip(self._run.document.runs(), self._sizes, strict=True)
        unstated = [size for body, size in stated if body.training.dataset_size is None]
        where = None if key is None else Path(key).absolute()
        self._key_file = where or place / KEY
        self._folder = open_folder(
            place,
            where,
            facts,
            rank,
            sizes=unstated,
            moved=moved,
            mark=mark,
            certificate=self._run.certificate,
        )
        self._spending: Spending | None = None
        if ledger is not None and rank == 0:
            from pyaccount.training.spending import spending_of  # few runs have a ledger

            try:
                self._spending = spending_of(
                    ledger, self._run, source, self._folder, data_set=data_set, blocks=blocks, entry=entry
                )
            except BaseException:
                self._folder.close()
                raise
        #: Everything is drawn from this key, which depends on the run's key and on the document: no two documents share draws.
        self._root = root_of(self._folder.key, self._folder.recorded.header) if replay is None else replay.root()
        #: Batches and noise are drawn by stateful objects, which only one thread at a time may use.
        self._lock = threading.RLock()
        self._step: Step | None = None
        self._trainer: RecordedTrainer | None = None
        self._batches: tuple[int, Batches] | None = None
        self._noise = RunNoise(self._run.document, self._clip_norms, self._root, device_noise)
        self._round = len(self._folder.releases)
        self._process = os.getpid()
        _OPEN.add(self)
        #: The replay of a probe that asks about this run, in its process.
        self._replay: Replay | None = None
        if replay is not None:
            rounds, secret = self._run.body_runs[0].rounds, self._run.document.privacy.adjacency == "add-remove"
            self._replay = replay.opened(self._sizes[0], rounds, self._most[0], secret_size=secret)

    @property
    def rounds(self) -> int:
        """The number of rounds of the whole run."""
        return self._run.rounds

    @property
    def rounds_per_epoch(self) -> int:
        """The rounds of an epoch, in which as many records are drawn on average as the data of the first phase have.

        All rounds are one epoch where the document does not determine it, as with a schedule of rates.
        """
        epoch = self._run.body_runs[0].case.node.epoch()
        return self.rounds if epoch is None else min(max(round(epoch), 1), self.rounds)

    @property
    def round(self) -> int:
        """The number of the next round, counted from 0; it equals the number of rounds that are done."""
        return self._round

    @property
    def released(self) -> int:
        """The number of rounds that were released. It is larger than `round` while earlier rounds are repeated."""
        return len(self._folder.releases)

    @property
    def head(self) -> str:
        """The hash of the record's last line. If you keep it elsewhere, you can check whether a record has lost its end."""
        return self._folder.head

    @property
    def entry(self) -> LedgerEntry | None:
        """The entry of the run in the ledger; None without one, and on ranks other than the first."""
        return None if self._spending is None else self._spending.entry

    @property
    def guarantee(self) -> str | None:
        """The certified statement about the whole run, one sentence; None if the run has no certificate."""
        return self._run.statement

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the whole run: the one given, or the one made when the run was opened; None if there is none."""
        return self._run.known

    @property
    def folder(self) -> Path:
        """The folder with the record of the run."""
        return self._folder.path.parent

    @property
    def key_file(self) -> Path:
        """The file with the secret key of the run. Nobody else may get it: with the key the noise can be subtracted."""
        return self._key_file

    @property
    def records(self) -> tuple[int, ...]:
        """The number of records of the data, for each phase of the document. Under add-remove it may itself be protected."""
        return tuple(self._sizes)

    @property
    def clip_norm(self) -> float:
        """The ℓ₂ norm to which each record's contribution to the sum must be clipped."""
        return self._clip_norms[ALONE]

    @property
    def also_clip_norms(self) -> dict[str, float]:
        """The norms to which each record's contributions to the other sums must be clipped, by their names in the document."""
        return {what.removeprefix(ALSO): norm for what, norm in self._clip_norms.items() if what != ALONE}

    def noise_multiplier(self, number: int | None = None) -> float:
        """Return σ of a round, by default of the next one."""
        round = self._round if number is None else number
        part = self._run.body_run(round)
        return filled(at_round(part.case, round - part.start).noise.multiplier)

    def normaliser(self, number: int | None = None) -> float:
        """Return the constant by which the sum of a round is divided, by default of the next round."""
        return self._normalisers[self._run.body_run(self._round if number is None else number).index]

    def rehearse(self) -> Rehearsal:
        """Return a run like this one that tries out a training: `with run.rehearse() as rehearsal: train(rehearsal)`.

        It draws batches in the same way, from a key of its own, and makes the same checks. What it releases is noise alone, so
        the trained model says nothing of the data; this run, its record and its ledger count nothing. Its folder is deleted when
        it is closed. Losses that the training shows have no noise there either.

        Raises `RunError` for a run of several processes.
        """
        return Rehearsal(self)

    def probe(
        self, step: Callable[[Step], object], *, rounds: int = 10, time_limit: float | str | None = None
    ) -> Probe:
        """Replay a round of your own training loop on neighbouring data, and return what depends on the data beside its release.

        `step` does one round: it gets the `Step`, reads its batch and releases its sum. Each replay is a forked process with a
        run of its own: nothing changes this run, its record, its ledger, the model or the data. `time_limit` is for all of them,
        in seconds or as a text such as `10 min`. `pyaccount probe` does the same for a script; docs/training.md says what is
        compared. Raises `RunError` if the rounds cannot be replayed, and `LimitError` at the time limit.
        """
        from pyaccount.training.probing import probed_step  # few runs are probed

        def body() -> None:
            with Rehearsal(self) as run:
                while run.round < run.rounds:
                    with run.step() as opened:
                        step(opened)

        return probed_step(body, step, rounds=rounds, time_limit=time_limit)

    def trained_with(self, name: str, clipping: str) -> None:
        """State how the contributions of the next release were clipped: in the integration of which library. The record has it.

        Raises `RunError` if the rounds before were clipped otherwise, as far as they are of the same phase as the next one.
        """
        trainer = self._trainer
        if trainer is None or (trainer.name, trainer.clipping) != (name, clipping):
            trainer = RecordedTrainer.installed(name, clipping)
        place = self._run.body_run(self._round).place
        known = self._folder.recorded.trainers.get(place)
        if known is not None and place != self._folder.recorded.unused_layout and not known.agrees(trainer):
            raise RunError(
                f"the rounds before were clipped by {known.name} ({known.clipping}), and these would be by {name} ({clipping}): "
                "the record states one way for a phase, so go on as before"
            )
        self._trainer = trainer

    @property
    def recorded_trainer(self) -> RecordedTrainer | None:
        """The integration that clipped the rounds before, as far as they are of the same phase as the next one; None without."""
        if self._round >= self.rounds:
            return None
        place = self._run.body_run(self._round).place
        recorded = self._folder.recorded
        return None if place == recorded.unused_layout else recorded.trainers.get(place)

    def batch(self, number: int) -> Batch:
        """Return the batch of round `number`, counted from 0; it is the same in every call.

        Raises `PlanExceededError` for a round after the last one.
        """
        found = self._batch(number)
        return found if self._replay is None else self._replay.batch(number, found, self._batch)

    def _batch(self, number: int) -> Batch:
        """Draw a batch."""
        part = self._run.body_run(number)
        with self._lock:
            if self._batches is None or self._batches[0] != part.place:
                self._batches = (part.place, self._batches_of(part, self._root.derive("batches", part.place)))
            return self._batches[1].batch(number - part.first)

    def step(self) -> Step:
        """Return the next round, to be used as `with run.step() as step:`. Raises `PlanExceededError` after the last one."""
        self._run.body_run(self._round)
        if self._replay is not None:
            self._replay.looked()
        return Step(self)

    def accountant(self) -> Accountant:
        """Return an accountant of the planned run that has counted all released rounds, including those given up."""
        accountant = Accountant(self._run.document)
        if self.released:
            accountant.step(self.released)
        return accountant

    @property
    def rank_state(self) -> RankState:
        """The numbers that `check_ranks` compares: the rank, the next round, the number of released rounds, and the first 56 bits
        of the seed of the last released round.
        """
        releases = self._folder.releases
        # 56 bits distinguish two branches of a run, and fit into the integers of every framework that gathers them.
        branch = int.from_bytes(releases[-1].seed[:7], "little") if releases else 0
        return self.rank, self._round, self.released, branch

    def check_ranks(self, gathered: Iterable[Sequence[int]]) -> None:
        """Compare the `rank_state` of all processes, which your own training loop gathers before it adds up sums.

        Raises `RunError` unless every rank occurs exactly once and all are at the same round.
        """
        check_ranks(gathered, self.world)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint of the model must contain, as plain data: which run, and how many rounds the model has seen.

        It contains no secret.
        """
        return run_state(self._folder.recorded.header, self._round, self.head)

    def load_state_dict(self, state: Mapping[str, Any], *, give_up: bool = False) -> None:
        """Continue from a checkpoint, given its `state_dict`.

        Rounds that were released after the checkpoint was written must be repeated. `release` then accepts only the same sums,
        bit for bit, and returns the same result, which reveals nothing new; other sums with the same noise would reveal their
        difference, and are refused. If the sums cannot be repeated exactly, `give_up=True` skips these rounds: they stay
        counted, and the run continues with the rounds after them, which have noise of their own. That is refused if a matrix
        correlates the noise of the rounds.

        Raises `RunError` if the state belongs to another run, or has more rounds than the record.
        """
        if self._replay is not None:
            # A replay begins with the first round, whatever was trained before.
            return
        with self._lock:
            if self._step is not None:
                raise RunError("a state cannot be loaded in the middle of a round: end the round first")
            target = position_of(state, self._folder.recorded.header, self.released, self._folder.path)
            if target < self.released and give_up:
                check_given_up(self._run, target, self.released)
                self._folder.rewind(target)
                target = self.released
            self._round = target
            self._noise.forget()

    def abandon(self) -> None:
        """End the run for good. The record says so, and the run cannot be opened again. Its rounds stay counted."""
        with self._lock:
            self._folder.abandon()
            try:
                self._folder.keep_mark()
            finally:
                self._folder.close()
            if self._spending is not None:
                self._spending.end()

    def close(self) -> None:
        """Close the run, so that another process can continue it. The record says that it was closed.

        If it has released its last round, its entry in a ledger is committed.
        """
        if self._replay is not None:
            self._replay.closed()
        with self._lock:
            self._folder.close()
            if self._spending is not None:
                self._spending.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TrainingRun {self._run.document.name!r}: round {self._round} of {self.rounds}, head {self.head}>"

    def forked(self) -> None:
        """Detach a forked child process: close its copy of the record, and do not wait for the parent's threads."""
        # An open copy would keep the record locked for as long as this process lives, even after the parent has closed the run.
        self._folder.close()
        if not self._lock.acquire(blocking=False):
            # A thread of the parent was drawing a batch during the fork, and the object that it used stays locked here.
            self._batches = None
        self._lock = threading.RLock()

    def _begin(self, step: Step) -> None:
        check_process(self._process)
        with self._lock:
            if self._step is not None:
                raise RunError(f"round {self._step.round} is still open: end it before you begin the next round")
            if step.round != self._round:
                raise RunError(
                    f"round {step.round} is not the next one, which is round {self._round}: call run.step() anew"
                )
            self._step = step

    def _release(
        self, number: int, sums: RoundSums, also: Mapping[str, RoundSums]
    ) -> tuple[dict[str, Array] | Array, dict[str, dict[str, Array] | Array]]:
        """Return the noisy mean of a round and its other noisy sums, after the round was recorded."""
        check_process(self._process)
        part = self._run.body_run(number)
        releases = (named(sums), *also_of(part.body, also))
        norms = norms_of(part, self._clip_norms)
        # Only the main sum is divided.
        divisors = [self._normalisers[part.index], *(1.0 for _ in releases[1:])]
        found: list[dict[str, Array]]
        if self._replay is not None:
            replayed = zip(self._replay.released(number, releases, norms), divisors, strict=True)
            found = [{name: array / array.dtype.type(by) for name, array in arrays.items()} for arrays, by in replayed]
        else:
            found = self._noised(part, number, releases, norms, divisors)
        means, noised = found[0], found[1:]
        names = [release.what for release in part.body.noise.also]
        more = {
            what: arrays if isinstance(also[what], Mapping) else arrays[what]
            for what, arrays in zip(names, noised, strict=True)
        }
        # Only now, so that after an error above the round is still the next one, and takes the same sum again.
        self._round, self._trainer = number + 1, None
        return means if isinstance(sums, Mapping) else means[ALONE], more

    def _noised(
        self,
        part: BodyRun,
        number: int,
        releases: tuple[dict[str, Array], ...],
        norms: Sequence[float],
        divisors: Sequence[float],
    ) -> list[dict[str, Array]]:
        """Record a round, and return its noisy sums, divided."""
        for arrays, norm in zip(releases, norms, strict=True):
            check_norm(arrays, norm, self._most[part.place])
        releases = tuple(map(self._summed, releases))
        deviations = self._deviations(part, number)
        with self._lock:
            if self._spending is not None:
                self._spending.begin()
            noise, recorded = self._drawn(part, number, releases)
        noised = [
            {name: noisy(array, noise[index, name], deviations[index], divisor) for name, array in arrays.items()}
            for index, (arrays, divisor) in enumerate(zip(releases, divisors, strict=True))
        ]
        # Nothing is given out before it is recorded.
        with self._lock:
            recorded()
        return noised

    def _summed(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return the sums to which noise is added: those that were given. A rehearsal replaces them."""
        return arrays

    def _drawn(
        self, part: BodyRun, number: int, releases: Sequence[Mapping[str, Array]]
    ) -> tuple[Rows, Callable[[], None]]:
        """Begin to record a round with these sums, or check that it was recorded with exactly these, and return its noise.

        Nothing may be given out before the function that is returned beside it has returned: it waits until the round is recorded
        and marked, and raises what has failed there.
        """
        folder, repeated = self._folder, number < self.released
        layout = layout_of(releases)
        known = folder.known(number)
        before, trainer = folder.recorded.layouts.get(part.place), folder.recorded.trainers.get(part.place)
        if trainer is not None and self._trainer is None and folder.recorded.unused_layout != part.place:
            raise RunError(
                f"the rounds before were clipped in the integration of {trainer.name}, and round {number} is released without "
                "it: the record states one way for a phase, so go on as before"
            )
        if before is not None and folder.recorded.unused_layout != part.place:
            check_layout(layout, before)
        elif known is None and layout != before:
            folder.begin(part.place, layout, self.normaliser(number), self._trainer)
        nonce, seed = folder.drawn_by() if known is None else (known.nonce, known.seed)
        key = self._root.derive("sums", number, seed.hex())
        # The other ranks wait for the nonce in the record, and then draw at the same time as this one. A single process draws
        # before it records, so that an interruption while drawing counts nothing. A round that was recorded is drawn only for
        # its own sum.
        draws_first = known is None and (self.world == 1 or not self._noise.from_key)
        noise: Rows | None = None
        large = sum(array.nbytes for arrays in releases for array in arrays.values()) >= LARGE
        if draws_first and large:
            tagged = aside(tag, releases, key)
            noise = self._noise.rows(part, number - part.start, releases, seed, folder.releases)
            sum_tag = tagged()
        else:
            sum_tag = tag(releases, key)
        release = RecordedRelease(
            number, folder.recorded.rewinds, self._deviations(part, number), sum_tag, nonce=nonce, seed=seed
        )
        if known is not None and not release.same_sum(known):
            raise another_sum(number, repeated=repeated)
        if known is None and not draws_first:
            folder.release(release)
            known = release
        if noise is None:
            noise = self._noise.rows(part, number - part.start, releases, seed, folder.releases)
        release = replace(release, noise=self._noise.tag(number, seed, noise))
        if known is not None:
            if release.noise != known.noise:
                raise another_sum(number, repeated=repeated)
        elif large:
            return noise, folder.release_aside(release)
        else:
            folder.release(release)
        return noise, folder.keep_mark

    def _batches_of(self, part: BodyRun, key: RunKey) -> Batches:
        size = self._sizes[part.place]
        return batches_of(part.case, key, records=size, attribution=self._attribution)

    def _deviations(self, part: BodyRun, number: int) -> tuple[float, ...]:
        """Return the standard deviations of the noise of a round, one for each sum that is released of its batch."""
        return tuple(noise.deviation(number - part.start) for noise in self._noises[part.index])

    def _check_phases(self) -> list[tuple[Noise, ...]]:
        """Return the noise of each part, for each release of a batch; only its standard deviations are used.

        This also makes the batches and the noise of every phase once, with a key that is used for nothing else, so that errors of
        a later phase are raised now, before anything is counted.
        """
        kept, key = list[tuple[Noise, ...]](), RunKey(bytes(KEY_BYTES))
        for part in self._run.body_runs:
            if part.start == part.first:
                self._most[part.place] = self._batches_of(part, key).most
            noises = tuple(
                noise_for(part, self._clip_norms, release, key) for release in range(1 + len(part.body.noise.also))
            )
            for noise in noises:
                noise.stream({ALONE: (1,)}, dtype="float64")
            kept.append(noises)
        return kept


class Rehearsal(TrainingRun):
    """A run like another one, with a key of its own in a folder that is deleted when it is closed.

    Sums are checked as in the run, and then zeros take their place. So nothing of the data gets out, whatever data it is given.
    """

    def __init__(self, run: TrainingRun) -> None:
        """Begin a rehearsal of a run. Raises `RunError` for one of several processes: rehearse with one."""
        if run.world > 1:
            raise RunError(
                f"the run has {run.world} ranks, and a rehearsal has one: open the run with world=1 to rehearse it"
            )
        self._temporary = tempfile.TemporaryDirectory(prefix="rehearsal-")
        folder = Path(self._temporary.name)
        (normaliser, *more) = {*run._normalisers}
        super().__init__(
            run._run.document if run.certificate is None else run.certificate,
            folder,
            records=run.records,
            clip_norm=run.clip_norm,
            also_clip_norms=run.also_clip_norms,
            normaliser=None if more else normaliser,
            attribution=run._attribution,
            mark=folder / "mark",
            uncertified=run.certificate is None,
        )

    def close(self) -> None:
        """Close the rehearsal, and delete its folder."""
        super().close()
        self._temporary.cleanup()

    def _summed(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return zeros of the same shapes and types."""
        return {name: np.zeros_like(array) for name, array in arrays.items()}
