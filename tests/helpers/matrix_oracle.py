"""The part of `certificate_oracle` that derives matrices a second time: coefficients, norms, errors and their workloads.

It knows matrices only by their words and formulas, and reads the document as plain data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.consistency import Inconsistency, at, is_number
from pyaccount.errors import quoted

if TYPE_CHECKING:
    from pyaccount.records.certificate import CertificateModel, MatrixRecord, PhaseRecord
    from pyaccount.strategies.measure import Workload

#: A relative tolerance that exceeds the effect of rounding on entries, norms and errors.
ROUNDING, ERROR = 1e-9, 1e-6
#: The largest number of products that are computed for one matrix.
MOST_PRODUCTS = 300_000


def matrix_inconsistencies(data: CertificateModel, bodies: Sequence[object]) -> Iterator[Inconsistency]:
    """Yield inconsistencies of the stated matrices."""
    for index, (phase, body) in enumerate(zip(data.phases, bodies, strict=False)):
        path, record, written = f"phases[{index}].matrix", phase.matrix, at(body, "matrix", default={})
        yield from _kind(path, record, written)
        yield from _tree(path, phase, written)
        yield from _described(path, phase, written)
        yield from _norm(path, phase, written)
        yield from _searched(data, phase, written)
        yield from _workload(data, phase, at(body, "workload", default=None))
        if len(data.phases) == 1 and phase.count == 1 and data.utility is not None:
            mean, sigma = _error(phase), phase.noise_multiplier
            stated = data.utility.prefix_sum_mse
            if mean is not None and sigma is not None and not _near(stated, found := sigma * sigma * mean, ERROR):
                yield Inconsistency(
                    f"{path}.{_listed(record)}", f"give a prefix-sum MSE of {found!r}, stated is {stated!r}"
                )


def _listed(record: MatrixRecord) -> str:
    """Return the field that describes the matrix."""
    if record.entries is not None:
        return "entries"
    return "coefficients" if record.coefficients is not None or record.buffers is None else "buffers"


def _kind(path: str, record: MatrixRecord, written: Any) -> Iterator[Inconsistency]:
    kind = at(written, "kind", default="identity")
    choices = at(kind, "choose")
    if record.kind not in (choices if isinstance(choices, list) else [kind]):
        yield Inconsistency(f"{path}.kind", f"{quoted(record.kind)}, where the document says {quoted(kind)}")
    column = record.coefficients
    if column is not None and (not column or column[0] <= 0.0 or min(column) < 0.0):
        yield Inconsistency(f"{path}.coefficients", "not a column of numbers that are not negative, the first above 0")
    elif column is not None and record.bands != len(column):
        yield Inconsistency(f"{path}.coefficients", f"{len(column)} of them, where bands are {record.bands}")


def _tree(path: str, phase: PhaseRecord, written: Any) -> Iterator[Inconsistency]:
    """Check what is stated of a tree, and that it is stated of trees alone."""
    record = phase.matrix
    of_tree = record.kind == "tree"
    expected = at(written, "estimation", default="honest") if of_tree else None
    if record.estimation != expected:
        message = f"{quoted(record.estimation)}, where the document says {quoted(expected)}"
        yield Inconsistency(f"{path}.estimation", message)
    restart = at(written, "restart_every", default=None) if of_tree else None
    if restart is not None and restart >= phase.iterations:
        restart = None
    if record.restart_every != restart:
        message = f"{record.restart_every!r}, where the document says {quoted(restart)}"
        yield Inconsistency(f"{path}.restart_every", message)


def _described(path: str, phase: PhaseRecord, written: Any) -> Iterator[Inconsistency]:
    """Check the coefficients against those that follow from the document, times the stated scale."""
    record, factor = phase.matrix, phase.matrix.normalization
    if factor is None:
        return
    if not factor > 0.0:
        yield Inconsistency(f"{path}.normalization", "not above 0")
        return
    if at(written, "normalize", default=True) is False and not _near(factor, 1.0, ROUNDING):
        yield Inconsistency(f"{path}.normalization", f"{factor!r}, where the document says normalize: false")
    column, inverse = record.coefficients, record.inverse_coefficients
    if record.kind == "banded-square-root" and column is not None:
        yield from _alike(f"{path}.coefficients", column, [factor * c for c in _roots(len(column), 1.0)])
    if record.kind == "toeplitz" and column is not None:
        listed = _numbers(at(written, "coefficients"))
        while listed and listed[-1] == 0.0:
            listed.pop()
        yield from _alike(f"{path}.coefficients", column, [factor * c for c in listed])
    if record.kind == "banded-inverse" and inverse is not None:
        listed = _numbers(at(written, "inverse_coefficients")) or _roots(_whole(at(written, "bands")), -1.0)
        listed = listed[: phase.iterations]
        yield from _alike(f"{path}.inverse_coefficients", inverse, [d / factor for d in listed])
        if column is not None:
            yield from _inverse(f"{path}.coefficients", column, inverse)
    if record.buffers is not None:
        for name, given in (("scales", record.buffers.scales), ("decays", record.buffers.decays)):
            if listed := _numbers(at(written, name)):
                yield from _alike(f"{path}.buffers.{name}", given, listed)


def _searched(data: CertificateModel, phase: PhaseRecord, written: Any) -> Iterator[Inconsistency]:
    """Check that a search is reported if the document asks for one and there is something to find, with the matrix's error."""
    asked, found = at(written, "optimize_for", default=None) == "sampling", data.evidence.searched
    listed = phase.matrix.coefficients or phase.matrix.buffers
    if asked and not listed:
        yield Inconsistency("phases[0].matrix.coefficients", "not stated, although the matrix was searched for")
    elif (asked and phase.matrix.bands != 1) != (found is not None):
        said = "asks for a matrix optimised for sampling" if asked else "asks for no matrix optimised for sampling"
        yield Inconsistency("evidence.searched", f"{'stated' if found else 'not stated'}, where the document {said}")
    elif found is not None:
        mean = _error(phase)
        sigma = found.noise_multiplier_estimate
        expected = None if mean is None else sigma * sigma * mean
        if expected is not None and not _near(found.prefix_sum_mse_estimate, expected, ERROR):
            message = f"{found.prefix_sum_mse_estimate!r}, where its σ and the coefficients give {expected!r}"
            yield Inconsistency("evidence.searched.prefix_sum_mse_estimate", message)


