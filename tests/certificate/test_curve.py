"""The curve between the points of a composed profile: proven bounds, close enough for pictures, and no easier to forge."""

import copy
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oracle
import pytest
from certificate_oracle import inconsistencies
from gate_tools import changed, golden, save
from mpmath import mp
from places import EXAMPLES
from plain_documents import doc

import pyaccount
from pyaccount.certificate.meaning import stated_points, upper_points
from pyaccount.certificate.report import curves
from pyaccount.directions import DIRECTIONS
from pyaccount.execute.shared_points import NEGLIGIBLE
from pyaccount.pages.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from pyaccount.risk.gaussian import hull

GAUSSIAN = doc(name="gaussian", delta=1e-6, iterations=9, sampler="none", multiplier=3.0)
LARGE = doc(
    "name=large adjacency=add-remove delta=1e-6 sampling_probability=0.1 iterations=1000 sampler=poisson multiplier=0.6"
)
SMALL = changed(LARGE, name="small", training__sampling_probability=0.001, noise__multiplier=2.0)
DOCUMENTS: dict[str, Any] = {
    "cifar10": str(EXAMPLES / "cifar10-dp-sgd.yaml"),
    "tiny": str(EXAMPLES / "tiny-delta.yaml"),
    "large": LARGE,
    "small": SMALL,
    "gaussian": GAUSSIAN,
}
_CERTIFIED: dict[str, pyaccount.Certificate] = {}


def certified(name: str) -> pyaccount.Certificate:
    if name not in _CERTIFIED:
        _CERTIFIED[name] = pyaccount.certify(DOCUMENTS[name])
    return _CERTIFIED[name]


def test_the_curve_of_a_gaussian_mechanism_lies_above_the_exact_one_and_near_it() -> None:
    data = certified("gaussian").data
    for direction in (data.directions.remove, data.directions.add):
        assert direction.curve is not None
        for epsilon, delta in zip(direction.curve.epsilon, direction.curve.delta, strict=True):
            exact = oracle.gaussian_delta(mp.mpf(1), mp.mpf(epsilon))
            assert exact <= delta <= exact * (1 + 2e-5)


@pytest.mark.parametrize("name", ["cifar10", "large"])
def test_points_of_the_curve_are_bounds_composed_by_themselves(name: str) -> None:
    certificate = certified(name)
    data = certificate.data
    for epsilon in [one for side in DIRECTIONS for one in (getattr(data.directions, side).curve.epsilon)[::13]]:
        interval = certificate.profile.delta(epsilon)
        stated = [
            delta
            for side in DIRECTIONS
            for place, delta in zip(
                getattr(data.directions, side).curve.epsilon, getattr(data.directions, side).curve.delta, strict=True
            )
            if place == epsilon
        ]
        # The larger direction's, where both have the place; the smaller one's says nothing of the maximum.
        if len(stated) == 2 or epsilon in data.directions.remove.curve.epsilon:  # type: ignore[union-attr]
            assert interval.lower <= max(stated) <= interval.upper * 1.02


