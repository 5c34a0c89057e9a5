"""dp_accounting's `MixtureOfGaussiansDpEvent`, as the mechanism `mixture-of-gaussians` of a document.

The event is the pair Σ_j p_j N(s_j, σ²) against N(0, σ²), s_j ≥ 0, for a record that is added, removed or set to zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyaccount.adapters.dp_accounting_mechanisms import field_of
from pyaccount.adapters.reading import BodyMapping, no_equivalent, real, wrong_type_error
from pyaccount.document.ranges import CONTRIBUTION, MIXTURE, SCALE
from pyaccount.errors import Path, quoted
from pyaccount.reading.numerals import Range

_PROBABILITY = Range(0, 1)


def of_mixture(event: object, path: Path, count: int) -> list[BodyMapping]:
    """Return the body of `count` runs with this mixture; none if no sensitivity is positive.

    Raises:
        DocumentError: A number is out of range, or the probabilities do not add up to 1.
    """
    deviation = real(field_of(event, "standard_deviation", path), SCALE, (*path, "standard_deviation"))
    law = _law(event, path)
    if not any(law):
        return []
    if len(law) not in MIXTURE:
        message = f"a mixture of {len(law)} components is more than a document describes"
        no_equivalent((*path, "sensitivities"), message, value=len(law), allowed=MIXTURE.describe())
    mechanism: BodyMapping = {
        "kind": "mixture-of-gaussians",
        "sigma": deviation,
        "sensitivities": list(law),
        "probabilities": list(law.values()),
    }
    return [{"mechanism": mechanism} | ({} if count == 1 else {"count": count})]


def _law(event: object, path: Path) -> dict[float, float]:
    """Return the probability of each sensitivity, without those of probability 0."""
    lists = []
    for name, allowed in (("sensitivities", CONTRIBUTION), ("sampling_probs", _PROBABILITY)):
        values: Any = field_of(event, name, path)
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            wrong_type_error(
                (*path, name), f"must be a list of numbers, not {quoted(values)}", quoted(values), "a list"
            )
        lists.append([real(value, allowed, (*path, name, index)) for index, value in enumerate(values)])
    sensitivities, probabilities = lists
    if len(sensitivities) != len(probabilities):
        message = (
            f"there are {len(sensitivities)} sensitivities and {len(probabilities)} probabilities: give one for each"
        )
        no_equivalent((*path, "sampling_probs"), message, value=len(probabilities), allowed=str(len(sensitivities)))
    total = math.fsum(probabilities)
    if not math.isclose(total, 1.0, rel_tol=1e-9):
        message = f"the probabilities add up to {total:.10g}, and must add up to 1"
        no_equivalent((*path, "sampling_probs"), message, value=total, allowed="1")
    law: dict[float, float] = {}
    for sensitivity, probability in zip(sensitivities, probabilities, strict=True):
        if probability:
            law[sensitivity] = min(1.0, law.get(sensitivity, 0.0) + probability)
    return law
