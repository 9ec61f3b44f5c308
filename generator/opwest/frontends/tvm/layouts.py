# SPDX-License-Identifier: Apache-2.0
"""Layouts of transposed convolutions: TVM lowers only channels first, TFLite uses channels last."""

from __future__ import annotations

from typing import Any

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
