"""The certificate as data: what is written to JSON and read back. Every other form is a view of it.

Field names are promises to users. An upper bound and an estimate never share a field: `epsilon` and `delta` are upper
bounds (or the values given), `epsilon_lower` and `delta_lower` are lower bounds.

Annotations are no text here, which every command that reads a certificate would spend milliseconds on compiling.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Record(BaseModel):
    """Base of all parts: immutable, and strict about unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LaterRecord(Record):
    """A part with fields that there were not always: where the document says nothing of them it is written as before."""

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
    """The guarantee: (`epsilon`, `delta`)-differential privacy, with how tight each number is known to be."""

    kind: Literal["deterministic", "verified", "confidence"] = Field(
        description="deterministic: by proof and bounded arithmetic. verified: by a randomised test whose failure is part of "
        "delta, for a run that takes place only because it passed. confidence: true with probability at least "
        "1 − failure_probability over the accountant's own randomness."
    )
    epsilon: NonNegative = Field(description="ε at most, at this delta.")
    epsilon_lower: NonNegative = Field(description="No ε below this holds at this delta.")
    delta: Probability = Field(description="δ at most, at this epsilon.")
    delta_lower: Probability = Field(description="No δ below this holds at this epsilon.")
    failure_probability: Probability = Field(
        description="Probability, over the accountant's randomness, that epsilon and delta do not hold; 0 for a proof, and for a "
        "verified guarantee, where it is part of delta. Lower ends from samples have the evidence's "
        "pointwise_failure_probability."
    )


class Solved(Record):
    """The blank that was filled."""

    path: str = Field(description="Where the document said `solve`.")
    value: Finite | int = Field(description="The value found: the claim holds with it.")
    fails_at: Finite | int | None = Field(
        description="A value next to the one found with which the bound fails the claim. Where the blank is ε or δ, the lower "
        "end of its interval: no value below holds, and it may lie far below the one found. Null where none is known."
    )


class PrivacyUnit(Record):
    """Who is protected against which change."""

    adjacency: Literal["add-remove", "zero-out", "replace-one"] = Field(description="Which data sets are neighbours.")
    group_size: int = Field(ge=1, description="How many records are protected together.")
    unit: Literal["record", "user"] = Field(description="What one unit of the group is.")


class ProfilePoint(Record):
    """One point of the privacy profile.

    Where the mechanism was sampled, each bound of each point holds with probability at least 1 −
    `pointwise_failure_probability` of the evidence; where this states a `profile_failure_probability`, each upper bound with
    probability at least 1 − that.
    """

    epsilon: NonNegative = Field(description="ε of the point; chosen.")
    delta: Probability = Field(description="δ at most, at this epsilon.")
    delta_lower: Probability = Field(description="No δ below this holds at this epsilon.")
    delta_estimate: Probability | None = Field(default=None, description="An estimate of δ; not a bound.")
    standard_error: NonNegative | None = Field(default=None, description="The standard error of the estimate.")


class CurveRecord(Record):
    """More points of a direction's profile, as two lists of one length."""

    epsilon: list[NonNegative] = Field(description="ε of the points, ascending; chosen.")
    delta: list[Probability] = Field(description="δ at most in this direction, at each of them; never rising.")


class DirectionResult(Record):
    """One direction: outcomes with the sensitive records (under replace-one, the originals) against others (remove), or the
    others against them (add)."""

    epsilon: NonNegative = Field(description="ε at most in this direction, at the guarantee's delta.")
    epsilon_lower: NonNegative = Field(description="No ε below this holds in this direction, at the guarantee's delta.")
    delta: Probability = Field(description="δ at most in this direction, at the guarantee's epsilon.")
    delta_lower: Probability = Field(description="No δ below this holds in this direction, at the guarantee's epsilon.")
    profile: list[ProfilePoint] = Field(description="The privacy profile in this direction.")
    curve: CurveRecord | None = Field(
        default=None,
        description="More points between those of the profile, close enough for a picture. Null where the profile was sampled, "
        "or has no points.",
    )


