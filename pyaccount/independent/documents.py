"""What a document means: from a certificate to rounds, or the reason why nothing is checked.

Only the document inside the certificate is read, with the value that was solved for, and the coefficients of matrices, which
are a part of the claim. Numbers are the decimal digits that are written.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from .derived import (
    JsonObject,
    NotCheckableError,
    RepeatedRound,
    column,
    discrete,
    exactly,
    pattern,
    rounded_root,
    schedules,
    shared_users,
    stated,
    truncated,
    values,
)
from .draws import Replaced, ZeroedOut, binomial, hypergeometric, mixed
from .kinds import Allocation, Atoms, BoundedRange, Divergence, LaplaceRound, SampledRound
from .proof import run_laws, together
from .rounds import GaussianRound, MixtureRound, Round


def _filled_in(certificate: JsonObject) -> dict[str, Any]:
    """Return the document with the value of its blank."""
    document: dict[str, Any] = copy.deepcopy(dict(certificate["document"]))
    solved = certificate.get("solved")
    if solved:
        keys = [int(key) if key.isdigit() else key for key in re.findall(r"[^.\[\]]+", solved["path"])]
        place: Any = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = solved["value"]
    return document


#: Under *zero-out* and *add-remove* a record moves a sum by 1, under *replace-one* by 2.
ADJACENCIES = ("add-remove", "zero-out", "replace-one")
#: The keys that are read, or do not matter to what is proven, of a body and of its sections.
KNOWN = {
    place: set(keys.split())
    for place, keys in {
        "": "pyaccount kind name privacy accounting workload composed_from count phases parallel select training sampler matrix "
        "noise mechanism",
        "training": "sampling_probability participation_rate dataset_size expected_batch_size iterations epochs",
        "noise": "kind multiplier also scale",
        "matrix": "kind bands normalize coefficients restart_every estimation optimize_for buffers parameters",
        "sampler": "kind truncate_to draws_per_iteration subset_size iterations_per_allocation participations bins draws phase "
        "max_participations min_separation partitions sampling_probability records_per_user attribution start",
        "mechanism": "kind epsilon delta rho xi mu sigma scale sensitivity moved step values truth_probability answers "
        "utility_sensitivity monotone noise",
    }.items()
}


def _all_known(body: JsonObject) -> None:
    for place, keys in KNOWN.items():
        here = body if not place else body.get(place) or {}
        unknown = set(here) - keys
        if unknown:
            raise NotCheckableError(
                f"no bound is implemented for the key {sorted(unknown)[0]} {place and 'in ' + place}"
            )
    # Most numbers are squared, so the sign would not matter. Coefficients of a matrix may be negative.
    negative = next(_negatives({key: value for key, value in body.items() if key != "matrix"}), None)
    if negative is not None:
        raise NotCheckableError(f"no bound is implemented for a negative number: {float(negative)!r}")


def _negatives(place: Any) -> Iterator[Fraction]:
    if isinstance(place, Mapping | list):
        for each in place.values() if isinstance(place, Mapping) else place:
            yield from _negatives(each)
    elif isinstance(place, int | Fraction) and place < 0:
        yield Fraction(place)


def _at_least_one(section: JsonObject, key: str, otherwise: int) -> int:
    """Return a whole number that must be at least 1, or what counts if the section does not have it."""
    number = exactly(otherwise if section.get(key) is None else section[key])
    if number < 1 or number.denominator != 1:
        raise NotCheckableError(f"no bound is implemented for {key} {float(number)!r}")
    return int(number)


class Reader:
    """Reads the bodies of one document."""

    def __init__(self, certificate: JsonObject, small: Fraction) -> None:
        """Take the certificate, and the mass that cutting may add to a profile."""
        self.document, self.small, self.least = _filled_in(certificate), small, small / 10**9
        privacy = self.document["privacy"]
        self.adjacency: str = privacy["adjacency"]
        self.group = int(exactly(privacy.get("group_size", 1)))
        if self.adjacency not in ADJACENCIES or self.group < 1:
            raise NotCheckableError(
                f"no bound is implemented for groups of {self.group} with the adjacency {self.adjacency!r}"
            )
        self.matrices = iter(certificate.get("phases", ()))

    def kinds(self) -> list[list[RepeatedRound]]:
        """Return what happens to each kind of record: the parts of one of them in each list."""
        phases = self.document.get("phases")
        _all_known(self.document)
        self.scale = exactly(self.document.get("noise", {}).get("scale", 1)) if phases else Fraction(1)
        chosen: list[list[list[RepeatedRound]]] = [
            self._alternatives(body) for body in (phases if phases is not None else [self.document])
        ]
        found = [together([part for parts in choice for part in parts]) for choice in product(*chosen)]
        if any(count < 1 for parts in found for _, count in parts) or not all(found):
            raise NotCheckableError("no bound is implemented for a document without rounds")
        return found

    def _alternatives(self, body: JsonObject) -> list[list[RepeatedRound]]:
        _all_known(body)
        if "parallel" not in body:
            return [self._run(body)]
        if self.adjacency == "replace-one" or self.group != 1:
            raise NotCheckableError("no bound is implemented for groups or replace-one with disjoint parts")
        count = int(exactly(body.get("count", 1)))
        return [[(part, n * count) for part, n in self._run(each)] for each in body["parallel"]]

    def _run(self, body: JsonObject) -> list[RepeatedRound]:
        """Return the parts of a body, `count` times. A key that is not known might change what is meant."""
        _all_known(body)
        count = int(exactly(body.get("count", 1)))
        if "select" in body or "parallel" in body:
            raise NotCheckableError(
                "no bound is implemented for the best of several runs, and for parts inside of a phase"
            )
        if "phases" in body:
            inner = [part for each in body["phases"] for part in self._run(each)]
            return (
                self._on_sample(body, inner, count) if "sampler" in body else [(part, n * count) for part, n in inner]
            )
        if "mechanism" in body:
            inner = list(self._mechanism(body["mechanism"]))
            next(self.matrices, None)
            return (
                self._on_sample(body, inner, count) if "sampler" in body else [(part, n * count) for part, n in inner]
            )
        return [(part, n * count) for part, n in self._training(body)]

    def _on_sample(self, body: JsonObject, inner: Sequence[RepeatedRound], count: int) -> list[RepeatedRound]:
        """Return runs on a Poisson sample (section 11)."""
        sampler, parts = body["sampler"], together(inner)
        if sampler["kind"] != "poisson" or self.group != 1:
            raise NotCheckableError(
                f"no bound is implemented for phases on a sample of kind {sampler['kind']}, or of groups"
            )
        q = self._probability({"training": sampler})
        alone = sampler.get("draws", "records") == "records" and self.adjacency != "replace-one"
        if alone and len(parts) == 1 and isinstance(parts[0][0], GaussianRound):
            return [(MixtureRound({1: q}, parts[0][0].shift), count)]
        return [(SampledRound(lambda grid: run_laws(parts, grid, self.small / count), q, alone=alone), count)]

    # ---- training

    def _probability(self, body: JsonObject) -> Fraction:
        """Return the largest stated rate; of records with different probabilities the largest (plan/own_probabilities)."""
        training = body["training"]
        rates = [exactly(training[key]) for key in ("participation_rate",) if training.get(key) is not None]
        stated = training.get("sampling_probability")
        if isinstance(stated, dict):
            stated = max(map(exactly, stated["strata"].values())) if "strata" in stated else stated["max"]
        rates += [exactly(stated)] if stated is not None else []
        if training.get("expected_batch_size") is not None and training.get("dataset_size") is not None:
            rates.append(exactly(training["expected_batch_size"]) / exactly(training["dataset_size"]))
        if not rates:
            raise NotCheckableError("the document states no rate that this checker reads")
        return max(rates)

    def _iterations(self, body: JsonObject, epoch: Fraction | None) -> int:
        training = body["training"]
        if training.get("iterations") is not None:
            return _at_least_one(training, "iterations", 1)
        if epoch is None or training.get("epochs") is None:
            raise NotCheckableError("the document states no number of rounds that this checker reads")
        rounds = exactly(training["epochs"]) * epoch
        nearest = round(rounds)
        return (
            nearest
            if nearest and abs(rounds - nearest) <= min(Fraction(1, 1000), rounds / 10**9)
            else math.ceil(rounds)
        )

    def _training(self, body: JsonObject) -> Iterator[RepeatedRound]:
        """Yield the rounds of a training run."""
        noise = body["noise"]
        claim: JsonObject = next(self.matrices, {})
        if noise.get("kind", "gaussian") == "laplace":
            if body["sampler"]["kind"] != "none" or "matrix" in body or self.scale != 1:
                raise NotCheckableError("no bound is implemented for Laplace noise with a sampler, a matrix or a scale")
            moved = self.group * (2 if self.adjacency == "replace-one" else 1)
            rounds = self._iterations(body, None)
            yield LaplaceRound(moved / exactly(noise["multiplier"])), min(rounds, self._most(body["sampler"], rounds))
            return
        also = [exactly(each["multiplier"]) for each in noise.get("also", ())]
        scheduled = schedules(body)
        if not scheduled:
            yield from self._rounds(body, claim, self._square(exactly(noise["multiplier"]) * self.scale, also), None)
            return
        rounds = self._iterations(body, None)
        kinds: dict[tuple[Fraction, ...], int] = {}
        for each_round in zip(*(values(schedule, rounds) for schedule in scheduled.values()), strict=True):
            kinds[each_round] = kinds.get(each_round, 0) + 1
        if "matrix" in body or body["sampler"]["kind"] not in ("poisson", "fixed-size", "with-replacement"):
            raise NotCheckableError("no bound is implemented for schedules with this sampler or a matrix")
        factor = exactly(noise["multiplier"].get("scale", 1)) if isinstance(noise["multiplier"], dict) else Fraction(1)
        for here_values, count in kinds.items():
            here = dict(zip(scheduled, here_values, strict=True))
            training = {key: here.get(key, value) for key, value in body["training"].items()}
            sigma = here["noise"] * factor if "noise" in here else exactly(noise["multiplier"])
            yield from self._rounds(
                {**body, "training": training}, claim, self._square(sigma * self.scale, also), count
            )

    def _square(self, sigma: Fraction, also: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """Return what one record moves the main release, and the others, in squared units of their noise (section 9.2)."""
        return 1 / sigma**2, sum((1 / each**2 for each in also), Fraction(0))

    def _rounds(
        self, body: JsonObject, claim: JsonObject, squares: tuple[Fraction, Fraction], count: int | None
    ) -> Iterator[RepeatedRound]:
        sampler, training, matrix = body["sampler"], body["training"], body.get("matrix")
        kind = sampler["kind"]
        identity = matrix is None or matrix["kind"] == "identity"
        if kind == "none":
            yield from self._unsampled(body, claim, squares, identity=identity)
            return
        one = squares[0] + squares[1]
        if kind == "cyclic-poisson" and sampler.get("phase", "fixed") == "fixed" and self.group == 1:
            yield from self._cyclic(body, claim, squares, identity=identity)
            return
        if kind == "user-b-min-sep" and sampler.get("attribution") == "shared" and self.adjacency == "zero-out":
            squared = [Fraction(1)] if matrix is None or identity else column(claim, matrix)
            if len(squared) > exactly(sampler["min_separation"]) or self.group != 1:
                raise NotCheckableError(
                    "no bound is implemented for shared users with long columns, or groups of users"
                )
            yield shared_users(sampler, self._probability(body), self._iterations(body, None), squares, squared)
            return
        if not identity:
            raise NotCheckableError(
                f"no bound is implemented for {kind} with a matrix: the loss of the run does not compose"
            )
        if kind == "poisson":
            draws = int(exactly(sampler.get("draws_per_iteration", 1)))
            p = self._probability(body)
            if draws != 1 and training.get("sampling_probability") is None:
                p /= draws
            rounds = count or self._iterations(body, 1 / (p * draws))
            if sampler.get("truncate_to") is not None:
                yield truncated(body, p, rounded_root(one), rounds)
                return
            law, lost = binomial(draws * self.group, p, self.least)
            against = {-j: weight for j, weight in law.items()} if self.adjacency == "replace-one" else None
            yield MixtureRound(law, rounded_root(one), against, lost), rounds
        elif kind in ("fixed-size", "with-replacement", "must-wo", "must-ow", "must-ww"):
            yield (
                self._fixed(kind, sampler, training, one),
                count or self._iterations(body, 1 / self._probability(body)),
            )
        else:
            yield self._allocated(kind, body, one)

    def _allocated(self, kind: str, body: JsonObject, one: Fraction) -> RepeatedRound:
        """Return rounds of which a record takes part in one at random, per allocation or in each turn (section 9.1)."""
        sampler = body["sampler"]
        plain = self.group == 1 and self.adjacency != "replace-one" and "truncate_to" not in sampler
        if kind == "random-allocation" and plain and exactly(sampler.get("participations", 1)) == 1:
            block = int(exactly(sampler["iterations_per_allocation"]))
            blocks, rest = divmod(self._iterations(body, Fraction(block)), block)
            if not rest:
                return Allocation([(one, block)], self.small / blocks), blocks
        if kind == "balls-in-bins" and plain:
            bins = exactly(sampler["bins"]) if "bins" in sampler else 1 / self._probability(body)
            if bins.denominator == 1:
                turns, more = divmod(self._iterations(body, bins), int(bins))
                shifts = [(one * (turns + 1), more), (one * turns, int(bins) - more)]
                return Allocation([each for each in shifts if each[0] and each[1]], self.small), 1
        raise NotCheckableError(f"no bound is implemented for the sampler {kind} with these options")

    def _fixed(self, kind: str, sampler: JsonObject, training: JsonObject, one: Fraction) -> Round:
        """Return the round of a sampler with a fixed number m of draws from N records (sections 1.2 and 1.3)."""
        records, drawn = int(exactly(training["dataset_size"])), int(exactly(training["expected_batch_size"]))
        step, lost = rounded_root(4 * one), Fraction(0)
        if kind == "fixed-size":
            law, lost = hypergeometric(records, drawn, self.group)
        elif kind in ("with-replacement", "must-wo"):
            law, lost = binomial(drawn, Fraction(self.group, records), self.least)
        elif self.group != 1:
            raise NotCheckableError("no bound is implemented for groups with this sampler")
        elif kind == "must-ow":
            subset = int(exactly(sampler["subset_size"]))
            inner, lost = binomial(drawn, Fraction(1, subset), self.least)
            share = Fraction(subset, records)
            law, lost = {j: weight * share for j, weight in inner.items()}, lost * share
        else:
            subset = int(exactly(sampler["subset_size"]))
            first, lost = binomial(subset, Fraction(1, records), self.least)
            inners = {i: binomial(drawn, Fraction(i, subset), self.least) for i in first}
            law = mixed(first, lambda i: inners[i][0])
            lost += sum(first[i] * inner[1] for i, inner in inners.items())
        lower = MixtureRound(law, step, None, lost)
        if self.adjacency == "add-remove" and kind not in ("must-ow", "must-ww"):
            return lower
        several = self.group > 1 or kind in ("with-replacement", "must-wo")
        replaced = Replaced(law, lost, step, lower, best=several)
        return (
            ZeroedOut(law, lost, rounded_root(one), replaced, best=several)
            if self.adjacency == "zero-out"
            else replaced
        )

    def _cyclic(
        self, body: JsonObject, claim: JsonObject, squares: tuple[Fraction, Fraction], *, identity: bool
    ) -> Iterator[RepeatedRound]:
        """Yield the rounds of the first part of the data set (section 3): columns no longer than the parts are apart."""
        squared = [Fraction(1)] if identity else column(claim, body["matrix"])
        bands, norm = len(squared), sum(squared, Fraction(0))
        parts = int(exactly(body["sampler"].get("partitions", bands) if "partitions" in body["sampler"] else bands))
        if bands > parts:
            raise NotCheckableError("no bound is implemented for more bands than parts under cyclic Poisson sampling")
        training = body["training"]
        p = exactly(training["sampling_probability"]) if training.get("sampling_probability") is not None else None
        p = self._probability(body) * parts if p is None else p
        rounds = -(-self._iterations(body, parts / p) // parts)
        against = {-1: p} if self.adjacency == "replace-one" else None
        yield MixtureRound({1: p}, rounded_root(squares[0] * norm + squares[1]), against), rounds

    def _most(self, sampler: JsonObject, rounds: int) -> int:
        """Return in how many rounds a record takes part at most."""
        most = _at_least_one(sampler, "max_participations", rounds)
        return min(rounds, most, -(-rounds // _at_least_one(sampler, "min_separation", 1)))

    def _unsampled(
        self, body: JsonObject, claim: JsonObject, squares: tuple[Fraction, Fraction], *, identity: bool
    ) -> Iterator[RepeatedRound]:
        """Yield the Gaussian mechanism with the largest ‖Σ_i C e_i‖ over allowed participations (section 3)."""
        sampler, training = body["sampler"], body["training"]
        epoch = None
        if training.get("dataset_size") is not None and training.get("expected_batch_size") is not None:
            epoch = Fraction(math.ceil(exactly(training["dataset_size"]) / exactly(training["expected_batch_size"])))
        rounds = self._iterations(body, epoch)
        apart, most = _at_least_one(sampler, "min_separation", 1), self._most(sampler, rounds)
        moved = Fraction(most) if identity else pattern(claim, body["matrix"], rounds, apart, most)
        factor = (self.group * (2 if self.adjacency == "replace-one" else 1)) ** 2
        yield GaussianRound(rounded_root(factor * (squares[0] * moved + squares[1] * most))), 1

    # ---- mechanisms

    def _mechanism(self, mechanism: JsonObject) -> Iterator[RepeatedRound]:
        """Yield what bounds one run (section 11); a group of k moves k times as far."""
        kind, k = mechanism["kind"], self.group
        given = {
            key: exactly(value)
            for key, value in mechanism.items()
            if key not in ("kind", "answers", "monotone", "noise") and value is not None
        }
        if given.get("sensitivity") == 0:
            raise NotCheckableError("no bound is implemented for a sensitivity of 0")
        size, moved = k * given.get("sensitivity", Fraction(1)), int(given.get("moved", 1))
        if kind == "gaussian":
            yield GaussianRound(rounded_root((size / given["sigma"]) ** 2)), 1
        elif kind == "laplace":
            yield LaplaceRound(size / given["scale"]), moved
        elif kind in ("discrete-laplace", "discrete-gaussian"):
            step = given.get("step", Fraction(1))
            width = (given["scale"] if "scale" in given else given["sigma"]) / step
            if k != 1 and moved != 1:
                raise NotCheckableError("no bound is implemented for groups that move several discrete numbers")
            if (size / step).denominator != 1:
                raise NotCheckableError("no bound is implemented for a sensitivity that is no whole number of steps")
            yield discrete(width, int(size / step), gaussian=kind == "discrete-gaussian"), moved
        elif kind == "randomized-response" and k == 1 and self.adjacency == "replace-one":
            p = given["truth_probability"]
            q = (1 - p) / (given["values"] - 1)
            yield Atoms([(p, q), (q, p), (1 - p - q, 1 - p - q)]), 1
        elif kind in ("exponential", "permute-and-flip", "report-noisy-max"):
            # Gumbel noise makes the exponential mechanism; other noise moves along a path (docs/mechanisms.md).
            sides = 1 if mechanism.get("monotone") and self.adjacency != "replace-one" else 2
            spread = given["epsilon"] if "epsilon" in given else sides * given["utility_sensitivity"] / given["scale"]
            selects = kind == "exponential" or mechanism.get("noise") == "gumbel"
            yield (BoundedRange if selects else LaplaceRound)(k * spread), 1
        elif kind == "stated":
            yield self._stated(mechanism, given), 1
        else:
            raise NotCheckableError(f"no bound is implemented for the mechanism {kind} with these options")

    def _stated(self, mechanism: JsonObject, given: Mapping[str, Fraction]) -> Round:
        if "mu" in given:
            return GaussianRound(rounded_root((self.group * given["mu"]) ** 2))
        if "rho" in given:
            rho, xi = self.group**2 * given["rho"], given.get("xi", Fraction(0))
            if self.group > 1 and xi:
                raise NotCheckableError("no bound is implemented for groups with xi")
            return Divergence(rho=rho, xi=xi)
        if self.group != 1 or "epsilon" not in given:
            raise NotCheckableError("no bound is implemented for this stated mechanism, or for groups with it")
        return stated(given["epsilon"], given.get("delta", Fraction(0)))
