"""The rules that look at several fields of a document together, in the order in which their problems are told.

Each rule yields the problems it sees. A value that was reported already is neither a number, nor a blank, nor absent
(`None`), so that no rule asks for it or judges it. Which mechanisms can be analysed is not decided here but by the
plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.blanks import blank_batch_is_free, choices_compare_noise, one_blank
from pyaccount.document.epoch_rules import epochs_say_iterations, length_is_given
from pyaccount.document.matrix_rules import bands_fit, matrix_is_given, separation_covers_bands
from pyaccount.document.sampling_rules import SAMPLING_RULES, bins_are_whole, deterministic_order, rate_is_feasible
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.document import Document

_BODY_RULES = (
    length_is_given,
    epochs_say_iterations,
    bands_fit,
    matrix_is_given,
    separation_covers_bands,
    rate_is_feasible,
    bins_are_whole,
    *SAMPLING_RULES,
    blank_batch_is_free,
    deterministic_order,
)


def broken_rules(document: Document) -> Iterator[Problem]:
    """Every problem of the document's fields taken together."""
    yield from one_blank(document)
    yield from choices_compare_noise(document)
    for body in document.bodies:
        for rule in _BODY_RULES:
            yield from rule(document, body)
