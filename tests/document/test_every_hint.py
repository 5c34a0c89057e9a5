"""Every word, number and default that a message may lead to, with why following it gives no ε below the truth.

What the package knows is collected from its code, so a word or default without a judgement here fails. A word is in one of
three classes. Neutral: it names exactly what is suggested. Safe: what is suggested is at least as private in truth as in the
document. Asks: the message says which decision is needed and suggests nothing.
"""

import math
import re
from typing import Any

import pytest
from plain_documents import doc, document
from snapshots import Snapshot

import pyaccount
from pyaccount.document.matrices import MATRICES
from pyaccount.document.mechanisms import MECHANISMS
from pyaccount.document.models import SingleDocument
from pyaccount.document.noise import AnyNoise
from pyaccount.document.samplers import SAMPLERS
from pyaccount.document.selection import RUNS
from pyaccount.document.shape import leaves, reader_of
from pyaccount.document.validation import _also_called
from pyaccount.document.words import ADJACENCIES
from pyaccount.errors import DocumentError, Problem
from pyaccount.filters import filter_of
from pyaccount.reading import numerals, unknown_kinds
from pyaccount.reading.fields import Choice
from pyaccount.reading.kinds import Kinds
from pyaccount.reading.spelling import (
    ABSOLUTE_NOISES,
    FIELD_ALIASES,
    FOREIGN_KEYS,
    OF_ONE_RANK,
    VALUE_ALIASES,
    nearest_value,
)

#: Words for a field that are neutral: the number that stands under the word is that of the field.
FIELDS = {
    "pyaccount": "version pyaccount_version",
    "name": "title",
    "count": "repeat repeats repetitions times num_times",
    "privacy.adjacency": "neighboring_relation neighbouring_relation neighbors neighbours relation adjacency_type",
    "privacy.group_size": "group users_group max_group_size",
    # A target is a claim, which is checked.
    "privacy.epsilon": "eps target_epsilon target_eps",
    "privacy.delta": "target_delta",
    "privacy.risk": "risks attack attacks attack_risk",
    "privacy.risk.advantage": "advantage membership_advantage attack_advantage adv",
    "privacy.risk.true_positive_rate": "true_positive_rate tpr",
    "privacy.risk.false_positive_rate": "false_positive_rate fpr",
    "privacy.risk.gaussian_mu": "gaussian_mu mu gdp gdp_mu",
    "training.dataset_size": "n num_examples num_records num_samples train_size records examples",
    # With a number of ranks or micro-batches beside it, the batch of the whole step is suggested.
    "training.expected_batch_size": "batch_size batch lot_size expected_batch mean_batch_size train_batch_size",
    "training.sampling_probability": "sample_rate sampling_rate subsampling_rate q p sampling_prob",
    "training.iterations": "steps num_steps n_steps max_steps num_iterations num_updates",
    "training.epochs": "num_epochs n_epochs max_epochs num_train_epochs",
    "noise.multiplier": "noise_multiplier",
    # Every engine and tolerance gives a bound.
    "accounting.method": "accountant accounting_method engine",
    "accounting.tolerance": "tol precision accuracy",
    "accounting.seed": "random_seed rng_seed",
    "accounting.time_limit": "timeout max_time",
    "sampler.kind": "type",
    "sampler.subset_size": "subset stage_one_size",
    "sampler.min_separation": "min_sep separation b",
    "sampler.start": "warm_start",
    "sampler.records_per_user": "max_examples_per_user max_records_per_user k_u",
    "sampler.iterations_per_allocation": "allocation_length rounds_per_allocation steps_per_allocation",
    "sampler.participations": "num_selected rounds_per_record",
    "sampler.bins": "cycle_length num_bins epoch_length",
    "sampler.max_participations": "participations num_participations",
    "matrix.bands": "num_bands",
    "matrix.coefficients": "coefs toeplitz_coefficients first_column",
    # How many partitions a record is counted in, in every library.
    "mechanism.max_partitions": "l0_sensitivity max_partitions_contributed max_groups_contributed max_contributed_partitions",
    "workload.ema_decay": "polyak_decay averaging_decay",
}

