"""The certificate as data, which is written to JSON and read back. All other forms of a certificate are made from it.

Names of fields never change. An upper bound and an estimate are never the same field: `epsilon` and `delta` are upper bounds
(or values that were given), `epsilon_lower` and `delta_lower` are lower bounds.

Annotations are not strings in this module, because compiling them would cost every command that reads a certificate
milliseconds.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from pyaccount.document.ranges import COUNT, ITERATIONS

Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Record(BaseModel):
    """Base of all parts of a certificate: immutable, and unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LaterRecord(Record):
    """A part with fields that older certificates do not have. A field of `later` that is not set is not written."""

    #: The names of these fields. They are None where there is nothing to say.
    later: ClassVar[tuple[str, ...]]

    @model_serializer(mode="wrap")
    def _without_what_is_not_there(self, serialize: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        """The type of what is given is not stated, since the JSON Schema would be of that type instead of the fields."""
        written: dict[str, Any] = serialize(self)
        for name in self.later:
            if written.get(name) is None:
                written.pop(name, None)
        return written


class Guarantee(Record):
    """The guarantee: the run is (`epsilon`, `delta`)-differentially private. The lower bounds show how tight this is."""

    kind: Literal["deterministic", "verified", "confidence"] = Field(
        description="deterministic: by proof and bounded arithmetic. verified: by a randomised test whose failure "
        "probability is included in delta, for a run that takes place only because the test passed. confidence: "
        "true with probability at least 1 − failure_probability over the random numbers of the accountant."
    )
    epsilon: NonNegative = Field(description="Upper bound on ε at this delta, in nats.")
    epsilon_lower: NonNegative = Field(description="Lower bound: no smaller ε holds at this delta.")
    delta: Probability = Field(description="Upper bound on δ at this epsilon.")
    delta_lower: Probability = Field(description="Lower bound: no smaller δ holds at this epsilon.")
    failure_probability: Probability = Field(
        description="The probability, over the random numbers of the accountant, that epsilon and delta do not hold. "
        "It is 0 for a proof, and for a verified guarantee, where it is included in delta. Lower bounds from "
        "samples are wrong with the pointwise_failure_probability of the evidence."
    )


class Solved(Record):
    """The blank and its computed value."""

    path: str = Field(description="The path of `solve` in the document.")
    value: Finite | int = Field(description="The computed value: the claim holds with it.")
    fails_at: Finite | int | None = Field(
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
    1 − this probability.
    """

    epsilon: NonNegative = Field(description="The ε of the point, which was chosen, in nats.")
    delta: Probability = Field(description="Upper bound on δ at this epsilon.")
    delta_lower: Probability = Field(description="Lower bound: no smaller δ holds at this epsilon.")
    delta_estimate: Probability | None = Field(default=None, description="An estimate of δ; not a bound.")
    standard_error: NonNegative | None = Field(default=None, description="The standard error of the estimate.")


class CurveRecord(Record):
    """Further points of the profile in one direction, as two lists of the same length."""

    epsilon: list[NonNegative] = Field(description="The ε of the points, which were chosen, in ascending order.")
    delta: list[Probability] = Field(
        description="Upper bounds on δ in this direction, one for each point. They never increase."
    )


class DirectionResult(Record):
    """One direction. remove: the outcomes with the sensitive records (under replace-one: with the original records) are
    compared to the outcomes without them (under replace-one: with the replacements). add: the other way round.
    """

    epsilon: NonNegative = Field(description="Upper bound on ε in this direction, at the delta of the guarantee.")
    epsilon_lower: NonNegative = Field(
        description="Lower bound: no smaller ε holds in this direction, at the delta of the guarantee."
    )
    delta: Probability = Field(description="Upper bound on δ in this direction, at the epsilon of the guarantee.")
    delta_lower: Probability = Field(
        description="Lower bound: no smaller δ holds in this direction, at the epsilon of the guarantee."
    )
    profile: list[ProfilePoint] = Field(description="The privacy profile in this direction.")
    curve: CurveRecord | None = Field(
        default=None,
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

    C is lower triangular, with a row and a column for each iteration. All numbers are the doubles that were analysed. Each is
    written with enough digits to distinguish it from every other double, so reading it gives the same bits.
    """

    kind: str = Field(description="The kind of matrix, as in the document.")
    bands: int | None = Field(description="The number of non-zero diagonals of C.")
    inverse_bands: int | None = Field(
        default=None,
        description="The number of non-zero diagonals of C⁻¹, for the kind of matrix that is given by them.",
    )
    column_norm: Finite = Field(
        description="The largest norm of a column of C. It is 1 (up to rounding) unless the "
        "document sets `normalize: false`."
    )
    normalization: Finite | None = Field(
        default=None,
        description="The factor by which the matrix of the document was multiplied to give it this largest column "
        "norm; 1 if `normalize` is false. Null for the identity, and in certificates that were made before this "
        "field existed.",
    )
    coefficients: list[Finite] | None = Field(
        default=None,
        description="The first column of a Toeplitz C, from the diagonal down, normalised. Coefficients that are not "
        "listed are 0. Null for the identity, for a BLT (it follows from its buffers, times `normalization`), "
        "for a matrix from a file, for long inverses of banded matrices (it follows from their "
        "`inverse_coefficients`), and in certificates that were made before this field existed.",
    )
    inverse_coefficients: list[Finite] | None = Field(
        default=None,
        description="The first column of C⁻¹, from the diagonal down, for the kind of matrix that is given by it. "
        "Coefficients that are not listed are 0. Normalised: the coefficients of the document divided by "
        "`normalization`.",
    )
    entries: list[list[Finite]] | None = Field(
        default=None,
        description="The rows of a small C from a file, each up to its diagonal, normalised. Null for a large C: its "
        "entries are those of the file, times `normalization`.",
    )
    size: int | None = Field(default=None, description="The number of rows and columns of a matrix from a file.")
    buffers: BufferRecord | None = Field(
        default=None, description="The parameters of a BLT, before the matrix is normalised."
    )
    sha256: str | None = Field(description="The SHA-256 of the entries of a matrix from a file, row by row as doubles.")


class ReleaseRecord(Record):
    """Another sum that is released of every batch of a phase."""

    what: str = Field(description="What is released, as in the document.")
    noise_multiplier: Finite = Field(
        description="The standard deviation of its noise, in units of its own clip norm: the most that one record contributes."
    )


class PhaseRecord(LaterRecord):
    """One mechanism of the document, with all of its numbers filled in."""

    later: ClassVar[tuple[str, ...]] = ("epochs", "draws_per_iteration", "also", "effective_noise_multiplier", "chosen")

    name: str | None = Field(description="The name of the phase in the document; null for a document without phases.")
    sampler: str = Field(description="The kind of sampler, as in the document.")
    chosen: dict[str, int] | None = Field(
        default=None,
        description="The values that were chosen for keys of the sampler which the document leaves to `choose:` "
        "lists. Absent if there are no such keys.",
    )
    iterations: int = Field(ge=1, le=int(ITERATIONS.maximum), description="The number of iterations of one run.")
    epochs: Finite | None = Field(
        default=None,
        description="The exact number of epochs of the iterations, if the document counts in epochs. It is at least "
        "the number in the document, because the number of iterations is rounded up. Absent if the document "
        "counts in iterations.",
    )
    count: int = Field(ge=1, le=int(COUNT.maximum), description="The number of runs.")
    noise_multiplier: Finite = Field(description="σ, in units of the clip norm. For Laplace noise: its scale.")
    also: list[ReleaseRecord] | None = Field(
        default=None, description="Further sums that are released of every batch. Absent if there are none."
    )
    effective_noise_multiplier: Finite | None = Field(
        default=None,
        description="The multiplier of one Gaussian release that is as private as all releases of a batch together, "
        "(Σ σ_i⁻²)^(−1/2), rounded down. The bounds are computed from it. Absent if there is only one release.",
    )
    sampling_probability: Finite | None = Field(
        description="The probability with which the sampler draws. For b-min-sep: of an available record; for cyclic "
        "Poisson: of a record of the current part; if an iteration has several draws: in one of them. Null for samplers "
        "that do not draw with one probability: without sampling, with replacement, in two stages, random allocation "
        "and balls in bins."
    )
    draws_per_iteration: int | None = Field(
        default=None,
        description="The number of batches that are drawn for one iteration, each independently; noise is added "
        "once, to their sum. Absent if it is 1.",
    )
    participation_rate: Finite | None = Field(
        description="The long-run share of iterations in which a record takes part. (With replacement, and with "
        "several draws in an iteration: the expected number of times that it is drawn in one.) Null without "
        "sampling, and for users, who differ."
    )
    expected_batch_size: Finite | None = Field(
        description="The expected number of records in a batch, or of draws if a record may be drawn several times."
    )
    distinct_records: Finite | None = Field(
        default=None,
        description="The expected number of distinct records in a batch, if the size of the data set is known.",
    )
    noise: Literal["gaussian", "laplace"] = Field(default="gaussian", description="The kind of noise.")
    matrix: MatrixRecord = Field(description="How the noise of different iterations is correlated.")


class WorkloadUtility(Record):
    """The error of what the optimizer of the document computes from the noisy sums, in units of the clip norm (times learning
    rates).
    """

    what: str = Field(description="The workload of the document in words.")
    mse: NonNegative = Field(description="The mean over the iterations of the variance of the noise in it.")
    rmse: NonNegative = Field(description="The square root of this mean.")
    max_error: NonNegative = Field(description="The largest standard deviation of the noise in it.")


class Utility(LaterRecord):
    """The error of the released prefix sums, in units of the clip norm. If the document has a workload, also the error of
    that.
    """

    later: ClassVar[tuple[str, ...]] = ("workload",)

    prefix_sum_mse: NonNegative = Field(description="The mean over the iterations of the variance of the summed noise.")
    prefix_sum_rmse: NonNegative = Field(description="The square root of this mean.")
    max_error: NonNegative = Field(description="The largest standard deviation of the summed noise.")
    workload: WorkloadUtility | None = Field(
        default=None,
        description="The same for the workload of the document. Absent if it has none, that is, if the "
        "workload is prefix sums.",
    )


class ReductionRecord(LaterRecord):
    """One theorem that was used."""

    later: ClassVar[tuple[str, ...]] = ("lower_end",)

    path: str = Field(description="The path of the part of the document to which the theorem is applied.")
    subject: str = Field(description="This part of the document in words.")
    theorem: str = Field(description="The theorem that was used.")
    source: str = Field(description="Where the theorem is proven.")
    pair: str = Field(description="The dominating pair of one round, or of the whole run.")
    rounds: str = Field(description="The number of such rounds that are composed.")
    tight: bool = Field(description="Whether some data sets and gradients attain the bound exactly.")
    remark: str | None = Field(
        description="What the bound gives up if it is not tight, or another remark; null if there is none."
    )
    lower_end: str | None = Field(
        default=None,
        description="If the bound is not attained: from which two data sets the lower bound is computed, what is "
        "seen of which rounds, and what is subtracted. Absent if the bound is attained, and in certificates that "
        "were made before this field existed.",
    )


class Composition(Record):
    """One composition that the guarantee is based on."""

    direction: Literal["remove", "add", "both"] = Field(
        description="The direction, or both if the composition is for both."
    )
    bound: Literal["mechanism", "upper", "concrete-pair", "lower"] = Field(
        description="What was composed. mechanism: a tight pair; upper: a bound that is not attained, such as a "
        "distribution above that of a tight pair; concrete-pair: two data sets; lower: a distribution below that "
        "of two data sets. Of `upper`, only the upper end bounds the mechanism; of `concrete-pair` and `lower`, "
        "only the lower end does."
    )
    question: str = Field(description="What was computed, e.g. ε at a δ.")
    lower: NonNegative = Field(description="Lower bound on the answer.")
    upper: NonNegative = Field(description="Upper bound on the answer.")
    spacing: NonNegative = Field(description="The spacing of the lattice in nats; 0 if no lattice was needed.")
    profile_evaluations: int = Field(description="The number of values of the rounds' profiles that were computed.")
    transform_length: int = Field(description="The number of points of the Fourier transform; 0 if there was none.")
    tilt: NonNegative = Field(description="λ of the exponential change of measure; 0 if there was none.")


class BudgetLine(Record):
    """One source of error in the upper bound of the guarantee, in units of δ unless stated otherwise."""

    source: str = Field(description="The source of the error in words.")
    direction: Literal["remove", "add", "both", "replace"] = Field(
        description="The direction in which it occurs, or both."
    )
    contribution: NonNegative = Field(description="The most that it may add to the upper bound.")


class ComponentRecord(Record):
    """A part of a mixture from which samples were drawn: another distribution of participations with scaled means, or a tilt."""

    share: Probability = Field(description="The share of the samples that were drawn from this part.")
    tilt: Finite | None = Field(
        default=None, description="θ of the mechanism tilted along its mean participation; 0 means plain sampling."
    )
    parameters: list[Finite] = Field(
        default=[],
        description="The probabilities (or the exponents of the weights of the bins) of its participation patterns.",
    )
    stretch: Finite | None = Field(default=None, description="The mean scale κ, that is, the factor on the means.")


class LogSobolevRecord(Record):
    """Samples of D, whose mean bounds δ if a record is added: δ ≤ λ^λ/(1+λ)^{1+λ}·exp(−λε − ‖d‖²/2 + E D)."""

    size: NonNegative = Field(
        description="The factor of d: d is this multiple of the mean participation Cx̄, in units of σ, and y ~ N(−d, I)."
    )
    exponent: NonNegative = Field(
        description="λ of D = −λ(ln f − ⟨∇ln f(−d), y + d⟩) + ‖λ∇ln f − d‖²/2, where f is the likelihood ratio at y."
    )


class ProposalRecord(LaterRecord):
    """The distribution from which samples were drawn; the documentation of sampling explains it."""

    later: ClassVar[tuple[str, ...]] = ("order", "block", "most_busy", "log_sobolev")

    parameter: Finite = Field(
        description="The probability (or the exponent of the weights of the bins) with which participation patterns "
        "were drawn."
    )
    stretch: Finite = Field(
        description="The mean scale κ, that is, the factor on the means. If `order` is given: that order."
    )
    order: int | None = Field(
        default=None,
        ge=2,
        le=64,
        description="m, if samples are drawn from the power fᵐ of the likelihood ratio f, with m replicas. Absent "
        "otherwise.",
    )
    block: int | None = Field(
        default=None,
        ge=2,
        description="The number of rounds in a block, if replicas are drawn by blocks. Absent if they are drawn "
        "round by round.",
    )
    most_busy: int | None = Field(
        default=None,
        ge=2,
        le=63,
        description="K, if at most K replicas take part within as many rounds as the separation of the sampler. What "
        "this leaves out is subtracted from the claim that is tested. Absent if all replicas may take part.",
    )
    log_sobolev: LogSobolevRecord | None = Field(
        default=None,
        description="The mean that was tested, if the test was of a mean that bounds δ. Then `cap` is the largest D, "
        "and `mean` is an estimate of the bound. Absent otherwise.",
    )
    others: list[Finite] = Field(
        default=[], description="The parameters of the further sampled phases, if several phases are sampled together."
    )
    mixture: list[ComponentRecord] = Field(
        default=[],
        description="The parts of the mixture, if samples were drawn from one; this proposal bounds them. Empty otherwise.",
    )


class SecondMomentRecord(Record):
    """A test that E V² ≤ bound, where V are the samples of another test. It uses E V² ≤ 4(λ/(2+λ))^λ/(2+λ)²·exp(−λε − ‖d‖² +
    E D).
    """

    bound: NonNegative = Field(description="Upper bound on the second moment.")
    size: NonNegative = Field(
        description="The factor of d: d is this multiple of the mean participation Cx̄, in units of σ, and y ~ N(−d, "
        "I), as for the same share of V."
    )
    exponent: NonNegative = Field(
        description="λ of D = −λ(ln f − ⟨∇ln f(−d), y + d⟩) + ‖λ∇ln f − 2d‖²/2, where f is the likelihood ratio at y."
    )
    cap: Finite = Field(description="The largest possible D.")
    stakes: list[Finite] = Field(
        description="The betting fractions. Empty if the bound on D is sufficient without samples."
    )
    samples: int = Field(description="The number of samples of this test, in addition to those of V.")
    log_capital: Finite = Field(
        description="The logarithm of the highest wealth that was reached. To certify, it must be at least "
        "log_target of the test."
    )


class TestRecord(LaterRecord):
    """One test of a claim δ(ε) < threshold, as it was run."""

    later: ClassVar[tuple[str, ...]] = ("second_moment",)

    direction: Literal["remove", "add", "replace"] = Field(description="The direction, or replacement.")
    noise_multiplier: Finite = Field(description="The σ that was tested.")
    epsilon: NonNegative = Field(description="ε of the claim.")
    threshold: Probability = Field(description="δ of the claim.")
    proposal: ProposalRecord = Field(description="The distribution from which the samples were drawn.")
    cap: NonNegative = Field(description="The weight bound, that is, the largest value that one sample can contribute.")
    stakes: list[Finite] = Field(
        description="The betting fractions λ of the bets. The wealth of the test is the mean of their wealth. Empty "
        "for a fixed sample."
    )
    samples: int = Field(description="The number of samples of the test.")
    log_capital: Finite = Field(description="The logarithm of the highest wealth that was reached.")
    log_target: Finite = Field(description="ln(1/q), the logarithm of the wealth that certifies the claim.")
    mean: NonNegative = Field(
        description="The mean of the samples. This is an estimate: tests that may stop early bias it, and few busy "
        "replicas lower it by what they leave out."
    )
    standard_error: NonNegative | None = Field(
        description="The standard error of the mean; an estimate. Null if no sample counted, or too few for an "
        "estimate."
    )
    accepted: bool = Field(description="Whether the claim was certified.")
    second_moment: SecondMomentRecord | None = Field(
        default=None,
        description="The test that was run before this one, if clipped samples need a bound on their second moment "
        "that is not known without samples. Absent otherwise.",
    )

    @property
    def all_samples(self) -> int:
        """Return how many samples it took, those for the second moment included."""
        return self.samples + (0 if self.second_moment is None else self.second_moment.samples)


class ComposedCurveRecord(Record):
    """The composed profile of the phases that are not sampled, as the curve by which every sample is weighed."""

    nodes: int = Field(
        description="The number of values of ε at which δ of the composed phases is bounded, for each direction."
    )
    spacing: NonNegative = Field(
        description="The distance between the nodes in nats. Between them δ is interpolated linearly in e^ε, which "
        "is an upper bound."
    )
    reach: NonNegative = Field(description="The nodes are between −reach and reach.")
    compositions: int = Field(description="The number of compositions that the curve is based on.")
    floor: Probability = Field(
        description="The tail mass: the δ beyond the curve is at most this, which is added to every estimate."
    )
    relative_gap: NonNegative = Field(
        description="The largest relative distance between the upper and the lower bound at a node, where δ is above "
        "a thousandth."
    )


class MomentPolynomialRecord(Record):
    """A polynomial p(x) with p(x) ≥ (x − 1)₊ for x ≥ 0, and the moments that together with it prove δ(ε) ≤ Σ a_k e^{(1−k)ε} E
    f^k.
    """

    coefficients: list[float] = Field(
        min_length=2, max_length=25, description="a_0, a_1, …, which are exact binary fractions."
    )
    log_moments_lower: list[float] = Field(
        description="Lower bounds on ln E f^k for k = 0, 1, …, which are used where a_k is negative."
    )
    log_moments_upper: list[float] = Field(
        description="Upper bounds on ln E f^k for k = 0, 1, …, which are used where a_k is positive."
    )


class MomentRecord(LaterRecord):
    """A claim that is proven by moments of the likelihood ratio f of the whole run. Means are under the distribution without
    the record.
    """

    later: ClassVar[tuple[str, ...]] = ("most_busy", "polynomial")

    order: int = Field(ge=2, description="m: the claim follows from E f^m.")
    log_moment: NonNegative = Field(
        description="Upper bound on ln E f^m, from a chain over m replicas of the participations of a record."
    )
    states: int = Field(ge=1, description="The number of states of this chain.")
    most_busy: int | None = Field(
        default=None,
        ge=2,
        le=63,
        description="K, if at most K replicas take part within as many rounds as the separation of the sampler; "
        "`log_moment` includes what this leaves out. Absent if all replicas may take part.",
    )
    remove: Probability = Field(
        description="Upper bound on δ(ε) if a record is removed, from this moment or from the polynomial."
    )
    add: Probability = Field(
        description="Upper bound on δ(ε) if a record is added, from a bound on the weights of a proposal."
    )
    polynomial: MomentPolynomialRecord | None = Field(
        default=None,
        description="The polynomial, if several moments together prove the claim. Certificates contain it since "
        "version 0.1.0.",
    )


class SamplingRecord(LaterRecord):
    """What was sampled."""

    later: ClassVar[tuple[str, ...]] = ("profile_failure_probability", "moment")

    verification: Literal["betting", "fixed-sample"] = Field(description="The kind of test.")
    seed: int = Field(
        ge=0,
        le=2**64 - 1,
        description="The seed of all samples. The same document and the same seed give the same certificate.",
    )
    seed_source: Literal["document", "system"] = Field(
        description="document: the seed is stated in the document, and was fixed before any result was known. "
        "system: it is from the entropy of the operating system."
    )
    samples: int = Field(description="The number of all samples, including those of the pilot.")
    shard_size: int = Field(description="The number of samples for each stream of random numbers.")
    test_probability: Probability = Field(
        description="Upper bound on the probability that one fixed-sequence test accepts a false claim."
    )
    total_probability: Probability = Field(
        description="q: upper bound on the probability that anything false is "
        "certified, in all sequences that are allowed."
    )
    pointwise_failure_probability: Probability = Field(
        description="Upper bound on the probability that a single lower bound, or a single bound of a point of the "
        "profile, is wrong."
    )
    profile_failure_probability: Probability | None = Field(
        default=None,
        description="Upper bound on the probability that the upper bound of a point of the profile is wrong, if a "
        "tested guarantee bounds the profile too. It is wrong only if its own samples or the tests err. Absent "
        "for deterministic guarantees, and in certificates whose profile is from its own samples alone.",
    )
    tests: list[TestRecord] = Field(description="Every test that was run.")
    composed_curve: ComposedCurveRecord | None = Field(
        default=None, description="The composed profile. Null if no phases are composed with the sampled ones."
    )
    moment: MomentRecord | None = Field(
        default=None, description="What proves the guarantee without samples. Absent if no moment proves it."
    )


class ConsideredRecord(LaterRecord):
    """One candidate of a choice. The values are estimates."""

    later: ClassVar[tuple[str, ...]] = ("workload_error_estimate", "sampler", "relative_error_estimate")

    matrix: str = Field(description="The kind of matrix.")
    bands: int = Field(description="The number of its bands.")
    noise_multiplier_estimate: Finite = Field(description="The σ that it would need; an estimate.")
    prefix_sum_mse_estimate: Finite = Field(description="The error of prefix sums that it would have; an estimate.")
    workload_error_estimate: Finite | None = Field(
        default=None,
        description="The squared error under the workload of the document, which is compared: the mean or the "
        "largest, as the document asks. An estimate. Absent if the document has no workload.",
    )
    sampler: dict[str, int] | None = Field(
        default=None,
        description="Its values of the sampler's keys that the document leaves to `choose:` lists. Absent if there "
        "are no such keys.",
    )
    relative_error_estimate: Finite | None = Field(
        default=None,
        description="If keys of the sampler are chosen: the squared error, divided by the square of the share of the "
        "records that a batch contains. It is compared instead of the error, because batches may differ in size. "
        "An estimate.",
    )


class SearchedRecord(LaterRecord):
    """How the matrix was searched for under its sampler. The values are estimates; the guarantee does not depend on them."""

    later: ClassVar[tuple[str, ...]] = ("start_workload_error_estimate", "workload_error_estimate")

    optimized_for: Literal["sampling"] = Field(description="What the matrix was optimised for, as in the document.")
    start_noise_multiplier_estimate: Finite = Field(
        description="The σ that is needed with the matrix at the start of the search, which is the better of two "
        "that are known without sampling. An estimate."
    )
    start_prefix_sum_mse_estimate: Finite = Field(description="The error of prefix sums with that matrix; an estimate.")
    noise_multiplier_estimate: Finite = Field(
        description="The σ that is needed with the matrix that was found; an estimate."
    )
    prefix_sum_mse_estimate: Finite = Field(
        description="The error of prefix sums with the matrix that was found; an estimate."
    )
    start_workload_error_estimate: Finite | None = Field(
        default=None,
        description="The squared error under the workload of the document (the mean or the largest, as the document "
        "asks), with the matrix at the start of the search; an estimate. Absent if the document has no workload.",
    )
    workload_error_estimate: Finite | None = Field(
        default=None,
        description="The same with the matrix that was found; this was minimised. Absent if the document has no "
        "workload.",
    )
    gradient_norm_estimate: NonNegative = Field(
        description="The norm of the gradient of ln(MSE) at the matrix that was found, in the parameters of the "
        "search; with a workload, of the logarithm of its squared error. An estimate."
    )
    gradient_error_estimate: NonNegative = Field(
        description="The norm of the standard errors of its components: the root mean square of the norm that would "
        "be found if the gradient were 0. An estimate; 0 if no samples were needed because the run is not "
        "sampled."
    )
    rounds: int = Field(
        ge=0, description="The number of rounds of the search. Each had its own samples, if samples were needed."
    )
    note: str | None = Field(
        description="Why the search ended, unless it ended because no further improvement was to be expected."
    )

    @property
    def by_samples(self) -> bool:
        """Whether any were needed; the gradient then has an error."""
        return self.gradient_error_estimate > 0.0


class AlikeRecord(Record):
    """Rounds that are nearly alike, which are composed as if each of them were the worst of its group for the upper bound,
    and the best of its group for the lower bound.
    """

    kinds: int = Field(
        ge=1, description="The number of kinds of rounds in the document, in the direction that has the most."
    )
    composed: int = Field(ge=1, description="The number of kinds that were composed for the upper bound.")


class EvidenceRecord(LaterRecord):
    """How the numbers were computed."""

    later: ClassVar[tuple[str, ...]] = ("searched", "alike")

    engine: str = Field(description="The engine that computed the numbers.")
    tolerance: Finite = Field(description="The relative width of the interval that was asked for.")
    within_tolerance: bool = Field(
        description="Whether every composition met the tolerance. The interval is proven in either case."
    )
    compositions: list[Composition] = Field(description="Every composition that the guarantee is based on.")
    sampling: SamplingRecord | None = Field(description="What was sampled; null if nothing was.")
    considered: list[ConsideredRecord] = Field(
        description="The candidates of every choice; empty if there was no choice."
    )
    searched: SearchedRecord | None = Field(
        default=None,
        description="How the matrix was found whose coefficients the phase states. Absent if no matrix was searched "
        "for under its sampler.",
    )
    alike: AlikeRecord | None = Field(
        default=None,
        description="How nearly alike rounds of a long schedule were composed in groups. Absent if each kind of round was "
        "composed separately.",
    )
    error_budget: list[BudgetLine] = Field(description="Every source of error in the upper bound, one per line.")


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
        default=None, description="For a budget of rates: the false-positive rate to which the limit applies."
    )
    last_epsilon: NonNegative | None = Field(
        default=None,
        description="For a Gaussian budget: it is met for every ε from 0 to this one. Nothing is stated about larger "
        "ε.",
    )
    least_rate: Probability | None = Field(
        default=None,
        description="For a Gaussian budget that is met: no attack whose two error rates are both at least this does "
        "better than it would against N(budget, 1) and N(0, 1). Rounded up.",
    )
    value: NonNegative | None = Field(
        description="Upper bound on the measure, whether the attacker tests for presence or for absence. The budget "
        "is met if it is at most the limit. Null if no bound was found. For a sampled mechanism it follows from "
        "the guarantee, and is wrong with the same probability."
    )
    value_lower: NonNegative = Field(
        description="Lower bound on the measure. For a sampled mechanism it follows from the lower bounds of the "
        "directions."
    )
    epsilon: NonNegative | None = Field(
        description="Upper bound on ε at delta; null if none was found. For a sampled mechanism it is wrong with the "
        "profile_failure_probability of the evidence, if the evidence states one, and otherwise with its "
        "pointwise_failure_probability. The same is true of epsilon_lower."
    )
    epsilon_lower: NonNegative = Field(description="Lower bound: no smaller ε holds at delta.")
    delta: Probability = Field(
        description="The δ at which ε is reported: report_delta of the document, or its default."
    )


class Contrast(Record):
    """The same training run, analysed in another way for comparison."""

    description: str = Field(description="The other way in words.")
    epsilon: NonNegative | None = Field(description="Upper bound on ε; null if none could be computed.")
    delta: Probability = Field(description="The δ of this bound.")


class CertificateModel(LaterRecord):
    """A privacy certificate, format version 1."""

    later: ClassVar[tuple[str, ...]] = ("risk", "content_sha256")

    # Meanings never change; a new meaning gets a new name or a new version.
    pyaccount: Literal[1] = Field(description="The version of the certificate format.")
    kind: Literal["certificate"] = Field(description="The kind of this file: a certificate.")
    name: str = Field(description="The name of the mechanism, from the document.")
    statement: str = Field(description="The guarantee in one English sentence.")
    holds: bool = Field(description="Whether the claim of the document is certified.")
    guarantee: Guarantee = Field(description="The guarantee.")
    risk: RiskRecord | None = Field(
        default=None,
        description="The budget of risk, if the document has one instead of ε and δ; absent otherwise. For a "
        "composed mechanism the guarantee is then ε at the δ at which it is reported; for a sampled mechanism it "
        "is the tested (ε, δ) from which the value follows.",
    )
    solved: Solved | None = Field(description="The computed value of the blank; null for a claim.")
    privacy: PrivacyUnit = Field(description="What is protected, and against which change.")
    noise_multiplier: Finite | None = Field(description="σ if all phases have the same; otherwise null, see phases.")
    noise_convention: str = Field(description="The unit of σ, in words.")
    phases: list[PhaseRecord] = Field(description="The mechanisms of the document.")
    directions: Directions = Field(description="Both directions. The larger of the two is the guarantee.")
    profile: list[ProfilePoint] = Field(description="The privacy profile: bounds on δ at several ε.")
    utility: Utility | None = Field(
        description="The error of the noisy sums, for a single phase that is run once; otherwise null."
    )
    assumptions: list[str] = Field(description="What must be true of the training run.")
    reductions: list[ReductionRecord] = Field(description="The theorems that were used, one for each mechanism.")
    evidence: EvidenceRecord = Field(description="How the numbers were computed.")
    unamplified: Contrast = Field(
        description="The same run if it were not secret who takes part in which round; its description states what "
        "exactly is assumed."
    )
    group_lemma: Contrast | None = Field(
        description='What the generic lemma for groups gives ("black box"); null for single records.'
    )
    not_computed: list[Literal["search", "lower ends", "profile", "curve", "group lemma"]] = Field(
        default_factory=list,
        description="What was left out because the time limit ended after the guarantee was known. search: the rest "
        "of the search for a smaller value; lower ends: the lower bounds, which are then 0; profile: the "
        "profile, which is then empty; curve: the curve; group lemma: the comparison with the group lemma.",
    )
    document: dict[str, Any] = Field(description="The document that was certified, without defaults.")
    document_sha256: str = Field(description="The SHA-256 of the canonical JSON of the document.")
    versions: dict[str, str] = Field(description="The versions that computed it: of pyaccount, of its core, of Python.")
    created: str = Field(description="When the certificate was made: UTC, ISO 8601.")
    content_sha256: str | None = Field(
        default=None,
        description="The SHA-256 of the canonical JSON of all other fields that are neither null nor empty. With it "
        "`pyaccount check` detects any change. It does not protect against forgery. Absent in older certificates.",
    )
