"""An open ledger: it records rounds one after the other, without a plan for the whole run.

Only samplers whose rounds are independent of one another can be recorded in this way: then any number of equal rounds
is a body with as many iterations, and different rounds are phases. Every other sampler is a property of the whole run
and needs the document of that run.

Ledgers have no limit, but a document has a maximum number of phases, so rounds that are nearly alike are bounded by one of them.
Each step toward fewer kinds of rounds gives a mechanism that is no more private: it has less noise and larger rates. The head of
`pyaccount.plan.alike` proves this. That module replaces rounds and leaves the document unchanged; this one shortens the document,
and therefore rounds numbers to values that a document can contain.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyaccount.document.document import Document
from pyaccount.document.loading import load
from pyaccount.document.phases import RawPhase, append, lasting, without_length
from pyaccount.document.ranges import ITERATIONS, NAME_LENGTH
from pyaccount.document.words import VERSION
from pyaccount.errors import DocumentError, Problem, StateError
from pyaccount.plan.compiling import compile_document, round_by_round
from pyaccount.reading.fields import SOLVE
from pyaccount.reading.nodes import built_in
from pyaccount.rounding import up

if TYPE_CHECKING:
    from collections.abc import Callable

#: The maximum number of kinds of rounds that are kept if a document would have too many phases.
KINDS = 2000

#: Significant bits to which numbers are rounded; the largest value that leaves few enough kinds is used.
BITS = range(30, 1, -1)

#: The rates of Poisson sampling that may be rounded up, and the largest value of each.
RATES: dict[str, Callable[[RawPhase], float]] = {
    "sampling_probability": lambda _: 1.0,
    "participation_rate": lambda _: 1.0,
    "expected_batch_size": lambda training: training.get("dataset_size", math.inf),
}


def fewer_kinds(phases: Sequence[RawPhase]) -> tuple[list[dict[str, Any]], float]:
    """Return phases of at most `KINDS` kinds, and the largest relative change of a number.

    Their guarantee holds for the given phases too. If even the coarsest numbers leave more kinds, all of these are
    returned: then the rounds differ in something else.
    """
    found, change = _together(phases), 0.0
    for bits in BITS:
        if len(found) <= KINDS:
            break
        found, change = _together([_rounded(phase, bits) for phase in phases]), math.ldexp(1.0, 1 - bits)
    return found, change


def _together(phases: Sequence[RawPhase]) -> list[dict[str, Any]]:
    """Return the phases with equal rounds merged into one, in the order of their first rounds."""
    kinds: dict[str, tuple[dict[str, Any], int]] = {}
    for phase in phases:
        body = without_length(phase)
        key = json.dumps(body, sort_keys=True)
        kinds[key] = (body, kinds.get(key, (body, 0))[1] + phase["training"]["iterations"])
    return [lasting(body, rounds) for body, rounds in kinds.values()]


def _rounded(phase: RawPhase, bits: int) -> dict[str, Any]:
    """Return the phase with less noise and a larger rate, each rounded to `bits` significant bits."""
    noise, training, sampler = phase["noise"], phase["training"], phase["sampler"]
    rounded = dict(phase) | {"noise": noise | {"multiplier": _of(noise["multiplier"], bits, math.floor)}}
    if sampler["kind"] != "poisson" or "truncate_to" in sampler:
        return rounded
    rates = {
        field: min(_of(training[field], bits, math.ceil), max(training[field], most(training)))
        for field, most in RATES.items()
        if isinstance(training.get(field), int | float)
    }
    return rounded | {"training": training | rates}


def _of(number: float, bits: int, rounding: Callable[[float], int]) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(rounding(math.ldexp(mantissa, bits)), exponent - bits)


#: A ledger cannot know that nobody chose parameters by looking at outputs, so the certificate's sentence states this
#: condition.
PREMISE = ", rounds fixed beforehand"

#: What the names of an adaptive accountant's documents end with: they stand for all that its filter may admit.
ADAPTIVE = ", the whole budget of a filter"

#: The maximum number of phases that are certified one by one. A document of short phases may have a few more of them.
MOST = 4000

#: From this number of phases on, a step warns how rounds beyond `MOST` phases are certified.
MANY = MOST // 2

#: This body is used where one is needed to read the rest of a document.
#: Every budget allows this round: δ = 0 allows Laplace noise only.
_ANY_BODY = {
    "training": {"iterations": 1},
    "sampler": {"kind": "none"},
    "noise": {"kind": "laplace", "multiplier": 1},
}


def _named(name: str, change: float) -> str:
    """Return the name of a document whose rounds bound the recorded ones; its certificate's sentence contains it."""
    if not change:
        return name
    suffix = f", rounds alike counted with up to {up(100.0 * change, 2)} % less noise and larger rates"
    return name.removesuffix(PREMISE)[: int(NAME_LENGTH.maximum) - len(suffix) - len(PREMISE)] + suffix + PREMISE


