"""`TrainingRun`: the very run that a certificate is about."""

from __future__ import annotations

import operator
import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pyaccount.accountant import Accountant
from pyaccount.errors import DomainError, RunError, shown
from pyaccount.plan.common import number as filled
from pyaccount.training.batches import Batch, Batches, batches_of
from pyaccount.training.batches.attribution import attributed
from pyaccount.training.certified import BodyRun, RunSource, certified
from pyaccount.training.drawing import Rows, RunNoise, noise_for, norms_of
from pyaccount.training.facts import ALSO, clip_norms_of, facts_of, normaliser_of, root_of, sizes_of
from pyaccount.training.folder import open_folder
from pyaccount.training.key import KEY_BYTES, RunKey
from pyaccount.training.mark import MarkPlace
from pyaccount.training.noise.nonces import coordinates_of
from pyaccount.training.opening import opened
from pyaccount.training.record import RecordedRelease
from pyaccount.training.resuming import RankState, check_ranks, position_of, state_of
from pyaccount.training.source import FROM_KEY
from pyaccount.training.sums import (
    ALONE,
    Array,
    RoundSums,
    also_of,
    as_recorded,
    check_layout,
    check_norm,
    layout_of,
    named,
    noisy,
    tag,
)
from pyaccount.training.writing import check_process

if TYPE_CHECKING:
    from pyaccount.training.batches.attribution import Attributed
    from pyaccount.training.source import NoiseSource

#: The runs of this process, and what becomes of them in one that is forked off.
_OPEN: weakref.WeakSet[TrainingRun] = weakref.WeakSet()


def _forked() -> None:
    for run in list(_OPEN):
        run.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Step:
    """The round that is next. It is counted by `release`, and by nothing else.

    An exception before that leaves the run where it was: the round, with the same batch, is still the next one.
    """

    def __init__(self, run: TrainingRun) -> None:
        self._run = run
        self._open = False
        self._released = False
        #: Which round this is, from 0.
        self.round = run.round
        #: The other noisy sums, once they are released.
        self.also: dict[str, dict[str, Array] | Array] = {}

    @property
    def batch(self) -> Batch:
        """Who takes part."""
        return self._run.batch(self.round)

    def release(self, sums: RoundSums, *, also: Mapping[str, RoundSums] | None = None) -> dict[str, Array] | Array:
        """The noisy mean of the round: (the sum of the clipped contributions + its row of C⁻¹Z) / the run's normaliser.

        `sums` is one array, or arrays by name, of the clipped contributions of this round's batch, zeros where that is empty: an
        empty batch is a round like any other. `also` has, by their names in the document, the other sums that are released of the
        batch (`noise.also`); `Step.also` then has them with their noise, not divided. The round is recorded, on the disk, before
        this returns. Raises `RunError` for a sum that is not finite or not of the shape of those before, and then nothing is
        counted; and for a second release.
        """
        if not self._open:
            raise RunError(f"round {self.round} is not open: `with run.step() as step:` opens it")
        if self._released:
            raise RunError(f"round {self.round} has released its sum: one batch has one release")
        found, self.also = self._run._release(self.round, sums, also or {})
        self._released = True
        return found

    def __enter__(self) -> Step:
        self._run._begin(self)
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        self._run._end()
        if kind is None and not self._released:
            raise RunError(
                f"round {self.round} ended without a release: an empty batch, or one that is not wanted, is a round like any "
                "other, and its sum, if of zeros, gets its noise; nothing was counted, and the round is still the next"
            )


