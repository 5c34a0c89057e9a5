"""One wrong field at a time, and many at once: slug, path, line and column of each problem."""

from pathlib import Path

import pytest
from document_samples import BASE, PHASED, edited, found, load_text, problems_of, written

FIELDS = [
    # what is written, at which line, the slug, the path, the column
    (1, "pyaccount: 2", "unknown-version", "pyaccount", 12),
    (1, "pyaccount: one", "wrong-type", "pyaccount", 12),
    (1, "pyaccount: true", "wrong-type", "pyaccount", 12),
    (1, "pyaccount: solve", "wrong-type", "pyaccount", 12),
    (2, "name: 7", "wrong-type", "name", 7),
    (2, "name:", "wrong-type", "name", 6),
    (2, "name: ''", "out-of-range", "name", 7),
    (2, "name: '   '", "out-of-range", "name", 7),
    (2, f"name: {'x' * 201}", "out-of-range", "name", 7),
    (2, 'name: "a\\e[31mb"', "out-of-range", "name", 7),
    (2, 'name: "two\\nlines"', "out-of-range", "name", 7),
    (4, "  adjacency: zero", "unknown-value", "privacy.adjacency", 14),
    (4, "  adjacency: yes", "unknown-value", "privacy.adjacency", 14),
    (4, "  adjacency: true", "wrong-type", "privacy.adjacency", 14),
    (4, "  adjacency: [zero-out]", "wrong-type", "privacy.adjacency", 14),
    (4, "  adjacency: solve", "unknown-value", "privacy.adjacency", 14),
    (5, "  epsilon: -1", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: 1e7", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: .nan", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: .inf", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: -.inf", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: nan", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: infinity", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: 1e999", "out-of-range", "privacy.epsilon", 12),
    (5, f"  epsilon: {'9' * 5000}", "out-of-range", "privacy.epsilon", 12),
    (5, "  epsilon: eight", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon: true", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon: 8,5", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon: 8 8", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon: 1__0", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon: 2026-02-11", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon:", "wrong-type", "privacy.epsilon", 11),
    (5, "  epsilon: {at: 3}", "wrong-type", "privacy.epsilon", 12),
    (5, "  epsilon: [3]", "wrong-type", "privacy.epsilon", 12),
    (6, "  delta: 0", "out-of-range", "privacy.delta", 10),
    (6, "  delta: 1", "out-of-range", "privacy.delta", 10),
    (6, "  delta: 1.5", "out-of-range", "privacy.delta", 10),
    (6, "  delta: -1e-5", "out-of-range", "privacy.delta", 10),
    (6, "  delta: 1e-281", "out-of-range", "privacy.delta", 10),
    (6, "  delta: 1e-5\n  group_size: 0", "out-of-range", "privacy.group_size", 15),
    (6, "  delta: 1e-5\n  group_size: 10_001", "out-of-range", "privacy.group_size", 15),
    (6, "  delta: 1e-5\n  group_size: 1.5", "wrong-type", "privacy.group_size", 15),
    (8, "  dataset_size: 0", "out-of-range", "training.dataset_size", 17),
    (8, "  dataset_size: 1e16", "out-of-range", "training.dataset_size", 17),
    (8, "  dataset_size: 50_000.5", "wrong-type", "training.dataset_size", 17),
    (8, "  dataset_size: solve", "wrong-type", "training.dataset_size", 17),
    (9, "  expected_batch_size: 0", "out-of-range", "training.expected_batch_size", 24),
    (9, "  sampling_probability: 1.01", "out-of-range", "training.sampling_probability", 25),
    (9, "  sampling_probability: 0", "out-of-range", "training.sampling_probability", 25),
    (9, "  sampling_probability: solve", "wrong-type", "training.sampling_probability", 25),
    (9, "  participation_rate: -0.1", "out-of-range", "training.participation_rate", 23),
    (10, "  iterations: 0", "out-of-range", "training.iterations", 15),
    (10, "  iterations: 1e10", "out-of-range", "training.iterations", 15),
    (10, "  iterations: 10.5", "wrong-type", "training.iterations", 15),
    (10, "  iterations: '10.5'", "wrong-type", "training.iterations", 15),
    (12, "  kind: poison", "unknown-kind", "sampler.kind", 9),
    (12, "  kind: b-max-sep", "unknown-kind", "sampler.kind", 9),
    (12, "  kind: shuffled", "unknown-kind", "sampler.kind", 9),
    (12, "  kind: {choose: [poisson, b-min-sep]}", "wrong-type", "sampler.kind", 9),
    (12, "  kind: b-min-sep\n  min_separation: 0", "out-of-range", "sampler.min_separation", 19),
    (12, "  kind: b-min-sep\n  min_separation: 1e10", "out-of-range", "sampler.min_separation", 19),
    (12, "  kind: b-min-sep\n  min_separation: 1.5", "wrong-type", "sampler.min_separation", 19),
    (12, "  kind: b-min-sep\n  min_separation: {choose: [2, 4]}", "wrong-type", "sampler.min_separation", 19),
    (12, "  kind: b-min-sep\n  min_separation: solve", "wrong-type", "sampler.min_separation", 19),
    (12, "  kind: b-min-sep\n  start: tepid", "unknown-value", "sampler.start", 10),
    (12, "  kind: b-min-sep\n  start: true", "wrong-type", "sampler.start", 10),
    (12, "  kind: b-min-sep\n  bins: 3", "unknown-key", "sampler.bins", 3),
    (12, "  kind: b-min-sep\n  partitions: 3", "unknown-key", "sampler.partitions", 3),
    (12, "  kind: balls-in-bins\n  bins: 0", "out-of-range", "sampler.bins", 9),
    (12, "  kind: balls-in-bins\n  bins: 4097", "out-of-range", "sampler.bins", 9),
    (12, "  kind: balls-in-bins\n  bins: 2.5", "wrong-type", "sampler.bins", 9),
    (12, "  kind: balls-in-bins\n  bins: solve", "wrong-type", "sampler.bins", 9),
    (12, "  kind: balls-in-bins\n  bins:", "wrong-type", "sampler.bins", 8),
    (12, "  kind: balls-in-bins\n  min_separation: 3", "unknown-key", "sampler.min_separation", 3),
    (12, "  kind: cyclic-poisson\n  partitions: 0", "out-of-range", "sampler.partitions", 15),
    (12, "  kind: cyclic-poisson\n  partitions: 1e10", "out-of-range", "sampler.partitions", 15),
    (12, "  kind: cyclic-poisson\n  partitions: true", "wrong-type", "sampler.partitions", 15),
    (12, "  kind: cyclic-poisson\n  start: warm", "unknown-key", "sampler.start", 3),
    (12, "  kind: 3", "wrong-type", "sampler.kind", 9),
    (12, "  kind: [poisson]", "wrong-type", "sampler.kind", 9),
    (12, "  kind:", "wrong-type", "sampler.kind", 8),
    (12, "  kind: none\n  min_separation: 0", "out-of-range", "sampler.min_separation", 19),
    (12, "  kind: none\n  max_participations: 2.5", "wrong-type", "sampler.max_participations", 23),
    (12, "  kind: poisson\n  max_participations: 2", "unknown-key", "sampler.max_participations", 3),
    (14, "  multiplier: 0", "out-of-range", "noise.multiplier", 15),
    (14, "  multiplier: -1", "out-of-range", "noise.multiplier", 15),
    (14, "  multiplier: 2e9", "out-of-range", "noise.multiplier", 15),
    (14, "  multiplier: sole", "wrong-type", "noise.multiplier", 15),
    (14, "  multiplier: 1\n  kind: laplac", "unknown-kind", "noise.kind", 9),
    (14, "  multiplier: 1\ncount: 0", "out-of-range", "count", 8),
    (14, "  multiplier: 1\nmatrix: {kind: banded}", "unknown-kind", "matrix.kind", 16),
    (14, "  multiplier: 1\nmatrix: identity", "wrong-type", "matrix", 9),
    (14, "  multiplier: 1\nmatrix: {}", "missing-key", "matrix.kind", 9),
    (14, "  multiplier: 1\naccounting:", "wrong-type", "accounting", 12),
    (14, "  multiplier: 1\naccounting: {method: pdl}", "unknown-value", "accounting.method", 22),
    (14, "  multiplier: 1\naccounting: {tolerance: 0.6}", "out-of-range", "accounting.tolerance", 25),
    (14, "  multiplier: 1\naccounting: {tolerance: 1e-9}", "out-of-range", "accounting.tolerance", 25),
    (14, "  multiplier: 1\naccounting: {seed: -1}", "out-of-range", "accounting.seed", 20),
    (14, "  multiplier: 1\naccounting: {seed: 18446744073709551616}", "out-of-range", "accounting.seed", 20),
    (14, "  multiplier: 1\naccounting: {profile: 3}", "wrong-type", "accounting.profile", 23),
    (14, "  multiplier: 1\naccounting: {profile: [1, -2]}", "out-of-range", "accounting.profile[1]", 27),
    (14, f"  multiplier: 1\naccounting: {{profile: {[1] * 1001}}}", "out-of-range", "accounting.profile", 23),
    (14, "  multiplier: 1\naccounting: {time_limit: 10 parsecs}", "wrong-type", "accounting.time_limit", 26),
    (14, "  multiplier: 1\naccounting: {time_limit: 0}", "out-of-range", "accounting.time_limit", 26),
    (14, "  multiplier: 1\naccounting: {time_limit: 1000 days}", "out-of-range", "accounting.time_limit", 26),
    (14, "  multiplier: 1\naccounting: {time_limit: true}", "wrong-type", "accounting.time_limit", 26),
    (14, "  multiplier: {choose: [1, 2]}", "wrong-type", "noise.multiplier", 15),
    (14, "  multiplier: 1\naccounting: {method: prv2}", "unknown-value", "accounting.method", 22),
    (14, "  multiplier: 1\naccounting: {method: {choose: [pld]}}", "wrong-type", "accounting.method", 22),
    (14, "  multiplier: 1\naccounting: {verification: bet}", "unknown-value", "accounting.verification", 28),
    (14, "  multiplier: 1\naccounting: {verification: true}", "wrong-type", "accounting.verification", 28),
    (14, "  multiplier: 1\naccounting: {tolerance: null}", "wrong-type", "accounting.tolerance", 25),
    (14, "  multiplier: 1\naccounting: {seed: 1.5}", "wrong-type", "accounting.seed", 20),
    (14, "  multiplier: 1\naccounting: {seed: seven}", "wrong-type", "accounting.seed", 20),
]

MATRICES = [
    # the matrix, the slug, the path, the column
    ("{kind: banded-square-root}", "missing-key", "matrix.bands", 9),
    ("{kind: optimal-toeplitz}", "missing-key", "matrix.bands", 9),
    ("{kind: toeplitz}", "missing-key", "matrix.coefficients", 9),
    ("{kind: dense}", "missing-key", "matrix.file", 9),
    ("{kind: banded-square-root, bands: 0}", "out-of-range", "matrix.bands", 43),
    ("{kind: banded-square-root, bands: 16385}", "out-of-range", "matrix.bands", 43),
    ("{kind: banded-square-root, bands: 1.5}", "wrong-type", "matrix.bands", 43),
    ("{kind: optimal-toeplitz, bands: solve}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: [4, 8]}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: 4, normalize: 1}", "wrong-type", "matrix.normalize", 55),
    ("{kind: optimal-toeplitz, bands: 4, normalize: 'true'}", "wrong-type", "matrix.normalize", 55),
    ("{kind: optimal-toeplitz, bands: 4, file: a.npy}", "unknown-key", "matrix.file", 44),
    ("{kind: identity, bands: 1}", "unknown-key", "matrix.bands", 26),
    ("{kind: toeplitz, coefficients: []}", "out-of-range", "matrix.coefficients", 40),
    ("{kind: toeplitz, coefficients: 1}", "wrong-type", "matrix.coefficients", 40),
    ("{kind: toeplitz, coefficients: {choose: [1]}}", "wrong-type", "matrix.coefficients", 40),
    ("{kind: toeplitz, coefficients: [1, -0.5]}", "out-of-range", "matrix.coefficients[1]", 44),
    ("{kind: toeplitz, coefficients: [1, .nan]}", "out-of-range", "matrix.coefficients[1]", 44),
    ("{kind: toeplitz, coefficients: [.inf, 1]}", "out-of-range", "matrix.coefficients[0]", 41),
    ("{kind: toeplitz, coefficients: [1, 2e9]}", "out-of-range", "matrix.coefficients[1]", 44),
    ("{kind: toeplitz, coefficients: [1, x, 0.5]}", "wrong-type", "matrix.coefficients[1]", 44),
    ("{kind: toeplitz, coefficients: [1, true]}", "wrong-type", "matrix.coefficients[1]", 44),
    ("{kind: dense, file: 3}", "wrong-type", "matrix.file", 29),
    ("{kind: dense, file: ''}", "out-of-range", "matrix.file", 29),
    ("{kind: dense, file: a.npy, bands: 3}", "unknown-key", "matrix.bands", 36),
    ("{kind: optimal-toeplitz, bands: {choose: []}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: 4}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [4, 8, 4]}}", "contradiction", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [4, 0]}}", "out-of-range", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [4, 2.5]}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [4, solve]}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [4, true]}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [{choose: [4]}]}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: {choose: [4]}}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {choose: [4], from: 3}}", "wrong-type", "matrix.bands", 41),
    ("{kind: optimal-toeplitz, bands: {chose: [4]}}", "wrong-type", "matrix.bands", 41),
    ("{kind: {choose: []}, bands: 4}", "wrong-type", "matrix.kind", 16),
    ("{kind: {choose: optimal-toeplitz}, bands: 4}", "wrong-type", "matrix.kind", 16),
    ("{kind: {choose: [optimal-toeplitz, identity]}, bands: 4}", "unknown-kind", "matrix.kind", 16),
    ("{kind: {choose: [optimal-toeplitz, [dense]]}, bands: 4}", "unknown-kind", "matrix.kind", 16),
    ("{kind: {choose: [optimal-toeplitz, optimal-toeplitz]}, bands: 4}", "contradiction", "matrix.kind", 16),
    ("{kind: {choose: {choose: [optimal-toeplitz]}}, bands: 4}", "wrong-type", "matrix.kind", 16),
    ("{kind: {choose: [optimal-toeplitz]}}", "missing-key", "matrix.bands", 9),
    ("{kind: {choose: [optimal-toeplitz]}, bands: 4, coefficients: [1]}", "unknown-key", "matrix.coefficients", 56),
]
FIELDS += [(15, f"matrix: {text}", slug, path, column) for text, slug, path, column in MATRICES]


