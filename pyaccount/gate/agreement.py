"""Compares a certificate with its recomputation, field by field. The model says in which role each field stands.

There are two modes:

- `equal`: the certificate equals its recomputation. Of composed numbers only the last digits may differ, and ends of
  intervals within the tolerance, on the safe side. Sampled numbers, from the recorded seed and by the same version, have
  equal bits, except for numbers of the machine's linear algebra, which enter no guarantee.
- `proven`: the claim was proven anew, at the certificate's own value of the blank and its own (ε, δ): by a composition, if
  another version made the certificate or the search ended elsewhere, or by new samples. What neither samples nor a search
  decide must be equal.

The safe side of an upper end is above the recomputed one, of a lower end below it. On the other side the certificate
promises more than was recomputed. Beyond rounding, such an end is cross-checked, whatever the tolerance, because the document
chooses that.

Every difference is reported, also those that are allowed, so that no change goes unnoticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pyaccount.errors import Path, path_text
from pyaccount.execute.shared_points import PROFILE_TOLERANCE
from pyaccount.records.fields import NATS, PROBABILITY, WHOLE, Record, Role, marks_of

Mode = Literal["equal", "proven"]

#: The relative error by which rounding alone may change numbers that follow from the document.
ROUNDING = 1e-6
#: The same for ends on the side on which they promise more: units in the last place, times their growth in tails. A
#: profile may fall by any factor within 1e-6 of an ε; ends that differ by more are cross-checked.
LAST_DIGITS = 1e-12
#: The relative precision of other roles: the black-box lemma is known as well as a separate search finds it.
PRECISION = {Role.LEMMA: 1e-2, Role.EFFORT: PROFILE_TOLERANCE, Role.CHOICE: PROFILE_TOLERANCE}
#: The factor by which efforts and errors may differ that depend on where a search ended, or on samples.
MAGNITUDE = 10.0


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs: the value in the certificate, the recomputed value, and whether this difference is allowed."""

    path: str
    certificate: Any
    recomputed: Any
    agrees: bool
    reason: str


class FieldPlace(NamedTuple):
    """A field of a certificate, and what its type says of it."""

    path: Path
    role: Role = Role.FOLLOWS
    unit: str = ""
    #: The ε of the point that it belongs to; None outside of profiles and curves.
    epsilon: float | None = None


class Outcome(NamedTuple):
    """Whether a difference is allowed, and why."""

    agrees: bool
    reason: str


#: Judges an end that promises more than the recomputed one, and estimates, from their place and value.
CrossCheck = Callable[[FieldPlace, float], Outcome]


@dataclass(frozen=True, slots=True)
class Terms:
    """How to compare: the mode, whether the numbers were sampled, and what the document says of them."""

    mode: Mode = "equal"
    sampled: bool = False
    same_version: bool = True
    #: The tolerance of the engine; 0 for closed forms.
    tolerance: float = 0.0
    #: The seed of the recomputed samples, if it is not the recorded one.
    seed: int | None = None
    #: The coordinate of the guarantee that the document gives, if any.
    given: str = ""
    #: The ε values that the profile must have; `None` if they are not known.
    points: tuple[float, ...] | None = None
    #: The coordinate of the guarantee that was the blank, if any: the solved value is then this bound.
    blank: Literal["epsilon", "delta"] | None = None
    #: The parts that a time limit left out of the certificate.
    missing: tuple[str, ...] = ()
    judge: CrossCheck | None = None

    @property
    def exact(self) -> bool:
        """Whether bits are compared."""
        return self.sampled and self.mode == "equal"

    @property
    def resampled(self) -> bool:
        """Whether the recomputed numbers come from other samples."""
        return self.sampled and self.mode == "proven"


def differences(stated: Record, fresh: Record, terms: Terms) -> list[Difference]:
    """Return every field of a certificate that differs from the recomputed one, with whether that is allowed."""
    return list(_records(FieldPlace(()), stated, fresh, terms))


