# SPDX-License-Identifier: Apache-2.0
"""Lower Relax to the steps of a model: calls of TIR functions, with storage for every result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from math import prod
from typing import Any, Literal

from opwest.base.diagnostics import Diagnostic, OpwestError
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler.faults import fault
from opwest.frontends.tvm.read import Source, reported

_FIRST, _LAST = [0, 3, 1, 2], [0, 2, 3, 1]
_KERNEL = "IOHW"


def channels_first(module: Any) -> Any:
    """Return the module with NHWC transposed convolutions between transpositions, which are fused with them."""
    from tvm import relax

    @relax.expr_functor.mutator
    class Rewriting(relax.PyExprMutator):  # type: ignore[misc]
        """Replaces transposed convolutions."""

        def visit_call_(self, call: Any) -> Any:
            """Replace a transposed convolution."""
            is_one = getattr(call.op, "name", "") == "relax.nn.conv2d_transpose"
            if not is_one or str(call.attrs.data_layout) != "NHWC" or str(call.attrs.out_layout) not in ("NHWC", ""):
                return super().visit_call_(call)
            attributes = call.attrs
            kernel = str(attributes.kernel_layout)
            data = self.builder_.emit(relax.op.permute_dims(self.visit_expr(call.args[0]), _FIRST))
            axes = [kernel.index(letter) for letter in _KERNEL]
            weights = self.builder_.emit(relax.op.permute_dims(self.visit_expr(call.args[1]), axes))
            result = self.builder_.emit(
                relax.op.nn.conv2d_transpose(
                    data,
                    weights,
                    strides=list(attributes.strides),
                    padding=list(attributes.padding),
                    output_padding=list(attributes.output_padding),
                    dilation=list(attributes.dilation),
                    groups=attributes.groups,
                    data_layout="NCHW",
                    kernel_layout=_KERNEL,
                    out_dtype=attributes.out_dtype,
                )
            )
            return self.builder_.normalize(relax.op.permute_dims(result, _LAST))

    mutator = Rewriting(module)
    for variable, function in module.functions_items():
        if type(function).__name__ == "Function":
            mutator.builder_.update_func(variable, mutator.visit_expr(function))
    return mutator.builder_.get()


_LOWERED = {
    "relax.call_tir",
    "relax.reshape",
    "relax.memory.alloc_storage",
    "relax.memory.alloc_tensor",
    "relax.builtin.alloc_tensor",
}


def lower_graph(source: Source, target: Any) -> Any:
    """Return the module lowered to calls with plain tensors. Raises OpwestError if it cannot be lowered."""
    import tvm
    from tvm.relax import transform

    module = source.module
    legalize = [
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        transform.LegalizeOps(),
        transform.FoldConstant(),
        transform.DeadCodeElimination(),
    ]
    fuse = [
        transform.AnnotateTIROpPattern(),
        transform.FuseOps(),
        transform.FuseTIR(),
        transform.DeadCodeElimination(),
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
    ]
    with reported("cannot lower the model to operators"), target:
        module = tvm.transform.Sequential(legalize)(module)
    _check_lowered(module)
    with reported("cannot fuse the operators"), target:
        return tvm.transform.Sequential(fuse)(module)


def main_function(module: Any) -> Any:
    """Return the function that is the model."""
    for variable, function in module.functions_items():
        if variable.name_hint == "main" and type(function).__name__ == "Function":
            return function
    raise fault("the module has no Relax function 'main'")


def check_static(module: Any) -> None:
    """Raise OpwestError for tensors of dynamic shape, and for values that are not tensors."""
    main = main_function(module)
    texts = [f"input {p.name!r}: {reason}" for p in main.params for reason in _fault(p.ty)]
    if not texts:
        for binding in _bindings(main):
            decided = _decided_at_run_time(binding.value, module)
            if decided:
                texts.append(f"unsupported control flow at run time: {decided}")
                break
            reasons = list(_fault(binding.var.ty))
            if reasons:
                name = _operator_name(binding.value)
                texts.append(f"operator {name}, which writes {binding.var.name!r}: {reasons[0]}")
                break  # later bindings depend on it
    _raise(texts)


def _decided_at_run_time(value: Any, module: Any) -> str | None:
    """Return the description of a binding with a branch or a recursion; None for others."""
    if type(value).__name__ == "If":
        return "a branch"
    called = getattr(value, "op", None)
    if called is None or type(called).__name__ != "GlobalVar" or type(module[called]).__name__ != "Function":
        return None
    return "a loop" if "while" in called.name_hint else "a call of a function"


def _raise(texts: list[str]) -> None:
    if texts:
        raise OpwestError(Diagnostic("error", text) for text in texts)


def _fault(kind: Any) -> Iterator[str]:
    """Yield the reasons why a type cannot be imported."""
    name = type(kind).__name__
    if name == "TupleType":
        for inner in kind.fields:
            yield from _fault(inner)
    elif name == "TensorType":
        dims = getattr(kind.shape, "values", None)
        if dims is None:
            yield "it has a dynamic shape"
        elif not all(type(d).__name__ == "IntImm" for d in dims):
            yield f"it has a dynamic shape, [{', '.join(map(str, dims))}]"
        elif not all(int(d) > 0 for d in dims):
            yield f"it has no elements: its shape is [{', '.join(map(str, dims))}]"
    elif name not in ("ShapeType", "PrimType"):
        yield f"it is not a tensor ({kind})"


def _bindings(main: Any) -> Iterator[Any]:
    return (binding for block in main.body.blocks for binding in block.bindings)


def _operator_name(value: Any) -> str:
    operator = getattr(value, "op", None)
    if getattr(operator, "name", None) == "relax.call_dps_packed":
        operator = value.args[0]  # a function of TVM's runtime
    names = (getattr(operator, attribute, None) for attribute in ("global_symbol", "name", "name_hint"))
    name = str(next(filter(None, names), type(value).__name__))
    return name.removeprefix("relax.").removeprefix("topi.").removeprefix("nn.")


def _check_lowered(module: Any) -> None:
    """Raise OpwestError for operators that TVM did not lower."""
    texts = []
    for binding in _bindings(main_function(module)):
        operator = getattr(binding.value, "op", None)
        name = getattr(operator, "name", "")
        if name.startswith("relax.") and name not in _LOWERED:
            written = f"{binding.var.name!r} ({binding.var.ty})"
            texts.append(f"operator {_operator_name(binding.value)}, which writes {written}, has no lowering in TVM")
    _raise(texts)


Role = Literal["input", "output", "constant", "intermediate"]


@dataclass(eq=False)
class Tensor:
    """A tensor; several Relax variables can refer to it, with other shapes of the same size."""

    role: Role
    dtype: str
    shape: tuple[int, ...]
    content: Any = None
    """A constant's numpy array."""


