"""What a normal form means: from its tree to the rounds whose composition bounds it, or the reason why nothing is checked.

In units of its noise a record moves a round by 1 under *add-remove* and *zero-out*, and by 2 under *replace-one*; a group of k
moves k times as far. Each branch states its theorem or names the class that does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, product

from . import columns, draws, laws
from .combinators import BestRound, OfRuns, SampledRound
from .composition import RoundCounts, together
from .form import FormPart, parts_of, refused
from .laws import GaussianRound, MixtureRound, Round
from .moments import Correlated, MovedColumns, Renewals, SecretRound

#: The most kinds of records that are compared, and rounds of a run with correlated noise.
MOST_KINDS, MOST_ROUNDS = 1000, 100_000
#: Samplers for which the number of records matters.
SIZED = ("fixed-size", "with-replacement", "must-ow", "must-wo", "must-ww", "truncated-poisson", "truncated-spaced")


def chance(probability: Fraction | FormPart) -> Fraction:
    """Return a probability, or the largest of those of different records: smaller ones are a second coin, which hides more."""
    return probability if isinstance(probability, Fraction) else max(probability["of"].values())


class FormRounds:
    """The rounds of a form."""

    def __init__(self, form: FormPart, small: Fraction) -> None:
        """Take the form, and the mass that cutting may add to a profile."""
        self.form, self.small, self.least = form, small, small / 10**9
        self.adjacency, self.group = form["adjacency"], form["group"]
        self.replaced, self.zeroed = self.adjacency == "replace-one", self.adjacency == "zero-out"
        self.moves = self.group * (2 if self.replaced else 1)
        self.plain = self.group == 1 and not self.replaced

    def kinds(self) -> list[list[tuple[Round, int]]]:
        """Return for each kind of record, which is in one part of each list of parts, the rounds that it takes part in."""
        return [together(rounds) for rounds in self._kinds(self.form["mechanism"])]

    def _kinds(self, node: FormPart) -> list[RoundCounts]:
        """Return the rounds of a node for each kind of record."""
        found: list[RoundCounts]
        if node["kind"] == "sequence":
            choices = islice(product(*map(self._kinds, node["of"])), MOST_KINDS + 1)
            found = [[part for rounds in choice for part in rounds] for choice in choices]
        elif node["kind"] == "repeat":
            inner = FormRounds(self.form, self.small / node["count"])
            found = [[(part, count * node["count"]) for part, count in rounds] for rounds in inner._kinds(node["of"])]
        elif node["kind"] == "parts":
            # A record is in one part: the rest of it does not depend on that record (parallel composition).
            if not self.plain:
                raise refused("disjoint parts for groups, or under replace-one")
            found = [rounds for part in node["of"] for rounds in self._kinds(part)]
        elif node["kind"] in ("sample", "best"):
            found = [[(self._of_runs(node, together(rounds)), 1)] for rounds in self._kinds(node["of"])]
        else:
            return [list(self._leaf(node))]
        if len(found) > MOST_KINDS:
            raise refused(f"more than {MOST_KINDS} kinds of records")
        return found

    def _of_runs(self, node: FormPart, rounds: RoundCounts) -> Round:
        if node["kind"] == "best":
            runs = dict(node["runs"])
            kind = runs.pop("kind")
            if kind not in ("geometric", "poisson", "binomial"):
                raise refused(f"the best of a {kind} number of runs")
            return BestRound(rounds, self.small, kind, {key: Fraction(value) for key, value in runs.items()})
        if self.group != 1:
            raise refused("groups with a run on a sample")
        kinds = {part["kind"] for part in parts_of(node["of"])}
        if node["draws"] == "records" and kinds & {*SIZED}:
            raise refused("batches of a fixed size, or truncated ones, of a sample that has a random number of records")
        q, alone = chance(node["probability"]), node["draws"] == "records" and not self.replaced
        if alone and self.zeroed and any(map(_shows_draws, parts_of(node["of"]))):
            raise refused("runs that show which records of a sample were drawn")
        if self.replaced and not isinstance(node["probability"], Fraction):
            raise refused("records with different probabilities that are replaced")
        if alone and len(rounds) == 1 and isinstance(rounds[0][0], GaussianRound):
            return MixtureRound({1: q}, rounds[0][0].square)
        if alone:
            return SampledRound(rounds, self.small, q)
        return laws.Blend([(q, OfRuns(rounds, self.small)), (1 - q, draws.NOTHING)])

    def _leaf(self, node: FormPart) -> Iterator[tuple[Round, int]]:
        """Yield the rounds of a leaf."""
        kind = node["kind"]
        if kind == "round":
            yield self._round(node["sampler"], sum((1 / sigma**2 for sigma in node["noise"]), Fraction(0))), 1
        elif kind == "run":
            main, *further = (1 / sigma**2 for sigma in node["noise"])
            yield from self._run(node, node["sampler"], main, sum(further, Fraction(0)))
        else:
            yield self._mechanism(kind, node), node.get("moved", 1)

    # ---- training

    def _round(self, sampler: FormPart, square: Fraction) -> Round:
        """Return one round; several releases of a batch are one, Σ 1/σ² in squared units of their noise."""
        kind = sampler["kind"]
        if kind == "all":
            return GaussianRound(self.moves**2 * square)
        if kind == "poisson":
            # m draws of a group of k are k·m coins (Ganesh 2024, arXiv:2401.10294, Theorem 3.1).
            if sampler["draws"] * self.group > 20_000:
                raise refused("so many draws of a group in one round")
            law, lost = draws.drawn(sampler["draws"] * self.group, chance(sampler["probability"]), self.least)
            return MixtureRound(law, square, {-j: weight for j, weight in law.items()} if self.replaced else None, lost)
        if kind == "truncated-poisson":
            if not self.zeroed or self.group != 1:
                raise refused("truncated batches but of one zeroed-out record")
            return draws.truncated(sampler["probability"], sampler["records"], sampler["size"], square)
        return self._fixed(kind, sampler, square)

    def _fixed(self, kind: str, sampler: FormPart, square: Fraction) -> Round:
        """Return a round of m draws from N records; with b of them in the first of two stages."""
        records, size, subset = sampler["records"], sampler["size"], sampler.get("subset", 0)
        added, once = self.adjacency == "add-remove", kind == "fixed-size"
        if size > 50_000 or size > records or subset > records or (added and size > records - self.group):
            raise refused("batches of more than 50,000 records, or that the data set cannot fill")
        lost, two = Fraction(0), kind in ("must-ow", "must-ww")
        if kind == "must-ww" or (kind == "must-wo" and size > subset) or (two and self.group != 1):
            raise refused(f"the sampler {kind} of groups, or with such a subset")
        if once:
            law = draws.hypergeometric(records, size, self.group)
        elif two:
            # The record is in the first stage with probability b/N, and is then drawn as one of b.
            law, lost = draws.drawn(size, Fraction(1, subset), self.least)
            law = {j: weight * subset / records for j, weight in law.items()}
        else:
            law, lost = draws.drawn(size, Fraction(self.group, records), self.least)
        if added and not two:
            # The other draws do not depend on j (Choquette-Choo et al. 2023, Lemma 4.6).
            return MixtureRound(law, 4 * square, None, lost)
        return laws.Displaced(law, lost, square, zeroed=self.zeroed, common=not two and len(law) > 1)

    def _run(self, node: FormPart, sampler: FormPart, main: Fraction, also: Fraction) -> Iterator[tuple[Round, int]]:
        """Yield the rounds of a run; C moves the main release by `main`, squared, and others move by `also` in each round."""
        kind, matrix, rounds = sampler["kind"], node["matrix"], node["rounds"]
        plain = matrix["kind"] == "identity"
        if kind == "ordered":
            apart, most = sampler["separation"], min(sampler["participations"], rounds)
            yield self._public(node, apart, most), 1
        elif kind == "cyclic" and sampler["phase"] == "fixed" and self.group == 1:
            yield from self._cyclic(node, sampler, main, also)
        elif kind == "spaced" and self.plain:
            yield self._spaced(node, sampler, main, also), 1
        elif kind == "users" and sampler["attribution"] == "shared":
            yield self._users(matrix, rounds, sampler, main, also), 1
        elif kind == "allocation" and self.plain and plain and sampler["participations"] == 1:
            yield laws.Allocation([(main + also, rounds)], self.small), 1
        elif kind == "bins" and self.plain and plain and sampler["bins"] <= rounds:
            turns, more = divmod(rounds, sampler["bins"])
            shifts = [((main + also) * (turns + 1), more), ((main + also) * turns, sampler["bins"] - more)]
            yield laws.Allocation([each for each in shifts if each[1]], self.small), 1
        elif kind in ("cyclic", "bins", "users", "spaced"):
            # What is secret is given up: everybody knows who takes part when.
            apart = sampler.get("separation") or sampler.get("parts") or sampler["bins"]
            if apart > rounds and kind == "bins":
                raise refused("more bins than rounds")
            square = self._public(node, apart, rounds).square * sampler.get("records", 1) ** 2
            yield SecretRound(square, node if self.plain and kind == "bins" else None), 1
        else:
            raise refused(f"the sampler {kind} with this matrix or adjacency, or for groups")

    def _public(self, node: FormPart, apart: int, most: int) -> GaussianRound:
        """Return the Gaussian mechanism with the largest ‖Σ_i C e_i‖ over patterns (arXiv:2306.08153, Section 3)."""
        matrix, rounds, (main, *further) = node["matrix"], node["rounds"], (1 / sigma**2 for sigma in node["noise"])
        times = min(most, -(-rounds // apart))
        if matrix["kind"] == "tree":
            moved = columns.tree(matrix, rounds, apart, most)
        else:
            (entries, norm), dense = columns.column(matrix, rounds), matrix["kind"] == "dense"
            moved = columns.of_dense(matrix, apart, times) if dense else columns.largest(entries, rounds, apart, most)
            moved /= norm
        return GaussianRound(self.moves**2 * (main * moved + sum(further, Fraction(0)) * times))

    def _cyclic(self, node: FormPart, sampler: FormPart, main: Fraction, also: Fraction) -> Iterator[tuple[Round, int]]:
        """Yield the rounds of the first part: its columns are the longest, and no longer than its turns are apart.

        They are orthogonal, so that they compose; the last one may be cut off (Choquette-Choo et al. 2023, arXiv:2306.08153,
        Theorem 4).
        """
        (entries, norm), rounds = columns.column(node["matrix"], node["rounds"]), node["rounds"]
        parts, p = sampler["parts"], chance(sampler["probability"])
        if len(entries) > parts:
            raise refused("more bands than parts under cyclic Poisson sampling")
        turns = -(-rounds // parts)
        for count, rows in ((turns - 1, parts), (1, rounds - (turns - 1) * parts)):
            square = main * sum((each**2 for each in entries[:rows]), Fraction(0)) / norm + also
            if count:
                yield MixtureRound({1: p}, square, {-1: p} if self.replaced else None), count

    def _spaced(self, node: FormPart, sampler: FormPart, main: Fraction, also: Fraction) -> Correlated:
        """Return a run of b-min-sep sampling (Dong & Ganesh 2026, arXiv:2602.09338)."""
        p, b, rounds = sampler["probability"], sampler["separation"], node["rounds"]
        if max(rounds, b) > MOST_ROUNDS:
            raise refused("correlated noise with sampling in so many rounds")
        entries, norm = columns.column(node["matrix"], rounds)
        moved = MovedColumns(entries, main / norm, b, also)
        return Correlated(Renewals(rounds, b, p, sampler["start"] == "warm"), moved, node)

    def _users(self, matrix: FormPart, rounds: int, sampler: FormPart, main: Fraction, also: Fraction) -> Round:
        """Return users who share records, whose participations are public."""
        apart, records = sampler["separation"], sampler["records"]
        if not self.zeroed or self.group != 1:
            raise refused("users who share records with this adjacency, or groups of them")
        entries, norm = columns.column(matrix, rounds)
        if len(entries) > apart or rounds * -(-rounds // apart) * records**3 > 1_000_000:
            raise refused("users who share records with long columns, or so many in so many rounds")
        squares = [
            main * sum((each**2 for each in entries[: rounds - i]), Fraction(0)) / norm + also for i in range(rounds)
        ]
        return draws.shared_users(sampler["probability"], records, apart, squares)

    # ---- mechanisms

    def _mechanism(self, kind: str, node: FormPart) -> Round:
        """Return what bounds one run of a mechanism (one of its numbers, if several are moved)."""
        k, size = self.group, node.get("sensitivity", Fraction(0))
        steps = size / node["step"] if "step" in node else Fraction(0)
        if (k > 2 and node.get("moved", 1) != 1) or steps.denominator != 1:
            raise refused("groups that move several numbers, or a sensitivity that is no whole number of steps")
        if kind in ("gaussian", "gdp"):
            return GaussianRound((k * size / node["sigma"]) ** 2 if size else (k * node["steps"] * node["mu"]) ** 2)
        if kind in ("laplace", "noisy-max"):
            # Noise of a hazard rate of at most 1 moves along a path that Laplace noise bounds (docs/mechanisms.md).
            attained = kind == "laplace"
            return laws.LaplaceRound(k * (size / node["scale"] if attained else node["epsilon"]), attained=attained)
        if kind in ("discrete-laplace", "discrete-gaussian"):
            laplace = kind == "discrete-laplace"
            return draws.discrete(node["scale" if laplace else "sigma"] / node["step"], int(k * steps), laplace=laplace)
        if kind == "randomized-response":
            return self._response(node["truth_probability"], node["values"], node)
        if kind == "mixture-of-gaussians" and self.plain:
            return _mixture(node["sensitivities"], node["probabilities"], node["sigma"])
        return laws.Ranges(k * node["epsilon"]) if kind == "bounded-range" else self._stated(kind, node)

    def _response(self, p: Fraction, values: int, node: FormPart) -> Round:
        """Return randomized response: p for the true value, q for each other one; an empty record may answer uniformly."""
        q, uniform = (1 - p) / (values - 1), node["empty_record"] == "uniform"
        if node["answers"] == "each-record":
            if self.group != 1 or self.adjacency == "add-remove":
                raise refused("reports of groups, or of records that may be absent")
            if self.zeroed and uniform:
                return laws.FiniteRound([(p, Fraction(1, values)), (1 - p, 1 - Fraction(1, values))])
        if uniform:
            raise refused("an empty record where none is set to zero, or answers for itself")
        return laws.FiniteRound([(p, q), (q, p), (1 - p - q, 1 - p - q)])

    def _stated(self, kind: str, node: FormPart) -> Round:
        """Return a mechanism of which a guarantee is stated for one step; zCDP makes ρ·k² of k steps (Bun & Steinke 2016)."""
        if kind not in ("zcdp", "guarantees"):
            raise refused(f"the mechanism {kind}, or for groups, or under replace-one")
        steps = self.group * node.get("steps", 1)
        if node.get("exception") or (steps != 1 and (kind != "zcdp" or node["xi"])):
            raise refused("stated guarantees of several steps, or with an exception")
        if kind == "zcdp":
            return laws.Renyi(steps**2 * node["rho"], node["xi"])
        return laws.Guarantees(node["points"])


def _shows_draws(node: FormPart) -> bool:
    """Return whether a node may show that a record was drawn which is set to zero: by an answer, or by displacing another one."""
    if node["kind"] in ("round", "run"):
        return node["sampler"]["kind"] not in ("all", "poisson", "ordered")
    return bool(node["kind"] == "randomized-response" and node["answers"] == "each-record")


def _mixture(sizes: Sequence[Fraction], chances: Sequence[Fraction], sigma: Fraction) -> Round:
    """Return Σ p_j N(s_j) against N(0), with the s_j as multiples of a unit; probabilities are divided by their sum."""
    unit, total = math.lcm(*(each.denominator for each in sizes)), sum(chances, Fraction(0))
    if len(sizes) != len(chances) or abs(total - 1) > Fraction(1, 10**9) or max(sizes) * unit > 10**9 or not any(sizes):
        raise refused("these sensitivities and probabilities")
    law: dict[int, Fraction] = {}
    for size, each in zip(sizes, chances, strict=True):
        law[int(size * unit)] = law.get(int(size * unit), Fraction(0)) + each / total
    law.pop(0, None)
    return MixtureRound(law, 1 / (sigma * unit) ** 2)
