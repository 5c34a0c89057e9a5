"""Documents of kind amplification, one mechanism run once on one sampled batch: the theorem and its assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount import _core
from pyaccount.document.words import Assumed
from pyaccount.errors import DocumentError
from pyaccount.plan.protection import Protection
from pyaccount.plan.samplers import sampler_plan

if TYPE_CHECKING:
    from pyaccount.document.amplification import Amplification


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of sampling on one guarantee of the base mechanism; every number is an upper bound."""

    epsilon: float
    delta: float
    amplified_epsilon: float
    amplified_delta: float

    @property
    def name(self) -> str:
        """Return which of the four cases of arXiv:2312.13389, Section 3, this is."""
        if self.amplified_epsilon < self.epsilon:
            return "strong amplification" if self.amplified_delta <= self.delta else "weak amplification, type I"
        return "weak amplification, type II" if self.amplified_delta < self.delta else "dilution"


@dataclass(frozen=True, slots=True)
class AmplificationPlan:
    """The theorem for a document of kind amplification."""

    document: Amplification
    subject: str
    law: str
    theorem: str
    source: str
    assumed: tuple[Assumed, ...]

    def run(self) -> tuple[float, tuple[Effect, ...]]:
        """Return η, the probability that the record is drawn, and the effect at each ε: closed forms, rounded up."""
        base, body = self.document.base, self.document.draw
        law = sampler_plan(Protection.of_draw(self.document)).fixed_draws()
        epsilons = (base.epsilon,) if isinstance(base.epsilon, float) else base.epsilon
        rows = _core.amplify(
            list(epsilons),
            base=base.kind,
            noise_multiplier=base.multiplier,
            deltas=list(base.group_deltas),
            probability=body.sampling_probability() if law is None else None,
            draw=None if law is None else law.draws(),
        )
        effects = tuple(
            Effect(epsilon, delta, amplified, amplified_delta)
            for epsilon, (delta, _, amplified, amplified_delta) in zip(epsilons, rows, strict=True)
        )
        return rows[0][1], effects


def compile_amplification(document: Amplification) -> AmplificationPlan:
    """Return the plan of a document of kind amplification. Raises `DocumentError` for what no theorem covers."""
    body = document.draw

    def refused(slug: str, field: str, message: str, allowed: str) -> DocumentError:
        return DocumentError([document.problem(slug, ("sampler", field), message, allowed=allowed)])

    if getattr(body.sampler, "rounds_per_subset", 1) != 1:
        message = "the mechanism is run once, on one batch from one subset"
        raise refused("contradiction", "rounds_per_subset", message, "1")
    if getattr(body.sampler, "truncate_to", None) is not None:
        message = (
            "which other records a truncated batch contains depends on whether the sensitive record is drawn, and this is not "
            "covered: leave truncate_to out"
        )
        raise refused("no-valid-bound", "truncate_to", message, "no truncation")
    if body.draws_per_iteration() != 1:
        message = "the mechanism is run once, on one batch that is drawn once: leave draws_per_iteration out"
        raise refused("contradiction", "draws_per_iteration", message, "1")
    secret = Assumed(
        "The batch is secret: nothing but the mechanism's output is released.",
        "The batch is secret: nothing but the mechanism's output is released.",
    )
    noise = Assumed(
        "The guarantee of the mechanism without sampling is as stated, for data sets in which 1, 2, … records are replaced.",
        "Without sampling the guarantee is as stated, for 1, 2, … replaced records.",
    )
    if document.base.kind != "stated":
        noise = Assumed(
            f"The noise is {document.base.kind}, drawn from a generator that cannot be predicted, and the query's sensitivity "
            "for j replaced records is at most j times that for one"
            + ("; its answer is a number." if document.base.kind == "laplace" else "."),
            f"Unpredictable {document.base.kind.capitalize()} noise; j records move the answer j times as far.",
        )
    law = sampler_plan(Protection.of_draw(document)).fixed_draws()
    if law is None:
        p = body.sampling_probability()
        subject, symbols, source = "Poisson sampling", f"Bin(j; 1, {p!r})", "Balle, Barthe & Gaboardi 2018, Theorem 8"
        neighbours = Assumed(
            "Neighbouring data sets differ in one record that is added or removed; sensitivities and stated δ are for that.",
            "Neighbouring data sets differ in one record added or removed.",
        )
        drawn = Assumed(
            f"Every record is in the batch independently with probability {p!r}.",
            "Every record is in the batch independently, with the stated probability.",
        )
    else:
        _, dataset, batch, subset = law.draws()
        sizes = {"k": 1, "n": dataset, "m": batch, "b": subset}
        subject, symbols = law.called, law.symbols.format(**sizes)
        source = "Balle, Barthe & Gaboardi 2018, Theorems 9 and 10; for two stages arXiv:2312.13389, Theorem 5"
        neighbours = Assumed(
            "Neighbouring data sets differ in one record that is replaced by another or by an empty one; the dataset size is "
            "public.",
            "Neighbours differ in one record, replaced or empty; the size is public.",
        )
        drawn = Assumed(*map(_once, law.drawn.filled(**sizes)))
    theorem = "ε′ = ln(1 + η(e^ε − 1)), δ′ = Σ_{j≥1} p_j·δ_j(ε)"
    return AmplificationPlan(document, subject, symbols, theorem, source, (neighbours, drawn, noise, secret))


def _once(text: str) -> str:
    """Reword the description of a round's draw for a single draw."""
    for many, one in (
        ("For each iteration a fresh,", "A"),
        ("For each iteration a fresh", "A"),
        ("Every batch is a new", "The batch is a"),
        ("Every batch is", "The batch is"),
        (", drawn afresh and independently for each iteration", ""),
    ):
        text = text.replace(many, one)
    return text
