"""The first rounds of a planned run: the mechanism cut short, by brute force and by closed forms."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from phases import phase
from plain_documents import doc
from sampled_tools import Array, lower_toeplitz
from snapshots import Snapshot

import pyaccount
from pyaccount import Accountant
from pyaccount.accountant.planned import planned
from pyaccount.document.ranges import PHASES as PHASES_ALLOWED
from pyaccount.plan.matrices import strategy

N, SIGMA, DELTA = 12, 1.7, 1e-6

SQUARE_ROOT = np.array([math.comb(2 * k, k) / 4**k for k in range(N)])
INVERSE = np.array([1.0, -0.6, -0.1])
SCALES, DECAYS = [0.3, 0.25], [0.5, 0.9]
BUFFERED = np.array([1.0, *(sum(w * d**i for w, d in zip(SCALES, DECAYS, strict=True)) for i in range(N - 1))])

#: Matrices with the first column of the whole run, by formulas that share nothing with the package.
MATRICES: dict[str, tuple[dict[str, Any], Array]] = {
    "square-root": ({"kind": "banded-square-root", "bands": 4}, SQUARE_ROOT[:4]),
    "toeplitz": ({"kind": "toeplitz", "coefficients": [1, 0.2, 0.7, 0.1]}, np.array([1, 0.2, 0.7, 0.1])),
    "inverse": (
        {"kind": "banded-inverse", "inverse_coefficients": INVERSE.tolist()},
        np.linalg.inv(lower_toeplitz(INVERSE, N))[:, 0],
    ),
    "inverse-root": (
        {"kind": "banded-inverse", "bands": 3},
        np.linalg.inv(lower_toeplitz(np.array([1.0, -0.5, -0.125]), N))[:, 0],
    ),
    "blt": ({"kind": "blt", "scales": SCALES, "decays": DECAYS}, BUFFERED),
}


def document(sampler: dict[str, Any], matrix: dict[str, Any] | None = None, **training: Any) -> dict[str, Any]:
    written: dict[str, Any] = doc(
        name="run", epsilon=2, delta=DELTA, iterations=N, training=training, sampler=sampler, multiplier=SIGMA
    )
    return written | ({} if matrix is None else {"matrix": matrix})


def whole(name: str, *, normalize: bool) -> tuple[dict[str, Any], Array]:
    """The section of a matrix, and the matrix itself over the whole run."""
    section, column = MATRICES[name]
    return {**section, "normalize": normalize}, column / (np.linalg.norm(column) if normalize else 1.0)


def worst(matrix: Array, rounds: int, apart: int, most: int) -> float:
    """The largest ‖Σ C e_i‖ over every pattern of rounds, one by one."""
    found = 0.0
    for pattern in itertools.product([0.0, 1.0], repeat=rounds):
        (when,) = np.nonzero(pattern)
        if 0 < len(when) <= most and (np.diff(when) >= apart).all():
            found = max(found, float(np.linalg.norm(matrix[:rounds, :rounds] @ np.array(pattern))))
    return found


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("steps", [1, 3, 7, 12])
def test_a_prefix_without_sampling_has_the_sensitivity_of_every_pattern(name: str, steps: int, normalize: bool) -> None:
    section, column = whole(name, normalize=normalize)
    accountant = Accountant(document({"kind": "none", "min_separation": 4, "max_participations": 2}, section))
    accountant.step(steps)
    mu = worst(lower_toeplitz(column, N), steps, 4, 2) / SIGMA
    exact = float(oracle.gaussian_epsilon(mu, DELTA))
    guarantee = accountant.certificate().data.guarantee
    assert guarantee.epsilon_lower <= exact * (1 + 1e-9)
    assert exact <= guarantee.epsilon * (1 + 1e-9)
    # Where coefficients increase somewhere, cross products are charged to both columns: the only looseness here.
    if (np.diff(column) <= 0).all():
        assert guarantee.epsilon <= exact * (1 + 3e-4)


SAMPLERS: dict[str, dict[str, Any]] = {
    "b-min-sep": {"kind": "b-min-sep", "min_separation": 5},
    "user-b-min-sep": {
        "kind": "user-b-min-sep",
        "records_per_user": 2,
        "attribution": "single",
        "min_separation": 5,
    },
    "balls-in-bins": {"kind": "balls-in-bins", "bins": 5},
    "cyclic-poisson": {"kind": "cyclic-poisson", "partitions": 5},
    "cyclic-random": {"kind": "cyclic-poisson", "partitions": 5, "phase": "random"},
    "none": {"kind": "none"},
}


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", [*MATRICES, "optimal", "optimal-blt"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_prefix_has_the_leading_block_in_the_same_units(sampler: str, name: str, normalize: bool) -> None:
    """C⁻¹σ of a prefix is the leading block of that of the whole run, whatever is scaled."""
    if sampler.startswith("cyclic") and name in ("inverse", "inverse-root", "blt", "optimal-blt"):
        pytest.skip("cyclic Poisson sampling is analysed with banded matrices only")
    rate = {} if sampler in ("none", "balls-in-bins") else {"sampling_probability": 0.1}
    if name.startswith("optimal"):
        section: dict[str, Any] = (
            {"kind": "blt", "buffers": 2} if name == "optimal-blt" else {"kind": "optimal-toeplitz"}
        )
        section |= {"normalize": normalize} | ({"bands": 4} if name == "optimal" else {})
        # The optimum has no formula. It is the one of the whole run, which it must stay: others are optimal for fewer rounds.
        plan = planned(pyaccount.load(document(SAMPLERS[sampler], section, **rate)))
        column = np.array(strategy(phase(plan.document)).coefficients)
    else:
        section, column = whole(name, normalize=normalize)
        plan = planned(pyaccount.load(document(SAMPLERS[sampler], section, **rate)))
    truth = SIGMA * np.linalg.inv(lower_toeplitz(column, N))
    for steps in (1, 4, 5, 8, 12):
        covered = plan.covers(steps)
        assert covered == (max(steps, 5) if sampler in ("balls-in-bins", "cyclic-random") else steps)
        prefix = plan.prefix(steps)
        body = prefix.run
        assert body.training.iterations == covered
        plan_of_prefix = pyaccount.compile(prefix)
        if plan_of_prefix.sampled:
            # The core takes it.
            plan_of_prefix.at().mechanism()
        block = np.array(strategy(phase(prefix)).coefficients)
        assert isinstance(body.noise.multiplier, float)
        noise = body.noise.multiplier * np.linalg.inv(lower_toeplitz(block, covered))
        np.testing.assert_allclose(noise, truth[:covered, :covered], rtol=1e-11, atol=1e-13)
        # Rounding is on the safe side: less noise, never more.
        assert body.noise.multiplier / block[0] <= truth[0, 0] * (1 + 1e-15)


def exact_column(section: dict[str, Any], rounds: int) -> list[Fraction]:
    """The coefficients that the core is given, as they are."""
    read = pyaccount.load(document({"kind": "none"}, section, iterations=rounds))
    coefficients = strategy(phase(read)).coefficients
    assert coefficients is not None
    return [Fraction(entry) for entry in coefficients] + [Fraction(0)] * (rounds - len(coefficients))


@given(
    inverse=st.lists(st.floats(-0.4, -0.01), min_size=1, max_size=4),
    positive=st.sampled_from([0.0, 0.05]),
    first=st.floats(0.5, 2),
    steps=st.integers(1, N - 1),
    normalize=st.booleans(),
)
@settings(max_examples=100)
def test_no_rounding_lowers_a_coefficient_of_a_banded_inverse(
    inverse: list[float], positive: float, first: float, steps: int, normalize: bool
) -> None:
    """c_k/σ of the prefix against that of the whole run, both as they are analysed, in exact fractions."""
    listed = [first, *inverse, *([positive] if positive else [])]
    section = {"kind": "banded-inverse", "inverse_coefficients": listed, "normalize": normalize}
    try:
        plan = planned(pyaccount.load(document({"kind": "none"}, section)))
    except pyaccount.DocumentError:
        assume(False)  # an entry of C is negative
    prefix = plan.mapping(steps)
    sigma = Fraction(prefix["noise"]["multiplier"])
    run, cut = exact_column(section, N), exact_column(prefix["matrix"], steps)
    for whole_run, leading in zip(run, cut, strict=False):
        assert leading / sigma >= whole_run / Fraction(SIGMA)
        assert leading / sigma <= whole_run / Fraction(SIGMA) * (1 + Fraction(1, 10**14))
    # Where terms cancel, and not yet in the prefix, the two are computed in different ways.
    if not normalize and not positive:
        assert cut == run[:steps]


def test_a_separation_that_follows_from_the_bands_stays_that_of_the_whole_run() -> None:
    plan = planned(
        pyaccount.load(
            document({"kind": "b-min-sep"}, {"kind": "banded-square-root", "bands": 6}, participation_rate=0.05)
        )
    )
    first = plan.mapping(2)
    assert first["sampler"]["min_separation"] == 6
    assert len(first["matrix"]["coefficients"]) == 2
    assert first["training"]["participation_rate"] == 0.05
    pyaccount.compile(first)


@pytest.mark.parametrize("steps", range(1, N + 1))
def test_cyclic_rounds_that_always_draw_have_the_closed_form(steps: int) -> None:
    """With probability 1 the first part takes part in every third round; three bands do not overlap."""
    section, column = whole("square-root", normalize=True)
    section |= {"bands": 3}
    column = SQUARE_ROOT[:3] / np.linalg.norm(SQUARE_ROOT[:3])
    accountant = Accountant(document({"kind": "cyclic-poisson"}, section, sampling_probability=1))
    accountant.step(steps)
    squares = sum(float(np.sum(column[: steps - i] ** 2)) for i in range(0, steps, 3))
    exact = float(oracle.gaussian_epsilon(math.sqrt(squares) / SIGMA, DELTA))
    guarantee = accountant.certificate().data.guarantee
    assert guarantee.epsilon_lower * (1 - 1e-9) <= exact <= guarantee.epsilon * (1 + 1e-9)
    assert guarantee.epsilon <= exact * (1 + 1e-3)


def test_a_matrix_from_a_file_is_bounded_by_the_whole_run(tmp_path: Any) -> None:
    matrix = lower_toeplitz(SQUARE_ROOT[:4], N)
    np.save(tmp_path / "strategy.npy", matrix)
    path = tmp_path / "run.yaml"
    path.write_text(
        f"pyaccount: 1\nname: run\nprivacy: {{adjacency: zero-out, epsilon: 30, delta: {DELTA}}}\n"
        f"training: {{iterations: {N}}}\nsampler: {{kind: none}}\nmatrix: {{kind: dense, file: strategy.npy}}\n"
        f"noise: {{multiplier: {SIGMA}}}\n",
        encoding="utf-8",
    )
    accountant = Accountant(path)
    accountant.step(3)
    assert accountant.covered_steps == N
    every = np.linalg.norm((matrix / np.linalg.norm(matrix, axis=0).max()).sum(axis=1))
    exact = float(oracle.gaussian_epsilon(float(every) / SIGMA, DELTA))
    assert accountant.epsilon_spent() == pytest.approx(exact, rel=3e-4)
    assert accountant.epsilon_spent() >= exact
    # Saved beside the matrix, it is found again.
    accountant.save(tmp_path / "state.json")
    assert Accountant.load(tmp_path / "state.json").epsilon_spent() == accountant.epsilon_spent()


PHASES = [
    {"name": "one", "training": {"iterations": 4}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}, "count": 3},
    {"training": {"iterations": 3}, "sampler": {"kind": "none"}, "noise": {"multiplier": 5}},
]


@pytest.mark.parametrize("steps", range(1, 16))
def test_phases_and_runs_come_one_after_the_other(steps: int) -> None:
    privacy = {"adjacency": "add-remove", "epsilon": 9, "delta": DELTA}
    accountant = Accountant({"pyaccount": 1, "name": "phases", "privacy": privacy, "phases": PHASES})
    assert accountant.planned_steps == 15
    accountant.step(steps)
    mu = math.sqrt(min(steps, 12) / 4 + max(0, steps - 12) / 25)
    exact = float(oracle.gaussian_epsilon(mu, DELTA))
    assert exact <= accountant.epsilon_spent() <= exact * (1 + 3e-4)
    released = pyaccount.load(accountant.document())
    assert sum(body.count * int(body.training.iterations) for body in released.runs()) == steps


@pytest.mark.parametrize(("last", "steps", "covered"), [(3, 1, 1), (3, 3, 4), (3, 4, 4), (3, 5, 6), (1, 1, 1)])
def test_a_prefix_has_no_more_phases_than_a_document(
    last: int, steps: int, covered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs of the last phase and a part of a third would be two phases, where there is room for one."""
    monkeypatch.setattr("pyaccount.accountant.planned.PHASES", replace(PHASES_ALLOWED, maximum=3))
    one = {"training": {"iterations": 2}, "sampler": {"kind": "none"}, "noise": {"multiplier": 2}}
    other = {**one, "noise": {"multiplier": 3}}
    privacy = {"adjacency": "add-remove", "epsilon": 9, "delta": DELTA}
    phases = [one, other, {**one, "count": last}]
    accountant = Accountant({"pyaccount": 1, "name": "phases", "privacy": privacy, "phases": phases})
    accountant.step(4 + steps)
    assert accountant.covered_steps == 4 + covered
    released = accountant.document()["phases"]
    assert len(released) == 3
    assert sum(p["training"]["iterations"] * p.get("count", 1) for p in released) == 4 + covered


def test_participations_are_those_of_the_rounds_so_far() -> None:
    accountant = Accountant(document({"kind": "none", "max_participations": 3}))
    for steps in range(1, N + 1):
        accountant.step()
        exact = float(oracle.gaussian_epsilon(math.sqrt(min(steps, 3)) / SIGMA, DELTA))
        assert exact <= accountant.epsilon_spent() <= exact * (1 + 3e-4)


def test_long_names_leave_room_for_what_was_cut() -> None:
    accountant = Accountant({**document({"kind": "none"}), "name": "x" * 200})
    accountant.step(5)
    assert accountant.document()["name"].endswith(f"x, first 5 of {N} rounds, fixed beforehand")
    assert len(accountant.document()["name"]) == 200


def test_random_parts_without_a_turn_are_refused_before_anything_runs(snapshot: Snapshot) -> None:
    sampler = {"kind": "cyclic-poisson", "partitions": N + 1, "phase": "random"}
    snapshot.raised(lambda: pyaccount.compile(document(sampler, sampling_probability=0.1)))
    pyaccount.compile(document({**sampler, "partitions": N}, sampling_probability=0.1))
