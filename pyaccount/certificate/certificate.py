"""`Certificate`, the public object: its data, its profile, and its forms."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyaccount.arguments import number_of
from pyaccount.certificate.saving import certificate_text, contradictions, save
from pyaccount.document.ranges import SMALLEST_DELTA
from pyaccount.forks import cached_property
from pyaccount.pages.readable import Readable
from pyaccount.reading.numerals import spelled_bound
from pyaccount.records.certificate import CertificateModel, ProfilePoint, Solved
from pyaccount.rounding import shortest, up

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from pyaccount.certificate.matrix import StrategyMatrix
    from pyaccount.certificate.meaning import Meaning
    from pyaccount.document.document import Document
    from pyaccount.document.tree import TrainingNode
    from pyaccount.execute.engine import Answer, Question
    from pyaccount.execute.sampling.profile import Curve
    from pyaccount.pages.page import Page
    from pyaccount.reading.sources import Folders
    from pyaccount.risk.tradeoff import TradeOff


class Interval(NamedTuple):
    """A proven interval: the true value is at least `lower` and at most `upper`."""

    lower: float
    upper: float


class Profile(Readable):
    """The privacy profile δ(ε) of the certified run: the points of the certificate, and any other point on request.

    Iterating gives the certificate's points. `delta` and `epsilon` give a proven interval at any other point, for the
    larger of both directions, by composing the rounds of the document once more. For a sampled mechanism they draw new
    samples with the certificate's seed instead: each interval holds with probability at least 1 − 2q, where q is the
    certificate's `pointwise_failure_probability`, unless the guarantee itself is wrong (it also bounds the upper ends).
    `tolerance` then has no effect.
    """

    def __init__(self, data: CertificateModel) -> None:
        self._data = data

    def __iter__(self) -> Iterator[ProfilePoint]:
        return iter(self._data.profile)

    def __len__(self) -> int:
        return len(self._data.profile)

    def __eq__(self, other: object) -> bool:
        return self._data == other._data if isinstance(other, Profile) else NotImplemented

    def __hash__(self) -> int:
        return _hash_of(self._data)

    def __reduce__(self) -> tuple[type[Profile], tuple[CertificateModel]]:
        # Samples that were drawn for points on request are not pickled.
        return Profile, (self._data,)

    def to_dict(self) -> dict[str, list[float | None]]:
        """Return the certificate's points as columns: `epsilon`, `delta` (upper bound) and `delta_lower` (lower bound).

        A sampled profile also has `delta_estimate` and `standard_error`, which are not bounds.
        """
        names = ["epsilon", "delta", "delta_lower"]
        if self._data.evidence.sampling is not None:
            names += ["delta_estimate", "standard_error"]
        return {name: [getattr(point, name) for point in self] for name in names}

    def to_pandas(self) -> DataFrame:
        """Return the columns of `to_dict` as a pandas data frame. Raises `MissingExtraError`."""
        from pyaccount.tables import data_frame

        return data_frame(self.to_dict())

    def plot(self) -> Figure:
        """Plot the certificate's points with matplotlib: the upper and the lower bound on δ over ε.

        Returns matplotlib's `Figure`, which a notebook shows and `savefig` writes. Straight lines join the points only
        for the eye: they state nothing about δ between the points. Raises `MissingExtraError`.
        """
        from pyaccount.certificate.report.curves import stated_profile
        from pyaccount.pages.figure import figure

        return figure(stated_profile(self._data))

    def __repr__(self) -> str:
        points = self._data.profile
        ends = f", ε from {shortest(points[0].epsilon)} to {shortest(points[-1].epsilon)}" if points else ""
        return f"<Profile of {json.dumps(self._data.name)}: {len(points)} points{ends}>"

    def page(self) -> Page:
        """Return the certificate's points as a page."""
        from pyaccount.certificate.report.sections import profile_page

        return profile_page(self._data)

    def delta(self, epsilon: float, *, tolerance: float = 1e-3) -> Interval:
        """Return a proven interval for δ at `epsilon` ≥ 0 (nats), of relative width `tolerance`, larger direction."""
        epsilon = number_of("epsilon", epsilon, "at least 0 and finite", 0.0, float("inf"))
        tolerance = _tolerance_of(tolerance)
        if self._data.evidence.sampling is not None:
            point = self._curve.point(epsilon)
            return Interval(point.delta_lower, point.delta)
        answer = self._ask(epsilon=epsilon, delta=None, tolerance=tolerance)
        return Interval(answer.lower, min(1.0, answer.upper))

    def epsilon(self, delta: float, *, tolerance: float = 1e-4) -> Interval:
        """Return a proven interval for ε (nats) at `delta`, of relative width `tolerance`, for the larger direction.

        `delta` must be in `ranges.DELTA`; 0 is also allowed if all noise is Laplace noise, or if the guarantee is for δ = 0.
        Raises `DomainError` otherwise.
        """
        laplace = all(phase.noise == "laplace" for phase in self._data.phases)
        pure = delta == 0 and (laplace or self._data.guarantee.delta == 0.0)
        allowed = f"at least {spelled_bound(SMALLEST_DELTA)} and less than 1"
        delta = 0.0 if pure else number_of("delta", delta, allowed, SMALLEST_DELTA, 1.0)
        tolerance = _tolerance_of(tolerance)
        if self._data.evidence.sampling is not None:
            return Interval(*self._curve.epsilons(delta))
        answer = self._ask(epsilon=None, delta=delta, tolerance=tolerance)
        return Interval(answer.lower, answer.upper)

    @cached_property
    def _curve(self) -> Curve:
        from pyaccount.execute.sampling.evidence import curve_of

        sampling = self._data.evidence.sampling
        assert sampling is not None
        guarantee = self._data.guarantee
        known = (guarantee.epsilon, guarantee.delta)
        return curve_of(
            Certificate(self._data).document(), known, sampling.seed, sampling.pointwise_failure_probability
        )

    def _ask(self, *, epsilon: float | None, delta: float | None, tolerance: float) -> Answer:
        # The engine is needed only for points that the certificate does not contain.
        from pyaccount.execute.engine import Engine, Question
        from pyaccount.plan.compiling import compile_document

        document = Certificate(self._data).document()
        question: Question = Question(epsilon, delta, tolerance)
        return Engine().ask(compile_document(document).at().bounds(), question)


