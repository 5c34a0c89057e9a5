"""Numbers as people read them: a bound that is printed holds at the coordinate printed beside it."""

import re
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from certificate_oracle import inconsistencies
from gate_tools import golden
from oracle import gaussian_delta, gaussian_epsilon
from places import EXAMPLES
from plain_documents import doc, document, one_step, sectioned
from report_samples import certificate, text_of
from snapshots import Snapshot

import pyaccount
from pyaccount.certificate.report import page_of
from pyaccount.pages.page import FactList, PageTable, Quantity
from pyaccount.pages.terminal import terminal
from pyaccount.records.certificate import CertificateModel

#: The mechanism of examples/full-batch.yaml is exactly μ-GDP.
MU = mp.sqrt(20) / 6


def fact(found: pyaccount.Certificate, label: str, section: str = "guarantee") -> Any:
    page = page_of(found.data)
    blocks = next(one.blocks for one in page.sections if one.name == section)
    return next(row for block in blocks if isinstance(block, FactList) for row in block.rows if row.label == label)


def numbers(content: tuple[Any, ...]) -> list[Quantity]:
    return [part for part in content if isinstance(part, Quantity)]


def table(found: pyaccount.Certificate, section: str, first: str) -> PageTable:
    blocks = next(one.blocks for one in page_of(found.data).sections if one.name == section)
    return next(block for block in blocks if isinstance(block, PageTable) and block.headings[0].startswith(first))


def exact_epsilon(delta: mp.mpf) -> mp.mpf:
    return gaussian_epsilon(float(MU), float(delta))


def check(kind: str, upper: mp.mpf | None, lower: mp.mpf | None, at: mp.mpf) -> None:
    """The printed ends against the closed form at the printed coordinate."""
    exact = gaussian_delta(MU, at) if kind == "δ" else exact_epsilon(at)
    if upper is not None:
        # A δ is printed as its double is written, and a double is known to sixteen digits.
        assert exact <= upper * (1 + mp.mpf(10) ** -15), (kind, upper, at)
    if lower is not None:
        assert lower <= exact, (kind, lower, at)


def compared(found: pyaccount.Certificate, *headings: str) -> list[Any]:
    """What a comparison of this certificate alone says below these headings."""
    page = pyaccount.compare([found.data.document]).page()
    tables = [block for section in page.sections for block in section.blocks if isinstance(block, PageTable)]
    cells = {heading: cell for one in tables for heading, cell in zip(one.headings, one.rows[0], strict=True)}
    return [mp.mpf(numbers(cells[heading])[0].text) for heading in headings]


@pytest.mark.parametrize("profile", ["[1]", "[0, 0.37, 2.3, 4.71]"])
def test_every_printed_pair_of_a_bound_and_its_coordinate_holds(profile: str) -> None:
    found = pyaccount.certify(EXAMPLES / "full-batch.yaml", overrides=[f"accounting.profile={profile}"])
    for label in ("ε", "δ", "remove: ε", "add: ε"):
        row = fact(found, label)
        above, below = (mp.mpf(number.text) for number in numbers(row.content))
        (at,) = (mp.mpf(number.text) for number in numbers(row.note))
        check(label[-1], above, below, at)
    for cells in table(found, "profile", "ε").rows:
        at, above, below, remove, add = (mp.mpf(numbers(cell)[0].text) for cell in cells)
        for upper in (above, remove, add):
            check("δ", upper, below, at)
    for row in (fact(found, label, "contrast") for label in ("not amplified: ε",)):
        check("ε", mp.mpf(numbers(row.content)[0].text), None, mp.mpf(numbers(row.note)[0].text))
    written = text_of(found)
    for label, other in (("ε", "δ"), ("δ", "ε")):
        pattern = rf"^ +{label} +at most (\S+), at least (\S+) +\w+, at {other} = (\S+)"
        match = re.search(pattern, written, flags=re.MULTILINE)
        assert match is not None
        check(label, mp.mpf(match[1]), mp.mpf(match[2]), mp.mpf(match[3]))
    both = re.search(r"^ +ε +at most (\S+),.*\n +δ +at most (\S+),", written, flags=re.MULTILINE)
    assert both is not None
    check("δ", mp.mpf(both[2]), None, mp.mpf(both[1]))
    above, below, delta = compared(found, "ε at most", "ε at least", "δ at most")
    check("ε", above, below, delta)
    assert compared(found, "σ") == [6]


