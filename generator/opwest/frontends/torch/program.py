# SPDX-License-Identifier: Apache-2.0
"""The graph of an exported program with checked types. Source: torch/_export/serde/schema.py (schema 5 to 8)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.graph.types import MAX_ELEMENTS, Damaged, Shape, Unsupported
from opwest.frontends.torch.symbols import FIXED_SHAPES, Symbols, shown, symbol_of
from opwest.frontends.torch.typed import field_of, kind_of, union_of, whole
from opwest.frontends.torch.weights import dtype_of

_MAX_NODES = 100_000
_MAX_RANK = 8
_MAX_ITEMS = 1 << 16
"""The most elements of a list of arguments."""
_SCHEMAS = range(5, 9)
"""The tested major versions of the schema: PyTorch 2.2 to 2.13."""


@dataclass(frozen=True)
class Ref:
    """A tensor of the graph, by name."""

    name: str


@dataclass(frozen=True)
class Code:
    """A member of an enumeration of torch: `dtype` (a name), `memory_format`, `layout` (numbers), `device`."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Meta:
    """The type of a tensor."""

    dtype: str
    shape: Shape


@dataclass(frozen=True, eq=False)
class Call:
    """One node of the graph."""

    number: int
    target: str
    """namespace.operator.overload, such as aten.add.Tensor."""
    name: str
    arguments: Mapping[str, Any]
    """By the names of the operator's schema: Ref, Code, numbers, texts, None, lists of them."""
    results: tuple[str | None, ...]
    """The names of the results; None for one that is not a tensor."""
    refusal: Unsupported | None = None
    """The reason why an argument cannot be read."""

    @property
    def operator(self) -> str:
        """The namespace and the operator without the overload."""
        return ".".join(self.target.split(".")[:2])

    @property
    def shown(self) -> str:
        """The operator in messages: without the overload `default`."""
        return self.target.removesuffix(".default")

    @property
    def label(self) -> str:
        """The node in messages."""
        return f"{self.number} '{self.name}' ({self.shown})" if self.name else f"{self.number} ({self.shown})"


@dataclass(frozen=True)
class Constant:
    """A parameter, a buffer or a tensor constant."""

    name: str
    """In the graph."""
    path: str
    """In the model, such as conv.weight: the name of its content."""
    is_buffer: bool


@dataclass(frozen=True)
class Program:
    """A program."""

    calls: tuple[Call, ...]
    metas: Mapping[str, Meta]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: tuple[Constant, ...]
    mutations: Mapping[str, str]
    """The tensor after a run by the path of the buffer."""
    remarks: tuple[str, ...] = field(default=())


def read_program(document: Mapping[str, Any]) -> Program:
    """Return the program of a JSON document. Raises Damaged, Unsupported."""
    version = document.get("schema_version")
    major = version.get("major") if isinstance(version, dict) else None
    if major not in _SCHEMAS:
        raise Unsupported(
            f"version {major!r} of PyTorch's schema of exported programs",
            f"{_SCHEMAS[0]} to {_SCHEMAS[-1]}",
            "save the program with a release of PyTorch between 2.6 and 2.13",
        )
    module = field_of(document, "graph_module", dict, "the program")
    return _Reader(module).read()


def changed_input(name: str) -> str:
    """Return the remark on an input that the program changes in place."""
    return f"the program changes its input '{name}' in place: the import leaves it as it is"


