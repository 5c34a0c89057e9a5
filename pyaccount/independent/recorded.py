"""The arithmetic of recorded tests: whether what a certificate says of its samples carries what it claims.

A test bets against "δ(ε) ≥ δ₀" for one direction (section 5, docs/sampling.md). The wealth is the mean over betting
fractions λ of Π(1 + λ(δ₀ − V_i)), 0 ≤ V_i ≤ W. Nothing is drawn here, and nothing is proven of the samples themselves: a
record that contradicts itself is found, and one that does not is *consistent*. Recorded numbers are rounded to doubles, and
the core lowers its claims by its own errors, so every comparison has the slack that is stated beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from .enclosures import logarithm
from .process import Process
from .samples import MOST_REPLICAS
from .shapes import JsonObject, exactly, filled_in, refused

#: By how much a recorded number may be off: it was computed in doubles.
ROUNDING = Fraction(1, 10**9)
#: The same for a bound on samples, since this checker rounds coefficients up to multiples of 2^−36.
_COARSE = Fraction(1, 10**6)
#: The samplers whose runs are sampled.
_SAMPLED = ("b-min-sep", "user-b-min-sep", "balls-in-bins", "cyclic-poisson", "poisson", "random-allocation")


#: Returns a lower bound of ln Z_m of a process, or None if that takes too long.
MomentBound = Callable[[Process, int], Fraction | None]


class RecordFindings(NamedTuple):
    """What was checked of the record, what was not, and the statement that contradicts the claim, if there is one."""

    checked: list[str]
    not_checked: list[str]
    contradiction: str | None


class RecordedClaim(NamedTuple):
    """The guarantee, and how its tests are to be read."""

    epsilon: Fraction
    delta: Fraction
    sigma: Fraction
    adjacency: str


class _ContradictionError(Exception):
    """The record does not carry the claim."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise _ContradictionError(message)


def claim_of(certificate: JsonObject, epsilon: Fraction, delta: Fraction) -> RecordedClaim:
    """Return the guarantee with the σ of the one phase that is sampled."""
    document = filled_in(certificate)
    bodies = [body for body in document.get("phases") or [document] if "sampler" in body and "noise" in body]
    names = [each["sampler"]["kind"] for each in bodies]
    sampled = [i for i, kind in enumerate(names) if kind in _SAMPLED and (len(names) == 1 or kind != "poisson")]
    if len(sampled) != 1:
        raise refused("several sampled phases")
    sigma = exactly(bodies[sampled[0]]["noise"]["multiplier"]) * exactly(document.get("noise", {}).get("scale", 1))
    return RecordedClaim(epsilon, delta, sigma, document["privacy"]["adjacency"])


def _carrying(tests: Sequence[JsonObject], claim: RecordedClaim) -> dict[str, JsonObject]:
    """Return the accepted test of each direction that carries the claim.

    A test of a claim that is at least as hard carries it: δ(ε) falls with ε and with σ (more noise is post-processing).
    """
    found: dict[str, JsonObject] = {}
    for direction in ("replace",) if claim.adjacency == "replace-one" else ("remove", "add"):
        fitting = [
            test
            for test in tests
            if test["direction"] == direction
            and test["accepted"] is True
            and exactly(test["noise_multiplier"]) <= claim.sigma
            and exactly(test["epsilon"]) <= claim.epsilon
        ]
        _require(bool(fitting), f"no accepted test of the direction {direction} is as hard as the claim")
        found[direction] = min(fitting, key=lambda test: exactly(test["threshold"]))
    return found


def judge(certificate: JsonObject, claim: RecordedClaim, known: Process | None, moment: MomentBound) -> RecordFindings:
    """Check the record. `moment` returns a lower bound of ln Z_m of a setting, or None if that takes too long."""
    record = RecordFindings([], [], None)
    try:
        _judge(record, certificate, claim, known, moment)
    except _ContradictionError as error:
        return record._replace(contradiction=str(error))
    return record


