"""A certificate's numbers against one another: bounds that cross, and evidence that does not carry the guarantee."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from pyaccount.certificate.inconsistency import SOLVE, Inconsistency, at
from pyaccount.directions import sampled_directions
from pyaccount.risk.polynomials import MomentPolynomial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyaccount.certificate.model import (
        CertificateModel,
        CurveRecord,
        DirectionResult,
        Guarantee,
        MomentRecord,
        ProfilePoint,
        SamplingRecord,
        TestRecord,
    )


#: Samplers with a fixed number of draws, whose runs the contrast, one on whole batches, need not bound.
_FIXED_DRAWS = ("fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww")


def bounds(data: CertificateModel) -> Iterator[Inconsistency]:
    """Lower ends below upper ends; and of two points of one falling curve none may refute the other."""
    guarantee, directions = data.guarantee, data.directions
    yield from _ordered("guarantee", guarantee)
    yield from _curve("profile", data.profile, guarantee)
    for name, direction in (("remove", directions.remove), ("add", directions.add)):
        yield from _ordered(f"directions.{name}", direction)
        yield from _curve(f"directions.{name}.profile", direction.profile, None)
        if direction.curve is not None:
            yield from _further(f"directions.{name}.curve", direction.curve, direction, guarantee)
        if direction.epsilon_lower > guarantee.epsilon:
            yield Inconsistency(f"directions.{name}.epsilon_lower", "above the guarantee's epsilon")
        if direction.delta_lower > guarantee.delta:
            yield Inconsistency(f"directions.{name}.delta_lower", "above the guarantee's delta")
    yield from _larger(data)
    unamplified = data.unamplified
    above = guarantee.epsilon if unamplified.epsilon is None else unamplified.epsilon
    # What holds without sampling holds with it, unless a draw takes another record's place, or the same one several times.
    bounds_run = not any(phase.sampler in _FIXED_DRAWS for phase in data.phases)
    if bounds_run and unamplified.delta == guarantee.delta and above < guarantee.epsilon_lower * (1.0 - 1e-9):
        yield Inconsistency("unamplified.epsilon", "below the guarantee's epsilon_lower")


def _larger(data: CertificateModel) -> Iterator[Inconsistency]:
    """The guarantee and its profile are the larger of both directions, exactly."""
    guarantee, sides = data.guarantee, (data.directions.remove, data.directions.add)
    # The other coordinate is given, and each direction's bound there is computed by itself.
    solved = "delta" if at(data.document, "privacy", "delta") == SOLVE else "epsilon"
    if at(data.document, "privacy", "epsilon") == 0.0:
        solved = "delta"
    for name in (solved, "epsilon_lower", "delta_lower"):
        stated, larger = getattr(guarantee, name), max(getattr(side, name) for side in sides)
        if stated != larger:
            yield Inconsistency(f"guarantee.{name}", f"{stated!r}, where the larger of the directions' is {larger!r}")
    if any(len(side.profile) != len(data.profile) for side in sides):
        yield Inconsistency("profile", "not as many points as in each direction")
        return
    for index, (point, *ends) in enumerate(zip(data.profile, *(side.profile for side in sides), strict=True)):
        if any(end.epsilon != point.epsilon for end in ends):
            yield Inconsistency(f"profile[{index}].epsilon", "not the same in both directions")
            continue
        # A direction's lower end that was cut down to its upper end says less than the guarantee's.
        cut = any(end.delta_lower == end.delta for end in ends)
        for name in ("delta", *(() if cut else ("delta_lower",))):
            stated, larger = getattr(point, name), max(getattr(end, name) for end in ends)
            if stated != larger:
                yield Inconsistency(
                    f"profile[{index}].{name}", f"{stated!r}, where the larger of the directions' is {larger!r}"
                )


def _ordered(path: str, ends: Guarantee | DirectionResult) -> Iterator[Inconsistency]:
    for name, lower, upper in (
        ("epsilon", ends.epsilon_lower, ends.epsilon),
        ("delta", ends.delta_lower, ends.delta),
    ):
        if lower > upper:
            yield Inconsistency(f"{path}.{name}", f"at most {upper!r} and at least {lower!r}: the bounds cross")


def _curve(path: str, points: Sequence[ProfilePoint], guarantee: Guarantee | None) -> Iterator[Inconsistency]:
    for index, point in enumerate(points):
        place = f"{path}[{index}].delta"
        if point.delta_lower > point.delta:
            yield Inconsistency(place, f"at most {point.delta!r} and at least {point.delta_lower!r}: the bounds cross")
        if guarantee is None:
            continue
        if point.epsilon >= guarantee.epsilon and point.delta_lower > guarantee.delta:
            yield Inconsistency(f"{place}_lower", "above the guarantee's delta, at no smaller an ε")
        if point.epsilon <= guarantee.epsilon and point.delta < guarantee.delta_lower:
            yield Inconsistency(place, "below the guarantee's delta_lower, at no larger an ε")


def _further(
    path: str, curve: CurveRecord, direction: DirectionResult, guarantee: Guarantee
) -> Iterator[Inconsistency]:
    """The points of a curve fall, and none of them refutes the profile and the guarantee, or is refuted by these."""
    places, deltas = curve.epsilon, curve.delta
    if len(places) != len(deltas):
        yield Inconsistency(path, f"{len(places)} values of ε, and {len(deltas)} of δ")
        return
    for index, ((one, above), (other, below)) in enumerate(pairwise(zip(places, deltas, strict=True)), start=1):
        if not one < other:
            yield Inconsistency(f"{path}.epsilon[{index}]", "not above the one before")
        if below > above:
            yield Inconsistency(f"{path}.delta[{index}]", "above the one before, at a larger ε")
    most = [(point.epsilon, point.delta) for point in direction.profile]
    most += [(guarantee.epsilon, direction.delta), (direction.epsilon, guarantee.delta)]
    least = [(point.epsilon, point.delta_lower) for point in direction.profile]
    least += [(guarantee.epsilon, direction.delta_lower)]
    for index, (epsilon, delta) in enumerate(zip(places, deltas, strict=True)):
        place = f"{path}.delta[{index}]"
        if any(epsilon >= other and delta > bound for other, bound in most):
            yield Inconsistency(place, "above a bound of the profile or the guarantee, at no smaller an ε")
        refuted = epsilon < direction.epsilon_lower and delta < guarantee.delta
        if refuted or any(epsilon <= other and delta < bound for other, bound in least):
            yield Inconsistency(place, "below what the profile or the guarantee refutes, at no larger an ε")


def evidence(data: CertificateModel) -> Iterator[Inconsistency]:
    """The kind of guarantee against how it is said to have been reached."""
    guarantee, sampling = data.guarantee, data.evidence.sampling
    stated = guarantee.failure_probability
    if guarantee.kind == "confidence":
        if sampling is not None and stated != sampling.total_probability:
            yield Inconsistency("guarantee.failure_probability", "not the total_probability of the evidence")
    elif stated != 0.0:
        yield Inconsistency("guarantee.failure_probability", f"not 0 for a {guarantee.kind} guarantee")
    if sampling is None:
        if guarantee.kind != "deterministic":
            yield Inconsistency("evidence.sampling", f"null, where the guarantee is {guarantee.kind}")
        yield from _compositions(data)
        return
    yield from _profile_probability(guarantee, sampling)
    # What the tests may fail with is a line of the budget, and of nothing else; a deterministic guarantee rests on none.
    tested = any(line.contribution == sampling.total_probability for line in data.evidence.error_budget)
    if guarantee.kind != "deterministic":
        if not tested:
            yield Inconsistency("evidence.error_budget", "has no line with the total_probability of the tests")
        yield from _tests(data, sampling)
    elif tested:
        yield Inconsistency("guarantee.kind", "deterministic, where the error budget counts what tests may fail with")
    elif sampling.moment is not None:
        yield from _moment(guarantee, sampling.moment)
    elif sampling.composed_curve is None and _above(data.unamplified.epsilon, guarantee.epsilon):
        yield Inconsistency("guarantee.kind", "deterministic, where without samples only unamplified.epsilon is proven")


def _profile_probability(guarantee: Guarantee, sampling: SamplingRecord) -> Iterator[Inconsistency]:
    """A profile that a tested guarantee bounds may be wrong where its own samples or the tests err."""
    path, points = "evidence.sampling.profile_failure_probability", sampling.profile_failure_probability
    if points is None:
        return
    parts = sampling.pointwise_failure_probability + sampling.total_probability
    if guarantee.kind == "deterministic":
        yield Inconsistency(path, f"stated for a {guarantee.kind} guarantee")
    elif points < min(1.0, parts):
        yield Inconsistency(path, f"{points!r}, below that of a point and of the tests together")


def _moment(guarantee: Guarantee, moment: MomentRecord) -> Iterator[Inconsistency]:
    """What is said to follow from a moment follows from it, and the guarantee from that."""
    path, order, epsilon, polynomial = "evidence.sampling.moment", moment.order, guarantee.epsilon, moment.polynomial
    exponent = moment.log_moment + (order - 1) * (math.log(order - 1) - epsilon) - order * math.log(order)
    least = math.exp(min(exponent, 0.0))
    if polynomial is not None:
        bounds = polynomial.log_moments_lower, polynomial.log_moments_upper
        if {len(one) for one in bounds} != {len(polynomial.coefficients)}:
            yield Inconsistency(f"{path}.polynomial", "it needs bounds on as many moments as it has coefficients")
            return
        log_moments = tuple(zip(*bounds, strict=True))
        found = MomentPolynomial(tuple(polynomial.coefficients), log_moments)
        if any(low > high for low, high in log_moments) or log_moments[:2] != ((0.0, 0.0),) * 2:
            yield Inconsistency(f"{path}.polynomial", "E f^0 and E f are 1, and no lower bound is above an upper one")
        if not found.dominates:
            yield Inconsistency(f"{path}.polynomial.coefficients", "the polynomial is below x − 1, or below 0")
        least = min(least, found.bound(epsilon))
    if moment.most_busy is not None and moment.most_busy >= order:
        yield Inconsistency(f"{path}.most_busy", "not fewer than the replicas")
    if moment.remove < least * (1.0 - 1e-9):
        yield Inconsistency(f"{path}.remove", "below what follows from the moments")
    for name, bound in (("remove", moment.remove), ("add", moment.add)):
        if bound > guarantee.delta:
            yield Inconsistency(f"{path}.{name}", "above the guarantee's δ")


def _above(unamplified: float | None, epsilon: float) -> bool:
    """Whether one upper end is above another by more than their computation may differ."""
    return unamplified is not None and unamplified > epsilon * (1.0 + 1e-3) + 1e-6


def _tests(data: CertificateModel, sampling: SamplingRecord) -> Iterator[Inconsistency]:
    """In every direction an accepted test must imply the guarantee, with the wealth and the probability stated.

    The test may be of a harder claim: a smaller ε or δ, or less noise where σ was solved for. More noise is post-processing.
    """
    guarantee, q = data.guarantee, sampling.total_probability
    noises, solved = {phase.noise_multiplier for phase in data.phases}, _solved_noise(data)
    # ln(1/q) of one sequence; where it is 0, no wealth certifies.
    log_target = -math.log(sampling.test_probability) if sampling.test_probability > 0.0 else math.inf

    def implies(test: TestRecord) -> bool:
        # Folded into δ, or stated beside it.
        delta = test.threshold + (q * (1.0 - test.threshold) if guarantee.kind == "verified" else 0.0)
        return (
            test.accepted
            and (test.noise_multiplier in noises if solved is None else 0.0 < test.noise_multiplier <= solved)
            and test.epsilon <= guarantee.epsilon
            and delta <= guarantee.delta * (1.0 + 1e-9)
            and test.log_target >= log_target * (1.0 - 1e-9)
            # A test with a fixed number of samples has no betting fractions, and no wealth.
            and (not test.stakes or test.log_capital >= test.log_target)
            and (test.second_moment is None or test.second_moment.log_capital >= test.log_target)
        )

    needed = sampled_directions(data.privacy.adjacency)
    missing = [side for side in needed if not any(test.direction == side and implies(test) for test in sampling.tests)]
    if missing:
        yield Inconsistency(
            "evidence.sampling.tests", f"none that was accepted implies the guarantee ({', '.join(missing)})"
        )
    for index, test in enumerate(sampling.tests):
        power = test.proposal
        if power.most_busy is not None and not (power.block is None and power.most_busy < (power.order or 0)):
            yield Inconsistency(
                f"evidence.sampling.tests[{index}].proposal.most_busy", "not fewer than the replicas, or beside blocks"
            )
    if sampling.test_probability > q:
        yield Inconsistency("evidence.sampling.test_probability", "above the total_probability")


def _solved_noise(data: CertificateModel) -> float | None:
    """The σ that was solved for, which tests are of; None where the noise was given."""
    for index, phase in enumerate(data.phases):
        for path in ("noise.multiplier", f"phases[{index}].noise.multiplier"):
            if data.solved is not None and data.solved.path == path:
                return phase.noise_multiplier
    return None


def _compositions(data: CertificateModel) -> Iterator[Inconsistency]:
    """The compositions behind the guarantee end where the directions' bounds do."""
    remove, add = data.directions.remove, data.directions.add
    sides = {"remove": [remove], "add": [add], "both": [remove, add]}
    for index, one in enumerate(data.evidence.compositions):
        for direction in sides[one.direction]:
            uppers, lowers = (direction.epsilon, direction.delta), (direction.epsilon_lower, direction.delta_lower)
            below = one.bound in ("concrete-pair", "lower")
            if not below and one.upper not in uppers and min(one.upper, 1.0) not in uppers:
                yield Inconsistency(
                    f"evidence.compositions[{index}].upper", f"{one.upper!r} is no bound of the direction"
                )
            if below and one.lower not in lowers and min(one.lower, 1.0) not in lowers:
                yield Inconsistency(
                    f"evidence.compositions[{index}].lower", f"{one.lower!r} is no bound of the direction"
                )
