# SPDX-License-Identifier: Apache-2.0
"""Verify a program: the rules that hold after lowering and after each pass, as a table.

RULES has the rules of a whole program, SHAPES those of each type of operation. The shapes of an operation agree with
its numbers; memory is compared by elements: each element that is read was written before, each is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from opwest.base.result import counted
from opwest.compiler.ir import operations as ir
from opwest.compiler.ir import signal
from opwest.compiler.ir.movement import RESULT, Move, places_of
from opwest.compiler.ir.program import Operation, Program, Value, extent_of, rows_of
from opwest.compiler.ir.stripes import ALIGN, Striped
from opwest.compiler.semantics.fixed_point import Requantisation


class Broken(Exception):  # noqa: N818 - a finding, which the caller adds the pass to
    """A rule that a program breaks, and the operation; None: the program as a whole."""

    def __init__(self, reason: str, operation: Operation | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.operation = operation


def verify(program: Program) -> None:
    """Raise Broken for the first rule that a program breaks."""
    for check in RULES.values():
        check(program)


def _require(condition: object, reason: str, operation: Operation | None = None) -> None:
    if not condition:
        raise Broken(reason, operation)


def _values(program: Program) -> None:
    for operation in program.operations:
        for value in (*operation.inputs, *operation.results):
            _value(value, operation)
    for value in (*program.inputs, *program.outputs, *program.states):
        _require(value.root is None, f"'{value.name}' is a view")
    for role, values in (("input", program.inputs), ("output", program.outputs), ("state", program.states)):
        for value in values:
            _require(value.role == role, f"'{value.name}' has the role {value.role}, not {role}")
        _require(len({*values}) == len(values), f"two {role}s are one value")


def _value(value: Value, operation: Operation) -> None:
    name = f"'{value.name}'"
    _require(min(value.shape, default=1) > 0, f"{name} has the shape {list(value.shape)}", operation)
    if value.content is not None:
        same = (str(value.content.dtype), value.content.shape) == (value.dtype, value.shape)
        _require(same, f"the content of {name} has another shape or dtype", operation)
    _require(value.role != "constant" or value.base.content is not None, f"{name} has no content", operation)
    root = value.root
    if root is None:
        _require(value.pitch == 0, f"{name} has a pitch, and is no view", operation)
        return
    _require(root.root is None or root.base.role == "arena", f"{name} is a view of a view", operation)
    _require(root.dtype == value.dtype or root.base.role == "arena", f"{name} is a view in another dtype", operation)
    if root.base.role == "arena":
        return
    inside = value.offset >= 0 and value.offset + extent_of(value) <= root.size
    _require(inside, f"view {name} is not inside of '{root.name}'", operation)
    _require(not value.pitch or value.pitch >= value.shape[-1], f"rows of {name} overlap", operation)


def _flow(program: Program) -> None:
    given = {*program.inputs, *program.states}
    masks: dict[Value, Any] = {}

    def written(value: Value) -> Any:
        """Return a view of the marks of the elements of a value."""
        base = value.base
        if base not in masks:
            masks[base] = np.full(base.size, base in given or base.role == "constant")
        mask = masks[base]
        return rows_of(mask if value.root is None else mask[value.offset : value.offset + extent_of(value)], value)

    for operation in program.operations:
        for value in operation.inputs:
            if value.base.role != "arena":
                _require(written(value).all(), f"'{value.name}' is read before it is written", operation)
        for value in operation.results:
            base = value.base
            if base.role == "arena":
                continue
            _require(base.role in ("intermediate", "output"), f"'{value.name}', {base.role}, is written", operation)
            _require(not written(value).any(), f"'{value.name}' is written twice", operation)
            written(value)[...] = True
    for value in program.outputs:
        _require(written(value).all(), f"output '{value.name}' has elements that nothing writes")
    for value in program.states:
        if value.next is not None:
            is_complete = written(value.next).all()
            _require(is_complete, f"the new content of '{value.name}' has elements that nothing writes")


def _tensors(program: Program) -> None:
    for value, tensor in program.tensors.items():
        channels = program.channels.get(value)
        shape = tensor.shape if channels is None else (*tensor.shape[:-1], len(channels))
        same = value.dtype == tensor.dtype and value.size == prod(shape)
        _require(same or value.base.role == "arena", f"'{value.name}' has not the shape of tensor '{tensor.name}'")


def _shapes(program: Program) -> None:
    for operation in program.operations:
        _shape(operation)


def _shape(operation: Operation) -> None:
    for kind, check in SHAPES.items():
        if isinstance(operation, kind):
            check(operation)


RULES: dict[str, Callable[[Program], None]] = {
    "Views are inside of their roots, which are no views; constants have content.": _values,
    "Each element that is read was written before, and each element is written once.": _flow,
    "The numbers of an operation agree with the shapes of its operands.": _shapes,
    "A value that is a tensor of the graph has its dtype and its size, but for removed channels.": _tensors,
}
"""The checks of a whole program by the rule; they raise Broken."""


def _ending(operation: Any, results: int) -> None:
    bias, finish = operation.bias, operation.finish
    _require(
        bias is None or bias.size == results, f"{counted(results, 'result')}, and another number of biases", operation
    )
    if isinstance(finish, Requantisation):
        count = len(finish.multipliers or finish.scales)
        _require(count in (1, results), f"{counted(results, 'result')}, and {counted(count, 'multiplier')}", operation)
        count = len(finish.biases)
        _require(count in (0, results), f"{counted(results, 'result')}, and {counted(count, 'float bias')}", operation)


def _window(operation: Any, shape: Sequence[int], results: int) -> None:
    window, result = operation.window, operation.results[0]
    _require(len(shape) == 4, f"data of shape {list(shape)}", operation)
    size = shape[0] * prod(window.result) * results
    _require(result.size == size and result.shape[-1] == results, "the result has another shape", operation)


def _convolution(operation: ir.Convolution | ir.Depthwise) -> None:
    shape, weights = operation.inputs[0].shape, operation.weights.shape
    if isinstance(operation, ir.Depthwise):
        *size, results = weights
        fits = results % shape[-1] == 0
    else:
        results, *size, inner = weights
        fits = shape[-1] == inner * operation.groups and results % operation.groups == 0
    _require(operation.window.size == tuple(size), "the window is not that of the weights", operation)
    _require(fits, f"weights {list(weights)} for data {list(shape)}", operation)
    _window(operation, shape, results)
    _ending(operation, results)
    if isinstance(operation, ir.ConvolutionSum):
        same = operation.inputs[1].shape == operation.results[0].shape and operation.place in (0, 1)
        _require(same, "the other operand of the sum has another shape", operation)


def _pool(operation: ir.Pool) -> None:
    shape = operation.inputs[0].shape
    _window(operation, shape, shape[-1])


def _elementwise(operation: ir.Elementwise) -> None:
    [result] = operation.results
    try:
        shape = np.broadcast_shapes(*(value.shape for value in operation.inputs), result.shape)
    except ValueError:
        shape = ()
    shown = ", ".join(str(list(value.shape)) for value in operation.inputs)
    _require(shape == result.shape, f"operands {shown} for a result {list(result.shape)}", operation)


def _copy(operation: ir.Copy) -> None:
    [data], [result] = operation.inputs, operation.results
    _require(data.size == result.size and data.dtype == result.dtype, "a copy of another size or dtype", operation)


def _move(operation: Move) -> None:
    [result] = operation.results
    mask = np.zeros(extent_of(result), bool)
    for region in operation.regions:
        sources, places = places_of(region)
        _require(places.min() >= 0 and places.max() < len(mask), "a region outside of the result", operation)
        if region.source == RESULT:
            inside = sources.min() >= 0 and sources.max() < len(mask)
            _require(inside and mask[sources].all(), "a region reads elements of the result too early", operation)
        elif region.source is not None:
            exists = 0 <= region.source < len(operation.inputs)
            _require(exists, "a region of an operand that does not exist", operation)
            data = operation.inputs[region.source]
            inside = sources.min() >= 0 and sources.max() < data.size
            _require(inside, f"a region outside of '{data.name}'", operation)
            same = data.dtype == result.dtype and not data.pitch
            _require(same, f"'{data.name}' has another dtype than the result, or a pitch", operation)
        mask[places] = True
    _require(rows_of(mask, result).all(), "the regions leave elements of the result", operation)
    if result.pitch:
        whole = int(mask.sum())
        _require(whole == result.size, "a region writes between the rows of the result", operation)


def _product(operation: ir.MatrixProduct) -> None:
    one, other = (
        (*value.shape[:-2], value.shape[-1], value.shape[-2]) if swaps else value.shape
        for value, swaps in zip(operation.inputs, operation.swaps, strict=False)
    )
    _require(one[-1] == other[-2], f"a product of {list(one)} and {list(other)}", operation)
    size = prod(np.broadcast_shapes(one[:-2], other[:-2])) * one[-2] * other[-1]
    _require(operation.results[0].size == size, "the result has another shape", operation)


def _direct(operation: ir.DirectConvolution) -> None:
    weights = operation.inputs[1].shape
    results = weights[3] if operation.groups == 0 else weights[0]
    _window(operation, operation.inputs[0].shape, results)
    bias = operation.inputs[2].size if len(operation.inputs) > 2 else results
    _require(bias == results, f"{counted(results, 'result')}, and {bias} biases", operation)


def _same(operation: Operation) -> None:
    same = operation.inputs[0].shape == operation.results[0].shape
    _require(same, "the result has another shape than the data", operation)


def _reduce(operation: ir.Reduce) -> None:
    shape = operation.inputs[0].shape
    _require(all(0 <= axis < len(shape) for axis in operation.axes), f"axes {operation.axes}", operation)
    kept = prod(n for axis, n in enumerate(shape) if axis not in operation.axes)
    _require(operation.results[0].size == kept, "the result has another shape", operation)


def _rows(operation: ir.QuantiseRows) -> None:
    count = operation.inputs[0].shape[0]
    same = operation.results[0].size == operation.inputs[0].size
    same = same and all(result.size == count for result in operation.results[1:])
    _require(same, "other rows than the data", operation)


def _hybrid(operation: ir.HybridConvolution) -> None:
    weights = operation.weights.shape
    results = weights[2] if operation.is_depthwise else weights[0]
    _window(operation, operation.inputs[0].shape, results)
    _require(operation.scales.size in (1, results), f"{counted(operation.scales.size, 'scale')} of weights", operation)


def _hybrid_product(operation: ir.HybridProduct) -> None:
    _require(operation.data[-1] == operation.weights.shape[-1], "other weights than the data", operation)
    _require(prod(operation.data) == operation.inputs[0].size, "another shape than the data", operation)


def _states(operation: Operation, *sizes: int) -> None:
    """Require that states of these sizes follow the data, but those that are empty."""
    found = [value.size for value in operation.inputs[1:]]
    _require(found == [size for size in sizes if size], f"states of {found} elements, not {list(sizes)}", operation)


def _frames(operation: signal.Frames) -> None:
    numbers, [data, *_] = operation.numbers, operation.inputs
    fits = data.size == numbers.rows * numbers.frames * numbers.step
    _require(fits, f"{data.size} samples for {counted(numbers.frames, 'frame')}", operation)
    size = numbers.rows * numbers.frames * numbers.size
    _require(operation.results[0].size == size, "the result has another shape", operation)
    _states(operation, numbers.rows * numbers.kept, int(numbers.missing > 0))


def _overlaps(operation: signal.OverlapAdd) -> None:
    [data, *_], [result] = operation.inputs, operation.results
    rows, frames, size = prod(data.shape[:-2]), *data.shape[-2:]
    _require(1 <= operation.step <= size, f"a step of {operation.step} in frames of {size}", operation)
    _require(result.size == rows * frames * operation.step, "the result has another shape", operation)
    _states(operation, rows * (size - operation.step))


def _stack(operation: signal.Stack) -> None:
    numbers, [data, *_] = operation.numbers, operation.inputs
    _require(data.size == numbers.channels, f"{data.size} of {numbers.channels} channels", operation)
    _require(operation.results[0].size == numbers.channels * numbers.frames, "the result has another shape", operation)
    _states(operation, numbers.channels * (numbers.frames - 1), 1)


def _spectrum(operation: signal.RealFft | signal.InverseRealFft) -> None:
    [data], [result], length = operation.inputs, operation.results, operation.length
    if isinstance(operation, signal.RealFft):
        fits = data.shape[-1] <= length and result.shape[-1] == length + 2
    else:
        fits = data.shape[-1] == length + 2 and result.shape[-1] == length
    same = data.size // data.shape[-1] == result.size // result.shape[-1]
    _require(fits and same, f"an FFT of {length} from {list(data.shape)} to {list(result.shape)}", operation)


def _filters(operation: signal.FilterBank) -> None:
    data, weights, unweights, *tables = operation.inputs
    channels = operation.results[0].size
    whole = all(table.size == channels + 1 and table.content is not None for table in tables)
    _require(whole, f"{counted(channels, 'channel')}, and tables of other sizes", operation)
    most = min(weights.size, unweights.size)
    bands = zip(*(table.content.tolist() for table in tables), strict=True)
    inside = all(
        width <= 0 or (min(start, first) >= 0 and start + width <= data.size and first + width <= most)
        for start, first, width in bands
    )
    _require(inside, "a band outside of the data or of the weights", operation)


def _striped(operation: Striped) -> None:
    buffers = sorted(operation.buffers, key=lambda buffer: buffer.offset)
    places = (*(buffer.offset for buffer in buffers), operation.work)
    _require(all(place % ALIGN == 0 for place in places), f"memory of rows is not aligned to {ALIGN} bytes", operation)
    for buffer, other in pairwise(buffers):
        _require(buffer.offset + buffer.rows * buffer.pitch <= other.offset, "two buffers of rows overlap", operation)
    if buffers:
        end = buffers[-1].offset + buffers[-1].rows * buffers[-1].pitch
        _require(end <= operation.work <= operation.scratch, "a buffer of rows is outside of its memory", operation)
    for layer in operation.layers:
        _require(layer.height % layer.count == 0, "a call of a layer writes rows that do not exist", operation)
        _shape(layer.operation)
    last, [result] = operation.layers[-1], operation.results
    _require(last.height == result.shape[1], "the last layer has another number of rows", operation)
    inputs = len(operation.inputs)
    known = all(0 <= source.input < inputs for layer in operation.layers for source in layer.sources)
    _require(known, "a layer reads an operand that does not exist", operation)


SHAPES: dict[type[Operation], Callable[[Any], None]] = {
    ir.Convolution: _convolution,
    ir.Depthwise: _convolution,
    ir.Pool: _pool,
    ir.Elementwise: _elementwise,
    ir.Copy: _copy,
    Move: _move,
    ir.MatrixProduct: _product,
    ir.DirectConvolution: _direct,
    ir.Reduce: _reduce,
    ir.QuantiseRows: _rows,
    ir.HybridConvolution: _hybrid,
    ir.HybridProduct: _hybrid_product,
    Striped: _striped,
    signal.Frames: _frames,
    signal.OverlapAdd: _overlaps,
    signal.Stack: _stack,
    signal.RealFft: _spectrum,
    signal.InverseRealFft: _spectrum,
    signal.FilterBank: _filters,
    **dict.fromkeys((signal.AutoScale, signal.Delay, signal.Logarithms, signal.Pcan, signal.SubtractNoise), _same),
    **dict.fromkeys(
        (ir.SoftmaxFloat, ir.SoftmaxTable, ir.Softmax16, ir.LogSoftmaxTable, ir.LogSoftmaxFloat, ir.UnitLength), _same
    ),
}
"""The checks of the shapes of operations; those that are absent have no shapes besides those of the graph."""
