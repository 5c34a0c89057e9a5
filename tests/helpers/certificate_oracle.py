"""A second derivation of what a certificate states, from its document as plain data: the oracle for issued certificates.

It knows samplers, matrices and budgets only by their words and formulas, and shares no model with the package: rates, lengths of
epochs, coefficients, norms and errors are derived here once more. It finds no inconsistency in a certificate that the package
issues, and finds one if a field is changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from matrix_oracle import ROUNDING, matrix_inconsistencies
from mechanism_oracle import SOLVE, WITHIN, bodies_inside, filled, inner_blanks, released
from schedule_oracle import factor_of_phases, schedule_inconsistencies

from pyaccount.certificate import consistency
from pyaccount.certificate.consistency import Inconsistency, at, is_number
from pyaccount.directions import DIRECTIONS
from pyaccount.document.rates import epochs_of, iterations_of
from pyaccount.errors import printable, quoted
from pyaccount.execute.certified import from_guarantee
from pyaccount.risk.budget import Enclosure, attained_at_least
from pyaccount.risk.budgets import BUDGETS
from pyaccount.risk.polynomials import MomentPolynomial

if TYPE_CHECKING:
    from pyaccount.records.certificate import (
        CertificateModel,
        CurveRecord,
        DirectionResult,
        Guarantee,
        PhaseRecord,
        RiskRecord,
    )
    from pyaccount.records.evidence import MomentRecord, SamplingRecord
    from pyaccount.risk.budget import Budget

#: Samplers whose rates follow from whole numbers of draws or of bins.
_NO_PROBABILITY = ("none", "random-allocation", "balls-in-bins", "with-replacement", "must-ow", "must-wo", "must-ww")
#: An epoch has at least 1/`SMALLEST_EPOCH` rounds, so that the largest number of iterations divided by it is a double.
SMALLEST_EPOCH = 10**200
#: Samplers with a fixed number of draws, whose runs need not be bounded by the unamplified comparison with full batches.
_FIXED_DRAWS = ("fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww")
#: The relative precision to which the range of a Gaussian budget is the same on all machines: it is rounded to four digits.
RANGE = 1.1e-3


def inconsistencies(data: CertificateModel) -> list[Inconsistency]:
    """Yield everything in a certificate that contradicts the rest of it."""
    found = [
        *(one for one in consistency.inconsistencies(data) if one.path != consistency.CONTENT),
        *_document(data),
        *_solved(data),
        *_risk(data),
        *matrix_inconsistencies(data, _bodies(data.document)),
        *bounds(data),
        *evidence(data),
    ]
    return [Inconsistency(printable(one.path), printable(one.message)) for one in found]


def _document(data: CertificateModel) -> Iterator[Inconsistency]:
    """Compare the values of the document with the certificate's fields."""
    document, privacy = data.document, data.privacy
    bodies = _bodies(document)
    user = any(at(body, "sampler", "kind") == "user-b-min-sep" for body in bodies)
    yield from _same("privacy.unit", privacy.unit, "user" if user else "record")
    if len(bodies) != len(data.phases):
        yield Inconsistency("phases", f"{len(data.phases)} phases, where the document has {len(bodies)}")
    else:
        for index, (phase, body) in enumerate(zip(data.phases, bodies, strict=True)):
            yield from _phase(f"phases[{index}]", phase, body, factor_of_phases(data))
            yield from schedule_inconsistencies(f"phases[{index}]", data, phase, body)
    noises = {phase.noise_multiplier for phase in data.phases}
    shared = next(iter(noises)) if len(noises) == 1 else None
    if data.noise_multiplier != shared:
        yield Inconsistency(
            "noise_multiplier", f"{data.noise_multiplier!r}, where the phases have {shared!r} in common"
        )


