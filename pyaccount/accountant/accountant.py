"""`Accountant`: what a training loop asks, answered by certificates of documents."""

from __future__ import annotations

import copy
import json
import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from pyaccount.accountant import state as saved
from pyaccount.accountant.horizon import Horizon
from pyaccount.accountant.ledger import Ledger, arguments_of, head_of, reread
from pyaccount.accountant.planned import Planned, document_of, planned
from pyaccount.document import Document, load, sha256_of
from pyaccount.document.ranges import DELTA, EPSILON, ITERATIONS
from pyaccount.errors import CertificateError, DocumentError, DomainError, PlanExceededError, StateError

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.document.ranges import Range

    Source = str | os.PathLike[str] | Mapping[str, Any] | Document


class Accountant:
    """Counts the rounds of a training run and tells, by certificates, what they cost.

    `Accountant(document)` is for a run whose length and noise are planned: a mechanism document without blanks, or with ε as its
    only one. Its `privacy` section is the budget. `Accountant.from_certificate` takes a document that was solved.
    `Accountant(adjacency=…, delta=…, epsilon=…)` is an open ledger: every `step` says what was released.

    A *step* is one release of a noisy sum: an optimizer step. With gradient accumulation several micro-batches make one
    step, and the batch that is sampled is all of them together. Count a step, and save, before what it releases is used: then a
    crash can only make the record too pessimistic.

    Every ε told here is an upper bound, from a certificate of a document that `document()` shows. It is the guarantee of a run
    whose length and parameters were fixed beforehand. Whoever stops early by looking at what was released has the guarantee
    of the whole planned run (stopping is post-processing), not the one of the rounds done so far; parameters that are chosen by
    looking at what was released need a privacy filter and are not covered.
    """

    def __init__(  # noqa: PLR0913 - the four of a budget, and what every accountant takes
        self,
        document: Source | None = None,
        *,
        adjacency: str | None = None,
        delta: float | str | None = None,
        epsilon: float | str | None = None,
        group_size: int = 1,
        name: str = "training",
        threads: int = 0,
    ) -> None:
        """Raises `DocumentError` for a document or a budget that is wrong, and for mechanisms without a bound."""
        self._threads = threads
        self._plan: Planned | None = None
        self._ledger: Ledger | None = None
        if document is not None:
            if (adjacency, delta, epsilon, group_size, name) != (None, None, None, 1, "training"):
                raise TypeError("a document says everything: no other argument than threads can stand beside it")
            self._plan = planned(load(document))
            privacy = self._plan.document.privacy
        else:
            if adjacency is None or delta is None:
                raise TypeError("give the document of a planned run, or adjacency and delta (and epsilon, the budget)")
            target = "solve" if epsilon is None else epsilon
            stated = {"adjacency": adjacency, "epsilon": target, "delta": delta}
            self._ledger = Ledger(head_of(name, stated if group_size == 1 else {**stated, "group_size": group_size}))
            privacy = load(self._ledger.plus(1, {"sampler": "none", "noise_multiplier": 1.0}).mapping()).privacy
        assert privacy.delta != "solve"
        self._delta: float = privacy.delta
        self._epsilon: float | None = None if privacy.epsilon == "solve" else privacy.epsilon
        self._steps = 0
        self._spent: dict[tuple[object, ...], float] = {}
        self._certificate: tuple[object, Certificate] | None = None
        self._horizons: dict[tuple[object, ...], Horizon] = {}

    @classmethod
    def from_certificate(cls, certificate: Certificate, *, threads: int = 0) -> Accountant:
        """An accountant for the run that a certificate is about, the blank filled as it says; its guarantee is the budget.

        Raises `CertificateError` if the claim does not hold or the certificate contradicts itself. Files that the document
        names are looked for in the working directory.
        """
        from pyaccount.certificate.certificate import resolved  # noqa: PLC0415
        from pyaccount.gate.check import check  # noqa: PLC0415

        verdict = check([certificate], policy=None, limits={})
        if not verdict.passes:
            raise CertificateError(f"no accountant can be made of this certificate: {verdict.to_text()}")
        document = resolved(certificate.data, load(certificate.data.document))
        if document.blank == ("privacy", "delta"):
            document = document.with_value(document.blank, certificate.delta)
        if document.blank == ("privacy", "epsilon"):
            document = document.with_value(document.blank, certificate.epsilon)
        sampling = certificate.data.evidence.sampling
        if sampling is not None and document.accounting.seed is None:
            section = document.to_mapping().get("accounting", {}) | {"seed": sampling.seed}
            document = document.with_value(("accounting",), section)
        accountant = cls(document, threads=threads)
        if certificate.data.guarantee.kind != "confidence":
            # The certificate itself says that the whole run keeps the budget.
            horizon = accountant._horizon((accountant._epsilon, accountant._delta))
            horizon.within = horizon.beyond - 1
        return accountant

    @property
    def steps(self) -> int:
        """The rounds released so far."""
        return self._steps

    @property
    def planned_steps(self) -> int | None:
        """The rounds of the planned run; `None` for an open ledger."""
        return None if self._plan is None else self._plan.length

    @property
    def covered_steps(self) -> int:
        """How many rounds the document and the certificate of now are about: `steps`, or more.

        More where the rounds so far have no document of their own (balls in bins before every bin had its turn; a matrix from a
        file): then a longer part of the planned run bounds them.
        """
        return self._steps if self._plan is None else self._plan.covers(self._steps)

    def step(self, count: SupportsIndex = 1, **round: Any) -> None:
        """Count `count` rounds, each one release of a noisy sum.

        A planned run needs no more. In an open ledger `noise_multiplier` says how a round was released, with
        `sampling_probability` or `expected_batch_size` and `dataset_size`, `sampler` (a kind or a mapping; Poisson sampling if
        a rate is given, else `none`) and `noise` (a kind) as in a document.

        Raises `PlanExceededError` beyond the planned length, `DocumentError` for rounds that have no bound, `DomainError` for a
        count below 1; then nothing is counted. A budget that is exceeded does not stop counting: ask `would_exceed` before.
        """
        number = _count(count)
        if self._ledger is not None:
            self._ledger = self._ledger.plus(number, arguments_of(round))
        elif round:
            raise TypeError(f"the rounds of a planned run are described in its document, not by {', '.join(round)}")
        elif self._steps + number > self._planned.length:
            raise PlanExceededError(
                f"the planned run has {self._planned.length} rounds, of which {self._steps} are done: {number} more were not "
                "planned. What holds is the guarantee of the plan; a longer run is another document, with more iterations"
            )
        self._steps += number

    def document(self) -> dict[str, Any]:
        """The mechanism document of what was released so far, ε blank: what `certificate` certifies.

        Its name says how many rounds of the planned run it is about (see `covered_steps`). A matrix is that of the whole run,
        given by its coefficients. Raises `DomainError` before the first round.
        """
        self._something()
        return self._planned.mapping(self._steps) if self._ledger is None else self._ledger.mapping(epsilon="solve")

    def certificate(self) -> Certificate:
        """The certificate of `document()`. Where samples are drawn it takes minutes, as certifying such a run always does.

        Raises as `pyaccount.certify`, and `DomainError` before the first round.
        """
        self._something()
        key = self._key()
        if self._certificate is None or self._certificate[0] != key:
            self._certificate = (key, self._certify(self._now()))
        return self._certificate[1]

    def epsilon_spent(self, delta: float | None = None) -> float:
        """The certified upper bound on ε of the rounds so far, at `delta` (the budget's if omitted); 0 before the first round.

        For a run whose length was fixed beforehand: see the class. Where samples are drawn, each new number of rounds takes
        minutes, and what is told holds with the probability that its certificate states, `would_exceed` being the cheaper
        question. Raises as `pyaccount.certify`, and `DomainError`.
        """
        at = self._delta if delta is None else _inside("delta", delta, DELTA)
        if self._steps == 0:
            return 0.0
        key = (self._key(), at)
        if key not in self._spent:
            if self._certificate is not None and self._certificate[0] == key[0] and at == self._delta:
                self._spent[key] = self._certificate[1].epsilon
            else:
                document = self._now().with_value(("privacy", "delta"), at)
                self._spent[key] = self._certify(_without_profile(document)).epsilon
        return self._spent[key]

    def would_exceed(
        self, steps: SupportsIndex = 1, *, epsilon: float | None = None, delta: float | None = None, **round: Any
    ) -> bool:
        """Whether it is *not* certified that the run keeps the budget with so many more rounds.

        The budget is that of the document or the ledger, unless `epsilon` or `delta` say otherwise. True beyond the planned
        length. An open ledger is asked about rounds as `step` takes them, by default about more like the last. What is certified
        for a longer run holds for a shorter one, so most questions cost nothing; certificates are made as needed.

        Where samples are drawn, one certificate of the whole planned run is made, with a seed that follows from the document, and
        nothing else: to test one length after the other until a test passes would not be what the guarantee is about.
        Raises `DomainError` without a budget; otherwise as `certify`.
        """
        number = _count(steps)
        target = (self._target(epsilon), self._delta if delta is None else _inside("delta", delta, DELTA))
        horizon, length = self._ask(number, target, round)
        return horizon.within < length

    def remaining_steps(self, *, epsilon: float | None = None, delta: float | None = None, **round: Any) -> int:
        """The most rounds for which `would_exceed` says no: of the plan, or for an open ledger of the kind that `step` takes.

        An open ledger without a bound on the length is searched up to 10⁹ rounds. Takes a certificate for each doubling
        of the answer and each halving after. Raises as `would_exceed`.
        """
        target = (self._target(epsilon), self._delta if delta is None else _inside("delta", delta, DELTA))
        horizon, length = self._ask(1, target, round, find=True)
        return max(0, horizon.within - (length - 1))

    def state_dict(self) -> dict[str, Any]:
        """The state as plain JSON data with a version: the document, its hash, and the rounds done."""
        if self._ledger is not None:
            return saved.state_of("ledger", self._ledger.record(), self._steps)
        return saved.state_of("plan", self._planned.document.to_mapping(), self._steps)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state. Raises `StateError` for one that is damaged, of another version, or of another run."""
        self._take(saved.checked(state))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which appears whole or not at all."""
        from pyaccount.certificate.certificate import write_atomically  # noqa: PLC0415

        write_atomically(Path(path), json.dumps(self.state_dict(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int = 0) -> Accountant:
        """The accountant of a saved state. Files that its document names are looked for beside it. Raises `StateError`."""
        found = saved.read(path)
        file = os.fsdecode(path)
        try:
            if found.mode == "plan":
                accountant = cls(document_of(found.document, file), threads=threads)
            else:
                privacy = dict(found.document.get("privacy") or {})
                name = found.document.get("name", "")
                accountant = cls(
                    adjacency=privacy.get("adjacency", ""),
                    delta=privacy.get("delta", ""),
                    epsilon=privacy.get("epsilon"),
                    group_size=privacy.get("group_size", 1),
                    name=name,
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
    def _open(self) -> Ledger:
        assert self._ledger is not None
        return self._ledger

    def _take(self, found: saved.AccountantState, source: str = "state") -> None:
        """Take up a state whose hash was compared."""
        mode = "plan" if self._ledger is None else "ledger"
        if found.mode != mode:
            raise StateError(f"{source}: mode: this is the state of a {found.mode}, and the accountant has a {mode}")
        if self._ledger is None:
            if found.document_sha256 != sha256_of(self._planned.document.to_mapping()):
                raise StateError(f"{source}: document: this is the state of another run, with another document")
            if found.steps > self._planned.length:
                message = f"{found.steps} rounds are more than the {self._planned.length} planned"
                raise StateError(f"{source}: steps: {message}")
        else:
            head = {key: value for key, value in found.document.items() if key != "phases"}
            if head != self._ledger.head:
                raise StateError(f"{source}: document: this is the state of another ledger: its name or budget differs")
            ledger = reread(self._ledger.head, found.document.get("phases"), source)
            if found.steps != ledger.steps:
                raise StateError(f"{source}: steps: {found.steps}, but the phases have {ledger.steps} rounds")
            self._ledger = ledger
        self._steps = found.steps

    def _ask(
        self, number: int, target: tuple[float, float], round: Mapping[str, Any], *, find: bool = False
    ) -> tuple[Horizon, int]:
        """What is known of the length after `number` more rounds, as the budget and the kind of rounds have it."""
        if self._ledger is not None:
            return self._ask_ledger(number, target, round, find=find)
        if round:
            raise TypeError(f"the rounds of a planned run are described in its document, not by {', '.join(round)}")
        plan, horizon, length = self._planned, self._horizon(target), self._steps + number

        def certified(rounds: int) -> bool:
            return self._holds(plan.prefix(rounds), target)

        horizon.ask(plan.length, certified)
        if plan.sampled:
            horizon.beyond = min(horizon.beyond, horizon.within + 1)
        elif horizon.within < length < horizon.beyond or find:
            horizon.find(certified)
        return horizon, length

    def _ask_ledger(
        self, number: int, target: tuple[float, float], round: Mapping[str, Any], *, find: bool
    ) -> tuple[Horizon, int]:
        ledger = self._open
        if not round and ledger.last is None:
            raise DomainError(
                "which rounds? The ledger is empty, so there are none like the last: say noise_multiplier …"
            )
        arguments = arguments_of(round) if round else ledger.last[0] if ledger.last is not None else {}
        after = ledger.plus(number, arguments)
        # Rounds of one kind in a row are one question: how long the last phase may be, after the ones before it.
        length = after.phases[-1]["training"]["iterations"]
        rest = copy.deepcopy(after.phases[-1])

        def certified(rounds: int) -> bool:
            last = {**rest, "training": {**rest["training"], "iterations": rounds}}
            longer = Ledger(ledger.head, (*after.phases[:-1], last))
            return self._holds(load(longer.mapping()), target)

        rest["training"].pop("iterations")
        question = (*target, json.dumps([after.phases[:-1], rest], sort_keys=True))
        horizon = self._horizons.setdefault(question, Horizon(beyond=int(ITERATIONS.maximum) + 1))
        if find:
            horizon.find(certified)
        elif horizon.within < length < horizon.beyond:
            horizon.ask(length, certified)
            # Loops ask about one round more each time: the answer about the next doubling answers many.
            ahead = min(2 * length, horizon.beyond - 1)
            horizon.ask(ahead, certified)
            if horizon.within < ahead:
                horizon.find(certified)
        return horizon, length

    def _horizon(self, target: tuple[float | None, float]) -> Horizon:
        return self._horizons.setdefault(target, Horizon(beyond=self._planned.length + 1))

    def _holds(self, document: Document, target: tuple[float, float]) -> bool:
        """Whether (ε, δ) is certified for a document."""
        claim = document.with_value(("privacy", "epsilon"), target[0]).with_value(("privacy", "delta"), target[1])
        return self._certify(_without_profile(claim)).holds

    def _now(self) -> Document:
        """The document of what was released."""
        return self._planned.prefix(self._steps) if self._ledger is None else load(self.document())

    def _key(self) -> object:
        """What was released, as far as its document tells."""
        return self.covered_steps if self._ledger is None else json.dumps(self._ledger.phases, sort_keys=True)

    def _certify(self, document: Document) -> Certificate:
        from pyaccount import certify  # noqa: PLC0415 - imports the core

        return certify(document, threads=self._threads)

    def _something(self) -> None:
        if self._steps == 0:
            raise DomainError("nothing was released yet: there is no document of no rounds")

    def _target(self, epsilon: float | None) -> float:
        target = self._epsilon if epsilon is None else _inside("epsilon", epsilon, EPSILON)
        if target is None:
            raise DomainError("there is no budget: the ε of the document or ledger is blank, so say epsilon=…")
        return target


def _without_profile(document: Document) -> Document:
    """The document without points of the profile, which cost time and are not asked for."""
    return document.with_value(("accounting",), document.to_mapping().get("accounting", {}) | {"profile": []})


def _count(count: SupportsIndex) -> int:
    if isinstance(count, bool):
        raise DomainError(f"a number of rounds is a whole number, not {count}")
    try:
        number = operator.index(count)
    except TypeError as error:
        raise DomainError(f"a number of rounds is a whole number, not {count!r}") from error
    if number < 1:
        raise DomainError(f"a number of rounds is at least 1, not {number}")
    return number


def _inside(name: str, value: float, allowed: Range) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in allowed:
        raise DomainError(f"{name} = {value!r} is outside its domain: {allowed.describe()}")
    return float(value)
