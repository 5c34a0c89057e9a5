"""The document with which the tests start, and ways to break it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.errors import DocumentError, Problem

BASE = """\
pyaccount: 1
name: cifar10
privacy:
  adjacency: zero-out
  epsilon: 8
  delta: 1e-5
training:
  dataset_size: 50_000
  expected_batch_size: 500
  iterations: 2000
sampler:
  kind: poisson
noise:
  multiplier: solve
"""

PHASED = """\
pyaccount: 1
name: two phases
privacy: {adjacency: add-remove, epsilon: solve, delta: 1e-6}
phases:
  - name: pretraining
    training: {sampling_probability: 0.01, iterations: 100}
    sampler: {kind: poisson}
    noise: {multiplier: 1.5}
  - training: {dataset_size: 1000, expected_batch_size: 10, iterations: 50}
    sampler: {kind: fixed-size}
    noise: {kind: gaussian, multiplier: 2}
    count: 3
accounting: {tolerance: 0.01, profile: [1, 2.5], time_limit: 10 min, seed: 7, method: pld}
"""

CHOOSING = """\
pyaccount: 1
name: choosing
privacy: {adjacency: zero-out, epsilon: 4, delta: 1e-6}
training: {dataset_size: 1000, participation_rate: 0.1, iterations: 100}
sampler: {kind: b-min-sep, min_separation: 8, start: cold}
matrix: {kind: {choose: [optimal-toeplitz, banded-square-root]}, bands: {choose: [4, 8]}, normalize: true}
noise: {multiplier: solve}
accounting: {method: monte-carlo, verification: betting, seed: 3}
"""

Found = tuple[str, str, int | None, int | None]


def edited(changes: Mapping[int, str | None], text: str = BASE) -> str:
    """Return the text with lines (from 1) replaced, or removed if the new line is None; line 0 is inserted at the top."""
    lines: list[str | None] = [changes.get(0), *text.splitlines()]
    for number, line in changes.items():
        while number >= len(lines):
            lines.append(None)
        lines[number] = line
    return "".join(f"{line}\n" for line in lines if line is not None)


def written(folder: Path, text: str | bytes, name: str = "document.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def load_text(folder: Path, text: str | bytes, overrides: Sequence[Any] = ()) -> Document:
    return load(written(folder, text), overrides=overrides)


def problems_of(source: Any, overrides: Sequence[Any] = ()) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as caught:
        load(source, overrides=overrides)
    assert str(caught.value)
    assert caught.value.exit_code == 2
    return caught.value.problems


def outcome(folder: Path, text: str | bytes) -> tuple[Problem, ...] | str:
    """Return the problems of a text, or that it is valid."""
    try:
        load_text(folder, text)
    except DocumentError as error:
        return error.problems
    return "valid"


def found(folder: Path, text: str | bytes, overrides: Sequence[Any] = ()) -> list[Found]:
    """Return the slug, path, line and column of every problem of a text, in order."""
    problems = problems_of(written(folder, text), overrides)
    return [(problem.slug, problem.path_text, problem.line, problem.column) for problem in problems]
