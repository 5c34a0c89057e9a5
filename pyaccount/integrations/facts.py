"""What cards, bills of materials, trackers and logs say about a certificate: its numbers, each named as the bound that it is.

A certificate is stated elsewhere only if it does not contradict itself and its claim holds. Other certificates are errors,
because a reader of a card or of a bill of materials would not see the reason. Only trackers of experiments, which say whether the
claim holds, also take certificates of claims that fail; they get parameters, metrics and files, with the same names in each.
`Progress` says how private a run is so far, for the logs of a framework.

For bills of materials, a person says something about a model beside its certificate, and they state the time at which they are
written. A certificate knows nothing of a model's name, version, supplier or licence. What is not given is left out of a bill,
and never filled in with a guess.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyaccount.attestation.statement import Subject, subjects_of
from pyaccount.certificate.certificate import Certificate as Certified
from pyaccount.certificate.consistency import inconsistencies
from pyaccount.certificate.reading import given_certificate
from pyaccount.certificate.strict import refused
from pyaccount.errors import DomainError, PlanExceededError, RunError, printable, quoted

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant
    from pyaccount.certificate import Certificate
    from pyaccount.records.certificate import CertificateModel
    from pyaccount.training import TrainingRun


class StatedCertificate(NamedTuple):
    """A certificate that may be stated elsewhere, and what identifies its file."""

    data: CertificateModel
    #: The name of its file, without the folder, in a form that is safe to show; `certificate.json` for one in memory.
    file: str
    #: The SHA-256 of the bytes of its file. For a certificate in memory: of the file that `save` writes.
    sha256: str


def stated(certificate: str | os.PathLike[str] | Certificate, *, failing: bool = False) -> StatedCertificate:
    """Read a certificate that is to be stated elsewhere.

    Args:
        certificate: The path of a JSON file, or a certificate in memory.
        failing: Also accept a certificate whose claim does not hold. Its bounds are true all the same.

    Raises `CertificateError` if this is not a certificate of a training run, if its claim does not hold, or if it contradicts
    itself.
    """
    read = given_certificate(certificate)
    data = read.certificate()
    if contradictory := inconsistencies(data):
        first = contradictory[0]
        raise refused(
            read.file,
            f"the certificate contradicts itself at {first.path}: {first.message}. Nothing is written about it; make it "
            "again with `pyaccount certify`",
        )
    if not (data.holds or failing):
        raise refused(
            read.file,
            "the claim of the document is not certified, so it cannot be stated elsewhere; certify a document whose claim holds",
            ("holds",),
        )
    name = PurePath(read.file).name if isinstance(certificate, str | os.PathLike) else "certificate.json"
    return StatedCertificate(data, printable(name), read.sha256)


def bounds(data: CertificateModel) -> dict[str, float]:
    """Return the numbers of the guarantee, by names that say which bound each of them is.

    ε is in nats; δ and the failure probability are probabilities. The values are the doubles of the certificate, not rounded.
    """
    guarantee = data.guarantee
    return {
        "epsilon_upper": guarantee.epsilon,
        "epsilon_lower": guarantee.epsilon_lower,
        "delta_upper": guarantee.delta,
        "delta_lower": guarantee.delta_lower,
        "failure_probability_upper": guarantee.failure_probability,
    }


def circumstances(data: CertificateModel) -> dict[str, str | int]:
    """Return what the numbers are about: the kind of guarantee, the unit, the adjacency, and the mechanisms in words."""
    return {
        "guarantee": data.guarantee.kind,
        "unit": data.privacy.unit,
        "group_size": data.privacy.group_size,
        "adjacency": data.privacy.adjacency,
        "mechanisms": ", ".join(mechanisms(data)),
        "samplers": ", ".join(samplers(data)),
        "noise_multipliers": ", ".join(noise_multipliers(data)),
        "document_sha256": data.document_sha256,
    }


def mechanisms(data: CertificateModel) -> list[str]:
    """Return what each phase releases, in words: sums with noise in training, or the kind of its mechanism."""
    return [
        f"training with {phase.noise} noise" if phase.mechanism is None else phase.mechanism.kind
        for phase in data.phases
    ]


def samplers(data: CertificateModel) -> list[str]:
    """Return the sampler of each phase, as in the document."""
    return [phase.sampler for phase in data.phases]


def noise_multipliers(data: CertificateModel) -> list[str]:
    """Return the noise multiplier of each phase as text, in units of the clip norm; `none` for a phase with a mechanism."""
    return [
        str(phase.noise_multiplier)
        if phase.noise_multiplier is not None
        else "differs from round to round"
        if phase.mechanism is None
        else "none"
        for phase in data.phases
    ]


#: The name of ε of the rounds so far.
SO_FAR = "epsilon_so_far_upper"


class Tracked(NamedTuple):
    """What is logged about a certificate."""

    statement: str
    #: What the numbers are about, and whether the claim holds.
    parameters: dict[str, str | int | bool]
    #: Each number by a name that ends with the bound that it is: `_upper` or `_lower`.
    metrics: dict[str, float]
    #: Text files by name: the certificate, and a report for people.
    files: dict[str, str]


def tracked(certificate: str | os.PathLike[str] | Certificate) -> Tracked:
    """Return what is logged about a certificate, which may also be one of a claim that fails. Raises `CertificateError`."""
    known = stated(certificate, failing=True)
    one = Certified(known.data)
    parameters = {**circumstances(known.data), "holds": known.data.holds, "certificate_sha256": known.sha256}
    if isinstance(certificate, Certified):
        text = one.to_json()
    else:
        # The text of the file as it is, so that its digest stays.
        with open(certificate, encoding="utf-8", newline="") as stream:  # noqa: PTH123 - a name of any kind
            text = stream.read()
    files = {"certificate.json": text, "report.html": one.to_html()}
    return Tracked(known.data.statement, parameters, bounds(known.data), files)


def spent(accountant: Accountant) -> tuple[float, int, str]:
    """Return an upper bound on ε of the rounds so far (nats), how many they are, and the state of the accountant as JSON text.

    The bound is that of a run which was planned to end here; `docs/embedding.md` says what this means.
    """
    state = json.dumps(accountant.state_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return accountant.epsilon_spent(), accountant.steps, state


#: The kind of a guarantee without samples.
PROVEN = "deterministic"


class Progress:
    """Upper bounds on ε of the rounds that a run has released, each computed once."""

    def __init__(self, run: TrainingRun) -> None:
        """Take an open run. Raises `RunError` for anything else, such as a certificate or its file, which are not opened yet."""
        from pyaccount.training import TrainingRun  # for runs only; cards and bills of materials do without

        if not isinstance(run, TrainingRun):
            raise RunError(
                f"run is a {type(run).__name__}, and an open run is needed: give pyaccount.TrainingRun(certificate, folder, "
                "records=len(data), clip_norm=…)"
            )
        self._run = run
        self._found: dict[int, float] = {}

    def epsilon(self) -> float | None:
        """Return an upper bound on ε of the rounds so far, at the certificate's δ; None if the run has no certificate.

        After the last round it is the ε of the certificate. Before, it is the smaller one of that and of the bound for the first
        rounds of the plan. It is that of the certificate throughout if the latter was certified with samples, because samples
        for every length would take minutes each. The bound for the first rounds holds if the length of the run was fixed
        beforehand; a run that is stopped because somebody looked at its releases has the guarantee of the whole plan.
        """
        run = self._run
        if run.certificate is None:
            return None
        whole, done = run.certificate.epsilon, run.released
        if done >= run.rounds or run.certificate.data.guarantee.kind != PROVEN:
            return whole
        if done not in self._found:
            self._found[done] = min(whole, run.accountant().epsilon_spent())
        return self._found[done]

    def logged(self) -> dict[str, float]:
        """Return what logs contain, by the names that trackers get too (`bounds`).

        `epsilon_so_far_upper` and `delta_upper` hold together for the rounds so far, `epsilon_upper` and `delta_upper` for the
        whole plan. The result is empty for a run without a certificate, about which nothing is claimed.
        """
        epsilon, certificate = self.epsilon(), self._run.certificate
        if epsilon is None or certificate is None:
            return {}
        stated = bounds(certificate.data)
        return {SO_FAR: epsilon, "epsilon_upper": stated["epsilon_upper"], "delta_upper": stated["delta_upper"]}


#: The environment variable for reproducible builds: the time that is written, in seconds since 1970.
EPOCH = "SOURCE_DATE_EPOCH"

#: The name space of the identifiers of bills: they follow from what the bill is about.
_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:pyaccount:bill")


@dataclass(frozen=True, slots=True)
class DescribedModel:
    """A model, as its publisher describes it. Every field may be left out."""

    #: The name [the name of the certificate].
    name: str | None = None
    version: str | None = None
    #: The organisation that supplies the model.
    supplier: str | None = None
    #: Where the model can be downloaded: a URL.
    download_location: str | None = None
    #: An SPDX licence expression, such as Apache-2.0.
    license: str | None = None
    #: The day or the time of the release, in ISO 8601.
    release_time: str | None = None

    def released(self) -> str | None:
        """Return the time of the release in UTC, as bills write it. Raises `DomainError` for a text that is not a time."""
        if self.release_time is None:
            return None
        try:
            time = datetime.fromisoformat(self.release_time)
        except ValueError as error:
            message = f"`release_time` = {quoted(self.release_time)} is not a day or a time: write it as 2027-01-31"
            raise DomainError(message) from error
        return _written(time if time.tzinfo is not None else time.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Bill:
    """What identifies a bill: the files of the model, the time, and an identifier that follows from all of it."""

    subjects: tuple[Subject, ...]
    created: str
    identifier: uuid.UUID


def bill(certificate_sha256: str, subjects: Iterable[str | os.PathLike[str]], created: datetime | None) -> Bill:
    """Return what identifies a bill. `created` is the time of writing [SOURCE_DATE_EPOCH, or now].

    Raises `DomainError` for files that cannot be read, and for a SOURCE_DATE_EPOCH that is not a number.
    """
    if isinstance(subjects, str | os.PathLike):
        raise TypeError("subjects is a list of files, not one: give [file]")
    about = tuple(Subject(printable(one.name), one.sha256) for one in subjects_of(subjects))
    time = _written(_now() if created is None else created.astimezone(UTC))
    words = "\n".join([certificate_sha256, *(f"{one.sha256} {one.name}" for one in about), time])
    return Bill(about, time, uuid.uuid5(_SPACE, words))


def json_text(whole: dict[str, Any]) -> str:
    """Return a bill as JSON text. Half of a surrogate pair, as in words that are no text, is written as JSON spells it."""
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace").decode() + "\n"


def _now() -> datetime:
    seconds = os.environ.get(EPOCH)
    if seconds is None:
        return datetime.now(UTC)
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError) as error:
        message = f"{EPOCH} = {quoted(seconds)} is not a number of seconds since 1970: correct it, or unset it"
        raise DomainError(message) from error


def _written(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_size(name: str, data: Any, run: TrainingRun, more: str = "") -> None:
    """Raise `RunError` for data of another size than the run's; `name` is what the trainer calls them."""
    sizes = sorted(set(run.records))
    if sizes != [len(data)]:
        raise RunError(
            f"{name} has {len(data)} records, and the run has {' and '.join(map(str, sizes))}: give the data of the run{more}"
        )


def check_rounds_left(run: TrainingRun) -> None:
    """Raise `PlanExceededError` if no round is left to train."""
    if run.round >= run.rounds:
        raise PlanExceededError(
            f"all {run.rounds} rounds of the certified run are released: a longer training is another document, with more "
            "iterations, and a run of its own, whose guarantee adds to that of this one"
        )


def rounds_of_epoch(run: TrainingRun) -> range:
    """Return the rounds that are left of the epoch of the next round; epochs begin at multiples of `run.rounds_per_epoch`."""
    length = run.rounds_per_epoch
    return range(run.round, min((run.round // length + 1) * length, run.rounds))
