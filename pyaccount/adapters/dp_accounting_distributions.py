"""dp_accounting's privacy loss distributions: upper bounds that are read as documents, and certificates that are written as such.

**Reading.** A pessimistic distribution with masses p_j at the losses l_j and m at ∞ bounds δ at every ε ≥ 0 by
h(ε) = m + Σ_{l_j > ε} p_j (1 − e^{ε − l_j}). So its points (ε, h(ε)) are guarantees, and the document is a mechanism with these
`guarantees`, in both directions with the larger h of both. h is linear in e^ε between losses, so with all losses the document has
the h of the distribution; if there are more than a document takes, chords over some of them lie above h, and the points are
chosen so that √(p/h) adds up to the same between neighbours, as a chord's relative distance is then about the same everywhere.
On the grid of spacing d, h falls by (1 − e^{−d})V_k from (k − 1)d to kd, with V_k = p_k + e^{−d}V_{k+1}. All terms are positive,
so K + 1 points err by less than 8(K + 2) units of rounding, by which they are raised; and each ε is rounded up.

A pessimistic distribution is an upper bound only. The lower end of a certificate of the document is that of the worst mechanism
with these points, and nothing is said about the mechanism that the distribution bounds.

**Writing.** A certificate has points of both directions, with H the divergence of one and G that of the other: H ≤ δ at e^ε, and
by H(1/α) = 1 − 1/α + G(α)/α a bound at e^{−ε} from each point of the other direction. Their lower convex hull in e^ε bounds H
(`rust/core/src/pair/tabulated.rs`). The distribution has the hull's values at the multiples of the interval on both sides of each
point, and by the theorem of connecting dots (Doroshenko et al. 2022, arXiv:2207.04380) it bounds H everywhere between them. Its
masses are made of differences over small distances, and n of their rounding errors add up to less than 5n units of the slope of
δ in ε. Therefore the hull is moved by more than that to larger ε, and every value at ε ≥ 0 is compared with that of the hull.

dp_accounting's Python package has no serialization of distributions; its probabilities are read and written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyaccount import _core
from pyaccount.adapters.reading import document, no_equivalent, wrong_type_error
from pyaccount.document.ranges import STATED_POINTS
from pyaccount.errors import CertificateError, DomainError, MissingExtraError, NumericsError, Path, quoted

if TYPE_CHECKING:
    from pyaccount.certificate import Certificate
    from pyaccount.records.certificate import DirectionResult

#: How much less than 1 the masses of a distribution may be, by rounding. More than 1 is pessimistic: cut tails count twice.
MISSING = 1e-9
#: By how much ε is moved before a distribution is made of points.
MOVED = 1e-11
SMALLEST_INTERVAL = 1e-5
#: Half of a unit of rounding.
_UNIT = 2.0**-53


def from_distribution(
    distribution: object,
    *,
    adjacency: str,
    delta: float | str,
    epsilon: float | str = "solve",
    name: str = "dp_accounting",
) -> dict[str, Any]:
    """Return the document of a mechanism that a pessimistic `PrivacyLossDistribution` bounds: a stated mechanism.

    Its `mechanism` may be a phase of another document. The neighbours are not in a distribution: `adjacency` states them.

    Raises:
        DocumentError: For an optimistic distribution, or for one whose masses are less than 1.
    """
    pmfs = [_field(distribution, f"_pmf_{side}", ()) for side in ("remove", "add")]
    interval = _field(pmfs[0], "_discretization", ("_pmf_remove",))
    masses = [_masses(pmf, (f"_pmf_{side}",)) for pmf, side in zip(pmfs, ("remove", "add"), strict=True)]
    longest = max(len(above) for above, _ in masses)
    raised = 1.0 + 8.0 * (longest + 2) * _UNIT
    profiles = [_profile(np.pad(above, (0, longest - len(above))), interval, m) * raised for above, m in masses]
    profile = np.minimum(1.0, np.maximum(*profiles))
    weights = np.maximum(*(np.pad(above, (0, longest - len(above))) for above, _ in masses)) / profile[:-1].clip(1e-300)
    guarantees = [
        # Two units above the product, which errs by one.
        {
            "epsilon": math.nextafter(k * interval * (1.0 + 2.0 * _UNIT), math.inf) if k else 0.0,
            "delta": float(profile[k]),
        }
        for k in _chosen(weights)
    ]
    stated = {"mechanism": {"kind": "stated", "guarantees": guarantees}}
    return document([stated], name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=1)


def to_distribution(certificate: Certificate, *, interval: float = 1e-4) -> Any:
    """Return a pessimistic `PrivacyLossDistribution` that bounds the profile of a certificate at every ε ≥ 0, in both directions.

    Args:
        certificate: A certificate without samples. Between the points of its profile, and beyond the last one, the distribution
            is more pessimistic: give the document more of them (`accounting.profile`).
        interval: The `value_discretization_interval` of the distribution, at least 1e-5.

    Raises:
        CertificateError: The profile holds with some probability only, which no distribution states.
        NumericsError: The interval is too small for the rounding of its masses.
        MissingExtraError: dp_accounting is not installed.
    """
    try:
        from dp_accounting import pld  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError.of("dp-accounting", "distributions are objects of that package") from error
    if not interval >= SMALLEST_INTERVAL:
        raise DomainError(f"interval = {interval!r}: must be at least {SMALLEST_INTERVAL}")
    data = certificate.data
    if (
        data.guarantee.kind != "deterministic"
        or data.guarantee.failure_probability
        or data.evidence.sampling is not None
    ):
        raise CertificateError(
            "this certificate is from samples, so its profile holds with some probability only, and no distribution states that"
        )
    remove, add = (_points(side, data.guarantee.epsilon) for side in (data.directions.remove, data.directions.add))
    pmfs = [_connected(pld.pld_pmf, *sides, interval) for sides in ((remove, add), (add, remove))]
    return pld.privacy_loss_distribution.PrivacyLossDistribution(*pmfs)


def _points(side: DirectionResult, guaranteed: float) -> dict[float, float]:
    """Return an upper bound on δ at each ε at which a direction has one."""
    points = {guaranteed: side.delta} | {point.epsilon: point.delta for point in side.profile}
    if side.curve is not None:
        points |= dict(zip(side.curve.epsilon, side.curve.delta, strict=True))
    return points


def _connected(pld_pmf: Any, points: dict[float, float], other: dict[float, float], interval: float) -> Any:
    """Return the masses of a direction with these points, when the other direction has others."""
    turned = {-one: -math.expm1(-one) + math.exp(-one) * delta for one, delta in other.items()}
    hull = _core.RoundProfile.tabulated(sorted((turned | points).items()))
    above = {math.floor(one / interval) + more for one in points | other for more in (0, 1)}
    losses = sorted(above | {-k for k in above})
    deltas = np.array([hull.delta(k * interval - MOVED)[1] for k in losses])
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(interval, losses, np.maximum.accumulate(deltas[::-1])[::-1])
    for epsilon in (k * interval for k in losses if k >= 0):
        if pmf.get_delta_for_epsilon(epsilon) < hull.delta(epsilon)[1] * (1.0 - 16.0 * _UNIT):
            raise NumericsError(
                f"rounding made δ of the distribution too small at ε = {epsilon!r}: give a larger interval"
            )
    return pmf


def _masses(pmf: object, path: Path) -> tuple[Any, float]:
    """Return the masses at the positive multiples of the interval, and that at ∞, after checking all."""
    if not _field(pmf, "_pessimistic_estimate", path):
        no_equivalent(
            (*path, "_pessimistic_estimate"),
            "an optimistic distribution is a lower bound, and proves no guarantee: make it with pessimistic_estimate=True",
            value=False,
            allowed="True",
        )
    infinite = float(_field(pmf, "_infinity_mass", path))
    dense = _field(pmf, "to_dense_pmf", path)()
    first, listed = int(dense._lower_loss), np.asarray(dense._probs, dtype=float)
    total = math.fsum(listed) + infinite
    if not (1.0 - MISSING <= total < math.inf and infinite >= 0.0):
        no_equivalent(path, f"the masses add up to {total:.10g}, and no loss may be left out", value=total, allowed="1")
    # Convolutions leave rounding errors below 0. What is missing counts as an infinite loss.
    positive = np.maximum(0.0, listed[max(0, 1 - first) :])
    return np.concatenate([np.zeros(max(0, first - 1)), positive]), infinite + max(0.0, 1.0 - total)


def _profile(masses: Any, interval: float, infinite: float) -> Any:
    """Return h at 0 and at each multiple of the interval that has a mass."""
    from scipy.signal import lfilter  # type: ignore[import-untyped]  # it takes a moment to import

    weighted = lfilter([1.0], [1.0, -math.exp(-interval)], masses[::-1])
    return infinite + np.concatenate([[0.0], -math.expm1(-interval) * np.cumsum(weighted)])[::-1]


def _chosen(weights: Any) -> list[int]:
    """Return the multiples of the interval whose points are stated: all of them, or as many as a document takes."""
    most = int(STATED_POINTS.maximum) - 2
    if len(weights) < most:
        return list(range(len(weights) + 1))
    summed = np.concatenate([[0.0], np.cumsum(np.sqrt(weights))])
    places = np.searchsorted(summed, np.linspace(0.0, summed[-1], most))
    return sorted({0, len(weights), *places.clip(0, len(weights)).tolist()})


def _field(source: object, name: str, path: Path) -> Any:
    if not hasattr(source, name):
        what = "a PrivacyLossDistribution of dp_accounting"
        wrong_type_error(path, f"must be {what}, not {quoted(type(source).__name__)}", type(source).__name__, what)
    return getattr(source, name)
