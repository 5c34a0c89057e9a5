"""The HTML report in a real browser: it renders, asks the network for nothing, and can be read by everybody."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import browser
import pytest
from report_samples import HOSTILE, KINDS, amplified, certificate, compared, hostile

from pyaccount.pages.page import SENSES


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    program = browser.find()
    if program is None:
        pytest.skip("no Chromium on this machine: install the package chromium to test reports in a browser")
    with browser.running(program) as running:
        yield running


@pytest.fixture(scope="module", params=[*KINDS, "amplification", "comparison", "hostile"])
def tab(
    request: pytest.FixtureRequest, chromium: browser.Browser, tmp_path_factory: pytest.TempPathFactory
) -> browser.Tab:
    kind = request.param
    html = {
        "amplification": lambda: amplified().to_html(),
        "comparison": lambda: compared().to_html(),
        "hostile": lambda: hostile("sampled").to_html(),
    }.get(kind, lambda: certificate(kind).to_html())()
    page = tmp_path_factory.mktemp("page") / f"{kind}.html"
    page.write_text(html, encoding="utf-8")
    opened = chromium.tab()
    opened.open(page.as_uri())
    return opened


def test_it_loads_alone_and_without_complaint(tab: browser.Tab) -> None:
    requests = [
        event["params"]["request"]["url"] for event in tab.events if event["method"] == "Network.requestWillBeSent"
    ]
    assert len(requests) == 1
    assert requests[0].startswith("file:")
    complaints = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
    assert [event for event in tab.events if event["method"] in complaints] == []
    assert tab.ask("document.querySelectorAll('script, iframe, img, object, embed, [style]').length") == 0
    assert tab.ask("document.compatMode") == "CSS1Compat"
    assert tab.ask(
        "[...document.querySelectorAll('link, a')].every(one => /^(#|data:)/.test(one.getAttribute('href')))"
    )


def test_every_number_has_a_direction_a_unit_and_an_origin(tab: browser.Tab) -> None:
    numbers = tab.ask(
        """[...document.querySelectorAll('.number')].map(one => ({
            text: one.textContent, title: one.title, ...one.dataset,
            note: document.getElementById('origin-' + one.dataset.origin)?.textContent ?? null}))"""
    )
    assert len(numbers) > 20
    for number in numbers:
        assert number["direction"] in SENSES, number
        assert number["unit"], number
        assert number["note"], number
        for words in (number["direction"], number["unit"], number["note"]):
            assert words in number["title"], number
        assert re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?|∞", number["text"]), number


def test_bounds_say_in_words_that_they_are(tab: browser.Tab) -> None:
    """The direction of a bound can be read beside it, in its row's name, its column's heading or its caption."""
    silent = tab.ask(
        """[...document.querySelectorAll('.number')].filter(one => {
            const direction = one.dataset.direction;
            if (!['at most', 'at least'].includes(direction) || one.closest('.note')) return false;
            const cell = one.closest('td');
            const words = cell
                ? cell.closest('table').tHead.rows[0].cells[cell.cellIndex].textContent
                : one.closest('caption, p, div').textContent;
            return !words.includes(direction);
        }).map(one => one.outerHTML)"""
    )
    assert silent == []


def test_no_figure_stands_outside_a_number(tab: browser.Tab, request: pytest.FixtureRequest) -> None:
    """In the sections whose text is the report's own, every digit belongs to a number, a formula or a machine's text."""
    if "hostile" in request.node.name:
        pytest.skip("the hostile certificate has digits in its words")
    rest = tab.ask(
        """['guarantee', 'meaning', 'profile', 'contrast', 'budget'].flatMap(name => {
            const section = document.getElementById(name)?.parentElement;
            return section ? [...section.querySelectorAll('dd, td, caption, p')] : [];
        }).map(one => {
            const copy = one.cloneNode(true);
            copy.querySelectorAll('.number, code, .mark').forEach(part => part.remove());
            return copy.textContent.trim();
        })"""
    )
    if rest == []:
        assert any(kind in request.node.name for kind in ("amplification", "comparison"))
    for words in rest:
        assert not re.search(r"\d", re.sub(r"N\(μ, 1\) against N\(0, 1\)", "", words)), words


def test_landmarks_headings_and_words_for_pictures(tab: browser.Tab) -> None:
    assert tab.ask("document.documentElement.lang") == "en"
    assert tab.ask("document.title.length") > 10
    for landmark in ("header", "nav", "main", "footer"):
        assert tab.ask(f"document.querySelectorAll('body > {landmark}').length") == 1
    levels = tab.ask("[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    pictures = tab.ask(
        """[...document.querySelectorAll('svg')].map(one => [one.getAttribute('role'),
            ...one.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent)])"""
    )
    assert len(pictures) >= 1
    for role, title, description in pictures:
        assert role == "img"
        assert len(title) > 10
        assert len(description) > 30
    identifiers = tab.ask("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(identifiers) == len(set(identifiers))
    targets = tab.ask("[...document.querySelectorAll('a[href^=\"#\"]')].map(one => one.getAttribute('href').slice(1))")
    assert set(targets) <= set(identifiers)
    assert tab.ask("[...document.querySelectorAll('a')].every(one => one.textContent.trim() || one.ariaLabel)")
    assert tab.ask("[...document.querySelectorAll('table')].every(one => one.caption && one.tHead.rows.length === 1)")
    assert tab.ask("[...document.querySelectorAll('th')].every(one => one.scope === 'col')")
    assert tab.ask(
        "[...document.querySelectorAll('section')].every(one => document.getElementById(one.getAttribute('aria-labelledby')))"
    )


#: The WCAG contrast of all text and of the lines of pictures against what lies behind, and the least it may be.
CONTRAST = """(() => {
    const parse = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
    const light = colour => colour.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const behind = one => {
        for (let up = one; up; up = up.parentElement) {
            const colour = parse(getComputedStyle(up).backgroundColor);
            if (colour[3] > 0) return colour;
        }
        return [255, 255, 255, 1];
    };
    const found = [];
    const check = (one, colour, least) => {
        const [a, b] = [light(parse(colour)), light(behind(one))].sort((x, y) => y - x);
        found.push([(a + 0.05) / (b + 0.05), least, one.className.baseVal ?? one.className, one.textContent.slice(0, 40)]);
    };
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const one = walk.currentNode.parentElement, style = getComputedStyle(one);
        if (!walk.currentNode.textContent.trim() || one.closest('title, desc')) continue;
        const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        check(one, one.closest('svg') ? style.fill : style.color, large ? 3 : 4.5);
    }
    document.querySelectorAll('.plot .line, .plot .axis').forEach(one => check(one, getComputedStyle(one).stroke, 3));
    document.querySelectorAll('.plot .marker').forEach(one => check(one, getComputedStyle(one).fill, 3));
    return found;
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast(tab: browser.Tab, dark: bool) -> None:
    tab.look(dark=dark)
    brightness = tab.ask("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (brightness < 64) == dark
    found = tab.ask(CONTRAST)
    assert len(found) > 50
    assert [one for one in found if one[0] < one[1]] == []


@pytest.mark.parametrize("width", [1200, 700, 320])
def test_no_width_makes_the_page_scroll_sideways(tab: browser.Tab, width: int) -> None:
    tab.look(width=width)
    assert tab.ask("document.documentElement.scrollWidth") <= width
    assert tab.ask("[...document.querySelectorAll('svg')].every(one => one.getBoundingClientRect().width > 200)")


CUT = """[...document.querySelectorAll('.scroll, table, td, th, pre, dd, dt, li, p, h1, h2, h3')].filter(one =>
    (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1 && getComputedStyle(one).display !== 'inline')
    || (one.getBoundingClientRect().width > 1 && one.getBoundingClientRect().right > innerWidth)
).map(one => one.tagName + ' ' + one.textContent.trim().slice(0, 60))"""


@pytest.mark.parametrize("width", [1000, 700, 400, 320])
def test_no_column_is_cut(tab: browser.Tab, width: int) -> None:
    tab.look(width=width)
    assert tab.ask("innerWidth") == width
    assert tab.ask(CUT) == []


def test_a_cell_of_a_narrow_page_says_its_heading(tab: browser.Tab) -> None:
    tab.look(width=400)
    found = tab.ask(
        """[...document.querySelectorAll('table')].map(table => ({
            headings: [...table.querySelectorAll('th')].map(one => one.textContent),
            cards: getComputedStyle(table.querySelector('tbody tr')).display === 'grid',
            told: [...table.querySelector('tbody tr').cells].map(one => one.dataset.heading),
            shown: [...table.querySelector('tbody tr').cells].map(one => getComputedStyle(one, '::before').content),
            roles: [...table.querySelectorAll('tr')].every(one => one.getAttribute('role') === 'row'),
        }))"""
    )
    assert found
    for table in found:
        assert table["told"] == table["headings"]
        assert table["roles"]
        assert table["cards"] == (len(table["headings"]) > 5)
        if table["cards"]:
            assert all(one != "none" for one in table["shown"])


def test_words_of_pictures_stay_inside_and_apart(tab: browser.Tab) -> None:
    for width in (1000, 360):
        tab.look(width=width)
        outside = tab.ask(
            """[...document.querySelectorAll('svg')].flatMap(one => {
                const frame = one.getBoundingClientRect();
                return [...one.querySelectorAll('text')].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
                }).map(text => text.textContent);
            })"""
        )
        assert outside == []
        touching = tab.ask(
            """[...document.querySelectorAll('svg')].flatMap(one => {
                const boxes = [...one.querySelectorAll('.tick')].map(text => [text.textContent, text.getBoundingClientRect()]);
                return boxes.flatMap(([a, x], k) => boxes.slice(k + 1).filter(([b, y]) =>
                    x.left < y.right && y.left < x.right && x.top < y.bottom && y.top < x.bottom).map(([b]) => a + ' on ' + b));
            })"""
        )
        assert touching == []


def test_it_prints_in_black_on_white_without_navigation(tab: browser.Tab) -> None:
    tab.look(dark=True, media="print")
    assert tab.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert tab.ask("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    pdf = tab.pdf()
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
    tab.look()


def test_hostile_text_is_shown_and_nothing_else(chromium: browser.Browser, tmp_path: Path) -> None:
    page = tmp_path / "hostile.html"
    page.write_text(hostile("composed").to_html(), encoding="utf-8")
    tab = chromium.tab()
    tab.open(page.as_uri())
    assert tab.ask("typeof window.owned") == "undefined"
    # Line breaks are spelled out.
    written = HOSTILE.replace("\n", "\\n")
    assert tab.ask("document.querySelector('h1').textContent") == written
    assert tab.ask("document.title") == " ".join(f"Privacy certificate: {written}".split())
    assert len([event for event in tab.events if event["method"] == "Network.requestWillBeSent"]) == 1