def _workload(data: CertificateModel, phase: PhaseRecord, written: Any) -> Iterator[Inconsistency]:
    """Check that the errors under the document's workload are stated if it has one, name it, and are those of the matrix."""
    stated, found = None if data.utility is None else data.utility.workload, data.evidence.searched
    estimates = [one.workload_error_estimate for one in data.evidence.considered]
    estimates += [] if found is None else [found.workload_error_estimate]
    path = "utility.workload"
    if not isinstance(written, dict):
        if stated is not None or any(one is not None for one in estimates):
            yield Inconsistency(path, "stated, where the document has no workload")
        return
    if any(one is None for one in estimates):
        yield Inconsistency("evidence", "the errors that matrices were compared by are not stated")
    if data.utility is None:
        return
    if stated is None:
        yield Inconsistency(path, "not stated, where the document has a workload")
        return
    workload = _workload_of(written)
    if workload is None:
        return
    if stated.what != workload.words:
        yield Inconsistency(f"{path}.what", f"{quoted(stated.what)}, where the document says {workload.words}")
    variances = _variances(phase, workload)
    if variances is None:
        return
    mean, largest = _sum(variances) / len(variances), max(variances)
    # No run has both a workload and noise that differs from round to round.
    sigma = math.nan if phase.noise_multiplier is None else phase.noise_multiplier
    for name, value, expected in (
        ("mse", stated.mse, sigma * sigma * mean),
        ("rmse", stated.rmse, sigma * math.sqrt(mean)),
        ("max_error", stated.max_error, sigma * math.sqrt(largest)),
    ):
        if not _near(value, expected, ERROR):
            yield Inconsistency(f"{path}.{name}", f"{value!r}, where the matrix gives {expected!r}")
    chosen = largest if workload.largest else mean
    if found is not None and found.workload_error_estimate is not None:
        expected = found.noise_multiplier_estimate * found.noise_multiplier_estimate * chosen
        if not _near(found.workload_error_estimate, expected, ERROR):
            message = f"{found.workload_error_estimate!r}, where its σ and the coefficients give {expected!r}"
            yield Inconsistency("evidence.searched.workload_error_estimate", message)


