"""The events of dp_accounting that are mechanisms of their own, as the mechanisms of a document.

A number of an event is taken as it is, or as what the document's field is defined by, rounded to the safe side: DLap(a) has
the scale 1/a, and randomized response that answers at random with probability p tells the truth with probability
1 − p + p/k. Discrete Gaussian noise on several numbers is described by its zCDP guarantee, since only the norm of their
change is known (Canonne, Kamath & Steinke 2020).

A `MixtureOfGaussiansDpEvent` is the mechanism `mixture-of-gaussians`: the pair Σ_j p_j N(s_j, σ²) against N(0, σ²), s_j ≥ 0,
for a record that is added, removed or set to zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyaccount.adapters.reading import BodyMapping, Part, no_equivalent, real, whole_in, wrong_type_error
from pyaccount.document.ranges import (
    BASE_DELTA,
    CONTRIBUTION,
    EPSILON,
    MEAN_RUNS,
    MECHANISM_EPSILON,
    MIXTURE,
    PROBABILITY_BELOW_ONE,
    RESPONSES,
    RHO,
    RUN_SHAPE,
    SCALE,
    SENSITIVITY,
    SHIFT,
)
from pyaccount.errors import quoted
from pyaccount.reading.numerals import Range

_FROM_ZERO = Range(0, 1)

_NOT_NEGATIVE = Range(0, 1e12)

#: A number from a quotient is moved by this much to the safe side.
_MARGIN = 4e-16

MechanismMapping = dict[str, Any]


def law_of_runs(event: Part) -> MechanismMapping:
    """Return the law of the number of runs of a `RepeatAndSelectDpEvent`, whose mean the event states.

    The stopping probability is that of the mean, rounded down: with it there are more runs.
    """
    mean = event.real("mean", MEAN_RUNS)
    if event.get("shape") == math.inf:
        return {"kind": "poisson", "mean": mean}
    shape = event.real("shape", RUN_SHAPE)
    if mean <= 1.0:
        no_equivalent(
            (*event.path, "mean"), "with at least one run the mean of their number is greater than 1", value=mean
        )

    def mean_at(log: float) -> float:
        """Return (1/γ − 1)·η/(1 − γ^η) at ln γ; for η = 0 its limit."""
        return math.expm1(-log) * (-shape / math.expm1(shape * log) if shape else -1.0 / log)

    low, high = math.log(PROBABILITY_BELOW_ONE.minimum), -1e-12
    if mean_at(low) < mean:
        no_equivalent((*event.path, "mean"), "there are more runs than a document can describe", value=mean)
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mean_at(middle) >= mean else (low, middle)
    stopping = {"stopping_probability": math.exp(low) * (1.0 - 4.0 * _MARGIN)}
    if shape in (0.0, 1.0):
        return {"kind": "geometric" if shape else "logarithmic"} | stopping
    return {"kind": "negative-binomial", "shape": shape} | stopping


def with_empty_records(bodies: Iterable[MechanismMapping]) -> None:
    """Let records answer uniformly once they are set to zero, as the library does under REPLACE_SPECIAL."""
    for body in bodies:
        with_empty_records(body.get("phases", ()))
        mechanism = body.get("mechanism", {})
        if mechanism.get("kind") == "randomized-response":
            mechanism["empty_record"] = "uniform"


def _guarantee(event: Part) -> MechanismMapping:
    stated: MechanismMapping = {"kind": "stated", "epsilon": event.real("epsilon", EPSILON)}
    delta = event.real("delta", BASE_DELTA)
    return stated | ({"delta": delta} if delta else {})


def _concentrated(event: Part) -> MechanismMapping | None:
    rho, xi = event.real("rho", _NOT_NEGATIVE), event.real("xi", _NOT_NEGATIVE)
    if rho == 0.0:
        return {"kind": "stated", "epsilon": xi} if xi else None
    event.real("rho", RHO)
    return {"kind": "stated", "rho": rho} | ({"xi": xi} if xi else {})


def _randomized_response(event: Part) -> MechanismMapping | None:
    random = event.real("noise_parameter", _FROM_ZERO)
    if event.get("num_buckets") == 1 or random == 1.0:
        return None
    k = event.whole("num_buckets", RESPONSES)
    if random == 0.0:
        no_equivalent(
            (*event.path, "noise_parameter"), "the true value is always released, which has no guarantee", value=0.0
        )
    truth = min(1.0 - random * (1.0 - 1.0 / k) + _MARGIN, 1.0 - _MARGIN)
    return {"kind": "randomized-response", "values": k, "truth_probability": truth}


def _discrete_laplace(event: Part) -> MechanismMapping | None:
    parameter = event.real("noise_parameter", _NOT_NEGATIVE)
    if event.get("sensitivity") == 0:
        return None
    if parameter == 0.0:
        no_equivalent(
            (*event.path, "noise_parameter"),
            "noise with parameter 0 is infinite, which no document describes",
            value=0.0,
        )
    scale = 1.0 / parameter * (1.0 - _MARGIN)
    real(scale, SCALE, (*event.path, "noise_parameter"))
    return {"kind": "discrete-laplace", "scale": scale, "sensitivity": event.whole("sensitivity", SHIFT)}


def _discrete_gaussian(event: Part) -> MechanismMapping | None:
    sigma, change = event.real("sigma", SCALE), event.real("sensitivity", _NOT_NEGATIVE)
    if event.get("dimension") == 1:
        # A number that is an integer changes by an integer.
        shift = math.floor(change)
        if shift == 0:
            return None
        return {
            "kind": "discrete-gaussian",
            "sigma": sigma,
            "sensitivity": whole_in(shift, SHIFT, (*event.path, "sensitivity")),
        }
    if change == 0.0:
        return None
    event.real("sensitivity", SENSITIVITY)
    return {"kind": "stated", "rho": change * change / (2.0 * sigma * sigma) * (1.0 + 4.0 * _MARGIN)}


def _selection(kind: str) -> Callable[[Part], MechanismMapping | None]:
    def described(event: Part) -> MechanismMapping | None:
        if event.get("epsilon") == 0:
            return None
        return {"kind": kind, "epsilon": event.real("epsilon", MECHANISM_EPSILON)}

    return described


#: What describes each event.
MECHANISMS: dict[str, Callable[[Part], MechanismMapping | None]] = {
    "EpsilonDeltaDpEvent": _guarantee,
    "ZCDpEvent": _concentrated,
    "RandomizedResponseDpEvent": _randomized_response,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "ExponentialMechanismDpEvent": _selection("exponential"),
    "PermuteAndFlipDpEvent": _selection("permute-and-flip"),
}

_PROBABILITY = Range(0, 1)


def of_mixture(event: Part, count: int) -> list[BodyMapping]:
    """Return the body of `count` runs with this mixture; none if no sensitivity is positive.

    Raises:
        DocumentError: A number is out of range, or the probabilities do not add up to 1.
    """
    deviation, law = event.real("standard_deviation", SCALE), _law(event)
    if not any(law):
        return []
    if len(law) not in MIXTURE:
        message = f"a mixture of {len(law)} components is more than a document describes"
        no_equivalent((*event.path, "sensitivities"), message, value=len(law), allowed=MIXTURE.describe())
    mechanism: BodyMapping = {
        "kind": "mixture-of-gaussians",
        "sigma": deviation,
        "sensitivities": list(law),
        "probabilities": list(law.values()),
    }
    return [{"mechanism": mechanism} | ({} if count == 1 else {"count": count})]


def _law(event: Part) -> dict[float, float]:
    """Return the probability of each sensitivity, without those of probability 0."""
    lists = []
    for name, allowed in (("sensitivities", CONTRIBUTION), ("sampling_probs", _PROBABILITY)):
        values: Any = event.get(name)
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            wrong_type_error(
                (*event.path, name), f"must be a list of numbers, not {quoted(values)}", quoted(values), "a list"
            )
        lists.append([real(value, allowed, (*event.path, name, index)) for index, value in enumerate(values)])
    sensitivities, probabilities = lists
    if len(sensitivities) != len(probabilities):
        message = (
            f"there are {len(sensitivities)} sensitivities and {len(probabilities)} probabilities: give one for each"
        )
        no_equivalent(
            (*event.path, "sampling_probs"), message, value=len(probabilities), allowed=str(len(sensitivities))
        )
    total = math.fsum(probabilities)
    if not math.isclose(total, 1.0, rel_tol=1e-9):
        message = f"the probabilities add up to {total:.10g}, and must add up to 1"
        no_equivalent((*event.path, "sampling_probs"), message, value=total, allowed="1")
    law: dict[float, float] = {}
    for sensitivity, probability in zip(sensitivities, probabilities, strict=True):
        if probability:
            law[sensitivity] = min(1.0, law.get(sensitivity, 0.0) + probability)
    return law
