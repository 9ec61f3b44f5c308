# SPDX-License-Identifier: Apache-2.0
"""Resolution of valid steps: bindings, intermediate tensors, scratch memory, accesses."""

from pathlib import Path

from dataflow_support import DEVICES, MARK, Y, manifest, resolved, types
from opwest.model.dataflow import Flow
from opwest.model.model import Binding


def flow_of(text: str, folder: Path = Path("nowhere")) -> Flow:
    """Return the flow of steps without diagnostics."""
    flow, messages, _ = resolved(text, folder)
    assert messages == []
    return flow


def bindings(flow: Flow) -> list[list[str]]:
    """Return the arguments of each step as `role name`."""
    return [[f"{b.role} {b.name}" for b in step.bindings] for step in flow.steps]


def test_chain_of_steps() -> None:
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


def test_no_step_and_no_result() -> None:
    flow = flow_of(manifest(inputs="", outputs=""))
    assert flow == Flow([], [], [], {}, {})


def test_bindings_are_in_argument_order() -> None:
    flow = flow_of(manifest("backwards: [t, x]", "both: [t, u, v]", "add: [u, v, y]"))
    assert bindings(flow) == [
        ["buffer t", "input x"],
        ["buffer t", "buffer u", "buffer v"],
        ["buffer u", "buffer v", "output y"],
    ]


def test_constants_and_numbers(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(4))
    text = manifest("add: [x, w, t]", "scale: [t, -7, y]", constants="w: {file: w.bin, dtype: int8, shape: [4]}")
    flow = flow_of(text, tmp_path)
    assert bindings(flow) == [["input x", "constant w", "buffer t"], ["buffer t", "scalar by", "output y"]]
    assert flow.steps[1].bindings[1] == Binding("scalar", "by", -7)
    assert set(flow.agents) == {"x", "w", "t", "y"}, "a number has no users"


def test_scratch_memory_belongs_to_its_step() -> None:
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


def test_devices_access_the_tensors_of_their_steps() -> None:
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


def test_scratch_memory_is_the_device_s() -> None:
    fill = (
        "  fill: {device: {}, args: [{name: data, dtype: int8, shape: [4]}, "
        "{name: room, dtype: int8, shape: [1], direction: scratch}, "
        "{name: result, dtype: int8, shape: [4], direction: out}]}\n"
    )
    flow = flow_of(manifest("fill on left: [x, t]", "fill on right: [t, y]", more=fill + DEVICES))
    assert [(s.name, s.device) for s in flow.scratch] == [("room of step 0", "left"), ("room of step 1", "right")]


def test_alignments_are_the_largest_that_a_step_needs() -> None:
    steps = ("relu: [x, t]", "aligned: [t, u]", "relu: [u, v]", "relu: [v, y]")
    flow = flow_of(manifest(*steps))
    assert flow.alignments == {"x": 1, "t": 64, "u": 16, "v": 1, "y": 1}
    assert {t.name: t.align for t in flow.intermediates} == {"t": 64, "u": 16, "v": 1}
    flow = flow_of(manifest(*steps, tensors="t: {align: 32}, u: {align: 128}, v: {align: 16}"))
    assert {t.name: t.align for t in flow.intermediates} == {"t": 64, "u": 128, "v": 16}
    assert flow.alignments == {"x": 1, "t": 64, "u": 16, "v": 1, "y": 1}, "only the alignment that the operators need"
    flow = flow_of(manifest("aligned: [x, t]", "relu: [x, u]", "add: [t, u, y]"))
    assert flow.alignments["x"] == 64


def test_alignments_of_constants(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(4))
    text = manifest("aligned: [w, t]", "add: [t, x, y]", constants="w: {file: w.bin, dtype: int8, shape: [4]}")
    assert flow_of(text, tmp_path).alignments["w"] == 64


def test_rewritten_tensor_keeps_its_offset() -> None:
    flow = flow_of(manifest("relu: [x, t]", "grow: [t]", "relu: [t, u]", "relu: [u, t]", "relu: [t, y]"))
    assert bindings(flow)[1:4] == [["buffer t"], ["buffer t", "buffer u"], ["buffer u", "buffer t"]]
    assert types(flow) == {"t": "int8 [4]", "u": "int8 [4]"}


def test_declared_tensors_that_agree() -> None:
    flow = flow_of(manifest("relu: [x, t]", "relu: [t, y]", tensors="t: {dtype: int8, shape: [4], align: 16}"))
    assert [(t.name, t.align) for t in flow.intermediates] == [("t", 16)]


def test_outputs_may_be_read_once_they_are_written() -> None:
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


def test_repeated_steps_use_the_parts_of_tensors() -> None:
    flow, messages, _ = resolved(REPEATED)
    assert not messages
    used = [[(b.role, b.name, b.view, b.offset) for b in step.bindings] for step in flow.steps]
    expected = []
    for turn in range(3):
        expected.append([("input", "x", f"x[{turn}]", 2 * turn), ("buffer", "t", None, 0)])
        expected.append([("buffer", "t", None, 0), ("output", "y", f"y[{turn}]", 2 * turn)])
    assert used == expected
    assert [step.index for step in flow.steps] == list(range(6))