def _judge(
    record: RecordFindings, certificate: JsonObject, claim: RecordedClaim, known: Process | None, moment: MomentBound
) -> None:
    sampling = certificate["evidence"]["sampling"]
    tests, kind = sampling["tests"], certificate["guarantee"].get("kind")
    carried = _carrying(tests, claim)
    record.checked.append(f"accepted tests of {' and '.join(carried)} are at least as hard as the claim")
    q, whole = exactly(sampling["test_probability"]), exactly(sampling["total_probability"])
    times = 1 + _restarts(tests)
    _require(
        q > 0 and whole >= times * q * (1 - ROUNDING),
        f"q = {float(whole)!r} is less than {times} times that of a sequence",
    )
    record.checked.append(f"q counts {times} sequence{'s' if times > 1 else ''} of tests")
    hardest = max(exactly(test["threshold"]) for test in carried.values())
    if kind == "verified":
        total = hardest + whole * (1 - hardest)
        _require(
            total <= claim.delta * (1 + ROUNDING), f"δ₀ + q(1 − δ₀) = {float(total)!r} is above the δ that is claimed"
        )
        record.checked.append("δ₀ + q(1 − δ₀) is at most δ")
    else:
        _require(hardest <= claim.delta, f"δ₀ = {float(hardest)!r} is above the δ that is claimed")
        stated = exactly(certificate["guarantee"].get("failure_probability", 0))
        _require(
            stated >= whole * (1 - ROUNDING), f"the failure probability {float(stated)!r} is below q = {float(whole)!r}"
        )
        record.checked.append("δ₀ is at most δ, and the failure probability is at least q")
    if sampling["verification"] != "betting":
        record.not_checked.append("the mean of a fixed number of samples")
        return
    for direction, test in carried.items():
        lines = list(_lowered(certificate, direction))
        clipped = bool(test.get("second_moment")) or any(source.startswith("clipping") for source, _ in lines)
        _bets(record, _Carried(direction, test, q, sum((each for _, each in lines), Fraction(0)), clipped))
        _weight_bound(record, direction, test, known, moment)


def _restarts(tests: Sequence[JsonObject]) -> int:
    """Return how often a sequence of tests began again: a test of an easier claim after a rejection."""
    found, rejected = 0, None
    for test in tests:
        values = tuple(exactly(test[key]) for key in ("noise_multiplier", "epsilon", "threshold"))
        if rejected is not None and any(a > b for a, b in zip(values, rejected, strict=True)):
            found, rejected = found + 1, None
        if test["accepted"] is not True:
            rejected = values
    return found


def _lowered(certificate: JsonObject, direction: str) -> Iterator[tuple[str, Fraction]]:
    """Yield by how much the claim may have been lowered before it was tested: lines of the error budget in units of δ."""
    for line in certificate["evidence"].get("error_budget", ()):
        if line["direction"] == direction and not line["source"].startswith(
            ("failure of the tests", "largest relative")
        ):
            yield line["source"], exactly(line["contribution"])


class _Carried(NamedTuple):
    """A test that carries the claim, its q, by how much the claim may have been lowered, and whether its samples were clipped."""

    direction: str
    test: JsonObject
    q: Fraction
    lowered: Fraction
    clipped: bool


