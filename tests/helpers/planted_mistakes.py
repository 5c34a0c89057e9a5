"""Training scripts with a mistake that people make, each with a twin without it.

A script is `HEAD`, what is before its loop, and one round of its loop. The line where a probe is to find something ends with
`# here`.
"""

from pathlib import Path
from typing import NamedTuple

HEAD = '''\
import sys

import numpy as np

import pyaccount

document = {
    "pyaccount": 1,
    "name": "planted",
    "privacy": {"adjacency": "add-remove", "epsilon": 60, "delta": 1e-5},
    "training": {"dataset_size": 120, "expected_batch_size": 24, "iterations": 12},
    "sampler": {"kind": "poisson"},
    "noise": {"multiplier": 2.0},
}
generator = np.random.default_rng(1)
features = generator.normal(size=(120, 4))
labels = features @ [1.0, -2.0, 0.5, 0.0] > 0.0
words = generator.integers(0, 6, size=120)
weights, rate, momentum = np.zeros(4), 0.5, 0.0


def slopes(rows):
    """The gradients of a logistic regression, one for each record."""
    return rows * (1.0 / (1.0 + np.exp(-np.clip(rows @ weights, -30.0, 30.0))) - labels[batch])[:, None]


def clipped(rows, norm=None):
    """The same rows, none of which is longer than the clip norm."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True) if norm is None else norm
    return rows / np.maximum(1.0, norms / run.clip_norm)


def losses():
    """The loss of each record of the batch."""
    return np.logaddexp(0.0, np.where(labels[batch], -1.0, 1.0) * (features[batch] @ weights))


run = pyaccount.TrainingRun(document, sys.argv[1], records=120, clip_norm=0.5, uncertified=True)
'''

LOOP = """
with run:
    while run.round < run.rounds:
        with run.step() as step:
"""
BATCH = "batch = step.batch.indices\n"


class Planted(NamedTuple):
    """The kind of what a probe finds, a round with a mistake and one without, and what is before the loop in both."""

    kind: str
    wrong: str
    right: str
    before: str = ""

    def write(self, path: Path, *, wrong: bool) -> int | None:
        """Write one of the scripts, and return the number of the line that is marked."""
        body = self.wrong if wrong else self.right
        body = body if body.startswith("batch =") else BATCH + body.strip("\n")
        indented = "".join(f"            {line}\n" for line in body.strip("\n").split("\n"))
        # What is after the step is not indented as deep.
        text = HEAD + self.before + LOOP + indented.replace("            AFTER ", "        ")
        path.write_text(text, encoding="utf-8")
        return next((k for k, line in enumerate(text.split("\n"), 1) if line.endswith("# here")), None)


RELEASE = "mean = step.release(clipped(slopes(features[batch])).sum(axis=0))\n"
UPDATE = "AFTER weights -= rate * mean\n"
RIGHT = RELEASE + UPDATE