#: Keys that have no field, with a part of what the message says.
KEYS = {
    # Neutral: no bound depends on them.
    "optimizer model loss weight_decay": "does not change the privacy",
    "learning_rate lr": "does not change the privacy",
    "alphas orders rdp_orders": "no Rényi orders are needed",
    "max_physical_batch_size physical_batch_size num_workers pin_memory prefetch_factor": "how a batch is loaded",
    "varies varied varying vary_over grid": "under `vary:`",
    # Asks: each says what the number means here.
    "clip_norm clipping_norm l2_norm_clip max_grad_norm clipping_threshold sensitivity l2_sensitivity": "is divided by it",
    "secure_mode secure_rng poisson_sampling": "sampler.kind says how batches are drawn",
    "shuffle reshuffle drop_last": "`adjacency: zero-out`",
    "num_microbatches microbatches microbatch_size": "noise.multiplier is half",
    "rounds num_rounds total_rounds": "the number of times that noise is added",
    "local_epochs local_steps server_rounds num_server_rounds fraction_fit fraction_train clients_per_round num_clients": (
        "draws: clients"
    ),
    "accum_steps accumulate_grad_batches accumulation_steps grad_accum_steps grad_accumulation_steps gradient_accumulation "
    "gradient_accumulation_steps": "not the micro-batches",
    "data_parallel_size devices gpus n_devices n_gpu n_gpus nproc_per_node num_devices num_gpus num_processes num_ranks "
    "num_replicas ranks replicas world_size": "the records of all ranks",
    "unit privacy_unit unit_of_privacy privacy_level": "privacy.group_size: k",
    "weights weight class_weights class_weight sample_weights sampling_weights weighted_sampling": "the largest of these",
    "k": "mechanism.values",
    "bandwidth": "one less than the number of bands",
    "restart restarts num_restarts": "not the number of trees",
    "examples_per_user records_per_client": "an average is not a maximum",
    "schedule": "noise.multiplier: {schedule: …}",
}

ANSWERS = [(word, answer) for said, answer in KEYS.items() for word in said.split()]

#: Other words for values. All are neutral, except that `edit` may mean less than replace-one, which is safe.
VALUES = {
    "add-remove": "add-or-remove add-or-remove-one add/remove unbounded",
    "zero-out": "zero-one zeroed zero-out-one zero replace-special",
    "replace-one": "replace substitute substitution swap bounded edit",
    # This kind exists nowhere: the message asks.
    "shuffle": "shuffling shuffled shuffled-batches shuffled-epochs shuffle-batches reshuffle reshuffled reshuffling "
    "shuffled-poisson random-shuffle random-reshuffling random-permutation permutation epochs shuffle-once shuffled-once",
    "laplace": "laplacian double-exponential",
    "gaussian": "normal gauss gaussian-noise",
    # Whichever engine computes, the bound holds.
    "pld": "prv numerical fft",
    "auto": "rdp zcdp gdp clt moments-accountant default",
    "renyi": "rényi moments renyi-divergence",
    "monte-carlo": "montecarlo mc sampling simulation",
}

