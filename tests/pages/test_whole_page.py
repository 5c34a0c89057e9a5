"""A page says everything that a certificate states, and its four forms say the same."""

import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from certificate_samples import MORE, fresh
from places import CERTIFICATES, EXAMPLES

import pyaccount
from pyaccount.certificate.reading import read_certificate
from pyaccount.pages.page import (
    Checklist,
    Code,
    Entry,
    Fact,
    Figure,
    Page,
    PageTable,
    content_text,
    contents_of,
    quantities_of,
)
from pyaccount.pages.readable import Readable
from pyaccount.rounding import down, rounded_nearest, shortest, up
from pyaccount.store.running import RunList

NAMES = [*(path.stem for path in sorted((CERTIFICATES / "v1").glob("*.json"))), *MORE]

#: Fields that no page shows in their own form, and why.
LEFT_OUT = {
    r"document\..*|mechanism": "the document is shown as YAML, and the normal form with a key on each line",
    r"pyaccount|kind": "the format is a line of the provenance",
    r"holds|.*\.(accepted|tight|within_tolerance)|assumptions_in_short\[\]": "they are said in words, short forms by full texts",
    r"phases\[\]\.noise": "the symbol of the noise says it: σ or the scale b",
    r"phases\[\]\.matrix\.(coefficients\[\]|inverse_coefficients\[\]|entries.*|normalization)": "how many there are is "
    "shown; programs train with them",
    r"directions\..*\.curve\..*": "the picture of the profile shows it",
    r"directions\.\w+\.(delta|delta_lower|epsilon_lower)": "the guarantee is of the larger direction, and shows both ends",
    r"directions\.\w+\.profile\[\]\.(delta|delta_lower|standard_error)": "the table has the larger direction, and one number "
    "for each",
    r"evidence\.compositions\[\]\.profile_evaluations": "it is a cost",
    r"evidence\.sampling\.(profile_failure_probability|tests\[\]\.(mean|standard_error|betting_fractions\[\]|proposal\..*))": (
        "the page of the profile shows the probability; only who recomputes a test needs the rest"
    ),
}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a certificate's JSON that is set, with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]")
    elif value not in (None, False, ""):
        yield path, value


def everything_readable() -> dict[str, Callable[[], Readable]]:
    """Something of every kind that has a page."""
    document = EXAMPLES / "check-a-claim.yaml"
    certificate = CERTIFICATES / "v1" / "deterministic.json"
    scores = ([3.0, 2.0, 1.0, -1.0], [True, True, False, False])
    return {
        "certificate": lambda: readable("verified"),
        "profile": lambda: readable("confidence").profile,
        "amplification": lambda: readable("amplification"),
        "plan": lambda: pyaccount.compile(document),
        "comparison": lambda: pyaccount.compare([certificate, document]),
        "sweep": lambda: pyaccount.sweep(
            {**pyaccount.load(document).to_mapping(), "vary": {"privacy.epsilon": [1, 4]}}
        ),
        "matrix": lambda: pyaccount.matrix(EXAMPLES / "cifar10-bandmf.yaml"),
        "audit": lambda: pyaccount.audit(certificate, *scores),
        "preparation": lambda: pyaccount.prepare(EXAMPLES / "authors.csv", records_per_user=2).report,
        "verdict": lambda: pyaccount.check(certificate, max_epsilon=0.1, max_delta=1e-5),
        "verification": lambda: pyaccount.verify(certificate),
        "runs": lambda: RunList(pyaccount=1, kind="runs", runs=[]),
    }


def words_of(text: str) -> str:
    """The letters and digits of a form, without its markup."""
    text = re.sub(r"<(style|title|desc)\b.*?</\1>|<[^>]*>|\[\^\w+\]", " ", text, flags=re.DOTALL)
    return re.sub(r"[\s\\\\`*|•]+", "", html.unescape(text))


@pytest.mark.parametrize("kind", everything_readable())
def test_the_four_forms_say_the_same(kind: str) -> None:
    made = everything_readable()[kind]()
    page = made.page()
    # Notes on origins, pictures and code are of files; a terminal and a notebook leave them out.
    forms = {
        "text": made.to_text(),
        "text of 80 columns": made.to_text(80) if kind != "comparison" else made.to_text(),
        "markdown": made.to_markdown(),
        "html": made.to_html(),
        "notebook": made._repr_html_(),
    }
    for name, form in forms.items():
        words = words_of(form)
        for part in (page.title, page.name, page.statement, *(badge.text for badge in page.badges)):
            assert words_of(part).lower() in words.lower(), (name, part)
        for section in page.sections:
            blocks = [block for block in section.blocks if not isinstance(block, Figure | Code)]
            if blocks and len(page.sections) > 1:
                assert words_of(section.title) in words, (name, section.title)
            for block in blocks:
                parts = [content_text(content) for content in contents_of(block)]
                parts += [
                    *getattr(block, "headings", ()),
                    *(row.label for row in getattr(block, "rows", ()) if isinstance(row, Fact)),
                ]
                parts += block.items if isinstance(block, Checklist) else ()
                if name == "text of 80 columns":
                    # What is wrapped in columns stands beside other words; its numbers are whole.
                    parts = [number.text for number in quantities_of(block)]
                for part in parts:
                    assert words_of(part) in words, (name, part)


def renderings(value: Any) -> set[str]:
    """How a value may stand on a page: a number rounded in any direction, to any number of digits."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, bool):
        return {"True"}
    digits = range(2, 18)
    return {shortest(value), repr(value)} | {f(value, k) for f in (up, down, rounded_nearest) for k in digits}


def shown(page: Page) -> tuple[str, set[str]]:
    """The text of a page, and each of its numbers and words."""
    parts = [page.title, page.name, page.statement, *(badge.text for badge in page.badges)]
    for section in page.sections:
        for block in section.blocks:
            parts += [content_text(content) for content in contents_of(block)]
            match block:
                case Checklist():
                    parts += block.items
                case Entry():
                    parts += [block.title, block.tag, *(row.label for row in block.rows)]
                case PageTable():
                    parts += block.headings
                case Code():
                    parts.append(block.text)
                case Figure():
                    pass
                case _:
                    parts += [row.label for row in getattr(block, "rows", ())]
    text = "\n".join(parts)
    return text, set(re.findall(r"[^\s,;()\[\]]+", text))


def readable(name: str) -> Any:
    """A certificate of either kind."""
    if name in MORE:
        return fresh(name)
    found = read_certificate(CERTIFICATES / "v1" / f"{name}.json").any()
    return pyaccount.Certificate(found) if found.kind == "certificate" else found


@pytest.mark.parametrize("name", NAMES)
def test_every_field_that_is_set_is_on_the_page(name: str) -> None:
    made = readable(name)
    text, words = shown(made.page())
    missing = {}
    for path, value in leaves(json.loads(made.to_json())):
        if any(re.fullmatch(pattern, path) for pattern in LEFT_OUT):
            continue
        found = renderings(value)
        if not (found & words or (isinstance(value, str) and value in text)):
            missing[path] = value
    assert missing == {}


def test_the_list_of_what_is_left_out_is_short_and_used() -> None:
    paths = {path for name in NAMES for path, _ in leaves(json.loads(readable(name).to_json()))}
    for pattern in LEFT_OUT:
        assert any(re.fullmatch(pattern, path) for path in paths), pattern
    assert len(LEFT_OUT) <= 10
