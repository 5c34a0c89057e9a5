"""`Accountant` answers the questions of a training loop by certificates of documents."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from pyaccount.accountant import state
from pyaccount.accountant import state as saved
from pyaccount.accountant.horizon import Horizon, Horizons
from pyaccount.accountant.ledger import ADAPTIVE, MANY, MOST, PREMISE, OpenLedger, head_of
from pyaccount.accountant.planned import Planned, planned, seeded
from pyaccount.arguments import threads_of
from pyaccount.document.document import Document
from pyaccount.document.loading import load, placed
from pyaccount.document.ranges import DELTA, DELTA_OR_ZERO, EPSILON
from pyaccount.errors import DocumentError, DomainError, PlanExceededError, StateError
from pyaccount.plan.common import number

if TYPE_CHECKING:
    from pyaccount.accountant.adaptive import Filtered
    from pyaccount.certificate import Certificate

    Source = str | os.PathLike[str] | Mapping[str, Any] | Document
    from pyaccount.reading.numerals import Range


class Accountant:
    """Count the rounds of a training run and return, from certificates, their privacy cost.

    `Accountant(document)` is for a run whose length and noise are planned. It takes a mechanism document whose only
    blank may be ε. The `privacy` section of the document is the budget. `Accountant.from_certificate` takes a document
    that was solved. `Accountant(adjacency=…, delta=…, epsilon=…)` is an open ledger: every `step` states what was
    released.

    A *step* is one release of a noisy sum: an optimizer step. With gradient accumulation, several micro-batches make
    one step, and the sampled batch is all of them together. Count a step, and save the state, before its release is
    used: then a crash can only make the record too pessimistic.

    Every ε returned here is an upper bound, from a certificate of a document that `document()` returns. It is the
    guarantee of a run whose length and parameters were fixed beforehand. If a run stops early because somebody looked
    at its releases, it has the guarantee of the whole planned run (stopping is post-processing), not that of the rounds
    done so far. Parameters that are chosen by looking at the releases need a privacy filter: the next paragraph.

    `Accountant(adaptive=True, adjacency=…, epsilon=…, delta=…)` is for rounds whose parameters, and whose number, may
    depend on what was released. ε and δ are the budget, fixed when the accountant is made. The first round fixes a filter
    for it, and `step` counts a round only if the filter admits it. Everything that is ever released within the filter is
    (ε, δ)-DP, also if it ends early; `certificate()` certifies that, the filter's whole budget. `epsilon_spent` is the ε of
    an odometer, which holds at whatever time the releases end. See `docs/composing.md`.
    """

    def __init__(  # noqa: PLR0913 - the four arguments of a budget, and those that every accountant takes
        self,
        document: Source | None = None,
        *,
        adjacency: str | None = None,
        delta: float | str | None = None,
        epsilon: float | str | None = None,
        group_size: int = 1,
        name: str = "training",
        adaptive: bool = False,
        threads: int = 0,
    ) -> None:
        """Raises `DocumentError` for a document or a budget that is wrong, and for mechanisms without a bound."""
        self._threads = threads_of(threads)
        self._plan: Planned | None = None
        self._ledger: OpenLedger | None = None
        self._filtered: Filtered | None = None
        if document is not None:
            if (adjacency, delta, epsilon, group_size, name, adaptive) != (None, None, None, 1, "training", False):
                raise TypeError("a document says everything: no other argument than threads can stand beside it")
            self._plan = planned(load(document))
            privacy = self._plan.document.privacy
        else:
            if adjacency is None or delta is None:
                raise TypeError("give the document of a planned run, or adjacency and delta (and epsilon, the budget)")
            if adaptive and (epsilon is None or group_size != 1):
                raise TypeError(
                    "an adaptive accountant has a budget for single records: give epsilon and delta, and no group_size"
                )
            target = "solve" if epsilon is None else epsilon
            stated = {"adjacency": adjacency, "epsilon": target, "delta": delta}
            premise = ADAPTIVE if adaptive else PREMISE
            grouped = stated if group_size == 1 else {**stated, "group_size": group_size}
            self._ledger = OpenLedger(head_of(name, grouped, premise))
            # This round is allowed for every δ.
            some = {"sampler": "none", "noise": "laplace", "noise_multiplier": 1.0}
            privacy = load(self._ledger.plus(1, some).mapping()).privacy
        self._delta = number(privacy.delta)
        self._epsilon: float | None = None if privacy.epsilon == "solve" else privacy.epsilon
        if adaptive:
            from pyaccount.accountant.adaptive import Filtered  # filters need the core

            self._filtered = Filtered(self._open, number(privacy.epsilon), self._delta)
        self._steps = 0
        self._spent: dict[tuple[object, ...], float] = {}
        self._certificate: tuple[object, Certificate] | None = None
        self._horizons = Horizons(self._holds)

    @classmethod
    def from_certificate(cls, certificate: Certificate, *, threads: int = 0) -> Accountant:
        """Return an accountant for the certified run, with its blank filled; its guarantee is the budget.

        The certificate is not recomputed; `pyaccount verify` does that. Raises `CertificateError` if the claim does not
        hold or the certificate contradicts itself. Files that the document names are looked for in the working
        directory.
        """
        from pyaccount.certificate import Certificate
        from pyaccount.certificate.claimed import claimed_document

        if not isinstance(certificate, Certificate):
            kind = type(certificate).__name__
            raise TypeError(f"certificate is a Certificate, not {kind}; pyaccount.Certificate.load(path) reads one")
        accountant = cls(claimed_document(certificate, "accountant"), threads=threads)
        if certificate.data.guarantee.kind != "confidence":
            # The certificate states that the whole run keeps the budget.
            accountant._horizons.know(accountant._planned, accountant._target(None), accountant._delta)
        return accountant

    if not TYPE_CHECKING:  # for checkers of types a name that is not defined here is an error

        def __getattr__(self, name):
            if name == "get_epsilon":
                raise AttributeError(
                    "an Accountant has no get_epsilon: epsilon_spent() returns the certified ε of the rounds so far, at its delta"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def steps(self) -> int:
        """Return the number of rounds released so far."""
        return self._steps

    @property
    def planned_steps(self) -> int | None:
        """Return the number of rounds of the planned run, or `None` for an open ledger."""
        return None if self._plan is None else self._plan.length

    @property
    def covered_steps(self) -> int:
        """Return the number of rounds that the current document and certificate cover: `steps`, or more.

        They cover more if the rounds so far have no document of their own (before every bin, or every random part, was
        used once; for a matrix from a file; for more phases than a document may have). Then a longer part of the
        planned run bounds them.
        """
        return self._steps if self._plan is None else self._plan.covers(self._steps)

    def step(self, count: SupportsIndex = 1, **round: Any) -> None:
        """Count `count` rounds, each of which is one release of a noisy sum.

        A planned run needs no further arguments. In an open ledger `noise_multiplier` states how a round was released,
        with `sampling_probability` or `expected_batch_size` and `dataset_size`, `sampler` (a kind or a mapping; Poisson
        sampling if a rate is given, else `none`), `noise` (a kind) and `also` (further releases of each batch) as in a
        document.

        Any number of different rounds is counted. Only a limited number is certified one by one; far below it, a
        warning explains how rounds beyond that number are certified.

        Raises `PlanExceededError` beyond the planned length, `DocumentError` for rounds that have no bound,
        `DomainError` for a count below 1; then nothing is counted. Exceeding the budget does not stop the count: call
        `would_exceed` before. An adaptive accountant is stopped: rounds that its filter does not admit raise
        `DocumentError` (`budget-exceeded`), and none of them is counted.
        """
        number = _count_of(count)
        if self._filtered is not None:
            self._filtered = self._filtered.plus(number, _arguments_of(round))
            self._ledger = self._filtered.ledger
        elif self._ledger is not None:
            before, self._ledger = self._ledger, self._ledger.plus(number, _arguments_of(round))
            if len(before.phases) < MANY <= len(self._ledger.phases):
                warnings.warn(
                    f"The ledger has {MANY} kinds of rounds one after the other. Beyond {MOST}, rounds that are "
                    "nearly alike are certified together, by the least noise and the largest rate among them: ε is slightly "
                    "larger then, and the certificate's sentence says so. Noise that changes less often avoids this.",
                    stacklevel=2,
                )
        elif round:
            raise TypeError(f"the rounds of a planned run are described in its document, not by {', '.join(round)}")
        elif self._steps + number > self._planned.length:
            raise PlanExceededError(
                f"the planned run has {self._planned.length} rounds, of which {self._steps} are done: {number} more were not "
                "planned. What holds is the guarantee of the plan; a longer run is another document, with more iterations"
            )
        self._steps += number

    def document(self) -> dict[str, Any]:
        """Return the mechanism document of the releases so far, with ε blank; `certificate` certifies it.

        Its name states how many rounds of the planned run it covers (see `covered_steps`). Its matrix is that of the
        whole run, given by its coefficients. For an adaptive accountant it is the mechanism that stands for the whole
        budget of the filter, whatever was released so far. Raises `DomainError` before the first round.
        """
        self._something()
        if self._filtered is not None:
            return self._filtered.mapping()
        return self._planned.mapping(self._steps) if self._ledger is None else self._ledger.mapping(epsilon="solve")

    def certificate(self) -> Certificate:
        """Return the certificate of `document()`. If samples are drawn, it takes minutes, as for every such run.

        Raises the errors of `pyaccount.certify`, and `DomainError` before the first round.
        """
        self._something()
        if not self._made():
            self._certificate = (self._key(), self._certify(self._now()))
        assert self._certificate is not None
        return self._certificate[1]

    def epsilon_spent(self, delta: float | None = None) -> float:
        """Return the certified upper bound on ε of the rounds so far, at `delta` (by default the budget's).

        It is 0 before the first round. It applies to a run whose length was fixed beforehand: see the class. If samples
        are drawn, each new number of rounds takes minutes, and the bound holds with the probability that its
        certificate states; `would_exceed` costs less. Raises the errors of `pyaccount.certify`, and `DomainError`.

        For an adaptive accountant it is the odometer's ε: if nothing more is released from here on, P(B) ≤ E_Q[e^ε; B] + δ for
        every event B, though the time to stop, and every round, may have been chosen by looking at results. It can be
        larger than the budget's ε near the end, because it holds at every time at which one may stop; the budget holds
        besides it. Both are statements of their own: the smaller one, chosen after looking, holds at 2δ. It is infinite
        for a δ that the filter's large losses, which it cuts off, use up.
        """
        at = self._at(delta)
        if self._steps == 0:
            return 0.0
        if self._filtered is not None:
            return self._filtered.stopped(at)
        if at == self._delta and (self._made() or (self._plan is not None and self._plan.sampled)):
            # Two samples for the same question would give two numbers.
            return self.certificate().epsilon
        key = (self._key(), at)
        if key not in self._spent:
            document = self._now().with_value(("privacy", "delta"), at)
            self._spent[key] = self._certify(_without_profile(document)).epsilon
        return self._spent[key]

    def would_exceed(
        self, steps: SupportsIndex = 1, *, epsilon: float | None = None, delta: float | None = None, **round: Any
    ) -> bool:
        """Return true unless it is certified that the run keeps the budget with `steps` more rounds.

        The budget is that of the document or the ledger, unless `epsilon` or `delta` replaces it. The result is true
        beyond the planned length. For an open ledger the rounds are described as for `step`; by default they equal the
        last ones. A certificate for a longer run holds for a shorter one, so most calls cost nothing; certificates are
        computed when they are needed.

        If samples are drawn, only one certificate, of the whole planned run, is computed. The guarantee would not cover
        a test of one length after the other until a test passes, and trying one ε (or δ) after the other is equally
        invalid. The seed follows from the claim, which includes ε and δ, unless the document states a seed and the
        claim is the document's. Raises `DomainError` without a budget, and the errors of `certify`.

        For an adaptive accountant, whose budget cannot be replaced, the result is whether its filter refuses the rounds.
        """
        number = _count_of(steps)
        if self._filtered is not None:
            return self._filtered.asked(number, self._next(round, epsilon, delta)) is None
        target = (self._target(epsilon), self._at(delta))
        horizon, length = self._ask(number, target, round)
        return horizon.within < length

    def remaining_steps(self, *, epsilon: float | None = None, delta: float | None = None, **round: Any) -> int:
        """Return the maximum number of further rounds for which `would_exceed` is false.

        They are rounds of the plan or, for an open ledger, rounds described as for `step`. An open ledger without a
        bound on its length is searched up to 10⁹ rounds. The search computes one certificate for each doubling of the
        answer and each halving after that. Raises the errors of `would_exceed`.
        """
        if self._filtered is not None:
            return self._filtered.most(self._next(round, epsilon, delta))
        target = (self._target(epsilon), self._at(delta))
        horizon, length = self._ask(1, target, round, find=True)
        return max(0, horizon.within - (length - 1))

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON data with a version: the document, its hash, and the number of rounds done."""
        if self._filtered is not None:
            return saved.accountant_state("adaptive", self._filtered.record(), self._steps)
        if self._ledger is not None:
            return saved.accountant_state("ledger", self._ledger.record(), self._steps)
        plan = self._planned
        return saved.accountant_state("plan", plan.document.to_mapping(), self._steps, plan.fingerprints)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a saved state.

        Raises `StateError` for a state that is damaged, of another version, or of another run, and for a state with
        fewer rounds than are already counted: weights can be set back, but a release cannot be undone.
        """
        self._take(saved.checked(state))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, as a whole or not at all.

        Raises `StateError`, and writes nothing, if the existing file is a state of this run with rounds that are not
        counted here, because they would be lost, and if it is not a state. A state of another run, or an empty file, is
        replaced.
        """
        from pyaccount.files import write_atomically

        state.check_file(path, self._steps, self._plan or self._open)
        write_atomically(Path(path), json.dumps(self.state_dict(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int = 0) -> Accountant:
        """Return the accountant of a saved state.

        Files that its document names are looked for beside it. Raises `StateError`.
        """
        found = saved.read_state(path)
        file = os.fsdecode(path)
        try:
            if found.mode == "plan":
                accountant = cls(placed(found.document, file), threads=threads)
            else:
                privacy = dict(found.document.get("privacy") or {})
                name = found.document.get("name", "")
                accountant = cls(
                    adjacency=privacy.get("adjacency", ""),
                    delta=privacy.get("delta", ""),
                    epsilon=privacy.get("epsilon"),
                    group_size=privacy.get("group_size", 1),
                    name=name,
                    adaptive=found.mode == "adaptive",
                    threads=threads,
                )
        except (DocumentError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"{file}: document: this describes no run: {error}") from error
        accountant._take(found, file)
        return accountant

    def __repr__(self) -> str:
        of = "" if self._plan is None else f" of {self._plan.length}"
        name = self._plan.document.name if self._plan is not None else self._open.head["name"]
        return f"<Accountant {name!r}: {self._steps}{of} rounds>"

    @property
    def _planned(self) -> Planned:
        assert self._plan is not None
        return self._plan

    @property
    def _open(self) -> OpenLedger:
        assert self._ledger is not None
        return self._ledger

    def _take(self, found: saved.AccountantState, source: str = "state") -> None:
        """Load a state whose hash was compared."""
        if self._filtered is not None:
            ledger = state.ledger_of(found, self._filtered.ledger, source, "adaptive")
            self._filtered = self._filtered.reread(ledger, found.document.get("filter"), source)
            self._ledger = ledger
        elif self._ledger is None:
            state.check_plan(found, self._planned, self._steps, source)
        else:
            self._ledger = state.ledger_of(found, self._ledger, source)
        self._steps = found.steps

    def _ask(
        self, number: int, target: tuple[float, float], round: Mapping[str, Any], *, find: bool = False
    ) -> tuple[Horizon, int]:
        """Return the known horizon for this budget and kind of rounds, and the length after `number` more rounds."""
        if self._ledger is None:
            if round:
                raise TypeError(f"the rounds of a planned run are described in its document, not by {', '.join(round)}")
            length = self._steps + number
            return self._horizons.of_plan(self._planned, length, target, find=find), length
        if not round and not self._ledger.phases:
            raise DomainError("which rounds? The ledger is empty, so there are none like the last: noise_multiplier=…")
        after = self._ledger.plus(number, _arguments_of(round) if round else None)
        return self._horizons.of_ledger(after, target, find=find), after.last_length

    def _next(self, round: Mapping[str, Any], epsilon: float | None, delta: float | None) -> Mapping[str, Any] | None:
        """Return the arguments of the rounds that an adaptive accountant is asked about; None for rounds like the last."""
        if epsilon is not None or delta is not None:
            raise DomainError(
                "the budget of an adaptive accountant was fixed when it was made: leave epsilon and delta out"
            )
        if not round and self._steps == 0:
            raise DomainError(
                "which rounds? The accountant is empty, so there are none like the last: noise_multiplier=…"
            )
        return _arguments_of(round) if round else None

    def _holds(self, document: Document, target: tuple[float, float]) -> bool:
        """Return whether (ε, δ) is certified for a document."""
        claim = document.with_value(("privacy", "epsilon"), target[0]).with_value(("privacy", "delta"), target[1])
        claim = _without_profile(claim)
        if self._plan is not None and self._plan.sampled and target != (self._epsilon, self._delta):
            # The samples that led to an ε cannot test it, and the document's seed may have led to this ε.
            claim = seeded(claim)
        return self._certify(claim).holds

    def _at(self, delta: float | None) -> float:
        """Return the given δ or the budget's; a given δ may be 0 if every release has a bounded loss."""
        if delta is None:
            return self._delta
        pure = delta == 0 and (self._steps == 0 or all(phase.bounded_loss for phase in self._now().phases))
        return _number_in("delta", delta, DELTA_OR_ZERO if pure else DELTA)

    def _now(self) -> Document:
        """Return the document of the releases so far."""
        return self._planned.prefix(self._steps) if self._ledger is None else load(self.document())

    def _key(self) -> object:
        """Return a key of the releases so far; equal keys mean equal documents."""
        return self.covered_steps if self._ledger is None else json.dumps(self._ledger.phases, sort_keys=True)

    def _made(self) -> bool:
        """Return whether the stored certificate covers the current rounds."""
        return self._certificate is not None and self._certificate[0] == self._key()

    def _certify(self, document: Document) -> Certificate:
        from pyaccount.running import compile_document  # this imports the core

        return compile_document(document).run(threads=self._threads)

    def _something(self) -> None:
        if self._steps == 0:
            raise DomainError("nothing was released yet: there is no document of no rounds")

    def _target(self, epsilon: float | None) -> float:
        target = self._epsilon if epsilon is None else _number_in("epsilon", epsilon, EPSILON)
        if target is None:
            raise DomainError("there is no budget: the ε of the document or ledger is blank, so say epsilon=…")
        return target


def _without_profile(document: Document) -> Document:
    """Return the document without points of the profile, which take time and are not needed here."""
    return document.with_value(("accounting",), document.to_mapping().get("accounting", {}) | {"profile": []})


def _arguments_of(round: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a round: Poisson sampling if a rate is given, no sampling otherwise."""
    allowed = (
        "noise_multiplier",
        "sampling_probability",
        "expected_batch_size",
        "dataset_size",
        "sampler",
        "noise",
        "also",
    )
    unknown = [key for key in round if key not in allowed]
    if "mechanism" in unknown:
        raise TypeError(
            "a mechanism is no round of training: certify a document with `phases` that has both, or charge their documents to a "
            "filter (pyaccount.filters, docs/composing.md)"
        )
    if unknown or "noise_multiplier" not in round:
        wrong = f"no {', '.join(unknown)}" if unknown else "a noise_multiplier"
        raise TypeError(f"a round of an open ledger has {wrong}; it is described by {', '.join(allowed)}")
    rated = any(round.get(key) is not None for key in ("sampling_probability", "expected_batch_size"))
    return {"sampler": "poisson" if rated else "none", **round}


def _count_of(count: SupportsIndex) -> int:
    """Return a number of rounds, at least 1. Raises `DomainError`."""
    if isinstance(count, bool):
        raise DomainError(f"a number of rounds is a whole number, not {count}")
    try:
        number = operator.index(count)
    except TypeError as error:
        raise DomainError(f"a number of rounds is a whole number, not {count!r}") from error
    if number < 1:
        raise DomainError(f"a number of rounds is at least 1, not {number}")
    return number


def _number_in(name: str, value: float, allowed: Range) -> float:
    """Return a number that lies in its range. Raises `DomainError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in allowed:
        raise DomainError(f"{name} = {value!r} is outside its domain: {allowed.describe()}")
    return float(value)
