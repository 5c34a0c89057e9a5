"""Solve for the blank: find the smallest noise, or the most rounds, records or batch size, that meets the target.

Every candidate gets a verdict from proven intervals: it *holds* if the upper end of the bound's interval meets the
target, it *fails* if the lower end exceeds it, and it is *undecided* in between; then the interval is narrowed. (The
bound is the mechanism's own curve if the reduction is tight.) The value that is returned holds; the solution also
contains a candidate that fails, and the two are as close as the tolerance asks for. The bounds are monotone in each of
these parameters, so everything beyond the failing candidate fails too.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass

from pyaccount.document.document import Document
from pyaccount.document.ranges import GROUP_SIZE, ITERATIONS, NOISE_MULTIPLIER, SCALE
from pyaccount.document.tree import MechanismRelease
from pyaccount.errors import DocumentError, NumericsError, Path, path_text
from pyaccount.execute.engine import NOISE_RANGE, Engine, refuse_infinite
from pyaccount.execute.progress import Report, knowing
from pyaccount.execute.target import Found, target_of
from pyaccount.plan.common import given
from pyaccount.plan.compiled import CompiledDocument, Instance
from pyaccount.plan.mechanisms.additive import LAPLACE_STEPS
from pyaccount.plan.protection import Protection
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.schedule_values import multipliers_of_blank
from pyaccount.reading.fields import NOISE_BLANKS
from pyaccount.rounding import down, up

#: The width of intervals while the bracket is wide: it suffices to place the next candidate.
ROUGH = 0.02
#: The search is given up after this many candidates.
MOST_STEPS = 80


@dataclass(frozen=True, slots=True)
class CandidateVerdict:
    """The verdict on one candidate."""

    holds: bool
    fails: bool
    #: ln(value found / target): positive if the target is missed.
    excess: float
    found: Found


@dataclass(frozen=True, slots=True)
class Solution:
    """The blank's value, the plan at it, the evidence that it holds, and a value that fails."""

    path: Path
    value: float | int
    fails_at: float | int | None
    instance: Instance
    found: Found


def _meets_target(instance: Instance, engine: Engine, tolerance: float) -> CandidateVerdict:
    """Return whether the document's target is met, from an interval of relative width `tolerance`."""
    target = target_of(instance.document)
    found = target.find(engine, instance.bounds(target.width(tolerance)), tolerance)
    limit = target.limit if found.limit is None else found.limit
    middle = 0.5 * (found.lower + found.upper)
    comparable = 0.0 < middle < math.inf and limit > 0.0
    excess = math.log(middle / limit) if comparable else math.copysign(math.inf, middle - limit)
    return CandidateVerdict(found.upper <= limit, found.lower > limit, excess, found)


def decide(instance: Instance, engine: Engine, tolerance: float, seen: list[Found] | None = None) -> CandidateVerdict:
    """Judge an instance, narrowing the interval until there is a verdict, it stops narrowing, or it is at its finest.

    Every interval found is appended to `seen`, so that the caller can report it if time runs out.
    """
    finest = target_of(instance.document).finest
    while True:
        verdict = _meets_target(instance, engine, tolerance)
        if seen is not None:
            seen.append(verdict.found)
        # With rounds in groups the interval can be narrowed further, even if their own compositions cannot.
        stuck = not (verdict.found.within_tolerance or verdict.found.grouped)
        if verdict.holds or verdict.fails or tolerance <= finest or stuck:
            return verdict
        tolerance = max(finest, 0.1 * tolerance)


