"""A certificate's fields against recomputed ones: what differs, by how much it may, and why.

Three ways of comparing, by how the numbers came about:

- `digits`: composed or closed-form numbers. The last digits depend on the machine's arithmetic, so the ends of the intervals
  agree to the engine's stated tolerance. Whatever the tolerance, an upper end below the recomputed lower end is wrong.
- `bits`: sampled numbers, recomputed with the recorded seed by the same version. Everything is equal.
- `bounds`: sampled numbers by another version, whose samples may be others. Only what is proven of the mechanism is
  compared: no bound of one may refute a bound of the other.

Every difference is told, also those that agree: nothing that was changed goes unnamed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pyaccount.errors import Path, path_text
from pyaccount.execute import PROFILE_TOLERANCE

Mode = Literal["digits", "bits", "bounds"]

#: Nobody can recompute these: when the certificate was made, and by what.
UNCOMPARED = ("created", "versions")
#: What rounding alone may do to figures that follow from the document in closed form.
ROUNDING = 1e-6
#: The contrasts are found by searches of their own, to this relative width.
CONTRAST = 1e-2
#: A failure probability follows from δ, which is an estimate's multiple where it is the blank.
LIKELY = 0.5
#: Words that another version may put differently. The others (assumptions among them) state what is guaranteed.
_WORDS = re.compile(r"noise_convention|reductions\[.*|unamplified\.description|group_lemma\.description|evidence\..*")
#: How the composition was carried out: efforts and errors, which depend on the last digits of what was asked.
_EFFORT = re.compile(r"evidence\.(compositions|error_budget|considered).*")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not the same: what the certificate states, what was recomputed, and whether they agree all the same."""

    path: str
    certificate: Any
    recomputed: Any
    agrees: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Terms:
    """How to compare: the mode, the engine's tolerance, and whether the same version computed both."""

    mode: Mode
    tolerance: float
    same_version: bool
    #: The coordinates of the guarantee that the document gives.
    given: frozenset[str] = frozenset()
    #: Whether the certificate's own value of the blank was put in, which the search then did not find in the same way.
    filled: bool = False


def differences(stated: dict[str, Any], fresh: dict[str, Any], terms: Terms) -> list[Difference]:
    """Every field of a certificate that differs from the recomputed one."""
    found = list(_walk((), _without(stated), _without(fresh), terms))
    crosses = terms.mode != "bits" and "guarantee" in stated
    crossing = {one.path: one for one in _crossings(stated, fresh)} if crosses else {}
    named = {one.path for one in found}
    merged = [crossing.get(one.path, one) for one in found]
    return merged + [one for path, one in crossing.items() if path not in named]


def _without(certificate: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in certificate.items() if key not in UNCOMPARED}


def _walk(path: Path, stated: Any, fresh: Any, terms: Terms) -> Iterator[Difference]:
    if isinstance(stated, dict) and isinstance(fresh, dict):
        for key in [*fresh, *(key for key in stated if key not in fresh)]:
            below = (*path, key)
            if key not in stated:
                # Required fields are never absent: the reader refuses such a certificate.
                yield Difference(path_text(below), None, fresh[key], True, "not stated by the certificate")
            elif key not in fresh:
                yield Difference(path_text(below), stated[key], None, False, "not part of the recomputed certificate")
            else:
                yield from _walk(below, stated[key], fresh[key], terms)
    elif isinstance(stated, list) and isinstance(fresh, list):
        for index, (one, other) in enumerate(zip(stated, fresh, strict=False)):
            yield from _walk((*path, index), one, other, terms)
        if len(stated) != len(fresh):
            agrees, reason = _word(path_text(path), terms)
            sizes = f"{len(stated)} entries", f"{len(fresh)} entries"
            yield Difference(path_text(path), *sizes, agrees, reason)
    elif type(stated) is not type(fresh) and not (_is_number(stated) and _is_number(fresh)):
        yield Difference(path_text(path), stated, fresh, False, "of another type")
    elif stated != fresh:
        place = path_text(path)
        agrees, reason = _number(path, stated, fresh, terms) if _is_number(stated) else _word(place, terms)
        yield Difference(place, stated, fresh, agrees, reason)