@dataclass(frozen=True)
class Step:
    """One call; `writes` counts the last arguments, which are results."""

    function: str
    arguments: tuple[Tensor, ...]
    writes: int


@dataclass
class Steps:
    """A whole model."""

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    constants: list[Tensor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    copies: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Copy functions to create (dtype, elements): for outputs that are inputs, constants or other outputs."""


def extract_steps(module: Any) -> Steps:
    """Return the steps of a module from `lower_graph`."""
    return _Walk(main_function(module)).result()


class _Walk:
    def __init__(self, main: Any) -> None:
        self.main = main
        self.steps = Steps()
        self.known: dict[Any, Any] = {}
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Tensor] = {}
        self.written: set[Tensor] = set()

    def result(self) -> Steps:
        for parameter in self.main.params:
            tensor = self._new("input", parameter)
            self.steps.inputs.append(tensor)
            self.known[parameter] = tensor
            self.written.add(tensor)
        for binding in _bindings(self.main):
            self.known[binding.var] = self._value(binding)
        self._name_outputs(list(self._flat(self._look(self.main.body.body))))
        return self.steps

    def _new(self, role: Role, variable: Any) -> Tensor:
        return Tensor(role, *_type(variable.ty))

    def _value(self, binding: Any) -> Any:
        value = binding.value
        if type(value).__name__ != "Call":
            return self._look(value)
        name = getattr(value.op, "name", None)
        if name is None:
            return self._call(value)
        if name in ("relax.memory.alloc_tensor", "relax.builtin.alloc_tensor"):
            return self._new("intermediate", binding.var)
        if name == "relax.reshape":
            return self._look(value.args[0])
        if name == "relax.memory.alloc_storage" or name.startswith("relax.memory.kill_"):
            return None
        raise fault(f"operator {name}, which writes {binding.var.name!r}, was not lowered by TVM")

    def _look(self, value: Any) -> Any:
        kind = type(value).__name__
        if kind == "Tuple":
            return [self._look(field) for field in value.fields]
        if kind == "TupleGetItem":
            return self._look(value.tuple_value)[int(value.index)]
        if hasattr(value, "value") and hasattr(value.value, "numpy"):
            return self._constant(value.value.numpy())
        return self.known[value]

    def _constant(self, array: Any) -> Tensor:
        key = (str(array.dtype), tuple(array.shape), array.tobytes())
        if key not in self.constants:
            self.constants[key] = Tensor("constant", key[0], key[1], array)
            self.written.add(self.constants[key])
        return self.constants[key]

    def _flat(self, value: Any) -> Iterator[Tensor]:
        if isinstance(value, list):
            for part in value:
                yield from self._flat(part)
        else:
            yield value

    def _call(self, call: Any) -> Any:
        arguments = tuple(t for arg in call.args for t in self._flat(self._look(arg)))
        results = [t for t in arguments if t not in self.written]
        name = call.op.name_hint
        if not results or list(arguments[-len(results) :]) != results:
            raise fault(f"unsupported operator '{name}': it modifies an argument in place")
        for tensor in arguments:
            if tensor.role == "constant" and tensor not in self.steps.constants:
                self.steps.constants.append(tensor)
        self.written.update(results)
        self.steps.steps.append(Step(name, arguments, len(results)))
        return None

    def _name_outputs(self, results: list[Tensor]) -> None:
        """Make the returned tensors outputs; copy those that cannot be outputs."""
        shapes = list(self._flat_types(self.main.ret_ty))
        for tensor, (dtype, shape) in zip(results, shapes, strict=True):
            if tensor.role == "intermediate":
                tensor.role, tensor.shape = "output", shape
                self.steps.outputs.append(tensor)
                continue
            copy = Tensor("output", dtype, shape)
            name = f"copy_{dtype}_{prod(shape)}"
            self.steps.copies[name] = (dtype, prod(shape))
            if tensor.role == "constant" and tensor not in self.steps.constants:
                self.steps.constants.append(tensor)
            self.steps.steps.append(Step(name, (tensor, copy), 1))
            self.steps.outputs.append(copy)

    def _flat_types(self, kind: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
        if type(kind).__name__ == "TupleType":
            for field in kind.fields:
                yield from self._flat_types(field)
        else:
            yield _type(kind)


def _type(kind: Any) -> tuple[str, tuple[int, ...]]:
    """Return the dtype and the shape of a type of Relax."""
    return str(kind.dtype), tuple(int(d) for d in kind.shape.values)
