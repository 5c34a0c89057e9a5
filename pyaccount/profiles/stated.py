"""Profiles that follow from what is stated of a mechanism, and pairs of finite laws."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

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
