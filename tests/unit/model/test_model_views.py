# SPDX-License-Identifier: Apache-2.0
"""Views and states of manifests, the bytes that steps have written, and resolution of valid steps."""

import itertools
import random
import struct
from pathlib import Path

import pytest
from dataflow_support import DEVICES, MARK, OPERATORS, X, Y, manifest, resolved, types
from opwest.base.diagnostics import Diagnostics
from opwest.manifest.yaml_reader import read_yaml
from opwest.model.checks.memory import Coverage
from opwest.model.inputs.context import Context
from opwest.model.readers.dataflow import Flow
from opwest.model.readers.run_keys import states
from opwest.model.types.dtypes import DTYPES, TensorType
from opwest.model.types.model import Binding

X8 = "x: {dtype: int8, shape: [8]}"


def views(text):
    """Return the bindings through views of valid steps: view, tensor, offset in bytes."""
    flow, messages, _ = resolved(text)
    assert messages == []
    return [(b.view, b.name, b.offset) for step in flow.steps for b in step.bindings if b.view]


def test_views_of_views_are_found_in_any_order():
    wide = "c: {dtype: int16, shape: [16]}"
    tensors = (
        "v: {view_of: u, offset: 1, shape: [4], dtype: int8}, u: {view_of: t, offset: 3, shape: [6]},"
        "t: {view_of: c, offset: 2, shape: [24], dtype: int8}"
    )
    assert views(manifest("relu: [v, y]", inputs=wide, tensors=tensors)) == [("v", "c", 8)]


def test_offset_counts_elements_of_the_containing_tensor():
    tensors = (
        "v: {view_of: u, offset: 1, shape: [2], dtype: int16}, u: {view_of: x, offset: 2, shape: [3], dtype: int16}"
    )
    text = manifest("words: [v, t]", "words: [t, w]", inputs=X8, outputs="y: {dtype: int8, shape: [4]}",
                    tensors=f"{tensors}, w: {{view_of: y, shape: [2], dtype: int16}}")  # fmt: skip
    assert views(text) == [("v", "x", 4), ("w", "y", 0)]


def test_long_chain_of_views_has_no_limit():
    count = 3000
    chain = [f"v{i}: {{view_of: {f'v{i + 1}' if i + 1 < count else 'x'}, shape: [4]}}" for i in range(count)]
    assert views(manifest("relu: [v0, y]", tensors=", ".join(chain))) == [("v0", "x", 0)]
    broken = ", ".join(chain).replace("view_of: x", "view_of: v1500")
    _, messages, _ = resolved(manifest("relu: [v0, y]", tensors=broken))
    assert messages == []  # the cycle is reported once, while the names are resolved


def test_view_that_contains_only_unused_views_is_unused():
    tensors = "u: {view_of: x, shape: [4]}, v: {view_of: u, shape: [4]}"
    _, messages, _ = resolved(manifest("relu: [x, y]", tensors=tensors))
    assert [message.partition(" error: ")[2] for message in messages] == ["unused tensor 'u'", "unused tensor 'v'"]


def test_parts_of_an_output_are_written_by_several_steps():
    tensors = "a: {view_of: y, shape: [4]}, b: {view_of: y, offset: 4, shape: [4]}"
    wide = "y: {dtype: int8, shape: [8]}"
    assert views(manifest("relu: [x, b]", "relu: [x, a]", outputs=wide, tensors=tensors)) == [
        ("b", "y", 4),
        ("a", "y", 0),
    ]
    short = tensors.replace("offset: 4", "offset: 3")
    _, messages, _ = resolved(manifest("relu: [x, b]", "relu: [x, a]", outputs=wide, tensors=short))
    assert "bytes 7 to 7 of output 'y' are never written" in messages[0]


@pytest.mark.parametrize(
    ("dtype", "initial", "content"),
    [
        ("int8", "0", None),
        ("int8", "zeros", None),
        ("int8", "-128", b"\x80"),
        ("int8", "127", b"\x7f"),
        ("uint16", "65535", b"\xff\xff"),
        ("int32", "-2147483648", struct.pack("<i", -(2**31))),
        ("uint64", "18446744073709551615", b"\xff" * 8),
        ("float32", "0.1", struct.pack("<f", 0.1)),
        ("float32", "0.0", None),
        ("float32", "-0.0", struct.pack("<f", -0.0)),
        ("float64", "-1.5", struct.pack("<d", -1.5)),
        ("float16", "65504", struct.pack("<e", 65504)),
    ],
)
def test_first_content_is_one_element(dtype, initial, content):
    faults = Diagnostics()
    text = f"{OPERATORS}run:\n  inputs: {{{X}}}\n  state: {{s: {{dtype: {dtype}, shape: [3], initial: {initial}}}}}\n"
    found = read_yaml(text.encode(), "m.yaml", faults)
    assert found is not None and not len(faults)
    known, constants = states(Context(found, Path("nowhere"), faults))
    assert not len(faults)
    assert known["s"].initial == (None if content is None else "s_initial")
    assert [constant.content for constant in constants] == ([] if content is None else [content])


