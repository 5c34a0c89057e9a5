"""Reads scores of canaries, and whether each was included, from a file or from arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyaccount.errors import DomainError
from pyaccount.tables import blocks, csv_line, refuse_cell

COLUMNS = ("score", "included")
#: The words in a table for whether a canary was included.
WORDS = {"1": True, "0": False, "true": True, "false": False, "yes": True, "no": False}
#: The most canaries of an audit.
MOST_CANARIES = 10**6

Scores = tuple[NDArray[np.float64], NDArray[np.bool_]]


def scores_of(scores: Any, included: Any = None) -> Scores:
    """Return scores and whether each canary was included, from a CSV, Parquet or npz file, a mapping, or two sequences.

    Raises `TableError` with the line of the error, `DomainError`, or `MissingExtraError`.
    """
    file = os.fsdecode(scores) if isinstance(scores, str | os.PathLike) else None
    if file is not None:
        if included is not None:
            raise DomainError("a file of scores also says who was included: leave out `included`")
        if Path(file).suffix.lower() == ".npz":
            return _checked(*_npz(file), file)
        return _checked(*_columns(file), file)
    if included is None:
        try:
            scores, included = (scores[column] for column in COLUMNS)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DomainError(
                "scores must be a file, a mapping with score and included, or the scores, with `included` as a second argument"
            ) from error
    return _checked(np.asarray(scores), np.asarray(included), None)


def _npz(file: str) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as held:
            missing = [column for column in COLUMNS if column not in held.files]
            if missing:
                refuse_cell(file, f"the archive contains no array {missing[0]}: it contains {', '.join(held.files)}")
            first, second = (held[column] for column in COLUMNS)
            return first, second
    except (OSError, ValueError, EOFError) as error:
        refuse_cell(file, f"cannot be read as an npz archive of arrays: {error}")


def _columns(file: str) -> tuple[list[Any], list[Any]]:
    scores: list[Any] = []
    included: list[Any] = []
    for block in blocks(file, COLUMNS):
        scores += _plain(block[0])
        included += _plain(block[1])
        if len(scores) > MOST_CANARIES:
            refuse_cell(file, f"an audit takes at most {MOST_CANARIES:_} canaries")
    return scores, included


def _checked(scores: Sequence[Any] | NDArray[Any], included: Sequence[Any] | NDArray[Any], file: str | None) -> Scores:
    """Return scores and truth values as arrays, after checking that they are valid and equally many."""
    if np.ndim(scores) != 1 or np.ndim(included) != 1 or len(scores) != len(included):
        raise DomainError("scores and included must be two lists of the same length")
    if len(scores) > MOST_CANARIES:
        raise DomainError(f"an audit takes at most {MOST_CANARIES:_} canaries")
    if len(scores) == 0:
        refuse_cell(file, "there are no canaries: give a row for each, with its score and whether it was included")
    numbers = np.empty(len(scores), dtype=np.float64)
    coins = np.empty(len(scores), dtype=np.bool_)
    for row, (score, coin) in enumerate(zip(_plain(scores), _plain(included), strict=True)):
        number, word = _number(score), _truth(coin)
        if number is None:
            _wrong(file, row, "score", "a score must be a finite number", score)
        if word is None:
            _wrong(file, row, "included", f"whether a canary was included must be one of {', '.join(WORDS)}", coin)
        numbers[row], coins[row] = number, word
    return numbers, coins


def _plain(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return WORDS.get(value.strip().lower())
    return bool(value) if isinstance(value, bool | int | float) and value in (0, 1) else None


def _wrong(file: str | None, row: int, column: str, message: str, value: object) -> None:
    line = None if file is None or file.lower().endswith(".npz") else csv_line(file, row)
    refuse_cell(
        file, message if line is not None else f"row {row + 1}: {message}", line=line, column=column, value=value
    )
