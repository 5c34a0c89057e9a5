"""The joint distribution of all batches of small runs, enumerated from the samplers' definitions, and a test of samples of it.

A run is a tuple of batches, one for each round. A batch is the tuple of its records in ascending order, each as often as it was
drawn. A law maps each run to its probability.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from scipy.stats import chi2

Batch = tuple[int, ...]
Run = tuple[Batch, ...]
Law = dict[Run, float]
#: A distribution of one record's participations: for each pattern, how often it takes part in each round, the probability.
Pattern = tuple[int, ...]
Patterns = dict[Pattern, float]


def summed(items: Iterable[tuple[Run, float]]) -> Law:
    found: defaultdict[Run, float] = defaultdict(float)
    for run, chance in items:
        found[run] += chance
    assert math.isclose(sum(found.values()), 1.0)
    return {run: chance for run, chance in found.items() if chance > 0.0}


def independent(records: Sequence[Patterns]) -> Law:
    """Return the law of records that take part independently of one another."""

    def items() -> Iterator[tuple[Run, float]]:
        for chosen in product(*(patterns.items() for patterns in records)):
            rounds = zip(*(pattern for pattern, _ in chosen), strict=True)
            run = tuple(tuple(i for i, times in enumerate(round) for _ in range(times)) for round in rounds)
            yield run, math.prod(chance for _, chance in chosen)

    return summed(items())


def repeated(law: dict[Batch, float], rounds: int) -> Law:
    """Return the law of independent rounds with this law."""
    return summed(
        (tuple(batch for batch, _ in chosen), math.prod(chance for _, chance in chosen))
        for chosen in product(law.items(), repeat=rounds)
    )


def binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)]


def poisson(records: int, rounds: int, p: float, draws: int = 1) -> Law:
    patterns = {
        counts: math.prod(binomial(draws, p)[count] for count in counts)
        for counts in product(range(draws + 1), repeat=rounds)
    }
    return independent([patterns] * records)


def fixed_size(records: int, rounds: int, size: int) -> Law:
    subsets = list(combinations(range(records), size))
    return repeated(dict.fromkeys(subsets, 1.0 / len(subsets)), rounds)


def batch_law(sequences: Iterable[Iterable[int]]) -> dict[Batch, float]:
    """Return the law of a batch from equally likely sequences of draws."""
    counts = Counter(tuple(sorted(sequence)) for sequence in sequences)
    return {batch: count / counts.total() for batch, count in counts.items()}


def with_replacement(records: int, rounds: int, size: int) -> Law:
    return repeated(batch_law(product(range(records), repeat=size)), rounds)


def must(kind: str, records: int, rounds: int, subset: int, size: int) -> Law:
    """Return the law of MUST: `kind` has O (without replacement) or W (with) for the subset, and then for the batch from it."""
    first, second = kind.removeprefix("must-")
    subsets = combinations(range(records), subset) if first == "o" else product(range(records), repeat=subset)
    places = list(combinations(range(subset), size) if second == "o" else product(range(subset), repeat=size))
    return repeated(batch_law([chosen[i] for i in draws] for chosen in subsets for draws in places), rounds)


def started(p: float, b: int, start: str) -> dict[int, float]:
    """Return the law of the number of rounds that somebody still waits before the first round."""
    if start == "cold":
        return {0: 1.0}
    whole = 1.0 + (b - 1) * p
    return {0: 1.0 / whole, **dict.fromkeys(range(1, b), p / whole)}


def renewals(rounds: int, p: float, b: int, start: str, records: int = 1) -> dict[tuple[Pattern, ...], float]:
    """Return the law of the patterns of somebody's records, each of which is drawn with probability p while none waits."""
    drawn = list(product((0, 1), repeat=records))
    nobody = (0,) * records
    at_least_one = 1.0 - (1.0 - p) ** records
    # The states after each round: the participations so far, and for how many rounds all records wait.
    states = {((), wait): chance for wait, chance in started(at_least_one, b, start).items()}
    for _ in range(rounds):
        after: defaultdict[tuple[tuple[Pattern, ...], int], float] = defaultdict(float)
        for (past, wait), chance in states.items():
            for who in [nobody] if wait else drawn:
                weight = 1.0 if wait else p ** sum(who) * (1.0 - p) ** (records - sum(who))
                after[(*past, who), max(wait - 1, b - 1 if any(who) else 0)] += chance * weight
        states = dict(after)
    found: defaultdict[tuple[Pattern, ...], float] = defaultdict(float)
    for (past, _), chance in states.items():
        found[past] += chance
    return dict(found)


def b_min_sep(records: int, rounds: int, p: float, b: int, start: str) -> Law:
    patterns = {tuple(who for (who,) in past): chance for past, chance in renewals(rounds, p, b, start).items()}
    return independent([patterns] * records)


