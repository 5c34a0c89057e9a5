"""What the package shows of itself: its public names and its version, and overrides in every way they can be given."""

import asyncio
import inspect
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES
from snapshots import Snapshot

import pyaccount

EXAMPLE = EXAMPLES / "check-a-claim.yaml"


def test_dir_has_the_public_names_only() -> None:
    names = dir(pyaccount)
    assert [name for name in names if not name.startswith("__")] == sorted(pyaccount.__all__)
    assert {"__all__", "__doc__", "__version__"} <= set(names)
    for name in names:
        assert getattr(pyaccount, name, None) is not None


def test_the_version_is_the_installed_one() -> None:
    assert pyaccount.__version__ == version("pyaccount-dp")


def _at_four(**given: Any) -> Any:
    yield lambda: pyaccount.load(EXAMPLE, **given).privacy.epsilon
    yield lambda: pyaccount.certify(EXAMPLE, **given).data.document["privacy"]["epsilon"]
    yield lambda: asyncio.run(pyaccount.certify_async(EXAMPLE, **given)).data.document["privacy"]["epsilon"]
    yield lambda: pyaccount.compare([EXAMPLE], **given).rows[0].holds and 4
    yield lambda: pyaccount.sweep([EXAMPLE, EXAMPLE], **given).rows[1].holds and 4
    yield lambda: pyaccount.matrix(EXAMPLE, **given) and 4


EVERY_WAY = [{"privacy.epsilon": 4}, ["privacy.epsilon=4"], [("privacy.epsilon", 4)], "privacy.epsilon=4"]


@pytest.mark.parametrize("overrides", EVERY_WAY, ids=["mapping", "texts", "pairs", "text"])
def test_overrides_are_given_in_any_way(overrides: Any) -> None:
    assert [call() for call in _at_four(overrides=overrides)] == [4] * 6


def test_every_function_with_overrides_takes_a_mapping(tmp_path: Path) -> None:
    functions = {name for name in pyaccount.__all__ if inspect.isfunction(getattr(pyaccount, name))}
    having = {name for name in functions if "overrides" in inspect.signature(getattr(pyaccount, name)).parameters}
    assert having == {"load", "certify", "certify_async", "compare", "sweep", "matrix", "amplify", "prepare"}
    amplified = pyaccount.amplify(EXAMPLES / "one-draw.yaml", overrides={"name": "another"})
    assert amplified.name == "another"
    users = EXAMPLES / "users-sharing-records.yaml"
    prepared = pyaccount.prepare(
        EXAMPLES / "authors.csv", records_per_user=2, document=users, overrides={"name": "another"}
    )
    assert prepared.document is not None
    assert prepared.document.name == "another"


def test_an_override_may_replace_a_section() -> None:
    found = pyaccount.load(EXAMPLE, overrides={"sampler": {"kind": "fixed-size"}, "training.dataset_size": 50_000})
    assert found.run.sampler.kind == "fixed-size"


@pytest.mark.parametrize("overrides", [3, [("privacy.epsilon",)], [4], None])
def test_what_is_no_override(overrides: Any, snapshot: Snapshot) -> None:
    snapshot.raised(pyaccount.load, EXAMPLE, overrides=overrides)
