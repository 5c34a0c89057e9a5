"""The page of all combinations: sampler, adjacency, group, matrix and mechanism, each with its theorem or the reason why not.

`python .ci/site/cells.py docs/reference/cells.md` writes it. A small document is compiled for each cell, and nothing is computed.
A test compares the file with the generated page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyaccount

ADJACENCIES = ("add-remove", "zero-out", "replace-one")
#: The group sizes of the columns.
GROUPS = (1, 3)
ROUNDS, RECORDS, BATCH = 64, 4000, 40
TRAINING = {"dataset_size": RECORDS, "expected_batch_size": BATCH, "iterations": ROUNDS}
#: Rows: the sampler, and what stands in place of the usual training section.
SAMPLERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "`poisson`": ({"kind": "poisson"}, {}),
    "`poisson`, two draws an iteration": ({"kind": "poisson", "draws_per_iteration": 2}, {}),
    "`poisson`, truncated": ({"kind": "poisson", "truncate_to": 100}, {}),
    "`fixed-size`": ({"kind": "fixed-size"}, {}),
    "`with-replacement`": ({"kind": "with-replacement"}, {}),
    "`must-ow`": ({"kind": "must-ow", "subset_size": 100}, {}),
    "`must-wo`": ({"kind": "must-wo", "subset_size": 100}, {}),
    "`must-ww`": ({"kind": "must-ww", "subset_size": 100}, {}),
    "`random-allocation`, once": (
        {"kind": "random-allocation", "iterations_per_allocation": 16},
        {"expected_batch_size": RECORDS // 16},
    ),
    "`random-allocation`, twice": (
        {"kind": "random-allocation", "iterations_per_allocation": 16, "participations": 2},
        {"expected_batch_size": RECORDS // 8},
    ),
    "`balls-in-bins`": ({"kind": "balls-in-bins", "bins": 16}, {"expected_batch_size": RECORDS // 16}),
    "`balls-in-bins`, truncated": (
        {"kind": "balls-in-bins", "bins": 16, "truncate_to": 400},
        {"expected_batch_size": RECORDS // 16},
    ),
    "`b-min-sep`": ({"kind": "b-min-sep", "min_separation": 4}, {}),
    "`b-min-sep`, truncated": ({"kind": "b-min-sep", "min_separation": 4, "truncate_to": 100}, {}),
    "`user-b-min-sep`, single": (
        {"kind": "user-b-min-sep", "min_separation": 4, "records_per_user": 3, "attribution": "single"},
        {"expected_batch_size": None, "sampling_probability": 0.01},
    ),
    "`user-b-min-sep`, shared": (
        {"kind": "user-b-min-sep", "min_separation": 4, "records_per_user": 3, "attribution": "shared"},
        {"expected_batch_size": None, "sampling_probability": 0.01},
    ),
    "`cyclic-poisson`": ({"kind": "cyclic-poisson", "partitions": 4}, {}),
    "`cyclic-poisson`, random phase": ({"kind": "cyclic-poisson", "partitions": 4, "phase": "random"}, {}),
    "`none`": ({"kind": "none"}, {}),
    "`none`, four participations": ({"kind": "none", "max_participations": 4, "min_separation": 4}, {}),
}
#: Tables of training runs: the title, what it is about, and the sections of the document beside the sampler.
RUNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Independent noise", "Gaussian noise that is drawn anew in each round: DP-SGD.", {}),
    (
        "Correlated noise, few bands",
        "A matrix with four bands, as many as the separation of the samplers that have one.",
        {"matrix": {"kind": "banded-square-root", "bands": 4}},
    ),
    (
        "Correlated noise, any matrix",
        "A lower triangular matrix without zeros: more bands than the separation.",
        {"matrix": {"kind": "blt", "scales": [0.2], "decays": [0.9]}},
    ),
    ("A tree", "The binary tree of DP-FTRL, which has more rows than rounds.", {"matrix": {"kind": "tree"}}),
    ("Laplace noise", "Numbers with Laplace noise.", {"noise": {"kind": "laplace", "multiplier": 2.0}}),
)
MECHANISMS: dict[str, dict[str, Any]] = {
    "`stated`, (ε, δ)": {"kind": "stated", "epsilon": 0.5, "delta": 1e-7},
    "`stated`, several": {
        "kind": "stated",
        "guarantees": [{"epsilon": 0.5, "delta": 1e-7}, {"epsilon": 1, "delta": 1e-9}],
    },
    "`stated`, μ": {"kind": "stated", "mu": 0.5},
    "`stated`, ρ": {"kind": "stated", "rho": 0.1},
    "`gaussian`": {"kind": "gaussian", "sigma": 2},
    "`mixture-of-gaussians`": {
        "kind": "mixture-of-gaussians",
        "sigma": 2,
        "sensitivities": [0, 1],
        "probabilities": [0.5, 0.5],
    },
    "`laplace`": {"kind": "laplace", "scale": 2},
    "`discrete-gaussian`": {"kind": "discrete-gaussian", "sigma": 4},
    "`discrete-laplace`": {"kind": "discrete-laplace", "scale": 2},
    "`skellam`": {"kind": "skellam", "variance": 4},
    "`distributed-discrete-gaussian`": {"kind": "distributed-discrete-gaussian", "sigma": 1, "parties": 4},
    "`randomized-response`": {"kind": "randomized-response", "values": 3, "truth_probability": 0.6},
    "`randomized-response`, empty records answer": {
        "kind": "randomized-response",
        "values": 3,
        "truth_probability": 0.6,
        "empty_record": "uniform",
    },
    "`randomized-response`, once": {
        "kind": "randomized-response",
        "values": 3,
        "truth_probability": 0.6,
        "answers": "once",
    },
    "`exponential`": {"kind": "exponential", "epsilon": 0.5},
    "`permute-and-flip`": {"kind": "permute-and-flip", "epsilon": 0.5},
    "`report-noisy-max`": {"kind": "report-noisy-max", "noise": "exponential", "epsilon": 0.5},
    "`partition-selection`": {
        "kind": "partition-selection",
        "strategy": "laplace",
        "max_partitions": 2,
        "scale": 2,
        "delta": 1e-8,
    },
}
#: How mechanisms are run: the title, what it is about, and the phase around a mechanism.
AROUND: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("On all records", "Two runs of each mechanism.", {"count": 2}),
    (
        "On a sample of records",
        "Two runs, each on a Poisson sample of its own; a record that is not drawn leaves no trace.",
        {"count": 2, "sampler": {"kind": "poisson", "sampling_probability": 0.1}},
    ),
    (
        "On a sample of clients",
        "Two runs, each on a Poisson sample of clients; a record of one of them is protected.",
        {"count": 2, "sampler": {"kind": "poisson", "sampling_probability": 0.1, "draws": "clients"}},
    ),
    (
        "The best of a random number of runs",
        "A geometric number of runs, of which the best one is released.",
        {"select": {"kind": "geometric", "stopping_probability": 0.5}},
    ),
)


#: The most names in a row.
MOST_NAMES = 8


class Notes:
    """Sentences by their numbers, in the order in which they are first needed."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self.numbers: dict[str, str] = {}

    def number(self, text: str) -> str:
        """The number of a sentence."""
        return self.numbers.setdefault(text, f"{self._letter}{len(self.numbers) + 1}")

    def lines(self) -> Iterator[str]:
        """The sentences as rows of a table."""
        yield from ("", "| number | text |", "| --- | --- |")
        for text, number in self.numbers.items():
            yield f"| {number} | {text} |"


