"""Reports what in a certificate contradicts the rest of it.

None of this recomputes a bound. It finds careless changes: a number, a date or an assumption that somebody edited. A
certificate contains the hash of its content, which any such change breaks. The invariants on which a gate relies are
checked too: the hash of the document, the sentence, the order of bounds, the claim, and an accepted test that implies the
guarantee. A forged certificate can satisfy all of this; against forgery use signatures and `pyaccount verify`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.statement import only_training, statement
from pyaccount.directions import sampled_directions
from pyaccount.document.resting import rests_on
from pyaccount.errors import printable, quoted
from pyaccount.reading.written import integral, sha256_of

if TYPE_CHECKING:
    from pyaccount.records.amplification import AmplificationData
    from pyaccount.records.certificate import CertificateModel, DirectionResult, Guarantee
    from pyaccount.records.evidence import SamplingRecord, TestRecord

#: The field that contains the hash of all other fields.
CONTENT = "content_sha256"


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """A field that contradicts the rest of the certificate: its path, and why."""

    path: str
    message: str


def content_sha256(data: CertificateModel | AmplificationData) -> str:
    """Return the SHA-256 of the canonical JSON of a certificate, without the hash and without fields that are null or empty.

    Null and empty fields are left out, so that a later version, which has more fields, gives the same hash.
    """
    content = _stated(data.model_dump(mode="json", exclude={CONTENT}))
    text = json.dumps(integral(content), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def form_sha256(form: str | None) -> str | None:
    """Return the SHA-256 of a normal form; None without one."""
    return None if form is None else hashlib.sha256(form.encode()).hexdigest()


def _stated(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stated(item) for key, item in value.items() if item not in (None, [], {})}
    return [_stated(item) for item in value] if isinstance(value, list) else value


def inconsistencies(data: CertificateModel | AmplificationData) -> list[Inconsistency]:
    """Return what in a certificate contradicts the rest of it."""
    contradictions = [*_hashes(data), *_head(data)]
    if data.kind == "certificate":
        contradictions += [*_statement(data), *_claim(data), *_order(data), *_evidence(data)]
    return [Inconsistency(printable(one.path), printable(one.message)) for one in contradictions]


def _hashes(data: CertificateModel | AmplificationData) -> Iterator[Inconsistency]:
    of_document = sha256_of(data.document)
    if of_document != data.document_sha256:
        stated = quoted(data.document_sha256)
        message = (
            f"the document inside has the hash {of_document}, but the certificate states {stated}: one was changed"
        )
        yield Inconsistency("document_sha256", message)
    if data.kind == "certificate" and data.mechanism_sha256 != (of_form := form_sha256(data.mechanism)):
        message = f"the normal form inside has the hash {of_form}, but the certificate states {data.mechanism_sha256}"
        yield Inconsistency("mechanism_sha256", message)
    if data.content_sha256 != (of_content := content_sha256(data)):
        stated = quoted(data.content_sha256)
        message = f"the certificate has the hash {of_content}, but it states {stated}: something was changed"
        yield Inconsistency(CONTENT, message)


def created_at(created: str) -> datetime | None:
    """Return when a certificate was made, or `None` if it does not say so."""
    try:
        time = datetime.fromisoformat(created)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _head(data: CertificateModel | AmplificationData) -> Iterator[Inconsistency]:
    """Check the time, and that each assumption has its short form."""
    if created_at(data.created) is None:
        yield Inconsistency("created", f"{quoted(data.created)} is not a time with a zone in ISO 8601")
    if len(data.assumptions_in_short) != len(data.assumptions):
        message = f"{len(data.assumptions)} assumptions have {len(data.assumptions_in_short)} short forms"
        yield Inconsistency("assumptions_in_short", message)


def _claim_of(document: dict[str, Any]) -> tuple[float, float] | None:
    """Return the (ε, δ) that the document inside a certificate claims, unless one of them is its blank."""
    epsilon, delta = at(document, "privacy", "epsilon"), at(document, "privacy", "delta")
    return (float(epsilon), float(delta)) if is_number(epsilon) and is_number(delta) else None


def derived_statement(data: CertificateModel, digits: int = 6) -> str:
    """Return the sentence that the fields of a certificate give."""
    return statement(
        data.name,
        data.privacy,
        data.guarantee,
        holds=data.holds,
        claim=_claim_of(data.document),
        sampling=data.evidence.sampling,
        risk=data.risk,
        training=only_training(data.phases),
        digits=digits,
    )


def _statement(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that the sentence says what the fields say."""
    if data.statement != (derived := derived_statement(data)):
        yield Inconsistency("statement", f"the fields of the certificate say: {derived}")


