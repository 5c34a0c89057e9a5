"""The rules about how batches are drawn: rates, sizes, bins and orders that fit one another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.fields import SOLVE
from pyaccount.document.fitting import bins_that_fit, largest_rate
from pyaccount.document.ranges import BINS, DRAWS, RATE_AGREEMENT
from pyaccount.document.rates import RATE_FIELDS, number, separation, stated_rates
from pyaccount.document.samplers import (
    FIXED_DRAWS,
    BallsInBins,
    BMinSep,
    CyclicPoisson,
    Deterministic,
    FixedSize,
    MustOW,
    MustWO,
    Poisson,
    UserBMinSep,
)
from pyaccount.document.views import Body
from pyaccount.errors import Problem

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.document.written import Written

# The most by which a rate times the data set may miss a whole number, whatever the data set's size, and what the
# rounding of the product adds to it.
_WHOLE, _ROUNDING = 1e-3, 1e-15


def rate_is_given(document: Written, body: Body) -> Iterator[Problem]:
    """Sampling needs to know how much of the data set joins a round."""
    training = body.training
    if isinstance(body.sampler, UserBMinSep):
        yield from _probability_of_a_record(document, body)
        return
    given = [training.expected_batch_size, *(getattr(training, field) for field in RATE_FIELDS)]
    if any(value is not None for value in given):
        return
    if isinstance(body.sampler, Poisson):
        message = (
            "Poisson sampling needs its rate: give sampling_probability, participation_rate, "
            "or expected_batch_size together with dataset_size"
        )
        yield document.problem("missing-key", body.at("training", "sampling_probability"), message)
    elif isinstance(body.sampler, FIXED_DRAWS):
        message = f"{body.sampler.kind} sampling needs the size of its batches: give expected_batch_size"
        yield document.problem("missing-key", body.at("training", "expected_batch_size"), message)
    elif isinstance(body.sampler, BMinSep | CyclicPoisson):
        message = (
            f"{body.sampler.kind} sampling needs its rate: give participation_rate, sampling_probability, "
            "or expected_batch_size together with dataset_size"
        )
        yield document.problem("missing-key", body.at("training", "participation_rate"), message)
    elif isinstance(body.sampler, BallsInBins) and body.sampler.bins is None:
        message = (
            "balls in bins need their number: give sampler.bins, participation_rate, or expected_batch_size together with "
            "dataset_size"
        )
        yield document.problem("missing-key", body.at("sampler", "bins"), message)


def _probability_of_a_record(document: Written, body: Body) -> Iterator[Problem]:
    """Users differ in how many records they have, so no batch size or rate says with which probability one is drawn."""
    if body.training.sampling_probability is None:
        message = (
            "user-b-min-sep sampling needs sampling_probability: that of one record, while its users are available"
        )
        yield document.problem("missing-key", body.at("training", "sampling_probability"), message)
    for field in ("expected_batch_size", "participation_rate"):
        if getattr(body.training, field) is not None:
            message = (
                "users have different numbers of records, so this does not say with which probability one is drawn"
            )
            path = body.at("training", field)
            yield document.problem("contradiction", path, message, allowed="sampling_probability instead")


def dataset_size_is_given(document: Written, body: Body) -> Iterator[Problem]:
    """A batch is a rate only in proportion to the data set."""
    training = body.training
    batch = training.expected_batch_size
    reason = None
    if number(getattr(body.sampler, "truncate_to", None)) is not None:
        reason = "how often batches are truncated depends on the number of records, which is public then"
    elif isinstance(body.sampler, UserBMinSep):
        return
    elif isinstance(body.sampler, FIXED_DRAWS):
        reason = f"{body.sampler.kind} sampling draws from a known number of records"
        privacy = getattr(document, "privacy", None)
        if privacy is not None and privacy.adjacency == "add-remove":
            reason += "; under add-remove give a public lower bound on that of the larger data set"
    elif not isinstance(body.sampler, Deterministic) and batch == SOLVE:
        reason = "an expected batch size can be solved for only with a known number of records"
    elif not isinstance(body.sampler, Deterministic) and batch is not None:
        without_rate = all(getattr(training, field) is None for field in RATE_FIELDS)
        if isinstance(body.sampler, BallsInBins) and body.sampler.bins is not None:
            without_rate = False
        reason = "expected_batch_size gives the sampling rate only together with it" if without_rate else None
    if reason is not None and training.dataset_size is None:
        message = f"dataset_size is required: {reason}"
        yield document.problem("missing-key", body.at("training", "dataset_size"), message)


def batch_fits(document: Written, body: Body) -> Iterator[Problem]:
    """No round has more records than there are."""
    batch, records = number(body.training.expected_batch_size), number(body.training.dataset_size)
    if isinstance(body.sampler, FIXED_DRAWS) and not isinstance(body.sampler, FixedSize):
        # Records may be drawn several times.
        return
    if batch is not None and records is not None and batch > records:
        message = f"a batch of {batch:.17g} is larger than the data set, which has {records:.17g} records"
        path = body.at("training", "expected_batch_size")
        yield document.problem("contradiction", path, message, allowed=f"at most {records}; or a larger dataset_size")


def batch_is_whole(document: Written, body: Body) -> Iterator[Problem]:
    """A fixed number of draws is a whole number, at least one."""
    training = body.training
    records = number(training.dataset_size)
    if not isinstance(body.sampler, FIXED_DRAWS):
        return
    what = f"{body.sampler.kind} sampling draws a whole number of records"
    batch = number(training.expected_batch_size)
    if batch is not None:
        if batch != round(batch):
            below = max(1, math.floor(batch))
            allowed = f"{below} or {below + 1}"
            yield document.problem(
                "fractional-batch", body.at("training", "expected_batch_size"), what, allowed=allowed
            )
        return
    if records is None or training.expected_batch_size is not None:
        return
    for field, rate in stated_rates(body).items():
        drawn = rate * records
        if round(drawn) == 0 or abs(drawn - round(drawn)) > min(RATE_AGREEMENT * records, _WHOLE + _ROUNDING * drawn):
            message = (
                f"{what}, at least one, but this share of {records:_} records is {drawn:.10g}; "
                "give expected_batch_size instead"
            )
            yield document.problem("fractional-batch", body.at("training", field), message)


def draws_with_replacement(document: Written, body: Body) -> Iterator[Problem]:
    """What sampling with replacement, in one stage or two, can draw."""
    sampler = body.sampler
    if not isinstance(sampler, FIXED_DRAWS) or isinstance(sampler, FixedSize):
        return
    path = body.at("training", "expected_batch_size")
    for field in RATE_FIELDS:
        if number(getattr(body.training, field)) is not None:
            message = (
                f"{sampler.kind} may draw a record several times, so no probability or rate says how many it draws"
            )
            yield document.problem("contradiction", body.at("training", field), message, allowed="expected_batch_size")
    batch, records = number(body.training.expected_batch_size), number(body.training.dataset_size)
    if batch is not None and batch not in DRAWS and batch == round(batch):
        message = f"the number of draws with replacement must be {DRAWS.describe()}"
        yield document.problem("out-of-range", path, message, allowed=DRAWS.describe())
    subset = number(getattr(sampler, "subset_size", None))
    if subset is None:
        return
    if isinstance(sampler, MustOW) and records is not None and subset > records:
        message = f"the subset has distinct records, so no more than the {records:_} there are"
        yield document.problem(
            "contradiction", body.at("sampler", "subset_size"), message, allowed=f"at most {records}"
        )
    if isinstance(sampler, MustWO) and batch is not None and subset < batch:
        message = f"a batch of {batch:g} cannot be drawn without replacement from a subset of {subset}"
        allowed = f"at least {batch:g}"
        yield document.problem("contradiction", body.at("sampler", "subset_size"), message, allowed=allowed)


def rates_agree(document: Written, body: Body) -> Iterator[Problem]:
    """A rate that is given in several ways is the same in all."""
    if isinstance(body.sampler, Deterministic):
        return
    rates = {body.at("training", field): rate for field, rate in stated_rates(body).items()}
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


def rate_is_feasible(document: Document, body: Body) -> Iterator[Problem]:
    """A record that takes part at most every b rounds has a participation rate of at most 1/b."""
    b = separation(body)
    if b is None or not isinstance(body.sampler, BMinSep | CyclicPoisson):
        return
    stated = body.sampler.min_separation if isinstance(body.sampler, BMinSep) else body.sampler.partitions
    what = "bands" if stated is None else "a separation" if isinstance(body.sampler, BMinSep) else "partitions"
    for field, rate in stated_rates(body).items():
        if rate * b > 1.0 + RATE_AGREEMENT:
            records = number(body.training.dataset_size)
            size = None if records is None else math.floor(records / b) if records >= b else f"{records / b:.10g}"
            batch = "" if size is None else f", that is a batch of at most {size}"
            message = (
                f"this is a participation rate of {rate:.10g}, but a record takes part at most once in {b} rounds: at most "
                f"1/{b} = {1.0 / b:.6g} is feasible{batch}; or {what} of at most {math.floor(1.0 / rate * (1 + 1e-12))}"
            )
            allowed = largest_rate(field, b, records)
            yield document.problem("infeasible-rate", body.at("training", field), message, allowed=allowed)


def bins_are_whole(document: Document, body: Body) -> Iterator[Problem]:
    """Balls in bins: the participation rate is 1/T, and every bin has its turn."""
    sampler = body.sampler
    if not isinstance(sampler, BallsInBins):
        return
    if number(body.training.sampling_probability) is not None:
        message = "balls in bins draw no probability: give sampler.bins, participation_rate or expected_batch_size"
        yield document.problem("contradiction", body.at("training", "sampling_probability"), message)
    for field, rate in stated_rates(body).items():
        whole = max(1, round(1.0 / rate))
        count = whole if sampler.bins is None else number(sampler.bins)
        if count is not None and not math.isclose(rate * count, 1.0, rel_tol=RATE_AGREEMENT):
            message = _unfit_bins(body, field, rate, count)
            records, rounds = number(body.training.dataset_size), number(body.training.iterations)
            allowed = bins_that_fit(field, rate, number(sampler.bins), records, rounds)  # type: ignore[arg-type]
            yield document.problem("infeasible-rate", body.at("training", field), message, allowed=allowed)
    counts = {body.at("sampler", "bins"): number(sampler.bins)} if sampler.bins is not None else {}
    if sampler.bins is None:
        counts |= {body.at("training", field): max(1, round(1.0 / rate)) for field, rate in stated_rates(body).items()}
    rounds = number(body.training.iterations)
    for path, count in counts.items():
        if count is not None and rounds is not None and count > rounds:
            message = f"there are {count} bins, but only {rounds:_} iterations: some bins never have a turn"
            yield document.problem("contradiction", path, message, allowed=f"at most {rounds}")
        elif count is not None and count not in BINS:
            message = f"this makes {count} bins; their number must be {BINS.describe()}"
            yield document.problem("out-of-range", path, message)


def _unfit_bins(body: Body, field: str, rate: float, count: float) -> str:
    """Why a rate is not that of balls in bins."""
    given = isinstance(body.sampler, BallsInBins) and body.sampler.bins is not None
    if field == "expected_batch_size":
        batch, records = number(body.training.expected_batch_size), number(body.training.dataset_size)
        assert batch is not None
        assert records is not None
        if given:
            return f"{count} bins of {records:_} records make an expected batch of {records / count:.6g}, not of {batch:.6g}"
        return (
            f"{records:_} records in batches of {batch:.6g} are {1.0 / rate:.10g} bins, and there can only be a whole number: "
            "give that, and leave the size out, which follows from it"
        )
    if given:
        return f"this is a participation rate of {rate:.10g}, but with {count} bins it is 1/{count} = {1.0 / count:.6g}"
    return f"the participation rate is 1 over a whole number of bins, but this is 1/{1.0 / rate:.10g}"


def deterministic_order(document: Document, body: Body) -> Iterator[Problem]:
    """What a deterministic order cannot have."""
    if not isinstance(body.sampler, Deterministic):
        return
    for field in RATE_FIELDS:
        if number(getattr(body.training, field)) is not None:
            what = field.replace("_", " ")
            message = f"a deterministic order has no {what}: leave it out, or name the sampler that draws with it"
            yield document.problem("contradiction", body.at("training", field), message)
    most, rounds = number(body.sampler.max_participations), number(body.training.iterations)
    if most is not None and rounds is not None and most > rounds:
        message = f"no record can take part more often than there are rounds, which are {rounds:_}"
        yield document.problem("contradiction", body.at("sampler", "max_participations"), message)


#: Those that a draw has too which is not part of a training run.
SAMPLING_RULES = (
    rate_is_given,
    dataset_size_is_given,
    batch_fits,
    batch_is_whole,
    draws_with_replacement,
    rates_agree,
)
