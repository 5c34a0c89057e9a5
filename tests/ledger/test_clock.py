"""Clocks that are wrong: what they stop, how that is mended, and that no time changes what is spent."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from faulty_ledger import Simulation
from ledger_samples import Clock, data_set, gaussian
from snapshots import Snapshot

import pyaccount
from pyaccount import Ledger
from pyaccount.ledger.events import Event, Head
from pyaccount.ledger.rows import LedgerRows
from pyaccount.ledger.state import State

FUTURE = "2099-01-01T00:00:00+00:00"


def test_a_clock_of_the_future_stops_everybody_until_it_is_amended(place: str, snapshot: Snapshot) -> None:
    right, wrong = Ledger(place, clock=Clock()), Ledger(place, clock=Clock(FUTURE))
    right.create(data_set("a", privacy={"mu": 0.5}))
    right.create(data_set("b"))
    entry = wrong.reserve(gaussian(0.4), who="ann", purpose="p", data_set="a")
    for stopped in (
        lambda: right.begin(entry),
        lambda: right.release(entry),
        lambda: right.reserve(gaussian(0.1), who="bob", purpose="p", data_set="b"),
    ):
        snapshot.raised(stopped)
    before = right.status()
    event = right.amend_clock(reason="node 7 said 2099")
    assert (event.event, event.sequence, event.data_set) == ("clock-amended", 4, None)
    assert event.time < "2026-04" < event.content["amended_from"]
    # The charge of the entry is what it was, and nothing else fits.
    after = right.status()
    assert after.data_sets == before.data_sets
    assert [(one.sequence, one.reason) for one in after.amendments] == [(4, "node 7 said 2099")]
    assert "node 7 said 2099" in after.to_markdown()
    snapshot.raised(lambda: right.reserve(gaussian(0.4), who="bob", purpose="p", data_set="a"))
    right.begin(entry)
    assert right.verify(recompute=True).intact
    # Every reader sees it, whatever data set is asked for.
    for name in (None, "a", "b"):
        assert "clock-amended" in [one.event for one in right.history(name).events]
    snapshot.raised(right.amend_clock, reason="again")
    # A clock that is wrong again stops the others again, and its own earlier entries are no excuse.
    wrong.reserve(gaussian(0.1), who="ann", purpose="p", data_set="b")
    snapshot.raised(lambda: right.reserve(gaussian(0.1), who="bob", purpose="p", data_set="b"))


def test_a_clock_that_is_not_behind_amends_nothing(place: str, snapshot: Snapshot) -> None:
    clock = Clock()
    ledger = Ledger(place, clock=clock)
    snapshot.raised(ledger.amend_clock, reason="p")
    ledger.create(data_set())
    for minutes in (0, 4, -1000):
        clock.time -= timedelta(minutes=minutes)
        snapshot.raised(ledger.amend_clock, reason="p")
    snapshot.raised(ledger.amend_clock, reason=" ")


def timeless(state: State) -> Any:
    """Everything that a state says, except for the times of its entries."""
    entries = {name: replace(one, reserved="", begun=None, ended=None) for name, one in state.entries.items()}
    return state.data_sets, state.blocks, entries, state.certificates, state.records


def test_no_charge_depends_on_a_time(tmp_path: Any) -> None:
    """Histories of two writers at random are applied again with other times, and with amendments anywhere: the same is spent."""
    documents = [gaussian(mu, f"m{mu}") for mu in (0.05, 0.1, 0.2)]
    place = str(tmp_path / "budgets.db")
    ledger = Ledger(place)
    ledger.create(data_set("a", privacy={"mu": 0.6}))
    ledger.create(data_set("b", filters=[{"name": "f", "mu": 0.5}], privacy={"epsilon": 2.5, "delta": 1e-6}))
    simulation = Simulation(place, 11, documents, [pyaccount.certify(document) for document in documents])
    simulation.run(150, ["a", "b"])
    with ledger._reading() as rows:
        events = rows.events()
    assert {event.kind for event in events} >= {"reserved", "begun", "committed", "released"}
    expected = State()
    for event in events:
        expected.apply(event)
    assert any(block.fixed for block in expected.blocks.values())
    for times in ("2026-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"):
        state = State()
        for event in events:
            state.apply(event._replace(time=times))
            before = timeless(state)
            content = {"amended_from": times, "reason": "p"}
            state.apply(Event.after(Head.of(event), "2000-01-01T00:00:00.000000Z", "clock-amended", content))
            assert timeless(state) == before
        assert timeless(state) == timeless(expected)


def test_retention_follows_the_clock_of_the_machine_and_keeps_what_a_period_has_spent(
    place: str, snapshot: Snapshot
) -> None:
    """An event of the future retires no period for others; an amended clock empties none."""
    clock, future = Clock("2026-05-15T12:00:00+00:00"), Clock(FUTURE)
    right, wrong = Ledger(place, clock=clock), Ledger(place, clock=future)
    periods = {"every": "month", "since": "2026-01", "keep": 3}
    right.create(data_set(privacy={"mu": 0.5}, periods=periods))
    right.reserve(gaussian(0.4), who="ann", purpose="p", blocks=["2026-04"])
    snapshot.raised(lambda: wrong.reserve(gaussian(0.1), who="bob", purpose="p", blocks=["2026-04"]))
    wrong.reserve(gaussian(0.1), who="bob", purpose="p", blocks=["2098-12"])
    right.amend_clock(reason="the clock said 2099")
    snapshot.raised(lambda: right.reserve(gaussian(0.1), who="bob", purpose="p", blocks=["2026-02"]))
    snapshot.raised(lambda: right.reserve(gaussian(0.4), who="bob", purpose="p", blocks=["2026-04"]))
    right.reserve(gaussian(0.1), who="bob", purpose="p", blocks=["2026-04"])
    # What was spent on the period of the future stays spent.
    snapshot.raised(lambda: right.reserve(gaussian(0.49), who="bob", purpose="p", blocks=["2098-12"]))
    assert right.verify().intact


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (("block-added", "2020", {"data_set": "customers", "block": "x"}), "earlier than the event"),
        (("clock-amended", "2099", {"amended_from": None, "reason": "p"}), "sets the clock forward"),
        (("clock-amended", "2020", {"amended_from": "2099", "reason": "p"}), "amends another time"),
    ],
)
def test_an_order_that_no_command_writes_is_damage(
    event: tuple[str, str, dict[str, Any]], message: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, year, content = event
    ledger = Ledger(place, clock=Clock())
    ledger.create(data_set())
    with ledger._database.writing() as connection:
        rows = LedgerRows(connection, place)
        rows.data_set("customers")
        if "amended_from" in content:
            content["amended_from"] = content["amended_from"] or rows.head.time
        monkeypatch.setattr("pyaccount.ledger.rows.disorder", lambda *_: None)
        rows.add(kind, f"{year}-01-01T00:00:00.000000Z", content)
    (damage,) = ledger.verify().damage
    assert (damage.sequence, message in damage.message) == (2, True)
