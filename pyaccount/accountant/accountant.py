"""`Accountant`: what a training loop asks, answered by certificates of documents."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from pyaccount.accountant import resuming
from pyaccount.accountant import state as saved
from pyaccount.accountant.horizon import Horizon, Horizons
from pyaccount.accountant.ledger import MANY, MOST, Ledger, head_of
from pyaccount.accountant.planned import Planned, document_of, planned, seeded
from pyaccount.arguments import threads_of
from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.ranges import DELTA, DELTA_OR_ZERO, EPSILON
from pyaccount.errors import DocumentError, DomainError, PlanExceededError, StateError

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate

    Source = str | os.PathLike[str] | Mapping[str, Any] | Document
    from pyaccount.document.ranges import Range


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
        self._threads = threads_of(threads)
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
            # A round that every δ allows.
            some = {"sampler": "none", "noise": "laplace", "noise_multiplier": 1.0}
            privacy = load(self._ledger.plus(1, some).mapping()).privacy
        assert privacy.delta != "solve"
        self._delta: float = privacy.delta
        self._epsilon: float | None = None if privacy.epsilon == "solve" else privacy.epsilon
        self._steps = 0
        self._spent: dict[tuple[object, ...], float] = {}
        self._certificate: tuple[object, Certificate] | None = None
        self._horizons = Horizons(self._holds)

    @classmethod
    def from_certificate(cls, certificate: Certificate, *, threads: int = 0) -> Accountant:
        """An accountant for the run that a certificate is about, the blank filled as it says; its guarantee is the budget.

        The certificate is taken at its word; `pyaccount verify` recomputes one. Raises `CertificateError` if the claim does not
        hold or the certificate contradicts itself. Files that the document names are looked for in the working directory.
        """
        from pyaccount.certificate import Certificate
        from pyaccount.certificate.claimed import claimed_document

        if not isinstance(certificate, Certificate):
            kind = type(certificate).__name__
            raise TypeError(f"certificate is a Certificate, not {kind}; pyaccount.Certificate.load(path) reads one")
        accountant = cls(claimed_document(certificate, "accountant"), threads=threads)
        if certificate.data.guarantee.kind != "confidence":
            # The certificate itself says that the whole run keeps the budget.
            accountant._horizons.know(accountant._planned, accountant._target(None), accountant._delta)
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

        More where the rounds so far have no document of their own (before every bin, or every random part, had its turn; a
        matrix from a file; more phases than a document may have): then a longer part of the planned run bounds them.
        """
        return self._steps if self._plan is None else self._plan.covers(self._steps)

    def step(self, count: SupportsIndex = 1, **round: Any) -> None:
        """Count `count` rounds, each one release of a noisy sum.

        A planned run needs no more. In an open ledger `noise_multiplier` says how a round was released, with
        `sampling_probability` or `expected_batch_size` and `dataset_size`, `sampler` (a kind or a mapping; Poisson sampling if
        a rate is given, else `none`), `noise` (a kind) and `also` (what else is released of each batch) as in a document.

        Any number of different rounds is counted. Far below the number that is certified one by one, a warning says what happens
        beyond it.

        Raises `PlanExceededError` beyond the planned length, `DocumentError` for rounds that have no bound, `DomainError` for a
        count below 1; then nothing is counted. A budget that is exceeded does not stop counting: ask `would_exceed` before.
        """
        number = _count_of(count)
        if self._ledger is not None:
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
        if not self._made():
            self._certificate = (self._key(), self._certify(self._now()))
        assert self._certificate is not None
        return self._certificate[1]

    def epsilon_spent(self, delta: float | None = None) -> float:
        """The certified upper bound on ε of the rounds so far, at `delta` (the budget's if omitted); 0 before the first round.

        For a run whose length was fixed beforehand: see the class. Where samples are drawn, each new number of rounds takes
        minutes, and what is told holds with the probability that its certificate states, `would_exceed` being the cheaper
        question. Raises as `pyaccount.certify`, and `DomainError`.
        """
        at = self._at(delta)
        if self._steps == 0:
            return 0.0
        if at == self._delta and (self._made() or (self._plan is not None and self._plan.sampled)):
            # Two samples of one question would give two numbers.
            return self.certificate().epsilon
        key = (self._key(), at)
        if key not in self._spent:
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

        Where samples are drawn, one certificate of the whole planned run is made, and nothing else: to test one length after the
        other until a test passes would not be what the guarantee is about, and to try one ε (or δ) after the other is as bad.
        The seed follows from the claim, ε and δ included, unless the document states one and the claim is the document's.
        Raises `DomainError` without a budget; otherwise as `certify`.
        """
        number = _count_of(steps)
        target = (self._target(epsilon), self._at(delta))
        horizon, length = self._ask(number, target, round)
        return horizon.within < length

    def remaining_steps(self, *, epsilon: float | None = None, delta: float | None = None, **round: Any) -> int:
        """The most rounds for which `would_exceed` says no: of the plan, or for an open ledger of the kind that `step` takes.

        An open ledger without a bound on the length is searched up to 10⁹ rounds. Takes a certificate for each doubling
        of the answer and each halving after. Raises as `would_exceed`.
        """
        target = (self._target(epsilon), self._at(delta))
        horizon, length = self._ask(1, target, round, find=True)
        return max(0, horizon.within - (length - 1))

    def state_dict(self) -> dict[str, Any]:
        """The state as plain JSON data with a version: the document, its hash, and the rounds done."""
        if self._ledger is not None:
            return saved.accountant_state("ledger", self._ledger.record(), self._steps)
        plan = self._planned
        return saved.accountant_state("plan", plan.document.to_mapping(), self._steps, plan.fingerprints)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state.

        Raises `StateError` for one that is damaged, of another version, or of another run, and for one with fewer rounds than
        are counted already: weights can be set back, but what was released stays released.
        """
        self._take(saved.checked(state))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which appears whole or not at all.

        Raises `StateError`, and writes nothing, if the file there is the state of this run with rounds that are not counted
        here: they would be forgotten; and if it is no state at all. The state of another run is replaced, and an empty file.
        """
        from pyaccount.files import write_atomically

        resuming.check_file(path, self._steps, self._plan or self._open)
        write_atomically(Path(path), json.dumps(self.state_dict(), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int = 0) -> Accountant:
        """The accountant of a saved state. Files that its document names are looked for beside it. Raises `StateError`."""
        found = saved.read_state(path)
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
        if self._ledger is None:
            resuming.check_plan(found, self._planned, self._steps, source)
        else:
            self._ledger = resuming.ledger_of(found, self._ledger, source)
        self._steps = found.steps

    def _ask(
        self, number: int, target: tuple[float, float], round: Mapping[str, Any], *, find: bool = False
    ) -> tuple[Horizon, int]:
        """What is known of the length after `number` more rounds, as the budget and the kind of rounds have it."""
        if self._ledger is None:
            if round:
                raise TypeError(f"the rounds of a planned run are described in its document, not by {', '.join(round)}")
            length = self._steps + number
            return self._horizons.of_plan(self._planned, length, target, find=find), length
        if not round and not self._ledger.phases:
            raise DomainError("which rounds? The ledger is empty, so there are none like the last: noise_multiplier=…")
        after = self._ledger.plus(number, _arguments_of(round) if round else None)
        return self._horizons.of_ledger(after, target, find=find), after.last_length

    def _holds(self, document: Document, target: tuple[float, float]) -> bool:
        """Whether (ε, δ) is certified for a document."""
        claim = document.with_value(("privacy", "epsilon"), target[0]).with_value(("privacy", "delta"), target[1])
        claim = _without_profile(claim)
        if self._plan is not None and self._plan.sampled and target != (self._epsilon, self._delta):
            # The samples that found an ε are no test of it, and the document's seed may have found this one.
            claim = seeded(claim)
        return self._certify(claim).holds

    def _at(self, delta: float | None) -> float:
        """The δ of a question: that of the budget, or another one, 0 where what was released has a bounded loss."""
        if delta is None:
            return self._delta
        pure = delta == 0 and (self._steps == 0 or all(body.noise.bounded_loss for body in self._now().bodies))
        return _number_in("delta", delta, DELTA_OR_ZERO if pure else DELTA)

    def _now(self) -> Document:
        """The document of what was released."""
        return self._planned.prefix(self._steps) if self._ledger is None else load(self.document())

    def _key(self) -> object:
        """What was released, as far as its document tells."""
        return self.covered_steps if self._ledger is None else json.dumps(self._ledger.phases, sort_keys=True)

    def _made(self) -> bool:
        """Whether the certificate at hand is that of now."""
        return self._certificate is not None and self._certificate[0] == self._key()

    def _certify(self, document: Document) -> Certificate:
        from pyaccount.running import compile_document  # imports the core

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
    """The document without points of the profile, which cost time and are not asked for."""
    return document.with_value(("accounting",), document.to_mapping().get("accounting", {}) | {"profile": []})


def _arguments_of(round: Mapping[str, Any]) -> dict[str, Any]:
    """What a round is: Poisson sampling where a rate is given, no sampling otherwise."""
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
    if unknown or "noise_multiplier" not in round:
        wrong = f"no {', '.join(unknown)}" if unknown else "a noise_multiplier"
        raise TypeError(f"a round of an open ledger has {wrong}; it is described by {', '.join(allowed)}")
    rated = any(round.get(key) is not None for key in ("sampling_probability", "expected_batch_size"))
    return {"sampler": "poisson" if rated else "none", **round}


def _count_of(count: SupportsIndex) -> int:
    """A number of rounds, at least 1. Raises `DomainError`."""
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
    """A number in its range. Raises `DomainError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in allowed:
        raise DomainError(f"{name} = {value!r} is outside its domain: {allowed.describe()}")
    return float(value)
