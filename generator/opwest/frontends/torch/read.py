# SPDX-License-Identifier: Apache-2.0
"""An exported program of PyTorch as a graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from opwest.base.diagnostics import first_line
from opwest.compiler.graph.types import Damaged, Graph, Node, Rules, Tensor, Unsupported
from opwest.compiler.graph.user import UserOperator
from opwest.frontends.onnx.file import MAX_OPSET
from opwest.frontends.onnx.fold import Reader
from opwest.frontends.onnx.read import translate
from opwest.frontends.onnx.simplify import simplify
from opwest.frontends.onnx.values import Item, Model, State
from opwest.frontends.torch import (  # noqa: F401 - they fill the table of translations
    attention,
    creation,
    elements,
    functions,
    layers,
    movement,
    normalisation,
    parts,
    pools,
    quantised,
    recurrent,
    reductions,
    resize,
)
from opwest.frontends.torch.archive import RESAVE, Archive
from opwest.frontends.torch.build import Builder, Context, Value
from opwest.frontends.torch.effects import Environment, LostError, changed_roots, functional, in_place, translation_of
from opwest.frontends.torch.program import Call, Program, changed_input, read_program, references
from opwest.frontends.torch.saved import SavedTensors
from opwest.frontends.torch.weights import DTYPES, Payloads

_OLD_PROGRAM = "serialized_exported_program.json"
_OLD_TENSORS = ("serialized_state_dict.pt", "serialized_constants.pt")
_DTYPES = frozenset(
    name for name in DTYPES.values() if name in ("bool", "bfloat16") or name[:3] in ("int", "uin", "flo")
)
_SILENT = (
    *("_operator", "torch", "math", "builtins", "aten.sym_size", "aten.sym_stride", "aten.sym_numel"),
    *("aten.sym_storage_offset", "aten.sym_constrain_range", "aten.sym_constrain_range_for_size"),
    *("aten._assert_scalar", "aten._assert_async", "aten._assert_tensor_metadata", "aten._functional_assert_scalar"),
    *("aten._functional_assert_async", "aten._log_api_usage_once"),
)
"""Operators without tensors as results that compute dimensions or check something."""


def read_torch(
    content: bytes, rules: Rules | None = None, users: Mapping[str, UserOperator] | None = None
) -> tuple[Graph, ...]:
    """Return the model of a file. Raises Damaged, Unsupported."""
    archive = Archive(content)
    member, payloads = _parts_of(archive)
    made = _Translation(read_program(archive.json(member)), payloads, users or {})
    graph = translate(simplify(made.model()), dataclasses.replace(rules or Rules(), inverse_scales=True))
    return (_with_names(graph, made.outputs),)


def _parts_of(archive: Archive) -> tuple[str, Payloads | SavedTensors]:
    """Return the member with the program, and the tensors. Raises Damaged, Unsupported."""
    if _OLD_PROGRAM in archive and (archive.names("models/") or archive.names("data/")):
        raise Damaged("an archive of two versions of PyTorch")
    if _OLD_PROGRAM in archive:  # PyTorch 2.6, 2.7
        return _OLD_PROGRAM, SavedTensors([archive.read(name) for name in _OLD_TENSORS if name in archive])
    model = _model_of(archive)
    saved = [f"data/{folder}/{model}.pt" for folder in ("weights", "constants")]
    raw = Payloads(archive, model)  # refuses pickles
    if any(name in archive for name in saved):  # PyTorch 2.8
        return f"models/{model}.json", SavedTensors([archive.read(name) for name in saved if name in archive])
    return f"models/{model}.json", raw


def _with_names(graph: Graph, names: list[str]) -> Graph:
    """Return the graph with the names of the outputs in the program."""
    nodes, outputs = list(graph.nodes), []
    for tensor, name in zip(graph.outputs, names, strict=True):
        if tensor in graph.inputs or tensor.is_constant or tensor.is_state or tensor in outputs:
            shape = Tensor("shape", "int32", (len(tensor.shape),), content=np.asarray(tensor.shape, np.int32))
            copy = Tensor(name, tensor.dtype, tensor.shape, tensor.quantization)
            options = {"new_shape": tensor.shape}
            nodes.append(Node("RESHAPE", (tensor, shape), (copy,), options, f"output '{name}'", source="output"))
            tensor = copy
        tensor.name = name
        outputs.append(tensor)
    return dataclasses.replace(graph, nodes=tuple(nodes), outputs=tuple(outputs))


def _model_of(archive: Archive) -> str:
    """Return the name of the only model. Raises Damaged, Unsupported."""
    models = [name.removeprefix("models/").removesuffix(".json") for name in archive.names("models/", ".json")]
    if archive.names("data/aotinductor/"):
        raise Unsupported(
            "the archive contains a model that AOTInductor compiled for this machine ('data/aotinductor/')",
            "an archive of torch.export.save",
            "save the exported program: torch.export.save(torch.export.export(model.eval(), args), path)",
        )
    if not models:
        raise Unsupported(
            "a zip archive without a program: no member 'models/*.json'", "an archive of torch.export.save"
        )
    if len(models) > 1:
        shown = ", ".join(f"'{name}'" for name in models[:6])
        raise Unsupported(f"the archive contains the models {shown}", "one model", "save each in a file of its own")
    if "byteorder" in archive and archive.read("byteorder", 64) != b"little":
        raise Unsupported("an archive of a big-endian machine", "byteorder little", RESAVE)
    return models[0]


class _Translation:
    """A program as a model in the vocabulary of ONNX."""

    def __init__(self, program: Program, payloads: Payloads | SavedTensors, users: Mapping[str, UserOperator]) -> None:
        self.program = program
        self.payloads = payloads
        self.users = users
        self.used: dict[str, UserOperator] = {}
        self.build = Builder(program.metas)
        self.values = Environment(program.metas, self.build)
        self.needed = {*program.outputs, *program.mutations.values()}
        """The tensors that something reads."""
        for call in program.calls:
            self.needed.update(references(list(call.arguments.values())))
        self.is_refused = False
        """Whether an operator has no translation."""
        self.outputs: list[str] = []
        """The names of the outputs."""
        self.states: dict[str, tuple[str, Any]] = {}
        """The name and the initial content of a buffer that changes, by its path."""

    def model(self) -> Model:
        """Return the model. Raises Damaged, Unsupported."""
        self._check_floats()
        for name in self.program.inputs:
            self.values.bind(name, Value(name, *self._type(name)))
        self._constants()
        for call in self.program.calls:
            self._call(call)
        outputs, after = self._results()
        return self._read(outputs, after)

    def _check_floats(self) -> None:
        """Refuse a model whose inputs or parameters are floats of another size. Raises Unsupported."""
        parameters = [constant.name for constant in self.program.constants if not constant.is_buffer]
        for what, names in (("input", self.program.inputs), ("parameter", parameters)):
            for name in names:
                if self._type(name)[0] in ("float16", "bfloat16", "float64"):
                    text = f"the {what} '{name}' is {self._type(name)[0]}"
                    raise Unsupported(text, "float32", "convert the model before the export: model.float()")

    def _type(self, name: str) -> tuple[str, tuple[int, ...]]:
        meta = self.program.metas[name]
        return meta.dtype, meta.shape

    def _constants(self) -> None:
        """Bind parameters and buffers. Those that nothing reads are not read."""
        read = self.needed
        changed = changed_roots(self.program.calls)
        for constant in self.program.constants:
            name = constant.name
            is_state = constant.path in self.program.mutations or (constant.is_buffer and name in changed)
            if name not in read and not is_state:
                continue
            content = self.payloads.tensor(constant.path)
            dtype, shape = self._type(name)
            if tuple(content.shape) != shape:
                raise Damaged(f"the tensor '{constant.path}' has the shape {list(content.shape)}, not {list(shape)}")
            if is_state:
                self.states[constant.path] = (name, content)
                self.values.bind(name, Value(name, dtype, shape))
            else:
                self.build.constants[name] = content
                self.values.bind(name, Value(name, str(content.dtype), shape, content))

    # Calls.

    def _call(self, call: Call) -> None:
        if not any(call.results) and (call.operator in _SILENT or call.operator.partition(".")[0] in _SILENT):
            return
        key = next((key for key in (call.target, call.shown, call.operator) if key in self.users), None)
        if key is not None:
            self.used[key] = self.users[key]
            self._foreign(call, key, None)
            return
        self.build.begin(call, self.program.metas)
        try:
            if call.refusal is not None:
                raise call.refusal
            self._translate(call)
        except LostError:
            self.build.abandon()
        except Unsupported as reason:
            self.is_refused = True
            self.build.abandon()
            self._foreign(call, call.shown, reason)

    def _translate(self, call: Call) -> None:
        """Append the operators of a call. Raises Unsupported."""
        changed = in_place(call)
        plain = functional(call)
        context = Context(plain, self.program.metas, self.values.read, self.build)
        made = self._results_of(plain, context)
        results = [made] if isinstance(made, Value) else list(made)
        if changed is not None:
            [value] = results
            assert value is not None
            target = self.values.read(changed)
            value = self.build.expand(self.build.cast(value, target.dtype), target.shape)
            value = self.build.named({next((name for name in call.results if name), changed): value}).popitem()[1]
            self.values.change(changed, value)
            for name in filter(None, call.results):
                self.values.alias(name, changed)
            return
        if len(results) < len(call.results):
            raise Unsupported(f"{len(call.results)} results", f"{len(results)}")
        pairs = list(zip(call.results, results, strict=False))
        if absent := [name for name, value in pairs if value is None and name in self.needed]:
            raise Unsupported(f"the result '{absent[0]}' is used", "a use of the first result only")
        named = {name: value for name, value in pairs if name and value is not None}
        self.values.bind_results(call, self.build.named(named))

    def _results_of(self, call: Call, context: Context) -> Any:
        """Return the results of a translation. Raises Unsupported, also for arguments that contradict the shapes."""
        function = translation_of(call)
        try:
            return function(context, self.build)
        except (IndexError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError) as error:
            raise Unsupported(
                f"arguments that contradict each other ({first_line(error)})", "those of PyTorch"
            ) from None

    def _foreign(self, call: Call, kind: str, reason: Unsupported | None) -> None:
        """Append a call as it is: an operator of the user, or one that is refused."""
        known = self.program.metas
        names = [name for name in call.results if name is not None]
        named = [name for name in names if name in known and known[name].dtype in _DTYPES]
        self.build.begin(call, self.program.metas, reason, is_reported=len(named) < len(names))
        inputs: list[Value | None] = []
        for name in references(list(call.arguments.values())):
            if name in self.values:
                try:
                    inputs.append(self.values.read(name))
                except Unsupported:
                    continue
        results = {name: Value(name, *self._type(name)) for name in named}
        self.build.foreign(kind, inputs, list(results), _options(call) if reason is None else {})
        for name, value in results.items():
            self.values.bind(name, value)

    # The end.

    def _results(self) -> tuple[list[str], dict[str, str]]:
        """Return the names of the outputs, and of the contents of states after a run, by path."""
        results: list[str] = []
        for name in self.program.outputs:
            if self.is_refused and name not in self.values:
                continue
            results.append(self.values.read(name).name)
            is_used = name in self.outputs or name in self.program.inputs
            self.outputs.append(f"{name}_{len(self.outputs)}" if is_used else name)
        after = {}
        for path, (name, _) in self.states.items():
            changed = self.program.mutations.get(path, name)
            after[path] = self.values.read(name if self.is_refused and changed not in self.values else changed).name
        return results, after

    def _read(self, outputs: list[str], after: Mapping[str, str]) -> Model:
        """Return the model with known shapes and folded constants."""
        from onnx import helper

        frame = helper.make_model(
            helper.make_graph([], "program", [], []), opset_imports=[helper.make_opsetid("", MAX_OPSET)]
        )
        reader = Reader(frame, {}, self.used, self.build.origins)
        inputs = []
        for name in self.program.inputs:
            dtype, shape = self._type(name)
            reader.items[name] = Item(name, dtype, shape)
            inputs.append(reader.items[name])
        for name, _ in self.states.values():
            reader.items[name] = Item(name, *self._type(name))
        for name, content in self.build.constants.items():
            reader.items[name] = Item(name, str(content.dtype), tuple(content.shape), content)
        for number, node in enumerate(self.build.nodes):
            reader.node(node, number)
        self._compare(reader)
        names = {name for call in self.program.calls for name in (call.target, call.shown, call.operator)}
        states = tuple(
            State(reader.items[name], content, reader.items[after[path]])
            for path, (name, content) in self.states.items()
        )
        results = tuple(reader.items[name] for name in outputs)
        changed = changed_roots(self.program.calls)
        inplace = [changed_input(name) for name in self.program.inputs if name in changed]
        remarks = (*dict.fromkeys((*self.program.remarks, *inplace)), *reader.remarks)
        return Model(tuple(inputs), results, tuple(reader.ops), remarks, frozenset(names), states)

    def _compare(self, reader: Reader) -> None:
        """Compare the types of the file with those of the operators. Raises Damaged."""
        for name, meta in self.program.metas.items():
            item = reader.items.get(name)
            if item is None or item.shape is None or (item.shape == meta.shape and item.dtype == meta.dtype):
                continue
            if item.shape == meta.shape and meta.dtype == "bfloat16":
                continue
            given = f"{meta.dtype} {list(meta.shape)}"
            raise Damaged(f"the tensor '{name}' is {given}, and its operator computes {item.dtype} {list(item.shape)}")


def _options(call: Call) -> dict[str, Any]:
    """Return the numbers among the arguments, for operators of the user."""
    options: dict[str, Any] = {}
    for name, value in call.arguments.items():
        items = value if isinstance(value, list) else [value]
        if items and all(isinstance(item, (int, float)) for item in items):
            whole = all(isinstance(item, int) for item in items)
            numbers = [int(item) if whole else float(item) for item in items]
            options[name] = numbers if isinstance(value, list) else numbers[0]
    return options
