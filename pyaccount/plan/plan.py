"""The plan: how a document will be analysed, theorem by theorem, before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.errors import path_text
from pyaccount.plan import deterministic, fixed_size, poisson
from pyaccount.plan.reduction import DirectedBounds, Reduction, combine

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyaccount.certificate import Certificate
    from pyaccount.document import Body, Document
    from pyaccount.execute.progress import Report

REDUCERS: dict[str, Callable[[Document, Body], Reduction]] = {
    "poisson": poisson.reduce,
    "fixed-size": fixed_size.reduce,
    "none": deterministic.reduce,
}

#: How many compositions solving a blank takes, typically: a bracket, a few secant steps, the two ends.
SEARCH_STEPS = 16


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan will cost, roughly: from the engine's scaling laws, within a factor of a few."""

    compositions: int
    evaluations: int
    transform_length: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A document with its reductions. `run` executes it; nothing has been computed before."""

    document: Document
    reductions: tuple[Reduction, ...]

    @property
    def closed_form(self) -> bool:
        """Whether the whole composition is one Gaussian mechanism, read without discretisation."""
        plain = all(reduction.components == 1 and reduction.tight for reduction in self.reductions)
        return plain and self.document.accounting.method == "auto"

    @property
    def engine(self) -> str:
        """The engine, for people."""
        if self.closed_form:
            return "closed form (one Gaussian mechanism)"
        return "privacy loss distributions: connect-the-dots upper and lower bounds, tilted FFT, both directions"

    @property
    def question(self) -> str:
        """What will be computed, for people."""
        blank, privacy = self.document.blank, self.document.privacy
        if blank is None:
            return f"does ({privacy.epsilon:g}, {privacy.delta:g})-DP hold?"
        name = blank[-1]
        if name == "epsilon":
            return f"the smallest ε at δ = {privacy.delta:g}"
        if name == "delta":
            return f"the smallest δ at ε = {privacy.epsilon:g}"
        extreme = "smallest" if name == "multiplier" else "largest"
        return f"the {extreme} {path_text(blank)} with ({privacy.epsilon:g}, {privacy.delta:g})-DP"

    def bounds(self) -> DirectedBounds:
        """The rounds to compose; the document's blank must be filled or be ε or δ."""
        merge = self.document.accounting.method == "auto"
        return combine((reduction.bounds() for reduction in self.reductions), merge_gaussians=merge)

    def estimate(self) -> Estimate:
        """The cost, from how the engine scales: evaluations with tolerance^(−1/2), transforms with √(rounds/tolerance)."""
        blank = self.document.blank
        searching = blank is not None and blank[-1] not in ("epsilon", "delta")
        profile = self.document.accounting.profile
        questions = 2 + 2 * (len(profile) if profile is not None else 6) + (2 * SEARCH_STEPS if searching else 0)
        if self.closed_form:
            return Estimate(questions, questions, 0, 1e-3)
        tolerance = self.document.accounting.tolerance
        evaluations = sum(1500 * math.sqrt(1e-4 / tolerance) for _ in self.reductions)
        components = max(reduction.components for reduction in self.reductions)
        iterations = sum(
            body.count * (1000 if body.training.iterations == "solve" else body.training.iterations)
            for body in self.document.bodies
        )
        length = 2 ** min(22, max(6, round(math.log2(15 * math.sqrt(iterations / tolerance)))))
        seconds = questions * (evaluations * (components + 2) * 0.5e-6 + length * 0.1e-6)
        return Estimate(questions, round(evaluations), length, seconds)

    def run(self, *, threads: int = 0, time_limit: float | None = None, report: Report | None = None) -> Certificate:
        """Execute the plan on this machine and certify the result.

        `threads` 0 means one for each core; it never changes the answer. Raises `DocumentError` for a target that nothing
        reaches, `LimitError` at the time limit, `KeyboardInterrupt` on Ctrl-C; there is no partial certificate.
        """
        from pyaccount.certificate.issue import issue  # noqa: PLC0415 - the certificate room is not needed to plan
        from pyaccount.execute import execute  # noqa: PLC0415

        return issue(self, execute(self, threads=threads, time_limit=time_limit, report=report))


def compile_document(document: Document) -> Plan:
    """Choose the reduction for each body of the document. Raises `DocumentError` for what no theorem covers."""
    plan = Plan(document, tuple(REDUCERS[body.sampler.kind](document, body) for body in document.bodies))
    if document.blank is None or document.blank[-1] in ("epsilon", "delta"):
        # Refusals that depend on numbers show before anything runs.
        plan.bounds()
    return plan
