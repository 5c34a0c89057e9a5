"""What is not composed: each refusal says which source it is about, why, and what to do."""

from typing import Any

import pytest
from places import ROOT
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.composing import joint, joint_document

GOLDEN = ROOT / "tests" / "golden" / "certificates" / "v1"
HEAD: dict[str, Any] = {"pyaccount": 1, "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}}
MU = {"mechanism": {"kind": "stated", "mu": 0.5}}
PURE = {"mechanism": {"kind": "laplace", "sensitivity": 1, "scale": 2}}


def document(name: str, adjacency: str = "add-remove", **more: Any) -> dict[str, Any]:
    privacy = {**HEAD["privacy"], "adjacency": adjacency, **more.pop("privacy", {})}
    return {**HEAD, "privacy": privacy, "name": name, **(more or MU)}


def refused(*sources: Any, **options: Any) -> pyaccount.Problem:
    """Return the only problem of sources that do not compose."""
    with pytest.raises(pyaccount.DocumentError) as caught:
        joint_document(list(sources), **options)
    (problem,) = caught.value.problems
    return problem


def test_the_same_certificate_twice(tmp_path: Any, snapshot: Snapshot) -> None:
    """One certificate is of one run: twice is an error, also if it was issued twice, unless it is said that it was run twice."""
    one, again = pyaccount.certify(document("one")), pyaccount.certify(document("one"))
    one.save(tmp_path / "a.json")
    again.save(tmp_path / "b.json")
    snapshot(refused(tmp_path / "a.json", tmp_path / "b.json"))
    twice = pyaccount.compose([one, again], repeat=True)
    count = pyaccount.certify(document("one", mechanism=MU["mechanism"], count=2))
    assert twice.epsilon == pytest.approx(count.epsilon, rel=1e-3)
    assert [phase.name for phase in twice.data.phases] == ["one", "one (2)"]


def test_claims_that_do_not_hold(snapshot: Snapshot) -> None:
    """A certificate whose claim does not hold has no guarantee to compose; nor has one that contradicts itself."""
    other = pyaccount.Certificate.load(GOLDEN / "deterministic.json")
    snapshot.raised(lambda: joint_document([GOLDEN / "claim-fails.json", other]))
    changed = other.data.model_copy(update={"guarantee": other.data.guarantee.model_copy(update={"epsilon": 1.0})})
    snapshot.raised(lambda: joint_document([pyaccount.Certificate(changed)]))


def test_certificates_of_one_draw(snapshot: Snapshot) -> None:
    """The certificate of an amplification is about one draw, not about a run."""
    snapshot.raised(lambda: joint_document([GOLDEN / "amplification.json"]))


@pytest.mark.parametrize(
    ("mine", "asked"), [("add-remove", None), ("add-remove", "zero-out"), ("zero-out", "add-remove")]
)
def test_adjacencies_that_do_not_imply_another(mine: str, asked: str | None, snapshot: Snapshot) -> None:
    """Add-remove and zero-out are not converted to each other; the refusal names the source and its adjacency."""
    sources = [pyaccount.certify(document("first", mine)), pyaccount.certify(document("second", "zero-out"))]
    if mine == "zero-out":
        sources = sources[:1]
    snapshot(refused(*sources, adjacency=asked))


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_two_steps_to_replace_one(adjacency: str) -> None:
    """A pure guarantee ε is 2ε for a replaced record, and the rule is in the certificate."""
    pure = {"delta": 0}
    one = pyaccount.certify(document("one", adjacency, privacy=pure, **PURE))
    other = pyaccount.certify(
        document("other", "replace-one", privacy=pure, mechanism={"kind": "exponential", "epsilon": 0.25})
    )
    made = pyaccount.compose([one, other])
    assert made.data.privacy.adjacency == "replace-one"
    assert made.epsilon == pytest.approx(2 * one.epsilon + 0.25, rel=1e-3)
    alone = pyaccount.compose([one], adjacency="replace-one").data.guarantee
    # A mechanism with the guarantee moves by two steps: tests/plan/test_groups_of_stated.py.
    assert (alone.epsilon, alone.epsilon_lower) == pytest.approx((2 * one.epsilon, 2 * one.epsilon), rel=1e-9)
    assert "two steps for each replaced record" in made.data.reductions[0].theorem
    assert made.data.reductions[0].tight
    assert "two steps of the stated guarantee" in (made.data.reductions[0].remark or "")
    assert any("for one record under " + adjacency in assumption for assumption in made.data.assumptions)
    (rule,) = joint([one, other]).rules
    assert f"“one” is certified under {adjacency}" in rule


def test_two_steps_cover_what_the_mechanism_does() -> None:
    """The bound from the points of a Gaussian's profile is at least the ε of the Gaussian whose mean moves twice as far."""
    one = pyaccount.certify(document("one", mechanism={"kind": "gaussian", "sensitivity": 1, "sigma": 2}))
    made = pyaccount.compose([one], adjacency="replace-one")
    exact = pyaccount.certify(document("exact", "replace-one", mechanism={"kind": "stated", "mu": 1.0}))
    # A mechanism with these points alone reveals a little more than the Gaussian, which has all of its profile.
    assert exact.epsilon <= made.data.guarantee.epsilon_lower <= made.epsilon <= 1.001 * exact.epsilon
    # The rule for μ is exact: two steps of μ are 2μ.
    stated = document("stated", "replace-one", mechanism={"kind": "stated", "mu": 0.5, "adjacency": "add-remove"})
    assert pyaccount.certify(stated).epsilon == pytest.approx(exact.epsilon, rel=2e-4)


def test_a_planned_document_is_not_converted(snapshot: Snapshot) -> None:
    """A document has no profile yet, so it is certified before it is converted."""
    other = pyaccount.certify(document("other", "replace-one"))
    snapshot(refused(document("planned"), other))


def test_records_and_users(snapshot: Snapshot) -> None:
    """Records and users have no joint guarantee."""
    users = sectioned(
        "iterations=30 sampling_probability=0.05 sampler=user-b-min-sep min_separation=2 records_per_user=3",
        "attribution=single multiplier=2",
    )
    snapshot.raised(lambda: joint_document([document("records"), document("users", "zero-out", **users)]))


def test_deltas_differ(snapshot: Snapshot) -> None:
    """The joint guarantee has one δ: if the sources have several, it must be given."""
    one, other = document("one"), document("other", privacy={"delta": 1e-6})
    snapshot.raised(joint_document, [one, other])
    assert joint_document([one, other], delta=1e-7).privacy.delta == 1e-7
    assert joint_document([one, other], epsilon=2).privacy.delta == "solve"


def test_blanks_are_filled_first(snapshot: Snapshot) -> None:
    """A document whose noise is to be solved is certified first."""
    training = {"training": {"iterations": 5}, "sampler": {"kind": "none"}, "noise": {"multiplier": "solve"}}
    snapshot(refused(document("open", privacy={"epsilon": 1.0}, **training)))


def test_wrong_arguments(snapshot: Snapshot) -> None:
    """Wrong arguments are refused before anything is read."""
    one = document("one")
    snapshot.raised(joint_document, "a.json")  # type: ignore[arg-type]
    snapshot.raised(joint_document, [])
    snapshot.raised(joint_document, [], parts={"north": one})
    snapshot.raised(joint_document, [one], names=["a", "b"])
    snapshot.raised(joint_document, [one], points="all")  # type: ignore[arg-type]
    snapshot.raised(joint_document, [one], adjacency="swap")


def test_parts_inside_of_parts(snapshot: Snapshot) -> None:
    """A part has no parts of its own."""
    parts = {"parallel": [{"name": "a", **MU}, {"name": "b", **PURE}]}
    snapshot(refused(parts={"north": document("silos", phases=[parts]), "south": document("other")}))


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        ({"kind": "stated", "mu": 1, "adjacency": "replace-one"}, "add-remove"),
        ({"kind": "stated", "mu": 1, "adjacency": "add-remove"}, "zero-out"),
        ({"kind": "stated", "renyi": [{"order": 2, "epsilon": 1}], "adjacency": "zero-out"}, "replace-one"),
    ],
)
def test_stated_guarantees_of_another_adjacency(mechanism: dict[str, Any], adjacency: str, snapshot: Snapshot) -> None:
    """A stated guarantee is converted to replace-one alone, and only if two steps have a rule."""
    snapshot.raised(lambda: pyaccount.compile(document("stated", adjacency, mechanism=mechanism)))


def test_samples_are_not_converted(snapshot: Snapshot) -> None:
    """A guarantee under another adjacency is not sampled."""
    sampled = {"mechanism": {"kind": "stated", "mu": 1, "adjacency": "add-remove"}}
    sampler = {"sampler": {"kind": "poisson", "sampling_probability": 0.1}}
    snapshot.raised(lambda: pyaccount.compile(document("sampled", "replace-one", **sampled, **sampler)))


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "a", "document_sha256": "A" * 64},
        {"name": "a", "document_sha256": 3},
        {"name": "a", "document_sha256": "a" * 64, "sha256": "b"},
        {"name": "a"},
    ],
)
def test_what_a_document_says_it_was_composed_from(entry: dict[str, Any], snapshot: Snapshot) -> None:
    """Hashes of a joint document are read strictly."""
    snapshot.raised(lambda: pyaccount.load({**document("joint", phases=[MU]), "composed_from": [entry]}))
