"""b-min-sep sampling of users who may share records: a bound with public participations.

With shared records the published pair is not an upper bound: a draw of the sensitive user's record keeps records of its
other users out of later batches, so that the rest of the sum reveals the draw. A valid bound gives up the secrecy of
the draws and keeps their randomness: δ(ε) ≤ E_x G_{‖Cx‖}(e^ε), x the user's participations. Each participation counts
for the squared norm of its column and for what the column shares with other columns. Where these norm bounds differ
they are rounded up to a grid.

The lower bound uses that records may be shared, but need not be. A user who shares no record takes part by the law of a
single user, in secret. If all its contributions are alike and nobody else contributes, sums of the first rounds'
outputs reveal it (`rust/core/src/pair/summed.rs`).

Both bounds are for the same sampler, Algorithm 3: every record is drawn in every iteration, and a draw makes records
wait whether or not the drawn record takes part. For the upper bound, its participations are those of a renewal law or
fewer, round by round: with the same coins for the user's own records, that law has a user wait from the first draw on,
while here a waiting user may be kept waiting. If records were drawn only while all of their users are available,
another user could keep a user out early and so let it take part more often later; no bound on that is implemented.
"""

from __future__ import annotations

from itertools import accumulate

from pyaccount import _core
from pyaccount.document.samplers import UserBMinSep
from pyaccount.document.tree import TrainingNode
from pyaccount.document.words import Assumed
from pyaccount.errors import Problem
from pyaccount.plan.common import (
    GROUP_LEMMA,
    NO_ITERATIONS,
    NORMALISATION,
    OTHER_BLANKS,
    basic_assumptions,
    given,
    number,
    refused_groups,
    refused_samples,
    value_or_symbol,
)
from pyaccount.plan.matrices import Strategy, columns, matrix_plan, strategy
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.plan.rounds import DirectedBounds, enclosed
from pyaccount.plan.samplers.base import InPlace
from pyaccount.plan.samplers.renewal import START
from pyaccount.plan.theorem import Reduction
from pyaccount.profiles import PublicParticipationProfile, SummedOutputsProfile

#: The maximum number of values of a sum of participations if its shifts differ.
VALUES = 512

REMARK = (
    "Records are shared: a draw of the user's record keeps its other users' records out of later batches, so the other records' "
    "sum reveals it, and the amplification that comes from secrecy is given up (the pair published for this case is beaten by a "
    "concrete data set). The randomness of how often the user takes part is kept."
)
LOWER_END = (
    "two data sets: the user shares no record, contributes 1 with each that is drawn, or 0, and nobody else contributes. All "
    "rounds, in secret; of them the sums of the first m outputs are seen, m = 1, 4, 16, … and all, or as far as can be "
    "computed; the best for each ε."
)


