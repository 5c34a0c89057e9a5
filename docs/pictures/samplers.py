"""The pictures of docs/samplers.md: which record takes part in which round, drawn from each sampler's definition.

    python docs/pictures/samplers.py [FOLDER]

Each picture is simulated from a small document, read by pyaccount itself, so that rates, bins and separations are those that
would be accounted for. The stream of random numbers is fixed; a test compares the files with what is drawn here.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyaccount

RECORDS, ROUNDS, SEED = 24, 48, 20261121

#: What a cell of the raster shows: how often a record is drawn, that it could not be drawn, that it was drawn and dropped.
Raster = list[list[int]]
OUT, DROPPED = -1, -2

#: The sampling sections of the small documents.
SAMPLERS: dict[str, dict[str, Any]] = {
    "poisson": {"sampler": {"kind": "poisson"}, "training": {"expected_batch_size": 3}},
    "truncated": {"sampler": {"kind": "poisson", "truncate_to": 3}, "training": {"expected_batch_size": 3}},
    "fixed-size": {"sampler": {"kind": "fixed-size"}, "training": {"expected_batch_size": 3}},
    "with-replacement": {"sampler": {"kind": "with-replacement"}, "training": {"expected_batch_size": 4}},
    "must-ow": {"sampler": {"kind": "must-ow", "subset_size": 6}, "training": {"expected_batch_size": 4}},
    "must-wo": {"sampler": {"kind": "must-wo", "subset_size": 6}, "training": {"expected_batch_size": 4}},
    "must-ww": {"sampler": {"kind": "must-ww", "subset_size": 6}, "training": {"expected_batch_size": 4}},
    "b-min-sep": {"sampler": {"kind": "b-min-sep", "min_separation": 6}, "training": {"expected_batch_size": 3}},
    "user-b-min-sep": {
        "sampler": {"kind": "user-b-min-sep", "records_per_user": 3, "attribution": "single", "min_separation": 6},
        "training": {"sampling_probability": 0.1},
    },
    "random-allocation": {
        "sampler": {"kind": "random-allocation", "iterations_per_allocation": 12, "participations": 2},
        "training": {},
    },
    "balls-in-bins": {"sampler": {"kind": "balls-in-bins", "bins": 8}, "training": {}},
    "cyclic-poisson": {"sampler": {"kind": "cyclic-poisson", "partitions": 4}, "training": {"expected_batch_size": 2}},
    "shuffled": {
        "sampler": {"kind": "none", "max_participations": 6},
        "training": {"expected_batch_size": 3, "epochs": 6},
    },
    "none": {"sampler": {"kind": "none", "max_participations": 6, "min_separation": 8}, "training": {}},
}


def document(name: str) -> pyaccount.Document:
    """The small document behind a picture."""
    sections = SAMPLERS[name]
    size = {} if name == "user-b-min-sep" else {"dataset_size": RECORDS}
    return pyaccount.load(
        {
            "pyaccount": 1,
            "name": name,
            "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-3},
            "training": {**size, **sections["training"], "iterations": ROUNDS},
            "sampler": sections["sampler"],
            "noise": {"multiplier": 1},
        }
    )


def empty() -> Raster:
    return [[0] * ROUNDS for _ in range(RECORDS)]


def below(rng: random.Random, count: int) -> int:
    """A uniform number from 0 to count − 1; `random()` alone has a stream that no version of Python changes."""
    return int(rng.random() * count)


def some(rng: random.Random, items: list[int], count: int) -> list[int]:
    """So many of the items, uniformly without replacement."""
    return [items[place] for _, place in sorted((rng.random(), place) for place in range(len(items)))[:count]]


def poisson(body: Any, rng: random.Random) -> Raster:
    raster, p, most = empty(), body.sampling_probability(), body.sampler.truncate_to
    for t in range(ROUNDS):
        batch = [i for i in range(RECORDS) if rng.random() < p]
        kept = batch if most is None else some(rng, batch, most)
        for i in batch:
            raster[i][t] = 1 if i in kept else DROPPED
    return raster


def fixed_draws(body: Any, rng: random.Random) -> Raster:
    """One stage or two; of two, records that are in the subset but not in the batch are shown as waiting."""
    raster, m, kind = empty(), body.batch_size(), body.sampler.kind
    for t in range(ROUNDS):
        everyone = list(range(RECORDS))
        if kind == "fixed-size":
            subset, batch = everyone, some(rng, everyone, m)
        elif kind == "with-replacement":
            subset, batch = everyone, [below(rng, RECORDS) for _ in range(m)]
        else:
            b = body.sampler.subset_size
            subset = some(rng, everyone, b) if kind == "must-ow" else [below(rng, RECORDS) for _ in range(b)]
            batch = some(rng, subset, m) if kind == "must-wo" else [subset[below(rng, b)] for _ in range(m)]
            for i in subset:
                raster[i][t] = OUT
        for i in set(batch):
            raster[i][t] = batch.count(i)
    return raster


def b_min_sep(body: Any, rng: random.Random) -> Raster:
    """Every record for itself, or all records of a user together."""
    raster, p, b = empty(), body.sampling_probability(), body.separation()
    assert b is not None
    together = getattr(body.sampler, "records_per_user", 1)
    joins = 1.0 - (1.0 - p) ** together
    rate = 1.0 / (b - 1.0 + 1.0 / joins)
    for first in range(0, RECORDS, together):
        # Warm: in its stationary state a user sits out r more rounds with probability `rate`, for each r from 1 to b − 1.
        place = rng.random()
        wait = int(place / rate) + 1 if place < (b - 1) * rate else 0
        for t in range(ROUNDS):
            drawn = [wait == 0 and rng.random() < p for _ in range(together)]
            for i, is_drawn in enumerate(drawn):
                raster[first + i][t] = 1 if is_drawn else OUT if wait else 0
            wait = b - 1 if any(drawn) else max(0, wait - 1)
    return raster


def random_allocation(body: Any, rng: random.Random) -> Raster:
    """In every stretch of rounds so many of them, every record for itself."""
    raster, length = empty(), body.sampler.iterations_per_allocation
    for start in range(0, ROUNDS, length):
        for row in raster:
            for t in some(rng, list(range(start, start + length)), body.sampler.participations):
                row[t] = 1
    return raster


def balls_in_bins(body: Any, rng: random.Random) -> Raster:
    raster, count = empty(), body.bins()
    for i in range(RECORDS):
        mine = below(rng, count)
        for t in range(mine, ROUNDS, count):
            raster[i][t] = 1
    return raster


def cyclic_poisson(body: Any, rng: random.Random) -> Raster:
    """Parts of equal size, one after the other; whoever is not in the round's part sits out."""
    raster, p, b = empty(), body.sampling_probability(), body.separation()
    assert b is not None
    for t in range(ROUNDS):
        for i in range(RECORDS):
            turn = i * b // RECORDS == t % b
            raster[i][t] = (1 if rng.random() < p else 0) if turn else OUT
    return raster


