"""Runs a certificate's document once more: as written, or at the certificate's value of the blank and its (ε, δ)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyaccount.certificate.certificate import Certificate, chosen, found
from pyaccount.certificate.consistency import form_sha256
from pyaccount.certificate.issue import issue
from pyaccount.certificate.phases import matrix_record
from pyaccount.document.tree import TrainingNode
from pyaccount.errors import TIME_IS_UP, LimitError
from pyaccount.execute import Engine
from pyaccount.gate.agreement import ROUNDING, Difference, Terms, differences
from pyaccount.gate.cross_check import ComposedCrossCheck, SampledCrossCheck
from pyaccount.plan.common import default_profile, sampled_profile
from pyaccount.plan.normal_form import normal_form
from pyaccount.plan.protection import Protection, RunCase
from pyaccount.records.certificate import CertificateModel
from pyaccount.running import Plan, compile_document

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.execute.options import RunOptions
    from pyaccount.gate.examination import Examination
    from pyaccount.gate.verification import Verification

#: Notes for the verdict.
LAST_DIGITS = (
    "the search for its matrix ends in other last digits on this machine: bits cannot be compared, so the statement was "
    "retested"
)
STATED_MATRIX = (
    "the search for its matrix is not repeated: everything is recomputed with the coefficients that the certificate states, and "
    "its account of the search is kept"
)
FILLED = "the certificate's own value of the blank was filled in, and the claim was checked with it"
#: Blanks that are a bound of the guarantee itself: they are recomputed, not filled in.
_BOUNDS = ("epsilon", "delta")
#: The decimals of a normal form; and how far two numbers are apart at most that differ in last digits.
_DECIMALS, _NEAR = re.compile(r'"(-?[0-9][0-9.]*)"'), 1e-9


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
        """Recompute and compare, or prove the claim anew. Raises as `Plan.run`."""
        plan, examination, sampling = self._planned(), self.examination, self.data.evidence.sampling
        terms = self._terms(plan)
        if not plan.sampled:
            return self._composed(plan, terms)
        other = self.seed is not None and (sampling is None or sampling.seed != self.seed)
        # A run that a time limit cut short ends differently, so its statement is tested instead.
        if not other and examination.same_version and not self.data.not_computed:
            # A search for the matrix ends in other last digits on another processor, and the samples depend on the matrix.
            if not self._other_last_digits():
                fresh = self._run(plan)
                return examination.verdict(fresh, terms, _seed(self.data, fresh))
            examination.notes.append(LAST_DIGITS)
        return self._retested(replace(terms, mode="proven", seed=self.seed if other else None))

    def _terms(self, plan: Plan) -> Terms:
        privacy, blank = self.document.privacy, None if self.document.blank is None else self.document.blank[-1]
        # ε is given if δ is the blank; otherwise the smallest ε at the given δ is certified.
        given = "guarantee.epsilon" if privacy.delta == "solve" else "guarantee.delta"
        risk, epsilon, listed = self.data.risk, self.data.guarantee.epsilon, self.document.accounting.profile
        if risk is not None and risk.epsilon is not None:
            epsilon = risk.epsilon
        usual = sampled_profile if plan.sampled else default_profile
        return Terms(
            sampled=plan.sampled,
            same_version=self.examination.same_version,
            tolerance=plan.tolerance,
            given="" if privacy.epsilon == 0.0 else given,
            points=usual(epsilon) if listed is None else tuple(listed),
            blank=blank if blank in _BOUNDS else None,  # type: ignore[arg-type]
            missing=tuple(self.data.not_computed),
        )

    def _planned(self) -> Plan:
        """Return the document's plan. If its matrix was searched for, use the coefficients that the certificate states.

        A search only proposes a matrix: the guarantee is about the matrix that the certificate states, and is
        recomputed for it.
        """
        if not self.document.searched:
            return compile_document(self.document)
        self.examination.notes.append(STATED_MATRIX)
        return replace(compile_document(self._chosen()), asked=self.document)

    def _other_last_digits(self) -> bool:
        """Return whether the document's matrices, built here, differ from the certificate's only in last digits."""
        document = self._filled()
        if document is None:
            return False
        differing = [
            difference
            for run, asked, phase in zip(document.phases, self.document.phases, self.data.phases, strict=False)
            if isinstance(run, TrainingNode) and isinstance(asked, TrainingNode)
            for difference in differences(
                phase.matrix, matrix_record(RunCase(Protection.of(document), run), asked), Terms()
            )
        ]
        return bool(differing) and all(difference.agrees for difference in differing)

    def _run(self, plan: Plan) -> CertificateModel:
        """Return the recomputed certificate. Raises `LimitError` if the time ended before all parts were computed."""
        sampling, options = self.data.evidence.sampling, self.options
        certificate = plan.run(
            threads=options.threads,
            time_limit=options.remaining,
            report=options.report,
            seed=None if sampling is None else sampling.seed,
        )
        if not set(certificate.data.not_computed) <= set(self.data.not_computed):
            # A missing part would not be compared.
            raise LimitError(TIME_IS_UP, stage="recomputing the parts beside the guarantee")
        return self._comparable(certificate)

    def _comparable(self, certificate: Certificate) -> CertificateModel:
        """Return a recomputed certificate with the stated search, which is not repeated, and with the right normal form.

        The form is that of the document with the certificate's own choices and value of the blank. A matrix that is the result of
        a search has other last digits on another processor: then the stated one counts.
        """
        fresh = CertificateModel.model_validate(certificate.to_dict())
        filled, stated = self._filled(), self.data.mechanism
        form = fresh.mechanism if filled is None else normal_form(compile_document(filled).at())
        if form is not None and stated is not None and _same_but_last_digits(form, stated):
            form = stated
        evidence = fresh.evidence
        if self.document.searched:
            kept = self.data.evidence
            evidence = evidence.model_copy(update={"considered": kept.considered, "searched": kept.searched})
        return fresh.model_copy(update={"mechanism": form, "mechanism_sha256": form_sha256(form), "evidence": evidence})

    def _composed(self, plan: Plan, terms: Terms) -> Verification:
        """Recompute. If the search ended elsewhere, check the claim at the certificate's own value of the blank."""
        fresh, filled, claims = self._run(plan), self._filled(), list[Difference]()
        if not terms.same_version:
            terms = replace(terms, mode="proven")
        if filled is not None:
            chosen = compile_document(self._chosen())
            # A document that could be filled has a value, unless the blank is ε or δ.
            value = None if chosen.blank is None or self.data.solved is None else self.data.solved.value
            engine = Engine(threads=self.options.threads, time_limit=self.options.remaining)
            judge = ComposedCrossCheck(self.data, chosen, chosen.at(value), engine, plan.tolerance)
            terms = replace(terms, tolerance=max(plan.tolerance, _width(fresh)), judge=judge)
            moved = self._moved(fresh, terms)
            if moved > 0.0 and value is not None and not judge.claim(value).holds:
                claims = [Difference("solved.value", value, None, False, "the claim could not be certified with it")]
            if moved > ROUNDING:
                # The verdict on the claim at this value is in `claims`.
                kept = {name: getattr(fresh, name) for name in ("document", "document_sha256", "solved", "holds")}
                considered, fresh = fresh.evidence.considered, self._run(compile_document(filled))
                evidence = fresh.evidence.model_copy(update={"considered": considered})
                fresh = fresh.model_copy(update={**kept, "evidence": evidence})
                self.examination.notes.append(FILLED)
                terms = replace(terms, mode="proven")
        return self.examination.verdict(fresh, terms, claims)

    def _moved(self, fresh: CertificateModel, terms: Terms) -> float:
        """Return the relative distance of the two solved values; 0 if they are too far apart for the same search."""
        if terms.blank is not None or self.data.solved is None or fresh.solved is None:
            return 0.0
        stated, fresh_value = self.data.solved.value, float(fresh.solved.value)
        near = max(2.0 * terms.tolerance * fresh_value, 1.0 if isinstance(stated, int) else 0.0)
        return abs(stated - fresh_value) / fresh_value if abs(stated - fresh_value) <= near else 0.0

    def _retested(self, terms: Terms) -> Verification:
        """Test the certificate's own statement with new samples, and compare what does not come from samples."""
        from pyaccount.execute.sampling.retest import retest  # seldom needed

        contradiction, sampling, filled = self._contradiction(), self.data.evidence.sampling, self._filled()
        if contradiction is not None or sampling is None or filled is None:
            return self.examination.verdict(None, terms, [] if contradiction is None else [contradiction])
        if filled.risk is not None:
            # Samples test the (ε, δ) that implies the risk budget; other checks show that it does.
            filled = filled.claiming(self.data.guarantee.epsilon, self.data.guarantee.delta)
        recorded = sampling.seed if filled.accounting.seed is None else filled.accounting.seed
        plan = replace(compile_document(filled), asked=self.document)
        outcome = retest(plan, self.data, replace(self.options, seed=recorded if self.seed is None else self.seed))
        claims = []
        if not outcome.accepted:
            tested = f"guarantee.{terms.blank or 'epsilon'}"
            tested = "solved.value" if self.document.blank is not None and terms.blank is None else tested
            claims = [Difference(tested, self.data.statement, None, False, outcome.refusal)]
        fresh = self._comparable(issue(plan, outcome.sampled.certified))
        # The seed is an input: the comparison is whether the certificate has the seed of its document.
        recorded_sampling = fresh.evidence.sampling.model_copy(update={"seed": recorded})  # type: ignore[union-attr]
        fresh = fresh.model_copy(update={"evidence": fresh.evidence.model_copy(update={"sampling": recorded_sampling})})
        return self.examination.verdict(fresh, replace(terms, judge=SampledCrossCheck(self.data, outcome)), claims)

    def _contradiction(self) -> Difference | None:
        """Return a field of the statement with a value that no such document gives."""
        from pyaccount.execute.sampling.retest import PROBABILITY_SHARES  # seldom needed

        data, guarantee, sampling = self.data, self.data.guarantee, self.data.evidence.sampling
        blank = None if self.document.blank is None else self.document.blank[-1]
        if sampling is None or self._filled() is None:
            reason = "the statement cannot be tested: the certificate contradicts itself"
            return Difference("evidence.sampling", None, None, False, reason)
        claims, total = blank not in _BOUNDS and data.holds, sampling.total_probability
        if guarantee.kind != "deterministic" and (guarantee.kind == "verified") != claims:
            reason = "the kind must be verified if the document has a claim that holds, and confidence otherwise"
            return Difference("guarantee.kind", guarantee.kind, None, False, reason)
        least, most = (share * guarantee.delta for share in PROBABILITY_SHARES)
        bounded = least * (1.0 - ROUNDING) <= total <= most * (1.0 + ROUNDING)
        if blank == "delta" and guarantee.kind == "confidence" and not bounded:
            reason = f"not between {least:.4g} and {most:.4g}, as it must be for this δ"
            return Difference("evidence.sampling.total_probability", total, None, False, reason)
        return None

    def _chosen(self) -> Document:
        """Return the document with the certificate's choices made; the first ones if there is no such candidate."""
        made = chosen(self.data, self.document) if self.document.choices else self.document
        return found(self.data, made) if made.searched else made

    def _filled(self) -> Document | None:
        """Return the document with the certificate's choices and its value of the blank, unless the blank is ε or δ."""
        blank, chosen = self.document.blank, self._chosen()
        if blank is None or blank[-1] in _BOUNDS:
            return chosen
        wrong = any(one.path.startswith(("solved", "phases")) for one in self.examination.inconsistencies)
        return None if wrong or self.data.solved is None else chosen.with_value(blank, self.data.solved.value)


