# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 - lists of words
"""Readers of the inputs of `opwest report` and `opwest plan`: reports, measurements, images, tables."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from zlib import crc32

from elf_writer import build_elf
from fuzz_mutators import mutate_bytes, mutate_json, text_mutator
from fuzz_objects import compiled
from fuzz_readers import Read, Reader, messages
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.objects.images import NOTE_SECTION
from opwest.plan import greedy, search
from opwest.plan.fixed import judged
from opwest.plan.tables import blocks_of, read_table, written_table
from opwest.plan.verify import verify
from opwest.reports import data
from opwest.reports.changes import compare
from opwest.reports.files import MARKS, is_own, read_report, to_json, write_report
from opwest.reports.images import read_images
from opwest.reports.measured import add_measured
from opwest.reports.page import page, picture, pretty_json
from opwest.reports.sizes import add_images
from report_support import HOSTILE, buffer, model, note_section, profile_json, report_of, results_json, step

_EMBEDDED = re.compile(rb'(<(?:script|metadata)\b[^>]*\bid="opwest-report-data"[^>]*>)(.*?)(</)', re.DOTALL)
_NUMBER = re.compile(rb"(?<![\w.\"])-?\d+(?:\.\d+)?(?![\w.\"])")
_NO_PLACE = re.compile(r' (?:[xyr]|[xy][12]|c[xy]|width|height|d|points|style)="[^"]*\b(?:nan|inf)\b')
_NUMBERS = (
    *b"NaN Infinity -Infinity 1e999 -0.0 1e-320 1.5 9223372036854775807 9223372036854775808 -1 1e17 true null".split(),
    b"9" * 400,
)


def _made() -> data.Model:
    """Return a model with content for every part of a report."""
    rows = [step(0, "hidden_features"), step(1, "op1", "npu1", launched=True), step(2, "stretch"), step(3, "arg_max")]
    found = model(
        [buffer("a", 64, 0, 0, 1), buffer("b", 16, 64, 1, 3), buffer("in", 32, 80, 0, 2, "input")],
        rows,
        [data.Wait("npu1", 3, (1,))],
    )
    operators = tuple(replace(one, code={"cortex-m4": 120}, stack={"cortex-m4": 48}) for one in found.operators)
    row = data.Object("x.o", "ELF", "cortex-m4", "yes", ("none",), 480, 96, 8, "48 bytes")
    return replace(
        found,
        name="two_npus",
        description="What is measured",
        boards=("native_sim/native/64",),
        operators=operators,
        objects=(row,),
        tensors=(data.Tensor("in", "input", "int8", (32,), 32, placed=True),),
        constants=(data.Constant("weights", "int8", (96,), 96, None, ("op1",)),),
        programs=(data.Program("conv", "opwest_program_0123", 40),),
        inputs=(data.Input("x.o", "0" * 64),),
        images=(data.Image("zephyr.elf", "arm", (data.ImageItem("op1", "code", 120),)),),
    )


def _measured(work: Path) -> data.Model:
    """Return it with a profile and the results of a run."""
    files = []
    for name, value in (("profile.json", profile_json()), ("results.json", results_json())):
        (work / name).write_text(json.dumps(value))
        files.append(work / name)
    faults = Diagnostics()
    [found] = add_measured([_made()], files, faults)
    assert not faults.has_errors, list(faults)
    return found


def _report_seeds() -> Sequence[str]:
    plain = report_of(_made())
    text = to_json(replace(plain, stale=(data.Stale("two_npus", "x.o", "changed"),)))
    value = json.loads(text)
    value["models"][0]["profiles"] = [_profile_of_a_report()]
    error = {"name": "label", "elements": 10, "differing": 2, "largest": 3.0, "mean": 0.5}
    results = {"source": "r.json", "board": None, "clock": "host", "latency_ns": [3, 1, 2], "errors": [error]}
    value["models"][0]["results"] = [results]
    whole = json.dumps(value)
    html = page(plain, None, None)
    start = html.index("<script", html.index("opwest-report-data") - 200)
    texts = [text, whole, pretty_json(plain, ()), f"<!doctype html><title>x</title>{html[start:]}", picture(plain)]
    return [*texts, whole.replace("two_npus", "other")]


def _profile_of_a_report() -> dict[str, object]:
    times = {"runs": 4, "min": 1.0, "max": 9.0, "mean": 4.5}
    point = {"kind": "step", "step": 2, "steps": [2], "operator": "stretch", "device": None, **times}
    run = {**point, "kind": "run", "step": None, "steps": [], "operator": None}
    place = {"source": "p.json", "where": "mps2/an385", "clock": "emulated", "unit": "cycles"}
    place |= {"frequency_hz": 25_000_000}
    return {**place, "run": run, "points": [point], "stack_used": 812, "stack_size": 4096}


def _mutate_values(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return JSON with other values: extreme numbers and hostile texts."""
    if chance.random() < 0.3 and (found := list(_NUMBER.finditer(content))):
        place = chance.choice(found)
        return content[: place.start()] + chance.choice(_NUMBERS) + content[place.end() :]
    if chance.random() < 0.1:
        texts = list(re.finditer(rb'"(\w+)"(?!:)', content))
        if texts:
            place = chance.choice(texts)
            return content[: place.start()] + json.dumps(HOSTILE).encode() + content[place.end() :]
    return mutate_json(content, chance, corpus)


