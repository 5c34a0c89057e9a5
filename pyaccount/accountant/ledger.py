"""An open ledger: rounds written down one after the other, without a plan for the whole.

Only samplers whose rounds are independent of one another can be written down so: then any number of equal rounds is a body
with as many iterations, and different ones are phases. Everything else is a property of the whole run and needs its document.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyaccount.accountant.alike import fewer_kinds
from pyaccount.document.document import Document
from pyaccount.document.fields import SOLVE
from pyaccount.document.foreign import plain_value
from pyaccount.document.loading import load
from pyaccount.document.phases import append, lasting, without_length
from pyaccount.document.ranges import ITERATIONS, NAME_LENGTH
from pyaccount.document.words import VERSION
from pyaccount.errors import DocumentError, Problem, StateError
from pyaccount.plan.compiling import compile_document, round_by_round
from pyaccount.rounding import up

#: Says in the certificate's sentence what an open ledger cannot know: that nobody chose parameters by looking at outputs.
PREMISE = ", rounds fixed beforehand"

#: The most phases that are certified one by one: a document may have more, unless each says a lot, but not many more.
MOST = 4000
#: From so many on a step warns of what happens beyond these.
MANY = MOST // 2

#: What stands where a body is needed to read the rest of a document.
#: A round that every budget allows: δ = 0 does with Laplace noise alone.
_ANY_BODY = {
    "training": {"iterations": 1},
    "sampler": {"kind": "none"},
    "noise": {"kind": "laplace", "multiplier": 1},
}


def _named(name: str, change: float) -> str:
    """The name of a document whose rounds bound others, which its certificate's sentence has."""
    if not change:
        return name
    suffix = f", rounds alike counted with up to {up(100.0 * change, 2)} % less noise and larger rates"
    return name.removesuffix(PREMISE)[: int(NAME_LENGTH.maximum) - len(suffix) - len(PREMISE)] + suffix + PREMISE


def head_of(name: str, privacy: Mapping[str, Any]) -> dict[str, Any]:
    """The head of a ledger's documents: version, name and what is protected. Raises `DocumentError`."""
    most = int(NAME_LENGTH.maximum)
    if isinstance(name, str) and not name.endswith(PREMISE):
        name = name[: most - len(PREMISE)] + PREMISE if name else name
    document = load({"pyaccount": VERSION, "name": name, "privacy": dict(privacy), **_ANY_BODY})
    if document.blank is not None and document.blank != ("privacy", "epsilon"):
        message = "an accountant cannot leave this blank"
        raise DocumentError([document.problem("unfilled-blank", document.blank, message, allowed="a value")])
    written = document.to_mapping()
    return {key: written[key] for key in ("pyaccount", "name", "privacy")}


@dataclass(frozen=True, slots=True)
class Ledger:
    """Phases so far. A ledger never changes; `plus` makes another one."""

    head: dict[str, Any]
    phases: tuple[dict[str, Any], ...] = ()
    #: What the last rounds that were described said, and the body they made: loops describe the same ones again.
    last: tuple[str, dict[str, Any]] | None = field(default=None, compare=False)

    @property
    def steps(self) -> int:
        """The rounds written down."""
        return sum(phase["training"]["iterations"] for phase in self.phases)

    @property
    def last_length(self) -> int:
        """How many rounds the last phase has."""
        return int(self.phases[-1]["training"]["iterations"])

    def lasting(self, rounds: int) -> Ledger:
        """The ledger with so many rounds in its last phase."""
        return Ledger(self.head, (*self.phases[:-1], lasting(self.phases[-1], rounds)))

    def plus(self, count: int, arguments: Mapping[str, Any] | None = None) -> Ledger:
        """The ledger with `count` more rounds of the kind that `arguments` describe, or like the last ones.

        Equal neighbours become one phase. Raises `DocumentError` for rounds that no document describes, or that have no bound.
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
        return Ledger(self.head, tuple(phases), last)

    def mapping(self, **privacy: float | str) -> dict[str, Any]:
        """The document of what was released: phases, with these values under `privacy`.

        Where there are more phases than `MOST`, fewer ones that are no more private; the name says so.
        """
        mapping = copy.deepcopy(self.head)
        mapping["privacy"] |= privacy
        phases = copy.deepcopy(list(self.phases))
        if len(phases) > MOST:
            phases, change = fewer_kinds(self.phases)
            mapping["name"] = _named(mapping["name"], change)
        return mapping | (phases[0] if len(phases) == 1 else {"phases": phases})

    def record(self) -> dict[str, Any]:
        """The ledger as it is saved: the phases as a list however many there are."""
        return copy.deepcopy(self.head) | {"phases": copy.deepcopy(list(self.phases))}

    def _body(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The body of one round, without its number of iterations."""
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
    """The body of a document of one round, without its number of iterations. Raises `DocumentError` if rounds depend."""
    (body,) = document.bodies
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
    compile_document(document)
    written = document.to_mapping()
    return without_length({key: written[key] for key in ("training", "sampler", "noise") if key in written})


def reread(head: dict[str, Any], phases: object, source: str) -> Ledger:
    """The ledger of saved phases, each validated anew. Raises `StateError`."""
    if not isinstance(phases, list) or not all(isinstance(phase, dict) for phase in phases):
        raise StateError(f"{source}: document.phases: a list of phases is expected")
    for index, phase in enumerate(phases):
        try:
            rounds = load({**head, **phase})
            read = body_of(rounds)
        except DocumentError as error:
            raise StateError(f"{source}: document.phases[{index}]: {error}") from error
        length = rounds.bodies[0].training.iterations
        assert length != SOLVE  # `body_of` refuses blanks
        if lasting(read, length) != phase:
            raise StateError(f"{source}: document.phases[{index}]: this is not how a ledger writes its rounds")
    return Ledger(head, tuple(copy.deepcopy(phases)))


def extends(later: Sequence[Mapping[str, Any]], earlier: Sequence[object]) -> bool:
    """Whether a ledger with the phases `later` has every round of one with the phases `earlier`, in the same order."""
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
    """What tells rounds apart without reading them: their arguments as a document would read them, every digit of them.

    `None` where that is not plain data. Then nothing is known to be the same, and the arguments are read again.
    """
    try:
        return json.dumps(arguments, default=_plain, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None


def _plain(value: object) -> object:
    """What a document makes of a value. How it prints is no help: two numbers may print alike."""
    if isinstance(value, Mapping):
        return dict(value)
    plain = plain_value(value)
    if type(plain) in (bool, int, float, str, list):
        return plain
    raise TypeError(f"no plain data: {type(value).__name__}")


def _within(value: int, allowed: Any, path: tuple[str, ...], what: str) -> None:
    if value not in allowed:
        message = f"{what}: must be {allowed.describe()}"
        raise DocumentError([Problem("out-of-range", message, path, value=value, allowed=allowed.describe())])
