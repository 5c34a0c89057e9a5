"""Profiles of stated guarantees, of pairs of finite laws, and of selections with a bounded range of losses."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

from pyaccount import _core
from pyaccount.profiles.base import ProfileKind, Rounds, counted


@dataclass(frozen=True, slots=True)
class GuaranteesProfile(ProfileKind):
    """The pair that attains the lower convex hull of points (ε, δ); for one point that of Kairouz, Oh & Viswanath."""

    constructor: ClassVar[str] = "guarantees"
    called: ClassVar[str | None] = "a mechanism of which only (ε, δ) is known"
    without_divergence: ClassVar[str] = ": with a δ above 0 its divergences may be infinite"

    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class RenyiProfile(ProfileKind):
    """The profile that follows from bounds on Rényi divergences of some orders, in nats."""

    constructor: ClassVar[str] = "renyi"
    called: ClassVar[str | None] = "a mechanism of which only Rényi divergences are known"
    without_divergence: ClassVar[str] = ": no divergence of this order or a larger one is stated"
    has_losses: ClassVar[bool] = False

    orders: tuple[float, ...]
    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ZcdpProfile(ProfileKind):
    """The profile that follows from the bound aρ on the Rényi divergence of every order a."""

    constructor: ClassVar[str] = "zcdp"
    called: ClassVar[str | None] = "a mechanism of which only ρ is known"
    has_losses: ClassVar[bool] = False

    rho: float


@dataclass(frozen=True, slots=True)
class FiniteProfile(ProfileKind):
    """The law p against q, on the same outcomes, with a relative error of each probability."""

    constructor: ClassVar[str] = "finite"
    called: ClassVar[str | None] = "a mechanism with finitely many outcomes"

    p: tuple[float, ...]
    q: tuple[float, ...]
    relative_error: float = 0.0
    reverse: bool = False


def added(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with one profile for all that are known by their Rényi divergences.

    The divergence of a composition, adaptive or not, is at most the sum of those of its rounds (Bun & Steinke 2016, Lemma
    2.2; Mironov 2017). If only divergences of some orders are known for a round, the sum is known for the orders that all
    have; rounds without a common order stay separate.
    """
    concentrated = [(item.profile.rho, item.count) for item in rounds if isinstance(item.profile, ZcdpProfile)]
    listed = [(item.profile, item.count) for item in rounds if isinstance(item.profile, RenyiProfile)]
    kinds = len(concentrated) + len(listed)
    if kinds == 0 or (kinds == 1 and sum(count for _, count in (*concentrated, *listed)) == 1):
        return rounds
    rho = math.fsum(count * one for one, count in concentrated)
    tables = [dict(zip(one.orders, one.bounds, strict=True)) for one, _ in listed]
    orders = sorted(set.intersection(*map(set, tables))) if tables else []
    if listed and not orders:
        return rounds
    # The sums err by less than two units of rounding.
    up = 1.0 + 2.0 * sys.float_info.epsilon
    together: ProfileKind = ZcdpProfile(rho * up)
    if listed:
        totals = [
            (rho * a + math.fsum(count * table[a] for (_, count), table in zip(listed, tables, strict=True))) * up * up
            for a in orders
        ]
        together = RenyiProfile(tuple(orders), tuple(totals))
    rest = (item for item in rounds if not isinstance(item.profile, ZcdpProfile | RenyiProfile))
    return counted([*rest, Rounds(together, 1)])


@dataclass(frozen=True, slots=True)
class ExponentialProfile(ProfileKind):
    """The worst pair of laws whose losses lie in an interval of this length."""

    constructor: ClassVar[str] = "exponential"
    called: ClassVar[str | None] = "a selection of bounded range"

    range: float


@dataclass(frozen=True, slots=True)
class ExponentialRunsProfile(ProfileKind):
    """The worst of several such runs, each of which may depend on the earlier ones."""

    constructor: ClassVar[str] = "exponential_runs"
    called: ClassVar[str | None] = "selections of bounded range"

    range: float
    runs: int


def in_blocks(rounds: tuple[Rounds, ...]) -> tuple[Rounds, ...]:
    """Return the rounds with mechanisms of one bounded range in blocks of as many runs as the core bounds together.

    The profile of a block of k runs is the supremum over all choices of the two-point losses of each run, which may depend on
    what was released before. Composed with all other rounds, blocks of the same and of other ranges among them, it bounds the
    runs in any order with them; the proof is at the head of `rust/core/src/pair/exponential_runs.rs`. The composition of k
    single runs bounds them too, but loosely, because no choice is the worst for every ε at once.
    """
    runs: dict[float, int] = {}
    rest = []
    for item in rounds:
        match item.profile:
            case ExponentialProfile(bound):
                runs[bound] = runs.get(bound, 0) + item.count
            case ExponentialRunsProfile(bound, each):
                runs[bound] = runs.get(bound, 0) + each * item.count
            case _:
                rest.append(item)
    if not any(count > 1 for count in runs.values()):
        return rounds
    for bound, count in runs.items():
        most = _core.most_exponential_runs(bound)
        whole, left = divmod(count, most)
        rest += [
            Rounds(ExponentialProfile(bound) if each == 1 else ExponentialRunsProfile(bound, each), number)
            for each, number in ((most, whole), (left, 1))
            if number * each
        ]
    return counted(rest)