def mutate_report(content: bytes, chance: Random, corpus: Sequence[bytes]) -> bytes:
    """Return a report of any format with changed data, or damaged as a whole."""
    if chance.random() < 0.15:
        return mutate_bytes(content, chance, corpus)
    found = _EMBEDDED.search(content)
    if found is None:
        return _mutate_values(content, chance, corpus)
    escaped = b"&#34;" in found[2] or b"&quot;" in found[2]
    inner = found[2].replace(b"&#34;", b'"').replace(b"&quot;", b'"')
    inner = _mutate_values(inner, chance, corpus)
    inner = inner.replace(b'"', b"&#34;") if escaped else inner
    return content[: found.start(2)] + inner.replace(b"<", b"\\u003c") + content[found.end(2) :]


def _start_report(folder: Path) -> Read:
    """Compare with a report, and print the changes; overwrite it if it is valid."""
    now = report_of(_measured(folder))
    os.chdir(folder)
    path = Path("before.html")

    def read(content: bytes) -> str:
        path.write_bytes(content)
        known = is_own(path, MARKS)
        try:
            before = read_report(path)
        except OpwestError as fault:
            return messages(fault.diagnostics)
        changes = compare(before, now)
        if _chosen(content):
            _shown(page(now, changes, path.name))
        json.loads(pretty_json(now, changes), parse_constant=_no_constant)
        compare(now, before)
        if not known:  # the name of the format is after the variable part: it must be kept
            try:
                write_report(path, "new")
            except OpwestError as fault:
                assert path.read_bytes() == content
                return f"kept {messages(fault.diagnostics)}"
        return f"{known} {sorted({one.group for one in changes})}"

    return read


def _chosen(content: bytes) -> bool:
    """Whether to generate the page too, which takes longer than the other parts."""
    return crc32(content) % 4 == 0


