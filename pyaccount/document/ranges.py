"""The range of every number in a document, defined once.

The validator, its messages and the JSON Schema are all derived from these objects; none of them repeats a bound.
"""

from __future__ import annotations

from dataclasses import replace

from pyaccount.reading.numerals import Range

EPSILON = Range(0, 1e6, measure="nats")
#: The core resolves no smaller δ, except 0 if the privacy loss is bounded.
SMALLEST_DELTA = 1e-280
DELTA = Range(SMALLEST_DELTA, 1, below=True, measure="probability")
#: The range of δ where 0, that is, pure differential privacy, is accepted too.
DELTA_OR_ZERO = replace(DELTA, zero=True, words=f"{DELTA.describe()}, or 0")
#: Budgets of risk. For smaller rates, doubles do not resolve the slopes of a trade-off curve.
ADVANTAGE = Range(0, 1, above=True, below=True, measure="difference of rates")
SMALLEST_RATE = 1e-9
RATE = Range(SMALLEST_RATE, 1, below=True, measure="probability")
GAUSSIAN_MU = Range(0, 10, above=True, measure="standard deviations")
GROUP_SIZE = Range(1, 10_000, measure="records")
DATASET_SIZE = Range(1, 10**15, measure="records")
EXPECTED_BATCH_SIZE = Range(0, 1e15, above=True, measure="records")
PROBABILITY = Range(0, 1, above=True, measure="probability")
ITERATIONS = Range(1, 10**9, measure="rounds")
EPOCHS = Range(0, 1e9, above=True, measure="epochs")
PARTICIPATIONS = Range(1, 10**9, measure="rounds")
SEPARATION = Range(1, 10**9, measure="rounds")
BANDS = Range(1, 16_384, measure="diagonals")
#: The rounds of a tree of partial sums, and those after which it begins again.
TREE_ROUNDS = Range(1, 10**6, measure="rounds")
BINS = Range(1, 4096, measure="batches")
#: The rounds of an allocation (random allocation).
ALLOCATION = Range(1, 10**6, measure="rounds")
RECORDS_PER_USER = Range(1, 1000, measure="records")
SUBSET_SIZE = Range(1, 10**6, measure="records")
ROUNDS_PER_SUBSET = Range(1, 10**9, measure="rounds")
#: The draws with replacement in one round.
DRAWS = Range(1, 10**6, measure="draws")
#: The batches that are drawn independently for one round.
DRAWS_PER_ITERATION = Range(1, 1000, measure="draws")
PARTITIONS = Range(1, 10**9, measure="parts")
LARGEST_BATCH = Range(1, 10**15, measure="records")
COEFFICIENT = Range(0, 1e9)
SIGNED_COEFFICIENT = Range(-1e9, 1e9)
DECAY = Range(0, 1)
#: The decays of momentum and of moving averages.
DECAY_BELOW_ONE = Range(0, 1, below=True)
LEARNING_RATE = Range(0, 1e9)
#: The iterations of a run with a workload, whose errors are computed row by row.
WORKLOAD_ITERATIONS = Range(1, 10**6, measure="rounds")
BUFFERS = Range(1, 16, measure="buffers")
BUFFERS_LISTED = Range(1, 16, unit="entries")
COEFFICIENTS = Range(1, 16_384, unit="entries")
LEARNING_RATES = Range(1, 16_384, unit="entries")
FILE_LENGTH = Range(1, 4096, unit="characters")
NOISE_MULTIPLIER = Range(1e-6, 1e9, measure="clip norms")
#: The factor of the noise multipliers of a schedule or of several phases.
NOISE_SCALE = Range(1e-15, 1e15, measure="factor")
#: The number of values of a schedule, its values of any measure, the factor of its steps, and a column of its file.
SCHEDULED = Range(1, 10**7, measure="rounds")
SCHEDULE_VALUE = Range(0, 1e15, above=True)
SCHEDULE_DECAY = Range(0, 10, above=True, measure="factor")
COLUMN = Range(0, 10**6)
COUNT = Range(1, 10**9, measure="runs")
TOLERANCE = Range(1e-8, 0.5, measure="relative")
SEED = Range(0, 2**64 - 1)
TIME_LIMIT = Range(0, 1e7, above=True, unit="seconds")
#: Mechanisms beside training. The unit of sensitivities and scales is that of the released number.
MECHANISM_EPSILON = Range(1e-6, 500, measure="nats")
MECHANISM_MU = Range(1e-6, 100, measure="standard deviations")
#: The number of runs of which the best is released.
PROBABILITY_BELOW_ONE = Range(1e-9, 1, below=True, measure="probability")
RUN_SHAPE = Range(-1, 1000, above=True, measure="shape")
MEAN_RUNS = Range(1e-6, 1e6, measure="runs")
TRIALS = Range(1, 10**6, measure="runs")
RHO = Range(1e-12, 1e4, measure="nats")
RENYI_ORDER = Range(1, 1e6, above=True, measure="order")
STATED_POINTS = Range(1, 1000, unit="entries")
SENSITIVITY = Range(1e-12, 1e12, measure="unit of the release")
#: What a record may contribute to a mixture of Gaussians, and with what probability; the number of components.
CONTRIBUTION = Range(0, 1e12, measure="unit of the release")
MIXTURE_PROBABILITY = Range(0, 1, above=True)
MIXTURE = Range(1, 1000, unit="entries")
SCALE = Range(1e-12, 1e12, measure="unit of the release")
VARIANCE = Range(1e-24, 1e24, measure="squared unit of the release")
#: The number of parties that add noise to one sum.
PARTIES = Range(1, 10**6, measure="parties")
SHIFT = Range(1, 10**6, measure="steps")
MOVED = Range(1, 10**6, measure="numbers")
RESPONSES = Range(2, 10**9, measure="values")
#: The number of partitions of a record, and the count from which on a partition is selected.
MAX_PARTITIONS = Range(1, 10**6, measure="partitions")
THRESHOLD = Range(1e-6, 1e12, measure="records")
TRUTH_PROBABILITY = Range(0, 1, above=True, below=True, measure="probability")
#: In policies: the probability that a guarantee is false, and the age of a certificate.
FAILURE_PROBABILITY = Range(0, 1, measure="probability")
AGE = Range(0, 1e10, above=True, unit="seconds")

#: The lengths of names and lists.
NAME_LENGTH = Range(1, 200, unit="characters")
#: The number of ε of an amplification, of group sizes with a stated δ, and of documents of a sweep.
SWEEP_LENGTH = Range(1, 1000, unit="entries")
#: The number of values of a path of a sweep, and the range of those that are numbers.
GRID_LENGTH = Range(1, 10**6, unit="values")
SWEPT = Range(-1e15, 1e15)
BASE_DELTA = Range(0, 1, measure="probability")
PROFILE_LENGTH = Range(0, 1000, unit="entries")
PHASES = Range(1, 10_000, unit="entries")
#: The documents that a joint document was made from, and the sentence of the certificate of each.
COMPOSED = Range(1, 10_000, unit="entries")
STATEMENT_LENGTH = Range(1, 4000, unit="characters")
INNER_PHASES = Range(1, 100, unit="entries")
PARTS = Range(1, 1000, unit="entries")
FILTERS = Range(1, 100, unit="entries")
#: The number of strata of a sampler.
STRATA = Range(1, 100, unit="entries")
#: The number of releases of a batch in addition to the main sum.
RELEASES = Range(1, 100, unit="entries")

#: Two statements of one rate agree if their relative difference is at most this.
RATE_AGREEMENT = 1e-9
