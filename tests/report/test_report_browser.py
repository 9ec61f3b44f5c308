# SPDX-License-Identifier: Apache-2.0
"""The page in a browser, at every width and in both schemes, with and without scripts."""

from dataclasses import replace

import pytest
from opwest.reports.changes import compare
from opwest.reports.figures import MAP_HEIGHT
from opwest.reports.page import page as render
from opwest.reports.page import picture
from report_browser import browser, find_browser
from report_support import HOSTILE, buffer, example, hostile, layered_example, measured_example, model, report_of, step
from requirements_support import absent, leave_to_rest

WIDTHS = (320, 390, 599, 600, 768, 900, 1199, 1280, 1920)


@pytest.fixture(scope="module")
def chromium():
    leave_to_rest("chromium")
    executable = find_browser()
    if executable is None:
        absent("no Chromium on PATH", "chromium")
    with browser(executable) as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The example with measurements; its page has changes and therefore every part."""
    return measured_example(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def files(report, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    old = model([buffer("hidden", 640, 0, 0, 8)], list(report.models[0].steps))
    before = report_of(replace(old, name=report.models[0].name))
    long = [buffer(f"{'a_very_long_name_' * 6}{i}", 100 * (i + 1), 50 * i * (i + 1), i, i + 1) for i in range(6)]
    pages = {
        "example": render(report, compare(before, report), "before.html"),
        "plain": render(example()),
        "empty": render(report_of(model([], [step(0, "op")]))),
        "long": render(report_of(model(long, [step(i, "an_operator_with_a_long_name" * 3) for i in range(7)]))),
        "hostile": render(hostile(report), compare(before, hostile(report)), HOSTILE),
        "layers": render(layered_example()),
    }
    texts = {f"{name}.html": text for name, text in pages.items()} | {"picture.svg": picture(report)}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name.partition(".")[0]: folder / name for name in texts}


@pytest.mark.parametrize("name", ["example", "plain", "empty", "long", "hostile", "layers"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_has_no_console_errors_requests_or_overflow(chromium, files, name, dark):
    for width in WIDTHS:
        chromium.screen(width, dark=dark)
        chromium.open(files[name])
        chromium.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width, width
        assert chromium.complaints() == []
        assert chromium.requests() == [files[name].as_uri()]
    assert chromium.evaluate("typeof window.alerted") == "undefined"


MAP = """(() => {
  const svg = document.querySelector("svg.map"), all = svg.querySelector(".ground").getBoundingClientRect();
  return [...svg.querySelectorAll(".item")].map(item => {
    const r = item.querySelector(".shape").getBoundingClientRect();
    return [item.dataset.name, r.x - all.x, r.y - all.y, r.width, r.height, all.width, all.height];
  });
})()"""


@pytest.mark.parametrize("width", [390, 1280])
def test_drawn_buffers_equal_the_plan(chromium, files, report, width):
    chromium.screen(width)
    chromium.open(files["plain"])
    buffers = {one.name: one for one in report.models[0].buffers}
    steps, size = len(report.models[0].steps), report.models[0].pools[0].planned
    drawn = chromium.evaluate(MAP)
    assert {row[0] for row in drawn} == set(buffers)
    for name, x, y, wide, high, all_wide, all_high in drawn:
        one = buffers[name]
        assert all_high == MAP_HEIGHT
        assert x / all_wide * steps == pytest.approx(one.first, abs=0.02)
        assert wide / all_wide * steps == pytest.approx(one.last - one.first + 1, abs=0.02)
        assert (all_high - y - high) / all_high * size == pytest.approx(one.offset, abs=0.5)
        assert high / all_high * size == pytest.approx(one.reserved, abs=0.5)
    peak = chromium.evaluate(
        "(() => { const s = document.querySelector('svg.map'), b = s.querySelector('.peak-band');"
        "return b.getBBox().x / s.querySelector('.ground').getBBox().width; })()"
    )
    assert peak * steps == pytest.approx(report.models[0].pools[0].peak.step, abs=0.02)


LABELS = """[...document.querySelectorAll(".item")].flatMap(item => {
  const box = item.querySelector(".shape").getBoundingClientRect();
  return [...item.querySelectorAll(".label")].map(l => l.getBoundingClientRect()).filter(l => l.width > 0).map(l =>
    Math.max(box.left - l.left, l.right - box.right, box.top - l.top, l.bottom - box.bottom));
})"""


@pytest.mark.parametrize("name", ["example", "long", "layers"])
def test_labels_are_inside_their_elements(chromium, files, name):
    for width in WIDTHS[1:]:  # from 360 pixels on, plots have the assumed width
        chromium.screen(width)
        chromium.open(files[name])
        over = chromium.evaluate(LABELS)
        assert over, width
        assert max(over) <= 1, width


GRAPH = """[...document.querySelectorAll("svg.graph .node")].flatMap(node => {
  const box = node.querySelector("rect").getBoundingClientRect();
  return [...node.querySelectorAll("text")].map(t => t.getBoundingClientRect()).map(t =>
    Math.max(box.left - t.left, t.right - box.right, box.top - t.top, t.bottom - box.bottom));
})"""


@pytest.mark.parametrize("name", ["example", "hostile", "layers"])
def test_graphs_have_their_text_inside_of_boxes_and_links_to_the_table(chromium, files, name):
    for width in (390, 1280):
        chromium.screen(width)
        chromium.open(files[name])
        over = chromium.evaluate(GRAPH)
        assert over, width
        assert max(over) <= 1, width
    chromium.evaluate("document.querySelector('svg.graph a').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert chromium.evaluate("document.querySelector('tr:target') !== null")
    inside = chromium.evaluate(
        "[...document.querySelectorAll('svg.roofline .point')].every(p => { const b = p.getBoundingClientRect(),"
        " g = p.closest('svg').getBoundingClientRect(); return b.left >= g.left && b.right <= g.right; })"
    )
    assert inside


def test_pointer_touch_and_keys_show_details_of_a_buffer(chromium, files, report):
    chromium.screen(1280)
    chromium.open(files["plain"])
    output = "document.querySelector('svg.map').closest('figure').querySelector('.inspector').textContent"
    first, second = (row[0] for row in chromium.evaluate(MAP)[:2])
    place = (
        "(() => { const r = [...document.querySelectorAll('svg.map .item')][1].querySelector('.shape')"
        ".getBoundingClientRect(); return [r.x + 3, r.y + r.height / 2]; })()"
    )
    chromium.point(*chromium.evaluate(place))
    assert chromium.evaluate(output).startswith(f"{second}: ")
    chromium.evaluate("document.querySelector('svg.map .item[tabindex=\"0\"]').focus()")
    assert chromium.evaluate(output).startswith(f"{first}: ")
    assert " bytes at offset " in chromium.evaluate(output)
    chromium.key("ArrowRight")
    assert chromium.evaluate(output).startswith(f"{second}: ")
    chromium.key("End")
    chromium.key("ArrowDown")
    last = chromium.evaluate(MAP)[-1][0]
    assert chromium.evaluate(output).startswith(f"{last}: ")
    assert chromium.evaluate("document.activeElement.dataset.name") == last
    assert chromium.evaluate("document.querySelectorAll('svg.map .item[tabindex=\"0\"]').length") == 1
    tapped = "document.querySelector('svg.map .item').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    chromium.evaluate(tapped)
    assert chromium.evaluate(output).startswith(f"{first}: ")
    assert chromium.complaints() == []


GROUND = "getComputedStyle(document.body).backgroundColor"


def test_schemes_follow_the_system_and_the_button(chromium, files):
    seen = {}
    for dark in (False, True):
        chromium.screen(1280, dark=dark)
        chromium.open(files["plain"])
        seen[dark] = chromium.evaluate(GROUND)
        chromium.evaluate("document.getElementById('theme').click()")
        seen[dark, "other"] = chromium.evaluate(GROUND)
    assert seen[False] == seen[True, "other"] == "rgb(244, 245, 248)"
    assert seen[True] == seen[False, "other"] == "rgb(14, 17, 22)"
    chromium.screen(1280, dark=True, media="print")
    assert chromium.evaluate(GROUND) == "rgb(255, 255, 255)"


def test_page_is_complete_without_scripts(chromium, files, report):
    chromium.screen(1280)
    chromium.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(files["example"])
    finally:
        chromium.send("Emulation.setScriptExecutionDisabled", value=False)
    assert not chromium.evaluate("document.documentElement.classList.contains('scripted')")
    assert chromium.evaluate("document.querySelector('.inspector').offsetHeight") == 0
    assert chromium.evaluate("document.getElementById('theme').offsetHeight") == 0
    titles = chromium.evaluate("[...document.querySelectorAll('svg.map title')].map(t => t.textContent)")
    assert len(titles) == len(report.models[0].buffers)
    assert all(" bytes at offset " in title for title in titles)


def test_every_part_is_accessible(chromium, files, report):
    chromium.screen(1280)
    chromium.open(files["example"])
    nodes = chromium.send("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n["name"]["value"]) for n in nodes if "name" in n and not n.get("ignored")]
    headings = [name for role, name in named if role == "heading"]
    for title in ("Changes", "two_npus", "Memory over time", "Schedule", "Flash and RAM", "Measured", "Objects"):
        assert title in headings
    for one in report.models[0].buffers:
        assert any(role in ("image", "img") and name.startswith(f"{one.name}: ") for role, name in named), one.name
    assert not [role for role, name in named if role in ("button", "link", "table", "image", "img") and not name]


def test_picture_and_print_view(chromium, files):
    chromium.screen(1280)
    chromium.open(files["picture"])
    assert chromium.complaints() == []
    assert chromium.evaluate("document.querySelectorAll('.item').length") > 9
    chromium.screen(1280, dark=True)
    chromium.open(files["example"])
    paper = chromium.send("Page.printToPDF", printBackground=True)["data"]
    assert len(paper) > 20_000
    assert chromium.complaints() == []


def test_page_of_thousands_of_buffers_is_usable(chromium, tmp_path):
    count = 4_000
    many = [buffer(f"b{i}", 64, 64 * (i % 12), i, min(i + 12, count) - 1) for i in range(count)]
    path = tmp_path / "large.html"
    path.write_text(render(report_of(model(many, [step(i, f"op{i % 9}") for i in range(count)]))), encoding="utf-8")
    chromium.screen(390)
    chromium.open(path)
    assert chromium.evaluate("document.querySelectorAll('*').length") < 12_000
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 390
    assert chromium.evaluate("document.querySelectorAll('svg.map .item').length") == 400
    assert chromium.complaints() == []
