"""Runs a certificate's document once more: as written, or at the certificate's value of the blank and its (ε, δ)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.certificate import chosen, found
from pyaccount.certificate.consistency import form_sha256
from pyaccount.certificate.issue import issue, matrix_record
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import TIME_IS_UP, LimitError
from pyaccount.execute import Engine
from pyaccount.gate.agreement import ROUNDING, Difference, Mode, Terms, differences
from pyaccount.gate.cross_check import ComposedCrossCheck, SampledCrossCheck
from pyaccount.plan.common import default_profile
from pyaccount.plan.normal_form import normal_form
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.running import compile_document

if TYPE_CHECKING:
    from pyaccount.certificate.model import CertificateModel
    from pyaccount.document.document import Document
    from pyaccount.execute.options import RunOptions
    from pyaccount.execute.sampling.retest import Retest, Statement
    from pyaccount.gate.examination import Examination
    from pyaccount.gate.verification import Verification
    from pyaccount.running import Plan

LAST_DIGITS = (
    "the search for its matrix ends in other last digits on this machine: bits cannot be compared, so the statement was "
    "retested"
)
STATED_MATRIX = (
    "the search for its matrix is not repeated: everything is recomputed with the coefficients that the certificate states, and "
    "its account of the search is kept"
)
#: Blanks that are a bound of the guarantee itself: they are recomputed, not filled in.
_BOUNDS = ("epsilon", "delta")


@dataclass(slots=True)
class Recomputation:
    """A certificate, its document, and the limits on time and threads for recomputing it."""

    examination: Examination
    data: CertificateModel
    document: Document
    #: With a time limit that has begun.
    options: RunOptions
    #: The seed of the new samples, if other samples than the recorded ones are drawn.
    seed: int | None = None

    def verdict(self) -> Verification:
        """Recompute and compare, in the mode for these numbers and the version that made them. Raises as `Plan.run`."""
        plan = self._planned()
        sampling = self.data.evidence.sampling
        other = self.seed is not None and (sampling is None or sampling.seed != self.seed)
        retested = other or not self.examination.same_version
        # A run that a time limit cut short ends differently, so its statement is tested instead.
        retested = retested or bool(self.data.not_computed)
        # A search for the matrix ends in other last digits on another processor, and the samples depend on the matrix.
        if plan.sampled and not retested and self._other_last_digits(plan.tolerance):
            self.examination.notes.append(LAST_DIGITS)
            retested = True
        mode: Mode = "digits" if not plan.sampled else "bounds" if retested else "bits"
        blank = None if self.document.blank is None else self.document.blank[-1]
        terms = Terms(
            mode,
            plan.tolerance,
            self.examination.same_version,
            seed=self.seed if plan.sampled and other else None,
            given=self._given(),
            points=self._points(),
            blank=blank if blank in _BOUNDS else None,  # type: ignore[arg-type]
        )
        if mode == "digits":
            return self._composed(plan, terms)
        if mode == "bounds":
            return self._sampled(terms)
        first = self._run(plan)
        return self.examination.verdict(first, terms, _seed(self.examination.read.raw, first))

    def _planned(self) -> Plan:
        """Return the document's plan. If its matrix was searched for, use the coefficients that the certificate states.

        A search only proposes a matrix: the guarantee is about the matrix that the certificate states, and is
        recomputed for it.
        """
        if not self.document.searched:
            return compile_document(self.document)
        self.examination.notes.append(STATED_MATRIX)
        return replace(compile_document(self._chosen()), asked=self.document)

    def _other_last_digits(self, tolerance: float) -> bool:
        """Return whether the document's matrices, built here, differ from the certificate's only in last digits."""
        document = self._filled()
        if document is None:
            return False
        terms = Terms("bounds", tolerance, same_version=True)
        differing = [
            difference
            for run, asked, phase in zip(document.phases, self.document.phases, self.data.phases, strict=False)
            if isinstance(run, TrainingNode) and isinstance(asked, TrainingNode)
            for difference in differences(
                {"matrix": phase.matrix.model_dump()},
                {"matrix": matrix_record(RunCase(Protection.of(document), run), asked).model_dump()},
                terms,
            )
        ]
        return bool(differing) and all(difference.agrees for difference in differing)

    def _run(self, plan: Plan) -> dict[str, Any]:
        """Return the recomputed certificate. Raises `LimitError` if the time ended before all parts were computed."""
        sampling = self.data.evidence.sampling
        certificate = plan.run(
            threads=self.options.threads,
            time_limit=self.options.remaining,
            report=self.options.report,
            seed=None if sampling is None else sampling.seed,
        )
        fresh = certificate.to_dict()
        if not set(fresh.get("not_computed") or ()) <= set(self.data.not_computed):
            # A missing part would not be compared.
            raise LimitError(TIME_IS_UP, stage="recomputing the parts beside the guarantee")
        return self._with_stated_search(fresh)

    def _with_stated_search(self, fresh: dict[str, Any]) -> dict[str, Any]:
        """Return the recomputed certificate with the stated results of the matrix search, which is not repeated."""
        fresh |= self._form(fresh)
        if self.document.searched:
            for key in ("considered", "searched"):
                if key in self.examination.read.raw["evidence"]:
                    fresh["evidence"][key] = self.examination.read.raw["evidence"][key]
        return fresh

    def _form(self, fresh: dict[str, Any]) -> dict[str, Any]:
        """Return the normal form, derived from the document with the certificate's own choices and value of the blank.

        A matrix that is the result of a search has other last digits on another processor: then the stated one counts.
        """
        filled = self._filled()
        form = fresh["mechanism"] if filled is None else normal_form(compile_document(filled).at())
        if form is not None and self.data.mechanism is not None and _same_but_last_digits(form, self.data.mechanism):
            form = self.data.mechanism
        return {"mechanism": form, "mechanism_sha256": form_sha256(form)}

    def _composed(self, plan: Plan, terms: Terms) -> Verification:
        """Recompute. If the search ended elsewhere, check the claim at the certificate's own value of the blank."""
        fresh = self._run(plan)
        terms = replace(terms, tolerance=max(terms.tolerance, _width(fresh)))
        more: list[Difference] = []
        moved, filled = self._moved(fresh, terms), self._filled()
        judge = self._judge(filled, plan.tolerance)
        if moved > 0.0 and filled is not None and judge is not None:
            assert self.data.solved is not None
            value = self.data.solved.value
            if not judge.claim(value).holds:
                more.append(Difference("solved.value", value, None, False, "the claim could not be certified with it"))
            if moved > ROUNDING:
                searched = fresh
                fresh = self._run(compile_document(filled))
                for key in ("document", "document_sha256", "solved"):
                    fresh[key] = searched[key]
                fresh["evidence"]["considered"] = searched["evidence"]["considered"]
                # The verdict on the claim at this value is in `more`.
                fresh["holds"] = searched["holds"]
                terms = replace(terms, filled=True)
        return self.examination.verdict(fresh, replace(terms, judge=judge), more)

    def _sampled(self, terms: Terms) -> Verification:
        """Test the certificate's own statement with new samples, and compare what does not come from samples."""
        from pyaccount.execute.sampling.retest import retest  # seldom needed

        sampling, filled, statement = self.data.evidence.sampling, self._filled(), self._statement()
        if isinstance(statement, Difference) or sampling is None or filled is None:
            place, reason = "evidence.sampling", "the statement cannot be tested: the certificate contradicts itself"
            problem = statement if isinstance(statement, Difference) else Difference(place, None, None, False, reason)
            return self.examination.verdict(None, terms, [problem])
        if filled.risk is not None:
            # Samples test the (ε, δ) that implies the risk budget; other checks show that it does.
            filled = filled.claiming(self.data.guarantee.epsilon, self.data.guarantee.delta)
        recorded = sampling.seed if filled.accounting.seed is None else filled.accounting.seed
        plan = compile_document(filled)
        seed = recorded if self.seed is None else self.seed
        outcome = retest(plan, statement, replace(self.options, seed=seed))
        more = []
        if not outcome.accepted:
            more.append(Difference(self._tested(), self.data.statement, None, False, _refused(outcome)))
        fresh = self._with_stated_search(issue(replace(plan, asked=self.document), outcome.evidence).to_dict())
        # The seed is an input: the comparison is whether the certificate has the seed of its document.
        fresh["evidence"]["sampling"]["seed"] = recorded
        return self.examination.verdict(
            fresh, replace(terms, judge=SampledCrossCheck(self.examination.read.raw, outcome)), more
        )

    def _statement(self) -> Statement | Difference:
        """Return what the certificate states, to be tested, or the field with a value that no such document gives."""
        from pyaccount.execute.sampling.retest import PROBABILITY_SHARES, Statement  # seldom needed

        data, sampling = self.data, self.data.evidence.sampling
        guarantee, blank = data.guarantee, None if self.document.blank is None else str(self.document.blank[-1])
        total = guarantee.failure_probability if sampling is None else sampling.total_probability
        claims = blank not in _BOUNDS and data.holds
        if guarantee.kind != "deterministic" and (guarantee.kind == "verified") != claims:
            reason = "the kind must be verified if the document has a claim that holds, and confidence otherwise"
            return Difference("guarantee.kind", guarantee.kind, None, False, reason)
        least, most = (share * guarantee.delta for share in PROBABILITY_SHARES)
        if (
            blank == "delta"
            and guarantee.kind == "confidence"
            and not least * (1.0 - ROUNDING) <= total <= most * (1.0 + ROUNDING)
        ):
            reason = f"not between {least:.4g} and {most:.4g}, as it must be for this δ"
            return Difference("evidence.sampling.total_probability", total, None, False, reason)
        return Statement(
            kind=guarantee.kind,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            total_probability=total,
            holds=data.holds,
            blank=blank,  # type: ignore[arg-type]
            value=None if data.solved is None else float(data.solved.value),
            samples=0 if sampling is None else sum(test.samples for test in sampling.tests if test.accepted),
            report_delta=None if data.risk is None else data.risk.delta,
        )

    def _tested(self) -> str:
        """Return the path of the field that is wrong if a test is rejected."""
        blank = self.document.blank
        if blank is not None and blank[-1] not in _BOUNDS:
            return "solved.value"
        return "guarantee.delta" if blank is not None and blank[-1] == "delta" else "guarantee.epsilon"

    def _given(self) -> frozenset[str]:
        privacy = self.document.privacy
        pairs = {"delta": privacy.delta, "epsilon": privacy.epsilon}
        # ε is given if δ is the blank; otherwise the smallest ε at the given δ is certified.
        given = "epsilon" if pairs["delta"] == "solve" else "delta"
        return frozenset({f"guarantee.{given}"}) if pairs["epsilon"] != 0.0 else frozenset()

    def _points(self) -> tuple[float, ...]:
        """Return the ε values that the profile must have: the document's, or the default around the certificate's ε."""
        listed = self.document.accounting.profile
        risk, epsilon = self.data.risk, self.data.guarantee.epsilon
        if risk is not None and risk.epsilon is not None:
            epsilon = risk.epsilon
        return default_profile(epsilon) if listed is None else tuple(listed)

    def _judge(self, filled: Document | None, tolerance: float) -> ComposedCrossCheck | None:
        if filled is None:
            return None
        engine = Engine(threads=self.options.threads, time_limit=self.options.remaining)
        plan = compile_document(self._chosen())
        # A document that could be filled has a value, unless the blank is ε or δ.
        value = None if plan.blank is None or self.data.solved is None else self.data.solved.value
        return ComposedCrossCheck(self.examination.read.raw, plan, plan.at(value), engine, tolerance)

    def _chosen(self) -> Document:
        """Return the document with the certificate's choices made; the first ones if there is no such candidate."""
        made = chosen(self.data, self.document) if self.document.choices else self.document
        return found(self.data, made) if made.searched else made

    def _filled(self) -> Document | None:
        """Return the document with the certificate's choices and its value of the blank, unless the blank is ε or δ."""
        blank, chosen = self.document.blank, self._chosen()
        if blank is None or blank[-1] in _BOUNDS:
            return chosen
        whole = not any(
            inconsistency.path.startswith(("solved", "phases")) for inconsistency in self.examination.inconsistencies
        )
        return None if not whole or self.data.solved is None else chosen.with_value(blank, self.data.solved.value)

    def _moved(self, first: dict[str, Any], terms: Terms) -> float:
        """Return the relative distance of the two solved values; 0 if they are too far apart for the same search."""
        if terms.blank is not None or self.data.solved is None or first["solved"] is None:
            return 0.0
        stated, fresh = self.data.solved.value, float(first["solved"]["value"])
        near = max(2.0 * terms.tolerance * fresh, 1.0 if isinstance(stated, int) else 0.0)
        return abs(stated - fresh) / fresh if abs(stated - fresh) <= near else 0.0


