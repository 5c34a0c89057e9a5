"""The Gaussian filter: entries that are μ_i-GDP are admitted while Σ μ_i² ≤ μ², and all of them together are μ-GDP.

**Proof** (Smith & Thakurta 2022, arXiv:2210.17520; here by a Brownian motion). An entry that is μ_i-GDP given the past is,
by Blackwell's theorem (Dong, Roth & Su 2022, Theorem 2.10), a randomised function of one number that has the law N(μ_i, 1)
on one data set and N(0, 1) on its neighbour. Let B be a Brownian motion on [0, μ²], with drift 1 on the first data set and 0
on the second. Lay the entries out along its time: the i-th takes the interval from s_{i−1} = Σ_{j<i} μ_j² to s_i, and reads
(B(s_i) − B(s_{i−1}))/μ_i, which has the law N(μ_i, 1) or N(0, 1) given everything before s_{i−1}. μ_i is chosen by what was
released before, so it is known at s_{i−1}, and s_i ≤ μ² because the filter admitted the entry. So everything that is
released is a function of the path and of independent randomness. The two laws of the path differ by the likelihood ratio
exp(B(μ²) − μ²/2), which is a function of B(μ²), and B(μ²) has the law N(μ², μ²) or N(0, μ²): testing it is testing N(μ, 1)
against N(0, 1). ∎ The bound is attained by one entry with μ, so nothing is lost by choosing adaptively.

**Which entries.** Gaussian noise without sampling (any matrix, any order of the records: it is one Gaussian pair), a
`stated` μ, random contributions with Gaussian noise, which are no worse than the largest one, and everything with a pure ε,
which is μ-GDP for Φ(−μ/2) = 1/(1 + e^ε): the profiles of the core say for which μ they are. Entries with a δ, sampled rounds,
discrete Gaussian noise and mechanisms that are known by Rényi divergences are μ-GDP for no useful μ, or for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.document.mechanisms.base import rounded_up
from pyaccount.filters.base import AdditiveFilter, PricedPhase, RoundsOfKind, released, words_of
from pyaccount.profiles import ProfileKind

#: What can be done with an entry that no Gaussian pair stands for.
INSTEAD = (
    "Use a Rényi filter (orders that are fixed beforehand), or a filter in (ε, δ) terms, for such entries: the whole budgets of "
    "two filters compose"
)


@dataclass(frozen=True, slots=True)
class GaussianFilter(AdditiveFilter):
    """Admit entries that are μ_i-GDP while Σ μ_i² ≤ μ². What is spent is Σ μ_i², rounded up."""

    mu: float
    called: ClassVar[str] = "the Gaussian filter"

    @property
    def terms(self) -> tuple[str, ...]:
        """Return that μ² is what is spent."""
        return ("μ²",)

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """Return μ², exactly; μ is taken as its decimal, as in a document."""
        return (Fraction(repr(self.mu)) ** 2,)

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return an upper bound on Σ μ_i² of the phases of an entry. Raises as `Filter.cost`."""
        phases = released(entry, INSTEAD)
        return (rounded_up(sum((phase.worst(_square, partial(self._reason, phase)) for phase in phases), Fraction(0))),)

    def _reason(self, phase: PricedPhase, part: ProfileKind) -> str:
        return (
            f"{words_of(part, phase.node)} in {self.called}, which admits Gaussian noise without sampling, a stated μ, "
            f"random contributions with Gaussian noise, and mechanisms with a pure ε. {INSTEAD}"
        )

    def phase(self) -> dict[str, Any]:
        """Return a mechanism that is μ-GDP."""
        return {"mechanism": {"kind": "stated", "mu": self.mu}}


def _square(part: ProfileKind, kind: RoundsOfKind) -> Fraction | None:
    """Return μ² of a profile; None if no Gaussian pair is known to be less private."""
    known = part.build().gaussian_square()
    if known is None and (pure := kind.pure(part)) is not None:
        known = pure.build().gaussian_square()
    return known
