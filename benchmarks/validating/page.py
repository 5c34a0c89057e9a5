"""docs/validation.md, from the numbers that are kept."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

HEAD = """# Validation

For everybody who wants to check pyaccount's numbers before trusting them: this page compares every mechanism with oracles, number
by number. An *oracle* is an independent computation of the same number that shares no code with pyaccount. You can check all of
it yourself: in the environment that `make bench` builds, `python benchmarks/validation.py` computes everything again and writes
this page. The numbers are in [validation.json](validation.json), with all digits.

Written with {versions}.

## How to read it

- **pyaccount** gives proven bounds, rounded outwards: the true value is between them. If samples were drawn, the bounds fail with
  the stated probability; the seed is in the script.
- **Exact oracles.** *The integral* and *closed form* are exact to a relative 1e-12, *quadrature* and *every way to take part* to
  3e-5. Up to this error such a number must be between pyaccount's bounds. These oracles follow from the definitions of the
  sampler, the matrix and the noise, and are computed by mpmath, numpy and scipy (`tests/helpers`).
- **dp_accounting and opake-accounting** give upper bounds, which must not be below pyaccount's lower bound.
- **prv_accountant** gives an interval, and **jax_privacy** gives samples, which are an interval by their mean and four standard
  errors. Such an interval must overlap pyaccount's.
- **Papers** print errors of prefix sums. Such a row asks for ε at the σ that follows from the printed error. The paper's answer
  is the ε of its table, to 1e-4, because the printed error has two decimals. Tables of ε′ and δ′ have three digits.
- Of {count} numbers {agree} agree. [What disagrees](#what-disagrees) explains why the others do not.
"""

TAIL = """- Papers: concrete data sets exceed the bound of the pair that is commonly used for batches of a fixed number of draws
  ([composition.md](composition.md#why-ε-is-larger-here-than-elsewhere)). The b-min-sep paper's analysis of users does not hold
  if users share records ([sampling.md](sampling.md)). A concrete mechanism exceeds the published formula for audits in one run
  ([auditing.md](auditing.md#what-is-computed)).

## Further accountants

These were tried by hand, each in its own environment. The script does not compute them again.

- **riskcal 1.5.1** calibrates noise to the risk of attacks. Under Poisson sampling (p = 0.01, n = 2000) it finds σ = 0.8713 for a
  true-positive rate of 0.01 at a false-positive rate of 0.001, and reports a rate of 0.010002 there. This is too little noise: at
  this σ some attack has a rate of at least 0.010275. pyaccount proves 0.0102756 to 0.0102758, and dp_accounting's upper bound is
  0.010281. pyaccount requires [σ = 0.87796](../examples/attack-budget.yaml). The better number follows from the privacy loss
  distribution that riskcal builds itself.
- **PLD_accounting 2.0** (Feldman & Shenfeld, [arXiv:2602.17284](https://arxiv.org/abs/2602.17284)) bounds random allocation from
  both sides. For one of 100 rounds, σ = 1 and δ = 1e-5, ε is in 0.6085 to 0.6357 with its default accuracy, and in 2.4107 to
  2.4954 for 20 times that; pyaccount's intervals [above](#random-allocation) are inside these.
- **bis-mc-accountant** ([arXiv:2605.07072](https://arxiv.org/abs/2605.07072)) tests claims about random allocation by samples, in
  both directions and with a stated probability of being wrong. Its documentation says that its floating-point numbers are not
  rounded to a safe side. pyaccount's bounds for `random-allocation` need no samples.

## What is not here

- Other tables and figures of papers do not state their matrices: [results.md](results.md) and [sampling.md](sampling.md) compare
  their errors with certified ones.
- For the two-stage samplers, draws with replacement and shared records there is no other accountant. A search in `tests/core`
  finds no data set that exceeds the bounds of the two-stage samplers and of draws with replacement.
- opake's bound for b-min-sep comes from samples and takes most of a minute: it is in [the
  benchmarks](../benchmarks/README.md#one-run).
- jax_privacy's samplers, matrices and losses are compared in `tests/training`, `tests/adapters` and `tests/core`.
- Random documents of every sampled kind are compared with enumeration by [the attack](../benchmarks/README.md#the-attack).
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
            "| setting | question | pyaccount | oracle | the oracle's answer | |",
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