# --- The bytes that steps have written: random ranges and rows against a set of bytes


def test_whole_tensor_has_any_size():
    coverage = Coverage()
    coverage.add("t", 3, 4)
    coverage.add_whole("t")
    coverage.add("t", 5, 9)
    assert coverage.gap("t", 0, 1 << 40) is None
    assert coverage.gap("other", 3, 4) == (3, 4)
    assert "t" in coverage and "other" not in coverage and coverage.tensors == {"t"}


def rows(begin, width, pitch, count, dtype="int8"):
    """Return a view with a pitch, its first byte, and its bytes."""
    item = DTYPES[dtype].size
    type_ = TensorType(DTYPES[dtype], (count, width), pitch)
    places = {begin + (row * pitch + at) * item + byte for row, at, byte in _each(count, width, item)}
    return begin, type_, places


def _each(*counts):
    return itertools.product(*map(range, counts))


def test_random_rows_equal_a_set_of_bytes():
    rng = random.Random(8)
    gaps = 0
    for _ in range(300):
        coverage, known = Coverage(), set()
        for _ in range(rng.randint(1, 6)):
            if rng.random() < 0.3:
                begin = rng.randrange(40)
                end = begin + rng.randint(1, 12)
                coverage.add("t", begin, end)
                known |= set(range(begin, end))
            else:
                width = rng.randint(1, 5)
                dtype = rng.choice(["int8", "int16"])
                shape = (width, width + rng.randint(0, 5), rng.randint(1, 6))
                begin, type_, places = rows(rng.randrange(0, 20, 2), *shape, dtype)
                assert begin + type_.size == max(places) + 1
                coverage.add_view("t", begin, type_)
                known |= places
            low = rng.randrange(50)
            high = low + rng.randint(1, 30)
            missing = [at for at in range(low, high) if at not in known]
            stop = next((at for at in range(missing[0], high) if at in known), high) if missing else None
            assert coverage.gap("t", low, high) == ((missing[0], stop) if missing else None)
            gaps += bool(missing)
    assert gaps > 300


# --- Resolution of valid steps: bindings, intermediate tensors, scratch memory, accesses


def flow_of(text, folder=Path("nowhere")):
    flow, messages, _ = resolved(text, folder)
    assert messages == []
    return flow


def bindings(flow):
    """Return the arguments of each step as `role name`."""
    return [[f"{b.role} {b.name}" for b in step.bindings] for step in flow.steps]


def test_chain_of_steps():
    text = manifest(f"{MARK}relu: [x, {MARK}t]", f"{MARK}relu: [t, {MARK}u]", f"{MARK}relu: [u, y]")
    flow, messages, places = resolved(text)
    assert messages == []
    assert [(step.index, step.operator.name, step.device) for step in flow.steps] == [
        (0, "relu", None),
        (1, "relu", None),
        (2, "relu", None),
    ]
    assert bindings(flow) == [["input x", "buffer t"], ["buffer t", "buffer u"], ["buffer u", "output y"]]
    assert types(flow) == {"t": "int8 [4]", "u": "int8 [4]"}
    steps, tensors = places[0::2], places[1::2]
    assert [f"{step.location.line}:{step.location.column}" for step in flow.steps] == steps
    assert [f"{t.location.line}:{t.location.column}" for t in flow.intermediates] == tensors
    assert flow.scratch == []
    assert flow.agents == {name: {"cpu"} for name in ("x", "t", "u", "y")}


def test_no_step_and_no_result():
    flow = flow_of(manifest(inputs="", outputs=""))
    assert flow == Flow([], [], [], {}, {})


def test_bindings_are_in_argument_order():
    flow = flow_of(manifest("backwards: [t, x]", "both: [t, u, v]", "add: [u, v, y]"))
    assert bindings(flow) == [
        ["buffer t", "input x"],
        ["buffer t", "buffer u", "buffer v"],
        ["buffer u", "buffer v", "output y"],
    ]


def test_constants_and_numbers(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(4))
    text = manifest("add: [x, w, t]", "scale: [t, -7, y]", constants="w: {file: w.bin, dtype: int8, shape: [4]}")
    flow = flow_of(text, tmp_path)
    assert bindings(flow) == [["input x", "constant w", "buffer t"], ["buffer t", "scalar by", "output y"]]
    assert flow.steps[1].bindings[1] == Binding("scalar", "by", -7)
    assert set(flow.agents) == {"x", "w", "t", "y"}, "a number has no users"