def _phase(path: str, phase: PhaseRecord, body: object, factor: float | None) -> Iterator[Inconsistency]:
    if any(at(body, key) is not None for key in ("mechanism", *WITHIN)):
        yield from _mechanism_phase(path, phase, body, factor)
        return
    multiplier = at(body, "noise", "multiplier")
    if is_number(multiplier) and factor != 1.0:
        multiplier = SOLVE if factor is None else factor * multiplier
    yield from _same(f"{path}.sampler", phase.sampler, at(body, "sampler", "kind"))
    yield from _chosen(path, phase, body)
    yield from _length(path, phase, body)
    if not isinstance(multiplier, dict):
        yield from _same(f"{path}.noise_multiplier", phase.noise_multiplier, multiplier)
    yield from _releases(path, phase, body)
    yield from _same(f"{path}.noise", phase.noise, at(body, "noise", "kind", default="gaussian"))
    yield from _same(f"{path}.count", phase.count, at(body, "count", default=1))
    yield from _same(f"{path}.draws_per_iteration", phase.draws_per_iteration or 1, _draws(body))
    yield from _rates(path, phase, body)
    yield from _allocated(path, phase, body)


def _mechanism_phase(path: str, phase: PhaseRecord, body: object, factor: float | None) -> Iterator[Inconsistency]:
    """Compare a phase with the mechanism of its body: the stated keys, the number of runs, and who is drawn for them."""
    rate, record = at(body, "sampler", "sampling_probability"), phase.mechanism
    kind, stated = released(body, factor)
    yield from _same(f"{path}.mechanism.kind", record and record.kind, kind)
    if record is not None and not filled(record.stated, stated):
        message = f"{quoted(record.stated)}, where the document says {quoted(stated)}"
        yield Inconsistency(f"{path}.mechanism.stated", message)
    yield from _same(f"{path}.count", phase.count, at(body, "count", default=1))
    yield from _same(f"{path}.sampler", phase.sampler, at(body, "sampler", "kind", default="none"))
    yield from _probabilities(path, phase, rate)
    rate = None if isinstance(rate, dict) else rate
    yield from _same(f"{path}.sampling_probability", phase.sampling_probability, rate)
    yield from _same(f"{path}.participation_rate", phase.participation_rate, rate)
    yield from _same(f"{path}.iterations", phase.iterations, 1)
    yield from _same(f"{path}.noise", phase.noise, None)
    yield from _same(f"{path}.noise_multiplier", phase.noise_multiplier, None)