class Directions(Record):
    """Both directions; the guarantee is the larger of the two."""

    remove: DirectionResult = Field(description="The sensitive records are in the first data set: H(P‖Q).")
    add: DirectionResult = Field(description="They are in the second: H(Q‖P).")


class BufferRecord(Record):
    """The parameters of a BLT: c_0 = 1, c_i = Σ_j scales_j·decays_j^(i−1)."""

    scales: list[Finite] = Field(description="ω, one for each buffer.")
    decays: list[Finite] = Field(description="θ, one for each buffer.")


class MatrixRecord(Record):
    """The strategy matrix C of a phase, as training uses it.

    C is lower triangular, with a row and a column for each iteration. All numbers are the doubles that were analysed, each
    spelled with as many digits as tell it from every other double, so that reading them gives the same bits.
    """

    kind: str = Field(description="The kind of matrix, as in the document.")
    bands: int | None = Field(description="Non-zero diagonals.")
    inverse_bands: int | None = Field(
        default=None, description="Non-zero diagonals of the inverse, for the kind of matrix that is given by these."
    )
    column_norm: Finite = Field(description="The largest norm of a column, to which σ refers times the clip norm.")
    normalization: Finite | None = Field(
        default=None,
        description="What the matrix that the document describes was multiplied by, to give it this largest column norm: 1 where "
        "`normalize` is false. Null for the identity, and in certificates made before it was stated.",
    )
    coefficients: list[Finite] | None = Field(
        default=None,
        description="The first column of a Toeplitz C, from the diagonal down, normalised; what is not listed is 0. Null for the "
        "identity, for a BLT (its buffers say it: times `normalization`), for a matrix from a file, for long inverses of banded "
        "matrices (their `inverse_coefficients` say it), and in certificates made before it was stated.",
    )
    inverse_coefficients: list[Finite] | None = Field(
        default=None,
        description="The first column of C⁻¹, from the diagonal down, for the kind of matrix that is given by it; what is not "
        "listed is 0. Normalised: that of the document over `normalization`.",
    )
    entries: list[list[Finite]] | None = Field(
        default=None,
        description="The rows of a small C from a file, each up to its diagonal, normalised; null for a large one, which is its "
        "file's times `normalization`.",
    )
    size: int | None = Field(default=None, description="Rows and columns of a matrix from a file.")
    buffers: BufferRecord | None = Field(default=None, description="Of a BLT, before the matrix is normalised.")
    sha256: str | None = Field(description="Of the entries, row by row as doubles, for a matrix from a file.")


class ReleaseRecord(Record):
    """Another sum that is released of every batch of a phase."""

    what: str = Field(description="What is released, as in the document.")
    noise_multiplier: Finite = Field(
        description="The standard deviation of its noise, in units of its own clip norm: the most that one record contributes."
    )