@pytest.mark.parametrize("case", FIELDS)
def test_one_wrong_field(case: tuple[int, str, str, str, int], tmp_path: Path) -> None:
    line, text, slug, path, column = case
    expected = (slug, path, line + text.count("\n"), column)
    assert found(tmp_path, edited({line: text})) == [expected]


KEYS = [
    # the changed lines, then the key, its line and column, and the suggestion
    ({9: "  batch_size: 500"}, "training.batch_size", 9, 3, "expected_batch_size"),
    ({10: "  steps: 2000"}, "training.steps", 10, 3, "iterations"),
    ({10: "  num_steps: 2000"}, "training.num_steps", 10, 3, "iterations"),
    ({10: "  itterations: 2000"}, "training.itterations", 10, 3, "iterations"),
    ({10: "  Iterations: 2000"}, "training.Iterations", 10, 3, "iterations"),
    ({8: "  n: 50_000"}, "training.n", 8, 3, "dataset_size"),
    ({8: None, 9: "  q: 0.01"}, "training.q", 8, 3, "sampling_probability"),
    ({8: None, 9: "  sample_rate: 0.01"}, "training.sample_rate", 8, 3, "sampling_probability"),
    ({5: "  eps: 8"}, "privacy.eps", 5, 3, "epsilon"),
    ({15: "  k: 8"}, "noise.k", 15, 3, "privacy.group_size"),
    ({14: "  sigma: 8"}, "noise.sigma", 14, 3, "multiplier"),
    ({13: "noise_multiplier: 8", 14: None}, "noise_multiplier", 13, 1, "noise.multiplier"),
    ({12: "  type: poisson", 15: None}, "sampler.type", 12, 3, "kind"),
    ({6: None, 15: "delta: 1e-5"}, "delta", 14, 1, "privacy.delta"),
    ({13: "nois:", 14: "  multiplier: 1"}, "nois", 13, 1, "noise"),
    ({2: None, 15: "titel: x"}, "titel", 14, 1, None),
    ({15: "epochs: 3"}, "epochs", 15, 1, "training.epochs"),
    ({12: "  kind: b-min-sep\n  b: 3"}, "sampler.b", 13, 3, "min_separation"),
    ({12: "  kind: balls-in-bins\n  num_bins: 100"}, "sampler.num_bins", 13, 3, "bins"),
    ({12: "  kind: cyclic-poisson\n  q: 0.5", 9: "  # no rate"}, "sampler.q", 13, 3, "training.sampling_probability"),
    ({15: "matrix: {kind: optimal-toeplitz, num_bands: 3}"}, "matrix.num_bands", 15, 34, "bands"),
    ({15: "matrix: {kind: toeplitz, coefs: [1]}"}, "matrix.coefs", 15, 26, "coefficients"),
    ({15: "matrix: {kind: toeplitz, coefficients: [1], normalise: true}"}, "matrix.normalise", 15, 45, "normalize"),
    ({15: '"a b": 3'}, "['a b']", 15, 1, None),
    ({15: f"{'n' * 70}: 3"}, "n" * 70, 15, 1, None),
]


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
    ({12: "  kind: without-replacement"}, "fixed-size"),
    ({12: "  kind: deterministic"}, "none"),
    ({12: "  kind: xyz"}, None),
    ({12: "  kind: b_min_sep"}, "b-min-sep"),
    ({12: "  kind: bmin-sep"}, "b-min-sep"),
    ({12: "  kind: user-bminsep"}, "user-b-min-sep"),
    ({12: "  kind: bnb"}, "balls-in-bins"),
    ({12: "  kind: balls_and_bins"}, "balls-in-bins"),
    ({12: "  kind: cyclic"}, "cyclic-poisson"),
    ({12: "  kind: b-min-sep\n  start: wram"}, "warm"),
    ({15: "matrix: {kind: bsr, bands: 4}"}, "banded-square-root"),
    ({15: "matrix: {kind: banded-toeplitz, bands: 4}"}, "optimal-toeplitz"),
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


