"""dp_accounting: converts event trees to documents, and documents to event trees.

An event says what was run, but not which data sets are neighbours; you tell that to an accountant of dp_accounting, and to
`from_event`. Noise multipliers mean the same in both: they are relative to the norm of one record's contribution, so under
replacement the sum can change by two such contributions. The results of dp_accounting's accountants can differ from a
certificate. For batches of a fixed size its values of ε are not upper bounds (docs/composition.md explains why), and the
certificate's ε is larger. For a `GaussianDpEvent` that is not sampled, `RdpAccountant` does not double the contribution under
REPLACE_ONE: use `PLDAccountant` for replace-one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyaccount.adapters.dp_accounting_mechanisms import (
    MECHANISMS,
    law_of_runs,
    of_mixture,
    with_empty_records,
)
from pyaccount.adapters.reading import BodyMapping, Part, document, no_equivalent, whole_in, wrong_type_error
from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.noise import effective
from pyaccount.document.ranges import (
    COUNT,
    DATASET_SIZE,
    DRAWS,
    ITERATIONS,
    LARGEST_BATCH,
    NOISE_MULTIPLIER,
    TREE_ROUNDS,
)
from pyaccount.document.tree import Combined, Node, TrainingNode
from pyaccount.errors import DocumentError, MissingExtraError, Path, Problem, quoted
from pyaccount.plan.common import number
from pyaccount.plan.protection import Protection
from pyaccount.plan.schedule_values import runs_of_kinds
from pyaccount.reading.nodes import DEEPEST
from pyaccount.reading.numerals import Range

if TYPE_CHECKING:
    Source = str | os.PathLike[str] | Mapping[str, Any] | Document

_FROM_ZERO = Range(0, 1)
_COUNT_FROM_ZERO = Range(0, COUNT.maximum)
_TREE_FROM_ZERO = Range(0, TREE_ROUNDS.maximum)

#: Events that no document describes, each with the reason and what to use instead.
_REFUSED = {
    "NonPrivateDpEvent": "a release without noise has no guarantee; leave it out only if nothing was released",
    "UnsupportedDpEvent": "this event states that its mechanism is unknown, so it has no guarantee",
}
_READ = (
    "GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent, ComposedDpEvent, PoissonSampledDpEvent, "
    "SampledWithoutReplacementDpEvent, SampledWithReplacementDpEvent, TruncatedSubsampledGaussianDpEvent, "
    "SingleEpochTreeAggregationDpEvent, MixtureOfGaussiansDpEvent, RepeatAndSelectDpEvent, NoOpDpEvent, "
    f"{', '.join(MECHANISMS)}"
)


def from_event(  # noqa: PLR0913 - the head of the document, which an event does not have
    event: object,
    *,
    adjacency: str,
    delta: float | str,
    epsilon: float | str = "solve",
    group_size: int = 1,
    name: str = "dp_accounting",
) -> dict[str, Any]:
    """Return the document of an event tree, with a phase for each part in order.

    The head of the document is not in an event: `adjacency`, `delta`, `epsilon`, `group_size` and `name` are as in a document.
    Raises `DocumentError` with the path in the tree, such as `events[0].event.noise_multiplier`, if no document describes a part.
    """
    bodies = bodies_of(event, adjacency)
    if not bodies:
        kind = type(event).__name__
        no_equivalent((), "the events release nothing: a document needs at least one round", value=kind)
    return document(bodies, name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=group_size)


def bodies_of(event: object, adjacency: str) -> list[BodyMapping]:
    """Return the phases of an event tree under an adjacency; none if it releases nothing. Raises the errors of `from_event`."""
    whole = Part(event, ())
    bodies = _bodies(whole, 1)
    if adjacency == "replace-one" and (place := _mixture_in(whole)) is not None:
        message = "a mixture does not describe a record that is replaced by another one: use add-remove or zero-out"
        no_equivalent(place, message, value=adjacency, allowed="add-remove or zero-out")
    if adjacency == "zero-out":
        with_empty_records(bodies)
    return bodies


def to_event(source: Source) -> Any:
    """Return the event tree of a document, which says what is run.

    Give the adjacency, ε and δ of the document to the accountant of dp_accounting yourself. Raises `DocumentError` if no event
    describes a part of the document, and `MissingExtraError` if dp_accounting is not installed.
    """
    try:
        import dp_accounting  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError.of("dp-accounting", "event trees are objects of that package") from error
    described = load(source)
    problems = [problem for phase in described.phases for problem in _without_event(described, phase)]
    if described.privacy.group_size != 1:
        message = "events are about one record, and dp_accounting's accountants have no groups"
        problems.append(described.problem("no-equivalent", ("privacy", "group_size"), message, allowed="1"))
    if problems:
        raise DocumentError(problems)
    kinds = [
        kind
        for case in Protection.of(described).runs()
        for kind in (runs_of_kinds(case) if case.node.schedules() else (case.node,))
    ]
    events = [_event(dp_accounting, body) for body in kinds]
    return events[0] if len(events) == 1 else dp_accounting.ComposedDpEvent(events)


def _mixture_in(event: Part) -> Path | None:
    """Return the path of a mixture in a tree that was read; None if there is none."""
    if event.kind == "MixtureOfGaussiansDpEvent":
        return event.path
    parts = _parts(event) if hasattr(event.source, "events") else []
    parts += [event.at("event")] if hasattr(event.source, "event") else []
    return next((place for place in map(_mixture_in, parts) if place is not None), None)


def _bodies(event: Part, count: int) -> list[BodyMapping]:
    """Return the bodies of `count` runs of an event."""
    if len(event.path) > DEEPEST:
        no_equivalent(event.path[:8], f"the tree has more than {DEEPEST} levels", value=event.kind)
    if event.kind == "NoOpDpEvent" or count == 0:
        return []
    if event.kind == "SelfComposedDpEvent":
        runs = event.whole("count", _COUNT_FROM_ZERO)
        return _bodies(event.at("event"), count * runs)
    if event.kind == "ComposedDpEvent":
        # The guarantee of a composition does not depend on the order, so runs of the whole may be replaced by runs of its parts.
        return [body for part in _parts(event) for body in _bodies(part, count)]
    return _leaf(event, count)


def _leaf(event: Part, count: int) -> list[BodyMapping]:
    """Return the body of `count` runs of an event that is not a composition."""
    kind, path = event.kind, event.path
    if count not in ITERATIONS:
        message = f"{count} runs are more than a document can describe"
        no_equivalent(path, message, value=kind, allowed=ITERATIONS.describe())
    alone = {
        "TruncatedSubsampledGaussianDpEvent": _truncated,
        "SingleEpochTreeAggregationDpEvent": _tree,
        "MixtureOfGaussiansDpEvent": of_mixture,
        "RepeatAndSelectDpEvent": _selected,
    }
    if kind in alone:
        return alone[kind](event, count)
    if kind in ("GaussianDpEvent", "LaplaceDpEvent"):
        return [{"training": {"iterations": count}, "sampler": {"kind": "none"}, "noise": _noise(event)}]
    if kind in MECHANISMS:
        stated = MECHANISMS[kind](event)
        return [] if stated is None else [{"mechanism": stated} | ({} if count == 1 else {"count": count})]
    if kind in ("PoissonSampledDpEvent", "SampledWithoutReplacementDpEvent", "SampledWithReplacementDpEvent"):
        return _sampled(event, count)
    reason = _REFUSED.get(kind, f"no document describes this event; the adapter reads {_READ}")
    return no_equivalent(path, reason, value=kind)


def _sampled(event: Part, count: int) -> list[BodyMapping]:
    """Return the body of `count` runs of a sampled event, in which one draw is used for one release."""
    inner = event.at("event")
    while True:
        if inner.kind == "SelfComposedDpEvent" and inner.get("count") == 1:
            inner = inner.at("event")
        elif inner.kind == "ComposedDpEvent" and len(_parts(inner)) == 1:
            (inner,) = _parts(inner)
        else:
            break
    if inner.kind == "NoOpDpEvent":
        return []
    if event.kind == "PoissonSampledDpEvent" and inner.kind != "GaussianDpEvent":
        return _sampled_phases(event, inner, count)
    if inner.kind in ("SelfComposedDpEvent", "ComposedDpEvent"):
        no_equivalent(
            inner.path,
            "one draw is used for several releases, which do not compose like rounds with draws of their own; put the "
            "composition outside (SelfComposedDpEvent of a sampled event) if every release has its own draw, or describe k "
            "Gaussian releases from one draw as one with noise multiplier σ/√k",
            value=inner.kind,
        )
    if inner.kind != "GaussianDpEvent":
        reason = _REFUSED.get(inner.kind, "only Gaussian noise is described below a sampler")
        no_equivalent(inner.path, reason, value=inner.kind, allowed="GaussianDpEvent")
    noise, training = _noise(inner), {"iterations": count}
    if event.kind == "PoissonSampledDpEvent":
        rate = event.real("sampling_probability", _FROM_ZERO)
        if rate == 0.0:
            return []
        return [{"training": training | {"sampling_probability": rate}, "sampler": {"kind": "poisson"}, "noise": noise}]
    replaced = event.kind == "SampledWithReplacementDpEvent"
    training["dataset_size"] = event.whole("source_dataset_size", DATASET_SIZE)
    training["expected_batch_size"] = event.whole("sample_size", DRAWS if replaced else LARGEST_BATCH)
    sampler = "with-replacement" if replaced else "fixed-size"
    return [{"training": training, "sampler": {"kind": sampler}, "noise": noise}]


def _sampled_phases(event: Part, inner: Part, count: int) -> list[BodyMapping]:
    """Return the body of `count` samples, on each of which all parts of an event are run."""
    rate = event.real("sampling_probability", _FROM_ZERO)
    bodies = [] if rate == 0.0 else _bodies(inner, 1)
    if any("phases" in body for body in bodies):
        message = "a sample is drawn from another sample, which no document describes"
        no_equivalent(inner.path, message, value=inner.kind)
    if not bodies:
        return []
    runs: BodyMapping = {} if count == 1 else {"count": count}
    sampler = {"kind": "poisson", "sampling_probability": rate}
    if len(bodies) == 1 and "mechanism" in bodies[0] and "count" not in bodies[0] and "sampler" not in bodies[0]:
        return [{**bodies[0], "sampler": sampler, **runs}]
    if (
        len(bodies) == 1
        and bodies[0].get("noise", {}).get("kind") == "laplace"
        and bodies[0]["training"] == {"iterations": 1}
    ):
        return [
            {"mechanism": {"kind": "laplace", "scale": bodies[0]["noise"]["multiplier"]}, "sampler": sampler, **runs}
        ]
    return [{"sampler": sampler, "phases": bodies, **runs}]


def _selected(event: Part, count: int) -> list[BodyMapping]:
    """Return the body of `count` selections of the best of a random number of runs."""
    select = law_of_runs(event)
    bodies = _bodies(event.at("event"), 1)
    if any("select" in body for body in bodies):
        no_equivalent((*event.path, "event"), "the runs of a selection select themselves, which no document describes")
    return [{"select": select, "phases": bodies} | ({} if count == 1 else {"count": count})] if bodies else []


def _truncated(event: Part, count: int) -> list[BodyMapping]:
    rate = event.real("sampling_probability", _FROM_ZERO)
    if rate == 0.0:
        return []
    records, limit = event.whole("dataset_size", DATASET_SIZE), event.whole("truncated_batch_size", LARGEST_BATCH)
    training = {"iterations": count, "sampling_probability": rate, "dataset_size": records}
    return [{"training": training, "sampler": {"kind": "poisson", "truncate_to": limit}, "noise": _noise(event)}]


def _tree(event: Part, count: int) -> list[BodyMapping]:
    """Return the body of `count` runs of one or several trees, in one of which a record takes part once.

    The blocks of the different trees have no round in common, so the tree in which a record moves the most blocks is the
    worst: the longest one, with ⌊log₂ n⌋ + 1 = ⌈log₂(n + 1)⌉ blocks of a leaf. The noise multiplier is that of a block.
    """
    steps, path = event.get("step_counts"), event.path
    listed = list(steps) if isinstance(steps, Sequence) and not isinstance(steps, str | bytes) else [steps]
    counts = [whole_in(one, _TREE_FROM_ZERO, (*path, "step_counts")) for one in listed]
    if max(counts, default=0) == 0:
        return []
    if count not in COUNT:
        message = f"{count} runs are more than a document can describe"
        no_equivalent(path, message, value=event.kind, allowed=COUNT.describe())
    body: BodyMapping = {
        "training": {"iterations": max(counts)},
        "sampler": {"kind": "none", "max_participations": 1},
        "matrix": {"kind": "tree", "normalize": False},
        "noise": _noise(event),
    }
    return [body if count == 1 else body | {"count": count}]


def _noise(event: Part) -> dict[str, Any]:
    noise = {"multiplier": event.real("noise_multiplier", NOISE_MULTIPLIER)}
    return {"kind": "laplace", **noise} if event.kind == "LaplaceDpEvent" else noise


def _parts(event: Part) -> list[Part]:
    events, path = event.get("events"), (*event.path, "events")
    if isinstance(events, str | bytes) or not isinstance(events, Sequence):
        wrong_type_error(path, f"must be a list of events, not {quoted(events)}", quoted(events), "a list of events")
    return [Part(one, (*path, index)) for index, one in enumerate(events)]


#: The samplers that an event can describe.
_EVENTS = ("poisson", "fixed-size", "with-replacement", "none")


def _without_event(described: Document, run: Node) -> list[Problem]:
    """Return a problem for each part of a phase that no event describes."""
    problems: list[Problem] = []
    if not isinstance(run, TrainingNode):
        message = (
            "no event is written for a mechanism in place of training, for phases on a sample, or for disjoint parts: events of "
            "the first two can be read"
        )
        place = run.at(run.list_key if isinstance(run, Combined) else run.key)
        return [described.problem("no-equivalent", place, message, allowed="training, sampler and noise")]
    if run.matrix.kind != "identity":
        message = "events describe independent rounds, and a matrix makes rounds depend on one another"
        problems.append(described.problem("no-equivalent", run.at("matrix"), message, allowed="identity"))
    if run.sampler.kind not in _EVENTS:
        message = f"no event describes {run.sampler.kind} sampling; events describe {', '.join(_EVENTS)}"
        problems.append(
            described.problem(
                "no-equivalent",
                run.at("sampler", "kind"),
                message,
                allowed="poisson, fixed-size, with-replacement, none",
            )
        )
    if run.own_probabilities is not None:
        message = (
            "an event has one sampling probability for all records: write the largest one as a number, which is a bound"
        )
        stated = run.at("training", "sampling_probability")
        problems.append(described.problem("no-equivalent", stated, message, allowed="one number"))
    if run.draws_per_iteration() > 1 and described.privacy.adjacency == "replace-one":
        message = (
            "several draws in a round are a MixtureOfGaussiansDpEvent, which does not describe a record that is replaced by "
            "another one"
        )
        adjacency = ("privacy", "adjacency")
        problems.append(described.problem("no-equivalent", adjacency, message, allowed="add-remove or zero-out"))
    path = described.blank
    # The factor of all phases is reported once, with the first of them.
    shared = path == ("noise", "scale") and run is described.phases[0]
    if path is not None and path[0] != "privacy" and (path[: len(run.path)] == run.path or shared):
        message = "an event cannot have blanks: certify the document first"
        problems.append(described.problem("unfilled-blank", path, message, allowed="a value"))
    return problems


def _event(library: Any, run: TrainingNode) -> Any:
    """Return the event of a run for which `_without_event` found no problem."""
    # Several releases of one batch are one Gaussian release with the effective multiplier, of which this is a lower bound.
    sigma = effective([number(run.noise.multiplier), *(release.multiplier for release in run.noise.also)])[0]
    rounds = run.count * int(run.training.iterations)
    event = library.LaplaceDpEvent(sigma) if run.noise.kind == "laplace" else library.GaussianDpEvent(sigma)
    if run.sampler.kind == "none":
        # Only the rounds in which a record takes part depend on it.
        rounds = run.count * run.participations()
    elif run.draws_per_iteration() > 1:
        event = library.dp_event.MixtureOfGaussiansDpEvent(
            sigma, *_law(run.draws_per_iteration(), run.sampling_probability())
        )
    elif run.sampler.kind == "poisson":
        rate, limit = run.sampling_probability(), run.truncation()
        event = (
            library.PoissonSampledDpEvent(rate, event)
            if limit is None
            else library.TruncatedSubsampledGaussianDpEvent(run.training.dataset_size, rate, limit, sigma)
        )
    else:
        replaced = run.sampler.kind == "with-replacement"
        sampled = library.SampledWithReplacementDpEvent if replaced else library.SampledWithoutReplacementDpEvent
        event = sampled(run.training.dataset_size, run.batch_size(), event)
    return event if rounds == 1 else library.SelfComposedDpEvent(event, rounds)


def _law(draws: int, probability: float) -> tuple[list[float], list[float]]:
    """Return how often a record may be drawn in a round, and the probabilities of these numbers (binomial).

    In units of the clip norm, the record moves the sum by as much as it is drawn.
    """
    counts = range(draws + 1)
    weights = [math.comb(draws, j) * probability**j * (1.0 - probability) ** (draws - j) for j in counts]
    return [float(j) for j in counts], weights