class PhaseRecord(LaterRecord):
    """One body of the document with its numbers filled in."""

    later: ClassVar[tuple[str, ...]] = ("epochs", "draws_per_iteration", "also", "effective_noise_multiplier", "chosen")

    name: str | None = Field(description="The phase's name in the document; null for a document with one body.")
    sampler: str = Field(description="The kind of sampler, as in the document.")
    chosen: dict[str, int] | None = Field(
        default=None,
        description="What was chosen of the sampler's keys that the document leaves to `choose:` lists. Absent where it "
        "leaves none.",
    )
    iterations: int = Field(ge=1, le=10**9, description="Iterations of one run.")
    epochs: Finite | None = Field(
        default=None,
        description="How many epochs the iterations are, exactly, where the document counts in epochs: at least those it asks "
        "for, since iterations are rounded up. Absent where it counts in iterations.",
    )
    count: int = Field(ge=1, le=10**9, description="Runs.")
    noise_multiplier: Finite = Field(description="σ in units of the clip norm; of Laplace noise its scale.")
    also: list[ReleaseRecord] | None = Field(
        default=None, description="What else is released of every batch. Absent where nothing is."
    )
    effective_noise_multiplier: Finite | None = Field(
        default=None,
        description="The multiplier of one Gaussian release that is as private as all of a batch together, (Σ σ_i⁻²)^(−1/2), "
        "rounded down: what the bounds are of. Absent where there is one release.",
    )
    sampling_probability: Finite | None = Field(
        description="What the sampler draws with: for b-min-sep, conditional on availability; for cyclic Poisson, within "
        "the current part; where an iteration has several draws, in one of them; null without sampling, and for balls in bins."
    )
    draws_per_iteration: int | None = Field(
        default=None,
        description="How many batches are drawn for one iteration, each by itself, and summed before noise is added once. Absent "
        "where it is one.",
    )
    participation_rate: Finite | None = Field(
        description="Long-run share of iterations that a record takes part in (with replacement, and with several draws in an "
        "iteration: the expected number of times it is drawn in one); null without sampling, and for users, who differ."
    )
    expected_batch_size: Finite | None = Field(
        description="Expected number of records in a batch, or of draws where a record may be drawn several times."
    )
    distinct_records: Finite | None = Field(
        default=None, description="Expected number of distinct records in a batch, where the data set's size is known."
    )
    noise: Literal["gaussian", "laplace"] = Field(default="gaussian", description="The kind of noise.")
    matrix: MatrixRecord = Field(description="How the noise of the iterations is correlated.")


class WorkloadUtility(Record):
    """Error of what the document's optimizer makes of the noisy sums, in units of the clip norm (times learning rates)."""

    what: str = Field(description="The document's workload in words: what the error is of.")
    mse: NonNegative = Field(description="Mean over iterations of the variance of the noise in it.")
    rmse: NonNegative = Field(description="Its square root.")
    max_error: NonNegative = Field(description="Largest standard deviation of the noise in it.")


class Utility(LaterRecord):
    """Error of the released prefix sums, in units of the clip norm; where the document has a workload, of that too."""

    later: ClassVar[tuple[str, ...]] = ("workload",)

    prefix_sum_mse: NonNegative = Field(description="Mean over iterations of the variance of the summed noise.")
    prefix_sum_rmse: NonNegative = Field(description="Its square root.")
    max_error: NonNegative = Field(description="Largest standard deviation of the summed noise.")
    workload: WorkloadUtility | None = Field(
        default=None, description="The same of the document's workload. Absent where it has none: prefix sums."
    )


class ReductionRecord(LaterRecord):
    """One theorem used."""

    later: ClassVar[tuple[str, ...]] = ("lower_end",)

    path: str = Field(description="Where in the document the part stands that the theorem is applied to.")
    subject: str = Field(description="That part in words.")
    theorem: str = Field(description="What was used.")
    source: str = Field(description="Where it is proven.")
    pair: str = Field(description="The dominating pair of one round, or of the run.")
    rounds: str = Field(description="How many such rounds compose.")
    tight: bool = Field(description="Whether some data sets and gradients attain the bound exactly.")
    remark: str | None = Field(description="What the bound gives up, where it is not tight.")
    lower_end: str | None = Field(
        default=None,
        description="Where the bound is not attained: which two data sets the lower end is of, what is seen of which rounds, and "
        "what is taken off. Absent where it is attained, and in certificates made before it was stated.",
    )


class Composition(Record):
    """One composition behind the guarantee."""

    direction: Literal["remove", "add", "both"] = Field(description="Which of the two directions.")
    bound: Literal["mechanism", "upper", "concrete-pair", "lower"] = Field(
        description="mechanism: a tight pair; upper: a bound that is not attained, such as a law above that of a tight pair; "
        "concrete-pair: two data sets; lower: a law below that of two data sets. Of an upper one only the upper end bounds the "
        "mechanism, of a concrete pair or a lower one only the lower end."
    )
    question: str = Field(description="What was asked, e.g. ε at a δ.")
    lower: NonNegative = Field(description="The answer is at least this.")
    upper: NonNegative = Field(description="The answer is at most this.")
    spacing: NonNegative = Field(description="Lattice spacing in nats; 0 where no lattice was needed.")
    profile_evaluations: int = Field(description="How many values of the rounds' profiles were computed.")
    transform_length: int = Field(description="Points of the Fourier transform; 0 without one.")
    tilt: NonNegative = Field(description="λ of the exponential change of measure; 0 for none.")


