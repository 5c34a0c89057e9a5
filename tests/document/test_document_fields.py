"""One wrong field at a time, and many at once: slug, path, line and column of each problem."""

from pathlib import Path

import pytest
from document_samples import BASE, PHASED, edited, found, load_text, outcome, problems_of, written
from snapshots import Snapshot
from wrong_fields import FIELDS, KEYS, MISSING


@pytest.mark.parametrize("case", FIELDS)
def test_one_wrong_field(case: tuple[int, str, str, str, int], tmp_path: Path) -> None:
    line, text, slug, path, column = case
    expected = (slug, path, line + text.count("\n"), column)
    assert found(tmp_path, edited({line: text})) == [expected]


@pytest.mark.parametrize("case", KEYS)
def test_unknown_key(case: tuple[dict[int, str | None], str, int, int, str | None], tmp_path: Path) -> None:
    changes, path, line, column, suggestion = case
    problems = problems_of(written(tmp_path, edited(changes)))
    unknown = [problem for problem in problems if problem.slug == "unknown-key"]
    assert [(it.path_text, it.line, it.column, it.suggestion) for it in unknown] == [(path, line, column, suggestion)]
    if suggestion is not None:
        assert len(problems) == 1, "what the key was meant for counts as given"


OF_OTHER_KINDS = [
    {12: "  kind: poisson\n  min_separation: 2"},
    {12: "  kind: b-min-sep\n  bins: 2"},
    {12: "  kind: balls-in-bins\n  start: cold"},
    {15: "matrix: {kind: toeplitz, coefficients: [1], bands: 1}"},
    {15: "matrix: {kind: {choose: [optimal-toeplitz]}, bands: 1, file: a.npy}"},
]


@pytest.mark.parametrize("changes", OF_OTHER_KINDS)
def test_a_key_of_another_kind_is_not_suggested_to_itself(
    changes: dict[int, str | None], tmp_path: Path, snapshot: Snapshot
) -> None:
    (problem,) = problems_of(written(tmp_path, edited(changes)))
    snapshot(problem)
    assert str(problem.path[-1]) not in problem.allowed


def test_a_choice_of_kinds_must_be_a_list(tmp_path: Path) -> None:
    """What belongs beside the list stands in it: two problems, for neither the kinds nor the bands are there."""
    text = edited({15: "matrix: {kind: {choose: [optimal-toeplitz], bands: 4}}"})
    assert found(tmp_path, text) == [("missing-key", "matrix.bands", 15, 9), ("wrong-type", "matrix.kind", 15, 16)]
    text = edited({15: "matrix: {choose: [optimal-toeplitz], bands: 4}"})
    assert found(tmp_path, text) == [("missing-key", "matrix.kind", 15, 9), ("unknown-key", "matrix.choose", 15, 10)]


SUGGESTIONS = [
    {12: "  kind: Poisson"},
    {12: "  kind: fixed_size"},
    {12: "  kind: without-replacement"},
    {12: "  kind: deterministic"},
    {12: "  kind: xyz"},
    {12: "  kind: b_min_sep"},
    {12: "  kind: bmin-sep"},
    {12: "  kind: user-bminsep"},
    {12: "  kind: bnb"},
    {12: "  kind: balls_and_bins"},
    {12: "  kind: cyclic"},
    {12: "  kind: b-min-sep\n  start: wram"},
    {15: "matrix: {kind: bsr, bands: 4}"},
    {15: "matrix: {kind: banded-toeplitz, bands: 4}"},
    {15: "matrix: {kind: toeplits, coefficients: [1]}"},
    {15: "matrix: {kind: {choose: [optimal-toeplitz, bsr]}, bands: 4}"},
    {15: "accounting: {method: mc}"},
    {15: "accounting: {verification: fixed_sample}"},
    {4: "  adjacency: add_remove"},
    {4: "  adjacency: substitution"},
    {14: "  multiplier: 1\n  kind: normal"},
    {14: "  multiplier: 1\nmatrix: {kind: identiy}"},
]


@pytest.mark.parametrize("changes", SUGGESTIONS)
def test_suggested_value(changes: dict[int, str | None], tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, edited(changes))))


@pytest.mark.parametrize(("changes", "keys"), MISSING)
def test_missing_keys(changes: dict[int, str | None], keys: list[tuple[str, int, int]], tmp_path: Path) -> None:
    expected = [("missing-key", *key) for key in keys]
    assert sorted(found(tmp_path, edited(changes))) == expected


def test_every_problem_at_once(tmp_path: Path, snapshot: Snapshot) -> None:
    text = """\
pyaccount: 1
name: many mistakes
privacy:
  adjacency: zero-one
  epsilon: -3
  delta: 1.5
  deltas: 4
training:
  dataset_size: 100
  expected_batch_size: 500
  iterations: 2000
  iterations: 3000
sampler:
  kind: poison
  q: 3
noise:
  multiplier: solve
  kind: gausian
accounting:
  tolerance: yes
  profile: [1, x, -2, true]
matrx: {kind: identity}
"""
    snapshot(outcome(tmp_path, text))


def test_every_problem_of_every_phase(tmp_path: Path, snapshot: Snapshot) -> None:
    text = """\
pyaccount: 1
name: phases
privacy: {adjacency: add-remove, epsilon: solve, delta: 1e-6}
phases:
  - training: {sampling_probability: 2, iterations: 100}
    sampler: {kind: poisson}
    noise: {multiplier: solve}
  - 7
  - training: {iterations: 50}
    sampler: {kind: fixed-size}
    noise: {multipler: 2}
    counts: 3
  - training: {sampling_probability: 0.5, iterations: 5}
    sampler: {kind: none, max_participations: 6}
    noise: {multiplier: 1}
sigma: 3
"""
    snapshot(outcome(tmp_path, text))


@pytest.mark.parametrize("phases", ["3", "[]", "{}"])
def test_phases_beside_a_body(phases: str, tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(outcome(tmp_path, edited({15: f"phases: {phases}"})))


def test_bases_are_documents(tmp_path: Path) -> None:
    assert load_text(tmp_path, BASE).blank == ("noise", "multiplier")
    assert load_text(tmp_path, PHASED).blank == ("privacy", "epsilon")
    assert load_text(tmp_path, edited({14: "  multiplier: 1"})).blank is None


def test_rendering(tmp_path: Path, snapshot: Snapshot) -> None:
    path = written(tmp_path, edited({6: "  delta: 1.5", 12: "  kind: poison", 14: f"  multiplier: {'x' * 999}"}))
    problems = problems_of(path)
    snapshot(problems)
    assert max(map(len, problems[2].render().splitlines())) < 200 + len(str(path))


def test_solve_elsewhere_says_where_it_may_stand(tmp_path: Path, snapshot: Snapshot) -> None:
    snapshot(problems_of(written(tmp_path, edited({8: "  dataset_size: solve", 14: "  multiplier: 1"}))))
