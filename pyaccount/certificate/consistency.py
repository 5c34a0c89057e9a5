"""What a certificate says about itself: the hash, the sentence, the document and the bounds must fit one another.

None of this recomputes a bound, so it cannot tell that a number is right; it tells that somebody changed one part and not
the others, at no cost. Each inconsistency has the path of what does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.bound_inconsistencies import bounds, evidence
from pyaccount.certificate.inconsistency import SOLVE, Inconsistency, at, is_number
from pyaccount.certificate.matrix_inconsistencies import matrix_inconsistencies
from pyaccount.certificate.statement import statement
from pyaccount.document.canonical import sha256_of
from pyaccount.errors import printable, shown

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.model import CertificateModel, PhaseRecord


#: Samplers whose rates follow from whole numbers of draws or of bins.
_NO_PROBABILITY = ("none", "random-allocation", "balls-in-bins", "with-replacement", "must-ow", "must-wo", "must-ww")


#: An epoch has no smaller share of a round than one over this: the most iterations over it are a double.
SMALLEST_EPOCH = 10**200


def inconsistencies(data: CertificateModel) -> list[Inconsistency]:
    """Everything in a certificate that contradicts the rest of it."""
    found = [
        *hash_inconsistencies(data.document, data.document_sha256),
        *_statement(data),
        *_document(data),
        *_solved(data),
        *_risk(data),
        *matrix_inconsistencies(data, _bodies(data.document)),
        *bounds(data),
        *evidence(data),
        *created_inconsistencies(data.created),
    ]
    return [Inconsistency(printable(one.path), printable(one.message)) for one in found]


def inconsistencies_of(data: CertificateModel | AmplificationCertificate) -> list[Inconsistency]:
    """The inconsistencies of a certificate of whichever kind."""
    if data.kind == "certificate":
        return inconsistencies(data)
    found = [*hash_inconsistencies(data.document, data.document_sha256), *created_inconsistencies(data.created)]
    return [Inconsistency(printable(one.path), printable(one.message)) for one in found]


def hash_inconsistencies(document: dict[str, Any], stated: str) -> Iterator[Inconsistency]:
    """Whether the hash stated is that of the document inside."""
    found = sha256_of(document)
    if found != stated:
        yield Inconsistency(
            "document_sha256", f"the document inside has the hash {found}, stated is {shown(stated)}: one was changed"
        )


def created_inconsistencies(created: str) -> Iterator[Inconsistency]:
    """Whether the time of creation is one."""
    if created_at(created) is None:
        yield Inconsistency("created", f"{shown(created)} is no time with a zone in ISO 8601")


def created_at(created: str) -> datetime | None:
    """When a certificate was made, or `None` if it does not say so."""
    try:
        time = datetime.fromisoformat(created)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def claim_of(document: dict[str, Any]) -> tuple[float, float] | None:
    """The (ε, δ) that the document inside a certificate claims, unless one of them is its blank."""
    epsilon, delta = at(document, "privacy", "epsilon"), at(document, "privacy", "delta")
    return (float(epsilon), float(delta)) if is_number(epsilon) and is_number(delta) else None


def _statement(data: CertificateModel) -> Iterator[Inconsistency]:
    derived = statement(
        data.name,
        data.privacy,
        data.guarantee,
        holds=data.holds,
        claim=claim_of(data.document),
        sampling=data.evidence.sampling,
        risk=data.risk,
    )
    if data.statement != derived:
        yield Inconsistency("statement", f"the fields of the certificate say: {derived}")


def _document(data: CertificateModel) -> Iterator[Inconsistency]:
    """The document's own words against the certificate's fields, and its claim against what is guaranteed."""
    document, privacy, guarantee = data.document, data.privacy, data.guarantee
    bodies = _bodies(document)
    user = any(at(body, "sampler", "kind") == "user-b-min-sep" for body in bodies)
    yield from _same("name", data.name, document.get("name"))
    yield from _same("privacy.adjacency", privacy.adjacency, at(document, "privacy", "adjacency"))
    yield from _same("privacy.group_size", privacy.group_size, at(document, "privacy", "group_size", default=1))
    yield from _same("privacy.unit", privacy.unit, "user" if user else "record")
    if len(bodies) != len(data.phases):
        yield Inconsistency("phases", f"{len(data.phases)} phases, where the document has {len(bodies)}")
    else:
        for index, (phase, body) in enumerate(zip(data.phases, bodies, strict=True)):
            yield from _phase(f"phases[{index}]", phase, body)
    noises = {phase.noise_multiplier for phase in data.phases}
    shared = next(iter(noises)) if len(noises) == 1 else None
    if data.noise_multiplier != shared:
        yield Inconsistency(
            "noise_multiplier", f"{data.noise_multiplier!r}, where the phases have {shared!r} in common"
        )
    for name, bound in (("epsilon", guarantee.epsilon), ("delta", guarantee.delta)):
        claimed = at(document, "privacy", name)
        if data.holds and is_number(claimed) and bound > claimed:
            yield Inconsistency(
                f"guarantee.{name}", f"{bound!r} is above the claim, {claimed!r}, which is said to hold"
            )
    if not data.holds and claim_of(document) is None and data.risk is None:
        yield Inconsistency("holds", "false, where the document claims nothing that could fail")


def _phase(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    multiplier = at(body, "noise", "multiplier")
    yield from _same(f"{path}.sampler", phase.sampler, at(body, "sampler", "kind"))
    yield from _chosen(path, phase, body)
    yield from _length(path, phase, body)
    yield from _same(f"{path}.noise_multiplier", phase.noise_multiplier, multiplier)
    yield from _releases(path, phase, body)
    yield from _same(f"{path}.noise", phase.noise, at(body, "noise", "kind", default="gaussian"))
    yield from _same(f"{path}.count", phase.count, at(body, "count", default=1))
    yield from _same(f"{path}.draws_per_iteration", phase.draws_per_iteration or 1, _draws(body))
    yield from _rates(path, phase, body)
    yield from _allocated(path, phase, body)


def _chosen(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """Of the sampler's keys that the document leaves to a choice, each has one of its values, and no other key has."""
    sampler = at(body, "sampler")
    keys = sampler.items() if isinstance(sampler, dict) else ()
    lists = {key: at(value, "choose") for key, value in keys if isinstance(value, dict)}
    stated = phase.chosen or {}
    for key in (*lists, *(key for key in stated if key not in lists)):
        allowed = lists.get(key)
        if not isinstance(allowed, list) or key not in stated or stated[key] not in allowed:
            said = shown(allowed) if key in lists else "no choice"
            yield Inconsistency(f"{path}.chosen.{key}", f"{shown(stated.get(key))}, where the document says {said}")


