"""What pyaccount says of a case: certificates, what they are made of, and records of a kind."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pyaccount
from adversaries.cases import Case
from adversaries.kinds import OPTIONS, SAMPLED
from adversaries.prices import Prices
from adversaries.statements import SAME, Result
from pyaccount.execute.engine import Engine, Question
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.rounds import DirectedBounds, losses_bounded

#: Values of δ near which profiles are asked.
LEVELS = (0.5, 1e-1, 1e-2, 1e-4, 1e-7, 1e-11)
#: Largest losses below this are asked for.
_BOUNDED = 200.0
#: A δ that only losses without a bound leave room for.
_LEAST = 1e-30
#: The relative width of what is asked of the engine directly, and at how many ε.
COARSE, FEW = 0.2, 3


class Judge(Prices):
    """All comparisons of one case."""

    def __init__(self, case: Case, time_limit: float = 10.0) -> None:
        super().__init__(case, time_limit)
        self.quick = case.kind not in SAMPLED | OPTIONS and (len(case.phases) > 1 or case.seed % 6 != 0)
        self.document: dict[str, Any] = {}

    def run(self) -> Result:
        """Judge a certificate of the case, and all prices."""
        largest, points, levels = self._asked_at(LEVELS, 0.0, 0.9, 0.999)
        self._certify({"epsilon": "solve", "delta": levels[self.case.seed % len(levels)]}, points)
        if self.case.seed % 3 == 0:
            at = points[self.case.seed // 3 % len(points)]
            self._certify({"epsilon": at, "delta": "solve"}, points[:1])
        if largest < _BOUNDED and levels[-1] == _LEAST:
            self._certify({"epsilon": "solve", "delta": 0}, points[:1])
        if self.document:
            self.judge_prices(self.document)
        return self.result

    def briefly(self, *, certified: bool) -> Result:
        """Judge what certificates are made of: ε at a δ, δ at a few ε, the largest loss, and the price of one filter.

        The document is compiled once, and the engine is asked with a coarse tolerance. A certificate asks the same engine; one
        is judged, too, if `certified`.
        """
        rng = random.Random(self.case.seed)
        _, points, levels = self._asked_at(rng.sample(LEVELS, FEW - 1), rng.choice([0.0, 0.9, 0.999]))
        level = rng.choice(levels)
        document = self.case.document(privacy={"epsilon": "solve", "delta": level})
        with self.refusing(document, "compiled"):
            read = self.read(document)
            bounds = compile_document(read).at().bounds()
            asked = [Question(None, level, COARSE)]
            asked += [Question(epsilon, None, COARSE) for epsilon in points]
            if losses_bounded(bounds):
                asked.append(Question(None, 0.0, COARSE))
            for question in asked:
                with self.refusing(document, "engine"):
                    self._engine(document, bounds, question)
            if certified:
                self._certify({"epsilon": "solve", "delta": level}, [])
            self.price(document, read, rng.choice(list(self.prices_by_name())), most=1)
        return self.result

    def _asked_at(self, near: Sequence[float] = LEVELS, *shares: float) -> tuple[float, list[float], list[float]]:
        """Return the largest loss of all laws, values of ε (near such δ, and shares of that loss), and values of δ."""
        largest = max(law.largest_loss() for law in self.both)
        points = {_rounded(self.near(level)) for level in near}
        if math.isfinite(largest) and largest < _BOUNDED:
            points |= {_rounded(largest * share) for share in shares}
        else:
            points.add(0.0)
        # Below what no finite ε undercuts there is nothing to solve for.
        never = self.least(self.both, 1e3)
        levels = [one for one in (*LEVELS, _LEAST) if one > 1.1 * never] or [0.5 + 0.5 * never]
        return largest, sorted(one for one in points if 0.0 <= one < 1e3), levels

    def _certify(self, privacy: dict[str, Any], points: list[float]) -> None:
        # A profile of a certificate is computed together with a curve, which takes most of the time: most cases ask the engine.
        asked = [] if self.quick else points
        document = self.case.document(privacy=privacy, accounting={"profile": asked})
        with self.refusing(document, "certificate"):
            self._judged(
                document, pyaccount.certify(self.read(document), threads=1, time_limit=self.limit).data, points
            )

    def _judged(self, document: dict[str, Any], data: Any, points: list[float]) -> None:
        self.document = self.document or document
        guarantee = data.guarantee
        self.bound(document, "guarantee", self.both, guarantee.epsilon, guarantee.delta)
        if guarantee.delta == 0.0:
            loss = max(law.largest_loss() for law in self.both)
            self.compare(document, "ε at δ = 0", guarantee.epsilon, loss * (1.0 - SAME), upper=True)
        else:
            self.attained(document, "guarantee, lower ε", guarantee.epsilon_lower * (1.0 - 1e-9), guarantee.delta)
        self.attained(document, "guarantee, lower δ", guarantee.epsilon, guarantee.delta_lower)
        for point in data.profile:
            self.bound(document, f"profile δ({point.epsilon})", self.both, point.epsilon, point.delta)
            self.attained(document, f"profile, lower δ({point.epsilon})", point.epsilon, point.delta_lower)
        if self.case.adjacency != "replace-one":
            for name, laws in (("remove", self.remove), ("add", self.add)):
                side = getattr(data.directions, name)
                self.bound(document, f"direction {name}", laws, side.epsilon, guarantee.delta)
                self.bound(document, f"direction {name}", laws, guarantee.epsilon, side.delta)
                for point in side.profile:
                    self.bound(document, f"direction {name}, δ({point.epsilon})", laws, point.epsilon, point.delta)
        self._records(document, data)
        if self.quick:
            self._asked(document, points)

    def _asked(self, document: dict[str, Any], points: list[float]) -> None:
        """Compare the engine's δ at these ε, with which claims and filters are decided."""
        bounds = compile_document(self.read(document)).at().bounds()
        for epsilon in points:
            with self.refusing(document, "engine"):
                self._engine(document, bounds, Question(epsilon, None, 0.05))

    def _engine(self, document: dict[str, Any], bounds: DirectedBounds, question: Question) -> None:
        answer = Engine(threads=1, time_limit=self.limit).ask(bounds, question)
        sides = {"engine": (self.both, answer.upper, answer.lower)}
        if self.case.adjacency != "replace-one":
            for name, laws in (("remove", self.remove), ("add", self.add)):
                side = answer.directions[name]
                sides[f"engine, {name}"] = (laws, side.upper, side.lower)
        for what, (laws, upper, lower) in sides.items():
            if question.epsilon is not None:
                self.bound(document, what, laws, question.epsilon, upper)
            elif question.delta == 0.0:
                loss = max(law.largest_loss() for law in laws)
                self.compare(document, f"{what}: ε at δ = 0", upper, loss * (1.0 - SAME), upper=True)
            elif question.delta is not None and math.isfinite(upper):
                self.bound(document, what, laws, upper, question.delta)
            if what == "engine" and question.epsilon is not None:
                self.attained(document, "engine, lower", question.epsilon, lower)
            elif what == "engine" and question.delta:
                self.attained(document, "engine, lower ε", lower * (1.0 - 1e-9), question.delta)

    def _records(self, document: dict[str, Any], data: Any) -> None:
        """Compare what is said of records of a kind, where the document has one phase, which names them."""
        if len(self.case.phases) != 1:
            return
        named = self.case.phases[0].records
        for record in data.records or ():
            for name, laws in named.items():
                if getattr(record, "name", None) == name or name in str(getattr(record, "records", "")):
                    both = (*laws, *(law.reversed() for law in laws))
                    self.bound(document, f"records of {name}", both, record.epsilon, data.guarantee.delta)


def _rounded(epsilon: float) -> float:
    return float(f"{epsilon:.4g}")