def _sums(iterations: int, apart: int, records: int) -> list[int]:
    """Return how many of the first outputs are summed: 1, 4, 16, … and all, as far as the core can compute."""
    lengths, after = [1], min(4, iterations)
    while lengths[-1] < after and float(after) * apart * max(VALUES, records * -(-after // apart)) <= _core.MOST_WORK:
        lengths.append(after)
        after = min(4 * after, iterations)
    return lengths


def _shifts(built: Strategy, m: int, sigma: float) -> tuple[float, ...]:
    """Return what a record in each of the first m rounds adds to the sum of their outputs; rounded down.

    The unit is the standard deviation of the sum.
    """
    scale = (1.0 - built.slack) / (sigma * m**0.5)
    if built.coefficients is not None:
        # The column of round i contributes its first m − i entries.
        partial = list(accumulate(built.coefficients[:m]))
        return tuple(scale * partial[min(m - i, len(partial)) - 1] for i in range(m))
    return tuple((scale * given(built.dense)[:m, :m].sum(axis=0)).tolist())


def _norm_bounds(case: RunCase) -> list[float]:
    """Return what each round adds to ‖Cx‖² at most, at σ = 1.

    That is ‖c_i‖² of the part within the run, and Γ_i where columns overlap.
    """
    if not case.node.matrix.banded:
        return columns(case, case.node.separation() or 1).core.norm_bounds
    built = strategy(case)
    # The sums are cumulative, because the columns are cut by the end of the run: that of the last round has one entry.
    squares = list(accumulate(c * c for c in given(built.coefficients)))
    return [squares[min(built.iterations - i, len(squares)) - 1] for i in range(built.iterations)]


def unit_refusals(asked: Protection) -> list[Problem]:
    """Refuse groups of users, and phases that protect single records next to phases that protect users."""
    problems = refused_groups(
        asked,
        "the unit is a user with all records; no bound is implemented for groups of users, because their participations "
        f"interleave; {GROUP_LEMMA}",
    )
    return problems + [
        asked.refusal(
            phase.at("sampler", "kind"),
            "another phase protects users, but this one protects single records: it may draw several records of a user, "
            "which its analysis does not count; use user-b-min-sep in every phase",
            allowed="user-b-min-sep in every phase",
        )
        for phase in asked.phases
        if not phase.protects_users
    ]


def users_text(run: TrainingNode, sampler: UserBMinSep) -> Assumed:
    """Return how users' records are sampled, as an assumption."""
    b, p = run.separation() or 1, run.sampling_probability()
    most, start = f"No user has more than {sampler.records_per_user} records", sampler.start
    if sampler.attribution == "single":
        return Assumed(
            f"{most}, and no record belongs to two users. In each iteration every record whose user is available is drawn with "
            f"probability {p!r}, independently of the others; a user with a record in the batch is unavailable for the next "
            f"{b - 1} iterations; {START[start][1]}.",
            f"A user, of {sampler.records_per_user} records at most, sits out {b - 1} rounds after one joins.",
        )
    first = f"; {b - 1} such iterations without a batch go before the first" if start == "warm" else ""
    return Assumed(
        f"{most}; a record may belong to several users. In each iteration every record is drawn with probability {p!r}, "
        "independently of the others and of earlier draws; it joins the batch unless a record with one of its users was drawn in "
        f"the {b - 1} iterations before, whether that joined or not{first}.",
        f"A user, of {sampler.records_per_user} records at most, sits out {b - 1} rounds after a draw.",
    )


class SharedRecords(InPlace[UserBMinSep]):
    """Users whose records may be shared; users that share no records are analysed by sampling."""

    def words(self) -> Reduction:
        """Return the theorem for users whose records may be shared."""
        sigma = value_or_symbol(self.node.noise.multiplier, "σ")
        return Reduction(
            path=self.node.path,
            subject=f"b-min-sep sampling of users that share records, {matrix_plan(self).text()}",
            theorem="the Gaussian mechanism with a random sensitivity: public participations",
            source=(
                "joint convexity over the draws, whose law does not depend on the user's contributions; a user takes part at "
                "most as often as alone and available at once (Dong & Ganesh 2026, arXiv:2602.09338, Algorithm 3)"
            ),
            pair=(
                f"E_S G(√S/{sigma}), S the sum over the draws of the squared number of records drawn at once times "
                + ("‖c_i‖²" if self.node.matrix.banded else "‖c_i‖² + Γ_i, Γ_i what column i shares with others")
            ),
            rounds=str(self.node.count),
            tight=False,
            remark=REMARK,
            assumed=(
                *basic_assumptions(self.asked.privacy, self.node),
                users_text(self.node, self.sampler),
                NORMALISATION,
            ),
            lower_end=LOWER_END,
        )

    def refusals(self) -> list[Problem]:
        """Refuse what the bound for shared records does not cover."""
        problems = []
        if self.sampler.waits_after == "participation":
            problems.append(
                self.asked.refusal(
                    self.node.at("sampler", "waits_after"),
                    "if only participations make shared records wait, other users can keep a user out early and so let it take "
                    "part more often later than it would alone; no bound on how often is implemented (Dong & Ganesh 2026, "
                    "Algorithm 4); use waits_after: draw (Algorithm 3), for which there is a bound",
                    allowed="draw",
                )
            )
        if self.asked.privacy.adjacency != "zero-out":
            problems.append(
                self.asked.refusal(
                    ("privacy", "adjacency"),
                    "a user who is added, removed or replaced changes when other users with shared records are available; with "
                    "shared records a bound is implemented only for contributions that are set to zero (zero-out)",
                    allowed="zero-out",
                )
            )
        problems += unit_refusals(self.asked)
        if self.node.training.iterations == "solve":
            path = self.node.at("training", "iterations")
            problems.append(self.asked.refusal(path, NO_ITERATIONS, allowed=OTHER_BLANKS))
        elif self._work() > _core.MOST_WORK:
            message = "the computation is too long for this many iterations and records of a user"
            path = self.node.at("training", "iterations")
            problems.append(self.asked.refusal(path, message, allowed="fewer iterations or records_per_user"))
        return [*problems, *refused_samples(self.asked, "with shared records the bound is composed, not sampled")]

    def bounds(self) -> DirectedBounds:
        """Return the upper bound, for a user whose draws are known, and the lower bound, from sums of secret draws."""
        built = strategy(self)
        b, p, k = self.node.separation() or 1, self.node.sampling_probability(), self.sampler.records_per_user
        sigma = number(self.node.noise.multiplier)
        # If records of other users interfere, a user waits less often than alone, so the stationary law of a single user does not
        # apply to the start; being available at once is the worst self.
        norm_bounds = tuple(bound * (1.0 + built.slack) / (sigma * sigma) for bound in _norm_bounds(self))
        upper = PublicParticipationProfile(norm_bounds, b, p, k, warm=False)
        shifts = tuple(_shifts(built, m, sigma) for m in _sums(built.iterations, b, k))
        warm = self.sampler.start == "warm"
        remove, add = (SummedOutputsProfile(shifts, b, p, k, reverse, warm) for reverse in (False, True))
        return enclosed((upper, upper), (remove, add), self.node.count)

    def _work(self) -> float:
        """Return the number of additions that the law of S takes, as the core counts them."""
        n, b, k = number(self.node.training.iterations), self.node.separation() or 1, self.sampler.records_per_user
        return float(n) * (k * k * -(-n // b) + 1) * k
