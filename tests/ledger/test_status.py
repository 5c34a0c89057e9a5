"""The status of a ledger: numbers with their directions, the page, JSON, OpenMetrics, and the history."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from ledger_samples import Clock, data_set, gaussian, stated

from pyaccount import Ledger
from pyaccount.ledger.access import periods_between
from pyaccount.pages.page import Figure
from pyaccount.pages.svg import svg
from pyaccount.schemas import SCHEMAS

FILTERS = [
    {"name": "analysts", "mu": 0.5},
    {"name": "vendors", "epsilon": 1, "delta": 1e-7},
    {"name": "training", "renyi": [{"order": 8, "epsilon": 1}, {"order": 2, "epsilon": 0.5}]},
]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger(tmp_path / "budgets.db", clock=Clock())
    made.create(data_set(filters=FILTERS, privacy={"epsilon": 8, "delta": 1e-6}, blocks=[{"name": "a"}, {"name": "b"}]))
    made.create(data_set("attacked", privacy={"risk": {"advantage": 0.3}}))
    made.create(data_set("monthly", privacy={"rho": 0.5}, periods={"every": "month", "since": "2026-01"}))
    made.begin(made.reserve(gaussian(0.2), who="ann", purpose="p", data_set="customers", blocks=["a"]))
    for who, mu in (("ann", 0.1), ("bob", 0.2), ("bob", 0.3)):
        made.reserve(gaussian(mu), who=who, purpose="q", data_set="customers", blocks=["a"])
    made.reserve(stated(epsilon=0.5, delta=1e-8), who="eve", purpose="v", data_set="customers", blocks=["a"])
    made.reserve(gaussian(0.2), who="ann", purpose="p", data_set="attacked")
    made.retire_block("b", data_set="customers")
    return made


def test_the_numbers_have_the_directions_that_they_state(ledger: Ledger) -> None:
    customers = ledger.status("customers").data_sets[0]
    first, second = customers.blocks
    assert (first.name, first.open, first.begun, second.open, second.begun) == ("a", True, True, False, False)
    mus = [Fraction(repr(1.0 / mu)) ** -2 for mu in (0.1, 0.2, 0.3)]
    analysts, vendors, training = first.filters
    (term,) = analysts.terms
    assert Fraction(term.spent) ** 2 >= sum(mus) > Fraction(term.spent) ** 2 * (1 - Fraction(1, 10**14))
    left = Fraction(1, 4) - sum(mus)
    assert Fraction(term.left) ** 2 <= left < Fraction(term.left) ** 2 * (1 + Fraction(1, 10**13))
    assert Fraction(analysts.share) >= sum(mus) * 4 > Fraction(analysts.share) * (1 - Fraction(1, 10**14))
    assert (term.limit, analysts.entries) == (0.5, 3)
    # The median of μ² = 0.01, 0.04 and 0.09 is 0.04, of which 0.11 has room for two more.
    assert analysts.typical is not None
    assert (analysts.typical.share, analysts.typical.fitting) == (pytest.approx(0.16), 2)
    assert [(one.term, one.limit, one.spent) for one in vendors.terms] == [("ε", 1.0, 0.5), ("δ", 1e-7, 1e-8)]
    assert [(one.term, one.limit) for one in training.terms] == [("D_2", 0.5), ("D_8", 1.0)]
    assert vendors.share == 0.5
    assert first.total is not None
    assert first.share == first.total.value / 8
    assert [(one.who, one.reserved, one.begun) for one in customers.spenders] == [
        ("bob", 2, 0),
        ("eve", 1, 0),
        ("ann", 1, 1),
    ]
    assert [one.state for one in customers.open] == ["begun", "reserved", "reserved", "reserved", "reserved"]


def test_every_number_of_the_page_is_explained(ledger: Ledger) -> None:
    page = ledger.status().page()
    assert {number.origin for number in page.numbers()} <= set(page.origins)
    figures = [block for section in page.sections for block in section.blocks if isinstance(block, Figure)]
    assert [figure.name for figure in figures] == ["budget-1", "budget-2"]
    text = ledger.status().to_text(160)
    for words in ("begun: new entries are adaptive", "retired", "analysts", "ε at most", "advantage at most", "bob"):
        assert words in text
    assert "No period has an entry yet" in text
    html = ledger.status().to_html()
    assert html.count("<svg") >= 2
    assert "about 52 %" in html
    assert "analysts" in ledger.status().to_markdown()


def test_a_bar_is_as_long_as_its_share_of_the_budget(ledger: Ledger) -> None:
    status = ledger.status("customers")
    page = status.page()
    (figure,) = [block for section in page.sections for block in section.blocks if isinstance(block, Figure)]
    drawn = svg(figure.plot, "picture")
    left, right = (
        float(re.search(rf'x="([\d.]+)" y="[\d.]+" text-anchor="middle">{tick}<', drawn)[1]) for tick in (0, 100)
    )
    width = float(re.search(r'class="bar" x="[\d.]+" y="[\d.]+" width="([\d.]+)"', drawn)[1])
    assert width / (right - left) == pytest.approx(status.data_sets[0].blocks[0].share, abs=1e-3)


def test_nothing_spent_has_no_picture(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budgets.db")
    ledger.create(data_set())
    page = ledger.status().page()
    assert not any(isinstance(block, Figure) for section in page.sections for block in section.blocks)
    assert "<svg" not in ledger.status().to_html().split("</style>")[-1]


def test_json_keeps_its_schemas(ledger: Ledger) -> None:
    for name, result in (
        ("ledger-status", ledger.status()),
        ("ledger-history", ledger.history("customers")),
        ("ledger-verification", ledger.verify(recompute=True)),
    ):
        jsonschema.validate(json.loads(result.to_json()), SCHEMAS[name]())


#: The lines of OpenMetrics, version 1.0: metadata and samples.
LINE = re.compile(
    r"# (?:TYPE|UNIT|HELP) [a-z_]+ .+|"
    r'[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,(?!\})|(?=\})))+\})? (?:[0-9.e+-]+)'
)


def test_openmetrics(ledger: Ledger) -> None:
    ledger.reserve(gaussian(0.01), who='quoted "name" \\', purpose="p", data_set="monthly", blocks=["2026-03"])
    text = ledger.status().to_openmetrics()
    *lines, end = text.splitlines()
    assert end == "# EOF"
    assert text.endswith("\n")
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    # A family is announced once, before its samples, which stand together.
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(families)) == len(families)
    assert 'pyaccount_filter_spent{data_set="customers",block="a",filter="vendors",term="ε"} 0.5' in lines
    assert 'pyaccount_entries{data_set="monthly",who="quoted \\"name\\" \\\\",state="reserved"} 1' in lines
    assert f"pyaccount_ledger_events_total {len(ledger.history().events)}" in lines
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client is not installed")
    assert [family.name for family in parser.text_string_to_metric_families(text)]


def test_the_history_of_one_data_set(ledger: Ledger) -> None:
    whole, own = ledger.history(), ledger.history("attacked")
    assert [event.event for event in own.events] == ["data-set-created", "reserved"]
    assert {event.sequence for event in own.events} < {event.sequence for event in whole.events}
    assert own.events[1].content["who"] == "ann"
    text = whole.to_text(180)
    assert "by bob for q, on a (analysts)" in text
    assert whole.events[-1].hash[:12] in text


@pytest.mark.parametrize(
    ("name", "every", "expected"),
    [
        ("2026-03", "month", 0),
        ("2026-02", "month", 1),
        ("2025-03", "month", 12),
        ("2026-04", "month", -1),
        ("2024", "year", 2),
        ("2026-02-28", "day", 15),
    ],
)
def test_periods(name: str, every: str, expected: int) -> None:
    assert periods_between(name, Clock().time, every) == expected
