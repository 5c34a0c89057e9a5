"""Seeded mutations of documents: each gives a document or a `DocumentError`, and never anything else."""

import contextlib
import copy
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from document_samples import BASE, CHOOSING, PHASED, written

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.errors import SLUGS, DocumentError

JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 3, 10**30, -(10**30), 0.5, 1e-5, 1e308, float("nan"), float("inf"), "", " ", "solve",
    "poisson", "fixed-size", "none", "1e-5", "50_000", "10 min", "x" * 300, "a\nb", "ünï", "<<", "kind", [], {}, [[]],
    [1, 2], ["solve"], {"kind": "none"}, {"kind": ["none"]}, {"kind": None}, {"a": {"b": {"c": 1}}}, "2026-02-11",
    "b-min-sep", "balls-in-bins", "cyclic-poisson", "toeplitz", "dense", {"choose": [2, 4]}, {"choose": []}, {"choose": 4},
    {"choose": ["banded-square-root"]}, {"choose": [{"choose": [2]}]},
]  # fmt: skip
KEYS = ["kind", "multiplier", "iterations", "epsilon", "phases", "training", "sampler", "noise", "matrix", "name",
        "count", "privacy", "accounting", "steps", "batch_size", "sampling_probability", "participation_rate", "", "é",
        "max_participations", "<<", "0", "choose", "bands", "coefficients", "file", "min_separation", "bins",
        "partitions", "start", "normalize"]  # fmt: skip
TEXT = [*":-[]{}&*!|>'\"%@`#,?\n\t \\~<=_.0e1", "\n  ", ": ", "- ", "&a ", "*a", "!!str ", "\n---\n", "solve", "\ufeff"]


def containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in containers(item))]
    if isinstance(value, list):
        return [value, *(found for item in value for found in containers(item))]
    return []


def mutate(mapping: dict[str, Any], rng: random.Random) -> None:
    """Change one thing somewhere: drop, rename, replace, add, swap or copy a value."""
    spots = [(container, key) for container in containers(mapping) for key in _keys(container)]
    container, key = rng.choice(spots) if spots else (mapping, "name")
    action = rng.randrange(6)
    if action == 0:
        container.pop(key, None) if isinstance(container, dict) else container.pop(key)
    elif action == 1 and isinstance(container, dict):
        container[rng.choice(KEYS)] = container.pop(key, 1)
    elif action == 2 and spots:
        other, other_key = rng.choice(spots)
        container[key] = copy.deepcopy(other[other_key]) if other_key in _keys(other) else None
    elif action == 3 and isinstance(container, list):
        container.insert(int(key), rng.choice(JUNK))
    elif action in (3, 4):
        mapping_or_item = container if isinstance(container, dict) else mapping
        mapping_or_item[rng.choice(KEYS)] = copy.deepcopy(rng.choice(JUNK))
    else:
        container[key] = copy.deepcopy(rng.choice(JUNK))


def as_yaml(mapping: dict[str, Any]) -> str:
    """The mapping as JSON, which is YAML but for the numbers that JSON does not have."""
    text = json.dumps(mapping, ensure_ascii=False, indent=1)
    return text.replace("NaN", ".nan").replace("Infinity", ".inf")


def _keys(container: Any) -> list[Any]:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def garble(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(["", rng.choice(TEXT)]) + text[at + rng.randrange(3) :]
    return text


def outcome(source: Any, overrides: Sequence[str] = ()) -> Document | DocumentError:
    result: Document | DocumentError
    try:
        result = load(source, overrides=overrides)
    except DocumentError as error:
        result = error
    if isinstance(result, DocumentError):
        assert result.problems
        assert result.to_json()
        for problem in result.problems:
            assert problem.slug in SLUGS
            assert problem.message
            assert problem.render()
    else:
        candidates: list[Document] = []
        # Only choices can leave nothing to choose from.
        with contextlib.suppress(*[DocumentError] * bool(result.choices)):
            candidates = result.candidates()
            assert candidates
        assert not any(candidate.choices for candidate in candidates)
    return result


@pytest.mark.parametrize("base", [BASE, PHASED, CHOOSING], ids=["base", "phased", "choosing"])
@pytest.mark.parametrize("seed", range(10))
def test_mutated_mappings(seed: int, base: str, tmp_path: Path) -> None:
    rng, whole = random.Random(seed), yaml.safe_load(base)
    for _ in range(30):
        mapping = copy.deepcopy(whole)
        for _ in range(rng.choice([1, 1, 2, 3, 6])):
            mutate(mapping, rng)
        direct = outcome(mapping)
        path = written(tmp_path, as_yaml(mapping))
        from_text = outcome(path)
        if isinstance(direct, Document):
            assert direct == from_text
            assert load(direct.to_mapping()) == direct
        elif isinstance(from_text, DocumentError):
            # The same problems, wherever the document comes from; only their order follows the text.
            assert sorted((it.slug, it.path_text) for it in direct.problems) == sorted(
                (it.slug, it.path_text) for it in from_text.problems
            )


@pytest.mark.parametrize("seed", range(20))
def test_random_overrides(seed: int) -> None:
    rng = random.Random(seed)
    base = load(yaml.safe_load(PHASED))
    for _ in range(10):
        path = ".".join(rng.choice([*KEYS, "0", "1", "[0]", "phases.0"]) for _ in range(rng.randint(1, 4)))
        value = rng.choice([str(rng.choice(JUNK)), garble("[1, {a: b}]", rng)])
        outcome(base, [f"{path}={value}"])
