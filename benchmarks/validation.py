"""Every mechanism beside independent oracles, number by number: what docs/validation.md shows.

    python benchmarks/validation.py            # compute, compare, and write docs/validation.json and docs/validation.md
    python benchmarks/validation.py --only bins     # compute these alone, and write nothing
    python benchmarks/validation.py --page     # write the page from the numbers that are there

Oracles are closed forms and quadrature in high precision, enumeration of every way that a record can take part, and other
accountants of today, each by itself and without pyaccount's core; those from tests/helpers are what the tests use too. An exact
value has to lie in pyaccount's interval; an upper bound may not lie below it, nor an interval beside it. Where one does there is
a reason beside it, or the exit code is 1. Needs the environment of the benchmarks.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers")]

DOCS = ROOT / "docs"
NUMBERS, PAGE = DOCS / "validation.json", DOCS / "validation.md"
#: What packages are compared with.
PEERS = ("dp-accounting", "prv-accountant", "opake-accounting")
#: Relative errors that oracles of tests/helpers promise of themselves: mpmath's, and of quadrature.
PRECISE, INTEGRATED = 1e-12, 3e-5

Range = tuple[float, float]


@dataclass(frozen=True)
class Check:
    """A question for pyaccount and an oracle. The document has the blank; the oracle gives the range that it vouches for."""

    mechanism: str
    setting: str
    document: dict[str, Any]
    oracle: str
    answer: Callable[[], Range]
    #: Why the oracle is known to disagree.
    why: str = ""

    @property
    def asked(self) -> str:
        """The quantity."""
        privacy = self.document["privacy"]
        if privacy["epsilon"] == "solve":
            return f"ε at δ = {privacy['delta']:g}"
        return f"δ at ε = {privacy['epsilon']:g}"


@dataclass(frozen=True)
class Seen:
    """The outcome of a check, as it is kept."""

    mechanism: str
    setting: str
    asked: str
    lower: float
    upper: float
    #: The probability that the bounds fail.
    failure: float
    oracle: str
    oracle_lower: float
    oracle_upper: float | None
    agrees: bool
    why: str


def seen(check: Check) -> Seen:
    """Ask both."""
    import pyaccount  # noqa: PLC0415 - the page is written without it

    found = pyaccount.certify(check.document).data.guarantee
    ends = (
        (found.epsilon_lower, found.epsilon)
        if check.document["privacy"]["epsilon"] == "solve"
        else (found.delta_lower, found.delta)
    )
    lower, upper = ends[0] or 0.0, ends[1]
    low, high = check.answer()
    return Seen(
        check.mechanism,
        check.setting,
        check.asked,
        lower,
        upper,
        found.failure_probability,
        check.oracle,
        low,
        None if math.isinf(high) else high,
        # Two ranges of one number have something in common.
        low <= upper and lower <= high,
        check.why,
    )


def document(mechanism: dict[str, Any], sigma: float, **privacy: Any) -> dict[str, Any]:
    """With the privacy that is asked for; add-remove unless told otherwise."""
    return {
        "pyaccount": 1,
        "name": "validation",
        "privacy": {"adjacency": "add-remove", **privacy},
        "noise": {"multiplier": sigma},
        "accounting": {"profile": [], "seed": 20261123},
        **mechanism,
    }


def near(value: float, error: float) -> Range:
    """What an oracle with this relative error vouches for."""
    return value * (1.0 - error), value * (1.0 + error)


def at_most(value: float) -> Range:
    """An upper bound vouches for nothing below it."""
    return 0.0, value


def poisson(rate: float, rounds: int, **sampler: Any) -> dict[str, Any]:
    """Poisson sampling."""
    training = {"sampling_probability": rate, "iterations": rounds}
    return {"training": training, "sampler": {"kind": "poisson", **sampler}}


# ---- closed forms and high precision


def closed_forms() -> list[Check]:
    """Mechanisms of which δ(ε) has a formula, or one integral."""
    import oracle  # noqa: PLC0415 - with mpmath

    def gaussian(sigma: float, rounds: int, delta: float) -> Check:
        return Check(
            "Gaussian noise without sampling",
            f"σ = {sigma:g}, n = {rounds}",
            document(
                {"training": {"iterations": rounds}, "sampler": {"kind": "none"}}, sigma, epsilon="solve", delta=delta
            ),
            "closed form (Balle & Wang 2018), 50 digits",
            lambda: near(float(oracle.gaussian_epsilon(math.sqrt(rounds) / sigma, delta)), PRECISE),
        )

    def laplace(scale: float, epsilon: float) -> Check:
        asked = document(
            {"training": {"iterations": 1}, "sampler": {"kind": "none"}}, scale, epsilon=epsilon, delta="solve"
        )
        asked["noise"]["kind"] = "laplace"
        return Check(
            "Laplace noise without sampling",
            f"scale {scale:g}, n = 1",
            asked,
            "closed form: 1 − e^((ε − 1/scale)/2)",
            lambda: near(-math.expm1((epsilon - 1.0 / scale) / 2), PRECISE),
        )

    def one_round(
        name: str, setting: str, mechanism: dict[str, Any], drawn: tuple[float, float], sigma: float
    ) -> Check:
        """The record is drawn with a probability, and then shifts the sum by so much."""
        epsilon, (rate, shift) = 1.0, drawn

        def answer() -> Range:
            mp = oracle.mp
            weights = [(1 - mp.mpf(rate), mp.mpf(0)), (mp.mpf(rate), mp.mpf(shift) / mp.mpf(sigma))]
            nothing = [(mp.mpf(1), mp.mpf(0))]
            with mp.workdps(oracle.DIGITS):
                remove = oracle.mixture_delta(weights, nothing, mp.mpf(epsilon))
                add = oracle.mixture_delta(nothing, weights, mp.mpf(epsilon), increasing=False)
            return near(float(max(remove, add)), PRECISE)

        asked = document(mechanism, sigma, epsilon=epsilon, delta="solve")
        return Check(name, setting, asked, "the integral, 50 digits", answer)

    fixed = {
        "training": {"dataset_size": 100, "expected_batch_size": 10, "iterations": 1},
        "sampler": {"kind": "fixed-size"},
    }
    return [
        gaussian(2.0, 10, 1e-5),
        gaussian(2.0, 10, 1e-100),
        gaussian(30.0, 1_000_000, 1e-9),
        laplace(0.5, 1.0),
        laplace(0.5, 0.0),
        one_round("Poisson sampling", "p = 0.1, σ = 1, n = 1", poisson(0.1, 1), (0.1, 1.0), 1.0),
        one_round("Poisson sampling", "p = 1e-7, σ = 0.5, n = 1", poisson(1e-7, 1), (1e-7, 1.0), 0.5),
        one_round("Batches of a fixed size", "10 of 100, σ = 2, n = 1", fixed, (0.1, 2.0), 2.0),
    ]


# ---- enumeration


def enumerated() -> list[Check]:
    """A few rounds, every way to take part, and the mixtures of Gaussians integrated."""
    import exact_documents  # noqa: PLC0415

    bands = {"matrix": {"kind": "banded-square-root", "bands": 2}}
    long = {"matrix": {"kind": "banded-square-root", "bands": 3}}

    def sampled(rate: float, rounds: int, **sampler: Any) -> dict[str, Any]:
        return {"training": {"sampling_probability": rate, "iterations": rounds}, "sampler": sampler}

    cases: list[tuple[str, str, dict[str, Any], float]] = [
        ("Poisson sampling", "p = 0.2, σ = 0.8, n = 3", poisson(0.2, 3), 0.8),
        (
            "b-min-sep with a matrix",
            "b = 2, p = 0.3, 2 bands, σ = 1, n = 4, warm",
            sampled(0.3, 4, kind="b-min-sep", min_separation=2) | bands,
            1.0,
        ),
        (
            "b-min-sep with a matrix",
            "b = 2, p = 0.3, 2 bands, σ = 1, n = 4, cold",
            sampled(0.3, 4, kind="b-min-sep", min_separation=2, start="cold") | bands,
            1.0,
        ),
        (
            "Users without shared records",
            "2 records each, b = 2, p = 0.2, 2 bands, σ = 1, n = 3",
            sampled(0.2, 3, kind="user-b-min-sep", min_separation=2, records_per_user=2, attribution="single") | bands,
            1.0,
        ),
        (
            "Balls in bins with a matrix",
            "2 bins, 3 bands, σ = 1.5, n = 4",
            {"training": {"iterations": 4}, "sampler": {"kind": "balls-in-bins", "bins": 2}} | long,
            1.5,
        ),
        (
            "Cyclic Poisson, random parts",
            "2 parts, p = 0.5, 2 bands, σ = 1, n = 4",
            sampled(0.5, 4, kind="cyclic-poisson", partitions=2, phase="random") | bands,
            1.0,
        ),
    ]

    def check(name: str, setting: str, mechanism: dict[str, Any], sigma: float) -> Check:
        epsilon = 1.0
        asked = document(mechanism, sigma, epsilon=epsilon, delta="solve", adjacency="zero-out")
        truth = exact_documents.Truth(asked, ROOT)
        words = "every way to take part, integrated"
        return Check(name, setting, asked, words, lambda: near(truth.largest(epsilon), INTEGRATED))

    return [check(*case) for case in cases]


def allocated() -> list[Check]:
    """One of a few rounds, by quadrature of log-normal numbers."""
    import log_normals  # noqa: PLC0415

    def check(rounds: int, sigma: float, epsilon: float) -> Check:
        mechanism = {
            "training": {"iterations": rounds},
            "sampler": {"kind": "random-allocation", "iterations_per_allocation": rounds},
        }

        def answer() -> Range:
            squares = [sigma**-2] * rounds
            return near(
                max(log_normals.quadrature(squares, epsilon, reverse=reverse) for reverse in (False, True)), INTEGRATED
            )

        return Check(
            "Random allocation",
            f"one of {rounds} rounds, σ = {sigma:g}",
            document(mechanism, sigma, epsilon=epsilon, delta="solve"),
            "quadrature of sums of log-normal numbers",
            answer,
        )

    return [check(2, 1.0, 0.5), check(3, 0.8, 1.0)]


# ---- other accountants


def accountants() -> list[Check]:
    """The settings of the benchmarks of composition, by dp_accounting and prv_accountant."""
    import composition  # noqa: PLC0415

    checks = []
    for setting in (*composition.POISSON, *composition.MIXTURES[:2]):
        sampling = poisson(setting.sampling_probability, setting.rounds)
        asked = document(
            sampling,
            setting.noise_multiplier,
            epsilon="solve",
            delta=composition.DELTA,
            group_size=setting.group_size,
        )
        name = "Poisson sampling" if setting.group_size == 1 else "Poisson sampling, groups"

        def theirs(setting: Any = setting) -> Range:
            return at_most(composition.dp_accounting_bounds(setting).upper)

        def interval(setting: Any = setting) -> Range:
            bounds = composition.prv_accountant_bounds(setting, 0.01)
            return bounds.lower, bounds.upper

        checks.append(Check(name, setting.label, asked, "dp_accounting", theirs))
        if setting.group_size == 1:
            checks.append(Check(name, setting.label, asked, "prv_accountant", interval))
    return checks


def opake() -> list[Check]:
    """The settings of the benchmark beside opake-accounting, but for the one that it samples itself."""
    import opake_peer  # noqa: PLC0415

    names = {
        "Poisson": "Poisson sampling",
        "four draws": "Several draws for one iteration",
        "truncated": "Truncated Poisson batches",
        "random allocation": "Random allocation",
    }

    def check(row: Any) -> Check:
        (name,) = [words for start, words in names.items() if row.label.startswith(start)]
        return Check(
            name,
            row.label,
            row.document(row.sigma, 1e-4),
            "opake-accounting",
            lambda: at_most(row.theirs(row.sigma)),
        )

    return [check(row) for row in opake_peer.rows() if not row.label.startswith("b-min-sep")]


def fixed_sizes() -> list[Check]:
    """Batches without replacement, of which what dp_accounting tells depends on what its noise is a multiple of."""
    import dp_accounting  # noqa: PLC0415
    from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415

    def theirs() -> Range:
        event = dp_accounting.SampledWithoutReplacementDpEvent(100, 1, dp_accounting.GaussianDpEvent(1.0))
        accountant = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(dp_accounting.SelfComposedDpEvent(event, 500))
        return at_most(float(accountant.get_epsilon(1e-5)))

    training = {"dataset_size": 100, "expected_batch_size": 1, "iterations": 500}
    mechanism = {"training": training, "sampler": {"kind": "fixed-size"}}

    def check(sigma: float, words: str, why: str = "") -> Check:
        asked = document(mechanism, sigma, epsilon="solve", delta=1e-5, adjacency="replace-one")
        return Check("Batches of a fixed size", words, asked, "dp_accounting, Rényi", theirs, why)

    return [
        check(
            1.0,
            "1 of 100, n = 500, replace-one, noise 1 · clip norm",
            "its noise multiplier is one of the distance between two sums, which replacement makes twice the clip norm. Its "
            "figure is that of the next row; read as one of this row, as multiples of the clip norm, it is far too low",
        ),
        check(2.0, "1 of 100, n = 500, replace-one, noise 1 · distance of two sums"),
    ]


GROUPS: dict[str, Callable[[], list[Check]]] = {
    "closed": closed_forms,
    "enumerated": enumerated,
    "allocated": allocated,
    "accountants": accountants,
    "opake": opake,
    "fixed": fixed_sizes,
}


# ---- the page


HEAD = """# Validation

