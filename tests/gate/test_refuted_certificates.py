"""Certificates whose bounds are false, as a mistaken theorem once gave them, do not agree when they are recomputed."""

from pathlib import Path

import pytest

import pyaccount

REFUTED = Path(__file__).parent.parent / "golden" / "refuted"
#: What is false in each of them, and what is true.
FALSE = {
    # The largest loss of randomized response was that of the other direction; it is ln 5 + 6.
    "survey.json": ("guarantee.epsilon", "refuted"),
    # The lower end was that of randomized response at twice the ε, which no mechanism with this ε for one record attains.
    "pair-of-records.json": ("guarantee.delta_lower", "no lower bound above 0.63212"),
}


def test_every_kept_certificate_is_listed() -> None:
    assert {path.name for path in REFUTED.iterdir()} == set(FALSE)


@pytest.mark.parametrize("name", FALSE)
def test_a_false_certificate_is_refuted(name: str) -> None:
    field, reason = FALSE[name]
    verification = pyaccount.verify(REFUTED / name)
    assert not verification.agrees
    (difference,) = [one for one in verification.differences if one.path == field]
    assert reason in str(difference)