def _number(path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str]:
    place = path_text(path)
    if terms.mode == "bits":
        return False, "not the same, with the same seed and version"
    if place in terms.given:
        return False, "not what the document gives"
    if _EFFORT.fullmatch(place) and (terms.filled or not terms.same_version):
        return True, "part of how it was computed"
    if terms.mode == "bounds":
        return _from_other_samples(place, stated, fresh)
    if isinstance(stated, int) and isinstance(fresh, int) and place not in ("solved.value", "solved.fails_at"):
        return False, "a whole number, and not the same"
    return _near(stated, fresh, _precision(path, terms.tolerance))


def _from_other_samples(place: str, stated: float, fresh: float) -> tuple[bool, str]:
    if place == "guarantee.failure_probability":
        return _near(stated, fresh, LIKELY)
    if place.startswith(("guarantee.", "profile[", "directions.", "evidence.")):
        return True, "from other samples"
    return _near(stated, fresh, ROUNDING)


def _precision(path: Path, tolerance: float) -> float:
    """The relative width to which a composed number agrees."""
    top, leaf = str(path[0]), str(path[-1])
    if top in ("unamplified", "group_lemma"):
        return CONTRAST
    if top == "guarantee" or (top == "directions" and "profile" not in path):
        return tolerance if leaf.startswith("epsilon") else max(tolerance, PROFILE_TOLERANCE)
    if leaf.startswith("delta") and "profile" in path:
        return max(tolerance, PROFILE_TOLERANCE)
    if top == "solved":
        # Both ends of a bracket as wide as the tolerance may move within it.
        return 2.0 * tolerance
    if top == "evidence" and leaf in ("lower", "upper"):
        return max(tolerance, PROFILE_TOLERANCE)
    return PROFILE_TOLERANCE if top == "evidence" and leaf != "tolerance" else ROUNDING


def _near(stated: float, fresh: float, precision: float) -> tuple[bool, str]:
    size = max(abs(stated), abs(fresh))
    distance = abs(stated - fresh) / size if math.isfinite(size) else math.inf
    words = f"{distance:.2g} apart, relatively; {precision:.2g} may be"
    return distance <= precision, words


def _word(place: str, terms: Terms) -> tuple[bool, str]:
    if place == "statement" and terms.mode != "bits":
        # That it fits the certificate's own figures is looked at elsewhere.
        return True, "the figures in it differ"
    if _EFFORT.fullmatch(place) and terms.filled:
        return True, "part of how it was computed"
    if not terms.same_version and _WORDS.fullmatch(place):
        return True, "said otherwise by another version"
    return False, "not the same"


def _crossings(stated: dict[str, Any], fresh: dict[str, Any]) -> Iterator[Difference]:
    """Bounds of one certificate that refute a bound of the other: an upper end below the other's lower end.

    They are bounds on the same only where the other coordinate is the same.
    """
    mine, theirs = dict(_intervals(stated)), dict(_intervals(fresh))
    for place, (other, lower, upper) in mine.items():
        fresh_other, fresh_lower, fresh_upper = theirs.get(place, (None, 0.0, math.inf))
        if fresh_other != other:
            continue
        if upper < fresh_lower:
            reason = f"refuted: at least {fresh_lower!r} by the recomputed lower end"
            yield Difference(place, upper, fresh_upper, False, reason)
        if lower > fresh_upper:
            reason = f"refuted: at most {fresh_upper!r} by the recomputed upper end"
            yield Difference(f"{place}_lower", lower, fresh_lower, False, reason)


def _intervals(certificate: dict[str, Any]) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Each interval of a certificate: its path, the other coordinate, and its ends."""
    guarantee, directions = certificate["guarantee"], certificate["directions"]
    at = {"epsilon": guarantee["delta"], "delta": guarantee["epsilon"]}
    curves = {"profile": certificate["profile"]}
    pairs = {"guarantee": guarantee}
    for name, direction in directions.items():
        pairs[f"directions.{name}"] = direction
        curves[f"directions.{name}.profile"] = direction["profile"]
    for place, pair in pairs.items():
        for name, other in at.items():
            yield f"{place}.{name}", (other, pair[f"{name}_lower"], pair[name])
    for place, points in curves.items():
        for index, point in enumerate(points):
            yield f"{place}[{index}].delta", (point["epsilon"], point["delta_lower"], point["delta"])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
