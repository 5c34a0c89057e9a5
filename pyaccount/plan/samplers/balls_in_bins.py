"""Balls in bins: a record takes part in the rounds of one bin, so the likelihood ratio is a sum over the bins.

Other releases of the same batches add rows to the encoder, one for each round, with an entry in the column of this round
only (`document.releases.beside`). Each row is still released after its last round, so the same domination holds (Dong &
Ganesh 2026, arXiv:2602.09338, Lemma D.1, whose rows may be chosen adaptively). The bins have no round in common: the products
of different modes stay as they are, and the square of a mode's norm grows by the same number for each turn of its bin.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyaccount import _core
from pyaccount.plan.common import OTHER_BLANKS, number, value_or_symbol
from pyaccount.plan.compiled import SAMPLED_TOLERANCE
from pyaccount.plan.matrices import disjoint_modes, strategy
from pyaccount.plan.recipe import Recipe
from pyaccount.plan.reduction import Analysis
from pyaccount.plan.sampled import SampledMechanism
from pyaccount.plan.samplers import rarely, truncated
from pyaccount.plan.samplers.allocation import RATIO, allocation, is_narrow
from pyaccount.plan.samplers.base import Differentiable, Worst, each_round
from pyaccount.plan.samplers.whole_run import WholeRun

if TYPE_CHECKING:
    from pyaccount.directions import Direction
    from pyaccount.document.document import Document
    from pyaccount.document.views import Body
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Reduction
    from pyaccount.plan.rounds import DirectedBounds
    from pyaccount.plan.samplers.allocation import Squares
    from pyaccount.plan.samplers.base import Vector

#: Nanoseconds that a sample takes on one core for each pair of bins, and the least that a sample takes.
BINS_COST, LEAST_COST = 0.3, 200.0


class BallsInBinsPlan(WholeRun):
    """Balls in bins: each record has one bin for the whole run."""

    states_probability: ClassVar[bool] = False
    has_derivatives: ClassVar[bool] = True

    def subject(self, body: Body) -> str:
        """Return the usual name of the sampler."""
        return "balls in bins"

    def stacks(self, body: Body) -> bool:
        """Whether no batch is truncated, so that only products of modes matter."""
        return body.truncation() is None

    def law(self, body: Body) -> str:
        """Return the law of x, which is uniform over the bins."""
        return f"x = the rounds of one of {body.bins()} bins, each with probability 1/{body.bins()}"

    def source(self, body: Body) -> str:
        """Return the paper that analyses the sampler."""
        return "Choquette-Choo, Ganesh, Haque, Steinke & Thakurta 2025 (arXiv:2410.06266), Section 4; attained by gradients 1"

    def sampling(self, body: Body) -> str:
        """Return the assumption that bins are drawn once for each run."""
        return (
            f"Every record is put in one of {body.bins()} bins uniformly at random, independently of the others, "
            f"{'once' if body.count == 1 else 'anew for each run'}; iteration i uses the records of bin i mod {body.bins()}."
        )

    def analysis(self, document: Document, body: Body) -> Analysis:
        """Return the analysis: without samples if no two bins move the same coordinate and no samples are requested."""
        if (
            document.accounting.method != "monte-carlo"
            and document.privacy.adjacency != "replace-one"
            and body.truncation() is None
            and "solve" not in (body.training.iterations, body.training.expected_batch_size)
            and self.orthogonal(document, body)
        ):
            return Analysis(self.allocated_words, self.allocated, refusals=self.allocated_refusals)
        return super().analysis(document, body)

    def orthogonal(self, document: Document, body: Body) -> bool:
        """Whether the modes of the bins are orthogonal, and their law is as narrow as one from samples would be."""
        count = body.bins()
        if not disjoint_modes(document, body, count):
            return False
        # While σ is the blank, how much the other releases add is unknown: both analyses are valid.
        further = 0.0 if body.noise.multiplier == "solve" else each_round(body)
        squares = strategy(document, body).mode_squares(count, upper=True, each_round=further)
        return is_narrow(squares, document.accounting.tolerance or SAMPLED_TOLERANCE)

    def allocated_words(self, document: Document, body: Body) -> Reduction:
        """Return the theorem: an allocation to one of the bins, whose shifts depend on how often they have a turn."""
        sigma = value_or_symbol(body.noise.multiplier, "σ")
        mode, turns = "m_t = Σ_e C e_{eT+t}, orthogonal, the mode of bin t", "E_t the turns of bin t"
        independent = strategy(document, body).independent
        return replace(
            self.words(document, body),
            theorem="mixture over the bins, whose rounds are none of another's",
            source=f"{self.source(body)}. {RATIO}",
            pair=f"(1/T) Σ_t N({'√E_t' if independent else '‖m_t‖'} e_t, {sigma}²I) against N(0, {sigma}²I), "
            f"{turns if independent else mode} of T = {body.bins()}",
        )

    def allocated(self, document: Document, body: Body) -> DirectedBounds:
        """Return one allocation for each run."""
        sigma, built = number(body.noise.multiplier), strategy(document, body)

        def squares(*, upper: bool) -> Squares:
            return tuple(
                (square / (sigma * sigma), count)
                for square, count in built.mode_squares(body.bins(), upper=upper, each_round=each_round(body))
            )

        return allocation(document, squares(upper=True), body.count, below=squares(upper=False))

    def allocated_refusals(self, document: Document, body: Body) -> list[Problem]:
        """Refuse groups of records, and blanks on which the rounds depend."""
        problems = self.unit_refusals(document, body)
        blank = document.blank
        if blank is not None and blank[-1] not in ("multiplier", "epsilon", "delta", "group_size"):
            message = "with balls in bins only noise.multiplier, privacy.epsilon or privacy.delta can be solved for"
            problems.append(document.problem("no-valid-bound", blank, message, allowed=OTHER_BLANKS))
        return problems

    def truncated_assumptions(self, body: Body, usual: tuple[str, ...]) -> tuple[str, ...]:
        """Return the assumptions; the records that are kept of a bin are chosen once."""
        limit = body.truncation()
        cut = (
            f"Of a bin with more than {limit} records {limit} are kept, chosen uniformly at random once, the same ones whenever "
            "its turn comes; smaller batches may be padded with empty records."
        )
        return truncated.sized(usual, cut)

    def untruncated(
        self, document: Document, body: Body, sigma: float, directions: tuple[Direction, ...]
    ) -> SampledMechanism:
        """Return the mechanism, given by the Gram matrix of the modes in units of σ²."""
        built, count = strategy(document, body), body.bins()
        gram, _ = built.bin_gram(count, each_round(body))
        # The terms of an inner product, by which its rounding is bounded; other releases add a row for each round.
        terms = built.iterations if not body.noise.also else 2 * built.iterations
        recipe: Recipe[_core.Sampled] = Recipe(
            "Sampled.bins", (tuple(entry / (sigma * sigma) for entry in gram), terms)
        )
        return SampledMechanism(recipe, directions, count, max(LEAST_COST, BINS_COST * count * count), 0.0)

    def differentiable(self, document: Document, body: Body) -> Differentiable:
        """Return the derivatives by the Gram matrix Γ = MMᵀ/σ² of the modes m_t = Σ_e C e_{eT+t}, the rows of M.

        C is Toeplitz, so m_t is m_0 moved down by t rows, and m_0 has Σ_e c_{j−eT} in row j. dδ = Σ_st D_st dΓ_st with
        D symmetric, so ∂δ/∂M = 2DM/σ², ∂δ/∂m_0[j] = Σ_t (∂δ/∂M)[t, t + j] = r_j and ∂δ/∂c_j = Σ_e r_{j+eT}.
        """
        import numpy as np  # only searches for a matrix need it

        from pyaccount.strategies import sums

        n, count = number(body.training.iterations), body.bins()

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

    def displaced(self, body: Body, limit: int) -> float:
        """Return the bound for the record's own bin, which is drawn once."""
        assert body.training.dataset_size is not None
        rate = self.largest_rate(body) * (1.0 + truncated.ROUNDING)
        return rarely.upper_tail(body.training.dataset_size - 1, rate, limit)

    def worst(self, document: Document, body: Body) -> Worst:
        """Return the case in which the bin of a record is known."""
        turns = -(-number(body.training.iterations) // body.bins())
        words = f"the bin known: each record in {'one round' if turns == 1 else f'up to {turns} rounds'}"

        def norm() -> float:
            built, count = strategy(document, body), body.bins()
            if disjoint_modes(document, body, count):
                # The same maximum, without vectors as long as the run.
                squares = built.mode_squares(count, upper=True, each_round=each_round(body))
                return math.sqrt(max(square for square, _ in squares)) * (1.0 + built.slack)
            return built.bin_gram(count, each_round(body))[1]

        return Worst(words, norm, body.count)

    def shortest_run(self, body: Body, rounds: int) -> int:
        """Return enough rounds that every bin has had its turn."""
        return max(rounds, body.bins())

    def cut(self, body: Body, rounds: int) -> dict[str, Any]:
        """Return the number of bins, which may otherwise follow from the rate."""
        return {"bins": body.bins()}


PLAN = BallsInBinsPlan()