THEOREMS, REASONS = "Theorems", "Reasons"


class Cells:
    """The cells of all tables, and what they refer to."""

    def __init__(self) -> None:
        self.theorems, self.reasons = Notes("T"), Notes("R")

    def cell(self, document: Mapping[str, Any], known: str = "") -> str:
        """The word of a cell, with the number of its theorem or reason; `known` is the source that a table leaves out."""
        try:
            plan = pyaccount.compile(document)
        except pyaccount.DocumentError as error:
            reason = error.problems[0].message
            kind = document.get("sampler", {}).get("kind", "")
            # One reason may be about several samplers.
            reason = re.sub(rf"\b{kind} sampling\b", "this sampling", reason) if kind else reason
            return f"– {self.reasons.number(reason)}"
        (reduction,) = plan.reductions
        word = ("exact" if reduction.tight else "bound") + (", sampled" if plan.sampled else "")
        source = reduction.source.removeprefix(known).removeprefix("; ")
        theorem = reduction.theorem if not known else "the bound on one run, and"
        return f"{word} {self.theorems.number(f'{theorem}: {source}' if not known else f'{theorem} {source}')}"


def _privacy(adjacency: str, group: int) -> dict[str, Any]:
    return {"adjacency": adjacency, "epsilon": "solve", "delta": 1e-6, "group_size": group}


