"""Finds the batch of a whole step if a document states the batch of one rank or of one micro-batch.

`expected_batch_size` counts the records of all ranks and of all micro-batches between two additions of noise. Other
libraries state the batch of one rank and the number of ranks. A document that copies these values has a rate that is
too low, and an ε that is too small.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyaccount.reading import numerals

#: Names in other libraries, in lower case with underscores: of the number of ranks, of the number of micro-batches in a
#: step, of the batch of one rank or micro-batch, and of a batch.
_RANKS = """
    world_size n_gpus num_gpus n_gpu gpus num_devices n_devices devices num_processes num_ranks ranks nproc_per_node num_replicas
    replicas data_parallel_size
"""
_MICRO_BATCHES = """
    gradient_accumulation_steps accumulation_steps grad_accum_steps grad_accumulation_steps gradient_accumulation
    accumulate_grad_batches accum_steps
"""
_OF_ONE_RANK = """
    per_device_train_batch_size per_device_batch_size per_gpu_train_batch_size per_gpu_batch_size local_batch_size
    train_micro_batch_size_per_gpu micro_batch_size
"""
_BATCHES = "expected_batch_size batch_size batch train_batch_size lot_size mean_batch_size"
RANKS, MICRO_BATCHES = frozenset(_RANKS.split()), frozenset(_MICRO_BATCHES.split())
OF_ONE_RANK = frozenset(_OF_ONE_RANK.split())
BATCHES = frozenset(_BATCHES.split()) | OF_ONE_RANK

_WHOLE = "training.expected_batch_size counts the records of all ranks and of all micro-batches of a step together"


def whole_batch(said: Mapping[str, object]) -> tuple[str, str | None]:
    """Return a message about the batch, and the batch of a whole step if the stated one may be that of one rank.

    `said` contains the keys (in lower case, with underscores) and values of all sections of the document.
    """
    batch, ranks, micro = (_number(said, names) for names in (BATCHES, RANKS, MICRO_BATCHES))
    factors = [(ranks, "ranks"), (micro, "micro-batches")]
    known = [(count, what) for count, what in factors if count is not None and count > 1.0]
    if batch is None or not known:
        return _WHOLE, None
    product = batch
    for count, _ in known:
        product *= count
    whole = numerals.spelled_number(product)
    of = " and ".join(f"{count:.10g} {what}" for count, what in known)
    sums = " × ".join(f"{number:.10g}" for number in (batch, *(count for count, _ in known)))
    return f"{_WHOLE}: if {batch:.10g} is the batch of one of {of}, write {whole} ({sums})", whole


def _number(said: Mapping[str, object], names: frozenset[str]) -> float | None:
    """Return the first positive number under one of these names, or `None`."""
    for name, value in said.items():
        number = numerals.parse_number(value) if isinstance(value, str) else value
        if name in names and isinstance(number, int | float) and not isinstance(number, bool) and 0.0 < number < 1e15:
            return float(number)
    return None