def users(owners: Sequence[Sequence[int]], rounds: int, p: float, b: int, start: str) -> Law:
    """Return the law for users who share no records; `owners` lists the records of each user."""

    def items() -> Iterator[tuple[Run, float]]:
        laws = [renewals(rounds, p, b, start, len(owned)) for owned in owners]
        for chosen in product(*(law.items() for law in laws)):
            batches: list[list[int]] = [[] for _ in range(rounds)]
            for owned, (past, _) in zip(owners, chosen, strict=True):
                for t, who in enumerate(past):
                    batches[t] += [record for record, taken in zip(owned, who, strict=True) if taken]
            yield tuple(tuple(sorted(batch)) for batch in batches), math.prod(chance for _, chance in chosen)

    return summed(items())


def shared_users(whose: Sequence[set[int]], rounds: int, p: float, b: int, start: str) -> Law:
    """Return the law of Algorithm 3 of arXiv:2602.09338, where whose[i] are the users of record i. A warm start is after b − 1
    rounds that do not count.
    """
    records, before = len(whose), b - 1 if start == "warm" else 0
    near = [{j for j in range(records) if whose[i] & whose[j]} for i in range(records)]
    subsets = [
        (set(chosen), p ** len(chosen) * (1.0 - p) ** (records - len(chosen)))
        for size in range(records + 1)
        for chosen in combinations(range(records), size)
    ]

    def items() -> Iterator[tuple[Run, float]]:
        for drawn in product(subsets, repeat=before + rounds):
            run = []
            for t in range(before, before + rounds):
                window = [i for s, _ in drawn[max(0, t - b + 1) : t] for i in s]
                out = set().union(*(near[i] for i in window))
                run.append(tuple(sorted(drawn[t][0] - out)))
            yield tuple(run), math.prod(chance for _, chance in drawn)

    return summed(items())


def allocation(records: int, rounds: int, length: int, taken: int) -> Law:
    stretch = [tuple(int(t in chosen) for t in range(length)) for chosen in combinations(range(length), taken)]
    patterns = [sum(parts, ()) for parts in product(stretch, repeat=rounds // length)]
    return independent([dict.fromkeys(patterns, 1.0 / len(patterns))] * records)


def bins(records: int, rounds: int, count: int) -> Law:
    patterns = [tuple(int(t % count == mine) for t in range(rounds)) for mine in range(count)]
    return independent([dict.fromkeys(patterns, 1.0 / count)] * records)


def cyclic(records: int, rounds: int, parts: int, p: float, *, fixed: bool) -> Law:
    def patterns(part: int) -> Patterns:
        options = [((0, 1.0 - p), (1, p)) if t % parts == part else ((0, 1.0),) for t in range(rounds)]
        return {
            tuple(taken for taken, _ in chosen): math.prod(chance for _, chance in chosen)
            for chosen in product(*options)
        }

    if fixed:
        return independent([patterns(i % parts) for i in range(records)])
    mixed: defaultdict[Pattern, float] = defaultdict(float)
    for part in range(parts):
        for pattern, chance in patterns(part).items():
            mixed[pattern] += chance / parts
    return independent([dict(mixed)] * records)


def truncated(law: Law, limit: int, turns: int | None = None) -> Law:
    """Return the law after `limit` records of each larger batch are kept, chosen at random in each round, or once for all rounds
    whose distance is a multiple of `turns`.
    """

    def kept(run: Run) -> Iterator[tuple[Run, float]]:
        groups = len(run) if turns is None else min(turns, len(run))
        choices = [list(combinations(batch, min(limit, len(batch)))) for batch in run[:groups]]
        for chosen in product(*choices):
            yield (
                tuple(chosen[t % groups] for t in range(len(run))),
                math.prod(1.0 / len(options) for options in choices),
            )

    return summed((cut, chance * share) for run, chance in law.items() for cut, share in kept(run))


def p_value(law: Law, runs: Sequence[Run]) -> float:
    """Return the p-value of Pearson's χ² test of samples against a law; runs expected less than eight times form one cell."""
    counts, total = Counter(runs), len(runs)
    if any(run not in law for run in counts):
        return 0.0
    often = [run for run, chance in law.items() if chance * total >= 8.0]
    seen = [float(counts[run]) for run in often]
    expected = [law[run] * total for run in often]
    if total - sum(expected) >= 8.0:
        seen.append(total - sum(seen))
        expected.append(total - sum(expected))
    if len(expected) == 1:
        return 1.0
    statistic = sum((x - mean) ** 2 / mean for x, mean in zip(seen, expected, strict=True))
    return float(chi2.sf(statistic, len(expected) - 1))
