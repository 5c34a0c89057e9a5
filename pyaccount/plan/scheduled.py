"""Bodies whose noise or rate differs from round to round: the theorem of the sampler, applied to each kind of rounds.

The rounds of these bodies are independent given what was released before, so the run is the composition of its rounds,
and a composition does not depend on their order. Rounds with equal noise and equal rates are one *kind*, whose theorem
is that of a run in which all rounds are like this. The bounds of all kinds together bound the run (products of
dominating pairs dominate: Zhu, Dong & Wang 2022, Theorem 10), and they are attained if those of each kind are.

Without sampling, a record may take part in only m of n rounds. Whatever rounds these are, sort their multipliers: the
i-th smallest is at least the i-th smallest of all n. A round with more noise is a round with less noise to which more
noise is added independently (post-processing, see `pyaccount.plan.alike`), so the m rounds with the least noise are the
worst, and a record that takes part in them attains the bound.

The schedule is fixed before the run. Noise that follows from what was released would need a bound that this is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Path, Problem
from pyaccount.plan.protection import RunCase
from pyaccount.plan.rounds import DirectedBounds, combine
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.schedule_values import multiplier_range, runs_of_kinds, scale_of, values_of
from pyaccount.plan.theorem import Around, Reduction
from pyaccount.rounding import rounded_nearest, shortest

AS_SCHEDULED = Assumed(
    "Each round has the {what} that the schedule states for it.",
    "Each round has what the schedule states for it.",
)
FIXED_BEFOREHAND = Assumed(
    "The schedule is fixed before the run; it follows neither from the data nor from what was released.",
    "The schedule is fixed before the run, from neither data nor releases.",
)
#: How a schedule of each key is called, and its symbol.
_CALLED = {
    "multiplier": ("noise multiplier", "σ"),
    "sampling_probability": ("sampling probability", "p"),
    "expected_batch_size": ("expected batch size", "the size of a batch"),
}


class ScheduledRounds(RunCase, Around):
    """The theorem of a training run with schedules, by the theorem of runs without."""

    def words(self) -> Reduction:
        """Return the theorem of one round, with symbols for what is scheduled, and which values it has."""
        usual = self.inner.on(_symbolic(self.node)).words()
        remarks = [usual.remark, *(_remark(self, path) for path in self.node.schedules())]
        what = " and the ".join(_CALLED[str(path[-1])][0] for path in self.node.schedules())
        return replace(
            usual,
            subject=f"{usual.subject}, each round with its own {what.replace(' and the ', ' and ')}",
            source=f"{usual.source}; the rounds composed: Zhu, Dong & Wang 2022, Theorem 10",
            remark=" ".join(filter(None, remarks)),
            assumed=(*usual.assumed, AS_SCHEDULED.filled(what=what), FIXED_BEFOREHAND),
        )

    def bounds(self) -> DirectedBounds:
        """Return the rounds of each kind. Raises `DocumentError` if the scale moves σ out of its range."""
        for path in self.node.schedules():
            if path[-1] == "multiplier":
                multiplier_range(self, path)
        return combine([self.inner.on(kind).bounds() for kind in runs_of_kinds(self)], merge_gaussians=False)

    def fixed_draws(self) -> Any:
        """Return the plan of the sampler, which is about rounds that are all alike."""
        return self.inner.fixed_draws()

    def public(self) -> DirectedBounds:
        """Return the rounds of each kind with public participations."""
        return combine([self.inner.on(kind).public() for kind in runs_of_kinds(self)], merge_gaussians=False)

    def refusals(self) -> list[Problem]:
        """Refuse what the sampler's analysis refuses of any round, and values that no round can have."""
        problems = self.inner.on(_symbolic(self.node)).refusals()
        if problems or self.node.training.iterations == "solve":
            return problems
        return list(_values_that_no_round_has(self))


