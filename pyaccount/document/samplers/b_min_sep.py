"""b-min-sep sampling of records and of users in documents: after a round, a record or user waits b − 1 rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from pyaccount.document.ranges import RECORDS_PER_USER
from pyaccount.document.samplers.spaced import CHOSEN, MinSeparation, Spaced, SpacedByRate
from pyaccount.document.stated import StatedBody, number_or_none
from pyaccount.errors import Path, Problem, problem
from pyaccount.reading.fields import Choice, Number
from pyaccount.reading.kinds import AlsoCalled, Asked

Start = Annotated[Literal["warm", "cold"], Choice(("warm", "cold")), AlsoCalled("warm_start")]
_START = "Whether the sampler is in its stationary state in the first round (warm), or every record is available then (cold)."


class BMinSep(SpacedByRate):
    """b-min-sep sampling: an available record joins a round with the sampling probability p. After it took part, it is
    unavailable for the next b − 1 rounds.

    The sampling probability is that of an available record. The participation rate, that is, the long-run share of rounds in
    which a record takes part, is 1/(b − 1 + 1/p); it is at most 1/b.
    """

    aliases = "bminsep min-sep b-minsep b-min-separation"
    drawn = "for an available record"

    kind: Literal["b-min-sep"] = Field(
        description="Each record joins at random, but not until b rounds after its last participation."
    )
    min_separation: MinSeparation = Field(
        default=None,
        description="The minimum distance b between two participations of a record, in rounds. Default: the number "
        f"of bands of the matrix.{CHOSEN}",
    )
    start: Start = Field(default="warm", description=_START)

    def spacing_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report also a missing separation if the matrix is not banded, since then there is no default."""
        yield from super().spacing_problems(body)
        if self.min_separation is None and not body.matrix.banded:
            message = f"a {body.matrix.kind} matrix has no number of bands that could be the separation: give it"
            yield problem("missing-key", body.at("sampler", "min_separation"), message)

    def between_chances(self, body: StatedBody, chances: Fraction) -> Fraction | None:
        """Return b − 1 + 1/p: the rounds in which a record is unavailable, and those in which it may be drawn."""
        b = self.separation(body)
        return None if b is None else b - 1 + chances

    def rate_at(self, probability: float, separation: int) -> float:
        """Return p₀ = 1/(b − 1 + 1/p): b − 1 rounds of waiting, then 1/p rounds on average until the next draw."""
        return 1.0 / (separation - 1.0 + 1.0 / probability)

    def probability_at(self, rate: float, separation: int) -> float:
        """Return p = p₀/(1 − p₀(b − 1)), the rate among the rounds in which a record is available; inf without any."""
        free = 1.0 - rate * (separation - 1)
        return rate / free if free > 0.0 else math.inf

    def one_round(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return that a record is drawn with a probability, if it need not wait."""
        apart = self.separation(body) == 1 and self.truncation(body) is None
        return {"kind": "poisson", "draws": "1", "probability": probability} if apart else None

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any]:
        """Return how likely a free record joins, and how long it waits then."""
        limit = self.truncation(body)
        form = {
            "kind": "spaced",
            "probability": probability,
            "separation": str(self.separation(body)),
            "start": self.start,
        }
        if limit is None:
            return form
        return form | {"kind": "truncated-spaced", "records": str(body.training.dataset_size), "size": str(limit)}


_ATTRIBUTIONS = {"single": "each record belongs to one user", "shared": "a record may belong to several users"}


class UserBMinSep(Spaced):
    """b-min-sep sampling of users: each available record is drawn with the sampling probability. After a round in which a
    record of a user was drawn, all records of this user are unavailable for the next b − 1 rounds. If records are shared
    between users, unavailable records may be drawn too, but are left out of the batch.

    The sampling probability is that of one record. A user is protected, with at most `records_per_user` records.
    """

    aliases = "user-bminsep user-level-b-min-sep user-min-sep"
    drawn = "for each record"
    common_rate = False
    # The rate depends on how many records a user has, and on who shares them.
    rate_follows = False
    asked_rate = "sampling_probability"
    protects_users = True

    kind: Literal["user-b-min-sep"] = Field(
        description="b-min-sep sampling in which all records of a user wait together."
    )
    records_per_user: Annotated[
        int,
        Number(RECORDS_PER_USER, whole=True),
        Asked("Maximum number of records of one user", trial="2", first=True, metavar="K"),
        AlsoCalled("max_examples_per_user max_records_per_user k_u"),
    ] = Field(description="The maximum number k of records of one user.")
    attribution: Annotated[
        Literal["single", "shared"],
        Choice(("single", "shared")),
        Asked(
            "Whether each record belongs to one user or to several",
            trial="single",
            words=_ATTRIBUTIONS,
            first=True,
            metavar="WORD",
        ),
    ] = Field(
        description="Whether each record belongs to a single user (single), or may belong to several users (shared)."
    )
    min_separation: MinSeparation = Field(
        default=None,
        description="The minimum distance b between two participations of a user's records, in rounds. Default: the "
        f"number of bands of the matrix.{CHOSEN}",
    )
    start: Start = Field(default="warm", description=_START)
    waits_after: Annotated[Literal["draw", "participation"], Choice(("draw", "participation"))] = Field(
        default="draw",
        description="What makes the records of a user wait: that one of them was drawn (draw), or that one of them "
        "took part (participation). This differs only if records are shared: then a record that was drawn may be "
        "left out because of another of its users.",
    )

    def participation_rate(self, body: StatedBody) -> float:
        """Raise `ValueError`: users have no common participation rate."""
        raise ValueError("users with different numbers of records have no common participation rate")

    def sampling_probability(self, body: StatedBody) -> float:
        """Return the probability that one record is drawn while its users are available."""
        stated = number_or_none(body.training.sampling_probability)
        assert stated is not None  # the document's rules require it
        return stated

    def user_probability(self, body: StatedBody) -> float:
        """Return the probability that at least one of a user's k records is drawn: 1 − (1 − p)^k."""
        p, k = self.sampling_probability(body), self.records_per_user
        return 1.0 if p >= 1.0 else -math.expm1(k * math.log1p(-p))

    def batch_share(self, body: StatedBody) -> float:
        """Return the average share of the records in a batch if every user has k records: p/(P(b − 1) + 1).

        P = 1 − (1 − p)^k is the probability that an available user is drawn, so 1/(P(b − 1) + 1) is its availability.
        """
        drawn, apart = self.user_probability(body), self.separation(body)
        assert apart is not None  # choices are made before anything is compared
        return self.sampling_probability(body) / (drawn * (apart - 1.0) + 1.0)

    def for_users(self, records: int, *, shared: bool) -> dict[Path, object]:
        """Return the values of `records_per_user` and `attribution`, by path."""
        return {("sampler", "records_per_user"): records, ("sampler", "attribution"): "shared" if shared else "single"}

    def rate_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report a missing sampling probability, and batch sizes and rates, which do not determine it."""
        if body.training.sampling_probability is None:
            message = (
                "user-b-min-sep sampling needs sampling_probability: that of one record, while its users are available"
            )
            yield problem("missing-key", body.at("training", "sampling_probability"), message)
        for field in ("expected_batch_size", "participation_rate"):
            if getattr(body.training, field) is not None:
                message = (
                    "users have different numbers of records, so this does not say with which probability one is drawn"
                )
                path = body.at("training", field)
                yield problem("contradiction", path, message, allowed="sampling_probability instead")

    def epoch(self, body: StatedBody) -> Fraction | None:
        """Return None, because users have different numbers of records."""
        return None

    def epoch_problems(self, body: StatedBody) -> Iterator[Problem]:
        """Report stated epochs, because users have no common epoch."""
        message = "users have different numbers of records, so there is no common epoch: give iterations instead"
        path = body.at("training", "epochs")
        yield problem("contradiction", path, message, allowed="iterations instead")

    def pattern(self, body: StatedBody, probability: Any) -> dict[str, Any] | None:
        """Return the users; None for truncated batches, and if only participations make records wait."""
        if self.truncation(body) is not None or self.waits_after == "participation":
            return None
        return {
            "kind": "users",
            "attribution": self.attribution,
            "probability": probability,
            "records": str(self.records_per_user),
            "separation": str(self.separation(body)),
            "start": self.start,
        }
