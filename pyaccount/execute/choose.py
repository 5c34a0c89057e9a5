"""Make the choices that a document leaves open: take the candidate with the smallest error at the target.

The matrix of a candidate may itself be left to a search (`optimal`); then the chosen plan contains its coefficients.

Each candidate's noise is calibrated, by the pilot if the mechanism is sampled. The errors σ²·(1/n)‖AC⁻¹‖_F² are then
compared, where A is the matrix of the workload (or the largest errors, if the workload asks for these). If numbers of
the sampler are among the choices, batches may differ in size, and errors are compared in units of the squared batch
size, as errors of means. The guarantee does not depend on any of this: it only decides which mechanism to certify, and
the certificate draws other samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyaccount.errors import DocumentError, LimitError
from pyaccount.execute.engine import Engine
from pyaccount.execute.options import RunOptions
from pyaccount.execute.progress import during, knowing, silent
from pyaccount.execute.solve import solve
from pyaccount.plan.common import given, number
from pyaccount.plan.compiled import CompiledDocument, Considered
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import proposed

#: The relative precision of the noise that a sampled candidate needs, and the number of shards of an estimate.
PRECISION, SHARDS = 3e-3, 8


def choose(plan: CompiledDocument, options: RunOptions) -> CompiledDocument:
    """Return the plan of the best candidate, with the list of the candidates considered.

    All candidates share the time limit. Raises `DocumentError` if none reaches the target, `LimitError`.
    """
    assert plan.asked is not None
    considered: list[Considered] = []
    best: tuple[float, CompiledDocument] | None = None
    refused: DocumentError | None = None
    for k, candidate in enumerate(plan.candidates):
        matrix, sampler = candidate.run.matrix, candidate.run.sampler
        chosen = tuple(sampler.chosen_of(plan.asked.run.sampler).items())
        bands = matrix.diagonals() or number(candidate.run.training.iterations)
        label = f"{matrix.kind}, {bands} bands{_choice_words(chosen)}"
        several = f"comparing {len(plan.candidates)} matrices"
        stage = f"{several}: {label}" if len(plan.candidates) > 1 else label
        options.report(stage, k, len(plan.candidates))
        try:
            # The plan was compiled as its first candidate.
            compiled = replace(plan if k == 0 else compile_document(candidate), candidates=())
            with knowing(lambda: map(_candidate_words, considered)):
                if matrix.searched:
                    from pyaccount.execute.optimal import optimise  # scipy, and seldom needed

                    with during("optimising the matrix"):
                        compiled = optimise(compiled, options)
                if compiled.searched is not None:
                    sigma = compiled.searched.found.noise_multiplier
                else:
                    sigma = _noise(compiled, replace(options, report=silent))
        except LimitError as error:
            error.stage = f"{stage}{': ' if error.stage else ''}{error.stage}"
            raise
        except DocumentError as error:
            refused = error
            continue
        errors = proposed(compiled.only_run, sigma)
        body = compiled.document.run
        relative = errors.squared_error / body.sampler.batch_share(body) ** 2 if chosen else None
        found = Considered(
            str(matrix.kind), bands, sigma, errors.prefix_sum_mse, errors.squared_error, chosen, relative
        )
        considered.append(found)
        if best is None or found.compared < best[0]:
            best = (found.compared, compiled)
    if best is None:
        raise given(refused)
    # A single matrix that was searched for is not a choice among several.
    compared = tuple(considered) if plan.asked.choices else ()
    return replace(best[1], candidates=(), asked=plan.asked, considered=compared)


def _choice_words(chosen: Iterable[tuple[str, int]]) -> str:
    """Return the chosen fields of the sampler in words, to append to a phrase."""
    return "".join(f", {name} {value}" for name, value in chosen)


def _candidate_words(one: Considered) -> str:
    """Return in words what was found for a candidate."""
    matrix = f"{one.matrix} with {one.bands} bands{_choice_words(one.chosen)}"
    return f"{matrix}: squared error near {one.squared_error:.4g}, an estimate"


def _noise(plan: CompiledDocument, options: RunOptions) -> float:
    """Return the approximate σ that a candidate needs."""
    if plan.sampled:
        from pyaccount.execute.sampling.calibrate import pilot_noise, take_claim
        from pyaccount.execute.sampling.session import open_session
        from pyaccount.execute.sampling.tests_of_claims import FAILURE_SHARE

        session = open_session(plan, options)
        take_claim(session)
        delta = number(session.plan.document.privacy.delta) * (1.0 - FAILURE_SHARE)
        sigma, _ = pilot_noise(session, delta, precision=PRECISION, shards=SHARDS)
        return sigma
    engine = Engine(threads=options.threads, time_limit=options.remaining)
    return float(solve(plan, engine, options.report).value)
