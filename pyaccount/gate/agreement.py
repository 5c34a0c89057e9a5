"""Compares a certificate's fields with recomputed ones: what differs, by how much it may, and why.

There are three modes of comparison, by how the numbers were computed:

- `digits`: composed or closed-form numbers. The last digits depend on the machine's arithmetic.
- `bits`: sampled numbers, recomputed with the recorded seed by the same version. Everything must be equal, except the
  last digits of numbers that enter no guarantee and that the machine's linear algebra computes.
- `bounds`: sampled numbers that need not come from the same samples: of another version, compared with samples of
  another seed, or of a matrix that was found by a search (which ends in other last digits on this machine). They are
  recomputed at the certificate's own (ε, δ) and noise with new samples; numbers that do not come from samples must be
  equal.

Unless bits are compared, each end of an interval has a safe side: an upper end may be above the recomputed one by the
engine's tolerance, a lower end below it. On the other side the certificate promises more than was recomputed. Beyond
rounding, such an end is cross-checked, whatever the tolerance, because the document chooses the tolerance.

Every difference is reported, also those that are allowed, so that no change goes unnoticed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pyaccount.errors import Path, path_text
from pyaccount.execute.long_schedules import PROFILE_TOLERANCE

Mode = Literal["digits", "bits", "bounds"]
End = Literal["upper", "lower"]
#: Judges an end that promises more than the recomputed one, from its path and value. Returns whether it holds, and a
#: reason.
Criterion = Callable[[Path, float], tuple[bool, str]]

#: Fields that cannot be recomputed: when and by what the certificate was made, and the hash that covers them.
UNCOMPARED = ("created", "versions", "content_sha256")
#: The relative error by which rounding alone may change numbers that follow from the document.
ROUNDING = 1e-6
#: The same for ends on the side on which they promise more: units in the last place, times their growth in tails. A
#: profile may fall by any factor within 1e-6 of an ε; ends that differ by more are cross-checked.
LAST_DIGITS = 1e-12
#: The relative width to which the black-box lemma is known: it is a contrast that a separate search computes.
CONTRAST = 1e-2
#: The factor by which efforts and errors may differ that depend on where a search ended, or on samples.
MAGNITUDE = 10.0
#: Sentences that another version may word differently. All others, such as assumptions, state what is guaranteed.
_WORDS = re.compile(
    r"noise_convention|reductions\[\d+\]\.(subject|theorem|source|pair|rounds|remark)|"
    r"(unamplified|group_lemma)\.description|evidence\.(compositions\[\d+\]\.question|error_budget\[\d+\]\.source)"
)
#: Fields on how the numbers were computed: efforts and errors.
_EFFORT = re.compile(r"evidence\.(compositions|error_budget|profile_work|sampling\.composed_curve).*")
#: The candidates of a choice, which enter no guarantee.
_CHOSEN = re.compile(r"evidence\.considered.*")
#: Numbers that follow from a linear system or from matrices that a search found: their last digits depend on the
#: machine, and no guarantee contains them.
_MACHINE = re.compile(r"evidence\.considered\[\d+\]\.\w+_estimate|utility\.(workload\.)?\w+")
#: Fields that are set only if a test draws from a power of the likelihood ratio, or of a mean; its pilot decides that.
_POWER = re.compile(r"evidence\.sampling\.tests\[\d+\]\.(proposal\.(order|block|most_busy|log_sobolev)|second_moment)")
#: Numbers that differ between samples and bound nothing. `consistency` checks that accepted tests imply the guarantee.
_DRAWN = re.compile(
    r"evidence\.(within_tolerance|considered.*|sampling\.(samples|tests.*))|.*profile\[\d+\]\.standard_error"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs: the value in the certificate, the recomputed value, and whether this difference is allowed."""

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
    #: The seed of the recomputed samples, if it is not the recorded one.
    seed: int | None = None
    #: The coordinates of the guarantee that the document gives.
    given: frozenset[str] = frozenset()
    #: Whether the certificate's own value of the blank was filled in, because the repeated search found another value.
    filled: bool = False
    #: The ε values that the profile must have; `None` if they are not known.
    points: tuple[float, ...] | None = None
    #: The coordinate of the guarantee that was the blank, if any: the solved value is then this bound.
    blank: Literal["epsilon", "delta"] | None = None
    judge: Criterion | None = None

    @property
    def same_run(self) -> bool:
        """Whether efforts and choices must be equal too: the same version, and the same search and samples."""
        return self.same_version and not self.filled and self.mode != "bounds"


