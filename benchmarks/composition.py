"""Composition speed, side by side in one run: pyaccount, dp_accounting 0.6 and prv_accountant 0.2.

Each row is a setting and a peer. Outside the timed part, pyaccount's tolerance is tightened until its interval is at least
as tight as what the peer returns; then both compute the answer again and again in turn, from the bare parameters each
time. Times never fail the run: it prints whether each target is met and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution
from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant
from rich.console import Console
from rich.table import Table
from scipy import stats

from pyaccount import _core

DELTA = 1e-6
#: Grid of dp_accounting: its default, and a coarser one for mixtures, whose losses span hundreds of nats.
POISSON_GRID = 1e-4
MIXTURE_GRID = 1e-3
#: prv_accountant's promise on δ, a thousandth of the δ asked for, as its documentation advises.
DELTA_ERROR = 1e-9
EPS_ERRORS = (0.1, 0.01)
#: pyaccount is timed this often for each time of the peer: its times are short and therefore noisy.
CALLS = 3
#: A peer slower than this is repeated less often.
SLOW_SECONDS = 5.0
LOOSEST_TOLERANCE = 0.1
TIGHTEST_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Setting:
    """Rounds of Poisson sampling with `group_size` records protected together."""

    sampling_probability: float
    noise_multiplier: float
    rounds: int
    group_size: int = 1

    @property
    def label(self) -> str:
        group = "" if self.group_size == 1 else f", k={self.group_size}"
        return f"p={self.sampling_probability:g}, σ={self.noise_multiplier:g}, n={self.rounds}{group}"


POISSON = (Setting(0.01, 1.0, 2_000), Setting(0.01, 0.5, 2_000), Setting(0.001, 0.8, 100_000))
MIXTURES = tuple(Setting(0.01, 1.0, 2_000, group_size) for group_size in (2, 8, 32))


@dataclass(frozen=True)
class Bounds:
    """What an accountant says about ε; no lower end when it offers none."""

    lower: float | None
    upper: float

    def __str__(self) -> str:
        return f"≤ {self.upper:.8f}" if self.lower is None else f"[{self.lower:.8f}, {self.upper:.8f}]"


@dataclass(frozen=True)
class Contest:
    """A peer in a setting, and how much faster pyaccount is meant to be."""

    setting: Setting
    peer: str
    target: float
    run: Callable[[], Bounds]


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return low, high

    def __str__(self) -> str:
        unit, scale = ("s", 1.0) if self.median >= 1.0 else ("ms", 1e3)
        low, middle, high = (f"{scale * value:.3g}" for value in (self.quartiles[0], self.median, self.quartiles[1]))
        return f"{middle} {unit} ({low}–{high})"


@dataclass(frozen=True)
class Row:
    """The outcome of one contest."""

    contest: Contest
    peer_bounds: Bounds
    bounds: Bounds
    tolerance: float
    as_tight: bool
    peer_time: Timing
    time: Timing
    time_one_thread: Timing

    @property
    def ratio(self) -> float:
        return self.peer_time.median / self.time.median

    @property
    def met(self) -> bool:
        return self.as_tight and self.ratio >= self.contest.target

    def record(self) -> dict[str, Any]:
        return {
            "setting": asdict(self.contest.setting),
            "delta": DELTA,
            "peer": self.contest.peer,
            "peer_epsilon": asdict(self.peer_bounds),
            "pyaccount_epsilon": asdict(self.bounds),
            "pyaccount_tolerance": self.tolerance,
            "as_tight": self.as_tight,
            "peer_seconds": self.peer_time.samples,
            "pyaccount_seconds": self.time.samples,
            "pyaccount_seconds_one_thread": self.time_one_thread.samples,
            "ratio_of_medians": self.ratio,
            "target_ratio": self.contest.target,
            "met": self.met,
        }


def pyaccount_bounds(setting: Setting, tolerance: float, threads: int) -> Bounds:
    """ε by pyaccount, both directions, profiles built anew."""
    directions = [
        _core.RoundProfile.poisson(
            setting.group_size,
            setting.sampling_probability,
            setting.noise_multiplier,
            two_sided=False,
            reverse=reverse,
        )
        for reverse in (False, True)
    ]
    questions = [([(profile, setting.rounds)], None, DELTA, tolerance) for profile in directions]
    intervals = _core.answer_all(questions, threads=threads)
    return Bounds(max(i.lower for i in intervals), max(i.upper for i in intervals))


def dp_accounting_bounds(setting: Setting) -> Bounds:
    """ε by dp_accounting's pessimistic connect-the-dots PLD, both directions."""
    if setting.group_size == 1:
        single = privacy_loss_distribution.from_gaussian_mechanism(
            setting.noise_multiplier,
            sampling_prob=setting.sampling_probability,
            value_discretization_interval=POISSON_GRID,
        )
    else:
        records = np.arange(setting.group_size + 1)
        probabilities = stats.binom.pmf(records, setting.group_size, setting.sampling_probability)
        single = privacy_loss_distribution.from_mixture_gaussian_mechanism(
            setting.noise_multiplier,
            sensitivities=records.tolist(),
            sampling_probs=probabilities.tolist(),
            value_discretization_interval=MIXTURE_GRID,
        )
    return Bounds(None, float(single.self_compose(setting.rounds).get_epsilon_for_delta(DELTA)))