@pytest.mark.parametrize("epsilon", [2.057, 3.057, 0.9173, 5.2])
def test_the_noise_that_is_printed_suffices_and_the_one_that_fails_does_not(epsilon: float) -> None:
    changes = {"privacy__epsilon": epsilon, "privacy__delta": 1e-5, "accounting": {"tolerance": 1e-6, "profile": []}}
    found = pyaccount.certify(one_step(1.0, noise__multiplier="solve", **changes))
    row = fact(found, "solved")
    printed = [number.text for number in (*numbers(row.content), *numbers(row.note))]
    match = re.search(r"noise.multiplier = (\S+) +clip norms; σ = (\S+) does not\s+meet the target", text_of(found))
    assert match is not None
    assert [match[1], match[2]] == printed
    (noise,) = compared(found, "σ")
    for sigma in (printed[0], noise, *(number.text for number in numbers(page_of(found.data).headline[2].content))):
        assert gaussian_epsilon(float(1 / mp.mpf(sigma)), 1e-5) <= epsilon
    assert gaussian_epsilon(float(1 / mp.mpf(printed[1])), 1e-5) > epsilon


def test_a_value_next_to_the_one_solved_for_fails_only_where_the_bound_is_the_run() -> None:
    tight = pyaccount.certify(document(noise__multiplier="solve"))
    assert tight.data.solved is not None
    assert fact(tight, "solved").note[-1] == " does not meet the target"
    loose = pyaccount.certify(
        document(
            noise__multiplier="solve",
            privacy__adjacency="zero-out",
            training__iterations=10,
            sampler={"kind": "fixed-size"},
        )
    )
    assert not all(one.tight for one in loose.data.reductions)
    assert "the bound does not meet the target at " in fact(loose, "solved").note
    assert re.search(r"the bound does not meet the target at σ = ", " ".join(text_of(loose).split()))
    assert not re.search(r"\d does not meet", text_of(loose))


def test_whole_numbers_that_were_solved_for_keep_their_digits() -> None:
    found = pyaccount.certify(
        document(training={"iterations": "solve"}, sampler={"kind": "none"}, noise__multiplier=4e4)
    )
    assert found.data.solved is not None
    value = found.data.solved.value
    assert value > 10**8
    assert f"training.iterations = {value} " in text_of(found)
    assert numbers(fact(found, "solved").content)[0].text == str(value)


def test_the_short_form_of_a_certificate_rounds_up() -> None:
    for kind in ("composed", "refuted", "confidence", "phases"):
        guarantee = certificate(kind).data.guarantee
        match = re.search(r"ε ≤ (\S+) at δ = (\S+); ", repr(certificate(kind)))
        assert match is not None
        assert float(match[1]) >= guarantee.epsilon
        assert float(match[2]) >= guarantee.delta


def test_the_tests_of_samples_are_told_rounded_up() -> None:
    found = certificate("confidence")
    sampling = found.data.evidence.sampling
    assert sampling is not None
    assert any(test.accepted for test in sampling.tests)
    rows = table(found, "evidence", "direction").rows
    written = re.findall(r"(?:remove|add) +accepted +(\S+) +(\S+) +(\S+) +\d+ +\S+ +\S+ +(\S+) +\S+", text_of(found))
    accepted = [test for test in sampling.tests if test.accepted]
    assert len(written) == len(accepted)
    for test, cells in zip(accepted, written, strict=True):
        exact = (test.noise_multiplier, test.threshold, test.epsilon, test.weight_bound)
        assert all(float(cell) >= value for cell, value in zip(cells, exact, strict=True))
    for test, row in zip(sampling.tests, rows, strict=True):
        shown = [float(numbers(row[k])[0].text) for k in (2, 3, 4, 8)]
        exact = (test.noise_multiplier, test.threshold, test.epsilon, test.weight_bound)
        assert all(one >= value for one, value in zip(shown, exact, strict=True))


