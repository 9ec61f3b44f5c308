# SPDX-License-Identifier: Apache-2.0
"""Average pooling of integers as TFLite has it: to the nearest, halves away from zero. TVM's importer truncates."""

from __future__ import annotations

from typing import Any


def round_average_pools(module: Any) -> Any:
    """Return the module with every average pool of int32 computed in float, exactly, and rounded."""
    from tvm import relax

    pool = relax.op.nn.avg_pool2d

    @relax.expr_functor.mutator
    class Rounding(relax.PyExprMutator):  # type: ignore[misc]
        """Replaces the pools."""

        def visit_call_(self, call: Any) -> Any:
            """Replace a pool of integers."""
            call = super().visit_call_(call)
            if getattr(call.op, "name", "") != "relax.nn.avg_pool2d" or str(call.args[0].ty.dtype) != "int32":
                return call
            a = call.attrs
            data = self.builder_.emit(relax.op.astype(call.args[0], "float32"))
            mean = self.builder_.emit(
                pool(
                    data,
                    a.pool_size,
                    a.strides,
                    a.padding,
                    a.dilation,
                    a.ceil_mode,
                    a.count_include_pad,
                    a.layout,
                    a.out_layout,
                )
            )
            half = relax.const(0.5, "float32")
            up = self.builder_.emit(relax.op.floor(relax.op.add(mean, half)))
            down = self.builder_.emit(relax.op.ceil(relax.op.subtract(mean, half)))
            is_positive = self.builder_.emit(relax.op.greater_equal(mean, relax.const(0.0, "float32")))
            rounded = self.builder_.emit(relax.op.where(is_positive, up, down))
            return relax.op.astype(rounded, "int32")

    return _apply(Rounding(module), module)


def _apply(mutator: Any, module: Any) -> Any:
    for variable, function in module.functions_items():
        if type(function).__name__ == "Function":
            mutator.builder_.update_func(variable, mutator.visit_expr(function))
    return mutator.builder_.get()