def prv_accountant_bounds(setting: Setting, eps_error: float) -> Bounds:
    """ε by prv_accountant, which computes the remove direction only."""
    mechanism = PoissonSubsampledGaussianMechanism(
        sampling_probability=setting.sampling_probability, noise_multiplier=setting.noise_multiplier
    )
    accountant = PRVAccountant(
        prvs=[mechanism], eps_error=eps_error, delta_error=DELTA_ERROR, max_self_compositions=[setting.rounds]
    )
    lower, _, upper = accountant.compute_epsilon(delta=DELTA, num_self_compositions=[setting.rounds])
    return Bounds(float(lower), float(upper))


def contests() -> list[Contest]:
    """Every row of the table."""

    def dp(setting: Setting, target: float) -> Contest:
        grid = POISSON_GRID if setting.group_size == 1 else MIXTURE_GRID
        return Contest(setting, f"dp_accounting, grid {grid:g}", target, lambda: dp_accounting_bounds(setting))

    def prv(setting: Setting, eps_error: float) -> Contest:
        peer = f"prv_accountant, eps_error {eps_error:g}"
        return Contest(setting, peer, 200.0, lambda: prv_accountant_bounds(setting, eps_error))

    return [
        *(dp(setting, 10.0) for setting in POISSON),
        *(prv(setting, eps_error) for setting in POISSON for eps_error in EPS_ERRORS),
        *(dp(setting, 100.0) for setting in MIXTURES),
    ]


def at_least_as_tight(ours: Bounds, peer: Bounds) -> bool:
    """Whether pyaccount's interval gives away no more than the peer's answer does.

    Against an upper bound alone: the upper end is no higher. Against an interval: it is no wider.
    """
    if ours.lower is None or peer.lower is None:
        return ours.upper <= peer.upper * (1.0 + 1e-9)
    return ours.upper - ours.lower <= peer.upper - peer.lower


def fair_tolerance(setting: Setting, peer: Bounds, threads: int) -> tuple[float, Bounds, bool]:
    """The loosest tolerance on a grid of half decades that makes pyaccount at least as tight as the peer.

    Returns it with pyaccount's answer there and whether it is as tight; the tightest step when none is.
    """
    step = 0
    while True:
        tolerance = LOOSEST_TOLERANCE * 10.0 ** (-0.5 * step)
        ours = pyaccount_bounds(setting, tolerance, threads)
        as_tight = at_least_as_tight(ours, peer)
        if as_tight or tolerance <= TIGHTEST_TOLERANCE:
            return tolerance, ours, as_tight
        step += 1


def clock(work: Callable[[], Bounds]) -> tuple[Bounds, float]:
    """The result of `work` and the seconds it took."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def compete(contest: Contest, repeats: int, threads: int) -> Row:
    """Run one contest: the peer once for its answer, then both in turn."""
    peer_bounds, warm_up = clock(contest.run)
    tolerance, bounds, as_tight = fair_tolerance(contest.setting, peer_bounds, threads)
    peer: list[float] = []
    ours: list[float] = []
    ours_one_thread: list[float] = []
    for _ in range(repeats if warm_up < SLOW_SECONDS else min(repeats, 3)):
        peer.append(clock(contest.run)[1])
        for _ in range(CALLS):
            ours.append(clock(lambda: pyaccount_bounds(contest.setting, tolerance, threads))[1])
            ours_one_thread.append(clock(lambda: pyaccount_bounds(contest.setting, tolerance, 1))[1])
    return Row(
        contest,
        peer_bounds,
        bounds,
        tolerance,
        as_tight,
        Timing(tuple(peer)),
        Timing(tuple(ours)),
        Timing(tuple(ours_one_thread)),
    )


def print_tables(rows: list[Row], threads: int) -> None:
    """The answers compared, then the times."""
    console = Console(width=160)
    answers = Table(title=f"What is compared: ε at δ = {DELTA:g}", title_justify="left")
    for heading in ("setting", "peer", "peer's answer", "pyaccount's interval", "tolerance", "as tight"):
        answers.add_column(heading)
    for row in rows:
        answers.add_row(
            row.contest.setting.label,
            row.contest.peer,
            str(row.peer_bounds),
            str(row.bounds),
            f"{row.tolerance:.1e}",
            "yes" if row.as_tight else "no",
        )
    console.print(answers)
    times = Table(title="Times: median (first–third quartile)", title_justify="left")
    times.add_column("setting")
    times.add_column("peer")
    headings = ("peer's time", f"pyaccount, {threads} threads", "pyaccount, 1 thread", "ratio", "target", "met")
    for heading in headings:
        times.add_column(heading, justify="right")
    for row in rows:
        times.add_row(
            row.contest.setting.label,
            row.contest.peer,
            str(row.peer_time),
            str(row.time),
            str(row.time_one_thread),
            f"{row.ratio:.0f}×",
            f"{row.contest.target:.0f}×",
            "met" if row.met else "not met",
        )
    console.print(times)


def main() -> None:
    """Run every contest and print the tables."""
    parser = argparse.ArgumentParser(description="Time pyaccount beside its peers.")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each contest (3 for slow peers)")
    parser.add_argument("--threads", type=int, default=2, help="pyaccount's threads")
    parser.add_argument("--only", default="", help="run only the contests whose setting or peer contains this text")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the raw numbers")
    arguments = parser.parse_args()
    rows = []
    for contest in contests():
        name = f"{contest.setting.label} against {contest.peer}"
        if arguments.only in name:
            print(f"{name} …", file=sys.stderr, flush=True)
            rows.append(compete(contest, max(arguments.repeats, 2), arguments.threads))
    print_tables(rows, arguments.threads)
    if arguments.json is not None:
        record = {"threads": arguments.threads, "rows": [row.record() for row in rows]}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
