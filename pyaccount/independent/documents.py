"""What a document means: from a certificate to rounds, or the reason why nothing is checked.

Only the document inside the certificate is read, with the value that was solved for, and the coefficients of matrices, which
are a part of the claim. Numbers are the decimal digits that are written.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

from . import derived
from .correlated import Correlated, SecretPatterns
from .derived import SERIES, RepeatedRound, column, rounded_root, rounds_of
from .draws import DisplacingDraws, binomial, hypergeometric, mixed
from .kinds import Allocation, Atoms, BoundedRange, Divergence, Guarantees, LaplaceRound, SampledRound
from .proof import run_laws, together
from .rounds import GaussianRound, MixtureRound, Round
from .selection import SelectedRound
from .separated import b_min_sep
from .shapes import NO_NUMBERS, JsonObject, agreed, allowed, at_least_one, exactly, filled_in, refused


def _shows_draws(body: JsonObject) -> bool:
    """Return whether a run may show that a record was drawn which is set to zero: by an answer, or by displacing another one."""
    sampler, mechanism = body.get("sampler", {}), body.get("mechanism", {})
    displaced = sampler.get("kind", "none") not in ("none", "poisson") or "truncate_to" in sampler
    reports = mechanism.get("kind") == "randomized-response" and mechanism.get("answers") != "once"
    return displaced or reports or any(map(_shows_draws, body.get("phases", ())))


def _trains(body: JsonObject) -> bool:
    return "training" in body or any(map(_trains, (*body.get("phases", ()), *body.get("parallel", ()))))


def _rates(training: JsonObject) -> list[Fraction]:
    """Return the participation rates that a document states."""
    rates = [exactly(training["participation_rate"])] if "participation_rate" in training else []
    if "expected_batch_size" in training and "dataset_size" in training:
        rates.append(exactly(training["expected_batch_size"]) / exactly(training["dataset_size"]))
    return rates


#: Samplers of which a record takes part in rounds that are so far apart, by the key of the distance.
SEPARATED = {"b-min-sep": "min_separation", "balls-in-bins": "bins", "cyclic-poisson": "partitions"}
SEPARATED["user-b-min-sep"] = SEPARATED["b-min-sep"]


class Reader:
    """Reads the bodies of one document."""

    def __init__(self, certificate: JsonObject, small: Fraction) -> None:
        """Take the certificate, and the mass that cutting may add to a profile."""
        self.document, self.small, self.least = filled_in(certificate), small, small / 10**9
        privacy = self.document["privacy"]
        self.adjacency: str = privacy["adjacency"]
        self.group = at_least_one(privacy, "group_size", 1)
        # Under *zero-out* and *add-remove* a record moves a sum by 1, under *replace-one* by 2.
        self.moves = self.group * (2 if self.adjacency == "replace-one" else 1)
        self.claims: Sequence[JsonObject] = certificate.get("phases", ())
        self.claim: JsonObject = {}
        self.scale = Fraction(1)
        moment = ((certificate.get("evidence") or {}).get("sampling") or {}).get("moment") or {}
        self.polynomial = [exactly(each) for each in (moment.get("polynomial") or {}).get("coefficients", ())][:26]

    def kinds(self) -> list[list[RepeatedRound]]:
        """Return what happens to each kind of record: the parts of one of them in each list."""
        bodies = self.document.get("phases", [self.document])
        if "phases" in self.document and "noise" in self.document:
            self.scale = exactly(self.document["noise"]["scale"])
            if not any(map(_trains, bodies)):
                raise refused("a factor of noise that multiplies nothing")
        chosen: list[list[list[RepeatedRound]]] = []
        for i, body in enumerate(bodies):
            self.claim = self.claims[i] if "training" in body and i < len(self.claims) else {}
            chosen.append(self._alternatives(body))
        if math.prod(map(len, chosen)) > 1000:
            raise refused("more than 1,000 combinations of parts")
        return [together([part for parts in choice for part in parts]) for choice in product(*chosen)]

    def _alternatives(self, body: JsonObject) -> list[list[RepeatedRound]]:
        if "parallel" not in body:
            return [self._run(body)]
        if self.adjacency == "replace-one" or self.group != 1:
            raise refused("groups or replace-one with disjoint parts")
        count = at_least_one(body, "count", 1)
        return [[(part, n * count) for part, n in self._run(each)] for each in body["parallel"]]

    def _run(self, body: JsonObject) -> list[RepeatedRound]:
        """Return the parts of a body, `count` times."""
        if "training" in body:
            found = list(self._training(body))
        elif "mechanism" in body:
            found = list(self._mechanism(body["mechanism"]))
        else:
            found = [part for each in body["phases"] for part in self._run(each)]
        count = at_least_one(body, "count", 1)
        if "select" in body:
            inner, kind = together(found), body["select"]["kind"]
            law = {key: exactly(value) for key, value in body["select"].items() if key != "kind"}
            return [(SelectedRound(lambda grid: run_laws(inner, grid, self.small / count), kind, law), count)]
        if "sampler" in body and "training" not in body:
            return [(self._on_sample(body, together(found), count), count)]
        return [(part, n * count) for part, n in found]

    def _on_sample(self, body: JsonObject, parts: Sequence[RepeatedRound], count: int) -> Round:
        """Return a run on a Poisson sample (section 11)."""
        sampler = body["sampler"]
        if self.group != 1:
            raise refused("groups with phases on a sample")
        q = self._probability(sampler)
        alone = sampler.get("draws", "records") == "records" and self.adjacency != "replace-one"
        if alone and self.adjacency == "zero-out" and _shows_draws(body):
            raise refused("runs that show which records of a sample were drawn")
        if alone and len(parts) == 1 and isinstance(parts[0][0], GaussianRound):
            return MixtureRound({1: q}, parts[0][0].shift)
        return SampledRound(lambda grid: run_laws(parts, grid, self.small / count), q, alone=alone)

    # ---- training

    def _probability(self, training: JsonObject, factor: Fraction = Fraction(1)) -> Fraction:
        """Return the probability that is stated, or a rate times a factor; the largest of different ones."""
        stated, rates = training.get("sampling_probability"), _rates(training)
        if isinstance(stated, Mapping):
            if rates or "epochs" in training:
                raise refused("a common rate beside different probabilities")
            return max(map(exactly, stated["strata"].values() if "strata" in stated else [stated["max"]]))
        found = [rate * factor for rate in rates] + ([exactly(stated)] if stated is not None else [])
        if not found or max(found) > 1:
            raise refused("a document without a rate that this checker reads, or with one above 1")
        return agreed(found)

    def _iterations(self, body: JsonObject, epoch: Fraction | None) -> int:
        return rounds_of(body["training"], epoch)

    def _training(self, body: JsonObject) -> Iterator[RepeatedRound]:
        """Yield the rounds of a training run."""
        noise = body["noise"]
        if noise.get("kind", "gaussian") == "laplace":
            if body["sampler"]["kind"] != "none" or "matrix" in body or self.scale != 1:
                raise refused("Laplace noise with a sampler, a matrix or a scale")
            rounds = self._iterations(body, self._epoch(body))
            yield LaplaceRound(self.moves / exactly(noise["multiplier"])), self._most(body["sampler"], rounds)
            return
        also = sum((1 / exactly(each["multiplier"]) ** 2 for each in noise.get("also", ())), Fraction(0))
        scheduled = derived.schedules(body)
        if not scheduled:
            # What one record moves the main release, and the others, in squared units of their noise (section 9.2).
            yield from self._rounds(body, 1 / (exactly(noise["multiplier"]) * self.scale) ** 2, also, None)
            return
        rounds = self._iterations(body, None)
        kinds = Counter(zip(*(derived.values(schedule, rounds) for schedule in scheduled.values()), strict=True))
        if "matrix" in body or body["sampler"]["kind"] not in ("poisson", "fixed-size", "with-replacement"):
            raise refused("schedules with this sampler or a matrix")
        given = {"sampling_probability", "participation_rate", "expected_batch_size"} & body["training"].keys()
        if given & scheduled.keys() and len(given) > 1:
            raise refused("a rate beside a schedule of rates")
        factor = exactly(scheduled["noise"].get("scale", 1)) if "noise" in scheduled else Fraction(1)
        for here_values, count in kinds.items():
            here = dict(zip(scheduled, here_values, strict=True))
            for key, value in here.items():
                allowed(value, "multiplier" if key == "noise" else key, "schedule")
            training = {key: here.get(key, value) for key, value in body["training"].items()}
            sigma = here["noise"] * factor if "noise" in here else exactly(noise["multiplier"])
            yield from self._rounds({**body, "training": training}, 1 / (sigma * self.scale) ** 2, also, count)

    def _rounds(self, body: JsonObject, main: Fraction, also: Fraction, count: int | None) -> Iterator[RepeatedRound]:
        """Yield rounds; the main release moves by `main`, squared, times the columns of the matrix, and the others by `also`."""
        sampler, training, matrix = body["sampler"], body["training"], body.get("matrix")
        kind = sampler["kind"]
        if kind == "none":
            yield self._unsampled(body, main, also), 1
        elif kind in SEPARATED:
            yield from self._separated(kind, body, main, also)
        elif matrix is not None and matrix["kind"] != "identity":
            raise refused(f"{kind} with a matrix: the loss of the run does not compose")
        elif kind == "poisson":
            draws = at_least_one(sampler, "draws_per_iteration", 1)
            p = self._probability(training, Fraction(1, draws))
            rounds = count or self._iterations(body, 1 / (p * draws))
            if draws * self.group > 20_000:
                raise refused("so many draws of a group in one round")
            shift = rounded_root(main + also)
            if "truncate_to" in sampler:
                if self.adjacency != "zero-out" or self.group != 1 or draws != 1:
                    raise refused("truncated batches but of one zeroed-out record")
                yield derived.truncated(body, p, shift, rounds)
                return
            law, lost = binomial(draws * self.group, p, self.least)
            against = {-j: weight for j, weight in law.items()} if self.adjacency == "replace-one" else None
            yield MixtureRound(law, shift, against, lost), rounds
        elif kind in ("fixed-size", "with-replacement", "must-wo", "must-ow", "must-ww"):
            rounds = count or self._iterations(body, 1 / self._probability(training))
            yield self._fixed(kind, sampler, training, main + also), rounds
        else:
            yield self._allocated(kind, body, main + also)

    def _separated(self, kind: str, body: JsonObject, main: Fraction, also: Fraction) -> Iterator[RepeatedRound]:
        """Yield what bounds runs in which the rounds of a record are some distance apart."""
        sampler, matrix = body["sampler"], body.get("matrix")
        if kind == "cyclic-poisson" and sampler.get("phase", "fixed") == "fixed" and self.group == 1:
            yield from self._cyclic(body, main, also)
        elif kind == "b-min-sep" and self.group == 1 and self.adjacency != "replace-one":
            yield self._spaced(body, main, also), 1
        elif "truncate_to" in sampler:
            raise refused("truncated batches with this sampler or adjacency, or for groups")
        elif kind == "user-b-min-sep" and sampler.get("attribution", "shared") == "shared":
            if self.adjacency != "zero-out" or self.group != 1:
                raise refused("users who share records with this adjacency, or groups of them")
            rounds = self._iterations(body, None)
            entries, norm = column(matrix, self.claim, rounds)
            if len(entries) > exactly(sampler["min_separation"]):
                raise refused("shared users with long columns")
            turns, records = -(-rounds // int(exactly(sampler["min_separation"]))), exactly(sampler["records_per_user"])
            if rounds * turns * records**3 > 1_000_000:
                raise refused("users who share so many records in so many rounds")
            squared = [each**2 / norm for each in entries]
            yield derived.shared_users(sampler, self._probability(body["training"]), rounds, (main, also), squared)
        elif kind == "balls-in-bins" and (matrix is None or matrix["kind"] == "identity"):
            yield self._allocated(kind, body, main + also)
        else:
            yield self._public(body, main, also), 1

    def _public(self, body: JsonObject, main: Fraction, also: Fraction) -> SecretPatterns:
        """Return a run in which records take part in rounds that are b apart or more: what it moves if that is public."""
        sampler, matrix, key = body["sampler"], body.get("matrix"), SEPARATED[body["sampler"]["kind"]]
        rounds = self._iterations(body, None)
        entries, norm = column(matrix, self.claim, rounds)
        given = sampler.get(key)
        if given is None:
            if matrix is not None and matrix["kind"] in SERIES:
                raise refused(f"a sampler without {key} and a matrix without bands")
            given = self._bins(body) if key == "bins" else len(entries)
        apart = round(given := exactly(given))
        if apart < 1 or abs(given - apart) > given / 10**9 or (key == "bins" and apart > rounds):
            raise refused(f"{key} {float(given)!r}")
        factor = given if key == "partitions" else Fraction(1)
        # The rate does not matter here, but without one that is possible this is no document. Bins need none.
        if (key != "bins" and self._probability(body["training"], factor) > 1) or any(
            rate * apart > 1 for rate in _rates(body["training"])
        ):
            raise refused(f"a participation rate above 1/{apart}")
        if len(entries) > apart and (matrix is None or matrix["kind"] not in SERIES):
            raise refused(f"{len(entries)} bands of records that are {apart} rounds apart")
        most = -(-rounds // apart)
        moved = main * derived.pattern(entries, rounds, apart, most) / norm + also * most
        return SecretPatterns((self.moves * at_least_one(sampler, "records_per_user", 1)) ** 2 * moved)

    def _spaced(self, body: JsonObject, main: Fraction, also: Fraction) -> Correlated:
        """Return a run of b-min-sep sampling, with the polynomial that the certificate proposes."""
        training = body["training"]
        p = exactly(training["sampling_probability"]) if training.get("sampling_probability") is not None else None
        rates = _rates(training)
        if p is None and not rates:
            raise refused("a document without a rate that this checker reads")
        rate = agreed(rates) if rates else None
        if "truncate_to" in body["sampler"] and self.adjacency != "zero-out":
            raise refused("truncated batches but under zero-out")
        run = b_min_sep(body, self.claim, (main, also), (p, rate), lambda epoch: self._iterations(body, epoch))
        run.polynomial = self.polynomial
        return run

    def _allocated(self, kind: str, body: JsonObject, one: Fraction) -> RepeatedRound:
        """Return rounds of which a record takes part in one at random, per allocation or in each turn (section 9.1)."""
        sampler = body["sampler"]
        plain = self.group == 1 and self.adjacency != "replace-one"
        if kind == "random-allocation" and plain and at_least_one(sampler, "participations", 1) == 1:
            block = at_least_one(sampler, "iterations_per_allocation", 0)
            agreed([Fraction(1, block), *_rates(body["training"])])
            blocks, rest = divmod(self._iterations(body, Fraction(block)), block)
            if not rest:
                return Allocation([(one, block)], self.small / blocks), blocks
        if kind == "balls-in-bins" and plain:
            bins = self._bins(body)
            if bins.denominator == 1:
                turns, more = divmod(self._iterations(body, bins), int(bins))
                if not turns:
                    raise refused("more bins than rounds")
                shifts = [(one * (turns + 1), more), (one * turns, int(bins) - more)]
                return Allocation([each for each in shifts if each[0] and each[1]], self.small), 1
        raise refused(f"the sampler {kind} with these options")

    def _bins(self, body: JsonObject) -> Fraction:
        """Return the number of bins, which is stated or 1 over the rate."""
        rates = _rates(body["training"])
        if "bins" not in body["sampler"]:
            return 1 / self._probability(body["training"])
        bins = exactly(body["sampler"]["bins"])
        agreed([1 / bins, *rates])
        return bins

    def _fixed(self, kind: str, sampler: JsonObject, training: JsonObject, one: Fraction) -> Round:
        """Return the round of a sampler with a fixed number m of draws from N records (sections 1.2 and 1.3)."""
        records = at_least_one(training, "dataset_size", 0)
        drawn = at_least_one(training, "expected_batch_size", 0)
        if drawn > 50_000 or drawn > records or (self.adjacency == "add-remove" and drawn > records - self.group):
            raise refused("batches of more than 50,000 records, or that the data set cannot fill")
        if kind == "fixed-size":
            law, lost = hypergeometric(records, drawn, self.group), Fraction(0)
        elif kind in ("with-replacement", "must-wo"):
            if kind == "must-wo" and drawn > at_least_one(sampler, "subset_size", 0):
                raise refused("batches that are larger than the subset")
            law, lost = binomial(drawn, Fraction(self.group, records), self.least)
        elif self.group != 1:
            raise refused("groups with this sampler")
        elif kind == "must-ow":
            subset = at_least_one(sampler, "subset_size", 0)
            if subset > records:
                raise refused("a subset that is larger than the data set")
            inner, lost = binomial(drawn, Fraction(1, subset), self.least)
            share = Fraction(subset, records)
            law, lost = {j: weight * share for j, weight in inner.items()}, lost * share
        else:
            subset = at_least_one(sampler, "subset_size", 0)
            first, lost = binomial(subset, Fraction(1, records), self.least)
            inners = {i: binomial(drawn, Fraction(i, subset), self.least) for i in first}
            law = mixed(first, lambda i: inners[i][0])
            lost += sum(first[i] * inner[1] for i, inner in inners.items())
        two_stages = kind in ("must-ow", "must-ww")
        if self.adjacency == "add-remove" and not two_stages:
            return MixtureRound(law, rounded_root(4 * one), None, lost)
        zeroed, common = self.adjacency == "zero-out", not two_stages and len(law) > 1
        return DisplacingDraws(law, lost, rounded_root(one), zeroed=zeroed, common=common)

    def _cyclic(self, body: JsonObject, main: Fraction, also: Fraction) -> Iterator[RepeatedRound]:
        """Yield the rounds of the first part of the data set (section 3): columns no longer than the parts are apart.

        A record of the first part has the longest columns, of which only the last may be cut off by the end of the run.
        """
        training, sampler, matrix = body["training"], body["sampler"], body.get("matrix")
        entries, norm = column(matrix, self.claim, 20_000)
        if len(entries) == 20_000:
            raise refused("cyclic Poisson sampling with columns as long as this")
        parts = at_least_one(sampler, "partitions", len(entries))
        if len(entries) > parts:
            raise refused("more bands than parts under cyclic Poisson sampling")
        p = self._probability(training, Fraction(parts))
        iterations = self._iterations(body, parts / p)
        if len(entries) > iterations:
            raise refused("more bands than rounds")
        rounds = -(-iterations // parts)
        against = {-1: p} if self.adjacency == "replace-one" else None
        for count, rows in ((rounds - 1, parts), (1, iterations - (rounds - 1) * parts)):
            square = main * sum((each**2 for each in entries[:rows]), Fraction(0)) / norm + also
            if count:
                yield MixtureRound({1: p}, rounded_root(square), against), count

    def _most(self, sampler: JsonObject, rounds: int) -> int:
        """Return in how many rounds a record takes part at most."""
        most = at_least_one(sampler, "max_participations", rounds)
        if most > rounds:
            raise refused("more participations than rounds")
        return min(rounds, most, -(-rounds // at_least_one(sampler, "min_separation", 1)))

    def _epoch(self, body: JsonObject) -> Fraction | None:
        """Return how many batches have all records, if the document says it."""
        records, batch = (body["training"].get(key) for key in ("dataset_size", "expected_batch_size"))
        if records is None or batch is None:
            return None
        if exactly(batch) > exactly(records):
            raise refused("a batch that is larger than the data set")
        return Fraction(math.ceil(exactly(records) / exactly(batch)))

    def _unsampled(self, body: JsonObject, main: Fraction, also: Fraction) -> Round:
        """Return the Gaussian mechanism with the largest ‖Σ_i C e_i‖ over allowed participations (section 3)."""
        sampler, matrix = body["sampler"], body.get("matrix")
        rounds = self._iterations(body, self._epoch(body))
        apart, most = at_least_one(sampler, "min_separation", 1), self._most(sampler, rounds)
        if matrix is not None and matrix["kind"] == "tree":
            moved = derived.tree(matrix, rounds, apart, most)
        else:
            entries, norm = column(matrix, self.claim, rounds)
            moved = derived.pattern(entries, rounds, apart, most) / norm
        return GaussianRound(rounded_root(self.moves**2 * (main * moved + also * most)))

    # ---- mechanisms

    def _mechanism(self, mechanism: JsonObject) -> Iterator[RepeatedRound]:
        """Yield what bounds one run (section 11); a group of k moves k times as far."""
        kind, k = mechanism["kind"], self.group
        given = {key: exactly(value) for key, value in mechanism.items() if key not in NO_NUMBERS}
        size, moved = k * given.get("sensitivity", Fraction(1)), int(given.get("moved", 1))
        if kind == "gaussian":
            yield GaussianRound(rounded_root((size / given["sigma"]) ** 2)), 1
        elif kind == "laplace":
            yield LaplaceRound(size / given["scale"]), moved
        elif kind in ("discrete-laplace", "discrete-gaussian"):
            step = given.get("step", Fraction(1))
            width = (given["scale"] if "scale" in given else given["sigma"]) / step
            if k != 1 and moved != 1:
                raise refused("groups that move several discrete numbers")
            if (size / k / step).denominator != 1:
                raise refused("a sensitivity that is no whole number of steps")
            yield (
                (derived.discrete_laplace if "scale" in given else derived.discrete_gaussian)(width, int(size / step)),
                moved,
            )
        elif kind == "randomized-response":
            yield self._randomized(mechanism, given), 1
        elif kind == "mixture-of-gaussians" and k == 1 and self.adjacency != "replace-one":
            yield self._mixture(mechanism, given["sigma"]), 1
        elif kind in ("exponential", "permute-and-flip", "report-noisy-max"):
            # Gumbel noise makes the exponential mechanism; other noise moves along a path (docs/mechanisms.md).
            sides = 1 if mechanism.get("monotone") and self.adjacency != "replace-one" else 2
            spread = given["epsilon"] if "epsilon" in given else sides * given["utility_sensitivity"] / given["scale"]
            if not Fraction(1, 10**6) <= spread <= 500:
                raise refused("a selection whose losses are in such a range")
            exponential = kind == "exponential" or (kind == "report-noisy-max" and mechanism["noise"] == "gumbel")
            yield BoundedRange(k * spread) if exponential else LaplaceRound(k * spread, attained=False), 1
        elif kind == "stated":
            yield self._stated(mechanism, given), 1
        else:
            raise refused(f"the mechanism {kind} with these options")

    def _randomized(self, mechanism: JsonObject, given: Mapping[str, Fraction]) -> Round:
        """Return randomized response: p for the true value, q for each other one; an empty record may answer uniformly."""
        p, rest = given["truth_probability"], given["values"] - 1
        q, empty = (1 - p) / rest, mechanism.get("empty_record", "one-of-the-values")
        if mechanism.get("answers", "each-record") == "each-record":
            if self.group != 1 or self.adjacency == "add-remove":
                raise refused("reports of groups, or of records that may be absent")
            if self.adjacency == "zero-out" and empty == "uniform":
                return Atoms([(p, 1 / given["values"]), (1 - p, rest / given["values"])])
        if "empty_record" in mechanism and empty == "uniform":
            raise refused("empty_record where no record is set to zero, or answers for itself")
        return Atoms([(p, q), (q, p), (1 - p - q, 1 - p - q)])

    def _mixture(self, mechanism: JsonObject, sigma: Fraction) -> Round:
        """Return Σ p_j N(s_j) against N(0), with the s_j as multiples of one of them (section 11)."""
        sizes, chances = ([exactly(each) for each in mechanism[key]] for key in ("sensitivities", "probabilities"))
        unit, total = math.lcm(*(each.denominator for each in sizes)), sum(chances, Fraction(0))
        if abs(total - 1) > Fraction(1, 10**9) or max(sizes) * unit > 10**9 or not any(sizes):
            raise refused("these sensitivities and probabilities")
        law: dict[int, Fraction] = {}
        for size, chance in zip(sizes, chances, strict=True):
            law[int(size * unit)] = law.get(int(size * unit), Fraction(0)) + chance / total
        law.pop(0, None)
        return MixtureRound(law, rounded_root(1 / (sigma * unit) ** 2))

    def _stated(self, mechanism: JsonObject, given: Mapping[str, Fraction]) -> Round:
        if "mu" in given:
            return GaussianRound(rounded_root((self.group * given["mu"]) ** 2))
        if "rho" in given:
            rho, xi = self.group**2 * given["rho"], given.get("xi", Fraction(0))
            if self.group > 1 and xi:
                raise refused("groups with xi")
            return Divergence(rho=rho, xi=xi)
        if self.group != 1:
            raise refused("groups with this stated mechanism")
        if "renyi" in mechanism:
            table = {exactly(each["order"]): exactly(each["epsilon"]) for each in mechanism["renyi"]}
            if len(table) < len(mechanism["renyi"]) or min(table) <= 1:
                raise refused("orders that are given twice, or are not above 1")
            return Divergence(Fraction(0), Fraction(0), table)
        points = [(each["epsilon"], each["delta"]) for each in mechanism.get("guarantees", ())]
        points = points or [(given["epsilon"], given.get("delta", Fraction(0)))]
        return Guarantees([(exactly(epsilon), exactly(delta)) for epsilon, delta in points])
