"""docs/validation.md, from the numbers that are kept."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

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
  interval, which must have something in common with ours; so do samples of jax_privacy, by their mean and four standard
  errors.
- Papers print errors of prefix sums: a row asks for ε at the σ that the printed error follows from, and the paper says the ε
  of its table, to 1e-4 (the error has two decimals). Tables of ε′ and δ′ have three digits.
- Of {count} numbers {agree} agree. [What disagrees](#what-disagrees) says why the others do not.
"""

TAIL = """- Papers: the pair in circulation for batches of a fixed number of draws is beaten by two concrete data sets
  ([batches.md](batches.md#why-ε-is-larger-here-than-elsewhere)). The b-min-sep paper's analysis of users does not hold
  where users share records ([sampling.md](sampling.md)). The published formula for audits in one run is beaten by a
  concrete mechanism ([auditing.md](auditing.md#what-is-computed)).

## Further accountants

Tried by hand, each in an environment of its own, and not computed anew by the script:

- riskcal 1.5.1 calibrates noise to the risk of attacks. Under Poisson sampling (p = 0.01, n = 2000) it finds σ = 0.8713 for a
  true-positive rate of 0.01 at a false-positive rate of 0.001, and reports a rate of 0.010002 there. That is too little noise: at
  this σ some attack has a rate of at least 0.010275. pyaccount proves 0.0102756 to 0.0102758, dp_accounting's upper bound is
  0.010281. pyaccount asks for [σ = 0.87796](../examples/attack-budget.yaml).
- PLD_accounting 2.0 (Feldman & Shenfeld, [arXiv:2602.17284](https://arxiv.org/abs/2602.17284)) bounds random allocation from both
  sides. One of 100 rounds, σ = 1, δ = 1e-5: ε in 0.6085 to 0.6357 with its default accuracy, and
  2.4107 to 2.4954 for 20 times that; pyaccount's intervals [above](#random-allocation) lie inside.
- bis-mc-accountant ([arXiv:2605.07072](https://arxiv.org/abs/2605.07072)) tests claims about random allocation by samples, in
  both directions and with a stated probability of being wrong. It says of itself that its floating-point numbers are not
  rounded to a safe side. pyaccount's bounds for `random-allocation` need no samples.

## What is not here

Papers' other tables and figures leave their matrices open: [results.md](results.md) and [sampling.md](sampling.md) have
their errors beside certified ones. For the two-stage samplers, draws with replacement and shared records there is no other
accountant; that no data set beats the bounds of the former is searched for in `tests/core`. opake's bound for
b-min-sep is from samples and takes most of a minute: [the benchmarks](../benchmarks/README.md#one-run) have it. jax_privacy's
samplers, matrices and losses are compared in `tests/training`, `tests/adapters` and `tests/core`. Random
documents of every sampled kind are held against enumeration by [the attack](../benchmarks/README.md#the-attack).
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