class BudgetLine(Record):
    """One source of error in the upper end of the guarantee, in units of δ unless it says otherwise."""

    source: str = Field(description="The source of error, in words.")
    direction: Literal["remove", "add", "both", "replace"] = Field(description="In which direction.")
    contribution: NonNegative = Field(description="How much it may add to the upper end.")


class ComponentRecord(Record):
    """A part of a mixture that samples were drawn from: another participation law with scaled means, or a tilt."""

    share: Probability = Field(description="The share of the samples that were drawn from it.")
    tilt: Finite | None = Field(
        default=None, description="θ of the mechanism tilted along its mean participation; 0 is plain sampling."
    )
    parameters: list[Finite] = Field(
        default=[],
        description="The probabilities (or the exponents of the bins' weights) of its participation patterns.",
    )
    stretch: Finite | None = Field(default=None, description="The mean scale κ: the factor on the means.")


class LogSobolevRecord(Record):
    """Samples of D, whose mean bounds δ where a record is added: δ ≤ λ^λ/(1+λ)^{1+λ}·exp(−λε − ‖d‖²/2 + E D)."""

    size: NonNegative = Field(
        description="d is this multiple of the mean participation Cx̄, in units of σ; y ~ N(−d, I)."
    )
    exponent: NonNegative = Field(
        description="λ: D = −λ(ln f − ⟨∇ln f(−d), y + d⟩) + ‖λ∇ln f − d‖²/2, f the likelihood ratio at y."
    )


class ProposalRecord(LaterRecord):
    """Where samples were drawn from; see the documentation of sampling."""

    later: ClassVar[tuple[str, ...]] = ("order", "block", "most_busy", "log_sobolev")

    parameter: Finite = Field(
        description="The probability (or the exponent of the bins' weights) that participation patterns were drawn with."
    )
    stretch: Finite = Field(description="The mean scale κ: the factor on the means; where `order` is given that order.")
    order: int | None = Field(
        default=None,
        ge=2,
        le=64,
        description="m where samples are of the power fᵐ of the likelihood ratio f, drawn by m replicas. Absent otherwise.",
    )
    block: int | None = Field(
        default=None,
        ge=2,
        description="The rounds of a block where replicas are drawn by blocks. Absent where they are drawn round by round.",
    )
    most_busy: int | None = Field(
        default=None,
        ge=2,
        le=63,
        description="K where no more than so many replicas take part within as many rounds as the sampler's separation: what "
        "that leaves out is taken from the claim that is tested. Absent where all may.",
    )
    log_sobolev: LogSobolevRecord | None = Field(
        default=None,
        description="Where the test was of a mean that bounds δ: of which. `cap` is then the largest D, `mean` that bound, as an "
        "estimate. Absent otherwise.",
    )
    others: list[Finite] = Field(
        default=[], description="The parameters of further sampled phases, where several are sampled together."
    )
    mixture: list[ComponentRecord] = Field(
        default=[], description="The mixture that samples came from, of which this proposal bounds them; empty without."
    )


