# SPDX-License-Identifier: Apache-2.0
"""Random programs of several layers, and the same programs as one block in stripes."""

import dataclasses

from opwest.compiler.ir.operations import Pool
from opwest.compiler.ir.program import Program, Value
from opwest.compiler.output.emit import candidates
from opwest.compiler.selection.block import Part, block_of, layout_of, part_of
from opwest.compiler.selection.choose import scratch_bytes
from opwest.tuning import random_layers

KINDS = ("convolution", "convolution", "depthwise", "depthwise", "pool", "sum", "elements")
FLOAT_KINDS = tuple(kind for kind in KINDS if kind != "sum")


def _layer(random, kind, values, dtype):
    """Return an operation over the last value, or over it and an earlier one of its shape; None if none fits."""
    data = values[-1]
    _, height, width, _ = data.shape
    size = tuple(int(min(one, limit)) for one, limit in zip(random.integers(1, 4, 2), (height, width), strict=True))
    keys = {"same": bool(random.integers(0, 3)), "stride": tuple(int(one) for one in random.choice([1, 1, 2], 2))}
    if kind in ("convolution", "depthwise") and random.random() < 0.15 and min(height, width) > 4:
        size, keys["same"], keys["dilation"] = (2, 2), True, (2, 1)
    float_ = "float_" if dtype == "float32" else ""
    if kind == "convolution":
        results = int(random.choice([1, 3, 4, 8, 9]))
        make = getattr(random_layers, f"{float_}convolution")
        return make(random, data.shape, size, results, dtype=dtype, **keys).operations[0]
    if kind == "depthwise":
        keys.setdefault("dilation", (1, 1))
        multiplier = int(random.choice([1, 1, 2]))
        make = getattr(random_layers, f"{float_}depthwise")
        return make(random, data.shape, size, multiplier, dtype=dtype, **keys).operations[0]
    if kind == "pool":
        make = getattr(random_layers, f"{float_}pool")
        return make(random, data.shape, size, dtype=dtype, **keys).operations[0]
    if kind == "sum":
        return random_layers.convolution_sum(random, shape=data.shape, size=(1, 1), results=data.shape[3]).operations[0]
    if float_:
        return random_layers.float_elements(random, shape=data.shape).operations[0]
    return random_layers.elements(random, data.shape).operations[0]


def chain(random, length, dtype="int8"):
    """Return a program of `length` layers. Sums also read the results of layers before the last one."""
    height, width = int(random.integers(5, 25)), int(random.integers(3, 10))
    shape = (1, height, width, int(random.choice([1, 3, 4, 8])))
    values = [Value("input", "input", dtype, shape)]
    operations = []
    kinds = {"int8": KINDS, "float32": FLOAT_KINDS}.get(dtype, ("convolution", "depthwise"))
    while len(operations) < length:
        made = _layer(random, str(random.choice(kinds)), values, dtype)
        inputs = [values[-1]]
        if len(made.inputs) > 1:
            others = [one for one in values if one.shape == made.inputs[1].shape]
            if not others:
                continue
            inputs.append(others[int(random.integers(0, len(others)))])
        role = "output" if len(operations) == length - 1 else "intermediate"
        result = Value(f"t{len(operations)}", role, dtype, made.results[0].shape)
        label = f"{len(operations)} (layer)"
        operations.append(dataclasses.replace(made, label=label, inputs=tuple(inputs), results=(result,)))
        values.append(result)
    read = {value for one in operations for value in one.inputs}
    if any(value not in read for value in values[:-1]):
        return chain(random, length, dtype)
    return Program(inputs=values[:1], outputs=values[-1:], operations=operations)


def striped(random, program, processor, turn, most):
    """Return the program as one block, each layer in any of its variants; None if its layers cannot be one."""
    layout = layout_of(tuple(program.operations), turn, most)
    if layout is None:
        return None

    def part(operation, count):
        found = part_of(operation, count)
        calls = candidates(found, processor)
        name = str(random.choice(sorted(calls)))
        return Part(found, name, -(-scratch_bytes(calls[name]) // 16) * 16)

    block = block_of(program.operations, layout, part, processor)
    return Program(inputs=program.inputs, outputs=program.outputs, operations=[block])


def has_pool_with_other_divisors(program):
    """Whether an average is over windows that reach outside of rows: such a pool is not computed in stripes."""

    def reaches_outside(window, rows):
        last = (window.result[0] - 1) * window.stride[0] - window.before[0] + window.size[0]
        return window.before[0] > 0 or last > rows

    pools = [one for one in program.operations if isinstance(one, Pool) and one.kind == "average"]
    return any(reaches_outside(one.window, one.inputs[0].shape[1]) for one in pools)