@cache
def doubted() -> pyaccount.Certificate:
    """A claim that samples refute, where what holds is proven without them."""
    return pyaccount.certify(
        doc(
            "name=doubted epsilon=1 delta=1e-3 iterations=8 sampling_probability=0.9999 sampler=b-min-sep",
            "min_separation=2 start=cold matrix=banded-square-root bands=2 multiplier=1 seed=3",
        )
    )


def test_what_samples_refute_is_said_with_its_probability() -> None:
    found = doubted()
    data, sampling = found.data, found.data.evidence.sampling
    assert sampling is not None
    assert (data.guarantee.kind, found.holds) == ("deterministic", False)
    # Two fixed-sequence tests share 1 % of δ (docs/sampling.md): 1e-5 for both.
    assert sampling.pointwise_failure_probability == pytest.approx(0.5e-5, rel=1e-12)
    assert re.search(
        r"is not \(1, 0\.001\).*no ε below \S+ holds at δ = 0\.001 \(with probability at least 1 − 5e-6 over",
        found.statement,
    )
    # What holds is proven, and needs no probability.
    assert found.statement.count("probability") == 1
    assert inconsistencies(data) == []


@pytest.mark.parametrize("kind", ["doubted", "sampled", "confidence"])
def test_lower_ends_from_samples_have_an_origin_and_a_probability_of_their_own(kind: str) -> None:
    found = doubted() if kind == "doubted" else certificate(kind)
    sampling = found.data.evidence.sampling
    assert sampling is not None
    for label in ("ε", "δ"):
        below = numbers(fact(found, label).content)[1]
        assert (below.direction, below.origin) == ("at least", "bets")
    stated = float(numbers(fact(found, "lower bounds fail with").content)[0].text)
    assert sampling.pointwise_failure_probability <= stated <= 1.1 * sampling.pointwise_failure_probability
    match = re.search(r"lower bounds fail with +at most (\S+)", text_of(found))
    assert match is not None
    assert float(match[1]) == stated


def test_directions_are_worded_for_their_adjacency() -> None:
    substituted, added = certificate("substitution").to_markdown(), certificate("composed").to_markdown()
    assert "the run with the originals compared to the run with the substitutes" in substituted
    assert "the run without" not in substituted
    assert "the run with the records compared to the run without" in added
    assert "the run without the records compared to the run with them" in added


def test_a_range_of_one_point_is_one_point() -> None:
    found = pyaccount.certify(one_step(1.0, privacy__epsilon="solve", privacy__delta=1e-5))
    assert found.data.profile == []
    note = "".join(part if isinstance(part, str) else part.text for part in fact(found, "Gaussian μ", "meaning").note)
    assert f"at ε = {found.epsilon!r} nats" in note
    assert "from" not in note.partition("N(0, 1), ")[2].partition(";")[0]


def test_the_lower_end_of_mu_is_the_groups() -> None:
    note = fact(certificate("group"), "Gaussian μ", "meaning").note
    words = "".join(part if isinstance(part, str) else part.text for part in note)
    assert words.endswith("For up to 3 records, the run is not μ-GDP for any μ below the lower end")


def test_a_delta_that_rounds_to_one_gives_no_mu_and_says_no_more_than_that() -> None:
    found = pyaccount.certify(
        one_step(0.05, privacy__epsilon="solve", privacy__delta=1e-5, accounting={"profile": [0]})
    )
    assert found.data.profile[0].delta == 1.0
    for written in (found.to_markdown(), text_of(found)):
        assert "no upper bound was found" in written
        assert "none suffices" not in written


