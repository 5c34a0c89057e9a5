"""Finds the valid word that an unknown word probably means, and the batch of a whole step if that of one rank was stated.

Suggestions appear only in messages; documents must be exact. Small misspellings and the names that other libraries use are
recognised.

`expected_batch_size` counts the records of all ranks and of all micro-batches between two additions of noise. Other libraries
state the batch of one rank and the number of ranks. A document that copies these values has a rate that is too low, and an ε that
is too small.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from pyaccount.errors import Path
from pyaccount.reading import numerals
from pyaccount.reading.unknown_kinds import WEIGHTED

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


#: Other libraries' words for the noise itself, which is not in units of the clip norm. Whoever copies such a number where the
#: clip norm is above 1 states too much noise.
ABSOLUTE_NOISES = frozenset(("scale", "noise_scale", "std", "stddev", "noise_std", "sigma"))

#: Words that mean something else in every section: they stand for a field only beside it, or at the top of a body.
OF_ONE_SECTION = frozenset(("n", "q", "p", "b", "records", "examples", "num_samples", "group", "mu"))

#: Names in other libraries and common abbreviations, each with the field that it means. The names for the fields of a
#: kind are stated with the fields, as `AlsoCalled`.
FIELD_ALIASES: dict[str, Path] = {
    alias: tuple(field.split("."))
    for field, aliases in {
        "pyaccount": "version pyaccount_version",
        "name": "title",
        "count": "repeat repeats repetitions times num_times",
        "privacy.adjacency": "neighboring_relation neighbouring_relation neighbors neighbours relation adjacency_type",
        "privacy.group_size": "group users_group max_group_size",
        "privacy.epsilon": "eps target_epsilon target_eps",
        "privacy.delta": "target_delta",
        "privacy.risk": "risks attack attacks attack_risk",
        "privacy.risk.advantage": "advantage membership_advantage attack_advantage adv",
        "privacy.risk.true_positive_rate": "true_positive_rate tpr",
        "privacy.risk.false_positive_rate": "false_positive_rate fpr",
        "privacy.risk.gaussian_mu": "gaussian_mu mu gdp gdp_mu",
        "training.dataset_size": "n num_examples num_records num_samples train_size records examples",
        "training.expected_batch_size": " ".join(
            ("batch_size batch lot_size expected_batch mean_batch_size train_batch_size", *sorted(OF_ONE_RANK))
        ),
        "training.sampling_probability": "sample_rate sampling_rate subsampling_rate q p sampling_prob",
        "training.iterations": "steps num_steps n_steps max_steps num_iterations num_updates",
        "training.epochs": "num_epochs n_epochs max_epochs num_train_epochs",
        "noise.multiplier": " ".join(("noise_multiplier", *sorted(ABSOLUTE_NOISES))),
        "accounting.method": "accountant accounting_method engine",
        "accounting.tolerance": "tol precision accuracy",
        "accounting.seed": "random_seed rng_seed",
        "accounting.time_limit": "timeout max_time",
        "sampler.kind": "type",
    }.items()
    for alias in aliases.split()
}

#: Keys of other libraries that documents do not need, each with what to do instead.
FOREIGN_KEYS: dict[str, str] = {
    alias: advice
    for aliases, advice in {
        "clip_norm clipping_norm l2_norm_clip max_grad_norm clipping_threshold sensitivity l2_sensitivity": (
            "leave it out: noise.multiplier is in units of the clip norm, so a scale or a standard deviation of the noise is "
            "divided by it"
        ),
        "optimizer model loss weight_decay": "leave it out: it does not change the privacy of the run",
        "learning_rate lr": (
            "leave it out: it does not change the privacy of the run; workload.learning_rates states the rates for "
            "which errors are computed"
        ),
        "alphas orders rdp_orders": "leave it out: no Rényi orders are needed, since the whole privacy loss is accounted for",
        "secure_mode secure_rng poisson_sampling": (
            "leave it out: the certificate lists what must be true of the run; sampler.kind says how batches are drawn"
        ),
        "shuffle reshuffle drop_last": (
            "sampler.kind says how batches are drawn: of a shuffled data set `kind: none` with max_participations, one for each "
            "epoch, and `adjacency: zero-out`, because a record that is added or removed moves others to other batches"
        ),
        "varies varied varying vary_over grid": "write the values to try under `vary:`; `pyaccount sweep` runs such a document",
        "num_microbatches microbatches microbatch_size": (
            "if every record is clipped by itself, the micro-batches do not matter, and have no key. If the mean of "
            "each micro-batch is clipped, as in TF Privacy, one record moves such a mean by up to two clip norms: then "
            "noise.multiplier is half of what that library is given, and no record may move to another micro-batch"
        ),
        "rounds num_rounds total_rounds": (
            "training.iterations is the number of times that noise is added. If that is once in a round, it is the number of "
            "rounds. In federated training with noise in every step of a client, it is not: write one phase that has a sampler "
            "with draws: clients and, in its own phases, the training of one client (docs/mechanisms.md)"
        ),
        "local_epochs local_steps server_rounds num_server_rounds fraction_fit fraction_train clients_per_round "
        "num_clients": (
            "in federated training clients are drawn in every round, and each trains on its own records: write one phase that "
            "has a sampler with draws: clients and, in its own phases, the training of one client (docs/mechanisms.md). A record "
            "is then a record of one client, unless clients themselves are protected"
        ),
        " ".join(sorted(MICRO_BATCHES)): (
            "training.iterations counts the steps to which noise is added, not the micro-batches; where every micro-batch of a "
            "step is drawn independently, sampler.draws_per_iteration states their number"
        ),
        "unit privacy_unit unit_of_privacy privacy_level": (
            "a user with several records is protected by sampler.kind user-b-min-sep, and any k records together by "
            "privacy.group_size: k; without them single records are"
        ),
        " ".join(sorted(RANKS)): "the number of ranks has no key of its own",
        "k": (
            "k is many numbers: records that are protected together are privacy.group_size, rounds of a block in which a record "
            "takes part are sampler.participations, the records of one user are sampler.records_per_user, and the values of "
            "randomized response are mechanism.values"
        ),
        "bandwidth": (
            "matrix.bands counts the main diagonal too: a bandwidth that counts only the diagonals below it is one less than "
            "the number of bands"
        ),
        "restart restarts num_restarts": (
            "matrix.restart_every is the number of rounds after which a new tree begins, not the number of trees: with r "
            "restarts in n rounds, every ⌈n/(r + 1)⌉ rounds"
        ),
        "examples_per_user records_per_client": (
            "sampler.records_per_user is the maximum number of records of one user, which the training must enforce; an average "
            "is not a maximum"
        ),
        "schedule": (
            "noise.multiplier: {schedule: …} states the noise of each round, training.sampling_probability: {schedule: …} the "
            "sampling, and workload.learning_rates the learning rates for which errors are computed"
        ),
        "max_physical_batch_size physical_batch_size num_workers pin_memory prefetch_factor": (
            "leave it out: it says how a batch is loaded, not which records are in it"
        ),
        "weights weight class_weights class_weight sample_weights sampling_weights weighted_sampling": (
            f"{WEIGHTED}. Weights of the loss of each record change nothing if gradients are clipped after them"
        ),
    }.items()
    for alias in aliases.split()
}

#: Other words for the values of choices and for the kinds of noise, which two kinds of documents have.
VALUE_ALIASES: dict[str, str] = {
    alias: value
    for value, aliases in {
        "add-remove": "add-or-remove add-or-remove-one add/remove unbounded",
        # dp_accounting's REPLACE_SPECIAL replaces a record by one without a contribution.
        "zero-out": "zero-one zeroed zero-out-one zero replace-special",
        "replace-one": "replace substitute substitution swap bounded edit",
        "shuffle": "shuffling shuffled shuffled-batches shuffled-epochs shuffle-batches reshuffle reshuffled reshuffling "
        "shuffled-poisson random-shuffle random-reshuffling random-permutation permutation epochs shuffle-once shuffled-once",
        "laplace": "laplacian double-exponential",
        "gaussian": "normal gauss gaussian-noise",
        "pld": "prv numerical fft",
        "auto": "rdp zcdp gdp clt moments-accountant default",
        "renyi": "rényi moments renyi-divergence",
        "monte-carlo": "montecarlo mc sampling simulation",
    }.items()
    for alias in aliases.split()
}

#: A word whose similarity to another one is above this is taken for a misspelling of it.
_SLIP = 0.75

# Longer words are not compared: they do not misspell a short word, and comparing them takes time.
_LONGEST = 64


def nearest(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the choice whose spelling is most similar to `word`, or `None` if no similarity reaches `cutoff`."""
    if len(word) > _LONGEST:
        return None
    plain = {as_key(choice): choice for choice in choices}
    matches = difflib.get_close_matches(as_key(word), plain, n=1, cutoff=cutoff)
    return plain[matches[0]] if matches else None