Every mechanism beside oracles that share none of the code they judge, number by number. Nothing here has to be believed:
in the environment that `make bench` builds, `python benchmarks/validation.py` computes all of it anew and writes this
page. The numbers are in [validation.json](validation.json), with all digits.

Written with {versions}.

## How to read it

- pyaccount's ends are proven bounds, rounded outwards: the truth lies between them. Where samples were drawn, the bounds
  fail with the probability that stands beside them; the seed is in the script.
- *The integral* and *closed form* are exact to a relative 1e-12, *quadrature* and *every way to take part* to 3e-5: with
  that error, such a number has to lie between the ends. They follow from the definitions of sampler, matrix and noise, by
  mpmath, numpy and scipy (`tests/helpers`).
- dp_accounting and opake-accounting give upper bounds, which may not lie below the lower end. prv_accountant gives an
  interval, which must have something in common with ours.
- Of {count} numbers {agree} agree. [What disagrees](#what-disagrees) says why the others do not.
"""

TAIL = """- Papers: the pair in circulation for batches of a fixed number of draws is beaten by two concrete data sets
  ([batches.md](batches.md#why-ε-is-larger-here-than-elsewhere)). The b-min-sep paper's analysis of users does not hold
  where users share records ([sampling.md](sampling.md)). The published formula for audits in one run is beaten by a
  concrete mechanism ([auditing.md](auditing.md#what-is-computed)).

## What is not here

Papers' tables are of errors of prefix sums and not of ε: [results.md](results.md) and [sampling.md](sampling.md) have
them beside certified ones. For the two-stage samplers, draws with replacement and shared records there is no other
accountant; that no data set beats the bounds of the former is searched for in `tests/core`. opake's bound for
b-min-sep is from samples and takes most of a minute: [the benchmarks](../benchmarks/README.md#one-run) have it. jax_privacy's
estimates have no stated error; its samplers, matrices and losses are compared in `tests/training`, `tests/adapters` and
`tests/core`. Random documents of every sampled kind are held against enumeration by
[the attack](../benchmarks/README.md#the-attack).
"""


def rounded(value: float, digits: int, up: bool) -> str:
    """To so many significant digits, to one side."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(context.create_decimal(Decimal(value))):.{digits}g}"


def told(low: float, high: float | None) -> str:
    """What the oracle says: a number, a range, an upper bound."""
    if high is None:
        return f"at least {rounded(low, 6, False)}"
    if low == 0.0:
        return f"at most {rounded(high, 6, True)}" if high else "0"
    middle = f"{(low + high) / 2:.6g}"
    return middle if high <= low * (1.0 + 1e-4) else f"{rounded(low, 6, False)} to {rounded(high, 6, True)}"


def page(kept: dict[str, Any]) -> str:
    """docs/validation.md."""
    rows = kept["rows"]
    wrong = [row for row in rows if not row["agrees"]]
    versions = ", ".join(f"{name} {version}" for name, version in kept["versions"].items())
    lines = [HEAD.format(versions=versions, count=len(rows), agree=len(rows) - len(wrong))]
    names = list(dict.fromkeys(row["mechanism"] for row in rows))
    for name in names:
        lines += [
            f"## {name}",
            "",
            "| setting | | pyaccount | oracle | it says | |",
            "| --- | --- | --- | --- | ---: | --- |",
        ]
        for row in rows:
            if row["mechanism"] == name:
                ends = f"{rounded(row['lower'], 6, False)} to {rounded(row['upper'], 6, True)}"
                if row["failure"]:
                    ends += f", fails with {row['failure']:.0e}"
                says, agrees = (
                    told(row["oracle_lower"], row["oracle_upper"]),
                    "agrees" if row["agrees"] else "disagrees",
                )
                lines.append(f"| {row['setting']} | {row['asked']} | {ends} | {row['oracle']} | {says} | {agrees} |")
        lines.append("")
    lines += ["## What disagrees", ""]
    lines += [f"- {row['mechanism']}, {row['setting']}: {row['oracle']}: {row['why']}." for row in wrong]
    lines += [TAIL]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=GROUPS, help="compute one group, and write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the numbers that are there")
    asked = parser.parse_args()
    if asked.page:
        PAGE.write_text(page(json.loads(NUMBERS.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    rows = []
    for name, group in GROUPS.items():
        for check in group() if asked.only in (None, name) else ():
            rows.append(seen(check))
            row = rows[-1]
            verdict = "agrees" if row.agrees else "DISAGREES"
            print(f"{verdict}  {row.mechanism}; {row.setting}; {row.asked}: [{row.lower}, {row.upper}]", end="; ")
            print(f"{row.oracle}: [{row.oracle_lower}, {row.oracle_upper}]", flush=True)
    if asked.only is None:
        versions = {name: importlib.metadata.version(name) for name in ("pyaccount", *PEERS)}
        versions["Python"] = platform.python_version()
        lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
        head = json.dumps({"versions": versions})[:-1]
        NUMBERS.write_text(f'{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
        PAGE.write_text(page(json.loads(NUMBERS.read_text(encoding="utf-8"))), encoding="utf-8")
    if any(not row.agrees and not row.why for row in rows):
        sys.exit("what disagrees has no reason")


if __name__ == "__main__":
    main()
