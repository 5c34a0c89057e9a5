"""Documents with disjoint parts: what is read, what is refused at which place, and what certificates and pages say."""

from pathlib import Path
from typing import Any

import pytest
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.consistency import inconsistencies
from pyaccount.errors import DocumentError, Problem

HEAD = {"pyaccount": 1, "name": "parts"}
TRAINING = {"training": {"iterations": 3}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}}
SAMPLED = sectioned(sampling_probability=0.1, iterations=10, sampler="poisson", multiplier=2)
BINS = {"training": {"iterations": 20}, "sampler": {"kind": "balls-in-bins", "bins": 5}, "noise": {"multiplier": 2}}
B_MIN_SEP = sectioned(
    "iterations=20 sampling_probability=0.1 sampler=b-min-sep min_separation=3 matrix=banded-square-root",
    "bands=3 multiplier=2",
)
FIXED = sectioned(dataset_size=100, expected_batch_size=10, iterations=5, sampler="fixed-size", multiplier=2)
LAPLACE = {"mechanism": {"kind": "laplace", "scale": 20}}
SAMPLE = {"kind": "poisson", "sampling_probability": 0.1}


def problems(*phases: dict[str, Any], **privacy: Any) -> list[Problem]:
    """Return the problems of a document with these phases, when it is read or compiled; empty if there are none."""
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6} | privacy
    try:
        pyaccount.compile({**HEAD, "privacy": target, "phases": list(phases)})
    except DocumentError as error:
        return error.problems
    return []


