"""Fills the records of phases: what was run, with all of its numbers, its matrix and its error, from the plan that was run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pyaccount.document.noise import effective
from pyaccount.document.rates import epochs_of
from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.document.tree import Combined, Node, TrainingNode
from pyaccount.plan.common import number
from pyaccount.plan.matrices import matrix_plan, strategy, workload_error
from pyaccount.plan.matrices.base import workload_of
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.plan.samplers import sampler_plan
from pyaccount.plan.schedule_values import constant_multiplier, multipliers_of, scale_of, values_of
from pyaccount.records.certificate import (
    BufferRecord,
    MatrixRecord,
    MechanismRecord,
    PhaseRecord,
    ProbabilitiesRecord,
    ReleaseRecord,
    ScheduleRecord,
    Utility,
    WorkloadUtility,
)
from pyaccount.records.fields import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyaccount.document.document import Document
    from pyaccount.document.own_probabilities import OwnProbabilities
    from pyaccount.errors import Path

AnyRecord = TypeVar("AnyRecord", bound=Record)

#: The longest first column that is listed although it follows from that of the inverse; the most rows of a matrix from
#: a file.
MOST_COEFFICIENTS, MOST_ROWS = 4096, 32


def phase_record(node: Node, document: Document, asked: Node, protection: Protection) -> PhaseRecord:
    """Return the record of a phase; `asked` is the phase before choices were made and its blank was filled."""
    if isinstance(node, TrainingNode):
        assert isinstance(asked, TrainingNode)
        return _run(RunCase(protection, node), asked)
    rate = None if node.draw is None or node.own_probabilities is not None else node.draw.probability
    return _sparse(
        PhaseRecord,
        name=node.name,
        sampler=node.sampler_kind,
        iterations=1,
        count=node.count,
        mechanism=_mechanism(node, document),
        sampling_probability=rate,
        probabilities=_probabilities(node.own_probabilities),
        participation_rate=rate,
        matrix=NO_MATRIX,
    )


def _sparse(record: type[AnyRecord], **stated: Any) -> AnyRecord:
    """Return a record in which every field that is not stated is null."""
    return record(**{**dict.fromkeys(record.model_fields), **stated})


#: The matrix of a phase without training.
NO_MATRIX = _sparse(MatrixRecord, kind="identity", bands=1, column_norm=1.0)


def _run(case: RunCase, asked: TrainingNode) -> PhaseRecord:
    body = case.node
    plan, draws, also = sampler_plan(case), body.draws_per_iteration(), body.noise.also
    sigma, one_rate = constant_multiplier(case), body.has_one_rate
    # With a matrix, no single release is as private as all of a batch together.
    joined = (
        []
        if sigma is None or not also or body.matrix.kind != "identity"
        else [sigma, *(one.multiplier for one in also)]
    )
    return PhaseRecord(
        name=body.name,
        sampler=body.sampler.kind,
        chosen=body.sampler.chosen_of(asked.sampler) or None,
        iterations=number(body.training.iterations),
        epochs=_epochs(body),
        count=body.count,
        noise_multiplier=sigma,
        mechanism=None,
        schedules=_schedule_records(case),
        also=[ReleaseRecord(what=one.what, noise_multiplier=one.multiplier) for one in also] or None,
        effective_noise_multiplier=effective(joined)[0] if joined else None,
        sampling_probability=body.sampling_probability() if plan.states_probability and one_rate else None,
        probabilities=_probabilities(body.own_probabilities),
        draws_per_iteration=None if draws == 1 else draws,
        participation_rate=body.participation_rate() if body.sampler.common_rate and one_rate else None,
        expected_batch_size=body.expected_batch_size(),
        distinct_records=plan.distinct_records() if one_rate else None,
        noise=body.noise.kind,
        matrix=matrix_record(case, asked),
    )


def _probabilities(own: OwnProbabilities | None) -> ProbabilitiesRecord | None:
    """Return the probabilities of single records; None if all of them are drawn with the same one."""
    if own is None:
        return None
    return ProbabilitiesRecord(
        largest=own.largest() or 0.0, strata={stratum.name: stratum.probability for stratum in own.named()} or None
    )


def _mechanism(node: Node, document: Document) -> MechanismRecord:
    """Return what a node without training of its own releases, as its document states it."""
    stated: Any = document.to_mapping()
    for part in node.path:
        stated = stated[part]
    keys = (
        {key: stated[key] for key in (node.key, node.list_key)}
        if isinstance(node, Combined)
        else dict(stated["mechanism"])
    )
    keys.pop("kind", None)
    if node.draw is not None and node.draw.clients:
        keys["draws"] = stated["sampler"]["draws"]
    if document.shared_noise is not None and any(one.stated_noise is not None for one in node.runs()):
        keys["noise"] = {"scale": document.shared_noise.scale}
    return MechanismRecord(kind=node.released_kind, stated=keys)


def matrix_record(case: RunCase, asked: TrainingNode) -> MatrixRecord:
    """Return what is stated about C: enough to train with it. `asked` is the phase before a matrix was searched for."""
    stated, built = asked.matrix if asked.matrix.searched else case.node.matrix, strategy(case)
    kind = stated.kind if isinstance(stated.kind, str) else "choose"
    listed: list[float] | None = None
    short = built.inverse is None or built.iterations <= MOST_COEFFICIENTS
    if built.coefficients is not None and built.buffers is None and short:
        listed = list(built.coefficients)
    entries: list[list[float]] | None = None
    if built.dense is not None and built.rows <= MOST_ROWS:
        square = built.rows == built.iterations
        entries = [(row[: index + 1] if square else row).tolist() for index, row in enumerate(built.dense)]
    independent, tree = kind == "identity", built.tree
    return MatrixRecord(
        kind=kind,
        bands=built.bands,
        inverse_bands=matrix_plan(case).inverse_bands(),
        column_norm=built.column_norm,
        normalization=None if independent else built.normalization,
        coefficients=None if independent else listed,
        inverse_coefficients=None if built.inverse is None else list(built.inverse),
        entries=entries,
        size=None if built.dense is None else built.iterations,
        rows=None if built.dense is None or built.rows == built.iterations else built.rows,
        estimation=None if tree is None else "efficient" if tree.efficient else "honest",
        restart_every=None if tree is None or tree.restart_every == tree.rounds else tree.restart_every,
        buffers=None
        if built.buffers is None
        else BufferRecord(scales=list(built.buffers[0]), decays=list(built.buffers[1])),
        sha256=built.fingerprint,
    )


def _epochs(body: TrainingNode) -> float | None:
    """Return how many epochs the iterations of a body are; None unless its document counts in epochs."""
    length = None if body.epochs is None else body.epoch()
    if length is None:
        return None
    return epochs_of(number(body.training.iterations), length)


def utility_record(document: Document, protection: Protection) -> Utility | None:
    """Return σ²·(1/n)‖AC⁻¹‖_F², its root, and σ times the largest row norm of AC⁻¹: for prefix sums and a workload."""
    run = document.phases[0]
    if len(document.phases) != 1 or run.count != 1 or not isinstance(run, TrainingNode):
        return None
    if not run.noise.sums_have_error:
        return None
    case = RunCase(protection, run)
    noises = multipliers_of(case)
    if noises is not None:
        return _scheduled_utility(noises)
    sigma, error = number(case.node.noise.multiplier), strategy(case).error
    mse = sigma * sigma * error.mean_square
    return Utility(
        prefix_sum_mse=mse,
        prefix_sum_rmse=math.sqrt(mse),
        max_error=sigma * math.sqrt(error.max_square),
        workload=workload_utility(case, sigma),
    )


def _scheduled_utility(noises: NDArray[np.float64]) -> Utility:
    """Return the errors of prefix sums with independent noise of these multipliers.

    The sum of the first t rounds has the variance Σ_{s≤t} σ_s². So the mean over t counts σ_s² in n − s of n sums (s from 0).
    """
    import numpy as np  # only documents with schedules need it

    squares, rounds = noises * noises, len(noises)
    shares = np.arange(rounds, 0, -1) / rounds
    mse = math.fsum((shares * squares).tolist())
    most = math.sqrt(math.fsum(squares.tolist()))
    return Utility(prefix_sum_mse=mse, prefix_sum_rmse=math.sqrt(mse), max_error=most, workload=None)


def workload_utility(case: RunCase, sigma: float) -> WorkloadUtility | None:
    """Return the errors of `utility_record` under the workload of a body, for noise multiplier σ; None if it has none."""
    if case.node.workload is None:
        return None
    error = workload_error(case)
    mse = sigma * sigma * error.mean_square
    return WorkloadUtility(
        what=workload_of(case.node).words, mse=mse, rmse=math.sqrt(mse), max_error=sigma * math.sqrt(error.max_square)
    )


_Called = Literal["noise.multiplier", "training.sampling_probability", "training.expected_batch_size"]
_CALLED: dict[str, _Called] = {
    "multiplier": "noise.multiplier",
    "sampling_probability": "training.sampling_probability",
    "expected_batch_size": "training.expected_batch_size",
}


def called(path: Path) -> _Called:
    """Return the key that has a schedule, given its document path, as the certificate names it: inside of its phase."""
    return _CALLED[str(path[-1])]


def _schedule_records(case: RunCase) -> list[ScheduleRecord] | None:
    """Return what is stated about each schedule of a phase whose blank is filled; None if it has none."""
    records = []
    for path, scheduled in case.node.schedules().items():
        found, scale = values_of(case, path), scale_of(scheduled)
        records.append(
            ScheduleRecord(
                of=called(path),
                least=scale * found.least,
                most=scale * found.most,
                distinct=found.distinct,
                scale=scale if isinstance(scheduled, ScheduledMultiplier) else None,
                sha256=found.sha256,
            )
        )
    return records or None
