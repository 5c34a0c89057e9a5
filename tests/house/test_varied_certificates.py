"""Certificates that satisfy their schema, with other values, give a verdict or a located error, never another exception.

`PYACCOUNT_FUZZ=100000` checks 100,000 of them; by default it is 160. `test_robustness.py` tests damage to the text.
"""

import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from certificate_samples import MORE, fresh
from gate_tools import ALL, changed, everywhere, golden, rehashed, save
from mutations import text_of
from schema_mutations import Varied
from snapshots import Snapshot

import pyaccount
from pyaccount import cli, schemas
from pyaccount.certificate.compared import row_of
from pyaccount.certificate.comparison import Comparison
from pyaccount.certificate.comparison import comparison_text as compared
from pyaccount.certificate.reading import parse_certificate
from pyaccount.certificate.report import page_of
from pyaccount.certificate.report.sections import profile_page
from pyaccount.certificate.saving import certificate_text, contradictions
from pyaccount.document.policy import load_policy
from pyaccount.execute.options import RunOptions
from pyaccount.execute.sampling import retest
from pyaccount.gate.check import verdict_on
from pyaccount.gate.verify import How, recompute
from pyaccount.pages.html import notebook
from pyaccount.records.certificate import CertificateModel
from pyaccount.running import Plan

COUNT = int(os.environ.get("PYACCOUNT_FUZZ", "160"))
SEEDS = range(4)
#: One in this many is printed in every form, and one in this many is recomputed.
PRINTED, RECOMPUTED = 20, 8

#: A policy with a limit on everything.
POLICY = load_policy(
    {
        "pyaccount": 1,
        "kind": "policy",
        "name": "everything",
        "limits": {
            "max_epsilon": 8, "max_delta": 1e-5, "max_advantage": 0.5, "max_true_positive_rate": 0.2,
            "at_false_positive_rate": 0.01, "adjacency": ["zero-out", "add-remove"], "unit": "record", "group_size": 1,
            "guarantee": "verified", "max_failure_probability": 1e-6, "max_age": "9000 d",
        },
    }
)  # fmt: skip


@cache
def originals() -> tuple[tuple[Varied, pyaccount.Certificate | None], ...]:
    """Return the originals of the copies, each with its recomputed certificate; recomputing an amplification is quick anyway."""
    whole, amplified = schemas.schema("certificate"), schemas.schema("amplification-certificate")
    found: list[tuple[Varied, pyaccount.Certificate | None]] = []
    for path in ALL:
        data = json.loads(path.read_text(encoding="utf-8"))
        known = data["kind"] == "certificate"
        found.append((Varied(data, whole if known else amplified), pyaccount.Certificate.load(path) if known else None))
    found += [(Varied(json.loads(fresh(name).to_json()), whole), fresh(name)) for name in MORE]
    return tuple(found)


class Given:
    """A certificate file in memory, with a given text."""

    def __init__(self, text: bytes) -> None:
        self.text = text.decode()

    def to_json(self) -> str:
        return self.text


