# SPDX-License-Identifier: Apache-2.0
"""The page and the picture as text: complete, escaped, reproducible, self-contained."""

import base64
import hashlib
import html.parser
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from golden_support import GOLDEN, copy_project
from opwest.reports import data
from opwest.reports.changes import compare
from opwest.reports.files import DATA_ID, to_json
from opwest.reports.page import COLOURS, KINDS, MAX_ROWS, page, picture, pretty_json
from report_support import HOSTILE, buffer, example, hostile, layered_example, measured_example, model, report_of, step
from wcag import contrast

VOID = {"meta", "link", "br", "hr", "input", "img"}
SVG = "{http://www.w3.org/2000/svg}"


class Reader(html.parser.HTMLParser):
    """Reads a page: elements in order, text, and whether all elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, text):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += text

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def text_of(report, *changes):
    """Return the text of a page, with single spaces."""
    return re.sub(r"\s+", " ", Reader(page(report, *changes)).text)


@pytest.fixture(scope="module")
def report() -> data.Report:
    return example()


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> data.Report:
    return measured_example(tmp_path_factory.mktemp("measured"))


def test_page_is_well_formed(report, measured) -> None:
    for one in (report, measured, layered_example(), report_of(model([], []))):
        read = Reader(page(one, compare(report, one), "before.html"))
        assert not read.faults
        assert not read.open
        ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        for _, attributes in read.elements:
            for name in attributes.get("aria-labelledby", "").split():
                assert name in ids
            if attributes.get("href", "").startswith("#"):
                assert attributes["href"][1:] in ids


def test_page_is_self_contained(measured) -> None:
    text = page(measured)
    read = Reader(text)
    assert all(link["href"] == "data:," for link in read.all("link"))
    assert not any("src" in attributes or "srcset" in attributes for _, attributes in read.elements)
    assert not re.search(r"url\(|@import|https?:|//[a-z]", text.partition(f'id="{DATA_ID}"')[0])
    (policy,) = [meta["content"] for meta in read.all("meta") if meta.get("http-equiv")]
    assert policy.startswith("default-src 'none'; ")
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)


def test_page_contains_every_figure_as_text(measured) -> None:
    read = Reader(page(measured))
    for one in measured.models[0].buffers:
        assert read.text.count(one.name) >= 2  # in the map's title and in the table
    for text in ("320 bytes planned of 1,024", "peak 320 bytes, step 4", "mps2/an385", "hidden_features"):
        assert text in read.text
    items = [a for tag, a in read.elements if tag == "g" and a.get("class", "").startswith("item")]
    assert all(item["aria-label"] and item["role"] == "img" for item in items)
    tables = read.all("table")
    assert len(tables) == len(read.all("caption")) >= 8


def test_measurements_are_shown(measured) -> None:
    text = text_of(measured)
    assert "1,000 cycles (40.000 µs) per run" in text
    assert "Outside the operators: 50 cycles (2.000 µs)" in text
    assert "Stack: 812 of 4,096 bytes" in text
    assert "wait for npu1 (0)" in text
    assert "2.000 ms per run (median of 3 runs, 1.000 ms to 3.000 ms)" in text
    assert "it differs from the time on the board" in text


def test_empty_parts_of_a_report_are_stated() -> None:
    text = text_of(report_of(model([], [step(0, "op")])))
    for sentence in (
        "No buffers: the caller provides the memory of all tensors.",
        "workspace0 bytesno buffers",
        "No known constants or programs in flash.",
        "No measurements. To add them, run",
        "No objects.",
        "All steps run on the processor",
    ):
        assert sentence in text


def test_changes_are_shown(report) -> None:
    small = replace(report.models[0], pools=(replace(report.models[0].pools[0], planned=256, lower_bound=256),))
    text = text_of(report, compare(replace(report, models=(small,)), report), "old <b>.html")
    assert "2 differences between old <b>.html and this report." in text
    assert "worse: +64 (+25.0 %)" in text
    assert "The reports are equal." in Reader(page(report, (), "same.html")).text


def test_important_changes_are_listed_first() -> None:
    before = model([buffer(f"b{i}", 8, 8 * i, 0, 0) for i in range(30)], [step(0, "op")])
    after = model([buffer(f"c{i}", 16, 16 * i, 0, 0) for i in range(30)], [step(0, "op")])
    text = page(report_of(after), compare(report_of(before), report_of(after)), "old.html")
    head, _, others = text.partition("<summary>60 other differences</summary>")
    assert "pool sram, bytes" in head
    assert "buffer c7, bytes" not in head.partition('id="model-1"')[0]
    assert "buffer c7, bytes" in others


def test_outdated_inputs_are_reported(report) -> None:
    stale = (data.Stale("two_npus", "parameters.npz", "changed"), data.Stale("two_npus", "old.c", "gone"))
    text = text_of(replace(report, stale=stale))
    assert "The project is out of date" in text
    assert "parameters.npz changed" in text and "old.c gone" in text
    other = text_of(replace(report, stale=(data.Stale("two_npus", "", "opwest"),)))
    assert "The project was generated by another version of opwest." in other


def test_untrusted_names_are_escaped(measured) -> None:
    evil = hostile(measured)
    text = page(evil, compare(measured, evil), HOSTILE)
    assert "<script>alert" not in text
    assert "49" not in HOSTILE and "{{7*7}}" in text  # shown, not evaluated
    assert "\u202e" not in text and "\x07" not in text
    read = Reader(text)
    assert not read.faults and not read.open
    assert len(read.all("script")) == 2
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
    embedded = text.partition(f'id="{DATA_ID}">')[2].partition("</script>")[0]
    assert json.loads(embedded) == json.loads(to_json(evil))
    drawn = ElementTree.fromstring(picture(evil))
    assert not list(drawn.iter(f"{SVG}script"))
    assert any("<script>alert(1)</script>" in (one.text or "") for one in drawn.iter(f"{SVG}title"))


def test_svg_is_self_contained(measured) -> None:
    text = picture(measured)
    drawn = ElementTree.fromstring(text)
    assert drawn.tag == f"{SVG}svg"
    assert not re.search(r'href|url\(|@import|https?:(?!//www\.w3\.org/2000/svg")', text)
    names = {one.text.partition("\n")[0] for one in drawn.iter(f"{SVG}title")}
    assert {one.name for one in measured.models[0].buffers} <= names
    width, height = float(drawn.get("width")), float(drawn.get("height"))
    assert drawn.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"
    for inner in drawn.iter(f"{SVG}svg"):
        if inner.get("class") in ("plot", "axis"):
            assert float(inner.get("x")) + float(inner.get("width")) <= width
            assert float(inner.get("y")) + float(inner.get("height")) <= height


def test_same_inputs_give_the_same_report(report, tmp_path) -> None:
    path = copy_project("devices", tmp_path / "elsewhere")[0]
    one, other = example(path), example(GOLDEN / "devices" / "manifest.yaml")
    for render in (page, picture, lambda r: pretty_json(r, None)):
        assert render(one) == render(other)
        assert str(tmp_path) not in render(one)
        assert str(GOLDEN) not in render(other)
        assert not re.search(r"20[2-9]\d-\d\d", render(report))


@pytest.mark.slow
def test_page_of_thousands_of_buffers_is_small() -> None:
    count = 10_000
    many = [buffer(f"b{i}", 64, 64 * (i % 12), i, min(i + 12, count) - 1) for i in range(count)]
    text = page(report_of(model(many, [step(i, f"op{i % 9}") for i in range(count)])))
    read = Reader(text)
    assert len(read.elements) < 12_000
    assert len(text) < 6 << 20
    reported = re.sub(r"\s+", " ", read.text)
    assert "Only the 400 buffers with the largest area (bytes × steps) have outlines and names." in reported
    assert "The other 9,600 are drawn without names" in reported
    assert f"{count - MAX_ROWS:,} more rows not shown" in reported


@pytest.mark.parametrize("index", [0, 1], ids=["light", "dark"])
def test_colours_can_be_told_apart(index) -> None:
    scheme = {name: colours[index] for name, colours in COLOURS.items()}
    for text in ("ink", "soft", "accent", "better", "worse"):
        for ground in ("ground", "card", "band"):
            assert contrast(scheme[text], scheme[ground]) >= 4.5, (text, ground)
    assert contrast(scheme["warn-ink"], scheme["warn"]) >= 4.5
    for kind, schemes in KINDS.items():
        fill, edge, ink = schemes[index]
        assert contrast(ink, fill) >= 4.5, kind
        if kind not in ("pending", "blocked"):  # beside their elements; distinguished by dashes too
            assert contrast(edge, scheme["card"]) >= 3, kind
            assert contrast(edge, scheme["band"]) >= 3, kind


def test_programs_of_steps() -> None:
    steps = [replace(step(i, f"op{i}", "npu"), program=name) for i, name in enumerate(("conv", "dense", None))]
    steps.append(replace(step(3, "op3", "dsp"), program="filter"))
    found = model([], steps)
    found = replace(found, devices=tuple(replace(d, program="conv") if d.name == "npu" else d for d in found.devices))
    text = text_of(report_of(found))
    assert "npu (conv)" in text and "npu (dense)" in text and "npu (any program)" in text
    assert re.search("nodelabel npu ?conv, dense", text)
    assert "dsp (filter)" not in text, "a device with one program"
