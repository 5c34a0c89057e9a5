"""Bodies whose noise or rate differs from round to round: the theorem of the sampler, applied to each kind of rounds.

The rounds of these bodies are independent given what was released before, so the run is the composition of its rounds,
and a composition does not depend on their order. Rounds with equal noise and equal rates are one *kind*, whose theorem
is that of a body in which all rounds are like this. The bounds of all kinds together bound the run (products of
dominating pairs dominate: Zhu, Dong & Wang 2022, Theorem 10), and they are attained if those of each kind are.

Without sampling, a record may take part in only m of n rounds. Whatever rounds these are, sort their multipliers: the
i-th smallest is at least the i-th smallest of all n. A round with more noise is a round with less noise to which more
noise is added independently (post-processing, see `pyaccount.plan.alike`), so the m rounds with the least noise are the
worst, and a record that takes part in them attains the bound.

The schedule is fixed before the run. Noise that follows from what was released would need a bound that this is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.plan.reduction import Analysis
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.schedule_values import multiplier_range, scale_of, values_of
from pyaccount.plan.scheduled_rounds import composed
from pyaccount.rounding import rounded_nearest, shortest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Path, Problem
    from pyaccount.plan.reduction import Reduction
    from pyaccount.plan.rounds import DirectedBounds

AS_SCHEDULED = "Each round has the {what} that the schedule states for it."
FIXED_BEFOREHAND = "The schedule is fixed before the run; it follows neither from the data nor from what was released."
#: How a schedule of each key is called, and its symbol.
_CALLED = {
    "multiplier": ("noise multiplier", "σ"),
    "sampling_probability": ("sampling probability", "p"),
    "expected_batch_size": ("expected batch size", "the size of a batch"),
}


@dataclass(frozen=True, slots=True)
class ScheduledRounds:
    """The analysis of a body with schedules, by the analysis of bodies without."""

    inner: Analysis

    def analysis(self) -> Analysis:
        """Return the analysis of all rounds together."""
        return Analysis(
            self.words,
            bounds=self.bounds,
            refusals=self.refusals,
            gaussian=self.inner.gaussian,
            alike=self.inner.alike,
        )

    def words(self, document: Document, body: Body) -> Reduction:
        """Return the theorem of one round, with symbols for what is scheduled, and which values it has."""
        usual = self.inner.words(document, _symbolic(body))
        remarks = [usual.remark, *(_remark(document, body, path) for path in body.schedules())]
        what = " and the ".join(_CALLED[str(path[-1])][0] for path in body.schedules())
        return replace(
            usual,
            subject=f"{usual.subject}, each round with its own {what.replace(' and the ', ' and ')}",
            source=f"{usual.source}; the rounds composed: Zhu, Dong & Wang 2022, Theorem 10",
            remark=" ".join(filter(None, remarks)),
            assumptions=(*usual.assumptions, AS_SCHEDULED.format(what=what), FIXED_BEFOREHAND),
        )

    def bounds(self, document: Document, body: Body) -> DirectedBounds:
        """Return the rounds of each kind. Raises `DocumentError` if the scale moves σ out of its range."""
        assert self.inner.bounds is not None, "`refusals` refuses what is sampled"
        for path in body.schedules():
            if path[-1] == "multiplier":
                multiplier_range(document, body, path)
        return composed(document, body, self.inner.bounds)

    def refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse what the sampler's analysis refuses of any round, and values that no round can have."""
        problems = [] if self.inner.refusals is None else self.inner.refusals(document, _symbolic(body))
        if problems or body.training.iterations == "solve":
            return problems
        return list(_values_that_no_round_has(document, body))


