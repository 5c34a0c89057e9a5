"""`choose:` lists in the sampler: what is compared, what certificates state about the choice, and what is refused."""

import json
import math
from typing import Any

import pytest
from certificate_oracle import inconsistencies
from plain_documents import doc
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.certificate import resolved
from pyaccount.execute.choose import choose
from pyaccount.execute.options import RunOptions
from pyaccount.plan.compiling import compile_document

HEAD: dict[str, Any] = doc("name=chosen epsilon=1 delta=1e-2 multiplier=solve seed=20261123 profile=[] tolerance=0.2")
#: Each with the candidates that do not contradict themselves.
LISTS: dict[str, tuple[dict[str, Any], dict[str, Any], str, list[tuple[int, int]]]] = {
    "separation": (
        {"kind": "b-min-sep", "min_separation": {"choose": [2, 4, 30]}},
        {"participation_rate": 0.1},
        "min_separation",
        [(2, 2), (2, 4), (4, 4)],
    ),
    "users": (
        {
            "kind": "user-b-min-sep",
            "records_per_user": 2,
            "attribution": "single",
            "min_separation": {"choose": [2, 4]},
        },
        {"sampling_probability": 0.08},
        "min_separation",
        [(2, 2), (2, 4), (4, 4)],
    ),
    "parts": (
        {"kind": "cyclic-poisson", "partitions": {"choose": [2, 5]}},
        {"participation_rate": 0.1},
        "partitions",
        [(2, 2), (2, 5), (4, 5)],
    ),
    "bins": ({"kind": "balls-in-bins", "bins": {"choose": [3, 4]}}, {}, "bins", [(2, 3), (2, 4), (4, 3), (4, 4)]),
}


def document(name: str, bands: Any = None, **changes: Any) -> dict[str, Any]:
    sampler, training, _, _ = LISTS[name]
    matrix = {"kind": "optimal-toeplitz", "bands": bands or {"choose": [2, 4]}}
    return {**HEAD, "sampler": sampler, "training": training | {"iterations": 16}, "matrix": matrix, **changes}


@pytest.mark.parametrize("name", LISTS)
def test_candidates_are_all_that_do_not_contradict_themselves(name: str) -> None:
    _, _, key, expected = LISTS[name]
    loaded = pyaccount.load(document(name))
    assert loaded.choices == (("matrix", "bands"), ("sampler", key))
    found = [(one.run.matrix.diagonals(), getattr(one.run.sampler, key)) for one in loaded.candidates()]
    assert found == expected


def shares(name: str) -> dict[int, float]:
    """Return the share of the records in a batch for each choice, from the laws of the samplers."""
    if name == "bins":
        return {3: 1 / 3, 4: 1 / 4}
    if name != "users":
        return dict.fromkeys([2, 4, 5], 0.1)
    # A user that is drawn contributes both records or one, and then waits: take the mean over a cycle of that length.
    drawn = 1 - 0.92**2
    return {b: 2 * 0.08 / drawn / (1 / drawn + b - 1) / 2 for b in (2, 4)}


@pytest.mark.parametrize("name", LISTS)
def test_the_choice_has_the_least_error_relative_to_the_batch(name: str) -> None:
    _, _, key, expected = LISTS[name]
    plan = choose(compile_document(pyaccount.load(document(name))), RunOptions(threads=1, seed=7))
    assert [(one.bands, dict(one.chosen)[key]) for one in plan.considered] == expected
    for one in plan.considered:
        share = shares(name)[dict(one.chosen)[key]]
        assert one.relative_error is not None
        assert math.isclose(one.relative_error, one.squared_error / share**2, rel_tol=1e-9)
    best = min(plan.considered, key=lambda one: one.compared)
    assert plan.document.run.matrix.diagonals() == best.bands
    assert getattr(plan.document.run.sampler, key) == dict(best.chosen)[key]


