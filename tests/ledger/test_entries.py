"""What may be reserved, begun, committed and released, and what is refused; on both databases."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from faulty_ledger import gaussian_epsilon
from ledger_samples import Clock, data_set, gaussian, sampled, stated
from snapshots import Snapshot

import pyaccount
from pyaccount import BudgetError, DocumentError, Ledger, LedgerError
from pyaccount.ledger import LedgerEntry
from pyaccount.ledger.reserving import Deciding


def made(place: str, *data_sets: dict[str, Any], clock: Clock | None = None) -> Ledger:
    """A new ledger with these data sets."""
    ledger = Ledger(place, clock=clock or Clock())
    for one in data_sets:
        ledger.create(one)
    return ledger


def reserved(ledger: Ledger, document: Any, **more: Any) -> LedgerEntry:
    return ledger.reserve(document, **{"who": "ann", "purpose": "a test"} | more)


def block_of(ledger: Ledger, name: str = "all", data_set: str | None = None) -> Any:
    (record,) = ledger.status(data_set).data_sets
    return next(block for block in record.blocks if block.name == name)


def spent_in(ledger: Ledger, filter: str, block: str = "all", data_set: str | None = None) -> list[float]:
    found = next(one for one in block_of(ledger, block, data_set).filters if one.name == filter)
    return [term.spent for term in found.terms]


def refusal(caught: pytest.ExceptionInfo[Any]) -> Any:
    (problem,) = caught.value.problems
    return problem


FILTERS = [{"name": "analysts", "mu": 0.5}]


def test_a_life_of_an_entry(place: str) -> None:
    ledger = made(place, data_set())
    document = sampled()
    entry = reserved(ledger, document, purpose="first model")
    assert (entry.state, entry.who, entry.purpose, entry.rounds) == ("reserved", "ann", "first model", 100)
    assert ledger.begin(entry).state == "begun"
    certificate = pyaccount.certify(document)
    committed = ledger.commit(entry.id, certificate)
    assert (committed.state, committed.epsilon, committed.delta) == ("committed", certificate.epsilon, 1e-6)
    assert ledger.entry(entry.id) == committed
    assert [event.event for event in ledger.history().events] == ["data-set-created", "reserved", "begun", "committed"]
    assert ledger.verify(recompute=True).intact


def test_the_total_is_the_certificate_of_all_phases(place: str) -> None:
    """Fixed entries composed with the whole budget of the filter, and equal entries as one that is run twice."""
    ledger = made(place, data_set(filters=FILTERS, privacy={"epsilon": 9, "delta": 1e-6}))
    documents = [sampled(), sampled("again"), gaussian(0.3), sampled(rounds=50)]
    for document in documents:
        reserved(ledger, document)
    phases = [{key: one[key] for key in ("training", "sampler", "noise")} for one in documents]
    joint = {
        **{key: documents[0][key] for key in ("pyaccount", "name", "privacy")},
        "phases": [*phases, {"mechanism": {"kind": "stated", "mu": 0.5}}],
    }
    total = block_of(ledger).total
    certificate = pyaccount.certify(joint)
    assert certificate.epsilon_lower <= total.epsilon <= certificate.epsilon * (1.0 + 1e-4)
    assert (total.value, total.delta, total.fixed) == (total.epsilon, 1e-6, 4)


def test_gaussian_entries_have_a_closed_form(place: str) -> None:
    ledger = made(place, data_set(filters=FILTERS))
    for mu in (0.1, 0.2, 0.2):
        reserved(ledger, gaussian(mu))
    exact = gaussian_epsilon((0.01 + 0.04 + 0.04 + 0.25) ** 0.5, 1e-6)
    total = block_of(ledger).total.value
    assert exact * (1.0 - 1e-12) <= total <= exact * (1.0 + 1e-4)


def test_a_fixed_entry_that_does_not_fit_is_refused_with_what_is_left(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(privacy={"epsilon": 1, "delta": 1e-6}))
    reserved(ledger, gaussian(0.1))
    with pytest.raises(BudgetError) as caught:
        reserved(ledger, gaussian(0.1, rounds=16))
    snapshot(refusal(caught))
    assert gaussian_epsilon(0.05**0.5, 1e-6) <= 1.0 < gaussian_epsilon(0.06**0.5, 1e-6)
    reserved(ledger, gaussian(0.1, rounds=4))
    assert [event.event for event in ledger.history().events].count("reserved") == 2


def test_after_a_beginning_entries_are_adaptive(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(filters=FILTERS))
    first, second = reserved(ledger, sampled()), reserved(ledger, gaussian(0.1))
    assert [one.places[0].filter for one in (first, second)] == [None, None]
    ledger.begin(first)
    third = reserved(ledger, gaussian(0.3))
    assert third.places[0].filter == "analysts"
    assert spent_in(ledger, "analysts") == pytest.approx([0.3], rel=1e-15)
    # What was reserved before stays fixed, and may begin.
    assert ledger.begin(second).places[0].filter is None
    snapshot.raised(lambda: reserved(ledger, gaussian(0.41)))
    assert reserved(ledger, gaussian(0.4)).places[0].filter == "analysts"
    snapshot.raised(lambda: reserved(ledger, sampled()))


def test_without_filters_nothing_adaptive_fits(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set())
    ledger.begin(reserved(ledger, gaussian(0.1)))
    snapshot.raised(lambda: reserved(ledger, gaussian(0.01)))


def test_the_first_filter_that_admits_an_entry_takes_it_or_the_named_one(place: str) -> None:
    filters = [*FILTERS, {"name": "vendors", "epsilon": 1, "delta": 1e-7}]
    ledger = made(place, data_set(filters=filters, privacy={"epsilon": 5, "delta": 1e-6}))
    ledger.begin(reserved(ledger, gaussian(0.1)))
    assert reserved(ledger, gaussian(0.1)).places[0].filter == "analysts"
    vendor = stated(epsilon=0.25, delta=1e-8)
    assert reserved(ledger, vendor).places[0].filter == "vendors"
    named = reserved(ledger, gaussian(0.1, delta=1e-8), filter="vendors")
    assert named.places[0].filter == "vendors"
    epsilon, delta = spent_in(ledger, "vendors")
    assert 0.25 + gaussian_epsilon(0.1, 1e-8) <= epsilon <= 0.25 + gaussian_epsilon(0.1, 1e-8) * (1.0 + 1e-3)
    assert Fraction(1e-8) * 2 <= Fraction(delta) <= Fraction(2.0001e-8)
    with pytest.raises(LedgerError) as caught:
        reserved(ledger, vendor, filter="nobody")
    assert (refusal(caught).slug, refusal(caught).value) == ("unknown-name", "nobody")


def test_an_entry_may_name_a_filter_before_anything_has_begun(place: str) -> None:
    ledger = made(place, data_set(filters=FILTERS))
    assert reserved(ledger, gaussian(0.1), filter="analysts").places[0].filter == "analysts"
    assert block_of(ledger).total.fixed == 0


@pytest.mark.parametrize("budget", [{"mu": 0.5}, {"rho": 0.125}])
def test_a_budget_of_one_filter_counts_everything(place: str, budget: dict[str, float], snapshot: Snapshot) -> None:
    ledger = made(place, data_set(privacy=budget))
    first = reserved(ledger, gaussian(0.3))
    ledger.begin(first)
    assert [first.places[0].filter, reserved(ledger, gaussian(0.4)).places[0].filter] == ["budget", "budget"]
    block = block_of(ledger)
    assert (block.total, block.share, block.filters[0].terms[0].left) == (None, 1.0, 0.0)
    snapshot.raised(lambda: reserved(ledger, gaussian(1e-4)))


def test_a_limit_on_attacks_is_a_budget(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(privacy={"risk": {"advantage": 0.3}}))
    reserved(ledger, gaussian(0.5))
    # The advantage of a Gaussian mechanism is 2Φ(μ/2) − 1.
    assert block_of(ledger).total.value == pytest.approx(0.197413, rel=1e-4)
    snapshot.raised(lambda: reserved(ledger, gaussian(0.7)))


def test_a_reservation_is_given_back(place: str) -> None:
    ledger = made(place, data_set(filters=FILTERS))
    first, second = reserved(ledger, gaussian(0.3)), reserved(ledger, gaussian(0.2))
    before = block_of(ledger).total.value
    assert ledger.release(second).places[0].counts is False
    assert block_of(ledger).total.fixed == 1
    assert block_of(ledger).total.value < before
    again = reserved(ledger, gaussian(0.2))
    assert block_of(ledger).total.value == before
    ledger.begin(first)
    # Once something has begun, a plan keeps its price.
    assert ledger.release(again).places[0].counts is True
    assert block_of(ledger).total.value == before
    adaptive = reserved(ledger, gaussian(0.5))
    assert ledger.release(adaptive).places[0].counts is False
    assert spent_in(ledger, "analysts") == [0.0]
    for entry, state in ((again, "released"), (first, "begun")):
        with pytest.raises(LedgerError) as caught:
            ledger.release(entry)
        assert (refusal(caught).slug, refusal(caught).value) == ("not-allowed-now", state)
    assert ledger.verify(recompute=True).intact


def test_giving_back_rounds_upwards(place: str) -> None:
    """What is spent stays an upper bound on the exact sum of what counts, whatever is given back in between."""
    ledger = made(place, data_set(privacy={"mu": 5}))
    costs: dict[str, Fraction] = {}
    for index in range(12):
        entry = reserved(ledger, gaussian(0.1 + 0.07 * index))
        costs[entry.id] = Fraction(entry.places[0].cost[0])
        if index % 3 == 2:
            ledger.release(entry)
            del costs[entry.id]
    (spent,) = spent_in(ledger, "budget")
    exact = sum(costs.values())
    assert exact <= Fraction(spent) ** 2 <= exact * (1 + Fraction(1, 10**14))


def test_blocks_have_accounts_of_their_own(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(filters=FILTERS, blocks=[{"name": "north"}, {"name": "south"}]))
    snapshot.raised(lambda: reserved(ledger, gaussian(0.1)))
    first = reserved(ledger, gaussian(0.1), blocks=["north"])
    ledger.begin(first)
    both = reserved(ledger, gaussian(0.2), blocks=["south", "north"])
    assert {place.block: place.filter for place in both.places} == {"south": None, "north": "analysts"}
    assert block_of(ledger, "south").begun is False
    ledger.begin(both)
    assert block_of(ledger, "south").begun is True
    ledger.add_block("east")
    assert reserved(ledger, gaussian(0.1), blocks=["east"]).places[0].filter is None
    for name in ("east", "west"):
        with pytest.raises(LedgerError) as caught:
            ledger.add_block(name) if name == "east" else reserved(ledger, gaussian(0.1), blocks=[name])
        assert refusal(caught).slug == ("not-allowed-now" if name == "east" else "unknown-name")
    snapshot.raised(lambda: reserved(ledger, gaussian(0.1), blocks=["east", "east"]))


def test_an_entry_is_refused_if_one_of_its_blocks_is_full(place: str) -> None:
    ledger = made(place, data_set(privacy={"mu": 0.5}, blocks=[{"name": "a"}, {"name": "b"}]))
    reserved(ledger, gaussian(0.5), blocks=["a"])
    with pytest.raises(BudgetError) as caught:
        reserved(ledger, gaussian(0.1), blocks=["a", "b"])
    assert refusal(caught).path[-1] == "a"
    assert block_of(ledger, "b").share == 0.0


def test_a_retired_block_takes_no_entries(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(blocks=[{"name": "a"}, {"name": "b"}]))
    waiting, running = reserved(ledger, gaussian(0.1), blocks=["a"]), reserved(ledger, gaussian(0.1), blocks=["a"])
    ledger.begin(running)
    ledger.retire_block("a")
    for refused in (lambda: reserved(ledger, gaussian(0.1), blocks=["a"]), lambda: ledger.begin(waiting)):
        snapshot.raised(refused)
    snapshot.raised(ledger.retire_block, "a")
    # What runs already is committed all the same, and one block is left to choose from.
    assert ledger.commit(running, pyaccount.certify(gaussian(0.1))).state == "committed"
    assert reserved(ledger, gaussian(0.1)).places[0].block == "b"


def test_each_month_of_data_has_a_budget(place: str, snapshot: Snapshot) -> None:
    clock = Clock("2026-03-15T12:00:00+00:00")
    periods = {"every": "month", "since": "2025-11", "keep": 3}
    ledger = made(place, data_set(privacy={"mu": 0.5}, periods=periods), clock=clock)
    for block in ("2026-02", "2026-03"):
        reserved(ledger, gaussian(0.5), blocks=[block])
    snapshot.raised(lambda: reserved(ledger, gaussian(0.1), blocks=["2026-03"]))
    assert [block.name for block in ledger.status().data_sets[0].blocks] == ["2026-02", "2026-03"]
    for block, slug in (("2025-12", "not-allowed-now"), ("2025-10", "unknown-name"), ("2026-13", "unknown-name")):
        with pytest.raises(LedgerError) as caught:
            reserved(ledger, gaussian(0.1), blocks=[block])
        assert refusal(caught).slug == slug
    clock.time = clock.time.replace(month=5)
    snapshot.raised(lambda: reserved(ledger, gaussian(0.1), blocks=["2026-02"]))
    reserved(ledger, gaussian(0.5), blocks=["2026-04"])


def test_a_document_of_other_data_is_refused(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set())
    for privacy in ({"adjacency": "zero-out"}, {"group_size": 2}):
        snapshot.raised(reserved, ledger, gaussian(0.1, **privacy))
    snapshot.raised(reserved, ledger, gaussian(0.1), data_set=made_for_users(ledger))


def made_for_users(ledger: Ledger) -> str:
    ledger.create(data_set("people", privacy={"epsilon": 3, "delta": 1e-6, "unit": "user"}))
    return "people"


def test_a_document_with_blanks_needs_its_certificate(place: str) -> None:
    ledger = made(place, data_set())
    document = gaussian(0.1) | {"noise": {"multiplier": "solve"}}
    document["privacy"] = {"adjacency": "add-remove", "epsilon": 2, "delta": 1e-6}
    with pytest.raises(DocumentError) as caught:
        reserved(ledger, document)
    assert refusal(caught).slug == "unfilled-blank"
    certificate = pyaccount.certify(document)
    entry = reserved(ledger, certificate)
    assert entry.document_sha256 == certificate.data.document_sha256
    ledger.begin(entry)
    assert ledger.commit(entry, certificate).state == "committed"


def test_a_claim_that_does_not_hold_is_not_entered(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set())
    document = gaussian(1.0, epsilon=0.1, delta=1e-6)
    failed = pyaccount.certify(document)
    assert not failed.holds
    snapshot.raised(reserved, ledger, failed)


def test_what_is_committed_must_be_what_was_reserved(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(privacy={"mu": 2}))
    entry, other = reserved(ledger, gaussian(0.1)), gaussian(0.2, "other")
    certificate = pyaccount.certify(gaussian(0.1))
    snapshot.raised(ledger.commit, entry, certificate)
    ledger.begin(entry)
    snapshot.raised(ledger.commit, entry, pyaccount.certify(other))
    snapshot.raised(ledger.commit, entry, pyaccount.certify(gaussian(0.1, adjacency="replace-one")))
    ledger.commit(entry, certificate)
    second = reserved(ledger, gaussian(0.1))
    ledger.begin(second)
    snapshot.raised(ledger.commit, second, certificate)
    snapshot.raised(ledger.commit, entry, certificate)
    snapshot.raised(ledger.begin, entry)


def test_a_budget_is_not_lowered_below_what_is_spent(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(filters=FILTERS), data_set("other", privacy={"mu": 1}))
    reserved(ledger, gaussian(0.3), data_set="customers")
    reserved(ledger, gaussian(0.5), data_set="other")
    spent = block_of(ledger, data_set="customers").total.value
    snapshot.raised(lambda: ledger.change(data_set(filters=FILTERS, privacy={"epsilon": spent * 0.999, "delta": 1e-6})))
    snapshot.raised(lambda: ledger.change(data_set("other", privacy={"mu": 0.49})))
    ledger.change(data_set(filters=FILTERS, privacy={"epsilon": spent, "delta": 1e-6}))
    ledger.change(data_set("other", privacy={"mu": 0.5}))
    snapshot.raised(lambda: reserved(ledger, gaussian(0.01), data_set="other"))
    ledger.change(data_set("other", privacy={"mu": 0.6}, blocks=[{"name": "new"}]))
    reserved(ledger, gaussian(0.3), data_set="other", blocks=["all"])
    reserved(ledger, gaussian(0.6), data_set="other", blocks=["new"])
    assert ledger.verify(recompute=True).intact


def test_a_data_set_keeps_what_entries_rely_on(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(filters=FILTERS))
    for changed in (
        data_set(),
        data_set(filters=FILTERS, privacy={"epsilon": 3, "delta": 1e-6, "adjacency": "zero-out"}),
        data_set(privacy={"mu": 1}),
    ):
        snapshot.raised(ledger.change, changed)
    snapshot.raised(lambda: ledger.create(data_set()))
    snapshot.raised(lambda: ledger.create(data_set("small", filters=FILTERS, privacy={"epsilon": 1, "delta": 1e-6})))


def test_whole_filters_in_epsilon_and_delta_add_up_exactly(place: str) -> None:
    """A budget that its filters take in full is not refused for an error of rounding."""
    filters = [{"name": "a", "epsilon": 0.75, "delta": 5e-7}, {"name": "b", "epsilon": 0.25, "delta": 5e-7}]
    ledger = made(place, data_set(filters=filters, privacy={"epsilon": 1, "delta": 1e-6}))
    assert block_of(ledger).total.value == 1.0


def test_the_clock_does_not_go_back(place: str) -> None:
    clock = Clock()
    ledger = made(place, data_set(), clock=clock)
    before = ledger.history().events[-1].time
    clock.time = clock.time.replace(hour=11, minute=54)
    with pytest.raises(LedgerError) as caught:
        reserved(ledger, gaussian(0.1))
    assert refusal(caught).slug == "clock-behind"
    clock.time = Clock().time
    clock.time = clock.time.replace(hour=11, minute=57)
    entry = reserved(ledger, gaussian(0.1))
    # A clock that is a little behind is not an error, and times never decrease.
    assert entry.reserved == before


def test_a_reservation_with_an_id_is_made_once(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(privacy={"mu": 0.5}))
    first = reserved(ledger, gaussian(0.4), id="job-7")
    assert (first.id, reserved(ledger, gaussian(0.4), id="job-7")) == ("job-7", first)
    ledger.begin("job-7")
    assert reserved(ledger, gaussian(0.4), id="job-7").state == "begun"
    for changed in ({"who": "bob"}, {"source": gaussian(0.1)}):
        with snapshot.raises(LedgerError):
            ledger.reserve(**{"source": gaussian(0.4), "who": "ann", "purpose": "a test", "id": "job-7"} | changed)


@pytest.mark.parametrize("text", ["", "   ", "two\nlines", "x" * 201, 7])
def test_who_is_one_line_of_text(place: str, text: Any, snapshot: Snapshot) -> None:
    ledger = made(place, data_set())
    snapshot.raised(lambda: ledger.reserve(gaussian(0.1), who=text, purpose="a test"))


def test_unknown_names(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(), data_set("other"))
    snapshot.raised(lambda: reserved(ledger, gaussian(0.1)))
    for refused in (
        lambda: reserved(ledger, gaussian(0.1), data_set="nothing"),
        lambda: ledger.begin("e99"),
        lambda: ledger.status("nothing"),
        lambda: ledger.entry("e99"),
    ):
        with pytest.raises(LedgerError) as caught:
            refused()
        assert refusal(caught).slug == "unknown-name"


def test_a_ledger_that_does_not_exist(place: str, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: Ledger(place).status())


def test_text_of_every_kind_comes_back(place: str) -> None:
    who = "Ζωή “quoted” \\ %s :name ☕"
    ledger = made(place, data_set("données:x"))
    assert reserved(ledger, gaussian(0.1, "ε ≤ 1 :mu"), who=who).who == who
    assert ledger.status().data_sets[0].spenders[0].who == who
    assert ledger.verify().intact


def test_a_file_that_a_document_names_is_refused(place: str, tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "noise.csv").write_text("\n".join(["1.0"] * 4))
    document = gaussian(0.1, rounds=4) | {"noise": {"multiplier": {"schedule": {"file": "noise.csv", "column": 0}}}}
    file = tmp_path / "document.yaml"
    file.write_text(json.dumps(document))
    ledger = made(place, data_set())
    snapshot.raised(reserved, ledger, file)


@pytest.mark.parametrize(
    "privacy",
    [
        {"epsilon": 3, "delta": 1e-6, "adjacency": "replace-one"},
        {"epsilon": 3, "delta": 1e-6, "group_size": 2},
        {"mu": 1, "unit": "user"},
    ],
)
def test_neighbours_that_differ_in_two_blocks(place: str, privacy: dict[str, Any], snapshot: Snapshot) -> None:
    """What holds for each block does not hold for the data set: two counts with μ = 1, one moved record, μ = √2."""
    for more in ({"blocks": [{"name": "a"}, {"name": "b"}]}, {"periods": {"every": "month", "since": "2026-01"}}):
        snapshot.raised(Ledger(place).create, data_set(privacy=privacy, **more))
    ledger = made(place, data_set(privacy=privacy))
    snapshot.raised(ledger.add_block, "more")
    snapshot.raised(lambda: ledger.change(data_set(privacy=privacy, blocks=[{"name": "all"}, {"name": "more"}])))
    assert [block.name for block in ledger.status().data_sets[0].blocks] == ["all"]


def test_a_budget_that_is_changed_while_a_reservation_is_decided(
    place: str, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    """The total is that of the δ that is in force when the entry is written."""
    ledger = made(place, data_set(privacy={"epsilon": 3.24, "delta": 1e-3}))
    decide, calls = Deciding.decide, []

    def changing(self: Deciding, *asked: Any) -> Any:
        decision = decide(self, *asked)
        if not calls:
            calls.append(1)
            ledger.change(data_set(privacy={"epsilon": 3.24, "delta": 1e-10}))
        return decision

    monkeypatch.setattr(Deciding, "decide", changing)
    snapshot.raised(lambda: reserved(ledger, gaussian(1.0)))
    assert block_of(ledger).total.fixed == 0


def test_what_is_entered_on_one_block_is_not_entered_on_another(place: str, snapshot: Snapshot) -> None:
    ledger = made(place, data_set(privacy={"mu": 1}, blocks=[{"name": "a"}, {"name": "b"}]))
    entry = reserved(ledger, gaussian(0.9), blocks=["a"])
    assert ledger.admission(gaussian(0.9)).entry == entry
    assert ledger.admission(gaussian(0.9), blocks=["a"]).entry == entry
    assert ledger.admission(gaussian(0.9), blocks=["b"]).entry is None
    reserved(ledger, gaussian(0.8), blocks=["b"])
    for blocks in (["b"], ["a", "b"]):
        with snapshot.raises(BudgetError):
            ledger.admission(gaussian(0.9), blocks=blocks)