def differences(stated: dict[str, Any], fresh: dict[str, Any], terms: Terms) -> list[Difference]:
    """Return every field of a certificate that differs from the recomputed one, with whether that is allowed."""
    return list(_compared((), _without(stated), _without(fresh), terms))


def _without(certificate: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in certificate.items() if key not in UNCOMPARED}


def _compared(path: Path, stated: Any, fresh: Any, terms: Terms) -> Iterator[Difference]:
    if isinstance(stated, dict) and isinstance(fresh, dict):
        # Bounds of a point are compared directly only with those at the same ε.
        moved = _in_profile(path) and stated.get("epsilon") != fresh.get("epsilon")
        for key in [*fresh, *(key for key in stated if key not in fresh)]:
            below = (*path, key)
            if key not in stated:
                yield Difference(path_text(below), None, fresh[key], False, "not stated by the certificate")
            elif key not in fresh:
                yield Difference(path_text(below), stated[key], None, False, "not part of the recomputed certificate")
            elif key == "curve" and path[0] == "directions":
                yield from _curve(below, stated[key], fresh[key], terms)
            elif moved and _end(below) is not None and terms.mode != "bits":
                yield Difference(path_text(below), stated[key], None, *_judged(below, stated[key], terms))
            else:
                yield from _compared(below, stated[key], fresh[key], terms)
    elif isinstance(stated, list) and isinstance(fresh, list):
        yield from _lists(path, stated, fresh, terms)
    elif type(stated) is not type(fresh) and not (_is_number(stated) and _is_number(fresh)):
        # The samples decide whether an estimate exists, and their pilot how a test draws.
        sampled = path[-1] in ("delta_estimate", "standard_error") or _POWER.fullmatch(path_text(path)) is not None
        drawn = terms.mode == "bounds" and None in (stated, fresh) and sampled
        yield Difference(
            path_text(path),
            stated,
            fresh,
            drawn,
            "only one of the samples gave a value" if drawn else "of another type",
        )
    elif stated != fresh:
        field = path_text(path)
        agrees, reason = _number(path, stated, fresh, terms) if _is_number(stated) else _word(field, terms)
        yield Difference(field, stated, fresh, agrees, reason)


def _lists(path: Path, stated: list[Any], fresh: list[Any], terms: Terms) -> Iterator[Difference]:
    if path[-2:-1] == ("matrix",) and len(stated) == len(fresh) and all(map(_is_number, (*stated, *fresh))):
        yield from _column(path, stated, fresh, terms)
        return
    if path == ("evidence", "error_budget") and terms.mode == "bounds":
        # Directions are listed in the order of their tests; if they are alike, the samples decide that order.
        order = [line["direction"] for line in stated]
        fresh = sorted(
            fresh, key=lambda line: order.index(line["direction"]) if line["direction"] in order else len(order)
        )
    for index, (one, other) in enumerate(zip(stated, fresh, strict=False)):
        yield from _compared((*path, index), one, other, terms)
    if len(stated) != len(fresh):
        agrees, reason = _word(path_text(path), terms)
        sizes = f"{len(stated)} entries", f"{len(fresh)} entries"
        yield Difference(path_text(path), *sizes, agrees, reason)


