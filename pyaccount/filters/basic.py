"""The filter in (ε, δ) terms: entries that are (ε_i, δ_i)-DP are admitted while Σ ε_i ≤ ε and Σ δ_i ≤ δ.

**Proof** (Rogers, Roth, Ullman & Vadhan 2016, arXiv:1605.08294). By induction on the number of entries: let e and d be what
is left, and let the next entry, with laws p and q of its outcome y, be (ε_1, δ_1)-DP. What follows may depend on y, but has
at most e − ε_1 and d − δ_1 left. For every event B, P(B) = Σ_y p(y)P_y(B) ≤ Σ_y p(y)·min(1, e^{e−ε_1}Q_y(B)) + d − δ_1. The
minimum is a function of y with values in [0, 1], so its mean under p is at most e^{ε_1} times its mean under q, plus δ_1.
Hence P(B) ≤ e^e Q(B) + d, and P and Q may be exchanged. ∎

Entries keep no more than these two numbers of their profile. An entry that is a document costs ε at its δ, or δ at its ε, as
composed; one that is a certificate costs its guarantee, which may have been verified by samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from pyaccount.certificate.certificate import Certificate
from pyaccount.document.document import Document
from pyaccount.errors import DocumentError
from pyaccount.filters.base import AdditiveFilter, document_of, instance_of
from pyaccount.plan.compiled import COMPOSED_TOLERANCE


@dataclass(frozen=True, slots=True)
class BasicFilter(AdditiveFilter):
    """Admit entries that are (ε_i, δ_i)-DP while Σ ε_i ≤ ε and Σ δ_i ≤ δ."""

    epsilon: float
    delta: float = 0.0
    called: ClassVar[str] = "the filter in (ε, δ) terms"

    @property
    def terms(self) -> tuple[str, ...]:
        """Return that ε and δ are spent."""
        return ("ε", "δ")

    @property
    def limits(self) -> tuple[Fraction, ...]:
        """Return ε and δ, as their decimals."""
        return (Fraction(repr(self.epsilon)), Fraction(repr(self.delta)))

    def cost(self, entry: Document | Certificate) -> tuple[float, ...]:
        """Return (ε, δ) of an entry. Raises as `Filter.cost`.

        A document is composed at the δ that it states, or at its ε if δ is the blank. A certificate whose guarantee is true
        only with some confidence is refused.
        """
        if isinstance(entry, Certificate):
            return _of_certificate(entry)
        from pyaccount.execute.engine import Engine, Question, asked_at

        instance = instance_of(entry)
        privacy = entry.privacy
        for node in (one.node for one in instance.theorems if one.sampled):
            message = (
                f"{node.sampler_kind} sampling is certified by drawing samples, which takes minutes and is not repeated here: "
                "certify the document and give its certificate"
            )
            problem = entry.problem("uncertified", node.at("sampler", "kind"), message, allowed="a certificate")
            raise DocumentError([problem])
        bounds = instance.bounds()
        if privacy.delta == "solve":
            assert privacy.epsilon != "solve"
            question = Question(privacy.epsilon, None, COMPOSED_TOLERANCE)
            return (privacy.epsilon, min(1.0, Engine().ask(bounds, question).upper))
        delta = asked_at(bounds, privacy.delta)
        return (Engine().ask(bounds, Question(None, delta, COMPOSED_TOLERANCE)).upper, delta)

    def phase(self) -> dict[str, Any]:
        """Return a mechanism that is (ε, δ)-DP."""
        more = {"delta": self.delta} if self.delta else {}
        return {"mechanism": {"kind": "stated", "epsilon": self.epsilon, **more}}


def _of_certificate(certificate: Certificate) -> tuple[float, float]:
    """Return the guarantee of a certificate that holds for certain."""
    document = document_of(certificate)
    guarantee = certificate.data.guarantee
    if guarantee.kind == "confidence":
        message = (
            f"this guarantee is true with probability {1.0 - guarantee.failure_probability:g} over the samples that were drawn "
            "for it, so it bounds no release for certain: certify the claim with the numbers that it states, which gives a "
            "guarantee that is verified"
        )
        problem = document.problem(
            "no-valid-bound", ("privacy",), message, allowed="a deterministic or verified guarantee"
        )
        raise DocumentError([problem])
    return guarantee.epsilon, guarantee.delta
