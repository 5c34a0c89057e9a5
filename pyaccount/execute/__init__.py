"""Run plans: compute the values that a certificate states, with the evidence for them.

`engine` asks the core on this machine, `solve` fills the blank, `sampling` tests mechanisms by samples, `choose`
compares the candidates that a document leaves open, and `group_lemma` computes the black-box bound for groups, for
contrast. This room takes plans and fills the certificate's record. It knows plans and the core; it does not know how a
certificate is worded.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.errors import LimitError
from pyaccount.execute.certified import CertifiedNumbers
from pyaccount.execute.composed import execute
from pyaccount.execute.engine import RESOLVED, Answer, Engine, Question, asked_at
from pyaccount.execute.options import RunOptions
from pyaccount.plan.compiled import CompiledDocument

if TYPE_CHECKING:
    from pyaccount.execute.sampling.forecast import Forecast

__all__ = ["RESOLVED", "Answer", "CertifiedNumbers", "Engine", "Question", "RunOptions", "asked_at", "run"]


def run(plan: CompiledDocument, options: RunOptions) -> tuple[CompiledDocument, CertifiedNumbers]:
    """Make the choices that the document leaves open, then run the plan. Return the plan that was run, and its record.

    Raises `DocumentError` if no value reaches the target, `LimitError` at the time limit.
    """
    with options.begun(plan.document) as begun:
        plan, options = _settled(plan, begun)
        if not plan.sampled:
            return plan, execute(plan, options)
        from pyaccount.execute.sampling import execute_sampled  # that room imports this one's engine

        try:
            return plan, execute_sampled(plan, options)
        except LimitError as error:
            # Wherever the time ended: a seed that was drawn is known nowhere else.
            error.seed = options.seed
            raise


def settle(plan: CompiledDocument, options: RunOptions) -> CompiledDocument:
    """Return the plan with its choices made and its matrix found. Computes nothing else. Raises the errors of `run`."""
    with options.begun(plan.document) as begun:
        return _settled(plan, begun)[0]


class Estimated(NamedTuple):
    """A plan with its choices made, and the pilot's estimates if its mechanism is sampled."""

    plan: CompiledDocument
    forecast: Forecast | None


def estimate(plan: CompiledDocument, options: RunOptions) -> Estimated:
    """Make the choices of a plan, and estimate what its certificate will state. None of it is a guarantee.

    Raises the errors of `run`.
    """
    with options.begun(plan.document) as begun:
        plan, settled = _settled(plan, begun)
        if not plan.sampled:
            return Estimated(plan, None)
        from pyaccount.execute.sampling.forecast import forecast  # that room imports this one's engine

        return Estimated(plan, forecast(plan, settled))


def _settled(plan: CompiledDocument, options: RunOptions) -> tuple[CompiledDocument, RunOptions]:
    """Return the plan with its choices made, and the options with the seed of everything that is sampled for it."""
    # The choice and the certificate use one seed, so that the recorded seed reproduces both.
    seed = options.seed if plan.document.accounting.seed is None else plan.document.accounting.seed
    if seed is None:
        # A plan that is only composed does not use the seed.
        seed = secrets.randbits(64) if plan.sampled or plan.candidates else 0
    options = replace(options, seed=seed)
    if plan.candidates:
        from pyaccount.execute.choose import choose  # seldom needed

        # Only what is drawn for the certificate is stored, or drawn by other processes.
        plan = choose(plan, replace(options, runner=None))
    return plan, options