def schedule_refusals(case: RunCase) -> list[Problem]:
    """Refuse schedules of bodies whose rounds do not compose one by one, or whose analysis needs one rate."""
    schedules, plan = case.node.schedules(), sampler_plan(case)
    if not schedules:
        return []
    if len(case.node.path) > 2:
        message = (
            "schedules are implemented for phases of the document, not for phases inside of another one: write one value for all "
            "rounds, or a phase for each value, with all of its rounds"
        )
        return [case.asked.refusal(path, message, allowed="one value") for path in schedules]
    if case.node.matrix.kind != "identity":
        message = (
            "a matrix correlates the noise of all rounds, and no bound is implemented for rounds that then differ in their noise "
            "or rate: leave the matrix out, or write one value for all rounds"
        )
        return [case.asked.refusal(path, message, allowed="one value") for path in schedules]
    if case.asked.accounting.method == "monte-carlo":
        message = "rounds with a schedule are composed, not sampled"
        return [case.asked.refusal(("accounting", "method"), message, allowed="auto or pld")]
    problems = []
    for path in schedules:
        allowed = plan.scheduled_noise if path[-1] == "multiplier" else path[-1] in plan.scheduled_rates
        if not allowed:
            message = (
                f"no bound is implemented for {case.node.sampler.kind} sampling with another {_CALLED[str(path[-1])][0]} in each "
                "round: write one value for all rounds, or use a sampler whose rounds are independent (poisson, fixed-size, "
                "with-replacement or none)"
            )
            problems.append(case.asked.refusal(path, message, allowed="one value"))
    if case.node.rates_scheduled and case.node.truncation() is not None:
        message = (
            "truncated batches are analysed with one rate for all rounds: leave truncate_to out, or write one rate"
        )
        problems.append(case.asked.refusal(case.node.at("sampler", "truncate_to"), message))
    problems += plan.schedule_refusals()
    if (
        case.node.workload is not None
        and case.node.noise.kind == "gaussian"
        and any(path[-1] == "multiplier" for path in schedules)
    ):
        message = "the error under a workload is computed for one noise multiplier in all rounds: leave workload out"
        problems.append(case.asked.refusal(case.node.at("workload"), message))
    return problems


def _values_that_no_round_has(case: RunCase) -> Iterator[Problem]:
    """Yield problems of batches that are larger than the data set, or not whole where a number of records is drawn."""
    for path in case.node.schedules():
        found = values_of(case, path)
        if path[-1] != "expected_batch_size":
            continue
        records = case.node.training.dataset_size
        if records is None:
            continue
        where = (*path, "schedule")
        if found.most > (most := case.node.sampler.most_drawn(records)):
            message = f"a batch of {shortest(found.most)} is larger than the data set, which has {records:_} records"
            yield case.asked.problem(
                "contradiction", where, message, allowed=f"at most {most}; or a larger dataset_size"
            )
        elif case.node.sampler.fixed_draws and (found.values % 1.0).any():
            first = int((found.values % 1.0).argmax())
            message = (
                f"{case.node.sampler.kind} sampling draws a whole number of records, and round {first}, counted from 0, has "
                f"{shortest(float(found.values[first]))}"
            )
            yield case.asked.problem("fractional-batch", where, message, allowed="whole numbers")


def _symbolic(run: TrainingNode) -> TrainingNode:
    """Return the run with blanks in place of its schedules, so that words have symbols there."""
    noise, training = run.noise, run.training
    for path in run.schedules():
        if path[-1] == "multiplier":
            noise = noise.model_copy(update={"multiplier": "solve"})
        else:
            training = training.model_copy(update={"sampling_probability": None, "expected_batch_size": "solve"})
    return replace(run, noise=noise, training=training)


def _remark(case: RunCase, path: Path) -> str:
    """Return which values the rounds have, in words."""
    called, symbol = _CALLED[str(path[-1])]
    scheduled = case.node.schedules()[path]
    if case.node.training.iterations == "solve":
        return f"{symbol.capitalize() if len(symbol) > 1 else symbol} is that of the round, by the schedule."
    found = values_of(case, path)
    open_scale = getattr(scheduled, "scale", 1.0) == "solve"
    factor = 1.0 if open_scale else scale_of(scheduled)
    least, most = rounded_nearest(factor * found.least), rounded_nearest(factor * found.most)
    values = f"always {least}" if least == most else f"{found.distinct} different values from {least} to {most}"
    where = "the scale times the value of the round" if open_scale else "that of the round"
    start = symbol if len(symbol) == 1 else symbol[0].upper() + symbol[1:]
    return f"{start} is {where}: {values}, by the schedule of the {called}."
