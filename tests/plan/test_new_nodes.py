"""A leaf and a combinator that exist only here are certified, verified, composed and filtered, once they are registered."""

import itertools
import json
import math
import subprocess
import sys
from typing import Any

import pytest
from places import ROOT

#: What the process with both in its tables runs first. Its serialisers were made before, and warn.
PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import coin_release, half_of_the_time
coin_release.register()
half_of_the_time.register()
import pyaccount
from pyaccount.filters import BasicFilter

COIN = {"mechanism": {"kind": "coin", "heads": 0.75}}
NODE = {"sometimes": 0.5, "phases": [COIN], "count": 2}

def document(*phases, adjacency="replace-one", epsilon=0.5, delta="solve"):
    privacy = {"adjacency": adjacency, "epsilon": epsilon, "delta": delta}
    return {"pyaccount": 1, "name": "new", "privacy": privacy, "phases": list(phases)}

def refused(*phases, **changes):
    try:
        pyaccount.compile(document(*phases, **changes))
    except pyaccount.DocumentError as error:
        return [[one.slug, one.path_text] for one in error.problems]

print(json.dumps(%s))
"""
#: Each outcome of a coin of 3/4 that is flipped with a chance of 1/2, where it is shown if it is: two laws.
SOMETIMES = ((0.375, 0.125), (0.125, 0.375), (0.5, 0.5))
COIN = ((0.75, 0.25), (0.25, 0.75))


def told(expression: str) -> Any:
    paths = json.dumps([str(ROOT), str(ROOT / "tests" / "helpers")])
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM % expression, paths]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def delta(epsilon: float, *laws: tuple[tuple[float, float], ...]) -> float:
    """The hockey-stick divergence of a product of laws, outcome by outcome."""
    products = ([math.prod(side) for side in zip(*outcome, strict=True)] for outcome in itertools.product(*laws))
    return math.fsum(max(0.0, first - math.exp(epsilon) * second) for first, second in products)


@pytest.mark.parametrize(
    ("phases", "laws"),
    [("COIN", (COIN,)), ("NODE", (SOMETIMES, SOMETIMES)), ("NODE, COIN", (SOMETIMES, SOMETIMES, COIN))],
)
def test_certified(phases: str, laws: Any) -> None:
    assert told(f"pyaccount.certify(document({phases})).delta") == pytest.approx(delta(0.5, *laws), rel=1e-3)


def test_words_and_record() -> None:
    subjects = told("[one.subject for one in pyaccount.compile(document(NODE, COIN)).reductions]")
    assert subjects == ["sometimes: a bit that a coin may turn", "a bit that a coin may turn"]
    inside = [{"mechanism": {"kind": "coin", "heads": 0.75}}]
    assert told("[one.mechanism.model_dump() for one in pyaccount.certify(document(NODE, COIN)).data.phases]") == [
        {"kind": "sometimes", "stated": {"sometimes": 0.5, "phases": inside}},
        {"kind": "coin", "stated": {"heads": 0.75}},
    ]


def test_refusals() -> None:
    assert told("refused(NODE, adjacency='add-remove')") == [["no-valid-bound", "privacy.adjacency"]]
    assert told("refused(NODE | {'sometimes': 2.0})") == [["out-of-range", "phases[0].sometimes"]]


def test_verified() -> None:
    assert told("pyaccount.verify(pyaccount.certify(document(NODE, COIN))).agrees") is True


def test_composed() -> None:
    both = "[pyaccount.certify(document(one)) for one in (NODE, COIN)]"
    found = told(f"pyaccount.compose({both}, delta=0.3).epsilon")
    assert delta(found, SOMETIMES, SOMETIMES, COIN) == pytest.approx(0.3, rel=1e-2)


def test_filtered() -> None:
    """Two coins that are shown, with the loss ln 3 each, and a third one."""
    cost = told("list(BasicFilter(10.0, 1e-6).cost(pyaccount.load(document(NODE, COIN, epsilon='solve', delta=0.0))))")
    assert cost[0] == pytest.approx(3.0 * math.log(3.0), rel=1e-9)
