"""Checks the limits of a policy against one certificate.

A certificate keeps (ε ≤ E, δ ≤ D) if its guarantee does, or one point of its profile, because an (ε, δ)-differentially
private mechanism is also private for every larger ε and δ. Points of a sampled profile are separate confidence
statements, whatever the guarantee is. One of N such points is chosen after they were seen, so it is wrong with
probability at most N times that of a single point (the union bound).

No adjacency implies another, so none is accepted for another. Protecting records does not imply protecting users
(removing one record of a user does not remove the user), nor the reverse. A group of k covers smaller groups, since it
means *up to* k records.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, get_args

from pyaccount.certificate.certificate import Certificate
from pyaccount.certificate.consistency import created_at, inconsistencies
from pyaccount.document.policy import GuaranteeKind, Limits
from pyaccount.errors import BudgetError, CertificateError, DocumentError, LedgerError, quoted
from pyaccount.gate.verdict import Judged, Rule, Used

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyaccount.certificate.reading import Read
    from pyaccount.gate.independent import AskedProof
    from pyaccount.ledger import Ledger
    from pyaccount.records.certificate import CertificateModel

#: The kinds of guarantee, from the strongest to the weakest.
KINDS: tuple[GuaranteeKind, ...] = get_args(GuaranteeKind)
#: How many seconds the clock of the machine that made a certificate may be ahead.
CLOCK_SKEW = 600.0
ALWAYS = "always"


class About(NamedTuple):
    """The documents of which a certificate must be about one: who requires it, and the name and hash of each."""

    origin: str
    documents: tuple[tuple[str, str], ...]


class AskedBudget(NamedTuple):
    """A ledger in which certificates must be entered, or into which they must fit, and who requires it."""

    origin: str
    ledger: Ledger
    #: The data set; None for the only one of the ledger.
    data_set: str | None

    @property
    def proves(self) -> bool:
        """Whether limits are for what is proven independently."""
        return False

    def rule(self, read: Read) -> Rule:
        """Return whether the budget of the data set holds with a certificate.

        It passes if the ledger has an entry for its document, with the values of the certificate, that was not given back; or if
        such an entry would fit alone. Raises `LedgerStorageError`, and `LedgerError` for a data set that does not exist.
        """
        limit = f"{self.data_set or 'the data set'} in {self.ledger.place}"
        name = self.ledger.data_set(self.data_set).name
        try:
            admission = self.ledger.admission(Certificate(read.certificate()), data_set=name)
        except (BudgetError, CertificateError, DocumentError, LedgerError) as error:
            problems = getattr(error, "problems", ())
            remark = "\n".join(problem.message for problem in problems) or str(error)
            return Rule("budget", self.origin, limit, "does not fit", False, remark)
        if admission.entry is not None:
            entry = admission.entry
            return Rule("budget", self.origin, limit, f"entry {entry.id}, {entry.state}", True, None)
        remark = f"it is not entered: reserve it before its run. Alone it would fit ({admission.words})"
        return Rule("budget", self.origin, limit, "would fit", True, remark)


def judge(
    read: Read,
    asked: Sequence[tuple[str, Limits]],
    *,
    about: About | None = None,
    shown_only: Sequence[tuple[str, str]] = (),
    requirements: Sequence[AskedBudget | AskedProof] = (),
) -> Judged:
    """Return the verdict on one certificate; `asked` are sets of limits with origins. Raises `CertificateError`.

    `shown_only` are the coordinates of the guarantee, `epsilon` or `delta`, that no limit restricts, each with the
    origin of the option that allowed this. `requirements` are about what others say of it: ledgers that have or admit it,
    and the independent checker.
    """
    data = read.certificate()
    contradictions = inconsistencies(data)
    remark = "\n".join(f"{inconsistency.path}: {inconsistency.message}" for inconsistency in contradictions)
    holds = None if data.holds else "the document's claim was not certified"
    rules = [
        Rule("intact", ALWAYS, True, not contradictions, not contradictions, remark or None),
        Rule("holds", ALWAYS, True, data.holds, data.holds, holds),
    ]
    used = []
    # Limits are for what is proven, if a proof is required: nobody proves the profile.
    proven = _proven(data) if any(one.proves for one in requirements) else None
    for origin, limits in asked:
        point, more = _best(data, origin, limits, proven)
        used += [point] if limits.max_epsilon is not None and limits.max_delta is not None else []
        rules += more
        rules += _attack_rules(data, origin, limits, proven)
        rules += _other_rules(data, origin, limits)
    for origin, name in shown_only:
        value = getattr(data.guarantee, name)
        rules.append(Rule(name, origin, None, value, True, "shown only: no limit on it was asked for"))
    if about is not None:
        rules.append(_about(data, about))
    rules += [one.rule(read) for one in requirements]
    return Judged(
        file=read.file,
        passes=all(rule.passes for rule in rules),
        sha256=read.sha256,
        name=data.name,
        used=tuple(used),
        rules=tuple(rules),
    )


def _about(data: CertificateModel, about: About) -> Rule:
    """Check by the hash that the certificate is about one of the documents. The rule `intact` checks the hash."""
    names = tuple(name for name, _ in about.documents)
    same = [name for name, sha256 in about.documents if sha256 == data.document_sha256]
    if same:
        return Rule("document", about.origin, names, data.document_sha256, True, f"that of {quoted(same[0])}")
    remark = "\n".join(f"{quoted(name)} has the hash {sha256}" for name, sha256 in about.documents)
    return Rule("document", about.origin, names, data.document_sha256, False, remark)


def points(data: CertificateModel) -> Iterator[Used]:
    """Yield the statements (ε, δ) of a certificate: the guarantee first, then the profile."""
    guarantee, sampling = data.guarantee, data.evidence.sampling
    yield Used("guarantee", guarantee.epsilon, guarantee.delta, guarantee.kind, guarantee.failure_probability)
    for point in data.profile:
        if sampling is None:
            # All points are proven, if the guarantees hold that the document states: the kind is that of the guarantee.
            yield Used("profile", point.epsilon, point.delta, guarantee.kind, guarantee.failure_probability)
        else:
            failure = len(data.profile) * sampling.pointwise_failure_probability
            if sampling.profile_failure_probability is not None:
                # The guarantee bounds all points; that it fails is one event.
                failure += sampling.total_probability
            failure = min(1.0, failure)
            yield Used("profile", point.epsilon, point.delta, "confidence", failure)


def _proven(data: CertificateModel) -> Used:
    """Return the point that the independent checker is asked to prove: the guarantee, or the composed bound beside it."""
    bound, guarantee = data.composed_bound, next(points(data))
    if bound is None or bound.epsilon is None:
        return guarantee
    return replace(guarantee, source="composed bound", epsilon=bound.epsilon, delta=bound.delta)


def _best(data: CertificateModel, origin: str, limits: Limits, proven: Used | None) -> tuple[Used, list[Rule]]:
    """Return the first point that meets all limits on points, with its rules; the guarantee and its rules if none.

    If an independent proof is required, the point that is `proven` is the only one.
    """
    both = limits.max_epsilon is not None and limits.max_delta is not None
    guarantee, *further = points(data) if proven is None else [proven]
    judged = [(point, list(_at_point(point, origin, limits))) for point in [guarantee, *(further if both else ())]]
    return next((one for one in judged if all(rule.passes for rule in one[1])), judged[0])


def _at_point(point: Used, origin: str, limits: Limits) -> Iterator[Rule]:
    where = {"profile": "at a point of the profile", "composed bound": "by the composed bound"}.get(point.source)
    if limits.max_epsilon is not None:
        alone = f"at δ = {point.delta:g}: no limit on δ is given" if limits.max_delta is None else where
        passes = point.epsilon <= limits.max_epsilon
        yield Rule("max_epsilon", origin, limits.max_epsilon, point.epsilon, passes, alone)
    if limits.max_delta is not None:
        alone = f"at ε = {point.epsilon:g}: no limit on ε is given" if limits.max_epsilon is None else where
        yield Rule("max_delta", origin, limits.max_delta, point.delta, point.delta <= limits.max_delta, alone)
    if limits.guarantee is not None:
        weakest = max(limits.guarantee, key=KINDS.index)
        passes = KINDS.index(point.kind) <= KINDS.index(weakest)
        accepted = KINDS[: KINDS.index(weakest) + 1]
        yield Rule("guarantee", origin, accepted, point.kind, passes, where)
    limit, failure = limits.max_failure_probability, point.failure_probability
    if limit is not None:
        yield Rule("max_failure_probability", origin, limit, failure, failure <= limit, where)
    elif failure > 0.0 and (limits.max_epsilon, limits.max_delta, limits.guarantee) != (None, None, None):
        yield Rule("failure_probability", origin, None, failure, True, "shown only: no limit on it is given")


def _attack_rules(data: CertificateModel, origin: str, limits: Limits, proven: Used | None) -> Iterator[Rule]:
    """Yield the rules on attacks: from all points of a composed profile, or the guarantee alone if it was sampled.

    If an independent proof is required, they are from the point that is `proven` alone.
    """
    if limits.max_advantage is None and limits.max_true_positive_rate is None:
        return
    from pyaccount.certificate.meaning import trade_off  # few limits are on attacks
    from pyaccount.risk.tradeoff import Bound, TradeOff

    guarantee, risk = proven or data.guarantee, data.risk
    own = (Bound(guarantee.epsilon, guarantee.delta),)
    curve = trade_off(data) if data.evidence.sampling is None and proven is None else TradeOff(own, own)
    known = (
        None
        if proven is not None or risk is None or risk.value is None
        else (risk.measure, risk.false_positive_rate, risk.value)
    )
    asked = (
        ("advantage", None, limits.max_advantage),
        ("true_positive_rate", limits.at_false_positive_rate, limits.max_true_positive_rate),
    )
    for measure, rate, limit in asked:
        if limit is None:
            continue
        sides = (curve, curve.swapped)
        value = curve.advantage() if rate is None else max(side.true_positive_rate(rate) for side in sides)
        # For a risk budget on the same measure, the certified value may be smaller than what few points give.
        if known is not None and known[:2] == (measure, rate):
            value = min(value, known[2])
        where = None if rate is None else f"at a false-positive rate of {rate:g}"
        yield Rule(f"max_{measure}", origin, limit, value, value <= limit, where)


def _other_rules(data: CertificateModel, origin: str, limits: Limits) -> Iterator[Rule]:
    privacy = data.privacy
    if limits.adjacency is not None:
        passes = privacy.adjacency in limits.adjacency
        remark = None if passes else "no adjacency implies another"
        yield Rule("adjacency", origin, limits.adjacency, privacy.adjacency, passes, remark)
    if limits.unit is not None:
        passes = privacy.unit == limits.unit
        remark = None if passes else f"protecting a {privacy.unit} does not protect a {limits.unit}"
        yield Rule("unit", origin, limits.unit, privacy.unit, passes, remark)
    if limits.group_size is not None:
        passes = privacy.group_size >= limits.group_size
        yield Rule("group_size", origin, limits.group_size, privacy.group_size, passes)
    if limits.max_age is not None:
        created = created_at(data.created)
        age = None if created is None else (datetime.now(UTC) - created).total_seconds()
        passes = age is not None and -CLOCK_SKEW <= age <= limits.max_age
        remark = (
            "the certificate does not say when it was made"
            if age is None
            else "the certificate says it was made in the future"
            if age < -CLOCK_SKEW
            else "as the certificate itself says"
        )
        yield Rule("max_age", origin, limits.max_age, age, passes, remark)
    if limits.document_sha256 is not None:
        passes = data.document_sha256 in limits.document_sha256
        yield Rule("document_sha256", origin, limits.document_sha256, data.document_sha256, passes)