def _chosen(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """Check that each key of the sampler with a `choose:` has one of its values, and that no other key was chosen."""
    sampler = at(body, "sampler")
    keys = sampler.items() if isinstance(sampler, dict) else ()
    lists = {key: at(value, "choose") for key, value in keys if isinstance(value, dict)}
    stated = phase.chosen or {}
    for key in (*lists, *(key for key in stated if key not in lists)):
        allowed = lists.get(key)
        if not isinstance(allowed, list) or key not in stated or stated[key] not in allowed:
            said = quoted(allowed) if key in lists else "no choice"
            yield Inconsistency(f"{path}.chosen.{key}", f"{quoted(stated.get(key))}, where the document says {said}")


def _releases(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """Check the other releases of a batch, and the effective multiplier that follows from them."""
    listed = at(body, "noise", "also")
    written = [(at(one, "what"), at(one, "multiplier")) for one in listed] if isinstance(listed, list) else []
    stated = [(one.what, one.noise_multiplier) for one in phase.also or ()]
    if stated != written:
        yield Inconsistency(f"{path}.also", f"{quoted(stated)}, where the document says {quoted(written)}")
    found, own = None, phase.noise_multiplier
    # A matrix correlates the noise of one release only, so no multiplier has the effect of all of them.
    if stated and own is not None and at(body, "matrix", "kind", default="identity") == "identity":
        from pyaccount.document.noise import effective
        from pyaccount.document.ranges import NOISE_MULTIPLIER  # few documents have several releases

        multipliers = [own, *(sigma for _, sigma in stated)]
        # The squares of multipliers outside of this range might vanish, and no document can have them.
        found = effective(multipliers)[0] if all(sigma in NOISE_MULTIPLIER for sigma in multipliers) else None
    if phase.effective_noise_multiplier != found:
        yield Inconsistency(
            f"{path}.effective_noise_multiplier",
            f"{phase.effective_noise_multiplier!r}, where the releases of a batch make {found!r}",
        )


def _length(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """Check the number of iterations, which the document states or which follows from its epochs."""
    stated, asked = at(body, "training", "iterations"), at(body, "training", "epochs")
    if stated is not None or not is_number(asked):
        yield from _same(f"{path}.iterations", phase.iterations, stated)
    if not is_number(asked):
        if phase.epochs is not None:
            yield Inconsistency(f"{path}.epochs", f"{quoted(phase.epochs)}, where the document counts in iterations")
        return
    names = ("dataset_size", "expected_batch_size", "sampling_probability", "participation_rate")
    given = {name: at(body, "training", name) for name in names}
    numbers = {name: value for name, value in given.items() if is_number(value) and value > 0}
    draws = _draws(body)
    bins, apart = at(body, "sampler", "bins"), at(body, "sampler", "min_separation")
    apart = at(body, "sampler", "partitions") if phase.sampler == "cyclic-poisson" else apart
    # The separation of participations is the number of bands unless it is stated.
    apart = phase.matrix.bands if apart is None else apart
    length = epoch_of(
        phase.sampler,
        numbers,
        bins=round(bins) if is_number(bins) else None,
        separation=round(apart) if apart is not None and is_number(apart) else None,
        draws=round(draws),
        allocation=_allocation(body),
    )
    if length is None or length <= 0:
        yield Inconsistency(
            f"{path}.iterations", "the document counts in epochs, and does not say how many rounds one has"
        )
        return
    yield from _same(f"{path}.iterations", phase.iterations, iterations_of(asked, length))
    if length * SMALLEST_EPOCH < 1:
        yield Inconsistency(f"{path}.epochs", "an epoch of the document has hardly any rounds")
        return
    yield from _same(f"{path}.epochs", phase.epochs, epochs_of(phase.iterations, length))


def _allocation(body: object) -> tuple[int, int] | None:
    """Return the rounds of an allocation and a record's participations in it, if the document states them."""
    rounds, taken = at(body, "sampler", "iterations_per_allocation"), at(body, "sampler", "participations")
    taken = 1 if taken is None else taken
    if not (is_number(rounds) and is_number(taken) and rounds >= 1 and taken >= 1):
        return None
    return round(rounds), round(taken)


def _draws(body: object) -> float:
    """Return how many batches the document draws for a round, but at least 1."""
    stated = at(body, "sampler", "draws_per_iteration")
    return stated if is_number(stated) and stated >= 1 else 1


def _probabilities(path: str, phase: PhaseRecord, written: object) -> Iterator[Inconsistency]:
    """Check the probabilities of single records, which the document writes as a mapping."""
    record, strata, largest = phase.probabilities, at(written, "strata"), at(written, "max")
    stated = None if record is None else (record.largest, record.strata)
    if isinstance(strata, dict) and strata and all(map(is_number, strata.values())):
        expected: object = (float(max(strata.values())), {name: float(value) for name, value in strata.items()})
    else:
        expected = (float(largest), None) if is_number(largest) else None
    if stated != expected:
        message = f"{quoted(stated)}, where the document says {quoted(expected)}"
        yield Inconsistency(f"{path}.probabilities", message)


def _rates(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """Check how often a record takes part, if that is stated or a quotient of stated numbers; such numbers agree to the last bit.

    The package derives all of them from its models.
    """
    names = ("sampling_probability", "participation_rate", "expected_batch_size", "dataset_size")
    stated = {name: at(body, "training", name) for name in names}
    yield from _probabilities(path, phase, stated["sampling_probability"])
    given = {name: float(value) for name, value in stated.items() if is_number(value)}
    if "expected_batch_size" in given:
        yield from _same(f"{path}.expected_batch_size", phase.expected_batch_size, given["expected_batch_size"])
    rates = {name: given[name] for name in names[:2] if name in given}
    draws = _draws(body)
    batch, records = given.get("expected_batch_size"), given.get("dataset_size", 0.0)
    if stated["expected_batch_size"] == SOLVE:
        batch = phase.expected_batch_size
    if batch is not None and records > 0.0:
        rates["expected_batch_size"] = batch / records
    if phase.sampler == "fixed-size":
        # A rate is rounded to a whole number of records first.
        rates = {"expected_batch_size": batch / records} if batch is not None and batch.is_integer() and records else {}
    if draws > 1 and rates:
        # A participation rate is for all draws of a round, a sampling probability for one draw.
        each = {name: rate if name == names[0] else rate / draws for name, rate in rates.items()}
        if batch is not None and records > 0.0:
            each["expected_batch_size"] = batch / (draws * records)
        if names[0] in rates:
            rates[names[0]] = draws * rates[names[0]]
        yield from _same(f"{path}.{names[0]}", phase.sampling_probability, max(each.values()))
        yield from _same(f"{path}.{names[1]}", phase.participation_rate, max(rates.values()))
    elif phase.sampler in ("poisson", "fixed-size") and rates:
        # All statements are about the same number. They agree up to rounding, and the largest is used.
        for name in names[:2]:
            yield from _same(f"{path}.{name}", getattr(phase, name), max(rates.values()))
    elif len(rates) == 1 and phase.sampler not in _NO_PROBABILITY:
        for name, rate in rates.items():
            field = "participation_rate" if name == "expected_batch_size" else name
            if getattr(phase, field) is not None:
                yield from _same(f"{path}.{field}", getattr(phase, field), rate)


def _allocated(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """Check how often a record takes part in an allocation, and the expected batch size that follows."""
    allocation, records = _allocation(body), at(body, "training", "dataset_size")
    if phase.sampler != "random-allocation" or allocation is None:
        return
    rate = allocation[1] / allocation[0]
    yield from _same(f"{path}.participation_rate", phase.participation_rate, rate)
    if is_number(records) and at(body, "training", "expected_batch_size") is None:
        yield from _same(f"{path}.expected_batch_size", phase.expected_batch_size, records * rate)


def _risk(data: CertificateModel) -> Iterator[Inconsistency]:
    """Compare the risk budget of the certificate with that of its document."""
    if data.risk is not None:
        yield from risk_inconsistencies(data, data.risk)
    elif at(data.document, "privacy", "risk") is not None:
        yield Inconsistency("risk", "null, where the document has a budget of risk")


def _solved(data: CertificateModel) -> Iterator[Inconsistency]:
    """Compare the solved blank with the document's blank and with the field that contains its value."""
    blanks = dict(_blanks(data))
    if data.solved is None:
        if blanks:
            yield Inconsistency("solved", f"null, where the document leaves {next(iter(blanks))} open")
        return
    path, value = data.solved.path, data.solved.value
    if path not in blanks:
        yield Inconsistency("solved.path", f"the document does not leave {quoted(path)} open")
    elif blanks[path] != value:
        yield Inconsistency("solved.value", f"{value!r}, where the certificate's own figure is {blanks[path]!r}")


def _blanks(data: CertificateModel) -> Iterator[tuple[str, float | None]]:
    """Yield the document's blanks with the numbers that the certificate has for them."""
    numbers: dict[str, float] = {
        "epsilon": data.guarantee.epsilon,
        "delta": data.guarantee.delta,
        "group_size": float(data.privacy.group_size),
    }
    for name, number in numbers.items():
        if at(data.document, "privacy", name) == SOLVE:
            yield f"privacy.{name}", number
    phased = isinstance(data.document.get("phases"), list)
    if phased and at(data.document, "noise", "scale") == SOLVE:
        # The phases have their multipliers, from which the factor follows.
        yield "noise.scale", None if data.solved is None else float(data.solved.value)
    for index, (phase, body) in enumerate(zip(data.phases, _bodies(data.document), strict=False)):
        before = f"phases[{index}]." if phased else ""
        parts: dict[tuple[str, str], float | None] = {
            ("noise", "multiplier"): phase.noise_multiplier,
            ("training", "iterations"): phase.iterations,
            ("training", "expected_batch_size"): phase.expected_batch_size,
        }
        record = None if phase.mechanism is None else phase.mechanism.stated
        yield from inner_blanks(f"{before}mechanism", at(body, "mechanism"), record)
        for key in WITHIN if phased else ():
            yield from inner_blanks(f"{before}{key}", at(body, key), at(record, key))
        scales = [one.scale for one in phase.schedules or () if one.of == "noise.multiplier"]
        if at(body, "noise", "multiplier", "scale") == SOLVE:
            yield f"{before}noise.multiplier.scale", scales[0] if scales else None
        for (section, name), part in parts.items():
            if at(body, section, name) == SOLVE:
                yield f"{before}{section}.{name}", part


def _same(path: str, stated: object, written: object) -> Iterator[Inconsistency]:
    """Compare a field of the certificate with the value in the document, unless that is a blank."""
    if written not in (stated, SOLVE):
        said = "nothing" if written is None else quoted(written)
        yield Inconsistency(path, f"{quoted(stated)}, where the document says {said}")


def _bodies(document: dict[str, Any]) -> list[object]:
    phases = document.get("phases")
    return list(phases) if isinstance(phases, list) else [document]


def bounds(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that lower bounds are below upper bounds, and that no two points of one decreasing curve refute one another."""
    guarantee, directions = data.guarantee, data.directions
    for name, direction in (("remove", directions.remove), ("add", directions.add)):
        if direction.curve is not None:
            yield from _further(f"directions.{name}.curve", direction.curve, direction, guarantee)
    yield from _larger(data)
    unamplified = data.unamplified
    above = guarantee.epsilon if unamplified.epsilon is None else unamplified.epsilon
    # A bound without sampling also holds with sampling, unless a draw replaces another record or draws a record several times.
    inside = [at(one, "sampler", "kind") for body in _bodies(data.document) for one in bodies_inside(body)]
    bounds_run = not any(sampler in _FIXED_DRAWS for sampler in [*inside, *(phase.sampler for phase in data.phases)])
    if bounds_run and unamplified.delta == guarantee.delta and above < guarantee.epsilon_lower * (1.0 - 1e-9):
        yield Inconsistency("unamplified.epsilon", "below the guarantee's epsilon_lower")


def _larger(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that the guarantee and its profile are exactly the larger of both directions."""
    guarantee, sides = data.guarantee, (data.directions.remove, data.directions.add)
    # The other coordinate is given, and the bound of each direction at it is computed separately.
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
        # The lower bound of a direction that was reduced to its upper bound is weaker than that of the guarantee.
        cut = any(end.delta_lower == end.delta for end in ends)
        for name in ("delta", *(() if cut else ("delta_lower",))):
            stated, larger = getattr(point, name), max(getattr(end, name) for end in ends)
            if stated != larger:
                yield Inconsistency(
                    f"profile[{index}].{name}", f"{stated!r}, where the larger of the directions' is {larger!r}"
                )


def _further(
    path: str, curve: CurveRecord, direction: DirectionResult, guarantee: Guarantee
) -> Iterator[Inconsistency]:
    """Check that the points of a curve decrease, and that none refutes the profile and the guarantee or is refuted by them."""
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
    """Compare the kind of the guarantee with the evidence that the certificate states for it."""
    guarantee, sampling = data.guarantee, data.evidence.sampling
    if sampling is None:
        yield from _compositions(data)
        return
    yield from _profile_probability(guarantee, sampling)
    # The failure probability of the tests is a line of the budget, and no other line; a deterministic guarantee has no tests.
    tested = any(line.contribution == sampling.total_probability for line in data.evidence.error_budget)
    if guarantee.kind != "deterministic":
        if not tested:
            yield Inconsistency("evidence.error_budget", "has no line with the total_probability of the tests")
        yield from _tests(sampling)
    elif tested:
        yield Inconsistency("guarantee.kind", "deterministic, where the error budget counts what tests may fail with")
    elif sampling.moment is not None:
        yield from _moment(guarantee, sampling.moment)
    elif sampling.composed_curve is None and _above(data.unamplified.epsilon, guarantee.epsilon):
        yield Inconsistency("guarantee.kind", "deterministic, where without samples only unamplified.epsilon is proven")


def _profile_probability(guarantee: Guarantee, sampling: SamplingRecord) -> Iterator[Inconsistency]:
    """Check that the failure probability of a profile covers those of its own samples and of the tests of the guarantee."""
    path, points = "evidence.sampling.profile_failure_probability", sampling.profile_failure_probability
    if points is None:
        return
    parts = sampling.pointwise_failure_probability + sampling.total_probability
    if guarantee.kind == "deterministic":
        yield Inconsistency(path, f"stated for a {guarantee.kind} guarantee")
    elif points < min(1.0, parts):
        yield Inconsistency(path, f"{points!r}, below that of a point and of the tests together")


def _moment(guarantee: Guarantee, moment: MomentRecord) -> Iterator[Inconsistency]:
    """Check that moments and polynomial are consistent, and that the stated bound is not below the one that follows from them."""
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


def _above(unamplified: float | None, epsilon: float) -> bool:
    """Return whether one upper bound exceeds another by more than two computations may differ."""
    return unamplified is not None and unamplified > epsilon * (1.0 + 1e-3) + 1e-6


def _tests(sampling: SamplingRecord) -> Iterator[Inconsistency]:
    """Check that powers have fewer busy replicas than replicas, and that no test may fail more often than all together."""
    for index, test in enumerate(sampling.tests):
        power = test.proposal
        if power.most_busy is not None and not (power.block is None and power.most_busy < (power.order or 0)):
            yield Inconsistency(
                f"evidence.sampling.tests[{index}].proposal.most_busy", "not fewer than the replicas, or beside blocks"
            )
    if sampling.test_probability > sampling.total_probability:
        yield Inconsistency("evidence.sampling.test_probability", "above the total_probability")


def _compositions(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that the compositions behind the guarantee have the same bounds as the directions."""
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


def risk_inconsistencies(data: CertificateModel, risk: RiskRecord) -> Iterator[Inconsistency]:
    """Compare the risk block with the document, the guarantee and the profile."""
    stated = at(data.document, "privacy", "risk")
    if not isinstance(stated, dict):
        yield Inconsistency("risk", "the document has no budget of risk")
        return
    for name, field in (("budget", risk.measure), ("false_positive_rate", "false_positive_rate")):
        if getattr(risk, name) != stated.get(field):
            yield Inconsistency(
                f"risk.{name}", f"{getattr(risk, name)!r}, where the document says {stated.get(field)!r}"
            )
            return
    if risk.delta != _told_at(data.document, stated):
        yield Inconsistency("risk.delta", f"{risk.delta!r}, which is not the δ at which the document has ε told")
        return
    budget = _budget(risk)
    if budget is None:
        yield Inconsistency("risk.measure", "not a budget that a document can have")
        return
    yield from _of_budget(risk, budget)
    if risk.value is not None and risk.value_lower > risk.value:
        yield Inconsistency("risk.value_lower", "above the value")
    if risk.epsilon is not None and risk.epsilon_lower > risk.epsilon:
        yield Inconsistency("risk.epsilon_lower", "above epsilon")
    yield from (_composed if data.evidence.sampling is None else _sampled)(data, risk, budget)


def _of_budget(risk: RiskRecord, budget: Budget) -> Iterator[Inconsistency]:
    details: dict[str, float | None] = {"false_positive_rate": None, "last_epsilon": None, "least_rate": None}
    for name, value in (details | budget.details()).items():
        found = getattr(risk, name)
        if found is None or value is None:
            agrees = found is value
        else:
            # The bound of a range is rounded, and the rate decreases faster than the range grows.
            far = {"last_epsilon": RANGE, "least_rate": 1.0}.get(name, 0.0)
            agrees = abs(found - value) <= far * value
        if not agrees:
            yield Inconsistency(f"risk.{name}", f"{found!r}, where the budget makes it {value!r}")


def _composed(data: CertificateModel, risk: RiskRecord, budget: Budget) -> Iterator[Inconsistency]:
    """Check that ε and δ of the risk block are those of the guarantee, and that no point of the profile refutes the value."""
    guarantee = data.guarantee
    for name in ("epsilon", "epsilon_lower", "delta"):
        if getattr(risk, name) != getattr(guarantee, name):
            yield Inconsistency(f"risk.{name}", f"not the guarantee's, {getattr(guarantee, name)!r}")
    last = math.inf if risk.last_epsilon is None else risk.last_epsilon
    points = {
        side: sorted(
            {Enclosure(one.epsilon, one.delta_lower, one.delta) for one in ends.profile if one.epsilon <= last}
        )
        for side, ends in zip(DIRECTIONS, (data.directions.remove, data.directions.add), strict=True)
    }
    whole = all(ends and ends[0].epsilon == 0.0 for ends in points.values())
    if whole and risk.value is not None and attained_at_least(budget, points) > risk.value * (1.0 + ROUNDING):
        yield Inconsistency("risk.value", "refuted by the points of the profile")


def _sampled(data: CertificateModel, risk: RiskRecord, budget: Budget) -> Iterator[Inconsistency]:
    """Check that the value and its lower bound follow from the tested guarantee."""
    for name, found in zip(
        ("value", "value_lower"), from_guarantee(budget, data.guarantee, data.directions), strict=True
    ):
        stated = getattr(risk, name)
        if stated is None or abs(stated - found) > ROUNDING * found:
            yield Inconsistency(f"risk.{name}", f"{stated!r}, where the guarantee makes it {found!r}")


def _budget(risk: RiskRecord) -> Budget | None:
    """Return the budget of a risk block; None if no document can have it."""
    from pyaccount.document.sections import Risk

    said: dict[str, Any] = {risk.measure: risk.budget, "false_positive_rate": risk.false_positive_rate}
    stated = Risk.model_construct(None, **said)
    return next((found for budget in BUDGETS if (found := budget.of(stated, risk.delta)) is not None), None)


def _told_at(document: dict[str, Any], stated: dict[str, Any]) -> float:
    """Return the δ at which a document asks for ε."""
    from pyaccount.document.risk import usual_delta

    given = stated.get("report_delta")
    if given is not None and is_number(given):
        return float(given)
    phases = document.get("phases")
    bodies = phases if isinstance(phases, list) else [document]
    sizes = [at(body, "training", "dataset_size") for body in bodies]
    return float(usual_delta(max((int(size) for size in sizes if is_number(size)), default=None)))


def epoch_of(
    sampler: str,
    training: Mapping[str, float | None],
    *,
    bins: int | None = None,
    separation: int | None = None,
    draws: int = 1,
    allocation: tuple[int, int] | None = None,
) -> Fraction | None:
    """Return the exact number of rounds of an epoch, or None if it does not follow from the stated values.

    `training` contains the stated values among `dataset_size`, `expected_batch_size`, `sampling_probability` and
    `participation_rate`; several statements agree up to rounding, and the first of these is used. `draws` is the number of
    batches that are drawn for a round, each with the sampling probability. `allocation` is the number of rounds of an allocation
    and the number of a record's participations in it.
    """
    if sampler == "user-b-min-sep":
        return None
    if sampler == "random-allocation":
        return None if allocation is None else Fraction(*allocation)
    if sampler == "balls-in-bins" and bins is not None:
        return Fraction(bins)
    records, batch = training.get("dataset_size"), training.get("expected_batch_size")
    probability, rate = training.get("sampling_probability"), training.get("participation_rate")
    if records is not None and batch is not None:
        length = _written(records) / _written(batch)
    elif rate is not None and sampler != "none":
        length = 1 / _written(rate)
    else:
        return (
            None if probability is None else _between_chances(sampler, 1 / (draws * _written(probability)), separation)
        )
    if sampler == "none":
        return Fraction(math.ceil(length))
    return Fraction(max(1, round(length))) if sampler == "balls-in-bins" else length


def _between_chances(sampler: str, draws: Fraction, separation: int | None) -> Fraction | None:
    """Return the average number of rounds until a record is drawn that needs `draws` chances on average, at the separation of the
    sampler.
    """
    if sampler in ("none", "balls-in-bins"):
        return None
    if sampler in ("b-min-sep", "cyclic-poisson"):
        if separation is None:
            return None
        return separation * draws if sampler == "cyclic-poisson" else separation - 1 + draws
    return draws


def _written(number: float) -> Fraction:
    """Return the exact value of a number's shortest decimal digits."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
