"""Compares scores of canaries with a certificate, after one run or many.

**One run.** The number of canaries that are guessed must not depend on who was included. Several choices are fixed in
advance from the number of canaries alone, and each is tested at its share of 1 − confidence (a union bound); or the
caller fixes one choice. For each choice, the probability of at least so many right guesses is bounded under the
certified curve, which may differ by direction. The lower bound on ε is the largest ε found for which (ε, δ), at the
certificate's δ, is refuted at that level: every mechanism that satisfies a smaller ε satisfies it too.

**Many runs.** Scores are independent, so the two error rates of a threshold are bounded by Clopper & Pearson, each at
half of 1 − confidence. The caller fixes the threshold, or a random half of the runs chooses it and is left out
afterwards. A certified curve is refuted by a pair of rates above it; the lower bound on ε is ln((TPR − δ)/FPR) at the
bounds on the rates, for presence or for absence.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

from pyaccount.arguments import number_of, whole_of
from pyaccount.auditing.bounds import (
    MOST_GUESSES,
    Corners,
    Guesses,
    PairCurve,
    binomial_above,
    by_curve,
    chosen_guesses,
    impossible,
)
from pyaccount.auditing.report import LEVEL_OF_REVERSED, NOT_SHOWN, REVERSED, Audit, ManyRunsTest, OneRunTest
from pyaccount.auditing.scores import Scores, scores_of
from pyaccount.certificate import Certificate
from pyaccount.certificate.meaning import failure_probability, trade_off
from pyaccount.certificate.reading import read_certificate
from pyaccount.document.ranges import SEED
from pyaccount.errors import DomainError, quoted
from pyaccount.records.certificate import CertificateModel
from pyaccount.risk.tradeoff import Bound, TradeOff

#: The fewest guesses on each side (unless the caller fixes them), and the most choices that are tested.
LEAST_GUESSES, MOST_CHOICES = 4, 8
#: If fair coins give a count of included canaries with a smaller p-value, the design was another one.
FAIR = 1e-9
#: The search for ε stops here.
LARGEST_EPSILON = 100.0
#: How many thresholds are tried on the half that chooses.
THRESHOLDS = 50


def audit(  # noqa: PLR0913 - what is audited, how the canaries were drawn, and how they are judged
    certificate: str | os.PathLike[str] | Certificate,
    scores: Any,
    included: Any = None,
    *,
    runs: Literal["one", "many"] = "one",
    confidence: float = 0.95,
    guesses: tuple[int, int] | None = None,
    threshold: float | None = None,
    seed: int = 0,
) -> Audit:
    """Compare scores of canaries with a certificate: return a lower bound on ε at its δ, and whether they refute its curve.

    Args:
        certificate: A JSON file, or a certificate in memory.
        scores: A file (CSV, Parquet, npz) or a mapping with `score` and `included`, or the scores alone. A high score indicates
            that the canary took part.
        included: With the scores alone: whether each canary was included.
        runs: Whether the scores are of canaries of `one` run, each included by its own fair coin, or of `many` runs, one score
            from each.
        confidence: The confidence of the lower bound: a true certificate is refuted with probability at most 1 − `confidence`.
        guesses: For one run: the numbers of guesses for included and for excluded canaries, fixed in advance; by default several
            are tried, with a union bound.
        threshold: For many runs: the threshold of the attack, fixed in advance; by default it is chosen from a part of the runs.
        seed: The seed of that choice, and of the order of equal scores.

    `docs/auditing.md` explains how canaries are drawn. The result is true if the scores are consistent with the certificate,
    which proves nothing. Raises `CertificateError`, `TableError` and `DomainError`.

    ```python
    import pyaccount

    print(pyaccount.audit("training.cert.json", "examples/canaries.csv").to_text())
    ```
    """
    confidence = number_of("confidence", confidence, "greater than 0 and less than 1", 5e-324, 1.0)
    seed = whole_of("seed", seed, SEED)
    file = os.fsdecode(certificate) if isinstance(certificate, str | os.PathLike) else None
    data = (
        read_certificate(certificate).certificate() if isinstance(certificate, str | os.PathLike) else certificate.data
    )
    values, coins = scores_of(scores, included)
    asked = _Case(data, trade_off(data), 1.0 - confidence, seed)
    if runs == "one":
        if threshold is not None:
            raise DomainError(
                "`threshold` is only for many runs: leave it out; for one run `guesses` can fix the numbers of guesses"
            )
        tests = _one_run(asked, values, coins, guesses)
        several = None
        probability = min(1.0, len(tests) * min(test.probability for test in tests))
        epsilon_lower = max(test.epsilon_lower for test in tests)
        refuted = probability <= asked.level or epsilon_lower > data.guarantee.epsilon
    elif runs == "many":
        if guesses is not None:
            raise DomainError("`guesses` is only for one run: leave it out; for many runs a `threshold` can be fixed")
        tests, probability = (), None
        several = _many_runs(asked, values, coins, threshold)
        epsilon_lower = several.epsilon_lower
        refuted = _above(asked.curve, several) or epsilon_lower > data.guarantee.epsilon
    else:
        raise DomainError(f"runs = {quoted(runs)} is outside its domain: one or many")
    return Audit(
        pyaccount=1,
        kind="audit",
        file=file,
        name=data.name,
        document_sha256=data.document_sha256,
        verdict="refuted" if refuted else "consistent",
        confidence=confidence,
        failure_probability=failure_probability(data),
        runs=runs,
        canaries=len(values),
        included=int(coins.sum()),
        epsilon=data.guarantee.epsilon,
        delta=data.guarantee.delta,
        epsilon_lower=epsilon_lower,
        probability=probability,
        one_run=tests,
        many_runs=several,
        seed=seed,
        assumptions=_assumptions(data, runs, fixed=guesses is not None or threshold is not None),
        not_shown=NOT_SHOWN,
        notes=(REVERSED,) if _reversed(values, coins) else (),
    )


def _reversed(values: NDArray[np.float64], coins: NDArray[np.bool_]) -> bool:
    """Return whether included canaries have lower scores, by the rank test of Mann and Whitney."""
    if coins.all() or not coins.any():
        return False
    p_value: float = stats.mannwhitneyu(values[coins], values[~coins], alternative="less").pvalue
    return p_value < LEVEL_OF_REVERSED


class _Case(NamedTuple):
    """The certificate that is audited, its trade-off curve, and the level and seed of the audit."""

    data: CertificateModel
    curve: TradeOff
    level: float
    seed: int


# ---- one run


def _one_run(asked: _Case, *found: Any) -> tuple[OneRunTest, ...]:
    """Return the test of every choice of guesses."""
    values, coins, guesses = found
    count = int(coins.sum())
    if stats.binomtest(count, len(values)).pvalue < FAIR:
        raise DomainError(
            f"{count:_} of {len(values):_} canaries were included, which fair coins hardly ever give: with one run, "
            'each canary must be included by its own fair coin; if each score is from a separate run, use runs="many"'
        )
    sides = _choices(len(values)) if guesses is None else [_sides(guesses, len(values))]
    level = asked.level / len(sides)
    certified = Corners.of(asked.curve)
    return tuple(_tested(asked, certified, chosen_guesses(values, coins, one, asked.seed), level) for one in sides)


def _choices(canaries: int) -> list[tuple[int, int]]:
    """Return the choices, by the number of canaries alone: half of them on each side (or less), a quarter, …"""
    counts = [min(max(1, canaries // 2), MOST_GUESSES // 2)]
    while len(counts) < MOST_CHOICES and counts[-1] // 2 >= LEAST_GUESSES:
        counts.append(counts[-1] // 2)
    return [(one, min(one, canaries - one)) for one in counts]


def _sides(guesses: tuple[int, int], canaries: int) -> tuple[int, int]:
    most = min(canaries, MOST_GUESSES)
    allowed = f"two whole numbers from 0, together from 1 to {most:_}, for {canaries:_} canaries"
    try:
        included, excluded = guesses
        valid = min(included, excluded) >= 0 and 0 < included + excluded <= most
        if valid and not any(isinstance(side, bool) for side in guesses):
            return included.__index__(), excluded.__index__()
    except (TypeError, ValueError, AttributeError):
        pass
    raise DomainError(f"guesses = {quoted(guesses)} is outside its domain: {allowed}")


def _tested(asked: _Case, certified: Corners, guesses: Guesses, level: float) -> OneRunTest:
    """Test one choice: how improbable it is under the certificate, and which ε it refutes."""
    delta = asked.data.guarantee.delta

    def refuted(epsilon: float) -> bool:
        point = (Bound(epsilon, delta),)
        return impossible(PairCurve.of(Corners.of(TradeOff(point, point)), guesses), guesses, level)

    probability = by_curve(PairCurve.of(certified, guesses), guesses)
    return OneRunTest(guesses.included, guesses.excluded, guesses.right, probability, _largest(refuted))


def _largest(refuted: Callable[[float], bool]) -> float:
    """Return a refuted ε close to one that is not refuted, or 0 if not even that is. Every smaller ε is refuted too."""
    if not refuted(0.0):
        return 0.0
    below, above = 0.0, 1.0
    while above < LARGEST_EPSILON and refuted(above):
        below, above = above, 2.0 * above
    while above - below > 1e-4 * above:
        middle = 0.5 * (below + above)
        below, above = (middle, above) if refuted(middle) else (below, middle)
    return below


# ---- many runs


def _many_runs(
    asked: _Case, values: NDArray[np.float64], coins: NDArray[np.bool_], threshold: float | None
) -> ManyRunsTest:
    """Return a threshold and its error rates; unless given, half of the runs choose it and the rest are counted."""
    if threshold is not None:
        fixed = number_of("threshold", threshold, "a finite number", -math.inf, math.inf)
        if not math.isfinite(fixed):
            raise DomainError(f"threshold = {fixed} is outside its domain: a finite number")
        return _rated(asked, (values, coins), fixed, chosen=False)
    order = np.random.default_rng(asked.seed).permutation(len(values))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    candidates = np.unique(np.quantile(values[first], np.linspace(0.0, 1.0, THRESHOLDS))) if len(first) else np.zeros(1)
    half = (values[first], coins[first])
    best = max(candidates.tolist(), key=lambda t: _epsilon(asked, *_rates(asked, half, t)[2:], signed=True))
    return _rated(asked, (values[second], coins[second]), best, chosen=True)


def _rates(asked: _Case, scores: Scores, threshold: float) -> tuple[int, int, float, float]:
    """Return the errors of "included if the score is at least the threshold": counts, and bounds on the rates."""
    values, coins = scores
    guessed = values >= threshold
    false_positives, false_negatives = int((guessed & ~coins).sum()), int((~guessed & coins).sum())
    level = 0.5 * asked.level
    rates = (
        binomial_above(false_positives, int((~coins).sum()), level),
        binomial_above(false_negatives, int(coins.sum()), level),
    )
    return false_positives, false_negatives, *rates


def _rated(asked: _Case, scores: Scores, threshold: float, *, chosen: bool) -> ManyRunsTest:
    included = int(scores[1].sum())
    excluded = len(scores[1]) - included
    if included == 0 or excluded == 0:
        half = " in each half of them, since one half chooses the threshold" if chosen else ""
        raise DomainError(f"many runs must include runs with the canary and runs without it: give some of both{half}")
    false_positives, false_negatives, *rates = _rates(asked, scores, threshold)
    return ManyRunsTest(
        threshold=threshold,
        chosen_by_half=chosen,
        included=included,
        excluded=excluded,
        false_positives=false_positives,
        false_negatives=false_negatives,
        false_positive_rate=rates[0],
        false_negative_rate=rates[1],
        epsilon_lower=_epsilon(asked, *rates),
    )


def _epsilon(asked: _Case, false_positive: float, false_negative: float, *, signed: bool = False) -> float:
    """Return max(0, ln((1 − β − δ)/α), ln((1 − α − δ)/β)), a lower bound on ε, rounded down; `signed` omits the 0."""
    delta, bounds = asked.data.guarantee.delta, [-math.inf if signed else 0.0]
    for one, other in ((false_positive, false_negative), (false_negative, false_positive)):
        gap = (1.0 - other - delta) * (1.0 - 1e-12) - 1e-15
        if gap > 0.0:
            bounds.append(math.log(gap / one) * (1.0 - 1e-12))
    return max(bounds)


def _above(curve: TradeOff, found: ManyRunsTest) -> bool:
    """Return whether a pair of rates is above the certified curve, as a test for presence or for absence."""
    alpha, beta = found.false_positive_rate, found.false_negative_rate
    return any(
        (1.0 - other) * (1.0 - 1e-12) > side.true_positive_rate(one)
        for side, one, other in ((curve, alpha, beta), (curve.swapped, beta, alpha))
    )


# ---- words


def _assumptions(data: CertificateModel, runs: str, *, fixed: bool) -> tuple[str, ...]:
    """Return what must be true of the canaries for the verdict to hold."""
    privacy = data.privacy
    unit = "a user with all of its records" if privacy.unit == "user" else "a record"
    group = "" if privacy.group_size == 1 else f", or a group of up to {privacy.group_size} that is included as one"
    absent = {
        "add-remove": "one that is not included is absent",
        "zero-out": "in the place of one that is not included stands an empty record, which contributes zero",
        "replace-one": "in the place of one that is not included stands another record, fixed beforehand",
    }[privacy.adjacency]
    design = (
        "each canary was included by a fair coin of its own, tossed independently of the other coins, of the data and of all else"
        if runs == "one"
        else "every score comes from a run of its own, with its own randomness; nothing is common but what was fixed beforehand"
    )
    choice = {
        ("one", False): "how many canaries are guessed depends on their number alone (as here)",
        ("one", True): "the numbers of guesses were fixed before anybody looked at who was included",
        ("many", False): "the threshold was chosen by runs that are not counted (as here)",
        ("many", True): "the threshold was fixed before anybody looked at who was included",
    }[runs, fixed]
    return (
        f"a canary is {unit}{group} ({privacy.adjacency}); {absent}",
        design,
        "a canary's score follows from what the run released and from the canaries themselves, not from who was included",
        choice,
    )