def _bets(record: RecordFindings, carried: _Carried) -> None:
    """Check the betting fractions, the target and the wealth of one test.

    *From the mean*. ln is concave, so ln Π(1 + λ(δ₀ − V_i)) ≤ N·ln(1 + λ(δ₀ − mean)). And ln(1 + λ(δ₀ − V)) is above its chord
    between V = 0 and V = W, so that the product is at least N times the chord at the mean.
    """
    direction, test, q, lowered, clipped = carried
    target, wealth = exactly(test["log_target"]), exactly(test["log_wealth"])
    _require(target >= -logarithm(q) - ROUNDING, f"log_target {float(target)!r} is below ln(1/q)")
    _require(wealth >= target, f"the wealth of the test of {direction} does not reach its target")
    record.checked.append(f"{direction}: the target is at least ln(1/q), and the wealth reaches it")
    if test["proposal"].get("log_sobolev"):
        record.not_checked.append(f"{direction}: the bets on a mean that bounds δ")
        return
    weight_bound, claimed, n = exactly(test["weight_bound"]), exactly(test["threshold"]), exactly(test["samples"])
    fractions = [exactly(each) for each in test["betting_fractions"]]
    if not fractions:
        _require(n == 0 and weight_bound <= claimed, f"a test of {direction} without bets needs a bound below δ₀")
        record.checked.append(f"{direction}: the bound on a sample is below δ₀, so that nothing need be drawn")
        return
    _require(
        all(fraction > 0 and fraction * (weight_bound - claimed) < 1 for fraction in fractions),
        f"a betting fraction of the test of {direction} is not below 1/(W − δ₀)",
    )
    record.checked.append(f"{direction}: every betting fraction is below 1/(W − δ₀); their wealth is averaged")
    mean = exactly(test["mean"])
    _require(0 <= mean <= weight_bound or clipped, f"the mean of the samples of {direction} is above their bound")
    if clipped:
        record.not_checked.append(
            f"{direction}: the recorded mean, since samples are clipped, and the test of their second moment"
        )
        return
    most = _mean_wealth([n * _log_or_less(1 + fraction * (claimed - mean)) for fraction in fractions])
    _require(wealth <= most + 1e-6 * (1 + abs(most)), f"no {n} samples of {direction} with this mean give this wealth")
    chords = []
    for fraction in fractions:
        full = _log_or_less(1 + fraction * (claimed - lowered - weight_bound))
        none = _log_or_less(1 + fraction * (claimed - lowered))
        chords.append(n * (none + (full - none) * mean / weight_bound))
    least = _mean_wealth(chords)
    _require(
        wealth >= least - 1e-6 * (1 + abs(least)),
        f"{n} samples of {direction} with this mean give more than this wealth",
    )
    proves = least >= target
    record.checked.append(
        f"{direction}: the wealth agrees with the recorded mean"
        + (", which alone proves that the test accepts" if proves else "")
    )


def _log_or_less(x: Fraction) -> Fraction:
    """Return ln x, and a very small number instead of −∞."""
    return logarithm(x) if x > 0 else Fraction(-(10**9))


def _mean_wealth(logs: Sequence[Fraction]) -> float:
    """Return the logarithm of the mean of wealths; the comparison with it allows for the error of doubles."""
    most = max(logs)
    return float(most) + math.log(sum(math.exp(max(-700.0, float(each - most))) for each in logs) / len(logs))


def _weight_bound(
    record: RecordFindings, direction: str, test: JsonObject, known: Process | None, moment: MomentBound
) -> None:
    """Check that the bound on a sample is at least what is proven of its proposal.

    Samples of f^m: the mean of ρ is Z_m, so its largest value is at least that, and W ≥ Z_m·c_m·e^(−(m−1)ε) (section 10.1).
    Samples with scaled means: Hölder's bound. A part of a mixture with share a bounds them by 1/a times that.
    """
    proposal, weight_bound = test["proposal"], exactly(test["weight_bound"])
    scale, order, epsilon = exactly(proposal["mean_scale"]), proposal.get("order"), exactly(test["epsilon"])
    unknown = f"{direction}: the bound on a sample"
    plain = scale in (0, 1) and order is None and test.get("second_moment") is None
    if plain and not test["betting_fractions"]:
        # Nothing was drawn: the bound is one of δ itself, of records that seldom take part or of a Gaussian mechanism above.
        record.not_checked.append(unknown)
        return
    if plain and not proposal.get("mixture"):
        _require(weight_bound >= 1, f"plain samples of {direction} are not bounded by {float(weight_bound)!r}")
        record.checked.append(f"{direction}: plain samples are at most 1")
        return
    if (
        known is None
        or proposal.get("mixture")
        or proposal.get("block")
        or proposal.get("most_busy")
        or scale in (0, 1)
    ):
        record.not_checked.append(unknown)
        return
    here = known.with_noise(exactly(test["noise_multiplier"]))
    if order is not None:
        if not (isinstance(order, int) and 2 <= order <= MOST_REPLICAS):
            record.not_checked.append(unknown)
            return
        least = moment(here, order)
        c_m = logarithm(Fraction((order - 1) ** (order - 1), order**order))
        bound = None if least is None else least + c_m - (order - 1) * epsilon
    else:
        bound = here.hoelder(scale, exactly(proposal["parameter"]), epsilon)
    if bound is None:
        record.not_checked.append(unknown)
        return
    _require(
        weight_bound > 0 and logarithm(weight_bound) >= bound - _COARSE,
        f"the bound on a sample of {direction} is below what is proven",
    )
    words = "the least that samples of a power of f can have" if order is not None else "Hölder's bound"
    record.checked.append(f"{direction}: the bound on a sample is at least {words}")