class SecondMomentRecord(Record):
    """A test that E V² ≤ bound for the samples V of another test, by E V² ≤ 4(λ/(2+λ))^λ/(2+λ)²·exp(−λε − ‖d‖² + E D)."""

    bound: NonNegative = Field(description="What the second moment is at most.")
    size: NonNegative = Field(
        description="d is this multiple of the mean participation Cx̄, in units of σ; y ~ N(−d, I), as for that share of V."
    )
    exponent: NonNegative = Field(
        description="λ: D = −λ(ln f − ⟨∇ln f(−d), y + d⟩) + ‖λ∇ln f − 2d‖²/2, f the likelihood ratio at y."
    )
    cap: Finite = Field(description="The largest D.")
    stakes: list[Finite] = Field(description="Betting fractions; empty where D says it without samples.")
    samples: int = Field(description="How many it took, beside those of V.")
    log_capital: Finite = Field(
        description="ln of the highest wealth reached; to certify it must be at least the test's log_target."
    )


class TestRecord(LaterRecord):
    """One test of a claim δ(ε) < threshold, as run."""

    later: ClassVar[tuple[str, ...]] = ("second_moment",)

    direction: Literal["remove", "add", "replace"] = Field(description="Which of the two directions, or replacement.")
    noise_multiplier: Finite = Field(description="σ that was tested.")
    epsilon: NonNegative = Field(description="ε of the claim.")
    threshold: Probability = Field(description="δ of the claim.")
    proposal: ProposalRecord = Field(description="Where its samples were drawn from.")
    cap: NonNegative = Field(description="The weight bound: what one sample can contribute at most.")
    stakes: list[Finite] = Field(
        description="Betting fractions λ of the bets whose mean wealth is the test's; empty for a fixed sample."
    )
    samples: int = Field(description="How many it took.")
    log_capital: Finite = Field(description="ln of the highest wealth reached.")
    log_target: Finite = Field(description="ln(1/q): the wealth that certifies.")
    mean: NonNegative = Field(
        description="Of the samples; an estimate, which a test that may stop early biases, and which few busy replicas lower "
        "by what they leave out."
    )
    standard_error: NonNegative | None = Field(
        description="Of the mean; an estimate. Null where no sample counted, or too few to tell."
    )
    accepted: bool = Field(description="Whether the claim was certified.")
    second_moment: SecondMomentRecord | None = Field(
        default=None,
        description="What was tested before it, where clipped samples need a bound on their second moment that is not known "
        "without samples. Absent otherwise.",
    )

    @property
    def all_samples(self) -> int:
        """Return how many samples it took, those for the second moment included."""
        return self.samples + (0 if self.second_moment is None else self.second_moment.samples)


class ComposedCurveRecord(Record):
    """The composed profile of the phases that are not sampled, as the curve that weighs every sample."""

    nodes: int = Field(description="Values of ε at which δ of the composed phases is bounded, for each direction.")
    spacing: NonNegative = Field(
        description="Between the nodes, in nats; δ is interpolated linearly in e^ε, which bounds it."
    )
    reach: NonNegative = Field(description="The nodes lie between −reach and reach.")
    compositions: int = Field(description="Compositions behind the curve.")
    floor: Probability = Field(
        description="The tail mass: at most this δ lies beyond the curve; it is added to every estimate."
    )
    relative_gap: NonNegative = Field(
        description="The largest relative distance between the bounds at a node, where δ is above a thousandth."
    )


class MomentPolynomialRecord(Record):
    """A polynomial p(x) ≥ (x − 1)₊ on x ≥ 0, and the moments that with it prove δ(ε) ≤ Σ a_k e^{(1−k)ε} E f^k."""

    coefficients: list[float] = Field(
        min_length=2, max_length=25, description="a_0, a_1, …, exact as binary fractions."
    )
    log_moments_lower: list[float] = Field(
        description="Lower bounds on ln E f^k for k = 0, 1, …, used where a_k is negative."
    )
    log_moments_upper: list[float] = Field(description="Upper bounds on ln E f^k, used where a_k is positive.")


