"""The batch of a whole step, where a document speaks of one rank's or one micro-batch's.

`expected_batch_size` counts the records of all ranks and of all micro-batches between two additions of noise. Other libraries
state the batch of one rank beside how many there are; who copies that states a rate that is too low, and an ε that is too small.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyaccount.document import numerals

#: What other libraries call the number of ranks, of micro-batches in a step, and a batch, each in lower case with underscores.
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
    train_micro_batch_size_per_gpu micro_batch_size microbatch_size
"""
_BATCHES = "expected_batch_size batch_size batch train_batch_size lot_size mean_batch_size"
RANKS, MICRO_BATCHES = frozenset(_RANKS.split()), frozenset(_MICRO_BATCHES.split())
OF_ONE_RANK = frozenset(_OF_ONE_RANK.split())
BATCHES = frozenset(_BATCHES.split()) | OF_ONE_RANK

_WHOLE = "training.expected_batch_size counts the records of all ranks and of all micro-batches of a step together"


def whole_batch(said: Mapping[str, object]) -> tuple[str, str | None]:
    """What to say of the batch, and what it is if the one stated is that of a single rank or micro-batch.

    `said` is what the document states by keys as they are written here, in whichever section.
    """
    batch, ranks, micro = (_number(said, names) for names in (BATCHES, RANKS, MICRO_BATCHES))
    factors = [(ranks, "ranks"), (micro, "micro-batches")]
    known = [(count, what) for count, what in factors if count is not None and count > 1.0]
    if batch is None or not known:
        return _WHOLE, None
    product = batch
    for count, _ in known:
        product *= count
    whole = numerals.spelled(product)
    of = " and ".join(f"{count:.10g} {what}" for count, what in known)
    sums = " × ".join(f"{number:.10g}" for number in (batch, *(count for count, _ in known)))
    return f"{_WHOLE}: if {batch:.10g} is the batch of one of {of}, write {whole} ({sums})", whole


def _number(said: Mapping[str, object], names: frozenset[str]) -> float | None:
    """The first positive number under one of these names."""
    for name, value in said.items():
        number = numerals.parse_number(value) if isinstance(value, str) else value
        if name in names and isinstance(number, int | float) and not isinstance(number, bool) and 0.0 < number < 1e15:
            return float(number)
    return None