@pytest.fixture(scope="module")
def certificate() -> pyaccount.Certificate:
    return pyaccount.certify(document("separation", 2), threads=1)


def test_a_certificate_states_what_was_chosen(certificate: pyaccount.Certificate) -> None:
    data = certificate.data
    assert data.phases[0].chosen is not None
    (apart,) = data.phases[0].chosen.values()
    assert data.document["sampler"]["min_separation"] == {"choose": [2, 4, 30]}
    # With the choice written out, the certificate is the same.
    sampler = {"kind": "b-min-sep", "min_separation": apart}
    same = pyaccount.certify(document("separation", 2, sampler=sampler), threads=1).data
    assert (same.guarantee, same.utility) == (data.guarantee, data.utility)
    assert same.phases[0].chosen is None
    assert json.loads(same.model_dump_json())["phases"][0]["chosen"] is None
    assert pyaccount.verify(certificate, threads=1).agrees
    assert certificate.profile.delta(1.0).upper > 0.0
    for text in (certificate.to_markdown(), certificate.to_html()):
        assert f"min_separation {apart}" in text.replace("\\", "")
        assert "relative to the batch" in text


def test_what_was_chosen_is_found_again_whatever_the_matrix() -> None:
    """The second candidate is chosen, with a matrix without bands and with one that needs no samples."""
    sampler = {"kind": "balls-in-bins", "bins": {"choose": [16, 4]}}
    for matrix in ({"kind": "blt", "buffers": 1}, {"kind": "identity"}):
        certificate = pyaccount.certify(document("bins", sampler=sampler, matrix=matrix), threads=1)
        assert certificate.data.phases[0].chosen == {"bins": 4}
        assert [one.bands for one in certificate.data.evidence.considered] == [
            certificate.data.phases[0].matrix.bands
        ] * 2
        filled = resolved(certificate.data, pyaccount.load(certificate.data.document))
        assert filled.run.sampler.bins_of(filled.run) == 4
        assert pyaccount.verify(certificate, threads=1).agrees


@pytest.mark.parametrize("value", [{"min_separation": 3}, {"min_separation": 2, "bins": 4}, None])
def test_another_choice_is_seen(certificate: pyaccount.Certificate, value: Any) -> None:
    phase = certificate.data.phases[0].model_copy(update={"chosen": value})
    found = inconsistencies(certificate.data.model_copy(update={"phases": [phase]}))
    assert any(one.path.startswith("phases[0].chosen") for one in found)
    assert not any(one.path.startswith("phases[0].chosen") for one in inconsistencies(certificate.data))


def test_matrices_are_optimised_for_each_choice() -> None:
    matrix = {"kind": "optimal-toeplitz", "bands": 2, "optimize_for": "sampling"}
    raw = document("bins", sampler={"kind": "balls-in-bins", "bins": {"choose": [3, 4]}}, matrix=matrix)
    plan = choose(compile_document(pyaccount.load(raw)), RunOptions(threads=1, seed=7))
    assert plan.searched is not None
    best = min(plan.considered, key=lambda one: one.compared)
    assert plan.searched.found.prefix_sum_mse == best.prefix_sum_mse
    assert plan.document.run.sampler.bins_of(plan.document.run) == dict(best.chosen)["bins"]


WRONG: dict[str, Any] = {
    "epochs of bins": {"training": {"epochs": 3}},
    "no blank": {"noise": {"multiplier": 1}},
    "twice": {"sampler": {"kind": "balls-in-bins", "bins": {"choose": [3, 3]}}},
    "too many": {"sampler": {"kind": "balls-in-bins", "bins": {"choose": [17, 20]}}},
    "unsampled": {"sampler": {"kind": "none", "min_separation": {"choose": [2, 4]}}},
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_with_a_list_is_refused_at_its_place(name: str, snapshot: Snapshot) -> None:
    snapshot.raised(lambda: pyaccount.compile(document("bins", 2, **WRONG[name])))
