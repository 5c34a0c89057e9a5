"""How the numbers of a certificate were computed, as data: compositions, tests by samples, moments, and candidates.

Names of fields never change. Annotations are not strings in this module, because compiling them would cost every command that
reads a certificate milliseconds.
"""

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.records.fields import (
    CLIP_NORMS,
    NATS,
    PROBABILITY,
    SQUARED_NORMS,
    FieldUnit,
    Finite,
    NonNegative,
    Probability,
    Record,
    Role,
    Words,
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
    question: Words = Field(description="What was computed, e.g. ε at a δ.")
    lower: Annotated[NonNegative, Role.INTERVAL] = Field(description="Lower bound on the answer.")
    upper: Annotated[NonNegative, Role.INTERVAL] = Field(description="Upper bound on the answer.")
    spacing: Annotated[NonNegative, NATS] = Field(
        description="The spacing of the lattice in nats; 0 if no lattice was needed."
    )
    profile_evaluations: int = Field(description="The number of values of the rounds' profiles that were computed.")
    transform_length: Annotated[int, FieldUnit("points")] = Field(
        description="The number of points of the Fourier transform; 0 if there was none."
    )
    tilt: Annotated[NonNegative, FieldUnit("per nat")] = Field(
        description="λ of the exponential change of measure; 0 if there was none."
    )


class BudgetLine(Record):
    """One source of error in the upper bound of the guarantee, in units of δ unless stated otherwise."""

    source: Words = Field(description="The source of the error in words.")
    direction: Literal["remove", "add", "both", "replace"] = Field(
        description="The direction in which it occurs, or both."
    )
    contribution: NonNegative = Field(description="The most that it may add to the upper bound.")


class ComponentRecord(Record):
    """A part of a mixture from which samples were drawn: another distribution of participations with scaled means, or a tilt."""

    share: Probability = Field(description="The share of the samples that were drawn from this part.")
    tilt: Finite | None = Field(
        description="θ of the mechanism tilted along its mean participation; 0 means plain sampling."
    )
    parameters: list[Finite] = Field(
        description="The probabilities (or the exponents of the weights of the bins) of its participation patterns.",
    )
    mean_scale: Finite | None = Field(description="The factor κ on the means.")


class LogSobolevRecord(Record):
    """Samples of D, whose mean bounds δ if a record is added: δ ≤ λ^λ/(1+λ)^{1+λ}·exp(−λε − ‖d‖²/2 + E D)."""

    size: NonNegative = Field(
        description="The factor of d: d is this multiple of the mean participation Cx̄, in units of σ, and y ~ N(−d, I)."
    )
    exponent: NonNegative = Field(
        description="λ of D = −λ(ln f − ⟨∇ln f(−d), y + d⟩) + ‖λ∇ln f − d‖²/2, where f is the likelihood ratio at y."
    )


class ProposalRecord(Record):
    """The distribution from which samples were drawn; the documentation of sampling explains it."""

    parameter: Finite = Field(
        description="The probability (or the exponent of the weights of the bins) with which participation patterns "
        "were drawn."
    )
    mean_scale: Finite = Field(description="The factor κ on the means. If `order` is given: that order.")
    order: int | None = Field(
        ge=2,
        le=64,
        description="m, if samples are drawn from the power fᵐ of the likelihood ratio f, with m replicas. Null "
        "otherwise.",
    )
    block: int | None = Field(
        ge=2,
        description="The number of rounds in a block, if replicas are drawn by blocks. Null if they are drawn "
        "round by round.",
    )
    most_busy: int | None = Field(
        ge=2,
        le=63,
        description="K, if at most K replicas take part within as many rounds as the separation of the sampler. What "
        "this leaves out is subtracted from the claim that is tested. Null if all replicas may take part.",
    )
    floor: Finite | None = Field(
        description="a, if samples of fᵐ are of a replaced record: their weight is that at ln f = a wherever ln f is below a. "
        "What this and cutting samples off at `weight_bound` leave out is subtracted from the claim that is tested: e^a times a "
        "bound on δ(ε − a) of an added record. Null otherwise.",
    )
    log_sobolev: LogSobolevRecord | None = Field(
        description="The mean that was tested, if the test was of a mean that bounds δ. Then `weight_bound` is the largest D, "
        "and `mean` is an estimate of the bound. Null otherwise.",
    )
    further: list[Finite] = Field(
        description="The parameters of the further sampled phases, if several phases are sampled together."
    )
    mixture: list[ComponentRecord] = Field(
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
    weight_bound: Finite = Field(description="The largest possible D.")
    betting_fractions: list[Finite] = Field(
        description="The betting fractions. Empty if the bound on D is sufficient without samples."
    )
    samples: int = Field(description="The number of samples of this test, in addition to those of V.")
    log_wealth: Finite = Field(
        description="The logarithm of the highest wealth that was reached. To certify, it must be at least "
        "log_target of the test."
    )


class TestRecord(Record):
    """One test of a claim δ(ε) < threshold, as it was run."""

    direction: Literal["remove", "add", "replace"] = Field(description="The direction, or replacement.")
    noise_multiplier: Annotated[Finite, CLIP_NORMS] = Field(description="The σ that was tested.")
    epsilon: Annotated[NonNegative, NATS] = Field(description="ε of the claim.")
    threshold: Annotated[Probability, PROBABILITY] = Field(description="δ of the claim.")
    proposal: ProposalRecord = Field(description="The distribution from which the samples were drawn.")
    weight_bound: Annotated[NonNegative, PROBABILITY] = Field(
        description="The largest value that one sample can contribute."
    )
    betting_fractions: list[Finite] = Field(
        description="The betting fractions λ of the bets. The wealth of the test is the mean of their wealth. Empty "
        "for a fixed sample."
    )
    samples: int = Field(description="The number of samples of the test.")
    log_wealth: Annotated[Finite, NATS] = Field(description="The logarithm of the highest wealth that was reached.")
    log_target: Annotated[Finite, NATS] = Field(
        description="ln(1/q), the logarithm of the wealth that certifies the claim."
    )
    mean: NonNegative = Field(
        description="The mean of the samples. This is an estimate: tests that may stop early bias it, and few busy "
        "replicas and floors lower it by what they leave out."
    )
    standard_error: NonNegative | None = Field(
        description="The standard error of the mean; an estimate. Null if no sample counted, or too few for an "
        "estimate."
    )
    accepted: bool = Field(description="Whether the claim was certified.")
    second_moment: SecondMomentRecord | None = Field(
        description="The test that was run before this one, if clipped samples need a bound on their second moment "
        "that is not known without samples. Null otherwise.",
    )

    @property
    def result(self) -> str:
        """Return the result in one word."""
        return "accepted" if self.accepted else "rejected"

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
    tail_mass: Probability = Field(
        description="The δ beyond the curve is at most this, which is added to every estimate."
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


class MomentRecord(Record):
    """A claim that is proven by moments of the likelihood ratio f of the whole run. Means are under the distribution without
    the record.
    """

    order: int = Field(ge=2, description="m: the claim follows from E f^m.")
    log_moment: NonNegative = Field(
        description="Upper bound on ln E f^m, from a chain over m replicas of the participations of a record."
    )
    states: int = Field(ge=1, description="The number of states of this chain.")
    most_busy: int | None = Field(
        ge=2,
        le=63,
        description="K, if at most K replicas take part within as many rounds as the separation of the sampler; "
        "`log_moment` includes what this leaves out. Null if all replicas may take part.",
    )
    remove: Probability = Field(
        description="Upper bound on δ(ε) if a record is removed, from this moment or from the polynomial."
    )
    add: Probability = Field(
        description="Upper bound on δ(ε) if a record is added, from a bound on the weights of a proposal."
    )
    polynomial: MomentPolynomialRecord | None = Field(
        description="The polynomial, if several moments together prove the claim. Certificates contain it since "
        "version 0.1.0.",
    )


class SamplingRecord(Record):
    """What was sampled."""

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
    samples: Annotated[int, Role.DRAWN, FieldUnit("samples")] = Field(
        description="The number of all samples, including those of the pilot."
    )
    shard_size: int = Field(description="The number of samples for each stream of random numbers.")
    test_probability: Probability = Field(
        description="Upper bound on the probability that one fixed-sequence test accepts a false claim."
    )
    total_probability: Annotated[Probability, PROBABILITY] = Field(
        description="q: upper bound on the probability that anything false is "
        "certified, in all sequences that are allowed."
    )
    pointwise_failure_probability: Annotated[Probability, PROBABILITY] = Field(
        description="Upper bound on the probability that a single lower bound, or a single bound of a point of the "
        "profile, is wrong."
    )
    profile_failure_probability: Probability | None = Field(
        description="Upper bound on the probability that the upper bound of a point of the profile is wrong, if a "
        "tested guarantee bounds the profile too. It is wrong only if its own samples or the tests err. Null "
        "for deterministic guarantees.",
    )
    tests: Annotated[list[TestRecord], Role.DRAWN] = Field(description="Every test that was run.")
    composed_curve: Annotated[ComposedCurveRecord | None, Role.EFFORT] = Field(
        description="The composed profile. Null if no phases are composed with the sampled ones."
    )
    moment: MomentRecord | None = Field(
        description="What proves the guarantee without samples. Null if no moment proves it."
    )


class ConsideredRecord(Record):
    """One candidate of a choice. The values are estimates."""

    matrix: str = Field(description="The kind of matrix.")
    bands: Annotated[int, FieldUnit("bands")] = Field(description="The number of its bands.")
    noise_multiplier_estimate: Annotated[Finite, Role.ESTIMATE, CLIP_NORMS] = Field(
        description="The σ that it would need; an estimate."
    )
    prefix_sum_mse_estimate: Annotated[Finite, Role.ESTIMATE, SQUARED_NORMS] = Field(
        description="The error of prefix sums that it would have; an estimate."
    )
    workload_error_estimate: Annotated[Finite | None, Role.ESTIMATE, SQUARED_NORMS] = Field(
        description="The squared error under the workload of the document, which is compared: the mean or the "
        "largest, as the document asks. An estimate. Null if the document has no workload.",
    )
    sampler: dict[str, int] | None = Field(
        description="Its values of the sampler's keys that the document leaves to `choose:` lists. Null if there "
        "are no such keys.",
    )
    relative_error_estimate: Annotated[Finite | None, Role.ESTIMATE, SQUARED_NORMS] = Field(
        description="If keys of the sampler are chosen: the squared error, divided by the square of the share of the "
        "records that a batch contains. It is compared instead of the error, because batches may differ in size. "
        "An estimate.",
    )


class SearchedRecord(Record):
    """How the matrix was searched for under its sampler. The values are estimates; the guarantee does not depend on them."""

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
        description="The squared error under the workload of the document (the mean or the largest, as the document "
        "asks), with the matrix at the start of the search; an estimate. Null if the document has no workload.",
    )
    workload_error_estimate: Finite | None = Field(
        description="The same with the matrix that was found; this was minimised. Null if the document has no "
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
        """Whether the search needed samples; if so, its gradient has an error."""
        return self.gradient_error_estimate > 0.0


class AlikeRecord(Record):
    """Rounds that are nearly alike, which are composed as if each of them were the worst of its group for the upper bound,
    and the best of its group for the lower bound.
    """

    kinds: int = Field(
        ge=1, description="The number of kinds of rounds in the document, in the direction that has the most."
    )
    composed: int = Field(ge=1, description="The number of kinds that were composed for the upper bound.")


class ProfileWorkRecord(Record):
    """The work of a profile with its curve that is coarser than usual, because it was not allowed more.

    Work is counted in cells, of which every machine counts the same number: an entry of a transform is one, and so is a pair of
    losses of two laws that are composed without a transform; the value of a round's profile is 32.
    """

    guarantee: int = Field(ge=0, description="The number of cells that the guarantee took.")
    allowed: int = Field(
        ge=1,
        description="The number of cells that the profile was allowed: ten times those of the guarantee, or 67_108_864.",
    )
    taken: int = Field(ge=0, description="The number of cells that the profile took.")


class EvidenceRecord(Record):
    """How the numbers were computed."""

    engine: str = Field(description="The engine that computed the numbers.")
    tolerance: Finite = Field(description="The relative width of the interval that was asked for.")
    within_tolerance: Annotated[bool, Role.DRAWN] = Field(
        description="Whether every composition met the tolerance. The interval is proven in either case."
    )
    compositions: Annotated[list[Composition], Role.EFFORT] = Field(
        description="Every composition that the guarantee is based on."
    )
    sampling: SamplingRecord | None = Field(description="What was sampled; null if nothing was.")
    considered: Annotated[list[ConsideredRecord], Role.CHOICE] = Field(
        description="The candidates of every choice; empty if there was no choice."
    )
    searched: SearchedRecord | None = Field(
        description="How the matrix was found whose coefficients the phase states. Null if no matrix was searched "
        "for under its sampler.",
    )
    alike: AlikeRecord | None = Field(
        description="How nearly alike rounds of a long schedule were composed in groups. Null if each kind of round was "
        "composed separately.",
    )
    profile_work: Annotated[ProfileWorkRecord | None, Role.EFFORT] = Field(
        default=None,
        description="The work of the profile and of the curves, if some of their bounds are wider than usual because no more "
        "work was allowed. These bounds are proven all the same, and the guarantee is not affected. Null otherwise.",
    )
    error_budget: Annotated[list[BudgetLine], Role.EFFORT] = Field(
        description="Every source of error in the upper bound, one per line."
    )
