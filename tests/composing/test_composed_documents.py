"""The joint certificate of deterministic certificates is the certificate of the document with all of their phases."""

from typing import Any

import numpy as np
import pytest
import yaml
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.composing import joint, joint_document

HEAD = {"pyaccount": 1, "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}}
TRAINING = sectioned(dataset_size=5000, expected_batch_size=100, epochs=4, sampler="poisson", multiplier=1.1)
COUNT = {"mechanism": {"kind": "laplace", "sensitivity": 1, "scale": 20}, "count": 3}
FULL = {"training": {"iterations": 20}, "sampler": {"kind": "none"}, "noise": {"multiplier": 9}}


def certified(name: str, **body: Any) -> pyaccount.Certificate:
    return pyaccount.certify({**HEAD, "name": name, **body})


def same_numbers(one: pyaccount.Certificate, other: pyaccount.Certificate) -> None:
    """Check that every number of two certificates is the same, to the last bit."""
    first, second = one.to_dict(), other.to_dict()
    for key in ("guarantee", "directions", "profile"):
        assert first[key] == second[key], key
    assert first["unamplified"]["epsilon"] == second["unamplified"]["epsilon"]
    kinds = [[(kind["epsilon"], kind["epsilon_lower"]) for kind in each["records"] or ()] for each in (first, second)]
    assert kinds[0] == kinds[1]
    assert first["evidence"] == second["evidence"]


def test_single_bodies_are_phases() -> None:
    """A joint certificate has the bits of the document in which both bodies are phases."""
    made = pyaccount.compose([certified("training", **TRAINING), certified("count", **COUNT)])
    phases = pyaccount.certify({**HEAD, "name": "both", "phases": [TRAINING, COUNT]})
    same_numbers(made, phases)
    assert made.data.guarantee.kind == "deterministic"
    assert made.epsilon < certified("training", **TRAINING).epsilon + certified("count", **COUNT).epsilon


def test_a_solved_value_is_filled_in() -> None:
    """The noise that a certificate found is the noise of its phase."""
    head = {**HEAD, "privacy": {**HEAD["privacy"], "epsilon": 1.0}}
    solved = pyaccount.certify({**head, "name": "training", **TRAINING, "noise": {"multiplier": "solve"}})
    made = pyaccount.compose([solved, certified("count", **COUNT)])
    noise = {"multiplier": solved.noise_multiplier}
    same_numbers(made, pyaccount.certify({**HEAD, "name": "b", "phases": [{**TRAINING, "noise": noise}, COUNT]}))


def test_a_factor_of_all_phases_stays_in_its_document() -> None:
    """Two documents with factors of their own become phases with their own noise, also inside of other phases."""
    sampled = {"sampler": {"kind": "poisson", "sampling_probability": 0.1}, "phases": [FULL, FULL], "count": 2}
    one = certified("one", noise={"scale": 2.0}, phases=[TRAINING, sampled])
    other = certified("other", noise={"scale": 3.0}, phases=[FULL, COUNT])
    inner = {**FULL, "noise": {"multiplier": 18.0}}
    phases = [
        {**TRAINING, "noise": {"multiplier": 2.2}},
        {**sampled, "phases": [inner, inner]},
        {**FULL, "noise": {"multiplier": 27.0}},
        COUNT,
    ]
    same_numbers(pyaccount.compose([one, other]), pyaccount.certify({**HEAD, "name": "all", "phases": phases}))


def test_parts_and_selections_are_taken_as_they_are() -> None:
    """Disjoint parts and the best of several runs stay one phase each."""
    parts = {"parallel": [{"name": "north", **TRAINING}, {"name": "south", **FULL}]}
    best = {"select": {"kind": "geometric", "stopping_probability": 0.5}, "phases": [COUNT]}
    made = pyaccount.compose([certified("silos", phases=[parts]), certified("search", phases=[best])])
    same_numbers(made, pyaccount.certify({**HEAD, "name": "both", "phases": [parts, best]}))
    assert made.data.records is not None


def test_declared_parts_are_disjoint() -> None:
    """Certificates of parts compose in parallel, several on one part one after the other."""
    longer = {**FULL, "training": {"iterations": 30}}
    whole, north, south, more = (
        certified(name, **body)
        for name, body in (("whole", FULL), ("north", longer), ("south", FULL), ("more", {**FULL, "count": 2}))
    )
    made = pyaccount.compose([whole], parts={"north": north, "south": [south, more]}, repeat=True)
    parts = [{"name": "north", **longer}, {"name": "south", "phases": [FULL, {**FULL, "count": 2}]}]
    same_numbers(made, pyaccount.certify({**HEAD, "name": "both", "phases": [FULL, {"parallel": parts}]}))
    assert any("exactly one part" in assumption for assumption in made.data.assumptions)
    assert any("the part of it under whose name" in assumption for assumption in made.data.assumptions)


def test_a_choice_is_not_made_again() -> None:
    """A matrix that was chosen is that of the certificate."""
    chosen = sectioned(
        "iterations=12 sampler=none max_participations=2 min_separation=6 multiplier=solve",
        matrix={"kind": {"choose": ["banded-square-root", "optimal-toeplitz"]}, "bands": 3},
    )
    one = pyaccount.certify({**HEAD, "privacy": {**HEAD["privacy"], "epsilon": 2.0}, "name": "matrix", **chosen})
    document = joint_document([one, certified("count", **COUNT)])
    assert not document.choices
    made = pyaccount.certify(document)
    assert made.data.phases[0].matrix.coefficients == one.data.phases[0].matrix.coefficients


@pytest.mark.parametrize(
    "matrix",
    [{"kind": "optimal-toeplitz", "bands": 4}, {"kind": "blt", "buffers": 2}],
    ids=lambda matrix: matrix["kind"],
)
def test_an_optimised_matrix_is_not_optimised_again(matrix: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The joint document has the coefficients that the certificate states, and the numbers of the matrix that was optimised."""
    body = sectioned("iterations=24 sampler=none max_participations=2 min_separation=12 multiplier=3", matrix=matrix)
    one, count = certified("matrix", **body), certified("count", **COUNT)
    phases = pyaccount.certify({**HEAD, "name": "both", "phases": [body, COUNT]})
    for module, name in (("toeplitz", "optimal_toeplitz"), ("inverse", "optimal_blt")):
        monkeypatch.setattr(f"pyaccount.strategies.{module}.{name}", None)
    made = pyaccount.compose([one, count])
    assert made.epsilon == pytest.approx(phases.epsilon, rel=1e-12)
    assert made.data.phases[0].matrix.coefficients == one.data.phases[0].matrix.coefficients
    assert made.data.phases[0].matrix.buffers == one.data.phases[0].matrix.buffers


def test_the_target_is_the_joint_ones() -> None:
    """δ is the common one, ε or δ is computed, and a claim is checked."""
    sources = [certified("training", **TRAINING), certified("count", **COUNT)]
    assert joint_document(sources).privacy.delta == 1e-5
    assert pyaccount.compose(sources, delta=1e-7).epsilon > pyaccount.compose(sources).epsilon
    at = pyaccount.compose(sources).epsilon
    assert pyaccount.compose(sources, epsilon=at).delta <= 1e-5 * (1 + 1e-6)
    assert pyaccount.compose(sources, epsilon=at * 1.01, delta="1e-5").holds
    assert not pyaccount.compose(sources, epsilon=at * 0.9, delta=1e-5).holds


def test_what_the_certificate_says(tmp_path: Any) -> None:
    """The joint certificate lists what was composed, assumes that it was fixed, and agrees when it is recomputed."""
    training, count = certified("training", **TRAINING), certified("count", **COUNT)
    made = pyaccount.compose([training, count], names=["model", "table"])
    assert made.data.name == "model and table together, all fixed beforehand"
    listed = made.data.composed_from
    assert listed is not None
    assert [one.sha256 for one in listed] == [training.data.content_sha256, count.data.content_sha256]
    assert [one.statement for one in listed] == [training.statement, count.statement]
    assert [phase.name for phase in made.data.phases] == ["model", "table"]
    assert any("fixed before the first release" in assumption for assumption in made.data.assumptions)
    file = tmp_path / "joint.json"
    made.save(file)
    assert pyaccount.verify(file).agrees
    assert pyaccount.check(file, max_epsilon=10, max_delta=1e-5).passes
    assert training.statement in str(made.page())
    # A certificate of another document has none of this.
    assert training.to_dict()["composed_from"] is None


def test_a_joint_certificate_composes_again(snapshot: Snapshot) -> None:
    """A joint certificate stands for those that it was composed from: its phases are composed, and they are known."""
    training, count, full = (
        certified(name, **body) for name, body in (("training", TRAINING), ("count", COUNT), ("full", FULL))
    )
    nested = pyaccount.compose([pyaccount.compose([training, count]), full])
    same_numbers(nested, pyaccount.compose([training, count, full]))
    assert [one.name for one in nested.data.composed_from or ()] == ["training", "count", "full"]
    snapshot.raised(lambda: joint_document([pyaccount.compose([training, count]), count]))


def test_planned_documents_compose() -> None:
    """A document whose only blank is ε composes like its certificate; it has no hash of a certificate."""
    planned = {**HEAD, "name": "count", **COUNT}
    training = certified("training", **TRAINING)
    same_numbers(pyaccount.compose([training, planned]), pyaccount.compose([training, pyaccount.certify(planned)]))
    listed = joint_document([training, planned]).composed_from
    assert [one.sha256 is None for one in listed] == [False, True]


def test_files_are_looked_for_beside_the_certificate(tmp_path: Any, snapshot: Snapshot) -> None:
    """A schedule in a file is found beside the certificate; with other values it is refused."""
    values = np.linspace(8.0, 10.0, 20)
    np.save(tmp_path / "sigmas.npy", values)
    scheduled = {**FULL, "noise": {"multiplier": {"schedule": {"file": "sigmas.npy"}}}}
    source = tmp_path / "run.yaml"
    source.write_text(yaml.safe_dump({**HEAD, "name": "run", **scheduled}))
    pyaccount.certify(source).save(tmp_path / "run.json")
    count = certified("count", **COUNT)
    made = pyaccount.compose([tmp_path / "run.json", count])
    listed = {**FULL, "noise": {"multiplier": {"schedule": values.tolist()}}}
    same_numbers(made, pyaccount.certify({**HEAD, "name": "both", "phases": [listed, COUNT]}))
    np.save(tmp_path / "sigmas.npy", values + 1.0)
    snapshot.raised(lambda: pyaccount.compose([tmp_path / "run.json", count]))


def test_files_in_two_folders_are_refused(tmp_path: Any, snapshot: Snapshot) -> None:
    """One document looks for its files in one folder."""
    sources = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        np.save(folder / "sigmas.npy", np.full(20, 9.0))
        scheduled = {**FULL, "noise": {"multiplier": {"schedule": {"file": "sigmas.npy"}}}}
        (folder / "run.yaml").write_text(yaml.safe_dump({**HEAD, "name": name, **scheduled}))
        sources.append(folder / "run.json")
        pyaccount.certify(folder / "run.yaml").save(sources[-1])
    snapshot.raised(joint_document, sources)


def test_smaller_groups_are_covered() -> None:
    """The joint guarantee is for the smallest group, composed anew for it, and the rule is told."""
    head = {**HEAD, "privacy": {**HEAD["privacy"], "group_size": 3}}
    three = pyaccount.certify({**head, "name": "three", **FULL})
    made = joint([three, certified("count", **COUNT)])
    same_numbers(pyaccount.certify(made.document), pyaccount.certify({**HEAD, "name": "b", "phases": [FULL, COUNT]}))
    assert len(made.rules) == 1
    assert "a guarantee for more records covers fewer" in made.rules[0]
    both = joint([three, pyaccount.certify({**head, "name": "other", **COUNT})])
    assert both.document.privacy.group_size == 3
    assert both.rules == ()