def printed(text: bytes) -> None:
    """Print a certificate in every form that people read. Raises `CertificateError` if the text is not a certificate."""
    data = parse_certificate(text, "c.json").any()
    wrong = contradictions(data)
    for form in ("text", "markdown", "html", "json"):
        certificate_text(data, form, wrong).encode()
    if isinstance(data, CertificateModel):
        notebook(page_of(data))
        notebook(profile_page(data))
        table = Comparison(pyaccount=1, kind="comparison", rows=[row_of(data, 0.0, finished=True)])
        for form in ("text", "markdown", "html", "json"):
            compared(table, form).encode()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_varied_certificate_gets_a_verdict_or_a_located_error(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, copied = random.Random(seed), originals()
    recomputed: list[pyaccount.Certificate | None] = [None]
    monkeypatch.setattr(Plan, "run", lambda self, **options: recomputed[0])
    monkeypatch.setattr(retest, "retest", stopped)
    for number in range(COUNT // len(SEEDS)):
        varied, recomputed[0] = rng.choice(copied)
        text = text_of(varied.copy(rng))
        try:
            verdict = verdict_on([Given(text)], policy=POLICY)
            verdict.to_json().encode()
            verdict.to_text(80)
            if number % PRINTED == 0:
                printed(text)
            if number % RECOMPUTED == 0:
                found = recompute(pyaccount.Certificate.from_json(text.decode()), How(RunOptions(time_limit=2.0)))
                found.to_json().encode()
                found.to_text()
        except pyaccount.PyaccountError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}, number {number}: {text.decode()}") from error


def stopped(*_: object, **__: object) -> None:
    """Replace the function that draws samples, so that a recomputation stops there."""
    raise pyaccount.LimitError("the samples are not what is tested")


def exit_codes(folder: Path, certificate: dict[str, Any]) -> tuple[int, ...]:
    path = str(save(folder, certificate))
    # The certificates meet these limits.
    limits = ("--max-epsilon", "100", "--max-delta", "0.5")
    return cli.run(["check", path, *limits]), cli.run(["report", path, "--format", "text"])


def test_a_run_of_no_rounds_is_no_certificate(tmp_path: Path, snapshot: Snapshot) -> None:
    whole = json.loads(fresh("allocation").to_json())
    assert exit_codes(tmp_path, whole) == (0, 0)
    for name in ("iterations", "count"):
        for number in (0, -1, 10**9 + 1):
            snapshot.raised(
                pyaccount.Certificate.load, save(tmp_path, changed(whole, **{f"phases__0__{name}": number}))
            )
            assert exit_codes(tmp_path, changed(whole, **{f"phases__0__{name}": number})) == (2, 2)


def test_a_missing_estimate_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pyaccount.Certificate.from_json(json.dumps(golden("confidence")))
    monkeypatch.setattr(Plan, "run", lambda self, **options: made)
    path = save(tmp_path, changed(golden("confidence"), profile__0__delta_estimate=None))
    assert cli.run(["verify", str(path)]) == 1


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("inverse", {"phases__0__matrix__inverse_coefficients": []}),
        ("inverse", {"document__matrix__bands": [2]}),
        ("inverse", {"phases__0__matrix__inverse_coefficients": [1e308, -1e308, 1e308]}),
        ("workload", {"phases__0__noise_multiplier": 1e300}),
        ("workload", {"phases__0__matrix__coefficients": [5e-324, 1e308]}),
        ("workload", {"document__workload__learning_rates": 5}),
        ("workload", {"utility__prefix_sum_mse": 1e308, "phases__0__noise_multiplier": -1e300}),
        ("releases", {"phases__0__noise_multiplier": 1e-200, "document__noise__multiplier": 1e-200}),
        (
            "releases",
            {
                "document__noise__also": [{"what": "count", "multiplier": 1e-200}],
                "phases__0__also__0__noise_multiplier": 1e-200,
            },
        ),
        ("epochs", {"document__training__dataset_size": 1e-300, "document__training__expected_batch_size": 1e300}),
        ("draws", {"document__training__dataset_size": 10**305, "phases__0__draws_per_iteration": 0}),
        ("bins", {"phases__0__expected_batch_size": None, "phases__0__distinct_records": 3.0}),
        ("batch", {"profile__0__epsilon": 0.0, "guarantee__epsilon": 0.0}),
    ],
)
def test_numbers_at_which_arithmetic_goes_wrong(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """Values that caused a bug, or are similar to one that did, give a verdict or an error."""
    codes = exit_codes(tmp_path, rehashed(changed(json.loads(fresh(name).to_json()), **changes)))
    assert set(codes) <= {0, 1, 2}


@pytest.mark.parametrize("error", [0.0, 5e-324, 1.7976931348623157e308])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1.0, 1.7976931348623157e308])
def test_pictures_of_numbers_at_the_ends_of_the_doubles(epsilon: float, error: float) -> None:
    certificate = changed(golden("deterministic"), guarantee__epsilon=epsilon, utility__prefix_sum_mse=error)
    row = row_of(pyaccount.Certificate.from_json(json.dumps(certificate)).data, 0.0, finished=True)
    page = compared(Comparison(pyaccount=1, kind="comparison", rows=[row]), "html")
    assert ("<svg" in page) == (epsilon > 0.0 and error > 0.0)
    for delta in (5e-324, 1.0):
        printed(text_of(everywhere(certificate, lambda point, delta=delta: point.update(epsilon=epsilon, delta=delta))))


def test_integers_that_are_no_doubles_are_no_numbers(tmp_path: Path, snapshot: Snapshot) -> None:
    for number in (10**309, -(10**399), 2**1024):
        certificate = changed(golden("deterministic"), privacy__group_size=number)
        snapshot.raised(pyaccount.Certificate.load, save(tmp_path, certificate))