class MomentRecord(LaterRecord):
    """A claim proven by moments of the likelihood ratio f of the whole run, the mean under the law without the record."""

    later: ClassVar[tuple[str, ...]] = ("most_busy", "polynomial")

    order: int = Field(ge=2, description="m: the claim follows from E f^m.")
    log_moment: NonNegative = Field(
        description="ln E f^m at most, by a chain over m replicas of a record's participations."
    )
    states: int = Field(ge=1, description="States of that chain.")
    most_busy: int | None = Field(
        default=None,
        ge=2,
        le=63,
        description="K where no more than so many replicas take part within as many rounds as the sampler's separation: "
        "`log_moment` has what that leaves out too. Absent where all may.",
    )
    remove: Probability = Field(
        description="δ(ε) at most where a record is removed, from that moment, or from the polynomial."
    )
    add: Probability = Field(
        description="δ(ε) at most where a record is added, from a bound on the weights of a proposal."
    )
    polynomial: MomentPolynomialRecord | None = Field(
        default=None,
        description="Where several moments together prove the claim: by which polynomial. Certificates have it since 0.1.0.",
    )


class SamplingRecord(LaterRecord):
    """What was sampled."""

    later: ClassVar[tuple[str, ...]] = ("profile_failure_probability", "moment")

    verification: Literal["betting", "fixed-sample"] = Field(description="The kind of test.")
    seed: int = Field(
        ge=0, le=2**64 - 1, description="Of all samples: the same document and seed give the same certificate."
    )
    seed_source: Literal["document", "system"] = Field(
        description="document: fixed there, before any result was seen. system: from the operating system's entropy."
    )
    samples: int = Field(description="All samples drawn, those of the pilot included.")
    shard_size: int = Field(description="Samples for each stream of random numbers.")
    test_probability: Probability = Field(description="Of accepting a false claim in one fixed-sequence test.")
    total_probability: Probability = Field(description="q: of certifying something false, in all sequences allowed.")
    pointwise_failure_probability: Probability = Field(
        description="With which each lower end and each bound of each profile point may be wrong."
    )
    profile_failure_probability: Probability | None = Field(
        default=None,
        description="Where a guarantee that was tested bounds the profile too: with which the upper bound of a point may be "
        "wrong, which is where its own samples or the tests err. Absent for deterministic guarantees, and in certificates whose "
        "profile was read off its own samples alone.",
    )
    tests: list[TestRecord] = Field(description="Every test that was run.")
    composed_curve: ComposedCurveRecord | None = Field(
        default=None, description="Null where no phases are composed with the sampled ones."
    )
    moment: MomentRecord | None = Field(
        default=None, description="What proves the guarantee without samples. Absent where no moment does."
    )


class ConsideredRecord(LaterRecord):
    """A candidate of a choice, by estimates."""

    later: ClassVar[tuple[str, ...]] = ("workload_error_estimate", "sampler", "relative_error_estimate")

    matrix: str = Field(description="The kind of matrix.")
    bands: int = Field(description="Its bands.")
    noise_multiplier_estimate: Finite = Field(description="σ it would need; an estimate.")
    prefix_sum_mse_estimate: Finite = Field(description="The error it would have; an estimate.")
    workload_error_estimate: Finite | None = Field(
        default=None,
        description="The squared error under the document's workload, which was compared: the mean or the largest, as it asks. "
        "An estimate. Absent where the document has no workload.",
    )
    sampler: dict[str, int] | None = Field(
        default=None,
        description="Its values of the sampler's keys that the document leaves to `choose:` lists. Absent where it leaves none.",
    )
    relative_error_estimate: Finite | None = Field(
        default=None,
        description="Where keys of the sampler are chosen: the squared error over the square of the share of the records that a "
        "batch has, which was compared, since batches may differ in size. An estimate.",
    )