def _workload_of(written: dict[str, Any]) -> Workload | None:
    """Return the workload that the document describes; None if its numbers are written as text."""
    from pyaccount.strategies.measure import Workload

    momentum, decay = written.get("momentum", 0.0), written.get("ema_decay", 0.0)
    rates = written.get("learning_rates")
    listed = None if rates is None else tuple(_numbers(rates))
    if not (is_number(momentum) and is_number(decay)):
        return None
    if listed is not None and not (isinstance(rates, list) and len(listed) == len(rates)):
        return None
    return Workload(float(momentum), float(decay), listed, written.get("error") == "largest")


def _variances(phase: PhaseRecord, workload: Workload) -> list[float] | None:
    """Return the variance of the noise after each round, at σ = 1, of a Toeplitz matrix; None if it takes too many products."""
    sums, n, rates = _prefix_series(phase), phase.iterations, workload.learning_rates
    if sums is None or (rates is not None and (len(rates) != n or n * n > MOST_PRODUCTS)):
        return None
    momentum, decay = workload.momentum, workload.ema_decay
    if rates is None:
        series = [(1.0 - decay) * value for value in _decayed(_decayed(sums, momentum), decay)]
        return list(accumulate(map(mul, series, series)))
    # The series of 1/((1 − βx)c(x)).
    series = _decayed([value - before for value, before in zip(sums, [0.0, *sums], strict=False)], momentum)
    variances = [0.0] * n
    for r in range(n):
        iterates = [(1.0 - decay) * value for value in _decayed(list(accumulate(map(mul, rates[r:], series))), decay)]
        for k, value in enumerate(iterates):
            variances[r + k] += value * value
    return variances


def _decayed(series: list[float], decay: float) -> list[float]:
    """Return the power series divided by 1 − decay·x."""
    return list(accumulate(series, lambda before, value: decay * before + value)) if decay else series


def _alike(path: str, stated: Sequence[float], expected: Sequence[float]) -> Iterator[Inconsistency]:
    if len(stated) != len(expected):
        yield Inconsistency(path, f"{len(stated)} of them, where the document makes {len(expected)}")
        return
    for index, (one, other) in enumerate(zip(stated, expected, strict=True)):
        if not _near(one, other, ROUNDING):
            yield Inconsistency(f"{path}[{index}]", f"{one!r}, where the document makes it {other!r}")
            return


