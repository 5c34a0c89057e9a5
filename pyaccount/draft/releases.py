"""What else may be released of the same data, and the phases of a document that describe it.

Each kind of release is one phase at most, named by its word. Tuning is different: the training run itself is run a random
number of times, so it becomes the inner phase of a selection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyaccount.errors import Path

#: The answer that nothing else is released.
NONE = "nothing"
#: What else may be released, each with a description. A word is the name of its phase, too.
RELEASES = {
    "selection": "candidates chosen by a noisy score, such as the words of a vocabulary",
    "tuning": "tuning: a random number of runs like this one, of which only the best is released",
    "counts": "counts, a histogram or other numbers with noise of their own",
    "stated": "anything of which only ε and δ are known, such as a vendor's model",
}
#: The noise of counts, and the selections, by their kinds in documents.
COUNT_NOISES = {
    "laplace": "Laplace noise",
    "discrete-laplace": "integers with discrete Laplace noise",
    "discrete-gaussian": "integers with discrete Gaussian noise",
    "gaussian": "Gaussian noise",
}
SELECTIONS = {
    "exponential": "the exponential mechanism, or the largest score with Gumbel noise",
    "permute-and-flip": "permute-and-flip, or the largest score with exponential noise",
    "report-noisy-max": "the largest score with Laplace noise",
}
SCORES = {
    "noisy": "it is computed from the private data, and released with Laplace noise",
    "public": "it is computed only from public data and from what the run releases",
}
#: The keys that describe a training run.
_TRAINING = ("training", "sampler", "matrix", "noise")


def released(answers: Mapping[str, str]) -> list[str]:
    """Return what else is released, in the order of the phases; empty if the document has no phases."""
    words = answers.get("also", NONE).split(", ")
    return [word for word in RELEASES if word in words]


def release_questions(answers: Mapping[str, str]) -> set[str]:
    """Return the names of the questions about what else is released."""
    names = set()
    for word in released(answers):
        if word == "counts":
            noise = answers.get("counts_noise", "laplace")
            names |= {"counts_noise", "counts_sigma" if noise.endswith("gaussian") else "counts_scale"}
            names.add("counts_change" if noise == "gaussian" else "counts_moved")
        elif word == "selection":
            names |= {"selection_kind", "selection_epsilon", "selection_count"}
        elif word == "stated":
            names |= {"stated_epsilon", "stated_delta"}
        else:
            names |= {"tuning_stopping_probability", "tuning_score"}
            if answers.get("tuning_score") == "noisy":
                names.add("tuning_score_scale")
    return names


def misplaced(name: str, answers: Mapping[str, str]) -> str | None:
    """Return why an answer about a release has no place beside the other answers; None if it has one, or may get one."""
    word = name.partition("_")[0]
    if "also" not in answers or name in release_questions(answers):
        return None
    if word not in released(answers):
        return f"--also does not name {word}; add it there, or leave this option out"
    if word == "counts" and "counts_noise" in answers:
        return f"{answers['counts_noise']} noise has no such value; choose another --counts-noise, or leave this option out"
    if answers.get("tuning_score") == "public":
        return "a public score has no noise; choose --tuning-score noisy, or leave this option out"
    return None


def with_phases(mapping: dict[str, Any], answers: Mapping[str, str]) -> dict[str, Any]:
    """Return a document with phases, from the mapping of a training run in which each release has its word as a key.

    Without other releases the mapping is returned as it is.
    """
    words = released(answers)
    if not words:
        return mapping
    training = {"name": "training", **{key: mapping[key] for key in _TRAINING if key in mapping}}
    phases: list[dict[str, Any]] = [training]
    if "tuning" in words:
        inner = [training, *([{"name": "score", **mapping["score"]}] if "score" in mapping else [])]
        phases = [{"name": "tuning", **mapping["tuning"], "phases": inner}]
    given: dict[str, dict[str, Any]] = {word: {"name": word, **mapping[word]} for word in words if word != "tuning"}
    before = [given.pop("selection")] if "selection" in given else []
    kept = {key: value for key, value in mapping.items() if key not in (*_TRAINING, *RELEASES, "score")}
    return {**kept, "phases": [*before, *phases, *given.values()]}


def fixed_parts(answers: Mapping[str, str]) -> dict[Path, str]:
    """Return the values of the phases that no question asks for, by their path in the mapping of `with_phases`."""
    fixed: dict[str, dict[Path, str]] = {
        "stated": {("stated", "mechanism", "kind"): "stated"},
        "tuning": {("tuning", "select", "kind"): "geometric"},
    }
    parts = {path: value for word in released(answers) for path, value in fixed.get(word, {}).items()}
    if "tuning" in released(answers) and answers.get("tuning_score") == "noisy":
        parts["score", "mechanism", "kind"] = "laplace"
    return parts


def path_in_run(path: Path, document: Mapping[str, Any]) -> Path:
    """Return the path of a question for a path in the document that `with_phases` returned.

    The keys of the training run have no phase in it; those of other releases begin with the name of their phase.
    """
    inside: Any = document
    name = ""
    while path[:1] == ("phases",) and len(path) > 1:
        inside = inside["phases"][path[1]]
        name, path = inside["name"], path[2:]
    return path if name in ("", "training") else (name, *path)