def _same_but_last_digits(form: str, stated: str) -> bool:
    """Return whether two normal forms have the same shape, and numbers that agree up to rounding."""
    pairs = zip(_DECIMALS.findall(form), _DECIMALS.findall(stated), strict=False)
    near = all(a == b or ("." in a + b and math.isclose(float(a), float(b), rel_tol=_NEAR)) for a, b in pairs)
    return near and _DECIMALS.sub("", form) == _DECIMALS.sub("", stated)


def _width(fresh: CertificateModel) -> float:
    """Return the relative width of the interval for ε if the engine could not meet its tolerance, otherwise 0."""
    guarantee = fresh.guarantee
    if fresh.evidence.within_tolerance or guarantee.epsilon <= 0.0:
        return 0.0
    return (guarantee.epsilon - guarantee.epsilon_lower) / guarantee.epsilon


def _seed(stated: CertificateModel, fresh: CertificateModel) -> list[Difference]:
    """Return a difference if the stated seed, which is an input and is kept, gives none of the stated samples."""

    def estimates(data: CertificateModel) -> set[float | None]:
        tests = [] if data.evidence.sampling is None else data.evidence.sampling.tests
        # Any seed can give an estimate of 0.
        return {*(test.mean for test in tests), *(point.delta_estimate for point in data.profile)} - {0.0, None}

    if not estimates(stated) or estimates(stated) & estimates(fresh):
        return []
    seed = None if stated.evidence.sampling is None else stated.evidence.sampling.seed
    reason = "none of the stated samples comes from this seed"
    return [Difference("evidence.sampling.seed", seed, None, False, reason)]
