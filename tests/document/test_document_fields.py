"""One wrong field at a time, and many at once: slug, path, line and column of each problem."""

from pathlib import Path

import pytest
from document_samples import BASE, PHASED, edited, found, load_text, problems_of, written
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
def test_a_key_of_another_kind_is_not_suggested_to_itself(changes: dict[int, str | None], tmp_path: Path) -> None:
    (problem,) = problems_of(written(tmp_path, edited(changes)))
    assert (problem.slug, problem.suggestion) == ("unknown-key", None)
    assert problem.allowed is not None
    assert "kind" in problem.allowed
    assert str(problem.path[-1]) not in problem.allowed


def test_a_choice_of_kinds_must_be_a_list(tmp_path: Path) -> None:
    """What belongs beside the list stands in it: two problems, for neither the kinds nor the bands are there."""
    text = edited({15: "matrix: {kind: {choose: [optimal-toeplitz], bands: 4}}"})
    assert found(tmp_path, text) == [("missing-key", "matrix.bands", 15, 9), ("wrong-type", "matrix.kind", 15, 16)]
    text = edited({15: "matrix: {choose: [optimal-toeplitz], bands: 4}"})
    assert found(tmp_path, text) == [("missing-key", "matrix.kind", 15, 9), ("unknown-key", "matrix.choose", 15, 10)]


SUGGESTIONS = [
    ({12: "  kind: Poisson"}, "poisson"),
    ({12: "  kind: fixed_size"}, "fixed-size"),
    ({12: "  kind: without-replacement"}, None),
    ({12: "  kind: deterministic"}, "none"),
    ({12: "  kind: xyz"}, None),
    ({12: "  kind: b_min_sep"}, "b-min-sep"),
    ({12: "  kind: bmin-sep"}, "b-min-sep"),
    ({12: "  kind: user-bminsep"}, "user-b-min-sep"),
    ({12: "  kind: bnb"}, "balls-in-bins"),
    ({12: "  kind: balls_and_bins"}, "balls-in-bins"),
    ({12: "  kind: cyclic"}, None),
    ({12: "  kind: b-min-sep\n  start: wram"}, "warm"),
    ({15: "matrix: {kind: bsr, bands: 4}"}, "banded-square-root"),
    ({15: "matrix: {kind: banded-toeplitz, bands: 4}"}, None),
    ({15: "matrix: {kind: toeplits, coefficients: [1]}"}, "toeplitz"),
    ({15: "matrix: {kind: {choose: [optimal-toeplitz, bsr]}, bands: 4}"}, "banded-square-root"),
    ({15: "accounting: {method: mc}"}, "monte-carlo"),
    ({15: "accounting: {verification: fixed_sample}"}, "fixed-sample"),
    ({4: "  adjacency: add_remove"}, "add-remove"),
    ({4: "  adjacency: substitution"}, "replace-one"),
    ({14: "  multiplier: 1\n  kind: normal"}, "gaussian"),
    ({14: "  multiplier: 1\nmatrix: {kind: identiy}"}, "identity"),
]


@pytest.mark.parametrize(("changes", "suggestion"), SUGGESTIONS)
def test_suggested_value(changes: dict[int, str | None], suggestion: str | None, tmp_path: Path) -> None:
    (problem,) = problems_of(written(tmp_path, edited(changes)))
    assert problem.suggestion == suggestion
    assert problem.allowed is not None


@pytest.mark.parametrize(("changes", "keys"), MISSING)
def test_missing_keys(changes: dict[int, str | None], keys: list[tuple[str, int, int]], tmp_path: Path) -> None:
    expected = [("missing-key", *key) for key in keys]
    assert sorted(found(tmp_path, edited(changes))) == expected