def head_of(name: str, privacy: Mapping[str, Any], premise: str = PREMISE) -> dict[str, Any]:
    """Return the head of a ledger's documents: version, name, which ends with a premise, and privacy section.

    Raises `DocumentError`.
    """
    most = int(NAME_LENGTH.maximum)
    if isinstance(name, str) and not name.endswith(premise):
        name = name[: most - len(premise)] + premise if name else name
    document = load({"pyaccount": VERSION, "name": name, "privacy": dict(privacy), **_ANY_BODY})
    if document.blank is not None and document.blank != ("privacy", "epsilon"):
        message = "an accountant cannot leave this blank"
        raise DocumentError([document.problem("unfilled-blank", document.blank, message, allowed="a value")])
    written = document.to_mapping()
    return {key: written[key] for key in ("pyaccount", "name", "privacy")}


@dataclass(frozen=True, slots=True)
class OpenLedger:
    """The phases so far. A ledger never changes; `plus` returns a new one."""

    head: dict[str, Any]
    phases: tuple[dict[str, Any], ...] = ()
    #: The key of the last described rounds, and their body. Loops describe the same rounds repeatedly.
    last: tuple[str, dict[str, Any]] | None = field(default=None, compare=False)

    @property
    def steps(self) -> int:
        """Return the number of recorded rounds."""
        return sum(phase["training"]["iterations"] for phase in self.phases)

    @property
    def last_length(self) -> int:
        """Return the number of rounds of the last phase."""
        return int(self.phases[-1]["training"]["iterations"])

    def lasting(self, rounds: int) -> OpenLedger:
        """Return the ledger with `rounds` rounds in its last phase."""
        return OpenLedger(self.head, (*self.phases[:-1], lasting(self.phases[-1], rounds)))

    def plus(self, count: int, arguments: Mapping[str, Any] | None = None) -> OpenLedger:
        """Return the ledger with `count` more rounds of the kind that `arguments` describe, or like the last ones.

        Equal neighbours become one phase. Raises `DocumentError` for rounds that no document describes, or that have no
        bound.
        """
        said = None if arguments is None else _said(arguments)
        if arguments is None:
            body, last = without_length(self.phases[-1]), self.last
        elif self.last is not None and self.last[0] == said:
            body, last = self.last[1], self.last
        else:
            body = self._body(arguments)
            last = None if said is None else (said, body)
        phases = list(self.phases)
        append(phases, lasting(body, count))
        _within(
            phases[-1]["training"]["iterations"], ITERATIONS, ("training", "iterations"), "rounds of one kind in a row"
        )
        return OpenLedger(self.head, tuple(phases), last)

    def mapping(self, **privacy: float | str) -> dict[str, Any]:
        """Return the document of the releases: the phases, with these values under `privacy`.

        If there are more phases than `MOST`, it has fewer phases that are no more private; its name states that.
        """
        mapping = copy.deepcopy(self.head)
        mapping["privacy"] |= privacy
        phases = copy.deepcopy(list(self.phases))
        if len(phases) > MOST:
            phases, change = fewer_kinds(self.phases)
            mapping["name"] = _named(mapping["name"], change)
        return mapping | (phases[0] if len(phases) == 1 else {"phases": phases})

    def record(self) -> dict[str, Any]:
        """Return the ledger as it is saved: the phases are a list, whatever their number."""
        return copy.deepcopy(self.head) | {"phases": copy.deepcopy(list(self.phases))}

    def _body(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of one round, without its number of iterations."""
        stated = dict(arguments)
        sampler, kind = stated.pop("sampler", None), stated.pop("noise", None)
        noise = {"multiplier": stated.pop("noise_multiplier", None)}
        if (also := stated.pop("also", None)) is not None:
            noise["also"] = also
        training = {key: value for key, value in stated.items() if value is not None}
        mapping = {
            **self.head,
            "training": {**training, "iterations": 1},
            "sampler": {"kind": sampler} if isinstance(sampler, str) else sampler,
            "noise": noise if kind is None else {"kind": kind, **noise},
        }
        return body_of(load(mapping))


def body_of(document: Document) -> dict[str, Any]:
    """Return the body of a one-round document without its number of iterations.

    Raises `DocumentError` if rounds depend on one another.
    """
    body = document.run
    if document.blank not in (None, ("privacy", "epsilon")):
        message = "what was released has no blanks"
        raise DocumentError([document.problem("unfilled-blank", document.blank, message, allowed="a value")])
    if body.sampler.kind not in (*round_by_round(), "none"):
        message = (
            f"under {body.sampler.kind} sampling the rounds of a run depend on one another, so they cannot be added one by one: "
            "describe the planned run in a document and give that to the accountant"
        )
        allowed = ", ".join((*round_by_round(), "none"))
        raise DocumentError([document.problem("no-valid-bound", ("sampler", "kind"), message, allowed=allowed)])
    if body.sampler.kind == "none" and body.sampler.model_fields_set != {"kind"}:
        message = "how often a record takes part is a property of the whole run, which takes a document; here it is every round"
        raise DocumentError([document.problem("no-valid-bound", ("sampler",), message, allowed="none without limits")])
    if scheduled := body.schedules():
        message = "rounds are added with the noise and the rate that they have: a schedule is that of a whole run, in a document"
        path = next(iter(scheduled))
        raise DocumentError([document.problem("no-valid-bound", path, message, allowed="a number")])
    compile_document(document)
    written = document.to_mapping()
    return without_length({key: written[key] for key in ("training", "sampler", "noise") if key in written})


def reread(head: dict[str, Any], phases: object, source: str) -> OpenLedger:
    """Return the ledger of saved phases; each phase is validated. Raises `StateError`."""
    if not isinstance(phases, list) or not all(isinstance(phase, dict) for phase in phases):
        raise StateError(f"{source}: document.phases: a list of phases is expected")
    for index, phase in enumerate(phases):
        try:
            rounds = load({**head, **phase})
            read = body_of(rounds)
        except DocumentError as error:
            raise StateError(f"{source}: document.phases[{index}]: {error}") from error
        length = rounds.run.training.iterations
        assert length != SOLVE  # `body_of` refuses blanks
        if lasting(read, length) != phase:
            raise StateError(f"{source}: document.phases[{index}]: this is not how a ledger writes its rounds")
    return OpenLedger(head, tuple(copy.deepcopy(phases)))


def extends(later: Sequence[Mapping[str, Any]], earlier: Sequence[object]) -> bool:
    """Return whether a ledger with phases `later` has all rounds of one with phases `earlier`, in the same order."""
    if not earlier:
        return True
    *before, last = earlier
    if len(later) < len(earlier) or list(later[: len(before)]) != before:
        return False
    phase = later[len(before)]
    match last:
        case {"training": {"iterations": int(rounds)}} if rounds <= phase["training"]["iterations"]:
            return last == lasting(phase, rounds)
    return False


def _said(arguments: Mapping[str, Any]) -> str | None:
    """Return a key of these rounds that needs no parsing.

    It contains their arguments as a document would, with every digit. It is `None` if an argument is not plain data.
    Then no rounds count as equal, and the arguments are parsed each time.
    """
    try:
        return json.dumps(arguments, default=_plain, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: object) -> object:
    """Return a value as a document represents it.

    Its printed form does not suffice: two different numbers may print alike.
    """
    if isinstance(value, Mapping):
        return dict(value)
    plain = built_in(value)
    if type(plain) in (bool, int, float, str, list):
        return plain
    raise TypeError(f"no plain data: {type(value).__name__}")


def _within(value: int, allowed: Any, path: tuple[str, ...], what: str) -> None:
    if value not in allowed:
        message = f"{what}: must be {allowed.describe()}"
        raise DocumentError([Problem("out-of-range", message, path, value=value, allowed=allowed.describe())])