#: Other words for kinds; neutral, except those of `none`, which amplifies nothing and so is safe.
KIND_WORDS = {
    "sampler": {
        "poisson": "bernoulli poisson-sampling poisson-subsampling",
        "fixed-size": "uniform-without-replacement sampled-without-replacement",
        "with-replacement": "wr replacement sampled-with-replacement",
        "must-ow": "must.ow ow",
        "must-wo": "must.wo wo",
        "must-ww": "must.ww ww",
        "b-min-sep": "bminsep min-sep b-minsep b-min-separation",
        "user-b-min-sep": "user-bminsep user-level-b-min-sep user-min-sep",
        "random-allocation": "allocation random-allocations k-out-of-t",
        "balls-in-bins": "bnb ballsinbins balls-bins balls-and-bins",
        "cyclic-poisson": "cyclicpoisson",
        "none": "deterministic sequential no-sampling in-order",
    },
    "matrix": {
        "identity": "eye i dp-sgd",
        "banded-square-root": "bsr square-root sqrt banded-sqrt banded-root",
        "optimal-toeplitz": "optimal-banded-toeplitz",
        # Kairouz et al. (2021), who named DP-FTRL; Honaker's estimate is computed from the same nodes.
        "tree": "binary-tree tree-aggregation honaker ftrl dp-ftrl",
    },
    "mechanism": {
        "gaussian": "gaussian-mechanism normal gauss",
        "laplace": "laplace-mechanism laplacian double-exponential",
        "discrete-gaussian": "gaussian-discrete discrete-normal dgauss discretegaussian",
        "discrete-laplace": "geometric two-sided-geometric double-geometric laplace-discrete discretelaplace",
        "skellam": "skellam-noise symmetric-skellam poisson-difference distributed-skellam",
        "distributed-discrete-gaussian": "ddgauss sum-of-discrete-gaussians distributed-gaussian "
        "distributed-discrete-normal ddg",
        # The report of the largest utility with Gumbel noise is the exponential mechanism.
        "exponential": "exponential-mechanism em gumbel softmax-selection",
        "permute-and-flip": "permute-flip permuteandflip pf",
        # What is selected is a group of a table, by its count: nothing else is called so.
        "partition-selection": "thresholding threshold partitions private-partition-selection key-selection set-union "
        "tau-thresholding select-partitions stability-histogram unknown-domain",
        "report-noisy-max": "noisy-max rnm argmax report-noisy-argmax noisy-argmax",
        "randomized-response": "rr randomised-response k-rr krr warner",
        "mixture-of-gaussians": "gaussian-mixture mixture-of-gaussian mog mixture-gaussian mixtureofgaussians",
        "stated": "guarantee black-box vendor known approximate-dp pure-dp zcdp",
    },
    "number of runs": {"negative-binomial": "truncated-negative-binomial tnb"},
    "noise": {},
}
KINDS = {
    "sampler": Kinds("sampler", SAMPLERS),
    "matrix": Kinds("matrix", MATRICES),
    "mechanism": Kinds("mechanism", MECHANISMS),
    "number of runs": Kinds("number of runs", RUNS),
    "noise": AnyNoise.__metadata__[0],
}

#: Words with several meanings, whose ε differ, and kinds without a bound: the message asks.
REFUSED = {
    "sampler": (
        "shuffle shuffled random-permutation weighted stratified fixed fixed-batch without-replacement wor swor cyclic "
        "round-robin iid independent bootstrap"
    ),
    "matrix": "optimal banded-toeplitz banded restarted-tree tree-restart",
    "noise": "discrete-gaussian discrete-laplace geometric skellam binomial staircase exponential gumbel",
    "mechanism": "sparse-vector svt pate teachers shuffle binomial staircase",
}


def words(table: dict[str, str]) -> dict[str, str]:
    return {word: meant for meant, said in table.items() for word in said.split()}


def problem_at(source: dict[str, Any], *path: str) -> Problem:
    with pytest.raises(DocumentError) as refused:
        pyaccount.load(source)
    return next(problem for problem in refused.value.problems if problem.path == path)


def test_every_word_for_a_field_is_judged() -> None:
    known = {word: ".".join(map(str, path)) for word, path in {**FIELD_ALIASES, **_also_called()}.items()}
    chosen = {word: field for word, field in known.items() if word not in ABSOLUTE_NOISES | OF_ONE_RANK}
    assert words(FIELDS) == chosen


def test_an_absolute_noise_is_to_be_divided(snapshot: Snapshot) -> None:
    snapshot([problem_at(document(noise={word: 20}), "noise", word) for word in sorted(ABSOLUTE_NOISES)])


