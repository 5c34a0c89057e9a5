"""Certificates from samples are composed by proven points, with their failure probabilities."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hull_oracle import delta_of, pair_of
from places import ROOT
from plain_documents import doc, sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.consistency import content_sha256, inconsistencies
from pyaccount.composing import joint, joint_document
from pyaccount.composing.phases import proven_points
from pyaccount.document.resting import rests_on

GOLDEN = ROOT / "tests" / "golden" / "certificates" / "v1"
ZERO_OUT = {"adjacency": "zero-out", "epsilon": "solve", "delta": 0.02}
COUNT = {
    "pyaccount": 1,
    "name": "count",
    "privacy": ZERO_OUT,
    "mechanism": {"kind": "gaussian", "sensitivity": 1, "sigma": 4},
}


def verified() -> pyaccount.Certificate:
    return pyaccount.Certificate.load(GOLDEN / "verified.json")


def confidence() -> pyaccount.Certificate:
    return pyaccount.Certificate.load(GOLDEN / "confidence.json")


def points_of(certificate: pyaccount.Certificate) -> list[tuple[float, float]]:
    """Return the guarantee and the upper bounds of the profile."""
    data = certificate.data
    pairs = [(data.guarantee.epsilon, data.guarantee.delta), *((one.epsilon, one.delta) for one in data.profile)]
    return [pair for pair in pairs if pair[1] < 1.0]


def test_profiles_compose_as_finite_pairs() -> None:
    """The joint ε agrees with an enumeration of the two pairs of the profiles' convex hulls."""
    made = pyaccount.compose([verified(), confidence()], delta=0.02)
    pairs = [pair_of(points_of(verified())), pair_of(points_of(confidence()))]
    assert delta_of(pairs, made.epsilon) <= 0.02 <= delta_of(pairs, made.data.guarantee.epsilon_lower)
    for point in made.profile:
        assert point.delta_lower <= delta_of(pairs, point.epsilon) * (1 + 1e-9)
        assert point.delta * (1 + 1e-9) >= delta_of(pairs, point.epsilon)


def test_failure_probabilities_are_added() -> None:
    """Each sampled point may fail, and the tests; all of these are in the joint certificate, and in its sentence."""
    made = pyaccount.compose([verified(), confidence()], delta=0.02)
    expected = 0.0
    for source in (verified(), confidence()):
        sampling = source.data.evidence.sampling
        assert sampling is not None
        expected += len(source.data.profile) * sampling.pointwise_failure_probability + sampling.total_probability
    guarantee = made.data.guarantee
    assert guarantee.kind == "confidence"
    assert expected <= guarantee.failure_probability <= expected * (1 + 1e-12)
    assert "with probability at least 1 − 0.0005" in made.statement
    assert sum("are not drawn again with other seeds" in assumption for assumption in made.data.assumptions) == 1


def test_a_gate_sees_the_failure_probability(tmp_path: Any) -> None:
    """`check` compares the failure probability and the kind with limits, at the guarantee and at points of the profile."""
    file = tmp_path / "joint.json"
    pyaccount.compose([verified(), confidence()], delta=0.02).save(file)
    limits: dict[str, Any] = {"max_epsilon": 3, "max_delta": 0.02}
    assert pyaccount.check(file, **limits).passes
    assert pyaccount.check(file, **limits, max_failure_probability=6e-4).passes
    assert not pyaccount.check(file, **limits, max_failure_probability=4e-4).passes
    assert not pyaccount.check(file, **limits, guarantee=["verified"]).passes
    # A larger ε holds at another δ, which only a point of the profile has.
    assert not pyaccount.check(file, max_epsilon=3, max_delta=0.01, guarantee=["verified"]).passes
    assert pyaccount.verify(file).agrees


def test_guarantees_alone() -> None:
    """A verified guarantee composes with δ as it is: it has no failure probability, and a larger ε."""
    count = pyaccount.certify(COUNT)
    made = pyaccount.compose([verified(), count], delta=0.02, points="guarantee")
    assert (made.data.guarantee.kind, made.data.guarantee.failure_probability) == ("verified", 0.0)
    assert made.epsilon > pyaccount.compose([verified(), count], delta=0.02).epsilon
    assert any("only because a randomised test accepted" in assumption for assumption in made.data.assumptions)
    mixed = pyaccount.compose([verified(), confidence()], delta=0.03, points="guarantee").data.guarantee
    assert (mixed.kind, mixed.failure_probability) == ("confidence", confidence().data.guarantee.failure_probability)


def test_a_guarantee_alone_against_advanced_composition() -> None:
    """Two runs of one (ε, δ) are the optimal composition of Kairouz, Oh & Viswanath (2015), Theorem 3.3."""
    epsilon, delta = verified().epsilon, verified().delta
    made = pyaccount.compose([verified(), verified()], delta=0.06, points="guarantee", repeat=True)
    # With k = 2: ε' = 0 and ε' = 2ε are the two steps; between them δ is linear in e^ε'.
    alpha = math.exp(made.epsilon)
    at_least = (math.exp(2 * epsilon) - alpha) / (1 + math.exp(epsilon)) ** 2
    assert 1 - (1 - delta) ** 2 * (1 - max(at_least, 0.0)) == pytest.approx(0.06, rel=1e-3)