PLANTED = {
    "batch normalisation": Planted(
        "mixing",
        """
rows = features[batch]
rows = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-3) if len(rows) else rows
mean = step.release(clipped(slopes(rows)).sum(axis=0))  # here
"""
        + UPDATE,
        "mean = step.release(clipped(slopes(features[batch] / 2.0)).sum(axis=0))\n" + UPDATE,
    ),
    "the mean of a micro-batch is clipped": Planted(
        "mixing",
        """
total, each = np.zeros(4), slopes(features[batch])
for start in range(0, len(batch), 8):
    total += clipped(each[start : start + 8].mean(axis=0, keepdims=True)).sum(axis=0)
mean = step.release(total)  # here
"""
        + UPDATE,
        """
total, each = np.zeros(4), slopes(features[batch])
for start in range(0, len(batch), 8):
    total += clipped(each[start : start + 8]).sum(axis=0)
mean = step.release(total)
"""
        + UPDATE,
    ),
    "heads are clipped before they are added": Planted(
        "sensitivity",
        """
heads = [slopes(features[batch]), slopes(2.0 * features[batch])]
mean = step.release(sum(clipped(head).sum(axis=0) for head in heads))  # here
"""
        + UPDATE,
        """
heads = [slopes(features[batch]), slopes(2.0 * features[batch])]
mean = step.release(clipped(sum(heads)).sum(axis=0))
"""
        + UPDATE,
    ),
    "each layer is clipped to the whole norm": Planted(
        "sensitivity",
        """
first, second = slopes(features[batch]), slopes(features[batch])[:, :2]
sums = {"first": clipped(first).sum(axis=0), "second": clipped(second).sum(axis=0)}
mean = step.release(sums)["first"]  # here
"""
        + UPDATE,
        """
first, second = slopes(features[batch]), slopes(features[batch])[:, :2]
norm = np.linalg.norm(np.hstack([first, second]), axis=1, keepdims=True)
sums = {"first": clipped(first, norm).sum(axis=0), "second": clipped(second, norm).sum(axis=0)}
mean = step.release(sums)["first"]
"""
        + UPDATE,
    ),
    "embeddings are not clipped": Planted(
        "sensitivity",
        """
each, rows = slopes(features[batch]), np.zeros((6, 4))
np.add.at(rows, words[batch], 3.0 * each)
mean = step.release({"head": clipped(each).sum(axis=0), "words": rows})["head"]  # here
"""
        + UPDATE,
        """
each, rows = slopes(features[batch]), np.zeros((6, 4))
norm = 10.0**0.5 * np.linalg.norm(each, axis=1, keepdims=True)
np.add.at(rows, words[batch], clipped(3.0 * each, norm))
mean = step.release({"head": clipped(each, norm).sum(axis=0), "words": rows})["head"]
"""
        + UPDATE,
    ),
    "the normaliser follows the size of the data": Planted(
        "step-size",
        RELEASE + "AFTER weights -= rate * mean * run.normaliser() / int(len(features) * 0.2)  # here\n",
        RELEASE + "AFTER weights -= rate * mean * run.normaliser() / 20\n",
    ),
    "the normaliser is the size of the batch": Planted(
        "step-size", RELEASE + "AFTER weights -= rate * mean * run.normaliser() / max(len(batch), 1)  # here\n", RIGHT
    ),
    "training stops by its own loss": Planted(
        "control-flow",
        RELEASE + UPDATE + "AFTER if losses().max(initial=0.0) > 10.0:\nAFTER     break  # here\n",
        RELEASE + UPDATE + "AFTER if np.linalg.norm(weights) > 100.0:\nAFTER     break\n",
    ),
    "the best loss so far is kept": Planted(
        "state",
        RELEASE + UPDATE + "AFTER best = min(best, losses().sum())  # here\n",
        RELEASE + UPDATE + "AFTER best = min(best, np.linalg.norm(weights))\n",
        before="best = float('inf')\n",
    ),
    "the learning rate follows the training loss": Planted(
        "step-size",
        RELEASE + "AFTER rate = 0.5 if losses().sum() > 17.0 else 0.4\nAFTER weights -= rate * mean  # here\n",
        RELEASE + "AFTER rate = 0.5 if run.round < 6 else 0.4\nAFTER weights -= rate * mean\n",
    ),
    "the training loss is logged": Planted(
        "output",
        RIGHT + "AFTER print(f'loss {losses().sum():.3f}')  # here\n",
        RIGHT + "AFTER print(f'length {np.linalg.norm(weights):.3f}')\n",
    ),
    "momentum has raw gradients": Planted(
        "state",
        RELEASE + "AFTER momentum = 0.9 * momentum + slopes(features[batch]).sum(axis=0)  # here\n"
        "AFTER weights -= rate * (mean + 0.01 * momentum)\n",
        RELEASE + "AFTER momentum = 0.9 * momentum + mean\nAFTER weights -= rate * momentum\n",
    ),
    "a running mean of features": Planted(
        "state",
        "center = 0.9 * center + 0.1 * features[batch].sum(axis=0)  # here\n"
        "mean = step.release(clipped(slopes(features[batch] - center)).sum(axis=0))\n" + UPDATE,
        "center = 0.9 * center + 0.1 * weights\n"
        "mean = step.release(clipped(slopes(features[batch] - center)).sum(axis=0))\n" + UPDATE,
        before="center = np.zeros(4)\n",
    ),
    "gradients are scaled by the longest": Planted(
        "mixing",
        """
each = slopes(features[batch])
longest = np.linalg.norm(each, axis=1).max(initial=1e-9)
mean = step.release((each * run.clip_norm / longest).sum(axis=0))  # here
"""
        + UPDATE,
        RIGHT,
    ),
    "noise is scaled by the data": Planted(
        "sensitivity",
        """
each = slopes(features[batch])
noise = 20.0 * np.abs(each).sum() * np.random.default_rng(step.round).normal(size=4)
mean = step.release(clipped(each).sum(axis=0) + noise)  # here
"""
        + UPDATE,
        """
noise = 20.0 * np.random.default_rng(step.round).normal(size=4)
mean = step.release(clipped(slopes(features[batch])).sum(axis=0) + noise)
"""
        + UPDATE,
    ),
    "records with a large loss are left out": Planted(
        "mixing",
        """
kept = losses() <= np.median(losses()) if len(batch) else slice(0)
mean = step.release(clipped(slopes(features[batch]))[kept].sum(axis=0))  # here
"""
        + UPDATE,
        """
kept = losses() <= 0.7
mean = step.release(clipped(slopes(features[batch]))[kept].sum(axis=0))
"""
        + UPDATE,
    ),
    "batches of its own": Planted(
        "batch",
        "batch = np.random.default_rng(step.round).choice(120, size=24, replace=False)\n"
        "mean = step.release(clipped(slopes(features[batch])).sum(axis=0))  # here\n" + UPDATE,
        RIGHT,
    ),
    "data prepared inside of the loop": Planted(
        "mixing",
        """
scale = np.abs(features).max()
mean = step.release(clipped(slopes(features[batch] / scale)).sum(axis=0))  # here
"""
        + UPDATE,
        """
mean = step.release(clipped(slopes(features[batch] / 4.0)).sum(axis=0))
"""
        + UPDATE,
    ),
}