def _columns() -> list[tuple[str, int]]:
    return [(adjacency, group) for adjacency in ADJACENCIES for group in GROUPS]


def _table(first: str, rows: Mapping[str, list[str]]) -> Iterator[str]:
    """A table whose rows with equal cells are one row."""
    titles = [f"{adjacency}, {group}" for adjacency, group in _columns()]
    yield from ("", f"| {first} | {' | '.join(titles)} |", "| --- |" + " --- |" * len(titles))
    equal: dict[str, list[str]] = {}
    for name, cells in rows.items():
        equal.setdefault(" | ".join(cells), []).append(name)
    equal = dict(sorted(equal.items(), key=lambda one: len(one[1]) > MOST_NAMES))
    for cells, names in equal.items():
        # Long lists are those of what is not supported, which come last.
        others = len(names) > MOST_NAMES and cells == [*equal][-1]
        yield f"| {'all others' if others else '; '.join(names)} | {cells} |"


def _run(name: str, sections: Mapping[str, Any], adjacency: str, group: int) -> dict[str, Any]:
    sampler, instead = SAMPLERS[name]
    training = {key: value for key, value in (TRAINING | instead).items() if value is not None}
    return {
        "pyaccount": 1,
        "name": "cell",
        "privacy": _privacy(adjacency, group),
        "training": training,
        "sampler": sampler,
        "noise": {"multiplier": 1.0},
        **sections,
    }


def _mechanism(name: str, around: Mapping[str, Any], adjacency: str, group: int) -> dict[str, Any]:
    one = {"mechanism": MECHANISMS[name]}
    phase = {"phases": [one], **around} if "select" in around else {**one, **around}
    return {"pyaccount": 1, "name": "cell", "privacy": _privacy(adjacency, group), "phases": [phase]}


def _base_source(name: str, adjacency: str, group: int) -> str:
    """The source of the bound on one run."""
    try:
        return pyaccount.compile(_mechanism(name, {}, adjacency, group)).reductions[0].source
    except pyaccount.DocumentError:
        return ""


OPENING = f"""# What is certified, and how

<!-- Generated by `make reference` from the plans: edit those. -->

For whoever asks: *is my combination covered?* Each cell is a small document that was compiled, so that the table says what
`pyaccount plan` says. Columns are the adjacency and `group_size`; where it is 3, the guarantee is for three records together.

- **exact**: two data sets attain the bound, so that both ends of the certificate's interval agree up to its tolerance.
- **bound**: the upper end is proven for all data sets; the lower end is that of a concrete case, and how far they are apart shows
  how loose the bound can be.
- **sampled**: the privacy loss of the whole run is sampled, and a statistical test certifies the claim
  ([sampling.md](../sampling.md)). Without this word it is computed.
- **–**: not supported, for the reason with this number.

T numbers are [theorems](#{THEOREMS.lower()}), R numbers [reasons](#{REASONS.lower()}). How they
compose as phases of one document is on the page on [composition](../composition.md), and the keys of documents are on
[the reference page](documents.md)."""


def page() -> str:
    """The page as Markdown."""
    cells, lines = Cells(), [OPENING, "", "## Training runs"]
    lines += [
        "",
        f"{ROUNDS} rounds of about {BATCH} out of {RECORDS} records; [samplers.md](../samplers.md) explains the samplers.",
    ]
    for title, about, sections in RUNS:
        rows = {name: [cells.cell(_run(name, sections, *column)) for column in _columns()] for name in SAMPLERS}
        lines += ["", f"### {title}", "", about, *_table("sampler", rows)]
    lines += ["", "## Mechanisms", "", "They are explained in [mechanisms.md](../mechanisms.md)."]
    for title, about, around in AROUND:
        # The sources of samples and selections begin with those of one run.
        known = {"sampler", "select"} & {*around}
        rows = {
            name: [
                cells.cell(_mechanism(name, around, *column), _base_source(name, *column) if known else "")
                for column in _columns()
            ]
            for name in MECHANISMS
        }
        lines += ["", f"### {title}", "", about, *_table("mechanism", rows)]
    lines += ["", f"## {THEOREMS}", *cells.theorems.lines(), "", f"## {REASONS}", *cells.reasons.lines()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference/cells.md").write_text(page(), encoding="utf-8")