def test_no_epsilon_is_known_below_the_points(snapshot: Snapshot) -> None:
    """Two guarantees at δ have no joint ε at δ: the refusal says how large δ is, and what to do."""
    sources = [verified(), confidence()]
    with pytest.raises(pyaccount.DocumentError, match=r"no ε is known at δ = 0\.01") as caught:
        joint_document(sources, points="guarantee")
    (problem,) = caught.value.problems
    assert (problem.slug, problem.path_text) == ("target-infeasible", "privacy.delta")
    # 1 − (1 − 0.01)², rounded down.
    assert "at least 0.0199" in problem.message
    assert pyaccount.compose(sources, points="guarantee", delta=0.02).epsilon < 3
    assert joint_document(sources).privacy.delta == 0.01
    parts = {"north": sources[0], "south": sources[1]}
    assert joint_document([], parts=parts, points="guarantee", delta=0.0101).privacy.delta == 0.0101
    snapshot.raised(joint_document, [], parts=parts, points="guarantee", delta=0.009)


def test_estimates_and_lower_bounds_are_not_used() -> None:
    """Only upper bounds are points: an estimate, or a lower bound, never is."""
    for certificate in (verified(), confidence()):
        stated = set(proven_points(certificate.data, "profile").points)
        assert stated == set(points_of(certificate))
        assert not stated & {(point.epsilon, point.delta_estimate) for point in certificate.profile}


def test_the_rule_is_told() -> None:
    """What is not composed exactly is told in words, with the failure probability rounded up."""
    made = joint([verified(), pyaccount.certify(COUNT)], delta=0.02)
    (rule,) = made.rules
    assert "comes from samples, so it is composed by 3 points of its profile" in rule
    assert "1 − 0.00025" in rule


def test_a_proven_guarantee_of_a_sampled_run() -> None:
    """If no test improved on the proven bound, only the points of the profile may fail."""
    document = doc(
        "name=proven delta=0.01 sampling_probability=0.9 iterations=4 sampler=b-min-sep min_separation=2",
        "matrix=banded-square-root bands=2 multiplier=0.7 seed=3 profile=[0.5,1.0]",
    )
    data = pyaccount.certify(document).data
    sampling = data.evidence.sampling
    assert sampling is not None
    alone = proven_points(data, "guarantee")
    together = proven_points(data, "profile")
    assert alone.failure_probability == data.guarantee.failure_probability
    least = 2 * sampling.pointwise_failure_probability
    tests = 0.0 if data.guarantee.kind == "deterministic" else sampling.total_probability
    assert least + tests <= together.failure_probability <= (least + tests) * (1 + 1e-12)


def test_uncertain_guarantees_beside_samples_are_refused(snapshot: Snapshot) -> None:
    """A document that draws samples itself has no room for the failure of a stated guarantee."""
    stated = {"mechanism": {"kind": "stated", "epsilon": 1, "failure_probability": 1e-6}}
    sampled = sectioned(
        "sampling_probability=0.1 iterations=6 sampler=b-min-sep min_separation=2 matrix=banded-square-root",
        "bands=2 multiplier=1",
    )
    document = {"pyaccount": 1, "name": "both", "privacy": ZERO_OUT, "phases": [sampled, stated]}
    snapshot.raised(pyaccount.compile, document)


def test_users_and_groups_have_no_points(snapshot: Snapshot) -> None:
    """A stated mechanism is about one record: sampled certificates of users are refused."""
    data = verified().data
    users = data.model_copy(
        update={
            "privacy": data.privacy.model_copy(update={"unit": "user"}),
            "statement": data.statement.replace("one record", "one user"),
        }
    )
    users = users.model_copy(update={"content_sha256": content_sha256(users)})
    snapshot.raised(lambda: joint_document([pyaccount.Certificate(users)]))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "deterministic"}, "guarantee.kind"),
        ({"kind": "verified"}, "guarantee.kind"),
        ({"failure_probability": 0.0}, "guarantee.failure_probability"),
        ({"failure_probability": 1e-4}, "guarantee.failure_probability"),
    ],
)
def test_a_changed_failure_probability_is_a_contradiction(changes: dict[str, Any], field: str) -> None:
    """What the guarantee rests on follows from the document inside, so that no certificate hides it."""
    data = pyaccount.compose([verified(), confidence()], delta=0.02).data
    assert inconsistencies(data) == []
    changed = data.model_copy(update={"guarantee": data.guarantee.model_copy(update=changes), "content_sha256": None})
    assert field in {one.path for one in inconsistencies(changed)}


def test_what_a_document_rests_on() -> None:
    """Failure probabilities of all stated mechanisms are added, wherever they stand, and rounded up."""
    stated = {"mechanism": {"kind": "stated", "epsilon": 1, "failure_probability": 0.1}}
    inner = {"sampler": {"kind": "poisson", "sampling_probability": 0.5}, "phases": [stated, stated]}
    parts = {"parallel": [{"name": "a", **stated}, {"name": "b", "phases": [stated]}]}
    rests = rests_on({"phases": [inner, parts, stated, {"mechanism": {"kind": "stated", "mu": 1, "verified": True}}]})
    assert rests.kind == "confidence"
    assert rests.verified
    assert 5 * Fraction(0.1) <= Fraction(rests.failure_probability) <= 5 * Fraction(0.1) * (1 + Fraction(1, 10**12))
    assert rests_on(stated) == (0.1, False)
    assert rests_on({"mechanism": {"kind": "stated", "verified": True}}).kind == "verified"
    assert rests_on({"mechanism": {"kind": "laplace", "failure_probability": 0.1}}).kind == "deterministic"
    assert rests_on(
        {"phases": [{"mechanism": {"kind": "stated", "failure_probability": "no"}}, 3], "mechanism": []}
    ) == (0.0, False)
    assert (
        rests_on({"phases": [{"mechanism": {"kind": "stated", "failure_probability": 0.9}}] * 2}).failure_probability
        == 1.0
    )