class SearchedRecord(LaterRecord):
    """How the matrix was searched for under its sampler, by estimates, none of which enters the guarantee."""

    later: ClassVar[tuple[str, ...]] = ("start_workload_error_estimate", "workload_error_estimate")

    optimized_for: Literal["sampling"] = Field(description="As in the document.")
    start_noise_multiplier_estimate: Finite = Field(
        description="σ that the matrix needs with which the search began: the better of two known without sampling. An estimate."
    )
    start_prefix_sum_mse_estimate: Finite = Field(description="The error that it would have; an estimate.")
    noise_multiplier_estimate: Finite = Field(description="σ that the matrix found needs; an estimate.")
    prefix_sum_mse_estimate: Finite = Field(description="The error that it would have; an estimate.")
    start_workload_error_estimate: Finite | None = Field(
        default=None,
        description="Under the document's workload, the squared error (mean or largest, as it asks) of the matrix with which the "
        "search began; an estimate. Absent where the document has no workload.",
    )
    workload_error_estimate: Finite | None = Field(
        default=None,
        description="The same of the matrix found: what was to be small. Absent where there is no workload.",
    )
    gradient_norm_estimate: NonNegative = Field(
        description="The norm of the gradient of ln(MSE) at the matrix found, in the parameters of the search; with a workload, "
        "of the logarithm of its squared error. An estimate."
    )
    gradient_error_estimate: NonNegative = Field(
        description="The norm of its components' standard errors: what a gradient of 0 would be taken for, in root mean square. "
        "An estimate; 0 where no samples were needed, since the run is not sampled."
    )
    rounds: int = Field(ge=0, description="Rounds of the search, each with samples of its own where any were needed.")
    note: str | None = Field(description="How it ended, where not because nothing more was to be gained.")

    @property
    def by_samples(self) -> bool:
        """Whether any were needed; the gradient then has an error."""
        return self.gradient_error_estimate > 0.0


class AlikeRecord(Record):
    """Rounds that are nearly alike, composed as if each were the worst of its group: ends from above; from below, the best."""

    kinds: int = Field(ge=1, description="How many kinds of rounds the document has, in the direction with the most.")
    composed: int = Field(ge=1, description="How many of them were composed from above.")


class EvidenceRecord(LaterRecord):
    """How the numbers were reached."""

    later: ClassVar[tuple[str, ...]] = ("searched", "alike")

    engine: str = Field(description="What computed the numbers.")
    tolerance: Finite = Field(description="Relative width asked for.")
    within_tolerance: bool = Field(description="Whether every composition met it; the interval is proven either way.")
    compositions: list[Composition] = Field(description="Every composition behind the guarantee.")
    sampling: SamplingRecord | None = Field(description="Null where nothing was sampled.")
    considered: list[ConsideredRecord] = Field(description="What choices were made among; empty without any.")
    searched: SearchedRecord | None = Field(
        default=None,
        description="How the matrix was found, whose coefficients the phase states. Absent where none was searched for under its "
        "sampler.",
    )
    alike: AlikeRecord | None = Field(
        default=None,
        description="In how many groups nearly alike rounds of a long schedule were composed. Absent where each kind of rounds "
        "was composed by itself.",
    )
    error_budget: list[BudgetLine] = Field(description="Every source of error in the upper end, line by line.")


class RiskRecord(Record):
    """The budget of risk of a document that has one instead of ε and δ, and what is certified of it."""

    measure: Literal["advantage", "true_positive_rate", "gaussian_mu"] = Field(
        description="What is limited. advantage: true- minus false-positive rate of any attack. true_positive_rate: that of any "
        "attack at false_positive_rate. gaussian_mu: the least μ with δ(ε) ≤ δ_μ(ε), that of N(μ, 1) against N(0, 1), for every "
        "ε from 0 to last_epsilon, in both directions."
    )
    budget: NonNegative = Field(description="What the document allows.")
    false_positive_rate: Probability | None = Field(
        default=None, description="Of a budget of rates: where the true-positive rate is limited."
    )
    last_epsilon: NonNegative | None = Field(
        default=None,
        description="Of a Gaussian budget: it is kept for every ε from 0 to this one, and nothing is said beyond.",
    )
    least_rate: Probability | None = Field(
        default=None,
        description="Of a Gaussian budget that is kept: no attack whose error rates both are at least this does better than "
        "against N(budget, 1) and N(0, 1). Rounded up.",
    )
    value: NonNegative | None = Field(
        description="The measure at most, whether the attacker tests for presence or absence; the budget is kept if it is no "
        "larger. Null where no bound was found. Of a sampled mechanism it follows from the guarantee, and is wrong with its "
        "probability."
    )
    value_lower: NonNegative = Field(
        description="The measure at least. Of a sampled mechanism it follows from the directions' lower ends."
    )
    epsilon: NonNegative | None = Field(
        description="ε at most, at delta; null where none was found. Of a sampled mechanism it, and likewise epsilon_lower, is "
        "wrong with the evidence's profile_failure_probability, where it states one, and else its pointwise_failure_probability."
    )
    epsilon_lower: NonNegative = Field(description="No ε below this holds at delta.")
    delta: Probability = Field(description="The δ at which ε is told: the document's report_delta, or the usual one.")


