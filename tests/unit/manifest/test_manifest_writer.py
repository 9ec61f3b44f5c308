# SPDX-License-Identifier: Apache-2.0
"""The text of manifests is read back unchanged."""

import yaml
import yamlcore
from hypothesis import given
from hypothesis import strategies as st
from opwest.manifest import writer

TEXTS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)
WORDS = st.text("ab_1 #:-[]{},'\"\n\t\u2028", max_size=200)


def read(text: str):
    return yaml.load(text, Loader=yamlcore.CoreLoader)


@given(TEXTS)
def test_strings_are_read_as_they_are(text):
    assert read(f"key: {writer.scalar(text)}") == {"key": text}
    assert read(writer.flow_list([writer.scalar(text), "1"])) == [text, 1]


@given(WORDS)
def test_comments_never_end_early(text):
    lines = list(writer.comment(text, "  ", "  "))
    assert all(line.startswith("  #") for line in lines)
    assert read("\n".join([*lines, "key: 1"])) == {"key": 1}
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
    (entry,) = read("\n".join(writer.object_entry(files, target)))
    assert entry == {"files": files, **({} if target is None else {"target": target})}


@given(st.lists(TEXTS, max_size=40), st.none() | st.just("npu"))
def test_steps_of_any_length(args, device):
    lines = list(writer.step("op", args, device))
    (step,) = read("\n".join(lines))
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