def _claim(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that the guarantee is what the document asks for, for the same neighbours."""
    guarantee, privacy, written = data.guarantee, data.privacy, at(data.document, "privacy", default={})
    for path, stated, said in (
        ("name", data.name, data.document.get("name")),
        ("privacy.adjacency", privacy.adjacency, at(written, "adjacency")),
        ("privacy.group_size", privacy.group_size, at(written, "group_size", default=1)),
    ):
        if said not in (stated, "solve"):
            yield Inconsistency(path, f"{quoted(stated)}, but the document says {quoted(said)}")
    for name in ("epsilon", "delta"):
        bound, claimed = getattr(guarantee, name), at(written, name)
        if data.holds and is_number(claimed) and bound > claimed:
            message = f"{bound!r} is above the claim, {claimed!r}, which is said to hold"
            yield Inconsistency(f"guarantee.{name}", message)
    if data.risk is not None:
        kept = data.risk.value is not None and data.risk.value <= data.risk.budget
        if data.holds != kept:
            message = f"{data.holds}, but the risk is {data.risk.value!r} and the budget {data.risk.budget!r}"
            yield Inconsistency("holds", message)
    elif not data.holds and _claim_of(data.document) is None:
        yield Inconsistency("holds", "false, but the document has no claim that could fail")


def _order(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that lower bounds are below upper bounds, and that no point of the profile refutes the guarantee."""
    guarantee, sides = data.guarantee, {"remove": data.directions.remove, "add": data.directions.add}
    yield from _ends("guarantee", guarantee)
    for name, side in sides.items():
        yield from _ends(f"directions.{name}", side)
        for end, most in (("epsilon_lower", guarantee.epsilon), ("delta_lower", guarantee.delta)):
            if getattr(side, end) > most:
                yield Inconsistency(f"directions.{name}.{end}", "above the guarantee's upper bound")
    for index, kind in enumerate(data.records or ()):
        if kind.epsilon_lower > kind.epsilon:
            message = f"at most {kind.epsilon!r} and at least {kind.epsilon_lower!r}: the bounds cross"
            yield Inconsistency(f"records[{index}].epsilon", message)
        if kind.epsilon > guarantee.epsilon:
            yield Inconsistency(f"records[{index}].epsilon", "above the guarantee's upper bound, which is the largest")
    profiles = {"profile": data.profile, **{f"directions.{name}.profile": side.profile for name, side in sides.items()}}
    for path, points in profiles.items():
        for index, point in enumerate(points):
            if point.delta_lower > point.delta:
                message = f"at most {point.delta!r} and at least {point.delta_lower!r}: the bounds cross"
                yield Inconsistency(f"{path}[{index}].delta", message)
    for index, point in enumerate(data.profile):
        if point.epsilon >= guarantee.epsilon and point.delta_lower > guarantee.delta:
            yield Inconsistency(
                f"profile[{index}].delta_lower", "above the guarantee's delta, although its ε is no smaller"
            )
        if point.epsilon <= guarantee.epsilon and point.delta < guarantee.delta_lower:
            yield Inconsistency(
                f"profile[{index}].delta", "below the guarantee's delta_lower, although its ε is no larger"
            )


def _ends(path: str, ends: Guarantee | DirectionResult) -> Iterator[Inconsistency]:
    for name, lower, upper in (("epsilon", ends.epsilon_lower, ends.epsilon), ("delta", ends.delta_lower, ends.delta)):
        if lower > upper:
            yield Inconsistency(f"{path}.{name}", f"at most {upper!r} and at least {lower!r}: the bounds cross")


def _evidence(data: CertificateModel) -> Iterator[Inconsistency]:
    """Check that the evidence can give this kind of guarantee, and that accepted tests in each direction imply it."""
    guarantee, sampling = data.guarantee, data.evidence.sampling
    stated = guarantee.failure_probability
    rests = rests_on(data.document)
    if sampling is None:
        if guarantee.kind != rests.kind:
            # A composition is proven, except for guarantees from samples that its document states.
            if rests.kind == "deterministic":
                yield Inconsistency("evidence.sampling", f"null, but the guarantee is {guarantee.kind}")
            else:
                message = f"{guarantee.kind}, but it rests on a stated guarantee that makes it {rests.kind}"
                yield Inconsistency("guarantee.kind", message)
    elif guarantee.kind != "deterministic":
        yield from _tests(data, sampling)
    elif sampling.moment is not None:
        for name in ("remove", "add"):
            if getattr(sampling.moment, name) > guarantee.delta:
                yield Inconsistency(f"evidence.sampling.moment.{name}", "above the guarantee's δ")
    expected = 0.0
    if sampling is None:
        expected = rests.failure_probability
    elif guarantee.kind == "confidence":
        expected = sampling.total_probability
    if stated != expected:
        message = f"{stated!r}, but by the evidence of a {guarantee.kind} guarantee it is {expected!r}"
        yield Inconsistency("guarantee.failure_probability", message)


def _tests(data: CertificateModel, sampling: SamplingRecord) -> Iterator[Inconsistency]:
    """Check that in every direction an accepted test implies the guarantee, with the stated wealth and probability.

    The test may be of a stronger claim: a smaller ε or δ, or less noise if σ was solved for. More noise is
    post-processing.
    """
    guarantee, q = data.guarantee, sampling.total_probability
    noises, solved = {phase.noise_multiplier for phase in data.phases}, _solved_noise(data)
    # This is ln(1/q) of one test sequence. If q is 0, no wealth is sufficient.
    log_target = -math.log(sampling.test_probability) if sampling.test_probability > 0.0 else math.inf

    def implies(test: TestRecord) -> bool:
        # A verified guarantee includes q in δ; other kinds state it separately.
        delta = test.threshold + (q * (1.0 - test.threshold) if guarantee.kind == "verified" else 0.0)
        return (
            test.accepted
            and (test.noise_multiplier in noises if solved is None else 0.0 < test.noise_multiplier <= solved)
            and test.epsilon <= guarantee.epsilon
            and delta <= guarantee.delta * (1.0 + 1e-9)
            and test.log_target >= log_target * (1.0 - 1e-9)
            # A test with a fixed number of samples has no betting fractions and no wealth.
            and (not test.betting_fractions or test.log_wealth >= test.log_target)
            and (test.second_moment is None or test.second_moment.log_wealth >= test.log_target)
        )

    needed = sampled_directions(data.privacy.adjacency)
    missing = [side for side in needed if not any(test.direction == side and implies(test) for test in sampling.tests)]
    if missing:
        message = f"no accepted test implies the guarantee ({', '.join(missing)})"
        yield Inconsistency("evidence.sampling.tests", message)


def _solved_noise(data: CertificateModel) -> float | None:
    """Return the σ that was solved for, which is the σ of the tests; None if the noise was given."""
    for index, phase in enumerate(data.phases):
        for path in ("noise.multiplier", f"phases[{index}].noise.multiplier"):
            if data.solved is not None and data.solved.path == path:
                return phase.noise_multiplier
    return None


def at(value: object, *path: str, default: object = None) -> Any:
    """Return the value at a path of nested mappings, or `default` if there is none; `value` may have any shape."""
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value


def is_number(value: object) -> bool:
    """Return whether a value of a document is a number."""
    # An integer too large for a double does not count as a number of a document.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300
