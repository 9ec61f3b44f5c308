# SPDX-License-Identifier: Apache-2.0
"""YAML of manifests: read with positions, and written."""

import math

import pytest
import yaml
import yamlcore
from hypothesis import given
from hypothesis import strategies as st
from manifest_support import faults_of, param, read
from opwest.base.diagnostics import Location
from opwest.manifest import writer
from opwest.manifest.located import Items, Mapping, locate
from opwest.manifest.yaml_reader import MAX_DEPTH, MAX_EXPANSION

# --- YAML 1.2's core schema, as editors read it, and the positions of all nodes


@pytest.mark.parametrize("name", ["on", "off", "yes", "no", "y", "n", "Yes", "NO", "<<", "=", "_", "0b1"])
def test_names_that_yaml_1_1_reads_as_other_types(name):
    found = read(f"operators: {{{name}: {name}}}")
    assert found["operators"] == {name: name}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        param("010", 10),
        param("0o17", 15),
        param("0x1F", 31),
        param("-7", -7),
        param("+7", 7),
        param("0", 0),
        param("1e-3", 0.001),
        param("1.", 1.0),
        param(".5", 0.5),
        param("-1.5e+3", -1500.0),
        param("1E5", 100000.0),
        param(".inf", math.inf),
        param("-.INF", -math.inf),
        param("true", True),
        param("False", False),
        param("TRUE", True),
        param("null", None),
        param("~", None),
        param("", None),
        param("1:30", "1:30"),
        param("1_000", "1_000"),
        param("0b11", "0b11"),
        param("2026-11-21", "2026-11-21"),
        param("tRue", "tRue"),
        param("1e", "1e"),
        param("0o8", "0o8"),
        param("64KiB", "64KiB"),
        param("'10'", "10"),
        param('"on"', "on"),
        param("! 10", "10"),
        param("!!str 10", "10"),
        param("!!int 0x10", 16),
        param("!!float 1", 1.0),
    ],
)
def test_scalars(text, value):
    found = read(f"key: {text}")["key"]
    assert found == value
    assert type(found) is type(value)


def test_not_a_number():
    assert math.isnan(read("key: .nan")["key"])


def test_numbers_of_a_manifest():
    found = read("quantization: {scale: 1e-3, zero_point: 010}\nshape: [08, 1]")
    assert found == {"quantization": {"scale": 0.001, "zero_point": 10}, "shape": [8, 1]}


def test_texts():
    assert read("key: >\n  one\n  two\n")["key"] == "one two\n"
    assert read("key: |-\n  one\n  two\n")["key"] == "one\ntwo"
    assert read('key: "\\u00fc\\x41"')["key"] == "üA"
    assert read("\ufeffkey: value") == {"key": "value"}
    assert read("key: value\r\nother: 1\r\n") == {"key": "value", "other": 1}


def test_source_positions():
    text = """\
# A comment, and a key with an umlaut.
model: digits
grün: {scale: 1e-3, list: [a,
  b]}

steps:
  - call: relu
    args: [x, "y"]
"""
    found = read(text)
    assert found.location == Location("m.yaml", 2, 1)
    assert found.key_location("model") == Location("m.yaml", 2, 1)
    assert found.value_location("model") == Location("m.yaml", 2, 8)
    assert found.key_location("absent") == found.value_location("absent") == found.location
    quantization = found["grün"]
    assert isinstance(quantization, Mapping)
    assert quantization.location == found.value_location("grün") == Location("m.yaml", 3, 7)
    assert quantization.key_location("scale") == Location("m.yaml", 3, 8)
    assert quantization.value_location("scale") == Location("m.yaml", 3, 15)
    items = quantization["list"]
    assert isinstance(items, Items)
    assert [items.item_location(n) for n in (0, 1)] == [Location("m.yaml", 3, 28), Location("m.yaml", 4, 3)]
    step = found["steps"][0]
    assert step.location == found["steps"].item_location(0) == Location("m.yaml", 7, 5)
    assert step["args"].item_location(1) == Location("m.yaml", 8, 15)


def test_locate_returns_the_nearest_existing_node():
    found = read("run:\n  steps:\n    - {call: relu}\n")
    assert locate(found, ["run", "steps", 0, "call"]) == Location("m.yaml", 3, 14)
    assert locate(found, ["run", "steps", 0, "args"]) == Location("m.yaml", 3, 7)
    assert locate(found, ["run", "steps", 7, "args"]) == Location("m.yaml", 3, 5)
    assert locate(found, []) == Location("m.yaml", 1, 1)


def test_duplicate_key_is_reported_and_the_first_is_used():
    text = "a: 1\nb: {c: 1, c: 2}\na: 3\na: 4\n"
    assert faults_of(text) == [
        "m.yaml:2:11: error: duplicate key 'c'\n  expected: each key once\n  hint: first defined at line 2, column 5",
        "m.yaml:3:1: error: duplicate key 'a'\n  expected: each key once\n  hint: first defined at line 1, column 1",
        "m.yaml:4:1: error: duplicate key 'a'\n  expected: each key once\n  hint: first defined at line 1, column 1",
    ]
    assert faults_of("{1: a, '1': b}") != []
    assert faults_of("'1': a\nx1: b\n") == []


def test_aliases_share_one_value():
    found = read("a: &vector [8, 8]\nb: *vector\nc: {shape: *vector, d: &s text}\ne: *s\n")
    assert found["a"] is found["b"] is found["c"]["shape"]
    assert found["b"] == [8, 8] and found["e"] == "text"
    assert found.value_location("b") == Location("m.yaml", 2, 4)
    assert found["b"].item_location(1) == Location("m.yaml", 1, 16)