def test_scratch_memory_belongs_to_its_step():
    flow = flow_of(manifest("sort: [x, t]", "merge: [t, u]", "sort: [u, y]"))
    assert bindings(flow) == [
        ["input x", "buffer room of step 0", "buffer t"],
        ["buffer t", "buffer one of step 1", "buffer two of step 1", "buffer u"],
        ["buffer u", "buffer room of step 2", "output y"],
    ]
    assert [(s.name, str(s.argument.type), s.argument.align, s.device) for s in flow.scratch] == [
        ("room of step 0", "int16 [8]", 32, None),
        ("one of step 1", "int8 [1]", 1, None),
        ("two of step 1", "int8 [2]", 1, None),
        ("room of step 2", "int16 [8]", 32, None),
    ]
    assert [s.location for s in flow.scratch] == [flow.steps[i].location for i in (0, 1, 1, 2)]
    assert set(types(flow)) == {"t", "u"}, "scratch memory is not a tensor"


def test_devices_access_the_tensors_of_their_steps():
    flow = flow_of(
        manifest("start on left: [x, t]", "start on right: [t, u]", "relu: [u, v]", "add: [t, v, y]", more=DEVICES)
    )
    assert flow.agents == {
        "x": {"left"},
        "t": {"left", "right", "cpu"},
        "u": {"right", "cpu"},
        "v": {"cpu"},
        "y": {"cpu"},
    }
    assert [step.device for step in flow.steps] == ["left", "right", None, None]


def test_scratch_memory_is_the_device_s():
    fill = (
        "  fill: {device: {}, args: [{name: data, dtype: int8, shape: [4]}, "
        "{name: room, dtype: int8, shape: [1], direction: scratch}, "
        "{name: result, dtype: int8, shape: [4], direction: out}]}\n"
    )
    flow = flow_of(manifest("fill on left: [x, t]", "fill on right: [t, y]", more=fill + DEVICES))
    assert [(s.name, s.device) for s in flow.scratch] == [("room of step 0", "left"), ("room of step 1", "right")]


def test_alignments_are_the_largest_that_a_step_needs():
    steps = ("relu: [x, t]", "aligned: [t, u]", "relu: [u, v]", "relu: [v, y]")
    flow = flow_of(manifest(*steps))
    assert flow.alignments == {"x": 1, "t": 64, "u": 16, "v": 1, "y": 1}
    assert {t.name: t.align for t in flow.intermediates} == {"t": 64, "u": 16, "v": 1}
    flow = flow_of(manifest(*steps, tensors="t: {align: 32}, u: {align: 128}, v: {align: 16}"))
    assert {t.name: t.align for t in flow.intermediates} == {"t": 64, "u": 128, "v": 16}
    assert flow.alignments == {"x": 1, "t": 64, "u": 16, "v": 1, "y": 1}, "only the alignment that the operators need"
    flow = flow_of(manifest("aligned: [x, t]", "relu: [x, u]", "add: [t, u, y]"))
    assert flow.alignments["x"] == 64


def test_alignments_of_constants(tmp_path):
    (tmp_path / "w.bin").write_bytes(bytes(4))
    text = manifest("aligned: [w, t]", "add: [t, x, y]", constants="w: {file: w.bin, dtype: int8, shape: [4]}")
    assert flow_of(text, tmp_path).alignments["w"] == 64


def test_rewritten_tensor_keeps_its_offset():
    flow = flow_of(manifest("relu: [x, t]", "grow: [t]", "relu: [t, u]", "relu: [u, t]", "relu: [t, y]"))
    assert bindings(flow)[1:4] == [["buffer t"], ["buffer t", "buffer u"], ["buffer u", "buffer t"]]
    assert types(flow) == {"t": "int8 [4]", "u": "int8 [4]"}


def test_declared_tensors_that_agree():
    flow = flow_of(manifest("relu: [x, t]", "relu: [t, y]", tensors="t: {dtype: int8, shape: [4], align: 16}"))
    assert [(t.name, t.align) for t in flow.intermediates] == [("t", 16)]


def test_outputs_may_be_read_once_they_are_written():
    flow = flow_of(
        manifest("relu: [x, y]", "grow: [y]", "relu: [y, z]", outputs=f"{Y}, z: {{dtype: int8, shape: [4]}}")
    )
    assert bindings(flow) == [["input x", "output y"], ["output y"], ["output y", "output z"]]


REPEATED = """
operators:
  relu: {args: [{name: data, dtype: int8, shape: [2]}, {name: result, dtype: int8, shape: [2], direction: out}]}
run:
  inputs: {x: {dtype: int8, shape: [3, 2]}}
  outputs: {y: {dtype: int8, shape: [3, 2]}}
  steps:
    - {repeat: 3, over: {row: x, out: y}, steps: [{call: relu, args: [row, t]}, {call: relu, args: [t, out]}]}
"""


def test_repeated_steps_use_the_parts_of_tensors():
    flow, messages, _ = resolved(REPEATED)
    assert not messages
    used = [[(b.role, b.name, b.view, b.offset) for b in step.bindings] for step in flow.steps]
    expected = []
    for turn in range(3):
        expected.append([("input", "x", f"x[{turn}]", 2 * turn), ("buffer", "t", None, 0)])
        expected.append([("buffer", "t", None, 0), ("output", "y", f"y[{turn}]", 2 * turn)])
    assert used == expected
    assert [step.index for step in flow.steps] == list(range(6))