class Search:
    """A search for the blank: keeps the judged candidates as a bracket between one that holds and one that fails."""

    def __init__(self, plan: CompiledDocument, engine: Engine, tolerance: float, report: Report) -> None:
        path = plan.document.blank
        self.plan, self.document, self.path = plan, plan.document, given(path)
        self.target = target_of(plan.document)
        self.engine, self.tolerance, self.report = engine, tolerance, report
        self.held: dict[float, CandidateVerdict] = {}
        self.failed: dict[float, CandidateVerdict] = {}
        self.undecided: dict[float, CandidateVerdict] = {}
        self.steps = 0

    def try_value(self, value: float, tolerance: float) -> CandidateVerdict:
        """Judge one candidate. Raises `NumericsError` after `MOST_STEPS` candidates."""
        if self.steps >= MOST_STEPS:
            tried = f"after {MOST_STEPS} values of {path_text(self.path)}"
            raise NumericsError(f"the search ended {tried}: their intervals do not show where the target is met")
        self.report(f"solving {path_text(self.path)}: trying {value:.6g}", self.steps, None)
        self.steps += 1
        verdict = decide(self.plan.at(value), self.engine, tolerance)
        kept = self.held if verdict.holds else self.failed if verdict.fails else self.undecided
        kept[value] = verdict
        return verdict

    def solution(self, value: float, fails_at: float | None) -> Solution:
        """Return the solution at a value that holds. Raises `DocumentError` if the document contradicts the value."""
        self.document.with_value(self.path, value)
        return Solution(self.path, value, fails_at, self.plan.at(value), self.held[value].found)

    def known(self) -> list[str]:
        """Return the bracket so far, in words."""
        noise = self.path[-1] in NOISE_BLANKS
        holds = (min if noise else max)(self.held, default=None)
        fails = (max if noise else min)(self.failed, default=None)
        return [] if holds is None and fails is None else [bracket(self.path, holds, fails)]

    def infeasible(self, reason: str, remedy: str) -> DocumentError:
        """Return the error for a target that no value reaches."""
        return DocumentError([self.document.problem("target-infeasible", self.path, f"{reason}; try {remedy}")])


def solve(plan: CompiledDocument, engine: Engine, report: Report, *, tolerance: float | None = None) -> Solution:
    """Fill the document's blank (noise, iterations, group size or batch size), to `tolerance` or else the plan's."""
    search = Search(plan, engine, plan.tolerance if tolerance is None else tolerance, report)
    with knowing(search.known):
        return _solve(search)


def bracket(path: Path, holds: float | None, fails: float | None) -> str:
    """Return in words a value of the blank with which the target is met, and one with which the bound misses it."""
    # σ is rounded so that both statements stay true, since more noise is never worse; other blanks are whole numbers.
    ends = []
    if holds is not None:
        ends.append(f"the target is met at {up(holds) if path[-1] in NOISE_BLANKS else int(holds)}")
    if fails is not None:
        ends.append(f"the bound does not meet it at {down(fails) if path[-1] in NOISE_BLANKS else int(fails)}")
    return f"{path_text(path)}: {', '.join(ends)}"


def _solve(search: Search) -> Solution:
    document, name = search.document, search.path[-1]
    cases = Protection.of(document).runs()
    if name in NOISE_BLANKS:
        return _smallest_noise(search)
    if name == "iterations":
        case = next(one for one in cases if one.node.at("training", "iterations") == search.path)
        return _largest_whole(search, int(ITERATIONS.maximum), "iteration", sampler_plan(case).rounds_at_a_time())
    if name == "group_size":
        sizes = [run.training.dataset_size for run in document.runs() if run.sampler.fixed_draws]
        return _largest_whole(
            search, min([int(GROUP_SIZE.maximum), *(size for size in sizes if size is not None)]), "record"
        )
    case = next(one for one in cases if (*one.node.path, "training", "expected_batch_size") == search.path)
    return _largest_whole(search, sampler_plan(case).largest_batch(), "record in a batch")


def rest_alone(instance: Instance, path: Path, engine: Engine) -> str | None:
    """Return in words what the phases without the blank at `path` cost; None if there are none, or if they are sampled.

    Both ends of the interval are proven: the upper one bounds the other phases, the lower one is that of two data sets. Raises
    `DocumentError` if their loss is infinite with a larger probability than δ, so that no value of the blank helps.
    """
    rest = instance.bounds_beside(path)
    if rest is None:
        return None
    found = target_of(instance.document).find(engine, rest, ROUGH)
    if math.isinf(found.upper):
        refuse_infinite(instance.document, rest)
    return found.said


def unreachable(
    document: Document, most: float, bound: float | None = None, rest: str | None = None
) -> tuple[str, str]:
    """Return why no σ (or no scale of a schedule) up to `most` reaches the target, and what to try.

    `bound` is a lower bound that remains even at that σ, `rest` states the cost of the other phases.
    """
    target = target_of(document)
    symbol = _symbol(document.blank)
    reason = f"no {symbol} reaches the target {target.words}: it is missed even at {symbol} = {most:g}"
    if not any(
        run.noise.also and _moves(document.blank, run.at("noise", "multiplier")) for run in document.runs_among_phases()
    ):
        if rest is None:
            return reason, target.looser
        here = _home_of(document.blank)
        return f"{reason}, and without this {here} {rest}", f"more noise in the other {here}s, or {target.looser}"
    if bound is None:
        reason += ", where nearly all of the cost is that of the other releases of the batch (noise.also)"
    else:
        reason += f", where the other releases of the batch (noise.also) alone cost {target.exceeded(bound)}"
    return reason, f"more noise on the other releases, or {target.looser}"