def _hash_of(data: CertificateModel) -> int:
    """Return a hash of the fields that distinguish most certificates. Certificates are equal only if all fields are."""
    return hash((data.document_sha256, data.created, data.guarantee))


def _tolerance_of(tolerance: float) -> float:
    return number_of("tolerance", tolerance, "greater than 0 and less than 1", 5e-324, 1.0)


def chosen(data: CertificateModel, document: Document) -> Document:
    """Return the candidate of a document with choices that the certificate is about, or else the first one."""
    candidates = document.candidates()
    if not data.phases:
        # The certificate was read from a file, which may say anything.
        return candidates[0]
    phase = data.phases[0]
    stated = {"kind": phase.matrix.kind, "bands": phase.matrix.bands, **(phase.chosen or {})}

    def fits(run: TrainingNode) -> bool:
        sections = {"matrix": run.matrix, "sampler": run.sampler}
        return all(
            getattr(sections[str(path[-2])], str(path[-1])) == stated.get(str(path[-1])) for path in document.choices
        )

    return next((one for one in candidates if fits(one.run)), candidates[0])


def found(data: CertificateModel, document: Document) -> Document:
    """Return a document with the matrix that its certificate states. Raises `DocumentError` if that states none."""
    matrix = data.phases[0].matrix if data.phases else None
    if matrix is not None and matrix.buffers is not None:
        return document.with_buffers(matrix.buffers.scales, matrix.buffers.decays)
    return document.with_coefficients((matrix.coefficients or ()) if matrix is not None else ())


def resolved(data: CertificateModel, document: Document) -> Document:
    """Return the document of a certificate with the choices, the matrix and the value of the blank that it states."""
    if document.choices:
        document = chosen(data, document)
    if document.searched:
        document = found(data, document)
    if data.solved is not None and document.blank is not None:
        document = document.with_value(document.blank, data.solved.value)
    return document