def _inverse(path: str, column: Sequence[float], inverse: Sequence[float]) -> Iterator[Inconsistency]:
    """Check that two columns are those of inverse matrices, so that their product is the first column of the identity."""
    width = len(inverse)
    for index in range(min(len(column), MOST_PRODUCTS // max(width, 1))):
        part = column[max(0, index - width + 1) : index + 1][::-1]
        products = list(map(mul, part, inverse))
        if not abs(_sum(products) - (index == 0)) <= ROUNDING * max(1.0, _sum(list(map(abs, products)))):
            yield Inconsistency(f"{path}[{index}]", "not that of the matrix with the inverse_coefficients")
            return


def _norm(path: str, phase: PhaseRecord, written: Any) -> Iterator[Inconsistency]:
    """Check the largest column norm, which for a Toeplitz matrix is the norm of the first column."""
    record = phase.matrix
    normalised = at(written, "normalize", default=True) is not False
    column: Sequence[float] | None = record.coefficients
    if record.buffers is not None and record.normalization is not None:
        column = _blt(phase)
    norm = None if column is None else math.hypot(*column)
    if record.estimation is not None and record.normalization is not None:
        # The first record of a whole tree is in a block of each size.
        norm = record.normalization * math.sqrt(len(f"{record.restart_every or phase.iterations:b}"))
    if record.entries is not None:
        columns: dict[int, list[float]] = {}
        for row in record.entries:
            for index, entry in enumerate(row):
                columns.setdefault(index, []).append(entry)
        norm = max((math.hypot(*one) for one in columns.values()), default=0.0)
    if norm is not None and not _near(norm, record.column_norm, ROUNDING):
        yield Inconsistency(
            f"{path}.{_listed(record)}", f"of norm {norm!r}, where column_norm is {record.column_norm!r}"
        )
    if record.normalization is not None and normalised and not _near(record.column_norm, 1.0, ROUNDING):
        yield Inconsistency(f"{path}.column_norm", f"{record.column_norm!r}, where the matrix is normalised")


def _blt(phase: PhaseRecord) -> list[float] | None:
    buffers, factor = phase.matrix.buffers, phase.matrix.normalization
    assert buffers is not None
    assert factor is not None
    if len(buffers.scales) != len(buffers.decays) or len(buffers.scales) * phase.iterations > MOST_PRODUCTS:
        return None
    column, powers = [factor], [factor * scale for scale in buffers.scales]
    for _ in range(phase.iterations - 1):
        column.append(sum(powers))
        powers = list(map(mul, powers, buffers.decays))
    return column


def _error(phase: PhaseRecord) -> float | None:
    """Return (1/n)‖AC⁻¹‖_F², where A is the lower triangle of ones; None if it takes too many products."""
    record, n = phase.matrix, phase.iterations
    if record.entries is not None:
        return _dense_error(record.entries) if len(record.entries) == n else None
    if record.estimation is not None:
        return _tree_error(record, n)
    series = _prefix_series(phase)
    if series is None:
        return None
    return _sum([(n - index) * value * value for index, value in enumerate(series)]) / n


def _tree_error(record: MatrixRecord, n: int) -> float | None:
    """Return the mean over the rounds of the variance of the estimate: that of its blocks, one for each binary digit."""
    if n > MOST_PRODUCTS or not record.normalization:
        return None
    # The variance of a block of 2^h rounds, from that of its halves.
    blocks = [1.0]
    for _ in range(64):
        blocks.append(1.0 / (1.0 + 0.5 / blocks[-1]) if record.estimation == "efficient" else 1.0)

    def within(rounds: int) -> float:
        return sum(block for digit, block in zip(f"{rounds:b}"[::-1], blocks, strict=False) if digit == "1")

    restart = record.restart_every or n
    whole = within(restart)
    total = sum(t // restart * whole + within(t % restart + 1) for t in range(n))
    return total / n / record.normalization / record.normalization


def _prefix_series(phase: PhaseRecord) -> list[float] | None:
    """Return the first column of AC⁻¹, the series of 1/((1 − x)c(x)), for a Toeplitz matrix; None if it is too long."""
    record, n = phase.matrix, phase.iterations
    column = [1.0] if record.kind == "identity" else record.coefficients
    if record.buffers is not None and record.normalization is not None:
        column = _blt(phase)
    if column is None or not column or column[0] <= 0.0:
        return None
    if record.inverse_coefficients is not None:
        sums = list(accumulate(record.inverse_coefficients))
        if n > MOST_PRODUCTS or not sums:
            return None
        series = sums[:n] + sums[-1:] * (n - len(sums))
    else:
        if min(n, len(column)) * n > MOST_PRODUCTS:
            return None
        series, later = [], column[1:]
        for index in range(n):
            reached = series[max(0, index - len(later)) : index][::-1]
            series.append((1.0 - sum(map(mul, reached, later))) / column[0])
    return series


def _dense_error(rows: Sequence[Sequence[float]]) -> float | None:
    """Return the error of a matrix with few rows: X = AC⁻¹ is computed from XC = A, row by row."""
    n = len(rows)
    if any(len(row) != index + 1 or row[index] <= 0.0 for index, row in enumerate(rows)):
        return None
    total = 0.0
    for last in range(n):
        # Row `last` of X solves x C = (1, …, 1, 0, …), which is solved from the right.
        solved = [0.0] * n
        for column in range(last, -1, -1):
            known = sum(solved[row] * rows[row][column] for row in range(column + 1, last + 1))
            solved[column] = (1.0 - known) / rows[column][column]
        total += sum(value * value for value in solved)
    return total / n


def _roots(bands: int, sign: float) -> list[float]:
    """Return the first coefficients of (1 − x)^{−1/2}, or of (1 − x)^{1/2} for sign −1."""
    found = [1.0]
    for j in range(1, min(bands, MOST_PRODUCTS)):
        found.append(found[-1] * (2.0 * j - (1.0 if sign > 0.0 else 3.0)) / (2.0 * j))
    return found


def _whole(value: Any) -> int:
    """Return a whole number of a document, or 0 for any other value."""
    return int(value) if is_number(value) and value == int(value) else 0


def _sum(values: Sequence[float]) -> float:
    """Return the sum, rounded once; if an intermediate sum overflows, the result of adding the doubles one by one."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)


def _numbers(value: object) -> list[float]:
    return [float(one) for one in value if is_number(one)] if isinstance(value, list) else []


def _near(one: float, other: float, precision: float) -> bool:
    return abs(one - other) <= precision * max(abs(one), abs(other))
