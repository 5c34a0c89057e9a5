"""A sampled profile and its guarantee are about one mechanism: no bound is looser than what the rest implies."""

from functools import cache
from typing import Any

import oracle
import pytest
from certificate_oracle import inconsistencies
from plain_documents import doc

import pyaccount
from pyaccount.certificate.meaning import failure_probability
from pyaccount.records.certificate import CertificateModel


@cache
def certified(kind: str) -> Any:
    """Return a certificate whose own samples would leave δ far above the guarantee's from its ε on."""
    verified = kind == "verified"
    return pyaccount.certify(
        doc(
            "delta=1e-4 iterations=20 sampling_probability=0.1 sampler=b-min-sep min_separation=2 matrix=toeplitz",
            "coefficients=[1,0.5] seed=1 tolerance=0.05",
            name=kind,
            epsilon=8 if verified else "solve",
            multiplier="solve" if verified else 1.0,
        )
    )


def record(kind: str, **changes: Any) -> CertificateModel:
    raw = certified(kind).to_dict()
    raw["evidence"]["sampling"] |= changes
    return CertificateModel.model_validate(raw)


@pytest.mark.parametrize("kind", ["verified", "confidence"])
def test_the_profile_is_no_looser_than_the_guarantee(kind: str) -> None:
    """By its own samples alone δ at and beyond the guarantee's ε would be up to five times the guarantee's."""
    raw = certified(kind).to_dict()
    guarantee, directions = raw["guarantee"], raw["directions"]
    assert guarantee["kind"] == kind
    for points in (raw["profile"], directions["remove"]["profile"], directions["add"]["profile"]):
        beyond = [point for point in points if point["epsilon"] >= guarantee["epsilon"]]
        assert len(beyond) >= 4
        assert all(point["delta"] <= guarantee["delta"] for point in beyond)
        assert all(point["delta_lower"] <= point["delta"] for point in points)
    assert inconsistencies(record(kind)) == []


@pytest.mark.parametrize("kind", ["verified", "confidence"])
def test_the_tests_behind_a_guarantee_count_in_each_point_and_once_in_all_of_them(kind: str) -> None:
    data = record(kind)
    sampling = data.evidence.sampling
    assert sampling is not None
    parts = sampling.pointwise_failure_probability + sampling.total_probability
    assert sampling.profile_failure_probability == pytest.approx(parts, rel=1e-12)
    # The error probability of all bounds together: that of each point's own ends, and that of the tests once.
    ends = 2 * len(data.profile) + 2
    together = sampling.total_probability + ends * sampling.pointwise_failure_probability
    assert failure_probability(data) == pytest.approx(together, rel=1e-12)


def test_a_forged_probability_of_the_profile_is_found() -> None:
    for kind, stated in (("verified", 1e-12), ("confidence", 1e-9)):
        found = [one.path for one in inconsistencies(record(kind, profile_failure_probability=stated))]
        assert found == ["evidence.sampling.profile_failure_probability"]


def test_any_point_on_request_is_bounded_too() -> None:
    certificate = certified("verified")
    for epsilon in (8.0, 9.37, 30.0):
        assert certificate.profile.delta(epsilon).upper <= 1e-4


def test_what_holds_without_samples_bounds_the_profile() -> None:
    """If a record nearly always joins both rounds, far out samples give weaker bounds than one Gaussian mechanism of √2."""
    sigma, far = 2.0, 6.0
    certificate = pyaccount.certify(
        doc(
            "name=often delta=1e-3 iterations=2 sampling_probability=0.9 sampler=b-min-sep min_separation=1",
            "matrix=toeplitz coefficients=[1] normalize=False seed=1 tolerance=0.1 method=monte-carlo",
            multiplier=sigma,
            profile=[0.5, far],
        )
    )
    raw = certificate.to_dict()
    assert raw["evidence"]["sampling"] is not None
    gaussian = float(oracle.gaussian_delta(2.0**0.5 / sigma, far))
    assert raw["profile"][-1]["delta"] <= gaussian * (1.0 + 1e-6)