def _no_constant(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def _shown(text: str) -> str:
    """Check that texts of a page or picture are escaped and that numbers are numbers; return it."""
    assert "<script>alert" not in text
    assert not _NO_PLACE.search(text), "a coordinate that is not a number"
    return text


def _measurement_seeds() -> Sequence[bytes]:
    both = results_json()
    both["result"]["profile"] = profile_json()
    both["result"]["errors"]["label"]["largest_error"] = "inf"
    return [json.dumps(one).encode() for one in (profile_json(), results_json(), both)]


def _start_measurements(folder: Path) -> Read:
    """Print the measurements."""
    plain, whole = _made(), _measured(folder)
    os.chdir(folder)
    path = Path("measured.json")

    def read(content: bytes) -> str:
        path.write_bytes(content)
        faults = Diagnostics()
        [found] = add_measured([plain], [path], faults)
        if faults.has_errors:
            assert found == plain
            return messages(faults)
        made = report_of(found)
        text = to_json(made)
        json.loads(text, parse_constant=_no_constant)
        changes = compare(report_of(whole), made)
        if _chosen(content):
            _shown(page(made, changes, "before"))
        path.write_text(text)
        assert read_report(path) == made, "the read data differs from the written data"
        return f"{messages(faults)} {len(found.profiles)} {len(found.results)}"

    return read


def _image_seeds() -> Sequence[bytes]:
    symbols = [
        ("two_npus__op1", 1, 2, 1),
        ("two_npus__stretch.constprop.0", 0, 2, 1),
        ("two_npus_constant_weights", 1, 1, 2),
        ("opwest_program_0123", 1, 1, 2),
        ("opwest_more", 1, 2, 1),
        ("memcpy", 1, 0, 0),
    ]
    sections = [(".text", 1, 6, b"\x90" * 64), (".rodata", 1, 2, b"table..." * 8)]
    little, big = ((NOTE_SECTION, 7, 0, note_section("two_npus", "two", order=order)) for order in "<>")
    small = [build_elf(symbols=symbols, sections=[*sections, little])]
    small.append(build_elf(bits=32, endian="big", machine=20, symbols=symbols, sections=[*sections, big]))
    return [*small, *(content for content in compiled() if len(content) < 8192)]


def _start_image(folder: Path) -> Read:
    """Print the sizes of models in an image."""
    models = [_made(), replace(_made(), name="two", programs=())]
    os.chdir(folder)
    path = Path("zephyr.elf")

    def read(content: bytes) -> str:
        path.write_bytes(content)
        faults = Diagnostics()
        images = read_images([path], faults)
        found = add_images(models, images, faults)
        if faults.has_errors:
            assert found == models
            return messages(faults)
        made = report_of(*found)
        text = to_json(made)
        if _chosen(content):
            _shown(page(made, compare(report_of(*models), made), "before"))
        path.write_text(text)
        assert read_report(path) == made, "the read data differs from the written data"
        return str(sorted({(item.name, item.kind) for one in found for image in one.images for item in image.items}))

    return read


_MAPS = (
    b"Linker script and memory map\n\n.text           0x00000000       0x40\n *(.text)\n"
    b" .text.f        0x00000000       0x20 modules/libopwest_two_npus.a(operators.c.obj)\n"
    b" *fill*         0x00000020        0x4 \n .text.a_long_name\n"
    b"                0x00000024       0x1c libgcc.a(f.o)\n\n.rodata         0x00000000       0x40 load address 0x00000040\n"
    b" .rodata.str1.1 0x00000000       0x40 libopwest.a(status.c.obj)\n                                 0x41 (size before relaxing)\n",
    b"             VMA              LMA     Size Align Out     In      Symbol\n               0                0       40     1 .text\n"
    b"               0                0       20     1         libopwest_two.a(two_run.c.obj):(.text.f)\n"
    b"              24               24       1c     1         libapp.a(operators.c.obj):(.text.g)\n",
)
_MAP_WORDS = (
    "0x0 0x40 0xffffffffffffffff 40 .text .rodata *fill* libopwest.a(x.o) () ( ) : \n /DISCARD/ load address".split(" ")
)


def _start_map(folder: Path) -> Read:
    """Print the sizes of a model in an image with a map file."""
    models = [_made(), replace(_made(), name="two", programs=())]
    os.chdir(folder)
    path = Path("zephyr.elf")
    path.write_bytes(_image_seeds()[0])

    def read(content: bytes) -> str:
        path.with_suffix(".map").write_bytes(content)
        faults = Diagnostics()
        found = add_images(models, read_images([path], faults), faults)
        if faults.has_errors:
            assert found == models
            return messages(faults)
        text = to_json(report_of(*found))
        json.loads(text, parse_constant=_no_constant)
        return str(sorted({(item.name, item.kind) for one in found for image in one.images for item in image.items}))

    return read


_TABLES = (
    b"id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\n",
    b'\xef\xbb\xbfid,lower,upper,size,alignment\r\n"a, b",0,2,16,8\r\nc,1,3,24,1\r\n\r\n "d",2,4,7,4\r\n',
    b"size,upper,id,lower\n5,10,x,0\n7,20,y,5\n9,30,z,10\n2,30,w,0\n",
    b"id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\nb5,0,21,4,0\n",
)
_TABLE_WORDS = (
    'id lower upper size alignment offset 0 1 -1 2 3 281474976710655 281474976710656 99999999999999999999999 1e3 0x10 ٣ " "" , \r'
    " ; nan b1 c 1.0 +1 \0 \u2028"
).split(" ")


def _start_table(folder: Path) -> Read:
    """Plan a table as `opwest plan` does."""

    def read(content: bytes) -> str:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return "no text"
        faults = Diagnostics()
        rows = read_table(text, "table.csv", faults)
        if faults.has_errors:
            return f"{messages(faults)} {len(faults)}"
        blocks = blocks_of(rows)
        if rows[0].offset is not None:
            given = judged(rows, faults)
            return f"{messages(faults)} {len(faults)}" if given is None else f"{given.size} {given.lower_bound}"
        first = greedy.plan_pool(blocks)
        verify(blocks, first.offsets, first.size)
        best = search.search_pool(blocks, None, 300)
        verify(blocks, best.offsets, best.size)
        assert best.lower_bound <= best.size <= first.size
        again = read_table(written_table(rows, best.offsets), "solved.csv", faults)
        assert judged(again, faults) == best and not faults.has_errors
        return f"{len(rows)} {best.size == best.lower_bound} {best.size < first.size}"

    return read


READERS = (
    Reader("report", _report_seeds, _start_report, mutate_report),
    Reader("measurements", _measurement_seeds, _start_measurements, _mutate_values),
    Reader("image", _image_seeds, _start_image),
    Reader("map", lambda: _MAPS, _start_map, text_mutator(_MAP_WORDS, pattern=r"\w+|[^\w\s]")),
    Reader("table", lambda: _TABLES, _start_table, text_mutator(_TABLE_WORDS, pattern=r"\w+|[^\w\s]")),
)
