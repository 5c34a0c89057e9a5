"""The rules that look at several fields of a document together.

Each rule yields the problems it sees. A value that was reported already is neither a number, nor a blank, nor absent
(`None`), so that no rule asks for it or judges it. Which mechanisms can be analysed is not decided here but by the
plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.fields import BLANKS, SOLVE
from pyaccount.document.ranges import RATE_AGREEMENT
from pyaccount.document.rates import RATE_FIELDS, number, stated_rates
from pyaccount.document.samplers import Deterministic, FixedSize, Poisson
from pyaccount.document.views import Body
from pyaccount.errors import Path, Problem, path_text

if TYPE_CHECKING:
    from pyaccount.document.document import Document

# The most by which a rate times the data set may miss a whole number, whatever the data set's size, and what the
# rounding of the product adds to it.
_WHOLE, _ROUNDING = 1e-3, 1e-15


def broken_rules(document: Document) -> Iterator[Problem]:
    """Every problem of the document's fields taken together."""
    yield from one_blank(document)
    for body in document.bodies:
        for rule in _BODY_RULES:
            yield from rule(document, body)


def blanks(document: Document) -> list[Path]:
    """The paths of the document's blanks, in the order of the text."""
    privacy = [path for path in BLANKS if path[0] == "privacy"]
    found: list[Path] = [path for path in privacy if getattr(document.privacy, path[1]) == SOLVE]
    for body in document.bodies:
        for section, field in BLANKS:
            if section != "privacy" and getattr(getattr(body, section), field, None) == SOLVE:
                found.append(body.at(section, field))
    return sorted(found, key=document.position)


def one_blank(document: Document) -> Iterator[Problem]:
    """A document has one blank, or none."""
    found = blanks(document)
    for extra in found[1:]:
        others = " and ".join(path_text(path) for path in found if path != extra)
        verb = "is" if len(found) == 2 else "are"
        message = f"a document has at most one blank, and {others} {verb} solve too"
        yield document.problem("several-blanks", extra, message, allowed="a number")


def rate_is_given(document: Document, body: Body) -> Iterator[Problem]:
    """Poisson and fixed-size sampling need to know how much of the data set joins a round."""
    training = body.training
    given = [training.expected_batch_size, *(getattr(training, field) for field in RATE_FIELDS)]
    if any(value is not None for value in given):
        return
    if isinstance(body.sampler, Poisson):
        message = (
            "Poisson sampling needs its rate: give sampling_probability, participation_rate, "
            "or expected_batch_size together with dataset_size"
        )
        yield document.problem("missing-key", body.at("training", "sampling_probability"), message)
    elif isinstance(body.sampler, FixedSize):
        message = "fixed-size sampling needs the size of its batches: give expected_batch_size"
        yield document.problem("missing-key", body.at("training", "expected_batch_size"), message)


def dataset_size_is_given(document: Document, body: Body) -> Iterator[Problem]:
    """A batch is a rate only in proportion to the data set."""
    training = body.training
    batch = training.expected_batch_size
    reason = None
    if isinstance(body.sampler, FixedSize):
        reason = "fixed-size sampling draws from a known number of records"
    elif isinstance(body.sampler, Poisson) and batch == SOLVE:
        reason = "an expected batch size can be solved for only with a known number of records"
    elif isinstance(body.sampler, Poisson) and batch is not None:
        without_rate = all(getattr(training, field) is None for field in RATE_FIELDS)
        reason = "expected_batch_size gives the sampling rate only together with it" if without_rate else None
    if reason is not None and training.dataset_size is None:
        message = f"dataset_size is required: {reason}"
        yield document.problem("missing-key", body.at("training", "dataset_size"), message)


def batch_fits(document: Document, body: Body) -> Iterator[Problem]:
    """No round has more records than there are."""
    batch, records = number(body.training.expected_batch_size), number(body.training.dataset_size)
    if batch is not None and records is not None and batch > records:
        message = f"a batch of {batch:.17g} is larger than the data set, which has {records:.17g} records"
        yield document.problem("contradiction", body.at("training", "expected_batch_size"), message)


def batch_is_whole(document: Document, body: Body) -> Iterator[Problem]:
    """Fixed-size sampling draws a whole number of records, at least one."""
    training = body.training
    records = number(training.dataset_size)
    if not isinstance(body.sampler, FixedSize):
        return
    batch = number(training.expected_batch_size)
    if batch is not None:
        if batch != round(batch):
            message = "fixed-size sampling draws a whole number of records"
            yield document.problem("fractional-batch", body.at("training", "expected_batch_size"), message)
        return
    if records is None or training.expected_batch_size is not None:
        return
    for field, rate in stated_rates(training).items():
        drawn = rate * records
        if round(drawn) == 0 or abs(drawn - round(drawn)) > min(RATE_AGREEMENT * records, _WHOLE + _ROUNDING * drawn):
            message = (
                f"fixed-size sampling draws a whole number of records, at least one, "
                f"but this share of {records:_} records is {drawn:.10g}; give expected_batch_size instead"
            )
            yield document.problem("fractional-batch", body.at("training", field), message)


def rates_agree(document: Document, body: Body) -> Iterator[Problem]:
    """A rate that is given in several ways is the same in all."""
    if not isinstance(body.sampler, Poisson | FixedSize):
        return
    rates = {body.at("training", field): rate for field, rate in stated_rates(body.training).items()}
    paths = sorted(rates, key=document.position)
    for path in paths[1:]:
        first, rate = paths[0], rates[path]
        if not math.isclose(rate, rates[first], rel_tol=RATE_AGREEMENT):
            batch = " with dataset_size"
            message = (
                f"this gives a rate of {rate:.12g}{batch if path[-1] == 'expected_batch_size' else ''}, but "
                f"{first[-1]}{batch if first[-1] == 'expected_batch_size' else ''} gives {rates[first]:.12g}"
            )
            yield document.problem("contradiction", path, message)


def blank_batch_is_free(document: Document, body: Body) -> Iterator[Problem]:
    """An expected batch size can be solved for if nothing else fixes it and there is sampling."""
    if body.training.expected_batch_size != SOLVE:
        return
    if isinstance(body.sampler, Deterministic):
        message = "a deterministic order has no batch size to solve for: the guarantee does not depend on it"
        yield document.problem("contradiction", body.at("training", "expected_batch_size"), message)
        return
    for field in RATE_FIELDS:
        if number(getattr(body.training, field)) is not None:
            message = "expected_batch_size is to be solved, which this would fix"
            yield document.problem("contradiction", body.at("training", field), message)


def deterministic_order(document: Document, body: Body) -> Iterator[Problem]:
    """What a deterministic order cannot have."""
    if not isinstance(body.sampler, Deterministic):
        return
    for field in RATE_FIELDS:
        if number(getattr(body.training, field)) is not None:
            message = f"a deterministic order has no {field.replace('_', ' ')}"
            yield document.problem("contradiction", body.at("training", field), message)
    most, rounds = number(body.sampler.max_participations), number(body.training.iterations)
    if most is not None and rounds is not None and most > rounds:
        message = f"no record can take part more often than there are rounds, which are {rounds:_}"
        yield document.problem("contradiction", body.at("sampler", "max_participations"), message)


_BODY_RULES = (
    rate_is_given,
    dataset_size_is_given,
    batch_fits,
    batch_is_whole,
    rates_agree,
    blank_batch_is_free,
    deterministic_order,
)
