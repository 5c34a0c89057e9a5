"""A sampler that is added by its modules goes all the way: its certificate is a page, and its run draws batches of its law."""

import json
from typing import Any

import batch_laws
import pytest
from extended import BATCHES, extended, run_in
from places import ROOT
from plain_documents import doc

#: Runs that are drawn, and the probability with which runs of the true law would fail the test, for a choice of keys.
RUNS, RARE = 3000, 1e-4
RECORDS, ROUNDS, FLIPS = 3, 2, 1

DOCUMENT: dict[str, Any] = doc(
    "name=flipped epsilon=2 sampler=coin-flips multiplier=solve", dataset_size=RECORDS, iterations=ROUNDS, flips=FLIPS
)

PROGRAM = """\
import hashlib, json, sys
import pyaccount
from pyaccount.plan.protection import Protection
from pyaccount.training.batches import batches_of
from pyaccount.training.key import RunKey

source, runs, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
certificate = pyaccount.certify(source)
document = pyaccount.load(source | {"noise": {"multiplier": 1}})

def drawn(number):
    key = RunKey(hashlib.blake2b(number.to_bytes(8, "little"), digest_size=32).digest())
    batches = batches_of(Protection.of(document).runs()[0], key)
    return [batches.batch(round).indices.tolist() for round in range(batches.rounds)]

with pyaccount.TrainingRun(certificate, folder, records=3) as run:
    first = run.batch(0).indices.tolist()
print(json.dumps({
    "page": certificate.to_text(),
    "html": certificate.to_html(),
    "runs": [drawn(number) for number in range(runs)],
    "first": first,
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = extended(tmp_path_factory.mktemp("extended"))
    arguments = json.dumps(DOCUMENT), str(RUNS), str(folder / "run")
    found: dict[str, Any] = json.loads(run_in(folder, PROGRAM, *arguments))
    return found


def test_its_batches_are_of_its_law(found: dict[str, Any]) -> None:
    runs = [tuple(tuple(batch) for batch in run) for run in found["runs"]]
    assert batch_laws.p_value(batch_laws.poisson(RECORDS, ROUNDS, 0.5**FLIPS), runs) > RARE
    assert batch_laws.p_value(batch_laws.poisson(RECORDS, ROUNDS, 0.45), runs) < RARE


def test_a_training_run_draws_it(found: dict[str, Any]) -> None:
    assert set(found["first"]) <= set(range(RECORDS))


@pytest.mark.parametrize("form", ["page", "html"])
def test_its_certificate_is_a_page(form: str, found: dict[str, Any]) -> None:
    assert "coin-flips" in found[form]
    assert "coin flips" in found[form]


def test_the_guide_shows_it() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = guide.split("```python\n")[3].partition("```")[0]
    lines = [line.partition("  #")[0] for line in shown.rstrip().splitlines()]
    assert lines[0] == "class CoinFlipsBatches(RunBatches):"
    assert "\n".join(lines) in BATCHES.read_text(encoding="utf-8")
