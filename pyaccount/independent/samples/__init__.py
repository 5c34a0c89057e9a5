"""A fresh test of a guarantee that no bound without samples proves: of b-min-sep sampling, and of balls in bins.

Takes a run of a normal form, and the ε and δ of its claim; gives what became of the tests of both directions. The checker
imports it only where nothing else proves a claim, and nothing that it proves without samples depends on it. Reading order:
process, normals and bets (exact laws, and what is bet on), spaced with tuples and ratio, and bins (two samplers), means (added
records), fresh (the test).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from ..columns import column
from ..form import FormPart, refused
from .bins import Bins
from .fresh_test import ClaimUnderTest, Tested, fresh
from .normals import source
from .process import Process
from .spaced import SpacedRun

if TYPE_CHECKING:
    from ..verdict import ProofLimits


def _process_of(run: FormPart) -> Process:
    """Return what is sampled. Raises `NotCheckableError` for what these samples do not cover."""
    sampler, rounds, unit = run["sampler"], run["rounds"], 1 << 80
    if rounds > 20_000 or len(run["noise"]) > 1:
        raise refused("samples of so many rounds, or of several releases")
    entries, norm = column(run["matrix"], rounds)
    if min(entries) < 0:
        raise refused("samples with a matrix that has negative entries")
    root = Fraction(math.isqrt(math.floor(norm * unit * unit)), unit)
    coefficients = tuple(Fraction(math.ceil(entry / root * unit), unit) for entry in entries)
    if sampler["kind"] == "bins":
        bins = sampler["bins"]
        if bins * bins * rounds > 100_000_000 or bins > rounds:
            raise refused(f"samples of {bins} bins in {rounds} rounds")
        return Bins(rounds, bins, coefficients, run["noise"][0])
    b, p = sampler["separation"], sampler["probability"]
    if len(entries) > b or b > 10**5 or p == 1:
        raise refused(f"samples of {len(entries)} bands, of records that are {b} rounds apart")
    return SpacedRun(rounds, b, p, sampler["start"] == "warm", coefficients, run["noise"][0])


def tested(run: FormPart, epsilon: Fraction, delta: Fraction, limits: ProofLimits) -> list[Tested]:
    """Return what became of the tests of both directions; the second is made only if the first is proven."""
    random_bytes = source(limits.seed)
    return fresh(_process_of(run), ClaimUnderTest(epsilon, delta, random_bytes, limits.seconds, limits.log), {})