#: The decimals of a normal form; and how far two numbers are apart at most that differ in last digits.
_DECIMALS, _LAST_DIGITS = re.compile(r'"(-?[0-9][0-9.]*)"'), 1e-9


def _same_but_last_digits(form: str, stated: str) -> bool:
    """Return whether two normal forms have the same shape, and numbers that agree up to rounding."""
    pairs = zip(_DECIMALS.findall(form), _DECIMALS.findall(stated), strict=False)
    near = all(a == b or ("." in a + b and math.isclose(float(a), float(b), rel_tol=_LAST_DIGITS)) for a, b in pairs)
    return near and _DECIMALS.sub("", form) == _DECIMALS.sub("", stated)


def _width(certificate: dict[str, Any]) -> float:
    """Return the relative width of the interval for ε if the engine could not meet its tolerance, otherwise 0."""
    guarantee, evidence = certificate["guarantee"], certificate["evidence"]
    if evidence["within_tolerance"] or guarantee["epsilon"] <= 0.0:
        return 0.0
    return float((guarantee["epsilon"] - guarantee["epsilon_lower"]) / guarantee["epsilon"])


def _refused(found: Retest) -> str:
    """Return why a statement was not accepted when it was retested."""
    if not found.tests:
        return "retested: it does not hold without samples"
    last = found.tests[-1]
    estimate = (
        f"no sample saw a loss above ε = {last.epsilon:.6g}"
        if last.standard_error is None
        else f"δ({last.epsilon:.6g}) is estimated to be {last.mean:.4g} ± {last.standard_error:.2g}"
    )
    return f"retested, and not accepted: {estimate}, but the claim is {last.threshold:.6g}"


def _seed(stated: dict[str, Any], fresh: dict[str, Any]) -> list[Difference]:
    """Return a difference if the stated seed, which is an input and is kept, gives none of the stated samples."""

    def estimates(certificate: dict[str, Any]) -> set[float]:
        tests = (certificate["evidence"]["sampling"] or {}).get("tests", [])
        values = [test["mean"] for test in tests] + [point.get("delta_estimate") for point in certificate["profile"]]
        # Any seed can give an estimate of 0.
        return {estimate for estimate in values if estimate}

    one, other = estimates(stated), estimates(fresh)
    if not one or one & other:
        return []
    reason = "none of the stated samples comes from this seed"
    return [
        Difference("evidence.sampling.seed", (stated["evidence"]["sampling"] or {}).get("seed"), None, False, reason)
    ]
