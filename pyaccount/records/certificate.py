"""The certificate as data, which is written to JSON and read back. All other forms of a certificate are made from it.

Names of fields never change. An upper bound and an estimate are never the same field: `epsilon` and `delta` are upper bounds
(or values that were given), `epsilon_lower` and `delta_lower` are lower bounds.

Annotations are not strings in this module, because compiling them would cost every command that reads a certificate
milliseconds.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import COUNT, ITERATIONS
from pyaccount.records.evidence import EvidenceRecord
from pyaccount.records.fields import (
    CLIP_NORMS,
    NATS,
    PROBABILITY,
    SQUARED_NORMS,
    DeltaLower,
    DeltaUpper,
    EpsilonLower,
    EpsilonUpper,
    FieldUnit,
    Finite,
    LeftOut,
    Lower,
    NonNegative,
    Probability,
    ProfileEpsilon,
    Record,
    Role,
    Upper,
    Words,
)


class Guarantee(Record):
    """The guarantee: the run is (`epsilon`, `delta`)-differentially private. The lower bounds show how tight this is."""

    kind: Literal["deterministic", "verified", "confidence"] = Field(
        description="deterministic: by proof and bounded arithmetic. verified: by a randomised test whose failure "
        "probability is included in delta, for a run that takes place only because the test passed. confidence: "
        "true with probability at least 1 − failure_probability over the random numbers of the accountant."
    )
    epsilon: EpsilonUpper = Field(description="Upper bound on ε at this delta, in nats.")
    epsilon_lower: EpsilonLower = Field(description="Lower bound: no smaller ε holds at this delta.")
    delta: DeltaUpper = Field(description="Upper bound on δ at this epsilon.")
    delta_lower: DeltaLower = Field(description="Lower bound: no smaller δ holds at this epsilon.")
    failure_probability: Probability = Field(
        description="The probability, over the random numbers of the accountant, that epsilon and delta do not hold. "
        "It is 0 for a proof, and for a verified guarantee, where it is included in delta. If the document states guarantees "
        "from samples, it is the sum of their failure probabilities. Lower bounds from samples are wrong with the "
        "pointwise_failure_probability of the evidence."
    )


class Solved(Record):
    """The blank and its computed value."""

    path: str = Field(description="The path of `solve` in the document.")
    value: Annotated[Finite | int, Role.SOLVED] = Field(description="The computed value: the claim holds with it.")
    fails_at: Annotated[Finite | int | None, Role.SOLVED] = Field(
        description="A value next to the computed one at which the bound does not meet the claim. If the blank is ε "
        "or δ: the lower end of its interval; no value below it holds, and it may be far below the computed "
        "value. Null if no such value is known."
    )


class PrivacyUnit(Record):
    """What is protected, and against which change."""

    adjacency: Literal["add-remove", "zero-out", "replace-one"] = Field(
        description="Which two data sets are neighbours."
    )
    group_size: int = Field(ge=1, description="The number of records (or users) that are protected together.")
    unit: Literal["record", "user"] = Field(description="What is counted by group_size: records or users.")


class ProfilePoint(Record):
    """One point of the privacy profile.

    If the mechanism was sampled, each bound of each point holds with probability at least 1 − `pointwise_failure_probability`
    of the evidence. If the evidence states a `profile_failure_probability`, each upper bound holds with probability at least
    1 − this probability. If the document states guarantees from samples, all points hold unless one of these guarantees is false.
    """

    epsilon: ProfileEpsilon = Field(description="The ε of the point, which was chosen, in nats.")
    delta: DeltaUpper = Field(description="Upper bound on δ at this epsilon.")
    delta_lower: DeltaLower = Field(description="Lower bound: no smaller δ holds at this epsilon.")
    delta_estimate: Annotated[Probability | None, Role.ESTIMATE, PROBABILITY] = Field(
        description="An estimate of δ; not a bound. Null for a composed profile, where too little was seen, and beside the "
        "guarantee if the document lists no points."
    )
    standard_error: Annotated[NonNegative | None, Role.DRAWN, PROBABILITY] = Field(
        description="The standard error of the estimate."
    )


class CurveRecord(Record):
    """Further points of the profile in one direction, as two lists of the same length."""

    epsilon: Annotated[list[NonNegative], Role.POINT, NATS] = Field(
        description="The ε of the points, which were chosen, in ascending order."
    )
    delta: Annotated[list[Probability], Role.UPPER, PROBABILITY] = Field(
        description="Upper bounds on δ in this direction, one for each point. They never increase."
    )


class DirectionResult(Record):
    """One direction. remove: the outcomes with the sensitive records (under replace-one: with the original records) are
    compared to the outcomes without them (under replace-one: with the replacements). add: the other way round.
    """

    epsilon: EpsilonUpper = Field(description="Upper bound on ε in this direction, at the delta of the guarantee.")
    epsilon_lower: EpsilonLower = Field(
        description="Lower bound: no smaller ε holds in this direction, at the delta of the guarantee."
    )
    delta: DeltaUpper = Field(description="Upper bound on δ in this direction, at the epsilon of the guarantee.")
    delta_lower: DeltaLower = Field(
        description="Lower bound: no smaller δ holds in this direction, at the epsilon of the guarantee."
    )
    profile: Annotated[list[ProfilePoint], LeftOut("profile")] = Field(
        description="The privacy profile in this direction."
    )
    curve: Annotated[CurveRecord | None, LeftOut("curve")] = Field(
        description="Further points between those of the profile, close enough for a picture. Null if the profile "
        "was sampled, or has no points.",
    )


class Directions(Record):
    """Both directions. The guarantee is the larger of the two."""

    remove: DirectionResult = Field(description="The first data set has the sensitive records: H(P‖Q).")
    add: DirectionResult = Field(description="The second data set has the sensitive records: H(Q‖P).")


class BufferRecord(Record):
    """The parameters of a BLT: c_0 = 1, c_i = Σ_j scales_j·decays_j^(i−1)."""

    scales: list[Finite] = Field(description="The scales ω, one for each buffer.")
    decays: list[Finite] = Field(description="The decays θ, one for each buffer.")


class MatrixRecord(Record):
    """The strategy matrix C of a phase, as training uses it.

    C is lower triangular, with a row and a column for each iteration, except for a matrix from a file that has more rows
    (`rows`). For a tree (`estimation`), C is what training solves for, and the guarantee is for the release of all nodes.
    All numbers are the doubles that were analysed. Each is written with enough digits to distinguish it from every other
    double, so reading it gives the same bits.
    """

    kind: str = Field(description="The kind of matrix, as in the document.")
    bands: int | None = Field(
        description="The number of non-zero diagonals of C; null for a tree, and if C is not square."
    )
    inverse_bands: int | None = Field(
        description="The number of non-zero diagonals of C⁻¹, for the kind of matrix that is given by them.",
    )
    column_norm: Finite = Field(
        description="The largest norm of a column of C. It is 1 (up to rounding) unless the "
        "document sets `normalize: false`."
    )
    normalization: Finite | None = Field(
        description="The factor by which the matrix of the document was multiplied to give it this largest column "
        "norm; 1 if `normalize` is false. Null for the identity.",
    )
    coefficients: Annotated[list[Finite] | None, Role.COLUMN] = Field(
        description="The first column of a Toeplitz C, from the diagonal down, normalised. Coefficients that are not "
        "listed are 0. Null for the identity, for a BLT (it follows from its buffers, times `normalization`), "
        "for a matrix from a file, for long inverses of banded matrices (it follows from their "
        "`inverse_coefficients`).",
    )
    inverse_coefficients: Annotated[list[Finite] | None, Role.COLUMN] = Field(
        description="The first column of C⁻¹, from the diagonal down, for the kind of matrix that is given by it. "
        "Coefficients that are not listed are 0. Normalised: the coefficients of the document divided by "
        "`normalization`.",
    )
    entries: list[list[Finite]] | None = Field(
        description="The rows of a small C from a file, each up to its diagonal (whole rows if there are more rows than "
        "columns), normalised. Null for a large C: its "
        "entries are those of the file, times `normalization`.",
    )
    size: int | None = Field(description="The number of columns of a matrix from a file, and of its rows.")
    rows: int | None = Field(
        description="The number of rows of a matrix from a file if there are more of them than columns; otherwise null.",
    )
    estimation: str | None = Field(
        description="How the running sums of a tree are estimated: honest or efficient. Null for other matrices. Every "
        "node of the tree is `normalization` times the sum of its rounds.",
    )
    restart_every: int | None = Field(
        description="The number of rounds after which a tree begins again; null without restarts, and for other matrices.",
    )
    buffers: BufferRecord | None = Field(description="The parameters of a BLT, before the matrix is normalised.")
    sha256: str | None = Field(description="The SHA-256 of the entries of a matrix from a file, row by row as doubles.")


class ReleaseRecord(Record):
    """Another sum that is released of every batch of a phase."""

    what: str = Field(description="What is released, as in the document.")
    noise_multiplier: Finite = Field(
        description="The standard deviation of its noise, in units of its own clip norm: the most that one record contributes."
    )


class ScheduleRecord(Record):
    """A schedule of a phase: what differs from round to round."""

    of: Literal["noise.multiplier", "training.sampling_probability", "training.expected_batch_size"] = Field(
        description="The key of the document that has a schedule."
    )
    least: Finite = Field(description="The smallest value of a round, with the scale.")
    most: Finite = Field(description="The largest value of a round, with the scale.")
    distinct: int = Field(ge=1, description="The number of different values of the schedule.")
    scale: Finite | None = Field(
        description="The factor of all values: the noise multiplier of a round is the scale times its value in the schedule. "
        "Null for rates, which have none."
    )
    sha256: str = Field(
        description="The SHA-256 of the values of the schedule without the scale, as little-endian doubles, round by round."
    )


class ProbabilitiesRecord(Record):
    """The probabilities with which records are drawn that do not all have the same one."""

    largest: Finite = Field(description="The largest probability of a record, for which the guarantee is computed.")
    strata: dict[str, Finite] | None = Field(
        description="The probability of the records of each stratum, by its name. Null if the document states only the "
        "largest one.",
    )


class MechanismRecord(Record):
    """A mechanism that takes the place of training, sampler, matrix and noise."""

    kind: str = Field(
        description="The kind of mechanism, as in the document; `phases` for phases that are run together, `select` for a "
        "selection of one of their runs, `parallel` for disjoint parts."
    )
    stated: dict[str, Any] = Field(
        description="Its other keys, as in the document; `draws`, if its sampler draws clients; and `noise`, if the document has "
        "a factor of the noise of all phases, by which the noise of training runs among these phases is multiplied."
    )


class PhaseRecord(Record):
    """One mechanism of the document, with all of its numbers filled in."""

    name: str | None = Field(description="The name of the phase in the document; null for a document without phases.")
    sampler: str = Field(description="The kind of sampler, as in the document.")
    chosen: dict[str, int] | None = Field(
        description="The values that were chosen for keys of the sampler which the document leaves to `choose:` "
        "lists. Null if there are no such keys.",
    )
    iterations: Annotated[int, FieldUnit("iterations")] = Field(
        ge=1, le=int(ITERATIONS.maximum), description="The number of iterations of one run."
    )
    epochs: Annotated[Finite | None, FieldUnit("epochs")] = Field(
        description="The exact number of epochs of the iterations, if the document counts in epochs. It is at least "
        "the number in the document, because the number of iterations is rounded up. Null if the document "
        "counts in iterations.",
    )
    count: Annotated[int, FieldUnit("runs")] = Field(ge=1, le=int(COUNT.maximum), description="The number of runs.")
    noise_multiplier: Finite | None = Field(
        description="σ of every round, in units of the clip norm. For Laplace noise: its scale. Null if it differs from round to "
        "round (see schedules), and for a phase with a mechanism."
    )
    mechanism: MechanismRecord | None = Field(
        description="The mechanism whose output is released, in place of training, sampler, matrix and noise. One "
        "iteration is then one run of it. Null for training runs.",
    )
    schedules: list[ScheduleRecord] | None = Field(
        description="What differs from round to round by a schedule of the document. Null if nothing does.",
    )
    also: list[ReleaseRecord] | None = Field(
        description="Further sums that are released of every batch. Null if there are none."
    )
    effective_noise_multiplier: Finite | None = Field(
        description="The multiplier of one Gaussian release that is as private as all releases of a batch together, "
        "(Σ σ_i⁻²)^(−1/2), rounded down. The bounds are computed from it. Null if there is only one release, with a "
        "matrix, and if σ differs from round to round.",
    )
    sampling_probability: Annotated[Finite | None, PROBABILITY] = Field(
        description="The probability with which the sampler draws. For b-min-sep: of an available record; for cyclic "
        "Poisson: of a record of the current part; if an iteration has several draws: in one of them. Null for samplers "
        "that do not draw with one probability: without sampling, with replacement, in two stages, random allocation "
        "and balls in bins; if rounds have different ones: see schedules; and if records have: see probabilities."
    )
    probabilities: ProbabilitiesRecord | None = Field(
        description="The probabilities of single records. Null if all of them are drawn with the same one.",
    )
    draws_per_iteration: Annotated[int | None, FieldUnit("draws per iteration")] = Field(
        description="The number of batches that are drawn for one iteration, each independently; noise is added "
        "once, to their sum. Null if it is 1.",
    )
    participation_rate: Annotated[Finite | None, FieldUnit("participations per iteration")] = Field(
        description="The long-run share of iterations in which a record takes part. (With replacement, and with "
        "several draws in an iteration: the expected number of times that it is drawn in one.) Null without "
        "sampling, for users, who differ, and if rounds or records have different rates."
    )
    expected_batch_size: Annotated[Finite | None, FieldUnit("records per batch")] = Field(
        description="The expected number of records in a batch, or of draws if a record may be drawn several times. Null if it "
        "is not known, or if rounds have different ones."
    )
    distinct_records: Annotated[Finite | None, FieldUnit("records per batch")] = Field(
        description="The expected number of distinct records in a batch, if the size of the data set is known.",
    )
    noise: Literal["gaussian", "laplace"] | None = Field(
        description="The kind of noise. Null for a phase with a mechanism."
    )
    matrix: MatrixRecord = Field(description="How the noise of different iterations is correlated.")


class WorkloadUtility(Record):
    """The error of what the optimizer of the document computes from the noisy sums, in units of the clip norm (times learning
    rates).
    """

    what: str = Field(description="The workload of the document in words.")
    mse: Annotated[NonNegative, SQUARED_NORMS] = Field(
        description="The mean over the iterations of the variance of the noise in it."
    )
    rmse: Annotated[NonNegative, CLIP_NORMS] = Field(description="The square root of this mean.")
    max_error: Annotated[NonNegative, CLIP_NORMS] = Field(
        description="The largest standard deviation of the noise in it."
    )


class Utility(Record):
    """The error of the released prefix sums, in units of the clip norm. If the document has a workload, also the error of
    that.
    """

    prefix_sum_mse: Annotated[NonNegative, SQUARED_NORMS] = Field(
        description="The mean over the iterations of the variance of the summed noise."
    )
    prefix_sum_rmse: Annotated[NonNegative, CLIP_NORMS] = Field(description="The square root of this mean.")
    max_error: Annotated[NonNegative, CLIP_NORMS] = Field(
        description="The largest standard deviation of the summed noise."
    )
    workload: WorkloadUtility | None = Field(
        description="The same for the workload of the document. Null if it has none, that is, if the "
        "workload is prefix sums.",
    )


class ReductionRecord(Record):
    """One theorem that was used."""

    path: str = Field(description="The path of the part of the document to which the theorem is applied.")
    subject: Words = Field(description="This part of the document in words.")
    theorem: Words = Field(description="The theorem that was used.")
    source: Words = Field(description="Where the theorem is proven.")
    pair: Words = Field(description="The dominating pair of one round, or of the whole run.")
    rounds: Words = Field(description="The number of such rounds that are composed.")
    tight: bool = Field(description="Whether some data sets and gradients attain the bound exactly.")
    remark: Words | None = Field(
        description="What the bound gives up if it is not tight, or another remark; null if there is none."
    )
    lower_end: str | None = Field(
        description="If the bound is not attained: from which two data sets the lower bound is computed, what is "
        "seen of which rounds, and what is subtracted. Null if the bound is attained.",
    )


class RiskRecord(Record):
    """The budget of risk of a document that has one instead of ε and δ, and what is certified about it."""

    measure: Literal["advantage", "true_positive_rate", "gaussian_mu"] = Field(
        description="What is limited. advantage: the true-positive rate minus the false-positive rate of every "
        "attack. true_positive_rate: that of every attack at false_positive_rate. gaussian_mu: the smallest μ "
        "with δ(ε) ≤ δ_μ(ε) for every ε from 0 to last_epsilon, in both directions, where δ_μ is the profile of "
        "N(μ, 1) against N(0, 1)."
    )
    budget: NonNegative = Field(description="The limit in the document.")
    false_positive_rate: Probability | None = Field(
        description="For a budget of rates: the false-positive rate to which the limit applies."
    )
    last_epsilon: NonNegative | None = Field(
        description="For a Gaussian budget: it is met for every ε from 0 to this one. Nothing is stated about larger "
        "ε.",
    )
    least_rate: Probability | None = Field(
        description="For a Gaussian budget that is met: no attack whose two error rates are both at least this does "
        "better than it would against N(budget, 1) and N(0, 1). Rounded up.",
    )
    value: Upper | None = Field(
        description="Upper bound on the measure, whether the attacker tests for presence or for absence. The budget "
        "is met if it is at most the limit. Null if no bound was found. For a sampled mechanism it follows from "
        "the guarantee, and is wrong with the same probability."
    )
    value_lower: Lower = Field(
        description="Lower bound on the measure. For a sampled mechanism it follows from the lower bounds of the "
        "directions."
    )
    epsilon: EpsilonUpper | None = Field(
        description="Upper bound on ε at delta; null if none was found. For a sampled mechanism it is wrong with the "
        "profile_failure_probability of the evidence, if the evidence states one, and otherwise with its "
        "pointwise_failure_probability. The same is true of epsilon_lower."
    )
    epsilon_lower: EpsilonLower = Field(description="Lower bound: no smaller ε holds at delta.")
    delta: Probability = Field(
        description="The δ at which ε is reported: report_delta of the document, or its default."
    )


class Contrast(Record):
    """The same training run, analysed in another way for comparison."""

    description: Words = Field(description="The other way in words.")
    epsilon: NonNegative | None = Field(
        description="Upper bound on ε; null if no ε holds at this delta, or none could be computed."
    )
    delta: Probability = Field(description="The δ of this bound.")


class KindOfRecord(Record):
    """The guarantee for records of one kind, at the delta of the guarantee."""

    name: str = Field(
        description="The kind in words: the part, or the stratum, that the record is in; for groups and for records that are "
        "replaced, where the records are."
    )
    epsilon: EpsilonUpper = Field(description="Upper bound on ε for records of this kind.")
    epsilon_lower: EpsilonLower = Field(description="Lower bound: no smaller ε holds for records of this kind.")


class ComposedRecord(Record):
    """A document that a joint document was made from, and its certificate."""

    name: str = Field(description="The name of the document.")
    document_sha256: str = Field(description="The SHA-256 of the canonical JSON of the document.")
    sha256: str | None = Field(
        description="The SHA-256 of the content of its certificate, which is content_sha256 there. Null if it has none.",
    )
    statement: str | None = Field(description="The sentence of its certificate. Null if it has none.")


class CertificateModel(Record):
    """A privacy certificate, format version 1."""

    # The meaning of a field never changes; a new meaning gets a new name or a new format version.
    pyaccount: Literal[1] = Field(description="The version of the certificate format.")
    kind: Literal["certificate"] = Field(description="The kind of this file: a certificate.")
    name: str = Field(description="The name of the mechanism, from the document.")
    statement: Annotated[str, Role.SENTENCE] = Field(description="The guarantee in one English sentence.")
    holds: bool = Field(description="Whether the claim of the document is certified.")
    guarantee: Guarantee = Field(description="The guarantee.")
    records: Annotated[list[KindOfRecord] | None, LeftOut("records")] = Field(
        description="The guarantee for each kind of record, if the document says that records differ, as those of disjoint parts "
        "and of strata do. The guarantee of the certificate holds for all of them. Null if all records are of one kind.",
    )
    composed_from: list[ComposedRecord] | None = Field(
        description="The documents that a joint document was made from, and their certificates, as the document states them. The "
        "guarantee is that of all of them together. Null for other documents.",
    )
    risk: RiskRecord | None = Field(
        description="The budget of risk, if the document has one instead of ε and δ; null otherwise. For a "
        "composed mechanism the guarantee is then ε at the δ at which it is reported; for a sampled mechanism it "
        "is the tested (ε, δ) from which the value follows.",
    )
    solved: Solved | None = Field(description="The computed value of the blank; null for a claim.")
    privacy: PrivacyUnit = Field(description="What is protected, and against which change.")
    noise_multiplier: Finite | None = Field(description="σ if all phases have the same; otherwise null, see phases.")
    noise_convention: Words = Field(description="The unit of σ, in words.")
    phases: list[PhaseRecord] = Field(description="The mechanisms of the document.")
    directions: Directions = Field(description="Both directions. The larger of the two is the guarantee.")
    profile: Annotated[list[ProfilePoint], LeftOut("profile")] = Field(
        description="The privacy profile: bounds on δ at several ε."
    )
    utility: Annotated[Utility | None, Role.MACHINE] = Field(
        description="The error of the noisy sums, for a single phase that is run once; otherwise null."
    )
    assumptions: list[str] = Field(description="What must be true of the training run.")
    assumptions_in_short: list[str] = Field(
        description="The same in the same order, each on a line of a screen. The guarantee rests on the full texts."
    )
    reductions: list[ReductionRecord] = Field(description="The theorems that were used, one for each mechanism.")
    evidence: EvidenceRecord = Field(description="How the numbers were computed.")
    unamplified: Annotated[Contrast, Role.CONTRAST] = Field(
        description="The same run if it were not secret who takes part in which round; its description states what "
        "exactly is assumed."
    )
    composed_bound: Annotated[Contrast | None, Role.CONTRAST, LeftOut("composed bound")] = Field(
        description="A larger ε at the same δ, by a bound on each round that is composed: where the guarantee follows from a "
        "recursion over all rounds, the independent checker proves this one. Null for other guarantees."
    )
    group_lemma: Annotated[Contrast | None, Role.LEMMA, LeftOut("group lemma")] = Field(
        description='What the generic lemma for groups gives ("black box"); null for single records.'
    )
    not_computed: Annotated[
        list[Literal["search", "lower ends", "profile", "curve", "composed bound", "group lemma", "records"]],
        Role.STAMP,
    ] = Field(
        description="What was left out because the time limit ended after the guarantee was known. search: the rest "
        "of the search for a smaller value; lower ends: the lower bounds, which are then 0; profile: the "
        "profile, which is then empty; curve: the curve; composed bound: that beside a recursion; "
        "group lemma: the comparison with the group lemma; "
        "records: the guarantee for each kind of record.",
    )
    document: dict[str, Any] = Field(description="The document that was certified, without defaults.")
    document_sha256: str = Field(description="The SHA-256 of the canonical JSON of the document.")
    mechanism: str | None = Field(
        description="What exactly was analysed: the normal form of the mechanism, one canonical string in which all numbers and "
        "defaults are written out. The independent checker reads nothing else. Null if the mechanism has no normal form."
    )
    mechanism_sha256: str | None = Field(description="The SHA-256 of the normal form; null without one.")
    versions: Annotated[dict[str, str], Role.STAMP] = Field(
        description="The versions that computed it: of pyaccount, of its core, of Python."
    )
    created: Annotated[str, Role.STAMP] = Field(description="When the certificate was made: UTC, ISO 8601.")
    content_sha256: Annotated[str, Role.STAMP] = Field(
        description="The SHA-256 of the canonical JSON of all other fields that are neither null nor empty. With it "
        "`pyaccount check` detects any change. It does not protect against forgery.",
    )