def _symbol(blank: Path | None) -> str:
    """Return what a noise blank is called in a sentence."""
    return str(blank[-1]) if blank is not None and blank[-1] in ("scale", "variance", "threshold") else "σ"


def _home_of(blank: Path | None) -> str:
    """Return what contains a blank, and is left out where the rest alone is bounded."""
    return "part" if blank is not None and "parallel" in blank else "phase"


def _moves(blank: Path | None, multiplier: Path) -> bool:
    """Return whether a blank is the multiplier at a path, its scale, or the scale of all phases."""
    return blank is not None and (blank[: len(multiplier)] == multiplier or blank == ("noise", "scale"))


def _noise_range(search: Search) -> tuple[float, float, float]:
    """Return the least and the largest value of a noise blank that are tried, and the first one.

    A scale is tried from where the smallest σ is the least one to where it is the largest one, if no other σ then
    exceeds the range of noise multipliers. The noise of a mechanism is tried in units of its sensitivity.
    """
    if search.path[-2] == "mechanism":
        mechanism = next(
            one.mechanism
            for one in search.document.every_node()
            if isinstance(one, MechanismRelease) and one.at("mechanism") == search.path[:-1]
        )
        ends = mechanism.searched(str(search.path[-1]))
        if ends is not None:
            return *ends, min(max(1.0, ends[0]), ends[1])
        unit = float(getattr(mechanism, "sensitivity", 1.0))
        low, high = (min(max(end * unit, SCALE.minimum), SCALE.maximum) for end in NOISE_RANGE)
        if mechanism.step_of_noise is not None:
            low, high = (end * mechanism.step_of_noise for end in LAPLACE_STEPS)
        return low, high, min(max(unit, low), high)
    if search.path[-1] != "scale":
        return *NOISE_RANGE, 1.0
    least, most = multipliers_of_blank(search.document)
    high = min(NOISE_RANGE[1] / least, NOISE_MULTIPLIER.maximum / most * (1.0 - 1e-9))
    low = min(NOISE_RANGE[0] / least, high)
    return low, high, min(1.0 / least, high)


def _smallest_noise(search: Search) -> Solution:
    low, high, value = _noise_range(search)
    stride = 1.3
    if search.plan.recursive:
        # What the composed bound needs is nearly what the recursion needs, and takes a hundredth of the time.
        value = solve(search.plan.without_recursion(), search.engine, search.report).value
        stride = 1.01
    symbol = _symbol(search.path)
    while not search.held or not search.failed:
        verdict = search.try_value(value, ROUGH)
        if verdict.holds and value <= low:
            what = {"σ": "noise multiplier"}.get(symbol, symbol)
            raise search.infeasible(
                f"the target {search.target.words} holds with hardly any {'threshold' if symbol == 'threshold' else 'noise'} "
                f"(already at {symbol} = {low:g}), so there is no meaningful smallest {what}",
                search.target.tighter,
            )
        if not verdict.holds and value >= high:
            rest = rest_alone(search.plan.at(high), search.path, search.engine)
            raise search.infeasible(*unreachable(search.document, high, verdict.found.lower, rest))
        if not (verdict.holds or verdict.fails):
            value = min(high, value * 1.05)
        elif verdict.holds:
            value = max(low, value / _stride(verdict, stride))
        else:
            value = min(high, value * _stride(verdict, stride))
    width = math.log1p(search.tolerance)
    while True:
        holds, fails = min(search.held), max(search.failed)
        left, right = _open_ends(search, fails, holds)
        gap = max(math.log(end[1] / end[0]) for end in (left, right))
        if gap <= width or search.steps >= MOST_STEPS - 1:
            return search.solution(holds, fails)
        if left == right:
            candidate = _between(search, fails, holds, width)
        else:
            widest = max((left, right), key=lambda end: end[1] / end[0])
            candidate = _edge(search, *widest, width)
        search.try_value(candidate, _needed(gap, search.tolerance))