class TrainingRun:
    """The run of a certificate: who takes part in each round, the noise of its sum, and the record of what was released.

    `TrainingRun(certificate, folder, records=len(data))` begins the run or takes it up. The folder has the record and, unless
    `key` says where else, the run's key, which only its owner may read: whoever has it can subtract the noise. A round is counted
    on the disk before its noisy sum can be used, so that a crash leaves the record too high and never too low.

    With several ranks each has the same global batch, of which `batch(round).shard(rank, world)` is its part, and each releases
    the same sum, that of all ranks; the first rank writes the record, and the others wait for it.

    A process that is forked off can ask whose turn it is (`batch`), as the workers of data loaders do, and releases nothing.
    """

    def __init__(  # noqa: PLR0913 - what a run is given beside its certificate
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
    ) -> None:
        """Begin a run, or take up the one in `folder`.

        * `records`: how many the data has, which must be what the document says, where it says it; for phases with data of their
          own a list.
        * `clip_norm`: what a record's contribution to the sum is clipped to; `also_clip_norms`: to the other sums, by name.
        * `normaliser`: what sums are divided by, a constant; the document's expected batch size, if it has one.
        * `attribution`: whose the records are, where users are sampled: arrays, or that of what `pyaccount.prepare` kept.
        * `device_noise`: what draws the noise of the sums instead of the run's key, such as `DeviceNoise` of
          `pyaccount.training.device`. The record says so. Other sums (`noise.also`) keep the key's noise.
        * `moved`: that the folder was moved or restored, and no other copy of it has gone on or will.
        * `mark`: where the hash of the record's last line is kept outside of the folder, so that a folder that was put back to an
          earlier state is refused: a file, or a callable that keeps a text (`mark(text)`) and returns the last one (`mark()`,
          None if there is none). The user's state directory if omitted.
        * `uncertified`: that a document is run without a certificate. The record says so, and so does every report of it.
          Otherwise a document that takes no samples is certified now, and one that does is refused.

        Raises `CertificateError` and `DocumentError` for what cannot be run, `RunError` if the folder, the key or the data are
        another run's, `DomainError`.
        """
        try:
            rank, world = operator.index(rank), operator.index(world)
        except TypeError:
            raise DomainError(f"rank = {shown(rank)}, world = {shown(world)}: whole numbers are expected") from None
        if not 0 <= rank < world:
            raise DomainError(f"rank = {rank} is outside its domain: at least 0 and below world = {world}")
        self.rank, self.world = rank, world
        # Whatever becomes of the working directory.
        place = Path(folder).absolute()
        self._run = certified(source)
        self._attribution = None if attribution is None else attributed(attribution)
        self._sizes = sizes_of(self._run.document, records)
        self._clip_norms = clip_norms_of(self._run.document, clip_norm, also_clip_norms or {})
        self._normalisers = [normaliser_of(self._run.document, one.body, normaliser) for one in self._run.body_runs]
        #: The most contributions to a batch of each body, a public number.
        self._most: dict[int, int] = {}
        self._deviations = self._check_phases()
        self._run = opened(self._run, place, uncertified=uncertified, rank=rank)
        source_of_noise = FROM_KEY if device_noise is None else device_noise.name
        facts = facts_of(self._run, self._clip_norms, self._normalisers, world, source_of_noise)
        stated = zip(self._run.document.bodies, self._sizes, strict=True)
        unstated = [size for body, size in stated if body.training.dataset_size is None]
        where = None if key is None else Path(key).absolute()
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
        #: Everything is drawn from the run's key and its document: one key never serves two.
        self._root = root_of(self._folder.key, self._folder.recorded.header)
        #: Batches and noise go forward by state, one caller after the other.
        self._lock = threading.RLock()
        self._step: Step | None = None
        self._batches: tuple[int, Batches] | None = None
        self._noise = RunNoise(self._run.document, self._clip_norms, self._root, device_noise)
        self._round = len(self._folder.releases)
        self._process = os.getpid()
        _OPEN.add(self)

    @property
    def rounds(self) -> int:
        """The rounds of the whole run."""
        return self._run.rounds

    @property
    def round(self) -> int:
        """The next round, counted from 0: so many are done."""
        return self._round

    @property
    def released(self) -> int:
        """How many rounds were released; more than `round` while earlier ones are repeated."""
        return len(self._folder.releases)

    @property
    def head(self) -> str:
        """The hash of the record's last line. Whoever keeps it elsewhere can tell whether a record has lost its end."""
        return self._folder.head

    @property
    def guarantee(self) -> str | None:
        """What is certified of the whole run, in a sentence; None of a run that a document alone describes."""
        return self._run.statement

    @property
    def clip_norm(self) -> float:
        """What each record's contribution to the sum must be clipped to."""
        return self._clip_norms[ALONE]

    @property
    def also_clip_norms(self) -> dict[str, float]:
        """What each record's contribution to the other sums must be clipped to, by their names in the document."""
        return {what.removeprefix(ALSO): norm for what, norm in self._clip_norms.items() if what != ALONE}

    def noise_multiplier(self, number: int | None = None) -> float:
        """σ of a round, the next one if omitted."""
        body = self._run.body_run(self._round if number is None else number).body
        return filled(body.noise.multiplier)

    def normaliser(self, number: int | None = None) -> float:
        """What the sum of a round is divided by, the next one if omitted."""
        return self._normalisers[self._run.body_run(self._round if number is None else number).index]

    def batch(self, number: int) -> Batch:
        """Who takes part in a round, counted from 0. The same whenever it is asked. Raises `PlanExceededError` beyond the end."""
        part = self._run.body_run(number)
        with self._lock:
            if self._batches is None or self._batches[0] != part.place:
                self._batches = (part.place, self._batches_of(part, self._root.derive("batches", part.place)))
            return self._batches[1].batch(number - part.first)

    def step(self) -> Step:
        """The next round: `with run.step() as step:`. Raises `PlanExceededError` after the last one."""
        self._run.body_run(self._round)
        return Step(self)

    def accountant(self) -> Accountant:
        """An accountant of the planned run with the rounds that were released, those given up included."""
        accountant = Accountant(self._run.document)
        if self.released:
            accountant.step(self.released)
        return accountant

    @property
    def rank_state(self) -> RankState:
        """What `check_ranks` compares: this rank's number, the next round, how many rounds were released, and a part of the last
        one's seed.
        """
        releases = self._folder.releases
        # 56 bits: two branches differ in them, and they fit into the integers of any framework that gathers them.
        branch = int.from_bytes(releases[-1].seed[:7], "little") if releases else 0
        return self.rank, self._round, self.released, branch

    def check_ranks(self, gathered: Iterable[Sequence[int]]) -> None:
        """Hold the `rank_state` of every process, as a loop of your own gathers them before it adds up sums, against one another.

        Raises `RunError` unless every rank is there once, and all are at the same round.
        """
        check_ranks(gathered, self.world)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint of the model needs, as plain data: which run, and how many of its rounds are in the model.

        There is no secret in it.
        """
        return state_of(self._folder.recorded.header, self._round, self.head)

    def load_state_dict(self, state: Mapping[str, Any], *, give_up: bool = False) -> None:
        """Go on from a checkpoint.

        If rounds were released after it was written they are to be repeated: `release` then takes the very sums of then, bit for
        bit, and gives what it gave, which reveals nothing more; other sums with the same noise would reveal their difference, and
        are refused. Where sums are not the same, `give_up=True` leaves these rounds behind: they stay counted, and the run goes
        on with the next ones and noise of their own. That is refused where a matrix correlates the noise of the rounds.

        Raises `RunError` for the state of another run, or of one that got further than the record.
        """
        with self._lock:
            if self._step is not None:
                raise RunError("a state cannot be taken up in the middle of a round")
            target = position_of(state, self._folder.recorded.header, self.released, self._folder.path)
            if target < self.released and give_up:
                self._refuse_correlated(target)
                self._folder.rewind(target)
                target = self.released
            self._round = target
            self._noise.forget()

    def abandon(self) -> None:
        """Give the run up for good: the record says so, and the run is refused from then on. Its rounds stay counted."""
        with self._lock:
            self._folder.abandon()
            try:
                self._folder.keep_mark()
            finally:
                self._folder.close()

    def close(self) -> None:
        """Let another process go on with the run. The record says that it was closed."""
        with self._lock:
            self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<TrainingRun {self._run.document.name!r}: round {self._round} of {self.rounds}, head {self.head}>"

    def forked(self) -> None:
        """In a process that was forked off: leave the record to the one that opened the run, and wait for none of its threads."""
        # Or nobody could take the run up once the opener has closed it, for as long as this process lives.
        self._folder.close()
        if not self._lock.acquire(blocking=False):
            # A thread that is not here was drawing a batch, and has what it drew from locked.
            self._batches = None
        self._lock = threading.RLock()

    def _begin(self, step: Step) -> None:
        check_process(self._process)
        with self._lock:
            if self._step is not None:
                raise RunError(f"round {self._step.round} is open: one round ends before the next begins")
            if step.round != self._round:
                raise RunError(f"round {step.round} is not the next one: that is round {self._round}")
            self._step = step

    def _end(self) -> None:
        self._step = None

    def _release(
        self, number: int, sums: RoundSums, also: Mapping[str, RoundSums]
    ) -> tuple[dict[str, Array] | Array, dict[str, dict[str, Array] | Array]]:
        """The noisy mean of a round, and its other noisy sums; recorded before they are given."""
        check_process(self._process)
        part = self._run.body_run(number)
        releases = (named(sums), *also_of(part.body, also))
        for arrays, norm in zip(releases, norms_of(part, self._clip_norms), strict=True):
            check_norm(arrays, norm, self._most[part.place])
        deviations = self._deviations[part.index]
        with self._lock:
            noise = self._drawn(part, number, releases)
            self._round = number + 1
        noised = [
            {name: noisy(array, noise[place, name], deviations[place]) for name, array in arrays.items()}
            for place, arrays in enumerate(releases)
        ]
        normaliser = self._normalisers[part.index]
        means: dict[str, Array] = {name: array / array.dtype.type(normaliser) for name, array in noised[0].items()}
        names = [release.what for release in part.body.noise.also]
        more = {
            what: arrays if isinstance(also[what], Mapping) else arrays[what]
            for what, arrays in zip(names, noised[1:], strict=True)
        }
        return means if isinstance(sums, Mapping) else means[ALONE], more

    def _drawn(self, part: BodyRun, number: int, releases: Sequence[Mapping[str, Array]]) -> Rows:
        """Record a round with these sums, or check that it was recorded with the very same ones, and return its noise."""
        folder, repeated = self._folder, number < self.released
        recorded = as_recorded(releases, [one.what for one in part.body.noise.also], folder.version)
        layout = layout_of(recorded)
        known = folder.known(number)
        before = folder.recorded.layouts.get(part.place)
        if before is not None and folder.recorded.unused_layout != part.place:
            check_layout(layout, before)
        elif known is None and layout != before:
            folder.begin(part.place, layout, self.normaliser(number))
        nonce, seed = folder.drawn_by() if known is None else (known.nonce, known.seed)
        sum_tag = tag(recorded, self._root.derive("sums", number, *coordinates_of(seed)))
        release = RecordedRelease(
            number, folder.recorded.rewinds, self._deviations[part.index], sum_tag, nonce=nonce, seed=seed
        )
        if known is not None and not release.same_sum(known):
            raise self._another_sum(number, repeated=repeated)
        if known is None and self.world > 1 and self._noise.from_key:
            # The other ranks wait for the nonce in the record, and then draw at the same time as this one. A process that is
            # alone draws first: interrupted, it has counted nothing.
            folder.release(release)
            known = release
        noise = self._noise.rows(part, number - part.start, releases, seed, folder.releases)
        release = replace(release, noise=self._noise.tag(number, seed, noise))
        if known is None:
            folder.release(release)
        elif release.noise != known.noise:
            raise self._another_sum(number, repeated=repeated)
        folder.keep_mark()
        return noise

    def _another_sum(self, number: int, *, repeated: bool) -> RunError:
        """Return the error for a round whose sum or noise is not the recorded one."""
        if repeated:
            return RunError(
                f"round {number} was released with another sum or noise: with the same noise, the two would reveal their "
                "difference. Sums are repeated bit for bit, or load_state_dict(…, give_up=True) leaves these rounds behind"
            )
        return RunError(
            f"round {number}: the first rank released another sum or noise: add up the sums of all ranks before"
        )

    def _batches_of(self, part: BodyRun, key: RunKey) -> Batches:
        size = self._sizes[part.place]
        return batches_of(self._run.document, part.body, key, records=size, attribution=self._attribution)

    def _check_phases(self) -> list[tuple[float, ...]]:
        """The standard deviations of each part's noise.

        What a later phase would refuse is found out now, before anything is counted: with a key that nothing else is drawn from.
        """
        found, key = [], RunKey(bytes(KEY_BYTES))
        for part in self._run.body_runs:
            if part.start == part.first:
                self._most[part.place] = self._batches_of(part, key).most
            noises = [
                noise_for(self._run.document, part, self._clip_norms, release, key)
                for release in range(1 + len(part.body.noise.also))
            ]
            for noise in noises:
                noise.stream({ALONE: (1,)}, dtype="float64")
            found.append(tuple(noise.standard_deviation for noise in noises))
        return found

    def _refuse_correlated(self, target: int) -> None:
        """Raise `RunError` if a matrix ties the rounds that are to be given up to later ones."""
        for number in range(target, self.released):
            part = self._run.body_run(number)
            if part.body.matrix.kind != "identity":
                raise RunError(
                    f"rounds {target} to {self.released - 1} cannot be given up: the noise of later rounds cancels theirs, so "
                    "that they are part of the run. Repeat them with the very same sums, take up the checkpoint of round "
                    f"{self.released}, or begin another run, whose guarantee adds to that of this one"
                )
