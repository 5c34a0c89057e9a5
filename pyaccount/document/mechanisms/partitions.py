"""Partition selection as a document states it: which groups of a table are released, by which strategy, with what numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.mechanisms.base import MechanismKind
from pyaccount.document.ranges import DELTA, MAX_PARTITIONS, MECHANISM_EPSILON, SCALE, THRESHOLD
from pyaccount.document.stated import Placed
from pyaccount.errors import Problem, problem
from pyaccount.reading.fields import Choice, Number, Solve
from pyaccount.reading.kinds import AlsoCalled

SelectionStrategy = Literal["truncated-geometric", "laplace", "gaussian"]

#: The numbers of each strategy. Of `threshold` and `delta` one is stated, and the other one follows from it.
NUMBERS: dict[str, tuple[str, ...]] = {
    "truncated-geometric": ("epsilon", "delta"),
    "laplace": ("scale", "threshold", "delta"),
    "gaussian": ("sigma", "threshold", "delta"),
}
#: What is said of a number at a strategy that has no such number.
_ADVICE = {
    "epsilon": "ε follows from the noise",
    "scale": "the scale b is that of Laplace noise",
    "sigma": "the standard deviation σ is that of Gaussian noise",
    "threshold": "the probability of each count follows from epsilon and delta, without a threshold",
}


class PartitionSelection(MechanismKind):
    """Partition selection: which partitions (groups, keys) of a table are released, when it is not public which exist."""

    aliases = (
        "thresholding threshold partitions private-partition-selection key-selection set-union tau-thresholding "
        "select-partitions stability-histogram unknown-domain"
    )
    # A selected partition may be one that only a single record contributes to.
    bounded_loss = False

    kind: Literal["partition-selection"] = Field(
        description="Which partitions (groups, keys) of a table are released, each by the number of its records."
    )
    strategy: Annotated[SelectionStrategy, Choice(tuple(NUMBERS))] = Field(
        description="How a partition is selected. truncated-geometric: with the largest probability that epsilon and delta "
        "allow for one partition (Desfontaines et al. 2022), and no count is released. laplace, gaussian: if its count with "
        "this noise passes a threshold; the noisy counts of the selected partitions may be released too."
    )
    max_partitions: Annotated[
        int,
        Number(MAX_PARTITIONS, whole=True),
        AlsoCalled("l0_sensitivity max_partitions_contributed max_groups_contributed max_contributed_partitions"),
    ] = Field(
        description="The maximum number of partitions to which one record contributes (ℓ0); it counts once in each of them. A "
        "user with several records is one record here."
    )
    epsilon: Annotated[float | None, Number(MECHANISM_EPSILON)] = Field(
        default=None, description="ε of one partition, in nats. Only with truncated-geometric."
    )
    delta: Annotated[float | None, Number(DELTA)] = Field(
        default=None,
        description="δ of one partition: the probability that a partition is selected which only one record contributes to. With "
        "laplace and gaussian it may be stated instead of the threshold, which is then the smallest one with this δ.",
    )
    scale: Annotated[float | Solve | None, Number(SCALE, blank=True)] = Field(
        default=None,
        description="The scale b of the noise on every count. Only with laplace. To solve for it, state delta.",
    )
    sigma: Annotated[float | Solve | None, Number(SCALE, blank=True)] = Field(
        default=None,
        description="The standard deviation σ of the noise on every count. Only with gaussian. To solve for it, state delta.",
    )
    threshold: Annotated[float | Solve | None, Number(THRESHOLD, blank=True)] = Field(
        default=None,
        description="A partition is selected if its noisy count is at least this. Only with laplace and gaussian, without delta.",
    )

    def noise(self) -> float | Solve:
        """Return the size of the noise on counts: b or σ."""
        size = self.scale if self.strategy == "laplace" else self.sigma
        assert size is not None
        return size

    def blank(self) -> bool:
        """Return whether one of its numbers is solved for."""
        return "solve" in (self.scale, self.sigma, self.threshold)

    def searched(self, blank: str) -> tuple[float, float] | None:
        """Return thresholds from a probability above ½ to one below 1e-270 that a count of 1 passes; None for other blanks."""
        if blank != "threshold" or self.noise() == "solve":
            return None
        heights = 620.0 if self.strategy == "laplace" else 35.0
        return THRESHOLD.minimum, min(1.0 + heights * float(self.noise()), THRESHOLD.maximum)

    def problems(self, node: Placed) -> Iterator[Problem]:
        """Report numbers of another strategy, missing ones, a threshold that is stated twice, and noise solved for beside one."""
        if self.strategy not in NUMBERS:
            return
        its, thresholds = NUMBERS[self.strategy], ("threshold", "delta")
        for name in ("epsilon", "delta", "scale", "sigma", "threshold"):
            if name not in its and getattr(self, name) is not None:
                message = (
                    f"{name} does not belong to the strategy {self.strategy}, whose numbers are {' and '.join(its)}: "
                    f"{_ADVICE[name]}"
                )
                yield problem("contradiction", node.at("mechanism", name), message)
        noisy = "threshold" in its
        for name in its:
            if getattr(self, name) is None and not (noisy and name in thresholds):
                message = f"the strategy {self.strategy} needs {name}{_of_partition(name)}"
                yield problem("missing-key", node.at("mechanism", name), message)
        if not noisy:
            return
        given = [name for name in thresholds if getattr(self, name) is not None]
        if not given:
            message = (
                f"the strategy {self.strategy} needs threshold, or delta{_of_partition('delta')}, from which it follows"
            )
            yield problem("missing-key", node.at("mechanism", "threshold"), message)
        if len(given) > 1:
            message = (
                "the threshold follows from delta, the probability that a partition with one record is selected: leave delta "
                "out, or threshold. The δ of the guarantee is privacy.delta"
            )
            yield problem("contradiction", node.at("mechanism", "delta"), message)
        blank = next((name for name in ("scale", "sigma") if getattr(self, name) == "solve"), None)
        if blank is not None and given == ["threshold"]:
            message = (
                f"with a given threshold more noise is not always more private, because it lifts more small counts over the "
                f"threshold: to solve for {blank}, state delta instead of threshold"
            )
            yield problem("contradiction", node.at("mechanism", "threshold"), message, allowed="delta")


def _of_partition(name: str) -> str:
    """Return a remark about numbers that are easily taken for those of the whole release."""
    return " of one partition" if name in ("epsilon", "delta") else ""
