"""The compiled arithmetic core. Internal: `pyaccount` is the public interface."""

from collections.abc import Sequence

__version__: str

class Profile:
    """The privacy profile δ(ε) of one direction of one round; σ and shifts are in units of the clip norm."""

    @staticmethod
    def gaussian(sensitivity: float, noise_multiplier: float) -> Profile:
        """N(sensitivity, σ²) against N(0, σ²)."""

    @staticmethod
    def poisson(
        group_size: int, sampling_probability: float, noise_multiplier: float, *, two_sided: bool, reverse: bool
    ) -> Profile:
        """Σ_j Bin(j; k, p) N(j, σ²) against N(0, σ²), or `two_sided` against Σ_j Bin(j; k, p) N(−j, σ²)."""

    @staticmethod
    def fixed_size(
        group_size: int, others: int, batch_size: int, shift: float, noise_multiplier: float, *, reverse: bool
    ) -> Profile:
        """Σ_j Hyp(j) N(shift·j, σ²) against N(0, σ²), Hyp the number of sensitive records in a batch."""

    @staticmethod
    def fixed_size_replaced(group_size: int, dataset_size: int, batch_size: int, noise_multiplier: float) -> Profile:
        """The joint-convexity bound for replaced records in a fixed-size batch; both directions."""

    @staticmethod
    def fixed_size_zeroed(dataset_size: int, batch_size: int, noise_multiplier: float, *, reverse: bool) -> Profile:
        """The bound for one record of a fixed-size batch set to zero."""

    @staticmethod
    def discrete(outcomes: Sequence[tuple[float, float]]) -> Profile:
        """A finite pair, given as (P, Q) probabilities of each outcome."""

    def at(self, epsilon: float) -> tuple[float, float, float, float]:
        """δ(ε), a bound on its error, −dδ/dε, a bound on its error."""

class Interval:
    """A proven interval with its error budget (in units of δ at the upper end)."""

    lower: float
    upper: float
    within_tolerance: bool
    spacing: float
    nodes: int
    transform_length: int
    tilt: float
    budget: dict[str, float]

def answer_all(
    questions: Sequence[tuple[Sequence[tuple[Profile, int]], float | None, float | None, float]],
    *,
    threads: int = 0,
    time_limit: float | None = None,
) -> list[Interval]:
    """Compose and answer: each question is (rounds with counts, epsilon, delta, relative tolerance), one of ε and δ None."""