def nearest_value(word: str, choices: Iterable[str], aliases: Mapping[str, str] | None = None) -> str | None:
    """Return the choice that `word` is another word for, or a misspelling of, or `None`. `aliases` adds to `VALUE_ALIASES`."""
    choices, key = tuple(choices), as_key(word).replace("_", "-")
    meant = (aliases or {}).get(key) or VALUE_ALIASES.get(key)
    return meant if meant in choices else misspelt(word, choices)


def misspelt(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that `word` misspells, or `None` if it only resembles one.

    Another word makes it something else: `discrete-gaussian` is not `gaussian`, `epsilon_per_step` is not `epsilon`, and
    `iterations_per_epoch` is not `iterations_per_allocation`. So a misspelling has as many words as the choice, each similar
    to that of the choice, unless the two differ only in hyphens.
    """
    near = nearest(word, choices, cutoff=_SLIP)
    if near is None:
        return None
    written, valid = as_key(word).split("_"), as_key(near).split("_")
    similar = len(written) == len(valid) and all(nearest(one, [word]) for one, word in zip(written, valid, strict=True))
    return near if similar or "".join(written) == "".join(valid) else None


def alias_of(key: str, aliases: Mapping[str, Path] = FIELD_ALIASES) -> Path | None:
    """Return the field that other libraries call `key`, or `None`. The keys of `aliases` are as `as_key` returns."""
    return aliases.get(as_key(key)) if len(key) <= _LONGEST else None


def advice_on(key: str) -> str | None:
    """Return what to do about a key of other libraries that documents do not need, or `None` for other keys."""
    return FOREIGN_KEYS.get(as_key(key)) if len(key) <= _LONGEST else None


def as_key(word: str) -> str:
    """Return the word as keys are written in documents: in lower case, with underscores."""
    return word.strip().lower().replace("-", "_").replace(" ", "_")
