"""The rules that look at several fields of a document together, in the order in which their problems are told.

Each rule yields the problems it sees; those about a kind of sampler or matrix are the kind's own. A value that was reported
already is neither a number, nor a blank, nor absent (`None`), so that no rule asks for it or judges it. Which mechanisms can
be analysed is not decided here but by the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.blanks import choices_compare_noise, one_blank, searches_have_a_target
from pyaccount.document.epoch_rules import epochs_say_iterations, length_is_given
from pyaccount.document.pure import losses_are_bounded
from pyaccount.document.risk import one_budget, one_target
from pyaccount.document.workload import workload_problems
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def broken_rules(document: Mechanism) -> Iterator[Problem]:
    """Every problem of the document's fields taken together."""
    yield from one_target(document)
    yield from one_budget(document)
    yield from losses_are_bounded(document)
    yield from one_blank(document)
    yield from choices_compare_noise(document)
    yield from searches_have_a_target(document)
    for body in document.bodies:
        yield from length_is_given(document, body)
        yield from epochs_say_iterations(document, body)
        yield from body.matrix.problems(document, body)
        yield from body.sampler.problems(document, body)
        yield from workload_problems(document, body, body.workload)
