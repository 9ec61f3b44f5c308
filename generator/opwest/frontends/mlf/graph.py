# SPDX-License-Identifier: Apache-2.0
"""Models of the graph executor: its JSON is converted to static steps in the same order, with a new memory plan.

The format is that of TVM's GraphExecutorCodegen: nodes, their inputs as [node, index, version], and per entry of
`node_row_ptr` a shape, an element type and a storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.names import free_name, identifier
from opwest.compiler.output.source import c_file
from opwest.frontends.mlf.c_text import arrays, values
from opwest.frontends.mlf.code import Code
from opwest.frontends.mlf.draft import Argument, Constant, Draft, Operator, Step, Tensor, TensorType
from opwest.frontends.mlf.inner import Workspaces
from opwest.frontends.mlf.library import DIMENSIONS, ELEMENTS, TENSORS
from opwest.frontends.mlf.metadata import Metadata, Parameter, read_json
from opwest.frontends.mlf.ports import kept_name
from opwest.model.types.c_names import is_symbol
from opwest.model.types.conventions import PACKED
from opwest.model.types.dtypes import DTYPES, resolve_dtype

_HOST = 1
"""kDLCPU."""

_COPIES = """\
/* {head} Reshapes of the graph, as copies. */
#include <stdint.h>
#include <string.h>
{functions}"""
_COPY = """
int32_t {symbol}(const {c_type} *from, {c_type} *to)
{{
\tmemcpy(to, from, {size});
\treturn 0;
}}
"""


@dataclass(frozen=True)
class _Node:
    op: str
    name: str
    function: str
    inputs: tuple[tuple[int, int], ...]
    outputs: int


class Graph:
    """The conversion of one graph to steps."""

    def __init__(
        self, content: bytes, place: str, code: Code, metadata: Metadata, params: dict[str, Parameter]
    ) -> None:
        self.place = place
        self.code = code
        self.metadata = metadata
        self.params = params
        whole = read_json(content, place)
        self.nodes = [self._node(n) for n in self._list(whole, "nodes")]
        if len(self.nodes) > TENSORS:
            raise fault(f"the graph has {counted(len(self.nodes), 'node')}", place, f"at most {TENSORS}")
        self.rows = [self._index(r) for r in self._list(whole, "node_row_ptr")]
        self.entries = self._entries(whole.get("attrs"))
        self.heads = [self._reference(h) for h in self._list(whole, "heads")]
        for node, _ in (*self.heads, *(i for n in self.nodes for i in n.inputs)):
            if node >= len(self.nodes):
                raise fault(f"the graph refers to node {node}", place, f"nodes 0 to {len(self.nodes) - 1}")
        self.peaks = Workspaces(code.functions, code.places)
        self.taken: set[str] = set()
        self.names: dict[tuple[int, int], str] = {}
        self.operators: dict[tuple[str, tuple[TensorType, ...]], Operator] = {}
        self.copies: dict[str, str] = {}
        self.constants: dict[str, Any] = {}

    def draft(self, head: str) -> Draft:
        """Return the graph as steps. Raises OpwestError."""
        result = Draft()
        inputs = [n for n, node in enumerate(self.nodes) if node.op == "null" and not self._add_constant(result, n)]
        named = [(n, kept_name(self.nodes[n].name, "input", self.taken, result.remarks)) for n in inputs]
        result.inputs = tuple(self._tensor(n, 0, name) for n, name in named)
        result.outputs = self._name_outputs(result)
        for number, node in enumerate(self.nodes):
            if node.op != "null":
                self._add_step(result, number, node)
        result.operators = list(self.operators.values())
        if self.copies:
            text = _COPIES.format(head=head, functions="".join(self.copies.values()))
            result.files["operators/reshape.c"] = c_file(text)
            result.objects.append((None, "operators/reshape.c"))
        return result

    def _name_outputs(self, result: Draft) -> tuple[Tensor, ...]:
        """Name the results of the graph as in metadata.json; each is a tensor that a step writes."""
        ports = self.metadata.outputs
        outputs = []
        for number, (node, index) in enumerate(self.heads):
            if self.nodes[node].op == "null" or (node, index) in self.names:
                text = f"result {number} of the graph is not written by a step"
                raise fault(text, self.place, "results written by steps")
            if len(ports) == len(self.heads):
                name = kept_name(ports[number].name, "output", self.taken, result.remarks)
            else:  # the graph does not name its results
                name = self._free("output")
            outputs.append(self._tensor(node, index, name))
        return tuple(outputs)

    def _tensor(self, node: int, index: int, name: str) -> Tensor:
        entry = self._entry(node, index)
        self.names[node, index] = name
        return Tensor(name, entry.dtype, entry.shape)

    def _add_constant(self, result: Draft, number: int) -> bool:
        """Add the parameter of a node as a constant; return whether the node is a parameter."""
        node = self.nodes[number]
        entry = self._entry(number, 0)
        value = self.params.get(node.name) or self._linked(node.name, entry)
        if value is None:
            return False
        if value.dtype != entry.dtype or tuple(value.values.shape) != entry.shape:
            words = f"parameter {node.name[:60]!r} is {value.dtype} {list(value.values.shape)}"
            raise fault(words, self.place, f"{entry.dtype} {list(entry.shape)}, as in the graph")
        name = self._free(identifier(node.name, "constant"))
        self.names[number, 0] = name
        self.constants[name] = value.values
        is_bits = DTYPES[entry.dtype].numpy != entry.dtype
        result.constants.append(Constant(name, "constants.npz", entry.dtype if is_bits else None, key=name))
        return True

    def _linked(self, name: str, entry: TensorType) -> Parameter | None:
        """Return a parameter that TVM linked into the C code (`-link-params`): `__tvm_param__NAME`."""
        import numpy as np

        for file, text in self.code.texts.items():
            for array in arrays(text) if f"__tvm_param__{name}" in text else ():
                if array.name == f"__tvm_param__{name}" and array.start >= 0:
                    content = values(text, array.start, array.dtype, array.count, file)
                    dtype = resolve_dtype(array.dtype, entry.dtype)
                    flat = np.frombuffer(content, np.dtype(DTYPES[dtype].numpy).newbyteorder("<"))
                    return Parameter(dtype, flat.reshape(entry.shape) if flat.size == prod(entry.shape) else flat)
        return None

    def _add_step(self, result: Draft, number: int, node: _Node) -> None:
        if node.function == "__nop":
            self._add_reshape(result, number, node)
            return
        is_compiled = any(node.function in member.defined for _, member in self.code.objects.values())
        if not (is_compiled or node.function in self.code.functions) or not is_symbol(node.function):
            raise fault(f"undefined function {node.function[:80]!r} called by the graph", self.place, "its definition")
        given = [self._name(n, i, number) for n, i in node.inputs]
        written = [(number, index) for index in range(node.outputs)]
        for at in written:
            self.names.setdefault(at, self._free(f"t{number}" if node.outputs == 1 else f"t{number}_{at[1]}"))
        entries = tuple(self._entry(n, i) for n, i in (*node.inputs, *written))
        key = (node.function, entries)
        if key not in self.operators:
            self.operators[key] = self._operator(node, entries)
        names = (*given, *(self.names[at] for at in written))
        result.steps.append(Step(self.operators[key].name, names))

    def _operator(self, node: _Node, entries: Sequence[TensorType]) -> Operator:
        prefix = f"tvmgen_{self.metadata.module}_"
        args = []
        known = node.function in self.code.functions
        for number, entry in enumerate(entries):
            direction = "in" if number < len(entries) - node.outputs else "out"
            # C requires only the element's alignment; compiled code can rely on the convention's.
            align = DTYPES[entry.dtype].size if known else None
            args.append(Argument(f"p{number}", entry.dtype, entry.shape, direction, align))
        needed = self.peaks.peak(node.function) if known else self.metadata.operators.get(node.function, 0)
        name = self._free(identifier(node.function.removeprefix(prefix), "operator"))
        return Operator(name, node.function, tuple(args), needed + -needed % PACKED.workspace_alignment, PACKED)

    def _add_reshape(self, result: Draft, number: int, node: _Node) -> None:
        """Convert a reshape to an alias of its input, or to a copy if the shape differs or it is a result."""
        if len(node.inputs) != 1:
            raise fault(f"node {node.name[:60]!r} reshapes {counted(len(node.inputs), 'tensor')}", self.place, "one")
        source = node.inputs[0]
        before, after = self._entry(*source), self._entry(number, 0)
        if before.dtype != after.dtype or prod(before.shape) != prod(after.shape):
            raise fault(f"node {node.name[:60]!r} changes the size of the reshaped tensor", self.place, "the same size")
        if before == after and (number, 0) not in self.names:
            self.names[number, 0] = self._name(*source, number)
            return
        key = ("__nop", (before, after))
        if key not in self.operators:
            symbol = f"opwest_reshape_{len(self.copies)}"
            dtype = DTYPES[after.dtype]
            size = prod(after.shape) * dtype.size
            self.copies[symbol] = _COPY.format(symbol=symbol, c_type=dtype.c_type, size=size)
            args = (Argument("from", before.dtype, before.shape), Argument("to", after.dtype, after.shape, "out"))
            self.operators[key] = Operator(self._free("reshape"), symbol, args)
        self.names.setdefault((number, 0), self._free(f"t{number}"))
        result.steps.append(Step(self.operators[key].name, (self._name(*source, number), self.names[number, 0])))

    def _name(self, node: int, index: int, reader: int) -> str:
        if node >= reader or (node, index) not in self.names:
            raise fault(f"node {node} is read before it is computed", self.place, "nodes in the order of their use")
        return self.names[node, index]

    def _free(self, name: str) -> str:
        return free_name(name, self.taken)

    def _entry(self, node: int, index: int) -> TensorType:
        at = self.rows[node] + index if node < len(self.rows) else -1
        if not 0 <= at < len(self.entries) or index >= self.nodes[node].outputs:
            raise fault(f"the graph does not describe result {index} of node {node}", self.place, "its shape and type")
        return self.entries[at]

    def _entries(self, attrs: Any) -> list[TensorType]:
        known = attrs if isinstance(attrs, dict) else {}
        shapes, dtypes = self._attribute(known, "shape"), self._attribute(known, "dltype")
        if len(shapes) != len(dtypes) or len(shapes) > TENSORS:
            raise fault(f"{counted(len(shapes), 'shape')}, {len(dtypes)} element types", self.place, "equal numbers")
        for device in self._attribute(known, "device_index") if "device_index" in known else []:
            if device != _HOST:
                raise fault(f"unsupported TVM device {device} of a node", self.place, f"the processor, {_HOST}")
        entries = []
        for shape, dtype in zip(shapes, dtypes, strict=True):
            if not isinstance(dtype, str) or dtype not in DTYPES:
                raise fault(f"unknown element type {str(dtype)[:40]!r}", self.place, ", ".join(DTYPES))
            if not isinstance(shape, list) or len(shape) > DIMENSIONS or any(type(n) is not int for n in shape):
                raise fault("a shape is not a list of numbers", self.place, "dimensions")
            if any(n <= 0 for n in shape) or prod(shape) > ELEMENTS:
                raise fault(f"invalid shape {shape[:DIMENSIONS]}", self.place, "dimensions from 1")
            entries.append(TensorType(dtype, tuple(shape)))
        return entries

    def _attribute(self, attrs: dict[str, Any], name: str) -> list[Any]:
        value = attrs.get(name)
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], list):
            raise fault(f"missing {name!r} in the graph", self.place, f"attrs.{name}: [kind, values]")
        return value[1]

    def _node(self, node: Any) -> _Node:
        if not isinstance(node, dict) or node.get("op") not in ("null", "tvm_op"):
            raise fault("a node of the graph is neither null nor tvm_op", self.place, "nodes of TVM's graph executor")
        attrs = node.get("attrs") if isinstance(node.get("attrs"), dict) else {}
        assert isinstance(attrs, dict)
        if attrs.get("flatten_data", "0") != "0":
            raise fault("unsupported 'flatten_data' of a node", self.place, 'flatten_data: "0"')
        count = str(attrs.get("num_outputs", "1"))
        if not count.isdigit() or not 0 < int(count[:6]) <= TENSORS:
            raise fault(f"a node has {count[:20]} results", self.place, "a number")
        inputs = tuple(self._reference(i) for i in self._list(node, "inputs"))
        name = str(node.get("name", ""))
        return _Node(str(node["op"]), name, str(attrs.get("func_name", name)), inputs, int(count[:6]))

    def _reference(self, value: Any) -> tuple[int, int]:
        if not isinstance(value, list) or len(value) not in (2, 3):
            raise fault("a reference of the graph is not [node, index, version]", self.place, "three numbers")
        return self._index(value[0]), self._index(value[1])

    def _index(self, value: Any) -> int:
        if type(value) is not int or not 0 <= value <= TENSORS * 4:
            raise fault(f"invalid index {str(value)[:40]} in the graph", self.place, "an index")
        return int(value)

    def _list(self, owner: dict[str, Any], name: str) -> list[Any]:
        value = owner.get(name)
        if not isinstance(value, list):
            raise fault(f"missing list {name!r} in the graph", self.place, "the JSON format of TVM's graph executor")
        return value