def test_the_batch_of_one_rank_is_suggested_for_no_step(snapshot: Snapshot) -> None:
    for word in sorted(OF_ONE_RANK):
        training = {"dataset_size": 10_000, word: 16, "iterations": 400}
        one, ranks = (document(training=training | more) for more in ({}, {"world_size": 8}))
        snapshot(problem_at(one, "training", word), problem_at(ranks, "training", word))


def test_every_key_without_a_field_is_judged() -> None:
    assert {word for word, _ in ANSWERS} == set(FOREIGN_KEYS)


@pytest.mark.parametrize(("word", "answer"), ANSWERS)
def test_a_key_without_a_field(word: str, answer: str) -> None:
    problem = problem_at(document(**{f"training__{word}": 4}), "training", word)
    assert problem.suggestion is None
    assert answer in problem.message


def test_every_other_word_for_a_value_is_judged() -> None:
    assert words(VALUES) == VALUE_ALIASES


@pytest.mark.parametrize("section", KINDS)
def test_every_other_word_for_a_kind_is_judged(section: str) -> None:
    assert KINDS[section].aliases == words(KIND_WORDS[section])


def test_every_refused_word_is_no_kind_and_suggests_none() -> None:
    refused = (unknown_kinds.SAMPLERS, unknown_kinds.MATRICES, unknown_kinds.NOISES, unknown_kinds.MECHANISMS)
    for (section, said), reasons in zip(REFUSED.items(), refused, strict=True):
        assert set(reasons) <= set(said.split()), section
        for word in said.split():
            base = doc(name="one", delta=1e-6)
            source = (
                base | {"mechanism": {"kind": word}}
                if section == "mechanism"
                else document(**{section: {"kind": word}})
            )
            problem = problem_at(source, section, "kind")
            assert (problem.slug, problem.suggestion) == ("unknown-kind", None), word
            assert len(problem.message) > 60, word
    # Words for what is refused lead to these kinds.
    assert set(unknown_kinds.ALIASES.values()) <= {key for reasons in refused for key in reasons}


#: What is done with the data, and what a hint used to name in its place: the latter is certified at a smaller ε.
FORMER = [
    ({"sampler": {"kind": "none", "max_participations": 4}}, {"sampler": {"kind": "fixed-size"}}),
    ({"sampler": {"kind": "none", "max_participations": 4}}, {"sampler": {"kind": "cyclic-poisson", "partitions": 2}}),
    ({"training__expected_batch_size": 128}, {"training__expected_batch_size": 16}),
    ({"noise__multiplier": 0.5}, {"noise__multiplier": 1.0}),
    ({"noise__multiplier": 2.0}, {"noise__multiplier": 20.0}),
    ({"training__iterations": 400}, {"training__iterations": 40}),
]


@pytest.mark.parametrize(("truth", "hinted"), FORMER)
def test_why_these_words_are_asked_about(truth: dict[str, Any], hinted: dict[str, Any]) -> None:
    target = {"privacy__epsilon": "solve", "privacy__adjacency": "zero-out", "accounting__tolerance": 0.2}
    epsilon = pyaccount.certify(document(**target, **truth)).epsilon_lower
    assert pyaccount.certify(document(**target, **hinted)).epsilon < epsilon


#: Words of other libraries that resemble a key and mean another quantity, with the section in which they are written.
OTHER_QUANTITIES = [
    ("privacy", "epsilon_per_step step_epsilon epsilon_prime delta_prime delta_error beta theta epoch_size"),
    (
        "training",
        "iterations_per_epoch steps_per_epoch epochs_per_round server_epochs eval_batch_size max_batch_size epoch_size",
    ),
    ("training", "truncated_batch_size microbatch_size rounds num_rounds fraction ratio n_batches warmup_steps rate"),
    ("noise", "b k q p n scale_factor noise_level records examples num_samples"),
    ("sampler", "k bandwidth rounds restarts schedule"),
    ("accounting", "records num_samples p n"),
]


