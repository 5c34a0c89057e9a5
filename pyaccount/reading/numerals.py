"""The spellings of numbers and durations, and the ranges of numbers: what one contains, and how it is described.

Plain YAML scalars, quoted ones, overrides and mappings all accept the same spellings: `2000`, `50_000`, `2e3`,
`1.0e-5`, `.5`, `0x1F`, `0o17`. A leading zero has no meaning, as in YAML 1.2: `010` is ten. The patterns are part of
the JSON Schema too, so they only use syntax that Python and ECMAScript interpret in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyaccount.reading.typography import plain_text

_DIGITS = "[0-9]+(?:_[0-9]+)*"

_DECIMAL = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?[0-9]+)?"

_BASED = "0x[0-9a-fA-F]+|0o[0-7]+"

_QUANTITY = rf"{_DECIMAL} ?(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"

NUMBER_PATTERN = rf"^(?:[-+]?{_DECIMAL}|{_BASED})$"

DURATION_PATTERN = rf"^{_QUANTITY}(?: ?{_QUANTITY})*$"

_INTEGER = re.compile(rf"[-+]?{_DIGITS}")

_FLOAT = re.compile(rf"[-+]?{_DECIMAL}")

_BASED_INTEGER = re.compile(_BASED)

_NOT_FINITE = re.compile(r"[-+]?\.?(?:inf|infinity|nan)", re.IGNORECASE)

_DURATION = re.compile(rf"{_QUANTITY}(?: ?{_QUANTITY})*")

_DURATION_PART = re.compile(rf"({_DECIMAL}) ?([a-z]+)")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

#: The maximum length of an integer. Python limits the length that it reads, and no range of the language needs more.
_LONGEST_INTEGER = 400


def parse_number(text: str) -> int | float | None:
    """Return the number that a text spells, or `None`. Decimals that are too large for a float become infinite."""
    if len(text) <= _LONGEST_INTEGER:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _BASED_INTEGER.fullmatch(text):
            return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return None


#: A number such as `60.000`, whose point separates thousands for some readers and decimals for others.
_GROUPED = re.compile(r"[1-9][0-9]{0,2}\.000")


class Grouped(float):
    """A number that was written like `60.000`. Its value is 60, but sixty thousand may have been meant."""

    text: str

    def __new__(cls, text: str) -> Grouped:
        """Create the number that the text spells."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        """Return the text from which a copy is created."""
        return (self.text,)


def with_separators(value: object) -> str | None:
    """Return the text of a number that was written like `60.000`, in quotes or not; `None` for other values."""
    if isinstance(value, Grouped):
        return value.text
    return value if isinstance(value, str) and _GROUPED.fullmatch(value) else None


def two_readings(text: str) -> str:
    """Return the message about a count that was written like `60.000`."""
    small, thousands = text.partition(".")[0], text.replace(".", "_")
    return (
        f"the point may separate decimals, which is {small}, or thousands, which is {thousands}: "
        f"write {small} or {thousands}"
    )


def has_two_meanings(text: str, *, small: bool) -> bool:
    """Return whether the text of a quantity that is not a count means two numbers: `5m` is five million or five thousandths, and
    `1-5`, unless only `small` numbers are possible, is 1e-5 or a range from 1 to 5.
    """
    written = plain_text(text)
    return re.fullmatch(rf"{_DECIMAL} ?[mMbB]", written) is not None or (
        not small and re.fullmatch(r"[0-9.]+-[0-9]+", written) is not None
    )


def parse_duration(text: str) -> float | None:
    """Return the seconds of a text such as `10 min`, `90s` or `1 h 30 min`, or `None` for other texts."""
    if not _DURATION.fullmatch(text):
        return None
    return math.fsum(float(amount) * _SECONDS[unit[0]] for amount, unit in _DURATION_PART.findall(text))


def _shortened(found: re.Match[str]) -> str:
    return spelled_number(float(found[1]) * {"k": 1e3, "m": 1e6, "b": 1e9}[found[2].lower()])


def spelled_number(number: float) -> str:
    """Return a number as a document spells it, to twelve digits, for example `50_000`."""
    digits = float(f"{number:.12g}")
    return f"{int(digits):_}" if digits.is_integer() else f"{digits:.12g}"


#: Patterns of numbers as they are written elsewhere, each with a function that returns the spelling of a document.
_ELSEWHERE: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (rf"([-+]?{_DECIMAL}) ?%", lambda found: f"{float(found[1]) / 100.0:.12g}"),
    (
        r"[1-9][0-9]{0,2}(?:[, '][0-9]{3})+|[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,}",
        lambda found: re.sub("[, '.]", "_", found[0]),
    ),
    (r"([-+]?[0-9]+),([0-9]+(?:[eE][-+]?[0-9]+)?)", lambda found: f"{found[1]}.{found[2]}"),
    (rf"({_DECIMAL}) ?([kKmMbB])", _shortened),
    (
        rf"({_DECIMAL}) ?/ ?({_DECIMAL})",
        lambda found: f"{float(found[1]) / float(found[2]):.12g}" if float(found[2]) > 0.0 else "",
    ),
    (
        r"(?:([0-9.]+) ?[*x×·] ?)?10 ?(?:\^|\*\*) ?\(?([-+]?[0-9]{1,4})\)?",
        lambda found: f"{found[1] or '1'}e{int(found[2])}",
    ),
    # The remains of 10⁻⁵ and of 1e−5 after a superscript or a letter was lost.
    (r"(?:([0-9.]+) ?[*x×·] ?)?10(-[0-9]{1,3})", lambda found: f"{found[1] or '1'}e{int(found[2])}"),
    (r"([1-9])(-[0-9]{1,3})", lambda found: f"{found[1]}e{int(found[2])}"),
    (rf"([-+]?{_DECIMAL})(?:[,;]| ?nats?)", lambda found: found[1]),
    (rf"([-+]?{_DECIMAL})(#.*)", lambda found: f"{found[1]} {found[2]}"),
)


def meant(text: str) -> str | None:
    """Return the valid spelling of a number such as `1%`, `50,000`, `8,0`, `1/50000` or `10⁻⁵`, or `None`."""
    written = plain_text(text).strip("\"'") if len(text) <= _LONGEST_INTEGER else ""
    matches = ((re.fullmatch(pattern, written), spell) for pattern, spell in _ELSEWHERE)
    spelled = next((spell(found) for found, spell in matches if found), "")
    if not spelled and written != text and parse_number(written) is not None:
        spelled = written
    # A suggestion that is not a finite number would not help.
    number = parse_number(spelled.partition(" #")[0])
    return re.sub(r"e([-+]?)0+(?=[0-9])", r"e\1", spelled) if number is not None and _held(number) else None


def with_a_comma(text: str) -> str | None:
    """Return the number of a text such as `1,125` as text, if the comma separates decimals; `None` for other texts."""
    found = re.fullmatch(r"([-+]?[0-9]+),([0-9]+)", plain_text(text)) if len(text) <= _LONGEST_INTEGER else None
    return f"{found[1]}.{found[2]}" if found else None


_WORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def parse_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of a plain YAML scalar by the core schema of YAML 1.2, with underscores in numbers.

    `on`, `yes` and dates are text. A number that is too large for a float stays text too: a numeric field then reports
    that it is out of range, and shows what was written.
    """
    if text in _WORDS:
        return _WORDS[text]
    number = parse_number(text) if text[0] in "+-.0123456789" else None
    if number is None:
        return text
    if _GROUPED.fullmatch(text):
        return Grouped(text)
    named = text.lstrip("+-")[:2].lower() in (".i", ".n")
    return number if named or _held(number) else text