class Contrast(Record):
    """The same training run analysed another way, for contrast."""

    description: str = Field(description="The other way.")
    epsilon: NonNegative | None = Field(description="ε at most; null where none could be computed.")
    delta: Probability = Field(description="At this δ.")


class CertificateModel(LaterRecord):
    """A privacy certificate, format version 1."""

    later: ClassVar[tuple[str, ...]] = ("risk", "content_sha256")

    # Meanings never change; a new meaning gets a new name or a new version.
    pyaccount: Literal[1] = Field(description="Version of the certificate format.")
    kind: Literal["certificate"] = Field(description="What this is.")
    name: str = Field(description="What the document calls the mechanism.")
    statement: str = Field(description="The guarantee in one English sentence.")
    holds: bool = Field(description="Whether the document's claim is certified.")
    guarantee: Guarantee = Field(description="The guarantee.")
    risk: RiskRecord | None = Field(
        default=None,
        description="The budget of risk, where the document has one instead of ε and δ; absent where it has none. The guarantee "
        "of a composed mechanism is then ε at the δ told; that of a sampled one the tested (ε, δ) from which the value follows.",
    )
    solved: Solved | None = Field(description="The blank that was filled; null for a claim.")
    privacy: PrivacyUnit = Field(description="Who is protected against which change.")
    noise_multiplier: Finite | None = Field(description="σ if all phases share it, else null: see phases.")
    noise_convention: str = Field(description="What σ is relative to.")
    phases: list[PhaseRecord] = Field(description="The bodies of the document.")
    directions: Directions = Field(description="Both directions; the larger counts.")
    profile: list[ProfilePoint] = Field(description="The privacy profile: δ at values of ε.")
    utility: Utility | None = Field(description="For a single phase that runs once.")
    assumptions: list[str] = Field(description="What must be true of the training run.")
    reductions: list[ReductionRecord] = Field(description="The theorems used, one for each body.")
    evidence: EvidenceRecord = Field(description="How the numbers were reached.")
    unamplified: Contrast = Field(
        description="The same run if nothing about who takes part in which round were secret; its description says what that is."
    )
    group_lemma: Contrast | None = Field(description="The black-box lemma for groups; null for single records.")
    not_computed: list[Literal["search", "lower ends", "profile", "curve", "group lemma"]] = Field(
        default_factory=list,
        description="What the time limit left out after the guarantee was known: the rest of the search for a smaller value, "
        "lower ends (which are then 0), the profile (then empty), the curve, the contrast of the group lemma.",
    )
    document: dict[str, Any] = Field(description="The document that was certified, without defaults.")
    document_sha256: str = Field(description="The hash of its canonical JSON.")
    versions: dict[str, str] = Field(description="What computed it: pyaccount, its core, Python.")
    created: str = Field(description="UTC, ISO 8601.")
    content_sha256: str | None = Field(
        default=None,
        description="SHA-256 of the canonical JSON of all other fields that are neither null nor empty: `pyaccount check` "
        "finds any change by it. It is no protection from forgery. Absent in older certificates.",
    )