def _records(above: FieldPlace, stated: Record, fresh: Record, terms: Terms) -> Iterator[Difference]:
    marks = marks_of(type(stated))
    point = next((name for name, mark in marks.items() if mark.role is Role.POINT), None)
    at = None if point is None else getattr(stated, point)
    if point is not None and isinstance(at, list):
        yield from _curve(above, stated.model_dump(), fresh.model_dump(), point, terms)
        return
    for name, mark in marks.items():
        role = above.role if above.role in WHOLE or mark.role is None else mark.role
        if role is Role.STAMP:
            continue
        place = FieldPlace((*above.path, name), role, mark.unit, at)
        one, other = getattr(stated, name), getattr(fresh, name)
        if mark.part in terms.missing:
            other = [] if isinstance(one, list) else None
        if role in (Role.UPPER, Role.LOWER) and point is not None and at != getattr(fresh, point) and not terms.exact:
            # Bounds of a point are compared directly only with those at the same ε.
            yield Difference(path_text(place.path), one, None, *_judged(place, one, None, terms))
        else:
            yield from _compared(place, one, other, terms)


def _compared(place: FieldPlace, stated: Any, fresh: Any, terms: Terms) -> Iterator[Difference]:
    path = path_text(place.path)
    if isinstance(stated, Record) and isinstance(fresh, Record):
        yield from _records(place, stated, fresh, terms)
    elif isinstance(stated, dict) and isinstance(fresh, dict):
        for key in {**fresh, **stated}:
            below = place._replace(path=(*place.path, key))
            # No value of JSON is a tuple.
            yield from _compared(below, stated.get(key, ()), fresh.get(key, ()), terms)
    elif isinstance(stated, list) and isinstance(fresh, list):
        largest = max(map(abs, fresh), default=0.0) if place.role is Role.COLUMN else 0.0
        for index, (one, other) in enumerate(zip(stated, fresh, strict=False)):
            below = place._replace(path=(*place.path, index))
            if largest > 0.0 and one != other and not terms.exact:
                near = _near(one, other, ROUNDING, largest)
                yield Difference(path_text(below.path), one, other, *near)
            else:
                yield from _compared(below, one, other, terms)
        if len(stated) != len(fresh):
            yield Difference(path, f"{len(stated)} entries", f"{len(fresh)} entries", *_text(place, terms))
    elif _is_number(stated) and _is_number(fresh):
        if stated != fresh:
            yield Difference(path, stated, fresh, *_number(place, stated, fresh, terms))
    elif type(stated) is not type(fresh):
        # The samples decide whether an estimate exists, and their pilot how a test draws.
        drawn = terms.resampled and None in (stated, fresh) and place.role in (Role.DRAWN, Role.ESTIMATE)
        reason = "only one of the samples gave a value" if drawn else "of another type"
        yield Difference(path, _plain(stated), _plain(fresh), drawn, reason)
    elif stated != fresh:
        yield Difference(path, stated, fresh, *_text(place, terms))


def _curve(above: FieldPlace, stated: Any, fresh: Any, point: str, terms: Terms) -> Iterator[Difference]:
    """Compare the points of two curves, which may be at different ε: each stated point is an upper bound of its own."""
    bounds = dict(zip(fresh[point], fresh["delta"], strict=False))
    for index, (epsilon, delta) in enumerate(zip(stated[point], stated["delta"], strict=False)):
        place, recomputed = (
            FieldPlace((*above.path, "delta", index), Role.UPPER, PROBABILITY, epsilon),
            bounds.get(epsilon),
        )
        if recomputed is None:
            yield Difference(path_text(place.path), delta, None, *_judged(place, delta, None, terms))
        elif delta != recomputed:
            yield Difference(path_text(place.path), delta, recomputed, *_end(place, delta, recomputed, terms))
    if list(bounds) != stated[point]:
        sizes = f"{len(stated[point])} points", f"{len(bounds)} points"
        yield Difference(path_text(above.path), *sizes, True, "other points: each stated point is a bound of its own")


