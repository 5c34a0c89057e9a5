"""The nearest valid spelling of a word, for messages; nothing here is ever accepted in a document.

Besides small slips, the names other libraries use for the same things are known.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: The names of other libraries and common abbreviations, each with the field it means.
FIELD_ALIASES: dict[str, tuple[str, ...]] = {
    alias: tuple(field.split("."))
    for field, aliases in {
        "pyaccount": "version pyaccount_version",
        "name": "title",
        "count": "repeat repeats repetitions times num_times",
        "privacy.adjacency": "neighboring_relation neighbouring_relation neighbors neighbours relation adjacency_type",
        "privacy.group_size": "k group users_group max_group_size",
        "privacy.epsilon": "eps target_epsilon target_eps",
        "privacy.delta": "target_delta",
        "training.dataset_size": "n num_examples num_records num_samples train_size records examples",
        "training.expected_batch_size": "batch_size batch lot_size expected_batch mean_batch_size",
        "training.sampling_probability": "sample_rate sampling_rate subsampling_rate q p rate sampling_prob",
        "training.iterations": "steps num_steps n_steps max_steps num_iterations rounds num_rounds num_updates",
        "training.epochs": "num_epochs n_epochs max_epochs num_train_epochs",
        "noise.multiplier": "noise_multiplier sigma std stddev noise_scale noise_std",
        "accounting.method": "accountant accounting_method engine",
        "accounting.tolerance": "tol precision accuracy",
        "accounting.seed": "random_seed rng_seed",
        "accounting.time_limit": "timeout max_time",
        "sampler.max_participations": "participations num_participations",
        "sampler.min_separation": "min_sep separation b",
        "sampler.subset_size": "subset stage_one_size",
        "sampler.bins": "cycle_length num_bins epoch_length",
        "sampler.start": "warm_start",
        "sampler.records_per_user": "max_examples_per_user examples_per_user k_u",
        "matrix.bands": "num_bands bandwidth",
        "matrix.coefficients": "coefs toeplitz_coefficients first_column",
        "sampler.kind": "type",
    }.items()
    for alias in aliases.split()
}

#: Keys that other libraries have and this language does not need, each with what to do instead.
FOREIGN_KEYS: dict[str, str] = {
    alias: advice
    for aliases, advice in {
        "clip_norm clipping_norm l2_norm_clip max_grad_norm clipping_threshold sensitivity l2_sensitivity": (
            "leave it out: noise.multiplier is in units of the clip norm, whatever that is"
        ),
        "learning_rate lr optimizer momentum model loss weight_decay": "leave it out: it does not change the privacy of the run",
        "alphas orders rdp_orders": "leave it out: no Rényi orders are needed, the whole privacy loss is accounted for",
        "secure_mode secure_rng poisson_sampling": (
            "leave it out: the certificate lists what must be true of the run; sampler.kind says how batches are drawn"
        ),
        "shuffle reshuffle drop_last": (
            "leave it out, and let sampler.kind say how batches are drawn: of a shuffled data set `kind: none` with "
            "max_participations, one for each epoch"
        ),
        "num_microbatches microbatches gradient_accumulation_steps": (
            "leave it out, and count in training.iterations the steps to which noise is added"
        ),
    }.items()
    for alias in aliases.split()
}

#: Other words for the values of choices and kinds.
VALUE_ALIASES: dict[str, str] = {
    alias: value
    for value, aliases in {
        "add-remove": "add-or-remove add-or-remove-one add/remove unbounded",
        "zero-out": "zero-one zeroed zero-out-one zero",
        "replace-one": "replace substitute substitution swap replace-special bounded edit",
        "poisson": "bernoulli poisson-sampling poisson-subsampling iid",
        "fixed-size": "without-replacement uniform-without-replacement fixed fixed-batch wor",
        "with-replacement": "wr bootstrap replacement",
        "must-ow": "must.ow ow",
        "must-wo": "must.wo wo",
        "must-ww": "must.ww ww",
        "shuffle": "shuffling shuffled shuffled-batches shuffled-epochs shuffle-batches reshuffle reshuffled reshuffling "
        "random-shuffle random-reshuffling random-permutation permutation epochs shuffle-once shuffled-once",
        "laplace": "laplacian double-exponential",
        "none": "deterministic sequential no-sampling in-order",
        "identity": "eye i dp-sgd",
        "gaussian": "normal gauss gaussian-noise",
        "pld": "prv numerical fft",
        "auto": "rdp renyi rényi zcdp gdp clt moments moments-accountant default",
        "monte-carlo": "montecarlo mc sampling simulation",
        "b-min-sep": "bminsep min-sep b-minsep b-min-separation",
        "user-b-min-sep": "user-bminsep user-level-b-min-sep user-min-sep",
        "balls-in-bins": "bnb ballsinbins balls-and-bins",
        "cyclic-poisson": "cyclicpoisson cyclic",
        "banded-square-root": "bsr square-root sqrt",
        "optimal-toeplitz": "banded-toeplitz optimal",
    }.items()
    for alias in aliases.split()
}

# Longer words are no slips of a short one, and comparing them takes time.
_LONGEST = 64


def nearest(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The choice that is spelled most like `word`, or `None` if none is near."""
    if len(word) > _LONGEST:
        return None
    plain = {_plain(choice): choice for choice in choices}
    found = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def nearest_value(word: str, choices: Iterable[str]) -> str | None:
    """The value of a choice that `word` probably means."""
    choices = tuple(choices)
    meant = VALUE_ALIASES.get(_plain(word).replace("_", "-"))
    return meant if meant in choices else nearest(word, choices)


def alias_of(key: str) -> tuple[str, ...] | None:
    """The field that other libraries call `key`."""
    return FIELD_ALIASES.get(_plain(key)) if len(key) <= _LONGEST else None


def advice_on(key: str) -> str | None:
    """What to do about a key that other libraries have and no document needs."""
    return FOREIGN_KEYS.get(_plain(key)) if len(key) <= _LONGEST else None


def _plain(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")