class Certificate(Readable):
    """A privacy certificate. `data` contains every field; the properties are those that are used most.

    A certificate is true if its claim holds: `if pyaccount.certify(document):` asks that.
    """

    def __init__(self, data: CertificateModel) -> None:
        self.data = data

    def __bool__(self) -> bool:
        return self.holds

    @property
    def epsilon(self) -> float:
        """Upper bound on ε (nats), at `delta`."""
        return self.data.guarantee.epsilon

    @property
    def epsilon_lower(self) -> float:
        """Lower bound on ε (nats): no smaller ε holds at `delta`."""
        return self.data.guarantee.epsilon_lower

    @property
    def delta(self) -> float:
        """Upper bound on δ, at `epsilon`."""
        return self.data.guarantee.delta

    @property
    def noise_multiplier(self) -> float | None:
        """σ in units of the clip norm; None if it differs between phases."""
        return self.data.noise_multiplier

    @property
    def solved(self) -> Solved | None:
        """What was computed for the document's blank: its `path` and its `value`; None for a claim."""
        return self.data.solved

    @property
    def iterations(self) -> int | None:
        """The number of iterations of one run; None if it differs between phases."""
        first, *further = (phase.iterations for phase in self.data.phases)
        return None if any(one != first for one in further) else first

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true of the training run; the guarantee holds only then."""
        return tuple(self.data.assumptions)

    @property
    def holds(self) -> bool:
        """Whether the document's claim is certified."""
        return self.data.holds

    @property
    def statement(self) -> str:
        """The guarantee in one sentence."""
        return self.data.statement

    @property
    def profile(self) -> Profile:
        """The privacy profile, with its methods `delta` and `epsilon` for further points."""
        return Profile(self.data)

    @property
    def matrix(self) -> StrategyMatrix | None:
        """The strategy matrix C to train with; None if it differs between phases: see `matrices`."""
        first, *further = self.matrices
        return None if any(one != first for one in further) else first

    @property
    def matrices(self) -> tuple[StrategyMatrix, ...]:
        """The strategy matrix of each phase, in order; a document without phases has one."""
        from pyaccount.certificate.matrix import StrategyMatrix  # only training needs this

        return tuple(map(StrategyMatrix.of, self.data.phases))

    @property
    def trade_off(self) -> TradeOff:
        """The certified trade-off function: bounds on the error rates of every attack, from its points.

        It has the methods of `TradeOff`.
        """
        from pyaccount.certificate.meaning import trade_off  # seldom needed

        return trade_off(self.data)

    @property
    def meaning(self) -> Meaning:
        """What the numbers mean for an attacker, and the Gaussian mechanism that they compare with."""
        from pyaccount.certificate.meaning import meaning

        return meaning(self.data)

    def document(self, *, folders: Folders = ()) -> Document:
        """Return the document that the certificate is about, with the choices, the matrix and the value that it states.

        What was certified is in place of the blank. Files that the document names lie in the working folder, or in one of
        `folders`. Raises `DocumentError` if the document cannot be read here.
        """
        from pyaccount.document.loading import load

        return resolved(self.data, load(self.data.document, folders=folders))

    def page(self) -> Page:
        """Return the certificate as a page, with a list of what in it contradicts the rest."""
        from pyaccount.certificate.report import page_of

        return page_of(self.data, contradictions(self.data))

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return certificate_text(self.data, "json")

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate from JSON text. Raises `CertificateError` if the text is not a certificate."""
        from pyaccount.certificate.reading import parse_certificate  # `reading` imports this module

        return cls(parse_certificate(text.encode(errors="surrogatepass"), "certificate").certificate())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a certificate from a file. Raises `CertificateError` if the file is not a certificate."""
        from pyaccount.certificate.reading import read_certificate  # `reading` imports this module

        return cls(read_certificate(path).certificate())

    def save(self, path: str | os.PathLike[str], *, form: str | None = None) -> None:
        """Write the form that the ending of the file's name says: `.json`, `.html`, `.md` or `.txt`.

        If `form` (json, html, markdown, text) is given, it decides, with a warning if the ending says another form. The
        file is written completely or not at all. Raises `DomainError` for an ending that is not known, and `OSError`.
        """
        save(self.data, path, form)

    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, Certificate) else NotImplemented

    def __hash__(self) -> int:
        return _hash_of(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data, with the same contents as its JSON."""
        return self.data.model_dump(mode="json")

    def __repr__(self) -> str:
        from pyaccount.certificate.report import brief

        lines = dict(brief(self.data))
        guarantee = self.data.guarantee
        bound = f"ε ≤ {up(guarantee.epsilon)} at δ = {up(guarantee.delta)}"
        return f"<Certificate {json.dumps(self.data.name)}: {bound}; solved: {lines['solved']}>"
