"""Document in, plan out: which theorem analyses each body, and what none covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.document import BandedInverse, CyclicPoisson, Dense, Identity, UserBMinSep, separation, truncation
from pyaccount.errors import DocumentError
from pyaccount.plan import cyclic_poisson, deterministic, fixed_draws, laplace, poisson, sampled, truncated, users
from pyaccount.plan.compiled import CompiledDocument, worded
from pyaccount.plan.strategy import strategy

if TYPE_CHECKING:
    from pyaccount.document import Body, Document
    from pyaccount.errors import Problem
    from pyaccount.plan.reduction import Analysis

ANALYSES: dict[str, Analysis] = {
    "poisson": poisson.ANALYSIS,
    **dict.fromkeys(fixed_draws.LAWS, fixed_draws.ANALYSIS),
    "b-min-sep": sampled.ANALYSIS,
    "user-b-min-sep": users.ANALYSIS,
    "balls-in-bins": sampled.ANALYSIS,
    "cyclic-poisson": cyclic_poisson.ANALYSIS,
    "none": deterministic.ANALYSIS,
}

#: The samplers whose rounds are analysed one by one, which a matrix would tie together.
ROUND_BY_ROUND = ("poisson", *fixed_draws.LAWS)


def compile_document(document: Document) -> CompiledDocument:
    """Choose the theorem for each body of the document. Raises `DocumentError` for what none covers.

    A document with `choose:` lists is planned as the first of its candidates; `candidates` holds them all.
    """
    candidates = document.candidates()
    first = _compile_one(candidates[0])
    if not document.choices:
        return first
    return CompiledDocument(first.document, first.analyses, first.reductions, tuple(candidates), document)


def _compile_one(document: Document) -> CompiledDocument:
    problems = []
    for body in document.bodies:
        if body.matrix.kind != "identity" and body.sampler.kind in ROUND_BY_ROUND:
            problems.append(
                document.problem(
                    "no-valid-bound",
                    body.at("sampler", "kind"),
                    f"with a matrix the rounds depend on one another, and no bound is known for {body.sampler.kind} sampling; "
                    "b-min-sep, balls-in-bins and cyclic-poisson keep a record's participations apart",
                    allowed="b-min-sep, balls-in-bins, cyclic-poisson or none",
                )
            )
    if problems:
        raise DocumentError(problems)
    analyses = tuple(_analysis(document, body) for body in document.bodies)
    plan = CompiledDocument(document, analyses, worded(document, analyses))
    if document.accounting.method == "monte-carlo" and not plan.sampled:
        message = (
            "only b-min-sep, balls-in-bins, Poisson and random cyclic-poisson sampling of one record, and user-b-min-sep "
            "sampling of users that share no records, are judged by sampling"
        )
        raise DocumentError(
            [document.problem("no-valid-bound", ("accounting", "method"), message, allowed="auto or pld")]
        )
    if plan.blank is None:
        # Refusals that depend on numbers show before anything runs.
        plan.at().composed_bounds()
    for body in document.bodies:
        if isinstance(body.matrix, Dense | BandedInverse) and body.training.iterations != "solve":
            # So do those that depend on a file, or on an inverse.
            strategy(document, body)
    return plan


def _analysis(document: Document, body: Body) -> Analysis:
    """The analysis of a body. Raises `DocumentError` for what it does not cover."""
    if body.noise.kind != "laplace":
        _refuse(truncated.refusals(document, body))
    found = _choice(document, body)
    if found.refusals is not None:
        _refuse(found.refusals(document, body))
    return found


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise DocumentError(problems)


def _choice(document: Document, body: Body) -> Analysis:
    if body.noise.kind == "laplace":
        return laplace.ANALYSIS
    samples = document.accounting.method == "monte-carlo"
    if truncation(body) is not None:
        return truncated.ROUNDS if body.sampler.kind == "poisson" and not samples else truncated.ANALYSIS
    if _on_the_whole_run(body) or (samples and body.sampler.kind == "poisson"):
        return sampled.ANALYSIS
    if not samples and body.sampler.kind == "b-min-sep" and separation(body) == 1 and _independent(document, body):
        # b-min-sep with b = 1 is Poisson sampling.
        return poisson.ANALYSIS
    return ANALYSES[body.sampler.kind]


def _on_the_whole_run(body: Body) -> bool:
    """Whether one pair on the whole run is all there is, for samplers that have an analysis of another kind too."""
    sampler = body.sampler
    if isinstance(sampler, UserBMinSep):
        return sampler.attribution == "single"
    return isinstance(sampler, CyclicPoisson) and sampler.phase == "random"


def _independent(document: Document, body: Body) -> bool:
    """Whether the matrix is the identity."""
    if isinstance(body.matrix, Identity):
        return True
    if body.training.iterations == "solve" or getattr(body.matrix, "bands", None) != 1:
        return False
    return strategy(document, body).coefficients == (1.0,)
