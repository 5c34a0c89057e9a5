"""Reports: the same numbers in every form, rounded in their direction, and nothing in a certificate becomes markup."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest
import yaml
from gate_tools import RUNS, save
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from nightly import NIGHTLY
from places import EXAMPLES
from report_samples import HOSTILE, KINDS, amplified, certificate, hostile, text_of
from snapshots import Run, Snapshot

import pyaccount
from pyaccount.certificate.report import curves, page_of
from pyaccount.certificate.report.parts import ORIGINS, yaml_text
from pyaccount.forms import FORMS
from pyaccount.pages.page import SENSES, Figure, Page, PageTable, Quantity
from pyaccount.pages.plot import Axis, Plot, Series, log_axis
from pyaccount.pages.readable import printed
from pyaccount.pages.svg import svg
from pyaccount.rounding import up
from pyaccount.schemas import SCHEMAS


def pages() -> list[Page]:
    return [page_of(certificate(kind).data) for kind in KINDS] + [page_of(amplified())]


@pytest.mark.parametrize("kind", [*KINDS, "amplification"])
def test_every_number_knows_its_unit_direction_and_origin(kind: str) -> None:
    page = page_of(amplified() if kind == "amplification" else certificate(kind).data)
    numbers = list(page.numbers())
    assert len(numbers) > 20
    for number in numbers:
        assert number.direction in SENSES
        assert number.origin in ORIGINS
        assert number.unit
        assert re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?|∞", number.text), number
    assert {"at most", "chosen"} <= {number.direction for number in numbers}
    written = printed(page, "markdown")
    for origin in page.used_origins():
        assert f"[^{origin}]:" in written


@pytest.mark.parametrize("kind", KINDS)
def test_both_forms_show_the_guarantee_rounded_in_its_direction(kind: str) -> None:
    data = certificate(kind).data
    facts = {fact.label: fact for block in page_of(certificate(kind).data).sections[0].blocks for fact in block.rows}  # type: ignore[union-attr]
    for label, upper, lower in (
        ("ε", data.guarantee.epsilon, data.guarantee.epsilon_lower),
        ("δ", data.guarantee.delta, data.guarantee.delta_lower),
    ):
        above, below = (part for part in facts[label].content if not isinstance(part, str))
        assert (above.direction, below.direction) == ("at most", "at least")  # type: ignore[union-attr]
        # A number given with few digits is shown as given: its double may lie a hair above.
        assert Decimal(above.text) >= Decimal(repr(upper))
        assert Decimal(below.text) <= Decimal(repr(lower))
        for written in (certificate(kind).to_html(), certificate(kind).to_markdown()):
            assert above.text in written
            assert below.text in written


def test_a_claim_that_fails_is_told_first() -> None:
    html, markdown = certificate("refuted").to_html(), certificate("refuted").to_markdown()
    assert '<p class="verdict fails">does not hold</p>' in html
    assert markdown.startswith("# Privacy certificate: check-a-claim — **does not hold**\n")
    assert '<p class="verdict holds">holds</p>' in certificate("composed").to_html()


def test_sampled_certificates_say_with_what_probability_the_attacks_bounds_fail() -> None:
    # The document's δ is 1e-2, of which the test has 1 %, and each bound from samples may be wrong as often (docs/sampling.md).
    # So many of them are printed: the ends of the profile's points, and the lower ends of the guarantee. An upper end is the
    # larger one of both directions', each of which fails with half of the probability.
    each, page = Fraction(1, 10_000), page_of(certificate("sampled").data)
    sections = {section.name: section for section in page.sections}
    rows = next(block.rows for block in sections["profile"].blocks if isinstance(block, PageTable))
    printed = [number for row in rows for cell in row[:5] for number in cell if isinstance(number, Quantity)]
    bounds = [number for number in printed if number.direction in ("at most", "at least")]
    bounds += [
        number
        for block in sections["guarantee"].blocks
        for number in numbers_of(block)
        if number.direction == "at least"
    ]
    assert len(bounds) == 2 * 14 + 2
    tests = 1
    together = certificate("sampled").meaning.failure_probability
    assert together == pytest.approx(float((len(bounds) + tests) * each), rel=1e-12)
    markdown = certificate("sampled").to_markdown()
    assert f"hold together, except with a probability of at most {up(together, 2)}" in markdown
    # The line of the profile's picture needs all its points at once.
    profile = markdown.partition("## Privacy profile")[2].partition("\n## ")[0]
    assert f"fails with probability at most {up(together, 2)}" in profile
    assert certificate("composed").meaning.failure_probability == 0.0


def numbers_of(block: Any) -> list[Quantity]:
    return [part for row in block.rows for part in (*row.content, *row.note) if isinstance(part, Quantity)]


def test_a_coarse_profile_is_called_coarse() -> None:
    assert "valid but loose" in certificate("matrix").to_markdown()
    assert "valid but loose" not in certificate("composed").to_markdown()


def test_both_directions_are_shown_where_they_differ_and_one_where_they_do_not() -> None:
    assert "detecting absence" in certificate("composed").to_markdown()
    assert "telling" not in certificate("matrix").to_markdown()
    # Under replace-one nobody is absent.
    assert "the original from the substitute" in certificate("substitution").to_markdown()


def test_reports_are_the_same_every_time_and_after_reading() -> None:
    one = certificate("composed")
    again = pyaccount.Certificate.from_json(one.to_json())
    assert one.to_html() == again.to_html()
    assert one.to_markdown() == again.to_markdown()


@pytest.mark.parametrize("kind", ["composed", "sampled", "phases"])
def test_nothing_in_a_certificate_becomes_html(kind: str) -> None:
    html = printed(page_of(hostile(kind).data), "html")
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    # What the template itself opens, and nothing else.
    tags = set(re.findall(r"<([a-zA-Z]+)", html))
    assert tags == set(re.findall(r"<([a-zA-Z]+)", certificate(kind).to_html()))
    assert not re.search(r"\son\w+=", re.sub(r"&[a-z0-9#]+;[^<]*", "", html))


def parse(markdown: str) -> list[Any]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(markdown)


@pytest.mark.parametrize("kind", ["composed", "sampled", "phases"])
def test_nothing_in_a_certificate_becomes_markdown(kind: str) -> None:
    expected, found = parse(certificate(kind).to_markdown()), parse(printed(page_of(hostile(kind).data), "markdown"))

    def inline(tokens: list[Any]) -> set[str]:
        return {child.type for token in tokens for child in token.children or []}

    assert inline(found) <= {"text", "em_open", "em_close", "strong_open", "strong_close", "code_inline", "softbreak"}
    assert not [token for token in found if token.type.startswith("html")]
    # The same tables with the same cells: no sign of the text ended one, or began another.
    for kind_of_token in ("table_open", "td_open", "heading_open", "fence", "bullet_list_open", "blockquote_open"):
        counts = [sum(token.type == kind_of_token for token in tokens) for tokens in (expected, found)]
        if kind_of_token == "td_open" and kind == "composed":
            # As many versions as the hostile certificate has: one instead of three; each row has three cells.
            counts[0] -= 3 * (len(certificate(kind).data.versions) - 1)
        if kind_of_token in ("table_open", "heading_open", "fence", "blockquote_open") or kind == "composed":
            assert counts[0] == counts[1], kind_of_token
    title = next(token for token in found if token.type == "inline")
    words = "".join(child.content for child in title.children)
    # Its line break is spelled out.
    shown = " ".join(HOSTILE.replace("\n", r"\n").split())
    assert words == f"Privacy certificate: {shown} — holds"


def test_the_document_is_shown_as_the_document_it_is() -> None:
    for kind in KINDS:
        document = certificate(kind).data.document
        text = yaml_text(document)
        assert pyaccount.load(yaml.safe_load(text.replace("1e-", "1.0e-"))) == pyaccount.load(document)
    assert "delta: 1e-5\n" in yaml_text(certificate("composed").data.document)


def scramble(value: Any, rng: random.Random) -> Any:
    """The same structure with other numbers, now and then extreme ones; the model decides which are allowed."""
    if isinstance(value, dict):
        return {key: scramble(item, rng) for key, item in value.items()}
    if isinstance(value, list):
        return [scramble(item, rng) for item in value]
    if not isinstance(value, float) or rng.random() < 0.5:
        return value
    # What may be a probability stays one.
    small, large = [0.0, 5e-324, 1e-300, 1e-17, 0.5, 1.0 - 2**-53, 1.0], [3.0, 37.0, 709.5, 1e5, 1.7e308]
    return rng.choice(small if value <= 1.0 else small + large)


def test_any_certificate_that_can_be_read_can_be_reported() -> None:
    rng, reported = random.Random(4), 0
    texts = [certificate(kind).to_json() for kind in ("composed", "sampled", "phases")]
    for _ in range(100 if NIGHTLY else 50):
        try:
            strange = pyaccount.Certificate.from_json(json.dumps(scramble(json.loads(rng.choice(texts)), rng)))
        except pyaccount.CertificateError:
            continue
        page = page_of(strange.data)
        text_of(strange)
        assert all(re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?|∞", number.text) for number in page.numbers())
        assert "nan" not in "".join(
            svg(b.plot, b.name) for s in page.sections for b in s.blocks if isinstance(b, Figure)
        )
        reported += 1
    assert reported > 20


@pytest.mark.parametrize("kind", ["composed", "sampled", "phases"])
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["evidence"]["error_budget"].pop(),
        lambda data: data["directions"]["add"]["profile"].pop(),
        lambda data: data["directions"]["remove"].update(profile=[]),
        lambda data: data.update(profile=[]),
        lambda data: data.update(phases=[]),
        lambda data: data["evidence"].update(sampling=None),
        lambda data: data["guarantee"].update(kind="verified"),
        lambda data: data["guarantee"].update(kind="confidence", failure_probability=0.1),
        lambda data: data["guarantee"].update(kind="deterministic"),
        lambda data: data["phases"][0].update(name="[/]", sampler="[bold"),
    ],
    ids=[
        "budget",
        "profile",
        "direction",
        "points",
        "phases",
        "sampling",
        "verified",
        "confidence",
        "deterministic",
        "markup",
    ],
)
def test_certificates_with_parts_missing_are_reported_in_every_form(kind: str, change: Callable[[Any], Any]) -> None:
    data = json.loads(certificate(kind).to_json())
    change(data)
    strange = pyaccount.Certificate.from_json(json.dumps(data))
    assert strange.data.name in text_of(strange)
    assert printed(page_of(strange.data), "html")
    assert printed(page_of(strange.data), "markdown")


@pytest.mark.parametrize("kind", ["composed", "sampled", "phases"])
def test_nothing_in_a_certificate_becomes_markup_of_the_terminal(kind: str) -> None:
    data = json.loads(certificate(kind).to_json())
    for phase in data["phases"]:
        phase["name"] = "[red]x[/red]"
    data["unamplified"]["description"] = "[/]"
    for line in data["evidence"]["error_budget"]:
        line["source"] = "[/nothing]"
    written = text_of(pyaccount.Certificate.from_json(json.dumps(data)))
    for words in ("[red]x[/red]", "[/]", "[/nothing]"):
        assert words in written


@pytest.mark.parametrize(
    ("corners", "deepest"),
    [
        ([(0.0, 0.1), (10.0, 1e-9)], 1e-9),
        ([(0.0, 0.3), (2.0, 0.2), (50.0, 1e-30)], 1e-30),
        # From where δ is 0 on, the picture ends far below the least δ that is not.
        ([(0.5, 0.9), (3.0, 0.0)], 9e-7),
        ([(0.0, 0.5), (1e-4, 1e-3), (0.3, 1e-6), (400.0, 1e-200)], 1e-200),
    ],
)
def test_the_line_of_the_profile_is_never_below_what_is_certified(
    corners: list[tuple[float, float]], deepest: float
) -> None:
    data = json.loads(certificate("matrix").to_json())
    points = [data["profile"][0] | {"epsilon": e, "delta": d, "delta_lower": 0.0} for e, d in corners]
    (first, _), (last, least) = corners[0], corners[-1]
    for direction in data["directions"].values():
        direction.update(profile=points, curve=None, epsilon=last, epsilon_lower=first, delta=least, delta_lower=0.0)
    data["profile"] = points
    data["guarantee"].update(epsilon=last, epsilon_lower=0.0, delta=least, delta_lower=0.0)
    drawn = curves.profile(pyaccount.Certificate.from_json(json.dumps(data)).data).plot.series[0]
    assert drawn.line
    assert drawn.points[0] == corners[0]
    for (left, above), (right, below) in pairwise(corners):
        for k in range(1, 400):
            # Evenly, and ever nearer to the right end.
            epsilon = left + (right - left) * (k / 200 if k < 200 else 1.0 - 2.0 ** -((k - 200) / 8))
            if not left < epsilon < right:
                continue
            share = mp.expm1(mp.mpf(epsilon) - left) / mp.expm1(mp.mpf(right) - left)
            certified = above - share * (mp.mpf(above) - below)
            segments = [(a, b) for a, b in pairwise(drawn.points) if a[0] <= epsilon <= b[0] and a[0] < b[0]]
            heights = [
                mp.log(a[1]) + (mp.log(b[1]) - mp.log(a[1])) * (mp.mpf(epsilon) - a[0]) / (mp.mpf(b[0]) - a[0])
                for a, b in segments
            ]
            if not heights:
                # Where the line has left the picture, nothing certified is left in it.
                assert certified <= 0.11 * deepest
                continue
            assert max(heights) >= mp.log(certified) - 1e-9, epsilon
            # And so near that nobody sees it: a two-hundredth of the picture up, or a five-hundredth across.
            seen = 0.005 * abs(mp.log(deepest))
            assert min(heights) <= mp.log(certified) + seen or epsilon + 2e-3 * (right - left) >= right


def test_the_dots_below_are_those_of_the_profile_and_of_the_guarantee() -> None:
    for kind in ("composed", "sampled", "matrix"):
        data = certificate(kind).data
        plot = curves.profile(data).plot
        (lower,) = (one for one in plot.series if one.label == "at least")
        # A dot below the picture would be drawn at its bottom, and be wrong there.
        assert all(delta >= plot.y.low for _, delta in lower.points)
        expected = [(one.epsilon, one.delta_lower) for one in data.profile]
        expected += [
            (data.guarantee.epsilon, data.guarantee.delta_lower),
            (data.guarantee.epsilon_lower, data.guarantee.delta),
        ]
        assert {point for point in expected if point[1] >= plot.y.low} == set(lower.points)
        assert (data.guarantee.epsilon_lower, data.guarantee.delta) in lower.points


@pytest.mark.parametrize(
    "changes",
    [
        ("accounting.profile=[]",),
        ("privacy.epsilon=0", "privacy.delta=0.5"),
        ("noise.multiplier=0.3", "privacy.epsilon=solve"),
        ("privacy.delta=1e-200", "privacy.epsilon=solve", "training.iterations=50"),
        ("noise.multiplier=1000", "privacy.epsilon=solve", "privacy.delta=0.1"),
    ],
)
def test_extreme_runs_have_reports(changes: tuple[str, ...]) -> None:
    found = pyaccount.certify(EXAMPLES / "check-a-claim.yaml", overrides=changes)
    assert "<polyline" in found.to_html()
    assert "What it means" in found.to_markdown()
    assert 0.0 <= found.meaning.advantage <= 1.0
    # The bound on the advantage is at least the one that is known to be reached.
    assert found.meaning.advantage >= max((point.delta_lower for point in found.data.profile), default=0.0)


def test_axes_have_few_round_ticks_inside() -> None:
    for low, high in ((0.0, 12.0), (0.0, 0.37), (0.0, 1.0), (0.0, 5000.0)):
        ticks = Axis("", low, high).ticks()
        assert 3 <= len(ticks) <= 8
        assert all(low <= value <= high * (1 + 1e-12) for value, _ in ticks)
    for values in ([1e-6, 1.0], [1e-280], [0.3], []):
        axis = log_axis("", values)
        ticks = axis.ticks()
        assert 3 <= len(ticks) <= 8
        assert ticks[0] == (1.0, "1")
        assert axis.low <= min(values, default=1.0)
    assert Axis("", 1e-4, 1.0, log=True).share(1e-2) == pytest.approx(0.5)


def test_pictures_escape_and_put_points_where_they_belong() -> None:
    axis = Axis("<x>", 0.0, 1.0)
    drawn = svg(Plot("<t>", "<d>", axis, axis, (Series("<s>", ((0.0, 0.0), (1.0, 1.0)), "first"),)), "a")
    assert "<x>" not in drawn
    assert "&lt;s&gt;" in drawn
    assert 'points="96.0,338.0 622.0,16.0"' in drawn


def test_the_command_writes_every_form(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "a.cert.json"
    certificate("composed").save(source)
    for form, begin in (
        ("html", "<!DOCTYPE html>"),
        ("markdown", "# Privacy"),
        ("json", "{"),
        ("text", "Privacy certificate"),
    ):
        code, out, err = run("report", source, "--format", form)
        assert (code, err) == (0, "")
        assert out.lstrip().startswith(begin)
    assert run("report", source)[1] == certificate("composed").to_html()
    for ending, form in (("html", "html"), ("md", "markdown"), ("json", "json"), ("txt", "text")):
        target = tmp_path / f"out.{ending}"
        assert run("report", source, "-o", target) == (0, "", "")
        assert target.read_text(encoding="utf-8") == run("report", source, "--format", form)[1]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"pyaccount": 1, "kind": "comparison", "rows": []}',
        '{"pyaccount": 1, "privacy": {}}',
        '{"pyaccount": 1, "kind": "amplification"}',
        '{"pyaccount": 1, "kind": "amplification-certificate"}',
        "[" * 100_000,
        '{"pyaccount": 1, "kind": "certificate", "kind": "certificate"}',
        '{"pyaccount": 1, "kind": "amplification-certificate", "eta": "0.5"}',
        '{"pyaccount": 1, "kind": "amplification-certificate", "eta": NaN}',
        "pyaccount: 1\nname: yaml\n",
    ],
)
def test_what_is_no_certificate_is_refused(run: Run, tmp_path: Path, content: str, snapshot: Snapshot) -> None:
    source, target = tmp_path / "wrong.json", tmp_path / "out.html"
    source.write_text(content, encoding="utf-8")
    snapshot(run("report", source, "-o", target))
    assert not target.exists()


def test_only_reports_load_the_template_engine() -> None:
    script = (
        "import sys; from pyaccount import cli; cli.run(sys.argv[1:]); "
        "print(sorted(set(sys.modules) & {'jinja2', 'markupsafe', 'numpy', 'scipy'}), file=sys.stderr)"
    )
    for arguments in (["--help"], ["certify", str(EXAMPLES / "check-a-claim.yaml")]):
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
        assert done.stderr.splitlines()[-1] == "[]", arguments


def test_the_ending_decides_what_certify_writes(tmp_path: Path, run: Run) -> None:
    example = str(EXAMPLES / "check-a-claim.yaml")
    draw = str(EXAMPLES / "one-draw.yaml")
    begins = {
        "html": "<!DOCTYPE html>",
        "md": "# ",
        "txt": ("Privacy certificate", "Amplification by sampling"),
        "json": "{",
        "JSON": "{",
    }
    for source in (example, draw):
        for ending, begin in begins.items():
            target = tmp_path / f"out.{ending}"
            code, out, err = run("certify", source, "-o", target)
            # On stdout it is text, as ever.
            assert (code, err) == (0, "")
            assert out.startswith(("Privacy certificate", "Amplification by sampling"))
            assert target.read_text(encoding="utf-8").lstrip().startswith(begin)
    for ending, begin in (("md", "# Comparison"), ("txt", "Comparison"), ("json", "{")):
        target = tmp_path / f"compared.{ending}"
        assert run("compare", example, "-o", target)[0] == 0
        assert target.read_text(encoding="utf-8").startswith(begin)


def test_the_format_overrides_the_ending_and_says_so(tmp_path: Path, run: Run) -> None:
    example = str(EXAMPLES / "check-a-claim.yaml")
    target = tmp_path / "out.html"
    code, out, err = run("certify", example, "-o", target, "--format", "json")
    assert (code, json.loads(out)) == (0, json.loads(target.read_text(encoding="utf-8")))
    assert err == f"--output {target}: written as json, as --format says; its ending says html\n"
    code, _, err = run("report", RUNS["deterministic"], "-o", target, "--format", "markdown")
    assert (code, target.read_text(encoding="utf-8")[:2]) == (0, "# ")
    assert "written as markdown, as --format says; its ending says html" in err
    assert run("certify", example, "-o", tmp_path / "out.md", "--format", "markdown")[2] == ""


def test_an_ending_that_says_no_form_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, snapshot: Snapshot
) -> None:
    example = EXAMPLES / "check-a-claim.yaml"
    for name in ("out.cert", "out", "out.htlm"):
        with monkeypatch.context() as patched:
            patched.setattr(pyaccount.Plan, "run", None)
            snapshot(run("certify", example, "-o", tmp_path / name))
        assert run("certify", example, "-o", tmp_path / name, "--format", "html")[::2] == (0, "")
        assert (tmp_path / name).read_text(encoding="utf-8").lstrip().startswith("<!DOCTYPE html>")
    # A comparison is no table of data.
    snapshot(run("compare", example, "-o", tmp_path / "out.csv"))


def test_python_saves_every_form(tmp_path: Path, snapshot: Snapshot) -> None:
    for one in (certificate("composed"), amplified()):
        for ending, begin in (("html", "<!DOCTYPE html>"), ("md", "# "), ("txt", one.page().title), ("json", "{")):
            one.save(tmp_path / f"a.{ending}")
            assert (tmp_path / f"a.{ending}").read_text(encoding="utf-8").lstrip().startswith(begin)
        one.save(tmp_path / "a.cert", form="markdown")
        assert (tmp_path / "a.cert").read_text(encoding="utf-8") == one.to_markdown()
        snapshot.raised(one.save, tmp_path / "a.certificate")
        snapshot.raised(one.save, tmp_path / "a.json", form="yaml")
        with pytest.warns(UserWarning, match=r"a\.html: written as json, as form says; its ending says html"):
            one.save(tmp_path / "a.html", form="json")


def test_of_what_contradicts_itself_nothing_says_that_it_holds(tmp_path: Path, run: Run) -> None:
    good = json.loads(RUNS["deterministic"].read_text(encoding="utf-8"))
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(good | {"created": "2026-02-11"}), encoding="utf-8")
    for form in FORMS:
        code, fine, _ = run("report", RUNS["deterministic"], "--format", form)
        code, out, err = run("report", bad, "--format", form)
        assert code == 0
        assert "contradicts itself: created: '2026-02-11' is not a time" in err
        for said in ("HOLDS", "— holds", ">holds<", '"holds"'):
            assert said not in out
        assert any(said in fine for said in ("HOLDS", "— holds", ">holds<", '"holds"'))
        place = out.replace("\\", "").index("is not a time with a zone")
        assert place < min(at for at in (out.find("differentially private"), len(out)) if at >= 0)
        target = tmp_path / f"out.{form}"
        assert run("report", bad, "--format", form, "-o", target)[0] == 0
        assert target.read_text(encoding="utf-8") == out
    found = json.loads(run("report", bad, "--format", "json")[1])
    Draft202012Validator(SCHEMAS["contradictory-certificate"]()).validate(found)
    # It is no certificate, and what it says but for the verdict is told as it is.
    assert "not a certificate" in run("check", save(tmp_path, found), "--no-limits")[2]
    loaded = pyaccount.Certificate.load(bad)
    # Fields that it lacks, being older than they are, are null.
    assert found["certificate"] | {"holds": True} == json.loads(loaded.to_json())
    assert "contradicts itself" in loaded.to_html()
    assert loaded.to_markdown().startswith("# Privacy certificate: golden — **contradicts itself**")


def test_an_amplification_that_contradicts_itself_is_shown_as_such(tmp_path: Path, run: Run) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(json.loads(amplified().to_json()) | {"document_sha256": "0" * 64}), encoding="utf-8")
    for form in FORMS:
        code, out, err = run("report", bad, "--format", form)
        assert code == 0
        assert "contradicts itself: document_sha256: " in err
        assert "contradict" in out[: out.index("(0.")]