def schedule_refusals(document: Document, body: Body) -> list[Problem]:
    """Refuse schedules of bodies whose rounds do not compose one by one, or whose analysis needs one rate."""
    schedules, plan = body.schedules(), sampler_plan(body)
    if not schedules:
        return []
    if body not in document.bodies:
        message = (
            "schedules are implemented for phases of the document, not for phases inside of another one: write one value for all "
            "rounds, or a phase for each value, with all of its rounds"
        )
        return [document.problem("no-valid-bound", path, message, allowed="one value") for path in schedules]
    if body.matrix.kind != "identity":
        message = (
            "a matrix correlates the noise of all rounds, and no bound is implemented for rounds that then differ in their noise "
            "or rate: leave the matrix out, or write one value for all rounds"
        )
        return [document.problem("no-valid-bound", path, message, allowed="one value") for path in schedules]
    if document.accounting.method == "monte-carlo":
        message = "rounds with a schedule are composed, not sampled"
        return [document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld")]
    problems = []
    for path in schedules:
        allowed = plan.scheduled_noise if path[-1] == "multiplier" else path[-1] in plan.scheduled_rates
        if not allowed:
            message = (
                f"no bound is implemented for {body.sampler.kind} sampling with another {_CALLED[str(path[-1])][0]} in each "
                "round: write one value for all rounds, or use a sampler whose rounds are independent (poisson, fixed-size, "
                "with-replacement or none)"
            )
            problems.append(document.problem("no-valid-bound", path, message, allowed="one value"))
    if body.rates_scheduled and body.truncation() is not None:
        message = (
            "truncated batches are analysed with one rate for all rounds: leave truncate_to out, or write one rate"
        )
        problems.append(document.problem("no-valid-bound", body.at("sampler", "truncate_to"), message))
    problems += plan.schedule_refusals(document, body)
    if (
        body.workload is not None
        and body.noise.kind == "gaussian"
        and any(path[-1] == "multiplier" for path in schedules)
    ):
        message = "the error under a workload is computed for one noise multiplier in all rounds: leave workload out"
        problems.append(document.problem("no-valid-bound", body.at("workload"), message))
    return problems


def _values_that_no_round_has(document: Document, body: Body) -> Iterator[Problem]:
    """Yield problems of batches that are larger than the data set, or not whole where a number of records is drawn."""
    for path in body.schedules():
        found = values_of(document, body, path)
        if path[-1] != "expected_batch_size":
            continue
        records = body.training.dataset_size
        if records is None:
            continue
        where = (*path, "schedule")
        if found.most > (most := body.sampler.most_drawn(records)):
            message = f"a batch of {shortest(found.most)} is larger than the data set, which has {records:_} records"
            yield document.problem("contradiction", where, message, allowed=f"at most {most}; or a larger dataset_size")
        elif body.sampler.fixed_draws and (found.values % 1.0).any():
            first = int((found.values % 1.0).argmax())
            message = (
                f"{body.sampler.kind} sampling draws a whole number of records, and round {first}, counted from 0, has "
                f"{shortest(float(found.values[first]))}"
            )
            yield document.problem("fractional-batch", where, message, allowed="whole numbers")


def _symbolic(body: Body) -> Body:
    """Return the body with blanks in place of its schedules, so that words have symbols there."""
    noise, training = body.noise, body.training
    for path in body.schedules():
        if path[-1] == "multiplier":
            noise = noise.model_copy(update={"multiplier": "solve"})
        else:
            training = training.model_copy(update={"sampling_probability": None, "expected_batch_size": "solve"})
    return replace(body, noise=noise, training=training)


def _remark(document: Document, body: Body, path: Path) -> str:
    """Return which values the rounds have, in words."""
    called, symbol = _CALLED[str(path[-1])]
    scheduled = body.schedules()[path]
    if body.training.iterations == "solve":
        return f"{symbol.capitalize() if len(symbol) > 1 else symbol} is that of the round, by the schedule."
    found = values_of(document, body, path)
    open_scale = getattr(scheduled, "scale", 1.0) == "solve"
    factor = 1.0 if open_scale else scale_of(scheduled)
    least, most = rounded_nearest(factor * found.least), rounded_nearest(factor * found.most)
    values = f"always {least}" if least == most else f"{found.distinct} different values from {least} to {most}"
    where = "the scale times the value of the round" if open_scale else "that of the round"
    start = symbol if len(symbol) == 1 else symbol[0].upper() + symbol[1:]
    return f"{start} is {where}: {values}, by the schedule of the {called}."