def _open_ends(search: Search, low: float, high: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two parts of a bracket in which candidates can get a verdict: beside undecided ones, or all of it twice.

    Undecided candidates lie between the point at which the lower end of the bound's interval exceeds the target and the
    point at which the upper end meets it, and everything between them is undecided too.
    """
    inside = [value for value in search.undecided if low < value < high]
    return ((low, min(inside)), (max(inside), high)) if inside else ((low, high), (low, high))


def _edge(search: Search, low: float, high: float, width: float) -> float:
    """Return the next candidate between an undecided one and one with a verdict.

    It is near where an end of the interval meets the target, by a secant step like that of `_between`: the upper end
    beside a candidate that holds, the lower end beside one that fails.
    """
    known, open_end = (low, high) if low in search.failed else (high, low)
    verdicts = (search.failed if known in search.failed else search.held)[known], search.undecided[open_end]
    ends = (one.found.upper if known in search.held else one.found.lower for one in verdicts)
    at_known, at_open = (math.log(max(end / search.target.limit, sys.float_info.min)) for end in ends)
    share = 0.5
    if math.isfinite(at_known) and math.isfinite(at_open) and at_known * at_open < 0.0 and search.steps % 5 != 4:
        share = at_known / (at_known - at_open)
    # The candidate lies slightly on the known side, where it will get a verdict.
    distance = abs(math.log(high / low))
    share = min(max(share - 0.3 * width / distance, 0.05), 0.95)
    return known * math.exp(share * math.log(open_end / known))


def _stride(verdict: CandidateVerdict, least: float) -> float:
    """Return the factor by which to go on while there is no bracket: ε decreases about like 1/σ."""
    return min(8.0, max(least, math.exp(min(abs(verdict.excess), 3.0)) * 1.1))


def _needed(gap: float, tolerance: float) -> float:
    """Return the width of interval that is worth its cost while the bracket has this relative gap."""
    return min(ROUGH, max(0.02 * gap, 0.25 * tolerance))


def _between(search: Search, fails: float, holds: float, width: float) -> float:
    """Return the next candidate inside a bracket: a secant step in log space, moved a bit towards the farther end."""
    low, high = sorted((math.log(fails), math.log(holds)))
    at_fails, at_holds = search.failed[fails].excess, search.held[holds].excess
    share = 0.5
    if math.isfinite(at_fails) and math.isfinite(at_holds) and at_fails > at_holds and search.steps % 5 != 4:
        share = at_fails / (at_fails - at_holds)
    towards = math.copysign(1.0, holds - fails)
    root = math.log(fails) + towards * share * (high - low)
    to_holds, to_fails = abs(math.log(holds) - root), abs(root - math.log(fails))
    # Move to just beyond the root, on the side of the farther end, so that the bracket closes from both sides.
    if to_holds > 0.6 * width and to_holds >= to_fails:
        root += towards * 0.3 * width
    elif to_fails > 0.6 * width:
        root -= towards * 0.3 * width
    return math.exp(root if low < root < high else 0.5 * (low + high))


def _largest_whole(search: Search, most: int, unit: str, step: int = 1) -> Solution:
    """Return the largest multiple of `step` that holds. Stops if the next one fails, or within the tolerance of it."""
    if not search.try_value(step, ROUGH).holds:
        least = f"one {unit} meets" if step == 1 else f"{step:_} {unit}s, the minimum, meet"
        rest = rest_alone(search.plan.at(step), search.path, search.engine)
        raise search.infeasible(
            f"not even {least} the target {search.target.words}"
            + (f"; without this {_home_of(search.path)} {rest}" if rest else ""),
            f"more noise, or {search.target.looser}",
        )
    value, most, growth = 1, most // step, 4.0
    if search.plan.recursive:
        # As for the noise: what the composed bound allows is nearly what the recursion allows.
        # Where that allows nothing, the search begins at the least value.
        with suppress(DocumentError):
            value = int(solve(search.plan.without_recursion(), search.engine, search.report).value) // step
            growth = 1.1
            search.try_value(value * step, ROUGH)
    while not search.failed:
        best = int(max(search.held)) // step
        if best >= most:
            raise search.infeasible(
                f"the target {search.target.words} holds for every value up to {most * step}, so there is no largest one",
                f"writing {most * step}",
            )
        grown = max(value + 1, int(value * growth))
        value = min(most, grown)
        search.try_value(value * step, ROUGH)
    while True:
        holds, fails = int(max(search.held)), int(min(search.failed))
        left, right = _open_ends(search, holds, fails)
        widest = max((left, right), key=lambda end: end[1] - end[0])
        if widest[1] - widest[0] <= max(step, search.tolerance * holds) or search.steps >= MOST_STEPS - 1:
            return search.solution(holds, fails)
        if left == right:
            candidate = round(_between(search, fails, holds, max(search.tolerance, step / holds)) / step)
            candidate = min(max(candidate, holds // step + 1), fails // step - 1)
        else:
            candidate = round(0.5 * sum(widest) / step)
        search.try_value(
            candidate * step, _needed(math.log(widest[1] / widest[0]), max(search.tolerance, 0.1 * step / holds))
        )