@pytest.mark.parametrize("coefficients", [[1, 0.9, 0.31], [1, 0.35, 0.77, 0.2], [1, 0.5, 0.25, 0.125]])
def test_sensitivities_are_told_rounded_outwards(coefficients: list[float]) -> None:
    iterations, separation = 9, 2
    raw = document(
        training={"iterations": iterations},
        sampler={"kind": "none", "min_separation": separation},
        matrix={"kind": "toeplitz", "coefficients": coefficients, "normalize": False},
    )
    (reduction,) = pyaccount.compile(raw).reductions
    columns = np.array(
        [
            [coefficients[i - j] if 0 <= i - j < len(coefficients) else 0.0 for j in range(iterations)]
            for i in range(iterations)
        ]
    )
    subsets = [[k for k in range(iterations) if bits >> k & 1] for bits in range(2**iterations)]
    patterns = [rounds for rounds in subsets if all(b - a >= separation for a, b in pairwise(rounds))]
    largest = max(float(np.linalg.norm(columns[:, rounds].sum(axis=1))) for rounds in patterns)
    above = re.search(r"·([\d.]+), ", reduction.pair)
    assert above is not None
    assert float(above[1]) >= largest * (1 - 1e-15)
    below = re.search(r"reach ([\d.]+), which", reduction.remark or "")
    if below is not None:
        assert float(below[1]) <= largest * (1 + 1e-15)
        assert largest - float(below[1]) <= 1e-5 * largest


@pytest.mark.parametrize("limit", [130, 140, 150, 161])
def test_the_probability_of_truncation_is_told_rounded_up(limit: int) -> None:
    raw = document(
        privacy__adjacency="zero-out",
        sampler={"kind": "poisson", "truncate_to": limit},
        training={"dataset_size": 10_000, "expected_batch_size": 100, "iterations": 400},
    )
    (reduction,) = pyaccount.compile(raw).reductions
    match = re.search(r"probability at most (\S+) \(Chernoff\)", reduction.remark or "")
    assert match is not None
    share, rate = mp.mpf(limit + 1) / 10_000, mp.mpf(1) / 100
    divergence = share * mp.log(share / rate) + (1 - share) * mp.log((1 - share) / (1 - rate))
    chernoff = mp.exp(-10_000 * divergence)
    assert chernoff <= mp.mpf(match[1]) <= chernoff * mp.mpf("1.1")


@pytest.mark.parametrize("columns", [60, 80, 110])
def test_a_narrow_terminal_cuts_no_number(columns: int) -> None:
    for kind in ("verified", "confidence", "deterministic"):
        page = page_of(CertificateModel.model_validate(golden(kind)))
        assert "…" not in terminal(page, columns)
    found = pyaccount.compare([document(), document(name="another one with a longer name")])
    assert "…" not in found.to_text(columns)


def test_from_the_guarantees_epsilon_on_the_profile_is_not_above_its_delta() -> None:
    data = pyaccount.certify(document(accounting={"profile": [1, 2, 8, 9]})).data
    assert data.privacy.adjacency == "add-remove"
    for curve in (data.profile, data.directions.remove.profile, data.directions.add.profile):
        beyond = [point for point in curve if point.epsilon >= data.guarantee.epsilon]
        assert beyond
        assert all(point.delta_lower <= point.delta <= data.guarantee.delta for point in beyond)


def test_what_only_some_phases_assume_names_them(snapshot: Snapshot) -> None:
    phases = [
        sectioned(name="training", sampling_probability=0.01, iterations=10, sampler="poisson", multiplier=2.0),
        sectioned(name="release", iterations=1, sampler="none", multiplier=9.0),
    ]
    raw = doc(name="two", group_size=3, phases=phases)
    snapshot(pyaccount.certify(raw).data.assumptions)
