"""The first rounds of a planned run, as a document.

The release after t of n rounds is the run's own mechanism, cut short: it has the noise of the first t rows. C is lower
triangular, so these rows depend on the leading t × t block of C alone, and the document of the first t rounds has
*that* block: the matrix is built and normalised for n rounds and then cut; it is never built or normalised for t
rounds. A part of the document that describes all n rounds (bands that are also a separation, bins, the maximum number
of participations) is first replaced by its explicit values.

Not every prefix has a document. Bins, and parts drawn at random, can be described only from their first complete cycle
on, a matrix from a file has the size of the whole run, and a document has a maximum number of phases. Then the shortest
prefix that has a document replaces the shorter ones: earlier releases are a function of the releases of that prefix, so
its guarantee bounds theirs (post-processing).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyaccount.certificate.claimed import unseeded
from pyaccount.document.document import Document
from pyaccount.document.phases import with_own_noise
from pyaccount.document.ranges import NAME_LENGTH, PHASES
from pyaccount.errors import DocumentError
from pyaccount.plan.common import number
from pyaccount.plan.compiling import compile_document
from pyaccount.plan.matrices import matrix_plan, strategy
from pyaccount.plan.protection import Protection, of_run
from pyaccount.plan.samplers import sampler_plan
from pyaccount.reading.nodes import Place, Table, from_value
from pyaccount.store.running import contents_of

if TYPE_CHECKING:
    from pyaccount.errors import Path
    from pyaccount.plan.protection import Case, RunCase


@dataclass(frozen=True, slots=True)
class Planned:
    """A run whose noise is known. `length` is its number of rounds; `sampled` states whether certifying draws samples.

    `fingerprints` are those of what its files hold, in order: the name of a file does not identify its matrix or schedule.
    """

    document: Document
    length: int
    sampled: bool
    fingerprints: tuple[str, ...] = ()

    def covers(self, steps: int) -> int:
        """Return the length of the shortest prefix that has a document and contains the first `steps` rounds."""
        done = 0
        for index, case in enumerate(Protection.of(self.document).cases()):
            body = case.node
            iterations = number(body.rounds)
            runs, rest = divmod(steps - done, iterations)
            if runs < body.count:
                # Whole runs and a part of one are two phases; the document may not have room for both.
                if rest and runs > 0 and index + 2 not in PHASES:
                    rest = iterations
                elif rest:
                    run = of_run(case)
                    whole = matrix_plan(run).from_file
                    rest = iterations if whole else sampler_plan(run).shortest_run(rest)
                return done + runs * iterations + rest
            done += body.count * iterations
        return done

    def mapping(self, steps: int) -> dict[str, Any]:
        """Return the document of the first `covers(steps)` rounds, with ε blank. It requires 1 ≤ steps ≤ length.

        Raises `DocumentError` if a file contains another matrix than it did when the run was planned.
        """
        self._unchanged()
        covered = self.covers(steps)
        mapping = copy.deepcopy(self.document.to_mapping())
        mapping["privacy"]["epsilon"] = "solve"
        if covered == self.length:
            return mapping
        # The sentence of a certificate contains the document's name, and so states the further condition on these
        # rounds.
        suffix = f", first {covered} of {self.length} rounds, fixed beforehand"
        mapping["name"] = mapping["name"][: int(NAME_LENGTH.maximum) - len(suffix)] + suffix
        kept: list[dict[str, Any]] = []
        left = covered
        for case in Protection.of(self.document).cases():
            path = case.node.path
            stated = with_own_noise(mapping["phases"][path[1]] if path else _body_of(mapping), case.node)
            left -= _keep(case, stated, left, kept)
            if left == 0:
                break
        for key in _body_of(mapping):
            del mapping[key]
        mapping.pop("phases", None)
        if len(kept) == 1 and "name" not in kept[0]:
            return mapping | kept[0]
        return mapping | {"phases": kept}

    def prefix(self, steps: int) -> Document:
        """Return `mapping(steps)` as a document; its files are looked for beside the planned document."""
        root, problems = from_value(self.mapping(steps), Place(self.document.file))
        assert isinstance(root, Table)
        return self.document.made(root, problems)

    def _unchanged(self) -> None:
        """Raise `DocumentError` if a file contains another matrix or another schedule now."""
        found = zip(_contents_of(self.document).items(), self.fingerprints, strict=True)
        problems = []
        for (path, now), then in found:
            if then == now:
                continue
            what, slug = ("schedule", "schedule-file") if "schedule" in path else ("matrix", "matrix-file")
            message = f"the file holds another {what} than when the run was planned: what was released had the noise of that one"
            allowed = f"{'values' if what == 'schedule' else 'entries'} of sha256 {then}"
            problems.append(self.document.problem(slug, path, message, allowed=allowed))
        if problems:
            raise DocumentError(problems)


def planned(document: Document) -> Planned:
    """Return the plan of a document that has no blank except ε.

    Raises `DocumentError` for others, or if it has no bound.
    """
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
        # A sampled test that is repeated with new seeds until it passes proves nothing: each document has one seed.
        document = seeded(document)
    length = sum(phase.count * number(phase.rounds) for phase in document.phases)
    return Planned(document, length, plan.sampled, tuple(_contents_of(document).values()))


def _contents_of(document: Document) -> dict[Path, str]:
    """Return the hash of what each file holds that the document names, in order. Raises `DocumentError`."""
    return {path: sha256 for case in Protection.of(document).runs() for path, sha256 in contents_of(case).items()}


def seeded(document: Document) -> Document:
    """Return the document with a seed that follows from the rest of its content, including its ε and δ."""
    plain = unseeded(document)
    section = plain.to_mapping().get("accounting", {})
    return plain.with_value(("accounting",), section | {"seed": int(plain.sha256[:16], 16)})


def _body_of(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a one-body document that describes the body."""
    return {
        key: mapping[key] for key in ("training", "sampler", "matrix", "workload", "noise", "count") if key in mapping
    }


