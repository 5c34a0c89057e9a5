"""What `certify` prints: the answer on a screen of 80 × 24, with nothing that is stronger than the certificate."""

import re
from decimal import Decimal
from typing import Any

import pytest
from gate_tools import CERTIFICATES
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from snapshots import Run, Snapshot

import pyaccount
from pyaccount.certificate.reading import read_certificate
from pyaccount.cli.screen import screen_page
from pyaccount.pages.terminal import terminal
from pyaccount.records.certificate import CertificateModel

#: A screen has 24 lines: one is the command, one the next prompt.
LINES = 22


def golden(name: str) -> Any:
    """The data of a certificate of either kind, read from a file."""
    return read_certificate(CERTIFICATES / "v1" / f"{name}.json").any()


def lines(data: Any, saved: str | None = None, width: int = 80) -> list[str]:
    return terminal(screen_page(data, saved), width).splitlines()


def row(data: CertificateModel, label: str) -> str:
    return next(line for line in lines(data, width=120) if line.startswith(f"  {label} ")).split(maxsplit=1)[1]


@pytest.mark.parametrize(
    "name",
    ["amplification", "claim-fails", "confidence", "deterministic", "smallest-delta", "verified", "verified-choice"],
)
def test_one_phase_fits_a_screen(name: str, snapshot: Snapshot) -> None:
    found = lines(golden(name))
    assert len(found) <= LINES
    snapshot("\n".join(found))


@pytest.mark.parametrize("example", ["decaying-noise", "full-batch", "largest-group", "micro-batches"])
def test_examples_fit_a_screen(example: str) -> None:
    found = pyaccount.certify(EXAMPLES / f"{example}.yaml").data
    assert len(lines(found)) <= LINES
    assert all(f"  • {short}" in lines(found) for short in found.assumptions_in_short)


def test_what_was_solved_and_what_would_hold(run: Run, snapshot: Snapshot) -> None:
    example = str(EXAMPLES / "check-a-claim.yaml")
    snapshot(run("certify", example, "--set", "privacy.epsilon=2"))
    snapshot(run("certify", example, "--set", "privacy.epsilon=solve"))
    snapshot(run("certify", str(EXAMPLES / "pretrain-and-finetune.yaml")))


def test_the_whole_certificate_is_printed_on_request(run: Run) -> None:
    example = str(EXAMPLES / "check-a-claim.yaml")
    assert "Error budget" in run("certify", example, "--full").out
    assert "Error budget" not in run("certify", example).out
    assert "--brief and --full" in run("certify", example, "--brief", "--full").err


def test_a_file_is_named_for_the_report(tmp_path: Any) -> None:
    data = golden("deterministic")
    assert "pyaccount report my.json" in lines(data, "my.json")[-1]
    assert "Saved in my.html" in lines(data, "my.html")[-1]


number = r"(∞|[0-9.e-]+)"
positive = st.floats(1e-12, 1e3)


def ends(text: str, other: str) -> dict[str, Decimal]:
    """The numbers of a line: both ends, and the coordinate of each."""
    same = re.fullmatch(rf"at most {number}, at least {number}, at {other} = {number}", text)
    if same:
        most, least, at = map(Decimal, same.groups())
        return {"most": most, "least": least, "right": at, "left": at}
    found = re.fullmatch(rf"at most {number} at {other} = {number}, at least {number} at {other} = {number}", text)
    assert found, text
    return dict(zip(("most", "right", "least", "left"), map(Decimal, found.groups()), strict=True))


@given(positive, st.floats(0, 1), st.floats(1e-15, 0.99), st.floats(0, 1), st.floats(1e-2, 1e3))
def test_nothing_printed_is_stronger_than_the_certificate(
    epsilon: float, share: float, delta: float, below: float, sigma: float
) -> None:
    data = golden("deterministic")
    guarantee = data.guarantee.model_copy(
        update={"epsilon": epsilon, "epsilon_lower": share * epsilon, "delta": delta, "delta_lower": below * delta}
    )
    solved = data.solved.model_copy(update={"value": sigma, "fails_at": sigma * (1 - 1e-9)})
    phase = data.phases[0].model_copy(update={"noise_multiplier": sigma})
    data = data.model_copy(update={"guarantee": guarantee, "solved": solved, "phases": [phase]})
    for label, other, upper, lower, at in (
        ("ε", "δ", epsilon, share * epsilon, delta),
        ("δ", "ε", delta, below * delta, epsilon),
    ):
        printed = ends(row(data, label), other)
        # What a double is written as in five digits was meant that way: 1e-5 stays 1e-5.
        assert printed["most"] >= Decimal(repr(upper))
        assert printed["right"] >= Decimal(repr(at))
        assert printed["least"] <= Decimal(repr(lower))
        assert printed["left"] <= Decimal(repr(at))
    noise, fails = row(data, "σ").split(", solved for; σ = ")
    assert Decimal(noise) >= Decimal(repr(sigma))
    assert Decimal(fails.split()[0]) <= Decimal(repr(sigma * (1 - 1e-9)))
    sentence = " ".join(lines(data)).split("is (")[1]
    said = re.match(rf"{number}, {number}\)", sentence)
    assert said
    assert Decimal(said[1]) >= Decimal(repr(epsilon))
    assert Decimal(said[2]) >= Decimal(repr(delta))


def test_a_short_form_that_is_missing_is_a_contradiction() -> None:
    data = golden("deterministic")
    changed = data.model_copy(update={"assumptions_in_short": data.assumptions_in_short[1:]})
    found = pyaccount.Certificate(changed).page().alert
    assert found is not None
    assert "6 assumptions have 5 short forms" in " ".join(found.items)
