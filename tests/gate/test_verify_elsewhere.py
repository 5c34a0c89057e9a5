"""A certificate agrees on another processor than the one that made it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gate_tools import changed, golden, save
from plain_documents import doc
from processors import PROCESSORS, environment

import pyaccount


def verified_on(processor: str, path: Path) -> tuple[int, dict[str, object]]:
    command = [sys.executable, "-W", "ignore", "-m", "pyaccount", "verify", str(path), "--format", "json"]
    done = subprocess.run(command, env=environment(processor), capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.nightly(but=["other kernels", "other functions"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_sampled_certificates_agree_to_the_last_bit(processor: str, tmp_path: Path) -> None:
    code, found = verified_on(processor, save(tmp_path, golden("verified-choice")))
    assert (code, found["compared"]) == (0, "equal"), found["differences"]


@pytest.fixture(scope="module")
def powered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate whose test drew from a power of the likelihood ratio."""
    document = doc(
        "name=powered epsilon=1.0 delta=1e-4 sampling_probability=0.05 iterations=60 sampler=b-min-sep",
        "min_separation=4 start=warm matrix=toeplitz coefficients=[1,0.5,0.3] multiplier=solve seed=5",
        "profile=[]",
    )
    certificate = json.loads(pyaccount.certify(document).to_json())
    assert any(test["proposal"].get("order") for test in certificate["evidence"]["sampling"]["tests"])
    return save(tmp_path_factory.mktemp("powered"), certificate)


@pytest.mark.nightly(but=["one thread", "narrow vectors"])
@pytest.mark.parametrize("processor", PROCESSORS)
def test_samples_of_a_power_are_the_same_to_the_last_bit(processor: str, powered: Path) -> None:
    code, found = verified_on(processor, powered)
    assert (code, found["compared"]) == (0, "equal"), found["differences"]


def test_a_matrix_that_a_search_found_elsewhere_is_tested_again(tmp_path: Path) -> None:
    document = golden("verified")["document"]
    document["matrix"]["kind"], document["training"]["iterations"] = "optimal-toeplitz", 8
    certificate = json.loads(pyaccount.certify(document | {"accounting": {"tolerance": 0.05, "seed": 4}}).to_json())
    # The last coefficient is known to some 1e-7: another search ends here.
    column = certificate["phases"][0]["matrix"]["coefficients"]
    elsewhere = [*column[:-1], column[-1] * (1.0 + 1e-9)]
    found = pyaccount.verify(save(tmp_path, changed(certificate, phases__0__matrix__coefficients=elsewhere)))
    assert (found.agrees, found.compared) == (True, "proven")
    assert any("other last digits" in note for note in found.notes)
    # One that no search would have found is told, and nothing is tested.
    found = pyaccount.verify(save(tmp_path, changed(certificate, phases__0__matrix__coefficients=[*column[:-1], 0.9])))
    assert (found.agrees, found.compared) == (False, "equal")