@pytest.mark.parametrize(
    ("section", "word"), [(section, word) for section, said in OTHER_QUANTITIES for word in said.split()]
)
def test_a_word_for_another_quantity_is_no_misspelling(section: str, word: str) -> None:
    assert problem_at(document(**{f"{section}__{word}": 4}), section, word).suggestion is None


@pytest.mark.parametrize(
    "word", ["p", "q", "n", "rate", "iterations", "sigma", "noise_multiplier", "batch_size", "k", "b"]
)
def test_a_word_in_a_mechanism_leads_to_no_training_run(word: str) -> None:
    source = {"pyaccount": 1, "name": "one", "privacy": {"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6}}
    source["mechanism"] = {"kind": "randomized-response", "values": 2, "truth_probability": 0.7, word: 0.9}
    assert problem_at(source, "mechanism", word).suggestion is None


@pytest.mark.parametrize(
    "word",
    [
        "add-replace",
        "add-remove-replace",
        "remove",
        "insert-delete",
        "change-one",
        "hamming",
        "symmetric",
        "user",
        "record",
        "local",
    ],
)
def test_no_adjacency_is_guessed(word: str) -> None:
    assert nearest_value(word, ADJACENCIES) is None


def test_no_value_of_a_choice_is_taken_for_another() -> None:
    for path, field in leaves(SingleDocument):
        reader = reader_of(field)
        if isinstance(reader, Choice):
            for word in reader.words:
                others = [other for other in reader.words if other != word]
                assert nearest_value(word, others) is None, (path, word)


#: One text for each pattern of numbers as they are written elsewhere, with the number that it is.
NUMBERS = ["1%", "50,000", "8,5", "5k", "1/8", "2 * 10^-5", "2*10-5", "1-5", "8 nats", "1e-5# small"]
VALUES_OF_NUMBERS = [0.01, 50_000, 8.5, 5000, 0.125, 2e-5, 2e-5, 1e-5, 8, 1e-5]


def test_every_spelling_of_a_number_is_judged() -> None:
    assert len(NUMBERS) == len(numerals._ELSEWHERE)
    for text, value, (pattern, _) in zip(NUMBERS, VALUES_OF_NUMBERS, numerals._ELSEWHERE, strict=True):
        assert re.fullmatch(pattern, text), text
        suggested = numerals.meant(text)
        assert suggested is not None
        assert float(suggested.partition(" #")[0].replace("_", "")) == value


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"training__dataset_size": "60.000"}, ("training", "dataset_size")),
        ({"noise__multiplier": "5m"}, ("noise", "multiplier")),
        ({"noise__multiplier": "1-5"}, ("noise", "multiplier")),
        ({"privacy__epsilon": "8-10"}, ("privacy", "epsilon")),
    ],
)
def test_a_number_with_two_readings_is_asked_about(changes: dict[str, Any], path: tuple[str, ...]) -> None:
    assert problem_at(document(**changes), *path).suggestion is None


def test_a_comma_in_a_quantity_separates_decimals() -> None:
    # 1,000 for a multiplier is 1.000: a thousand would be a smaller ε.
    assert problem_at(document(noise__multiplier="1,000"), "noise", "multiplier").suggestion == "1.000"


# ---- No hint lowers ε below what is true of the run that a document means


def hints(source: dict[str, Any]) -> str:
    with pytest.raises(DocumentError) as refused:
        pyaccount.load(source)
    return str(refused.value)


def stated(**guarantee: Any) -> dict[str, Any]:
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}
    return {"pyaccount": 1, "name": "one", "privacy": privacy, "mechanism": {"kind": "stated", **guarantee}}


@pytest.mark.parametrize("guarantee", [{"mu": 0.5}, {"guarantees": [{"epsilon": 1, "delta": 1e-6}]}])
def test_delta_beside_another_guarantee_is_not_left_out(guarantee: dict[str, Any]) -> None:
    said = hints(stated(**guarantee, delta=1e-6))
    assert "leave it out" not in said
    assert "every epsilon has a delta of its own" in said