MISSING = [
    # the missing lines, then the missing keys and the place of the mapping that lacks them
    ({1: None}, [("pyaccount", 1, 1)]),
    ({2: None}, [("name", 1, 1)]),
    ({4: None, 6: None}, [("privacy.adjacency", 4, 3), ("privacy.delta", 4, 3)]),
    ({3: None, 4: None, 5: None, 6: None}, [("privacy", 1, 1)]),
    ({10: None}, [("training.iterations", 8, 3)]),
    ({12: "  {}"}, [("sampler.kind", 12, 3)]),
    ({13: None, 14: None}, [("noise", 1, 1)]),
    ({14: "  kind: gaussian"}, [("noise.multiplier", 14, 3)]),
    (dict.fromkeys(range(7, 15)), [("", 1, 1)]),
    ({**dict.fromkeys(range(2, 15)), 1: "{}"}, [("", 1, 1), ("name", 1, 1), ("privacy", 1, 1), ("pyaccount", 1, 1)]),
]


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
        f"{path}:6:10: privacy.delta = 1.5 [out-of-range]\n"
        "    must be greater than 0 and less than 1 (and not below 1e-280)"
    )
    assert second == (
        f"{path}:12:9: sampler.kind = 'poison' [unknown-kind]\n"
        "    no sampler of this kind exists: must be poisson, fixed-size, with-replacement, must-ow, must-wo, must-ww, "
        "b-min-sep, user-b-min-sep, balls-in-bins, cyclic-poisson or none\n"
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