class _Reader:
    def __init__(self, module: Mapping[str, Any]) -> None:
        self.graph = field_of(module, "graph", dict, "the program")
        self.signature = field_of(module, "signature", dict, "the program")
        self.symbols = Symbols()
        self.remarks: list[str] = []
        self.metas: dict[str, Meta] = {}
        self.unknown: dict[str, Unsupported] = {}
        """The reasons why tensors have no type."""
        self.names: dict[str, str] = {}
        """The names in the program of the tensors in the graph that is read, if it is an argument of a node."""
        self.count = 0

    def read(self) -> Program:
        inputs, constants = self._inputs()
        values = field_of(self.graph, "tensor_values", dict, "the graph")
        for name in inputs:
            if name in values:
                self._fix_batch(name, kind_of(values[name], dict, f"the tensor '{name}'"))
        self._metas(values)
        calls = tuple(self._calls(self.graph, 0))
        outputs, mutations = self._outputs()
        known = {*self.metas, *self.unknown}
        for name in (*inputs, *(c.name for c in constants)):
            if name in self.unknown:
                raise self.unknown[name]
        if missing := [name for name in (*inputs, *outputs, *(c.name for c in constants)) if name not in known]:
            raise Damaged(f"the tensor '{missing[0]}' has no type")
        if not outputs:
            raise Damaged("no output")
        _check_order(calls, {*inputs, *(constant.name for constant in constants)}, (*outputs, *mutations.values()))
        return Program(calls, self.metas, inputs, outputs, constants, mutations, tuple(self.remarks))

    # The types of tensors.

    def _metas(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            where = f"the tensor '{name}'"
            meta = kind_of(value, dict, where)
            sizes = field_of(meta, "sizes", list, where)
            name = self.names.get(name, name)
            try:
                shape = tuple(self._size(size, where) for size in sizes)
            except Unsupported as reason:
                self.unknown[name] = reason
                continue
            if len(shape) > _MAX_RANK or any(n < 0 for n in shape) or prod(shape) > MAX_ELEMENTS:
                raise Damaged(f"{where} has the impossible shape {list(shape)[:8]}")
            self.metas[name] = Meta(dtype_of(meta.get("dtype"), where), shape)

    def _fix_batch(self, name: str, meta: Mapping[str, Any]) -> None:
        """Let the symbol of a first dimension be 1."""
        sizes = field_of(meta, "sizes", list, f"the input '{name}'")
        texts = [self._expression(size, f"the input '{name}'") for size in sizes]
        batch = None if not texts or texts[0] is None else symbol_of(texts[0])
        if batch is not None:
            self.symbols.numbers[batch] = 1
        if others := [text for text in texts[1:] if text is not None]:
            raise Unsupported(
                f"the input '{name}' has the symbolic dimension '{shown(others[0])}'", "fixed dimensions", FIXED_SHAPES
            )
        if batch is not None:
            rest = [str(self._size(size, "an input")) for size in sizes[1:]]
            given, fixed = (", ".join([first, *rest]) for first in (batch, "1"))
            self.remarks.append(f"input '{name}' of shape [{given}] is imported as [{fixed}]")

    def _expression(self, size: Any, where: str) -> str | None:
        """Return the text of a symbolic dimension."""
        kind, value = union_of(size, where)
        if kind != "as_expr":
            return None
        return field_of(kind_of(value, dict, where), "expr_str", str, where)

    def _size(self, size: Any, where: str) -> int:
        text = self._expression(size, where)
        return whole(size.get("as_int"), where) if text is None else self.symbols.number(text)

    # The interface.

    def _inputs(self) -> tuple[tuple[str, ...], tuple[Constant, ...]]:
        inputs, constants = [], []
        for spec in field_of(self.signature, "input_specs", list, "the signature"):
            kind, value = union_of(spec, "an input of the signature")
            entry = kind_of(value, dict, "an input of the signature")
            if kind == "user_input":
                form, argument = union_of(entry.get("arg"), "an input of the signature")
                if form == "as_tensor":
                    inputs.append(field_of(argument, "name", str, "an input of the signature"))
                elif form == "as_sym_int":
                    raise Unsupported("an input that is a symbolic integer", "tensors", FIXED_SHAPES)
            elif kind in ("parameter", "buffer", "tensor_constant"):
                name = field_of(field_of(entry, "arg", dict, kind), "name", str, kind)
                constants.append(Constant(name, field_of(entry, f"{kind}_name", str, kind), kind == "buffer"))
            elif kind == "custom_obj":
                name = str(entry.get("custom_obj_name", ""))
                raise Unsupported(f"the custom object '{name}'", "a model of tensors only")
            elif kind not in ("constant_input", "token"):
                raise Damaged(f"an input of the unknown kind '{kind}'")
        return tuple(inputs), tuple(constants)

    def _outputs(self) -> tuple[tuple[str, ...], dict[str, str]]:
        outputs: list[str] = []
        mutations: dict[str, str] = {}
        for spec in field_of(self.signature, "output_specs", list, "the signature"):
            kind, value = union_of(spec, "an output of the signature")
            entry = kind_of(value, dict, "an output of the signature")
            if kind == "user_output":
                form, argument = union_of(entry.get("arg"), "an output of the signature")
                if form == "as_tensor":
                    outputs.append(field_of(argument, "name", str, "an output of the signature"))
                elif form != "as_none":
                    self.remarks.append(f"an output that is {_FORMS.get(form, form)} is left out")
            elif kind == "buffer_mutation":
                name = field_of(field_of(entry, "arg", dict, kind), "name", str, kind)
                mutations[field_of(entry, "buffer_name", str, kind)] = name
            elif kind == "user_input_mutation":
                self.remarks.append(changed_input(str(entry.get("user_input_name", ""))))
            elif kind != "token":
                raise Unsupported(f"an output of the kind '{kind}'", "a program for inference", "export model.eval()")
        return tuple(outputs), mutations

    # Nodes.

    def _calls(self, graph: Mapping[str, Any], depth: int) -> Iterator[Call]:
        """Yield the nodes of a graph, and those of graphs that only set a mode of torch."""
        for node in field_of(graph, "nodes", list, "the graph"):
            number, self.count = self.count, self.count + 1
            if number > _MAX_NODES:
                raise Unsupported(f"more than {counted(_MAX_NODES, 'operator')}", f"at most {_MAX_NODES}")
            if (inner := _wrapped(node)) is not None and depth < _MAX_DEPTH:
                yield from self._inlined(node, inner, f"operator {number}", depth + 1)
            else:
                yield self._call(node, number)

    def _inlined(self, node: Mapping[str, Any], place: int, where: str, depth: int) -> Iterator[Call]:
        """Yield the nodes of a graph that is argument `place` of a node, with the tensors around it."""
        arguments = [entry.get("arg") for entry in node["inputs"]]
        graph = field_of(field_of(arguments[place], "as_graph", dict, where), "graph", dict, where)
        outer = [self._value(argument, where) for argument in arguments[place + 1 :]]
        results = list(self._results(field_of(node, "outputs", list, where), where))
        inner = [_tensor_name(value, where) for value in field_of(graph, "inputs", list, where)]
        ends = [_tensor_name(value, where) for value in field_of(graph, "outputs", list, where)]
        names = {own: given.name for own, given in zip(inner, outer, strict=False) if isinstance(given, Ref)}
        for end, result in zip(ends, results, strict=False):
            if result is not None:
                names.setdefault(end, result)
        values = field_of(graph, "tensor_values", dict, where)
        for name in values:
            taken = name in self.metas or name in self.unknown or name in names.values()
            names.setdefault(name, f"{name}_{self.count}" if taken else name)
        before, self.names = self.names, names
        known = {name: value for name, value in values.items() if names[name] not in self.metas}
        self._metas(known)
        yield from self._calls(graph, depth)
        self.names = before
        for end, result in zip(ends, results, strict=False):
            if result is not None and names[end] != result:  # an input that is returned as it is
                yield Call(self.count, "aten.alias.default", result, {"self": Ref(names[end])}, (result,))

    def _call(self, node: Any, number: int) -> Call:
        where = f"operator {number}"
        entry = kind_of(node, dict, where)
        target = field_of(entry, "target", str, where).removeprefix("torch.ops.").removeprefix("#")
        results = tuple(self._results(field_of(entry, "outputs", list, where), where))
        arguments: dict[str, Any] = {}
        refusal = None
        for place, given in enumerate(field_of(entry, "inputs", list, where)):
            argument = kind_of(given, dict, where)
            name = kind_of(argument.get("name", ""), str, f"the name of an argument of {where}") or str(place)
            try:
                arguments[name] = self._value(argument.get("arg"), f"the argument '{name}'")
            except Unsupported as reason:
                refusal = reason
        for result in results:
            refusal = refusal or self.unknown.get(result or "")
        named = entry.get("name") or next((result for result in results if result is not None), "")
        return Call(number, target, kind_of(named, str, where).replace("'", ""), arguments, results, refusal)

    def _results(self, outputs: list[Any], where: str) -> Iterator[str | None]:
        for output in outputs:
            kind, value = union_of(output, f"a result of {where}")
            if kind == "as_tensor":
                yield self._name(value, where)
            elif kind == "as_tensors":
                for tensor in kind_of(value, list, where):
                    yield self._name(tensor, where)
            elif kind == "as_optional_tensors":
                for optional in kind_of(value, list, where):
                    yield from self._results([optional], where)
            else:
                yield None

    def _name(self, value: Any, where: str) -> str:
        """Return the name of a tensor in the program."""
        name = field_of(value, "name", str, where)
        return self.names.get(name, name)

    def _value(self, argument: Any, where: str) -> Any:
        kind, value = union_of(argument, where)
        if kind == "as_none":
            return None
        if kind in _ENUMERATIONS:
            name = _ENUMERATIONS[kind]
            return Code(name, dtype_of(value, where) if name == "dtype" else value)
        if kind == "as_tensor":
            return Ref(self._name(value, where))
        if kind == "as_optional_tensor":
            return self._value(value, where)
        if kind in ("as_tensors", "as_optional_tensors"):
            items = self._list(value, where)
            return [self._value({"as_tensor": item} if kind == "as_tensors" else item, where) for item in items]
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            return self._symbolic(value, where)
        if kind in ("as_sym_ints", "as_sym_bools", "as_sym_floats"):
            return [self._symbolic(item, where) for item in self._list(value, where)]
        if kind in _SCALARS:
            return _scalar(value, where)
        if kind in _LISTS:
            return [_scalar(item, where) for item in self._list(value, where)]
        if kind == "as_graph":
            raise Unsupported("control flow that depends on data", "operators without graphs", _CONTROL)
        raise Unsupported(f"{where} is of the kind '{kind.removeprefix('as_')}'", "tensors and numbers")

    def _list(self, value: Any, where: str) -> list[Any]:
        items = kind_of(value, list, where)
        if len(items) > _MAX_ITEMS:
            raise Damaged(f"{where} has {counted(len(items), 'element')}")
        return items

    def _symbolic(self, value: Any, where: str) -> Any:
        """Return the number of an integer, a bool or a float that is computed from dimensions."""
        kind, content = union_of(value, where)
        if kind != "as_name" or not isinstance(content, str):
            return _scalar(content, where)
        for table in ("sym_int_values", "sym_bool_values", "sym_float_values"):
            known = self.graph.get(table, {})
            if isinstance(known, dict) and content in known:
                form, inner = union_of(known[content], where)
                if form != "as_expr":
                    return _scalar(inner, where)
                return self.symbols.number(field_of(kind_of(inner, dict, where), "expr_str", str, where))
        raise Damaged(f"{where} is the unknown number {content!r}")


def _check_order(calls: Sequence[Call], known: set[str], ends: Sequence[str]) -> None:
    """Check that each tensor is computed before it is read. Raises Damaged."""
    for call in calls:
        for name in references(list(call.arguments.values())):
            if name not in known:
                raise Damaged(f"operator {call.label} reads '{name}', which no earlier operator computes")
        known.update(name for name in call.results if name is not None)
    for name in ends:
        if name not in known:
            raise Damaged(f"no operator computes the output '{name}'")


def references(value: Any) -> Iterator[str]:
    """Yield the names of tensors in arguments."""
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


_FORMS = {"as_int": "an integer", "as_float": "a number", "as_bool": "a bool", "as_sym_int": "a dimension"}
_CONTROL = "export the model without torch.cond, while_loop, map and scan"
_MAX_DEPTH = 16
_WRAPPERS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}
"""Operators that call a graph in a mode of torch, and the place of the graph in their arguments."""


