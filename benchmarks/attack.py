"""Attacks certificates and forecasts of random small sampled mechanisms with their exact δ(ε).

Every kind of document gets the same seeds in turn: bounds must enclose the truth, estimates lie inside of their own intervals,
and standard errors say how far off estimates are. The truth is enumerated and integrated by `tests/helpers/exact_documents.py`;
the documents are those of `tests/helpers/attack_documents.py`. Any line of the output can be had again by its kind and seed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from attack_checks import FAR, Attack, Finding, Outcome
from attack_documents import KINDS, draw
from attack_powers import wherever_possible

#: The share of estimates that may be far off.
SHARE = 0.02
#: Findings of a sort that are printed for each kind.
SHOWN = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=130, help="how many documents to draw, of all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS), help="only these kinds")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no further document after that long")
    parser.add_argument("--limit", type=float, default=15.0, help="seconds for a certificate, and for a forecast")
    parser.add_argument("--powers", action="store_true", help="powers, blocks, clipping, one test: wherever possible")
    parser.add_argument("--shown", type=int, default=SHOWN, help="findings to print of each sort and kind")
    options = parser.parse_args()
    found = {kind: Outcome() for kind in options.kinds}
    started, drawn, seed, sorts = time.monotonic(), 0, options.seed, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while drawn < options.documents and time.monotonic() - started < options.seconds:
            for kind in options.kinds:
                if drawn >= options.documents or time.monotonic() - started >= options.seconds:
                    break
                truth = draw(kind, seed, Path(folder))
                drawn += 1
                if truth is not None:
                    with wherever_possible(seed) if options.powers else nullcontext(Counter[str]()) as counts:
                        found[kind].add(Attack(truth, time_limit=options.limit).run())
                    sorts.update(counts)
            seed += 1
    tables(found)
    for sort, count in sorted(sorts.items()):
        print(f"{sort}: {count}")
    for kind, outcome in found.items():
        details(kind, outcome, options.shown)


def tables(found: dict[str, Outcome]) -> None:
    """What was looked at and found, by kind."""
    total = Outcome()
    for outcome in found.values():
        total.add(outcome)
    heads = ("documents", "not finished", "bounds", "beaten (allowed)", "estimates", "outside")
    heads = ("kind", *heads, "beyond 3 σ", "0 errors", "tests beyond 3 σ", "σ off")
    print(f"| {' | '.join(heads)} |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for kind, outcome in [*found.items(), ("all", total)]:
        roots = [abs(missed) for missed, _, _ in outcome.roots]
        print(
            f"| {kind} | {outcome.documents} | {len(outcome.refused)} | {outcome.bounds} | "
            f"{len(outcome.beaten)} ({outcome.allowed:.2g}) | {outcome.intervals} | {len(outcome.outside)} | "
            f"{share(outcome.scores)} | {len(outcome.sure)} | {share(outcome.tests)} | "
            + (f"{statistics.median(roots):.1e}, at most {max(roots):.1e} ({len(roots)}) |" if roots else "– |")
        )


def share(scores: list[tuple[float, Finding]]) -> str:
    """How many are far off, out of how many."""
    far = sum(abs(score) > FAR for score, _ in scores)
    if not scores:
        return "–"
    return f"{far} of {len(scores)} ({far / len(scores):.1%}{'' if far <= SHARE * len(scores) else ', too many'})"


def details(kind: str, outcome: Outcome, shown: int) -> None:
    """The worst of each sort."""
    lines = [("beaten", one) for one in outcome.beaten]
    lines += [("outside", one) for one in outcome.outside[:shown]]
    lines += [("0 error", one) for one in outcome.sure[:shown]]
    lines += [("not finished", one) for one in outcome.refused[:shown]]
    for name, scores in (("σ", outcome.scores), ("σ (test)", outcome.tests)):
        far = sorted((pair for pair in scores if abs(pair[0]) > FAR), key=lambda pair: -abs(pair[0]))
        lines += [(f"{score:+.1f} {name}", one) for score, one in far[:shown]]
    worst = sorted(outcome.roots, key=lambda triple: -abs(triple[0]))
    lines += [(f"σ off by {missed:+.1e}", one) for missed, _, one in worst[:1]]
    if lines:
        print(f"\n{kind}")
    for sort, one in lines:
        print(f"  {sort}: {one.document}: {one.where}: {one.text}")


if __name__ == "__main__":
    main()
