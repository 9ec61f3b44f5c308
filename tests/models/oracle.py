# SPDX-License-Identifier: Apache-2.0
"""LiteRT as the reference."""

import numpy as np
from requirements_support import need


def litert(content, cases, resolver="BUILTIN_REF", steps=False):
    """Return the outputs of LiteRT for each case; with `steps` the cases are one sequence of a model with state.

    All tensors have memory of their own: LiteRT 2.3 otherwise lets RESHAPE and ADD share a tensor that is read later.
    """
    need("ai_edge_litert")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    kernels = getattr(OpResolverType, resolver)
    options = {"experimental_op_resolver_type": kernels, "experimental_preserve_all_tensors": True, "num_threads": 1}
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    outputs = []
    for case in cases:
        if not steps:
            interpreter.reset_all_variables()
        for place, array in zip(interpreter.get_input_details(), case, strict=True):
            interpreter.set_tensor(place["index"], np.asarray(array))
        interpreter.invoke()
        outputs.append([interpreter.get_tensor(one["index"]).copy() for one in interpreter.get_output_details()])
    return outputs
