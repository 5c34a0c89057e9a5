"""What the pilot says before anything is certified: estimates of δ and σ, and what a test will cost. Never a guarantee."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.errors import DocumentError
from pyaccount.execute.progress import Stage, limit_of, limited
from pyaccount.execute.sampling.calibrate import pilot_noise
from pyaccount.execute.sampling.pilot import Claim, choose_betting
from pyaccount.execute.sampling.session import FAILURE_SHARE, open_session
from pyaccount.execute.sampling.shards import shown

if TYPE_CHECKING:
    from pyaccount.directions import SampledDirection
    from pyaccount.document import Document
    from pyaccount.execute.progress import Report
    from pyaccount.execute.sampling.pilot import Estimate
    from pyaccount.execute.sampling.session import Session
    from pyaccount.plan.plan import Plan

#: Relative standard error at which the estimate is good enough, and shards after which it is taken as it is.
ENOUGH, MOST_SHARDS = 0.05, 512


@dataclass(frozen=True, slots=True)
class Forecast:
    """The pilot's estimates, and the cost of a test in words."""

    epsilon: float
    noise_multiplier: float | None
    estimates: dict[SampledDirection, Estimate]
    costs: tuple[str, ...]


def forecast(
    plan: Plan, *, threads: int = 0, time_limit: float | None = None, report: Report | None = None
) -> Forecast:
    """Estimate σ (if it is the blank) and δ at the document's ε, and what a test of the claim would take."""
    document = plan.document
    if not plan.sampled or document.privacy.epsilon == "solve":
        path = ("privacy", "epsilon") if plan.sampled else ("sampler", "kind")
        message = "estimates are of δ at a given ε, for mechanisms that are judged by sampling; certify gives this answer itself"
        raise DocumentError([document.problem("contradiction", path, message)])
    seed = document.accounting.seed
    stage, limit = Stage(report), limit_of(document, time_limit, "time_limit=")
    session = open_session(
        plan,
        threads=threads,
        time_limit=time_limit,
        report=stage,
        seed=secrets.randbits(64) if seed is None else seed,
    )
    with limited(limit, stage):
        return _forecast(session, document)


def _forecast(session: Session, document: Document) -> Forecast:
    epsilon, delta = document.privacy.epsilon, document.privacy.delta
    assert epsilon != "solve"
    sigma = None
    if document.blank is not None and document.blank[-1] == "multiplier":
        assert delta != "solve"
        session.claim = delta * (1.0 - FAILURE_SHARE)
        sigma, _ = pilot_noise(session, document)
        document = document.with_value(document.blank, sigma * 1.01)
    mechanism = session.mechanism(document)
    session.sampler.stage("pilot")
    estimates = session.estimate(mechanism, epsilon, shards=64)
    for direction, estimate in estimates.items():
        shards, best = 64, estimate
        while best.value > 0.0 and best.standard_error > ENOUGH * best.value and shards < MOST_SHARDS:
            shards *= 2
            best = session.pilot.measure(mechanism, direction, epsilon, estimate.proposal, shards)
        estimates[direction] = best
    costs = []
    if delta != "solve":
        q = FAILURE_SHARE * delta
        multiplier = session.noise(document)
        claim = Claim(mechanism, multiplier, epsilon, (delta - q) / (1.0 - q), math.log(1.0 / q))
        for direction, estimate in estimates.items():
            betting = choose_betting(session.pilot, claim, direction, estimate)
            if betting is None:
                costs.append(f"{direction}: the claim at δ = {delta:g} looks false, no test would accept it")
                continue
            seconds = betting.expected_samples * mechanism.cost / 2e9
            costs.append(
                f"{direction}: a test at σ = {multiplier:.5g} is expected to take {shown(betting.expected_samples)} samples, "
                f"each at most {betting.cap:.3g}: about {seconds:.2g} s on two cores"
            )
    return Forecast(epsilon, sigma, estimates, tuple(costs))
