"""A sampler is added by its two modules and their places in the lists: it is planned, certified, checked and verified as any."""

import json
from typing import Any

import pytest
from extended import PLAN, extended, run_in
from places import ROOT
from plain_documents import doc

import pyaccount

DOCUMENT: dict[str, Any] = doc(
    name="flipped", adjacency="add-remove", epsilon=2, iterations=384, sampler="coin-flips", flips=7, multiplier="solve"
)

PROGRAM = """\
import json, sys
import pyaccount
from pyaccount.errors import DocumentError

document = json.loads(sys.argv[1])
certificate = pyaccount.certify(document)
try:
    refused = pyaccount.compile(document | {"matrix": {"kind": "banded-square-root", "bands": 4}})
except DocumentError as error:
    refused = str(error)
accountant = pyaccount.Accountant.from_certificate(certificate)
accountant.step(100)
print(json.dumps({
    "certificate": json.loads(certificate.to_json()),
    "passes": bool(pyaccount.check(certificate, max_epsilon=2, max_delta=1e-3)),
    "reproduced": bool(pyaccount.verify(certificate)),
    "refused": refused,
    "spent": accountant.epsilon_spent(),
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = extended(tmp_path_factory.mktemp("extended"))
    found: dict[str, Any] = json.loads(run_in(folder, PROGRAM, json.dumps(DOCUMENT)))
    return found


def test_it_is_certified_as_the_sampling_that_it_is(found: dict[str, Any]) -> None:
    poisson = {"sampler": {"kind": "poisson"}, "training": {"iterations": 384, "sampling_probability": 1 / 128}}
    same = json.loads(pyaccount.certify(DOCUMENT | poisson).to_json())
    ours = found["certificate"]
    for key in ("guarantee", "solved", "directions", "profile", "utility", "unamplified"):
        assert ours[key] == same[key]
    assert ours["phases"][0]["sampler"] == "coin-flips"
    assert ours["phases"][0]["sampling_probability"] == 1 / 128
    assert ours["reductions"][0]["subject"] == "coin flips"


def test_gates_take_it(found: dict[str, Any]) -> None:
    assert found["passes"]
    assert found["reproduced"]


def test_what_ties_rounds_together_is_refused(found: dict[str, Any]) -> None:
    assert "no bound is implemented for coin-flips sampling" in found["refused"]


def test_an_accountant_cuts_it_short(found: dict[str, Any]) -> None:
    assert 0.0 < found["spent"] < 2.0


def test_the_guide_shows_it() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = guide.split("```python\n")[2].partition("```")[0]
    lines = [line.partition("  #")[0] for line in shown.rstrip().splitlines()]
    assert lines[0] == "class CoinFlipsPlan(SamplerPlan[SamplerKind]):"
    assert "\n".join(lines) in PLAN.read_text(encoding="utf-8")