def test_every_problem_at_once(tmp_path: Path) -> None:
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
    assert found(tmp_path, text) == [
        ("unknown-value", "privacy.adjacency", 4, 14),
        ("out-of-range", "privacy.epsilon", 5, 12),
        ("out-of-range", "privacy.delta", 6, 10),
        ("unknown-key", "privacy.deltas", 7, 3),
        ("contradiction", "training.expected_batch_size", 10, 24),
        ("duplicate-key", "training.iterations", 12, 3),
        ("unknown-kind", "sampler.kind", 14, 9),
        ("unknown-key", "sampler.q", 15, 3),
        ("unknown-kind", "noise.kind", 18, 9),
        ("wrong-type", "accounting.tolerance", 20, 14),
        ("wrong-type", "accounting.profile[1]", 21, 16),
        ("out-of-range", "accounting.profile[2]", 21, 19),
        ("wrong-type", "accounting.profile[3]", 21, 23),
        ("unknown-key", "matrx", 22, 1),
    ]


def test_every_problem_of_every_phase(tmp_path: Path) -> None:
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
    assert found(tmp_path, text) == [
        ("out-of-range", "phases[0].training.sampling_probability", 5, 38),
        ("several-blanks", "phases[0].noise.multiplier", 7, 25),
        ("wrong-type", "phases[1]", 8, 5),
        ("missing-key", "phases[2].training.expected_batch_size", 9, 15),
        ("missing-key", "phases[2].training.dataset_size", 9, 15),
        ("unknown-key", "phases[2].noise.multipler", 11, 13),
        ("unknown-key", "phases[2].counts", 12, 5),
        ("contradiction", "phases[3].training.sampling_probability", 13, 38),
        ("contradiction", "phases[3].sampler.max_participations", 14, 47),
        ("unknown-key", "sigma", 16, 1),
    ]


PHASES = [
    ("phases: 3", [("wrong-type", "phases", 15, 9)]),
    ("phases: []", [("out-of-range", "phases", 15, 9)]),
    ("phases: {}", [("wrong-type", "phases", 15, 9)]),
]


@pytest.mark.parametrize(("line", "expected"), PHASES)
def test_phases_beside_a_body(line: str, expected: list[tuple[str, str, int, int]], tmp_path: Path) -> None:
    beside = [
        ("contradiction", "training", 7, 1),
        ("contradiction", "sampler", 11, 1),
        ("contradiction", "noise", 13, 1),
    ]
    assert found(tmp_path, edited({15: line})) == beside + expected


def test_bases_are_documents(tmp_path: Path) -> None:
    assert load_text(tmp_path, BASE).blank == ("noise", "multiplier")
    assert load_text(tmp_path, PHASED).blank == ("privacy", "epsilon")
    assert load_text(tmp_path, edited({14: "  multiplier: 1"})).blank is None


def test_rendering(tmp_path: Path) -> None:
    path = written(tmp_path, edited({6: "  delta: 1.5", 12: "  kind: poison", 14: f"  multiplier: {'x' * 999}"}))
    first, second, third = (problem.render() for problem in problems_of(path))
    assert first == (
        f"{path}:6:10: privacy.delta = 1.5 [out-of-range]\n    must be at least 1e-280 and less than 1, or 0"
    )
    assert second == (
        f"{path}:12:9: sampler.kind = 'poison' [unknown-kind]\n"
        "    no sampler of this kind is implemented: must be poisson, fixed-size, with-replacement, must-ow, must-wo, must-ww, "
        "b-min-sep, user-b-min-sep, random-allocation, balls-in-bins, cyclic-poisson or none\n"
        "    did you mean poisson?"
    )
    assert max(map(len, third.splitlines())) < 200 + len(str(path))


def test_solve_elsewhere_says_where_it_may_stand(tmp_path: Path) -> None:
    (problem,) = problems_of(written(tmp_path, edited({8: "  dataset_size: solve", 14: "  multiplier: 1"})))
    for place in (
        "noise.multiplier",
        "privacy.epsilon",
        "privacy.delta",
        "training.iterations",
        "privacy.group_size",
        "training.expected_batch_size",
    ):
        assert place in problem.message