def _curve(path: Path, stated: Any, fresh: Any, terms: Terms) -> Iterator[Difference]:
    """Compare the points of two curves, which may be at different ε: each stated point is an upper bound of its own."""
    if stated is None and fresh is not None:
        yield Difference(path_text(path), None, fresh, False, "not stated by the certificate")
        return
    bounds = {} if fresh is None else dict(zip(fresh["epsilon"], fresh["delta"], strict=False))
    places, deltas = ([], []) if stated is None else (stated["epsilon"], stated["delta"])
    for index, (epsilon, delta) in enumerate(zip(places, deltas, strict=False)):
        below, recomputed = (*path, "delta", index), bounds.get(epsilon)
        if recomputed is None:
            yield Difference(path_text(below), delta, None, *_judged(below, delta, terms))
        elif delta != recomputed:
            yield Difference(path_text(below), delta, recomputed, *_one_sided("upper", below, delta, recomputed, terms))
    if list(bounds) != places:
        sizes = f"{len(places)} points", f"{len(bounds)} points"
        yield Difference(path_text(path), *sizes, True, "other points: each stated point is a bound of its own")


def _column(path: Path, stated: list[float], fresh: list[float], terms: Terms) -> Iterator[Difference]:
    """Compare the numbers of a matrix, relative to the largest, which is the precision to which a search knows them."""
    largest = max(map(abs, fresh), default=0.0)
    for index, (one, other) in enumerate(zip(stated, fresh, strict=True)):
        if one != other:
            distance = abs(one - other) / largest if largest > 0.0 else math.inf
            agrees = terms.mode != "bits" and distance <= ROUNDING
            reason = (
                f"differs by {distance:.2g} of the largest; {0.0 if terms.mode == 'bits' else ROUNDING:.2g} is allowed"
            )
            yield Difference(path_text((*path, index)), one, other, agrees, reason)


def _in_profile(path: Path) -> bool:
    return len(path) > 1 and path[-2] == "profile"


def _number(path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str]:
    if path[0] == "solved" and terms.blank is not None:
        # The solved value is a bound of the guarantee, and the value at which it fails is the lower bound.
        path = ("guarantee", terms.blank if path[-1] == "value" else f"{terms.blank}_lower")
    judged = _asked(path, stated, fresh, terms) or _reached(path, stated, fresh, terms)
    if judged is not None:
        return judged
    end = _end(path)
    if end is not None:
        return _one_sided(end, path, stated, fresh, terms)
    if terms.mode == "bounds":
        return _of_samples(path, stated, fresh, terms)
    return _computed(path, stated, fresh, terms)


def _asked(path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str] | None:
    """Compare fields that must be equal however they were computed; `None` for other fields."""
    if terms.mode == "bits":
        if _MACHINE.fullmatch(path_text(path)):
            return _near(stated, fresh, ROUNDING)
        return False, "not the same, with the same seed and version"
    if path_text(path) in terms.given or (path[0] == "effects" and path[-1] == "epsilon"):
        return False, "not what the document gives"
    if not _in_profile(path[:-1]) or path[-1] != "epsilon":
        return None
    index = path[-2]
    assert isinstance(index, int)
    listed = terms.points is not None and stated in terms.points[index : index + 1]
    return listed, "a default point for the certificate's own ε" if listed else "not an ε that the document asks for"


def _reached(path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str] | None:
    """Compare fields on how the numbers were computed, if they may differ; `None` for other fields and otherwise."""
    field = path_text(path)
    if terms.same_run:
        return None
    if _CHOSEN.fullmatch(field):
        return True, "about the choice, not about the guarantee"
    if not _EFFORT.fullmatch(field):
        return None
    if path[-1] in ("lower", "upper"):
        return _near(stated, fresh, max(terms.tolerance, PROFILE_TOLERANCE))
    return _alike(stated, fresh)


def _computed(path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str]:
    """Compare composed numbers that are not ends of an interval."""
    solved = path[0] == "solved"
    if isinstance(stated, int) and isinstance(fresh, int) and not solved:
        return False, "a different whole number"
    agrees, reason = _near(stated, fresh, _precision(path, terms.tolerance))
    if solved and isinstance(stated, int) and isinstance(fresh, int) and abs(stated - fresh) == 1:
        # Adjacent whole numbers are the closest that can differ; the claim is checked with each of them.
        agrees, reason = True, "the next whole number"
    return _judged(path, stated, terms) if agrees and solved and path[-1] == "fails_at" else (agrees, reason)