def parts(*of: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a phase with these parts."""
    return {"parallel": list(of), **more}


@pytest.mark.parametrize(
    ("phases", "privacy"),
    [
        ([parts(TRAINING)], {}),
        ([parts()], {}),
        ([parts(TRAINING | {"name": "North"}, LAPLACE | {"name": "north "})], {}),
        ([parts(TRAINING, {"parallel": [TRAINING, LAPLACE]})], {}),
        ([{"sampler": SAMPLE, "phases": [parts(TRAINING, LAPLACE)]}], {}),
        ([parts(TRAINING, {"phases": [TRAINING, {"mechanism": {"kind": "laplace", "scael": 2, "scale": 3}}]})], {}),
        ([parts(TRAINING, LAPLACE, sampler=SAMPLE)], {}),
        ([parts(B_MIN_SEP, TRAINING)], {}),
        ([B_MIN_SEP, parts(LAPLACE, TRAINING)], {}),
        (
            [parts(TRAINING, TRAINING | {"name": "b", "noise": {"multiplier": 3}})],
            {"adjacency": "replace-one", "group_size": 2},
        ),
        ([parts(TRAINING, LAPLACE)], {"adjacency": "replace-one"}),
        ([parts(TRAINING, FIXED)], {"adjacency": "replace-one"}),
        ([parts(*(LAPLACE | {"mechanism": {"kind": "laplace", "scale": s}} for s in range(1, 20)))], {"group_size": 3}),
        ([parts(*(LAPLACE | {"mechanism": {"kind": "laplace", "scale": s}} for s in range(1, 20)))] * 2, {}),
        (
            [
                parts(
                    TRAINING,
                    {
                        "training": {"iterations": 30, "sampling_probability": 0.01},
                        "sampler": {
                            **{"kind": "user-b-min-sep", "records_per_user": 2, "min_separation": 2},
                            "attribution": "shared",
                        },
                        "matrix": {"kind": "banded-square-root", "bands": 2},
                        "noise": {"multiplier": 2},
                    },
                )
            ],
            {"adjacency": "zero-out"},
        ),
        ([parts(LAPLACE, TRAINING | {"noise": {"multiplier": {"schedule": [2, 2, 3]}}})], {}),
        ([parts(LAPLACE | {"name": "a"}, {"name": "b", "phases": [SAMPLED | {"noise": {"multiplier": "solve"}}]})], {}),
    ],
)
def test_each_mistake_has_a_place_and_a_way_forward(
    phases: list[dict[str, Any]], privacy: dict[str, Any], snapshot: Snapshot
) -> None:
    snapshot(problems(*phases, **privacy))


def test_parts_belong_into_a_phase(snapshot: Snapshot) -> None:
    with snapshot.raises(DocumentError):
        pyaccount.load(
            {**HEAD, "privacy": {"adjacency": "add-remove", "epsilon": 1, "delta": 1e-6}, **parts(TRAINING, LAPLACE)}
        )


@pytest.mark.parametrize(
    ("part", "privacy"),
    [
        (LAPLACE, {}),
        (SAMPLED, {"adjacency": "replace-one"}),
        (FIXED, {"adjacency": "zero-out"}),
        (FIXED, {"group_size": 3}),
        ({"sampler": SAMPLE, "phases": [TRAINING, LAPLACE]}, {}),
        ({"select": {"kind": "geometric", "stopping_probability": 0.2}, "phases": [SAMPLED]}, {}),
        ({"phases": [SAMPLED, {"sampler": SAMPLE, "phases": [LAPLACE]}], "count": 3}, {}),
        (BINS, {}),
    ],
)
def test_a_part_is_what_a_phase_is(part: dict[str, Any], privacy: dict[str, Any]) -> None:
    """A part alone, of two equal ones, is the phase; beside a better part too."""
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6} | privacy
    phases = part["phases"] * part["count"] if "count" in part else [part]
    alone = pyaccount.certify({**HEAD, "privacy": target, "phases": phases})
    light = TRAINING | {"noise": {"multiplier": 1e6}, "name": "light"}
    both = pyaccount.certify({**HEAD, "privacy": target, "phases": [parts(part, light)]})
    # Parts have no recursion over the rounds of fixed-size batches.
    composed = alone.data.composed_bound
    assert both.epsilon == pytest.approx(alone.epsilon if composed is None else composed.epsilon, rel=1e-3)
    assert next(one.name for one in both.data.records or ()) in ("part 1", f"{target.get('group_size')} in part 1")


def test_what_a_certificate_says_of_parts(snapshot: Snapshot) -> None:
    target = {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6}
    phases = [
        parts(TRAINING | {"name": "north"}, LAPLACE | {"name": "south"}, name="silos"),
        LAPLACE | {"name": "count"},
    ]
    certificate = pyaccount.certify({**HEAD, "privacy": target, "phases": phases})
    data = certificate.data
    assert data.phases[0].mechanism is not None
    assert data.phases[0].mechanism.kind == "parallel"
    assert data.phases[0].mechanism.stated == {"parallel": phases[0]["parallel"]}
    snapshot(data.assumptions)
    records = {one.name: one for one in data.records or ()}
    assert list(records) == ["north", "south"]
    assert data.guarantee.epsilon == max(one.epsilon for one in records.values())
    words = "every record in every round, without sampling"
    assert data.unamplified.description == words
    drawn = pyaccount.certify(
        {**HEAD, "privacy": target, "phases": [parts(SAMPLED | {"name": "north"}, LAPLACE | {"name": "south"})]}
    )
    assert drawn.data.unamplified.description == f"north: every record in every round; south: {words}"
    plain = pyaccount.certify({**HEAD, "privacy": target, "phases": phases[1:]})
    assert plain.to_dict()["records"] is None


def test_the_page_shows_each_part(tmp_path: Path) -> None:
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    certificate = pyaccount.certify(
        {**HEAD, "privacy": target, "phases": [parts(TRAINING | {"name": "north"}, LAPLACE | {"name": "south"})]}
    )
    for ending in ("txt", "md", "html"):
        path = tmp_path / f"certificate.{ending}"
        certificate.save(path)
        text = path.read_text(encoding="utf-8")
        assert "The guarantee for each kind of record" in text
        assert "north" in text


def test_an_interval_of_a_part_fits_the_guarantee() -> None:
    target = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    data = pyaccount.certify({**HEAD, "privacy": target, "phases": [parts(TRAINING, LAPLACE)]}).data
    assert data.records is not None
    for change, message in (
        ({"epsilon": 1.01 * data.guarantee.epsilon}, "above the guarantee"),
        ({"epsilon_lower": 1.01 * data.records[0].epsilon}, "the bounds cross"),
    ):
        changed = data.model_copy(update={"records": [data.records[0].model_copy(update=change), data.records[1]]})
        found = {one.path: one.message for one in inconsistencies(changed)}
        assert message in found["records[0].epsilon"]


@pytest.mark.parametrize("wrong", ["paralel", "selects", "mechanisms"])
def test_a_misspelled_shape_of_a_phase_is_the_only_problem(wrong: str, tmp_path: Path, snapshot: Snapshot) -> None:
    path = tmp_path / "document.yaml"
    privacy = "privacy: {adjacency: add-remove, epsilon: solve, delta: 1e-6}"
    path.write_text(f"pyaccount: 1\nname: phases\n{privacy}\nphases:\n  - {wrong}: []\n    name: first\n")
    snapshot.raised(pyaccount.load, path)


def test_several_phases_with_parts_say_that_parts_combine() -> None:
    phase = {"parallel": [TRAINING, {**TRAINING, "noise": {"multiplier": 3}}]}
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    for count, told in ((1, False), (2, True)):
        reductions = pyaccount.compile({**HEAD, "privacy": privacy, "phases": [phase] * count}).reductions
        assert all(("combine in any way" in (one.remark or "")) == told for one in reductions)
