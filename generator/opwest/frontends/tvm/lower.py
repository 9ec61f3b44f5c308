# SPDX-License-Identifier: Apache-2.0
"""Lower Relax to a flat list of calls of TIR functions, with storage for every result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opwest.base.diagnostics import Diagnostic, OpwestError
from opwest.compiler.faults import fault
from opwest.frontends.tvm.read import Source, last_line

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
    try:
        with target:
            module = tvm.transform.Sequential(legalize)(module)
    except Exception as error:
        raise fault(f"cannot lower the model to operators: {last_line(error)}") from None
    _check_lowered(module)
    try:
        with target:
            return tvm.transform.Sequential(fuse)(module)
    except Exception as error:
        raise fault(f"cannot fuse the operators: {last_line(error)}") from None


def main_function(module: Any) -> Any:
    """Return the function that is the model."""
    for variable, function in module.functions_items():
        if variable.name_hint == "main" and type(function).__name__ == "Function":
            return function
    raise fault("the module has no Relax function 'main'")


def check_static(module: Any) -> None:
    """Raise OpwestError for tensors of dynamic shape, and for values that are not tensors."""
    main = main_function(module)
    found = [
        f"input {p.name_hint if hasattr(p, 'name_hint') else p.name!r}: {r}" for p in main.params for r in _fault(p.ty)
    ]
    if not found:
        for binding in _bindings(main):
            decided = _decided_at_run_time(binding.value, module)
            if decided:
                found.append(f"unsupported control flow at run time: {decided}")
                break
            reasons = list(_fault(binding.var.ty))
            if reasons:
                name = _operator_name(binding.value)
                found.append(f"operator {name}, which writes {binding.var.name!r}: {reasons[0]}")
                break  # later bindings depend on it
    _raise(found)


def _decided_at_run_time(value: Any, module: Any) -> str | None:
    """Return the description of a binding with a branch or a recursion; None for others."""
    if type(value).__name__ == "If":
        return "a branch"
    called = getattr(value, "op", None)
    if called is None or type(called).__name__ != "GlobalVar" or type(module[called]).__name__ != "Function":
        return None
    return "a loop" if "while" in called.name_hint else "a call of a function"


def _raise(found: list[str]) -> None:
    if found:
        raise OpwestError(Diagnostic("error", text) for text in found)


def _fault(kind: Any) -> Iterator[str]:
    """Yield the reasons why a type cannot be imported."""
    name = type(kind).__name__
    if name == "TupleType":
        for field in kind.fields:
            yield from _fault(field)
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
    for block in main.body.blocks:
        yield from block.bindings


def _operator_name(value: Any) -> str:
    operator = getattr(value, "op", None)
    if getattr(operator, "name", None) == "relax.call_dps_packed":
        operator = value.args[0]  # a function of TVM's runtime
    names = (getattr(operator, one, None) for one in ("global_symbol", "name", "name_hint"))
    name = str(next((one for one in names if one), type(value).__name__))
    return name.removeprefix("relax.").removeprefix("topi.").removeprefix("nn.")


def _check_lowered(module: Any) -> None:
    """Raise OpwestError for operators that TVM did not lower."""
    found = []
    for binding in _bindings(main_function(module)):
        operator = getattr(binding.value, "op", None)
        name = getattr(operator, "name", "")
        if name.startswith("relax.") and name not in _LOWERED:
            kind = binding.var.ty
            found.append(
                f"operator {_operator_name(binding.value)}, which writes {binding.var.name!r} ({kind}), "
                "has no lowering in TVM"
            )
    _raise(found)