def _wrapped(node: Any) -> int | None:
    """Return the place of a graph that is computed as if it was no argument; None for other nodes."""
    target = node.get("target") if isinstance(node, dict) else None
    name = target.rpartition(".")[2] if isinstance(target, str) and "higher_order." in target else ""
    place = _WRAPPERS.get(name)
    inputs = node.get("inputs") if isinstance(node, dict) else None
    if place is None or not isinstance(inputs, list) or len(inputs) <= place:
        return None
    if not all(isinstance(entry, dict) for entry in inputs):
        return None
    # With autocast enabled the operators compute in another dtype than their arguments have.
    is_autocast = name == "wrap_with_autocast" and inputs[2].get("arg") != {"as_bool": False}
    return None if is_autocast else place


def _tensor_name(value: Any, where: str) -> str:
    """Return the name of an argument that is a tensor. Raises Unsupported."""
    kind, content = union_of(value, where)
    if kind != "as_tensor":
        raise Unsupported(f"{where} has a graph with the interface '{kind}'", "tensors")
    return field_of(content, "name", str, where)


_ENUMERATIONS = {
    "as_scalar_type": "dtype",
    "as_memory_format": "memory_format",
    "as_layout": "layout",
    "as_device": "device",
}
_SCALARS = ("as_int", "as_float", "as_bool", "as_string", "as_operator")
_LISTS = ("as_ints", "as_floats", "as_bools", "as_strings")
_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def _scalar(value: Any, where: str) -> Any:
    """Return a number or a text; JSON has texts for numbers that are not finite."""
    if isinstance(value, str):
        return _SPECIAL.get(value, value)
    if not isinstance(value, (int, float)):
        raise Damaged(f"{where} is no number and no text")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise Damaged(f"{where} is the number {str(value)[:30]}")
    return value