def test_anchor_can_be_redefined():
    assert read("a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_alias_inside_the_anchors_own_value():
    (fault,) = faults_of("a: &x {b: [*x]}")
    assert fault.startswith("m.yaml:1:12: error: recursive alias '*x'")


def test_aliases_below_the_limit():
    shared = "a: &x [1, 2, 3, 4]\nb: [" + ", ".join(["*x"] * 1000) + "]\n"
    assert len(read(shared)["b"]) == 1000
    size = MAX_EXPANSION // 5
    assert faults_of("a: &x [1, 2, 3, 4]\nb: [" + ", ".join(["*x"] * size) + "]\n") == []
    assert len(faults_of("a: &x [1, 2, 3, 4]\nb: [" + ", ".join(["*x"] * (size + 1)) + "]\n")) == 1


def test_depth():
    def nested(depth):
        return "a: " + "[" * (depth - 1) + "]" * (depth - 1)

    assert faults_of(nested(MAX_DEPTH)) == []
    (fault,) = faults_of(nested(MAX_DEPTH + 1))
    assert "nested" in fault
    (fault,) = faults_of("- " * 100_000)
    assert "nested" in fault


@pytest.mark.parametrize("text", ["%YAML 1.2\n---\na: 1\n", "---\na: 1\n...\n", "a: 1\n---\n"[:5] + "...\n"])
def test_document_markers(text):
    assert read(text) == {"a": 1}


@pytest.mark.parametrize("text", [b"a: \xff", b"\xff\xfea\0", b"a: b\0", b"a: \xc3", b"\xef\xbb\xbf\xff", b"a: \x85"])
def test_bytes_that_are_not_text(text):
    (fault,) = faults_of(text)
    assert ": error: " in fault


@pytest.mark.parametrize("digits", [5000, 100_000])
def test_overlong_numbers(digits):
    for text in ("9" * digits, "0x" + "f" * digits, "0o" + "7" * digits, "1." + "0" * digits, "1e" + "9" * digits):
        faults_of(f"key: {text}")  # does not raise


# --- The text of manifests is read back unchanged

TEXTS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)
WORDS = st.text("ab_1 #:-[]{},'\"\n\t\u2028", max_size=200)


def read_back(text):
    return yaml.load(text, Loader=yamlcore.CoreLoader)


@given(TEXTS)
def test_strings_are_read_as_they_are(text):
    assert read_back(f"key: {writer.scalar(text)}") == {"key": text}
    assert read_back(writer.flow_list([writer.scalar(text), "1"])) == [text, 1]


@given(WORDS)
def test_comments_never_end_early(text):
    lines = list(writer.comment(text, "  ", "  "))
    assert all(line.startswith("  #") for line in lines)
    assert read_back("\n".join([*lines, "key: 1"])) == {"key": 1}
    for line in writer.remarked("key: 1", text):
        assert line.startswith(("#", "key: 1"))
        assert len(line.splitlines()) == 1


def test_long_remarks_precede_their_line():
    remark = "word " * 40
    *before, line = writer.remarked("    key: 1", remark)
    assert line == "    key: 1"
    assert all(one.startswith("    #") and len(one) <= writer.WIDTH for one in before) and len(before) == 2


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=30), st.none() | TEXTS)
def test_entries_of_objects(files, target):
    (entry,) = read_back("\n".join(writer.object_entry(files, target)))
    assert entry == {"files": files, **({} if target is None else {"target": target})}


@given(st.lists(TEXTS, max_size=40), st.none() | st.just("npu"))
def test_steps_of_any_length(args, device):
    lines = list(writer.step("op", args, device))
    (step,) = read_back("\n".join(lines))
    assert step == {"call": "op", "args": args, **({"device": device} if device else {})}
    assert len(lines) == 1 or len(lines) == 2 + (device is not None)


def test_operators():
    keys = [*writer.key("symbol", "f"), *writer.key("returns", None), *writer.key("device", "{}", "a remark")]
    arguments = [
        writer.argument("x", "int8", writer.shape_of([1, 2]), align=4, pointer=True),
        writer.argument("n", "int32", None, direction="out", remarks=["by value"]),
        writer.argument("y", "int8", "[]", direction="out"),
    ]
    text = writer.document(["operators:", *writer.operator("op", keys, arguments, "  # end")], (), ["version: 1"])
    assert text == (
        "operators:\n"
        "  op:  # end\n"
        "    symbol: f\n"
        "    device: {}  # a remark\n"
        "    args:\n"
        "      - {name: x, dtype: int8, shape: [1, 2], align: 4, pointer: true}\n"
        "      - {name: n, dtype: int32, scalar: true}  # by value\n"
        "      - {name: y, dtype: int8, shape: [], direction: out}\n"
        "\n"
        "version: 1\n"
    )
    assert list(writer.operator("op", [], [])) == ["  op:", "    args: []"]
    assert list(writer.operator("op", [], None)) == ["  op:"]


def test_interfaces():
    assert list(writer.interface("inputs", {})) == ["  inputs: {}"]
    assert list(writer.interface("outputs", {"y": {"dtype": "int8", "shape": "[1]", "pool": None}})) == [
        "  outputs:",
        "    y: {dtype: int8, shape: [1]}",
    ]
