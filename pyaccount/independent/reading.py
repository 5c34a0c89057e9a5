"""What a sampled certificate is about: from its document to a process, or the reason why nothing can be drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from .bins import Bins
from .derived import SERIES, column, rounds_of
from .process import Process
from .shapes import JsonObject, agreed, at_least_one, exactly, filled_in, refused
from .spaced import SpacedRun

_KEYS = {
    "": "pyaccount kind name privacy accounting workload training sampler matrix noise",
    "training": "sampling_probability participation_rate dataset_size expected_batch_size iterations epochs",
    "sampler": "kind min_separation start bins",
    "noise": "kind multiplier",
}


def process(certificate: JsonObject) -> Process:
    """Return what is sampled. Raises `NotCheckableError` if the document is about anything else.

    Coefficients that are the result of a search are those that the certificate states: they are its claim.
    """
    document, claim = filled_in(certificate), (certificate.get("phases") or [{}])[0]
    for place, keys in _KEYS.items():
        unknown = set(document if not place else document.get(place) or {}) - set(keys.split())
        if unknown:
            raise refused(f"new samples of the key {sorted(unknown)[0]}")
    kind, noise, privacy = document["sampler"]["kind"], document["noise"], document["privacy"]
    if kind not in _KINDS or noise.get("kind", "gaussian") != "gaussian":
        raise refused(f"new samples of the sampler {kind}")
    if privacy["adjacency"] not in ("add-remove", "zero-out") or privacy.get("group_size", 1) != 1:
        raise refused("new samples under replace-one, or for groups")
    found, sigma = _KINDS[kind](document, claim), exactly(noise["multiplier"])
    if sigma <= 0 or found.rounds < 1:
        raise refused("new samples of these numbers")
    return found.with_noise(sigma)


def _spaced(document: JsonObject, claim: JsonObject) -> SpacedRun:
    sampler, training, bands = document["sampler"], document["training"], _bands(document)
    if bands is None:
        raise refused("new samples of b-min-sep sampling with a matrix without bands")
    b = at_least_one(sampler, "min_separation", bands)
    if bands > b or b > 10**5:
        raise refused(f"new samples of {bands} bands, of records that are {b} rounds apart")
    rates = _rates(training)
    if any(not 0 < rate * b < 1 for rate in rates):
        raise refused(f"new samples of a participation rate of 1/{b} or more")
    chances = [rate / (1 - rate * (b - 1)) for rate in rates]
    stated = training.get("sampling_probability")
    p = max([*chances, *([] if stated is None else [exactly(stated)])], default=Fraction(0))
    agreed([*rates, *([] if stated is None else [1 / (b - 1 + 1 / exactly(stated))])])
    if not 0 < p < 1:
        raise refused("new samples of the rate that the document states")
    rounds = rounds_of(training, b - 1 + 1 / p)
    warm = sampler.get("start", "warm") == "warm"
    return SpacedRun(rounds, b, p, warm, _coefficients(document, claim, rounds), Fraction(1))


def _bins(document: JsonObject, claim: JsonObject) -> Bins:
    rates = _rates(document["training"])
    usual = 1 / max(rates) if rates else Fraction(0)
    if document["training"].get("sampling_probability") is not None or (
        rates and abs(usual - round(usual)) > usual / 10**9
    ):
        raise refused("new samples of bins whose number is not stated")
    bins = at_least_one(document["sampler"], "bins", round(usual))
    if rates and round(usual) != bins:
        raise refused("new samples of bins that contradict the rate")
    rounds = rounds_of(document["training"], Fraction(bins))
    if bins > rounds:
        raise refused("more bins than rounds")
    if bins * bins * rounds > 100_000_000:
        raise refused(f"new samples of {bins} bins in {rounds} rounds")
    return Bins(rounds, bins, _coefficients(document, claim, rounds), Fraction(1))


_KINDS: Mapping[str, Callable[[JsonObject, JsonObject], Process]] = {"b-min-sep": _spaced, "balls-in-bins": _bins}


def _rates(training: JsonObject) -> list[Fraction]:
    rates = [exactly(training["participation_rate"])] if training.get("participation_rate") is not None else []
    if training.get("expected_batch_size") is not None and training.get("dataset_size") is not None:
        rates.append(exactly(training["expected_batch_size"]) / exactly(training["dataset_size"]))
    return rates


def _bands(document: JsonObject) -> int | None:
    """Return the number of bands of the matrix, or None if it is a series, whose columns end with the run."""
    matrix = document.get("matrix") or {"kind": "identity"}
    if matrix["kind"] in SERIES:
        return None
    return 1 if matrix["kind"] == "identity" else at_least_one(matrix, "bands", len(matrix.get("coefficients", ())))


def _coefficients(document: JsonObject, claim: JsonObject, rounds: int) -> tuple[Fraction, ...]:
    """Return the coefficients of C, rounded up to multiples of 2^−80."""
    unit = 1 << 80
    if rounds > 20_000 or (_bands(document) or 1) > rounds:
        raise refused("new samples of so many rounds, or of fewer rounds than bands")
    entries, norm = column(document.get("matrix"), claim, rounds)
    if min(entries) < 0:
        raise refused("new samples with a matrix that has negative entries")
    root = Fraction(math.isqrt(math.floor(norm * unit * unit)), unit)
    return tuple(Fraction(math.ceil(entry / root * unit), unit) for entry in entries)
