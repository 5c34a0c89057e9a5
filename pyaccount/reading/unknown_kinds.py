"""Kinds that other software has and pyaccount does not: why no similar kind is suggested, and what to do instead.

This module holds only data for the lists of kinds. `spelling.nearest_value` recognises other spellings of these words.
"""

from __future__ import annotations

#: The kind of shuffled batches, which does not exist; other words for it are in `spelling.VALUE_ALIASES`.
SHUFFLE = "shuffle"

NOT_AMPLIFIED = (
    "the bounds of Poisson sampling do not hold for batches of a shuffled data set, and no theorem gives them the same privacy; "
    "next time draw by poisson, or by random-allocation, which is most similar: it puts every record into a random batch of "
    "each epoch; fixed-size draws a new batch in each round"
)

#: The message about draws with weights, whether a sampler's kind or another key asks for them.
WEIGHTED = (
    "no bound for a batch that is drawn with weights is implemented. If every record is drawn independently of the others, with "
    "a probability that depends only on this record, write `kind: poisson` with `sampling_probability: {max: …}` or `{strata: "
    "{name: probability, …}}`, and the largest of these probabilities is a bound. It is not a bound for a fixed number of draws "
    "with weights (as in WeightedRandomSampler), nor for weights that depend on other records, such as the size of a class: "
    "weight the losses of the records instead, before their gradients are clipped"
)

#: Words that several samplers are called by, whose ε differ: the message asks which one is meant.
_FIXED = (
    "this does not say when a batch is drawn. If each round draws a new random batch of the same size from the whole data set, "
    "write fixed-size. If an epoch goes through a shuffled data set, or if the batches are fixed, nothing is amplified: write "
    "`kind: none` with max_participations, one for each epoch, and `adjacency: zero-out` if the records are shuffled"
)
_CYCLIC = (
    "this does not say whether batches are random. If the records of the current part join at random, write cyclic-poisson. If "
    "a round takes all records of its part, nothing is amplified: write `kind: none` with max_participations and min_separation"
)
_IID = (
    "this does not say what is independent. If every record joins a round independently of the others, write poisson. If every "
    "draw of a batch is independent, so that a batch may hold a record twice, write with-replacement"
)

SAMPLERS = {SHUFFLE: NOT_AMPLIFIED, "weighted": WEIGHTED, "fixed": _FIXED, "cyclic": _CYCLIC, "iid": _IID}

#: Words for matrices that are not the only ones of their name.
MATRICES = {
    "optimal": "this does not say which matrix is the optimum: write optimal-toeplitz for the banded Toeplitz matrix of least "
    "error that is computed here, toeplitz with the coefficients of one that you have, or dense with its file",
    "restarted-tree": "a tree that begins anew is `kind: tree` with `restart_every`, the number of rounds of each tree",
}

_OTHER_NOISE = (
    "is a different mechanism, for which no bound is implemented: the bound for {near} noise does not hold for it. Draw {near} "
    "noise, or account for this release elsewhere"
)

_AS_MECHANISM = (
    "is not a noise on the sums of training rounds for which a bound is implemented; if it is released beside training, write "
    "a phase with `mechanism: {{kind: {kind}}}` in place of training, sampler, matrix and noise"
)

NOISES = {
    "discrete-gaussian": f"discrete Gaussian noise {_AS_MECHANISM.format(kind='discrete-gaussian')}",
    "discrete-laplace": f"discrete Laplace (geometric) noise {_AS_MECHANISM.format(kind='discrete-laplace')}",
    "skellam": f"Skellam noise {_AS_MECHANISM.format(kind='skellam')}",
    "binomial": f"binomial noise {_OTHER_NOISE.format(near='gaussian')}",
    "staircase": f"staircase noise {_OTHER_NOISE.format(near='laplace')}",
    "exponential": f"a selection {_AS_MECHANISM.format(kind='exponential')}",
}

#: Mechanisms without a bound, each with the reason and with what can be written instead.
_ITS_GUARANTEE = "write its published guarantee as `mechanism: {kind: stated}`"
MECHANISMS = {
    "sparse-vector": "the sparse vector technique has no privacy profile that is implemented here: it halts after answers that "
    f"depend on the data, and variants of it were published with false proofs; {_ITS_GUARANTEE}, if you trust the proof",
    "pate": "the guarantee of PATE depends on the votes of the teachers, that is, on the data, so it is not known before the run "
    "and is itself sensitive; what holds for all votes: with Gaussian noise each vote is `mechanism: {kind: gaussian}` with "
    "sensitivity √2 times what a record changes a count by (examples/pate.yaml), with exponential or Gumbel noise "
    f"`mechanism: {{kind: report-noisy-max}}`; or {_ITS_GUARANTEE}",
    "shuffle": "the amplification of local reports by a shuffler holds for n reports of other people that are honest, which no "
    f"document states; {_ITS_GUARANTEE} for this n, or take the guarantee of one report, which needs no shuffler",
    "binomial": "no bound for binomial noise is implemented, and that for Gaussian noise does not hold for it; "
    f"{_ITS_GUARANTEE}",
    "staircase": "no bound for staircase noise is implemented, and that for Laplace noise does not hold for it; "
    f"{_ITS_GUARANTEE}",
}

#: Other words that people and libraries use for these kinds.
ALIASES: dict[str, str] = {
    alias: kind
    for kind, aliases in {
        "fixed": "fixed-batch fixed-batches fixed-batch-size without-replacement sampling-without-replacement wor swor",
        "cyclic": "cyclical round-robin cyclic-sampling",
        "iid": "i.i.d. independent bootstrap",
        "optimal": "banded-toeplitz optimal-banded banded optimized dense-optimal",
        "restarted-tree": "tree-restart tree-restarts restarting-tree",
        "weighted": "weights weighted-random weighted-sampling weighted-random-sampler weightedrandomsampler weighted-poisson "
        "importance importance-sampling class-balanced class-weighted class-weights class-weight balanced oversampling "
        "oversampled stratified stratified-sampling strata",
        "discrete-gaussian": "discretegaussian gaussian-discrete discrete-normal dgauss",
        "sparse-vector": "svt above-threshold abovethreshold sparse-vector-technique numeric-sparse",
        "pate": "teacher-ensemble teachers",
        "discrete-laplace": "discretelaplace laplace-discrete geometric two-sided-geometric double-geometric",
        "exponential": "exponential-mechanism report-noisy-max permute-and-flip gumbel",
    }.items()
    for alias in aliases.split()
}
