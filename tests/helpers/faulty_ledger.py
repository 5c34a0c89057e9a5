"""Ledgers whose writers die: at a statement, before, during or after the commit; and two writers who get in each other's way."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import erfc, exp, inf, sqrt
from typing import Any

from pyaccount.errors import BudgetError, LedgerError
from pyaccount.ledger import Ledger
from pyaccount.ledger.database import Database, LedgerConnection


class Killed(BaseException):
    """The process of a writer ends here, without another instruction."""


class Faulty:
    """A database whose writer dies before the statement number `fuse`, counted from 0; at the last number after the commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.fuse: int | None = None
        #: What happens before a transaction that writes: another writer may come first.
        self.before: Callable[[], None] = lambda: None

    @property
    def place(self) -> str:
        return self._database.place

    def create(self) -> None:
        self._database.create()

    def reading(self) -> Any:
        return self._database.reading()

    @contextmanager
    def writing(self) -> Iterator[LedgerConnection]:
        self.before()
        with self._database.writing() as connection:
            burning = _Burning(connection, self.fuse)
            yield burning
            burning.burn()
        # The transaction is on disk, and the answer never arrives.
        burning.burn()


class _Burning:
    def __init__(self, connection: LedgerConnection, fuse: int | None) -> None:
        self._connection = connection
        self._left = fuse

    def burn(self) -> None:
        if self._left is not None:
            if self._left == 0:
                raise Killed
            self._left -= 1

    def rows(self, statement: str, values: Any = None) -> list[Any]:
        self.burn()
        return self._connection.rows(statement, values)

    def run(self, statement: str, values: Any = None) -> None:
        self.burn()
        self._connection.run(statement, values)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε of the Gaussian mechanism at δ, by bisection of its closed profile."""

    def profile(epsilon: float) -> float:
        def below(x: float) -> float:
            return 0.5 * erfc(-x / sqrt(2.0))

        return below(mu / 2.0 - epsilon / mu) - exp(epsilon) * below(-mu / 2.0 - epsilon / mu)

    low, high = 0.0, 1.0
    while profile(high) > delta:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if profile(middle) <= delta else (middle, high)
    return high


class Simulation:
    """Two writers of one ledger, who do what is possible and what is not, and die now and then.

    Every entry is Gaussian, so that what is spent has a closed form: √Σμ² of the entries that ran or may still run. `accepted` is
    what the writers were told; what they were not told, because they died, may have happened or not.
    """

    def __init__(self, place: str, seed: int, documents: list[dict[str, Any]], certificates: list[Any]) -> None:
        self.random = random.Random(seed)
        self.documents, self.certificates = documents, certificates
        self.ledgers = [Ledger(place) for _ in range(2)]
        self.faults = [Faulty(ledger._database) for ledger in self.ledgers]
        for ledger, fault in zip(self.ledgers, self.faults, strict=True):
            ledger._database = fault
        #: Entries by what their writers know: the document, and what was accepted last.
        self.known: dict[str, tuple[int, str]] = {}
        self.accepted: list[tuple[str, str]] = []
        self.kills = self.refusals = 0

    def run(self, steps: int, names: list[str], *, deaths: float = 0.2, meetings: float = 0.3) -> None:
        """Take steps, of which some end in the death of the writer, and some meet one of the other writer."""
        for _ in range(steps):
            writer = self.random.randrange(2)
            fault = self.faults[writer]
            fault.fuse = self.random.randrange(14) if self.random.random() < deaths else None
            if self.random.random() < meetings:

                def other(writer: int = writer, fault: Faulty = fault) -> None:
                    fault.before = lambda: None
                    self.faults[1 - writer].fuse = None
                    self._step(self.ledgers[1 - writer], names)

                fault.before = other
            self._step(self.ledgers[writer], names)
            fault.before = lambda: None

    def _step(self, ledger: Ledger, names: list[str]) -> None:
        what = self.random.choices(("reserve", "begin", "commit", "release"), (4, 3, 3, 2))[0]
        entry = self.random.choice(list(self.known)) if self.known else None
        number = self.random.randrange(len(self.documents))
        try:
            if what == "reserve" or entry is None:
                what = "reserve"
                name = self.random.choice(names)
                made = ledger.reserve(self.documents[number], who="w", purpose="p", data_set=name)
                entry = made.id
                self.known[entry] = (number, "reserved")
            elif what == "commit":
                # Each commit has a certificate of its own.
                ledger.commit(entry, self._fresh(self.known[entry][0]))
            else:
                getattr(ledger, what)(entry)
        except Killed:
            self.kills += 1
        except (BudgetError, LedgerError):
            self.refusals += 1
        else:
            self.accepted.append((what, entry))

    def _fresh(self, number: int) -> Any:
        from pyaccount.certificate import Certificate
        from pyaccount.certificate.consistency import content_sha256

        day, second = divmod(len(self.accepted) + self.kills + self.refusals, 86400)
        created = f"2026-01-{1 + day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}+00:00"
        data = self.certificates[number].data.model_copy(update={"created": created, "content_sha256": None})
        return Certificate(data.model_copy(update={"content_sha256": content_sha256(data)}))

    def check(self, squares: list[Fraction], budgets: dict[str, float], delta: float = 1e-6) -> None:
        """Replay the history by arithmetic of its own: no budget is overspent at any time, and nothing is lost.

        `squares` are μ² of the documents. A budget is the largest μ of a data set in one filter; one below 0 is −ε of a data set
        with one filter `f` of μ = 0.5 and fixed entries.
        """
        ledger = self.ledgers[0]
        verified = ledger.verify()
        assert verified.intact, verified.damage
        events = ledger.history().events
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        happened = {(event.event, event.entry) for event in events}
        words = {"reserve": "reserved", "begin": "begun", "commit": "committed", "release": "released"}
        lost = [one for one in self.accepted if (words[one[0]], one[1]) not in happened]
        assert not lost
        by_name = {document["name"]: square for document, square in zip(self.documents, squares, strict=True)}
        fixed: dict[str, dict[str, Fraction]] = {name: {} for name in budgets}
        filtered: dict[str, dict[str, Fraction]] = {name: {} for name in budgets}
        begun: set[str] = set()
        states: dict[str, str] = {}
        for event in events:
            name, entry = event.data_set, event.entry or ""
            if name not in budgets:
                continue
            if event.event == "reserved":
                assert entry not in states
                (place,) = event.content["places"]
                square = by_name[event.content["name"]]
                assert (place["filter"] is None) == (budgets[name] < 0 and name not in begun)
                (fixed if place["filter"] is None else filtered)[name][entry] = square
            elif event.event == "begun":
                assert states[entry] == "reserved"
                begun.add(name)
            elif event.event == "committed":
                assert states[entry] == "begun"
            elif event.event == "released":
                assert states[entry] == "reserved"
                filtered[name].pop(entry, None)
                if name not in begun:
                    fixed[name].pop(entry, None)
            if event.entry:
                states[entry] = event.event
            self._within(
                budgets[name], sum(fixed[name].values(), Fraction(0)), sum(filtered[name].values(), Fraction(0)), delta
            )

    @staticmethod
    def _within(budget: float, fixed: Fraction, filtered: Fraction, delta: float) -> None:
        if budget >= 0.0:
            assert filtered <= Fraction(repr(budget)) ** 2
        else:
            assert filtered <= Fraction(1, 4)
            total = sqrt(fixed + Fraction(1, 4))
            assert total < inf
            assert gaussian_epsilon(total, delta) <= -budget * (1.0 + 1e-12)