def _end(path: Path) -> End | None:
    """Return which end of an interval for ε or δ a field is; closed-form bounds are upper ends. `None` for others."""
    top, leaf = path[0], path[-1]
    if top == "eta" or (top == "effects" and leaf in ("delta", "amplified_epsilon", "amplified_delta")):
        return "upper"
    if top == "risk":
        ends: dict[Any, End] = {"value": "upper", "value_lower": "lower", "epsilon": "upper", "epsilon_lower": "lower"}
        return ends.get(leaf)
    if top not in ("guarantee", "directions", "profile", "records"):
        return None
    if leaf in ("epsilon_lower", "delta_lower"):
        return "lower"
    return "upper" if leaf == "delta" or (leaf == "epsilon" and "profile" not in path) else None


def _one_sided(end: End, path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str]:
    """Compare ends: to the engine's tolerance on the safe side, else to the last digits, or by a cross-check."""
    closed = path[0] in ("eta", "effects")
    sampled = terms.mode == "bounds"
    safe = stated > fresh if end == "upper" else stated < fresh
    if not safe:
        agrees, reason = _near(stated, fresh, LAST_DIGITS)
        return (agrees, reason) if agrees or closed else _judged(path, stated, terms)
    if sampled and ("profile" in path or path == ("risk", "epsilon") or end == "lower"):
        return True, "from other samples, and on the safe side"
    if sampled or closed:
        return _near(stated, fresh, ROUNDING)
    wide = (
        terms.tolerance
        if path[0] == "risk" or str(path[-1]).startswith("epsilon")
        else max(terms.tolerance, PROFILE_TOLERANCE)
    )
    return _near(stated, fresh, wide)


def _judged(path: Path, stated: float, terms: Terms) -> tuple[bool, str]:
    return (False, "promises more than was recomputed") if terms.judge is None else terms.judge(path, stated)


def _of_samples(path: Path, stated: float, fresh: float, terms: Terms) -> tuple[bool, str]:
    if _DRAWN.fullmatch(path_text(path)):
        return True, "from other samples"
    if path[-1] == "delta_estimate":
        return _judged(path, stated, terms)
    if isinstance(stated, int) and isinstance(fresh, int):
        return False, "a different whole number"
    return _near(stated, fresh, ROUNDING)


def _precision(path: Path, tolerance: float) -> float:
    """Return the relative precision to which composed numbers must agree that are not ends of an interval."""
    top, leaf = str(path[0]), str(path[-1])
    if top == "group_lemma":
        return CONTRAST
    if top == "solved":
        # Both ends of a bracket of this width may move within it.
        return 2.0 * tolerance
    if top == "evidence" and leaf in ("lower", "upper"):
        return max(tolerance, PROFILE_TOLERANCE)
    return PROFILE_TOLERANCE if top == "evidence" and leaf != "tolerance" else ROUNDING


def _near(stated: float, fresh: float, precision: float) -> tuple[bool, str]:
    size = max(abs(stated), abs(fresh))
    distance = abs(stated - fresh) / size if math.isfinite(size) else math.inf
    words = f"differs by {distance:.2g}, relatively; {precision:.2g} is allowed"
    return distance <= precision, words


def _alike(stated: float, fresh: float) -> tuple[bool, str]:
    """Return whether two efforts or errors are of the same order of magnitude; 0 is of no order."""
    small, large = sorted((abs(stated), abs(fresh)))
    if small == 0.0:
        return False, "one of the two is 0, so their orders of magnitude differ"
    return (
        large <= MAGNITUDE * small,
        f"part of how it was computed: differs by a factor of {large / small:.2g}; {MAGNITUDE:g} is allowed",
    )


def _word(place: str, terms: Terms) -> tuple[bool, str]:
    if place == "statement" and terms.mode != "bits":
        # `consistency` checks that the statement fits the certificate's own numbers.
        return True, "the numbers in it differ"
    if not terms.same_run and _CHOSEN.fullmatch(place):
        return True, "about the choice, not about the guarantee"
    if terms.mode == "bounds" and _DRAWN.fullmatch(place):
        return True, "from other samples"
    if not terms.same_version and _WORDS.fullmatch(place):
        return True, "worded differently by another version"
    return False, "not the same"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