#: The keys that may have a schedule.
_SCHEDULED = (("noise", "multiplier"), ("training", "sampling_probability"), ("training", "expected_batch_size"))


def _first(schedule: Any, rounds: int) -> Any:
    """Return the schedule of the first rounds; one that decays needs no other."""
    if isinstance(schedule, list):
        return schedule[:rounds]
    return schedule | {"rounds": rounds} if "file" in schedule else schedule


def _keep(case: Case, stated: dict[str, Any], left: int, kept: list[dict[str, Any]]) -> int:
    """Add a phase's share of the next `left` rounds to `kept`: whole runs, then part of one.

    Return its number of rounds.
    """
    iterations = number(case.node.rounds)
    runs, rest = divmod(left, iterations)
    if runs >= case.node.count:
        kept.append(stated)
        return case.node.count * iterations
    if runs:
        kept.append({**{key: value for key, value in stated.items() if key != "count"}, "count": runs})
    if rest:
        kept.append(_cut(of_run(case), stated, rest))
    return left


def _cut(case: RunCase, stated: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Return the first rounds of one run of a body."""
    # The leading block is cut from the matrix for the whole run's workload, which has more learning rates than these
    # rounds.
    cut = copy.deepcopy({key: value for key, value in stated.items() if key not in ("count", "matrix", "workload")})
    cut["training"].pop("epochs", None)
    cut["training"]["iterations"] = rounds
    cut["sampler"] |= sampler_plan(case).cut(rounds)
    for section, key in _SCHEDULED:
        value = cut[section].get(key)
        if isinstance(value, dict) and "schedule" in value:
            cut[section][key] = value | {"schedule": _first(value["schedule"], rounds)}
    return cut | matrix_plan(case).leading_block(strategy(case), cut["noise"], rounds)
