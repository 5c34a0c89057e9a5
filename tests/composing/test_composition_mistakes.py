"""What is not composed: each refusal says which source it is about, why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from places import ROOT
from plain_documents import sections

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


def test_the_same_certificate_twice(tmp_path: Any) -> None:
    """One certificate is of one run: twice is an error, also if it was issued twice, unless it is said that it was run twice."""
    one, again = pyaccount.certify(document("one")), pyaccount.certify(document("one"))
    one.save(tmp_path / "a.json")
    again.save(tmp_path / "b.json")
    problem = refused(tmp_path / "a.json", tmp_path / "b.json")
    assert (problem.slug, problem.file) == ("composed-twice", str(tmp_path / "b.json"))
    assert problem.value == one.data.document_sha256
    assert "`repeat`" in problem.message
    assert "`count: 2`" in problem.message
    twice = pyaccount.compose([one, again], repeat=True)
    count = pyaccount.certify(document("one", mechanism=MU["mechanism"], count=2))
    assert twice.epsilon == pytest.approx(count.epsilon, rel=1e-3)
    assert [phase.name for phase in twice.data.phases] == ["one", "one (2)"]


def test_claims_that_do_not_hold() -> None:
    """A certificate whose claim does not hold has no guarantee to compose; nor has one that contradicts itself."""
    other = pyaccount.Certificate.load(GOLDEN / "deterministic.json")
    with pytest.raises(pyaccount.CertificateError, match=r"claim-fails\.json: its claim does not hold"):
        joint_document([GOLDEN / "claim-fails.json", other])
    changed = other.data.model_copy(update={"guarantee": other.data.guarantee.model_copy(update={"epsilon": 1.0})})
    with pytest.raises(pyaccount.CertificateError, match="it contradicts itself"):
        joint_document([pyaccount.Certificate(changed)])


def test_certificates_of_one_draw() -> None:
    """The certificate of an amplification is about one draw, not about a run."""
    with pytest.raises(pyaccount.CertificateError, match="certifies one draw"):
        joint_document([GOLDEN / "amplification.json"])


@pytest.mark.parametrize(
    ("mine", "asked"), [("add-remove", None), ("add-remove", "zero-out"), ("zero-out", "add-remove")]
)
def test_adjacencies_that_do_not_imply_another(mine: str, asked: str | None) -> None:
    """Add-remove and zero-out are not converted to each other; the refusal names the source and its adjacency."""
    sources = [pyaccount.certify(document("first", mine)), pyaccount.certify(document("second", "zero-out"))]
    if mine == "zero-out":
        sources = sources[:1]
    problem = refused(*sources, adjacency=asked)
    assert (problem.slug, problem.path_text) == ("no-valid-bound", "privacy.adjacency")
    assert problem.message.startswith("no bound is implemented for")
    assert problem.value in ("add-remove", "zero-out")
    assert "replace-one with `adjacency`" in problem.message


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


def test_a_planned_document_is_not_converted() -> None:
    """A document has no profile yet, so it is certified before it is converted."""
    other = pyaccount.certify(document("other", "replace-one"))
    problem = refused(document("planned"), other)
    assert "certify it first" in problem.message


def test_records_and_users() -> None:
    """Records and users have no joint guarantee."""
    users = sections(
        "iterations=30 sampling_probability=0.05 sampler=user-b-min-sep min_separation=2 records_per_user=3",
        "attribution=single multiplier=2",
    )
    with pytest.raises(pyaccount.DocumentError) as caught:
        joint_document([document("records"), document("users", "zero-out", **users)])
    (problem,) = caught.value.problems
    assert problem.message.startswith("no bound is implemented for records and users together")


def test_deltas_differ() -> None:
    """The joint guarantee has one δ: if the sources have several, it must be given."""
    one, other = document("one"), document("other", privacy={"delta": 1e-6})
    with pytest.raises(pyaccount.DomainError, match="'other' has δ = 1e-6"):
        joint_document([one, other])
    assert joint_document([one, other], delta=1e-7).privacy.delta == 1e-7
    assert joint_document([one, other], epsilon=2).privacy.delta == "solve"


def test_blanks_are_filled_first() -> None:
    """A document whose noise is to be solved is certified first."""
    training = {"training": {"iterations": 5}, "sampler": {"kind": "none"}, "noise": {"multiplier": "solve"}}
    problem = refused(document("open", privacy={"epsilon": 1.0}, **training))
    assert (problem.slug, problem.path_text) == ("unfilled-blank", "noise.multiplier")


def test_wrong_arguments() -> None:
    """Wrong arguments are refused before anything is read."""
    one = document("one")
    with pytest.raises(TypeError, match="not one str"):
        joint_document("a.json")  # type: ignore[arg-type]
    with pytest.raises(pyaccount.DomainError, match="nothing to compose"):
        joint_document([])
    with pytest.raises(pyaccount.DomainError, match="at least two parts"):
        joint_document([], parts={"north": one})
    with pytest.raises(pyaccount.DomainError, match="2 names"):
        joint_document([one], names=["a", "b"])
    with pytest.raises(pyaccount.DomainError, match="points"):
        joint_document([one], points="all")  # type: ignore[arg-type]
    with pytest.raises(pyaccount.DomainError, match="adjacency"):
        joint_document([one], adjacency="swap")


def test_parts_inside_of_parts() -> None:
    """A part has no parts of its own."""
    parts = {"parallel": [{"name": "a", **MU}, {"name": "b", **PURE}]}
    problem = refused(parts={"north": document("silos", phases=[parts]), "south": document("other")})
    assert "disjoint parts inside of the part 'north'" in problem.message


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "words"),
    [
        ({"kind": "stated", "mu": 1, "adjacency": "replace-one"}, "add-remove", "neither implies the other"),
        ({"kind": "stated", "mu": 1, "adjacency": "add-remove"}, "zero-out", "neither implies the other"),
        (
            {"kind": "stated", "renyi": [{"order": 2, "epsilon": 1}], "adjacency": "zero-out"},
            "replace-one",
            "Rényi divergences of single orders",
        ),
    ],
)
def test_stated_guarantees_of_another_adjacency(mechanism: dict[str, Any], adjacency: str, words: str) -> None:
    """A stated guarantee is converted to replace-one alone, and only if two steps have a rule."""
    with pytest.raises(pyaccount.DocumentError, match=words) as caught:
        pyaccount.compile(document("stated", adjacency, mechanism=mechanism))
    assert [problem.path_text for problem in caught.value.problems] == ["mechanism.adjacency"]


def test_samples_are_not_converted() -> None:
    """A guarantee under another adjacency is not sampled."""
    sampled = {"mechanism": {"kind": "stated", "mu": 1, "adjacency": "add-remove"}}
    sampler = {"sampler": {"kind": "poisson", "sampling_probability": 0.1}}
    with pytest.raises(pyaccount.DocumentError, match="on a sample, or inside of other phases"):
        pyaccount.compile(document("sampled", "replace-one", **sampled, **sampler))


@pytest.mark.parametrize(
    ("entry", "path", "slug"),
    [
        ({"name": "a", "document_sha256": "A" * 64}, "composed_from[0].document_sha256", "out-of-range"),
        ({"name": "a", "document_sha256": 3}, "composed_from[0].document_sha256", "wrong-type"),
        ({"name": "a", "document_sha256": "a" * 64, "sha256": "b"}, "composed_from[0].sha256", "out-of-range"),
        ({"name": "a"}, "composed_from[0].document_sha256", "missing-key"),
    ],
)
def test_what_a_document_says_it_was_composed_from(entry: dict[str, Any], path: str, slug: str) -> None:
    """Hashes of a joint document are read strictly."""
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.load({**document("joint", phases=[MU]), "composed_from": [entry]})
    assert [(problem.path_text, problem.slug) for problem in caught.value.problems] == [(path, slug)]