def _number(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    if place.role is Role.SOLVED and terms.blank is not None:
        # The solved value is a bound of the guarantee, and the value at which it fails is the lower bound.
        role = Role.UPPER if place.path[-1] == "value" else Role.LOWER
        place = FieldPlace(("guarantee", terms.blank), role, NATS if terms.blank == "epsilon" else PROBABILITY)
    if terms.exact:
        if place.role in (Role.MACHINE, Role.CHOICE):
            return _near(stated, fresh, ROUNDING)
        return Outcome(False, "not the same, with the same seed and version")
    return _free(place.role, terms) or _RULES.get(place.role, _follows)(place, stated, fresh, terms)


def _follows(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    if isinstance(stated, int) and isinstance(fresh, int):
        return Outcome(False, "a different whole number")
    return _near(stated, fresh, PRECISION.get(place.role, ROUNDING))


def _given(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    return Outcome(False, "not what the document gives")


def _point(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    index = place.path[-2]
    if terms.points is None or not isinstance(index, int) or stated not in terms.points[index : index + 1]:
        return Outcome(False, "not an ε that the document asks for")
    return Outcome(True, "a default point for the certificate's own ε")


def _interval(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    return _near(stated, fresh, max(terms.tolerance, PROFILE_TOLERANCE))


def _effort(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    """Return whether two efforts or errors are equal, or of the same order of magnitude; 0 is of no order."""
    if terms.mode == "equal":
        return _follows(place, stated, fresh, terms)
    small, large = sorted((abs(stated), abs(fresh)))
    if small == 0.0:
        return Outcome(False, "one of the two is 0, so their orders of magnitude differ")
    reason = f"part of how it was computed: differs by a factor of {large / small:.2g}; {MAGNITUDE:g} is allowed"
    return Outcome(large <= MAGNITUDE * small, reason)


def _contrast(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    if terms.missing and stated > fresh:
        return Outcome(True, "with a time limit it may be a looser bound")
    return _follows(place, stated, fresh, terms)


def _estimate(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    return (_judged if terms.resampled else _follows)(place, stated, fresh, terms)


def _solved(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    # Both ends of a bracket of the tolerance's width may move within it.
    near = _near(stated, fresh, 2.0 * terms.tolerance)
    if isinstance(stated, int) and isinstance(fresh, int) and abs(stated - fresh) == 1:
        # Adjacent whole numbers are the closest that can differ; the claim is checked with each of them.
        near = Outcome(True, "the next whole number")
    return _judged(place, stated, fresh, terms) if near.agrees and place.path[-1] == "fails_at" else near


def _end(place: FieldPlace, stated: float, fresh: float, terms: Terms) -> Outcome:
    """Compare ends: to the engine's tolerance on the safe side, else to the last digits, or by a cross-check."""
    if path_text(place.path) == terms.given:
        return _given(place, stated, fresh, terms)
    safe = stated > fresh if place.role is Role.UPPER else stated < fresh
    if not safe:
        near = _near(stated, fresh, LAST_DIGITS)
        return near if near.agrees else _judged(place, stated, fresh, terms)
    if terms.resampled:
        return Outcome(True, "from other samples, and on the safe side")
    narrowest = PROFILE_TOLERANCE if place.unit == PROBABILITY and terms.tolerance > 0.0 else ROUNDING
    return _near(stated, fresh, max(terms.tolerance, narrowest))


def _judged(place: FieldPlace, stated: float, fresh: float | None, terms: Terms) -> Outcome:
    return Outcome(False, "promises more than was recomputed") if terms.judge is None else terms.judge(place, stated)


#: How numbers are compared, by their role.
_RULES: dict[Role, Callable[[FieldPlace, float, float, Terms], Outcome]] = {
    Role.UPPER: _end,
    Role.LOWER: _end,
    Role.POINT: _point,
    Role.GIVEN: _given,
    Role.SOLVED: _solved,
    Role.INTERVAL: _interval,
    Role.EFFORT: _effort,
    Role.CONTRAST: _contrast,
    Role.ESTIMATE: _estimate,
}


def _free(role: Role, terms: Terms) -> Outcome | None:
    """Return why a field may have any other value; None if it may not."""
    if role is Role.CHOICE and terms.mode == "proven":
        return Outcome(True, "about the choice, not about the guarantee")
    return Outcome(True, "from other samples") if role is Role.DRAWN and terms.resampled else None


def _text(place: FieldPlace, terms: Terms) -> Outcome:
    if place.role is Role.SENTENCE and not terms.exact:
        # `consistency` checks that the statement fits the certificate's own numbers.
        return Outcome(True, "the numbers in it differ")
    if place.role is Role.WORDS and not terms.same_version:
        return Outcome(True, "worded differently by another version")
    return _free(place.role, terms) or Outcome(False, "not the same")


def _near(stated: float, fresh: float, precision: float, size: float | None = None) -> Outcome:
    size = max(abs(stated), abs(fresh)) if size is None else size
    distance = abs(stated - fresh) / size if math.isfinite(size) else math.inf
    return Outcome(distance <= precision, f"differs by {distance:.2g}, relatively; {precision:.2g} is allowed")


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Record) else None if value == () else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
