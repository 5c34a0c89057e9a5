"""The first rounds of a planned run, as a document.

What is released after t of n rounds is the run's own mechanism, cut short: the noise of its first t rows. C is lower
triangular, so these rows depend on the leading t × t block of C alone, and the document of the first t rounds has *that* block:
the matrix is built and normalised for n rounds and then cut, never built or normalised anew for t. A part of the document
that says something about all n rounds (bands that are also a separation, bins, the most participations) is written out first.

Not every prefix has a document. Bins, and parts drawn at random, are described from their first complete turn on, and a
matrix from a file has the size of the whole run; and a document has only so many phases. Then the shortest prefix that has one
stands for the shorter ones: what is released earlier is a function of what is released by then, so its guarantee bounds theirs
(post-processing).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.claimed import unseeded
from pyaccount.document.document import Document
from pyaccount.document.foreign import from_value
from pyaccount.document.nodes import Place, Table
from pyaccount.document.ranges import NAME_LENGTH, PHASES
from pyaccount.errors import DocumentError
from pyaccount.plan.common import whole
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.samplers import sampler_plan

if TYPE_CHECKING:
    from pyaccount.document.views import Body


@dataclass(frozen=True, slots=True)
class Planned:
    """A run whose noise is known. `length` is how many rounds it has; `sampled` whether certifying draws samples.

    `fingerprints` are those of its matrices from files, in order: a file's name does not say which matrix is in it.
    """

    document: Document
    length: int
    sampled: bool
    fingerprints: tuple[str, ...] = ()

    def covers(self, steps: int) -> int:
        """The length of the shortest prefix that has a document and contains the first `steps` rounds."""
        done = 0
        for index, body in enumerate(self.document.bodies):
            iterations = whole(body.training.iterations)
            runs, rest = divmod(steps - done, iterations)
            if runs < body.count:
                # Whole runs and a part of one are two phases, for which there may be no room.
                full = runs > 0 and index + 2 not in PHASES
                return done + runs * iterations + (0 if not rest else iterations if full else _expressible(body, rest))
            done += body.count * iterations
        return done

    def mapping(self, steps: int) -> dict[str, Any]:
        """The document of the first `covers(steps)` rounds, ε blank. Takes 1 ≤ steps ≤ length.

        Raises `DocumentError` if a file holds another matrix than it did when the run was planned.
        """
        self._unchanged()
        covered = self.covers(steps)
        mapping = copy.deepcopy(self.document.to_mapping())
        mapping["privacy"]["epsilon"] = "solve"
        if covered == self.length:
            return mapping
        # The sentence of a certificate names the document, and so says what else must be true of these rounds.
        suffix = f", first {covered} of {self.length} rounds, fixed beforehand"
        mapping["name"] = mapping["name"][: int(NAME_LENGTH.maximum) - len(suffix)] + suffix
        kept: list[dict[str, Any]] = []
        left = covered
        for body in self.document.bodies:
            stated = mapping["phases"][body.path[1]] if body.path else _body_of(mapping)
            left -= _keep(self.document, body, stated, left, kept)
            if left == 0:
                break
        for key in _body_of(mapping):
            del mapping[key]
        mapping.pop("phases", None)
        if len(kept) == 1 and "name" not in kept[0]:
            return mapping | kept[0]
        return mapping | {"phases": kept}

    def prefix(self, steps: int) -> Document:
        """`mapping(steps)`, read; files are looked for where those of the planned document are."""
        return document_of(self.mapping(steps), self.document.file)

    def _unchanged(self) -> None:
        """Raise `DocumentError` if a file holds another matrix by now."""
        dense = [body for body in self.document.bodies if matrix_plan(body).from_file]
        found = zip(dense, self.fingerprints, _fingerprints_of(self.document), strict=True)
        message = (
            "the file holds another matrix than when the run was planned: what was released had the noise of that one"
        )
        problems = [
            self.document.problem(
                "matrix-file", body.at("matrix", "file"), message, allowed=f"entries of sha256 {then}"
            )
            for body, then, now in found
            if then != now
        ]
        if problems:
            raise DocumentError(problems)


def planned(document: Document) -> Planned:
    """The plan of a document whose only blank is ε, if any. Raises `DocumentError` for others, and for what has no bound."""
    blank = document.blank
    unknown = [path for path in (blank, *document.choices) if path is not None and path != ("privacy", "epsilon")]
    if unknown:
        message = (
            "an accountant needs a run without blanks: certify the document first, then Accountant.from_certificate(…) takes "
            "what was found"
        )
        raise DocumentError([document.problem("unfilled-blank", path, message, allowed="a value") for path in unknown])
    if document.risk is not None:
        message = (
            "an accountant counts ε at a δ, not a risk: certify the document first, then Accountant.from_certificate(…) takes "
            "the ε and δ that were certified with it"
        )
        raise DocumentError(
            [document.problem("contradiction", ("privacy", "risk"), message, allowed="epsilon and delta")]
        )
    plan = compile_document(document)
    if plan.sampled and document.accounting.seed is None:
        # A test on samples that is repeated with other seeds until it passes proves nothing: one document, one seed.
        document = seeded(document)
    length = sum(body.count * whole(body.training.iterations) for body in document.bodies)
    return Planned(document, length, plan.sampled, _fingerprints_of(document))


def _fingerprints_of(document: Document) -> tuple[str, ...]:
    """The hashes of the entries of each matrix from a file, in order. Raises `DocumentError` for files that hold none."""
    bodies = [body for body in document.bodies if matrix_plan(body).from_file]
    return tuple(strategy(document, body).fingerprint or "" for body in bodies)


def seeded(document: Document) -> Document:
    """The document with a seed that follows from what it says otherwise, its ε and δ included."""
    plain = unseeded(document)
    section = plain.to_mapping().get("accounting", {})
    return plain.with_value(("accounting",), section | {"seed": int(plain.sha256[:16], 16)})


def document_of(mapping: dict[str, Any], file: str | None) -> Document:
    """The document of a mapping that stands for a file: `matrix.file` is looked for beside it."""
    root, problems = from_value(mapping, Place(file))
    assert isinstance(root, Table)
    return Document(root, file, problems)


def _body_of(mapping: dict[str, Any]) -> dict[str, Any]:
    """What a document with one body says about it."""
    return {
        key: mapping[key] for key in ("training", "sampler", "matrix", "workload", "noise", "count") if key in mapping
    }


def _expressible(body: Body, rounds: int) -> int:
    """The least number of rounds of one run, at least `rounds`, that a document can describe."""
    if matrix_plan(body).from_file:
        return whole(body.training.iterations)
    return sampler_plan(body).shortest_run(body, rounds)


def _keep(document: Document, body: Body, stated: dict[str, Any], left: int, kept: list[dict[str, Any]]) -> int:
    """Add what a body has among the next `left` rounds: whole runs, then part of one. Gives how many rounds that is."""
    iterations = whole(body.training.iterations)
    runs, rest = divmod(left, iterations)
    if runs >= body.count:
        kept.append(stated)
        return body.count * iterations
    if runs:
        kept.append({**{key: value for key, value in stated.items() if key != "count"}, "count": runs})
    if rest:
        kept.append(_cut(document, body, stated, rest))
    return left


def _cut(document: Document, body: Body, stated: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The first rounds of one run of a body."""
    # The leading block is that of the matrix for the whole run's workload, whose learning rates are more than its rounds.
    cut = copy.deepcopy({key: value for key, value in stated.items() if key not in ("count", "matrix", "workload")})
    cut["training"].pop("epochs", None)
    cut["training"]["iterations"] = rounds
    cut["sampler"] |= sampler_plan(body).cut(body, rounds)
    return cut | matrix_plan(body).leading_block(strategy(document, body), body, cut["noise"], rounds)