def _releases(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """What else is released of a batch, and what that makes of the multiplier."""
    listed = at(body, "noise", "also")
    written = [(at(one, "what"), at(one, "multiplier")) for one in listed] if isinstance(listed, list) else []
    stated = [(one.what, one.noise_multiplier) for one in phase.also or ()]
    if stated != written:
        yield Inconsistency(f"{path}.also", f"{shown(stated)}, where the document says {shown(written)}")
    found, multipliers = None, [phase.noise_multiplier, *(sigma for _, sigma in stated)]
    if stated:
        from pyaccount.document.ranges import NOISE_MULTIPLIER  # few documents have several releases
        from pyaccount.document.releases import effective

        # Squares of others might vanish; no document has them.
        found = effective(multipliers)[0] if all(sigma in NOISE_MULTIPLIER for sigma in multipliers) else None
    if phase.effective_noise_multiplier != found:
        yield Inconsistency(
            f"{path}.effective_noise_multiplier",
            f"{phase.effective_noise_multiplier!r}, where the releases of a batch make {found!r}",
        )


def _length(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """The iterations, stated or as many as the epochs are that the document asks for."""
    stated, asked = at(body, "training", "iterations"), at(body, "training", "epochs")
    if stated is not None or not is_number(asked):
        yield from _same(f"{path}.iterations", phase.iterations, stated)
    if not is_number(asked):
        if phase.epochs is not None:
            yield Inconsistency(f"{path}.epochs", f"{shown(phase.epochs)}, where the document counts in iterations")
        return
    from pyaccount.document.epochs import epoch_of, epochs_of, iterations_of  # few count in epochs

    names = ("dataset_size", "expected_batch_size", "sampling_probability", "participation_rate")
    given = {name: at(body, "training", name) for name in names}
    numbers = {name: value for name, value in given.items() if is_number(value) and value > 0}
    draws = _draws(body)
    bins, apart = at(body, "sampler", "bins"), at(body, "sampler", "min_separation")
    apart = at(body, "sampler", "partitions") if phase.sampler == "cyclic-poisson" else apart
    # What keeps participations apart is the number of bands unless it is stated.
    apart = phase.matrix.bands if apart is None else apart
    length = epoch_of(
        phase.sampler,
        numbers,
        bins=round(bins) if is_number(bins) else None,
        separation=round(apart) if apart is not None and is_number(apart) else None,
        draws=round(draws),
        allocation=_allocation(body),
    )
    if length is None or length <= 0:
        yield Inconsistency(
            f"{path}.iterations", "the document counts in epochs, and does not say how many rounds one has"
        )
        return
    yield from _same(f"{path}.iterations", phase.iterations, iterations_of(asked, length))
    if length * SMALLEST_EPOCH < 1:
        yield Inconsistency(f"{path}.epochs", "an epoch of the document has hardly any rounds")
        return
    yield from _same(f"{path}.epochs", phase.epochs, epochs_of(phase.iterations, length))


def _allocation(body: object) -> tuple[int, int] | None:
    """Among how many rounds a record's are chosen, and how many of them it takes part in, where a document says it."""
    rounds, taken = at(body, "sampler", "iterations_per_allocation"), at(body, "sampler", "participations")
    taken = 1 if taken is None else taken
    if not (is_number(rounds) and is_number(taken) and rounds >= 1 and taken >= 1):
        return None
    return round(rounds), round(taken)


def _draws(body: object) -> float:
    """How many batches a round draws, as the document says; at least 1, whatever it says."""
    stated = at(body, "sampler", "draws_per_iteration")
    return stated if is_number(stated) and stated >= 1 else 1


def _rates(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """How often a record takes part, where that is stated or a quotient of what is: such numbers are the same to the last bit.

    `document.rates` derives all of them, from models that take longer to load than everything else here to run.
    """
    names = ("sampling_probability", "participation_rate", "expected_batch_size", "dataset_size")
    stated = {name: at(body, "training", name) for name in names}
    given = {name: float(value) for name, value in stated.items() if is_number(value)}
    if "expected_batch_size" in given:
        yield from _same(f"{path}.expected_batch_size", phase.expected_batch_size, given["expected_batch_size"])
    rates = {name: given[name] for name in names[:2] if name in given}
    draws = _draws(body)
    batch, records = given.get("expected_batch_size"), given.get("dataset_size", 0.0)
    if stated["expected_batch_size"] == SOLVE:
        batch = phase.expected_batch_size
    if batch is not None and records > 0.0:
        rates["expected_batch_size"] = batch / records
    if phase.sampler == "fixed-size":
        # A rate is rounded to a whole number of records first.
        rates = {"expected_batch_size": batch / records} if batch is not None and batch.is_integer() and records else {}
    if draws > 1 and rates:
        # A rate is that of all draws of a round, a probability that of one.
        each = {name: rate if name == names[0] else rate / draws for name, rate in rates.items()}
        if batch is not None and records > 0.0:
            each["expected_batch_size"] = batch / (draws * records)
        if names[0] in rates:
            rates[names[0]] = draws * rates[names[0]]
        yield from _same(f"{path}.{names[0]}", phase.sampling_probability, max(each.values()))
        yield from _same(f"{path}.{names[1]}", phase.participation_rate, max(rates.values()))
    elif phase.sampler in ("poisson", "fixed-size") and rates:
        # Each statement is of the same number; they agree to rounding, and the largest is used.
        for name in names[:2]:
            yield from _same(f"{path}.{name}", getattr(phase, name), max(rates.values()))
    elif len(rates) == 1 and phase.sampler not in _NO_PROBABILITY:
        for name, rate in rates.items():
            field = "participation_rate" if name == "expected_batch_size" else name
            if getattr(phase, field) is not None:
                yield from _same(f"{path}.{field}", getattr(phase, field), rate)


def _allocated(path: str, phase: PhaseRecord, body: object) -> Iterator[Inconsistency]:
    """How often a record takes part in an allocation, and so the batch that is expected."""
    allocation, records = _allocation(body), at(body, "training", "dataset_size")
    if phase.sampler != "random-allocation" or allocation is None:
        return
    rate = allocation[1] / allocation[0]
    yield from _same(f"{path}.participation_rate", phase.participation_rate, rate)
    if is_number(records) and at(body, "training", "expected_batch_size") is None:
        yield from _same(f"{path}.expected_batch_size", phase.expected_batch_size, records * rate)


def _risk(data: CertificateModel) -> Iterator[Inconsistency]:
    """The budget of risk, in the certificate and in its document."""
    if data.risk is not None:
        from pyaccount.certificate.risk import risk_inconsistencies  # few have a budget of risk

        yield from risk_inconsistencies(data, data.risk)
    elif at(data.document, "privacy", "risk") is not None:
        yield Inconsistency("risk", "null, where the document has a budget of risk")


def _solved(data: CertificateModel) -> Iterator[Inconsistency]:
    """The blank that is said to be filled, against the document's and against where its value went."""
    blanks = dict(_blanks(data))
    if data.solved is None:
        if blanks:
            yield Inconsistency("solved", f"null, where the document leaves {next(iter(blanks))} open")
        return
    path, value = data.solved.path, data.solved.value
    if path not in blanks:
        yield Inconsistency("solved.path", f"the document does not leave {shown(path)} open")
    elif blanks[path] != value:
        yield Inconsistency("solved.value", f"{value!r}, where the certificate's own figure is {blanks[path]!r}")


def _blanks(data: CertificateModel) -> Iterator[tuple[str, float | None]]:
    """The document's blanks, with the numbers that the certificate has for them."""
    numbers: dict[str, float] = {
        "epsilon": data.guarantee.epsilon,
        "delta": data.guarantee.delta,
        "group_size": float(data.privacy.group_size),
    }
    for name, number in numbers.items():
        if at(data.document, "privacy", name) == SOLVE:
            yield f"privacy.{name}", number
    phased = isinstance(data.document.get("phases"), list)
    for index, (phase, body) in enumerate(zip(data.phases, _bodies(data.document), strict=False)):
        before = f"phases[{index}]." if phased else ""
        parts: dict[tuple[str, str], float | None] = {
            ("noise", "multiplier"): phase.noise_multiplier,
            ("training", "iterations"): phase.iterations,
            ("training", "expected_batch_size"): phase.expected_batch_size,
        }
        for (section, name), part in parts.items():
            if at(body, section, name) == SOLVE:
                yield f"{before}{section}.{name}", part


def _same(path: str, stated: object, written: object) -> Iterator[Inconsistency]:
    """The certificate's field against what the document says there; a blank says nothing."""
    if written not in (stated, SOLVE):
        said = "nothing" if written is None else shown(written)
        yield Inconsistency(path, f"{shown(stated)}, where the document says {said}")


def _bodies(document: dict[str, Any]) -> list[object]:
    phases = document.get("phases")
    return list(phases) if isinstance(phases, list) else [document]