def shuffled(body: Any, rng: random.Random) -> Raster:
    """Every epoch all records in a new order, dealt into its batches."""
    raster, rounds = empty(), body.epoch()
    assert rounds is not None
    for start in range(0, ROUNDS, int(rounds)):
        for place, i in enumerate(some(rng, list(range(RECORDS)), RECORDS)):
            raster[i][start + place // int(body.training.expected_batch_size)] = 1
    return raster


def deterministic(body: Any, rng: random.Random) -> Raster:
    """The data set in order, again and again: an epoch is as long as participations are apart."""
    if body.sampler.min_separation is None:
        return shuffled(body, rng)
    raster, length = empty(), body.sampler.min_separation
    for i in range(RECORDS):
        for turn in range(body.sampler.max_participations):
            raster[i][i * length // RECORDS + turn * length] = 1
    return raster


SIMULATIONS: dict[str, Callable[[Any, random.Random], Raster]] = {
    "poisson": poisson,
    **dict.fromkeys(("fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww"), fixed_draws),
    **dict.fromkeys(("b-min-sep", "user-b-min-sep"), b_min_sep),
    "random-allocation": random_allocation,
    "balls-in-bins": balls_in_bins,
    "cyclic-poisson": cyclic_poisson,
    "none": deterministic,
}


def simulated(name: str) -> Raster:
    body = document(name).run
    return SIMULATIONS[body.sampler.kind](body, random.Random(SEED))


CELL, LEFT, TOP = 12, 22, 18
#: How wide a letter of the key is, about.
LETTER = 6
STYLE = """\
text { font: 11px system-ui, sans-serif; fill: #57606a }
.back { fill: #f6f8fa } .out { fill: #dfe5ec } .one { fill: #1f6feb } .more { fill: #0a2e78 }
.dropped { fill: none; stroke: #1f6feb }
.epoch { stroke: #57606a; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
text { fill: #9aa4af }
.back { fill: #161b22 } .out { fill: #2b333d } .one { fill: #58a6ff } .more { fill: #d2e6ff } .dropped { stroke: #58a6ff }
.epoch { stroke: #9aa4af }
}"""
#: The classes of cells in the order of drawing, with what they mean.
CLASSES = {
    "out": "not available",
    "one": "takes part",
    "more": "drawn several times",
    "dropped": "drawn, but dropped",
}


def class_of(cell: int) -> str:
    if cell in (OUT, DROPPED):
        return "out" if cell == OUT else "dropped"
    return "" if cell == 0 else "one" if cell == 1 else "more"


def svg(name: str) -> str:
    """The picture: a row for each record, a column for each round; one path for all cells of a class."""
    raster = simulated(name)
    width, height = LEFT + ROUNDS * CELL + 2, TOP + RECORDS * CELL + 2
    shown = {
        kind: word for kind, word in CLASSES.items() if any(class_of(cell) == kind for row in raster for cell in row)
    }
    if name.startswith("must-") and "out" in shown:
        shown["out"] = "in the subset only"
    epoch = document(name).run.epoch()
    meaning = "; ".join([*shown.values(), *([f"a line every {epoch} rounds, an epoch"] if epoch else [])])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>Participation under {name} sampling: {RECORDS} records, {ROUNDS} rounds</title>",
        f"<desc>A simulated run, with a cell for each record and round. {meaning[0].upper()}{meaning[1:]}.</desc>",
        f"<style>\n{STYLE}\n</style>",
        f'<text x="{LEFT}" y="12">rounds →</text>',
        f'<text transform="translate(14 {height - 2}) rotate(-90)">← records</text>',
        f'<rect class="back" x="{LEFT}" y="{TOP}" width="{ROUNDS * CELL}" height="{RECORDS * CELL}"/>',
    ]
    for kind in shown:
        lines.append(f'<path class="{kind}" d="{" ".join(_cells(raster, kind))}"/>')
    lines += _epochs(epoch, height)
    lines += _key(shown, epoch is not None, width)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _cells(raster: Raster, kind: str) -> Iterator[str]:
    size = CELL - 2
    for i, row in enumerate(raster):
        for t, cell in enumerate(row):
            if class_of(cell) == kind:
                yield f"M{LEFT + t * CELL + 1} {TOP + i * CELL + 1}h{size}v{size}h-{size}z"


def _epochs(epoch: Fraction | None, height: int) -> Iterator[str]:
    """Thin lines where epochs end, inside of the picture."""
    for number in range(1, ROUNDS if epoch else 0):
        if epoch and number * epoch < ROUNDS:
            x = LEFT + float(number * epoch) * CELL - 0.5
            yield f'<line class="epoch" x1="{x:g}" y1="{TOP}" x2="{x:g}" y2="{height - 2}"/>'


def _key(shown: dict[str, str], epochs: bool, width: int) -> Iterator[str]:
    """The key, above the raster and at its right end: a cell of each class with its word, and the line of epochs."""
    items = [*shown.items(), *([("epoch", "end of an epoch")] if epochs else [])]
    x = width - 2 - sum(18 + LETTER * len(word) + 8 for _, word in items)
    for kind, word in items:
        if kind == "epoch":
            yield f'<line class="epoch" x1="{x + 6.5}" y1="2" x2="{x + 6.5}" y2="14"/>'
        else:
            yield f'<rect class="{kind}" x="{x + 1}" y="3" width="{CELL - 2}" height="{CELL - 2}"/>'
        yield f'<text x="{x + 16}" y="12">{word}</text>'
        x += 18 + LETTER * len(word) + 8


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name in SAMPLERS:
        (folder / f"{name}.svg").write_text(svg(name), encoding="utf-8")


if __name__ == "__main__":
    main()