@pytest.mark.parametrize("name", ["cifar10", "tiny", "large", "gaussian"])
def test_no_chord_is_seen(name: str) -> None:
    """Half-way between points the line lies above the profile, by less than half a pixel where the profile is resolved."""
    certificate = certified(name)
    least, seen = NEGLIGIBLE * certificate.delta, 0
    plot = curves.profile(certificate.data).plot
    line = plot.series[0].points
    corners = [point for point in hull(upper_points(certificate.data, "remove")) if point.delta >= plot.y.low]
    tall, wide = HEIGHT - TOP - BOTTOM, WIDTH - LEFT - RIGHT
    pairs = list(itertools.pairwise(corners))
    for left, right in pairs[:: max(1, len(pairs) // 12)]:
        epsilon = 0.5 * (left.epsilon + right.epsilon)
        (before, after) = next((a, b) for a, b in itertools.pairwise(line) if a[0] <= epsilon <= b[0] and a[0] < b[0])
        share = (epsilon - before[0]) / (after[0] - before[0])
        drawn = math.log(before[1]) + share * math.log(after[1] / before[1])
        interval = certificate.profile.delta(epsilon)
        above = (drawn - math.log(interval.lower)) / math.log(plot.y.high / plot.y.low) * tall
        # Where the line is steep, what is seen is how far beside the curve it lies.
        steep = math.log(left.delta / right.delta) / math.log(plot.y.high / plot.y.low) * tall
        steep /= (right.epsilon - left.epsilon) / (plot.x.high - plot.x.low) * wide
        assert drawn >= math.log(interval.lower)
        resolved = left.delta >= least
        seen += resolved
        assert not resolved or above / math.hypot(1.0, steep) <= 0.5, (left, right)
    assert seen >= 3


@pytest.mark.parametrize("name", list(DOCUMENTS))
def test_certificates_stay_small_and_fit_themselves(name: str, tmp_path: Path) -> None:
    certificate = certified(name)
    data = certificate.data
    assert len(data.profile) == (
        14 if data.document.get("accounting", {}).get("profile") is None else len(data.profile)
    )
    for side in DIRECTIONS:
        curve = getattr(data.directions, side).curve
        assert 0 < len(curve.epsilon) == len(curve.delta) <= 300
        assert curve.delta == sorted(curve.delta, reverse=True)
        assert not set(curve.epsilon) & {point.epsilon for point in stated_points(data, side)}
    assert len(certificate.to_json()) < 45_000
    assert len(certificate.to_html()) < 160_000
    certificate.save(tmp_path / "c.json")
    (judged,) = pyaccount.check(tmp_path / "c.json", no_limits=True).certificates
    assert judged.passes, judged.rules


def test_attacks_are_bounded_by_the_curve_too() -> None:
    data = certified("tiny").data
    bare = data.model_copy(
        update={
            "directions": data.directions.model_copy(
                update={s: getattr(data.directions, s).model_copy(update={"curve": None}) for s in DIRECTIONS}
            )
        }
    )
    from pyaccount.certificate.meaning import trade_off

    for rate in (1e-6, 1e-3, 0.05, 0.5):
        sharp, blunt = trade_off(data).true_positive_rate(rate), trade_off(bare).true_positive_rate(rate)
        assert sharp <= blunt
    assert trade_off(data).true_positive_rate(1e-6) < 0.5 * trade_off(bare).true_positive_rate(1e-6)


def test_no_curve_without_points_and_none_where_samples_are() -> None:
    raw = {**GAUSSIAN, "accounting": {"profile": []}}
    data = pyaccount.certify(raw).data
    assert data.directions.remove.curve is None
    assert data.directions.add.curve is None
    sampled = pyaccount.Certificate.from_json(json.dumps(golden("verified"))).data
    assert sampled.directions.remove.curve is None
    assert upper_points(sampled, "remove") == stated_points(sampled, "remove")


def curve_of(certificate: dict[str, Any]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = certificate["directions"]["remove"]["curve"]
    return found


def lower(certificate: dict[str, Any]) -> None:
    curve_of(certificate)["delta"][20] *= 0.97


def scale_all(certificate: dict[str, Any]) -> None:
    curve = curve_of(certificate)
    curve["delta"] = [0.98 * delta for delta in curve["delta"]]


def invent(certificate: dict[str, Any]) -> None:
    """A point of its own, that says too much."""
    curve = curve_of(certificate)
    middle = 0.5 * (curve["epsilon"][20] + curve["epsilon"][21])
    curve["epsilon"].insert(21, middle)
    curve["delta"].insert(21, curve["delta"][21] * 1.0001)


@pytest.mark.parametrize("forge", [lower, scale_all, invent])
def test_forged_points_are_named(forge: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    forged = json.loads(certified("cifar10").to_json())
    forge(forged)
    found = pyaccount.verify(save(tmp_path, forged))
    assert not found.agrees
    wrong = [one.path for one in found.differences if not one.agrees] + [flaw.path for flaw in found.inconsistencies]
    assert any(path.startswith("directions.remove.curve.delta[2") for path in wrong)


def test_a_curve_with_other_points_agrees_if_each_holds(tmp_path: Path) -> None:
    thinned = json.loads(certified("cifar10").to_json())
    curve = curve_of(thinned)
    for key in curve:
        del curve[key][::3]
    stated = [point["epsilon"] for point in thinned["profile"]]
    at = next(
        k
        for k, (left, right) in enumerate(itertools.pairwise(curve["epsilon"]))
        if k > 5 and not any(left <= epsilon <= right for epsilon in stated)
    )
    curve["epsilon"].insert(at + 1, 0.5 * (curve["epsilon"][at] + curve["epsilon"][at + 1]))
    curve["delta"].insert(at + 1, curve["delta"][at])
    found = pyaccount.verify(save(tmp_path, thinned))
    assert found.agrees
    assert not found.identical
    assert "directions.remove.curve" in {one.path for one in found.differences}
    # None at all is another thing than fewer points.
    thinned["directions"]["add"]["curve"] = None
    found = pyaccount.verify(save(tmp_path, thinned))
    assert [one.path for one in found.differences if not one.agrees] == ["directions.add.curve"]


def rise(curve: dict[str, list[float]]) -> None:
    curve["delta"][3] = 1.0


def turn(curve: dict[str, list[float]]) -> None:
    curve["epsilon"][3] = curve["epsilon"][2]


def shorten(curve: dict[str, list[float]]) -> None:
    curve["delta"].pop()


def sink(curve: dict[str, list[float]]) -> None:
    """Below what the profile's next lower end refutes."""
    curve["delta"] = curve["delta"][:5] + [1e-12] * (len(curve["delta"]) - 5)


def raise_all(curve: dict[str, list[float]]) -> None:
    """Falling, but above the profile."""
    curve["delta"] = [min(1.0, 1.5 * delta) for delta in curve["delta"]]


@pytest.mark.parametrize("spoil", [rise, turn, shorten, sink, raise_all])
def test_a_curve_that_contradicts_the_rest_is_named_at_once(spoil: Callable[[Any], None], tmp_path: Path) -> None:
    forged = copy.deepcopy(json.loads(certified("cifar10").to_json()))
    spoil(curve_of(forged))
    (judged,) = pyaccount.check(save(tmp_path, forged, careless=True), no_limits=True).certificates
    assert not judged.passes
    found = inconsistencies(pyaccount.Certificate.from_json(json.dumps(forged)).data)
    assert any(one.path.startswith("directions.remove.curve") for one in found)
