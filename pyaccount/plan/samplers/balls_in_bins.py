"""Balls in bins: a record takes part in the rounds of one bin, so the likelihood ratio is a sum over the bins.

Other releases of the same batches add rows to the encoder, one for each round, with an entry in the column of this round
only (`document.noise.beside`). Each row is still released after its last round, so the same domination holds (Dong &
Ganesh 2026, arXiv:2602.09338, Lemma D.1, whose rows may be chosen adaptively). The bins have no round in common: the products
of different modes stay as they are, and the square of a mode's norm grows by the same number for each turn of its bin.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount import _core
from pyaccount.directions import Direction
from pyaccount.document.samplers import BallsInBins
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import number, refused_blanks, value_or_symbol
from pyaccount.plan.compiled import SAMPLED_TOLERANCE
from pyaccount.plan.matrices import disjoint_modes, strategy
from pyaccount.plan.rounds import DirectedBounds
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.allocation import RATIO, Squares, allocation, is_narrow
from pyaccount.plan.samplers.base import Differentiable, InPlace, Worst, each_round
from pyaccount.plan.samplers.whole_run import WholeRun
from pyaccount.plan.theorem import Reduction, Theorem
from pyaccount.profiles import Rounds
from pyaccount.profiles.base import Recipe

if TYPE_CHECKING:
    from pyaccount.plan.samplers.base import Vector

#: Nanoseconds that a sample takes on one core for each pair of bins, and the least that a sample takes.
BINS_COST, LEAST_COST = 0.3, 200.0


class BallsInBinsPlan(WholeRun[BallsInBins]):
    """Balls in bins: each record has one bin for the whole run."""

    states_probability: ClassVar[bool] = False
    has_derivatives: ClassVar[bool] = True

    def subject(self) -> str:
        """Return the usual name of the sampler."""
        return "balls in bins"

    def stacks(self) -> bool:
        """Whether no batch is truncated, so that only products of modes matter."""
        return self.node.truncation() is None

    def law(self) -> str:
        """Return the law of x, which is uniform over the bins."""
        return f"x = the rounds of one of {self.node.bins()} bins, each with probability 1/{self.node.bins()}"

    def source(self) -> str:
        """Return the paper that analyses the sampler."""
        return "Choquette-Choo, Ganesh, Haque, Steinke & Thakurta 2025 (arXiv:2410.06266), Section 4; attained by gradients 1"

    def sampling(self) -> Assumed:
        """Return the assumption that bins are drawn once for each run."""
        once = "once" if self.node.count == 1 else "anew for each run"
        return Assumed(
            f"Every record is put in one of {self.node.bins()} bins uniformly at random, independently of the others, "
            f"{once}; iteration i uses the records of bin i mod {self.node.bins()}.",
            f"Every record is put in one of {self.node.bins()} bins, drawn {once}; they take turns.",
        )

    def theorem(self) -> Theorem:
        """Return the theorem: without samples if no two bins move the same coordinate and no samples are requested."""
        if (
            self.asked.accounting.method != "monte-carlo"
            and self.asked.privacy.adjacency != "replace-one"
            and self.node.truncation() is None
            and "solve" not in (self.node.training.iterations, self.node.training.expected_batch_size)
            and self.orthogonal()
        ):
            return AllocatedBins(self.asked, self.node, self)
        return super().theorem()

    def orthogonal(self) -> bool:
        """Whether the modes of the bins are orthogonal, and their law is as narrow as one from samples would be."""
        count = self.node.bins()
        if not disjoint_modes(self, count):
            return False
        # While σ is the blank, how much the other releases add is unknown: both analyses are valid.
        further = 0.0 if self.node.noise.multiplier == "solve" else each_round(self.node)
        squares = strategy(self).mode_squares(count, upper=True, each_round=further)
        return is_narrow(squares, self.asked.accounting.tolerance or SAMPLED_TOLERANCE)

    def truncated_assumptions(self, usual: tuple[Assumed, ...]) -> tuple[Assumed, ...]:
        """Return the assumptions; the records that are kept of a bin are chosen once."""
        limit = self.node.truncation()
        cut = Assumed(
            f"Of a bin with more than {limit} records {limit} are kept, chosen uniformly at random once, the same ones whenever "
            "its turn comes; smaller batches may be padded with empty records.",
            f"Of a larger bin {limit} records are kept, chosen at random once for the run.",
        )
        return truncated.sized(usual, cut)

    def untruncated(self, sigma: float, directions: tuple[Direction, ...]) -> SampledMechanism:
        """Return the mechanism, given by the Gram matrix of the modes in units of σ²."""
        built, count = strategy(self), self.node.bins()
        gram, _ = built.bin_gram(count, each_round(self.node))
        # The terms of an inner product, by which its rounding is bounded; other releases add a row for each round.
        terms = built.iterations if not self.node.noise.also else 2 * built.iterations
        recipe: Recipe[_core.Sampled] = Recipe(
            "Sampled.bins", (tuple(entry / (sigma * sigma) for entry in gram), terms)
        )
        composed = self._apart(gram, sigma) if "replace" in directions else {}
        cost = max(LEAST_COST, BINS_COST * count * count)
        return SampledMechanism(recipe, directions, count, cost, 0.0, composed=composed)

    def _apart(self, gram: list[float], sigma: float) -> dict[Direction, tuple[Rounds, ...]]:
        """Return rounds that bound δ of an added record, for samples of a replaced one; empty if no two modes are orthogonal.

        Every c-th bin makes a class, whose modes are orthogonal. The likelihood ratio f is a mean of that of the classes, each
        an allocation to its bins, and δ is convex in f: it is at most that of the smallest class, with the longest mode
        for each of its bins, since δ grows with the norms, and falls as more bins are averaged.
        """
        count = self.node.bins()
        for apart in range(1, count // 2 + 1):
            meet = (gram[t * count + s] for t in range(count) for s in range(t + apart, count, apart))
            if not any(meet):
                largest = max(gram[t * (count + 1)] for t in range(count)) * (1.0 + strategy(self).slack) ** 2
                return {"add": allocation(self.asked, ((largest / (sigma * sigma), count // apart),), 1)["add"].upper}
        return {}

    def differentiable(self) -> Differentiable:
        """Return the derivatives by the Gram matrix Γ = MMᵀ/σ² of the modes m_t = Σ_e C e_{eT+t}, the rows of M.

        C is Toeplitz, so m_t is m_0 moved down by t rows, and m_0 has Σ_e c_{j−eT} in row j. dδ = Σ_st D_st dΓ_st with
        D symmetric, so ∂δ/∂M = 2DM/σ², ∂δ/∂m_0[j] = Σ_t (∂δ/∂M)[t, t + j] = r_j and ∂δ/∂c_j = Σ_e r_{j+eT}.
        """
        import numpy as np  # only searches for a matrix need it

        from pyaccount.strategies import sums

        n, count = number(self.node.training.iterations), self.node.bins()

        def modes(c: Vector) -> Vector:
            first = np.zeros(n)
            first[: len(c)] = c
            for start in range(count, n, count):
                turn = first[start : start + count]
                turn += first[start - count : start][: len(turn)]
            built = np.zeros((count, n))
            for t in range(min(count, n)):
                built[t, t:] = first[: n - t]
            return built

        def slopes(c: Vector, sigma: float, gradient: _core.DeltaGradient) -> Vector:
            derivatives = np.array(gradient.derivatives).reshape(count, count)
            # No linear algebra library is used, since its order of sums would depend on its threads.
            by_mode = 2.0 * np.einsum("st,tn->sn", derivatives, modes(c)) / (sigma * sigma)
            rows = np.zeros(n)
            for t in range(min(count, n)):
                rows[: n - t] += by_mode[t, t:]
            for end in range(n - count, 0, -count):
                turn = rows[max(0, end - count) : end]
                turn += rows[end : end + count][count - len(turn) :]
            return rows[: len(c)]

        return Differentiable(
            lambda c, sigma: _core.Sampled.bins((sums.gram(modes(c)) / (sigma * sigma)).ravel().tolist(), n), slopes
        )

    def displaced(self, limit: int) -> float:
        """Return the bound for the record's own bin, which is drawn once."""
        rate = self.largest_rate() * (1.0 + truncated.ROUNDING)
        return rarely.upper_tail(number(self.node.training.dataset_size) - 1, rate, limit)

    def worst(self) -> Worst:
        """Return the case in which the bin of a record is known."""
        turns = -(-number(self.node.training.iterations) // self.node.bins())
        words = f"the bin known: each record in {'one round' if turns == 1 else f'up to {turns} rounds'}"

        def norm() -> float:
            built, count = strategy(self), self.node.bins()
            if disjoint_modes(self, count):
                # The same maximum, without vectors as long as the run.
                squares = built.mode_squares(count, upper=True, each_round=each_round(self.node))
                return math.sqrt(max(square for square, _ in squares)) * (1.0 + built.slack)
            return built.bin_gram(count, each_round(self.node))[1]

        return Worst(words, norm, self.node.count)

    def shortest_run(self, rounds: int) -> int:
        """Return enough rounds that every bin has had its turn."""
        return max(rounds, self.node.bins())

    def cut(self, rounds: int) -> dict[str, Any]:
        """Return the number of bins, which may otherwise follow from the rate."""
        return {"bins": self.node.bins()}


class AllocatedBins(InPlace[BallsInBins]):
    """One allocation to the bins for each run, whose modes are orthogonal."""

    inner: BallsInBinsPlan

    def words(self) -> Reduction:
        """Return the theorem: an allocation to one of the bins, whose shifts depend on how often they have a turn."""
        sigma = value_or_symbol(self.node.noise.multiplier, "σ")
        mode, turns = "m_t = Σ_e C e_{eT+t}, orthogonal, the mode of bin t", "E_t the turns of bin t"
        independent = strategy(self).independent
        return replace(
            self.inner.words(),
            theorem="mixture over the bins, whose rounds are none of another's",
            source=f"{self.inner.source()}. {RATIO}",
            pair=f"(1/T) Σ_t N({'√E_t' if independent else '‖m_t‖'} e_t, {sigma}²I) against N(0, {sigma}²I), "
            f"{turns if independent else mode} of T = {self.node.bins()}",
        )

    def bounds(self) -> DirectedBounds:
        """Return one allocation for each run."""
        sigma, built = number(self.node.noise.multiplier), strategy(self)

        def squares(*, upper: bool) -> Squares:
            return tuple(
                (square / (sigma * sigma), count)
                for square, count in built.mode_squares(self.node.bins(), upper=upper, each_round=each_round(self.node))
            )

        return allocation(self.asked, squares(upper=True), self.node.count, below=squares(upper=False))

    def refusals(self) -> list[Problem]:
        """Refuse groups of records, and blanks on which the rounds depend."""
        message = "with balls in bins only noise.multiplier, privacy.epsilon or privacy.delta can be solved for"
        known = ("multiplier", "epsilon", "delta", "group_size")
        return [*self.inner.unit_refusals(), *refused_blanks(self.asked, known, message)]