DIVERGENCES = [
    {"rho": 0.2},
    {"rho": 0.1, "xi": 0.3},
    {"renyi": [{"order": 2, "epsilon": 0.4}, {"order": 8, "epsilon": 1.6}]},
]


@pytest.mark.parametrize("guarantee", DIVERGENCES, ids=lambda one: next(iter(one)))
def test_delta_beside_divergences_is_the_probability_of_an_exception(guarantee: dict[str, Any]) -> None:
    # H = θ + (1 − θ)h: ε at δ is that of the divergences alone at (δ − θ)/(1 − θ).
    theta, delta = 4e-6, 1e-5
    both = stated(**guarantee, delta=theta)
    alone = stated(**guarantee)
    alone["privacy"]["delta"] = (delta - theta) / (1.0 - theta)
    for one in (both, alone):
        one["accounting"] = {"profile": [], "tolerance": 1e-4}
    certificate = pyaccount.certify(both)
    assert certificate.epsilon == pytest.approx(pyaccount.certify(alone).epsilon, rel=2e-4)
    assert certificate.epsilon_lower < certificate.epsilon
    # The phases that say the same.
    phases = {key: value for key, value in both.items() if key != "mechanism"}
    phases["phases"] = [
        {"mechanism": {"kind": "stated", **guarantee}},
        {"mechanism": {"kind": "stated", "epsilon": 0, "delta": theta}},
    ]
    assert pyaccount.certify(phases).epsilon == certificate.epsilon
    assert any("except" in one or "event of probability" in one for one in certificate.data.assumptions)


def test_runs_of_approximate_guarantees_add_up() -> None:
    # Ten of ρ except with θ are one of 10ρ except with 1 − (1 − θ)¹⁰.
    ten = stated(rho=0.02, delta=4e-7) | {"count": 10, "accounting": {"profile": []}}
    one = stated(rho=0.2, delta=-math.expm1(10.0 * math.log1p(-4e-7))) | {"accounting": {"profile": []}}
    assert pyaccount.certify(ten).epsilon == pytest.approx(pyaccount.certify(one).epsilon, rel=1e-5)


def test_where_an_exception_has_no_bound(snapshot: Snapshot) -> None:
    source = stated(rho=0.2, delta=4e-6)
    snapshot.raised(lambda: pyaccount.certify(source | {"privacy": source["privacy"] | {"delta": 1e-6}}))
    snapshot.raised(lambda: pyaccount.certify(source | {"privacy": source["privacy"] | {"group_size": 2}}))
    other = stated(rho=0.2, delta=4e-6, adjacency="add-remove")
    snapshot.raised(lambda: pyaccount.certify(other | {"privacy": other["privacy"] | {"adjacency": "replace-one"}}))
    # Divergences of the exception are infinite.
    snapshot.raised(lambda: filter_of({"renyi": [{"order": 2, "epsilon": 1}]}).cost(pyaccount.load(source)))
    snapshot.raised(lambda: filter_of({"rho": 1}).cost(pyaccount.load(source)))


@pytest.mark.parametrize("key", ["num_microbatches", "microbatches"])
def test_a_clipped_mean_of_a_micro_batch_counts_half(key: str) -> None:
    said = hints(document(**{f"training__{key}": 10}))
    assert "leave it out" not in said
    assert "noise.multiplier is half" in said


@pytest.mark.parametrize(
    "key", ["local_epochs", "local_steps", "fraction_fit", "clients_per_round", "num_clients", "num_server_rounds"]
)
def test_federated_words_lead_to_clients(key: str, snapshot: Snapshot) -> None:
    snapshot(hints(document(**{f"training__{key}": 3})))


def test_a_certificate_is_true_if_its_claim_holds() -> None:
    for epsilon, holds in [(10.0, True), (0.1, False)]:
        certificate = pyaccount.certify(document(privacy__epsilon=epsilon, privacy__delta=1e-5, noise__multiplier=1.0))
        assert certificate.holds is holds
        assert bool(certificate) is holds
