"""What a sampled certificate is about: from its document to a process, or the reason why nothing can be drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from .bins import Bins
from .derived import SERIES, column
from .process import Process
from .shapes import JsonObject, exactly, filled_in, refused
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
    coefficients, training = _coefficients(document, claim), document["training"]
    matrix = document.get("matrix") or {"kind": "identity"}
    if document["sampler"].get("min_separation") is None and matrix["kind"] in SERIES:
        raise refused("a sampler without min_separation and a matrix without bands")
    b = _whole(document, claim, "min_separation", len(coefficients))
    warm = document["sampler"].get("start", "warm")
    if len(coefficients) > b or warm not in ("warm", "cold"):
        raise refused(f"new samples of more bands than {b}, or the start {warm!r}")
    rates = _rates(training)
    if any(not 0 < rate * b < 1 for rate in rates):
        raise refused(f"new samples of a participation rate of 1/{b} or more")
    chances = [rate / (1 - rate * (b - 1)) for rate in rates]
    stated = training.get("sampling_probability")
    p = max([*chances, *([] if stated is None else [exactly(stated)])], default=Fraction(0))
    if not 0 < p < 1:
        raise refused("new samples of the rate that the document states")
    rounds = _rounds(training, b - 1 + 1 / p)
    if b > 10**5:
        raise refused(f"new samples of records that are {b} rounds apart")
    return SpacedRun(rounds, b, p, warm == "warm", coefficients[:rounds], Fraction(1))


def _bins(document: JsonObject, claim: JsonObject) -> Bins:
    rates = _rates(document["training"])
    usual = 1 / max(rates) if rates else Fraction(0)
    if document["training"].get("sampling_probability") is not None or (
        rates and abs(usual - round(usual)) > usual / 10**9
    ):
        raise refused("new samples of bins whose number is not stated")
    bins = _whole(document, claim, "bins", round(usual))
    if rates and round(usual) != bins:
        raise refused("new samples of bins that contradict the rate")
    rounds, bands = _rounds(document["training"], Fraction(bins)), _coefficients(document, claim)
    if bins * bins * rounds > 100_000_000:
        raise refused(f"new samples of {bins} bins in {rounds} rounds")
    return Bins(rounds, bins, bands[:rounds], Fraction(1))


_KINDS: Mapping[str, Callable[[JsonObject, JsonObject], Process]] = {"b-min-sep": _spaced, "balls-in-bins": _bins}


def _whole(document: JsonObject, claim: JsonObject, key: str, otherwise: int) -> int:
    stated = document["sampler"].get(key)
    number = exactly(otherwise if stated is None else stated)
    if number < 1 or number.denominator != 1:
        raise refused(f"new samples of {key} {float(number)!r}")
    return int(number)


def _rates(training: JsonObject) -> list[Fraction]:
    rates = [exactly(training["participation_rate"])] if training.get("participation_rate") is not None else []
    if training.get("expected_batch_size") is not None and training.get("dataset_size") is not None:
        rates.append(exactly(training["expected_batch_size"]) / exactly(training["dataset_size"]))
    return rates


def _rounds(training: JsonObject, epoch: Fraction) -> int:
    if training.get("iterations") is not None:
        if training.get("epochs") is not None:
            raise refused("iterations beside epochs")
        rounds = exactly(training["iterations"])
        if rounds.denominator != 1:
            raise refused(f"new samples of {float(rounds)!r} iterations")
        return int(rounds)
    return math.ceil(exactly(training["epochs"]) * epoch)


def _coefficients(document: JsonObject, claim: JsonObject) -> tuple[Fraction, ...]:
    """Return the coefficients of C, rounded up to multiples of 2^−80."""
    unit, matrix, rounds = 1 << 80, document.get("matrix"), _rounds(document["training"], Fraction(10**5))
    if rounds > 20_000 or exactly((matrix or {}).get("bands", 1)) > rounds:
        raise refused("new samples of so many rounds, or of fewer rounds than bands")
    entries, norm = column(matrix, claim, rounds)
    if min(entries) < 0:
        raise refused("new samples with a matrix that has negative entries")
    root = Fraction(math.isqrt(math.floor(norm * unit * unit)), unit)
    return tuple(Fraction(math.ceil(entry / root * unit), unit) for entry in entries)
