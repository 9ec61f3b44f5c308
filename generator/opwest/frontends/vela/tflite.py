# SPDX-License-Identifier: Apache-2.0
"""Read a .tflite file of Vela: the operators ethos-u, and the offsets of tensors in the metadata.

Sources: TFLite Micro's kernel of ethos-u (the order of its inputs: command stream, weights, scratch, fast scratch, then
those of the subgraph), and TFLite Micro's memory management documentation (OfflineMemoryAllocation).
"""

from __future__ import annotations

import dataclasses
import struct

import numpy as np

from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.graph.types import Graph, Node, Tensor
from opwest.compiler.graph.user import UserOperator
from opwest.frontends.formats import TFLITE
from opwest.frontends.read import read_model, require
from opwest.frontends.vela.file import CUSTOM_CODE, Call, Memory, VelaFile, node_of

_ALLOCATION = b"OfflineMemoryAllocation"
_FIXED = 4
"""The inputs of ethos-u before those of the subgraph."""
_WEIGHTS = 1
"""The input with the weights: empty or absent if the subgraphs have none. The scratch tensors follow."""
_DESCRIPTION = b"Vela "
"""The start of the description of every file that Vela has written."""
_AGAIN = "compile the model again with Vela"


def read_tflite(content: bytes, place: str) -> VelaFile:
    """Return the content of a file. Raises OpwestError."""
    require(TFLITE)
    graphs = read_model(content, place)
    if len(graphs) != 1:
        names = ", ".join(graph.name for graph in graphs)
        raise fault(f"the file has {counted(len(graphs), 'signature')}: {names}", place, "one signature")
    [graph] = graphs
    nodes = [node for node in graph.nodes if node.source == CUSTOM_CODE]
    if not nodes:
        raise _without_npu(content, graph, place)
    planned = _allocation(content, graph, place)
    memory, start = _memory(nodes, planned, place)
    calls = {node: _call(node, place) for node in nodes}
    operators: dict[UserOperator, Call] = {}
    made = list(graph.nodes)
    for number, node in enumerate(made):
        if node in calls:
            made[number], operator = node_of(calls[node], len(operators), place)
            operators[operator] = calls[node]
    offsets = {tensor: offset - start for tensor, offset in planned.items()}
    return VelaFile(dataclasses.replace(graph, nodes=tuple(made)), operators, memory, offsets)


def _without_npu(content: bytes, graph: Graph, place: str) -> Exception:
    """Return the error of a file without operators for the NPU: Vela can leave all of them on the processor."""
    import tflite

    try:
        is_of_vela = (tflite.Model.GetRootAsModel(content, 0).Description() or b"").startswith(_DESCRIPTION)
    except (struct.error, IndexError, ValueError, TypeError):
        is_of_vela = False
    if is_of_vela:
        kinds = ", ".join(sorted({node.kind for node in graph.nodes})) or "there are none"
        hint = f"opwest import tflite {place} imports it for the processor; Vela prints why it leaves an operator"
        return fault(f"Vela left all operators on the processor: {kinds}", place, "an operator for the NPU", hint)
    hint = f"opwest import tflite {place} imports a model for the processor; --npu compiles it for an NPU"
    return fault("the model has no operator 'ethos-u'", place, "a file that Vela has written", hint)


def _call(node: Node, place: str) -> Call:
    stream = node.input(0)
    inputs = [tensor for tensor in node.inputs[_FIXED:] if tensor is not None]
    for tensor in (*inputs, *node.outputs):
        what = "a constant" if tensor.is_constant else "a variable" if tensor.is_state else None
        if what is not None:
            text = f"operator {node.label}: tensor '{tensor.name}' is {what}"
            raise fault(text, place, "inputs and outputs in the arena")
    if stream.content is None or stream.dtype != "uint8":
        raise fault(f"operator {node.label}: the command stream is no constant of uint8", place, hint=_AGAIN)
    return Call(node.label, stream.content.tobytes(), tuple(inputs), node.outputs)


def _memory(nodes: list[Node], planned: dict[Tensor, int], place: str) -> tuple[Memory, int]:
    """Return the memory that all operators share, and the offset of the scratch memory in the arena of the file."""
    for node in nodes:
        required = [tensor for number, tensor in enumerate(node.inputs[:_FIXED]) if number != _WEIGHTS]
        if len(node.inputs) <= _FIXED or None in required or not node.outputs:
            outputs = counted(len(node.outputs), "output")
            text = f"operator {node.label} has {counted(len(node.inputs), 'input')} and {outputs}"
            expected = "the command stream, the weights, two scratch tensors, inputs, and an output"
            raise fault(text, place, expected, _AGAIN)
        if any(node.inputs[i] is not nodes[0].inputs[i] for i in range(1, _FIXED)):
            raise fault(f"operator {node.label} has memory of its own", place, "one memory for all operators ethos-u")
    weights, scratch, fast = nodes[0].inputs[_WEIGHTS], nodes[0].input(_WEIGHTS + 1), nodes[0].input(_WEIGHTS + 2)
    for what, tensor in (("weights", weights), ("scratch memory", scratch), ("fast scratch memory", fast)):
        if tensor is None:
            continue
        # Without weights the tensor is empty, which is no constant in some files.
        is_right = (tensor.content is not None or not tensor.size) if what == "weights" else tensor.content is None
        if tensor.dtype != "uint8" or len(tensor.shape) != 1 or not is_right:
            expected = f"a vector of uint8{', constant' if what == 'weights' else ''}"
            raise fault(f"the {what} '{tensor.name}' is {tensor.dtype} {list(tensor.shape)}", place, expected, _AGAIN)
    start = planned.get(scratch)
    if start is None:
        text = f"the scratch memory '{scratch.name}' is not planned"
        raise fault(text, place, f"an offset in {_ALLOCATION.decode()}")
    content = np.zeros(0, np.uint8) if weights is None or weights.content is None else weights.content
    return Memory(content, scratch.size, None if fast is scratch else fast.size), start


def _allocation(content: bytes, graph: Graph, place: str) -> dict[Tensor, int]:
    """Return the planned offsets of tensors. Raises OpwestError."""
    import tflite

    from opwest.frontends.tflite.read import metadata_of

    file = tflite.Model.GetRootAsModel(content, 0)
    try:
        data = next(metadata_of(file, content, _ALLOCATION), None)
    except (struct.error, IndexError, ValueError, TypeError):
        raise fault("the file is damaged: cannot read its metadata", place, hint=_AGAIN) from None
    if data is None:
        raise fault(f"the file has no metadata {_ALLOCATION.decode()}", place, "a file that Vela has written", _AGAIN)
    count = file.Subgraphs(graph.subgraph).TensorsLength()
    if len(data) < 12 or len(data) % 4:
        raise fault(f"the metadata {_ALLOCATION.decode()} has {counted(len(data), 'byte')}", place, hint=_AGAIN)
    version, _, length, *offsets = struct.unpack(f"<{len(data) // 4}i", data)
    if version != 0 or length != len(offsets) or length != count:
        what = f"version {version} and {counted(length, 'offset')}"
        text = f"the metadata {_ALLOCATION.decode()} has {what}, {len(offsets)} follow"
        raise fault(text, place, f"version 0 and the offsets of {counted(count, 'tensor')}", _AGAIN)
    used = {tensor for node in graph.nodes for tensor in (*node.inputs, *node.outputs) if tensor is not None}
    tensors = {tensor.number: tensor for tensor in {*graph.inputs, *graph.outputs, *used}}
    return {tensors[i]: offset for i, offset in enumerate(offsets) if offset >= 0 and i in tensors}