def _held(number: int | float) -> bool:
    """Return whether the number is finite and not too large for a float."""
    try:
        return math.isfinite(number)
    except OverflowError:
        # An integer of several hundred digits.
        return False


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from `minimum` to `maximum`; `above` excludes the minimum, and `below` the maximum."""

    minimum: float
    maximum: float
    above: bool = False
    below: bool = False
    #: Whether 0 is in the range too, although it is below the minimum.
    zero: bool = False
    unit: str = ""
    words: str | None = None
    #: What the number counts or the unit it is measured in, if messages need not state it.
    measure: str = ""

    def __contains__(self, number: float) -> bool:
        """Whether the number is in the range; NaN and infinities are in no range."""
        if isinstance(number, float) and not math.isfinite(number):
            return False
        if self.zero and number == 0:
            return True
        from_below = number > self.minimum if self.above else number >= self.minimum
        from_above = number < self.maximum if self.below else number <= self.maximum
        return from_below and from_above

    def describe(self) -> str:
        """Return the range in words that complete "must be …"."""
        if self.words is not None:
            return self.words
        low = f"{'greater than' if self.above else 'at least'} {spelled_bound(self.minimum)}"
        high = f"{'less than' if self.below else 'at most'} {spelled_bound(self.maximum)}"
        return f"{low} and {high}{' ' if self.unit else ''}{self.unit}"

    def json_schema(self) -> dict[str, Any]:
        """Return the range as keywords of JSON Schema."""
        interval = {
            "exclusiveMinimum" if self.above else "minimum": self.minimum,
            "exclusiveMaximum" if self.below else "maximum": self.maximum,
        }
        return {"anyOf": [{"const": 0}, interval]} if self.zero else interval


def spelled_bound(number: float) -> str:
    """Return a bound as people write it: `50_000`, `1e9`, and `1e-5` without a leading zero in the exponent."""
    if isinstance(number, int) and abs(number) < 10**7:
        return f"{number:_}" if abs(number) >= 10**4 else str(number)
    mantissa, _, exponent = f"{number:g}".partition("e")
    if isinstance(number, int) and float(f"{number:g}") != number:
        return f"{number:_}"
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa
